"""The messages of a stage as JSON: what the conductor requests, and what each agent is doing.

Both sides publish their whole state repeatedly. A message that is lost, repeated or late does no
harm: the newest one is complete, and an older one is recognised by its number.

An agent's state is two lines: the fields that change every time, and the others. So a conductor of
fifty agents parses the second line only when it has changed.
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
_MAX_ENTRIES = 64
MAX_HOLDS = 256
"""Maximum number of pauses in one section."""
MAX_MUTED = 1024
"""Maximum number of muted robots in a conductor's state."""
_CLOCK = struct.Struct("<d")


@dataclass(frozen=True, slots=True)
class Run:
    """One section that is to be played together."""

    id: str
    """New for every attempt: a run that was cancelled never begins."""
    section: str
    scores: Mapping[str, str]
    """The hash of each agent's score, by agent name; other agents do not take part."""
    start_s: float | None = None
    """When the section begins, by the conductor's clock; None while the scores are loaded."""
    committed: bool = False
    """Whether all agents were ready in time. No agent begins before this is True."""
    holds: tuple[tuple[float, float | None], ...] = ()
    """Begin and end of each pause, by the conductor's clock; the end is None during the pause."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop, which lasts until the user resets it."""

    id: str
    by: str
    """The source of the request, as shown to the user."""

    def encode(self) -> bytes:
        """Return the message."""
        return _encode_message(self)


@dataclass(frozen=True, slots=True)
class Reset:
    """A request to the conductor to reset a stop.

    It does not look like a `Stop`: after a reconnect Zenoh may deliver a message under another key.
    """

    reset: str
    """The stop's id."""

    def encode(self) -> bytes:
        """Return the message."""
        return _encode_message(self)


@dataclass(frozen=True, slots=True)
class LeadChange:
    """The operator's setting for how early an agent requests an action or sound."""

    name: str
    seconds: float | None
    """None to measure it again at the next playback."""

    def encode(self) -> bytes:
        """Return the message."""
        return _encode_message(self)


@dataclass(frozen=True, slots=True)
class ConductorState:
    """What the conductor publishes."""

    epoch: str
    """New each time a conductor starts, and after its computer was suspended."""
    number: int
    """Increases with each message of an epoch."""
    run: Run | None = None
    stop: Stop | None = None
    reset: str = ""
    """The stop that the user reset last; an agent continues only after its stop is reset."""
    term: int = 1
    """Higher than the terms of all earlier conductors; 0 before it conducts."""
    section: str = ""
    """The section of its cue list that plays, or that begins next; "" if no show is under way."""
    muted: tuple[str, ...] = ()
    """The robots that take no part in its show until they are unmuted."""
    has_ended: bool = False
    """Whether its program has ended by itself: this is its last message."""

    @property
    def rank(self) -> tuple[int, str]:
        """An agent obeys the conductor with the highest rank that it has received."""
        return self.term, self.epoch

    def encode(self) -> bytes:
        """Return the message."""
        return _encode_message(self)


@dataclass(frozen=True, slots=True)
class StartReport:
    """How well a section's start was met by one robot."""

    run: str
    skew_s: float | None = None
    """How much later than planned the motion began; None if nothing moved."""
    resolution_s: float = 0.0
    """The precision of `skew_s`: the time between two states, or two poses."""
    lead_s: float = 0.0
    """How long before the start the robot had to receive the command."""
    cues: tuple[tuple[str, float | None], ...] = ()
    """Each cue with its delay in seconds; None if it failed."""
    completed: bool = True
    reason: str = ""
    """Why it was not completed; "" if it was, or if the reason is not known."""


