"""A cubic spline through evenly spaced samples; before and after them it holds.

Unlike the interpolation of players, its acceleration has no steps; it may overshoot slightly.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rote.motion.track import Array

_HELD = 24  # the effect of a sample on the curvature at another falls by 0.27 per step: 1e-14 at 24
_ROOT = np.sqrt(3.0) - 2.0
_WEIGHTS = _ROOT ** np.arange(_HELD + 1) / (2.0 * np.sqrt(3.0))
_BLOCK = 1 << 13  # times that are processed together


def curve(step_s: float, values: Array, at_s: Array) -> Array:
    """Return the curve at the times `at_s`, (k, joints).

    `values` is (n, joints), the first at 0, then every `step_s`.
    """
    found = np.empty((at_s.size, values.shape[1]))
    for begin in range(0, at_s.size, _BLOCK):
        part = np.clip(at_s[begin : begin + _BLOCK] / step_s, 1.0 - _HELD, len(values) + _HELD - 2)
        first = int(np.floor(part.min())) - _HELD - 1
        last = int(np.ceil(part.max())) + _HELD + 1
        near = values[np.clip(np.arange(first, last + 1), 0, len(values) - 1)]
        found[begin : begin + _BLOCK] = _evaluate_spline(near, part - first)
    return found


def _evaluate_spline(held: Array, positions: Array) -> Array:
    """Return the curve at positions between samples, in steps from the first of `held`."""
    bends = _curvatures(held)
    left = np.minimum(positions.astype(np.intp), len(held) - 2)
    u = (positions - left)[:, None]
    v = 1.0 - u
    start, end = held[left], held[left + 1]
    first, second = bends[left], bends[left + 1]
    return np.asarray(
        v * start + u * end + (v * (v * v - 1.0) * first + u * (u * u - 1.0) * second)
    )


def peaks(step_s: float, values: Array) -> tuple[Array, Array, Array]:
    """Return the greatest speed, acceleration and jerk of the curve, each (joints,).

    They are exact, not sampled: no differences of any finer samples are greater.
    """
    most = np.zeros((3, values.shape[1]))
    for _, found in slopes(step_s, values):
        for row, each in enumerate(found):
            np.maximum(most[row], each.max(axis=0), out=most[row])
    return most[0], most[1], most[2]


def slopes(
    step_s: float, values: Array
) -> Iterator[tuple[NDArray[np.intp], tuple[Array, Array, Array]]]:
    """Yield the greatest speed, acceleration and jerk from each sample to the next, (k, joints).

    They come in blocks, each with the indices of its samples. Some lie before the first sample and
    after the last, where the curve settles.
    """
    for begin in range(-_HELD, len(values) + _HELD, _BLOCK):
        end = min(begin + _BLOCK, len(values) + _HELD)
        held = values[np.clip(np.arange(begin - _HELD, end + _HELD + 1), 0, len(values) - 1)]
        bends = _curvatures(held)[_HELD:-_HELD]
        rises = np.diff(held[_HELD:-_HELD], axis=0)
        first, second = bends[:-1], bends[1:]
        # The speed has its extreme where the curvature passes through 0 between two samples.
        passes = first * second < 0
        u = np.where(passes, first / np.where(passes, first - second, 1.0), 0.0)
        inside = rises - (3.0 * (1.0 - u) ** 2 - 1.0) * first + (3.0 * u * u - 1.0) * second
        ends = rises + first + 2.0 * second
        speeds = np.maximum(np.abs(inside), np.abs(ends)) / step_s
        bent = 6.0 * np.maximum(np.abs(first), np.abs(second)) / step_s**2
        yield np.arange(begin, end), (speeds, bent, 6.0 * np.abs(second - first) / step_s**3)


def _curvatures(held: Array) -> Array:
    """Return a sixth of the second derivative per step squared at each sample, (n, joints).

    At even steps it solves m[i-1] + 4 m[i] + m[i+1] = d[i], with d the second differences. For
    samples without ends the solution is d weighted by powers of a root; holding the ends makes them
    so.
    """
    second = np.zeros((len(held) + 2 * _HELD, held.shape[1]))
    second[_HELD + 1 : _HELD + len(held) - 1] = np.diff(held, 2, axis=0)
    middle = slice(_HELD, _HELD + len(held))
    bends = _WEIGHTS[0] * second[middle]
    for far in range(1, _HELD + 1):
        both = second[_HELD - far : _HELD - far + len(held)]
        both = both + second[_HELD + far : _HELD + far + len(held)]
        bends += _WEIGHTS[far] * both
    return np.asarray(bends)
