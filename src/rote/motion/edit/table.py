"""The table of edits: what can be done to a motion, with which parameters, by which function.

The command line's commands, the API's schema, the page's tools and the docs are generated from it.
An edit is one row here and its function, which is imported when the edit is first used.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rote.errors import BadRequestError

if TYPE_CHECKING:
    from rote.motion.track import Track

__all__ = [
    "EDITS",
    "Edit",
    "ParameterKind",
    "Parameter",
    "Range",
    "SEVERAL",
    "expand_limbs",
    "find_edit",
    "limbs_of",
]


class Range(NamedTuple):
    """The numbers that a parameter can have, both ends included."""

    low: float
    high: float
    unit: str = ""

    def require(self, value: float, what: str) -> None:
        """Raise `BadRequestError` if `value` is outside, or not a number."""
        # The tolerance accepts the limits as printed in the message, with six digits. Written this
        # way round, the comparison refuses NaN as well.
        low, high, unit = self.low, self.high, f" {self.unit}".rstrip()
        if not low - 1e-5 * abs(low) <= value <= high + 1e-5 * abs(high):
            raise BadRequestError(
                f"{what} is {value:g}{unit}; the range is {low:g} to {high:g}{unit}"
            )

    def above(self, low: float) -> "Range":
        """Return the range with another lower end, if that is higher."""
        return self._replace(low=max(self.low, low))

    def up_to(self, high: float) -> "Range":
        """Return the range with another upper end, if that is lower."""
        return self._replace(high=min(self.high, high))


MOMENT = Range(0.0, 1e6, "s")
REACH = Range(-3.0, 3.0, "m")
SIZE = Range(0.0, 10.0, "times")
BPM = Range(1.0, 1000.0, "beats a minute")
PER_BEAT = Range(0.0625, 16.0, "steps")
MARGIN = Range(0.0, 60.0, "s")
IDLE = Range(0.001, 10.0, "rad/s")
CUTOFF = Range(0.01, 1000.0, "Hz")
RATE = Range(0.1, 10_000.0, "Hz")
FACTOR = Range(0.01, 100.0, "times")
BRIDGE = Range(0.0, 60.0, "s")
WAY_BACK = Range(0.01, 60.0, "s")
OVERLAP = Range(0.001, 600.0, "s")
WIDTH = Range(0.0, 600.0, "s")
WEIGHT = Range(0.0, 1.0, "of the whole")
VELOCITY = Range(0.02, 1e3, "rad/s")
ACCELERATION = Range(0.1, 1e5, "rad/s2")
JERK = Range(1.0, 1e7, "rad/s3")


class ParameterKind(StrEnum):
    """The kinds of parameters."""

    NUMBER = "number"
    FLAG = "flag"
    JOINTS = "joints"
    """Names of joints, or `left_arm` and `right_arm` for all joints of an arm."""
    BUILD = "build"
    """The name of a build, for example g1-23."""
    TEXT = "text"
    """A few words."""
    POSE = "pose"
    """Angles in rad by the names of joints."""
    CHOICE = "choice"
    """One of a few words."""
    NUMBERS = "numbers"
    """A fixed number of numbers, for example x, y and z."""
    ROWS = "rows"
    """Several rows of `NUMBERS`."""


class KindFacts(NamedTuple):
    """What all parameters of one kind have in common."""

    value: type
    """The type of the value, in Python and in JSON."""
    argument: Any
    """The annotation of the argument of a track's method."""
    option: Any
    """The type of the option at the command line."""
    form: str | None
    """How the help shows the value of an option; None for a flag."""


