"""Cubic splines: through evenly spaced samples, and through a few points with ends at rest.

Unlike the interpolation of players, their acceleration has no steps; they may overshoot slightly.
Before the first and after the last sample the curve holds.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rote.motion.track import Array

_PADDING = 24  # a sample's effect on the curvature falls by 0.27 per step, to 1e-14 at 24 steps
_ROOT = np.sqrt(3.0) - 2.0  # of x**2 + 4 * x + 1, the equation of the curvatures
_WEIGHTS = _ROOT ** np.arange(_PADDING + 1) / (2.0 * np.sqrt(3.0))
_BLOCK = 1 << 13  # times that are processed together


def sample_spline(step_s: float, values: Array, at_s: Array) -> Array:
    """Return the cubic spline through evenly spaced samples at the times `at_s`, (k, joints).

    `values` is (n, joints): the first sample is at 0 s, the others follow every `step_s`.
    """
    result = np.empty((at_s.size, values.shape[1]))
    for begin in range(0, at_s.size, _BLOCK):
        # In steps from the first sample. Further out than the padding the curve is constant.
        positions = np.clip(
            at_s[begin : begin + _BLOCK] / step_s, 1.0 - _PADDING, len(values) + _PADDING - 2
        )
        # Samples further away than the padding do not affect this block.
        first = int(np.floor(positions.min())) - _PADDING - 1
        last = int(np.ceil(positions.max())) + _PADDING + 1
        padded = values[np.clip(np.arange(first, last + 1), 0, len(values) - 1)]
        result[begin : begin + _BLOCK] = _evaluate_spline(padded, positions - first)
    return result


def _evaluate_spline(samples: Array, positions: Array) -> Array:
    """Return the spline through samples, (n, joints), at positions in steps from the first."""
    curvatures = _compute_curvatures(samples)
    left = np.minimum(positions.astype(np.intp), len(samples) - 2)
    u = (positions - left)[:, None]  # the fraction of a step since the sample on the left
    v = 1.0 - u
    start, end = samples[left], samples[left + 1]
    start_curvature, end_curvature = curvatures[left], curvatures[left + 1]
    return np.asarray(
        v * start
        + u * end
        + (v * (v * v - 1.0) * start_curvature + u * (u * u - 1.0) * end_curvature)
    )


def find_spline_peaks(step_s: float, values: Array) -> tuple[Array, Array, Array]:
    """Return the greatest speed, acceleration and jerk of the spline of a motion, each (joints,).

    They are exact, not sampled: sampling the spline more finely finds nothing greater.
    """
    speed, acceleration, jerk = np.zeros((3, values.shape[1]))
    for _, (speeds, accelerations, jerks) in iterate_peak_rates(step_s, values):
        speed = np.maximum(speed, speeds.max(axis=0))
        acceleration = np.maximum(acceleration, accelerations.max(axis=0))
        jerk = np.maximum(jerk, jerks.max(axis=0))
    return speed, acceleration, jerk


def iterate_peak_rates(
    step_s: float, values: Array
) -> Iterator[tuple[NDArray[np.intp], tuple[Array, Array, Array]]]:
    """Yield the greatest speed, acceleration and jerk of the spline between neighbouring samples.

    They come in blocks: the indices of the samples before each step, (k,), then three arrays,
    (k, joints). Indices below 0 and beyond the last sample are those of held samples, where the
    spline settles.
    """
    for begin in range(-_PADDING, len(values) + _PADDING, _BLOCK):
        end = min(begin + _BLOCK, len(values) + _PADDING)
        padded = values[
            np.clip(np.arange(begin - _PADDING, end + _PADDING + 1), 0, len(values) - 1)
        ]
        curvatures = _compute_curvatures(padded)[_PADDING:-_PADDING]
        rises = np.diff(padded[_PADDING:-_PADDING], axis=0)
        first, second = curvatures[:-1], curvatures[1:]  # at the beginning and end of each step
        # The speed has its extreme where the curvature passes through 0 between two samples.
        crosses_zero = first * second < 0
        u = np.where(crosses_zero, first / np.where(crosses_zero, first - second, 1.0), 0.0)
        inner_speeds = rises - (3.0 * (1.0 - u) ** 2 - 1.0) * first + (3.0 * u * u - 1.0) * second
        end_speeds = rises + first + 2.0 * second
        speeds = np.maximum(np.abs(inner_speeds), np.abs(end_speeds)) / step_s
        accelerations = 6.0 * np.maximum(np.abs(first), np.abs(second)) / step_s**2
        jerks = 6.0 * np.abs(second - first) / step_s**3  # the jerk is constant between samples
        yield np.arange(begin, end), (speeds, accelerations, jerks)


def _compute_curvatures(samples: Array) -> Array:
    """Return a sixth of the second derivative per step squared at each sample, (n, joints).

    The curvatures m solve m[i-1] + 4 m[i] + m[i+1] = d[i], with d the second differences of the
    samples. For endless samples the solution is the sum of d weighted by powers of `_ROOT`. The
    first and last sample are held, so d is 0 beyond them and the sum is finite.
    """
    count = len(samples)
    differences = np.zeros((count + 2 * _PADDING, samples.shape[1]))
    differences[_PADDING + 1 : _PADDING + count - 1] = np.diff(samples, 2, axis=0)
    curvatures = _WEIGHTS[0] * differences[_PADDING : _PADDING + count]
    # One array is used for all terms: allocating takes longer than adding.
    neighbours = np.empty_like(curvatures)
    for distance in range(1, _PADDING + 1):
        left, right = _PADDING - distance, _PADDING + distance
        np.add(differences[left : left + count], differences[right : right + count], out=neighbours)
        neighbours *= _WEIGHTS[distance]
        curvatures += neighbours
    return np.asarray(curvatures)


def clamped_spline(knots_s: Array, values: Array, at_s: Array) -> Array:
    """Return the spline through `values`, (k, columns), at `knots_s`; its speed is 0 at both ends.

    Of all such curves it has the least integral of the squared acceleration. The result is (n,
    columns); before the first knot and after the last it holds.
    """
    steps_s = np.diff(knots_s)[:, None]
    secants = np.diff(values, axis=0) / steps_s
    # The speeds at the inner knots make the accelerations of neighbouring pieces equal there.
    count = len(knots_s)
    matrix, right_side = np.eye(count), np.zeros_like(values)
    for row in range(1, count - 1):
        before_s, after_s = float(steps_s[row - 1, 0]), float(steps_s[row, 0])
        matrix[row, row - 1 : row + 2] = after_s, 2.0 * (before_s + after_s), before_s
        right_side[row] = 3.0 * (after_s * secants[row - 1] + before_s * secants[row])
    speeds = np.linalg.solve(matrix, right_side)
    at_s = np.clip(at_s, knots_s[0], knots_s[-1])
    left = np.clip(np.searchsorted(knots_s, at_s, side="right") - 1, 0, count - 2)
    step_s = steps_s[left]
    u = (at_s - knots_s[left])[:, None] / step_s  # the fraction of the step since the knot
    start, end = values[left], values[left + 1]
    speed_term = (1.0 - u) * speeds[left] - u * speeds[left + 1]
    return np.asarray(
        start + (end - start) * u * u * (3.0 - 2.0 * u) + step_s * u * (1.0 - u) * speed_term
    )
