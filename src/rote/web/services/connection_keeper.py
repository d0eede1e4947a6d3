"""The one connection to a robot: opened, kept, and reestablished after a loss."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qsl

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
from rote.robot.robot import Robot
from rote.text import Text
from rote.transport.link import split_url
from rote.transport.wires import WIRES, Wire, wire_of
from rote.web.server.problems import NotConnectedError
from rote.web.services.embedded import ABILITIES, Embedded
from rote.web.services.events import Notify

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
        self._turn = asyncio.Lock()
        """Only one task opens or closes at a time: there is one connection."""

    @property
    def robot(self) -> Robot:
        """The robot; raises the reason if there is none."""
        if self._robot is not None:
            return self._robot
        if self.report.state == "off":
            raise NotConnectedError
        raise self._failure or LinkError(
            f"the robot at {self.url} is not connected yet", "Wait a moment."
        )

    @property
    def failure(self) -> RoteError | None:
        """Why the robot is not connected; None if it is, or none is wanted."""
        return self._failure

    def check_same(self, robot: Robot) -> None:
        """Raise `RefusedError` if this robot is no longer connected: a request for one robot must
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
        """The robot, or None."""
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
        """The wire; None if no robot is wanted."""
        return wire_of(self.url) if self.url else None

    @property
    def url_prefix(self) -> str:
        """The prefix of the wire's URLs; empty if no robot is wanted."""
        return "" if self.wire is None else f"{self.wire.scheme}://"

    @property
    def elsewhere(self) -> frozenset[str]:
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
        async with self._turn:
            await self._disconnect()
            self.url, self._failure = url, None
            self.report = ConnectionReport(state="connecting", message=f"Connecting to {url}.")
            self._task = asyncio.create_task(
                self._keep_connected(url, key, ability), name=f"rote line {url}"
            )

    async def close(self) -> None:
        """Disconnect from the robot. Safe to repeat."""
        async with self._turn:
            await self._disconnect()

    async def _disconnect(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self.url, self.report = "", ConnectionReport()

    async def _keep_connected(self, url: str, key: str | None, ability: str) -> None:
        pause_s = RECONNECT_FIRST_S
        while True:
            try:
                async with self._connect_once(url, key, ability) as robot:
                    pause_s = RECONNECT_FIRST_S
                    # After a loss, reconnect at the same level, only to read states.
                    if not wire_of(url).lives_here:
                        self.url, url, ability = robot.url, robot.url, DEFAULT_ABILITY
                    async for _ in robot.states():
                        pass
            except (BadRequestError, MissingExtraError, StoreError, UnsupportedError) as error:
                self._report_failure(error, "off")  # trying again would change nothing
                return
            except RoteError as error:
                self._report_failure(error, "lost")
            except Exception as error:  # a defect, or an unforeseen transport error: retry
                self._report_unexpected_failure(error)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, RECONNECT_LONGEST_S)

    @asynccontextmanager
    async def _connect_once(self, url: str, key: str | None, ability: str) -> AsyncIterator[Robot]:
        """Connect once; the robot is the block's value."""
        wire = wire_of(url)
        embedded = Embedded(url) if wire.in_process else None
        world = None if embedded is None else embedded.world
        wanted = key if wire.takes_key else None
        try:
            async with connect(
                url, timeout=CONNECT_S, key=wanted, reconnect=False, world=world, ability=ability
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
    """Return a URL that a page may connect to; raise an error if it names a file of this
    computer.
    """
    parts = split_url(url)
    wire = wire_of(url) if parts.scheme in WIRES else None
    asked = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    beside = parts.path.strip("/") or parts.fragment
    # A page cannot move the limbs of a simulated robot that has no scripted hand.
    handless = wire is not None and wire.lives_here and not wire.in_process and "hand" not in asked
    if wire is None or not parts.netloc or beside or not asked <= wire.asks or handless:
        known = ", ".join(each.example for each in WIRES.values())
        raise BadRequestError(f"{url!r} is not a robot that a page can connect to", f"Use {known}.")
    if wire.in_process:
        embedded_of(url)
    return url


def network_host(url: str) -> str:
    """Return the host that a URL names; empty if its robot is not found by an address."""
    wire = wire_of(url)
    host = split_url(url).hostname or ""
    by_name = wire.lives_here or wire.is_bus or host == "ap"
    return "" if by_name else host
