"""The asyncio shell of a client's teaching session: datagrams in, timers, answers out."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rote import messages as m
from rote.errors import LinkError, NoAnswerError, PeerLostError, RefusedError, RoteError
from rote.session.events import (
    Event,
    Opened,
    OpenRefused,
    PeerLost,
    Replied,
    Reported,
    Unanswered,
)
from rote.session.teaching import Role, TeachingSession, Timing
from rote.transport import Link, Receiver

_T = TypeVar("_T")
StateListener = Callable[[m.RobotState], object]
LossListener = Callable[[RoteError], None]

ABILITIES = frozenset({"list", "teach", "play", "tempo", "stop", "mode", "states", "hand"})
"""What can be said in teaching frames."""


class TeachingClient:
    """One client's conversation with one robot, in teaching frames over any link."""

    abilities = ABILITIES

    def __init__(self, url: str, timing: Timing | None = None) -> None:
        self.url = url
        self.wire = url.partition(":")[0]
        self.latest: m.RobotState | None = None
        """The newest state the robot sent."""
        self.session = TeachingSession(Role.CLIENT, timing=timing)
        self._loop = asyncio.get_running_loop()
        self._link: Link | None = None
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._answers: dict[int, asyncio.Future[m.Reply]] = {}
        self._state_listeners: list[StateListener] = []
        self._loss_listeners: list[LossListener] = []
        self._failure: RoteError | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def open(self, dial: Callable[[Receiver], Awaitable[Link]]) -> None:
        """Open the link and the session; raises `NoAnswerError` when nobody answers in time."""
        self._link = await dial(self._receive)
        try:
            self.session.open(self._loop.time())
            self._flush()
            await self._opened
        except BaseException:
            await self.close()
            raise

    async def ask(self, command: m.Command) -> m.Reply:
        """Send a command and return the robot's reply."""
        if self._failure is not None:
            raise self._failure
        if isinstance(command, m.DiscardRecording):
            return m.Status()  # leaving teaching stored nothing, so there is nothing to remove
        token = self.session.request(command, self._loop.time())
        answer: asyncio.Future[m.Reply] = self._loop.create_future()
        self._answers[token] = answer
        self._flush()
        try:
            return await answer
        finally:
            self._answers.pop(token, None)

    def on_state(self, listener: StateListener) -> Callable[[], None]:
        """Call `listener` with every state; returns what ends that."""
        self._state_listeners.append(listener)
        return lambda: _drop(self._state_listeners, listener)

    def on_loss(self, listener: LossListener) -> Callable[[], None]:
        """Call `listener` when the robot is lost; returns what ends that."""
        if self._failure is not None:
            self._loop.call_soon(listener, self._failure)
        self._loss_listeners.append(listener)
        return lambda: _drop(self._loss_listeners, listener)

    async def close(self) -> None:
        """Say goodbye and let go of the link. Safe to call twice."""
        self.session.close(self._loop.time())
        self._flush()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._fail(LinkError("the connection was closed", "Connect again."))
        if self._link is not None:
            self._link.close()

    # ---- the loop around the session ------------------------------------------------------------

    def _receive(self, datagram: bytes) -> None:
        self.session.receive(datagram, self._loop.time())
        self._flush()

    def _tick(self) -> None:
        self._timer = None
        self.session.tick(self._loop.time())
        self._flush()

    def _flush(self) -> None:
        """Send what is to be sent, hand out what has happened, and be back in time."""
        for event in self.session.events():
            self._handle(event)
        datagrams = self.session.outgoing()
        if self._link is not None:
            for datagram in datagrams:
                self._link.send(datagram)
        # Only what was sent can fall due earlier than the timer stands, and not before its first
        # repetition. A timer that fires too early costs one idle tick; re-arming costs more.
        if self._timer is None or (
            datagrams and self._timer.when() > self._loop.time() + self.session.timing.retry_s
        ):
            self._arm()

    def _arm(self) -> None:
        due = self.session.due
        if due == float("inf") or (self._timer is not None and self._timer.when() <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._tick)

    def _handle(self, event: Event) -> None:
        if isinstance(event, Reported):
            self.latest = event.state
            for listener in tuple(self._state_listeners):
                listener(event.state)
        elif isinstance(event, Replied):
            self._answer(event.token, event.reply)
        elif isinstance(event, Unanswered):
            self._answer(event.token, _unanswered(event.waited_s))
        elif isinstance(event, Opened):
            if not self._opened.done():
                self._opened.set_result(None)
        elif isinstance(event, OpenRefused):
            self._fail(RefusedError(event.code, *m.words_for(event.code)))
        elif isinstance(event, PeerLost):
            self._fail(self._loss(event.silence_s))

    def _answer(self, token: int, reply: m.Reply | RoteError) -> None:
        answer = self._answers.get(token)
        if answer is None or answer.done():
            return
        if isinstance(reply, RoteError):
            answer.set_exception(reply)
        else:
            answer.set_result(reply)

    def _loss(self, silence_s: float) -> RoteError:
        if not self._opened.done():
            return NoAnswerError(
                f"no robot answered at {self.url} within {silence_s:.0f} s",
                "Check the address and that the robot is on; for a simulated one run: rote sim.",
            )
        return PeerLostError(
            f"the robot at {self.url} has been silent for {silence_s:.1f} s; its state is unknown",
            "Look at the robot before you touch it. If it was teaching, its arms hold again by "
            "themselves within 14 s. Then connect again.",
        )

    def _fail(self, error: RoteError) -> None:
        if self._failure is not None:
            return
        self._failure = error
        for token in list(self._answers):
            self._answer(token, error)
        if not self._opened.done():
            self._opened.set_exception(error)
            self._opened.exception()  # whoever awaits it has it; nobody else need be told
        for listener in tuple(self._loss_listeners):
            listener(error)


def _drop(listeners: list[_T], listener: _T) -> None:
    if listener in listeners:
        listeners.remove(listener)


def _unanswered(waited_s: float) -> NoAnswerError:
    return NoAnswerError(
        f"the robot did not answer this request within {waited_s:.0f} s, though it is there",
        "Whether it was carried out is unknown: look with `rote status`, then ask again.",
    )
