"""What all clients share: listeners, requests waiting for answers, the first error, the timer.

Also the reconnect to a lost robot, and the stop that a robot has not confirmed yet.
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
from rote.transport.timer import Alarm

_STALL_S = 1.0
"""After a stall longer than this, this computer is to blame for a loss, and not the robot."""
_T = TypeVar("_T")
_Answer = TypeVar("_Answer")
StateListener = Callable[[RobotState], object]
AudioListener = Callable[[HeardSpeech | SoundState], object]
LossListener = Callable[[RoteError], None]

RECONNECT_DELAYS_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Delays before each attempt to reconnect, in seconds; the last value is repeated."""
STOP_DELAY_S = 0.5
"""Maximum delay before an attempt while a stop is pending."""


class FromAnywhere:
    """Sends one of the prepared poses, by its place, from any thread."""

    def __init__(self, tell: Callable[[int], bool]) -> None:
        self.tell = tell

    def __call__(self, place: int) -> bool:
        """Send the pose; return False once the stream has ended."""
        return self.tell(place)


class StateFeed:
    """The listeners that get every state of a robot."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._listeners: list[StateListener] = []

    def on_state(self, listener: StateListener) -> Callable[[], None]:
        """Call `listener` with every state. Return a function that removes it."""
        return listen(self._listeners, listener)

    def tell(self, state: RobotState) -> None:
        """Call every listener; an exception in one is reported and does not affect the others."""
        tell_all(self._listeners, state, self._loop)


class Shell(Generic[_Answer]):
    """One client's conversation with one robot, whatever the session inside."""

    arms_hold_within_s: ClassVar[int]
    """How many seconds after a robot loses its teacher it makes the arms hold again."""

    def __init__(self, url: str, *, reconnect: bool = False) -> None:
        self.url = url
        self.wire = url.partition(":")[0]
        self.reconnects = 0
        """How often it has reconnected."""
        self._stop_pending = False
        self._stops_requested = self._stops_settled = 0
        """The number of the newest stop, and of the newest that needs no confirmation any more."""
        self._stop_requested = asyncio.Event()
        self._reconnect = reconnect
        self._closed = False
        self._again: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self.now = clock.stall_clock(self._loop)
        """The clock of the session. It counts suspend, unlike the alarm's."""
        self._suspended_s = clock.suspended_s()
        self._stall = (0.0, "")
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._failure: RoteError | None = None
        self._alarm = Alarm(self._tick)
        self._answers: dict[int, asyncio.Future[_Answer]] = {}
        self._loss_listeners: list[LossListener] = []

    def on_loss(self, listener: LossListener) -> Callable[[], None]:
        """Call `listener` with the error when the robot is lost. Return a function that
        removes it.
        """
        if self._failure is not None:
            self._loop.call_soon(listener, self._failure)
        return listen(self._loss_listeners, listener)

    def on_audio(self, _listener: AudioListener) -> Callable[[], None]:
        """Do nothing: this wire carries nothing that a robot hears. Return a function that does
        nothing."""
        return lambda: None

    # ---- a stop is never forgotten --------------------------------------------------------------

    @property
    def stop_pending(self) -> bool:
        """Whether a stop was requested, or is owed to soft arms, and the robot has not confirmed
        it. It is the first request after a reconnect.
        """
        return self._stop_pending

    @stop_pending.setter
    def stop_pending(self, pending: bool) -> None:
        self._stop_pending = pending
        if not pending:
            self._stops_settled = self._stops_requested

    def owe_stop(self) -> None:
        """Note that the robot must be stopped; a lost one as soon as it is back."""
        self.stop_pending = True
        self._stop_requested.set()

    async def confirm_stop(self, stop: Awaitable[_T]) -> _T:
        """Return the answer to a stop, which is pending until the robot confirms or refuses it, or
        a stop that was requested later.
        """
        self._stops_requested += 1
        number = self._stops_requested
        self.owe_stop()
        try:
            answer = await stop
        except RefusedError:
            self._settle_stop(number)
            raise
        except BaseException:
            if number > self._stops_settled:
                self.owe_stop()
            raise
        self._settle_stop(number)
        return answer

    def _settle_stop(self, number: int) -> None:
        self._stops_settled = max(self._stops_settled, number)
        if self._stops_settled == self._stops_requested:
            self._stop_pending = False

    # ---- the way back to a lost robot -----------------------------------------------------------

    @property
    def _is_live(self) -> bool:
        """Whether the current session is neither lost nor closed."""
        raise NotImplementedError

    async def _connect(self) -> None:
        """Open a session, and send a pending stop before anything else."""
        raise NotImplementedError

    async def _disconnect(self) -> None:
        """Close what carries the messages. Safe to repeat."""
        raise NotImplementedError

    def _start_reconnecting(self) -> None:
        """Reconnect in the background, if this was requested and does not happen already."""
        at_it = self._again is not None and not self._again.done()
        if self._reconnect and not self._closed and not at_it:
            self._again = self._loop.create_task(self._connect_again(), name="rote reconnect")

    async def _stop_reconnecting(self) -> None:
        self._closed = True
        if self._again is not None:
            self._again.cancel()
            with suppress(asyncio.CancelledError):
                await self._again

    async def _connect_again(self) -> None:
        for delay_s in itertools.chain(
            RECONNECT_DELAYS_S, itertools.repeat(RECONNECT_DELAYS_S[-1])
        ):
            try:
                await self._disconnect()
                await self._pause(delay_s)
                self._opened = self._loop.create_future()
                await self._connect()
            except RoteError:
                continue  # not there yet
            except Exception as error:  # a fault of this computer or of rote; it may pass as well
                seen = f"an attempt to connect again to {self.url} failed; it is tried again"
                self._loop.call_exception_handler({"message": seen, "exception": error})
                continue
            if self._is_live:  # and not lost again in the same iteration of the event loop
                self._failure = None
                self.reconnects += 1
                return

    async def _pause(self, seconds: float) -> None:
        """Wait before the next attempt; a stop that is requested meanwhile shortens the wait."""
        if not self.stop_pending:
            self._stop_requested.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stop_requested.wait()
            return
        await asyncio.sleep(min(seconds, STOP_DELAY_S))

    # ---- requests and answers -------------------------------------------------------------------

    def _tick(self) -> None:
        """Do what is due now."""
        raise NotImplementedError

    def _flush(self) -> None:
        """Send outgoing data, deliver events, and set the timer."""
        raise NotImplementedError

    async def _answer_to(self, token: int) -> _Answer:
        """Send outgoing data, and wait for the answer to the request `token`."""
        answer: asyncio.Future[_Answer] = self._loop.create_future()
        self._answers[token] = answer
        self._flush()
        try:
            return await answer
        finally:
            self._answers.pop(token, None)

    def _answer(self, token: int, reply: _Answer | RoteError) -> None:
        answer = self._answers.get(token)
        if answer is None or answer.done():
            return
        if isinstance(reply, RoteError):
            answer.set_exception(reply)
        else:
            answer.set_result(reply)

    def _has_opened(self) -> None:
        if not self._opened.done():
            self._opened.set_result(None)

    def _fail(self, error: RoteError) -> None:
        """Fail everything that waits; the first error ends the conversation and is reported."""
        is_first = self._failure is None
        self._failure = self._failure or error
        for token in list(self._answers):
            self._answer(token, error)
        if not self._opened.done():
            self._opened.set_exception(error)
            self._opened.exception()  # the error is raised where the request is awaited
        if is_first:
            tell_all(self._loss_listeners, error, self._loop)

    def _set_alarm(self, due: float) -> None:
        """Call `_tick` at `due`, by the clock of the session."""
        self._note_stall()
        self._alarm.set(due - self._suspended_s)

    def _note_stall(self) -> None:
        """Note how long this computer itself did not listen, if it was long."""
        before_s, self._suspended_s = self._suspended_s, clock.suspended_s()
        late_s, self._alarm.late_s = self._alarm.late_s, 0.0
        if self._suspended_s - before_s > _STALL_S:
            suspended_s = self._suspended_s - before_s
            self._stall = self.now(), f"this computer was suspended for {suspended_s:.1f} s"
        elif late_s > _STALL_S:
            self._stall = self.now(), f"this program stalled for {late_s:.1f} s"

    def _loss(self, silence_s: float) -> str:
        """Return how the robot was lost. It is not silent while this computer does not listen."""
        self._note_stall()
        stalled_at, stall = self._stall
        if stall and stalled_at >= self.now() - silence_s:
            return f"{stall} and lost the robot at {self.url}"
        silent = f"been silent for {silence_s:.1f} s"
        return (
            f"the robot at {self.url} has {silent if silence_s > 1.0 else 'closed the connection'}"
        )

    def _lost(self, silence_s: float) -> RoteError:
        if not self._opened.done():
            return NoAnswerError(
                f"no robot answered at {self.url} within {silence_s:.0f} s",
                Text(
                    "Check the address and that the robot is on; for a simulated one: {simulate}.",
                    simulate=Act.SIMULATE,
                ),
            )
        return PeerLostError(
            f"{self._loss(silence_s)}; its state is unknown",
            "Look at the robot before you touch it. If it was teaching, its arms hold again by "
            f"themselves within {self.arms_hold_within_s} s. Then connect again.",
        )


def unanswered(waited_s: float) -> NoAnswerError:
    """Return the error for a request that a robot, which is otherwise heard, did not answer."""
    return NoAnswerError(
        f"the robot did not answer this request within {waited_s:.0f} s, though it is there",
        Text(
            "Whether it was carried out is unknown: look at its state ({status}), then ask again.",
            status=Act.STATUS,
        ),
    )


def listen(listeners: list[_T], listener: _T) -> Callable[[], None]:
    """Add `listener` to the list. Return a function that removes it and is safe to repeat."""

    def forget() -> None:
        if listener in listeners:
            listeners.remove(listener)

    listeners.append(listener)
    return forget


def tell_all(
    listeners: Iterable[Callable[[_T], object]], what: _T, loop: asyncio.AbstractEventLoop
) -> None:
    """Call each listener; its exceptions go to the event loop's exception handler."""
    for listener in tuple(listeners):
        try:
            listener(what)
        except Exception as error:
            loop.call_exception_handler({"message": "a listener failed", "exception": error})
