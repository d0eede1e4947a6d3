"""What a file says about a track besides its numbers, and a track put together from both.

JSON, NPZ and MCAP hold the same metadata. What cannot be used is refused here, with the file and
the row in the error.
"""

import math
import sys
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rote.errors import BadRequestError
from rote.model import registry
from rote.model.family import numbered
from rote.motion.body.root_path import RootPath
from rote.motion.track import Array, Mark, Origin, Track, did_you_mean
from rote.motion.track_build import build_with, hand_joints
from rote.text import Act, Text

MAX_SAMPLES = 10_000_000
"""Longer tracks are neither written nor read: this is five and a half hours at 500 Hz."""

MAX_VALUES = 300_000_000
"""More angles and times are neither written nor read: they take 2.4 GB of memory. This is
`MAX_SAMPLES` of 29 joints."""

MAX_ANGLE_RAD = 2 * math.pi
"""No joint of a robot reaches this, so a larger number is no angle in rad."""

MAX_TIME_S = 1e11
"""No clock shows more seconds, so a larger number is no time in seconds."""

_UNKNOWN = numbered(100, 0)
"""A machine that rote does not know, with more slots than any message has."""
_LISTS = ("names", "marks", "history", "tags")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeMetadata:
    """Everything about a track except its times and angles, and the tags that a library gave it."""

    names: tuple[str, ...]
    variant: str = ""
    """The name of the build; derived from the joints if it is not stated."""
    source: str = ""
    marks: tuple[Mark, ...] = ()
    history: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    origin: Origin | None = None

    def __post_init__(self) -> None:
        if not self.variant:
            object.__setattr__(self, "variant", variant_with(self.names))


class Summary(NamedTuple):
    """A short description of a file's content."""

    metadata: TakeMetadata
    samples: int
    duration_s: float


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A place in a file: which file, and what a sample is called there."""

    file: str
    row: str = "row"
    first: int = 1
    """The number of the first sample's row."""

    @property
    def source(self) -> str:
        """The source of a track whose file does not state it."""
        return f"file {self.file.rpartition('/')[2]}"

    def refuse(self, problem: str, remedy: str = "") -> BadRequestError:
        """Return an error about the file."""
        return BadRequestError(f"{self.file}: {problem}", remedy)

    def refuse_row(self, sample: int, problem: str, remedy: str = "") -> BadRequestError:
        """Return an error about one sample, counted from 0."""
        return self.refuse(f"{self.row} {sample + self.first} cannot be read: {problem}", remedy)


def metadata_of(track: Track, tags: tuple[str, ...] = ()) -> TakeMetadata:
    """Return a track's metadata; refuse characters that no file can hold."""
    metadata = TakeMetadata(
        names=track.names,
        variant=track.variant,
        source=track.source,
        marks=track.marks,
        history=track.history,
        tags=tags,
        origin=track.origin,
    )
    texts = (*track.names, track.variant, track.source, *track.history, *tags)
    texts += () if track.origin is None else tuple(asdict(track.origin).values())
    for text in (*texts, *(mark.label for mark in track.marks)):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise BadRequestError(f"{text!r} cannot be written as UTF-8") from None
    return metadata


def to_document(metadata: TakeMetadata) -> dict[str, Any]:
    """Return metadata as JSON data."""
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


def from_document(document: object, place: FilePlace) -> TakeMetadata:
    """Read metadata back. Only the names are required."""
    if not isinstance(document, dict):
        raise place.refuse("it does not hold a track")
    given = {name: _listed(document, name, place) for name in _LISTS}
    return TakeMetadata(
        names=tuple(_texts(given["names"], "names", place)),
        variant=_as(str, document.get("variant", ""), "variant", place),
        source=_as(str, document.get("source", place.source), "source", place),
        marks=tuple(_mark(mark, place) for mark in given["marks"]),
        history=tuple(_texts(given["history"], "history", place)),
        tags=tuple(_texts(given["tags"], "tags", place)),
        origin=_origin(document.get("origin"), place),
    )


def _listed(document: dict[str, Any], name: str, place: FilePlace) -> list[Any]:
    return _as(list, document.get(name, []), name, place)


def _texts(values: list[Any], what: str, place: FilePlace) -> list[str]:
    return [_as(str, value, what, place) for value in values]


def _mark(value: object, place: FilePlace) -> Mark:
    mark = _as(dict, value, "marks", place)
    time_s: Any = mark.get("time_s")
    if type(time_s) not in {int, float} or not abs(time_s) <= sys.float_info.max:
        raise place.refuse(f"the mark {mark} has no time")
    label = mark.get("label", mark.get("words"))  # "words" until version 0.2
    return Mark(float(time_s), _as(str, label, "marks", place))


def _origin(value: object, place: FilePlace) -> Origin | None:
    if value is None:
        return None
    given = _as(dict, value, "origin", place)
    names = [field.name for field in fields(Origin)]
    return Origin(*(_as(str, given.get(name, ""), "origin", place) for name in names))


def _as(kind: type[T], value: object, what: str, place: FilePlace) -> T:
    if not isinstance(value, kind):
        raise place.refuse(f"its {what} cannot be read: {value!r:.60} is no {kind.__name__}")
    return value


