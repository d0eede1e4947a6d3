"""The API over a G1's services, both ends in one process: half of the robot's real wire."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from enum import IntEnum

import numpy as np
import pytest

import virtual
from rig import SERVICES_HZ, Pipe, Rig, client_of, rig
from rote import messages as m
from rote.errors import LinkError, NoAnswerError, PeerLostError, RefusedError, UnsupportedError
from rote.messages import Phase
from rote.model.g1 import G1_REST_RAD, Mode
from rote.motion.track import Array
from rote.robot.message_robot import G1
from rote.wire.services.rpc import ArmApi

Story = Callable[[Rig, G1], Awaitable[None]]


def tell(story: Story, mode: Mode = Mode.WALK) -> None:
    async def run() -> None:
        own = rig("services", mode=mode, services_hz=SERVICES_HZ)
        async with own as one, one.connect() as robot:
            await story(one, robot)

    virtual.run(run())


async def teach(robot: G1, name: str) -> None:
    async with robot.teach(name):
        await robot.move_by_hand("wave", 1.0)
        await asyncio.sleep(1.0)


async def names(robot: G1) -> list[str]:
    return [action.name for action in (await robot.actions()).taught]


def test_a_motion_is_taught_listed_renamed_played_and_deleted() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with robot.teach("mine") as take:
            await robot.move_by_hand("wave", 2.0)
            await asyncio.sleep(2.0)
        assert take.saved
        assert take.track.rate_hz == pytest.approx(SERVICES_HZ, rel=0.02)
        assert await names(robot) == ["mine"]
        await robot.rename("mine", "yours")
        assert (await robot.play("yours")).completed
        with pytest.raises(RefusedError):
            await robot.rename("mine", "nothing")
        with pytest.raises(RefusedError):
            await robot.rename("yours", "yours")
        await robot.delete("yours")
        assert await names(robot) == []
        with pytest.raises(RefusedError):
            await robot.delete("yours")

    tell(story)


def test_presets_are_listed_and_played_to_their_end() -> None:
    async def story(one: Rig, robot: G1) -> None:
        presets = (await robot.actions()).presets
        assert (27, "shake_hand") in {(preset.id, preset.name) for preset in presets}
        await client_of(robot).ask(m.PlayPreset(27))
        assert one.world.doing.id != 27

    tell(story)


def test_a_long_teaching_is_kept_alive() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with robot.teach("long"):
            await asyncio.sleep(25)
            assert one.world.body.soft
        assert (await robot.actions()).taught[0].duration_s == pytest.approx(25, abs=0.5)

    tell(story)


@pytest.mark.parametrize("how", ["fails", "discarded"])
def test_what_is_not_wanted_is_removed_again(how: str) -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(KeyError):
            async with robot.teach("mine") as take:
                await asyncio.sleep(0.5)
                take.discard()
                if how == "fails":
                    raise KeyError
            raise KeyError
        assert await names(robot) == []
        assert not one.world.body.soft

    tell(story)


def test_stop_ends_a_playback_and_a_teaching() -> None:
    async def story(one: Rig, robot: G1) -> None:
        await teach(robot, "mine")
        playing = await robot.start("mine")
        await playing.stop()
        assert not (await playing).completed
        with pytest.raises(RefusedError):
            async with robot.teach("other"):
                await asyncio.sleep(1.0)
                await robot.stop()
                await asyncio.sleep(3600)
        assert not one.world.body.soft

    tell(story)


def test_refusals_carry_the_services_own_words() -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(RefusedError) as caught:
            await teach(robot, "mine")
        assert caught.value.code == 7404
        with pytest.raises(RefusedError) as caught:
            await client_of(robot).ask(m.EnterTeaching(name="mine"))
        assert caught.value.code == 7404
        assert caught.value.remedy
        assert (await robot.modes.stand()).balanced
        await teach(robot, "mine")

    tell(story, Mode.DAMP)


def test_how_an_action_is_played_is_the_robots_own_business() -> None:
    async def story(one: Rig, robot: G1) -> None:
        await teach(robot, "mine")
        with pytest.raises(UnsupportedError, match="change how"):
            robot.play("mine", speed=0.5)
        with pytest.raises(UnsupportedError):
            await client_of(robot).ask(m.SyncParameters())

    tell(story)


def test_a_robot_that_dies_is_reported_within_three_seconds() -> None:
    async def story(one: Rig, robot: G1) -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(PeerLostError, match="state is unknown"):
            async with robot.teach("mine"):
                await asyncio.sleep(1.0)
                died = loop.time()
                await one.die()
                await asyncio.sleep(3600)
        assert loop.time() - died <= 3.0
        with pytest.raises(PeerLostError):
            await robot.actions()

    tell(story)


def test_nobody_there_is_told_in_time() -> None:
    async def run() -> None:
        async with rig("services") as one:
            one.mute = True
            with pytest.raises(NoAnswerError, match="no robot answered"):
                async with one.connect(timeout=2.0):
                    pass

    virtual.run(run())


def test_a_client_that_vanishes_leaves_the_arms_holding() -> None:
    async def story(one: Rig, robot: G1) -> None:
        task = asyncio.create_task(teach_forever(robot))
        await asyncio.sleep(1.0)
        assert one.world.body.soft
        await one.die(silently_for_the_client=False)
        await asyncio.sleep(12.0)
        assert not one.world.body.soft
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def teach_forever(robot: G1) -> None:
        async with robot.teach("mine"):
            await asyncio.sleep(3600)

    tell(story)


def test_many_requests_at_once_each_get_their_own_answer() -> None:
    async def story(one: Rig, robot: G1) -> None:
        await teach(robot, "mine")
        answers = await asyncio.gather(*(robot.actions() for _ in range(300)))
        assert all(len(answer.taught) == 1 for answer in answers)

    tell(story)


def held(one: Rig) -> bool:
    return one.world.holding


def test_a_pose_that_is_held_is_seen_and_stop_lets_it_go() -> None:
    async def story(one: Rig, robot: G1) -> None:
        await client_of(robot).ask(m.PlayPreset(15))
        await asyncio.sleep(0.3)
        assert robot.state is not None
        assert robot.state.holding
        with pytest.raises(RefusedError) as caught:
            await client_of(robot).ask(m.PlayPreset(27))
        assert caught.value.code == 7401
        await robot.stop()
        assert not one.world.holding

    tell(story)


def test_battery_temperatures_and_faults_reach_the_client() -> None:
    async def story(one: Rig, robot: G1) -> None:
        one.world.health.discharge_battery()
        one.world.health.overheat_motor(16)
        await asyncio.sleep(1.5)
        state = robot.state
        assert state is not None
        assert state.battery_percent == 8
        assert state.temperatures_c[16] > 100 > state.temperatures_c[15]
        assert len(state.faults) == 2
        with pytest.raises(RefusedError) as caught:
            await client_of(robot).ask(m.EnterTeaching(name="mine"))
        assert caught.value.code == 7406

    tell(story)


def test_a_pause_is_left_out_of_the_action() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with robot.teach("mine"):
            await asyncio.sleep(1.0)
            await client_of(robot).ask(m.PauseRecording(paused=True))
            await asyncio.sleep(3.0)
            await client_of(robot).ask(m.PauseRecording(paused=False))
            await asyncio.sleep(1.0)
        (mine,) = (await robot.actions()).taught
        assert mine.duration_s == pytest.approx(2.2, abs=0.3)

    tell(story)


def test_a_pose_that_is_held_is_let_go_of_on_leaving_and_by_a_stop() -> None:
    async def run() -> None:
        async with rig("services") as one:
            async with one.connect() as robot:
                await robot.perform("both_hands_up")
                await asyncio.sleep(0.5)
                assert held(one)
                assert robot.state is not None
                assert robot.state.holding
                await robot.stop()
                assert not held(one)
                await asyncio.sleep(5.0)
                await robot.perform(15)
                await asyncio.sleep(0.5)
                assert held(one)
            assert not held(one)

    virtual.run(run())


class Holding:
    """A hand that keeps the arms where they rest."""

    def grip(self, time_s: float) -> Array | None:
        return np.array(G1_REST_RAD)


def test_what_happens_in_a_pause_is_left_out() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with robot.teach("mine") as take:
            one.world.attach(Holding())  # arms that sink meanwhile would need a way back
            await asyncio.sleep(1.0)
            await take.pause()
            await asyncio.sleep(5.0)
            await take.resume()
            await asyncio.sleep(1.0)
        (action,) = (await robot.actions()).taught
        assert action.duration_s == pytest.approx(2.4, abs=0.3)
        assert len(take.track) == pytest.approx(2 * one.recording_hz, rel=0.1)

    tell(story)


def test_a_robot_in_debug_mode_can_be_reached_and_says_so() -> None:
    async def run() -> None:
        async with rig("services") as one:
            one.world.drive("")
            async with one.connect() as robot:
                assert await robot.controller() == ""

    virtual.run(run())


def lose_answers(pipe: Pipe, api: IntEnum) -> None:
    """Lose every answer of the robot to one kind of request."""
    answer = re.compile(rf'"api_id": ?{int(api)}\b')
    send = pipe.robot.send

    def lossy(message: str | bytes) -> None:
        if not (isinstance(message, str) and answer.search(message)):
            send(message)

    pipe.robot.send = lossy


@pytest.mark.parametrize("then", ["unanswered", "lost"])
def test_a_play_whose_answer_is_lost_is_stopped(then: str) -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with robot.teach("mine"):
            await robot.move_by_hand("wave", 8.0)
            await asyncio.sleep(8.0)
        await asyncio.sleep(5.0)
        lose_answers(one.pipes[0], ArmApi.PLAY_TAUGHT)
        playing = robot.play("mine")
        await asyncio.sleep(1.0)
        assert one.world.state().phase is Phase.PLAYING or one.world.state().phase is Phase.APPROACH
        if then == "lost":
            one.pipes[0].cut()
        with pytest.raises(LinkError):
            await playing
        await asyncio.sleep(0.1 if then == "unanswered" else 3.0)
        assert one.world.state().phase in (Phase.RETURN, Phase.NONE)
        assert one.world.stopped_early

    tell(story)
