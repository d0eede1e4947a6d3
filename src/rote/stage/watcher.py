"""Watches a stage without conducting it: which agents are connected, and their message loss."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from rote.errors import DecodeError, LinkError
from rote.session.stage_roster import AGENT_LOST_S
from rote.session.stage_stops import CONFIRM_S
from rote.stage.folder import StageFolder
from rote.stage.keys import StageKeys
from rote.transport.zenoh.bus import StageBus
from rote.wire.stage import AgentState, LeadChange, Stop, decode_agent, decode_conductor

_GATHER_S = 3.0
"""Time for agents to connect if there was no conductor: they search for one repeatedly."""


_OPEN_S = 5.0
"""How long opening is tried again: a busy conductor may not answer in time."""
_CONDUCTOR_S = 1.0
"""Timeout for finding the conductor of a stage with routers."""
_POLL_S = 0.05


class StageWatcher:
    """The states of a stage's agents."""

    def __init__(
        self, bus: StageBus, keys: StageKeys, *, conducted: bool, invited: tuple[str, ...] = ()
    ) -> None:
        """`invited` are the agents that a stop waits for."""
        self.bus, self.keys, self.invited = bus, keys, frozenset(invited)
        self.conducted = conducted
        """Whether there was a conductor. Without one, the agents connect to this program, or to the
        routers of the stage."""
        self.agents: dict[str, AgentState] = {}
        self._first_beat: dict[str, int] = {}
        self._received_count: dict[str, int] = {}
        self._received_s: dict[str, float] = {}
        self._loop = asyncio.get_running_loop()
        self._rank = (0, "")
        """The highest rank of a conductor that was received."""
        self.active_stop: Stop | None = None
        """The stop that a conductor holds, as far as its states have arrived."""
        bus.subscribe(keys.state("*"), self._on_state)
        bus.subscribe(keys.conductor, self._on_conductor_state, newest=True)

    def _on_state(self, key: str, data: bytes) -> None:
        try:
            state = decode_agent(data)
        except DecodeError:
            return
        name = state.name
        if name != self.keys.agent_in(key):
            return
        before = self.agents.get(name)
        if before is None or before.epoch != state.epoch:
            self._first_beat[name], self._received_count[name] = state.beat, 0
        self._received_count[name] += 1
        self.agents[name] = state
        self._received_s[name] = self._loop.time()

    def _on_conductor_state(self, _key: str, data: bytes) -> None:
        with suppress(DecodeError):
            state = decode_conductor(data)
            if state.rank >= self._rank:
                self._rank, self.active_stop = state.rank, state.stop

    def reachable(self, name: str) -> bool:
        """Whether a state of an agent arrived recently."""
        return self._loop.time() - self._received_s.get(name, -1e9) <= AGENT_LOST_S

    @property
    def missing(self) -> tuple[str, ...]:
        """The invited agents from which no state has arrived."""
        return tuple(sorted(self.invited - self.agents.keys()))

    def loss(self, name: str) -> float:
        """Return the share of an agent's messages that did not arrive."""
        sent = self.agents[name].beat - self._first_beat[name] + 1
        return max(0.0, 1.0 - self._received_count[name] / sent)

    async def gather_agents(self, least_s: float, most_s: float) -> None:
        """Listen for at least `least_s`, then until all invited agents are reachable.

        Give up after `most_s`: on a busy computer an agent may need long to connect, and its states
        arrive late.
        """
        began_s = self._loop.time()
        while True:
            passed_s = self._loop.time() - began_s
            all_reachable = all(self.reachable(name) for name in self.invited)
            if passed_s >= most_s or (passed_s >= least_s and all_reachable):
                return
            await asyncio.sleep(_POLL_S)

    async def set_lead(self, agent: str, name: str, seconds: float | None) -> bool:
        """Change how early an agent requests an action or sound; return whether it did."""
        message = LeadChange(name, seconds).encode()
        expected = None if seconds is None else round(seconds, 3)
        until_s = self._loop.time() + _GATHER_S
        while self._loop.time() < until_s:
            self.bus.publish(self.keys.leads(agent), message)
            await asyncio.sleep(_POLL_S)
            known = {each: lead_s for each, lead_s, _ in self.agents[agent].leads}
            if known.get(name) == expected:
                return True
        return False

    async def stop(self, by: str) -> tuple[str, ...]:
        """Stop all agents; return those that have not confirmed it in time.

        The stop is repeated for as long as an invited agent may not have received it yet.
        """
        stop = Stop(uuid.uuid4().hex, by)
        until_s = self._loop.time() + (CONFIRM_S if self.conducted else _GATHER_S)
        while True:
            self.bus.publish(self.keys.stop, stop.encode())
            await asyncio.sleep(_POLL_S)
            states = self.agents.items()
            unconfirmed = sorted(name for name, state in states if state.stopped != stop.id)
            all_reachable = self.invited and self.invited <= self.agents.keys()
            if (all_reachable and not unconfirmed) or self._loop.time() > until_s:
                return tuple(unconfirmed)


@asynccontextmanager
async def watching(folder: Path) -> AsyncIterator[StageWatcher]:
    """Watch a stage: as a client of its conductor, or on the conductor's address without one."""
    stage_folder = StageFolder(folder)
    bus, conducted = await _open_bus(stage_folder)
    try:
        yield StageWatcher(bus, stage_folder.keys, conducted=conducted, invited=stage_folder.agents)
    finally:
        await bus.close()


async def _open_bus(stage_folder: StageFolder) -> tuple[StageBus, bool]:
    """Return a session with the stage's bus, and whether it has a conductor.

    Raises `LinkError` if neither a conductor answers nor its address is free.
    """
    if stage_folder.routers:
        return await stage_folder.join_routers(_CONDUCTOR_S)
    loop = asyncio.get_running_loop()
    until_s = loop.time() + _OPEN_S
    while True:
        with suppress(LinkError):
            return await StageBus.join(stage_folder.endpoint, stage_folder.credentials), True
        try:
            bus = await StageBus.conduct(
                stage_folder.endpoint, stage_folder.credentials, stage_folder.grants
            )
            return bus, False
        except LinkError:
            if loop.time() > until_s:
                raise
        await asyncio.sleep(_POLL_S)
