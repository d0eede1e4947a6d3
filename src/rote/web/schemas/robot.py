"""The requests and answers of the API as types; /openapi.json is generated from them."""

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model
from typing_extensions import TypedDict

from rote.messages import HandScript
from rote.model.family import MAX_MOTION_S, Vector
from rote.motion.edit.table import EDITS, KINDS, MAX_TEXT, SEVERAL, Edit, Parameter, ParameterKind
from rote.text import Act

MAX_STEPS = 100
MAX_OTHERS = 20


def utf8(text: str) -> str:
    """Return a text that can be written as UTF-8, or raise `ValueError`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it contains characters that cannot be encoded as UTF-8") from None
    return text


Text = Annotated[str, Field(max_length=200), AfterValidator(utf8)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_TEXT), AfterValidator(utf8)]
TakeName = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(utf8)]
"""The name of an existing take; a copied file may have a longer name than a new take."""
ActionName = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(utf8)]
"""The name of an existing action; the robot limits its length."""
Tag = Annotated[str, Field(min_length=1, max_length=60), AfterValidator(utf8)]
Seconds = Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)]
Moment = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
LearnedId = Annotated[str, Field(min_length=1, max_length=40), AfterValidator(utf8)]
Version = Annotated[int, Field(ge=1, le=2**31 - 1)]
Angle = Annotated[float, Field(ge=-7, le=7, allow_inf_nan=False)]
Tempo = Annotated[float, Field(ge=0.05, le=4.0, allow_inf_nan=False)]


class RequestModel(BaseModel):
    """A request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


# ---- edits --------------------------------------------------------------------------------------


def step_models(edits: Mapping[str, Edit] = EDITS) -> list[type[RequestModel]]:
    """Return the request type of each edit of the table, with which a page applies it."""
    return [_make_step_model(edit) for edit in edits.values()]


def _make_step_model(edit: Edit) -> type[RequestModel]:
    fields: dict[str, Any] = {"op": (Literal[(edit.name, *edit.aliases)], ...)}
    if edit.tracks == 2:
        fields["other"] = (TakeName, Field(description="The take that is the second motion."))
    elif edit.tracks == SEVERAL:
        fields["others"] = (
            Annotated[list[TakeName], Field(min_length=1, max_length=MAX_OTHERS)],
            Field(description="The takes to go with this one."),
        )
    for parameter in edit.parameters:
        alias_sets_it = any(parameter.name in values for values in edit.aliases.values())
        fields[parameter.name] = _make_step_field(
            parameter, required=parameter.required and not alias_sets_it
        )
    title = "".join(word.capitalize() for word in edit.name.split("_"))
    return create_model(f"{title}Step", __base__=RequestModel, __doc__=edit.summary, **fields)


FiniteNumber = Annotated[float, Field(allow_inf_nan=False)]
_FIELD_TYPES: dict[type, Any] = {
    tuple: tuple,  # replaced: these parameters have columns
    float: float,
    bool: bool,
    str: Name,
    list: Annotated[list[Name], Field(min_length=1, max_length=200)],
    dict: Annotated[dict[Name, Angle], Field(min_length=1, max_length=200)],
}


def _make_step_field(parameter: Parameter, *, required: bool) -> tuple[Any, Any]:
    """Return the type of a parameter with its constraints, and the field's default and labels."""
    labels: dict[str, Any] = {"title": parameter.title, "description": parameter.help}
    field_type = _FIELD_TYPES[KINDS[parameter.kind].value]
    if parameter.choices:
        field_type = Literal[parameter.choices]
    if parameter.columns:
        count = len(parameter.columns)
        row = Annotated[list[FiniteNumber], Field(min_length=count, max_length=count)]
        rows = Annotated[list[row], Field(min_length=1, max_length=200)]
        field_type = rows if parameter.kind is ParameterKind.ROWS else row
    if parameter.range is not None:
        low, high = parameter.range.low, parameter.range.high
        field_type = Annotated[float, Field(ge=low, le=high, allow_inf_nan=False)]
    if required:
        return field_type, Field(**labels)
    if parameter.default is None:
        field_type = field_type | None
    return field_type, Field(default=parameter.default, **labels)


