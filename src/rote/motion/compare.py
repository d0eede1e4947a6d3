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
    angles_of,
    choose_search_step,
    shared_joints,
    warping_path,
)
from rote.motion.interpolate import minimum_jerk, sample
from rote.motion.track import Array, Mark, Origin, Track

__all__ = [
    "compare", "Comparison", "JointComparison", "deviation", "Deviation", "best_of", "average",
    "merge",
]  # fmt: skip

_MAX_LAG_S, _LAG_STEP_S = 0.15, 0.002  # lags up to the first, in both directions, are searched
_AVERAGING_ROUNDS = 3
_LAG_WINDOW_S = 0.2  # lags are averaged over this time


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
    """Compare two tracks joint by joint, after shifting the second one in time to fit best.

    Shifts of up to 0.15 s are tried. Raises `BadRequestError` if a track has fewer than two samples
    or lacks one of the joints.
    """
    if len(reference) < 2 or len(other) < 2:
        raise BadRequestError("a comparison needs two samples of each track")
    unknown = [name for name in joints if name not in reference.names or name not in other.names]
    if unknown or not joints:
        reason = f"not both tracks have {', '.join(unknown)}" if unknown else "no joint was named"
        raise BadRequestError(f"the tracks cannot be compared: {reason}")
    columns = [reference.names.index(name) for name in joints]
    other_columns = [other.names.index(name) for name in joints]
    times_s = other.times_s - other.times_s[0]
    lags_s = np.arange(-_MAX_LAG_S, _MAX_LAG_S, _LAG_STEP_S)
    errors_by_lag = [
        _compute_pose_differences(
            reference, columns, times_s - lag_s, other.joints_rad[:, other_columns]
        )
        for lag_s in lags_s
    ]
    best_lag = int(np.argmin([np.square(error).mean() for error in errors_by_lag]))
    error = np.abs(errors_by_lag[best_lag])
    row, column = divmod(int(error.argmax()), error.shape[1])
    return Deviation(
        rms_rad=float(np.sqrt(np.square(error).mean())),
        max_rad=float(error.max()),
        joint=joints[column],
        time_s=float(times_s[row]),
        lag_s=float(lags_s[best_lag]),
    )


def _compute_pose_differences(
    reference: Track, columns: list[int], at_s: Array, joints_rad: Array
) -> Array:
    """Return `joints_rad` less the reference's angles at the times `at_s`, both (n, joints)."""
    reference_s = reference.times_s - reference.times_s[0]
    expected = sample(reference_s, reference.joints_rad[:, columns], at_s, Interpolation.LINEAR)
    return joints_rad - expected


@dataclass(frozen=True, slots=True, kw_only=True)
class JointComparison:
    """One joint of two takes, after aligning them in time."""

    joint: str
    rms_rad: float
    max_rad: float
    time_s: float
    """The time of the largest deviation, on the first take's clock."""
    jerk_rad_s3: float
    """The root mean square of the first take's third derivative."""
    other_jerk_rad_s3: float
    """The same of the second take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two takes, aligned in time."""

    joints: tuple[JointComparison, ...]
    rms_rad: float
    max_rad: float
    duration_s: float
    other_duration_s: float
    lag_s: float
    """How much later the second take is, as the median over its samples."""
    warp_s: float
    """The largest difference in timing that remains after removing the lag."""

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
    errors -= angles_of(track, names)
    np.abs(errors, out=errors)
    jerks, other_jerks = _compute_rms_jerks(track, names), _compute_rms_jerks(other, names)
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
    """Return the index of the take with the least distance to all others, aligned in time.

    The distance of two takes is the root mean square of their differences in rad.
    """
    if not takes:
        raise BadRequestError("there are no takes to choose from", "Give at least one.")
    names = shared_joints(takes)
    step = choose_search_step(*map(len, takes))
    poses = [angles_of(take, names)[::step] for take in takes]
    distances_rad = np.zeros((len(takes), len(takes)))
    for one, two in combinations(range(len(takes)), 2):
        rows, other_rows = warping_path(poses[one], poses[two])
        errors = poses[one][rows] - poses[two][other_rows]
        distances_rad[one, two] = distances_rad[two, one] = np.sqrt(np.square(errors).mean())
    return int(distances_rad.sum(axis=1).argmin())


