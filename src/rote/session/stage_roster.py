"""The agents of a stage, as the conductor receives their states."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rote.session.stage_events import AgentFound, AgentLost
from rote.wire.stage import AgentState

AGENT_LOST_S = 1.0
"""An agent whose beat does not change for this many seconds is lost."""
_REMEMBERED_EPOCHS = 64


@dataclass(slots=True)
class _SeenAgent:
    """What is known of one agent."""

    state: AgentState
    beat_s: float
    """When its beat last changed."""
    gone: bool = False
    """Whether its session with the network has ended."""
    old_epochs: list[str] = field(default_factory=list)


class AgentRoster:
    """The newest state of every agent, and which agents are lost."""

    def __init__(self) -> None:
        self._agents: dict[str, _SeenAgent] = {}
        self._lost: set[str] = set()

    def __getitem__(self, name: str) -> AgentState:
        """The newest state of an agent."""
        return self._agents[name].state

    @property
    def states(self) -> Mapping[str, AgentState]:
        """The newest state of every agent ever seen."""
        return {name: agent.state for name, agent in self._agents.items()}

    def is_alive(self, name: str, now_s: float) -> bool:
        """Whether an agent is connected and its loop works."""
        agent = self._agents.get(name)
        return agent is not None and not agent.gone and now_s - agent.beat_s <= AGENT_LOST_S

    def is_newer(self, state: AgentState) -> bool:
        """Whether a state is newer than all that were received from its agent."""
        agent = self._agents.get(state.name)
        if agent is None:
            return True
        if state.epoch != agent.state.epoch:
            return state.epoch not in agent.old_epochs
        return state.beat > agent.state.beat

    def add(self, state: AgentState, now_s: float) -> list[AgentFound]:
        """Record a newer state of an agent; return an event if the agent has just connected."""
        agent = self._agents.setdefault(state.name, _SeenAgent(state, now_s))
        if state.epoch != agent.state.epoch:
            agent.old_epochs.append(agent.state.epoch)
            del agent.old_epochs[:-_REMEMBERED_EPOCHS]
        agent.state, agent.beat_s, agent.gone = state, now_s, False
        if state.name not in self._lost and state.beat > 1:
            return []
        self._lost.discard(state.name)
        return [AgentFound(state.name)]

    def mark_gone(self, name: str) -> None:
        """Record that an agent's network session has ended."""
        if name in self._agents:
            self._agents[name].gone = True

    def restart_limits(self, now_s: float) -> None:
        """Let the time limits for messages start again: none could be received until now."""
        for agent in self._agents.values():
            agent.beat_s = now_s

    def find_newly_lost(self, now_s: float) -> list[AgentLost]:
        """Return an event for each agent that was lost since the last call."""
        lost = [
            name
            for name in self._agents
            if name not in self._lost and not self.is_alive(name, now_s)
        ]
        self._lost.update(lost)
        return [AgentLost(name) for name in lost]