if TYPE_CHECKING:

    class Step(RequestModel):
        """An edit and its parameters; the table of edits lists them."""

        op: str

else:
    Step = Annotated[reduce(or_, step_models()), Field(discriminator="op")]
Steps = Annotated[list[Step], Field(max_length=MAX_STEPS)]


# ---- requests -----------------------------------------------------------------------------------


class Nothing(RequestModel):
    """A request without details: {}."""


class ConnectTo(RequestModel):
    """Which robot to connect to."""

    url: Text
    key: Annotated[str, Field(max_length=64), AfterValidator(utf8)] | None = None
    wanted: Literal["look", "teach"] | None = None
    """The purpose, if a robot has levels: to examine it without any risk, or to teach and play it.
    By default the level of the URL; then a level that makes a standing robot go limp is refused.
    """


class ModeTo(RequestModel):
    """Which mode to change to."""

    target: Literal["stand", "damp", "lie"]
    yes: bool = False
    """For damp: the user has confirmed that a standing robot goes limp."""


class TeachStart(RequestModel):
    """The name of the new motion."""

    name: Name
    overwrite: bool = False


class TeachFinish(RequestModel):
    """Whether to keep the take, and its final name if it changes."""

    save: bool
    name: Name | None = None


class ByHand(RequestModel):
    """A scripted hand of a simulated robot."""

    script: HandScript
    seconds: Annotated[float, Field(gt=0, le=MAX_MOTION_S, allow_inf_nan=False)]


class Drag(RequestModel):
    """The position that a joint is pulled to; without a joint, all are released."""

    joint: Name | None
    value_rad: Angle = 0.0


class Play(RequestModel):
    """A taught action, and how to play it."""

    name: ActionName
    speed: Tempo | None = None
    loop: bool = False


class StoreTake(RequestModel):
    """A take of this computer, edited, to be stored on the robot as an action."""

    take: TakeName
    name: Name
    """The name of the action on the robot."""
    version: Version | None = None
    """Which version of the take; the newest by default."""
    steps: Steps = []


class Perform(RequestModel):
    """A factory action."""

    preset: Annotated[int, Field(ge=0, le=2**31 - 1)]


class PlayTake(RequestModel):
    """A take of this computer, edited, to be streamed."""

    take: TakeName
    version: Version | None = None
    """Which version of the take; the newest by default."""
    steps: Steps = []
    speed: Tempo | None = None
    force: bool = False
    """Play it despite warnings of a check; errors of a check still refuse it."""
    mapped: bool = False
    """Play a motion of another build of the same family by joint names."""
    imported: bool = False
    """Play an imported motion on a real robot; the user confirms it once for each file."""
    loop: bool = False
    """Repeat it until it is stopped: without a pause if it ends in its first pose, otherwise after
    a soft return."""


TicketId = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(utf8)]
Digest = Annotated[str, Field(min_length=64, max_length=64, pattern="^[0-9a-f]*$")]


class ProposeMotion(RequestModel):
    """A take that an agent proposes to play."""

    take: TakeName
    version: Version | None = None
    """Which version of the take; the newest by default."""
    speed: Tempo = 1.0
    motion: Digest | None = None
    """The agent's digest of the motion, if it has one; a take with another digest is refused."""


class BeginProposed(ProposeMotion):
    """A proposed motion, and its ticket."""

    ticket: TicketId


class OneTicket(RequestModel):
    """Which proposal."""

    ticket: TicketId


class PressApproval(OneTicket):
    """Which proposal, the digest that the user has seen, and the secret from the terminal."""

    digest: Digest
    secret: Text


