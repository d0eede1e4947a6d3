"""Tickets: a person's permission for an agent to move a robot once.

A ticket is bound to the hash of one motion, its speed, the robot and its build. It is valid for a
minute, and for one playback:

    waiting ──press──▶ held ──hold──▶ approved ──redeem──▶ used
       └──────────────── refused, expired, void ─────────────┘

Pressing needs a secret that is shown only in the terminal, and the button must be held for a
minimum time, by the clock of the server. This module has no clock: the caller passes the time.
"""

import hashlib
import hmac
import json
import secrets
from dataclasses import asdict, dataclass
from enum import StrEnum

import numpy as np

from rote.errors import NotApprovedError
from rote.motion.track import Track

TICKET_S = 60.0
"""Ticket lifetime in seconds, from the proposal to the beginning of the motion."""
HOLD_S = 1.5
"""Minimum time in seconds for which a person must hold the button."""
MAX_HOLD_S = 10.0
"""Maximum time in seconds from the press of the button to the approval."""
MAX_WRONG = 5
"""Maximum number of wrong secrets in a row; after them nothing is approved until a restart of the
server.
"""
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # without characters that look alike


class TicketState(StrEnum):
    """The state of a ticket."""

    WAITING = "waiting"
    """No person has pressed the button or refused yet."""
    HELD = "held"
    """A person holds the button."""
    APPROVED = "approved"
    USED = "used"
    REFUSED = "refused"
    EXPIRED = "expired"
    VOID = "void"
    """The robot was stopped, or the agent requested another motion."""


_OPEN = (TicketState.WAITING, TicketState.HELD, TicketState.APPROVED)
"""The states of a ticket that can still be used."""


def make_secret() -> str:
    """Return a secret for a person to type: eight characters, without ones that look alike."""
    chars = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    return f"{chars[:4]}-{chars[4:]}"


