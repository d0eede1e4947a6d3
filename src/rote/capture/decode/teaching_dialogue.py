"""Teaching frames of one conversation read as a dialogue: each request with its answer.

A reply has the command and the sequence number of its request, or one number more (the documents
allow both; the first answer shows which). A request that is sent again, byte for byte, is the same
request. The robot's end is recognised by frames that only one end can send; see `_find_robot_side`.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rote import messages as m
from rote.capture.model import iso
from rote.capture.read.packets import replace_unprintable
from rote.errors import DecodeError
from rote.wire.teaching import codec as teaching
from rote.wire.teaching.fields import (
    STATUS,
    FrameDirection,
    find_direction,
    find_layout,
    read_fields,
)

Endpoint = tuple[str, int]
"""Address and port."""
ROBOT_PORT = 49504
_REPEAT_NS = 10 * 10**9
"""Time within which the same datagram is a repetition; a robot remembers it for as long."""
_MAX_DECODED = 4096
"""Maximum number of distinct decoded requests that are cached per client."""


class SeenFrame(NamedTuple):
    """A command or a reply of a capture."""

    time_ns: int
    datagram: bytes


class SeenSide(NamedTuple):
    """One direction of a conversation in teaching frames."""

    source: str
    """Address and port as text."""
    frames: Sequence[SeenFrame]
    reports: bool = False
    """Whether it sent state frames, as only a robot does."""
    poses: int = 0
    """Streamed poses, which only a client sends."""


@dataclass(slots=True)
class Exchange:
    """One request and its answer."""

    time_ns: int
    command: int
    sequence: int
    layout: str
    """The kind of frame, a key of `fields.BY_KEY`; empty if none fits."""
    client: str
    request: m.Command | None
    """The decoded request; None if its payload does not fit the command."""
    robot_captured: bool
    """Whether any of the robot's frames were captured, so that a missing answer is meaningful."""
    description: str
    """The request as text, without the name of a played action."""
    sent: int = 1
    """Number of times it was sent."""
    answer: m.Reply | None = None
    answered_ns: int | None = None
    note: str = ""
    """The note in the robot's answer."""
    action: str = ""
    """The name of the action that is saved or played, if known."""
    _datagram: bytes = b""

    def is_repeated_by(self, datagram: bytes, time_ns: int) -> bool:
        """Whether a datagram is this request, sent again."""
        return datagram == self._datagram and time_ns - self.time_ns < _REPEAT_NS

    @property
    def code(self) -> int | None:
        """The code of the answer; None without one."""
        if self.answer is None:
            return None
        return self.answer.code if isinstance(self.answer, m.Status) else m.Code.OK

    @property
    def accepted(self) -> bool:
        """Whether the robot accepted the request, or its side was not captured at all."""
        return self.code == m.Code.OK or (self.code is None and not self.robot_captured)

    @property
    def refused(self) -> bool:
        """Whether the robot refused the request."""
        return self.code not in (None, m.Code.OK)

    @property
    def latency_s(self) -> float | None:
        """Seconds from the first sending of the request to the answer; None without an answer."""
        return None if self.answered_ns is None else (self.answered_ns - self.time_ns) / 1e9

    @property
    def request_text(self) -> str:
        """The request as text, with the name of a played action."""
        if self.action and isinstance(self.request, m.PlayAction):
            return replace_unprintable(f"{self.description}, {self.action!r}")
        return self.description

    @property
    def outcome(self) -> str:
        """The outcome as text."""
        code = self.code
        if code is None:
            missing = "no answer in this capture"
            if self.robot_captured:
                return missing
            return f"{missing}, which has none of the robot's messages"
        note = f" ({replace_unprintable(self.note)})" if self.note else ""
        if code != m.Code.OK:
            return f"refused with {code:d}: {m.explain(code)[0]}{note}"
        if isinstance(self.answer, m.ActionList):
            names = ", ".join(f"{entry.name!r}" for entry in self.answer.actions)
            return replace_unprintable(f"done: {names or 'no actions'}")
        return f"done{note}"

    def document(self) -> dict[str, Any]:
        """Return what `--json` shows."""
        listed = self.answer.actions if isinstance(self.answer, m.ActionList) else ()
        return {
            "time": iso(self.time_ns),
            "client": self.client,
            "command": f"0x{self.command:02x}",
            "frame": self.layout,
            "sequence": self.sequence,
            "asked": self.request_text,
            "action": self.action or None,
            "sent": self.sent,
            "code": self.code,
            "note": self.note,
            "outcome": self.outcome,
            "latency_s": self.latency_s,
            "listed": [entry.name for entry in listed],
        }


@dataclass(slots=True)
class TeachingDialogue:
    """All requests and answers in teaching frames, in the order of the requests."""

    exchanges: list[Exchange] = field(default_factory=list)
    commands: dict[int, int] = field(default_factory=dict)
    """Number of requests of each command, with repetitions; of replies if only they were captured.
    """
    saved: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    played: list[str] = field(default_factory=list)

    @property
    def actions(self) -> list[str]:
        """Every action that was saved, listed or played, once."""
        return list(dict.fromkeys([*self.listed, *self.saved, *self.played]))


