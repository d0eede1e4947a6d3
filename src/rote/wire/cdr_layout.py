"""Plain CDR by layouts: the encoding of DDS and of ROS 2.

A layout is a row of codes: those of `struct` for numbers, `s` for a text, `y` for bytes, `[...]`
for a sequence. A message is a header of 4 bytes, then the values; each number is aligned to its
size, counted from after the header. A text, bytes and a sequence follow their length, a text ends
with a NUL. `decode` raises only `DecodeError`, for any input.
"""

import re
import struct
from collections.abc import Collection, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from rote.errors import BadRequestError, DecodeError, PayloadError, TruncatedError

HEADER = b"\x00\x01\x00\x00"
"""Plain CDR, little endian, as CycloneDDS writes types that are final."""
_Parts = tuple[Any, ...]
_BYTE_ORDERS = {HEADER[:2]: "<", b"\x00\x00": ">"}
_MAX_ITEMS = 200_000
_NUMBER_CODES = frozenset("?bBhHiIqQfd")
_CODE = re.compile(r"(\d*)([?bBhHiIqQfd])")
_TOKEN = re.compile(r"[sy\[\]]|(?:\d*[?bBhHiIqQfd]\s*)+")


@lru_cache(maxsize=1024)
def _compile_numbers(codes: str, start: int, byte_order: str) -> struct.Struct:
    """Return the struct of a row of numbers, with the padding that aligns each to its size.

    The row begins `start` bytes after a multiple of 8. `byte_order` is "<" or ">".
    """
    aligned, offset = byte_order, start
    for count, code in _CODE.findall(codes):
        size = struct.calcsize(f"<{code}")
        padding = -offset % size
        aligned += f"{padding}x{count}{code}"
        offset += padding + size * int(count or 1)
    return struct.Struct(aligned)


def format_record(fields: Mapping[str, str], used: Collection[str]) -> str:
    """Return the struct codes that read the `used` fields of a record and skip all others.

    `fields` are the codes of all fields, by name. The record must begin at a multiple of the size
    of its largest number.
    """
    codes, offset = "", 0
    for name, code in fields.items():
        size = _compile_numbers(code, offset % 8, "<").size  # with the padding before the field
        padding = size - struct.calcsize(f"<{code}")
        codes += f"{padding}x{code}" if name in used else f"{size}x"
        offset += size
    return codes


class CdrLayout:
    """Encodes and decodes one kind of message; `codes` describe it, as in `"2q i s y [f]"`.

    The codes are those of `struct` for numbers, `s` for a text, `y` for bytes, and `[...]` for a
    sequence. `text_errors` is the `errors` argument of `str.encode`.
    """

    def __init__(self, codes: str, *, text_errors: str = "strict") -> None:
        self._parts = _parse_codes(iter(_TOKEN.findall(codes)))
        self._text_errors = text_errors

    def encode(self, *values: Any) -> bytes:
        """Return a message; raises `BadRequestError` for a value that does not fit."""
        data = bytearray(HEADER)
        try:
            self._write_parts(self._parts, iter(values), data)
        except (struct.error, UnicodeEncodeError) as error:
            raise BadRequestError(f"CDR cannot encode this message: {error}") from None
        return bytes(data)

    def decode(self, data: bytes, *, strict: bool = False) -> tuple[Any, ...]:
        """Return the values of a message; `strict` requires little endian and a NUL after texts."""
        return self.decode_prefix(data, strict=strict)[0]

    def decode_prefix(self, data: bytes, *, strict: bool = False) -> tuple[tuple[Any, ...], int]:
        """Return the values at the beginning of a message, and the offset at which they end."""
        check_header(data, strict=strict)
        reader = _CdrReader(data, strict=strict)
        return tuple(reader.read_values(self._parts)), reader.offset

    def _write_parts(self, parts: _Parts, values: Iterator[Any], data: bytearray) -> None:
        """Append the values of a layout's parts to `data`.

        A part is a tuple for a sequence, "s" for a text, "y" for bytes, or a row of number codes.
        """
        for part in parts:
            if isinstance(part, tuple):
                items = next(values)
                self._append_numbers(data, "I", len(items))
                if code := _find_item_code(part):
                    self._append_numbers(data, f"{len(items)}{code}" if items else "", *items)
                    continue
                for item in items:
                    # Items with a single value are given as that value, others as tuples.
                    self._write_parts(part, iter([item] if len(part) == 1 else item), data)
            elif part in "sy":
                raw = next(values)
                if part == "s":
                    raw = raw.encode("utf-8", self._text_errors) + b"\0"
                self._append_numbers(data, "I", len(raw))
                data += raw
            else:
                self._append_numbers(data, part, *islice(values, _count_values(part)))

    def _append_numbers(self, data: bytearray, codes: str, *values: Any) -> None:
        data += _compile_numbers(codes, (len(data) - len(HEADER)) % 8, "<").pack(*values)


