"""The simulated robot's health: its battery, its motor temperatures, and its faults.

Faults are reported by source and code, as on a G1. They occur on request, for tests. A heated motor
cools down by itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rote.errors import BadRequestError
from rote.model.family import Build
from rote.motion.track import Array
from rote.sim.columns import DEFAULT_BUILD, Columns
from rote.transport.impair import parse_seconds
from rote.wire.services.faults import Fault

BATTERY_S = 7200.0
"""Time from full to empty, ignoring the reserve."""
RESERVE_PERCENT = 20.0
"""The battery does not discharge below this by itself, so a simulator left running stays usable."""
LOW_PERCENT = 8.0
AMBIENT_C, FULL_TORQUE_C = 28.0, 70.0
"""Temperature of a motor at rest, and the final temperature rise at full torque."""
THERMAL_S = 300.0
"""Time constant with which a motor warms and cools."""
HOT_C, TOO_HOT_C, COOLED_C = 110.0, 90.0, 70.0
"""Temperature of a motor heated on request; a fault begins at the second and ends below the third.
"""

LOW_BATTERY = (600, 0x8)
"""Source and code of the fault."""
MOTORS = 3000
"""The source of the faults of the motor in slot 0. Robots number motors from 301 or from 3000;
which one is a guess.
"""
OVERHEATED = 0x10


class Health:
    """Battery, temperatures and faults of one robot."""

    def __init__(self, began_unix_s: float = 0.0, build: Build = DEFAULT_BUILD) -> None:
        self._build = build
        self._effort_nm = Columns(build).effort_nm
        self.battery_percent = 100.0
        self.temperatures_c: Array = np.full(len(build.joints), AMBIENT_C)
        self.changes = 0
        """Increases whenever a fault begins or ends."""
        self.messages: tuple[str, ...] = ()
        """The faults as text."""
        self._unix_s = self._began_unix_s = began_unix_s
        self._faults: dict[tuple[int, int], Fault] = {}
        self._planned: list[PlannedFault] = []

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The current faults, the oldest first."""
        return tuple(self._faults.values())

    @property
    def weak(self) -> bool:
        """Whether the battery is too low to move the arms."""
        return LOW_BATTERY in self._faults

    @property
    def motor_error(self) -> bool:
        """Whether a motor reports an error."""
        # Robots number their motors from 301 or from 3000.
        return any(300 <= source < 400 or 3000 <= source < 4000 for source, _ in self._faults)

    def add_fault(self, source: int, code: int) -> None:
        """Add a fault."""
        if (source, code) not in self._faults:
            self._faults[source, code] = Fault(int(self._unix_s), source, code)
            self._on_faults_changed()

    def clear_fault(self, source: int, code: int) -> None:
        """Remove a fault; nothing happens if there is none."""
        if self._faults.pop((source, code), None) is not None:
            self._on_faults_changed()

    def discharge_battery(self) -> None:
        """Set the battery to a low level."""
        self.battery_percent = min(self.battery_percent, LOW_PERCENT)
        self.add_fault(*LOW_BATTERY)

    def overheat_motor(self, slot: int) -> None:
        """Overheat the motor in a slot; it takes minutes to cool."""
        self.temperatures_c[_find_column_of_slot(slot, self._build)] = HOT_C
        self.add_fault(MOTORS + slot, OVERHEATED)

    def plan_fault(self, fault: "PlannedFault") -> None:
        """Schedule a fault."""
        self._planned.append(fault)

    def advance(self, time_s: float, elapsed_s: float, torques_nm: Array) -> None:
        """Advance time: discharge the battery, warm and cool motors, trigger planned faults."""
        self._unix_s = self._began_unix_s + time_s
        if self.battery_percent > RESERVE_PERCENT:
            drained = self.battery_percent - 100.0 * elapsed_s / BATTERY_S
            self.battery_percent = max(RESERVE_PERCENT, drained)
        final_c = AMBIENT_C + FULL_TORQUE_C * np.abs(torques_nm) / self._effort_nm
        self.temperatures_c += (final_c - self.temperatures_c) * (elapsed_s / THERMAL_S)
        self._update_heat_faults()
        for fault in [fault for fault in self._planned if fault.when_s <= time_s]:
            self._planned.remove(fault)
            fault.apply(self)

    def _update_heat_faults(self) -> None:
        slots = self._build.slots
        for column in np.flatnonzero(self.temperatures_c >= TOO_HOT_C).tolist():
            self.add_fault(MOTORS + slots[column], OVERHEATED)
        for source, code in list(self._faults):
            slot = source - MOTORS
            is_heat = slot in slots and code == OVERHEATED
            if is_heat and self.temperatures_c[slots.index(slot)] < COOLED_C:
                self.clear_fault(source, code)

    def _on_faults_changed(self) -> None:
        self.changes += 1
        self.messages = tuple(fault.message for fault in self._faults.values())


# ---- parsing faults -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault that occurs when the robot has run for `when_s`."""

    when_s: float
    apply: Callable[[Health], None]


def parse_fault(text: str, build: Build = DEFAULT_BUILD) -> PlannedFault:
    """Parse `low-battery`, `hot-motor:SLOT` or `SOURCE:CODE`, such as `600:0x8`.

    A suffix `@SECONDS` delays the fault.
    """
    fault_text, _, when = text.strip().partition("@")
    when_s = parse_seconds(when) if "@" in text else 0.0
    name, _, number = fault_text.strip().partition(":")
    if fault_text.strip() == "low-battery":
        return PlannedFault(when_s, Health.discharge_battery)
    try:
        source = MOTORS if name == "hot-motor" else int(name)
        value = int(number, 0)
    except ValueError:
        raise _invalid_fault_error(text) from None
    if name == "hot-motor":
        _find_column_of_slot(value, build)
        return PlannedFault(when_s, lambda health: health.overheat_motor(value))
    if source < 0 or value <= 0:
        raise _invalid_fault_error(text)
    return PlannedFault(when_s, lambda health: health.add_fault(source, value))


def _invalid_fault_error(text: str) -> BadRequestError:
    return BadRequestError(
        f"unknown fault {text!r}",
        "Write low-battery, hot-motor:16 or SOURCE:CODE like 600:0x8, "
        "and add @SECONDS for a later start, like low-battery@5.",
    )


def _find_column_of_slot(slot: int, build: Build) -> int:
    """Return the column of the joint whose motor is in a slot."""
    if slot in build.slots:
        return build.slots.index(slot)
    slots = sorted(build.slots)
    first, last = slots[0], slots[-1]
    if slots == list(range(first, last + 1)):
        known = f"They are numbered from {first} to {last}."
    else:
        known = f"Known motors: {', '.join(map(str, slots))}."
    raise BadRequestError(f"unknown motor {slot}", known)
