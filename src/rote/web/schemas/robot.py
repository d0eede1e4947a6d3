"""The requests and answers of the API as types; /openapi.json is generated from them."""

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from rote.messages import HandScript
from rote.model.family import MAX_MOTION_S, Vector
from rote.motion.edit.table import EDITS, KINDS, MAX_TEXT, SEVERAL, Edit, Parameter
from rote.text import Act

MAX_STEPS = 100
MAX_OTHERS = 20


def utf8(text: str) -> str:
    """Return a text that can be written as UTF-8, or raise `ValueError`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds characters that cannot be written as UTF-8") from None
    return text


Text = Annotated[str, Field(max_length=200), AfterValidator(utf8)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_TEXT), AfterValidator(utf8)]
TakeName = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(utf8)]
"""The name of a take that is there already: a copied file may have a longer one than a new take."""
ActionName = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(utf8)]
"""A name that is on the robot already: its length is the robot's choice."""
Tag = Annotated[str, Field(min_length=1, max_length=60), AfterValidator(utf8)]
Seconds = Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)]
Moment = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
Version = Annotated[int, Field(ge=1, le=2**31 - 1)]
Angle = Annotated[float, Field(ge=-7, le=7, allow_inf_nan=False)]
Tempo = Annotated[float, Field(ge=0.05, le=4.0, allow_inf_nan=False)]


class RequestModel(BaseModel):
    """A request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


# ---- edits --------------------------------------------------------------------------------------


def step_models(edits: Mapping[str, Edit] = EDITS) -> list[type[RequestModel]]:
    """Return a type for each edit of the table: what a page sends to apply it."""
    return [_step_model(edit) for edit in edits.values()]


def _step_model(edit: Edit) -> type[RequestModel]:
    fields: dict[str, Any] = {"op": (Literal[(edit.name, *edit.aliases)], ...)}
    if edit.tracks == 2:
        fields["other"] = (TakeName, Field(description="The take that is the second motion."))
    elif edit.tracks == SEVERAL:
        fields["others"] = (
            Annotated[list[TakeName], Field(min_length=1, max_length=MAX_OTHERS)],
            Field(description="The takes to go with this one."),
        )
    for parameter in edit.parameters:
        given = any(parameter.name in values for values in edit.aliases.values())
        fields[parameter.name] = _step_field(parameter, required=parameter.required and not given)
    title = "".join(word.capitalize() for word in edit.name.split("_"))
    return create_model(f"{title}Step", __base__=RequestModel, __doc__=edit.summary, **fields)


_VALUES: dict[type, Any] = {
    float: float,
    bool: bool,
    str: Name,
    list: Annotated[list[Name], Field(min_length=1, max_length=200)],
    dict: Annotated[dict[Name, Angle], Field(min_length=1, max_length=200)],
}


def _step_field(parameter: Parameter, *, required: bool) -> tuple[Any, Any]:
    """Return the type of a parameter, and its constraints."""
    about: dict[str, Any] = {"title": parameter.title, "description": parameter.help}
    kind = _VALUES[KINDS[parameter.kind].value]
    if parameter.range is not None:
        low, high = parameter.range.low, parameter.range.high
        kind = Annotated[float, Field(ge=low, le=high, allow_inf_nan=False)]
    if required:
        return kind, Field(**about)
    if parameter.default is None:
        kind = kind | None
    return kind, Field(default=parameter.default, **about)


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
    """What for, if a robot has levels: to look at it without any risk, or to teach and play it.
    Without it, the level that the URL names; the motors of a robot that may stand are refused.
    """


class ModeTo(RequestModel):
    """Which mode to change to."""

    target: Literal["stand", "damp", "lie"]
    yes: bool = False
    """For damp: a person has confirmed that a standing robot goes limp."""


class TeachStart(RequestModel):
    """The name of the new motion."""

    name: Name
    overwrite: bool = False


class TeachFinish(RequestModel):
    """Whether to keep the take, and under which name if not the first."""

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
    """A take of this computer, edited, to be put on the robot as an action."""

    take: TakeName
    name: Name
    """What the action is called on the robot."""
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
    """Play it although a check warns; what a check forbids is refused nevertheless."""
    mapped: bool = False
    """Play a motion of another build of the same family by joint names."""
    imported: bool = False
    """Play a motion that others made on a real robot; a person is asked once for each file."""
    loop: bool = False
    """Play it again and again until it is stopped: without a pause where it ends in its first pose,
    after a soft return where it does not."""


TicketId = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(utf8)]
Digest = Annotated[str, Field(min_length=64, max_length=64, pattern="^[0-9a-f]*$")]


class ProposeMotion(RequestModel):
    """A take that an agent wants to be played."""

    take: TakeName
    version: Version | None = None
    """Which version of the take; the newest by default."""
    speed: Tempo = 1.0
    motion: Digest | None = None
    """The agent's own digest of the motion, where it has one: another one is refused."""


