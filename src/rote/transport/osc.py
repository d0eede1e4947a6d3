"""OSC over UDP: receives messages from lighting and sound desks, and sends messages to them."""

import asyncio
import socket
from collections.abc import Callable
from typing import cast

from rote.errors import DecodeError, LinkError
from rote.transport.address import host_and_port
from rote.wire.osc import OscMessage, decode, encode

PORT = 53535


class OscPort(asyncio.DatagramProtocol):
    """One UDP socket for OSC, in both directions."""

    def __init__(self, listener: Callable[[OscMessage], None]) -> None:
        self._listener = listener
        self._transport: asyncio.DatagramTransport | None = None
        self._resolved: dict[str, tuple[str, int]] = {}

    @classmethod
    async def open(
        cls, listener: Callable[[OscMessage], None], host: str = "127.0.0.1", port: int = PORT
    ) -> "OscPort":
        """Pass received messages to `listener`. Raises `LinkError` if the port cannot be used."""
        loop = asyncio.get_running_loop()
        try:
            _, port_protocol = await loop.create_datagram_endpoint(
                lambda: cls(listener), local_addr=(host, port)
            )
        except OSError as error:
            raise LinkError(
                f"cannot listen for OSC at {host}:{port}: {error.strerror or error}",
                "Choose another port.",
            ) from None
        return port_protocol

    @property
    def address(self) -> tuple[str, int]:
        """The host and port on which it listens."""
        assert self._transport is not None
        host, port = self._transport.get_extra_info("sockname")[:2]
        return host, port

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; called by asyncio."""
        # In Python 3.11 asyncio's own transport for datagrams is not a `DatagramTransport`.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, _addr: object) -> None:
        """Pass the messages of a datagram to the listener; called by asyncio."""
        try:
            messages = decode(data)
        except DecodeError:
            return
        for message in messages:
            self._listener(message)

    async def resolve(self, to: str) -> None:
        """Resolve HOST:PORT, before the first `send` to it. Raises `LinkError` if it is unknown.

        Resolving may take seconds: in `send` it would block the event loop.
        """
        host, port = host_and_port(to)
        loop = asyncio.get_running_loop()
        try:
            (_, _, _, _, address), *_ = await loop.getaddrinfo(
                host, port, family=socket.AF_INET, type=socket.SOCK_DGRAM
            )
        except OSError as error:
            raise LinkError(
                f"OSC cannot be sent to {host}: {error.strerror or error}",
                "Give a numeric address, like 192.168.1.20:53000.",
            ) from None
        self._resolved[to] = str(address[0]), port

    def send(self, message: OscMessage, to: str) -> None:
        """Send a message to a resolved HOST:PORT. OSC does not guarantee delivery."""
        if self._transport is not None:
            self._transport.sendto(encode(message), self._resolved[to])

    def close(self) -> None:
        """Stop listening."""
        if self._transport is not None:
            self._transport.close()
