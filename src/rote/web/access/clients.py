"""The connected browsers: which ones watch, which one commands, and which ones are silent.

A browser's id is its secret: 24 random bytes that the server sends to that browser only. Others
know it by its number and its name. Command passes from one browser to another after a countdown
that all pages show; only a teacher that locks the command takes it at once.
"""

import asyncio
import hmac
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

from rote.errors import BadRequestError
from rote.web.access.roles import LOCAL, Access, PendantRole
from rote.web.server.problems import ProblemError

if TYPE_CHECKING:
    from rote.web.schemas.robot import Commander, FreePlaces, NextCommander, Person

SILENCE_S = 2.5
"""How long the browser in command may be silent while the robot moves or is soft."""
IDLE_SILENCE_S = 10.0
HANDOVER_S = 5.0
"""Countdown, shown on all pages, before command passes from one browser to another."""
MAX_CLIENTS = 64
RESERVED = {PendantRole.WATCH: 16, PendantRole.COMMAND: 8, PendantRole.TEACHER: 0}
"""Slots that a role leaves to the roles above it: watchers cannot lock a teacher out."""
MAX_NAME = 40
_MAX_MESSAGES = 64

Clock = Callable[[], float]


class Outbox:
    """The queue of texts for one browser: every message, but only the newest state.

    A browser that reads slowly falls behind by one state and delays no other browser.
    """

    def __init__(self) -> None:
        self._messages: deque[str] = deque(maxlen=_MAX_MESSAGES)
        self._state: str | None = None
        self._queued = asyncio.Event()

    def add_message(self, text: str) -> None:
        """Queue a message."""
        self._messages.append(text)
        self._queued.set()

    def set_state(self, state: str) -> None:
        """Queue this state; a newer one replaces it."""
        self._state = state
        self._queued.set()

    def add_beat(self, time_s: float) -> None:
        """Queue a message that only shows that the server is alive, unless one is queued."""
        if not self._messages:
            self.add_message(f'{{"type":"beat","time_s":{time_s:.3f}}}')

    async def next(self) -> str:
        """Wait for the next text to send."""
        while not self._messages and self._state is None:
            self._queued.clear()
            await self._queued.wait()
        if self._messages:
            return self._messages.popleft()
        state, self._state = self._state, None
        assert state is not None
        return state


class Client:
    """One browser, or one script."""

    def __init__(self, number: int, access: Access, now_s: float) -> None:
        self.id = secrets.token_urlsafe(24)
        """Its secret: a request with this id is treated as this browser's."""
        self.number = number
        """Public number; never reused."""
        self.name: str | None = None
        self.access = access
        self.seen_s = now_s
        """When its last message arrived, or it disconnected, by the server's clock."""
        self.outbox: Outbox | None = Outbox()
        """None while it is disconnected."""


class Handover(NamedTuple):
    """A countdown at whose end command passes to a browser."""

    to: Client
    due_s: float
    """When the countdown ends, by the server's clock."""


