"""A playback in progress: awaited, watched or stopped."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any

from rote.errors import RoteError
from rote.messages import Phase, RobotState
from rote.robot.base import PlayReport, Port, Progress
from rote.robot.teaching import to_the_end

_SETTLE_US = 500_000
_MOST_OF_IT = 0.9
"""A robot that reports this long after accepting that nothing plays, has nothing playing."""


class Playing:
    """What `robot.play` returns: await it for the end, iterate it to watch, `stop` it softly.

    If the awaiting task is cancelled, the robot stops softly too.
    """

    def __init__(
        self,
        port: Port,
        name: str,
        begin: Callable[[], Awaitable[float]],
        stop: Callable[[], Awaitable[None]],
        *,
        loop: bool = False,
    ) -> None:
        self.name = name
        self._loops = loop
        self._port = port
        self._begin = begin
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self._accepted: asyncio.Future[None] = self._loop.create_future()
        self._changed = asyncio.Event()
        self._progress: Progress | None = None
        self._task = self._loop.create_task(self._run(), name=f"rote play {name}")
        # Who does not await the handle has chosen not to hear how it ended.
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    def __await__(self) -> Generator[Any, None, PlayReport]:
        return self._task.__await__()

    async def started(self) -> "Playing":
        """Wait until the robot has accepted; raises what it refused with."""
        either: set[asyncio.Future[Any]] = {self._task, self._accepted}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
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
        return self._progress

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
            if self._progress is not None and not self._task.done():
                yield self._progress
        self._task.result()

    async def _run(self) -> PlayReport:
        ended: asyncio.Future[bool] = self._loop.create_future()
        watch = _Watch(self, ended, loops=self._loops)
        forget_loss = self._port.on_loss(lambda error: _fail(ended, error))
        try:
            watch.duration_s = await self._begin()
            began = self._loop.time()
            watch.accepted_us = self._port.latest.time_us if self._port.latest else 0
            if not self._accepted.done():
                self._accepted.set_result(None)
            forget_state = self._port.on_state(watch.see)
            try:
                completed = await ended
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
            ended.cancel()


class _Watch:
    """Reads from the state stream how far a playback is, and when it is over."""

    def __init__(self, playing: Playing, ended: "asyncio.Future[bool]", *, loops: bool) -> None:
        self.duration_s = 0.0
        self._loops = loops
        self.accepted_us = 0
        self._playing = playing
        self._ended = ended
        self._seen = False
        self._motion_began_us: int | None = None
        self._motion_ended_us: int | None = None

    def see(self, state: RobotState) -> None:
        """Take in one state."""
        phase = state.phase
        self._seen |= phase in (Phase.APPROACH, Phase.PLAYING)
        if phase is Phase.PLAYING and self._motion_began_us is None:
            self._motion_began_us = state.time_us
        elif phase is not Phase.PLAYING and self._motion_ended_us is None:
            self._motion_ended_us = state.time_us if self._motion_began_us is not None else None
        self._playing._progress = self._measure(state)
        self._playing._changed.set()
        over = phase is Phase.NONE and (self._seen or state.time_us > self.accepted_us + _SETTLE_US)
        if over and not self._ended.done():
            self._ended.set_result(not state.stopped_early and not self._cut_short)

    @property
    def _cut_short(self) -> bool:
        """Whether it moved for much less than it takes: some wires do not tell of others' stops."""
        if self._motion_began_us is None or self._motion_ended_us is None or self._loops:
            return False
        moved_s = (self._motion_ended_us - self._motion_began_us) / 1e6
        return moved_s < _MOST_OF_IT * self.duration_s - _SETTLE_US / 1e6

    def _measure(self, state: RobotState) -> Progress:
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


def _fail(ended: "asyncio.Future[bool]", error: RoteError) -> None:
    if not ended.done():
        ended.set_exception(error)
        ended.exception()  # raised where it is awaited; nobody else need be told
