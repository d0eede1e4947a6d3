"""Runs the web server: opens the port, and brings the arms to rest at the end."""

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

from rote.errors import LinkError, MissingExtraError, RoteError
from rote.platform.distribution import install_line
from rote.transport.link import check_host
from rote.web.access.certificate import TlsFiles
from rote.web.access.roles import PendantRole
from rote.web.access.security import Gate
from rote.web.server.app import create_app
from rote.web.server.http_connection import LimitedHttp
from rote.web.services.hub import Start

HANDSHAKE_S = 10.0
"""Timeout for the TLS handshake."""
_ELSEWHERE = ("192.0.2.1", 9)  # an address of documentation: nothing is sent there


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

        def connection() -> asyncio.Protocol:
            return LimitedHttp(config, self.server_state, self.lifespan.state, loop)

        limit_s = None if config.ssl is None else HANDSHAKE_S
        self.servers = [
            await loop.create_server(
                connection,
                sock=each,
                ssl=config.ssl,
                backlog=config.backlog,
                ssl_handshake_timeout=limit_s,
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
        listening = socket.create_server((host, port), family=family, backlog=128)
        # Accepted sockets inherit it: otherwise small messages wait for acknowledgements (Nagle).
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        number = error.errno or 0  # below 0: the resolver has its own numbers
        message = os.strerror(number).lower() if number > 0 else str(error.strerror)
        raise LinkError(
            f"{host}:{port} cannot be used: {message}",
            "Another program holds the port: choose another with --port."
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
    opened = listen(gate.host, port)
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
    task = asyncio.create_task(server.serve([opened]))
    listening = asyncio.create_task(server.listening.wait())
    try:
        await asyncio.wait({task, listening}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            raise server_ended_error(task)
        yield Serving(opened.getsockname()[1], task)
    finally:
        listening.cancel()
        # Requests that still wait for a robot are cancelled at the end: their tracebacks do
        # not help.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        server.should_exit = True
        await asyncio.wait({task})
        if server.started and task.exception() is not None:  # it died, and has ended nothing
            await server.shutdown(sockets=[opened])
        opened.close()


def server_ended_error(task: "asyncio.Task[None]") -> RoteError:
    """Return the error for a server that ended without a request."""
    error = task.exception()
    if isinstance(error, ImportError):
        return MissingExtraError("the web UI", "web")
    why = "it could not begin" if error is None else f"{type(error).__name__}: {error}"
    remedy = f"Its packages may be older than rote needs. Run: {install_line('web')}"
    return LinkError(f"the server has ended: {why}", "" if isinstance(error, OSError) else remedy)


def link(gate: Gate, port: int, role: PendantRole = PendantRole.TEACHER) -> str:
    """Return the address to open, with the token of a role if one is required."""
    if gate.proxy is not None:
        where = gate.proxy.origin
    else:
        host = own_host(gate.host)
        shown = f"[{host}]" if ":" in host else host
        where = f"{'https' if gate.tls else 'http'}://{shown}:{port}"
    return f"{where}/" + (f"?token={gate.tokens[role]}" if gate.tokens else "")


def own_host(host: str) -> str:
    """Return the address by which other computers reach a server at `host`."""
    everywhere = host in {"0.0.0.0", "::", ""}  # noqa: S104 # it is compared, not bound
    return _own_address() if everywhere else host


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


def _own_address() -> str:
    """Return the address by which others on the network can connect to this computer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(_ELSEWHERE)
        except OSError:
            return "127.0.0.1"
        return str(one.getsockname()[0])
