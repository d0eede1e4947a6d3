"""The base class of all clients: listeners, pending requests, the first error and the timer.

It also reconnects to a lost robot, and keeps a stop pending until the robot confirms it.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import ClassVar, Generic, TypeVar

from rote.errors import NoAnswerError, PeerLostError, RefusedError, RoteError
from rote.messages import HeardSpeech, RobotState, SoundState
from rote.platform import clock
from rote.text import Act, Text
from rote.transport.link import Alarm

_STALL_S = 1.0
"""A loss after a stall longer than this is attributed to this computer, not to the robot."""
_T = TypeVar("_T")
_Answer = TypeVar("_Answer")
StateListener = Callable[[RobotState], object]
AudioListener = Callable[[HeardSpeech | SoundState], object]
LossListener = Callable[[RoteError], None]

RECONNECT_DELAYS_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Delays before each attempt to reconnect, in seconds; the last value is repeated."""
STOP_DELAY_S = 0.5
"""Maximum delay before an attempt while a stop is pending."""


class ThreadSafeSender:
    """Sends a prepared pose by its index. The type marks it as callable from any thread."""

    def __init__(self, send_pose: Callable[[int], bool]) -> None:
        self.send_pose = send_pose

    def __call__(self, index: int) -> bool:
        """Send the pose; return False once the stream has ended."""
        return self.send_pose(index)


