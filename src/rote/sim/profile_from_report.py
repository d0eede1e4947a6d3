"""Build the firmware and options of a simulated robot from the report of a trial.

A report of the services gives the build, signalling, discovery, rates and shapes of messages, motor
slots, the list format, measured answer delays, the timing of teaching and playing, the maximum name
length, and refusals with their codes. A report over UDP gives the keep-alive timeout, the number of
joints and whether the list is refused; a report of an A1 gives its dialect.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from rote.errors import BadRequestError
from rote.model.family import Build
from rote.model.registry import find_build
from rote.sim.behaviour import LOGGED, POLITE, RELEASE_S, Behaviour
from rote.sim.columns import DEFAULT_BUILD, family_for
from rote.sim.firmware import Firmware, firmware_of
from rote.sim.quirks import QUIRKS, SERVICES, UDP, Missing, Quirk, Quirks, Refused
from rote.wire.services import rpc
from rote.wire.services.json_shape import ABSENT, Shape, fit_to_shape
from rote.wire.services.list_format import apply_list_format
from rote.wire.services.lowstate import LOWSTATE_TOPIC, MAX_MOTORS

NAME = "like"
"""Name of the quirk that reproduces the message shapes in the report."""
_DDS_LOWSTATE = "rt/lowstate"
_MODE_API, _LIST_API = f"{rpc.SPORT}/{int(rpc.SportApi.GET_FSM)}", f"{rpc.ARM}/7107"
_USUAL_HZ, _MAX_HZ = 50.0, 1000.0
"""Usual and maximum rate of joint states over WebRTC."""
_LATE_S = 0.5
"""If the fastest answer takes longer than this, every answer of the robot is late."""


@dataclass(frozen=True, slots=True)
class RobotProfile:
    """The properties of the robot in a report that a simulated robot needs."""

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
    """How an A1 starts: `stand` or `hung`."""


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
            f"the report is damaged: {error}", "Use the unchanged report of a trial."
        ) from None


def _build_profile(robot: dict[str, Any]) -> RobotProfile:
    wire = str(robot.get("wire", ""))
    build = _choose_build(robot, wire)
    has_services = wire in SERVICES
    firmware = firmware_of(build)
    topics = _get_dict(robot, "topics")
    lowstate = _get_dict(topics, LOWSTATE_TOPIC if wire == "webrtc" else _DDS_LOWSTATE)
    mode = robot.get("mode")
    known_modes = {facts.id for facts in family_for(build).modes.all}
    return RobotProfile(
        wire=wire,
        build=build,
        firmware=replace(
            firmware,
            version="like a report",
            signalling=_read_signalling(robot, firmware),
            answers_general_search=bool(
                _get_dict(robot, "discovery").get("answers_everybody", True)
            ),
            slots=_read_slots(robot, build, firmware),
            behaviour=_build_behaviour(robot, has_services),
            quirks=_build_quirks(robot, wire),
            delays_s=_read_answer_delays_s(robot) if has_services else {},
            codes=_read_refusal_codes(robot) if has_services else {},
            longest_name=_read_longest_name(robot) if has_services else None,
        ),
        mode=mode if isinstance(mode, int) and mode in known_modes else None,
        lowstate_hz=_as_number(lowstate.get("hz")) if wire == "dds" else None,
        dialect=str(robot.get("dialect") or "3.3.4"),
        a1_start="hung" if robot.get("a1_level") == "low" else "stand",
    )


def _choose_build(robot: dict[str, Any], wire: str) -> Build:
    """Return the build that a report names; if it is unknown, a G1 with as many joints."""
    name = str(robot.get("build") or "")
    found = find_build(name)
    if found is None and name and wire != "a1":
        return _find_g1_by_joint_count(robot)
    return found or DEFAULT_BUILD


def _find_g1_by_joint_count(robot: dict[str, Any]) -> Build:
    """Return the G1 build with as many joints as the unknown robot reported."""
    from rote.model.g1 import G1  # noqa: PLC0415 - rarely needed

    count = robot.get("joints_told") or robot.get("joints")
    found = next((build for build in G1.builds if len(build.joints) == count), None)
    if found is None:
        raise BadRequestError(
            f"a robot {robot.get('build')!r} with {count} joints cannot be simulated",
            "Simulate a similar robot without the report.",
        )
    return found


def _get_dict(robot: dict[str, Any], name: str) -> dict[str, Any]:
    value = robot.get(name)
    return value if isinstance(value, dict) else {}


def _as_number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _keep_numbers(values: Iterable[object]) -> list[float]:
    return [number for value in values if (number := _as_number(value)) is not None]


def _read_signalling(robot: dict[str, Any], firmware: Firmware) -> int | str:
    signalling = robot.get("signalling")
    if signalling in ("legacy", "none", "1", "2", "3"):
        return int(signalling) if str(signalling).isdecimal() else str(signalling)
    return firmware.signalling


def _read_slots(robot: dict[str, Any], build: Build, firmware: Firmware) -> int:
    slots = robot.get("slots")
    if isinstance(slots, int) and max(build.slots) < slots <= MAX_MOTORS:
        return slots
    return firmware.slots


# ---- times --------------------------------------------------------------------------------------


def _build_behaviour(robot: dict[str, Any], has_services: bool) -> Behaviour:
    """Return the delays measured in a report; those that it lacks are the logged ones."""
    teaching, playing = _get_dict(robot, "teaching"), _get_dict(robot, "playing")
    lapse_s = _as_number(teaching.get("lapse_s"))
    if not has_services:
        return replace(POLITE, lapse_s=lapse_s)
    release_s = _as_number(teaching.get("release_s")) or RELEASE_S
    lingers = _keep_numbers((*teaching.get("all_lingers_s", ()), teaching.get("lingers_s")))
    mean_linger_s = sum(lingers) / len(lingers) if lingers else 0.0
    listed_s = _as_number(teaching.get("listed_after_s"))
    # A start is seen in the next state, which is half a period later on average.
    starts = tuple(
        value - LOGGED.arm_state_s / 2
        for value in _keep_numbers(playing.get("starts_after_s") or ())
    )
    arm_state = _get_dict(_get_dict(robot, "topics"), rpc.ARM_STATE_TOPIC)
    arm_hz = _as_number(arm_state.get("hz"))
    lists_late = True
    if teaching.get("listed") and listed_s is not None:
        lists_late = listed_s > release_s / 2
    return replace(
        LOGGED,
        release_s=release_s,
        # The end is seen in the next state, which is half a period (0.05 s) later on average.
        linger_s=(max(0.0, min(lingers) - 0.05), max(lingers)) if lingers else LOGGED.linger_s,
        lists_late=lists_late,
        lapse_s=None if lapse_s is None else max(0.5, lapse_s - mean_linger_s),
        lapse_keeps=bool(teaching.get("lapse_stored")),
        overwrites=bool(teaching.get("overwrites", True)),
        measured_starts_s=starts,
        arm_state_s=_compute_publish_period_s(arm_hz, LOGGED.arm_state_s),
    )


def _compute_publish_period_s(hz: float | None, usual_s: float) -> float:
    """Return the period of a rate, in whole publishing steps of the simulated robot (0.02 s).

    A rate within 15 % of the usual one counts as the usual one.
    """
    if not hz or abs(hz * usual_s - 1.0) < 0.15:
        return usual_s
    return max(0.02, round(1.0 / hz / 0.02) * 0.02)


def _compute_lateness_s(robot: dict[str, Any]) -> float:
    """Return the delay in seconds common to all answers; 0 if the fastest one is prompt."""
    measured = [value for values in _get_dict(robot, "delays_s").values() for value in values]
    quickest_s = min(filter(None, map(_as_number, measured)), default=0.0)
    return quickest_s if quickest_s > _LATE_S else 0.0


def _read_answer_delays_s(robot: dict[str, Any]) -> dict[str, tuple[float, ...]]:
    """Return the measured delays by API, without the delay common to all answers."""
    delays_s = {}
    common_s = _compute_lateness_s(robot)
    for api, values in _get_dict(robot, "delays_s").items():
        measured = [value for value in _keep_numbers(values) if value >= 0]
        is_preset = api == f"{rpc.ARM}/{int(rpc.ArmApi.EXECUTE_PRESET)}"
        if measured and not is_preset:  # a preset is answered at its end
            delays_s[api] = tuple(value - common_s for value in measured)
    return delays_s


def _read_refusal_codes(robot: dict[str, Any]) -> dict[tuple[str, int], int]:
    """Return the robot's codes that differ from those that rote assumes.

    They are keyed by api and the code that the simulated robot would answer.
    """
    codes: dict[tuple[str, int], int] = {}
    for row in robot.get("refusals") or ():
        api, assumed, received = str(row.get("api")), row.get("assumed"), row.get("code")
        if not isinstance(received, int) or received == assumed or not isinstance(assumed, int):
            continue
        if str(row.get("when", "")).startswith("renamed to"):
            codes.setdefault((api, 3204), received)  # 3204: a bad parameter, here the name
        elif str(row.get("when", "")).startswith("taught under a name"):
            codes.setdefault((api, 7399), received)  # 7399: the arm service failed
        elif received != 0:
            codes.setdefault((api, assumed), received)
    return codes


def _read_longest_name(robot: dict[str, Any]) -> int | None:
    """Return the maximum name length in bytes: one less than the shortest refused name."""
    refused = _get_dict(robot, "names").get("refused_bytes")
    return refused - 1 if isinstance(refused, int) and refused > 1 else None


# ---- shapes -------------------------------------------------------------------------------------


def _build_quirks(robot: dict[str, Any], wire: str) -> Quirks:
    quirks = [QUIRKS[name] for name in _find_quirk_names(robot, wire)]
    shape_quirk = _make_shape_quirk(robot, wire)
    if shape_quirk is not None:
        quirks.append(shape_quirk)
    return Quirks(quirks)


def _find_quirk_names(robot: dict[str, Any], wire: str) -> Iterable[str]:
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
    if _read_refusal_code(robot, _LIST_API) or _read_refusal_code(robot, "0x1a"):
        yield "list-refused"
    if teaching.get("listed") and playing.get("never_moved"):
        yield "never-moves"


def _read_refusal_code(robot: dict[str, Any], api: str) -> int:
    """Return the code of the first recorded answer of an api; 0 if it was not refused."""
    rows = [row for row in robot.get("refusals") or () if row.get("api") == api]
    return int(rows[0].get("code") or 0) if rows else 0


def _make_shape_quirk(robot: dict[str, Any], wire: str) -> Quirk | None:
    """Return a quirk that gives messages the shapes in the report; None for UDP and A1."""
    if wire not in SERVICES:
        return None
    shapes, topics = _get_dict(robot, "shapes"), _get_dict(robot, "topics")

    def is_missing(topic: str) -> bool:
        """Whether the robot published other topics, but not this one."""
        return bool(topics) and topic not in topics

    def shape_lowstate(message: dict[str, Any]) -> dict[str, Any] | None:
        if wire == "webrtc" and is_missing(LOWSTATE_TOPIC):
            return None
        return _shape_object(message, shapes.get("lowstate"))

    def shape_arm_state(message: dict[str, Any]) -> object:
        if is_missing(rpc.ARM_STATE_TOPIC):
            return None
        return _shape_arm_state(message, shapes.get("arm_state"))

    hz = _as_number(_get_dict(topics, LOWSTATE_TOPIC).get("hz"))
    list_format = _get_dict(robot, "list").get("format")
    extra_messages = [text for text in robot.get("odd_messages") or () if isinstance(text, str)]
    max_bytes = robot.get("message_bytes")
    return Quirk(
        name=NAME,
        group="answers",
        wires=(UDP, *SERVICES),
        what="messages have the shapes of the robot in the report",
        lowstate=shape_lowstate,
        state=lambda state: None if wire == "dds" and is_missing(_DDS_LOWSTATE) else state,
        lowstate_hz=None if hz is None or abs(hz - _USUAL_HZ) < 3 else min(hz, _MAX_HZ),
        arm_state=shape_arm_state,
        mode=lambda mode: _shape_mode(mode, robot, shapes.get("mode")),
        actions=lambda lists: apply_list_format(lists, list_format) if list_format else lists,
        response=lambda message: _shape_object(message, shapes.get("answer")) or message,
        answer_late_s=_compute_lateness_s(robot),
        extra=tuple(extra_messages) if wire == "webrtc" else (),
        message_size=max_bytes if isinstance(max_bytes, int) and max_bytes < 65_536 else None,
    )


def _shape_arm_state(message: dict[str, Any], shape: Shape | None) -> object:
    """Return the arm state in the robot's shape; a bare number is its id."""
    if shape is None:
        return message
    return fit_to_shape(message if "object" in shape["kinds"] else message["id"], shape)


def _shape_object(message: dict[str, Any], shape: Shape | None) -> dict[str, Any]:
    """Return the message in the robot's shape; unchanged if that is not an object."""
    if shape is None:
        return message
    result = fit_to_shape(message, shape)
    return result if isinstance(result, dict) else message


def _shape_mode(mode: int, robot: dict[str, Any], shape: Shape | None) -> object:
    """Return the mode in the robot's shape, or `Refused` or `Missing` if it does not send it."""
    if _read_refusal_code(robot, _MODE_API):
        return Refused
    if shape is None:
        return mode
    field = shape.get("fields", {}).get("data")
    if field is None or ABSENT in field["kinds"]:
        return Missing if "object" in shape["kinds"] else mode
    sent_mode = _get_dict(robot, "mode_said").get("data")
    if isinstance(sent_mode, int) and not isinstance(sent_mode, bool) and sent_mode < 0:
        return sent_mode  # a robot that always sends, for example, -1
    return fit_to_shape(mode, field)
