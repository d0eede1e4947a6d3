"""The position and speed limits of joints.

`find_position_violations` and `find_speed_violations` yield the worst violation of each joint.
`check` makes findings of them; `check_positions` and `check_joint_speeds` raise for the worst joint
of all, before anything is played.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rote.errors import UnsafeMotionError
from rote.findings import Finding, FindingKind, Severity
from rote.model.family import Joint
from rote.motion.track import Array
from rote.text import Span, Text, rad, rad_s, seconds

# ---- gaps ----------------------------------------------------------------------------------------

_GAP_S, _GAP_STEPS = 0.1, 3.0
_LONG_GAP_S, _LONG_GAP_STEPS = 0.5, 10.0
"""The time between two samples is a gap, or a long gap, if it exceeds both this time and this
multiple of the median."""


def find_gaps(times_s: Array) -> list[int]:
    """Return the rows that are followed by a gap."""
    steps = np.diff(times_s)
    return np.flatnonzero(steps > _compute_max_step_s(steps)).tolist() if steps.size else []


def _compute_max_step_s(steps: Array) -> float:
    """Return the longest time between two samples that is not a gap."""
    return max(_GAP_S, _GAP_STEPS * float(np.median(steps)))


def make_gap_findings(times_s: Array, max_gap_s: float | None = None) -> Iterator[Finding]:
    """Yield one finding about all gaps, if any; a gap longer than `max_gap_s` is an error.

    Without `max_gap_s`, a long gap is an error.
    """
    steps = np.diff(times_s)
    if not steps.size:
        return
    usual_s, longest = float(np.median(steps)), int(steps.argmax())
    longest_s = float(steps[longest])
    long_gap_s = max_gap_s
    if long_gap_s is None:
        long_gap_s = max(_LONG_GAP_S, _LONG_GAP_STEPS * usual_s)
    allowed_s = min(_compute_max_step_s(steps), long_gap_s)
    if longest_s <= allowed_s:
        return
    count = int((steps > allowed_s).sum())
    yield Finding(
        severity=Severity.ERROR if longest_s > long_gap_s else Severity.WARNING,
        kind=FindingKind.GAP,
        time_s=float(times_s[longest]),
        value=longest_s,
        limit=allowed_s,
        margin=allowed_s - longest_s,
        unit="s",
        message=Text(
            "{count} in the recording, the longest of {longest}; samples are usually {usual} apart",
            count=f"{count} gap{'s' if count > 1 else ''}",
            longest=seconds(longest_s),
            usual=seconds(usual_s, 3),
        ),
        remedy="Teach it again on a better network, or resample it if the motion is still right.",
    )


# ---- limits --------------------------------------------------------------------------------------


TOLERANCE_RAD = 0.02
"""Tolerated excess over a position limit: a joint pushed against its stop reads a little more."""

MAX_PLAYED_RAD_S = 10.0
"""Maximum playback speed; most motors could turn three times as fast."""
MAX_PLAYED_RAD_S2 = 100.0
"""Maximum acceleration of arm motors that move only the arm; this project's estimate."""

RETIME_RAD_S2 = 40.0
RETIME_RAD_S3 = 800.0
"""The default acceleration and jerk of a retimed motion: a brisk arm that does not shake. This
project's choice."""


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
        value = float(joints_rad[row, column])
        low, high = float(lower[column]), float(upper[column])
        yield LimitViolation(
            row,
            column,
            value,
            high if value > high else low,
            float(excess[row, column]),
            Text("{value}, allowed {allowed}", value=rad(value), allowed=Span(low, high, "rad")),
        )


def find_speed_violations(
    times_s: Array, joints_rad: Array, limits_rad_s: Array
) -> Iterator[LimitViolation]:
    """Yield each joint that is faster than its limit; `limits_rad_s` is (joints,).

    A speed is that of the step from one sample to the next; its row is the first of both.
    """
    speeds = np.abs(np.diff(joints_rad, axis=0)) / np.diff(times_s)[:, None]
    for row, column in find_worst_rows(speeds, limits_rad_s):
        value, limit = float(speeds[row, column]), float(limits_rad_s[column])
        message = Text("{value}, allowed {limit}", value=rad_s(value), limit=rad_s(limit))
        yield LimitViolation(row, column, value, limit, value - limit, message)


def find_worst_rows(values: Array, limits: Array) -> Iterator[tuple[int, int]]:
    """Yield for each column above its limit the row of its largest value, and the column."""
    if not len(values):
        return
    for column, row in enumerate(values.argmax(axis=0).tolist()):
        # `not <=` treats NaN as unsafe; `>` would not.
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
    times_s: Array, joints_rad: Array, joints: Sequence[Joint], limits_rad_s: Array
) -> None:
    """Raise `UnsafeMotionError` for the worst joint faster than its limit, if any is."""
    violations = list(find_speed_violations(times_s, joints_rad, limits_rad_s))
    _raise_for_worst(times_s, joints, violations)


def _raise_for_worst(
    times_s: Array, joints: Sequence[Joint], violations: Sequence[LimitViolation]
) -> None:
    if violations:
        worst = max(violations, key=lambda each: each.excess)
        name = joints[worst.column].name
        raise UnsafeMotionError(name, float(times_s[worst.row]), worst.message)


def compute_distances_outside_rad(joints_rad: Array, lower: Array, upper: Array) -> Array:
    """Return how far each joint is outside its range; argument and result are (n, joints).

    As on the robot, the result is 0 until a joint has been inside its range for the first time.
    """
    excess = np.maximum(lower - joints_rad, joints_rad - upper)
    has_been_inside = np.logical_or.accumulate(excess <= 0, axis=0)
    return np.where(has_been_inside, np.maximum(excess, 0.0), 0.0)
