"""The live view for Foxglove behind the server's checks: shows the connected robot."""

import asyncio
import secrets
from collections.abc import Callable

from fastapi import WebSocket, WebSocketDisconnect

from rote.bridge.foxglove import SUBPROTOCOLS, FoxgloveClient, FoxgloveFeed
from rote.bridge.live_view import FindingsOf, LiveView
from rote.web.services.connection_keeper import ConnectionKeeper
from rote.web.work.drawing import model_of

LEAST_S = 0.0095
"""States nearer to each other than this are left out: a hundred a second, beside the pages."""
MAX_VIEWERS = 16
_FOLLOW_S = 0.5


class LiveViews:
    """Shows the connected robot while there are viewers."""

    def __init__(self, connection: ConnectionKeeper, findings: FindingsOf) -> None:
        self._connection = connection
        self._findings = findings
        self._feed = FoxgloveFeed(secrets.token_hex(8), "rote pendant")
        self._view: LiveView | None = None
        self._timer: asyncio.TimerHandle | None = None

    def join(self, filled: Callable[[], None]) -> FoxgloveClient | None:
        """Add a viewer; None if there are too many."""
        if len(self._feed.clients) >= MAX_VIEWERS:
            return None
        client = self._feed.join(filled)
        if self._timer is None:
            self._follow_robot()
        return client

    def leave(self, client: FoxgloveClient) -> None:
        """Forget a viewer."""
        self._feed.leave(client)

    def close(self) -> None:
        """End. Safe to call twice."""
        self._switch_view(None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _follow_robot(self) -> None:
        """Switch to the connected robot if it has changed; without viewers, stop."""
        if not self._feed.clients:
            self._timer = None
            self._switch_view(None)
            return
        self._timer = asyncio.get_running_loop().call_later(_FOLLOW_S, self._follow_robot)
        robot = self._connection.connected
        if (None if self._view is None else self._view.robot) is not robot:
            self._switch_view(
                None
                if robot is None
                else LiveView(self._feed, robot, self._findings, model_of, least_s=LEAST_S)
            )

    def _switch_view(self, view: LiveView | None) -> None:
        if self._view is not None:
            self._view.close()
        self._view = view
        if view is not None:
            view.open()


async def view(socket: WebSocket, views: LiveViews) -> None:
    """Serve one viewer until it leaves."""
    offered: list[str] = socket.scope.get("subprotocols", [])
    chosen = next((each for each in SUBPROTOCOLS if each in offered), None)
    filled = asyncio.Event()
    client = None if chosen is None else views.join(filled.set)
    if client is None:
        await socket.close(1013)
        return
    await socket.accept(subprotocol=chosen)
    sender = asyncio.create_task(_send_queued(socket, client, filled))
    try:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            client.handle_message(message.get("text") or message.get("bytes") or "")
    finally:
        views.leave(client)
        sender.cancel()


async def _send_queued(socket: WebSocket, client: FoxgloveClient, filled: asyncio.Event) -> None:
    try:
        while True:
            await filled.wait()
            filled.clear()
            for message in client.take_messages():
                if isinstance(message, str):
                    await socket.send_text(message)
                else:
                    await socket.send_bytes(message)
    except (WebSocketDisconnect, RuntimeError):
        return
