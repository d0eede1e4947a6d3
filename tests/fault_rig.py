"""Simulated robots whose bodies are recorded, for `test_faults.py`.

Each robot has a link that can be cut, answers and states that can be lost, a clock that goes on
while the client's computer stalls or is suspended, and can be restarted at the same address.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import virtual
from rig import DDS_HZ, SERVICES_HZ, free_domain
from rote import messages as m
from rote.connection import connect, connect_a1
from rote.messages import Phase
from rote.model.g1 import Mode
from rote.robot.message_robot import G1
from rote.session.a1 import Level
from rote.session.teaching import TeachingTiming
from rote.sim.dds import DdsDoor
from rote.sim.presets import RELEASE
from rote.sim.quadruped.body import BRAKE_NM_S_RAD, LIMP, Drive
from rote.sim.quadruped.simulator import A1Simulator
from rote.sim.quadruped.world import A1World
from rote.sim.quirks import Quirks
from rote.sim.rpc_server import RpcClientSession
from rote.sim.server import Simulator
from rote.sim.services import ServiceAnswer, Services
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport.dds import types
from rote.transport.impair import Disturber, Impairment
from rote.transport.link import Link, Receiver
from rote.transport.memory import MemoryPort
from rote.transport.udp.client import TeachingClient
from rote.wire.services import rpc
from rote.wire.teaching.codec import MessageType

_SLICE_S = 0.01
"""The robot's time passes in steps of this length while its client stalls."""
_HELD_UP_S = 0.03
_RAMP_S = 2.0
"""How long a robot on DDS takes to return after its commands cease."""
_A1_LOG_EVERY = 5
"""Steps of 2 ms between two rows of an A1's log."""


class BodyRow(NamedTuple):
    """The body at one moment."""

    time_s: float
    phase: Phase
    soft: bool
    speed_rad_s: float
    """Of the fastest joint that is taught and played."""


@dataclass
class Valve:
    """What the network between client and robot loses."""

    cut: bool = False
    answers_lost: bool = False
    states_lost: bool = False


