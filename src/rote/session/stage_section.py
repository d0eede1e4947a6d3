"""The section of a show that is under way, as a conductor requests it from its agents.

All agents load their scores, then arm; then the section is committed, and begins on all agents at
the same time. If one of them cannot, it begins on none.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import StrEnum

from rote.session.stage_agent import MAX_BOUND_S, AgentPhase
from rote.session.stage_events import ConductorEvent, SectionCommitted, SectionEnded, SectionRefused
from rote.session.stage_roster import AgentRoster
from rote.wire.stage import MAX_HOLDS, AgentState, Run, StartReport

LOAD_S = 20.0
"""Time limit for all agents to load and check a section."""
MIN_UNTIL_START_S = 3.0
"""Minimum time from the end of loading, when arming begins, to the start of a section."""
ARMING_S = 2.0
"""Time that all agents have for arming, before the first robot moves."""
BARRIER_S = 1.0
"""All agents must be ready this long before the section starts."""
MARGIN_S = 0.3
"""Time between the barrier and the first robot's move, for the commit to arrive."""
PAUSE_LEAD_S = 0.2
"""Time from a pause to its beginning, for the message to arrive."""
RESUME_LEAD_S = 0.5
"""The same for the end of a pause."""
SPEED_UP_S = 0.7
"""Time after a pause in which the robots speed up and cannot pause again."""


class SectionPhase(StrEnum):
    """What the section is doing."""

    NONE = "none"
    """No section is under way."""
    LOADING = "loading"
    ARMING = "arming"
    COMMITTED = "committed"
    RUNNING = "running"


