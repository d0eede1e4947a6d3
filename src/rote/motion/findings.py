"""What a check of a track can say: findings with joint, moment, number, limit and remedy."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rote.errors import UnsafeMotionError, WarnedMotionError

__all__ = ["CheckReport", "Finding", "Kind", "Severity"]


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """Do not play this."""
    WARNING = "warning"
    """A person should look at it first."""
    NOTE = "note"
    """What was not looked at, or what a player does by itself."""


class Kind(StrEnum):
    """What a finding is about."""

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
    TORQUE = "torque"
    THERMAL = "thermal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to know about a track before it is played."""

    severity: Severity
    kind: Kind
    words: str
    """All of it in a sentence."""
    remedy: str
    """What to do next."""
    joint: str | None = None
    """None where no single joint is meant."""
    time_s: float | None = None
    """On the clock of the track; None where it is about all of it."""
    value: float | None = None
    limit: float | None = None
    margin: float | None = None
    """How much is left to the limit; below 0 it is exceeded by so much."""

    def as_json(self) -> dict[str, Any]:
        """Return what `rote motion check --json` prints of it."""
        return {
            "severity": str(self.severity),
            "kind": str(self.kind),
            "joint": self.joint,
            "time_s": self.time_s,
            "value": self.value,
            "limit": self.limit,
            "margin": self.margin,
            "remedy": self.remedy,
            "words": self.words,
        }


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All findings, the worst first."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing forbids to play it; there may be warnings."""
        return not self.errors

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What forbids to play it."""
        return self._of(Severity.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What a person should look at first."""
        return self._of(Severity.WARNING)

    def permit(self, *, force: bool = False) -> None:
        """Raise `UnsafeMotionError` for what forbids to play it.

        A mere warning raises `WarnedMotionError`, unless forced. This is where it is decided, for
        the command line, the page and the API alike. Nothing forces errors.
        """
        for finding in self.errors or (() if force else self.warnings):
            kind, remedy = UnsafeMotionError, finding.remedy
            if not self.errors:
                kind, remedy = WarnedMotionError, f"{remedy} Or play it all the same, with --force."
            raise kind(finding.joint or "the motion", finding.time_s or 0.0, finding.words, remedy)

    def _of(self, severity: Severity) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity is severity)

    def as_json(self) -> dict[str, Any]:
        """Return what `rote motion check --json` prints."""
        return {"ok": self.ok, "findings": [finding.as_json() for finding in self.findings]}
