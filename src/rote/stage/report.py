"""The report of a show: start offsets of the robots, late cues and lost robots."""

import asyncio
import datetime
import statistics
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from rote.errors import RoteError
from rote.platform.loop import to_the_end
from rote.session.stage_events import (
    ConductorEvent,
    SectionCommitted,
    StopBegan,
    StopConfirmed,
    StopUnconfirmed,
)
from rote.stage.conductor import Conductor, SectionError
from rote.wire.stage import StartReport

LATE_S = 0.05
"""A robot or a cue that is later than this is listed as late."""


class CueReport(NamedTuple):
    """The result of one cue."""

    by: str
    """The robot, or "" for the conductor's computer."""
    cue: str
    late_s: float | None
    """Its lateness in seconds; None if it failed."""

    @property
    def late(self) -> bool:
        """Whether it was too late, or failed."""
        return self.late_s is None or self.late_s > LATE_S

    def as_json(self) -> dict[str, Any]:
        """Return the cue as JSON data."""
        late_ms = _to_ms(self.late_s)
        return {"cue": self.cue, "by": self.by or None, "late_ms": late_ms, "late": self.late}


@dataclass(frozen=True, slots=True)
class SectionReport:
    """One section that was played."""

    name: str
    robots: Mapping[str, StartReport | None]
    cues: tuple[tuple[str, float | None], ...] = ()
    """The conductor's own cues, each with how late it was; None if it failed."""
    lost: tuple[str, ...] = ()
    """The robots whose agents were lost in it: their results are unknown."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Why robots did not complete it, by name, as far as their agents reported a reason."""
    left_out: tuple[str, ...] = ()
    """The robots that took no part: they were muted, or lost before it and the show allows that."""

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The robots that did not complete it, or whose agents did not report that they did."""
        names = {
            name for name, report in self.robots.items() if report is None or not report.completed
        }
        return tuple(sorted(names.union(self.lost)))

    @property
    def starts_s(self) -> list[float]:
        """The lateness of each robot that moved, in seconds."""
        reports = [report for report in self.robots.values() if report is not None]
        return [report.skew_s for report in reports if report.skew_s is not None]

    @property
    def skews_s(self) -> list[float]:
        """The distance of each robot's start from the median start."""
        starts_s = self.starts_s
        median_s = statistics.median(starts_s) if starts_s else 0.0
        return [abs(each - median_s) for each in starts_s]

    @property
    def late(self) -> tuple[str, ...]:
        """The robots and cues that began too late."""
        robots = [
            name
            for name, each in self.robots.items()
            if each is not None and each.skew_s is not None and each.skew_s > LATE_S
        ]
        cues = [each.cue for each in self.all_cues if each.late]
        return (*sorted(robots), *cues)

    @property
    def all_cues(self) -> tuple[CueReport, ...]:
        """The cues of the conductor and of all robots."""
        sources = [("", self.cues)]
        sources += [(name, each.cues) for name, each in self.robots.items() if each is not None]
        return tuple(CueReport(source, *cue) for source, cues in sources for cue in cues)

    def as_json(self) -> dict[str, Any]:
        """Return the section as JSON data."""
        skews_s = self.skews_s
        return {
            "name": self.name,
            "skew_ms": {
                "p50": round(1000 * statistics.median(skews_s), 3) if skews_s else None,
                "max": round(1000 * max(skews_s), 3) if skews_s else None,
            },
            "robots": {name: _encode_robot(each) for name, each in self.robots.items()},
            "cues": [each.as_json() for each in self.all_cues],
            "late": list(self.late),
            "lost": list(self.lost),
            "incomplete": list(self.incomplete),
            "faults": dict(self.faults),
            "left_out": list(self.left_out),
        }


