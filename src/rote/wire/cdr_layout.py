"""Plain CDR by layouts: the encoding of DDS and of ROS 2.

A layout is a row of codes: those of `struct` for numbers, `s` for a text, `y` for bytes, `[...]`
for a sequence. A message is a header of 4 bytes, then the values; each number is aligned to its
size, counted from after the header. A text, bytes and a sequence follow their length, a text ends
with a NUL. `decode` raises `DecodeError` and nothing else, for any input at all.
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
_ORDERS = {HEADER[:2]: "<", b"\x00\x00": ">"}
_MAX_ITEMS = 200_000
_CODE = re.compile(r"(\d*)([?bBhHiIqQfd])")
_TOKEN = re.compile(r"[sy\[\]]|(?:\d*[?bBhHiIqQfd]\s*)+")


@lru_cache(maxsize=1024)
def _compile_numbers(codes: str, start: int, order: str) -> struct.Struct:
    """Return the struct of a row of numbers that begins `start` bytes after a multiple of 8."""
    aligned, at = order, start
    for count, code in _CODE.findall(codes):
        size = struct.calcsize(f"<{code}")
        aligned += f"{-at % size}x{count}{code}"
        at += -at % size + size * int(count or 1)
    return struct.Struct(aligned)


def pad_fields(fields: Mapping[str, str], used: Collection[str]) -> str:
    """Return the struct codes of a record of numbers, with padding for the fields not used.

    The record begins at a multiple of its largest number.
    """
    codes, at = "", 0
    for name, code in fields.items():
        whole = _compile_numbers(code, at % 8, "<")
        pad = whole.size - struct.calcsize(f"<{code}")
        codes += f"{pad}x{code}" if name in used else f"{whole.size}x"
        at += whole.size
    return codes


class CdrLayout:
    """One kind of message, as a row of codes."""

    def __init__(self, codes: str, *, text_errors: str = "strict") -> None:
        self._parts = _parse_codes(iter(_TOKEN.findall(codes)))
        self._text_errors = text_errors

    def encode(self, *values: Any) -> bytes:
        """Return a message; raises `BadRequestError` for a value that does not fit."""
        data = bytearray(HEADER)
        try:
            self._write(self._parts, iter(values), data)
        except (struct.error, UnicodeEncodeError) as error:
            raise BadRequestError(f"a message that CDR cannot hold: {error}") from None
        return bytes(data)

    def decode(self, data: bytes, *, strict: bool = False) -> tuple[Any, ...]:
        """Return the values of a message; `strict`: little endian only, and each text has a NUL."""
        return self.decode_begin(data, strict=strict)[0]

    def decode_begin(self, data: bytes, *, strict: bool = False) -> tuple[tuple[Any, ...], int]:
        """Return the values at the beginning of a message, and where they end."""
        check_header(data, strict=strict)
        reader = _CdrReader(data, strict=strict)
        return tuple(reader.values(self._parts)), reader.at

    def _write(self, parts: _Parts, values: Iterator[Any], data: bytearray) -> None:
        for part in parts:
            if isinstance(part, tuple):
                items = next(values)
                self._append_numbers(data, "I", len(items))
                if numbers := _bare_number(part):
                    self._append_numbers(data, f"{len(items)}{numbers}" if items else "", *items)
                    continue
                for item in items:
                    self._write(part, iter([item] if len(part) == 1 else item), data)
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
    def __init__(self, data: bytes, *, strict: bool) -> None:
        self._data, self._strict = data, strict
        self._order = _ORDERS[data[:2]]
        self.at = len(HEADER)

    def values(self, parts: _Parts) -> Iterator[Any]:
        for part in parts:
            if isinstance(part, tuple):
                yield self._read_sequence(part)
            elif part in "sy":
                (size,) = self._read_numbers("I")
                raw = self._take_bytes(size)
                yield raw if part == "y" else self._decode_text(raw)
            else:
                yield from self._read_numbers(part)

    def _read_sequence(self, part: _Parts) -> tuple[Any, ...]:
        (count,) = self._read_numbers("I")
        left = len(self._data) - self.at
        if count > _MAX_ITEMS or count * _least_size(part) > left:
            raise PayloadError(f"{count} items cannot follow in {left} bytes")
        if number := _bare_number(part):
            return self._read_numbers(f"{count}{number}") if count else ()
        items = (tuple(self.values(part)) for _ in range(count))
        return tuple(item[0] if len(part) == 1 else item for item in items)

    def _read_numbers(self, codes: str) -> tuple[Any, ...]:
        layout = _compile_numbers(codes, (self.at - len(HEADER)) % 8, self._order)
        return layout.unpack(self._take_bytes(layout.size))

    def _take_bytes(self, size: int) -> bytes:
        begin, self.at = self.at, self.at + size
        if len(self._data) < self.at:
            raise TruncatedError(self.at, len(self._data))
        return self._data[begin : self.at]

    def _decode_text(self, raw: bytes) -> str:
        if self._strict and raw[-1:] != b"\0":
            raise PayloadError("a text that does not end with NUL")
        try:
            return raw.removesuffix(b"\0").decode("utf-8")
        except UnicodeDecodeError as error:
            raise PayloadError(f"a text that is not UTF-8: {error}") from None


def check_header(data: bytes, size: int = 0, *, strict: bool = True) -> None:
    """Raise `DecodeError` for what is not plain CDR, or has less than `size` bytes behind its
    header.
    """
    if len(data) < len(HEADER) + size:
        raise TruncatedError(len(HEADER) + size, len(data))
    if data[:2] != HEADER[:2] and (strict or data[:2] not in _ORDERS):
        raise DecodeError(
            f"bytes that begin with {data[:2].hex()} are not plain little-endian CDR",
            "Compare the versions of CycloneDDS on both ends.",
        )


def _parse_codes(tokens: Iterator[str]) -> _Parts:
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
def _bare_number(part: _Parts) -> str:
    """Return the code of a sequence that holds single numbers; else nothing."""
    return part[0] if len(part) == 1 and part[0] in list("?bBhHiIqQfd") else ""


@cache
def _least_size(part: _Parts) -> int:
    numbers = (each for each in part if isinstance(each, str) and each not in "sy")
    fixed = sum(struct.calcsize(f"<{codes}") for codes in numbers)
    return fixed + 4 * sum(isinstance(each, tuple) or each in "sy" for each in part)
