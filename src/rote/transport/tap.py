"""A tap on one connection: every message as it goes over the wire, and when each stage began.

A tap passes messages to its listeners, and can hold back outgoing ones: a trial uses that to find
out how a robot behaves without keep-alives. It changes nothing else.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from rote.transport.base_client import add_listener
from rote.transport.link import Carrier, Link, Message, Receiver


class TappedMessage(NamedTuple):
    """One message, as it was sent or received."""

    at_s: float
    """By the clock of the event loop."""
    sent: bool
    topic: str
    """On DDS the topic, otherwise empty."""
    data: Message


class TapStage(NamedTuple):
    """A stage of connecting, and when it began."""

    name: str
    at_s: float


TapListener = Callable[[TappedMessage], None]


class Tap:
    """Observes one connection."""

    def __init__(self) -> None:
        self.stages: list[TapStage] = []
        self.signalling = ""
        """Which variant of WebRTC's signalling the robot uses; empty on other wires."""
        self.max_message_bytes: int | None = None
        """Maximum message size that the robot announces, in bytes."""
        self.client: object = None
        """The client, once the robot is connected."""
        self.hold_back: Callable[[Message], bool] = lambda _: False
        """Whether to hold back an outgoing message."""
        self._listeners: list[TapListener] = []
        self._loop = asyncio.get_running_loop()

    def on_message(self, listener: TapListener) -> Callable[[], None]:
        """Call `listener` with every message. Return a function that removes it."""
        return add_listener(self._listeners, listener)

    def begin_stage(self, name: str) -> None:
        """Note that a stage of connecting begins now."""
        self.stages.append(TapStage(name, self._loop.time()))

    def note_received(self, data: Message, topic: str = "") -> None:
        """Pass a message from the robot to the listeners."""
        self._notify_listeners(TappedMessage(self._loop.time(), False, topic, data))

    def note_sending(self, data: Message, topic: str = "") -> bool:
        """Pass an outgoing message to the listeners; return False if it is to be held back."""
        if self.hold_back(data):
            return False
        self._notify_listeners(TappedMessage(self._loop.time(), True, topic, data))
        return True

    def _notify_listeners(self, message: TappedMessage) -> None:
        for listener in tuple(self._listeners):
            listener(message)

    # ---- tapped links and carriers --------------------------------------------------------------

    def tap_link(
        self, connect: Callable[[Receiver], Awaitable[Link]]
    ) -> Callable[[Receiver], Awaitable[Link]]:
        """Return a function that opens a link by `connect` and taps it."""

        async def connect_tapped(receive: Receiver) -> Link:
            self.begin_stage("socket")

            def on_datagram(datagram: bytes) -> None:
                self.note_received(datagram)
                receive(datagram)

            link = await connect(on_datagram)
            self.begin_stage("session")
            return _TappedLink(link, self)

        return connect_tapped

    def tap_carrier(
        self, connect: Callable[[], Awaitable[Carrier]]
    ) -> Callable[[], Awaitable[Carrier]]:
        """Return a function that opens a carrier by `connect` and taps it."""

        async def connect_tapped() -> Carrier:
            carrier = await connect()
            self.max_message_bytes = carrier.max_message_bytes
            self.begin_stage("validation")
            return _TappedCarrier(carrier, self)

        return connect_tapped


class _TappedLink:
    """A link whose datagrams go through a tap."""

    def __init__(self, link: Link, tap: Tap) -> None:
        self._link, self._tap = link, tap
        self.close = link.close

    def send(self, datagram: bytes) -> None:
        if self._tap.note_sending(datagram):
            self._link.send(datagram)


class _TappedCarrier(Carrier):
    """A carrier whose messages go through a tap."""

    def __init__(self, carrier: Carrier, tap: Tap) -> None:
        self._carrier, self._tap = carrier, tap
        self.max_message_bytes = carrier.max_message_bytes

    def listen(self, receive: Callable[[Message], None], lost: Callable[[], None]) -> None:
        def on_message(message: Message) -> None:
            self._tap.note_received(message)
            receive(message)

        self._carrier.listen(on_message, lost)

    def send(self, message: Message) -> None:
        if self._tap.note_sending(message):
            self._carrier.send(message)

    async def close(self) -> None:
        await self._carrier.close()
