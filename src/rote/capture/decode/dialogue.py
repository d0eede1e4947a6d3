"""The dialogue in a data channel: requests with their responses, states, faults and a time line.

Its input, from decryption or from the phone app's log, is values of wire/webrtc/channel.py with
times.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rote.capture.model import TimelineEntry, iso
from rote.errors import DecodeError
from rote.wire.services import faults as wire_faults
from rote.wire.services import rpc
from rote.wire.services.rpc import ArmApi, ArmState, RpcRequest, RpcResponse, SportApi
from rote.wire.webrtc import channel

MAX_OPEN = 4096
"""Maximum number of requests that wait for a response at the same time."""


class Pair(NamedTuple):
    """A request and its response, if one came."""

    asked_ns: int
    request: RpcRequest
    answered_ns: int | None = None
    response: RpcResponse | None = None

    @property
    def name(self) -> str:
        """The service, number and name of the request, such as `arm 7110 teach`."""
        api = rpc.APIS.get((self.request.service, self.request.api_id))
        api_name = f" {api.name.lower().replace('_', ' ')}" if api is not None else ""
        return f"{self.request.service} {self.request.api_id}{api_name}"

    @property
    def latency_s(self) -> float | None:
        """Time from request to response in seconds."""
        return None if self.answered_ns is None else (self.answered_ns - self.asked_ns) / 1e9

    @property
    def refused(self) -> bool:
        """Whether the robot refused, so that nothing happened."""
        return self.response is not None and self.response.code != 0

    @property
    def outcome(self) -> str:
        """The outcome as text."""
        if self.response is None:
            return "no answer"
        code = self.response.code
        if code == 0:
            return "done"
        return f"refused with {code}: {rpc.explain(self.request.service, code)[0]}"

    def document(self) -> dict[str, Any]:
        """Return what `--json` shows."""
        return {
            "asked": iso(self.asked_ns),
            "latency_s": self.latency_s,
            "service": self.request.service,
            "api_id": self.request.api_id,
            "id": self.request.id,
            "name": self.name,
            "parameter": self.request.parameter,
            "code": None if self.response is None else self.response.code,
            "data": None if self.response is None else self.response.data,
        }


class StateChange(NamedTuple):
    """A change of the arms' state."""

    time_ns: int
    state: ArmState


class FaultNote(NamedTuple):
    """A fault of the robot that began or ended."""

    time_ns: int
    present: bool
    fault: wire_faults.Fault


def sender_is_robot(value: channel.Value) -> bool | None:
    """Return whether the robot sends such a message (True) or its client; None if either may."""
    if isinstance(value, channel.FromRobot):
        return True
    if isinstance(value, channel.FromClient):
        return False
    if isinstance(value, channel.Validation) and value.data == channel.VALIDATION_OK:
        return True
    if isinstance(value, channel.Inner) and value.answer:
        return True
    return None


@dataclass(slots=True)
class _ActionSpan:
    """A teaching session or a play that has begun."""

    start_ns: int
    evidence: str
    keep_alives: int = 0
    reported: bool = False
    """Whether the robot's state has shown the play."""


_ACTIVITIES_AFTER_PLAY = (rpc.RpcActivity.IDLE, rpc.RpcActivity.RELEASING)
_REFUSED = "refused"
"""Kind of the entry for any refused request."""
_KIND_BY_API: dict[tuple[str, int], str] = {
    ("arm", ArmApi.LIST_ACTIONS): "list",
    ("arm", ArmApi.RENAME_TAUGHT): "rename",
    ("arm", ArmApi.DELETE_TAUGHT): "delete",
    ("arm", ArmApi.STOP_TAUGHT): "stop",
    ("arm", ArmApi.EXECUTE_PRESET): "play",
    ("sport", SportApi.SET_FSM): "mode",
}


