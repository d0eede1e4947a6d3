"""The hub: one robot, one activity, one client in command, and all clients that watch."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from rote.motion.files.library import Library
from rote.platform.clock import stall_clock
from rote.robot.api_values import Waiting, Waits
from rote.robot.robot import Robot
from rote.stage.conductor import StopAnswer
from rote.text import Text, as_json
from rote.transport.wires import EMBEDDED
from rote.web.access.clients import Client, Clients, Outbox
from rote.web.access.roles import LOCAL, Access
from rote.web.access.security import check_private
from rote.web.schemas.robot import EventKind, PlayTake
from rote.web.server.problems import ProblemError, busy, to_json
from rote.web.services.actions import ActionService
from rote.web.services.activity import ActivityService, PendantStopResult
from rote.web.services.agents import AgentService
from rote.web.services.background_tasks import BackgroundTasks
from rote.web.services.broadcaster import Broadcaster, LiveViews, encode_message
from rote.web.services.connection_keeper import (
    DEFAULT_ABILITY,
    ConnectionKeeper,
    check_url,
    network_host,
)
from rote.web.services.edits import EditService
from rote.web.services.events import EventLog
from rote.web.services.learning import LearningService
from rote.web.services.playing import PlayingService
from rote.web.services.shows import ShowService
from rote.web.services.stage import ANSWER_S, PendantStage, StageService
from rote.web.services.status import RobotFindings, StatusService
from rote.web.services.stop_sender import StopSender
from rote.web.services.stops import TOGETHER_S, Stops
from rote.web.services.takes import TakeService
from rote.web.services.teaching import TeachingService
from rote.web.work.pool import IdleChildren

STALL_S = 1.5
"""A pulse that comes later than this means that the event loop was stalled."""
SETTLE_S = 0.5
"""Time after a stall in which requests that were sent during it may still be read."""
MAX_AGE_S = 2.0
"""Maximum age of the newest beat that the client has received."""


class Freshness:
    """Refuses requests that were delayed; `pulse` must be called several times per second."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._clock = stall_clock(loop)
        self._last_pulse_s = self._clock()
        self._settled_s = self._last_pulse_s

    @property
    def now_s(self) -> float:
        """The time that beats carry, in seconds; its origin is arbitrary."""
        return self._clock()

    def pulse(self) -> None:
        """Record that the event loop runs; detect a stall since the last call."""
        now_s = self._clock()
        if now_s - self._last_pulse_s > STALL_S:
            self._settled_s = now_s + SETTLE_S
        self._last_pulse_s = now_s

    @property
    def is_settling(self) -> bool:
        """Whether this process has just been stalled: messages of clients may wait to be read."""
        return self._last_pulse_s < self._settled_s

    def check(self, beat_s: str | None = None) -> None:
        """Raise `ProblemError` if this process has just been stalled, or if `beat_s`, the time of
        the newest beat that the client received, is too old.
        """
        self.pulse()
        if self.is_settling or (beat_s and not self._is_recent(beat_s)):
            raise ProblemError(
                409,
                "stale-request",
                "the request arrived too late: the server or the network had stalled",
                "Nothing was started. Look at the robot, then try again.",
            )

    def _is_recent(self, beat_s: str) -> bool:
        try:
            age_s = self._last_pulse_s - float(beat_s)
        except ValueError:
            return False
        # Beats are rounded, so the newest one may seem to be slightly in the future.
        return -0.1 <= age_s <= MAX_AGE_S


_log = logging.getLogger("rote")

