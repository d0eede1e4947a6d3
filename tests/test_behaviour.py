"""What a person relies on, over every wire. Time is virtual; sockets are real."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

import numpy as np
import pytest

import hardware
import virtual
from rig import FRAMES, SERVICES_HZ, WIRES, Rig, rig
from rote.cli.wording import worded
from rote.errors import (
    BadRequestError,
    NoAnswerError,
    PeerLostError,
    RefusedError,
    UnsafeMotionError,
    UnsupportedError,
)
from rote.findings import Severity
from rote.messages import Code, Interpolation, Phase, RobotState
from rote.model.g1 import G1_29, G1_JOINTS, G1_REST_RAD, TAUGHT_JOINTS, Mode
from rote.motion.compare import deviation
from rote.motion.edit.operations import trim
from rote.motion.record import Recorder
from rote.motion.track import Track
from rote.robot.api_values import PlayReport
from rote.robot.message_robot import G1
from rote.transport.impair import Impairment

Story = Callable[[Rig], Awaitable[None]]
NAMES = [G1_JOINTS[index].name for index in TAUGHT_JOINTS]


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=FRAMES)
def frames(request: pytest.FixtureRequest) -> str:
    """The wires that can change an action's tempo, and have many clients at once."""
    return str(request.param)


async def check_healthy(one: Rig, robot: G1) -> None:
    """Check that the preflight finds nothing, but for the service that a stream has beside it."""
    found = [str(each.message) for each in await robot.preflight()]
    rivals = [
        "the robot's own service g1_arm_example is running: it may move the arms during a stream"
    ]
    assert found == (rivals if one.wire == "dds" else [])


def tell(
    wire: str,
    story: Story,
    mode: Mode = Mode.WALK,
    impairment: Impairment | None = None,
    services_hz: float | None = SERVICES_HZ,
) -> None:
    """Run a story against a simulated robot on a wire, or against a real one (--robot)."""
    if hardware.robot_url():
        hardware.tell(story)
        return

    async def run() -> None:
        async with rig(wire, mode=mode, impairment=impairment, services_hz=services_hz) as one:
            await story(one)

    virtual.run(run())


async def teach(robot: G1, name: str, seconds: float = 1.0, hand: str = "wave") -> None:
    async with robot.teach(name):
        await robot.move_by_hand(hand, seconds)
        await asyncio.sleep(seconds)


# ---- the main job -------------------------------------------------------------------------------