class GiveCommand(RequestModel):
    """The number of a connected browser."""

    number: Annotated[int, Field(ge=1, le=2**31 - 1)]


class LockCommand(RequestModel):
    """Whether only teachers may take command."""

    locked: bool


class CallMe(RequestModel):
    """The name by which others see this browser; an empty one removes it."""

    name: Text


class Pause(RequestModel):
    """Pause, or resume."""

    paused: bool


class Rename(RequestModel):
    """The old and the new name."""

    old: ActionName
    new: Name


class Delete(RequestModel):
    """What to delete."""

    name: ActionName


class Restore(RequestModel):
    """What to restore from the trash."""

    id: ActionName
    to: Name | None = None
    """Another name, if its own is taken."""


class Purge(RequestModel):
    """What to delete from the trash permanently."""

    id: ActionName


class TagTake(RequestModel):
    """Which tags to add to a take, and which to remove."""

    name: TakeName
    add: Annotated[list[Tag], Field(max_length=32)] = []
    remove: Annotated[list[Tag], Field(max_length=32)] = []


class EditTake(RequestModel):
    """A take and the edits to apply."""

    take: TakeName
    version: Version | None = None
    """Which version of the take; the newest by default."""
    steps: Steps = []


class EditPart(EditTake):
    """A take, the edits to apply, and which part of the result to show; all by default."""

    start_s: Moment = 0.0
    end_s: Moment | None = None


class EditKeyframes(EditTake):
    """A take, the edits to apply, and the joints to show; all that move by default."""

    joints: Annotated[list[Name], Field(min_length=1, max_length=200)] | None = None


class EditSave(EditTake):
    """A take, the edits to apply, and the name under which to save the result."""

    name: TakeName
    over: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    """The newest version of the take `name` that the client knows, 0 for none. If that has changed,
    nothing is saved. By default the result is always saved as the newest version.
    """


class LearnTakes(RequestModel):
    """Takes of one motion, to learn from."""

    takes: Annotated[list[TakeName], Field(min_length=1, max_length=MAX_OTHERS)]


Metres = Annotated[float, Field(ge=-10, le=10, allow_inf_nan=False)]


class HandTarget(RequestModel):
    """Where a hand is to be at one moment, in the frame of the robot's base."""

    hand: Literal["left", "right"]
    time_s: Moment
    x_m: Metres
    y_m: Metres
    z_m: Metres


class AdaptLearned(RequestModel):
    """How to adapt a learned motion."""

    id: LearnedId
    through: Annotated[list[HandTarget], Field(max_length=20)] = []
    duration_s: Seconds | None = None
    """As learned by default."""
    start: Annotated[dict[Name, Angle], Field(max_length=200)] = {}
    """Angles of the first pose; other joints begin as learned."""
    end: Annotated[dict[Name, Angle], Field(max_length=200)] = {}
    """Angles of the last pose; other joints end as learned."""


class PreviewAdapted(AdaptLearned):
    """How to adapt a learned motion, and whether to check the result, which takes longer."""

    check: bool = True


class SaveAdapted(AdaptLearned):
    """How to adapt a learned motion, and the name under which to save the result."""

    name: TakeName
    over: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    """As for an edited take."""


class AcknowledgeEvent(RequestModel):
    """Which event the user has read."""

    id: Annotated[int, Field(ge=1, le=2**31 - 1)]


UnsavedId = Annotated[str, Field(min_length=1, max_length=40), AfterValidator(utf8)]


class SaveUnsaved(RequestModel):
    """Where to write a take that could not be saved."""

    id: UnsavedId
    name: Name
    folder: Annotated[str, Field(max_length=1000), AfterValidator(utf8)] | None = None
    """One of the folders that the server offers; the library by default."""


class DiscardUnsaved(RequestModel):
    """Which take in memory to discard."""

    id: UnsavedId


# ---- answers ------------------------------------------------------------------------------------


