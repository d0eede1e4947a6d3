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
from typing import Any, NamedTuple

from rote.errors import BadRequestError
from rote.web.access.roles import LOCAL, Access, PendantRole
from rote.web.server.problems import ProblemError

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
        self._filled = asyncio.Event()

    def add_message(self, text: str) -> None:
        """Queue a message."""
        self._messages.append(text)
        self._filled.set()

    def set_state(self, state: str) -> None:
        """Queue this state; a newer one replaces it."""
        self._state = state
        self._filled.set()

    def beat(self, time_s: float) -> None:
        """Queue a sign of life, unless something else is about to be sent."""
        if not self._messages:
            self.add_message(f'{{"type":"beat","time_s":{time_s:.3f}}}')

    async def next(self) -> str:
        """Wait for the next text to send."""
        while not self._messages and self._state is None:
            self._filled.clear()
            await self._filled.wait()
        if self._messages:
            return self._messages.popleft()
        state, self._state = self._state, None
        assert state is not None
        return state


class Client:
    """One browser, or one script."""

    def __init__(self, number: int, access: Access, now: float) -> None:
        self.id = secrets.token_urlsafe(24)
        """Its secret: a request with this id is treated as this browser's."""
        self.number = number
        """Public number; never reused."""
        self.name: str | None = None
        self.access = access
        self.seen_s = now
        self.outbox: Outbox | None = Outbox()
        """None while it is disconnected."""


class Handover(NamedTuple):
    """Command is about to pass to a browser."""

    to: Client
    due_s: float


