"""Records a trial: messages, topics with their rates, delays, and the motion.

Its input is the tap of a connection and the states of the robot. Joint states come so often that
the conversation keeps only a few of them per second; counts and rates include all.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rote.errors import DecodeError, RoteError
from rote.messages import Phase, RobotState
from rote.transport.tap import TappedMessage
from rote.wire.a1 import codec as a1_codec
from rote.wire.dds import cdr
from rote.wire.services import rpc
from rote.wire.services.json_shape import Shape, shape_of
from rote.wire.teaching import codec as teaching
from rote.wire.webrtc import channel

FRAMES, CHANNEL, BUS, QUADRUPED = "frames", "channel", "bus", "a1"
THIN_S = 0.5
"""Minimum time between two messages of one topic that are kept in the conversation."""
MAX_KEPT = 50_000
_SAMPLES, _OFTEN_HZ = 24, 4.0
_TRACE_S = 0.05
_STATES = "states"


class RecordedMessage(NamedTuple):
    """One message of the conversation."""

    at_s: float
    """Since the trial began."""
    sent: bool
    topic: str
    message: str
    """The text, or hexadecimal digits."""
    is_text: bool
    api: str = ""
    code: int | None = None


class Trace(NamedTuple):
    """The robot's motion at one moment, for plots."""

    at_s: float
    speed_rad_s: float
    """Of the fastest joint."""
    away_rad: float
    """Largest distance of a joint from where it was when the trial began."""
    activity: str


@dataclass(slots=True)
class TopicCount:
    """One topic: arrival times, message sizes and sample messages."""

    at_s: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    samples: list[Any] = field(default_factory=list)
    kept_at_s: float = -1e9


