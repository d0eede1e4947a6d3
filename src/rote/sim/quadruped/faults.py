"""Faults of a simulated A1, on request: hot motors, low battery, silence, clock jumps and NaN."""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from rote.errors import BadRequestError
from rote.sim.quadruped.legs import JOINTS, LegDimensions, Row
from rote.transport.impair import parse_seconds
from rote.wire.a1 import layout as a1_layout
from rote.wire.a1.formats import BY_SIZE
from rote.wire.a1.values import GO1_HIGH

BATTERY_S = 3600.0
"""Time from full to empty, ignoring the reserve."""
RESERVE_PERCENT, LOW_PERCENT = 20.0, 8.0
AMBIENT_C, FULL_TORQUE_C = 30.0, 60.0
"""Temperature of a motor at rest, and the final temperature rise at full torque."""
THERMAL_S = 300.0
"""Time constant with which a motor warms and cools."""
HOT_C, TOO_HOT_C, COOLED_C = 105.0, 90.0, 75.0
"""Temperature of a motor heated on request; torque ends above the second and returns below the
third.
"""
_NAN = struct.pack("<f", float("nan"))


class A1Health:
    """Battery, temperatures and faults of one robot."""

    def __init__(self, build: LegDimensions) -> None:
        self.battery_percent = 100.0
        self.temperatures_c = [AMBIENT_C] * JOINTS
        self.hot = [False] * JOINTS
        """Motors that are too hot and give no torque until they have cooled."""
        self.silent = False
        """Whether the robot receives but sends nothing."""
        self.clock_jump_us = 0
        self.corrupted_part = ""
        """The part of every state in which one number is NaN; empty for none."""
        self._effort = build.effort_nm
        self._planned: list[A1PlannedFault] = []

    def overheat_motor(self, motor: int) -> None:
        """Overheat a motor; it takes minutes to cool."""
        self.temperatures_c[_check_motor(motor)] = HOT_C

    def jump_clock(self, by_s: float) -> None:
        """Make the robot's clock jump."""
        self.clock_jump_us += round(by_s * 1e6)

    def discharge_battery(self) -> None:
        """Set the battery to a low level."""
        self.battery_percent = min(self.battery_percent, LOW_PERCENT)

    def plan_fault(self, fault: "A1PlannedFault") -> None:
        """Schedule a fault."""
        self._planned.append(fault)

    def advance(self, time_s: float, elapsed_s: float, torques_nm: Row) -> list[str]:
        """Trigger planned faults, discharge the battery, and warm and cool the motors.

        Returns notices for the operator.
        """
        messages = []
        for fault in [fault for fault in self._planned if fault.when_s <= time_s]:
            self._planned.remove(fault)
            fault.apply(self)
            messages.append(fault.message)
        if self.battery_percent > RESERVE_PERCENT:
            drained = self.battery_percent - 100.0 * elapsed_s / BATTERY_S
            self.battery_percent = max(RESERVE_PERCENT, drained)
        for motor, (torque, max_torque) in enumerate(zip(torques_nm, self._effort, strict=True)):
            celsius = self.temperatures_c[motor]
            final_c = AMBIENT_C + FULL_TORQUE_C * abs(torque) / max_torque
            self.temperatures_c[motor] = celsius + (final_c - celsius) * elapsed_s / THERMAL_S
            was_hot = self.hot[motor]
            self.hot[motor] = celsius > (COOLED_C if was_hot else TOO_HOT_C)
            if self.hot[motor] and not was_hot:
                messages.append(f"motor {motor} is too hot and gives no torque")
        return messages


# ---- parsing faults -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class A1PlannedFault:
    """A fault that occurs when the robot has run for `when_s`."""

    when_s: float
    message: str
    apply: Callable[[A1Health], None]


def parse_a1_fault(text: str) -> A1PlannedFault:
    """Parse `low-battery`, `hot-motor:5`, `silent`, `clock:-2s` or `nan:imu`.

    A suffix `@SECONDS` delays the fault.
    """
    fault_text, _, when = text.strip().partition("@")
    when_s = parse_seconds(when) if "@" in text else 0.0
    name, _, value = fault_text.strip().partition(":")
    if name == "low-battery" and not value:
        return A1PlannedFault(when_s, "the battery is low", A1Health.discharge_battery)
    if name == "silent" and not value:
        return A1PlannedFault(when_s, "the robot stops sending", _make_silent)
    if name == "hot-motor" and value.isdecimal():
        motor = _check_motor(int(value))
        return A1PlannedFault(
            when_s, f"motor {motor} heats up", lambda health: health.overheat_motor(motor)
        )
    if name == "clock" and value:
        by_s = -parse_seconds(value[1:]) if value[0] == "-" else parse_seconds(value)
        return A1PlannedFault(
            when_s, f"the clock jumps by {by_s:g} s", lambda health: health.jump_clock(by_s)
        )
    if name == "nan" and value in CORRUPTIBLE:
        return A1PlannedFault(
            when_s, f"{value} is not a number", lambda health: _corrupt_part(health, value)
        )
    raise BadRequestError(
        f"unknown fault {text!r} of an A1",
        f"Write low-battery, hot-motor:5, silent, clock:-2s or nan:{'|'.join(CORRUPTIBLE)}, "
        "and add @SECONDS for a later start, like silent@5.",
    )


def _make_silent(health: A1Health) -> None:
    health.silent = True


def _corrupt_part(health: A1Health, part: str) -> None:
    health.corrupted_part = part


def _check_motor(motor: int) -> int:
    if not 0 <= motor < JOINTS:
        raise BadRequestError(
            f"unknown motor {motor}", f"They are numbered from 0 to {JOINTS - 1}."
        )
    return motor


# For each part of a state: the offset within it, in bytes, of the number that is replaced by NaN.
CORRUPTIBLE = {"imu": 40, "motors": 1, "position_m": 0, "velocity_m_s": 0}


def corrupt_state(datagram: bytes, part: str) -> bytes:
    """Return a state with one number of a part replaced by NaN, and a correct checksum.

    A frame without the part is returned unchanged.
    """
    layout = BY_SIZE[len(datagram)].layout
    if part not in layout.offsets:
        return datagram
    offset = layout.offsets[part] + CORRUPTIBLE[part]
    body = datagram[:offset] + _NAN + datagram[offset + len(_NAN) : -4]  # without the checksum
    crc = a1_layout.crc(body)
    # A Go1 encrypts the checksum of its high-level states; byte 2 is the level flag.
    is_encrypted = BY_SIZE[len(datagram)].is_go1 and body[2] == GO1_HIGH
    return body + (a1_layout.encrypt_crc(crc) if is_encrypted else crc)
