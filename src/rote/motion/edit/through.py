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
from rote.motion.keyframes.edit import check_pose_limits
from rote.motion.track import Array, Track

__all__ = ["compute_least_bend", "through", "move_nearest_sample"]

_MIN_TO_END_S = 0.02  # nearer to an end, the change would be a jump
_CUBIC = Interpolation.CUBIC


def through(track: Track, time_s: float, pose: Mapping[str, float]) -> Track:
    """Return the track led through `pose`, angles in rad by joint, at `time_s` from its beginning.

    Both ends keep their pose and their speed. The nearest sample is moved to the moment, so that it
    has exactly the pose. Names may be without `_joint`. Nothing is clipped, so the result has to be
    checked. Raises `BadRequestError` for a joint that the track does not have, an angle that the
    joint cannot reach, or a moment at an end.
    """
    track.require_samples(3)
    target_rad = {_full_joint_name(track, name): value for name, value in pose.items()}
    names = track.choose_joints(target_rad)
    check_pose_limits(track, target_rad)
    at_s = track_time_s(track, time_s, "the moment")
    first_s, last_s = float(track.times_s[0]), float(track.times_s[-1])
    if min(at_s - first_s, last_s - at_s) < _MIN_TO_END_S:
        raise BadRequestError(
            f"{time_s:.2f} s is at an end of the motion, and this edit keeps both ends",
            f"Choose a moment {_MIN_TO_END_S:g} s or more from both ends.",
        )
    times_s, recorded_rad = move_nearest_sample(track, at_s)
    columns = track.columns_of(names)
    current_rad = sample(track.times_s, track.joints_rad[:, columns], np.array([at_s]), _CUBIC)[0]
    change_rad = np.array([target_rad[name] for name in names]) - current_rad
    bend = compute_least_bend(times_s - first_s, at_s - first_s, last_s - first_s)
    joints_rad = recorded_rad.copy()
    joints_rad[:, columns] += bend[:, None] * change_rad
    joints_rad[np.searchsorted(times_s, at_s), columns] = [target_rad[name] for name in names]
    changes = ", ".join(
        f"{name} {target_rad[name]:.3f} rad ({change:+.3f})"
        for name, change in zip(names, change_rad.tolist(), strict=True)
    )
    root = None if track.root is None else track.root.at(track.times_s, times_s)
    return track.edited(
        f"through {time_s:.2f} s: {changes}", times_s=times_s, joints_rad=joints_rad, root=root
    )


def _full_joint_name(track: Track, name: str) -> str:
    """Return the full name of a joint; `name` may lack the ending `_joint`."""
    full_name = f"{name}_joint"
    if name not in track.names and full_name in track.names:
        return full_name
    return name


def move_nearest_sample(track: Track, at_s: float) -> tuple[Array, Array]:
    """Return the times and angles of a track with its inner sample nearest to `at_s` moved there.

    The moved sample has the angles that the recorded motion has at `at_s`.
    """
    times_s = track.times_s.copy()
    inner = 1 + int(np.abs(times_s[1:-1] - at_s).argmin())
    joints_rad = track.joints_rad.copy()
    if times_s[inner] != at_s:
        joints_rad[inner] = sample(times_s, track.joints_rad, np.array([at_s]), _CUBIC)[0]
        times_s[inner] = at_s
    return times_s, joints_rad


def compute_least_bend(times_s: Array, at_s: float, length_s: float) -> Array:
    """Return the smoothest curve that is 1 at `at_s`, and 0 with zero speed at 0 and `length_s`.

    Of all such curves its squared acceleration has the least integral. The result is (n,).
    """
    before_s, after_s = at_s, length_s - at_s
    # Two cubics meet at `at_s`. Their second derivatives are equal there, which gives the slope.
    slope = 1.5 * (1.0 / before_s - 1.0 / after_s)
    is_before = times_s <= at_s
    u = times_s / before_s  # from 0 to 1 before `at_s`
    v = (length_s - times_s) / after_s  # from 1 to 0 after it
    rising = u * u * (3.0 - 2.0 * u) + slope * before_s * u * u * (u - 1.0)
    falling = v * v * (3.0 - 2.0 * v) - slope * after_s * v * v * (v - 1.0)
    return np.asarray(np.where(is_before, rising, falling))
