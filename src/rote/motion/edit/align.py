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

_COARSE = 600
"""A path over all pairs of this many samples is searched without a band."""
_FINER = 4  # times as many samples in each further search
_MAX_SAMPLES = 4_000_000
_MAX_S = 2 * 3600.0
_REACH = 4  # coarse samples to both sides of the coarse path
_BLOCK = 1 << 14  # samples that are refined together
_NUDGES = 3
_STILL_RAD_S = 0.01

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alignment:
    """For each sample of one track, the corresponding time of another."""

    times_s: Array
    """The first track's own times, (n,)."""
    other_s: Array
    """Those of the other track, (n,), never decreasing."""
    other_begin_s: float
    """When the other track begins."""

    @property
    def lag_s(self) -> float:
        """How much later the other track is, counted from both beginnings; the median."""
        return float(np.median(self.late_s))

    @property
    def warp_s(self) -> float:
        """The largest difference in time between the two, apart from the lag."""
        return float(np.abs(self.late_s - self.lag_s).max())

    @property
    def late_s(self) -> Array:
        """How much later the other track is at each sample, (n,)."""
        late_s: Array = (self.other_s - self.other_begin_s) - (self.times_s - self.times_s[0])
        return late_s


def shared_joints(tracks: Sequence[Track], joints: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the joints to compare: the requested ones, or those that all tracks have."""
    for track in tracks:
        track.require_samples(2)
    names = tuple(tracks[0].names if joints is None else joints)
    common = tuple(name for name in names if all(name in track.names for track in tracks))
    if not common or (joints is not None and common != names):
        missing = sorted(set(names) - set(common))
        raise BadRequestError(
            f"these joints cannot be compared: {', '.join(missing) or 'none were named'}",
            "Choose joints that all tracks have.",
        )
    return common


def align(track: Track, other: Track, joints: Sequence[str] | None = None) -> Alignment:
    """Return, for each sample of `track`, the time of `other` that fits it best."""
    names = shared_joints((track, other), joints)
    for one in (track, other):
        if len(one) > _MAX_SAMPLES or one.duration_s > _MAX_S:
            raise BadRequestError(
                f"{len(one)} samples over {one.duration_s:.0f} s are too many to align; "
                f"{_MAX_SAMPLES} over {_MAX_S:.0f} s are possible",
                "Cut both into parts, or resample them at a lower rate first.",
            )
    values = columns_of(track, names)
    others = columns_of(other, names)
    every = every_nth(len(values), len(others))
    few, few_others = (
        _every_nth_and_last(len(values), every),
        _every_nth_and_last(len(others), every),
    )
    rows, columns = warping_path(values[few], others[few_others])
    # A sample that fits several of the other's is at their middle.
    counts = np.bincount(rows, minlength=len(few))
    places = np.bincount(rows, weights=columns, minlength=len(few)) / counts
    other_s = np.interp(places, np.arange(len(few_others)), other.times_s[few_others])
    if every > 1:
        other_s = np.interp(np.arange(len(values)), few, other_s)
    return Alignment(
        times_s=track.times_s,
        other_s=_refine_moments(values, other.times_s, others, other_s, every),
        other_begin_s=float(other.times_s[0]),
    )


def columns_of(track: Track, names: Sequence[str]) -> Array:
    """Return the angles of these joints, (n, joints); not a copy if they are all of the track's."""
    if tuple(names) == track.names:
        return track.joints_rad
    return track.joints_rad[:, track.columns_of(names)]


def every_nth(*lengths: int) -> int:
    """Return n for tracks of these lengths: the path is searched on every n-th sample."""
    return -(-max(lengths) // SEARCHED_SAMPLES)


def _every_nth_and_last(length: int, every: int) -> Rows:
    """Return every n-th row, and the last."""
    rows = np.arange(0, length, every)
    return rows if rows[-1] == length - 1 else np.append(rows, length - 1)


def warping_path(a: Array, b: Array) -> tuple[Rows, Rows]:
    """Return the rows of `a` and `b`, (n, joints) and (m, joints), that belong together.

    The path goes from both first rows to both last, one row at a time in either or both. It has the
    least sum of squared distances (within a band, if there are more than a few hundred rows).
    """
    every = int(np.ceil(max(len(a), len(b)) / _COARSE))
    if every == 1:
        return _best_path(a, b, _Band.all(len(a), len(b)))
    path = _best_path(a[::every], b[::every], _Band.all(*(len(x[::every]) for x in (a, b))))
    while every > 1:
        finer = -(-every // _FINER)
        few_a, few_b = a[::finer], b[::finer]
        band = _Band.around(path, every / finer, (len(few_a), len(few_b)))
        path = _best_path(few_a, few_b, band)
        every = finer
    return path


class _Band(NamedTuple):
    """Which columns are searched in each row: from `low` to before `high`."""

    low: Rows
    high: Rows

    @classmethod
    def all(cls, rows: int, columns: int) -> "_Band":
        return cls(np.zeros(rows, dtype=np.intp), np.full(rows, columns, dtype=np.intp))

    @classmethod
    def around(cls, path: tuple[Rows, Rows], every: float, shape: tuple[int, int]) -> "_Band":
        """Return the band around a path that was found on every `every`-th row and column."""
        rows, columns = path
        first = np.searchsorted(rows, np.arange(rows[-1] + 1))
        last = np.append(first[1:], len(rows)) - 1
        # A row includes its neighbours' columns, and a little more.
        low = columns[np.append(first[:1], first[:-1])] - _REACH
        high = columns[np.append(last[1:], last[-1:])] + _REACH + 1
        coarse = np.minimum((np.arange(shape[0]) // every).astype(np.intp), len(low) - 1)
        band = cls(
            np.clip(np.floor(low[coarse] * every).astype(np.intp), 0, shape[1] - 1),
            np.clip(np.ceil(high[coarse] * every).astype(np.intp), 1, shape[1]),
        )
        band.high[-1] = shape[1]
        return band


def _best_path(a: Array, b: Array, band: _Band) -> tuple[Rows, Rows]:
    """Return the cheapest path inside the band: costs row by row, then traced back."""
    costs = np.full(len(b) + 1, np.inf)  # of the row before, shifted by one: column j is at j + 1
    costs[0] = 0.0
    before = slice(0, 1)
    left: list[NDArray[np.bool_]] = []
    above: list[NDArray[np.bool_]] = []
    for row in range(len(a)):
        low, high = int(band.low[row]), int(band.high[row])
        own = np.square(b[low:high] - a[row]).sum(axis=1)
        up, diagonal = costs[low + 1 : high + 1], costs[low:high]
        best = np.minimum(up, diagonal)
        # Moving along the row costs the sum of its own costs, so the best column to enter it from
        # the row before is a running minimum.
        walked = np.cumsum(own)
        found = walked + np.minimum.accumulate(best - (walked - own))
        above.append(up < diagonal)
        left.append(np.append(False, found[:-1] < best[1:] - 1e-12))
        costs[before] = np.inf
        before = slice(low + 1, high + 1)
        costs[before] = found
    return _trace_back(band, left, above, len(b))


def _trace_back(
    band: _Band, left: list[NDArray[np.bool_]], above: list[NDArray[np.bool_]], columns: int
) -> tuple[Rows, Rows]:
    row, column = len(left) - 1, columns - 1
    path = [(row, column)]
    while row or column:
        place = column - int(band.low[row])
        if row == 0 or left[row][place]:
            column -= 1
        else:
            column -= 0 if above[row][place] else 1
            row -= 1
        path.append((row, column))
    rows, others = np.array(path[::-1], dtype=np.intp).T
    return rows, others


def _refine_moments(values: Array, times_s: Array, others: Array, at_s: Array, every: int) -> Array:
    """Move each time to where the other track is nearest, keeping their order.

    Each moves by at most one of the samples that the path was searched on.
    """
    step_s = every * float(np.median(np.diff(times_s)))
    nearest = [
        nearest_moments(
            values[begin : begin + _BLOCK], times_s, others, at_s[begin : begin + _BLOCK], step_s
        )
        for begin in range(0, len(values), _BLOCK)
    ]
    return np.maximum.accumulate(np.concatenate(nearest))


def nearest_moments(
    values: Array, times_s: Array, others: Array, at_s: Array, step_s: float
) -> Array:
    """Return for each pose the time near `at_s` at which another motion is nearest to it.

    `values` is (k, joints); `others` is (n, joints), at the times `times_s`. No time moves by more
    than `step_s`.
    """
    begin_s, end_s = at_s - step_s, at_s + step_s
    for _ in range(_NUDGES):
        here = sample(times_s, others, at_s, Interpolation.LINEAR)
        ahead = sample(times_s, others, at_s + step_s / 4, Interpolation.LINEAR)
        behind = sample(times_s, others, at_s - step_s / 4, Interpolation.LINEAR)
        slopes = (ahead - behind) / (step_s / 2)
        steep = np.square(slopes).sum(axis=1)
        wanted = ((values - here) * slopes).sum(axis=1) / np.maximum(steep, _STILL_RAD_S**2)
        at_s = np.clip(np.clip(at_s + wanted, begin_s, end_s), times_s[0], times_s[-1])
    return np.asarray(at_s)
