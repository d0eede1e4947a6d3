"""The simulated A1 on its ports: real time, one session per client and level, one world for all.

    async with A1Simulator(A1World(dialect=Dialect.A1_3_3_4)) as robot:
        print(robot.url(Level.HIGH))

An A1 of dialect 3.2 takes both levels on one port; all others listen for the high level on 8082 and
for the low level on 8007.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import parse_qsl

from rote.errors import BadRequestError, LocalProtocolError
from rote.platform.loop import TIMER_RESOLUTION_S
from rote.session.a1 import A1Session, A1SessionState, A1Timing, Commanded, Level, WentStale
from rote.session.events import PeerLost
from rote.session.teaching import Role
from rote.sim.quadruped.body import STEP_S
from rote.sim.quadruped.faults import corrupt_state
from rote.sim.quadruped.hands import parse_hand
from rote.sim.quadruped.walker import DAMP, IDLE
from rote.sim.quadruped.world import STARTS, A1World
from rote.transport.address import Address
from rote.transport.impair import Disturber, Impairment
from rote.transport.link import split_url
from rote.transport.udp.link import UdpPort, open_port
from rote.wire.a1.formats import BY_SIZE
from rote.wire.a1.motors import BRAKE, LEG_MOTORS
from rote.wire.a1.values import A1FrameKind, Command, Dialect, LowCmd

HIGH_PORT, LOW_PORT = 8082, 8007
"""The ports at which real robots listen."""
IDLE_TICK_S = 0.02
MAX_CATCH_UP_S = 0.25
"""Maximum time in seconds that the robot catches up after the process was blocked."""
MAX_CLIENTS = 16
SPARE_CLIENTS = 4
"""Number of additional clients that may only watch and stop; a newer one replaces the oldest."""
HIGH_WATCHDOG_S = 0.5
"""A walking robot without a command for this long stands. A guess."""
GO1_HIGH_HZ = 50.0
"""State rate of a Go1's walking controller, by a public report."""

Send = Callable[[bytes, Address], None]


class Ports(NamedTuple):
    """The UDP ports for the high and the low level."""

    high: int
    low: int


@dataclass(slots=True)
class _A1Client:
    session: A1Session
    send: Send
    address: Address
    level: Level
    is_spare: bool = False
    """Whether it may only watch and stop, because too many clients were connected."""


