"""Is this motion safe to play? Checks that name the joint, the moment and the number."""

from collections.abc import Sequence

import numpy as np

from rote.errors import UnsafeMotionError
from rote.model.family import Joint
from rote.motion.track import Array

TOLERANCE_RAD = 0.02
"""A joint pushed against its stop reads a little beyond the limit; that much is no error."""

MOST_PLAYED_RAD_S = 10.0
"""Nothing is played faster, though most motors could turn three times as fast."""
MOST_PLAYED_RAD_S2 = 100.0
"""What the arms' motors can do with the arm's own weight; this project's estimate."""

RETIME_RAD_S2 = 40.0
RETIME_RAD_S3 = 800.0
"""What retiming aims at unless told: a brisk arm that does not shake; this project's choice."""


def most_played_rad_s(joints: Sequence[Joint]) -> Array:
    """Return how fast each joint may be played, (joints,)."""
    return np.minimum([joint.velocity_rad_s for joint in joints], MOST_PLAYED_RAD_S)


def check_positions(times_s: Array, joints_rad: Array, joints: Sequence[Joint]) -> None:
    """Raise `UnsafeMotionError` for the worst joint outside its range, if any is.

    `times_s` is (n,), `joints_rad` is (n, joints).
    """
    lower = np.array([joint.lower_rad for joint in joints])
    upper = np.array([joint.upper_rad for joint in joints])
    worst = _worst(np.maximum(lower - joints_rad, joints_rad - upper) - TOLERANCE_RAD)
    if worst is None:
        return
    row, column = worst
    raise UnsafeMotionError(
        joints[column].name,
        float(times_s[row]),
        f"{joints_rad[row, column]:.2f} rad, "
        f"allowed {lower[column]:.2f} to {upper[column]:.2f} rad",
    )


def check_speeds(
    times_s: Array, joints_rad: Array, joints: Sequence[Joint], most_rad_s: Array
) -> None:
    """Raise `UnsafeMotionError` for the worst joint faster than `most_rad_s`, if any is."""
    speeds = np.abs(np.diff(joints_rad, axis=0)) / np.diff(times_s)[:, None]
    worst = _worst(speeds - most_rad_s)
    if worst is None:
        return
    row, column = worst
    raise UnsafeMotionError(
        joints[column].name,
        float(times_s[row]),
        f"{speeds[row, column]:.1f} rad/s, allowed {most_rad_s[column]:.1f} rad/s",
    )


def _worst(excess: Array) -> tuple[int, int] | None:
    """Return where a limit is exceeded most, or None where none is."""
    # Asked this way round, a value that is not a number is not safe either.
    if excess.size == 0 or excess.max() <= 0:
        return None
    row, column = divmod(int(excess.argmax()), excess.shape[1])
    return row, column
