"""Teaching for the web UI: soft limbs, the recording, and the take made from it."""

import asyncio
from collections.abc import Sequence

from rote import messages as m
from rote.errors import LinkError, RefusedError, RoteError, UnsupportedError
from rote.messages import Code
from rote.model.family import MAX_MOTION_S
from rote.motion.record import Sample
from rote.motion.track import Track
from rote.robot.api_values import check_name
from rote.robot.robot import Robot
from rote.robot.take import Take
from rote.robot.teaching import Teaching
from rote.text import Text
from rote.transport.wires import EMBEDDED, wires_with
from rote.web.server.problems import ProblemError
from rote.web.services.activity import ActivityService, Ending, PendantActivity, TeachingResult
from rote.web.services.connection_keeper import ConnectionKeeper
from rote.web.services.events import Notify, error_text
from rote.web.services.takes import TakeService


class TeachingService:
    """Teaches the connected robot."""

    def __init__(
        self,
        connection: ConnectionKeeper,
        activities: ActivityService,
        takes: TakeService,
        notify: Notify,
    ) -> None:
        self._connection, self._activities = connection, activities
        self._takes, self._notify = takes, notify
        self._loop = asyncio.get_running_loop()
        self._noted_problem: RoteError | None = None

    @property
    def paused(self) -> bool:
        """Whether a recording is paused."""
        activity = self._activities.activity
        return activity is not None and activity.paused_at_s is not None

    async def teach(self, name: str, *, overwrite: bool = False) -> None:
        """Begin to teach; return when the arms, or legs, are soft, or raise why they are not."""
        robot = self._connection.robot
        take_existed = self._takes.has(name)
        # If the wire refuses, this raises before the activity begins.
        teaching = robot.teach(name, overwrite=overwrite, library=self._takes.library)
        activity = self._activities.claim_robot("teaching", name)
        activity.ending = self._loop.create_future()
        activity.duration_s = MAX_MOTION_S
        became_soft: asyncio.Future[None] = self._loop.create_future()
        task = self._activities.run_activity(
            activity, self._run_teaching(robot, activity, teaching, became_soft, take_existed)
        )
        await asyncio.wait({task, became_soft}, return_when=asyncio.FIRST_COMPLETED)
        if not became_soft.done():
            task.result()  # raises an unexpected error; an expected one is the activity's problem
            raise activity.problem or AssertionError

    async def finish(self, *, save: bool, name: str | None = None) -> TeachingResult:
        """End the teaching: the arms hold, and the take is saved or discarded."""
        activity = self._require_teaching()
        assert activity.ending is not None
        final_name = name if save and name else activity.name
        if final_name != activity.name:
            # Refuse a bad name before the teaching ends.
            self._takes.check_name(check_name(final_name))
            await self._connection.robot.check_teachable(final_name)
        if not activity.ending.done():
            activity.ending.set_result(Ending(save, final_name))
            self._activities.note_taught()
        assert activity.task is not None
        await asyncio.wait({activity.task})
        activity.task.result()  # raises an unexpected error
        if activity.taught is None:
            raise activity.problem or AssertionError
        return activity.taught

    async def move_by_hand(self, script: str, seconds: float) -> None:
        """Let a scripted hand move a simulated robot's arms."""
        self._require_teaching()
        if "hand" not in self._connection.abilities:
            raise UnsupportedError(
                "move its own arms", self._connection.url_prefix, wires_with("hand")
            )
        if self._connection.embedded is not None:
            self._connection.embedded.release_hand()
        await self._connection.robot.move_by_hand(script, seconds)

    def drag(self, joint: str | None, value_rad: float) -> None:
        """Pull a joint of the embedded robot, or release it."""
        self._require_teaching()
        if self._connection.embedded is None:
            raise UnsupportedError("be dragged", self._connection.url_prefix, (EMBEDDED,))
        self._connection.embedded.drag(joint, value_rad)

    async def pause(self, *, paused: bool) -> None:
        """Pause the recording, or resume it."""
        activity, requested_s = self._activities.activity, self._loop.time()
        take = None if activity is None else activity.take
        if activity is None or take is None:
            raise UnsupportedError("pause a playback", self._connection.url_prefix)
        await (take.pause() if paused else take.resume())
        if paused and activity.paused_at_s is None:
            activity.paused_at_s = requested_s
        elif not paused and activity.paused_at_s is not None:
            activity.paused_s += self._loop.time() - activity.paused_at_s
            activity.paused_at_s = None

    def curve(self, first: int, count: int) -> Sequence[Sample]:
        """Return at most `count` recorded samples, from number `first` on."""
        take = None if self._activities.activity is None else self._activities.activity.take
        return () if take is None else take.rows(first, count)

    def _require_teaching(self) -> PendantActivity:
        activity = self._activities.activity
        if activity is None or activity.kind != "teaching" or activity.take is None:
            raise RefusedError(Code.NOT_TEACHING, *m.explain(Code.NOT_TEACHING))
        return activity

    async def _run_teaching(
        self,
        robot: Robot,
        activity: PendantActivity,
        teaching: Teaching,
        became_soft: "asyncio.Future[None]",
        take_existed: bool,
    ) -> None:
        """Record until the end is requested, or for `MAX_MOTION_S`; then save or discard the take.

        An error becomes the activity's problem. What was recorded is kept in memory then.
        """
        assert activity.ending is not None
        ending = Ending(True, activity.name)
        try:
            async with teaching as take:
                activity.take, activity.began_s = take, self._loop.time()
                became_soft.set_result(None)
                await asyncio.wait({activity.ending}, timeout=MAX_MOTION_S)
                if activity.ending.done():
                    ending = activity.ending.result()
                else:
                    self._activities.note_taught()
                if not ending.save:
                    take.discard()
                elif ending.name != activity.name and "save" in robot.abilities:
                    take.name = ending.name  # the robot stores it under its last name
            if ending.save:
                activity.taught = await self._finish_take(
                    robot, activity, take, ending, take_existed=take_existed
                )
            else:
                activity.taught = _make_teaching_result(take, ending, None, stores_actions=False)
            if not activity.ending.done():
                self._notify(f"{MAX_MOTION_S:.0f} s are full: saved as {ending.name!r}.", "saved")
        except (RoteError, ProblemError, TimeoutError, OSError) as error:
            activity.problem = error
            if isinstance(error, LinkError):
                self._activities.note_cut_off(activity)
            unsaved = self._keep_in_memory(activity, ending.name) if ending.save else None
            # Before the limbs are soft, `teach` raises the error.
            if became_soft.done() and (message := _describe_ending(activity, error, unsaved)):
                self._notify(message, "ended", safety=isinstance(error, LinkError))
        finally:
            if self._connection.embedded is not None:
                self._connection.embedded.release_hand()

    async def _finish_take(
        self,
        robot: Robot,
        activity: PendantActivity,
        take: Take,
        ending: Ending,
        *,
        take_existed: bool,
    ) -> TeachingResult:
        """Give a take its final name, here and on the robot; return the result of the teaching.

        A take that could not be written is kept in memory.
        """
        unsaved = None
        if take.file is not None:
            if take.file.stem != ending.name:
                await self._rename_take(
                    take.track, activity.name, ending.name, take_existed=take_existed
                )
                take.file = take.file.with_name(f"{ending.name}{take.file.suffix}")
            self._notify(f"Saved as the take {ending.name!r}.", "saved")
        elif take.samples:
            unsaved = self._keep_unwritten_take(activity, take, ending.name)
        stores_actions = "list" in robot.abilities
        if stores_actions and ending.name != activity.name and "save" not in robot.abilities:
            await robot.rename(activity.name, ending.name)
        return _make_teaching_result(take, ending, unsaved, stores_actions=stores_actions)

    def _keep_unwritten_take(self, activity: PendantActivity, take: Take, name: str) -> str | None:
        """Keep a take in memory if it is long enough, and notify all pages; return its id."""
        unsaved = self._keep_in_memory(activity, name)
        template = "The take is not on this computer: {why}."
        if unsaved is not None:
            template = (
                "The take could not be written: {why}. It is in this server's memory: save it "
                "to another folder, or download it."
            )
        reason = error_text(take.file_problem or "it was not written")
        self._notify(Text(template, why=reason), "not-saved", safety=True)
        return unsaved

    async def _rename_take(self, track: Track, old: str, name: str, *, take_existed: bool) -> None:
        """Rename a take of this computer. It is written under the new name before the old one is
        removed, so that a full disk loses nothing.
        """
        if take_existed:
            await self._takes.save(track, name)
            await self._takes.delete_newest(old)
        else:
            await self._takes.rename(old, name)

    def _keep_in_memory(self, activity: PendantActivity, name: str) -> str | None:
        """Keep a take that is not on disk in memory, and return its id.

        Returns None if it is on disk, or has fewer than two samples.
        """
        take = activity.take
        if take is None or take.file is not None or take.samples < 2:
            return None
        why = error_text(take.file_problem or activity.problem or "it could not be written")
        return self._takes.keep_unsaved(take.track, name, str(why))

    @property
    def storage_problem(self) -> RoteError | None:
        """Why the take that is being recorded cannot be written; None if it can."""
        take = None if self._activities.activity is None else self._activities.activity.take
        return None if take is None else take.file_problem

    def check_storage(self) -> None:
        """Notify all pages once if the take cannot be written; called several times per second."""
        problem = self.storage_problem
        if problem is not None and problem is not self._noted_problem:
            self._notify(
                Text(
                    "The take cannot be written: {why}. Recording goes on in memory.",
                    why=error_text(problem),
                ),
                "not-saved",
                safety=True,
            )
        self._noted_problem = problem