class BeginProposed(ProposeMotion):
    """The same, and the ticket for it."""

    ticket: TicketId


class OneTicket(RequestModel):
    """Which proposal."""

    ticket: TicketId


class PressApproval(OneTicket):
    """Which proposal, what the person has read of it, and the secret of the terminal."""

    digest: Digest
    secret: Text


class GiveCommand(RequestModel):
    """The number of a connected browser."""

    number: Annotated[int, Field(ge=1, le=2**31 - 1)]


class LockCommand(RequestModel):
    """Whether only teachers may take command."""

    locked: bool


class CallMe(RequestModel):
    """The name by which others see this browser; an empty one takes it away."""

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
    """What to bring back from the trash."""

    id: ActionName
    to: Name | None = None
    """Another name, if its own is taken."""


class Purge(RequestModel):
    """What to delete from the trash for good."""

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
    """The same, and which part of the result to show; the whole by default."""

    start_s: Moment = 0.0
    end_s: Moment | None = None


class EditKeyframes(EditTake):
    """The same, and of which joints; of all that move by default."""

    joints: Annotated[list[Name], Field(min_length=1, max_length=200)] | None = None


class EditSave(EditTake):
    """The same, saved as another take."""

    name: TakeName
    over: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    """The newest version of the take `name` that the caller knows, 0 for none. If the take has
    another one now, nothing is saved. Without it the take is saved as the newest version anyway.
    """


class AcknowledgeEvent(RequestModel):
    """Which event a person has read."""

    id: Annotated[int, Field(ge=1, le=2**31 - 1)]


UnsavedId = Annotated[str, Field(min_length=1, max_length=40), AfterValidator(utf8)]


class SaveUnsaved(RequestModel):
    """Where to write a take that could not be saved."""

    id: UnsavedId
    name: Name
    folder: Annotated[str, Field(max_length=1000), AfterValidator(utf8)] | None = None
    """One of the folders that the server offers; the library by default."""


class DiscardUnsaved(RequestModel):
    """Which take in memory to give up."""

    id: UnsavedId


# ---- answers ------------------------------------------------------------------------------------


class Problem(BaseModel):
    """Why something was not done."""

    error: str
    message: str
    remedy: str
    stage: str | None = None
    texts: "Texts | None" = None


class Connection(BaseModel):
    """The state of the connection to the robot."""

    state: Literal["connected", "connecting", "lost", "off"]
    url: str | None
    wire: str | None
    simulated: bool
    stage: str | None
    message: str
    remedy: str
    texts: "Texts"


class ModeNow(BaseModel):
    """The mode the robot is in."""

    id: int
    name: str
    label: str
    balanced: bool


