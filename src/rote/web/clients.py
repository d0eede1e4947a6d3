"""The connected browsers: who watches, who has the command, and who has fallen silent."""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Iterator

from rote.web.problems import ProblemError

SILENCE_S = 2.5
"""How long the browser in command may be silent while the robot moves or is soft."""
IDLE_SILENCE_S = 10.0
MAX_CLIENTS = 64
_MAX_WORDS = 64

Clock = Callable[[], float]


class Outbox:
    """What one browser is to be sent: every message, but only the newest state.

    So a browser that reads slowly falls behind by one state, and delays nobody else.
    """

    def __init__(self) -> None:
        self._words: deque[str] = deque(maxlen=_MAX_WORDS)
        self._state: str | None = None
        self._filled = asyncio.Event()

    def say(self, text: str) -> None:
        """Queue a message."""
        self._words.append(text)
        self._filled.set()

    def show(self, state: str) -> None:
        """Queue this state; a newer one replaces it."""
        self._state = state
        self._filled.set()

    async def next(self) -> str:
        """Wait for the next text to send."""
        while not self._words and self._state is None:
            self._filled.clear()
            await self._filled.wait()
        if self._words:
            return self._words.popleft()
        state, self._state = self._state, None
        assert state is not None
        return state


class Client:
    """One browser, or one script."""

    def __init__(self, name: str, now: float) -> None:
        self.id = name
        self.seen_s = now
        self.outbox: Outbox | None = Outbox()
        """None while it is disconnected."""


class Clients:
    """All connected clients, and the one that has the command."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._clients: dict[str, Client] = {}
        self.commander: str | None = None

    def __iter__(self) -> Iterator[Client]:
        return iter(tuple(self._clients.values()))

    def join(self, old: str | None = None) -> Client:
        """Add a client; one that was here a moment ago may return under its old name."""
        now = self._clock()
        self._forget(now)
        client = self._clients.get(old) if old else None
        if client is not None and client.outbox is None:
            client.outbox, client.seen_s = Outbox(), now
        else:
            if len(self._clients) >= MAX_CLIENTS:
                raise ProblemError(
                    409, "too-many", f"{MAX_CLIENTS} browsers are here already", "Close some."
                )
            client = Client(secrets.token_urlsafe(9), now)
            self._clients[client.id] = client
        if self.commander is None:
            self.commander = client.id
        return client

    def leave(self, client: Client) -> None:
        """Note that a client's socket has closed; it may return soon."""
        client.outbox, client.seen_s = None, self._clock()

    def alive(self, name: str) -> None:
        """Note that a client was heard."""
        if name in self._clients:
            self._clients[name].seen_s = self._clock()

    def take(self, name: str | None) -> None:
        """Give the command to a client, whoever had it before."""
        self.commander = self._known(name)

    def release(self, name: str | None) -> None:
        """Take the command from this client; then nobody has it."""
        self.need(name)
        self.commander = None

    def need(self, name: str | None) -> None:
        """Raise `ProblemError` unless this client has the command; if nobody has it, it gets it."""
        known = self._known(name)
        if self.commander is None:
            self.commander = known
        if self.commander != known:
            raise ProblemError(
                403,
                "not-commanding",
                "another browser commands the robot",
                "Take over the command first; stopping is always allowed.",
            )

    def commander_lost(self, *, busy: bool) -> bool:
        """Whether the client in command was silent for too long; if so it loses the command."""
        now = self._clock()
        self._forget(now)
        client = self._clients.get(self.commander or "")
        if self.commander is None or (client is not None and not _silent(client, now, busy)):
            return False
        self.commander = None
        return True

    def _known(self, name: str | None) -> str:
        if not name or name not in self._clients:
            raise ProblemError(
                403,
                "unknown-client",
                "this server does not know who asks",
                "Open /api/live first, and send the client's id as X-Rote-Client.",
            )
        self.alive(name)
        return name

    def _forget(self, now: float) -> None:
        for client in self:
            if client.outbox is None and now - client.seen_s > IDLE_SILENCE_S:
                del self._clients[client.id]


def _silent(client: Client, now: float, busy: bool) -> bool:
    """Whether it was silent for too long; at rest, a closed socket is enough."""
    if client.outbox is None and not busy:
        return True
    return now - client.seen_s > (SILENCE_S if busy else IDLE_SILENCE_S)
