"""A person acts on what a safety check says: it must name the right joint, moment and number."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rote.errors import UnsafeMotionError
from rote.model.g1 import G1_JOINTS
from rote.motion.check.limits import (
    MAX_PLAYED_RAD_S,
    TOLERANCE_RAD,
    check_joint_speeds,
    check_positions,
    playback_limits_rad_s,
)

ELBOWS = (G1_JOINTS[18], G1_JOINTS[25])
"""Both reach from -1.0472 to 2.0944 rad."""
TIMES_S = np.array([10.0, 10.1, 10.3, 10.4])
MAX_RAD_S = np.array([5.0, 8.0])


def test_positions_inside_the_limits_pass() -> None:
    check_positions(TIMES_S[:2], np.array([[-1.0472, 2.0944], [2.0944, -1.0472]]), ELBOWS)


def test_the_worst_joint_above_its_limit_is_named_with_moment_and_number() -> None:
    poses = np.zeros((4, 2))
    poses[1, 0] = 2.2
    poses[2, 1] = 2.5
    with pytest.raises(UnsafeMotionError) as caught:
        check_positions(TIMES_S, poses, ELBOWS)
    assert caught.value.joint == "right_elbow_joint"
    assert caught.value.time_s == 10.3
    assert caught.value.reason == "2.50 rad, allowed -1.05 to 2.09 rad"


def test_the_worst_joint_below_its_limit_is_named_with_moment_and_number() -> None:
    poses = np.zeros((4, 2))
    poses[0, 0] = -1.4
    poses[3, 1] = -1.2
    with pytest.raises(UnsafeMotionError) as caught:
        check_positions(TIMES_S, poses, ELBOWS)
    assert caught.value.joint == "left_elbow_joint"
    assert caught.value.time_s == 10.0
    assert caught.value.reason.startswith("-1.40 rad")


@pytest.mark.parametrize("side", [-1, 1])
def test_a_joint_may_read_a_little_beyond_its_stop_and_no_more(side: int) -> None:
    joint = ELBOWS[0]
    limit = joint.upper_rad if side > 0 else joint.lower_rad
    inside = np.array([[limit + side * (TOLERANCE_RAD - 1e-6)]])
    outside = np.array([[limit + side * (TOLERANCE_RAD + 1e-6)]])
    check_positions(TIMES_S[:1], inside, [joint])
    with pytest.raises(UnsafeMotionError):
        check_positions(TIMES_S[:1], outside, [joint])


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e300])
def test_an_absurd_position_is_refused(bad: float) -> None:
    with pytest.raises(UnsafeMotionError):
        check_positions(TIMES_S[:2], np.array([[0.0, 0.0], [0.0, bad]]), ELBOWS)


def test_the_fastest_joint_is_named_with_the_moment_it_begins_and_its_speed() -> None:
    # The left one is 1.0 rad/s too fast at first, the right one then 1.1, over 0.2 s.
    poses = np.array([[0.0, 0.0], [0.6, 0.0], [0.6, 1.82], [0.6, 1.82]])
    with pytest.raises(UnsafeMotionError) as caught:
        check_joint_speeds(TIMES_S, poses, ELBOWS, MAX_RAD_S)
    assert caught.value.joint == "right_elbow_joint"
    assert caught.value.time_s == 10.1
    assert caught.value.reason == "9.1 rad/s, allowed 8.0 rad/s"


def test_each_joint_has_its_own_speed_limit() -> None:
    times_s, poses = np.array([0.0, 0.1]), np.array([[0.0, 0.0], [0.55, 0.75]])
    with pytest.raises(UnsafeMotionError) as caught:
        check_joint_speeds(times_s, poses, ELBOWS, MAX_RAD_S)
    assert caught.value.joint == "left_elbow_joint"
    check_joint_speeds(times_s, poses, ELBOWS, np.array([6.0, 8.0]))


def test_moving_back_fast_is_as_unsafe_as_moving_forth() -> None:
    times_s, poses = np.array([0.0, 0.1]), np.array([[1.0, 0.0], [0.0, 0.0]])
    with pytest.raises(UnsafeMotionError, match=r"left_elbow_joint at 0\.00 s: 10\.0 rad/s"):
        check_joint_speeds(times_s, poses, ELBOWS, MAX_RAD_S)


def test_a_speed_just_at_its_limit_passes() -> None:
    check_joint_speeds(np.array([0.0, 0.5]), np.array([[0.0], [2.5]]), ELBOWS[:1], np.array([5.0]))


@pytest.mark.parametrize("count", [0, 1])
def test_no_samples_are_safe_and_one_has_no_speed(count: int) -> None:
    poses = np.zeros((count, 2))
    check_positions(TIMES_S[:count], poses, ELBOWS)
    check_joint_speeds(TIMES_S[:count], poses, ELBOWS, MAX_RAD_S)


def test_one_sample_outside_its_range_is_still_unsafe() -> None:
    with pytest.raises(UnsafeMotionError):
        check_positions(TIMES_S[:1], np.array([[0.0, 3.0]]), ELBOWS)


POSE = st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=2)


@given(st.lists(POSE, min_size=1, max_size=6))
def test_a_motion_is_refused_exactly_when_some_joint_leaves_its_range(
    rows: list[list[float]],
) -> None:
    poses, times_s = np.array(rows), np.arange(float(len(rows)))
    lower, upper = ELBOWS[0].lower_rad - TOLERANCE_RAD, ELBOWS[0].upper_rad + TOLERANCE_RAD
    assume(min(np.abs(poses - lower).min(), np.abs(poses - upper).min()) > 1e-9)
    outside = (poses < lower) | (poses > upper)
    if not outside.any():
        check_positions(times_s, poses, ELBOWS)
        return
    with pytest.raises(UnsafeMotionError) as caught:
        check_positions(times_s, poses, ELBOWS)
    column = [joint.name for joint in ELBOWS].index(caught.value.joint)
    assert outside[int(caught.value.time_s), column]


def test_nothing_is_played_faster_than_its_motor_or_than_is_wise() -> None:
    slow = replace(G1_JOINTS[18], velocity_rad_s=3.0)
    assert playback_limits_rad_s([slow, G1_JOINTS[25]]).tolist() == [3.0, MAX_PLAYED_RAD_S]
    assert playback_limits_rad_s(G1_JOINTS).max() == MAX_PLAYED_RAD_S
