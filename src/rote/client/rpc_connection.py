"""A client's connection to a robot's services, by any way there is: opened, lost, opened again.

A robot that falls silent is reported at once: what waits for an answer fails, and so does what is
asked meanwhile. Then the connection is opened again by itself, more and more patiently, and asks
again for the topics that were wanted. Nothing is kept back to be sent later: what would move a
robot is asked by a person who knows that it is there.

How messages get to the robot is a `Way`: a data channel (channel_way.py) or DDS (dds_way.py).
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Protocol

from rote.client.client_base import Shell, unanswered
from rote.errors import (
    BadRequestError,
    DecodeError,
    LinkError,
    NoAnswerError,
    RefusedError,
    RoteError,
)
from rote.session.events import Opened, PeerLost, Unanswered
from rote.session.rpc import Event, Heard, RequestAnswered, RpcSession
from rote.text import Act, Text
from rote.wire import channel, rpc
from rote.wire.rpc import NO_STATUS

TopicListener = Callable[[channel.ChannelMessage], None]

RECONNECT_DELAYS_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""How long to wait before each attempt to connect again; the last is repeated."""
MAX_ASKED = 30_000
"""Characters of a request's parameter: with all its quotes escaped, 64 KiB still hold it."""


class Way(Protocol):
    """How requests get to a robot and its answers back, in one conversation after the other."""

    @property
    def session(self) -> RpcSession:
        """The conversation there is now."""

    async def open(self, flush: Callable[[], None], topics: Iterable[str]) -> None:
        """Begin a new conversation. `flush` is called when the session has something to say."""

    def send(self) -> Iterable[tuple[int, RoteError]]:
        """Send what the session has to say; returns the requests that could not be sent."""

    def problem(self, call: rpc.Call) -> RoteError | None:
        """Return why a service cannot be asked this now; None where it can."""

    def unopened(self, url: str, waited_s: float) -> RoteError:
        """Return the error for a conversation that did not begin in time."""

    async def close(self) -> None:
        """Let go of what carries the messages. Safe to call twice."""


async def _greet_nobody() -> None:
    """Say nothing to a robot that was found."""