def read_dialogue(conversations: Sequence[Sequence[SeenSide]]) -> TeachingDialogue:
    """Return the dialogue of all conversations together, each with one or two sides."""
    dialogue = TeachingDialogue()
    for sides in conversations:
        _read_conversation(dialogue, sides)
    dialogue.exchanges.sort(key=lambda exchange: exchange.time_ns)
    _name_actions(dialogue)
    dialogue.commands = dict(sorted(dialogue.commands.items()))
    return dialogue


def _read_conversation(dialogue: TeachingDialogue, sides: Sequence[SeenSide]) -> None:
    """Add the requests and replies of one conversation to `dialogue`."""
    robot = _find_robot_side(sides)
    merged = sorted(
        (seen.time_ns, index, seen.datagram)
        for index, side in enumerate(sides)
        for seen in side.frames
    )
    only_robot = len(sides) == 1 and robot == 0  # then its replies are counted as requests
    matcher = _RequestMatcher(
        client=next((side.source for index, side in enumerate(sides) if index != robot), ""),
        robot_captured=robot is not None and bool(sides[robot].frames or sides[robot].reports),
    )
    for time_ns, index, datagram in merged:
        frame = teaching.decode(datagram)
        if index != robot or only_robot:
            dialogue.commands[frame.command] = dialogue.commands.get(frame.command, 0) + 1
        if index == robot:
            matcher.add_reply(time_ns, frame)
        else:
            matcher.add_request(time_ns, frame, datagram)
    poses = sum(side.poses for side in sides)
    if poses:
        sync = int(teaching.CommandId.PARAMETER_SYNC)
        dialogue.commands[sync] = dialogue.commands.get(sync, 0) + poses
    dialogue.exchanges += matcher.exchanges


def _find_robot_side(sides: Sequence[SeenSide]) -> int | None:
    """Return the index of the robot's side; None if only a client was captured."""
    scores = [_score_as_robot(side) for side in sides]
    if len(sides) == 2:
        if scores[0] != scores[1]:
            return 0 if scores[0] > scores[1] else 1
        first_ns = [min((seen.time_ns for seen in side.frames), default=2**63) for side in sides]
        return 1 if first_ns[0] <= first_ns[1] else 0  # the client sends first
    return 0 if scores[0] > 0 else None


def _score_as_robot(side: SeenSide) -> int:
    """Return a score: above 0 for a robot, below 0 for a client."""
    if side.reports:
        return 1000
    score = 1 if side.source.endswith(f":{ROBOT_PORT}") else 0
    for seen in side.frames[:200]:
        frame = teaching.decode(seen.datagram)
        direction = find_direction(frame.type, frame.command, frame.payload)
        score += 2 * ((direction is FrameDirection.REPLY) - (direction is FrameDirection.REQUEST))
    return score


class FrameDirections:
    """Determines the direction of each frame of a capture in one pass."""

    def __init__(self) -> None:
        self._robots: set[tuple[Endpoint, Endpoint]] = set()
        """Directions in which the sender is known to be a robot."""
        self._clients: set[tuple[Endpoint, Endpoint]] = set()
        """Directions in which the sender is known to be a client."""
        self._requests: dict[tuple[Endpoint, Endpoint, int], int] = {}
        """The newest request of each command and direction, by its sequence number."""

    def determine(
        self, source: Endpoint, destination: Endpoint, frame: teaching.Frame
    ) -> FrameDirection:
        """Return the direction of one frame, from earlier frames of its flow or from its content.

        If both leave it open, the frame is a reply if its number fits a request, or if its port is
        that of a robot.
        """
        flow, reverse = (source, destination), (destination, source)
        direction = find_direction(frame.type, frame.command, frame.payload)
        if direction is FrameDirection.EITHER:
            return direction
        if direction is None or frame.type == teaching.MessageType.COMMAND:
            if flow in self._robots or reverse in self._clients:
                direction = FrameDirection.REPLY
            elif flow in self._clients or reverse in self._robots:
                direction = FrameDirection.REQUEST
        if direction is None:
            # A reply has the number of its request, or one more.
            number = self._requests.get((*reverse, frame.command))
            is_answer = number is not None and (frame.sequence - number) & 0xFFFF in (0, 1)
            is_robot = is_answer or source[1] == ROBOT_PORT
            direction = FrameDirection.REPLY if is_robot else FrameDirection.REQUEST
            if is_answer:
                self._robots.add(flow)
        elif direction is FrameDirection.REQUEST:
            self._clients.add(flow)
        else:
            self._robots.add(flow)
        if direction is FrameDirection.REQUEST:
            self._requests[*flow, frame.command] = frame.sequence
        return direction


class _Request(NamedTuple):
    """A decoded request; for the fields see `Exchange`."""

    request: m.Command | None
    layout: str
    description: str


