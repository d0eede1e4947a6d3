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
            tags, data = tags + "s", data + _pad_to_four(value.encode())
    return _pad_to_four(message.address.encode()) + _pad_to_four(tags.encode()) + data


def decode(data: bytes) -> list[OscMessage]:
    """Return the messages of a datagram: one, or those of a bundle, whose time is ignored.

    Raises `DecodeError` for anything else.
    """
    return _decode_packet(data, 0)


def _decode_packet(data: bytes, depth: int) -> list[OscMessage]:
    if len(data) > MAX_BYTES or depth > _MAX_DEPTH:
        raise DecodeError("an OSC message that is too large")
    if not data.startswith(_BUNDLE):
        return [_read_message(data)]
    found, offset = [], len(_BUNDLE) + 8
    while offset < len(data):
        if offset + 4 > len(data):
            raise DecodeError("an OSC bundle that ends early")
        (size,) = struct.unpack_from(">I", data, offset)
        part = data[offset + 4 : offset + 4 + size]
        if len(part) < size or not size:
            raise DecodeError("an OSC bundle that ends early")
        found += _decode_packet(part, depth + 1)
        offset += 4 + size
    return found


def _read_message(data: bytes) -> OscMessage:
    address, offset = _read_text(data, 0)
    if not address.startswith("/"):
        raise DecodeError("an OSC address that does not begin with /")
    if offset >= len(data):
        return OscMessage(address)  # older programs send no type tags
    tags, offset = _read_text(data, offset)
    if not tags.startswith(","):
        raise DecodeError("an OSC message without type tags")
    args: list[int | float | str | bool | None] = []
    for tag in tags[1:]:
        value, offset = _read_argument(tag, data, offset)
        args.append(value)
    return OscMessage(address, tuple(args))


_SIZES = {"i": ">i", "f": ">f", "h": ">q", "d": ">d"}
_CONSTANTS: dict[str, bool | None] = {"T": True, "F": False, "N": None, "I": None}


def _read_argument(
    tag: str, data: bytes, offset: int
) -> tuple[int | float | str | bool | None, int]:
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], offset
    if tag in ("s", "S"):
        return _read_text(data, offset)
    layout = _SIZES.get(tag)
    if layout is None:
        raise DecodeError(f"an OSC argument of the type {tag!r} is not understood")
    size = struct.calcsize(layout)
    if offset + size > len(data):
        raise DecodeError("an OSC message that ends early")
    (value,) = struct.unpack_from(layout, data, offset)
    return value, offset + size


def _read_text(data: bytes, offset: int) -> tuple[str, int]:
    end = data.find(b"\0", offset)
    if end < 0:
        raise DecodeError("an OSC text without an end")
    try:
        text = data[offset:end].decode()
    except UnicodeDecodeError:
        raise DecodeError("an OSC text that is none") from None
    return text, end + 4 - (end - offset) % 4


def _pad_to_four(data: bytes) -> bytes:
    return data + b"\0" * (4 - len(data) % 4)
