"""A timer that can be moved to an earlier time."""

import asyncio
from collections.abc import Callable


class Alarm:
    """Calls back once, no later than it was set for."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        # Kept here, because uvloop's timers for right now do not report when they are due.
        self.due = float("inf")
        """When it fires, by the loop's clock; infinity if it is not set."""
        self.late_s = 0.0
        """How late it last fired, in seconds; large if this program stalled."""

    def set(self, due: float) -> None:
        """Fire at `due`, or at the time set before if that is earlier."""
        if due < self.due:
            self.clear()
            self.due = due
            self._timer = self._loop.call_at(due, self._fire)

    def clear(self) -> None:
        """Cancel the timer. Safe to call twice."""
        self.due = float("inf")
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self.late_s = self._loop.time() - self.due
        self.clear()
        self._callback()
