"""Warns when a program blocks its own event loop while a robot waits for messages from it."""

import asyncio
import logging
import sys
import threading
import time
import traceback

from rote.platform import clock

WARN_AFTER_S = 1.5
_CHECK_S = 0.25
"""Interval of the loop's ticks, and of the checks whether one is overdue."""

_log = logging.getLogger("rote")


class Watchdog:
    """A thread that logs a warning if the event loop is blocked for `WARN_AFTER_S`.

    The warning ends with `because`: why a blocked loop matters now.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, because: str) -> None:
        self._loop = loop
        self._because = because
        self._tick_timer: asyncio.TimerHandle | None = None
        self._last_tick_s = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, *, on: bool) -> None:
        """Switch the watchdog on or off; call it in the loop's own thread. Safe to repeat."""
        if on and self._thread is None:
            self._stop = threading.Event()
            self._tick()
            thread_id = threading.get_ident()
            self._thread = threading.Thread(
                target=self._watch_loop,
                args=(thread_id, self._stop),
                name="rote watchdog",
                daemon=True,
            )
            self._thread.start()
        elif not on and self._thread is not None:
            self._stop.set()
            self._thread = None
            if self._tick_timer is not None:
                self._tick_timer.cancel()

    def _tick(self) -> None:
        """Note that the loop runs; repeated while the watchdog is on."""
        self._last_tick_s = time.monotonic()
        self._tick_timer = self._loop.call_later(_CHECK_S, self._tick)

    def _watch_loop(self, thread_id: int, stop: threading.Event) -> None:
        """Until `stop` is set, warn about each overdue tick of the loop, which runs in the thread
        `thread_id`, and about suspends of this computer.
        """
        warned_tick_s, total_suspended_s = 0.0, clock.suspended_s()
        while not stop.wait(_CHECK_S):
            before_s, total_suspended_s = total_suspended_s, clock.suspended_s()
            suspended_s = total_suspended_s - before_s
            if suspended_s >= WARN_AFTER_S:
                _log.warning(
                    "this computer was suspended for %.1f s: %s", suspended_s, self._because
                )
            last_tick_s = self._last_tick_s
            blocked_s = time.monotonic() - last_tick_s
            if blocked_s >= WARN_AFTER_S and last_tick_s != warned_tick_s:  # once for each tick
                warned_tick_s = last_tick_s
                _log.warning(
                    "your program has blocked its event loop for %.1f s at %s: %s. Use "
                    "`await asyncio.sleep(...)` instead of `time.sleep(...)`, or rote.sync.",
                    blocked_s,
                    _find_current_line(thread_id),
                    self._because,
                )


def _find_current_line(thread_id: int) -> str:
    """Return the source line that a thread executes now, as "FILE:LINE (FUNCTION)"."""
    frame = sys._current_frames().get(thread_id)
    if frame is None:
        return "an unknown line"
    line = traceback.extract_stack(frame, limit=1)[0]
    return f"{line.filename}:{line.lineno} ({line.name})"
