"""UDP sockets: a link to one robot, and a port that many clients talk to."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from urllib.parse import SplitResult

from rote.errors import BadRequestError, LinkError
from rote.transport.link import Link, Receiver, check_host, parse_url_options

DEFAULT_PORT = 49504
_MAX_WAITING, _MAX_DATAGRAM = 4096, 65_536
Address = tuple[str, int]


def host_and_port(text: str, default_port: int = DEFAULT_PORT) -> Address:
    """Parse `HOST`, `HOST:PORT` or `[IPV6]:PORT`."""
    try:
        parts = SplitResult("udp", text, "", "", "")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or (port is None and text.rstrip("]")[-1:] == ":"):
        raise BadRequestError(
            f"{text!r} is not a host and port", "Write HOST or HOST:PORT, like 127.0.0.1:49504."
        )
    return check_host(host), default_port if port is None else port


def _unwrap_error(error: OSError) -> OSError:
    """Return the system's own error: uvloop wraps it in one without a number."""
    return error.__cause__ if isinstance(error.__cause__, OSError) else error


def _system_error_text(error: OSError) -> str:
    """Return the system's own error text, without the event loop's prefix."""
    error = _unwrap_error(error)
    if error.errno is None or error.errno <= 0:  # the resolver has its own numbers
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
    """A duplicate of a link's socket for use in another thread; closing the link does not close
    it.
    """

    def __init__(self, used: socket.socket) -> None:
        self._socket = socket.fromfd(used.fileno(), used.family, used.type)

    def send(self, datagram: bytes) -> None:
        """Send one datagram at once; it may get lost."""
        try:
            self._socket.send(datagram)
        except OSError:
            return

    def __del__(self) -> None:
        self._socket.close()


class UdpLink:
    """A link to one robot."""

    def __init__(self, transport: asyncio.DatagramTransport) -> None:
        self._transport = transport

    def send(self, datagram: bytes) -> None:
        """Send one datagram."""
        if not self._transport.is_closing():
            self._transport.sendto(datagram)

    def thread_socket(self) -> ThreadSocket:
        """Return an object that can send from another thread."""
        return ThreadSocket(self._transport.get_extra_info("socket"))

    def close(self) -> None:
        """Close the socket."""
        self._transport.close()


def read_url(parts: SplitResult) -> Address:
    """Parse `udp://host[:49504][?build=NAME]`; return where the robot is."""
    query, _ = parse_url_options(parts.query)
    if parts.path.strip("/") or query:
        raise BadRequestError(
            f"{parts.geturl()!r} has more than a host, a port and a build",
            "Write udp://HOST[:PORT]; ?build=NAME may follow.",
        )
    return host_and_port(parts.netloc)


async def open_link(parts: SplitResult, receive: Receiver) -> Link:
    """Open a socket connected to the robot at `udp://host[:49504][?build=NAME]`."""
    address = read_url(parts)
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _ClientProtocol(receive), remote_addr=address
        )
    except OSError as error:
        raise LinkError(
            f"{address[0]!r} cannot be reached: {_system_error_text(error)}",
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
    """A bound port that answers many clients."""

    def __init__(self, transport: asyncio.DatagramTransport) -> None:
        self._transport = transport
        host, port, *_ = transport.get_extra_info("sockname")
        self.address: Address = (host, port)
        self._second: socket.socket | None = None

    def send(self, datagram: bytes, address: Address) -> None:
        """Send one datagram to one client."""
        if not self._transport.is_closing():
            self._transport.sendto(datagram, address)

    def read_waiting(self) -> list[tuple[bytes, Address]]:
        """Return the datagrams that wait in the socket, the oldest first.

        The event loop reads one at a time: a server that was stalled would process old ones first.
        """
        if self._second is None:
            used = self._transport.get_extra_info("socket")
            self._second = socket.fromfd(used.fileno(), used.family, used.type)
            self._second.setblocking(False)
        waiting: list[tuple[bytes, Address]] = []
        while len(waiting) < _MAX_WAITING:
            try:
                waiting.append(self._second.recvfrom(_MAX_DATAGRAM))
            except OSError:  # nothing more, or a client is gone
                break
        return waiting

    def close(self) -> None:
        """Close the socket."""
        self._transport.close()
        if self._second is not None:
            self._second.close()


async def open_port(host: str, port: int, receive: Callable[[bytes, Address], None]) -> UdpPort:
    """Bind a port; with 0 the system chooses one. Raises `LinkError` if that fails."""
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _ServerProtocol(receive), local_addr=(host, port)
        )
    except OSError as error:
        raise LinkError(
            f"{host}:{port} cannot be used: {_system_error_text(error)}",
            "Another program holds the port: choose another one."
            if _unwrap_error(error).errno == errno.EADDRINUSE
            else "Use an address of this computer, like 127.0.0.1, or 0.0.0.0 for all.",
        ) from error
    return UdpPort(transport)
