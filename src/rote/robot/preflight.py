"""Preflight: what a person should know about a robot before anything moves."""

import math
from collections.abc import Sequence

from rote.findings import Finding, FindingKind, Severity, worst_first
from rote.messages import MAX_ACTIONS, RobotState
from rote.model.family import Build, ModeTable
from rote.model.registry import family_of
from rote.motion.check.limits import TOLERANCE_RAD
from rote.robot.api_values import UNREPORTED_MODE, Actions, ModeReport
from rote.robot.modes import mode_table_of
from rote.robot.take import MIN_RATE_HZ
from rote.text import Act, Text, rad

MAX_TILT_DEG = 15.0
LOW_BATTERY, EMPTY_BATTERY = 25.0, 10.0
WARM_C, HOT_C = 70.0, 90.0
_MIN_WEIGHT_N = 100.0
_END_IT = Text("Wait, or end it: {stop}.", stop=Act.STOP)


def findings(
    state: RobotState | None,
    actions: Actions,
    build: Build,
    controller: str | None = None,
    *,
    missing: Sequence[str] = (),
    is_slow: bool = False,
) -> list[Finding]:
    """Return all findings about a robot of that build, the worst first.

    `missing` are the joints whose positions it does not report; `is_slow` means that it reports its
    joints less than `MIN_RATE_HZ` times per second.
    """
    if state is None:
        return [
            Finding(
                Severity.ERROR,
                "the robot has not reported its state yet",
                "Wait a moment; if it stays so, the network drops its reports.",
                kind=FindingKind.STATE,
            )
        ]
    found = [
        *_machine_findings(build),
        *_mode_findings(state, build),
        *_arm_findings(state, build),
        *_posture_findings(state, build),
        *_joint_findings(state, build),
        *_health_findings(state, build),
        *_hand_findings(state),
        *_store_findings(actions),
    ]
    found += _unreported_findings(state)
    found += take_findings(missing, is_slow=is_slow)
    if controller == "":
        found.append(
            Finding(
                Severity.ERROR,
                "the robot is in debug mode: its arm service does nothing",
                "Leave debug mode: switch the robot off and on.",
                kind=FindingKind.CONTROLLER,
            )
        )
    return worst_first(found)


def _unreported_findings(state: RobotState) -> list[Finding]:
    """Return what the robot does not report, and what that means for teaching and playing."""
    found = []
    if not state.joints_rad:
        found.append(
            Finding(
                Severity.NOTE,
                "the robot reports no joint positions",
                "It can be taught and played; there will be no take on this computer.",
                kind=FindingKind.STATE,
            )
        )
    if not state.phase_told:
        found.append(
            Finding(
                Severity.NOTE,
                "the robot does not report what its arms do",
                "Whether a motion has begun and ended is seen from its joints alone.",
                kind=FindingKind.STATE,
            )
        )
    return found


def take_findings(missing: Sequence[str], *, is_slow: bool) -> list[Finding]:
    """Return what makes a take on this computer poorer than the robot's own recording."""
    found = []
    if missing:
        found.append(
            Finding(
                Severity.NOTE,
                f"the robot does not report {len(missing)} of its joints: {', '.join(missing)}",
                "It can be taught and played; these joints stay at rest in a take.",
                kind=FindingKind.STATE,
            )
        )
    if is_slow:
        found.append(
            Finding(
                Severity.NOTE,
                f"the robot reports its joints less than {MIN_RATE_HZ:.0f} times per second",
                "It can be taught and played; a take shows poses, hardly the motion.",
                kind=FindingKind.STATE,
            )
        )
    return found


def _machine_findings(build: Build) -> list[Finding]:
    if build.known:
        return []
    return [
        Finding(
            Severity.WARNING,
            f"this is {build.title}: its joints are numbered by their motor slots",
            Text(
                "It can be watched and taught by its own services. Nothing is streamed to it, and "
                "its mode is not changed. If you know its build, name it: {name_build}. Please "
                "send us the doctor's report on it: {doctor}.",
                name_build=Act.NAME_BUILD,
                doctor=Act.DOCTOR,
            ),
            kind=FindingKind.MACHINE,
        )
    ]


def _stand_up_buttons(modes: ModeTable) -> str:
    """Return the buttons of the remote that lead from damping to a balanced stand."""
    pressed, mode = [], modes.damp
    while mode is not None and mode in modes.to_stand:
        mode = modes.to_stand[mode][0]
        facts = modes.find(mode)
        pressed += [facts.buttons] if facts is not None and facts.buttons else []
    return f" On the remote of the robot: {', then '.join(pressed)}." if pressed else ""


