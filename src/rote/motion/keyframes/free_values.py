"""Keyframes whose values are free: straight lines from keyframe to keyframe, anywhere near a joint.

A keyframe lies on a sample in time, and anywhere within the bound of it in value. The search is
breadth first over samples and `VALUES` values at each: all lines from one value are tested at once,
by the slopes that the samples on the way allow. The value of the sample itself is one of them, so
there are never more keyframes than with values on the samples. Then the values of the keyframes are
moved continuously to minimise their greatest error.

How near this is to the optimum: rounding the values of the optimal keyframes to the searched values
adds at most 1/(VALUES - 1) of the bound to their error. So for a bound there are no more keyframes
than the fewest for a bound that is smaller by this fraction, and the error of a number of keyframes
exceeds the least error by at most this fraction.
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
_HALVINGS = 40  # of the range of the least error, at most

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

    def find_fewest(self, bound_rad: float, max_count: int) -> list[Knot] | None:
        """Return the fewest keyframes that the search finds within the bound.

        None if they are more than `max_count`.
        """
        bound_rad += _ROUNDING_RAD
        starts, begin_rad = np.zeros(1, dtype=np.intp), self._values[:1]
        if self._can_hold_to_end(starts, begin_rad, bound_rad).all():
            return []
        offsets = bound_rad * np.linspace(-1.0, 1.0, VALUES)
        # How many keyframes it takes to reach each value of each sample; -1 if that is not known.
        levels = np.full((self._values.size, VALUES), -1, dtype=np.int32)
        for level in range(1, max_count + 1):
            is_reachable = self._find_reachable_values(starts, begin_rad, bound_rad)
            is_new = is_reachable & (levels < 0)
            is_new[0] = False
            levels[is_new] = level
            starts, columns = np.nonzero(is_new)
            begin_rad = self._values[starts] + offsets[columns]
            can_hold = self._can_hold_to_end(starts, begin_rad, bound_rad)
            if can_hold.any():
                # Of those that can be held to the end, the one nearest to its sample.
                distances = np.where(can_hold, np.abs(begin_rad - self._values[starts]), np.inf)
                last = int(distances.argmin())
                return self._trace_back(
                    int(starts[last]), float(begin_rad[last]), levels, bound_rad
                )
            if not starts.size:
                return None
        return None

    def optimise_values(self, knots: list[Knot]) -> tuple[float, list[Knot]]:
        """Return the least error of keyframes on the samples of `knots`, and these keyframes."""
        if not knots:
            return self.error_rad(knots), knots
        nodes = [0, *(knot.node for knot in knots)]
        low, high = 0.0, max(self.error_rad(knots), _ROUNDING_RAD)
        best = knots
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            values = self._find_values_within(nodes, middle)
            if values is None:
                low = middle
                continue
            best = [Knot(node, value) for node, value in zip(nodes[1:], values, strict=True)]
            high = min(middle, self.error_rad(best))
            if high - low <= 1e-9:
                break
        return self.error_rad(best), best

    def error_rad(self, knots: list[Knot]) -> float:
        """Return the greatest error of the lines through these keyframes, in rad."""
        nodes = [0, *(knot.node for knot in knots)]
        values = [float(self._values[0]), *(knot.value_rad for knot in knots)]
        played = np.interp(self._times_s, self._times_s[nodes], values)
        return float(np.abs(played - self._values).max())

    # ---- the search -----------------------------------------------------------------------------

    def _can_hold_to_end(
        self, nodes: Indices, values_rad: Array, bound_rad: float
    ) -> NDArray[np.bool_]:
        """Return which values can be held from their samples to the end within the bound."""
        is_high_enough = self._highest[nodes] - values_rad <= bound_rad
        is_low_enough = values_rad - self._lowest[nodes] <= bound_rad
        return np.asarray(is_high_enough & is_low_enough)

    def _find_reachable_values(
        self, starts: Indices, begin_rad: Array, bound_rad: float
    ) -> NDArray[np.bool_]:
        """Return which of the searched values some line from a start can reach, (n, VALUES).

        Lines begin at the samples `starts` with the values `begin_rad`. Each sample ahead allows a
        range of slopes; the ranges are intersected from sample to sample.
        """
        size = self._values.size
        # Along the values of a sample: how many more ranges include a value than the one before.
        changes = np.zeros(size * (VALUES + 1), dtype=np.int64)
        for first in range(0, starts.size, _ROWS):
            active, at_rad = starts[first : first + _ROWS], begin_rad[first : first + _ROWS]
            min_slope, max_slope = np.full(active.size, -np.inf), np.full(active.size, np.inf)
            position = active + 1  # the first sample ahead that is not tested yet
            while active.size:
                ends = position[:, None] + np.arange(_PANEL)
                inside = ends < size
                ends = np.minimum(ends, size - 1)
                seconds = self._times_s[ends] - self._times_s[active, None]
                seconds[~inside] = np.inf
                slopes = (self._values[ends] - at_rad[:, None]) / seconds
                slack = bound_rad / seconds
                low, high = slopes - slack, slopes + slack
                # The slopes allowed by earlier panels go into the first column, so that the
                # running extremes include them.
                low[:, 0] = np.maximum(low[:, 0], min_slope)
                high[:, 0] = np.minimum(high[:, 0], max_slope)
                np.maximum.accumulate(low, axis=1, out=low)
                np.minimum.accumulate(high, axis=1, out=high)
                rows, steps = np.nonzero((low <= high) & inside)
                lengths_s = seconds[rows, steps]
                min_rad = at_rad[rows] + lengths_s * low[rows, steps]
                max_rad = at_rad[rows] + lengths_s * high[rows, steps]
                self._mark_ranges(changes, ends[rows, steps], min_rad, max_rad, bound_rad)
                min_slope, max_slope = low[:, -1], high[:, -1]
                is_open = (min_slope <= max_slope) & inside[:, -1]
                active, at_rad = active[is_open], at_rad[is_open]
                position = position[is_open] + _PANEL
                min_slope, max_slope = min_slope[is_open], max_slope[is_open]
        counts = changes.reshape(size, VALUES + 1).cumsum(axis=1)
        return np.asarray(counts[:, :VALUES] > 0)

    def _mark_ranges(
        self,
        changes: NDArray[np.int64],
        ends: Indices,
        min_rad: Array,
        max_rad: Array,
        bound_rad: float,
    ) -> None:
        """Add ranges of values that lines reach, from `min_rad` to `max_rad` at the samples `ends`.

        In `changes` that is +1 at the first searched value in a range, and -1 after the last.
        """
        floor = self._values[ends] - bound_rad
        scale = (VALUES - 1) / (2.0 * bound_rad)  # from rad above `floor` to indices of values
        tolerance = 1e-9  # of an index, for rounding
        first = np.ceil((min_rad - floor) * scale - tolerance)
        last = np.floor((max_rad - floor) * scale + tolerance)
        is_reached = last >= first
        begin = np.clip(first[is_reached], 0, VALUES - 1).astype(np.intp)
        stop = np.clip(last[is_reached], 0, VALUES - 1).astype(np.intp) + 1
        offsets = ends[is_reached] * (VALUES + 1)
        changes += np.bincount(offsets + begin, minlength=changes.size)
        changes -= np.bincount(offsets + stop, minlength=changes.size)

    def _trace_back(
        self, node: int, value_rad: float, levels: NDArray[np.int32], bound_rad: float
    ) -> list[Knot]:
        """Return the keyframes that lead to a value, found backwards from level to level."""
        knots = [Knot(node, value_rad)]
        offsets = bound_rad * np.linspace(-1.0, 1.0, VALUES)
        value_index = round(
            (value_rad - float(self._values[node]) + bound_rad) / (2 * bound_rad) * (VALUES - 1)
        )
        level = int(levels[node, value_index])
        while level > 1:
            earlier = np.arange(node - 1, 0, -1)
            seconds = self._times_s[node] - self._times_s[earlier]
            slopes_to_samples = (value_rad - self._values[earlier]) / seconds
            slack = bound_rad / seconds
            low = np.maximum.accumulate(slopes_to_samples - slack)
            high = np.minimum.accumulate(slopes_to_samples + slack)
            level -= 1
            values = self._values[earlier, None] + offsets
            slopes = (value_rad - values) / seconds[:, None]
            tolerance = 1e-9 * bound_rad / seconds[:, None]
            fits = (slopes >= low[:, None] - tolerance) & (slopes <= high[:, None] + tolerance)
            fits &= levels[earlier] == level
            # Of the values from which a line fits, the one nearest to its sample.
            row, column = divmod(int(np.where(fits, -np.abs(offsets), -np.inf).argmax()), VALUES)
            # A value of one level was reached from a value of the level below.
            assert fits[row, column]
            node, value_rad = int(earlier[row]), float(values[row, column])
            knots.append(Knot(node, value_rad))
        return knots[::-1]

    # ---- the best values of given keyframes -----------------------------------------------------

    def _find_values_within(self, nodes: list[int], bound_rad: float) -> list[float] | None:
        """Return values for keyframes on these samples within a bound; None if there are none.

        The reachable values at each keyframe are a range, which follows from the range before it.
        Then a value in each range is chosen, from the last to the first.
        """
        ranges = [(float(self._values[0]), float(self._values[0]))]
        for begin, end in pairwise(nodes):
            reached = self._find_reachable_range(begin, end, ranges[-1], bound_rad)
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
        for begin, end, reachable in reversed(list(zip(nodes, nodes[1:], ranges, strict=False))):
            if begin == 0:
                break  # the first sample is no keyframe: its value is fixed
            leading = self._find_reachable_range(end, begin, (value, value), bound_rad)
            if leading is None:
                return None
            value = (max(leading[0], reachable[0]) + min(leading[1], reachable[1])) / 2
            values.append(value)
        return values[::-1]

    def _find_reachable_range(
        self, begin: int, end: int, range_rad: tuple[float, float], bound_rad: float
    ) -> tuple[float, float] | None:
        """Return the values at the sample `end` that lines from a range of values at `begin` reach.

        None if no line does. `end` may be before `begin`.
        """
        step = 1 if end > begin else -1
        nodes = np.arange(begin + step, end + step, step)
        fractions = (self._times_s[nodes] - self._times_s[begin]) / (
            self._times_s[end] - self._times_s[begin]
        )
        lines = _Lines(self._values[nodes], fractions, bound_rad)
        lowest = lines.first_feasible(*range_rad)
        highest = None if lowest is None else lines.first_feasible(*range_rad[::-1])
        if lowest is None or highest is None:
            return None
        # A line that begins higher ends lower.
        return lines.bounds(highest)[0], lines.bounds(lowest)[1]


class _Lines:
    """Lines from a value at one end, and the bounds of their value at the other end.

    The samples are between the ends, `fractions` of the way from the first, and lines stay within
    `bound_rad` of them. Both bounds fall as the first value rises, and the difference between them
    is concave.
    """

    def __init__(self, values: Array, fractions: Array, bound_rad: float) -> None:
        self._values, self._fractions, self._bound = values, fractions, bound_rad
        self._tilts = (1.0 - fractions) / fractions

    def bounds(self, begin_rad: float) -> tuple[float, float]:
        """Return the least and the greatest value at the other end."""
        low, _, high, _ = self._find_tightest_bounds(begin_rad)
        return low, high

    def _find_tightest_bounds(self, begin_rad: float) -> tuple[float, int, float, int]:
        """Return both bounds at the other end, each followed by the index of its sample."""
        middle = self._values / self._fractions - self._tilts * begin_rad
        slack = self._bound / self._fractions
        low, high = middle - slack, middle + slack
        low_index, high_index = int(low.argmax()), int(high.argmin())
        return float(low[low_index]), low_index, float(high[high_index]), high_index

    def first_feasible(self, begin_rad: float, end_rad: float) -> float | None:
        """Return the first value from `begin_rad` towards `end_rad` that allows a line.

        None if there is none. The gap between the bounds is concave and piecewise linear in the
        value, so Newton steps towards its zero never overshoot.
        """
        direction = 1.0 if end_rad >= begin_rad else -1.0
        value = begin_rad
        for _ in range(2 * len(self._values) + 2):
            low, low_index, high, high_index = self._find_tightest_bounds(value)
            gap = high - low
            if gap >= -1e-12:
                return value
            slope = direction * float(self._tilts[low_index] - self._tilts[high_index])
            if slope <= 1e-15:
                return None
            value -= direction * gap / slope
            if (end_rad - value) * direction < -1e-12:
                return None
        return None