class FactNow(BaseModel):
    """One fact of a sentence: a quantity, a span, names, an act, a text, or a sentence."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str | None = None
    digits: int | None = None
    names: list[str] | None = None
    act: Act | None = None
    text: str | None = None
    template: str | None = None
    facts: "dict[str, FactNow] | None" = None


class TextNow(BaseModel):
    """A sentence with a name in braces for each of its facts."""

    template: str
    facts: dict[str, FactNow]


class Texts(BaseModel):
    """Message and remedy, for a page that renders them in its own way."""

    message: TextNow
    remedy: TextNow


class FindingNow(BaseModel):
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


class ActivityNow(BaseModel):
    """What the robot is doing."""

    kind: Literal["idle", "teaching", "playing", "performing"]
    name: str
    phase: Literal["none", "approach", "playing", "return"]
    elapsed_s: float
    duration_s: float | None
    fraction: float
    round: int
    samples: int


RoleName = Literal["watch", "command", "teacher"]


class NextCommander(BaseModel):
    """The client that commands when the countdown has ended."""

    number: int
    name: str | None
    in_s: float


class Commander(BaseModel):
    """The client in command; none if `number` is null."""

    you: bool
    number: int | None
    name: str | None
    locked: bool
    """Whether only teachers may take command."""
    next: NextCommander | None


class Person(BaseModel):
    """A browser that is here: its number, and the name it has given itself."""

    number: int
    name: str | None
    role: RoleName


class FreePlaces(BaseModel):
    """How many more browsers of each role the server admits."""

    watch: int
    command: int
    teacher: int


class People(BaseModel):
    """All connected browsers."""

    people: list[Person]
    free: FreePlaces


class Links(BaseModel):
    """The ends of links to this page for others; null where no token is asked for.

    No client gets a link of a higher role than its own.
    """

    command: str | None
    watch: str | None


class PlaybackEnd(BaseModel):
    """How a playback ended."""

    completed: bool
    reason: str
    """Why it ended early; empty if it did not."""


class TicketNow(BaseModel):
    """What has become of a proposal, and what it is bound to."""

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
    """How its playback ended; None if it has not begun or goes on."""


class ProposalNow(BaseModel):
    """A motion that an agent has proposed, and that waits for a person."""

    ticket: str
    state: Literal["waiting", "held", "approved"]
    take: str
    version: int
    speed: float
    digest: str
    """The SHA-256 of motion, speed, robot and build."""
    left_s: float
    """In so many seconds it is void."""
    hold_s: float
    """How long a person must hold the button, in seconds."""


class UnconfirmedStop(BaseModel):
    """A stop that the robot has not confirmed; the server sends it again."""

    since_s: float
    """Seconds since it was requested."""
    message: str
    text: TextNow


class SoftLimbs(BaseModel):
    """The robot's limbs are soft, or may be."""

    by: Literal["teaching", "elsewhere", "damping", "unknown"]
    """This server's teaching; another client or a teaching that was cut off; the damping mode; or
    not known because the connection was lost while they were soft."""
    can_hold: bool
    """Whether a stop makes them hold."""


class UnsavedTake(BaseModel):
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


class EventNow(BaseModel):
    """Something that has happened, for the list of recent events."""

    id: int
    time_s: float
    """Seconds since 1970."""
    kind: EventKind
    safety: bool
    """Whether it is shown until a person has acknowledged it."""
    acknowledged: bool
    message: str
    text: TextNow


class EventList(BaseModel):
    """The recent events, the oldest first."""

    events: list[EventNow]


class PendantStatus(BaseModel):
    """Everything that a page shows as status."""

    connection: Connection
    mode: ModeNow | None
    build: str | None
    """Which machine the robot is; None if none is connected."""
    family: str | None
    title: str | None
    """The build's name for people."""
    battery_percent: float | None
    temperatures_c: list[float]
    faults: list[str]
    findings: list[FindingNow]
    abilities: list[str]
    elsewhere: list[str]
    """What the robot can do at another level, for which the page must connect again."""
    activity: ActivityNow
    commander: Commander
    holding: bool
    stops: int
    """How many stops were asked for since the server began, by whomever."""
    paused: bool
    """Whether what is being taught is not recorded for the moment."""
    return_in_s: float | None
    """Limbs that were taught hold, and in so many seconds at most they return by themselves; None
    where they do not, or do so already."""
    return_s: float | None
    """How long that return takes, about; None where the limbs stay where they are."""
    proposal: ProposalNow | None
    """What an agent wants to be played; None where there is nothing to decide."""
    unconfirmed_stop: UnconfirmedStop | None
    soft: SoftLimbs | None
    """None if the limbs hold or are at rest."""
    actions_changes: int
    """Grows whenever the server has read another list of actions."""
    takes_changes: int
    """Grows whenever the library was changed by this server."""
    storage_problem: Texts | None
    """Why the take that is being recorded cannot be written; None if it can."""
    unsaved: list[UnsavedTake]


class Mount(BaseModel):
    """Where a link sits on another, in metres and rad."""

    parent: str
    link: str
    origin: Vector
    rpy: Vector


class JointFacts(Mount):
    """One joint, and where it sits."""

    index: int
    """Its place in a state's positions."""
    name: str
    lower_rad: float
    upper_rad: float
    taught: bool
    axis: Vector
    part: str
    """leg, waist, arm, wrist, head or finger."""


class LinkPlace(BaseModel):
    """A point on a link, in metres."""

    link: str
    at: Vector


class LimbEnd(LinkPlace):
    """A hand or a foot, and the joints that lead it."""

    limb: str
    """left_arm, front_left_leg and so on; empty if it has no name."""
    joints: list[str]
    """From the body outwards."""


class Stick(BaseModel):
    """A line of the stick figure."""

    side: Literal["left", "right", ""]
    link: str
    """The link that moves it."""
    start: LinkPlace
    end: LinkPlace