class A1Simulator:
    """Runs a world in real time and answers clients on its two ports."""

    def __init__(
        self,
        world: A1World,
        host: str = "127.0.0.1",
        *,
        high_port: int = 0,
        low_port: int = 0,
        impairment: Impairment | None = None,
        timing: A1Timing | None = None,
    ) -> None:
        self.world = world
        self.host = host
        self.dialect = world.dialect
        self.spare_count = 0
        """Number of clients that were admitted only to watch and stop: too many were connected."""
        self._requested_ports = Ports(high_port, low_port)
        self._impairment = impairment
        low = timing or A1Timing()
        self._timing = {
            Level.LOW: low,
            Level.HIGH: A1Timing(watchdog_s=max(HIGH_WATCHDOG_S, low.watchdog_s)),
        }
        self._dropped_by_past_sessions: Counter[str] = Counter()
        self._clients: dict[tuple[Address, Level], _A1Client] = {}
        self._ports: dict[Level, UdpPort] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stepped_at = self._reported_at = 0.0

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # ---- ports ----------------------------------------------------------------------------------

    async def open(self) -> Ports:
        """Bind the ports and start time."""
        self._loop = asyncio.get_running_loop()
        disturber = None if self._impairment is None else Disturber(self._impairment)
        try:
            self._ports[Level.LOW] = await self._bind(
                Level.LOW, self._requested_ports.low, disturber
            )
            may_share = self._requested_ports.high in (0, self._requested_ports.low)
            if self.dialect is Dialect.A1_3_2 and may_share:
                self._ports[Level.HIGH] = self._ports[Level.LOW]
            else:
                self._ports[Level.HIGH] = await self._bind(
                    Level.HIGH, self._requested_ports.high, disturber
                )
        except BaseException:
            await self.close()
            raise
        self._stepped_at = self._reported_at = self._loop.time()
        self._timer = self._loop.call_later(STEP_S, self._tick)
        return self.ports

    async def _bind(self, level: Level, port: int, disturber: Disturber | None) -> UdpPort:
        """Open the port of a level; `disturber`, if given, impairs both directions."""

        def send(answer: bytes, address: Address) -> None:
            if disturber is None:
                udp.send(answer, address)
            else:
                disturber.pass_on(answer, lambda arriving: udp.send(arriving, address))

        def disturb(datagram: bytes, address: Address) -> None:
            assert disturber is not None
            disturber.pass_on(
                datagram,
                lambda arriving: self._handle_datagrams([(arriving, address)], send, level),
            )

        def receive(datagram: bytes, address: Address) -> None:
            arrived = [(datagram, address), *udp.read_waiting()]
            if disturber is None:
                self._handle_datagrams(arrived, send, level)
                return
            for arrived_datagram, sender in arrived:
                disturb(arrived_datagram, sender)

        udp = await open_port(self.host, port, receive)
        return udp

    @property
    def ports(self) -> Ports:
        """The ports it listens on."""
        if not self._ports:
            raise LocalProtocolError("the simulated robot is not open", "Call open() first.")
        return Ports(self._ports[Level.HIGH].address[1], self._ports[Level.LOW].address[1])

    def url(self, level: Level = Level.HIGH) -> str:
        """Return the URL for clients."""
        port = self.ports.low if level is Level.LOW else self.ports.high
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"a1://{host}:{port}?level={level.value}"

    @property
    def clients(self) -> int:
        """Number of sessions."""
        return len(self._clients)

    @property
    def dropped(self) -> Counter[str]:
        """Number of unused datagrams, by reason."""
        total = Counter(self._dropped_by_past_sessions)
        for client in self._clients.values():
            total.update(client.session.dropped)
        return total

    async def close(self) -> None:
        """Stop time and close the ports. Safe to call twice."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for port in self._ports.values():
            port.close()
        self._ports.clear()
        self._clients.clear()
        # A socket closes in the next iteration of the loop; after that its port can be bound again.
        await asyncio.sleep(0)

    # ---- time -----------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Advance the world to the present, and process all sessions."""
        assert self._loop is not None
        now = self._loop.time()
        self._catch_up(now)
        if now >= self._reported_at + 1.0 / GO1_HIGH_HZ:
            # After a delay of the process, reports of the last 0.1 s are made up for.
            self._reported_at = max(self._reported_at + 1.0 / GO1_HIGH_HZ, now - 0.1)
            self._report_to_paced_clients()
        for client in list(self._clients.values()):
            client.session.tick(now)
            self._process_session(client)
        wait_s = STEP_S if self._clients else IDLE_TICK_S
        self._timer = self._loop.call_at(max(self._stepped_at + wait_s, now), self._tick)

    def _catch_up(self, now: float) -> None:
        """Step the world until its time is `now`; a longer delay of the process is skipped."""
        self._stepped_at = max(self._stepped_at, now - MAX_CATCH_UP_S)
        while self._stepped_at + STEP_S - now < TIMER_RESOLUTION_S:
            self._stepped_at += STEP_S
            self.world.step()

    def _report_to_paced_clients(self) -> None:
        """Send the state to clients that get it at a fixed rate, not in answer to commands."""
        for client in self._clients.values():
            if client.session.paced:
                client.session.report(self.world.state(client.level))

    # ---- clients --------------------------------------------------------------------------------

    def _handle_datagrams(
        self, arrived: list[tuple[bytes, Address]], send: Send, level: Level
    ) -> None:
        """Handle received datagrams, and obey the newest command of each client."""
        assert self._loop is not None
        now = self._loop.time()
        self._catch_up(now)
        receivers: dict[int, _A1Client] = {}
        for datagram, address in arrived:
            frame_level = self._find_level(datagram, level)
            client = self._clients.get((address, frame_level))
            if client is None:
                client = self._admit_client(
                    datagram,
                    _A1Client(self._make_session(frame_level), send, address, frame_level),
                    now,
                )
            else:
                client.session.receive(datagram, now)
            if client is not None:
                # The clients are processed in the order of their newest commands.
                receivers.pop(id(client), None)
                receivers[id(client)] = client
        for client in receivers.values():
            self._process_session(client)

    def _find_level(self, datagram: bytes, port_level: Level) -> Level:
        """Return the level of a frame: that of its port, but in dialect 3.2 both share one port."""
        if self.dialect is not Dialect.A1_3_2:
            return port_level
        frame_format = BY_SIZE.get(len(datagram))
        is_low = frame_format is not None and frame_format.kind is A1FrameKind.LOW_CMD
        return Level.LOW if is_low else Level.HIGH

    def _make_session(self, level: Level) -> A1Session:
        return A1Session(
            Role.ROBOT,
            level,
            dialect=self.dialect,
            timing=self._timing[level],
            paced=self.world.is_go1 and level is Level.HIGH,
        )

    def _admit_client(self, datagram: bytes, client: _A1Client, now: float) -> _A1Client | None:
        """Keep a new client's session if it sent a command; other datagrams are only counted."""
        session = client.session
        session.receive(datagram, now)
        if not session.received:
            self._dropped_by_past_sessions.update(session.dropped)
            return None
        spare = [key for key, known in self._clients.items() if known.is_spare]
        if len(self._clients) - len(spare) >= MAX_CLIENTS:
            self.spare_count += 1
            client.is_spare = True
            if len(spare) >= SPARE_CLIENTS:
                del self._clients[spare[0]]
        self._clients[client.address, client.level] = client
        return client

    def _process_session(self, client: _A1Client) -> None:
        """Handle the events of a session, and send its outgoing datagrams."""
        session = client.session
        events = session.events()
        commands = [event for event in events if isinstance(event, Commanded)]
        for event in events:
            if isinstance(event, Commanded):
                if event is not commands[-1]:
                    continue  # outdated by a newer command
                if not client.is_spare or _is_stop(event.command):
                    self.world.obey(event.command)
                if not session.paced:
                    session.report(self.world.state(client.level))
            elif isinstance(event, WentStale) and self._is_alone(client):
                self.world.handle_silence(client.level)
            elif isinstance(event, PeerLost):
                self._drop_client(client)
        for datagram in session.outgoing():
            self._send_state(datagram, client)

    def _send_state(self, datagram: bytes, client: _A1Client) -> None:
        """Send a state to a client, as far as the robot's faults allow."""
        health = self.world.health
        if health.silent:
            return
        if health.corrupted_part:
            datagram = corrupt_state(datagram, health.corrupted_part)
        client.send(datagram, client.address)

    def _is_alone(self, client: _A1Client) -> bool:
        """Whether no other client is connected at the level of this one."""
        others = (other for other in self._clients.values() if other is not client)
        return not any(
            other.level is client.level and other.session.state is A1SessionState.LIVE
            for other in others
        )

    def _drop_client(self, client: _A1Client) -> None:
        self._dropped_by_past_sessions.update(client.session.dropped)
        del self._clients[client.address, client.level]
        if self._is_alone(client):
            self.world.forget(client.level)


