"""Marks of a motion: add one, change one, remove one. Times count from the first sample."""

from rote.errors import BadRequestError
from rote.motion.edit.operations import track_time_s
from rote.motion.track import Mark, Track

__all__ = ["add_mark", "change_mark", "remove_mark"]

_NEAR_S = 0.05
"""A mark is identified by its time, within this tolerance."""
_TIME = "the time of the mark"


def add_mark(track: Track, time_s: float, label: str) -> Track:
    """Return the track with one more mark."""
    at_s = track_time_s(track, time_s, _TIME)
    line = f"mark at {time_s:.2f} s: {label}"
    return track.edited(line, marks=(*track.marks, Mark(at_s, label)))


def change_mark(
    track: Track, time_s: float, label: str | None = None, to_s: float | None = None
) -> Track:
    """Return the track with the mark at `time_s` renamed, or moved to `to_s`, or both.

    Raises `BadRequestError` if no mark is there, or nothing is to be changed.
    """
    if label is None and to_s is None:
        raise BadRequestError("no change of the mark was given", "Give a label or a new time.")
    old = _mark_at(track, time_s)
    new = Mark(
        old.time_s if to_s is None else track_time_s(track, to_s, _TIME),
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
    old = _mark_at(track, time_s)
    line = f"remove the mark at {old.time_s - float(track.times_s[0]):.2f} s: {old.label}"
    return track.edited(line, marks=_remove_once(track, old))


def _mark_at(track: Track, time_s: float) -> Mark:
    track.require_samples(1)
    first_s = float(track.times_s[0])
    near = min(track.marks, key=lambda mark: abs(mark.time_s - first_s - time_s), default=None)
    if near is None or not abs(near.time_s - first_s - time_s) <= _NEAR_S:
        there = ", ".join(f"{mark.label} at {mark.time_s - first_s:.2f} s" for mark in track.marks)
        raise BadRequestError(
            f"there is no mark at {time_s:.2f} s", f"There is: {there}." if there else ""
        )
    return near


def _remove_once(track: Track, gone: Mark) -> tuple[Mark, ...]:
    """Return the marks without one; of equal ones, the others stay."""
    index = track.marks.index(gone)
    return track.marks[:index] + track.marks[index + 1 :]
