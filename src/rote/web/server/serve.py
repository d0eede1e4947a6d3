"""Runs the web server: opens the port, and shuts down when its block ends."""

import asyncio
import contextlib
import errno
import io
import logging
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from rote.errors import LinkError, MissingExtraError, RoteError
from rote.platform.distribution import install_line
from rote.transport.address import check_host
from rote.web.access.certificate import TlsFiles
from rote.web.access.roles import PendantRole
from rote.web.access.security import Gate
from rote.web.server.app import create_app
from rote.web.services.hub import Start

# ---- limits of a connection ----------------------------------------------------------------------

HEADER_S = 10.0
"""Timeout for the head of a request, from the connection or its first byte."""
MAX_HALF_OPEN = 16
"""Maximum connections of one address without a complete request; then the oldest is closed."""
MAX_CONNECTIONS = 512


class LimitedHttp(H11Protocol):
    """An HTTP connection of uvicorn that is closed if its request does not arrive in time.

    If there are too many connections, the oldest without a request is closed, because browsers send
    a request at once.
    """

    _deadline: asyncio.TimerHandle | None = None
    _got_request = False
    """Whether the connection has ever received the complete head of a request."""
    _connected_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection; close the oldest idle one if there are too many."""
        super().connection_made(transport)
        self._connected_s = self.loop.time()
        self._start_deadline()
        self._close_oldest_if_too_many()

    def data_received(self, data: bytes) -> None:
        """Process received bytes; the deadline ends with a complete head."""
        if self._deadline is None and self.is_idle:
            self._start_deadline()
        super().data_received(data)
        if not self.is_idle:
            self._got_request = True
            self._cancel_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline of a closed connection."""
        self._cancel_deadline()
        super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered; False after an upgrade to a WebSocket."""
        if self.transport.get_protocol() is not self:
            return False
        return self.cycle is None or self.cycle.response_complete

    @property
    def is_half_open(self) -> bool:
        """Whether the first request, or a next one that has begun, is incomplete."""
        return self.is_idle and (not self._got_request or self._deadline is not None)

    def _start_deadline(self) -> None:
        self._deadline = self.loop.call_later(HEADER_S, self._close_if_idle)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close_if_idle(self) -> None:
        self._cancel_deadline()
        if self.is_idle and not self.transport.is_closing():
            self.transport.abort()

    def _close_oldest_if_too_many(self) -> None:
        """Close a connection if this one's address, or the server, has too many."""
        others = [
            each
            for each in self.connections
            if isinstance(each, LimitedHttp) and not each.transport.is_closing()
        ]
        host = None if self.client is None else self.client[0]
        half_open = [
            each
            for each in others
            if each.is_half_open and each.client is not None and each.client[0] == host
        ]
        if len(half_open) > MAX_HALF_OPEN:
            _find_oldest(half_open).transport.abort()
        elif len(self.connections) > MAX_CONNECTIONS:
            _find_oldest([each for each in others if each.is_idle]).transport.abort()


def _find_oldest(connections: list[LimitedHttp]) -> LimitedHttp:
    return min(connections, key=lambda each: each._connected_s)


# ---- the server ----------------------------------------------------------------------------------


