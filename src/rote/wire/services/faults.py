"""The faults that a robot reports: when, which part, and one bit for each fault."""

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
# One bit each; few of them are documented. The bits of motors apply to motor N too.
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
        """What is wrong, for a person; with its numbers, because few of them are documented."""
        motor = self.source - (3000 if self.source >= 3000 else 300)
        is_motor = 300 < self.source < 400 or 3000 <= self.source < 4000
        source = f"motor {motor}" if is_motor else SOURCES.get(self.source, "an unknown part")
        table = FAULTS.get(300 if is_motor else self.source, {})
        bits = [1 << n for n in range(self.code.bit_length()) if self.code >> n & 1]
        what = " and ".join(table.get(bit, "an unknown fault") for bit in bits)
        return f"{source}: {what or 'no fault'} ({self.source}/0x{self.code:x})"


@dataclass(frozen=True, slots=True)
class Faults:
    """All current faults, or the one that began or ended."""

    change: Change
    faults: tuple[Fault, ...] = ()
