"""A show as a file: roles, sections with triggers, clips and cues; and the cast that plays it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rote.errors import BadRequestError
from rote.messages import LANGUAGES
from rote.motion.track import did_you_mean
from rote.stage.show.fields import Field, FieldKind, object_schema, read_object

VERSION = 1
MAX_BYTES = 4 * 2**20
MAX_S = 3600.0
MAX_ROLES, MAX_SECTIONS, MAX_ITEMS = 200, 500, 5000


class TriggerKind(StrEnum):
    """What begins a section."""

    GO = "go"
    """A person gives GO."""
    AFTER = "after"
    """`seconds` after the end of the previous section."""
    AT = "at"
    """A time of day."""
    OSC = "osc"
    """An OSC message with `address` arrives at the conductor."""
    HEARD = "heard"
    """A robot has recognised the word."""


class LossRule(StrEnum):
    """What the other robots do when one robot of the section is lost."""

    STOP_ALL = "stop-all"
    GO_ON = "go-on"


class RoleLoss(StrEnum):
    """What happens to the others when the robot of a role is lost."""

    STOP = "stop"
    """The section's `on_loss` applies; the next section needs the robot."""
    DROP = "drop"
    """The others go on, in later sections too; the robot takes part again when it is back."""


class CueKind(StrEnum):
    """What a cue does."""

    SOUND = "sound"
    SAY = "say"
    LIGHT = "light"
    OSC = "osc"


_TEXT, _NUMBER, _COUNT = FieldKind.TEXT, FieldKind.NUMBER, FieldKind.COUNT
_AT = Field(
    name="at_s",
    kind=_NUMBER,
    default=0.0,
    low=0.0,
    high=MAX_S,
    help="seconds from the section's start",
)
_ROLE = Field(name="role", kind=_TEXT, help="the role it belongs to")

TRIGGER_FIELDS = (
    Field(
        name="on",
        kind=_TEXT,
        required=True,
        choices=tuple(TriggerKind),
        help="what begins the section",
    ),
    Field(
        name="seconds",
        kind=_NUMBER,
        low=0.0,
        high=MAX_S,
        help="with `after`: seconds after the end of the previous section",
    ),
    Field(name="time", kind=_TEXT, help="with `at`: a time of day, HH:MM or HH:MM:SS"),
    Field(name="address", kind=_TEXT, help="with `osc`: the address of the message"),
    Field(name="word", kind=_TEXT, help="with `heard`: the word"),
)
CLIP_FIELDS = (
    Field(name="role", kind=_TEXT, required=True, help="the role that moves"),
    Field(name="take", kind=_TEXT, help="a take of the library, or a file beside the show"),
    Field(name="action", kind=_TEXT, help="an action that is stored on the robot"),
    _AT,
    Field(name="from_s", kind=_NUMBER, low=0.0, help="trim: the first second of the take"),
    Field(name="to_s", kind=_NUMBER, low=0.0, help="trim: the last second of the take"),
    Field(name="speed", kind=_NUMBER, default=1.0, low=0.1, high=4.0, help="a factor"),
    Field(name="mirror", kind=FieldKind.FLAG, default=False, help="left and right exchanged"),
    Field(name="loop", kind=_COUNT, default=1, low=1, high=1000, help="number of repetitions"),
    Field(
        name="blend_s",
        kind=_NUMBER,
        default=0.5,
        low=0.0,
        high=60.0,
        help="seconds of the move between two repetitions, or of the fade from the previous clip",
    ),
)
CUE_FIELDS = (
    _AT,
    _ROLE,
    Field(
        name="sound",
        kind=_TEXT,
        help="a sound file in the show's folder, played by the robot "
        "of `role`, or by the conductor's computer if no role is given",
    ),
    Field(name="say", kind=_TEXT, help="what the robot says"),
    Field(name="language", kind=_TEXT, default="en", choices=tuple(LANGUAGES), help="of `say`"),
    Field(name="light", kind=FieldKind.COLOUR, help="the colour of the robot's head light"),
    Field(name="osc", kind=_TEXT, help="the address of an OSC message that is sent"),
    Field(name="to", kind=_TEXT, help="with `osc`: HOST:PORT"),
    Field(name="args", kind=FieldKind.VALUES, help="with `osc`: its arguments"),
)
SECTION_FIELDS = (
    Field(name="name", kind=_TEXT, required=True, help="the section's name"),
    Field(name="loop", kind=_COUNT, default=1, low=1, high=1000, help="number of repetitions"),
    Field(
        name="on_loss",
        kind=_TEXT,
        default=LossRule.STOP_ALL.value,
        choices=tuple(LossRule),
        help="what the other robots do when one is lost",
    ),
    Field(
        name="hold",
        kind=FieldKind.FLAG,
        default=False,
        help="at its end the robots hold their last poses until GO, which begins the next section",
    ),
)
ROLE_FIELDS = (
    Field(name="build", kind=_TEXT, default="g1-29", help="the build its motions are made for"),
    Field(name="title", kind=_TEXT, help="a name to display"),
    Field(
        name="on_loss",
        kind=_TEXT,
        default=RoleLoss.STOP.value,
        choices=tuple(RoleLoss),
        help="drop: if its robot is lost, the others go on without it",
    ),
)
_REQUIRED_TRIGGER_FIELDS = {
    TriggerKind.AT: "time",
    TriggerKind.OSC: "address",
    TriggerKind.HEARD: "word",
}


