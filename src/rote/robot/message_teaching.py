"""Teaching backend for robots that store their own actions."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from rote import messages as m
from rote.errors import DecodeError, LinkError, NoAnswerError, RefusedError, RoteError
from rote.messages import RobotState
from rote.robot.action_store import ActionStore
from rote.robot.arm_requests import ArmRequests
from rote.robot.link import RobotLink
from rote.robot.take import MIN_RATE_HZ, Lack, Take
from rote.text import Act, Text

if TYPE_CHECKING:
    from rote.robot.teacher import Teacher  # which makes the backends

_RECORDING_KEPT = (
    "Nothing was saved. The robot holds the recording until the next one: robot.save keeps it. "
    "Or teach again."
)
_STOP_RECORDING_S = 0.5
"""Timeout for the reply to "stop recording" before teaching is left anyway."""
_MAX_UNCONFIRMED_POSES = 100_000
"""Maximum number of poses kept while the robot does not report that it records: 3 minutes at 500
per second.
"""
_BY_A_STOP = "the teaching was ended by a stop"
_BY_OTHERS = "the teaching was ended by another client, or by the robot itself"
_NEVER_SOFT_S = 5.0
"""A robot that accepted a teaching and reports for this long that its arms hold is not being
taught. Reports of the arms may be seconds late.
"""
_TEACH_AGAIN = Text("Look what the robot has kept: {list}. Then teach again.", list=Act.LIST)


class MessageTeachingBackend:
    """One teaching of a robot that understands `rote.messages`."""

    def __init__(
        self,
        teacher: "Teacher",
        link: RobotLink,
        store: ActionStore,
        arms: ArmRequests,
        name: str,
        *,
        overwrite: bool = False,
        loop: bool = False,
        compensation: tuple[float, ...] = (),
        force: bool = False,
    ) -> None:
        """With `force`, continue even if the robot never reports soft arms."""
        self._teacher = teacher
        self._link = link
        self._client = link.client
        self._store = store
        self._arms = arms
        self._stops = link.stops.count
        self._name = name
        self._overwrite = overwrite
        self._loop = loop
        self._compensation = compensation
        self._take: Take | None = None
        self._end: Callable[[RoteError], None] = lambda _: None
        self._undo: list[Callable[[], None]] = []
        self._loss: RoteError | None = None
        self._refused = False
        self._owns_action = False
        self._force = force
        self._stopped = False
        self._was_soft = self._seen_soft = False
        self._silent_hands: tuple[str, ...] = ()
        self._ending = False
        self._began_s = self._lasted_s = 0.0
        self._reported_recording = False
        self._unconfirmed_poses: list[tuple[int, tuple[float, ...]]] = []

    async def check(self) -> None:
        """Raise if teaching is not allowed, before anything goes soft."""
        exists = await self._teacher.check_teachable(
            self._name, overwrite=self._overwrite, force=self._force
        )
        self._link.stops.check_none_since(self._stops)
        self._owns_action = not exists

    async def begin(self, take: Take, end: Callable[[RoteError], None]) -> None:
        """Request soft arms and a recording."""
        self._take, self._end = take, end
        self._undo.append(self._client.on_loss(self._on_loss))
        self._undo.append(self._link.on_stop(self._on_stop))
        await self._enter_teaching()
        self._undo.append(self._client.on_state(self._on_state))
        await self._link.ask(m.Record(on=True))
        self._began_s = asyncio.get_running_loop().time()

    async def _enter_teaching(self) -> None:
        """Request soft arms.

        Once the robot accepts, the action of that name belongs to this teaching. Until then, or if
        the robot never replies, it belongs to it only if there was none before.
        """
        try:
            command = m.EnterTeaching(self._client.latest, self._name, self._compensation)
            await self._arms.enter_teaching(command)
        except RefusedError:
            self._refused = True
            raise
        finally:
            if not self._refused:
                self._arms.note_teaching(self._name, True)
        self._owns_action = True

    async def hold(self, *, keep: bool) -> None:
        """Leave teaching. The robot discards its recording unless `keep` is true."""
        self._ending = True
        self._lasted_s = asyncio.get_running_loop().time() - self._began_s
        if self._refused:
            return
        try:
            if isinstance(self._loss, LinkError):
                return
            await self._stop_recording()
            await self._link.ask(m.ExitTeaching())
        finally:
            self._arms.note_teaching(self._name, False)
        if self._take is not None:
            self._take.on_robot = self._stores_itself
        if self._owns_action and not keep:
            await self._link.ask(m.DiscardRecording(self._name))
            if self._take is not None:
                self._take.on_robot = False

    async def _stop_recording(self) -> None:
        """Send "stop recording", as the documents do; exiting ends the recording in any case.

        No failure here may keep the arms soft: the exit that follows is what matters.
        """
        with suppress(RefusedError, NoAnswerError, TimeoutError):
            async with asyncio.timeout(_STOP_RECORDING_S):
                await self._link.ask(m.Record(on=False))

    @property
    def _stores_itself(self) -> bool:
        """Whether the robot stores a recording by itself as soon as its teaching ends."""
        return "save" not in self._client.abilities

    def stop_listening(self) -> None:
        """Stop listening to the robot."""
        for undo in self._undo:
            undo()
        take = self._take
        if take is None:
            return
        if not take.samples:  # the robot reported joints, but never that it records
            for time_us, joints_rad in self._unconfirmed_poses:
                take.add(time_us, joints_rad)
        self._unconfirmed_poses.clear()
        take.lacks = self._find_lacks(take)

    def _find_lacks(self, take: Take) -> frozenset[Lack]:
        if not take.samples:
            return frozenset({Lack.POSITIONS})
        found = {
            Lack.JOINTS: bool(self._client.missing),
            Lack.CLOCK: self._client.clockless,
            Lack.RATE: take.track.rate_hz < MIN_RATE_HZ,
        }
        return frozenset(lack for lack, is_so in found.items() if is_so)

    async def save(self, take: Take) -> None:
        """Have the robot store the recording."""
        # Use the robot's clock if there is one: on a bad network this computer saw the start much
        # too late.
        lasted_s = take.track.duration_s or self._lasted_s
        duration_ms = min(max(1, round(lasted_s * 1000)), m.MAX_DURATION_MS)
        save = m.SaveAction(
            name=take.name,
            created_s=int(time.time()),
            duration_ms=duration_ms,
            loop=self._loop,
            replace=self._overwrite,
        )
        reply = await self._store.save(save)
        if isinstance(reply, m.Status):
            take.robot_note = reply.note
        if self._stores_itself:
            # A robot that accepts the end of a teaching has not necessarily stored an action.
            try:
                listed = await self._store.wait_until_listed(take.name)
            except (DecodeError, RefusedError) as error:
                take.robot_note = f"its list cannot be read, so nothing confirms the save: {error}"
                return
            take.robot_s = listed.duration_s or None
        take.saved = take.on_robot = True

    def _on_state(self, state: RobotState) -> None:
        assert self._take is not None
        self._record_pose(self._take, state)
        if state.recording:
            for side in state.silent_hands:
                if side not in self._silent_hands:
                    self._take.mark(f"the {side} hand stopped reporting here")
            self._silent_hands = state.silent_hands
        if self._was_soft and not state.arms_soft:
            # Another client, or the robot itself, ended the teaching: the person must not go on
            # unrecorded.
            self._end_early(_BY_A_STOP if self._stopped else _BY_OTHERS)
        elif self._is_never_soft(state):
            self._end_early(
                f"the robot accepted the teaching and reports for {_NEVER_SOFT_S:.0f} s that its "
                "arms hold: it was stopped, or it never began"
            )
        self._seen_soft |= state.arms_soft
        self._was_soft = state.arms_soft

    def _is_never_soft(self, state: RobotState) -> bool:
        """Whether a stop came so early that no report ever showed soft arms."""
        if self._force or self._seen_soft or not state.phase_told or not self._began_s:
            return False
        return asyncio.get_running_loop().time() - self._began_s > _NEVER_SOFT_S

    def _on_stop(self, over: bool) -> None:
        """End the teaching after a stop over this connection: no report has to show it first."""
        self._stopped = True
        if over:
            self._end_early(_BY_A_STOP)

    def _end_early(self, message: str) -> None:
        if self._loss is None and not self._ending:
            remedy = _RECORDING_KEPT if "save" in self._client.abilities else _TEACH_AGAIN
            self._on_loss(RefusedError(m.Code.NOT_TEACHING, message, remedy))

    def _select_take_columns(self, take: Take, state: RobotState) -> tuple[float, ...]:
        """Return a state's joint positions in the columns of the take.

        A hand may report for the first time during a take; its joints are not part of it.
        """
        now = self._client.build
        if now is take.build or now.bare is not take.build.bare:
            return state.joints_rad
        reported = dict(zip(now.names, state.joints_rad, strict=False))
        return tuple(reported[name] for name in take.build.names if name in reported)

    def _record_pose(self, take: Take, state: RobotState) -> None:
        """Add the pose of a state to the take.

        While the robot does not report that it records, poses are buffered, in case the report is
        only late. Poses before that report are not in the robot's own recording.
        """
        self._reported_recording |= state.recording
        if not state.joints_told or not state.joints_rad:
            return
        pose_rad = self._select_take_columns(take, state)
        if state.recording or not state.phase_told:
            take.add(state.time_us, pose_rad)
        elif (
            not self._reported_recording
            and not take.paused
            and len(self._unconfirmed_poses) < _MAX_UNCONFIRMED_POSES
        ):
            self._unconfirmed_poses.append((state.time_us, pose_rad))

    def _on_loss(self, error: RoteError) -> None:
        self._loss = error
        self._end(error)
