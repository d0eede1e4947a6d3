"""How a show went: how far apart robots began, which cues were late, who was lost."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rote.wire.stage import StartReport

LATE_S = 0.05
"""A robot or a cue that is later than this is named."""


class CueReport(NamedTuple):
    """How one cue went."""

    by: str
    """The robot, or "" for the conductor's computer."""
    cue: str
    late_s: float | None
    """How much later than planned it was; None if it failed."""

    @property
    def late(self) -> bool:
        """Whether it was too late, or failed."""
        return self.late_s is None or self.late_s > LATE_S

    def as_json(self) -> dict[str, Any]:
        """Return the cue as JSON data."""
        late_ms = _ms(self.late_s)
        return {"cue": self.cue, "by": self.by or None, "late_ms": late_ms, "late": self.late}


@dataclass(frozen=True, slots=True)
class SectionReport:
    """One section that was played."""

    name: str
    robots: Mapping[str, StartReport | None]
    cues: tuple[tuple[str, float | None], ...] = ()
    """The conductor's own cues, each with how late it was; None if it failed."""
    lost: tuple[str, ...] = ()
    """The robots whose agents were lost in it: nobody knows how it went there."""

    @property
    def starts_s(self) -> list[float]:
        """How much later than planned each robot that moved began."""
        known = [each for each in self.robots.values() if each is not None]
        return [each.skew_s for each in known if each.skew_s is not None]

    @property
    def skews_s(self) -> list[float]:
        """How far each robot's start was from the middle one's."""
        starts_s = self.starts_s
        middle_s = statistics.median(starts_s) if starts_s else 0.0
        return [abs(each - middle_s) for each in starts_s]

    @property
    def late(self) -> tuple[str, ...]:
        """What began too late."""
        robots = [
            name
            for name, each in self.robots.items()
            if each is not None and each.skew_s is not None and each.skew_s > LATE_S
        ]
        cues = [each.cue for each in self.all_cues if each.late]
        return (*sorted(robots), *cues)

    @property
    def all_cues(self) -> tuple[CueReport, ...]:
        """The cues of everybody."""
        parts = [("", self.cues)]
        parts += [(name, each.cues) for name, each in self.robots.items() if each is not None]
        return tuple(CueReport(by, *cue) for by, cues in parts for cue in cues)

    def as_json(self) -> dict[str, Any]:
        """Return the section as JSON data."""
        skews_s = self.skews_s
        return {
            "name": self.name,
            "skew_ms": {
                "p50": round(1000 * statistics.median(skews_s), 3) if skews_s else None,
                "max": round(1000 * max(skews_s), 3) if skews_s else None,
            },
            "robots": {name: _robot(each) for name, each in self.robots.items()},
            "cues": [each.as_json() for each in self.all_cues],
            "late": list(self.late),
            "lost": list(self.lost),
        }


@dataclass(slots=True)
class ShowReport:
    """A whole show, or as much of it as was played."""

    sections: list[SectionReport] = field(default_factory=list)
    stopped_within_s: float | None = None
    unconfirmed: tuple[str, ...] = ()
    ended: str = ""
    """Why it ended early; "" if it did not."""
    lost: tuple[str, ...] = ()
    """The robots whose agents were lost in the section with which it ended early."""

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        stopped = self.stopped_within_s
        return {
            "sections": [section.as_json() for section in self.sections],
            "stopped_within_ms": None if stopped is None else round(1000 * stopped, 1),
            "unconfirmed": list(self.unconfirmed),
            "ended": self.ended,
            "lost": list(self.lost),
        }


def _ms(value_s: float | None) -> float | None:
    return None if value_s is None else round(1000 * value_s, 3)


def _robot(report: StartReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    return {
        "late_ms": _ms(report.skew_s),
        "resolution_ms": _ms(report.resolution_s),
        "lead_s": round(report.lead_s, 3),
        "completed": report.completed,
    }
