"""Sends a stop to the robot repeatedly, until the robot confirms it."""

import asyncio
import logging
from dataclasses import dataclass

from rote.errors import RoteError
from rote.robot.robot import Robot
from rote.text import Text
from rote.web.services.background_tasks import BackgroundTasks
from rote.web.services.connection_keeper import ConnectionKeeper
from rote.web.services.events import Notify, error_text

STOP_ANSWER_S = 1.2
"""How long the answer to a stop waits for the robot's confirmation."""
STOP_AGAIN_S = 0.5
"""Pause before a stop that was not confirmed is sent again."""
_UNCONFIRMED = (
    "STOP was NOT confirmed by the robot{why}. It is sent again until the robot confirms it. "
    "Use the robot's own remote (L2+B)."
)

_log = logging.getLogger("rote")


@dataclass(slots=True, eq=False)
class PendingStop:
    """A stop that was requested and that the robot has not confirmed yet."""

    since_s: float
    message: str = ""
    """Empty while the robot still has time to answer."""
    task: "asyncio.Task[None] | None" = None
    """The task that sends it again."""


class StopSender:
    """Sends stops, and repeats one that the robot has not confirmed."""

    def __init__(self, connection: ConnectionKeeper, notify: Notify) -> None:
        self._connection, self._notify = connection, notify
        self._loop = asyncio.get_running_loop()
        self._pending: PendingStop | None = None
        self._tasks = BackgroundTasks()

    @property
    def unconfirmed(self) -> PendingStop | None:
        """The stop that the robot should have confirmed by now; None if there is none."""
        stop = self._pending
        return stop if stop is not None and stop.message else None

    async def send(self, robot: Robot | None) -> PendingStop | None:
        """Send a stop; return None if the robot confirmed it in time.

        Otherwise return the stop, which is sent again until the robot confirms it.
        """
        stop = self._pending = self._pending or PendingStop(self._loop.time())
        if robot is not None:
            sending = self._tasks.spawn(self._send_once(robot, stop))
            await asyncio.wait({sending}, timeout=STOP_ANSWER_S)
            if sending.done() and sending.result():
                return None
        if self._pending is stop:
            self._repeat_until_confirmed(stop)
        return stop

    async def send_missed(self, robot: Robot) -> None:
        """Send a stop that is not confirmed yet to a robot that was just reconnected."""
        if self._pending is not None:
            await self._send_once(robot, self._pending)

    async def _send_once(self, robot: Robot, stop: PendingStop) -> bool:
        """Send a stop once; return whether the robot has confirmed it."""
        try:
            await robot.stop()
        except Exception as error:  # whatever it is, the robot has not confirmed the stop
            if not isinstance(error, RoteError | TimeoutError):
                _log.exception("a stop failed unexpectedly")
            if self._pending is stop:
                self._repeat_until_confirmed(stop, error)
            return False
        if self._pending is stop:
            self._pending = None
            if stop.message:
                self._notify("The robot has confirmed the STOP.", "stop-confirmed")
        return True

    def _repeat_until_confirmed(self, stop: PendingStop, error: Exception | None = None) -> None:
        """Report that a stop was not confirmed in time, and send it again until it is."""
        if not stop.message:
            error = error or self._connection.failure
            why: str = "" if error is None else Text(": {error}", error=error_text(error))
            stop.message = Text(_UNCONFIRMED, why=why)
            self._notify(stop.message, "stop-unconfirmed", safety=True)
        if stop.task is None:
            stop.task = self._tasks.spawn(self._keep_sending(stop))

    async def _keep_sending(self, stop: PendingStop) -> None:
        while self._pending is stop:
            await asyncio.sleep(STOP_AGAIN_S)
            robot = self._connection.connected
            if robot is not None and self._pending is stop:
                await self._send_once(robot, stop)

    def forget(self) -> None:
        """Give up a pending stop: another robot is connected, or none."""
        stop, self._pending = self._pending, None
        if stop is not None:
            message = f"The robot at {self._connection.url} never confirmed the STOP: look at it."
            stop.message = stop.message or message
            self._notify(message, "stop-unconfirmed", safety=True)

    def close(self) -> None:
        """Stop sending. Safe to call twice."""
        self._tasks.cancel()
