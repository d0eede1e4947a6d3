"""The robot's activity for the web UI: one at a time, and a stop that never waits."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

from rote import messages as m
from rote.errors import LinkError, RefusedError, RoteError, UnsupportedError
from rote.messages import Code, Phase, RobotState
from rote.model.family import MAX_MOTION_S
from rote.motion.files.agreed_origins import agree, is_agreed
from rote.motion.record import Sample
from rote.motion.track import Track
from rote.robot.api_values import Progress, check_name
from rote.robot.playing import Playing
from rote.robot.robot import Robot
from rote.robot.streaming import Streaming, TrackCheck
from rote.robot.take import Take
from rote.robot.teaching import Teaching
from rote.text import Text
from rote.transport.wires import EMBEDDED, Wire, wires_with
from rote.web.server.problems import ProblemError, busy
from rote.web.services.connection_keeper import ConnectionKeeper
from rote.web.services.events import Notify
from rote.web.services.takes import TakeService

STOP_ANSWER_S = 1.2
"""How long the answer to a stop waits for the robot's confirmation."""
STOP_AGAIN_S = 0.5
"""Pause before a stop that was not confirmed is sent again."""
_ACCEPTED_S = 0.5
_END_S = 3.0
_SEEN_S = 1.0
_UNCONFIRMED = (
    "STOP was NOT confirmed by the robot{why}. It is sent again until the robot confirms it. "
    "Use the robot's own remote (L2+B)."
)

_log = logging.getLogger("rote")

T = TypeVar("T")
Kind = Literal["idle", "teaching", "playing", "performing"]


class Ending(NamedTuple):
    """How a teaching should end."""

    save: bool
    name: str


class TeachingResult(NamedTuple):
    """The result of a teaching."""

    take: str | None
    saved: bool
    kept: bool
    unsaved: str | None
    duration_s: float
    samples: int
    rate_hz: float


class PendantStopResult(NamedTuple):
    """What a stop did."""

    stopped: Literal["playing", "teaching", "holding", "nothing"]
    message: str
    confirmed: bool = True


@dataclass(slots=True, eq=False)
class PendingStop:
    """A stop that was requested and that the robot has not confirmed yet."""

    since_s: float
    message: str = ""
    """Empty while the robot still has time to answer."""
    task: "asyncio.Task[None] | None" = None
    """Sends it again."""


class CutOff(NamedTuple):
    """An activity that the loss of the robot has cut off; the robot may go on with it."""

    activity: "PendantActivity"
    at_s: float
    fraction: float
    round: int


@dataclass(slots=True, eq=False)
class PendantActivity:
    """One activity of the robot."""

    kind: Kind
    name: str
    began_s: float
    duration_s: float | None = None
    playing: Playing | None = None
    take: Take | None = None
    ending: "asyncio.Future[Ending] | None" = None
    taught: TeachingResult | None = None
    problem: Exception | None = None
    task: "asyncio.Task[None] | None" = None
    stopped: bool = False
    """Whether a stop was requested."""
    halted: Progress | None = None
    """The progress of a playback at that moment."""
    paused_at_s: float | None = None
    """Since when a recording is paused; None while it is not."""
    paused_s: float = 0.0
    """How long it was paused before."""
    rounds: int = 1
    """How many times the streamed track contains the motion."""
    rounds_done: int = 0
    """Rounds played by earlier streams of the same loop."""

    def elapsed_s(self, now_s: float) -> float:
        """Return how long it has been going on, without pauses."""
        until_s = now_s if self.paused_at_s is None else self.paused_at_s
        return until_s - self.began_s - self.paused_s

    def in_round(self, progress: Progress) -> tuple[float, int]:
        """Return the fraction of the current round, from 0 to 1, and its number."""
        if self.rounds == 1:
            return progress.fraction, progress.round + self.rounds_done
        past = min(int(progress.fraction * self.rounds), self.rounds - 1)
        return progress.fraction * self.rounds - past, self.rounds_done + past + 1


