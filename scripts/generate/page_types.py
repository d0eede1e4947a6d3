"""Write page/src/api-types.ts from the description of the API; with --check see if it is stale."""

import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[2] / "page" / "src" / "api-types.ts"
_HEAD = "/** The server's requests and answers, by scripts/generate/page_types.py. */\n"
_PLAIN = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "null": "null",
}


def types() -> str:
    """Return the types of all schemas of the API, as TypeScript."""
    schemas = _description()["components"]["schemas"]
    wanted = {name: schema for name, schema in schemas.items() if "ValidationError" not in name}
    made = [_declaration(name, schema) for name, schema in sorted(wanted.items())]
    steps = sorted(name for name in wanted if name.endswith("Step"))
    made.append("export type Step =\n" + "\n".join(f"  | {name}" for name in steps) + ";\n")
    return _HEAD + "\n" + "\n".join(made)


def _description() -> dict[str, Any]:
    from rote.web.server.app import openapi_document  # noqa: PLC0415 - only this script needs the server

    return openapi_document()


def _declaration(name: str, schema: dict[str, Any]) -> str:
    about = schema.get("description", "").strip()
    said = f"/** {' '.join(about.split())} */\n" if about else ""
    if schema.get("type") != "object":
        return f"{said}export type {name} = {_type(schema)};\n"
    required = set(schema.get("required", ()))
    rows = []
    for field, of in schema.get("properties", {}).items():
        rows.append(f"  {field}{'' if field in required else '?'}: {_type(of)};")
    return f"{said}export interface {name} {{\n" + "".join(f"{row}\n" for row in rows) + "}\n"


def _type(schema: dict[str, Any]) -> str:
    """Return the TypeScript of one schema."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    if "const" in schema:
        return _literal(schema["const"])
    if "enum" in schema:
        return " | ".join(_literal(value) for value in schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(_type(each) for each in schema[several]))
    if "allOf" in schema:
        return " & ".join(_type(each) for each in schema["allOf"])
    return _shape(schema)


def _shape(schema: dict[str, Any]) -> str:
    kind = schema.get("type")
    if kind == "array" and "prefixItems" in schema:
        return f"[{', '.join(_type(each) for each in schema['prefixItems'])}]"
    if kind == "array":
        inner = _type(schema.get("items", {}))
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if kind == "object":
        more = schema.get("additionalProperties")
        return f"Record<string, {_type(more) if isinstance(more, dict) else 'unknown'}>"
    return _PLAIN.get(str(kind), "unknown")


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def main() -> int:
    """Write the file, or with --check say whether it is stale."""
    wanted = types()
    if "--check" in sys.argv[1:]:
        if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == wanted:
            return 0
        print(f"{TARGET.name} is stale: run python scripts/generate/page_types.py", file=sys.stderr)
        return 1
    TARGET.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
