"""Compiles one role of one section of a show to one motion, actions and cues."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rote.errors import BadRequestError, UnsafeMotionError
from rote.motion.body.root_path import RootPath
from rote.motion.edit import operations as edit
from rote.motion.edit.mirror import mirror
from rote.motion.track import Track
from rote.stage.show.file import Clip, Cue, Section, Show

TrackSource = Callable[[str], Track]
"""Returns the take of a name, or raises `BadRequestError`."""

HOLD_PADDING_S = 1.2
"""Time for which motions hold their last pose at the end of a section with `hold`."""
_TIME_TOLERANCE_S = 1e-3


class ClipError(BadRequestError):
    """A clip cannot be compiled; `time_s` is its time in the section."""

    def __init__(self, message: str, remedy: str, time_s: float, *, overlap: bool = False) -> None:
        super().__init__(message, remedy)
        self.args = (message, remedy, time_s)
        self.time_s = time_s
        self.overlap = overlap


@dataclass(frozen=True, slots=True, eq=False)
class PlacedTrack:
    """The whole motion of a role in a section."""

    at_s: float
    """When its first pose is due, from the section's start."""
    track: Track
    """It begins at 0 s."""

    @property
    def end_s(self) -> float:
        """When its last pose is due, from the section's start."""
        return self.at_s + self.track.duration_s


@dataclass(frozen=True, slots=True)
class PlacedAction:
    """An action stored on the robot, and the time at which its motion begins."""

    at_s: float
    name: str
    speed: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """What one role does in one section."""

    section: str
    role: str
    motion: PlacedTrack | None = None
    actions: tuple[PlacedAction, ...] = ()
    cues: tuple[Cue, ...] = ()

    @property
    def duration_s(self) -> float:
        """Time from the section's start to its last event, in seconds: the end of the motion, or
        the start of an action or a cue. How long actions and cues take is not known here.
        """
        moments = [cue.at_s for cue in self.cues] + [action.at_s for action in self.actions]
        return max([0.0, *moments, *([self.motion.end_s] if self.motion else [])])

    @property
    def empty(self) -> bool:
        """Whether the role does nothing."""
        return self.motion is None and not self.actions and not self.cues

    def at_pace(self, pace: float) -> "Score":
        """Return the score `pace` times as fast: 0.5 for a rehearsal at half speed."""
        motion = self.motion
        if motion is not None:
            track = edit.speed(motion.track, pace) if pace != 1.0 else motion.track
            motion = PlacedTrack(motion.at_s / pace, track)
        return replace(
            self,
            motion=motion,
            actions=tuple(
                replace(each, at_s=each.at_s / pace, speed=each.speed * pace)
                for each in self.actions
            ),
            cues=tuple(replace(cue, at_s=cue.at_s / pace) for cue in self.cues),
        )

    def without_motion(self) -> "Score":
        """Return the score with its cues only, for a rehearsal of light and sound."""
        return replace(self, motion=None, actions=())


def compile_role(show: Show, section: Section, role: str, takes: TrackSource) -> Score:
    """Return what `role` does in `section`.

    Raises `ClipError` for a clip that cannot be compiled: an unknown take, an impossible trim, two
    clips at one time.
    """
    clips = sorted((clip for clip in section.clips if clip.role == role), key=lambda c: c.at_s)
    cues = tuple(sorted((cue for cue in section.cues if cue.role == role), key=lambda c: c.at_s))
    actions = [clip for clip in clips if clip.action]
    if actions and len(actions) < len(clips):
        raise ClipError(
            "a section mixes takes and actions stored on the robot",
            "Use one kind only, or make two sections.",
            actions[0].at_s,
        )
    placed = tuple(PlacedAction(clip.at_s, clip.action, clip.speed) for clip in actions)
    for clip in actions:
        if clip.loop > 1:
            raise ClipError(
                "an action stored on the robot cannot be looped",
                "Loop the section, or use a take.",
                clip.at_s,
            )
    motion = None if actions or not clips else _compile_motion(clips, takes, show.role(role).build)
    return Score(section.name, role, motion, placed, cues)


