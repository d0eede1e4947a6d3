"""Tracks as JSON: `times_s`, `joints_rad` with a list per sample, `names`, and other metadata.

Nothing is lost. For files from other programs, `times_s`, `joints_rad` and `names` are enough.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from rote.motion.files import disk
from rote.motion.files.metadata import (
    FileLocation,
    assemble_track,
    check_length,
    from_document,
    metadata_of,
    to_document,
)
from rote.motion.track import Array, Track


def file_location(path: Path) -> FileLocation:
    """Return how errors name a sample of this file: samples are counted from 1."""
    return FileLocation(str(path), "sample")


def save_json(track: Track, path: Path) -> None:
    """Write `track`; the file appears only when it is complete."""
    document = to_document(metadata_of(track))
    del document["tags"]  # they belong to a take of the library, not to a track
    document["times_s"] = track.times_s.tolist()
    document["joints_rad"] = track.joints_rad.tolist()
    if track.root is not None:
        document["root"] = {
            "position_m": track.root.position_m.tolist(),
            "quaternion_wxyz": track.root.quaternion_wxyz.tolist(),
        }
    with disk.write_atomically(path) as file:
        file.write(json.dumps(document, ensure_ascii=False).encode("utf-8"))


def load_json(path: Path) -> Track:
    """Read a track; a `BadRequestError` names the sample that cannot be used."""
    location = file_location(path)
    data = disk.read_contents(path)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise location.error(f"it cannot be read as JSON: {error}") from None
    metadata = from_document(document, location)
    times = _read_list(document, "times_s", location)
    rows = _read_list(document, "joints_rad", location)
    if len(times) != len(rows):
        raise location.error(f"it holds {len(times)} times and {len(rows)} samples of angles")
    width = len(metadata.names)
    check_length(len(times), width, location)
    table = np.empty((len(times), width + 1))
    for sample, (time_s, row) in enumerate(zip(times, rows, strict=True)):
        table[sample] = _read_row(time_s, row, width, sample, location)
    root = _read_root(document.get("root"), len(times), location)
    return assemble_track(metadata, table[:, 0], table[:, 1:], location, root)


def _read_root(value: object, samples: int, location: FileLocation) -> Array | None:
    """Return the path of the base, (n, 7): position and quaternion; None if there is none."""
    if value is None:
        return None
    parts = []
    for name, width in (("position_m", 3), ("quaternion_wxyz", 4)):
        rows = value.get(name) if isinstance(value, dict) else None
        if not isinstance(rows, list) or len(rows) != samples:
            raise location.error(f"its root has no list {name!r} of {samples} samples")
        part = np.empty((samples, width))
        for sample, row in enumerate(rows):
            part[sample] = _read_row(0.0, row, width, sample, location)[1:]  # without a time
        parts.append(part)
    return np.column_stack(parts)


def _read_list(document: dict[str, Any], name: str, location: FileLocation) -> list[Any]:
    values = document.get(name)
    if not isinstance(values, list):
        raise location.error(f"it has no list {name!r}")
    return values


def _read_row(
    time_s: object, row: object, width: int, sample: int, location: FileLocation
) -> Array:
    """Return the time and the `width` numbers of a sample as one array."""
    if not isinstance(row, list) or len(row) != width:
        actual = f"{len(row)} angles" if isinstance(row, list) else "no list of angles"
        raise location.row_error(sample, f"it has {actual} instead of {width}")
    if not all(type(value) in {int, float} for value in (time_s, *row)):
        raise location.row_error(sample, "it holds something that is not a number")
    try:
        return np.array([time_s, *row], dtype=np.float64)
    except OverflowError:
        raise location.row_error(sample, "it holds a number that is too large") from None
