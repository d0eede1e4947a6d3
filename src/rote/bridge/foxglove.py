"""The server side of the Foxglove WebSocket protocol, without sockets.

A client offers the subprotocol `foxglove.websocket.v1` or `foxglove.sdk.v1`. The server sends its
name and its channels, as JSON. The client subscribes to channels by id, and gets their messages as
binary: 1, the id of its subscription (uint32), the time (uint64, ns), the message. It may request
files by URI, and gets 4, the id of its request, 0 and an empty text, the file. Clients can only
watch: they cannot publish, call services or set parameters.
"""

import json
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from rote import __version__
from rote.bridge import ros_messages as ros
from rote.model.family import Build
from rote.model.registry import build_named

_PLOTTED = ("shoulder_pitch", "shoulder_roll", "elbow")
"""Parts of the names of the joints that the layout plots."""
_SCENE_PANEL: dict[str, Any] = {
    "layers": {
        "grid": {
            "layerId": "foxglove.Grid",
            "instanceId": "grid",
            "label": "Grid",
            "visible": True,
            "size": 4,
            "divisions": 8,
            "order": 1,
        },
        "robot": {
            "layerId": "foxglove.Urdf",
            "instanceId": "robot",
            "label": "Robot",
            "visible": True,
            "sourceType": "topic",
            "topic": "/robot_description",
            "displayMode": "auto",
            "order": 2,
        },
    },
    "cameraState": {
        "perspective": True,
        "distance": 3.0,
        "phi": 75,
        "thetaOffset": 60,
        "target": [0, 0, 0],
        "targetOffset": [0, 0, 0],
        "targetOrientation": [0, 0, 0, 1],
        "fovy": 45,
        "near": 0.1,
        "far": 100,
    },
    "followMode": "follow-pose",
    "scene": {},
    "transforms": {},
    "topics": {"/joint_states": {"visible": True}},
}


def foxglove_layout(build: str = "g1-29") -> str:
    """Return a layout of Foxglove's panels for a live view of this build, as JSON."""
    panels: dict[str, Any] = {
        "3D!rote": _SCENE_PANEL,
        "Plot!rote": _make_plot_panel(build_named(build)),
        "RawMessages!rote": {"topicPath": "/rote/status", "expansion": "all"},
        "RosOut!rote": {"topicToRender": "/rote/findings", "minLogLevel": 1, "searchTerms": []},
        "DiagnosticSummary!rote": {"topicToRender": "/diagnostics", "minLevel": 0},
    }
    left = _split_panel("column", "3D!rote", "Plot!rote", 62)
    diagnostics = _split_panel("column", "DiagnosticSummary!rote", "RosOut!rote", 50)
    right = _split_panel("column", "RawMessages!rote", diagnostics, 35)
    document = {
        "configById": panels,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": _split_panel("row", left, right, 68),
    }
    return json.dumps(document, indent=2) + "\n"


def _split_panel(direction: str, first: object, second: object, percent: int) -> dict[str, object]:
    """Return two panels, in a row or a column, of which the first gets `percent` of the space."""
    return {
        "direction": direction,
        "first": first,
        "second": second,
        "splitPercentage": percent,
    }


def _make_plot_panel(build: Build) -> dict[str, object]:
    """Return the panel that plots the positions of some arm joints."""
    names = [name for name in build.taught if any(part in name for part in _PLOTTED)]
    return {
        "title": "Joints [rad]",
        "paths": [
            {
                "value": f"/joint_states.position[{build.names.index(name)}]",
                "label": name.removesuffix("_joint"),
                "enabled": True,
                "timestampMethod": "receiveTime",
            }
            for name in names
        ],
        "showLegend": True,
        "followingViewWidth": 15,
    }


