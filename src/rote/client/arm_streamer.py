"""Streams poses to a robot's motors, and releases them softly however a stream ends.

A stream is never cut. It is released softly when it is stopped, when the poses stop coming, when
the robot falls silent or does not follow, and before the connection closes.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator

from rote.host.loop import to_the_end
from rote.messages import Phase, StreamPose
from rote.model.family import Build, Hand
from rote.session.arm_stream import FADE_HZ, ArmSetpoint, ArmStream

_LOOK_S = 0.02
_CEASED_S = 0.1

Write = Callable[[ArmSetpoint, Build, tuple[Hand, ...]], None]


class ArmStreamer:
    """At most one stream at a time."""

    def __init__(self, write: Write, stopped: Callable[[], None]) -> None:
        """`write` sends a setpoint; `stopped` is called when a stream ends before its last pose."""
        self._loop = asyncio.get_running_loop()
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
        # Release the arms softly if the poses stop coming, for whatever reason.
        self._told_at = self._loop.time()
        self._guard = self._loop.call_later(_CEASED_S, self._look)

    def ready(self, poses: Iterable[StreamPose]) -> Callable[[int], bool]:
        """Prepare the poses of the stream that was begun, and return a function that sends one by
        its place.

        The function sends nothing and returns False once the stream has ended.
        """
        begun, waiting = self._stream, list(poses)

        def send(place: int) -> bool:
            if begun is None or begun is not self._stream or not begun.following:
                return False
            self._tell(begun.follow(waiting[place], self._loop.time()))
            self._told_at = self._loop.time()
            if place == len(waiting) - 1:
                self._end()
            return True

        return send

    def see(self, joints_rad: tuple[float, ...]) -> None:
        """Process the joints' positions; arms that do not follow are released."""
        stream = self._stream
        if stream is not None and stream.astray(joints_rad, self._loop.time()):
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
            self._let_go(iter(stream.fade()), self._loop.time())

    async def faded(self) -> None:
        """Wait until the arms are released. A cancellation takes effect only after that."""
        await to_the_end(self._fading)

    def _tell(self, setpoint: ArmSetpoint) -> None:
        assert self._build is not None
        self._write(setpoint, self._build, self._hands)

    def _look(self) -> None:
        ceased_s = self._loop.time() - self._told_at
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

    def _let_go(self, setpoints: Iterator[ArmSetpoint], now: float) -> None:
        """Send the next setpoint of the release, and set a timer for the one after it.

        A task would be cancelled together with all others when a program ends; a timer is not.
        """
        setpoint = next(setpoints, None)
        if setpoint is None:
            self._end()
            self._fading.set_result(None)
        else:
            then = now + 1.0 / FADE_HZ
            self._loop.call_at(then, self._let_go, setpoints, then)
            self._tell(setpoint)

    def _end(self) -> None:
        self._stop_looking()
        self._stream = None

    def _stop_looking(self) -> None:
        if self._guard is not None:
            self._guard.cancel()
            self._guard = None
