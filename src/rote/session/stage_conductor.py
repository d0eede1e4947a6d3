"""The state machine of a stage conductor: a section begins on all agents together, or not at all.

No I/O and no clock: messages and the time go in, events come out. Its state, which is published
repeatedly, tells the agents what to do.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from rote.session.stage_agent import MAX_BOUND_S, AgentPhase
from rote.wire.stage import AgentState, ConductorState, Run, StartReport, Stop

AGENT_LOST_S = 1.0
"""An agent whose beat does not change for this many seconds is lost."""
LOAD_S = 20.0
"""Time limit for all agents to load and check a section."""
LEAD_S = 3.0
"""Minimum time between arming a section and its start."""
ARMING_S = 2.0
"""Time that all agents have for arming, before the first robot moves."""
BARRIER_S = 1.0
"""How long before the start, or before the first robot moves, all agents must be ready."""
MARGIN_S = 0.3
"""Time between the barrier and the first robot's move, for the commit to arrive."""
CONFIRM_S = 1.0
"""Agents that have not confirmed a stop after this time are reported."""


class ConductorPhase(StrEnum):
    """What a conductor is doing."""

    IDLE = "idle"
    LOADING = "loading"
    ARMING = "arming"
    COMMITTED = "committed"
    RUNNING = "running"
    STOPPED = "stopped"
    """Until a person resets it."""


# ---- events -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SectionRefused:
    """A section does not begin."""

    run: str
    section: str
    reason: str
    agents: tuple[str, ...] = ()
    """The agents concerned."""
    lost: tuple[str, ...] = ()
    """The agents that were lost after it had begun."""


@dataclass(frozen=True, slots=True)
class SectionCommitted:
    """All agents are ready: the section begins at `start_s`."""

    run: str
    section: str
    start_s: float


@dataclass(frozen=True, slots=True)
class SectionEnded:
    """A section is over."""

    run: str
    section: str
    reports: Mapping[str, StartReport | None]
    lost: tuple[str, ...] = ()
    """The agents that were lost in it."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Why agents that took part failed in it, by name."""


@dataclass(frozen=True, slots=True)
class AgentLost:
    """An agent is silent or has disconnected."""

    name: str


@dataclass(frozen=True, slots=True)
class AgentFound:
    """An agent is there, for the first time or again."""

    name: str


@dataclass(frozen=True, slots=True)
class StopBegan:
    """A stop of all agents began."""

    stop: Stop


@dataclass(frozen=True, slots=True)
class StopConfirmed:
    """All agents have stopped."""

    stop: str
    after_s: float


@dataclass(frozen=True, slots=True)
class StopUnconfirmed:
    """These agents have not confirmed a stop: a person must use their remotes."""

    stop: str
    agents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComputerSuspended:
    """The conductor's computer was suspended, and has resumed."""

    seconds: float


ConductorEvent = (
    ComputerSuspended
    | SectionRefused
    | SectionCommitted
    | SectionEnded
    | AgentLost
    | AgentFound
    | StopBegan
    | StopConfirmed
    | StopUnconfirmed
)


@dataclass(slots=True)
class _SeenAgent:
    """What is known of one agent."""

    state: AgentState
    beat_s: float
    """When its beat last changed."""
    gone: bool = False
    """Whether its session with the network has ended."""
    old_epochs: list[str] = field(default_factory=list)


