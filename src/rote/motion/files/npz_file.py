"""Tracks as NPZ, for numpy: arrays `times_s` (n,), `joints_rad` (n, joints) and `names`.

Nothing is lost: the other metadata is in `document`, as JSON. For files from other programs, the
three arrays are enough. Nothing in such a file is ever executed. An archive that would unpack to
more than the limit is refused before it is unpacked.
"""

import io
import json
import math
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.errors import BadRequestError
from rote.motion.files import disk
from rote.motion.files.metadata import (
    MAX_SAMPLES,
    FileLocation,
    Summary,
    TakeMetadata,
    assemble_track,
    from_document,
    make_too_long_error,
    metadata_of,
    to_document,
)
from rote.motion.track import Array, Track

# What numpy and the zip reader raise for bytes that are not arrays, found by experiment.
FAULTS = (
    ValueError, KeyError, EOFError, OSError, MemoryError, RuntimeError, NotImplementedError,
    SyntaxError, TypeError, OverflowError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_ROOT_ARRAYS = ("root_position_m", "root_quaternion_wxyz")
_TEXT_ARRAYS = ("names", "document")
_NUMBER_ARRAYS = ("times_s", "joints_rad", *_ROOT_ARRAYS)
_METADATA_BYTES = 1 << 20  # more than names and metadata take
_MAX_TEXT_BYTES = 16 * 2**20
_HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def file_location(path: Path) -> FileLocation:
    """Return how errors name a row of this file: rows are counted from 1."""
    return FileLocation(str(path), "row")


def save_npz(track: Track, path: Path, tags: tuple[str, ...] = ()) -> None:
    """Write `track`; the file appears only when it is complete."""
    root = () if track.root is None else (track.root.position_m, track.root.quaternion_wxyz)
    numbers = (track.times_s, track.joints_rad, *root)
    # The file is smaller, but the limit is about what it unpacks to in memory.
    disk.check_size(path, sum(each.nbytes for each in numbers) + _METADATA_BYTES)
    arrays = _make_arrays(track, tags)
    with disk.write_atomically(path) as file:
        np.savez_compressed(file, **arrays)


def npz_bytes(track: Track) -> bytes:
    """Return `track` as the content of an NPZ file."""
    data = io.BytesIO()
    np.savez_compressed(data, **_make_arrays(track))
    return data.getvalue()


def _make_arrays(track: Track, tags: tuple[str, ...] = ()) -> dict[str, Any]:
    document = json.dumps(to_document(metadata_of(track, tags)), ensure_ascii=False)
    root = () if track.root is None else (track.root.position_m, track.root.quaternion_wxyz)
    return {
        "times_s": track.times_s,
        "joints_rad": track.joints_rad,
        "names": np.array(track.names, dtype=np.str_),
        "document": np.frombuffer(document.encode("utf-8"), dtype=np.uint8),
        **dict(zip(_ROOT_ARRAYS, root, strict=False)),  # none without a root
    }


def load_npz(path: Path) -> Track:
    """Read a track; a `BadRequestError` names the row that cannot be used."""
    return _read_file(path)[1]


def track_from_npz(data: bytes) -> Track:
    """Read a track from the content of an NPZ file, with the same errors."""
    return _unpack_bytes(data, FileLocation("motion.npz", "row"))[1]


def read_summary(path: Path) -> Summary:
    """Return the metadata, the number of samples and the duration of a take."""
    metadata, track = _read_file(path)
    return Summary(metadata, len(track), track.duration_s)


def _read_file(path: Path) -> tuple[TakeMetadata, Track]:
    return _unpack_bytes(disk.read_contents(path), file_location(path))


def _unpack_bytes(data: bytes, location: FileLocation) -> tuple[TakeMetadata, Track]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _unpack_track(
                NpzArrays(archive, location, _NUMBER_ARRAYS, _TEXT_ARRAYS), location
            )
    except BadRequestError:
        raise
    except FAULTS as error:
        raise location.error(f"it cannot be read as NPZ: {error}") from None


def _unpack_track(arrays: "NpzArrays", location: FileLocation) -> tuple[TakeMetadata, Track]:
    """Unpack metadata and track, the smaller arrays first, so that bad files are refused early."""
    metadata = _read_metadata(arrays, location)
    times_shape = arrays.header("times_s").shape
    joints_shape = arrays.header("joints_rad").shape
    if len(times_shape) != 1 or joints_shape != (*times_shape, len(metadata.names)):
        raise location.error(
            f"{len(metadata.names)} joint names and {math.prod(times_shape)} times do not fit "
            f"angles of shape {joints_shape}"
        )
    (samples,) = times_shape
    if samples > MAX_SAMPLES:
        raise make_too_long_error(location)
    times_s = arrays.floats("times_s")
    # A track without joints is made only to check the times.
    assemble_track(TakeMetadata(names=()), times_s, np.empty((samples, 0)), location)
    root = None
    if any(name in arrays for name in _ROOT_ARRAYS):
        shapes = [arrays.header(name).shape for name in _ROOT_ARRAYS]
        if shapes != [(samples, 3), (samples, 4)]:
            raise location.error(f"{samples} samples do not match a root of shapes {shapes}")
        root = np.column_stack([arrays.floats(name) for name in _ROOT_ARRAYS])
    track = assemble_track(metadata, times_s, arrays.floats("joints_rad"), location, root)
    return metadata, track


class _Header(NamedTuple):
    """The shape and type of an array, known before it is unpacked."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class NpzArrays:
    """The arrays of an archive. Each is unpacked on request.

    A small archive can unpack to any size. Its directory and the header of each array state that
    size; both must agree, and the size is limited, before anything is unpacked.
    `numbers` and `texts` name the arrays that may be unpacked.
    """

    def __init__(
        self,
        archive: zipfile.ZipFile,
        location: FileLocation,
        numbers: Sequence[str],
        texts: Sequence[str] = (),
    ) -> None:
        self._archive = archive
        self._location = location
        members = {member.filename: member for member in archive.infolist()}
        self._check_unpacked_size(sum(member.file_size for member in members.values()))
        self.names = sorted(name.removesuffix(".npy") for name in members)
        requested = {name: members.get(f"{name}.npy") for name in (*numbers, *texts)}
        self._headers = {
            name: self._read_header(member) for name, member in requested.items() if member
        }
        self._check_unpacked_size(
            sum(
                math.prod(header.shape) * max(header.dtype.itemsize, 8)  # read as 64-bit floats
                for name, header in self._headers.items()
                if name in numbers
            )
        )

    def __contains__(self, name: str) -> bool:
        return name in self._headers

    def header(self, name: str) -> _Header:
        """Return the shape and type of an array."""
        if name not in self._headers:
            others = ", ".join(self.names) or "none"
            raise self._location.error(f"it has no array {name!r}, only {others}")
        return self._headers[name]

    def unpack(self, name: str, max_bytes: int = disk.MAX_BYTES) -> NDArray[Any]:
        """Return one array; refuse one that unpacks to more than `max_bytes`."""
        header = self.header(name)
        size = math.prod(header.shape) * header.dtype.itemsize
        if size > max_bytes:
            raise self._location.error(
                f"its {name} unpack to {size >> 20} MB; at most {max_bytes >> 20} are read"
            )
        with self._archive.open(f"{name}.npy") as file:
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return array

    def floats(self, name: str) -> Array:
        """Return an array of numbers as 64-bit floats."""
        dtype = self.header(name).dtype
        if dtype.kind not in "fiu":
            raise self._location.error(f"its {name} are of type {dtype}, not numbers")
        with np.errstate(over="ignore"):  # too large a number becomes infinite, refused later
            return self.unpack(name).astype(np.float64, copy=False)

    def _read_header(self, member: zipfile.ZipInfo) -> _Header:
        with self._archive.open(member) as file:
            version = np.lib.format.read_magic(file)
            if version not in _HEADER_READERS:
                raise ValueError(f"{member.filename} has the unknown version {version}")
            shape, _, dtype = _HEADER_READERS[version](file)
            header_bytes = file.tell()
        if dtype.hasobject:
            raise ValueError(f"{member.filename} holds Python objects, which are not read")
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or header_bytes + size != member.file_size:
            raise ValueError(
                f"{member.filename} has {member.file_size} bytes; its header states "
                f"{header_bytes + size}"
            )
        return _Header(shape, dtype)

    def _check_unpacked_size(self, size: int) -> None:
        if size > disk.MAX_BYTES:
            raise self._location.error(
                f"it unpacks to {size >> 20} MB; at most {disk.MAX_BYTES >> 20} are read"
            )


def _read_metadata(arrays: NpzArrays, location: FileLocation) -> TakeMetadata:
    if "document" in arrays:
        data = arrays.unpack("document", _MAX_TEXT_BYTES).tobytes()
        try:
            document = json.loads(data.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise location.error(f"its document cannot be read: {error}") from None
        return from_document(document, location)
    header = arrays.header("names")
    if len(header.shape) != 1 or header.dtype.kind != "U":
        raise location.error("its names are not a list of words")
    names = arrays.unpack("names", _MAX_TEXT_BYTES).tolist()
    return TakeMetadata(names=tuple(names), source=location.source)
