"""The requests and answers about shows and the stage as types; a show's own are made of its fields.

Further rules, like which fields go together, are checked when a show is parsed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, create_model

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


def _model(name: str, about: str, fields: Sequence[ShowField], **more: Any) -> type[RequestModel]:
    made: dict[str, Any] = {field.name: _field(field) for field in fields}
    return create_model(name, __base__=RequestModel, __doc__=about, **made, **more)


def _field(field: ShowField) -> tuple[Any, Any]:
    """Return the type of a show's field, and its constraints; what is left out is null here."""
    kind = _KINDS[field.kind]
    if field.choices:
        kind = Literal[field.choices]
    elif field.kind in (FieldKind.NUMBER, FieldKind.COUNT):
        finite = False if field.kind is FieldKind.NUMBER else None
        # A limit that is left open: larger than any show is long.
        low, high = field.low, shows.MAX_S if field.high is None else field.high
        kind = Annotated[kind, Field(ge=low, le=high, allow_inf_nan=finite)]
    if field.required:
        return kind, Field(description=field.help)
    return kind | None, Field(default=None, description=field.help)


if TYPE_CHECKING:

    class ShowSectionNow(RequestModel):
        """A section."""

    class ShowRoleNow(RequestModel):
        """A role."""

else:
    ShowRoleNow = _model("ShowRoleNow", "A role of a show.", shows.ROLE_FIELDS)
    ShowTrigger = _model("ShowTrigger", "What begins a section.", shows.TRIGGER_FIELDS)
    ShowClip = _model("ShowClip", "A motion of one role.", shows.CLIP_FIELDS)
    ShowCue = _model("ShowCue", "Something beside motion.", shows.CUE_FIELDS)
    ShowSectionNow = _model(
        "ShowSectionNow",
        "From one start together to the next.",
        shows.SECTION_FIELDS,
        start=(ShowTrigger | None, None),
        clips=(Annotated[list[ShowClip], Field(max_length=shows.MAX_ITEMS)], []),
        cues=(Annotated[list[ShowCue], Field(max_length=shows.MAX_ITEMS)], []),
    )


class ShowDocument(RequestModel):
    """A show, as its file has it; what is null here is left out there."""

    rote_show: Literal[1]
    title: Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(utf8)] = ""
    roles: Annotated[
        dict[Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(utf8)], ShowRoleNow],
        Field(min_length=1, max_length=shows.MAX_ROLES),
    ]
    sections: Annotated[list[ShowSectionNow], Field(max_length=shows.MAX_SECTIONS)] = Field([])

    def plain(self) -> dict[str, Any]:
        """Return it as the reader of shows and a file want it, without what was left open."""
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
    """A show to be kept in a file."""

    name: Name
    show: ShowDocument
    known: Annotated[str, Field(max_length=64)] | None = None
    """The tag of the file that this show was opened from. Where the file is another one by now, or
    there is one although none was known, nothing is written."""
    replace: bool = False
    """Write it nevertheless."""


class SaveCast(RequestModel):
    """A cast to be kept in a file."""

    name: Name
    cast: CastNow


class NamedShow(RequestModel):
    """Which show."""

    name: Name


class RenameShow(RequestModel):
    """The old and the new name of a show; its cast of the same name goes along."""

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
    """Begin a show, or the next section of the one that is under way."""

    show: Name
    """The show's name: what is run is its file, as the command line runs it."""
    cast: CastNow
    section: Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(utf8)] | None = None
    """The requested section. If another one is due, nothing begins."""
    known: Annotated[str, Field(max_length=64)] | None = None
    """The tag of the file that the person has seen. Where it is another one by now, nothing
    begins."""
    how: Literal["show", "rehearsal", "lights"] = "show"
    """As it is, at half speed, or without motion."""
    force: bool = False
    """Run it although a check warns; what a check forbids is refused nevertheless."""


# ---- answers ------------------------------------------------------------------------------------


class ShowEntry(BaseModel):
    """One show of this computer."""

    name: str
    title: str
    roles: list[str]
    sections: int
    problem: str
    """Why it cannot be read; empty if it can."""


