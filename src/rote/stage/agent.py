"""The agent of one robot on a stage: follows the conductor, and stops the robot if it is lost."""

import asyncio
import contextlib
import json
import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rote.errors import BadRequestError, DecodeError, RoteError, UnsupportedError
from rote.findings import Severity
from rote.messages import SOUND_RATE_HZ, HeardSpeech, Phase, Sound, SoundState
from rote.motion.files.agreed_origins import is_agreed
from rote.platform import paths
from rote.platform.atomic_file import appearing
from rote.platform.clock import MIN_SUSPENSION_S, Suspensions, stall_clock
from rote.platform.loop import clock_of, to_the_end
from rote.robot.playing import Playing
from rote.robot.robot import Robot
from rote.robot.streaming import Streaming, TimedStart, TrackCheck, check_at_speed, check_robot
from rote.session.stage_agent import (
    AgentEffect,
    AgentPhase,
    AgentSession,
    BeginRun,
    DropRun,
    HoldRun,
    LoadScore,
    PrepareRun,
    StopRobot,
)
from rote.session.stage_clock import MAX_ANSWERS
from rote.stage.keys import StageKeys, check_name
from rote.stage.leads import MAX_LEAD_S, SOUND_LEAD
from rote.stage.score_file import name_of, unpack
from rote.stage.section_time import SectionTime
from rote.stage.show.file import Cue, CueKind
from rote.stage.show.score import PlacedAction, Score
from rote.transport.zenoh.bus import StageBus
from rote.wire.stage import (
    Run,
    StartReport,
    decode_clock,
    decode_conductor,
    decode_lead_change,
    decode_stop,
)

log = logging.getLogger("rote")

STATE_S = 0.1
IDLE_STATE_S = 0.3
"""Interval of an agent's states while nothing is prepared; a change is published at once."""
TICK_S = 0.05
CLOCK_S = 1.0
GOOD_CLOCK_S, GOOD_BOUND_S = 5.0, 0.003
"""Interval of the clock requests while the clock's error is bounded this well: with hundreds of
agents, most of the conductor's load are answers that improve nothing."""
READY_CLOCK_S = 0.1
"""Interval of the clock requests while a section is prepared, until it begins."""
FIRST_CLOCK_S = 0.02
"""Interval of the clock requests until there are many answers."""
FETCH_S = 15.0
ACTION_LEAD_S = 0.5
"""Default time from the request to the motion of a robot's own action, until it is learned."""


MAX_SPEECH, MAX_FACTS, MAX_HELD, MAX_CUES = 8, 8, 32, 200
"""Maximum numbers of list entries in a state, so that states stay short."""
MAX_TEXT, MAX_CUE_NAME, MAX_REASON = 120, 60, 400
END_S = 3.0
"""Maximum time for which an agent that ends tries to stop a robot that does not answer."""
INSPECT_S = 5.0
"""Interval of the inspections of an idle robot: its findings and its stored actions."""
PAUSE_MARGIN_S = 1.5
"""A motion whose approach begins sooner than this is not paused."""
MAX_PAUSE_S = 1800.0
"""After a pause of this time the robot ends its part softly: its motors get warm."""
HELD_RAD = 0.25
"""Arms farther than this from the pose of a pause may be blocked: the motion does not go on."""


