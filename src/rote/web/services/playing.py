"""Playing for the web UI: taught actions, tracks of this computer, and factory actions."""

import asyncio
from collections.abc import Callable

from rote.errors import LinkError, RefusedError, RoteError, UnsupportedError
from rote.messages import Phase
from rote.motion.files.agreed_origins import agree, is_agreed
from rote.motion.track import Track
from rote.robot.playing import Playing
from rote.robot.robot import Robot
from rote.robot.streamed_motion import TrackCheck
from rote.robot.streaming import Streaming
from rote.text import Text
from rote.transport.wires import wires_with
from rote.web.services.activity import ActivityService, PendantActivity
from rote.web.services.connection_keeper import ConnectionKeeper
from rote.web.services.events import Notify, error_text
from rote.web.services.takes import TakeService

_REFUSAL_S = 0.5
"""Time within which a robot refuses a factory action; after it, the action counts as begun."""


class PlayingService:
    """Plays motions on the connected robot."""

    def __init__(
        self,
        connection: ConnectionKeeper,
        activities: ActivityService,
        takes: TakeService,
        notify: Notify,
    ) -> None:
        self._connection, self._activities = connection, activities
        self._takes, self._notify = takes, notify

    @property
    def busy(self) -> bool:
        """Whether an activity that was begun here is going on."""
        return self._activities.busy

    async def play(self, name: str, *, speed: float | None, loop: bool, taught_s: float) -> None:
        """Play a taught action of `taught_s` seconds; return when the robot has accepted it."""
        robot = self._connection.robot
        activity = self._activities.claim_robot("playing", name)
        used_speed = None if speed == 1.0 else speed  # not every robot can change the speed
        await self._start_playback(activity, lambda: robot.play(name, speed=used_speed, loop=loop))
        duration_s = taught_s / (used_speed or 1.0)
        activity.duration_s = duration_s or None  # 0: not known

    def require_streaming(self) -> None:
        """Raise `UnsupportedError` if no level of this wire can stream a motion to the robot."""
        connection = self._connection
        abilities = connection.robot.abilities | connection.abilities_at_other_levels
        if "stream" not in abilities:
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
        """Stream a track to the robot pose by pose; return the activity, which has begun.

        The track contains the motion `rounds` times. With `loop` it is played again after its soft
        return, until it is stopped.

        Even a track that was `checked` is checked again for contact, which depends on the robot's
        current posture. `force` accepts warnings, `mapped` accepts joints that a motion of another
        build lacks or leaves out, and `imported` accepts an imported motion, now and later.
        """
        accepts_imported = imported or is_agreed(track.origin)
        robot = self._connection.robot
        activity = self._activities.claim_robot("playing", name)
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
                imported=accepts_imported,
            ),
            repeat=loop,
        )
        if imported:
            agree(track.origin)
        return activity

    async def perform(self, preset: int, name: str) -> None:
        """Perform a factory action; return when it has begun, or raise if it was refused."""
        robot = self._connection.robot
        if "presets" not in self._connection.abilities:
            raise UnsupportedError("perform factory actions", self._connection.url_prefix)
        activity = self._activities.claim_robot("performing", name)
        task = self._activities.run_activity(activity, self._run_preset(robot, activity, preset))
        await asyncio.wait({task}, timeout=_REFUSAL_S)
        if task.done() and activity.problem is not None:
            raise activity.problem
        if not task.done():
            task.add_done_callback(lambda _: self._notify_problem(activity))

    async def _run_preset(self, robot: Robot, activity: PendantActivity, preset: int) -> None:
        """Perform a factory action to its end; an error becomes the activity's problem."""
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
                self._activities.note_cut_off(activity)

    async def _start_playback(
        self, activity: PendantActivity, begin: Callable[[], Playing], *, repeat: bool = False
    ) -> None:
        """Begin a playback, then watch it in the background; with `repeat`, play it in a loop.

        Returns when the playback has begun, or was stopped before that.
        """
        try:
            activity.playing = begin()
            await activity.playing.started()
        except BaseException as error:
            self._activities.release_robot(activity)
            if activity.stopped and isinstance(error, RoteError | TimeoutError):
                return
            raise
        watching = self._watch_playback(activity, activity.playing, begin if repeat else None)
        self._activities.run_activity(activity, watching)
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
                self._notify_ended_early(activity, report.reason, loop=begin is not None)
        except (RoteError, TimeoutError) as error:
            if begin is not None and activity.stopped and isinstance(error, RefusedError):
                return  # the stop arrived while the next round of the loop was beginning
            activity.problem = error
            if isinstance(error, LinkError):
                self._activities.note_cut_off(activity)
            self._notify_problem(activity)

    def _notify_ended_early(self, activity: PendantActivity, reason: str, *, loop: bool) -> None:
        """Notify all pages why a playback that this server did not stop has ended early."""
        what = "The loop" if loop else f"Playing {activity.name!r}"
        why = reason or "the robot gives no reason"
        self._notify(Text("{what} has ended early: {why}.", what=what, why=why), "ended")

    def _notify_problem(self, activity: PendantActivity) -> None:
        # A lost connection is reported to all pages by itself.
        if activity.problem is not None and not isinstance(activity.problem, LinkError):
            kind = activity.kind.capitalize()
            self._notify(
                Text("{kind} has ended: {why}.", kind=kind, why=error_text(activity.problem)),
                "ended",
            )


async def _wait_until_motionless(robot: Robot) -> None:
    """Wait until the arms have moved, and then hold a pose or have returned to rest."""
    moved = False
    async for state in robot.states():
        moved |= state.phase is not Phase.NONE
        if moved and (state.phase is Phase.NONE or state.holding):
            return
