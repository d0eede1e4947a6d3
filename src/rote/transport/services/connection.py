"""A client's connection to a robot's services: opened, lost, and reconnected.

The loss of a robot is reported at once: pending requests fail, and so do new ones. Then the
connection is opened again, with growing delays, and subscribes to its topics again. Nothing is
queued to be sent later except a stop: requests that move a robot are sent only while the robot is
known to be connected, and a stop that failed is the first request after a reconnect.

A `MessageTransport` transports the messages: a data channel (webrtc/connection.py) or DDS
(dds/connection.py).
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
from rote.session.rpc import Event, MessageReceived, RequestAnswered, RpcSession
from rote.text import Act, Text
from rote.transport.base_client import (
    BaseClient,
    add_listener,
    make_unanswered_error,
    notify_listeners,
)
from rote.wire.services import rpc
from rote.wire.services.faults import Faults
from rote.wire.services.rpc import NO_STATUS
from rote.wire.webrtc import channel

TopicListener = Callable[[channel.ChannelMessage], None]
FaultListener = Callable[[Faults], None]

MAX_PARAMETER_LENGTH = 30_000
"""Maximum length of a request's parameter in characters; with all quotes escaped it still fits
64 KiB.
"""


class MessageTransport(Protocol):
    """Transports requests and answers; a new session follows each lost one."""

    @property
    def session(self) -> RpcSession:
        """The current session."""

    async def open(self, flush: Callable[[], None], topics: Iterable[str]) -> None:
        """Begin a new session and subscribe to `topics`.

        `flush` is called when the session has events, or messages to send.
        """

    def send(self) -> Iterable[tuple[int, RoteError]]:
        """Send the session's outgoing messages.

        Returns the tokens of requests that could not be sent, each with its error.
        """

    def find_problem(self, call: rpc.Call) -> RoteError | None:
        """Return why this call cannot be sent now; None if it can."""

    def make_open_error(self, url: str, waited_s: float) -> RoteError:
        """Return the error for a session that did not open in time."""

    async def close(self) -> None:
        """Close the transport. Safe to call twice."""


class CallService(Protocol):
    """Calls a service: `RpcConnection.call`, or `request` before a reconnect is complete."""

    async def __call__(
        self, call: rpc.Call, *, read: bool = False, verified: bool = False
    ) -> rpc.RpcResponse:
        """Send the call and return the response."""


async def _request_nothing() -> None:
    """The default of `on_connected`."""


class RpcConnection(BaseClient[rpc.RpcResponse]):
    """One client's connection to one robot's services."""

    arms_hold_within_s = 10

    def __init__(
        self,
        url: str,
        connection: MessageTransport,
        *,
        reconnect: bool = True,
        on_connected: Callable[[], Awaitable[None]] = _request_nothing,
        before_loss: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_connected` makes the first requests of every session. `before_loss` is called when
        the robot is lost, before the loss listeners.
        """
        super().__init__(url, reconnect=reconnect)
        self._on_connected, self._before_loss = on_connected, before_loss
        self._connection = connection
        self._fault_listeners: list[FaultListener] = []
        self._topics: dict[str, list[TopicListener]] = {}

    @property
    def session(self) -> RpcSession:
        """The current session."""
        return self._connection.session

    @property
    def failure(self) -> RoteError | None:
        """Why the robot is lost; None while it is connected."""
        return self._failure

    # ---- opening and closing --------------------------------------------------------------------

    async def open(self) -> None:
        """Connect; raises what went wrong, and at which stage."""
        try:
            await self._connect()
        except BaseException:
            await self.close()
            raise

    async def _connect(self) -> None:
        await self._connection.open(self.flush, self._topics)
        self.flush()
        await self._opened
        await self._on_connected()

    @property
    def _is_live(self) -> bool:
        return self.session.live

    async def _disconnect(self) -> None:
        await self._connection.close()

    async def close(self) -> None:
        """Close the connection. Safe to call twice."""
        await self._stop_reconnecting()
        self._fail(LinkError("the connection was closed", "Connect again."))
        self.session.close(self.now())
        self.flush()
        self._alarm.clear()
        await self._connection.close()

    # ---- requests and topics --------------------------------------------------------------------

    async def call(
        self, call: rpc.Call, *, read: bool = False, verified: bool = False
    ) -> rpc.RpcResponse:
        """Call a service and return its response; raises `RefusedError` if the service refuses.

        A response without a status is accepted if it contains the value to `read`, or if the caller
        verifies the result in another way (`verified`).
        """
        if self._failure is not None:
            raise self._failure
        return await self.request(call, read=read, verified=verified)

    async def request(
        self, call: rpc.Call, *, read: bool = False, verified: bool = False
    ) -> rpc.RpcResponse:
        """Like `call`, but allowed before a reconnected robot counts as ready."""
        if len(call.parameter) > MAX_PARAMETER_LENGTH:
            raise BadRequestError(
                f"the request has {len(call.parameter)} characters, and robots accept at most "
                f"{MAX_PARAMETER_LENGTH}",
                "Shorten the request: the name of an action may be too long.",
            )
        problem = self._connection.find_problem(call)
        if problem is not None:
            raise self._failure or problem
        token = self.session.request(call, self.now(), read=read)
        response = await self._wait_for_answer(token)
        if response.code == NO_STATUS:
            if verified or (read and response.text):
                return response
            raise NoAnswerError(
                "the robot answered without a status, so the result of the request is unknown",
                Text(
                    "Look at the robot and its state ({status}), then repeat the request.",
                    status=Act.STATUS,
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

        def unsubscribe() -> None:
            if listener in listeners:
                listeners.remove(listener)
            if listeners or self._topics.get(topic) is not listeners:
                return  # other listeners remain, or the topic was subscribed to again
            del self._topics[topic]
            if self.session.live:
                self.session.subscribe(topic, active=False)
                self.flush()

        return unsubscribe

    def on_faults(self, listener: FaultListener) -> Callable[[], None]:
        """Call `listener` with the faults that the robot reports. Return a function that removes
        it.
        """
        return add_listener(self._fault_listeners, listener)

    # ---- the loop around the session ------------------------------------------------------------

    def _tick(self) -> None:
        self.session.tick(self.now())
        self.flush()

    def _flush(self) -> None:
        self.flush()

    def flush(self) -> None:
        """Deliver events, send outgoing data, and set the timer."""
        # Handle the loss first, so that unanswered requests fail with its error.
        events = self.session.events()
        for event in sorted(events, key=lambda event: not isinstance(event, PeerLost)):
            self._handle_event(event)
        for token, error in self._connection.send():
            self._resolve_request(token, error)
        self._set_alarm(self.session.due)

    def _handle_event(self, event: Event) -> None:
        if isinstance(event, MessageReceived):
            self._handle_value(event.value)
        elif isinstance(event, RequestAnswered):
            self._resolve_request(event.token, event.response)
        elif isinstance(event, Unanswered):
            self._resolve_request(
                event.token, self._failure or make_unanswered_error(event.waited_s)
            )
        elif isinstance(event, Opened):
            self._mark_opened()
        elif isinstance(event, PeerLost):
            self._handle_loss(event.silence_s)

    def _handle_loss(self, silence_s: float) -> None:
        if not self._opened.done():
            self._opened.set_exception(self._connection.make_open_error(self.url, silence_s))
            return
        self._before_loss()
        self._fail(self._make_loss_error(silence_s))
        self._start_reconnecting()

    def _handle_value(self, value: channel.Value) -> None:
        """Pass faults and published messages to their listeners; ignore all other values."""
        if isinstance(value, Faults):
            notify_listeners(self._fault_listeners, value, self._loop)
        elif isinstance(value, channel.ChannelMessage):
            for listener in tuple(self._topics.get(value.topic, ())):
                self._notify_topic_listener(listener, value)

    def _notify_topic_listener(
        self, listener: TopicListener, message: channel.ChannelMessage
    ) -> None:
        """Call one listener; its exceptions go to the event loop's exception handler."""
        try:
            listener(message)
        except DecodeError:
            self.session.dropped["telemetry"] += 1
        except Exception as error:
            context = {"message": f"a listener to {message.topic} failed", "exception": error}
            self._loop.call_exception_handler(context)
