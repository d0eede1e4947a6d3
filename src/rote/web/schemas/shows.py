"""The requests and answers about shows and the stage as types; those of a show are generated.

Further rules, like which fields go together, are checked when a show is parsed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, create_model
from typing_extensions import TypedDict

from rote.stage.leads import MAX_LEAD_S
from rote.stage.show import file as shows
from rote.stage.show.fields import MAX_TEXT, FieldKind
from rote.stage.show.fields import Field as ShowField
from rote.web.schemas.robot import (
    FindingNow,
    Name,
    RequestModel,
    utf8,
)

_KINDS: dict[FieldKind, Any] = {
    FieldKind.TEXT: Annotated[str, Field(min_length=1, max_length=MAX_TEXT), AfterValidator(utf8)],
    FieldKind.NUMBER: float,
    FieldKind.COUNT: int,
    FieldKind.FLAG: bool,
    FieldKind.COLOUR: Annotated[
        list[Annotated[int, Field(ge=0, le=255)]], Field(min_length=3, max_length=3)
    ],
    FieldKind.VALUES: Annotated[
        list[
            Annotated[float, Field(allow_inf_nan=False)]
            | Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(utf8)]
        ],
        Field(max_length=16),
    ],
}


def _make_model(
    name: str, docstring: str, fields: Sequence[ShowField], **more_fields: Any
) -> type[RequestModel]:
    field_types: dict[str, Any] = {field.name: _make_field(field) for field in fields}
    return create_model(
        name, __base__=RequestModel, __doc__=docstring, **field_types, **more_fields
    )


def _make_field(field: ShowField) -> tuple[Any, Any]:
    """Return the type of a show's field, and its constraints; an omitted field is null."""
    kind = _KINDS[field.kind]
    if field.choices:
        kind = Literal[field.choices]
    elif field.kind in (FieldKind.NUMBER, FieldKind.COUNT):
        allow_infinite = False if field.kind is FieldKind.NUMBER else None
        # Without an upper limit, use the maximum length of a show.
        low, high = field.low, shows.MAX_S if field.high is None else field.high
        kind = Annotated[kind, Field(ge=low, le=high, allow_inf_nan=allow_infinite)]
    if field.required:
        return kind, Field(description=field.help)
    return kind | None, Field(default=None, description=field.help)


if TYPE_CHECKING:

    class ShowSectionNow(RequestModel):
        """A section."""

    class ShowRoleNow(RequestModel):
        """A role."""

else:
    ShowRoleNow = _make_model("ShowRoleNow", "A role of a show.", shows.ROLE_FIELDS)
    ShowTrigger = _make_model("ShowTrigger", "What begins a section.", shows.TRIGGER_FIELDS)
    ShowClip = _make_model("ShowClip", "A motion of one role.", shows.CLIP_FIELDS)
    ShowCue = _make_model("ShowCue", "Something beside motion.", shows.CUE_FIELDS)
    ShowSectionNow = _make_model(
        "ShowSectionNow",
        "From one start together to the next.",
        shows.SECTION_FIELDS,
        start=(ShowTrigger | None, None),
        clips=(Annotated[list[ShowClip], Field(max_length=shows.MAX_ITEMS)], []),
        cues=(Annotated[list[ShowCue], Field(max_length=shows.MAX_ITEMS)], []),
    )


class ShowDocument(RequestModel):
    """A show, as in its file; fields that are null are omitted there."""

    rote_show: Literal[1]
    title: Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(utf8)] = ""
    roles: Annotated[
        dict[Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(utf8)], ShowRoleNow],
        Field(min_length=1, max_length=shows.MAX_ROLES),
    ]
    sections: Annotated[list[ShowSectionNow], Field(max_length=shows.MAX_SECTIONS)] = Field([])

    def plain(self) -> dict[str, Any]:
        """Return the show as data, without fields that are null."""
        return self.model_dump(exclude_none=True)


CastNow = Annotated[
    dict[
        Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(utf8)],
        Annotated[str, Field(min_length=1, max_length=120), AfterValidator(utf8)],
    ],
    Field(max_length=shows.MAX_ROLES),
]
"""From role to robot."""


# ---- requests -----------------------------------------------------------------------------------


class SaveShow(RequestModel):
    """A show to be saved to a file."""

    name: Name
    show: ShowDocument
    known: Annotated[str, Field(max_length=64)] | None = None
    """The tag of the file from which this show was opened. If the file has changed since, or exists
    although no tag is given, nothing is written."""
    replace: bool = False
    """Write it even then."""


