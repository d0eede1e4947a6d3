"""Preflight: findings about a robot that matter before anything moves."""

import math
from collections.abc import Sequence

from rote.findings import Finding, FindingKind, Severity, worst_first
from rote.messages import ANY_STAND_BUTTONS, MAX_ACTIONS, UNREPORTED_MODE, RobotState
from rote.model.family import Build
from rote.model.registry import family_of, modes_of
from rote.motion.check.limits import TOLERANCE_RAD
from rote.robot.api_values import Actions, ModeReport
from rote.robot.take import MIN_RATE_HZ
from rote.text import Act, Text, rad

MAX_TILT_DEG = 15.0
LOW_BATTERY_PERCENT, EMPTY_BATTERY_PERCENT = 25.0, 10.0
WARM_C, HOT_C = 70.0, 90.0
_MIN_WEIGHT_N = 100.0  # a robot on the ground presses on its feet with more than this
_END_REMEDY = Text("Wait until it ends, or end it: {stop}.", stop=Act.STOP)


def find_problems(
    state: RobotState | None,
    actions: Actions,
    build: Build,
    controller: str | None = None,
    *,
    missing: Sequence[str] = (),
    is_slow: bool = False,
    is_recognised: bool = True,
    rival_service: str = "",
) -> list[Finding]:
    """Return all findings about a robot of that build, the worst first.

    `missing` are the joints whose positions it does not report; `is_slow` means that it reports its
    joints less than `MIN_RATE_HZ` times per second. Unless `is_recognised`, the build is assumed.
    `rival_service` is a running service of the robot that would move the arms during a stream.
    """
    if state is None:
        return [
            Finding(
                Severity.ERROR,
                "the robot has not reported its state yet",
                "Wait a moment. If no state arrives, the network drops the robot's reports.",
                kind=FindingKind.STATE,
            )
        ]
    problems = [
        *_find_machine_problems(build),
        *_find_mode_problems(state, build, is_recognised=is_recognised),
        *_find_arm_problems(state, build),
        *_find_posture_problems(state, build),
        *_find_joint_problems(state, build),
        *_find_health_problems(state, build),
        *_find_hand_problems(state),
        *_find_store_problems(actions),
    ]
    problems += _find_unreported_values(state)
    problems += find_take_problems(missing, is_slow=is_slow)
    problems += _find_service_problems(controller, rival_service)
    return worst_first(problems)


def _find_service_problems(controller: str | None, rival_service: str) -> list[Finding]:
    problems = []
    if rival_service:
        problems.append(
            Finding(
                Severity.NOTE,
                f"the robot's own service {rival_service} is running: it may move the "
                "arms during a stream",
                "Before you stream poses to the arms, switch it off on the robot, as its "
                "manufacturer advises. While it is off, the robot does not list, teach "
                "or play.",
                kind=FindingKind.ARMS,
            )
        )
    if controller == "":  # None means that it is not reported
        problems.append(
            Finding(
                Severity.ERROR,
                "the robot is in debug mode: its arm service does nothing",
                "Leave debug mode: switch the robot off and on.",
                kind=FindingKind.CONTROLLER,
            )
        )
    return problems


def _find_unreported_values(state: RobotState) -> list[Finding]:
    """Return what the robot does not report, and what that means for teaching and playing."""
    problems = []
    if not state.joints_rad:
        problems.append(
            Finding(
                Severity.NOTE,
                "the robot reports no joint positions",
                "Teaching and playing work, but this computer records no take.",
                kind=FindingKind.STATE,
            )
        )
    if not state.has_phase:
        problems.append(
            Finding(
                Severity.NOTE,
                "the robot does not report what its arms do",
                "rote detects the beginning and the end of a motion only from its joints.",
                kind=FindingKind.STATE,
            )
        )
    return problems


def find_take_problems(missing: Sequence[str], *, is_slow: bool) -> list[Finding]:
    """Return why a take on this computer would be poorer than the robot's own recording."""
    problems = []
    if missing:
        problems.append(
            Finding(
                Severity.NOTE,
                f"the robot does not report {len(missing)} of its joints: {', '.join(missing)}",
                "Teaching and playing work, but these joints stay at rest in a take.",
                kind=FindingKind.STATE,
            )
        )
    if is_slow:
        problems.append(
            Finding(
                Severity.NOTE,
                f"the robot reports its joints less than {MIN_RATE_HZ:.0f} times per second",
                "Teaching and playing work, but a take is too coarse to show the motion.",
                kind=FindingKind.STATE,
            )
        )
    return problems


def _find_machine_problems(build: Build) -> list[Finding]:
    if build.known:
        return []
    return [
        Finding(
            Severity.WARNING,
            f"this is {build.title}: its joints are numbered by their motor slots",
            Text(
                "You can watch this robot, and teach it with its own services. rote "
                "streams nothing to it and does not change its mode. If you know its "
                "build, name it: {name_build}. Please send us the doctor's report on it: "
                "{doctor}.",
                name_build=Act.NAME_BUILD,
                doctor=Act.DOCTOR,
            ),
            kind=FindingKind.MACHINE,
        )
    ]


