"""Sends an A1 its commands at a steady rate, whatever the program that gives them does.

A command is given for a time. If that runs out before another one comes, because a control function
or its whole program is stuck, the safe command is sent instead, until somebody arms the sender
again: legs that have sunk must not be pulled back all at once. The same holds where the sender
itself hung: a command that it finds then may lie far from the last one it sent. After a shorter
stall the positions follow in steps, at twice the pace of the motion at most.

Stalls are judged by a clock that also counts the time during which this computer was suspended.

`ProcessSender` runs in a separate process, which no thread, lock or garbage collection of ours can
delay. If the program is killed, the process lives on until the robot is safe. `LoopSender` does the
same inside an event loop, for tests and for programs that want no process.
"""

import asyncio
import math
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from rote.errors import LinkError, UnsupportedError
from rote.platform import clock, realtime, system
from rote.platform.readable import on_readable
from rote.wire.a1 import layout

SAFE_S = 1.0
"""A safe command is sent at least this long."""
LAST_WORDS_S = 0.02
"""How long the safe command is sent when a program ends."""
HANG_S = 0.1
"""A sender that sent nothing for longer than this, and than its last command was good for, sends
the safe one: the motion went on meanwhile, and the legs would jump to where it is by now.
"""
MAX_RAD_S = 10.0
"""Maximum speed at which positions follow after a stall: that of any motion that is played."""
SOFT_RAD_S = 0.8
"""Speed at which positions may always follow after a stall: that of a soft move."""
_SIZE = struct.Struct("<H")
_HEAD = struct.Struct("<cd")
_TOLD = struct.Struct("<cddQQ")
_SAY, _SAFE, _ARM, _TRIP, _END = b"s", b"f", b"a", b"t", b"e"
_STALLED, _COUNTED = b"S", b"C"
_COUNT_EVERY = 50
_STARTS_WITHIN_S, _ENDS_WITHIN_S = 10.0, 3.0


class Counts(NamedTuple):
    """What a sender has done."""

    sent: int = 0
    late: int = 0
    """Periods in which nothing was sent."""


class Stall(NamedTuple):
    """A time without a new command, after which the safe one was sent."""

    silence_s: float
    suspended_s: float = 0.0
    """How much of it this computer was suspended."""


Stalled = Callable[[Stall], None]


class Sender(Protocol):
    """Sends commands repeatedly."""

    counts: Counts

    async def ready(self) -> None:
        """Wait until it can send."""

    def say(self, datagram: bytes, hold_s: float) -> None:
        """Send this from now on, for at most `hold_s`; from any thread. Ignored while tripped."""

    def safe(self, datagram: bytes) -> None:
        """Set the safe command."""

    def trip(self) -> None:
        """Send the safe command from now on, until `arm`; from any thread."""

    def arm(self) -> None:
        """Accept commands again."""

    async def close(self) -> None:
        """Send the safe command a last time, for a second if it was tripped, and end."""


class Steady:
    """What to send when: the rules, without a clock or a socket. All times count suspend."""

    def __init__(self, period_s: float = 0.002) -> None:
        self._period_s = period_s
        self._safe = b""
        self._said = self._said_before = b""
        self._sent = b""
        self._usual = (b"", b"")
        """The newest two consecutive commands that were both sent: the pace."""
        self._is_behind = False
        """Whether the positions that were sent last are not those of the command yet."""
        self._late_s = -math.inf
        """When something was sent after the newest stall."""
        self._suspended_s = math.inf
        self._given_s = 0.0
        self._until_s = math.inf
        self._sent_s = self._sent_until_s = math.inf
        """When something was sent last, and how long that was good."""
        self._tripped_s: float | None = None
        self.stall: Stall | None = None
        """What was wrong when a command's time ran out; reported once."""

    def say(self, datagram: bytes, hold_s: float, now: float) -> None:
        """Set a command for `hold_s` seconds; ignored while tripped."""
        if self._tripped_s is None:
            if datagram != self._said:
                self._said_before = self._said or datagram
            self._said, self._given_s, self._until_s = datagram, now, now + hold_s

    def safe(self, datagram: bytes) -> None:
        """Set the safe command."""
        self._safe = datagram

    def trip(self, now: float) -> None:
        """From now on send only the safe command."""
        if self._tripped_s is None:
            self._tripped_s = now
            self._said, self._until_s = b"", math.inf

    def arm(self) -> None:
        """Accept commands again."""
        self._tripped_s = None

    def next(self, now: float, suspended_s: float = 0.0) -> bytes:
        """Return what to send now; empty if nothing was ever given.

        `suspended_s` is how long this computer has been suspended since it was started.
        """
        hung_s = now - self._sent_s
        asleep_s = max(0.0, suspended_s - self._suspended_s)
        if hung_s > HANG_S and now >= self._sent_until_s and self._tripped_s is None:
            self.stall = Stall(hung_s, asleep_s)
            self.trip(now)
        elif now >= self._until_s:
            self.stall = Stall(now - self._given_s, asleep_s)
            self.trip(now)
        if hung_s > 1.5 * self._period_s:
            self._is_behind, self._late_s = True, now
        self._sent_s, self._sent_until_s = now, self._until_s
        self._suspended_s = suspended_s
        self._sent = self._safe if self._tripped_s is not None else self._step()
        return self._sent

    def _step(self) -> bytes:
        """Return the command; after a stall, one whose positions are a step nearer to it."""
        if not self._is_behind:
            if self._said_before == self._sent != self._said:
                self._usual = (self._sent, self._said)
            return self._said
        span_rad = (SOFT_RAD_S * self._period_s, MAX_RAD_S * self._period_s)
        step = layout.limit_step(self._sent, self._said, self._said_before, self._usual, span_rad)
        # Until a command is reached that was given after the stall: the first one may be the old.
        self._is_behind = step != self._said or self._given_s < self._late_s
        return step

    def must_last(self, now: float) -> float:
        """Return how long the safe command must still be sent before the end."""
        if self._tripped_s is None:
            return LAST_WORDS_S
        return max(LAST_WORDS_S, self._tripped_s + SAFE_S - now)


