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
REPORT_LAG_S = 4.0
"""Time for which reports may lag, in seconds: after another client's teaching has ended, arms may
still be reported as soft, or not at all. A G1 is up to 0.9 s late, and an R1 reports every 3 s.
"""
_RETRY_S = 0.5
"""Minimum time in seconds before a refused request is repeated."""
_MOTIONLESS_S = 0.5
"""After a teaching, joints that have not moved for this many seconds are at rest. During a
release all of them move.
"""


class ArmRequests:
    """Requests soft arms and motions, and remembers the teachings of this connection."""

    def __init__(self, link: RobotLink) -> None:
        self._link = link
        self._is_teaching = False
        self._taught_at: dict[str, float] = {}
        """Loop time at which each teaching of this connection ended, by action name."""

    def note_teaching_began(self) -> None:
        """Record that a teaching of this connection began: the arms may be soft."""
        self._is_teaching = True

    def note_teaching_ended(self, name: str) -> None:
        """Record that the teaching of the action `name` ended."""
        self._is_teaching = False
        self._taught_at[name] = self._link.loop.time()

    def find_taught_at(self, name: str) -> float | None:
        """Return the loop time at which an action was taught over this connection, or None."""
        return self._taught_at.get(name)

    async def request_motion(
        self, command: m.Command, name: str, stop_count: int, on_request_sent: Callable[[], None]
    ) -> None:
        """Request a motion called `name`; call `on_request_sent` just before each attempt.

        While arms settle after a teaching, the robot refuses every motion as busy, so the request
        is repeated. If no reply arrives, or the caller is cancelled first, the motion may have
        begun, so the robot is stopped. Raises `RefusedError` if a stop was requested since
        `stop_count` was read.
        """
        requested_s = self._link.loop.time()
        await self._wait_until_motionless(name, requested_s + RELEASE_S)
        while True:
            self._link.stops.check_none_since(stop_count)
            on_request_sent()
            try:
                await self._link.ask(command)
            except RefusedError as refused:
                await self._wait_while_settling(refused, name, requested_s)
            except (asyncio.CancelledError, LinkError):
                with suppress(RoteError):
                    await to_the_end(self._link.stop())
                raise
            else:
                self._is_teaching = False  # a robot that accepts a motion is not being taught
                self._link.unfinished.remove_lost()
                self._link.clear_pending_stop(stop_count)
                return

    async def enter_teaching(self, command: m.EnterTeaching) -> None:
        """Request soft arms; retry while they settle after an earlier teaching."""
        requested_s, stop_count = self._link.loop.time(), self._link.stops.count
        while True:
            self._link.stops.check_none_since(stop_count)
            try:
                await self._link.ask(command)
            except RefusedError as refused:
                await self._wait_while_settling(refused, command.name, requested_s)
            else:
                self._link.clear_pending_stop(stop_count)
                return

    async def _wait_while_settling(
        self, refused: RefusedError, name: str, requested_s: float
    ) -> None:
        """Wait until settling arms are idle. Raise `refused` if settling does not explain it."""
        deadline = self._find_idle_deadline(requested_s)
        if refused.code != Code.BUSY or deadline is None:
            raise refused
        with self._link.announce_wait(Waiting(Waits.RELEASE, name, RELEASE_S)):
            await asyncio.sleep(_RETRY_S)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    async for state in self._link.states():
                        if not state.has_phase or not _is_settling(state):
                            return

    def _find_idle_deadline(self, requested_s: float) -> float | None:
        """Return the loop time by which arms that were busy at `requested_s` should be idle.

        Arms settle after a teaching, and while they return from a motion. A robot that reports a
        recording, or no phase, may lag behind: another client's teaching may just have ended.
        Returns None if waiting is pointless: this client is teaching, nothing settles, or the time
        is over.
        """
        state = self._link.client.latest
        if self._is_teaching:
            return None
        if self._taught_recently or (state is not None and state.phase is Phase.RETURN):
            deadline = requested_s + RELEASE_S
        elif state is None or not state.has_phase or state.recording:
            deadline = requested_s + REPORT_LAG_S
        else:
            return None
        return deadline if self._link.loop.time() < deadline else None

    @property
    def _taught_recently(self) -> bool:
        """Whether the arms may still be settling after a teaching of this connection."""
        now = self._link.loop.time()
        return any(now - ended_at < RELEASE_S for ended_at in self._taught_at.values())

    async def _wait_until_motionless(self, name: str, deadline: float) -> None:
        """After a teaching of this connection, wait until the joints are motionless.

        This applies to robots that report joints but no arm phase. There, a joint that still moves
        when the motion is requested would be mistaken for the start of the motion.
        """
        link = self._link
        state = link.client.latest
        if state is None or state.has_phase or not state.has_joints:
            return
        if self._is_teaching or not self._taught_recently:
            return
        joints = JointWatch(link.build)
        with (
            link.announce_wait(Waiting(Waits.RELEASE, name, RELEASE_S)),
            suppress(TimeoutError),
        ):
            async with asyncio.timeout_at(deadline):
                async for state in link.states():
                    if state.has_joints:
                        joints.on_state(state, link.loop.time())
                    if joints.motionless_s(link.loop.time()) >= _MOTIONLESS_S:
                        return


def _is_settling(state: RobotState) -> bool:
    """Whether a recording or a motion is just ending."""
    return state.phase is Phase.RETURN or state.recording
