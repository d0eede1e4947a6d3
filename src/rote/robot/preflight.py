"""Before anything moves: what a person should know about the robot, in words."""

import math

from rote.messages import MODES, Mode, RobotState
from rote.model import G1_JOINTS
from rote.motion.limits import TOLERANCE_RAD
from rote.robot.base import Actions, Finding, ModeReport, Severity

MOST_TILT_DEG = 15.0
_LEAST_WEIGHT_N = 100.0


def findings(state: RobotState | None, actions: Actions) -> list[Finding]:
    """Return everything worth saying, the worst first."""
    if state is None:
        return [
            Finding(
                Severity.ERROR,
                "the robot has not reported its state yet",
                "Wait a moment; if it stays so, the network drops its reports.",
            )
        ]
    found = [
        *_mode(state),
        *_arms(state),
        *_posture(state),
        *_joints(state),
        *_store(actions),
    ]
    order = list(Severity)
    return sorted(found, key=lambda finding: order.index(finding.severity))


def _mode(state: RobotState) -> list[Finding]:
    mode = ModeReport.of(state.mode)
    if mode.balanced:
        return []
    return [
        Finding(
            Severity.ERROR,
            f"the robot is not in a balanced standing (mode {mode.id}, {mode.name})",
            "Make it stand: rote modes stand. On the remote of a G1: "
            f"{MODES[Mode.LOCK_STAND].buttons}, then {MODES[Mode.WALK].buttons}.",
        )
    ]


def _arms(state: RobotState) -> list[Finding]:
    if state.arms_soft and ModeReport.of(state.mode).balanced:
        return [
            Finding(
                Severity.WARNING,
                "the arms are soft: somebody is teaching",
                "Wait, or end it: rote stop.",
            )
        ]
    if state.playing:
        return [Finding(Severity.WARNING, "the arms are moving", "Wait, or end it: rote stop.")]
    return []


def _posture(state: RobotState) -> list[Finding]:
    x, y, z = state.accelerometer_m_s2
    found = []
    tilt_deg = math.degrees(math.atan2(math.hypot(x, y), z))
    if tilt_deg > MOST_TILT_DEG:
        found.append(
            Finding(
                Severity.ERROR,
                f"the robot leans by {tilt_deg:.0f} degrees",
                "Stand it upright before it moves.",
            )
        )
    if sum(state.foot_force_n) < _LEAST_WEIGHT_N:
        found.append(
            Finding(
                Severity.WARNING,
                "the feet carry no weight",
                "If it hangs on a gantry this is expected; else look at its feet.",
            )
        )
    return found


def _joints(state: RobotState) -> list[Finding]:
    found = []
    for joint, position in zip(G1_JOINTS, state.positions_rad, strict=False):
        beyond = max(joint.lower_rad - position, position - joint.upper_rad)
        if beyond > TOLERANCE_RAD:
            found.append(
                Finding(
                    Severity.ERROR,
                    f"{joint.name} is {beyond:.2f} rad beyond its limit",
                    "Move it back by hand in damping mode.",
                )
            )
    return found


def _store(actions: Actions) -> list[Finding]:
    if actions.free_places > 0:
        return []
    return [
        Finding(
            Severity.WARNING,
            "all 15 places for taught actions are taken",
            "Nothing more can be taught until one is deleted; playing works.",
        )
    ]
