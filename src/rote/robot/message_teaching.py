"""Teaching backend for robots that store their own actions."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from rote import messages as m
from rote.errors import (
    BadRequestError,
    DecodeError,
    LinkError,
    NoAnswerError,
    RefusedError,
    RoteError,
)
from rote.messages import RobotState
from rote.robot.action_store import ActionStore
from rote.robot.api_values import check_name, check_seconds
from rote.robot.arm_requests import ArmRequests
from rote.robot.link import RobotLink
from rote.robot.modes import MessageModes
from rote.robot.play_options import check_frames
from rote.robot.take import MIN_RATE_HZ, Lack, Take
from rote.robot.teaching import Teaching
from rote.text import Act, Text

if TYPE_CHECKING:
    from rote.motion.files.library import Library

_RECORDING_KEPT = (
    "Nothing was saved. The robot keeps the recording until the next one: save it with "
    "robot.save, or teach again."
)
_STOP_RECORDING_S = 0.5
"""Timeout for the reply to "stop recording" before teaching is left anyway."""
_MAX_UNCONFIRMED_POSES = 100_000
"""Maximum number of poses kept while the robot does not report that it records: 3 minutes at 500
per second.
"""
_ENDED_BY_STOP = "the teaching was ended by a stop"
_ENDED_BY_OTHERS = "the teaching was ended by another client, or by the robot itself"
_NEVER_SOFT_S = 5.0
"""A teaching ends if the robot accepted it but reports stiff arms for this many seconds. Reports
about the arms may be seconds late.
"""
_TEACH_AGAIN = Text("Check what the robot has stored: {list}. Then teach again.", list=Act.LIST)


class TeachOptions(NamedTuple):
    """How a motion is taught; `Robot.teach` explains each."""

    overwrite: bool = False
    force: bool = False
    """Whether to continue even if the robot never reports soft arms."""
    loop: bool = False
    compensation: tuple[float, ...] = ()
    record: bool = True
    """Whether the motion is recorded; otherwise the arms only become soft."""


class MessageTeachingBackend:
    """One teaching of a robot that understands `rote.messages`."""

    def __init__(
        self,
        teacher: "Teacher",
        link: RobotLink,
        store: ActionStore,
        arms: ArmRequests,
        name: str,
        options: TeachOptions,
    ) -> None:
        self._teacher = teacher
        self._link = link
        self._client = link.client
        self._store = store
        self._arms = arms
        self._stop_count = link.stops.count
        self._name = name
        self._options = options
        self._take: Take | None = None
        self._interrupt_block: Callable[[RoteError], None] = lambda _: None
        self._listener_removers: list[Callable[[], None]] = []
        self._end_error: RoteError | None = None
        self._refused = False
        self._owns_action = False
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
            self._name, overwrite=self._options.overwrite, force=self._options.force
        )
        self._link.stops.check_none_since(self._stop_count)
        self._owns_action = not exists

    async def begin(self, take: Take, end: Callable[[RoteError], None]) -> None:
        """Request soft arms and a recording."""
        self._take, self._interrupt_block = take, end
        self._listener_removers.append(self._client.on_loss(self._on_loss))
        self._listener_removers.append(self._link.on_stop(self._on_stop))
        await self._enter_teaching()
        self._listener_removers.append(self._client.on_state(self._on_state))
        if self._options.record:
            await self._link.ask(m.Record(on=True))
        self._began_s = asyncio.get_running_loop().time()

    async def _enter_teaching(self) -> None:
        """Request soft arms.

        Once the robot accepts, the action of that name is this teaching's own, even if it replaces
        another. If the robot never replies, it is its own only if there was none before.
        """
        try:
            command = m.EnterTeaching(self._client.latest, self._name, self._options.compensation)
            await self._arms.enter_teaching(command)
        except RefusedError:
            self._refused = True
            raise
        finally:
            if not self._refused:
                self._arms.note_teaching_began()
        self._owns_action = True

    async def hold(self, *, keep: bool) -> None:
        """Leave teaching. The robot discards its recording unless `keep` is true."""
        self._ending = True
        self._lasted_s = asyncio.get_running_loop().time() - self._began_s
        if self._refused:
            return
        try:
            if isinstance(self._end_error, LinkError):
                return
            await self._stop_recording()
            await self._link.ask(m.ExitTeaching())
        finally:
            self._arms.note_teaching_ended(self._name)
        if self._take is not None:
            self._take.on_robot = self._stores_itself
        if self._owns_action and not keep:
            await self._link.ask(m.DiscardRecording(self._name))
            if self._take is not None:
                self._take.on_robot = False

    async def _stop_recording(self) -> None:
        """Send "stop recording", as the documents require.

        Failures are ignored: the exit that follows ends the recording too, and must not be delayed.
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
        for remove_listener in self._listener_removers:
            remove_listener()
        take = self._take
        if take is None:
            return
        if not take.samples:  # the robot may have reported joints, but never that it records
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
            Lack.RATE: take.rate_hz < MIN_RATE_HZ,
        }
        return frozenset(lack for lack, is_lacking in found.items() if is_lacking)

    async def save(self, take: Take) -> None:
        """Have the robot store the recording."""
        # Prefer the robot's clock: on a bad network this computer notices the start much too late.
        lasted_s = take.duration_s or self._lasted_s
        duration_ms = min(max(1, round(lasted_s * 1000)), m.MAX_DURATION_MS)
        save = m.SaveAction(
            name=take.name,
            created_s=int(time.time()),
            duration_ms=duration_ms,
            loop=self._options.loop,
            replace=self._options.overwrite,
        )
        reply = await self._store.save(save)
        if isinstance(reply, m.Status):
            take.robot_note = reply.note
        if self._stores_itself:
            # A robot that accepts the end of a teaching has not necessarily stored an action.
            try:
                listed = await self._store.wait_until_listed(take.name)
            except (DecodeError, RefusedError) as error:
                take.robot_note = (
                    f"the robot's list cannot be read, so the save is not confirmed: {error}"
                )
                return
            take.robot_s = listed.duration_s or None
        take.saved = take.on_robot = True

    def _on_state(self, state: RobotState) -> None:
        """Record the pose, mark hands that fell silent, and end the teaching if arms are stiff."""
        assert self._take is not None
        if self._options.record:
            self._record_pose(self._take, state)
        if state.recording:
            for side in state.silent_hands:
                if side not in self._silent_hands:
                    self._take.mark(f"the {side} hand stopped reporting here")
            self._silent_hands = state.silent_hands
        if self._was_soft and not state.arms_soft:
            # Another client or the robot ended the teaching: interrupt the block, because nothing
            # is recorded any more.
            self._end_early(_ENDED_BY_STOP if self._stopped else _ENDED_BY_OTHERS)
        elif self._is_never_soft(state):
            self._end_early(
                f"the robot accepted the teaching, but its arms have stayed stiff for "
                f"{_NEVER_SOFT_S:.0f} s: the teaching was stopped, or never began"
            )
        self._seen_soft |= state.arms_soft
        self._was_soft = state.arms_soft

    def _is_never_soft(self, state: RobotState) -> bool:
        """Whether `_NEVER_SOFT_S` have passed since the start without a report of soft arms.

        Never with `force`, nor if the robot does not report whether its arms are soft.
        """
        if self._options.force or self._seen_soft or not state.has_phase or not self._began_s:
            return False
        return asyncio.get_running_loop().time() - self._began_s > _NEVER_SOFT_S

    def _on_stop(self, ended: bool) -> None:
        """End the teaching when a stop request of this connection has ended: the robot may report
        the stop much later.
        """
        self._stopped = True
        if ended:
            self._end_early(_ENDED_BY_STOP)

    def _end_early(self, message: str) -> None:
        if self._end_error is None and not self._ending:
            remedy = _RECORDING_KEPT if "save" in self._client.abilities else _TEACH_AGAIN
            self._on_loss(RefusedError(m.Code.NOT_TEACHING, message, remedy))

    def _select_take_columns(self, take: Take, state: RobotState) -> tuple[float, ...]:
        """Return a state's joint positions in the columns of the take.

        A hand may report for the first time during a take; its joints are not part of it.
        """
        build = self._client.build
        if build is take.build or build.bare is not take.build.bare:
            return state.joints_rad
        reported = dict(zip(build.names, state.joints_rad, strict=False))
        return tuple(reported[name] for name in take.build.names if name in reported)

    def _record_pose(self, take: Take, state: RobotState) -> None:
        """Add the pose of a state to the take.

        While the robot does not report that it records, poses are buffered, in case the report is
        only late. Poses before that report are not in the robot's own recording.
        """
        self._reported_recording |= state.recording
        if not state.has_joints or not state.joints_rad:
            return
        pose_rad = self._select_take_columns(take, state)
        if state.recording or not state.has_phase:
            take.add(state.time_us, pose_rad)
        elif (
            not self._reported_recording
            and not take.paused
            and len(self._unconfirmed_poses) < _MAX_UNCONFIRMED_POSES
        ):
            self._unconfirmed_poses.append((state.time_us, pose_rad))

    def _on_loss(self, error: RoteError) -> None:
        self._end_error = error
        self._interrupt_block(error)


