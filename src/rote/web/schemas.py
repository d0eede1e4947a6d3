"""What is asked of the API and what it answers, as types; /openapi.json is made of them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MOST_STEPS = 100


def _utf8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds characters that cannot be written as UTF-8") from None
    return text


Text = Annotated[str, Field(max_length=200), AfterValidator(_utf8)]
Name = Annotated[str, Field(min_length=1, max_length=120), AfterValidator(_utf8)]
Tag = Annotated[str, Field(min_length=1, max_length=60), AfterValidator(_utf8)]
Seconds = Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)]
Moment = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
Version = Annotated[int, Field(ge=1, le=2**31 - 1)]
Tempo = Annotated[float, Field(ge=0.05, le=4.0, allow_inf_nan=False)]


class Asked(BaseModel):
    """A request; a field that is not known is refused."""

    model_config = ConfigDict(extra="forbid")


# ---- edits --------------------------------------------------------------------------------------


class Trim(Asked):
    """Keep what lies between two moments, counted from the beginning of what is trimmed."""

    op: Literal["trim"]
    start_s: Moment
    end_s: Moment


class TrimIdle(Asked):
    """Cut what stands still at both ends."""

    op: Literal["trim_idle"]


class Smooth(Asked):
    """Take out what is faster than a frequency."""

    op: Literal["smooth"]
    cutoff_hz: Annotated[float, Field(ge=0.01, le=1000, allow_inf_nan=False)]


class Speed(Asked):
    """Make it so many times as fast."""

    op: Literal["speed"]
    factor: Annotated[float, Field(ge=0.05, le=20, allow_inf_nan=False)]


class Mirror(Asked):
    """Exchange left and right."""

    op: Literal["mirror"]


class Reverse(Asked):
    """Play it backwards."""

    op: Literal["reverse"]


class Retime(Asked):
    """Keep the path, and go along it as fast as speed, acceleration and jerk allow."""

    op: Literal["retime"]


class CrossFade(Asked):
    """Let another take begin before this one ends, and pass from one to the other."""

    op: Literal["cross_fade"]
    other: Name
    overlap_s: Seconds


class Concatenate(Asked):
    """Let another take follow, after a soft bridge."""

    op: Literal["concatenate"]
    other: Name
    bridge_s: Seconds


class CloseLoop(Asked):
    """Go back to the first pose."""

    op: Literal["close_loop"]
    seconds: Seconds


Step = Annotated[
    Trim
    | TrimIdle
    | Smooth
    | Speed
    | Mirror
    | Reverse
    | Retime
    | CrossFade
    | Concatenate
    | CloseLoop,
    Field(discriminator="op"),
]
Steps = Annotated[list[Step], Field(max_length=MOST_STEPS)]


# ---- requests -----------------------------------------------------------------------------------


class Nothing(Asked):
    """A request without details: {}."""


class ConnectTo(Asked):
    """Which robot."""

    url: Text
    key: Annotated[str, Field(max_length=64), AfterValidator(_utf8)] | None = None
    wanted: Literal["look", "teach"] | None = None
    """What for, where a robot has levels: to look at it without any harm, or to teach and play it.
    Without it, the level that the URL names; motors of a robot that may stand are refused."""


class ModeTo(Asked):
    """Which mode."""

    target: Literal["stand", "damp", "lie"]


class TeachStart(Asked):
    """What the motion will be called."""

    name: Name
    overwrite: bool = False


class TeachFinish(Asked):
    """Whether to keep it, and under which name if not the first."""

    save: bool
    name: Name | None = None


class ByHand(Asked):
    """A scripted hand of a simulated robot."""

    script: Literal["wave", "bow", "clap", "drum"]
    seconds: Annotated[float, Field(gt=0, le=180, allow_inf_nan=False)]


class Drag(Asked):
    """Where a joint is pulled to; no joint lets go."""

    joint: Name | None
    value_rad: Annotated[float, Field(ge=-7, le=7, allow_inf_nan=False)] = 0.0


class Play(Asked):
    """A taught action, and how to play it."""

    name: Name
    speed: Tempo | None = None
    loop: bool = False


class Perform(Asked):
    """A factory action."""

    preset: Annotated[int, Field(ge=0, le=2**31 - 1)]


class PlayTake(Asked):
    """A take of this computer, edited, to be streamed."""

    take: Name
    version: Version | None = None
    """Which version of the take; the newest unless told otherwise."""
    steps: Steps = []
    speed: Tempo | None = None
    force: bool = False
    """Play it although a check warns; what a check forbids is refused all the same."""
    mapped: bool = False
    """Play a motion of another build of the same family by the names of its joints."""


class Pause(Asked):
    """Pause, or go on."""

    paused: bool


class Rename(Asked):
    """From one name to another."""

    old: Name
    new: Name


class Delete(Asked):
    """What to delete."""

    name: Name


class TagTake(Asked):
    """Which tags to add to a take, and which to take away."""

    name: Name
    add: Annotated[list[Tag], Field(max_length=32)] = []
    remove: Annotated[list[Tag], Field(max_length=32)] = []


class Edit(Asked):
    """A take and what to do to it."""

    take: Name
    version: Version | None = None
    """Which version of the take; the newest unless told otherwise."""
    steps: Steps = []


class EditSave(Edit):
    """The same, kept as another take."""

    name: Name


# ---- answers ------------------------------------------------------------------------------------


class Problem(BaseModel):
    """Why something was not done."""

    error: str
    message: str
    remedy: str
    stage: str | None = None


class Connection(BaseModel):
    """How the connection to the robot is."""

    state: Literal["connected", "connecting", "lost", "off"]
    url: str | None
    wire: str | None
    simulated: bool
    stage: str | None
    words: str
    remedy: str


class ModeNow(BaseModel):
    """The mode the robot is in."""

    id: int
    name: str
    words: str
    balanced: bool


class FindingNow(BaseModel):
    """Something about the robot to know before it moves."""

    severity: Literal["error", "warning", "note"]
    words: str
    remedy: str


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


class Commander(BaseModel):
    """Who commands."""

    client: str | None
    you: bool


class Status(BaseModel):
    """Everything a page shows at a glance."""

    connection: Connection
    mode: ModeNow | None
    build: str | None
    """Which machine the robot is; None where none is connected."""
    family: str | None
    title: str | None
    """The build in words."""
    battery_percent: float | None
    temperatures_c: list[float]
    faults: list[str]
    findings: list[FindingNow]
    abilities: list[str]
    elsewhere: list[str]
    """What the robot can do at another level, which is connected to anew."""
    activity: ActivityNow
    commander: Commander
    holding: bool


class Mount(BaseModel):
    """Where a link sits on another, in metres and rad."""

    parent: str
    link: str
    origin: list[float]
    rpy: list[float]


class JointFacts(Mount):
    """One joint, and where it sits."""

    index: int
    """Its place in a state's angles."""
    name: str
    lower_rad: float
    upper_rad: float
    taught: bool
    axis: list[float]
    part: str
    """leg, waist, arm, wrist, head or finger."""


