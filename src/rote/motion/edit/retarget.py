"""Brings a motion to another robot so that its hands do the same.

Joints of the same name are taken over first. Then each hand follows the path of the other robot's
hand as seen from its shoulder, scaled to the length of its own arm.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError
from rote.model.family import Build
from rote.model.registry import build_named
from rote.motion.edit.hand_path import HANDS, ArmSolver
from rote.motion.edit.operations import to_build
from rote.motion.edit.tempo import is_too_fast
from rote.motion.interpolate import average_gaussian
from rote.motion.track import Array, Track
from rote.motion.track_build import build_of

__all__ = ["to_robot"]

_SMOOTHING_WIDTHS_S = (0.0, 0.02, 0.04, 0.07, 0.1)
"""Where a path is out of reach, the nearest pose may jump. The first of these widths that avoids a
jump is used.
"""


def to_robot(track: Track, build: str) -> Track:
    """Return the motion for another build: hands on the same paths, scaled to its arms.

    The last line of its history states the largest distance of a hand from its path. Joints that
    the other robot does not have are lost. Raises `BadRequestError` if either robot has no arms, or
    nothing of the motion can be taken over.
    """
    target = build_named(build)
    source = build_of(track)
    if source is None:
        raise BadRequestError("no known robot has the joints of this motion")
    if source.family == target.family and set(track.names) <= set(target.names):
        return to_build(track, build)
    hands = [hand for hand in HANDS if any(name.startswith(f"{hand}_") for name in track.names)]
    if not hands:
        raise BadRequestError("the motion moves no arm", "Choose a motion of the arms.")
    adapted, solver, offsets_m, scale = HandPaths.of(track, target, hands)
    change = solver.solve(offsets_m) - solver.poses_rad
    for width_s in _SMOOTHING_WIDTHS_S:
        poses = solver.poses_rad + average_gaussian(change, width_s * track.rate_hz)
        errors_m, _ = solver.errors(poses, offsets_m)
        joints_rad = adapted.joints_rad.copy()
        for columns, names in zip(solver.columns, solver.names, strict=True):
            joints_rad[:, adapted.columns_of(names)] = poses[:, columns]
        line = (
            f"from {source.name} to {target.name}: hands within {1000 * errors_m.max():.0f} mm of "
            f"their paths, scaled by {scale:.2f}"
        )
        result = track.edited(
            line, joints_rad=joints_rad, names=adapted.names, variant=target.name, root=None
        )
        if not is_too_fast(result):
            break
    return result


class HandPaths(NamedTuple):
    """A motion brought to another build by joint names, and the paths of its hands."""

    adapted: Track
    """The motion with the joints of the other build: shared ones copied, others at rest."""
    solver: ArmSolver
    """Solves the arms of that motion."""
    offsets_m: Array
    """From the hands of `adapted` to their paths, (hands, n, 3)."""
    scale: float
    """The length of the other robot's first arm relative to that of this robot."""

    @classmethod
    def of(cls, track: Track, target: Build, hands: Sequence[str]) -> "HandPaths":
        """Return the motion on a build, and the paths of these hands scaled to its arms.

        The paths are scaled about the shoulders.
        """
        adapted = _copy_shared_joints(track, target)
        source_arms, target_arms = ArmSolver(track, hands), ArmSolver(adapted, hands)
        scales = [
            target_arms.arm_length_m(index) / source_arms.arm_length_m(index)
            for index in range(len(hands))
        ]
        paths_m = target_arms.shoulders_m() + np.reshape(scales, (-1, 1, 1)) * (
            source_arms.positions_m() - source_arms.shoulders_m()
        )
        return cls(adapted, target_arms, paths_m - target_arms.positions_m(), scales[0])


def _copy_shared_joints(track: Track, target: Build) -> Track:
    """Return the motion on another build: shared joints copied, other taught ones at rest.

    Angles are clipped to the build's limits; all other joints, and the path of the base, are left
    out.
    """
    names = tuple(name for name in target.names if name in {*track.names, *target.taught})
    limits = {joint.name: joint for joint in target.joints}
    rest = dict(zip(target.names, target.rest_rad, strict=True))
    columns: list[Array] = []
    for name in names:
        values = (
            track.joints_rad[:, track.names.index(name)]
            if name in track.names
            else np.full(len(track), rest[name])
        )
        columns.append(np.clip(values, limits[name].lower_rad, limits[name].upper_rad))
    return replace(
        track, joints_rad=np.stack(columns, axis=1), names=names, variant=target.name, root=None
    )