class RpcConnection(Shell[rpc.RpcResponse]):
    """One client's connection to one robot's services."""

    arms_hold_within_s = 10

    def __init__(self, url: str, way: Way, *, reconnect: bool = True) -> None:
        super().__init__(url)
        self.reconnects = 0
        """How often it has connected again."""
        self.greet: Callable[[], Awaitable[None]] = _greet_nobody
        """Says and asks what every new conversation needs."""
        self.hear: Callable[[channel.Value], None] = lambda _: None
        """Is told what the robot says by itself, before those who listen to its topic."""
        self.losing: Callable[[], None] = lambda: None
        """Is told of a loss before anybody else."""
        self._way = way
        self._reconnect = reconnect
        self._closed = False
        self._again: asyncio.Task[None] | None = None
        self._topics: dict[str, list[TopicListener]] = {}

    @property
    def session(self) -> RpcSession:
        """The conversation there is now."""
        return self._way.session

    @property
    def failure(self) -> RoteError | None:
        """Why the robot is lost; None while it is there."""
        return self._failure

    # ---- opening, losing, opening again ---------------------------------------------------------

    async def open(self) -> None:
        """Open the way and the conversation; raises what went wrong, and at which stage."""
        try:
            await self._connect()
        except BaseException:
            await self.close()
            raise

    async def _connect(self) -> None:
        await self._way.open(self.flush, self._topics)
        self.flush()
        await self._opened
        await self.greet()

    async def _connect_again(self) -> None:
        for pause_s in itertools.chain(
            RECONNECT_DELAYS_S, itertools.repeat(RECONNECT_DELAYS_S[-1])
        ):
            try:
                await self._way.close()
                await asyncio.sleep(pause_s)
                self._opened = self._loop.create_future()
                await self._connect()
            except RoteError:
                continue  # not there yet
            except Exception as error:  # this computer's fault or ours, and it may pass as well
                seen = f"an attempt to connect again to {self.url} failed; it is tried again"
                self._loop.call_exception_handler({"message": seen, "exception": error})
                continue
            if self.session.live:  # and not lost again in the same turn of the loop
                self._failure = None
                self.reconnects += 1
                return

    async def close(self) -> None:
        """Let go of the robot. Safe to call twice."""
        self._closed = True
        if self._again is not None:
            self._again.cancel()
            with suppress(asyncio.CancelledError):
                await self._again
        self._fail(LinkError("the connection was closed", "Connect again."))
        self.session.close(self._loop.time())
        self.flush()
        self._alarm.clear()
        await self._way.close()

    # ---- asking and listening -------------------------------------------------------------------

    async def call(
        self, call: rpc.Call, *, read: bool = False, seen: bool = False
    ) -> rpc.RpcResponse:
        """Ask a service; its refusal is raised with words and remedy.

        An answer without a status is one where it holds what was to be `read`, or where the caller
        sees by other means whether it was done.
        """
        if self._failure is not None:
            raise self._failure
        return await self.request(call, read=read, seen=seen)

    async def request(
        self, call: rpc.Call, *, read: bool = False, seen: bool = False
    ) -> rpc.RpcResponse:
        """Ask a service as `call` does, also before the robot counts as found again."""
        if len(call.parameter) > MAX_ASKED:
            message = f"a request of {len(call.parameter)} characters; robots take {MAX_ASKED}"
            raise BadRequestError(message, "Say it in fewer: is the name of an action so long?")
        problem = self._way.problem(call)
        if problem is not None:
            raise self._failure or problem
        token = self.session.request(call, self._loop.time(), read=read)
        response = await self._answer_to(token)
        if response.code == NO_STATUS:
            if seen or (read and response.text):
                return response
            raise NoAnswerError(
                "the robot's answer does not say whether it was done: it has no status",
                Text(
                    "Look at the robot and its state ({status}), then ask again.", status=Act.STATUS
                ),
            )
        if response.code:
            raise RefusedError(response.code, *rpc.explain(call.service, response.code))
        return response

    def on_topic(self, topic: str, listener: TopicListener) -> Callable[[], None]:
        """Call `listener` with what is published on `topic`; returns what ends that.

        Any number may listen, and a topic is asked for again after a reconnect.
        """
        channel.encode(channel.Subscription(topic))  # raises for one that cannot be asked for
        if topic not in self._topics and self.session.live:
            self.session.subscribe(topic)
            self.flush()
        listeners = self._topics.setdefault(topic, [])
        listeners.append(listener)

        def forget() -> None:
            if listener in listeners:
                listeners.remove(listener)
            if listeners or self._topics.get(topic) is not listeners:
                return  # others listen still, or again
            del self._topics[topic]
            if self.session.live:
                self.session.subscribe(topic, wanted=False)
                self.flush()

        return forget

    # ---- the loop around the session ------------------------------------------------------------

    def _tick(self) -> None:
        self.session.tick(self._loop.time())
        self.flush()

    def _flush(self) -> None:
        self.flush()

    def flush(self) -> None:
        """Hand out what has happened, send what is to be sent, and be back in time."""
        # A loss first, so that what it leaves unanswered fails by it.
        for event in sorted(self.session.events(), key=lambda e: not isinstance(e, PeerLost)):
            self._handle(event)
        for token, error in self._way.send():
            self._answer(token, error)
        self._alarm.set(self.session.due)

    def _handle(self, event: Event) -> None:
        if isinstance(event, Heard):
            self._hear(event.value)
        elif isinstance(event, RequestAnswered):
            self._answer(event.token, event.response)
        elif isinstance(event, Unanswered):
            self._answer(event.token, self._failure or unanswered(event.waited_s))
        elif isinstance(event, Opened):
            self._has_opened()
        elif isinstance(event, PeerLost):
            self._lose(event.silence_s)

    def _lose(self, silence_s: float) -> None:
        if not self._opened.done():
            self._opened.set_exception(self._way.unopened(self.url, silence_s))
            return
        self.losing()
        self._fail(self._lost(silence_s))
        at_it = self._again is not None and not self._again.done()
        if self._reconnect and not self._closed and not at_it:
            self._again = self._loop.create_task(self._connect_again(), name="rote reconnect")

    def _hear(self, value: channel.Value) -> None:
        self.hear(value)
        if isinstance(value, channel.ChannelMessage):
            for listener in tuple(self._topics.get(value.topic, ())):
                self._tell(listener, value)

    def _tell(self, listener: TopicListener, message: channel.ChannelMessage) -> None:
        """Tell one listener; its mistakes are its own, and reported as the loop reports them."""
        try:
            listener(message)
        except DecodeError:
            self.session.dropped["telemetry"] += 1
        except Exception as error:
            seen = f"a listener to {message.topic} failed"
            self._loop.call_exception_handler({"message": seen, "exception": error})
