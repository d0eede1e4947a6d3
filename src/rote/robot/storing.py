"""A track of our own as a taught action: few keyframes, as many as the wire can hold."""

from dataclasses import replace

import numpy as np

from rote.errors import BadRequestError
from rote.messages import MAX_KEYFRAMES, Interpolation
from rote.model.g1 import G1_JOINTS, TAUGHT_JOINTS
from rote.motion.check import check
from rote.motion.interpolate import MINIMUM_JERK_PEAK, minimum_jerk
from rote.motion.keyframes import Compressed, check_faithful, compress_to_budget
from rote.motion.track import Track
from rote.robot.base import check_seconds
from rote.robot.streaming import REST_RAD, SOFT_LEAST_S, SOFT_RAD_S, check_playable, taught_joints

NEAR_REST_RAD = 0.05
"""A motion that begins nearer to rest than this needs no way there."""


def storable(track: Track) -> Track:
    """Return a track of the taught joints, found safe, that begins at rest.

    A robot plays keyframes from the pose it is in, and between playbacks that is rest.
    """
    times_s, poses = track.times_s - track.times_s[:1], taught_joints(track)
    far_rad = float(np.abs(poses[0] - REST_RAD).max())
    if far_rad > NEAR_REST_RAD:
        seconds = max(SOFT_LEAST_S, MINIMUM_JERK_PEAK * far_rad / SOFT_RAD_S)
        share = np.arange(np.ceil(seconds / 0.02)) / np.ceil(seconds / 0.02)
        times_s = np.concatenate([share * seconds, times_s + seconds])
        poses = np.vstack([minimum_jerk(REST_RAD, poses[0], share), poses])
    else:
        poses[0] = REST_RAD
    check_seconds(float(times_s[-1]), "an action")
    names = tuple(G1_JOINTS[index].name for index in TAUGHT_JOINTS)
    return Track(times_s=times_s, joints_rad=check_playable(times_s, poses), names=names)


def compress(track: Track, budget: int) -> Compressed:
    """Return the keyframes of a `storable` track, or refuse where they would be another motion.

    The track is checked for all that forbids to play it. Warnings are for whoever plays it.
    """
    if not 1 <= budget <= MAX_KEYFRAMES:
        raise BadRequestError(
            f"{budget} keyframes cannot be stored", f"Choose 1 to {MAX_KEYFRAMES}."
        )
    check(track).permit(force=True)
    compressed = compress_to_budget(track, budget, Interpolation.LINEAR)
    check_faithful(compressed)
    if not compressed.keyframes:
        raise BadRequestError("this motion stays at rest", "There is nothing to store.")
    by_motor = (replace(k, joint=TAUGHT_JOINTS[k.joint]) for k in compressed.keyframes)
    return replace(compressed, keyframes=tuple(by_motor))
