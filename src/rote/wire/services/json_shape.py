"""The shape of JSON that a robot sends, learned from samples, and values brought into a shape.

A shape is JSON itself, so that it can be kept in a report:

    {"kinds": ["float", "null"]}                      which kinds were seen here
    {"kinds": ["object"], "fields": {name: shape}}    `absent` among a field's kinds: not always
    {"kinds": ["list"], "of": shape, "count": 35, "nulls": [0, 5]}

`count` is present if all samples had equally many, `nulls` are the indices that were always null.
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


def kind_of(value: object) -> str:
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


def shape_of(samples: Iterable[object], depth: int = 0) -> Shape:
    """Return the shape that all samples have."""
    seen = list(samples)
    shape: Shape = {"kinds": sorted({kind_of(value) for value in seen})}
    if depth >= MAX_DEPTH:
        return shape
    objects = [value for value in seen if isinstance(value, dict)]
    lists = [value for value in seen if isinstance(value, list)]
    if objects:
        names = sorted({str(name) for value in objects for name in value})[:MAX_FIELDS]
        shape["fields"] = {name: _field_shape(name, objects, depth) for name in names}
    if lists:
        elements = [element for value in lists for element in value]
        if elements:
            shape["of"] = shape_of(elements, depth + 1)
        if len({len(value) for value in lists}) == 1:
            shape["count"] = len(lists[0])
            nulls = [
                place for place in range(len(lists[0])) if all(v[place] is None for v in lists)
            ]
            if nulls:
                shape["nulls"] = nulls
    return shape


def _field_shape(name: str, objects: list[dict[str, object]], depth: int) -> Shape:
    there = [value[name] for value in objects if name in value]
    shape = shape_of(there, depth + 1)
    if len(there) < len(objects):
        shape["kinds"] = sorted({*shape["kinds"], ABSENT})
    return shape


def fit_to_shape(value: object, shape: Shape) -> object:
    """Return a value brought into a shape: kinds changed, fields left out and added."""
    kinds = [kind for kind in shape.get("kinds", ()) if kind != ABSENT]
    kind = kind_of(value)
    if not kinds:
        return value
    if kind not in kinds:
        value = _as_kind(value, _nearest_kind(kind, kinds))
        kind = kind_of(value)
    if isinstance(value, dict) and "fields" in shape:
        return _fit_object(value, shape["fields"])
    if isinstance(value, list):
        return _fit_list(value, shape)
    return value


def _fit_object(value: dict[str, object], fields: dict[str, Shape]) -> dict[str, object]:
    result: dict[str, object] = {}
    for name, shape in fields.items():
        if name in value:
            result[name] = fit_to_shape(value[name], shape)
        elif ABSENT not in shape["kinds"]:
            result[name] = _default_value(shape)
    return result


def _fit_list(value: list[object], shape: Shape) -> list[object]:
    count = shape.get("count", len(value))
    filled = list(value[:count])
    while len(filled) < count:
        filled.append(_default_value(shape["of"]) if "of" in shape else None)
    nulls = set(shape.get("nulls", ()))
    inner = shape.get("of")
    if inner is not None and nulls:
        inner = _without_null(inner)
    return [
        None if place in nulls else element if inner is None else fit_to_shape(element, inner)
        for place, element in enumerate(filled)
    ]


def _without_null(shape: Shape) -> Shape:
    """Return a shape without null if other kinds were seen too: `nulls` holds its indices."""
    others = [kind for kind in shape["kinds"] if kind != "null"]
    return {**shape, "kinds": others} if others else shape


def _default_value(shape: Shape) -> object:
    kinds = [kind for kind in shape["kinds"] if kind != ABSENT]
    if not kinds:
        return None
    return fit_to_shape(_DEFAULTS[kinds[0]], {**shape, "kinds": kinds})


_NEAR = {
    "int": ("float", "text", "bool", "null", "empty"),
    "float": ("int", "text", "null", "empty"),
    "text": ("object", "list", "int", "float", "null", "empty"),
    "empty": ("text", "null", "object", "list"),
    "null": ("empty", "text", "object", "list", "int", "float", "bool"),
    "bool": ("int", "text", "null"),
    "list": ("text", "int", "null", "object"),
    "object": ("text", "null", "list"),
}


def _nearest_kind(kind: str, kinds: list[str]) -> str:
    return next((other for other in _NEAR[kind] if other in kinds), kinds[0])


def _as_kind(value: object, kind: str) -> object:
    """Return a value as another kind, as far as it has one."""
    if kind == "text":
        return value if isinstance(value, str) else json.dumps(value)
    if kind in ("object", "list") and isinstance(value, str) and value:
        return _parse_or_default(value, kind)
    if kind == "int" and isinstance(value, list):
        return next((one for one in value if isinstance(one, int)), 0)
    if kind in ("int", "float") and isinstance(value, (int, float, str)):
        return _as_number(value, kind)
    return bool(value) if kind == "bool" else _DEFAULTS[kind]


def _parse_or_default(text: str, kind: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return _DEFAULTS[kind]


def _as_number(value: float | str, kind: str) -> object:
    try:
        number = float(value)
    except ValueError:
        return _DEFAULTS[kind]
    return int(number) if kind == "int" else number
