"""The stop of all agents of a stage: active until a person resets it, and confirmed by each."""

from rote.session.stage_events import StopConfirmed, StopUnconfirmed
from rote.session.stage_roster import AgentRoster
from rote.wire.stage import Stop

CONFIRM_S = 1.0
"""Agents that have not confirmed a stop after this time are reported."""


class StopLatch:
    """The stop that a conductor requests from all agents."""

    def __init__(self, agents: AgentRoster) -> None:
        self._agents = agents
        self.active: Stop | None = None
        self.reset_id = ""
        """The id of the stop that was reset last."""
        self.confirmed_s: float | None = None
        """Seconds until all agents had confirmed the active stop; None if not all have."""
        self._requested_s: float | None = None
        """When the unconfirmed stop was requested."""
        self._unconfirmed_reported = False

    def is_active(self, stop_id: str) -> bool:
        """Whether the active stop is this one."""
        return self.active is not None and self.active.id == stop_id

    def begin(self, stop: Stop, now_s: float) -> None:
        """Make a stop the active one, in place of any other."""
        self.active, self.confirmed_s = stop, None
        self._requested_s, self._unconfirmed_reported = now_s, False

    def reset(self) -> bool:
        """Clear the stop for all agents; return False if none is active."""
        if self.active is None:
            return False
        self.reset_id, self.active, self._requested_s = self.active.id, None, None
        return True

    def note_reset(self, stop_id: str) -> None:
        """Record the stop that was reset last at another conductor."""
        self.reset_id = stop_id

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """The agents that have not confirmed the active stop; empty if none is active."""
        stop = self.active
        if stop is None:
            return ()
        states = self._agents.states.items()
        return tuple(sorted(name for name, state in states if state.stopped != stop.id))

    def check(self, now_s: float) -> list[StopConfirmed | StopUnconfirmed]:
        """Return an event once all agents have confirmed the stop, or once they are overdue."""
        stop = self.active
        if stop is None or self._requested_s is None:
            return []
        unconfirmed = self.unconfirmed
        after_s = now_s - self._requested_s
        if self._agents.states and not unconfirmed:
            self._requested_s, self.confirmed_s = None, after_s
            return [StopConfirmed(stop.id, after_s)]
        if after_s > CONFIRM_S and not self._unconfirmed_reported:
            self._unconfirmed_reported = True
            return [StopUnconfirmed(stop.id, unconfirmed)]
        return []
