"""Aligns two takes in time by dynamic time warping.

The path is found on coarse samples first, then several times on finer samples near that path.
Between samples it is refined to the time at which the other take is nearest. For a long take only
every n-th sample is searched, at most `SEARCHED_SAMPLES` of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.motion.interpolate import sample
from rote.motion.track import Array, Track

SEARCHED_SAMPLES = 16_000
"""The path is searched on all samples of tracks up to this long: over two minutes at 100 Hz."""

_COARSE_SAMPLES = 600
"""A path over all pairs of this many samples is searched without a band."""
_REFINEMENT = 4  # each further search uses this many times as many samples
_MAX_SAMPLES = 4_000_000
_MAX_S = 2 * 3600.0
_BAND_MARGIN = 4  # coarse samples on both sides of the coarse path
_BLOCK = 1 << 14  # samples that are refined together
_REFINE_ROUNDS = 3
_STILL_RAD_S = 0.01

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alignment:
    """For each sample of one track, the corresponding time of another."""

    times_s: Array
    """The first track's own times, (n,)."""
    other_s: Array
    """The corresponding times of the other track, (n,), never decreasing."""
    other_begin_s: float
    """When the other track begins."""

    @property
    def lag_s(self) -> float:
        """The median of `late_s`."""
        return float(np.median(self.late_s))

    @property
    def warp_s(self) -> float:
        """The largest difference in timing that remains after removing the lag."""
        return float(np.abs(self.late_s - self.lag_s).max())

    @property
    def late_s(self) -> Array:
        """How much later the other track is at each sample, counted from both beginnings; (n,)."""
        late_s: Array = (self.other_s - self.other_begin_s) - (self.times_s - self.times_s[0])
        return late_s


