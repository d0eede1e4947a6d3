"""Sends states, statuses, changes of the stage, events and messages to all pages."""

import asyncio
import secrets
from collections.abc import Callable, Mapping

from rote.bridge.foxglove import FoxgloveClient, FoxgloveFeed
from rote.bridge.live_view import FindingsOf, LiveView
from rote.messages import RobotState
from rote.web.access.clients import Clients, Outbox
from rote.web.schemas.robot import People
from rote.web.server.problems import to_json
from rote.web.services.connection_keeper import ConnectionKeeper
from rote.web.services.events import Event
from rote.web.services.stage import StageService
from rote.web.services.status import StatusService
from rote.web.work.drawing import model_of

# ---- views ---------------------------------------------------------------------------------------

MIN_STATE_INTERVAL_S = 0.0095
"""Minimum time between two states, about 100 per second."""
MAX_VIEWERS = 16
_CHECK_ROBOT_S = 0.5


class LiveViews:
    """Sends the connected robot's states to viewers, which are Foxglove applications."""

    def __init__(self, connection: ConnectionKeeper, findings: FindingsOf) -> None:
        self._connection = connection
        self._findings = findings
        self._feed = FoxgloveFeed(secrets.token_hex(8), "rote pendant")
        self._view: LiveView | None = None
        self._timer: asyncio.TimerHandle | None = None

    def join(self, on_queued: Callable[[], None]) -> FoxgloveClient | None:
        """Add a viewer, and return its client; None if there are too many viewers.

        `on_queued` is called whenever messages for the viewer have been queued.
        """
        if len(self._feed.clients) >= MAX_VIEWERS:
            return None
        client = self._feed.join(on_queued)
        if self._timer is None:
            self._follow_robot()
        return client

    def leave(self, client: FoxgloveClient) -> None:
        """Remove a viewer."""
        self._feed.leave(client)

    def close(self) -> None:
        """Stop showing the robot. Safe to call twice."""
        self._switch_view(None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _follow_robot(self) -> None:
        """Switch to the connected robot if it has changed; without viewers, stop."""
        if not self._feed.clients:
            self._timer = None
            self._switch_view(None)
            return
        self._timer = asyncio.get_running_loop().call_later(_CHECK_ROBOT_S, self._follow_robot)
        robot = self._connection.connected
        shown_robot = None if self._view is None else self._view.robot
        if robot is None:
            self._switch_view(None)
        elif robot is not shown_robot:
            self._switch_view(
                LiveView(
                    self._feed, robot, self._findings, model_of, min_interval_s=MIN_STATE_INTERVAL_S
                )
            )

    def _switch_view(self, view: LiveView | None) -> None:
        if self._view is not None:
            self._view.close()
        self._view = view
        if view is not None:
            view.open()


# ---- messages to browsers ------------------------------------------------------------------------


_BUSY_STATUS_S, _STATUS_S = 0.2, 1.0
_STAGE_S = 0.3
_SAME_STATE_S = 0.2
"""How often a state is sent in which only the time has changed, in seconds."""


class Broadcaster:
    """Sends to all pages what has changed."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._loop = asyncio.get_running_loop()
        self._sent_people_changes = 0
        self._sent_status: tuple[object, ...] = ()
        self._status_sent_s = 0.0
        self._sent_stage = ("", 0.0)
        """The last text about the stage, and when it was sent."""
        self._sent_state = ("", 0.0)
        """The fields of the last state except its time, and when they were sent."""

    @property
    def _outboxes(self) -> list[Outbox]:
        return [client.outbox for client in self._clients if client.outbox is not None]

    def people(self) -> People:
        """Return all connected browsers, and how many more may join."""
        return {"people": self._clients.people(), "free": self._clients.count_free_slots()}

    def send(self, kind: str, document: Mapping[str, object]) -> None:
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
            outbox.add_beat(now_s)

    def send_state(self, state: RobotState | None) -> None:
        """Send the robot's state, less often while it is unchanged; a slow page misses states."""
        outboxes = self._outboxes
        if state is None or not outboxes:
            return
        joints = ",".join([f"{value:.4f}" for value in state.joints_rad])
        # States are sent most often, so this JSON is written by hand, once for all clients.
        fields = (
            f'"joints_rad":[{joints}],"mode":{state.mode:d},'
            f'"phase":"{state.phase.name.lower()}","soft":{str(state.arms_soft).lower()}}}'
        )
        last_fields, sent_s = self._sent_state
        now = self._loop.time()
        if fields == last_fields and now - sent_s < _SAME_STATE_S:
            return
        self._sent_state = (fields, now)
        text = f'{{"type":"state","time_s":{state.time_us / 1e6:.4f},{fields}'
        for outbox in outboxes:
            outbox.set_state(text)

    def send_people(self) -> None:
        """Send the connected browsers if they have changed."""
        if self._sent_people_changes != self._clients.changes:
            self._sent_people_changes = self._clients.changes
            self.send("people", self.people())

    def send_status(self, status: StatusService, *, is_busy: bool) -> None:
        """Send the status if it has changed, and regularly: more often while the robot is busy."""
        key, now = status.make_change_key(), self._loop.time()
        pause_s = _BUSY_STATUS_S if is_busy else _STATUS_S
        if key == self._sent_status and now - self._status_sent_s < pause_s:
            return
        self._sent_status, self._status_sent_s = key, now
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
        last_text, last_sent_s = self._sent_stage
        pause_s = 0.0 if stage.is_running else _STAGE_S
        if text != last_text and now - last_sent_s >= pause_s:
            self._sent_stage = (text, now)
            self._send_text(text)


def encode_message(kind: str, document: Mapping[str, object]) -> str:
    """Return a message to a page as JSON text."""
    return to_json({"type": kind, **document}).decode()
