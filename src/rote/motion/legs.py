"""What an A1's legs may be asked for beside a joint's own limits: where its protection trips."""

from collections.abc import Sequence

import numpy as np

from rote.model.a1 import A1, JOINTS_PER_LEG, POSITION_MARGIN_RAD, SDK_LIMITS_RAD
from rote.model.family import Joint
from rote.motion.track import Array, Track

_NAMES = frozenset(A1.names)


def is_of_an_a1(track: Track) -> bool:
    """Tell whether a track is a motion of an A1, by its joints."""
    return not _NAMES.isdisjoint(track.names)


def protected_rad(joints: Sequence[Joint]) -> tuple[Array, Array]:
    """Return the least and the largest angle at which the protection lets be, (joints,) each."""
    limits = SDK_LIMITS_RAD[A1.name]
    rows = np.array([limits[joint.index % JOINTS_PER_LEG] for joint in joints]).reshape(-1, 2)
    return rows[:, 0] + POSITION_MARGIN_RAD, rows[:, 1] - POSITION_MARGIN_RAD


def left_by_rad(values: Array, lower: Array, upper: Array) -> Array:
    """Return how far each joint has left a range that it was in; both are (n, joints).

    As on the robot, a joint that begins outside is watched from when it has come inside.
    """
    beyond = np.maximum(lower - values, values - upper)
    been_inside = np.logical_or.accumulate(beyond <= 0, axis=0)
    return np.where(been_inside, np.maximum(beyond, 0.0), 0.0)
