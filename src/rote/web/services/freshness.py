"""Refuses to begin a motion that was requested too long ago.

While this process is frozen, or the network is down, requests wait in a buffer. A motion that
begins by itself seconds later surprises the person who asked for it.
"""

import asyncio

from rote.platform.clock import stall_clock
from rote.web.server.problems import ProblemError

STALL_S = 1.5
"""A pulse that comes later than this means that the event loop was stalled."""
SETTLE_S = 0.5
"""After a stall, the requests that waited meanwhile are read within this time."""
MAX_AGE_S = 2.0
"""Maximum age of the newest beat that the client has received."""


class Freshness:
    """Judges how old a request is; `pulse` must be called several times per second."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._clock = stall_clock(loop)
        self._pulse_s = self._clock()
        self._settled_s = self._pulse_s

    @property
    def now_s(self) -> float:
        """The time that beats carry, in seconds; its origin is arbitrary."""
        return self._clock()

    def pulse(self) -> None:
        """Note that the event loop runs."""
        now_s = self._clock()
        if now_s - self._pulse_s > STALL_S:
            self._settled_s = now_s + SETTLE_S
        self._pulse_s = now_s

    @property
    def is_settling(self) -> bool:
        """Whether this process has just been stalled: messages of clients may wait to be read."""
        return self._pulse_s < self._settled_s

    def check(self, beat_s: str | None = None) -> None:
        """Raise `ProblemError` if this process has just been stalled, or if `beat_s`, the time of
        the newest beat that the client received, is too old.
        """
        self.pulse()
        if self.is_settling or (beat_s and not self._is_recent(beat_s)):
            raise ProblemError(
                409,
                "stale-request",
                "the request arrived too late: the server or the network had stalled",
                "Nothing was started. Look at the robot, then ask again.",
            )

    def _is_recent(self, beat_s: str) -> bool:
        try:
            age_s = self._pulse_s - float(beat_s)
        except ValueError:
            return False
        return -0.1 <= age_s <= MAX_AGE_S
