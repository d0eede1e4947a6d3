"""OSC 1.0 messages: an address and arguments, as lighting and sound desks send them."""

import math
import struct
from typing import NamedTuple

from rote.errors import DecodeError

MAX_BYTES = 8192
_BUNDLE = b"#bundle\0"
_MAX_DEPTH = 4
_MAX_F32 = 3.4028234e38


class OscMessage(NamedTuple):
    """One message."""

    address: str
    args: tuple[int | float | str | bool | None, ...] = ()


def encode(message: OscMessage) -> bytes:
    """Return the datagram of a message; a number that 32 bits cannot hold gets 64."""
    tags, data = ",", b""
    for value in message.args:
        if isinstance(value, bool):
            tags += "T" if value else "F"
        elif value is None:
            tags += "N"
        elif isinstance(value, int) and -(2**31) <= value < 2**31:
            tags, data = tags + "i", data + struct.pack(">i", value)
        elif isinstance(value, int | float):
            tag = "f" if abs(value) <= _MAX_F32 or not math.isfinite(value) else "d"
            tags, data = tags + tag, data + struct.pack(_SIZES[tag], float(value))
        else:
            tags, data = tags + "s", data + _padded(value.encode())
    return _padded(message.address.encode()) + _padded(tags.encode()) + data


def decode(data: bytes) -> list[OscMessage]:
    """Return the messages of a datagram: one, or those of a bundle, whose time is ignored.

    Raises `DecodeError` for anything else.
    """
    return _decode(data, 0)


def _decode(data: bytes, depth: int) -> list[OscMessage]:
    if len(data) > MAX_BYTES or depth > _MAX_DEPTH:
        raise DecodeError("an OSC message that is too large")
    if not data.startswith(_BUNDLE):
        return [_message(data)]
    found, place = [], len(_BUNDLE) + 8
    while place < len(data):
        if place + 4 > len(data):
            raise DecodeError("an OSC bundle that ends early")
        (size,) = struct.unpack_from(">I", data, place)
        part = data[place + 4 : place + 4 + size]
        if len(part) < size or not size:
            raise DecodeError("an OSC bundle that ends early")
        found += _decode(part, depth + 1)
        place += 4 + size
    return found


def _message(data: bytes) -> OscMessage:
    address, place = _text(data, 0)
    if not address.startswith("/"):
        raise DecodeError("an OSC address that does not begin with /")
    if place >= len(data):
        return OscMessage(address)  # older programs send no type tags
    tags, place = _text(data, place)
    if not tags.startswith(","):
        raise DecodeError("an OSC message without type tags")
    args: list[int | float | str | bool | None] = []
    for tag in tags[1:]:
        value, place = _argument(tag, data, place)
        args.append(value)
    return OscMessage(address, tuple(args))


_SIZES = {"i": ">i", "f": ">f", "h": ">q", "d": ">d"}
_CONSTANTS: dict[str, bool | None] = {"T": True, "F": False, "N": None, "I": None}


def _argument(tag: str, data: bytes, place: int) -> tuple[int | float | str | bool | None, int]:
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], place
    if tag in ("s", "S"):
        return _text(data, place)
    layout = _SIZES.get(tag)
    if layout is None:
        raise DecodeError(f"an OSC argument of the type {tag!r} is not understood")
    size = struct.calcsize(layout)
    if place + size > len(data):
        raise DecodeError("an OSC message that ends early")
    (value,) = struct.unpack_from(layout, data, place)
    return value, place + size


def _text(data: bytes, place: int) -> tuple[str, int]:
    end = data.find(b"\0", place)
    if end < 0:
        raise DecodeError("an OSC text without an end")
    try:
        text = data[place:end].decode()
    except UnicodeDecodeError:
        raise DecodeError("an OSC text that is none") from None
    return text, end + 4 - (end - place) % 4


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (4 - len(data) % 4)
