"""The WebRTC wire over and over, for long, and with robots that really die."""

import asyncio
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from rig import client_of, rig
from rote import connect
from rote.errors import PeerLostError, StageTimeoutError
from rote.session.rpc import RequestReceived, RpcSession
from rote.session.teaching import Role
from rote.transport.link import Carrier
from rote.transport.services.client import ServicesClient
from rote.transport.webrtc.connection import ChannelConnection
from webrtc_ends import Channel, census, on_channel, own_address, run

# ---- over and over, and for long ----------------------------------------------------------------


MANY = [10, pytest.param(100, marks=pytest.mark.soak)]
"""Connects in a row: what each leaves behind shows after a few."""


@pytest.mark.parametrize("connects", MANY)
def test_connects_and_disconnects_leave_no_task_no_socket_and_no_thread(connects: int) -> None:
    async def story() -> None:
        async with rig("webrtc") as one:
            async with one.connect() as robot:
                await robot.actions()
            before = await census()
            for _ in range(connects):
                async with one.connect() as robot:
                    await robot.actions()
            assert await census() == before

    run(story())


@pytest.mark.parametrize("connects", MANY)
def test_connects_that_fail_leave_nothing_either(connects: int) -> None:
    async def story() -> None:
        async with rig("webrtc") as one, one.connect():
            before = await census()
            for _ in range(connects):
                with pytest.raises(ConnectionError):
                    async with one.connect():
                        pass
            assert await census() == before

    run(story())


EVERY_S = 15.0
Send = Callable[[str | bytes], object]