@pytest.mark.each_once("wire", "hand")
@pytest.mark.moves
@pytest.mark.parametrize("hand", ["wave", "bow", "clap", "drum"])
def test_a_motion_taught_by_hand_is_listed_and_played_back_closely(wire: str, hand: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            async with robot.teach("mine") as take:
                await robot.move_by_hand(hand, 2.0)
                await asyncio.sleep(2.0)
            assert take.saved
            assert take.track.rate_hz == pytest.approx(one.recording_hz, rel=0.02)
            assert np.ptp(take.track.joints_rad, axis=0).max() > 0.3
            (action,) = (await robot.actions()).taught
            assert (action.name, action.position) == ("mine", 1)
            assert action.duration_s == pytest.approx(2.0, abs=one.start_s + 0.1)
            played = Recorder()
            forget = robot.on_state(lambda s: played.add(s) if s.phase is Phase.PLAYING else None)
            report = await robot.play("mine")
            forget()
            assert report.completed
            motion = played.track()
            if one.has_services:  # they say "playing" during the approach, and record before us
                motion = trim(motion, motion.duration_s - take.track.duration_s, motion.duration_s)
            apart = deviation(take.track, motion, NAMES)
            assert apart.rms_rad < 0.02
            assert apart.max_rad < 0.1

    tell(wire, story)


@pytest.mark.moves
def test_teaching_lasts_as_long_as_the_block_because_keep_alives_are_sent(wire: str) -> None:
    async def story(one: Rig) -> None:
        seconds = one.holds_after_s + 0.5  # without them the arms would hold by then
        async with one.connect() as robot:
            async with robot.teach("long"):
                await asyncio.sleep(seconds)
                assert robot.state is not None
                assert robot.state.arms_soft
            assert (await robot.actions()).taught[0].duration_s == pytest.approx(
                seconds, abs=one.start_s + 0.1
            )

    tell(wire, story)


@pytest.mark.moves
def test_the_robot_starts_without_a_jump_and_ends_at_rest(wire: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            rest = np.array((await anext(aiter(robot.states()))).joints_rad)
            await teach(robot, "mine", 1.0, "clap")
            poses: list[tuple[float, ...]] = []
            forget = robot.on_state(lambda state: poses.append(state.joints_rad))
            await robot.play("mine")
            forget()
            steps = np.abs(np.diff(np.array(poses), axis=0)).max()
            assert steps < 0.2  # 10 rad/s at 50 Hz
            assert np.abs(np.array(poses[-1]) - rest).max() < 0.1

    tell(wire, story)


@pytest.mark.moves
@pytest.mark.parametrize("interpolation", ["linear", "cubic", "smooth", Interpolation.CUBIC])
def test_every_interpolation_plays(frames: str, interpolation: str | Interpolation) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            await teach(robot, "mine")
            assert (await robot.play("mine", interpolation=interpolation)).completed

    tell(frames, story)


@pytest.mark.moves
def test_speed_and_duration_change_how_long_it_takes(frames: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            await teach(robot, "mine", 1.0)
            await asyncio.sleep(5.0)  # the arms are at rest
            plain = (await robot.play("mine")).seconds
            slow = (await robot.play("mine", speed=0.5)).seconds
            long = (await robot.play("mine", duration=3.0)).seconds
            assert slow - plain == pytest.approx(1.0, abs=0.1)
            assert long - plain == pytest.approx(2.0, abs=0.1)

    tell(frames, story)


@pytest.mark.moves
def test_a_playback_can_be_watched_to_its_end(wire: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            await teach(robot, "mine", 1.0)
            playing = robot.play("mine")
            seen = [progress async for progress in playing]
            phases = [phase for phase, _ in itertools.groupby(p.phase for p in seen)]
            approach = [] if one.has_services else [Phase.APPROACH]  # services do not tell it
            seen_phases = [*approach, Phase.PLAYING, Phase.RETURN]
            shown = [p for p in phases if p is not Phase.NONE]
            assert shown[-len(seen_phases) :] == seen_phases
            playing_part = [p.fraction for p in seen if p.phase is Phase.PLAYING]
            assert playing_part == sorted(playing_part)
            assert playing_part[-1] > 0.95
            assert playing.done

    tell(wire, story)


# ---- stopping -----------------------------------------------------------------------------------


@pytest.mark.moves
def test_stop_during_a_loop_leaves_a_usable_robot(frames: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            await teach(robot, "mine")
            playing = await robot.start("mine", loop=True)
            await asyncio.sleep(4.0)
            assert not playing.done
            await playing.stop()
            assert not (await playing).completed
            assert robot.state is not None
            assert robot.state.phase is Phase.NONE
            await teach(robot, "again")
            assert (await robot.play("again")).completed

    tell(frames, story)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_giving_up_waiting_for_a_playback_stops_the_robot(wire: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            await teach(robot, "mine", 2.0)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.5):
                    await robot.play("mine")
            await asyncio.sleep(5.0)
            assert one.world.state().phase is Phase.NONE
            assert one.world.state().stopped_early

    tell(wire, story)


@pytest.mark.each_once("wire", "how")
@pytest.mark.simulated("a bad network")
@pytest.mark.moves
@pytest.mark.parametrize("how", ["play", "start"])
def test_giving_up_while_the_robot_begins_stops_it_too(wire: str, how: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            await teach(robot, "mine", 2.0)

            async def play() -> None:
                await (robot.play("mine") if how == "play" else robot.start("mine"))

            task = asyncio.create_task(play())
            while one.world.phase is not Phase.APPROACH:
                await asyncio.sleep(0.001)
            task.cancel()  # the robot moves, and its answer is still on the way
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(5.0)
            assert one.world.state().phase is Phase.NONE
            assert one.world.state().stopped_early

    tell(wire, story, impairment=Impairment(delay_s=0.02))


@pytest.mark.simulated("a second client beside this wire")
@pytest.mark.moves
def test_giving_up_before_anything_was_asked_leaves_others_alone(frames: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot, one.bystander() as other:
            await teach(robot, "mine", 2.0)
            playing = await other.start("mine")
            task = asyncio.create_task(robot.start("mine"))
            await asyncio.sleep(0)
            task.cancel()  # the robot was not even asked which motions it has
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await playing).completed

    tell(frames, story)


@pytest.mark.moves
def test_stop_during_a_playback_leaves_a_usable_robot(wire: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            await teach(robot, "mine", 2.0)
            playing = await robot.start("mine")
            await asyncio.sleep(1.0)
            assert not playing.done
            await playing.stop()
            assert not (await playing).completed
            assert robot.state is not None
            assert robot.state.phase is Phase.NONE
            await teach(robot, "again")
            assert (await robot.play("again")).completed

    tell(wire, story)


@pytest.mark.moves
def test_a_loop_counts_its_rounds(frames: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            await teach(robot, "mine", 1.0)
            playing = robot.play("mine", loop=True)
            async for progress in playing:
                if progress.round == 3:
                    break
            assert 0.0 <= progress.fraction <= 1.0
            await playing.stop()

    tell(frames, story)


@pytest.mark.moves
def test_stop_is_allowed_at_any_time_and_any_number_of_times(wire: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            for _ in range(3):
                await robot.stop()
            await teach(robot, "mine")
            playing = await robot.start("mine")
            await asyncio.gather(robot.stop(), robot.stop(), robot.stop())
            assert not (await playing).completed
            await robot.stop()

    tell(wire, story)


@pytest.mark.simulated("a second client beside this wire")
@pytest.mark.moves
def test_anybody_may_stop_a_teaching_and_the_arms_hold(wire: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as teacher, one.bystander() as bystander:
            with pytest.raises(RefusedError, match="ended by another client") as caught:
                async with teacher.teach("mine") as take:
                    await asyncio.sleep(1.0)
                    await bystander.stop()
                    assert not one.world.body.soft
                    await asyncio.sleep(3600)  # the teacher is told at once
            assert caught.value.code == Code.NOT_TEACHING
            assert (await teacher.actions()).taught == ()
            if "save" in teacher.abilities:
                assert "robot.save" in caught.value.remedy
                await teacher.save("kept", take.track.duration_s)

    tell(wire, story)


@pytest.mark.simulated("a second client beside this wire")
@pytest.mark.moves
def test_a_playback_that_somebody_else_stops_is_told(wire: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot, one.bystander() as bystander:
            await teach(robot, "mine", 4.0)
            playing = await robot.start("mine")
            await asyncio.sleep(2.5)
            await bystander.stop()
            assert not (await playing).completed
            assert (await robot.play("mine")).completed

    tell(wire, story)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_a_play_overtaken_by_a_stop_does_not_start(wire: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            await teach(robot, "mine")
            playing = robot.play("mine")
            await asyncio.sleep(0)
            await robot.stop()
            (outcome,) = await asyncio.gather(playing, return_exceptions=True)
            if isinstance(outcome, RefusedError):
                assert outcome.code == Code.SUPERSEDED
            else:
                assert isinstance(outcome, PlayReport)
                assert not outcome.completed
            assert one.world.state().phase in (Phase.NONE, Phase.RETURN)

    tell(wire, story)


# ---- tracks that are on our side ----------------------------------------------------------------


async def take_of(robot: G1, hand: str = "wave", seconds: float = 3.0) -> Track:
    """Teach by hand, and return what was recorded here; the arms are at rest again."""
    async with robot.teach(hand) as take:
        await robot.move_by_hand(hand, seconds)
        await asyncio.sleep(seconds)
    await asyncio.sleep(5.0)
    return take.track


def raised(seconds: float = 4.0) -> Track:
    """Both elbows go up and down once."""
    times_s = np.arange(round(seconds * 100) + 1) / 100.0
    elbow = 1.0 - 0.6 * np.sin(np.pi * times_s / seconds)
    names = ("left_elbow_joint", "right_elbow_joint")
    return Track(times_s=times_s, joints_rad=np.column_stack([elbow, elbow]), names=names)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
@pytest.mark.parametrize(("hand", "rate_hz"), [("wave", 250.0), ("clap", 50.0), ("drum", 500.0)])
def test_a_take_is_streamed_back_closely(frames: str, hand: str, rate_hz: float) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            take = await take_of(robot, hand)
            played = Recorder()
            forget = robot.on_state(lambda s: played.add(s) if s.phase is Phase.PLAYING else None)
            report = await robot.play_track(
                take, rate_hz=rate_hz, force=True
            )  # hands that clap meet
            forget()
            assert report.completed
            assert report.rate_hz == pytest.approx(rate_hz)
            assert report.missed == 0
            apart = deviation(take, played.track(), NAMES)
            assert apart.rms_rad < 0.02
            assert apart.max_rad < 0.1
            assert not one.world.state().playing

    tell(frames, story)


@pytest.mark.moves
def test_a_stream_can_be_watched_and_slowed_down(frames: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            streaming = robot.play_track(raised(1.0), speed=0.5)
            seen = [progress async for progress in streaming]
            phases = [phase for phase, _ in itertools.groupby(p.phase for p in seen)]
            shown = [phase for phase in phases if phase is not Phase.NONE]
            assert shown == [Phase.APPROACH, Phase.PLAYING, Phase.RETURN]
            during = [p.fraction for p in seen if p.phase is Phase.PLAYING]
            assert during == sorted(during)
            assert during[-1] > 0.95
            lasted_s = [p.state.time_us / 1e6 for p in seen if p.phase is Phase.PLAYING]
            assert lasted_s[-1] - lasted_s[0] == pytest.approx(2.0, abs=0.1)
            assert (await streaming.wait()).completed

    tell(frames, story)


@pytest.mark.moves
def test_a_stream_starts_without_a_jump_wherever_the_arms_are(frames: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            first = robot.play_track(raised(1.0))
            async for progress in first:
                if progress.phase is Phase.PLAYING and progress.fraction > 0.5:
                    break
            await robot.stop()  # in the middle, and no waiting for the arms to come home
            poses: list[tuple[float, ...]] = []
            forget = robot.on_state(lambda state: poses.append(state.joints_rad))
            assert (await robot.play_track(raised(4.0))).completed
            forget()
            assert np.abs(np.diff(poses, axis=0)).max() < 0.04  # 2 rad/s at 50 Hz
            assert np.abs(np.array(poses[-1]) - G1_REST_RAD).max() < 0.1
            assert not (await first).completed

    tell(frames, story)


@pytest.mark.each_once("streams", "how")
@pytest.mark.simulated("a second client beside this wire")
@pytest.mark.moves
@pytest.mark.parametrize("how", ["handle", "robot", "bystander", "cancel"])
@pytest.mark.parametrize("streams", [*FRAMES, "dds"])
def test_a_stream_that_is_stopped_leaves_a_usable_robot(streams: str, how: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot, one.bystander() as other:
            streaming = robot.play_track(raised())
            await streaming.started()
            await asyncio.sleep(1.0)
            assert one.world.state().phase is Phase.PLAYING
            if how == "cancel":
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await streaming
            else:
                stops = {"handle": streaming.stop, "robot": robot.stop, "bystander": other.stop}
                await stops[how]()
                assert not (await streaming).completed
            await asyncio.sleep(5.0)
            assert one.world.state().phase is Phase.NONE
            if streams != "dds":  # whose robot only sees that somebody lets go softly
                assert one.world.state().stopped_early
            await teach(other, "again", 0.3)
            assert (await robot.play("again")).completed
            assert (await robot.play_track(raised(1.0))).completed

    tell(streams, story)


@pytest.mark.simulated("a bad network")
@pytest.mark.moves
def test_when_the_network_is_cut_the_arms_go_home_and_the_client_is_told(frames: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            with pytest.raises(PeerLostError):
                await robot.play_track(raised(6.0))
            assert one.world.stopped_early
            await asyncio.sleep(3.0)
            assert one.world.phase is Phase.NONE
            assert np.abs(one.world.body.setpoint_rad - G1_REST_RAD).max() < 1e-6

    tell(frames, story, impairment=Impairment(cut_after_s=3.0))


@pytest.mark.simulated("a bad network")
@pytest.mark.moves
def test_a_stream_over_a_bad_network_arrives_and_ends_well(frames: str) -> None:
    bad = Impairment(loss=0.05, duplicate=0.05, reorder=0.1, corrupt=0.01, delay_s=0.01, seed=3)

    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            poses: list[tuple[float, ...]] = []
            robot.on_state(lambda state: poses.append(state.joints_rad))
            assert (await robot.play_track(raised())).completed
            lowest = np.array(poses)[:, G1_29.names.index("left_elbow_joint")].min()
            assert lowest == pytest.approx(0.4, abs=0.1)
            assert np.abs(np.diff(poses, axis=0)).max() < 0.1

    tell(frames, story, impairment=bad)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_an_unsafe_track_is_refused_before_anything_is_sent(frames: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            jump = Track(
                times_s=np.array([0.0, 0.02, 1.0]),
                joints_rad=np.array([[1.0], [0.0], [0.0]]),
                names=("left_elbow_joint",),
            )
            notices = len(one.world.notices)
            with pytest.raises(UnsafeMotionError):
                robot.play_track(jump)
            with pytest.raises(UnsafeMotionError):
                await robot.store_track(jump, "jump")
            for speed in (0.0, float("nan"), 5.0):
                with pytest.raises(BadRequestError):
                    robot.play_track(raised(), speed=speed)
            await asyncio.sleep(1.0)
            assert len(one.world.notices) == notices
            assert (await robot.actions()).taught == ()

    tell(frames, story)


@pytest.mark.simulated("a robot in another mode")
@pytest.mark.moves
@pytest.mark.parametrize("mode", [Mode.DAMP, Mode.LOCK_STAND])
def test_without_a_balanced_standing_nothing_is_streamed(frames: str, mode: Mode) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            with pytest.raises(RefusedError) as caught:
                await robot.play_track(raised())
            assert caught.value.code == Code.WRONG_STATE

    tell(frames, story, mode)


@pytest.mark.simulated("a second client beside this wire")
@pytest.mark.moves
def test_while_one_client_streams_another_is_busy_and_does_not_disturb(frames: str) -> None:
    async def story(one: Rig) -> None:
        one.fill(1)
        async with one.connect() as robot, one.bystander() as other:
            streaming = robot.play_track(raised())
            await streaming.started()
            attempts = (
                other.play_track(raised()),
                robot.play_track(raised()),
                other.play("stored 0"),
                teach(other, "theirs"),
                teach(robot, "mine"),
            )
            for attempt in attempts:
                with pytest.raises(RefusedError) as caught:
                    await attempt
                assert caught.value.code == Code.BUSY
            assert (await streaming).completed

    tell(frames, story)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_a_stream_overtaken_by_a_stop_does_not_start(frames: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            streaming = robot.play_track(raised())
            await asyncio.sleep(0)
            await robot.stop()
            (outcome,) = await asyncio.gather(streaming, return_exceptions=True)
            assert isinstance(outcome, RefusedError)
            assert outcome.code == Code.SUPERSEDED
            assert one.world.phase is Phase.NONE

    tell(frames, story)


@pytest.mark.moves
def test_a_stored_track_is_listed_and_played_as_closely_as_it_says(frames: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            compressed = await robot.store_track(raised(), "raise")
            (action,) = (await robot.actions()).taught
            assert action.name == "raise"
            assert action.duration_s == pytest.approx(4.0, abs=0.01)
            assert len(compressed.keyframes) <= 20
            assert compressed.max_error_rad < 0.05
            played = Recorder()
            forget = robot.on_state(lambda s: played.add(s) if s.phase is Phase.PLAYING else None)
            assert (await robot.play("raise")).completed
            forget()
            apart = deviation(raised(), played.track(), ["left_elbow_joint", "right_elbow_joint"])
            assert apart.rms_rad < 0.05
            with pytest.raises(RefusedError) as caught:
                await robot.store_track(raised(), "raise")
            assert caught.value.code == Code.NAME_EXISTS
            with pytest.raises(BadRequestError):
                await robot.store_track(raised(), "")

    tell(frames, story)


@pytest.mark.moves
def test_a_wire_that_cannot_stream_or_store_a_track_says_which_can() -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            with pytest.raises(UnsupportedError, match="stream") as caught:
                robot.play_track(raised())
            assert "udp://" in caught.value.remedy
            with pytest.raises(UnsupportedError, match="store") as caught:
                await robot.store_track(raised(), "raise")
            assert "udp://" in caught.value.remedy

    tell("services", story)


# ---- however a teaching block ends --------------------------------------------------------------


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_a_failed_block_saves_nothing_and_the_arms_hold(wire: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            with pytest.raises(KeyError):
                async with robot.teach("mine"):
                    await asyncio.sleep(0.5)
                    raise KeyError("the teacher's own bug")
            assert not one.world.body.soft
            assert (await robot.actions()).taught == ()

    tell(wire, story)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_a_cancelled_block_saves_nothing_and_the_arms_hold(wire: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:

            async def teaching() -> None:
                async with robot.teach("mine"):
                    await asyncio.sleep(3600)

            task = asyncio.create_task(teaching())
            await asyncio.sleep(1.0)
            assert one.world.body.soft
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not one.world.body.soft
            assert (await robot.actions()).taught == ()

    tell(wire, story)


@pytest.mark.each_once("wire", "turns")
@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
@pytest.mark.parametrize("turns", range(12))
def test_a_block_cancelled_twice_at_any_moment_still_ends_with_holding_arms(
    wire: str, turns: int
) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:

            async def teaching() -> None:
                async with robot.teach("mine"):
                    await asyncio.sleep(0.2)

            task = asyncio.create_task(teaching())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0.5)
            assert not one.world.body.soft

    tell(wire, story)


@pytest.mark.moves
def test_a_discarded_take_is_not_saved_but_stays_on_our_side(wire: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            async with robot.teach("mine") as take:
                await asyncio.sleep(0.5)
                take.discard()
            assert not take.saved
            assert len(take.track) > 0.4 * one.recording_hz
            assert (await robot.actions()).taught == ()

    tell(wire, story)


@pytest.mark.simulated("a bad network")
@pytest.mark.moves
def test_when_the_network_is_cut_while_teaching_the_arms_hold_again_by_themselves(
    wire: str,
) -> None:
    async def story(one: Rig) -> None:
        with pytest.raises(PeerLostError):
            async with one.connect() as robot, robot.teach("mine"):
                await asyncio.sleep(3600)
        assert one.world.body.soft  # nobody could tell the robot
        await asyncio.sleep(one.holds_after_s - 4.5)
        assert one.world.body.soft
        await asyncio.sleep(2.0)
        assert not one.world.body.soft
        await asyncio.sleep(14.0)  # the network is back, and the robot has forgotten its client
        async with one.connect() as robot:
            assert (await robot.actions()).taught == ()

    tell(wire, story, impairment=Impairment(cut_after_s=1.0, cut_for_s=14.0))


# ---- a robot that dies --------------------------------------------------------------------------


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_a_robot_that_dies_while_teaching_interrupts_the_block_within_three_seconds(
    wire: str,
) -> None:
    async def story(one: Rig) -> None:
        loop = asyncio.get_running_loop()
        async with one.connect() as robot:
            with pytest.raises(PeerLostError, match="state is unknown") as caught:
                async with robot.teach("mine") as take:
                    await asyncio.sleep(1.0)
                    died = loop.time()
                    await one.simulator.close()
                    await asyncio.sleep(3600)
            assert loop.time() - died <= 3.0
            assert "Look at the robot" in caught.value.remedy
            assert len(take.track) > 0.8 * one.recording_hz  # what came until then is not lost
            current = asyncio.current_task()
            assert current is not None
            assert current.cancelling() == 0

    tell(wire, story)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_a_robot_that_dies_just_before_the_block_ends_is_reported(wire: str) -> None:
    async def story(one: Rig) -> None:
        loop = asyncio.get_running_loop()
        async with one.connect() as robot:
            with pytest.raises(PeerLostError):
                async with robot.teach("mine"):
                    await asyncio.sleep(1.0)
                    died = loop.time()
                    await one.simulator.close()
            assert loop.time() - died <= 3.0

    tell(wire, story)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_a_robot_that_dies_fails_playbacks_requests_and_state_streams(wire: str) -> None:
    async def story(one: Rig) -> None:
        loop = asyncio.get_running_loop()
        # The stop that leaving the block owes to the playback cannot be sent either.
        leaving = pytest.raises(PeerLostError) if wire != "memory" else nullcontext()
        with leaving:
            await lose(one, loop)

    async def lose(one: Rig, loop: asyncio.AbstractEventLoop) -> None:
        async with one.connect() as robot:
            await teach(robot, "mine", 1.0)
            playing = await robot.start("mine")

            async def watch() -> None:
                async for _ in robot.states():
                    pass

            died = loop.time()
            await one.simulator.close()
            outcomes = await asyncio.gather(
                playing.wait(), robot.actions(), watch(), return_exceptions=True
            )
            assert [type(outcome) for outcome in outcomes] == [PeerLostError] * 3
            assert loop.time() - died <= 3.0
            with pytest.raises(PeerLostError):
                await robot.actions()
            with pytest.raises(PeerLostError):
                await anext(aiter(robot.states()))

    tell(wire, story)


@pytest.mark.simulated("a look inside the robot")
def test_connecting_to_nobody_gives_up_in_time_and_says_what_to_do(wire: str) -> None:
    async def story(one: Rig) -> None:
        loop = asyncio.get_running_loop()
        await one.simulator.close()
        began = loop.time()
        with pytest.raises(NoAnswerError, match="no robot answered") as caught:
            async with one.connect(timeout=2.0):
                pass
        if one.wire == "webrtc":  # a closed port says so at once
            assert loop.time() - began < 2.1
        else:
            assert loop.time() - began == pytest.approx(2.0, abs=0.1)
        assert "sim://" in caught.value.remedy
        assert "rote sim" in worded(caught.value.remedy)

    tell(wire, story)


# ---- refusals -----------------------------------------------------------------------------------


@pytest.mark.each_once("wire", "name")
@pytest.mark.moves
@pytest.mark.parametrize(
    "name", ["", "  ", "x" * 32, "é" * 16, "a\0b", "tab\there", " edge", "\x7f"]
)
def test_a_bad_name_is_refused_before_anything_is_sent(wire: str, name: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            with pytest.raises(BadRequestError, match="name"):
                robot.teach(name)
            with pytest.raises(BadRequestError, match="name"):
                robot.play(name)

    tell(wire, story)


@pytest.mark.each_once("wire", "name")
@pytest.mark.moves
@pytest.mark.parametrize("name", ["é" * 15 + "x", "手" * 10, "x" * 31, "touch me not", "a-b'c\"d"])
def test_any_other_name_of_31_bytes_works(wire: str, name: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            await teach(robot, name, 0.3)
            assert (await robot.actions()).taught[0].name == name
            assert (await robot.play(name)).completed

    tell(wire, story)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_a_taken_name_and_a_full_store_are_refused_before_the_arms_get_soft(wire: str) -> None:
    async def story(one: Rig) -> None:
        one.fill(15)
        async with one.connect() as robot:
            for name, code in (("stored 3", Code.NAME_EXISTS), ("sixteenth", Code.STORE_FULL)):
                with pytest.raises(RefusedError) as caught:
                    async with robot.teach(name):
                        raise AssertionError("the block must not be entered")
                assert caught.value.code == code
                assert caught.value.remedy
            assert "arms are soft" not in " ".join(n.message for n in one.world.notices)
            assert len((await robot.actions()).taught) == 15

    tell(wire, story)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_an_action_is_replaced_only_where_that_was_said(wire: str) -> None:
    async def story(one: Rig) -> None:
        one.fill(15)
        async with one.connect() as robot:
            with pytest.raises(RefusedError) as caught:
                await robot.check_teachable("stored 3")
            assert "overwrite=True" in caught.value.remedy
            async with robot.teach("stored 3", overwrite=True):
                await asyncio.sleep(1.0)
            taught = (await robot.actions()).taught
            assert len(taught) == 15
            (replaced,) = [each for each in taught if each.name == "stored 3"]
            assert 0.9 < replaced.duration_s < 2.0  # it was 0.5 s before
            assert (await robot.play("stored 3")).completed

    tell(wire, story)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_a_stored_track_replaces_an_action_only_where_that_was_said(frames: str) -> None:
    async def story(one: Rig) -> None:
        one.fill(1)
        async with one.connect() as robot:
            with pytest.raises(RefusedError) as caught:
                await robot.store_track(raised(), "stored 0")
            assert "overwrite=True" in caught.value.remedy
            await robot.store_track(raised(), "stored 0", overwrite=True)
            (action,) = (await robot.actions()).taught
            assert action.duration_s == pytest.approx(4.0, abs=0.01)

    tell(frames, story)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_an_action_that_the_robot_has_under_an_odd_name_is_played(wire: str) -> None:
    async def story(one: Rig) -> None:
        one.fill(1)
        one.world.store.rename("stored 0", "a/b\u202e")
        async with one.connect() as robot:
            assert [each.name for each in (await robot.actions()).taught] == ["a/b\u202e"]
            assert (await robot.play("a/b\u202e")).completed

    tell(wire, story)


@pytest.mark.each_once("wire", "name")
@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
@pytest.mark.parametrize("name", ["a\nb", "a\u2028b", "a\u202eb", "a\u2069b", "a/b", "a\\b"])
def test_a_new_name_that_could_mislead_is_refused_before_the_robot_is_asked(
    wire: str, name: str
) -> None:
    async def story(one: Rig) -> None:
        one.fill(1)
        async with one.connect() as robot:
            with pytest.raises(BadRequestError, match="cannot be used"):
                async with robot.teach(name):
                    raise AssertionError("the arms are not soft")
            if "rename" in robot.abilities:
                with pytest.raises(BadRequestError, match="cannot be used"):
                    await robot.rename("stored 0", name)
            if "store" in robot.abilities:
                with pytest.raises(BadRequestError, match="cannot be used"):
                    await robot.store_track(raised(), name)
            assert [each.name for each in (await robot.actions()).taught] == ["stored 0"]

    tell(wire, story)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_a_save_that_fails_at_the_end_can_be_repeated_and_loses_nothing(frames: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            with pytest.raises(RefusedError) as caught:
                async with robot.teach("stored 0") as take:
                    await asyncio.sleep(1.0)
                    one.fill(1)  # somebody else was quicker
            assert caught.value.code == Code.NAME_EXISTS
            assert not take.saved
            assert len(take.track) > 90
            await robot.save("other", take.track.duration_s)
            assert [a.name for a in (await robot.actions()).taught] == ["stored 0", "other"]

    tell(frames, story)


@pytest.mark.each_once("wire", "mode")
@pytest.mark.simulated("a robot in another mode")
@pytest.mark.moves
@pytest.mark.parametrize("mode", [Mode.ZERO_TORQUE, Mode.DAMP, Mode.LOCK_STAND])
def test_without_a_balanced_standing_nothing_is_taught_or_played(wire: str, mode: Mode) -> None:
    async def story(one: Rig) -> None:
        one.fill(1)
        async with one.connect() as robot:
            for attempt in (teach(robot, "mine"), robot.play("stored 0")):
                with pytest.raises(RefusedError) as caught:
                    await attempt
                assert caught.value.code == Code.WRONG_STATE
            findings = await robot.preflight()
            assert findings[0].severity is Severity.ERROR
            assert "rote modes stand" in worded(findings[0].remedy)
            assert (await robot.modes.stand()).balanced
            await asyncio.sleep(5.0)  # arms that hung free go back to rest
            await check_healthy(one, robot)
            await teach(robot, "mine")

    tell(wire, story, mode)


@pytest.mark.simulated("a robot in another mode")
@pytest.mark.moves
def test_damp_interrupts_everything(wire: str) -> None:
    async def story(one: Rig) -> None:
        one.fill(1)
        async with one.connect() as robot:
            playing = await robot.start("stored 0", loop="tempo" in robot.abilities)
            assert (await robot.modes.damp(yes=True)).id == Mode.DAMP
            await playing
            assert not (await robot.modes.read()).balanced

    tell(wire, story)


@pytest.mark.each_once("wire", "how")
@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
@pytest.mark.parametrize(
    "how",
    [
        {"speed": 0.0},
        {"speed": -1.0},
        {"speed": float("nan")},
        {"speed": 100.0},
        {"duration": 0.0},
        {"duration": -1.0},
        {"duration": 180.5},
        {"duration": float("nan")},
        {"duration": float("inf")},
        {"speed": 1.0, "duration": 1.0},
        {"interpolation": "wavy"},
    ],
)
def test_an_impossible_tempo_is_refused(wire: str, how: dict[str, float]) -> None:
    async def story(one: Rig) -> None:
        one.fill(1)
        async with one.connect() as robot:
            with pytest.raises(BadRequestError):
                robot.play("stored 0", **how)  # type: ignore[arg-type]
            assert one.world.state().phase is Phase.NONE

    tell(wire, story)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_a_playback_that_would_be_too_fast_is_refused_and_nothing_moves(frames: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            await teach(robot, "mine", 3.0)
            await asyncio.sleep(3.0)
            with pytest.raises(RefusedError) as caught:
                await robot.play("mine", duration=0.05)
            assert caught.value.code == Code.UNSAFE
            assert one.world.state().phase is Phase.NONE

    tell(frames, story)


@pytest.mark.moves
def test_an_unknown_action_is_refused(wire: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            with pytest.raises(RefusedError) as caught:
                await robot.play("nothing")
            assert caught.value.code == Code.NO_SUCH_ACTION

    tell(wire, story)


@pytest.mark.simulated("a look inside the robot")
@pytest.mark.moves
def test_what_the_wire_cannot_do_says_so_and_names_the_wire_that_can(wire: str) -> None:
    async def story(one: Rig) -> None:
        one.fill(1)
        async with one.connect() as robot:
            assert {"list", "teach", "play", "stop", "mode", "states"} <= robot.abilities
            attempts: dict[str, Callable[[], Awaitable[object]]] = {
                "rename": lambda: robot.rename("stored 0", "b"),
                "delete": lambda: robot.delete("b"),
                "presets": lambda: robot.perform(99),
                "overwrite": lambda: robot.teach("b", overwrite=True).__aenter__(),
                "tempo": lambda: robot.play("b", speed=0.5),
                "save": lambda: robot.save("b", 1.0),
            }
            for ability in set(attempts) - robot.abilities:
                with pytest.raises(UnsupportedError) as caught:
                    await attempts[ability]()
                assert "://" in caught.value.remedy or ability == "save"

    tell(wire, story)


# ---- two clients at once ------------------------------------------------------------------------


@pytest.mark.simulated("a second client beside this wire")
@pytest.mark.moves
def test_while_one_client_teaches_another_may_look_but_not_touch(wire: str) -> None:
    async def story(one: Rig) -> None:
        one.fill(1)
        async with one.connect() as teacher, one.bystander() as other:
            async with teacher.teach("mine"):
                await asyncio.sleep(0.5)
                assert len((await other.actions()).taught) == 1
                for attempt in (teach(other, "theirs"), other.play("stored 0")):
                    with pytest.raises(RefusedError) as caught:
                        await attempt
                    assert caught.value.code == Code.BUSY
                assert one.world.body.soft
                assert [f.severity for f in await other.preflight()] == [Severity.WARNING]
            assert [a.name for a in (await other.actions()).taught] == ["stored 0", "mine"]

    tell(wire, story)


@pytest.mark.simulated("a look inside the robot")
def test_a_seventeenth_client_may_stop_the_robot_and_start_nothing(frames: str) -> None:
    async def story(one: Rig) -> None:
        leave = asyncio.Event()

        async def stay() -> None:
            async with one.connect():
                await leave.wait()

        async with one.connect() as first, asyncio.TaskGroup() as group:
            await teach(first, "wave", 5.0)
            for _ in range(15):
                group.create_task(stay())
            while one.simulator.clients < 16:
                await asyncio.sleep(0.01)
            for _ in range(6):  # more than there are spare places: the oldest makes room
                group.create_task(stay())
                await asyncio.sleep(0.1)
            assert one.simulator.spare_count == 6
            playing = first.play("wave")
            await asyncio.sleep(2.5)
            async with one.connect() as robot:
                with pytest.raises(RefusedError, match="too many are connected") as caught:
                    async with robot.teach("mine"):
                        pass
                assert caught.value.code == Code.BUSY
                before = one.world.phase
                await robot.stop()
                assert (before, one.world.phase) == (Phase.PLAYING, Phase.RETURN)
            assert not (await playing).completed
            leave.set()
        await asyncio.sleep(0.1)
        async with one.connect() as robot:
            await check_healthy(one, robot)
            await teach(robot, "mine")

    tell(frames, story)


@pytest.mark.simulated("a look inside the robot")
def test_a_client_that_leaves_frees_its_place_at_once(wire: str) -> None:
    async def story(one: Rig) -> None:
        for _ in range(3 if one.has_services else 18):  # frames have 16 places, WebRTC one
            async with one.connect() as robot:
                await robot.actions()
        await asyncio.sleep(0.1)
        assert one.simulator.clients == 0

    tell(wire, story)


# ---- looking ------------------------------------------------------------------------------------


@pytest.mark.moves
def test_states_arrive_fifty_times_a_second_and_twice_as_often_while_recording(wire: str) -> None:
    async def count(robot: G1) -> int:
        seen: list[RobotState] = []
        forget = robot.on_state(seen.append)
        await asyncio.sleep(2.0)
        forget()
        assert all(len(state.joints_rad) == 29 for state in seen)
        return len(seen)

    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            assert await count(robot) == pytest.approx(100, abs=2)
            async with robot.teach("mine"):
                assert await count(robot) == pytest.approx(2 * one.recording_hz, abs=3)

    tell(wire, story, services_hz=None)


def test_a_slow_reader_of_states_misses_the_oldest_and_gets_the_newest(wire: str) -> None:
    async def story(one: Rig) -> None:
        async with one.connect() as robot:
            states = robot.states()
            first = await anext(states)
            await asyncio.sleep(15.0)  # more states than are kept
            second = await anext(states)
            assert second.time_us - first.time_us > 9_000_000
            await states.aclose()  # type: ignore[attr-defined]

    tell(wire, story, services_hz=None)