def _find_mode_problems(state: RobotState, build: Build, *, is_recognised: bool) -> list[Finding]:
    modes = modes_of(build)
    mode = ModeReport.of(state.mode, modes)
    if mode.balanced or not build.known:
        return []
    if mode.id == UNREPORTED_MODE:
        return [
            Finding(
                Severity.WARNING,
                f"it is unknown whether the robot stands balanced: {mode.label}",
                "Look at the robot. It decides itself whether it accepts teaching and playing.",
                kind=FindingKind.MODE,
            )
        ]
    buttons = modes.stand_up_buttons if is_recognised else ANY_STAND_BUTTONS
    return [
        Finding(
            Severity.ERROR,
            f"the robot is not in a balanced stand (mode {mode.id}, {mode.name})",
            Text(
                "Make it stand: {stand}.{buttons}",
                stand=Act.STAND,
                buttons=f" On the remote of the robot: {buttons}." if buttons else "",
            ),
            kind=FindingKind.MODE,
        )
    ]


def _find_arm_problems(state: RobotState, build: Build) -> list[Finding]:
    if state.arms_soft and modes_of(build).balanced(state.mode):
        return [
            Finding(
                Severity.WARNING,
                "the arms are soft: a teaching is running",
                _END_REMEDY,
                kind=FindingKind.ARMS,
            )
        ]
    if state.playing:
        return [
            Finding(Severity.WARNING, "the arms are moving", _END_REMEDY, kind=FindingKind.ARMS)
        ]
    return []


def _find_posture_problems(state: RobotState, build: Build) -> list[Finding]:
    problems = []
    # A robot that does not report its acceleration counts as upright.
    x, y, z = state.accelerometer_m_s2 or (0.0, 0.0, 1.0)
    tilt_deg = math.degrees(math.atan2(math.hypot(x, y), z))
    if tilt_deg > MAX_TILT_DEG:
        problems.append(
            Finding(
                Severity.ERROR,
                f"the robot leans by {tilt_deg:.0f} degrees",
                "Stand it upright before it moves.",
                kind=FindingKind.POSTURE,
                value=tilt_deg,
                limit=MAX_TILT_DEG,
                margin=MAX_TILT_DEG - tilt_deg,
                unit="degrees",
            )
        )
    family = family_of(build)
    has_foot_sensors = family is not None and family.body.feet and state.foot_force_n
    if has_foot_sensors and sum(state.foot_force_n) < _MIN_WEIGHT_N:
        problems.append(
            Finding(
                Severity.WARNING,
                "the feet carry no weight",
                "This is normal if it hangs on a gantry; otherwise check its feet.",
                kind=FindingKind.POSTURE,
                value=float(sum(state.foot_force_n)),
                limit=_MIN_WEIGHT_N,
                unit="N",
            )
        )
    return problems


def _find_joint_problems(state: RobotState, build: Build) -> list[Finding]:
    problems = []
    for joint, position in zip(build.joints, state.joints_rad, strict=False):
        excess_rad = max(joint.lower_rad - position, position - joint.upper_rad)
        if excess_rad > TOLERANCE_RAD:
            problems.append(
                Finding(
                    Severity.ERROR,
                    Text("{joint} is {by} beyond its limit", joint=joint.name, by=rad(excess_rad)),
                    "Move it back by hand in damping mode.",
                    kind=FindingKind.POSITION,
                    joint=joint.name,
                    value=position,
                    margin=-excess_rad,
                    unit="rad",
                )
            )
    return problems


def _find_health_problems(state: RobotState, build: Build) -> list[Finding]:
    problems = []
    battery = state.battery_percent
    if battery is not None and battery < LOW_BATTERY_PERCENT:
        severity = Severity.ERROR if battery < EMPTY_BATTERY_PERCENT else Severity.WARNING
        problems.append(
            Finding(
                severity,
                f"the battery is at {battery:.0f} %",
                "Charge it first.",
                kind=FindingKind.BATTERY,
                value=battery,
                limit=LOW_BATTERY_PERCENT,
                unit="%",
            )
        )
    for joint, celsius in zip(build.joints, state.temperatures_c, strict=False):
        if celsius >= WARM_C:
            severity = Severity.ERROR if celsius >= HOT_C else Severity.WARNING
            problems.append(
                Finding(
                    severity,
                    f"the motor of {joint.name} is at {celsius:.0f} degrees Celsius",
                    "Let the robot rest until it has cooled.",
                    kind=FindingKind.TEMPERATURE,
                    joint=joint.name,
                    value=float(celsius),
                    limit=WARM_C,
                    unit="degrees Celsius",
                )
            )
    problems += [
        Finding(
            Severity.WARNING,
            f"the robot reports a fault: {fault}",
            "Look at the robot.",
            kind=FindingKind.FAULT,
        )
        for fault in state.faults
    ]
    return problems


def _find_hand_problems(state: RobotState) -> list[Finding]:
    return [
        Finding(
            Severity.WARNING,
            f"the {side} hand has stopped reporting: its last known joint positions are shown",
            "Check its plug and its service on the robot. Teaching and playing arms still work.",
            kind=FindingKind.STATE,
        )
        for side in state.silent_hands
    ]


def _find_store_problems(actions: Actions) -> list[Finding]:
    if not actions.is_readable:
        return [
            Finding(
                Severity.WARNING,
                f"the robot's taught actions are unknown: {'; '.join(actions.notes)}",
                "Teaching and playing by name work, but teaching may replace an action "
                "of that name.",
                kind=FindingKind.STORE,
            )
        ]
    if actions.free_places > 0:
        return []
    return [
        Finding(
            Severity.WARNING,
            f"all {MAX_ACTIONS} places for taught actions are taken",
            Text(
                "Delete an action before you teach another one, or let the robot decide "
                "({force}). Playing works.",
                force=Act.FORCE,
            ),
            kind=FindingKind.STORE,
        )
    ]
