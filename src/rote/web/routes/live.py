"""The WebSocket: states and statuses out, keep-alives and stops in."""

import asyncio
import json
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect

from rote import __version__
from rote.bridge.foxglove import SUBPROTOCOLS, FoxgloveClient
from rote.web.access.clients import Outbox
from rote.web.access.roles import access_of
from rote.web.server.problems import ProblemError, to_json
from rote.web.services.broadcaster import LiveViews
from rote.web.services.hub import Hub


async def serve_viewer(socket: WebSocket, views: LiveViews) -> None:
    """Serve one viewer, a Foxglove application, until it disconnects."""
    offered: list[str] = socket.scope.get("subprotocols", [])
    chosen = next((each for each in SUBPROTOCOLS if each in offered), None)
    queued = asyncio.Event()
    client = None if chosen is None else views.join(queued.set)
    if client is None:
        await socket.close(1013)  # "try again later"
        return
    await socket.accept(subprotocol=chosen)
    sender = asyncio.create_task(_send_queued(socket, client, queued))
    try:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            client.handle_message(message.get("text") or message.get("bytes") or "")
    finally:
        views.leave(client)
        sender.cancel()


async def _send_queued(socket: WebSocket, client: FoxgloveClient, queued: asyncio.Event) -> None:
    try:
        while True:
            await queued.wait()
            queued.clear()
            for message in client.take_messages():
                if isinstance(message, str):
                    await socket.send_text(message)
                else:
                    await socket.send_bytes(message)
    except (WebSocketDisconnect, RuntimeError):
        return


FULL = 4013
"""The close code of a WebSocket that is refused because all connections are in use."""
_MAX_NESTED = 8
"""Maximum number of brackets in a message; one with more is refused before it is parsed."""


async def serve_browser(socket: WebSocket, hub: Hub) -> None:
    """Serve one browser until it disconnects."""
    try:
        previous_id = socket.query_params.get("client")
        client = hub.join(previous_id, __version__, access_of(socket.scope))
    except ProblemError as full:
        # A socket that is refused before it is accepted looks like a dead server to a page.
        await socket.accept()
        document = {"type": "full", "role": access_of(socket.scope).role.value} | full.document()
        await socket.send_text(to_json(document).decode())
        await socket.close(FULL, "full")
        return
    assert client.outbox is not None
    sender: asyncio.Task[None] | None = None
    try:
        await socket.accept()
        sender = asyncio.create_task(_send_outbox(socket, client.outbox))
        while (text := await _receive_text(socket)) is not None:
            hub.clients.note_alive(client.id)
            try:
                kind = _read_message_type(text)
            except ProblemError as error:
                client.outbox.add_message(to_json({"type": "problem"} | error.document()).decode())
                continue
            if kind == "stop":
                hub.stop_soon(answer=client.outbox)
    finally:
        if sender is not None:
            sender.cancel()
        hub.clients.leave(client)


async def _send_outbox(socket: WebSocket, outbox: Outbox) -> None:
    try:
        while True:
            await socket.send_text(await outbox.next())
    except (
        WebSocketDisconnect,
        RuntimeError,
    ):  # the browser has left; `serve_browser` notices it, too
        return


async def _receive_text(socket: WebSocket) -> str | None:
    """Return the next message, empty if it is binary; None when the browser has left."""
    message: Any = await socket.receive()
    if message["type"] == "websocket.disconnect":
        return None
    return message.get("text") or ""


def _read_message_type(text: str) -> object:
    """Return the type of a message; raise `ProblemError` if it is nested too deeply."""
    if text.count("[") + text.count("{") > _MAX_NESTED:
        raise ProblemError(
            400,
            "bad-message",
            "the message is nested too deeply",
            'Send {"type":"alive"} or {"type":"stop"}.',
        )
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document.get("type") if isinstance(document, dict) else None