class SaveCast(RequestModel):
    """A cast to be saved to a file."""

    name: Name
    cast: CastNow


class NamedShow(RequestModel):
    """Which show."""

    name: Name


class LockShow(RequestModel):
    """Which show to lock or unlock."""

    name: Name
    locked: bool


class RenameShow(RequestModel):
    """The old and the new name of a show; its cast of the same name is renamed, too."""

    old: Name
    new: Name


class CheckShow(RequestModel):
    """A show to be checked as it is, saved or not."""

    show: ShowDocument
    cast: CastNow | None = None


class DrawShow(RequestModel):
    """A show, and which section of it is to be drawn."""

    show: ShowDocument
    section: Annotated[str, Field(min_length=1, max_length=MAX_TEXT), AfterValidator(utf8)]


class StageGo(RequestModel):
    """Begin a show, or the next section of the running show."""

    show: Name
    """The show's name; its file is run, as on the command line."""
    cast: CastNow
    section: Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(utf8)] | None = None
    """The requested section. If a show runs and another one is due, nothing begins; if none runs,
    the show begins with this one."""
    known: Annotated[str, Field(max_length=64)] | None = None
    """The tag of the file that the user has seen. If the file has changed since, nothing begins."""
    how: Literal["show", "rehearsal", "lights"] = "show"
    """As it is, at half speed, or without motion."""
    force: bool = False
    """Run it despite warnings of a check; errors of a check still refuse it."""


CueVerb = Literal["back", "skip", "jump", "pause", "resume", "mute", "unmute", "finish"]


class ControlCues(RequestModel):
    """A command of the cue list; it applies to the running show."""

    verb: CueVerb
    section: Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(utf8)] | None = None
    """With `jump`: the section to select."""
    robot: Annotated[str, Field(max_length=120), AfterValidator(utf8)] | None = None
    """With `mute` and `unmute`."""


class SetOffset(RequestModel):
    """How early a robot's action or sounds are requested. A robot that plays ignores it."""

    robot: Annotated[str, Field(min_length=1, max_length=120), AfterValidator(utf8)]
    name: Annotated[str, Field(min_length=1, max_length=MAX_TEXT), AfterValidator(utf8)]
    """The action, or `sounds`."""
    seconds: Annotated[float, Field(ge=0.0, le=MAX_LEAD_S, allow_inf_nan=False)] | None = None
    """None to measure it again."""


class ResetStop(RequestModel):
    """Which stop to reset."""

    stop: Annotated[str, Field(max_length=64)] | None = None
    """The id of the stop that the user has seen. If another one is active, it stays active."""


# ---- answers ------------------------------------------------------------------------------------


class ShowEntry(TypedDict):
    """One show of this computer."""

    name: str
    title: str
    roles: list[str]
    sections: int
    problem: str
    """Why it cannot be read; empty if it can."""


class SoundEntry(TypedDict):
    """One sound beside the shows."""

    name: str
    duration_s: float | None
    """None if it cannot be read."""


class ShowShelf(TypedDict):
    """The shows, casts and sounds of this computer."""

    shows: list[ShowEntry]
    casts: dict[str, dict[str, str]]
    """By name: from role to robot."""
    sounds: list[SoundEntry]
    folder: str
    """Where they are on the server's computer."""


class ShowLock(TypedDict):
    """The lock of a show."""

    locked: str
    """When it was locked, in ISO 8601; empty if that is not known."""
    problem: str
    """Why the show is refused, for example what was changed since; empty if it is not."""


class ShowLocked(TypedDict):
    """A show that was locked or unlocked."""

    lock: ShowLock | None
    """None if it is not locked."""


class ShowOpened(TypedDict):
    """A show, and the tag of its file."""

    name: str
    tag: str
    path: str
    show: ShowDocument
    lock: ShowLock | None
    """None if it is not locked."""


class ShowSaved(TypedDict):
    """Where a show was saved."""

    name: str
    tag: str
    path: str
    lock: ShowLock | None
    """None if it is not locked."""


class ShowFindingNow(FindingNow):
    """Something to know before a show runs; `time_s` counts from the section's start."""

    section: str | None
    role: str | None


class ShowChecked(TypedDict):
    """The findings against running a show."""

    ok: bool
    findings: list[ShowFindingNow]


class RoleCurves(TypedDict):
    """What one role does in a section, as one motion."""

    role: str
    at_s: float
    """When its first pose is due."""
    build: str
    names: list[str]
    times_s: list[float]
    """From its first pose on."""
    joints_rad: list[list[float]]


