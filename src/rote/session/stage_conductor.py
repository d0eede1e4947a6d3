"""The state machine of a stage conductor: a section begins on all agents together, or not at all.

No I/O and no clock: messages and the time go in, events come out. Its state, which is published
repeatedly, contains the requests to the agents.

Several conductors may run on one stage, but each agent obeys one: that with the highest rank which
the agent has received (`ConductorState.rank`). Only here is decided which conductor conducts:

- A new conductor waits until an agent is connected and none receives a conductor. Then it conducts,
  with a term above all terms that it has received. A standby waits also until the conductor that it
  has received is silent for `TAKEOVER_S`.
- A conductor that receives a higher rank, from that conductor or from an agent which obeys it, is
  superseded: it never conducts again.
- If an agent remembers a higher rank whose conductor is lost, the conductor raises its own term.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from rote.session.stage_agent import CONDUCTOR_LOST_S, MAX_BOUND_S, AgentPhase
from rote.session.stage_times import AGENT_LOST_S, CONFIRM_S
from rote.wire.stage import MAX_HOLDS, MAX_MUTED, AgentState, ConductorState, Run, StartReport, Stop

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


TAKEOVER_S = 2.5
"""Silence of the conductor after which a standby takes over. The agents have stopped by then, and
a standby that stalled itself for as long as it may has received nothing for 1.5 s."""


class Standing(StrEnum):
    """Whether agents obey a conductor."""

    WAITING = "waiting"
    """Not yet: another conductor may conduct, or no agent is connected."""
    CONDUCTING = "conducting"
    SUPERSEDED = "superseded"
    """Never again: another conductor has a higher rank."""


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
    """An agent has connected, for the first time or again."""

    name: str


@dataclass(frozen=True, slots=True)
class StopBegan:
    """A stop of all agents began."""

    stop: Stop


@dataclass(frozen=True, slots=True)
class StopConfirmed:
    """All agents have stopped; there is at least one."""

    stop: str
    after_s: float


@dataclass(frozen=True, slots=True)
class StopUnconfirmed:
    """These agents have not confirmed a stop: a person must use their remotes. Without any agent
    the stop is unconfirmed, too."""

    stop: str
    agents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComputerSuspended:
    """The conductor's computer was suspended, and has resumed."""

    seconds: float


@dataclass(frozen=True, slots=True)
class ConductorStalled:
    """This process neither sent nor received anything for so long that the agents have stopped."""

    seconds: float


