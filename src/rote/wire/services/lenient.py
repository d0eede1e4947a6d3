"""Reads values that robots send in other forms than documented, as far as they are unambiguous.

Firmware versions write one number as 500, 500.0 or "500", and leave out what others send. None
stands for what is missing or cannot be read.
"""

import json
import math

_SHOWN = 40


def number(value: object) -> float | None:
    """Return a finite number, also from a text that is one; None for anything else."""
    if isinstance(value, str):
        value = _from_text(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        read = float(value)
    except OverflowError:
        return None
    return read if math.isfinite(read) else None


def whole(value: object) -> int | None:
    """Return a whole number of 64 bits, also from 99.0 or "99"; None for anything else."""
    if isinstance(value, str):
        value = _from_text(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        return None
    return value


def seen(value: object) -> str:
    """Return an unexpected value as short JSON, for an error message."""
    try:
        shown = json.dumps(value, default=repr)
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


def _from_text(text: str) -> object:
    """Return the number in a short text, a whole one as int; None if it is none."""
    if len(text) > _SHOWN:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
