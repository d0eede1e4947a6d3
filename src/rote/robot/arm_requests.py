"""Requests that move the arms or make them soft, retried while arms settle after a teaching."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from rote import messages as m
from rote.errors import LinkError, RefusedError, RoteError
from rote.messages import Code, Phase, RobotState
from rote.platform.loop import to_the_end
from rote.robot.api_values import Waiting, Waits
from rote.robot.link import RobotLink
from rote.robot.motion_watch import JointWatch

RELEASE_S = 10.0
"""Time limit for the arms to settle after a teaching; after that a refused motion is an error. In
the logs of a G1 the release begins after up to 0.9 s and takes about 4.1 s; this is twice that.
"""
LINGERS_S = 4.0
"""How long after a refusal arms may still be reported as soft, or not at all, although a teaching
of another client has ended: up to 0.9 s in the logs of a G1, and an R1 reports every 3 s.
"""
_RETRY_S = 0.5
"""Interval between two requests to the robot while waiting, in seconds."""
_MOTIONLESS_S = 0.5
"""After a teaching, joints that have not moved for this many seconds are at rest. During a
release all of them move.
"""


class ArmRequests:
    """Makes arms soft, and moves them; knows the teachings of this connection."""

    def __init__(self, link: RobotLink) -> None:
        self._link = link
        self._teaching = False
        self._taught: dict[str, float] = {}
        """Loop time at which each teaching of this connection ended, by action name."""

    def note_teaching(self, name: str, on: bool) -> None:
        """Note that the arms may be soft from now on, or that they hold again."""
        self._teaching = on
        if not on:
            self._taught[name] = self._link.loop.time()

    def taught_at(self, name: str) -> float | None:
        """Return the loop time at which an action was taught over this connection, or None."""
        return self._taught.get(name)

    async def request_motion(
        self, command: m.Command, name: str, stops: int, on_request_sent: Callable[[], None]
    ) -> None:
        """Request a motion. If no reply arrives, or the caller is cancelled first, stop the robot:
        the motion may have begun.

        While arms settle after a teaching, the robot refuses every motion as busy: retry. Raises
        `RefusedError` if the robot was stopped since `stops` was read.
        """
        asked_s = self._link.loop.time()
        await self._wait_until_motionless(name, asked_s + RELEASE_S)
        while True:
            self._link.stops.check_none_since(stops)
            on_request_sent()
            try:
                await self._link.ask(command)
            except RefusedError as refused:
                await self._wait_while_settling(refused, name, asked_s)
            except (asyncio.CancelledError, LinkError):
                with suppress(RoteError):
                    await to_the_end(self._link.stop())
                raise
            else:
                self._teaching = False  # a motion ends it, or was refused
                self._link.unfinished.settle()
                self._link.supersede_stop(stops)
                return

    async def enter_teaching(self, command: m.EnterTeaching) -> None:
        """Request soft arms; retry while they settle after an earlier teaching."""
        asked_s, stops = self._link.loop.time(), self._link.stops.count
        while True:
            self._link.stops.check_none_since(stops)
            try:
                await self._link.ask(command)
            except RefusedError as refused:
                await self._wait_while_settling(refused, command.name, asked_s)
            else:
                self._link.supersede_stop(stops)
                return

    async def _wait_while_settling(self, refused: RefusedError, name: str, asked_s: float) -> None:
        """Wait until arms that are settling are idle; raise `refused` if they are not settling."""
        until = self._idle_deadline(asked_s)
        if refused.code != Code.BUSY or until is None:
            raise refused
        with self._link.announce_wait(Waiting(Waits.RELEASE, name, RELEASE_S)):
            await asyncio.sleep(_RETRY_S)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    async for state in self._link.states():
                        if not state.phase_told or not _is_settling(state):
                            return

    def _idle_deadline(self, asked_s: float) -> float | None:
        """Return the time by which arms that were busy at `asked_s` should settle by themselves.

        Arms settle after a teaching, or while they return from a motion. Arms that are reported as
        soft may be those of a teaching that has just ended elsewhere. Returns None if that time is
        over, or if this client teaches.
        """
        now, state = self._link.loop.time(), self._link.client.latest
        if self._teaching:
            return None
        until = asked_s
        if self._taught_lately or (state is not None and state.phase is Phase.RETURN):
            until += RELEASE_S
        elif state is None or not state.phase_told or state.recording:
            until += LINGERS_S
        return until if now < until else None

    @property
    def _taught_lately(self) -> bool:
        """Whether arms may be coming to rest after a teaching of this connection."""
        now = self._link.loop.time()
        return any(now - ended < RELEASE_S for ended in self._taught.values())

    async def _wait_until_motionless(self, name: str, until: float) -> None:
        """After a teaching of this connection, wait until the joints are motionless.

        For robots that report joints but no arm phase: a joint that still moves when the motion is
        requested would be mistaken for the start of the motion.
        """
        link = self._link
        state = link.client.latest
        if state is None or state.phase_told or not state.joints_told:
            return
        if self._teaching or not self._taught_lately:
            return
        joints = JointWatch(link.build)
        with (
            link.announce_wait(Waiting(Waits.RELEASE, name, RELEASE_S)),
            suppress(TimeoutError),
        ):
            async with asyncio.timeout_at(until):
                async for state in link.states():
                    if state.joints_told:
                        joints.on_state(state, link.loop.time())
                    if joints.motionless_s(link.loop.time()) >= _MOTIONLESS_S:
                        return


def _is_settling(state: RobotState) -> bool:
    """Whether a recording or a motion is just ending."""
    return state.phase is Phase.RETURN or state.recording
