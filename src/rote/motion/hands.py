"""How far the hands are from where they should be, and which joint moves them how much."""

from typing import NamedTuple

import numpy as np

from rote.model.g1 import G1_JOINTS
from rote.motion.kinematics import LINKS, forward, hands_m, poses
from rote.motion.track import Array, Track

SIDES = ("left", "right")


def _chain(link: str) -> frozenset[str]:
    """Return the joints between the pelvis and a link."""
    if link not in LINKS:
        return frozenset()
    joint = G1_JOINTS[LINKS.index(link)]
    return _chain(joint.parent) | {joint.name}


CHAINS = {side: _chain(f"{side}_wrist_yaw_link") for side in SIDES}
"""The joints that move each hand."""


class HandError(NamedTuple):
    """Where a hand is furthest from its place."""

    error_mm: float
    hand: str
    """left or right."""
    row: int
    """The sample."""


def levers_m(track: Track) -> Array:
    """Return how far a hand moves at most for each rad of each joint, in the track's poses.

    Shape (joints,); 0 for a joint that moves no hand.
    """
    frames = forward(poses(track))
    places = dict(zip(SIDES, hands_m(frames).transpose(1, 0, 2), strict=True))
    levers = np.zeros(len(track.names))
    for joint in G1_JOINTS:
        for side in (side for side in SIDES if joint.name in CHAINS[side]):
            if joint.name in track.names:
                axis = frames.turns[joint.index, :, joint.axis.index(1.0)].T
                arm = places[side] - frames.places_m[joint.index].T
                lever = np.linalg.norm(np.cross(axis, arm), axis=1).max()
                column = track.names.index(joint.name)
                levers[column] = max(levers[column], lever)
    return levers


def hand_error(track: Track, played_rad: Array) -> HandError | None:
    """Return the hands' greatest distance from the track's, in mm, if its joints were `played_rad`.

    `played_rad` is (n, joints). None where the track has no joint that moves a hand. The torso
    stands as at ease, unless the track moves it.
    """
    if not any(name in chain for name in track.names for chain in CHAINS.values()):
        return None
    other = Track(times_s=track.times_s, joints_rad=played_rad, names=track.names)
    apart = hands_m(forward(poses(other))) - hands_m(forward(poses(track)))
    far_mm = 1000.0 * np.linalg.norm(apart, axis=2)
    row, side = divmod(int(far_mm.argmax()), len(SIDES))
    return HandError(float(far_mm[row, side]), SIDES[side], row)