STATE_HZ = 30
_BEAT_EVERY = 9  # states between two beats: one in 0.3 s
_STATUS_EVERY = 3  # states between two checks whether the status has changed
_WAITS = {
    Waits.RELEASE: "the arms come to rest",
    Waits.LISTED: "the robot lists {name!r}",
}
"""The events that a robot waits for, as text."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start parameters of the server, such as the first robot and the library of takes."""

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
    children: IdleChildren | None = None
    """Child processes for long work that outlive this server; None: it has its own."""

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
        self.takes = TakeService(start.library, start.children)
        self.edits = EditService(self.takes)
        self.learning = LearningService(self.takes)
        self.shows = ShowService(start.shows_folder, self.takes.folder, self.takes.pool)
        self.stage = StageService(start.stage, self.shows, self.notify, self.freshness.check)
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
        """When each browser that waits for the result of a stop has requested it."""
        self._last_broadcast_error = ""
        """The last error of a broadcast, to log it only once."""

    async def open(self) -> None:
        """Start: connect to the first robot, and begin to send states."""
        for name in self._start.recovered:
            self.events.add("recovered", f"A recording was cut off and is kept as {name!r}.")
        await self.connection.open(self._start.url, self._start.key)
        self._tasks.spawn(self._run_pulse())
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
        """Begin to connect to a robot for an ability; raise if the current robot is busy."""
        check_url(url)
        if host := network_host(url):
            await check_private(host, {network_host(self._start.url)})
        if self.activities.busy:
            raise busy("the robot is busy")
        robot = self.connection.connected
        if robot is not None and robot.url == url:
            # Its known state shows whether the ability is safe; after closing, no state is known.
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
        await self.actions.read_after_connect(robot)
        await self.findings.inspect_after_connect(robot)

    def _notify_waiting(self, waiting: Waiting | None) -> None:
        """Notify all pages of the event that the robot waits for."""
        if waiting is not None:
            event = _WAITS[waiting.why].format(name=waiting.name)
            self.notify(f"Waiting until {event}, {waiting.most_s:.0f} s at most.")

    # ---- the robot ------------------------------------------------------------------------------

    async def play(self, name: str, *, speed: float | None, loop: bool) -> None:
        """Play a taught action, unless a stop is requested before it has begun."""
        stops_before, robot = self._stops.requests, self.connection.robot
        action = (await self.actions.read()).find(name)
        taught_s = 0.0 if action is None else action.duration_s
        if self._stops.requests == stops_before:
            self.freshness.check()
            self.connection.check_same(robot)
            await self.playing.play(name, speed=speed, loop=loop, taught_s=taught_s)

    async def play_take(self, request: PlayTake) -> None:
        """Play an edited take, unless a stop is requested while it is checked."""
        self.playing.require_streaming()
        stops_before, robot = self._stops.requests, self.connection.robot
        playable = await self.edits.load_playable(request, robot.build)
        if self._stops.requests != stops_before:
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
        """Stop the robot and, at the same time, all robots on the stage; allowed to all clients.

        Stops close together are coalesced.
        """
        stopping = self.stage.stop("the web UI")
        self.agents.void_approval()
        result = await self._stops.request_stop()
        if stopping is None:
            return result
        await asyncio.wait({stopping}, timeout=ANSWER_S)
        stage, failed = _describe_stage_stop(stopping)
        template = "{stage} The web UI's own robot: {robot}"
        return result._replace(
            message=Text(template, stage=stage, robot=result.message),
            confirmed=result.confirmed and not failed,
        )

    def stop_soon(self, reason: str = "", answer: Outbox | None = None) -> None:
        """Stop in the background; send the result to `answer` first, then to all pages."""
        if answer is not None:
            now = self._loop.time()
            if now - self._stopping.get(answer, -TOGETHER_S) < TOGETHER_S:
                return  # the pending stop will answer this request, too
            self._stopping[answer] = now
        self._tasks.spawn(self._stop_and_notify(reason, answer, self.stop))

    async def stop_and_notify(self) -> PendantStopResult:
        """Stop, and return the result after notifying all pages of it."""
        return await self._stop_and_notify("", None, self.stop)

    async def _stop_and_notify(
        self, reason: str, answer: Outbox | None, stop: Callable[[], Awaitable[PendantStopResult]]
    ) -> PendantStopResult:
        """Call `stop`; send its result to `answer`, then to all pages, with the `reason` first."""
        result = await stop()
        if answer is not None:
            self._stopping.pop(answer, None)
            answer.add_message(encode_message("stopped", result._asdict()))
        message = Text("{why} {did}", why=reason, did=result.message) if reason else result.message
        # An unconfirmed stop has its own event.
        if result.confirmed and self._stops.should_broadcast(message):
            self.notify(message, "stop")
        return result

    @property
    def needs_commander(self) -> bool:
        """Whether a client must be in command: the robot is busy, or a show runs by itself."""
        return self.activities.busy or self.stage.is_running

    # ---- clients and broadcasts------------------------------------------------------------------

    def join(self, previous_id: str | None, version: str, access: Access = LOCAL) -> Client:
        """Register a browser, and send it its identity and the current state."""
        client = self.clients.join(previous_id, access)
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
        """Send a sentence to all pages; if it has a kind, also add it to the recent events.

        The facts of a `Text` are sent, too, because a page may show them in another language.
        """
        if kind == "lost" and (risk := self.activities.loss_warning):
            message, safety = Text("{lost} {risk}", lost=message, risk=risk), True
        event = None if kind is None else self.events.add(kind, message, safety=safety)
        document = {"message": message, "text": as_json(message)}
        self.broadcaster.send("notice", {**document, "event": None if event is None else event.id})

    async def _run_pulse(self) -> None:
        """Send states and statuses, and check on the client in command."""
        next_s, count = self._loop.time(), 0
        while True:
            self.freshness.pulse()
            is_check_due = count % _STATUS_EVERY == 0
            if is_check_due:
                self._check_commander()
                self.teaching.check_storage()
                self.activities.check_state()
            try:
                if count % _BEAT_EVERY == 0:
                    self.broadcaster.send_beat(self.freshness.now_s)
                self._broadcast_updates(is_check_due=is_check_due)
            except Exception as error:  # a broadcast error must not stop the commander watchdog
                if repr(error) != self._last_broadcast_error:
                    self._last_broadcast_error = repr(error)
                    _log.exception("broadcasting to the pages failed")
            count += 1
            # After a delay, the missed pulses of the last 0.1 s are made up for.
            next_s = max(next_s + 1 / STATE_HZ, self._loop.time() - 0.1)
            await asyncio.sleep(next_s - self._loop.time())

    def _check_commander(self) -> None:
        """Complete a due handover; stop the robot if the commander is gone while it moves."""
        self.clients.finish_handover()
        may_move = self.needs_commander or self.activities.may_move
        if self.clients.drop_silent_commander(busy=may_move) and may_move:
            was_stalled = self.freshness.is_settling
            self.stop_soon(
                "This server was stalled." if was_stalled else "The browser that commanded is gone."
            )

    def _broadcast_updates(self, *, is_check_due: bool) -> None:
        """Send the robot's state; if a check is due, also what else has changed."""
        robot = self.connection.connected
        self.broadcaster.send_state(None if robot is None else robot.state)
        if is_check_due:
            self.broadcaster.send_people()
            self.broadcaster.send_status(self.status, is_busy=self.activities.busy)
            if self.stage.has_stage:
                self._follow_foreign_stop()
                self.broadcaster.send_stage(self.stage)

    def _follow_foreign_stop(self) -> None:
        """Stop this server's robot if another program has stopped the stage."""
        if self.stage.notice_foreign_stop():
            # A second stop of the stage would replace the first, whose caller would get no answer.
            self.agents.void_approval()
            self._tasks.spawn(
                self._stop_and_notify("The stage was stopped.", None, self._stops.request_stop)
            )


def _describe_stage_stop(stopping: "asyncio.Task[StopAnswer]") -> tuple[str, bool]:
    """Return a sentence about the result of a stop of the stage, and whether the stop failed."""
    if not stopping.done():
        return "STOP went out to the stage; not all robots have confirmed it yet.", False
    if stopping.cancelled() or stopping.exception() is not None:
        return "The STOP could not be sent to the stage: use the remotes!", True
    answer = stopping.result()
    if answer.unconfirmed:
        names = ", ".join(answer.unconfirmed)
        return f"STOP was not confirmed by {names}: use the remote!", True
    if answer.confirmed_s is None:
        return "No robot of the stage is connected, so none has confirmed the STOP.", False
    return "All robots on the stage have confirmed the STOP.", False
