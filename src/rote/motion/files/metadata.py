"""The metadata of a track in a file, and the assembly of a track from metadata and numbers.

JSON, NPZ and MCAP hold the same metadata. Unusable content is refused here, with the file and the
row in the error.
"""

import math
import sys
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rote.errors import BadRequestError
from rote.model import registry
from rote.model.family import numbered_build
from rote.motion.body.root_path import RootPath
from rote.motion.track import Array, Mark, Origin, Track, did_you_mean
from rote.motion.track_build import build_with, hand_joints
from rote.text import Act, Text

MAX_SAMPLES = 10_000_000
"""The maximum length of a track in a file: five and a half hours at 500 Hz."""

MAX_VALUES = 300_000_000
"""The maximum number of angles and times in a file, which take 2.4 GB of memory: `MAX_SAMPLES` of
29 joints."""

MAX_ANGLE_RAD = 2 * math.pi
"""Maximum angle: no joint reaches it, so a larger number is not an angle in rad."""

MAX_TIME_S = 1e11
"""Maximum time: a larger number is not a time in seconds."""

_UNKNOWN_BUILD = numbered_build(100, 0)
"""A machine unknown to rote, with more slots than any message has."""
_LIST_FIELDS = ("names", "marks", "history", "tags")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeMetadata:
    """Everything about a track except its times and angles, and the tags that a library gave it."""

    names: tuple[str, ...]
    variant: str = ""
    """The name of the build; derived from the joints if it is empty."""
    source: str = ""
    marks: tuple[Mark, ...] = ()
    history: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    origin: Origin | None = None

    def __post_init__(self) -> None:
        if not self.variant:
            object.__setattr__(self, "variant", find_variant(self.names))


class Summary(NamedTuple):
    """A short description of a file's content."""

    metadata: TakeMetadata
    samples: int
    duration_s: float


@dataclass(frozen=True, slots=True)
class FileLocation:
    """How errors name a file and its samples."""

    file: str
    row_noun: str = "row"
    """What the format calls one sample: row, sample, message or frame."""
    first_row: int = 1
    """The number of the first sample's row."""

    @property
    def source(self) -> str:
        """The source of a track whose file does not state it."""
        return f"file {self.file.rpartition('/')[2]}"

    def error(self, problem: str, remedy: str = "") -> BadRequestError:
        """Return an error about the file."""
        return BadRequestError(f"{self.file}: {problem}", remedy)

    def row_error(self, sample: int, problem: str, remedy: str = "") -> BadRequestError:
        """Return an error about one sample, counted from 0."""
        return self.error(
            f"{self.row_noun} {sample + self.first_row} cannot be read: {problem}", remedy
        )


def metadata_of(track: Track, tags: tuple[str, ...] = ()) -> TakeMetadata:
    """Return a track's metadata; refuse text that cannot be written as UTF-8."""
    return check_texts(
        TakeMetadata(
            names=track.names,
            variant=track.variant,
            source=track.source,
            marks=track.marks,
            history=track.history,
            tags=tags,
            origin=track.origin,
        )
    )


def check_texts(metadata: TakeMetadata) -> TakeMetadata:
    """Return the metadata unchanged; refuse text that cannot be written as UTF-8."""
    texts = (*metadata.names, metadata.variant, metadata.source, *metadata.history, *metadata.tags)
    texts += () if metadata.origin is None else tuple(asdict(metadata.origin).values())
    for text in (*texts, *(mark.label for mark in metadata.marks)):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise BadRequestError(f"{text!r} cannot be written as UTF-8") from None
    return metadata


def to_document(metadata: TakeMetadata) -> dict[str, Any]:
    """Return metadata as values that JSON can hold."""
    origin = {} if metadata.origin is None else {"origin": asdict(metadata.origin)}
    return {
        "variant": metadata.variant,
        "source": metadata.source,
        "names": list(metadata.names),
        "marks": [{"time_s": mark.time_s, "label": mark.label} for mark in metadata.marks],
        "history": list(metadata.history),
        "tags": list(metadata.tags),
        **origin,
    }


