"""Interpolation between samples: linear, cubic and smooth-step, on a shared time base or per joint.

No method overshoots: a value always lies between the two samples around it. The cubic is a monotone
Hermite spline; a plain cubic through a few keyframes overshoots by more than a radian.
"""

import numpy as np

from rote.messages import Interpolation, Keyframe
from rote.motion.track import Array

_BLOCK = 1 << 14  # times that are processed together


def sample(times_s: Array, values: Array, at_s: Array, how: Interpolation) -> Array:
    """Return the values at the times `at_s`; the first and last value are held beyond the ends.

    `times_s` is (n,), `values` is (n, joints), `at_s` is (k,); the result is (k, joints).
    """
    if times_s.size == 1:
        return np.repeat(values, at_s.size, axis=0)
    if at_s.size <= _BLOCK:
        return _sample_block(times_s, values, at_s, how)
    # Block by block, so that temporary arrays do not grow with the length.
    result = np.empty((at_s.size, values.shape[1]))
    for begin in range(0, at_s.size, _BLOCK):
        block_s = at_s[begin : begin + _BLOCK]
        first, last = np.searchsorted(
            times_s, [block_s.min(), block_s.max()], side="right"
        ).tolist()
        # The slope at a sample needs its neighbours on both sides, or the true end.
        needed = slice(max(min(first, times_s.size - 1) - 3, 0), last + 3)
        result[begin : begin + _BLOCK] = _sample_block(
            times_s[needed], values[needed], block_s, how
        )
    return result


def _sample_block(times_s: Array, values: Array, at_s: Array, how: Interpolation) -> Array:
    """Return what `sample` does, for two samples or more and all times at once."""
    left = np.clip(np.searchsorted(times_s, at_s, side="right") - 1, 0, times_s.size - 2)
    steps_s = np.diff(times_s)
    # The fraction of the way from the sample on the left to that on the right.
    u = np.clip((at_s - times_s[left]) / steps_s[left], 0.0, 1.0)[:, None]
    start, rise = values[left], values[left + 1] - values[left]
    if how is Interpolation.LINEAR:
        return start + u * rise
    if how is Interpolation.SMOOTH:
        return start + u * u * (3.0 - 2.0 * u) * rise
    # A cubic Hermite spline: the smooth step, and the slopes at both samples.
    slopes = _compute_monotone_slopes(steps_s, values)
    step_s = steps_s[left][:, None]
    return (
        start
        + (u * u * (3.0 - 2.0 * u)) * rise
        + step_s * (u * (1.0 - u) ** 2) * slopes[left]
        - step_s * (u * u * (1.0 - u)) * slopes[left + 1]
    )


def _compute_monotone_slopes(steps_s: Array, values: Array) -> Array:
    """Return the slope at each sample: the harmonic mean of both sides, 0 at a turning point.

    With these slopes a cubic spline does not overshoot. `steps_s` are the times between samples.
    """
    secant = np.diff(values, axis=0) / steps_s[:, None]
    left, right = secant[:-1], secant[1:]
    product = left * right
    total = left + right
    slopes = np.zeros_like(product)
    np.divide(2.0 * product, total, out=slopes, where=product > 0)
    return np.vstack([secant[:1], slopes, secant[-1:]])


def average_gaussian(values: Array, width: float) -> Array:
    """Return the values smoothed by a Gaussian of standard deviation `width`, in samples.

    The samples are the first axis; the first and last are held. A width of 0 changes nothing.
    """
    if not width:
        return values
    reach = int(np.ceil(4.0 * width))  # weights further out are below 0.04 % of the middle one
    weights = np.exp(-0.5 * np.square(np.arange(-reach, reach + 1) / width))
    return convolve_held(values, weights)


def sliding_max(values: Array, reach: int) -> Array:
    """Return the greatest value up to `reach` elements before and after each, (n,)."""
    reach = min(reach, len(values))
    # `result[i]` is the maximum of `width` elements from i on; the width doubles in each round.
    width, result = 1, np.pad(values, reach, constant_values=-np.inf)
    while 2 * width <= 2 * reach + 1:
        result = np.maximum(result[:-width], result[width:])
        width *= 2
    # Two overlapping runs cover the whole window.
    offset = 2 * reach + 1 - width
    return np.maximum(result[: len(values)], result[offset : offset + len(values)])


def convolve_held(values: Array, weights: Array) -> Array:
    """Return the weighted average around each sample, as if the first and last were repeated."""
    weights = weights / weights.sum()
    reach = weights.size // 2
    held = np.pad(values, ((reach, reach),) + ((0, 0),) * (values.ndim - 1), mode="edge")
    if values.ndim == 1:
        return np.convolve(held, weights, mode="valid")
    return np.stack([np.convolve(column, weights, mode="valid") for column in held.T], axis=1)


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

    `fractions` of the time, (k,), from 0 to 1; the result is (k, joints). No pose lies beyond the
    two, not even by rounding, because one of them may be a limit.
    """
    u = np.clip(fractions, 0.0, 1.0)[:, None]
    poses = start_rad + (end_rad - start_rad) * (u**3 * (10.0 - 15.0 * u + 6.0 * u * u))
    return np.clip(poses, np.minimum(start_rad, end_rad), np.maximum(start_rad, end_rad))


MINIMUM_JERK_PEAK = 1.875
"""The highest speed of a minimum-jerk move, as a multiple of its mean speed."""