@dataclass(frozen=True, slots=True)
class ShowRole:
    """One part of a show, to be played by one robot."""

    name: str
    build: str = "g1-29"
    title: str = ""
    on_loss: RoleLoss = RoleLoss.STOP


@dataclass(frozen=True, slots=True)
class Trigger:
    """What begins a section."""

    on: TriggerKind = TriggerKind.GO
    seconds: float = 0.0
    time: str = ""
    address: str = ""
    word: str = ""

    @property
    def time_of_day_s(self) -> float:
        """The time in seconds since midnight. Raises `BadRequestError` if it is not a time."""
        parts = self.time.split(":")
        if len(parts) in (2, 3) and all(part.isdecimal() and len(part) <= 2 for part in parts):
            hours, minutes, seconds = (int(part) for part in (*parts, "0")[:3])
            if hours < 24 and minutes < 60 and seconds < 60:
                return hours * 3600.0 + minutes * 60.0 + seconds
        raise BadRequestError(f"{self.time!r} is not a time of day", "Write HH:MM or HH:MM:SS.")


def describe_trigger(trigger: Trigger) -> str:
    """Return what begins a section, as text."""
    return {
        TriggerKind.GO: "GO",
        TriggerKind.AFTER: f"{trigger.seconds:g} s after the previous section",
        TriggerKind.AT: trigger.time,
        TriggerKind.OSC: f"OSC {trigger.address}",
        TriggerKind.HEARD: f"the word {trigger.word!r}",
    }[trigger.on]


@dataclass(frozen=True, slots=True)
class Clip:
    """A motion of one role: a take, or an action that is stored on the robot."""

    role: str
    take: str = ""
    action: str = ""
    at_s: float = 0.0
    from_s: float | None = None
    to_s: float | None = None
    speed: float = 1.0
    mirror: bool = False
    loop: int = 1
    blend_s: float = 0.5


