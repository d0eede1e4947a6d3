"""Streams poses to a robot's motors, and releases them softly however a stream ends.

A stream is never cut: it is let go of when it is stopped, when the poses cease, when the robot
falls silent or does not follow, and before we leave.

Poses may be sent from a thread of their own. One lock makes sending a pose and ending the stream
exclude each other: once it fades, no pose comes in between.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from rote.host.loop import clock_of, to_the_end
from rote.messages import Phase, StreamPose
from rote.model.family import Build, Hand
from rote.session.arm_stream import FADE_HZ, ArmSetpoint, ArmStream

_LOOK_S = 0.02
_CEASED_S = 0.1
_AT_ONCE = 50
"""So many poses are packed together, shortly before the first of them is sent."""

Packed = TypeVar("Packed")


class ArmStreamer(Generic[Packed]):
    """At most one stream at a time."""

    def __init__(
        self,
        pack: Callable[[Sequence[ArmSetpoint], Build, tuple[Hand, ...]], Sequence[Packed]],
        write: Callable[[Packed], None],
        stopped: Callable[[], None],
    ) -> None:
        """`pack` makes setpoints ready, `write` sends one, `stopped` is told of a stream that does
        not end by itself. The first two are called from any thread."""
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self._lock = threading.Lock()
        self._pack = pack
        self._write = write
        self._stopped = stopped
        self._stream: ArmStream | None = None
        self._build: Build | None = None
        self._hands: tuple[Hand, ...] = ()
        self._guard: asyncio.TimerHandle | None = None
        self._fading: asyncio.Future[None] = self._loop.create_future()
        self._fading.set_result(None)
        self._told_at = self._ceased_at = 0.0

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
        """Begin a stream from the current positions of a build's joints, and of these hands
        of it.
        """
        self._stream = ArmStream(joints_rad, build, hands)
        self._build, self._hands = build, hands
        # Let go softly where the poses cease, whatever the reason.
        self._told_at = self._clock()
        self._guard = self._loop.call_later(_CEASED_S, self._look)

    def ready(self, poses: Sequence[StreamPose]) -> Callable[[int], bool]:
        """Prepare the poses of the stream that was begun, and return a function that sends one by
        its place.

        The function sends nothing and returns False once the stream has ended.
        """
        begun, lock, clock, write = self._stream, self._lock, self._clock, self._write
        first = last = 0
        setpoints, packed = list[ArmSetpoint](), list[Packed]()

        def send(place: int) -> bool:
            nonlocal first, last, setpoints, packed
            if begun is None:
                return False
            if not first <= place < last:
                setpoints = [begun.setpoint(pose) for pose in poses[place : place + _AT_ONCE]]
                first, last, packed = place, place + len(setpoints), self._packed(setpoints)
            now = clock()
            with lock:
                if begun is not self._stream or not begun.following:
                    return False
                begun.tell(setpoints[place - first], now)
                write(packed[place - first])
                self._told_at = now
            if place == len(poses) - 1:
                self._loop.call_soon_threadsafe(self._end, begun)
            return True

        return send

    def see(self, joints_rad: tuple[float, ...]) -> None:
        """Process the joints' positions; arms that do not follow are released."""
        stream = self._stream
        if stream is not None and stream.astray(joints_rad, self._clock()):
            self.stop()

    def stop(self) -> None:
        """End the stream early and softly; does nothing without a stream."""
        if self._stream is not None:
            self._stopped()
            self.fade()

    def fade(self) -> None:
        """Release the arms softly from wherever they are; does nothing without a stream."""
        stream = self._stream
        if stream is not None and stream.following:
            self._stop_looking()
            self._fading = self._loop.create_future()
            with self._lock:
                setpoints = stream.fade()
            self._let_go(stream, iter(self._packed(setpoints)), self._loop.time())

    async def faded(self) -> None:
        """Wait until the arms are released. A cancellation takes effect only after that."""
        await to_the_end(self._fading)

    def _packed(self, setpoints: Sequence[ArmSetpoint]) -> list[Packed]:
        assert self._build is not None
        return list(self._pack(setpoints, self._build, self._hands))

    def _look(self) -> None:
        ceased_s = self._clock() - self._told_at
        if ceased_s < _CEASED_S:
            again_s = _CEASED_S - ceased_s
        elif self._told_at != self._ceased_at:
            # The loop may have been blocked, so that the next pose is as late as this check: wait
            # once more.
            self._ceased_at, again_s = self._told_at, _LOOK_S
        else:
            self.stop()
            return
        self._guard = self._loop.call_later(again_s, self._look)

    def _let_go(self, stream: ArmStream, packed: Iterator[Packed], now: float) -> None:
        """Tell the arms the next, and go on by a timer: a task would be cancelled with all others
        where a program is ended."""
        following = next(packed, None)
        if following is None:
            self._end(stream)
            self._fading.set_result(None)
        else:
            then = now + 1.0 / FADE_HZ
            self._loop.call_at(then, self._let_go, stream, packed, then)
            self._write(following)

    def _end(self, stream: ArmStream) -> None:
        if stream is self._stream:
            self._stop_looking()
            self._stream = None

    def _stop_looking(self) -> None:
        if self._guard is not None:
            self._guard.cancel()
            self._guard = None
