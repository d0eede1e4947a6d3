"""A playback never jumps, comes to rest, and can be stopped at any moment."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from g1_29 import LOWER_RAD, REST_RAD, SOFT_RAD_S, UPPER_RAD
from rote.errors import UnsafeMotionError
from rote.messages import Code, Interpolation, Keyframe, Phase, PlayAction
from rote.model.g1 import G1_29, TAUGHT_JOINTS
from rote.motion.track import Array
from rote.sim.body import STEP_S
from rote.sim.hands import ScriptedHand
from rote.sim.player import (
    BRAKE_S,
    SOFT_MIN_S,
    JointSetpoint,
    MotionCheckCache,
    Playback,
    plan_soft_move,
)
from rote.sim.refusal import RefusalError
from rote.sim.store import StoredAction
from sampled import sample_examples

EVERY = list(Interpolation)
MAX_RAD_S = 10.0
ROUNDING = 1e-9
ELBOW = 25


def taught(script: str = "wave", seconds: float = 2.0) -> StoredAction:
    """Return what a recording of a hand would be."""
    hand = ScriptedHand(script, seconds)
    times_s = np.arange(round(seconds * 100) + 1) / 100.0
    poses = np.array([hand.pose(float(time_s)) for time_s in times_s])
    return StoredAction(
        name=script,
        created_s=0,
        duration_ms=round(seconds * 1000),
        times_s=times_s,
        joints_rad=poses,
    )


def keyframed(*rows: tuple[int, int, float], duration_ms: int = 2000) -> StoredAction:
    keyframes = tuple(Keyframe(joint=j, time_ms=t, value_rad=v) for j, t, v in rows)
    return StoredAction(name="keys", created_s=0, duration_ms=duration_ms, keyframes=keyframes)


KEYS = keyframed((ELBOW, 500, 0.2), (ELBOW, 1500, 1.4), (22, 700, -1.0), (12, 1000, 0.5))
WAVE = taught()
PLAY = PlayAction(action=1)


def run(playback: Playback, most: int = 200_000) -> list[JointSetpoint]:
    """Return all setpoints to the end, or the first `most`."""
    setpoints: list[JointSetpoint] = []
    while len(setpoints) < most and (setpoint := playback.step()) is not None:
        setpoints.append(setpoint)
    return setpoints


def poses_of(setpoints: Sequence[JointSetpoint], phase: Phase | None = None) -> Array:
    return np.array([s.pose_rad for s in setpoints if phase in (None, s.phase)])


def speeds_between(start_rad: Array, setpoints: Sequence[JointSetpoint]) -> Array:
    """Return the speed of the fastest joint on the way to each setpoint."""
    poses = np.vstack([start_rad, poses_of(setpoints)])
    fastest: Array = np.abs(np.diff(poses, axis=0)).max(axis=1) / STEP_S
    return fastest


def check_never_jumps(start_rad: Array, setpoints: Sequence[JointSetpoint]) -> None:
    for speed, setpoint in zip(speeds_between(start_rad, setpoints), setpoints, strict=True):
        most = MAX_RAD_S if setpoint.phase is Phase.PLAYING else SOFT_RAD_S
        assert speed <= most + ROUNDING, f"{speed} rad/s while {setpoint.phase.name}"


# ---- soft moves ---------------------------------------------------------------------------------


@given(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0))
def test_a_soft_move_arrives_and_is_never_faster_than_soft(start: float, end: float) -> None:
    here, there = np.array([start, 0.0]), np.array([end, 0.01])
    poses = plan_soft_move(here, there, SOFT_RAD_S)
    np.testing.assert_allclose(poses[-1], there, atol=1e-12)
    speeds = np.abs(np.diff(np.vstack([here, poses]), axis=0)) / STEP_S
    assert speeds.max() <= SOFT_RAD_S + ROUNDING
    assert len(poses) * STEP_S >= SOFT_MIN_S - ROUNDING


def test_a_long_soft_move_uses_the_speed_it_may_have() -> None:
    poses = plan_soft_move(np.array([0.0]), np.array([2.0]), SOFT_RAD_S)
    assert np.abs(np.diff(poses, axis=0)).max() / STEP_S > 0.99 * SOFT_RAD_S


def test_a_soft_move_to_where_one_is_stays_there() -> None:
    assert (plan_soft_move(REST_RAD, REST_RAD, SOFT_RAD_S) == REST_RAD).all()


# ---- the whole of a playback --------------------------------------------------------------------

RAISED = REST_RAD.copy()
RAISED[[15, 22, 12]] = -1.2, -0.8, 0.6


@pytest.mark.parametrize("start_rad", [REST_RAD, RAISED], ids=["at rest", "raised"])
@pytest.mark.parametrize("how", EVERY)
@pytest.mark.parametrize("action", [WAVE, KEYS], ids=["frames", "keyframes"])
def test_a_playback_never_jumps_and_ends_at_rest(
    action: StoredAction, how: Interpolation, start_rad: Array
) -> None:
    playback = Playback(action, replace(PLAY, interpolation=how), start_rad, G1_29)
    setpoints = run(playback)
    check_never_jumps(start_rad, setpoints)
    np.testing.assert_allclose(setpoints[-1].pose_rad, REST_RAD, atol=1e-12)
    assert not setpoints[-1].speed_rad_s.any()
    assert playback.step() is None
    assert playback.phase is Phase.NONE


def test_the_phases_follow_each_other_and_are_told_before_they_come() -> None:
    playback = Playback(WAVE, PLAY, REST_RAD, G1_29)
    seen: list[Phase] = []
    while True:
        announced = playback.phase
        setpoint = playback.step()
        assert announced is (Phase.NONE if setpoint is None else setpoint.phase)
        if not seen or seen[-1] is not announced:
            seen.append(announced)
        if setpoint is None:
            break
    assert seen == [Phase.APPROACH, Phase.PLAYING, Phase.RETURN, Phase.NONE]


def test_a_setpoint_tells_the_speed_to_the_next_one() -> None:
    setpoints = run(Playback(WAVE, PLAY, REST_RAD, G1_29))
    playing = [s for s in setpoints if s.phase is Phase.PLAYING]
    poses = poses_of(playing)
    told = np.array([s.speed_rad_s for s in playing])
    np.testing.assert_allclose(told[:-1], np.diff(poses, axis=0) / STEP_S, atol=1e-9)
    assert not told[-1].any()


def test_a_recording_is_played_as_it_was_taught() -> None:
    playing = poses_of(run(Playback(WAVE, PLAY, REST_RAD, G1_29)), Phase.PLAYING)
    assert WAVE.joints_rad is not None
    np.testing.assert_allclose(playing[::5], WAVE.joints_rad, atol=1e-9)


def test_a_playback_lasts_as_long_as_the_action() -> None:
    playing = poses_of(run(Playback(WAVE, PLAY, REST_RAD, G1_29)), Phase.PLAYING)
    assert len(playing) == 2.0 / STEP_S + 1


def test_an_action_saved_with_another_duration_is_stretched_to_it() -> None:
    slow = replace(WAVE, duration_ms=5000)
    playing = poses_of(run(Playback(slow, PLAY, REST_RAD, G1_29)), Phase.PLAYING)
    assert len(playing) == 5.0 / STEP_S + 1
    assert WAVE.joints_rad is not None
    np.testing.assert_allclose(playing[-1], WAVE.joints_rad[-1], atol=1e-9)
    np.testing.assert_allclose(playing[1250], WAVE.joints_rad[100], atol=1e-9)


@pytest.mark.parametrize("action", [WAVE, KEYS], ids=["frames", "keyframes"])
@pytest.mark.parametrize("duration_ms", [1500, 2000, 4002])
def test_a_duration_asked_for_is_kept_and_the_motion_stays_the_same(
    action: StoredAction, duration_ms: int
) -> None:
    asked = run(Playback(action, replace(PLAY, duration_ms=duration_ms), REST_RAD, G1_29))
    check_never_jumps(REST_RAD, asked)
    playing = poses_of(asked, Phase.PLAYING)
    assert len(playing) == duration_ms / 2 + 1
    own = poses_of(run(Playback(action, PLAY, REST_RAD, G1_29)), Phase.PLAYING)
    np.testing.assert_allclose(playing[-1], own[-1], atol=1e-9)
    np.testing.assert_allclose(playing.max(axis=0), own.max(axis=0), atol=0.01)


@pytest.mark.parametrize("frames", [1, 2, 50, 200, 201])
def test_only_the_frames_asked_for_are_played(frames: int) -> None:
    setpoints = run(Playback(WAVE, replace(PLAY, frames=frames), REST_RAD, G1_29))
    check_never_jumps(REST_RAD, setpoints)
    playing = poses_of(setpoints, Phase.PLAYING)
    assert WAVE.joints_rad is not None
    np.testing.assert_allclose(playing[-1], WAVE.joints_rad[frames - 1], atol=1e-9)
    assert len(playing) == max(1, (frames - 1) * 5) + 1


def test_frames_and_duration_together_stretch_the_part_asked_for() -> None:
    part = replace(PLAY, frames=51, duration_ms=3000)
    playing = poses_of(run(Playback(WAVE, part, REST_RAD, G1_29)), Phase.PLAYING)
    assert len(playing) == 1501
    assert WAVE.joints_rad is not None
    np.testing.assert_allclose(playing[-1], WAVE.joints_rad[50], atol=1e-9)


def test_of_keyframes_too_only_those_asked_for_are_played() -> None:
    playing = poses_of(run(Playback(KEYS, replace(PLAY, frames=2), REST_RAD, G1_29)), Phase.PLAYING)
    assert playing[-1, ELBOW] == pytest.approx(1.4)
    assert np.ptp(playing[:, 22]) == 0.0


def test_keyframes_of_the_command_are_played_instead_of_what_is_stored() -> None:
    other = (Keyframe(joint=18, time_ms=1000, value_rad=0.4),)
    playing = poses_of(
        run(Playback(WAVE, replace(PLAY, keyframes=other), REST_RAD, G1_29)), Phase.PLAYING
    )
    assert playing[-1, 18] == pytest.approx(0.4)
    assert np.flatnonzero(np.ptp(playing, axis=0)).tolist() == [18]
    assert len(playing) == 501


def test_keyframes_begin_where_the_robot_is() -> None:
    playing = poses_of(run(Playback(KEYS, PLAY, RAISED, G1_29)), Phase.PLAYING)
    np.testing.assert_allclose(playing[0], RAISED)
    assert playing[-1, 15] == pytest.approx(-1.2), "a joint without keyframes stays"


def test_a_keyframe_at_time_zero_is_reached_softly_before_the_motion() -> None:
    setpoints = run(Playback(keyframed((ELBOW, 0, -0.5)), PLAY, REST_RAD, G1_29))
    check_never_jumps(REST_RAD, setpoints)
    assert (poses_of(setpoints, Phase.PLAYING)[:, ELBOW] == -0.5).all()


def test_an_action_of_a_single_frame_can_be_played() -> None:
    one = replace(WAVE, times_s=np.array([0.0]), joints_rad=RAISED[None, :], duration_ms=1)
    setpoints = run(Playback(one, PLAY, REST_RAD, G1_29))
    check_never_jumps(REST_RAD, setpoints)
    np.testing.assert_allclose(poses_of(setpoints, Phase.PLAYING)[-1], RAISED)


def test_the_legs_stay_at_rest_whatever_was_recorded() -> None:
    assert WAVE.joints_rad is not None
    kicking = WAVE.joints_rad.copy()
    kicking[:, :12] += 0.3
    kicking[:, 13:15] += 0.3
    setpoints = run(Playback(replace(WAVE, joints_rad=kicking), PLAY, REST_RAD, G1_29))
    others = [joint for joint in range(29) if joint not in TAUGHT_JOINTS]
    assert (poses_of(setpoints)[:, others] == REST_RAD[others]).all()


# ---- loops --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "play"),
    [(WAVE, replace(PLAY, loop=True)), (replace(KEYS, loop=True), PLAY)],
    ids=["by the command", "by the action"],
)
def test_a_loop_has_no_seam_and_no_end(action: StoredAction, play: PlayAction) -> None:
    playback = Playback(action, play, REST_RAD, G1_29)
    assert playback.loops
    setpoints = run(playback, 9000)
    assert len(setpoints) == 9000
    check_never_jumps(REST_RAD, setpoints)
    begun = [s.phase for s in setpoints].index(Phase.PLAYING)
    assert all(s.phase is Phase.PLAYING for s in setpoints[begun:])
    # After the 1001 poses of the motion it moves softly to the first of them, and on.
    poses = poses_of(setpoints[begun:])
    period = 1001 + len(plan_soft_move(poses[1000], poses[0], SOFT_RAD_S))
    seam = speeds_between(poses[1000], setpoints[begun + 1001 : begun + period])
    assert seam.max() <= SOFT_RAD_S + ROUNDING
    np.testing.assert_array_equal(poses[period:], poses[:-period])


def test_what_does_not_loop_says_so() -> None:
    assert not Playback(WAVE, PLAY, REST_RAD, G1_29).loops
    assert not Playback.returning(REST_RAD, G1_29).loops


# ---- returning and stopping ---------------------------------------------------------------------


def test_a_return_alone_goes_softly_to_rest() -> None:
    setpoints = run(Playback.returning(RAISED, G1_29))
    check_never_jumps(RAISED, setpoints)
    assert {s.phase for s in setpoints} == {Phase.RETURN}
    np.testing.assert_allclose(setpoints[-1].pose_rad, REST_RAD, atol=1e-12)


FAST = keyframed((ELBOW, 130, -0.2), (ELBOW, 260, 1.0), (ELBOW, 400, -0.2), duration_ms=400)
"""Up to 9.3 rad/s."""


def check_stops_without_a_jump(playback: Playback, after: int) -> None:
    before = run(playback, after)
    last = before[-1] if before else JointSetpoint(Phase.NONE, REST_RAD, np.zeros(29))
    going_rad_s = float(np.abs(last.speed_rad_s).max())
    playback.stop()
    assert not playback.loops
    setpoints = run(playback)
    speeds = speeds_between(last.pose_rad, setpoints)
    braking = round(BRAKE_S / STEP_S)
    assert {s.phase for s in setpoints} == {Phase.RETURN}
    # It slows down evenly from the speed it had...
    left = 1 - np.arange(braking) / braking
    assert (speeds[:braking] <= going_rad_s * left + ROUNDING).all()
    # ...and then returns softly, within the joints' limits, to rest.
    assert (speeds[braking:] <= SOFT_RAD_S + ROUNDING).all()
    poses = poses_of(setpoints)
    assert (poses >= LOWER_RAD).all()
    assert (poses <= UPPER_RAD).all()
    np.testing.assert_allclose(poses[-1], REST_RAD, atol=1e-12)
    assert not setpoints[-1].speed_rad_s.any()


@sample_examples(20)
@given(
    action=st.sampled_from([WAVE, KEYS, FAST]),
    loop=st.booleans(),
    after=st.integers(0, 4000),
)
def test_a_stop_at_any_step_brakes_and_returns_without_a_jump(
    action: StoredAction, loop: bool, after: int
) -> None:
    play = replace(PLAY, loop=loop, interpolation=Interpolation.LINEAR)
    playback = Playback(action, play, REST_RAD, G1_29)
    check_stops_without_a_jump(playback, after if loop else after % len(run_length(action)))


def run_length(action: StoredAction) -> range:
    """Return the steps a playback of this action has."""
    play = replace(PLAY, interpolation=Interpolation.LINEAR)
    return range(len(run(Playback(action, play, REST_RAD, G1_29))))


@pytest.mark.parametrize("again_after", [0, 1, 50, 99, 100, 150, 10_000])
def test_a_second_stop_does_not_jump_either(again_after: int) -> None:
    playback = Playback(FAST, PLAY, REST_RAD, G1_29)
    begun = run(playback, 500)
    playback.stop()
    stopped = run(playback, again_after)
    start = [*begun, *stopped][-1]
    playback.stop()
    setpoints = run(playback)
    assert speeds_between(start.pose_rad, setpoints).max() <= MAX_RAD_S
    np.testing.assert_allclose(setpoints[-1].pose_rad, REST_RAD, atol=1e-12)


def test_a_stop_near_a_joints_limit_does_not_brake_through_it() -> None:
    limit = float(UPPER_RAD[ELBOW])
    rush = keyframed((ELBOW, 0, 1.0), (ELBOW, 130, limit), duration_ms=130)
    playback = Playback(rush, PLAY, REST_RAD, G1_29)
    while (setpoint := playback.step()) is not None and setpoint.pose_rad[ELBOW] < limit - 0.05:
        pass
    assert setpoint is not None
    assert setpoint.speed_rad_s[ELBOW] > 8.0
    playback.stop()
    assert poses_of(run(playback))[:, ELBOW].max() == pytest.approx(limit)


# ---- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "play"),
    [
        (WAVE, replace(PLAY, frames=202)),
        (WAVE, replace(PLAY, frames=2**32 - 1)),
        (KEYS, replace(PLAY, frames=5)),
        (WAVE, replace(PLAY, frames=2, keyframes=(Keyframe(joint=18, time_ms=9, value_rad=1.0),))),
        (WAVE, replace(PLAY, duration_ms=180_001)),
        (KEYS, replace(PLAY, duration_ms=2**32 - 1)),
        (replace(WAVE, duration_ms=180_001), PLAY),
    ],
    ids=[
        "a frame too many",
        "far too many",
        "a keyframe too many",
        "more than the command brings",
        "longer than 180 s",
        "far longer",
        "stored longer",
    ],
)
def test_what_is_not_there_or_takes_too_long_is_a_bad_payload(
    action: StoredAction, play: PlayAction
) -> None:
    with pytest.raises(RefusalError) as caught:
        Playback(action, play, REST_RAD, G1_29)
    assert caught.value.code is Code.BAD_PAYLOAD


@pytest.mark.parametrize("how", EVERY)
def test_a_motion_beyond_a_joints_limit_is_unsafe(how: Interpolation) -> None:
    far = keyframed((ELBOW, 1000, 0.0), (ELBOW, 2000, 2.2))
    with pytest.raises(UnsafeMotionError) as caught:
        Playback(far, replace(PLAY, interpolation=how), REST_RAD, G1_29)
    assert caught.value.joint == "right_elbow_joint"
    assert caught.value.time_s == pytest.approx(2.0)


@pytest.mark.parametrize("how", EVERY)
def test_a_motion_that_is_too_fast_is_unsafe_until_it_is_given_more_time(
    how: Interpolation,
) -> None:
    fast = keyframed((ELBOW, 100, -0.5), duration_ms=100)
    with pytest.raises(UnsafeMotionError) as caught:
        Playback(fast, replace(PLAY, interpolation=how), REST_RAD, G1_29)
    assert caught.value.joint == "right_elbow_joint"
    assert "allowed 10.0 rad/s" in caught.value.reason
    slower = replace(PLAY, interpolation=how, duration_ms=1000)
    check_never_jumps(REST_RAD, run(Playback(fast, slower, REST_RAD, G1_29)))


def test_a_recording_that_jumps_is_unsafe() -> None:
    assert WAVE.joints_rad is not None
    torn = WAVE.joints_rad.copy()
    torn[100:, 22] += 0.5
    with pytest.raises(UnsafeMotionError) as caught:
        Playback(replace(WAVE, joints_rad=torn), PLAY, REST_RAD, G1_29)
    assert caught.value.joint == "right_shoulder_pitch_joint"
    assert caught.value.time_s == pytest.approx(0.99, abs=0.01)


def test_a_reading_a_little_beyond_the_stop_is_played_at_the_stop() -> None:
    limit = float(UPPER_RAD[ELBOW])
    poses = poses_of(run(Playback(keyframed((ELBOW, 2000, limit + 0.015)), PLAY, REST_RAD, G1_29)))
    assert poses[:, ELBOW].max() == limit


ROW = st.tuples(
    st.sampled_from(TAUGHT_JOINTS), st.integers(0, 3000), st.floats(-1.25, 1.25, width=32)
)


@sample_examples(20)
@given(
    rows=st.lists(ROW, min_size=1, max_size=8),
    how=st.sampled_from(EVERY),
    duration_ms=st.integers(0, 20_000),
)
@example(rows=[(ELBOW, 0, -1.0625)], how=Interpolation.LINEAR, duration_ms=0)
def test_any_playback_that_is_not_refused_never_jumps(
    rows: list[tuple[int, int, float]], how: Interpolation, duration_ms: int
) -> None:
    play = replace(PLAY, interpolation=how, duration_ms=duration_ms)
    try:
        playback = Playback(keyframed(*rows, duration_ms=3000), play, RAISED, G1_29)
    except UnsafeMotionError:
        return
    setpoints = run(playback)
    check_never_jumps(RAISED, setpoints)
    poses = poses_of(setpoints)
    assert (poses >= LOWER_RAD).all()
    assert (poses <= UPPER_RAD).all()


# ---- checks that are remembered -----------------------------------------------------------------


def test_a_motion_is_checked_once_and_another_one_again() -> None:
    checks = MotionCheckCache(max_entries=2)
    times_s: Array = np.array([0.0, 1.0, 2.0])
    poses = np.repeat(REST_RAD[None], 3, axis=0)
    first = checks.check(times_s, poses, None, G1_29)
    assert checks.check(times_s.copy(), poses.copy(), None, G1_29) is first
    moved = poses.copy()
    moved[1, ELBOW] += 1e-9
    second = checks.check(times_s, moved, None, G1_29)
    assert second is not first
    assert checks.check(times_s, poses, times_s, G1_29) is not first, "a recording has gaps"
    assert checks.check(times_s, poses, None, G1_29) is not first, "only the last two are kept"


def test_a_forbidden_motion_is_forbidden_every_time() -> None:
    checks = MotionCheckCache()
    poses = np.repeat(REST_RAD[None], 3, axis=0)
    poses[1, ELBOW] = 9.0
    for _ in range(2):
        with pytest.raises(UnsafeMotionError):
            checks.check(np.array([0.0, 1.0, 2.0]), poses, None, G1_29)


@pytest.mark.parametrize("loop", [False, True])
def test_steps_taken_ahead_are_the_same_steps(loop: bool) -> None:
    play = replace(PLAY, loop=loop)
    one, other = (Playback(WAVE, play, REST_RAD, G1_29) for _ in range(2))
    rng = np.random.default_rng(3)
    wanted, given = run(one, 6000), list[tuple[bytes, bytes, Phase]]()
    while len(given) < len(wanted):
        poses, speeds = other.next_steps(int(rng.integers(0, 40)))
        assert (other.phase is other._last.phase) or not len(poses)
        given += [
            (p.tobytes(), s.tobytes(), other.phase) for p, s in zip(poses, speeds, strict=True)
        ]
        setpoint = other.step()
        if setpoint is None:
            break
        given.append((setpoint.pose_rad.tobytes(), setpoint.speed_rad_s.tobytes(), setpoint.phase))
    known = [(s.pose_rad.tobytes(), s.speed_rad_s.tobytes(), s.phase) for s in wanted]
    assert given[: len(known)] == known
