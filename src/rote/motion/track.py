"""Track: one joint trajectory on our side, with times, names and where it came from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rote.errors import BadRequestError

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Track:
    """Joint angles over time. Immutable: the arrays cannot be written to."""

    times_s: Array
    """Shape (n,), strictly increasing, beginning anywhere."""
    joints_rad: Array
    """Shape (n, joints)."""
    names: tuple[str, ...]
    """One joint name per column."""
    variant: str = "g1-29"
    source: str = ""
    """Where it came from, in words: `teach wave over udp`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "times_s", _frozen(self.times_s))
        object.__setattr__(self, "joints_rad", _frozen(self.joints_rad))
        self._check()

    def _check(self) -> None:
        if self.times_s.ndim != 1 or self.joints_rad.shape != (len(self), len(self.names)):
            raise BadRequestError(
                f"a track of {self.times_s.size} times and {len(self.names)} names "
                f"cannot have joints of shape {self.joints_rad.shape}"
            )
        if not np.isfinite(self.times_s).all() or not np.isfinite(self.joints_rad).all():
            raise BadRequestError("a track holds a value that is not a number")
        steps = np.diff(self.times_s)
        if (steps <= 0).any():
            row = int(np.argmax(steps <= 0)) + 1
            raise BadRequestError(f"the time in row {row} of a track is not after the one before")

    def __len__(self) -> int:
        return int(self.times_s.size)

    @property
    def duration_s(self) -> float:
        """Time from the first to the last sample; 0 for a track of one sample or none."""
        return float(self.times_s[-1] - self.times_s[0]) if len(self) > 1 else 0.0

    @property
    def rate_hz(self) -> float:
        """The measured mean rate; 0 where it cannot be told."""
        return (len(self) - 1) / self.duration_s if self.duration_s else 0.0

    @property
    def longest_gap_s(self) -> float:
        """The longest time between two samples."""
        return float(np.diff(self.times_s).max()) if len(self) > 1 else 0.0


def _frozen(values: ArrayLike) -> Array:
    array: Array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array
