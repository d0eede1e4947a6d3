"""A playback on legs: awaited, watched or stopped."""

import asyncio
from collections.abc import Awaitable, Callable

from rote.messages import Phase, RobotState
from rote.robot.a1.control import Step
from rote.robot.a1.loop import LoopStats
from rote.robot.a1.motion import RATE_HZ, LegMotion
from rote.robot.api_values import Progress, StreamReport
from rote.robot.streaming import Streaming

_SHOWN_S = 0.1


class LegPlaying(Streaming):
    """What `robot.play_track` of an A1 returns. If cancelled, it leaves the motors braked."""

    def __init__(
        self,
        motion: LegMotion,
        run: Callable[[Step], Awaitable[tuple[LoopStats, bool]]],
        stop: Callable[[], Awaitable[None]],
        state: Callable[[], RobotState],
    ) -> None:
        self._motion = motion
        self._drive = run
        self._state = state
        self._began_s: float | None = None
        super().__init__(motion.name, stop)

    @property
    def phase(self) -> Phase:
        """The phase: on the way to the first pose, or in the motion."""
        if self._began_s is None or self.done:
            return Phase.NONE
        approach_s = self._motion.approach / RATE_HZ
        return Phase.APPROACH if self._elapsed_s() < approach_s else Phase.PLAYING

    @property
    def progress(self) -> Progress | None:
        """The progress; None before it has begun."""
        if self._began_s is None:
            return None
        approach_s = self._motion.approach / RATE_HZ
        motion_s = self._motion.seconds - approach_s
        elapsed_s = min(max(self._elapsed_s() - approach_s, 0.0), motion_s)
        return Progress(
            phase=self.phase,
            fraction=elapsed_s / motion_s if motion_s else 1.0,
            remaining_s=motion_s - elapsed_s,
            round=1,
            state=self._state(),
        )

    def _elapsed_s(self) -> float:
        assert self._began_s is not None
        return self._loop.time() - self._began_s

    async def _run(self) -> StreamReport:
        self._began_s = self._loop.time()
        self._accept()
        shower = self._loop.create_task(self._show())
        try:
            stats, completed = await self._drive(lambda _, time_s: self._motion.motors(time_s))
        finally:
            shower.cancel()
        return StreamReport(
            name=self.name,
            completed=completed,
            seconds=self._elapsed_s(),
            rate_hz=stats.rate_hz,
            late_p99_ms=stats.deviation_p99_us / 1000,
            late_max_ms=stats.deviation_max_us / 1000,
            missed=stats.late,
        )

    async def _show(self) -> None:
        while True:
            self._changed.set()
            await asyncio.sleep(_SHOWN_S)