# ---- the teacher ---------------------------------------------------------------------------------


_MAX_F32 = 3.4028234e38  # the largest finite 32-bit float


class Teacher:
    """Begins teachings of one robot, and saves recordings it still holds."""

    def __init__(
        self, link: RobotLink, store: ActionStore, arms: ArmRequests, modes: MessageModes
    ) -> None:
        self._link = link
        self._store = store
        self._arms = arms
        self._modes = modes

    def teach(self, name: str, options: TeachOptions, library: "Library | None" = None) -> Teaching:
        """Return the block of a teaching; nothing is soft before it is entered."""
        check_name(name)
        _check_compensation(options.compensation)
        if options.loop or options.compensation:
            self._link.require_ability("frames", "be taught with a loop or compensation")
        if options.overwrite:
            self._link.require_ability("overwrite", "overwrite actions")
        pauser = self._pause_recording if "pause" in self._link.abilities else None
        take = Take(name, self._link.build, self._link.client.wire, pauser)
        backend = MessageTeachingBackend(self, self._link, self._store, self._arms, name, options)
        return Teaching(backend, take, library, self._link.unfinished)

    async def check_teachable(
        self, name: str, *, overwrite: bool = False, force: bool = False
    ) -> bool:
        """Raise what `teach` would raise because of the name, a full store, or the mode.

        Return whether teaching may replace an action: the robot has one of that name, or its list
        cannot be read.
        """
        check_name(name)
        exists = await self._store.check_can_store(name, overwrite=overwrite, force=force)
        if not force:
            await self._modes.check_balanced()
        return exists is not False

    async def save(
        self, name: str, duration_s: float, *, overwrite: bool, loop: bool, frames: int
    ) -> str:
        """Save the recording the robot still holds; return the robot's note, usually ""."""
        self._link.require_ability("save", "save a recording afterwards")
        check_name(name)
        save = m.SaveAction(
            name=name,
            created_s=int(time.time()),
            duration_ms=round(check_seconds(duration_s, "a recording") * 1000),
            frames=check_frames(frames),
            loop=loop,
            replace=overwrite,
        )
        reply = await self._store.save(save)
        return reply.note if isinstance(reply, m.Status) else ""

    async def _pause_recording(self, paused: bool) -> None:
        await self._link.ask(m.PauseRecording(paused))


def _check_compensation(values: Sequence[float]) -> None:
    """Raise `BadRequestError` for compensation values that cannot be sent."""
    if values and len(values) != m.COMPENSATIONS:
        raise BadRequestError(
            f"{len(values)} compensation values were given",
            f"Give exactly {m.COMPENSATIONS}, the number that a keep-alive carries.",
        )
    if not all(abs(value) <= _MAX_F32 for value in values):  # a NaN fails here too
        raise BadRequestError(
            "a compensation value is not a finite 32-bit number",
            "Give finite numbers that fit into 32-bit floats.",
        )
