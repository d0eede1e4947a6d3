"""The position and speed limits of joints.

`find_position_violations` and `find_speed_violations` yield the worst violation of each joint.
`check` makes findings of them; `check_positions` and `check_joint_speeds` raise for the worst joint
of all, before anything is played.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rote.errors import UnsafeMotionError
from rote.model.family import Joint
from rote.motion.track import Array
from rote.text import Span, Text, rad, rad_s

TOLERANCE_RAD = 0.02
"""A joint pushed against its stop reads a little beyond the limit; that much is no error."""

MAX_PLAYED_RAD_S = 10.0
"""Nothing is played faster, though most motors could turn three times as fast."""
MAX_PLAYED_RAD_S2 = 100.0
"""What the arm motors can do when they move only the arm; this project's estimate."""

RETIME_RAD_S2 = 40.0
RETIME_RAD_S3 = 800.0
"""The default jerk of retiming: a brisk arm that does not shake; this project's choice."""


class LimitViolation(NamedTuple):
    """A joint beyond one of its limits, at its worst moment."""

    row: int
    column: int
    value: float
    limit: float
    excess: float
    """How far beyond the limit."""
    message: Text
    """The value and the allowed range or maximum."""


def playback_limits_rad_s(joints: Sequence[Joint]) -> Array:
    """Return the maximum playback speed of each joint, (joints,)."""
    return np.minimum([joint.velocity_rad_s for joint in joints], MAX_PLAYED_RAD_S)


def find_position_violations(
    joints_rad: Array, joints: Sequence[Joint]
) -> Iterator[LimitViolation]:
    """Yield each joint that leaves its range, even by less than `TOLERANCE_RAD`.

    `joints_rad` is (n, joints).
    """
    lower = np.array([joint.lower_rad for joint in joints])
    upper = np.array([joint.upper_rad for joint in joints])
    excess = np.maximum(lower - joints_rad, joints_rad - upper)
    for row, column in find_worst_rows(excess, np.zeros(len(joints))):
        value, low, high = (
            float(v) for v in (joints_rad[row, column], lower[column], upper[column])
        )
        yield LimitViolation(
            row,
            column,
            value,
            high if value > high else low,
            float(excess[row, column]),
            Text("{value}, allowed {allowed}", value=rad(value), allowed=Span(low, high, "rad")),
        )


def find_speed_violations(
    times_s: Array, joints_rad: Array, most_rad_s: Array
) -> Iterator[LimitViolation]:
    """Yield each joint that is faster than `most_rad_s`, (joints,).

    The row is the one before the worst step.
    """
    speeds = np.abs(np.diff(joints_rad, axis=0)) / np.diff(times_s)[:, None]
    for row, column in find_worst_rows(speeds, most_rad_s):
        value, limit = float(speeds[row, column]), float(most_rad_s[column])
        message = Text("{value}, allowed {limit}", value=rad_s(value), limit=rad_s(limit))
        yield LimitViolation(row, column, value, limit, value - limit, message)


def find_worst_rows(values: Array, limits: Array) -> Iterator[tuple[int, int]]:
    """Yield the worst row and the column, for each column above its limit."""
    if not len(values):
        return
    for column, row in enumerate(values.argmax(axis=0).tolist()):
        # Written this way round, the comparison treats NaN as unsafe.
        if not values[row, column] <= limits[column]:
            yield row, column


def check_positions(times_s: Array, joints_rad: Array, joints: Sequence[Joint]) -> None:
    """Raise `UnsafeMotionError` for the worst joint outside its range, if any is.

    `times_s` is (n,), `joints_rad` is (n, joints).
    """
    violations = find_position_violations(joints_rad, joints)
    beyond_tolerance = [each for each in violations if not each.excess <= TOLERANCE_RAD]
    _raise_for_worst(times_s, joints, beyond_tolerance)


def check_joint_speeds(
    times_s: Array, joints_rad: Array, joints: Sequence[Joint], most_rad_s: Array
) -> None:
    """Raise `UnsafeMotionError` for the worst joint faster than `most_rad_s`, if any is."""
    violations = list(find_speed_violations(times_s, joints_rad, most_rad_s))
    _raise_for_worst(times_s, joints, violations)


def _raise_for_worst(
    times_s: Array, joints: Sequence[Joint], violations: Sequence[LimitViolation]
) -> None:
    if violations:
        worst = max(violations, key=lambda each: each.excess)
        name = joints[worst.column].name
        raise UnsafeMotionError(name, float(times_s[worst.row]), worst.message)


def distance_outside_rad(values: Array, lower: Array, upper: Array) -> Array:
    """Return how far each joint is outside a range that it was in before; both are (n, joints).

    As on the robot, a joint that starts outside counts only after it has been inside.
    """
    beyond = np.maximum(lower - values, values - upper)
    been_inside = np.logical_or.accumulate(beyond <= 0, axis=0)
    return np.where(been_inside, np.maximum(beyond, 0.0), 0.0)
