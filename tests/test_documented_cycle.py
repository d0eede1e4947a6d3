"""The documents' cycle with an end that was written without rote: their client, and their robot."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import numpy as np
import pytest

import virtual
from documented_client import DocumentedController
from documented_robot import DocumentedRobot, Heard
from rig import Rig, rig
from rote import messages as m
from rote.connection import connect
from rote.errors import RefusedError
from rote.messages import Phase
from rote.robot.robot import Robot
from rote.transport.address import host_and_port

NAME, STATED_MS = "my_wave", 3000
SOFT = 1


# ---- the documents' client, and rote's robot ----------------------------------------------------


@asynccontextmanager
async def controller_of(one: Rig) -> AsyncIterator[DocumentedController]:
    controller = DocumentedController(*host_and_port(one.url.removeprefix("udp://")))
    try:
        yield controller
    finally:
        controller.close()


def tell(story: Callable[[Rig, DocumentedController], Awaitable[None]]) -> None:
    async def run() -> None:
        async with rig("udp") as one, controller_of(one) as controller:
            assert await controller.init_connection() == [0, 0, 0, 0]
            assert await controller.list_actions() == []
            await story(one, controller)

    virtual.run(run())


async def recorded(one: Rig, controller: DocumentedController, seconds: float = 3.0) -> None:
    """Enter, record while somebody leads the arms, and stop the recording."""
    assert await controller.enter_teaching() == 0
    assert await controller.record(1) == 0
    teacher = one.world._teaching.client
    assert one.world.obey(teacher, m.MoveByHand("wave", round(seconds * 1000))) == m.Status()
    await controller.listen(seconds)
    assert await controller.record(0) == 0
    await controller.listen(0.1)
    assert controller.last_flags & SOFT


async def at_rest(one: Rig) -> None:
    while one.world.state().playing:
        await asyncio.sleep(0.1)


def test_the_documents_client_saves_and_plays_before_it_leaves() -> None:
    """Steps 6 to 9 of the document about the 30 Jan capture."""

    async def story(one: Rig, controller: DocumentedController) -> None:
        await recorded(one, controller)
        assert await controller.save_action(NAME, STATED_MS) == 0
        assert one.world.state().arms_soft
        assert await controller.play_action(1) == 0
        assert not one.world.state().arms_soft
        assert one.world.phase is Phase.APPROACH
        assert await controller.exit_teaching() == 0
        assert one.world.phase is Phase.APPROACH, "leaving does not stop it"
        await at_rest(one)
        assert not one.world.stopped_early

    tell(story)


def test_the_documents_client_leaves_before_it_saves_and_plays() -> None:
    """Part 5 of the document about the app's code."""

    async def story(one: Rig, controller: DocumentedController) -> None:
        await recorded(one, controller)
        assert await controller.exit_teaching() == 0
        assert not one.world.state().arms_soft
        assert await controller.save_action(NAME, STATED_MS) == 0
        assert await controller.play_action(1) == 0
        await at_rest(one)
        assert not one.world.stopped_early

    tell(story)


def test_all_that_was_recorded_is_kept_at_its_own_length() -> None:
    async def story(one: Rig, controller: DocumentedController) -> None:
        await recorded(one, controller)
        assert await controller.save_action(NAME, STATED_MS) == 0
        ((name, ms),) = await controller.list_actions()
        assert name == NAME
        assert ms == pytest.approx(3000, abs=60)
        action = one.world.store.load(1)
        assert action is not None
        assert action.frames == pytest.approx(300, abs=6)
        assert (action.stated_frames, action.stated_ms) == (50, STATED_MS)
        assert any("kept all" in notice.message for notice in one.world.notices)

    tell(story)


def test_the_documents_client_keeps_the_arms_soft_with_the_bytes_it_prints() -> None:
    async def story(one: Rig, controller: DocumentedController) -> None:
        assert await controller.enter_teaching() == 0
        for _ in range(5):
            await controller.listen(4.5)
            assert await controller.keep_alive() == 0
        assert one.world.state().arms_soft
        assert controller.states > 0

    tell(story)


def test_two_documents_clients_are_told_who_teaches() -> None:
    async def story(one: Rig, controller: DocumentedController) -> None:
        await recorded(one, controller)
        assert await controller.save_action(NAME, STATED_MS) == 0
        async with controller_of(one) as other:
            await other.init_connection()
            answer = await other.send_command(0x41, (1).to_bytes(4, "big") + bytes(180))
            assert int.from_bytes(answer[:4], "big") == 7400
            host, port = controller._socket.getsockname()
            assert answer[4:].rstrip(b"\0").decode() == f"{host}:{port} is teaching"
        assert one.world.state().arms_soft

    tell(story)