@dataclass(slots=True)
class ShowReport:
    """The report of a show, or of the part of it that was played."""

    sections: list[SectionReport] = field(default_factory=list)
    stopped_within_s: float | None = None
    unconfirmed: tuple[str, ...] = ()
    ended: str = ""
    """Why it ended early; "" if it did not."""
    lost: tuple[str, ...] = ()
    """The robots whose agents were lost in the last section, if the show ended early."""
    stopped_by: str = ""
    """The origin of the last stop; "" if there was none."""
    show: str = ""
    run: str = ""
    """A unique id of the run."""
    began: str = ""
    """When the run began, as UTC in ISO 8601."""
    playing: str = ""
    """The section that plays, or that played when the show ended early."""
    interruptions: list[str] = field(default_factory=list)
    """Why sections were ended or refused before the show went on."""
    over: bool = True
    """False while it runs. It stays false if the conductor was killed."""

    @property
    def complete(self) -> bool:
        """Whether every robot played every section to its end, and confirmed a stop after it."""
        is_incomplete = bool(self.ended or self.interruptions) or any(
            each.incomplete for each in self.sections
        )
        return self.over and not is_incomplete and not self.unconfirmed

    def end_early(self, error: BaseException) -> None:
        """Record the error with which the show ended."""
        if isinstance(error, SectionError):
            self.ended, self.lost = str(error), error.lost
        elif isinstance(error, RoteError):
            self.ended = f"{error} {error.remedy}".strip()
        elif isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
            self.ended = f"stopped by {self.stopped_by}" if self.stopped_by else "stopped"
        else:
            self.ended = f"it failed with an internal error: {error!r:.300}"

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        stopped = self.stopped_within_s
        return {
            "show": self.show,
            "run": self.run,
            "began": self.began,
            "over": self.over,
            "sections": [section.as_json() for section in self.sections],
            "playing": self.playing,
            "stopped_by": self.stopped_by,
            "stopped_within_ms": None if stopped is None else round(1000 * stopped, 1),
            "unconfirmed": list(self.unconfirmed),
            "ended": self.ended,
            "interruptions": list(self.interruptions),
            "lost": list(self.lost),
        }


class ShowRecorder:
    """Keeps the report of a show while it runs, and saves it at each change.

    The first save is when the show begins, so that the saved report belongs to this run even if the
    conductor is killed. Use it as a context manager around the whole run.
    """

    def __init__(
        self,
        conductor: Conductor,
        show: str,
        save: Callable[[dict[str, Any]], Awaitable[None]],
        warn: Callable[[str], None],
    ) -> None:
        """`save` writes a report; if a save after the first fails, `warn` gets the reason."""
        self._conductor, self._save, self._warn = conductor, save, warn
        began = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self.report = ShowReport(show=show, run=uuid.uuid4().hex, began=began, over=False)
        self.fault = ""
        """Why the newest report is not saved; "" if it is."""
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._save(self.report.as_json())
        self._remove_listener = self._conductor.on_event(self._on_event)
        self._save_task = asyncio.create_task(self._save_changes())
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None:
            self.report.end_early(error)
            self._changed.set()
        await to_the_end(self._finish_report())

    def add(self, section: SectionReport) -> None:
        """Add a section that is over."""
        self.report.sections.append(section)
        self.report.playing = ""
        self._changed.set()

    def note_interruption(self, error: SectionError) -> None:
        """Record a section that was ended or refused, after which the show goes on."""
        self.report.interruptions.append(str(error))
        self.report.playing = ""
        self._changed.set()

    def _on_event(self, event: ConductorEvent) -> None:
        report = self.report
        if isinstance(event, SectionCommitted):
            report.playing = event.section
        elif isinstance(event, StopBegan):
            report.stopped_by = event.stop.by or "an unknown origin"
            self._note_stop(None, self._conductor.session.stops.unconfirmed)
        elif isinstance(event, StopConfirmed):
            self._note_stop(event.after_s, ())
        elif isinstance(event, StopUnconfirmed):
            self._note_stop(None, event.agents)
        else:
            return
        self._changed.set()

    def _note_stop(self, within_s: float | None, unconfirmed: tuple[str, ...]) -> None:
        self.report.stopped_within_s, self.report.unconfirmed = within_s, unconfirmed

    async def _finish_report(self) -> None:
        answer = await self._conductor.wait_for_stop_answer()
        self._remove_listener()
        if answer is not None:
            self._note_stop(answer.confirmed_s, answer.unconfirmed)
        self.report.over = True
        self._changed.set()
        await self._save_task

    async def _save_changes(self) -> None:
        """Save the report after each change, until the show is over."""
        is_over = False
        while not is_over:
            await self._changed.wait()
            self._changed.clear()
            is_over, fault_before = self.report.over, self.fault
            try:
                await self._save(self.report.as_json())
            except Exception as error:  # a failed save must not break the show or its stop
                self.fault = f"the report of this show cannot be saved: {error}"
                if self.fault != fault_before:
                    self._warn(self.fault)
            else:
                self.fault = ""


def _to_ms(value_s: float | None) -> float | None:
    return None if value_s is None else round(1000 * value_s, 3)


def _encode_robot(report: StartReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    return {
        "late_ms": _to_ms(report.skew_s),
        "resolution_ms": _to_ms(report.resolution_s),
        "lead_s": round(report.lead_s, 3),
        "completed": report.completed,
    }
