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
"""A shorter excess does not make a robot lean; this project's choice."""
_ARM_PARTS = frozenset({"arm", "wrist", "finger"})


class Leaning(NamedTuple):
    """The torque of arms, hands and what they hold about the axis of the ankles."""

    times_s: Array
    """On the clock of the track, (n,)."""
    moments_nm: Array
    """Positive to the front, (n,)."""
    front_limits_nm: Array
    """Positive, (n,); it changes with the feet."""
    back_limits_nm: Array
    """Negative, (n,)."""

    @property
    def margins_nm(self) -> Array:
        """The distance to the nearer limit, (n,); negative if it is exceeded."""
        front = self.front_limits_nm - self.moments_nm
        return np.minimum(front, self.moments_nm - self.back_limits_nm)

    @property
    def held(self) -> Array:
        """The samples that are beyond a limit for at least `HELD_S`, or throughout; (n,)."""
        beyond = np.concatenate([[False], self.margins_nm < 0, [False]])
        starts, ends = np.flatnonzero(np.diff(beyond.astype(int))).reshape(-1, 2).T
        held = np.zeros(len(self.times_s), dtype=bool)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            whole = end - start == len(held)
            held[start:end] = whole or self.times_s[end - 1] - self.times_s[start] >= HELD_S
        return held

    @property
    def held_s(self) -> float:
        """The total time beyond a limit."""
        return float(np.diff(self.times_s)[self.held[:-1]].sum())


def leaning(
    track: Track,
    *,
    start_pose: Pose | None = None,
    build: Build | None = None,
    payload_kg: float = 0.0,
) -> Leaning | None:
    """Return how a track's arms make the robot lean; None if its feet or masses are not known.

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
    return compute_leaning(body, track.times_s, frames, body.weights(payload_kg))


def has_arms(body: Kinematics) -> bool:
    """Return whether a robot has arms with known masses."""
    return any(joint.part in _ARM_PARTS and joint.mass_kg > 0.0 for joint in body.joints)


def compute_leaning(body: Kinematics, times_s: Array, frames: Frames, load: LinkMasses) -> Leaning:
    """Return the torque of the arms about the ankles of a robot that stands on all its soles."""
    ahead = standing_axes(body, frames)[0]
    feet = body.family.body.feet
    ankles_m = np.mean([frames.positions_m[_ankle_index(body, foot.link)] for foot in feet], axis=0)
    arms = [joint.index for joint in body.joints if joint.part in _ARM_PARTS]
    moments_nm = np.zeros(len(times_s))
    for index in arms:
        centre_m = frames.points_m(index, load.centres_m[index])
        moments_nm += load.masses_kg[index] * np.sum(ahead * (centre_m - ankles_m), axis=0)
    corners = [body.at(frames, (foot.link, corner)) for foot in feet for corner in foot.corners_m]
    reach_m = np.array([np.sum(ahead * (corner - ankles_m), axis=0) for corner in corners])
    weight_n = GRAVITY_M_S2 * (body.base_mass()[0] + load.masses_kg.sum())
    return Leaning(
        times_s,
        GRAVITY_M_S2 * moments_nm,
        LEANING_SHARE * weight_n * reach_m.max(axis=0),
        LEANING_SHARE * weight_n * reach_m.min(axis=0),
    )


def standing_axes(body: Kinematics, frames: Frames) -> tuple[Array, Array]:
    """Return the forward and the left direction along the ground, each (3, n).

    Down is perpendicular to the soles: the robot stands on all of them.
    """
    soles = [frames.turns[body.links.index(foot.link), :, 2] for foot in body.family.body.feet]
    up: Array = np.sum(soles, axis=0)
    up = up / np.linalg.norm(up, axis=0)
    ahead = np.array([[1.0], [0.0], [0.0]]) - up[:1] * up
    ahead = ahead / np.linalg.norm(ahead, axis=0)
    return ahead, np.cross(up, ahead, axis=0)


def _ankle_index(body: Kinematics, foot: str) -> int:
    """Return the index of the joint nearest to a foot that tilts it forward, or the foot's own."""
    index = own = body.links.index(foot)
    while index >= 0:
        if body.joints[index].axis == Y:
            return index
        index = body.parents[index]
    return own
