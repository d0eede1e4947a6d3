"""LoopFunc: calls a function repeatedly, each time by its own deadline.

    loop = LoopFunc("control", 0.002, step)
    with loop:
        time.sleep(10)
    print(loop.stats())

The deadlines are absolute, so the rate does not drift. A call that is late by a period or more
counts as late, and the calls it delayed are skipped rather than made up for in a burst.
"""

import logging
import threading
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import overload

import numpy as np

from rote.errors import BadRequestError, TimeLimitError
from rote.platform import realtime
from rote.platform.clock import continuous_s

_log = logging.getLogger(__name__)
PERIOD_RANGE_S = (0.0005, 60.0)
_MAX_DEVIATIONS = 1 << 16
"""Maximum number of deviations kept: two minutes at 500 Hz."""


@dataclass(frozen=True, slots=True)
class LoopStats:
    """How well a loop has met its deadlines."""

    ticks: int
    late: int
    """Ticks that were skipped, because their time had passed."""
    rate_hz: float
    """Over the whole run; skipped ticks are missing from it."""
    deviation_mean_us: float
    deviation_p99_us: float
    deviation_max_us: float
    """Differences between the measured times from tick to tick and the period."""
    busy_max_us: float
    """The longest run time of the function."""


class Deadlines:
    """Absolute deadlines, one per period, and how they were met. It has no clock of its own."""

    def __init__(self, period_s: float, begin_s: float) -> None:
        self._period_s = period_s
        self._begin_s = self._newest_s = begin_s
        self._next_tick = self._newest_tick = 0
        self._first_s: float | None = None
        """When the first tick began."""
        self._deviations_s = array("d")
        self.ticks = 0
        self.late = 0
        self.busy_max_s = 0.0

    @property
    def due_s(self) -> float:
        """When the next tick is due."""
        return self._begin_s + self._next_tick * self._period_s

    def begin(self, now_s: float) -> None:
        """Record that a tick began."""
        if self._first_s is None:
            self._first_s = now_s
        else:
            planned_s = (self._next_tick - self._newest_tick) * self._period_s
            self._add_deviation(abs(now_s - self._newest_s - planned_s))
        self._newest_s, self._newest_tick = now_s, self._next_tick
        self.ticks += 1

    def end(self, now_s: float) -> None:
        """Record that the tick ended; deadlines missed by more than a period are skipped."""
        self.busy_max_s = max(self.busy_max_s, now_s - self._newest_s)
        self._next_tick += 1
        missed = int((now_s - self.due_s) / self._period_s)
        if missed > 0:
            self.late += missed
            self._next_tick += missed

    def _add_deviation(self, deviation_s: float) -> None:
        if len(self._deviations_s) < _MAX_DEVIATIONS:
            self._deviations_s.append(deviation_s)
        else:  # overwrite the oldest
            self._deviations_s[self.ticks % _MAX_DEVIATIONS] = deviation_s

    def stats(self) -> LoopStats:
        """Return how well the deadlines were met."""
        # A copy: another thread may be adding to it.
        deviations_us = np.array(self._deviations_s[:] or array("d", [0.0])) * 1e6
        elapsed_s = self._newest_s - (self._first_s if self._first_s is not None else 0.0)
        return LoopStats(
            ticks=self.ticks,
            late=self.late,
            rate_hz=(self.ticks - 1) / elapsed_s if self.ticks > 1 else 0.0,
            deviation_mean_us=float(deviations_us.mean()),
            deviation_p99_us=float(np.percentile(deviations_us, 99)),
            deviation_max_us=float(deviations_us.max()),
            busy_max_us=self.busy_max_s * 1e6,
        )


