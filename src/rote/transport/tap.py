"""A tap on one connection: every message as it goes over the wire, and when each stage began.

It listens, and can hold back what this end would send: that is how a trial finds out what a robot
does without keep-alives. It changes nothing else.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from rote.transport.link import Carrier, Link, Message, Receiver


class TappedMessage(NamedTuple):
    """One message, as it was sent or heard."""

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
    """What listens to one connection."""

    def __init__(self) -> None:
        self.stages: list[TapStage] = []
        self.signalling = ""
        """Which variant of WebRTC's signalling the robot uses; empty on other wires."""
        self.most_bytes: int | None = None
        """The longest message that the robot says it accepts."""
        self.client: object = None
        """What carries the conversation, once the robot is connected."""
        self.hold_back: Callable[[Message], bool] = _nothing_back
        """Whether a message of ours is not sent."""
        self._listeners: list[TapListener] = []
        self._loop = asyncio.get_running_loop()

    def on_message(self, listener: TapListener) -> Callable[[], None]:
        """Call `listener` with every message. Return a function that removes it."""
        self._listeners.append(listener)

        def forget() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return forget

    def stage(self, name: str) -> None:
        """Note that a stage of connecting begins."""
        self.stages.append(TapStage(name, self._loop.time()))

    def heard(self, data: Message, topic: str = "") -> None:
        """Note a message of the robot."""
        self._tell(TappedMessage(self._loop.time(), False, topic, data))

    def sending(self, data: Message, topic: str = "") -> bool:
        """Note a message of ours; return False if it is not to be sent."""
        if self.hold_back(data):
            return False
        self._tell(TappedMessage(self._loop.time(), True, topic, data))
        return True

    def _tell(self, message: TappedMessage) -> None:
        for listener in tuple(self._listeners):
            listener(message)

    # ---- the ends that are tapped ---------------------------------------------------------------

    def link(
        self, dial: Callable[[Receiver], Awaitable[Link]]
    ) -> Callable[[Receiver], Awaitable[Link]]:
        """Return a dial whose links are tapped."""

        async def tapped(receive: Receiver) -> Link:
            self.stage("socket")

            def heard(datagram: bytes) -> None:
                self.heard(datagram)
                receive(datagram)

            link = await dial(heard)
            self.stage("session")
            return _TappedLink(link, self)

        return tapped

    def carrier(self, dial: Callable[[], Awaitable[Carrier]]) -> Callable[[], Awaitable[Carrier]]:
        """Return a dial whose carriers are tapped."""

        async def tapped() -> Carrier:
            carrier = await dial()
            self.most_bytes = carrier.most_bytes
            self.stage("validation")
            return _TappedCarrier(carrier, self)

        return tapped


def _nothing_back(_: Message) -> bool:
    return False


class _TappedLink:
    """A link whose datagrams are noted."""

    def __init__(self, link: Link, tap: Tap) -> None:
        self._link, self._tap = link, tap
        self.close = link.close

    def send(self, datagram: bytes) -> None:
        if self._tap.sending(datagram):
            self._link.send(datagram)


class _TappedCarrier(Carrier):
    """A carrier whose messages are noted."""

    def __init__(self, carrier: Carrier, tap: Tap) -> None:
        self._carrier, self._tap = carrier, tap
        self.most_bytes = carrier.most_bytes

    def listen(self, receive: Callable[[Message], None], lost: Callable[[], None]) -> None:
        def heard(message: Message) -> None:
            self._tap.heard(message)
            receive(message)

        self._carrier.listen(heard, lost)

    def send(self, message: Message) -> None:
        if self._tap.sending(message):
            self._carrier.send(message)

    async def close(self) -> None:
        await self._carrier.close()