class TrialRecorder:
    """Records the messages and states of one trial."""

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self.began_at = self._loop.time()
        self.conversation: list[RecordedMessage] = []
        self.dropped = 0
        """Messages that did not fit into the conversation."""
        self.topics: dict[str, TopicCount] = {}
        self.delays_s: dict[str, list[float]] = {}
        """From request to answer, by service and api id."""
        self.answers: list[Any] = []
        """Whole answers of the data channel, as they came."""
        self.lists: list[str] = []
        """The texts of the answers to a request for the actions."""
        self.modes: list[str] = []
        """The texts of the answers to a request for the mode."""
        self.odd: list[str] = []
        """Messages of types that rote does not know."""
        self.marks: set[str] = set()
        """Oddities of the texts: bom, nul, binary, chunks."""
        self.traces: list[Trace] = []
        self.states: deque[tuple[float, RobotState]] = deque(maxlen=60_000)
        self._first_joints_rad: tuple[float, ...] = ()
        self._pending_requests: dict[tuple[str, int], tuple[float, str]] = {}
        self._activity_listeners: list[Callable[[float, str], None]] = []
        self._activity = ""
        self._assembler = channel.Assembler()

    @property
    def now_s(self) -> float:
        """Seconds since the trial began."""
        return self._loop.time() - self.began_at

    # ---- states ---------------------------------------------------------------------------------

    def on_activity(self, listener: Callable[[float, str], None]) -> None:
        """Call `listener` with the time and the activity whenever the arms' activity changes."""
        self._activity_listeners.append(listener)

    def record_state(self, state: RobotState) -> None:
        """Record a state of the robot."""
        at_s = self.now_s
        self.states.append((at_s, state))
        if state.joints_told and state.joints_rad:
            self._first_joints_rad = self._first_joints_rad or state.joints_rad
            if not self.traces or at_s - self.traces[-1].at_s >= _TRACE_S:
                speeds = state.velocities_rad_s or (0.0,)
                away = [
                    abs(a - b)
                    for a, b in zip(state.joints_rad, self._first_joints_rad, strict=False)
                ]
                fastest = max(map(abs, speeds))
                trace = Trace(at_s, fastest, max(away, default=0.0), activity_of(state))
                self.traces.append(trace)
        activity = activity_of(state)
        if activity != self._activity:
            self._activity = activity
            for listener in self._activity_listeners:
                listener(at_s, activity)

    # ---- messages -------------------------------------------------------------------------------

    def record_message(self, tapped: TappedMessage) -> None:
        """Record a tapped message."""
        at_s = tapped.at_s - self.began_at
        reader = _READERS[self._protocol]
        try:
            reader(self, at_s, tapped)
        except (DecodeError, RoteError, ValueError, KeyError, TypeError):
            self._record_odd_message(at_s, tapped)

    def _record_odd_message(self, at_s: float, tapped: TappedMessage) -> None:
        text = tapped.data if isinstance(tapped.data, str) else tapped.data.hex()
        if not tapped.sent and text not in self.odd and len(self.odd) < 16:
            self.odd.append(text)
        self._record(at_s, tapped, "unreadable")

    def _record(
        self, at_s: float, tapped: TappedMessage, topic: str, api: str = "", code: int | None = None
    ) -> None:
        data = tapped.data
        is_text = isinstance(data, str)
        text = data if isinstance(data, str) else bytes(data).hex()
        if len(self.conversation) >= MAX_KEPT:
            self.dropped += 1
            return
        self.conversation.append(
            RecordedMessage(at_s, tapped.sent, topic, text, is_text, api, code)
        )

    def _count(self, at_s: float, tapped: TappedMessage, topic: str, value: object = None) -> None:
        """Count a message of a topic; frequent ones are thinned in the conversation."""
        seen = self.topics.setdefault(topic, TopicCount())
        seen.at_s.append(at_s)
        seen.sizes.append(len(tapped.data))
        if value is not None and (
            len(seen.samples) < _SAMPLES or (len(seen.at_s) % 100 == 0 and len(seen.samples) < 99)
        ):
            seen.samples.append(value)
        if at_s - seen.kept_at_s >= THIN_S:
            seen.kept_at_s = at_s
            self._record(at_s, tapped, topic)

    def _note_request(self, at_s: float, key: tuple[str, int], api: str) -> None:
        self._pending_requests.setdefault(key, (at_s, api))  # a retransmission is no new request

    def _note_answer(self, at_s: float, key: tuple[str, int]) -> str:
        asked_at_s, api = self._pending_requests.pop(key, (at_s, ""))
        if api:
            self.delays_s.setdefault(api, []).append(at_s - asked_at_s)
        return api

    # ---- one reader per protocol ----------------------------------------------------------------

    def _read_channel(self, at_s: float, tapped: TappedMessage) -> None:
        raw = tapped.data
        if isinstance(raw, str):
            self.marks |= {"bom"} if raw.startswith("\ufeff") else set()
            self.marks |= {"nul"} if raw.endswith("\0") else set()
        value = channel.decode(raw)
        if isinstance(value, channel.ChannelMessage) and not tapped.sent:
            self._count(at_s, tapped, value.topic, _parse_json_text(value.data))
        elif isinstance(value, rpc.RpcRequest):
            api = f"{value.service}/{value.api_id}"
            self._note_request(at_s, ("", value.id), api)
            self._record(at_s, tapped, rpc.topic_of(value), api)
        elif isinstance(value, (rpc.RpcResponse, channel.Chunk)):
            self._read_answer(at_s, tapped, value)
        elif isinstance(value, channel.Unknown):
            self._record_odd_message(at_s, tapped)
        else:
            kind = type(value).__name__.lower()
            if kind in ("heartbeat", "faults"):
                self._count(at_s, tapped, kind)
            else:
                self._record(at_s, tapped, kind)

    def _read_answer(
        self, at_s: float, tapped: TappedMessage, value: rpc.RpcResponse | channel.Chunk
    ) -> None:
        if isinstance(value, channel.Chunk):
            self.marks.add("chunks")
            whole = self._assembler.add(value)
            if whole is None:
                self._record(at_s, tapped, "part of an answer")
                return
            value = whole
        api = self._note_answer(at_s, ("", value.id))
        if isinstance(tapped.data, bytes):
            self.marks.add("binary")
        elif "chunks" not in self.marks and len(self.answers) < 200:
            self.answers.append(json.loads(tapped.data.strip("\ufeff\0"), strict=False))
        self._note_texts(api, value)
        self._record(at_s, tapped, rpc.topic_of(value) if value.service else "", api, value.code)

    def _note_texts(self, api: str, response: rpc.RpcResponse) -> None:
        if response.code in (0, rpc.NO_STATUS) and response.text:
            if api == f"{rpc.ARM}/{int(rpc.ArmApi.LIST_ACTIONS)}":
                self.lists.append(response.text)
            elif api == f"{rpc.SPORT}/{int(rpc.SportApi.GET_FSM)}":
                self.modes.append(response.text)

    def _read_bus(self, at_s: float, tapped: TappedMessage) -> None:
        assert isinstance(tapped.data, bytes)
        topic = tapped.topic
        if topic.startswith("rt/api/"):
            service = topic.split("/")[2]
            if tapped.sent:
                request = cdr.decode_request(tapped.data, service)
                api = f"{service}/{request.api_id}"
                self._note_request(at_s, (service, request.id), api)
                self._record(at_s, tapped, topic, api)
                return
            response = cdr.decode_response(tapped.data, service)
            if (service, response.id) not in self._pending_requests:
                return  # the answer to another client
            api = self._note_answer(at_s, (service, response.id))
            self._note_texts(api, response)
            self._record(at_s, tapped, topic, api, response.code)
            return
        value = None
        if topic == rpc.ARM_STATE_TOPIC:
            value = json.loads(cdr.decode_text(tapped.data).strip("\ufeff\0"), strict=False)
        self._count(at_s, tapped, topic, value)

    def _read_frames(self, at_s: float, tapped: TappedMessage) -> None:
        assert isinstance(tapped.data, bytes)
        frame = teaching.decode(tapped.data)
        if frame.type != teaching.MessageType.COMMAND:
            kind = "heartbeats" if frame.type == teaching.MessageType.HEARTBEAT else _STATES
            self._count(at_s, tapped, kind if not tapped.sent else f"our {kind}")
            return
        api = f"{frame.command:#04x}"
        key = (api, frame.sequence)
        if tapped.sent:
            self._note_request(at_s, key, api)
            self._record(at_s, tapped, "command", api)
            return
        self._note_answer(at_s, key)
        code = None
        if len(frame.payload) == teaching.SHORT:
            code = int.from_bytes(frame.payload[:4], "big")
        self._record(at_s, tapped, "reply", api, code)

    def _read_a1(self, at_s: float, tapped: TappedMessage) -> None:
        assert isinstance(tapped.data, bytes)
        frame = a1_codec.inspect(tapped.data)
        kind = _STATES if not tapped.sent else "our commands"
        if not tapped.sent and (frame.seal is None or frame.fault is not None):
            kind = "damaged states"
        self._count(at_s, tapped, kind)

    # ---- for judgement --------------------------------------------------------------------------

    def rates(self, from_s: float, to_s: float) -> dict[str, dict[str, float | int]]:
        """Return the rate and the median message size of each topic between two times."""
        found: dict[str, dict[str, float | int]] = {}
        for topic, seen in self.topics.items():
            times = [at_s for at_s in seen.at_s if from_s <= at_s < to_s]
            sizes = sorted(seen.sizes)
            if times:
                hz = len(times) / (to_s - from_s)
                found[topic] = {"hz": round(hz, 2), "bytes": sizes[len(sizes) // 2]}
        return found

    def count(self, topic: str) -> int:
        """Return the number of messages of a topic."""
        return len(self.topics[topic].at_s) if topic in self.topics else 0

    def shape(self, topic: str) -> Shape | None:
        """Return the shape of a topic's messages; None without samples."""
        seen = self.topics.get(topic)
        return shape_of(seen.samples) if seen is not None and seen.samples else None


def activity_of(state: RobotState) -> str:
    """Return the arms' activity as a word for the time line."""
    if state.recording:
        return "recording"
    if state.arms_soft:
        return "soft"
    if state.phase is not Phase.NONE:
        return state.phase.name.lower()
    return "holding a pose" if state.holding else "at rest"


def _parse_json_text(data: object) -> object:
    """Return the data of a message, parsed if it is JSON text."""
    if isinstance(data, str):
        try:
            return json.loads(data.strip("\ufeff\0"), strict=False)
        except ValueError:
            return data
    return data


_READERS: dict[str, Callable[[TrialRecorder, float, TappedMessage], None]] = {
    CHANNEL: TrialRecorder._read_channel,
    BUS: TrialRecorder._read_bus,
    FRAMES: TrialRecorder._read_frames,
    QUADRUPED: TrialRecorder._read_a1,
}
