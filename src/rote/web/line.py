"""The one connection to a robot: opened, kept, and opened again when the robot was lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from rote.carrier import split_url
from rote.client.wires import EMBEDDED
from rote.connection import connect
from rote.errors import (
    BadRequestError,
    LinkError,
    MissingExtraError,
    PeerLostError,
    RoteError,
    StageError,
    StoreError,
)
from rote.messages import RobotState
from rote.robot.robot import Robot
from rote.web.embedded import ABILITIES, Embedded
from rote.web.problems import NotConnectedError

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0
CONNECT_S = 4.0
_WIRES = {("udp", ""), ("webrtc", ""), ("dds", ""), ("dds", "domain")}
"""The schemes a page may use, and what it may ask for behind the question mark."""

State = Literal["off", "connecting", "connected", "lost"]
Greet = Callable[[Robot], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineReport:
    """How the connection is."""

    state: State = "off"
    words: str = "No robot is connected."
    remedy: str = ""
    stage: str | None = None
    """Where connecting has failed, on wires that have stages."""


class Line:
    """Keeps one robot, and says how it is."""

    def __init__(self, greet: Greet, notify: Callable[[str], None]) -> None:
        self.url = ""
        self.report = LineReport()
        self.embedded: Embedded | None = None
        self._greet = greet
        self._notify = notify
        self._robot: Robot | None = None
        self._failure: RoteError | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def robot(self) -> Robot:
        """The robot; raises what is wrong where there is none."""
        if self._robot is not None:
            return self._robot
        if self.report.state == "off":
            raise NotConnectedError
        raise self._failure or LinkError(
            f"the robot at {self.url} is not connected yet", "Wait a moment."
        )

    @property
    def connected(self) -> Robot | None:
        """The robot, where there is one."""
        return self._robot

    @property
    def state(self) -> RobotState | None:
        """The newest state, with the health of a robot that lives in this process."""
        state = None if self._robot is None else self._robot.state
        if state is None or self.embedded is None:
            return state
        return self.embedded.with_health(state)

    @property
    def wire(self) -> str:
        """The wire's scheme; empty where nothing is connected."""
        return split_url(self.url).scheme

    @property
    def abilities(self) -> frozenset[str]:
        """What this robot can do; one that lives in this process can do more."""
        if self._robot is None:
            return frozenset()
        return self._robot.abilities | (ABILITIES if self.embedded is not None else frozenset())

    async def open(self, url: str, key: str | None = None) -> None:
        """Begin to connect to a robot, and go on until `close`."""
        await self.close()
        self.url, self._failure = url, None
        self.report = LineReport(state="connecting", words=f"Connecting to {url}.")
        self._task = asyncio.create_task(self._keep(url, key), name=f"rote line {url}")

    async def close(self) -> None:
        """Let go of the robot. Safe to repeat."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self.url, self.report = "", LineReport()

    async def _keep(self, url: str, key: str | None) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                async with self._reached(url, key) as robot:
                    pause_s = FIRST_PAUSE_S
                    async for _ in robot.states():
                        pass
            except (BadRequestError, MissingExtraError, StoreError) as error:
                self._fail(error, "off")  # trying again would change nothing
                return
            except RoteError as error:
                self._fail(error, "lost")
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    @asynccontextmanager
    async def _reached(self, url: str, key: str | None) -> AsyncIterator[Robot]:
        """Connect once, and have the robot in the block."""
        embedded = Embedded(url) if split_url(url).scheme == "sim" else None
        world = None if embedded is None else embedded.world
        wanted = key if split_url(url).scheme == "webrtc" else None
        try:
            async with connect(
                url, timeout=CONNECT_S, key=wanted, reconnect=False, world=world
            ) as robot:
                await self._greet(robot)
                self._robot, self.embedded = robot, embedded
                if self.report.state == "lost":
                    self._notify("The robot is back.")
                self.report = LineReport(state="connected", words=f"Connected to {url}.")
                try:
                    yield robot
                finally:
                    self._robot = self.embedded = None
        finally:
            if embedded is not None:
                embedded.close()

    def _fail(self, error: RoteError, state: State) -> None:
        if isinstance(error, PeerLostError):
            self._notify(f"The robot is lost: {error}.")
        self._failure = error
        self.report = LineReport(
            state=state,
            words=f"{error}.",
            remedy=error.remedy,
            stage=error.stage if isinstance(error, StageError) else None,
        )


def check_url(url: str) -> str:
    """Return a URL that a page may connect to; it names no file of this computer."""
    parts = split_url(url)
    asks = parts.query.partition("=")[0]
    if url == EMBEDDED or (parts.netloc and (parts.scheme, asks) in _WIRES):
        return url
    raise BadRequestError(
        f"{url!r} is not a robot that a page can connect to",
        "Use webrtc://HOST, webrtc://SERIAL, webrtc://ap, dds://INTERFACE, udp://HOST[:PORT] or "
        f"{EMBEDDED}.",
    )