class ActivityService:
    """Teaches, plays, performs and stops, on the connected robot."""

    def __init__(self, connection: ConnectionKeeper, takes: TakeService, notify: Notify) -> None:
        self._connection = connection
        self._takes = takes
        self._notify = notify
        self._loop = asyncio.get_running_loop()
        self.activity: PendantActivity | None = None
        self._taught_at_s: float | None = None
        self.stops = 0
        """Number of requested stops."""
        self._unconfirmed: PendingStop | None = None
        self._cut_off: CutOff | None = None
        self._holding: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._was_soft = self._was_moving = False
        """What the robot reported last."""
        self._storage_problem: RoteError | None = None

    @property
    def return_in_s(self) -> float | None:
        """Time until limbs that hold after teaching return by themselves; None if they do not, or
        are already returning."""
        after = None if self._connection.wire is None else self._connection.wire.after_teaching
        if after is None or self._taught_at_s is None or self._connection.connected is None:
            return None
        left_s = self._taught_at_s + after.hold_s - self._loop.time()
        state = self._connection.state
        is_moving = state is not None and state.phase is not Phase.NONE
        return None if left_s <= 0.0 or is_moving else left_s

    @property
    def paused(self) -> bool:
        """Whether a recording is paused."""
        return self.activity is not None and self.activity.paused_at_s is not None

    @property
    def busy(self) -> bool:
        """Whether an activity that was begun here is going on."""
        return self.activity is not None

    # ---- teaching -------------------------------------------------------------------------------

    async def teach(self, name: str, *, overwrite: bool = False) -> None:
        """Begin to teach; return when the arms, or legs, are soft."""
        robot = self._connection.robot
        known = self._takes.has(name)
        # Raises what this wire refuses before the activity counts as begun.
        teaching = robot.teach(name, overwrite=overwrite, library=self._takes.library)
        activity = self._claim_robot("teaching", name)
        activity.ending = self._loop.create_future()
        activity.duration_s = MAX_MOTION_S
        soft: asyncio.Future[None] = self._loop.create_future()
        task = self._run_activity(
            activity, self._run_teaching(robot, activity, teaching, soft, known)
        )
        await asyncio.wait({task, soft}, return_when=asyncio.FIRST_COMPLETED)
        if not soft.done():
            task.result()
            raise activity.problem or AssertionError

    async def finish(self, *, save: bool, name: str | None = None) -> TeachingResult:
        """End the teaching: the arms hold, and the take is saved or discarded."""
        activity = self._need_teaching()
        assert activity.ending is not None
        wanted = name if save and name else activity.name
        if wanted != activity.name:
            # Refuse a bad name before the teaching ends.
            self._takes.check_name(check_name(wanted))
            await self._connection.robot.check_teachable(wanted)
        if not activity.ending.done():
            activity.ending.set_result(Ending(save, wanted))
            self._taught_at_s = self._loop.time()
        assert activity.task is not None
        await asyncio.wait({activity.task})
        activity.task.result()
        if activity.taught is None:
            raise activity.problem or AssertionError
        return activity.taught

    async def move_by_hand(self, script: str, seconds: float) -> None:
        """Let a scripted hand move a simulated robot's arms."""
        self._need_teaching()
        if "hand" not in self._connection.abilities:
            raise UnsupportedError(
                "move its own arms", self._connection.url_prefix, wires_with("hand")
            )
        if self._connection.embedded is not None:
            self._connection.embedded.release_hand()
        await self._connection.robot.move_by_hand(script, seconds)

    def drag(self, joint: str | None, value_rad: float) -> None:
        """Pull a joint of the embedded robot, or release it."""
        self._need_teaching()
        if self._connection.embedded is None:
            raise UnsupportedError("be dragged", self._connection.url_prefix, (EMBEDDED,))
        self._connection.embedded.drag(joint, value_rad)

    async def pause(self, *, paused: bool) -> None:
        """Pause the recording, or resume it."""
        if self.activity is None or self.activity.take is None:
            raise UnsupportedError("pause a playback", self._connection.url_prefix)
        activity, take, now_s = self.activity, self.activity.take, self._loop.time()
        await (take.pause() if paused else take.resume())
        if paused and activity.paused_at_s is None:
            activity.paused_at_s = now_s
        elif not paused and activity.paused_at_s is not None:
            activity.paused_s += self._loop.time() - activity.paused_at_s
            activity.paused_at_s = None

    def curve(self, first: int, count: int) -> Sequence[Sample]:
        """Return at most `count` recorded samples, from number `first` on."""
        take = None if self.activity is None else self.activity.take
        return () if take is None else take.rows(first, count)

    def _need_teaching(self) -> PendantActivity:
        activity = self.activity
        if activity is None or activity.kind != "teaching" or activity.take is None:
            raise RefusedError(Code.NOT_TEACHING, *m.explain(Code.NOT_TEACHING))
        return activity

    async def _run_teaching(
        self,
        robot: Robot,
        activity: PendantActivity,
        teaching: Teaching,
        soft: "asyncio.Future[None]",
        known: bool,
    ) -> None:
        assert activity.ending is not None
        ending = Ending(True, activity.name)
        try:
            async with teaching as take:
                activity.take, activity.began_s = take, self._loop.time()
                soft.set_result(None)
                if (await asyncio.wait({activity.ending}, timeout=MAX_MOTION_S))[0]:
                    ending = activity.ending.result()
                else:
                    self._taught_at_s = self._loop.time()
                renamed = ending.name != activity.name
                if not ending.save:
                    take.discard()
                elif renamed and "save" in robot.abilities:
                    take.name = ending.name  # the robot stores it under its last name
            if ending.save:
                activity.taught = await self._finish_take(
                    robot, activity, take, ending, known=known
                )
            else:
                activity.taught = _teaching_result(take, ending, None, on_robot=False)
            if not activity.ending.done():
                self._notify(f"{MAX_MOTION_S:.0f} s are full: saved as {ending.name!r}.", "saved")
        except (RoteError, ProblemError, TimeoutError, OSError) as error:
            activity.problem = error
            if isinstance(error, LinkError):
                self._note_cut_off(activity)
            unsaved = self._keep_in_memory(activity, ending.name) if ending.save else None
            if soft.done() and (message := _ending_message(activity, error, unsaved)):
                self._notify(message, "ended", safety=isinstance(error, LinkError))
        finally:
            if self._connection.embedded is not None:
                self._connection.embedded.release_hand()

    async def _finish_take(
        self, robot: Robot, activity: PendantActivity, take: Take, ending: Ending, *, known: bool
    ) -> TeachingResult:
        """Give a take its final name, here and on the robot; a take that cannot be written stays in
        memory.
        """
        unsaved = None
        if take.file is not None:
            if take.file.stem != ending.name:
                await self._rename_take(take.track, activity.name, ending.name, known=known)
                take.file = take.file.with_name(f"{ending.name}{take.file.suffix}")
            self._notify(f"Saved as the take {ending.name!r}.", "saved")
        elif take.samples:
            unsaved = self._keep_in_memory(activity, ending.name)
            template = "The take is not on this computer: {why}."
            if unsaved is not None:
                template = (
                    "The take could not be written: {why}. It is in this server's memory: save it "
                    "to another folder, or download it."
                )
            why = _error_text(take.file_problem or "it was not written")
            self._notify(Text(template, why=why), "not-saved", safety=True)
        own = "list" in robot.abilities
        if own and ending.name != activity.name and "save" not in robot.abilities:
            await robot.rename(activity.name, ending.name)
        return _teaching_result(take, ending, unsaved, on_robot=own)

    async def _rename_take(self, track: Track, old: str, name: str, *, known: bool) -> None:
        """Rename a take of this computer. It is written under the new name before the old one is
        removed, so that a full disk loses nothing.
        """
        if known:
            await self._takes.save(track, name)
            await self._takes.delete_newest(old)
        else:
            await self._takes.rename(old, name)

    def _keep_in_memory(self, activity: PendantActivity, name: str) -> str | None:
        """Keep a take in memory if it is not on disk; return its id, None if it is on disk."""
        take = activity.take
        if take is None or take.file is not None or take.samples < 2:
            return None
        why = _error_text(take.file_problem or activity.problem or "it could not be written")
        return self._takes.keep_unsaved(take.track, name, str(why))

    @property
    def storage_problem(self) -> RoteError | None:
        """Why the take that is being recorded cannot be written; None if it can."""
        take = None if self.activity is None else self.activity.take
        return None if take is None else take.file_problem

    # ---- playing --------------------------------------------------------------------------------

    async def play(self, name: str, *, speed: float | None, loop: bool, taught_s: float) -> None:
        """Play a taught action; return when the robot has accepted."""
        robot = self._connection.robot
        activity = self._claim_robot("playing", name)
        wanted = None if speed == 1.0 else speed
        await self._start_playback(activity, lambda: robot.play(name, speed=wanted, loop=loop))
        activity.duration_s = taught_s / (wanted or 1.0) or None

    def check_stream(self) -> None:
        """Raise `UnsupportedError` if this wire cannot play tracks of this computer."""
        robot = self._connection.robot
        if "stream" not in robot.abilities and "stream" not in self._connection.elsewhere:
            raise UnsupportedError(
                "stream a motion", self._connection.url_prefix, wires_with("stream")
            )

    async def play_track(
        self,
        track: Track,
        name: str,
        *,
        force: bool = False,
        mapped: bool = False,
        imported: bool = False,
        checked: TrackCheck | None = None,
        rounds: int = 1,
        loop: bool = False,
    ) -> PendantActivity:
        """Play a track that is not on the robot, pose by pose, on wires that can.

        The track has the motion `rounds` times. With `loop` it is played again after its soft
        return, until it is stopped.

        Contact is checked once more, from the current joint positions. `force` accepts warnings,
        `mapped` accepts joints that a motion of another build lacks or leaves out, and `imported`
        accepts an imported motion, which is asked once. Returns the activity, which has begun.
        """
        yes = imported or is_agreed(track.origin)
        robot = self._connection.robot
        activity = self._claim_robot("playing", name)
        activity.rounds, activity.duration_s = rounds, track.duration_s / rounds
        offload = self._takes.pool.run
        await self._start_playback(
            activity,
            lambda: robot.play_track(
                track,
                force=force,
                mapped=mapped,
                checked=checked,
                offload=offload,
                imported=yes,
            ),
            again=loop,
        )
        if imported:
            agree(track.origin)
        return activity

    async def perform(self, preset: int, name: str) -> None:
        """Perform a factory action; return when it has begun, or raise if it was refused."""
        robot = self._connection.robot
        if "presets" not in self._connection.abilities:
            raise UnsupportedError("perform factory actions", self._connection.url_prefix)
        activity = self._claim_robot("performing", name)
        task = self._run_activity(activity, self._run_preset(robot, activity, preset))
        await asyncio.wait({task}, timeout=_ACCEPTED_S)
        if task.done() and activity.problem is not None:
            raise activity.problem
        if not task.done():
            task.add_done_callback(lambda _: self._notify_problem(activity))

    async def _run_preset(self, robot: Robot, activity: PendantActivity, preset: int) -> None:
        embedded = self._connection.embedded
        try:
            if embedded is None:
                await robot.perform(preset)
            else:
                embedded.perform(preset)
                await _wait_until_motionless(robot)
        except (RoteError, TimeoutError) as error:
            activity.problem = error
            if isinstance(error, LinkError):
                self._note_cut_off(activity)

    async def _start_playback(
        self, activity: PendantActivity, begin: Callable[[], Playing], *, again: bool = False
    ) -> None:
        """Begin a playback, and wait for its end; a stop before it began is no error.

        With `again` it is repeated whenever it has ended by itself.
        """
        try:
            activity.playing = begin()
            await activity.playing.started()
        except BaseException as error:
            self._release_robot(activity)
            if activity.stopped and isinstance(error, RoteError | TimeoutError):
                return
            raise
        more = begin if again else None
        self._run_activity(activity, self._watch_playback(activity, activity.playing, more))
        if isinstance(activity.playing, Streaming) and activity.playing.left_out:
            self._notify("The hands of this motion are left out: only the arms move.")

    async def _watch_playback(
        self, activity: PendantActivity, playing: Playing, begin: Callable[[], Playing] | None
    ) -> None:
        """Wait for the end of a playback; with `begin`, play it again until it is stopped."""
        try:
            report = await playing.wait()
            while report.completed and begin is not None and not activity.stopped:
                activity.rounds_done += activity.rounds
                activity.playing = playing = begin()
                await playing.started()
                report = await playing.wait()
            if not report.completed and not activity.stopped:
                self._note_cut_short(activity, report.reason, loop=begin is not None)
        except (RoteError, TimeoutError) as error:
            if begin is not None and activity.stopped and isinstance(error, RefusedError):
                return
            activity.problem = error
            if isinstance(error, LinkError):
                self._note_cut_off(activity)
            self._notify_problem(activity)

    def _note_cut_short(self, activity: PendantActivity, reason: str, *, loop: bool) -> None:
        """Report why a playback ended early although this server did not stop it."""
        what = "The loop" if loop else f"Playing {activity.name!r}"
        why = reason or "the robot gives no reason"
        self._notify(Text("{what} has ended early: {why}.", what=what, why=why), "ended")

    # ---- stopping -------------------------------------------------------------------------------

    async def stop(self) -> PendantStopResult:
        """Stop the robot at once, whatever else is pending; return what that did.

        A stop that the robot does not confirm is not forgotten: it is sent again until the robot
        confirms it, and first of all after a reconnect.
        """
        self.stops += 1
        robot = self._connection.connected
        if robot is None and self._connection.report.state == "off":
            return PendantStopResult("nothing", "No robot is connected.")
        was, activity = self._describe_stop(robot, self._connection.state), self.activity
        if activity is not None:
            activity.stopped = True
            if activity.playing is not None:
                activity.halted = activity.halted or activity.playing.progress
        if was.stopped == "teaching" or self.return_in_s is not None:
            self._taught_at_s = self._loop.time()
        stop = self._unconfirmed = self._unconfirmed or PendingStop(self._loop.time())
        if robot is not None:
            sending = self._spawn(self._send_stop(robot, stop))
            await asyncio.wait({sending}, timeout=STOP_ANSWER_S)
            if sending.done() and sending.result():
                if activity is not None and activity.ending is not None:
                    # A teaching notices by itself that the arms hold, unless it never saw them
                    # soft.
                    self._loop.call_later(_SEEN_S, _end_stopped_teaching, activity)
                return was
        if self._unconfirmed is stop:
            self._latch_unconfirmed(stop)
        return PendantStopResult(was.stopped, stop.message, confirmed=False)

    async def send_missed_stop(self, robot: Robot) -> None:
        """Send a stop that was not confirmed to a robot that was just reached again."""
        if self._unconfirmed is not None:
            await self._send_stop(robot, self._unconfirmed)

    async def _send_stop(self, robot: Robot, stop: PendingStop) -> bool:
        """Send a stop once; return whether the robot has confirmed it."""
        try:
            await robot.stop()
        except Exception as error:  # whatever it is, the robot has not confirmed the stop
            if not isinstance(error, RoteError | TimeoutError):
                _log.exception("a stop failed unexpectedly")
            if self._unconfirmed is stop:
                self._latch_unconfirmed(stop, error)
            return False
        if self._unconfirmed is stop:
            self._unconfirmed = None
            if stop.message:
                self._notify("The robot has confirmed the STOP.", "stop-confirmed")
        return True

    def _latch_unconfirmed(self, stop: PendingStop, error: Exception | None = None) -> None:
        """Note that a stop was not confirmed in time, and send it again until it is."""
        if not stop.message:
            error = error or self._connection.failure
            why: str = "" if error is None else Text(": {error}", error=_error_text(error))
            stop.message = Text(_UNCONFIRMED, why=why)
            self._notify(stop.message, "stop-unconfirmed", safety=True)
        if stop.task is None:
            stop.task = self._spawn(self._stop_again(stop))

    async def _stop_again(self, stop: PendingStop) -> None:
        while self._unconfirmed is stop:
            await asyncio.sleep(STOP_AGAIN_S)
            robot = self._connection.connected
            if robot is not None and self._unconfirmed is stop:
                await self._send_stop(robot, stop)

    @property
    def unconfirmed_stop(self) -> PendingStop | None:
        """The stop that the robot should have confirmed by now; None if there is none."""
        stop = self._unconfirmed
        return stop if stop is not None and stop.message else None

    def forget_robot(self) -> None:
        """Forget what concerns the robot so far: another one is connected, or none."""
        stop = self._unconfirmed
        if stop is not None:
            never = f"The robot at {self._connection.url} never confirmed the STOP: look at it."
            stop.message = stop.message or never
            self._notify(never, "stop-unconfirmed", safety=True)
        self._unconfirmed = self._cut_off = None
        self._was_soft = self._was_moving = False

    # ---- what a loss has cut off ----------------------------------------------------------------

    @property
    def loss_warning(self) -> str:
        """The warning to show if the connection is lost now; empty if the robot was at rest."""
        kinds = {each.kind for each in (self.activity, self._cut_off_activity) if each is not None}
        if self._was_soft or "teaching" in kinds:
            return "Its arms or legs may still be soft: hold them, and use its own remote."
        if self._was_moving or kinds:
            return "It may still move: keep away, and use its own remote (L2+B)."
        return ""

    @property
    def _cut_off_activity(self) -> PendantActivity | None:
        return None if self._cut_off is None else self._cut_off.activity

    def soft_reason(self) -> "tuple[str, bool] | None":
        """Return why limbs are soft and whether a stop makes them hold; None if none are soft."""
        robot, state = self._connection.connected, self._connection.state
        if robot is None or state is None:
            lost = self._connection.report.state in ("lost", "connecting")
            return ("unknown", True) if lost and self._was_soft else None
        if not state.arms_soft:
            return None
        if self.activity is not None and self.activity.kind == "teaching":
            return ("teaching", True)
        return ("elsewhere", True) if _is_soft_for_teaching(robot, state) else ("damping", False)

    @property
    def surviving_playback(self) -> CutOff | None:
        """The playback that a loss has cut off, and that the robot goes on with."""
        cut, state = self._cut_off, self._connection.state
        if cut is None or cut.activity.kind == "teaching" or state is None or not state.playing:
            return None
        return cut if self.activity is None else None

    @property
    def may_move(self) -> bool:
        """Whether the robot moves for this server, or may still do so after a lost connection."""
        return self.activity is not None or self._cut_off is not None

    def _note_cut_off(self, activity: PendantActivity) -> None:
        progress = None if activity.playing is None else activity.playing.progress
        fraction, number = (0.0, 1) if progress is None else activity.in_round(progress)
        now_s = self._loop.time()
        self._cut_off = CutOff(activity, now_s, fraction, number)

    def check_state(self) -> None:
        """Compare the reported state with the activity; called several times per second."""
        problem = self.storage_problem
        if problem is not None and problem is not self._storage_problem:
            self._notify(
                Text(
                    "The take cannot be written: {why}. Recording goes on in memory.",
                    why=_error_text(problem),
                ),
                "not-saved",
                safety=True,
            )
        self._storage_problem = problem
        robot, state = self._connection.connected, self._connection.state
        if robot is None or state is None or not state.phase_told:
            return
        self._was_soft, self._was_moving = _is_soft_for_teaching(robot, state), state.playing
        cut = self._cut_off
        if cut is None:
            return
        if cut.activity.kind == "teaching" and self._was_soft and self.activity is None:
            if self._holding is None or self._holding.done():
                self._holding = self._spawn(self._end_cut_off_teaching())
        elif not state.playing and (self._holding is None or self._holding.done()):
            self._cut_off = None

    async def _end_cut_off_teaching(self) -> None:
        """Make limbs hold that a lost connection has left soft; repeated until they do."""
        if (await self.stop()).confirmed:
            self._notify(
                "The teaching that was cut off has ended: the robot was told to hold its limbs.",
                "soft",
                safety=True,
            )
            await asyncio.sleep(_SEEN_S)

    def _describe_stop(self, robot: Robot | None, state: RobotState | None) -> PendantStopResult:
        if robot is None:
            return PendantStopResult("nothing", "")
        # Our own activity is known at once; the newest state may be older than it.
        kind = self.activity.kind if self.activity is not None else "idle"
        seen = state if kind == "idle" else None
        # A robot that stores no actions is driven by us alone: after a stop it stays where it is.
        own, limbs = "list" in robot.abilities, robot.build.limbs
        if kind == "teaching" or (seen is not None and _is_soft_for_teaching(robot, seen)):
            how = _after_teaching_text(self._connection.wire)
            return PendantStopResult("teaching", f"Teaching has been stopped: the {limbs} {how}.")
        if kind == "idle" and self.return_in_s is not None:
            return PendantStopResult(
                "holding", f"Stopped: the {limbs} {_after_teaching_text(self._connection.wire)}."
            )
        if kind != "idle" or (seen is not None and seen.playing):
            how = "return softly" if own else "stay where they are"
            return PendantStopResult("playing", f"Stopped: the {limbs} {how}.")
        if seen is not None and seen.holding:
            return PendantStopResult("holding", f"Stopped: the {limbs} release their pose.")
        return PendantStopResult(
            "nothing", "Nothing was moving; the robot was told to stop anyway."
        )

    async def end(self) -> None:
        """End any activity safely, and wait for it; called before disconnecting."""
        activity = self.activity
        if activity is None:
            return
        with suppress(RoteError, TimeoutError):
            async with asyncio.timeout(_END_S):
                await self.stop()
        if activity.task is not None:
            done, _ = await asyncio.wait({activity.task}, timeout=_END_S)
            if not done:
                activity.task.cancel()
                await asyncio.wait({activity.task})

    # ---- inside ---------------------------------------------------------------------------------

    def _claim_robot(self, kind: Kind, name: str) -> PendantActivity:
        if self.activity is not None:
            raise busy(f"the robot is busy: {self.activity.kind} {self.activity.name!r}")
        if self.unconfirmed_stop is not None:
            # The stop is sent again until it is confirmed: it would end what begins now.
            raise ProblemError(
                409,
                "stop-pending",
                "the robot has not confirmed the last STOP",
                "Look at the robot, and wait until it has; disconnecting gives the STOP up.",
            )
        self._taught_at_s = self._cut_off = None
        self.activity = PendantActivity(kind, name, self._loop.time())
        return self.activity

    def _release_robot(self, activity: PendantActivity) -> None:
        if self.activity is activity:
            self.activity = None

    def _run_activity(
        self, activity: PendantActivity, work: Coroutine[Any, Any, None]
    ) -> "asyncio.Task[None]":
        task = asyncio.create_task(work, name=f"rote {activity.kind} {activity.name}")
        task.add_done_callback(lambda _: self._release_robot(activity))
        activity.task = task
        return task

    def _spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def close(self) -> None:
        """Cancel background tasks, such as repeated stops. Safe to call twice."""
        for task in tuple(self._tasks):
            task.cancel()

    def _notify_problem(self, activity: PendantActivity) -> None:
        if activity.problem is not None and not isinstance(activity.problem, LinkError):
            kind = activity.kind.capitalize()
            self._notify(
                Text("{kind} has ended: {why}.", kind=kind, why=_error_text(activity.problem)),
                "ended",
            )