@dataclass(frozen=True, slots=True)
class AgentState:
    """What an agent publishes."""

    name: str
    epoch: str
    """New each time an agent starts."""
    beat: int
    """Counted by the loop that moves the robot; an agent whose beat stops is lost."""
    phase: str = "idle"
    loaded: str = ""
    """The hash of the loaded score, which was checked to be playable on this robot."""
    armed: str = ""
    """The run for which everything is prepared."""
    lead_s: float = 0.0
    """How long before the start of the armed run this robot begins to move."""
    done: str = ""
    """The run that has ended here, completed or not."""
    stopped: str = ""
    """The stop that is confirmed by the robot's state."""
    fault: str = ""
    """Why the request cannot be fulfilled; `fault_of` is the run or score concerned."""
    fault_of: str = ""
    clock_bound_s: float = math.inf
    round_trip_s: float = math.inf
    battery_percent: float | None = None
    robot: str = ""
    build: str = ""
    moving: bool = False
    pausable: bool = False
    """Whether its part can be paused now."""
    held: int = 0
    """The number of the pause that holds the robot in place, from 1 on; 0 if none does."""
    heard: tuple[str, ...] = ()
    """Recently recognised speech, each with a number before it."""
    report: StartReport | None = None
    facts: tuple[str, ...] = field(default=())
    """Descriptions of what is wrong with the robot."""
    holds: tuple[str, ...] = field(default=())
    """The actions that are stored on the robot."""
    leads: tuple[tuple[str, float, bool], ...] = field(default=())
    """Name of an action or sound, how many seconds early it is requested, and whether the operator
    has set that."""
    term: int = 0
    """The term of the conductor that it obeys: the highest that it has received."""
    conductor: str = ""
    """The epoch of that conductor."""
    conducted: bool = False
    """Whether the messages of that conductor arrive."""

    @property
    def rank(self) -> tuple[int, str]:
        """The rank of the conductor that it obeys."""
        return self.term, self.conductor

    def encode(self) -> bytes:
        """Return the message: `_CHANGING_FIELDS`, then the other fields, each a line of JSON.

        The second line is often the same as before, and then `AgentReader` does not parse it.
        """
        body = _to_json_value(self)
        head = {name: body.pop(name) for name in _CHANGING_FIELDS}
        return _dump_json(head) + b"\n" + _dump_json(body)


_CHANGING_FIELDS = ("beat", "clock_bound_s", "round_trip_s")
"""The fields of an agent's state that change with every message."""


def encode_clock(time_s: float) -> bytes:
    """Return the conductor's reply with its clock."""
    return _CLOCK.pack(time_s)


def decode_clock(data: bytes) -> float | None:
    """Return the time in the conductor's reply; None if it is invalid."""
    if len(data) != _CLOCK.size:
        return None
    (time_s,) = _CLOCK.unpack(data)
    return time_s if math.isfinite(time_s) else None


def _encode_message(message: Stop | Reset | ConductorState | LeadChange) -> bytes:
    return _dump_json(_to_json_value(message))


def _dump_json(data: object) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


