"""Build the firmware and options of a simulated robot from the report of a trial.

From the report: the build, signalling, discovery, rates and shapes of messages, motor slots, the
list format, answer delays as distributions, the timing of teaching and playing, the maximum name
length, refusals and their codes. For the teaching frames, which are answered at once: the lapse,
the number of joints and a refused list. For an A1: the dialect and whether it reports its time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from rote.errors import BadRequestError
from rote.model.family import Build
from rote.model.registry import find_build
from rote.sim.behaviour import LOGGED, POLITE, RELEASE_S, Behaviour
from rote.sim.columns import DEFAULT_BUILD
from rote.sim.firmware import Firmware, firmware_of
from rote.sim.quirks import QUIRKS, SERVICES, UDP, Missing, Quirk, Quirks, Refused
from rote.wire.services import rpc
from rote.wire.services.json_shape import ABSENT, Shape, fit_to_shape
from rote.wire.services.list_format import formatted
from rote.wire.services.lowstate import LOWSTATE_TOPIC, MAX_MOTORS

NAME = "like"
"""Name of the quirk that reproduces the message shapes in the report."""
_DDS_LOWSTATE = "rt/lowstate"
_MODE_API, _LIST_API = f"{rpc.SPORT}/{int(rpc.SportApi.GET_FSM)}", f"{rpc.ARM}/7107"
_USUAL_HZ = 50.0
_MAX_HZ = 1000.0
_LATE_S = 0.5
"""If the fastest answer takes longer than this, every answer of the robot is late."""


@dataclass(frozen=True, slots=True)
class RobotProfile:
    """What is needed to simulate the robot of a report."""

    wire: str
    build: Build
    firmware: Firmware
    mode: int | None
    """The robot's mode during the trial; None if unknown."""
    lowstate_hz: float | None
    """Rate of its joint states on DDS."""
    dialect: str
    """Protocol dialect of an A1."""
    a1_start: str


def profile_from_report(robot: dict[str, Any]) -> RobotProfile:
    """Return the profile for the `robot` section of a report.

    Raises `BadRequestError` if its build cannot be simulated or the report is damaged.
    """
    try:
        return _build_profile(robot)
    except BadRequestError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise BadRequestError(
            f"the report is damaged: {error}", "Name a report as a trial wrote it."
        ) from None


def _build_profile(robot: dict[str, Any]) -> RobotProfile:
    wire = str(robot.get("wire", ""))
    build = find_build(str(robot.get("build", ""))) or DEFAULT_BUILD
    if robot.get("build") and find_build(str(robot["build"])) is None and wire != "a1":
        build = _g1_by_joint_count(robot)
    services = wire in SERVICES
    firmware = firmware_of(build)
    topics = _get_dict(robot, "topics")
    lowstate = _get_dict(topics, LOWSTATE_TOPIC if wire == "webrtc" else _DDS_LOWSTATE)
    mode = robot.get("mode")
    known = {each.id for each in _known_modes(build)}
    return RobotProfile(
        wire=wire,
        build=build,
        firmware=replace(
            firmware,
            version="like a report",
            signalling=_read_signalling(robot, firmware),
            answers_everybody=bool(_get_dict(robot, "discovery").get("answers_everybody", True)),
            slots=_read_slots(robot, build, firmware),
            behaviour=_build_behaviour(robot, services),
            quirks=_build_quirks(robot, wire),
            delays_s=_answer_delays_s(robot) if services else {},
            codes=_refusal_codes(robot) if services else {},
            longest_name=_longest_name_bytes(robot) if services else None,
        ),
        mode=mode if isinstance(mode, int) and mode in known else None,
        lowstate_hz=_as_number(lowstate.get("hz")) if wire == "dds" else None,
        dialect=str(robot.get("dialect") or "3.3.4"),
        a1_start="hung" if robot.get("a1_level") == "low" else "stand",
    )


def _known_modes(build: Build) -> Iterable[Any]:
    from rote.sim.columns import family_for  # noqa: PLC0415 - only for builds that are known

    return family_for(build).modes.all


def _g1_by_joint_count(robot: dict[str, Any]) -> Build:
    """Return the G1 build with as many joints as the unknown robot reported."""
    from rote.model.g1 import G1  # noqa: PLC0415 - rarely needed

    count = robot.get("joints_told") or robot.get("joints")
    found = next((build for build in G1.builds if len(build.joints) == count), None)
    if found is None:
        raise BadRequestError(
            f"a robot {robot.get('build')!r} of {count} joints cannot be simulated",
            "Choose the robot that is nearest to it, without the report.",
        )
    return found


