"""A playback in progress: awaited, watched or stopped."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any

from rote.errors import RoteError
from rote.host.loop import to_the_end
from rote.messages import Phase, RobotState
from rote.robot.base import PlayReport, Port, Progress

_SETTLE_US = 500_000
"""A robot that reports this long after accepting that nothing plays, has nothing playing."""
_MOST_OF_IT = 0.9


class Playing:
    """What `robot.play` returns: await it for the end, iterate it to watch, `stop` it softly.

    If the awaiting task is cancelled, the robot stops softly too.
    """

    def __init__(self, name: str, stop: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self._accepted: asyncio.Future[None] = self._loop.create_future()
        self._changed = asyncio.Event()
        self._task = self._loop.create_task(self._run(), name=f"play {name}")
        # Who does not await the handle has chosen not to hear how it ended.
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    def __await__(self) -> Generator[Any, None, PlayReport]:
        return self._task.__await__()

    async def started(self) -> "Playing":
        """Wait until the robot has accepted; raises what it refused with."""
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

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._task.done()

    @property
    def progress(self) -> Progress | None:
        """How far it is; None before the robot has reported."""
        raise NotImplementedError

    async def _run(self) -> PlayReport:
        """Play; sets `_accepted` when it has begun, and `_changed` when there is progress."""
        raise NotImplementedError

    def _accept(self) -> None:
        if not self._accepted.done():
            self._accepted.set_result(None)

    async def wait(self) -> PlayReport:
        """Wait for the end, soft return included. Cancelling the wait does not stop the robot."""
        return await asyncio.shield(self._task)

    async def stop(self) -> None:
        """Stop it with a soft return, and wait until the arms are at rest."""
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


class ActionPlaying(Playing):
    """A playback that is watched by the states which the robot reports."""

    def __init__(
        self,
        port: Port,
        name: str,
        begin: Callable[[], Awaitable[float]],
        stop: Callable[[], Awaitable[None]],
        *,
        loop: bool = False,
    ) -> None:
        self._port = port
        self._begin = begin
        changed = asyncio.Event()
        self._watch = _Watch(asyncio.get_running_loop().create_future(), changed, loops=loop)
        super().__init__(name, stop)
        self._changed = changed

    @property
    def progress(self) -> Progress | None:
        """How far it is; None before the robot has reported."""
        return self._watch.progress

    async def _run(self) -> PlayReport:
        watch = self._watch
        forget_loss = self._port.on_loss(watch.fail)
        try:
            watch.duration_s = await self._begin()
            began = self._loop.time()
            watch.accepted_us = self._port.latest.time_us if self._port.latest else 0
            self._accept()
            forget_state = self._port.on_state(watch.see)
            try:
                completed = await watch.ended
            except asyncio.CancelledError:
                # Whoever gives up waiting wants the arms to rest, not to move on unwatched.
                with suppress(RoteError):
                    await to_the_end(self._stop())
                raise
            finally:
                forget_state()
            return PlayReport(self.name, completed, self._loop.time() - began)
        finally:
            forget_loss()
            watch.ended.cancel()


class _Watch:
    """Reads from the state stream how far a playback is, and when it is over."""

    def __init__(
        self, ended: "asyncio.Future[bool]", changed: asyncio.Event, *, loops: bool
    ) -> None:
        self.duration_s = 0.0
        self.accepted_us = 0
        self.ended = ended
        """Whether it ran to its end, once it is over."""
        self._changed = changed
        self._loops = loops
        self._newest: RobotState | None = None
        self._seen = False
        self._motion_began_us: int | None = None
        self._motion_ended_us: int | None = None

    def see(self, state: RobotState) -> None:
        """Take in one state."""
        self._newest = state
        phase = state.phase
        if phase is Phase.PLAYING:
            self._seen = True
            if self._motion_began_us is None:
                self._motion_began_us = state.time_us
        else:
            self._see_aside(phase, state)
        self._changed.set()

    def _see_aside(self, phase: Phase, state: RobotState) -> None:
        """Take in a state from before or after the motion itself."""
        self._seen |= phase is Phase.APPROACH
        if self._motion_ended_us is None and self._motion_began_us is not None:
            self._motion_ended_us = state.time_us
        over = phase is Phase.NONE and (self._seen or state.time_us > self.accepted_us + _SETTLE_US)
        if over and not self.ended.done():
            self.ended.set_result(not state.stopped_early and not self._cut_short)

    def fail(self, error: RoteError) -> None:
        """The robot was lost."""
        if not self.ended.done():
            self.ended.set_exception(error)
            self.ended.exception()  # raised where it is awaited; nobody else need be told

    @property
    def _cut_short(self) -> bool:
        """Whether it moved for much less than it takes: some wires do not tell of others' stops."""
        if self._motion_began_us is None or self._motion_ended_us is None or self._loops:
            return False
        moved_s = (self._motion_ended_us - self._motion_began_us) / 1e6
        return moved_s < _MOST_OF_IT * self.duration_s - _SETTLE_US / 1e6

    @property
    def progress(self) -> Progress | None:
        """How far it is, by the newest state; None before the first."""
        state = self._newest
        if state is None:
            return None
        elapsed_s, rounds = 0.0, 0.0
        if self._motion_began_us is not None:
            elapsed_s = (state.time_us - self._motion_began_us) / 1e6
        if self._loops and self.duration_s:
            rounds, elapsed_s = divmod(elapsed_s, self.duration_s)
        if state.phase is Phase.RETURN:
            elapsed_s = self.duration_s
        elapsed_s = min(elapsed_s, self.duration_s)
        fraction = elapsed_s / self.duration_s if self.duration_s else 0.0
        return Progress(
            phase=state.phase,
            fraction=fraction,
            remaining_s=self.duration_s - elapsed_s,
            round=int(rounds) + 1,
            state=state,
        )
