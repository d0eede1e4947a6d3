"""What the parts of one `MessageRobot` share: its client, its stops, and the waits it announces."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress

from rote import messages as m
from rote.errors import NoAnswerError, RefusedError
from rote.messages import Code, RobotState
from rote.model.family import Build
from rote.robot.api_values import RobotClient, Waiting, WaitListener
from rote.robot.state_feed import iterate_states
from rote.robot.stop_counter import StopCounter
from rote.robot.unfinished import Unfinished
from rote.text import Act, Text
from rote.transport.base_client import add_listener, notify_listeners
from rote.transport.wires import unsupported

STATE_S = 10.0
"""Timeout for a state of a robot that answers, in seconds."""
REPORT_MACHINE = Text(
    "Name the build if you know it: {name_build}. Otherwise please send us the doctor's "
    "report on this robot: {doctor}.",
    name_build=Act.NAME_BUILD,
    doctor=Act.DOCTOR,
)
BY_FORCE = Text("The robot was not asked. To leave it to the robot: {force}.", force=Act.FORCE)
_log = logging.getLogger("rote")


class RobotLink:
    """The connection to one robot, as its parts use it."""

    def __init__(self, client: RobotClient) -> None:
        self.client = client
        self.unfinished = Unfinished()
        """The teachings and playbacks that have begun and not ended."""
        self.loop = asyncio.get_running_loop()
        self.stops = StopCounter()
        self._stop_listeners: list[Callable[[bool], None]] = []
        self._wait_listeners: list[WaitListener] = []

    @property
    def build(self) -> Build:
        """Which machine the robot is."""
        return self.client.build

    @property
    def abilities(self) -> frozenset[str]:
        """What can be done over this wire."""
        return self.client.abilities

    def require_ability(self, ability: str, what: str) -> None:
        """Raise `UnsupportedError` about `what` if this wire lacks the ability."""
        if ability not in self.abilities:
            raise unsupported(what, self.client.wire, ability)

    async def ask(self, command: m.Command) -> m.Reply:
        """Send a command and return the reply; raise `RefusedError` if the robot refuses."""
        _log.info("ask %s", command)
        reply = await self.client.ask(command)
        _log.info("reply %s", reply)
        if isinstance(reply, m.Status) and reply.code != Code.OK:
            raise refused_error(reply.code, reply.note)
        return reply

    # ---- stops ----------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop whatever plays or is being taught, softly."""
        self.stops.add_stop()
        listeners = tuple(self._stop_listeners)
        notify_listeners(listeners, False, self.loop)
        try:
            await self.ask(m.StopMotion())
            self.unfinished.settle()
        finally:
            notify_listeners(listeners, True, self.loop)

    def on_stop(self, listener: Callable[[bool], None]) -> Callable[[], None]:
        """Call `listener` with False when a stop is requested, and with True when that request
        ends, answered or not. Return a function that removes it.
        """
        return add_listener(self._stop_listeners, listener)

    def supersede_stop(self, stops: int) -> None:
        """Forget an unconfirmed stop once the robot has accepted a request made after it."""
        if self.stops.count == stops:
            self.client.stop_pending = False

    # ---- states and waits -----------------------------------------------------------------------

    def states(self) -> AsyncIterator[RobotState]:
        """Yield states as they arrive; raises `LinkError` when the robot is lost."""
        return iterate_states(self.client.on_state, self.client.on_loss)

    async def next_state(self) -> RobotState:
        """Return a state that is reported after this call."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STATE_S):
                async for state in self.states():
                    return state
        raise NoAnswerError(
            "the robot answers, but reports no state",
            "Try again; if it stays so, switch the robot off and on.",
        )

    def on_waiting(self, listener: WaitListener) -> Callable[[], None]:
        """Call `listener` with each `Waiting` when it begins, and with None when it is over.
        Return a function that removes it.
        """
        return add_listener(self._wait_listeners, listener)

    @contextmanager
    def announce_wait(self, what: Waiting) -> Iterator[None]:
        """Notify the listeners of `on_waiting` while the block runs."""
        notify_listeners(self._wait_listeners, what, self.loop)
        try:
            yield
        finally:
            notify_listeners(self._wait_listeners, None, self.loop)


def refused_error(code: int, note: str = "") -> RefusedError:
    """Return the error for a refusal by the robot, with the robot's note if there is one."""
    message, remedy = m.explain(code)
    return RefusedError(code, f"{message} ({note})" if note else message, remedy)
