"""Storing a track as a taught action: at most as many keyframes as the wire can hold."""

from dataclasses import replace

import numpy as np

from rote.errors import BadRequestError
from rote.messages import MAX_KEYFRAMES, Interpolation
from rote.model.family import Build
from rote.motion.check.rules import check
from rote.motion.interpolate import MINIMUM_JERK_PEAK, minimum_jerk
from rote.motion.keyframes.search import Compressed, check_faithful, compress_to_budget
from rote.motion.track import Track
from rote.robot.api_values import check_seconds
from rote.robot.streaming import (
    check_playable,
    taught_joint_arrays,
    taught_poses,
    without_hands,
)

NEAR_REST_RAD = 0.05
"""A motion that begins nearer to rest than this needs no approach."""


def make_storable(track: Track, build: Build) -> Track:
    """Return a track of the taught joints that is safe to play and begins at rest.

    A robot plays keyframes from the pose it is in, and between playbacks that is rest.
    """
    taught = taught_joint_arrays(build)
    track = without_hands(track, build)  # a robot's own actions have no hands
    times_s, poses = track.times_s - track.times_s[:1], taught_poses(track, build)
    far_rad = float(np.abs(poses[0] - taught.rest_rad).max())
    if far_rad > NEAR_REST_RAD:
        seconds = max(taught.soft_least_s, MINIMUM_JERK_PEAK * far_rad / taught.soft_rad_s)
        share = np.arange(np.ceil(seconds / 0.02)) / np.ceil(seconds / 0.02)
        times_s = np.concatenate([share * seconds, times_s + seconds])
        poses = np.vstack([minimum_jerk(taught.rest_rad, poses[0], share), poses])
    else:
        poses[0] = taught.rest_rad
    check_seconds(float(times_s[-1]), "an action")
    return Track(
        times_s=times_s,
        joints_rad=check_playable(times_s, poses, build),
        names=taught.names,
        variant=build.name,
    )


def compress(track: Track, build: Build, budget: int) -> Compressed:
    """Return the keyframes of a `make_storable` track; raise `UnsafeMotionError` if they differ too
    much.

    The track is checked for everything that forbids playing it. Warnings are reported when it is
    played.
    """
    if not 1 <= budget <= MAX_KEYFRAMES:
        raise BadRequestError(
            f"{budget} keyframes cannot be stored", f"Choose 1 to {MAX_KEYFRAMES}."
        )
    check(track, build=build.bare).permit(force=True)
    compressed = compress_to_budget(track, budget, Interpolation.LINEAR)
    check_faithful(compressed)
    if not compressed.keyframes:
        raise BadRequestError("this motion stays at rest", "There is nothing to store.")
    # The robot numbers all its joints; the keyframes so far number the taught ones.
    by_column = (replace(k, joint=build.taught_columns[k.joint]) for k in compressed.keyframes)
    return replace(compressed, keyframes=tuple(by_column))