class RobotLoop:
    """The event loop with the robot's clock, which goes on while the client is suspended."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.ahead_s = 0.0

    def time(self) -> float:
        return self._loop.time() + self.ahead_s

    def call_at(
        self, when: float, callback: Callable[..., object], *args: object
    ) -> asyncio.TimerHandle:
        return self._loop.call_at(when - self.ahead_s, callback, *args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


class WatchedWorld(World):
    """A robot that records its body, and which commands it obeyed."""

    def __init__(self, store: Store) -> None:
        self.rows: list[BodyRow] = []
        self.on_command: Callable[[m.Command], None] = lambda _: None
        super().__init__(store, mode=Mode.WALK, polite=True)
        self._taught_columns = list(self.build.taught_columns)

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        speed = float(np.abs(self.body.speeds_rad_s[self._taught_columns]).max())
        self.rows.append(BodyRow(self.time_s, self.phase, bool(self.body.soft), speed))

    def obey(self, client: Hashable, command: m.Command) -> m.Reply:
        self.on_command(command)
        return super().obey(client, command)


class WatchedSimulator(Simulator):
    """Serves the documented frames through a valve."""

    def __init__(self, world: World, valve: Valve, loop: RobotLoop) -> None:
        self._valve = valve
        self.held_up_s: list[float] = []
        """When the robot itself got no time from this computer."""
        super().__init__(world)
        self._loop = loop  # type: ignore[assignment]

    def _tick(self) -> None:
        if self._loop.time() - self._next_at > _HELD_UP_S:
            self.held_up_s.append(self.world.time_s)
        super()._tick()

    def _receive(self, datagram: bytes, address: Any, send: Callable[..., None]) -> None:
        if isinstance(address, str):  # another client, in memory: its link is its own
            super()._receive(datagram, address, send)
        elif not self._valve.cut:
            super()._receive(datagram, address, self._through_valve(send))

    def _through_valve(self, send: Callable[..., None]) -> Callable[[bytes, Any], None]:
        def send_on(datagram: bytes, address: Any) -> None:
            lost = (
                self._valve.answers_lost
                if datagram[0] == MessageType.COMMAND
                else self._valve.states_lost and datagram[0] == MessageType.STATE
            )
            if not (lost or self._valve.cut):
                send(datagram, address)

        return send_on


class _ValveDisturber(Disturber):
    """Drops the datagrams of WebRTC while the link is cut."""

    def __init__(self, valve: Valve) -> None:
        super().__init__(Impairment())
        self._valve = valve

    def pass_on(self, datagram: bytes, deliver: Callable[[bytes], None]) -> None:
        if not self._valve.cut:
            self._loop.call_soon(deliver, datagram)


class WatchedA1World(A1World):
    """An A1, hung up, that records its legs."""

    def __init__(self) -> None:
        self.rows: list[BodyRow] = []
        super().__init__(start="hung")

    def step(self) -> None:
        super().step()
        if self._steps % _A1_LOG_EVERY == 0:
            speed = max(map(abs, self.body.dq_rad_s))
            phase = Phase.NONE if self.braked else Phase.PLAYING
            self.rows.append(BodyRow(self.time_s, phase, self.soft, speed))

    @property
    def braked(self) -> bool:
        """Whether no motor does more than brake."""
        return self.driver is None or self._low is LIMP or _brakes(self._low)

    @property
    def soft(self) -> bool:
        """Whether the legs follow a hand: driven, neither stiff nor braked."""
        return not self.braked and max(self._low.kp_nm_rad) == 0.0


def _brakes(drive: Drive) -> bool:
    return max(drive.kp_nm_rad) == 0.0 and min(drive.kd_nm_s_rad) >= BRAKE_NM_S_RAD


class _WatchedA1Simulator(A1Simulator):
    """Serves an A1 through a valve."""

    def __init__(self, world: A1World, valve: Valve, robot_loop: RobotLoop, port: int) -> None:
        super().__init__(world, low_port=port)
        self._valve, self._robot_loop = valve, robot_loop

    async def open(self) -> Any:
        ports = await super().open()
        self._loop = self._robot_loop  # type: ignore[assignment]
        self._stepped_at = self._reported_at = self._robot_loop.time()
        return ports

    def _handle_datagrams(self, arrived: list[tuple[bytes, Any]], send: Any, level: Level) -> None:
        def send_on(answer: bytes, to: Any) -> None:
            if not (self._valve.cut or self._valve.states_lost):
                send(answer, to)

        if not self._valve.cut:
            super()._handle_datagrams(arrived, send_on, level)


def _obey_at_once(door: DdsDoor) -> None:
    """Let a robot on DDS obey the first command after a gap in full, as a real one may.

    No document says what a G1 does in a gap: this one returns slower than any limit, so that a
    faster joint is the client's doing.
    """
    stream = door._arm_stream
    bridge = stream.bridge_gap

    def bridge_gap() -> None:
        before = stream._follow_share
        bridge()
        if stream._follow_share > before:
            stream._follow_share = 1.0

    stream.bridge_gap = bridge_gap  # type: ignore[method-assign]


class FaultRobot:
    """One robot on a wire, whose body, link and clock the test has in its hands."""

    def __init__(self, wire: str, *, harsh: bool = True) -> None:
        """A `harsh` robot on DDS obeys the first command after a gap in full."""
        self.wire, self.harsh = wire, harsh
        self.valve = Valve()
        self.held_up_s: list[float] = []
        self.loop = RobotLoop(asyncio.get_running_loop())
        self.store = Store(":memory:")
        self.world: WatchedWorld | WatchedA1World
        self.url = ""
        self._simulator: WatchedSimulator | _WatchedA1Simulator | None = None
        self._memory: MemoryPort | None = None
        self.sessions: list[RpcClientSession] = []
        self._switched_off: list[WatchedSimulator] = []
        self._port = 0

    @property
    def g1(self) -> WatchedWorld:
        assert isinstance(self.world, WatchedWorld)
        return self.world

    @property
    def body(self) -> str:
        """What the body does: `soft`, `moving` or `still`."""
        if isinstance(self.world, WatchedA1World):
            return "soft" if self.world.soft else "still" if self.world.braked else "moving"
        if self.world.body.soft:
            return "soft"
        return "still" if self.world.phase is Phase.NONE else "moving"

    @property
    def truths(self) -> set[str]:
        """What a client may report of the body. A robot reports the return of its arms for as long
        as it takes in general, even if the arms were near their rest.
        """
        world = self.world
        returns = isinstance(world, WatchedWorld) and world.doing.id == RELEASE
        return {self.body, *(["moving"] if returns else [])}

    async def open(self) -> None:
        """Start the robot; a second time, at the same address with the same store."""
        if self.wire == "a1":
            self.world = WatchedA1World()
            self._simulator = _WatchedA1Simulator(self.world, self.valve, self.loop, self._port)
            ports = await self._simulator.open()
            self._port = ports.low
            self.url = f"{self._simulator.url(Level.LOW)}&sender=loop"
            return
        self.world = WatchedWorld(self.store)
        if self.wire == "sim":
            self.url = "sim://g1"
            return
        simulator = self._simulator = WatchedSimulator(self.world, self.valve, self.loop)
        self._memory = simulator.serve_memory()
        if self.wire == "udp":
            self.url = await simulator.serve_udp("127.0.0.1", self._port)
            self._port = int(self.url.rpartition(":")[2])
        elif self.wire == "webrtc":
            quirks = Quirks()
            quirks.lowstate_hz = SERVICES_HZ
            self.world.firmware = replace(self.world.firmware, quirks=quirks)
            door = await simulator.serve_webrtc("127.0.0.1", self._port)
            door.disturber = _ValveDisturber(self.valve)
            self._lose_answers(door.services)
            self.url = door.url
            self._port = int(self.url.rpartition(":")[2])
        else:
            assert self.wire == "dds"
            dds = await simulator.serve_dds("lo", free_domain("faults"), lowstate_hz=DDS_HZ)
            passing, valve = dds._pass_through_network, self.valve

            def pass_on(
                sample_type: types.Type, data: bytes, deliver: Callable[[bytes], None]
            ) -> None:
                states = (types.LOWSTATE, types.SPORT, types.BATTERY, types.TEXT)
                lost = valve.states_lost and sample_type in states
                if not (valve.cut or lost):
                    passing(sample_type, data, deliver)

            dds._pass_through_network = pass_on  # type: ignore[method-assign]
            if self.harsh:
                _obey_at_once(dds)
            self._lose_answers(dds.services)
            self.url = dds.url

    def _lose_answers(self, services: Services) -> None:
        answering = services.answer

        def answer(client: Hashable, request: rpc.RpcRequest) -> ServiceAnswer:
            found = answering(client, request)
            return found._replace(silent=True) if self.valve.answers_lost else found

        services.answer = answer  # type: ignore[method-assign]

    def is_held_up(self, row: BodyRow) -> bool:
        """Whether the robot itself got no time shortly before, so that poses came all at once."""
        return any(since_s <= row.time_s < since_s + 0.5 for since_s in self.held_up_s)

    async def close(self) -> None:
        for simulator in (self._simulator, *self._switched_off):
            if isinstance(simulator, WatchedSimulator):
                self.held_up_s += simulator.held_up_s
            if simulator is not None:
                await simulator.close()
        self._simulator = None
        self._switched_off.clear()

    def _switch_off(self) -> None:
        """End the robot's life, and let its DDS participant stay: to the others it is there until
        its lease of 10 s has run out, because nothing announces that it has left.
        """
        simulator = self._simulator
        assert isinstance(simulator, WatchedSimulator)
        assert simulator._timer is not None
        simulator._timer.cancel()
        self._switched_off.append(simulator)
        self._simulator = None

    async def restart(self, after_s: float = 1.0, *, power: bool = False) -> None:
        """End the robot, and start it again: its body stands at rest.

        A robot on DDS whose `power` was cut does not announce that it leaves.
        """
        self.valve.cut = True
        if power:
            self._switch_off()
        else:
            await self.close()
        self.held_up_s.clear()  # times of the body that was
        await asyncio.sleep(after_s)
        self.valve = Valve()
        await self.open()

    @asynccontextmanager
    async def connect(self, timeout: float = 5.0) -> AsyncIterator[Any]:
        """Connect the client."""
        way: AbstractAsyncContextManager[Any]
        if self.wire == "a1":
            way = connect_a1(self.url, timeout=timeout)
        elif self.wire == "sim":
            way = connect(self.url, world=self.g1, timeout=timeout)
        else:
            way = connect(self.url, family="g1", timeout=timeout)
        async with way as robot:
            yield robot

    async def stop_from_elsewhere(self) -> None:
        """Stop the robot as a second client does."""
        if self._memory is None:
            assert self.g1.obey("a second client", m.StopMotion()) == m.Status(m.Code.OK)
        else:
            port = self._memory

            async def dial(receive: Receiver) -> Link:
                return port.connect(receive)

            client = TeachingClient("memory://g1", TeachingTiming(connect_s=5.0))
            await client.open(dial)
            try:
                await G1(client).stop()
            finally:
                await client.close()

    def pass_time(self, seconds: float, *, suspended: bool) -> None:
        """Let the robot's time pass while nothing runs on the client's computer.

        The clock of a suspended computer stands still; that of a busy one does not. The embedded
        robot is a part of the client's program.
        """
        if self._simulator is None:
            (virtual.suspend if suspended else virtual.hang)(seconds)
            return
        for _ in range(round(seconds / _SLICE_S)):
            if suspended:
                virtual.suspend(_SLICE_S)
                self.loop.ahead_s += _SLICE_S
            else:
                virtual.hang(_SLICE_S)
            for ticking in (self._simulator, *self.sessions):
                if ticking._timer is not None:
                    ticking._timer.cancel()
                    ticking._tick()


@contextmanager
def watched_sessions(robot: FaultRobot) -> Iterator[None]:
    """Let the WebRTC sessions of a robot use its clock and its valve."""

    class WatchedSession(RpcClientSession):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._loop = robot.loop  # type: ignore[assignment]
            robot.sessions.append(self)

        def close(self) -> None:
            if self in robot.sessions:
                robot.sessions.remove(self)
            super().close()

        def _publish_states(self) -> None:
            if not robot.valve.states_lost:
                super()._publish_states()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rote.sim.webrtc.RpcClientSession", WatchedSession)
        patch.setattr("rote.sim.dds.RAMP_S", _RAMP_S)
        yield


@asynccontextmanager
async def fault_robot(wire: str, *, harsh: bool = True) -> AsyncIterator[FaultRobot]:
    """Run a robot on `wire` for as long as the block runs."""
    robot = FaultRobot(wire, harsh=harsh)
    with watched_sessions(robot):
        await robot.open()
        try:
            yield robot
        finally:
            await robot.close()
            robot.store.close()
