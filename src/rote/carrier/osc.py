"""OSC over UDP: messages of lighting and sound desks come in, and ours go out."""

import asyncio
from collections.abc import Callable
from typing import cast

from rote.carrier.udp import host_and_port
from rote.errors import DecodeError, LinkError
from rote.wire.osc import OscMessage, decode, encode

PORT = 53535


class OscPort(asyncio.DatagramProtocol):
    """One UDP socket for OSC, in both directions."""

    def __init__(self, listener: Callable[[OscMessage], None]) -> None:
        self._listener = listener
        self._transport: asyncio.DatagramTransport | None = None
        self.not_understood = 0

    @classmethod
    async def open(
        cls, listener: Callable[[OscMessage], None], host: str = "127.0.0.1", port: int = PORT
    ) -> "OscPort":
        """Listen. Raises `LinkError` if the port cannot be had."""
        loop = asyncio.get_running_loop()
        try:
            _, made = await loop.create_datagram_endpoint(
                lambda: cls(listener), local_addr=(host, port)
            )
        except OSError as error:
            raise LinkError(
                f"OSC cannot be heard at {host}:{port}: {error.strerror or error}",
                "Choose another port.",
            ) from None
        return made

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        assert self._transport is not None
        host, port = self._transport.get_extra_info("sockname")[:2]
        return host, port

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        # In Python 3.11 asyncio's own transport for datagrams is no `DatagramTransport`.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, _addr: object) -> None:
        """Called by asyncio."""
        try:
            messages = decode(data)
        except DecodeError:
            self.not_understood += 1
            return
        for message in messages:
            self._listener(message)

    def send(self, message: OscMessage, to: str) -> None:
        """Send a message to HOST:PORT; it may get lost, as OSC does."""
        if self._transport is not None:
            self._transport.sendto(encode(message), host_and_port(to))

    def close(self) -> None:
        """Stop listening."""
        if self._transport is not None:
            self._transport.close()
