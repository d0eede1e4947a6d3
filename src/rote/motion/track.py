"""Track: joint angles over time, with joint names and where it came from."""

import hashlib
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rote.errors import BadRequestError, MissingExtraError
from rote.motion.body.root_path import RootPath
from rote.motion.track_edits import TrackEdits
from rote.text import suggest_names

if TYPE_CHECKING:
    from rote.model.family import Build
    from rote.motion.check.report import CheckReport
    from rote.motion.files import FilePath

__all__ = ["Track", "Mark", "Origin"]

Array = NDArray[np.float64]

ROOT_LOST = "the path of the root is left out"
"""What an edit that cannot keep the path of the root adds to the history."""


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return a remedy for an unknown name: the known ones that are similar, otherwise all."""
    return suggest_names(name, known) or f"It has {', '.join(known)}."


@dataclass(frozen=True, slots=True)
class Mark:
    """A time in a track with a label."""

    time_s: float
    """In seconds, on the clock of the track's `times_s`."""
    label: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an imported motion came from: another party's file."""

    format: str
    """How the file was read: `unitree-csv`."""
    file: str
    """The file's name, without its folders."""
    licence: str = ""
    """The terms it may be used under, as text; empty if they are not known."""
    address: str = ""
    """Where it was published, or its author, as text; empty if that is not known."""
    digest: str = ""
    """A hash of the file's content. A person must agree to this content before it is played."""

    @staticmethod
    def of(*tracks: "Track") -> "Origin | None":
        """Return the origin of a motion made from several tracks: all of theirs, joined by ` + `.

        None if none of the tracks was imported.
        """
        # The keys of a dictionary are distinct, and in the order in which they were added.
        origins = list(dict.fromkeys(track.origin for track in tracks if track.origin is not None))
        if len(origins) < 2:
            return origins[0] if origins else None

        def join_texts(texts: Iterable[str]) -> str:
            return " + ".join(dict.fromkeys(text or "?" for text in texts))

        digests = "+".join(sorted(origin.digest for origin in origins))
        return Origin(
            format=join_texts(origin.format for origin in origins),
            file=join_texts(origin.file for origin in origins),
            licence=join_texts(origin.licence for origin in origins),
            address=join_texts(origin.address for origin in origins),
            digest=hashlib.sha256(digests.encode()).hexdigest()[:32],
        )


