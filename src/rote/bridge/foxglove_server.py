"""A WebSocket server for Foxglove, reachable from this computer only."""

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
_OWN_HOSTS = ("localhost", "127.0.0.1", "::1")
"""Names of this computer, by which a client may connect."""
_PAGE_HOSTS = ("app.foxglove.dev", *_OWN_HOSTS)
"""Hosts of the pages that may connect. Programs that are not pages send no origin."""
_MAX_MESSAGE_BYTES = 2**16
_MAX_BUFFERED_BYTES = 2**18
_BATCH_S = 0.008
"""Messages queued within this time are sent together, which costs less than one by one."""


@asynccontextmanager
async def serving(feed: FoxgloveFeed, port: int) -> AsyncIterator[int]:
    """Serve a feed while the block runs; yield the port, and raise `LinkError` if it is in use."""

    async def serve_client(connection: ServerConnection) -> None:
        await _serve_client(connection, feed)

    try:
        server = await websocket_server(
            serve_client,
            HOST,
            port,
            subprotocols=[*SUBPROTOCOLS],  # type: ignore[list-item]
            process_request=_refuse_foreign_page,
            compression=None,
            max_size=_MAX_MESSAGE_BYTES,
            close_timeout=1.0,
        )
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        raise LinkError(
            f"{HOST}:{port} cannot be used: {error.strerror or error}",
            "Another program uses this port. Choose a different one." if is_taken else "",
        ) from None
    async with server:
        yield int(next(iter(server.sockets)).getsockname()[1])


def make_feed(name: str) -> FoxgloveFeed:
    """Return a feed for a new server."""
    return FoxgloveFeed(secrets.token_hex(8), name)


def _refuse_foreign_page(connection: ServerConnection, request: Request) -> Response | None:
    """Return a refusal for pages of other sites and for foreign host names; None to accept.

    A page of another site could otherwise read the robot's data through the user's browser.
    """
    host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
    is_own_host = _has_host(f"//{host}", _OWN_HOSTS)
    is_allowed_origin = origin in {None, "file://"} or _has_host(str(origin), _PAGE_HOSTS)
    if is_own_host and is_allowed_origin:
        return None
    return connection.respond(HTTPStatus.FORBIDDEN, "This origin may not connect.\n")


def _has_host(url: str, hosts: tuple[str, ...]) -> bool:
    try:
        return urlsplit(url).hostname in hosts
    except ValueError:
        return False


async def _serve_client(connection: ServerConnection, feed: FoxgloveFeed) -> None:
    """Process a client's messages and send it what the feed queues, until it disconnects."""
    filled = asyncio.Event()
    client = feed.join(filled.set)
    sender = asyncio.create_task(_send_messages(connection, client.take_messages, filled))
    try:
        async for message in connection:
            client.handle_message(message)
    except ConnectionClosed:
        pass
    finally:
        feed.leave(client)
        sender.cancel()


async def _send_messages(
    connection: ServerConnection,
    take_messages: Callable[[], list[str | bytes]],
    filled: asyncio.Event,
) -> None:
    """Send queued messages in batches until the connection is closed."""
    try:
        while True:
            await filled.wait()
            await asyncio.sleep(_BATCH_S)
            filled.clear()
            for message in take_messages():
                has_room = connection.transport.get_write_buffer_size() < _MAX_BUFFERED_BYTES
                if has_room and isinstance(message, bytes):
                    broadcast((connection,), message)  # half the cost of `send`
                else:
                    await connection.send(message)  # waits for a client that reads slowly
    except ConnectionClosed:
        return