class _LearnedLeads:
    """The time from the request of a stored action, or sound, to its beginning, by name.

    It is measured at each playback and saved to disk, so that a rehearsal's values survive a
    restart.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._saving = threading.Lock()
        self._changed = False
        self.fault = ""
        """Why the last save failed; "" if it did not."""
        self.leads_s: dict[str, float] = {}
        self._set_by_person: set[str] = set()
        try:
            document = json.loads(file.read_text("utf-8"))
            for name, lead_s in document["leads_s"].items():
                self.learn(str(name), float(lead_s))
            self._set_by_person = {str(name) for name in document.get("set", ())}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self.leads_s, self._set_by_person = {}, set()  # they are learned again
        self._changed = False

    def learn(self, name: str, lead_s: float) -> None:
        """Store a measured lead in seconds; an implausible one is ignored, and one that a person
        has set stays.
        """
        if 0.0 <= lead_s <= MAX_LEAD_S and name not in self._set_by_person:
            self.leads_s[name] = lead_s
            self._changed = True

    def change(self, name: str, lead_s: float | None) -> None:
        """Set a lead by hand; with None forget it, so that it is measured again."""
        self._set_by_person.discard(name)
        if lead_s is None:
            self._changed = self.leads_s.pop(name, None) is not None or self._changed
        elif 0.0 <= lead_s <= MAX_LEAD_S:
            self.learn(name, lead_s)
            self._set_by_person.add(name)

    @property
    def entries(self) -> tuple[tuple[str, float, bool], ...]:
        """Each name with its lead, and whether a person has set it."""
        found = sorted(self.leads_s.items())[:MAX_HELD]
        return tuple(
            (name[:MAX_TEXT], round(lead_s, 3), name in self._set_by_person)
            for name, lead_s in found
        )

    def _encode(self) -> bytes:
        document = {"leads_s": dict(self.leads_s), "set": sorted(self._set_by_person)}
        return json.dumps(document, indent=1).encode()

    def save(self) -> None:
        """Write changed leads to disk; if that fails, `fault` has the reason."""
        with self._saving:
            if not self._changed:
                return
            self._changed = False  # before reading them: one learned meanwhile is saved next time
            try:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                with appearing(self._file) as file:
                    file.write(self._encode())
            except (OSError, RoteError) as error:
                reason = getattr(error.__cause__ or error, "strerror", None) or error
                self._changed, self.fault = True, f"the agent cannot write to its disk: {reason}"
                log.warning("the learned delays of the robot are not saved: %s", error)
            else:
                self.fault = ""


@dataclass(eq=False, slots=True)
class _AgentPart:
    """This robot's part in the loaded section."""

    score: Score
    sounds: Mapping[str, Sound] = field(default_factory=dict)
    check: TrackCheck | None = None
    lead_s: float = 0.0
    start: TimedStart | None = None
    playing: Streaming | None = None
    task: "asyncio.Task[None] | None" = None
    end_reason: str = ""
    """Why it ended early; "" if it did not."""
    must_stop: bool = False
    """Whether its motion was cancelled and the robot has not confirmed a stop since."""
    ended_early: bool = False
    """Whether its motion ended before its last pose, for example by a stop of another client."""
    time: SectionTime | None = None
    """The section's time, once it has begun."""


