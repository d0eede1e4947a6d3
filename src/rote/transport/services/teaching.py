"""Teaching by the service arm: soft arms, kept alive by a request every second."""

import asyncio

from rote import messages as m
from rote.errors import LinkError, RefusedError
from rote.transport.services.connection import CallService, RpcConnection
from rote.transport.services.reports import RobotReports
from rote.transport.watchdog import Watchdog
from rote.wire.services import rpc

KEEP_TEACHING_S = 1.0
"""Interval of the requests that keep the arms soft."""


class ServiceTeaching:
    """Teaching by this client: soft arms, the recording, and keep-alive requests."""

    def __init__(self, connection: RpcConnection, reports: RobotReports) -> None:
        self._connection, self._reports = connection, reports
        self._loop = asyncio.get_running_loop()
        self._name = ""
        """The name of the recording; empty while this client does not teach."""
        self._keep_alive_timer: asyncio.TimerHandle | None = None
        self._watchdog = Watchdog(
            self._loop,
            "the arms are soft and the robot must receive a message every second; "
            "it ends teaching after 10 s without one",
        )

    @property
    def may_be_soft(self) -> bool:
        """Whether this client teaches, or the robot reports soft arms or nothing about its arms."""
        return bool(self._name) or self._reports.teaching or not self._reports.arms_known

    async def enter_teaching(self, command: m.EnterTeaching) -> m.Reply:
        """Make the arms soft and record."""
        name_before, self._name = self._name, command.name
        # Before the answer, because the arms are soft even if only the answer is lost.
        self.keep_alive(on=True)
        try:
            # An answer without a status is enough: states and the list of actions show the result.
            await self._connection.call(rpc.start_teaching(command.name), verified=True)
        except RefusedError:
            self._name = name_before
            self.keep_alive(on=bool(name_before))
            raise
        return m.Status()

    async def pause_recording(self, command: m.PauseRecording) -> m.Reply:
        """Pause or continue the recording."""
        await self._connection.call(rpc.pause_teaching(paused=command.paused))
        return m.Status()

    async def exit_teaching(self, _: m.ExitTeaching) -> m.Reply:
        """End teaching if this client began it; otherwise do nothing."""
        if self._name:
            await self.end_teaching(self._connection.call)
        return m.Status()

    async def end_teaching(self, call_service: CallService) -> None:
        """Make soft arms hold, whichever client made them soft."""
        self.keep_alive(on=False)
        ended_name = self._name
        try:
            await call_service(rpc.STOP_TEACHING, verified=True)
        except LinkError:
            self._connection.mark_stop_pending()  # the arms may still be soft
            raise
        except RefusedError:
            self._name = ""
            if ended_name or self._reports.teaching:  # otherwise there was nothing to end
                raise
        if self._name == ended_name:  # otherwise another teaching began while this one ended
            self._name = ""

    def on_loss(self) -> None:
        """Stop the keep-alives, and mark a stop as pending if this client was teaching."""
        self.keep_alive(on=False)
        if self._name:
            self._connection.mark_stop_pending()  # the arms may still be soft
        self._name = ""

    def keep_alive(self, *, on: bool) -> None:
        """Start or stop the repeated requests that keep the arms soft."""
        if self._keep_alive_timer is not None:
            self._keep_alive_timer.cancel()
            self._keep_alive_timer = None
        if on and self._connection.session.live:
            self._keep_alive_timer = self._loop.call_later(KEEP_TEACHING_S, self._send_keep_alive)
        self._watchdog.watch(on=on)

    def _send_keep_alive(self) -> None:
        """Ask the robot to keep its arms soft, and schedule the next request."""
        session = self._connection.session
        if session.live and self._name:
            session.request(rpc.KEEP_TEACHING, self._connection.now())
            self._connection.flush()
            self.keep_alive(on=True)