class Place(BaseModel):
    """A place on a link, in metres."""

    link: str
    at: list[float]


class Stick(BaseModel):
    """A line of the figure that stands for a robot."""

    side: Literal["left", "right", ""]
    link: str
    """The link that moves it."""
    start: Place
    end: Place


class Solid(BaseModel):
    """A capsule on a link; where its radius is 0, a box, and `end` its half sizes."""

    link: str
    start: list[float]
    end: list[float]
    radius: float


class Head(Place):
    """A ball for a head."""

    radius: float


class Joints(BaseModel):
    """A robot as a tree of joints, and what to draw it with."""

    build: str
    family: str
    title: str
    limbs: Literal["arms", "legs"]
    """What it is taught by."""
    base: str
    """The link on which all others hang."""
    joints: list[JointFacts]
    fixed: list[Mount]
    """Links that move in other builds, and are rigid in this one."""
    rest_rad: list[float]
    sticks: list[Stick]
    shapes: list[Solid]
    head: Head | None
    floor: list[Place]
    """The lowest of these stands on the floor."""
    model: bool
    """Whether /api/robot/model has the real shapes."""


class SimulatedRobot(BaseModel):
    """A robot that can be simulated inside the server."""

    build: str
    title: str
    url: str


class KnownRobots(BaseModel):
    """Robots without a robot, and what addresses look like."""

    simulated: list[SimulatedRobot]
    examples: list[str]


class RobotFound(BaseModel):
    """A robot on the network."""

    serial: str
    address: str
    url: str


class Robots(BaseModel):
    """All that answered."""

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
    free_places: int
    now: bool
    """False where the robot is lost for the moment, and this is what it had before."""


class TaughtReport(BaseModel):
    """How a teaching ended."""

    take: str | None
    saved: bool
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
    words: str


class TakeEntry(BaseModel):
    """One take of this computer."""

    name: str
    duration_s: float
    samples: int
    version: int
    versions: list[int]
    """Those that can be edited, the oldest first; the last is `version`."""
    tags: list[str]
    variant: str
    family: str | None
    """Of which family the robot is; None where it is not known."""
    title: str
    """The robot in words."""
    source: str
    problem: str
    thumbnail: str


class Takes(BaseModel):
    """The takes of this computer."""

    takes: list[TakeEntry]


class MarkNow(BaseModel):
    """A moment with words."""

    time_s: float
    words: str


class Motion(Curves):
    """One take, with at most 1500 rows."""

    name: str
    duration_s: float
    rate_hz: float
    marks: list[MarkNow]
    history: list[str]


class CheckFinding(FindingNow):
    """What speaks against playing a motion."""

    kind: str
    joint: str | None
    time_s: float | None
    value: float | None
    limit: float | None


class Edited(Curves):
    """An edited take, and what a check says of it; it begins at 0 s."""

    version: int
    """Which version of the take was edited."""
    build: str | None
    """Which robot it is of; None where it is not known."""
    family: str | None
    title: str
    duration_s: float
    history: list[str]
    marks: list[MarkNow]
    findings: list[CheckFinding]
    ok: bool
    jerk: float | None


class Done(BaseModel):
    """It was done."""

    done: bool = True
