"""The agent of one robot on a stage: follows the conductor, and stops the robot if it is lost."""

import asyncio
import contextlib
import logging
import uuid
from dataclasses import replace

from rote.errors import BadRequestError, DecodeError, RoteError
from rote.messages import SOUND_RATE_HZ, Sound
from rote.platform import paths
from rote.platform.clock import Suspensions, stall_clock
from rote.platform.loop import clock_of, to_the_end
from rote.robot.robot import Robot
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
from rote.stage.agent_part import MAX_REASON, AgentPart
from rote.stage.agent_robot import AgentRobot
from rote.stage.clock_requests import ClockRequests
from rote.stage.keys import StageKeys, check_name
from rote.stage.leads import LearnedLeads
from rote.stage.score_file import name_of, unpack
from rote.transport.zenoh.bus import StageBus
from rote.wire.stage import Run, StartReport, decode_conductor, decode_lead_change, decode_stop

log = logging.getLogger("rote")

STATE_S = 0.1
IDLE_STATE_S = 0.3
"""Interval of an agent's states while nothing is prepared; a change is published at once."""
TICK_S = 0.05
FETCH_S = 15.0
END_S = 3.0
"""Maximum time for which an agent that ends tries to stop a robot that does not answer."""
MAX_PAUSE_S = 1800.0
"""After a pause of this time the robot ends its part softly: its motors get warm."""