class _RequestMatcher:
    """Matches the replies of one conversation with their requests."""

    def __init__(self, client: str, robot_captured: bool) -> None:
        self.exchanges: list[Exchange] = []
        self._client = client
        self._robot_captured = robot_captured
        self._waiting: dict[tuple[int, int], Exchange] = {}
        """The newest request with each command and sequence number."""
        self._decoded: dict[tuple[int, int, bytes], _Request] = {}
        """Decoded requests by type, command and payload."""
        self._reply_offset: int | None = None
        """Difference between the numbers of a reply and its request, once known."""

    def add_request(self, time_ns: int, frame: teaching.Frame, datagram: bytes) -> None:
        """Add a request, or count it as sent again."""
        key = frame.command, frame.sequence
        previous = self._waiting.get(key)
        if previous is not None and previous.is_repeated_by(datagram, time_ns):
            previous.sent += 1
            return
        request, layout, description = self._read_request(frame)
        exchange = Exchange(
            time_ns,
            frame.command,
            frame.sequence,
            layout,
            self._client,
            request,
            self._robot_captured,
            description,
            _datagram=datagram,
        )
        self._waiting[key] = exchange
        self.exchanges.append(exchange)

    def _read_request(self, frame: teaching.Frame) -> _Request:
        """Decode a request; cached, since most are repeated."""
        key = frame.type, frame.command, frame.payload
        decoded = self._decoded.get(key)
        if decoded is None:
            request: m.Command | None = None
            with suppress(DecodeError):
                request = teaching.decode_command(frame.command, frame.payload)
            layout = find_layout(frame.type, frame.command, frame.payload, reply=False)
            description = replace_unprintable(_describe_request(frame.command, request))
            decoded = _Request(request, layout.key if layout else "", description)
            if len(self._decoded) < _MAX_DECODED:
                self._decoded[key] = decoded
        return decoded

    def add_reply(self, time_ns: int, frame: teaching.Frame) -> None:
        """Match a reply with its request; the first match shows how replies are numbered."""
        possible_offsets = (0, 1) if self._reply_offset is None else (self._reply_offset,)
        for difference in possible_offsets:
            exchange = self._waiting.get((frame.command, (frame.sequence - difference) & 0xFFFF))
            if exchange is None:
                continue
            if exchange.answer is None:
                try:
                    exchange.answer = teaching.decode_reply(frame.command, frame.payload)
                except DecodeError:
                    return
                exchange.answered_ns = time_ns
                exchange.note = _read_status_note(frame)
                self._reply_offset = difference
            return


def _read_status_note(frame: teaching.Frame) -> str:
    """Return the note in a status reply; empty for other replies."""
    layout = find_layout(frame.type, frame.command, frame.payload, reply=True)
    values = read_fields(layout.fields, frame.payload) if layout is STATUS else ()
    return next((str(value.value) for value in values if value.field.name == "note"), "")


def _name_actions(dialogue: TeachingDialogue) -> None:
    """Set the names of saved and played actions, and collect all names.

    A play states only an index into the newest list of actions.
    """
    known: list[str] = []
    for exchange in dialogue.exchanges:
        if isinstance(exchange.request, m.SaveAction):
            exchange.action = exchange.request.name
            if exchange.accepted:
                dialogue.saved.append(exchange.action)
                known.append(exchange.action)
        elif isinstance(exchange.answer, m.ActionList):
            known = [entry.name for entry in exchange.answer.actions]
            dialogue.listed += known
        elif isinstance(exchange.request, m.PlayAction):
            index = exchange.request.action - 1  # actions are numbered from 1
            if 0 <= index < len(known):
                exchange.action = known[index]
                if exchange.accepted:
                    dialogue.played.append(exchange.action)
    for names in (dialogue.saved, dialogue.listed, dialogue.played):
        names[:] = dict.fromkeys(map(replace_unprintable, names))


def _describe_request(command: int, request: m.Command | None) -> str:
    if request is None:
        return f"command 0x{command:02x} with a payload that cannot be read"
    description = _DESCRIPTIONS.get(type(request))
    if description is None:
        return type(request).__name__
    return description if isinstance(description, str) else description(request)


def _describe_save(request: m.SaveAction) -> str:
    frames = f", {request.frames} frame{'s' * (request.frames != 1)}" if request.frames else ""
    return f"save {request.name!r}, {request.duration_ms / 1000:g} s{frames}"


_DESCRIPTIONS: dict[type, str | Callable[[Any], str]] = {
    m.TakeControl: "take control",
    m.ReleaseControl: "release control",
    m.ChangeMode: lambda request: f"change the mode to {request.mode:d}",
    m.SyncParameters: "sync parameters",
    m.MoveByHand: lambda request: (
        f"move by hand: {request.script}, {request.duration_ms / 1000:g} s"
    ),
    m.BeginStream: "begin a stream of poses",
    m.Subscribe: lambda request: (
        f"subscribe to {'all' if request.all_joints else 'the first 12'} joints"
    ),
    m.SignalReady: "ready",
    m.EnterTeaching: "enter teaching",
    m.KeepTeaching: "keep teaching",
    m.ExitTeaching: "exit teaching",
    m.Record: lambda request: f"record {'start' if request.on else 'stop'}",
    m.ListActions: "list actions",
    m.SaveAction: _describe_save,
    m.PlayAction: lambda request: f"play {request.action}",
    m.StopMotion: "stop",
}
