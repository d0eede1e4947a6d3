"""A simulated robot on a wire, for tests that must hold on every wire."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rote import messages as m
from rote.connection import connect
from rote.messages import Mode
from rote.robot.g1 import G1
from rote.session.teaching import Timing
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport import Link, Receiver
from rote.transport.impair import Impairment
from rote.transport.memory import MemoryPort
from rote.transport.teaching import TeachingClient

WIRES = ("memory", "udp")


class Rig:
    """One simulated robot and the way to it."""

    def __init__(self, simulator: Simulator, url: str, port: MemoryPort | None) -> None:
        self.simulator = simulator
        self.world = simulator.world
        self.url = url
        self._port = port

    @asynccontextmanager
    async def connect(self, timeout: float = 5.0) -> AsyncIterator[G1]:
        """Connect one more client."""
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
        else:
            yield Rig(simulator, "memory://g1", simulator.serve_memory())
    finally:
        await simulator.close()
        store.close()
