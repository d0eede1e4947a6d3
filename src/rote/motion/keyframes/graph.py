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
_PROBES = (0.5, 0.25, 0.75)
_GLANCES = np.arange(1, 32) / 32
_FEW_FRACTIONS = np.arange(1, 16, 2) / 16
_STEPS = (32, 8)  # samples that are tested as one
_BLOCK = 16  # samples that are judged together
_LITTLE = 1 << 15  # numbers that are not worth sorting into pieces
_LONG = 1000  # samples from which blocks and ranges pay off
_BLOCK_PROBES = np.arange(1, 8) / 8
MANY_STRETCHES = 1_500_000
"""The maximum number of possible stretches of one joint that are searched in full, for smooth steps
within a bound."""
_FEW_STRETCHES = 220_000  # searched if there are more
_UNREACHED, _NO_NODE = -1, -2  # instead of a parent
_ROWS = 128  # starts that are judged together
_PANEL = 128  # samples ahead of them that are tested together
_CHUNK = 1 << 18  # numbers in one temporary array: bounds the memory, and stays in the cache


class Blend(NamedTuple):
    """The fraction of the rise at a fraction of the time: monotone from 0 to 1."""

    at: Callable[[Array], Array]
    terms: tuple[tuple[int, float], ...]
    """The same as a polynomial: powers of the time and their factors."""


BLENDS = {
    Interpolation.LINEAR: Blend(lambda u: u, ((1, 1.0),)),
    Interpolation.SMOOTH: Blend(lambda u: u * u * (3.0 - 2.0 * u), ((2, 3.0), (3, -2.0))),
}


