"""Preparing a track for streaming, its soft ends, and the ticks that send it."""

import asyncio
import threading
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import virtual
from rig import Body, rig
from rote.errors import BadRequestError, UnsafeMotionError, WarnedMotionError
from rote.findings import Finding, FindingKind, Severity
from rote.messages import RobotState, StreamPose
from rote.model.a1 import A1
from rote.model.dex3 import DEX3
from rote.model.family import attach_hands
from rote.model.g1 import G1_23, G1_29, G1_JOINTS, G1_REST_RAD, TAUGHT_JOINTS
from rote.motion.check.report import CheckReport
from rote.motion.track import Array, Track
from rote.robot.streamed_motion import (
    RATES_HZ,
    TrackCheck,
    check_at_speed,
    check_playable,
    prepare,
    taught_joint_arrays,
    taught_poses,
    with_hands,
)
from rote.robot.ticker import LOOP_STALL_S, Ticker
from rote.transport.base_client import ThreadSafeSender

TAUGHT = [G1_JOINTS[index] for index in TAUGHT_JOINTS]
NAMES = tuple(joint.name for joint in TAUGHT)
ELBOW = NAMES.index("right_elbow_joint")
REST_RAD = taught_joint_arrays(G1_29).rest_rad
SOFT_RAD_S = taught_joint_arrays(G1_29).soft_rad_s
STILL = RobotState(joints_rad=G1_REST_RAD, velocities_rad_s=(0.0,) * 29)


def track(values: Array, names: tuple[str, ...] = NAMES, rate_hz: float = 100.0) -> Track:
    times_s = 5.0 + np.arange(len(values)) / rate_hz  # a track may begin anywhere
    return Track(times_s=times_s, joints_rad=values, names=names)


def swing(size_rad: float = 0.3, seconds: float = 2.0) -> Array:
    """Return poses in which every taught joint swings about its rest."""
    t = np.arange(round(100 * seconds) + 1) / 100.0
    return REST_RAD + size_rad * np.sin(np.pi * t)[:, None]


def one_joint(name: str, *values: float) -> Track:
    return track(np.array(values)[:, None], (name,), rate_hz=1.0)


# ---- from a track to the joints that are taught -------------------------------------------------


def test_the_joints_are_found_by_name_in_whatever_order() -> None:
    poses = swing()
    order = np.random.default_rng(0).permutation(len(NAMES))
    shuffled = track(poses[:, order], tuple(NAMES[index] for index in order))
    assert np.array_equal(taught_poses(shuffled, G1_29), poses)


def test_joints_that_a_track_lacks_keep_their_rest() -> None:
    poses = taught_poses(one_joint("right_elbow_joint", 0.5, 0.7), G1_29)
    assert poses[:, ELBOW].tolist() == [0.5, 0.7]
    assert np.array_equal(np.delete(poses, ELBOW, axis=1), np.delete([REST_RAD] * 2, ELBOW, axis=1))


def test_a_track_of_another_build_plays_with_the_wrists_it_lacks_at_rest() -> None:
    values = np.repeat(np.array([[0.1] * 23]), 3, axis=0)
    poses = taught_poses(track(values, G1_23.names), G1_29)
    lacking = [NAMES.index(name) for name in NAMES if name not in G1_23.names]
    assert len(lacking) == 4
    assert np.array_equal(poses[:, lacking], [REST_RAD[lacking]] * 3)


def test_legs_that_stand_still_are_ignored_wherever_they_stand() -> None:
    values = np.repeat(np.array([G1_REST_RAD]), 2, axis=0)
    values[:, 3] = [0.9, 0.93]
    assert taught_poses(track(values, G1_29.names), G1_29).shape == (2, 15)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (one_joint("left_knee_joint", 0.0, 0.3), "0 joints of arms"),
        (one_joint("right_elbow_joint", 0.5), "1 samples"),
        (one_joint("tail_joint", 0.0, 0.1), "no tail_joint"),
        (track(np.zeros((2, 2)), ("waist_yaw_joint",) * 2), "twice"),
        (
            track(np.array([[0.0, 0.0], [0.0, 0.3]]), ("waist_yaw_joint", "left_knee_joint")),
            "left_knee_joint moves by 0.30 rad",
        ),
        (
            track(np.array([[0.0, 0.0], [0.0, 0.3]]), ("waist_yaw_joint", "waist_roll_joint")),
            "waist_roll_joint moves by 0.30 rad",
        ),
    ],
    ids=[
        "no arm",
        "one sample",
        "unknown joint",
        "a joint twice",
        "a leg moves",
        "the waist rolls",
    ],
)
def test_a_track_that_cannot_be_played_as_it_is_is_refused(bad: Track, words: str) -> None:
    with pytest.raises(BadRequestError, match=words) as caught:
        taught_poses(bad, G1_29)
    assert caught.value.remedy


