"""What a robot reports about itself: findings before it moves, its controller and versions."""

import asyncio
from contextlib import suppress
from typing import Any

from rote import messages as m
from rote.errors import NoAnswerError, RefusedError, RoteError
from rote.findings import Finding
from rote.messages import UNREPORTED_MODE
from rote.model.registry import family_of
from rote.robot import preflight
from rote.robot.action_store import ActionStore
from rote.robot.api_values import Actions
from rote.robot.link import RobotLink
from rote.robot.modes import MessageModes
from rote.robot.take import MIN_RATE_HZ

_READ_TIMEOUT_S = 3.0
"""Timeout in seconds for the controller, and for the list of services."""
_BATTERY_TIMEOUT_S = 1.5
"""Timeout in seconds for the battery level; robots report it once per second."""
_RATE_STATES = 5
"""Number of states used to estimate the report rate."""


class Inspector:
    """Reads the condition of one robot."""

    def __init__(self, link: RobotLink, store: ActionStore, modes: MessageModes) -> None:
        self._link = link
        self._store = store
        self._modes = modes

    async def find_problems(self) -> list[Finding]:
        """Return the findings that matter before the robot moves, the worst first."""
        link = self._link
        state = await link.next_state()
        if state.mode == UNREPORTED_MODE:
            await self._modes.read()
        if state.battery_percent is None and "health" in link.abilities:
            await self._wait_for_battery_level()
        actions = await self._read_actions_if_answered()
        controller = await self.read_controller()
        return preflight.find_problems(
            link.client.latest,
            actions,
            link.build,
            controller,
            missing=link.client.missing,
            is_slow=await self._reports_slowly(),
            is_recognised=link.client.recognised,
            rival_service=await self._find_rival_service(),
        )

    async def find_take_problems(self) -> list[Finding]:
        """Return why a take on this computer would be poorer than the robot's own recording."""
        return preflight.find_take_problems(
            self._link.client.missing, is_slow=await self._reports_slowly()
        )

    async def read_controller(self) -> str | None:
        """Return which controller drives the robot: "" in debug mode, None if not reported."""
        if "controller" not in self._link.abilities:
            return None
        try:
            async with asyncio.timeout(_READ_TIMEOUT_S):
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
        # Only clients of wires with services have `version`.
        read_version = getattr(self._link.client, "version", None)
        versions: dict[str, str] = {}
        family = family_of(self._link.build)
        if read_version is not None and family is not None:
            for service in family.services:
                with suppress(RoteError):
                    versions[service.name] = await read_version(service.name)
        return versions

    async def _read_actions_if_answered(self) -> Actions:
        """Return the list of actions; if the robot does not answer, an empty list with a note.

        That is no error here: a robot without its arm service can still be streamed to.
        """
        try:
            return await self._store.read_list_if_readable()
        except NoAnswerError:
            return Actions((), (), notes=("its arm service does not answer",))

    async def _find_rival_service(self) -> str:
        """Return the robot's running service that would move the arms during a stream, or ""."""
        stream = self._link.build.stream
        # Only the DDS client has `list_running_services`.
        list_services = getattr(self._link.client, "list_running_services", None)
        if stream is not None and stream.rival_service and list_services is not None:
            with suppress(RoteError, TimeoutError):
                async with asyncio.timeout(_READ_TIMEOUT_S):
                    if stream.rival_service in await list_services():
                        return stream.rival_service
        return ""

    async def _reports_slowly(self) -> bool:
        """Whether the joints are reported, but less than `MIN_RATE_HZ` times per second."""
        reports = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(_RATE_STATES / MIN_RATE_HZ):
                async for state in self._link.states():
                    if state.has_joints and state.joints_rad:
                        reports += 1
                    if reports == _RATE_STATES:
                        return False
        latest = self._link.client.latest
        return latest is not None and bool(latest.joints_rad)

    async def _wait_for_battery_level(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_BATTERY_TIMEOUT_S):
                async for state in self._link.states():
                    if state.battery_percent is not None:
                        return
