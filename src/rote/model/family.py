"""Robots as data: families, their builds, joints, modes and hands.

A family is a kind of robot (`g1`), a build is one hardware configuration of it (`g1-23`). A joint
has three different numbers:

    index    its position in the family's table of joints, which holds those of all builds
    slot     its position in the robot's motor messages; messages have more slots than joints
    column   its position among the joints of one build, and so in a state and in a take

Hands are an addition to a build: `attach_hands` returns the same build with the hands' joints as
its last columns. They have messages of their own, so they use none of the build's slots.

This module computes no motion and knows no wire format.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise

__all__ = [
    "Family", "Build", "Joint", "Grade", "Evidence", "ModeTable", "ModeFacts", "READY",
    "StreamFacts", "Hand", "Service", "BodyFacts", "FixedMass", "Shape", "Hull", "Figure", "Foot",
    "Point", "Vector", "X", "Y", "Z", "ZERO", "MAX_MOTION_S", "chain", "left_and_right",
]  # fmt: skip

Vector = tuple[float, float, float]

X: Vector = (1.0, 0.0, 0.0)
Y: Vector = (0.0, 1.0, 0.0)
Z: Vector = (0.0, 0.0, 1.0)
ZERO: Vector = (0.0, 0.0, 0.0)

MAX_MOTION_S = 180.0
"""The longest motion that is recorded or played, on every robot, in seconds."""
MOVED_RAD = 0.05
"""A joint that moves less than this in a motion counts as motionless."""


# ---- evidence -----------------------------------------------------------------------------------


class Grade(StrEnum):
    """How certain a group of facts is."""

    PUBLISHED = "published"
    """Stated by Unitree: a header, a URDF, a manual."""
    SEEN = "seen"
    """Seen in a capture or a published log of a real robot, but not by this project."""
    REPORTED = "reported"
    """Stated by third-party code or an issue thread."""
    INFERRED = "inferred"
    """Concluded from something similar; not known to have been tried."""
    CONTRADICTED = "contradicted"
    """Sources disagree, so nothing may depend on it."""
    CHOSEN = "chosen"
    """This project's own choice, not a fact about a robot."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a group of facts is believed: its grade and its source."""

    grade: Grade
    source: str


# ---- joints -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """One rotating joint and the link that it moves. Angles are in rad, torques in N.m."""

    index: int
    """Its position in the family's table."""
    name: str
    parent: str
    """The link it is mounted on."""
    axis: Vector
    lower_rad: float
    upper_rad: float
    velocity_rad_s: float
    effort_nm: float
    origin_m: Vector
    """Its position in the parent link's frame."""
    origin_rpy_rad: Vector = ZERO
    """Its orientation there: roll, pitch and yaw about fixed axes."""
    mass_kg: float = 0.0
    """Mass of the child link."""
    com_m: Vector = ZERO
    """Centre of mass of the child link, in its own frame."""
    slot: int = -1
    """Its position in motor messages; the index by default."""
    link: str = ""
    """The child link; by default the joint's name with `_link` instead of `_joint`."""
    part: str = "arm"
    """The part of the body that it belongs to: leg, waist, arm, wrist, head or finger."""

    def __post_init__(self) -> None:
        if self.slot < 0:
            object.__setattr__(self, "slot", self.index)
        if not self.link:
            object.__setattr__(self, "link", self.name.removesuffix("_joint") + "_link")


_PARTS = {  # of the body, by the first word of a joint's name without its side
    "hip": "leg",
    "knee": "leg",
    "ankle": "leg",
    "waist": "waist",
    "wrist": "wrist",
    "head": "head",
}


JointRow = tuple[str, str, Vector, float, float, float, float, Vector, Vector, float, Vector]
"""Name, parent link, axis, lower and upper rad, rad/s, N.m, origin in the parent and its
roll-pitch-yaw, mass and centre of mass of the child link."""


def make_joint(index: int, row: JointRow, *, slot: int = -1, link: str = "") -> Joint:
    """Return the joint in a row of a family's table; its part of the body follows from its name."""
    name, parent, axis, lower, upper, velocity, effort, origin, rpy, mass, com = row
    without_side = name.removeprefix("left_").removeprefix("right_")
    return Joint(
        index=index,
        name=name,
        parent=parent,
        axis=axis,
        lower_rad=lower,
        upper_rad=upper,
        velocity_rad_s=velocity,
        effort_nm=effort,
        origin_m=origin,
        origin_rpy_rad=rpy,
        mass_kg=mass,
        com_m=com,
        slot=slot,
        link=link,
        part=_PARTS.get(without_side.partition("_")[0], "arm"),
    )