def _is_stop(command: Command) -> bool:
    """Whether a command idles, brakes or damps."""
    if isinstance(command, LowCmd):
        return bool((command.motors.mode[:LEG_MOTORS] == BRAKE).all())
    return command.mode in (IDLE, DAMP)


class EmbeddedA1(NamedTuple):
    """A robot that is not open yet, and the level to connect at."""

    simulator: A1Simulator
    level: Level

    @property
    def url(self) -> str:
        """The robot's URL, known once it is open; clients send from the robot's event loop."""
        return f"{self.simulator.url(self.level)}&sender=loop"


def create_embedded_a1(url: str, level: Level = Level.HIGH) -> EmbeddedA1:
    """Create the robot that `sim://a1[?level=low|high&mode=...&hand=...&dialect=...]` names.

    `level` is the default if the URL has none. At the low level the robot hangs, otherwise it
    stands, unless `mode` is given; `hand` moves its legs whenever they are soft.
    """
    parts = split_url(url)
    try:
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        level = Level(options.pop("level", level.value))
        dialect = Dialect(options.pop("dialect", Dialect.A1_3_3_4.value))
    except ValueError:
        raise _make_url_error(url) from None
    start = options.pop("mode", "hung" if level is Level.LOW else "stand")
    hand = options.pop("hand", None)
    if options or parts.path.strip("/"):
        raise _make_url_error(url)
    world = A1World(dialect=dialect, start=start)
    world.attach(None if hand is None else parse_hand(hand))
    return EmbeddedA1(A1Simulator(world), level)


def _make_url_error(url: str) -> BadRequestError:
    dialects = ", ".join(dialect.value for dialect in Dialect)
    return BadRequestError(
        f"{url!r} does not name a simulated A1",
        "Write sim://a1. Options follow after a ?, joined by &: level=high or low, "
        f"mode= one of {', '.join(STARTS)}, hand=paw, stretch or wag, dialect= one of {dialects}.",
    )
