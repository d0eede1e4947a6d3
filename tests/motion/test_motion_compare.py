"""How far apart are two tracks? Errors and delays put in by hand are found again."""

import numpy as np
import pytest

from rote.errors import BadRequestError
from rote.motion.compare import deviation
from rote.motion.track import Array, Track

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


@pytest.mark.parametrize("count", [0, 1])
def test_a_comparison_needs_two_samples_of_each_track(count: int) -> None:
    short = Track(times_s=np.arange(float(count)), joints_rad=np.zeros((count, 3)), names=NAMES)
    for reference, other in ((short, moved()), (moved(), short)):
        with pytest.raises(BadRequestError, match="two samples"):
            deviation(reference, other, NAMES)


@pytest.mark.parametrize("joints", [[], ["no_such_joint"]])
def test_joints_that_cannot_be_compared_are_named(joints: list[str]) -> None:
    track = Track(times_s=np.array([0.0, 1.0]), joints_rad=np.zeros((2, 1)), names=("a_joint",))
    with pytest.raises(BadRequestError, match="cannot be compared"):
        deviation(track, track, joints)
