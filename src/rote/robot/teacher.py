"""Teaches motions to a robot that stores its own actions."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rote import messages as m
from rote.errors import BadRequestError
from rote.robot.action_store import ActionStore
from rote.robot.api_values import check_name, check_seconds
from rote.robot.arm_requests import ArmRequests
from rote.robot.link import RobotLink
from rote.robot.message_teaching import MessageTeachingBackend
from rote.robot.modes import MessageModes
from rote.robot.play_options import check_frames
from rote.robot.take import Take
from rote.robot.teaching import Teaching

if TYPE_CHECKING:
    from rote.motion.files.library import Library

_MAX_F32 = 3.4028234e38


class Teacher:
    """Begins teachings of one robot, and saves recordings it still holds."""

    def __init__(
        self, link: RobotLink, store: ActionStore, arms: ArmRequests, modes: MessageModes
    ) -> None:
        self._link = link
        self._store = store
        self._arms = arms
        self._modes = modes

    def teach(
        self,
        name: str,
        *,
        overwrite: bool = False,
        force: bool = False,
        library: "Library | None" = None,
        loop: bool = False,
        compensation: Sequence[float] = (),
    ) -> Teaching:
        """Return the block of a teaching; nothing is soft before it is entered."""
        check_name(name)
        values = _check_compensation(compensation)
        if loop or values:
            self._link.require_ability("frames", "be taught with a loop or compensation")
        if overwrite:
            self._link.require_ability("overwrite", "overwrite actions")
        pauser = self._pause_recording if "pause" in self._link.abilities else None
        take = Take(name, self._link.build, self._link.client.wire, pauser)
        backend = MessageTeachingBackend(
            self,
            self._link,
            self._store,
            self._arms,
            name,
            overwrite=overwrite,
            loop=loop,
            compensation=values,
            force=force,
        )
        return Teaching(backend, take, library, self._link.unfinished)

    async def check_teachable(
        self, name: str, *, overwrite: bool = False, force: bool = False
    ) -> bool:
        """Raise what `teach` would raise: for the name, the free places, or the mode.

        Return whether the robot has an action of that name, which teaching would replace. If its
        list cannot be read, it may have one.
        """
        check_name(name)
        exists = await self._store.check_free(name, overwrite=overwrite, force=force)
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


def _check_compensation(values: Sequence[float]) -> tuple[float, ...]:
    """Return compensation values that can be sent; raise `BadRequestError` otherwise."""
    if values and len(values) != m.COMPENSATIONS:
        raise BadRequestError(
            f"{len(values)} compensation values", f"A keep-alive carries {m.COMPENSATIONS}."
        )
    if not all(abs(value) <= _MAX_F32 for value in values):  # a NaN fails here too
        raise BadRequestError(
            "a compensation value is not a number of 32 bits", "Use finite numbers."
        )
    return tuple(float(value) for value in values)
