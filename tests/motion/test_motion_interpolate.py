"""Between samples nothing surprising may happen: no method leaves the two samples around it."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rote.messages import Interpolation, Keyframe
from rote.motion.interpolate import MINIMUM_JERK_PEAK, minimum_jerk, sample, sample_keyframes
from rote.motion.track import Array

EVERY = list(Interpolation)
ANGLE = st.floats(-6.0, 6.0)


@dataclass(frozen=True)
class Samples:
    """What to interpolate."""

    times_s: Array
    values: Array


@st.composite
def samples(draw: st.DrawFn, least: int = 1) -> Samples:
    widths = draw(st.lists(st.floats(0.001, 5.0), min_size=least - 1, max_size=7))
    begin_s = draw(st.floats(-10.0, 10.0))
    joints = draw(st.integers(1, 3))
    row = st.lists(ANGLE, min_size=joints, max_size=joints)
    rows = draw(st.lists(row, min_size=len(widths) + 1, max_size=len(widths) + 1))
    return Samples(begin_s + np.cumsum([0.0, *widths]), np.array(rows))


def slope(times_s: Array, values: Array, at_s: float, how: Interpolation, step_s: float) -> float:
    """Return the slope between a moment and one a little before or after it."""
    here, there = sample(times_s, values, np.array([at_s, at_s + step_s]), how)[:, 0]
    return float((there - here) / step_s)


# ---- on a shared time base ----------------------------------------------------------------------


@pytest.mark.parametrize("how", EVERY)
@given(data=samples())
def test_every_method_passes_through_the_samples(how: Interpolation, data: Samples) -> None:
    values = sample(data.times_s, data.values, data.times_s, how)
    np.testing.assert_allclose(values, data.values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("how", EVERY)
@given(data=samples(least=2), fractions=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
@example(  # a plain cubic through these swings out to -0.6 and 3.6
    data=Samples(np.array([0.0, 1.0, 1.1, 2.0]), np.array([[0.0], [0.0], [3.0], [3.0]])),
    fractions=[0.1, 0.25, 0.5, 0.75, 0.9],
)
def test_no_method_leaves_the_two_samples_around_a_moment(
    how: Interpolation, data: Samples, fractions: list[float]
) -> None:
    for left, fraction in itertools.product(range(len(data.times_s) - 1), fractions):
        begin_s, end_s = data.times_s[left], data.times_s[left + 1]
        # Rounding may carry begin + width past the end, into the next pair of samples.
        at_s = np.array([min(begin_s + fraction * (end_s - begin_s), end_s)])
        (value,) = sample(data.times_s, data.values, at_s, how)
        pair = data.values[left : left + 2]
        assert (value >= pair.min(axis=0) - 1e-12).all()
        assert (value <= pair.max(axis=0) + 1e-12).all()


@pytest.mark.parametrize("how", EVERY)
@given(data=samples(), far_s=st.floats(0.0, 1e6))
def test_values_hold_before_the_first_and_after_the_last_sample(
    how: Interpolation, data: Samples, far_s: float
) -> None:
    at_s = np.array([data.times_s[0] - far_s, data.times_s[-1] + far_s])
    before, after = sample(data.times_s, data.values, at_s, how)
    np.testing.assert_allclose(before, data.values[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(after, data.values[-1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("how", EVERY)
def test_one_sample_is_the_value_at_every_moment(how: Interpolation) -> None:
    values = sample(np.array([3.0]), np.array([[0.5, -0.5]]), np.array([-1.0, 3.0, 9.0]), how)
    assert values.tolist() == [[0.5, -0.5]] * 3


@pytest.mark.parametrize("how", EVERY)
def test_no_moments_give_no_values(how: Interpolation) -> None:
    times_s, values = np.array([0.0, 1.0]), np.array([[0.0, 1.0], [1.0, 0.0]])
    assert sample(times_s, values, np.array([]), how).shape == (0, 2)


def test_linear_is_half_way_at_half_time() -> None:
    times_s, values = np.array([0.0, 2.0, 3.0]), np.array([[0.0], [1.0], [-3.0]])
    at_s = np.array([0.5, 1.0, 2.25, 2.5])
    assert sample(times_s, values, at_s, Interpolation.LINEAR)[:, 0].tolist() == [
        0.25,
        0.5,
        0.0,
        -1.0,
    ]


def test_smooth_step_follows_its_polynomial() -> None:
    at_s = np.array([0.25, 0.5, 0.75])
    values = sample(np.array([0.0, 1.0]), np.array([[0.0], [1.0]]), at_s, Interpolation.SMOOTH)
    np.testing.assert_allclose(values[:, 0], [0.15625, 0.5, 0.84375])


@given(data=samples(least=3))
def test_smooth_step_has_no_slope_at_a_knot(data: Samples) -> None:
    for knot in range(1, len(data.times_s) - 1):
        at_s = float(data.times_s[knot])
        for neighbour in (knot - 1, knot + 1):
            width_s = float(data.times_s[neighbour] - at_s)
            rise = abs(float(data.values[neighbour, 0] - data.values[knot, 0]))
            steepness = slope(data.times_s, data.values, at_s, Interpolation.SMOOTH, 1e-4 * width_s)
            # Of u * u * (3 - 2 u), at u = 1e-4, no more than 3e-4 of the mean slope is left.
            assert abs(steepness) <= 3.1e-4 * rise / abs(width_s) + 1e-6


MONOTONE = Samples(
    np.array([0.0, 1.0, 1.5, 3.0, 3.4]), np.array([[0.0], [0.4], [1.5], [1.7], [2.6]])
)


@pytest.mark.parametrize("knot", [1, 2, 3])
def test_the_cubic_keeps_its_slope_across_a_knot_where_linear_has_a_corner(knot: int) -> None:
    times_s, values = MONOTONE.times_s, MONOTONE.values
    at_s = float(times_s[knot])

    def corner(how: Interpolation) -> float:
        before = slope(times_s, values, at_s, how, -1e-6)
        return abs(slope(times_s, values, at_s, how, 1e-6) - before)

    assert corner(Interpolation.CUBIC) < 1e-4
    assert corner(Interpolation.LINEAR) > 0.5


def test_the_cubic_keeps_moving_through_a_knot_where_smooth_step_halts() -> None:
    times_s, values = MONOTONE.times_s, MONOTONE.values
    assert slope(times_s, values, 1.0, Interpolation.CUBIC, 1e-6) > 0.3
    assert slope(times_s, values, 1.0, Interpolation.SMOOTH, 1e-6) < 1e-4


def test_the_cubic_halts_at_a_turning_point() -> None:
    times_s, values = np.array([0.0, 1.0, 2.0]), np.array([[0.0], [1.0], [0.2]])
    for step_s in (-1e-6, 1e-6):
        assert abs(slope(times_s, values, 1.0, Interpolation.CUBIC, step_s)) < 1e-4


@given(data=samples(least=2), start=ANGLE, steepness=st.floats(-3.0, 3.0))
def test_the_cubic_of_a_straight_line_is_that_line(
    data: Samples, start: float, steepness: float
) -> None:
    at_s = np.linspace(data.times_s[0], data.times_s[-1], 50)
    line = (start + steepness * data.times_s)[:, None]
    np.testing.assert_allclose(
        sample(data.times_s, line, at_s, Interpolation.CUBIC)[:, 0],
        start + steepness * at_s,
        atol=1e-9,
    )


# ---- keyframes ----------------------------------------------------------------------------------


def keys(*rows: tuple[int, int, float]) -> tuple[Keyframe, ...]:
    return tuple(Keyframe(joint=j, time_ms=t, value_rad=v) for j, t, v in rows)


START = np.array([0.1, 0.2, 0.3])


@pytest.mark.parametrize("how", EVERY)
def test_a_joint_without_keyframes_keeps_the_start_pose(how: Interpolation) -> None:
    at_s = np.linspace(0.0, 3.0, 31)
    poses = sample_keyframes(keys((1, 1000, 2.0)), START, at_s, how)
    assert poses.shape == (31, 3)
    assert (poses[:, 0] == 0.1).all()
    assert (poses[:, 2] == 0.3).all()


@pytest.mark.parametrize("how", EVERY)
def test_a_joint_goes_from_the_start_pose_through_its_keyframes_and_holds(
    how: Interpolation,
) -> None:
    keyframes = keys((1, 500, 1.0), (1, 1500, -1.0))
    at_s = np.array([0.0, 0.5, 1.5, 60.0])
    values = sample_keyframes(keyframes, START, at_s, how)[:, 1]
    np.testing.assert_allclose(values, [0.2, 1.0, -1.0, -1.0])


def test_a_keyframe_at_time_zero_replaces_the_start_pose() -> None:
    keyframes = keys((1, 0, 0.9), (1, 1000, 1.9))
    poses = sample_keyframes(keyframes, START, np.array([0.0, 0.5]), Interpolation.LINEAR)
    np.testing.assert_allclose(poses[:, 1], [0.9, 1.4])


def test_a_single_keyframe_at_time_zero_holds_for_good() -> None:
    poses = sample_keyframes(keys((2, 0, 0.7)), START, np.array([0.0, 9.0]), Interpolation.CUBIC)
    assert poses[:, 2].tolist() == [0.7, 0.7]


def test_the_order_of_keyframes_does_not_matter() -> None:
    keyframes = keys((1, 500, 1.0), (0, 800, 0.4), (1, 1500, -1.0), (1, 900, 0.2))
    at_s = np.linspace(0.0, 2.0, 41)
    for how in EVERY:
        wanted = sample_keyframes(keyframes, START, at_s, how)
        for shuffled in itertools.permutations(keyframes):
            np.testing.assert_array_equal(sample_keyframes(shuffled, START, at_s, how), wanted)


def test_of_two_keyframes_for_one_moment_the_later_one_counts() -> None:
    keyframes = keys((0, 1000, 5.0), (0, 1000, 1.1))
    poses = sample_keyframes(keyframes, START, np.array([0.5, 1.0]), Interpolation.LINEAR)
    np.testing.assert_allclose(poses[:, 0], [0.6, 1.1])


def test_joints_have_time_bases_of_their_own() -> None:
    keyframes = keys((0, 1000, 1.1), (1, 4000, 4.2))
    poses = sample_keyframes(keyframes, START, np.array([1.0, 2.0]), Interpolation.LINEAR)
    np.testing.assert_allclose(poses[:, 0], [1.1, 1.1])
    np.testing.assert_allclose(poses[:, 1], [1.2, 2.2])


def test_the_start_pose_given_is_not_changed() -> None:
    start = START.copy()
    sample_keyframes(keys((0, 0, 9.0), (1, 5, 9.0)), start, np.array([1.0]), Interpolation.LINEAR)
    assert start.tolist() == START.tolist()


@pytest.mark.parametrize("how", EVERY)
@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 65535), ANGLE), max_size=20),
    at_s=st.lists(st.floats(0.0, 70.0), min_size=1, max_size=10),
)
def test_keyframes_never_take_a_joint_beyond_its_own_values(
    how: Interpolation, rows: list[tuple[int, int, float]], at_s: list[float]
) -> None:
    poses = sample_keyframes(keys(*rows), START, np.array(at_s), how)
    for joint in range(3):
        own = [START[joint], *(value for j, _, value in rows if j == joint)]
        assert poses[:, joint].min() >= min(own) - 1e-12
        assert poses[:, joint].max() <= max(own) + 1e-12


# ---- minimum jerk -------------------------------------------------------------------------------


def test_minimum_jerk_begins_and_ends_where_it_should_and_at_rest() -> None:
    start, end = np.array([0.0, 1.0, -2.0]), np.array([1.0, -1.0, -2.0])
    fractions = np.array([0.0, 1e-4, 0.5, 1 - 1e-4, 1.0])
    poses = minimum_jerk(start, end, fractions)
    assert poses[0].tolist() == start.tolist()
    assert poses[-1].tolist() == end.tolist()
    np.testing.assert_allclose(poses[2], (start + end) / 2)
    # It leaves and arrives with neither speed nor acceleration: by the third power of the time.
    assert np.abs(poses[1] - start).max() < 3e-11
    assert np.abs(poses[3] - end).max() < 3e-11


def test_minimum_jerk_peaks_at_the_stated_multiple_of_the_mean_speed() -> None:
    steps = 20_000
    fractions = np.linspace(0.0, 1.0, steps + 1)
    (moved,) = minimum_jerk(np.array([0.5]), np.array([2.5]), fractions).T
    speeds = np.diff(moved) * steps / 2.0
    assert speeds.max() == pytest.approx(MINIMUM_JERK_PEAK, rel=1e-6)
    assert abs(int(speeds.argmax()) - steps // 2) <= 1
    assert speeds.min() >= 0


def test_minimum_jerk_holds_outside_its_time() -> None:
    poses = minimum_jerk(np.array([0.0]), np.array([1.0]), np.array([-3.0, 1.5]))
    assert poses[:, 0].tolist() == [0.0, 1.0]
