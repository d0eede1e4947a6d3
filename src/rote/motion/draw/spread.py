"""How much several takes of one motion differ over time: the band that they fill."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rote.errors import BadRequestError
from rote.motion.compare import average, sample_aligned
from rote.motion.edit.align import align
from rote.motion.track import Array, Track

__all__ = ["Spread", "spread"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """The band of several takes, aligned in time; each array is (n, joints)."""

    mean: Track
    """The average of the takes; the band has its times and joints."""
    takes: int
    low_rad: Array
    high_rad: Array
    deviation_rad: Array
    """The standard deviation."""

    def widest(self, joint: str) -> tuple[float, float]:
        """Return the greatest width of a joint's band in rad, and its time from the start in s."""
        column = self.mean.names.index(joint)
        width = self.high_rad[:, column] - self.low_rad[:, column]
        row = int(width.argmax())
        return float(width[row]), float(self.mean.times_s[row] - self.mean.times_s[0])


def spread(takes: Sequence[Track]) -> Spread:
    """Return the band that two or more takes of the same joints fill.

    Raises `BadRequestError` for fewer than two takes, or takes of different joints.
    """
    if len(takes) < 2:
        raise BadRequestError(
            "a band needs at least two takes", "Name at least two takes of the same motion."
        )
    mean = average(takes)
    poses = np.array([sample_aligned(take, align(mean, take), mean.names) for take in takes])
    return Spread(
        mean=mean,
        takes=len(takes),
        low_rad=poses.min(axis=0),
        high_rad=poses.max(axis=0),
        deviation_rad=poses.std(axis=0),
    )