def test_a_motion_of_an_a1_is_told_before_anything_else_is_said_of_it() -> None:
    legs = replace(track(np.zeros((2, 12)), A1.names), variant=A1.name)
    with pytest.raises(BadRequestError, match="a motion of an A1"):
        check_at_speed(legs, speed=99.0, build=G1_29)
    with pytest.raises(BadRequestError, match="a motion of an A1"):
        prepare(legs, G1_29, 100.0, 1.0, force=True)


# ---- prepared -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rate_hz", [50.0, 100.0, 250.0, 333.3, 1000.0])
def test_a_prepared_track_passes_through_its_samples_at_its_speed(rate_hz: float) -> None:
    motion = prepare(track(swing(seconds=2.0)), G1_29, rate_hz, 0.5)
    assert motion.seconds == pytest.approx(4.0, abs=1.01 / rate_hz)
    at = np.round(np.linspace(0, 4.0, 9) * rate_hz).astype(int)
    at = np.minimum(at, len(motion.poses_rad) - 1)
    wanted = REST_RAD + 0.3 * np.sin(np.pi * np.minimum(at / rate_hz, 4.0) / 2)[:, None]
    assert np.abs(motion.poses_rad[at] - wanted).max() < 1e-3
    assert np.allclose(motion.poses_rad[-1], swing(seconds=2.0)[-1])


def test_a_prepared_track_has_the_name_of_where_it_came_from() -> None:
    named = replace(track(swing()), source="teach wave")
    assert prepare(named, G1_29, 250.0, 1.0).name == "teach wave"
    assert prepare(track(swing()), G1_29, 250.0, 1.0).name == "a track"


@pytest.mark.parametrize("rate_hz", [0.0, 49.9, 1001.0, -250.0, float("nan"), float("inf")])
def test_an_impossible_rate_is_refused(rate_hz: float) -> None:
    with pytest.raises(BadRequestError, match="rate"):
        prepare(track(swing()), G1_29, rate_hz, 1.0)


def test_a_playback_beyond_three_minutes_is_refused() -> None:
    long = one_joint("right_elbow_joint", *np.linspace(0.5, 1.0, 100))
    prepare(long, G1_29, 50.0, 1.0)
    with pytest.raises(BadRequestError, match="playback"):
        prepare(long, G1_29, 50.0, 0.5)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (one_joint("right_elbow_joint", 0.5, 3.0), "3.00 rad, allowed"),
        (one_joint("right_elbow_joint", 0.5, -1.2), "-1.20 rad, allowed"),
        (track(np.array([[0.0], [0.5], [0.0]]), ("right_elbow_joint",), 10.0), None),
        (track(np.array([[0.0], [0.5], [0.0]]), ("right_elbow_joint",), 25.0), "rad/s, allowed"),
    ],
    ids=["too high", "too low", "just slow enough", "too fast"],
)
def test_a_track_beyond_a_limit_is_unsafe(bad: Track, reason: str | None) -> None:
    if reason is None:
        prepare(bad, G1_29, 250.0, 1.0)
        return
    with pytest.raises(UnsafeMotionError, match=reason) as caught:
        prepare(bad, G1_29, 250.0, 1.0)
    assert caught.value.joint == "right_elbow_joint"


def test_a_safe_track_is_unsafe_at_four_times_its_speed() -> None:
    quick = track(REST_RAD + 0.3 * np.sin(12.0 * np.arange(101) / 100.0)[:, None])
    prepare(quick, G1_29, 250.0, 1.0)
    with pytest.raises(UnsafeMotionError):
        prepare(quick, G1_29, 250.0, 4.0)


def test_what_is_a_little_beyond_a_stop_is_played_to_the_stop() -> None:
    upper = np.array([joint.upper_rad for joint in TAUGHT])
    poses = check_playable(np.array([0.0, 1.0]), np.array([upper + 0.01, upper]), G1_29)
    assert np.array_equal(poses, [upper, upper])


# ---- soft ends ----------------------------------------------------------------------------------

POSES = st.tuples(*(st.floats(joint.lower_rad, joint.upper_rad) for joint in TAUGHT))


