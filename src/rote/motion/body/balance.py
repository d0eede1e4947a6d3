"""Whether the arms make a standing robot lean: their torque about the ankles over time.

Arms held forward, or a load in the hands, pull a robot over its toes; arms held back, over its
heels. The legs' balance controller has to compensate with the ankles, and a G1 leans visibly then.
"""

from typing import NamedTuple

import numpy as np

from rote.model.family import Build, Y
from rote.motion.body.kinematics import (
    GRAVITY_M_S2,
    Frames,
    Kinematics,
    LinkMasses,
    Pose,
    kinematics_of,
)
from rote.motion.track import Array, Track
from rote.motion.track_build import build_of, family_of

__all__ = ["HELD_S", "LEANING_SHARE", "Leaning", "leaning", "standing_axes"]

LEANING_SHARE = 1 / 3
"""The limit, as a share of the torque that would put the robot's whole weight on its toes or heels
if it stood straight above its ankles. This project's choice: no limit is published. For a G1 it is
13 N.m to the front: arms held straight forward exceed it (15 N.m), a clap does not (12 N.m)."""
HELD_S = 0.5
"""An excess shorter than this, in s, does not make a robot lean; this project's choice."""
_ARM_PARTS = frozenset({"arm", "wrist", "finger"})


class Leaning(NamedTuple):
    """The torque of arms, hands and what they hold about the axis of the ankles."""

    times_s: Array
    """The times of the track's samples, (n,)."""
    moments_nm: Array
    """Positive to the front, (n,)."""
    front_limits_nm: Array
    """Positive, (n,); it changes with the feet."""
    back_limits_nm: Array
    """Negative, (n,)."""

    @property
    def margins_nm(self) -> Array:
        """The distance to the nearer limit, (n,); negative if it is exceeded."""
        front_nm = self.front_limits_nm - self.moments_nm
        back_nm = self.moments_nm - self.back_limits_nm
        return np.minimum(front_nm, back_nm)

    @property
    def held(self) -> Array:
        """Whether each sample is beyond a limit for at least `HELD_S`, or the whole track; (n,)."""
        is_beyond = np.concatenate([[False], self.margins_nm < 0, [False]])
        # It changes where an excess starts, and again where it ends: these rows are in pairs.
        starts, ends = np.flatnonzero(np.diff(is_beyond.astype(int))).reshape(-1, 2).T
        held = np.zeros(len(self.times_s), dtype=bool)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            is_whole_track = end - start == len(held)
            duration_s = self.times_s[end - 1] - self.times_s[start]
            held[start:end] = is_whole_track or duration_s >= HELD_S
        return held

    @property
    def held_s(self) -> float:
        """The total duration of the excesses that `held` marks."""
        return float(np.diff(self.times_s)[self.held[:-1]].sum())


def leaning(
    track: Track,
    *,
    start_pose: Pose | None = None,
    build: Build | None = None,
    payload_kg: float = 0.0,
) -> Leaning | None:
    """Return the torque of a track's arms about the ankles; None if feet or masses are not known.

    `start_pose` are the current joint positions, in the columns of `build`; the default is the rest
    pose. `payload_kg` is held in each hand.
    """
    family, build = family_of(track), build or build_of(track)
    if family is None or build is None:
        return None
    body = kinematics_of(family)
    if not body.stands(build) or not has_arms(body):
        return None
    frames = body.forward(body.poses(track, start_pose, build))
    return compute_leaning(body, track.times_s, frames, body.link_masses(payload_kg))


def has_arms(body: Kinematics) -> bool:
    """Return whether a robot has arms with known masses."""
    return any(joint.part in _ARM_PARTS and joint.mass_kg > 0.0 for joint in body.joints)


def compute_leaning(body: Kinematics, times_s: Array, frames: Frames, load: LinkMasses) -> Leaning:
    """Return the torque of the arms about the ankles of a robot that stands on all its soles."""
    forward, _ = standing_axes(body, frames)
    feet = body.family.body.feet
    ankles = [_find_ankle_index(body, foot.link) for foot in feet]
    ankles_m = np.mean([frames.positions_m[ankle] for ankle in ankles], axis=0)
    arms = [joint.index for joint in body.joints if joint.part in _ARM_PARTS]
    moments_kg_m = np.zeros(len(times_s))
    for index in arms:
        centre_m = frames.points_m(index, load.centres_m[index])
        moments_kg_m += load.masses_kg[index] * np.sum(forward * (centre_m - ankles_m), axis=0)
    corners = [body.at(frames, (foot.link, corner)) for foot in feet for corner in foot.corners_m]
    reach_m = np.array([np.sum(forward * (corner - ankles_m), axis=0) for corner in corners])
    weight_n = GRAVITY_M_S2 * (body.base_mass()[0] + load.masses_kg.sum())
    return Leaning(
        times_s,
        GRAVITY_M_S2 * moments_kg_m,
        LEANING_SHARE * weight_n * reach_m.max(axis=0),
        LEANING_SHARE * weight_n * reach_m.min(axis=0),
    )


def standing_axes(body: Kinematics, frames: Frames) -> tuple[Array, Array]:
    """Return the forward and the left direction along the ground, each (3, n).

    Down is perpendicular to the soles: the robot stands on all of them.
    """
    soles = [frames.rotations[body.links.index(foot.link), :, 2] for foot in body.family.body.feet]
    up: Array = np.sum(soles, axis=0)
    up = up / np.linalg.norm(up, axis=0)
    forward = np.array([[1.0], [0.0], [0.0]]) - up[:1] * up
    forward = forward / np.linalg.norm(forward, axis=0)
    return forward, np.cross(up, forward, axis=0)


def _find_ankle_index(body: Kinematics, foot: str) -> int:
    """Return the index of the joint nearest to a foot that tilts it forward.

    If there is none, this is the joint of the foot itself.
    """
    index = foot_index = body.links.index(foot)
    while index >= 0:
        if body.joints[index].axis == Y:
            return index
        index = body.parents[index]
    return foot_index
