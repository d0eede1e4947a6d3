"""The messages of a stage as JSON: what the conductor wants, and what each agent is doing.

Both sides publish their whole state again and again. A message that is lost, doubled or late does
no harm: the newest one says everything, and an older one is recognised by its number.

An agent's state is two lines: what changes every time, and the rest. So a conductor of fifty agents
reads the rest only when it has changed.
"""

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rote.errors import DecodeError

MAX_BYTES = 256 * 1024
_MAX_TEXT = 400
_CLOCK = struct.Struct("<d")


@dataclass(frozen=True, slots=True)
class Run:
    """One section that is to be played together."""

    id: str
    """A new one for every attempt: a run that was cancelled never begins."""
    section: str
    scores: Mapping[str, str]
    """From the name of an agent to the hash of its score; others do not take part."""
    start_s: float | None = None
    """When the section begins, by the conductor's clock; None while the scores are loaded."""
    committed: bool = False
    """Whether everybody was ready in time. Nobody begins without it."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop, which holds until a person resets it."""

    id: str
    by: str
    """Who asked for it."""

    def encode(self) -> bytes:
        """Return the message."""
        return _encode(self)


@dataclass(frozen=True, slots=True)
class ConductorState:
    """What the conductor publishes."""

    epoch: str
    """Another one each time a conductor starts."""
    number: int
    """Rises with each message of an epoch."""
    run: Run | None = None
    stop: Stop | None = None
    reset: str = ""
    """The stop that a person has reset last: only that lets an agent go on after it."""

    def encode(self) -> bytes:
        """Return the message."""
        return _encode(self)


@dataclass(frozen=True, slots=True)
class StartReport:
    """How well a section's start was met by one robot."""

    run: str
    skew_s: float | None = None
    """How much later than planned the motion began; None if nothing moved."""
    resolution_s: float = 0.0
    """How exactly that is known: the time between two states, or two poses."""
    lead_s: float = 0.0
    """How long before the start the robot had to be told."""
    cues: tuple[tuple[str, float | None], ...] = ()
    """Each cue with how much later than planned it was; None if it failed."""
    completed: bool = True
    reason: str = ""
    """Why it was not completed; "" if it was, or that is not known."""


@dataclass(frozen=True, slots=True)
class AgentState:
    """What an agent publishes."""

    name: str
    epoch: str
    """Another one each time an agent starts."""
    beat: int
    """Counted by the loop that moves the robot; an agent whose beat stands still is lost."""
    phase: str = "idle"
    loaded: str = ""
    """The hash of the score that is there and was found playable on this robot."""
    armed: str = ""
    """The run for which everything is prepared."""
    lead_s: float = 0.0
    """How long before the start of the armed run this robot begins to move."""
    done: str = ""
    """The run that has ended here, well or not."""
    stopped: str = ""
    """The stop after which the robot was seen to stop."""
    fault: str = ""
    """Why it cannot do what is wanted; names the run or score it is about in `fault_of`."""
    fault_of: str = ""
    clock_bound_s: float = math.inf
    round_trip_s: float = math.inf
    battery_percent: float | None = None
    robot: str = ""
    build: str = ""
    moving: bool = False
    heard: tuple[str, ...] = ()
    """Words that the robot has heard lately, each with a number before it."""
    report: StartReport | None = None
    facts: tuple[str, ...] = field(default=())
    """What is wrong with the robot, as text."""
    holds: tuple[str, ...] = field(default=())
    """The actions that are stored on the robot."""

    def encode(self) -> bytes:
        """Return the message."""
        body = _to_json_value(self)
        head = {name: body.pop(name) for name in _HEAD}
        return _json(head) + b"\n" + _json(body)


_HEAD = ("beat", "clock_bound_s", "round_trip_s")


def encode_clock(time_s: float) -> bytes:
    """Return the conductor's answer to the question for its clock."""
    return _CLOCK.pack(time_s)


def decode_clock(data: bytes) -> float | None:
    """Read that answer; None if it is none, or no time."""
    if len(data) != _CLOCK.size:
        return None
    (time_s,) = _CLOCK.unpack(data)
    return time_s if math.isfinite(time_s) else None


def _encode(message: Stop | ConductorState) -> bytes:
    return _json(_to_json_value(message))


def _json(data: object) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


