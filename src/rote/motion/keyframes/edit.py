"""Leads joints through other angles at one time of a motion; everything else stays.

Between `before_s` before that moment and `after_s` after it the motion bends, softly on both sides,
and keeps its details. A keyframe may also be moved in time: then what was reached at one moment is
reached at another. Only the joints of the keyframe change. The page draws the same bend while a
keyframe is dragged (page/src/keyframes.ts).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.motion.check.limits import TOLERANCE_RAD
from rote.motion.edit.operations import track_time_s
from rote.motion.edit.table import Range
from rote.motion.interpolate import minimum_jerk, sample
from rote.motion.track import Array, Track
from rote.motion.track_build import joints_of

__all__ = ["keyframe"]

ANGLE = Range(-7.0, 7.0, "rad")
"""The allowed angles of an unknown joint; known joints are checked against their limits."""

_SPARSE_S = 0.025  # samples further apart than this cannot show a bend
_FILLED_HZ = 50.0
_MIN_WIDTH_S = 0.02
_STEEPEST = 3.0  # a cubic is monotone if neither end is steeper than this many times the mean


class _BendTimes(NamedTuple):
    """The times between which a motion bends around a keyframe, on the clock of the track."""

    start_s: float
    old_s: float
    """The old time of the keyframe."""
    new_s: float
    """Its new time."""
    end_s: float


def keyframe(
    track: Track,
    time_s: float,
    pose: Mapping[str, float],
    to_s: float | None = None,
    before_s: float = 0.5,
    after_s: float = 0.5,
) -> Track:
    """Return the track with the joints of `pose` at these angles, in rad, at one moment.

    `time_s` counts from the first sample. With `to_s`, what was at `time_s` is moved to there. It
    bends from `before_s` before `time_s` to `after_s` after it. A joint that is bent beyond its
    limits stays at the limit. Raises `BadRequestError` for a joint that the track does not have,
    an angle that the joint cannot reach, or a moment outside.
    """
    track.require_samples(2)
    names = track.choose_joints(pose)
    lower, upper = pose_limits(track, pose)
    bend = _compute_bend_times(track, time_s, time_s if to_s is None else to_s, (before_s, after_s))
    dense = _densify(track, bend)
    bend = bend._replace(new_s=float(dense.times_s[np.abs(dense.times_s - bend.new_s).argmin()]))
    columns = dense.columns_of(names)
    old = dense.joints_rad[:, columns]
    moved = sample(dense.times_s, old, _warp_times(dense.times_s, bend), Interpolation.CUBIC)
    there = sample(dense.times_s, old, np.array([bend.old_s]), Interpolation.CUBIC)[0]
    by_rad = np.array([pose[name] for name in names]) - there
    new = moved + _change_share(dense.times_s, bend) * by_rad
    joints_rad = dense.joints_rad.copy()
    joints_rad[:, columns] = np.clip(new, np.minimum(lower, moved), np.maximum(upper, moved))
    angles = ", ".join(f"{name} {pose[name]:.3f} rad" for name in names)
    first_s = float(track.times_s[0])
    moment = f"at {bend.new_s - first_s:.2f} s"
    if bend.new_s != bend.old_s:
        moment += f", was {bend.old_s - first_s:.2f} s"
    root = None if track.root is None else track.root.at(track.times_s, dense.times_s)
    return track.edited(
        f"keyframe {moment}: {angles}", times_s=dense.times_s, joints_rad=joints_rad, root=root
    )


def pose_limits(track: Track, pose: Mapping[str, float]) -> tuple[Array, Array]:
    """Return the lowest and highest angle of each joint of a pose, and check the pose."""
    known = joints_of(track)
    lower, upper = [], []
    for name in track.choose_joints(pose):
        ANGLE.require(pose[name], name)
        joint = known.get(name)
        low, high = (ANGLE.low, ANGLE.high) if joint is None else (joint.lower_rad, joint.upper_rad)
        if not low - TOLERANCE_RAD <= pose[name] <= high + TOLERANCE_RAD:
            Range(low, high, "rad").require(pose[name], name)
        lower.append(low)
        upper.append(high)
    return np.array(lower), np.array(upper)


def _compute_bend_times(
    track: Track, time_s: float, to_s: float, widths_s: tuple[float, float]
) -> _BendTimes:
    first_s, last_s = float(track.times_s[0]), float(track.times_s[-1])
    old_s = track_time_s(track, time_s, "the moment")
    new_s = track_time_s(track, to_s, "the new moment")
    start_s, end_s = max(old_s - widths_s[0], first_s), min(old_s + widths_s[1], last_s)
    # A keyframe at an end of the motion needs room on its inner side only.
    too_near = (new_s > first_s and new_s - start_s < _MIN_WIDTH_S) or (
        new_s < last_s and end_s - new_s < _MIN_WIDTH_S
    )
    if too_near:
        raise BadRequestError(
            f"the keyframe at {to_s:.2f} s would cause a jump: "
            f"the motion changes only from {start_s - first_s:.2f} to {end_s - first_s:.2f} s",
            f"Leave {_MIN_WIDTH_S:g} s or more on both sides.",
        )
    return _BendTimes(start_s, old_s, new_s, end_s)


def _densify(track: Track, bend: _BendTimes) -> Track:
    """Return the track with more samples where it bends, if it has too few there."""
    times_s = track.times_s
    near = (times_s > bend.start_s) & (times_s < bend.end_s)
    around_s = np.unique([bend.start_s, *times_s[near], bend.end_s])
    if np.diff(around_s, prepend=bend.start_s).max() <= _SPARSE_S:
        return track
    count = int(np.ceil((bend.end_s - bend.start_s) * _FILLED_HZ)) + 1
    filled_s = np.linspace(bend.start_s, bend.end_s, count)
    every_s = np.sort(np.concatenate([times_s, filled_s, [bend.new_s]]))
    # A sample within a millisecond of the one before is dropped; the first and last stay.
    kept = np.concatenate([[True], np.diff(every_s) > 1e-3])
    every_s = every_s[kept]
    every_s[0], every_s[-1] = times_s[0], times_s[-1]
    joints_rad = sample(times_s, track.joints_rad, every_s, Interpolation.CUBIC)
    return Track(times_s=every_s, joints_rad=joints_rad, names=track.names, variant=track.variant)


def _warp_times(times_s: Array, bend: _BendTimes) -> Array:
    """Return for each new time the old time whose angles are reached then."""
    start_s, old_s, new_s, end_s = bend
    warped = times_s.copy()
    if old_s == new_s:
        return warped
    middle = _middle_slope(bend)
    for begin, end, after in ((start_s, new_s, False), (new_s, end_s, True)):
        inside = (times_s >= begin) & (times_s <= end)
        if end <= begin:
            continue
        first, last = (old_s, end_s) if after else (start_s, old_s)
        mean = (last - first) / (end - begin)
        at_begin, at_end = (middle, 1.0) if after else (1.0, middle)
        at_begin, at_end = (min(slope, _STEEPEST * mean) for slope in (at_begin, at_end))
        u = (times_s[inside] - begin) / (end - begin)
        warped[inside] = (
            first
            + (last - first) * u * u * (3.0 - 2.0 * u)
            + (end - begin) * u * (1.0 - u) * ((1.0 - u) * at_begin - u * at_end)
        )
    return warped


def _middle_slope(bend: _BendTimes) -> float:
    """Return how fast old time passes at the moment itself: the harmonic mean of both sides."""
    before = (bend.old_s - bend.start_s) / max(bend.new_s - bend.start_s, 1e-9)
    after = (bend.end_s - bend.old_s) / max(bend.end_s - bend.new_s, 1e-9)
    total = before + after
    return 2.0 * before * after / total if total > 0 else 0.0


def _change_share(times_s: Array, bend: _BendTimes) -> Array:
    """Return the share of the change at each time, (n, 1): 1 at the keyframe itself."""
    zero, one = np.zeros(1), np.ones(1)
    rising = minimum_jerk(
        zero, one, (times_s - bend.start_s) / max(bend.new_s - bend.start_s, 1e-9)
    )
    falling = minimum_jerk(one, zero, (times_s - bend.new_s) / max(bend.end_s - bend.new_s, 1e-9))
    share = np.where((times_s <= bend.new_s)[:, None], rising, falling)
    if bend.start_s >= bend.new_s:
        share[times_s < bend.new_s] = 0.0
        share[times_s == bend.new_s] = 1.0
    return np.asarray(share)
