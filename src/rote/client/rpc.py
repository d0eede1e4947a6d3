"""The asyncio shell of a client's conversation with a robot's services, over any message carrier.

A robot that falls silent is reported at once: what waits for an answer fails, and so does what is
asked meanwhile. Then the shell connects anew by itself, more and more patiently, and asks again for
the topics that were wanted. Nothing is kept back to be sent later: what would move a robot is asked
by a person who knows that it is there.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from rote.carrier import Carrier, Message
from rote.client.client_base import Shell, unanswered
from rote.errors import (
    BadRequestError,
    DecodeError,
    LinkError,
    RefusedError,
    RoteError,
    StageTimeoutError,
)
from rote.session.events import Opened, PeerLost, Unanswered
from rote.session.rpc import Answered, Event, Heard, RpcSession, Timing
from rote.session.teaching import Role
from rote.wire import channel, rpc

TopicListener = Callable[[channel.Message], None]

BACK_OFF_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""How long to wait before each attempt to connect anew; the last is repeated."""
MOST_ASKED = 30_000
"""Characters of a request's parameter: with all its quotes escaped, 64 KiB still hold it."""
_VALIDATION = (
    "The channel is open and the robot does not let us in: its software may be newer than rote "
    "knows. Switch the robot off and on, and try again."
)


Dial = Callable[[], Awaitable[Carrier]]


class RpcPort(Shell[rpc.Response]):
    """One client's conversation with one robot's services."""

    arms_hold_within_s = 10

    def __init__(
        self, url: str, dial: Dial, timing: Timing | None = None, *, reconnect: bool = True
    ) -> None:
        super().__init__(url)
        self.reconnects = 0
        """How often it has connected anew."""
        self._dial = dial
        self._timing = timing
        self._reconnect = reconnect
        self.session = RpcSession(Role.CLIENT, timing=timing)
        self._carrier: Carrier | None = None
        self._closed = False
        self._again: asyncio.Task[None] | None = None
        self._topics: dict[str, list[TopicListener]] = {}

    # ---- opening, losing, opening again ---------------------------------------------------------

    async def open(self) -> None:
        """Open the carrier and the conversation; raises what went wrong, and at which stage."""
        try:
            await self._connect()
        except BaseException:
            await self.close()
            raise

    async def _connect(self) -> None:
        carrier = await self._dial()
        self._carrier = carrier
        self.session = RpcSession(Role.CLIENT, timing=self._timing)
        self.session.open(
            self._loop.time(), unix_s=time.time(), utc_offset_s=time.localtime().tm_gmtoff
        )
        for topic in self._topics:
            self.session.subscribe(topic)
        carrier.listen(self._receive, self._gone)
        self._flush()
        await self._opened
        await self._greet()

    async def _greet(self) -> None:
        """Say and ask what every new conversation needs."""

    async def _connect_again(self) -> None:
        for pause_s in itertools.chain(BACK_OFF_S, itertools.repeat(BACK_OFF_S[-1])):
            try:
                await self._let_go()
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
        self._flush()
        self._alarm.clear()
        await self._let_go()

    async def _let_go(self) -> None:
        carrier, self._carrier = self._carrier, None
        if carrier is not None:
            await carrier.close()

    # ---- asking and listening -------------------------------------------------------------------

    async def call(self, call: rpc.Call, *, read: bool = False) -> rpc.Response:
        """Ask a service; its refusal is raised with words and remedy."""
        if self._failure is not None:
            raise self._failure
        return await self._request(call, read=read)

    async def _request(self, call: rpc.Call, *, read: bool = False) -> rpc.Response:
        if len(call.parameter) > MOST_ASKED:
            seen = f"a request of {len(call.parameter)} characters; robots take {MOST_ASKED}"
            raise BadRequestError(seen, "Say it in fewer: is the name of an action so long?")
        token = self.session.request(call, self._loop.time(), read=read)
        response = await self._answer_to(token)
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
            self._flush()
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
                self._flush()

        return forget

    # ---- the loop around the session ------------------------------------------------------------

    def _receive(self, message: Message) -> None:
        self.session.receive(message, self._loop.time())
        self._flush()

    def _gone(self) -> None:
        """The carrier says that there is no way to the robot any more."""
        self.session.lose(self._loop.time())
        self._flush()

    def _tick(self) -> None:
        self.session.tick(self._loop.time())
        self._flush()

    def _flush(self) -> None:
        # A loss first, so that what it leaves unanswered fails by it.
        for event in sorted(self.session.events(), key=lambda e: not isinstance(e, PeerLost)):
            self._handle(event)
        self._send()
        self._alarm.set(self.session.due)

    def _send(self) -> None:
        """Send what the session has to say, where there is a way."""
        for message in self.session.outgoing():
            if self._carrier is not None:
                self._carrier.send(message)

    def _handle(self, event: Event) -> None:
        if isinstance(event, Heard):
            self._hear(event.value)
        elif isinstance(event, Answered):
            self._answer(event.token, event.response)
        elif isinstance(event, Unanswered):
            self._answer(event.token, self._failure or unanswered(event.waited_s))
        elif isinstance(event, Opened):
            self._has_opened()
        elif isinstance(event, PeerLost):
            self._lose(event.silence_s)

    def _lose(self, silence_s: float) -> None:
        if not self._opened.done():
            seen = (
                f"no robot answered at {self.url} within {silence_s:.0f} s of its channel's opening"
            )
            self._opened.set_exception(StageTimeoutError("validation", seen, _VALIDATION))
            return
        self._fail(self._lost(silence_s))
        at_it = self._again is not None and not self._again.done()
        if self._reconnect and not self._closed and not at_it:
            self._again = self._loop.create_task(self._connect_again(), name="rote reconnect")

    def _hear(self, value: channel.Value) -> None:
        if isinstance(value, channel.Message):
            for listener in tuple(self._topics.get(value.topic, ())):
                self._tell(listener, value)

    def _tell(self, listener: TopicListener, message: channel.Message) -> None:
        """Tell one listener; its mistakes are its own, and reported as the loop reports them."""
        try:
            listener(message)
        except DecodeError:
            self.session.dropped["telemetry"] += 1
        except Exception as error:
            seen = f"a listener to {message.topic} failed"
            self._loop.call_exception_handler({"message": seen, "exception": error})
