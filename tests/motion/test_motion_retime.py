"""A retimed track keeps its limits, measured anew and otherwise than in the code, and its path."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError
from rote.findings import FindingKind
from rote.messages import Interpolation
from rote.model.g1 import G1_29
from rote.motion.check.limits import MAX_PLAYED_RAD_S, RETIME_RAD_S2, RETIME_RAD_S3
from rote.motion.check.rules import check
from rote.motion.edit.retime import FINER, TOLERANCE_RAD, retime
from rote.motion.edit.spline import find_spline_peaks, sample_spline
from rote.motion.interpolate import minimum_jerk, sample
from rote.motion.track import Array, Mark, Track
from sampled import sample_examples

NAMES = ("left_elbow_joint", "right_elbow_joint", "waist_yaw_joint")


def of(times_s: Array, joints_rad: Array, names: tuple[str, ...] = NAMES) -> Track:
    return Track(times_s=times_s, joints_rad=joints_rad, names=names)


def reach(seconds: float = 2.0, rate_hz: float = 100.0, far_rad: float = 1.0) -> Track:
    """Return one calm move of one joint."""
    times_s = np.linspace(0.0, seconds, round(seconds * rate_hz) + 1)
    values = minimum_jerk(np.zeros(1), np.full(1, far_rad), times_s / seconds)
    return of(times_s, values, NAMES[:1])


def wave(seconds: float = 4.0, noise_rad: float = 0.0, seed: int = 0) -> Track:
    """Return a wave of 29 joints at 100 Hz, some of them swinging, with a hand's tremor."""
    random = np.random.default_rng(seed)
    times_s = np.arange(round(seconds * 100) + 1) / 100
    ends = np.sin(np.pi * times_s / seconds) ** 2
    swings = np.sin(2 * np.pi * random.uniform(0.2, 1.2, 29) * times_s[:, None])
    joints_rad = ends[:, None] * swings * random.uniform(0.0, 0.8, 29)
    joints_rad += noise_rad * random.standard_normal(joints_rad.shape)
    return of(times_s, joints_rad, G1_29.names)


def smooth_curve(track: Track) -> tuple[float, Array]:
    """Return the step and the values at ten times the rate of the natural cubic spline through
    the samples with their ends held, by solving the whole system."""
    held = np.pad(track.joints_rad, ((30, 30), (0, 0)), mode="edge")
    count = len(held)
    system = 4.0 * np.eye(count) + np.eye(count, k=1) + np.eye(count, k=-1)
    right = np.zeros_like(held)
    right[1:-1] = np.diff(held, 2, axis=0)
    bends = np.linalg.solve(system, right)
    u = (np.arange((count - 1) * FINER) % FINER / FINER)[:, None]
    left = np.repeat(np.arange(count - 1), FINER)
    straight = (1 - u) * held[left] + u * held[left + 1]
    bent = ((1 - u) ** 3 - (1 - u)) * bends[left] + (u**3 - u) * bends[left + 1]
    return track.duration_s / (len(track) - 1) / FINER, straight + bent


def most(values: Array, step_s: float, order: int) -> Array:
    return np.asarray(np.abs(np.diff(values, order, axis=0)).max(axis=0) / step_s**order)


def assert_limits_hold(track: Track, *limits: float | Array) -> None:
    step_s, values = smooth_curve(track)
    for order, limit in enumerate(limits, start=1):
        assert (most(values, step_s, order) <= np.asarray(limit) * (1 + 1e-6)).all(), order
    # What players show: at ten times the rate, over any stretch as long as a sample.
    at_s: Array = np.arange((len(track) - 1.0) * FINER + 1) * step_s
    shown = sample(track.times_s - track.times_s[0], track.joints_rad, at_s, Interpolation.CUBIC)
    assert (most(shown, step_s, 1) <= np.asarray(limits[0]) * 1.05).all()
    speeds = (shown[FINER:] - shown[:-FINER]) / (FINER * step_s)
    gains = (speeds[FINER:] - speeds[:-FINER]) / (FINER * step_s)
    assert (np.abs(speeds).max(axis=0) <= np.asarray(limits[0]) * (1 + 1e-6)).all()
    assert (np.abs(gains).max(axis=0) <= np.asarray(limits[1]) * (1 + 1e-6)).all()


def assert_on_path(track: Track, original: Track) -> None:
    """Every recorded pose is met, in its order, within the tolerance in every joint."""
    _, values = smooth_curve(track)
    slack = float(np.abs(np.diff(values, axis=0)).max())
    reached = 0
    for pose in original.joints_rad:
        near = np.abs(values[reached:] - pose).max(axis=1) <= TOLERANCE_RAD + slack
        assert near.any()
        reached += int(near.argmax())


