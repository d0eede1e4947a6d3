"""Findings: what a person should know before a robot moves, with the facts behind it.

The checks of a motion, the preflight of a robot and the doctor all give these. Sentences and
remedies are `Text`s: the command line and the page each show them in their own way.
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
    """What was not looked at, or what happens by itself."""


class FindingKind(StrEnum):
    """What a finding is about."""

    # of a motion
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
    # of a robot
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
    # of this computer and the way to a robot
    SOFTWARE = "software"
    NETWORK = "network"
    CONNECTION = "connection"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know."""

    severity: Severity
    message: str
    """All of it in a sentence; a `Text` where it has facts."""
    remedy: str = ""
    """What to do next; a `Text` where an edge says how."""
    _: KW_ONLY
    kind: FindingKind
    joint: str | None = None
    """None where no single joint is meant."""
    time_s: float | None = None
    """On the clock of the track; None where it is about all of it, or about no track."""
    value: float | None = None
    limit: float | None = None
    margin: float | None = None
    """How much is left to the limit; below 0 it is exceeded by so much."""
    unit: str = ""
    """Of value, limit and margin."""

    def as_json(self) -> dict[str, Any]:
        """Return all of it as data; `words` is the sentence as plain text."""
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
    """Return findings in the order of their severity."""
    order = list(Severity)
    return sorted(found, key=lambda finding: order.index(finding.severity))
