"""Where the links are, what they weigh and where that weight acts, for many poses at once.

Everything is in the frame of the pelvis, x forward, y left, z up. A pose is 29 angles in the
robot's own order; `poses` makes them of a track that has fewer.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rote.errors import BadRequestError
from rote.model.family import Vector
from rote.model.g1 import (
    G1_JOINTS,
    G1_REST_RAD,
    HAND_COM_M,
    HAND_MASS_KG,
    HEAD_COM_M,
    HEAD_MASS_KG,
    LEFT_ARM,
    PELVIS_COM_M,
    PELVIS_MASS_KG,
    RIGHT_ARM,
)
from rote.motion.track import Array, Track

Pose = Sequence[float] | Array
"""29 angles in rad, in the robot's own order."""

GRAVITY_M_S2 = 9.81
LINKS = tuple(joint.link for joint in G1_JOINTS)
"""Link by link, each under the index of the joint it hangs on."""

_PARENTS = tuple(LINKS.index(j.parent) if j.parent in LINKS else -1 for j in G1_JOINTS)
_TORSO, _WRISTS = LINKS.index("torso_link"), (LEFT_ARM[-1], RIGHT_ARM[-1])
# For a turn about axis k: the two columns the angle mixes.
_MIXED = {0: (1, 2), 1: (2, 0), 2: (0, 1)}


class Frames(NamedTuple):
    """Every link in every pose."""

    places_m: Array
    """Where each link's joint is, (29, 3, n)."""
    turns: Array
    """How each link is turned: columns are its axes; (29, 3, 3, n)."""

    def points_m(self, link: int, point_m: ArrayLike) -> Array:
        """Return where a point of a link is, (3, n)."""
        point = np.asarray(point_m, dtype=np.float64)
        place: Array = self.places_m[link] + np.einsum("ijn,j->in", self.turns[link], point)
        return place


class Weights(NamedTuple):
    """What each link weighs with all that is fixed to it, and where in its frame that acts."""

    masses_kg: Array
    """(29,)."""
    centres_m: Array
    """(29, 3)."""


def rotation(rpy_rad: Vector) -> Array:
    """Return the (3, 3) matrix of a roll, a pitch and a yaw about fixed axes, in this order."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy_rad), np.sin(rpy_rad)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def whole_pose(start_pose: Pose | None) -> Array:
    """Return 29 angles: `start_pose`, or where the robot stands at ease."""
    pose: Array = np.array(G1_REST_RAD if start_pose is None else start_pose, dtype=np.float64)
    if pose.shape != (len(G1_JOINTS),) or not np.isfinite(pose).all():
        raise BadRequestError(
            f"a pose is {len(G1_JOINTS)} angles in rad, not these {pose.size}: {pose}",
            "Give the positions of all joints in the robot's order.",
        )
    return pose


def poses(track: Track, start_pose: Pose | None = None) -> Array:
    """Return the track's poses with all 29 joints, (n, 29).

    A joint the track does not have stays where `start_pose` has it, or as at ease. Joints the
    robot does not know are left out.
    """
    full = np.repeat(whole_pose(start_pose)[None, :], len(track), axis=0)
    known = [joint for joint in G1_JOINTS if joint.name in track.names]
    columns = track._columns([joint.name for joint in known])
    full[:, [joint.index for joint in known]] = track.joints_rad[:, columns]
    return full


def forward(poses_rad: Array) -> Frames:
    """Return where all links are; `poses_rad` is (n, 29)."""
    angles = poses_rad.T
    cosines, sines = np.cos(angles), np.sin(angles)
    count = angles.shape[1]
    places, turns = np.empty((len(LINKS), 3, count)), np.empty((len(LINKS), 3, 3, count))
    pelvis = np.repeat(np.eye(3)[:, :, None], count, axis=2)
    for joint, parent in zip(G1_JOINTS, _PARENTS, strict=True):
        base = turns[parent] if parent >= 0 else pelvis
        place, turn = places[joint.index], turns[joint.index]
        place[:] = np.einsum("ijn,j->in", base, joint.origin_m)
        if parent >= 0:
            place += places[parent]
        if any(joint.origin_rpy_rad):
            base = np.einsum("ijn,jk->ikn", base, rotation(joint.origin_rpy_rad))
        axis = joint.axis.index(1.0)
        i, k = _MIXED[axis]
        cosine, sine = cosines[joint.index], sines[joint.index]
        turn[:, axis] = base[:, axis]
        turn[:, i] = cosine * base[:, i] + sine * base[:, k]
        turn[:, k] = cosine * base[:, k] - sine * base[:, i]
    return Frames(places, turns)


def hands_m(frames: Frames) -> Array:
    """Return where the left and the right hand are, (n, 2, 3): the middle of each."""
    both = [frames.points_m(wrist, HAND_COM_M) for wrist in _WRISTS]
    return np.ascontiguousarray(np.array(both).transpose(2, 0, 1))


def weights(payload_kg: float = 0.0) -> Weights:
    """Return what the links weigh: the head counts to the torso, a hand and what it holds to a
    wrist. `payload_kg` is held by each hand."""
    masses = np.array([joint.mass_kg for joint in G1_JOINTS])
    centres = np.array([joint.com_m for joint in G1_JOINTS])
    fixed = [(_TORSO, HEAD_MASS_KG, HEAD_COM_M)]
    fixed += [(wrist, HAND_MASS_KG + payload_kg, HAND_COM_M) for wrist in _WRISTS]
    for link, mass, centre in fixed:
        total = masses[link] + mass
        centres[link] = (masses[link] * centres[link] + mass * np.array(centre)) / total
        masses[link] = total
    return Weights(masses, centres)


def _moments(frames: Frames, load: Weights) -> Array:
    """Return mass times centre of each link, (29, 3, n)."""
    centres = frames.places_m + np.einsum("lijn,lj->lin", frames.turns, load.centres_m)
    return np.asarray(load.masses_kg[:, None, None] * centres)


def centre_of_mass_m(frames: Frames, load: Weights) -> Array:
    """Return the centre of mass of the whole robot, (n, 3)."""
    total = _moments(frames, load).sum(axis=0) + (PELVIS_MASS_KG * np.array(PELVIS_COM_M))[:, None]
    return np.asarray(total.T / (PELVIS_MASS_KG + load.masses_kg.sum()))


def weight_nm(frames: Frames, load: Weights) -> Array:
    """Return the torque gravity puts on each joint of an upright robot, (n, 29).

    It is that of what hangs on the joint; for the legs, which carry instead, it means nothing.
    """
    masses, moments = load.masses_kg.copy(), _moments(frames, load)
    for link in reversed(range(len(LINKS))):
        if _PARENTS[link] >= 0:
            masses[_PARENTS[link]] += masses[link]
            moments[_PARENTS[link]] += moments[link]
    arms = moments - masses[:, None, None] * frames.places_m
    axes = np.array([frames.turns[j.index, :, j.axis.index(1.0)] for j in G1_JOINTS])
    # axis . (arm x (0, 0, -g))
    torque = -GRAVITY_M_S2 * (axes[:, 0] * arms[:, 1] - axes[:, 1] * arms[:, 0])
    return np.asarray(torque.T)
