"""Reads values that robots send in undocumented but unambiguous forms.

Firmware versions write one number as 500, 500.0 or "500", and leave out what others send. A value
that is missing or cannot be read becomes None.
"""

import json
import math

_MAX_CHARACTERS = 40


def read_number(value: object) -> float | None:
    """Return a finite number, also from a text; None for anything else."""
    if isinstance(value, str):
        value = _parse_number(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        parsed = float(value)
    except OverflowError:
        return None
    return parsed if math.isfinite(parsed) else None


def read_whole(value: object) -> int | None:
    """Return a whole number of 64 bits, also from 99.0 or "99"; None for anything else."""
    if isinstance(value, str):
        value = _parse_number(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        return None
    return value


def describe_value(value: object) -> str:
    """Return an unexpected value as short JSON, for an error message."""
    try:
        shown = json.dumps(value, default=repr)
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"
    return shown if len(shown) <= _MAX_CHARACTERS else f"{shown[:_MAX_CHARACTERS]}..."


def _parse_number(text: str) -> object:
    """Return the int or float that a short text holds; None if it is not a number."""
    if len(text) > _MAX_CHARACTERS:
        return None
    for parse in (int, float):
        try:
            return parse(text)
        except ValueError:
            continue
    return None
