"""The client of an A1 or a Go1: a UDP socket, the session, and the sender of commands.

States are read by whoever asks first, the event loop or a control function's thread, so that
neither waits for the other. Commands go through a sender with its own timing.
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
from rote.transport.base_client import listen, tell_all
from rote.transport.link import split_url
from rote.transport.tap import Tap
from rote.transport.timer import Alarm
from rote.transport.udp.link import host_and_port
from rote.wire.a1.codec import Seal
from rote.wire.a1.values import Command, Dialect, HighCmd, HighState, LowState

LOW_PORT, OLD_HIGH_PORT, HIGH_PORT = 8007, 8007, 8082
KEPT_S = 0.5
"""A command that is to be repeated until the next one is replaced by the safe one if our event loop
is blocked for longer than this.
"""
DAMPING_MODE = 7
"""The damping mode of the walking controller."""
PERIOD_S = {Level.LOW: 0.002, Level.HIGH: 0.005}
"""How often a command is sent. Unitree's examples say 2 ms, and allow 1 to 10."""
_RENEW_S = 0.02
STALE_S = {Level.LOW: 0.05, Level.HIGH: 0.3}
"""A robot that is driven and has not told its state for this long is made safe."""
_LATE_S = 0.01
"""If our own timer fires this much too late, this computer was busy and did not listen either, so
the robot gets this much longer before its silence is judged.
"""
_LONGEST = 2048
RobotState: TypeAlias = HighState | LowState
StateListener = Callable[[RobotState], object]
TroubleListener = Callable[[RoteError], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class A1Target:
    """Where a robot is, and how to talk to it: the contents of a URL."""

    host: str
    ports: tuple[int, ...]
    """They are tried one after the other."""
    level: Level = Level.HIGH
    dialect: Dialect | None = None
    """None: it is detected from the first state."""
    isolated: bool = True
    """Whether a separate process sends the commands."""
    seal: Seal = Seal.PLAIN
    """The checksum of high-level commands to a Go1. Unitree's client sends the plain one, in 200 of
    200 captured commands; Unitree's library as a robot takes the encrypted one alone."""
    local: int = 0
    """Our own port; 0 is any. By reports, the robot answers to whichever it is asked from."""


def read_url(url: str) -> A1Target:
    """Parse `a1://HOST[:PORT][?level=low|high&dialect=3.2|3.3|3.3.4|go1&sender=process|loop]`.

    `checksum=plain|encrypted` and `local=PORT` may follow too.
    """
    parts = split_url(url)
    try:
        asked = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        level = Level(asked.pop("level", "high"))
        dialect = Dialect(asked.pop("dialect")) if "dialect" in asked else None
        isolated = {"process": True, "loop": False}[asked.pop("sender", "process")]
        seal = Seal(asked.pop("checksum", Seal.PLAIN.value))
        local = int(asked.pop("local", "0"))
    except (ValueError, KeyError):
        raise _no_url(url) from None
    if parts.scheme != "a1" or parts.path.strip("/") or asked or not 0 <= local < 65_536:
        raise _no_url(url)
    host, port = host_and_port(parts.netloc, -1)
    ports = _ports(level, dialect) if port == -1 else (port,)
    return A1Target(
        host=host,
        ports=ports,
        level=level,
        dialect=dialect,
        isolated=isolated,
        seal=seal,
        local=local,
    )


def _no_url(url: str) -> BadRequestError:
    known = ", ".join(dialect.value for dialect in Dialect)
    return BadRequestError(
        f"{url!r} does not name an A1",
        "Write a1://HOST[:PORT], and after a ? any of level=high or low, "
        f"dialect= one of {known}, sender=process or loop, checksum=plain or encrypted (a "
        "Go1's high level), local=PORT, joined by &.",
    )


def _ports(level: Level, dialect: Dialect | None) -> tuple[int, ...]:
    if level is Level.LOW:
        return (LOW_PORT,)
    if dialect is None:
        return (HIGH_PORT, OLD_HIGH_PORT)
    return (OLD_HIGH_PORT,) if dialect is Dialect.A1_3_2 else (HIGH_PORT,)


def walking_url(url: str) -> str:
    """Return the URL of the robot's walking controller: with the port of the motors, if that is not
    usual.
    """
    target = read_url(url)
    if target.level is Level.HIGH:
        return url
    host = f"[{target.host}]" if ":" in target.host else target.host
    port = "" if target.ports == (LOW_PORT,) else f":{target.ports[0]}"
    more = f"&dialect={target.dialect.value}" if target.dialect else ""
    more += "" if target.isolated else "&sender=loop"
    more += "" if target.seal is Seal.PLAIN else f"&checksum={target.seal.value}"
    return f"a1://{host}{port}?level=high{more}"


def damped(level: Level, dialect: Dialect) -> Command:
    """Return the command that damps all motors: the legs give way slowly.

    The walking controller of dialect 3.2 has no such mode; there it is told to stand idle.
    """
    if level is Level.HIGH and dialect is not Dialect.A1_3_2:
        return HighCmd(mode=DAMPING_MODE)
    return session.neutral(level, dialect)


async def open_client(url: str, *, timeout: float = 5.0, tap: Tap | None = None) -> "A1Client":
    """Return a client that has heard the robot at `url`, or raise why there is none."""
    target = read_url(url)
    share_s = timeout / len(target.ports)
    for place, port in enumerate(target.ports):
        client = A1Client(url, replace(target, ports=(port,)), share_s, place * share_s, tap)
        if tap is not None:
            tap.stage(f"port {port}")
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
        sought_s: float = 0.0,
        tap: Tap | None = None,
    ) -> None:
        """Wait `connect_s` for the robot, which was searched elsewhere for `sought_s` already."""
        self.url = url
        self.level = target.level
        self.isolated = target.isolated
        self.latest: RobotState | None = None
        """The newest state."""
        self.heard_s = -math.inf
        """When it arrived, by `now`."""
        self._target = target
        self._sought_s = sought_s
        self._tap = tap
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self._now = clock.stall_clock(self._loop)
        self._suspended_s = clock.suspended_s()
        """What that clock had counted as suspended when the newest state arrived."""
        timing = A1Timing(period_s=_RENEW_S, connect_s=connect_s, stale_s=STALE_S[target.level])
        seal = target.seal if target.level is Level.HIGH else None
        self._session = A1Session(
            Role.CLIENT, target.level, dialect=target.dialect, timing=timing, seal=seal
        )
        self._lock = threading.Lock()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._failure: RoteError | None = None
        self._alarm = Alarm(self._tick)
        self._due = math.inf
        self._kept: bytes | None = None
        self._asks = False
        """Whether the robot was asked for anything but to do nothing."""
        self._state_listeners: list[StateListener] = []
        self._trouble_listeners: list[TroubleListener] = []
        self._socket: socket.socket | None = None
        self._sender: Sender | None = None
        self._deaf: Callable[[], None] = _nothing

    # ---- what is known --------------------------------------------------------------------------

    @property
    def dialect(self) -> Dialect:
        """The robot's dialect."""
        assert self._session.dialect is not None
        return self._session.dialect

    @property
    def dropped(self) -> Counter[str]:
        """What arrived and was not used, by reason."""
        return self._session.dropped

    @property
    def counts(self) -> Counts:
        """What was sent."""
        return self._sender.counts if self._sender is not None else Counts()

    @property
    def heard(self) -> int:
        """How many states were used."""
        return self._session.heard

    def now(self) -> float:
        """The clock of this connection, in seconds. It counts suspend."""
        return self._now()

    def on_state(self, listener: StateListener) -> Callable[[], None]:
        """Call `listener` with every state. Return a function that removes it."""
        return listen(self._state_listeners, listener)

    def on_trouble(self, listener: TroubleListener) -> Callable[[], None]:
        """Call `listener` when the robot was made safe or is lost. Return a function that removes
        it.
        """
        if self._failure is not None:
            self._loop.call_soon(listener, self._failure)
        return listen(self._trouble_listeners, listener)

    # ---- from beginning to end ------------------------------------------------------------------

    async def open(self) -> None:
        """Find the robot; raises `NoAnswerError` if there is none."""
        self._socket = await self._connected()
        self._deaf = on_readable(self._loop, self._socket, self._readable)
        try:
            if self.isolated:
                self._sender = ProcessSender(
                    self._socket, self._stalled, self._sender_died, PERIOD_S[self.level]
                )
            else:
                send = partial(_send, self._socket)
                self._sender = LoopSender(send, self._stalled, PERIOD_S[self.level])
            await self._sender.ready()
            with self._lock:
                self._session.open(self._clock())
            self._flush()
            await self._opened
        except BaseException:
            await self.close()
            raise

    async def _connected(self) -> socket.socket:
        host, port = self._target.host, self._target.ports[0]
        try:
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            family, kind, protocol, _, address = found[0]
            carrier = socket.socket(family, kind, protocol)
            carrier.setblocking(False)
            try:
                if self._target.local:
                    carrier.bind(("", self._target.local))
                carrier.connect(address)
            except OSError:
                carrier.close()
                raise
        except OSError as error:
            raise LinkError(
                f"{host!r} cannot be reached: {error.strerror or error}",
                "Check the address, and that this computer is on the robot's network.",
            ) from error
        return carrier

    async def close(self) -> None:
        """Leave the robot safe. Safe to repeat."""
        if self._failure is None:
            self._failure = LinkError(f"the connection to {self.url} was closed")
            tell_all(self._trouble_listeners, self._failure, self._loop)
        self._kept = None
        with self._lock:
            self._session.close()
        self._alarm.clear()
        sender, self._sender = self._sender, None
        carrier, self._socket = self._socket, None
        if carrier is not None:
            self._deaf()
        try:
            if sender is not None:
                await asyncio.shield(asyncio.ensure_future(_closed(sender, carrier)))
        finally:
            if sender is None and carrier is not None:
                carrier.close()

    # ---- what is said ---------------------------------------------------------------------------

    def command(self, command: Command, hold_s: float | None = None) -> None:
        """Send `command` repeatedly, for `hold_s` seconds; without it, until the next one.

        From any thread with a `hold_s`; without, from that of the event loop. Raises the failure if
        the robot is lost, and `BadRequestError` if a frame cannot hold the command.
        """
        if self._failure is not None:
            raise self._failure
        with self._lock:
            self._session.command(command, self._clock())
            (datagram,) = self._session.outgoing()[-1:]
        assert self._sender is not None
        if self._tap is not None and not self._tap.sending(datagram):
            return
        self._asks = command != session.neutral(self.level, self.dialect)
        if hold_s is None and self._asks:
            self._kept, hold_s = datagram, KEPT_S
        else:
            self._kept = None
        self._sender.say(datagram, math.inf if hold_s is None else hold_s)

    def trip(self, command: Command | None = None) -> None:
        """Make the robot safe at once, and accept no command until `arm`; from any thread."""
        self._kept = None
        if self._sender is not None:
            self._sender.safe(self._encoded(command or damped(self.level, self.dialect)))
            self._sender.trip()

    def arm(self) -> None:
        """Accept commands again after a trip; until there is one, the robot is asked for
        nothing.
        """
        if self._failure is not None:
            raise self._failure
        assert self._sender is not None
        self._sender.safe(self._encoded(session.neutral(self.level, self.dialect)))
        self._sender.arm()
        self.command(session.neutral(self.level, self.dialect))

    def _encoded(self, command: Command) -> bytes:
        with self._lock:
            if not self._session.live:
                return b""
            self._session.command(command, self._clock())
            return self._session.outgoing()[-1]

    # ---- what is heard --------------------------------------------------------------------------

    def poll(self) -> RobotState | None:
        """Read what has arrived, and return the newest state; from any thread."""
        events = self._take()
        if events:
            self._loop.call_soon_threadsafe(self._tell, events)
        return self.latest

    def _take(self) -> list[session.Event]:
        carrier = self._socket
        with self._lock:
            while carrier is not None:
                try:
                    datagram = carrier.recv(_LONGEST)
                except OSError:  # nothing more; or the robot's program is not running yet
                    break
                if self._tap is not None:
                    self._tap.heard(datagram)
                self._session.receive(datagram, self._clock())
            events = self._session.events()
            for event in events:
                if isinstance(event, session.A1Reported):
                    self.latest, self.heard_s = event.state, self._now()
                    self._suspended_s = clock.suspended_s()
        return events

    def _readable(self) -> None:
        self._tell(self._take())
        self._flush()

    def _tick(self) -> None:
        if self._kept is not None and self._sender is not None:
            self._sender.say(self._kept, KEPT_S)
        now = self._clock()
        # Not for longer than a command is kept: on a computer that is always late, the robot is
        # judged all the same.
        if now > self._due + _LATE_S and self._now() < self.heard_s + KEPT_S:
            self._due = now + _LATE_S
            self._alarm.set(self._due)
            return
        with self._lock:
            self._session.tick(self._clock())
            events = self._session.events()
        self._tell(events)
        self._flush()

    def _flush(self) -> None:
        with self._lock:
            outgoing, due = self._session.outgoing(), self._session.due
            is_seeking = self._session.state is session.A1SessionState.SEEKING
        if is_seeking:
            for datagram in outgoing:
                _send(self._socket, datagram)
        self._due = due
        self._alarm.set(due)

    def _tell(self, events: list[session.Event]) -> None:
        for event in events:
            if isinstance(event, session.A1Reported):
                tell_all(self._state_listeners, event.state, self._loop)
            elif isinstance(event, session.Learned):
                self._found()
            elif isinstance(event, PeerLost):
                self._fail(self._lost(event.silence_s))
            elif isinstance(event, session.Mismatched):
                self._mismatched(event.dialects)
            elif isinstance(event, session.WentStale) and not self._asks:
                continue  # nothing is driven; `PeerLost` follows where it stays silent
            elif trouble := _trouble(event):
                self.trip(session.neutral(self.level, self.dialect))
                tell_all(self._trouble_listeners, trouble, self._loop)

    def _found(self) -> None:
        self.arm()
        if not self._opened.done():
            self._opened.set_result(None)

    def _mismatched(self, dialects: tuple[Dialect, ...]) -> None:
        spoken = " or ".join(dialect.value for dialect in dialects)
        if not self._opened.done():
            self._fail(
                RemoteProtocolError(
                    f"the robot at {self.url} speaks {spoken}, not {self.dialect.value}",
                    "Leave the dialect out of the URL, or name the one it speaks.",
                )
            )

    def _stalled(self, stall: Stall) -> None:
        self._kept = None
        if stall.suspended_s > stall.silence_s / 2:
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
                f"no new command came for {1000 * stall.silence_s:.0f} ms, so the robot was made "
                "safe",
                "Make the control function quicker, or give it a longer period.",
            )
        tell_all(self._trouble_listeners, trouble, self._loop)

    def _sender_died(self) -> None:
        self._fail(LinkError("the process that sends the commands was ended", "Connect again."))

    def _lost(self, silence_s: float) -> RoteError:
        if not self._opened.done():
            return NoAnswerError(
                f"no A1 answered at {self.url} within {self._sought_s + silence_s:.1f} s"
                + (f"; {self._dropped_words()}" if self.dropped else ""),
                Text(
                    "Check the address, the level and the port, and that the robot is on; for a "
                    "simulated one: {simulate}.",
                    simulate=Act.SIMULATE_A1,
                ),
            )
        suspended_s = clock.suspended_s() - self._suspended_s
        silence = f"has been silent for {silence_s:.1f} s"
        if suspended_s > silence_s:
            silence = f"is silent since this computer was suspended for {suspended_s:.1f} s"
        return PeerLostError(
            f"the robot at {self.url} {silence}; its state is unknown",
            "It was told to damp its motors as soon as it fell silent. Look at it before you touch "
            "it, then connect again.",
        )

    def _dropped_words(self) -> str:
        kinds = ", ".join(f"{count} with {why}" for why, count in self.dropped.items())
        return f"what came could not be used: {kinds}"

    def _fail(self, error: RoteError) -> None:
        if self._failure is not None:
            return
        self._failure = error
        self._kept = None
        if self._sender is not None and self._opened.done():
            self._sender.trip()
        if not self._opened.done():
            self._opened.set_exception(error)
            self._opened.exception()  # the error is raised where the connection is awaited
        tell_all(self._trouble_listeners, error, self._loop)


def _nothing() -> None:
    """Do nothing: no socket is open yet."""


def _send(carrier: socket.socket | None, datagram: bytes) -> None:
    if carrier is not None:
        with suppress(OSError):  # nobody listens there yet; the session gives up in time
            carrier.send(datagram)


def _trouble(event: session.Event) -> ProtectionError | None:
    if isinstance(event, session.WentStale):
        return ProtectionError(
            "stale",
            f"no state came for {1000 * event.silence_s:.0f} ms",
            "Look at the robot and the network between; a cable is better than a radio.",
        )
    if isinstance(event, session.Jumped):
        return ProtectionError(
            "clock",
            f"the robot's clock went from {event.before} to {event.after}",
            "Its controller was restarted, or another robot answers; connect again.",
        )
    return None


async def _closed(sender: Sender, carrier: socket.socket | None) -> None:
    try:
        await sender.close()
    finally:
        if carrier is not None:
            carrier.close()
