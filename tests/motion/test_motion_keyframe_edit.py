"""A keyframe leads joints through other angles at one moment, and the rest of a motion stays."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError
from rote.model.registry import build_named
from rote.motion.edit.table import EDITS
from rote.motion.keyframes.edit import BOUND_RAD, keyframe, propose_keyframes
from rote.motion.track import Track

PAGE = [0.702639, 0.679924, 0.945216, 1.14074, 1.1, 0.913395, 0.403407, 0.416175]
ELBOW, SHOULDER = "left_elbow_joint", "left_shoulder_pitch_joint"


def wave(seconds: float = 4.0, rate_hz: float = 100.0, begin_s: float = 3.0) -> Track:
    since_s = np.arange(round(seconds * rate_hz) + 1) / rate_hz
    joints_rad = np.column_stack([0.5 + 0.3 * np.sin(2 * since_s), 0.1 * since_s])
    return Track(times_s=begin_s + since_s, joints_rad=joints_rad, names=(ELBOW, SHOULDER))


def at(track: Track, since_s: float, column: int = 0) -> float:
    return float(np.interp(track.times_s[0] + since_s, track.times_s, track.joints_rad[:, column]))


def test_the_joint_has_the_angle_at_the_moment_and_all_else_stays() -> None:
    old = wave()
    new = keyframe(old, 2.0, {ELBOW: 1.2}, before_s=0.5, after_s=0.8)
    assert at(new, 2.0) == pytest.approx(1.2)
    since_s = old.times_s - old.times_s[0]
    outside = (since_s <= 1.5) | (since_s >= 2.8)
    assert new.joints_rad[outside] == pytest.approx(old.joints_rad[outside], abs=1e-9)
    assert (new.joints_rad[:, 1] == old.joints_rad[:, 1]).all()
    assert "left_elbow_joint 1.200 rad" in new.history[-1]


def test_the_bend_is_soft_on_both_sides() -> None:
    old = wave()
    new = keyframe(old, 2.0, {ELBOW: 1.0}, before_s=0.5, after_s=0.5)
    by_rad = new.joints_rad[:, 0] - old.joints_rad[:, 0]
    speed_rad_s = np.diff(by_rad) * 100
    assert np.abs(np.diff(speed_rad_s)).max() < 0.2
    assert np.abs(speed_rad_s).max() == pytest.approx(1.875 * np.abs(by_rad).max() / 0.5, rel=0.01)


def test_a_keyframe_is_moved_in_time_and_the_motion_goes_on_forwards() -> None:
    old = wave()
    value = at(old, 2.0)
    new = keyframe(old, 2.0, {ELBOW: value}, to_s=2.4, before_s=1.0, after_s=1.0)
    assert at(new, 2.4) == pytest.approx(value, abs=1e-6)
    # At 0.1 s after the old beginning of the bend, less of the old motion has passed.
    assert at(new, 1.5) != pytest.approx(at(old, 1.5), abs=1e-3)
    assert at(new, 3.1) == pytest.approx(at(old, 3.1), abs=1e-9)
    line = Track(times_s=old.times_s, joints_rad=old.times_s[:, None] / 10, names=(ELBOW,))
    moved = keyframe(line, 2.0, {ELBOW: at(line, 2.0)}, to_s=2.9, before_s=1.0, after_s=1.0)
    assert (np.diff(moved.joints_rad[:, 0]) > -1e-9).all()


def test_the_bend_is_the_one_that_the_page_draws() -> None:
    """page/tests/editor.test.ts has the same numbers."""
    new = keyframe(wave(begin_s=0.0), 2.0, {ELBOW: 1.1}, to_s=2.3, before_s=0.8, after_s=1.0)
    assert [at(new, since_s) for since_s in (1.2, 1.5, 1.8, 2.1, 2.3, 2.5, 2.8, 3.0)] == (
        pytest.approx(PAGE, abs=1e-5)
    )


def test_the_first_and_the_last_pose_can_be_moved() -> None:
    old = wave()
    first = keyframe(old, 0.0, {ELBOW: 0.0}, before_s=0.0, after_s=0.5)
    assert (at(first, 0.0), at(first, 0.6)) == pytest.approx((0.0, at(old, 0.6)))
    last = keyframe(old, 4.0, {ELBOW: 0.0}, before_s=0.5, after_s=0.0)
    assert (at(last, 4.0), at(last, 3.4)) == pytest.approx((0.0, at(old, 3.4)))


def test_an_angle_beyond_the_joints_limit_is_refused_with_what_is_possible() -> None:
    upper_rad = {joint.name: joint.upper_rad for joint in build_named("g1-29").joints}[ELBOW]
    with pytest.raises(
        BadRequestError, match=rf"{ELBOW} is 2\.5 rad; the range is .*{upper_rad:g}"
    ):
        keyframe(wave(), 2.0, {ELBOW: 2.5})


def test_what_is_bent_beyond_a_limit_stays_at_the_limit() -> None:
    upper_rad = {joint.name: joint.upper_rad for joint in build_named("g1-29").joints}[ELBOW]
    since_s = np.arange(401) / 100
    hill = upper_rad - 0.1 - 0.5 * (since_s - 2.2) ** 2
    old = Track(times_s=since_s, joints_rad=hill[:, None], names=(ELBOW,))
    new = keyframe(old, 2.0, {ELBOW: upper_rad}, before_s=1.0, after_s=1.0)
    assert new.joints_rad.max() <= upper_rad + 1e-9


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"time_s": 4.5, "pose": {ELBOW: 0.1}}, r"the moment is 4\.5 s; the range is 0 to 4 s"),
        ({"time_s": 1.0, "to_s": 9.0, "pose": {ELBOW: 0.1}}, "the new moment is 9 s"),
        ({"time_s": 1.0, "to_s": 1.6, "pose": {ELBOW: 0.1}}, "would cause a jump"),
        ({"time_s": 1.0, "before_s": 0.0, "pose": {ELBOW: 0.1}}, "would cause a jump"),
        ({"time_s": 1.0, "pose": {"tail": 0.1}}, "the track has no tail"),
        ({"time_s": 1.0, "pose": {}}, "angles is missing"),
        ({"time_s": 1.0, "pose": {ELBOW: float("nan")}}, "is nan rad"),
    ],
)
def test_what_cannot_be_is_refused_in_words(values: dict[str, object], said: str) -> None:
    with pytest.raises(BadRequestError, match=said):
        EDITS["keyframe"].apply([wave()], values)


def test_a_motion_of_few_samples_gets_as_many_as_the_bend_needs() -> None:
    sparse = wave(rate_hz=2.0)
    new = keyframe(sparse, 2.2, {ELBOW: 1.0}, before_s=0.5, after_s=0.5)
    assert at(new, 2.2) == pytest.approx(1.0)
    assert new.times_s[[0, -1]] == pytest.approx(sparse.times_s[[0, -1]])
    since_s = new.times_s - new.times_s[0]
    bent = new.joints_rad[(since_s >= 1.7) & (since_s <= 2.7), 0]
    assert np.abs(np.diff(bent)).max() < 0.1
    assert at(new, 1.0, 1) == pytest.approx(at(sparse, 1.0, 1))


@given(
    st.floats(0, 4), st.floats(-0.4, 0.4), st.floats(-1, 2), st.floats(0.05, 2), st.floats(0.05, 2)
)
def test_whatever_is_dragged_the_curve_goes_through_it_and_stays_within_limits(
    time_s: float, by_s: float, value_rad: float, before_s: float, after_s: float
) -> None:
    old = wave()
    to_s = min(max(time_s + by_s, 0.0), 4.0)
    with suppress(BadRequestError):
        new = keyframe(old, time_s, {ELBOW: value_rad}, to_s, before_s, after_s)
        _judge(new, to_s, value_rad)


def _judge(new: Track, to_s: float, value_rad: float) -> None:
    nearest = np.abs(new.times_s - new.times_s[0] - to_s).argmin()
    assert new.joints_rad[nearest, 0] == pytest.approx(value_rad, abs=1e-6)
    joint = next(each for each in build_named("g1-29").joints if each.name == ELBOW)
    assert new.joints_rad[:, 0].min() >= joint.lower_rad - 1e-9
    assert new.joints_rad[:, 0].max() <= joint.upper_rad + 1e-9


# ---- proposals ----------------------------------------------------------------------------------


def test_a_few_keyframes_are_proposed_and_lie_on_the_motion() -> None:
    track = wave(8.0)
    found, error_rad = propose_keyframes(track)
    elbow = [each for each in found if each.joint == ELBOW]
    assert 4 <= len(elbow) <= 9
    assert [elbow[0].time_s, elbow[-1].time_s] == pytest.approx([0.0, 8.0])
    for each in elbow:
        assert each.value_rad == pytest.approx(at(track, each.time_s), abs=2e-3)
    assert 0 < error_rad <= BOUND_RAD


def test_a_joint_that_stands_still_has_no_keyframes_and_a_long_motion_has_them_everywhere() -> None:
    since_s = np.arange(9001) / 50
    joints_rad = np.column_stack([0.5 * np.sin(since_s), np.full(since_s.size, 0.3)])
    track = Track(times_s=since_s, joints_rad=joints_rad, names=(ELBOW, SHOULDER))
    found, _ = propose_keyframes(track)
    assert {each.joint for each in found} == {ELBOW}
    times_s = [each.time_s for each in found]
    assert times_s == sorted(set(times_s))
    assert max(np.diff(times_s)) < 6