class Agent:
    """The agent of one robot in a stage. `run` works until it is cancelled or the bus is lost."""

    def __init__(self, bus: StageBus, robot: Robot, name: str, stage: str) -> None:
        self._bus, self._robot, self._keys = bus, robot, StageKeys(stage)
        self.name = check_name(name, "an agent")
        self.session = AgentSession(name, uuid.uuid4().hex)
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self._stall_clock = stall_clock(self._loop)
        self._conductor_message_s = self._stall_clock()
        """When the last message of the conductor arrived, or this agent began."""
        self._conductor_known = False
        self._suspensions = Suspensions()
        self._part: _AgentPart | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._loading: asyncio.Task[None] | None = None
        """The task that fetches and prepares a score; it must not outlive its run."""
        self._release_lock = asyncio.Lock()
        self._speech: deque[str] = deque(maxlen=MAX_SPEECH)
        self._speech_count = 0
        self._robot_findings: tuple[str, ...] = ()
        self._stored_actions: tuple[str, ...] = ()
        self._stop_fault = ""
        """Why the robot could not be stopped so far; "" if no stop is pending."""
        self._is_publish_scheduled = False
        self._held_pause = 0
        """The number of the pause in which the robot holds its pose, from 1; 0 if none."""
        self._learned = _LearnedLeads(paths.agent_file(stage, name))

    async def run(self) -> None:
        """Take part until cancelled; then stop the robot if it moves for this agent.

        Raises `LinkError` when the robot is lost: an agent without a robot cannot take part.
        """
        self._bus.subscribe(self._keys.conductor, self._on_conductor_message, newest=True)
        self._bus.subscribe(self._keys.stop, self._on_stop)
        self._bus.subscribe(self._keys.leads(self.name), self._on_lead_change)
        self._bus.declare(self._keys.token(self.name))
        can_hear = "hear" in self._robot.abilities
        remove_listener = self._robot.audio.add_listener(self._on_audio) if can_hear else None
        periodic = [
            self._loop.create_task(self._publish_periodically()),
            self._loop.create_task(self._tick()),
            self._loop.create_task(self._keep_asking_clock()),
            self._loop.create_task(self._inspect_robot()),
            self._loop.create_task(self._watch_robot()),
        ]
        try:
            await asyncio.gather(*periodic)
        finally:
            if remove_listener is not None:
                remove_listener()
            if self._part is not None:
                self._part.end_reason = self._part.end_reason or "its agent was ended"
            for task in (*periodic, *self._tasks):
                task.cancel()
            await asyncio.gather(*periodic, *self._tasks, return_exceptions=True)
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(END_S):
                        await self._release_part()
                        if self.session.is_stopping:
                            await self._stop_robot()
            finally:
                self._learned.save()  # the task that saves may have been cancelled before it began

    # ---- messages -------------------------------------------------------------------------------

    def _on_conductor_message(self, key: str, data: bytes) -> None:
        try:
            message = decode_conductor(data)
        except DecodeError:
            self._on_stop(key, data)
            return
        self._notice_suspension()
        self._carry_out_effects(self.session.on_conductor_state(message, self._clock()))
        if message.epoch == self.session.conductor:
            self._conductor_message_s = self._stall_clock()
            self._conductor_known = True

    def _on_stop(self, key: str, data: bytes) -> None:
        """Carry out a stop, whatever its key.

        When a router and its clients connect again, Zenoh delivers a few messages under the keys of
        others. Only a stop is accepted then, because every sender may stop all robots.
        """
        try:
            stop = decode_stop(data)
        except DecodeError as error:
            log.warning("a message under %s is not understood: %s", key, error)
            return
        self._carry_out_effects(self.session.on_stop(stop))

    def _on_lead_change(self, key: str, data: bytes) -> None:
        """Change a lead by hand; ignored while a section runs that was planned with the old one."""
        try:
            change = decode_lead_change(data)
        except DecodeError:
            self._on_stop(key, data)
            return
        if self.session.run is None:
            self._learned.change(change.name, change.seconds)
            self._start_task(asyncio.to_thread(self._learned.save))
            self._publish_soon()

    # ---- periodic work --------------------------------------------------------------------------

    async def _publish_periodically(self) -> None:
        while True:
            self._publish_now()
            idle = self.session.run is None and self.session.phase is AgentPhase.IDLE
            await asyncio.sleep(IDLE_STATE_S if idle else STATE_S)

    def _publish_soon(self) -> None:
        """Publish in the next pass of the event loop, so that a stop is sent before its report."""
        if not self._is_publish_scheduled:
            self._is_publish_scheduled = True
            self._loop.call_soon(self._publish_now)

    def _publish_now(self) -> None:
        self._is_publish_scheduled = False
        state = self._robot.state
        message = self.session.state(
            self._clock(),
            robot=self._robot.url[:200],
            build=self._robot.build.name,
            battery_percent=None if state is None else getattr(state, "battery_percent", None),
            moving=state is not None and state.phase is not Phase.NONE,
            heard=tuple(self._speech),
            facts=self._collect_facts(),
            holds=self._stored_actions,
            pausable=self._can_pause(),
            leads=self._learned.entries,
        )
        self._bus.publish(self._keys.state(self.name), message.encode())

    def _collect_facts(self) -> tuple[str, ...]:
        """Return the faults of this agent and the findings about its robot, as texts."""
        faults = (self._stop_fault, self._learned.fault)
        return (*(fault[:MAX_TEXT] for fault in faults if fault), *self._robot_findings)

    def _on_audio(self, audio: HeardSpeech | SoundState) -> None:
        if isinstance(audio, HeardSpeech):
            self._speech_count += 1
            self._speech.append(f"{self._speech_count} {audio.text[:MAX_TEXT]}")
            self._publish_soon()

    async def _watch_robot(self) -> None:
        """Raise `LinkError` as soon as the robot is lost."""
        async for _ in self._robot.states():
            pass

    async def _inspect_robot(self) -> None:
        """Periodically read the findings and stored actions of the robot while it is idle."""
        while True:
            if self.session.run is None:
                with contextlib.suppress(RoteError):
                    found = await self._robot.preflight()
                    serious = [each for each in found if each.severity is not Severity.NOTE]
                    self._robot_findings = tuple(
                        str(each.message)[:MAX_TEXT] for each in serious[:MAX_FACTS]
                    )
                    if "list" in self._robot.abilities:
                        names = [each.name for each in (await self._robot.actions()).taught]
                        self._stored_actions = tuple(name[:MAX_TEXT] for name in names[:MAX_HELD])
            await asyncio.sleep(INSPECT_S)

    @property
    def silent_s(self) -> float:
        """Time since the last message of the conductor."""
        return self._stall_clock() - self._conductor_message_s

    @property
    def conductor_known(self) -> bool:
        """Whether this agent has received a message of a conductor."""
        return self._conductor_known

    def _notice_suspension(self) -> bool:
        """End the run if this computer was suspended since the last call; return whether it was."""
        if not (suspended_s := self._suspensions.take()):
            return False
        log.warning("%s: this computer was suspended for %.1f s", self.name, suspended_s)
        self._carry_out_effects(self.session.resume(suspended_s))
        return True

    async def _tick(self) -> None:
        while True:
            self._notice_suspension()
            self._carry_out_effects(self.session.tick(self._clock()))
            self._update_held_pause()
            await asyncio.sleep(TICK_S)

    async def _keep_asking_clock(self) -> None:
        """Keep asking the obeyed conductor for its time; ignore answers across a suspend."""
        while True:
            epoch = self.session.conductor
            if epoch:
                self._ask_clock(epoch)
            await asyncio.sleep(self._choose_clock_interval_s() if epoch else TICK_S)

    def _ask_clock(self, epoch: str) -> None:
        """Ask the conductor of this epoch for its time. Any other conductor has another clock."""
        sent_s, stall_sent_s = self._clock(), self._stall_clock()

        def add(received_s: float, conductor_s: float) -> None:
            if epoch == self.session.conductor:  # it may have been replaced meanwhile
                self.session.clock.add(sent_s, received_s, conductor_s)

        def on_answer(data: bytes) -> None:
            # Runs in Zenoh's thread: a delay of the event loop must not count as network delay.
            received_s, stall_received_s = self._clock(), self._stall_clock()
            suspended_s = (stall_received_s - stall_sent_s) - (received_s - sent_s)
            conductor_s = decode_clock(data)
            if conductor_s is not None and suspended_s < MIN_SUSPENSION_S:
                self._loop.call_soon_threadsafe(add, received_s, conductor_s)

        self._bus.ask_for(self._keys.clock, 1.0, on_answer, epoch.encode())

    def _choose_clock_interval_s(self) -> float:
        if self.session.clock.answers < MAX_ANSWERS:
            return FIRST_CLOCK_S
        is_preparing = self.session.run is not None and self.session.phase is not AgentPhase.RUNNING
        if is_preparing:
            return READY_CLOCK_S
        is_good = self.session.clock.bound_s(self._clock()) <= GOOD_BOUND_S
        return GOOD_CLOCK_S if is_good else CLOCK_S

    # ---- effects --------------------------------------------------------------------------------

    def _carry_out_effects(self, effects: list[AgentEffect]) -> None:
        for effect in effects:
            if isinstance(effect, LoadScore):
                self._end_loading()
                self._loading = self._start_task(self._load_score(effect.score))
            elif isinstance(effect, PrepareRun):
                self._start_task(self._prepare_run(effect.run))
            elif isinstance(effect, BeginRun):
                self._begin_run(effect)
            elif isinstance(effect, HoldRun):
                self._hold_run(effect)
            elif isinstance(effect, DropRun):
                log.info("%s: %s", self.name, effect.reason)
                self._end_loading()
                if self._part is not None:
                    self._part.end_reason = effect.reason
                self._start_task(self._release_part())
            elif isinstance(effect, StopRobot):
                self._end_loading()
                self._start_task(self._stop_and_confirm(effect.stop))
        if effects:
            self._publish_soon()

    def _start_task(self, coroutine: "asyncio._CoroutineLike[None]") -> "asyncio.Task[None]":
        task: asyncio.Task[None] = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _end_loading(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            self._loading = None

    async def _load_score(self, score_hash: str) -> None:
        try:
            data = await self._bus.ask(self._keys.blob(score_hash), FETCH_S)
            if name_of(data) != score_hash:
                raise BadRequestError("the hash of the received score is wrong")
            score, hashes = await asyncio.to_thread(unpack, data)
            sounds = {name: await self._fetch_sound(each) for name, each in hashes.items()}
            await to_the_end(self._release_part())
            part = _AgentPart(score, sounds, await self._check_score(score, sounds))
            self._part = part
            part.lead_s = await self._prepare_part(part)
        except RoteError as error:
            self.session.on_loaded(score_hash, fault=f"{error}. {error.remedy}")
        except Exception as error:  # report any error, or the stage would wait for this agent
            log.exception("%s could not load a score", self.name)
            self.session.on_loaded(score_hash, fault=f"the score cannot be loaded: {error!r:.200}")
        else:
            self.session.on_loaded(score_hash, part.lead_s)
        self._publish_now()

    async def _fetch_sound(self, sound_hash: str) -> Sound:
        data = await self._bus.ask(self._keys.blob(sound_hash), FETCH_S)
        if name_of(data) != sound_hash:
            raise BadRequestError("the hash of the received sound is wrong")
        return Sound(data, SOUND_RATE_HZ, 1)

    async def _check_score(self, score: Score, sounds: Mapping[str, Sound]) -> TrackCheck | None:
        """Raise if this robot cannot play a score; return the check result of its motion.

        Warnings are accepted: they were shown before the show was run.
        """
        abilities = self._robot.abilities
        sound_cues = [cue for cue in score.cues if cue.kind is CueKind.SOUND]
        if len(sound_cues) < len(score.cues) and "voice" not in abilities:
            raise UnsupportedError(
                "speak or change its light", self._robot.url, ("webrtc://", "dds://")
            )
        if sound_cues and "sound" not in abilities:
            raise UnsupportedError("play sounds", self._robot.url, ("dds://",))
        for cue in sound_cues:
            if cue.value not in sounds:
                raise BadRequestError(f"the score does not contain the sound {cue.value!r}")
        if score.actions and "list" not in abilities:
            raise UnsupportedError("play actions of its own", self._robot.url)
        for finding in await self._robot.preflight():
            if finding.severity is Severity.ERROR:
                raise BadRequestError(str(finding.message), str(finding.remedy))
        if score.motion is None:
            return None
        self._robot.check_streamable()
        track = score.motion.track
        check_robot(track, self._robot.build)
        report = await asyncio.to_thread(check_at_speed, track, 1.0, self._robot.build)
        report.permit(force=True)
        return TrackCheck(track, 1.0, report)

    async def _prepare_run(self, run: Run) -> None:
        """Report that the run can begin, or why not: its motion may have failed since loading."""
        part = self._part
        try:
            if part is None:
                raise BadRequestError("no score was loaded")
            if part.playing is not None and part.playing.done:
                await part.playing
        except RoteError as error:
            self.session.on_prepared(run.id, 0.0, str(error))
            await self._release_part()
        else:
            self.session.on_prepared(run.id, part.lead_s)
        self._publish_now()

    async def _prepare_part(self, part: _AgentPart) -> float:
        """Prepare the motion; return how many seconds before the section's start the robot must
        begin.
        """
        score = part.score
        leads_s = [0.0, *(self._find_lead_s(action) - action.at_s for action in score.actions)]
        if score.motion is not None:
            part.start = TimedStart()
            part.playing = self._robot.play_track(
                score.motion.track,
                at=part.start,
                force=True,
                checked=part.check,
                imported=is_agreed(score.motion.track.origin),
            )
            lead = part.start.lead_s
            failed = asyncio.ensure_future(part.playing.wait())
            futures: set[asyncio.Future[Any]] = {lead, failed}
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if not lead.done():
                failed.result()
                raise BadRequestError("the motion ended before the section began")
            failed.cancel()
            leads_s.append(lead.result() - score.motion.at_s)
        return max(leads_s)

    def _find_lead_s(self, action: PlacedAction) -> float:
        return self._learned.leads_s.get(action.name, ACTION_LEAD_S)

    def _begin_run(self, effect: BeginRun) -> None:
        part = self._part
        if part is None:
            self.session.on_ended(effect.run.id, None, "no score was loaded")
            return
        if part.start is not None and part.score.motion is not None:
            part.start.at(effect.start_s + part.score.motion.at_s)
        part.time = SectionTime(self._clock)
        part.task = self._loop.create_task(self._perform_run(part, effect))

    def _can_pause(self) -> bool:
        """Whether this robot's part can be paused now: stored actions and approaches cannot."""
        part = self._part
        if part is None or part.time is None or part.score.actions:
            return False
        if part.start is None or part.playing is None or part.playing.done:
            return True
        due_s = part.start.due_s
        is_far = due_s is not None and due_s - self._clock() > PAUSE_MARGIN_S
        return is_far or part.playing.can_pause

    def _hold_run(self, effect: HoldRun) -> None:
        """Pause this robot's part, or let it go on; if that is impossible, end it softly."""
        part = self._part
        try:
            if part is None or part.time is None:
                raise BadRequestError("its part has not begun")
            begin_s, end_s = effect.holds[-1]
            if part.start is not None and part.playing is not None and not part.playing.done:
                is_waiting = part.start.due_s is not None
                if end_s is None and is_waiting:
                    part.start.hold()
                elif end_s is None:
                    part.playing.pause(begin_s)
                elif is_waiting:
                    part.start.release(end_s - begin_s)
                else:
                    part.playing.resume(end_s)
            part.time.holds = effect.holds
        except RoteError as error:
            log.warning("%s cannot be paused: %s", self.name, error)
            self._carry_out_effects(self.session.fail(effect.run, f"it cannot be paused: {error}"))

    def _update_held_pause(self) -> None:
        """Publish whether the robot holds its pose in a pause; end a pause that lasts too long."""
        part, held_pause = self._part, 0
        if part is not None and part.time is not None and part.time.is_paused:
            held_s = self._clock() - part.time.holds[-1][0]
            if held_s >= 0.0 and self._holds_pose(part):
                held_pause = len(part.time.holds)
            if held_s > MAX_PAUSE_S and self.session.run is not None:
                reason = f"it was paused for more than {MAX_PAUSE_S / 60:.0f} minutes"
                self._carry_out_effects(self.session.fail(self.session.run.id, reason))
        if held_pause != self._held_pause:
            self._held_pause = held_pause
            self.session.on_held(held_pause)
            self._publish_soon()

    def _holds_pose(self, part: _AgentPart) -> bool:
        """Whether the arms are at the pose in which they were paused, so the motion may go on."""
        playing = part.playing
        if part.ended_early:
            return False
        if playing is None or playing.done or (part.start and part.start.due_s is not None):
            return True
        held_rad, state = playing.held_pose_rad, self._robot.state
        if held_rad is None or state is None or not state.joints_rad:
            return False
        columns = list(self._robot.build.taught_columns)
        measured_rad = [state.joints_rad[column] for column in columns]
        distances_rad = [abs(a - b) for a, b in zip(measured_rad, held_rad, strict=True)]
        return bool(max(distances_rad) <= HELD_RAD)

    async def _perform_run(self, part: _AgentPart, effect: BeginRun) -> None:
        run = effect.run.id
        self.session.on_began(run)
        report, fault = StartReport(run, completed=False), ""
        # The end is always reported, because the conductor waits for it.
        try:
            try:
                report = await self._perform_all(part, effect)
            except* RoteError as errors:
                fault = str(errors.exceptions[0])
            except* Exception as errors:
                log.exception("%s could not play its part", self.name)
                fault = fault or f"its part failed: {errors.exceptions[0]!r:.200}"
            if fault:
                # If one task fails, the others must not continue unwatched.
                await self._stop_robot()
        finally:
            if not report.completed:
                report = replace(report, reason=report.reason or part.end_reason[:MAX_REASON])
            self.session.on_ended(run, report, fault)
            self._publish_soon()
        await asyncio.to_thread(self._learned.save)
        self._publish_soon()

    async def _perform_all(self, part: _AgentPart, effect: BeginRun) -> StartReport:
        """Play motion, actions and cues at their times; return the report."""
        empty = StartReport(effect.run.id)
        async with asyncio.TaskGroup() as group:
            if part.playing is not None:
                motion = group.create_task(self._await_motion(part, part.playing, empty))
            actions = group.create_task(self._play_actions(part.score, effect.start_s, empty))
            cues = group.create_task(self._play_cues(part, effect.start_s))
            assert part.time is not None
            group.create_task(part.time.wait_until(effect.start_s + part.score.duration_s))
        action_report = actions.result()
        report = motion.result() if part.playing is not None else action_report
        completed = report.completed and action_report.completed
        reason = report.reason or action_report.reason
        return replace(report, cues=cues.result(), completed=completed, reason=reason)

    async def _await_motion(
        self, part: _AgentPart, playing: Streaming, report: StartReport
    ) -> StartReport:
        result = await playing.wait()
        part.ended_early = not result.completed
        late_ms = result.start_late_ms
        return replace(
            report,
            skew_s=None if late_ms is None else late_ms / 1000,
            resolution_s=1 / result.rate_hz if result.rate_hz else 0.0,
            completed=result.completed,
            reason=result.reason[:MAX_REASON],
        )

    async def _play_actions(self, score: Score, start_s: float, report: StartReport) -> StartReport:
        """Request the robot's own actions, each early enough that its motion begins on time."""
        for action in score.actions:
            lead_s = self._find_lead_s(action)
            await asyncio.sleep(max(0.0, start_s + action.at_s - lead_s - self._clock()))
            if self._notice_suspension():
                raise BadRequestError("this computer was suspended", "Begin the section again.")
            requested_s = self._clock()
            moved_s, resolution_s, playing = await self._play_action(action)
            if moved_s is not None:
                self._learned.learn(action.name, moved_s - requested_s)
                if report.skew_s is None:
                    skew_s = moved_s - start_s - action.at_s
                    report = replace(
                        report, skew_s=skew_s, resolution_s=resolution_s, lead_s=lead_s
                    )
            if not (played := await playing.wait()).completed:
                return replace(report, completed=False, reason=played.reason[:MAX_REASON])
        return report

    async def _play_cues(
        self, part: _AgentPart, start_s: float
    ) -> tuple[tuple[str, float | None], ...]:
        """Carry out the cues at their times; return how late each was.

        A cue that fails does not stop a motion: it is logged and reported.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._play_cue(cue, part, start_s)) for cue in part.score.cues
            ]
        return tuple(task.result() for task in tasks)[:MAX_CUES]

    async def _play_cue(
        self, cue: Cue, part: _AgentPart, start_s: float
    ) -> tuple[str, float | None]:
        due_s = start_s + cue.at_s
        lead_s = self._learned.leads_s.get(SOUND_LEAD, 0.0) if cue.kind is CueKind.SOUND else 0.0
        assert part.time is not None
        due_s = lead_s + await part.time.wait_until(due_s - lead_s)
        requested_s = self._clock()
        late_s: float | None = requested_s - due_s
        try:
            if cue.kind is CueKind.SAY:
                await self._robot.audio.say(cue.value, cue.language)
            elif cue.kind is CueKind.LIGHT:
                await self._robot.audio.light(*cue.colour)
            elif cue.kind is CueKind.SOUND:
                report = await self._robot.audio.sound(part.sounds[cue.value])
                if report.began_after_s is not None:
                    late_s = requested_s + report.began_after_s - due_s
                    self._learned.learn(SOUND_LEAD, report.began_after_s)
        except RoteError as error:
            log.warning("%s: the cue at %.2f s failed: %s", self.name, cue.at_s, error)
            late_s = None
        return cue.label[:MAX_CUE_NAME], late_s

    async def _play_action(self, action: PlacedAction) -> tuple[float | None, float, Playing]:
        """Play an action; return when its motion began (None if unknown), the resolution of that
        time, and the playback.
        """
        began: asyncio.Future[float] = self._loop.create_future()
        times_s: list[float] = []

        def on_robot_state(state: object) -> None:
            times_s.append(self._clock())
            if getattr(state, "phase", None) is Phase.PLAYING and not began.done():
                began.set_result(times_s[-1])

        remove_listener: Callable[[], None] = self._robot.on_state(on_robot_state)
        try:
            speed = None if action.speed == 1.0 else action.speed
            playing = await self._robot.start(action.name, speed=speed)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(began), 10.0)
        finally:
            remove_listener()
        interval_s = (times_s[-1] - times_s[0]) / (len(times_s) - 1) if len(times_s) > 1 else 0.0
        return (began.result() if began.done() else None), interval_s, playing

    async def _release_part(self) -> None:
        """Discard the prepared part; a motion stops softly. Return when the robot is at rest.

        If this call is cancelled, the next one completes it, and stops the robot if necessary.
        """
        async with self._release_lock:
            part = self._part
            if part is None:
                return
            if part.task is not None and not part.task.done():
                part.must_stop = True
                part.task.cancel()
            if part.start is not None:
                part.start.give_up()
            if part.must_stop:
                await self._stop_robot()
                part.must_stop = False
            self._part = None
            if part.playing is not None:
                with contextlib.suppress(RoteError, asyncio.CancelledError):
                    await part.playing.wait()

    async def _stop_and_confirm(self, stop: str) -> None:
        """Stop the robot, then confirm the stop to the conductor."""
        await self._stop_robot()
        self.session.on_stopped(stop)
        self._publish_soon()

    async def _stop_robot(self) -> None:
        """Stop the robot; repeat the stop until the robot has answered."""
        while True:
            try:
                await self._robot.stop()
            except Exception as error:  # the stop must be repeated after any error
                self._stop_fault = f"the robot could not be stopped so far: {error}"
                log.error("%s: %s", self.name, self._stop_fault)
                await asyncio.sleep(0.1)
            else:
                self._stop_fault = ""
                return