class Problem(TypedDict):
    """Why a request failed."""

    error: str
    message: str
    remedy: str
    stage: NotRequired[str | None]
    texts: NotRequired["Texts | None"]


class Connection(TypedDict):
    """The state of the connection to the robot."""

    state: Literal["connected", "connecting", "lost", "off"]
    url: str | None
    wire: str | None
    simulated: bool
    stage: str | None
    message: str
    remedy: str
    texts: "Texts"


class ModeNow(TypedDict):
    """The mode the robot is in."""

    id: int
    name: str
    label: str
    balanced: bool


class FactNow(TypedDict):
    """One fact of a sentence: a quantity, a span, names, an act, a text, or a sentence."""

    value: NotRequired[float | None]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    unit: NotRequired[str | None]
    digits: NotRequired[int | None]
    names: NotRequired[list[str] | None]
    act: NotRequired[Act | None]
    text: NotRequired[str | None]
    template: NotRequired[str | None]
    facts: NotRequired["dict[str, FactNow] | None"]


class TextNow(TypedDict):
    """A sentence with a name in braces for each of its facts."""

    template: str
    facts: dict[str, FactNow]


class Texts(TypedDict):
    """Message and remedy, for a page that renders them in its own way."""

    message: TextNow
    remedy: TextNow


class FindingNow(TypedDict):
    """Something to know before a robot moves."""

    severity: Literal["error", "warning", "note"]
    kind: str
    joint: str | None
    time_s: float | None
    value: float | None
    limit: float | None
    margin: float | None
    unit: str
    message: str
    remedy: str
    acts: list[Act]
    texts: Texts


PhaseName = Literal["none", "approach", "playing", "return"]


class ActivityNow(TypedDict):
    """What the robot is doing."""

    kind: Literal["idle", "teaching", "playing", "performing"]
    name: str
    phase: PhaseName
    elapsed_s: float
    duration_s: float | None
    fraction: float
    round: int
    samples: int


RoleName = Literal["watch", "command", "teacher"]


class NextCommander(TypedDict):
    """The client that commands when the countdown has ended."""

    number: int
    name: str | None
    in_s: float


class Commander(TypedDict):
    """The client in command; none if `number` is null."""

    you: bool
    number: int | None
    name: str | None
    locked: bool
    """Whether only teachers may take command."""
    next: NextCommander | None


class Person(TypedDict):
    """A connected browser: its number, and the name that its user has set."""

    number: int
    name: str | None
    role: RoleName


class FreePlaces(TypedDict):
    """How many more browsers of each role the server admits."""

    watch: int
    command: int
    teacher: int


class People(TypedDict):
    """All connected browsers."""

    people: list[Person]
    free: FreePlaces


class Links(TypedDict):
    """The query strings of links to this page for others; null if no token is required.

    No client gets a link of a higher role than its own.
    """

    command: str | None
    watch: str | None


class PlaybackEnd(TypedDict):
    """How a playback ended."""

    completed: bool
    reason: str
    """Why it ended early; empty if it did not."""


class TicketNow(TypedDict):
    """The state of a proposal, and the motion, robot and build that it is bound to."""

    ticket: str
    state: Literal["waiting", "held", "approved", "used", "refused", "expired", "void"]
    take: str
    version: int
    motion: str
    """The SHA-256 of the motion."""
    speed: float
    robot: str
    build: str
    digest: str
    """The SHA-256 of all of these."""
    ended: PlaybackEnd | None
    """How its playback ended; None if it has not begun or is still running."""


OpenTicketState = Literal["waiting", "held", "approved"]


class ProposalNow(TypedDict):
    """A motion that an agent has proposed, and that waits for the user."""

    ticket: str
    state: OpenTicketState
    take: str
    version: int
    speed: float
    digest: str
    """The SHA-256 of motion, speed, robot and build."""
    left_s: float
    """Seconds until it expires."""
    hold_s: float
    """How long the user must hold the button, in seconds."""


