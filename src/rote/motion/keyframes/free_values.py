"""Keyframes whose values are free: straight lines from keyframe to keyframe, anywhere near a joint.

A keyframe lies on a sample in time, and anywhere within the bound of it in value. The search is
breadth first over samples and `VALUES` values at each: all lines from one of them are tested at
once, by the slopes that the samples on the way allow. The value of the sample is one of them, so
there are never more keyframes than with values on the samples. Then the values of the keyframes are
moved continuously to minimise their greatest error.

How good that is: rounding the values of the optimal keyframes to the searched values adds at most
1/(VALUES - 1) of the bound to their error. So for a bound there are no more keyframes than the
fewest for a bound that is smaller by this fraction, and the error of a number of keyframes exceeds
the least error by at most this fraction.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.motion.track import Array

__all__ = ["FreeJoint", "Knot"]

VALUES = 33
"""The number of values searched at each sample, evenly from bound to bound."""

_ROUNDING_RAD = 1e-12
_PANEL = 64  # samples ahead that are tested together
_ROWS = 512  # starts that are tested together
_HALVINGS = 40

Indices = NDArray[np.intp]


class Knot(NamedTuple):
    """A keyframe of one joint: which sample it lies on, and its value."""

    node: int
    value_rad: float


class FreeJoint:
    """One joint, to be played by straight lines between free values."""

    def __init__(self, times_s: Array, values_rad: Array) -> None:
        self._times_s, self._values = times_s, values_rad
        self._highest = np.maximum.accumulate(values_rad[::-1])[::-1]
        self._lowest = np.minimum.accumulate(values_rad[::-1])[::-1]

    def fewest(self, bound_rad: float, most: int) -> list[Knot] | None:
        """Return the fewest keyframes within the bound that were found; None if beyond `most`."""
        bound_rad += _ROUNDING_RAD
        if self._can_hold(0, float(self._values[0]), bound_rad):
            return []
        offsets = bound_rad * np.linspace(-1.0, 1.0, VALUES)
        levels = np.full((self._values.size, VALUES), -1, dtype=np.int32)
        starts, begin_rad = np.zeros(1, dtype=np.intp), self._values[:1]
        for level in range(1, most + 1):
            covered = self._reachable_values(starts, begin_rad, bound_rad)
            fresh = covered & (levels < 0)
            fresh[0] = False
            levels[fresh] = level
            starts, columns = np.nonzero(fresh)
            begin_rad = self._values[starts] + offsets[columns]
            rests = (self._highest[starts] - begin_rad <= bound_rad) & (
                begin_rad - self._lowest[starts] <= bound_rad
            )
            if rests.any():
                # Of those that can be held to the end, the one nearest to its sample.
                off = np.where(rests, np.abs(begin_rad - self._values[starts]), np.inf)
                last = int(off.argmin())
                return self._trace_back(
                    int(starts[last]), float(begin_rad[last]), levels, bound_rad
                )
            if not starts.size:
                return None
        return None

    def optimise_values(self, knots: list[Knot]) -> tuple[float, list[Knot]]:
        """Return the least error that keyframes on these samples can have, and their values."""
        if not knots:
            return self.error_rad(knots), knots
        nodes = [0, *(knot.node for knot in knots)]
        low, high = 0.0, max(self.error_rad(knots), _ROUNDING_RAD)
        best = knots
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            found = self._values_within(nodes, middle)
            if found is None:
                low = middle
                continue
            best = [Knot(node, value) for node, value in zip(nodes[1:], found, strict=True)]
            high = min(middle, self.error_rad(best))
            if high - low <= 1e-9:
                break
        return self.error_rad(best), best

    def error_rad(self, knots: list[Knot]) -> float:
        """Return the greatest error of these keyframes."""
        nodes = [0, *(knot.node for knot in knots)]
        values = [float(self._values[0]), *(knot.value_rad for knot in knots)]
        played = np.interp(self._times_s, self._times_s[nodes], values)
        return float(np.abs(played - self._values).max())

    # ---- the search -----------------------------------------------------------------------------

    def _can_hold(self, node: int, value_rad: float, bound_rad: float) -> bool:
        """Return whether a value can be held from a sample to the end."""
        high, low = float(self._highest[node]), float(self._lowest[node])
        return high - value_rad <= bound_rad and value_rad - low <= bound_rad

    def _reachable_values(
        self, starts: Indices, begin_rad: Array, bound_rad: float
    ) -> NDArray[np.bool_]:
        """Return which of the searched values some line from a start can reach, (n, VALUES)."""
        size = self._values.size
        edges = np.zeros(size * (VALUES + 1), dtype=np.int64)
        for first in range(0, starts.size, _ROWS):
            some, at_rad = starts[first : first + _ROWS], begin_rad[first : first + _ROWS]
            least, greatest = np.full(some.size, -np.inf), np.full(some.size, np.inf)
            place = some + 1
            while some.size:
                ends = place[:, None] + np.arange(_PANEL)
                inside = ends < size
                ends = np.minimum(ends, size - 1)
                seconds = self._times_s[ends] - self._times_s[some, None]
                seconds[~inside] = np.inf
                above = (self._values[ends] - at_rad[:, None]) / seconds
                slack = bound_rad / seconds
                low, high = above - slack, above + slack
                low[:, 0] = np.maximum(low[:, 0], least)
                high[:, 0] = np.minimum(high[:, 0], greatest)
                np.maximum.accumulate(low, axis=1, out=low)
                np.minimum.accumulate(high, axis=1, out=high)
                rows, steps = np.nonzero((low <= high) & inside)
                self._mark_ranges(
                    edges, ends[rows, steps], (seconds, low, high, at_rad), rows, steps, bound_rad
                )
                least, greatest = low[:, -1], high[:, -1]
                going = (least <= greatest) & inside[:, -1]
                some, at_rad, place = some[going], at_rad[going], place[going] + _PANEL
                least, greatest = least[going], greatest[going]
        counts = edges.reshape(size, VALUES + 1).cumsum(axis=1)
        return np.asarray(counts[:, :VALUES] > 0)

    def _mark_ranges(
        self,
        edges: NDArray[np.int64],
        ends: Indices,
        lines: tuple[Array, Array, Array, Array],
        rows: Indices,
        steps: Indices,
        bound_rad: float,
    ) -> None:
        """Note where the ranges begin and end that lines reach at their ends."""
        seconds, low, high, at_rad = lines
        floor = self._values[ends] - bound_rad
        scale = (VALUES - 1) / (2.0 * bound_rad)
        slack = 1e-9
        reached = at_rad[rows] + seconds[rows, steps] * np.stack(
            [low[rows, steps], high[rows, steps]]
        )
        first = np.ceil((reached[0] - floor) * scale - slack)
        last = np.floor((reached[1] - floor) * scale + slack)
        some = last >= first
        begin = np.clip(first[some], 0, VALUES - 1).astype(np.intp)
        after = np.clip(last[some], 0, VALUES - 1).astype(np.intp) + 1
        base = ends[some] * (VALUES + 1)
        edges += np.bincount(base + begin, minlength=edges.size)
        edges -= np.bincount(base + after, minlength=edges.size)

    def _trace_back(
        self, node: int, value_rad: float, levels: NDArray[np.int32], bound_rad: float
    ) -> list[Knot]:
        """Return keyframes that lead to a value, by lines backwards to a level less each time."""
        knots = [Knot(node, value_rad)]
        offsets = bound_rad * np.linspace(-1.0, 1.0, VALUES)
        grid = round(
            (value_rad - float(self._values[node]) + bound_rad) / (2 * bound_rad) * (VALUES - 1)
        )
        level = int(levels[node, grid])
        while level > 1:
            before = np.arange(node - 1, 0, -1)
            seconds = self._times_s[node] - self._times_s[before]
            falls = (value_rad - self._values[before]) / seconds
            slack = bound_rad / seconds
            low = np.maximum.accumulate(falls - slack)
            high = np.minimum.accumulate(falls + slack)
            level -= 1
            values = self._values[before, None] + offsets
            slopes = (value_rad - values) / seconds[:, None]
            close = 1e-9 * bound_rad / seconds[:, None]
            fits = (slopes >= low[:, None] - close) & (slopes <= high[:, None] + close)
            fits &= levels[before] == level
            row, column = divmod(int(np.where(fits, -np.abs(offsets), -np.inf).argmax()), VALUES)
            assert fits[row, column]  # the level says that there is one
            node, value_rad = int(before[row]), float(values[row, column])
            knots.append(Knot(node, value_rad))
        return knots[::-1]

    # ---- the best values of given keyframes -----------------------------------------------------

    def _values_within(self, nodes: list[int], bound_rad: float) -> list[float] | None:
        """Return values for keyframes on these samples within a bound; None if there are none.

        The reachable values at each are a range that follows from the range before it; then the
        ranges are traced back.
        """
        ranges = [(float(self._values[0]), float(self._values[0]))]
        for begin, end in pairwise(nodes):
            reached = self._reachable_range(begin, end, ranges[-1], bound_rad)
            if reached is None:
                return None
            ranges.append(reached)
        last = nodes[-1]
        low = max(ranges[-1][0], float(self._highest[last]) - bound_rad)
        high = min(ranges[-1][1], float(self._lowest[last]) + bound_rad)
        if low > high:
            return None
        value = (low + high) / 2
        values = [value]
        for begin, end, range_ in reversed(list(zip(nodes, nodes[1:], ranges, strict=False))):
            if begin == 0:
                break
            back = self._reachable_range(end, begin, (value, value), bound_rad)
            if back is None:
                return None
            value = (max(back[0], range_[0]) + min(back[1], range_[1])) / 2
            values.append(value)
        return values[::-1]

    def _reachable_range(
        self, begin: int, end: int, range_rad: tuple[float, float], bound_rad: float
    ) -> tuple[float, float] | None:
        """Return which values lines from a range at one sample have at another; None if none."""
        step = 1 if end > begin else -1
        nodes = np.arange(begin + step, end + step, step)
        share = (self._times_s[nodes] - self._times_s[begin]) / (
            self._times_s[end] - self._times_s[begin]
        )
        lines = _Lines(self._values[nodes], share, bound_rad)
        lowest = lines.first_feasible(*range_rad)
        highest = None if lowest is None else lines.first_feasible(*range_rad[::-1])
        if lowest is None or highest is None:
            return None
        return lines.bounds(highest)[0], lines.bounds(lowest)[1]


class _Lines:
    """Lines from a value at one end, and the bounds of their value at the other end.

    Both bounds fall as the first value rises, and the difference between them is concave.
    """

    def __init__(self, values: Array, share: Array, bound_rad: float) -> None:
        self._values, self._share, self._bound = values, share, bound_rad
        self._tilts = (1.0 - share) / share

    def bounds(self, begin_rad: float) -> tuple[float, float]:
        """Return the least and the greatest value at the other end."""
        low, _, high, _ = self._tightest_bounds(begin_rad)
        return low, high

    def _tightest_bounds(self, begin_rad: float) -> tuple[float, int, float, int]:
        middle = self._values / self._share - self._tilts * begin_rad
        slack = self._bound / self._share
        low, high = middle - slack, middle + slack
        least, most = int(low.argmax()), int(high.argmin())
        return float(low[least]), least, float(high[most]), most

    def first_feasible(self, begin_rad: float, end_rad: float) -> float | None:
        """Return the first value from `begin_rad` towards `end_rad` that some line begins with.

        Newton's steps on a concave function of straight pieces never go too far, and end.
        """
        towards = 1.0 if end_rad >= begin_rad else -1.0
        value = begin_rad
        for _ in range(2 * len(self._values) + 2):
            low, least, high, most = self._tightest_bounds(value)
            room = high - low
            if room >= -1e-12:
                return value
            slope = towards * float(self._tilts[least] - self._tilts[most])
            if slope <= 1e-15:
                return None
            value -= towards * room / slope
            if (end_rad - value) * towards < -1e-12:
                return None
        return None
