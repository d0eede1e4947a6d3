"""Coalesces stop requests: those close together are one, and each request is answered."""

import asyncio
from collections.abc import Awaitable, Callable

from rote.web.services.activity import PendantStopResult

TOGETHER_S = 0.25
"""A stop shares the answer of a pending one that is younger than this."""
PAUSE_S = 0.01
"""A stop that follows an answered one within this time shares its answer, too."""
REPEAT_S = 1.0
"""The same message about a stop is broadcast at most once in this time."""


class Stops:
    """Requests stops from the robot, and limits how often.

    The first stop is always sent at once. One that follows closely shares its answer, unless
    another activity has begun since: then it is sent, too. So is one that arrives while an older
    one still waits for the robot, because a person who presses again wants it tried again.
    """

    def __init__(
        self, stop: Callable[[], Awaitable[PendantStopResult]], activity: Callable[[], object]
    ) -> None:
        self._stop = stop
        self._activity = activity
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
        task = self._task_to_share()
        if task is None:
            self._stopped_activity, self._began_s = self._activity(), self._loop.time()
            task = self._task = self._loop.create_task(self._run())
        # The client may disconnect: the stop continues for the others.
        return await asyncio.shield(task)

    def is_new_message(self, message: str) -> bool:
        """Return True unless the same message was broadcast less than `REPEAT_S` ago."""
        now, (last, last_s) = self._loop.time(), self._last_message
        if message == last and now - last_s < REPEAT_S:
            return False
        self._last_message = (message, now)
        return True

    def _task_to_share(self) -> "asyncio.Task[PendantStopResult] | None":
        task = self._task
        if task is None or self._stopped_activity is not self._activity():
            return None
        age_s = self._loop.time() - self._began_s
        if not task.done():
            return task if age_s < TOGETHER_S else None
        failed = task.cancelled() or task.exception() is not None or not task.result().confirmed
        return task if age_s < PAUSE_S and not failed else None

    async def _run(self) -> PendantStopResult:
        return await self._stop()