class Clients:
    """All connected clients, and the one that has the command."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._clients: dict[str, Client] = {}
        self._last_number = 0
        self.commander: str | None = None
        """The id of the client in command."""
        self.locked = False
        """Whether only a teacher may take command."""
        self.handover: Handover | None = None
        self._entrusted: str | None = None
        """The id of the client in command while it is locked; it may return after a reload."""
        self.changes = 0
        """Incremented whenever a client joins, leaves or changes its name."""

    def __iter__(self) -> Iterator[Client]:
        return iter(tuple(self._clients.values()))

    # ---- joining and leaving ---------------------------------------------------------------------

    def join(self, previous_id: str | None = None, access: Access = LOCAL) -> Client:
        """Register a browser; one that sends its `previous_id` soon enough is the same client."""
        now_s = self._clock()
        self._drop_stale_clients(now_s)
        client = self._find_client(previous_id, access)
        # The same id can be connected already: a duplicated tab gets an id of its own.
        if client is not None and client.outbox is None and client.access.role is access.role:
            client.outbox, client.seen_s = Outbox(), now_s
        else:
            if self._count_free_slots(access.role) <= 0:
                limit = MAX_CLIENTS - RESERVED[access.role]
                raise ProblemError(
                    409,
                    "full",
                    f"all {limit} connections for the role {access.role.value} are in use",
                    "Close a page that is not needed; this one tries again by itself.",
                )
            self._drop_oldest_if_full()
            self._last_number += 1
            client = Client(self._last_number, access, now_s)
            self._clients[client.id] = client
        self.changes += 1
        if self.commander is None and self._may_take_command(client):
            self.commander = client.id
        return client

    def leave(self, client: Client) -> None:
        """Mark a client as disconnected; it may return soon."""
        client.outbox, client.seen_s = None, self._clock()
        self.changes += 1

    def note_alive(self, client_id: str) -> None:
        """Record that a message of a client has arrived."""
        if client_id in self._clients:
            self._clients[client_id].seen_s = self._clock()

    def role_of(self, client_id: str) -> PendantRole | None:
        """Return the role with which a client joined; None if the client is unknown."""
        client = self._clients.get(client_id)
        return None if client is None else client.access.role

    def set_name(
        self, client_id: str | None, new_name: str, access: Access | None = None
    ) -> Client:
        """Set the name that other users see for a client; an empty one removes it."""
        client, new_name = self._require_client(client_id, access), " ".join(new_name.split())
        if len(new_name) > MAX_NAME or not new_name.isprintable():
            raise BadRequestError(
                "the name is too long or contains characters that cannot be printed",
                f"Use up to {MAX_NAME} letters and spaces.",
            )
        client.name = new_name or None
        self.changes += 1
        return client

    # ---- command --------------------------------------------------------------------------------

    def take_command(self, client_id: str | None, access: Access | None = None) -> None:
        """Let a client command: at once if no client does, otherwise after a countdown."""
        client = self._require_client(client_id, access)
        self._check_may_take_command(client)
        if self.commander in {None, client.id}:
            self._pass_command_to(client)
        else:
            self._begin_handover(client)

    def give_command(
        self, client_id: str | None, number: int, access: Access | None = None
    ) -> None:
        """Pass command to another client after a countdown; only commander and teachers may."""
        client = self._require_client(client_id, access)
        if client.access.role is not PendantRole.TEACHER:
            self._require_commander(client)
        to = next((each for each in self if each.number == number and each.outbox), None)
        if to is None:
            raise ProblemError(
                404, "nobody", f"browser {number} is not connected", "Reload the list of browsers."
            )
        to.access.require_role(PendantRole.COMMAND)
        if to.id != self.commander:
            self._begin_handover(to)

    def cancel_handover(self, client_id: str | None, access: Access | None = None) -> None:
        """Cancel the pending handover, if there is one.

        Teachers and the next commander may do this. So may the commander, but only a teacher may
        refuse the command to a teacher.
        """
        client = self._require_client(client_id, access)
        if self.handover is None:
            return
        next_commander = self.handover.to
        is_teacher = client.access.role is PendantRole.TEACHER
        if not is_teacher and client is not next_commander:
            self._require_commander(client)
            if next_commander.access.role is PendantRole.TEACHER:
                client.access.require_role(PendantRole.TEACHER)
        self.handover = None

    def lock(self, client_id: str | None, *, locked: bool, access: Access | None = None) -> None:
        """Lock the command, so that only teachers may take it, or unlock it; for teachers only.

        A client that locks the command takes it at once, unless a teacher has it already.
        """
        client = self._require_client(client_id, access)
        client.access.require_role(PendantRole.TEACHER)
        self.locked = locked
        self._entrusted = None
        if locked:
            commander = self._clients.get(self.commander or "")
            self.handover = None
            if commander is None or commander.access.role is not PendantRole.TEACHER:
                self._pass_command_to(client)

    def release_command(self, client_id: str | None, access: Access | None = None) -> None:
        """Give up the command; then no client commands."""
        self.require_command(client_id, access)
        self.commander = self._entrusted = None

    def require_command(self, client_id: str | None, access: Access | None = None) -> None:
        """Raise `ProblemError` unless this client commands, or can because no client does."""
        client = self._require_client(client_id, access)
        client.access.require_role(PendantRole.COMMAND)
        if self.commander is None:
            self._check_may_take_command(client)
            self._pass_command_to(client)
        self._require_commander(client)

    def finish_handover(self) -> None:
        """Pass command if its countdown has ended and the next commander is still connected."""
        if self.handover is not None and self._clock() >= self.handover.due_s:
            to = self.handover.to
            self.handover = None
            if to.outbox is not None and to.id in self._clients:
                self._pass_command_to(to)

    def drop_silent_commander(self, *, busy: bool) -> bool:
        """Take the command from a client that was silent for too long; return whether it was."""
        now_s = self._clock()
        self._drop_stale_clients(now_s)
        if self.commander is None:
            return False
        client = self._clients.get(self.commander)
        if client is not None and not _is_silent(client, now_s, busy):
            return False
        self.commander = None
        return True

    # ---- public information ---------------------------------------------------------------------

    def people(self) -> "list[Person]":
        """Return the connected clients, without their secret ids."""
        return [
            {"number": each.number, "name": each.name, "role": each.access.role.value}
            for each in self
            if each.outbox is not None
        ]

    def count_free_slots(self) -> "FreePlaces":
        """Return how many more browsers of each role may join."""
        free = {role.value: max(self._count_free_slots(role), 0) for role in PendantRole}
        return cast("FreePlaces", free)

    def _count_free_slots(self, role: PendantRole) -> int:
        connected = sum(client.outbox is not None for client in self)
        return MAX_CLIENTS - RESERVED[role] - connected

    def describe_command(self, *, you: bool) -> "Commander":
        """Return, as JSON, the client in command and the pending handover, without secret ids.

        `you` states whether the answer is for the client in command.
        """
        client = self._clients.get(self.commander or "")
        next_commander: NextCommander | None = None
        if self.handover is not None:
            to, due_s = self.handover
            in_s = round(max(due_s - self._clock(), 0.0), 2)
            next_commander = {"number": to.number, "name": to.name, "in_s": in_s}
        return {
            "you": you,
            "number": None if client is None else client.number,
            "name": None if client is None else client.name,
            "locked": self.locked,
            "next": next_commander,
        }

    # ---- inside ---------------------------------------------------------------------------------

    def _find_client(self, client_id: str | None, access: Access | None) -> Client | None:
        """Return the client of this id, if `access` is of the same browser with at least its role.

        Without `access` the id suffices. Scripts have no cookie (`seat`) to compare.
        """
        client = self._clients.get(client_id or "")
        if client is None or access is None:
            return client
        seat = client.access.seat
        if seat is not None and not hmac.compare_digest(
            seat.encode(), (access.seat or "").encode()
        ):
            return None
        return client if access.role.rank >= client.access.role.rank else None

    def _require_client(self, client_id: str | None, access: Access | None) -> Client:
        client = self._find_client(client_id, access)
        if client is None:
            raise ProblemError(
                403,
                "unknown-client",
                "this server does not know the client that sent the request",
                "Open /api/live first, and send the client's id as X-Rote-Client.",
            )
        self.note_alive(client.id)
        return client

    def _require_commander(self, client: Client) -> None:
        if self.commander != client.id:
            raise ProblemError(
                403,
                "not-commanding",
                "another browser commands the robot",
                "Take over the command first; stopping is always allowed.",
            )

    def _may_take_command(self, client: Client) -> bool:
        role = client.access.role
        is_locked_out = self.locked and client.id != self._entrusted
        return role is PendantRole.TEACHER or (role.may_command and not is_locked_out)

    def _check_may_take_command(self, client: Client) -> None:
        client.access.require_role(PendantRole.COMMAND)
        if not self._may_take_command(client):
            raise ProblemError(
                403,
                "locked",
                "a teacher has locked the command",
                "Ask the teacher for it; stopping is always allowed.",
            )

    def _begin_handover(self, to: Client) -> None:
        """Begin the countdown to pass command; if no client commands, pass it at once."""
        if self.commander is None:
            self._pass_command_to(to)
        elif self.handover is None:
            self.handover = Handover(to, self._clock() + HANDOVER_S)
        elif self.handover.to is not to:
            raise ProblemError(
                409,
                "handover",
                "command is already passing to another browser",
                "Wait for the end of that handover, then try again.",
            )

    def _pass_command_to(self, client: Client) -> None:
        self.commander, self.handover = client.id, None
        self._entrusted = client.id if self.locked else None

    def _drop_oldest_if_full(self) -> None:
        """If too many clients are known, drop the oldest disconnected one of the lowest role."""
        disconnected = [each for each in self if each.outbox is None and each.id != self.commander]
        if len(self._clients) >= 2 * MAX_CLIENTS and disconnected:
            oldest = min(disconnected, key=lambda each: (each.access.role.rank, each.seen_s))
            del self._clients[oldest.id]

    def _drop_stale_clients(self, now_s: float) -> None:
        for client in self:
            if client.outbox is None and now_s - client.seen_s > IDLE_SILENCE_S:
                del self._clients[client.id]


def _is_silent(client: Client, now_s: float, busy: bool) -> bool:
    """Whether a client was silent for too long, or is disconnected while the robot is not busy."""
    if client.outbox is None and not busy:
        return True
    return now_s - client.seen_s > (SILENCE_S if busy else IDLE_SILENCE_S)
