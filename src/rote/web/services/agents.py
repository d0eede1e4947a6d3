"""Motions that an agent proposes to this server, and that a user approves or refuses.

The agent uses the token of the watch role. It may propose a motion, query its state, and begin it
once approved; apart from that it may do what every watcher may.
"""

import asyncio
from pathlib import Path
from typing import NamedTuple, cast

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
from rote.robot.streamed_motion import TrackCheck, check_playing_speed, check_robot
from rote.web.access.clients import Clients
from rote.web.schemas import robot as schemas
from rote.web.server.problems import ProblemError, busy
from rote.web.services.activity import PendantActivity
from rote.web.services.connection_keeper import ConnectionKeeper
from rote.web.services.playing import PlayingService
from rote.web.services.takes import TakeService
from rote.web.work import takes as take_work


class ReadMotion(NamedTuple):
    """A take as it was read: its version, its digest, and the checked track to play."""

    version: int
    digest: str
    checked: TrackCheck


def read_motion(
    folder: Path, name: str, version: int | None, speed: float, build: Build
) -> ReadMotion:
    """Read a take, and check it at a speed for a robot of that build; warnings refuse it, too.

    The digest is of the motion at its original speed. Raises `BadRequestError` for a take of
    another family, and `UnsafeMotionError` or `WarnedMotionError` for what a check finds.
    """
    check_playing_speed(speed)
    version = version or take_work.newest_version(folder, name)
    track = take_work.load(folder, name, version)
    check_robot(track, build)
    digest = motion_digest(track)
    track_at_speed = edit.speed(track, speed) if speed != 1.0 else track
    report = check(track_at_speed)
    report.permit(family_of(build))
    return ReadMotion(version, digest, TrackCheck(track_at_speed, 1.0, report))


class PlayedTicket(NamedTuple):
    """The ticket that was played last, and its playback."""

    ticket: Ticket
    activity: PendantActivity


class AgentService:
    """The proposals of agents; `secret` is None if agents may not propose."""

    def __init__(
        self,
        secret: str | None,
        connection: ConnectionKeeper,
        playing: PlayingService,
        takes: TakeService,
        clients: Clients,
    ) -> None:
        self._booth = None if secret is None else TicketBooth(secret)
        self._connection = connection
        self._playing = playing
        self._takes = takes
        self._clients = clients
        self._now = asyncio.get_running_loop().time
        self._played: PlayedTicket | None = None

    async def propose(self, request: schemas.ProposeMotion) -> Ticket:
        """Show a motion on all pages, and return the ticket for it."""
        booth = self._require_booth()
        if self._playing.busy:
            raise busy("the robot is busy")
        self._playing.require_streaming()
        proposed, _ = await self._read_proposal(request)
        if request.motion is not None and request.motion != proposed.motion:
            raise NotApprovedError(
                f"the take {request.take!r} on this server is not the same motion as the agent's",
                "Use the same folder of takes for both.",
            )
        return booth.propose(proposed, self._now())

    def begin_approval(self, request: schemas.PressApproval, client: str) -> None:
        """Note that the user in command has pressed the button, which must be held to approve."""
        booth = self._require_booth()
        booth.press(request.ticket, request.digest, request.secret, client, self._now())

    def approve(self, ticket: str, client: str) -> None:
        """Approve a motion whose button was held long enough."""
        self._require_booth().hold(ticket, client, self._now())

    def cancel_approval(self, ticket: str, client: str) -> None:
        """Cancel an approval whose button was released too early."""
        self._require_booth().release(ticket, client, self._now())

    def refuse(self, ticket: str) -> None:
        """Refuse a proposal."""
        self._require_booth().refuse(ticket, self._now())

    def void_approval(self) -> None:
        """Withdraw an approval because a stop was requested."""
        if self._booth is not None:
            self._booth.void()

    def ticket(self, ticket_id: str) -> Ticket:
        """Return a ticket by its id, in any state."""
        ticket = self._require_booth().current(self._now())
        if self._played is not None and self._played.ticket.id == ticket_id:
            return self._played.ticket
        if ticket is None or ticket.id != ticket_id:
            raise ProblemError(404, "no-such-ticket", f"unknown ticket {ticket_id!r}")
        return ticket

    async def begin(self, ticket_id: str, request: schemas.ProposeMotion) -> None:
        """Play an approved motion, if the take that is read now is the same motion."""
        booth = self._require_booth()
        if self.ticket(ticket_id).state is not TicketState.APPROVED:
            # `redeem` raises the reason; the take is read only for an approved ticket.
            robot = self._connection.robot
            unread = ProposedMotion(request.take, 0, "", request.speed, robot.url, robot.build.name)
            booth.redeem(ticket_id, unread, self._now())
            return
        proposed, motion = await self._read_proposal(request)
        ticket = booth.redeem(ticket_id, proposed, self._now())
        if ticket.approver != self._clients.commander:
            raise NotApprovedError(
                "the browser that approved it no longer has the command", "Propose it again."
            )
        activity = await self._playing.play_track(
            motion.checked.track, request.take, checked=motion.checked
        )
        self._played = PlayedTicket(ticket, activity)

    async def describe_end(self, ticket_id: str) -> schemas.PlaybackEnd | None:
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
            return {"completed": False, "reason": "it was stopped before it began"}
        report = await playing.wait()
        return {"completed": report.completed, "reason": report.reason}

    def document(self) -> schemas.ProposalNow | None:
        """Return the proposal that the page shows; None if none is open."""
        ticket = None if self._booth is None else self._booth.current(self._now())
        open_states = {TicketState.WAITING, TicketState.HELD, TicketState.APPROVED}
        if ticket is None or ticket.state not in open_states:
            return None
        return {
            "ticket": ticket.id,
            "state": cast("schemas.OpenTicketState", ticket.state.value),
            "take": ticket.proposed.take,
            "version": ticket.proposed.version,
            "speed": ticket.proposed.speed,
            "digest": ticket.proposed.digest,
            "left_s": round(max(0.0, ticket.until_s - self._now()), 1),
            "hold_s": HOLD_S,
        }

    async def _read_proposal(
        self, request: schemas.ProposeMotion
    ) -> tuple[ProposedMotion, ReadMotion]:
        """Read the take of a request; return what the user approves, and the motion to play."""
        robot = self._connection.robot
        check_existing_name(request.take)
        motion = await self._takes.pool.run(
            read_motion,
            self._takes.folder,
            request.take,
            request.version,
            request.speed,
            robot.build,
        )
        robot = self._connection.robot  # it may have changed meanwhile
        proposed = ProposedMotion(
            take=request.take,
            version=motion.version,
            motion=motion.digest,
            speed=request.speed,
            robot=robot.url,
            build=robot.build.name,
        )
        return proposed, motion

    def _require_booth(self) -> TicketBooth:
        if self._booth is None:
            raise ProblemError(
                403,
                "no-agents",
                "this server does not accept proposals from agents",
                "Start the server with agents enabled.",
            )
        return self._booth
