"""Marks of a motion: add one, change one, remove one. Times count from the first sample."""

from rote.errors import BadRequestError
from rote.motion.edit.operations import track_time_s
from rote.motion.track import Mark, Track

__all__ = ["add_mark", "change_mark", "remove_mark"]

_NEAR_S = 0.05
"""A mark is identified by its time, within this tolerance."""
_TIME_NAME = "the time of the mark"
"""How errors name the time."""


def add_mark(track: Track, time_s: float, label: str) -> Track:
    """Return the track with one more mark."""
    at_s = track_time_s(track, time_s, _TIME_NAME)
    line = f"mark at {time_s:.2f} s: {label}"
    return track.edited(line, marks=(*track.marks, Mark(at_s, label)))


def change_mark(
    track: Track, time_s: float, label: str | None = None, to_s: float | None = None
) -> Track:
    """Return the track with the mark at `time_s` renamed, or moved to `to_s`, or both.

    Raises `BadRequestError` if no mark is there, or nothing is to be changed.
    """
    if label is None and to_s is None:
        raise BadRequestError("no change to the mark was given", "Give a label or a new time.")
    old = _find_mark(track, time_s)
    new = Mark(
        old.time_s if to_s is None else track_time_s(track, to_s, _TIME_NAME),
        old.label if label is None else label,
    )
    first_s = float(track.times_s[0])
    line = (
        f"mark at {old.time_s - first_s:.2f} s, {old.label}: "
        f"now at {new.time_s - first_s:.2f} s, {new.label}"
    )
    return track.edited(line, marks=(*_remove_once(track, old), new))


def remove_mark(track: Track, time_s: float) -> Track:
    """Return the track without the mark at `time_s`; raises `BadRequestError` if none is there."""
    old = _find_mark(track, time_s)
    line = f"remove the mark at {old.time_s - float(track.times_s[0]):.2f} s: {old.label}"
    return track.edited(line, marks=_remove_once(track, old))


def _find_mark(track: Track, time_s: float) -> Mark:
    """Return the mark at a time since the first sample, within 0.05 s.

    Raises `BadRequestError` if there is none.
    """
    track.require_samples(1)
    first_s = float(track.times_s[0])
    nearest = min(track.marks, key=lambda mark: abs(mark.time_s - first_s - time_s), default=None)
    # Written this way round, the comparison refuses NaN as well.
    if nearest is None or not abs(nearest.time_s - first_s - time_s) <= _NEAR_S:
        marks_text = ", ".join(
            f"{mark.label} at {mark.time_s - first_s:.2f} s" for mark in track.marks
        )
        raise BadRequestError(
            f"there is no mark at {time_s:.2f} s",
            f"The motion has: {marks_text}." if marks_text else "",
        )
    return nearest


def _remove_once(track: Track, removed: Mark) -> tuple[Mark, ...]:
    """Return the track's marks without `removed`; other marks equal to it stay."""
    index = track.marks.index(removed)
    return track.marks[:index] + track.marks[index + 1 :]
