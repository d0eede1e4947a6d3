"""One joint as a graph: its samples are the nodes, the motion between two keyframes is an edge.

Whether an edge stays within a bound is tested with the cheapest test first: most edges
("stretches") are rejected by a few of their samples, most blocks of edges by the ranges of their
values.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from rote.messages import Interpolation
from rote.motion.track import Array

Indices = NDArray[np.intp]
Path = list[int]

_ROUNDING_RAD = 1e-12  # start + (end - start) is not always end, so a bound of 0 needs this much
# The fractions of a stretch at which its error is measured, by the three cheapest tests.
_PROBES = (0.5, 0.25, 0.75)
_FEW_FRACTIONS = np.arange(1, 16, 2) / 16
_MANY_FRACTIONS = np.arange(1, 32) / 32
_RANGE_STEPS = (32, 8)  # samples whose range is tested instead of each sample
_BLOCK = 16  # samples that are tested together
_SMALL_WORK = 1 << 15  # numbers up to which chunks are not worth it
_LONG_TRACK = 1000  # samples from which blocks and ranges pay off
_BLOCK_PROBES = np.arange(1, 8) / 8  # fractions of a stretch at which pairs of blocks are tested
MANY_STRETCHES = 1_500_000
"""The maximum number of possible stretches of one joint that are searched in full, for smooth steps
within a bound."""
_FEW_STRETCHES = 220_000  # the number searched if there are more
_UNREACHED, _NO_NODE = -1, -2  # instead of the parent of a sample
_STARTS_PER_BATCH = 128  # starts that are tested together
_PANEL = 128  # samples ahead of them that are tested together
_CHUNK = 1 << 18  # numbers in one temporary array: bounds the memory, and stays in the cache


class Blend(NamedTuple):
    """The fraction of the rise at a fraction of the time: monotone from 0 to 1."""

    at: Callable[[Array], Array]
    terms: tuple[tuple[int, float], ...]
    """The same as a polynomial: powers of the fraction of the time, and their factors."""


BLENDS = {
    Interpolation.LINEAR: Blend(lambda u: u, ((1, 1.0),)),
    Interpolation.SMOOTH: Blend(lambda u: u * u * (3.0 - 2.0 * u), ((2, 3.0), (3, -2.0))),
}


class JointGraph:
    """One joint's graph, with an edge for each stretch whose largest error is within a bound.

    Always taking the longest stretch is not optimal here: values are fixed to the samples, so a
    long stretch can be within the bound while a shorter one is not, and the farthest sample can be
    a bad one to continue from. Breadth-first search is optimal: it reaches a node at the level of
    its fewest keyframes.
    """

    def __init__(
        self, times_s: Array, values: Array, blend: Blend, *, keep: bool = False, thin: bool = False
    ) -> None:
        """Prepare to search the keyframes of a joint, (n,).

        With `keep`, lower bounds of the errors of stretches are kept from one search to the next.
        With `thin`, keyframes lie on every n-th sample if very many stretches are possible; errors
        are still measured on all samples.
        """
        self.times_s, self.values, self.blend = times_s, values, blend
        self._may_thin, self._node_step = thin, 1
        highest = np.maximum.accumulate(values[::-1])[::-1]
        lowest = np.minimum.accumulate(values[::-1])[::-1]
        self.hold_errors_rad = np.maximum(highest - values, values - lowest)
        """For each sample, the largest error if its value is held to the end."""
        self._keeps_floors = keep
        size = values.size if keep else 0
        # A lower bound of the error of each stretch, (starts, ends), and for which starts the
        # bounds are known.
        self._error_floors = np.zeros((size, size))
        self._is_floor_known = np.zeros(size, dtype=bool)
        self.last_result: tuple[float, float, Path] = (0.0, np.inf, [])
        """The last result: its bound, its error, and its path."""
        # Results of cheap tests for the present bound; empty until they are needed.
        self._blocks_open: NDArray[np.bool_] = np.ones((0, 0), dtype=bool)
        self._last_reachable: Indices = np.zeros(0, dtype=np.intp)
        # Straight lines from a sample are tested all at once, without kept bounds.
        self._uses_lines = blend is BLENDS[Interpolation.LINEAR] and not keep

    def find_fewest_cached(self, bound_rad: float, max_count: int) -> Path | None:
        """Like `find_fewest`, but reuse the last result if it is also optimal for this bound."""
        found_bound_rad, error_rad, path = self.last_result
        # A tighter bound never needs fewer keyframes, so a path that happens to satisfy it is still
        # optimal.
        if error_rad <= bound_rad <= found_bound_rad:
            return path if len(path) <= max_count else None
        fewest = self.find_fewest(bound_rad, max_count)
        if fewest is not None:
            nodes = np.array([0, *fewest])
            worst = self._measure_stretch_errors(nodes[:-1], nodes[1:]).max(
                initial=self.hold_errors_rad[nodes[-1]]
            )
            self.last_result = (bound_rad, float(worst), fewest)
        return fewest

    def find_fewest(self, bound_rad: float, max_count: int | None = None) -> Path | None:
        """Return the nodes of the fewest keyframes within the bound; None if above `max_count`."""
        bound_rad += _ROUNDING_RAD
        self._node_step = choose_node_step(self.values, bound_rad) if self._may_thin else 1
        # For each sample, the sample before it on the shortest path to it.
        parents = np.full(self.values.size, _NO_NODE)
        parents[:: self._node_step] = _UNREACHED
        parents[-1] = _UNREACHED
        frontier, parents[0], level = np.array([0]), 0, 0
        self._blocks_open = np.ones((0, 0), dtype=bool)
        self._last_reachable = np.zeros(0, dtype=np.intp)
        if self._uses_lines:
            self._lines = LineSearch(self.times_s, self.values, parents)
        # Breadth first: `frontier` are the nodes that need `level` keyframes. The search ends when
        # the rest of the motion can be held from one of them.
        while not (self.hold_errors_rad[frontier] <= bound_rad).any():
            if level == max_count:
                return None
            frontier = (
                self._expand_frontier_by_lines(frontier, bound_rad)
                if self._uses_lines
                else self._expand_frontier(frontier, parents, bound_rad)
            )
            level += 1
        node = int(frontier[np.argmin(self.hold_errors_rad[frontier])])
        path: Path = []
        while node:
            path.append(node)
            node = int(parents[node])
        return path[::-1]

    def _expand_frontier(self, frontier: Indices, parents: Indices, bound_rad: float) -> Indices:
        """Set the parents of all nodes that a stretch from `frontier` reaches; return those nodes.

        Stop early if the motion can be held from one of them.
        """
        unreached = np.nonzero(parents == _UNREACHED)[0]
        # Latest first: stretches from there are short, so they are cheap to test and likely good.
        batch_size = min(_STARTS_PER_BATCH, max(1, 8 * _CHUNK // self.values.size))
        for end in range(frontier.size, 0, -batch_size):
            batch = frontier[max(0, end - batch_size) : end]
            possible_ends = self._select_reachable_ends(
                batch, unreached[parents[unreached] == _UNREACHED], bound_rad
            )
            floors = self._get_error_floors(batch, possible_ends)
            rows, columns = np.nonzero(floors <= bound_rad)
            stretches = (batch[rows], possible_ends[columns], floors[rows, columns])
            self._find_parents(stretches, parents, bound_rad)
            reached = unreached[parents[unreached] >= 0]
            if (self.hold_errors_rad[reached] <= bound_rad).any():
                break
        return reached

    def _expand_frontier_by_lines(self, frontier: Indices, bound_rad: float) -> Indices:
        """Do what `_expand_frontier` does, for straight lines."""
        reached = []
        for end in range(frontier.size, 0, -_STARTS_PER_BATCH):
            batch = frontier[max(0, end - _STARTS_PER_BATCH) : end]
            reached.append(self._lines.reach_samples(batch, bound_rad))
            if (self.hold_errors_rad[reached[-1]] <= bound_rad).any():
                break
        return np.sort(np.concatenate(reached))

    def _select_reachable_ends(self, starts: Indices, ends: Indices, bound_rad: float) -> Indices:
        """Return those ends that a stretch from one of the starts may reach, by a cheap test.

        Short tracks are tested by the rises and falls of their values, long ones block by block.
        """
        if self.values.size < _LONG_TRACK or self._node_step > 1:
            if self._keeps_floors:  # kept errors are tested instead
                return ends
            if not self._last_reachable.size:
                self._last_reachable = find_last_reachable(self.values, 2.0 * bound_rad)
            return ends[: np.searchsorted(ends, self._last_reachable[starts[-1]], side="right")]
        if not self._blocks_open.size:
            self._blocks_open = find_open_blocks(self.times_s, self.values, self.blend, bound_rad)
        blocks = np.asarray(self._blocks_open[np.unique(starts // _BLOCK)].any(axis=0))
        return ends[blocks[ends // _BLOCK]]

    def _find_parents(
        self, stretches: tuple[Indices, Indices, Array], parents: Indices, bound_rad: float
    ) -> None:
        """Set the parent of each end that a stretch within the bound reaches.

        `stretches` are starts, ends, and a lower bound of each error. For each end, they are
        measured in the order of that bound until one fits.
        """
        starts, ends, floors = stretches
        order = np.lexsort((floors, ends))
        starts, ends = starts[order], ends[order]
        attempts = 1  # stretches measured per end; doubles each time, because most ends need one
        while ends.size:
            # `ends` is sorted, so this is the rank of each pair among those with the same end.
            rank = np.arange(ends.size) - np.searchsorted(ends, ends)
            is_tried = rank < attempts
            first, last = starts[is_tried], ends[is_tried]
            errors = self._bound_errors(first, last, bound_rad)
            if self._keeps_floors:
                self._error_floors[first, last] = errors
            is_within = errors <= bound_rad
            parents[last[is_within]] = first[is_within]
            is_still_open = ~is_tried & (parents[ends] < 0)
            starts, ends = starts[is_still_open], ends[is_still_open]
            attempts *= 2

    def _bound_errors(self, starts: Indices, ends: Indices, bound_rad: float) -> Array:
        """Return the largest errors of stretches, (pairs,), the cheapest test first.

        An error above `bound_rad` is a lower bound. One within it is exact for short tracks; for
        long ones it may be a lower bound as well, of an error that is certainly within the bound.
        """
        errors = self._measure_sampled_errors(starts, ends, _FEW_FRACTIONS)
        candidates = np.nonzero(errors <= bound_rad)[0]
        errors[candidates] = np.maximum(
            errors[candidates],
            self._measure_sampled_errors(starts[candidates], ends[candidates], _MANY_FRACTIONS),
        )
        candidates = candidates[errors[candidates] <= bound_rad]
        if self.values.size >= _LONG_TRACK:
            for step in _RANGE_STEPS:
                lower, upper = self._bound_errors_by_ranges(
                    starts[candidates], ends[candidates], step
                )
                errors[candidates] = lower
                candidates = candidates[(lower <= bound_rad) & (upper > bound_rad)]
        errors[candidates] = self._measure_stretch_errors(starts[candidates], ends[candidates])
        return errors

    def _get_error_floors(self, starts: Indices, ends: Indices) -> Array:
        """Return a lower bound of the error of each stretch, (starts, ends).

        It is computed once for each start if this graph keeps its bounds. It is infinite for an end
        that is not after its start.
        """
        if not self._keeps_floors:
            return self._probe_errors(starts, ends)
        unknown = starts[~self._is_floor_known[starts]]
        self._error_floors[unknown] = self._probe_errors(unknown, np.arange(self.values.size))
        self._is_floor_known[unknown] = True
        return self._error_floors[np.ix_(starts, ends)]

    def _probe_errors(self, starts: Indices, ends: Indices) -> Array:
        """Return a cheap lower bound of the error from each start to each end, (starts, ends).

        It is the largest error at a few samples on the way.
        """
        left, right = starts[:, None], ends[None, :]
        length = np.maximum(right - left, 1)
        span_s = self.times_s[right] - self.times_s[left]
        rise = self.values[right] - self.values[left]
        floors = np.where(right > left, 0.0, np.inf)
        for fraction in _PROBES:
            middle = left + (length * fraction).astype(np.intp)
            u = (self.times_s[middle] - self.times_s[left]) / np.where(right > left, span_s, 1.0)
            played = self.values[left] + self.blend.at(u) * rise
            np.maximum(floors, np.abs(played - self.values[middle]), out=floors)
        return floors

    def _measure_sampled_errors(self, starts: Indices, ends: Indices, fractions: Array) -> Array:
        """Return a lower bound of each stretch's error: the largest at `fractions` of its way."""
        errors = np.zeros(starts.size)
        chunk_size = _CHUNK // fractions.size
        for first in range(0, starts.size, chunk_size):
            part = slice(first, first + chunk_size)
            left, right = starts[part, None], ends[part, None]
            at = left + ((right - left) * fractions).astype(np.intp)
            errors[part] = self._measure_worst_errors(left, right, at)
        return errors

    def _bound_errors_by_ranges(
        self, starts: Indices, ends: Indices, step: int
    ) -> tuple[Array, Array]:
        """Return a lower and an upper bound of each stretch's largest error.

        They follow from the range of values in every `step` samples.
        """
        lower_bounds, upper_bounds = np.zeros(starts.size), np.zeros(starts.size)
        for part, inner in _iterate_chunks((ends - starts) // step + 1):
            left, right = starts[part, None], ends[part, None]
            at = np.minimum(left + step * np.append(0, inner), right)
            played = self._compute_played_values(left, right, at)
            # The blend is monotone, so between two samples the played value lies between theirs.
            lows, highs = self._ranges_ahead[step]
            low, high = lows[at[:, :-1]], highs[at[:, :-1]]
            played_low = np.minimum(played[:, :-1], played[:, 1:])
            played_high = np.maximum(played[:, :-1], played[:, 1:])
            upper_bounds[part] = np.maximum(high - played_low, played_high - low).max(axis=1)
            # Samples after the end belong to another stretch.
            is_inside = at[:, :-1] + step <= right
            lower = np.maximum(high - played_high, played_low - low) * is_inside
            lower_bounds[part] = lower.max(axis=1)
        return lower_bounds, upper_bounds

    @cached_property
    def _ranges_ahead(self) -> dict[int, tuple[Array, Array]]:
        """By step: the minimum and maximum of each sample and the `step` samples after it."""
        here, last = np.arange(self.values.size), self.values.size - 1
        ranges = _RangeTable(self.values)
        return {
            step: ranges.find_ranges(here, np.minimum(here + step, last)) for step in _RANGE_STEPS
        }

    def _compute_played_values(self, left: Indices, right: Indices, at: Indices) -> Array:
        """Return what is played at the samples `at` of each row's stretch."""
        begin_s, begin = self.times_s[left], self.values[left]
        u = (self.times_s[at] - begin_s) / (self.times_s[right] - begin_s)
        played: Array = begin + self.blend.at(u) * (self.values[right] - begin)
        return played

    def _measure_worst_errors(self, left: Indices, right: Indices, at: Indices) -> Array:
        """Return the largest error of each row's stretch at its samples `at`."""
        errors = np.abs(self._compute_played_values(left, right, at) - self.values[at])
        worst: Array = errors.max(axis=1)
        return worst

    def _measure_stretch_errors(self, starts: Indices, ends: Indices) -> Array:
        """Return the largest error of each stretch, pair by pair."""
        errors = np.zeros(starts.size)
        for part, inner in _iterate_chunks(ends - starts):
            left, right = starts[part, None], ends[part, None]
            # After its end a short stretch repeats the end.
            errors[part] = self._measure_worst_errors(left, right, np.minimum(left + inner, right))
        return errors


class LineSearch:
    """Tests straight lines from many samples at once against the samples ahead of them.

    Every sample ahead allows a range of slopes for a line that passes it within the bound. The
    ranges are intersected from sample to sample. A line to a sample is within the bound if its
    slope is in the range so far, and the search ends when the range is empty. Past the end all
    values are NaN, which allows no slope.
    """

    def __init__(self, times_s: Array, values: Array, parents: Indices) -> None:
        self._times_s, self._values, self._parents = times_s, values, parents
        after = np.full(_PANEL, np.nan)
        self._waiting = np.append(parents == _UNREACHED, np.zeros(_PANEL, dtype=bool))
        self._ahead_s = sliding_window_view(np.append(times_s, after), _PANEL)
        self._ahead = sliding_window_view(np.append(values, after), _PANEL)
        # A view, which changes with `_waiting`.
        self._waiting_ahead = sliding_window_view(self._waiting, _PANEL)

    def reach_samples(self, starts: Indices, bound_rad: float) -> Indices:
        """Set the parents of all waiting samples that a line from a start reaches; return these."""
        min_slope, max_slope = np.full(starts.size, -np.inf), np.full(starts.size, np.inf)
        position, ends_reached = starts + 1, []  # the first sample ahead that is not tested yet
        while starts.size:
            seconds = self._ahead_s[position] - self._times_s[starts, None]
            slopes = (self._ahead[position] - self._values[starts, None]) / seconds
            slack = bound_rad / seconds
            low, high = slopes - slack, slopes + slack
            # The slopes allowed by the panels before are carried into the first column, so that the
            # running extremes below include them.
            low[:, 0] = np.maximum(low[:, 0], min_slope)
            high[:, 0] = np.minimum(high[:, 0], max_slope)
            is_waiting = self._waiting_ahead[position]
            if is_waiting.any():
                np.maximum.accumulate(low, axis=1, out=low)
                np.minimum.accumulate(high, axis=1, out=high)
                rows, further = np.nonzero((slopes >= low) & (slopes <= high) & is_waiting)
                ends = position[rows] + further
                self._parents[ends] = starts[rows]
                ends_reached.append(ends)
                min_slope, max_slope = low[:, -1], high[:, -1]
            else:
                min_slope, max_slope = low.max(axis=1), high.min(axis=1)
            is_open = min_slope <= max_slope
            starts, position = starts[is_open], position[is_open] + _PANEL
            min_slope, max_slope = min_slope[is_open], max_slope[is_open]
        reached = np.unique(np.concatenate([*ends_reached, starts]))
        self._waiting[reached] = False
        return reached


def _iterate_chunks(lengths: Indices) -> Iterator[tuple[Indices, Indices]]:
    """Yield groups of rows with similar lengths, and for each group the steps 1 to its longest row.

    A group is small enough for arrays of `_CHUNK` numbers.
    """
    order = np.argsort(lengths, kind="stable")
    last = order.size
    while last:
        longest = int(lengths[order[last - 1]])
        # Rows shorter than three quarters of the longest would mostly be padding; they go into
        # another group, unless there is little work.
        similar = (
            0
            if last * longest <= _SMALL_WORK
            else int(np.searchsorted(lengths[order], 0.75 * longest))
        )
        first = max(similar, last - max(1, _CHUNK // longest))
        yield order[first:last], np.arange(1, longest + 1)
        last = first


# ---- blocks of stretches ------------------------------------------------------------------------


def find_open_blocks(
    times_s: Array, values: Array, blend: Blend, bound_rad: float
) -> NDArray[np.bool_]:
    """Return whether a stretch within the bound may lead from one block of samples to another.

    Shape (blocks of starts, blocks of ends); False only if that is certainly impossible.
    """
    size = values.size
    first = np.arange(0, size, _BLOCK)
    last = np.minimum(first + _BLOCK, size) - 1
    reach = find_last_reachable(values, 2.0 * bound_rad)[last]
    open_to: NDArray[np.bool_] = (last[None, :] >= first[:, None]) & (first <= reach[:, None])
    ranges = _RangeTable(values)
    low, high = ranges.find_ranges(first, last)
    # Only pairs of blocks, i and j, that do not overlap can be ruled out.
    i, j = np.nonzero(open_to & (first[None, :] > last[:, None]))
    ruled_out = np.zeros(i.size, dtype=bool)
    for fraction in _BLOCK_PROBES.tolist():
        # The sample at that fraction of any stretch from block i to block j lies between `begin`
        # and `end`. If even the nearest played value misses all of them by more than the bound, no
        # stretch between the blocks fits.
        begin = first[i] + ((first[j] - first[i]) * fraction).astype(np.intp)
        end = last[i] + ((last[j] - last[i]) * fraction).astype(np.intp)
        lowest_sample, highest_sample = ranges.find_ranges(begin, end)
        longest_s = times_s[last[j]] - times_s[first[i]]
        shortest_s = times_s[first[j]] - times_s[last[i]]
        # The least and greatest fraction of the rise at that sample.
        min_share = blend.at(np.clip((times_s[begin] - times_s[last[i]]) / longest_s, 0.0, 1.0))
        max_share = blend.at(np.clip((times_s[end] - times_s[first[i]]) / shortest_s, 0.0, 1.0))
        low_rise, high_rise = low[j] - low[i], high[j] - high[i]
        lowest_played = low[i] + np.minimum(min_share * low_rise, max_share * low_rise)
        highest_played = high[i] + np.maximum(min_share * high_rise, max_share * high_rise)
        ruled_out |= (lowest_played - highest_sample > bound_rad) | (
            lowest_sample - highest_played > bound_rad
        )
    open_to[i[ruled_out], j[ruled_out]] = False
    return open_to


def choose_node_step(values: Array, bound_rad: float) -> int:
    """Return n so that keyframes on every n-th sample allow about `_FEW_STRETCHES` stretches.

    It is 1 if keyframes on all samples allow at most `MANY_STRETCHES`.
    """
    if values.size**2 / 2 <= MANY_STRETCHES:
        return 1
    stretches = float((find_last_reachable(values, 2.0 * bound_rad) - np.arange(values.size)).sum())
    return 1 if stretches <= MANY_STRETCHES else int(np.ceil(np.sqrt(stretches / _FEW_STRETCHES)))


def find_last_reachable(values: Array, by_rad: float) -> Indices:
    """Return for each sample the last one that a stretch can reach; `by_rad` is twice the bound.

    A stretch is monotone. So values that rise by more than `by_rad` from some sample on and fall as
    much from another, in any order, cannot be within the bound.
    """
    # For each sample, where the first such rise that begins there or later ends; so for falls.
    rise_ends = np.minimum.accumulate(_find_first_rises(values, by_rad)[::-1])[::-1]
    fall_ends = np.minimum.accumulate(_find_first_rises(-values, by_rad)[::-1])[::-1]
    return np.maximum(rise_ends, fall_ends)


def _find_first_rises(values: Array, by_rad: float) -> Indices:
    """Return for each sample the first later one that is higher by more than `by_rad`, or n."""
    result = np.full(values.size, values.size)
    # The later samples that are higher than all samples before them, the nearest last. Their values
    # are negated, so that they increase as `bisect_left` needs.
    positions: list[int] = []
    depths: list[float] = []
    for position, value in zip(range(values.size - 1, -1, -1), values[::-1].tolist(), strict=True):
        higher_count = bisect_left(depths, -(value + by_rad))
        if higher_count:
            result[position] = positions[higher_count - 1]
        while depths and depths[-1] >= -value:
            del depths[-1], positions[-1]
        depths.append(-value)
        positions.append(position)
    return result


class _RangeTable:
    """The minimum and maximum between any two samples, for many pairs at once."""

    def __init__(self, values: Array) -> None:
        # A sparse table: level k holds the extremes of every run of 2**k samples. Two overlapping
        # runs cover any interval.
        self._tables: list[tuple[Array, Array]] = [(values, values)]
        width = 1
        while 2 * width <= values.size:
            low, high = self._tables[-1]
            self._tables.append(
                (np.minimum(low[:-width], low[width:]), np.maximum(high[:-width], high[width:]))
            )
            width *= 2

    def find_ranges(self, first: Indices, last: Indices) -> tuple[Array, Array]:
        """Return the minimum and maximum from `first` to `last` inclusive, pair by pair."""
        low, high = np.empty(first.size), np.empty(first.size)
        levels = np.log2(last - first + 1).astype(np.intp)
        for level in np.unique(levels).tolist():
            chosen = levels == level
            begin, end = first[chosen], last[chosen] + 1 - 2**level
            lows, highs = self._tables[level]
            low[chosen] = np.minimum(lows[begin], lows[end])
            high[chosen] = np.maximum(highs[begin], highs[end])
        return low, high
