"""Teaching frames of one conversation read as a dialogue: each request with its answer.

A reply has the command and the sequence number of its request, or one number more (the documents
allow both; the first answer shows which). A request that is sent again, byte for byte, is the same
request. The robot's end is recognised by frames that only one end can send; see `_robot_side`.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rote import messages as m
from rote.capture.model import iso
from rote.capture.read.packets import harmless
from rote.errors import DecodeError
from rote.wire.teaching import codec as teaching
from rote.wire.teaching.fields import STATUS, FrameDirection, direction_of, layout_of, read

End = tuple[str, int]
"""Address and port."""
ROBOT_PORT = 49504
_REPEAT_NS = 10 * 10**9
"""Time within which the same datagram is a repetition: as long as a robot remembers it."""
_MAX_KNOWN = 4096
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
    """The kind of frame, a key of `teaching_fields.BY_KEY`; empty if none fits."""
    client: str
    request: m.Command | None
    """None if the payload does not fit the command."""
    robot_captured: bool
    """Whether any of the robot's frames were captured, so that a missing answer is meaningful."""
    description: str
    """Description of the request, without the name of a played action."""
    sent: int = 1
    """Number of times it was sent."""
    answer: m.Reply | None = None
    answered_ns: int | None = None
    note: str = ""
    """The note in the robot's answer."""
    action: str = ""
    """The name of the action that is saved or played, if known."""
    _datagram: bytes = b""

    @property
    def code(self) -> int | None:
        """The code of the answer; None without one."""
        if self.answer is None:
            return None
        return self.answer.code if isinstance(self.answer, m.Status) else m.Code.OK

    @property
    def accepted(self) -> bool:
        """Whether the robot accepted, or its answers were not captured at all."""
        return self.code == m.Code.OK or (self.code is None and not self.robot_captured)

    @property
    def refused(self) -> bool:
        """Whether the robot refused."""
        return self.code not in (None, m.Code.OK)

    @property
    def latency_s(self) -> float | None:
        """From the first request to the answer."""
        return None if self.answered_ns is None else (self.answered_ns - self.time_ns) / 1e9

    @property
    def request_text(self) -> str:
        """Description of the request, with the name of a played action."""
        if self.action and isinstance(self.request, m.PlayAction):
            return harmless(f"{self.description}, {self.action!r}")
        return self.description

    @property
    def outcome(self) -> str:
        """The outcome as text."""
        code = self.code
        if code is None:
            missing = "no answer in this capture"
            return missing if self.robot_captured else f"{missing}, which has none of the robot's"
        note = f" ({harmless(self.note)})" if self.note else ""
        if code != m.Code.OK:
            return f"refused with {code:d}: {m.explain(code)[0]}{note}"
        if isinstance(self.answer, m.ActionList):
            names = ", ".join(f"{entry.name!r}" for entry in self.answer.actions)
            return harmless(f"done: {names or 'no actions'}")
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
    """Requests of each command, repetitions included; replies if only they were captured."""
    saved: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    played: list[str] = field(default_factory=list)

    @property
    def actions(self) -> list[str]:
        """Every action that was saved, listed or played, once."""
        return list(dict.fromkeys([*self.listed, *self.saved, *self.played]))


def read_dialogue(conversations: Sequence[Sequence[SeenSide]]) -> TeachingDialogue:
    """Return the dialogue of all conversations together, each with one or two sides."""
    found = TeachingDialogue()
    for sides in conversations:
        _read_conversation(found, sides)
    found.exchanges.sort(key=lambda one: one.time_ns)
    _name_actions(found)
    found.commands = dict(sorted(found.commands.items()))
    return found


def _read_conversation(found: TeachingDialogue, sides: Sequence[SeenSide]) -> None:
    robot = _robot_side(sides)
    merged = sorted(
        (seen.time_ns, side, seen.datagram) for side, one in enumerate(sides) for seen in one.frames
    )
    alone = len(sides) == 1 and robot == 0
    matched = _Matching(
        client=next((one.source for side, one in enumerate(sides) if side != robot), ""),
        robot_captured=robot is not None and bool(sides[robot].frames or sides[robot].reports),
    )
    for time_ns, side, datagram in merged:
        frame = teaching.decode(datagram)
        if side != robot or alone:
            found.commands[frame.command] = found.commands.get(frame.command, 0) + 1
        if side == robot:
            matched.answer(time_ns, frame)
        else:
            matched.ask(time_ns, frame, datagram)
    poses = sum(one.poses for one in sides)
    if poses:
        sync = int(teaching.CommandId.PARAMETER_SYNC)
        found.commands[sync] = found.commands.get(sync, 0) + poses
    found.exchanges += matched.exchanges


def _robot_side(sides: Sequence[SeenSide]) -> int | None:
    """Return which side is the robot; None if only a client was captured."""
    scores = [_robot_score(side) for side in sides]
    if len(sides) == 2:
        if scores[0] != scores[1]:
            return 0 if scores[0] > scores[1] else 1
        first = [min((seen.time_ns for seen in side.frames), default=2**63) for side in sides]
        return 1 if first[0] <= first[1] else 0  # the client sends first
    return 0 if scores[0] > 0 else None


