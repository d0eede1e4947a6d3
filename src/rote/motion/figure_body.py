"""The sticks that a robot is drawn with: a G1 from head to foot, an A1 as a trunk on four legs."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.model.a1 import A1, A1_STAND_RAD, CALF_LENGTH_M, HIP_LENGTH_M, THIGH_LENGTH_M
from rote.model.family import Vector
from rote.model.g1 import FOOT_CORNERS_M, G1_29, LEFT_ARM, RIGHT_ARM
from rote.motion.interpolate import sample
from rote.motion.kinematics import LINKS, forward, poses
from rote.motion.track import Array, Track

_NECK_M, _CHIN_M, _HEAD_M = (0.0, 0.0, 0.30), (0.01, 0.0, 0.35), (0.01, 0.0, 0.42)
_HAND_M = (0.13, 0.0, 0.0)
_HEEL_M, _TOES_M = (-0.05, 0.0, -0.03), ((0.12, 0.03, -0.03), (0.12, -0.03, -0.03))
_A1_HEAD_M = (0.26, 0.0, 0.02)
_HEAD_RADIUS_M, _A1_HEAD_RADIUS_M = 0.075, 0.04

_Point = tuple[str, Vector]
"""A link, and a place in its frame."""


def _chain(side: str, points: Sequence[_Point]) -> list[tuple[str, _Point, _Point]]:
    return [(side, start, end) for start, end in pairwise(points)]


def _limbs(side: str, arm: tuple[int, ...]) -> list[tuple[str, _Point, _Point]]:
    """Return the sticks of one side: foot and leg, and from the neck to the hand."""
    zero = (0.0, 0.0, 0.0)
    foot = f"{side}_ankle_roll_link"
    leg = [(f"{side}_{link}", zero) for link in ("hip_roll_link", "knee_link")]
    sole = [(foot, corner) for corner in (_HEEL_M, *_TOES_M, _HEEL_M)]
    joints = [(LINKS[arm[index]], zero) for index in (1, 3, 5)]
    return [
        *_chain(side, [("pelvis", zero), *leg, (foot, zero), *sole]),
        *_chain(side, [("torso_link", _NECK_M), *joints, (LINKS[arm[-1]], _HAND_M)]),
    ]


STICKS: tuple[tuple[str, _Point, _Point], ...] = (
    *_chain("", [("pelvis", (0.0, 0.0, 0.0)), ("torso_link", _NECK_M), ("torso_link", _CHIN_M)]),
    *_limbs("left", LEFT_ARM),
    *_limbs("right", RIGHT_ARM),
)
"""Of each stick of a G1 its side, empty for the middle, and its two ends."""
_SIDES = tuple(side for side, _, _ in STICKS)


class Sticks(NamedTuple):
    """A robot in n poses, on a floor at height 0."""

    ends_m: Array
    """(sticks, 2, 3, n)."""
    head_m: Array
    """(3, n)."""
    hands_m: Array
    """What leaves a trail, left and right, (2, 3, n): an A1 has its front feet for hands."""
    sides: tuple[str, ...] = _SIDES
    """Of each stick: left, right, or empty for the middle."""
    head_radius_m: float = _HEAD_RADIUS_M


def body_of(track: Track, times_s: Array) -> Sticks:
    """Return the robot that a track is of, at these times."""
    if set(track.names) & set(G1_29.names):
        return sticks(sample(track.times_s, poses(track), times_s, Interpolation.LINEAR))
    if set(track.names) & set(A1.names):
        return a1_sticks(sample(track.times_s, _a1_poses(track), times_s, Interpolation.LINEAR))
    raise BadRequestError(
        "none of the track's joints is one of a G1 or an A1, and no other robot is drawn",
        "Draw its curves instead: rote motion plot.",
    )


def sticks(poses_rad: Array) -> Sticks:
    """Return a G1 in these poses, (n, 29), each standing on the floor."""
    frames = forward(poses_rad)

    def at(point: _Point) -> Array:
        link, place = point
        if link == "pelvis":
            return np.repeat(np.array(place)[:, None], len(poses_rad), axis=1)
        return frames.points_m(LINKS.index(link), place)

    feet = [
        at((f"{side}_ankle_roll_link", corner))[2]
        for side in ("left", "right")
        for corner in FOOT_CORNERS_M
    ]
    floor = np.zeros((3, len(poses_rad)))
    floor[2] = np.min(feet, axis=0)
    ends = np.array([[at(start), at(end)] for _, start, end in STICKS])
    hands = np.array([at((LINKS[arm[-1]], _HAND_M)) for arm in (LEFT_ARM, RIGHT_ARM)])
    return Sticks(ends - floor, at(("torso_link", _HEAD_M)) - floor, hands - floor)


def _a1_poses(track: Track) -> Array:
    """Return the track's poses with all 12 joints; those it does not have stand."""
    full = np.repeat(np.array(A1_STAND_RAD)[None, :], len(track), axis=0)
    known = [joint for joint in A1.joints if joint.name in track.names]
    columns = track._columns([joint.name for joint in known])
    full[:, [joint.index for joint in known]] = track.joints_rad[:, columns]
    return full


def a1_sticks(poses_rad: Array) -> Sticks:
    """Return an A1 in these poses, (n, 12): its trunk level, its lowest point on the floor."""
    legs = {
        hip.name[:2]: _leg(hip.origin_m, poses_rad[:, hip.index : hip.index + 3].T)
        for hip in A1.joints[::3]
    }
    chains = [("left" if name[1] == "L" else "right", points) for name, points in legs.items()]
    trunk = [legs[name][0] for name in ("FR", "FL", "RL", "RR", "FR")]
    head = np.repeat(np.array(_A1_HEAD_M)[:, None], len(poses_rad), axis=1)
    ends = [("", pair) for pair in pairwise([*trunk, head, trunk[1]])]
    ends += [(side, pair) for side, points in chains for pair in pairwise(points)]
    floor = np.zeros((3, len(poses_rad)))
    floor[2] = np.min([end[2] for points in legs.values() for end in points], axis=0)
    return Sticks(
        np.array([pair for _, pair in ends]) - floor,
        head - floor,
        np.array([legs[name][-1] for name in ("FL", "FR")]) - floor,
        tuple(side for side, _ in ends),
        _A1_HEAD_RADIUS_M,
    )


def _leg(hip_m: Vector, angles_rad: Array) -> list[Array]:
    """Return where hip, thigh, knee and foot are, each (3, n), for angles (3, n)."""
    roll, thigh, calf = angles_rad
    out_m = np.full_like(roll, np.copysign(HIP_LENGTH_M, hip_m[1]))
    knee_x, knee_z = -THIGH_LENGTH_M * np.sin(thigh), -THIGH_LENGTH_M * np.cos(thigh)
    foot_x = knee_x - CALF_LENGTH_M * np.sin(thigh + calf)
    foot_z = knee_z - CALF_LENGTH_M * np.cos(thigh + calf)
    zero = np.zeros_like(roll)
    bent = [(zero, zero, zero), (zero, out_m, zero), (knee_x, out_m, knee_z)]
    bent.append((foot_x, out_m, foot_z))
    cosine, sine = np.cos(roll), np.sin(roll)
    return [
        np.stack([x, y * cosine - z * sine, y * sine + z * cosine]) + np.array(hip_m)[:, None]
        for x, y, z in bent
    ]
