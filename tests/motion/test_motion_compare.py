"""How far apart are two tracks? Errors and delays put in by hand are found again."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rote.errors import BadRequestError
from rote.motion.compare import average, best_of, compare, deviation
from rote.motion.edit.align import align
from rote.motion.edit.operations import jerk_rms
from rote.motion.track import Array, Mark, Track

NAMES = ("left_elbow_joint", "right_elbow_joint", "waist_yaw_joint")
LENGTH_S = 6.0


def motion(times_s: Array) -> Array:
    """Return a swing that begins and ends at rest, other for each joint."""
    phase = np.clip(times_s / LENGTH_S, 0.0, 1.0) * 2 * np.pi
    swing = 1 - np.cos(phase)
    return np.column_stack([0.5 * swing, -0.3 * swing * np.cos(phase), 0.2 * swing])


def moved(lag_s: float = 0.0, rate_hz: float = 100.0, begin_s: float = 0.0) -> Track:
    times_s = np.arange(round(LENGTH_S * rate_hz) + 1) / rate_hz
    return Track(times_s=begin_s + times_s, joints_rad=motion(times_s - lag_s), names=NAMES)


def changed(track: Track, joints_rad: Array) -> Track:
    return Track(times_s=track.times_s, joints_rad=joints_rad, names=track.names)


def test_a_track_does_not_deviate_from_itself() -> None:
    found = deviation(moved(), moved(), NAMES)
    assert found.rms_rad == pytest.approx(0.0, abs=1e-12)
    assert found.max_rad == pytest.approx(0.0, abs=1e-12)
    assert found.lag_s == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("lag_s", [-0.1, -0.03, 0.012, 0.04, 0.12])
def test_a_known_lag_is_found_and_taken_out(lag_s: float) -> None:
    found = deviation(moved(), moved(lag_s), NAMES)
    assert found.lag_s == pytest.approx(lag_s, abs=0.0011)
    assert found.max_rad < 1e-3


def test_a_known_error_is_found_with_its_joint_moment_and_size() -> None:
    track = moved()
    joints = track.joints_rad.copy()
    joints[250, 1] += 0.08
    found = deviation(track, changed(track, joints), NAMES)
    assert found.joint == "right_elbow_joint"
    assert found.time_s == pytest.approx(2.5)
    assert found.max_rad == pytest.approx(0.08)
    assert found.rms_rad == pytest.approx(0.08 / np.sqrt(joints.size))


def test_an_error_is_found_behind_a_lag() -> None:
    late = moved(0.05)
    joints = late.joints_rad.copy()
    joints[400, 2] -= 0.06
    found = deviation(moved(), changed(late, joints), NAMES)
    assert found.joint == "waist_yaw_joint"
    assert found.time_s == pytest.approx(4.0)
    assert found.max_rad == pytest.approx(0.06, abs=1e-3)
    assert found.lag_s == pytest.approx(0.05, abs=0.0011)


def test_an_even_offset_is_its_own_mean() -> None:
    track = moved()
    found = deviation(track, changed(track, track.joints_rad + 0.01), ("left_elbow_joint",))
    assert found.rms_rad == pytest.approx(0.01, rel=0.05)


def test_joints_that_are_not_compared_do_not_count() -> None:
    track = moved()
    joints = track.joints_rad.copy()
    joints[:, 2] += 1.0
    found = deviation(track, changed(track, joints), NAMES[:2])
    assert found.max_rad == pytest.approx(0.0, abs=1e-12)


def test_columns_are_matched_by_name() -> None:
    track = moved()
    turned = Track(
        times_s=track.times_s, joints_rad=track.joints_rad[:, ::-1], names=track.names[::-1]
    )
    assert deviation(track, turned, NAMES).max_rad == pytest.approx(0.0, abs=1e-12)


def test_neither_the_clock_nor_the_rate_of_a_track_matters() -> None:
    found = deviation(moved(begin_s=5000.0), moved(0.02, rate_hz=50.0, begin_s=-3.0), NAMES)
    assert found.lag_s == pytest.approx(0.02, abs=0.0011)
    assert found.max_rad < 1e-3


def test_a_comparison_needs_two_samples_of_each_track() -> None:
    short = Track(times_s=np.zeros(1), joints_rad=np.zeros((1, 3)), names=NAMES)
    for reference, other in ((short, moved()), (moved(), short)):
        with pytest.raises(BadRequestError, match="two samples"):
            deviation(reference, other, NAMES)


@pytest.mark.parametrize("joints", [[], ["no_such_joint"]])
def test_joints_that_cannot_be_compared_are_named(joints: list[str]) -> None:
    track = Track(times_s=np.array([0.0, 1.0]), joints_rad=np.zeros((2, 1)), names=("a_joint",))
    with pytest.raises(BadRequestError, match="cannot be compared"):
        deviation(track, track, joints)


# ---- aligned in time ----------------------------------------------------------------------------


def taken(strength: float = 0.0, error_rad: float = 0.0, seconds: float = LENGTH_S) -> Track:
    """Return a take: the motion hurried and slowed in turn, with an error of its own."""
    times_s = np.linspace(0.0, seconds, round(seconds * 100) + 1)
    share = times_s / seconds
    origin_s = LENGTH_S * (share + strength * np.sin(2 * np.pi * share) / (2 * np.pi))
    bump = error_rad * np.sin(np.pi * share)[:, None] ** 2
    return Track(times_s=times_s, joints_rad=motion(origin_s) + bump, names=NAMES)


def test_takes_that_differ_in_timing_alone_do_not_deviate() -> None:
    found = compare(taken(), taken(0.5, seconds=5.0))
    assert found.max_rad < 5e-3
    assert found.rms_rad < 1e-3
    assert (found.duration_s, found.other_duration_s) == (6.0, 5.0)
    assert found.warp_s > 0.3


def test_a_joint_that_was_led_elsewhere_is_named_with_size_and_moment() -> None:
    other = taken(0.3)
    joints_rad = other.joints_rad.copy()
    joints_rad[250:300, 1] += 0.2
    found = compare(taken(), changed(other, joints_rad))
    assert found.worst.joint == "right_elbow_joint"
    # The best alignment may share the error out among the joints, but not hide it.
    assert 0.1 < found.worst.max_rad < 0.21
    assert 2.0 < found.worst.time_s < 4.5
    assert found.max_rad == max(joint.max_rad for joint in found.joints)
    assert [joint.joint for joint in found.joints] == list(NAMES)


def test_each_joint_is_said_how_it_jerks_in_both_takes() -> None:
    smooth, rough = taken(), taken()
    noise = np.random.default_rng(3).standard_normal(len(rough)) * 1e-3
    joints_rad = rough.joints_rad.copy()
    joints_rad[:, 2] += noise
    found = compare(smooth, changed(rough, joints_rad))
    left, _, waist = found.joints
    assert left.jerk_rad_s3 == pytest.approx(left.other_jerk_rad_s3)
    assert waist.other_jerk_rad_s3 > 100 * waist.jerk_rad_s3
    whole = np.sqrt(np.mean([joint.jerk_rad_s3**2 for joint in found.joints]))
    assert whole == pytest.approx(jerk_rms(smooth))


def test_only_shared_joints_or_those_asked_for_are_compared() -> None:
    less = Track(times_s=taken().times_s, joints_rad=taken().joints_rad[:, :2], names=NAMES[:2])
    assert [joint.joint for joint in compare(taken(), less).joints] == list(NAMES[:2])
    assert [j.joint for j in compare(taken(), taken(), NAMES[2:]).joints] == list(NAMES[2:])


def test_a_comparison_in_time_needs_four_samples() -> None:
    short = Track(times_s=np.arange(3.0), joints_rad=np.zeros((3, 3)), names=NAMES)
    for pair in ((short, taken()), (taken(), short)):
        with pytest.raises(BadRequestError, match="4 samples"):
            compare(*pair)


def test_the_best_take_is_the_one_the_others_are_around() -> None:
    errors = (0.3, -0.2, 0.02, -0.35, 0.25)
    takes = [taken(0.1 * place, error) for place, error in enumerate(errors)]
    assert best_of(takes) == 2
    assert best_of([*takes[3:], *takes[:3]]) == 4
    assert best_of(takes[:1]) == 0


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_the_average_of_identical_takes_is_the_take(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    times_s = 3.0 + np.cumsum(random.uniform(0.005, 0.03, 60))
    joints_rad = np.cumsum(random.uniform(-0.05, 0.05, (60, 3)), axis=0)
    take = Track(times_s=times_s, joints_rad=joints_rad, names=NAMES, marks=(Mark(3.3, "here"),))
    found = average([take] * count)
    assert found.times_s == pytest.approx(take.times_s, abs=1e-9)
    assert found.joints_rad == pytest.approx(take.joints_rad, abs=1e-9)
    assert found.marks[0].time_s == pytest.approx(3.3)
    assert found.history == (f"average of {count} takes, starting from take 1",)


def test_the_average_is_in_the_middle_of_poses_and_of_timing() -> None:
    takes = [taken(0.2, 0.01), taken(-0.2, -0.01), taken(0.4, 0.005), taken(-0.4, -0.005)]
    found = average(takes)
    middle = compare(taken(), found)
    assert middle.max_rad < 0.01
    # Each take is early or late by 0.19 s at least. Where it rests, at both ends, there is nothing
    # to tell one moment from another by.
    assert np.abs(align(taken(), found).late_s[100:-100]).max() < 0.15
    assert all(middle.rms_rad < compare(taken(), take).rms_rad for take in takes)


def test_the_average_of_a_quick_and_a_slow_take_is_between() -> None:
    found = average([taken(seconds=4.0), taken(seconds=6.0), taken(seconds=8.0)])
    assert found.duration_s == pytest.approx(6.0, abs=0.1)
    assert compare(taken(), found).max_rad < 0.02
    assert (np.diff(found.times_s) > 0).all()


def test_joints_in_another_order_are_averaged_by_name() -> None:
    take = taken()
    turned = Track(times_s=take.times_s, joints_rad=take.joints_rad[:, ::-1], names=NAMES[::-1])
    assert average([take, turned]).joints_rad == pytest.approx(take.joints_rad, abs=1e-9)


def test_takes_of_hardly_any_time_have_an_average() -> None:
    take = taken()
    brief = replace(take, times_s=take.times_s * 1e-9)
    found = average([brief, brief])
    assert found.joints_rad == pytest.approx(brief.joints_rad, abs=1e-9)
    assert 1e9 * found.times_s == pytest.approx(take.times_s, abs=1e-6)


def test_no_takes_and_takes_of_other_joints_have_no_average() -> None:
    with pytest.raises(BadRequestError, match="no takes to choose from"):
        average([])
    less = replace(taken(), joints_rad=taken().joints_rad[:, :2], names=NAMES[:2])
    with pytest.raises(BadRequestError, match="different joints"):
        average([taken(), less])
