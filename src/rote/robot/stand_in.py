"""A robot without a body: the base of robots that only take part, in benchmarks and large demos.

It has every member of `rote.robot.robot.Robot`, and mypy compares them where it is used as one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Unpack

from rote.findings import Finding
from rote.messages import RobotState
from rote.model.family import Build, Family
from rote.model.g1 import G1_29
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.robot.play_options import TrackKeywords
from rote.robot.streaming import Streaming
from rote.robot.teaching import Teaching
from rote.robot.unsupported import CannotRobot

Listener = Callable[[RobotState], object]


class StandIn(CannotRobot):
    """A connected G1 that reports nothing and plays nothing; `stop` has no effect."""

    abilities: frozenset[str] = frozenset()
    build: Build = G1_29
    family: Family | None = None
    state: RobotState | None = None

    def __init__(self, url: str) -> None:
        self.url = url

    async def states(self) -> AsyncIterator[RobotState]:
        """Wait for a state that never comes."""
        await asyncio.Event().wait()
        yield RobotState(joints_rad=(), velocities_rad_s=())

    def on_state(self, listener: Listener) -> Callable[[], None]:
        """Never call `listener`."""
        return lambda: None

    async def preflight(self) -> list[Finding]:
        """Return no findings."""
        return []

    async def describe(self) -> dict[str, Any]:
        """Return no facts."""
        return {}

    async def stop(self) -> None:
        """Do nothing."""

    def check_streamable(self) -> None:
        """Allow every stream."""

    def check_wanted(self, ability: str) -> None:
        """Allow every ability."""

    async def close(self) -> None:
        """Do nothing."""

    def teach(
        self,
        name: str,
        *,
        overwrite: bool = False,
        force: bool = False,
        library: Library | None = None,
        loop: bool = False,
        compensation: Sequence[float] = (),
    ) -> Teaching:
        """Raise `UnsupportedError`."""
        self._raise_unsupported("be taught")

    async def check_teachable(
        self, name: str, *, overwrite: bool = False, force: bool = False
    ) -> bool:
        """Raise `UnsupportedError`."""
        self._raise_unsupported("be taught")

    def play_track(self, track: Track, **options: Unpack[TrackKeywords]) -> Streaming:
        """Raise `UnsupportedError`."""
        self._raise_unsupported("play a track")