def _get_dict(robot: dict[str, Any], name: str) -> dict[str, Any]:
    value = robot.get(name)
    return value if isinstance(value, dict) else {}


def _as_number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _read_signalling(robot: dict[str, Any], firmware: Firmware) -> int | str:
    variant = robot.get("signalling")
    if variant in ("legacy", "none", "1", "2", "3"):
        return int(variant) if str(variant).isdecimal() else str(variant)
    return firmware.signalling


def _read_slots(robot: dict[str, Any], build: Build, firmware: Firmware) -> int:
    slots = robot.get("slots")
    if isinstance(slots, int) and max(build.slots) < slots <= MAX_MOTORS:
        return slots
    return firmware.slots


# ---- times --------------------------------------------------------------------------------------


def _build_behaviour(robot: dict[str, Any], services: bool) -> Behaviour:
    teaching, playing = _get_dict(robot, "teaching"), _get_dict(robot, "playing")
    lapse_s = _as_number(teaching.get("lapse_s"))
    if not services:
        return replace(POLITE, lapse_s=lapse_s)
    release_s = _as_number(teaching.get("release_s")) or RELEASE_S
    lingers = [
        value
        for value in (_as_number(each) for each in (*teaching.get("all_lingers_s", ()),))
        if value is not None
    ]
    if (linger_s := _as_number(teaching.get("lingers_s"))) is not None:
        lingers.append(linger_s)
    shown_s = sum(lingers) / len(lingers) if lingers else 0.0
    listed_s = _as_number(teaching.get("listed_after_s"))
    # A state reports the start up to a tenth of a second late.
    starts = tuple(
        value - LOGGED.arm_state_s / 2
        for value in (_as_number(each) for each in playing.get("starts_after_s") or ())
        if value is not None
    )
    arm_state = _get_dict(_get_dict(robot, "topics"), rpc.ARM_STATE_TOPIC)
    arm_hz = _as_number(arm_state.get("hz"))
    measured = bool(teaching.get("listed"))
    return replace(
        LOGGED,
        release_s=release_s,
        # States come only now and then, and the last one already shows the end.
        linger_s=(max(0.0, min(lingers) - 0.05), max(lingers)) if lingers else LOGGED.linger_s,
        lists_late=listed_s > release_s / 2 if measured and listed_s is not None else True,
        lapse_s=None if lapse_s is None else max(0.5, lapse_s - shown_s),
        lapse_keeps=bool(teaching.get("lapse_stored")),
        overwrites=bool(teaching.get("overwrites", True)),
        measured_starts_s=starts,
        arm_state_s=_publish_period_s(arm_hz, LOGGED.arm_state_s),
    )


def _publish_period_s(hz: float | None, usual_s: float) -> float:
    """Return the period of a rate, rounded to the robot's publishing steps."""
    if not hz or abs(hz * usual_s - 1.0) < 0.15:
        return usual_s
    return max(0.02, round(1.0 / hz / 0.02) * 0.02)


def _answer_lateness_s(robot: dict[str, Any]) -> float:
    """Return the delay common to all answers; 0 if the robot answers at once."""
    measured = [value for values in _get_dict(robot, "delays_s").values() for value in values]
    quickest_s = min(filter(None, map(_as_number, measured)), default=0.0)
    return quickest_s if quickest_s > _LATE_S else 0.0


def _answer_delays_s(robot: dict[str, Any]) -> dict[str, tuple[float, ...]]:
    found = {}
    late_s = _answer_lateness_s(robot)
    for api, values in _get_dict(robot, "delays_s").items():
        numbers = [value for value in map(_as_number, values) if value is not None and value >= 0]
        preset = api == f"{rpc.ARM}/{int(rpc.ArmApi.EXECUTE_PRESET)}"
        if numbers and not preset:  # a preset is answered at its end
            found[api] = tuple(value - late_s for value in numbers)
    return found


def _refusal_codes(robot: dict[str, Any]) -> dict[tuple[str, int], int]:
    """Return the robot's own refusal codes where they differ from those that rote assumed."""
    codes: dict[tuple[str, int], int] = {}
    for row in robot.get("refusals") or ():
        api, assumed, seen = row.get("api"), row.get("assumed"), row.get("code")
        if not isinstance(seen, int) or seen == assumed or not isinstance(assumed, int):
            continue
        if str(row.get("when", "")).startswith("renamed to"):
            codes.setdefault((str(api), 3204), seen)  # a name, not the request, is refused
        elif str(row.get("when", "")).startswith("taught under a name"):
            codes.setdefault((str(api), 7399), seen)
        elif seen != 0:
            codes.setdefault((str(api), assumed), seen)
    return codes


