"""When the poses of a stream are sent: a start time for several robots, and one pose per tick."""

import asyncio
import math
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from rote.errors import BadRequestError, RefusedError
from rote.messages import Code, explain
from rote.motion.track import Array
from rote.platform import realtime
from rote.platform.clock import stall_clock
from rote.platform.loop import clock_of
from rote.robot.api_values import StreamReport
from rote.transport.base_client import ThreadSafeSender

REQUEST_RESERVE_S = 0.4
"""Time reserved before a timed start for the request and its reply."""
_LATE_START_S = 0.02  # a timed start may be requested this much later than due
_TIME_TOLERANCE_S = 1e-6  # a timer may end early by its rounding error
LOOP_STALL_S = 0.7
"""A stream ends if the event loop, which alone can stop it, stalls for this many seconds."""
_PROBE_INTERVAL_S = 0.1  # the time between two tests whether the event loop has stalled
_MAX_BEHIND_S = 0.1
"""Poses later than this are skipped, one or two at a time: this computer is too slow for the rate.
After a gap longer than this, the rest of the motion is delayed instead.
"""
_STALL_EFFECT_S = 1.0
"""A return of the robot within this time of an interruption is attributed to it."""


class TimedStart:
    """The start time of a motion, so that several robots can begin together.

    The request and the approach begin `lead_s` seconds earlier, so that the arms reach the first
    pose in time. `lead_s` is set once everything is prepared; nothing moves before `at` is called.
    """

    def __init__(self, at_s: float | None = None) -> None:
        loop = asyncio.get_running_loop()
        self.lead_s: asyncio.Future[float] = loop.create_future()
        self._at_s: asyncio.Future[float] = loop.create_future()
        self._given_up: asyncio.Future[None] = loop.create_future()
        self._hold_changed = asyncio.Event()
        """Set by `hold` and `release`."""
        self._is_held = False
        self._delay_s = 0.0
        self._due_s: float | None = None
        """When the request is due; None before that is known, and once it was sent."""
        if at_s is not None:
            self.at(at_s)

    def at(self, at_s: float) -> None:
        """Set the start, by the event loop's clock. Raises `BadRequestError` if not finite."""
        if not math.isfinite(at_s):
            raise BadRequestError(
                f"the start time {at_s} is not finite", "Give a time of the event loop's clock."
            )
        if not self._at_s.done():
            self._at_s.set_result(at_s)

    @property
    def due_s(self) -> float | None:
        """When the request is sent; None before that is known, and once it was sent."""
        return self._due_s

    def hold(self) -> None:
        """Do not begin before `release`."""
        self._is_held = True
        self._hold_changed.set()

    def release(self, delay_s: float) -> None:
        """Begin `delay_s` later than planned. Raises `BadRequestError` for an invalid delay."""
        if not (math.isfinite(delay_s) and delay_s >= 0.0):
            raise BadRequestError(f"a delay must be finite and at least 0 s, not {delay_s} s")
        self._is_held, self._delay_s = False, self._delay_s + delay_s
        self._hold_changed.set()

    def give_up(self) -> None:
        """Never begin: the robot was stopped."""
        if not self._given_up.done():
            self._given_up.set_result(None)

    async def wait(self, lead_s: float) -> float:
        """Set `lead_s`, wait until the request is due, and return the start time.

        Raises `BadRequestError` if that time has passed, and `RefusedError` after `give_up`.
        """
        if not self.lead_s.done():
            self.lead_s.set_result(lead_s)
        await self._wait_unless_stopped(self._at_s)
        at_s = self._at_s.result()
        loop = asyncio.get_running_loop()
        left_s = at_s - lead_s - clock_of(loop)()
        if left_s < -_LATE_START_S:
            raise BadRequestError(
                f"the start is {-left_s:.2f} s too early: the approach to the first pose takes "
                f"{lead_s:.2f} s",
                "Choose a later start.",
            )
        while self._is_held or left_s > _TIME_TOLERANCE_S:
            self._hold_changed.clear()
            self._due_s = at_s + self._delay_s - lead_s
            change = asyncio.ensure_future(self._hold_changed.wait())
            try:
                await self._wait_unless_stopped(change, None if self._is_held else left_s)
            finally:
                change.cancel()
            left_s = at_s + self._delay_s - lead_s - clock_of(loop)()
        self._due_s = None
        return at_s + self._delay_s

    async def _wait_unless_stopped(
        self, future: asyncio.Future[Any], timeout_s: float | None = None
    ) -> None:
        """Wait for `future`, at most `timeout_s`; raise `RefusedError` after `give_up`."""
        futures: list[asyncio.Future[Any]] = [self._given_up, future]
        await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if self._given_up.done():
            raise RefusedError(Code.SUPERSEDED, *explain(Code.SUPERSEDED))