class UnconfirmedStop(TypedDict):
    """A stop that the robot has not confirmed; the server sends it again."""

    since_s: float
    """Seconds since it was requested."""
    message: str
    text: TextNow


class SoftLimbs(TypedDict):
    """The robot's limbs are soft, or may be."""

    by: Literal["teaching", "elsewhere", "damping", "unknown"]
    """This server's teaching; another client or a teaching that was cut off; the damping mode; or
    not known because the connection was lost while they were soft."""
    can_hold: bool
    """Whether a stop makes them hold."""


class UnsavedTake(TypedDict):
    """A take that is only in the server's memory because it could not be written."""

    id: str
    name: str
    duration_s: float
    samples: int
    problem: str
    folders: list[str]
    """Other folders it can be written to."""


EventKind = Literal[
    "stop",
    "stop-unconfirmed",
    "stop-confirmed",
    "lost",
    "back",
    "saved",
    "recovered",
    "not-saved",
    "soft",
    "ended",
    "stage",
]


class EventNow(TypedDict):
    """Something that has happened, for the list of recent events."""

    id: int
    time_s: float
    """Seconds since 1970."""
    kind: EventKind
    safety: bool
    """Whether it is shown until the user has acknowledged it."""
    acknowledged: bool
    message: str
    text: TextNow


class EventList(TypedDict):
    """The recent events, the oldest first."""

    events: list[EventNow]


class PendantStatus(TypedDict):
    """Everything that a page shows as status."""

    connection: Connection
    mode: ModeNow | None
    build: str | None
    """The build of the robot; None if none is connected."""
    family: str | None
    title: str | None
    """The build's name as shown to the user."""
    battery_percent: float | None
    temperatures_c: list[float]
    faults: list[str]
    findings: list[FindingNow]
    abilities: list[str]
    elsewhere: list[str]
    """Abilities at another level, for which the page must connect again."""
    activity: ActivityNow
    commander: Commander
    holding: bool
    stops: int
    """Number of stops requested by any client since the server started."""
    paused: bool
    """Whether the recording is paused."""
    return_in_s: float | None
    """Maximum time in seconds until limbs that hold after teaching return by themselves; None if
    they do not, or are already returning."""
    return_s: float | None
    """Approximate duration of that return in seconds; None if the limbs stay where they are."""
    proposal: ProposalNow | None
    """The motion that an agent proposes; None if there is nothing to decide."""
    unconfirmed_stop: UnconfirmedStop | None
    soft: SoftLimbs | None
    """None if the limbs hold or are at rest."""
    actions_changes: int
    """Increases whenever the list of actions has changed."""
    takes_changes: int
    """Increases whenever this server changes the library."""
    storage_problem: Texts | None
    """Why the take that is being recorded cannot be written; None if it can."""
    unsaved: list[UnsavedTake]


class Mount(TypedDict):
    """The pose of a link on its parent, in metres and rad."""

    parent: str
    link: str
    origin: Vector
    rpy: Vector


class JointFacts(Mount):
    """One joint, and its pose on its parent."""

    index: int
    """Its index in a state's positions."""
    name: str
    lower_rad: float
    upper_rad: float
    taught: bool
    axis: Vector
    part: str
    """leg, waist, arm, wrist, head or finger."""


class LinkPlace(TypedDict):
    """A point on a link, in metres."""

    link: str
    at: Vector


class LimbEnd(LinkPlace):
    """A hand or a foot, and the joints that move it."""

    limb: str
    """left_arm, front_left_leg and so on; empty if it has no name."""
    joints: list[str]
    """From the body outwards."""


class Stick(TypedDict):
    """A line of the stick figure."""

    side: Literal["left", "right", ""]
    link: str
    """The link that moves it."""
    start: LinkPlace
    end: LinkPlace


class Solid(TypedDict):
    """A capsule on a link; if its radius is 0, a box, and `end` its half sizes."""

    link: str
    start: Vector
    end: Vector
    radius: float


