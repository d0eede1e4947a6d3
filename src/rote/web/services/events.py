"""The recent events: stops, losses, recoveries, takes. They survive a reload of the page."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from rote.errors import RoteError
from rote.web.schemas.robot import EventKind, EventNow
from rote.web.server.problems import ProblemError, text_of

MAX_EVENTS = 200


@dataclass(slots=True, eq=False)
class Event:
    """One event; a safety event is shown until the user acknowledges it."""

    id: int
    time_s: float
    """Seconds since 1970."""
    kind: EventKind
    message: str
    safety: bool
    acknowledged: bool = False

    def document(self) -> EventNow:
        """Return the event for the page."""
        return {
            "id": self.id,
            "time_s": round(self.time_s, 3),
            "kind": self.kind,
            "safety": self.safety,
            "acknowledged": self.acknowledged,
            "message": str(self.message),
            "text": text_of(self.message),
        }


class Notify(Protocol):
    """Sends a sentence to all pages; if it has a kind, it is also one of the recent events."""

    def __call__(
        self, message: str, kind: EventKind | None = None, *, safety: bool = False
    ) -> None:
        """Send the sentence."""


def error_text(error: Exception | str) -> str:
    """Return the text of an error, with its facts if it has any."""
    return error.text if isinstance(error, RoteError) else str(error)


class EventLog:
    """The newest events; unacknowledged safety events are dropped last."""

    def __init__(self, on_change: Callable[[Event], None]) -> None:
        self._on_change = on_change
        self._events: dict[int, Event] = {}
        self._count = 0

    def __iter__(self) -> Iterator[Event]:
        return iter(tuple(self._events.values()))

    def add(self, kind: EventKind, message: str, *, safety: bool = False) -> Event:
        """Add an event; beyond the limit, drop the oldest one that needs no acknowledgement."""
        self._count += 1
        event = Event(self._count, time.time(), kind, message, safety)
        self._events[event.id] = event
        if len(self._events) > MAX_EVENTS:
            oldest = next(iter(self))
            droppable = (each for each in self if not each.safety or each.acknowledged)
            del self._events[next(droppable, oldest).id]
        self._on_change(event)
        return event

    def acknowledge(self, event_id: int) -> None:
        """Mark an event as read by the user; raise `ProblemError` if it does not exist."""
        event = self._events.get(event_id)
        if event is None:
            raise ProblemError(404, "no-event", f"there is no event {event_id}", "Reload the page.")
        if not event.acknowledged:
            event.acknowledged = True
            self._on_change(event)

    def documents(self) -> list[EventNow]:
        """Return all events for the page, the oldest first."""
        return [event.document() for event in self]