def check_in_time(late_s: float) -> None:
    """Raise `BadRequestError` if a stream would begin so late that its first poses were skipped and
    the arms would jump.
    """
    if late_s > _MAX_BEHIND_S:
        raise BadRequestError(
            f"the robot accepted the motion {late_s:.2f} s late, so its arms cannot reach the "
            "first pose in time",
            "Wait until its arms are at rest, and choose a later start.",
        )


class LatenessStatistics:
    """How late poses were sent, in constant memory: a stream may last for hours."""

    # Upper ends of the bins: 1 us for the first, each 2 % more; 1000 bins reach to 390 s.
    _FIRST_BIN_S, _BIN_RATIO, _BIN_COUNT = 1e-6, 1.02, 1000

    def __init__(self) -> None:
        self.count = 0
        self.max_s = 0.0
        self._bins = [0] * self._BIN_COUNT
        """How many poses were late by the time of each bin."""

    def add(self, late_s: float) -> None:
        """Count one pose that was sent `late_s` seconds late."""
        self.count += 1
        self.max_s = max(self.max_s, late_s)
        index = 0
        if late_s > self._FIRST_BIN_S:
            index = int(math.log(late_s / self._FIRST_BIN_S) / math.log(self._BIN_RATIO)) + 1
        self._bins[min(index, self._BIN_COUNT - 1)] += 1

    def percentile_s(self, percent: float) -> float:
        """Return the lateness in seconds that `percent` of the poses did not exceed.

        The result is at most 2 % too high.
        """
        remaining = self.count * percent / 100.0
        for index, count in enumerate(self._bins):
            remaining -= count
            if count and remaining <= 0.0:
                return min(self._FIRST_BIN_S * self._BIN_RATIO**index, self.max_s)
        return self.max_s


class PausableMotion(Protocol):
    """The poses of a motion that can be paused: see `PausablePoses`."""

    def __len__(self) -> int: ...

    @property
    def is_in_motion(self) -> bool:
        """Whether the approach is over, and a pause would still hold the arms with full weight."""

    @property
    def is_held(self) -> bool:
        """Whether a pause holds the arms in place."""

    @property
    def pose_rad(self) -> Array:
        """The newest commanded pose of the taught joints."""

    def pause(self, tick: int) -> None:
        """Slow down from `tick` on, and hold."""

    def resume(self, tick: int) -> int:
        """Speed up from `tick` on; return the number of ticks of the delay."""


