"""Leads a motion through a pose at one time, with the least possible change of acceleration.

The curve added to each joint is 0 with zero speed at both ends, has the required value at that
time, and the least integral of its squared acceleration: the cubic spline through these three
points, clamped at its ends. So the whole motion changes a little, and its ends stay.
"""

from collections.abc import Mapping

import numpy as np

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.motion.edit.operations import track_time_s
from rote.motion.interpolate import sample
from rote.motion.keyframes.edit import pose_limits
from rote.motion.track import Array, Track

__all__ = ["through", "least_bend"]

_MIN_S = 0.02  # nearer to an end, the change would be a jump


def through(track: Track, time_s: float, pose: Mapping[str, float]) -> Track:
    """Return the track led through `pose`, angles in rad by joint, at `time_s` from its beginning.

    Both ends keep their pose and their speed; the pose is met exactly: the sample nearest to the
    moment is moved onto it. Names may be without `_joint`. Nothing is clipped, so the result has to
    be checked. Raises `BadRequestError` for a joint that the track does not have, an angle that the
    joint cannot reach, or a moment at an end.
    """
    track.require_samples(3)
    wanted = {_full_joint_name(track, name): value for name, value in pose.items()}
    names = track.choose_joints(wanted)
    pose_limits(track, wanted)
    at_s = track_time_s(track, time_s, "the moment")
    first_s, last_s = float(track.times_s[0]), float(track.times_s[-1])
    if min(at_s - first_s, last_s - at_s) < _MIN_S:
        raise BadRequestError(
            f"a moment at {time_s:.2f} s is an end of the motion, and the ends stay",
            f"Choose {_MIN_S:g} s or more from both ends.",
        )
    times_s, old = _with_sample_at(track, at_s)
    columns = track.columns_of(names)
    there = sample(track.times_s, track.joints_rad[:, columns], np.array([at_s]), _CUBIC)[0]
    by_rad = np.array([wanted[name] for name in names]) - there
    bend = least_bend(times_s - first_s, at_s - first_s, last_s - first_s)
    joints_rad = old.copy()
    joints_rad[:, columns] += bend[:, None] * by_rad
    joints_rad[np.searchsorted(times_s, at_s), columns] = [wanted[name] for name in names]
    changes = ", ".join(
        f"{name} {wanted[name]:.3f} rad ({change:+.3f})"
        for name, change in zip(names, by_rad.tolist(), strict=True)
    )
    root = None if track.root is None else track.root.at(track.times_s, times_s)
    return track.edited(
        f"through {time_s:.2f} s: {changes}", times_s=times_s, joints_rad=joints_rad, root=root
    )


_CUBIC = Interpolation.CUBIC


def _full_joint_name(track: Track, name: str) -> str:
    """Return the full name of a joint; `name` may lack the ending `_joint`."""
    whole = f"{name}_joint"
    return whole if name not in track.names and whole in track.names else name


def _with_sample_at(track: Track, at_s: float) -> tuple[Array, Array]:
    """Return times and angles with a sample exactly at a time: the nearest inner one is moved."""
    times_s = track.times_s.copy()
    inner = 1 + int(np.abs(times_s[1:-1] - at_s).argmin())
    joints_rad = track.joints_rad.copy()
    if times_s[inner] != at_s:
        joints_rad[inner] = sample(times_s, track.joints_rad, np.array([at_s]), _CUBIC)[0]
        times_s[inner] = at_s
    return times_s, joints_rad


def least_bend(times_s: Array, at_s: float, length_s: float) -> Array:
    """Return the curve that is 1 at `at_s`, 0 and without speed at 0 and `length_s`, and whose
    squared acceleration has the least integral; (n,).
    """
    before_s, after_s = at_s, length_s - at_s
    # Of the cubic on either side the second derivatives agree at the moment; that gives its slope.
    slope = 1.5 * (1.0 / before_s - 1.0 / after_s)
    early = times_s <= at_s
    u = times_s / before_s
    v = (length_s - times_s) / after_s
    rising = u * u * (3.0 - 2.0 * u) + slope * before_s * u * u * (u - 1.0)
    falling = v * v * (3.0 - 2.0 * v) - slope * after_s * v * v * (v - 1.0)
    return np.asarray(np.where(early, rising, falling))
