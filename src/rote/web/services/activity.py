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
_SEEN_S = 1.0

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
    """Keeps what the connected robot does, and stops it."""

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
        self._holding: asyncio.Task[None] | None = None
        self._tasks = BackgroundTasks()
        self._was_soft = self._was_moving = False
        """What the robot reported last."""

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
    def busy(self) -> bool:
        """Whether an activity that was begun here is going on."""
        return self.activity is not None

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
            self.note_taught()
        unconfirmed = await self._stop_sender.send(robot)
        if unconfirmed is not None:
            return PendantStopResult(was.stopped, unconfirmed.message, confirmed=False)
        if activity is not None and activity.ending is not None:
            # A teaching notices by itself that the arms hold, unless it never saw them soft.
            self._loop.call_later(_SEEN_S, _end_stopped_teaching, activity)
        return was

    def forget_robot(self) -> None:
        """Forget what concerns the robot so far: another one is connected, or none."""
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

    def note_taught(self) -> None:
        """Note that a teaching has just ended: the limbs hold for a while, then return."""
        self._taught_at_s = self._loop.time()

    def note_cut_off(self, activity: PendantActivity) -> None:
        """Note an activity that the loss of the robot has cut off."""
        progress = None if activity.playing is None else activity.playing.progress
        fraction, number = (0.0, 1) if progress is None else activity.in_round(progress)
        now_s = self._loop.time()
        self._cut_off = CutOff(activity, now_s, fraction, number)

    def check_state(self) -> None:
        """Compare the reported state with the activity; called several times per second."""
        robot, state = self._connection.connected, self._connection.state
        if robot is None or state is None or not state.phase_told:
            return
        self._was_soft, self._was_moving = _is_soft_for_teaching(robot, state), state.playing
        cut = self._cut_off
        if cut is None:
            return
        if cut.activity.kind == "teaching" and self._was_soft and self.activity is None:
            if self._holding is None or self._holding.done():
                self._holding = self._tasks.spawn(self._end_cut_off_teaching())
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

    # ---- one activity at a time -----------------------------------------------------------------

    def claim_robot(self, kind: Kind, name: str) -> PendantActivity:
        """Begin an activity; raise `ProblemError` if there is one, or a stop is pending."""
        if self.activity is not None:
            raise busy(f"the robot is busy: {self.activity.kind} {self.activity.name!r}")
        if self._stop_sender.unconfirmed is not None:
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

    def release_robot(self, activity: PendantActivity) -> None:
        """End an activity."""
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
