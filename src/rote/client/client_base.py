"""What all clients share: listeners, requests waiting for answers, the first error, the timer."""

import asyncio
from collections.abc import Callable, Iterable
from typing import ClassVar, Generic, TypeVar

from rote.client.timer import Alarm
from rote.errors import NoAnswerError, PeerLostError, RoteError
from rote.messages import HeardSpeech, RobotState, SoundState
from rote.text import Act, Text

_T = TypeVar("_T")
_Answer = TypeVar("_Answer")
StateListener = Callable[[RobotState], object]
AudioListener = Callable[[HeardSpeech | SoundState], object]
LossListener = Callable[[RoteError], None]


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

    def __init__(self, url: str) -> None:
        self.url = url
        self.wire = url.partition(":")[0]
        self._loop = asyncio.get_running_loop()
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
        """End the conversation with the first error; later errors are ignored."""
        if self._failure is not None:
            return
        self._failure = error
        for token in list(self._answers):
            self._answer(token, error)
        if not self._opened.done():
            self._opened.set_exception(error)
            self._opened.exception()  # the error is raised where the request is awaited
        tell_all(self._loss_listeners, error, self._loop)

    def _lost(self, silence_s: float) -> RoteError:
        if not self._opened.done():
            return NoAnswerError(
                f"no robot answered at {self.url} within {silence_s:.0f} s",
                Text(
                    "Check the address and that the robot is on; for a simulated one: {simulate}.",
                    simulate=Act.SIMULATE,
                ),
            )
        how = f"been silent for {silence_s:.1f} s" if silence_s > 1.0 else "closed the connection"
        return PeerLostError(
            f"the robot at {self.url} has {how}; its state is unknown",
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