SUBPROTOCOLS = ("foxglove.sdk.v1", "foxglove.websocket.v1")
"""Supported subprotocols, the newest first; the messages used here are the same in both."""
_DATA = struct.Struct("<BIQ")  # _MESSAGE_DATA, the id of the subscription, the time in ns
_ASSET = struct.Struct("<BIBI")  # _FETCH_ASSET, the id of the request, the status, the error's size
_MESSAGE_DATA, _FETCH_ASSET = 1, 4
_FOUND, _NOT_FOUND = 0, 1
_MAX_SUBSCRIPTIONS = 256
MAX_WAITING = 512
"""Maximum number of messages queued for a client that reads slowly; then the oldest are dropped."""
_MAX_BRACKETS = 600
"""Messages with more opening brackets are ignored: deeply nested JSON would exhaust the stack."""


class Channel(NamedTuple):
    """One stream of messages."""

    id: int
    topic: str
    encoding: str
    schema_name: str
    schema: str
    schema_encoding: str
    latched: bool = False
    """Whether a new subscriber gets the newest message at once."""

    def document(self) -> dict[str, Any]:
        """Return the channel as clients receive it."""
        return {
            "id": self.id,
            "topic": self.topic,
            "encoding": self.encoding,
            "schemaName": self.schema_name,
            "schema": self.schema,
            "schemaEncoding": self.schema_encoding,
        }


def _make_ros_channel(number: int, topic: str, kind: str, *, latched: bool = False) -> Channel:
    return Channel(number, topic, "cdr", kind, ros.DEFINITIONS[kind], "ros2msg", latched)


def _make_json_channel(number: int, topic: str, title: str, fields: dict[str, Any]) -> Channel:
    schema = json.dumps({"title": title, "type": "object", "properties": fields})
    return Channel(number, topic, "json", title, schema, "jsonschema", latched=True)


