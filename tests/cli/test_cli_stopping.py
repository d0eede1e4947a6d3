"""Ctrl-C while a robot moves: it is stopped softly before the command ends."""

import asyncio
import io

import pytest
from rich.console import Console

import virtual
from a1_rig import pair
from rote.cli.options import stopping_softly
from rote.connection import connect
from rote.messages import Keyframe
from rote.robot.a1 import A1
from rote.robot.g1 import G1
from rote.sim.store import Store, StoredAction
from rote.sim.world import World

WAVE = StoredAction(
    name="wave",
    created_s=1,
    duration_ms=1000,
    keyframes=(Keyframe(joint=18, time_ms=0, value_rad=0.5),),
)


async def interrupted(robot: A1 | G1, screen: Console | None = None) -> None:
    """Wait beside a robot that moves, and be interrupted."""

    async def wait() -> None:
        async with stopping_softly(robot, screen):
            await asyncio.sleep(3600)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(1.0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_a_g1_is_stopped_and_a_person_is_told() -> None:
    async def story() -> None:
        store = Store(":memory:")
        store.save(WAVE)
        screen = Console(file=io.StringIO(), force_terminal=False)
        async with connect(world=World(store)) as robot:
            playing = await robot.start("wave", loop=True)
            await interrupted(robot, screen)
            assert not (await playing).completed
        assert screen.file.getvalue() == "Stopped softly.\n"  # type: ignore[attr-defined]
        store.close()

    virtual.run(story())


def test_an_a1_stands() -> None:
    async def story() -> None:
        async with pair() as (_, _, robot):
            robot.walk(0.3)
            await interrupted(robot)
            await asyncio.sleep(1.0)
            assert robot.status().mode != "walk"

    virtual.run(story())


def test_what_goes_wrong_otherwise_is_left_to_others() -> None:
    async def story() -> None:
        async with pair() as (_, _, robot):
            robot.walk(0.3)
            with pytest.raises(KeyError):
                async with stopping_softly(robot):
                    raise KeyError("a bug")
            await asyncio.sleep(0.5)
            assert robot.status().mode == "walk"

    virtual.run(story())
