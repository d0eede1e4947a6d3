"""The simulated robot on its wires: its clock, its strangers and its end."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest

from rote import messages as m
from rote.errors import LinkError
from rote.sim.server import MAX_CATCH_UP_S, TICK_S, Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.wire.teaching import codec as wire
from virtual import VirtualLoop, run


class HeldUpLoop(VirtualLoop):
    """A loop whose process can be held up, as by a debugger or a closed lid."""

    lost_s = 0.0

    def time(self) -> float:
        return super().time() + self.lost_s


class MillisecondLoop(VirtualLoop):
    """Counts whole milliseconds and rounds delays to them, as uvloop does."""

    timers = 0

    def time(self) -> float:
        # A sum of ticks is not exact: after this long it is past the millisecond that it means.
        return 35_000.0 + math.floor(1000.0 * super().time()) / 1000.0

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, **options: Any
    ) -> asyncio.TimerHandle:
        self.timers += 1
        self.hang(0.00001)  # a call takes time
        now = self.time()
        when = now + round(1000.0 * (when - now)) / 1000.0
        return super().call_at(when, callback, *args, **options)


@asynccontextmanager
async def simulating() -> AsyncIterator[Simulator]:
    with closing(Store(":memory:")) as store:
        simulator = Simulator(World(store))
        try:
            yield simulator
        finally:
            await simulator.close()


def test_the_robots_clock_keeps_up_with_the_loops() -> None:
    async def work() -> tuple[float, float]:
        async with simulating() as simulator:
            await asyncio.sleep(1.0)
            first = simulator.world.time_s
            await asyncio.sleep(2.0)
            return first, simulator.world.time_s

    first, second = run(work())
    assert first == pytest.approx(1.0, abs=2 * TICK_S)
    assert second == pytest.approx(3.0, abs=2 * TICK_S)


def test_between_two_ticks_the_robot_waits_though_the_loop_counts_milliseconds() -> None:
    async def work() -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, MillisecondLoop)
        async with simulating() as simulator:
            await asyncio.sleep(10.0)
            return simulator.world.time_s, loop.timers

    with asyncio.Runner(loop_factory=MillisecondLoop) as runner:
        passed_s, timers = runner.run(work())
    assert passed_s == pytest.approx(10.0, abs=2 * TICK_S)
    assert timers < 1.1 * 10.0 / TICK_S


def test_while_the_process_is_held_up_the_robots_time_stands_still() -> None:
    async def work() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HeldUpLoop)
        async with simulating() as simulator:
            await asyncio.sleep(1.0)
            loop.lost_s = 60.0
            await asyncio.sleep(0.1)
            return simulator.world.time_s

    with asyncio.Runner(loop_factory=HeldUpLoop) as runner:
        passed_s = runner.run(work())
    assert 1.0 < passed_s < 1.1 + MAX_CATCH_UP_S + 2 * TICK_S


def test_after_its_end_time_stands_still_and_a_second_end_does_no_harm() -> None:
    async def work() -> tuple[float, float]:
        async with simulating() as simulator:
            await asyncio.sleep(0.5)
            await simulator.close()
            ended = simulator.world.time_s
            await asyncio.sleep(1.0)
            return ended, simulator.world.time_s

    ended, later = run(work())
    assert ended == later > 0


def frame(type_: wire.MessageType, command: int = 0) -> bytes:
    return wire.encode(wire.Frame(command=command, sequence=0, type=type_))


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        b"hello",
        bytes(1500),
        frame(wire.MessageType.COMMAND, 0x09)[:-1] + b"?",
        frame(wire.MessageType.HEARTBEAT),
        frame(wire.MessageType.STATE),
    ],
    ids=["nothing", "text", "zeros", "a wrong checksum", "a heartbeat", "a state"],
)
def test_a_stranger_who_asks_for_nothing_is_neither_kept_nor_answered(datagram: bytes) -> None:
    answers: list[bytes] = []

    async def work() -> int:
        async with simulating() as simulator:
            simulator.serve_memory().connect(answers.append).send(datagram)
            await asyncio.sleep(0.1)
            return simulator.clients

    assert run(work()) == 0
    assert answers == []


def test_a_stranger_who_asks_without_greeting_is_told_to_greet() -> None:
    answers: list[bytes] = []
    command, payload = wire.encode_command(m.StopMotion())

    async def work() -> None:
        async with simulating() as simulator:
            link = simulator.serve_memory().connect(answers.append)
            link.send(wire.encode(wire.Frame(command=command, sequence=3, payload=payload)))
            await asyncio.sleep(0.1)

    run(work())
    replies = [wire.decode(answer) for answer in answers]
    codes = [int.from_bytes(r.payload[:4]) for r in replies if r.command == command]
    assert codes[:1] == [m.Code.NOT_INITIALISED]


def url_of(host: str) -> Coroutine[Any, Any, str]:
    async def work() -> str:
        async with simulating() as simulator:
            return await simulator.serve_udp(host, 0)

    return work()


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_the_url_of_a_port_is_one_that_can_be_connected_to(host: str, shown: str) -> None:
    try:
        url = run(url_of(host))
    except LinkError:
        pytest.skip(f"this machine has no {host}")
    prefix, _, port = url.rpartition(":")
    assert prefix == f"udp://{shown}"
    assert int(port) > 0
