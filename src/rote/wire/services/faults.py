"""The faults that a robot reports: their time, the part, and one bit for each fault."""

from dataclasses import dataclass
from enum import Enum

SOURCES: dict[int, str] = {
    100: "communication",
    200: "fans",
    300: "motors",
    400: "lidar",
    500: "UWB",
    600: "motion control",
    700: "battery management",
    800: "chassis",
    900: "power switch",
    1000: "emergency stop",
}
# One bit each; few of them are documented. The bits of 300 apply to every single motor.
FAULTS: dict[int, dict[int, str]] = {
    300: {0x10: "winding overheating", 0x10000000: "winding almost overheating"},
    600: {0x8: "low battery"},
}


class Change(Enum):
    """How a report changes the list of faults."""

    ALL = "errors"
    ADDED = "add_error"
    REMOVED = "rm_error"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of the robot since `unix_s`."""

    unix_s: int
    source: int
    code: int

    @property
    def message(self) -> str:
        """The fault as shown to the user; with its numbers, because few are documented."""
        motor = self._motor
        if motor is None:
            part, names = SOURCES.get(self.source, "an unknown part"), FAULTS.get(self.source, {})
        else:
            part, names = f"motor {motor}", FAULTS[300]
        bits = [1 << n for n in range(self.code.bit_length()) if self.code >> n & 1]
        faults = " and ".join(names.get(bit, "an unknown fault") for bit in bits)
        return f"{part}: {faults or 'no fault'} ({self.source}/0x{self.code:x})"

    @property
    def _motor(self) -> int | None:
        """The number of the faulty motor: 300 + n or 3000 + n; None if it is not a single motor."""
        if 300 < self.source < 400:
            return self.source - 300
        return self.source - 3000 if 3000 <= self.source < 4000 else None


@dataclass(frozen=True, slots=True)
class Faults:
    """All current faults, or the one that began or ended."""

    change: Change
    faults: tuple[Fault, ...] = ()