def from_document(document: object, location: FileLocation) -> TakeMetadata:
    """Return the metadata that `to_document` made. Only the names are required."""
    if not isinstance(document, dict):
        raise location.error("it does not hold a track")
    lists = {name: _read_list(document, name, location) for name in _LIST_FIELDS}
    return TakeMetadata(
        names=tuple(_read_texts(lists["names"], "names", location)),
        variant=_require_type(str, document.get("variant", ""), "variant", location),
        source=_require_type(str, document.get("source", location.source), "source", location),
        marks=tuple(_read_mark(mark, location) for mark in lists["marks"]),
        history=tuple(_read_texts(lists["history"], "history", location)),
        tags=tuple(_read_texts(lists["tags"], "tags", location)),
        origin=_read_origin(document.get("origin"), location),
    )


def _read_list(document: dict[str, Any], name: str, location: FileLocation) -> list[Any]:
    return _require_type(list, document.get(name, []), name, location)


def _read_texts(values: list[Any], field: str, location: FileLocation) -> list[str]:
    return [_require_type(str, value, field, location) for value in values]


def _read_mark(value: object, location: FileLocation) -> Mark:
    mark = _require_type(dict, value, "marks", location)
    time_s: Any = mark.get("time_s")
    # The comparison also refuses NaN, infinity, and integers too large for a float.
    if type(time_s) not in {int, float} or not abs(time_s) <= sys.float_info.max:
        raise location.error(f"the mark {mark} has no time")
    label = mark.get("label", mark.get("words"))  # "words" until version 0.2
    return Mark(float(time_s), _require_type(str, label, "marks", location))


def _read_origin(value: object, location: FileLocation) -> Origin | None:
    if value is None:
        return None
    values = _require_type(dict, value, "origin", location)
    names = [field.name for field in fields(Origin)]
    return Origin(*(_require_type(str, values.get(name, ""), "origin", location) for name in names))


def _require_type(required: type[T], value: object, field: str, location: FileLocation) -> T:
    """Return a value of a metadata field; refuse one that is not of the required type."""
    if not isinstance(value, required):
        raise location.error(
            f"its {field} cannot be read: {value!r:.60} is not a {required.__name__}"
        )
    return value


def assemble_track(
    metadata: TakeMetadata,
    times_s: Array,
    joints_rad: Array,
    location: FileLocation,
    root: Array | None = None,
) -> Track:
    """Make a track of (n,) times and (n, joints) angles; refuse the first bad row.

    `root` is (n, 7): the position of the base in m, and its quaternion, w first.
    """
    width = len(metadata.names)
    if times_s.ndim != 1 or joints_rad.shape != (times_s.size, width):
        raise location.error(
            f"{width} joint names and {times_s.size} times do not fit "
            f"angles of shape {joints_rad.shape}"
        )
    if not times_s.size:
        raise location.error("a motion needs 2 samples, but this one has none")
    check_length(times_s.size, width, location)
    if (sample := find_invalid_sample(times_s, joints_rad)) is not None:
        raise location.row_error(
            sample, _describe_problem(times_s, joints_rad, metadata.names, sample)
        )
    return Track(
        times_s=times_s,
        joints_rad=joints_rad,
        names=metadata.names,
        variant=metadata.variant,
        source=metadata.source,
        marks=metadata.marks,
        history=metadata.history,
        root=None if root is None else make_root_path(root, times_s.size, location),
        origin=metadata.origin,
    )


def make_root_path(root: Array, samples: int, location: FileLocation) -> RootPath:
    """Return (n, 7) numbers, as in `assemble_track`, as the path of a base; refuse invalid ones."""
    if root.shape != (samples, 7):
        raise location.error(f"{samples} samples do not match a root of shape {root.shape}")
    try:
        return RootPath(root[:, :3], root[:, 3:])
    except BadRequestError as error:
        raise location.error(str(error)) from None


def to_root_rows(root: RootPath) -> Array:
    """Return the path of a base as (n, 7) numbers, as `make_root_path` reads them."""
    return np.column_stack([root.position_m, root.quaternion_wxyz])


