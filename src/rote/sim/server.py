"""The simulated robot on its wires: real time, one session per client, one world for all."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from rote import messages as m
from rote.errors import BadRequestError, DecodeError
from rote.platform.loop import TIMER_RESOLUTION_S
from rote.session.arm_stream import PoseReceived
from rote.session.events import Event, PeerLeft, PeerLost, Requested
from rote.session.teaching import Role, TeachingSession, TeachingTiming
from rote.sim.services import Services
from rote.sim.world import World
from rote.transport.impair import Disturber, Impairment
from rote.transport.link import import_carrier
from rote.transport.memory import MemoryPort
from rote.transport.udp.link import UdpPort, open_port
from rote.wire.teaching import codec as wire

if TYPE_CHECKING:
    from rote.model.family import Hand
    from rote.sim.dds import DdsDoor
    from rote.sim.webrtc import WebRtcDoor
    from rote.transport.discovery import Responder

TICK_S = 0.01
MAX_CATCH_UP_S = 0.05
"""Maximum time in seconds that the robot catches up after the process was blocked. It is below
0.1 s, so that commands that wait to be read do not count as silence.
"""
MAX_LOWSTATE_HZ = 1000.0
MAX_CLIENTS = 16
SPARE_CLIENTS = 4
"""Number of additional clients that may only watch and stop; a newer one replaces the oldest."""
_ALWAYS_ALLOWED = (m.StopMotion, m.ExitTeaching, m.ListActions, m.ReadMode, m.ReadController)

# Clients are identified by their addresses: a host and port, or a name in memory.
Address = Any
Send = Callable[[bytes, Address], None]


@dataclass(slots=True)
class _Client:
    """A client of the teaching frames."""

    session: TeachingSession
    send: Send
    address: Address
    is_spare: bool = False
    """Whether it may only watch and stop, because too many clients were connected."""


class Simulator:
    """Runs a world in real time and answers clients on any number of ports."""

    def __init__(
        self,
        world: World,
        *,
        impairment: Impairment | None = None,
        timing: TeachingTiming | None = None,
    ) -> None:
        self.world = world
        self.spare_count = 0
        """Number of clients that were admitted only to watch and stop: too many were connected."""
        self._impairment = impairment
        self._timing = timing
        self._loop = asyncio.get_running_loop()
        self._clients: dict[Address, _Client] = {}
        self._ports: list[UdpPort | MemoryPort | Responder] = []
        self._doors: list[WebRtcDoor | DdsDoor] = []
        self._publishers: list[DdsDoor] = []
        self._tick_s = TICK_S
        self._ticks = 0
        self._next_at = self._loop.time() + TICK_S
        self._timer: asyncio.TimerHandle | None = self._loop.call_at(self._next_at, self._tick)

    @property
    def clients(self) -> int:
        """Number of connected clients."""
        return len(self._clients) + sum(door.clients for door in self._doors)

    async def serve_udp(self, host: str, port: int) -> str:
        """Serve the frames on a UDP port, and return the URL; raise `LinkError` if it is in use."""
        if self._impairment is None:
            udp = await open_port(
                host, port, lambda datagram, address: self._receive(datagram, address, udp.send)
            )
        else:
            disturber = Disturber(self._impairment)

            def send(answer: bytes, address: Address) -> None:
                disturber.pass_on(answer, lambda arriving: udp.send(arriving, address))

            def receive(datagram: bytes, address: Address) -> None:
                disturber.pass_on(datagram, lambda arriving: self._receive(arriving, address, send))

            udp = await open_port(host, port, receive)
        self._ports.append(udp)
        host, port = udp.address[:2]
        return f"udp://[{host}]:{port}" if ":" in host else f"udp://{host}:{port}"

    def serve_memory(self) -> MemoryPort:
        """Serve the frames to clients in this process, and return the port to connect to."""

        def receive(datagram: bytes, address: str) -> None:
            self._receive(datagram, address, port.send)

        port = MemoryPort(receive, self._impairment)
        self._ports.append(port)
        return port

    async def serve_webrtc(
        self,
        host: str,
        port: int | None = None,
        *,
        signalling: str = "",
        key: bytes | None = None,
        strict: bool = False,
        latency: bool = True,
    ) -> "WebRtcDoor":
        """Serve WebRTC clients, by default with the firmware's signalling; return the server."""
        import_carrier("webrtc://")  # names the extra if aiortc is missing
        from rote.sim.webrtc import Signalling, WebRtcDoor  # noqa: PLC0415

        hz = self.world.firmware.quirks.lowstate_hz
        if hz:
            self._tick_s = min(self._tick_s, 1.0 / hz)
        door = WebRtcDoor(
            Services(self.world, latency=latency),
            Signalling.of(signalling or str(self.world.firmware.signalling)),
            key=key,
            strict=strict,
            disturber=None if self._impairment is None else Disturber(self._impairment),
        )
        await door.open(host, port)
        self._doors.append(door)
        return door

    async def serve_dds(
        self,
        interface: str,
        domain: int = 0,
        *,
        lowstate_hz: float | None = None,
        latency: bool = True,
        hands: "tuple[Hand, ...]" = (),
    ) -> "DdsDoor":
        """Serve DDS like a G1 EDU, and return the server. Only DDS can have `hands`.

        From now on, a step of the simulation is at most the interval of the server's states.
        """
        if lowstate_hz is not None and not 0.0 < lowstate_hz <= MAX_LOWSTATE_HZ:
            raise BadRequestError(
                f"states cannot be sent at {lowstate_hz} Hz",
                f"Choose up to {MAX_LOWSTATE_HZ:g} Hz.",
            )
        import_carrier("dds://")  # names the extra if cyclonedds is missing
        from rote.sim.dds import LOWSTATE_HZ, DdsDoor  # noqa: PLC0415
        from rote.transport.dds.participant import DdsTarget  # noqa: PLC0415

        door = DdsDoor(
            Services(self.world, latency=latency),
            DdsTarget(interface, domain),
            lowstate_hz=self.world.firmware.quirks.lowstate_hz or lowstate_hz or LOWSTATE_HZ,
            impairment=self._impairment,
            hands=hands,
        )
        self._doors.append(door)
        self._publishers.append(door)
        self._tick_s = min(self._tick_s, door.period_s)
        return door

    async def serve_discovery(self, serial: str, host: str) -> None:
        """Answer discovery requests with the address `host`, as the robot's firmware does.

        If `host` is a wildcard address, an answer contains the address of the network interface
        that it is sent through.
        """
        from rote.transport import discovery  # noqa: PLC0415 # brings ifaddr

        is_wildcard = ip_address(host).is_unspecified
        reaching_host = [
            card for card in discovery.list_addresses() if _can_reach(card.address, host)
        ]
        responder = await discovery.open_responder(
            serial,
            discovery.own_address if is_wildcard else lambda _: host,
            only_by_name=not self.world.firmware.answers_general_search,
            interfaces=None if is_wildcard else reaching_host,
        )
        self._ports.append(responder)

    async def close(self) -> None:
        """Stop time and close all ports. Safe to call twice."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for port in self._ports:
            port.close()
        self._ports.clear()
        for door in self._doors:
            await door.close()
        self._doors.clear()
        self._publishers.clear()
        self._clients.clear()
        # A socket closes in the next iteration of the loop; after that its port can be bound again.
        await asyncio.sleep(0)

    # ---- time -----------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Advance the world by one tick, publish what is due, and process all sessions."""
        now = self._loop.time()
        self._next_at = max(self._next_at, now - MAX_CATCH_UP_S)
        if self._next_at - now < TIMER_RESOLUTION_S:
            self.world.advance(self._tick_s)
            self._next_at += self._tick_s
            self._ticks += 1
            for publisher in self._publishers:
                publisher.publish()
            # States are sent at 100 Hz while recording, otherwise at 50 Hz.
            ticks_per_report = round(TICK_S / self._tick_s) * (1 if self.world.recording else 2)
            if self._ticks % ticks_per_report == 0:
                self._report_state()
        for client in list(self._clients.values()):
            client.session.tick(now)
            self._process_session(client)
        # Even to catch up, the world advances by one tick at a time, so that messages of clients
        # are handled in between.
        self._timer = self._loop.call_at(self._next_at, self._tick)

    def _report_state(self) -> None:
        """Send the robot's state to every client."""
        if self._clients:
            state = self.world.firmware.quirks.change_frame_state(self.world.state())
            for client in self._clients.values():
                if self.world.firmware.quirks.documented_joints:
                    client.session.all_joints = False
                client.session.report(state)

    # ---- clients --------------------------------------------------------------------------------

    def _receive(self, datagram: bytes, address: Address, send: Send) -> None:
        client = self._clients.get(address)
        if client is None:
            client = self._admit_client(datagram, address, send)
            if client is None:
                return
        client.session.receive(datagram, self._loop.time())
        self._process_session(client)

    def _admit_client(self, datagram: bytes, address: Address, send: Send) -> _Client | None:
        """Create a session for a new address; return None if the datagram is not a command."""
        try:
            frame = wire.decode(datagram)
        except DecodeError:
            return None
        if frame.type != wire.MessageType.COMMAND:
            return None
        spare = [client for client in self._clients.values() if client.is_spare]
        is_spare = len(self._clients) - len(spare) >= MAX_CLIENTS
        if is_spare:
            self.spare_count += 1
            if len(spare) >= SPARE_CLIENTS:
                del self._clients[spare[0].address]
        session = TeachingSession(Role.ROBOT, timing=self._timing, now=self._loop.time())
        client = self._clients[address] = _Client(session, send, address, is_spare)
        return client

    def _process_session(self, client: _Client) -> None:
        """Handle the events of a session, and send its outgoing datagrams."""
        session = client.session
        for event in session.events():
            self._handle_event(event, client)
        for datagram in session.outgoing():
            client.send(datagram, client.address)
        if not session.live:
            self._clients.pop(client.address, None)

    def _handle_event(self, event: Event | PoseReceived, client: _Client) -> None:
        if isinstance(event, Requested):
            client.session.reply(event.token, self._obey(client, event.command))
        elif isinstance(event, PoseReceived) and not client.is_spare:
            self.world.obey(client.address, event.command)
        elif isinstance(event, (PeerLost, PeerLeft)):
            self.world.forget(client.address)

    def _obey(self, client: _Client, command: m.Command) -> m.Reply:
        """Carry out a client's command; a spare client may only watch and stop."""
        if client.is_spare and not isinstance(command, _ALWAYS_ALLOWED):
            return m.Status(m.Code.BUSY)
        if isinstance(command, m.ListActions) and self.world.firmware.quirks.list_refused:
            return m.Status(m.Code.STORE_FAILED)
        reply = self.world.obey(client.address, command)
        if isinstance(reply, m.ActionList):
            return m.ActionList(
                tuple(map(_fit_entry_name, reply.actions)), reply.presets, reply.notes
            )
        return reply


def _fit_entry_name(entry: m.ActionEntry) -> m.ActionEntry:
    """Return a list entry with a name that fits into a frame: bad characters become `?`, and a long
    name is cut.

    A store may hold other names: the services accept longer ones, and files can be edited.
    """
    if not m.name_problem(entry.name, in_use=True):
        return entry
    # Each character is tested between letters, because a space is only allowed inside a name.
    name = "".join(
        "?" if m.name_problem(f"x{char}x", in_use=True) else char for char in entry.name
    ).strip()
    while len(name.encode()) > m.MAX_NAME_BYTES:
        name = name[:-1].strip()
    return m.ActionEntry(name or "?", entry.duration_ms)


def _can_reach(interface: str, host: str) -> bool:
    """Whether a client that connects through this interface can reach `host`."""
    own, target = ip_address(interface), ip_address(host)
    return own == target or (own.is_loopback and target.is_loopback)
