"""Do the arms make a standing robot lean? Their moment about the ankles, moment by moment.

Arms held forward, or a load in the hands, pull a robot over its toes; arms held back, over its
heels. The legs' balance control has to answer with the ankles, and a G1 is seen to lean by then.
"""

from typing import NamedTuple

import numpy as np

from rote.model.family import Build, Y
from rote.motion.body.kinematics import (
    GRAVITY_M_S2,
    Frames,
    Kinematics,
    Pose,
    Weights,
    kinematics_of,
)
from rote.motion.track import Array, Track
from rote.motion.track_build import build_of, family_of

__all__ = ["HELD_S", "LEANING_SHARE", "Leaning", "leaning", "standing_axes"]

LEANING_SHARE = 1 / 3
"""The limit is so much of what would put the robot's whole weight on its toes, or on its heels,
if it stood straight above its ankles. This project's choice: no limit is published. Of a G1 it is
13 N.m to the front: arms held straight forward are beyond it (15 N.m), a clap is not (12 N.m)."""
HELD_S = 0.5
"""Arms that pass by in less time make nothing lean; this project's choice."""
_ARM_PARTS = frozenset({"arm", "wrist", "finger"})


class Leaning(NamedTuple):
    """The moment of arms, hands and what they hold about the axis of the ankles."""

    times_s: Array
    """On the clock of the track, (n,)."""
    moments_nm: Array
    """Above 0 to the front, (n,)."""
    front_limits_nm: Array
    """Above 0, (n,): it changes with the feet."""
    back_limits_nm: Array
    """Below 0, (n,)."""

    @property
    def margins_nm(self) -> Array:
        """How much is left to the nearer limit, (n,); below 0 it is exceeded by so much."""
        front = self.front_limits_nm - self.moments_nm
        return np.minimum(front, self.moments_nm - self.back_limits_nm)

    @property
    def held(self) -> Array:
        """The samples that are beyond a limit for at least `HELD_S`, or all through; (n,)."""
        beyond = np.concatenate([[False], self.margins_nm < 0, [False]])
        starts, ends = np.flatnonzero(np.diff(beyond.astype(int))).reshape(-1, 2).T
        held = np.zeros(len(self.times_s), dtype=bool)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            whole = end - start == len(held)
            held[start:end] = whole or self.times_s[end - 1] - self.times_s[start] >= HELD_S
        return held

    @property
    def held_s(self) -> float:
        """How long it is held beyond a limit."""
        return float(np.diff(self.times_s)[self.held[:-1]].sum())


def leaning(
    track: Track,
    *,
    start_pose: Pose | None = None,
    build: Build | None = None,
    payload_kg: float = 0.0,
) -> Leaning | None:
    """Return how a track's arms make the robot lean; None where its feet or weights are not known.

    `start_pose` is where its joints are now, in the columns of `build`; without it, it stands at
    ease. `payload_kg` is held in each hand.
    """
    family, build = family_of(track), build or build_of(track)
    if family is None or build is None:
        return None
    body = kinematics_of(family)
    if not body.stands(build) or not has_arms(body):
        return None
    frames = body.forward(body.poses(track, start_pose, build))
    return leaning_of(body, track.times_s, frames, body.weights(payload_kg))


def has_arms(body: Kinematics) -> bool:
    """Return whether a robot has arms whose weight is known."""
    return any(joint.part in _ARM_PARTS and joint.mass_kg > 0.0 for joint in body.joints)


def leaning_of(body: Kinematics, times_s: Array, frames: Frames, load: Weights) -> Leaning:
    """Return the moment of the arms about the ankles of a robot that stands on all its soles."""
    ahead = standing_axes(body, frames)[0]
    feet = body.family.body.feet
    ankles_m = np.mean([frames.places_m[_ankle(body, foot.link)] for foot in feet], axis=0)
    arms = [joint.index for joint in body.joints if joint.part in _ARM_PARTS]
    moments_nm = np.zeros(len(times_s))
    for index in arms:
        centre_m = frames.points_m(index, load.centres_m[index])
        moments_nm += load.masses_kg[index] * np.sum(ahead * (centre_m - ankles_m), axis=0)
    corners = [body.at(frames, (foot.link, corner)) for foot in feet for corner in foot.corners_m]
    reach_m = np.array([np.sum(ahead * (corner - ankles_m), axis=0) for corner in corners])
    weight_n = GRAVITY_M_S2 * (body.base_weight()[0] + load.masses_kg.sum())
    return Leaning(
        times_s,
        GRAVITY_M_S2 * moments_nm,
        LEANING_SHARE * weight_n * reach_m.max(axis=0),
        LEANING_SHARE * weight_n * reach_m.min(axis=0),
    )


def standing_axes(body: Kinematics, frames: Frames) -> tuple[Array, Array]:
    """Return which way is ahead and which to the left along the ground, each (3, n).

    Down is where the soles look: the robot stands on all of them.
    """
    soles = [frames.turns[body.links.index(foot.link), :, 2] for foot in body.family.body.feet]
    up: Array = np.sum(soles, axis=0)
    up = up / np.linalg.norm(up, axis=0)
    ahead = np.array([[1.0], [0.0], [0.0]]) - up[:1] * up
    ahead = ahead / np.linalg.norm(ahead, axis=0)
    return ahead, np.cross(up, ahead, axis=0)


def _ankle(body: Kinematics, foot: str) -> int:
    """Return the joint nearest to a foot that tilts it forward; the foot's own if none does."""
    index = own = body.links.index(foot)
    while index >= 0:
        if body.joints[index].axis == Y:
            return index
        index = body.parents[index]
    return own
