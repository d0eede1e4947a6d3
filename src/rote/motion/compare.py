"""The distance between two tracks, the best of several takes, and their average."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.motion.edit.align import (
    Alignment,
    align,
    columns_of,
    every_nth,
    shared_joints,
    warping_path,
)
from rote.motion.interpolate import sample
from rote.motion.track import Array, Mark, Origin, Track

__all__ = [
    "compare", "Comparison", "JointComparison", "deviation", "Deviation", "best_of", "average",
]  # fmt: skip

_MAX_LAG_S = 0.15
_AVERAGINGS = 3
_CALM_TIME_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """The distance between two tracks over the compared joints."""

    rms_rad: float
    max_rad: float
    joint: str
    """The joint with the largest deviation."""
    time_s: float
    """The time of the largest deviation."""
    lag_s: float
    """How much later the second track is; removed before comparing."""


def deviation(reference: Track, other: Track, joints: Sequence[str]) -> Deviation:
    """Compare two tracks joint by joint, after shifting the second one in time to fit best."""
    if len(reference) < 2 or len(other) < 2:
        raise BadRequestError("a comparison needs two samples of each track")
    unknown = [name for name in joints if name not in reference.names or name not in other.names]
    if unknown or not joints:
        raise BadRequestError(f"these joints cannot be compared: {unknown or 'none were named'}")
    columns = [reference.names.index(name) for name in joints]
    others = [other.names.index(name) for name in joints]
    times_s = other.times_s - other.times_s[0]
    lags_s = np.arange(-_MAX_LAG_S, _MAX_LAG_S, 0.002)
    errors = [
        _pose_differences(reference, columns, times_s - lag_s, other.joints_rad[:, others])
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


def _pose_differences(reference: Track, columns: list[int], at_s: Array, joints: Array) -> Array:
    origin_s = reference.times_s - reference.times_s[0]
    expected = sample(origin_s, reference.joints_rad[:, columns], at_s, Interpolation.LINEAR)
    return joints - expected


@dataclass(frozen=True, slots=True, kw_only=True)
class JointComparison:
    """One joint of two takes, after aligning them in time."""

    joint: str
    rms_rad: float
    max_rad: float
    time_s: float
    """When it deviates most, on the first take's clock."""
    jerk_rad_s3: float
    other_jerk_rad_s3: float
    """Root mean square of the third derivative, of each take itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two takes, aligned in time."""

    joints: tuple[JointComparison, ...]
    rms_rad: float
    max_rad: float
    duration_s: float
    other_duration_s: float
    lag_s: float
    """How much later the second take is; the median."""
    warp_s: float
    """The largest remaining difference in timing."""

    @property
    def worst(self) -> JointComparison:
        """The joint that deviates most."""
        return max(self.joints, key=lambda joint: joint.max_rad)


def compare(track: Track, other: Track, joints: Sequence[str] | None = None) -> Comparison:
    """Compare two takes joint by joint, after aligning them in time.

    Without `joints`, all joints that both takes have are compared.
    """
    track.require_samples(4)
    other.require_samples(4)
    names = shared_joints((track, other), joints)
    alignment = align(track, other, names)
    errors = sample_aligned(other, alignment, names)
    errors -= columns_of(track, names)
    np.abs(errors, out=errors)
    jerks, other_jerks = _rms_jerks(track, names), _rms_jerks(other, names)
    return Comparison(
        joints=tuple(
            JointComparison(
                joint=name,
                rms_rad=float(np.sqrt(np.square(errors[:, column]).mean())),
                max_rad=float(errors[:, column].max()),
                time_s=float(track.times_s[errors[:, column].argmax()]),
                jerk_rad_s3=float(jerks[column]),
                other_jerk_rad_s3=float(other_jerks[column]),
            )
            for column, name in enumerate(names)
        ),
        rms_rad=float(np.sqrt(np.square(errors).mean())),
        max_rad=float(errors.max()),
        duration_s=track.duration_s,
        other_duration_s=other.duration_s,
        lag_s=alignment.lag_s,
        warp_s=alignment.warp_s,
    )


