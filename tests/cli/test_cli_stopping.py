"""Ctrl-C while a robot moves: it is stopped softly before the command ends."""

import asyncio
import json
import signal
from collections.abc import Iterator

import pytest

import virtual
from a1_rig import pair
from rig import rig
from rote.cli.options import run, stopping_softly
from rote.connection import _next_state, connect
from rote.messages import Keyframe
from rote.robot.robot import Robot
from rote.sim.store import Store, StoredAction
from rote.sim.world import World

WAVE = StoredAction(
    name="wave",
    created_s=1,
    duration_ms=1000,
    keyframes=(Keyframe(joint=18, time_ms=0, value_rad=0.5),),
)


async def interrupted(robot: Robot, as_json: bool = False) -> None:
    """Wait beside a robot that moves, and be interrupted."""

    async def wait() -> None:
        async with stopping_softly(robot, "it rests", as_json):
            await asyncio.sleep(3600)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(1.0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_a_g1_is_stopped_and_a_person_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    async def story() -> None:
        store = Store(":memory:")
        store.save(WAVE)
        async with connect(world=World(store)) as robot:
            playing = await robot.start("wave", loop=True)
            await interrupted(robot)
            assert not (await playing).completed
        assert capsys.readouterr() == ("", "Stopped softly: it rests.\n")
        store.close()

    virtual.run(story())


def test_an_a1_stands_and_a_script_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    async def story() -> None:
        async with pair() as (_, _, robot):
            robot.walk(0.3)
            await interrupted(robot, as_json=True)
            await asyncio.sleep(1.0)
            assert robot.status().mode != "walk"
        out, err = capsys.readouterr()
        assert json.loads(out) == {"stopped": True, "state": "it rests"}
        assert err == ""

    virtual.run(story())


@pytest.mark.parametrize("wire", ["memory", "udp"])
def test_a_robot_that_says_nothing_after_a_stop_was_stopped_all_the_same(wire: str) -> None:
    async def story() -> None:
        async with rig(wire) as one, one.connect() as g1:
            await g1.stop()
            assert await _next_state(g1) is not None
            await one.die()
            assert await _next_state(g1) is None

    virtual.run(story())


def test_what_goes_wrong_otherwise_is_left_to_others() -> None:
    async def story() -> None:
        async with pair() as (_, _, robot):
            robot.walk(0.3)
            with pytest.raises(KeyError):
                async with stopping_softly(robot, "it rests"):
                    raise KeyError("a bug")
            await asyncio.sleep(0.5)
            assert robot.status().mode == "walk"

    virtual.run(story())


@pytest.fixture
def as_under_nohup() -> Iterator[None]:
    """SIGHUP is ignored, and SIGTERM is for who calls a command."""
    before = [
        (signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_IGN)),
        (signal.SIGTERM, signal.signal(signal.SIGTERM, nothing)),
    ]
    yield
    for number, former in before:
        signal.signal(number, former)


def nothing(number: int, frame: object) -> None:
    """Hear a signal."""


async def hears(number: int) -> int:
    signal.raise_signal(number)
    await asyncio.sleep(0.05)
    return 7


@pytest.mark.usefixtures("as_under_nohup")
def test_a_command_under_nohup_outlives_a_hang_up_and_can_still_be_ended() -> None:
    assert run(hears(signal.SIGHUP)) == 7
    assert run(hears(signal.SIGTERM)) == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is nothing
