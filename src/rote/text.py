"""Messages that keep their facts as values: numbers with units, names, and actions of the user.

A `Text` is a string: printed as it is, it shows rad, metres and calls of the Python API. Each user
interface can render its facts differently: the command line shows its commands, the page shows
degrees and its buttons. So lower packages need not know the commands, and programs need not parse
messages for numbers.

    Text("{joint} is at {at}; end it: {stop}", joint="left_elbow", at=rad(1.49), stop=Act.STOP)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

__all__ = [
    "Act",
    "Names",
    "Quantity",
    "Span",
    "Text",
    "as_json",
    "rad",
    "rad_s",
    "seconds",
    "shown",
    "suggest_names",
]


class Act(StrEnum):
    """Something that a person can do next. Each user interface phrases it."""

    STOP = "stop"
    LIST = "list"
    DELETE = "delete"
    TAKES = "takes"
    PIPE_CAPTURE = "pipe-capture"
    STAND = "stand"
    SINK = "sink"
    GET_UP = "get-up"
    LIE_DOWN = "lie-down"
    STATUS = "status"
    DISCOVER = "discover"
    DOCTOR = "doctor"
    SIMULATE = "simulate"
    SIMULATE_WEBRTC = "simulate-webrtc"
    SIMULATE_DDS = "simulate-dds"
    SIMULATE_A1 = "simulate-a1"
    OTHER_STORE = "other-store"
    PLAY_TRACK = "play-track"
    FORCE = "force"
    OVERWRITE = "overwrite"
    MAP_JOINTS = "map-joints"
    PLAY_IMPORTED = "play-imported"
    NAME_BUILD = "name-build"
    FROM_DEGREES = "from-degrees"
    TO_BUILD = "to-build"
    TRIM = "trim"
    SPEED = "speed"
    RETIME = "retime"
    CHECK = "check"
    SHOW = "show"
    PLOT = "plot"


IN_PYTHON: Mapping[Act, str] = {
    Act.STOP: "robot.stop()",
    Act.LIST: "robot.actions()",
    Act.DELETE: "robot.delete(name)",
    Act.TAKES: "rote.motion.files.library",
    Act.PIPE_CAPTURE: "a pcap file on standard input",
    Act.STAND: "robot.modes.stand()",
    Act.SINK: "robot.modes.damp(yes=True)",
    Act.GET_UP: "robot.modes.get_up()",
    Act.LIE_DOWN: "robot.modes.lie_down()",
    Act.STATUS: "robot.describe()",
    Act.DISCOVER: "rote.discover()",
    Act.DOCTOR: "rote.robot.doctor",
    Act.SIMULATE: "rote.connect('sim://g1')",
    Act.SIMULATE_WEBRTC: "rote.connect('sim://g1')",
    Act.SIMULATE_DDS: "rote.connect('sim://g1')",
    Act.SIMULATE_A1: "rote.sim.quadruped.simulator",
    Act.OTHER_STORE: "rote.connect('sim://g1?store=FILE')",
    Act.PLAY_TRACK: "robot.play_track(track)",
    Act.FORCE: "force=True",
    Act.OVERWRITE: "overwrite=True",
    Act.MAP_JOINTS: "mapped=True",
    Act.PLAY_IMPORTED: "imported=True, speed=0.5",
    Act.NAME_BUILD: "?build=NAME in the URL",
    Act.FROM_DEGREES: "load(path, degrees=True)",
    Act.TO_BUILD: "rote.motion.edit.operations.to_build",
    Act.TRIM: "rote.motion.edit.operations.trim",
    Act.SPEED: "rote.motion.edit.operations.speed",
    Act.RETIME: "rote.motion.edit.retime.retime",
    Act.CHECK: "rote.motion.check.rules",
    Act.SHOW: "rote.motion.draw.figure",
    Act.PLOT: "rote.motion.draw.plot",
}
"""How to do it with the Python API."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit, and how many of its digits to show."""

    value: float
    unit: str
    digits: int = 2

    def __str__(self) -> str:
        return f"{self.value:.{self.digits}f} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Span:
    """A range from one number to another, in one unit."""

    low: float
    high: float
    unit: str
    digits: int = 2

    def __str__(self) -> str:
        low, high = (f"{value:.{self.digits}f}" for value in (self.low, self.high))
        return f"{low} to {high} {self.unit}".rstrip()