class _CdrReader:
    """Reads the values of one message in their order."""

    def __init__(self, data: bytes, *, strict: bool) -> None:
        self._data, self._strict = data, strict
        self._byte_order = _BYTE_ORDERS[data[:2]]
        self.offset = len(HEADER)

    def read_values(self, parts: _Parts) -> Iterator[Any]:
        """Yield the values of a layout's parts.

        A part is a tuple for a sequence, "s" for a text, "y" for bytes, or a row of number codes.
        """
        for part in parts:
            if isinstance(part, tuple):
                yield self._read_sequence(part)
            elif part in "sy":
                (size,) = self._read_numbers("I")
                raw = self._take_bytes(size)
                yield raw if part == "y" else self._decode_text(raw)
            else:
                yield from self._read_numbers(part)

    def _read_sequence(self, item_parts: _Parts) -> tuple[Any, ...]:
        """Return the items of a sequence; raise `PayloadError` if they cannot fit the message."""
        (count,) = self._read_numbers("I")
        bytes_left = len(self._data) - self.offset
        if count > _MAX_ITEMS or count * _compute_min_size(item_parts) > bytes_left:
            raise PayloadError(
                f"a sequence states {count} items but only {bytes_left} bytes follow"
            )
        if code := _find_item_code(item_parts):
            return self._read_numbers(f"{count}{code}") if count else ()
        items = (tuple(self.read_values(item_parts)) for _ in range(count))
        return tuple(item[0] if len(item_parts) == 1 else item for item in items)

    def _read_numbers(self, codes: str) -> tuple[Any, ...]:
        layout = _compile_numbers(codes, (self.offset - len(HEADER)) % 8, self._byte_order)
        return layout.unpack(self._take_bytes(layout.size))

    def _take_bytes(self, size: int) -> bytes:
        begin, self.offset = self.offset, self.offset + size
        if len(self._data) < self.offset:
            raise TruncatedError(self.offset, len(self._data))
        return self._data[begin : self.offset]

    def _decode_text(self, raw: bytes) -> str:
        if self._strict and raw[-1:] != b"\0":
            raise PayloadError("a text does not end with NUL")
        try:
            return raw.removesuffix(b"\0").decode("utf-8")
        except UnicodeDecodeError as error:
            raise PayloadError(f"a text is not UTF-8: {error}") from None


def check_header(data: bytes, size: int = 0, *, strict: bool = True) -> None:
    """Raise `DecodeError` unless `data` is plain CDR with at least `size` bytes after its header.

    `strict` also requires little endian.
    """
    if len(data) < len(HEADER) + size:
        raise TruncatedError(len(HEADER) + size, len(data))
    if data[:2] != HEADER[:2] and (strict or data[:2] not in _BYTE_ORDERS):
        raise DecodeError(
            f"a message that begins with {data[:2].hex()} is not in plain little-endian CDR",
            "Compare the versions of CycloneDDS on both ends.",
        )


def _parse_codes(tokens: Iterator[str]) -> _Parts:
    """Return the parts up to the end of `tokens`, or to the bracket that closes a sequence.

    The parts of a sequence are a tuple of their own.
    """
    parts: list[str | _Parts] = []
    for token in tokens:
        if token == "]":  # noqa: S105 - a bracket
            break
        parts.append(_parse_codes(tokens) if token == "[" else token.replace(" ", ""))  # noqa: S105
    return tuple(parts)


@cache
def _count_values(codes: str) -> int:
    return sum(int(count or 1) for count, _ in _CODE.findall(codes))


@cache
def _find_item_code(item_parts: _Parts) -> str:
    """Return the code of a sequence's items if each is a single number; otherwise ""."""
    return item_parts[0] if len(item_parts) == 1 and item_parts[0] in _NUMBER_CODES else ""


@cache
def _compute_min_size(item_parts: _Parts) -> int:
    """Return the smallest number of bytes that one item of a sequence can take."""
    size = 0
    for part in item_parts:
        has_length = isinstance(part, tuple) or part in "sy"
        size += 4 if has_length else struct.calcsize(f"<{part}")
    return size
