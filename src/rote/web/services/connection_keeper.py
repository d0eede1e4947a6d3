"""The one connection to a robot: opened, kept, and reestablished after a loss."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import SplitResult, parse_qsl

import numpy as np

from rote import messages as m
from rote.connection import connect, embedded_of
from rote.errors import (
    BadRequestError,
    LinkError,
    MissingExtraError,
    PeerLostError,
    RefusedError,
    RoteError,
    StageError,
    StoreError,
    UnsupportedError,
)
from rote.messages import Code, RobotState
from rote.model.family import Build
from rote.motion.track import Array
from rote.robot.api_values import Preset
from rote.robot.robot import Robot
from rote.sim.presets import presets_of
from rote.sim.store import open_store
from rote.sim.world import World
from rote.text import Text
from rote.transport.link import split_url
from rote.transport.wires import WIRES, Wire, wire_of
from rote.web.server.problems import NotConnectedError
from rote.web.services.events import Notify

# ---- the embedded robot --------------------------------------------------------------------------

ABILITIES = frozenset({"drag", "presets"})
"""What a robot in this process can do beyond the abilities of its wire."""
_PULL_RAD_S = 2.5
"""Maximum speed at which the hand pulls a joint."""
_MARGIN_RAD = 0.02
"""Distance from a joint's limits at which the hand stops pulling."""
_CALLER = "the web UI"


class DragHand:
    """A simulated hand that pulls joints one after the other, and holds the earlier ones in place.

    The target may jump with a finger on a screen; the hand moves there at a limited speed.
    """

    def __init__(self, build: Build) -> None:
        self._build = build
        self._held_rad: dict[int, float] = {}
        """The position at which the hand holds each joint now, by column."""
        self._targets_rad: dict[int, float] = {}
        """The position to which the hand pulls each joint, by column."""
        self._last_s = 0.0

    def pull(self, joint: int, value_rad: float, now_rad: float) -> None:
        """Pull `joint`, a column now at `now_rad`, to `value_rad`, within its limits."""
        self._held_rad.setdefault(joint, now_rad)
        limits = self._build.joints[joint]
        low, high = limits.lower_rad + _MARGIN_RAD, limits.upper_rad - _MARGIN_RAD
        self._targets_rad[joint] = min(max(value_rad, low), high)

    def grip(self, time_s: float) -> Array | None:
        """Pull the joints towards their targets; return the positions of all that the hand holds.

        The position of any other joint is NaN.
        """
        max_step_rad = _PULL_RAD_S * max(time_s - self._last_s, 0.0)
        self._last_s = time_s
        grip: Array = np.full(len(self._build.joints), np.nan)
        for joint, target_rad in self._targets_rad.items():
            distance_rad = target_rad - self._held_rad[joint]
            self._held_rad[joint] += min(max(distance_rad, -max_step_rad), max_step_rad)
            grip[joint] = self._held_rad[joint]
        return grip


class Embedded:
    """A simulated robot in this process, and the store of its taught actions."""

    def __init__(self, url: str) -> None:
        build, path = embedded_of(url)
        self.store = open_store(path, build.family)
        self.world = World(self.store, build=build)
        self._hand: DragHand | None = None

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def drag(self, name: str | None, value_rad: float) -> None:
        """Pull a joint by its name; None releases all."""
        if name is None:
            self._hand = None
            self.world.attach(None)
            return
        build = self.world.build
        if name not in build.taught or not math.isfinite(value_rad):
            raise BadRequestError(
                f"{name!r} cannot be pulled", f"Joints that can: {', '.join(build.taught)}."
            )
        joint = build.names.index(name)
        if self._hand is None:
            self._hand = DragHand(build)
            self.world.attach(self._hand)
        self._hand.pull(joint, value_rad, float(self.world.body.joints_rad[joint]))

    def release_hand(self) -> None:
        """Forget the hand: the teaching has ended, or another hand has replaced it."""
        self._hand = None

    def with_health(self, state: RobotState) -> RobotState:
        """Return a state with what its protocol lacks: health, and whether a pose is held."""
        health = self.world.health
        return replace(
            state,
            battery_percent=round(health.battery_percent, 1),
            temperatures_c=tuple(health.temperatures_c.tolist()),
            faults=health.messages,
            holding=self.world.holding,
        )

    @property
    def presets(self) -> tuple[Preset, ...]:
        """The factory actions, which the embedded robot's own wire does not list."""
        return tuple(Preset(preset.id, preset.name) for preset in presets_of(self.world.build))

    def perform(self, preset: int) -> None:
        """Begin a factory action, which the robot's own wire cannot do, or raise `RefusedError`."""
        reply = self.world.obey(_CALLER, m.PlayPreset(preset))
        assert isinstance(reply, m.Status)
        if reply.code != Code.OK:
            raise RefusedError(reply.code, *m.explain(reply.code))


