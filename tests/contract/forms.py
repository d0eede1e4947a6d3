"""The form of JSON documents, without what differs from run to run."""

import json
import re
from typing import Any

_VOLATILE = (
    (re.compile(r"^\d{4}-\d\d-\d\d(T.*)?$"), "<time>"),
    (re.compile(r"^[0-9a-f]{8}-[0-9a-f-]{27}$"), "<uuid>"),
    (re.compile(r"^([0-9a-fA-F]{2}[ :]?){24,}$"), "<hex>"),
    (re.compile(r"(?<=[0-9a-z\]]):\d{4,5}\b"), ":<port>"),
)


def normalised(value: Any, names: dict[str, str], *, exact: bool) -> Any:
    """Return a document whose floats, prose, times, ports and paths are replaced by placeholders.

    `names` maps texts such as folders to their placeholders. Integers stay if `exact`. A list has
    one object of each form, and other values once.
    """
    if isinstance(value, dict):
        return {key: normalised(each, names, exact=exact) for key, each in value.items()}
    if isinstance(value, list):
        items = [normalised(each, names, exact=exact) for each in value]
        return _one_of_each(items)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return "<float>"
    if isinstance(value, int):
        return value if exact else "<int>"
    return _normalised_text(str(value), names)


def _normalised_text(text: str, names: dict[str, str]) -> str:
    for name, placeholder in names.items():
        text = text.replace(name, placeholder)
    if re.search(r"\s", text):
        return "<text>"  # prose, which may be reworded
    for pattern, placeholder in _VOLATILE:
        text = pattern.sub(placeholder, text)
    return text


def shape(value: Any) -> Any:
    """Return the keys of a document and the types of its values."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return _one_of_each([shape(each) for each in value])
    return type(value).__name__


def _one_of_each(items: list[Any]) -> list[Any]:
    found: dict[str, Any] = {}
    for each in items:
        form = shape(each) if isinstance(each, dict | list) else each
        found.setdefault(json.dumps(form), each)
    return list(found.values())


def text_of(document: Any, depth: int, margin: str = "") -> str:
    """Return a document as JSON text, with a line for each value down to `depth`."""
    if not depth or not isinstance(document, dict | list) or not document:
        return json.dumps(document, ensure_ascii=False)
    inner = margin + " "
    if isinstance(document, dict):
        rows = [
            f"{inner}{json.dumps(key)}: {text_of(each, depth - 1, inner)}"
            for key, each in document.items()
        ]
        return "{\n" + ",\n".join(rows) + f"\n{margin}}}"
    rows = [inner + text_of(each, depth - 1, inner) for each in document]
    return "[\n" + ",\n".join(rows) + f"\n{margin}]"
