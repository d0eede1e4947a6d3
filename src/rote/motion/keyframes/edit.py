"""Leads joints through other angles at one time of a motion; everything else stays.

From `before_s` before that moment to `after_s` after it, a smooth change is added to the motion, so
that its details stay. A keyframe may also be moved in time: then the motion reaches the same angles
at another time. Only the joints of the keyframe change. The page draws the same change while a
keyframe is dragged (page/src/keyframes.ts).
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.motion.check.limits import TOLERANCE_RAD
from rote.motion.edit.operations import track_time_s
from rote.motion.edit.table import Range
from rote.motion.interpolate import minimum_jerk, sample
from rote.motion.keyframes.search import compress_to_bound
from rote.motion.track import Array, Track
from rote.motion.track_build import joints_of

__all__ = ["check_pose_limits", "keyframe", "propose_keyframes"]

BOUND_RAD = 0.08
"""The maximum error of smooth steps between keyframes: about 5 degrees."""
STILL_RAD = 0.02
"""A joint that moves less than this over the whole motion has keyframes only if it is named."""

_SEARCH_HZ = 12.5
_SEARCH_BLOCK_S = 20.0


class ProposedKeyframe(NamedTuple):
    """An angle that a joint passes through; the time is since the first sample."""

    joint: str
    time_s: float
    value_rad: float


def propose_keyframes(
    track: Track, joints: Collection[str] | None = None
) -> tuple[list[ProposedKeyframe], float]:
    """Return the keyframes of all joints that move, and the largest error between them, in rad.

    With `joints`, only keyframes of these are returned. They are sorted by joint, in the track's
    order, then by time, and include the first and the last sample.
    """
    track.require_samples(2)
    candidates = track.names if joints is None else track.choose_joints(joints)
    moved_rad = np.ptp(track.joints_rad[:, track.columns_of(candidates)], axis=0)
    moving = [
        name
        for name, by_rad in zip(candidates, moved_rad.tolist(), strict=True)
        if joints is not None or by_rad > STILL_RAD
    ]
    if not moving:
        return [], 0.0
    coarse = _resample_coarsely(track, moving)
    rows: list[set[int]] = [{0, len(coarse) - 1} for _ in moving]
    worst_rad = 0.0
    # The time of a search grows with the square of the length, so a long motion is searched in
    # blocks. The first sample of each block is a keyframe.
    block_size = round(_SEARCH_BLOCK_S * _SEARCH_HZ)
    for begin in range(0, len(coarse) - 1, block_size):
        block = slice(begin, begin + block_size + 1)
        times_s = coarse.times_s[block]
        compressed = compress_to_bound(
            replace(coarse, times_s=times_s, joints_rad=coarse.joints_rad[block]),
            BOUND_RAD,
            Interpolation.SMOOTH,
        )
        worst_rad = max(worst_rad, compressed.max_error_rad)
        for keyframe in compressed.keyframes:
            nearest = np.abs(times_s - times_s[0] - keyframe.time_ms / 1000.0).argmin()
            rows[keyframe.joint].add(begin + int(nearest))
        for joint_rows in rows:
            joint_rows.add(begin)
    return [
        ProposedKeyframe(name, float(coarse.times_s[row]), float(coarse.joints_rad[row, column]))
        for column, name in enumerate(moving)
        for row in sorted(rows[column])
    ], worst_rad


def _resample_coarsely(track: Track, names: list[str]) -> Track:
    """Return these joints, sampled evenly for the search, from 0 s to the last sample."""
    count = max(int(np.ceil(track.duration_s * _SEARCH_HZ)), 1) + 1
    since_s = np.linspace(0.0, track.duration_s, count)
    values = sample(
        track.times_s,
        track.joints_rad[:, track.columns_of(names)],
        track.times_s[0] + since_s,
        Interpolation.CUBIC,
    )
    return Track(times_s=since_s, joints_rad=values, names=tuple(names))


ANGLE = Range(-7.0, 7.0, "rad")
"""The allowed angles of an unknown joint; known joints are checked against their limits."""

_SPARSE_S = 0.025  # samples further apart than this cannot show a bend
_FILLED_HZ = 50.0  # rate of the samples that are then added
_MIN_WIDTH_S = 0.02  # a bend within less time would be a jump
_MAX_SLOPE = 3.0  # a cubic is monotone if neither end is steeper than this many times the mean


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

    `time_s` counts from the first sample. With `to_s`, the motion at `time_s` is moved there. The
    motion bends from `before_s` before `time_s` to `after_s` after it. A joint that is bent beyond
    its limits stays at the limit. Raises `BadRequestError` for a joint that the track does not
    have, an angle that the joint cannot reach, or a time outside the track.
    """
    track.require_samples(2)
    names = track.choose_joints(pose)
    lower, upper = check_pose_limits(track, pose)
    bend = _compute_bend_times(track, time_s, time_s if to_s is None else to_s, (before_s, after_s))
    dense = _densify(track, bend)
    nearest_row = int(np.abs(dense.times_s - bend.new_s).argmin())
    bend = bend._replace(new_s=float(dense.times_s[nearest_row]))
    columns = dense.columns_of(names)
    old_rad = dense.joints_rad[:, columns]
    moved_rad = sample(
        dense.times_s, old_rad, _warp_times(dense.times_s, bend), Interpolation.CUBIC
    )
    old_pose_rad = sample(dense.times_s, old_rad, np.array([bend.old_s]), Interpolation.CUBIC)[0]
    change_rad = np.array([pose[name] for name in names]) - old_pose_rad
    new_rad = moved_rad + _compute_change_weights(dense.times_s, bend) * change_rad
    joints_rad = dense.joints_rad.copy()
    # A motion that was recorded beyond a limit may stay there.
    joints_rad[:, columns] = np.clip(
        new_rad, np.minimum(lower, moved_rad), np.maximum(upper, moved_rad)
    )
    angles = ", ".join(f"{name} {pose[name]:.3f} rad" for name in names)
    first_s = float(track.times_s[0])
    moment = f"at {bend.new_s - first_s:.2f} s"
    if bend.new_s != bend.old_s:
        moment += f", was {bend.old_s - first_s:.2f} s"
    root = None if track.root is None else track.root.at(track.times_s, dense.times_s)
    return track.edited(
        f"keyframe {moment}: {angles}", times_s=dense.times_s, joints_rad=joints_rad, root=root
    )


