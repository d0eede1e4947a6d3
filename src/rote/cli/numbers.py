"""Numbers from the command line, as people write them."""

from rote.errors import BadRequestError


def whole_number(text: str) -> int:
    """Return a whole number: decimal, or with 0x, 0o or 0b before it."""
    try:
        return int(text, 0)
    except ValueError:
        raise BadRequestError(f"{text!r} is not a whole number", "Write 26 or 0x1a.") from None


def floats(text: str) -> list[float]:
    """Return numbers with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise BadRequestError(
            f"{text!r} is not a comma-separated list of numbers", "Write it like 0.5,-1,2."
        ) from None