class ConductorSession:
    """The state machine of a conductor."""

    def __init__(self, epoch: str, new_id: Callable[[], str]) -> None:
        self.phase = ConductorPhase.IDLE
        self._state = ConductorState(epoch, 0)
        self._new_id = new_id
        self._agents: dict[str, _SeenAgent] = {}
        self._lost: set[str] = set()
        self._deadline_s = 0.0
        self._stop_on_loss = True
        self._lost_in_run: set[str] = set()
        """The agents of the run that were lost in it."""
        self._stopped_at_s: float | None = None
        """When the unconfirmed stop was requested."""
        self._unconfirmed_reported = False
        self.confirmed_s: float | None = None
        """After how long all agents had confirmed the stop that holds; None if not all have."""

    # ---- commands -----------------------------------------------------------------------

    def play(
        self, section: str, scores: Mapping[str, str], now_s: float, *, stop_on_loss: bool = True
    ) -> list[ConductorEvent]:
        """Begin a section with these agents, each with the hash of its score."""
        run = Run(self._new_id(), section, dict(scores))
        if self._state.stop is not None:
            return [_section_refused(run, "a stop holds; reset it first")]
        if self._state.run is not None:
            return [_section_refused(run, f"the section {self._state.run.section!r} is under way")]
        absent = tuple(sorted(name for name in scores if not self.alive(name, now_s)))
        if absent:
            return [_section_refused(run, "not all robots are connected", absent)]
        self._stop_on_loss, self._lost_in_run = stop_on_loss, set()
        self._update_state(run=run)
        self.phase, self._deadline_s = ConductorPhase.LOADING, now_s + LOAD_S
        return []

    def cancel(self, reason: str) -> list[ConductorEvent]:
        """End the section: agents that have not begun do not begin; moving robots stop softly."""
        run = self._state.run
        if run is None:
            return []
        self._update_state(run=None)
        if self.phase is not ConductorPhase.STOPPED:
            self.phase = ConductorPhase.IDLE
        return [replace(_section_refused(run, reason), lost=tuple(sorted(self._lost_in_run)))]

    def stop(self, by: str, now_s: float) -> tuple[Stop, list[ConductorEvent]]:
        """Stop all agents. Always possible; each call is a new stop, even while another holds."""
        stop = Stop(self._new_id(), by)
        return stop, self.adopt(stop, now_s)

    def adopt(self, stop: Stop, now_s: float) -> list[ConductorEvent]:
        """Adopt a stop that was requested elsewhere."""
        if self._state.stop is not None and self._state.stop.id == stop.id:
            return []
        events = self.cancel(f"stopped by {stop.by}" if stop.by else "stopped")
        self._update_state(stop=stop)
        self.phase, self._stopped_at_s, self._unconfirmed_reported = (
            ConductorPhase.STOPPED,
            now_s,
            False,
        )
        self.confirmed_s = None
        return [StopBegan(stop), *events]

    def reset(self) -> bool:
        """Clear the stop for all agents; False if none holds."""
        if self._state.stop is None:
            return False
        self._update_state(reset=self._state.stop.id, stop=None)
        self.phase, self._stopped_at_s = ConductorPhase.IDLE, None
        return True

    def resume(self, suspended_s: float) -> list[ConductorEvent]:
        """Process a suspend of this computer: its clock stood still meanwhile.

        A section that was under way is cancelled. A new epoch makes the agents forget what they
        know of this clock.
        """
        self._update_state(epoch=self._new_id())
        reason = f"the conductor's computer was suspended for {suspended_s:.1f} s"
        return [ComputerSuspended(suspended_s), *self.cancel(reason)]

    def stall(self, stalled_s: float, now_s: float) -> list[ConductorEvent]:
        """Process a stall of this process: it neither sent nor received meanwhile.

        The agents have stopped, so a section that was under way is cancelled. Their silence is
        judged from now on.
        """
        for seen in self._agents.values():
            seen.beat_s = now_s
        return self.cancel(
            f"the conductor was held up for {stalled_s:.1f} s, so its agents have stopped"
        )

    # ---- input --------------------------------------------------------------------------

    def on_agent_states(self, *state: AgentState, now_s: float) -> list[ConductorEvent]:
        """Process states of agents; an older or duplicate message is ignored."""
        events = [event for each in state for event in self._on_agent_state(each, now_s)]
        return events + self._advance(now_s)

    def _on_agent_state(self, state: AgentState, now_s: float) -> list[ConductorEvent]:
        seen = self._agents.get(state.name)
        if seen is None:
            self._agents[state.name] = seen = _SeenAgent(state, now_s)
        elif state.epoch != seen.state.epoch:
            if state.epoch in seen.old_epochs:
                return []
            seen.old_epochs.append(seen.state.epoch)
            del seen.old_epochs[:-64]
        elif state.beat <= seen.state.beat:
            return []
        seen.state, seen.beat_s, seen.gone = state, now_s, False
        events: list[ConductorEvent] = []
        if state.name in self._lost or state.beat <= 1:
            self._lost.discard(state.name)
            events.append(AgentFound(state.name))
        return events + self._adopt_latched(state, now_s)

    def on_agent_gone(self, name: str, now_s: float) -> list[ConductorEvent]:
        """Process the end of an agent's network session."""
        if name in self._agents:
            self._agents[name].gone = True
        return self._advance(now_s)

    def tick(self, now_s: float) -> list[ConductorEvent]:
        """Process the passing of time."""
        return self._advance(now_s)

    def _adopt_latched(self, state: AgentState, now_s: float) -> list[ConductorEvent]:
        """Adopt a stop that an agent has held since before this conductor started."""
        holds = state.phase == AgentPhase.STOPPED and state.stopped
        if holds and self._state.stop is None and state.stopped != self._state.reset:
            return self.adopt(Stop(state.stopped, "an earlier stop"), now_s)
        return []

    # ---- output ---------------------------------------------------------------------------

    def state(self) -> ConductorState:
        """Return what to publish now, under a new number."""
        self._state = replace(self._state, number=self._state.number + 1)
        return self._state

    @property
    def current(self) -> ConductorState:
        """The newest state, as it was published or will be."""
        return self._state

    def alive(self, name: str, now_s: float) -> bool:
        """Whether an agent is connected and its loop works."""
        seen = self._agents.get(name)
        return seen is not None and not seen.gone and now_s - seen.beat_s <= AGENT_LOST_S

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """The agents that have not confirmed the stop that holds; empty if none holds."""
        stop = self._state.stop
        if stop is None:
            return ()
        return tuple(
            sorted(name for name, seen in self._agents.items() if seen.state.stopped != stop.id)
        )

    @property
    def agents(self) -> Mapping[str, AgentState]:
        """The newest state of every agent ever seen."""
        return {name: seen.state for name, seen in self._agents.items()}

    # ---- inside ---------------------------------------------------------------------------------

    def _update_state(self, **changes: object) -> None:
        self._state = replace(self._state, **changes)  # type: ignore[arg-type]

    def _advance(self, now_s: float) -> list[ConductorEvent]:
        events: list[ConductorEvent] = []
        for name in self._agents:
            if name not in self._lost and not self.alive(name, now_s):
                self._lost.add(name)
                events.append(AgentLost(name))
        events += self._check_stop(now_s)
        if self._state.run is None:
            return events
        check_phase = {
            ConductorPhase.LOADING: self._check_loading,
            ConductorPhase.ARMING: self._check_arming,
            ConductorPhase.COMMITTED: self._check_committed,
            ConductorPhase.RUNNING: self._check_running,
        }.get(self.phase)
        return events if check_phase is None else events + check_phase(self._state.run, now_s)

    def _check_stop(self, now_s: float) -> list[ConductorEvent]:
        stop = self._state.stop
        if stop is None or self._stopped_at_s is None:
            return []
        open_ones = self.unconfirmed
        after_s = now_s - self._stopped_at_s
        if not open_ones:
            self._stopped_at_s, self.confirmed_s = None, after_s
            return [StopConfirmed(stop.id, after_s)]
        if after_s > CONFIRM_S and not self._unconfirmed_reported:
            self._unconfirmed_reported = True
            return [StopUnconfirmed(stop.id, open_ones)]
        return []

    def _refuse_if_failed(self, run: Run, now_s: float) -> list[ConductorEvent]:
        """Cancel a run if one of its agents cannot play it, or was lost."""
        for name, score in run.scores.items():
            state = self._agents[name].state
            if state.fault and state.fault_of in (run.id, score):
                return self._refuse_run(run, state.fault, (name,))
            if not self.alive(name, now_s):
                return self._refuse_run(run, "it is lost", (name,))
            if state.done == run.id:
                return self._refuse_run(run, state.fault or "it has given up", (name,))
        return []

    def _refuse_run(
        self, run: Run, reason: str, agents: tuple[str, ...] = ()
    ) -> list[ConductorEvent]:
        self._update_state(run=None)
        self.phase = ConductorPhase.IDLE
        return [_section_refused(run, reason, agents)]

    def _check_loading(self, run: Run, now_s: float) -> list[ConductorEvent]:
        if trouble := self._refuse_if_failed(run, now_s):
            return trouble
        missing = tuple(
            sorted(n for n, score in run.scores.items() if self._agents[n].state.loaded != score)
        )
        if missing and now_s > self._deadline_s:
            return self._refuse_run(run, f"not loaded within {LOAD_S:.0f} s", missing)
        if not missing:
            leads_s = (self._agents[name].state.lead_s for name in run.scores)
            ahead_s = max(LEAD_S, ARMING_S + MARGIN_S + max(leads_s, default=0.0))
            self._update_state(run=replace(run, start_s=now_s + ahead_s))
            self.phase = ConductorPhase.ARMING
        return []

    def _check_arming(self, run: Run, now_s: float) -> list[ConductorEvent]:
        if trouble := self._refuse_if_failed(run, now_s):
            return trouble
        assert run.start_s is not None
        states = {name: self._agents[name].state for name in run.scores}
        missing = tuple(sorted(name for name in states if states[name].armed != run.id))
        lead_s = max((state.lead_s for state in states.values()), default=0.0)
        barrier_s = run.start_s - max(BARRIER_S, lead_s + MARGIN_S)
        if now_s > barrier_s:
            return self._refuse_run(run, _why_late(states, missing, lead_s), missing)
        if not missing:
            self._update_state(run=replace(run, committed=True))
            self.phase = ConductorPhase.COMMITTED
            return [SectionCommitted(run.id, run.section, run.start_s)]
        return []

    def _check_committed(self, run: Run, now_s: float) -> list[ConductorEvent]:
        assert run.start_s is not None
        # An agent whose clock is a little ahead may be done with a short section already.
        if now_s >= run.start_s - MAX_BOUND_S:
            self.phase = ConductorPhase.RUNNING
            return self._check_running(run, now_s)
        return self._refuse_if_failed(run, now_s)

    def _check_running(self, run: Run, now_s: float) -> list[ConductorEvent]:
        open_ones = []
        for name in run.scores:
            state = self._agents[name].state
            if run.id in (state.done, state.fault_of):
                continue
            if name not in self._lost_in_run and (
                not self.alive(name, now_s) or state.phase == AgentPhase.IDLE
            ):
                self._lost_in_run.add(name)
                if self._stop_on_loss:
                    return self.stop(f"the loss of {name}", now_s)[1]
            if name not in self._lost_in_run:
                open_ones.append(name)
        if open_ones:
            return []
        self._update_state(run=None)
        self.phase = ConductorPhase.IDLE
        return [
            SectionEnded(
                run.id,
                run.section,
                {name: self._report_of(name, run.id) for name in run.scores},
                tuple(sorted(self._lost_in_run)),
                {name: why for name in run.scores if (why := self._why_incomplete(name, run.id))},
            )
        ]

    def _why_incomplete(self, name: str, run: str) -> str:
        state, report = self._agents[name].state, self._report_of(name, run)
        if state.fault_of == run:
            return state.fault
        return "" if report is None else report.reason

    def _report_of(self, name: str, run: str) -> StartReport | None:
        report = self._agents[name].state.report
        return report if report is not None and report.run == run else None


def _why_late(states: Mapping[str, AgentState], missing: tuple[str, ...], lead_s: float) -> str:
    faults = {states[name].fault for name in missing} - {""}
    if faults:
        return "; ".join(sorted(faults))
    return "not ready in time" if missing else f"a robot needs {lead_s:.1f} s to its first pose"


def _section_refused(run: Run, reason: str, agents: tuple[str, ...] = ()) -> SectionRefused:
    return SectionRefused(run.id, run.section, reason, agents)
