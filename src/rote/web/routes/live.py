"""The WebSocket: states and statuses out, keep-alives and stops in."""

import asyncio
import json
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect

from rote import __version__
from rote.web.access.clients import Outbox
from rote.web.access.roles import access_of
from rote.web.server.problems import ProblemError, to_json
from rote.web.services.hub import Hub

FULL = 4013
"""The close code of a socket if no connection is free."""
_MAX_NESTED = 8
"""A message is one object: {"type": ...}. Deeper ones are refused before they are parsed."""


async def live(socket: WebSocket, hub: Hub) -> None:
    """Serve one browser until it leaves."""
    try:
        old = socket.query_params.get("client")
        client = hub.join(old, __version__, access_of(socket.scope))
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
                kind = _message_type(text)
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
    except (WebSocketDisconnect, RuntimeError):  # the browser has left; `live` notices it, too
        return


async def _receive_text(socket: WebSocket) -> str | None:
    """Return the next message, empty if it is binary; None when the browser has left."""
    message: Any = await socket.receive()
    if message["type"] == "websocket.disconnect":
        return None
    return message.get("text") or ""


def _message_type(text: str) -> object:
    """Return the type of a message; raise `ProblemError` if it is nested too deeply."""
    if text.count("[") + text.count("{") > _MAX_NESTED:
        raise ProblemError(
            400,
            "bad-message",
            "a message to this server is one object, not a tree of them",
            'Send {"type":"alive"} or {"type":"stop"}.',
        )
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document.get("type") if isinstance(document, dict) else None