class JointGraph:
    """One joint's graph for the largest error: which stretch stays within a bound.

    Always taking the longest stretch is not optimal here: values are fixed to the samples, so a
    long stretch can be within the bound while a shorter one is not, and the farthest sample can be
    a bad one to continue from. Breadth-first search is optimal: it reaches a node at the level of
    its fewest keyframes.
    """

    def __init__(
        self, times_s: Array, values: Array, blend: Blend, *, keep: bool = False, thin: bool = False
    ) -> None:
        """With `thin`, keyframes lie on every n-th sample if very many stretches are possible.

        Their error is still measured on all samples.
        """
        self.times_s, self.values, self.blend = times_s, values, blend
        self._thin, self._every = thin, 1
        highest = np.maximum.accumulate(values[::-1])[::-1]
        lowest = np.minimum.accumulate(values[::-1])[::-1]
        self.held = np.maximum(highest - values, values - lowest)  # if held from here to the end
        size = values.size if keep else 0
        # With `keep`, lower bounds of each stretch's error are stored for the next bound.
        self.known = np.zeros((size, size))
        self.seen = np.zeros(size, dtype=bool)
        self.found: tuple[float, float, Path] = (0.0, np.inf, [])
        self._open: NDArray[np.bool_] = np.ones((0, 0), dtype=bool)
        self._reach: Indices = np.zeros(0, dtype=np.intp)
        # Lines from a sample are tested all at once, which needs nothing from other bounds.
        self._straight = blend is BLENDS[Interpolation.LINEAR] and not keep

    def fewest_again(self, bound_rad: float, most: int) -> Path | None:
        """Like `fewest`, for bound after bound; `found` is (bound, its error, path)."""
        asked_rad, error_rad, path = self.found
        # A tighter bound never needs fewer keyframes, so a path that happens to satisfy it is still
        # optimal.
        if error_rad <= bound_rad <= asked_rad:
            return path if len(path) <= most else None
        fewest = self.fewest(bound_rad, most)
        if fewest is not None:
            nodes = np.array([0, *fewest])
            worst = self._stretch_errors(nodes[:-1], nodes[1:]).max(initial=self.held[nodes[-1]])
            self.found = (bound_rad, float(worst), fewest)
        return fewest

    def fewest(self, bound_rad: float, most: int | None = None) -> Path | None:
        """Return the nodes of the fewest keyframes within the bound; None if beyond `most`."""
        bound_rad += _ROUNDING_RAD
        self._every = every_nth(self.values, bound_rad) if self._thin else 1
        parents = np.full(self.values.size, _NO_NODE)
        parents[:: self._every] = _UNREACHED
        parents[-1] = _UNREACHED
        frontier, parents[0], level = np.array([0]), 0, 0
        self._open, self._reach = np.ones((0, 0), dtype=bool), np.zeros(0, dtype=np.intp)
        if self._straight:
            self._lines = LineSearch(self.times_s, self.values, parents)
        # Breadth first: `frontier` are the nodes that need `level` keyframes. The search ends when
        # the rest of the motion can be held from one of them.
        while not (self.held[frontier] <= bound_rad).any():
            if level == most:
                return None
            frontier = (
                self._expand_lines(frontier, bound_rad)
                if self._straight
                else self._expand(frontier, parents, bound_rad)
            )
            level += 1
        node = int(frontier[np.argmin(self.held[frontier])])
        path: Path = []
        while node:
            path.append(node)
            node = int(parents[node])
        return path[::-1]

    def _expand(self, frontier: Indices, parents: Indices, bound_rad: float) -> Indices:
        """Note the parents of all nodes one stretch further, and return those nodes; not all, if
        one of them is the last."""
        unreached = np.nonzero(parents == _UNREACHED)[0]
        # Latest first: a stretch from there is short, so it is cheap to judge and likely good.
        rows = min(_ROWS, max(1, 8 * _CHUNK // self.values.size))
        for first in range(frontier.size, 0, -rows):
            part = frontier[max(0, first - rows) : first]
            waiting = self._within_reach(
                part, unreached[parents[unreached] == _UNREACHED], bound_rad
            )
            floors = self._error_floors(part, waiting)
            starts, ends = np.nonzero(floors <= bound_rad)
            likely = floors[starts, ends]
            self._judge((part[starts], waiting[ends], likely), parents, bound_rad)
            reached = unreached[parents[unreached] >= 0]
            if (self.held[reached] <= bound_rad).any():
                break
        return reached

    def _expand_lines(self, frontier: Indices, bound_rad: float) -> Indices:
        """Do what `_expand` does for straight lines; stop as soon as the motion can be held from
        one node.
        """
        reached = []
        for first in range(frontier.size, 0, -_ROWS):
            reached.append(self._lines.draw(frontier[max(0, first - _ROWS) : first], bound_rad))
            if (self.held[reached[-1]] <= bound_rad).any():
                break
        return np.sort(np.concatenate(reached))

    def _within_reach(self, starts: Indices, ends: Indices, bound_rad: float) -> Indices:
        """Return the ends that some start may go to, by the blocks that both lie in."""
        if self.values.size < _LONG or self._every > 1:
            if self.seen.size:  # kept for other bounds too
                return ends
            if not self._reach.size:
                self._reach = last_reachable(self.values, 2.0 * bound_rad)
            return ends[: np.searchsorted(ends, self._reach[starts[-1]], side="right")]
        if not self._open.size:
            self._open = open_blocks(self.times_s, self.values, self.blend, bound_rad)
        blocks = np.asarray(self._open[np.unique(starts // _BLOCK)].any(axis=0))
        return ends[blocks[ends // _BLOCK]]

    def _judge(
        self, stretches: tuple[Indices, Indices, Array], parents: Indices, bound_rad: float
    ) -> None:
        """Measure the stretches, the likeliest to each end first, until its parent is found.

        They are starts, ends, and a lower bound of the error of each.
        """
        starts, ends, floors = stretches
        # What errs least at a few samples is likeliest to stay within the bound at all of them.
        order = np.lexsort((floors, ends))
        starts, ends, tries = starts[order], ends[order], 1  # tries double: most ends need one
        while ends.size:
            # `ends` is sorted, so this is the rank of each pair among those with the same end.
            rank = np.arange(ends.size) - np.searchsorted(ends, ends)
            now = rank < tries
            first, last = starts[now], ends[now]
            errors = self._measure(first, last, bound_rad)
            if self.seen.size:
                self.known[first, last] = errors
            good = errors <= bound_rad
            parents[last[good]] = first[good]
            later = ~now & (parents[ends] < 0)
            starts, ends = starts[later], ends[later]
            tries *= 2

    def _measure(self, starts: Indices, ends: Indices, bound_rad: float) -> Array:
        """Return the errors pair by pair: exact within the bound, otherwise a lower bound.

        If nothing is kept, those within the bound may be upper bounds as well.
        """
        errors = self._sampled_errors(starts, ends, _FEW_FRACTIONS)
        maybe = np.nonzero(errors <= bound_rad)[0]
        errors[maybe] = np.maximum(
            errors[maybe], self._sampled_errors(starts[maybe], ends[maybe], _GLANCES)
        )
        maybe = maybe[errors[maybe] <= bound_rad]
        if self.values.size >= _LONG:
            for step in _STEPS:
                least, most = self._error_ranges(starts[maybe], ends[maybe], step)
                errors[maybe] = least
                maybe = maybe[(least <= bound_rad) & (most > bound_rad)]
        errors[maybe] = self._stretch_errors(starts[maybe], ends[maybe])
        return errors

    def _error_floors(self, starts: Indices, ends: Indices) -> Array:
        """Return a lower bound of each stretch's error, shape (starts, ends); inf if it runs
        backwards.
        """
        if not self.seen.size:
            return self._probe(starts, ends)
        fresh = starts[~self.seen[starts]]
        self.known[fresh] = self._probe(fresh, np.arange(self.values.size))
        self.seen[fresh] = True
        return self.known[np.ix_(starts, ends)]

    def _probe(self, starts: Indices, ends: Indices) -> Array:
        """Return the largest error at a few samples on the way: a cheap lower bound."""
        left, right = starts[:, None], ends[None, :]
        length = np.maximum(right - left, 1)
        span_s = self.times_s[right] - self.times_s[left]
        rise = self.values[right] - self.values[left]
        floors = np.where(right > left, 0.0, np.inf)
        for fraction in _PROBES:
            middle = left + (length * fraction).astype(np.intp)
            u = (self.times_s[middle] - self.times_s[left]) / np.where(right > left, span_s, 1.0)
            there = self.values[left] + self.blend.at(u) * rise
            np.maximum(floors, np.abs(there - self.values[middle]), out=floors)
        return floors

    def _sampled_errors(self, starts: Indices, ends: Indices, fractions: Array) -> Array:
        """Return a lower bound of each stretch's error, pair by pair, from more samples on it."""
        errors = np.zeros(starts.size)
        rows = _CHUNK // fractions.size
        for first in range(0, starts.size, rows):
            part = slice(first, first + rows)
            left, right = starts[part, None], ends[part, None]
            at = left + ((right - left) * fractions).astype(np.intp)
            errors[part] = self._worst_errors(left, right, at)
        return errors

    def _error_ranges(self, starts: Indices, ends: Indices, step: int) -> tuple[Array, Array]:
        """Return bounds of each stretch's greatest error, from the ranges of few samples."""
        least, most = np.zeros(starts.size), np.zeros(starts.size)
        for part, inner in _chunks((ends - starts) // step + 1):
            left, right = starts[part, None], ends[part, None]
            at = np.minimum(left + step * np.append(0, inner), right)
            there = self._played_values(left, right, at)
            # In between it is played between the two: the blend never turns back.
            lows, highs = self._ranges_ahead[step]
            low, high = lows[at[:, :-1]], highs[at[:, :-1]]
            lower, upper = (
                np.minimum(there[:, :-1], there[:, 1:]),
                np.maximum(there[:, :-1], there[:, 1:]),
            )
            most[part] = np.maximum(high - lower, upper - low).max(axis=1)
            # What lies after the end is another stretch's.
            whole = at[:, :-1] + step <= right
            least[part] = (np.maximum(high - upper, lower - low) * whole).max(axis=1)
        return least, most

    @cached_property
    def _ranges_ahead(self) -> dict[int, tuple[Array, Array]]:
        """The range of each sample and the few after it, by the number of steps."""
        here, last = np.arange(self.values.size), self.values.size - 1
        ranges = _Ranges(self.values)
        return {step: ranges.over(here, np.minimum(here + step, last)) for step in _STEPS}

    def _played_values(self, left: Indices, right: Indices, at: Indices) -> Array:
        """Return what is played at the samples `at` of each row's stretch."""
        begin_s, begin = self.times_s[left], self.values[left]
        u = (self.times_s[at] - begin_s) / (self.times_s[right] - begin_s)
        there: Array = begin + self.blend.at(u) * (self.values[right] - begin)
        return there

    def _worst_errors(self, left: Indices, right: Indices, at: Indices) -> Array:
        """Return the largest error of each row's stretch at its samples `at`."""
        worst: Array = np.abs(self._played_values(left, right, at) - self.values[at]).max(axis=1)
        return worst

    def _stretch_errors(self, starts: Indices, ends: Indices) -> Array:
        """Return the largest error of each stretch, pair by pair."""
        errors = np.zeros(starts.size)
        for part, inner in _chunks(ends - starts):
            left, right = starts[part, None], ends[part, None]
            # After its end a short stretch repeats the end.
            errors[part] = self._worst_errors(left, right, np.minimum(left + inner, right))
        return errors


class LineSearch:
    """Straight lines from samples, tested together against the samples ahead.

    Every sample ahead allows a range of slopes for a line that passes it within the bound. The
    ranges are intersected from sample to sample; a line to a sample is good if its slope is in the
    range so far, and the search ends when the range is empty. Past the end all values are NaN,
    which allows nothing.
    """

    def __init__(self, times_s: Array, values: Array, parents: Indices) -> None:
        self._times_s, self._values, self._parents = times_s, values, parents
        after = np.full(_PANEL, np.nan)
        self._waiting = np.append(parents == _UNREACHED, np.zeros(_PANEL, dtype=bool))
        self._ahead_s = sliding_window_view(np.append(times_s, after), _PANEL)
        self._ahead = sliding_window_view(np.append(values, after), _PANEL)
        self._wanted = sliding_window_view(self._waiting, _PANEL)

    def draw(self, starts: Indices, bound_rad: float) -> Indices:
        """Set the parents of the waiting samples that a line from a start can reach, and return
        them.
        """
        least, greatest = np.full(starts.size, -np.inf), np.full(starts.size, np.inf)
        place, found = starts + 1, []
        while starts.size:
            seconds = self._ahead_s[place] - self._times_s[starts, None]
            slopes = (self._ahead[place] - self._values[starts, None]) / seconds
            slack = bound_rad / seconds
            low, high = slopes - slack, slopes + slack
            # The slopes allowed by the panels before are carried into the first column, so that the
            # running extremes below include them.
            low[:, 0], high[:, 0] = np.maximum(low[:, 0], least), np.minimum(high[:, 0], greatest)
            wanted = self._wanted[place]
            if wanted.any():
                np.maximum.accumulate(low, axis=1, out=low)
                np.minimum.accumulate(high, axis=1, out=high)
                rows, further = np.nonzero((slopes >= low) & (slopes <= high) & wanted)
                ends = place[rows] + further
                self._parents[ends] = starts[rows]
                found.append(ends)
                least, greatest = low[:, -1], high[:, -1]
            else:
                least, greatest = low.max(axis=1), high.min(axis=1)
            going = least <= greatest
            starts, place = starts[going], place[going] + _PANEL
            least, greatest = least[going], greatest[going]
        reached = np.unique(np.concatenate([*found, starts]))
        self._waiting[reached] = False
        return reached


def _chunks(lengths: Indices) -> Iterator[tuple[Indices, Indices]]:
    """Yield rows of about equal length, and the steps within them, in pieces of bounded size."""
    order = np.argsort(lengths, kind="stable")
    last = order.size
    while last:
        longest = int(lengths[order[last - 1]])
        # No row shorter than three quarters of the longest, or most of the work would be padding;
        # but a little work is done at once.
        little = last * longest <= _LITTLE
        similar = 0 if little else int(np.searchsorted(lengths[order], 0.75 * longest))
        first = max(similar, last - max(1, _CHUNK // longest))
        yield order[first:last], np.arange(1, longest + 1)
        last = first


# ---- blocks of stretches ------------------------------------------------------------------------


def open_blocks(times_s: Array, values: Array, blend: Blend, bound_rad: float) -> NDArray[np.bool_]:
    """Return which blocks of starts have a stretch within the bound to which blocks of ends.

    Shape (blocks, blocks); True unless it can be ruled out, so errors are only on the safe side.
    """
    size = values.size
    first = np.arange(0, size, _BLOCK)
    last = np.minimum(first + _BLOCK, size) - 1
    reach = last_reachable(values, 2.0 * bound_rad)[last]
    open_to: NDArray[np.bool_] = (last[None, :] >= first[:, None]) & (first <= reach[:, None])
    ranges = _Ranges(values)
    low, high = ranges.over(first, last)
    # Only for blocks apart from each other is it certain what lies between them.
    i, j = np.nonzero(open_to & (first[None, :] > last[:, None]))
    hopeless = np.zeros(i.size, dtype=bool)
    for fraction in _BLOCK_PROBES.tolist():
        # Between `near` and `far` lies the sample at that fraction of any stretch from block i to
        # block j. If even the nearest played value misses all of them by more than the bound, no
        # stretch between the blocks fits.
        near = first[i] + ((first[j] - first[i]) * fraction).astype(np.intp)
        far = last[i] + ((last[j] - last[i]) * fraction).astype(np.intp)
        least, most = ranges.over(near, far)
        longest_s, shortest_s = (
            times_s[last[j]] - times_s[first[i]],
            times_s[first[j]] - times_s[last[i]],
        )
        # The earliest and latest time at which the sample at that fraction of the stretch can come.
        early = blend.at(np.clip((times_s[near] - times_s[last[i]]) / longest_s, 0.0, 1.0))
        late = blend.at(np.clip((times_s[far] - times_s[first[i]]) / shortest_s, 0.0, 1.0))
        lowest = low[i] + np.minimum(early * (low[j] - low[i]), late * (low[j] - low[i]))
        highest = high[i] + np.maximum(early * (high[j] - high[i]), late * (high[j] - high[i]))
        hopeless |= (lowest - most > bound_rad) | (least - highest > bound_rad)
    open_to[i[hopeless], j[hopeless]] = False
    return open_to


def every_nth(values: Array, bound_rad: float) -> int:
    """Return n such that keyframes on every n-th sample allow not too many stretches."""
    if values.size**2 / 2 <= MANY_STRETCHES:
        return 1
    stretches = float((last_reachable(values, 2.0 * bound_rad) - np.arange(values.size)).sum())
    return 1 if stretches <= MANY_STRETCHES else int(np.ceil(np.sqrt(stretches / _FEW_STRETCHES)))


def last_reachable(values: Array, by: float) -> Indices:
    """Return for each sample the last one that a stretch from it can go to.

    A stretch is monotone. So values that first rise by more than twice the bound and then fall as
    much, or the other way round, cannot be within the bound.
    """
    ends = [_first_rises(way, by) for way in (values, -values)]
    return np.maximum(*(np.minimum.accumulate(end[::-1])[::-1] for end in ends))


def _first_rises(values: Array, by: float) -> Indices:
    """Return for each sample the first later one that is higher by more than `by`, or the end."""
    found = np.full(values.size, values.size)
    # The samples not yet exceeded by a later one, the nearest last; their heights are negated.
    places: list[int] = []
    depths: list[float] = []
    for place, value in zip(range(values.size - 1, -1, -1), values[::-1].tolist(), strict=True):
        higher = bisect_left(depths, -(value + by))
        if higher:
            found[place] = places[higher - 1]
        while depths and depths[-1] >= -value:
            del depths[-1], places[-1]
        depths.append(-value)
        places.append(place)
    return found


class _Ranges:
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

    def over(self, first: Indices, last: Indices) -> tuple[Array, Array]:
        """Return both, from `first` to `last` inclusive, pair by pair."""
        low, high = np.empty(first.size), np.empty(first.size)
        levels = np.log2(last - first + 1).astype(np.intp)
        for level in np.unique(levels).tolist():
            chosen = levels == level
            begin, end = first[chosen], last[chosen] + 1 - 2**level
            lows, highs = self._tables[level]
            low[chosen] = np.minimum(lows[begin], lows[end])
            high[chosen] = np.maximum(highs[begin], highs[end])
        return low, high