# ---- connections ---------------------------------------------------------------------------------


RECONNECT_FIRST_S, RECONNECT_LONGEST_S = 0.5, 5.0
CONNECT_S = 4.0
DEFAULT_ABILITY = "states"
"""The default ability to connect for: a robot that would go limp because of it is refused."""

_log = logging.getLogger("rote")

State = Literal["off", "connecting", "connected", "lost"]
OnConnected = Callable[[Robot], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionReport:
    """The state of the connection."""

    state: State = "off"
    message: str = "No robot is connected."
    remedy: str = ""
    stage: str | None = None
    """The stage at which connecting failed, on wires with stages."""


class ConnectionKeeper:
    """Keeps the connection to one robot, and reports its state."""

    def __init__(self, on_connected: OnConnected, notify: Notify) -> None:
        self.url = ""
        self.report = ConnectionReport()
        self.embedded: Embedded | None = None
        self._on_connected = on_connected
        self._notify = notify
        self._robot: Robot | None = None
        self._failure: RoteError | None = None
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        """Only one task opens or closes at a time: there is one connection."""

    @property
    def robot(self) -> Robot:
        """The connected robot; raises an error with the reason if none is connected."""
        if self._robot is not None:
            return self._robot
        if self.report.state == "off":
            raise NotConnectedError
        raise self._failure or LinkError(
            f"the robot at {self.url} is not connected yet", "Wait a moment."
        )

    @property
    def failure(self) -> RoteError | None:
        """Why the robot is not connected; None if it is connected, or none was requested."""
        return self._failure

    def check_same(self, robot: Robot) -> None:
        """Raise `RefusedError` if another robot is connected now: a request for one robot must
        not be carried out by another.
        """
        if self._robot is not robot:
            raise RefusedError(
                Code.SUPERSEDED,
                "another robot was connected meanwhile, or this one was reconnected",
                "Nothing was started. Check which robot is connected, then try again.",
            )

    @property
    def connected(self) -> Robot | None:
        """The connected robot, or None."""
        return self._robot

    @property
    def state(self) -> RobotState | None:
        """The newest state, with the health of a robot in this process."""
        state = None if self._robot is None else self._robot.state
        if state is None or self.embedded is None:
            return state
        return self.embedded.with_health(state)

    @property
    def wire(self) -> Wire | None:
        """The wire; None if no robot was requested."""
        return wire_of(self.url) if self.url else None

    @property
    def url_prefix(self) -> str:
        """The prefix of the wire's URLs; empty if no robot was requested."""
        return "" if self.wire is None else f"{self.wire.scheme}://"

    @property
    def abilities_at_other_levels(self) -> frozenset[str]:
        """What this robot can do at another level of its wire, if it has levels."""
        wire = self.wire
        if wire is None or not wire.has_levels:
            return frozenset()
        return wire.abilities - self.abilities

    @property
    def abilities(self) -> frozenset[str]:
        """What this robot can do; a robot in this process can do more."""
        if self._robot is None:
            return frozenset()
        return self._robot.abilities | (ABILITIES if self.embedded is not None else frozenset())

    async def open(self, url: str, key: str | None = None, ability: str = DEFAULT_ABILITY) -> None:
        """Connect to a robot for an ability, and reconnect until `close`."""
        async with self._lock:
            await self._disconnect()
            self.url, self._failure = url, None
            self.report = ConnectionReport(state="connecting", message=f"Connecting to {url}.")
            self._task = asyncio.create_task(
                self._keep_connected(url, key, ability), name=f"rote line {url}"
            )

    async def close(self) -> None:
        """Disconnect from the robot. Safe to repeat."""
        async with self._lock:
            await self._disconnect()

    async def _disconnect(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self.url, self.report = "", ConnectionReport()

    async def _keep_connected(self, url: str, key: str | None, ability: str) -> None:
        """Connect, and connect again after each loss; return only if a retry cannot help."""
        pause_s = RECONNECT_FIRST_S
        while True:
            try:
                async with self._connect_once(url, key, ability) as robot:
                    pause_s = RECONNECT_FIRST_S
                    # After a loss, reconnect at the same level, only to read states.
                    if not wire_of(url).lives_here:
                        self.url = url = robot.url
                        ability = DEFAULT_ABILITY
                    async for _ in robot.states():
                        pass  # raises `PeerLostError` if the robot is lost
            except (BadRequestError, MissingExtraError, StoreError, UnsupportedError) as error:
                self._report_failure(error, "off")  # a retry would fail in the same way
                return
            except RoteError as error:
                self._report_failure(error, "lost")
            except Exception as error:  # a defect, or an unforeseen transport error: retry
                self._report_unexpected_failure(error)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, RECONNECT_LONGEST_S)

    @asynccontextmanager
    async def _connect_once(self, url: str, key: str | None, ability: str) -> AsyncIterator[Robot]:
        """Connect once, for the duration of the block."""
        wire = wire_of(url)
        embedded = Embedded(url) if wire.in_process else None
        world = None if embedded is None else embedded.world
        used_key = key if wire.takes_key else None
        try:
            async with connect(
                url, timeout=CONNECT_S, key=used_key, reconnect=False, world=world, ability=ability
            ) as robot:
                await self._on_connected(robot)
                self._robot, self.embedded, self._failure = robot, embedded, None
                if self.report.state == "lost":
                    self._notify("The robot is back.", "back")
                self.report = ConnectionReport(
                    state="connected", message=f"Connected to {robot.url}."
                )
                try:
                    yield robot
                finally:
                    self._robot = self.embedded = None
        finally:
            if embedded is not None:
                embedded.close()

    def _report_unexpected_failure(self, error: Exception) -> None:
        """Report an error that is not a `RoteError`; equal ones in a row are logged once."""
        failure = LinkError(
            f"the connection failed unexpectedly: {error!r}",
            "It is retried. If it keeps failing, please send us the server's log.",
        )
        if str(failure) != str(self._failure):
            _log.error("the connection to %s failed", self.url, exc_info=error)
            self._notify(Text("The robot is not connected: {error}.", error=failure.text))
        self._report_failure(failure, "lost")

    def _report_failure(self, error: RoteError, state: State) -> None:
        if isinstance(error, PeerLostError):
            self._notify(Text("The robot is lost: {error}.", error=error.text), "lost")
        self._failure = error
        self.report = ConnectionReport(
            state=state,
            message=Text("{error}.", error=error.text),
            remedy=error.remedy,
            stage=error.stage if isinstance(error, StageError) else None,
        )


def check_url(url: str) -> str:
    """Return a URL that a page may connect to; raise `BadRequestError` for any other."""
    parts = split_url(url)
    wire = wire_of(url) if parts.scheme in WIRES else None
    if wire is None or not _is_allowed_on(wire, parts):
        examples = ", ".join(each.example for each in WIRES.values())
        raise BadRequestError(
            f"{url!r} is not a robot that a page can connect to", f"Use {examples}."
        )
    if wire.in_process:
        embedded_of(url)
    return url


def _is_allowed_on(wire: Wire, parts: SplitResult) -> bool:
    """Whether a page may connect to a URL of this wire: a host with known parameters, no path."""
    parameters = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    has_path = bool(parts.path.strip("/") or parts.fragment)
    # A page can drag only a robot in this process; another simulated one needs a scripted hand.
    lacks_hand = wire.lives_here and not wire.in_process and "hand" not in parameters
    return bool(parts.netloc) and not has_path and parameters <= wire.asks and not lacks_hand


def network_host(url: str) -> str:
    """Return the host name or address in a URL; empty if it names a robot in another way."""
    wire = wire_of(url)
    host = split_url(url).hostname or ""
    is_access_point = host == "ap"  # the robot's own Wi-Fi, where its address is fixed
    return "" if wire.lives_here or wire.is_bus or is_access_point else host
