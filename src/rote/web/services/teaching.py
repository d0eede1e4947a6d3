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
        """Begin to teach; return when the arms, or legs, are soft."""
        robot = self._connection.robot
        known = self._takes.has(name)
        # Raises what this wire refuses before the activity counts as begun.
        teaching = robot.teach(name, overwrite=overwrite, library=self._takes.library)
        activity = self._activities.claim_robot("teaching", name)
        activity.ending = self._loop.create_future()
        activity.duration_s = MAX_MOTION_S
        soft: asyncio.Future[None] = self._loop.create_future()
        task = self._activities.run_activity(
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
            self._activities.note_taught()
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
        activity, now_s = self._activities.activity, self._loop.time()
        take = None if activity is None else activity.take
        if activity is None or take is None:
            raise UnsupportedError("pause a playback", self._connection.url_prefix)
        await (take.pause() if paused else take.resume())
        if paused and activity.paused_at_s is None:
            activity.paused_at_s = now_s
        elif not paused and activity.paused_at_s is not None:
            activity.paused_s += self._loop.time() - activity.paused_at_s
            activity.paused_at_s = None

    def curve(self, first: int, count: int) -> Sequence[Sample]:
        """Return at most `count` recorded samples, from number `first` on."""
        take = None if self._activities.activity is None else self._activities.activity.take
        return () if take is None else take.rows(first, count)

    def _need_teaching(self) -> PendantActivity:
        activity = self._activities.activity
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
                    self._activities.note_taught()
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
                self._activities.note_cut_off(activity)
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
            why = error_text(take.file_problem or "it was not written")
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


def _ending_message(activity: PendantActivity, error: Exception, unsaved: str | None) -> str:
    """Return the message about the end; empty parts are what the user already knows."""
    expected = activity.stopped and isinstance(error, RefusedError)
    ended = "" if expected else Text("The teaching has ended: {why}.", why=error_text(error))
    if unsaved is not None:
        kept = "What was recorded is only in this server's memory: save or download it."
    elif activity.take is None or activity.take.file is None:
        return ended
    else:
        kept = f"What was recorded is kept as the take {activity.take.file.stem!r}."
    return Text("{ended} {kept}", ended=ended, kept=kept) if ended else kept


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
