"""The connection to a robot's services over a data channel, on any carrier."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable

from rote.errors import BadRequestError, RoteError, StageTimeoutError
from rote.platform.clock import stall_clock
from rote.session.rpc import ChannelTiming, RpcSession
from rote.session.teaching import Role
from rote.transport.link import Carrier, Message
from rote.wire.services import rpc
from rote.wire.webrtc import channel

ConnectCarrier = Callable[[], Awaitable[Carrier]]
_VALIDATION = (
    "The channel is open, but the robot does not accept this client: its software may be too new "
    "for rote. Switch the robot off and on, and try again."
)
_LONGEST_ID = 2**62
"""An id with as many digits as any request's, to compute the length of a request."""


class ChannelConnection:
    """A connection to one robot by data channels, with a new channel for each session."""

    def __init__(
        self, connect_carrier: ConnectCarrier, timing: ChannelTiming | None = None
    ) -> None:
        self.session = RpcSession(Role.CLIENT, timing=timing)
        self._connect_carrier = connect_carrier
        self._timing = timing
        self._now = stall_clock(asyncio.get_running_loop())
        self._carrier: Carrier | None = None
        self._flush: Callable[[], None] = lambda: None

    async def open(self, flush: Callable[[], None], topics: Iterable[str]) -> None:
        """Open a carrier and begin a new session on it."""
        self._flush = flush
        carrier = await self._connect_carrier()
        self._carrier = carrier
        self.session = RpcSession(Role.CLIENT, timing=self._timing)
        self.session.open(self._now(), unix_s=time.time(), utc_offset_s=time.localtime().tm_gmtoff)
        for topic in topics:
            self.session.subscribe(topic)
        carrier.listen(self._receive, self._on_lost)

    def send(self) -> Iterable[tuple[int, RoteError]]:
        """Send the session's outgoing messages. A data channel reports no failures to return."""
        for message in self.session.outgoing():
            if self._carrier is not None:
                self._carrier.send(message)
        return ()

    def find_problem(self, call: rpc.Call) -> RoteError | None:
        """Return an error for a request longer than the robot accepts: it would never arrive."""
        max_bytes = self._carrier.max_message_bytes if self._carrier is not None else None
        if max_bytes is None:
            return None
        size = len(channel.encode(call.request(_LONGEST_ID)))
        if size <= max_bytes:
            return None
        return BadRequestError(
            f"the request has {size} bytes, and the robot accepts at most {max_bytes}",
            "Shorten the request: the name of an action may be too long.",
        )

    def make_open_error(self, url: str, waited_s: float) -> RoteError:
        """Return the error for an open channel on which the robot does not answer."""
        problem = f"no robot answered at {url} within {waited_s:.0f} s after its channel opened"
        return StageTimeoutError("validation", problem, _VALIDATION)

    async def close(self) -> None:
        """Close the carrier."""
        carrier, self._carrier = self._carrier, None
        if carrier is not None:
            await carrier.close()

    def _receive(self, message: Message) -> None:
        self.session.receive(message, self._now())
        self._flush()

    def _on_lost(self) -> None:
        """End the session; called when the carrier loses the robot."""
        self.session.lose(self._now())
        self._flush()