@st.composite
def recordings(draw: st.DrawFn) -> Track:
    """Return a hand's wandering: uneven samples at any rate, three joints, some standing still."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count, rate_hz = draw(st.integers(2, 40)), draw(st.sampled_from([5.0, 20.0, 100.0, 400.0]))
    size_rad = draw(st.sampled_from([0.0, 0.001, 0.02, 0.1]))
    times_s = draw(st.floats(-10.0, 10.0)) + np.cumsum(random.uniform(0.4, 1.6, count)) / rate_hz
    return of(times_s, np.cumsum(random.uniform(-size_rad, size_rad, (count, 3)), axis=0))


LIMITS = st.tuples(st.floats(0.5, 20.0), st.floats(2.0, 100.0), st.floats(20.0, 5000.0))


@sample_examples(6)
@given(recordings(), LIMITS, st.sampled_from([50.0, 100.0]), st.booleans())
def test_every_retimed_track_meets_its_limits_at_ten_times_its_rate_and_keeps_its_path(
    track: Track, limits: tuple[float, float, float], rate_hz: float, calm: bool
) -> None:
    velocity, acceleration, jerk = limits
    done = retime(
        track,
        velocity=velocity,
        acceleration=acceleration,
        jerk=jerk,
        rate_hz=rate_hz,
        fastest=not calm,
    )
    assert_limits_hold(done, velocity, acceleration, jerk)
    assert_on_path(done, track)
    assert done.joints_rad[0] == pytest.approx(track.joints_rad[0], abs=1e-9)
    assert done.joints_rad[-1] == pytest.approx(track.joints_rad[-1], abs=1e-9)
    assert done.times_s[0] == track.times_s[0]
    assert np.diff(done.times_s) == pytest.approx(1 / rate_hz)
    if calm:
        assert done.duration_s >= track.duration_s


@pytest.mark.parametrize("noise_rad", [0.0, 0.002])
def test_a_wave_of_all_joints_meets_the_usual_limits_and_those_of_a_check(
    noise_rad: float,
) -> None:
    track = wave(noise_rad=noise_rad)
    done = retime(track)
    assert_limits_hold(done, MAX_PLAYED_RAD_S, RETIME_RAD_S2, RETIME_RAD_S3)
    assert_on_path(done, track)
    kinds = {finding.kind for finding in check(done, contact=False).findings}
    assert not kinds & {FindingKind.VELOCITY, FindingKind.ACCELERATION, FindingKind.GAP}


def test_noise_does_not_make_it_slow() -> None:
    quiet, noisy = retime(wave()), retime(wave(noise_rad=0.001))
    assert noisy.duration_s < 2.0 * quiet.duration_s


def test_a_reach_is_about_as_fast_as_limits_of_speed_and_acceleration_allow() -> None:
    # Up to 2 rad/s with 10 rad/s2 takes 0.2 s and 0.2 rad; the rest goes at full speed.
    best_s = 0.2 + 1.6 / 2.0 + 0.2
    done = retime(reach(far_rad=2.0), velocity=2.0, acceleration=10.0, jerk=1e5, fastest=True)
    assert best_s <= done.duration_s < 1.15 * best_s


def test_a_lower_limit_of_jerk_takes_longer_and_is_kept() -> None:
    quick = retime(reach(), velocity=5.0, acceleration=20.0, jerk=2000.0, fastest=True)
    calm = retime(reach(), velocity=5.0, acceleration=20.0, jerk=50.0, fastest=True)
    assert calm.duration_s > 1.3 * quick.duration_s
    assert_limits_hold(calm, 5.0, 20.0, 50.0)


def test_each_joint_may_have_its_own_limit() -> None:
    track = wave(seconds=1.5)
    limits = np.linspace(1.0, 3.0, 29)
    by_number = retime(track, velocity=limits.tolist())
    assert_limits_hold(by_number, limits, RETIME_RAD_S2, RETIME_RAD_S3)
    by_name = retime(track, velocity=dict(zip(G1_29.names, limits.tolist(), strict=True)))
    assert by_name.joints_rad == pytest.approx(by_number.joints_rad)


def test_a_joint_that_is_not_named_keeps_its_usual_limit() -> None:
    track = wave(seconds=1.5)
    slow = retime(track, velocity={"left_elbow_joint": 0.2})
    _, values = smooth_curve(slow)
    speeds = np.abs(np.diff(values, axis=0)).max(axis=0) * 1000.0
    assert speeds[18] <= 0.2 + 1e-6
    assert speeds.max() > 0.4


def test_nowhere_faster_than_recorded_unless_asked() -> None:
    track = reach(seconds=5.0)
    free, calm = retime(track, fastest=True), retime(track)
    assert free.duration_s < 2.0
    assert 5.0 <= calm.duration_s < 5.5
    speeds = np.abs(np.diff(calm.joints_rad[:, 0])) * calm.rate_hz
    assert speeds.max() <= 1.875 / 5.0 * 1.001


def test_a_pause_is_left_out_when_nothing_forbids_it() -> None:
    times_s = np.arange(601) / 100
    there = minimum_jerk(np.zeros(1), np.ones(1), times_s)
    back = minimum_jerk(np.zeros(1), -np.ones(1), times_s - 5.0)
    done = retime(of(times_s, there + back, NAMES[:1]), fastest=True)
    assert done.duration_s < 2.0
    assert done.joints_rad.max() == pytest.approx(1.0, abs=TOLERANCE_RAD)


def test_it_begins_and_ends_at_rest_even_where_the_recording_does_not() -> None:
    times_s = np.arange(101) / 100
    done = retime(
        of(times_s, times_s[:, None], NAMES[:1]), acceleration=5.0, jerk=100.0, fastest=True
    )
    speeds = np.diff(done.joints_rad[:, 0]) * done.rate_hz
    assert speeds[0] < 0.02
    assert speeds[-1] < 0.02
    assert speeds.max() > 1.0


def test_a_path_between_keyframes_does_not_swing_out() -> None:
    times_s = np.arange(6.0)
    values = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    done = retime(of(times_s, values[:, None], NAMES[:1]))
    _, fine = smooth_curve(done)
    assert fine.min() > -TOLERANCE_RAD
    assert fine.max() < 1.0 + TOLERANCE_RAD


def test_samples_close_together_are_on_the_path_too() -> None:
    track = of(
        np.array([0.0, 0.5, 0.503, 0.51, 1.0, 1.5]),
        np.array([[0.0], [0.0], [0.3], [0.3], [0.0], [0.0]]),
        NAMES[:1],
    )
    retimed = retime(track)
    assert_on_path(retimed, track)
    assert retimed.joints_rad.max() == pytest.approx(0.3, abs=2 * TOLERANCE_RAD)


def test_marks_move_with_the_poses_they_are_on_and_the_history_says_what_was_done() -> None:
    base = reach()
    track = Track(
        times_s=base.times_s + 7.0,
        joints_rad=base.joints_rad,
        names=base.names,
        marks=(Mark(8.0, "half way"),),
        history=("taught",),
    )
    done = retime(track)
    at = np.interp(done.marks[0].time_s, done.times_s, done.joints_rad[:, 0])
    assert at == pytest.approx(0.5, abs=0.02)
    assert done.history[0] == "taught"
    assert done.history[1].startswith(f"retime 2.00 to {done.duration_s:.2f} s, path kept within 0")


def test_the_stated_deviation_is_no_larger_than_the_tolerance() -> None:
    done = retime(wave(noise_rad=0.002))
    stated = float(done.history[-1].split()[-2])
    assert 0.004 < stated <= TOLERANCE_RAD


def swinging_arm() -> Track:
    """Return two joints that swing fast, and at the ends of the recording too."""
    times_s = np.arange(101) / 100
    phases = 2 * np.pi * 1.8 * times_s[:, None] + np.array([1.6, 0.5])
    names = ("left_shoulder_pitch_joint", "left_shoulder_roll_joint")
    return of(times_s, np.array([0.9, 0.8]) * np.sin(phases), names)


def test_a_path_that_uses_its_tolerance_for_smoothing_is_not_slowed_down() -> None:
    # At the moment that is nearest by the sum over joints, one joint is beyond the tolerance.
    assert retime(swinging_arm()).duration_s < 3.0


def test_a_result_more_than_twice_as_long_says_why() -> None:
    slow = retime(reach(), velocity=0.2)
    assert slow.duration_s > 4.0
    reason = r"more than twice as long: left_elbow_joint reaches 0.93\d rad/s at \S+ s"
    assert re.search(f"; {reason}, 0.2 are allowed$", slow.history[-1])
    assert "twice" not in retime(reach(), velocity=0.6).history[-1]


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), float("inf"), [1.0, 2.0, 0.0]])
def test_a_limit_that_is_none_is_refused(limit: float | list[float]) -> None:
    track = of(np.arange(5.0), np.zeros((5, 3)))
    with pytest.raises(BadRequestError, match="a limit of jerk must be above 0"):
        retime(track, jerk=limit)


def test_limits_that_do_not_fit_the_joints_are_refused() -> None:
    with pytest.raises(BadRequestError, match="2 limits of velocity do not fit 1 joints"):
        retime(reach(), velocity=[1.0, 2.0])
    with pytest.raises(BadRequestError, match="no nose_joint"):
        retime(reach(), velocity={"nose_joint": 1.0})


@pytest.mark.parametrize("rate_hz", [0.0, 9.0, 2001.0, float("nan")])
def test_a_rate_out_of_reason_is_refused(rate_hz: float) -> None:
    with pytest.raises(BadRequestError, match="the range is 10 to 2000 Hz"):
        retime(reach(), rate_hz=rate_hz)


def test_one_sample_cannot_be_retimed() -> None:
    with pytest.raises(BadRequestError, match="this needs 2 samples"):
        retime(of(np.zeros(1), np.zeros((1, 3))))


def test_an_hour_is_too_long() -> None:
    with pytest.raises(BadRequestError, match="too many or too rough"):
        retime(of(np.array([0.0, 3600.0]), np.zeros((2, 3))))


def test_limits_that_would_take_for_ever_are_refused() -> None:
    with pytest.raises(BadRequestError, match="with these limits it would take"):
        retime(reach(), velocity=1e-4)


def test_the_curve_goes_through_its_samples_and_holds_outside() -> None:
    values = np.array([[0.0], [1.0], [0.5], [2.0]])
    at_s = np.array([-50.0, -3.0, 0.0, 0.1, 0.2, 0.3, 4.0, 50.0])
    found = sample_spline(0.1, values, at_s)[:, 0]
    assert found == pytest.approx([0.0, 0.0, 0.0, 1.0, 0.5, 2.0, 2.0, 2.0], abs=1e-9)


def test_the_curve_is_that_of_the_whole_system() -> None:
    track = wave(seconds=0.5)
    step_s, wanted = smooth_curve(track)
    inner = wanted[30 * FINER : 30 * FINER + 50 * FINER]
    at_s: Array = np.arange(float(len(inner))) * step_s
    found = sample_spline(0.01, track.joints_rad, at_s)
    assert found == pytest.approx(inner, abs=1e-12)


@pytest.mark.parametrize(
    ("far_rad", "velocity", "acceleration", "jerk"),
    [
        (1.0, 10.0, 40.0, 800.0),
        pytest.param(2.0, 2.0, 10.0, 100.0, marks=pytest.mark.soak),
        pytest.param(1.0, 3.0, 20.0, 200.0, marks=pytest.mark.soak),
    ],
)
def test_a_move_from_rest_to_rest_is_nearly_as_fast_as_any_can_be(
    far_rad: float, velocity: float, acceleration: float, jerk: float
) -> None:
    track = reach(rate_hz=500.0, far_rad=far_rad)
    limits = {"velocity": velocity, "acceleration": acceleration}
    bare = retime(track, **limits, jerk=1e6, fastest=True)
    # By hand: to the highest speed and back, and at it for what is left.
    fast = min(velocity, np.sqrt(far_rad * acceleration))
    best_s = far_rad / fast + fast / acceleration
    assert best_s <= bare.duration_s <= 1.05 * best_s
    assert_limits_hold(bare, velocity, acceleration, 1e6)
    calm = retime(track, **limits, jerk=jerk, fastest=True)
    # With a limit of jerk each change of acceleration takes this long more, and has to fit.
    ramp_s = acceleration / jerk
    peak = (np.sqrt(ramp_s**2 + 4 * far_rad / acceleration) - ramp_s) * acceleration / 2
    fast = min(velocity, peak)
    assert fast >= acceleration * ramp_s  # else the acceleration would not be reached
    best_s = far_rad / fast + fast / acceleration + ramp_s
    assert best_s - 1e-3 <= calm.duration_s <= 1.10 * best_s
    assert_limits_hold(calm, velocity, acceleration, jerk)


def test_the_peaks_of_a_curve_are_those_of_its_finest_samples() -> None:
    values = np.random.default_rng(5).normal(0.0, 1.0, (40, 3)).cumsum(axis=0)
    found = find_spline_peaks(0.01, values)
    at_s: Array = np.arange(-12_000.0, 28_000.0) * (0.01 / 400)
    fine = sample_spline(0.01, values, at_s)
    for order, most_found in enumerate(found, start=1):
        sampled = most(fine, 0.01 / 400, order)
        # Never above, and hardly below; of third differences rounding takes some digits.
        assert (sampled <= most_found * (1 + (1e-6 if order < 3 else 0.05))).all()
        assert (sampled >= most_found * (0.99 if order < 3 else 0.95)).all()
