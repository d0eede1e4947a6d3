"""What the parts of one `MessageRobot` share: its client, its stops, and the waits it announces."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from rote import messages as m
from rote.errors import CautionError, NoAnswerError, RefusedError, RoteError
from rote.messages import Code, RobotState, explain
from rote.model.family import Build
from rote.model.registry import modes_of
from rote.robot.api_values import RobotClient, Waiting, WaitListener
from rote.text import Act, Text
from rote.transport.base_client import add_listener, notify_listeners
from rote.transport.wires import unsupported

# ---- what must end before the connection is closed -----------------------------------------------


class Unfinished:
    """The unfinished teachings and playbacks of one robot, each with a function that ends it."""

    def __init__(self) -> None:
        self._end_functions: dict[object, Callable[[], Awaitable[object]]] = {}
        self._lost: set[object] = set()

    def add(self, operation: object, end: Callable[[], Awaitable[object]]) -> None:
        """Remember that `operation` has begun, and that `end` ends it."""
        self._end_functions[operation] = end

    def remove(self, operation: object) -> None:
        """Forget `operation`, which has ended. Safe to repeat."""
        self._end_functions.pop(operation, None)

    def mark_lost(self, operation: object) -> None:
        """Mark `operation` as lost: the robot was lost, so it is unknown whether it has ended."""
        self._lost.add(operation)

    def remove_lost(self) -> None:
        """Remove the lost operations. The robot confirmed a stop or began a motion: they ended."""
        while self._lost:
            self.remove(self._lost.pop())

    async def end_all(self) -> None:
        """End everything: joints that are being taught hold, a playback stops softly.

        Everything is tried even if something fails; then the first error is raised.
        """
        first_error: RoteError | None = None
        while self._end_functions:
            _, end = self._end_functions.popitem()
            try:
                await end()
            except RoteError as error:
                first_error = first_error or error
        if first_error is not None:
            raise first_error


# ---- the states ----------------------------------------------------------------------------------

_State = TypeVar("_State")

MAX_QUEUED_STATES = 256
"""Maximum number of states queued for a slow reader; beyond it the oldest are dropped."""


async def iterate_states(
    on_state: Callable[[Callable[[_State], object]], Callable[[], None]],
    on_loss: Callable[[Callable[[RoteError], None]], Callable[[], None]],
) -> AsyncIterator[_State]:
    """Yield states as they arrive; raise the error when the robot is lost.

    Both arguments are functions that take a listener and return a function that removes it.
    """
    queue: asyncio.Queue[_State | RoteError] = asyncio.Queue(MAX_QUEUED_STATES)

    def put(item: _State | RoteError) -> None:
        if queue.full():
            queue.get_nowait()
        queue.put_nowait(item)

    listener_removers = (on_state(put), on_loss(put))
    try:
        while True:
            item = await queue.get()
            if isinstance(item, RoteError):
                raise item
            yield item
    finally:
        for remove_listener in listener_removers:
            remove_listener()


# ---- the stops -----------------------------------------------------------------------------------


class StopCounter:
    """The number of stops requested over one connection.

    An operation reads `count` when it is requested, and again before it moves anything: if the
    count has changed, a stop came between.
    """

    def __init__(self) -> None:
        self.count = 0

    def add_stop(self) -> None:
        """Count one more stop."""
        self.count += 1

    def check_none_since(self, count: int) -> None:
        """Raise `RefusedError` if a stop was requested since `count` was read."""
        if self.count != count:
            raise RefusedError(Code.SUPERSEDED, *explain(Code.SUPERSEDED))


STATE_TIMEOUT_S = 10.0
"""Timeout for a state of a robot that answers, in seconds."""
REPORT_MACHINE = Text(
    "Name the build if you know it: {name_build}. Otherwise please send us the doctor's "
    "report on this robot: {doctor}.",
    name_build=Act.NAME_BUILD,
    doctor=Act.DOCTOR,
)
BY_FORCE = Text("Nothing was sent to the robot. To let the robot decide: {force}.", force=Act.FORCE)
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

    def require_ability(self, ability: str, operation: str) -> None:
        """Raise `UnsupportedError` about `operation` if this wire lacks the ability."""
        if ability not in self.abilities:
            raise unsupported(operation, self.client.wire, ability)

    async def ask(self, command: m.Command) -> m.Reply:
        """Send a command and return the reply; raise `RefusedError` if the robot refuses."""
        _log.info("ask %s", command)
        try:
            reply = await self.client.ask(command)
        except CautionError:
            raise
        except RefusedError as error:
            if error.code == Code.WRONG_STATE:  # the wire does not know the build's buttons
                remedy = self.explain(error.code)[1]
                raise RefusedError(error.code, error.message, remedy) from error
            raise
        _log.info("reply %s", reply)
        if isinstance(reply, m.Status) and reply.code != Code.OK:
            message, remedy = self.explain(reply.code)
            message = f"{message} ({reply.note})" if reply.note else message
            raise RefusedError(reply.code, message, remedy)
        return reply

    def explain(self, code: int) -> tuple[str, str]:
        """Return what a refusal of this robot means, and what to do about it."""
        return m.explain(code, modes_of(self.build) if self.client.recognised else None)

    # ---- stops ----------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop whatever plays or is being taught, softly."""
        self.stops.add_stop()
        listeners = tuple(self._stop_listeners)
        notify_listeners(listeners, False, self.loop)
        try:
            await self.ask(m.StopMotion())
            self.unfinished.remove_lost()
        finally:
            notify_listeners(listeners, True, self.loop)

    def on_stop(self, listener: Callable[[bool], None]) -> Callable[[], None]:
        """Call `listener(ended)` twice for each stop: with False when it is requested, and with
        True when the robot has answered or the request has failed. Return a function that removes
        the listener.
        """
        return add_listener(self._stop_listeners, listener)

    def clear_pending_stop(self, stop_count: int) -> None:
        """Clear `stop_pending`, because the robot has accepted a later request.

        Does nothing if another stop was requested since `stop_count` was read.
        """
        if self.stops.count == stop_count:
            self.client.stop_pending = False

    # ---- states and waits -----------------------------------------------------------------------

    def states(self) -> AsyncIterator[RobotState]:
        """Yield states as they arrive; raises `LinkError` when the robot is lost."""
        return iterate_states(self.client.on_state, self.client.on_loss)

    async def next_state(self) -> RobotState:
        """Return a state that is reported after this call."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STATE_TIMEOUT_S):
                async for state in self.states():
                    return state
        raise NoAnswerError(
            "the robot answers, but reports no state",
            "Try again. If it keeps failing, switch the robot off and on.",
        )

    def on_waiting(self, listener: WaitListener) -> Callable[[], None]:
        """Call `listener` with each `Waiting` when it begins, and with None when it is over.
        Return a function that removes it.
        """
        return add_listener(self._wait_listeners, listener)

    @contextmanager
    def announce_wait(self, waiting: Waiting) -> Iterator[None]:
        """Notify the listeners of `on_waiting` while the block runs."""
        notify_listeners(self._wait_listeners, waiting, self.loop)
        try:
            yield
        finally:
            notify_listeners(self._wait_listeners, None, self.loop)
