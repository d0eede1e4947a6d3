"""How an action of the robot, or a track of this computer, is played."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from rote.errors import BadRequestError
from rote.messages import Interpolation, Keyframe
from rote.robot.api_values import check_seconds
from rote.robot.streamed_motion import Offload, TrackCheck, check_playing_speed
from rote.robot.ticker import TimedStart


class PlayKeywords(TypedDict, total=False):
    """The keyword arguments of `Robot.play` and `Robot.start`; see `PlayOptions`."""

    speed: float | None
    duration: float | None
    loop: bool
    interpolation: str | Interpolation
    frames: int
    keyframes: Sequence[Keyframe]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayOptions:
    """How a stored action is played."""

    speed: float | None = None
    """A factor: 0.5 takes twice as long."""
    duration: float | None = None
    """The length in seconds, instead of a speed."""
    loop: bool = False
    interpolation: str | Interpolation = Interpolation.LINEAR
    frames: int = 0
    """How many frames from the start are played; 0 means all."""
    keyframes: Sequence[Keyframe] = ()
    """Played instead of what is stored."""

    def changes_tempo(self) -> bool:
        """Return whether speed, duration, loop or interpolation differ from the stored action.
        Raises `BadRequestError` for an invalid value.
        """
        interpolation = self.interpolation_kind
        if self.speed is not None and self.duration is not None:
            raise BadRequestError("speed and duration exclude each other", "Give only one of them.")
        if self.duration is not None:
            check_seconds(self.duration, "a playback")
        if self.speed is not None:
            check_playing_speed(self.speed)
        is_retimed = self.speed is not None or self.duration is not None
        return is_retimed or self.loop or interpolation is not Interpolation.LINEAR

    @property
    def is_partial(self) -> bool:
        """Whether only a part of the action, or other keyframes, are played. Raises
        `BadRequestError` for an invalid number of frames.
        """
        return bool(check_frames(self.frames) or self.keyframes)

    def require_consistent_part(self) -> None:
        """Raise `BadRequestError` if options of a partial playback contradict each other.

        Call it only if `is_partial`.
        """
        if self.speed is not None:
            raise BadRequestError(
                "`speed` cannot be combined with `frames` or `keyframes`: their length is unknown",
                "Give `duration` instead.",
            )
        if self.keyframes and self.frames > len(self.keyframes):
            raise BadRequestError(
                f"`frames` is {self.frames}, but the number of keyframes is {len(self.keyframes)}",
                "Leave `frames` out.",
            )

    @property
    def interpolation_kind(self) -> Interpolation:
        """The interpolation. Raises `BadRequestError` for an unknown name."""
        if isinstance(self.interpolation, Interpolation):
            return self.interpolation
        try:
            return Interpolation[str(self.interpolation).upper()]
        except KeyError:
            known = ", ".join(kind.name.lower() for kind in Interpolation)
            raise BadRequestError(
                f"there is no interpolation {self.interpolation!r}", f"Use: {known}."
            ) from None

    def compute_requested_s(self, stored_s: float) -> float:
        """Return the duration in seconds to request for an action that is stored with `stored_s`;
        0 leaves it to the robot.
        """
        if self.speed is not None:
            return check_seconds(stored_s / self.speed, "a playback")
        return 0.0 if self.duration is None else self.duration


class TrackKeywords(TypedDict, total=False):
    """The keyword arguments of `Robot.play_track`; see `TrackOptions`."""

    rate_hz: float
    speed: float
    force: bool
    mapped: bool
    hands: bool
    checked: TrackCheck | None
    offload: Offload | None
    at: float | TimedStart | None
    imported: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackOptions:
    """How a track of this computer is played; `Robot.play_track` explains each."""

    rate_hz: float = 250.0
    speed: float = 1.0
    force: bool = False
    mapped: bool = False
    hands: bool = False
    checked: TrackCheck | None = None
    offload: Offload | None = None
    at: float | TimedStart | None = None
    imported: bool = False

    def make_start(self) -> TimedStart | None:
        """Return the start time of the motion itself; None means as soon as possible."""
        return TimedStart(self.at) if isinstance(self.at, int | float) else self.at


def check_frames(frames: int) -> int:
    """Return a number of frames that can be sent; raise `BadRequestError` otherwise."""
    if not 0 <= frames <= 0xFFFF_FFFF:
        raise BadRequestError(
            f"{frames} frames are out of range",
            "Choose 0 for all frames, or the number of frames to play.",
        )
    return frames