def _to_json_value(value: Any) -> Any:
    """Return a value of a message as JSON data; what is not finite is not known."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _to_json_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json_value(each) for each in value]
    return {name: _to_json_value(getattr(value, name)) for name in value.__slots__}


def decode_conductor(data: bytes) -> ConductorState:
    """Read what a conductor published. Raises `DecodeError` for anything else."""
    reader = _StageReader(data)
    run, stop = reader.object("run"), reader.object("stop")
    return ConductorState(
        reader.text("epoch"),
        reader.count("number"),
        None if run is None else _read_run(run),
        None if stop is None else _read_stop(stop),
        reader.text("reset", ""),
    )


def decode_stop(data: bytes) -> Stop:
    """Read a stop that somebody asked for. Raises `DecodeError` for anything else."""
    return _read_stop(_StageReader(data))


def _read_stop(reader: "_StageReader") -> Stop:
    if not reader.text("id"):
        raise DecodeError("a stop without an id")
    return Stop(reader.text("id"), reader.text("by", ""))


def _read_run(reader: "_StageReader") -> Run:
    scores = reader.values.get("scores")
    if not isinstance(scores, dict) or not all(
        isinstance(part, str) and len(part) <= _MAX_TEXT for pair in scores.items() for part in pair
    ):
        raise DecodeError("a run without scores")
    return Run(
        reader.text("id"),
        reader.text("section"),
        scores,
        reader.number("start_s"),
        reader.values.get("committed") is True,
    )


def decode_agent(data: bytes) -> AgentState:
    """Read what an agent published. Raises `DecodeError` for anything else."""
    return AgentReader().read(data)


class AgentReader:
    """Reads one message of an agent after the other."""

    def __init__(self) -> None:
        self._body = b""
        self._state: AgentState | None = None
        """What was read last, and from which second line."""

    def read(self, data: bytes) -> AgentState:
        """Read what an agent published. Raises `DecodeError` for anything else."""
        if len(data) > MAX_BYTES:
            raise DecodeError(f"a message of {len(data)} bytes; {MAX_BYTES} are the most")
        first, _, body = data.partition(b"\n")
        head = _StageReader(first)
        if self._state is None or body != self._body:
            self._state, self._body = _read_agent(_StageReader(body)), body
        return replace(
            self._state,
            beat=head.count("beat"),
            clock_bound_s=_or_unknown(head.number("clock_bound_s")),
            round_trip_s=_or_unknown(head.number("round_trip_s")),
        )


def _read_agent(reader: "_StageReader") -> AgentState:
    report = reader.object("report")
    return AgentState(
        name=reader.text("name"),
        epoch=reader.text("epoch"),
        beat=0,
        phase=reader.text("phase", "idle"),
        loaded=reader.text("loaded", ""),
        armed=reader.text("armed", ""),
        lead_s=reader.number("lead_s") or 0.0,
        done=reader.text("done", ""),
        stopped=reader.text("stopped", ""),
        fault=reader.text("fault", ""),
        fault_of=reader.text("fault_of", ""),
        battery_percent=reader.number("battery_percent"),
        robot=reader.text("robot", ""),
        build=reader.text("build", ""),
        moving=reader.values.get("moving") is True,
        heard=reader.texts("heard"),
        report=None if report is None else _read_report(report),
        facts=reader.texts("facts"),
        holds=reader.texts("holds"),
    )


def _or_unknown(value: float | None) -> float:
    return math.inf if value is None else value


def _read_report(reader: "_StageReader") -> StartReport:
    cues = reader.values.get("cues", [])
    if not isinstance(cues, list):
        raise DecodeError("cues are not a list")
    read = []
    for cue in cues[:1000]:
        if not isinstance(cue, list) or len(cue) != 2 or not isinstance(cue[0], str):
            raise DecodeError("a cue is not a name with a time")
        read.append((cue[0][:_MAX_TEXT], None if cue[1] is None else _number(cue[1])))
    return StartReport(
        reader.text("run"),
        reader.number("skew_s"),
        reader.number("resolution_s") or 0.0,
        reader.number("lead_s") or 0.0,
        tuple(read),
        reader.values.get("completed") is True,
        reader.text("reason", ""),
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DecodeError(f"{value!r:.40} is not a number")
    try:
        made = float(value)
    except OverflowError:
        raise DecodeError("a number is too large") from None
    if not math.isfinite(made):
        raise DecodeError("a number is not finite")
    return made


class _StageReader:
    """Reads the fields of a JSON object; whatever is wrong is a `DecodeError`."""

    def __init__(self, data: bytes | Mapping[str, Any]) -> None:
        if isinstance(data, bytes):
            if len(data) > MAX_BYTES:
                raise DecodeError(f"a message of {len(data)} bytes; {MAX_BYTES} are the most")
            try:
                read = json.loads(data)
            except (ValueError, RecursionError) as error:
                raise DecodeError(f"not JSON: {error}") from None
            if not isinstance(read, dict):
                raise DecodeError("not a JSON object")
            data = read
        self.values: Mapping[str, Any] = data

    def text(self, name: str, default: str | None = None) -> str:
        value = self.values.get(name, default)
        if not isinstance(value, str) or len(value) > _MAX_TEXT:
            raise DecodeError(f"{name!r} is not a short text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.values.get(name, [])
        if not isinstance(value, list) or len(value) > 64:
            raise DecodeError(f"{name!r} is not a short list")
        if not all(isinstance(each, str) and len(each) <= _MAX_TEXT for each in value):
            raise DecodeError(f"{name!r} has an entry that is not a short text")
        return tuple(value)

    def number(self, name: str) -> float | None:
        value = self.values.get(name)
        return None if value is None else _number(value)

    def count(self, name: str) -> int:
        value = self.values.get(name)
        if type(value) is not int or not 0 <= value < 2**63:
            raise DecodeError(f"{name!r} is not a count")
        return value

    def object(self, name: str) -> "_StageReader | None":
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise DecodeError(f"{name!r} is not an object")
        return _StageReader(value)
