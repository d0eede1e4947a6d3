"""The client of an A1 or a Go1: a UDP socket, the session, and the sender of commands.

Both the event loop and a control function's thread read states, so that neither waits for the
other. Commands go through a sender with its own timing.
"""

import asyncio
import math
import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias
from urllib.parse import parse_qsl

from rote.errors import (
    BadRequestError,
    LinkError,
    NoAnswerError,
    PeerLostError,
    ProtectionError,
    RemoteProtocolError,
    RoteError,
)
from rote.platform import clock
from rote.platform.loop import clock_of
from rote.platform.readable import on_readable
from rote.session import a1 as session
from rote.session.a1 import A1Session, A1Timing, Level
from rote.session.events import PeerLost
from rote.session.teaching import Role
from rote.text import Act, Text
from rote.transport.a1.sender import Counts, LoopSender, ProcessSender, Sender, Stall
from rote.transport.address import host_and_port
from rote.transport.base_client import add_listener, notify_listeners
from rote.transport.link import Alarm, split_url
from rote.transport.tap import Tap
from rote.wire.a1.codec import Seal
from rote.wire.a1.values import Command, Dialect, HighCmd, HighState, LowState

LOW_PORT, OLD_HIGH_PORT, HIGH_PORT = 8007, 8007, 8082
KEPT_S = 0.5
"""Validity in seconds of a command that is repeated until the next one. The event loop renews it;
if the loop is blocked for longer than this, the safe command is sent.
"""
DAMPING_MODE = 7
"""The damping mode of the walking controller."""
PERIOD_S = {Level.LOW: 0.002, Level.HIGH: 0.005}
"""Interval between commands. Unitree's examples use 2 ms, and allow 1 to 10 ms."""
_RENEW_S = 0.02
"""Interval at which the event loop renews a repeated command."""
STALE_S = {Level.LOW: 0.05, Level.HIGH: 0.3}
"""A robot that is driven and has not reported its state for this long is made safe."""
_MAX_LATE_S = 0.01
"""If our own timer fires later than this, this computer was busy and did not receive either. The
robot then gets this much more time before it counts as silent.
"""
_MAX_DATAGRAM_BYTES = 2048
RobotState: TypeAlias = HighState | LowState
StateListener = Callable[[RobotState], object]
TroubleListener = Callable[[RoteError], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class A1Target:
    """What a URL says about a robot: its address, and the options of its protocol."""

    host: str
    ports: tuple[int, ...]
    """Ports to try, one after the other."""
    level: Level = Level.HIGH
    dialect: Dialect | None = None
    """None if it is to be detected from the first state."""
    isolated: bool = True
    """Whether a separate process sends the commands."""
    seal: Seal = Seal.PLAIN
    """The checksum of high-level commands to a Go1. Unitree's client sends the plain one, in 200 of
    200 captured commands; Unitree's library on the robot's side accepts only the encrypted one."""
    local: int = 0
    """This computer's port; 0 is any. The robot is reported to answer to the sender's port."""


def read_url(url: str) -> A1Target:
    """Parse `a1://HOST[:PORT][?level=low|high&dialect=3.2|3.3|3.3.4|go1&sender=process|loop]`.

    `checksum=plain|encrypted` and `local=PORT` may follow too.
    """
    parts = split_url(url)
    try:
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        level = Level(options.pop("level", "high"))
        dialect = Dialect(options.pop("dialect")) if "dialect" in options else None
        isolated = {"process": True, "loop": False}[options.pop("sender", "process")]
        seal = Seal(options.pop("checksum", Seal.PLAIN.value))
        local = int(options.pop("local", "0"))
    except (ValueError, KeyError):
        raise _make_url_error(url) from None
    if parts.scheme != "a1" or parts.path.strip("/") or options or not 0 <= local < 65_536:
        raise _make_url_error(url)
    host, port = host_and_port(parts.netloc, -1)
    ports = _find_default_ports(level, dialect) if port == -1 else (port,)
    return A1Target(
        host=host,
        ports=ports,
        level=level,
        dialect=dialect,
        isolated=isolated,
        seal=seal,
        local=local,
    )


def _make_url_error(url: str) -> BadRequestError:
    known = ", ".join(dialect.value for dialect in Dialect)
    return BadRequestError(
        f"{url!r} does not name an A1",
        "Write a1://HOST[:PORT]. Options follow after a ?, joined by &: level=high or low, "
        f"dialect= one of {known}, sender=process or loop, checksum=plain or encrypted (a Go1's "
        "high level), local=PORT.",
    )


def _find_default_ports(level: Level, dialect: Dialect | None) -> tuple[int, ...]:
    """Return the ports to try. Dialect 3.2 and later ones use different ports on the high level."""
    if level is Level.LOW:
        return (LOW_PORT,)
    if dialect is None:
        return (HIGH_PORT, OLD_HIGH_PORT)
    return (OLD_HIGH_PORT,) if dialect is Dialect.A1_3_2 else (HIGH_PORT,)


def walking_url(url: str) -> str:
    """Return the URL of the same robot's walking controller (high level).

    A port is kept only if it is not the default one of the low level.
    """
    target = read_url(url)
    if target.level is Level.HIGH:
        return url
    host = f"[{target.host}]" if ":" in target.host else target.host
    port = "" if target.ports == (LOW_PORT,) else f":{target.ports[0]}"
    options = f"&dialect={target.dialect.value}" if target.dialect else ""
    options += "" if target.isolated else "&sender=loop"
    options += "" if target.seal is Seal.PLAIN else f"&checksum={target.seal.value}"
    return f"a1://{host}{port}?level=high{options}"


def make_damping_command(level: Level, dialect: Dialect) -> Command:
    """Return the command that damps all motors: the legs yield slowly.

    The walking controller of dialect 3.2 has no such mode; the command is then to stand idle.
    """
    if level is Level.HIGH and dialect is not Dialect.A1_3_2:
        return HighCmd(mode=DAMPING_MODE)
    return session.make_neutral_command(level, dialect)


async def open_client(url: str, *, timeout: float = 5.0, tap: Tap | None = None) -> "A1Client":
    """Connect to the robot at `url`; raises `NoAnswerError` if no port answers in time."""
    target = read_url(url)
    port_timeout_s = timeout / len(target.ports)
    for index, port in enumerate(target.ports):
        port_target, searched_s = replace(target, ports=(port,)), index * port_timeout_s
        client = A1Client(url, port_target, port_timeout_s, searched_s, tap)
        if tap is not None:
            tap.begin_stage(f"port {port}")
            tap.client = client
        try:
            await client.open()
        except NoAnswerError:
            if port == target.ports[-1]:
                raise
        else:
            return client
    raise AssertionError("a target has a port")


class A1Client:
    """One connection to one robot."""

    def __init__(
        self,
        url: str,
        target: A1Target,
        connect_s: float = 5.0,
        searched_s: float = 0.0,
        tap: Tap | None = None,
    ) -> None:
        """Wait up to `connect_s` for the robot; `searched_s` were already spent on other ports."""
        self.url = url
        self.level = target.level
        self.isolated = target.isolated
        self.latest: RobotState | None = None
        """The newest state."""
        self.state_received_s = -math.inf
        """When the newest state arrived, by `now`."""
        self._target = target
        self._searched_s = searched_s
        self._tap = tap
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self._now = clock.stall_clock(self._loop)
        self._suspended_s = clock.suspended_s()
        """This computer's total time in suspend when the newest state arrived."""
        timing = A1Timing(period_s=_RENEW_S, connect_s=connect_s, stale_s=STALE_S[target.level])
        seal = target.seal if target.level is Level.HIGH else None
        self._session = A1Session(
            Role.CLIENT, target.level, dialect=target.dialect, timing=timing, seal=seal
        )
        self._lock = threading.Lock()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._failure: RoteError | None = None
        self._alarm = Alarm(self._tick)
        self._due_s = math.inf
        """When the session needs its next tick."""
        self._repeated_datagram: bytes | None = None
        """The command that the event loop renews; None if the newest one has a time limit."""
        self._is_driving = False
        """Whether the last command was other than the neutral one."""
        self._state_listeners: list[StateListener] = []
        self._trouble_listeners: list[TroubleListener] = []
        self._socket: socket.socket | None = None
        self.sender: Sender | None = None
        self._stop_reading: Callable[[], None] = lambda: None

    # ---- properties and listeners ---------------------------------------------------------------

    @property
    def dialect(self) -> Dialect:
        """The robot's dialect."""
        assert self._session.dialect is not None
        return self._session.dialect

    @property
    def dropped(self) -> Counter[str]:
        """Number of datagrams that were not used, by reason."""
        return self._session.dropped

    @property
    def counts(self) -> Counts:
        """Number of commands sent, and of missed periods."""
        return self.sender.counts if self.sender is not None else Counts()

    @property
    def states_received(self) -> int:
        """Number of states that were used."""
        return self._session.received

    def now(self) -> float:
        """Return the time of this connection's clock in seconds, including suspend."""
        return self._now()

    def on_state(self, listener: StateListener) -> Callable[[], None]:
        """Call `listener` with every state. Return a function that removes it."""
        return add_listener(self._state_listeners, listener)

    def on_trouble(self, listener: TroubleListener) -> Callable[[], None]:
        """Call `listener` with the error when the robot was made safe or is lost. Return a function
        that removes it.
        """
        if self._failure is not None:
            self._loop.call_soon(listener, self._failure)
        return add_listener(self._trouble_listeners, listener)

    # ---- opening and closing --------------------------------------------------------------------

    async def open(self) -> None:
        """Start the sender, and wait for the robot; raises `NoAnswerError` if none answers."""
        self._socket = await self._open_socket()
        self._stop_reading = on_readable(self._loop, self._socket, self._on_readable)
        try:
            if self.isolated:
                self.sender = ProcessSender(
                    self._socket, self._on_stall, self._on_sender_death, PERIOD_S[self.level]
                )
            else:
                send = partial(_send_datagram, self._socket)
                self.sender = LoopSender(send, self._on_stall, PERIOD_S[self.level])
            await self.sender.wait_until_ready()
            with self._lock:
                self._session.open(self._clock())
            self._flush()
            await self._opened
        except BaseException:
            await self.close()
            raise

    async def _open_socket(self) -> socket.socket:
        host, port = self._target.host, self._target.ports[0]
        try:
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            family, socket_type, protocol, _, address = found[0]
            sock = socket.socket(family, socket_type, protocol)
            sock.setblocking(False)
            try:
                if self._target.local:
                    sock.bind(("", self._target.local))
                sock.connect(address)
            except OSError:
                sock.close()
                raise
        except OSError as error:
            raise LinkError(
                f"{host!r} cannot be reached: {error.strerror or error}",
                "Check the address, and that this computer is on the robot's network.",
            ) from error
        return sock

    async def close(self) -> None:
        """Close the connection; the sender brings the robot to rest first. Safe to repeat."""
        if self._failure is None:
            self._failure = LinkError(f"the connection to {self.url} was closed")
            notify_listeners(self._trouble_listeners, self._failure, self._loop)
        self._repeated_datagram = None
        with self._lock:
            self._session.close()
        self._alarm.clear()
        sender, self.sender = self.sender, None
        sock, self._socket = self._socket, None
        if sock is not None:
            self._stop_reading()
        try:
            if sender is not None:
                await asyncio.shield(asyncio.ensure_future(_close_sender(sender, sock)))
        finally:
            if sender is None and sock is not None:
                sock.close()

    # ---- commands -------------------------------------------------------------------------------

    def command(self, command: Command, hold_s: float | None = None) -> None:
        """Send `command` repeatedly, for `hold_s` seconds; without it, until the next one.

        With `hold_s` it may be called from any thread, otherwise only from the event loop's. Raises
        the failure if the robot is lost, and `BadRequestError` if a frame cannot hold the command.
        """
        if self._failure is not None:
            raise self._failure
        with self._lock:
            self._session.command(command, self._clock())
            datagram = self._session.outgoing()[-1]
        assert self.sender is not None
        if self._tap is not None and not self._tap.note_sending(datagram):
            return
        self._is_driving = command != session.make_neutral_command(self.level, self.dialect)
        if hold_s is None and self._is_driving:
            self._repeated_datagram, hold_s = datagram, KEPT_S
        else:
            self._repeated_datagram = None
        self.sender.set_command(datagram, math.inf if hold_s is None else hold_s)

    def trip(self, command: Command | None = None) -> None:
        """Send only this command, by default the damping one, until `arm`; from any thread."""
        self._repeated_datagram = None
        if self.sender is not None:
            self.sender.set_safe_command(
                self._encode_command(command or make_damping_command(self.level, self.dialect))
            )
            self.sender.trip()

    def arm(self) -> None:
        """Accept commands again after a trip; until the first one, send the neutral command."""
        if self._failure is not None:
            raise self._failure
        assert self.sender is not None
        self.sender.set_safe_command(
            self._encode_command(session.make_neutral_command(self.level, self.dialect))
        )
        self.sender.arm()
        self.command(session.make_neutral_command(self.level, self.dialect))

    def _encode_command(self, command: Command) -> bytes:
        """Return the datagram of a command; empty if the session is not open."""
        with self._lock:
            if not self._session.live:
                return b""
            self._session.command(command, self._clock())
            return self._session.outgoing()[-1]

    # ---- states and events ----------------------------------------------------------------------

    def poll(self) -> RobotState | None:
        """Read the waiting datagrams, and return the newest state; from any thread."""
        events = self._drain_socket()
        if events:
            self._loop.call_soon_threadsafe(self._handle_events, events)
        return self.latest

    def _drain_socket(self) -> list[session.Event]:
        """Give all datagrams that have arrived to the session, keep the newest state, and return
        the session's events.
        """
        sock = self._socket
        with self._lock:
            while sock is not None:  # until `recv` fails
                try:
                    datagram = sock.recv(_MAX_DATAGRAM_BYTES)
                except OSError:  # nothing more; or the robot's program is not running yet
                    break
                if self._tap is not None:
                    self._tap.note_received(datagram)
                self._session.receive(datagram, self._clock())
            events = self._session.events()
            for event in events:
                if isinstance(event, session.A1Reported):
                    self.latest, self.state_received_s = event.state, self._now()
                    self._suspended_s = clock.suspended_s()
        return events

    def _on_readable(self) -> None:
        self._handle_events(self._drain_socket())
        self._flush()

    def _tick(self) -> None:
        """Renew a repeated command, and let the session check whether the robot is silent."""
        if self._repeated_datagram is not None and self.sender is not None:
            self.sender.set_command(self._repeated_datagram, KEPT_S)
        now = self._clock()
        # A late timer postpones the check for at most KEPT_S: a silent robot must also be detected
        # on a computer that is always late.
        is_late = now > self._due_s + _MAX_LATE_S
        if is_late and self._now() < self.state_received_s + KEPT_S:
            self._due_s = now + _MAX_LATE_S
            self._alarm.set(self._due_s)
            return
        with self._lock:
            self._session.tick(self._clock())
            events = self._session.events()
        self._handle_events(events)
        self._flush()

    def _flush(self) -> None:
        """Set the timer; while the robot is not found, send the session's datagrams too."""
        with self._lock:
            outgoing, due = self._session.outgoing(), self._session.due
            is_seeking = self._session.state is session.A1SessionState.SEEKING
        if is_seeking:  # afterwards the sender sends
            for datagram in outgoing:
                _send_datagram(self._socket, datagram)
        self._due_s = due
        self._alarm.set(due)

    def _handle_events(self, events: list[session.Event]) -> None:
        for event in events:
            if isinstance(event, session.A1Reported):
                notify_listeners(self._state_listeners, event.state, self._loop)
            elif isinstance(event, session.Learned):
                self._on_found()
            elif isinstance(event, PeerLost):
                self._fail(self._make_loss_error(event.silence_s))
            elif isinstance(event, session.Mismatched):
                self._on_mismatch(event.dialects)
            elif isinstance(event, session.WentStale) and not self._is_driving:
                continue  # nothing is driven; `PeerLost` follows if it stays silent
            elif trouble := _make_trouble_error(event):
                self.trip(session.make_neutral_command(self.level, self.dialect))
                notify_listeners(self._trouble_listeners, trouble, self._loop)

    def _on_found(self) -> None:
        self.arm()
        if not self._opened.done():
            self._opened.set_result(None)

    def _on_mismatch(self, dialects: tuple[Dialect, ...]) -> None:
        names = " or ".join(dialect.value for dialect in dialects)
        if not self._opened.done():
            self._fail(
                RemoteProtocolError(
                    f"the robot at {self.url} speaks {names}, not {self.dialect.value}",
                    "Leave the dialect out of the URL, or name the one it speaks.",
                )
            )

    def _on_stall(self, stall: Stall) -> None:
        """Notify the listeners that the sender made the robot safe, with the likely cause."""
        self._repeated_datagram = None
        if stall.suspended_s > stall.silence_s / 2:  # suspend explains most of the stall
            trouble = ProtectionError(
                "control",
                f"this computer was suspended for {stall.suspended_s:.1f} s, so the robot was made "
                "safe",
                "Look at the robot, then call robot.arm() to go on. Keep this computer awake while "
                "it drives a robot.",
            )
        else:
            trouble = ProtectionError(
                "control",
                f"there was no new command for {1000 * stall.silence_s:.0f} ms, so the robot was "
                "made safe",
                "Make the control function faster, or give it a longer period.",
            )
        notify_listeners(self._trouble_listeners, trouble, self._loop)

    def _on_sender_death(self) -> None:
        self._fail(LinkError("the process that sends the commands was ended", "Connect again."))

    def _make_loss_error(self, silence_s: float) -> RoteError:
        if not self._opened.done():
            return NoAnswerError(
                f"no A1 answered at {self.url} within {self._searched_s + silence_s:.1f} s"
                + (f"; {self._describe_dropped()}" if self.dropped else ""),
                Text(
                    "Check the address, the level and the port, and that the robot is on. To "
                    "use a simulated robot: {simulate}.",
                    simulate=Act.SIMULATE_A1,
                ),
            )
        suspended_s = clock.suspended_s() - self._suspended_s
        silence = f"has been silent for {silence_s:.1f} s"
        if suspended_s > silence_s:
            silence = f"has been silent since this computer was suspended for {suspended_s:.1f} s"
        return PeerLostError(
            f"the robot at {self.url} {silence}; its state is unknown",
            "The command to damp its motors was sent as soon as it fell silent. Look at it before "
            "you touch it, then connect again.",
        )

    def _describe_dropped(self) -> str:
        counts = ", ".join(f"{count} with {reason}" for reason, count in self.dropped.items())
        return f"datagrams arrived that could not be used: {counts}"

    def _fail(self, error: RoteError) -> None:
        """Report the first failure: trip the sender, and notify the listeners."""
        if self._failure is not None:
            return
        self._failure = error
        self._repeated_datagram = None
        if self.sender is not None and self._opened.done():
            self.sender.trip()
        if not self._opened.done():
            self._opened.set_exception(error)
            self._opened.exception()  # the error is raised where the connection is awaited
        notify_listeners(self._trouble_listeners, error, self._loop)


def _send_datagram(sock: socket.socket | None, datagram: bytes) -> None:
    if sock is not None:
        with suppress(OSError):  # the robot's port is not open yet; the session times out
            sock.send(datagram)


def _make_trouble_error(event: session.Event) -> ProtectionError | None:
    """Return the error for an event that makes the robot unsafe to drive; None for any other."""
    if isinstance(event, session.WentStale):
        return ProtectionError(
            "stale",
            f"no state arrived for {1000 * event.silence_s:.0f} ms",
            "Check the robot and the network; a cable is more reliable than Wi-Fi.",
        )
    if isinstance(event, session.Jumped):
        return ProtectionError(
            "clock",
            f"the robot's clock went from {event.before} to {event.after}",
            "Its controller was restarted, or another robot answers; connect again.",
        )
    return None


async def _close_sender(sender: Sender, sock: socket.socket | None) -> None:
    try:
        await sender.close()
    finally:
        if sock is not None:
            sock.close()
