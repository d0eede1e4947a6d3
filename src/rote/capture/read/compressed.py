"""Compressed capture files: gzip, zstd and lz4, read as a stream.

A damaged file gives every byte before the damage, and then raises `EOFError` with the reason.
"""

import io
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from rote.errors import MissingExtraError

_CHUNK_BYTES = 1 << 16
_MAX_PIECE_BYTES = 1 << 20
"""Maximum size of a decompressed piece."""
_SMALL_CHUNK_BYTES = 1 << 10
"""A kilobyte of zstd becomes 32 MB at most, so a malicious file cannot fill the memory."""
_GZIP_WINDOW_BITS = 31
"""The largest window, 15, plus 16, which tells zlib to expect the header of gzip."""
FORMATS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}


def detect_compression(head: bytes) -> str:
    """Return the compression format of a file that begins with `head`; empty if it has none."""
    return next((name for magic, name in FORMATS.items() if head.startswith(magic)), "")


def open_compressed(source: IO[bytes], format_: str) -> io.BufferedIOBase:
    """Return a reader of a compressed file's content.

    Raises `MissingExtraError` if the library for the format is not installed.
    """
    if format_ == "gzip":
        return Unpacked(_GzipDecompressor(source))
    return Unpacked(_LibraryDecompressor(source, format_))


class Unpacked(io.BufferedIOBase):
    """A readable file with the decompressed content of another."""

    def __init__(self, decompressor: "_GzipDecompressor | _LibraryDecompressor") -> None:
        self._decompressor = decompressor
        self._buffer = b""
        self._damage = ""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto1(self, buffer: Any) -> int:
        """Fill part of the buffer; raises `EOFError` if the file is damaged."""
        view = memoryview(buffer).cast("B")
        if not self._buffer:
            self._fill_buffer()
        size = min(len(view), len(self._buffer))
        view[:size] = self._buffer[:size]
        self._buffer = self._buffer[size:]
        return size

    def read(self, size: int | None = -1, /) -> bytes:
        """Return `size` bytes, or all that are left.

        Raises `EOFError` if the file is damaged before the first of them.
        """
        missing = 1 << 62 if size is None or size < 0 else size
        parts: list[bytes] = []
        while missing > 0:
            if not self._buffer:
                self._fill_buffer(quietly=bool(parts))
            if not self._buffer:
                break
            parts.append(self._buffer[:missing])
            self._buffer = self._buffer[missing:]
            missing -= len(parts[-1])
        return b"".join(parts)

    def _fill_buffer(self, *, quietly: bool = False) -> None:
        """Decompress the next bytes; at damage raise `EOFError`, unless `quietly`."""
        if not self._damage:
            try:
                self._buffer = self._decompressor.read_piece()
            except EOFError as error:
                # What could be decompressed before the damage is returned first.
                self._damage = str(error)
                self._buffer = self._decompressor.rescued
        if not self._buffer and self._damage and not quietly:
            raise EOFError(self._damage)


class _GzipDecompressor:
    """Decompresses gzip, including several gzip members one after the other."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._inflate = zlib.decompressobj(_GZIP_WINDOW_BITS)
        self._input = b""
        self._inside_frame = False
        self.rescued = b""
        """What the damaged input contained before the damage."""

    def read_piece(self) -> bytes:
        """Return the next decompressed bytes; none at the end.

        Raises `EOFError` if the input is damaged.
        """
        while True:
            if self._inflate.eof:  # another member may follow, after padding
                self._input = self._inflate.unused_data.lstrip(b"\0")
                self._inflate, self._inside_frame = zlib.decompressobj(_GZIP_WINDOW_BITS), False
            if not self._input:
                self._input = self._source.read(_CHUNK_BYTES)
                if not self._input:
                    if self._inside_frame:
                        raise EOFError("it ends too early")
                    return b""
            self._inside_frame = True
            before = self._inflate.copy()  # to read this input again if it is damaged
            try:
                found = self._inflate.decompress(self._input, _MAX_PIECE_BYTES)
            except zlib.error as error:
                self.rescued = _decompress_until_damage(before, self._input)
                raise EOFError(str(error)) from None
            self._input = self._inflate.unconsumed_tail
            if found:
                return found


def _decompress_until_damage(inflate: Any, data: bytes) -> bytes:
    """Decompress byte by byte up to the damage, and return the result."""
    result = bytearray()
    with suppress(zlib.error):
        for index in range(len(data)):
            result += inflate.decompress(data[index : index + 1])
    return bytes(result)


class _LibraryDecompressor:
    """Decompresses zstd or lz4 with the library for it."""

    def __init__(self, source: IO[bytes], format_: str) -> None:
        self._source = source
        self._make_decompressor, self._errors = _find_decompressor(format_)
        self._decompress = self._make_decompressor()
        self._inside_frame = False
        self._input = b""
        self.rescued = b""

    def read_piece(self) -> bytes:
        """Return the next decompressed bytes; none at the end.

        Raises `EOFError` if the input is damaged.
        """
        while True:
            if self._decompress.eof:
                self._input = self._decompress.unused_data or b""
                self._decompress, self._inside_frame = self._make_decompressor(), False
            self._input = self._input or self._source.read(_SMALL_CHUNK_BYTES)
            if not self._input:
                if self._inside_frame:
                    raise EOFError("it ends too early")
                return b""
            self._inside_frame = True
            try:
                found: bytes = self._decompress.decompress(self._input)
            except self._errors as error:
                raise EOFError(str(error)) from None
            self._input = b""
            if found:
                return found


def _find_decompressor(format_: str) -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """Return the constructor of a decompressor, and the errors that it raises for damage."""
    try:
        if format_ == "zstd":
            import zstandard  # noqa: PLC0415 - optional

            return zstandard.ZstdDecompressor().decompressobj, (zstandard.ZstdError,)
        import lz4.frame  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError(f"reading {format_} files", "mcap") from error
    return lz4.frame.LZ4FrameDecompressor, (RuntimeError,)
