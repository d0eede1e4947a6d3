"""A playback on legs: awaited, watched or stopped."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import numpy as np

from rote.errors import BadRequestError
from rote.messages import Phase
from rote.model.a1 import A1_JOINTS
from rote.motion.track import Track
from rote.platform.loop import clock_of
from rote.robot.api_values import Progress, StreamReport, check_seconds
from rote.robot.link import Unfinished
from rote.robot.play_options import TrackOptions
from rote.robot.quadruped import motion as a1_motion
from rote.robot.quadruped.leg_control import LegControl
from rote.robot.quadruped.loop import LoopStats
from rote.robot.quadruped.motion import RATE_HZ, LegMotion, MotionClock
from rote.robot.quadruped.status import make_robot_state
from rote.robot.streamed_motion import check_origin, check_rate
from rote.robot.streaming import Streaming
from rote.robot.ticker import TimedStart
from rote.session.a1 import Level
from rote.transport.wires import unsupported
from rote.wire.a1.motors import LEG_MOTORS, MotorCmds

_PROGRESS_S = 0.1
"""Interval at which the progress is yielded to those that iterate over it."""
_APPROACH_MARGIN_S = 0.3
"""Margin before a timed start: legs may have sunk, so that the approach takes longer."""
_MAX_CATCH_UP_S = 0.1  # the approach begins slowly; catching up more would be a jump


class LegPlaying(Streaming):
    """What `robot.play_track` of an A1 returns. Cancelling it leaves the motors braked."""

    def __init__(
        self,
        legs: LegControl,
        name: str,
        prepare: Callable[[], Awaitable[LegMotion]],
        start: TimedStart | None,
        unfinished: Unfinished,
    ) -> None:
        self._legs = legs
        self._stop_count = legs.stops.count
        self._prepare = prepare
        self._motion = LegMotion(name, np.zeros((1, LEG_MOTORS)), 0)
        self._began_s: float | None = None
        self._start = start
        self._motion_clock = MotionClock()
        self._start_at_s: float | None = None
        """When the motion itself is due, by the event loop's clock; None without a timed start."""
        self._catch_up_s: float | None = None
        self._first_late_s: float | None = None
        """How late the motion's own first pose was commanded; None before that."""
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
        wake_task = self._loop.create_task(self._wake_observers())
        try:
            stats, completed = await self._legs.run_control_function(
                lambda _, time_s: self._compute_motors(time_s),
                realtime=True,
                stop_count=self._stop_count,
            )
        finally:
            wake_task.cancel()
        return StreamReport(
            name=self.name,
            completed=completed,
            seconds=self._elapsed_s(),
            reason="" if completed else "a stop was requested",
            rate_hz=stats.rate_hz,
            late_p99_ms=stats.deviation_p99_us / 1000,
            late_max_ms=stats.deviation_max_us / 1000,
            missed=stats.late,
            start_late_ms=None if self._first_late_s is None else 1000 * self._first_late_s,
        )

    def give_up(self) -> None:
        """Never begin, if it still waits for its time."""
        if self._start is not None:
            self._start.give_up()

    async def _wait_for_start(self, start: TimedStart) -> None:
        """Wait until the approach is due, and plan it from the leg positions at that time."""
        self._start_at_s = await start.wait(self._motion.approach / RATE_HZ + _APPROACH_MARGIN_S)
        left_s = self._start_at_s - clock_of(self._loop)()
        self._motion = self._motion.restarted_from(self._legs.measured_rad().tolist(), left_s)

    def _compute_motors(self, time_s: float) -> MotorCmds | None:
        """Return the motor command at `time_s` since the start; None after the end.

        A timed start that began late is shifted, so that the motion catches up a little.
        """
        time_s = self._motion_clock.at(time_s)
        if self._start_at_s is None:
            return self._motion.motors(time_s)
        now_s, approach_s = clock_of(self._loop)(), self._motion.approach / RATE_HZ
        if self._catch_up_s is None:
            late_s = now_s - self._start_at_s + approach_s - time_s
            self._catch_up_s = min(max(0.0, late_s), _MAX_CATCH_UP_S)
        if self._first_late_s is None and time_s + self._catch_up_s >= approach_s:
            self._first_late_s = now_s - self._start_at_s
        return self._motion.motors(time_s + self._catch_up_s)

    async def _wake_observers(self) -> None:
        """Wake those that iterate over the progress: it advances with time, without an event."""
        while True:
            self._changed.set()
            await asyncio.sleep(_PROGRESS_S)


class LegPlayer:
    """Plays motions on the legs of one robot."""

    def __init__(self, legs: LegControl, unfinished: Unfinished) -> None:
        self._legs = legs
        self._unfinished = unfinished

    def check_streamable(self) -> None:
        """Raise `UnsupportedError` if the walking controller drives the motors."""
        self._legs.require_level(
            Level.LOW,
            "play a motion",
            "Let it lie or hang, and connect to its motors: level=low in its URL.",
        )

    def play_track(self, track: Track, options: TrackOptions) -> LegPlaying:
        """Play a track of the twelve joints. An unsafe track raises here, or from the result if
        work is offloaded.
        """
        legs, offload = self._legs, options.offload
        check_origin(track, legs.client.url, imported=options.imported)
        check_rate(options.rate_hz)
        if options.hands:
            raise unsupported("play hands", "a1", "hands")
        self.check_streamable()
        legs.check_not_busy()
        prepared, stop_count = None, legs.stops.count
        if offload is None:
            measured_rad = legs.measured_rad().tolist()
            prepared = a1_motion.prepare(track, legs.safety, measured_rad, options.speed)

        async def prepare() -> LegMotion:
            if prepared is not None:
                return prepared
            assert offload is not None
            poses_rad = await offload(a1_motion.check_and_sample, track, legs.safety, options.speed)
            legs.stops.check_none_since(stop_count)
            return a1_motion.with_approach(track, poses_rad, legs.measured_rad().tolist())

        name = track.source or "a track"
        playing = LegPlaying(legs, name, prepare, options.make_start(), self._unfinished)
        legs.note_playback(playing)
        return playing

    async def move_to(self, joints_rad: Sequence[float], seconds: float | None) -> LoopStats:
        """Move the legs softly to twelve angles in rad, in `seconds` if given, and hold them."""
        legs = self._legs
        goal_rad = np.asarray(joints_rad, dtype=float)
        if goal_rad.shape != (LEG_MOTORS,) or not np.isfinite(goal_rad).all():
            raise BadRequestError(f"a pose of an A1 is {LEG_MOTORS} finite angles in rad")
        for joint, angle in zip(A1_JOINTS, goal_rad.tolist(), strict=True):
            low, high = legs.safety.lower_rad[joint.index], legs.safety.upper_rad[joint.index]
            if not low <= angle <= high:
                raise BadRequestError(
                    f"{joint.name} cannot go to {angle:g} rad", f"Choose {low:g} to {high:g} rad."
                )
        if seconds is not None:
            check_seconds(seconds, "a move")
        legs.require_level(Level.LOW, "drive motors")
        a1_motion.check_move(legs.measured_rad(), goal_rad, seconds)
        path = a1_motion.plan_soft_move(legs.measured_rad(), goal_rad, seconds)
        motion = LegMotion("a move", np.vstack([path, goal_rad]), approach=len(path))
        motion_clock = MotionClock()
        stats, _ = await legs.run_control_function(
            lambda _, time_s: motion.motors(motion_clock.at(time_s)), realtime=True
        )
        return stats
