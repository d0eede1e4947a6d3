"""The WebSocket: states and statuses out, keep-alives and stops in."""

import asyncio
import json
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect

from rote import __version__
from rote.web.clients import Outbox
from rote.web.hub import Hub
from rote.web.problems import ProblemError


async def live(socket: WebSocket, hub: Hub) -> None:
    """Serve one browser until it leaves."""
    try:
        client = hub.join(socket.query_params.get("client"), __version__)
    except ProblemError:
        await socket.close(1013)  # too many clients
        return
    assert client.outbox is not None
    await socket.accept()
    sender = asyncio.create_task(_send(socket, client.outbox))
    try:
        while (text := await _heard(socket)) is not None:
            hub.clients.alive(client.id)
            if _kind(text) == "stop":
                hub.stop_soon(answer=client.outbox)
    finally:
        sender.cancel()
        hub.clients.leave(client)


async def _send(socket: WebSocket, outbox: Outbox) -> None:
    try:
        while True:
            await socket.send_text(await outbox.next())
    except (WebSocketDisconnect, RuntimeError):  # it has left; the listeners are told too
        return


async def _heard(socket: WebSocket) -> str | None:
    """Return the next message, empty if it is no text; None when the browser has left."""
    message: Any = await socket.receive()
    if message["type"] == "websocket.disconnect":
        return None
    return message.get("text") or ""


def _kind(text: str) -> object:
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document.get("type") if isinstance(document, dict) else None
