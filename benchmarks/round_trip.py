"""Claim: asking a robot takes hardly longer than asyncio takes to send any datagram and hear back.

Ours asks the simulated robot for its list of actions, over UDP on this machine. The peer sends 63
bytes, as many as that request has, to a bare asyncio protocol that sends them back, with one future
per request. Servers are processes of their own. The simulated robot does what it always does:
physics at 500 Hz, and 50 state frames a second to the client, which reads them.

The goal is for two programs with a core each, as they run on a laptop; waking the other core is
part of the time there. With both ends on one core the time is what the software alone costs. Ours
runs on the loop the command line chooses (uvloop's where it is installed); the rows below tell how
much of that is the loop's doing.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from statistics import median, quantiles
from typing import Any, TypeVar

from benchmarks.size import process_context, size
from benchmarks.table import Row
from rote import messages as m
from rote.platform.loop import new_loop
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport.link import Link, Receiver, open_link
from rote.transport.udp.client import TeachingClient

ROUNDS = size(5, 1)
WARM_UP = size(300, 10)
REQUESTS = size(1000, 50)
SIZE = 63
P50_MAX, SAME_LOOP_MAX = 1.5, 1.8

T = TypeVar("T")
Ask = Callable[[], Awaitable[object]]


# ---- the servers, each in a process of its own --------------------------------------------------


async def serve_simulator(ready: Connection) -> None:
    simulator = Simulator(World(Store(":memory:")))
    ready.send(await simulator.serve_udp("127.0.0.1", 0))
    await asyncio.Event().wait()


class Echo(asyncio.DatagramProtocol):
    """Sends back what arrives."""

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        """Keep the socket."""
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Send it back."""
        self.transport.sendto(data, addr)


async def serve_echo(ready: Connection) -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Echo, local_addr=("127.0.0.1", 0))
    ready.send("udp://127.0.0.1:{1}".format(*transport.get_extra_info("sockname")))
    await asyncio.Event().wait()


SERVERS = {"simulator": serve_simulator, "echo": serve_echo}


LOOPS = {"rote's loop": new_loop, "asyncio": asyncio.new_event_loop}


def run_on(loop: str, work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(work)


def serve(which: str, loop: str, core: int, ready: Connection) -> None:
    os.sched_setaffinity(0, {core})
    run_on(loop, SERVERS[which](ready))


@contextmanager
def server(which: str, loop: str, core: int) -> Iterator[str]:
    """Run a server for as long as the block runs; yields its URL."""
    context = process_context()
    ready, theirs = context.Pipe()
    process = context.Process(target=serve, args=(which, loop, core, theirs), daemon=True)
    process.start()
    try:
        yield ready.recv()
    finally:
        process.kill()
        process.join()


# ---- the clients --------------------------------------------------------------------------------


async def time_requests(ask: Ask) -> tuple[float, float]:
    """Return the median and the 99th percentile of one request after the other, in us."""
    for _ in range(WARM_UP):
        await ask()
    taken = []
    for _ in range(REQUESTS):
        start = time.perf_counter()
        await ask()
        taken.append(1e6 * (time.perf_counter() - start))
    return median(taken), quantiles(taken, n=100)[98]


async def time_rote(url: str) -> tuple[float, float]:
    async def dial(receive: Receiver) -> Link:
        return await open_link(url, receive)

    client = TeachingClient(url)
    await client.open(dial)
    try:
        return await time_requests(lambda: client.ask(m.ListActions()))
    finally:
        await client.close()


class Asker(asyncio.DatagramProtocol):
    """Sends a datagram and waits for the next one: one future per request."""

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        """Keep the socket."""
        self.transport = transport
        self.loop = asyncio.get_running_loop()

    def ask(self) -> asyncio.Future[bytes]:
        """Return what will be the answer."""
        self.answer: asyncio.Future[bytes] = self.loop.create_future()
        self.transport.sendto(bytes(SIZE))
        return self.answer

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Take the answer."""
        self.answer.set_result(data)


async def time_echo(url: str) -> tuple[float, float]:
    loop = asyncio.get_running_loop()
    host, port = url.removeprefix("udp://").split(":")
    transport, asker = await loop.create_datagram_endpoint(Asker, remote_addr=(host, int(port)))
    try:
        return await time_requests(asker.ask)
    finally:
        transport.close()


# ---- the comparison -----------------------------------------------------------------------------


CASES = {
    "rote": ("simulator", "rote's loop"),
    "echo": ("echo", "asyncio"),
    "rote on asyncio": ("simulator", "asyncio"),
    "echo on rote's loop": ("echo", "rote's loop"),
}


def compare(client_core: int, server_core: int) -> dict[str, tuple[float, float]]:
    """Take turns, with a fresh server each time; return the medians of p50 and p99, in us."""
    taken: dict[str, list[tuple[float, float]]] = {case: [] for case in CASES}
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {client_core})
    try:
        for _ in range(ROUNDS):
            for case, (which, loop) in CASES.items():
                client = time_rote if which == "simulator" else time_echo
                with server(which, loop, server_core) as url:
                    taken[case].append(run_on(loop, client(url)))
    finally:
        os.sched_setaffinity(0, before)
    return {
        case: (median(p50 for p50, _ in values), median(p99 for _, p99 in values))
        for case, values in taken.items()
    }


def run() -> list[Row]:
    cores = sorted(os.sched_getaffinity(0))
    rows = []
    placements = (("two cores", cores[0]), ("one core", cores[-1]))
    for where, client_core in placements[: size(2, 1)]:
        us = compare(client_core, server_core=cores[-1])
        goal, same_goal = (P50_MAX, SAME_LOOP_MAX) if where == "two cores" else (None, None)
        ours, echo = us["rote"], us["echo"]
        plain, quick = us["rote on asyncio"][0], us["echo on rote's loop"][0]
        rows += [
            Row(f"round trip: p50, {where}", "us", ours[0], echo[0], "asyncio echo", at_most=goal),
            Row(f"round trip: p99, {where}", "us", ours[1], echo[1], "asyncio echo"),
            Row(f"  both on asyncio, {where}", "us", plain, echo[0], "asyncio echo"),
            Row(
                f"  both on rote's loop, {where}",
                "us",
                ours[0],
                quick,
                "the same loop's echo",
                at_most=same_goal,
            ),
        ]
    return rows
