"""The robot's activity for the web UI: one at a time, and a stop that never waits."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from rote.errors import RoteError
from rote.messages import Phase, RobotState
from rote.robot.api_values import Progress
from rote.robot.playing import Playing
from rote.robot.robot import Robot
from rote.robot.take import Take
from rote.transport.wires import Wire
from rote.web.server.problems import ProblemError, busy
from rote.web.services.background_tasks import BackgroundTasks
from rote.web.services.connection_keeper import ConnectionKeeper
from rote.web.services.events import Notify
from rote.web.services.stop_sender import StopSender

_END_S = 3.0
"""Timeout for a stop before disconnecting, and then for the end of the activity."""
_STATE_DELAY_S = 1.0
"""Time within which the effect of a confirmed stop appears in the robot's state."""

Kind = Literal["idle", "teaching", "playing", "performing"]
SoftReason = Literal["teaching", "elsewhere", "damping", "unknown"]


class Ending(NamedTuple):
    """How a teaching should end: whether the take is saved, and its final name."""

    save: bool
    name: str


class TeachingResult(NamedTuple):
    """The result of a teaching."""

    take: str | None
    """The name of the take; None if it was discarded."""
    saved: bool
    """Whether the robot has the motion, or this computer's disk if the robot stores none."""
    kept: bool
    """Whether the take is on this computer's disk."""
    unsaved: str | None
    """The id of the take in memory if it could not be written."""
    duration_s: float
    samples: int
    rate_hz: float


class PendantStopResult(NamedTuple):
    """What a stop did."""

    stopped: Literal["playing", "teaching", "holding", "nothing"]
    message: str
    confirmed: bool = True


class CutOff(NamedTuple):
    """An activity during which the connection was lost; the robot may go on with it."""

    activity: "PendantActivity"
    at_s: float
    """When the connection was lost, by the event loop's clock."""
    fraction: float
    """How much of the current round had been played, from 0 to 1."""
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
    """Of a teaching: set when it should end."""
    taught: TeachingResult | None = None
    problem: Exception | None = None
    task: "asyncio.Task[None] | None" = None
    stopped: bool = False
    """Whether a stop was requested."""
    halted: Progress | None = None
    """The progress of a playback when a stop was first requested."""
    paused_at_s: float | None = None
    """Since when a recording is paused; None while it is not."""
    paused_s: float = 0.0
    """Total duration of the earlier pauses."""
    rounds: int = 1
    """How many times the streamed track contains the motion."""
    rounds_done: int = 0
    """Rounds played by earlier streams of the same loop."""

    def elapsed_s(self, now_s: float) -> float:
        """Return its duration so far in seconds, without pauses."""
        until_s = now_s if self.paused_at_s is None else self.paused_at_s
        return until_s - self.began_s - self.paused_s

    def in_round(self, progress: Progress) -> tuple[float, int]:
        """Return the fraction of the current round, from 0 to 1, and its number."""
        if self.rounds == 1:
            return progress.fraction, progress.round + self.rounds_done
        # One playback of the track contains several rounds of the motion.
        completed = min(int(progress.fraction * self.rounds), self.rounds - 1)
        return progress.fraction * self.rounds - completed, self.rounds_done + completed + 1


