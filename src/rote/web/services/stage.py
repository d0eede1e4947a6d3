"""The stage for the page: GO starts a section on all robots, and STOP stops all robots."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

from rote.errors import RoteError
from rote.session.stage_agent import MAX_BOUND_S
from rote.session.stage_conductor import Standing
from rote.session.stage_events import ConductorEvent, SectionCommitted
from rote.stage.conductor import SectionError, StopAnswer
from rote.stage.cues import CueState, CueStatus, find_lamp
from rote.stage.leads import SOUND_LEAD
from rote.stage.report import ShowRecorder, ShowReport
from rote.stage.reset import find_obstacle
from rote.stage.show.check import CheckedShow
from rote.stage.show.file import (
    Cast,
    CueKind,
    Trigger,
    TriggerKind,
    describe_trigger,
    find_droppable,
)
from rote.stage.stage import Stage
from rote.transport.address import host_and_port
from rote.web.access.security import check_private
from rote.web.schemas import shows as s
from rote.web.server.problems import ProblemError, busy
from rote.web.services.events import Notify
from rote.web.services.shows import ShowService
from rote.web.services.stops import TOGETHER_S
from rote.wire.stage import AgentState

log = logging.getLogger("rote")

AGENTS_S = 5.0
"""Timeout after GO for robots that are missing."""
REHEARSAL_PACE = 0.5
ANSWER_S = 0.3
"""How long the answer to a stop waits for the stage; later confirmations are sent later."""
_END_S = 2.0
SOUNDS = "sounds"
"""The page's name of the offset of a robot's sounds, as on the command line."""


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
    how: Literal["show", "rehearsal", "lights"]
    checked: CheckedShow | None = None
    """What runs; None while it is being checked."""
    report: ShowReport = field(default_factory=ShowReport)
    start_s: float | None = None
    """When the newest section begins, or has begun."""
    interruption: str = ""
    """Why the last section was stopped or refused; "" once a section has begun again."""
    is_finished_early: bool = False
    """Whether the operator has ended it."""
    task: "asyncio.Task[None] | None" = None


class StageService:
    """Conducts shows for the page; without a stage it refuses them."""

    def __init__(
        self,
        stage: PendantStage | None,
        shows: ShowService,
        notify: Notify,
        check_freshness: Callable[[], None],
    ) -> None:
        """`check_freshness` raises if this server has just been stalled."""
        self._check_freshness = check_freshness
        self._pendant, self._shows, self._notify = stage, shows, notify
        self._loop = asyncio.get_running_loop()
        self._run: _PendantRun | None = None
        self._last: _PendantRun | None = None
        """The last run that has ended."""
        self._show_task: asyncio.Task[None] | None = None
        """Plays the newest show, until its report is saved."""
        self._stops = 0
        self._stopping: asyncio.Task[StopAnswer] | None = None
        self._stop_began_s = 0.0
        self._last_stop_id = ""
        """The id of the last active stop that `notice_foreign_stop` found; empty if none."""
        if stage is not None:
            stage.stage.conductor.on_event(self._on_conductor_event)

    @property
    def has_stage(self) -> bool:
        """Whether there is a stage."""
        return self._pendant is not None

    @property
    def is_running(self) -> bool:
        """Whether a section plays, or will begin without another GO, also while it is checked."""
        cues = self._cues
        if cues is None:
            return self._run is not None
        if cues.state is CueState.WAITING:
            return self._find_trigger(cues).on is not TriggerKind.GO
        return cues.state is not CueState.STOPPED

    @property
    def _cues(self) -> CueStatus | None:
        """The stage's own account of the running show; None before it begins, and after it."""
        return None if self._pendant is None or self._run is None else self._pendant.stage.cues

    # ---- GO -------------------------------------------------------------------------------------

    async def go(self, request: s.StageGo) -> None:
        """Begin a show with its first section, or continue with the next one.

        Raises `ProblemError` or a `RoteError` if that is refused; then nothing has begun.
        """
        pendant = self._require_stage()
        pendant.stage.conductor.require_conducting()
        pendant.stage.conductor.refuse_late_go()
        if pendant.stage.conductor.active_stop is not None:
            raise ProblemError(
                409,
                "stop-holds",
                "a stop is active on this stage",
                "Find out why, then release it.",
            )
        run, cues = self._run, self._cues
        if run is None:
            await self._begin_show(pendant, request)
            return
        may_go = cues is not None and cues.state in (CueState.WAITING, CueState.PAUSED)
        if cues is None or not may_go or run.show != request.show:
            raise busy(f"the show {run.show!r} is under way")
        if request.section not in (None, cues.section):
            raise ProblemError(
                409,
                "another-section",
                f"the next section is {cues.section!r} of {run.show!r}, not this one",
                "Check the next section, then press GO.",
            )
        pendant.stage.go()

    async def _begin_show(self, pendant: PendantStage, request: s.StageGo) -> None:
        run = self._run = _PendantRun(request.show, request.how)
        session = pendant.stage.conductor.session
        try:
            stops, endings = self._stops, session.endings
            if self._show_task is not None:
                await asyncio.wait({self._show_task})  # both write the same report file
            checked = await self._shows.load_playable(request)
            self._check_permitted(pendant, checked, request)
            await _check_osc_targets(checked)
            first = request.section or ""
            if first:
                checked.show.find_section(first)
            cast = Cast.parse({"cast": dict(request.cast)})
            await _wait_for_robots(pendant.stage, checked, cast)
            self._check_freshness()
            if (self._stops, session.endings) != (stops, endings):
                raise ProblemError(409, "stopped", "it was stopped before it began", "")
        except BaseException:
            self._run = None
            raise
        run.checked = checked
        pace = REHEARSAL_PACE if request.how == "rehearsal" else 1.0
        run.task = self._loop.create_task(
            self._run_show(pendant, run, checked, cast, pace, first, endings)
        )
        self._show_task = run.task

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
        warnings = checked.warnings
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
        first: str,
        endings: int,
    ) -> None:
        recorder = ShowRecorder(
            pendant.stage.conductor,
            run.show,
            lambda report: self._shows.save_report(run.show, report),
            self._notify,
        )
        run.report = report = recorder.report

        def on_interrupted(error: SectionError) -> None:
            recorder.note_interruption(error)
            if not run.is_finished_early:
                run.interruption = str(error)

        try:
            async with recorder:
                is_stopped = pendant.stage.conductor.session.endings != endings
                if is_stopped:
                    name = first or checked.show.sections[0].name
                    on_interrupted(SectionError(name, "it was stopped before it began"))
                try:
                    async for section in pendant.stage.sections(
                        checked,
                        cast,
                        pace=pace,
                        motion=run.how != "lights",
                        begun=not is_stopped,
                        selected=is_stopped,
                        files=self._shows.files,
                        first=first,
                        on_interrupted=on_interrupted,
                    ):
                        recorder.add(section)
                finally:
                    self._keep_report(run)
        except Exception as error:
            if not isinstance(error, RoteError | ProblemError):
                log.exception("the show %s failed", run.show)
            if not report.ended:  # the report could not be saved: nothing has begun
                report.end_early(error)
                self._notify(report.ended)
        finally:
            self._keep_report(run)

    def _keep_report(self, run: _PendantRun) -> None:
        """Keep the report of a run that ended; the next run may have begun meanwhile."""
        self._last = run
        if self._run is run:
            self._run = None

    def _on_conductor_event(self, event: ConductorEvent) -> None:
        if isinstance(event, SectionCommitted) and self._run is not None:
            self._run.start_s, self._run.interruption = event.start_s, ""
            self._run.is_finished_early = False  # another section was selected after all

    # ---- the cue list ---------------------------------------------------------------------------

    def control(self, request: s.ControlCues) -> None:
        """Carry out a command of the cue list. Raises `BadRequestError` if it is not possible."""
        stage, run = self._require_stage().stage, self._run
        robot, section = request.robot or "", request.section or ""
        commands: dict[s.CueVerb, Callable[[], None]] = {
            "back": stage.back,
            "skip": stage.skip,
            "jump": lambda: stage.jump(section),
            "pause": stage.pause,
            "resume": stage.resume,
            "mute": lambda: stage.mute(robot),
            "unmute": lambda: stage.mute(robot, muted=False),
            "finish": stage.finish,
        }
        if run is None and request.verb == "unmute":  # it takes part in the next show
            stage.muted.discard(robot)
            return
        cues = self._cues
        commands[request.verb]()
        ends = request.verb == "finish" or (request.verb == "skip" and cues and not cues.following)
        if run is not None and ends:
            run.is_finished_early = True

    def set_offset(self, robot: str, name: str, seconds: float | None) -> None:
        """Set how early an action or the sounds of a robot are requested; None to measure it."""
        lead = SOUND_LEAD if name == SOUNDS else name
        self._require_stage().stage.set_offset(robot, lead, seconds)

    # ---- STOP -----------------------------------------------------------------------------------

    def stop(self, by: str) -> "asyncio.Task[StopAnswer] | None":
        """Stop all robots on the stage at once, whatever else is pending.

        The task ends when all robots have confirmed, or it is known which have not. None without
        a stage.
        """
        if self._pendant is None:
            return None
        self._stops += 1
        now_s, pending_stop = self._loop.time(), self._stopping
        if (
            pending_stop is not None
            and not pending_stop.done()
            and now_s - self._stop_began_s < TOGETHER_S
        ):
            return pending_stop  # it was sent a moment ago
        self._stop_began_s = now_s
        self._stopping = self._loop.create_task(self._send_stop(self._pendant, by))
        return self._stopping

    async def _send_stop(self, pendant: PendantStage, by: str) -> StopAnswer:
        try:
            answer = await pendant.stage.stop(by)
        except Exception:
            message = "The STOP could not be sent to the stage: use the remotes!"
            self._notify(message, "stop-unconfirmed", safety=True)
            raise
        if answer.unconfirmed:
            names = ", ".join(answer.unconfirmed)
            self._notify(
                f"STOP was not confirmed by {names}: use the remote!",
                "stop-unconfirmed",
                safety=True,
            )
        return answer

    def reset(self, stop_id: str | None = None) -> None:
        """Reset the active stop. Raises `BadRequestError` if none is active.

        With `stop_id`, raises `ProblemError` if it is not the active one any more.
        """
        conductor = self._require_stage().stage.conductor
        active_stop = conductor.active_stop
        if active_stop is not None and stop_id not in (None, active_stop.id):
            raise ProblemError(
                409,
                "another-stop",
                "the STOP has changed meanwhile",
                "Look at the robots, then reset it.",
            )
        conductor.reset()

    def notice_foreign_stop(self) -> bool:
        """Return whether another program has stopped the stage since the last call."""
        if self._pendant is None:
            return False
        active_stop = self._pendant.stage.conductor.active_stop
        previous_id, self._last_stop_id = (
            self._last_stop_id,
            "" if active_stop is None else active_stop.id,
        )
        if active_stop is None or active_stop.id == previous_id:
            return False
        is_own = self._stopping is not None and self._loop.time() - self._stop_began_s < _END_S
        return not is_own

    async def close(self) -> None:
        """Stop a running show, and wait for the confirmations."""
        run = self._run
        if run is not None:
            task = self.stop("the end of the web UI")
            if task is not None:
                await asyncio.wait({task}, timeout=_END_S)
            if run.task is not None:
                run.task.cancel()
        if self._show_task is not None:
            await asyncio.wait({self._show_task}, timeout=_END_S)
        if self._stopping is not None and not self._stopping.done():
            await asyncio.wait({self._stopping}, timeout=_END_S)

    # ---- status ---------------------------------------------------------------------------------

    def document(self) -> s.StageNow:
        """Return everything that a page shows of the stage."""
        pendant = self._pendant
        if pendant is None:
            return {
                "there": False,
                "is_superseded": False,
                "name": "",
                "robots": [],
                "run": None,
                "stop": None,
                "last": None,
                "worst": None,
            }
        conductor, refused = pendant.stage.conductor, pendant.stage.refused
        names = sorted({*pendant.agents, *conductor.agents})
        active_stop = conductor.active_stop
        robots = [
            _describe_robot(
                name,
                conductor.agents.get(name),
                conductor.alive(name),
                refused.get(name),
                None if active_stop is None else active_stop.id,
                muted=name in pendant.stage.muted,
            )
            for name in names
        ]
        return {
            "there": True,
            "is_superseded": conductor.session.standing is Standing.SUPERSEDED,
            "name": pendant.name,
            "robots": robots,
            "run": None if self._run is None else self._describe_run(self._run),
            "stop": self._describe_stop(pendant, names),
            "last": None if self._last is None else _describe_last_run(self._last),
            "worst": _find_worst_state(robots),
        }

    def _describe_stop(self, pendant: PendantStage, names: Sequence[str]) -> s.StageStop | None:
        conductor = pendant.stage.conductor
        active_stop = conductor.active_stop
        if active_stop is None:
            return None
        return {
            "id": active_stop.id,
            "by": active_stop.by,
            "confirmed_ms": _to_ms(conductor.session.stops.confirmed_s),
            "unconfirmed": list(conductor.session.stops.unconfirmed),
            "obstacles": {
                name: find_obstacle(
                    conductor.agents.get(name), reachable=conductor.alive(name), stop=active_stop
                )
                for name in names
            },
        }

    def _find_trigger(self, cues: CueStatus) -> Trigger:
        """Return what the section waits for: after a jump or a stop GO, else its own trigger."""
        run = self._run
        if run is None or run.checked is None or cues.waits_for == describe_trigger(Trigger()):
            return Trigger()
        show = run.checked.show
        return show.sections[show.find_section(cues.section)].start

    def _describe_run(self, run: _PendantRun) -> s.ShowRunNow:
        cues = self._cues
        sections = () if run.checked is None else run.checked.show.sections
        if cues is None:
            state: s.RunState = "checking" if run.task is None else "ending"
            cues = CueStatus(CueState.STARTING, "", "", "", None, None, {})
        else:
            state = cues.state.value
        trigger = self._find_trigger(cues) if state == "waiting" else None
        elapsed_s, left_s = cues.elapsed_s, cues.left_s
        if elapsed_s is None and state == "starting" and run.start_s is not None:
            until_start_s = self._loop.time() - run.start_s
            elapsed_s = until_start_s if until_start_s < 0.0 else None  # else of another section
        return {
            "show": run.show,
            "how": run.how,
            "state": state,
            "section": cues.section,
            "next": cues.following,
            "sections": [section.name for section in sections],
            "waits": None if trigger is None else trigger.on.value,
            "detail": "" if trigger is None else _format_trigger_detail(trigger),
            "elapsed_s": None if elapsed_s is None else round(elapsed_s, 2),
            "left_s": None if left_s is None else round(left_s, 2),
            "duration_s": 0.0 if left_s is None else round((elapsed_s or 0.0) + left_s, 3),
            "interruption": run.interruption,
            "robots": list(cues.lamps),
        }

    def _require_stage(self) -> PendantStage:
        if self._pendant is None:
            raise ProblemError(
                409,
                "no-stage",
                "this server has no stage",
                "Start it with a stage; the Show screen explains how.",
            )
        return self._pendant


