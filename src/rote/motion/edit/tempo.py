"""Brings a motion within its joints' limits of speed without changing its length, as for music.

Time is distributed first: around a moment that is too fast the motion gets slower, and faster just
before and after it. Marks keep their times and poses. Joints that are still too fast are smoothed
around that moment only, which removes spikes and lowers the amplitude of quick swings. The
smoothing is bounded, so that slow swings are not lost; any remaining excess is reported.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rote.findings import FindingKind, Severity
from rote.messages import Interpolation
from rote.motion.check.limits import MAX_PLAYED_RAD_S2, playback_limits_rad_s
from rote.motion.check.rules import check_joints
from rote.motion.edit.operations import resample
from rote.motion.interpolate import average_gaussian, convolve_held, sample, sliding_max
from rote.motion.track import Array, Track
from rote.motion.track_build import joints_of

DENSE_HZ = 200.0
"""Fewer samples than this are resampled: between samples far apart a curve overshoots."""
MAX_SHIFT_S = 0.1
"""The maximum time by which a moment is moved: a larger shift is noticed beside music."""

_RATE_FINDINGS = frozenset({FindingKind.VELOCITY, FindingKind.ACCELERATION})
_TARGET_SHARE = 0.99  # of a limit is used
_WINDOW_S = 0.05  # over which the check measures the acceleration
_WINDOW_REACH_S = 0.4  # how far around a moment that is too fast the pace changes
_RAMP_S = 0.1  # how long the pace takes to change
_PACE_SHARES = (0.25, 0.5, 0.75, 1.0)  # of the largest change of the pace; the best is used
_MIN_PACE_S = 0.6  # the least time in which a second of the recording is played
_MAX_DEMAND = 3.0  # a higher demand does not change the pace further
_WIDTHS_S = (0.0, *np.geomspace(0.008, 0.2, 10).tolist())
"""Standard deviations of the smoothing; the widest leaves 45 % of a swing of 1 Hz."""
_WIDTH_STEP, _MAX_ROUNDS = 0.5, 100  # the smoothing grows by half a width in each round
_FADE_S = 0.15  # over which the smoothing fades out around a moment that is too fast


class _Grid(NamedTuple):
    """Evenly spaced samples, and the limits of their joints."""

    step_s: float
    rad_s: Array
    """The highest speed of each joint, (joints,)."""
    rad_s2: float
    """The highest acceleration of all joints."""

    def count_samples(self, duration_s: float) -> int:
        return max(round(duration_s / self.step_s), 1)

    def measure_demand(self, values: Array) -> Array:
        """Return the demand on each joint at each sample, (n, joints).

        That is the factor by which the joint must be slowed down to just meet its limits. Up to 1
        it meets them already.
        """
        speeds = np.abs(np.diff(values, axis=0)) / (self.step_s * _TARGET_SHARE * self.rad_s)
        # The second difference over a window: noise would dominate that between three samples.
        reach = self.count_samples(_WINDOW_S)
        padded = np.pad(values, ((reach, reach), (0, 0)), mode="edge")
        differences = np.abs(padded[2 * reach :] - 2 * values + padded[: -2 * reach])
        accelerations = differences / ((reach * self.step_s) ** 2 * _TARGET_SHARE * self.rad_s2)
        # Slowing down by a factor lowers accelerations by its square.
        factors = np.sqrt(accelerations)
        # The speed between two samples counts for both.
        np.maximum(factors[1:], speeds, out=factors[1:])
        np.maximum(factors[:-1], speeds, out=factors[:-1])
        return np.asarray(factors)


def is_too_fast(track: Track) -> bool:
    """Return whether a check would warn of the speed or acceleration of a joint."""
    return bool(describe_excess(track))


def describe_excess(track: Track) -> list[str]:
    """Return a text for each joint beyond its speed or acceleration limit: by how much and when."""
    first_s = float(track.times_s[0])
    return [
        f"{finding.joint} {finding.value:.1f} of {finding.limit:.1f} {finding.unit} "
        f"at {(finding.time_s or first_s) - first_s:.2f} s"
        for finding in check_joints(track).findings
        if finding.kind in _RATE_FINDINGS and finding.severity is not Severity.NOTE
    ]


def keep_tempo_within_limits(track: Track) -> tuple[Track, list[str]]:
    """Return the motion within the limits of speed and acceleration, and notes of what was changed.

    The length and the times of the marks stay. All joints of the track must be known. If limits
    cannot be met in that tempo, the last note states which, by how much and when.
    """
    track = resample(track, max(track.rate_hz, DENSE_HZ))
    known = joints_of(track)
    grid = _Grid(
        track.duration_s / (len(track) - 1),
        playback_limits_rad_s([known[name] for name in track.names]),
        MAX_PLAYED_RAD_S2,
    )
    changes = [f"{track.duration_s:.2f} s and {len(track.marks)} marks kept"]
    track, notes = _distribute_time(track, grid)
    changes += notes
    track, notes = _smooth_excess(track, grid)
    changes += notes
    if excess := describe_excess(track):
        changes.append(f"beyond the limits in this tempo: {', '.join(excess)}")
    return track, changes


# ---- time ---------------------------------------------------------------------------------------


def _distribute_time(track: Track, grid: _Grid) -> tuple[Track, list[str]]:
    """Return the track slower where it is too fast and faster around there, and a note of that."""
    demand = grid.measure_demand(track.joints_rad).max(axis=1)
    windows = list(_find_windows(track, demand, grid))
    if not windows:
        return track, []
    # The pace changes gradually, from a little before a peak of the demand to a little after it.
    wide_demand = sliding_max(demand, grid.count_samples(_RAMP_S / 2))
    smooth_demand = _average_around(wide_demand, grid.count_samples(_RAMP_S))
    changes = [
        _compute_pace_change(np.minimum(smooth_demand[window], _MAX_DEMAND), grid)
        for window in windows
    ]
    shares = _choose_shares(track, windows, changes, demand, grid)
    shifts_s = _compute_shifts_s(windows, changes, shares, demand.size, grid)
    worst_s = float(np.abs(shifts_s).max())
    if not worst_s:
        return track, []
    moments_s, joints_rad = _sample_shifted(track, shifts_s)
    root = None if track.root is None else track.root.at(track.times_s, moments_s)
    at_s = float(track.times_s[int(np.abs(shifts_s).argmax())] - track.times_s[0])
    note = f"time moved by up to {worst_s:.3f} s at {at_s:.2f} s, between the marks"
    return track.edited("time", joints_rad=joints_rad, root=root), [note]


def _find_windows(track: Track, demand: Array, grid: _Grid) -> Iterator[slice]:
    """Yield the windows of samples around moments that are too fast; marks divide them."""
    is_near = (
        sliding_max((demand > 1.0).astype(np.float64), grid.count_samples(_WINDOW_REACH_S)) > 0
    )
    # Runs of samples near such a moment: their first samples, alternating with those after them.
    edges = np.flatnonzero(np.diff(is_near, prepend=False, append=False)).tolist()
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        marks_s = [
            mark.time_s
            for mark in track.marks
            if track.times_s[begin] < mark.time_s < track.times_s[end - 1]
        ]
        starts = [begin, *np.searchsorted(track.times_s, marks_s, side="left").tolist()]
        stops = [*np.searchsorted(track.times_s, marks_s, side="right").tolist(), end]
        for start, stop in zip(starts, stops, strict=True):
            if stop - start > 2 * grid.count_samples(_RAMP_S / 2):
                yield slice(start, stop)


def _compute_pace_change(demand: Array, grid: _Grid) -> Array:
    """Return the largest change of the pace in a window: seconds more per second, (samples,).

    It is positive where the demand is above the window's average, and 0 at both ends. Its sum is 0,
    so that the window keeps its length.
    """
    ramp = min(grid.count_samples(_RAMP_S), (demand.size - 1) // 2)
    index = np.arange(demand.size)
    fraction = np.clip(np.minimum(index, index[::-1]) / ramp, 0.0, 1.0)
    taper = fraction * fraction * (3.0 - 2.0 * fraction)  # rises and falls in smooth steps
    change = taper * (demand - (taper * demand).sum() / taper.sum())
    # Neither the greatest gain of time nor the greatest shift may exceed its limit.
    max_gain = max(float(-change.min()), 1e-9)
    max_shift_s = max(float(np.abs(np.cumsum(change)).max()) * grid.step_s, 1e-9)
    return np.asarray(change * min(1.0, (1.0 - _MIN_PACE_S) / max_gain, MAX_SHIFT_S / max_shift_s))


def _choose_shares(
    track: Track, windows: list[slice], changes: list[Array], demand: Array, grid: _Grid
) -> Array:
    """Return for each window the share of its change of the pace with the lowest peak demand.

    It is 0 if no share is clearly better than no change.
    """
    lowest_peaks = [float(demand[window].max()) for window in windows]
    best_shares = np.zeros(len(windows))
    for share in _PACE_SHARES:
        same_shares = np.full(len(windows), share)
        shifts_s = _compute_shifts_s(windows, changes, same_shares, demand.size, grid)
        _, poses = _sample_shifted(track, shifts_s)
        new_demand = grid.measure_demand(poses).max(axis=1)
        for index, window in enumerate(windows):
            peak = float(new_demand[window].max())
            if peak < lowest_peaks[index] - 1e-3:
                lowest_peaks[index], best_shares[index] = peak, share
    return best_shares


def _compute_shifts_s(
    windows: list[slice], changes: list[Array], shares: Array, size: int, grid: _Grid
) -> Array:
    """Return how much later each of `size` samples is played, in s.

    Each window has a change of the pace, of which a share is used.
    """
    shifts_s = np.zeros(size)
    for window, change, share in zip(windows, changes, shares.tolist(), strict=True):
        shifts_s[window] = share * np.cumsum(change) * grid.step_s
    return shifts_s


def _sample_shifted(track: Track, shifts_s: Array) -> tuple[Array, Array]:
    """Return the moment of the recording that is played at each sample, and the pose there."""
    moments_s = np.interp(track.times_s, track.times_s + shifts_s, track.times_s)
    return moments_s, sample(track.times_s, track.joints_rad, moments_s, Interpolation.CUBIC)


# ---- amplitude ----------------------------------------------------------------------------------


def _smooth_excess(track: Track, grid: _Grid) -> tuple[Track, list[str]]:
    """Return the track with joints smoothed where they are too fast, and a note for each."""
    too_fast = (grid.measure_demand(track.joints_rad) > 1.0).any(axis=0)
    joints_rad, notes = track.joints_rad.copy(), []
    for column in np.flatnonzero(too_fast).tolist():
        joint_grid = grid._replace(rad_s=grid.rad_s[column : column + 1])
        joints_rad[:, column] = _smooth_joint(track.joints_rad[:, column], joint_grid)
        changed = np.abs(joints_rad[:, column] - track.joints_rad[:, column])
        at_s = float(track.times_s[int(changed.argmax())] - track.times_s[0])
        notes.append(
            f"{track.names[column]} smoothed, by up to {changed.max():.3f} rad at {at_s:.2f} s"
        )
    return (track.edited("smooth", joints_rad=joints_rad) if notes else track), notes


def _smooth_joint(values: Array, grid: _Grid) -> Array:
    """Return the samples of one joint, (n,), smoothed just enough, and only where it is too fast.

    Each sample has its own width, given as a fractional index into `_WIDTHS_S`. The width grows
    where the joint is still too fast, and fades out to both sides.
    """
    smoothed = np.stack([average_gaussian(values, width_s / grid.step_s) for width_s in _WIDTHS_S])
    last_index = len(_WIDTHS_S) - 1
    width_indices = np.zeros(values.size)
    fade = grid.count_samples(_FADE_S)
    for _ in range(_MAX_ROUNDS):
        smooth_indices = _average_around(sliding_max(width_indices, fade), fade)
        result = _interpolate_widths(smoothed, smooth_indices)
        demand = grid.measure_demand(result[:, None])[:, 0]
        too_fast = (demand > 1.0) & (width_indices < last_index)
        if not too_fast.any():
            break
        # Start from the width that was used there: a neighbour may have needed a wider one.
        width_indices[too_fast] = np.minimum(
            np.maximum(width_indices, smooth_indices)[too_fast] + _WIDTH_STEP, last_index
        )
    return result


def _interpolate_widths(smoothed: Array, indices: Array) -> Array:
    """Return (n,) samples of `smoothed`, (widths, n), each at a fractional row index of its own."""
    lower = np.minimum(indices.astype(np.intp), len(smoothed) - 2)
    samples = np.arange(indices.size)
    share = indices - lower
    return np.asarray(
        (1.0 - share) * smoothed[lower, samples] + share * smoothed[lower + 1, samples]
    )


def _average_around(values: Array, reach: int) -> Array:
    """Return the average over `reach` samples on both sides of each, with weights that fade out."""
    return convolve_held(values, np.hanning(2 * reach + 3)[1:-1])