# ---- in the event loop --------------------------------------------------------------------------


class LoopSender:
    """A sender inside this program's event loop; what blocks the loop blocks it too."""

    def __init__(self, send: Callable[[bytes], None], on_stall: Stalled, period_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._send = send
        self._on_stall = on_stall
        self._period_s = period_s
        self._clock = clock.stall_clock(self._loop)
        self._steady = Steady(period_s)
        self.counts = Counts()
        self._due_s = self._loop.time()
        self._timer: asyncio.Handle = self._loop.call_soon(self._beat)

    async def ready(self) -> None:
        """Do nothing: it can send at once."""

    def say(self, datagram: bytes, hold_s: float) -> None:
        """Send this from now on."""
        self._steady.say(datagram, hold_s, self._clock())

    def safe(self, datagram: bytes) -> None:
        """Set the safe command."""
        self._steady.safe(datagram)

    def trip(self) -> None:
        """Send the safe command."""
        self._steady.trip(self._clock())

    def arm(self) -> None:
        """Accept commands again."""
        self._steady.arm()

    def _beat(self) -> None:
        now = self._loop.time()
        if datagram := self._steady.next(self._clock(), clock.suspended_s()):
            self._send(datagram)
        missed = max(0, int((now - self._due_s) / self._period_s))
        self._due_s += (missed + 1) * self._period_s
        self.counts = Counts(self.counts.sent + bool(datagram), self.counts.late + missed)
        self._timer = self._loop.call_at(self._due_s, self._beat)
        stall, self._steady.stall = self._steady.stall, None
        if stall is not None:
            self._on_stall(stall)

    async def close(self) -> None:
        """Send the safe command a last time, and end."""
        now = self._clock()
        last_s = self._steady.must_last(now)
        self._steady.trip(now)
        try:
            await asyncio.sleep(last_s)
        finally:
            self._timer.cancel()


# ---- in a process of its own --------------------------------------------------------------------


class Line:
    """One end of the line between a program and its sending process: whole messages, each with its
    size before it, over a stream socket that never blocks.

    A socket that keeps messages apart would do the same, but not every system has one.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._rest = b""
        self._come = bytearray()
        self._lock = threading.Lock()

    def send(self, message: bytes) -> None:
        """Send a message, from any thread. It is dropped if the other end does not read: then that
        process is stopped or gone.
        """
        with self._lock, suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            if self._rest:  # the end of an earlier message comes first
                self._rest = self._rest[self._end.send(self._rest) :]
            if not self._rest:
                whole = _SIZE.pack(len(message)) + message
                self._rest = whole[self._end.send(whole) :]

    def receive(self) -> bytes | None:
        """Return the next message; b"" if the other end is closed, None if nothing has come."""
        while (message := self._next()) is None:
            try:
                data = self._end.recv(4096)
            except BlockingIOError:
                return None
            except ConnectionError:
                return b""
            if not data:
                return b""
            self._come += data
        return message

    def _next(self) -> bytes | None:
        if len(self._come) < _SIZE.size:
            return None
        end = _SIZE.size + _SIZE.unpack_from(self._come)[0]
        if len(self._come) < end:
            return None
        message = bytes(self._come[_SIZE.size : end])
        del self._come[:end]
        return message

    def close(self) -> None:
        """Close this end."""
        self._end.close()


class ProcessSender:
    """A sender in a separate process, which sends through the given socket."""

    def __init__(
        self,
        carrier: socket.socket,
        on_stall: Stalled,
        on_death: Callable[[], None],
        period_s: float,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_stall = on_stall
        self._on_death = on_death
        if not system.hands_sockets_on():
            raise UnsupportedError(
                "start the process that sends commands at a steady rate",
                "this system",
                remedy="Add sender=loop to the URL: then this program sends them itself, and "
                "nothing makes the robot safe if it gets stuck.",
            )
        ours, theirs = socket.socketpair()
        self._line = Line(ours)
        self.counts = Counts()
        files = (carrier.fileno(), theirs.fileno())
        command = [sys.executable, "-m", __name__, *map(str, files), str(period_s)]
        with theirs:
            try:
                # It must not keep files open that others wait for.
                self._process = subprocess.Popen(  # noqa: S603 - ourselves
                    command,
                    pass_fds=files,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                self._line.close()
                raise LinkError(f"the sending process cannot be started: {error}") from error
        self._up: asyncio.Future[None] = self._loop.create_future()
        self._deaf = on_readable(self._loop, ours, self._hear)

    async def ready(self) -> None:
        """Wait until the process runs."""
        try:
            async with asyncio.timeout(_STARTS_WITHIN_S):
                await self._up
        except TimeoutError:
            raise LinkError(
                f"the sending process did not start within {_STARTS_WITHIN_S:g} s",
                "This computer has too much to do; or connect with sender=loop in the URL.",
            ) from None

    def say(self, datagram: bytes, hold_s: float) -> None:
        """Send this from now on."""
        self._tell(_SAY, hold_s, datagram)

    def safe(self, datagram: bytes) -> None:
        """Set the safe command."""
        self._tell(_SAFE, 0.0, datagram)

    def trip(self) -> None:
        """Send the safe command."""
        self._tell(_TRIP)

    def arm(self) -> None:
        """Accept commands again."""
        self._tell(_ARM)

    def _tell(self, what: bytes, number: float = 0.0, datagram: bytes = b"") -> None:
        # If the process is stopped or gone, the robot notices by the silence, and we by the
        # robot's.
        self._line.send(_HEAD.pack(what, number) + datagram)

    def _hear(self) -> None:
        while message := self._line.receive():
            kind, silence_s, suspended_s, sent, late = _TOLD.unpack(message)
            self.counts = Counts(sent, late)
            if not self._up.done():
                self._up.set_result(None)
            if kind == _STALLED:
                self._on_stall(Stall(silence_s, suspended_s))
        if message is None:
            return
        self._deaf()
        if not self._up.done():
            self._up.set_exception(LinkError("the sending process ended at once"))
        else:
            self._on_death()

    async def close(self) -> None:
        """Send the safe command a last time, and end."""
        self._tell(_END)
        self._deaf()
        self._line.close()
        try:
            await asyncio.to_thread(self._process.wait, _ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:  # pragma: no cover - a process that is stopped
            self._process.kill()
            await asyncio.to_thread(self._process.wait)


class _Child:
    """The process: one datagram per period, by absolute deadlines."""

    def __init__(self, carrier: socket.socket, line: Line, period_s: float) -> None:
        self._carrier = carrier
        self._line = line
        self._period_s = period_s
        self._steady = Steady(period_s)
        self._sent = self._late = 0
        self._end_s = math.inf

    def run(self) -> None:
        """Send until the program at the other end of the pipe is gone, and the robot safe."""
        due_s = clock.continuous_s()
        beats = 0
        while (now := clock.continuous_s()) < self._end_s:
            self._listen(now)
            if datagram := self._steady.next(now, clock.suspended_s()):
                self._sent += 1
                with suppress(OSError):  # nobody listens there yet, or no more
                    self._carrier.send(datagram)
            self._report(beats)
            beats += 1
            missed = max(0, int((now - due_s) / self._period_s))
            self._late += missed
            due_s += (missed + 1) * self._period_s
            time.sleep(max(0.0, due_s - clock.continuous_s()))

    def _listen(self, now: float) -> None:
        while self._end_s == math.inf and (message := self._line.receive()) is not None:
            self._obey(message, now)

    def _obey(self, message: bytes, now: float) -> None:
        if not message or message[:1] == _END:
            # The pipe was closed without a goodbye: the program was killed, which is a trip.
            last_s = self._steady.must_last(now)
            self._steady.trip(now)
            self._end_s = now + (last_s if message else SAFE_S)
            return
        what, number = _HEAD.unpack_from(message)
        datagram = message[_HEAD.size :]
        if what == _SAY:
            self._steady.say(datagram, number, now)
        elif what == _SAFE:
            self._steady.safe(datagram)
        elif what == _TRIP:
            self._steady.trip(now)
        else:
            self._steady.arm()

    def _report(self, beats: int) -> None:
        stall, self._steady.stall = self._steady.stall, None
        if stall is None and beats % _COUNT_EVERY:
            return
        kind = _COUNTED if stall is None else _STALLED
        self._line.send(_TOLD.pack(kind, *(stall or (0.0, 0.0)), self._sent, self._late))


def main(arguments: list[str]) -> None:
    """Run the process: `arguments` are two open sockets and the period."""
    # The parent decides when it ends: Ctrl-C at a terminal is not for it.
    for number in (signal.SIGINT, *system.end_signals()):
        signal.signal(number, signal.SIG_IGN)
    realtime.precise_timers()
    realtime.real_time()
    carrier, line = (socket.socket(fileno=int(number)) for number in arguments[:2])
    _Child(carrier, Line(line), float(arguments[2])).run()


if __name__ == "__main__":
    main(sys.argv[1:])
