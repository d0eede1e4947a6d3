"""Options for simulating a bad network."""

import re

from rote.errors import BadRequestError
from rote.transport.impair import Impairment

_DURATION = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*(ms|s|)\s*")


def seconds(text: str) -> float:
    """Parse `50ms`, `3.2s` or a plain number of seconds."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise BadRequestError(f"{text!r} is not a duration", "Write it like 50ms or 3.2s.")
    return float(match[1]) / (1000.0 if match[2] == "ms" else 1.0)


def describe(impairment: Impairment) -> str:
    """Describe an impairment; empty if there is none."""
    parts = [
        f"{100 * value:g} % {effect}"
        for value, effect in (
            (impairment.loss, "lost"),
            (impairment.duplicate, "doubled"),
            (impairment.reorder, "overtaken"),
            (impairment.corrupt, "damaged"),
        )
        if value
    ]
    if impairment.delay_s:
        parts.append(f"{1000 * impairment.delay_s:g} ms late")
    if impairment.cut_after_s is not None:
        parts.append(f"cut off after {impairment.cut_after_s:g} s")
    return ", ".join(parts)