class SectionCurves(TypedDict):
    """What every role does in a section; those that cannot be compiled are missing."""

    section: str
    duration_s: float
    roles: list[RoleCurves]


class SoundPeaks(TypedDict):
    """A sound as it is drawn: the loudest sample of each part, 0 to 1."""

    name: str
    duration_s: float
    peaks: list[float]


LampNow = Literal[
    "ready", "loading", "armed", "playing", "paused", "muted", "STOPPED", "FAULT", "LOST"
]


class OffsetNow(TypedDict):
    """How early an action or sound is requested."""

    seconds: float
    is_set: bool
    """Whether the operator has set it; otherwise it was measured."""


class StageRobot(TypedDict):
    """One robot of the stage."""

    name: str
    reachable: bool
    lamp: LampNow
    muted: bool
    """Whether it takes no part until it is unmuted."""
    offsets: dict[str, OffsetNow]
    """By action; `sounds` for its sounds."""
    ready: bool
    """Whether it can begin something: its agent works, and knows the clock well enough."""
    phase: str
    moving: bool
    stopped: bool | None
    """Whether it has confirmed the active stop; None if there is none."""
    clock_bound_ms: float | None
    """Maximum error of its clock."""
    round_trip_ms: float | None
    battery_percent: float | None
    robot: str
    build: str
    fault: str
    faults: list[str]


class StageStop(TypedDict):
    """A stop, which lasts until the user resets it."""

    id: str
    by: str
    confirmed_ms: float | None
    """Time until all robots had confirmed it; None if some have not."""
    unconfirmed: list[str]
    """The robots that have not confirmed it: use their remotes."""
    obstacles: dict[str, str]
    """By robot: why it is not ready to go on after a reset; "" if it is ready."""


RunState = Literal["checking", "waiting", "starting", "playing", "paused", "stopped", "ending"]


class ShowRunNow(TypedDict):
    """The running show."""

    show: str
    how: Literal["show", "rehearsal", "lights"]
    state: RunState
    section: str
    """The section that plays, or the one that begins next."""
    next: str
    """The section after it; "" if it is the last one."""
    sections: list[str]
    waits: Literal["go", "after", "at", "osc", "heard"] | None
    """What begins it; GO always does."""
    detail: str
    """The time, the OSC address or the spoken word that begins it."""
    elapsed_s: float | None
    """Time since the section began, without pauses; negative before its start, None until that is
    agreed."""
    left_s: float | None
    """The rest of the section that plays, or is paused."""
    duration_s: float
    """The duration of the section that plays, or is paused; else 0."""
    interruption: str
    """Why the last section was stopped or refused; "" once a section has begun again."""
    robots: list[str]
    """The robots of the cast."""


class SkewNow(TypedDict):
    """How far apart robots began, in ms."""

    p50: float | None
    max: float | None


class SectionSeen(TypedDict):
    """One section that was played."""

    name: str
    skew_ms: SkewNow
    late: list[str]
    lost: list[str]
    """The robots whose agents were lost in it."""
    incomplete: list[str]
    """The robots that did not complete it, those included."""
    faults: dict[str, str]
    """Why, by robot, as far as their agents reported a reason."""


class ShowEnded(TypedDict):
    """The result of the last show."""

    show: str
    run: str
    """New for every run of a show."""
    ended: str
    """Why it ended early; empty if it did not."""
    finished_early: bool
    """Whether the operator has ended it."""
    interruptions: list[str]
    """Why sections were stopped or refused before the show went on."""
    unconfirmed: list[str]
    """The robots that have not confirmed the STOP that ended it."""
    lost: list[str]
    """The robots whose agents were lost in the section with which it ended early."""
    sections: list[SectionSeen]


WorstState = Literal["stop-unconfirmed", "fault", "lost", "moving", "stopped", "rest"]


class StageWorst(TypedDict):
    """The worst state of any robot of the stage, and which robots are in it."""

    state: WorstState
    robots: list[str]


class StageNow(TypedDict):
    """The stage, as it is now."""

    there: bool
    """Whether this server conducts a stage; otherwise shows are edited only."""
    is_superseded: bool
    """Whether another conductor has taken over: only STOP works here."""
    name: str
    robots: list[StageRobot]
    run: ShowRunNow | None
    stop: StageStop | None
    last: ShowEnded | None
    worst: StageWorst | None
    """None without a stage."""
