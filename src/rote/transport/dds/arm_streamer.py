"""Streams poses to a robot's motors, and releases them softly however a stream ends.

A stream never ends abruptly: the arms are released when it is stopped, when the poses cease, when
the robot's states cease or its arms do not track, and before the client disconnects. A robot that
was restarted gets no setpoint that was computed for its old pose.

Poses may be sent from a thread of their own. One lock makes sending a pose and ending the stream
exclude each other: once it fades, no pose comes in between.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

from rote.messages import Phase, StreamPose
from rote.model.family import Build, Hand
from rote.platform import clock
from rote.platform.loop import to_the_end
from rote.session.arm_stream import (
    FADE_HZ,
    NOT_TRACKING_RAD,
    NOT_TRACKING_S,
    ArmSetpoint,
    ArmStream,
)

_CHECK_S = 0.02
_MIN_CHECK_S = 0.001
"""Time until a check is repeated if this loop was late, and minimum time until the next check."""
_CEASED_S = 0.1
"""The poses have ceased if the last one was sent longer ago than this. From then on the robot moves
its arms by itself: an older pose does not show where they are.
"""
_STALLED_S = 0.3
"""After an interruption longer than this, no pose is sent: the arms have moved too far."""
_STATE_TIMEOUT_S, _STATE_TIMEOUT_INTERVALS = 0.3, 3.0
"""Timeout for the robot's states, in seconds and, for robots that report slowly, in usual intervals
between two states. The larger of the two counts.
"""
_FRESH_S = 0.15
"""Joint positions older than this do not show where the arms are."""
_TICKS = 2**32
"""The robot's clock counts milliseconds in 32 bits."""
_WRAP_SLACK_S, _REORDERED_MS = 1.0, 100
"""If a clock went back, it wrapped if it is then at most `_WRAP_SLACK_S` ahead of the time that
passed. If it went back by at most `_REORDERED_MS`, states were reordered. Otherwise the robot was
restarted.
"""
_FIRST_INTERVAL_S, _SMOOTHING = 0.5, 0.2
"""Time between two states that is assumed at first, and the weight of each measurement of it."""
_FADE_S = 1.0 / FADE_HZ
_PACKED_TOGETHER = 50
"""Number of poses that are packed together, shortly before the first of them is sent."""

_RESTARTED = "the robot was restarted"

Packed = TypeVar("Packed")


class StateAgeEstimator:
    """Estimates how old the robot's states are on arrival, and how often they arrive.

    After a suspend or a stopped process, states that arrived before it are delivered first. The
    robot's own clock distinguishes them from new ones.
    """

    def __init__(self) -> None:
        self.interval_s = _FIRST_INTERVAL_S
        """Average time between two states."""
        self.restarted = False
        """Whether the newest state is the first one of a robot that was restarted, by its clock."""
        self._age_s = 0.0
        self._last: tuple[float, int | None] | None = None
        """When the last state arrived, and the robot's time in it."""
        self._last_tick: tuple[float, int] | None = None
        """When the last state with a time of the robot arrived, and that time."""

    def measure_age(self, now: float, tick_ms: int | None) -> float:
        """Process a state that arrives now; return its age in seconds, 0 if the robot reports no
        time.
        """
        last, self._last = self._last, (now, tick_ms)
        self.restarted = tick_ms is not None and self._has_restarted(now, tick_ms)
        if last is None:
            return 0.0
        last_now, last_tick_ms = last
        elapsed_s = now - last_now
        if tick_ms is None or last_tick_ms is None or tick_ms <= last_tick_ms:
            self._age_s = 0.0  # the robot has no clock, or was restarted
        else:
            age_change_s = elapsed_s - (tick_ms - last_tick_ms) / 1000
            max_gap_s = max(_CEASED_S, _STATE_TIMEOUT_INTERVALS * self.interval_s)
            # States get older only in a gap. A change without a gap means that the clocks differ.
            if age_change_s < 0.0 or elapsed_s > max_gap_s:
                self._age_s = max(0.0, self._age_s + age_change_s)
        self.interval_s += _SMOOTHING * (min(elapsed_s, 1.0) - self.interval_s)
        return self._age_s

    def _has_restarted(self, now: float, tick_ms: int) -> bool:
        """Whether the robot's clock went back, neither by wrapping nor by reordered states."""
        last, self._last_tick = self._last_tick, (now, tick_ms)
        if last is None:
            return False
        last_now, last_ms = last
        went_back_ms = last_ms - tick_ms
        advanced_ms = -went_back_ms % _TICKS  # if it has wrapped
        has_wrapped = advanced_ms <= 1000 * (now - last_now + _WRAP_SLACK_S)
        return went_back_ms > _REORDERED_MS and not has_wrapped

    def reset(self) -> None:
        """Assume that the newest state was not old when it arrived."""
        self._age_s = 0.0