def hold_at_end(scores: Mapping[str, Score]) -> dict[str, Score]:
    """Return the scores of a section, by role, with all motions held until the last has ended."""
    end_s = max((each.motion.end_s for each in scores.values() if each.motion), default=0.0)
    held_scores = {}
    for role, score in scores.items():
        motion = score.motion
        if motion is not None:
            seconds = end_s - motion.end_s + HOLD_PADDING_S
            motion = replace(motion, track=_hold_last_pose(motion.track, seconds))
        held_scores[role] = replace(score, motion=motion)
    return held_scores


def _compile_motion(clips: Sequence[Clip], takes: TrackSource, build: str) -> PlacedTrack:
    """Return one motion of all clips, joined by soft moves or fades."""
    first_clip = clips[0]
    joined = _compile_clip(first_clip, takes, build)
    for clip in clips[1:]:
        try:
            joined = _append_piece(
                joined, _compile_clip(clip, takes, build), clip, clip.at_s - first_clip.at_s
            )
        except ClipError:
            raise
        except BadRequestError as error:
            raise ClipError(str(error), str(error.remedy), clip.at_s) from None
    return PlacedTrack(first_clip.at_s, joined)


def _compile_clip(clip: Clip, takes: TrackSource, build: str) -> Track:
    """Return one clip's motion: trimmed, mirrored, paced and looped, beginning at 0 s."""
    try:
        track = takes(clip.take)
        if clip.from_s is not None or clip.to_s is not None:
            track = edit.trim_from_start(track, clip.from_s, clip.to_s)
        if track.variant != build:
            track = edit.to_build(track, build)
        if clip.mirror:
            track = mirror(track)
        if clip.speed != 1.0:
            track = edit.speed(track, clip.speed)
        track = edit.from_zero(track)
        if clip.loop > 1:
            # Without `blend_s` there is no move back, so the last pose must equal the first one.
            once, closed = track, edit.close_loop(track, clip.blend_s) if clip.blend_s else track
            move_back_s = closed.duration_s - once.duration_s
            for _ in range(clip.loop - 1):
                track = edit.concatenate(track, once, move_back_s)
    except (BadRequestError, UnsafeMotionError) as error:
        remedy = str(getattr(error, "remedy", ""))
        raise ClipError(f"the take {clip.take!r}: {error}", remedy, clip.at_s) from None
    return track


def _append_piece(joined: Track, piece: Track, clip: Clip, at_s: float) -> Track:
    """Return `joined` followed by `piece`, which begins at `at_s` seconds."""
    gap_s = at_s - joined.duration_s
    if gap_s < -_TIME_TOLERANCE_S:
        if -gap_s > clip.blend_s + _TIME_TOLERANCE_S:
            raise ClipError(
                f"{clip.take!r} begins {-gap_s:.2f} s before the previous clip ends",
                f"Move it to {clip.at_s - gap_s:.2f} s, or give it a blend_s of {-gap_s:.2f} "
                "to fade.",
                clip.at_s,
                overlap=True,
            )
        return edit.cross_fade(joined, piece, -gap_s)
    gap_s = max(gap_s, 0.0)
    move_s = min(gap_s, clip.blend_s)
    try:
        return edit.concatenate(_hold_last_pose(joined, gap_s - move_s), piece, move_s)
    except BadRequestError:
        return edit.concatenate(joined, piece, gap_s)  # the move needs the whole gap


def _hold_last_pose(track: Track, seconds: float) -> Track:
    """Return the track, with its last pose held for `seconds`.

    The pose is repeated as often as the track has samples: a single one after a pause would look
    like a gap in a recording.
    """
    if seconds < _TIME_TOLERANCE_S:
        return track
    interval_s = float(np.median(np.diff(track.times_s)))
    count = max(1, round(seconds / interval_s))
    held_s = track.times_s[-1] + seconds * np.arange(1, count + 1) / count
    held_rad = np.repeat(track.joints_rad[-1:], count, axis=0)
    root = track.root
    return replace(
        track,
        times_s=np.concatenate([track.times_s, held_s]),
        joints_rad=np.concatenate([track.joints_rad, held_rad]),
        root=None if root is None else RootPath.concatenate([root, root.rows([-1] * count)]),
    )
