"""A playback on legs: awaited, watched or stopped."""

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np

from rote.messages import Phase
from rote.platform.loop import clock_of
from rote.robot.api_values import Progress, StreamReport
from rote.robot.quadruped.leg_control import LegControl
from rote.robot.quadruped.motion import RATE_HZ, LegMotion, MotionClock
from rote.robot.quadruped.status import make_robot_state
from rote.robot.streaming import Streaming, TimedStart
from rote.robot.unfinished import Unfinished
from rote.wire.a1.motors import LEG_MOTORS, MotorCmds

_PROGRESS_S = 0.1
_MARGIN_S = 0.3
"""Margin before a timed start: legs may have sunk, so that the approach takes longer."""
_CAUGHT_UP_MAX_S = 0.1  # the approach begins slowly; catching up more would be a jump


class LegPlaying(Streaming):
    """What `robot.play_track` of an A1 returns. If cancelled, it leaves the motors braked."""

    def __init__(
        self,
        legs: LegControl,
        name: str,
        prepare: Callable[[], Awaitable[LegMotion]],
        start: TimedStart | None,
        unfinished: Unfinished,
    ) -> None:
        self._legs = legs
        self._stops = legs.stops.count
        self._prepare = prepare
        self._motion = LegMotion(name, np.zeros((1, LEG_MOTORS)), 0)
        self._began_s: float | None = None
        self._start = start
        self._motion_clock = MotionClock()
        self._at_s: float | None = None
        self._shift_s: float | None = None
        self._late_s: float | None = None
        super().__init__(name, legs.stop, unfinished)

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
            state=make_robot_state(self._legs.latest_state(), self._legs),
        )

    def _elapsed_s(self) -> float:
        assert self._began_s is not None
        return self._loop.time() - self._began_s

    async def _run(self) -> StreamReport:
        self._motion = await self._prepare()
        if self._start is not None:
            await self._wait_for_start(self._start)
        self._began_s = self._loop.time()
        self._mark_accepted()
        progress_task = self._loop.create_task(self._report_progress())
        try:
            stats, completed = await self._legs.run_step(
                lambda _, time_s: self._motors_at(time_s), realtime=True, stops=self._stops
            )
        finally:
            progress_task.cancel()
        return StreamReport(
            name=self.name,
            completed=completed,
            seconds=self._elapsed_s(),
            reason="" if completed else "a stop was requested",
            rate_hz=stats.rate_hz,
            late_p99_ms=stats.deviation_p99_us / 1000,
            late_max_ms=stats.deviation_max_us / 1000,
            missed=stats.late,
            start_late_ms=None if self._late_s is None else 1000 * self._late_s,
        )

    def give_up(self) -> None:
        """Never begin, if it still waits for its time."""
        if self._start is not None:
            self._start.give_up()

    async def _wait_for_start(self, start: TimedStart) -> None:
        """Wait until the approach is due, and plan it from the leg positions at that time."""
        self._at_s = await start.wait(self._motion.approach / RATE_HZ + _MARGIN_S)
        left_s = self._at_s - clock_of(self._loop)()
        self._motion = self._motion.restarted_from(self._legs.measured_rad().tolist(), left_s)

    def _motors_at(self, time_s: float) -> MotorCmds | None:
        """Return the command of a tick; for a timed start, by the event loop's clock."""
        time_s = self._motion_clock.at(time_s)
        if self._at_s is None:
            return self._motion.motors(time_s)
        now_s, approach_s = clock_of(self._loop)(), self._motion.approach / RATE_HZ
        if self._shift_s is None:
            late_s = now_s - self._at_s + approach_s - time_s
            self._shift_s = min(max(0.0, late_s), _CAUGHT_UP_MAX_S)
        if self._late_s is None and time_s + self._shift_s >= approach_s:
            self._late_s = now_s - self._at_s
        return self._motion.motors(time_s + self._shift_s)

    async def _report_progress(self) -> None:
        while True:
            self._changed.set()
            await asyncio.sleep(_PROGRESS_S)
