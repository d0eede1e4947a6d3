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
_SIZE_PREFIX = struct.Struct("<H")
_ORDER_HEADER = struct.Struct("<cd")  # the kind of order, hold_s; a datagram may follow
_REPORT = struct.Struct("<cddQQ")  # the kind of report, silence_s, suspended_s, sent, late
_COMMAND, _SAFE, _ARM, _TRIP, _END = b"s", b"f", b"a", b"t", b"e"  # kinds of orders
_STALLED, _COUNTED = b"S", b"C"  # kinds of reports
_REPORT_CYCLES = 50
"""Periods between two reports of the counters."""
_READ_ATTEMPTS = 5
"""How often orders are read again if this process was stopped while it read them."""
_STARTS_WITHIN_S, _ENDS_WITHIN_S = 10.0, 3.0


class Counts(NamedTuple):
    """Counters of a sender."""

    sent: int = 0
    late: int = 0
    """Periods in which nothing was sent."""


class Stall(NamedTuple):
    """A time without a new command, after which the safe command was sent."""

    silence_s: float
    suspended_s: float = 0.0
    """How long this computer was suspended during that time."""


StallListener = Callable[[Stall], None]


class Sender(Protocol):
    """Sends the newest command once per period."""

    counts: Counts

    async def wait_until_ready(self) -> None:
        """Wait until it can send."""

    def set_command(self, datagram: bytes, hold_s: float) -> None:
        """Send this from now on, for at most `hold_s` seconds; ignored while tripped. May be called
        from any thread.
        """

    def set_safe_command(self, datagram: bytes) -> None:
        """Set the safe command."""

    def trip(self) -> None:
        """Send the safe command from now on, until `arm`. May be called from any thread."""

    def arm(self) -> None:
        """Accept commands again."""

    async def close(self) -> None:
        """Send the safe command for a moment, or for a second if it was tripped, and end."""


class CommandSequence:
    """Decides which command to send when, without a clock or a socket. Times include suspend."""

    def __init__(self, period_s: float = 0.002) -> None:
        self._period_s = period_s
        self._safe_command = b""
        self._command = self._command_before = b""
        """The newest command, and the last one that differed from it."""
        self._sent = b""
        self._usual_pair = (b"", b"")
        """The newest two consecutive commands that were both sent: they define the usual speed."""
        self._is_behind = False
        """Whether, after a stall, the sent positions have not reached those of the command yet."""
        self._resumed_at_s = -math.inf
        """When the first command after the newest stall was sent."""
        self._suspended_s = math.inf
        """The computer's total time in suspend when the last command was sent; inf before it."""
        self._set_at_s = 0.0
        self._valid_until_s = math.inf
        """When the newest command was set, and until when it is valid."""
        self._sent_at_s = self._sent_valid_until_s = math.inf
        """When the last command was sent, and until when it was valid."""
        self._tripped_at_s: float | None = None
        self.stall: Stall | None = None
        """The stall that caused the newest trip, until it is reported."""

    def set_command(self, datagram: bytes, hold_s: float, now: float) -> None:
        """Set a command for `hold_s` seconds; ignored while tripped."""
        if self._tripped_at_s is None:
            if datagram != self._command:
                self._command_before = self._command or datagram
            self._command, self._set_at_s, self._valid_until_s = datagram, now, now + hold_s

    def set_safe_command(self, datagram: bytes) -> None:
        """Set the safe command."""
        self._safe_command = datagram

    def trip(self, now: float) -> None:
        """From now on send only the safe command."""
        if self._tripped_at_s is None:
            self._tripped_at_s = now
            self._command, self._valid_until_s = b"", math.inf

    def arm(self) -> None:
        """Accept commands again."""
        self._tripped_at_s = None

    def choose_command(self, now: float, suspended_s: float = 0.0) -> bytes:
        """Return the command to send now; empty if none was ever set. After a stall, trip first.

        `suspended_s` is how long this computer has been suspended since it was started.
        """
        silent_s = now - self._sent_at_s
        stall_suspended_s = max(0.0, suspended_s - self._suspended_s)
        has_sender_stalled = silent_s > MAX_STALL_S and now >= self._sent_valid_until_s
        if has_sender_stalled and self._tripped_at_s is None:
            self.stall = Stall(silent_s, stall_suspended_s)
            self.trip(now)
        elif now >= self._valid_until_s:  # no newer command was set in time
            self.stall = Stall(now - self._set_at_s, stall_suspended_s)
            self.trip(now)
        if silent_s > 1.5 * self._period_s:  # at least one period was missed
            self._is_behind, self._resumed_at_s = True, now
        self._sent_at_s, self._sent_valid_until_s = now, self._valid_until_s
        self._suspended_s = suspended_s
        self._sent = self._safe_command if self._tripped_at_s is not None else self._next_command()
        return self._sent

    def _next_command(self) -> bytes:
        """Return the command to send; after a stall, a limited step towards it."""
        if not self._is_behind:
            was_previous_sent = self._sent == self._command_before
            if was_previous_sent and self._command != self._command_before:
                self._usual_pair = (self._sent, self._command)
            return self._command
        step_range_rad = (SOFT_RAD_S * self._period_s, MAX_RAD_S * self._period_s)
        step = layout.limit_step(
            self._sent, self._command, self._command_before, self._usual_pair, step_range_rad
        )
        # Go on until a command from after the stall is reached: an older one may come first.
        self._is_behind = step != self._command or self._set_at_s < self._resumed_at_s
        return step

    def remaining_safe_s(self, now: float) -> float:
        """Return for how many seconds the safe command must still be sent before closing."""
        if self._tripped_at_s is None:
            return CLOSING_S
        return max(CLOSING_S, self._tripped_at_s + SAFE_S - now)