class Ticker:
    """Sends one pose per tick, each by its own deadline.

    After a delay, poses are sent at twice the rate until the deadlines are met again. Sending all
    late poses at once, or skipping them, would make the arms jerk.
    """

    def __init__(self, rate_hz: float) -> None:
        self.rate_hz = rate_hz
        self._period_s = 1.0 / rate_hz
        self._catch_up_after_s = _MAX_BEHIND_S - self._period_s
        """A pose that is later than this needs `_catch_up`."""
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self._stall_clock = stall_clock(self._loop)
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._send_pose: Callable[[int], bool] = lambda _: False
        self._count = self._next_index = 0
        self._began_s = self._sent_s = self._due_s = 0.0
        """When the stream began, the newest pose was sent, and the next is due, by `_clock`."""
        self._sent_continuous_s = 0.0
        """When the newest pose was sent, by `_stall_clock`, which also counts suspend."""
        self._first_index = 0
        """Index of the motion's own first pose."""
        self.first_late_s: float | None = None
        """How late the motion's own first pose was sent; None before that."""
        self._lateness = LatenessStatistics()
        self._missed = 0
        self._loop_alive_s = 0.0
        """When the event loop last ran a callback."""
        self.cut_off = False
        """Whether the stream ended before its last pose was sent."""
        self.cut_reason = ""
        """Why, if the ticker itself ended it."""
        self._pausable: PausableMotion | None = None
        self._last_stall: tuple[float, str] | None = None
        """When the stream resumed after its last interruption, and a text about it."""

    def start(
        self,
        send: Callable[[int], bool],
        count: int,
        began_s: float | None = None,
        first: int = 0,
        pausable: PausableMotion | None = None,
    ) -> None:
        """Begin now, or at `began_s`, and call `send` with the indices 0 to `count - 1`, until it
        returns False. `first` is the index of the motion's own first pose, whose lateness is
        recorded. `pausable` has the poses of a motion that can be paused.

        If `send` may be called from any thread, a separate thread calls it: that costs half as
        much, and nothing else in this program delays it.
        """
        self._send_pose, self._count, self._stopped = send, count, False
        self._pausable = pausable
        self._began_s = self._due_s = self._clock() if began_s is None else began_s
        self._first_index = first
        # Tests use an event loop with virtual time, which a thread could not follow.
        is_real_time = abs(self._loop.time() - time.monotonic()) < 1.0
        if isinstance(send, ThreadSafeSender) and is_real_time:
            self._send_pose = send.send_pose
            threading.Thread(target=self._run_in_thread, name="rote stream", daemon=True).start()
        elif began_s is None:
            self._send_and_reschedule()
        else:
            self._timer = self._loop.call_at(self._due_s, self._send_and_reschedule)

    @property
    def pausable(self) -> PausableMotion | None:
        """The motion if it can be paused and has begun."""
        return self._pausable

    def pause(self, at_s: float) -> None:
        """Pause the motion from `at_s` of the event loop's clock on, or at once.

        Raises `BadRequestError` if it cannot be paused now.
        """
        poses = self._require_pausable()
        poses.pause(self._compute_tick(at_s))
        self._count = len(poses)

    def resume(self, at_s: float) -> float:
        """Resume the motion at `at_s`; return how long the motion was delayed, in seconds.

        Raises `BadRequestError` if it is not paused.
        """
        poses = self._require_pausable()
        delay_ticks = poses.resume(self._compute_tick(at_s))
        self._count = len(poses)
        return delay_ticks * self._period_s

    def _require_pausable(self) -> PausableMotion:
        if self._pausable is None:
            raise BadRequestError("this motion cannot be paused now", "Stop it instead.")
        return self._pausable

    def _compute_tick(self, at_s: float) -> int:
        """Return the number of the tick at a time of the event loop's clock."""
        if not math.isfinite(at_s):
            raise BadRequestError(f"the time of a pause must be finite, not {at_s}")
        return round((at_s - self._began_s) * self.rate_hz)

    def stop(self) -> None:
        """Stop sending. Safe to call twice."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run_in_thread(self) -> None:
        """Send the poses from this thread; end the stream if the event loop stalls or ends."""
        realtime.request_precise_timers()
        realtime.request_realtime()
        clock, stall_clock = self._clock, self._stall_clock
        self._loop_alive_s = probed_s = stall_clock()
        while not self._stopped:
            time.sleep(max(0.0, self._due_s - clock()))
            now_s, continuous_s = clock(), stall_clock()
            if continuous_s - self._loop_alive_s > LOOP_STALL_S:
                # The loop could not process a stop. Without poses the robot returns softly itself.
                self._end_early(
                    f"this program's event loop stalled for more than {LOOP_STALL_S:g} s, "
                    "so a stop could not take effect"
                )
                return
            if continuous_s - probed_s >= _PROBE_INTERVAL_S:
                probed_s = continuous_s
                try:
                    self._loop.call_soon_threadsafe(self._note_loop_alive)
                except RuntimeError:
                    self._end_early("this program ended its event loop")
                    return
            if self._stopped or not self._send_due_pose(now_s, continuous_s):
                return

    def _end_early(self, reason: str) -> None:
        self.cut_reason, self.cut_off = reason, True

    def _note_loop_alive(self) -> None:
        """Record that the event loop is not stalled: it has just run this callback."""
        self._loop_alive_s = self._stall_clock()

    def _send_and_reschedule(self) -> None:
        if self._send_due_pose(self._clock(), self._stall_clock()):
            self._timer = self._loop.call_at(self._due_s, self._send_and_reschedule)

    def _send_due_pose(self, now_s: float, continuous_s: float) -> bool:
        """Send the due pose; return whether more follow.

        The time is `now_s` by `_clock`, and `continuous_s` by `_stall_clock`, which counts suspend.
        """
        index, period_s = self._next_index, self._period_s
        self._record_stall(now_s, continuous_s)
        late_s = now_s - self._began_s - index * period_s
        self._lateness.add(late_s)
        if late_s > self._catch_up_after_s:
            index = self._catch_up(index, late_s, now_s)
        sent = self._send_pose(index)
        if self.first_late_s is None and index >= self._first_index:
            self.first_late_s = now_s - self._began_s - self._first_index * period_s
        self._sent_s = now_s
        self._next_index = index = index + 1
        # A late stream catches up at no more than twice its rate.
        self._due_s = max(self._began_s + index * period_s, now_s + period_s / 2)
        if sent:
            return index < self._count and not self._stopped
        self.cut_off = True
        return False

    def _record_stall(self, now_s: float, continuous_s: float) -> None:
        """Record an interruption between the previous pose and this one, if it was long."""
        gap_s = continuous_s - self._sent_continuous_s
        self._sent_continuous_s = continuous_s
        if not self._next_index or gap_s <= _MAX_BEHIND_S:
            return
        suspended_s = gap_s - (now_s - self._sent_s)
        if suspended_s > _MAX_BEHIND_S:
            description = f"this computer was suspended for {suspended_s:.1f} s"
        else:
            description = f"this computer sent no pose for {gap_s:.2f} s"
        self._last_stall = now_s, description

    def describe_stall_before(self, ended_s: float | None) -> str:
        """Return the interruption that explains why the robot ended the motion at `ended_s`, as
        text; "" if there was none.
        """
        if self._last_stall is None or ended_s is None:
            return ""
        resumed_s, reason = self._last_stall
        return reason if abs(ended_s - resumed_s) < _STALL_EFFECT_S else ""

    def _catch_up(self, index: int, late_s: float, now_s: float) -> int:
        """Return the index of the pose to send, given that the pose `index` is `late_s` late."""
        if index and now_s - self._sent_s > _MAX_BEHIND_S:
            # The process stalled while the robot held its pose: resume here, do not jump ahead.
            self._began_s += late_s
            return index
        too_late = int((late_s - _MAX_BEHIND_S) / self._period_s)
        skipped = min(too_late, self._count - 1 - index)
        self._missed += skipped
        return index + skipped

    def report(
        self, name: str, *, completed: bool, seconds: float, reason: str = ""
    ) -> StreamReport:
        """Return how well the deadlines were met."""
        duration_s = self._sent_s - self._began_s
        return StreamReport(
            name=name,
            completed=completed,
            seconds=seconds,
            reason=reason,
            rate_hz=(self._lateness.count - 1) / duration_s if duration_s > 0 else 0.0,
            late_p99_ms=1000.0 * self._lateness.percentile_s(99.0),
            late_max_ms=1000.0 * self._lateness.max_s,
            missed=self._missed,
            start_late_ms=None if self.first_late_s is None else 1000.0 * self.first_late_s,
        )