async def _wait_for_robots(stage: Stage, checked: CheckedShow, cast: Cast) -> None:
    """Wait for the robots of a show. Raises `SectionError` if one that it needs is missing."""
    robots = tuple(sorted(set(cast.robots.values()) - stage.muted))
    missing = await stage.conductor.wait_for_agents(robots, AGENTS_S)
    if needed := set(missing) - find_droppable(checked.show, cast):
        raise stage.make_absence_error(tuple(sorted(needed)))


async def _check_osc_targets(checked: CheckedShow) -> None:
    """Raise `BadRequestError` if a cue sends OSC to an address outside private networks."""
    cues = (cue for section in checked.show.sections for cue in section.cues)
    for target in sorted({cue.to for cue in cues if cue.kind is CueKind.OSC}):
        await check_private(host_and_port(target)[0])


def _needs_osc(checked: CheckedShow) -> bool:
    return any(
        section.start.on is TriggerKind.OSC or any(cue.kind is CueKind.OSC for cue in section.cues)
        for section in checked.show.sections
    )


def _format_trigger_detail(start: Trigger) -> str:
    """Return the delay, time, address or word that a section waits for; "" for GO."""
    return {
        TriggerKind.AFTER: f"{start.seconds:g} s",
        TriggerKind.AT: start.time,
        TriggerKind.OSC: start.address,
        TriggerKind.HEARD: start.word,
    }.get(start.on, "")


