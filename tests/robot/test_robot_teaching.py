"""A teaching that does not begin: the arms hold, and what the robot had it still has."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

import virtual
from rig import Pipe, Rig, client_of, rig
from rote.errors import NoAnswerError, PeerLostError, RefusedError, RoteError
from rote.messages import Code
from rote.robot.message_robot import G1
from rote.robot.message_teaching import Teacher, TeachOptions
from rote.wire.services.rpc import ArmApi

Story = Callable[[Rig, G1], Awaitable[None]]


def tell(story: Story, wire: str = "services", *quirks: str) -> None:
    async def run() -> None:
        async with rig(wire, quirks=quirks) as one, one.connect() as robot:
            await story(one, robot)

    virtual.run(run())


async def teach(robot: G1, name: str) -> None:
    async with robot.teach(name):
        await asyncio.sleep(0.5)
    await asyncio.sleep(2.0)  # until the arms are back at rest


async def names(robot: G1) -> list[str]:
    return [action.name for action in (await robot.actions()).taught]


def lose_next_word_of_teaching(pipe: Pipe, what: str) -> None:
    """Lose the next request that has to do with teaching, or the answer to it."""
    teaching = re.compile(rf'"api_id": ?{int(ArmApi.TEACH)}\b')
    target: Any = pipe if what == "request" else pipe.robot
    send: Callable[[str | bytes], None] = target.send
    lost: list[object] = []

    def lossy(message: str | bytes) -> None:
        if not lost and isinstance(message, str) and teaching.search(message):
            lost.append(message)
        else:
            send(message)

    target.send = lossy


class CheckedTeacher(Teacher):
    """A teacher whose check is the test's own."""

    def __init__(self, robot: G1, check: Callable[[], Awaitable[bool]]) -> None:
        super().__init__(robot._link, robot._store, robot._arms, robot._modes)
        self._check = check

    async def check_teachable(
        self, name: str, *, overwrite: bool = False, force: bool = False
    ) -> bool:
        return await self._check()


def test_a_refused_teaching_leaves_the_older_action_of_its_name() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with one.bystander() as other:
            await teach(other, "wave")
            await other.start("wave")
            with pytest.raises(RefusedError, match="in use by another motion"):
                async with robot.teach("wave", overwrite=True):
                    raise AssertionError("the arms are not soft")
            assert await names(robot) == ["wave"]
            assert not one.world.body.soft

    tell(story)


def test_a_name_that_somebody_takes_just_before_a_refusal_stays_his() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with one.bystander() as other:

            async def check() -> bool:
                assert await names(robot) == []
                await teach(other, "wave")
                await other.start("wave")
                return False

            with pytest.raises(RefusedError, match="in use by another motion"):
                async with CheckedTeacher(robot, check).teach("wave", TeachOptions()):
                    raise AssertionError("the arms are not soft")
            assert await names(robot) == ["wave"]

    tell(story)


def test_a_refused_teaching_does_not_end_the_one_that_goes_on() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with robot.teach("long") as take:
            await asyncio.sleep(1.0)
            with pytest.raises(RefusedError) as raised:
                async with robot.teach("short"):
                    raise AssertionError("one at a time")
            assert raised.value.code == Code.BUSY
            await asyncio.sleep(11.0)  # longer than arms stay soft that nobody keeps soft
            assert one.world.body.soft
        assert take.saved
        assert not one.world.body.soft
        assert await names(robot) == ["long"]

    tell(story)


