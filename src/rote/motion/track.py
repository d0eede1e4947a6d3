"""Track: joint angles over time, with joint names and where it came from."""

import difflib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rote.errors import BadRequestError

__all__ = ["Track", "Mark"]

Array = NDArray[np.float64]


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return a remedy for an unknown name: the known ones that are similar, otherwise all."""
    near = difflib.get_close_matches(name, known)
    return f"Did you mean {' or '.join(near)}?" if near else f"It has {', '.join(known)}."


@dataclass(frozen=True, slots=True)
class Mark:
    """A time in a track with a label."""

    time_s: float
    """On the clock of the track's times."""
    label: str


class _Changes(TypedDict, total=False):
    """What an edit may change: fields of `Track`."""

    times_s: Array
    joints_rad: Array
    names: tuple[str, ...]
    variant: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Track:
    """Joint angles over time. Immutable: the arrays cannot be written to.

    Raises `BadRequestError` if the shapes do not fit, a value is not finite, or the times do not
    increase.
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
    """In the order of their times; they may lie anywhere, but a trim drops those outside."""
    history: tuple[str, ...] = ()
    """How it was made, one line per edit: `smooth at 5 Hz`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "times_s", _frozen(self.times_s))
        object.__setattr__(self, "joints_rad", _frozen(self.joints_rad))
        self._check()
        object.__setattr__(self, "marks", tuple(sorted(self.marks, key=lambda m: m.time_s)))

    def _check(self) -> None:
        if self.times_s.ndim != 1 or self.joints_rad.shape != (len(self), len(self.names)):
            raise BadRequestError(
                f"a track of {self.times_s.size} times and {len(self.names)} names "
                f"cannot have joints of shape {self.joints_rad.shape}"
            )
        if not np.isfinite(self.times_s).all() or not np.isfinite(self.joints_rad).all():
            raise BadRequestError("a track holds a value that is not a number")
        for mark in self.marks:
            if not math.isfinite(mark.time_s):
                raise BadRequestError(f"the mark {mark.label!r} is at {mark.time_s}, not a time")
        steps = np.diff(self.times_s)
        if (steps <= 0).any():
            row = int(np.argmax(steps <= 0)) + 1
            raise BadRequestError(f"the time in row {row} of a track is not after the one before")

    def edited(self, line: str, **changes: Unpack[_Changes]) -> "Track":
        """Return this track with `changes`, and `line` added to its history."""
        return replace(self, history=(*self.history, line), **changes)

    def require_samples(self, samples: int) -> None:
        """Raise `BadRequestError` if the track has fewer samples, or no joints."""
        if len(self) < samples or not self.names:
            raise BadRequestError(
                f"this needs {samples} samples and a joint; "
                f"the track has {len(self)} samples of {len(self.names)} joints"
            )

    def choose_joints(self, joints: Collection[str]) -> tuple[str, ...]:
        """Return these joints in the track's order.

        Raises `BadRequestError` if none is named, or one that the track does not have.
        """
        unknown = [name for name in joints if name not in self.names]
        if unknown or not joints:
            raise BadRequestError(
                f"the track has no {', '.join(unknown)}" if unknown else "no joint was named",
                did_you_mean(unknown[0] if unknown else "", self.names),
            )
        return tuple(name for name in self.names if name in joints)

    def columns_of(self, names: Collection[str]) -> list[int]:
        """Return the column of each joint, in the order of `names`."""
        return [self.names.index(name) for name in names]

    def __len__(self) -> int:
        return int(self.times_s.size)

    @property
    def duration_s(self) -> float:
        """The time from the first to the last sample; 0 for a track of one sample or none."""
        return float(self.times_s[-1] - self.times_s[0]) if len(self) > 1 else 0.0

    @property
    def rate_hz(self) -> float:
        """The measured mean rate; 0 if it cannot be computed."""
        return (len(self) - 1) / self.duration_s if self.duration_s else 0.0

    @property
    def longest_gap_s(self) -> float:
        """The longest time between two samples."""
        return float(np.diff(self.times_s).max()) if len(self) > 1 else 0.0


def _frozen(values: ArrayLike) -> Array:
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and _cannot_change(values):
        return values
    array: Array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


def _cannot_change(values: Array) -> bool:
    """Tell whether nobody can write to an array: not to itself, and it is a view of no other."""
    return not values.flags.writeable and values.flags.owndata and values.flags.c_contiguous
