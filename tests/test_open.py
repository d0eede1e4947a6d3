"""The end of a connection: a block is left, a robot is closed, or the program ends."""

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

import pytest

import rote
from rig import client_of
from rote.errors import BadRequestError
from rote.robot.message_robot import G1
from rote.robot.playing import Playing
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport.udp.client import TeachingClient
from rote.wire.teaching import codec as frames
from virtual import run

URL = "sim://g1?store=:memory:"
SOON_S = 8.0
"""Sooner than arms hold by themselves, which takes 13.5 s in the documented frames."""


async def with_robot(work: Callable[[World, str], Awaitable[None]]) -> None:
    world = World(Store(":memory:"))
    simulator = Simulator(world)
    try:
        await work(world, await simulator.serve_udp("127.0.0.1", 0))
    finally:
        await simulator.close()
        world.store.close()


# ---- blocking -----------------------------------------------------------------------------------


def test_an_opened_robot_works_until_it_is_closed() -> None:
    threads = threading.active_count()
    robot = rote.sync.open(URL)
    assert robot.actions().taught == ()
    assert robot.modes.read().balanced
    robot.close()
    robot.close()
    assert threading.active_count() == threads
    with pytest.raises(RuntimeError, match="closed"):
        robot.actions()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_opened_robot_is_one_of_its_family() -> None:
    robot = rote.sync.open(URL, family="g1")
    try:
        assert "G1 g1-29 at sim://g1" in repr(robot)
    finally:
        robot.close()
    with pytest.raises(BadRequestError):
        rote.sync.open(URL, family="r1")
    with pytest.raises(BadRequestError):
        rote.sync.open("sim://spot")


def test_closing_makes_arms_hold_that_are_being_taught() -> None:
    async def cells(world: World, url: str) -> None:
        robot = await asyncio.to_thread(rote.sync.open, url)
        teaching = robot.teach("wave")
        take = await asyncio.to_thread(teaching.__enter__)
        while take.samples < 10:
            await asyncio.sleep(0.02)
        assert world.body.soft
        await asyncio.to_thread(robot.close)
        assert not world.body.soft
        assert take.samples >= 10
        assert not take.saved
        assert world.store.entries() == ()

    asyncio.run(with_robot(cells))


def test_closing_inside_a_block_leaves_nothing_for_its_end() -> None:
    with rote.sync.connect(URL) as robot:
        robot.close()
        robot.close()
    with pytest.raises(RuntimeError, match="closed"):
        robot.actions()


# ---- with await ---------------------------------------------------------------------------------


def test_a_robot_opened_with_await_works_until_it_is_closed() -> None:
    async def cells() -> None:
        robot = await rote.open(URL)
        assert (await robot.actions()).taught == ()
        await robot.close()
        await robot.close()
        with pytest.raises(rote.LinkError):
            await robot.actions()

    run(cells())


def test_a_playback_that_goes_on_is_stopped_by_closing() -> None:
    async def cells() -> None:
        world = World(Store(":memory:"))
        robot = await rote.open("sim://g1", world=world, family="g1")
        async with robot.teach("drum"):
            await robot.move_by_hand("drum", 1)
            await asyncio.sleep(1)
        playing = await robot.start("drum", loop=True)
        async for progress in playing:
            if progress.phase is rote.Phase.PLAYING:
                break
        state = world.state()
        assert state.phase is rote.Phase.PLAYING
        await robot.close()
        assert world.state().phase is rote.Phase.RETURN
        world.store.close()

    run(cells())


def test_a_robot_that_cannot_be_opened_leaves_nothing_behind() -> None:
    async def cell() -> None:
        with pytest.raises(BadRequestError, match="family"):
            await rote.open(URL, family="r1")
        assert len(asyncio.all_tasks()) == 1

    run(cell())


# ---- leaving a block ----------------------------------------------------------------------------


async def looping(robot: G1) -> Playing:
    """Return a looped playback that is past its approach."""
    async with robot.teach("drum"):
        await robot.move_by_hand("drum", 1)
        await asyncio.sleep(1)
    playing = await robot.start("drum", loop=True)
    async for progress in playing:
        if progress.phase is rote.Phase.PLAYING:
            break
    return playing


@pytest.mark.parametrize("how", ["returns", "raises", "cancelled"])
def test_leaving_a_block_stops_a_playback(how: str) -> None:
    async def program(world: World, url: str) -> None:
        async def block() -> None:
            async with rote.connect(url, family="g1") as robot:
                await looping(robot)
                assert world.phase is rote.Phase.PLAYING
                if how == "raises":
                    raise KeyError
                if how == "cancelled":
                    asyncio.current_task().cancel()  # type: ignore[union-attr]
                    await asyncio.sleep(0)

        expected = {"raises": KeyError, "cancelled": asyncio.CancelledError}.get(how)
        with pytest.raises(expected) if expected else nullcontext():
            await block()
        assert world.phase is rote.Phase.RETURN

    run(with_robot(program))


def test_leaving_a_block_stops_a_playback_that_no_frame_would_end_by_itself() -> None:
    """A loop ends with its client; a motion that plays once does not."""

    async def program(world: World, url: str) -> None:
        async with rote.connect(url, family="g1") as robot:
            async with robot.teach("drum"):
                await robot.move_by_hand("drum", 3)
                await asyncio.sleep(3)
            await robot.start("drum")
            while world.state().phase is not rote.Phase.PLAYING:
                await asyncio.sleep(0.05)
        assert world.phase is rote.Phase.RETURN

    run(with_robot(program))


