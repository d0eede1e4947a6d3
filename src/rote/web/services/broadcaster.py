"""What is sent to all pages: states, statuses, changes of the stage, events and sentences."""

import asyncio
from typing import Any

from rote.messages import RobotState
from rote.web.access.clients import Clients, Outbox
from rote.web.server.problems import to_json
from rote.web.services.events import Event
from rote.web.services.stage import StageService
from rote.web.services.status import StatusService

_BUSY_STATUS_S, _STATUS_S = 0.2, 1.0
_STAGE_S = 0.3


class Broadcaster:
    """Sends to all pages, and each thing only if it has changed."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._loop = asyncio.get_running_loop()
        self._sent_people_changes = 0
        self._sent_status: tuple[object, ...] = ()
        self._status_sent_s = 0.0
        self._sent_stage = ("", 0.0)

    @property
    def _outboxes(self) -> list[Outbox]:
        return [client.outbox for client in self._clients if client.outbox is not None]

    def people(self) -> dict[str, Any]:
        """Return all connected browsers, and how many more may join."""
        return {"people": self._clients.people(), "free": self._clients.free()}

    def send(self, kind: str, document: dict[str, Any]) -> None:
        """Send a message to all pages."""
        self._send_text(encode_message(kind, document))

    def _send_text(self, text: str) -> None:
        for outbox in self._outboxes:
            outbox.add_message(text)

    def send_event(self, event: Event) -> None:
        """Send an event to all pages."""
        self.send("event", {"event": event.document()})

    def send_beat(self, now_s: float) -> None:
        """Send a beat, which shows pages that this server is alive."""
        for outbox in self._outboxes:
            outbox.beat(now_s)

    def send_state(self, state: RobotState | None) -> None:
        """Send the robot's state; a page that is slow gets only the newest."""
        outboxes = self._outboxes
        if state is None or not outboxes:
            return
        joints = ",".join([f"{value:.4f}" for value in state.joints_rad])
        # States are sent most often, so this JSON is written by hand, once for all clients.
        text = (
            f'{{"type":"state","time_s":{state.time_us / 1e6:.4f},"joints_rad":[{joints}],'
            f'"mode":{state.mode:d},'
            f'"phase":"{state.phase.name.lower()}","soft":{str(state.arms_soft).lower()}}}'
        )
        for outbox in outboxes:
            outbox.set_state(text)

    def send_people(self) -> None:
        """Send the connected browsers if they have changed."""
        if self._sent_people_changes != self._clients.changes:
            self._sent_people_changes = self._clients.changes
            self.send("people", self.people())

    def send_status(self, status: StatusService, *, is_busy: bool) -> None:
        """Send the status if it has changed, or is old; older sooner while the robot is busy."""
        shown, now = status.key(), self._loop.time()
        pause_s = _BUSY_STATUS_S if is_busy else _STATUS_S
        if shown == self._sent_status and now - self._status_sent_s < pause_s:
            return
        self._sent_status, self._status_sent_s = shown, now
        # Two texts for all: one for the client in command, one for the others.
        texts = {
            you: encode_message("status", status.document_for(you=you)) for you in (True, False)
        }
        for client in self._clients:
            if client.outbox is not None:
                client.outbox.add_message(texts[client.id == self._clients.commander])

    def send_stage(self, stage: StageService) -> None:
        """Send changes of the stage, throttled while no show runs."""
        text, now = encode_message("stage", stage.document()), self._loop.time()
        shown, shown_s = self._sent_stage
        pause_s = 0.0 if stage.is_running else _STAGE_S
        if text != shown and now - shown_s >= pause_s:
            self._sent_stage = (text, now)
            self._send_text(text)


def encode_message(kind: str, document: dict[str, Any]) -> str:
    """Return a message to a page as JSON text."""
    return to_json({"type": kind} | document).decode()
