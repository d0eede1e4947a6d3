"""The preflight findings of the connected robot, kept current without disturbing it."""

import asyncio
from contextlib import suppress

from rote.errors import RoteError
from rote.findings import Finding, worst_first
from rote.messages import RobotState
from rote.robot import preflight
from rote.robot.api_values import Actions
from rote.robot.robot import Robot
from rote.web.services.actions import ActionService
from rote.web.services.connection_keeper import ConnectionKeeper

_FINDINGS_S = 1.0


class RobotFindings:
    """What is wrong or unusual about the connected robot."""

    def __init__(self, connection: ConnectionKeeper, actions: ActionService) -> None:
        self._connection, self._actions = connection, actions
        self._controller: str | None = None
        self.inspected: list[Finding] = []
        """Preflight of a robot that stores no actions; otherwise findings from several states."""

    async def read_first(self, robot: Robot) -> None:
        """Inspect a robot that was just connected, once its actions are known."""
        self.inspected = await robot.preflight() if "list" not in robot.abilities else []

    async def read_controller(self, robot: Robot) -> None:
        """Ask a robot that was just connected which controller is selected."""
        self._controller = await robot.controller()

    async def refresh_forever(self) -> None:
        """Run the preflight of a robot that stores no actions; that sends nothing to it.

        For other robots the findings follow from the state and the list of actions; only those
        that need several states are read here.
        """
        while True:
            await asyncio.sleep(_FINDINGS_S)
            robot = self._connection.connected
            if robot is None:
                continue
            inspect = robot.take_findings if "list" in robot.abilities else robot.preflight
            with suppress(RoteError, TimeoutError):
                found = await inspect()
                if robot is self._connection.connected:
                    self.inspected = found

    def list_findings(self) -> list[Finding]:
        """Return the preflight findings; nothing is sent to the robot."""
        robot = self._connection.connected
        return [] if robot is None else self.judge_state(robot, robot.state)

    def judge_state(self, robot: Robot, state: RobotState | None) -> list[Finding]:
        """Return the preflight findings of a robot in this state."""
        if "list" not in robot.abilities:
            return self.inspected
        known = Actions((), ()) if self._actions.known is None else self._actions.known
        found = preflight.findings(state, known, robot.build, self._controller)
        return worst_first([*found, *self.inspected])