def _describe_last_run(run: _PendantRun) -> s.ShowEnded:
    """Return how the last show went, as the page shows it."""
    document = run.report.as_json()
    return {
        "show": document["show"],
        "run": document["run"],
        "ended": document["ended"],
        "finished_early": run.is_finished_early,
        "interruptions": document["interruptions"],
        "lost": document["lost"],
        "unconfirmed": document["unconfirmed"],
        "sections": [
            {
                "name": each["name"],
                "skew_ms": each["skew_ms"],
                "late": each["late"],
                "lost": each["lost"],
                "incomplete": each["incomplete"],
                "faults": each["faults"],
            }
            for each in document["sections"]
        ],
    }


def _to_ms(value_s: float | None) -> float | None:
    return round(1000 * value_s, 1) if value_s is not None and value_s < 1e3 else None


def _find_worst_state(robots: Sequence[s.StageRobot]) -> s.StageWorst:
    """Return the worst state of any robot, and which robots are in it."""
    states: dict[s.WorstState, Callable[[s.StageRobot], bool]] = {
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


def _describe_robot(
    name: str,
    state: AgentState | None,
    alive: bool,
    refusal: str | None,
    stop_id: str | None,
    *,
    muted: bool,
) -> s.StageRobot:
    """Return the page's data about a robot of the stage.

    `refusal` is why its agent cannot join; `stop_id` is the id of the active stop.
    """
    agent = state or AgentState(name, "", 0, phase="")
    return {
        "name": name,
        "reachable": alive,
        # The page shows unconfirmed stops by `stopped`, so there is no lamp UNCONFIRMED.
        "lamp": cast("s.LampNow", find_lamp(state, alive=alive, muted=muted).value),
        "muted": muted,
        "offsets": {
            SOUNDS if lead == SOUND_LEAD else lead: {"seconds": round(seconds, 3), "is_set": is_set}
            for lead, seconds, is_set in agent.leads
        },
        "ready": alive and agent.clock_bound_s < MAX_BOUND_S,
        "phase": agent.phase,
        "moving": alive and agent.moving,
        "stopped": None if stop_id is None else agent.stopped == stop_id,
        "clock_bound_ms": _to_ms(agent.clock_bound_s) if alive else None,
        "round_trip_ms": _to_ms(agent.round_trip_s) if alive else None,
        "battery_percent": agent.battery_percent,
        "robot": agent.robot,
        "build": agent.build,
        "fault": agent.fault if alive or not refusal else refusal,
        "faults": list(agent.facts),
    }