def _end_stopped_teaching(activity: PendantActivity) -> None:
    """End a teaching that was stopped before it saw soft arms."""
    assert activity.ending is not None
    if not activity.ending.done():
        activity.ending.set_result(Ending(False, activity.name))


def _ending_message(activity: PendantActivity, error: Exception, unsaved: str | None) -> str:
    """Return the message about the end; empty parts are what the user already knows."""
    expected = activity.stopped and isinstance(error, RefusedError)
    ended = "" if expected else Text("The teaching has ended: {why}.", why=_error_text(error))
    if unsaved is not None:
        kept = "What was recorded is only in this server's memory: save or download it."
    elif activity.take is None or activity.take.file is None:
        return ended
    else:
        kept = f"What was recorded is kept as the take {activity.take.file.stem!r}."
    return Text("{ended} {kept}", ended=ended, kept=kept) if ended else kept


def _error_text(error: Exception | str) -> str:
    """Return the text of an error, with its facts if it has any."""
    return error.text if isinstance(error, RoteError) else str(error)


def _after_teaching_text(wire: Wire | None) -> str:
    """Describe what the limbs do after a teaching."""
    after = None if wire is None else wire.after_teaching
    if after is None:
        return "are braked and stay where they are"
    if after.hold_s < 1.0:
        return (
            f"hold, and within {after.hold_s:g} s the robot itself returns them to rest, softly, "
            f"in about {after.return_s:.0f} s: let go of them"
        )
    return f"hold; in {after.hold_s:.0f} s they return softly to rest: let go of them"


def _is_soft_for_teaching(robot: Robot, state: RobotState) -> bool:
    """Whether limbs are soft for teaching; soft joints in damping mode do not count."""
    family = robot.family
    return state.arms_soft and (family is None or family.modes.balanced(state.mode))


def _teaching_result(
    take: Take, ending: Ending, unsaved: str | None, *, on_robot: bool
) -> TeachingResult:
    """Return how a teaching ended; `on_robot`: whether the robot stores actions itself."""
    track, kept = take.track, ending.save and take.file is not None
    return TeachingResult(
        take=ending.name if ending.save else None,
        saved=ending.save and (take.saved if on_robot else kept),
        kept=kept,
        unsaved=unsaved,
        duration_s=round(track.duration_s, 4),
        samples=len(track),
        rate_hz=round(track.rate_hz, 3),
    )


async def _wait_until_motionless(robot: Robot) -> None:
    """Wait until the arms have moved, and have stopped moving."""
    moved = False
    async for state in robot.states():
        moved |= state.phase is not Phase.NONE
        if moved and (state.phase is Phase.NONE or state.holding):
            return