def check_pose_limits(track: Track, pose: Mapping[str, float]) -> tuple[Array, Array]:
    """Return the lowest and the highest angle of each joint of a pose, in the track's order.

    Raises `BadRequestError` for an angle of `pose` that its joint cannot reach.
    """
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
    """Return the times of the part that changes when the keyframe at `time_s` moves to `to_s`.

    Raises `BadRequestError` if the new time is too near an end of that part.
    """
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
            f"the keyframe at {to_s:.2f} s would cause a jump: the motion changes only from "
            f"{start_s - first_s:.2f} to {end_s - first_s:.2f} s",
            f"Leave {_MIN_WIDTH_S:g} s or more on both sides.",
        )
    return _BendTimes(start_s, old_s, new_s, end_s)


def _densify(track: Track, bend: _BendTimes) -> Track:
    """Return the track with more samples in its changed part, if it has too few there."""
    times_s = track.times_s
    is_inside = (times_s > bend.start_s) & (times_s < bend.end_s)
    around_s = np.unique([bend.start_s, *times_s[is_inside], bend.end_s])
    if np.diff(around_s, prepend=bend.start_s).max() <= _SPARSE_S:
        return track
    count = int(np.ceil((bend.end_s - bend.start_s) * _FILLED_HZ)) + 1
    filled_s = np.linspace(bend.start_s, bend.end_s, count)
    dense_s = np.sort(np.concatenate([times_s, filled_s, [bend.new_s]]))
    # A sample within a millisecond of the one before is dropped; the first and last stay.
    is_kept = np.concatenate([[True], np.diff(dense_s) > 1e-3])
    dense_s = dense_s[is_kept]
    dense_s[0], dense_s[-1] = times_s[0], times_s[-1]
    joints_rad = sample(times_s, track.joints_rad, dense_s, Interpolation.CUBIC)
    return Track(times_s=dense_s, joints_rad=joints_rad, names=track.names, variant=track.variant)


def _warp_times(times_s: Array, bend: _BendTimes) -> Array:
    """Return for each new time the old time whose angles are reached then."""
    start_s, old_s, new_s, end_s = bend
    warped = times_s.copy()
    if old_s == new_s:
        return warped
    # A cubic before the keyframe and one after it. Outside, time passes as before: with slope 1.
    slope = _compute_keyframe_slope(bend)
    is_before = (times_s >= start_s) & (times_s <= new_s)
    is_after = (times_s >= new_s) & (times_s <= end_s)
    if new_s > start_s:
        warped[is_before] = _interpolate_monotone(
            times_s[is_before], (start_s, new_s), (start_s, old_s), (1.0, slope)
        )
    if end_s > new_s:
        warped[is_after] = _interpolate_monotone(
            times_s[is_after], (new_s, end_s), (old_s, end_s), (slope, 1.0)
        )
    return warped


def _interpolate_monotone(
    times_s: Array,
    ends_s: tuple[float, float],
    values: tuple[float, float],
    slopes: tuple[float, float],
) -> Array:
    """Return the cubic with these values and slopes at both ends; slopes are limited to keep it
    monotone.
    """
    length_s, rise = ends_s[1] - ends_s[0], values[1] - values[0]
    begin_slope, end_slope = (min(slope, _MAX_SLOPE * (rise / length_s)) for slope in slopes)
    u = (times_s - ends_s[0]) / length_s
    return np.asarray(
        values[0]
        + rise * u * u * (3.0 - 2.0 * u)
        + length_s * u * (1.0 - u) * ((1.0 - u) * begin_slope - u * end_slope)
    )


def _compute_keyframe_slope(bend: _BendTimes) -> float:
    """Return the slope of old over new time at the keyframe: the harmonic mean of both sides."""
    before = (bend.old_s - bend.start_s) / max(bend.new_s - bend.start_s, 1e-9)
    after = (bend.end_s - bend.old_s) / max(bend.end_s - bend.new_s, 1e-9)
    total = before + after
    return 2.0 * before * after / total if total > 0 else 0.0


def _compute_change_weights(times_s: Array, bend: _BendTimes) -> Array:
    """Return the share of the change at each time, (n, 1): 1 at the keyframe itself."""
    zero, one = np.zeros(1), np.ones(1)
    rising = minimum_jerk(
        zero, one, (times_s - bend.start_s) / max(bend.new_s - bend.start_s, 1e-9)
    )
    falling = minimum_jerk(one, zero, (times_s - bend.new_s) / max(bend.end_s - bend.new_s, 1e-9))
    weights = np.where((times_s <= bend.new_s)[:, None], rising, falling)
    if bend.start_s >= bend.new_s:  # the keyframe is at the beginning of the motion
        weights[times_s < bend.new_s] = 0.0
        weights[times_s == bend.new_s] = 1.0
    return np.asarray(weights)
