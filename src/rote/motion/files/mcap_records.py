"""The records of an MCAP file, walked one by one; the only home of the `mcap` library.

Its own reader takes a record that is cut off for a short one, and unpacks whatever a chunk
promises. Here a record is whole or not there, and a chunk is as large as is allowed.
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
    """Yield kind and content of every record that is whole, but for those to skip.

    None is larger than `most`: a larger attachment is passed over, another record is refused with
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
    """Where a record is in the data of a chunk: its head from `begin`, its content to `end`."""

    code: int
    begin: int
    content: int
    end: int


def record_at(data: bytes, place: int) -> ChunkSpan:
    """Return the record that begins at a place of a chunk's data."""
    code, size = _HEAD.unpack_from(data, place)
    content = place + _HEAD.size
    return ChunkSpan(code, place, content, content + size)


def alike(data: bytes, first: ChunkSpan) -> NDArray[np.uint8]:
    """Return the contents of the records that follow `first` at once, (records, bytes).

    They are those of its kind and length.
    """
    size = first.end - first.begin
    count = max(len(data) - first.end, 0) // size
    rows = np.frombuffer(data, np.uint8, count * size, min(first.end, len(data)))
    rows = rows.reshape(count, size)
    head = np.frombuffer(data, np.uint8, _HEAD.size, first.begin)
    same = (rows[:, : _HEAD.size] == head).all(axis=1)
    return rows[: leading(same), _HEAD.size :]


def leading(true: NDArray[np.bool_]) -> int:
    """Return how many are true before the first that is not."""
    return len(true) if true.all() else int(np.argmin(true))


def faults() -> tuple[type[Exception], ...]:
    """Return the exceptions that the libraries raise for invalid bytes."""
    from mcap.exceptions import McapError  # noqa: PLC0415 - optional
    from zstandard import ZstdError  # noqa: PLC0415 - comes with mcap

    wrong = (struct.error, ValueError, KeyError, RecursionError, OverflowError, RuntimeError)
    return (DecodeError, McapError, ZstdError, *wrong)


def parsed(kind: str, content: bytes) -> Any:
    """Return a record as the library reads it."""
    import mcap.data_stream  # noqa: PLC0415 - optional
    import mcap.records  # noqa: PLC0415 - optional

    stream = mcap.data_stream.ReadDataStream(BytesIO(content))
    return getattr(mcap.records, kind).read(stream)


def unpacked(chunk: Any, most: int) -> bytes:
    """Return the content of a chunk; never more than `most` bytes, whatever it announces."""
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