class Head(LinkPlace):
    """A ball for a head."""

    radius: float


class JointTree(TypedDict):
    """A robot as a tree of joints, and what to draw it with."""

    build: str
    family: str
    title: str
    limbs: Literal["arms", "legs"]
    """What is taught: arms or legs."""
    base: str
    """The link that all others are attached to."""
    joints: list[JointFacts]
    fixed: list[Mount]
    """Links that move in other builds, and are rigid in this one."""
    rest_rad: list[float]
    sticks: list[Stick]
    shapes: list[Solid]
    head: Head | None
    floor: list[LinkPlace]
    """The lowest of these points stands on the floor."""
    ends: list[LimbEnd]
    """The ends of the limbs that are taught: hands, or feet."""
    model: bool
    """Whether /api/robot/model has the real shapes."""


class SimulatedRobot(TypedDict):
    """A robot that can be simulated in the server."""

    build: str
    title: str
    url: str


class KnownRobots(TypedDict):
    """The robots that can be simulated, and examples of URLs."""

    simulated: list[SimulatedRobot]
    led: list[SimulatedRobot]
    """Simulated robots that a page cannot drag: a scripted hand moves their soft limbs."""
    examples: list[str]


class RobotFound(TypedDict):
    """A robot on the network."""

    serial: str
    address: str
    url: str


class Robots(TypedDict):
    """All robots that answered."""

    robots: list[RobotFound]


class Findings(TypedDict):
    """What to know before the robot moves, the worst first."""

    findings: list[FindingNow]


class PresetNow(TypedDict):
    """A factory action."""

    id: int
    name: str


class TaughtNow(TypedDict):
    """A taught action."""

    name: str
    duration_s: float
    position: int


class ActionsNow(TypedDict):
    """What the robot can play."""

    presets: list[PresetNow]
    taught: list[TaughtNow]
    free_places: int | None
    """None if the robot's list is not known."""
    now: bool
    """False while the robot is lost; then this is its last known list."""


class TaughtReport(TypedDict):
    """How a teaching ended."""

    take: str | None
    saved: bool
    """Whether the robot, or this computer's disk if the robot stores none, has it."""
    kept: bool
    """Whether it is on this computer's disk."""
    unsaved: str | None
    """The id of the take in memory if it could not be written."""
    duration_s: float
    samples: int
    rate_hz: float


class Curves(TypedDict):
    """Joints over time."""

    names: list[str]
    times_s: list[float]
    joints_rad: list[list[float]]


class StopReport(TypedDict):
    """What a stop did."""

    stopped: Literal["playing", "teaching", "holding", "nothing"]
    message: str
    confirmed: bool
    """Whether the robot has confirmed it. If not, the server sends it again."""


class TakeEntry(TypedDict):
    """One take of this computer."""

    name: str
    duration_s: float
    samples: int
    version: int
    versions: list[int]
    """The versions that can be edited, the oldest first; the last is `version`."""
    tags: list[str]
    variant: str
    family: str | None
    """The robot's family; None if it is not known."""
    title: str
    """The robot's name as shown to the user."""
    source: str
    problem: str
    thumbnail: str


class Takes(TypedDict):
    """The takes of this computer, or some of them."""

    takes: list[TakeEntry]
    total: int
    """Number of all takes that match."""
    tag: str
    """Changes whenever one of these takes changes."""
    same: bool
    """Whether the tag is the one that the client sent; then `takes` is empty."""


class TrashedTake(TypedDict):
    """One deleted take."""

    id: str
    name: str
    deleted_s: float
    """When it was deleted, in seconds since 1970."""
    versions: int
    """0 for a recording that was cut off, which cannot be restored."""
    duration_s: float | None


class Trash(TypedDict):
    """The deleted takes, the newest first."""

    trash: list[TrashedTake]