def at(pose: Array | tuple[float, ...]) -> RobotState:
    positions = np.array(G1_REST_RAD)
    positions[list(TAUGHT_JOINTS)] = pose
    return RobotState(joints_rad=tuple(positions.tolist()), velocities_rad_s=(0.0,) * 29)


def followed(poses: Sequence[StreamPose], own: Array) -> Array:
    """Return where the arms are sent, by the weights, if the robot's own pose is `own`."""
    weights = np.array([pose.weight for pose in poses])[:, None]
    return np.asarray((1 - weights) * own + weights * [pose.joints_rad for pose in poses])


@settings(max_examples=25)
@given(start=POSES, pose=POSES)
def test_the_ends_are_soft_from_wherever_to_wherever(
    start: tuple[float, ...], pose: tuple[float, ...]
) -> None:
    rate_hz = 50.0
    motion = prepare(track(np.array([pose] * 2)), G1_29, rate_hz, 1.0, force=True)
    poses = motion.poses(at(start))
    there = next(place for place, one in enumerate(poses) if one.weight == 1.0)
    out = followed(poses[: there + 1], np.array(start))
    back = followed(motion.poses(at(REST_RAD)), REST_RAD)
    assert np.allclose(out[0], start)
    assert np.allclose(out[-1], pose)
    assert np.abs(np.diff(out, axis=0)).max() * rate_hz <= SOFT_RAD_S * 1.01
    assert np.abs(np.diff(back, axis=0)).max() * rate_hz <= SOFT_RAD_S * 1.01
    assert np.allclose(back[-1], REST_RAD)


def test_weights_rise_to_1_stay_for_the_motion_and_fall_to_0() -> None:
    motion = prepare(track(swing()), G1_29, 250.0, 1.0)
    poses = motion.poses(STILL)
    weights = np.array([pose.weight for pose in poses])
    whole = np.flatnonzero(weights == 1.0)
    assert weights[0] == 0.0
    assert (np.diff(weights[: whole[0] + 1]) > 0).all()
    assert (np.diff(whole) == 1).all()
    assert len(whole) == len(motion.poses_rad)
    assert (np.diff(weights[whole[-1] :]) <= 0).all()
    assert (weights[-round(0.2 * 250) :] == 0.0).all(), "the last one is repeated"
    assert [pose.number for pose in poses] == list(range(len(poses)))
    played = np.array([poses[int(index)].joints_rad for index in whole])
    assert np.array_equal(played, motion.poses_rad)


# ---- ticks --------------------------------------------------------------------------------------


def test_poses_are_sent_at_their_deadlines_in_order() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        sent: list[tuple[int, float]] = []
        ticker = Ticker(250.0)
        began = loop.time()

        def tell(place: int) -> bool:
            sent.append((place, loop.time() - began))
            return True

        ticker.start(tell, 500)
        await asyncio.sleep(5.0)
        assert [place for place, _ in sent] == list(range(500))
        assert np.allclose([at_s for _, at_s in sent], np.arange(500) / 250.0)
        report = ticker.report("wave", completed=True, seconds=2.0)
        assert report.rate_hz == pytest.approx(250.0)
        assert report.late_max_ms == pytest.approx(0.0, abs=1e-6)
        assert report.missed == 0

    virtual.run(story())


def held_up(rate_hz: float, hold_ups: dict[int, float]) -> tuple[list[tuple[int, float]], Ticker]:
    """Send 100 poses, some of which take so many seconds; return places and times, from 0 s on."""
    sent: list[tuple[int, float]] = []

    async def story() -> Ticker:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, virtual.VirtualLoop)
        ticker = Ticker(rate_hz)
        began = loop.time()

        def tell(place: int) -> bool:
            sent.append((place, loop.time() - began))
            loop.jumping.now += hold_ups.get(place, 0.0)
            return True

        ticker.start(tell, 100)
        await asyncio.sleep(10.0)
        return ticker

    ticker = virtual.run(story())
    return sent, ticker


def test_after_a_hold_up_poses_follow_at_twice_the_pace_until_they_are_in_time() -> None:
    sent, ticker = held_up(100.0, {20: 0.056})
    assert [place for place, _ in sent] == list(range(100)), "none is left out"
    late = {place: at_s - place / 100.0 for place, at_s in sent}
    assert [late[place] for place in range(21, 31)] == pytest.approx(
        [0.046 - 0.005 * n for n in range(10)], abs=1e-9
    )
    assert max(late[place] for place in range(31, 100)) < 1e-6
    report = ticker.report("wave", completed=True, seconds=1.0)
    assert report.missed == 0
    assert report.late_max_ms == pytest.approx(46.0, abs=0.1)
    assert report.rate_hz == pytest.approx(100.0)


