"""A recording as plain rows of numbers, for computers without the `mcap` extra.

`NAME.npz.part` grows while a take is recorded: a line of JSON with the metadata, then for each
sample its time and its angles as 64-bit floats. The finished take is an NPZ file. After a crash,
`recover` reads the rows up to the last whole one.
"""

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from rote.motion.files import disk
from rote.motion.files.metadata import (
    FileLocation,
    TakeMetadata,
    assemble_track,
    check_length,
    find_invalid_sample,
    from_document,
    to_document,
)
from rote.motion.files.npz_file import save_npz
from rote.motion.track import Array, Track

_MAX_HEAD_BYTES = 1 << 20
_FLOAT_BYTES = 8


class RowStream:
    """Writes the metadata and then the samples of a take into an open file."""

    def __init__(self, file: BinaryIO, metadata: TakeMetadata) -> None:
        self._file = file
        self._row = struct.Struct(f"<{1 + len(metadata.names)}d")
        head = json.dumps(to_document(metadata), ensure_ascii=False).encode("utf-8") + b"\n"
        file.write(head)
        self.size = len(head)
        """The number of bytes written."""

    def add(self, time_s: float, row: Sequence[float]) -> None:
        """Write one sample."""
        self._file.write(self._row.pack(time_s, *row))
        self.size += self._row.size

    def flush(self) -> None:
        """Flush the added samples, so that they can be read even after a crash."""
        self._file.flush()


def finish(part: Path, metadata: TakeMetadata, draft: Path) -> None:
    """Write the samples of the recording `part` with final metadata as the NPZ file `draft`."""
    _, times_s, joints_rad = _read_rows(part)
    track = assemble_track(metadata, times_s, joints_rad, _file_location(part))
    save_npz(track, draft, metadata.tags)


def recover(path: Path) -> Track:
    """Read a recording that was cut off, up to the last row that is whole."""
    metadata, times_s, joints_rad = _read_rows(path)
    first_invalid = find_invalid_sample(times_s, joints_rad)
    valid_count = len(times_s) if first_invalid is None else first_invalid
    location = _file_location(path)
    if valid_count < 2:
        raise location.error("nothing in it can be recovered")
    track = assemble_track(metadata, times_s[:valid_count], joints_rad[:valid_count], location)
    return track.edited("recover a recording that was cut off")


def _file_location(path: Path) -> FileLocation:
    return FileLocation(str(path), "sample")


def _read_rows(path: Path) -> tuple[TakeMetadata, Array, Array]:
    """Return metadata, times (n,) and angles (n, joints), up to the last row that is whole."""
    location = _file_location(path)
    with disk.open_checked(path) as file:
        head = file.readline(_MAX_HEAD_BYTES)
        try:
            document = json.loads(head)
        except (ValueError, RecursionError):
            raise location.error("it is not a recording of rote") from None
        metadata = from_document(document, location)
        width = 1 + len(metadata.names)
        content = np.frombuffer(file.read(), dtype=np.uint8)
    row_bytes = _FLOAT_BYTES * width
    rows = len(content) // row_bytes
    check_length(rows, width - 1, location)
    table = content[: rows * row_bytes].view("<f8").reshape(rows, width).astype(np.float64)
    return metadata, table[:, 0].copy(), table[:, 1:].copy()
