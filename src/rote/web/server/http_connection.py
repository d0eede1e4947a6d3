"""One HTTP connection: how long a request may take to arrive, and how many may be half open."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_S = 10.0
"""Timeout for the head of a request, from the connection or its first byte."""
MAX_HALF_OPEN = 16
"""Maximum connections of one address without a complete request; then the oldest is closed."""
MAX_CONNECTIONS = 512


class LimitedHttp(H11Protocol):
    """A connection of uvicorn's that is closed if its request does not arrive in time.

    If there are too many, the oldest without a request is closed: real clients send one at once.
    """

    _deadline: asyncio.TimerHandle | None = None
    _asked = False
    """Whether a whole head has ever arrived."""
    _since_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection; close the oldest idle one if there are too many."""
        super().connection_made(transport)
        self._since_s = self.loop.time()
        self._await_head()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        if self._deadline is None and self.at_rest:
            self._await_head()
        super().data_received(data)
        if not self.at_rest:
            self._asked = True
            self._forget_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._forget_head()
        super().connection_lost(exc)

    @property
    def at_rest(self) -> bool:
        """Whether no request is being answered here; a WebSocket is no matter of ours."""
        if self.transport.get_protocol() is not self:
            return False
        return self.cycle is None or self.cycle.response_complete

    @property
    def half_open(self) -> bool:
        """Whether no whole request has come yet, or only a part of the next one."""
        return self.at_rest and (not self._asked or self._deadline is not None)

    def _await_head(self) -> None:
        self._deadline = self.loop.call_later(HEADER_S, self._give_up)

    def _forget_head(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._forget_head()
        if self.at_rest and not self.transport.is_closing():
            self.transport.abort()

    def _make_room(self) -> None:
        others = [
            each
            for each in self.connections
            if isinstance(each, LimitedHttp) and not each.transport.is_closing()
        ]
        host = None if self.client is None else self.client[0]
        neighbours = [
            each
            for each in others
            if each.half_open and each.client is not None and each.client[0] == host
        ]
        if len(neighbours) > MAX_HALF_OPEN:
            _oldest(neighbours).transport.abort()
        elif len(self.connections) > MAX_CONNECTIONS:
            _oldest([each for each in others if each.at_rest]).transport.abort()


def _oldest(connections: list[LimitedHttp]) -> LimitedHttp:
    return min(connections, key=lambda each: each._since_s)
