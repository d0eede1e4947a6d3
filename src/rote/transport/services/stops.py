"""Stops: everything that may move or be soft is ended, and a stop stays pending until confirmed."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress

from rote import messages as m
from rote.errors import LinkError, NoAnswerError, RefusedError, RoteError
from rote.session.rpc import ChannelState
from rote.transport.services.connection import CallService, RpcConnection
from rote.transport.services.reports import RobotReports
from rote.transport.services.teaching import ServiceTeaching
from rote.wire.services import rpc
from rote.wire.services.rpc import NO_STATUS

STOPPED_S = 2.0
"""Timeout for the report that the robot has stopped, if its answer has no status."""


class ServiceStops:
    """Stops one robot by its services."""

    def __init__(
        self, connection: RpcConnection, reports: RobotReports, teaching: ServiceTeaching
    ) -> None:
        self._connection, self._reports, self._teaching = connection, reports, teaching

    async def stop_motion(self, _: m.StopMotion) -> m.Reply:
        """Stop everything. Raises the most serious problem if a part of it failed."""
        # `request` also works while a reconnect is being completed. The pending stop that begins
        # each session may have been sent before this one was requested.
        is_open = self._connection.session.state is ChannelState.READY
        call_service = self._connection.request if is_open else self._connection.call
        return await self._connection.confirm_stop(self._stop_all(call_service))

    async def send_pending_stop(self) -> None:
        """Send a pending stop, if there is one, as the first request of a session."""
        if self._connection.stop_pending:
            with suppress(RefusedError):  # final: a repeated request would be refused again
                await self._connection.confirm_stop(self._stop_all(self._connection.request))

    async def _stop_all(self, call_service: CallService) -> m.Reply:
        """Stop everything. All requests are sent at once: none waits for the answer to another."""
        self._reports.note_stop()
        stops: list[Awaitable[object]] = [self._stop_taught_action(call_service)]
        if self._teaching.may_be_soft:
            stops.append(self._teaching.end_teaching(call_service))
        if self._reports.arms.holding:
            stops.append(call_service(rpc.execute_preset(m.RELEASE_PRESET)))
        results = await asyncio.gather(*map(_catch_error, stops))
        if errors := [error for error in results if error is not None]:
            # A missing answer outranks a refusal: the robot may not have received the request.
            unanswered = [error for error in errors if isinstance(error, LinkError)]
            raise (unanswered or errors)[0]
        return m.Status()

    async def _stop_taught_action(self, call_service: CallService) -> None:
        """Stop a taught action; if the answer has no status, wait for a report that it stopped."""
        reports = self._reports
        answer = await call_service(rpc.STOP_TAUGHT, verified=True)
        if answer.code == NO_STATUS and not await reports.wait_until(
            lambda: reports.idle, STOPPED_S
        ):
            raise NoAnswerError(
                "the stop was sent, but the robot does not report whether it stopped",
                "Look at the robot; if it moves, use its remote: L2+B.",
            )


async def _catch_error(work: Awaitable[object]) -> RoteError | None:
    """Await `work`; return the `RoteError` that it raises, None if it succeeds."""
    try:
        await work
    except RoteError as error:
        return error
    return None
