"""How far one track is from another."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.motion.interpolate import sample
from rote.motion.track import Array, Track

_MOST_LAG_S = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """The distance between two tracks over the joints compared."""

    rms_rad: float
    max_rad: float
    joint: str
    """Where the largest deviation is..."""
    time_s: float
    """...and when."""
    lag_s: float
    """How much later the second track is; taken out before comparing."""


def deviation(reference: Track, other: Track, joints: Sequence[str]) -> Deviation:
    """Compare two tracks joint by joint, after shifting the second one to fit best in time."""
    if len(reference) < 2 or len(other) < 2:
        raise BadRequestError("a comparison needs two samples of each track")
    unknown = [name for name in joints if name not in reference.names or name not in other.names]
    if unknown or not joints:
        raise BadRequestError(f"these joints cannot be compared: {unknown or 'none were named'}")
    columns = [reference.names.index(name) for name in joints]
    others = [other.names.index(name) for name in joints]
    times_s = other.times_s - other.times_s[0]
    lags_s = np.arange(-_MOST_LAG_S, _MOST_LAG_S, 0.002)
    errors = [
        _differences(reference, columns, times_s - lag_s, other.joints_rad[:, others])
        for lag_s in lags_s
    ]
    best = int(np.argmin([np.square(error).mean() for error in errors]))
    error = np.abs(errors[best])
    row, column = divmod(int(error.argmax()), error.shape[1])
    return Deviation(
        rms_rad=float(np.sqrt(np.square(error).mean())),
        max_rad=float(error.max()),
        joint=joints[column],
        time_s=float(times_s[row]),
        lag_s=float(lags_s[best]),
    )


def _differences(reference: Track, columns: list[int], at_s: Array, joints: Array) -> Array:
    origin_s = reference.times_s - reference.times_s[0]
    wanted = sample(origin_s, reference.joints_rad[:, columns], at_s, Interpolation.LINEAR)
    return joints - wanted