@dataclass(slots=True)
class Dialogue:
    """Collects the requests, states and faults of one session.

    `began_ns` is when the session began, if that is known.
    """

    began_ns: int | None = None
    pairs: list[Pair] = field(default_factory=list)
    states: list[StateChange] = field(default_factory=list)
    faults: list[FaultNote] = field(default_factory=list)
    undecodable: int = 0
    """Responses whose parts do not fit together."""
    _entries: list[TimelineEntry] = field(default_factory=list)
    _open: dict[tuple[str, int, int], int] = field(default_factory=dict)
    """Requests that wait for a response: service, API and request id -> index in `pairs`."""
    _parts: channel.Assembler = field(default_factory=channel.Assembler)
    _present: set[tuple[int, int]] = field(default_factory=set)
    """The faults that the robot has now: source and code."""
    _teaching: _ActionSpan | None = None
    _playing: _ActionSpan | None = None
    _connected: bool = False

    def add_message(self, time_ns: int, value: channel.Value) -> None:
        """Process one message."""
        if isinstance(value, channel.Chunk):
            try:
                whole = self._parts.add(value)
            except DecodeError:
                self.undecodable += 1
                return
            if whole is not None:
                self._add_response(time_ns, whole)
        elif isinstance(value, RpcRequest):
            self._add_request(time_ns, value)
        elif isinstance(value, RpcResponse):
            self._add_response(time_ns, value)
        elif isinstance(value, channel.Validation):
            self._handle_validation(time_ns, value)
        elif isinstance(value, channel.ChannelMessage) and value.topic == rpc.ARM_STATE_TOPIC:
            self._handle_arm_state(time_ns, value.data)
        elif isinstance(value, wire_faults.Faults):
            self._handle_faults(time_ns, value)

    def timeline(self) -> list[TimelineEntry]:
        """Return the time line so far, sorted by start."""
        entries = list(self._entries)
        entries += [
            _make_certain_entry(
                _REFUSED if pair.refused else kind,
                pair.asked_ns,
                pair.answered_ns,
                _describe_pair(pair),
            )
            for pair in self.pairs
            if (kind := _KIND_BY_API.get((pair.request.service, pair.request.api_id)))
        ]
        if self._teaching is not None:
            entries.append(self._make_teach_entry(self._teaching, None, "its end was not captured"))
        if self._playing is not None:
            entries.append(
                _make_certain_entry("play", self._playing.start_ns, None, self._playing.evidence)
            )
        return sorted(entries, key=lambda entry: entry.start_ns)

    # ---- requests and responses -----------------------------------------------------------------

    def _add_request(self, time_ns: int, request: RpcRequest) -> None:
        """Record a request that waits for its response; the oldest is dropped beyond `MAX_OPEN`."""
        self.pairs.append(Pair(time_ns, request))
        if len(self._open) >= MAX_OPEN:
            del self._open[next(iter(self._open))]
        key = (request.service, request.api_id, request.id)
        self._open.pop(key, None)
        self._open[key] = len(self.pairs) - 1
        if (request.service, request.api_id) == ("arm", ArmApi.TEACH):
            self._handle_teach_request(time_ns, request)

    def _add_response(self, time_ns: int, response: RpcResponse) -> None:
        """Match a response with its request; begin a play, or record that it was refused."""
        index = self._open.pop((response.service, response.api_id, response.id), None)
        if index is None:
            return
        pair = self.pairs[index]._replace(answered_ns=time_ns, response=response)
        self.pairs[index] = pair
        api = (response.service, response.api_id)
        if api == ("arm", ArmApi.PLAY_TAUGHT):
            if not pair.refused:
                self._end_play(time_ns, "another began")
                self._playing = _ActionSpan(pair.asked_ns, _describe_pair(pair))
                # The robot may report that it plays before it answers.
                self._playing.reported = self._current_activity() is rpc.RpcActivity.PLAYING
            else:
                self._entries.append(
                    _make_certain_entry(_REFUSED, pair.asked_ns, time_ns, _describe_pair(pair))
                )
        elif api == ("arm", ArmApi.TEACH):
            self._handle_teach_response(time_ns, pair)

    def _handle_teach_request(self, time_ns: int, request: RpcRequest) -> None:
        """Begin, keep alive or end a teaching session.

        The name in the request decides: None ends the session, and an empty name keeps it alive.
        """
        try:
            name = rpc.decode_teach(request.parameter)
        except DecodeError:
            return
        if name is None:
            self._end_teach(time_ns, "it was ended")
        elif name:
            self._end_teach(time_ns, "another began")
            self._teaching = _ActionSpan(time_ns, f"teaching {name!r} was requested (arm 7110)")
        elif self._teaching is not None:
            self._teaching.keep_alives += 1

    def _handle_teach_response(self, time_ns: int, pair: Pair) -> None:
        """Record a refusal and forget the teaching session, if the robot refused to begin it."""
        span = self._teaching
        if span is not None and span.start_ns == pair.asked_ns and pair.refused:
            self._entries.append(
                _make_certain_entry(_REFUSED, pair.asked_ns, time_ns, _describe_pair(pair))
            )
            self._teaching = None

    def _end_teach(self, time_ns: int, why: str) -> None:
        if self._teaching is not None:
            self._entries.append(self._make_teach_entry(self._teaching, time_ns, why))
            self._teaching = None

    @staticmethod
    def _make_teach_entry(span: _ActionSpan, end_ns: int | None, why: str) -> TimelineEntry:
        evidence = f"{span.evidence}, kept alive {span.keep_alives} times, {why}"
        return _make_certain_entry("teach", span.start_ns, end_ns, evidence)

    def _end_play(self, time_ns: int, why: str) -> None:
        if self._playing is not None:
            evidence = f"{self._playing.evidence}; {why}"
            self._entries.append(
                _make_certain_entry("play", self._playing.start_ns, time_ns, evidence)
            )
            self._playing = None

    # ---- messages without a request -------------------------------------------------------------

    def _handle_validation(self, time_ns: int, value: channel.Validation) -> None:
        """Record when the robot accepted the connection."""
        if value.data == channel.VALIDATION_OK and not self._connected:
            start = time_ns if self.began_ns is None else self.began_ns
            self._entries.append(
                _make_certain_entry("connect", start, time_ns, "the robot sent: Validation Ok.")
            )
            self._connected = True
        elif self.began_ns is None:  # the challenge, with which a connection begins
            self.began_ns = time_ns

    def _handle_arm_state(self, time_ns: int, data: object) -> None:
        """Record a change of the arms' state; it may show that a play has ended."""
        try:
            state = rpc.decode_arm_state(data if isinstance(data, str) else "")
        except DecodeError:
            return
        if self.states and self.states[-1].state == state:
            return
        self.states.append(StateChange(time_ns, state))
        if self._playing is not None:
            if state.activity is rpc.RpcActivity.PLAYING:
                self._playing.reported = True
            elif self._playing.reported and state.activity in _ACTIVITIES_AFTER_PLAY:
                self._end_play(time_ns, f"then the arms were {state.activity.value}")

    def _current_activity(self) -> rpc.RpcActivity:
        return self.states[-1].state.activity if self.states else rpc.RpcActivity.IDLE

    def _handle_faults(self, time_ns: int, message: wire_faults.Faults) -> None:
        """Record which faults began and which ended with this message."""
        reported = {(fault.source, fault.code): fault for fault in message.faults}
        began, ended = reported.keys() - self._present, set[tuple[int, int]]()
        if message.change is wire_faults.Change.REMOVED:
            began, ended = set(), reported.keys() & self._present
        elif message.change is wire_faults.Change.ALL:
            ended = self._present - reported.keys()
        for key in sorted(ended):
            fault = reported.get(key, wire_faults.Fault(0, *key))  # 0: its time is not known
            self.faults.append(FaultNote(time_ns, False, fault))
        for key in sorted(began):
            self.faults.append(FaultNote(time_ns, True, reported[key]))
        self._present = (self._present - ended) | began


def _make_certain_entry(
    kind: str, start_ns: int, end_ns: int | None, evidence: str
) -> TimelineEntry:
    """Return an entry of the time line for what was read in messages, and not inferred."""
    return TimelineEntry(kind, start_ns, end_ns, 1.0, evidence)


def _describe_pair(pair: Pair) -> str:
    request = pair.request
    parameter = f" with {request.parameter[:80]}" if request.parameter else ""
    return f"{pair.name}{parameter}: {pair.outcome}"