@dataclass(frozen=True, slots=True)
class Cue:
    """A sound, speech, light or OSC message at a given time."""

    kind: CueKind
    at_s: float
    role: str
    """"" for the conductor's computer."""
    value: str = ""
    """The file of a sound, the text to speak, or the address of an OSC message."""
    language: str = "en"
    colour: tuple[int, int, int] = (0, 0, 0)
    to: str = ""
    args: tuple[float | int | str, ...] = ()

    @property
    def label(self) -> str:
        """A short description for reports."""
        what = "#{:02x}{:02x}{:02x}".format(*self.colour)
        return f"{self.kind.value} {self.value or what}"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a show, which all its robots begin together."""

    name: str
    start: Trigger = Trigger()
    clips: tuple[Clip, ...] = ()
    cues: tuple[Cue, ...] = ()
    loop: int = 1
    on_loss: LossRule = LossRule.STOP_ALL
    hold: bool = False
    """Whether the robots hold their last poses until GO."""


@dataclass(frozen=True, slots=True)
class Show:
    """A whole show."""

    title: str
    roles: tuple[ShowRole, ...]
    sections: tuple[Section, ...]

    def find_section(self, name: str) -> int:
        """Return the index of a section. Raises `BadRequestError` for an unknown name."""
        names = [section.name for section in self.sections]
        if name not in names:
            raise BadRequestError(
                f"there is no section {name!r:.60} in this show", did_you_mean(name, names)
            )
        return names.index(name)

    def role(self, name: str) -> ShowRole:
        """Return the role of that name, which the reader has checked to exist."""
        return next(role for role in self.roles if role.name == name)


@dataclass(frozen=True, slots=True)
class Cast:
    """Which robot plays which role."""

    robots: Mapping[str, str]
    """From role to the name of an agent."""

    @classmethod
    def parse(cls, data: object) -> "Cast":
        """Read `{"cast": {role: agent}}`. Raises `BadRequestError` for anything else."""
        cast = data.get("cast") if isinstance(data, dict) else None
        if not isinstance(cast, dict) or not all(
            isinstance(name, str) and name for pair in cast.items() for name in pair
        ):
            raise BadRequestError(
                "the cast does not assign robots to roles", 'Write {"cast": {"ROLE": "ROBOT"}}.'
            )
        robots = list(cast.values())
        for robot in robots:
            if robots.count(robot) > 1:
                raise BadRequestError(
                    f"the robot {robot!r} has two roles", "Give each robot one role."
                )
        return cls(cast)


def parse(text: str | bytes) -> Show:
    """Read a show. Raises `BadRequestError` with the location of the first problem."""
    if len(text) > MAX_BYTES:
        raise BadRequestError(f"a show has at most {MAX_BYTES // 2**20} MB; this has {len(text)} B")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"this is not valid JSON: {error}") from None
    return from_data(data)


def from_data(data: object) -> Show:
    """Make a show from JSON data. Raises `BadRequestError` with the location of the first
    problem.
    """
    if not isinstance(data, dict) or data.get("rote_show") != VERSION:
        raise BadRequestError(
            "this is not a show", f'A show is an object that begins with "rote_show": {VERSION}.'
        )
    field_names = {"rote_show", "title", "roles", "sections"}
    if unknown := sorted(str(name) for name in data.keys() - field_names):
        raise BadRequestError(f"the show: there is no field {unknown[0]!r}")
    title = data.get("title", "")
    if not isinstance(title, str):
        raise BadRequestError("the show, 'title': expected text")
    roles = _read_roles(data.get("roles"))
    sections = tuple(
        _read_section(each, number, {role.name for role in roles})
        for number, each in enumerate(
            _read_list(data, "sections", "the show", MAX_SECTIONS), start=1
        )
    )
    names = [section.name for section in sections]
    for name in names:
        if names.count(name) > 1:
            raise BadRequestError(f"two sections are called {name!r}", "Give each its own name.")
    return Show(title, roles, sections)


def _read_list(data: Mapping[str, Any], name: str, location: str, max_items: int) -> list[Any]:
    found = data.get(name, [])
    if not isinstance(found, list) or len(found) > max_items:
        raise BadRequestError(f"{location}, {name!r}: expected a list of at most {max_items} items")
    return found


def _read_roles(data: object) -> tuple[ShowRole, ...]:
    if not isinstance(data, dict) or not data or len(data) > MAX_ROLES:
        raise BadRequestError(
            f"the show, 'roles': expected 1 to {MAX_ROLES} roles", 'Write {"NAME": {}}.'
        )
    name_field = Field(name="name", kind=_TEXT, help="the role's name")
    found = []
    for name, fields in data.items():
        values = read_object(fields, ROLE_FIELDS, f"role {name!r:.60}")
        found.append(
            ShowRole(
                name_field.read(name, "the show"),
                values["build"],
                values["title"] or "",
                RoleLoss(values["on_loss"]),
            )
        )
    return tuple(found)


def _read_section(data: object, number: int, roles: set[str]) -> Section:
    if not isinstance(data, dict):
        raise BadRequestError(f"section {number}: expected an object {{...}}")
    fields = {name: value for name, value in data.items() if name not in ("start", "clips", "cues")}
    values = read_object(fields, SECTION_FIELDS, f"section {number}")
    location = f"section {values['name']!r}"
    clips = [
        _read_clip(each, f"{location}, clip {index}", roles)
        for index, each in enumerate(_read_list(data, "clips", location, MAX_ITEMS), start=1)
    ]
    cues = [
        _read_cue(each, f"{location}, cue {index}", roles)
        for index, each in enumerate(_read_list(data, "cues", location, MAX_ITEMS), start=1)
    ]
    if not clips and not cues:
        raise BadRequestError(f"{location} is empty", "Add clips or cues.")
    return Section(
        values["name"],
        _read_trigger(data.get("start", {"on": "go"}), f"{location}, start"),
        tuple(clips),
        tuple(cues),
        values["loop"],
        LossRule(values["on_loss"]),
        values["hold"],
    )


def _read_trigger(data: object, location: str) -> Trigger:
    values = read_object(data, TRIGGER_FIELDS, location)
    kind = TriggerKind(values["on"])
    needed_field = _REQUIRED_TRIGGER_FIELDS.get(kind)
    if needed_field is not None and not values[needed_field]:
        raise BadRequestError(f"{location}: {needed_field!r} is missing")
    trigger = Trigger(
        kind,
        values["seconds"] or 0.0,
        values["time"] or "",
        values["address"] or "",
        values["word"] or "",
    )
    if kind is TriggerKind.AT:
        _ = trigger.time_of_day_s
    return trigger


def _read_clip(data: object, location: str, roles: set[str]) -> Clip:
    values = read_object(data, CLIP_FIELDS, location)
    _check_role(values["role"], roles, location)
    if bool(values["take"]) == bool(values["action"]):
        raise BadRequestError(f"{location}: expected either a 'take' or an 'action'")
    if values["action"]:
        for name in ("from_s", "to_s", "mirror"):
            if values[name]:
                raise BadRequestError(
                    f"{location}: {name!r} cannot be applied to an action stored on the robot",
                    "Use a take.",
                )
    for name in ("take", "action"):
        values[name] = values[name] or ""
    return Clip(**values)


def _read_cue(data: object, location: str, roles: set[str]) -> Cue:
    values = read_object(data, CUE_FIELDS, location)
    kinds = [kind for kind in CueKind if values[kind.value] is not None]
    if len(kinds) != 1:
        raise BadRequestError(f"{location}: expected one of {', '.join(CueKind)}")
    (kind,) = kinds
    role = values["role"] or ""
    if role:
        _check_role(role, roles, location)
    if kind in (CueKind.SAY, CueKind.LIGHT) and not role:
        raise BadRequestError(
            f"{location}: 'role' is missing", "Name the role whose robot speaks or lights up."
        )
    if kind is CueKind.OSC and (role or not _is_address(values["to"])):
        raise BadRequestError(
            f"{location}: an OSC message needs 'to' as HOST:PORT and cannot have a 'role'"
        )
    if kind is not CueKind.OSC and (values["to"] or values["args"]):
        raise BadRequestError(f"{location}: 'to' and 'args' belong to an OSC message")
    value = "" if kind is CueKind.LIGHT else values[kind.value]
    return Cue(
        kind,
        values["at_s"],
        role,
        value,
        values["language"],
        values["light"] or (0, 0, 0),
        values["to"] or "",
        values["args"] or (),
    )


def _is_address(text: str | None) -> bool:
    host, _, port = (text or "").rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) < 65536


def _check_role(name: str, roles: set[str], location: str) -> None:
    if name not in roles:
        raise BadRequestError(f"{location}: there is no role {name!r}", _list_roles(sorted(roles)))


def _list_roles(names: Sequence[str]) -> str:
    return f"The roles are {', '.join(names)}."


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a show, made from the same fields that the reader uses."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A show of rote",
        "type": "object",
        "additionalProperties": False,
        "required": ["rote_show", "roles", "sections"],
        "properties": {
            "rote_show": {"const": VERSION, "description": "the version of this format"},
            "title": {"type": "string"},
            "roles": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": MAX_ROLES,
                "additionalProperties": object_schema(ROLE_FIELDS),
            },
            "sections": {
                "type": "array",
                "maxItems": MAX_SECTIONS,
                "items": object_schema(
                    SECTION_FIELDS,
                    start=object_schema(TRIGGER_FIELDS),
                    clips=_make_array_schema(object_schema(CLIP_FIELDS)),
                    cues=_make_array_schema(object_schema(CUE_FIELDS)),
                ),
            },
        },
    }


def _make_array_schema(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "maxItems": MAX_ITEMS, "items": items}


def find_droppable(show: Show, cast: Cast) -> frozenset[str]:
    """Return the robots without which a show goes on when they are lost."""
    droppable = [role.name for role in show.roles if role.on_loss is RoleLoss.DROP]
    return frozenset(cast.robots[name] for name in droppable if name in cast.robots)
