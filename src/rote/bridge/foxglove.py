"""The Foxglove WebSocket protocol as its server speaks it; no sockets here.

A client offers the subprotocol `foxglove.websocket.v1` or `foxglove.sdk.v1`. The server says who it
is and which channels it has, as JSON. The client subscribes to channels by id, and gets their
messages as binary: 1, the id of its subscription (uint32), the time (uint64, ns), the message. It
may ask for files by URI, and gets 4, the number of its question, 0 and an empty text, the file.
Clients cannot publish, call services or set parameters here: they watch.
"""

import json
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from rote import __version__
from rote.bridge import ros_messages as ros

SUBPROTOCOLS = ("foxglove.sdk.v1", "foxglove.websocket.v1")
"""Those that are understood, the newest first; the messages used here are the same in both."""
_DATA = struct.Struct("<BIQ")
_ASSET = struct.Struct("<BIBI")
_MESSAGE_DATA, _FETCH_ASSET = 1, 4
_FOUND, _NOT_FOUND = 0, 1
_MAX_SUBSCRIPTIONS = 256
MAX_WAITING = 512
"""So many messages wait for a client that reads slowly; then the oldest states are dropped."""


class Channel(NamedTuple):
    """One stream of messages."""

    id: int
    topic: str
    encoding: str
    schema_name: str
    schema: str
    schema_encoding: str
    latched: bool = False
    """Whether who subscribes gets the newest message at once."""

    def document(self) -> dict[str, Any]:
        """Return what a client is told of it."""
        return {
            "id": self.id,
            "topic": self.topic,
            "encoding": self.encoding,
            "schemaName": self.schema_name,
            "schema": self.schema,
            "schemaEncoding": self.schema_encoding,
        }


def _ros(number: int, topic: str, kind: str, *, latched: bool = False) -> Channel:
    return Channel(number, topic, "cdr", kind, ros.DEFINITIONS[kind], "ros2msg", latched)


def _json(number: int, topic: str, title: str, fields: dict[str, Any]) -> Channel:
    schema = json.dumps({"title": title, "type": "object", "properties": fields})
    return Channel(number, topic, "json", title, schema, "jsonschema", latched=True)


_TEXT, _NUMBER, _FLAG = {"type": "string"}, {"type": "number"}, {"type": "boolean"}
_MAYBE = {"type": ["number", "null"]}
_TIME = {"type": "object", "title": "time", "properties": {"sec": _NUMBER, "nsec": _NUMBER}}
JOINTS = _ros(1, "/joint_states", ros.JOINT_STATE)
DESCRIPTION = _ros(2, "/robot_description", ros.STRING, latched=True)
DIAGNOSTICS = _ros(3, "/diagnostics", ros.DIAGNOSTICS, latched=True)
STATUS = _json(
    4,
    "/rote/status",
    "rote.Status",
    {
        **dict.fromkeys(("robot", "build", "mode_name", "phase"), _TEXT),
        "mode": _NUMBER,
        **dict.fromkeys(("playing", "soft", "recording", "holding"), _FLAG),
        **dict.fromkeys(("battery_percent", "warmest_c"), _MAYBE),
        "faults": {"type": "array", "items": _TEXT},
    },
)
FINDINGS = _json(
    5,
    "/rote/findings",
    "foxglove.Log",
    {
        "timestamp": _TIME,
        "level": _NUMBER,
        **dict.fromkeys(("message", "name", "file"), _TEXT),
        "line": _NUMBER,
    },
)
CHANNELS = (JOINTS, DESCRIPTION, DIAGNOSTICS, STATUS, FINDINGS)

Assets = Callable[[str], bytes]
"""Returns the file at a URI; raises `KeyError` where there is none."""