class StateFeed:
    """Notifies listeners of every state of a robot."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._listeners: list[StateListener] = []

    def on_state(self, listener: StateListener) -> Callable[[], None]:
        """Call `listener` with every state. Return a function that removes it."""
        return add_listener(self._listeners, listener)

    def notify(self, state: RobotState) -> None:
        """Call every listener; an exception in one is reported and does not affect the others."""
        notify_listeners(self._listeners, state, self._loop)


class BaseClient(Generic[_Answer]):
    """A client's connection to one robot, independent of the session protocol."""

    arms_hold_within_s: ClassVar[int]
    """Maximum time in seconds until a robot that lost the teaching client makes its arms hold."""

    def __init__(self, url: str, *, reconnect: bool = False) -> None:
        self.url = url
        self.wire = url.partition(":")[0]
        self.reconnects = 0
        """Number of reconnects so far."""
        self._stop_pending = False
        self._newest_stop = self._newest_settled_stop = 0
        """Sequence numbers of the newest stop, and of the newest that was confirmed or refused."""
        self._stop_event = asyncio.Event()
        self._reconnect = reconnect
        self._closed = False
        self._reconnect_task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self.now = clock.stall_clock(self._loop)
        """Returns the time of the session. Unlike the clock of the alarm, it includes suspend."""
        self._suspended_s = clock.suspended_s()
        self._stall = (0.0, "")
        """When the last long stall of this computer was noticed, and its description."""
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._failure: RoteError | None = None
        self._alarm = Alarm(self._tick)
        self.answers: dict[int, asyncio.Future[_Answer]] = {}
        """Awaited answers, by the token of the request."""
        self._loss_listeners: list[LossListener] = []

    def on_loss(self, listener: LossListener) -> Callable[[], None]:
        """Call `listener` with the error when the robot is lost. Return a function that
        removes it.
        """
        if self._failure is not None:
            self._loop.call_soon(listener, self._failure)
        return add_listener(self._loss_listeners, listener)

    def on_audio(self, _listener: AudioListener) -> Callable[[], None]:
        """Ignore the listener: this wire carries no audio. Return a function that does nothing."""
        return lambda: None

    # ---- a stop is never forgotten --------------------------------------------------------------

    @property
    def stop_pending(self) -> bool:
        """Whether a stop was requested, or is required because the arms may be soft, and the robot
        has not confirmed it. A pending stop is the first request after a reconnect.
        """
        return self._stop_pending

    @stop_pending.setter
    def stop_pending(self, pending: bool) -> None:
        self._stop_pending = pending
        if not pending:
            self._newest_settled_stop = self._newest_stop

    def mark_stop_pending(self) -> None:
        """Mark a stop as pending; a lost robot is stopped as soon as it is connected again."""
        self.stop_pending = True
        self._stop_event.set()

    async def confirm_stop(self, stop: Awaitable[_T]) -> _T:
        """Await `stop`, which sends a stop to the robot, and return its answer.

        The stop stays pending until the robot confirms or refuses it or a later stop.
        """
        self._newest_stop += 1
        number = self._newest_stop
        self.mark_stop_pending()
        try:
            answer = await stop
        except RefusedError:
            self._settle_stop(number)
            raise
        except BaseException:
            if number > self._newest_settled_stop:  # no later stop was settled meanwhile
                self.mark_stop_pending()
            raise
        self._settle_stop(number)
        return answer

    def _settle_stop(self, number: int) -> None:
        """Note that the robot has confirmed or refused the stop with this sequence number."""
        self._newest_settled_stop = max(self._newest_settled_stop, number)
        if self._newest_settled_stop == self._newest_stop:
            self._stop_pending = False

    # ---- reconnecting ---------------------------------------------------------------------------

    @property
    def _is_live(self) -> bool:
        """Whether the current session is neither lost nor closed."""
        raise NotImplementedError

    async def _connect(self) -> None:
        """Open a session, and send a pending stop before anything else."""
        raise NotImplementedError

    async def _disconnect(self) -> None:
        """Close the transport. Safe to repeat."""
        raise NotImplementedError

    def _start_reconnecting(self) -> None:
        """Start reconnecting in the background, if enabled and not yet in progress."""
        is_reconnecting = self._reconnect_task is not None and not self._reconnect_task.done()
        if self._reconnect and not self._closed and not is_reconnecting:
            self._reconnect_task = self._loop.create_task(
                self._reconnect_with_delays(), name="rote reconnect"
            )

    async def _stop_reconnecting(self) -> None:
        self._closed = True
        if self._reconnect_task is not None:
            self._reconnect_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._reconnect_task

    async def _reconnect_with_delays(self) -> None:
        """Try to reconnect, with growing delays, until the robot is connected again."""
        for delay_s in itertools.chain(
            RECONNECT_DELAYS_S, itertools.repeat(RECONNECT_DELAYS_S[-1])
        ):
            try:
                await self._disconnect()
                await self._wait_before_attempt(delay_s)
                self._opened = self._loop.create_future()
                await self._connect()
            except RoteError:
                continue  # the robot is not back yet
            except Exception as error:  # a local fault or a bug in rote; it may be transient
                message = f"an attempt to reconnect to {self.url} failed; trying again"
                self._loop.call_exception_handler({"message": message, "exception": error})
                continue
            if self._is_live:  # it may have been lost again in the same iteration of the loop
                self._failure = None
                self.reconnects += 1
                return

    async def _wait_before_attempt(self, seconds: float) -> None:
        """Wait before the next attempt; a stop requested meanwhile shortens the wait."""
        if not self.stop_pending:
            self._stop_event.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stop_event.wait()
            return
        await asyncio.sleep(min(seconds, STOP_DELAY_S))

    # ---- requests and answers -------------------------------------------------------------------

    def _tick(self) -> None:
        """Advance the session's timers."""
        raise NotImplementedError

    def _flush(self) -> None:
        """Send outgoing data, deliver events and set the timer."""
        raise NotImplementedError

    async def _wait_for_answer(self, token: int) -> _Answer:
        """Send outgoing data, and wait for the answer to the request `token`."""
        answer: asyncio.Future[_Answer] = self._loop.create_future()
        self.answers[token] = answer
        self._flush()
        try:
            return await answer
        finally:
            self.answers.pop(token, None)

    def _resolve_request(self, token: int, reply: _Answer | RoteError) -> None:
        answer = self.answers.get(token)
        if answer is None or answer.done():
            return
        if isinstance(reply, RoteError):
            answer.set_exception(reply)
        else:
            answer.set_result(reply)

    def _mark_opened(self) -> None:
        if not self._opened.done():
            self._opened.set_result(None)

    def _fail(self, error: RoteError) -> None:
        """Fail all pending requests; the first error is reported to the loss listeners."""
        is_first = self._failure is None
        self._failure = self._failure or error
        for token in list(self.answers):
            self._resolve_request(token, error)
        if not self._opened.done():
            self._opened.set_exception(error)
            self._opened.exception()  # the error is raised where the request is awaited
        if is_first:
            notify_listeners(self._loss_listeners, error, self._loop)

    def _set_alarm(self, due: float) -> None:
        """Call `_tick` at `due`, by the clock of the session."""
        self._note_stall()
        # The alarm's clock does not count the time in suspend.
        self._alarm.set(due - self._suspended_s)

    def _note_stall(self) -> None:
        """Note a long stall of this computer since the last call: it received nothing meanwhile."""
        suspended_before_s, self._suspended_s = self._suspended_s, clock.suspended_s()
        suspended_s = self._suspended_s - suspended_before_s
        late_s, self._alarm.late_s = self._alarm.late_s, 0.0
        if suspended_s > _STALL_S:
            self._stall = self.now(), f"this computer was suspended for {suspended_s:.1f} s"
        elif late_s > _STALL_S:
            self._stall = self.now(), f"this program stalled for {late_s:.1f} s"

    def _describe_loss(self, silence_s: float) -> str:
        """Describe how the robot was lost: by its silence, or by a stall of this computer."""
        self._note_stall()
        stalled_at, stall = self._stall
        if stall and stalled_at >= self.now() - silence_s:
            return f"{stall} and lost the robot at {self.url}"
        # Every timeout is longer than this: the carrier itself has reported the loss.
        if silence_s <= 1.0:
            return f"the robot at {self.url} has closed the connection"
        return f"the robot at {self.url} has been silent for {silence_s:.1f} s"

    def _make_loss_error(self, silence_s: float) -> RoteError:
        """Return the error for a robot that never answered, or that was connected and is lost."""
        if not self._opened.done():
            return NoAnswerError(
                f"no robot answered at {self.url} within {silence_s:.0f} s",
                Text(
                    "Check the address and that the robot is on. To use a simulated robot: "
                    "{simulate}.",
                    simulate=Act.SIMULATE,
                ),
            )
        return PeerLostError(
            f"{self._describe_loss(silence_s)}; its state is unknown",
            "Look at the robot before you touch it. If it was teaching, its arms hold again by "
            f"themselves within {self.arms_hold_within_s} s. Then connect again.",
        )


def make_unanswered_error(waited_s: float) -> NoAnswerError:
    """Return the error for an unanswered request to a robot that is still connected."""
    return NoAnswerError(
        f"the robot did not answer this request within {waited_s:.0f} s, though it is connected",
        Text(
            "The robot may have carried it out: check its state ({status}), then repeat the "
            "request if needed.",
            status=Act.STATUS,
        ),
    )


def add_listener(listeners: list[_T], listener: _T) -> Callable[[], None]:
    """Add `listener` to the list. Return a function that removes it and is safe to repeat."""

    def remove() -> None:
        if listener in listeners:
            listeners.remove(listener)

    listeners.append(listener)
    return remove


def notify_listeners(
    listeners: Iterable[Callable[[_T], object]], value: _T, loop: asyncio.AbstractEventLoop
) -> None:
    """Call each listener; its exceptions go to the event loop's exception handler."""
    for listener in tuple(listeners):
        try:
            listener(value)
        except Exception as error:
            loop.call_exception_handler({"message": "a listener failed", "exception": error})