class _Changes(TypedDict, total=False):
    """The fields of `Track` that an edit may change."""

    times_s: Array
    joints_rad: Array
    names: tuple[str, ...]
    variant: str
    marks: tuple[Mark, ...]
    root: RootPath | None
    origin: "Origin | None"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Track(TrackEdits):
    """Joint angles over time. Immutable: the arrays cannot be written to, an edit returns a new
    track.

    `track.trim(auto=True).smooth().save("wave.mcap")` edits and saves. Raises `BadRequestError` if
    it has no sample, the shapes do not fit, a value is not finite, or the times do not increase.
    """

    times_s: Array
    """Seconds, shape (n,), strictly increasing, beginning anywhere."""
    joints_rad: Array
    """Shape (n, joints)."""
    names: tuple[str, ...]
    """One joint name per column."""
    variant: str = "g1-29"
    source: str = ""
    """Where it came from, as text: `teach wave over udp`."""
    marks: tuple[Mark, ...] = ()
    """In the order of their times, which may be outside the track; a trim drops such marks."""
    history: tuple[str, ...] = ()
    """How the track was made, one line per edit: `smooth at 5 Hz`."""
    root: RootPath | None = None
    """The path of the robot's base, a row per sample; None if not known. It is not played."""
    origin: Origin | None = None
    """The file that the motion was imported from; None if it was taught with rote. A robot plays an
    imported motion only if a person agrees.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "times_s", _freeze_array(self.times_s))
        object.__setattr__(self, "joints_rad", _freeze_array(self.joints_rad))
        self._validate()
        object.__setattr__(self, "marks", tuple(sorted(self.marks, key=lambda m: m.time_s)))

    def _validate(self) -> None:
        if self.times_s.ndim != 1 or self.joints_rad.shape != (len(self), len(self.names)):
            raise BadRequestError(
                f"a track of {self.times_s.size} times and {len(self.names)} names "
                f"cannot have joints of shape {self.joints_rad.shape}"
            )
        if not len(self):
            raise BadRequestError("a track needs at least one sample")
        if not np.isfinite(self.times_s).all() or not np.isfinite(self.joints_rad).all():
            raise BadRequestError("a track holds a value that is not a number")
        if self.root is not None and len(self.root) != len(self):
            raise BadRequestError(
                f"a track of {len(self)} samples cannot have a root of {len(self.root)}"
            )
        for mark in self.marks:
            if not math.isfinite(mark.time_s):
                raise BadRequestError(
                    f"the time of the mark {mark.label!r} is {mark.time_s}, not a number"
                )
        steps = np.diff(self.times_s)
        if (steps <= 0).any():
            row = int(np.argmax(steps <= 0)) + 1
            raise BadRequestError(
                f"the time in row {row} of a track is not later than the one before"
            )

    def edited(self, line: str, **changes: Unpack[_Changes]) -> "Track":
        """Return this track with `changes`, and `line` added to its history.

        If the times change and no new root path is given, the path is lost, and the line says so.
        """
        if self.root is not None and "times_s" in changes and "root" not in changes:
            changes["root"] = None
        if self.root is not None and changes.get("root", self.root) is None:
            line = f"{line}; {ROOT_LOST}"
        return replace(self, history=(*self.history, line), **changes)

    def require_samples(self, samples: int) -> None:
        """Raise `BadRequestError` if the track has fewer than `samples` samples, or no joints."""
        if len(self) < samples or not self.names:
            raise BadRequestError(
                f"this needs {samples} samples and a joint; "
                f"the track has {len(self)} samples of {len(self.names)} joints"
            )

    def choose_joints(self, joints: Collection[str]) -> tuple[str, ...]:
        """Return these joints in the track's order.

        Raises `BadRequestError` if none is named, or one that the track does not have.
        """
        if not joints:
            raise BadRequestError("no joint was named", did_you_mean("", self.names))
        unknown = [name for name in joints if name not in self.names]
        if unknown:
            raise BadRequestError(
                f"the track has no {', '.join(unknown)}", did_you_mean(unknown[0], self.names)
            )
        return tuple(name for name in self.names if name in joints)

    def columns_of(self, names: Collection[str]) -> list[int]:
        """Return the column of each joint, in the order of `names`."""
        return [self.names.index(name) for name in names]

    def check(
        self, *, build: "Build | str | None" = None, contact: bool = True, payload_kg: float = 0.0
    ) -> "CheckReport":
        """Return all problems with playing this track, the worst first.

        The arguments are those of `rote.check`.
        """
        from rote.motion.check.rules import check  # noqa: PLC0415 - it takes a track

        return check(self, build=build, contact=contact, payload_kg=payload_kg)

    def save(self, path: "FilePath") -> str:
        """Write the track in the format of the file's ending; return what that loses, as text.

        Raises what `rote.save` raises.
        """
        from rote.motion.files import save  # noqa: PLC0415 - it takes a track

        return save(self, path)

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`: a row for each sample, a column in rad for each joint.

        The index is the time in seconds. Raises `MissingExtraError` if pandas is not installed.
        """
        try:
            import pandas  # noqa: PLC0415 - optional, the extra `pandas`
        except ImportError as error:
            raise MissingExtraError("a table of pandas", "pandas") from error
        index = pandas.Index(self.times_s, name="time_s")
        # pandas 2 keeps the array that it is given, and a track's cannot be written.
        return pandas.DataFrame(self.joints_rad.copy(), index=index, columns=list(self.names))

    def __repr__(self) -> str:
        what = f"{len(self.names)} joints of {self.variant}, {len(self)} samples"
        source = f", {self.source}" if self.source else ""
        return f"<Track of {self.duration_s:.2f} s: {what} at {self.rate_hz:.0f} Hz{source}>"

    def __len__(self) -> int:
        return int(self.times_s.size)

    @property
    def duration_s(self) -> float:
        """The time from the first to the last sample; 0 for a track of one sample."""
        return float(self.times_s[-1] - self.times_s[0]) if len(self) > 1 else 0.0

    @property
    def rate_hz(self) -> float:
        """The measured mean rate; 0 if it cannot be computed."""
        return (len(self) - 1) / self.duration_s if self.duration_s else 0.0

    @property
    def longest_gap_s(self) -> float:
        """The longest time between two samples."""
        return float(np.diff(self.times_s).max()) if len(self) > 1 else 0.0


def _freeze_array(values: ArrayLike) -> Array:
    """Return the values as a read-only array: a copy, unless `values` is one already."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and _is_immutable(values):
        return values
    array: Array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


def _is_immutable(values: Array) -> bool:
    """Return whether an array is read-only and not a view of another one."""
    return not values.flags.writeable and values.flags.owndata and values.flags.c_contiguous
