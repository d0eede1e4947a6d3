"""A playback in progress: awaited, watched or stopped."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any

from rote.errors import NoAnswerError, PeerLostError, RoteError, TimeLimitError
from rote.messages import RobotState
from rote.platform.loop import to_the_end
from rote.robot.api_values import PlayReport, Progress
from rote.robot.link import RobotLink
from rote.robot.motion_watch import MotionWatch
from rote.robot.unfinished import Unfinished

Begin = Callable[[Callable[[], None]], Awaitable[float]]
"""Requests the motion and returns its duration in seconds. Calls its argument just before the
request is sent.
"""
_POLL_S = 0.25
"""Interval between two checks for a timeout, in seconds."""


class Playing:
    """What `robot.play` returns: await it for the end, iterate over it to watch, or `stop` it
    softly.

    Awaiting returns a `PlayReport`, iterating yields `Progress`. If the awaiting task is cancelled,
    the robot stops softly too.
    """

    def __init__(
        self,
        name: str,
        stop: Callable[[], Awaitable[None]],
        unfinished: Unfinished | None = None,
    ) -> None:
        """The playback is registered in `unfinished` until it is over."""
        self.name = name
        """The name of the motion."""
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self._accepted: asyncio.Future[None] = self._loop.create_future()
        self._changed = asyncio.Event()
        self._task = self._loop.create_task(self._run(), name=f"play {name}")
        # If the handle is never awaited, asyncio must not log "exception was never retrieved".
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())
        if unfinished is not None:
            self._register(unfinished)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {'over' if self.done else 'going on'}>"

    def __await__(self) -> Generator[Any, None, PlayReport]:
        return self._task.__await__()

    async def started(self) -> "Playing":
        """Wait until the robot has accepted, and return this playback; raises if it was refused."""
        either: set[asyncio.Future[Any]] = {self._task, self._accepted}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._task.cancel()
            await to_the_end(asyncio.wait({self._task}))
            raise
        if self._task.done():
            self._task.result()
        return self

    def _register(self, unfinished: Unfinished) -> None:
        """Register in `unfinished` until the playback is over.

        If the robot was lost, the playback may continue there, so it stays registered.
        """

        def over(task: asyncio.Task[PlayReport]) -> None:
            if self._continues_on_robot and not task.cancelled() and _is_loss(task.exception()):
                unfinished.lose(self)
            else:
                unfinished.remove(self)

        unfinished.add(self, self._stop)
        self._task.add_done_callback(over)

    @property
    def _continues_on_robot(self) -> bool:
        """Whether the robot continues the motion without this computer."""
        return self._accepted.done()

    @property
    def done(self) -> bool:
        """Whether the playback has ended."""
        return self._task.done()

    @property
    def progress(self) -> Progress | None:
        """The progress; None before the robot has reported."""
        raise NotImplementedError

    async def _run(self) -> PlayReport:
        """Play. Sets `_accepted` when it has begun, and `_changed` when there is progress."""
        raise NotImplementedError

    def _mark_accepted(self) -> None:
        if not self._accepted.done():
            self._accepted.set_result(None)

    async def wait(self) -> PlayReport:
        """Wait for the end, soft return included, and return the report.

        Cancelling the wait does not stop the robot.
        """
        return await asyncio.shield(self._task)

    async def stop(self) -> None:
        """Stop with a soft return, wait until the arms are at rest, and return the report."""
        await self._stop()
        await asyncio.wait({self._task})

    async def __aiter__(self) -> AsyncIterator[Progress]:
        while not self._task.done():
            change = self._loop.create_task(self._changed.wait())
            await asyncio.wait({self._task, change}, return_when=asyncio.FIRST_COMPLETED)
            change.cancel()
            self._changed.clear()
            if (progress := self.progress) is not None and not self._task.done():
                yield progress
        self._task.result()


def _is_loss(error: BaseException | None) -> bool:
    return isinstance(error, PeerLostError)


class ActionPlaying(Playing):
    """A playback whose progress comes from the states that the robot reports."""

    def __init__(self, link: RobotLink, name: str, begin: Begin, *, loop: bool = False) -> None:
        self._link = link
        self._client = link.client
        self._begin = begin
        self._stops = link.stops.count
        changed = asyncio.Event()
        self._watch = MotionWatch(name, loops=loop)
        self._ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        super().__init__(name, link.stop, link.unfinished)
        self._changed = changed

    @property
    def progress(self) -> Progress | None:
        """The progress; None before the robot has reported."""
        return self._watch.progress

    async def _run(self) -> PlayReport:
        undo = self._client.on_loss(self._on_loss), self._client.on_state(self._on_state)
        try:
            duration_s = await self._begin(self._on_request_sent)
            began = self._loop.time()
            self._watch.on_accepted(duration_s, began)
            self._mark_accepted()
            completed = await self._wait_until_over()
            seconds = self._loop.time() - began
            return PlayReport(
                self.name, completed, seconds, reason="" if completed else self._why_ended()
            )
        finally:
            for forget in undo:
                forget()
            self._ended.cancel()

    def _was_stopped(self) -> bool:
        """Whether the robot has confirmed a stop since this playback was requested."""
        return self._link.stops.count != self._stops and not self._client.stop_pending

    def _why_ended(self) -> str:
        """Return one sentence why it did not complete."""
        return "this program requested a stop" if self._was_stopped() else self._watch.reason

    async def _wait_until_over(self) -> bool:
        """Wait until it is over; stop the robot if the wait is cancelled or fails."""
        try:
            while not self._ended.done():
                polled_at = self._loop.time()
                await asyncio.wait({self._ended}, timeout=_POLL_S)
                now = self._loop.time()
                if (stall_s := now - polled_at - _POLL_S) > _POLL_S:
                    self._watch.extend_deadlines(stall_s)
                if self._was_stopped():
                    self._watch.on_stop_confirmed(now)
                if self._was_stopped() and self._watch.stopped_before_it_began(now):
                    return False
                if (timeout_error := self._watch.timeout_error(now)) is not None:
                    raise timeout_error
            return self._ended.result()
        except (asyncio.CancelledError, TimeLimitError, NoAnswerError):
            # Cancelled or timed out: stop the robot rather than leave it moving unattended.
            with suppress(RoteError):
                await to_the_end(self._stop())
            raise

    def _on_request_sent(self) -> None:
        """The request is being sent: states from now on belong to this motion."""
        self._watch.on_request_sent(self._client.build, self._client.latest, self._loop.time())

    def _on_state(self, state: RobotState) -> None:
        self._watch.on_state(state, self._loop.time())
        if self._watch.completed is not None and not self._ended.done():
            self._ended.set_result(self._watch.completed)
        self._changed.set()

    def _on_loss(self, error: RoteError) -> None:
        """Called when the robot was lost."""
        if not self._ended.done():
            self._ended.set_exception(error)
            self._ended.exception()  # the error is raised where the playback is awaited
