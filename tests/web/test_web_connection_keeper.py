"""The pendant's connection outlives every error, also one that nobody foresaw."""

import asyncio

import pytest

from rote.robot.robot import Robot
from rote.web.services.connection_keeper import RECONNECT_LONGEST_S, ConnectionKeeper
from virtual import run


@pytest.mark.parametrize(
    "error", [OSError("no such device"), ValueError("bad"), TimeoutError(), RuntimeError("odd")]
)
def test_an_error_that_nobody_foresaw_is_told_and_the_robot_is_tried_again(
    error: Exception,
) -> None:
    async def story() -> None:
        tries: list[Robot] = []
        told: list[str] = []
        works = asyncio.Event()

        async def greet(robot: Robot) -> None:
            tries.append(robot)
            if not works.is_set():
                raise error

        keeper = ConnectionKeeper(greet, lambda message, *_, **__: told.append(message))
        await keeper.open("sim://g1")
        await asyncio.sleep(4 * RECONNECT_LONGEST_S)
        assert len(tries) > 3
        assert (keeper.connected, keeper.report.state) == (None, "lost")
        assert repr(error) in keeper.report.message
        assert keeper.report.remedy
        assert len(told) == 1, "it is told once, not at every try"
        works.set()
        await asyncio.sleep(2 * RECONNECT_LONGEST_S)
        assert (keeper.connected, keeper.report.state) == (tries[-1], "connected")
        await keeper.close()

    run(story())


def test_a_connection_that_fails_again_and_again_is_closed_at_once() -> None:
    async def story() -> None:
        tries: list[Robot] = []

        async def greet(robot: Robot) -> None:
            tries.append(robot)
            raise OSError("no such device")

        keeper = ConnectionKeeper(greet, lambda *_, **__: None)
        await keeper.open("sim://g1")
        await asyncio.sleep(1.0)
        async with asyncio.timeout(0.5):
            await keeper.close()
        count = len(tries)
        assert count
        assert keeper.report.state == "off"
        await asyncio.sleep(60.0)
        assert len(tries) == count

    run(story())