class Solid(BaseModel):
    """A capsule on a link; if its radius is 0, a box, and `end` its half sizes."""

    link: str
    start: Vector
    end: Vector
    radius: float


class Head(LinkPlace):
    """A ball for a head."""

    radius: float


class JointTree(BaseModel):
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


class SimulatedRobot(BaseModel):
    """A robot that can be simulated in the server."""

    build: str
    title: str
    url: str


class KnownRobots(BaseModel):
    """The robots that can be simulated, and examples of URLs."""

    simulated: list[SimulatedRobot]
    led: list[SimulatedRobot]
    """Simulated robots that a page cannot drag: a hand leads their limbs once they are soft."""
    examples: list[str]


class RobotFound(BaseModel):
    """A robot on the network."""

    serial: str
    address: str
    url: str


class Robots(BaseModel):
    """All robots that answered."""

    robots: list[RobotFound]


class Findings(BaseModel):
    """What to know before the robot moves, the worst first."""

    findings: list[FindingNow]


class PresetNow(BaseModel):
    """A factory action."""

    id: int
    name: str


class TaughtNow(BaseModel):
    """A taught action."""

    name: str
    duration_s: float
    position: int


class ActionsNow(BaseModel):
    """What the robot can play."""

    presets: list[PresetNow]
    taught: list[TaughtNow]
    free_places: int | None
    """None if the robot's list is not known."""
    now: bool
    """False while the robot is lost; then this is its last known list."""


class TaughtReport(BaseModel):
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


class Curves(BaseModel):
    """Joints over time."""

    names: list[str]
    times_s: list[float]
    joints_rad: list[list[float]]


class StopReport(BaseModel):
    """What a stop did."""

    stopped: Literal["playing", "teaching", "holding", "nothing"]
    message: str
    confirmed: bool
    """Whether the robot has confirmed it. If not, the server sends it again."""


class TakeEntry(BaseModel):
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
    """The robot's name for people."""
    source: str
    problem: str
    thumbnail: str


class Takes(BaseModel):
    """The takes of this computer, or some of them."""

    takes: list[TakeEntry]
    total: int
    """How many there are in all."""
    tag: str
    """Changes when one of these takes does."""
    same: bool
    """Whether they are those of the tag that is known; then `takes` is empty."""


class TrashedTake(BaseModel):
    """One deleted take."""

    id: str
    name: str
    deleted_s: float
    """When it was deleted, in seconds since 1970."""
    versions: int
    """0 for a recording that was cut off, which cannot be restored."""
    duration_s: float | None


class Trash(BaseModel):
    """What was deleted, the newest first."""

    trash: list[TrashedTake]


class Stored(BaseModel):
    """What the robot got of a take."""

    name: str
    keyframes: int
    max_error_rad: float
    """How far the keyframes are off the take at most."""


class MarkNow(BaseModel):
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


class FormatFacts(BaseModel):
    """A file format."""

    name: str
    ending: str
    title: str
    loss: str
    """What it does not keep; empty if it keeps everything."""


class Formats(BaseModel):
    """All file formats."""

    formats: list[FormatFacts]


class EditParameter(BaseModel):
    """One parameter of an edit."""

    name: str
    title: str
    help: str
    kind: Literal["number", "flag", "joints", "build", "text", "pose"]
    unit: str
    low: float | None
    high: float | None
    slider: tuple[float, float, float] | None
    default: float | bool | None
    required: bool


class EditFacts(BaseModel):
    """One edit, as a tool shows it."""

    name: str
    title: str
    summary: str
    takes: int
    """How many takes it needs beside the edited one; -1: one or more."""
    parameters: list[EditParameter]


class Edits(BaseModel):
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
    """Whether these are all samples; otherwise some were left out, and a part shows more."""
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


class EditCheck(BaseModel):
    """What speaks against playing an edited take."""

    version: int
    findings: list[FindingNow]
    ok: bool


class JointKeyframe(BaseModel):
    """An angle that a joint passes through."""

    joint: str
    time_s: float
    value_rad: float


class ProposedKeyframes(BaseModel):
    """A few angles of each joint that moves, from which its whole curve can be guessed."""

    keyframes: list[JointKeyframe]
    """By joint, then by time; the first and the last moment are among them."""
    max_error_rad: float
    """How far smooth steps between them are from the motion, at most."""


class SavedAt(BaseModel):
    """Where a take was written."""

    path: str


class Done(BaseModel):
    """It was done."""

    done: bool = True
