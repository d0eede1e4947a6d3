"""Teaching by the service arm: soft arms, kept alive by a request every second."""

import asyncio

from rote import messages as m
from rote.errors import LinkError, RefusedError
from rote.transport.services.connection import CallService, RpcConnection
from rote.transport.services.reports import RobotReports
from rote.transport.watchdog import Watchdog
from rote.wire.services import rpc

KEEP_TEACHING_S = 1.0


class ServiceTeaching:
    """At most one teaching of this client."""

    def __init__(self, connection: RpcConnection, reports: RobotReports) -> None:
        self._connection, self._reports = connection, reports
        self._loop = asyncio.get_running_loop()
        self._name = ""
        self._keep_alive_timer: asyncio.TimerHandle | None = None
        self._watchdog = Watchdog(
            self._loop,
            "the arms are soft and the robot must receive a message every second; "
            "it ends the teaching after 10 s without one",
        )

    @property
    def may_be_soft(self) -> bool:
        """Whether this client teaches, or the robot reports soft arms or nothing about its arms."""
        return bool(self._name) or self._reports.teaching or not self._reports.arms_known

    async def enter_teaching(self, command: m.EnterTeaching) -> m.Reply:
        """Make the arms soft and record."""
        before, self._name = self._name, command.name
        # Before the answer: if only the answer is lost, the arms are soft nevertheless.
        self.keep_alive(on=True)
        try:
            # The states, and finally the list of actions, show whether the robot records.
            await self._connection.call(rpc.start_teaching(command.name), verified=True)
        except RefusedError:
            self._name = before
            self.keep_alive(on=bool(before))
            raise
        return m.Status()

    async def pause_recording(self, command: m.PauseRecording) -> m.Reply:
        """Pause or continue the recording."""
        await self._connection.call(rpc.pause_teaching(paused=command.paused))
        return m.Status()

    async def exit_teaching(self, _: m.ExitTeaching) -> m.Reply:
        """End the teaching of this client, if there is one."""
        if self._name:
            await self.end_teaching(self._connection.call)
        return m.Status()

    async def end_teaching(self, call_service: CallService) -> None:
        """Make soft arms hold, whichever client made them soft."""
        self.keep_alive(on=False)
        ended = self._name
        try:
            await call_service(rpc.STOP_TEACHING, verified=True)
        except LinkError:
            self._connection.owe_stop()  # the arms may still be soft
            raise
        except RefusedError:
            self._name = ""
            if ended or self._reports.teaching:
                raise
        if self._name == ended:
            self._name = ""

    def on_loss(self) -> None:
        """Stop the repeated requests, and owe the lost robot a stop if its arms may be soft."""
        self.keep_alive(on=False)
        if self._name:
            self._connection.owe_stop()  # the arms may still be soft
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
        session = self._connection.session
        if session.live and self._name:
            session.request(rpc.KEEP_TEACHING, self._connection.now())
            self._connection.flush()
            self.keep_alive(on=True)