def assemble(
    metadata: TakeMetadata,
    times_s: Array,
    joints_rad: Array,
    place: FilePlace,
    root: Array | None = None,
) -> Track:
    """Make a track of (n,) times and (n, joints) angles; refuse the first bad row.

    `root` is (n, 7): the position of the base in m, and its quaternion, w first.
    """
    width = len(metadata.names)
    if times_s.ndim != 1 or joints_rad.shape != (times_s.size, width):
        raise place.refuse(
            f"{width} joint names and {times_s.size} times cannot go "
            f"with angles of shape {joints_rad.shape}"
        )
    check_length(times_s.size, width, place)
    if (sample := first_unsound(times_s, joints_rad)) is not None:
        raise place.refuse_row(sample, _problem(times_s, joints_rad, metadata.names, sample))
    return Track(
        times_s=times_s,
        joints_rad=joints_rad,
        names=metadata.names,
        variant=metadata.variant,
        source=metadata.source,
        marks=metadata.marks,
        history=metadata.history,
        root=None if root is None else root_path(root, times_s.size, place),
        origin=metadata.origin,
    )


def root_path(root: Array, samples: int, place: FilePlace) -> RootPath:
    """Make the path of a root of (n, 7) numbers; refuse one that is none."""
    if root.shape != (samples, 7):
        raise place.refuse(f"{samples} samples cannot go with a root of shape {root.shape}")
    try:
        return RootPath(root[:, :3], root[:, 3:])
    except BadRequestError as error:
        raise place.refuse(str(error)) from None


def root_rows(root: RootPath) -> Array:
    """Return a root's path as (n, 7) numbers."""
    return np.column_stack([root.position_m, root.quaternion_wxyz])


def check_length(samples: int, joints: int, place: FilePlace) -> None:
    """Refuse more samples than are read."""
    if samples > max_samples(joints):
        raise too_long(place, joints)


def max_samples(joints: int) -> int:
    """Return how many samples of so many joints are read at most."""
    return min(MAX_SAMPLES, MAX_VALUES // (joints + 1))


def too_long(place: FilePlace, joints: int = 0) -> BadRequestError:
    """Return the error for more samples than are read."""
    return place.refuse(
        f"it holds more than {max_samples(joints):,} samples", "Cut it into pieces, or resample it."
    )


def first_unsound(times_s: Array, joints_rad: Array) -> int | None:
    """Return the first sample that is not finite or not after the one before."""
    sound = np.isfinite(times_s) & np.isfinite(joints_rad).all(axis=1)
    with np.errstate(invalid="ignore"):
        sound[1:] &= np.diff(times_s) > 0
    return None if sound.all() else int(np.argmin(sound))


def _problem(times_s: Array, joints_rad: Array, names: tuple[str, ...], sample: int) -> str:
    if np.isfinite(times_s[sample]) and np.isfinite(joints_rad[sample]).all():
        return f"its time {times_s[sample]} is not after the one before"
    strange = np.flatnonzero(~np.isfinite(joints_rad[sample]))
    where = names[strange[0]] if strange.size else "its time"
    return f"{where} is not a number"


def variant_with(names: tuple[str, ...]) -> str:
    """Return the build that has these joints; if none has any, the first build.

    Numbered joints are those of a machine that rote does not know.
    """
    if names and set(names) <= set(_UNKNOWN.names):
        return _UNKNOWN.name
    build = build_with(names) or registry.families()[0].default
    return build.name


def check(track: Track, place: FilePlace) -> None:
    """Refuse what could never be played, whoever wrote it."""
    if len(track) < 2:
        raise place.refuse(f"a motion needs 2 samples, here {'is 1' if len(track) else 'are none'}")
    if not track.names or not all(track.names) or len(set(track.names)) < len(track.names):
        raise place.refuse(f"a motion needs joints with one name each, not {list(track.names)}")
    if (beyond := np.abs(track.times_s) > MAX_TIME_S).any():
        sample = int(np.argmax(beyond))
        problem = f"its time {track.times_s[sample]:g} is more seconds than any clock shows"
        raise place.refuse_row(sample, problem, "Write times in seconds, best beginning at 0.")


def check_joints(track: Track, place: FilePlace) -> None:
    """Refuse joints that the robot does not have; an unknown robot is not judged."""
    build = registry.find_build(track.variant)
    if build is None:
        return
    known = {*build.names, *hand_joints(build)}
    strangers = [name for name in track.names if name not in known]
    if strangers:
        raise place.refuse(
            f"{build.name} has no joint {strangers[0]!r}"
            + (f" (and {len(strangers) - 1} more are wrong)" if len(strangers) > 1 else ""),
            did_you_mean(strangers[0], build.names),
        )


def check_unit(track: Track, place: FilePlace) -> None:
    """Refuse angles that no joint reaches: they are in degrees, most likely."""
    if track.joints_rad.max() <= MAX_ANGLE_RAD and track.joints_rad.min() >= -MAX_ANGLE_RAD:
        return
    beyond = np.abs(track.joints_rad) > MAX_ANGLE_RAD
    sample, joint = divmod(int(np.argmax(beyond)), len(track.names))
    value = track.joints_rad[sample, joint]
    raise place.refuse_row(
        sample,
        f"{track.names[joint]} is {value:g}, and no joint goes beyond {MAX_ANGLE_RAD:.2f} rad; "
        "these look like degrees",
        Text("If they are: {convert}.", convert=Act.FROM_DEGREES),
    )