class FoxgloveClient:
    """One client: what it has subscribed to, and what it is to be sent."""

    def __init__(self, feed: "FoxgloveFeed", filled: Callable[[], None]) -> None:
        self._feed = feed
        self._filled = filled
        self._waiting: deque[str | bytes] = deque()
        self._states = 0
        """How many of those that wait are states."""
        self.subscriptions: dict[int, list[int]] = {}
        """The ids of the subscriptions to each channel."""
        self.dropped = 0
        """How many states it was too slow for."""

    def say(self, message: str | bytes) -> None:
        """Queue a message."""
        self._waiting.append(message)
        if len(self._waiting) > MAX_WAITING:
            self._waiting.popleft()
            self.dropped += 1
        self._filled()

    def taken(self) -> list[str | bytes]:
        """Return all that is to be sent now."""
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting

    def data(self, channel: int, time_ns: int, payload: bytes) -> None:
        """Queue a message of a channel, for each subscription to it."""
        for subscription in self.subscriptions.get(channel, ()):
            self.say(_DATA.pack(_MESSAGE_DATA, subscription, time_ns) + payload)

    def hear(self, message: str | bytes) -> None:
        """Obey what a client says; what it may not or cannot say is answered with a warning."""
        document = _object(message)
        wanted = {
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "fetchAsset": self._fetch,
        }.get(str(document.get("op")))
        if wanted is None:
            self._warn("this server is there to be watched: subscribe, unsubscribe or fetchAsset")
            return
        try:
            wanted(document)
        except (KeyError, TypeError, ValueError):
            self._warn(f"{document.get('op')} is not as the protocol has it")

    def _subscribe(self, document: dict[str, Any]) -> None:
        known = {channel.id for channel in CHANNELS}
        for each in document["subscriptions"]:
            number, channel = int(each["id"]), int(each["channelId"])
            used = [one for ids in self.subscriptions.values() for one in ids]
            if channel not in known or not 0 <= number < 2**32:
                self._warn(f"there is no channel {channel}")
            elif number in used or len(used) >= _MAX_SUBSCRIPTIONS:
                self._warn(f"the subscription {number} cannot be had")
            else:
                self.subscriptions.setdefault(channel, []).append(number)
                self._feed.welcome(self, channel, number)

    def _unsubscribe(self, document: dict[str, Any]) -> None:
        gone = {int(each) for each in document["subscriptionIds"]}
        for channel, ids in self.subscriptions.items():
            self.subscriptions[channel] = [each for each in ids if each not in gone]

    def _fetch(self, document: dict[str, Any]) -> None:
        number, uri = int(document["requestId"]), str(document["uri"])
        try:
            found, error = self._feed.asset(uri), b""
        except KeyError:
            found, error = b"", f"there is no {uri[:200]}".encode()
        status = _NOT_FOUND if error else _FOUND
        self.say(_ASSET.pack(_FETCH_ASSET, number, status, len(error)) + error + found)

    def _warn(self, message: str) -> None:
        self.say(json.dumps({"op": "status", "level": 1, "message": message}))


def _object(message: str | bytes) -> dict[str, Any]:
    if isinstance(message, bytes) or message.count("[") + message.count("{") > 600:
        return {}
    try:
        document = json.loads(message)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


class FoxgloveFeed:
    """All clients that watch one robot, and the newest of what new ones are told at once."""

    def __init__(self, session: str, name: str = "rote") -> None:
        """`session` changes whenever a server begins anew: clients forget what they had then."""
        self._session, self._name = session, name
        self.clients: set[FoxgloveClient] = set()
        self._latest: dict[int, tuple[int, bytes]] = {}
        self.assets: Assets | None = None

    def join(self, filled: Callable[[], None]) -> FoxgloveClient:
        """Let a client in; `filled` is called whenever there is something to send to it."""
        client = FoxgloveClient(self, filled)
        self.clients.add(client)
        client.say(
            json.dumps(
                {
                    "op": "serverInfo",
                    "name": self._name,
                    "capabilities": ["assets"],
                    "supportedEncodings": [],
                    "metadata": {"rote": __version__},
                    "sessionId": self._session,
                }
            )
        )
        channels = [channel.document() for channel in CHANNELS]
        client.say(json.dumps({"op": "advertise", "channels": channels}))
        return client

    def leave(self, client: FoxgloveClient) -> None:
        """Forget a client."""
        self.clients.discard(client)

    def wanted(self, channel: Channel) -> bool:
        """Whether somebody has subscribed to a channel."""
        return any(client.subscriptions.get(channel.id) for client in self.clients)

    def publish(self, channel: Channel, time_ns: int, payload: bytes) -> None:
        """Send a message to all who have subscribed."""
        if channel.latched:
            self._latest[channel.id] = (time_ns, payload)
        for client in self.clients:
            client.data(channel.id, time_ns, payload)

    def welcome(self, client: FoxgloveClient, channel: int, subscription: int) -> None:
        """Send the newest message of a channel to who has just subscribed to it."""
        if channel in self._latest:
            time_ns, payload = self._latest[channel]
            client.say(_DATA.pack(_MESSAGE_DATA, subscription, time_ns) + payload)

    def asset(self, uri: str) -> bytes:
        """Return a file; raises `KeyError` where there is none."""
        if self.assets is None:
            raise KeyError(uri)
        return self.assets(uri)
