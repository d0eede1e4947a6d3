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
from rote.wire.services.json_shape import Shape, learn_shape
from rote.wire.teaching import codec as teaching
from rote.wire.webrtc import channel

FRAMES, CHANNEL, BUS, QUADRUPED = "frames", "channel", "bus", "a1"
THIN_S = 0.5
"""Minimum time between two messages of one topic that are kept in the conversation."""
MAX_KEPT = 50_000
"""Maximum number of messages in the conversation."""
_FIRST_SAMPLES, _MAX_SAMPLES = 24, 99
"""Number of messages of a topic kept as samples: the first ones, and with every hundredth one at
most the second number.
"""
_TRACE_S = 0.05
"""Minimum time between two traces."""
_STATES = "states"


class RecordedMessage(NamedTuple):
    """One message of the conversation."""

    at_s: float
    """Seconds since the trial began."""
    sent: bool
    """Whether rote sent it; otherwise the robot did."""
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
    """Speed of the fastest joint."""
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
    """When a message was last kept in the conversation."""


class TrialRecorder:
    """Records the messages and states of one trial."""

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self.began_at = self._loop.time()
        self.conversation: list[RecordedMessage] = []
        self.topics: dict[str, TopicCount] = {}
        self.delays_s: dict[str, list[float]] = {}
        """Delays from request to answer, by service and api id."""
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
        """Time and api of requests without an answer, by service (or command) and number."""
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
        if state.has_joints and state.joints_rad:
            self._first_joints_rad = self._first_joints_rad or state.joints_rad
            if not self.traces or at_s - self.traces[-1].at_s >= _TRACE_S:
                speeds = state.velocities_rad_s or (0.0,)
                away_rad = [
                    abs(now_rad - first_rad)
                    for now_rad, first_rad in zip(
                        state.joints_rad, self._first_joints_rad, strict=False
                    )
                ]
                fastest_rad_s = max(map(abs, speeds))
                self.traces.append(
                    Trace(at_s, fastest_rad_s, max(away_rad, default=0.0), activity_of(state))
                )
        activity = activity_of(state)
        if activity != self._activity:
            self._activity = activity
            for listener in self._activity_listeners:
                listener(at_s, activity)

    # ---- messages -------------------------------------------------------------------------------

    def record_message(self, tapped: TappedMessage) -> None:
        """Record a tapped message; one that cannot be decoded counts as odd."""
        at_s = tapped.at_s - self.began_at
        reader = _READERS[self._protocol]
        try:
            reader(self, at_s, tapped)
        except (DecodeError, RoteError, ValueError, KeyError, TypeError):
            self._record_odd_message(at_s, tapped)

    def _record_odd_message(self, at_s: float, tapped: TappedMessage) -> None:
        """Record a message that rote does not understand; list the first 16 of the robot."""
        text = tapped.data if isinstance(tapped.data, str) else tapped.data.hex()
        if not tapped.sent and text not in self.odd and len(self.odd) < 16:
            self.odd.append(text)
        self._record(at_s, tapped, "unreadable")

    def _record(
        self, at_s: float, tapped: TappedMessage, topic: str, api: str = "", code: int | None = None
    ) -> None:
        """Add a message to the conversation, unless that is full."""
        if len(self.conversation) >= MAX_KEPT:
            return
        data = tapped.data
        is_text = isinstance(data, str)
        text = data if isinstance(data, str) else bytes(data).hex()
        self.conversation.append(
            RecordedMessage(at_s, tapped.sent, topic, text, is_text, api, code)
        )

    def _count_and_sample(
        self, at_s: float, tapped: TappedMessage, topic: str, value: object = None
    ) -> None:
        """Count a message of a topic, and keep its `value` as a sample if more are needed.

        Record the message unless another of this topic was recorded within `THIN_S`.
        """
        counted = self.topics.setdefault(topic, TopicCount())
        counted.at_s.append(at_s)
        counted.sizes.append(len(tapped.data))
        sample_count = len(counted.samples)
        is_hundredth = len(counted.at_s) % 100 == 0
        is_sample = sample_count < _FIRST_SAMPLES or (is_hundredth and sample_count < _MAX_SAMPLES)
        if value is not None and is_sample:
            counted.samples.append(value)
        if at_s - counted.kept_at_s >= THIN_S:
            counted.kept_at_s = at_s
            self._record(at_s, tapped, topic)

    def _note_request(self, at_s: float, key: tuple[str, int], api: str) -> None:
        self._pending_requests.setdefault(key, (at_s, api))  # a retransmission keeps the first time

    def _note_answer(self, at_s: float, key: tuple[str, int]) -> str:
        """Record the delay of an answer; return the api of its request, "" if none is known."""
        requested_s, api = self._pending_requests.pop(key, (at_s, ""))
        if api:
            self.delays_s.setdefault(api, []).append(at_s - requested_s)
        return api

    # ---- one reader per protocol ----------------------------------------------------------------

    def _read_channel(self, at_s: float, tapped: TappedMessage) -> None:
        """Record a message of the data channel, by its type."""
        raw = tapped.data
        if isinstance(raw, str):
            if raw.startswith("\ufeff"):
                self.marks.add("bom")
            if raw.endswith("\0"):
                self.marks.add("nul")
        value = channel.decode(raw)
        if isinstance(value, channel.ChannelMessage) and not tapped.sent:
            self._count_and_sample(at_s, tapped, value.topic, _parse_json_text(value.data))
        elif isinstance(value, rpc.RpcRequest):
            api = f"{value.service}/{value.api_id}"
            self._note_request(at_s, ("", value.id), api)
            self._record(at_s, tapped, rpc.make_topic(value), api)
        elif isinstance(value, (rpc.RpcResponse, channel.Chunk)):
            self._read_answer(at_s, tapped, value)
        elif isinstance(value, channel.Unknown):
            self._record_odd_message(at_s, tapped)
        else:
            kind = type(value).__name__.lower()
            if kind in ("heartbeat", "faults"):
                self._count_and_sample(at_s, tapped, kind)
            else:
                self._record(at_s, tapped, kind)

    def _read_answer(
        self, at_s: float, tapped: TappedMessage, value: rpc.RpcResponse | channel.Chunk
    ) -> None:
        """Record an answer when all its parts have come; keep the JSON of the first 200 answers."""
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
        self._record(at_s, tapped, rpc.make_topic(value) if value.service else "", api, value.code)

    def _note_texts(self, api: str, response: rpc.RpcResponse) -> None:
        """Keep the text of an answer that lists actions or reports the mode."""
        if response.code in (0, rpc.NO_STATUS) and response.text:
            if api == f"{rpc.ARM}/{int(rpc.ArmApi.LIST_ACTIONS)}":
                self.lists.append(response.text)
            elif api == f"{rpc.SPORT}/{int(rpc.SportApi.GET_FSM)}":
                self.modes.append(response.text)

    def _read_bus(self, at_s: float, tapped: TappedMessage) -> None:
        """Record a DDS message: a request, our answer, or a message on another topic."""
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
        self._count_and_sample(at_s, tapped, topic, value)

    def _read_frames(self, at_s: float, tapped: TappedMessage) -> None:
        """Record a teaching frame: a command, its reply, or a state or heartbeat to be counted."""
        assert isinstance(tapped.data, bytes)
        frame = teaching.decode(tapped.data)
        if frame.type != teaching.MessageType.COMMAND:
            kind = "heartbeats" if frame.type == teaching.MessageType.HEARTBEAT else _STATES
            self._count_and_sample(at_s, tapped, kind if not tapped.sent else f"our {kind}")
            return
        api = f"{frame.command:#04x}"
        key = (api, frame.sequence)
        if tapped.sent:
            self._note_request(at_s, key, api)
            self._record(at_s, tapped, "command", api)
            return
        self._note_answer(at_s, key)
        code = None
        if len(frame.payload) == teaching.SHORT:  # a status, which begins with its code
            code = int.from_bytes(frame.payload[:4], "big")
        self._record(at_s, tapped, "reply", api, code)

    def _read_a1(self, at_s: float, tapped: TappedMessage) -> None:
        """Count a frame of an A1: a state, a damaged state, or a command of rote."""
        assert isinstance(tapped.data, bytes)
        frame = a1_codec.inspect(tapped.data)
        kind = _STATES if not tapped.sent else "our commands"
        if not tapped.sent and (frame.seal is None or frame.fault is not None):
            kind = "damaged states"
        self._count_and_sample(at_s, tapped, kind)

    # ---- summaries ------------------------------------------------------------------------------

    def measure_rates(self, from_s: float, to_s: float) -> dict[str, dict[str, float | int]]:
        """Return the rate and the median message size of each topic between two times."""
        rates: dict[str, dict[str, float | int]] = {}
        for topic, counted in self.topics.items():
            times = [at_s for at_s in counted.at_s if from_s <= at_s < to_s]
            sizes = sorted(counted.sizes)
            if times:
                hz = len(times) / (to_s - from_s)
                rates[topic] = {"hz": round(hz, 2), "bytes": sizes[len(sizes) // 2]}
        return rates

    def count_messages(self, topic: str) -> int:
        """Return the number of messages of a topic."""
        return len(self.topics[topic].at_s) if topic in self.topics else 0

    def find_shape(self, topic: str) -> Shape | None:
        """Return the JSON shape that a topic's sample messages have in common; None without any."""
        counted = self.topics.get(topic)
        return learn_shape(counted.samples) if counted is not None and counted.samples else None


def activity_of(state: RobotState) -> str:
    """Return the arms' activity in a state, such as `recording`, as the time line shows it."""
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