class Mind:
    """A robot of nothing but a session: it answers everything and publishes one topic."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self.session = RpcSession(Role.ROBOT, now=self._loop.time())
        self.session.open(self._loop.time(), challenge="c0ffee")
        self._settle()
        self._timer = self._loop.call_later(EVERY_S, self._tick)

    def hear(self, message: str | bytes) -> None:
        self.session.receive(message, self._loop.time())
        self._settle()

    def rest(self) -> None:
        self._timer.cancel()

    def _tick(self) -> None:
        self.session.publish("rt/x", {"time_s": self._loop.time()})
        self.session.tick(self._loop.time())
        self._settle()
        self._timer = self._loop.call_later(EVERY_S, self._tick)

    def _settle(self) -> None:
        for event in self.session.events():
            if isinstance(event, RequestReceived):
                self.session.reply(event.token, data='{"data":500}')
        for message in self.session.outgoing():
            self._send(message)


class Near(Carrier):
    """Such a robot in this process."""

    def listen(self, receive: Callable[[str | bytes], None], lost: Callable[[], None]) -> None:
        self._soon = soon = asyncio.get_running_loop().call_soon
        self.mind = Mind(lambda message: soon(receive, message))

    def send(self, message: str | bytes) -> None:
        self._soon(self.mind.hear, message)

    async def close(self) -> None:
        self.mind.rest()


class Far(Channel):
    """Such a robot behind the real wire."""

    def speak(self) -> None:
        self.mind = Mind(self.end.send)

    def _hear(self, message: str | bytes) -> None:
        self.mind.hear(message)

    async def close(self) -> None:
        self.mind.rest()
        await super().close()


def traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def blocks() -> int:
    gc.collect()
    return sys.getallocatedblocks()


def containers(*sessions: RpcSession) -> list[dict[str, int]]:
    return [
        {name: len(value) for name, value in vars(session).items() if hasattr(value, "__len__")}
        for session in sessions
    ]


async def spend(
    minutes: int, port: ServicesClient, robot: Near | Far, memory: Callable[[], int]
) -> int:
    """Let time pass; return how much more memory is held at its end than after a sixth of it."""
    heard: Counter[str] = Counter()
    port.on_topic("rt/x", lambda message: heard.update([message.topic]))
    await asyncio.sleep(minutes * 10)
    early, held = memory(), containers(port.session, robot.mind.session)
    await asyncio.sleep(minutes * 50)
    more = memory() - early
    assert containers(port.session, robot.mind.session) == held
    assert heard["rt/x"] == pytest.approx(minutes * 60 / EVERY_S, abs=1)
    assert port.session.dropped == robot.mind.session.dropped == {}
    assert port.reconnects == 0
    return more


# There are 30 heartbeats a minute: each may leave less than the smallest object there is.
@pytest.mark.parametrize(
    ("minutes", "most_bytes"),
    [(20, 16 * 1024), pytest.param(60, 32 * 1024, marks=pytest.mark.soak)],
)
def test_an_hour_of_heartbeats_leaves_memory_flat(minutes: int, most_bytes: int) -> None:
    async def story() -> None:
        robot = Near()

        async def dial() -> Carrier:
            return robot

        port = ServicesClient("services://robot", ChannelConnection(dial))
        await port.open()
        tracemalloc.start()
        try:
            assert await spend(minutes, port, robot, traced) < most_bytes
        finally:
            tracemalloc.stop()
        await port.close()

    run(story())


# Heartbeats are sent every 2 s: a leak of two blocks each shows after 10 minutes, too.
@pytest.mark.parametrize("minutes", [10, pytest.param(60, marks=pytest.mark.soak)])
def test_an_hour_on_the_real_wire_leaves_memory_flat(minutes: int) -> None:
    async def story() -> None:
        robot = Far()
        async with on_channel(robot) as url, connect(url, family="g1") as g1:
            port = client_of(g1, ServicesClient)
            assert await spend(minutes, port, robot, blocks) < 500

    run(story())


# ---- real processes, in real time ---------------------------------------------------------------

# The process dies with this one (PR_SET_PDEATHSIG), so that none is left behind.
LAUNCH = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class RobotProcess(NamedTuple):
    """A simulated robot in a process of its own."""

    process: subprocess.Popen[str]

    def ready(self) -> tuple[int, str]:
        """Wait until it can be reached; return the process's id and the robot's URL."""
        assert self.process.stdout is not None
        return self.process.pid, json.loads(self.process.stdout.readline())["url"]


@contextmanager
def robot_process() -> Iterator[RobotProcess]:
    """Start a simulated robot; it ends with the block."""
    where = ("--webrtc", own_address(), "--serial", "", "--store", ":memory:", "--json")
    command = [sys.executable, "-c", LAUNCH, "-m", "rote", "sim", *where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield RobotProcess(process)
        finally:
            process.kill()


async def measure_loss(pid: int, url: str, how: signal.Signals) -> float:
    """Do something to a robot, and return after how many seconds a waiting call failed."""
    async with connect(url, reconnect=False, family="g1") as robot:
        waiting = asyncio.create_task(robot.perform("hug"))
        await asyncio.sleep(0.3)
        os.kill(pid, how)
        began = time.monotonic()
        with pytest.raises(PeerLostError, match="silent"):
            await waiting
        return time.monotonic() - began


@pytest.mark.quiet
def test_a_robot_that_is_killed_or_frozen_is_reported_in_time() -> None:
    async def story(killed: tuple[int, str], frozen: tuple[int, str]) -> None:
        killed_s, frozen_s = await asyncio.gather(
            measure_loss(*killed, signal.SIGKILL), measure_loss(*frozen, signal.SIGSTOP)
        )
        assert killed_s <= 3.0
        assert frozen_s <= 5.0

    with robot_process() as one, robot_process() as other:
        asyncio.run(story(one.ready(), other.ready()))


@pytest.mark.quiet
def test_a_silent_port_is_given_up_at_the_limit_in_real_time() -> None:
    async def story(url: str) -> None:
        async with connect(url, timeout=1.0):
            pass

    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(StageTimeoutError):
            asyncio.run(story(f"webrtc://127.0.0.1:{silent.getsockname()[1]}"))
        assert 0.9 < time.monotonic() - began < 2.5
