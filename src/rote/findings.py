"""Findings: facts that matter before a robot moves, each with a severity and a remedy.

The checks of a motion, the preflight of a robot and the doctor all return findings. Messages and
remedies are `Text`s, which the command line and the page each render in their own way.
"""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Any

from rote.text import Text

__all__ = ["Finding", "FindingKind", "Severity", "worst_first"]


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """Teaching or playing is refused, or is not safe."""
    WARNING = "warning"
    """A person should look at it first."""
    NOTE = "note"
    """Something that was not checked, or that rote handles by itself."""


class FindingKind(StrEnum):
    """What a finding is about."""

    # about a motion
    POSITION = "position"
    VELOCITY = "velocity"
    ACCELERATION = "acceleration"
    JUMP = "jump"
    GAP = "gap"
    DURATION = "duration"
    VARIANT = "variant"
    COLLISION = "self-collision"
    CLEARANCE = "clearance"
    BALANCE = "balance"
    LEANING = "leaning"
    TORQUE = "torque"
    THERMAL = "thermal"
    # about a robot
    MACHINE = "machine"
    STATE = "state"
    MODE = "mode"
    ARMS = "arms"
    POSTURE = "posture"
    BATTERY = "battery"
    TEMPERATURE = "temperature"
    FAULT = "fault"
    STORE = "store"
    CONTROLLER = "controller"
    # about a show
    FILE = "file"
    OVERLAP = "overlap"
    CUE = "cue"
    CAST = "cast"
    # about this computer and its network
    SOFTWARE = "software"
    NETWORK = "network"
    CONNECTION = "connection"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact that matters before a robot moves."""

    severity: Severity
    message: str
    """The whole finding in one sentence; a `Text` if it contains facts."""
    remedy: str = ""
    """What to do next; a `Text` if it names an action that each user interface phrases itself."""
    _: KW_ONLY
    kind: FindingKind
    joint: str | None = None
    """The joint's name; None if no single joint is concerned."""
    time_s: float | None = None
    """The moment on the clock of the track; None if it concerns the whole track, or no track."""
    value: float | None = None
    limit: float | None = None
    margin: float | None = None
    """Distance to the limit; negative if the limit is exceeded."""
    unit: str = ""
    """The unit of value, limit and margin."""

    def as_json(self) -> dict[str, Any]:
        """Return the finding as JSON data; `message` and `remedy` are plain text."""
        return {
            "severity": self.severity.value,
            "kind": self.kind.value,
            "joint": self.joint,
            "time_s": self.time_s,
            "value": self.value,
            "limit": self.limit,
            "margin": self.margin,
            "unit": self.unit,
            "message": str(self.message),
            "remedy": str(self.remedy),
            "acts": list(self.remedy.acts) if isinstance(self.remedy, Text) else [],
        }


def worst_first(found: Iterable[Finding]) -> list[Finding]:
    """Return the findings sorted by severity, errors first."""
    order = list(Severity)
    return sorted(found, key=lambda finding: order.index(finding.severity))
