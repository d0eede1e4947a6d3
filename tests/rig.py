"""A simulated robot on a wire, for tests that must hold on every wire."""

import asyncio
import functools
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar, overload

import numpy as np
import pytest

import virtual
from rote import messages as m
from rote.connection import connect
from rote.model.family import Build
from rote.model.g1 import G1_29, Mode
from rote.motion.track import Array
from rote.robot.api_values import RobotClient
from rote.robot.message_robot import G1
from rote.session import rpc as rpc_session
from rote.session.teaching import TeachingTiming
from rote.sim.firmware import firmware_named, firmware_of
from rote.sim.quirks import quirks_named
from rote.sim.rpc_server import RpcClientSession
from rote.sim.server import Simulator
from rote.sim.services import Services
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport.impair import Impairment
from rote.transport.link import Carrier, Link, Receiver
from rote.transport.services.client import ServicesClient
from rote.transport.udp.client import TeachingClient
from rote.transport.webrtc.connection import ChannelConnection
from rote.wire.webrtc.channel import SIMULATED

MEMORY = pytest.param("memory", marks=pytest.mark.soak)
"""Teaching frames without sockets, by which nearly all other tests reach their robot: what must
hold on every wire, `make soak` alone runs on this one, too."""
FRAMES = ("udp", MEMORY)
"""Teaching frames, over sockets and in memory."""
WIRES = ("udp", "webrtc", "dds", MEMORY)
"""Those, and a G1's services over its real wires."""
DDS_HZ = 100.0
"""How often the robot tells its joints on DDS here. A real one does it five times as often, which
would cost every test five times as much and show nothing more."""

SERVICES_HZ = 25.0
"""The same over WebRTC, where a real one does it twice as often, for tests that ask for it."""


_Client = TypeVar("_Client")


@overload
def client_of(robot: object) -> RobotClient: ...


@overload
def client_of(robot: object, kind: type[_Client]) -> _Client: ...


def client_of(robot: Any, kind: type[Any] = object) -> Any:
    """Return the client of a connected robot, for requests and faults that a robot lacks."""
    client = robot._client
    assert isinstance(client, kind)
    return client


@functools.cache
def free_domain(_use: str = "rig") -> int:
    """Return a DDS domain that nobody else tests in on this computer, the same for each use."""
    for domain in range(2, 100):
        # Held as long as this process lives; DDS itself uses the first 200 ports of a domain.
        lock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            lock.bind(("127.0.0.1", 7400 + 250 * domain + 249))
        except OSError:
            lock.close()
        else:
            _LOCKS.append(lock)
            return domain
    raise AssertionError("no DDS domain is free")


_LOCKS: list[socket.socket] = []


