"""The hub: one robot, one activity, one client in command, and all clients that watch."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from rote.motion.files.library import Library
from rote.robot.api_values import Waiting, Waits
from rote.robot.robot import Robot
from rote.stage.conductor import StopAnswer
from rote.text import Text, as_json
from rote.transport.wires import EMBEDDED
from rote.web.access.clients import Client, Clients, Outbox
from rote.web.access.roles import LOCAL, Access
from rote.web.access.security import check_private
from rote.web.routes.view import LiveViews
from rote.web.schemas.robot import EventKind, PlayTake
from rote.web.server.problems import busy, to_json
from rote.web.services.actions import ActionService
from rote.web.services.activity import ActivityService, PendantStopResult
from rote.web.services.agents import AgentService
from rote.web.services.background_tasks import BackgroundTasks
from rote.web.services.broadcaster import Broadcaster, encode_message
from rote.web.services.connection_keeper import (
    DEFAULT_ABILITY,
    ConnectionKeeper,
    check_url,
    network_host,
)
from rote.web.services.edits import EditService
from rote.web.services.events import EventLog
from rote.web.services.freshness import Freshness
from rote.web.services.playing import PlayingService
from rote.web.services.robot_findings import RobotFindings
from rote.web.services.shows import ShowService
from rote.web.services.stage import ANSWER_S, PendantStage, StageService
from rote.web.services.status import StatusService
from rote.web.services.stop_sender import StopSender
from rote.web.services.stops import TOGETHER_S, Stops
from rote.web.services.takes import TakeService
from rote.web.services.teaching import TeachingService

_log = logging.getLogger("rote")

STATE_HZ = 30
_BEAT_EVERY = 9  # states between two beats: one in 0.3 s
_STATUS_EVERY = 3  # states between two checks whether the status has changed
_WAITS = {
    Waits.RELEASE: "the arms come to rest",
    Waits.LISTED: "the robot lists {name!r}",
}
"""What is waited for, as text."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start parameters: which robot to connect to first, and where takes are stored."""

    library: Library
    url: str = EMBEDDED
    key: str | None = None
    stage: PendantStage | None = None
    """The stage that this server conducts; None for none."""
    shows: Path | None = None
    """Where the shows are; None for the folder `shows` beside that of the takes."""
    recovered: tuple[str, ...] = ()
    """The takes that were recovered from recordings that a crash had cut off."""
    secret: str | None = None
    """The secret a person types to approve an agent's motion; None if agents may not propose."""

    @property
    def shows_folder(self) -> Path:
        """Where the shows are."""
        return self.shows or self.library.folder.parent / "shows"