HANDSHAKE_S = 10.0
"""Timeout for the TLS handshake."""
_OTHER_HOST = ("192.0.2.1", 9)  # an address for documentation: nothing is sent there


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller, and reports when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen as uvicorn does, with a timeout for the TLS handshake."""
        assert sockets is not None
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            self.should_exit = True
            return
        loop, config = asyncio.get_running_loop(), self.config

        def make_connection() -> asyncio.Protocol:
            return LimitedHttp(config, self.server_state, self.lifespan.state, loop)

        handshake_s = None if config.ssl is None else HANDSHAKE_S
        self.servers = [
            await loop.create_server(
                make_connection,
                sock=each,
                ssl=config.ssl,
                backlog=config.backlog,
                ssl_handshake_timeout=handshake_s,
            )
            for each in sockets
        ]
        self.started = True
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield


def listen(host: str, port: int) -> socket.socket:
    """Bind a port; with 0 the system chooses one."""
    check_host(host)
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        server_socket = socket.create_server((host, port), family=family, backlog=128)
        # Accepted sockets inherit it: otherwise small messages wait for acknowledgements (Nagle).
        server_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return server_socket
    except OSError as error:
        # Errors of the name resolver have negative numbers, which `strerror` does not know.
        number = error.errno or 0
        message = os.strerror(number).lower() if number > 0 else str(error.strerror)
        raise LinkError(
            f"{host}:{port} cannot be used: {message}",
            "Another program uses this port. Choose a different one with --port."
            if number == errno.EADDRINUSE
            else "Use an address of this computer, like 127.0.0.1, or 0.0.0.0 for all.",
        ) from error


class Serving(NamedTuple):
    """A running server."""

    port: int
    task: "asyncio.Task[None]"
    """Ends when the server does."""


@asynccontextmanager
async def serving(
    start: Start, gate: Gate, port: int, tls: TlsFiles | None = None
) -> AsyncIterator[Serving]:
    """Run the server in the block; with `tls`, by HTTPS."""
    server_socket = listen(gate.host, port)
    config = uvicorn.Config(
        create_app(start, gate),
        log_level="warning",
        access_log=False,
        server_header=False,
        http=LimitedHttp,
        proxy_headers=False,  # only the gate evaluates them, for a trusted proxy
        ssl_certfile=None if tls is None else tls.certificate,
        ssl_keyfile=None if tls is None else tls.key,
        ws="websockets-sansio",
        ws_max_size=4096,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=30,
    )
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # the HTTP answer has the details
    server = _Server(config)
    task = asyncio.create_task(server.serve([server_socket]))
    listening = asyncio.create_task(server.listening.wait())
    try:
        await asyncio.wait({task, listening}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            raise server_ended_error(task)
        yield Serving(server_socket.getsockname()[1], task)
    finally:
        listening.cancel()
        # Requests that still wait for a robot are cancelled at the end: their tracebacks do
        # not help.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        server.should_exit = True
        await asyncio.wait({task})
        if server.started and task.exception() is not None:  # it failed without a shutdown
            await server.shutdown(sockets=[server_socket])
        server_socket.close()


def server_ended_error(task: "asyncio.Task[None]") -> RoteError:
    """Return the error for a server that ended by itself."""
    error = task.exception()
    if isinstance(error, ImportError):
        return MissingExtraError("the web UI", "web")
    reason = "it could not start" if error is None else f"{type(error).__name__}: {error}"
    remedy = f"Its packages may be older than rote needs. Run: {install_line('web')}"
    return LinkError(
        f"the server has ended: {reason}", "" if isinstance(error, OSError) else remedy
    )


def link(gate: Gate, port: int, role: PendantRole = PendantRole.TEACHER) -> str:
    """Return the address to open, with the token of a role if one is required."""
    if gate.proxy is not None:
        origin = gate.proxy.origin
    else:
        host = own_host(gate.host)
        url_host = f"[{host}]" if ":" in host else host
        origin = f"{'https' if gate.tls else 'http'}://{url_host}:{port}"
    return f"{origin}/" + (f"?token={gate.tokens[role]}" if gate.tokens else "")


def own_host(host: str) -> str:
    """Return the address by which other computers reach a server at `host`."""
    listens_everywhere = host in {"0.0.0.0", "::", ""}  # noqa: S104 # it is compared, not bound
    return _find_own_address() if listens_everywhere else host


def qr_code(text: str) -> str:
    """Return a text as a QR code for a terminal; empty if the package for it is missing."""
    try:
        import qrcode  # type: ignore[import-untyped] # noqa: PLC0415 - loopback needs none
    except ImportError:
        return ""
    code = qrcode.QRCode(border=2)
    code.add_data(text)
    drawn = io.StringIO()
    code.print_ascii(out=drawn, invert=True)
    return drawn.getvalue()


def _find_own_address() -> str:
    """Return the address of the network interface that other computers reach this one by."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_OTHER_HOST)
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
