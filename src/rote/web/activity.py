"""What the robot is doing for the pendant: one activity at a time, and a stop that never waits."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from rote import messages as m
from rote.client.wires import EMBEDDED, wires_with
from rote.errors import LinkError, RefusedError, RoteError, UnsupportedError
from rote.messages import Code, Phase, RobotState
from rote.model.family import MAX_MOTION_S
from rote.motion.record import Sample
from rote.motion.track import Track
from rote.robot.api_values import Progress, check_name
from rote.robot.playing import Playing
from rote.robot.robot import Robot
from rote.robot.streaming import Streaming, TrackCheck
from rote.robot.take import Take
from rote.robot.teaching import Teaching
from rote.web.connection_keeper import ConnectionKeeper
from rote.web.problems import NotConnectedError, busy
from rote.web.take_service import TakeService

_ACCEPTED_S = 0.5
_END_S = 3.0
_SEEN_S = 1.0

Kind = Literal["idle", "teaching", "playing", "performing"]


class Ending(NamedTuple):
    """How a teaching should end."""

    save: bool
    name: str


class TeachingResult(NamedTuple):
    """How a teaching did end."""

    take: str | None
    saved: bool
    duration_s: float
    samples: int
    rate_hz: float


class PendantStopResult(NamedTuple):
    """What a stop did."""

    stopped: Literal["playing", "teaching", "holding", "nothing"]
    message: str


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
    """Whether somebody has asked to end it."""
    halted: Progress | None = None
    """The progress of a playback at that moment."""


class ActivityService:
    """Teaches, plays, performs and stops, on the connected robot."""

    def __init__(
        self, connection: ConnectionKeeper, takes: TakeService, notify: Callable[[str], None]
    ) -> None:
        self._connection = connection
        self._takes = takes
        self._notify = notify
        self._loop = asyncio.get_running_loop()
        self.activity: PendantActivity | None = None

    @property
    def busy(self) -> bool:
        """Whether an activity that was begun here is going on."""
        return self.activity is not None

    # ---- teaching -------------------------------------------------------------------------------

    async def teach(self, name: str, *, overwrite: bool = False) -> None:
        """Begin to teach; return when the arms, or legs, are soft."""
        robot = self._connection.robot
        known = self._takes.has(name)
        # What this wire refuses at once is refused before an activity counts as begun.
        lesson = robot.teach(name, overwrite=overwrite, library=self._takes.library)
        activity = self._claim("teaching", name)
        activity.ending = self._loop.create_future()
        activity.duration_s = MAX_MOTION_S
        soft: asyncio.Future[None] = self._loop.create_future()
        task = self._run(activity, self._teaching(robot, activity, lesson, soft, known))
        await asyncio.wait({task, soft}, return_when=asyncio.FIRST_COMPLETED)
        if not soft.done():
            task.result()
            raise activity.problem or AssertionError

    async def finish(self, *, save: bool, name: str | None = None) -> TeachingResult:
        """End the teaching: the arms hold, and the take is kept or discarded."""
        activity = self._need_teaching()
        assert activity.ending is not None
        wanted = name if save and name else activity.name
        if wanted != activity.name:
            # A bad name is refused before anything has ended.
            self._takes.check_name(check_name(wanted))
            await self._connection.robot.check_teachable(wanted)
        if not activity.ending.done():
            activity.ending.set_result(Ending(save, wanted))
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
            raise UnsupportedError("move its own arms", self._connection.called, wires_with("hand"))
        if self._connection.embedded is not None:
            self._connection.embedded.let_go()
        await self._connection.robot.move_by_hand(script, seconds)

    def drag(self, joint: str | None, value_rad: float) -> None:
        """Pull a joint of the embedded robot, or release it."""
        self._need_teaching()
        if self._connection.embedded is None:
            raise UnsupportedError("be dragged", self._connection.called, (EMBEDDED,))
        self._connection.embedded.drag(joint, value_rad)

    async def pause(self, *, paused: bool) -> None:
        """Pause the recording, or resume it."""
        if self.activity is None or self.activity.take is None:
            raise UnsupportedError("pause a playback", self._connection.called)
        take = self.activity.take
        await (take.pause() if paused else take.resume())

    def curve(self, first: int, count: int) -> Sequence[Sample]:
        """Return at most `count` recorded samples, from number `first` on."""
        take = None if self.activity is None else self.activity.take
        return () if take is None else take.rows(first, count)

    def _need_teaching(self) -> PendantActivity:
        activity = self.activity
        if activity is None or activity.kind != "teaching" or activity.take is None:
            raise RefusedError(Code.NOT_TEACHING, *m.explain(Code.NOT_TEACHING))
        return activity

    async def _teaching(
        self,
        robot: Robot,
        activity: PendantActivity,
        lesson: Teaching,
        soft: "asyncio.Future[None]",
        known: bool,
    ) -> None:
        assert activity.ending is not None
        ending = Ending(True, activity.name)
        try:
            async with lesson as take:
                activity.take, activity.began_s = take, self._loop.time()
                soft.set_result(None)
                if (await asyncio.wait({activity.ending}, timeout=MAX_MOTION_S))[0]:
                    ending = activity.ending.result()
                renamed = ending.name != activity.name
                if not ending.save or (renamed and "save" in robot.abilities):
                    take.discard()
            if ending.save and renamed:
                await self._give_name(robot, take, ending.name, known=known)
            kept = renamed if "list" in robot.abilities else take.file is not None
            activity.taught = _taught(take, ending, kept)
            if not activity.ending.done():
                self._notify(f"{MAX_MOTION_S:.0f} s are full: saved as {ending.name!r}.")
            if take.file_problem is not None:
                self._notify(f"The take is not on this computer: {take.file_problem}.")
        except (RoteError, TimeoutError) as error:
            activity.problem = error
            if soft.done() and (message := _how_it_ended(activity, error)):
                self._notify(message)
        finally:
            if self._connection.embedded is not None:
                self._connection.embedded.let_go()

    async def _give_name(self, robot: Robot, take: Take, name: str, *, known: bool) -> None:
        """Rename a take after teaching, here and on the robot if it stores actions."""
        track = take.track
        if "save" in robot.abilities:
            await self._takes.save(track, name)
            await robot.save(name, max(track.duration_s, 0.001))
            return
        if known:
            await self._takes.save(track, name)
        elif take.file is not None:
            await self._takes.rename(take.name, name)
        if "list" in robot.abilities:
            await robot.rename(take.name, name)

    # ---- playing --------------------------------------------------------------------------------

    async def play(self, name: str, *, speed: float | None, loop: bool, taught_s: float) -> None:
        """Play a taught action; return when the robot has accepted."""
        robot = self._connection.robot
        activity = self._claim("playing", name)
        wanted = None if speed == 1.0 else speed
        await self._follow(activity, lambda: robot.play(name, speed=wanted, loop=loop))
        activity.duration_s = taught_s / (wanted or 1.0) or None

    async def play_track(
        self,
        track: Track,
        name: str,
        *,
        force: bool = False,
        mapped: bool = False,
        checked: TrackCheck | None = None,
    ) -> None:
        """Play a track that is not on the robot, pose by pose, on wires that can.

        Contact is looked for once more, from where the joints are now; `force` says yes to
        warnings, and `mapped` to what a motion of another build lacks or leaves out.
        """
        robot = self._connection.robot
        activity = self._claim("playing", name)
        activity.duration_s = track.duration_s
        await self._follow(
            activity,
            lambda: robot.play_track(track, force=force, mapped=mapped, checked=checked),
        )

    async def perform(self, preset: int, name: str) -> None:
        """Perform a factory action; return when it has begun, or raise if it was refused."""
        robot = self._connection.robot
        if "presets" not in self._connection.abilities:
            raise UnsupportedError("perform factory actions", self._connection.called)
        activity = self._claim("performing", name)
        task = self._run(activity, self._performing(robot, activity, preset))
        await asyncio.wait({task}, timeout=_ACCEPTED_S)
        if task.done() and activity.problem is not None:
            raise activity.problem
        if not task.done():
            task.add_done_callback(lambda _: self._tell(activity))

    async def _performing(self, robot: Robot, activity: PendantActivity, preset: int) -> None:
        embedded = self._connection.embedded
        try:
            if embedded is None:
                await robot.perform(preset)
            else:
                embedded.perform(preset)
                await _until_still(robot)
        except (RoteError, TimeoutError) as error:
            activity.problem = error

    async def _follow(self, activity: PendantActivity, begin: Callable[[], Playing]) -> None:
        """Begin a playback, and wait for its end; a stop before it began is no error."""
        try:
            activity.playing = begin()
            await activity.playing.started()
        except BaseException as error:
            self._release(activity)
            if activity.stopped and isinstance(error, RoteError | TimeoutError):
                return
            raise
        self._run(activity, self._watching(activity, activity.playing))
        if isinstance(activity.playing, Streaming) and activity.playing.left_out:
            self._notify("The hands of this motion are left out: only the arms move.")

    async def _watching(self, activity: PendantActivity, playing: Playing) -> None:
        try:
            await playing.wait()
        except (RoteError, TimeoutError) as error:
            activity.problem = error
            self._tell(activity)

    # ---- stopping -------------------------------------------------------------------------------

    async def stop(self) -> PendantStopResult:
        """Stop the robot at once, whatever else is pending; return what that did."""
        robot = self._connection.connected
        if robot is None:
            try:
                robot = self._connection.robot
            except NotConnectedError:
                return PendantStopResult("nothing", "No robot is connected.")
        was, activity = self._what_stops(robot, self._connection.state), self.activity
        if activity is not None:
            activity.stopped = True
            if activity.playing is not None:
                activity.halted = activity.halted or activity.playing.progress
        await robot.stop()
        if activity is not None and activity.ending is not None:
            # A teaching notices by itself that the arms hold, unless it never saw them soft.
            self._loop.call_later(_SEEN_S, _give_up, activity)
        return was

    def _what_stops(self, robot: Robot, state: RobotState | None) -> PendantStopResult:
        # Our own activity is known at once; the newest state may be older than it.
        kind = self.activity.kind if self.activity is not None else "idle"
        seen = state if kind == "idle" else None
        # A robot that stores no actions is driven by us alone: after a stop it stays where it is.
        own, limbs = "list" in robot.abilities, robot.build.limbs
        if kind == "teaching" or (seen is not None and _soft(robot, seen)):
            how = "hold" if own else "are braked"
            return PendantStopResult("teaching", f"Teaching has been stopped: the {limbs} {how}.")
        if kind != "idle" or (seen is not None and seen.playing):
            how = "return softly" if own else "stay where they are"
            return PendantStopResult("playing", f"Stopped: the {limbs} {how}.")
        if seen is not None and seen.holding:
            return PendantStopResult("holding", f"Stopped: the {limbs} let go of their pose.")
        return PendantStopResult(
            "nothing", "Nothing was moving; the robot was told to stop all the same."
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

    def _claim(self, kind: Kind, name: str) -> PendantActivity:
        if self.activity is not None:
            raise busy(f"the robot is busy: {self.activity.kind} {self.activity.name!r}")
        self.activity = PendantActivity(kind, name, self._loop.time())
        return self.activity

    def _release(self, activity: PendantActivity) -> None:
        if self.activity is activity:
            self.activity = None

    def _run(
        self, activity: PendantActivity, work: Coroutine[Any, Any, None]
    ) -> "asyncio.Task[None]":
        task = asyncio.create_task(work, name=f"rote {activity.kind} {activity.name}")
        task.add_done_callback(lambda _: self._release(activity))
        activity.task = task
        return task

    def _tell(self, activity: PendantActivity) -> None:
        if activity.problem is not None and not isinstance(activity.problem, LinkError):
            self._notify(f"{activity.kind.capitalize()} has ended: {activity.problem}.")


def _give_up(activity: PendantActivity) -> None:
    """End a teaching that was stopped so early that it has not noticed."""
    assert activity.ending is not None
    if not activity.ending.done():
        activity.ending.set_result(Ending(False, activity.name))


def _how_it_ended(activity: PendantActivity, error: Exception) -> str:
    """Return the message about the end; the person who stopped it knows already."""
    expected = activity.stopped and isinstance(error, RefusedError)
    message = "" if expected else f"The teaching has ended: {error}."
    if activity.take is not None and activity.take.file is not None:
        message += f" What was recorded is kept as the take {activity.name!r}."
    return message.strip()


def _soft(robot: Robot, state: RobotState) -> bool:
    """Whether somebody teaches: joints that give way in damping mode do not count."""
    family = robot.family
    return state.arms_soft and (family is None or family.modes.balanced(state.mode))


def _taught(take: Take, ending: Ending, kept: bool) -> TeachingResult:
    """Return how a teaching ended; `kept` says whether the take was saved although the robot did
    not.
    """
    track = take.track
    return TeachingResult(
        take=ending.name if ending.save else None,
        saved=ending.save and (take.saved or kept),
        duration_s=round(track.duration_s, 4),
        samples=len(track),
        rate_hz=round(track.rate_hz, 3),
    )


async def _until_still(robot: Robot) -> None:
    """Wait until the arms have moved, and have stopped moving."""
    moved = False
    async for state in robot.states():
        moved |= state.phase is not Phase.NONE
        if moved and (state.phase is Phase.NONE or state.holding):
            return
