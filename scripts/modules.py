"""Write the list of all modules into docs/architecture.md, from their own first lines."""

import ast
from pathlib import Path

from generated_part import renew

ROOT = Path(__file__).parents[1]
SOURCE, PAGE = ROOT / "src" / "rote", ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- modules: begin -->\n", "<!-- modules: end -->\n"


def modules() -> list[tuple[str, str]]:
    """Return each module's path and the first sentence of what it says of itself."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if path.name != "__init__.py" or path.read_text(encoding="utf-8").count("\n") > 5:
            found.append((path.relative_to(SOURCE).as_posix(), said.splitlines()[0]))
    return found


def listed() -> str:
    """Return the list as it stands in the page: a table for each room."""
    lines, room = [], None
    for path, said in modules():
        here = path.rpartition("/")[0]
        if here != room:
            lines += [
                "",
                f"### {here or 'the root'}",
                "",
                "| module | what it is for |",
                "|---|---|",
            ]
            room = here
        lines.append(f"| `{path.rpartition('/')[2]}` | {said.replace('|', chr(92) + '|')} |")
    return "\n".join(lines[1:]) + "\n"


def main() -> None:
    """Renew the list."""
    renew(PAGE, BEGIN, END, listed())


if __name__ == "__main__":
    main()