_TEXT, _NUMBER, _FLAG = {"type": "string"}, {"type": "number"}, {"type": "boolean"}
_NUMBER_OR_NULL = {"type": ["number", "null"]}
_TIME = {"type": "object", "title": "time", "properties": {"sec": _NUMBER, "nsec": _NUMBER}}
JOINTS = _make_ros_channel(1, "/joint_states", ros.JOINT_STATE)
DESCRIPTION = _make_ros_channel(2, "/robot_description", ros.STRING, latched=True)
DIAGNOSTICS = _make_ros_channel(3, "/diagnostics", ros.DIAGNOSTICS, latched=True)
STATUS = _make_json_channel(
    4,
    "/rote/status",
    "rote.Status",
    {
        **dict.fromkeys(("robot", "build", "mode_name", "phase"), _TEXT),
        "mode": _NUMBER,
        **dict.fromkeys(("playing", "soft", "recording", "holding"), _FLAG),
        **dict.fromkeys(("battery_percent", "warmest_c"), _NUMBER_OR_NULL),
        "faults": {"type": "array", "items": _TEXT},
    },
)
FINDINGS = _make_json_channel(
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
"""Returns the file at a URI; raises `KeyError` if there is none."""


class FoxgloveClient:
    """One client: its subscriptions and its queue of messages."""

    def __init__(self, feed: "FoxgloveFeed", on_queued: Callable[[], None]) -> None:
        self._feed = feed
        self._on_queued = on_queued
        self._waiting: deque[str | bytes] = deque()
        self.subscriptions: dict[int, list[int]] = {}
        """The ids of the subscriptions to each channel."""
        self.dropped = 0
        """Number of messages dropped because the client read too slowly."""

    def queue(self, message: str | bytes) -> None:
        """Queue a message."""
        self._waiting.append(message)
        if len(self._waiting) > MAX_WAITING:
            self._waiting.popleft()
            self.dropped += 1
        self._on_queued()

    def take_messages(self) -> list[str | bytes]:
        """Remove and return all queued messages."""
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting

    def queue_data(self, channel: int, time_ns: int, payload: bytes) -> None:
        """Queue a message of a channel, for each subscription to it."""
        for subscription in self.subscriptions.get(channel, ()):
            self.queue(_DATA.pack(_MESSAGE_DATA, subscription, time_ns) + payload)

    def handle_message(self, message: str | bytes) -> None:
        """Process a message from the client; an invalid or forbidden one is answered with a
        warning.
        """
        document = _parse_object(message)
        handler = {
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "fetchAsset": self._fetch_asset,
        }.get(str(document.get("op")))
        if handler is None:
            self._warn("this server is read-only: use subscribe, unsubscribe or fetchAsset")
            return
        try:
            handler(document)
        except (KeyError, TypeError, ValueError):
            self._warn(f"{document.get('op')} does not follow the protocol")

    def _subscribe(self, document: dict[str, Any]) -> None:
        known_channels = {channel.id for channel in CHANNELS}
        for request in document["subscriptions"]:
            own_id, channel_id = int(request["id"]), int(request["channelId"])
            used = [used_id for ids in self.subscriptions.values() for used_id in ids]
            if channel_id not in known_channels:
                self._warn(f"there is no channel {channel_id}")
            elif not 0 <= own_id < 2**32:
                self._warn(f"the subscription {own_id} is refused: its id is not a 32-bit number")
            elif own_id in used:
                self._warn(f"the subscription {own_id} is refused: its id is in use")
            elif len(used) >= _MAX_SUBSCRIPTIONS:
                self._warn(
                    f"the subscription {own_id} is refused: the limit is {_MAX_SUBSCRIPTIONS}"
                )
            else:
                self.subscriptions.setdefault(channel_id, []).append(own_id)
                self._feed.send_latest(self, channel_id, own_id)

    def _unsubscribe(self, document: dict[str, Any]) -> None:
        removed = {int(number) for number in document["subscriptionIds"]}
        for channel, ids in self.subscriptions.items():
            self.subscriptions[channel] = [number for number in ids if number not in removed]

    def _fetch_asset(self, document: dict[str, Any]) -> None:
        request_id, uri = int(document["requestId"]), str(document["uri"])
        try:
            content, error = self._feed.read_asset(uri), b""
        except KeyError:
            content, error = b"", f"there is no file {uri[:200]}".encode()
        status = _NOT_FOUND if error else _FOUND
        self.queue(_ASSET.pack(_FETCH_ASSET, request_id, status, len(error)) + error + content)

    def _warn(self, message: str) -> None:
        self.queue(json.dumps({"op": "status", "level": 1, "message": message}))


def _parse_object(message: str | bytes) -> dict[str, Any]:
    """Return the JSON object in a message; empty if there is none."""
    if isinstance(message, bytes) or message.count("[") + message.count("{") > _MAX_BRACKETS:
        return {}
    try:
        document = json.loads(message)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


class FoxgloveFeed:
    """All clients that watch one robot, and the newest message of each latched channel."""

    def __init__(self, session: str, name: str = "rote") -> None:
        """`session` must differ after each restart of a server: clients then discard old data."""
        self._session, self._name = session, name
        self.clients: set[FoxgloveClient] = set()
        self._latest: dict[int, tuple[int, bytes]] = {}
        """The time and content of the newest message of each latched channel."""
        self.assets: Assets | None = None

    def join(self, on_queued: Callable[[], None]) -> FoxgloveClient:
        """Add a client; `on_queued` is called whenever a message is queued for it."""
        client = FoxgloveClient(self, on_queued)
        self.clients.add(client)
        client.queue(
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
        client.queue(json.dumps({"op": "advertise", "channels": channels}))
        return client

    def leave(self, client: FoxgloveClient) -> None:
        """Remove a client."""
        self.clients.discard(client)

    def publish(self, channel: Channel, time_ns: int, payload: bytes) -> None:
        """Send a message to all subscribers."""
        if channel.latched:
            self._latest[channel.id] = (time_ns, payload)
        for client in self.clients:
            client.queue_data(channel.id, time_ns, payload)

    def send_latest(self, client: FoxgloveClient, channel: int, subscription: int) -> None:
        """Send the newest message of a latched channel to a new subscriber."""
        if channel in self._latest:
            time_ns, payload = self._latest[channel]
            client.queue(_DATA.pack(_MESSAGE_DATA, subscription, time_ns) + payload)

    def read_asset(self, uri: str) -> bytes:
        """Return the file at a URI; raises `KeyError` if there is none."""
        if self.assets is None:
            raise KeyError(uri)
        return self.assets(uri)