class Hub:
    """Everything behind the API. All calls are made in one event loop."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._loop = asyncio.get_running_loop()
        self.clients = Clients(self._loop.time)
        self.broadcaster = Broadcaster(self.clients)
        self.freshness = Freshness(self._loop)
        self.events = EventLog(self.broadcaster.send_event)
        self.takes = TakeService(start.library)
        self.edits = EditService(self.takes)
        self.shows = ShowService(start.shows_folder, self.takes.folder, self.takes.pool)
        self.stage = StageService(start.stage, self.shows, self.notify)
        self.connection = ConnectionKeeper(self._on_connected, self.notify)
        self.stop_sender = StopSender(self.connection, self.notify)
        self.activities = ActivityService(self.connection, self.stop_sender, self.notify)
        parts = self.connection, self.activities, self.takes, self.notify
        self.teaching, self.playing = TeachingService(*parts), PlayingService(*parts)
        self.actions = ActionService(self.connection, self.activities, self.takes, self.edits)
        self.findings = RobotFindings(self.connection, self.actions)
        self.agents = AgentService(
            start.secret, self.connection, self.playing, self.takes, self.clients
        )
        self.views = LiveViews(self.connection, self.findings.list_findings)
        self.status = StatusService(
            connection=self.connection,
            clients=self.clients,
            stop_sender=self.stop_sender,
            activities=self.activities,
            teaching=self.teaching,
            actions=self.actions,
            findings=self.findings,
            agents=self.agents,
            takes=self.takes,
        )
        self._tasks = BackgroundTasks()
        self._stops = Stops(self.activities.stop, lambda: self.activities.activity)
        self._stopping: dict[Outbox, float] = {}
        self._last_broadcast_error = ""
        """The last error of a broadcast, to log it only once."""

    async def open(self) -> None:
        """Start: connect to the first robot, and begin to send states."""
        for name in self._start.recovered:
            self.events.add("recovered", f"A recording was cut off and is kept as {name!r}.")
        await self.connection.open(self._start.url, self._start.key)
        self._tasks.spawn(self._pulse())
        self._tasks.spawn(self.findings.refresh_forever())

    async def close(self) -> None:
        """Stop a show, bring the robot to rest and disconnect."""
        await asyncio.gather(self.stage.close(), self.activities.end())
        await self._tasks.close()
        self.activities.close()
        self.views.close()
        await self.connection.close()
        self.takes.close()

    # ---- the connection -------------------------------------------------------------------------

    async def connect(self, url: str, key: str | None, ability: str = DEFAULT_ABILITY) -> None:
        """Switch to another robot, for an ability; raises if an activity is still going on."""
        check_url(url)
        if host := network_host(url):
            await check_private(host, {network_host(self._start.url)})
        if self.activities.busy:
            raise busy("the robot is busy")
        robot = self.connection.connected
        if robot is not None and robot.url == url:
            # What is already known is more reliable than asking again, and costs nothing.
            robot.check_wanted(ability)
        if self.connection.url != url:
            self._forget_robot()
        await self.connection.open(url, key, ability)

    async def disconnect(self) -> None:
        """Disconnect from the robot, after a safe end of any activity."""
        await self.activities.end()
        self._forget_robot()
        await self.connection.close()

    def _forget_robot(self) -> None:
        self.activities.forget_robot()
        self.actions.forget()

    async def _on_connected(self, robot: Robot) -> None:
        await self.stop_sender.send_missed(robot)  # before anything else
        robot.on_waiting(self._notify_waiting)
        await self.findings.read_controller(robot)
        await self.actions.read_first(robot)
        await self.findings.read_first(robot)

    def _notify_waiting(self, waiting: Waiting | None) -> None:
        """Notify all pages why nothing happens for a while."""
        if waiting is not None:
            what = _WAITS[waiting.why].format(name=waiting.name)
            self.notify(f"Waiting until {what}, {waiting.most_s:.0f} s at most.")

    # ---- the robot ------------------------------------------------------------------------------

    async def play(self, name: str, *, speed: float | None, loop: bool) -> None:
        """Play a taught action, unless a stop is requested before it has begun."""
        stops, robot = self._stops.requests, self.connection.robot
        found = (await self.actions.read()).find(name)
        length_s = 0.0 if found is None else found.duration_s
        if self._stops.requests == stops:
            self.freshness.check()
            self.connection.check_same(robot)
            await self.playing.play(name, speed=speed, loop=loop, taught_s=length_s)

    async def play_take(self, request: PlayTake) -> None:
        """Play an edited take, unless a stop is requested while it is checked."""
        self.playing.check_stream()
        stops, robot = self._stops.requests, self.connection.robot
        playable = await self.edits.load_playable(request, robot.build)
        if self._stops.requests != stops:
            return
        self.freshness.check()
        self.connection.check_same(robot)
        await self.playing.play_track(
            playable.checked.track,
            request.take,
            force=request.force,
            mapped=request.mapped,
            imported=request.imported,
            checked=playable.checked,
            rounds=playable.rounds,
            loop=request.loop,
        )

    async def perform(self, preset: int) -> None:
        """Perform a factory action."""
        await self.playing.perform(preset, self.actions.preset_name(preset))

    async def stop(self) -> PendantStopResult:
        """Stop the robot and all robots on the stage; any client may, at any time.

        Neither waits for the other. Stops close together are coalesced.
        """
        stopping = self.stage.stop("the web UI")
        self.agents.void_approval()
        did = await self._stops.request_stop()
        if stopping is None:
            return did
        await asyncio.wait({stopping}, timeout=ANSWER_S)
        stage, failed = _describe_stage_stop(stopping)
        template = "{stage} The web UI's own robot: {robot}"
        return did._replace(
            message=Text(template, stage=stage, robot=did.message),
            confirmed=did.confirmed and not failed,
        )

    def stop_soon(self, why: str = "", answer: Outbox | None = None) -> None:
        """Stop in the background; send the result to `answer` first, then to all pages."""
        if answer is not None:
            now = self._loop.time()
            if now - self._stopping.get(answer, -TOGETHER_S) < TOGETHER_S:
                return  # it has just requested one, and will be answered
            self._stopping[answer] = now
        self._tasks.spawn(self._stop_and_notify(why, answer, self.stop))

    async def stop_and_notify(self) -> PendantStopResult:
        """Stop, notify all pages, and return what that did."""
        return await self._stop_and_notify("", None, self.stop)

    async def _stop_and_notify(
        self, why: str, answer: Outbox | None, stop: Callable[[], Awaitable[PendantStopResult]]
    ) -> PendantStopResult:
        did = await stop()
        if answer is not None:
            self._stopping.pop(answer, None)
            answer.add_message(encode_message("stopped", did._asdict()))
        message = Text("{why} {did}", why=why, did=did.message) if why else did.message
        # An unconfirmed stop has its own event.
        if did.confirmed and self._stops.is_new_message(message):
            self.notify(message, "stop")
        return did

    @property
    def needs_commander(self) -> bool:
        """Whether a client must be in command: the robot is busy, or a show runs by itself."""
        return self.activities.busy or self.stage.is_running

    # ---- clients and broadcasts------------------------------------------------------------------

    def join(self, old: str | None, version: str, access: Access = LOCAL) -> Client:
        """Register a browser, and send it its identity and the current state."""
        client = self.clients.join(old, access)
        assert client.outbox is not None
        hello = {
            "type": "hello",
            "client": client.id,
            "number": client.number,
            "name": client.name,
            "role": client.access.role.value,
            "version": version,
        }
        client.outbox.add_message(to_json(hello).decode())
        client.outbox.add_message(encode_message("people", self.broadcaster.people()))
        client.outbox.add_message(encode_message("events", {"events": self.events.documents()}))
        client.outbox.add_message(encode_message("status", self.status.document(client.id)))
        client.outbox.add_message(encode_message("stage", self.stage.document()))
        return client

    def notify(self, message: str, kind: EventKind | None = None, *, safety: bool = False) -> None:
        """Send a sentence to all pages; with a kind it is one of the recent events, too.

        A `Text` keeps its facts, for a page that renders them in its own way.
        """
        if kind == "lost" and (risk := self.activities.loss_warning):
            message, safety = Text("{lost} {risk}", lost=message, risk=risk), True
        event = None if kind is None else self.events.add(kind, message, safety=safety)
        document = {"message": message, "text": as_json(message)}
        self.broadcaster.send("notice", {**document, "event": None if event is None else event.id})

    async def _pulse(self) -> None:
        """Send states and statuses, and check on the client in command."""
        due, beat = self._loop.time(), 0
        while True:
            self.freshness.pulse()
            looks = beat % _STATUS_EVERY == 0
            if looks:
                self._check_commander()
                self.teaching.check_storage()
                self.activities.check_state()
            try:
                if beat % _BEAT_EVERY == 0:
                    self.broadcaster.send_beat(self.freshness.now_s)
                self._broadcast_updates(looks=looks)
            except Exception as error:  # a broadcast error must not stop the commander watchdog
                if repr(error) != self._last_broadcast_error:
                    self._last_broadcast_error = repr(error)
                    _log.exception("broadcasting to the pages failed")
            beat += 1
            due = max(due + 1 / STATE_HZ, self._loop.time() - 0.1)
            await asyncio.sleep(due - self._loop.time())

    def _check_commander(self) -> None:
        """Complete a due handover; stop the robot if the commander is gone while it moves."""
        self.clients.finish_handover()
        moves = self.needs_commander or self.activities.may_move
        if self.clients.commander_lost(busy=moves) and moves:
            is_stall = self.freshness.is_settling
            self.stop_soon(
                "This server was stalled." if is_stall else "The browser that commanded is gone."
            )

    def _broadcast_updates(self, *, looks: bool) -> None:
        robot = self.connection.connected
        self.broadcaster.send_state(None if robot is None else robot.state)
        if looks:
            self.broadcaster.send_people()
            self.broadcaster.send_status(self.status, is_busy=self.activities.busy)
            if self.stage.has_stage:
                self._follow_foreign_stop()
                self.broadcaster.send_stage(self.stage)

    def _follow_foreign_stop(self) -> None:
        """Stop this server's robot if another program has stopped the stage."""
        if self.stage.notice_foreign_stop():
            # The stage gets no second stop, or the caller of the first would never be answered.
            self.agents.void_approval()
            self._tasks.spawn(
                self._stop_and_notify("The stage was stopped.", None, self._stops.request_stop)
            )


def _describe_stage_stop(stopping: "asyncio.Task[StopAnswer]") -> tuple[str, bool]:
    """Return how a stop of the stage was answered so far, and whether it has failed."""
    if not stopping.done():
        return "STOP went out to the stage; not all robots have confirmed it yet.", False
    if stopping.cancelled() or stopping.exception() is not None:
        return "The STOP could not be sent to the stage: use the remotes!", True
    answer = stopping.result()
    if answer.unconfirmed:
        names = ", ".join(answer.unconfirmed)
        return f"STOP was not confirmed by {names}: use the remote!", True
    return "All robots on the stage have confirmed the STOP.", False