@pytest.mark.parametrize("was_there", [False, True])
@pytest.mark.parametrize("end", ["request", "answer", "cancelled"])
def test_a_teaching_whose_answer_is_unknown_ends_with_holding_arms_and_loses_no_action(
    end: str, was_there: bool
) -> None:
    async def story(one: Rig, robot: G1) -> None:
        if was_there:
            await teach(robot, "wave")

        async def check() -> bool:
            return was_there

        async def lesson() -> None:
            async with CheckedTeacher(robot, check).teach("wave", TeachOptions()):
                raise AssertionError("nobody knows whether the arms are soft")

        if end != "cancelled":
            lose_next_word_of_teaching(one.pipes[0], end)
        task = asyncio.create_task(lesson())
        await asyncio.sleep(0.2)  # the robot takes longer to answer
        assert bool(one.world.body.soft) == (end != "request")
        if end == "cancelled":
            task.cancel()
        with pytest.raises((NoAnswerError, asyncio.CancelledError)):
            await task
        assert not one.world.body.soft
        assert await names(robot) == (["wave"] if was_there else [])

    tell(story)


@pytest.mark.parametrize("robot", [("memory",), ("services", "arm-state-late")])
def test_a_stop_before_the_first_report_of_soft_arms_ends_the_teaching(
    robot: tuple[str, ...],
) -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(RefusedError, match="ended by a stop") as caught:
            async with robot.teach("wave"):
                assert robot.state is not None
                assert not robot.state.arms_soft, "no report has shown soft arms"
                stopping = asyncio.create_task(robot.stop())
                await asyncio.sleep(20)
        await stopping
        assert caught.value.code == Code.NOT_TEACHING
        assert caught.value.remedy
        assert not one.world.body.soft

    tell(story, *robot)


def test_a_stop_by_somebody_else_before_the_first_report_ends_the_teaching() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with one.bystander() as other:
            with pytest.raises(RefusedError, match="was stopped, or never began") as caught:
                async with robot.teach("wave"):
                    await other.stop()
                    assert robot.state is not None
                    assert not robot.state.arms_soft, "no report has shown soft arms"
                    await asyncio.sleep(20)
        assert caught.value.code == Code.NOT_TEACHING
        assert not one.world.body.soft

    tell(story, "memory")


def test_with_force_a_robot_that_never_reports_soft_arms_may_be_taught() -> None:
    async def story(one: Rig, robot: G1) -> None:
        went_on = False
        async with one.bystander() as other:
            with suppress(RoteError):  # this robot was not taught
                async with robot.teach("wave", force=True):
                    await other.stop()
                    await asyncio.sleep(20)
                    went_on = True
        assert went_on

    tell(story, "memory")


def test_a_stop_while_a_teaching_waits_for_the_arms_keeps_them_from_getting_soft() -> None:
    async def story(one: Rig, robot: G1) -> None:
        await teach(robot, "first")
        waits = asyncio.Event()
        async with one.bystander() as other:
            await other.start("first")
            robot.on_waiting(lambda _: waits.set())
            lesson = asyncio.create_task(teach(robot, "second"))
            async with asyncio.timeout(5.0):
                await waits.wait()
            await robot.stop()
            while not lesson.done():
                assert not one.world.body.soft
                await asyncio.sleep(0.01)
            with pytest.raises(RefusedError, match="stop"):
                await lesson

    tell(story)


def test_a_robot_that_is_lost_before_it_answers_is_told_and_holds_by_itself() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async def lesson() -> None:
            async with robot.teach("wave"):
                raise AssertionError("nobody knows whether the arms are soft")

        task = asyncio.create_task(lesson())
        while not one.world.body.soft:
            await asyncio.sleep(0.02)
        await one.die(silently_for_the_client=False)
        with pytest.raises(PeerLostError, match="state is unknown"):
            await task
        assert task.cancelling() == 0
        await asyncio.sleep(one.holds_after_s)
        assert not one.world.body.soft

    tell(story)


def test_a_listener_that_fails_keeps_nobody_from_hearing_of_a_loss() -> None:
    async def story(one: Rig, robot: G1) -> None:
        told: list[object] = []
        heard: list[RoteError] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

        def broken(_: object) -> None:
            raise ZeroDivisionError

        client_of(robot).on_loss(broken)
        client_of(robot).on_loss(heard.append)
        await one.die()
        await asyncio.sleep(5.0)
        assert isinstance(heard[0], PeerLostError)
        assert told

    tell(story)
