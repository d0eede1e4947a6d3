"""The modes of the robot's controller, and which controller is selected."""

import asyncio
from contextlib import suppress

from rote import messages as m
from rote.errors import CautionError, DecodeError, NoAnswerError, RefusedError
from rote.transport.services.connection import CallService, RpcConnection
from rote.transport.services.reports import RobotReports
from rote.wire.services import rpc

READ_BACK_S = 0.25
CHANGE_MODE_S = 8.0
MODE_TIMEOUT_S = 1.5
"""Timeout for reading the mode on a new connection; short, because a stop waits for it."""


class ServiceModes:
    """Reads and changes one robot's mode by its services."""

    def __init__(self, connection: RpcConnection, reports: RobotReports) -> None:
        self._connection, self._reports = connection, reports

    async def read_first_mode(self) -> None:
        """Read the mode in a new session, if the robot answers."""
        # In debug mode no service answers for the controller, and some robots send odd answers; the
        # preflight reports that. In any case the robot can still be stopped.
        with suppress(TimeoutError, NoAnswerError, RefusedError, DecodeError):
            async with asyncio.timeout(MODE_TIMEOUT_S):
                await self._read_mode(self._connection.request)

    async def change_mode(self, command: m.ChangeMode) -> m.Reply:
        """Change the mode and read it back: a robot may confirm a change that it did not make."""
        reports = self._reports
        await reports.wait_for_recognition()
        if problem := reports.identity.mode_problem():
            raise CautionError(*problem)
        await self._connection.call(rpc.set_fsm(command.mode), verified=True)
        try:
            async with asyncio.timeout(CHANGE_MODE_S):
                while True:
                    await self._read_mode(self._connection.call)
                    if reports.mode == command.mode:
                        return m.Status()
                    await asyncio.sleep(READ_BACK_S)
        except TimeoutError:
            raise NoAnswerError(
                f"the robot accepted mode {command.mode:d} and is still in mode {reports.mode:d}",
                "Look at the robot; try the buttons of its remote. Robots of 29 joints with newer "
                "software do not know mode 500, but 501.",
            ) from None

    async def request_mode(self, _: m.ReadMode) -> m.Reply:
        """Read the mode and publish a state with it."""
        await self._read_mode(self._connection.call)
        self._reports.publish_state()
        return m.Status()

    async def read_controller(self, _: m.ReadController) -> m.Reply:
        """Return which controller is selected."""
        answer = await self._connection.call(rpc.CHECK_MODE, read=True)
        return m.Controller(rpc.decode_mode_check(answer.text))

    async def _read_mode(self, call_service: CallService) -> None:
        answer = await call_service(rpc.GET_FSM, read=True)
        self._reports.note_mode(rpc.decode_value(answer.text))
