"""What a robot reports about itself: findings before it moves, its controller and versions."""

import asyncio
from contextlib import suppress
from typing import Any

from rote import messages as m
from rote.errors import RefusedError, RoteError
from rote.findings import Finding
from rote.model.registry import family_of
from rote.robot import preflight
from rote.robot.action_store import ActionStore
from rote.robot.link import RobotLink
from rote.robot.modes import MessageModes
from rote.robot.take import MIN_RATE_HZ

_CONTROLLER_S = 3.0
_HEALTH_S = 1.5
_RATE_STATES = 5
"""Number of states used to estimate the report rate."""


class Inspector:
    """Reads the condition of one robot."""

    def __init__(self, link: RobotLink, store: ActionStore, modes: MessageModes) -> None:
        self._link = link
        self._store = store
        self._modes = modes

    async def find_problems(self) -> list[Finding]:
        """Return what a person should know before the robot moves, the worst first."""
        link = self._link
        state = await link.next_state()
        if state.battery_percent is None and "health" in link.abilities:
            await self._wait_for_battery_level()
        actions = await self._store.read_list_if_readable()
        controller = await self.read_controller()
        return preflight.findings(
            link.client.latest,
            actions,
            link.build,
            controller,
            missing=link.client.missing,
            is_slow=await self._reports_slowly(),
        )

    async def find_take_problems(self) -> list[Finding]:
        """Return what makes a take on this computer poorer than the robot's own recording."""
        return preflight.take_findings(
            self._link.client.missing, is_slow=await self._reports_slowly()
        )

    async def read_controller(self) -> str | None:
        """Return which controller drives the robot: "" in debug mode, None if not reported."""
        if "controller" not in self._link.abilities:
            return None
        try:
            async with asyncio.timeout(_CONTROLLER_S):
                reply = await self._link.ask(m.ReadController())
        except (TimeoutError, RefusedError):
            return None  # Older firmware does not know this request.
        assert isinstance(reply, m.Controller)
        return reply.name

    async def describe(self) -> dict[str, Any]:
        """Return its mode, its controller, and the versions that its services report."""
        mode = await self._modes.read()
        return {
            "mode": {"id": mode.id, "name": mode.name},
            "controller": await self.read_controller(),
            "versions": await self._read_versions(),
        }

    async def _read_versions(self) -> dict[str, str]:
        ask = getattr(self._link.client, "version", None)  # exists only on wires with services
        versions: dict[str, str] = {}
        family = family_of(self._link.build)
        if ask is not None and family is not None:
            for service in family.services:
                with suppress(RoteError):
                    versions[service.name] = await ask(service.name)
        return versions

    async def _reports_slowly(self) -> bool:
        """Whether the joints are reported, but less than `MIN_RATE_HZ` times per second."""
        reports = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(_RATE_STATES / MIN_RATE_HZ):
                async for state in self._link.states():
                    reports += state.joints_told and bool(state.joints_rad)
                    if reports == _RATE_STATES:
                        return False
        latest = self._link.client.latest
        return latest is not None and bool(latest.joints_rad)

    async def _wait_for_battery_level(self) -> None:
        """Wait a moment for the battery level, which robots report once per second."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_HEALTH_S):
                async for state in self._link.states():
                    if state.battery_percent is not None:
                        return