class Clients:
    """All connected clients, and the one that has the command."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._clients: dict[str, Client] = {}
        self._numbers = 0
        self.commander: str | None = None
        self.locked = False
        """Whether only a teacher may take command."""
        self.handover: Handover | None = None
        self._entrusted: str | None = None
        """The client that was given the command while it was locked; a reload does not lose it."""
        self.changes = 0
        """Incremented whenever a client joins, leaves or changes its name."""

    def __iter__(self) -> Iterator[Client]:
        return iter(tuple(self._clients.values()))

    # ---- joining and leaving ---------------------------------------------------------------------

    def join(self, old: str | None = None, access: Access = LOCAL) -> Client:
        """Register a browser; a recently seen client id resumes its identity."""
        now = self._clock()
        self._drop_stale_clients(now)
        client = self._find_client(old, access)
        if client is not None and client.outbox is None and client.access.role is access.role:
            client.outbox, client.seen_s = Outbox(), now
        else:
            if self._free_slots(access.role) <= 0:
                most = MAX_CLIENTS - RESERVED[access.role]
                raise ProblemError(
                    409,
                    "full",
                    f"all {most} connections for the role {access.role.value} are in use",
                    "Close a page that is not needed; this one tries again by itself.",
                )
            self._drop_oldest_if_full()
            self._numbers += 1
            client = Client(self._numbers, access, now)
            self._clients[client.id] = client
        self.changes += 1
        if self.commander is None and self._may_take(client):
            self.commander = client.id
        return client

    def leave(self, client: Client) -> None:
        """Note that a client's socket has closed; it may return soon."""
        client.outbox, client.seen_s = None, self._clock()
        self.changes += 1

    def note_alive(self, name: str) -> None:
        """Note that a message of a client has arrived."""
        if name in self._clients:
            self._clients[name].seen_s = self._clock()

    def role_of(self, name: str) -> PendantRole | None:
        """Return the role with which a client joined; None if the client is unknown."""
        client = self._clients.get(name)
        return None if client is None else client.access.role

    def set_name(self, name: str | None, text: str, access: Access | None = None) -> Client:
        """Set the name that other clients see; an empty text removes it."""
        client, wanted = self._require_client(name, access), " ".join(text.split())
        if len(wanted) > MAX_NAME or not wanted.isprintable():
            raise BadRequestError(
                "this is not a valid name for a person",
                f"Take up to {MAX_NAME} letters and spaces.",
            )
        client.name = wanted or None
        self.changes += 1
        return client

    # ---- command --------------------------------------------------------------------------------

    def take_command(self, name: str | None, access: Access | None = None) -> None:
        """Let a client command: at once if no client does, otherwise after a countdown."""
        client = self._require_client(name, access)
        self._check_may_take(client)
        if self.commander in {None, client.id}:
            self._pass_to(client)
        else:
            self._begin_handover(client)

    def give_command(self, name: str | None, number: int, access: Access | None = None) -> None:
        """Pass command to another client after a countdown; for the commander or a teacher."""
        client = self._require_client(name, access)
        if client.access.role is not PendantRole.TEACHER:
            self._require_commander(client)
        to = next((each for each in self if each.number == number and each.outbox), None)
        if to is None:
            raise ProblemError(404, "nobody", f"there is no browser {number} here", "Look again.")
        to.access.require_role(PendantRole.COMMAND)
        if to.id != self.commander:
            self._begin_handover(to)

    def cancel_handover(self, name: str | None, access: Access | None = None) -> None:
        """Cancel a handover: allowed to the commander, the next commander and teachers.

        Only a teacher may cancel a handover to a teacher.
        """
        client = self._require_client(name, access)
        if self.handover is None:
            return
        to = self.handover.to
        teacher = client.access.role is PendantRole.TEACHER
        if not teacher and client is not to:
            self._require_commander(client)
            if to.access.role is PendantRole.TEACHER:
                client.access.require_role(PendantRole.TEACHER)
        self.handover = None

    def lock(self, name: str | None, *, locked: bool, access: Access | None = None) -> None:
        """Let only teachers take command, or all roles that may command again.

        The client that locks it commands at once, unless a teacher commands already.
        """
        client = self._require_client(name, access)
        client.access.require_role(PendantRole.TEACHER)
        self.locked = locked
        self._entrusted = None
        if locked:
            commander = self._clients.get(self.commander or "")
            self.handover = None
            if commander is None or commander.access.role is not PendantRole.TEACHER:
                self._pass_to(client)

    def release_command(self, name: str | None, access: Access | None = None) -> None:
        """Give up the command; then no client commands."""
        self.require_command(name, access)
        self.commander = self._entrusted = None

    def require_command(self, name: str | None, access: Access | None = None) -> None:
        """Raise `ProblemError` unless this client commands, or can because no client does."""
        client = self._require_client(name, access)
        client.access.require_role(PendantRole.COMMAND)
        if self.commander is None:
            self._check_may_take(client)
            self._pass_to(client)
        self._require_commander(client)

    def finish_handover(self) -> None:
        """Pass command if its countdown has ended and the next commander is still connected."""
        if self.handover is not None and self._clock() >= self.handover.due_s:
            to = self.handover.to
            self.handover = None
            if to.outbox is not None and to.id in self._clients:
                self._pass_to(to)

    def commander_lost(self, *, busy: bool) -> bool:
        """Whether the client in command was silent for too long; if so it loses the command."""
        now = self._clock()
        self._drop_stale_clients(now)
        client = self._clients.get(self.commander or "")
        if self.commander is None or (client is not None and not _is_silent(client, now, busy)):
            return False
        self.commander = None
        return True

    # ---- public information ---------------------------------------------------------------------

    def people(self) -> list[dict[str, Any]]:
        """Return the connected clients, without their secret ids."""
        return [
            {"number": each.number, "name": each.name, "role": each.access.role.value}
            for each in self
            if each.outbox is not None
        ]

    def free(self) -> dict[str, int]:
        """Return how many more browsers of each role may join."""
        return {role.value: max(self._free_slots(role), 0) for role in PendantRole}

    def _free_slots(self, role: PendantRole) -> int:
        here = sum(client.outbox is not None for client in self)
        return MAX_CLIENTS - RESERVED[role] - here

    def describe_command(self, *, you: bool) -> dict[str, Any]:
        """Return, as JSON, the client in command and the pending handover, without secret ids.

        `you` states whether the answer is for the client in command.
        """
        client = self._clients.get(self.commander or "")
        following = None
        if self.handover is not None:
            to, due_s = self.handover
            in_s = round(max(due_s - self._clock(), 0.0), 2)
            following = {"number": to.number, "name": to.name, "in_s": in_s}
        return {
            "you": you,
            "number": None if client is None else client.number,
            "name": None if client is None else client.name,
            "locked": self.locked,
            "next": following,
        }

    # ---- inside ---------------------------------------------------------------------------------

    def _find_client(self, name: str | None, access: Access | None) -> Client | None:
        """Return the client of this id if the request comes from the same browser and role."""
        client = self._clients.get(name or "")
        if client is None or access is None:
            return client
        own = client.access.seat
        if own is not None and not hmac.compare_digest(own.encode(), (access.seat or "").encode()):
            return None
        return client if access.role.rank >= client.access.role.rank else None

    def _require_client(self, name: str | None, access: Access | None) -> Client:
        client = self._find_client(name, access)
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

    def _may_take(self, client: Client) -> bool:
        role = client.access.role
        allowed = not self.locked or client.id == self._entrusted
        return role is PendantRole.TEACHER or (role.may_command and allowed)

    def _check_may_take(self, client: Client) -> None:
        client.access.require_role(PendantRole.COMMAND)
        if not self._may_take(client):
            raise ProblemError(
                403,
                "locked",
                "a teacher has locked the command",
                "Ask the teacher for it; stopping is always allowed.",
            )

    def _begin_handover(self, to: Client) -> None:
        if self.commander is None:
            self._pass_to(to)
        elif self.handover is None:
            self.handover = Handover(to, self._clock() + HANDOVER_S)
        elif self.handover.to is not to:
            raise ProblemError(
                409,
                "handover",
                "command is just passing to another browser",
                "Wait until it has, then ask again.",
            )

    def _pass_to(self, client: Client) -> None:
        self.commander, self.handover = client.id, None
        self._entrusted = client.id if self.locked else None

    def _drop_oldest_if_full(self) -> None:
        """Forget a disconnected browser that might return, if there are too many of them."""
        left = [each for each in self if each.outbox is None and each.id != self.commander]
        if len(self._clients) >= 2 * MAX_CLIENTS and left:
            del self._clients[min(left, key=lambda each: (each.access.role.rank, each.seen_s)).id]

    def _drop_stale_clients(self, now: float) -> None:
        for client in self:
            if client.outbox is None and now - client.seen_s > IDLE_SILENCE_S:
                del self._clients[client.id]


def _is_silent(client: Client, now: float, busy: bool) -> bool:
    """Whether a client was silent for too long; while idle, a closed socket is enough."""
    if client.outbox is None and not busy:
        return True
    return now - client.seen_s > (SILENCE_S if busy else IDLE_SILENCE_S)