class SectionRun:
    """The section that is under way: its run, which the agents follow, and its phase."""

    def __init__(self, agents: AgentRoster) -> None:
        self._agents = agents
        self.phase = SectionPhase.NONE
        self.run: Run | None = None
        """What is requested from the agents; None if no section is under way."""
        self._loading_deadline_s = 0.0
        self._stop_on_loss = True
        self._may_drop: frozenset[str] = frozenset()
        self._lost: set[str] = set()
        """The agents of the run that were lost in it."""

    # ---- commands -----------------------------------------------------------------------

    def begin(
        self, run: Run, now_s: float, *, stop_on_loss: bool, may_drop: Collection[str]
    ) -> list[ConductorEvent]:
        """Let the agents of a run load it; return the refusal if one of them is not connected."""
        if self.run is not None:
            return [make_refusal(run, f"the section {self.run.section!r} is under way")]
        absent = sorted(name for name in run.scores if not self._agents.is_alive(name, now_s))
        if absent:
            return [make_refusal(run, "not all robots are connected", tuple(absent))]
        self._stop_on_loss, self._may_drop = stop_on_loss, frozenset(may_drop)
        self._lost = set()
        self.run = run
        self.phase, self._loading_deadline_s = SectionPhase.LOADING, now_s + LOAD_S
        return []

    def cancel(self, reason: str) -> list[ConductorEvent]:
        """End the section: agents that have not begun do not begin; moving robots stop softly.

        Return the event that reports the run, if there is one.
        """
        if self.run is None:
            return []
        refusal = make_refusal(self.run, reason)
        self._clear_run()
        return [replace(refusal, lost=tuple(sorted(self._lost)))]

    def pause(self, now_s: float) -> tuple[str, tuple[str, ...]]:
        """Pause the section that plays: all robots slow down together and hold their poses.

        Return the reason for a refusal and the agents that cause it; ("", ()) if it is accepted.
        """
        run = self.run
        if run is None or self.phase is not SectionPhase.RUNNING:
            return "no section is playing", ()
        if self.is_paused:
            return "it is paused already", ()
        if run.holds and now_s < (run.holds[-1][1] or now_s) + SPEED_UP_S:
            return "the robots are still speeding up after the last pause", ()
        if len(run.holds) >= MAX_HOLDS:
            return f"it was paused {MAX_HOLDS} times already", ()
        unable = [name for name in self._find_unfinished(run) if not self._agents[name].pausable]
        if unable:
            reason = "a robot is moving to its first pose, or plays a stored action"
            return reason, tuple(sorted(unable))
        self.run = replace(run, holds=(*run.holds, (now_s + PAUSE_LEAD_S, None)))
        return "", ()

    def resume(self, now_s: float) -> tuple[str, tuple[str, ...]]:
        """Let a paused section go on, once all robots hold their poses.

        Return the reason for a refusal and the agents that cause it; ("", ()) if it is accepted.
        """
        run = self.run
        if run is None or not self.is_paused:
            return "it is not paused", ()
        not_held = self.not_held
        if not_held:
            return "a robot does not hold its pose", not_held
        begin_s, _ = run.holds[-1]
        self.run = replace(run, holds=(*run.holds[:-1], (begin_s, now_s + RESUME_LEAD_S)))
        return "", ()

    def leave_out(self, name: str) -> bool:
        """Take an agent out of the section: it does not begin, or stops softly; the others go on.

        Return False if it takes no part.
        """
        run = self.run
        if run is None or name not in run.scores:
            return False
        scores = {each: score for each, score in run.scores.items() if each != name}
        self.run = replace(run, scores=scores)
        return True

    # ---- what it is doing -----------------------------------------------------------------

    @property
    def is_paused(self) -> bool:
        """Whether the section is paused."""
        run = self.run
        return run is not None and bool(run.holds) and run.holds[-1][1] is None

    @property
    def not_held(self) -> tuple[str, ...]:
        """The agents of a paused section that do not hold their poses yet."""
        run = self.run
        if run is None or not self.is_paused:
            return ()
        newest = len(run.holds)
        unfinished = self._find_unfinished(run)
        return tuple(sorted(name for name in unfinished if self._agents[name].held != newest))

    def _find_unfinished(self, run: Run) -> list[str]:
        """Return the agents that are still playing a run."""
        return [
            name
            for name in run.scores
            if run.id not in (self._agents[name].done, self._agents[name].fault_of)
            and name not in self._lost
        ]

    # ---- steps ------------------------------------------------------------------------------

    def prepare(self, now_s: float) -> list[ConductorEvent]:
        """Take the next step towards the start once all agents are ready for it.

        Refuse the run if an agent is late, lost or fails.
        """
        if self.run is None or self.phase is SectionPhase.RUNNING:
            return []
        self._drop_lost_agents(self.run, now_s)
        check_phase = {
            SectionPhase.LOADING: self._check_loading,
            SectionPhase.ARMING: self._check_arming,
            SectionPhase.COMMITTED: self._check_committed,
        }[self.phase]
        return check_phase(self.run, now_s)

    def find_fatal_loss(self, now_s: float) -> str:
        """Return the lost agent without which the playing section must stop; "" if none.

        After the loss of any other agent the section goes on without it.
        """
        if self.run is None or self.phase is not SectionPhase.RUNNING:
            return ""
        for name in self._find_unfinished(self.run):
            is_idle = self._agents[name].phase == AgentPhase.IDLE
            if is_idle or not self._agents.is_alive(name, now_s):
                self._lost.add(name)
                if self._stop_on_loss and name not in self._may_drop:
                    return name
        return ""

    def end_if_done(self) -> list[ConductorEvent]:
        """End the playing section once all remaining agents are done; return its report."""
        run = self.run
        if run is None or self.phase is not SectionPhase.RUNNING or self._find_unfinished(run):
            return []
        self._clear_run()
        return [
            SectionEnded(
                run.id,
                run.section,
                {name: self._find_report(name, run.id) for name in run.scores},
                tuple(sorted(self._lost)),
                {
                    name: reason
                    for name in run.scores
                    if (reason := self._explain_incomplete(name, run.id))
                },
            )
        ]

    def _clear_run(self) -> None:
        self.run, self.phase = None, SectionPhase.NONE

    def _refuse_run(
        self, run: Run, reason: str, agents: tuple[str, ...] = ()
    ) -> list[ConductorEvent]:
        self._clear_run()
        return [make_refusal(run, reason, agents)]

    def _drop_lost_agents(self, run: Run, now_s: float) -> None:
        """Take lost agents out of the run if the section can begin without them."""
        for name in self._may_drop & run.scores.keys():
            if not self._agents.is_alive(name, now_s):
                self._lost.add(name)
                self.leave_out(name)

    def _refuse_if_failed(self, run: Run, now_s: float) -> list[ConductorEvent]:
        """Cancel a run if one of its agents cannot play it, or was lost."""
        for name, score in run.scores.items():
            state = self._agents[name]
            if state.fault and state.fault_of in (run.id, score):
                return self._refuse_run(run, state.fault, (name,))
            if not self._agents.is_alive(name, now_s):
                return self._refuse_run(run, "it is lost", (name,))
            if state.done == run.id:
                return self._refuse_run(run, state.fault or "it ended the run", (name,))
        return []

    def _check_loading(self, run: Run, now_s: float) -> list[ConductorEvent]:
        """Set the start time once all scores are loaded; refuse the run if an agent is late."""
        if refusal := self._refuse_if_failed(run, now_s):
            return refusal
        states = {name: self._agents[name] for name in run.scores}
        missing = sorted(name for name in states if states[name].loaded != run.scores[name])
        if missing and now_s > self._loading_deadline_s:
            return self._refuse_run(run, f"not loaded within {LOAD_S:.0f} s", tuple(missing))
        if not missing:
            # Before the start, all agents arm, the commit arrives, and the slowest robot moves to
            # its first pose.
            lead_s = max((state.lead_s for state in states.values()), default=0.0)
            until_start_s = max(MIN_UNTIL_START_S, ARMING_S + MARGIN_S + lead_s)
            self.run = replace(run, start_s=now_s + until_start_s)
            self.phase = SectionPhase.ARMING
        return []

    def _check_arming(self, run: Run, now_s: float) -> list[ConductorEvent]:
        """Commit the run once all agents are armed; refuse it if an agent is late."""
        if refusal := self._refuse_if_failed(run, now_s):
            return refusal
        assert run.start_s is not None
        states = {name: self._agents[name] for name in run.scores}
        missing = tuple(sorted(name for name in states if states[name].armed != run.id))
        lead_s = max((state.lead_s for state in states.values()), default=0.0)
        barrier_s = run.start_s - max(BARRIER_S, lead_s + MARGIN_S)
        if now_s > barrier_s:
            return self._refuse_run(run, _explain_lateness(states, missing, lead_s), missing)
        if not missing:
            self.run = replace(run, committed=True)
            self.phase = SectionPhase.COMMITTED
            return [SectionCommitted(run.id, run.section, run.start_s)]
        return []

    def _check_committed(self, run: Run, now_s: float) -> list[ConductorEvent]:
        """Enter RUNNING at the start time; until then, refuse the run if an agent fails."""
        assert run.start_s is not None
        # An agent whose clock is a little ahead may be done with a short section already.
        if now_s >= run.start_s - MAX_BOUND_S:
            self.phase = SectionPhase.RUNNING
            return []
        return self._refuse_if_failed(run, now_s)

    def _explain_incomplete(self, name: str, run: str) -> str:
        """Return why an agent did not complete a run; "" if it did, or reported no reason."""
        state, report = self._agents[name], self._find_report(name, run)
        if state.fault_of == run:
            return state.fault
        return "" if report is None else report.reason

    def _find_report(self, name: str, run: str) -> StartReport | None:
        report = self._agents[name].report
        return report if report is not None and report.run == run else None


def make_refusal(run: Run, reason: str, agents: tuple[str, ...] = ()) -> SectionRefused:
    """Return the event of a run that does not begin."""
    return SectionRefused(run.id, run.section, reason, agents)


def _explain_lateness(
    states: Mapping[str, AgentState], missing: tuple[str, ...], lead_s: float
) -> str:
    """Return why not all agents were ready in time."""
    faults = {states[name].fault for name in missing} - {""}
    if faults:
        return "; ".join(sorted(faults))
    if missing:
        return "not ready in time"
    return f"a robot needs {lead_s:.1f} s to reach its first pose"