class LoopFunc:
    """Calls `function` every `period_s` seconds in a thread of its own, from `start` to `stop`.

    `cpu` pins the thread to one CPU; `realtime` requests a real-time priority, and `has_priority`
    is whether that was granted. An error in the function ends the loop and is logged with its
    traceback at once; `stop`, `join` or the end of the `with` block raises it.

    `LoopFunc(name, period_s, cpu, function)`, the form of Unitree's library, works too: there a CPU
    of 0 or less means any. `shutdown` is that library's name for `stop`.
    """

    @overload
    def __init__(
        self,
        name: str,
        period_s: float,
        function: Callable[[], object],
        *,
        cpu: int | None = None,
        realtime: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
        period_s: float,
        cpu: int,
        function: Callable[[], object],
        /,
        *,
        realtime: bool = False,
    ) -> None: ...
    def __init__(
        self,
        name: str,
        period_s: float,
        function: "Callable[[], object] | int",
        bound: Callable[[], object] | None = None,
        *,
        cpu: int | None = None,
        realtime: bool = False,
    ) -> None:
        # In the form of Unitree's library, `function` is the CPU and `bound` the function.
        if isinstance(function, int) and bound is not None:
            cpu, function = (function if function > 0 else None), bound
        elif bound is not None:
            raise TypeError("a loop has one function: LoopFunc(name, period_s, cpu, function)")
        if not PERIOD_RANGE_S[0] <= period_s <= PERIOD_RANGE_S[1]:  # NaN fails this comparison too
            raise BadRequestError(
                f"a period of {period_s} s is out of range",
                f"Choose {PERIOD_RANGE_S[0]} to {PERIOD_RANGE_S[1]:g} s, for example 0.002 for 500 "
                "times a second.",
            )
        if isinstance(function, int) or not callable(function):
            raise TypeError(f"a loop needs a function, not {type(function).__name__}")
        self.name = name
        self.period_s = float(period_s)
        self.cpu = None if cpu is None else _check_cpu(cpu)
        self.has_priority = False
        self.error: BaseException | None = None
        """What the function raised."""
        self._function = function
        self._wants_priority = realtime
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._deadlines = Deadlines(self.period_s, 0.0)

    def start(self) -> "LoopFunc":
        """Start the thread. A loop runs once; for another run, make another one."""
        if self._thread is not None:
            raise BadRequestError(f"the loop {self.name!r} was started already", "Make a new one.")
        self._thread = threading.Thread(target=self._run, name=f"rote {self.name}", daemon=True)
        self._thread.start()
        return self

    @property
    def running(self) -> bool:
        """Whether it still calls its function."""
        return self._thread is not None and self._thread.is_alive()

    def stats(self) -> LoopStats:
        """Return how well the deadlines were met so far."""
        return self._deadlines.stats()

    def end(self) -> None:
        """Request the end without waiting. Safe to repeat, and to call inside the function."""
        self._ending.set()

    def stop(self, timeout: float = 5.0) -> LoopStats:
        """End the loop and wait: the current call is the last one. Safe to repeat."""
        self.end()
        return self.join(timeout)

    def shutdown(self) -> None:
        """Call `stop`; Unitree's library uses this name."""
        self.stop()

    def join(self, timeout: float | None = None) -> LoopStats:
        """Wait until it has ended; raises what the function raised."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)
            if self._thread.is_alive():
                raise TimeLimitError(
                    f"the function of the loop {self.name!r} did not return within {timeout} s",
                    "Find out what the function waits for; its thread keeps running.",
                )
        if self.error is not None:
            raise self.error
        return self.stats()

    def __enter__(self) -> "LoopFunc":
        return self.start() if self._thread is None else self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.stop()
        else:
            self.end()

    def _run(self) -> None:
        try:
            realtime.request_precise_timers()
            if self.cpu is not None:
                realtime.pin(self.cpu)
            self.has_priority = self._wants_priority and realtime.request_realtime()
            self._run_loop()
        except BaseException as error:  # raised by `stop` or `join`
            self.error = error
            # Logged at once: a program that sleeps meanwhile calls `stop` only much later.
            _log.error("the loop %r has ended by an error", self.name, exc_info=error)

    def _run_loop(self) -> None:
        self._deadlines = deadlines = Deadlines(self.period_s, continuous_s())
        while not self._ending.is_set():
            deadlines.begin(continuous_s())
            self._function()
            deadlines.end(continuous_s())
            wait_s = deadlines.due_s - continuous_s()
            if wait_s > 0.1:
                self._ending.wait(wait_s)  # `end` interrupts it
            elif wait_s > 0:
                time.sleep(wait_s)  # more precise than waiting for an event


def _check_cpu(cpu: int) -> int:  # in `LoopFunc.__init__`, `realtime` is an argument
    return realtime.check_cpu(cpu)
