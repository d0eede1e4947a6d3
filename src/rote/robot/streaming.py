"""Streaming a track to a robot, until its end or a stop."""

from collections.abc import Generator
from typing import Any, cast

from rote.errors import BadRequestError
from rote.motion.track import Array
from rote.robot.api_values import StreamReport
from rote.robot.link import RobotLink
from rote.robot.playing import ActionPlaying, Begin, Playing
from rote.robot.ticker import Ticker

_NOT_ALL_SENT = "its last poses were not sent"


class Streaming(Playing):
    """A streamed playback, as `robot.play_track` returns it. Await it to wait for the end, iterate
    over it to watch, or call its `stop`.

    Awaiting returns a `StreamReport`. If the awaiting task is cancelled, the robot stops softly
    too.
    """

    left_out: tuple[str, ...] = ()
    """The joints of hands that the track has and that are not played, because `hands` was not
    given.
    """

    def __await__(self) -> Generator[Any, None, StreamReport]:
        return cast("Generator[Any, None, StreamReport]", super().__await__())

    async def wait(self) -> StreamReport:
        """Wait for the end, soft return included, and return the report.

        Cancelling the wait does not stop the robot.
        """
        return cast("StreamReport", await super().wait())

    @property
    def can_pause(self) -> bool:
        """Whether the motion is under way and can be paused; an approach cannot."""
        return False

    @property
    def held_pose_rad(self) -> Array | None:
        """The pose of the taught joints in which a pause holds the arms; None if none does."""
        return None

    def pause(self, at_s: float) -> None:
        """Slow down softly from `at_s` of the event loop's clock on, and hold the pose.

        It is not a stop: the arms stay stiff. Raises `BadRequestError` if it is not possible now.
        """
        raise BadRequestError("this motion cannot be paused", "Stop it instead.")

    def resume(self, at_s: float) -> None:
        """Go on along the same path from `at_s` on. Raises `BadRequestError` if not paused."""
        raise BadRequestError("this motion is not paused")


class PoseStreaming(ActionPlaying, Streaming):
    """A stream of poses to a robot that reports its progress."""

    def __init__(
        self,
        link: RobotLink,
        name: str,
        begin: Begin,
        ticker: Ticker,
        left_out: tuple[str, ...] = (),
    ) -> None:
        self._ticker, self.left_out = ticker, left_out
        super().__init__(link, name, begin)

    @property
    def can_pause(self) -> bool:
        """Whether the motion is under way and can be paused; an approach cannot."""
        poses = self._ticker.pausable
        return poses is not None and poses.is_in_motion and not self.done

    @property
    def held_pose_rad(self) -> Array | None:
        """The pose of the taught joints in which a pause holds the arms; None if none does."""
        poses = self._ticker.pausable
        return poses.pose_rad if poses is not None and poses.is_held else None

    def pause(self, at_s: float) -> None:
        """Slow down softly from `at_s` of the event loop's clock on, and hold the pose.

        It is not a stop: the arms stay stiff. Raises `BadRequestError` if it is not possible now.
        """
        if not self.can_pause:
            raise BadRequestError("this motion cannot be paused now", "Stop it instead.")
        self._ticker.pause(at_s)
        self._watch.begin_pause()

    def resume(self, at_s: float) -> None:
        """Go on along the same path from `at_s` on. Raises `BadRequestError` if not paused."""
        self._watch.end_pause(self._ticker.resume(at_s))

    @property
    def _continues_on_robot(self) -> bool:
        return False  # without poses the robot returns by itself

    def _was_stopped(self) -> bool:
        # A stop ends the poses at once, even if the robot never confirms it.
        return self._link.stops.count != self._stop_count

    async def _run(self) -> StreamReport:
        try:
            played = await super()._run()
        finally:
            self._ticker.stop()
        completed, reason = played.completed and not self._ticker.cut_off, ""
        if not completed:
            reason = self._explain_early_end() or played.reason or _NOT_ALL_SENT
        return self._ticker.report(
            played.name, completed=completed, seconds=played.seconds, reason=reason
        )

    def _explain_early_end(self) -> str:
        """Return why this computer ended the stream early; "" if it did not."""
        if self._was_stopped():
            return self._explain_end()
        reason = self._ticker.cut_reason or self._client.stop_reason
        return reason or self._ticker.describe_stall_before(self._watch.ended_at)
