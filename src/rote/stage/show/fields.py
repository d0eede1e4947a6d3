"""Reads and checks the fields of a file's objects, and describes them as a JSON Schema."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rote.errors import BadRequestError
from rote.motion.track import did_you_mean

MAX_TEXT = 500
_UNPRINTABLE = frozenset(chr(code) for code in (*range(32), 127, *range(0x202A, 0x202F)))


class FieldKind(StrEnum):
    """The kinds of values."""

    TEXT = "text"
    NUMBER = "number"
    COUNT = "count"
    FLAG = "flag"
    COLOUR = "colour"
    """Red, green and blue, 0 to 255 each."""
    VALUES = "values"
    """A list of numbers and texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of an object."""

    name: str
    kind: FieldKind
    help: str
    required: bool = False
    default: Any = None
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()

    def read(self, value: object, location: str) -> Any:
        """Return the value, or raise `BadRequestError` with the location and the problem."""
        location = f"{location}, {self.name!r}"
        if self.kind is FieldKind.TEXT:
            return self._read_text(value, location)
        if self.kind is FieldKind.FLAG:
            if not isinstance(value, bool):
                raise BadRequestError(f"{location}: expected true or false, not {value!r:.60}")
            return value
        if self.kind is FieldKind.COLOUR:
            return _read_colour(value, location)
        if self.kind is FieldKind.VALUES:
            return _read_values(value, location)
        return self._read_number(value, location)

    def _read_text(self, value: object, location: str) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > MAX_TEXT:
            raise BadRequestError(f"{location}: expected text of 1 to {MAX_TEXT} characters")
        if not _UNPRINTABLE.isdisjoint(value):
            raise BadRequestError(f"{location}: {value!r:.60} has invisible characters")
        if self.choices and value not in self.choices:
            raise BadRequestError(
                f"{location}: {value!r:.60} is not known", did_you_mean(value, self.choices)
            )
        return value

    def _read_number(self, value: object, location: str) -> float | int:
        is_whole = self.kind is FieldKind.COUNT
        has_type = isinstance(value, int) if is_whole else isinstance(value, int | float)
        if isinstance(value, bool) or not has_type or not _is_finite(value):
            what = "a whole number" if is_whole else "a number"
            raise BadRequestError(f"{location}: expected {what}, not {value!r:.60}")
        assert isinstance(value, int | float)
        low, high = self.low, self.high
        if (low is not None and value < low) or (high is not None and value > high):
            low_text = "" if low is None else f"{low:g}"
            high_text = "" if high is None else f"{high:g}"
            raise BadRequestError(f"{location}: {value:g} is outside of {low_text} to {high_text}")
        return value if is_whole else float(value)

    def schema(self) -> dict[str, Any]:
        """Return the field as a JSON Schema."""
        schema = dict(_SCHEMAS[self.kind])
        if self.low is not None:
            schema["minimum"] = self.low
        if self.high is not None:
            schema["maximum"] = self.high
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.default is not None:
            schema["default"] = self.default
        return {"description": self.help, **schema}


_SCHEMAS: Mapping[FieldKind, Mapping[str, Any]] = {
    FieldKind.TEXT: {"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
    FieldKind.NUMBER: {"type": "number"},
    FieldKind.COUNT: {"type": "integer"},
    FieldKind.FLAG: {"type": "boolean"},
    FieldKind.COLOUR: {
        "type": "array",
        "items": {"type": "integer", "minimum": 0, "maximum": 255},
        "minItems": 3,
        "maxItems": 3,
    },
    FieldKind.VALUES: {
        "type": "array",
        "items": {"type": ["number", "string"], "maxLength": MAX_TEXT},
        "maxItems": 16,
    },
}


def _is_finite(value: object) -> bool:
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:
        return False


def _read_colour(value: object, location: str) -> tuple[int, int, int]:
    if isinstance(value, list) and len(value) == 3:
        parts = [part for part in value if type(part) is int and 0 <= part <= 255]
        if len(parts) == 3:
            return parts[0], parts[1], parts[2]
    raise BadRequestError(f"{location}: expected [red, green, blue] of 0 to 255, not {value!r:.60}")


def _read_values(value: object, location: str) -> tuple[float | int | str, ...]:
    if not isinstance(value, list) or len(value) > 16:
        raise BadRequestError(f"{location}: expected a list of at most 16 numbers and texts")
    for each in value:
        is_text = isinstance(each, str) and len(each) <= MAX_TEXT
        if isinstance(each, bool) or not (is_text or _is_finite(each)):
            raise BadRequestError(f"{location}: {each!r:.60} is neither a number nor a text")
    return tuple(value)


def read_object(data: object, fields: Sequence[Field], location: str) -> dict[str, Any]:
    """Return the values of an object's fields, defaults included.

    Raises `BadRequestError` for a field that is missing, unknown or wrong.
    """
    if not isinstance(data, dict):
        raise BadRequestError(f"{location}: expected an object {{...}}, not {data!r:.60}")
    names = [field.name for field in fields]
    for name in data:
        if name not in names:
            raise BadRequestError(
                f"{location}: there is no field {name!r:.60}", did_you_mean(str(name), names)
            )
    values: dict[str, Any] = {}
    for field in fields:
        if field.name in data:
            values[field.name] = field.read(data[field.name], location)
        elif field.required:
            raise BadRequestError(f"{location}: {field.name!r} is missing", f"It is {field.help}.")
        else:
            values[field.name] = field.default
    return values


def object_schema(fields: Sequence[Field], **more: Any) -> dict[str, Any]:
    """Return the JSON Schema of an object with these fields; `more` are further properties."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [field.name for field in fields if field.required],
        "properties": {**{field.name: field.schema() for field in fields}, **more},
    }
