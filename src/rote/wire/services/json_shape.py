"""The shape of the JSON that a robot sends, learned from samples, and values fitted to a shape.

A shape is JSON itself, so that it can be kept in a report:

    {"kinds": ["float", "null"]}                      which kinds were seen here
    {"kinds": ["object"], "fields": {name: shape}}    kind `absent`: the field is not always there
    {"kinds": ["list"], "of": shape, "count": 35, "nulls": [0, 5]}

`count` is present if all samples have the same length; `nulls` lists indices that are always null.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

Shape = dict[str, Any]
ABSENT = "absent"
MAX_FIELDS, MAX_DEPTH = 200, 12
_DEFAULTS: dict[str, Any] = {
    "null": None, "bool": False, "int": 0, "float": 0.0, "text": "", "empty": "", "list": [],
    "object": {},
}  # fmt: skip


def get_kind(value: object) -> str:
    """Return the kind of a JSON value; an empty text is a kind of its own."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return "text" if value else "empty"
    return "list" if isinstance(value, Sequence) else "object"


def learn_shape(samples: Iterable[object], depth: int = 0) -> Shape:
    """Return a shape that fits all samples; `depth` is their depth in the whole document."""
    values = list(samples)
    shape: Shape = {"kinds": sorted({get_kind(value) for value in values})}
    if depth >= MAX_DEPTH:
        return shape
    objects = [value for value in values if isinstance(value, dict)]
    lists = [value for value in values if isinstance(value, list)]
    if objects:
        names = sorted({str(name) for value in objects for name in value})[:MAX_FIELDS]
        shape["fields"] = {name: _learn_field_shape(name, objects, depth) for name in names}
    if lists:
        shape.update(_learn_list_shape(lists, depth))
    return shape


def _learn_list_shape(lists: list[list[object]], depth: int) -> Shape:
    """Return the entries of a shape that describe lists: `of`, `count` and `nulls`."""
    shape: Shape = {}
    if elements := [element for value in lists for element in value]:
        shape["of"] = learn_shape(elements, depth + 1)
    if len({len(value) for value in lists}) == 1:
        shape["count"] = len(lists[0])
        by_index = enumerate(zip(*lists, strict=True))
        nulls = [index for index, values in by_index if all(value is None for value in values)]
        if nulls:
            shape["nulls"] = nulls
    return shape


def _learn_field_shape(name: str, objects: list[dict[str, object]], depth: int) -> Shape:
    """Return the shape of one field; its kinds include `ABSENT` if an object lacks it."""
    present = [value[name] for value in objects if name in value]
    shape = learn_shape(present, depth + 1)
    if len(present) < len(objects):
        shape["kinds"] = sorted({*shape["kinds"], ABSENT})
    return shape


def fit_to_shape(value: object, shape: Shape) -> object:
    """Return `value` converted to a kind of the shape, with the shape's fields or elements."""
    kinds = [kind for kind in shape.get("kinds", ()) if kind != ABSENT]
    kind = get_kind(value)
    if not kinds:
        return value
    if kind not in kinds:
        value = _convert_to_kind(value, _find_nearest_kind(kind, kinds))
        kind = get_kind(value)
    if isinstance(value, dict) and "fields" in shape:
        return _fit_object(value, shape["fields"])
    if isinstance(value, list):
        return _fit_list(value, shape)
    return value


def _fit_object(value: dict[str, object], fields: dict[str, Shape]) -> dict[str, object]:
    """Return an object with exactly the fields of a shape; missing ones get defaults."""
    result: dict[str, object] = {}
    for name, shape in fields.items():
        if name in value:
            result[name] = fit_to_shape(value[name], shape)
        elif ABSENT not in shape["kinds"]:
            result[name] = _make_default_value(shape)
    return result


def _fit_list(value: list[object], shape: Shape) -> list[object]:
    """Return a list of the shape's length, with nulls at its indices and fitted elements."""
    count = shape.get("count", len(value))
    element_shape = shape.get("of")
    filled = list(value[:count])
    while len(filled) < count:
        filled.append(None if element_shape is None else _make_default_value(element_shape))
    nulls = set(shape.get("nulls", ()))
    if element_shape is not None:
        if nulls:
            element_shape = _remove_null_kind(element_shape)
        filled = [fit_to_shape(element, element_shape) for element in filled]
    return [None if index in nulls else element for index, element in enumerate(filled)]


def _remove_null_kind(shape: Shape) -> Shape:
    """Return a shape without the kind null if it has others: `nulls` already lists the indices."""
    others = [kind for kind in shape["kinds"] if kind != "null"]
    return {**shape, "kinds": others} if others else shape


def _make_default_value(shape: Shape) -> object:
    """Return the default of the first kind of a shape, with all its fields or elements."""
    kinds = [kind for kind in shape["kinds"] if kind != ABSENT]
    if not kinds:
        return None
    return fit_to_shape(_DEFAULTS[kinds[0]], {**shape, "kinds": kinds})


_CONVERSIONS = {  # for each kind, the kinds to convert it to, best first
    "int": ("float", "text", "bool", "null", "empty"),
    "float": ("int", "text", "null", "empty"),
    "text": ("object", "list", "int", "float", "null", "empty"),
    "empty": ("text", "null", "object", "list"),
    "null": ("empty", "text", "object", "list", "int", "float", "bool"),
    "bool": ("int", "text", "null"),
    "list": ("text", "int", "null", "object"),
    "object": ("text", "null", "list"),
}


def _find_nearest_kind(kind: str, kinds: list[str]) -> str:
    """Return which of `kinds` a value of `kind` is best converted to."""
    return next((other for other in _CONVERSIONS[kind] if other in kinds), kinds[0])


def _convert_to_kind(value: object, kind: str) -> object:
    """Return a value converted to another kind; the kind's default if that is impossible."""
    if kind == "text":
        return value if isinstance(value, str) else json.dumps(value)
    if kind in ("object", "list") and isinstance(value, str) and value:
        return _parse_or_default(value, kind)
    if kind == "int" and isinstance(value, list):  # a list of one number becomes the number
        return next((element for element in value if isinstance(element, int)), 0)
    if kind in ("int", "float") and isinstance(value, (int, float, str)):
        return _convert_to_number(value, kind)
    return bool(value) if kind == "bool" else _DEFAULTS[kind]


def _parse_or_default(text: str, kind: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return _DEFAULTS[kind]


def _convert_to_number(value: float | str, kind: str) -> object:
    try:
        number = float(value)
    except ValueError:
        return _DEFAULTS[kind]
    return int(number) if kind == "int" else number