def _describe_ending(activity: PendantActivity, error: Exception, unsaved: str | None) -> str:
    """Return the message about the end of a teaching: its cause, unless the user stopped it, and
    where the recording is.
    """
    is_user_stop = activity.stopped and isinstance(error, RefusedError)
    end_message = (
        "" if is_user_stop else Text("The teaching has ended: {why}.", why=error_text(error))
    )
    if unsaved is not None:
        take_message = "What was recorded is only in this server's memory: save or download it."
    elif activity.take is None or activity.take.file is None:
        return end_message
    else:
        take_message = f"What was recorded is kept as the take {activity.take.file.stem!r}."
    return (
        Text("{ended} {kept}", ended=end_message, kept=take_message)
        if end_message
        else take_message
    )


def _make_teaching_result(
    take: Take, ending: Ending, unsaved: str | None, *, stores_actions: bool
) -> TeachingResult:
    """Return the result of a teaching, for a robot that stores actions itself or does not."""
    kept = ending.save and take.file is not None
    return TeachingResult(
        take=ending.name if ending.save else None,
        saved=ending.save and (take.saved if stores_actions else kept),
        kept=kept,
        unsaved=unsaved,
        duration_s=round(take.duration_s, 4),
        samples=take.samples,
        rate_hz=round(take.rate_hz, 3),
    )
