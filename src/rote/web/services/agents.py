"""Motions that an agent proposes to this pendant, and that a person approves or not.

The agent shows the token of a link that only watches. It may propose, ask what became of it, and
begin what was approved; whatever else it may do, every watcher may.
"""

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

from rote.bridge.tickets import (
    HOLD_S,
    ProposedMotion,
    Ticket,
    TicketBooth,
    TicketState,
    motion_digest,
)
from rote.errors import NotApprovedError
from rote.model.family import Build
from rote.model.registry import family_of
from rote.motion.check.rules import check
from rote.motion.edit import operations as edit
from rote.motion.files.library import check_existing_name
from rote.robot.streaming import TrackCheck, check_playing_speed, check_robot
from rote.web.access.clients import Clients
from rote.web.schemas import robot as schemas
from rote.web.server.problems import ProblemError, busy
from rote.web.services.activity import ActivityService, PendantActivity
from rote.web.services.connection_keeper import ConnectionKeeper
from rote.web.services.takes import TakeService
from rote.web.work import takes as take_work


class ReadMotion(NamedTuple):
    """A take as it was read once: its version, its digest, and what is played of it."""

    version: int
    digest: str
    checked: TrackCheck


def read_motion(
    folder: Path, name: str, version: int | None, speed: float, build: Build
) -> ReadMotion:
    """Read a take, and check it for a robot of that build. An agent overrides no warning.

    Raises `BadRequestError` for a take of another family, and `UnsafeMotionError` or
    `WarnedMotionError` for what a check finds.
    """
    check_playing_speed(speed)
    version = version or take_work.newest_version(folder, name)
    track = take_work.load(folder, name, version)
    check_robot(track, build)
    digest = motion_digest(track)
    paced = edit.speed(track, speed) if speed != 1.0 else track
    report = check(paced)
    report.permit(family_of(build))
    return ReadMotion(version, digest, TrackCheck(paced, 1.0, report))


class PlayedTicket(NamedTuple):
    """The ticket that was played last, and its playback."""

    ticket: Ticket
    activity: PendantActivity


class AgentService:
    """What agents have proposed to this pendant; `secret` is None where none may."""

    def __init__(
        self,
        secret: str | None,
        connection: ConnectionKeeper,
        activities: ActivityService,
        takes: TakeService,
        clients: Clients,
    ) -> None:
        self._booth = None if secret is None else TicketBooth(secret)
        self._connection = connection
        self._activities = activities
        self._takes = takes
        self._clients = clients
        self._now = asyncio.get_running_loop().time
        self._played: PlayedTicket | None = None

    async def propose(self, wanted: schemas.ProposeMotion) -> Ticket:
        """Show a motion to the people here, and return the ticket for it."""
        booth = self._open_booth()
        if self._activities.busy:
            raise busy("the robot is busy")
        self._activities.check_stream()
        proposed, _ = await self._read(wanted)
        if wanted.motion is not None and wanted.motion != proposed.motion:
            raise NotApprovedError(
                f"the take {wanted.take!r} of this pendant is another motion than the agent's",
                "Both have to use the same folder of takes.",
            )
        return booth.propose(proposed, self._now())

    def press(self, wanted: schemas.PressApproval, client: str) -> None:
        """A person with the command begins to hold the button."""
        booth = self._open_booth()
        booth.press(wanted.ticket, wanted.digest, wanted.secret, client, self._now())

    def hold(self, ticket: str, client: str) -> None:
        """The person has held it: the motion is approved."""
        self._open_booth().hold(ticket, client, self._now())

    def let_go(self, ticket: str, client: str) -> None:
        """The person let go too early."""
        self._open_booth().release(ticket, client, self._now())

    def refuse(self, ticket: str) -> None:
        """A person says no."""
        self._open_booth().refuse(ticket, self._now())

    def void(self) -> None:
        """Somebody stops the robot: what was approved before counts no more."""
        if self._booth is not None:
            self._booth.void()

    def ticket(self, ticket_id: str) -> Ticket:
        """Return a ticket by its id, whatever has become of it."""
        ticket = self._open_booth().current(self._now())
        if self._played is not None and self._played.ticket.id == ticket_id:
            return self._played.ticket
        if ticket is None or ticket.id != ticket_id:
            raise ProblemError(404, "no-such-ticket", "there is no such ticket")
        return ticket

    async def begin(self, ticket_id: str, wanted: schemas.ProposeMotion) -> None:
        """Play what a person has approved: the very motion that is read now, if it is the same."""
        booth = self._open_booth()
        # A ticket that nobody has approved costs no reading.
        if self.ticket(ticket_id).state is TicketState.APPROVED:
            proposed, motion = await self._read(wanted)
            ticket = booth.redeem(ticket_id, proposed, self._now())
            if ticket.approver != self._clients.commander:
                raise NotApprovedError(
                    "the browser whose person approved it commands no more", "Propose it again."
                )
            activity = await self._activities.play_track(
                motion.checked.track, wanted.take, checked=motion.checked
            )
            self._played = PlayedTicket(ticket, activity)
            return
        # Redeeming says why not.
        robot = self._connection.robot
        nothing = ProposedMotion(wanted.take, 0, "", wanted.speed, robot.url, robot.build.name)
        booth.redeem(ticket_id, nothing, self._now())

    async def ending(self, ticket_id: str) -> dict[str, Any] | None:
        """Return how the playback of a ticket ended; None if it has not, or has not begun."""
        if self._played is None or self._played.ticket.id != ticket_id:
            return None
        activity = self._played.activity
        if activity.task is not None and not activity.task.done():
            return None
        if activity.problem is not None:
            return {"completed": False, "reason": str(activity.problem)}
        playing = activity.playing
        if activity.task is None or playing is None or not playing.done:
            return {"completed": False, "reason": "it was stopped as it began"}
        report = await playing.wait()
        return {"completed": report.completed, "reason": report.reason}

    def document(self) -> dict[str, Any] | None:
        """Return the proposal that the page shows; None where there is none to decide."""
        ticket = None if self._booth is None else self._booth.current(self._now())
        open_states = {TicketState.WAITING, TicketState.HELD, TicketState.APPROVED}
        if ticket is None or ticket.state not in open_states:
            return None
        return {
            "ticket": ticket.id,
            "state": ticket.state.value,
            "take": ticket.proposed.take,
            "version": ticket.proposed.version,
            "speed": ticket.proposed.speed,
            "digest": ticket.proposed.digest,
            "left_s": round(max(0.0, ticket.until_s - self._now()), 1),
            "hold_s": HOLD_S,
        }

    async def _read(self, wanted: schemas.ProposeMotion) -> tuple[ProposedMotion, ReadMotion]:
        robot = self._connection.robot
        check_existing_name(wanted.take)
        motion = await self._takes.pool.run(
            read_motion, self._takes.folder, wanted.take, wanted.version, wanted.speed, robot.build
        )
        robot = self._connection.robot  # it may be another one by now
        proposed = ProposedMotion(
            take=wanted.take,
            version=motion.version,
            motion=motion.digest,
            speed=wanted.speed,
            robot=robot.url,
            build=robot.build.name,
        )
        return proposed, motion

    def _open_booth(self) -> TicketBooth:
        if self._booth is None:
            raise ProblemError(
                403,
                "no-agents",
                "this pendant takes no proposals of agents",
                "Whoever starts it decides that, when it is started.",
            )
        return self._booth