KINDS: Mapping[ParameterKind, KindFacts] = {
    ParameterKind.NUMBER: KindFacts(float, float, float, "N"),
    ParameterKind.FLAG: KindFacts(bool, bool, bool, None),
    ParameterKind.JOINTS: KindFacts(list, str | Sequence[str], list[str], "JOINT"),
    ParameterKind.BUILD: KindFacts(str, str, str, "BUILD"),
    ParameterKind.TEXT: KindFacts(str, str, str, "LABEL"),
    ParameterKind.POSE: KindFacts(dict, Mapping[str, float], list[str], "JOINT=RAD"),
    ParameterKind.CHOICE: KindFacts(str, str, str, "WORD"),
    ParameterKind.NUMBERS: KindFacts(tuple, Sequence[float], str, "N,N"),
    ParameterKind.ROWS: KindFacts(list, Sequence[Sequence[float]], list[str], "N,N"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of an edit."""

    name: str
    """The name with its unit, for example `cutoff_hz`."""
    title: str
    help: str
    kind: ParameterKind = ParameterKind.NUMBER
    range: Range | None = None
    """The range of a number."""
    columns: tuple[Range, ...] = ()
    """The ranges of a row of numbers, one each."""
    choices: tuple[str, ...] = ()
    """The allowed values of a choice."""
    form: str = ""
    """How the help shows a row of numbers: X,Y,Z."""
    slider: tuple[float, float, float] | None = None
    """For a number that a page shows as a slider: from, to and step."""
    default: Any = None
    """The value if the parameter is left out; None if it is required, or if None has a meaning."""
    required: bool = False
    option: str = ""
    """Its name on the command line; by default the name without its unit."""

    @property
    def unit(self) -> str:
        """The unit of a number; empty if it has none."""
        return "" if self.range is None else self.range.unit


SEVERAL = 0
"""The value of `Edit.tracks` for an edit that takes any number of motions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One edit: from one or several tracks to one track."""

    name: str
    title: str
    summary: str
    """One sentence: what it does."""
    function: str
    """`module:name` of the function; called with the tracks, then the parameters by name."""
    parameters: tuple[Parameter, ...] = ()
    tracks: int = 1
    """How many motions it takes: 1, 2 or SEVERAL."""
    checks: bool = False
    """Whether the command line checks the result at once."""
    aliases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Older names that still work, with the parameters they stand for."""

    @property
    def command(self) -> str:
        """Its name on the command line."""
        return self.name.replace("_", "-")

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of that name, or None."""
        return next((each for each in self.parameters if each.name == name), None)

    def apply(self, tracks: "Sequence[Track]", values: Mapping[str, Any]) -> "Track":
        """Return the edited track; raises `BadRequestError` for impossible values.

        `values` are the parameters by name; one that is left out has its default.
        """
        self._require_tracks(len(tracks))
        unknown = [name for name in values if self.parameter(name) is None]
        if unknown:
            known = ", ".join(each.name for each in self.parameters) or "none"
            raise BadRequestError(
                f"{self.name} has no parameter {unknown[0]!r}", f"It has: {known}."
            )
        requested = {
            each.name: _validate_value(each, values.get(each.name)) for each in self.parameters
        }
        # The module of a function is imported only when its edit is first used.
        module, _, name = self.function.partition(":")
        function = cast("Callable[..., Track]", getattr(import_module(module), name))
        if self.tracks == SEVERAL:
            return function(tracks, **requested)
        for each in self.parameters:
            if each.kind is ParameterKind.JOINTS and requested[each.name] is not None:
                requested[each.name] = expand_limbs(requested[each.name], tracks[0].names)
        return function(*tracks, **requested)

    def _require_tracks(self, given: int) -> None:
        if self.tracks not in (SEVERAL, given):
            raise BadRequestError(f"{self.name} takes {self.tracks} motions, not {given}")


def _validate_value(parameter: Parameter, value: Any) -> Any:
    """Return the value of a parameter as the function of the edit gets it.

    Raises `BadRequestError` for an impossible value, or if a required one is missing.
    """
    if value is None or value in ([], {}):
        if parameter.required:
            raise BadRequestError(f"{parameter.title.lower()} is missing", parameter.help)
        return parameter.default
    if parameter.kind is ParameterKind.JOINTS and isinstance(value, str):
        return [value]
    if parameter.range is not None:
        parameter.range.require(float(value), f"the {parameter.title.lower()}")
    if parameter.kind is ParameterKind.TEXT:
        return _validate_text(parameter, value)
    if parameter.kind is ParameterKind.CHOICE and value not in parameter.choices:
        raise BadRequestError(
            f"the {parameter.title.lower()} cannot be {value!r}",
            f"Choose {', '.join(parameter.choices[:-1])} or {parameter.choices[-1]}.",
        )
    if parameter.kind is ParameterKind.NUMBERS:
        return _validate_row(parameter, value)
    if parameter.kind is ParameterKind.ROWS:
        return [_validate_row(parameter, row) for row in value]
    return value


def _validate_row(parameter: Parameter, row: Sequence[float]) -> list[float]:
    """Return a row of numbers, or raise `BadRequestError`."""
    title, columns = parameter.title.lower(), parameter.columns
    if len(row) != len(columns):
        raise BadRequestError(
            f"the {title} has {len(row)} numbers, not {len(columns)}", parameter.help
        )
    for value, allowed in zip(row, columns, strict=True):
        allowed.require(float(value), f"the {title}")
    return [float(value) for value in row]


MAX_TEXT = 120


def _validate_text(parameter: Parameter, value: str) -> str:
    """Return the text without surrounding blanks, or raise `BadRequestError`."""
    text = value.strip()
    if not text or len(text) > MAX_TEXT or not text.isprintable():
        raise BadRequestError(
            f"the {parameter.title.lower()} cannot be {value[: MAX_TEXT + 1]!r}",
            f"Use 1 to {MAX_TEXT} characters in one line.",
        )
    return text


_LIMBS: dict[str, tuple[str, ...]] = {
    **{
        f"{side}_arm": tuple(f"{side}_{part}" for part in ("shoulder", "elbow", "wrist"))
        for side in ("left", "right")
    },
    **{
        # Joints of quadrupeds: FL_ for the front left leg.
        f"{end}_{side}_leg": (f"{end[0].upper()}{side[0].upper()}_",)
        for end in ("front", "rear")
        for side in ("left", "right")
    },
    **{
        f"{side}_leg": tuple(f"{side}_{part}" for part in ("hip", "knee", "ankle"))
        for side in ("left", "right")
    },
    "waist": ("waist_",),
    "head": ("head_",),
}
"""For each limb, the beginnings of the names of its joints."""


def limbs_of(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the limbs that some of these joints belong to, each with its joints."""
    joints_by_limb = {
        limb: [name for name in names if name.startswith(prefixes)]
        for limb, prefixes in _LIMBS.items()
    }
    return {limb: joints for limb, joints in joints_by_limb.items() if joints}


def expand_limbs(requested: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the requested joints; a limb's name stands for all its joints in `names`."""
    joints: list[str] = []
    for name in requested:
        if name in names or name not in _LIMBS:
            joints.append(name)
        else:
            joints += [each for each in names if each.startswith(_LIMBS[name])]
    return list(dict.fromkeys(joints))  # each once


_EDIT = "rote.motion.edit.operations"
_JOINTS = Parameter(
    name="joints",
    title="Joints",
    help="A joint's name, or a limb's like left_arm or front_left_leg. May be repeated.",
    kind=ParameterKind.JOINTS,
    required=True,
    option="joint",
)
_ONLY = Parameter(
    name="joints",
    title="Only",
    help="Change only this joint, or limb like left_arm; by default all. May be repeated.",
    kind=ParameterKind.JOINTS,
    option="joint",
)
"""For edits that can change some joints and leave the others; such an edit changes no times."""
_TIME = Parameter(
    name="time_s",
    title="Time",
    help="The moment, in seconds from the beginning.",
    range=MOMENT,
    required=True,
)
_TO = Parameter(
    name="to_s",
    title="New time",
    help="The new moment, in seconds from the beginning.",
    range=MOMENT,
)
_POSE = Parameter(
    name="pose",
    title="Angles",
    help="A joint and its angle in rad, as NAME=RAD. May be repeated.",
    kind=ParameterKind.POSE,
    required=True,
    option="joint",
)
_LABEL = Parameter(
    name="label",
    title="Label",
    help="A few words.",
    kind=ParameterKind.TEXT,
    required=True,
)
_MARKS = "rote.motion.edit.marks"

EDITS: dict[str, Edit] = {
    edit.name: edit
    for edit in (
        Edit(
            name="trim",
            title="Trim",
            summary="Cut off the beginning and the end, by time or where nothing moves.",
            function=f"{_EDIT}:trim_from_start",
            parameters=(
                Parameter(
                    name="start_s",
                    title="Start",
                    help="Start of the kept part, in seconds from the beginning.",
                    range=MOMENT,
                ),
                Parameter(
                    name="end_s",
                    title="End",
                    help="End of the kept part, in seconds from the beginning.",
                    range=MOMENT,
                ),
                Parameter(
                    name="auto",
                    title="Idle ends",
                    help="Cut off both ends as far as nothing moves, instead of giving times.",
                    kind=ParameterKind.FLAG,
                    default=False,
                ),
            ),
            aliases={"trim_idle": {"auto": True}},
        ),
        Edit(
            name="smooth",
            title="Smooth",
            summary="Remove trembling, without delay. A lower cutoff makes the motion smoother.",
            function=f"{_EDIT}:smooth",
            parameters=(
                Parameter(
                    name="cutoff_hz",
                    title="Cutoff",
                    help="Remove movements above this frequency, in Hz.",
                    range=CUTOFF,
                    slider=(1.0, 12.0, 0.5),
                    default=4.0,
                ),
                _ONLY,
            ),
        ),
        Edit(
            name="speed",
            title="Speed",
            summary="Play the whole motion faster or slower. 2 is twice as fast.",
            function=f"{_EDIT}:speed",
            parameters=(
                Parameter(
                    name="factor",
                    title="Factor",
                    help="2 is twice as fast.",
                    range=FACTOR,
                    slider=(0.25, 2.0, 0.05),
                    required=True,
                ),
            ),
        ),
        Edit(
            name="retime",
            title="Retime",
            summary="Keep the path within limits of speed, acceleration and jerk. The motion "
            "gets slower where it breaks a limit. It gets faster than recorded only if "
            "requested.",
            function="rote.motion.edit.retime:retime",
            parameters=(
                Parameter(
                    name="velocity",
                    title="Speed limit",
                    help="Maximum speed in rad/s; by default the speed that the robot plays well.",
                    range=VELOCITY,
                ),
                Parameter(
                    name="acceleration",
                    title="Acceleration limit",
                    help="Maximum acceleration in rad/s2.",
                    range=ACCELERATION,
                ),
                Parameter(
                    name="jerk", title="Jerk limit", help="Maximum jerk in rad/s3.", range=JERK
                ),
                Parameter(
                    name="fastest",
                    title="As fast as the limits allow",
                    help="Play faster than recorded where the limits allow it.",
                    kind=ParameterKind.FLAG,
                    default=False,
                ),
            ),
        ),
        Edit(
            name="mirror",
            title="Mirror",
            summary="Exchange left and right. If joints are chosen, only they become the mirror "
            "image of the other side.",
            function="rote.motion.edit.mirror:mirror",
            parameters=(_ONLY,),
        ),
        Edit(
            name="reverse",
            title="Reverse",
            summary="Play the motion backwards.",
            function=f"{_EDIT}:reverse",
            parameters=(_ONLY,),
        ),
        Edit(
            name="resample",
            title="Resample",
            summary="Space the samples evenly.",
            function=f"{_EDIT}:resample",
            parameters=(
                Parameter(
                    name="rate_hz",
                    title="Rate",
                    help="Samples per second.",
                    range=RATE,
                    slider=(10.0, 500.0, 10.0),
                    default=100.0,
                ),
            ),
        ),
        Edit(
            name="close_loop",
            title="Close the loop",
            summary="Return to the first pose at the end, so that the motion can loop.",
            function=f"{_EDIT}:close_loop",
            parameters=(
                Parameter(
                    name="seconds",
                    title="Way back",
                    help="How many seconds the return takes.",
                    range=WAY_BACK,
                    slider=(0.5, 5.0, 0.5),
                    default=1.0,
                ),
            ),
            aliases={"loop": {}},
        ),
        Edit(
            name="keep",
            title="Keep joints",
            summary="Keep only some joints.",
            function=f"{_EDIT}:keep",
            parameters=(_JOINTS,),
        ),
        Edit(
            name="drop",
            title="Drop joints",
            summary="Remove some joints.",
            function=f"{_EDIT}:drop",
            parameters=(_JOINTS,),
        ),
        Edit(
            name="to_build",
            title="Bring to another build",
            summary="Convert the motion to another build of its robot.",
            function=f"{_EDIT}:to_build",
            parameters=(
                Parameter(
                    name="build",
                    title="Build",
                    help="For example g1-29, g1-27 or g1-23.",
                    kind=ParameterKind.BUILD,
                    required=True,
                ),
                Parameter(
                    name="force",
                    title="Drop joints that move",
                    help="Convert the motion even if joints that move are lost.",
                    kind=ParameterKind.FLAG,
                    default=False,
                ),
            ),
        ),
        Edit(
            name="to_robot",
            title="Bring to another robot",
            summary="Let the hands of another robot follow the same paths, scaled to its arms.",
            function="rote.motion.edit.retarget:to_robot",
            parameters=(
                Parameter(
                    name="build",
                    title="Robot",
                    help="For example r1, g1-29 or g1-23.",
                    kind=ParameterKind.BUILD,
                    required=True,
                    option="robot",
                ),
            ),
            checks=True,
        ),
        Edit(
            name="keyframe",
            title="Keyframe",
            summary="Lead joints through other angles at one moment; the motion around it follows.",
            function="rote.motion.keyframes.edit:keyframe",
            parameters=(
                _TIME,
                _POSE,
                _TO,
                Parameter(
                    name="before_s",
                    title="Before",
                    help="How long before that moment the motion begins to change.",
                    range=WIDTH,
                    slider=(0.1, 5.0, 0.1),
                    default=0.5,
                ),
                Parameter(
                    name="after_s",
                    title="After",
                    help="How long after that moment the motion stops changing.",
                    range=WIDTH,
                    slider=(0.1, 5.0, 0.1),
                    default=0.5,
                ),
            ),
        ),
        Edit(
            name="through",
            title="Lead through a pose",
            summary="Lead joints through other angles at one moment, with the least change of "
            "acceleration; both ends stay.",
            function="rote.motion.edit.through:through",
            parameters=(
                replace(_TIME, option="at"),
                _POSE,
            ),
            checks=True,
        ),
        Edit(
            name="move_hand",
            title="Move a hand",
            summary="Shift or scale a hand's path, or lead it through points; the arm follows.",
            function="rote.motion.edit.hand_path:move_hand",
            parameters=(
                Parameter(
                    name="hand",
                    title="Hand",
                    help="left, right, or both; both hands keep their distance from each other.",
                    kind=ParameterKind.CHOICE,
                    choices=("left", "right", "both"),
                    required=True,
                ),
                Parameter(
                    name="by",
                    title="Shift",
                    help="By how much in m: forward, left, up.",
                    kind=ParameterKind.NUMBERS,
                    columns=(REACH, REACH, REACH),
                    form="X,Y,Z",
                ),
                Parameter(
                    name="scale",
                    title="Scale",
                    help="Scale the path about its middle: 2 makes it twice as large.",
                    range=SIZE,
                    slider=(0.5, 1.5, 0.05),
                    default=1.0,
                ),
                Parameter(
                    name="through",
                    title="Points",
                    help="A time in s and a position in m from the robot's base. May be repeated.",
                    kind=ParameterKind.ROWS,
                    columns=(MOMENT, REACH, REACH, REACH),
                    form="'T: X,Y,Z'",
                ),
                Parameter(
                    name="start_s",
                    title="From",
                    help="When the change begins; by default at the beginning of the motion.",
                    range=MOMENT,
                ),
                Parameter(
                    name="end_s",
                    title="To",
                    help="When the change ends; by default at the end of the motion.",
                    range=MOMENT,
                ),
                Parameter(
                    name="blend_s",
                    title="Blend",
                    help="Seconds in which the change fades in and out; by default as needed.",
                    range=WIDTH.above(0.05),
                ),
                Parameter(
                    name="keep_orientation",
                    title="Keep the orientation",
                    help="Do not turn the hand; this needs an arm of 6 joints or more.",
                    kind=ParameterKind.FLAG,
                    default=False,
                ),
                Parameter(
                    name="move_ends",
                    title="Move the ends too",
                    help="Also change the first and last pose.",
                    kind=ParameterKind.FLAG,
                    default=False,
                ),
            ),
            checks=True,
        ),
        Edit(
            name="warp",
            title="Warp time",
            summary="Move moments to other times; the time between them is stretched smoothly.",
            function="rote.motion.edit.warp:warp",
            parameters=(
                Parameter(
                    name="moves",
                    title="Moments",
                    help="An old and a new time in s. May be repeated.",
                    kind=ParameterKind.ROWS,
                    columns=(MOMENT, MOMENT),
                    form="OLD=NEW",
                    required=True,
                    option="move",
                ),
            ),
            checks=True,
        ),
        Edit(
            name="beat",
            title="Put marks on the beat",
            summary="Move each mark to the nearest beat; too fast parts get more beats.",
            function="rote.motion.edit.warp:beat",
            parameters=(
                Parameter(
                    name="bpm",
                    title="Tempo",
                    help="Beats per minute.",
                    range=BPM,
                    slider=(40.0, 200.0, 1.0),
                    required=True,
                ),
                Parameter(
                    name="per_beat",
                    title="Steps per beat",
                    help="Steps per beat on which a mark may be; 2 allows half beats.",
                    range=PER_BEAT,
                    default=1.0,
                ),
                Parameter(
                    name="first_s",
                    title="First beat",
                    help="The time of any beat, in s; by default that of the first mark.",
                    range=MOMENT,
                ),
            ),
            checks=True,
        ),
        Edit(
            name="segments",
            title="Find parts",
            summary="Set a mark where each part begins: after pauses and changes of direction.",
            function="rote.motion.edit.warp:segments",
        ),
        Edit(
            name="keep_part",
            title="Keep a part",
            summary="Cut out one part: from the mark with this label to the next mark.",
            function="rote.motion.edit.warp:keep_part",
            parameters=(replace(_LABEL, help="The label of the mark where the part begins."),),
        ),
        Edit(
            name="fit",
            title="Make it playable",
            summary="Remove joints that the robot does not play, keep joints within their range, "
            "cut what is too long, and retime what is too fast. With marks, keep the "
            "tempo.",
            function="rote.motion.edit.fit:fit",
            parameters=(
                Parameter(
                    name="keep_tempo",
                    title="Keep the tempo",
                    help="Keep the length and the times of marks; the default with marks.",
                    kind=ParameterKind.FLAG,
                    default=False,
                ),
                Parameter(
                    name="slow_down",
                    title="Slow down",
                    help="Keep the path and slow the motion down, even if it has marks.",
                    kind=ParameterKind.FLAG,
                    default=False,
                ),
            ),
            checks=True,
        ),
        Edit(
            name="mark",
            title="Set a mark",
            summary="Set a mark with a label at a moment.",
            function=f"{_MARKS}:add_mark",
            parameters=(_TIME, _LABEL),
        ),
        Edit(
            name="change_mark",
            title="Change a mark",
            summary="Rename the mark at a moment, or move it.",
            function=f"{_MARKS}:change_mark",
            parameters=(_TIME, replace(_LABEL, required=False), _TO),
        ),
        Edit(
            name="remove_mark",
            title="Remove a mark",
            summary="Remove the mark at a moment.",
            function=f"{_MARKS}:remove_mark",
            parameters=(_TIME,),
        ),
        Edit(
            name="cross_fade",
            title="Cross-fade",
            summary="Cross-fade into another motion while both play.",
            function=f"{_EDIT}:cross_fade",
            parameters=(
                Parameter(
                    name="overlap_s",
                    title="Overlap",
                    help="Seconds in which both motions play.",
                    range=OVERLAP,
                    slider=(0.1, 5.0, 0.1),
                    default=0.5,
                ),
            ),
            tracks=2,
            aliases={"fade": {}},
        ),
        Edit(
            name="concatenate",
            title="Append",
            summary="Append another motion, with a smooth bridge between the two.",
            function=f"{_EDIT}:concatenate",
            parameters=(
                Parameter(
                    name="bridge_s",
                    title="Bridge",
                    help="Seconds from the end of one motion to the beginning of the other.",
                    range=BRIDGE,
                    slider=(0.1, 5.0, 0.1),
                    default=0.5,
                ),
            ),
            tracks=2,
            aliases={"concat": {}},
        ),
        Edit(
            name="blend",
            title="Blend",
            summary="Mix two performances of one motion. Weight 0 is the first, 1 the second.",
            function=f"{_EDIT}:blend",
            parameters=(
                Parameter(
                    name="weight",
                    title="Weight",
                    help="0 is the first motion, 1 the second.",
                    range=WEIGHT,
                    slider=(0.0, 1.0, 0.05),
                    default=0.5,
                ),
                _ONLY,
            ),
            tracks=2,
        ),
        Edit(
            name="layer",
            title="Layer",
            summary="Take some joints from another motion, for example its right_arm.",
            function=f"{_EDIT}:layer",
            parameters=(_JOINTS,),
            tracks=2,
        ),
        Edit(
            name="average",
            title="Average",
            summary="Average several takes of one motion, aligned in time.",
            function="rote.motion.compare:average",
            tracks=SEVERAL,
        ),
        Edit(
            name="merge",
            title="Merge",
            summary="Take each part of a motion from one of several takes, aligned in time.",
            function="rote.motion.compare:merge",
            parameters=(
                Parameter(
                    name="parts",
                    title="Parts",
                    help="A time in s and the take used from then on. May be repeated.",
                    kind=ParameterKind.ROWS,
                    columns=(MOMENT, Range(1.0, 1000.0)),
                    form="T=TAKE",
                    required=True,
                    option="from",
                ),
                Parameter(
                    name="blend_s",
                    title="Blend",
                    help="Seconds in which one take passes into the next.",
                    range=OVERLAP,
                    slider=(0.1, 5.0, 0.1),
                    default=0.5,
                ),
            ),
            tracks=SEVERAL,
        ),
    )
}


def find_edit(name: str, edits: Mapping[str, Edit] = EDITS) -> tuple[Edit, Mapping[str, Any]]:
    """Return the edit of that name or alias, and the parameters that an alias stands for.

    Raises `BadRequestError` that lists all edits.
    """
    for edit in edits.values():
        if name == edit.name:
            return edit, {}
        if name in edit.aliases:
            return edit, edit.aliases[name]
    raise BadRequestError(f"there is no edit {name!r}", f"There are: {', '.join(edits)}.")