class SoundEntry(BaseModel):
    """One sound beside the shows."""

    name: str
    duration_s: float | None
    """None if it cannot be read."""


class ShowShelf(BaseModel):
    """The shows, casts and sounds of this computer."""

    shows: list[ShowEntry]
    casts: dict[str, dict[str, str]]
    """By name: from role to robot."""
    sounds: list[SoundEntry]
    folder: str
    """Where they are on the server's computer."""


class ShowOpened(BaseModel):
    """A show, and by what its file is known again."""

    name: str
    tag: str
    path: str
    show: ShowDocument


class ShowSaved(BaseModel):
    """Where a show was kept."""

    name: str
    tag: str
    path: str


class ShowFindingNow(FindingNow):
    """Something to know before a show runs; `time_s` counts from the section's start."""

    section: str | None
    role: str | None


class ShowChecked(BaseModel):
    """What speaks against running a show."""

    ok: bool
    findings: list[ShowFindingNow]


class RoleCurves(BaseModel):
    """What one role does in a section, as one motion."""

    role: str
    at_s: float
    """When its first pose is due."""
    build: str
    names: list[str]
    times_s: list[float]
    """From its first pose on."""
    joints_rad: list[list[float]]


class SectionCurves(BaseModel):
    """What every role does in a section; those that cannot be compiled are missing."""

    section: str
    duration_s: float
    roles: list[RoleCurves]


class SoundPeaks(BaseModel):
    """A sound as it is drawn: the loudest sample of each part, 0 to 1."""

    name: str
    duration_s: float
    peaks: list[float]


class StageRobot(BaseModel):
    """One robot of the stage."""

    name: str
    reachable: bool
    ready: bool
    """Whether it can begin something: its agent works, and knows the clock well enough."""
    phase: str
    moving: bool
    stopped: bool | None
    """Whether it has confirmed the stop that holds; None if none holds."""
    clock_bound_ms: float | None
    """How wrong its clock may be at most."""
    round_trip_ms: float | None
    battery_percent: float | None
    robot: str
    build: str
    fault: str
    faults: list[str]


class StageStop(BaseModel):
    """A stop that holds until a person resets it."""

    by: str
    confirmed_ms: float | None
    """Time until all robots had confirmed it; None if some have not."""
    unconfirmed: list[str]
    """The robots that have not confirmed it: use their remotes."""


class ShowRunNow(BaseModel):
    """The show that is under way."""

    show: str
    how: Literal["show", "rehearsal", "lights"]
    state: Literal["checking", "waiting", "starting", "playing"]
    section: str
    """The section that plays, or the one that is next."""
    waits: Literal["go", "after", "at", "osc", "heard"] | None
    """What begins it; GO always does."""
    detail: str
    """The time, the address or the word that is waited for."""
    elapsed_s: float | None
    """Since the section began; below 0 before it. None while nothing is settled."""
    duration_s: float


class SkewNow(BaseModel):
    """How far apart robots began, in ms."""

    p50: float | None
    max: float | None


class SectionSeen(BaseModel):
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


class ShowEnded(BaseModel):
    """How the last show went."""

    show: str
    run: str
    """Another one for every run of a show."""
    ended: str
    """Why it ended early; empty if it did not."""
    unconfirmed: list[str]
    """The robots that have not confirmed the STOP that ended it."""
    lost: list[str]
    """The robots whose agents were lost in the section with which it ended early."""
    sections: list[SectionSeen]


class StageWorst(BaseModel):
    """The worst state of any robot of the stage, and which robots are in it."""

    state: Literal["stop-unconfirmed", "fault", "lost", "moving", "stopped", "rest"]
    robots: list[str]


class StageNow(BaseModel):
    """The stage, as it is now."""

    there: bool
    """Whether this server conducts a stage; otherwise shows are edited only."""
    name: str
    robots: list[StageRobot]
    run: ShowRunNow | None
    stop: StageStop | None
    last: ShowEnded | None
    worst: StageWorst | None
    """None without a stage."""