class Stored(TypedDict):
    """The keyframes of a take that were stored on the robot."""

    name: str
    keyframes: int
    max_error_rad: float
    """Maximum deviation of the keyframes from the take."""


class MarkNow(TypedDict):
    """A moment with a label."""

    time_s: float
    label: str


class TakeMotion(Curves):
    """One take, with at most 1500 rows."""

    name: str
    duration_s: float
    rate_hz: float
    marks: list[MarkNow]
    history: list[str]


class FormatFacts(TypedDict):
    """A file format."""

    name: str
    ending: str
    title: str
    loss: str
    """What is lost in this format; empty if nothing is."""


class Formats(TypedDict):
    """All file formats."""

    formats: list[FormatFacts]


class EditParameter(TypedDict):
    """One parameter of an edit."""

    name: str
    title: str
    help: str
    kind: Literal["number", "flag", "joints", "build", "text", "pose", "choice", "numbers", "rows"]
    choices: list[str]
    """The words of a choice."""
    columns: int
    """How many numbers a row has."""
    form: str
    """What a row of numbers looks like."""
    unit: str
    low: float | None
    high: float | None
    slider: tuple[float, float, float] | None
    default: float | bool | None
    required: bool


class EditFacts(TypedDict):
    """One edit, as a tool shows it."""

    name: str
    title: str
    summary: str
    takes: int
    """How many takes it needs beside the edited one; -1: one or more."""
    parameters: list[EditParameter]


class Edits(TypedDict):
    """All edits."""

    edits: list[EditFacts]


class EditCurves(Curves):
    """An edited take, or a part of it, with at most 1500 rows; the take begins at 0 s."""

    version: int
    """Which version of the take was edited."""
    build: str | None
    """The robot it belongs to; None if it is not known."""
    family: str | None
    title: str
    limbs: dict[str, list[str]]
    """The limbs that the take's joints belong to, each with its joints."""
    whole: bool
    """Whether these are all samples of the requested range; a shorter range may show more."""
    duration_s: float
    history: list[str]
    marks: list[MarkNow]
    jerk: float | None
    peak_rad_s: float
    """The highest speed of any joint."""


class Edited(EditCurves):
    """An edited take, and the result of its check."""

    findings: list[FindingNow]
    ok: bool


class EditCheck(TypedDict):
    """The findings against playing an edited take."""

    version: int
    findings: list[FindingNow]
    ok: bool


class JointKeyframe(TypedDict):
    """An angle that a joint passes through."""

    joint: str
    time_s: float
    value_rad: float


class ProposedKeyframes(TypedDict):
    """A few angles of each joint that moves; smooth steps between them approximate its curve."""

    keyframes: list[JointKeyframe]
    """By joint, then by time; the first and the last moment are among them."""
    max_error_rad: float
    """Maximum deviation of smooth steps between them from the motion."""


class LearnedBand(Curves):
    """A motion learned from several takes: the mean of its joints over time."""

    id: str
    """It is in the server's memory until other motions have replaced it."""
    spread_rad: list[list[float]]
    """The standard deviation of each joint, at the same times."""
    duration_s: float
    takes: list[str]
    build: str | None
    """The robot it belongs to; None if it is not known."""
    family: str | None
    title: str


class FarPoint(TypedDict):
    """A point for a hand that is far from the takes."""

    hand: Literal["left", "right"]
    time_s: float
    std: float
    """The distance in standard deviations of the takes."""


class Adapted(Curves):
    """A learned motion, adapted."""

    duration_s: float
    """Longer than requested if the motion would be too fast."""
    far: list[FarPoint]
    """Points far from the takes, where the motion is a guess."""
    findings: list[FindingNow] | None
    """The findings against playing it; None if it was not checked."""
    ok: bool | None


class SavedAt(TypedDict):
    """Where a take was written."""

    path: str


class Done(BaseModel):
    """The request was carried out."""

    done: bool = True
