"""One robot's part in a section: checked, prepared, begun at its time, paused and ended."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rote.errors import BadRequestError, RoteError, UnsupportedError
from rote.findings import Severity
from rote.messages import Phase, Sound
from rote.motion.files.agreed_origins import is_agreed
from rote.platform.loop import clock_of
from rote.robot.playing import Playing
from rote.robot.robot import Robot
from rote.robot.streamed_motion import TrackCheck, check_at_speed, check_robot
from rote.robot.streaming import Streaming
from rote.robot.ticker import TimedStart
from rote.stage.leads import SOUND_LEAD, LearnedLeads
from rote.stage.section_time import Hold, SectionTime
from rote.stage.show.file import Cue, CueKind
from rote.stage.show.score import PlacedAction, Score
from rote.wire.stage import StartReport

log = logging.getLogger("rote")

ACTION_LEAD_S = 0.5
"""Default time from the request to the motion of a robot's own action, until it is learned."""
_MAX_CUES, _MAX_CUE_NAME, MAX_REASON = 200, 60, 400
"""Maximum number of cues in a report, and maximum lengths of its texts."""
PAUSE_MARGIN_S = 1.5
"""A motion whose approach begins sooner than this is not paused."""
HELD_RAD = 0.25
"""Arms farther than this from the pose of a pause may be blocked: the motion does not go on."""
_ACTION_BEGIN_S = 10.0
"""Timeout for a stored action to begin to move."""