def _to_json_value(value: Any) -> Any:
    """Return a value of a message as JSON data; non-finite numbers become null."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _to_json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json_value(inner) for inner in value]
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
        reader.count("term"),
        reader.text("section", ""),
        reader.texts("muted", MAX_MUTED),
        reader.values.get("has_ended") is True,
    )


def decode_lead_change(data: bytes) -> LeadChange:
    """Return a changed lead. Raises `DecodeError` for anything else."""
    reader = _StageReader(data)
    return LeadChange(reader.text("name"), reader.number("seconds"))


def decode_stop(data: bytes) -> Stop:
    """Return a requested stop. Raises `DecodeError` for anything else."""
    return _read_stop(_StageReader(data))


def decode_reset(data: bytes) -> Reset:
    """Return a reset, or raise `DecodeError`."""
    return Reset(_StageReader(data).text("reset"))


def _read_stop(reader: "_StageReader") -> Stop:
    if not reader.text("id"):
        raise DecodeError("the stop has no id")
    return Stop(reader.text("id"), reader.text("by", ""))


def _read_run(reader: "_StageReader") -> Run:
    scores = reader.values.get("scores")
    if not isinstance(scores, dict) or not all(
        isinstance(text, str) and len(text) <= _MAX_TEXT for pair in scores.items() for text in pair
    ):
        raise DecodeError("the scores of the run must be texts by agent name")
    return Run(
        reader.text("id"),
        reader.text("section"),
        scores,
        reader.number("start_s"),
        reader.values.get("committed") is True,
        _read_holds(reader.values.get("holds", [])),
    )


def _read_holds(value: object) -> tuple[tuple[float, float | None], ...]:
    """Return the pauses of a run as pairs of begin and end."""
    if not isinstance(value, list) or len(value) > MAX_HOLDS:
        raise DecodeError(f"'holds' must be a list of at most {MAX_HOLDS} entries")
    holds = []
    for hold in value:
        if not isinstance(hold, list) or len(hold) != 2:
            raise DecodeError("an entry of 'holds' is not a pair of times")
        begin_s, end_s = hold
        holds.append((_require_number(begin_s), None if end_s is None else _require_number(end_s)))
    return tuple(holds)


def decode_agent(data: bytes) -> AgentState:
    """Read what an agent published. Raises `DecodeError` for anything else."""
    return AgentReader().read(data)


class AgentReader:
    """Reads the messages of one agent, and parses their second line only when it changes."""

    def __init__(self) -> None:
        self._body = b""
        self._state: AgentState | None = None
        """The last state, and the second line that it was parsed from."""

    def read(self, data: bytes) -> AgentState:
        """Read what an agent published. Raises `DecodeError` for anything else."""
        if len(data) > MAX_BYTES:
            raise DecodeError(f"the message has {len(data)} bytes; the maximum is {MAX_BYTES}")
        first, _, body = data.partition(b"\n")
        head = _StageReader(first)
        if self._state is None or body != self._body:
            self._state, self._body = _read_agent(_StageReader(body)), body
        return replace(
            self._state,
            beat=head.count("beat"),
            clock_bound_s=_or_infinity(head.number("clock_bound_s")),
            round_trip_s=_or_infinity(head.number("round_trip_s")),
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
        pausable=reader.values.get("pausable") is True,
        held=0 if reader.values.get("held") is None else reader.count("held"),
        heard=reader.texts("heard"),
        report=None if report is None else _read_report(report),
        facts=reader.texts("facts"),
        holds=reader.texts("holds"),
        leads=_read_leads(reader.values.get("leads", [])),
        term=reader.count("term"),
        conductor=reader.text("conductor", ""),
        conducted=reader.values.get("conducted") is True,
    )


def _read_leads(value: object) -> tuple[tuple[str, float, bool], ...]:
    """Return names with their lead in seconds and whether the operator has set it."""
    if not isinstance(value, list) or len(value) > _MAX_ENTRIES:
        raise DecodeError(f"'leads' must be a list of at most {_MAX_ENTRIES} entries")
    leads = []
    for lead in value:
        if not isinstance(lead, list) or len(lead) != 3 or not isinstance(lead[0], str):
            raise DecodeError("an entry of 'leads' is not a name, a time and a flag")
        name, seconds, is_set = lead
        leads.append((name[:_MAX_TEXT], _require_number(seconds), is_set is True))
    return tuple(leads)


def _or_infinity(value: float | None) -> float:
    return math.inf if value is None else value


def _read_report(reader: "_StageReader") -> StartReport:
    cues = reader.values.get("cues", [])
    if not isinstance(cues, list):
        raise DecodeError("'cues' must be a list")
    delays = []
    for cue in cues[:1000]:
        if not isinstance(cue, list) or len(cue) != 2 or not isinstance(cue[0], str):
            raise DecodeError("an entry of 'cues' is not a name with a time")
        name, delay_s = cue
        delays.append((name[:_MAX_TEXT], None if delay_s is None else _require_number(delay_s)))
    return StartReport(
        reader.text("run"),
        reader.number("skew_s"),
        reader.number("resolution_s") or 0.0,
        reader.number("lead_s") or 0.0,
        tuple(delays),
        reader.values.get("completed") is True,
        reader.text("reason", ""),
    )


def _require_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DecodeError(f"{value!r:.40} is not a number")
    try:
        number = float(value)
    except OverflowError:
        raise DecodeError("a number is too large") from None
    if not math.isfinite(number):
        raise DecodeError("a number is not finite")
    return number


class _StageReader:
    """Reads the fields of a JSON object; raises `DecodeError` for an invalid one."""

    def __init__(self, data: bytes | Mapping[str, Any]) -> None:
        if isinstance(data, bytes):
            if len(data) > MAX_BYTES:
                raise DecodeError(f"the message has {len(data)} bytes; the maximum is {MAX_BYTES}")
            try:
                document = json.loads(data)
            except (ValueError, RecursionError) as error:
                raise DecodeError(f"the message is not JSON: {error}") from None
            if not isinstance(document, dict):
                raise DecodeError("the message is not a JSON object")
            data = document
        self.values: Mapping[str, Any] = data

    def text(self, name: str, default: str | None = None) -> str:
        value = self.values.get(name, default)
        if not isinstance(value, str) or len(value) > _MAX_TEXT:
            raise DecodeError(f"{name!r} must be a text of at most {_MAX_TEXT} characters")
        return value

    def texts(self, name: str, most: int = _MAX_ENTRIES) -> tuple[str, ...]:
        value = self.values.get(name, [])
        if not isinstance(value, list) or len(value) > most:
            raise DecodeError(f"{name!r} must be a list of at most {most} entries")
        if not all(isinstance(text, str) and len(text) <= _MAX_TEXT for text in value):
            raise DecodeError(
                f"every entry of {name!r} must be a text of at most {_MAX_TEXT} characters"
            )
        return tuple(value)

    def number(self, name: str) -> float | None:
        value = self.values.get(name)
        return None if value is None else _require_number(value)

    def count(self, name: str) -> int:
        value = self.values.get(name)
        if type(value) is not int or not 0 <= value < 2**63:
            raise DecodeError(f"{name!r} must be a whole number of 0 or more")
        return value

    def object(self, name: str) -> "_StageReader | None":
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise DecodeError(f"{name!r} must be an object")
        return _StageReader(value)