# ---- in the event loop --------------------------------------------------------------------------


class LoopSender:
    """A sender inside this program's event loop; it stalls if the loop is blocked."""

    def __init__(
        self, send: Callable[[bytes], None], on_stall: StallListener, period_s: float
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._send = send
        self._on_stall = on_stall
        self._period_s = period_s
        self._clock = clock.stall_clock(self._loop)
        self._sequence = CommandSequence(period_s)
        self.counts = Counts()
        self._due_s = self._loop.time()
        self._timer: asyncio.Handle = self._loop.call_soon(self._send_next)

    async def wait_until_ready(self) -> None:
        """Return at once: this sender needs no start-up."""

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
        """Send one command, count missed periods, and schedule the next command."""
        now = self._loop.time()
        if datagram := self._sequence.choose_command(self._clock(), clock.suspended_s()):
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
        safe_s = self._sequence.remaining_safe_s(now)
        self._sequence.trip(now)
        try:
            await asyncio.sleep(safe_s)
        finally:
            self._timer.cancel()


# ---- in a separate process ----------------------------------------------------------------------


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
                framed = _SIZE_PREFIX.pack(len(message)) + message
                self._unsent = framed[self._end.send(framed) :]

    def receive(self) -> bytes | None:
        """Return the next message; b"" if the other end is closed, None if none has arrived."""
        while (message := self._take_message()) is None:
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

    def _take_message(self) -> bytes | None:
        """Remove and return the first message in the buffer; None if none is complete."""
        if len(self._received) < _SIZE_PREFIX.size:
            return None
        end = _SIZE_PREFIX.size + _SIZE_PREFIX.unpack_from(self._received)[0]
        if len(self._received) < end:
            return None
        message = bytes(self._received[_SIZE_PREFIX.size : end])
        del self._received[:end]
        return message

    def close(self) -> None:
        """Close this end."""
        self._end.close()


class ProcessSender:
    """A sender in a separate process."""

    def __init__(
        self,
        carrier: socket.socket,
        on_stall: StallListener,
        on_death: Callable[[], None],
        period_s: float,
    ) -> None:
        """Start the process, which sends through `carrier`; `on_death` is called if it ends by
        itself. Raises `UnsupportedError` or `LinkError` if it cannot be started.
        """
        self._loop = asyncio.get_running_loop()
        self._on_stall = on_stall
        self._on_death = on_death
        if not system.can_pass_sockets():
            raise UnsupportedError(
                "start the process that sends commands at a steady rate",
                "this system",
                remedy="Add sender=loop to the URL. This program then sends the commands "
                "itself, and nothing makes the robot safe if the program stalls.",
            )
        ours, theirs = socket.socketpair()
        self._line = Line(ours)
        self.counts = Counts()
        descriptors = (carrier.fileno(), theirs.fileno())
        command = [sys.executable, "-m", __name__, *map(str, descriptors), str(period_s)]
        with theirs:
            try:
                # A program that reads our output must not have to wait for this process, too.
                self.process = subprocess.Popen(  # noqa: S603 - ourselves
                    command,
                    pass_fds=descriptors,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                self._line.close()
                raise LinkError(f"the sending process cannot be started: {error}") from error
        self._started: asyncio.Future[None] = self._loop.create_future()
        self._stop_reading = on_readable(self._loop, ours, self._on_readable)

    async def wait_until_ready(self) -> None:
        """Wait for the first report of the process; raise `LinkError` if none comes in time."""
        try:
            async with asyncio.timeout(_STARTS_WITHIN_S):
                await self._started
        except TimeoutError:
            raise LinkError(
                f"the sending process did not start within {_STARTS_WITHIN_S:g} s",
                "Close other programs on this computer, or connect with sender=loop in the URL.",
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

    def _send_order(self, kind: bytes, hold_s: float = 0.0, datagram: bytes = b"") -> None:
        # If the process is stopped or gone, the robot falls silent too, and the session notices.
        self._line.send(_ORDER_HEADER.pack(kind, hold_s) + datagram)

    def _on_readable(self) -> None:
        """Read the reports of the process; the end of its stream means that it has died."""
        while message := self._line.receive():
            kind, silence_s, suspended_s, sent, late = _REPORT.unpack(message)
            self.counts = Counts(sent, late)
            if not self._started.done():
                self._started.set_result(None)
            if kind == _STALLED:
                self._on_stall(Stall(silence_s, suspended_s))
        if message is None:  # no further report has arrived yet
            return
        self._stop_reading()
        if not self._started.done():
            self._started.set_exception(
                LinkError("the sending process ended right after its start")
            )
        else:
            self._on_death()

    async def close(self) -> None:
        """Send the safe command a last time, and end."""
        self._send_order(_END)
        self._stop_reading()
        self._line.close()
        try:
            await asyncio.to_thread(self.process.wait, _ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:  # pragma: no cover - a process that is stopped
            self.process.kill()
            await asyncio.to_thread(self.process.wait)


class _SenderProcess:
    """The main loop of the sending process: one datagram per period, by absolute deadlines."""

    def __init__(self, carrier: socket.socket, line: Line, period_s: float) -> None:
        self._carrier = carrier
        self._line = line
        self._period_s = period_s
        self._sequence = CommandSequence(period_s)
        self._sent = self._late = 0
        self._end_s = math.inf

    def run(self) -> None:
        """Send until the program has ended and the safe command was sent for long enough."""
        due_s = clock.continuous_s()
        cycles = 0
        while clock.continuous_s() < self._end_s:
            now = self._receive_newest_orders()
            if datagram := self._sequence.choose_command(now, clock.suspended_s()):
                self._sent += 1
                with suppress(OSError):  # the robot's port is not open
                    self._carrier.send(datagram)
            self._send_report(cycles)
            cycles += 1
            missed = max(0, int((now - due_s) / self._period_s))
            self._late += missed
            due_s += (missed + 1) * self._period_s
            time.sleep(max(0.0, due_s - clock.continuous_s()))

    def _receive_newest_orders(self) -> float:
        """Read the orders; return the time after it, from which the next command is chosen.

        If this process was stopped meanwhile, the newest command is not the next one after the last
        that it sent, and newer orders may wait: without them that command would seem to expire.
        """
        for _ in range(_READ_ATTEMPTS):
            began_s = clock.continuous_s()
            self._receive_orders()
            now = clock.continuous_s()
            if now - began_s <= self._period_s:
                break
        return now

    def _receive_orders(self) -> None:
        while self._end_s == math.inf and (message := self._line.receive()) is not None:
            self._execute_order(message, clock.continuous_s())

    def _execute_order(self, message: bytes, now: float) -> None:
        was_killed = not message  # the program closed its end without the order to end
        if was_killed or message[:1] == _END:
            safe_s = SAFE_S if was_killed else self._sequence.remaining_safe_s(now)
            self._sequence.trip(now)
            self._end_s = now + safe_s
            return
        kind, hold_s = _ORDER_HEADER.unpack_from(message)
        datagram = message[_ORDER_HEADER.size :]
        if kind == _COMMAND:
            self._sequence.set_command(datagram, hold_s, now)
        elif kind == _SAFE:
            self._sequence.set_safe_command(datagram)
        elif kind == _TRIP:
            self._sequence.trip(now)
        else:
            self._sequence.arm()

    def _send_report(self, cycles: int) -> None:
        stall, self._sequence.stall = self._sequence.stall, None
        if stall is not None:
            self._line.send(_REPORT.pack(_STALLED, *stall, self._sent, self._late))
        elif cycles % _REPORT_CYCLES == 0:
            self._line.send(_REPORT.pack(_COUNTED, 0.0, 0.0, self._sent, self._late))


def main(arguments: list[str]) -> None:
    """Run the sending process.

    `arguments` are the descriptors of the robot's socket and of the line to the program, and the
    period in seconds.
    """
    # Only the parent ends this process; Ctrl-C at a terminal must not.
    for number in (signal.SIGINT, *system.end_signals()):
        signal.signal(number, signal.SIG_IGN)
    realtime.request_precise_timers()
    realtime.request_realtime()
    carrier, line = (socket.socket(fileno=int(number)) for number in arguments[:2])
    _SenderProcess(carrier, Line(line), float(arguments[2])).run()


if __name__ == "__main__":
    main(sys.argv[1:])
