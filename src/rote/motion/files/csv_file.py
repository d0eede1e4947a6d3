"""Tracks as CSV: a first column `t` in seconds, then one column per joint name in rad.

Times that can only be milliseconds are read as such, and the history says so.

The numbers survive exactly. There is no place for metadata: variant (recovered from the joint names
if they are those of one build), source, marks and history are lost.
"""

import codecs
import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rote.errors import BadRequestError
from rote.model.family import MAX_MOTION_S
from rote.motion.files import disk
from rote.motion.files.metadata import (
    FileLocation,
    TakeMetadata,
    assemble_track,
    check_length,
    metadata_of,
)
from rote.motion.track import Array, Track

_MIN_MS_SAMPLES = 20  # fewer times are always read as seconds
READ_AS_MS = "the times were read as milliseconds: as seconds they would be too far apart"
"""The line in the history of a track whose times were read as milliseconds."""


def file_location(path: Path) -> FileLocation:
    """Return how errors name a row of this file: the header is row 1."""
    return FileLocation(str(path), "row", 2)


def save_csv(track: Track, path: Path) -> None:
    """Write `track`; the file appears only when it is complete."""
    metadata_of(track)  # only to refuse names that are not UTF-8
    with disk.write_atomically(path) as file:
        writer = csv.writer(codecs.getwriter("utf-8")(file), lineterminator="\n")
        writer.writerow(["t", *track.names])
        for time_s, row in zip(track.times_s.tolist(), track.joints_rad.tolist(), strict=True):
            writer.writerow([_format_time(time_s), *map(repr, row)])


def load_csv(path: Path) -> Track:
    """Read a track; a `BadRequestError` names the row that cannot be used."""
    location = file_location(path)
    try:
        text = disk.read_contents(path).decode("utf-8-sig").rstrip("\r\n")
        rows = csv.reader(io.StringIO(text, newline=""))
        names = _read_header(next(rows, []), location)
        values = _read_numbers(rows, ("t", *names), location)
    except UnicodeDecodeError:
        raise location.error("it cannot be read as UTF-8", "Save it as CSV in UTF-8.") from None
    except csv.Error as error:
        raise BadRequestError(f"{path} cannot be read as CSV: {error}") from None
    table = np.array(values, dtype=np.float64).reshape(-1, len(names) + 1)
    times_s = table[:, 0]
    in_ms = _are_milliseconds(times_s)
    if in_ms:
        times_s = times_s / 1000.0
    metadata = TakeMetadata(
        names=names, source=location.source, history=(READ_AS_MS,) if in_ms else ()
    )
    return assemble_track(metadata, times_s, table[:, 1:], location)


def _are_milliseconds(times: Array) -> bool:
    """Return whether the times of a file must be milliseconds.

    They must be if, read as seconds, the samples were 1 to 1000 s apart and the motion was longer
    than any that can be played.
    """
    if len(times) < _MIN_MS_SAMPLES or not np.isfinite(times).all():
        return False
    step = float(np.median(np.diff(times)))
    return 1.0 <= step <= 1000.0 and float(times[-1] - times[0]) > MAX_MOTION_S


def _format_time(time_s: float) -> str:
    """Return a time in seconds as text: with six decimals, or with all digits if inexact."""
    text = f"{time_s:.6f}"
    return text if float(text) == time_s else repr(time_s)


def _read_header(row: list[str], location: FileLocation) -> tuple[str, ...]:
    """Return the joint names in the first row of a file."""
    if row[:1] != ["t"] or len(row) < 2:
        has_other_separator = "".join(row[:1]).startswith(("t;", "t\t"))
        raise location.error(
            "the first row must be 't' and the joints' names",
            "Put commas between the cells." if has_other_separator else "Like: t,left_elbow_joint",
        )
    return tuple(row[1:])


def _read_numbers(
    rows: Iterator[list[str]], columns: tuple[str, ...], location: FileLocation
) -> list[list[float]]:
    values: list[list[float]] = []
    for row in rows:
        check_length(len(values) + 1, len(columns) - 1, location)
        if len(row) != len(columns):
            problem = f"it has {len(row)} cells, the first row has {len(columns)}"
            raise location.row_error(len(values), problem)
        try:
            values.append([float(cell) for cell in row])
        except ValueError:
            problem = next(
                f"{column} is {cell!r}, which is not a number"
                for column, cell in zip(columns, row, strict=True)
                if not _is_number(cell)
            )
            raise location.row_error(len(values), problem) from None
    return values


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