@dataclass(frozen=True, slots=True)
class ConductingBegan:
    """The agents obey this conductor from now on."""

    term: int
    section: str = ""
    """Where the show of the lost conductor was interrupted; "" if there was none."""
    muted: tuple[str, ...] = ()
    """The robots that were muted in that show."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """Another conductor conducts: this one never does again."""

    term: int
    """The term of the other conductor."""


ConductorEvent = (
    ComputerSuspended
    | ConductorStalled
    | ConductingBegan
    | Superseded
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

    def __init__(self, epoch: str, new_id: Callable[[], str], *, standby: bool = False) -> None:
        """A `standby` conducts only after another conductor was received and lost."""
        self.phase = ConductorPhase.IDLE
        self.standing = Standing.WAITING
        self.is_standby = standby
        self._state = ConductorState(epoch, 0, term=0)
        self._first_epoch = epoch
        self._suspensions = 0
        self._new_id = new_id
        self.other: ConductorState | None = None
        """The newest state of the conductor that is obeyed instead of this one."""
        self._other_s: float | None = None
        """When that state arrived."""
        self._other_show: ConductorState | None = None
        """The newest state of the conductor that had a show: not of one that only reset a stop."""
        self._agents: dict[str, _SeenAgent] = {}
        self._lost: set[str] = set()
        self._loading_deadline_s = 0.0
        self._stop_on_loss = True
        self._may_drop: frozenset[str] = frozenset()
        self._lost_in_run: set[str] = set()
        """The agents of the run that were lost in it."""
        self._stopped_at_s: float | None = None
        """When the unconfirmed stop was requested."""
        self._own_stop = ""
        """The stop that was requested here last."""
        self._own_stop_holder = ""
        """The epoch of the conductor that was last received with that stop."""
        self._unconfirmed_reported = False
        self.endings = 0
        """Number of cancels and stops; a change ends the preparation of a section."""
        self.confirmed_s: float | None = None
        """Seconds until all agents had confirmed the active stop; None if not all have."""

    # ---- commands -----------------------------------------------------------------------

    def play(
        self,
        section: str,
        scores: Mapping[str, str],
        now_s: float,
        *,
        stop_on_loss: bool = True,
        may_drop: Collection[str] = (),
    ) -> list[ConductorEvent]:
        """Begin a section with these agents, each with the hash of its score.

        If one of `may_drop` is lost, the others begin or go on without it.
        """
        run = Run(self._new_id(), section, dict(scores))
        if self.refusal:
            return [_make_refusal(run, self.refusal)]
        if self._state.stop is not None:
            return [_make_refusal(run, "a stop is active; reset it first")]
        if self._state.run is not None:
            return [_make_refusal(run, f"the section {self._state.run.section!r} is under way")]
        absent = tuple(sorted(name for name in scores if not self.alive(name, now_s)))
        if absent:
            return [_make_refusal(run, "not all robots are connected", absent)]
        self._stop_on_loss, self._lost_in_run = stop_on_loss, set()
        self._may_drop = frozenset(may_drop)
        self._update_state(run=run)
        self.phase, self._loading_deadline_s = ConductorPhase.LOADING, now_s + LOAD_S
        return []

    def cancel(self, reason: str) -> list[ConductorEvent]:
        """End the section: agents that have not begun do not begin; moving robots stop softly.

        A section that is still being packed does not begin either: see `endings`. Return the event
        that reports the run, if there is one.
        """
        self.endings += 1
        run = self._state.run
        if run is None:
            return []
        self._update_state(run=None)
        if self.phase is not ConductorPhase.STOPPED:
            self.phase = ConductorPhase.IDLE
        return [replace(_make_refusal(run, reason), lost=tuple(sorted(self._lost_in_run)))]

    def pause(self, now_s: float) -> tuple[str, tuple[str, ...]]:
        """Pause the section that plays: all robots slow down together and hold their poses.

        Return the reason for a refusal and the agents that cause it; ("", ()) if it is accepted.
        """
        run = self._state.run
        if run is None or self.phase is not ConductorPhase.RUNNING:
            return "no section is playing", ()
        if self.is_paused:
            return "it is paused already", ()
        if run.holds and now_s < (run.holds[-1][1] or now_s) + SPEED_UP_S:
            return "the robots are still speeding up after the last pause", ()
        if len(run.holds) >= MAX_HOLDS:
            return f"it was paused {MAX_HOLDS} times already", ()
        unable = tuple(
            name for name in self._find_unfinished(run) if not self._agents[name].state.pausable
        )
        if unable:
            return "a robot is moving to its first pose, or plays a stored action", unable
        self._update_state(run=replace(run, holds=(*run.holds, (now_s + PAUSE_LEAD_S, None))))
        return "", ()

    def resume_section(self, now_s: float) -> tuple[str, tuple[str, ...]]:
        """Let a paused section go on, once all robots hold their poses.

        Return the reason for a refusal and the agents that cause it; ("", ()) if it is accepted.
        """
        run = self._state.run
        if run is None or not self.is_paused:
            return "it is not paused", ()
        not_held = self.not_held
        if not_held:
            return "a robot does not hold its pose", not_held
        begin_s, _ = run.holds[-1]
        end_s = now_s + RESUME_LEAD_S
        self._update_state(run=replace(run, holds=(*run.holds[:-1], (begin_s, end_s))))
        return "", ()

    @property
    def is_paused(self) -> bool:
        """Whether the section is paused."""
        run = self._state.run
        return run is not None and bool(run.holds) and run.holds[-1][1] is None

    @property
    def not_held(self) -> tuple[str, ...]:
        """The agents of a paused section that do not hold their poses yet."""
        run = self._state.run
        if run is None or not self.is_paused:
            return ()
        newest = len(run.holds)
        return tuple(
            name for name in self._find_unfinished(run) if self._agents[name].state.held != newest
        )

    def _find_unfinished(self, run: Run) -> list[str]:
        """Return the agents that are still playing a run."""
        return [
            name
            for name in sorted(run.scores)
            if run.id not in (self._agents[name].state.done, self._agents[name].state.fault_of)
            and name not in self._lost_in_run
        ]

    def leave_out(self, name: str) -> bool:
        """Take an agent out of the section: it does not begin, or stops softly; the others go on.

        Return False if it takes no part.
        """
        run = self._state.run
        if run is None or name not in run.scores:
            return False
        scores = {each: score for each, score in run.scores.items() if each != name}
        self._update_state(run=replace(run, scores=scores))
        return True

    def stop(self, by: str, now_s: float) -> tuple[Stop, list[ConductorEvent]]:
        """Stop all agents. Always possible; each call is a new stop, even if one is active."""
        stop = Stop(self._new_id(), by)
        self._own_stop = stop.id
        return stop, self.adopt(stop, now_s)

    def adopt(self, stop: Stop, now_s: float) -> list[ConductorEvent]:
        """Make a stop, requested here or elsewhere, the active one for all agents.

        A stop that the user has reset is not adopted again: another program may repeat it.
        """
        is_active = self._state.stop is not None and self._state.stop.id == stop.id
        if is_active or stop.id == self._state.reset:
            return []
        own = self.find_stop_to_repeat(now_s)
        if own is not None and own.id > stop.id:  # so of two that are repeated one remains
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
        """Clear the stop for all agents; return False if none is active."""
        if self._state.stop is None:
            return False
        self._update_state(reset=self._state.stop.id, stop=None)
        self.phase, self._stopped_at_s = ConductorPhase.IDLE, None
        return True

    def resume(self, suspended_s: float) -> list[ConductorEvent]:
        """Process that this computer was suspended: its clock stood still.

        A section in progress is cancelled. A new epoch makes the agents forget this clock's offset.
        It ranks above the old one, but not above another conductor's of the same term.
        """
        self._suspensions += 1
        self._update_state(epoch=f"{self._first_epoch}.{self._suspensions:06}")
        reason = f"the conductor's computer was suspended for {suspended_s:.1f} s"
        return [ComputerSuspended(suspended_s), *self.cancel(reason)]

    def stall(self, stalled_s: float, now_s: float) -> list[ConductorEvent]:
        """Process that this process stalled: it neither sent nor received anything.

        The agents have stopped, so a section in progress is cancelled. Time limits for messages
        start again.
        """
        for agent in self._agents.values():
            agent.beat_s = now_s
        if self._other_s is not None:
            self._other_s = now_s
        reason = f"the conductor stalled for {stalled_s:.1f} s, so its agents have stopped"
        return [ConductorStalled(stalled_s), *self.cancel(reason)]

    # ---- input --------------------------------------------------------------------------

    def on_agent_states(self, *state: AgentState, now_s: float) -> list[ConductorEvent]:
        """Process states of agents; an older or duplicate message is ignored."""
        events = [event for each in state for event in self._on_agent_state(each, now_s)]
        return events + self._advance(now_s)

    def _on_agent_state(self, state: AgentState, now_s: float) -> list[ConductorEvent]:
        agent = self._agents.get(state.name)
        if agent is None:
            self._agents[state.name] = agent = _SeenAgent(state, now_s)
        elif state.epoch != agent.state.epoch:
            if state.epoch in agent.old_epochs:
                return []
            agent.old_epochs.append(agent.state.epoch)
            del agent.old_epochs[:-64]
        elif state.beat <= agent.state.beat:
            return []
        agent.state, agent.beat_s, agent.gone = state, now_s, False
        events: list[ConductorEvent] = []
        if state.name in self._lost or state.beat <= 1:
            self._lost.discard(state.name)
            events.append(AgentFound(state.name))
        return events + self._compare_rank(state) + self._adopt_latched(state, now_s)

    def on_conductor_state(self, state: ConductorState, now_s: float) -> list[ConductorEvent]:
        """Process a state of another conductor; an older or duplicate message is ignored."""
        if state.epoch == self._state.epoch or state.term < 1:
            return []
        if state.rank < self._state.rank:  # it will receive our rank; until then its stop is valid
            return [] if state.stop is None else self.adopt(state.stop, now_s)
        events = [] if self._waits_for_loss else self._supersede(state.term)
        other = self.other
        if other is None or (state.rank, state.number) > (other.rank, other.number):
            self.other, self._other_s = state, now_s
            show = self._other_show
            is_same = show is not None and show.epoch == state.epoch
            if is_same or state.section or state.muted or state.run is not None:
                self._other_show = state
            events += self._copy_stop(state, now_s)
        return events

    def on_agent_gone(self, name: str, now_s: float) -> list[ConductorEvent]:
        """Process the end of an agent's network session."""
        if name in self._agents:
            self._agents[name].gone = True
        return self._advance(now_s)

    def tick(self, now_s: float) -> list[ConductorEvent]:
        """Process the passing of time."""
        return self._advance(now_s)

    @property
    def _waits_for_loss(self) -> bool:
        """Whether it is a standby that has not taken over."""
        return self.is_standby and self.standing is Standing.WAITING

    @property
    def refusal(self) -> str:
        """Why no section can be begun here; "" if this conductor may conduct."""
        if self.standing is Standing.SUPERSEDED:
            return "another conductor has taken over"
        return "this is the standby of another conductor" if self._waits_for_loss else ""

    def find_stop_to_repeat(self, now_s: float) -> Stop | None:
        """Return the stop to send again while this conductor does not conduct; None if none.

        Only a stop that was requested here, and only until the conductor that is obeyed was
        received with it: confirmed or not, agents that are started later learn it only from there.
        """
        stop, other = self._state.stop, self.other
        if stop is None or stop.id != self._own_stop or self.standing is Standing.CONDUCTING:
            return None
        is_held = other is not None and other.epoch == self._own_stop_holder
        return None if is_held and not self.is_other_silent(now_s) else stop

    def is_other_silent(self, now_s: float) -> bool:
        """Whether another conductor was received and is lost."""
        return self._other_s is not None and now_s - self._other_s > CONDUCTOR_LOST_S

    def _supersede(self, term: int) -> list[ConductorEvent]:
        """Stop conducting for good: another conductor has a higher rank."""
        if self.standing is Standing.SUPERSEDED:
            return []
        self.standing = Standing.SUPERSEDED
        return [Superseded(term), *self.cancel("another conductor has taken over")]

    def _compare_rank(self, state: AgentState) -> list[ConductorEvent]:
        """Step down if an agent obeys a higher rank; raise the term if that conductor is lost."""
        if self.standing is not Standing.CONDUCTING or state.rank <= self._state.rank:
            return []
        if state.conducted:
            return self._supersede(state.term)
        self._update_state(term=state.term + 1)
        return []

    def _begin_conducting(self, now_s: float) -> list[ConductorEvent]:
        """Conduct if no other conductor does, as far as messages arrive here."""
        other = self.other
        if self._waits_for_loss and (
            other is None or self._other_s is None or now_s - self._other_s <= TAKEOVER_S
        ):
            return []
        alive = [agent.state for name, agent in self._agents.items() if self.alive(name, now_s)]
        if not alive or any(state.conducted for state in alive):
            return []
        terms = [agent.state.term for agent in self._agents.values()]
        terms += [] if other is None else [other.term]
        self._update_state(term=1 + max(terms))
        self.standing = Standing.CONDUCTING
        show = self._other_show
        if show is None:
            return [ConductingBegan(self._state.term)]
        section = show.section or ("" if show.run is None else show.run.section)
        return [ConductingBegan(self._state.term, section, show.muted)]

    def _copy_stop(self, state: ConductorState, now_s: float) -> list[ConductorEvent]:
        """Adopt the stop of the conductor that is obeyed, or its reset of our stop."""
        if state.stop is not None and state.stop.id == self._own_stop:
            self._own_stop_holder = state.epoch
        if self._state.stop is not None and self._state.stop.id == state.reset:
            self.reset()
        if state.stop is not None:
            is_replaced = self.find_stop_to_repeat(now_s) is None
            return self.adopt(state.stop, now_s) if is_replaced else []
        self._update_state(reset=state.reset)
        return []

    def _adopt_latched(self, state: AgentState, now_s: float) -> list[ConductorEvent]:
        """Adopt the stop of an agent that was stopped before this conductor started."""
        is_stopped = state.phase == AgentPhase.STOPPED and state.stopped
        if is_stopped and self._state.stop is None and state.stopped != self._state.reset:
            return self.adopt(Stop(state.stopped, "an earlier stop"), now_s)
        return []

    # ---- output ---------------------------------------------------------------------------

    def show_section(self, section: str, muted: Collection[str]) -> None:
        """Publish the position of the cue list, for a standby that takes over."""
        self._update_state(section=section, muted=tuple(sorted(muted))[:MAX_MUTED])

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
        agent = self._agents.get(name)
        return agent is not None and not agent.gone and now_s - agent.beat_s <= AGENT_LOST_S

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """The agents that have not confirmed the active stop; empty if none is active."""
        stop = self._state.stop
        if stop is None:
            return ()
        return tuple(
            sorted(name for name, agent in self._agents.items() if agent.state.stopped != stop.id)
        )

    @property
    def agents(self) -> Mapping[str, AgentState]:
        """The newest state of every agent ever seen."""
        return {name: agent.state for name, agent in self._agents.items()}

    # ---- inside ---------------------------------------------------------------------------------

    def _update_state(self, **changes: object) -> None:
        self._state = replace(self._state, **changes)  # type: ignore[arg-type]

    def _advance(self, now_s: float) -> list[ConductorEvent]:
        """Detect lost agents and the next step of the stop or section; return the events."""
        events: list[ConductorEvent] = []
        for name in self._agents:
            if name not in self._lost and not self.alive(name, now_s):
                self._lost.add(name)
                events.append(AgentLost(name))
        events += self._check_stop(now_s)
        if self.standing is Standing.WAITING:
            events += self._begin_conducting(now_s)
        if self._state.run is None:
            return events
        if self.phase is not ConductorPhase.RUNNING:
            self._drop_lost_agents(self._state.run, now_s)
        check_phase = {
            ConductorPhase.LOADING: self._check_loading,
            ConductorPhase.ARMING: self._check_arming,
            ConductorPhase.COMMITTED: self._check_committed,
            ConductorPhase.RUNNING: self._check_running,
        }.get(self.phase)
        return events if check_phase is None else events + check_phase(self._state.run, now_s)

    def _drop_lost_agents(self, run: Run, now_s: float) -> None:
        """Take lost agents out of the run if the section can begin without them."""
        for name in self._may_drop & run.scores.keys():
            if not self.alive(name, now_s):
                self._lost_in_run.add(name)
                self.leave_out(name)

    def _check_stop(self, now_s: float) -> list[ConductorEvent]:
        """Return an event once all agents have confirmed the stop, or once they are overdue."""
        stop = self._state.stop
        if stop is None or self._stopped_at_s is None:
            return []
        unconfirmed = self.unconfirmed
        after_s = now_s - self._stopped_at_s
        if self._agents and not unconfirmed:
            self._stopped_at_s, self.confirmed_s = None, after_s
            return [StopConfirmed(stop.id, after_s)]
        if after_s > CONFIRM_S and not self._unconfirmed_reported:
            self._unconfirmed_reported = True
            return [StopUnconfirmed(stop.id, unconfirmed)]
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
                return self._refuse_run(run, state.fault or "it ended the run", (name,))
        return []

    def _refuse_run(
        self, run: Run, reason: str, agents: tuple[str, ...] = ()
    ) -> list[ConductorEvent]:
        self._update_state(run=None)
        self.phase = ConductorPhase.IDLE
        return [_make_refusal(run, reason, agents)]

    def _check_loading(self, run: Run, now_s: float) -> list[ConductorEvent]:
        """Set the start time once all scores are loaded; refuse the run if an agent is late."""
        if refusal := self._refuse_if_failed(run, now_s):
            return refusal
        missing = tuple(
            sorted(
                name
                for name, score in run.scores.items()
                if self._agents[name].state.loaded != score
            )
        )
        if missing and now_s > self._loading_deadline_s:
            return self._refuse_run(run, f"not loaded within {LOAD_S:.0f} s", missing)
        if not missing:
            leads_s = (self._agents[name].state.lead_s for name in run.scores)
            # Before the start, all agents arm, the commit arrives, and the slowest robot moves to
            # its first pose.
            until_start_s = max(MIN_UNTIL_START_S, ARMING_S + MARGIN_S + max(leads_s, default=0.0))
            self._update_state(run=replace(run, start_s=now_s + until_start_s))
            self.phase = ConductorPhase.ARMING
        return []

    def _check_arming(self, run: Run, now_s: float) -> list[ConductorEvent]:
        """Commit the run once all agents are armed; refuse it if an agent is late."""
        if refusal := self._refuse_if_failed(run, now_s):
            return refusal
        assert run.start_s is not None
        states = {name: self._agents[name].state for name in run.scores}
        missing = tuple(sorted(name for name in states if states[name].armed != run.id))
        lead_s = max((state.lead_s for state in states.values()), default=0.0)
        barrier_s = run.start_s - max(BARRIER_S, lead_s + MARGIN_S)
        if now_s > barrier_s:
            return self._refuse_run(run, _explain_lateness(states, missing, lead_s), missing)
        if not missing:
            self._update_state(run=replace(run, committed=True))
            self.phase = ConductorPhase.COMMITTED
            return [SectionCommitted(run.id, run.section, run.start_s)]
        return []

    def _check_committed(self, run: Run, now_s: float) -> list[ConductorEvent]:
        """Enter RUNNING at the start time; until then, refuse the run if an agent fails."""
        assert run.start_s is not None
        # An agent whose clock is a little ahead may be done with a short section already.
        if now_s >= run.start_s - MAX_BOUND_S:
            self.phase = ConductorPhase.RUNNING
            return self._check_running(run, now_s)
        return self._refuse_if_failed(run, now_s)

    def _check_running(self, run: Run, now_s: float) -> list[ConductorEvent]:
        """Stop all if an agent was lost; end the section once all remaining agents are done."""
        unfinished = []
        for name in run.scores:
            state = self._agents[name].state
            if run.id in (state.done, state.fault_of):
                continue
            if name not in self._lost_in_run and (
                not self.alive(name, now_s) or state.phase == AgentPhase.IDLE
            ):
                self._lost_in_run.add(name)
                if self._stop_on_loss and name not in self._may_drop:
                    return self.stop(f"the loss of {name}", now_s)[1]
            if name not in self._lost_in_run:
                unfinished.append(name)
        if unfinished:
            return []
        self._update_state(run=None)
        self.phase = ConductorPhase.IDLE
        return [
            SectionEnded(
                run.id,
                run.section,
                {name: self._find_report(name, run.id) for name in run.scores},
                tuple(sorted(self._lost_in_run)),
                {
                    name: reason
                    for name in run.scores
                    if (reason := self._explain_incomplete(name, run.id))
                },
            )
        ]

    def _explain_incomplete(self, name: str, run: str) -> str:
        """Return why an agent did not complete a run; "" if it did, or reported no reason."""
        state, report = self._agents[name].state, self._find_report(name, run)
        if state.fault_of == run:
            return state.fault
        return "" if report is None else report.reason

    def _find_report(self, name: str, run: str) -> StartReport | None:
        report = self._agents[name].state.report
        return report if report is not None and report.run == run else None


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


def _make_refusal(run: Run, reason: str, agents: tuple[str, ...] = ()) -> SectionRefused:
    return SectionRefused(run.id, run.section, reason, agents)
