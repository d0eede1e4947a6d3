"""A simulated robot on a wire, for tests that must hold on every wire."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from rote import messages as m
from rote.connection import connect
from rote.messages import Mode
from rote.robot.g1 import G1
from rote.session import rpc as rpc_session
from rote.session.teaching import Timing
from rote.sim.rpc_server import RpcClientSession
from rote.sim.server import Simulator
from rote.sim.services import Services
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport import Link, Receiver
from rote.transport.impair import Impairment
from rote.transport.memory import MemoryPort
from rote.transport.rpc import Carrier, RpcPort
from rote.transport.teaching import TeachingClient

WIRES = ("memory", "udp")
"""Teaching frames, in memory and over sockets."""


class Pipe(Carrier):
    """Messages between a client and the simulated robot's services, through the event loop."""

    def __init__(self, services: Services, receive: Callable[[str | bytes], None]) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._cut = False

        def to_client(message: str | bytes) -> None:
            if not self._cut:
                loop.call_soon(receive, message)

        self.robot = RpcClientSession(services, to_client, challenge="c0ffee")

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

    def __init__(self, simulator: Simulator, url: str, port: MemoryPort | None) -> None:
        self.simulator = simulator
        self.world = simulator.world
        self.url = url
        self._port = port
        self._services = Services(simulator.world)
        self._pipes: list[Pipe] = []
        self.mute = False
        """Whether the services say nothing to new clients."""

    async def die(self, *, silently_for_the_client: bool = True) -> None:
        """The robot ends without a word; or only its clients do."""
        if silently_for_the_client:
            await self.simulator.close()
        for pipe in self._pipes:
            pipe.cut()

    @asynccontextmanager
    async def connect(self, timeout: float = 5.0) -> AsyncIterator[G1]:
        """Connect one more client."""
        if self.url.startswith("services"):
            async with self._connect_services(timeout) as robot:
                yield robot
            return
        if self._port is None:
            async with connect(self.url, timeout=timeout) as robot:
                yield robot
            return
        port = self._port

        async def dial(receive: Receiver) -> Link:
            return port.connect(receive)

        client = TeachingClient(self.url, Timing(connect_s=timeout))
        await client.open(dial)
        try:
            yield G1(client)
        finally:
            await client.close()

    @asynccontextmanager
    async def _connect_services(self, timeout: float) -> AsyncIterator[G1]:
        async def dial(receive: Callable[[str | bytes], None]) -> Carrier:
            pipe = Pipe(self._services, receive)
            self._pipes.append(pipe)
            if self.mute:
                pipe.cut()
            return pipe

        client = RpcPort(self.url, rpc_session.Timing(connect_s=timeout), simulated=True)
        await client.open(dial)
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


@asynccontextmanager
async def rig(
    wire: str, *, mode: Mode = Mode.WALK, impairment: Impairment | None = None
) -> AsyncIterator[Rig]:
    """Run a simulated robot on `wire` for as long as the block runs."""
    store = Store(":memory:")
    simulator = Simulator(World(store, mode=mode), impairment=impairment)
    try:
        if wire == "udp":
            yield Rig(simulator, await simulator.serve_udp("127.0.0.1", 0), None)
        elif wire == "services":
            yield Rig(simulator, "services://g1", None)
        else:
            yield Rig(simulator, "memory://g1", simulator.serve_memory())
    finally:
        await simulator.close()
        store.close()
