"""Claim: over WebRTC, rote connects sooner than the usual client, asks as fast, and is smaller.

The peer is `unitree-webrtc-connect`, unmodified (`scripts/peers/clients` gets it). Both connect to
the same simulated robot, in turns, signalling as a G1 of firmware 1.4 does; the robot has no delays
of its own here. Each client is a process of its own, and so is the robot; clients share a core, the
robot has another where there is one. Imports are not part of the time to connect: a first turn of
each client, not counted, makes them.

A request asks the motion_switcher which controller is in charge. Rote's client always watches the
robot (joints, mode and arms, 70 messages a second), so for the goal the peer watches the same; the
row below has the peer watching nothing. Memory is what a fresh process has after connecting and 100
requests.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from statistics import median, quantiles
from tempfile import TemporaryFile
from typing import IO, Any

from benchmarks.peers import PEERS, PeerMissingError
from benchmarks.size import process_context, size
from benchmarks.table import Row
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World

RELEASE = "2.2.0"
ROUNDS = size(20, 2)
REQUESTS = size(50, 2)
FRESH = size(2, 0)
"""Processes whose memory is measured, beside those that take turns."""
SETTLE_S = 0.1
"""Between two clients, so that the end of one is not the other's business."""
CONNECT_MAX, REQUEST_MAX, MEMORY_MAX = 0.8, 1.0, 0.8

HOST = "127.99.0.1"
"""An address of its own: the ports are fixed in the peer."""
WHO = ("rote", "peer", "rote's loop")[: size(3, 2)]

Turn = dict[str, Any]


async def _serve(ready: Connection) -> None:
    simulator = Simulator(World(Store(":memory:")))
    await simulator.serve_webrtc(HOST, signalling="2", latency=False)
    while True:
        while simulator.clients:  # noqa: ASYNC110 - nobody tells when the last one is gone
            await asyncio.sleep(0.01)
        await asyncio.sleep(SETTLE_S)
        ready.send("free")
        await asyncio.to_thread(ready.recv)


def serve(core: int, ready: Connection) -> None:
    os.sched_setaffinity(0, {core})
    asyncio.run(_serve(ready))


@contextmanager
def robot(core: int) -> Iterator[Callable[[], None]]:
    """Run the robot for as long as the block runs; yields what waits until no client is in."""
    context = process_context()
    ready, theirs = context.Pipe()
    process = context.Process(target=serve, args=(core, theirs), daemon=True)
    process.start()
    theirs.close()  # so that `recv` ends where the robot does

    def wait_until_free() -> None:
        ready.send("are you?")
        ready.recv()

    try:
        ready.recv()
        yield wait_until_free
    finally:
        process.kill()
        process.join()


@dataclass
class Client:
    """A client's process."""

    process: "subprocess.Popen[str]"
    printed: IO[str]

    def turn(self, requests: int) -> Turn:
        """Let it connect, ask so many times, and leave."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(requests, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.printed.seek(0)
            raise RuntimeError(f"the client ended: {self.printed.read().strip()[-200:]}")
        turn: Turn = json.loads(line)
        return turn


@contextmanager
def client(who: str, core: int) -> Iterator[Client]:
    """Run a client for as long as the block runs."""
    path = os.pathsep.join([str(PEERS / RELEASE), str(PEERS / "needs")])
    command = [sys.executable, "-m", "benchmarks.webrtc_client", who, HOST, str(core)]
    with (
        TemporaryFile("w+") as printed,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=printed,
            env=os.environ | ({"PYTHONPATH": path} if who == "peer" else {}),
            text=True,
        ) as process,
    ):
        try:
            yield Client(process, printed)
        finally:
            process.kill()


def take_turns(core: int, wait_until_free: Callable[[], None]) -> dict[str, list[Turn]]:
    """Let both connect, ask and leave in turns; the first turn of each is to warm up."""
    taken: dict[str, list[Turn]] = {who: [] for who in WHO}
    with ExitStack() as stack:
        clients = {who: stack.enter_context(client(who, core)) for who in WHO}
        for _ in range(ROUNDS + 1):
            for who, one in clients.items():
                turn = one.turn(REQUESTS)
                wait_until_free()
                taken[who].append(turn)
    return taken


def fresh_mb(who: str, core: int, wait_until_free: Callable[[], None]) -> float:
    """Return the memory of a fresh process, after 100 requests."""
    with client(who, core) as one:
        turn = one.turn(REQUESTS)  # as many before it watches as after
        wait_until_free()
        return float(turn["memory_mb"])


def run() -> list[Row]:
    if not (PEERS / ".ready").exists():
        raise PeerMissingError(f"the peer is not in {PEERS}; get it with: scripts/peers/clients")
    cores = sorted(os.sched_getaffinity(0))
    with robot(cores[-1]) as wait_until_free:
        turns = take_turns(cores[0], wait_until_free)
        first = {who: float(turns[who].pop(0)["memory_mb"]) for who in WHO}
        mb = {
            who: median(
                [first[who], *(fresh_mb(who, cores[0], wait_until_free) for _ in range(FRESH))]
            )
            for who in WHO[:2]
        }
    connect_ms = {who: [1e3 * turn["connect_s"] for turn in turns[who]] for who in WHO}
    watching, unwatched = (
        {who: [1e6 * s for turn in turns[who] for s in turn[which]] for who in WHO}
        for which in ("watching_s", "unwatched_s")
    )
    peer = f"unitree-webrtc-connect {RELEASE}"

    def row(
        claim: str,
        unit: str,
        values: dict[str, float],
        at_most: float | None = None,
        ours: str = "rote",
    ) -> Row:
        return Row(f"webrtc: {claim}", unit, values[ours], values["peer"], peer, at_most=at_most)

    def p(n: int, values: dict[str, list[float]]) -> dict[str, float]:
        return {who: quantiles(values[who], n=100)[n - 1] for who in WHO}

    rows = [
        row(f"connect, p50 of {ROUNDS}", "ms", p(50, connect_ms), CONNECT_MAX),
        row(f"request, p50 of {ROUNDS * REQUESTS}", "us", p(50, watching), REQUEST_MAX),
        row("request, p95", "us", p(95, watching)),
        row("request, p50, the peer not watching", "us", p(50, unwatched)),
        row("resident memory", "MB", mb, MEMORY_MAX),
    ]
    if "rote's loop" in WHO:
        own_loop = row("request, p50, rote on its own loop", "us", p(50, watching), ours=WHO[2])
        rows.insert(-1, own_loop)
    return rows
