"""The hub: one robot, one activity, one client in command, and all clients that watch."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rote.errors import LinkError, RefusedError, RoteError, UnsupportedError
from rote.findings import Finding, worst_first
from rote.messages import Code, Phase, RobotState, explain
from rote.motion.files.agreed_origins import is_agreed
from rote.motion.files.library import Library
from rote.robot import preflight
from rote.robot.api_values import Actions, ModeReport, Waiting, Waits
from rote.robot.robot import Robot
from rote.stage.conductor import StopAnswer
from rote.text import Text, as_json
from rote.transport.wires import EMBEDDED, wires_with
from rote.web.access.clients import Client, Clients, Outbox
from rote.web.access.roles import LOCAL, Access
from rote.web.access.security import check_private
from rote.web.routes.view import LiveViews
from rote.web.schemas.robot import EventKind, PlayTake, StoreTake
from rote.web.server.problems import busy, finding_document, texts_of, to_json
from rote.web.services.activity import ActivityService, CutOff, PendantActivity, PendantStopResult
from rote.web.services.agents import AgentService
from rote.web.services.connection_keeper import (
    DEFAULT_ABILITY,
    ConnectionKeeper,
    check_url,
    network_host,
)
from rote.web.services.edits import EditService
from rote.web.services.events import Event, EventLog
from rote.web.services.freshness import Freshness
from rote.web.services.playing import PlayingService
from rote.web.services.shows import ShowService
from rote.web.services.stage import ANSWER_S, PendantStage, StageService
from rote.web.services.stop_sender import StopSender
from rote.web.services.stops import TOGETHER_S, Stops
from rote.web.services.takes import TakeService
from rote.web.services.teaching import TeachingService

_log = logging.getLogger("rote")

STATE_HZ = 30
_BEAT_EVERY = 9  # states between two beats: one in 0.3 s
_STATUS_EVERY = 3  # states between two checks whether the status has changed
_BUSY_STATUS_S, _STATUS_S = 0.2, 1.0
_FINDINGS_S = 1.0
_STAGE_S = 0.3
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
        self.freshness = Freshness(self._loop)
        self.events = EventLog(self._send_event)
        self.takes = TakeService(start.library)
        self.edits = EditService(self.takes)
        self.shows = ShowService(start.shows_folder, self.takes.folder, self.takes.pool)
        self.stage = StageService(start.stage, self.shows, self.notify)
        self.connection = ConnectionKeeper(self._on_connected, self.notify)
        self.stop_sender = StopSender(self.connection, self.notify)
        self.activities = ActivityService(self.connection, self.stop_sender, self.notify)
        parts = self.connection, self.activities, self.takes, self.notify
        self.teaching, self.playing = TeachingService(*parts), PlayingService(*parts)
        self.agents = AgentService(
            start.secret, self.connection, self.playing, self.takes, self.clients
        )
        self.views = LiveViews(self.connection, self.findings)
        self._actions: Actions | None = None
        """What the robot can play; None if that is not known."""
        self.actions_changes = 0
        """Incremented whenever the list of actions has changed, or must be read again."""
        self._controller: str | None = None
        self._findings: list[Finding] = []
        """Preflight of a robot that stores no actions; otherwise findings from several states."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stops = Stops(self.activities.stop, lambda: self.activities.activity)
        self._sent_status: tuple[object, ...] = ()
        self._sent_people_changes = 0
        self._stopping: dict[Outbox, float] = {}
        self._status_sent_s = 0.0
        self._sent_stage = ("", 0.0)
        self._last_broadcast_error = ""
        """The last error of a broadcast, to log it only once."""

    async def open(self) -> None:
        """Start: connect to the first robot, and begin to send states."""
        for name in self._start.recovered:
            self.events.add("recovered", f"A recording was cut off and is kept as {name!r}.")
        await self.connection.open(self._start.url, self._start.key)
        self._spawn(self._pulse())
        self._spawn(self._refresh_findings())

    async def close(self) -> None:
        """Stop a show, bring the robot to rest and disconnect."""
        await asyncio.gather(self.stage.close(), self.activities.end())
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
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
        self._set_actions(None)

    def _set_actions(self, actions: Actions | None) -> None:
        if actions != self._actions:
            self._actions = actions
            self.actions_changes += 1

    async def _on_connected(self, robot: Robot) -> None:
        await self.stop_sender.send_missed(robot)  # before anything else
        robot.on_waiting(self._notify_waiting)
        self._controller = await robot.controller()
        self._set_actions(await robot.actions() if "list" in robot.abilities else Actions((), ()))
        self._findings = await robot.preflight() if "list" not in robot.abilities else []

    def _notify_waiting(self, waiting: Waiting | None) -> None:
        """Notify all pages why nothing happens for a while."""
        if waiting is not None:
            what = _WAITS[waiting.why].format(name=waiting.name)
            self.notify(f"Waiting until {what}, {waiting.most_s:.0f} s at most.")

    # ---- the robot ------------------------------------------------------------------------------

    async def actions(self) -> Actions:
        """Ask the robot what it can play."""
        actions = await self.connection.robot.actions()
        embedded = self.connection.embedded
        if embedded is not None:
            actions = Actions(embedded.presets, actions.taught)
        self._set_actions(actions)
        return actions

    async def actions_known(self) -> tuple[Actions | None, bool]:
        """Return what the robot can play, None if that is not known, and whether it is current.

        While a lost robot is being reconnected, this is its last known list, so that a page that
        asks in that moment gets no error.
        """
        try:
            return await self.actions(), True
        except (LinkError, TimeoutError):
            return self._actions, False

    async def play(self, name: str, *, speed: float | None, loop: bool) -> None:
        """Play a taught action, unless a stop is requested before it has begun."""
        stops, robot = self._stops.requests, self.connection.robot
        found = (await self.actions()).find(name)
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

    async def store(self, request: StoreTake) -> dict[str, Any]:
        """Store a take on the robot; return the number of keyframes and their maximum error."""
        robot = self.connection.robot
        if self.activities.busy:
            raise busy("the robot is busy")
        if "store" not in self.connection.abilities:
            raise UnsupportedError(
                "store a motion that it was not taught",
                self.connection.url_prefix,
                wires_with("store"),
            )
        if (await self.actions()).find(request.name) is not None:
            raise RefusedError(Code.NAME_EXISTS, *explain(Code.NAME_EXISTS))
        track = await self.edits.load_edited(request)
        stored = await robot.store_track(
            track,
            request.name,
            offload=self.takes.pool.run,
            imported=is_agreed(track.origin),
        )
        return {
            "keyframes": len(stored.keyframes),
            "max_error_rad": round(float(stored.max_error_rad), 4),
        }

    async def perform(self, preset: int) -> None:
        """Perform a factory action."""
        embedded = self.connection.embedded
        known = () if self._actions is None else self._actions.presets
        presets = known if embedded is None else embedded.presets
        names = {each.id: each.name.replace("_", " ") for each in presets}
        await self.playing.perform(preset, names.get(preset, str(preset)))

    async def rename_action(self, old: str, new: str) -> None:
        """Rename a taught action."""
        await self.connection.robot.rename(old, new)
        self.actions_changes += 1

    async def delete_action(self, name: str) -> None:
        """Delete a taught action."""
        await self.connection.robot.delete(name)
        self.actions_changes += 1

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
        self._spawn(self._stop_and_notify(why, answer, self.stop))

    async def stop_and_notify(self) -> PendantStopResult:
        """Stop, notify all pages, and return what that did."""
        return await self._stop_and_notify("", None, self.stop)

    async def _stop_and_notify(
        self, why: str, answer: Outbox | None, stop: Callable[[], Awaitable[PendantStopResult]]
    ) -> PendantStopResult:
        did = await stop()
        if answer is not None:
            self._stopping.pop(answer, None)
            answer.add_message(_encode_message("stopped", did._asdict()))
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
        client.outbox.add_message(_encode_message("people", self.people()))
        client.outbox.add_message(_encode_message("events", {"events": self.events.documents()}))
        client.outbox.add_message(_encode_message("status", self.status(client.id)))
        client.outbox.add_message(_encode_message("stage", self.stage.document()))
        return client

    def people(self) -> dict[str, Any]:
        """Return all connected browsers, and how many more may join."""
        return {"people": self.clients.people(), "free": self.clients.free()}

    def notify(self, message: str, kind: EventKind | None = None, *, safety: bool = False) -> None:
        """Send a sentence to all pages; with a kind it is one of the recent events, too.

        A `Text` keeps its facts, for a page that renders them in its own way.
        """
        if kind == "lost" and (risk := self.activities.loss_warning):
            message, safety = Text("{lost} {risk}", lost=message, risk=risk), True
        event = None if kind is None else self.events.add(kind, message, safety=safety)
        document = {"message": message, "text": as_json(message)}
        self._broadcast(
            _encode_message("notice", {**document, "event": None if event is None else event.id})
        )

    def _send_event(self, event: Event) -> None:
        self._broadcast(_encode_message("event", {"event": event.document()}))

    def _broadcast(self, text: str) -> None:
        for client in self.clients:
            if client.outbox is not None:
                client.outbox.add_message(text)

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
                    self._send_beat()
                self._broadcast_updates(looks=looks)
            except Exception as error:  # a broadcast error must not stop the commander watchdog
                if repr(error) != self._last_broadcast_error:
                    self._last_broadcast_error = repr(error)
                    _log.exception("broadcasting to the pages failed")
            beat += 1
            due = max(due + 1 / STATE_HZ, self._loop.time() - 0.1)
            await asyncio.sleep(due - self._loop.time())

    def _send_beat(self) -> None:
        for client in self.clients:
            if client.outbox is not None:
                client.outbox.beat(self.freshness.now_s)

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
        self._broadcast_state()
        if looks:
            self._broadcast_people()
            self._broadcast_status()
            self._broadcast_stage()

    def _broadcast_state(self) -> None:
        robot = self.connection.connected
        state = None if robot is None else robot.state
        outboxes = [client.outbox for client in self.clients if client.outbox is not None]
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

    def _broadcast_people(self) -> None:
        if self._sent_people_changes != self.clients.changes:
            self._sent_people_changes = self.clients.changes
            self._broadcast(_encode_message("people", self.people()))

    def _broadcast_status(self) -> None:
        state, activity = self.connection.state, self.activities.activity
        now = self._loop.time()
        shown = (
            self.connection.report,
            (self.clients.commander, self.clients.locked, self.clients.handover),
            self.clients.changes,
            tuple(self._findings),
            self._proposal_key(),
            None if activity is None else (activity, activity.kind, activity.take is None),
            (self.teaching.paused, self.activities.return_in_s is None),
            None if state is None else (state.mode, state.phase, state.holding, state.faults),
            (self.stop_sender.unconfirmed, self.activities.soft_reason(), self.actions_changes),
            (self.takes.changes, self.teaching.storage_problem, tuple(self.takes.unsaved)),
        )
        pause_s = _BUSY_STATUS_S if activity is not None else _STATUS_S
        if shown == self._sent_status and now - self._status_sent_s < pause_s:
            return
        self._sent_status, self._status_sent_s = shown, now
        # Two texts for all: one for the client in command, one for the others.
        texts = {you: _encode_message("status", self._status(you=you)) for you in (True, False)}
        for client in self.clients:
            if client.outbox is not None:
                client.outbox.add_message(texts[client.id == self.clients.commander])

    def _broadcast_stage(self) -> None:
        """Broadcast changes of the stage, throttled while no show runs."""
        if not self.stage.has_stage:
            return
        if self.stage.notice_foreign_stop():
            # Another program has stopped the stage: this server's robot stops as well. The stage
            # gets no second stop, or the caller of the first would never be answered.
            self.agents.void_approval()
            self._spawn(
                self._stop_and_notify("The stage was stopped.", None, self._stops.request_stop)
            )
        text, now = _encode_message("stage", self.stage.document()), self._loop.time()
        shown, shown_s = self._sent_stage
        pause_s = 0.0 if self.stage.is_running else _STAGE_S
        if text != shown and now - shown_s >= pause_s:
            self._sent_stage = (text, now)
            self._broadcast(text)

    async def _refresh_findings(self) -> None:
        """Run the preflight of a robot that stores no actions; that sends nothing to it.

        For other robots the findings follow from the state and the list of actions; only those
        that need several states are read here.
        """
        while True:
            await asyncio.sleep(_FINDINGS_S)
            robot = self.connection.connected
            if robot is None:
                continue
            inspect = robot.take_findings if "list" in robot.abilities else robot.preflight
            with suppress(RoteError, TimeoutError):
                found = await inspect()
                if robot is self.connection.connected:
                    self._findings = found

    def findings(self) -> list[Finding]:
        """Return the preflight findings; nothing is sent to the robot."""
        robot = self.connection.connected
        return [] if robot is None else self._collect_findings(robot, robot.state)

    def _collect_findings(self, robot: Robot, state: RobotState | None) -> list[Finding]:
        if "list" not in robot.abilities:
            return self._findings
        known = Actions((), ()) if self._actions is None else self._actions
        found = preflight.findings(state, known, robot.build, self._controller)
        return worst_first([*found, *self._findings])

    # ---- status ---------------------------------------------------------------------------------

    def status(self, client: str | None) -> dict[str, Any]:
        """Return everything that a page shows as status."""
        return self._status(you=client is not None and client == self.clients.commander)

    def _status(self, *, you: bool) -> dict[str, Any]:
        state = self.connection.state
        robot = self.connection.connected
        found = [] if robot is None else self._collect_findings(robot, state)
        wire, left_s = self.connection.wire, self.activities.return_in_s
        after = None if wire is None else wire.after_teaching
        soft, disk = self.activities.soft_reason(), self.teaching.storage_problem
        return {
            "connection": {
                **asdict(self.connection.report),
                "texts": texts_of(self.connection.report.message, self.connection.report.remedy),
                "url": self.connection.url or None,
                "wire": None if wire is None else wire.scheme,
                "simulated": "hand" in self.connection.abilities
                or (wire is not None and wire.lives_here),
            },
            "mode": _mode_document(robot, state),
            "build": None if robot is None else robot.build.name,
            "family": None if robot is None else robot.build.family,
            "title": None if robot is None else robot.build.title,
            "battery_percent": None if state is None else state.battery_percent,
            "temperatures_c": [] if state is None else [round(c, 1) for c in state.temperatures_c],
            "faults": [] if state is None else list(state.faults),
            "findings": [finding_document(one) for one in found],
            "abilities": sorted(self.connection.abilities),
            "elsewhere": sorted(self.connection.elsewhere),
            "activity": self._activity_document(),
            "commander": self.clients.describe_command(you=you),
            "holding": state is not None and state.holding,
            "stops": self.activities.stops,
            "paused": self.teaching.paused,
            "return_in_s": None if left_s is None else round(left_s, 2),
            "return_s": None if after is None else after.return_s,
            "proposal": self.agents.document(),
            "unconfirmed_stop": self._unconfirmed_stop(),
            "soft": None if soft is None else {"by": soft[0], "can_hold": soft[1]},
            "actions_changes": self.actions_changes,
            "takes_changes": self.takes.changes,
            "storage_problem": None if disk is None else texts_of(disk.text, disk.remedy),
            "unsaved": [each.document() for each in self.takes.unsaved.values()],
        }

    def _unconfirmed_stop(self) -> dict[str, Any] | None:
        stop = self.stop_sender.unconfirmed
        if stop is None:
            return None
        since_s = round(self._loop.time() - stop.since_s, 2)
        return {"since_s": since_s, "message": stop.message, "text": as_json(stop.message)}

    def _proposal_key(self) -> tuple[object, ...]:
        """Return what identifies a change of the proposal; the remaining time does not."""
        proposal = self.agents.document() or {}
        return (proposal.get("ticket"), proposal.get("state"))

    def _activity_document(self) -> dict[str, Any]:
        robot, activity = self.connection.connected, self.activities.activity
        state = None if robot is None else robot.state
        phase = Phase.NONE if state is None else state.phase
        document = {
            "kind": "idle",
            "name": "",
            "phase": phase.name.lower(),
            "elapsed_s": 0.0,
            "duration_s": None,
            "fraction": 0.0,
            "round": 1,
            "samples": 0,
        }
        if activity is None:
            # The activity of another client, or the return to rest after a teaching.
            if phase is not Phase.NONE:
                document["kind"] = "playing"
            found = self.activities.surviving_playback
            return document if found is None else document | self._surviving_document(found)
        elapsed_s = activity.elapsed_s(self._loop.time())
        document |= {"kind": activity.kind, "name": activity.name}
        document |= {"elapsed_s": round(elapsed_s, 2), "duration_s": activity.duration_s}
        return document | _progress_document(activity, elapsed_s)

    def _surviving_document(self, found: CutOff) -> dict[str, Any]:
        """Return the progress of a playback that continued while the connection was lost."""
        activity, now_s = found.activity, self._loop.time()
        length_s = activity.duration_s
        fraction, number = found.fraction, found.round
        if length_s:
            fraction += (now_s - found.at_s) / length_s
        return {
            "kind": activity.kind,
            "name": activity.name,
            "elapsed_s": round(activity.elapsed_s(now_s), 2),
            "duration_s": length_s,
            "fraction": round(min(fraction, 1.0), 4),
            "round": number,
        }

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


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


def _mode_document(robot: Robot | None, state: RobotState | None) -> dict[str, Any] | None:
    """Return the mode of a robot; None if it reports none, or no state has arrived yet."""
    if robot is None or state is None or robot.family is None or "mode" not in robot.abilities:
        return None
    return asdict(ModeReport.of(state.mode, robot.family.modes))


def _progress_document(activity: PendantActivity, elapsed_s: float) -> dict[str, Any]:
    progress = activity.halted
    if progress is None and activity.playing is not None:
        progress = activity.playing.progress
    if progress is not None:
        fraction, number = activity.in_round(progress)
        return {"fraction": round(fraction, 4), "round": number}
    if activity.kind == "teaching" and activity.duration_s:
        fraction = min(elapsed_s / activity.duration_s, 1.0)
        return {
            "fraction": round(fraction, 4),
            "samples": activity.take.samples if activity.take else 0,
        }
    return {}


def _encode_message(kind: str, document: dict[str, Any]) -> str:
    return to_json({"type": kind} | document).decode()
