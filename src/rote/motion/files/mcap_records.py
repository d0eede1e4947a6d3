"""Reads the records of an MCAP file one by one. Only this module uses the `mcap` library.

The library's own reader treats a truncated record as a short one, and unpacks chunks of any size.
Here a record is complete or absent, and the size of a chunk is limited.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from io import BytesIO
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.errors import DecodeError, MissingExtraError

MAGIC = b"\x89MCAP0\r\n"
FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX = 2, 3, 4, 5, 6, 7
ATTACHMENT, STATISTICS, METADATA = 9, 11, 12
_MAY_BE_LARGE = frozenset({ATTACHMENT, MESSAGE_INDEX})

_HEAD = struct.Struct("<BQ")


def available() -> bool:
    """Return whether MCAP files can be used here."""
    return find_spec("mcap") is not None


def need_mcap() -> None:
    """Raise `MissingExtraError` if the library is missing."""
    if not available():
        raise MissingExtraError("the MCAP format", "mcap")


def writer(file: BinaryIO) -> Any:
    """Return the library's writer into an open file."""
    need_mcap()
    from mcap.writer import Writer  # noqa: PLC0415 - optional

    return Writer(file)


def records(file: BinaryIO, skip: frozenset[int], most: int) -> Iterator[tuple[int, bytes]]:
    """Yield kind and content of every complete record, except for those to skip.

    None is larger than `most`: a larger attachment is skipped, any other larger record raises
    `DecodeError`.
    """
    size = os.fstat(file.fileno()).st_size
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        code, length = _HEAD.unpack(head)
        if length > size - file.tell():
            return
        if code in skip or (length > most and code in _MAY_BE_LARGE):
            file.seek(length, os.SEEK_CUR)
        elif length > most:
            raise DecodeError(f"a record of {length >> 20} MB is too large")
        else:
            yield code, file.read(length)


class ChunkSpan(NamedTuple):
    """The position of a record in a chunk: its head from `begin`, its content to `end`."""

    code: int
    begin: int
    content: int
    end: int


def record_at(data: bytes, offset: int) -> ChunkSpan:
    """Return the record that begins at an offset of a chunk's data."""
    code, size = _HEAD.unpack_from(data, offset)
    content = offset + _HEAD.size
    return ChunkSpan(code, offset, content, content + size)


def similar_records(data: bytes, first: ChunkSpan) -> NDArray[np.uint8]:
    """Return the contents of the records directly after `first`, (records, bytes).

    They have the same kind and length.
    """
    size = first.end - first.begin
    count = max(len(data) - first.end, 0) // size
    rows = np.frombuffer(data, np.uint8, count * size, min(first.end, len(data)))
    rows = rows.reshape(count, size)
    head = np.frombuffer(data, np.uint8, _HEAD.size, first.begin)
    same = (rows[:, : _HEAD.size] == head).all(axis=1)
    return rows[: count_leading(same), _HEAD.size :]


def count_leading(true: NDArray[np.bool_]) -> int:
    """Return the number of leading true values."""
    return len(true) if true.all() else int(np.argmin(true))


def faults() -> tuple[type[Exception], ...]:
    """Return the exceptions that the libraries raise for invalid bytes."""
    from mcap.exceptions import McapError  # noqa: PLC0415 - optional
    from zstandard import ZstdError  # noqa: PLC0415 - comes with mcap

    wrong = (struct.error, ValueError, KeyError, RecursionError, OverflowError, RuntimeError)
    return (DecodeError, McapError, ZstdError, *wrong)


def parse_record(kind: str, content: bytes) -> Any:
    """Parse a record with the library."""
    import mcap.data_stream  # noqa: PLC0415 - optional
    import mcap.records  # noqa: PLC0415 - optional

    stream = mcap.data_stream.ReadDataStream(BytesIO(content))
    return getattr(mcap.records, kind).read(stream)


def unpack_chunk(chunk: Any, most: int) -> bytes:
    """Return the content of a chunk; never more than `most` bytes, whatever size it states."""
    if chunk.uncompressed_size > most:
        raise DecodeError(f"a chunk of {chunk.uncompressed_size >> 20} MB is too large")
    if chunk.compression == "zstd":
        import zstandard  # noqa: PLC0415 - comes with mcap

        with zstandard.ZstdDecompressor().stream_reader(chunk.data) as reader:
            data = reader.read(chunk.uncompressed_size + 1)
    elif chunk.compression == "lz4":
        import lz4.frame  # noqa: PLC0415 - comes with mcap

        data = lz4.frame.LZ4FrameDecompressor().decompress(chunk.data, chunk.uncompressed_size + 1)
    elif chunk.compression:
        raise DecodeError(f"chunks compressed by {chunk.compression!r} are not read")
    else:
        data = chunk.data
    crc = chunk.uncompressed_crc
    if len(data) != chunk.uncompressed_size or (crc and crc != zlib.crc32(data)):
        raise DecodeError("a chunk is damaged")
    return data
