"""UDP sockets: a link to one robot, and a port that many clients talk to."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult

from rote.errors import BadRequestError, LinkError
from rote.transport.address import Address, host_and_port
from rote.transport.link import Link, Receiver, parse_url_options

_MAX_WAITING_DATAGRAMS, _MAX_DATAGRAM_BYTES = 4096, 65_536


def _unwrap_error(error: OSError) -> OSError:
    """Return the system's own error: uvloop wraps it in one without a number."""
    return error.__cause__ if isinstance(error.__cause__, OSError) else error


def _describe_error(error: OSError) -> str:
    """Return the operating system's text for an error, without the event loop's prefix."""
    error = _unwrap_error(error)
    if error.errno is None or error.errno <= 0:  # a number of the resolver, not of the system
        return str(error.strerror or error)
    return os.strerror(error.errno).lower()


class _ClientProtocol(asyncio.DatagramProtocol):
    """One connected socket: the kernel drops what comes from any other address."""

    def __init__(self, receive: Receiver) -> None:
        self._receive = receive

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._receive(data)

    def error_received(self, exc: Exception) -> None:
        """Ignore errors of a closed port: the session repeats its request and times out."""


class ThreadSocket:
    """A duplicate of a link's socket for another thread; it stays open when the link is closed."""

    def __init__(self, original: socket.socket) -> None:
        self._socket = socket.fromfd(original.fileno(), original.family, original.type)

    def send(self, datagram: bytes) -> None:
        """Send one datagram at once; it may get lost."""
        with suppress(OSError):
            self._socket.send(datagram)

    def __del__(self) -> None:
        self._socket.close()


class UdpLink:
    """A link to one robot by a UDP socket."""

    def __init__(self, transport: asyncio.DatagramTransport) -> None:
        self._transport = transport

    def send(self, datagram: bytes) -> None:
        """Send one datagram."""
        if not self._transport.is_closing():
            self._transport.sendto(datagram)

    def thread_socket(self) -> ThreadSocket:
        """Return a duplicate of the socket, for sending from another thread."""
        return ThreadSocket(self.socket)

    @property
    def socket(self) -> Any:
        """The transport's socket, only for its addresses and options: asyncio sends through it."""
        return self._transport.get_extra_info("socket")

    def close(self) -> None:
        """Close the socket."""
        self._transport.close()


def read_url(parts: SplitResult) -> Address:
    """Return the host and port in `udp://HOST[:49504][?build=NAME]`."""
    query, _ = parse_url_options(parts.query)
    if parts.path.strip("/") or query:
        raise BadRequestError(
            f"{parts.geturl()!r} has parts other than a host, a port and a build",
            "Write udp://HOST[:PORT]; ?build=NAME may follow.",
        )
    return host_and_port(parts.netloc)


async def open_link(parts: SplitResult, receive: Receiver) -> Link:
    """Open a socket connected to the robot at `udp://HOST[:49504][?build=NAME]`."""
    address = read_url(parts)
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _ClientProtocol(receive), remote_addr=address
        )
    except OSError as error:
        raise LinkError(
            f"{address[0]!r} cannot be reached: {_describe_error(error)}",
            "Check the address, and that this computer is on the robot's network.",
        ) from error
    return UdpLink(transport)


class _ServerProtocol(asyncio.DatagramProtocol):
    def __init__(self, receive: Callable[[bytes, Address], None]) -> None:
        self._receive = receive

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self._receive(data, addr)

    def error_received(self, exc: Exception) -> None:
        """Ignore errors of a client that is gone: its session times out."""


class UdpPort:
    """A UDP port that many clients send to, and that answers them."""

    def __init__(self, transport: asyncio.DatagramTransport) -> None:
        self._transport = transport
        host, port, *_ = transport.get_extra_info("sockname")
        self.address: Address = (host, port)
        self._polled_socket: socket.socket | None = None

    def send(self, datagram: bytes, address: Address) -> None:
        """Send one datagram to one client."""
        if not self._transport.is_closing():
            self._transport.sendto(datagram, address)

    def read_waiting(self) -> list[tuple[bytes, Address]]:
        """Return all datagrams that wait in the socket, the oldest first.

        The event loop reads only one at a time. A server that was stalled needs all of them to
        find the newest.
        """
        if self._polled_socket is None:
            original = self._transport.get_extra_info("socket")
            self._polled_socket = socket.fromfd(original.fileno(), original.family, original.type)
            self._polled_socket.setblocking(False)
        waiting: list[tuple[bytes, Address]] = []
        while len(waiting) < _MAX_WAITING_DATAGRAMS:
            try:
                waiting.append(self._polled_socket.recvfrom(_MAX_DATAGRAM_BYTES))
            except OSError:  # nothing more, or a client is gone
                break
        return waiting

    def close(self) -> None:
        """Close the socket."""
        self._transport.close()
        if self._polled_socket is not None:
            self._polled_socket.close()


async def open_port(host: str, port: int, receive: Callable[[bytes, Address], None]) -> UdpPort:
    """Bind a port; with 0 the system chooses one. Raises `LinkError` if that fails.

    `receive` is called with each datagram and its sender.
    """
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _ServerProtocol(receive), local_addr=(host, port)
        )
    except OSError as error:
        raise LinkError(
            f"{host}:{port} cannot be used: {_describe_error(error)}",
            "Another program uses the port: choose another port."
            if _unwrap_error(error).errno == errno.EADDRINUSE
            else "Use an address of this computer, like 127.0.0.1, or 0.0.0.0 for all.",
        ) from error
    return UdpPort(transport)