def check_length(samples: int, joints: int, location: FileLocation) -> None:
    """Refuse a file with more samples than rote reads."""
    if samples > max_samples(joints):
        raise make_too_long_error(location, joints)


def max_samples(joints: int) -> int:
    """Return the maximum number of samples that rote reads for this number of joints."""
    return min(MAX_SAMPLES, MAX_VALUES // (joints + 1))  # one more for the time


def make_too_long_error(location: FileLocation, joints: int = 0) -> BadRequestError:
    """Return the error for a file with more samples than rote reads."""
    return location.error(
        f"it holds more than {max_samples(joints):,} samples", "Cut it into pieces, or resample it."
    )


def find_invalid_sample(times_s: Array, joints_rad: Array) -> int | None:
    """Return the first sample with a value that is not finite, or a time that is not later than the
    one before; None if all are valid.
    """
    is_valid = np.isfinite(times_s) & np.isfinite(joints_rad).all(axis=1)
    with np.errstate(invalid="ignore"):
        is_valid[1:] &= np.diff(times_s) > 0
    return None if is_valid.all() else int(np.argmin(is_valid))


def _describe_problem(
    times_s: Array, joints_rad: Array, names: tuple[str, ...], sample: int
) -> str:
    if np.isfinite(times_s[sample]) and np.isfinite(joints_rad[sample]).all():
        return f"its time {times_s[sample]} is not later than the one before"
    invalid = np.flatnonzero(~np.isfinite(joints_rad[sample]))
    culprit = names[invalid[0]] if invalid.size else "its time"
    return f"{culprit} is not a number"


def find_variant(names: tuple[str, ...]) -> str:
    """Return the name of the build that has these joints; if none has any, of the first build.

    Numbered joints are those of a machine that rote does not know.
    """
    if names and set(names) <= set(_UNKNOWN_BUILD.names):
        return _UNKNOWN_BUILD.name
    build = build_with(names) or registry.families()[0].default
    return build.name


def check_playable(track: Track, location: FileLocation) -> None:
    """Refuse a track that can never be played."""
    if len(track) < 2:
        raise location.error(f"a motion needs 2 samples, but this one has {len(track)}")
    if not track.names or not all(track.names) or len(set(track.names)) < len(track.names):
        raise location.error(f"each joint of a motion needs its own name, not {list(track.names)}")
    if (is_too_large := np.abs(track.times_s) > MAX_TIME_S).any():
        sample = int(np.argmax(is_too_large))
        problem = f"its time {track.times_s[sample]:g} is too large for a time in seconds"
        raise location.row_error(sample, problem, "Write times in seconds, best beginning at 0.")


def check_joints(track: Track, location: FileLocation) -> None:
    """Raise `BadRequestError` for joints that the robot lacks; an unknown robot is not checked."""
    build = registry.find_build(track.variant)
    if build is None:
        return
    known = {*build.names, *hand_joints(build)}
    unknown = [name for name in track.names if name not in known]
    if unknown:
        raise location.error(
            f"{build.name} has no joint {unknown[0]!r}"
            + (f" (and {len(unknown) - 1} more are unknown)" if len(unknown) > 1 else ""),
            did_you_mean(unknown[0], build.names),
        )


def check_unit(track: Track, location: FileLocation) -> None:
    """Refuse angles that no joint reaches: they are in degrees, most likely."""
    if track.joints_rad.max() <= MAX_ANGLE_RAD and track.joints_rad.min() >= -MAX_ANGLE_RAD:
        return
    is_too_large = np.abs(track.joints_rad) > MAX_ANGLE_RAD
    sample, joint = divmod(int(np.argmax(is_too_large)), len(track.names))
    value = track.joints_rad[sample, joint]
    raise location.row_error(
        sample,
        f"{track.names[joint]} is {value:g}, and no joint goes beyond {MAX_ANGLE_RAD:.2f} rad; "
        "these look like degrees",
        Text("If they are: {convert}.", convert=Act.FROM_DEGREES),
    )
