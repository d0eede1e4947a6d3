"""Compressed capture files: gzip, zstd and lz4, read as a stream.

A damaged file gives every byte before the damage, and then raises `EOFError` with the reason.
"""

import io
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from rote.errors import MissingExtraError

_CHUNK = 1 << 16
_MAX_PIECE = 1 << 20
_SMALL_CHUNK = 1 << 10
"""A kilobyte of zstd becomes 32 MB at most, so a malicious file cannot fill the memory."""
FORMATS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}


def format_of(head: bytes) -> str:
    """Return how a file is compressed, by its first bytes; empty if it is not."""
    return next((name for magic, name in FORMATS.items() if head.startswith(magic)), "")


def open_compressed(source: IO[bytes], format_: str) -> io.BufferedIOBase:
    """Return a reader of a compressed file's content.

    Raises `MissingExtraError` if the library for the format is not installed.
    """
    if format_ == "gzip":
        return Unpacked(_Gzip(source))
    return Unpacked(_Library(source, format_))


class Unpacked(io.BufferedIOBase):
    """Reads from a decompressor."""

    def __init__(self, decompressor: "_Gzip | _Library") -> None:
        self._decompressor = decompressor
        self._held = b""
        self._trouble = ""

    def readable(self) -> bool:
        """Return True: it can be read."""
        return True

    def readinto1(self, buffer: Any) -> int:
        """Fill part of the buffer; raises `EOFError` if the file is damaged."""
        view = memoryview(buffer).cast("B")
        if not self._held:
            self._fill_buffer()
        size = min(len(view), len(self._held))
        view[:size] = self._held[:size]
        self._held = self._held[size:]
        return size

    def read(self, size: int | None = -1, /) -> bytes:
        """Return as many bytes as wanted, or all that are left."""
        missing = 1 << 62 if size is None or size < 0 else size
        parts: list[bytes] = []
        while missing > 0:
            if not self._held:
                self._fill_buffer(quietly=bool(parts))
            if not self._held:
                break
            parts.append(self._held[:missing])
            self._held = self._held[missing:]
            missing -= len(parts[-1])
        return b"".join(parts)

    def _fill_buffer(self, *, quietly: bool = False) -> None:
        if not self._trouble:
            try:
                self._held = self._decompressor.more()
            except EOFError as error:
                self._trouble = str(error)
                self._held = self._decompressor.rescued
        if not self._held and self._trouble and not quietly:
            raise EOFError(self._trouble)


class _Gzip:
    """Decompresses gzip, also several files one after the other."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._inflate = zlib.decompressobj(31)
        self._input = b""
        self._begun = False
        self.rescued = b""

    def more(self) -> bytes:
        """Return the next bytes; none at the end."""
        while True:
            if self._inflate.eof:
                self._input = self._inflate.unused_data.lstrip(b"\0")
                self._inflate, self._begun = zlib.decompressobj(31), False
            if not self._input:
                self._input = self._source.read(_CHUNK)
                if not self._input:
                    if self._begun:
                        raise EOFError("it ends too early")
                    return b""
            self._begun = True
            before = self._inflate.copy()
            try:
                found = self._inflate.decompress(self._input, _MAX_PIECE)
            except zlib.error as error:
                self.rescued = _decompress_until_damage(before, self._input)
                raise EOFError(str(error)) from None
            self._input = self._inflate.unconsumed_tail
            if found:
                return found


def _decompress_until_damage(inflate: Any, data: bytes) -> bytes:
    """Return what can be decompressed before the damage, byte by byte."""
    result = bytearray()
    with suppress(zlib.error):
        for at in range(len(data)):
            result += inflate.decompress(data[at : at + 1])
    return bytes(result)


class _Library:
    """Decompresses zstd and lz4 with the libraries for them."""

    def __init__(self, source: IO[bytes], format_: str) -> None:
        self._source = source
        self._new, self._errors = _find_decompressor(format_)
        self._decompress = self._new()
        self._begun = False
        self._input = b""
        self.rescued = b""

    def more(self) -> bytes:
        """Return the next bytes; none at the end."""
        while True:
            if self._decompress.eof:
                self._input = self._decompress.unused_data or b""
                self._decompress, self._begun = self._new(), False
            self._input = self._input or self._source.read(_SMALL_CHUNK)
            if not self._input:
                if self._begun:
                    raise EOFError("it ends too early")
                return b""
            self._begun = True
            try:
                found: bytes = self._decompress.decompress(self._input)
            except self._errors as error:
                raise EOFError(str(error)) from None
            self._input = b""
            if found:
                return found


def _find_decompressor(format_: str) -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """Return the decompressor's constructor, and the errors it raises for damage."""
    try:
        if format_ == "zstd":
            import zstandard  # noqa: PLC0415 - optional

            return zstandard.ZstdDecompressor().decompressobj, (zstandard.ZstdError,)
        import lz4.frame  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError(f"reading {format_} files", "mcap") from error
    return lz4.frame.LZ4FrameDecompressor, (RuntimeError,)