def left_and_right(joints: tuple[Joint, ...]) -> dict[str, str]:
    """Return, by joint name, the name of the joint on the other side.

    It contains the joints whose names begin with `left_` or `right_`.
    """
    return {
        joint.name: joint.name.replace(side, other, 1)
        for joint in joints
        for side, other in (("left_", "right_"), ("right_", "left_"))
        if joint.name.startswith(side)
    }


@dataclass(frozen=True, slots=True)
class FixedMass:
    """A mass that is fixed to a link: a head, a hand."""

    link: str
    mass_kg: float
    com_m: Vector
    """Its centre of mass, in the link's frame."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One primitive on a link: a capsule between two points, or a box around one."""

    link: str
    start_m: Vector
    end_m: Vector
    """A capsule's other end; half the lengths of a box's sides."""
    radius_m: float
    """0 for a box."""


@dataclass(frozen=True, slots=True)
class Hull:
    """A convex piece of a link, given by its corners."""

    link: str
    corners_m: tuple[Vector, ...]


Point = tuple[str, Vector]
"""A link, and a position in its frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """How a robot is drawn as a stick figure."""

    sticks: tuple[tuple[str, Point, Point], ...]
    """For each stick its side (left, right or empty) and its two ends."""
    head: Point
    head_radius_m: float
    trails: tuple[Point, Point]
    """The points that leave a trail, left and right: hands, or front feet."""
    floor: tuple[Point, ...]
    """The lowest of these points stands on the floor."""


def chain(side: str, *points: Point) -> list[tuple[str, Point, Point]]:
    """Return the sticks of a `Figure` from each point to the next."""
    return [(side, start, end) for start, end in pairwise(points)]


@dataclass(frozen=True, slots=True)
class Foot:
    """A foot on which a robot stands, and the corners of its sole in the link's frame."""

    link: str
    corners_m: tuple[Vector, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyFacts:
    """The body of a family, except for its joints: masses, shapes and feet."""

    base: str
    """The root link."""
    base_mass_kg: float = 0.0
    base_com_m: Vector = ZERO
    fixed: tuple[FixedMass, ...] = ()
    """The masses that are fixed to links, in addition to those of the links."""
    tips: tuple[Point, ...] = ()
    """The left and right end of the arms, where a payload is held; empty without arms."""
    feet: tuple[Foot, ...] = ()
    shapes: Sequence[Shape | Hull] = ()
    """For the check for contact; empty if they are not known."""
    close_pairs: tuple[tuple[str, str], ...] = ()
    """Pairs of links two joints apart that can touch. All other links that are at most two joints
    apart are not tested for contact, because they share a housing."""
    figure: Figure | None = None
    """How the robot is drawn; if None, by its tree of joints."""


# ---- modes --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModeFacts:
    """One state of a robot's motion controller."""

    id: int
    name: str
    label: str
    balanced: bool
    """Whether the robot keeps its balance by itself, so that it may be taught and played."""
    stiff: bool
    """Whether joints hold their positions."""
    buttons: str = ""
    """The buttons on the remote that lead to it."""


READY = ModeFacts(0, "ready", "ready to be taught and played", balanced=True, stiff=True)
"""The one state of a robot without a motion controller."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModeTable:
    """The states of a motion controller, and the changes that lead to a stand."""

    all: tuple[ModeFacts, ...] = (READY,)
    standing: int = READY.id
    """The state in which a robot stands after a normal start."""
    damp: int | None = None
    """The state in which all joints yield slowly."""
    to_stand: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """For each state, the states to request next on the way to a stand, the usual one first."""
    moves: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """The duration in s of each allowed change from one state to another; the durations are this
    project's guess.
    """
    distinctive: frozenset[int] = frozenset()
    """Ids of states that no other family with the same messages has, so that they identify it."""
    silent: frozenset[int] = frozenset()
    """Ids of states in which the robot does not report its state, and refuses requests for it."""

    def find(self, mode_id: int) -> ModeFacts | None:
        """Return the facts about a state; None if it is unknown."""
        return next((mode for mode in self.all if mode.id == mode_id), None)

    def balanced(self, mode_id: int) -> bool:
        """Whether a robot can be taught and played in a state; False for an unknown one."""
        mode = self.find(mode_id)
        return mode is not None and mode.balanced

    @property
    def stand_up_buttons(self) -> str:
        """The buttons of the remote that lead from damping to a balanced stand, in their order:
        `L2+UP, then R1+X`. Empty if they are not known.
        """
        buttons: list[str] = []
        mode = self.damp
        while mode is not None and mode in self.to_stand:
            mode = self.to_stand[mode][0]  # the usual next state
            facts = self.find(mode)
            if facts is not None and facts.buttons:
                buttons.append(facts.buttons)
        return ", then ".join(buttons)


# ---- streaming and hands ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFacts:
    """How poses are streamed to a robot's motors."""

    topic: str = ""
    """The DDS topic; empty if only rote's own wires can stream."""
    weight_slot: int | None = None
    """The motor slot whose position is the weight of the stream, 0 to 1; no joint uses it."""
    stiffness_nm_rad: float = 60.0
    damping_nm_s_rad: float = 1.5
    rival_service: str = ""
    """The robot's own service that moves the same motors; the manufacturer advises to switch it off
    before a stream.
    """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hand:
    """A hand with its own motors that can be attached to a robot."""

    name: str
    """For example `dex3`."""
    side: str
    """left or right."""
    joints: tuple[Joint, ...]
    """In the order of the hand's own messages; a joint's `slot` is its position there."""
    state_topic: str
    command_topic: str
    evidence: Evidence
    stiffness_nm_rad: float = 1.5
    damping_nm_s_rad: float = 0.1
    """The maximum damping that a stream may give its motors."""
    timeout_s: float = 1.0
    """Motors in time-out mode relax after this long without a command."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its joints, in the order of its messages."""
        return tuple(joint.name for joint in self.joints)


@dataclass(frozen=True, slots=True)
class Service:
    """A service that a robot of a family offers."""

    name: str
    version: str = ""
    """The version of its interface that rote was written for."""
    older_name: str = ""
    """Its name in older software."""


# ---- builds and families ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Build:
    """One hardware configuration: the joints it has, and what may be done with them."""

    name: str
    family: str
    title: str = ""
    joints: tuple[Joint, ...]
    """In the order of its columns."""
    taught: tuple[str, ...] = ()
    """The joints that teaching makes soft and playing drives."""
    streamed: tuple[str, ...] = ()
    """The joints that a stream commands; empty if nothing may be streamed."""
    rest: Mapping[str, float] = field(default_factory=dict)
    """The rest positions in rad, by joint name; 0 for a joint that is not named."""
    machines: tuple[int, ...] = ()
    """The values of `mode_machine`, a field of the robot's messages, that identify this build; a
    simulated robot reports the first one."""
    motors: Mapping[int, Mapping[str, tuple[float, float]]] = field(default_factory=dict)
    """For each `mode_machine`, the motors that differ from those in `joints`: speed in rad/s and
    torque in N.m, by joint name."""
    modes: ModeTable | None = None
    """Its states, if they are not those of its family."""
    stream: StreamFacts | None = None
    no_stream: str = ""
    """Why nothing may be streamed to it, as text."""
    fixed: tuple[FixedMass, ...] = ()
    """Links with another mass, because parts are fixed to them that this build has no joints for.
    An entry replaces the mass of its link, and of the links beyond it whose joints are missing.
    """
    known: bool = True
    """False for a machine that rote does not know: its joints are numbered, and nothing is sent."""
    hands: tuple[Hand, ...] = ()
    """The attached hands, see `attach_hands`. Their joints are its last columns."""
    body: "Build | None" = None
    """The build without its hands; None if none are attached."""

    names: tuple[str, ...] = field(init=False)
    slots: tuple[int, ...] = field(init=False)
    """The motor slot of each column, without hands: they have messages of their own."""
    rest_rad: tuple[float, ...] = field(init=False)
    taught_columns: tuple[int, ...] = field(init=False)
    streamed_columns: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = tuple(joint.name for joint in self.joints)
        _check_build(self, names)
        object.__setattr__(self, "title", self.title or self.name)
        object.__setattr__(self, "names", names)
        body_joints = self.joints if self.body is None else self.body.joints
        object.__setattr__(self, "slots", tuple(joint.slot for joint in body_joints))
        object.__setattr__(self, "rest_rad", tuple(self.rest.get(name, 0.0) for name in names))
        object.__setattr__(self, "taught_columns", tuple(map(names.index, self.taught)))
        object.__setattr__(self, "streamed_columns", tuple(map(names.index, self.streamed)))

    def joint(self, name: str) -> Joint | None:
        """Return the joint of that name, or None."""
        return self.joints[self.names.index(name)] if name in self.names else None

    @property
    def bare(self) -> "Build":
        """This build without hands; itself if none are attached."""
        return self if self.body is None else self.body

    def columns_of(self, hand: Hand) -> tuple[int, ...]:
        """Return the columns of an attached hand, in the order of the hand's messages."""
        return tuple(map(self.names.index, hand.names))

    @property
    def taught_joints(self) -> tuple[Joint, ...]:
        """The joints that are taught, in the order of `taught`."""
        return tuple(self.joints[column] for column in self.taught_columns)

    @property
    def limbs(self) -> str:
        """What is taught: `legs` if only legs are taught, otherwise `arms`."""
        return "legs" if {joint.part for joint in self.taught_joints} == {"leg"} else "arms"

    def at(self, machine: int) -> "Build":
        """Return this build with the motor speeds and torques of a `mode_machine`."""
        if self.body is not None:
            return attach_hands(self.body.at(machine), self.hands)
        motors = self.motors.get(machine)
        if not motors:
            return self
        joints = tuple(
            replace(joint, velocity_rad_s=motors[joint.name][0], effort_nm=motors[joint.name][1])
            if joint.name in motors
            else joint
            for joint in self.joints
        )
        return replace(self, joints=joints)

    def owns(self, slot: int) -> bool:
        """Whether a motor slot belongs to one of its joints, or carries its stream's weight."""
        weight_slot = self.stream.weight_slot if self.stream is not None else None
        return slot in self.slots or slot == weight_slot


def attach_hands(build: Build, hands: tuple[Hand, ...]) -> Build:
    """Return a build with these hands and no others: their joints are its last columns.

    The same body and hands always return the same object.
    """
    return _attach_hands(build.bare, hands) if hands else build.bare


@lru_cache(maxsize=64)
def _attach_hands(body: Build, hands: tuple[Hand, ...]) -> Build:
    joints = (*body.joints, *(joint for hand in hands for joint in hand.joints))
    return replace(body, joints=joints, hands=hands, body=body)


def _check_build(build: Build, names: tuple[str, ...]) -> None:
    """Raise `ValueError` if a build, whose joints have these names, contradicts itself."""
    if len(set(names)) != len(names) or not names:
        raise ValueError(f"{build.name} has no joints, or the same joint twice")
    body_joints = build.bare.joints
    fingers = tuple(joint for hand in build.hands for joint in hand.joints)
    has_hands = build.body is not None
    if build.joints[len(body_joints) :] != fingers or bool(fingers) != has_hands:
        raise ValueError(f"the last columns of {build.name} must be the joints of its hands")
    if len({joint.slot for joint in body_joints}) != len(body_joints):
        raise ValueError(f"two joints of {build.name} have the same slot")
    unknown = [name for name in (*build.taught, *build.streamed, *build.rest) if name not in names]
    if unknown:
        raise ValueError(f"{build.name} has no joint {unknown[0]!r}")
    if bool(build.streamed) != (build.stream is not None):
        raise ValueError(f"{build.name} needs both streaming facts and streamed joints, or neither")
    for joint in build.joints:
        if not joint.lower_rad < joint.upper_rad or not joint.velocity_rad_s > 0.0:
            raise ValueError(f"{joint.name} of {build.name} has impossible limits")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """A kind of robot."""

    name: str
    title: str
    joints: tuple[Joint, ...]
    """The joints of all builds, in the order of their indices."""
    builds: tuple[Build, ...]
    """The first is the default."""
    body: BodyFacts
    mirror: Mapping[str, str] = field(default_factory=dict)
    """For each joint, the joint on the other side of the body; joints in the middle have none."""
    modes: ModeTable = ModeTable()
    hands: tuple[Hand, ...] = ()
    """The hands that can be attached to a robot of this family."""
    services: tuple[Service, ...] = ()
    wires: tuple[str, ...] = ("sim", "udp")
    """The URL schemes of the connections that it supports."""
    signalling: int | None = None
    """The value that `data2` of its WebRTC signalling always has; 3 means that its own key is
    needed. None if it depends on the firmware.
    """
    serials: tuple[str, ...] = ()
    """The known prefixes of its serial numbers; a robot with another one is of another family."""
    answers_general_search: bool = True
    """False if the robot answers only a discovery message that names its serial number."""
    works: Mapping[str, Grade] = field(default_factory=dict)
    """The abilities that work on a real robot, and how certain that is."""
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    """The source of each group of facts (joints, slots, modes, services, stream, hands)."""
    soft_rad_s: float = 1.0
    """The highest speed of a joint on the way to a first pose and back, in rad/s."""
    soft_least_s: float = 0.5
    """The shortest duration of such a movement, in seconds."""
    max_gap_s: float | None = None
    """A motion with a longer gap between two samples is not played; if None, the limit depends on
    the usual time between its samples.
    """
    protected_rad: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """For each joint name, the range outside which a protection in rote stops the robot; it is
    narrower than the joint's limits."""
    keeps_actions: bool = True
    """Whether the robot itself stores what it was taught."""
    arm_state_s: float = 0.1
    """The time between two of its reports of what its arms are doing, in seconds."""

    def __post_init__(self) -> None:
        if [joint.index for joint in self.joints] != list(range(len(self.joints))):
            raise ValueError(f"the joints of {self.name} are not in the order of their indices")
        if not self.builds or any(build.family != self.name for build in self.builds):
            raise ValueError(f"{self.name} has no builds, or one of another family")
        _check_family(self)

    @property
    def default(self) -> Build:
        """The default build."""
        return self.builds[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all joints, in the order of their indices."""
        return tuple(joint.name for joint in self.joints)

    def of_machine(self, machine: int) -> Build | None:
        """Return the build of a `mode_machine`, with its motors; None if not known."""
        builds = (build for build in self.builds if machine in build.machines)
        return next((build.at(machine) for build in builds), None)

    def masses(self, build: Build) -> tuple[FixedMass, ...]:
        """Return all masses of a build: the base, the links, and masses fixed to them.

        The link of a joint that the build lacks is included, fixed at angle 0, unless an entry of
        `Build.fixed` replaces it.
        """
        replacements = {mass.link: mass for mass in build.fixed}
        dropped: set[str] = set()  # the links whose mass is part of that of a replacement
        for joint in self.joints:
            is_beyond_replacement = joint.parent in replacements or joint.parent in dropped
            if joint.name not in build.names and is_beyond_replacement:
                dropped.add(joint.link)
        body = self.body
        links = (
            FixedMass(body.base, body.base_mass_kg, body.base_com_m),
            *(FixedMass(joint.link, joint.mass_kg, joint.com_m) for joint in self.joints),
        )
        masses = (*(replacements.get(mass.link, mass) for mass in links), *body.fixed)
        return tuple(mass for mass in masses if mass.link not in dropped)


def _check_family(family: Family) -> None:
    """Raise `ValueError` if a family contradicts itself."""
    links = {family.body.base}
    for joint in family.joints:
        if joint.parent not in links:
            raise ValueError(
                f"{joint.name} of {family.name} is mounted on {joint.parent!r}, which is neither "
                "the base nor the link of a joint before it"
            )
        links.add(joint.link)
    names = [build.name for build in family.builds]
    if len(set(names)) != len(names):
        raise ValueError(f"two builds of {family.name} have the same name")
    for build in family.builds:
        unknown = set(build.names).difference(family.names)
        if unknown:
            raise ValueError(
                f"the build {build.name} has a joint {min(unknown)!r}, which the family "
                f"{family.name} does not list"
            )
        if any(mass.link not in links for mass in build.fixed):
            raise ValueError(f"{build.name} gives the mass of a link that {family.name} lacks")


def numbered_build(slots: int, machine: int) -> Build:
    """Return a build for an unknown machine with this `mode_machine`.

    It has one joint for each motor slot, named by the slot's number. The robot can be observed and
    recorded. It cannot be taught or streamed to, and its motions cannot be checked.
    """
    joints = tuple(
        Joint(
            index=slot,
            name=f"slot_{slot}",
            parent="unknown",
            axis=X,
            lower_rad=-100.0,
            upper_rad=100.0,
            velocity_rad_s=100.0,
            effort_nm=0.0,
            origin_m=ZERO,
        )
        for slot in range(slots)
    )
    return Build(
        name="unknown",
        family="unknown",
        title=f"a machine that rote does not know (mode_machine {machine})",
        joints=joints,
        no_stream=f"rote does not know this machine: its mode_machine is {machine}",
        known=False,
    )
