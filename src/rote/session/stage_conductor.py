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
from enum import StrEnum

from rote.session.stage_agent import CONDUCTOR_LOST_S, AgentPhase
from rote.session.stage_events import (
    ComputerSuspended,
    ConductingBegan,
    ConductorEvent,
    ConductorStalled,
    StopBegan,
    Superseded,
)
from rote.session.stage_roster import AgentRoster
from rote.session.stage_section import SectionRun, make_refusal
from rote.session.stage_stops import StopLatch
from rote.wire.stage import MAX_MUTED, AgentState, ConductorState, Run, Stop

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


class OtherConductor:
    """The conductor that is obeyed instead of this one, as far as its states arrive."""

    def __init__(self) -> None:
        self.state: ConductorState | None = None
        """Its newest state."""
        self.show: ConductorState | None = None
        """The newest state of the conductor that had a show: not of one that only reset a stop."""
        self._received_s: float | None = None

    def receive(self, state: ConductorState, now_s: float) -> bool:
        """Record a state; return False if it is not newer, or of a lower rank."""
        newest = self.state
        if newest is not None and (state.rank, state.number) <= (newest.rank, newest.number):
            return False
        self.state, self._received_s = state, now_s
        is_same = self.show is not None and self.show.epoch == state.epoch
        if is_same or state.section or state.muted or state.run is not None:
            self.show = state
        return True

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself, and so has the one that had a show."""
        states = [state for state in (self.state, self.show) if state is not None]
        return bool(states) and all(state.has_ended for state in states)

    def restart_limits(self, now_s: float) -> None:
        """Let the time limits for messages start again: none could be received until now."""
        if self._received_s is not None:
            self._received_s = now_s

    def is_silent(self, now_s: float, limit_s: float = CONDUCTOR_LOST_S) -> bool:
        """Whether a conductor was received, and nothing of it for longer than `limit_s`."""
        return self._received_s is not None and now_s - self._received_s > limit_s


class ConductorSession:
    """The state machine of a conductor.

    Its parts are the agents, the section that is under way, the stop, and the other conductor.
    """

    def __init__(self, epoch: str, new_id: Callable[[], str], *, standby: bool = False) -> None:
        """A `standby` conducts only after another conductor was received and lost."""
        self.agents = AgentRoster()
        self.section = SectionRun(self.agents)
        self.stops = StopLatch(self.agents)
        self.other = OtherConductor()
        self.standing = Standing.WAITING
        self.is_standby = standby
        self._new_id = new_id
        self.epoch = epoch
        """A new one after each suspension of this computer."""
        self._first_epoch, self._suspensions = epoch, 0
        self._term, self._number = 0, 0
        self._cue_section, self._muted = "", tuple[str, ...]()
        self._has_ended = False
        self._own_stop = ""
        """The stop that was requested here last."""
        self._own_stop_holder = ""
        """The epoch of the conductor that was last received with that stop."""
        self.endings = 0
        """Number of cancels and stops; a change ends the preparation of a section."""

    # ---- what is published ------------------------------------------------------------------

    @property
    def current(self) -> ConductorState:
        """The newest state, as it was published or will be."""
        return ConductorState(
            self.epoch,
            self._number,
            self.section.run,
            self.stops.active,
            self.stops.reset_id,
            self._term,
            self._cue_section,
            self._muted,
            self._has_ended,
        )

    def state(self) -> ConductorState:
        """Return what to publish now, under a new number."""
        self._number += 1
        return self.current

    def show_section(self, section: str, muted: Collection[str]) -> None:
        """Publish the position of the cue list, for a standby that takes over."""
        self._cue_section, self._muted = section, tuple(sorted(muted))[:MAX_MUTED]

    def end(self) -> None:
        """Publish from now on that this conductor has ended, so that it does not count as lost."""
        self._has_ended = True

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
            return [make_refusal(run, self.refusal)]
        if self.stops.active is not None:
            return [make_refusal(run, "a stop is active; reset it first")]
        return self.section.begin(run, now_s, stop_on_loss=stop_on_loss, may_drop=may_drop)

    def cancel(self, reason: str) -> list[ConductorEvent]:
        """End the section: agents that have not begun do not begin; moving robots stop softly.

        A section that is still being packed does not begin either: see `endings`. Return the event
        that reports the run, if there is one.
        """
        self.endings += 1
        return self.section.cancel(reason)

    def stop(self, by: str, now_s: float) -> tuple[Stop, list[ConductorEvent]]:
        """Stop all agents. Always possible; each call is a new stop, even if one is active."""
        stop = Stop(self._new_id(), by)
        self._own_stop = stop.id
        return stop, self.adopt(stop, now_s)

    def adopt(self, stop: Stop, now_s: float) -> list[ConductorEvent]:
        """Make a stop, requested here or elsewhere, the active one for all agents.

        A stop that the user has reset is not adopted again: another program may repeat it.
        """
        if self.stops.is_active(stop.id) or stop.id == self.stops.reset_id:
            return []
        own = self.find_stop_to_repeat(now_s)
        if own is not None and own.id > stop.id:  # so of two that are repeated one remains
            return []
        events = self.cancel(f"stopped by {stop.by}" if stop.by else "stopped")
        self.stops.begin(stop, now_s)
        return [StopBegan(stop), *events]

    def resume(self, suspended_s: float) -> list[ConductorEvent]:
        """Process that this computer was suspended: its clock stood still.

        A section in progress is cancelled. A new epoch makes the agents forget this clock's offset.
        It ranks above the old one, but not above another conductor's of the same term.
        """
        self._suspensions += 1
        self.epoch = f"{self._first_epoch}.{self._suspensions:06}"
        reason = f"the conductor's computer was suspended for {suspended_s:.1f} s"
        return [ComputerSuspended(suspended_s), *self.cancel(reason)]

    def stall(self, stalled_s: float, now_s: float) -> list[ConductorEvent]:
        """Process that this process stalled: it neither sent nor received anything.

        The agents have stopped, so a section in progress is cancelled. Time limits for messages
        start again.
        """
        self.agents.restart_limits(now_s)
        self.other.restart_limits(now_s)
        reason = f"the conductor stalled for {stalled_s:.1f} s, so its agents have stopped"
        return [ConductorStalled(stalled_s), *self.cancel(reason)]

    # ---- input --------------------------------------------------------------------------

    def on_agent_states(self, *states: AgentState, now_s: float) -> list[ConductorEvent]:
        """Process states of agents; an older or duplicate message is ignored."""
        events: list[ConductorEvent] = []
        for state in states:
            if self.agents.is_newer(state):
                events += self.agents.add(state, now_s)
                events += self._compare_rank(state)
                events += self._adopt_latched(state, now_s)
        return events + self._advance(now_s)

    def on_conductor_state(self, state: ConductorState, now_s: float) -> list[ConductorEvent]:
        """Process a state of another conductor; an older or duplicate message is ignored."""
        if state.epoch == self.epoch or state.term < 1:
            return []
        if state.rank < self._own_rank:  # it will receive ours; until then its stop is valid
            return [] if state.stop is None else self.adopt(state.stop, now_s)
        events = [] if self._waits_for_loss else self._supersede(state.term)
        if self.other.receive(state, now_s):
            events += self._copy_stop(state, now_s)
        return events

    def on_agent_gone(self, name: str, now_s: float) -> list[ConductorEvent]:
        """Process the end of an agent's network session."""
        self.agents.mark_gone(name)
        return self._advance(now_s)

    def tick(self, now_s: float) -> list[ConductorEvent]:
        """Process the passing of time."""
        return self._advance(now_s)

    def _advance(self, now_s: float) -> list[ConductorEvent]:
        """Detect lost agents and the next step of the stop or section; return the events."""
        events: list[ConductorEvent] = [*self.agents.find_newly_lost(now_s)]
        events += self.stops.check(now_s)
        if self.standing is Standing.WAITING:
            events += self._begin_conducting(now_s)
        events += self.section.prepare(now_s)
        if lost := self.section.find_fatal_loss(now_s):
            _, stop_events = self.stop(f"the loss of {lost}", now_s)
            return events + stop_events
        return events + self.section.end_if_done()

    # ---- who conducts ---------------------------------------------------------------------

    @property
    def refusal(self) -> str:
        """Why no section can be begun here; "" if this conductor may conduct."""
        if self.standing is Standing.SUPERSEDED:
            return "another conductor has taken over"
        return "this is the standby of another conductor" if self._waits_for_loss else ""

    @property
    def _own_rank(self) -> tuple[int, str]:
        """Compared with that of other conductors: see `ConductorState.rank`."""
        return self._term, self.epoch

    @property
    def _waits_for_loss(self) -> bool:
        """Whether it is a standby that has not taken over."""
        return self.is_standby and self.standing is Standing.WAITING

    def _begin_conducting(self, now_s: float) -> list[ConductorEvent]:
        """Conduct if no other conductor does, as far as messages arrive here."""
        if self._waits_for_loss and not self.other.is_silent(now_s, TAKEOVER_S):
            return []
        states = self.agents.states
        alive = [state for name, state in states.items() if self.agents.is_alive(name, now_s)]
        if not alive or any(state.conducted for state in alive):
            return []
        terms = [state.term for state in states.values()]
        terms += [] if self.other.state is None else [self.other.state.term]
        self._term = 1 + max(terms)
        self.standing = Standing.CONDUCTING
        show = self.other.show or self.other.state
        if show is None:
            return [ConductingBegan(self._term)]
        section = show.section or ("" if show.run is None else show.run.section)
        return [ConductingBegan(self._term, section, show.muted, self.other.has_ended)]

    def _supersede(self, term: int) -> list[ConductorEvent]:
        """Stop conducting for good: another conductor has a higher rank."""
        if self.standing is Standing.SUPERSEDED:
            return []
        self.standing = Standing.SUPERSEDED
        return [Superseded(term), *self.cancel("another conductor has taken over")]

    def _compare_rank(self, state: AgentState) -> list[ConductorEvent]:
        """Step down if an agent obeys a higher rank; raise the term if that conductor is lost."""
        if self.standing is not Standing.CONDUCTING or state.rank <= self._own_rank:
            return []
        if state.conducted:
            return self._supersede(state.term)
        self._term = state.term + 1
        return []

    # ---- stops of others --------------------------------------------------------------------

    def find_stop_to_repeat(self, now_s: float) -> Stop | None:
        """Return the stop to send again while this conductor does not conduct; None if none.

        Only a stop that was requested here, and only until the conductor that is obeyed was
        received with it: confirmed or not, agents that are started later learn it only from there.
        """
        stop, other = self.stops.active, self.other.state
        if stop is None or stop.id != self._own_stop or self.standing is Standing.CONDUCTING:
            return None
        is_held = other is not None and other.epoch == self._own_stop_holder
        return None if is_held and not self.other.is_silent(now_s) else stop

    def _copy_stop(self, state: ConductorState, now_s: float) -> list[ConductorEvent]:
        """Adopt the stop of the conductor that is obeyed, or its reset of our stop."""
        if state.stop is not None and state.stop.id == self._own_stop:
            self._own_stop_holder = state.epoch
        if self.stops.is_active(state.reset):
            self.stops.reset()
        if state.stop is not None:
            is_replaced = self.find_stop_to_repeat(now_s) is None
            return self.adopt(state.stop, now_s) if is_replaced else []
        self.stops.note_reset(state.reset)
        return []

    def _adopt_latched(self, state: AgentState, now_s: float) -> list[ConductorEvent]:
        """Adopt the stop of an agent that was stopped before this conductor started."""
        is_stopped = state.phase == AgentPhase.STOPPED and state.stopped
        if is_stopped and self.stops.active is None and state.stopped != self.stops.reset_id:
            return self.adopt(Stop(state.stopped, "an earlier stop"), now_s)
        return []
