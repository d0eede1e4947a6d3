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

_log = logging.getLogger("rote")


class Watchdog:
    """A thread that checks the event loop while it is switched on, and warns in under two seconds.

    If no logging is set up, Python prints warnings on standard error.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, because: str) -> None:
        self._loop = loop
        self._because = because
        self._beat: asyncio.TimerHandle | None = None
        self._seen_s = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, *, on: bool) -> None:
        """Switch the watchdog on or off; call it in the loop's own thread. Safe to repeat."""
        if on and self._thread is None:
            self._stop = threading.Event()
            self._tick()
            watched = threading.get_ident()
            self._thread = threading.Thread(
                target=self._watch_loop,
                args=(watched, self._stop),
                name="rote watchdog",
                daemon=True,
            )
            self._thread.start()
        elif not on and self._thread is not None:
            self._stop.set()
            self._thread = None
            if self._beat is not None:
                self._beat.cancel()

    def _tick(self) -> None:
        self._seen_s = time.monotonic()
        self._beat = self._loop.call_later(_CHECK_S, self._tick)

    def _watch_loop(self, watched: int, stop: threading.Event) -> None:
        warned_about, suspended_s = 0.0, clock.suspended_s()
        while not stop.wait(_CHECK_S):
            before_s, suspended_s = suspended_s, clock.suspended_s()
            if suspended_s - before_s >= WARN_AFTER_S:
                slept_s = suspended_s - before_s
                _log.warning("this computer was suspended for %.1f s: %s", slept_s, self._because)
            seen_s = self._seen_s
            blocked_s = time.monotonic() - seen_s
            if blocked_s >= WARN_AFTER_S and seen_s != warned_about:
                warned_about = seen_s
                _log.warning(
                    "your program has held up its event loop for %.1f s at %s: %s. Use "
                    "`await asyncio.sleep(...)` instead of `time.sleep(...)`, or rote.sync.",
                    blocked_s,
                    _find_current_line(watched),
                    self._because,
                )


def _find_current_line(thread: int) -> str:
    """Return the line of the program that runs in a thread."""
    frame = sys._current_frames().get(thread)
    if frame is None:
        return "an unknown line"
    line = traceback.extract_stack(frame, limit=1)[0]
    return f"{line.filename}:{line.lineno} ({line.name})"