def _robot_score(side: SeenSide) -> int:
    """Return a score: above 0 for a robot, below 0 for a client."""
    if side.reports:
        return 1000
    score = 1 if side.source.endswith(f":{ROBOT_PORT}") else 0
    for seen in side.frames[:200]:
        frame = teaching.decode(seen.datagram)
        direction = direction_of(frame.type, frame.command, frame.payload)
        score += 2 * ((direction is FrameDirection.REPLY) - (direction is FrameDirection.REQUEST))
    return score


class FrameDirections:
    """Determines the direction of each frame of a capture in one pass."""

    def __init__(self) -> None:
        self._robots: set[tuple[End, End]] = set()
        """Directions in which a robot is known to speak."""
        self._clients: set[tuple[End, End]] = set()
        self._asked: dict[tuple[End, End, int], int] = {}
        """The newest request of each command and direction, by its sequence number."""

    def of(self, source: End, destination: End, frame: teaching.Frame) -> FrameDirection:
        """Return the direction of one frame."""
        flow, back = (source, destination), (destination, source)
        direction = direction_of(frame.type, frame.command, frame.payload)
        if direction is FrameDirection.EITHER:
            return direction
        if direction is None or frame.type == teaching.MessageType.COMMAND:
            if flow in self._robots or back in self._clients:
                direction = FrameDirection.REPLY
            elif flow in self._clients or back in self._robots:
                direction = FrameDirection.REQUEST
        if direction is None:
            asked = self._asked.get((*back, frame.command))
            answers = asked is not None and (frame.sequence - asked) & 0xFFFF in (0, 1)
            robot = answers or source[1] == ROBOT_PORT
            direction = FrameDirection.REPLY if robot else FrameDirection.REQUEST
            if answers:
                self._robots.add(flow)
        elif direction is FrameDirection.REQUEST:
            self._clients.add(flow)
        else:
            self._robots.add(flow)
        if direction is FrameDirection.REQUEST:
            self._asked[*flow, frame.command] = frame.sequence
        return direction


class _Request(NamedTuple):
    """A decoded request; for the fields see `Exchange`."""

    request: m.Command | None
    layout: str
    description: str


class _Matching:
    """Matches the replies of one conversation with their requests."""

    def __init__(self, client: str, robot_captured: bool) -> None:
        self.exchanges: list[Exchange] = []
        self._client = client
        self._robot_captured = robot_captured
        self._waiting: dict[tuple[int, int], Exchange] = {}
        self._known: dict[tuple[int, int, bytes], _Request] = {}
        self._ahead: int | None = None
        """Difference between the numbers of a reply and its request, once known."""

    def ask(self, time_ns: int, frame: teaching.Frame, datagram: bytes) -> None:
        key = frame.command, frame.sequence
        known = self._waiting.get(key)
        if (
            known is not None
            and known._datagram == datagram
            and time_ns - known.time_ns < _REPEAT_NS
        ):
            known.sent += 1
            return
        request, layout, description = self._read_request(frame)
        one = Exchange(
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
        self._waiting[key] = one
        self.exchanges.append(one)

    def _read_request(self, frame: teaching.Frame) -> _Request:
        """Decode a request; cached, since most are repeated."""
        key = frame.type, frame.command, frame.payload
        known = self._known.get(key)
        if known is None:
            request: m.Command | None = None
            with suppress(DecodeError):
                request = teaching.decode_command(frame.command, frame.payload)
            layout = layout_of(frame.type, frame.command, frame.payload, reply=False)
            description = harmless(_describe_request(frame.command, request))
            known = _Request(request, layout.key if layout else "", description)
            if len(self._known) < _MAX_KNOWN:
                self._known[key] = known
        return known

    def answer(self, time_ns: int, frame: teaching.Frame) -> None:
        for ahead in (0, 1) if self._ahead is None else (self._ahead,):
            one = self._waiting.get((frame.command, (frame.sequence - ahead) & 0xFFFF))
            if one is None:
                continue
            if one.answer is None:
                try:
                    one.answer = teaching.decode_reply(frame.command, frame.payload)
                except DecodeError:
                    return
                one.answered_ns = time_ns
                one.note = _status_note(frame)
                self._ahead = ahead
            return


def _status_note(frame: teaching.Frame) -> str:
    layout = layout_of(frame.type, frame.command, frame.payload, reply=True)
    values = read(layout.fields, frame.payload) if layout is STATUS else ()
    return next((str(value.value) for value in values if value.field.name == "note"), "")


def _name_actions(found: TeachingDialogue) -> None:
    """Give plays their names by the newest list; a save adds to its end."""
    known: list[str] = []
    for one in found.exchanges:
        if isinstance(one.request, m.SaveAction):
            one.action = one.request.name
            if one.accepted:
                found.saved.append(one.action)
                known.append(one.action)
        elif isinstance(one.answer, m.ActionList):
            known = [entry.name for entry in one.answer.actions]
            found.listed += known
        elif isinstance(one.request, m.PlayAction) and 0 < one.request.action <= len(known):
            one.action = known[one.request.action - 1]
            if one.accepted:
                found.played.append(one.action)
    for names in (found.saved, found.listed, found.played):
        names[:] = dict.fromkeys(map(harmless, names))


def _describe_request(command: int, request: m.Command | None) -> str:
    if request is None:
        return f"command 0x{command:02x} with a payload that cannot be read"
    message = _DESCRIPTIONS.get(type(request))
    if message is None:
        return type(request).__name__
    return message if isinstance(message, str) else message(request)


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
