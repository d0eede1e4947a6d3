"""Bytes from hexadecimal digits, as people paste them."""

from rote.errors import BadRequestError

_PUNCTUATION = str.maketrans("", "", " \t\r\n:,_-")


def hex_bytes(text: str) -> bytes:
    """Return the bytes that `text` spells; spaces, colons, commas and a leading 0x are left out."""
    digits = text.translate(_PUNCTUATION).lower().removeprefix("0x")
    wrong = next((digit for digit in digits if digit not in "0123456789abcdef"), None)
    if wrong is not None:
        raise BadRequestError(f"{wrong!r} is not a hexadecimal digit")
    if len(digits) % 2 or not digits:
        raise BadRequestError(
            f"{len(digits)} hexadecimal digits do not make whole bytes",
            "Give two digits for each byte.",
        )
    return bytes.fromhex(digits)
