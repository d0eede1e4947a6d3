"""A WebSocket server of its own for Foxglove, on this computer alone."""

import asyncio
import errno
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.asyncio.server import ServerConnection, broadcast
from websockets.asyncio.server import serve as websocket_server
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from rote.bridge.foxglove import SUBPROTOCOLS, FoxgloveFeed
from rote.errors import LinkError

HOST = "127.0.0.1"
_FROM = ("app.foxglove.dev", "localhost", "127.0.0.1", "::1")
"""Pages that may look: Foxglove's own, and those of this computer. Programs send no origin."""
_MAX_HEARD = 2**16
_MAX_WRITTEN = 2**18
_TOGETHER_S = 0.008
"""What comes within so long is sent together, which costs less than sending it one by one."""


@asynccontextmanager
async def serving(feed: FoxgloveFeed, port: int) -> AsyncIterator[int]:
    """Serve a feed while the block runs; yields the port."""

    async def one(connection: ServerConnection) -> None:
        await _serve(connection, feed)

    try:
        server = await websocket_server(
            one,
            HOST,
            port,
            subprotocols=[*SUBPROTOCOLS],  # type: ignore[list-item]
            process_request=_checked,
            compression=None,
            max_size=_MAX_HEARD,
            close_timeout=1.0,
        )
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        raise LinkError(
            f"{HOST}:{port} cannot be used: {error.strerror or error}",
            "Another program holds the port: choose another." if taken else "",
        ) from None
    async with server:
        yield int(next(iter(server.sockets)).getsockname()[1])


def feed_of(name: str) -> FoxgloveFeed:
    """Return a feed for a server that begins now."""
    return FoxgloveFeed(secrets.token_hex(8), name)


def _checked(connection: ServerConnection, request: Request) -> Response | None:
    """Refuse the pages of other sites, and names that were made to point here."""
    host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
    if not _names_us(f"//{host}") or not (origin in {None, "file://"} or _may_look(str(origin))):
        return connection.respond(HTTPStatus.FORBIDDEN, "Not from there.\n")
    return None


def _names_us(url: str) -> bool:
    try:
        return urlsplit(url).hostname in _FROM[1:]
    except ValueError:
        return False


def _may_look(origin: str) -> bool:
    try:
        return urlsplit(origin).hostname in _FROM
    except ValueError:
        return False


async def _serve(connection: ServerConnection, feed: FoxgloveFeed) -> None:
    filled = asyncio.Event()
    client = feed.join(filled.set)
    sender = asyncio.create_task(_send(connection, client.taken, filled))
    try:
        async for message in connection:
            client.hear(message)
    except ConnectionClosed:
        pass
    finally:
        feed.leave(client)
        sender.cancel()


async def _send(
    connection: ServerConnection, taken: Callable[[], list[str | bytes]], filled: asyncio.Event
) -> None:
    try:
        while True:
            await filled.wait()
            await asyncio.sleep(_TOGETHER_S)
            filled.clear()
            for message in taken():
                room = connection.transport.get_write_buffer_size() < _MAX_WRITTEN
                if room and isinstance(message, bytes):
                    broadcast((connection,), message)  # half of what `send` costs
                else:
                    await connection.send(message)  # which waits for a client that reads slowly
    except ConnectionClosed:
        return