def motion_digest(track: Track) -> str:
    """Return the SHA-256 of everything that determines a motion: times, joints and names."""
    header = json.dumps([track.variant, list(track.names), list(track.joints_rad.shape)])
    digest = hashlib.sha256(header.encode())
    for values in (track.times_s, track.joints_rad):
        digest.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class ProposedMotion:
    """One exact motion of one exact robot."""

    take: str
    version: int
    motion: str
    """The digest of the motion itself: see `motion_digest`."""
    speed: float
    robot: str
    """The URL of the robot."""
    build: str

    @property
    def digest(self) -> str:
        """The SHA-256 of all fields; a ticket is bound to it."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(slots=True, eq=False)
class Ticket:
    """The right to play one motion once, if a person approves."""

    id: str
    proposed: ProposedMotion
    until_s: float
    state: TicketState = TicketState.WAITING
    approver: str = ""
    """The client in which the button is held."""
    pressed_s: float = 0.0


class TicketBooth:
    """Issues tickets, approves them, and redeems each of them once."""

    def __init__(self, secret: str) -> None:
        self._secret = _normalize_secret(secret)
        self._wrong_secrets = 0
        """Number of wrong secrets in a row."""
        self._ticket: Ticket | None = None

    def current(self, now_s: float) -> Ticket | None:
        """Return the newest ticket, in any state; None before the first."""
        ticket = self._ticket
        if ticket is not None and ticket.state in _OPEN and now_s >= ticket.until_s:
            ticket.state = TicketState.EXPIRED
        return ticket

    def propose(self, proposed: ProposedMotion, now_s: float) -> Ticket:
        """Return a new ticket; raises `NotApprovedError` while another one is open."""
        ticket = self.current(now_s)
        if ticket is not None and ticket.state in _OPEN:
            raise NotApprovedError(
                "another proposal is waiting for approval",
                f"Wait until a person decides; it expires after {TICKET_S:.0f} s.",
            )
        self._ticket = Ticket(secrets.token_urlsafe(24), proposed, now_s + TICKET_S)
        return self._ticket

    def press(self, ticket_id: str, digest: str, secret: str, client: str, now_s: float) -> None:
        """Note that a person pressed the button in a client, for the proposal with this digest.

        Raises `NotApprovedError` for a wrong secret or digest, or if the ticket is not open.
        """
        if self._wrong_secrets >= MAX_WRONG:
            raise NotApprovedError(
                f"{MAX_WRONG} wrong secrets were entered, so approving is blocked",
                "Start the pendant again: it shows a new secret.",
            )
        ticket = self._get_open_ticket(ticket_id, now_s)
        if not hmac.compare_digest(_normalize_secret(secret).encode(), self._secret.encode()):
            self._wrong_secrets += 1
            raise NotApprovedError(
                "this is not the secret of this pendant",
                "Enter the secret that the pendant printed when it was started.",
            )
        self._wrong_secrets = 0
        if not hmac.compare_digest(digest.encode(), ticket.proposed.digest.encode()):
            raise NotApprovedError(
                "the page does not show the proposed motion",
                "Review the proposal again.",
            )
        if ticket.state is TicketState.APPROVED:
            raise NotApprovedError("this proposal is approved already")
        ticket.state, ticket.approver, ticket.pressed_s = TicketState.HELD, client, now_s

    def hold(self, ticket_id: str, client: str, now_s: float) -> None:
        """Approve the ticket, if the client that pressed has held the button for long enough."""
        ticket = self._get_open_ticket(ticket_id, now_s)
        held_s = now_s - ticket.pressed_s
        is_approver = hmac.compare_digest(ticket.approver.encode(), client.encode())
        if ticket.state is not TicketState.HELD or not is_approver or held_s > MAX_HOLD_S:
            raise NotApprovedError("the button is not held", f"Hold it for {HOLD_S:g} s.")
        if held_s < HOLD_S:
            ticket.state = TicketState.WAITING
            raise NotApprovedError(
                f"the button was held for only {held_s:.1f} s", f"Hold it for {HOLD_S:g} s."
            )
        ticket.state = TicketState.APPROVED

    def release(self, ticket_id: str, client: str, now_s: float) -> None:
        """Let the ticket wait again: the button was released before the ticket was approved."""
        ticket = self._get_open_ticket(ticket_id, now_s)
        if ticket.state is TicketState.HELD and ticket.approver == client:
            ticket.state = TicketState.WAITING

    def refuse(self, ticket_id: str, now_s: float) -> None:
        """Refuse a proposal."""
        self._get_open_ticket(ticket_id, now_s).state = TicketState.REFUSED

    def void(self) -> None:
        """Invalidate the open ticket, because the robot was stopped."""
        if self._ticket is not None and self._ticket.state in _OPEN:
            self._ticket.state = TicketState.VOID

    def redeem(self, ticket_id: str, proposed: ProposedMotion, now_s: float) -> Ticket:
        """Use up an approved ticket for exactly this motion; it cannot be used again.

        Raises `NotApprovedError` for any other motion, and for a ticket that is not approved.
        """
        ticket = self._get_open_ticket(ticket_id, now_s)
        if ticket.state is not TicketState.APPROVED:
            raise NotApprovedError(
                "no person has approved this motion",
                "A person holds the button in the pendant's page; nothing else approves it.",
            )
        if not hmac.compare_digest(proposed.digest.encode(), ticket.proposed.digest.encode()):
            ticket.state = TicketState.VOID
            raise NotApprovedError(
                "this is not the approved motion: the motion, its speed, the robot or its build "
                "differs",
                "Propose it again.",
            )
        ticket.state = TicketState.USED
        return ticket

    def _get_open_ticket(self, ticket_id: str, now_s: float) -> Ticket:
        ticket = self.current(now_s)
        if ticket is None or not hmac.compare_digest(ticket.id.encode(), ticket_id.encode()):
            raise NotApprovedError("there is no such ticket", "Propose the motion again.")
        if ticket.state not in _OPEN:
            raise NotApprovedError(
                f"this ticket is {ticket.state.value}: a ticket is valid for one playback, within "
                f"{TICKET_S:.0f} s",
                "Propose the motion again.",
            )
        return ticket


def _normalize_secret(secret: str) -> str:
    """Return a secret for comparison: in upper case, without dashes and spaces."""
    return "".join(char for char in secret.upper() if char.isalnum())
