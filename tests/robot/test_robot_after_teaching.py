"""Teach, then play, on a robot with the timings of a real G1: it rests first, and rote waits."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

import pytest

import virtual
from rig import SERVICES_HZ, Rig, client_of, rig
from rote import messages as m
from rote.cli.wording import worded
from rote.errors import BadRequestError, CautionError, NotBegunError, NotSavedError, RefusedError
from rote.findings import FindingKind
from rote.messages import Phase
from rote.robot.api_values import Waiting, Waits
from rote.robot.arm_requests import REPORT_LAG_S
from rote.robot.message_robot import G1
from rote.robot.motion_watch import MAX_OVERHEAD_S, MotionWatch
from rote.robot.take import Lack, Take

Story = Callable[[Rig, G1], Awaitable[None]]


def tell(story: Story, *quirks: str, wire: str = "services") -> None:
    async def run() -> None:
        own = rig(wire, polite=False, quirks=quirks, services_hz=SERVICES_HZ)
        async with own as one, one.connect() as robot:
            await story(one, robot)

    virtual.run(run())


async def teach(robot: G1, name: str, seconds: float = 1.0) -> Take:
    async with robot.teach(name) as take:
        await robot.move_by_hand("wave", seconds)
        await asyncio.sleep(seconds)
    return take


def test_what_was_taught_is_played_at_once_and_the_wait_is_told() -> None:
    async def story(one: Rig, robot: G1) -> None:
        told: list[Waiting | None] = []
        robot.on_waiting(told.append)
        take = await teach(robot, "hello")
        assert take.saved
        assert take.robot_s is not None
        assert (await robot.play("hello")).completed
        begun, ended = told
        assert begun is not None
        assert (begun.why, begun.name) == (Waits.LISTED, "hello")
        assert ended is None

    tell(story)


def test_a_motion_that_is_refused_because_the_arms_come_to_rest_is_asked_for_again() -> None:
    async def story(one: Rig, robot: G1) -> None:
        told: list[Waiting | None] = []
        robot.on_waiting(told.append)
        one.fill(1)
        async with robot.teach("hello") as take:
            await asyncio.sleep(0.5)
            take.discard()
        with pytest.raises(RefusedError) as caught:
            await client_of(robot).ask(m.PlayAction(action=1, name="stored 0"))
        assert caught.value.code == 7400
        assert (await robot.play("stored 0")).completed
        assert [each.why for each in told if each] == [Waits.RELEASE]

    tell(story)


def test_one_teaching_follows_another() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with robot.teach("first") as take:
            await asyncio.sleep(0.5)
            take.discard()
        assert (await teach(robot, "second")).saved

    tell(story)


def test_arms_that_another_client_teaches_are_refused_as_soon_as_that_is_certain() -> None:
    """A teaching that has just ended is still reported for a while."""

    async def story(one: Rig, robot: G1) -> None:
        one.fill(1)
        loop = asyncio.get_running_loop()
        async with one.bystander() as other, other.teach("theirs"):
            await asyncio.sleep(0.5)
            began = loop.time()
            with pytest.raises(RefusedError) as caught:
                await robot.play("stored 0")
            assert caught.value.code == 7400
            assert loop.time() - began < REPORT_LAG_S + 1.0

    tell(story)


def test_arms_that_another_client_plays_are_refused_without_a_wait() -> None:
    async def story(one: Rig, robot: G1) -> None:
        one.fill(1)
        loop = asyncio.get_running_loop()
        async with one.bystander() as other:
            await other.start("stored 0")
            await asyncio.sleep(0.5)
            began = loop.time()
            with pytest.raises(RefusedError) as caught:
                await robot.play("stored 0")
            assert caught.value.code == 7400
            assert loop.time() - began < 1.0

    tell(story)


@pytest.mark.each_once("arm_state_s", "wait_s")
@pytest.mark.parametrize("arm_state_s", [0.1, 0.3, 3.0])
@pytest.mark.parametrize(
    "wait_s",
    [
        0.0,
        pytest.param(0.02, marks=pytest.mark.soak),
        0.5,
        pytest.param(1.0, marks=pytest.mark.soak),
    ],
)
def test_another_client_plays_right_after_a_teaching(arm_state_s: float, wait_s: float) -> None:
    """The first report of the arms has not arrived yet, or still shows the teaching."""

    async def story(one: Rig, robot: G1) -> None:
        firmware = one.world.firmware
        behaviour = replace(firmware.behaviour, arm_state_s=arm_state_s)
        one.world.firmware = replace(firmware, behaviour=behaviour)
        one.fill(1)
        async with robot.teach("hello") as take:
            await asyncio.sleep(0.6)
            take.discard()
        async with one.connect() as second:
            await asyncio.sleep(wait_s)
            assert (await second.play("stored 0")).completed

    tell(story)


def test_whoever_gives_up_while_the_list_is_awaited_learns_that_the_action_is_there() -> None:
    async def story(one: Rig, robot: G1) -> None:
        takes: list[Take] = []

        async def work() -> None:
            async with robot.teach("hello") as take:
                takes.append(take)
                await asyncio.sleep(0.5)

        task = asyncio.create_task(work())
        waiting = asyncio.Event()
        robot.on_waiting(lambda _: waiting.set())
        await waiting.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        (take,) = takes
        assert take.on_robot
        assert not take.saved
        assert "hello" in {entry.name for entry in one.world.store.entries()}

    tell(story)


def test_whoever_gives_up_while_it_is_taught_leaves_nothing_on_the_robot() -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0), robot.teach("hello") as take:
                await asyncio.sleep(3600)
        assert not take.on_robot
        assert not one.world.store.entries()

    tell(story)


def test_a_recording_that_the_robot_does_not_list_is_not_called_saved() -> None:
    async def story(one: Rig, robot: G1) -> None:
        robot.on_waiting(lambda _: one.world.obey("somebody", m.DeleteAction("hello")))
        with pytest.raises(NotSavedError) as caught:
            async with robot.teach("hello") as take:
                await asyncio.sleep(1.0)
        assert not take.saved
        assert take.samples
        assert "rote takes" in worded(caught.value.remedy)

    tell(story)


def test_a_robot_that_never_moves_is_told_to_stop() -> None:
    async def story(one: Rig, robot: G1) -> None:
        one.fill(1)
        playing = robot.play("stored 0")
        with pytest.raises(NotBegunError):
            await playing
        assert one.world.state().phase is Phase.NONE
        assert playing.done

    tell(story, "never-moves")


def test_a_stop_before_it_began_ends_a_playback_without_an_error() -> None:
    async def story(one: Rig, robot: G1) -> None:
        one.fill(1)
        playing = await robot.start("stored 0")
        await robot.stop()
        assert not (await playing).completed

    tell(story, "never-moves")


def test_a_full_robot_is_asked_where_somebody_insists() -> None:
    async def story(one: Rig, robot: G1) -> None:
        one.fill(15)
        with pytest.raises(CautionError, match="rote refuses") as caught:
            await robot.check_teachable("more")
        assert "--force" in worded(caught.value.remedy)
        assert not await robot.check_teachable("more", force=True)

    tell(story)


def test_an_unknown_mode_is_left_to_the_robot() -> None:
    async def story(one: Rig, robot: G1) -> None:
        assert not (await robot.modes.read()).known
        assert (await teach(robot, "hello")).saved

    tell(story, "mode-null")


def test_a_name_that_is_too_long_for_rote_is_left_to_the_robot_by_a_rename() -> None:
    async def story(one: Rig, robot: G1) -> None:
        one.fill(1)
        with pytest.raises(RefusedError) as caught:
            await robot.rename("stored 0", "x" * 40)
        assert not isinstance(caught.value, CautionError)

    tell(story)


def test_an_action_of_the_robot_with_a_long_name_is_played_once_it_is_listed() -> None:
    async def story(one: Rig, robot: G1) -> None:
        one.fill(1)
        (stored,) = one.world.store.entries()
        action = one.world.store.load(1)
        assert action is not None
        long = "the robot's own name for it, which nobody here has chosen"
        one.world.store.save(replace(action, name=long))
        with pytest.raises(BadRequestError, match="name"):
            robot.play(long)  # it may be a mistake, as long as nobody has seen it
        assert [each.name for each in (await robot.actions()).taught] == [stored.name, long]
        assert (await robot.play(long)).completed

    tell(story)


def test_start_asks_for_the_list_where_a_name_is_long() -> None:
    async def story(one: Rig, robot: G1) -> None:
        one.fill(1)
        action = one.world.store.load(1)
        assert action is not None
        one.world.store.save(replace(action, name="y" * 60))
        client, lists = client_of(robot), 0
        send = client.ask

        async def ask(command: m.Command) -> m.Reply:
            nonlocal lists
            lists += isinstance(command, m.ListActions)
            return await send(command)

        client.ask = ask  # type: ignore[method-assign]
        assert (await (await robot.start("y" * 60))).completed
        assert lists == 1
        with pytest.raises(BadRequestError, match="name"):
            await robot.start("z" * 60)

    tell(story)


@pytest.mark.parametrize(
    ("quirk", "lacks"),
    [
        ("no-lowstate", {Lack.POSITIONS}),
        ("20-slots", {Lack.JOINTS}),
        ("no-tick", {Lack.CLOCK}),
        ("lowstate-1hz", {Lack.RATE}),
        ("no-imu", set()),
    ],
)
def test_a_take_says_what_it_lacks(quirk: str, lacks: set[Lack]) -> None:
    async def story(one: Rig, robot: G1) -> None:
        assert (await teach(robot, "hello", 2.0)).lacks == lacks

    tell(story, quirk)


def test_a_take_without_a_sample_has_no_length_and_no_track() -> None:
    async def story(one: Rig, robot: G1) -> None:
        take = await teach(robot, "hello", 2.0)
        assert (take.samples, take.duration_s, take.rate_hz, take.moved) == (0, 0.0, 0.0, None)
        with pytest.raises(BadRequestError, match="at least one sample"):
            _ = take.track

    tell(story, "no-lowstate")


def test_a_robot_that_never_says_it_records_is_recorded_all_the_same() -> None:
    async def story(one: Rig, robot: G1) -> None:
        take = await teach(robot, "hello")
        assert take.samples > 0.8 * one.recording_hz

    tell(story, "no-arm-state")


def test_the_documented_frames_alone_are_enough_to_teach_and_to_play() -> None:
    async def story(one: Rig, robot: G1) -> None:
        take = await teach(robot, "hello", 2.0)
        assert take.track.duration_s == pytest.approx(2.0, abs=0.1)
        report = await robot.play("hello")
        assert report.completed
        assert report.seconds > 2.0

    tell(story, "frames-page", wire="memory")


@pytest.mark.parametrize("loop", [False, True])
def test_a_stop_returns_when_the_arms_rest_on_a_robot_without_phase_reports(loop: bool) -> None:
    async def story(one: Rig, robot: G1) -> None:
        await teach(robot, "hello", 7.0)
        playing = await robot.start("hello", loop=loop)
        await asyncio.sleep(4.0)
        assert one.world.phase is Phase.PLAYING
        stopped_at = asyncio.get_running_loop().time()
        async with asyncio.timeout(60.0):
            await playing.stop()
        assert one.world.state().phase is Phase.NONE
        assert asyncio.get_running_loop().time() - stopped_at < 10.0
        assert not (await playing).completed

    tell(story, "frames-page", wire="memory")


def test_a_stop_that_is_not_confirmed_does_not_end_the_watch_over_a_playback() -> None:
    """Arms that pause in a motion are not at rest because a stop was requested in vain."""

    async def story(one: Rig, robot: G1) -> None:
        watch = MotionWatch("pauses", loops=True)
        state = await anext(robot.states())
        state = replace(state, has_phase=False)
        watch.on_request_sent(robot.build, state, 0.0)
        watch.on_accepted(10.0, 0.0)
        moved = replace(state, joints_rad=tuple(each + 0.2 for each in state.joints_rad))
        watch.on_state(moved, 1.0)
        assert watch.begun
        watch.on_state(moved, 20.0)
        assert watch.completed is None
        watch.on_stop_confirmed(20.0)
        watch.on_state(moved, 21.9)
        assert watch.completed is None
        watch.on_state(moved, 22.1)
        assert watch.completed is False

    tell(story, wire="memory")


def test_a_robot_that_never_rests_after_a_confirmed_stop_is_reported() -> None:
    async def story(one: Rig, robot: G1) -> None:
        watch = MotionWatch("on and on", loops=True)
        state = await anext(robot.states())
        state = replace(state, has_phase=False)
        watch.on_request_sent(robot.build, state, 0.0)
        watch.on_accepted(10.0, 0.0)
        for step in range(1, 60):
            far = tuple(each + 0.2 * (step % 3) for each in state.joints_rad)
            watch.on_state(replace(state, joints_rad=far), float(step))
            if step == 10:
                watch.on_stop_confirmed(10.0)
            timeout_error = watch.timeout_error(float(step))
            assert (timeout_error is None) == (step < 10 + MAX_OVERHEAD_S)
            if timeout_error is not None:
                assert "L2+B" in str(timeout_error.remedy)
                break

    tell(story, wire="memory")


@pytest.mark.parametrize(
    ("quirk", "words"),
    [
        ("20-slots", "does not report 9 of its joints: "),
        ("lowstate-1hz", "reports its joints less than 10 times per second"),
        ("no-dq", ""),
    ],
)
def test_preflight_mentions_what_makes_a_take_poor(quirk: str, words: str) -> None:
    async def story(one: Rig, robot: G1) -> None:
        await asyncio.sleep(1.5)
        found = [each for each in await robot.preflight() if each.kind == FindingKind.STATE]
        assert [words in str(each.message) for each in found] == ([True] if words else [])

    tell(story, quirk)


@pytest.mark.parametrize("wire", ["memory", "services"])
def test_a_clock_that_never_advances_loses_no_take_and_calls_no_play_stopped(wire: str) -> None:
    async def story(one: Rig, robot: G1) -> None:
        await asyncio.sleep(0.5)
        take = await teach(robot, "hello", 2.0)
        assert take.track.duration_s == pytest.approx(2.0, abs=0.5)
        assert take.track.rate_hz > 0.8 * one.recording_hz
        assert Lack.CLOCK in take.lacks
        assert (await robot.play("hello")).completed

    tell(story, "fixed-tick", wire=wire)