def average(takes: Sequence[Track]) -> Track:
    """Return the mean of several takes: of their poses, and of the times at which they reach them.

    The search starts from the take nearest to all others and repeats aligning and averaging.
    Raises `BadRequestError` if the takes have different joints.
    """
    best = best_of(takes)
    if any(set(take.names) != set(takes[best].names) for take in takes):
        raise BadRequestError(
            "takes of different joints cannot be averaged", "Keep the joints they share."
        )
    mean = takes[best]
    for _ in range(_AVERAGING_ROUNDS):
        alignments = [align(mean, take) for take in takes]
        poses = np.zeros(mean.joints_rad.shape)
        for take, alignment in zip(takes, alignments, strict=True):
            poses += sample_aligned(take, alignment, mean.names)
        poses /= len(takes)
        late_s = np.mean([_smooth_lag(a.late_s, mean.rate_hz) for a in alignments], axis=0)
        times_s = _make_increasing(mean.times_s, mean.times_s + late_s)
        mean = replace(mean, times_s=times_s, joints_rad=poses)
    # `mean` has a sample for each sample of the take that it started from, at another time.
    start = takes[best]
    marks_s = np.interp([mark.time_s for mark in start.marks], start.times_s, mean.times_s)
    return start.edited(
        f"average of {len(takes)} takes, starting from take {best + 1}",
        times_s=mean.times_s,
        joints_rad=mean.joints_rad,
        marks=tuple(
            Mark(time_s, mark.label)
            for time_s, mark in zip(marks_s.tolist(), start.marks, strict=True)
        ),
        origin=Origin.of(*takes),
    )


def merge(takes: Sequence[Track], parts: Sequence[Sequence[float]], blend_s: float = 0.5) -> Track:
    """Return one motion made of parts of several takes of it, on the clock of the first.

    `parts` are (time in s, number of the take, counted from 1): from that time on this take is
    used. Take 1 is used until the first part begins. Each change is a blend of `blend_s` around
    that time. Raises `BadRequestError` for a take number that does not exist.
    """
    if not takes:
        raise BadRequestError("there are no takes to merge", "Give at least one.")
    first = takes[0]
    names = shared_joints(takes, first.names)
    times_s = first.times_s - first.times_s[0]
    poses = [first.joints_rad.copy()]
    poses += [sample_aligned(take, align(first, take, names), names) for take in takes[1:]]
    merged = poses[0]
    for begin_s, number in sorted((float(begin_s), float(number)) for begin_s, number in parts):
        if number != round(number) or not 1 <= number <= len(takes):
            raise BadRequestError(
                f"there is no take {number:g}", f"They are numbered from 1 to {len(takes)}."
            )
        # A part that begins at 0 s is not blended: it has its full weight from the first sample.
        progress = (times_s - begin_s) / blend_s + (0.5 if begin_s > 0.0 else 1.0)
        weight = minimum_jerk(np.zeros(1), np.ones(1), progress)
        merged = merged + weight * (poses[int(number) - 1] - merged)
    used = ", ".join(f"take {int(number)} from {begin_s:.2f} s" for begin_s, number in parts)
    return first.edited(f"merge: {used}", joints_rad=merged, origin=Origin.of(*takes))


def sample_aligned(track: Track, alignment: Alignment, names: Sequence[str]) -> Array:
    """Return the track's poses at the times aligned to another track, (n, joints)."""
    values = angles_of(track, names)
    return sample(track.times_s, values, alignment.other_s, Interpolation.LINEAR)


def _compute_rms_jerks(track: Track, names: Sequence[str]) -> Array:
    """Return the root mean square of each joint's third derivative, (joints,)."""
    return np.array(
        [_compute_rms_jerk(track.times_s, column) for column in angles_of(track, names).T]
    )


def _compute_rms_jerk(times_s: Array, values: Array) -> float:
    """Return the root mean square of the third derivative of one joint, (n,)."""
    for _ in range(3):
        values = np.diff(values) / np.diff(times_s)
        times_s = (times_s[1:] + times_s[:-1]) / 2
    return float(np.sqrt(np.square(values).mean()))


def _smooth_lag(lags_s: Array, rate_hz: float) -> Array:
    """Return a moving average of the lags, because an alignment advances in whole samples."""
    # The window is no longer than the take.
    half = int(min(_LAG_WINDOW_S / 2 * rate_hz, len(lags_s)))
    size = 2 * half + 1
    # The sum over a window is the difference of two running sums.
    sums = np.cumsum(np.concatenate([[0.0], np.pad(lags_s, half, mode="edge")]))
    return np.asarray((sums[size:] - sums[:-size]) / size)


def _make_increasing(original_s: Array, times_s: Array) -> Array:
    """Return `times_s` with each step at least about a tenth of that in `original_s`.

    So the times strictly increase; the first and last time stay.
    """
    steps = np.maximum(np.diff(times_s), np.diff(original_s) / 10)
    steps *= (times_s[-1] - times_s[0]) / steps.sum()
    return np.concatenate([times_s[:1], times_s[0] + np.cumsum(steps)])
