"""The one timer: put forward, never put off, and the same on every loop."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

import virtual
from rig import client_of, rig
from rote.errors import PeerLostError, RoteError
from rote.platform.loop import new_loop
from rote.transport.link import Alarm

LOOPS = {"asyncio": asyncio.new_event_loop, "rote's": new_loop, "virtual": virtual.VirtualLoop}


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[[Awaitable[None]], None]:
    def runs(story: Awaitable[None]) -> None:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(story)  # type: ignore[arg-type]

    return runs


def test_it_rings_once_at_the_earliest_time_it_was_set_for(
    run: Callable[[Awaitable[None]], None],
) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        rung: list[float] = []
        over = asyncio.Event()

        def ring() -> None:
            rung.append(loop.time())
            over.set()

        alarm = Alarm(ring)
        now = loop.time()
        alarm.set(float("inf"))
        for after_s in (3600.0, 0.02, 0.04, 0.02):
            alarm.set(now + after_s)
        assert alarm.due == now + 0.02
        await over.wait()
        assert rung[0] - now >= 0.015
        assert alarm.due == float("inf")
        await asyncio.sleep(0.05)
        assert len(rung) == 1

    run(story())


def test_what_is_due_already_can_still_be_put_forward(
    run: Callable[[Awaitable[None]], None],
) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        rung: list[bool] = []
        alarm = Alarm(lambda: rung.append(True))
        for ago_s in (0.0, 1.0, 0.5, 2.0):
            alarm.set(loop.time() - ago_s)
        await asyncio.sleep(0.02)
        assert rung == [True]

    run(story())


def test_it_may_be_set_again_while_it_rings_and_cleared_at_any_time(
    run: Callable[[Awaitable[None]], None],
) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        rung: list[bool] = []
        over = asyncio.Event()

        def ring() -> None:
            rung.append(True)
            alarm.set(loop.time() + 0.005)
            if len(rung) == 3:
                alarm.clear()
                alarm.clear()
                over.set()

        alarm = Alarm(ring)
        alarm.set(loop.time())
        await over.wait()
        await asyncio.sleep(0.02)
        assert len(rung) == 3

    run(story())


# ---- whose silence it was -----------------------------------------------------------------------


@pytest.mark.parametrize("wire", ["memory", "udp", "services"])
@pytest.mark.parametrize(
    ("stop_client", "words"),
    [
        (virtual.suspend, "this computer was suspended for 14.0 s and lost the robot at"),
        (virtual.hang, "this program stalled for 1"),
        (None, "has been silent for"),
    ],
)
def test_a_robot_is_not_called_silent_while_this_computer_did_not_listen(
    wire: str, stop_client: Callable[[float], None] | None, words: str
) -> None:
    async def story() -> None:
        async with rig(wire) as one, one.connect() as robot:
            await asyncio.sleep(1.0)
            lost: asyncio.Future[RoteError] = asyncio.get_running_loop().create_future()
            client_of(robot).on_loss(lost.set_result)
            await one.die()
            if stop_client is not None:
                stop_client(14.0)
            error = await asyncio.wait_for(lost, 5.0)
            assert isinstance(error, PeerLostError)
            assert words in str(error)
            assert "Look at the robot" in str(error.remedy)

    virtual.run(story())


@pytest.mark.parametrize("wire", ["memory", "udp", "services", "dds"])
@pytest.mark.parametrize("stop_client", [virtual.suspend, virtual.hang])
def test_a_robot_that_is_heard_right_after_a_stall_is_not_lost(
    wire: str, stop_client: Callable[[float], None]
) -> None:
    if wire == "dds":
        pytest.importorskip("cyclonedds")

    async def story() -> None:
        async with rig(wire) as one, one.connect() as robot:
            await asyncio.sleep(1.0)
            stop_client(2.0)
            await asyncio.sleep(3.0)
            await robot.stop()

    virtual.run(story())
