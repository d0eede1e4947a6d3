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
    """Return the datagram of a message; a number that does not fit 32 bits is written in 64."""
    tags, data = ",", b""
    for value in message.args:
        if isinstance(value, bool):
            tags += "T" if value else "F"
        elif value is None:
            tags += "N"
        elif isinstance(value, str):
            tags += "s"
            data += _pad_to_four(value.encode())
        else:
            tag = _choose_number_tag(value)
            tags += tag
            data += struct.pack(_NUMBER_CODES[tag], value)
    return _pad_to_four(message.address.encode()) + _pad_to_four(tags.encode()) + data


def _choose_number_tag(value: float) -> str:
    """Return the type tag of a number: 32 bits if it fits, otherwise 64; i and h are integers."""
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return "i"
        if -(2**63) <= value < 2**63:
            return "h"
    return "f" if abs(value) <= _MAX_F32 or not math.isfinite(value) else "d"


def decode(data: bytes) -> list[OscMessage]:
    """Return the messages of a datagram: one, or those of a bundle, whose time is ignored.

    Raises `DecodeError` for anything else.
    """
    return _decode_packet(data, 0)


def _decode_packet(data: bytes, depth: int) -> list[OscMessage]:
    """Return the messages of a datagram or of one element of a bundle, which may be a bundle."""
    if len(data) > MAX_BYTES or depth > _MAX_DEPTH:
        raise DecodeError("the OSC message is too large or nested too deeply")
    if not data.startswith(_BUNDLE):
        return [_read_message(data)]
    messages, offset = [], len(_BUNDLE) + 8  # after the bundle's time
    while offset < len(data):
        if offset + 4 > len(data):
            raise DecodeError("the OSC bundle ends too early")
        (size,) = struct.unpack_from(">I", data, offset)
        element = data[offset + 4 : offset + 4 + size]
        if len(element) < size or not size:
            raise DecodeError("the OSC bundle ends too early")
        messages += _decode_packet(element, depth + 1)
        offset += 4 + size
    return messages


def _read_message(data: bytes) -> OscMessage:
    address, offset = _read_text(data, 0)
    if not address.startswith("/"):
        raise DecodeError("the OSC address does not begin with /")
    if offset >= len(data):
        return OscMessage(address)  # older programs send no type tags
    tags, offset = _read_text(data, offset)
    if not tags.startswith(","):
        raise DecodeError("the OSC message has no type tags")
    args: list[int | float | str | bool | None] = []
    for tag in tags[1:]:
        value, offset = _read_argument(tag, data, offset)
        args.append(value)
    return OscMessage(address, tuple(args))


_NUMBER_CODES = {"i": ">i", "f": ">f", "h": ">q", "d": ">d"}
_CONSTANTS: dict[str, bool | None] = {"T": True, "F": False, "N": None, "I": None}


def _read_argument(
    tag: str, data: bytes, offset: int
) -> tuple[int | float | str | bool | None, int]:
    """Return the argument at `offset`, and the offset after it."""
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], offset
    if tag in ("s", "S"):
        return _read_text(data, offset)
    code = _NUMBER_CODES.get(tag)
    if code is None:
        raise DecodeError(f"OSC arguments of type {tag!r} are not supported")
    size = struct.calcsize(code)
    if offset + size > len(data):
        raise DecodeError("the OSC message ends too early")
    (value,) = struct.unpack_from(code, data, offset)
    return value, offset + size


def _read_text(data: bytes, offset: int) -> tuple[str, int]:
    """Return the text at `offset`, and the offset after its padding."""
    end = data.find(b"\0", offset)
    if end < 0:
        raise DecodeError("an OSC text is not terminated")
    try:
        text = data[offset:end].decode()
    except UnicodeDecodeError:
        raise DecodeError("an OSC text is not UTF-8") from None
    return text, end + 4 - (end - offset) % 4  # one to four NUL bytes end a text


def _pad_to_four(data: bytes) -> bytes:
    """Append one to four NUL bytes, to a multiple of four."""
    return data + b"\0" * (4 - len(data) % 4)
