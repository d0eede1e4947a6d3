"""Runs beside one robot: follows the conductor, and stops the robot without one."""

import asyncio
import contextlib
import json
import logging
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
from rote.platform.clock import LEAST_S, Suspensions, stall_clock
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
    LoadScore,
    PrepareRun,
    StopRobot,
)
from rote.session.stage_clock import MAX_ANSWERS
from rote.stage.keys import StageKeys, check_name
from rote.stage.score_file import name_of, unpack
from rote.stage.show.file import Cue, CueKind
from rote.stage.show.score import PlacedAction, Score
from rote.transport.zenoh.bus import StageBus
from rote.wire.stage import Run, StartReport, decode_clock, decode_conductor, decode_stop

log = logging.getLogger("rote")

STATE_S = 0.1
IDLE_STATE_S = 0.2
"""Interval of an agent's states while nothing is prepared; a change is published at once."""
TICK_S = 0.05
CLOCK_S = 1.0
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
SOUND_LEAD = "<sound>"
"""Name of the learned lead of sounds; no action has this name."""
MAX_LEAD_S = 15.0


class _LearnedLeads:
    """The delays until the robot's own actions move, measured whenever they are played.

    They are saved to disk, so that values from a rehearsal are available after a restart.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._changed = False
        self.fault = ""
        """Why the last save failed; "" if it did not."""
        self.leads_s: dict[str, float] = {}
        try:
            message = json.loads(file.read_text("utf-8"))["leads_s"]
            for name, lead_s in message.items():
                self.learn(str(name), float(lead_s))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self.leads_s = {}  # they are learned again
        self._changed = False

    def learn(self, name: str, lead_s: float) -> None:
        """Note a measured lead; an impossible one is ignored."""
        if 0.0 <= lead_s <= MAX_LEAD_S:
            self.leads_s[name] = lead_s
            self._changed = True

    def save(self) -> None:
        """Write changed leads to disk; if that fails, `fault` has the reason."""
        if not self._changed:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with appearing(self._file) as file:
                file.write(json.dumps({"leads_s": self.leads_s}, indent=1).encode())
        except (OSError, RoteError) as error:
            reason = getattr(error.__cause__ or error, "strerror", None) or error
            self.fault = f"the agent cannot write to its disk: {reason}"
            log.warning("the learned delays of the robot are not saved: %s", error)
        else:
            self._changed, self.fault = False, ""


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
    """Why it ended early."""
    must_stop: bool = False
    """Whether its motion was ended, and the robot has not confirmed a stop since."""


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
        self._suspensions = Suspensions()
        self._part: _AgentPart | None = None
        self._work: set[asyncio.Task[None]] = set()
        self._loading: asyncio.Task[None] | None = None
        """The task that fetches and prepares a score; it must not outlive its run."""
        self._releasing = asyncio.Lock()
        self._speech: deque[str] = deque(maxlen=MAX_SPEECH)
        self._speech_count = 0
        self._facts: tuple[str, ...] = ()
        self._holds: tuple[str, ...] = ()
        self._stop_fault = ""
        """Why the robot could not be stopped so far; "" if no stop is pending."""
        self._publishes = False
        self._learned = _LearnedLeads(paths.agent_file(stage, name))

    async def run(self) -> None:
        """Take part until cancelled; then stop the robot if it moves for this agent.

        Raises `LinkError` when the robot is lost: an agent without a robot cannot take part.
        """
        self._bus.subscribe(self._keys.conductor, self._on_conductor_message, newest=True)
        self._bus.subscribe(self._keys.stop, self._on_stop)
        self._bus.declare(self._keys.token(self.name))
        hears = "hear" in self._robot.abilities
        remove_listener = self._robot.audio.add_listener(self._on_audio) if hears else None
        loops = [
            self._loop.create_task(self._publish_periodically()),
            self._loop.create_task(self._tick()),
            self._loop.create_task(self._ask_clock()),
            self._loop.create_task(self._inspect_robot()),
            self._loop.create_task(self._watch_robot()),
        ]
        try:
            await asyncio.gather(*loops)
        finally:
            if remove_listener is not None:
                remove_listener()
            if self._part is not None:
                self._part.end_reason = self._part.end_reason or "its agent was ended"
            for task in (*loops, *self._work):
                task.cancel()
            await asyncio.gather(*loops, *self._work, return_exceptions=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    await self._release_part()
                    if self.session.is_stopping:
                        await self._stop_robot()

    # ---- messages -------------------------------------------------------------------------------

    def _on_conductor_message(self, _key: str, data: bytes) -> None:
        try:
            message = decode_conductor(data)
        except DecodeError as error:
            log.warning("the conductor's message is not understood: %s", error)
            return
        self._conductor_message_s = self._stall_clock()
        self._notice_suspension()
        self._carry_out(self.session.on_conductor_state(message, self._clock()))

    def _on_stop(self, _key: str, data: bytes) -> None:
        try:
            stop = decode_stop(data)
        except DecodeError as error:
            log.warning("a stop is not understood: %s", error)
            return
        self._carry_out(self.session.on_stop(stop))

    # ---- periodic work --------------------------------------------------------------------------

    async def _publish_periodically(self) -> None:
        while True:
            self._publish_now()
            idle = self.session.run is None and self.session.phase is AgentPhase.IDLE
            await asyncio.sleep(IDLE_STATE_S if idle else STATE_S)

    def _publish_soon(self) -> None:
        """Publish after the tasks that already wait for the loop: a stop precedes its report."""
        if not self._publishes:
            self._publishes = True
            self._loop.call_soon(self._publish_now)

    def _publish_now(self) -> None:
        self._publishes = False
        state = self._robot.state
        known = self.session.state(
            self._clock(),
            robot=self._robot.url[:200],
            build=self._robot.build.name,
            battery_percent=None if state is None else getattr(state, "battery_percent", None),
            moving=state is not None and state.phase is not Phase.NONE,
            heard=tuple(self._speech),
            facts=self._all_facts(),
            holds=self._holds,
        )
        self._bus.publish(self._keys.state(self.name), known.encode())

    def _all_facts(self) -> tuple[str, ...]:
        own = (self._stop_fault, self._learned.fault)
        return (*(each[:MAX_TEXT] for each in own if each), *self._facts)

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
                    self._facts = tuple(
                        str(each.message)[:MAX_TEXT] for each in serious[:MAX_FACTS]
                    )
                    if "list" in self._robot.abilities:
                        names = [each.name for each in (await self._robot.actions()).taught]
                        self._holds = tuple(name[:MAX_TEXT] for name in names[:MAX_HELD])
            await asyncio.sleep(INSPECT_S)

    @property
    def silent_s(self) -> float:
        """Time since the last message of the conductor."""
        return self._stall_clock() - self._conductor_message_s

    def _notice_suspension(self) -> bool:
        """End the run if this computer was suspended since the last call; return whether it was."""
        if not (suspended_s := self._suspensions.take()):
            return False
        log.warning("%s: this computer was suspended for %.1f s", self.name, suspended_s)
        self._carry_out(self.session.resume(suspended_s))
        return True

    async def _tick(self) -> None:
        while True:
            self._notice_suspension()
            self._carry_out(self.session.tick(self._clock()))
            await asyncio.sleep(TICK_S)

    async def _ask_clock(self) -> None:
        while True:
            sent_s, stall_sent_s = self._clock(), self._stall_clock()

            def on_answer(
                data: bytes, sent_s: float = sent_s, stall_sent_s: float = stall_sent_s
            ) -> None:
                # In Zenoh's thread: a delay of our own loop must not count as network delay.
                received_s, stall_received_s = self._clock(), self._stall_clock()
                suspended_s = (stall_received_s - stall_sent_s) - (received_s - sent_s)
                theirs_s = decode_clock(data)
                if theirs_s is not None and suspended_s < LEAST_S:
                    self._loop.call_soon_threadsafe(
                        self.session.clock.add, sent_s, received_s, theirs_s
                    )

            self._bus.ask_for(self._keys.clock, 1.0, on_answer)
            await asyncio.sleep(self._clock_interval_s())

    def _clock_interval_s(self) -> float:
        if self.session.clock.answers < MAX_ANSWERS:
            return FIRST_CLOCK_S
        is_preparing = self.session.run is not None and self.session.phase is not AgentPhase.RUNNING
        return READY_CLOCK_S if is_preparing else CLOCK_S

    # ---- effects --------------------------------------------------------------------------------

    def _carry_out(self, effects: list[AgentEffect]) -> None:
        for effect in effects:
            if isinstance(effect, LoadScore):
                self._end_loading()
                self._loading = self._begin_work(self._load_score(effect.score))
            elif isinstance(effect, PrepareRun):
                self._begin_work(self._prepare_run(effect.run))
            elif isinstance(effect, BeginRun):
                self._begin_run(effect)
            elif isinstance(effect, DropRun):
                log.info("%s: %s", self.name, effect.reason)
                self._end_loading()
                if self._part is not None:
                    self._part.end_reason = effect.reason
                self._begin_work(self._release_part())
            elif isinstance(effect, StopRobot):
                self._end_loading()
                self._begin_work(self._stop_and_confirm(effect.stop))
        if effects:
            self._publish_soon()

    def _begin_work(self, work: "asyncio._CoroutineLike[None]") -> "asyncio.Task[None]":
        task: asyncio.Task[None] = self._loop.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    def _end_loading(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            self._loading = None

    async def _load_score(self, score: str) -> None:
        try:
            data = await self._bus.ask(self._keys.blob(score), FETCH_S)
            if name_of(data) != score:
                raise BadRequestError("the received score is a different one")
            read, names = await asyncio.to_thread(unpack, data)
            sounds = {name: await self._fetch_sound(blob) for name, blob in names.items()}
            await to_the_end(self._release_part())
            part = _AgentPart(read, sounds, await self._check_score(read, sounds))
            self._part = part
            part.lead_s = await self._prepare_part(part)
        except RoteError as error:
            self.session.on_loaded(score, fault=f"{error}. {error.remedy}")
        except Exception as error:  # on any error, the stage must not wait for this agent
            log.exception("%s could not load a score", self.name)
            self.session.on_loaded(score, fault=f"the score cannot be loaded: {error!r:.200}")
        else:
            self.session.on_loaded(score, part.lead_s)
        self._publish_now()

    async def _fetch_sound(self, name: str) -> Sound:
        data = await self._bus.ask(self._keys.blob(name), FETCH_S)
        if name_of(data) != name:
            raise BadRequestError("the received sound is a different one")
        return Sound(data, SOUND_RATE_HZ, 1)

    async def _check_score(self, score: Score, sounds: Mapping[str, Sound]) -> TrackCheck | None:
        """Check a score on this robot. Warnings were shown before the show was run."""
        abilities = self._robot.abilities
        sounding = [cue for cue in score.cues if cue.kind is CueKind.SOUND]
        if len(sounding) < len(score.cues) and "voice" not in abilities:
            raise UnsupportedError("speak or shine", self._robot.url)
        if sounding and "sound" not in abilities:
            raise UnsupportedError("play sounds", self._robot.url)
        for cue in sounding:
            if cue.value not in sounds:
                raise BadRequestError(f"the sound {cue.value!r} did not come with the score")
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
        """Check once more whether the robot may move; loading did everything that takes long."""
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
        """Prepare the motion, and return how long before the section's start the robot begins."""
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
            ready = part.start.lead_s
            failed = asyncio.ensure_future(part.playing.wait())
            either: set[asyncio.Future[Any]] = {ready, failed}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                failed.result()
                raise BadRequestError("the motion ended before it began")
            failed.cancel()
            leads_s.append(ready.result() - score.motion.at_s)
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
        part.task = self._loop.create_task(self._perform_run(part, effect))

    async def _perform_run(self, part: _AgentPart, effect: BeginRun) -> None:
        run = effect.run.id
        self.session.on_began(run)
        report, fault = StartReport(run, completed=False), ""
        # The section ends here whatever happens: the conductor waits for it.
        try:
            try:
                report = await self._perform_all(part, effect)
            except* RoteError as errors:
                fault = str(errors.exceptions[0])
            except* Exception as errors:
                log.exception("%s could not play its part", self.name)
                fault = fault or f"its part failed: {errors.exceptions[0]!r:.200}"
            if fault:
                # If one thing fails, the rest of the part must not go on unwatched.
                await self._stop_robot()
        finally:
            if not report.completed:
                report = replace(report, reason=report.reason or part.end_reason[:MAX_REASON])
            self.session.on_ended(run, report, fault)
            self._publish_soon()
        await asyncio.to_thread(self._learned.save)
        self._publish_soon()

    async def _perform_all(self, part: _AgentPart, effect: BeginRun) -> StartReport:
        """Play motion, actions and cues at their times, and return how that went."""
        begun = StartReport(effect.run.id)
        async with asyncio.TaskGroup() as group:
            if part.playing is not None:
                motion = group.create_task(self._await_motion(part.playing, begun))
            actions = group.create_task(self._play_actions(part.score, effect.start_s, begun))
            cues = group.create_task(self._play_cues(part, effect.start_s))
            end = effect.start_s + part.score.duration_s - self._clock()
            group.create_task(asyncio.sleep(max(0.0, end)))
        acted = actions.result()
        report = motion.result() if part.playing is not None else acted
        completed = report.completed and acted.completed
        reason = report.reason or acted.reason
        return replace(report, cues=cues.result(), completed=completed, reason=reason)

    async def _await_motion(self, playing: Streaming, report: StartReport) -> StartReport:
        ended = await playing.wait()
        late_ms = ended.start_late_ms
        return replace(
            report,
            skew_s=None if late_ms is None else late_ms / 1000,
            resolution_s=1 / ended.rate_hz if ended.rate_hz else 0.0,
            completed=ended.completed,
            reason=ended.reason[:MAX_REASON],
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
        await asyncio.sleep(max(0.0, due_s - lead_s - self._clock()))
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
        every_s = (times_s[-1] - times_s[0]) / (len(times_s) - 1) if len(times_s) > 1 else 0.0
        return (began.result() if began.done() else None), every_s, playing

    async def _release_part(self) -> None:
        """Discard the prepared part; a motion stops softly. Return when the robot is at rest.

        If cancelled, it leaves the part to the next call, which stops the robot if necessary.
        """
        async with self._releasing:
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
        """Stop the robot, and confirm it."""
        await self._stop_robot()
        self.session.on_stopped(stop)
        self._publish_soon()

    async def _stop_robot(self) -> None:
        """Stop the robot; repeat the stop until the robot has answered."""
        while True:
            try:
                await self._robot.stop()
            except Exception as error:  # whatever it is, the robot must stop
                self._stop_fault = f"the robot could not be stopped yet: {error}"
                log.error("%s: %s", self.name, self._stop_fault)
                await asyncio.sleep(0.1)
            else:
                self._stop_fault = ""
                return
