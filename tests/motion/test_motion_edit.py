"""Edits make sound tracks of sound tracks, say so in the history, and refuse what cannot be."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError
from rote.model.a1 import A1, A1_STAND_RAD
from rote.model.family import Build
from rote.model.g1 import G1_23, G1_27, G1_29, G1_REST_RAD
from rote.motion.edit import operations as edit
from rote.motion.track import Array, Mark, Track

NAMES = ("left_elbow_joint", "right_elbow_joint", "waist_yaw_joint")
NAN, INF = float("nan"), float("inf")

Edit = Callable[[Track], Track]


def even(count: int = 201, rate_hz: float = 100.0, begin_s: float = 0.0) -> Track:
    """Return a bow: each joint swings out and back, other for each; at rest at both ends."""
    times_s = np.arange(count) / rate_hz
    swing = 1 - np.cos(2 * np.pi * times_s / times_s[-1])
    return Track(
        times_s=begin_s + times_s,
        joints_rad=np.outer(swing, [0.5, -0.3, 0.2]),
        names=NAMES,
        source="bow",
        marks=(Mark(begin_s, "begin"), Mark(begin_s + float(times_s[-1]) / 4, "quarter")),
    )


def of(times_s: Array, *columns: Array) -> Track:
    joints_rad = np.column_stack(columns)
    return Track(times_s=times_s, joints_rad=joints_rad, names=NAMES[: len(columns)])


def held(pose_rad: float, count: int = 51) -> Track:
    """Return half a second of standing still."""
    return of(np.arange(count) / 100.0, *[np.full(count, pose_rad)] * 3)


def short(count: int) -> Track:
    return of(np.arange(float(count)), np.zeros(count))


@st.composite
def tracks(draw: st.DrawFn) -> Track:
    """Return a track of uneven steps, three joints and a mark or two, with a history."""
    count = draw(st.integers(4, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    times_s = draw(st.floats(-100.0, 100.0)) + np.cumsum(rng.uniform(0.02, 0.2, count))
    marks = tuple(Mark(float(time_s), "here") for time_s in rng.choice(times_s, 2))
    return Track(
        times_s=times_s,
        joints_rad=np.cumsum(rng.uniform(-0.05, 0.05, (count, 3)), axis=0),
        names=NAMES,
        marks=marks,
        history=("taught",),
    )


def assert_same(found: Track, wanted: Track, within: float = 0.0) -> None:
    np.testing.assert_allclose(found.times_s, wanted.times_s, rtol=0, atol=within)
    np.testing.assert_allclose(found.joints_rad, wanted.joints_rad, rtol=0, atol=within)
    assert (found.names, found.variant) == (wanted.names, wanted.variant)


def times_of(track: Track) -> list[float]:
    return [mark.time_s for mark in track.marks]


def middle(track: Track) -> Track:
    """Return the track without the samples at its ends; any is asked of one too short for that."""
    inner_s = track.times_s[1:-1] if len(track) > 2 else np.zeros(1)
    return edit.trim(track, float(inner_s[0]), float(inner_s[-1]))


EDITS: dict[str, Edit] = {
    "trim": middle,
    "trim_idle": lambda track: edit.trim_idle(track, 0.001),
    "smooth": lambda track: edit.smooth(track, track.rate_hz / 6),
    "resample": lambda track: edit.resample(track, 30.0),
    "speed": lambda track: edit.speed(track, 1.7),
    "reverse": edit.reverse,
    "concatenate": lambda track: edit.concatenate(track, track, 2.0),
    "close_loop": lambda track: edit.close_loop(track, 2.0),
    "cross_fade": lambda track: edit.cross_fade(track, track, track.duration_s),
    "blend": lambda track: edit.blend(track, edit.reverse(track), 0.3),
    "layer": lambda track: edit.layer(track, edit.reverse(track), NAMES[:1]),
    "keep": lambda track: edit.keep(track, NAMES[1:]),
    "drop": lambda track: edit.drop(track, NAMES[1:]),
    "to_build": lambda track: edit.to_build(track, "g1-23"),
}


# ---- all of them --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(EDITS))
@given(track=tracks())
def test_an_edit_makes_a_sound_track_and_adds_one_line(name: str, track: Track) -> None:
    edited = EDITS[name](track)
    assert edited.joints_rad.shape == (len(edited), len(edited.names))
    assert len(edited) >= 2
    assert (np.diff(edited.times_s) > 0).all()
    assert np.isfinite(edited.joints_rad).all()
    assert edited.history[:-1] == track.history
    assert name.split("_", maxsplit=1)[0] in edited.history[-1]
    assert times_of(edited) == sorted(times_of(edited))


@pytest.mark.parametrize("name", ["smooth", "speed", "reverse", "blend", "layer"])
@given(track=tracks())
def test_edits_of_shape_and_time_keep_the_number_of_samples(name: str, track: Track) -> None:
    assert EDITS[name](track).joints_rad.shape == track.joints_rad.shape


@pytest.mark.parametrize("name", sorted(set(EDITS) - {"keep", "drop", "to_build"}))
def test_an_edit_in_time_needs_two_samples(name: str) -> None:
    with pytest.raises(BadRequestError, match="the track has 1 samples"):
        EDITS[name](short(1))


@pytest.mark.parametrize("name", ["speed", "reverse"])
def test_a_track_of_no_joints_cannot_be_edited(name: str) -> None:
    empty = Track(times_s=np.arange(5.0), joints_rad=np.empty((5, 0)), names=())
    with pytest.raises(BadRequestError, match="5 samples of 0 joints"):
        EDITS[name](empty)


REFUSED: dict[str, tuple[Callable[[Track, float], object], list[float], str]] = {
    "trim's start": (lambda t, x: edit.trim(t, x, 2.0), [-0.1, 2.1], "0 to 2 s"),
    "trim's end": (lambda t, x: edit.trim(t, 0.5, x), [0.4, 2.1], "0.5 to 2 s"),
    "threshold": (edit.idle_bounds, [0.0, -1.0, 11.0], "0.001 to 10 rad/s"),
    "margin": (lambda t, x: edit.trim_idle(t, 0.05, x), [-0.1, 61.0], "0 to 60 s"),
    "cutoff": (edit.smooth, [0.0, -1.0, 51.0], "0.01 to 50 Hz"),
    "rate": (edit.resample, [0.0, -1.0, 10_001.0], "0.1 to 10000 Hz"),
    "speed": (edit.speed, [0.0, -1.0, 101.0], "0.01 to 100 times"),
    "bridge": (lambda t, x: edit.concatenate(t, t, x), [-0.1, 61.0], "0 to 60 s"),
    "way back": (edit.close_loop, [0.0, -1.0, 61.0], "0.01 to 60 s"),
    "overlap": (lambda t, x: edit.cross_fade(t, t, x), [0.0, -1.0, 2.1], "0.001 to 2 s"),
    "weight": (lambda t, x: edit.blend(t, t, x), [-0.1, 1.1], "0 to 1 "),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_an_impossible_number_is_refused_with_what_is_possible(what: str) -> None:
    call, numbers, possible = REFUSED[what]
    for number in [*numbers, NAN, INF, -INF]:
        with pytest.raises(BadRequestError, match=f"is {number:g} .*; the range is {possible}"):
            call(even(), number)


# ---- in time ------------------------------------------------------------------------------------


def test_a_trim_keeps_the_samples_and_marks_inside_and_the_clock() -> None:
    trimmed = edit.trim(even(), 0.5, 1.2)
    assert (trimmed.times_s[0], trimmed.times_s[-1], len(trimmed)) == (0.5, 1.2, 71)
    assert trimmed.marks == (Mark(0.5, "quarter"),)
    assert trimmed.history == ("trim: kept 0.50 to 1.20 of 0.00 to 2.00 s",)


def test_a_trim_between_two_samples_is_refused_with_the_numbers() -> None:
    with pytest.raises(BadRequestError, match=r"1 to 1.005 s holds 1 samples.*0.01 s apart"):
        edit.trim(even(), 1.0, 1.005)


@given(track=tracks(), share=st.floats(0.0, 1.0))
def test_two_parts_of_a_track_put_together_are_the_track(track: Track, share: float) -> None:
    cut_s = float(track.times_s[1 + round(share * (len(track) - 3))])
    first = edit.trim(track, float(track.times_s[0]), cut_s)
    second = edit.trim(track, cut_s, float(track.times_s[-1]))
    whole = edit.concatenate(first, second, 0.0)
    assert_same(whole, track)
    assert whole.marks == tuple(dict.fromkeys(track.marks))


def resting(noise_rad: float = 0.0) -> Track:
    """Return a movement from 1 s to 2 s in a track of 4 s."""
    times_s = np.arange(401) / 100.0
    angle_rad = 0.4 * np.clip(times_s - 1.0, 0.0, 1.0)
    noise = np.random.default_rng(1).normal(0.0, noise_rad, times_s.size)
    return of(times_s, np.zeros(times_s.size), angle_rad + noise)


@pytest.mark.parametrize("noise_rad", [0.0, 0.0005])
def test_where_movement_begins_and_ends_is_found_behind_noise(noise_rad: float) -> None:
    start_s, end_s = edit.idle_bounds(resting(noise_rad))
    assert 0.9 <= start_s <= 1.0
    assert 2.0 <= end_s <= 2.1


def test_a_resampling_says_how_much_longer_the_last_pose_is_held() -> None:
    uneven = edit.trim(even(), 0.0, 1.25)
    held_longer = edit.resample_at_exact_rate(uneven, 10.0)
    assert held_longer.history[-1].endswith("Hz, its last pose held 50 ms longer")
    assert edit.resample_at_exact_rate(uneven, 4.0).history[-1] == "resample at 4 Hz"


def test_a_resampled_track_ends_when_the_track_ends_and_says_at_which_rate() -> None:
    track = even(800)
    resampled = edit.resample(track, 37.0)
    assert resampled.times_s[-1] == track.times_s[-1] == 7.99
    assert resampled.history[-1].startswith("resample at 37.05 Hz, the rate near 37 Hz")
    assert edit.resample(track, 50.0 / 0.799).history[-1] == "resample at 62.5782 Hz"


def test_idle_ends_are_cut_but_for_a_margin() -> None:
    trimmed = edit.trim_idle(resting(), margin_s=0.3)
    start_s, end_s = edit.idle_bounds(resting())
    assert trimmed.times_s[0] == pytest.approx(start_s - 0.3, abs=0.0101)
    assert trimmed.times_s[-1] == pytest.approx(end_s + 0.3, abs=0.0101)
    kept = f"{start_s - 0.3:.2f} to {end_s + 0.3:.2f}"
    assert trimmed.history == (f"trim idle: kept {kept} of 0.00 to 4.00 s",)
    again = edit.trim_idle(trimmed, margin_s=0.3)
    assert again.history[-1] == "trim idle: nothing was cut"
    assert len(again) == len(trimmed)


def test_a_track_that_moves_all_the_time_is_kept_whole() -> None:
    ramp = np.arange(101) / 100.0
    assert_same(edit.trim_idle(of(ramp, ramp)), of(ramp, ramp))


def test_a_track_in_which_nothing_moves_has_no_movement_to_keep() -> None:
    with pytest.raises(BadRequestError, match=r"faster than 0.05 rad/s.* reaches 0 rad/s"):
        edit.trim_idle(held(0.3))


@given(count=st.integers(2, 200), rate_hz=st.floats(1.0, 1000.0), begin_s=st.floats(-100.0, 100.0))
def test_an_even_track_resampled_at_its_own_rate_is_the_same(
    count: int, rate_hz: float, begin_s: float
) -> None:
    track = even(count, rate_hz, begin_s)
    assert_same(edit.resample(track, track.rate_hz), track, within=1e-9)


@given(track=tracks(), rate_hz=st.floats(0.1, 500.0))
def test_a_resampled_track_is_even_and_keeps_both_poses_at_its_ends(
    track: Track, rate_hz: float
) -> None:
    nearest = edit.resample(track, rate_hz)
    steps_s = np.diff(nearest.times_s)
    np.testing.assert_allclose(steps_s, steps_s[0], atol=1e-9)
    np.testing.assert_array_equal(nearest.joints_rad[[0, -1]], track.joints_rad[[0, -1]])
    np.testing.assert_array_equal(nearest.times_s[[0, -1]], track.times_s[[0, -1]])
    assert abs(1 / steps_s[0] - rate_hz) <= 0.5 / track.duration_s + 1e-6 or len(nearest) == 2
    even_track = edit.resample_at_exact_rate(track, rate_hz)
    np.testing.assert_allclose(np.diff(even_track.times_s), 1 / rate_hz, atol=1e-9)
    np.testing.assert_array_equal(even_track.joints_rad[[0, -1]], track.joints_rad[[0, -1]])
    assert -1e-6 <= even_track.duration_s - track.duration_s <= 1 / rate_hz + 1e-6


def test_a_rate_that_would_fill_the_memory_is_refused() -> None:
    day = of(np.array([0.0, 86_400.0]), np.zeros(2))
    with pytest.raises(BadRequestError, match=r"the range is 0.1 to 11.5741 Hz"):
        edit.resample(day, 100.0)


def test_a_track_shorter_than_one_step_still_has_both_its_ends() -> None:
    blink = of(np.array([0.0, 1e-7]), np.array([0.0, 0.1]))
    assert edit.resample(blink, 1.0).joints_rad.tolist() == [[0.0], [0.1]]


@given(track=tracks(), factor=st.floats(0.01, 100.0))
def test_faster_and_as_much_slower_is_the_same_again(track: Track, factor: float) -> None:
    again = edit.speed(edit.speed(track, factor), 1 / factor)
    assert_same(again, track, within=1e-9)
    assert times_of(again) == pytest.approx(times_of(track), abs=1e-9)


def test_twice_as_fast_takes_half_as_long_and_marks_come_sooner() -> None:
    fast = edit.speed(even(begin_s=10.0), 2.0)
    assert fast.duration_s == pytest.approx(1.0)
    assert times_of(fast) == pytest.approx([10.0, 10.25])


@given(track=tracks())
def test_reversed_twice_is_the_same_again(track: Track) -> None:
    again = edit.reverse(edit.reverse(track))
    assert_same(again, track, within=1e-9)
    assert times_of(again) == pytest.approx(times_of(track), abs=1e-9)


def test_a_reversed_track_begins_where_it_ended_and_marks_keep_their_pose() -> None:
    track = of(np.array([1.0, 2.0, 4.0]), np.array([0.1, 0.2, 0.3]))
    back = edit.reverse(track)
    assert back.times_s.tolist() == [1.0, 3.0, 4.0]
    assert back.joints_rad[:, 0].tolist() == [0.3, 0.2, 0.1]
    assert [mark.label for mark in edit.reverse(even()).marks] == ["quarter", "begin"]


# ---- in shape -----------------------------------------------------------------------------------


def test_the_jerk_of_a_cubic_is_its_known_constant() -> None:
    times_s = np.arange(50) / 50.0
    assert edit.jerk_rms(of(times_s, 2.0 * times_s**3)) == pytest.approx(12.0)


@pytest.mark.parametrize("count", [1, 3])
def test_jerk_needs_four_samples(count: int) -> None:
    with pytest.raises(BadRequestError, match=f"needs 4 samples.* has {count} samples"):
        edit.jerk_rms(short(count))


@given(track=tracks(), share=st.floats(0.01, 0.5))
def test_smoothing_leaves_both_ends_where_they_are(track: Track, share: float) -> None:
    calm = edit.smooth(track, max(track.rate_hz * share, 0.01))
    np.testing.assert_allclose(calm.joints_rad[[0, -1]], track.joints_rad[[0, -1]], atol=1e-9)
    np.testing.assert_array_equal(calm.times_s, track.times_s)


@given(centre=st.integers(100, 300), width_s=st.floats(0.02, 0.2), cutoff_hz=st.floats(2.0, 20.0))
def test_smoothing_moves_no_bump_in_time(centre: int, width_s: float, cutoff_hz: float) -> None:
    times_s = np.arange(401) / 100.0
    bump = np.exp(-(((times_s - times_s[centre]) / width_s) ** 2))
    calm = edit.smooth(of(times_s, bump), cutoff_hz).joints_rad[:, 0]
    assert calm.argmax() == centre
    around = calm[centre - 40 : centre + 41]
    np.testing.assert_allclose(around, around[::-1], atol=2e-3)


@pytest.mark.parametrize(
    ("swing_hz", "left"), [(1.0, 1 / (1 + 0.2**4)), (5.0, 0.5), (20.0, 1 / 257)]
)
def test_smoothing_leaves_of_a_swing_what_a_butterworth_does(swing_hz: float, left: float) -> None:
    times_s = np.arange(401) / 100.0
    swing = np.sin(2 * np.pi * swing_hz * times_s)
    calm = edit.smooth(of(times_s, swing), 5.0).joints_rad[:, 0]
    np.testing.assert_allclose(calm, left * swing, atol=1e-6)


def test_smoothing_takes_the_jerk_out_of_noise_and_says_so() -> None:
    track = even()
    noise = np.random.default_rng(2).normal(0.0, 0.001, track.joints_rad.shape)
    rough = of(track.times_s, *(track.joints_rad + noise).T)
    calm = edit.smooth(rough, 5.0)
    before, after = edit.jerk_rms(rough), edit.jerk_rms(calm)
    assert after < before / 20
    assert calm.history == (f"smooth at 5 Hz: jerk {before:.3g} to {after:.3g} rad/s3",)
    assert np.abs(calm.joints_rad - track.joints_rad).max() < 0.005


# ---- two tracks ---------------------------------------------------------------------------------


def at_rest(track: Track) -> Track:
    """Return the track with both its ends held for a tenth of a second."""
    first_s, last_s = track.times_s[0], track.times_s[-1]
    before, after = first_s - 0.1 + np.arange(10) / 100, last_s + np.arange(1, 11) / 100
    return replace(
        track,
        times_s=np.concatenate([before, track.times_s, after]),
        joints_rad=np.pad(track.joints_rad, ((10, 10), (0, 0)), mode="edge"),
    )


@given(a=tracks(), b=tracks())
def test_a_bridge_makes_no_jump_and_stays_between_the_poses(a: Track, b: Track) -> None:
    a, b = at_rest(a), at_rest(b)
    joined = edit.concatenate(a, b, 3.0)
    bridge = joined.joints_rad[len(a) - 1 : len(joined) - len(b) + 1]
    ends = np.array([a.joints_rad[-1], b.joints_rad[0]])
    assert (bridge >= ends.min(axis=0) - 1e-12).all()
    assert (bridge <= ends.max(axis=0) + 1e-12).all()
    np.testing.assert_allclose(bridge[[0, -1]], ends, atol=1e-12)
    steps_s = np.diff(joined.times_s[len(a) - 1 : len(joined) - len(b) + 1])[:, None]
    assert (np.abs(np.diff(bridge, axis=0)) / steps_s).max() <= edit.MAX_BRIDGE_RAD_S
    assert joined.duration_s == pytest.approx(a.duration_s + 3.0 + b.duration_s)


def swing(begin: float, end: float) -> Track:
    """Return a swing at 100 Hz with 0.63 rad/s in its middle, from and to these phases in turns."""
    phase = 2 * np.pi * np.linspace(begin, end, round(2.0 * (end - begin) * 100) + 1)
    return of(np.arange(phase.size) / 100, 0.2 * np.sin(phase))


@pytest.mark.parametrize(
    "join",
    [
        lambda: edit.concatenate(swing(0.0, 1.0), swing(0.5, 1.5), 0.5),
        lambda: edit.concatenate(swing(0.0, 1.1), swing(0.9, 1.5), 0.5),
        lambda: edit.close_loop(swing(0.0, 0.5), 0.5),
    ],
    ids=["against each other", "bent", "close loop"],
)
def test_a_bridge_takes_over_speed_and_acceleration(join: Callable[[], Track]) -> None:
    values = join().joints_rad[:, 0]
    speeds = np.diff(values) * 100
    # A step of 0.63 rad/s in one sample would be 63 rad/s2.
    assert np.abs(np.diff(speeds)).max() * 100 < 20.0
    assert np.abs(values).max() < 0.25
    jerks = np.diff(speeds, 2) * 1e4
    assert np.abs(jerks).max() < 600.0


def test_a_bridge_goes_beyond_no_joints_range() -> None:
    upper = next(j.upper_rad for j in G1_29.joints if j.name == "left_elbow_joint")
    rising = of(np.arange(51) / 100, upper - 0.5 + np.arange(51) / 100)
    joined = edit.concatenate(rising, held_one(0.0), 2.0)
    assert joined.joints_rad.max() <= upper + 1e-9


@given(a=tracks(), b=tracks(), bridge_s=st.floats(1.0, 5.0))
def test_a_bridge_between_ends_in_motion_stays_slow_and_near(
    a: Track, b: Track, bridge_s: float
) -> None:
    joined = edit.concatenate(a, b, bridge_s)
    bridge = slice(len(a) - 1, len(joined) - len(b) + 1)
    angles_rad, ends = joined.joints_rad[bridge], np.array([a.joints_rad[-1], b.joints_rad[0]])
    np.testing.assert_allclose(angles_rad[[0, -1]], ends, atol=1e-12)
    steps_s = np.diff(joined.times_s[bridge])[:, None]
    assert (np.abs(np.diff(angles_rad, axis=0)) / steps_s).max() <= 2 * edit.MAX_BRIDGE_RAD_S
    assert (angles_rad >= ends.min(axis=0) - 0.5).all()
    assert (angles_rad <= ends.max(axis=0) + 0.5).all()


def held_one(pose_rad: float) -> Track:
    """Return half a second of one joint standing still."""
    return of(np.arange(51) / 100.0, np.full(51, pose_rad))


def test_marks_of_the_second_track_follow_it() -> None:
    joined = edit.concatenate(even(), even(begin_s=50.0), 1.0)
    assert times_of(joined) == pytest.approx([0.0, 0.5, 3.0, 3.5])


def test_the_history_of_the_second_track_is_kept_in_the_line() -> None:
    joined = edit.concatenate(even(), edit.reverse(even()), 0.5)
    assert joined.history == ("concatenate bow (reverse), bridge 0.50 s",)
    assert edit.concatenate(even(), held(0.0)).history == (
        "concatenate another track, bridge 0.50 s",
    )


@pytest.mark.parametrize("blend_s", [0.0, 0.2])
def test_a_bridge_too_short_for_the_way_is_refused_with_what_is_possible(blend_s: float) -> None:
    with pytest.raises(BadRequestError, match=r"left_elbow_joint are 0.80 rad.* 0.5 s or more"):
        edit.concatenate(held(0.0), held(0.8), blend_s)
    assert len(edit.concatenate(held(0.0), held(0.8), 0.5)) > 100


@pytest.mark.parametrize(
    ("joints", "words"), [(NAMES[:2], "waist_yaw_joint"), (NAMES[::-1], "in another order")]
)
def test_tracks_of_different_joints_cannot_be_joined(joints: tuple[str, ...], words: str) -> None:
    other = Track(times_s=np.arange(3.0), joints_rad=np.zeros((3, len(joints))), names=joints)
    for join in (edit.concatenate, edit.cross_fade, edit.blend):
        with pytest.raises(BadRequestError, match=f"different joints: .*{words}"):
            join(even(), other, 0.5)


@given(track=tracks())
def test_a_closed_loop_ends_where_it_begins(track: Track) -> None:
    loop = edit.close_loop(track, 2.0)
    np.testing.assert_allclose(loop.joints_rad[-1], track.joints_rad[0], atol=1e-12)
    np.testing.assert_array_equal(loop.joints_rad[: len(track)], track.joints_rad)
    assert loop.duration_s == pytest.approx(track.duration_s + 2.0)


def test_a_way_back_that_is_too_far_is_refused() -> None:
    ramp = np.arange(11) / 10.0
    with pytest.raises(BadRequestError, match=r"1.00 rad apart, too far for 0.5 s; use 0.63 s"):
        edit.close_loop(of(ramp, ramp), 0.5)


def test_a_cross_fade_goes_from_one_to_the_other_without_a_jump() -> None:
    a, b = held(0.1), held(0.3)
    faded = edit.cross_fade(a, b, 0.3)
    angle_rad = faded.joints_rad[:, 0]
    assert faded.duration_s == pytest.approx(0.7)
    assert (angle_rad[0], angle_rad[-1]) == (0.1, 0.3)
    assert (np.diff(angle_rad) >= 0).all()
    assert np.diff(angle_rad).max() < 0.02
    np.testing.assert_allclose(angle_rad[faded.times_s < 0.2], 0.1)
    np.testing.assert_allclose(angle_rad[faded.times_s > 0.5], 0.3)


@given(a=tracks(), b=tracks(), share=st.floats(0.5, 1.0))
def test_a_cross_fade_begins_as_the_first_and_ends_as_the_second_track(
    a: Track, b: Track, share: float
) -> None:
    a, b = edit.speed(a, 0.01), edit.speed(b, 0.01)
    overlap_s = share * min(a.duration_s, b.duration_s)
    faded = edit.cross_fade(a, b, overlap_s)
    assert faded.duration_s == pytest.approx(a.duration_s + b.duration_s - overlap_s, abs=1e-5)
    ends = np.array([a.joints_rad[0], b.joints_rad[-1]])
    np.testing.assert_allclose(faded.joints_rad[[0, -1]], ends, atol=1e-5)
    assert faded.history[:-1] == a.history


def test_a_cross_fade_moves_the_marks_and_adds_one_line() -> None:
    faded = edit.cross_fade(even(), even(begin_s=7.0), 0.5)
    assert times_of(faded) == pytest.approx([0.0, 0.5, 1.5, 2.0])
    assert faded.history == ("cross-fade into bow, overlap 0.50 s",)


def test_a_cross_fade_too_fast_is_refused() -> None:
    with pytest.raises(BadRequestError, match=r"too far for 0.3 s; use 0.63 s or more"):
        edit.cross_fade(held(0.0), held(1.0), 0.3)


@given(a=tracks(), b=tracks(), weight=st.floats(0.0, 1.0))
def test_a_blend_lies_between_both_and_has_the_times_of_the_first(
    a: Track, b: Track, weight: float
) -> None:
    mixed = edit.blend(a, b, weight)
    np.testing.assert_array_equal(mixed.times_s, a.times_s)
    ends = np.array([a.joints_rad[[0, -1]], b.joints_rad[[0, -1]]])
    wanted = (1 - weight) * ends[0] + weight * ends[1]
    np.testing.assert_allclose(mixed.joints_rad[[0, -1]], wanted, atol=1e-9)


def test_a_layer_has_the_left_of_one_and_the_right_of_another() -> None:
    base, over = held(0.1), edit.keep(held(0.7, count=21), NAMES[:2])
    mixed = edit.layer(base, over, ["left_elbow_joint"])
    assert mixed.joints_rad[0].tolist() == [0.7, 0.1, 0.1]
    assert mixed.joints_rad[-1].tolist() == [0.7, 0.1, 0.1]
    words = "layer another track (keep left_elbow_joint, right_elbow_joint), 0.20 s on 0.50 s"
    assert mixed.history == (f"{words}: left_elbow_joint",)


def test_a_layer_finds_columns_by_name_in_both_tracks() -> None:
    over = Track(
        times_s=np.arange(2.0), joints_rad=np.array([[0.3, 0.1]] * 2), names=(NAMES[2], NAMES[0])
    )
    mixed = edit.layer(held(0.0), over, [NAMES[2], NAMES[0]])
    np.testing.assert_allclose(mixed.joints_rad, np.tile([0.1, 0.0, 0.3], (51, 1)))


def test_a_layer_of_a_joint_that_one_track_lacks_is_refused() -> None:
    one = edit.keep(even(), NAMES[:1])
    for base, over in ((one, even()), (even(), one)):
        with pytest.raises(BadRequestError, match="the track has no waist_yaw_joint"):
            edit.layer(base, over, NAMES[2:])


# ---- joints -------------------------------------------------------------------------------------


def test_keeping_some_joints_is_dropping_the_others() -> None:
    kept = edit.keep(even(), [NAMES[2], NAMES[0]])
    dropped = edit.drop(even(), [NAMES[1]])
    assert kept.names == (NAMES[0], NAMES[2])
    assert_same(kept, dropped)
    assert kept.history == ("keep left_elbow_joint, waist_yaw_joint",)
    assert dropped.history == ("drop right_elbow_joint",)


@pytest.mark.parametrize("choose", [edit.keep, edit.drop])
@pytest.mark.parametrize(("joints", "words"), [((), "no joint was named"), (("tail",), "no tail")])
def test_joints_that_are_not_there_are_refused_with_those_that_are(
    choose: Callable[[Track, tuple[str, ...]], Track], joints: tuple[str, ...], words: str
) -> None:
    with pytest.raises(BadRequestError, match=words) as caught:
        choose(even(), joints)
    assert "left_elbow_joint" in caught.value.remedy


def test_the_last_joint_cannot_be_dropped() -> None:
    with pytest.raises(BadRequestError, match="all 3 joints"):
        edit.drop(even(), NAMES)


def whole(variant: Build, angle_rad: float = 0.04) -> Track:
    joints_rad = np.outer([0.0, angle_rad], np.ones(len(variant.names)))
    return Track(
        times_s=np.arange(2.0), joints_rad=joints_rad, names=variant.names, variant=variant.name
    )


@pytest.mark.parametrize("target", [G1_29, G1_27, G1_23])
@pytest.mark.parametrize("variant", [G1_29, G1_27, G1_23])
def test_a_track_comes_to_any_variant_joint_by_joint(variant: Build, target: Build) -> None:
    there = edit.to_build(whole(variant), target.name)
    assert (there.names, there.variant) == (target.names, target.name)
    rest = dict(zip(G1_29.names, G1_REST_RAD, strict=True))
    wanted = [0.04 if n in variant.names else rest[n] for n in target.names]
    assert there.joints_rad[1].tolist() == wanted
    assert len(there.history) == 1


def test_joints_that_were_missing_or_dropped_are_named_in_the_history() -> None:
    waist = "waist_roll_joint, waist_pitch_joint"
    assert edit.to_build(whole(G1_27), "g1-29").history == (f"to g1-29; at rest: {waist}",)
    assert edit.to_build(whole(G1_29), "g1-27").history == (f"to g1-27; dropped: {waist}",)


@pytest.mark.parametrize(
    ("variant", "rest_rad"), [(G1_29, G1_REST_RAD), (A1, A1_STAND_RAD)], ids=["G1", "A1"]
)
def test_what_a_track_lacks_stands_at_ease(variant: Build, rest_rad: tuple[float, ...]) -> None:
    last = edit.keep(whole(variant), variant.names[-3:])
    found = edit.to_build(last, variant.name)
    assert found.joints_rad[0].tolist() == [*rest_rad[:-3], 0.0, 0.0, 0.0]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(("variant", "target"), [(A1, G1_29), (A1, G1_23), (G1_29, A1)])
def test_nothing_makes_a_motion_of_one_robot_one_of_the_other(
    variant: Build, target: Build, force: bool
) -> None:
    with pytest.raises(BadRequestError, match=f"{target.name} has none of the track's"):
        edit.to_build(whole(variant), target.name, force=force)


def test_a_joint_that_moved_is_dropped_only_by_force() -> None:
    track = whole(G1_29, angle_rad=0.3)
    with pytest.raises(
        BadRequestError, match=r"no waist_roll_joint, but the motion moves it by 0.30 rad"
    ):
        edit.to_build(track, "g1-23")
    assert edit.to_build(track, "g1-23", force=True).names == G1_23.names


def test_a_variant_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(BadRequestError, match="'g1-30'") as raised:
        edit.to_build(even(), "g1-30")
    assert "g1-29, g1-27, g1-23" in raised.value.remedy