class ActivityService:
    """Tracks the activity of the connected robot, and stops it."""

    def __init__(
        self, connection: ConnectionKeeper, stop_sender: StopSender, notify: Notify
    ) -> None:
        self._connection, self._stop_sender, self._notify = connection, stop_sender, notify
        self._loop = asyncio.get_running_loop()
        self.activity: PendantActivity | None = None
        self._taught_at_s: float | None = None
        self.stops = 0
        """Number of requested stops."""
        self._cut_off: CutOff | None = None
        self._ending_teaching: asyncio.Task[None] | None = None
        self._tasks = BackgroundTasks()
        self._was_soft = self._was_moving = False
        """Whether limbs were soft, and whether the robot moved, in its last reported state."""

    @property
    def return_in_s(self) -> float | None:
        """Time in seconds until limbs that hold after teaching return by themselves.

        None if they do not hold, or are already returning.
        """
        after_teaching = (
            None if self._connection.wire is None else self._connection.wire.after_teaching
        )
        if (
            after_teaching is None
            or self._taught_at_s is None
            or self._connection.connected is None
        ):
            return None
        remaining_s = self._taught_at_s + after_teaching.hold_s - self._loop.time()
        state = self._connection.state
        is_moving = state is not None and state.phase is not Phase.NONE
        return None if remaining_s <= 0.0 or is_moving else remaining_s

    @property
    def busy(self) -> bool:
        """Whether an activity that was begun here is going on."""
        return self.activity is not None

    # ---- stopping -------------------------------------------------------------------------------

    async def stop(self) -> PendantStopResult:
        """Stop the robot at once, whatever else is pending; return what that did.

        A stop that the robot does not confirm is sent again until it does, and before anything
        else after a reconnect.
        """
        self.stops += 1
        robot = self._connection.connected
        if robot is None and self._connection.report.state == "off":
            return PendantStopResult("nothing", "No robot is connected.")
        result, activity = self._describe_stop(robot, self._connection.state), self.activity
        if activity is not None:
            activity.stopped = True
            if activity.playing is not None:
                activity.halted = activity.halted or activity.playing.progress
        if result.stopped == "teaching" or self.return_in_s is not None:
            self.note_taught()  # the time until the limbs return begins now
        unconfirmed = await self._stop_sender.send(robot)
        if unconfirmed is not None:
            return PendantStopResult(result.stopped, unconfirmed.message, confirmed=False)
        if activity is not None and activity.ending is not None:
            # A teaching notices by itself that the arms hold, unless it never saw them soft.
            self._loop.call_later(_STATE_DELAY_S, _end_stopped_teaching, activity)
        return result

    def forget_robot(self) -> None:
        """Forget all data about the robot: another one is connected, or none."""
        self._stop_sender.forget()
        self._cut_off = None
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

    def soft_reason(self) -> "tuple[SoftReason, bool] | None":
        """Return why limbs are soft and whether a stop makes them hold; None if none are soft."""
        robot, state = self._connection.connected, self._connection.state
        if robot is None or state is None:
            is_reconnecting = self._connection.report.state in ("lost", "connecting")
            return ("unknown", True) if is_reconnecting and self._was_soft else None
        if not state.arms_soft:
            return None
        if self.activity is not None and self.activity.kind == "teaching":
            return ("teaching", True)
        return ("elsewhere", True) if _is_soft_for_teaching(robot, state) else ("damping", False)

    @property
    def surviving_playback(self) -> CutOff | None:
        """The playback that the robot goes on with after a lost and restored connection."""
        cut_off, state = self._cut_off, self._connection.state
        if cut_off is None or cut_off.activity.kind == "teaching" or self.activity is not None:
            return None
        return cut_off if state is not None and state.playing else None

    @property
    def may_move(self) -> bool:
        """Whether the robot moves for this server, or may still do so after a lost connection."""
        return self.activity is not None or self._cut_off is not None

    def note_taught(self) -> None:
        """Record the end of a teaching: the limbs hold for a while, then return."""
        self._taught_at_s = self._loop.time()

    def note_cut_off(self, activity: PendantActivity) -> None:
        """Record an activity during which the connection was lost."""
        progress = None if activity.playing is None else activity.playing.progress
        fraction, round_number = (0.0, 1) if progress is None else activity.in_round(progress)
        now_s = self._loop.time()
        self._cut_off = CutOff(activity, now_s, fraction, round_number)

    def check_state(self) -> None:
        """Note whether the robot is soft or moves, and follow an activity that a loss has cut off.

        A teaching that was cut off is ended. Called several times per second.
        """
        robot, state = self._connection.connected, self._connection.state
        if robot is None or state is None or not state.has_phase:
            return
        self._was_soft, self._was_moving = _is_soft_for_teaching(robot, state), state.playing
        if self._cut_off is None:
            return
        if self._ending_teaching is not None and not self._ending_teaching.done():
            return
        if self._cut_off.activity.kind == "teaching" and self._was_soft and self.activity is None:
            self._ending_teaching = self._tasks.spawn(self._end_cut_off_teaching())
        elif not state.playing:
            self._cut_off = None

    async def _end_cut_off_teaching(self) -> None:
        """Send a stop for limbs that a lost connection has left soft; notify if it is confirmed."""
        if (await self.stop()).confirmed:
            self._notify(
                "The teaching that was cut off has ended: the robot has confirmed the stop.",
                "soft",
                safety=True,
            )
            await asyncio.sleep(_STATE_DELAY_S)

    def _describe_stop(self, robot: Robot | None, state: RobotState | None) -> PendantStopResult:
        """Return what a stop that the robot confirms will do, judged before it is sent."""
        if robot is None:
            return PendantStopResult("nothing", "")
        # An activity that was begun here is known at once; the newest state may be older.
        kind = self.activity.kind if self.activity is not None else "idle"
        reported = state if kind == "idle" else None
        # Only this server drives a robot that stores no actions: after a stop it stays as it is.
        stores_actions, limbs = "list" in robot.abilities, robot.build.limbs
        if kind == "teaching" or (reported is not None and _is_soft_for_teaching(robot, reported)):
            reaction = _describe_after_teaching(self._connection.wire)
            return PendantStopResult(
                "teaching", f"Teaching has been stopped: the {limbs} {reaction}."
            )
        if kind == "idle" and self.return_in_s is not None:
            return PendantStopResult(
                "holding",
                f"Stopped: the {limbs} {_describe_after_teaching(self._connection.wire)}.",
            )
        if kind != "idle" or (reported is not None and reported.playing):
            reaction = "return softly" if stores_actions else "stay where they are"
            return PendantStopResult("playing", f"Stopped: the {limbs} {reaction}.")
        if reported is not None and reported.holding:
            return PendantStopResult("holding", f"Stopped: the {limbs} release their pose.")
        return PendantStopResult("nothing", "Nothing was moving; a stop was sent anyway.")

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

    # ---- one activity at a time -----------------------------------------------------------------

    def claim_robot(self, kind: Kind, name: str) -> PendantActivity:
        """Begin an activity; raise `ProblemError` if there is one, or a stop is pending."""
        if self.activity is not None:
            raise busy(f"the robot is busy: {self.activity.kind} {self.activity.name!r}")
        if self._stop_sender.unconfirmed is not None:
            # The stop is sent again until it is confirmed: it would end a new activity.
            raise ProblemError(
                409,
                "stop-pending",
                "the robot has not confirmed the last STOP",
                "Watch the robot until it confirms the STOP; disconnecting cancels the STOP.",
            )
        self._taught_at_s = self._cut_off = None
        self.activity = PendantActivity(kind, name, self._loop.time())
        return self.activity

    def release_robot(self, activity: PendantActivity) -> None:
        """Mark an activity as ended, so that another one can begin."""
        if self.activity is activity:
            self.activity = None

    def run_activity(
        self, activity: PendantActivity, work: Coroutine[Any, Any, None]
    ) -> "asyncio.Task[None]":
        """Run an activity in a task; the robot is released at its end."""
        task = asyncio.create_task(work, name=f"rote {activity.kind} {activity.name}")
        task.add_done_callback(lambda _: self.release_robot(activity))
        activity.task = task
        return task

    def close(self) -> None:
        """Cancel background tasks, such as repeated stops. Safe to call twice."""
        self._tasks.cancel()
        self._stop_sender.close()


def _end_stopped_teaching(activity: PendantActivity) -> None:
    """End a teaching that was stopped before it saw soft arms."""
    assert activity.ending is not None
    if not activity.ending.done():
        activity.ending.set_result(Ending(False, activity.name))


def _describe_after_teaching(wire: Wire | None) -> str:
    """Describe what the limbs do after a teaching."""
    after_teaching = None if wire is None else wire.after_teaching
    if after_teaching is None:
        return "are braked and stay where they are"
    if after_teaching.hold_s < 1.0:
        return (
            f"hold, and within {after_teaching.hold_s:g} s the robot itself returns them to rest, "
            f"softly, in about {after_teaching.return_s:.0f} s: let go of them"
        )
    return f"hold; in {after_teaching.hold_s:.0f} s they return softly to rest: let go of them"


def _is_soft_for_teaching(robot: Robot, state: RobotState) -> bool:
    """Whether limbs are soft for teaching; soft joints in damping mode do not count."""
    family = robot.family
    return state.arms_soft and (family is None or family.modes.balanced(state.mode))
