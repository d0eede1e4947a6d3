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
                f"{what} is {value:g}{unit}; possible is {low:g} to {high:g}{unit}"
            )

    def up_to(self, high: float) -> "Range":
        """Return the range with another upper end, if that is lower."""
        return self._replace(high=min(self.high, high))


MOMENT = Range(0.0, 1e6, "s")
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


class KindFacts(NamedTuple):
    """What all parameters of one kind have in common."""

    value: type
    """The type of the value, in Python and in JSON."""
    argument: Any
    """The annotation of the argument of a track's method."""
    option: Any
    """The type of the option at the command line."""
    form: str | None
    """How the help shows what is typed; None for a flag."""


KINDS: Mapping[ParameterKind, KindFacts] = {
    ParameterKind.NUMBER: KindFacts(float, float, float, "N"),
    ParameterKind.FLAG: KindFacts(bool, bool, bool, None),
    ParameterKind.JOINTS: KindFacts(list, str | Sequence[str], list[str], "JOINT"),
    ParameterKind.BUILD: KindFacts(str, str, str, "BUILD"),
    ParameterKind.TEXT: KindFacts(str, str, str, "LABEL"),
    ParameterKind.POSE: KindFacts(dict, Mapping[str, float], list[str], "JOINT=RAD"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of an edit."""

    name: str
    """With its unit, for example `cutoff_hz`."""
    title: str
    help: str
    kind: ParameterKind = ParameterKind.NUMBER
    range: Range | None = None
    """The range of a number."""
    slider: tuple[float, float, float] | None = None
    """For a number that a page shows as a slider: from, to and step."""
    default: Any = None
    """None if the parameter can be left out, or must be given."""
    required: bool = False
    option: str = ""
    """Its name on the command line; by default the name without its unit."""

    @property
    def unit(self) -> str:
        """The unit of a number; empty if it has none."""
        return "" if self.range is None else self.range.unit


SEVERAL = 0
"""The number of motions of an edit that takes any number of them."""


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
        module, _, name = self.function.partition(":")
        does = cast("Callable[..., Track]", getattr(import_module(module), name))
        if self.tracks == SEVERAL:
            return does(tracks, **requested)
        for each in self.parameters:
            if each.kind is ParameterKind.JOINTS and requested[each.name] is not None:
                requested[each.name] = expand_limbs(requested[each.name], tracks[0].names)
        return does(*tracks, **requested)

    def _require_tracks(self, given: int) -> None:
        if self.tracks not in (SEVERAL, given):
            raise BadRequestError(f"{self.name} takes {self.tracks} motions, not {given}")


def _validate_value(parameter: Parameter, value: Any) -> Any:
    """Return the value of a parameter, or raise `BadRequestError`."""
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
    return value


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
"""How the names of a limb's joints begin."""


def limbs_of(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the limbs that some of these joints belong to, each with its joints."""
    found = {
        limb: [name for name in names if name.startswith(starts)] for limb, starts in _LIMBS.items()
    }
    return {limb: joints for limb, joints in found.items() if joints}


def expand_limbs(requested: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the requested joints; a limb's name stands for all its joints in `names`."""
    meant: list[str] = []
    for name in requested:
        starts = None if name in names else _LIMBS.get(name)
        meant += [name] if starts is None else [each for each in names if each.startswith(starts)]
    return list(dict.fromkeys(meant))


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
    help="Only this joint, or limb like left_arm; all if left out. May be repeated.",
    kind=ParameterKind.JOINTS,
    option="joint",
)
"""Of an edit that can change some joints and leave the others: the clock stays for all."""
_TIME = Parameter(
    name="time_s",
    title="Time",
    help="When, in seconds from the beginning.",
    range=MOMENT,
    required=True,
)
_TO = Parameter(
    name="to_s",
    title="New time",
    help="Move it there, in seconds from the beginning.",
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
            summary="Cut off the beginning and the end: by seconds, or where nothing moves.",
            function=f"{_EDIT}:trim_from_start",
            parameters=(
                Parameter(
                    name="start_s",
                    title="Start",
                    help="First second to keep, counted from the beginning.",
                    range=MOMENT,
                ),
                Parameter(
                    name="end_s",
                    title="End",
                    help="Last second to keep, counted from the beginning.",
                    range=MOMENT,
                ),
                Parameter(
                    name="auto",
                    title="Idle ends",
                    help="Cut the still beginning and end instead.",
                    kind=ParameterKind.FLAG,
                    default=False,
                ),
            ),
            aliases={"trim_idle": {"auto": True}},
        ),
        Edit(
            name="smooth",
            title="Smooth",
            summary="Take out trembling, without delay. A lower cutoff is smoother.",
            function=f"{_EDIT}:smooth",
            parameters=(
                Parameter(
                    name="cutoff_hz",
                    title="Cutoff",
                    help="Take out what is faster, in Hz.",
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
            summary="Make it faster or slower throughout. 2 is twice as fast.",
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
            summary="Keep the path within limits of speed, acceleration and jerk. It gets slower "
            "where a limit is broken, and nowhere faster than recorded unless that is asked for.",
            function="rote.motion.edit.retime:retime",
            parameters=(
                Parameter(
                    name="velocity",
                    title="Speed limit",
                    help="At most, in rad/s; what the robot plays well if left out.",
                    range=VELOCITY,
                ),
                Parameter(
                    name="acceleration",
                    title="Acceleration limit",
                    help="At most, in rad/s2.",
                    range=ACCELERATION,
                ),
                Parameter(name="jerk", title="Jerk limit", help="At most, in rad/s3.", range=JERK),
                Parameter(
                    name="fastest",
                    title="As fast as the limits allow",
                    help="Also faster than recorded, as far as the limits allow.",
                    kind=ParameterKind.FLAG,
                    default=False,
                ),
            ),
        ),
        Edit(
            name="mirror",
            title="Mirror",
            summary="Exchange left and right; chosen joints alone become the image of the others.",
            function="rote.motion.edit.mirror:mirror",
            parameters=(_ONLY,),
        ),
        Edit(
            name="reverse",
            title="Reverse",
            summary="Play it backwards.",
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
                    help="Samples a second.",
                    range=RATE,
                    slider=(10.0, 500.0, 10.0),
                    default=100.0,
                ),
            ),
        ),
        Edit(
            name="close_loop",
            title="Close the loop",
            summary="Return to the first pose at the end, so that it can be played in a loop.",
            function=f"{_EDIT}:close_loop",
            parameters=(
                Parameter(
                    name="seconds",
                    title="Way back",
                    help="How long the way back may take.",
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
            summary="Keep some joints only.",
            function=f"{_EDIT}:keep",
            parameters=(_JOINTS,),
        ),
        Edit(
            name="drop",
            title="Drop joints",
            summary="Leave some joints out.",
            function=f"{_EDIT}:drop",
            parameters=(_JOINTS,),
        ),
        Edit(
            name="to_build",
            title="Bring to another build",
            summary="Give it the joints of another build of its robot.",
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
                    help="Even if joints that move are lost.",
                    kind=ParameterKind.FLAG,
                    default=False,
                ),
            ),
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
                    help="How long before it the motion begins to change.",
                    range=WIDTH,
                    slider=(0.1, 5.0, 0.1),
                    default=0.5,
                ),
                Parameter(
                    name="after_s",
                    title="After",
                    help="How long after it the motion has changed.",
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
            name="fit",
            title="Make it playable",
            summary="Leave out what is not played, keep joints within their range, cut what is too "
            "long, and retime what is too fast.",
            function="rote.motion.edit.fit:fit",
            checks=True,
        ),
        Edit(
            name="mark",
            title="Set a mark",
            summary="Give a moment a name.",
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
            summary="Pass into another motion while both are played.",
            function=f"{_EDIT}:cross_fade",
            parameters=(
                Parameter(
                    name="overlap_s",
                    title="Overlap",
                    help="Seconds in which both are played.",
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
            summary="Let another motion follow, with a soft bridge between.",
            function=f"{_EDIT}:concatenate",
            parameters=(
                Parameter(
                    name="bridge_s",
                    title="Bridge",
                    help="Seconds from one to the other.",
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
            summary="Take some joints from another motion: joint right_arm takes its right arm.",
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