def rad(value: float, digits: int = 2) -> Quantity:
    """Return an angle in rad."""
    return Quantity(float(value), "rad", digits)


def rad_s(value: float, digits: int = 1) -> Quantity:
    """Return a speed in rad/s."""
    return Quantity(float(value), "rad/s", digits)


def seconds(value: float, digits: int = 2) -> Quantity:
    """Return a time in seconds."""
    return Quantity(float(value), "s", digits)


@dataclass(frozen=True, slots=True)
class Names:
    """A list of names, which a user interface may shorten."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(self.names)


Fact = Quantity | Span | Names | Act | str | int
"""What a name in a template stands for; a `Text` is a `str`."""
Special = Quantity | Span | Names | Act
"""A fact that each user interface shows in its own way."""
Style = Callable[[Special], str]
"""A function that renders a fact for one user interface."""


def plain(fact: Special) -> str:
    """Return a fact as text for users of the Python API; an `Act` becomes a call."""
    return IN_PYTHON[fact] if isinstance(fact, Act) else str(fact)


class Text(str):
    """A message with its facts. As a `str` it is the message in plain text."""

    __slots__ = ("facts", "template")
    template: str
    """The sentence, with a name in braces for each fact."""
    facts: Mapping[str, Fact]

    def __new__(cls, template: str, **facts: Fact) -> Self:
        """Make a sentence. Every name in braces must have its fact, given by keyword."""
        text = super().__new__(cls, _fill_template(template, facts, plain))
        text.template = template
        text.facts = facts
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_text, (self.template, dict(self.facts))

    def shown(self, style: Style) -> str:
        """Return the sentence with its facts rendered by `style`."""
        return _fill_template(self.template, self.facts, style)

    @property
    def acts(self) -> tuple[Act, ...]:
        """What a person can do next, in the order of the facts in the sentence."""
        found: list[Act] = []
        for fact in self.facts.values():
            if isinstance(fact, Act):
                found.append(fact)
            elif isinstance(fact, Text):
                found += fact.acts
        return tuple(found)


def _make_text(template: str, facts: dict[str, Fact]) -> Text:
    return Text(template, **facts)


def _fill_template(template: str, facts: Mapping[str, Fact], style: Style) -> str:
    return template.format(**{name: _render_fact(fact, style) for name, fact in facts.items()})


def _render_fact(fact: Fact, style: Style) -> str:
    if isinstance(fact, Text):
        return fact.shown(style)
    if isinstance(fact, Act | Names | Quantity | Span):  # an Act is a str as well
        return style(fact)
    return str(fact)


def shown(text: str, style: Style) -> str:
    """Return a message with its facts rendered by `style`; a plain `str` is returned unchanged."""
    return text.shown(style) if isinstance(text, Text) else text


def as_json(text: str) -> dict[str, Any]:
    """Return a text as JSON data: its template, and each fact with its kind."""
    if not isinstance(text, Text):  # its braces are literal, so they are escaped
        return {"template": text.replace("{", "{{").replace("}", "}}"), "facts": {}}
    return {
        "template": text.template,
        "facts": {name: _encode_fact(fact) for name, fact in text.facts.items()},
    }


def _encode_fact(fact: Fact) -> dict[str, Any]:
    if isinstance(fact, Quantity):
        return {"value": fact.value, "unit": fact.unit, "digits": fact.digits}
    if isinstance(fact, Span):
        return {"low": fact.low, "high": fact.high, "unit": fact.unit, "digits": fact.digits}
    if isinstance(fact, Names):
        return {"names": list(fact.names)}
    if isinstance(fact, Act):
        return {"act": fact.value}
    if isinstance(fact, Text):
        return as_json(fact)
    return {"text": str(fact)}


def suggest_names(name: str, known: Sequence[str]) -> str:
    """Return "Did you mean X or Y?" with the known names similar to `name`, or "" if none is.

    Upper and lower case count as the same letter.
    """
    import difflib  # noqa: PLC0415 - only after a mistake

    by_lower = {each.lower(): each for each in reversed(known)}  # of equal names the first counts
    similar = difflib.get_close_matches(name.lower(), by_lower, n=2, cutoff=0.7)
    return f"Did you mean {' or '.join(by_lower[each] for each in similar)}?" if similar else ""
