"""The result of a check of a track, and whether it may be played."""

from dataclasses import dataclass
from typing import Any

from rote.errors import UnsafeMotionError, WarnedMotionError
from rote.findings import Finding, Severity
from rote.model.family import Family
from rote.text import Act, Text

__all__ = ["CheckReport"]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All findings of a check, the worst first."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing forbids playing it; there may be warnings."""
        return not self.errors

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that forbid playing it."""
        return self._select_severity(Severity.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that a person should inspect before playing it."""
        return self._select_severity(Severity.WARNING)

    def needs_force(self, family: Family | None = None) -> bool:
        """Whether a robot of this family plays it only if a person overrides the warnings.

        An A1, whose motors rote drives itself, plays despite warnings. An unknown robot does not.
        """
        return bool(self.warnings) and (family is None or family.keeps_actions)

    def permit(self, family: Family | None = None, *, force: bool = False) -> None:
        """Raise `UnsafeMotionError` if something forbids playing it on a robot of this family.

        If there are only warnings, raise `WarnedMotionError` if they need `force` and it is not
        given. Errors cannot be overridden. The command line, the page, the bridges, the agents of a
        show and the API all decide here.
        """
        overridden = force or not self.needs_force(family)
        for finding in self.errors or (() if overridden else self.warnings):
            kind, remedy = UnsafeMotionError, finding.remedy
            if not self.errors:
                kind = WarnedMotionError
                remedy = Text(
                    "{first} Or play it anyway, with {force}.",
                    first=finding.remedy,
                    force=Act.FORCE,
                )
            raise kind(
                finding.joint or "the motion", finding.time_s or 0.0, finding.message, remedy
            )

    def _select_severity(self, severity: Severity) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity is severity)

    def as_json(self) -> dict[str, Any]:
        """Return what `rote motion check --json` prints."""
        return {"ok": self.ok, "findings": [finding.as_json() for finding in self.findings]}
