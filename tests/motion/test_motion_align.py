"""Two performances of one motion are laid over each other; the warp put in is found again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.motion.compare import compare
from rote.motion.edit.align import align, warping_path
from rote.motion.interpolate import sample
from rote.motion.track import Array, Track

NAMES = ("left_elbow_joint", "right_elbow_joint", "waist_yaw_joint")


def motion(seconds: float = 6.0, rate_hz: float = 100.0, begin_s: float = 0.0) -> Track:
    """Return three joints that never are in one pose twice."""
    times_s = np.arange(round(seconds * rate_hz) + 1) / rate_hz
    phase = 2 * np.pi * times_s / seconds
    joints_rad = np.column_stack([np.sin(phase), np.cos(1.7 * phase), 0.8 * phase / np.pi])
    return Track(times_s=begin_s + times_s, joints_rad=joints_rad, names=NAMES)


def sample_aligned(track: Track, strength: float, turns: float = 1.0) -> tuple[Track, Array]:
    """Return the same motion with other timing, and where each of its samples comes from."""
    length_s = track.duration_s
    since_s = track.times_s - track.times_s[0]
    bend_s = strength * length_s / (2 * np.pi * turns)
    origin_s = since_s + bend_s * np.sin(2 * np.pi * turns * since_s / length_s)
    joints_rad = sample(since_s, track.joints_rad, origin_s, Interpolation.CUBIC)
    return Track(times_s=track.times_s, joints_rad=joints_rad, names=track.names), origin_s


def cheapest(a: Array, b: Array) -> float:
    """Return the least cost of a path, by filling the whole table."""
    costs = np.full((len(a) + 1, len(b) + 1), np.inf)
    costs[0, 0] = 0.0
    for i in range(len(a)):
        for k in range(len(b)):
            before = min(costs[i, k], costs[i, k + 1], costs[i + 1, k])
            costs[i + 1, k + 1] = before + np.square(a[i] - b[k]).sum()
    return float(costs[-1, -1])


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_the_path_is_the_cheapest_there_is(rows: int, columns: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    a, b = random.standard_normal((rows, 2)), random.standard_normal((columns, 2))
    path_a, path_b = warping_path(a, b)
    assert np.square(a[path_a] - b[path_b]).sum() == pytest.approx(cheapest(a, b))
    assert (path_a[0], path_b[0]) == (0, 0)
    assert (path_a[-1], path_b[-1]) == (rows - 1, columns - 1)
    steps = np.column_stack([np.diff(path_a), np.diff(path_b)])
    assert set(map(tuple, steps.tolist())) <= {(0, 1), (1, 0), (1, 1)}


@settings(max_examples=20, deadline=None)
@given(st.floats(-0.6, 0.6), st.integers(1, 3))
def test_a_warped_copy_of_a_track_is_the_track(strength: float, turns: int) -> None:
    track = motion(seconds=3.0)
    other, origin_s = sample_aligned(track, strength, turns)
    found = align(other, track)
    assert found.other_s == pytest.approx(origin_s, abs=0.012)
    assert np.abs(found.other_s - origin_s).mean() < 0.002
    assert compare(other, track).max_rad < 5e-3
    assert compare(other, track).rms_rad < 1e-3


def test_long_tracks_are_aligned_within_a_band_as_well_as_short_ones() -> None:
    track = motion(seconds=30.0)
    other, origin_s = sample_aligned(track, 0.5, 4.0)
    found = align(other, track)
    assert found.other_s == pytest.approx(origin_s, abs=0.012)


def test_a_long_pause_in_one_take_is_waited_out() -> None:
    track = motion(seconds=10.0)
    half = len(track) // 2
    rows = np.r_[:half, np.full(800, half), half : len(track)]
    paused = Track(
        times_s=np.arange(len(rows)) / 100.0, joints_rad=track.joints_rad[rows], names=NAMES
    )
    there, back = align(track, paused), align(paused, track)
    assert there.other_s[-1] == pytest.approx(paused.times_s[-1], abs=0.01)
    assert there.late_s[half // 2] == pytest.approx(0.0, abs=0.011)
    assert there.late_s[-half // 2] == pytest.approx(8.0, abs=0.011)
    assert np.ptp(back.other_s[half + 5 : half + 795]) < 0.03
    assert compare(track, paused).max_rad < 1e-3


def test_a_track_that_comes_later_is_late_by_so_much() -> None:
    track = motion(seconds=4.0)
    rows = np.r_[np.zeros(30, dtype=int), : len(track)]
    late = Track(times_s=np.arange(len(rows)) / 100, joints_rad=track.joints_rad[rows], names=NAMES)
    found = align(track, late)
    assert found.lag_s == pytest.approx(0.3, abs=0.005)
    assert found.warp_s == pytest.approx(0.15, abs=0.16)


def test_neither_clock_nor_rate_nor_order_of_joints_matters() -> None:
    other = motion(rate_hz=37.0, begin_s=-20.0)
    other = Track(
        times_s=other.times_s, joints_rad=other.joints_rad[:, ::-1], names=other.names[::-1]
    )
    found = align(motion(begin_s=1000.0), other)
    assert found.other_s + 20.0 == pytest.approx(found.times_s - 1000.0, abs=0.02)


def test_a_track_lies_on_itself_and_time_never_runs_back() -> None:
    track = motion()
    found = align(track, track)
    assert found.other_s == pytest.approx(track.times_s, abs=1e-9)
    noisy = Track(
        times_s=track.times_s,
        joints_rad=np.random.default_rng(0).standard_normal(track.joints_rad.shape),
        names=NAMES,
    )
    assert (np.diff(align(track, noisy).other_s) >= 0).all()


def test_only_the_joints_asked_for_count() -> None:
    track = motion()
    broken = Track(
        times_s=track.times_s, joints_rad=track.joints_rad * [1.0, 1.0, -5.0], names=NAMES
    )
    found = align(track, broken, NAMES[:2])
    assert found.other_s == pytest.approx(track.times_s, abs=1e-6)


@pytest.mark.parametrize("joints", [[], ["nose_joint"], ["left_elbow_joint", "nose_joint"]])
def test_joints_that_cannot_be_compared_are_named(joints: list[str]) -> None:
    with pytest.raises(BadRequestError, match="cannot be compared"):
        align(motion(), motion(), joints)


def test_tracks_without_a_joint_in_common_cannot_be_aligned() -> None:
    other = Track(times_s=np.arange(2.0), joints_rad=np.zeros((2, 1)), names=("right_knee_joint",))
    with pytest.raises(BadRequestError, match="cannot be compared"):
        align(motion(), other)


def test_too_many_samples_and_too_few_are_refused() -> None:
    one = Track(times_s=np.zeros(1), joints_rad=np.zeros((1, 3)), names=NAMES)
    with pytest.raises(BadRequestError, match="2 samples"):
        align(motion(), one)
    many = Track(times_s=np.arange(60_001.0), joints_rad=np.zeros((60_001, 3)), names=NAMES)
    with pytest.raises(BadRequestError, match="too many to align"):
        align(motion(), many)
