"""Coalesces stop requests: those close together are one, and each request is answered."""

import asyncio
from collections.abc import Awaitable, Callable

from rote.web.services.activity import PendantStopResult

TOGETHER_S = 0.25
"""A stop shares the answer of a pending one that is younger than this."""
ANSWERED_S = 0.01
"""A stop that follows an answered one within this time shares its answer, too."""
REPEAT_S = 1.0
"""The same message about a stop is broadcast at most once in this time."""


class Stops:
    """Requests stops from the robot, and limits how often.

    The first stop is always sent at once. A stop within `TOGETHER_S` of it shares its answer,
    unless another activity has begun since. A later one is sent again, even if the first still
    waits for the robot: a user who presses again wants another attempt.
    """

    def __init__(
        self, stop: Callable[[], Awaitable[PendantStopResult]], get_activity: Callable[[], object]
    ) -> None:
        self._stop = stop
        self._get_activity = get_activity
        self.requests = 0
        """Number of requested stops, including those that shared an answer."""
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[PendantStopResult] | None = None
        self._stopped_activity: object = None
        self._began_s = 0.0
        self._last_message = ("", 0.0)

    async def request_stop(self) -> PendantStopResult:
        """Stop the robot, and return what that did."""
        self.requests += 1
        task = self._find_task_to_share()
        if task is None:
            self._stopped_activity, self._began_s = self._get_activity(), self._loop.time()
            task = self._task = self._loop.create_task(self._call_stop())
        # The client may disconnect: the stop continues for the others.
        return await asyncio.shield(task)

    def should_broadcast(self, message: str) -> bool:
        """Return False if a message was broadcast less than `REPEAT_S` ago; else record it."""
        now, (last_message, last_s) = self._loop.time(), self._last_message
        if message == last_message and now - last_s < REPEAT_S:
            return False
        self._last_message = (message, now)
        return True

    def _find_task_to_share(self) -> "asyncio.Task[PendantStopResult] | None":
        """Return the last stop if a new request may share its answer; otherwise None."""
        task = self._task
        if task is None or self._stopped_activity is not self._get_activity():
            return None
        age_s = self._loop.time() - self._began_s
        if not task.done():
            return task if age_s < TOGETHER_S else None
        failed = task.cancelled() or task.exception() is not None or not task.result().confirmed
        return task if age_s < ANSWERED_S and not failed else None

    async def _call_stop(self) -> PendantStopResult:
        return await self._stop()  # a task needs a coroutine, not any awaitable
