"""A playback in progress: awaited, watched or stopped."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any

from rote.errors import NoAnswerError, PeerLostError, RoteError, TimeLimitError
from rote.messages import RobotState
from rote.platform.loop import to_the_end
from rote.robot.api_values import PlayReport, Progress
from rote.robot.link import RobotLink, Unfinished
from rote.robot.motion_watch import MotionWatch

Begin = Callable[[Callable[[], None]], Awaitable[float]]
"""Requests the motion and returns its duration in seconds. Calls its argument just before the
request is sent.
"""
_POLL_S = 0.25
"""Interval between two checks for a timeout, in seconds."""


class Playing:
    """A playback, as `robot.play` returns it. Await it to wait for the end, iterate over it to
    watch, or call `stop` to stop it softly.

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
        futures: set[asyncio.Future[Any]] = {self._task, self._accepted}
        try:
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
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

        def on_done(task: asyncio.Task[PlayReport]) -> None:
            is_lost = not task.cancelled() and isinstance(task.exception(), PeerLostError)
            if is_lost and self._continues_on_robot:
                unfinished.mark_lost(self)
            else:
                unfinished.remove(self)

        unfinished.add(self, self._stop)
        self._task.add_done_callback(on_done)

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
        """Play to the end, and return the report.

        Implementations set `_accepted` when the motion has begun, and `_changed` on progress.
        """
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
        """Stop with a soft return, and wait until the arms are at rest."""
        await self._stop()
        await asyncio.wait({self._task})

    async def __aiter__(self) -> AsyncIterator[Progress]:
        """Yield the progress when it changes, until the end; raise the error of the playback."""
        while not self._task.done():
            change = self._loop.create_task(self._changed.wait())
            await asyncio.wait({self._task, change}, return_when=asyncio.FIRST_COMPLETED)
            change.cancel()
            self._changed.clear()
            if (progress := self.progress) is not None and not self._task.done():
                yield progress
        self._task.result()


class ActionPlaying(Playing):
    """A playback whose progress comes from the states that the robot reports."""

    def __init__(self, link: RobotLink, name: str, begin: Begin, *, loop: bool = False) -> None:
        """`begin` requests the motion; with `loop` the motion has no end of its own."""
        self._link = link
        self._client = link.client
        self._begin = begin
        self._stop_count = link.stops.count
        self._watch = MotionWatch(name, loops=loop)
        self._ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        super().__init__(name, link.stop, link.unfinished)

    def rename(self, name: str) -> None:
        """Set the name of the action; a playback by number learns it from the robot's list."""
        self.name = self._watch.name = name

    @property
    def progress(self) -> Progress | None:
        """The progress; None before the robot has reported."""
        return self._watch.progress

    async def _run(self) -> PlayReport:
        listener_removers = (
            self._client.on_loss(self._on_loss),
            self._client.on_state(self._on_state),
        )
        try:
            duration_s = await self._begin(self._on_request_sent)
            accepted_at = self._loop.time()
            self._watch.on_accepted(duration_s, accepted_at)
            self._mark_accepted()
            completed = await self._wait_until_over()
            seconds = self._loop.time() - accepted_at
            return PlayReport(
                self.name, completed, seconds, reason="" if completed else self._explain_end()
            )
        finally:
            for remove_listener in listener_removers:
                remove_listener()
            self._ended.cancel()

    def _was_stopped(self) -> bool:
        """Whether the robot has confirmed a stop since this playback was requested."""
        is_newer = self._link.stops.count != self._stop_count
        return is_newer and not self._client.stop_pending

    def _explain_end(self) -> str:
        """Return one sentence that explains why the playback did not complete."""
        return "this program requested a stop" if self._was_stopped() else self._watch.reason

    async def _wait_until_over(self) -> bool:
        """Wait for the end, and return whether the playback completed.

        The robot is stopped if the wait is cancelled or fails.
        """
        try:
            while not self._ended.done():
                polled_at = self._loop.time()
                await asyncio.wait({self._ended}, timeout=_POLL_S)
                now = self._loop.time()
                if (stall_s := now - polled_at - _POLL_S) > _POLL_S:  # this process stalled
                    self._watch.extend_deadlines(stall_s)
                if self._was_stopped():
                    self._watch.on_stop_confirmed(now)
                    if self._watch.is_late_to_begin(now):
                        return False  # the stop prevented the motion
                if (timeout_error := self._watch.timeout_error(now)) is not None:
                    raise timeout_error
            return self._ended.result()
        except (asyncio.CancelledError, TimeLimitError, NoAnswerError):
            # Cancelled or timed out: stop the robot rather than leave it moving unattended.
            with suppress(RoteError):
                await to_the_end(self._stop())
            raise

    def _on_request_sent(self) -> None:
        """Start watching: the request is sent now, and later states belong to this motion."""
        self._watch.on_request_sent(self._client.build, self._client.latest, self._loop.time())

    def _on_state(self, state: RobotState) -> None:
        self._watch.on_state(state, self._loop.time())
        if self._watch.completed is not None and not self._ended.done():
            self._ended.set_result(self._watch.completed)
        self._changed.set()

    def _on_loss(self, error: RoteError) -> None:
        if not self._ended.done():
            self._ended.set_exception(error)
            self._ended.exception()  # the error is raised where the playback is awaited