def test_a_computer_too_slow_for_the_rate_leaves_out_poses_and_counts_them() -> None:
    sent, ticker = held_up(100.0, dict.fromkeys(range(100), 0.015))
    places = [place for place, _ in sent]
    assert places == sorted(set(places))
    assert places[-1] == 99
    report = ticker.report("wave", completed=True, seconds=1.0)
    assert report.missed == 100 - len(places) > 20
    assert report.late_max_ms < 100.0 + 15.0
    assert report.rate_hz == pytest.approx(1 / 0.015, rel=0.05)


def test_after_a_hang_the_motion_goes_on_where_it_was() -> None:
    sent, ticker = held_up(100.0, {20: 0.5})
    assert [place for place, _ in sent] == list(range(100)), "no pose is jumped over"
    assert [at_s - place / 100.0 for place, at_s in sent[21:]] == pytest.approx([0.49] * 79)
    report = ticker.report("wave", completed=True, seconds=1.0)
    assert report.missed == 0
    assert report.late_max_ms == pytest.approx(490.0)


def test_a_hold_up_beyond_the_end_jumps_over_nothing() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, virtual.VirtualLoop)
        sent: list[int] = []
        ticker = Ticker(100.0)
        ticker.start(lambda place: not sent.append(place), 10)  # type: ignore[func-returns-value]
        loop.jumping.now += 5.0
        await asyncio.sleep(1.0)
        assert sent == list(range(10))

    virtual.run(story())


def test_a_stopped_ticker_is_silent_and_may_be_stopped_again() -> None:
    async def story() -> None:
        sent: list[int] = []
        ticker = Ticker(100.0)
        ticker.stop()
        ticker.start(lambda place: not sent.append(place), 100)  # type: ignore[func-returns-value]
        await asyncio.sleep(0.105)
        ticker.stop()
        ticker.stop()
        await asyncio.sleep(1.0)
        assert sent == list(range(11))

    virtual.run(story())


def test_a_stream_that_was_ended_by_a_stop_sends_nothing_more() -> None:
    async def story() -> None:
        tried: list[int] = []

        def tell(place: int) -> bool:
            tried.append(place)
            return place < 5

        ticker = Ticker(100.0)
        ticker.start(tell, 100)
        assert not ticker.cut_off
        await asyncio.sleep(2.0)
        assert tried == list(range(6))
        assert ticker.cut_off

    virtual.run(story())


@pytest.mark.parametrize("ended_by", ["its end", "a stop", "the robot"])
def test_what_may_be_sent_from_anywhere_is_sent_by_a_thread_in_real_time(ended_by: str) -> None:
    sent: list[tuple[int, str]] = []
    most = 10**6 if ended_by == "a stop" else 40

    async def story() -> Ticker:
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        ticker = Ticker(500.0)

        def tell(place: int) -> bool:
            sent.append((place, threading.current_thread().name))
            if place >= 39:
                loop.call_soon_threadsafe(over.set)
            return ended_by != "the robot" or place < 20

        ticker.start(ThreadSafeSender(tell), most)
        if ended_by == "the robot":
            while not ticker.cut_off:
                await asyncio.sleep(0.001)
        else:
            await over.wait()
        ticker.stop()
        return ticker

    ticker = asyncio.run(story())
    places = [place for place, _ in sent]
    assert places == sorted(set(places))
    assert {name for _, name in sent} == {"rote stream"}
    assert ticker.cut_off is (ended_by == "the robot")
    assert ticker.report("wave", completed=True, seconds=0.1).rate_hz > 50


def test_over_a_socket_a_track_is_streamed_by_a_thread() -> None:
    times_s = np.arange(51) / 100.0
    elbow = 1.0 - 0.2 * np.sin(2 * np.pi * times_s)
    motion = Track(times_s=times_s, joints_rad=elbow[:, None], names=("left_elbow_joint",))

    async def story() -> None:
        async with rig("udp") as one, one.connect() as robot:
            playing = robot.play_track(motion, rate_hz=250.0)
            await playing.started()
            assert "rote stream" in {thread.name for thread in threading.enumerate()}
            report = await playing
            assert report.completed
            assert report.rate_hz > 100.0
        assert "rote stream" not in {thread.name for thread in threading.enumerate()}

    asyncio.run(story())


