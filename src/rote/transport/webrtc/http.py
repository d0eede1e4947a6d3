"""Minimal HTTP for signalling: one request and response of limited size per connection, by h11."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from rote.errors import LinkError, MissingExtraError, RemoteProtocolError
from rote.wire.discovery import MAX_BODY

_CHUNK_BYTES = 16 * 1024
_REQUEST_TIMEOUT_S = 10.0
_MAX_CONNECTIONS = 64
_BAD_REQUEST, _TOO_LARGE = 400, 413


class HttpRequest(NamedTuple):
    """An HTTP request."""

    method: str
    path: str
    body: bytes


class HttpResponse(NamedTuple):
    """An HTTP response."""

    status: int
    body: bytes = b""
    content_type: str = "text/plain"
    """The content type that the server states; the client here ignores it."""


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]


def _import_h11() -> Any:
    try:
        import h11  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("signalling with the robot", "webrtc") from error
    return h11


async def post(
    host: str, port: int, path: str, body: bytes, content_type: str = ""
) -> HttpResponse:
    """Post `body` and return the response. Raises `OSError` if the port is closed, `RoteError` for
    an invalid response.
    """
    h11 = _import_h11()
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except UnicodeError as error:
        raise OSError(f"not a valid host name ({error})") from None
    try:
        url_host = f"[{host}]" if ":" in host else host  # brackets around an IPv6 address
        headers = [("Host", f"{url_host}:{port}"), ("Content-Length", str(len(body)))]
        if content_type:
            headers.append(("Content-Type", content_type))
        connection = h11.Connection(h11.CLIENT)
        request = h11.Request(method="POST", target=path, headers=headers)
        writer.write(
            connection.send(request)
            + connection.send(h11.Data(data=body))
            + connection.send(h11.EndOfMessage())
        )
        return await _read_response(h11, connection, reader)
    finally:
        writer.close()


async def _read_response(h11: Any, connection: Any, reader: asyncio.StreamReader) -> HttpResponse:
    status, body = 0, bytearray()
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError as error:
            raise RemoteProtocolError(f"the answer is not HTTP: {error}") from None
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_CHUNK_BYTES))
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > MAX_BODY:
                raise RemoteProtocolError(f"the answer is longer than {MAX_BODY} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return HttpResponse(status, bytes(body))
        elif isinstance(event, h11.ConnectionClosed):
            raise RemoteProtocolError("the connection was closed before an answer arrived")


class Server:
    """An HTTP server that answers each request with what `handler` returns."""

    def __init__(self, handler: Handler) -> None:
        self._h11 = _import_h11()
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.address: tuple[str, int] = ("", 0)

    async def open(self, host: str, port: int) -> None:
        """Listen; for port 0 the system chooses one. Raises `LinkError` if it cannot be used."""
        try:
            self._server = await asyncio.start_server(self._accept, host, port)
        except OSError as error:
            raise LinkError(
                f"{host}:{port} cannot be used: {error.strerror or error}",
                "Another program uses the port, or this computer does not have the address: "
                "choose another one.",
            ) from error
        self.address = self._server.sockets[0].getsockname()[:2]

    async def close(self) -> None:
        """Stop listening and drop open connections. Safe to call twice."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if len(self._tasks) <= _MAX_CONNECTIONS:  # further connections are dropped
                with suppress(TimeoutError, OSError):
                    async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                        await self._serve(reader, writer)
        except asyncio.CancelledError:
            pass  # the server is closing
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        h11 = self._h11
        connection = h11.Connection(h11.SERVER)
        request = await _read_request(h11, connection, reader)
        if request is None:
            return  # a probe that only checks whether the port is open
        # For an invalid request, `_read_request` returns the response to send.
        response = await self._handler(request) if isinstance(request, HttpRequest) else request
        headers = [
            ("Content-Length", str(len(response.body))),
            ("Content-Type", response.content_type),
            ("Connection", "close"),
        ]
        head = h11.Response(status_code=response.status, headers=headers)
        writer.write(connection.send(head) + connection.send(h11.Data(data=response.body)))
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        await writer.drain()


async def _read_request(
    h11: Any, connection: Any, reader: asyncio.StreamReader
) -> HttpRequest | HttpResponse | None:
    """Return the request, an error response to an invalid one, or None if there is none."""
    method, path, body = "", "", bytearray()
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError as error:
            return HttpResponse(error.error_status_hint or _BAD_REQUEST)
        if event is h11.NEED_DATA:
            data = await reader.read(_CHUNK_BYTES)
            if not data and not method:
                return None
            connection.receive_data(data)
        elif isinstance(event, h11.Request):
            method, path = event.method.decode(), event.target.decode("latin-1")
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > MAX_BODY:
                return HttpResponse(_TOO_LARGE)
        elif isinstance(event, h11.EndOfMessage):
            return HttpRequest(method, path, bytes(body))
        else:
            return None
