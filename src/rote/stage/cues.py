"""The state of a cue list: the current and the next section, the time left, a lamp per robot."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rote.session.stage_agent import AgentPhase
from rote.wire.stage import AgentState, ConductorState, Stop


class CueState(StrEnum):
    """What a show is doing."""

    WAITING = "waiting"
    """For GO, or for the trigger of the section."""
    STARTING = "starting"
    """The robots load the section and move to their first poses."""
    PLAYING = "playing"
    PAUSED = "paused"
    """The robots hold their poses; it is not a stop."""
    STOPPED = "stopped"
    """A STOP holds until it is reset."""


class Lamp(StrEnum):
    """The state of one robot, as a technician sees it."""

    READY = "ready"
    LOADING = "loading"
    ARMED = "armed"
    PLAYING = "playing"
    PAUSED = "paused"
    MUTED = "muted"
    STOPPED = "STOPPED"
    UNCONFIRMED = "UNCONFIRMED"
    """It has not confirmed the active STOP."""
    FAULT = "FAULT"
    LOST = "LOST"


_LAMPS = {
    AgentPhase.LOADING: Lamp.LOADING,
    AgentPhase.READY: Lamp.LOADING,
    AgentPhase.ARMING: Lamp.ARMED,
    AgentPhase.ARMED: Lamp.ARMED,
    AgentPhase.COMMITTED: Lamp.ARMED,
    AgentPhase.RUNNING: Lamp.PLAYING,
    AgentPhase.PAUSED: Lamp.PAUSED,
    AgentPhase.STOPPED: Lamp.STOPPED,
}


def find_lamp(
    state: AgentState | None, *, alive: bool, muted: bool, stop: Stop | None = None
) -> Lamp:
    """Return the lamp to show for a robot, from the newest state of its agent.

    `stop` is the active STOP; None if the caller shows its confirmations by itself.
    """
    if state is None or not alive:
        return Lamp.LOST
    if stop is not None and state.stopped != stop.id:
        return Lamp.UNCONFIRMED
    if state.phase == AgentPhase.STOPPED:
        return Lamp.STOPPED
    if muted:
        return Lamp.MUTED
    if state.facts:  # what is wrong with the robot, as texts
        return Lamp.FAULT
    return _LAMPS.get(state.phase, Lamp.READY)  # type: ignore[call-overload,no-any-return]


@dataclass(frozen=True, slots=True)
class CueStatus:
    """What a cue list shows."""

    state: CueState
    section: str
    """The section that plays, or that begins next."""
    following: str
    """The section after it; "" if it is the last one."""
    waits_for: str
    """What begins it, as text; "" if it has begun."""
    elapsed_s: float | None
    """Time since the section's start; None before it."""
    left_s: float | None
    lamps: Mapping[str, Lamp]
    """By robot."""

    @property
    def line(self) -> str:
        """The status as one line of text."""
        left = "" if self.left_s is None else f", {self.left_s:.0f} s left"
        waits = f" for {self.waits_for}" if self.waits_for else ""
        following = f" | next: {self.following}" if self.following else " | the last one"
        lamps = "  ".join(f"{name}:{lamp}" for name, lamp in self.lamps.items())
        return f"{self.section}: {self.state}{waits}{left}{following} | {lamps}"

    def as_json(self) -> dict[str, Any]:
        """Return the status as JSON data."""
        return {
            "state": self.state.value,
            "section": self.section,
            "next": self.following,
            "waits_for": self.waits_for,
            "elapsed_s": self.elapsed_s,
            "left_s": self.left_s,
            "lamps": {name: lamp.value for name, lamp in self.lamps.items()},
        }


def describe_other_conductor(
    state: ConductorState | None,
    agents: Mapping[str, AgentState],
    *,
    stop: Stop | None,
    has_ended: bool,
    is_silent: bool,
    alive: Callable[[str], bool],
) -> str:
    """Return what another conductor does, and the lamps of all robots, as one line of text.

    `stop` is the active STOP, as the standby knows it.
    """
    if state is None:
        return "standby: no conductor runs this stage yet"
    if has_ended or is_silent:
        activity = "the conductor has ended" if has_ended else "the conductor is LOST"
        if state.stop is not None:
            activity += f", STOP by {state.stop.by} is active"
    elif state.stop is not None:
        activity = f"STOP by {state.stop.by} is active"
    elif state.run is not None:
        is_paused = bool(state.run.holds) and state.run.holds[-1][1] is None
        what = "paused" if is_paused else "playing" if state.run.committed else "starting"
        activity = f"{state.run.section}: {what}"
    else:
        activity = f"{state.section}: waiting" if state.section else "no show is under way"
    lamps = "  ".join(
        f"{name}:{find_lamp(agent, alive=alive(name), muted=name in state.muted, stop=stop)}"
        for name, agent in sorted(agents.items())
    )
    return f"standby: {activity} | {lamps}"


def describe_rest(agents: Mapping[str, AgentState], *, alive: Callable[[str], bool]) -> str:
    """Return which robots still move or are not connected, as text."""
    lost = [name for name in sorted(agents) if not alive(name)]
    moving = [name for name, state in sorted(agents.items()) if state.moving and name not in lost]
    faults = [f"STILL MOVING: {', '.join(moving)}"] if moving else []
    faults += [f"NOT connected: {', '.join(lost)}"] if lost else []
    return ". ".join(faults) or "All robots are at rest"