def test_a_ticker_that_never_began_has_nothing_to_report() -> None:
    async def story() -> None:
        report = Ticker(100.0).report("wave", completed=False, seconds=0.0)
        assert (report.rate_hz, report.late_max_ms, report.missed) == (0.0, 0.0, 0)

    virtual.run(story())


def test_the_slowest_rate_is_well_within_the_robots_patience() -> None:
    assert 1.0 / RATES_HZ[0] <= 0.1 / 5


# ---- what was checked before --------------------------------------------------------------------


def warned(kind: FindingKind) -> CheckReport:
    return CheckReport((Finding(Severity.WARNING, "look at it", "Look.", kind=kind),))


def test_what_was_checked_of_this_very_track_decides_and_is_not_worked_out_again() -> None:
    one = track(swing())
    known = TrackCheck(one, 1.0, warned(FindingKind.BALANCE))
    prepare(one, G1_29, 250.0, 1.0)
    with pytest.raises(WarnedMotionError, match="look at it"):
        prepare(one, G1_29, 250.0, 1.0, checked=known)
    assert prepare(one, G1_29, 250.0, 1.0, checked=known, force=True).forced


def test_contact_that_was_found_before_is_left_to_the_look_from_where_the_robot_stands() -> None:
    one = track(swing())
    known = TrackCheck(one, 1.0, warned(FindingKind.COLLISION))
    assert len(prepare(one, G1_29, 250.0, 1.0, checked=known).poses_rad)


def test_what_was_checked_of_another_track_speed_or_build_says_nothing() -> None:
    gap = track(swing())
    torn = replace(gap, times_s=np.where(np.arange(len(gap)) < 100, 0.0, 3.0) + gap.times_s)
    with pytest.raises(UnsafeMotionError):
        prepare(torn, G1_29, 250.0, 1.0)
    nothing = CheckReport(())
    for known in (
        TrackCheck(gap, 1.0, nothing),
        TrackCheck(replace(torn), 1.0, nothing),
        TrackCheck(torn, 0.5, nothing),
    ):
        with pytest.raises(UnsafeMotionError):
            prepare(torn, G1_29, 250.0, 1.0, checked=known)
    assert not TrackCheck(gap, 1.0, nothing).applies_to(gap, G1_23, 1.0)
    assert TrackCheck(gap, 1.0, nothing).applies_to(gap, G1_29, 1.0)


# ---- why it ended -------------------------------------------------------------------------------


def elbow(seconds: float = 4.0) -> Track:
    times_s = np.arange(round(100 * seconds) + 1) / 100.0
    bend = 1.0 - 0.4 * np.sin(np.pi * times_s / seconds)
    return Track(times_s=times_s, joints_rad=bend[:, None], names=("left_elbow_joint",))


@pytest.mark.parametrize("stall_s", [0.15, 0.5])
def test_a_stall_that_the_simulated_robot_shares_does_not_end_a_stream(stall_s: float) -> None:
    async def story() -> None:
        async with rig("memory") as one, one.connect() as robot:
            playing = robot.play_track(elbow())
            await playing.started()
            await asyncio.sleep(2.0)
            virtual.hang(stall_s)
            report = await playing
            assert (report.completed, report.reason) == (True, "")

    virtual.run(story())


@pytest.mark.parametrize(
    ("stop_client", "words"),
    [(virtual.hang, "sent no pose for 0.40 s"), (virtual.suspend, "suspended for 0.4 s")],
)
def test_a_robot_that_returns_after_a_stall_is_not_blamed_for_it(
    stop_client: Callable[[float], None], words: str
) -> None:
    async def story() -> None:
        async with rig("udp") as one, one.connect() as robot:
            body = Body(one)
            playing = robot.play_track(elbow())
            await playing.started()
            await asyncio.sleep(2.0)
            body.go_on(0.4, stop_client)
            report = await playing
            assert not report.completed
            assert words in report.reason

    virtual.run(story())


@pytest.mark.parametrize("wire", ["memory", "dds"])
@pytest.mark.parametrize("by", ["this program", "another client"])
def test_a_stopped_stream_reports_the_stop_even_long_after_a_stall(wire: str, by: str) -> None:
    async def story() -> None:
        async with rig(wire) as one, one.connect() as robot, one.bystander() as other:
            playing = robot.play_track(elbow(8.0))
            await playing.started()
            await asyncio.sleep(2.0)
            virtual.hang(0.15)
            await asyncio.sleep(2.0)
            await (robot if by == "this program" else other).stop()
            report = await playing
            assert not report.completed
            words = {"this program": "this program requested a stop"}.get(by, "stopped")
            if wire == "dds" and by == "another client":
                words = "another client, or the robot itself, released the arms"
            assert words in report.reason

    virtual.run(story())


