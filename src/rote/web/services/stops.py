"""Repeated stops: those that come close together are one, and each that asked is answered."""

import asyncio
from collections.abc import Awaitable, Callable

from rote.web.services.activity import PendantStopResult

TOGETHER_S = 0.25
"""A stop shares the answer of one that is still under way and has been for less than this."""
PAUSE_S = 0.01
"""A stop so soon after one that has been answered shares its answer, too."""
TOLD_S = 1.0
"""What a stop did is told to everybody once in this time."""


class Stops:
    """Asks the robot to stop, and bounds how often, whoever asks.

    The first stop always goes out at once. One that comes close after it shares its answer, unless
    something else was begun since: then it goes out, too. So does one that comes while an older
    one still waits for the robot, because a person who presses again wants it tried again.
    """

    def __init__(
        self, stop: Callable[[], Awaitable[PendantStopResult]], activity: Callable[[], object]
    ) -> None:
        self._stop = stop
        self._activity = activity
        self.asked = 0
        """How many stops were asked for, those that shared an answer among them."""
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[PendantStopResult] | None = None
        self._about: object = None
        self._began_s = 0.0
        self._told = ("", 0.0)

    async def ask(self) -> PendantStopResult:
        """Stop the robot, and say what that did."""
        self.asked += 1
        task = self._shared()
        if task is None:
            self._about, self._began_s = self._activity(), self._loop.time()
            task = self._task = self._loop.create_task(self._run())
        # Whoever asked may leave: the stop goes on for the others.
        return await asyncio.shield(task)

    def news(self, message: str) -> bool:
        """Whether everybody is to be told this, or was so a moment ago."""
        now, (told, told_s) = self._loop.time(), self._told
        if message == told and now - told_s < TOLD_S:
            return False
        self._told = (message, now)
        return True

    def _shared(self) -> "asyncio.Task[PendantStopResult] | None":
        task = self._task
        if task is None or self._about is not self._activity():
            return None
        age_s = self._loop.time() - self._began_s
        if not task.done():
            return task if age_s < TOGETHER_S else None
        failed = task.cancelled() or task.exception() is not None or not task.result().confirmed
        return task if age_s < PAUSE_S and not failed else None

    async def _run(self) -> PendantStopResult:
        return await self._stop()