class ArmStreamer(Generic[Packed]):
    """Sends a stream of poses to a robot, at most one at a time, and releases the arms after it."""

    def __init__(
        self,
        pack: Callable[[Sequence[ArmSetpoint], Build, tuple[Hand, ...]], Sequence[Packed]],
        write: Callable[[Packed], None],
        on_stopped: Callable[[str], None],
        readers: Callable[[], frozenset[int]] = lambda: frozenset({0}),
    ) -> None:
        """`pack` prepares setpoints and `write` sends one. `readers` returns the handles of all
        readers of the setpoints: the robot and possibly other programs. All three are called from
        any thread. `on_stopped` is called with the reason if a stream ends early.
        """
        self._readers = readers
        self._loop = asyncio.get_running_loop()
        self._clock = clock.stall_clock(self._loop)
        self._lock = threading.Lock()
        self._pack = pack
        self._write = write
        self._on_stopped = on_stopped
        self._stream: ArmStream | None = None
        self._build: Build | None = None
        self._hands: tuple[Hand, ...] = ()
        self._check_timer: asyncio.TimerHandle | None = None
        self._checked_late = False
        """Whether the last check was late and is being repeated."""
        self._age = StateAgeEstimator()
        self._fading: asyncio.Future[None] = self._loop.create_future()
        """Done while no release is in progress."""
        self._fading.set_result(None)
        self._fade_timer: asyncio.TimerHandle | None = None
        self._sent_at = self._state_at = 0.0
        """When the newest setpoint was sent, and when the newest fresh state arrived."""
        self._suspended_s = 0.0
        """This computer's total time in suspend at the last check that was on time."""
        self._measured_rad: tuple[float, ...] = ()
        self._unconfirmed: ArmStream | None = None
        """A stream that was released while the robot's states were missing."""
        self._known_readers = frozenset[int]()
        """The readers at the last fresh state."""

    @property
    def phase(self) -> Phase | None:
        """The phase of the stream; None if there is none."""
        return None if self._stream is None else self._stream.phase

    @property
    def hands(self) -> tuple[Hand, ...]:
        """The hands in the stream; none if there is no stream."""
        return () if self._stream is None else self._hands

    def begin(
        self, joints_rad: tuple[float, ...], build: Build, hands: tuple[Hand, ...] = ()
    ) -> None:
        """Begin a stream from the current joint positions of a build, including these hands."""
        self._stream = ArmStream(joints_rad, build, hands)
        self._unconfirmed = None
        self._build, self._hands = build, hands
        self._age.reset()
        self._measured_rad = joints_rad
        self._sent_at = self._state_at = self._clock()
        self._known_readers = self._readers()
        self._suspended_s = clock.suspended_s()
        self._checked_late = False
        self._check_timer = self._loop.call_later(_CEASED_S, self._check_stream)

    def prepare_poses(self, poses: Sequence[StreamPose]) -> Callable[[int], bool]:
        """Prepare the poses of the stream that was begun, and return a function that sends one by
        its index.

        The function sends nothing and returns False once the stream has ended, was interrupted
        for so long that the arms would jump, or a robot that was restarted would receive the pose.
        """
        stream, lock, clock_s, write = self._stream, self._lock, self._clock, self._write
        batch_start = batch_end = 0
        setpoints, packed = list[ArmSetpoint](), list[Packed]()

        def send(index: int) -> bool:
            nonlocal batch_start, batch_end, setpoints, packed
            if stream is None:
                return False
            if not batch_start <= index < batch_end:
                batch = poses[index : index + _PACKED_TOGETHER]
                setpoints = [stream.make_setpoint(pose) for pose in batch]
                packed = self._pack_setpoints(setpoints)
                batch_start, batch_end = index, index + len(setpoints)
            now = clock_s()
            with lock:
                if stream is not self._stream or not stream.following:
                    return False
                if now - self._sent_at > _STALLED_S and stream.last.weight > 0.0:
                    return False  # as no pose follows, `_check_stream` ends the stream
                if self._has_new_reader(now):
                    self._loop.call_soon_threadsafe(self.stop, _RESTARTED)
                    return False
                stream.record(setpoints[index - batch_start], now)
                write(packed[index - batch_start])
                self._sent_at = now
            if index == len(poses) - 1:
                self._loop.call_soon_threadsafe(self._end_stream, stream)
            return True

        return send

    def on_joints(
        self, joints_rad: tuple[float, ...], tick_ms: int | None = None, *, idle: bool = True
    ) -> None:
        """Process the joints' positions at the time `tick_ms` of the robot's clock, if it has one.

        Arms that do not follow the setpoints are released. Arms that were released while the
        robot's states were missing are released again, because the robot may not have received the
        release; but only if it is `idle` or this stream still fades: otherwise another client may
        move the arms. The arms of a robot that was restarted are released from their measured
        position.
        """
        now = self._clock()
        if self._age.measure_age(now, tick_ms) > _FRESH_S:
            return
        stream = self._stream
        if stream is not None or self._unconfirmed is not None:
            if stream is not None and (self._age.restarted or self._has_new_reader(now)):
                self._unconfirmed = stream
                if stream.following:
                    self._on_stopped(_RESTARTED)
            self._known_readers = self._readers()
        self._measured_rad, self._state_at = joints_rad, now
        if self._unconfirmed is not None:
            if idle or stream is not None:
                self._release_again(self._unconfirmed)
        elif stream is not None and stream.following and stream.is_not_tracking(joints_rad, now):
            self.stop(
                f"the arms did not track: a joint was {NOT_TRACKING_RAD:g} rad away from its "
                f"setpoint for {NOT_TRACKING_S:g} s"
            )

    def stop(self, reason: str) -> None:
        """End the stream early and softly; `reason` is a clause like "a stop was requested".

        Does nothing without a stream.
        """
        if self._stream is not None:
            if self._stream.following:
                self._on_stopped(self._find_stall_reason() or reason)
            self.fade()

    def fade(self) -> None:
        """Release the arms softly from wherever they are; does nothing without a stream."""
        stream = self._stream
        if stream is not None and stream.following:
            self._stop_checking()
            self._fading = self._loop.create_future()
            self._release(stream)

    async def wait_until_released(self) -> None:
        """Wait until the arms are released. A cancellation takes effect only after that."""
        await to_the_end(self._fading)

    def _release(self, stream: ArmStream, *, from_measured: bool = False) -> None:
        """Begin to release the arms from the last setpoint.

        With `from_measured`, or if that setpoint is too old, they are released from their measured
        position.
        """
        now = self._clock()
        has_weight = stream.last.weight > 0.0
        with self._lock:
            if has_weight and (from_measured or now - self._sent_at > _CEASED_S):
                fresh = now - self._state_at <= _FRESH_S
                stream.restart_from(self._measured_rad if fresh else None)
            setpoints = stream.fade()
            self._sent_at = now
        if has_weight and now - self._state_at >= self._state_timeout_s:
            self._unconfirmed = stream
        self._send_next_fade_step(stream, iter(self._pack_setpoints(setpoints)), self._loop.time())

    def _release_again(self, stream: ArmStream) -> None:
        """Release the arms again, from their measured position, once the robot reports again."""
        self._unconfirmed = None
        self._stop_checking()
        if self._fade_timer is not None:
            self._fade_timer.cancel()
        if self._fading.done():
            self._fading = self._loop.create_future()
        self._stream = stream
        self._hands = ()  # hands relax by themselves when their commands cease
        with self._lock:
            stream.following = False
            stream.restart_from(self._measured_rad)
        self._release(stream)

    def _has_new_reader(self, now: float) -> bool:
        """Whether a new reader has appeared while the robot's states are missing: the robot may
        have been restarted. While its states arrive, a new reader is another program.

        DDS keeps the readers of a robot that was switched off for some seconds, and the new ones
        receive setpoints before the robot reports a state.
        """
        return now - self._state_at > _FRESH_S and not self._readers() <= self._known_readers

    @property
    def _state_timeout_s(self) -> float:
        return max(_STATE_TIMEOUT_S, _STATE_TIMEOUT_INTERVALS * self._age.interval_s)

    def _pack_setpoints(self, setpoints: Sequence[ArmSetpoint]) -> list[Packed]:
        assert self._build is not None
        return list(self._pack(setpoints, self._build, self._hands))

    def _check_stream(self) -> None:
        """End the stream if poses or states have ceased; otherwise schedule the next check."""
        now = self._clock()
        state_age_s = now - self._state_at
        pose_age_s = now - self._sent_at
        remaining_s = min(_CEASED_S - pose_age_s, self._state_timeout_s - state_age_s)
        if remaining_s > 0.0:
            self._checked_late, next_check_s = False, max(remaining_s, _MIN_CHECK_S)
            self._suspended_s = clock.suspended_s()
        elif not self._checked_late:
            # This loop may have been stalled, so that the next pose and the next state are as late
            # as this check: wait once more.
            self._checked_late, next_check_s = True, _CHECK_S
        else:
            # `stop` names another reason if this computer sent no poses.
            self.stop(f"the robot reported no joint positions for {state_age_s:.1f} s")
            return
        self._check_timer = self._loop.call_later(next_check_s, self._check_stream)

    def _find_stall_reason(self) -> str:
        """Return why poses have ceased, if this computer is the cause; otherwise ""."""
        suspended_s = clock.suspended_s() - self._suspended_s
        if suspended_s > _CEASED_S:
            return f"this computer was suspended for {suspended_s:.1f} s"
        ceased_s = self._clock() - self._sent_at
        return f"this computer sent no pose for {ceased_s:.2f} s" if ceased_s > _CEASED_S else ""

    def _send_next_fade_step(
        self, stream: ArmStream, packed: Iterator[Packed], due_s: float
    ) -> None:
        """Send the next setpoint of the release, which was due at `due_s`, and schedule the one
        after it.

        This uses a timer, because a task would be cancelled with all others when the program ends.
        """
        if self._clock() - self._sent_at > _CEASED_S:  # this loop stalled: wait for a new state
            release = partial(self._release, stream, from_measured=True)
            self._fade_timer = self._loop.call_later(_CHECK_S, release)
            return
        may_send = bool(self._readers()) and not self._has_new_reader(self._clock())
        if not may_send:  # a restarted robot would jump: release its arms once it reports
            self._unconfirmed = stream
        setpoint = next(packed, None) if may_send else None
        if setpoint is None:
            self._fade_timer = None
            self._end_stream(stream)
            self._fading.set_result(None)
        else:
            # After a delay, the setpoints follow at up to twice the usual rate.
            next_due_s = max(due_s + _FADE_S, self._loop.time() + _FADE_S / 2)
            self._fade_timer = self._loop.call_at(
                next_due_s, self._send_next_fade_step, stream, packed, next_due_s
            )
            self._sent_at = self._clock()
            self._write(setpoint)

    def _end_stream(self, stream: ArmStream) -> None:
        """Forget the stream, unless another one has begun."""
        if stream is self._stream:
            self._stop_checking()
            self._stream = None

    def _stop_checking(self) -> None:
        if self._check_timer is not None:
            self._check_timer.cancel()
            self._check_timer = None
