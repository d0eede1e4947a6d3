"""Telemetry of a robot besides its joints: its status and its diagnostics."""

from collections.abc import Sequence
from typing import Any

from rote.bridge import ros_messages as ros
from rote.findings import Finding, Severity
from rote.messages import RobotState
from rote.robot.robot import Robot

_LEVELS = {Severity.ERROR: ros.ERROR, Severity.WARNING: ros.WARN, Severity.NOTE: ros.OK}
_HOT_C = 70.0
_LOW_BATTERY_PERCENT = 20.0
_MAX_CLOCK_ERROR_NS = 200_000_000
"""If the robot's clock deviates by more than this, it has jumped or does not run."""


class StateClock:
    """Converts the times of states from the robot's clock to this computer's clock."""

    def __init__(self) -> None:
        self._offset_ns: int | None = None

    def stamp_ns(self, state: RobotState, now_ns: int) -> int:
        """Return the best estimate of when a state, which arrived at `now_ns`, was measured, in ns.

        If the robot's clock jumps or does not run, this computer's time is used.
        """
        robot_ns = state.time_us * 1000
        offset_ns = self._offset_ns
        if offset_ns is None or abs(robot_ns + offset_ns - now_ns) > _MAX_CLOCK_ERROR_NS:
            offset_ns = self._offset_ns = now_ns - robot_ns
        return robot_ns + offset_ns


def describe_status(robot: Robot, state: RobotState) -> dict[str, Any]:
    """Return the status of a robot as JSON data."""
    family = robot.family
    mode = None if family is None else family.modes.find(state.mode)
    return {
        "robot": robot.url,
        "build": robot.build.name,
        "mode": state.mode,
        "mode_name": "" if mode is None else mode.name,
        "phase": state.phase.name.lower(),
        "playing": state.playing,
        "soft": state.arms_soft,
        "recording": state.recording,
        "holding": state.holding,
        "battery_percent": state.battery_percent,
        "warmest_c": max(state.temperatures_c, default=None),
        "faults": list(state.faults),
    }


def make_diagnostics(
    robot: Robot, state: RobotState | None, findings: Sequence[Finding]
) -> list[ros.Diagnostic]:
    """Return the diagnostics of a robot for ROS 2 and Foxglove, each with a level."""
    hardware = robot.build.name
    if state is None:
        return [ros.Diagnostic(ros.STALE, "robot", "it has not reported yet", hardware)]
    status = describe_status(robot, state)
    values = tuple((key, str(status[key])) for key in ("mode", "mode_name", "phase", "soft"))
    lines = [ros.Diagnostic(ros.OK, "robot", robot.build.title, hardware, values)]
    if state.battery_percent is not None:
        low = state.battery_percent < _LOW_BATTERY_PERCENT
        charge = f"{state.battery_percent:.0f} %"
        lines.append(ros.Diagnostic(ros.WARN if low else ros.OK, "battery", charge, hardware))
    if state.temperatures_c:
        warmest = max(state.temperatures_c)
        level = ros.WARN if warmest >= _HOT_C else ros.OK
        lines.append(ros.Diagnostic(level, "motors", f"warmest {warmest:.0f} °C", hardware))
    lines += [ros.Diagnostic(ros.ERROR, "fault", fault, hardware) for fault in state.faults]
    lines += [
        ros.Diagnostic(
            _LEVELS[finding.severity],
            f"finding: {finding.kind.value}",
            str(finding.message),
            hardware,
            (("remedy", str(finding.remedy)),),
        )
        for finding in findings
    ]
    return lines