def test_a_loop_that_stalls_ends_a_stream_that_a_thread_sends() -> None:
    """No stop could take effect meanwhile. In real time: the thread must not stall with it."""
    sent: list[float] = []

    async def story() -> Ticker:
        ticker = Ticker(100.0)

        def tell(_: int) -> bool:
            sent.append(time.monotonic())
            return True

        ticker.start(ThreadSafeSender(tell), 10**6)
        await asyncio.sleep(0.3)
        blocked_at = time.monotonic()
        time.sleep(1.5)  # noqa: ASYNC251 - the loop stalls
        ticker.stop()
        assert sent[-1] - blocked_at < LOOP_STALL_S + 0.25
        return ticker

    ticker = asyncio.run(story())
    assert ticker.cut_off
    assert "event loop stalled" in ticker.cut_reason


def test_a_suspended_computer_ends_a_stream_that_a_thread_sends() -> None:
    async def story() -> None:
        ticker = Ticker(100.0)
        ticker.start(ThreadSafeSender(lambda _: True), 10**6)
        await asyncio.sleep(0.2)
        virtual.suspend(5.0)
        time.sleep(0.1)  # noqa: ASYNC251 - the thread is the first to run again
        ticker.stop()
        assert ticker.cut_off

    asyncio.run(story())


def test_the_statistics_of_a_long_stream_take_constant_memory() -> None:
    async def story() -> None:
        ticker = Ticker(1000.0)
        for place in range(40_000):
            now_s = ticker._began_s + place / 1000.0 + 1e-6 * (place % 5000)
            ticker._send_due_pose(now_s, now_s)
        report = ticker.report("following", completed=True, seconds=40.0)
        assert report.late_p99_ms == pytest.approx(4.95, rel=0.02)
        assert report.late_max_ms == pytest.approx(4.999)
        assert report.rate_hz == pytest.approx(1000.0, rel=0.01)

    before = tracemalloc_peak(lambda: virtual.run(story()))
    assert before < 1_000_000


def tracemalloc_peak(work: Callable[[], None]) -> int:
    """Return by how many bytes the memory in use grew at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# ---- contact -----------------------------------------------------------------------------------

THROUGH_THE_CHEST = {
    "right_shoulder_pitch_joint": 0.0,
    "right_shoulder_yaw_joint": 1.5,
    "right_elbow_joint": -0.3,
}


def test_a_track_that_touches_the_body_is_refused_before_anything_moves() -> None:
    names = tuple(THROUGH_THE_CHEST)
    rows = np.repeat([list(THROUGH_THE_CHEST.values())], 101, axis=0)
    motion = track(rows, names)

    async def story() -> None:
        async with rig("memory") as one, one.connect() as robot:
            with pytest.raises(UnsafeMotionError, match=r"touch|contact|overlap|meet"):
                await robot.play_track(motion)
            assert not any("playing" in notice.message for notice in one.world.notices)

    virtual.run(story())


def test_contact_is_looked_for_from_where_the_robot_stands() -> None:
    waist = track(np.zeros((101, 1)), ("waist_yaw_joint",))
    motion = prepare(waist, G1_29, 250.0, 1.0)
    joints_rad = list(G1_REST_RAD)
    for name, value in THROUGH_THE_CHEST.items():
        joints_rad[G1_29.names.index(name)] = value
    asyncio.run(motion.check_contact(STILL))
    with pytest.raises(UnsafeMotionError):
        asyncio.run(motion.check_contact(replace(STILL, joints_rad=tuple(joints_rad))))


def test_the_way_to_the_first_pose_is_as_long_as_the_fingers_need() -> None:
    worn = attach_hands(G1_29, DEX3)
    finger = DEX3[0].joints[0]
    far_rad = 0.9 * finger.upper_rad
    rows = np.repeat([[*REST_RAD, far_rad]], 101, axis=0)
    motion = track(rows, (*NAMES, finger.name))
    prepared = with_hands(prepare(motion, worn, 250.0, 1.0), motion, 1.0)
    fingers = sum(len(hand.joints) for hand in DEX3)
    state = replace(STILL, joints_rad=G1_REST_RAD + (0.0,) * fingers)
    assert prepared.approach_s(state) > 2.0 * far_rad / SOFT_RAD_S