class AgentPart:
    """A robot's part in the section that its agent has loaded."""

    def __init__(
        self,
        robot: Robot,
        name: str,
        score: Score,
        sounds: Mapping[str, Sound],
        leads: LearnedLeads,
        notice_suspension: Callable[[], bool],
    ) -> None:
        """`notice_suspension` ends the run if this computer was suspended, and returns True."""
        self._robot, self._name = robot, name
        self._score, self._sounds = score, sounds
        self._leads, self._notice_suspension = leads, notice_suspension
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self._check: TrackCheck | None = None
        self.lead_s = 0.0
        """How many seconds before the section's start the robot must begin."""
        self._start: TimedStart | None = None
        self._playing: Streaming | None = None
        self._ended_early = False
        """Whether its motion ended before its last pose, for example because of another client."""
        self.end_reason = ""
        """Why it ends early; "" if it does not."""
        self.time: SectionTime | None = None
        """The section's time, once it has begun."""

    # ---- before the section -----------------------------------------------------------------

    async def check(self) -> None:
        """Raise if this robot cannot play the score.

        Warnings are accepted: they were shown before the show was run.
        """
        score, abilities = self._score, self._robot.abilities
        sound_cues = [cue for cue in score.cues if cue.kind is CueKind.SOUND]
        if len(sound_cues) < len(score.cues) and "voice" not in abilities:
            raise UnsupportedError(
                "speak or change its light", self._robot.url, ("webrtc://", "dds://")
            )
        if sound_cues and "sound" not in abilities:
            raise UnsupportedError("play sounds", self._robot.url, ("dds://",))
        for cue in sound_cues:
            if cue.value not in self._sounds:
                raise BadRequestError(f"the score does not contain the sound {cue.value!r}")
        if score.actions and "list" not in abilities:
            raise UnsupportedError("play actions of its own", self._robot.url)
        for finding in await self._robot.preflight():
            if finding.severity is Severity.ERROR:
                raise BadRequestError(str(finding.message), str(finding.remedy))
        if score.motion is not None:
            self._robot.check_streamable()
            track = score.motion.track
            check_robot(track, self._robot.build)
            report = await asyncio.to_thread(check_at_speed, track, 1.0, self._robot.build)
            report.permit(force=True)
            self._check = TrackCheck(track, 1.0, report)

    async def prepare(self) -> None:
        """Prepare the motion, and find out `lead_s`."""
        score = self._score
        leads_s = [0.0, *(self._find_lead_s(action) - action.at_s for action in score.actions)]
        if score.motion is not None:
            self._start = TimedStart()
            self._playing = self._robot.play_track(
                score.motion.track,
                at=self._start,
                force=True,
                checked=self._check,
                imported=is_agreed(score.motion.track.origin),
            )
            lead = self._start.lead_s
            failed = asyncio.ensure_future(self._playing.wait())
            futures: set[asyncio.Future[Any]] = {lead, failed}
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if not lead.done():
                failed.result()
                raise BadRequestError("the motion ended before the section began")
            failed.cancel()
            leads_s.append(lead.result() - score.motion.at_s)
        self.lead_s = max(leads_s)

    async def require_prepared(self) -> None:
        """Raise if the motion has failed since it was prepared."""
        if self._playing is not None and self._playing.done:
            await self._playing

    def _find_lead_s(self, action: PlacedAction) -> float:
        return self._leads.leads_s.get(action.name, ACTION_LEAD_S)

    def begin(self, start_s: float) -> None:
        """Let the motion begin at its time in the section that starts at `start_s`."""
        if self._start is not None and self._score.motion is not None:
            self._start.at(start_s + self._score.motion.at_s)
        self.time = SectionTime(self._clock)

    # ---- pauses -----------------------------------------------------------------------------

    @property
    def can_pause(self) -> bool:
        """Whether it can be paused now: stored actions and approaches cannot."""
        if self.time is None or self._score.actions:
            return False
        if self._start is None or self._playing is None or self._playing.done:
            return True
        due_s = self._start.due_s
        is_far = due_s is not None and due_s - self._clock() > PAUSE_MARGIN_S
        return is_far or self._playing.can_pause

    def hold(self, holds: tuple[Hold, ...]) -> None:
        """Pause, or go on. Raises `RoteError` if that is impossible."""
        if self.time is None:
            raise BadRequestError("its part has not begun")
        begin_s, end_s = holds[-1]
        if self._start is not None and self._playing is not None and not self._playing.done:
            is_waiting = self._start.due_s is not None
            if end_s is None and is_waiting:
                self._start.hold()
            elif end_s is None:
                self._playing.pause(begin_s)
            elif is_waiting:
                self._start.release(end_s - begin_s)
            else:
                self._playing.resume(end_s)
        self.time.holds = holds

    @property
    def paused_s(self) -> float | None:
        """How long the pause has lasted; negative before it begins, and None if none is open."""
        if self.time is None or not self.time.is_paused:
            return None
        return self._clock() - self.time.holds[-1][0]

    @property
    def held_pause(self) -> int:
        """The number of the pause in which the robot holds its pose, from 1; 0 if none."""
        paused_s = self.paused_s
        if self.time is None or paused_s is None or paused_s < 0.0 or not self._holds_pose():
            return 0
        return len(self.time.holds)

    def _holds_pose(self) -> bool:
        """Whether the arms are at the pose in which they were paused, so the motion may go on."""
        playing, start = self._playing, self._start
        if self._ended_early:
            return False
        if playing is None or playing.done or (start is not None and start.due_s is not None):
            return True
        held_rad, state = playing.held_pose_rad, self._robot.state
        if held_rad is None or state is None or not state.joints_rad:
            return False
        columns = list(self._robot.build.taught_columns)
        measured_rad = [state.joints_rad[column] for column in columns]
        distances_rad = [abs(a - b) for a, b in zip(measured_rad, held_rad, strict=True)]
        return bool(max(distances_rad) <= HELD_RAD)

    # ---- the section ------------------------------------------------------------------------

    async def play(self, run: str, start_s: float) -> StartReport:
        """Play motion, actions and cues of a run at their times; return the report."""
        empty, time = StartReport(run), self.time
        assert time is not None
        async with asyncio.TaskGroup() as group:
            if self._playing is not None:
                motion = group.create_task(self._await_motion(self._playing, empty))
            actions = group.create_task(self._play_actions(start_s, empty))
            cues = group.create_task(self._play_cues(start_s, time))
            group.create_task(time.wait_until(start_s + self._score.duration_s))
        action_report = actions.result()
        report = motion.result() if self._playing is not None else action_report
        completed = report.completed and action_report.completed
        reason = report.reason or action_report.reason
        return replace(report, cues=cues.result(), completed=completed, reason=reason)

    async def _await_motion(self, playing: Streaming, report: StartReport) -> StartReport:
        result = await playing.wait()
        self._ended_early = not result.completed
        late_ms = result.start_late_ms
        return replace(
            report,
            skew_s=None if late_ms is None else late_ms / 1000,
            resolution_s=1 / result.rate_hz if result.rate_hz else 0.0,
            completed=result.completed,
            reason=result.reason[:MAX_REASON],
        )

    async def _play_actions(self, start_s: float, report: StartReport) -> StartReport:
        """Request the robot's own actions, each early enough that its motion begins on time."""
        for action in self._score.actions:
            lead_s = self._find_lead_s(action)
            await asyncio.sleep(max(0.0, start_s + action.at_s - lead_s - self._clock()))
            if self._notice_suspension():
                raise BadRequestError("this computer was suspended", "Begin the section again.")
            requested_s = self._clock()
            moved_s, resolution_s, playing = await self._play_action(action)
            if moved_s is not None:
                self._leads.learn(action.name, moved_s - requested_s)
                if report.skew_s is None:
                    skew_s = moved_s - start_s - action.at_s
                    report = replace(
                        report, skew_s=skew_s, resolution_s=resolution_s, lead_s=lead_s
                    )
            if not (played := await playing.wait()).completed:
                return replace(report, completed=False, reason=played.reason[:MAX_REASON])
        return report

    async def _play_cues(
        self, start_s: float, time: SectionTime
    ) -> tuple[tuple[str, float | None], ...]:
        """Carry out the cues at their times; return how late each was.

        A cue that fails does not stop a motion: it is logged and reported.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._play_cue(cue, start_s + cue.at_s, time))
                for cue in self._score.cues
            ]
        return tuple(task.result() for task in tasks)[:_MAX_CUES]

    async def _play_cue(
        self, cue: Cue, due_s: float, time: SectionTime
    ) -> tuple[str, float | None]:
        lead_s = self._leads.leads_s.get(SOUND_LEAD, 0.0) if cue.kind is CueKind.SOUND else 0.0
        due_s = lead_s + await time.wait_until(due_s - lead_s)
        requested_s = self._clock()
        late_s: float | None = requested_s - due_s
        try:
            if cue.kind is CueKind.SAY:
                await self._robot.audio.say(cue.value, cue.language)
            elif cue.kind is CueKind.LIGHT:
                await self._robot.audio.light(*cue.colour)
            elif cue.kind is CueKind.SOUND:
                report = await self._robot.audio.sound(self._sounds[cue.value])
                if report.began_after_s is not None:
                    late_s = requested_s + report.began_after_s - due_s
                    self._leads.learn(SOUND_LEAD, report.began_after_s)
        except RoteError as error:
            log.warning("%s: the cue at %.2f s failed: %s", self._name, cue.at_s, error)
            late_s = None
        return cue.label[:_MAX_CUE_NAME], late_s

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
                await asyncio.wait_for(asyncio.shield(began), _ACTION_BEGIN_S)
        finally:
            remove_listener()
        interval_s = (times_s[-1] - times_s[0]) / (len(times_s) - 1) if len(times_s) > 1 else 0.0
        return (began.result() if began.done() else None), interval_s, playing

    # ---- after it ---------------------------------------------------------------------------

    def note_end(self, reason: str) -> None:
        """Record why it ends early; the first reason counts."""
        self.end_reason = self.end_reason or reason

    def give_up(self) -> None:
        """Do not begin the motion, unless it has begun."""
        if self._start is not None:
            self._start.give_up()

    async def wait_until_ended(self) -> None:
        """Wait until the motion has ended, in whatever way."""
        if self._playing is not None:
            with contextlib.suppress(RoteError, asyncio.CancelledError):
                await self._playing.wait()