def best_of(takes: Sequence[Track]) -> int:
    """Return the index of the take that is nearest to all others, after aligning them in time."""
    if not takes:
        raise BadRequestError("there are no takes to choose from", "Give at least one.")
    names = shared_joints(takes)
    every = every_nth(*map(len, takes))
    values = [columns_of(take, names)[::every] for take in takes]
    far = np.zeros((len(takes), len(takes)))
    for i, k in combinations(range(len(takes)), 2):
        rows, others = warping_path(values[i], values[k])
        errors = values[i][rows] - values[k][others]
        far[i, k] = far[k, i] = np.sqrt(np.square(errors).mean())
    return int(far.sum(axis=1).argmin())


def average(takes: Sequence[Track]) -> Track:
    """Return the mean of several takes: of their poses, and of the times at which they reach them.

    It starts from the take that is nearest to all others, and moves towards the mean a few times.
    """
    best = best_of(takes)
    if any(set(take.names) != set(takes[best].names) for take in takes):
        raise BadRequestError(
            "takes of different joints have no average", "Keep the joints they share."
        )
    first = mean = takes[best]
    for _ in range(_AVERAGINGS):
        found = [align(mean, take) for take in takes]
        poses = np.zeros(mean.joints_rad.shape)
        for take, alignment in zip(takes, found, strict=True):
            poses += sample_aligned(take, alignment, mean.names)
        poses /= len(takes)
        late_s = np.mean([_smooth_lag(a.late_s, mean.rate_hz) for a in found], axis=0)
        times_s = _make_increasing(mean.times_s, mean.times_s + late_s)
        mean = replace(mean, times_s=times_s, joints_rad=poses)
    marked_s = np.interp([mark.time_s for mark in first.marks], first.times_s, mean.times_s)
    marks = zip(marked_s.tolist(), first.marks, strict=True)
    return first.edited(
        f"average of {len(takes)} takes, beginning from the {best + 1}. of them",
        times_s=mean.times_s,
        joints_rad=mean.joints_rad,
        marks=tuple(Mark(time_s, mark.label) for time_s, mark in marks),
        origin=Origin.of(*takes),
    )


def sample_aligned(track: Track, alignment: Alignment, names: Sequence[str]) -> Array:
    """Return the track's poses at the times aligned to another track, (n, joints)."""
    values = columns_of(track, names)
    return sample(track.times_s, values, alignment.other_s, Interpolation.LINEAR)


def _rms_jerks(track: Track, names: Sequence[str]) -> Array:
    """Return the root mean square of each joint's third derivative, (joints,)."""
    return np.array([_rms_jerk(track.times_s, column) for column in columns_of(track, names).T])


def _rms_jerk(times_s: Array, values: Array) -> float:
    """Return the root mean square of the third derivative of one joint, (n,)."""
    for _ in range(3):
        values = np.diff(values) / np.diff(times_s)
        times_s = (times_s[1:] + times_s[:-1]) / 2
    return float(np.sqrt(np.square(values).mean()))


def _smooth_lag(values: Array, rate_hz: float) -> Array:
    """Average over a short window, because alignment advances in steps and time does not."""
    # Steps may be so small that a whole take is shorter than the window.
    half = int(min(_CALM_TIME_S / 2 * rate_hz, len(values)))
    size = 2 * half + 1
    sums = np.cumsum(np.concatenate([[0.0], np.pad(values, half, mode="edge")]))
    return np.asarray((sums[size:] - sums[:-size]) / size)


def _make_increasing(before_s: Array, times_s: Array) -> Array:
    """Return strictly increasing times: each step is at least about a tenth of what it was."""
    steps = np.maximum(np.diff(times_s), np.diff(before_s) / 10)
    steps *= (times_s[-1] - times_s[0]) / steps.sum()
    return np.concatenate([times_s[:1], times_s[0] + np.cumsum(steps)])
