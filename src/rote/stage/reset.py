"""Resets a stop from any terminal of the conductor's computer, and lists which robots are ready."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from rote.errors import LinkError
from rote.stage.conductor import Conductor
from rote.stage.watcher import StageWatcher, watching
from rote.wire.stage import AgentState, Reset, Stop

_LISTEN_S, _GATHER_S = 1.5, 6.0
"""Minimum time to listen before a reset, and maximum time to wait for missing robots."""
_RELEASE_S = 3.0
"""Timeout for the robots to be released after a reset."""
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class ResetReadiness:
    """An active stop, and which robots are ready to go on after it is reset."""

    stop: Stop
    obstacles: Mapping[str, str]
    """Why a robot is not ready, by its name; "" if it is ready."""

    @property
    def ready(self) -> tuple[str, ...]:
        """The robots that are ready."""
        return tuple(name for name, obstacle in self.obstacles.items() if not obstacle)

    @property
    def lines(self) -> list[str]:
        """One line of text for each robot."""
        return [
            f"  {name}: {obstacle or 'ready'}" for name, obstacle in sorted(self.obstacles.items())
        ]


def find_obstacle(state: AgentState | None, *, reachable: bool, stop: Stop) -> str:
    """Return why a robot is not ready after a stop, as text; "" if it is ready."""
    if state is None or not reachable:
        return "not reachable: it stays out until its agent is back"
    if state.stopped != stop.id:
        return "has NOT confirmed the STOP: use its remote, then look at it"
    return "; ".join(state.facts)


def find_readiness(conductor: Conductor) -> ResetReadiness | None:
    """Return which robots are ready after the active stop; None if no stop is active."""
    stop = conductor.active_stop
    if stop is None:
        return None
    return ResetReadiness(
        stop,
        {
            name: find_obstacle(state, reachable=conductor.alive(name), stop=stop)
            for name, state in conductor.agents.items()
        },
    )


async def reset_stage(
    folder: Path, confirm: Callable[[ResetReadiness], Awaitable[bool]]
) -> ResetReadiness | None:
    """Reset the active stop of a stage if `confirm` agrees, with or without a conductor.

    Return which robots were ready; None if no stop is active or `confirm` refused. Raises
    `LinkError` if the stage cannot be reached, or the reset has no effect.
    """
    async with AsyncExitStack() as stack:
        watcher = await stack.enter_async_context(watching(folder))
        conductor = None
        if not watcher.conducted:
            conductor = await stack.enter_async_context(Conductor(watcher.bus, watcher.keys.stage))
        await watcher.gather_agents(_LISTEN_S, _GATHER_S)
        stop = watcher.active_stop if conductor is None else conductor.active_stop
        if stop is None:
            return None
        names = sorted({*watcher.invited, *watcher.agents})
        readiness = ResetReadiness(
            stop,
            {
                name: find_obstacle(
                    watcher.agents.get(name), reachable=watcher.reachable(name), stop=stop
                )
                for name in names
            },
        )
        if not await confirm(readiness):
            return None
        await _release_agents(watcher, conductor, stop)
        return readiness


async def _release_agents(watcher: StageWatcher, conductor: Conductor | None, stop: Stop) -> None:
    """Reset a stop, and wait until all agents that have confirmed it are released."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + _RELEASE_S
    if conductor is not None and not conductor.reset_stop(stop):
        raise LinkError(
            "this STOP is no longer active: it was reset, or another STOP replaced it",
            "If a STOP is still active, find out why it was given, then reset that one.",
        )
    while True:
        if conductor is None:
            watcher.bus.publish(watcher.keys.reset, Reset(stop.id).encode())
        await asyncio.sleep(_POLL_S)
        active = watcher.active_stop if conductor is None else conductor.active_stop
        if active is not None and active.id != stop.id:
            raise LinkError(
                "a new STOP was given meanwhile",
                "Find out why it was given, then reset the new STOP.",
            )
        stopped = [
            name
            for name, state in watcher.agents.items()
            if watcher.reachable(name) and state.stopped == stop.id and state.phase == "stopped"
        ]
        if active is None and not stopped:
            return
        if loop.time() > until_s:
            names = ", ".join(sorted(stopped)) or "the conductor"
            raise LinkError(f"the reset was not confirmed by {names}", "Reset it again.")
