"""Sends commands to an A1 at a steady rate, even if the program that sets them is stuck.

A command is valid for a limited time. If that runs out before the next one, because a control
function or its whole program is stuck, the safe command is sent instead, until the program arms the
sender again: legs that have gone limp must not be pulled back all at once. The same holds if the
sender itself stalled: the next command may be far from the last one it sent. After a shorter stall
the positions follow in steps, at most at twice the speed of the motion.

Stalls are measured by a clock that includes the time during which this computer was suspended.

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
"""Minimum time for which the safe command is sent after a trip."""
CLOSING_S = 0.02
"""Time for which the safe command is sent when a program ends."""
MAX_STALL_S = 0.1
"""A sender that sent nothing for longer than this, and for longer than its last command was valid,
sends the safe one: the motion went on meanwhile, and the legs would jump to its new position.
"""
MAX_RAD_S = 10.0
"""Maximum speed at which positions follow after a stall: the maximum of any played motion."""
SOFT_RAD_S = 0.8
"""Speed at which positions may always follow after a stall: the speed of a soft move."""
_SIZE = struct.Struct("<H")
_HEAD = struct.Struct("<cd")
_REPORT = struct.Struct("<cddQQ")
_COMMAND, _SAFE, _ARM, _TRIP, _END = b"s", b"f", b"a", b"t", b"e"
_STALLED, _COUNTED = b"S", b"C"
_COUNT_EVERY = 50
_STARTS_WITHIN_S, _ENDS_WITHIN_S = 10.0, 3.0


class Counts(NamedTuple):
    """Counters of a sender."""

    sent: int = 0
    late: int = 0
    """Periods in which nothing was sent."""


class Stall(NamedTuple):
    """A time without a new command, after which the safe one was sent."""

    silence_s: float
    suspended_s: float = 0.0
    """How long this computer was suspended during that time."""


Stalled = Callable[[Stall], None]


class Sender(Protocol):
    """Sends commands repeatedly."""

    counts: Counts

    async def ready(self) -> None:
        """Wait until it can send."""

    def set_command(self, datagram: bytes, hold_s: float) -> None:
        """Send this from now on, for at most `hold_s`; from any thread. Ignored while tripped."""

    def set_safe_command(self, datagram: bytes) -> None:
        """Set the safe command."""

    def trip(self) -> None:
        """Send the safe command from now on, until `arm`; from any thread."""

    def arm(self) -> None:
        """Accept commands again."""

    async def close(self) -> None:
        """Send the safe command a last time, for a second if it was tripped, and end."""


class CommandSequence:
    """Decides which command to send when, without a clock or a socket. Times include suspend."""

    def __init__(self, period_s: float = 0.002) -> None:
        self._period_s = period_s
        self._safe = b""
        self._command = self._command_before = b""
        self._sent = b""
        self._usual = (b"", b"")
        """The newest two consecutive commands that were both sent; they give the usual speed."""
        self._is_behind = False
        """Whether the positions sent last have not reached those of the command yet."""
        self._late_s = -math.inf
        """When the first command after the newest stall was sent."""
        self._suspended_s = math.inf
        self._given_s = 0.0
        self._until_s = math.inf
        self._sent_s = self._sent_until_s = math.inf
        """When the last command was sent, and until when it was valid."""
        self._tripped_s: float | None = None
        self.stall: Stall | None = None
        """The stall that caused the newest trip, until it is reported."""

    def set_command(self, datagram: bytes, hold_s: float, now: float) -> None:
        """Set a command for `hold_s` seconds; ignored while tripped."""
        if self._tripped_s is None:
            if datagram != self._command:
                self._command_before = self._command or datagram
            self._command, self._given_s, self._until_s = datagram, now, now + hold_s

    def set_safe_command(self, datagram: bytes) -> None:
        """Set the safe command."""
        self._safe = datagram

    def trip(self, now: float) -> None:
        """From now on send only the safe command."""
        if self._tripped_s is None:
            self._tripped_s = now
            self._command, self._until_s = b"", math.inf

    def arm(self) -> None:
        """Accept commands again."""
        self._tripped_s = None

    def next(self, now: float, suspended_s: float = 0.0) -> bytes:
        """Return the command to send now; empty if none was ever set.

        `suspended_s` is how long this computer has been suspended since it was started.
        """
        silent_s = now - self._sent_s
        stall_suspended_s = max(0.0, suspended_s - self._suspended_s)
        if silent_s > MAX_STALL_S and now >= self._sent_until_s and self._tripped_s is None:
            self.stall = Stall(silent_s, stall_suspended_s)
            self.trip(now)
        elif now >= self._until_s:
            self.stall = Stall(now - self._given_s, stall_suspended_s)
            self.trip(now)
        if silent_s > 1.5 * self._period_s:
            self._is_behind, self._late_s = True, now
        self._sent_s, self._sent_until_s = now, self._until_s
        self._suspended_s = suspended_s
        self._sent = self._safe if self._tripped_s is not None else self._next_command()
        return self._sent

    def _next_command(self) -> bytes:
        """Return the command; after a stall, one whose positions are a step nearer to it."""
        if not self._is_behind:
            if self._command_before == self._sent != self._command:
                self._usual = (self._sent, self._command)
            return self._command
        span_rad = (SOFT_RAD_S * self._period_s, MAX_RAD_S * self._period_s)
        step = layout.limit_step(
            self._sent, self._command, self._command_before, self._usual, span_rad
        )
        # Until a command set after the stall is reached: the first one may be an old one.
        self._is_behind = step != self._command or self._given_s < self._late_s
        return step

    def remaining_safe_s(self, now: float) -> float:
        """Return how long the safe command must still be sent before closing, in seconds."""
        if self._tripped_s is None:
            return CLOSING_S
        return max(CLOSING_S, self._tripped_s + SAFE_S - now)


# ---- in the event loop --------------------------------------------------------------------------


class LoopSender:
    """A sender inside this program's event loop; it stalls if the loop is blocked."""

    def __init__(self, send: Callable[[bytes], None], on_stall: Stalled, period_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._send = send
        self._on_stall = on_stall
        self._period_s = period_s
        self._clock = clock.stall_clock(self._loop)
        self._sequence = CommandSequence(period_s)
        self.counts = Counts()
        self._due_s = self._loop.time()
        self._timer: asyncio.Handle = self._loop.call_soon(self._send_next)

    async def ready(self) -> None:
        """Do nothing: it can send at once."""

    def set_command(self, datagram: bytes, hold_s: float) -> None:
        """Send this from now on."""
        self._sequence.set_command(datagram, hold_s, self._clock())

    def set_safe_command(self, datagram: bytes) -> None:
        """Set the safe command."""
        self._sequence.set_safe_command(datagram)

    def trip(self) -> None:
        """Send the safe command."""
        self._sequence.trip(self._clock())

    def arm(self) -> None:
        """Accept commands again."""
        self._sequence.arm()

    def _send_next(self) -> None:
        now = self._loop.time()
        if datagram := self._sequence.next(self._clock(), clock.suspended_s()):
            self._send(datagram)
        missed = max(0, int((now - self._due_s) / self._period_s))
        self._due_s += (missed + 1) * self._period_s
        self.counts = Counts(self.counts.sent + bool(datagram), self.counts.late + missed)
        self._timer = self._loop.call_at(self._due_s, self._send_next)
        stall, self._sequence.stall = self._sequence.stall, None
        if stall is not None:
            self._on_stall(stall)

    async def close(self) -> None:
        """Send the safe command a last time, and end."""
        now = self._clock()
        last_s = self._sequence.remaining_safe_s(now)
        self._sequence.trip(now)
        try:
            await asyncio.sleep(last_s)
        finally:
            self._timer.cancel()


# ---- in a process of its own --------------------------------------------------------------------


class Line:
    """One end of the channel between a program and its sending process: messages, each preceded by
    its size, over a non-blocking stream socket.

    A message-oriented socket would do the same, but not every system has one.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._unsent = b""
        self._received = bytearray()
        self._lock = threading.Lock()

    def send(self, message: bytes) -> None:
        """Send a message, from any thread. It is dropped if the other end does not read, because
        that process is stopped or gone.
        """
        with self._lock, suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            if self._unsent:  # the end of an earlier message comes first
                self._unsent = self._unsent[self._end.send(self._unsent) :]
            if not self._unsent:
                whole = _SIZE.pack(len(message)) + message
                self._unsent = whole[self._end.send(whole) :]

    def receive(self) -> bytes | None:
        """Return the next message; b"" if the other end is closed, None if none has arrived."""
        while (message := self._next_message()) is None:
            try:
                data = self._end.recv(4096)
            except BlockingIOError:
                return None
            except ConnectionError:
                return b""
            if not data:
                return b""
            self._received += data
        return message

    def _next_message(self) -> bytes | None:
        if len(self._received) < _SIZE.size:
            return None
        end = _SIZE.size + _SIZE.unpack_from(self._received)[0]
        if len(self._received) < end:
            return None
        message = bytes(self._received[_SIZE.size : end])
        del self._received[:end]
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
        self._stop_reading = on_readable(self._loop, ours, self._on_readable)

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

    def set_command(self, datagram: bytes, hold_s: float) -> None:
        """Send this from now on."""
        self._send_order(_COMMAND, hold_s, datagram)

    def set_safe_command(self, datagram: bytes) -> None:
        """Set the safe command."""
        self._send_order(_SAFE, 0.0, datagram)

    def trip(self) -> None:
        """Send the safe command."""
        self._send_order(_TRIP)

    def arm(self) -> None:
        """Accept commands again."""
        self._send_order(_ARM)

    def _send_order(self, what: bytes, number: float = 0.0, datagram: bytes = b"") -> None:
        # If the process is stopped or gone, the robot falls silent too, and the session notices.
        self._line.send(_HEAD.pack(what, number) + datagram)

    def _on_readable(self) -> None:
        while message := self._line.receive():
            kind, silence_s, suspended_s, sent, late = _REPORT.unpack(message)
            self.counts = Counts(sent, late)
            if not self._up.done():
                self._up.set_result(None)
            if kind == _STALLED:
                self._on_stall(Stall(silence_s, suspended_s))
        if message is None:
            return
        self._stop_reading()
        if not self._up.done():
            self._up.set_exception(LinkError("the sending process ended at once"))
        else:
            self._on_death()

    async def close(self) -> None:
        """Send the safe command a last time, and end."""
        self._send_order(_END)
        self._stop_reading()
        self._line.close()
        try:
            await asyncio.to_thread(self._process.wait, _ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:  # pragma: no cover - a process that is stopped
            self._process.kill()
            await asyncio.to_thread(self._process.wait)


class _SenderProcess:
    """The sending process: one datagram per period, by absolute deadlines."""

    def __init__(self, carrier: socket.socket, line: Line, period_s: float) -> None:
        self._carrier = carrier
        self._line = line
        self._period_s = period_s
        self._sequence = CommandSequence(period_s)
        self._sent = self._late = 0
        self._end_s = math.inf

    def run(self) -> None:
        """Send until the program at the other end of the pipe is gone, and the robot safe."""
        due_s = clock.continuous_s()
        beats = 0
        while (now := clock.continuous_s()) < self._end_s:
            self._receive_orders(now)
            if datagram := self._sequence.next(now, clock.suspended_s()):
                self._sent += 1
                with suppress(OSError):  # the robot's port is not open
                    self._carrier.send(datagram)
            self._send_report(beats)
            beats += 1
            missed = max(0, int((now - due_s) / self._period_s))
            self._late += missed
            due_s += (missed + 1) * self._period_s
            time.sleep(max(0.0, due_s - clock.continuous_s()))

    def _receive_orders(self, now: float) -> None:
        while self._end_s == math.inf and (message := self._line.receive()) is not None:
            self._carry_out(message, now)

    def _carry_out(self, message: bytes, now: float) -> None:
        if not message or message[:1] == _END:
            # Without an end message, the program was killed, which is a trip.
            last_s = self._sequence.remaining_safe_s(now)
            self._sequence.trip(now)
            self._end_s = now + (last_s if message else SAFE_S)
            return
        what, number = _HEAD.unpack_from(message)
        datagram = message[_HEAD.size :]
        if what == _COMMAND:
            self._sequence.set_command(datagram, number, now)
        elif what == _SAFE:
            self._sequence.set_safe_command(datagram)
        elif what == _TRIP:
            self._sequence.trip(now)
        else:
            self._sequence.arm()

    def _send_report(self, beats: int) -> None:
        stall, self._sequence.stall = self._sequence.stall, None
        if stall is None and beats % _COUNT_EVERY:
            return
        kind = _COUNTED if stall is None else _STALLED
        self._line.send(_REPORT.pack(kind, *(stall or (0.0, 0.0)), self._sent, self._late))


def main(arguments: list[str]) -> None:
    """Run the process: `arguments` are two open sockets and the period."""
    # The parent decides when it ends: Ctrl-C at a terminal is not for it.
    for number in (signal.SIGINT, *system.end_signals()):
        signal.signal(number, signal.SIG_IGN)
    realtime.precise_timers()
    realtime.real_time()
    carrier, line = (socket.socket(fileno=int(number)) for number in arguments[:2])
    _SenderProcess(carrier, Line(line), float(arguments[2])).run()


if __name__ == "__main__":
    main(sys.argv[1:])
