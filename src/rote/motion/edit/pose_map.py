"""Brings single poses of one robot to another, as they arrive.

Robots of one family share joint names, so the angles are copied. Between families the hands get the
same positions relative to the shoulder, scaled to the arms, as `to_robot` does for a motion.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError
from rote.model.family import Build
from rote.motion.edit.hand_path import HANDS
from rote.motion.edit.mirror import mirror_columns
from rote.motion.edit.retarget import HandPaths
from rote.motion.track import Array, Track

_LIMITED_RAD = 0.02  # a joint this far outside its range is reported as limited


class MappedPose(NamedTuple):
    """A pose for the other robot."""

    joints_rad: dict[str, float]
    """Angles of its taught joints, within their limits."""
    limited: tuple[str, ...]
    """The joints that would have to leave their range."""


class PoseMap:
    """Maps poses of the taught joints of one build to those of another."""

    def __init__(self, source: Build, target: Build, *, mirrored: bool = False) -> None:
        """Prepare to map poses of `source` to `target`; with `mirrored`, exchange left and right.

        Raises `BadRequestError` if nothing can be mapped: a robot without arms, or no shared joint.
        """
        self._source, self._target = source, target
        self._limits = {joint.name: joint for joint in target.taught_joints}
        self._columns = list(source.taught_columns)
        rest_rad: Array = np.array(source.rest_rad)[self._columns]
        rest = self._make_track(rest_rad)
        # Each mirrored joint takes the angle of another column, times a sign.
        self._order, self._signs = list(range(len(self._columns))), np.ones(len(self._columns))
        if mirrored:
            self._order, self._signs = mirror_columns(rest)
        self._same_family = source.family == target.family
        if self._same_family and not set(source.taught) & set(target.taught):
            raise BadRequestError(
                f"{target.name} shares no arm joint with {source.name}",
                "Choose robots with arms.",
            )
        self.map_pose(source.rest_rad)  # raises now for a robot without known hands

    def map_pose(self, joints_rad: Sequence[float]) -> MappedPose:
        """Return the pose for the other robot; `joints_rad` are all joints of the source build."""
        taught_rad: Array = np.array(joints_rad)[self._columns]
        row_rad = taught_rad[self._order] * self._signs
        if self._same_family:
            angles = dict(zip(self._source.taught, row_rad.tolist(), strict=True))
            return self._clip_to_limits(
                {name: angles[name] for name in self._target.taught if name in angles}
            )
        return self._clip_to_limits(self._map_hands(self._make_track(row_rad)))

    def _map_hands(self, pose: Track) -> dict[str, float]:
        """Return the target's taught joints, by name, with its hands at the scaled positions."""
        paths = HandPaths.of(pose, self._target, HANDS)
        solved_rad = paths.solver.solve(paths.offsets_m)[0]
        track = paths.adapted
        angles = dict(zip(track.names, track.joints_rad[0].tolist(), strict=True))
        for columns, names in zip(paths.solver.columns, paths.solver.names, strict=True):
            angles |= dict(zip(names, solved_rad[columns].tolist(), strict=True))
        return {name: angles[name] for name in self._target.taught if name in angles}

    def _clip_to_limits(self, angles: dict[str, float]) -> MappedPose:
        """Return these angles in rad, by joint, within the limits of the target's joints."""
        clipped, limited = {}, []
        for name, angle_rad in angles.items():
            joint = self._limits[name]
            clipped[name] = min(max(angle_rad, joint.lower_rad), joint.upper_rad)
            if abs(clipped[name] - angle_rad) > _LIMITED_RAD:
                limited.append(name)
        return MappedPose(clipped, tuple(limited))

    def _make_track(self, row_rad: Array) -> Track:
        """Return a pose of the source's taught joints as a track of one sample."""
        return Track(
            times_s=np.zeros(1),
            joints_rad=row_rad[None, :],
            names=self._source.taught,
            variant=self._source.name,
        )