def _mode_findings(state: RobotState, build: Build) -> list[Finding]:
    modes = mode_table_of(build)
    mode = ModeReport.of(state.mode, modes)
    if mode.balanced or not build.known:
        return []
    if mode.id == UNREPORTED_MODE:
        return [
            Finding(
                Severity.WARNING,
                f"it is unknown whether the robot stands balanced: {mode.label}",
                "Look at it. The robot itself decides whether it can be taught and played.",
                kind=FindingKind.MODE,
            )
        ]
    return [
        Finding(
            Severity.ERROR,
            f"the robot is not in a balanced standing (mode {mode.id}, {mode.name})",
            Text(
                "Make it stand: {stand}.{buttons}",
                stand=Act.STAND,
                buttons=_stand_up_buttons(modes),
            ),
            kind=FindingKind.MODE,
        )
    ]


def _arm_findings(state: RobotState, build: Build) -> list[Finding]:
    if state.arms_soft and mode_table_of(build).balanced(state.mode):
        return [
            Finding(
                Severity.WARNING,
                "the arms are soft: a teaching is running",
                _END_IT,
                kind=FindingKind.ARMS,
            )
        ]
    if state.playing:
        return [Finding(Severity.WARNING, "the arms are moving", _END_IT, kind=FindingKind.ARMS)]
    return []


def _posture_findings(state: RobotState, build: Build) -> list[Finding]:
    found = []
    x, y, z = state.accelerometer_m_s2 or (0.0, 0.0, 1.0)  # not every robot reports it
    tilt_deg = math.degrees(math.atan2(math.hypot(x, y), z))
    if tilt_deg > MAX_TILT_DEG:
        found.append(
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
    on_feet = family is not None and family.body.feet and state.foot_force_n
    if on_feet and sum(state.foot_force_n) < _MIN_WEIGHT_N:
        found.append(
            Finding(
                Severity.WARNING,
                "the feet carry no weight",
                "If it hangs on a gantry this is expected; else look at its feet.",
                kind=FindingKind.POSTURE,
                value=float(sum(state.foot_force_n)),
                limit=_MIN_WEIGHT_N,
                unit="N",
            )
        )
    return found


def _joint_findings(state: RobotState, build: Build) -> list[Finding]:
    found = []
    for joint, position in zip(build.joints, state.joints_rad, strict=False):
        beyond = max(joint.lower_rad - position, position - joint.upper_rad)
        if beyond > TOLERANCE_RAD:
            found.append(
                Finding(
                    Severity.ERROR,
                    Text("{joint} is {by} beyond its limit", joint=joint.name, by=rad(beyond)),
                    "Move it back by hand in damping mode.",
                    kind=FindingKind.POSITION,
                    joint=joint.name,
                    value=position,
                    margin=-beyond,
                    unit="rad",
                )
            )
    return found


def _health_findings(state: RobotState, build: Build) -> list[Finding]:
    found = []
    battery = state.battery_percent
    if battery is not None and battery < LOW_BATTERY:
        severity = Severity.ERROR if battery < EMPTY_BATTERY else Severity.WARNING
        found.append(
            Finding(
                severity,
                f"the battery is at {battery:.0f} %",
                "Charge it first.",
                kind=FindingKind.BATTERY,
                value=battery,
                limit=LOW_BATTERY,
                unit="%",
            )
        )
    for joint, celsius in zip(build.joints, state.temperatures_c, strict=False):
        if celsius >= WARM_C:
            severity = Severity.ERROR if celsius >= HOT_C else Severity.WARNING
            found.append(
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
    found += [
        Finding(
            Severity.WARNING,
            f"the robot reports a fault: {fault}",
            "Look at the robot.",
            kind=FindingKind.FAULT,
        )
        for fault in state.faults
    ]
    return found


def _hand_findings(state: RobotState) -> list[Finding]:
    return [
        Finding(
            Severity.WARNING,
            f"the {side} hand has stopped reporting: its joints are shown where they were last",
            "Look at its plug and at its service on the robot. Arms can be taught and played.",
            kind=FindingKind.STATE,
        )
        for side in state.silent_hands
    ]


def _store_findings(actions: Actions) -> list[Finding]:
    if not actions.is_readable:
        return [
            Finding(
                Severity.WARNING,
                f"what the robot was taught is not known: {'; '.join(actions.notes)}",
                "It can be taught and played by name; teaching may replace an action of that name.",
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
                "Delete one to teach more, or let the robot decide ({force}); playing works.",
                force=Act.FORCE,
            ),
            kind=FindingKind.STORE,
        )
    ]