class Pipe(Carrier):
    """Messages between a client and the simulated robot's services, through the event loop."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._loop = asyncio.get_running_loop()
        self._cut = False

    def listen(self, receive: Callable[[str | bytes], None], lost: Callable[[], None]) -> None:
        def to_client(message: str | bytes) -> None:
            if not self._cut:
                self._loop.call_soon(receive, message)

        self.robot = RpcClientSession(self._services, to_client, challenge=f"{SIMULATED}c0ffee")

    def send(self, message: str | bytes) -> None:
        if not self._cut:
            self._loop.call_soon(self.robot.receive, message)

    async def close(self) -> None:
        self.cut()
        self.robot.close()

    def cut(self) -> None:
        """As if the robot were dead."""
        self._cut = True


class Rig:
    """One simulated robot and the way to it."""

    def __init__(self, simulator: Simulator, url: str) -> None:
        self.simulator = simulator
        self.world = simulator.world
        self.url = url
        self.wire = url.partition(":")[0]
        self.has_services = self.wire in ("services", "webrtc", "dds")
        services_hz = self.world.firmware.quirks.lowstate_hz or 50.0
        self.recording_hz = {"dds": DDS_HZ, "services": services_hz, "webrtc": services_hz}.get(
            self.wire, 100.0
        )
        """How often the robot reports while it records."""
        self.start_s = 0.4 if self.has_services else 0.0
        """How long the robot takes to say that it records."""
        self.holds_after_s = 10.0 if self.has_services else 13.5
        """How soon arms hold that nobody keeps soft."""
        self.memory = simulator.serve_memory()
        self._services = Services(simulator.world)
        self.pipes: list[Pipe] = []
        self.mute = False
        """Whether the services say nothing to new clients."""

    async def die(self, *, silently_for_the_client: bool = True) -> None:
        """The robot ends without a word; or only its clients do."""
        if silently_for_the_client:
            await self.simulator.close()
        for pipe in self.pipes:
            pipe.cut()

    @asynccontextmanager
    async def connect(self, timeout: float = 5.0) -> AsyncIterator[G1]:
        """Connect one more client."""
        way: AbstractAsyncContextManager[G1]
        if self.wire == "services":
            way = self._connect_services(timeout)
        elif self.wire == "memory":
            way = self.bystander(timeout)
        else:
            way = connect(self.url, family="g1", timeout=timeout)
        async with way as robot:
            yield robot

    @asynccontextmanager
    async def bystander(self, timeout: float = 5.0) -> AsyncIterator[G1]:
        """Connect a client by memory, whatever the wire: some robots let only one in by theirs."""

        async def dial(receive: Receiver) -> Link:
            return self.memory.connect(receive)

        client = TeachingClient("memory://g1", TeachingTiming(connect_s=timeout))
        await client.open(dial)
        try:
            yield G1(client)
        finally:
            await client.close()

    @asynccontextmanager
    async def _connect_services(self, timeout: float) -> AsyncIterator[G1]:
        async def dial() -> Carrier:
            pipe = Pipe(self._services)
            self.pipes.append(pipe)
            if self.mute:
                pipe.cut()
            return pipe

        timing = rpc_session.ChannelTiming(connect_s=timeout, answer_s=rpc_session.PATIENT_S)
        client = ServicesClient(self.url, ChannelConnection(dial, timing))
        await client.open()
        try:
            yield G1(client)
        finally:
            await client.close()

    def fill(self, count: int) -> None:
        """Put `count` small actions into the robot's store."""
        for number in range(count):
            save = m.SaveAction(
                name=f"stored {number}",
                created_s=0,
                duration_ms=500,
                keyframes=(m.Keyframe(joint=15, time_ms=400, value_rad=0.1),),
            )
            assert self.world.obey("test", save) == m.Status(m.Code.OK)


class Body:
    """Records the joints of a simulated robot at each of its ticks."""

    def __init__(self, one: Rig) -> None:
        self._simulator, self._world = one.simulator, one.world
        self.rows: list[Array] = []
        one.simulator._publishers.append(self)  # type: ignore[arg-type]

    def publish(self) -> None:
        self.rows.append(self._world.body.joints_rad.copy())

    @property
    def peak_rad_s(self) -> float:
        """The highest speed of any joint since the last `forget`."""
        return float(np.abs(np.diff(self.rows, axis=0)).max()) / self._simulator._tick_s

    def forget(self) -> None:
        del self.rows[:-1]

    def go_on(self, seconds: float, stop_client: Callable[[float], None]) -> None:
        """Let the robot go on by itself while its client does not run."""
        tick_s = self._simulator._tick_s
        for _ in range(round(seconds / tick_s)):
            stop_client(tick_s)
            self._world.advance(tick_s)
            if stop_client is virtual.hang:
                self._simulator._next_at += tick_s
            for publisher in self._simulator._publishers:
                publisher.publish()


@asynccontextmanager
async def rig(
    wire: str,
    *,
    mode: int = Mode.WALK,
    impairment: Impairment | None = None,
    polite: bool = True,
    quirks: tuple[str, ...] = (),
    build: Build = G1_29,
    version: str | None = None,
    services_hz: float | None = None,
) -> AsyncIterator[Rig]:
    """Run a simulated robot on `wire` for as long as the block runs; a polite one unless told.

    `version` names its firmware, if it is not the usual one of the build. `services_hz` is how
    often its joints are told by WebRTC, if no quirk says so.
    """
    store = Store(":memory:")
    usual = firmware_of(build) if version is None else firmware_named(version, build)
    firmware = replace(usual, quirks=quirks_named(quirks))
    if wire in ("services", "webrtc"):
        firmware.quirks.lowstate_hz = firmware.quirks.lowstate_hz or services_hz
    world = World(store, build=build, mode=mode, firmware=firmware, polite=polite)
    simulator = Simulator(world, impairment=impairment)
    try:
        url = f"{wire}://{build.family}"
        if wire == "udp":
            url = await simulator.serve_udp("127.0.0.1", 0)
        elif wire == "webrtc":
            url = (await simulator.serve_webrtc("127.0.0.1", 0)).url
        elif wire == "dds":
            url = (await simulator.serve_dds("lo", free_domain(), lowstate_hz=DDS_HZ)).url
        yield Rig(simulator, url)
    finally:
        await simulator.close()
        store.close()