def test_rotes_client_says_who_teaches_in_its_words() -> None:
    async def story(one: Rig, controller: DocumentedController) -> None:
        await recorded(one, controller)
        assert await controller.save_action(NAME, STATED_MS) == 0
        async with one.connect() as robot:
            with pytest.raises(RefusedError, match=r"\(127\.0\.0\.1:\d+ is teaching\)"):
                await robot.play(1)

    tell(story)


# ---- rote's client, and a robot that was written from the page alone ----------------------------


def teach_the_other(story: Callable[[DocumentedRobot, Robot], Awaitable[None]]) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        transport, other = await loop.create_datagram_endpoint(
            DocumentedRobot, local_addr=("127.0.0.1", 0)
        )
        port = transport.get_extra_info("sockname")[1]
        try:
            async with connect(f"udp://127.0.0.1:{port}") as robot:
                await story(other, robot)
            await asyncio.sleep(0.1)
        finally:
            other.close()

    virtual.run(run())


def commands(heard: list[Heard]) -> list[int]:
    """What was asked, without lists and keep-alives."""
    return [
        each.command
        for each in heard
        if each.command != 0x1A and (each.command, len(each.payload)) != (0x0D, 44)
    ]


def test_rotes_client_teaches_lists_and_plays_a_robot_of_the_page() -> None:
    async def story(other: DocumentedRobot, robot: Robot) -> None:
        async with robot.teach("wave") as take:
            await asyncio.sleep(2.0)
        assert not other.soft
        assert take.track.duration_s == pytest.approx(2.0, abs=0.2)
        assert [action.name for action in (await robot.actions()).taught] == ["wave"]
        report = await robot.play(1)
        assert report.completed
        assert other.elbow == pytest.approx(0.0, abs=1e-6)
        assert other.fastest < 2.0
        in_order = [0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0F, 0x0F, 0x0E, 0x2B, 0x41]
        assert commands(other.heard) == in_order

    teach_the_other(story)


def test_rotes_client_stops_the_recording_before_it_leaves() -> None:
    async def story(other: DocumentedRobot, robot: Robot) -> None:
        async with robot.teach("wave"):
            await asyncio.sleep(0.5)
        said = [each for each in other.heard if each.command in (0x0F, 0x0E)]
        assert [(each.command, each.payload[3], each.soft) for each in said] == [
            (0x0F, 1, True),
            (0x0F, 0, True),
            (0x0E, 0, False),
        ]

    teach_the_other(story)


def test_rotes_client_plays_before_it_leaves_if_it_is_asked_to() -> None:
    async def story(other: DocumentedRobot, robot: Robot) -> None:
        await robot.send(0x0D, b"\0\0\0\1" + bytes(144))
        await robot.send(0x0F, b"\0\0\0\1")
        await asyncio.sleep(1.0)
        await robot.send(0x0F, bytes(4))
        assert await robot.save("wave", 1.0) == ""
        assert (await robot.play("wave")).completed
        await robot.send(0x0E)
        assert commands(other.heard)[4:] == [0x0D, 0x0F, 0x0F, 0x2B, 0x41, 0x0E]

    teach_the_other(story)


def test_rotes_client_leaves_with_mode_3_and_the_arms_hold() -> None:
    others: list[DocumentedRobot] = []

    async def story(other: DocumentedRobot, robot: Robot) -> None:
        others.append(other)
        await robot.send(0x0D, b"\0\0\0\1" + bytes(144))
        assert other.soft

    teach_the_other(story)
    (other,) = others
    assert not other.soft
    assert other.heard[-1].command == 0x09
    assert other.heard[-1].payload[:4] == b"\0\0\0\3"


def test_compensation_and_parameters_reach_the_robot() -> None:
    values = tuple(float(value) for value in range(11))

    async def story(other: DocumentedRobot, robot: Robot) -> None:
        await robot.sync_parameters(b"\x01\x02")
        assert other.heard[-1][:2] == (0x0A, b"\x01\x02" + bytes(42))
        async with robot.teach("wave", compensation=values, loop=True):
            await asyncio.sleep(5.0)
        kept = [each.payload for each in other.heard if len(each.payload) == 44]
        assert np.array(values, dtype=">f4").tobytes() in kept
        (save,) = (each.payload for each in other.heard if each.command == 0x2B)
        assert save[44:48] == b"\0\0\0\3", "saved, to be played in a loop"

    teach_the_other(story)