def _longest_name_bytes(robot: dict[str, Any]) -> int | None:
    refused = _get_dict(robot, "names").get("refused_bytes")
    return refused - 1 if isinstance(refused, int) and refused > 1 else None


# ---- shapes -------------------------------------------------------------------------------------


def _build_quirks(robot: dict[str, Any], wire: str) -> Quirks:
    named = [QUIRKS[name] for name in _known_quirk_names(robot, wire)]
    like = _shape_quirk(robot, wire)
    return Quirks([*named, *([] if like is None else [like])])


def _known_quirk_names(robot: dict[str, Any], wire: str) -> Iterable[str]:
    """Yield the names of the known quirks that the robot has."""
    marks = set(robot.get("text_marks") or ())
    playing, teaching = _get_dict(robot, "playing"), _get_dict(robot, "teaching")
    if wire in ("udp", "sim"):
        if robot.get("joints_told") == 12:
            yield "frames-12-joints"
        if robot.get("clockless"):
            yield "frames-page"
    if "binary" in marks:
        yield "binary-answers"
    if "bom" in marks:
        yield "byte-order-mark"
    if "nul" in marks:
        yield "nul"
    if "chunks" in marks:
        yield "chunked-answers"
    if _refusal_code(robot, _LIST_API) or _refusal_code(robot, "0x1a"):
        yield "list-refused"
    never = teaching.get("listed") and playing.get("never_moved")
    if never:
        yield "never-moves"


def _refusal_code(robot: dict[str, Any], api: str) -> int:
    rows = [row for row in robot.get("refusals") or () if row.get("api") == api]
    return int(rows[0].get("code") or 0) if rows else 0


def _shape_quirk(robot: dict[str, Any], wire: str) -> Quirk | None:
    if wire not in SERVICES:
        return None
    shapes, topics = _get_dict(robot, "shapes"), _get_dict(robot, "topics")
    received = bool(topics)
    lowstate: Shape | None = shapes.get("lowstate")
    hz = _as_number(_get_dict(topics, LOWSTATE_TOPIC).get("hz"))
    silent = received and LOWSTATE_TOPIC not in topics and wire == "webrtc"
    quiet = received and _DDS_LOWSTATE not in topics and wire == "dds"
    arm_state: Shape | None = shapes.get("arm_state")
    armless = received and rpc.ARM_STATE_TOPIC not in topics
    answer: Shape | None = shapes.get("answer")
    format_ = _get_dict(robot, "list").get("format")
    odd = [text for text in robot.get("odd_messages") or () if isinstance(text, str)]
    size = robot.get("message_bytes")
    small = size if isinstance(size, int) and size < 65_536 else None
    return Quirk(
        name=NAME,
        group="answers",
        wires=(UDP, *SERVICES),
        what="messages have the shapes of the robot in the report",
        lowstate=(lambda _: None) if silent else (lambda message: _shape_object(message, lowstate)),
        state=(lambda _: None) if quiet else (lambda state: state),
        lowstate_hz=None if hz is None or abs(hz - _USUAL_HZ) < 3 else min(hz, _MAX_HZ),
        arm_state=(lambda _: None)
        if armless
        else (lambda message: _shape_arm_state(message, arm_state)),
        mode=lambda mode: _shape_mode(mode, robot, shapes.get("mode")),
        actions=lambda lists: lists if not format_ else formatted(lists, format_),
        response=lambda message: _shape_object(message, answer) or message,
        answer_late_s=_answer_lateness_s(robot),
        extra=tuple(odd) if wire == "webrtc" else (),
        message_size=small,
    )


def _shape_arm_state(message: dict[str, Any], shape: Shape | None) -> object:
    """Return the arm state in the robot's shape; a bare number is its id."""
    if shape is None:
        return message
    return fit_to_shape(message if "object" in shape["kinds"] else message["id"], shape)


def _shape_object(message: dict[str, Any], shape: Shape | None) -> dict[str, Any]:
    if shape is None:
        return message
    result = fit_to_shape(message, shape)
    return result if isinstance(result, dict) else message


def _shape_mode(mode: int, robot: dict[str, Any], shape: Shape | None) -> object:
    """Return the mode as the robot sends it."""
    if _refusal_code(robot, _MODE_API):
        return Refused
    if shape is None:
        return mode
    field = shape.get("fields", {}).get("data")
    if field is None or ABSENT in field["kinds"]:
        return Missing if "object" in shape["kinds"] else mode
    message = _get_dict(robot, "mode_said").get("data")
    if isinstance(message, int) and not isinstance(message, bool) and message < 0:
        return message
    return fit_to_shape(mode, field)
