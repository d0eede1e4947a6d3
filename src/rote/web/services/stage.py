"""The stage for the page: GO starts a section on all robots, and STOP stops all robots."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rote.errors import RoteError
from rote.findings import Severity
from rote.session.stage_agent import MAX_BOUND_S
from rote.session.stage_conductor import ConductorEvent, SectionCommitted
from rote.stage.conductor import StopAnswer
from rote.stage.report import ShowRecorder, ShowReport
from rote.stage.show.check import CheckedShow
from rote.stage.show.file import Cast, CueKind, Section, Trigger, TriggerKind
from rote.stage.stage import Stage
from rote.transport.udp.link import host_and_port
from rote.web.access.security import check_private
from rote.web.schemas import shows as s
from rote.web.server.problems import ProblemError, busy
from rote.web.services.events import Notify
from rote.web.services.shows import ShowService
from rote.web.services.stops import TOGETHER_S
from rote.wire.stage import AgentState

log = logging.getLogger("rote")

GATHER_S = 5.0
"""Timeout after GO for robots that are missing."""
REHEARSAL_PACE = 0.5
ANSWER_S = 0.3
"""How long the answer to a stop waits for the stage; later confirmations are sent later."""
_END_S = 2.0


class PendantStage(NamedTuple):
    """A stage that this server conducts."""

    stage: Stage
    name: str
    agents: tuple[str, ...] = ()
    """The invited agents, which are listed even before they join."""
    osc_open: bool = False
    """Whether a port for OSC is open; without one a show with OSC is refused."""


@dataclass(slots=True, eq=False)
class _PendantRun:
    """A show that is under way."""

    show: str
    how: str
    rounds: tuple[Section, ...] = ()
    """Its sections, each as many times as it is looped."""
    lengths_s: Mapping[str, float] = field(default_factory=dict)
    report: ShowReport = field(default_factory=ShowReport)
    went: int = -1
    """Number of finished sections at the last GO."""
    start_s: float | None = None
    """When the section that plays begins, or has begun."""
    task: "asyncio.Task[None] | None" = None

    @property
    def section(self) -> Section | None:
        """The section that plays, or the next one."""
        over = len(self.report.sections)
        return self.rounds[over] if over < len(self.rounds) else None


class StageService:
    """Conducts shows for the page. Without a stage it only reports that there is none."""

    def __init__(self, stage: PendantStage | None, shows: ShowService, notify: Notify) -> None:
        self._pendant, self._shows, self._notify = stage, shows, notify
        self._loop = asyncio.get_running_loop()
        self._run: _PendantRun | None = None
        self._last: ShowReport | None = None
        self._performing: asyncio.Task[None] | None = None
        """Plays the newest show, until its report is saved."""
        self._stops = 0
        self._answer: StopAnswer | None = None
        self._stopping: asyncio.Task[StopAnswer] | None = None
        self._stop_began_s = 0.0
        self._seen_stop = ""
        """The stop that was seen last, by its id."""
        if stage is not None:
            stage.stage.conductor.on_event(self._on_conductor_event)

    @property
    def has_stage(self) -> bool:
        """Whether there is a stage."""
        return self._pendant is not None

    @property
    def is_running(self) -> bool:
        """Whether a section plays, or will begin without another GO."""
        run = self._run
        if run is None:
            return False
        state, section = self._run_state(run), run.section
        waits_for_go = section is not None and section.start.on is TriggerKind.GO
        return state in ("starting", "playing") or (state == "waiting" and not waits_for_go)

    # ---- GO -------------------------------------------------------------------------------------

    async def go(self, request: s.StageGo) -> None:
        """Begin a show with its first section, or go on with the next one.

        Raises `ProblemError` or a `RoteError` if that is refused; then nothing has begun.
        """
        pendant = self._need_stage()
        if pendant.stage.conductor.session.current.stop is not None:
            raise ProblemError(
                409,
                "stop-holds",
                "a stop is active on this stage",
                "Find out why, then release it.",
            )
        if self._run is None:
            await self._begin_show(pendant, request)
            return
        run = self._run
        if self._run_state(run) != "waiting" or run.section is None:
            raise busy(f"the show {run.show!r} is under way")
        if run.show != request.show or request.section not in (None, run.section.name):
            raise ProblemError(
                409,
                "another-section",
                f"the section {run.section.name!r} of {run.show!r} is next, and not this one",
                "Check the next section, then press GO.",
            )
        run.went = len(run.report.sections)
        pendant.stage.go()

    async def _begin_show(self, pendant: PendantStage, request: s.StageGo) -> None:
        run = self._run = _PendantRun(request.show, request.how)
        try:
            stops = self._stops
            if self._performing is not None:
                await asyncio.wait({self._performing})  # its report has the same file
            checked = await self._shows.load_playable(request)
            self._check_permitted(pendant, checked, request)
            await _check_osc_targets(checked)
            cast = Cast.parse({"cast": dict(request.cast)})
            robots = tuple(sorted(set(cast.robots.values())))
            if missing := await pendant.stage.conductor.wait_for_agents(robots, GATHER_S):
                raise pendant.stage.absence(missing)
            if self._stops != stops:
                raise ProblemError(409, "stopped", "it was stopped before it began", "")
        except BaseException:
            self._run = None
            raise
        run.rounds = tuple(
            section for section in checked.show.sections for _ in range(section.loop)
        )
        pace = REHEARSAL_PACE if request.how == "rehearsal" else 1.0
        for (name, _role), score in checked.scores.items():
            known_s = dict(run.lengths_s).get(name, 0.0)
            run.lengths_s = {**run.lengths_s, name: max(known_s, score.duration_s / pace)}
        run.went = 0
        run.task = self._loop.create_task(self._run_show(pendant, run, checked, cast, pace))
        self._performing = run.task

    def _check_permitted(
        self, pendant: PendantStage, checked: CheckedShow, request: s.StageGo
    ) -> None:
        checked.require()
        if not checked.show.sections:
            raise ProblemError(409, "empty-show", "the show has no sections", "Add one.")
        if not pendant.osc_open and _needs_osc(checked):
            raise ProblemError(
                409,
                "no-osc",
                "the show sends or waits for OSC messages, and no port for them is open",
                "Start the server with a port for OSC.",
            )
        warnings = [f for f in checked.findings if f.finding.severity is Severity.WARNING]
        if warnings and not request.force:
            first = warnings[0]
            raise ProblemError(
                409,
                "warned-show",
                f"{first.location}: {first.finding.message} ({len(warnings)} warnings in all)",
                "Read the warnings, then decide.",
            )

    async def _run_show(
        self,
        pendant: PendantStage,
        run: _PendantRun,
        checked: CheckedShow,
        cast: Cast,
        pace: float,
    ) -> None:
        recorder = ShowRecorder(
            pendant.stage.conductor,
            run.show,
            lambda report: self._shows.save_report(run.show, report),
            self._notify,
        )
        run.report = report = recorder.report
        try:
            async with recorder:
                try:
                    async for section in pendant.stage.sections(
                        checked,
                        cast,
                        pace=pace,
                        motion=run.how != "lights",
                        begun=True,
                        files=self._shows.files,
                    ):
                        recorder.add(section)
                        run.start_s = None
                finally:
                    self._note_run_ended(run)
        except Exception as error:
            if not isinstance(error, RoteError | ProblemError):
                log.exception("the show %s failed", run.show)
            if not report.ended:  # the report could not be saved: nothing has begun
                report.end_early(error)
                self._notify(report.ended)
        finally:
            self._note_run_ended(run)

    def _note_run_ended(self, run: _PendantRun) -> None:
        """Note how a run ended; the next one may have been requested while its report was saved."""
        self._last = run.report
        if self._run is run:
            self._run = None

    def _on_conductor_event(self, event: ConductorEvent) -> None:
        if isinstance(event, SectionCommitted) and self._run is not None:
            self._run.start_s = event.start_s

    # ---- STOP -----------------------------------------------------------------------------------

    def stop(self, by: str) -> "asyncio.Task[StopAnswer] | None":
        """Stop all robots on the stage at once, whatever else is pending.

        The task ends when all robots have confirmed, or it is known which have not. None without
        a stage.
        """
        if self._pendant is None:
            return None
        self._stops += 1
        now_s, under_way = self._loop.time(), self._stopping
        if (
            under_way is not None
            and not under_way.done()
            and now_s - self._stop_began_s < TOGETHER_S
        ):
            return under_way  # it was sent a moment ago
        self._answer, self._stop_began_s = None, now_s
        # The stop is published before the show's own task is ended: tasks begin in this order.
        self._stopping = self._loop.create_task(self._stop_and_note(self._pendant, by))
        self._end_run()
        return self._stopping

    async def _stop_and_note(self, pendant: PendantStage, by: str) -> StopAnswer:
        try:
            answer = await pendant.stage.stop(by)
        except Exception:
            message = "The STOP could not be sent to the stage: use the remotes!"
            self._notify(message, "stop-unconfirmed", safety=True)
            raise
        self._answer = answer
        if answer.unconfirmed:
            names = ", ".join(answer.unconfirmed)
            self._notify(
                f"STOP was not confirmed by {names}: use the remote!",
                "stop-unconfirmed",
                safety=True,
            )
        return answer

    def _end_run(self) -> None:
        """End a running show; the stop itself stops its robots."""
        run = self._run
        if run is not None and run.task is not None and not run.task.done():
            run.task.cancel()

    def reset(self) -> None:
        """Release a stop. Raises `BadRequestError` if none holds."""
        self._need_stage().stage.reset()
        self._answer = None

    def notice_foreign_stop(self) -> bool:
        """End a running show if the stage was stopped; return whether it was by another program."""
        if self._pendant is None:
            return False
        holds = self._pendant.stage.conductor.session.current.stop
        seen, self._seen_stop = self._seen_stop, "" if holds is None else holds.id
        if holds is None or holds.id == seen:
            return False
        self._end_run()
        own = self._stopping is not None and self._loop.time() - self._stop_began_s < _END_S
        return not own

    async def close(self) -> None:
        """Stop a running show, and wait for the confirmations."""
        run = self._run
        if run is not None:
            task = self.stop("the end of the web UI")
            if task is not None:
                await asyncio.wait({task}, timeout=_END_S)
            if run.task is not None:
                run.task.cancel()
        if self._performing is not None:
            await asyncio.wait({self._performing}, timeout=_END_S)
        if self._stopping is not None and not self._stopping.done():
            await asyncio.wait({self._stopping}, timeout=_END_S)

    # ---- status ---------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """Return everything that a page shows of the stage."""
        pendant = self._pendant
        if pendant is None:
            return {
                "there": False,
                "name": "",
                "robots": [],
                "run": None,
                "stop": None,
                "last": None,
                "worst": None,
            }
        conductor, refused = pendant.stage.conductor, pendant.stage.refused
        names = sorted({*pendant.agents, *conductor.agents})
        holds = conductor.session.current.stop
        robots = [
            _robot_document(
                name,
                conductor.agents.get(name),
                conductor.alive(name),
                refused.get(name),
                None if holds is None else holds.id,
            )
            for name in names
        ]
        return {
            "there": True,
            "name": pendant.name,
            "robots": robots,
            "run": None if self._run is None else self._run_document(self._run),
            "stop": self._stop_document(pendant),
            "last": None if self._last is None else _describe_last_run(self._last),
            "worst": _worst_state(robots),
        }

    def _stop_document(self, pendant: PendantStage) -> dict[str, Any] | None:
        conductor = pendant.stage.conductor
        holds = conductor.session.current.stop
        if holds is None:
            return None
        confirmed_s = None if self._answer is None else self._answer.confirmed_s
        missing = [name for name, each in conductor.agents.items() if each.stopped != holds.id]
        return {
            "by": holds.by,
            "confirmed_ms": _to_ms(confirmed_s),
            "unconfirmed": sorted(missing),
        }

    def _run_state(self, run: _PendantRun) -> str:
        assert self._pendant is not None
        if not run.rounds:
            return "checking"
        if self._pendant.stage.conductor.session.current.run is not None:
            return "playing"
        over = len(run.report.sections)
        looped = 0 < over < len(run.rounds) and run.rounds[over] is run.rounds[over - 1]
        return "starting" if run.went == over or looped or run.section is None else "waiting"

    def _run_document(self, run: _PendantRun) -> dict[str, Any]:
        section, state = run.section, self._run_state(run)
        start = Trigger() if section is None else section.start
        waits = state == "waiting"
        elapsed_s = None if run.start_s is None else round(self._loop.time() - run.start_s, 2)
        name = "" if section is None else section.name
        return {
            "show": run.show,
            "how": run.how,
            "state": state,
            "section": name,
            "waits": start.on.value if waits else None,
            "detail": _trigger_detail(start) if waits else "",
            "elapsed_s": elapsed_s,
            "duration_s": round(run.lengths_s.get(name, 0.0), 3),
        }

    def _need_stage(self) -> PendantStage:
        if self._pendant is None:
            raise ProblemError(
                409,
                "no-stage",
                "this server conducts no stage",
                "Start it with a stage; the Show screen explains how.",
            )
        return self._pendant


async def _check_osc_targets(checked: CheckedShow) -> None:
    """Raise `BadRequestError` if a cue sends OSC to an address outside private networks."""
    cues = (cue for section in checked.show.sections for cue in section.cues)
    for to in sorted({cue.to for cue in cues if cue.kind is CueKind.OSC}):
        await check_private(host_and_port(to)[0])


def _needs_osc(checked: CheckedShow) -> bool:
    return any(
        section.start.on is TriggerKind.OSC or any(cue.kind is CueKind.OSC for cue in section.cues)
        for section in checked.show.sections
    )


def _trigger_detail(start: Trigger) -> str:
    return {
        TriggerKind.AFTER: f"{start.seconds:g} s",
        TriggerKind.AT: start.time,
        TriggerKind.OSC: start.address,
        TriggerKind.HEARD: start.word,
    }.get(start.on, "")


def _describe_last_run(report: ShowReport) -> dict[str, Any]:
    """Return how the last show went, as the page shows it."""
    document = report.as_json()
    names = ("name", "skew_ms", "late", "lost", "incomplete", "faults")
    return {
        **{name: document[name] for name in ("show", "run", "ended", "lost", "unconfirmed")},
        "sections": [{name: each[name] for name in names} for each in document["sections"]],
    }


def _to_ms(value_s: float | None) -> float | None:
    return round(1000 * value_s, 1) if value_s is not None and value_s < 1e3 else None


def _worst_state(robots: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the worst state of any robot, and which robots are in it."""
    states: dict[str, Callable[[Mapping[str, Any]], bool]] = {
        "stop-unconfirmed": lambda robot: robot["stopped"] is False,
        "fault": lambda robot: bool(robot["fault"]),
        "lost": lambda robot: not robot["reachable"],
        "moving": lambda robot: robot["moving"],
        "stopped": lambda robot: robot["stopped"] is True,
    }
    for state, is_in in states.items():
        if names := [robot["name"] for robot in robots if is_in(robot)]:
            return {"state": state, "robots": names}
    return {"state": "rest", "robots": [robot["name"] for robot in robots]}


def _robot_document(
    name: str, state: AgentState | None, alive: bool, refused: str | None, stop_id: str | None
) -> dict[str, Any]:
    """Return a robot of the stage as the page shows it; `stop_id` is that of an active stop."""
    seen = state or AgentState(name, "", 0, phase="")
    return {
        "name": name,
        "reachable": alive,
        "ready": alive and seen.clock_bound_s < MAX_BOUND_S,
        "phase": seen.phase,
        "moving": alive and seen.moving,
        "stopped": None if stop_id is None else seen.stopped == stop_id,
        "clock_bound_ms": _to_ms(seen.clock_bound_s) if alive else None,
        "round_trip_ms": _to_ms(seen.round_trip_s) if alive else None,
        "battery_percent": seen.battery_percent,
        "robot": seen.robot,
        "build": seen.build,
        "fault": seen.fault if alive or not refused else refused,
        "faults": list(seen.facts),
    }
