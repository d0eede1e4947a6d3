"""A client's connection to a robot's services: opened, lost, and reconnected.

The loss of a robot is reported at once: pending requests fail, and so do new ones. Then the
connection is opened again, with growing delays, and subscribes again to the wanted topics. Nothing
is queued to be sent later except a stop: what moves a robot is asked for only while the robot is
known to be there, and a stop that failed is the first request after a reconnect.

How messages get to the robot is a `Way`: a data channel (channel_connection.py) or DDS
(dds_connection.py).
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

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
from rote.transport.base_client import Shell, unanswered
from rote.wire.services import rpc
from rote.wire.services.rpc import NO_STATUS
from rote.wire.webrtc import channel

TopicListener = Callable[[channel.ChannelMessage], None]

MAX_ASKED = 30_000
"""The longest parameter of a request, in characters: with all quotes escaped it still fits
64 KiB.
"""


class Way(Protocol):
    """How requests get to a robot and answers come back, in one session after the other."""

    @property
    def session(self) -> RpcSession:
        """The current session."""

    async def open(self, flush: Callable[[], None], topics: Iterable[str]) -> None:
        """Begin a new session. `flush` is called when the session has something to send."""

    def send(self) -> Iterable[tuple[int, RoteError]]:
        """Send the session's outgoing messages; return the requests that could not be sent."""

    def problem(self, call: rpc.Call) -> RoteError | None:
        """Return why a service cannot be asked this now; None if it can."""

    def unopened(self, url: str, waited_s: float) -> RoteError:
        """Return the error for a session that did not open in time."""

    async def close(self) -> None:
        """Close what carries the messages. Safe to call twice."""


async def _greet_nobody() -> None:
    """The default of `greet`: ask nothing."""


class RpcConnection(Shell[rpc.RpcResponse]):
    """One client's connection to one robot's services."""

    arms_hold_within_s = 10

    def __init__(self, url: str, way: Way, *, reconnect: bool = True) -> None:
        super().__init__(url, reconnect=reconnect)
        self.greet: Callable[[], Awaitable[None]] = _greet_nobody
        """Asks what every new session needs to know."""
        self.hear: Callable[[channel.Value], None] = lambda _: None
        """Called with what the robot publishes, before the listeners of the topic."""
        self.losing: Callable[[], None] = lambda: None
        """Called at a loss, before everybody else."""
        self._way = way
        self._topics: dict[str, list[TopicListener]] = {}

    @property
    def session(self) -> RpcSession:
        """The current session."""
        return self._way.session

    @property
    def failure(self) -> RoteError | None:
        """Why the robot is lost; None while it is connected."""
        return self._failure

    # ---- opening, losing, opening again ---------------------------------------------------------

    async def open(self) -> None:
        """Connect; raises what went wrong, and at which stage."""
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

    @property
    def _is_live(self) -> bool:
        return self.session.live

    async def _disconnect(self) -> None:
        await self._way.close()

    async def close(self) -> None:
        """Close the connection. Safe to call twice."""
        await self._stop_reconnecting()
        self._fail(LinkError("the connection was closed", "Connect again."))
        self.session.close(self.now())
        self.flush()
        self._alarm.clear()
        await self._way.close()

    # ---- asking and listening -------------------------------------------------------------------

    async def call(
        self, call: rpc.Call, *, read: bool = False, seen: bool = False
    ) -> rpc.RpcResponse:
        """Ask a service and return its response; raises `RefusedError` with a remedy if it refuses.

        A response without a status counts as an answer if it contains what was to be `read`, or if
        the caller checks the result in another way (`seen`).
        """
        if self._failure is not None:
            raise self._failure
        return await self.request(call, read=read, seen=seen)

    async def request(
        self, call: rpc.Call, *, read: bool = False, seen: bool = False
    ) -> rpc.RpcResponse:
        """Ask a service as `call` does, even before a reconnected robot counts as ready."""
        if len(call.parameter) > MAX_ASKED:
            message = f"a request of {len(call.parameter)} characters; robots take {MAX_ASKED}"
            raise BadRequestError(message, "Say it in fewer: is the name of an action so long?")
        problem = self._way.problem(call)
        if problem is not None:
            raise self._failure or problem
        token = self.session.request(call, self.now(), read=read)
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
        """Call `listener` with what is published on `topic`. Return a function that removes it.

        A topic may have any number of listeners. It is subscribed to again after a reconnect.
        """
        channel.encode(channel.Subscription(topic))  # raises if the topic cannot be subscribed to
        if topic not in self._topics and self.session.live:
            self.session.subscribe(topic)
            self.flush()
        listeners = self._topics.setdefault(topic, [])
        listeners.append(listener)

        def forget() -> None:
            if listener in listeners:
                listeners.remove(listener)
            if listeners or self._topics.get(topic) is not listeners:
                return  # others still listen, or listen again
            del self._topics[topic]
            if self.session.live:
                self.session.subscribe(topic, wanted=False)
                self.flush()

        return forget

    # ---- the loop around the session ------------------------------------------------------------

    def _tick(self) -> None:
        self.session.tick(self.now())
        self.flush()

    def _flush(self) -> None:
        self.flush()

    def flush(self) -> None:
        """Deliver events, send outgoing data, and set the timer."""
        # The loss first, so that unanswered requests fail with it.
        for event in sorted(self.session.events(), key=lambda e: not isinstance(e, PeerLost)):
            self._handle(event)
        for token, error in self._way.send():
            self._answer(token, error)
        self._set_alarm(self.session.due)

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
        self._start_reconnecting()

    def _hear(self, value: channel.Value) -> None:
        self.hear(value)
        if isinstance(value, channel.ChannelMessage):
            for listener in tuple(self._topics.get(value.topic, ())):
                self._tell(listener, value)

    def _tell(self, listener: TopicListener, message: channel.ChannelMessage) -> None:
        """Call one listener; its exceptions go to the event loop's exception handler."""
        try:
            listener(message)
        except DecodeError:
            self.session.dropped["telemetry"] += 1
        except Exception as error:
            seen = f"a listener to {message.topic} failed"
            self._loop.call_exception_handler({"message": seen, "exception": error})
