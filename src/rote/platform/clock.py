"""Clocks that count the time during which this computer was suspended.

`time.monotonic` stands still while a Linux or macOS computer is suspended: a stream that was
interrupted for an hour by a closed lid looks as if nothing had happened. Whatever decides whether
something stalled reads one of the clocks below. Timers stay on the event loop's own clock.
"""

import asyncio
import sys
import time
from collections.abc import Callable

from rote.platform.loop import clock_of

_CONTINUOUS_CLOCKS = {"linux": "CLOCK_BOOTTIME", "darwin": "CLOCK_MONOTONIC"}
"""The POSIX clock that counts suspend; `time.monotonic` counts it on Windows."""

MIN_SUSPENSION_S = 0.02
"""Shorter suspensions, in seconds, are ignored as errors from reading two clocks in turn."""
_NOISE_S = 0.001
"""Maximum difference of the two clocks, in seconds, that is no suspension."""
_last_suspended_s = 0.0


def suspended_s() -> float:
    """Return how long this computer has been suspended since it was started, in seconds.

    Only differences between two calls are meaningful. Without a suspension in between they are 0,
    so that clocks which count suspensions run as evenly as those which do not.
    """
    global _last_suspended_s  # noqa: PLW0603 - the clocks of the computer are one, too
    measured_s = _measure_suspended_s()
    if abs(measured_s - _last_suspended_s) > _NOISE_S:
        _last_suspended_s = measured_s
    return _last_suspended_s


def _measure_suspended_s() -> float:
    """Return the difference of the two clocks, exact to 0.1 ms."""
    clock_id: int | None = getattr(time, _CONTINUOUS_CLOCKS.get(sys.platform, ""), None)
    if clock_id is None:
        return 0.0
    while True:
        before = time.monotonic()
        continuous = time.clock_gettime(clock_id)
        after = time.monotonic()
        if after - before < 0.0001:  # else this thread was preempted between the two clocks
            return continuous - (before + after) / 2


def continuous_s() -> float:
    """Return `time.monotonic` plus the time during which this computer was suspended."""
    return time.monotonic() + suspended_s()


class Suspensions:
    """Measures how long this computer was suspended between two calls of `take`."""

    def __init__(self) -> None:
        self._last_total_s = suspended_s()

    def take(self) -> float:
        """Return how long this computer was suspended since the last call; 0.0 if it was not."""
        total_s = suspended_s()
        since_s = total_s - self._last_total_s
        self._last_total_s = total_s
        return since_s if since_s >= MIN_SUSPENSION_S else 0.0


def stall_clock(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Return a clock that counts suspend, to judge how long ago something happened.

    Its origin differs from the event loop's: never pass its time to `call_at`.
    """
    clock = clock_of(loop)
    return lambda: clock() + suspended_s()
