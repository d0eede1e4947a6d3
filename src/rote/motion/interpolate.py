"""Interpolation between samples: linear, cubic and smooth-step, on a shared time base or per joint.

No method overshoots: a value always lies between the two samples around it. The cubic is a monotone
Hermite spline; a plain cubic through a few keyframes overshoots by more than a radian.
"""

import numpy as np

from rote.messages import Interpolation, Keyframe
from rote.motion.track import Array

_BLOCK = 1 << 14  # times that are processed together


def sample(times_s: Array, values: Array, at_s: Array, how: Interpolation) -> Array:
    """Return the values at the times `at_s`; before the first and after the last they are held.

    `times_s` is (n,), `values` is (n, joints), `at_s` is (k,); the result is (k, joints).
    """
    if times_s.size == 1:
        return np.repeat(values, at_s.size, axis=0)
    if at_s.size <= _BLOCK:
        return _sample_block(times_s, values, at_s, how)
    # Block by block, so that temporary arrays do not grow with the length.
    found = np.empty((at_s.size, values.shape[1]))
    for begin in range(0, at_s.size, _BLOCK):
        part = at_s[begin : begin + _BLOCK]
        first, last = np.searchsorted(times_s, [part.min(), part.max()], side="right").tolist()
        # A slope needs one more sample to each side, or the true end.
        near = slice(max(min(first, times_s.size - 1) - 3, 0), last + 3)
        found[begin : begin + _BLOCK] = _sample_block(times_s[near], values[near], part, how)
    return found


def _sample_block(times_s: Array, values: Array, at_s: Array, how: Interpolation) -> Array:
    left = np.clip(np.searchsorted(times_s, at_s, side="right") - 1, 0, times_s.size - 2)
    width = np.diff(times_s)
    u = np.clip((at_s - times_s[left]) / width[left], 0.0, 1.0)[:, None]
    start, rise = values[left], values[left + 1] - values[left]
    if how is Interpolation.LINEAR:
        return start + u * rise
    if how is Interpolation.SMOOTH:
        return start + u * u * (3.0 - 2.0 * u) * rise
    slopes = _monotone_slopes(width, values)
    h = width[left][:, None]
    return (
        start
        + (u * u * (3.0 - 2.0 * u)) * rise
        + h * (u * (1.0 - u) ** 2) * slopes[left]
        - h * (u * u * (1.0 - u)) * slopes[left + 1]
    )


def _monotone_slopes(width: Array, values: Array) -> Array:
    """Return the slope at each sample: the harmonic mean of both sides, 0 at a turning point."""
    secant = np.diff(values, axis=0) / width[:, None]
    before, after = secant[:-1], secant[1:]
    product = before * after
    total = before + after
    inner = np.zeros_like(product)
    np.divide(2.0 * product, total, out=inner, where=product > 0)
    return np.vstack([secant[:1], inner, secant[-1:]])


def sample_keyframes(
    keyframes: tuple[Keyframe, ...], start_rad: Array, at_s: Array, how: Interpolation
) -> Array:
    """Return poses of shape (k, joints) from single-joint keyframes.

    `start_rad` is the pose at time 0 for every joint that has no keyframe there. A joint without
    keyframes keeps it, and each joint holds its last keyframe.
    """
    poses = np.repeat(start_rad[None, :], at_s.size, axis=0)
    for joint in sorted({keyframe.joint for keyframe in keyframes}):
        # A later keyframe for the same time replaces the earlier one.
        knots = {0: float(start_rad[joint])}
        knots.update({k.time_ms: k.value_rad for k in keyframes if k.joint == joint})
        times_s = np.array(sorted(knots)) / 1000.0
        values = np.array([knots[ms] for ms in sorted(knots)])[:, None]
        poses[:, joint] = sample(times_s, values, at_s, how)[:, 0]
    return poses


def minimum_jerk(start_rad: Array, end_rad: Array, fractions: Array) -> Array:
    """Return poses from `start_rad` to `end_rad` with minimum jerk, as a calm hand would move.

    `fractions` of the time, (k,), from 0 to 1; the result is (k, joints). Its highest speed is
    `MINIMUM_JERK_PEAK` times the mean speed. No pose lies beyond the two, not even by rounding,
    because one of them may be a limit.
    """
    u = np.clip(fractions, 0.0, 1.0)[:, None]
    poses = start_rad + (end_rad - start_rad) * (u**3 * (10.0 - 15.0 * u + 6.0 * u * u))
    return np.clip(poses, np.minimum(start_rad, end_rad), np.maximum(start_rad, end_rad))


MINIMUM_JERK_PEAK = 1.875