def test_leaving_a_blocking_block_stops_a_playback() -> None:
    async def program(world: World, url: str) -> None:
        def script() -> None:
            with rote.sync.connect(url, family="g1") as robot:
                with robot.teach("drum"):
                    robot.move_by_hand("drum", 3)
                    time.sleep(3)
                playing = robot.start("drum")
                while playing.progress is None or playing.progress.phase is not rote.Phase.PLAYING:
                    time.sleep(0.05)

        await asyncio.to_thread(script)
        assert world.phase is rote.Phase.RETURN

    asyncio.run(with_robot(program))


def lose_first_stop(robot: G1) -> None:
    """Lose the next datagram by which this client asks for a stop."""
    client = client_of(robot, TeachingClient)
    assert client.link is not None
    send, lost = client.link.send, False

    def lossy(datagram: bytes) -> None:
        nonlocal lost
        if not lost and frames.decode(datagram).command == frames.CommandId.PLAY_ACTION:
            lost = True
        else:
            send(datagram)

    client.link.send = lossy  # type: ignore[method-assign]


def test_leaving_a_block_while_a_second_cancel_arrives_still_stops() -> None:
    async def program(world: World, url: str) -> None:
        async def block(left: asyncio.Event) -> None:
            async with rote.connect(url, family="g1") as robot:
                if not (await robot.actions()).taught:
                    async with robot.teach("drum"):
                        await robot.move_by_hand("drum", 3)
                        await asyncio.sleep(3)
                await robot.start("drum")  # a loop would end with its client
                while world.state().phase is not rote.Phase.PLAYING:
                    await asyncio.sleep(0.05)
                lose_first_stop(robot)
                left.set()
                await asyncio.sleep(3600)

        for turns in range(6):
            left = asyncio.Event()
            task = asyncio.create_task(block(left))
            await left.wait()
            task.cancel()
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert world.phase in (rote.Phase.RETURN, rote.Phase.NONE), turns
            await asyncio.sleep(5.0)

    run(with_robot(program))


def test_a_stop_that_fails_when_a_block_is_left_is_raised() -> None:
    async def program(world: World, url: str) -> None:
        with pytest.raises(rote.LinkError):
            async with rote.connect(url, family="g1") as robot:
                await looping(robot)
                client = client_of(robot, TeachingClient)
                assert client.link is not None
                client.link.close()  # nothing reaches the robot any more

    run(with_robot(program))


# ---- programs that end without closing ----------------------------------------------------------

SYNC = """
import rote, sys
robot = rote.sync.open(sys.argv[1])
teaching = robot.teach("wave")
take = teaching.__enter__()
while take.samples < 5:
    next(robot.states())
print("soft", flush=True)
{end}
"""
AWAIT = """
import asyncio, rote, sys
async def main():
    robot = await rote.open(sys.argv[1])
    teaching = robot.teach("wave")
    take = await teaching.__aenter__()
    while take.samples < 5:
        await asyncio.sleep(0.02)
    print("soft", flush=True)
{end}
"""
STOPPED_LOOP = """
import warnings; warnings.simplefilter("ignore", ResourceWarning)
loop = asyncio.new_event_loop()
loop.run_until_complete(main())  # a notebook's loop is stopped, never closed
"""
SLEEP = "import time; time.sleep(60)"
PROGRAMS: dict[str, tuple[str, int | None, int]] = {
    "its end": (SYNC.format(end=""), None, 0),
    "an error": (SYNC.format(end="raise KeyError('mine')"), None, 1),
    "SIGTERM": (SYNC.format(end=SLEEP), signal.SIGTERM, 128 + signal.SIGTERM),
    "Ctrl-C": (SYNC.format(end=SLEEP), signal.SIGINT, -signal.SIGINT),
    "sys.exit in a thread's program": (
        SYNC.format(end="import threading; threading.Thread(target=print).start(); sys.exit(3)"),
        None,
        3,
    ),
    "the end of asyncio.run": (AWAIT.format(end="") + "asyncio.run(main())", None, 0),
    "an error in asyncio.run": (
        AWAIT.format(end="    raise KeyError('mine')") + "asyncio.run(main())", None, 1,
    ),
    "a loop that is only stopped": (AWAIT.format(end="") + STOPPED_LOOP, None, 0),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("ending", PROGRAMS)
def test_a_program_that_never_closes_its_robot_leaves_the_arms_holding(ending: str) -> None:
    program, number, code = PROGRAMS[ending]

    async def watch(world: World, url: str) -> None:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-W", "error", "-c", program, url, stdout=-1, stderr=-1
        )
        assert child.stdout is not None
        assert child.stderr is not None
        try:
            said = (await child.stdout.readline()).decode()
            assert said == "soft\n", (await child.stderr.read()).decode()
            # A program that ends at once may have made them hold again before anybody looks.
            assert "teaching: the arms are soft" in [notice.message for notice in world.notices]
            if number is not None:
                child.send_signal(number)
            async with asyncio.timeout(SOON_S):
                assert await child.wait() == code
            assert not world.body.soft
            assert world.store.entries() == ()
            said = (await child.stderr.read()).decode()
            for complaint in ("never awaited", "destroyed", "never retrieved", "Exception ignored"):
                assert complaint not in said
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()

    asyncio.run(with_robot(watch))