class Agent:
    """The agent of one robot in a stage. `run` works until it is cancelled or the bus is lost."""

    def __init__(self, bus: StageBus, robot: Robot, name: str, stage: str) -> None:
        self._bus, self._keys = bus, StageKeys(stage)
        self.name = check_name(name, "an agent")
        self.session = AgentSession(name, uuid.uuid4().hex)
        self.leads = LearnedLeads(paths.agent_file(stage, name))
        self._robot = robot
        self._agent_robot = AgentRobot(robot, name, self.session, self._publish_soon)
        self._clock_requests = ClockRequests(bus, self._keys, self.session)
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self._stall_clock = stall_clock(self._loop)
        self._conductor_message_s = self._stall_clock()
        """When the last message of the conductor arrived, or this agent began."""
        self._conductor_known = False
        self._suspensions = Suspensions()
        self._part: AgentPart | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._loading: asyncio.Task[None] | None = None
        """The task that fetches and prepares a score; it must not outlive its run."""
        self._performing: asyncio.Task[None] | None = None
        """The task that plays the part."""
        self._must_stop = False
        """Whether the part was cancelled and the robot has not confirmed a stop since."""
        self._release_lock = asyncio.Lock()
        self._is_publish_scheduled = False
        self._held_pause = 0
        """The number of the pause in which the robot holds its pose, from 1; 0 if none."""

    async def run(self) -> None:
        """Take part until cancelled; then stop the robot if it moves for this agent.

        Raises `LinkError` when the robot is lost: an agent without a robot cannot take part.
        """
        self._bus.subscribe(self._keys.conductor, self._on_conductor_message, newest=True)
        self._bus.subscribe(self._keys.stop, self._on_stop)
        self._bus.subscribe(self._keys.leads(self.name), self._on_lead_change)
        self._bus.declare(self._keys.token(self.name))
        periodic = [
            self._loop.create_task(self._publish_periodically()),
            self._loop.create_task(self._tick()),
            self._loop.create_task(self._clock_requests.run()),
            self._loop.create_task(self._agent_robot.inspect()),
            self._loop.create_task(self._agent_robot.watch()),
        ]
        try:
            await asyncio.gather(*periodic)
        finally:
            if self._part is not None:
                self._part.note_end("its agent was ended")
            for task in (*periodic, *self._tasks):
                task.cancel()
            await asyncio.gather(*periodic, *self._tasks, return_exceptions=True)
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(END_S):
                        await self._release_part()
                        if self.session.is_stopping:
                            await self._agent_robot.stop()
            finally:
                self.leads.save()  # the task that saves may have been cancelled before it began

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
            self.leads.change(change.name, change.seconds)
            self._start_task(asyncio.to_thread(self.leads.save))
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
        message = self.session.state(
            self._clock(),
            pausable=self._part is not None and self._part.can_pause,
            leads=self.leads.entries,
            **self._agent_robot.describe(self.leads.fault),
        )
        self._bus.publish(self._keys.state(self.name), message.encode())

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
                    self._part.note_end(effect.reason)
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
            part = AgentPart(
                self._robot, self.name, score, sounds, self.leads, self._notice_suspension
            )
            await part.check()
            self._part = part
            await part.prepare()
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

    async def _prepare_run(self, run: Run) -> None:
        """Report that the run can begin, or why not: its motion may have failed since loading."""
        part = self._part
        try:
            if part is None:
                raise BadRequestError("no score was loaded")
            await part.require_prepared()
        except RoteError as error:
            self.session.on_prepared(run.id, 0.0, str(error))
            await self._release_part()
        else:
            self.session.on_prepared(run.id, part.lead_s)
        self._publish_now()

    def _begin_run(self, effect: BeginRun) -> None:
        if self._part is None:
            self.session.on_ended(effect.run.id, None, "no score was loaded")
            return
        self._part.begin(effect.start_s)
        self._performing = self._loop.create_task(self._perform_run(self._part, effect))

    def _hold_run(self, effect: HoldRun) -> None:
        """Pause this robot's part, or let it go on; if that is impossible, end it softly."""
        try:
            if self._part is None:
                raise BadRequestError("its part has not begun")
            self._part.hold(effect.holds)
        except RoteError as error:
            log.warning("%s cannot be paused: %s", self.name, error)
            self._carry_out_effects(self.session.fail(effect.run, f"it cannot be paused: {error}"))

    def _update_held_pause(self) -> None:
        """Publish whether the robot holds its pose in a pause; end a pause that lasts too long."""
        part = self._part
        held_pause = 0 if part is None else part.held_pause
        paused_s = None if part is None else part.paused_s
        if paused_s is not None and paused_s > MAX_PAUSE_S and self.session.run is not None:
            reason = f"it was paused for more than {MAX_PAUSE_S / 60:.0f} minutes"
            self._carry_out_effects(self.session.fail(self.session.run.id, reason))
        if held_pause != self._held_pause:
            self._held_pause = held_pause
            self.session.on_held(held_pause)
            self._publish_soon()

    async def _perform_run(self, part: AgentPart, effect: BeginRun) -> None:
        run = effect.run.id
        self.session.on_began(run)
        report, fault = StartReport(run, completed=False), ""
        # The end is always reported, because the conductor waits for it.
        try:
            try:
                report = await part.play(run, effect.start_s)
            except* RoteError as errors:
                fault = str(errors.exceptions[0])
            except* Exception as errors:
                log.exception("%s could not play its part", self.name)
                fault = fault or f"its part failed: {errors.exceptions[0]!r:.200}"
            if fault:
                # If one task fails, the others must not continue unwatched.
                await self._agent_robot.stop()
        finally:
            if not report.completed:
                report = replace(report, reason=report.reason or part.end_reason[:MAX_REASON])
            self.session.on_ended(run, report, fault)
            self._publish_soon()
        await asyncio.to_thread(self.leads.save)
        self._publish_soon()

    async def _release_part(self) -> None:
        """Discard the prepared part; a motion stops softly. Return when the robot is at rest.

        If this call is cancelled, the next one completes it, and stops the robot if necessary.
        """
        async with self._release_lock:
            part = self._part
            if part is None:
                return
            if self._performing is not None and not self._performing.done():
                self._must_stop = True
                self._performing.cancel()
            part.give_up()
            if self._must_stop:
                await self._agent_robot.stop()
                self._must_stop = False
            self._part = None
            await part.wait_until_ended()

    async def _stop_and_confirm(self, stop: str) -> None:
        """Stop the robot, then confirm the stop to the conductor."""
        await self._agent_robot.stop()
        self.session.on_stopped(stop)
        self._publish_soon()
