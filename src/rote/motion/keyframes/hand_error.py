"""The position error of the hands, and how much each joint moves them."""

from typing import NamedTuple

import numpy as np

from rote.motion.body.kinematics import Kinematics, kinematics_of
from rote.motion.track import Array, Track
from rote.motion.track_build import build_of, family_of

SIDES = ("left", "right")
"""The names of the tips of a body's arms, in their order."""


class HandError(NamedTuple):
    """The largest distance of a hand from its target position."""

    error_mm: float
    hand: str
    """left or right."""
    row: int
    """The row of the sample."""


def levers_m(track: Track) -> Array:
    """Return the largest distance a hand moves per rad of each joint, in the track's poses, in m.

    Shape (joints,); 0 for a joint that moves no hand.
    """
    levers = np.zeros(len(track.names))
    body = _hand_body(track)
    if body is None:
        return levers
    frames = body.forward(body.poses(track, build=build_of(track)))
    tips, axes = body.tips_m(frames), body.axes(frames)
    index = {joint.name: joint.index for joint in body.joints}
    for column, name in enumerate(track.names):
        for tip, chain in enumerate(body.chains):
            if name in chain:
                arm = tips[:, tip] - frames.positions_m[index[name]].T
                lever = np.linalg.norm(np.cross(axes[index[name]].T, arm), axis=1).max()
                levers[column] = max(levers[column], lever)
    return levers


def hand_error(track: Track, played_rad: Array) -> HandError | None:
    """Return the hands' largest distance from the track's, in mm, if its joints were `played_rad`.

    `played_rad` is (n, joints). None if the track has no joint that moves a hand. The torso is at
    rest, unless the track moves it.
    """
    body = _hand_body(track)
    if body is None:
        return None
    build = build_of(track)
    played = Track(
        times_s=track.times_s, joints_rad=played_rad, names=track.names, variant=track.variant
    )
    places, others = (
        body.tips_m(body.forward(body.poses(each, build=build))) for each in (track, played)
    )
    far_mm = 1000.0 * np.linalg.norm(others - places, axis=2)
    row, tip = divmod(int(far_mm.argmax()), far_mm.shape[1])
    return HandError(float(far_mm[row, tip]), SIDES[tip], row)


def _hand_body(track: Track) -> Kinematics | None:
    """Return the body of a track's robot; None if none of the track's joints moves a hand."""
    family = family_of(track)
    if family is None or not family.body.tips:
        return None
    body = kinematics_of(family)
    return body if any(name in chain for name in track.names for chain in body.chains) else None
