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

_UNIT = 1e-3  # tolerated error of a quaternion's length, as after 32 bits or a few digits
_ROUNDED = 1e-12
_PARALLEL = 0.9995  # for quaternions this close, a straight line is as good as an arc
_FAR_M = 1e5


@dataclass(frozen=True, slots=True, eq=False)
class RootPath:
    """The base's path through the world, z up. Immutable, like the track it belongs to.

    Raises `BadRequestError` for other shapes, values that are no numbers, and quaternions that are
    not of length 1.
    """

    position_m: Array
    """(n, 3): x, y, z."""
    quaternion_wxyz: Array
    """(n, 4): w first, of length 1; it turns the base's axes into the world's."""

    def __post_init__(self) -> None:
        position = np.array(self.position_m, dtype=np.float64)
        turn = np.array(self.quaternion_wxyz, dtype=np.float64)
        if position.shape != (len(position), 3) or turn.shape != (len(position), 4):
            raise BadRequestError(
                f"the root's path has positions of shape {position.shape} and quaternions of shape "
                f"{turn.shape}, not (n, 3) and (n, 4)"
            )
        far = ~(np.abs(position) <= _FAR_M).all(axis=1)
        with np.errstate(over="ignore"):
            length = np.sqrt(np.square(turn).sum(axis=1))
        for bad, what in (
            (far, "the root's position is not a number of metres"),
            (~(np.abs(length - 1.0) <= _UNIT), "the root's quaternion is not of length 1"),
        ):
            if bad.any():
                raise BadRequestError(f"sample {int(np.argmax(bad)) + 1}: {what}")
        if (np.abs(length - 1.0) > _ROUNDED).any():  # otherwise keep every bit
            turn /= length[:, None]
        for name, values in (("position_m", position), ("quaternion_wxyz", turn)):
            values.setflags(write=False)
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return len(self.position_m)

    @property
    def tilt_rad(self) -> Array:
        """How far the base's own z axis is from upright, (n,)."""
        _, x, y, _ = self.quaternion_wxyz.T
        return np.asarray(np.arccos(np.clip(1.0 - 2.0 * (x * x + y * y), -1.0, 1.0)))

    @property
    def yaw_rad(self) -> Array:
        """Where the base faces: the angle of its x axis on the floor, (n,)."""
        w, x, y, z = self.quaternion_wxyz.T
        return np.asarray(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))

    def rows(self, chosen: Any) -> "RootPath":
        """Return some of the samples: a slice, a mask or numbers."""
        return RootPath(self.position_m[chosen], self.quaternion_wxyz[chosen])

    def at(self, times_s: Array, at_s: Array) -> "RootPath":
        """Return the path at other times: straight lines between positions, arcs between
        orientations. `times_s` are the times of its samples; before and after them it holds.
        """
        if len(self) == 1 or not at_s.size:
            return self.rows(np.zeros(at_s.size, dtype=np.int64))
        left = np.clip(np.searchsorted(times_s, at_s, side="right") - 1, 0, len(self) - 2)
        share = np.clip((at_s - times_s[left]) / np.diff(times_s)[left], 0.0, 1.0)
        return self.rows(left).interpolate_to(self.rows(left + 1), share)

    def interpolate_to(self, other: "RootPath", share: ArrayLike) -> "RootPath":
        """Interpolate to another path of equal length: 0 is this one, 1 the other."""
        part: Array = np.broadcast_to(np.asarray(share, dtype=np.float64), (len(self),))[:, None]
        position = self.position_m + part * (other.position_m - self.position_m)
        begin, end = self.quaternion_wxyz, other.quaternion_wxyz
        cosine = (begin * end).sum(axis=1, keepdims=True)
        end, cosine = np.where(cosine < 0, -end, end), np.abs(cosine)
        angle = np.arccos(np.clip(cosine, -1.0, 1.0))
        near = cosine > _PARALLEL
        sine = np.where(near, 1.0, np.sin(angle))
        first = np.where(near, 1.0 - part, np.sin((1.0 - part) * angle) / sine)
        second = np.where(near, part, np.sin(part * angle) / sine)
        turn = first * begin + second * end
        return RootPath(position, turn / np.linalg.norm(turn, axis=1, keepdims=True))

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
        floor = self.position_m[:, :2] - self.position_m[0, :2]
        turned = floor @ np.array([[cosine, sine], [-sine, cosine]]) + other.position_m[-1, :2]
        position = np.column_stack([turned, self.position_m[:, 2]])
        w, x, y, z = self.quaternion_wxyz.T
        a, b = np.cos(turn_rad / 2), np.sin(turn_rad / 2)
        turn = np.column_stack([a * w - b * z, a * x - b * y, a * y + b * x, a * z + b * w])
        return RootPath(position, turn)

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
        turn = np.tile([1.0, 0.0, 0.0, 0.0], (samples, 1))
        return RootPath(np.tile([0.0, 0.0, height_m], (samples, 1)), turn)