def shared_joints(tracks: Sequence[Track], joints: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the joints to compare: the requested ones, or those that all tracks have.

    Raises `BadRequestError` if a track lacks a requested joint, or all tracks share none.
    """
    for track in tracks:
        track.require_samples(2)
    names = tuple(tracks[0].names if joints is None else joints)
    common = tuple(name for name in names if all(name in track.names for track in tracks))
    if not common or (joints is not None and common != names):
        missing = sorted(set(names) - set(common))
        reason = f"not all tracks have {', '.join(missing)}" if missing else "no joint was named"
        raise BadRequestError(
            f"the tracks cannot be compared: {reason}", "Choose joints that all tracks have."
        )
    return common


def align(track: Track, other: Track, joints: Sequence[str] | None = None) -> Alignment:
    """Return, for each sample of `track`, the time of `other` that fits it best."""
    names = shared_joints((track, other), joints)
    for each in (track, other):
        if len(each) > _MAX_SAMPLES or each.duration_s > _MAX_S:
            raise BadRequestError(
                f"{len(each)} samples over {each.duration_s:.0f} s are too many to align; "
                f"at most {_MAX_SAMPLES} over {_MAX_S:.0f} s can be aligned",
                "Cut both into parts, or resample them at a lower rate first.",
            )
    values = angles_of(track, names)
    others = angles_of(other, names)
    step = choose_search_step(len(values), len(others))
    rows_used = _list_every_nth_and_last(len(values), step)
    other_rows_used = _list_every_nth_and_last(len(others), step)
    rows, columns = warping_path(values[rows_used], others[other_rows_used])
    # A sample that is paired with several samples of the other track gets their mean position.
    counts = np.bincount(rows, minlength=len(rows_used))
    positions = np.bincount(rows, weights=columns, minlength=len(rows_used)) / counts
    other_s = np.interp(positions, np.arange(len(other_rows_used)), other.times_s[other_rows_used])
    if step > 1:
        other_s = np.interp(np.arange(len(values)), rows_used, other_s)
    return Alignment(
        times_s=track.times_s,
        other_s=_refine_moments(values, other.times_s, others, other_s, step),
        other_begin_s=float(other.times_s[0]),
    )


def angles_of(track: Track, names: Sequence[str]) -> Array:
    """Return the angles of these joints, (n, joints); not a copy if they are all of the track's."""
    if tuple(names) == track.names:
        return track.joints_rad
    return track.joints_rad[:, track.columns_of(names)]


def choose_search_step(*lengths: int) -> int:
    """Return n for tracks of these numbers of samples: the path is searched on every n-th."""
    return -(-max(lengths) // SEARCHED_SAMPLES)  # rounded up


def _list_every_nth_and_last(length: int, step: int) -> Rows:
    """Return the rows 0, `step`, 2 * `step` and so on, and the last row."""
    rows = np.arange(0, length, step)
    return rows if rows[-1] == length - 1 else np.append(rows, length - 1)


def warping_path(a: Array, b: Array) -> tuple[Rows, Rows]:
    """Return the rows of `a` and `b`, (n, joints) and (m, joints), that belong together.

    The path goes from both first rows to both last, one row at a time in either or both. It has the
    least sum of squared distances (within a band, if there are more than a few hundred rows).
    """
    step = int(np.ceil(max(len(a), len(b)) / _COARSE_SAMPLES))
    if step == 1:
        return _find_best_path(a, b, _Band.all(len(a), len(b)))
    coarse_a, coarse_b = a[::step], b[::step]
    path = _find_best_path(coarse_a, coarse_b, _Band.all(len(coarse_a), len(coarse_b)))
    while step > 1:
        finer_step = -(-step // _REFINEMENT)  # rounded up
        finer_a, finer_b = a[::finer_step], b[::finer_step]
        band = _Band.around(path, step / finer_step, (len(finer_a), len(finer_b)))
        path = _find_best_path(finer_a, finer_b, band)
        step = finer_step
    return path


class _Band(NamedTuple):
    """Which columns are searched in each row: from `low` to before `high`."""

    low: Rows
    high: Rows

    @classmethod
    def all(cls, rows: int, columns: int) -> "_Band":
        return cls(np.zeros(rows, dtype=np.intp), np.full(rows, columns, dtype=np.intp))

    @classmethod
    def around(cls, path: tuple[Rows, Rows], step: float, shape: tuple[int, int]) -> "_Band":
        """Return the band around a path that was found on every `step`-th row and column.

        `shape` is the number of rows and columns of the finer search.
        """
        rows, columns = path
        # Where the path enters and leaves each coarse row, as positions in the path.
        first = np.searchsorted(rows, np.arange(rows[-1] + 1))
        last = np.append(first[1:], len(rows)) - 1
        # A row includes the columns of the rows before and after it, and a margin.
        low = columns[np.append(first[:1], first[:-1])] - _BAND_MARGIN
        high = columns[np.append(last[1:], last[-1:])] + _BAND_MARGIN + 1
        coarse_rows = np.minimum((np.arange(shape[0]) // step).astype(np.intp), len(low) - 1)
        band = cls(
            np.clip(np.floor(low[coarse_rows] * step).astype(np.intp), 0, shape[1] - 1),
            np.clip(np.ceil(high[coarse_rows] * step).astype(np.intp), 1, shape[1]),
        )
        band.high[-1] = shape[1]  # the path has to reach the last column
        return band


def _find_best_path(a: Array, b: Array, band: _Band) -> tuple[Rows, Rows]:
    """Return the cheapest path inside the band: sum costs row by row, then trace it back."""
    costs = np.full(len(b) + 1, np.inf)  # of the row before, shifted by one: column j is at j + 1
    costs[0] = 0.0
    row_before = slice(0, 1)
    from_left: list[NDArray[np.bool_]] = []
    from_above: list[NDArray[np.bool_]] = []
    for row in range(len(a)):
        low, high = int(band.low[row]), int(band.high[row])
        distances = np.square(b[low:high] - a[row]).sum(axis=1)
        cost_above, cost_diagonal = costs[low + 1 : high + 1], costs[low:high]
        entry_costs = np.minimum(cost_above, cost_diagonal)
        # A path enters the row at some column and moves right. Moving right costs the sum of the
        # distances passed, so the best column to enter at is a running minimum.
        row_sums = np.cumsum(distances)
        row_costs = row_sums + np.minimum.accumulate(entry_costs - (row_sums - distances))
        from_above.append(cost_above < cost_diagonal)
        # The tolerance keeps rounding errors from deciding between equal costs.
        from_left.append(np.append(False, row_costs[:-1] < entry_costs[1:] - 1e-12))
        costs[row_before] = np.inf
        row_before = slice(low + 1, high + 1)
        costs[row_before] = row_costs
    return _trace_back(band, from_left, from_above, len(b))


def _trace_back(
    band: _Band,
    from_left: list[NDArray[np.bool_]],
    from_above: list[NDArray[np.bool_]],
    columns: int,
) -> tuple[Rows, Rows]:
    """Return the path from the first to the last row and column, by the moves chosen at each cell.

    `from_left` and `from_above` have an array per row, whose first element is for the first column
    of the band. A cell that was reached by neither move was reached diagonally.
    """
    row, column = len(from_left) - 1, columns - 1
    path = [(row, column)]
    while row or column:
        index = column - int(band.low[row])
        if row == 0 or from_left[row][index]:
            column -= 1
        else:
            column -= 0 if from_above[row][index] else 1
            row -= 1
        path.append((row, column))
    rows, path_columns = np.array(path[::-1], dtype=np.intp).T
    return rows, path_columns


def _refine_moments(values: Array, times_s: Array, others: Array, at_s: Array, step: int) -> Array:
    """Return the aligned times `at_s`, each moved to where the other track is nearest to its pose.

    `times_s` and `others` are those of the other track. Each time moves by at most `step` samples,
    and their order is kept.
    """
    step_s = step * float(np.median(np.diff(times_s)))
    nearest = [
        find_nearest_moments(
            values[begin : begin + _BLOCK], times_s, others, at_s[begin : begin + _BLOCK], step_s
        )
        for begin in range(0, len(values), _BLOCK)
    ]
    return np.maximum.accumulate(np.concatenate(nearest))


def find_nearest_moments(
    values: Array, times_s: Array, others: Array, at_s: Array, step_s: float
) -> Array:
    """Return for each pose the time near `at_s` at which another motion is nearest to it.

    `values` is (k, joints); `others` is (n, joints), at the times `times_s`. No time moves by more
    than `step_s`.
    """
    begin_s, end_s = at_s - step_s, at_s + step_s
    for _ in range(_REFINE_ROUNDS):
        # A Gauss-Newton step, with the slope of the other motion measured over half of `step_s`.
        here = sample(times_s, others, at_s, Interpolation.LINEAR)
        ahead = sample(times_s, others, at_s + step_s / 4, Interpolation.LINEAR)
        behind = sample(times_s, others, at_s - step_s / 4, Interpolation.LINEAR)
        slopes = (ahead - behind) / (step_s / 2)
        squared_slopes = np.square(slopes).sum(axis=1)
        # Where the other motion hardly moves, the lower limit of the slope keeps the shift small.
        shifts_s = ((values - here) * slopes).sum(axis=1) / np.maximum(
            squared_slopes, _STILL_RAD_S**2
        )
        at_s = np.clip(np.clip(at_s + shifts_s, begin_s, end_s), times_s[0], times_s[-1])
    return np.asarray(at_s)
