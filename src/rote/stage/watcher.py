"""Watches a stage without conducting it: which agents are connected, and their message loss."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from rote.errors import DecodeError, LinkError
from rote.session.stage_conductor import AGENT_LOST_S, CONFIRM_S
from rote.stage.folder import StageFolder
from rote.stage.keys import StageKeys
from rote.transport.zenoh.bus import StageBus
from rote.wire.stage import AgentState, Stop, decode_agent

_GATHER_S = 3.0
"""Without a conductor, agents search for one repeatedly: the time that they may need to connect."""


class StageWatcher:
    """The states of a stage's agents."""

    def __init__(
        self, bus: StageBus, keys: StageKeys, *, conducted: bool, invited: tuple[str, ...] = ()
    ) -> None:
        """`invited` are the agents that may be connected: a stop waits for them."""
        self._bus, self._keys, self._invited = bus, keys, frozenset(invited)
        self.conducted = conducted
        """Whether there was a conductor; otherwise the agents connect to this program."""
        self.agents: dict[str, AgentState] = {}
        self._first: dict[str, int] = {}
        self._count: dict[str, int] = {}
        self._received_s: dict[str, float] = {}
        self._loop = asyncio.get_running_loop()
        bus.subscribe(keys.state("*"), self._on_state)

    def _on_state(self, key: str, data: bytes) -> None:
        try:
            state = decode_agent(data)
        except DecodeError:
            return
        name = state.name
        if name != self._keys.agent_in(key):
            return
        before = self.agents.get(name)
        if before is None or before.epoch != state.epoch:
            self._first[name], self._count[name] = state.beat, 0
        self._count[name] += 1
        self.agents[name] = state
        self._received_s[name] = self._loop.time()

    def reachable(self, name: str) -> bool:
        """Whether a state of an agent arrived recently."""
        return self._loop.time() - self._received_s.get(name, -1e9) <= AGENT_LOST_S

    @property
    def missing(self) -> tuple[str, ...]:
        """The invited agents from which no state has arrived."""
        return tuple(sorted(self._invited - self.agents.keys()))

    def loss(self, name: str) -> float:
        """Return the share of an agent's messages that did not arrive."""
        sent = self.agents[name].beat - self._first[name] + 1
        return max(0.0, 1.0 - self._count[name] / sent)

    async def stop(self, by: str) -> tuple[str, ...]:
        """Stop all agents; return those that have not confirmed it in time.

        The stop is repeated for as long as an invited agent may not have received it yet.
        """
        stop = Stop(uuid.uuid4().hex, by)
        until_s = self._loop.time() + (CONFIRM_S if self.conducted else _GATHER_S)
        while True:
            self._bus.publish(self._keys.stop, stop.encode())
            await asyncio.sleep(0.05)
            missing = sorted(n for n, each in self.agents.items() if each.stopped != stop.id)
            all_heard = self._invited and self._invited <= self.agents.keys()
            if (all_heard and not missing) or self._loop.time() > until_s:
                return tuple(missing)


@asynccontextmanager
async def watching(folder: Path) -> AsyncIterator[StageWatcher]:
    """Watch a stage: as a client of its conductor, or in its place if there is none."""
    made = StageFolder(folder)
    try:
        bus = await StageBus.join(made.endpoint, made.credentials)
    except LinkError:
        grants = made.keys.grants(made.agents)
        bus = await StageBus.conduct(made.endpoint, made.credentials, grants)
        conducted = False
    else:
        conducted = True
    try:
        yield StageWatcher(bus, made.keys, conducted=conducted, invited=made.agents)
    finally:
        await bus.close()
