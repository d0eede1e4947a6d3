"""Watches a stage without conducting it: who is there, and how well they are heard."""

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

_CALLED_S = 3.0
"""Without a conductor agents look for one again and again: so long they may take to come."""


class StageWatcher:
    """What is seen of a stage."""

    def __init__(
        self, bus: StageBus, keys: StageKeys, *, conducted: bool, invited: tuple[str, ...] = ()
    ) -> None:
        """`invited` are those that may be there: a stop waits until they could be heard."""
        self._bus, self._keys, self._invited = bus, keys, frozenset(invited)
        self.conducted = conducted
        """Whether a conductor was there; otherwise the agents were called together to be seen."""
        self.agents: dict[str, AgentState] = {}
        self._first: dict[str, int] = {}
        self._count: dict[str, int] = {}
        self._heard_s: dict[str, float] = {}
        self._loop = asyncio.get_running_loop()
        bus.subscribe(keys.state("*"), self._hear)

    def _hear(self, key: str, data: bytes) -> None:
        try:
            said = decode_agent(data)
        except DecodeError:
            return
        name = said.name
        if name != self._keys.agent_in(key):
            return
        before = self.agents.get(name)
        if before is None or before.epoch != said.epoch:
            self._first[name], self._count[name] = said.beat, 0
        self._count[name] += 1
        self.agents[name] = said
        self._heard_s[name] = self._loop.time()

    def reachable(self, name: str) -> bool:
        """Whether an agent was heard lately."""
        return self._loop.time() - self._heard_s.get(name, -1e9) <= AGENT_LOST_S

    @property
    def unheard(self) -> tuple[str, ...]:
        """The invited agents of which nothing was received."""
        return tuple(sorted(self._invited - self.agents.keys()))

    def loss(self, name: str) -> float:
        """Return the share of an agent's messages that did not arrive."""
        sent = self.agents[name].beat - self._first[name] + 1
        return max(0.0, 1.0 - self._count[name] / sent)

    async def stop(self, by: str) -> tuple[str, ...]:
        """Stop everybody; return who has not confirmed it in time.

        It is repeated for as long as somebody who was invited may not have heard it yet.
        """
        stop = Stop(uuid.uuid4().hex, by)
        until_s = self._loop.time() + (CONFIRM_S if self.conducted else _CALLED_S)
        while True:
            self._bus.publish(self._keys.stop, stop.encode())
            await asyncio.sleep(0.05)
            missing = sorted(n for n, each in self.agents.items() if each.stopped != stop.id)
            all_heard = self._invited and self._invited <= self.agents.keys()
            if (all_heard and not missing) or self._loop.time() > until_s:
                return tuple(missing)


@asynccontextmanager
async def watching(folder: Path) -> AsyncIterator[StageWatcher]:
    """Watch a stage: beside its conductor, or in its place if there is none."""
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
