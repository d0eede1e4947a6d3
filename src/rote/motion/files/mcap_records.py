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
# The opcodes of the format: the first byte of each record.
FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX = 2, 3, 4, 5, 6, 7
ATTACHMENT, STATISTICS, METADATA = 9, 11, 12
_MAY_BE_LARGE = frozenset({ATTACHMENT, MESSAGE_INDEX})

_HEAD = struct.Struct("<BQ")  # of a record: its opcode, and the length of its content


def is_available() -> bool:
    """Return whether the library for MCAP files is installed."""
    return find_spec("mcap") is not None


def require_mcap() -> None:
    """Raise `MissingExtraError` if the library is missing."""
    if not is_available():
        raise MissingExtraError("the MCAP format", "mcap")


def open_writer(file: BinaryIO) -> Any:
    """Return the library's writer into an open file."""
    require_mcap()
    from mcap.writer import Writer  # noqa: PLC0415 - optional

    return Writer(file)


def iterate_records(
    file: BinaryIO, skip: frozenset[int], max_bytes: int
) -> Iterator[tuple[int, bytes]]:
    """Yield opcode and content of every complete record, except for those with an opcode in `skip`.

    Attachments and message indexes larger than `max_bytes` are skipped; any other larger record
    raises `DecodeError`.
    """
    size = os.fstat(file.fileno()).st_size
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        opcode, length = _HEAD.unpack(head)
        if length > size - file.tell():
            return
        if opcode in skip or (length > max_bytes and opcode in _MAY_BE_LARGE):
            file.seek(length, os.SEEK_CUR)
        elif length > max_bytes:
            raise DecodeError(f"a record of {length >> 20} MB is too large")
        else:
            yield opcode, file.read(length)


class RecordSpan(NamedTuple):
    """The opcode of a record in a chunk, and the offsets of its head and its content."""

    opcode: int
    begin: int
    content_begin: int
    end: int


def locate_record(data: bytes, offset: int) -> RecordSpan:
    """Return the span of the record that begins at an offset of a chunk's data."""
    opcode, size = _HEAD.unpack_from(data, offset)
    content_begin = offset + _HEAD.size
    return RecordSpan(opcode, offset, content_begin, content_begin + size)


def find_similar_records(data: bytes, first: RecordSpan) -> NDArray[np.uint8]:
    """Return the contents of the records directly after `first` that have its opcode and length.

    The result is (records, bytes). It ends before the first record that differs.
    """
    size = first.end - first.begin
    count = max(len(data) - first.end, 0) // size
    # Read the rest of the chunk as rows of this size: they are records as long as all heads match.
    rows = np.frombuffer(data, np.uint8, count * size, min(first.end, len(data)))
    rows = rows.reshape(count, size)
    head = np.frombuffer(data, np.uint8, _HEAD.size, first.begin)
    is_similar = (rows[:, : _HEAD.size] == head).all(axis=1)
    return rows[: count_leading(is_similar), _HEAD.size :]


def count_leading(flags: NDArray[np.bool_]) -> int:
    """Return the number of leading true values."""
    return len(flags) if flags.all() else int(np.argmin(flags))


def fault_types() -> tuple[type[Exception], ...]:
    """Return the exceptions that the libraries raise for invalid bytes."""
    from mcap.exceptions import McapError  # noqa: PLC0415 - optional
    from zstandard import ZstdError  # noqa: PLC0415 - comes with mcap

    generic = (struct.error, ValueError, KeyError, RecursionError, OverflowError, RuntimeError)
    return (DecodeError, McapError, ZstdError, *generic)


def parse_record(class_name: str, content: bytes) -> Any:
    """Return a record as an object of a class of the library, such as `Chunk`."""
    import mcap.data_stream  # noqa: PLC0415 - optional
    import mcap.records  # noqa: PLC0415 - optional

    stream = mcap.data_stream.ReadDataStream(BytesIO(content))
    return getattr(mcap.records, class_name).read(stream)


def unpack_chunk(chunk: Any, max_bytes: int) -> bytes:
    """Return the content of a chunk; never more than `max_bytes` bytes, whatever size it states."""
    if chunk.uncompressed_size > max_bytes:
        raise DecodeError(f"a chunk of {chunk.uncompressed_size >> 20} MB is too large")
    # Unpack at most one byte more than stated: enough to notice that the size is wrong.
    if chunk.compression == "zstd":
        import zstandard  # noqa: PLC0415 - comes with mcap

        with zstandard.ZstdDecompressor().stream_reader(chunk.data) as reader:
            data = reader.read(chunk.uncompressed_size + 1)
    elif chunk.compression == "lz4":
        import lz4.frame  # noqa: PLC0415 - comes with mcap

        data = lz4.frame.LZ4FrameDecompressor().decompress(chunk.data, chunk.uncompressed_size + 1)
    elif chunk.compression:
        raise DecodeError(f"chunks compressed with {chunk.compression!r} cannot be read")
    else:
        data = chunk.data
    crc = chunk.uncompressed_crc
    if len(data) != chunk.uncompressed_size or (crc and crc != zlib.crc32(data)):
        raise DecodeError("a chunk is damaged")
    return data
