"""The smooth curve through even samples: a cubic spline that holds before and after them.

Unlike what players interpolate, its acceleration has no steps; it may overshoot a little.
"""

import numpy as np

from rote.motion.track import Array

_HELD = 24  # the effect of a sample on the curvature at another falls by 0.27 per step: 1e-14 at 24
_ROOT = np.sqrt(3.0) - 2.0
_WEIGHTS = _ROOT ** np.arange(_HELD + 1) / (2.0 * np.sqrt(3.0))


def curve(step_s: float, values: Array, at_s: Array) -> Array:
    """Return the curve at the times `at_s`, (k, joints).

    `values` is (n, joints), the first at 0, then every `step_s`.
    """
    held = np.concatenate(
        [np.repeat(values[:1], _HELD, axis=0), values, np.repeat(values[-1:], _HELD, axis=0)]
    )
    bends = _bends(held)
    place = np.clip(at_s / step_s + _HELD, 1.0, len(held) - 2.0)
    left = np.minimum(place.astype(np.intp), len(held) - 3)
    u = (place - left)[:, None]
    v = 1.0 - u
    start, end = held[left], held[left + 1]
    first, second = bends[left], bends[left + 1]
    return np.asarray(
        v * start + u * end + (v * (v * v - 1.0) * first + u * (u * u - 1.0) * second)
    )


def _bends(held: Array) -> Array:
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
