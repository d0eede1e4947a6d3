"""Tracks as NPZ, for numpy: arrays `times_s` (n,), `joints_rad` (n, joints) and `names`.

Nothing is lost: the other metadata is in `document`, as JSON. For files from other programs, the
three arrays are enough. Nothing in such a file is ever executed.
"""

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rote.motion.files import disk
from rote.motion.files.metadata import (
    FilePlace,
    Summary,
    TakeMetadata,
    assemble,
    from_document,
    metadata_of,
    to_document,
)
from rote.motion.track import Array, Track

_NAMES_BYTES = 1 << 20  # more than names and words take
# What numpy and the zip reader raise for bytes that are no arrays, seen by feeding them such bytes.
_FAULTS = (
    ValueError, KeyError, EOFError, OSError, MemoryError, RuntimeError, NotImplementedError,
    SyntaxError, TypeError, OverflowError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def place_in(path: Path) -> FilePlace:
    """Return how rows are counted: from 1."""
    return FilePlace(str(path), "row")


def save_npz(track: Track, path: Path, tags: tuple[str, ...] = ()) -> None:
    """Write `track`; the file appears only when it is complete."""
    document = json.dumps(to_document(metadata_of(track, tags)), ensure_ascii=False)
    # It is small on the disk, and as large as this when it is read.
    disk.check_size(path, track.times_s.nbytes + track.joints_rad.nbytes + _NAMES_BYTES)
    with disk.whole(path) as file:
        np.savez_compressed(
            file,
            times_s=track.times_s,
            joints_rad=track.joints_rad,
            names=np.array(track.names, dtype=np.str_),
            document=np.frombuffer(document.encode("utf-8"), dtype=np.uint8),
        )


def load_npz(path: Path) -> Track:
    """Read a track; a `BadRequestError` names the row that cannot be used."""
    return _read(path)[1]


def summary(path: Path) -> Summary:
    """Return a file's summary."""
    metadata, track = _read(path)
    return Summary(metadata, len(track), track.duration_s)


def _read(path: Path) -> tuple[TakeMetadata, Track]:
    place = place_in(path)
    arrays = _arrays(disk.contents(path), place)
    metadata = _metadata(arrays, place)
    times_s = _floats(arrays, "times_s", place)
    return metadata, assemble(metadata, times_s, _floats(arrays, "joints_rad", place), place)


def _arrays(data: bytes, place: FilePlace) -> dict[str, NDArray[Any]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        # A small archive can unpack to any size, and states the size beforehand.
        if unpacked <= disk.MAX_BYTES:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
    except _FAULTS as error:
        raise place.refuse(f"it cannot be read as NPZ: {error}") from None
    raise place.refuse(
        f"it unpacks to {unpacked >> 20} MB; at most {disk.MAX_BYTES >> 20} are read"
    )


def _metadata(arrays: dict[str, NDArray[Any]], place: FilePlace) -> TakeMetadata:
    if "document" in arrays:
        try:
            document = json.loads(arrays["document"].tobytes().decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise place.refuse(f"its document cannot be read: {error}") from None
        return from_document(document, place)
    names = _array(arrays, "names", place)
    if names.ndim != 1 or names.dtype.kind != "U":
        raise place.refuse("its names are no list of words")
    return TakeMetadata(names=tuple(names.tolist()), source=place.source)


def _floats(arrays: dict[str, NDArray[Any]], name: str, place: FilePlace) -> Array:
    array = _array(arrays, name, place)
    if array.dtype.kind not in "fiu":
        raise place.refuse(f"its {name} are of type {array.dtype}, not numbers")
    with np.errstate(over="ignore"):  # too large for 64 bits is infinite, and refused as that
        return array.astype(np.float64)


def _array(arrays: dict[str, NDArray[Any]], name: str, place: FilePlace) -> NDArray[Any]:
    if name not in arrays:
        raise place.refuse(f"it has no array {name!r}, only {', '.join(sorted(arrays)) or 'none'}")
    return arrays[name]
