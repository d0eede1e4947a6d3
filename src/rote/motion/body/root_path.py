"""The path of a robot's base during a motion: its position and orientation, sample by sample.

Imported whole-body motions have one; a motion taught by hand has none, because it is not measured.
It is never played: arms are streamed to a robot that balances by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rote.errors import BadRequestError

__all__ = ["RootPath"]

Array = NDArray[np.float64]

_LENGTH_TOLERANCE = 1e-3  # of a quaternion, as after rounding to 32 bits or a few digits
_EXACT = 1e-12  # a smaller error of length is not corrected
_PARALLEL = 0.9995  # cosine above which a straight line between quaternions is as good as an arc
_MAX_DISTANCE_M = 1e5


@dataclass(frozen=True, slots=True, eq=False)
class RootPath:
    """The base's path through the world, z up. Immutable, like the track it belongs to.

    Raises `BadRequestError` for wrong shapes, values that are not finite or too far away, and
    quaternions whose length is not 1.
    """

    position_m: Array
    """(n, 3): x, y, z."""
    quaternion_wxyz: Array
    """(n, 4): w first, of length 1; it turns the base's axes into the world's."""

    def __post_init__(self) -> None:
        position = np.array(self.position_m, dtype=np.float64)
        quaternion = np.array(self.quaternion_wxyz, dtype=np.float64)
        if position.shape != (len(position), 3) or quaternion.shape != (len(position), 4):
            raise BadRequestError(
                f"the root's path has positions of shape {position.shape} and quaternions of shape "
                f"{quaternion.shape}, not (n, 3) and (n, 4)"
            )
        # `~(... <=` also refuses NaN.
        is_too_far = ~(np.abs(position) <= _MAX_DISTANCE_M).all(axis=1)
        with np.errstate(over="ignore"):
            length = np.sqrt(np.square(quaternion).sum(axis=1))
        has_wrong_length = ~(np.abs(length - 1.0) <= _LENGTH_TOLERANCE)
        for is_bad, problem in (
            (is_too_far, "the root's position is not a number, or too far from the origin"),
            (has_wrong_length, "the root's quaternion is not of length 1"),
        ):
            if is_bad.any():
                raise BadRequestError(f"sample {int(np.argmax(is_bad)) + 1}: {problem}")
        if (np.abs(length - 1.0) > _EXACT).any():  # otherwise a file keeps every bit of them
            quaternion /= length[:, None]
        for name, values in (("position_m", position), ("quaternion_wxyz", quaternion)):
            values.setflags(write=False)
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return len(self.position_m)

    @property
    def tilt_rad(self) -> Array:
        """The angle between the base's own z axis and the vertical, (n,)."""
        _, x, y, _ = self.quaternion_wxyz.T
        return np.asarray(np.arccos(np.clip(1.0 - 2.0 * (x * x + y * y), -1.0, 1.0)))

    @property
    def yaw_rad(self) -> Array:
        """The direction that the base faces: the angle of its x axis on the floor, (n,)."""
        w, x, y, z = self.quaternion_wxyz.T
        return np.asarray(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))

    def rows(self, chosen: Any) -> "RootPath":
        """Return the path with only the samples `chosen`, by a slice, a mask or indices."""
        return RootPath(self.position_m[chosen], self.quaternion_wxyz[chosen])

    def at(self, times_s: Array, at_s: Array) -> "RootPath":
        """Return the path at other times, `at_s`; `times_s` are the times of its samples.

        Positions are interpolated on straight lines, orientations on arcs. Before the first sample
        and after the last one, the path stays there.
        """
        if len(self) == 1 or not at_s.size:
            return self.rows(np.zeros(at_s.size, dtype=np.int64))
        left = np.clip(np.searchsorted(times_s, at_s, side="right") - 1, 0, len(self) - 2)
        share = np.clip((at_s - times_s[left]) / np.diff(times_s)[left], 0.0, 1.0)
        return self.rows(left).interpolate_to(self.rows(left + 1), share)

    def interpolate_to(self, other: "RootPath", share: ArrayLike) -> "RootPath":
        """Return a path between this one, for a share of 0, and another of equal length, for 1.

        `share` is one number, or one for each sample.
        """
        weights: Array = np.broadcast_to(np.asarray(share, dtype=np.float64), (len(self),))[:, None]
        position = self.position_m + weights * (other.position_m - self.position_m)
        begin, end = self.quaternion_wxyz, other.quaternion_wxyz
        cosine = (begin * end).sum(axis=1, keepdims=True)
        end, cosine = np.where(cosine < 0, -end, end), np.abs(cosine)  # the shorter arc
        angle = np.arccos(np.clip(cosine, -1.0, 1.0))
        is_nearly_parallel = cosine > _PARALLEL
        sine = np.where(is_nearly_parallel, 1.0, np.sin(angle))
        arc_begin = np.sin((1.0 - weights) * angle) / sine
        begin_weights = np.where(is_nearly_parallel, 1.0 - weights, arc_begin)
        end_weights = np.where(is_nearly_parallel, weights, np.sin(weights * angle) / sine)
        quaternion = begin_weights * begin + end_weights * end
        return RootPath(position, quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True))

    def mirror(self) -> "RootPath":
        """Return the path with left and right exchanged."""
        return RootPath(
            self.position_m * (1.0, -1.0, 1.0), self.quaternion_wxyz * (1.0, -1.0, 1.0, -1.0)
        )

    def placed_after(self, other: "RootPath") -> "RootPath":
        """Return this path moved over the floor and turned about the vertical so that it begins
        where `other` ends. Height and tilt do not change.
        """
        turn_rad = float(other.yaw_rad[-1] - self.yaw_rad[0])
        cosine, sine = np.cos(turn_rad), np.sin(turn_rad)
        from_start = self.position_m[:, :2] - self.position_m[0, :2]
        turned = from_start @ np.array([[cosine, sine], [-sine, cosine]])
        position = np.column_stack([turned + other.position_m[-1, :2], self.position_m[:, 2]])
        # The product of the turn's quaternion, (a, 0, 0, b), and each orientation.
        w, x, y, z = self.quaternion_wxyz.T
        a, b = np.cos(turn_rad / 2), np.sin(turn_rad / 2)
        quaternion = np.column_stack([a * w - b * z, a * x - b * y, a * y + b * x, a * z + b * w])
        return RootPath(position, quaternion)

    @staticmethod
    def concatenate(parts: "Sequence[RootPath]") -> "RootPath":
        """Return several paths in sequence as one."""
        return RootPath(
            np.concatenate([part.position_m for part in parts]),
            np.concatenate([part.quaternion_wxyz for part in parts]),
        )

    @staticmethod
    def standing(samples: int, height_m: float) -> "RootPath":
        """Return the path of a base that stays upright at the origin, at `height_m`."""
        quaternion = np.tile([1.0, 0.0, 0.0, 0.0], (samples, 1))
        return RootPath(np.tile([0.0, 0.0, height_m], (samples, 1)), quaternion)
