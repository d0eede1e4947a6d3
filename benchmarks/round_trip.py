"""Claim: asking a robot takes hardly longer than asyncio takes to send any datagram and hear back.

Ours asks the simulated robot for its list of actions, over UDP on this machine. The peer sends 63
bytes, as many as that request has, to a bare asyncio protocol that sends them back, with one future
per request. Servers are processes of their own. The simulated robot does what it always does:
physics at 500 Hz, and 50 state frames a second to the client, which reads them.

Both are measured twice. With both ends on one core the time is what the software costs. With a core
for each, waking the other core is part of the time, as it is between two computers.
"""

import asyncio
import multiprocessing
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from statistics import median, quantiles

from benchmarks.table import Row
from rote import messages as m
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport import Link, Receiver, open_link
from rote.transport.teaching import TeachingClient

ROUNDS = 7
WARM_UP = 300
REQUESTS = 1000
SIZE = 63
P50_MOST = 1.5

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


def serve(which: str, core: int, ready: Connection) -> None:
    os.sched_setaffinity(0, {core})
    asyncio.run(SERVERS[which](ready))


@contextmanager
def server(which: str, core: int) -> Iterator[str]:
    """Run a server for as long as the block runs; yields its URL."""
    spawn = multiprocessing.get_context("spawn")
    ready, theirs = spawn.Pipe()
    process = spawn.Process(target=serve, args=(which, core, theirs), daemon=True)
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


def compare(client_core: int, server_core: int) -> dict[str, tuple[float, float]]:
    """Take turns, with a fresh server each time; return the medians of p50 and p99, in us."""
    taken: dict[str, list[tuple[float, float]]] = {"simulator": [], "echo": []}
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {client_core})
    try:
        for _ in range(ROUNDS):
            for which, client in (("simulator", time_rote), ("echo", time_echo)):
                with server(which, server_core) as url:
                    taken[which].append(asyncio.run(client(url)))
    finally:
        os.sched_setaffinity(0, before)
    return {
        which: (median(p50 for p50, _ in values), median(p99 for _, p99 in values))
        for which, values in taken.items()
    }


def run() -> list[Row]:
    cores = sorted(os.sched_getaffinity(0))
    rows = []
    for where, client_core in (("one core", cores[-1]), ("two cores", cores[0])):
        us = compare(client_core, server_core=cores[-1])
        ours, echo = us["simulator"], us["echo"]
        rows += [
            Row(f"round trip: p50, {where}", "us", ours[0], echo[0], "echo", at_most=P50_MOST),
            Row(f"round trip: p99, {where}", "us", ours[1], echo[1], "echo"),
        ]
    return rows
