"""Few keyframes for a long motion: the fewest for an error, or the least error for a number.

Keyframes play through `interpolate.sample_keyframes`: the start pose is known and costs nothing, a
joint without keyframes holds its start value, and each joint holds after its last keyframe. They
lie on the track's samples in time and value. A keyframe's time is in whole milliseconds, so each
sample counts as taken at the nearest one; errors are between the keyframes and those samples.

A joint is a graph: its samples are the nodes, the stretch between two keyframes is an edge, and
what is left after the last keyframe is the hold. Both modes are shortest paths in it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.errors import BadRequestError, UnsafeMotionError
from rote.messages import Interpolation, Keyframe
from rote.motion.interpolate import sample_keyframes
from rote.motion.track import Array, Track

ABSURD_RAD = 0.15
"""Beyond this the keyframes are another motion: 9 cm at the end of a 0.6 m arm."""
LONGEST_MS = 65_535
"""A keyframe's time is a u16 on the wire."""
SEARCHED_SAMPLES = 600
"""A budget is spent exactly on tracks up to this long; of longer ones every n-th sample is used."""

_ROUNDING_RAD = 1e-12  # start + (end - start) is not always end, so a bound of 0 needs this much
_RESOLUTION_RAD = 1e-9  # a budget's error is the smallest to within this; an f32 rounds by 1e-7
_PROBES = (0.5, 0.25, 0.75)
_CHUNK = 1 << 20  # numbers in one temporary array, which bounds the memory of a long track

Measure = Literal["max", "rms"]
Times = NDArray[np.int64]
Indices = NDArray[np.intp]
Path = list[int]


class _Blend(NamedTuple):
    """The fraction of the rise at a fraction of the time: monotone from 0 to 1."""

    at: Callable[[Array], Array]
    terms: tuple[tuple[int, float], ...]
    """The same as powers of the time and their factors."""


_BLENDS = {
    Interpolation.LINEAR: _Blend(lambda u: u, ((1, 1.0),)),
    Interpolation.SMOOTH: _Blend(lambda u: u * u * (3.0 - 2.0 * u), ((2, 3.0), (3, -2.0))),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """Keyframes, and how far they play from the samples they were made of."""

    keyframes: tuple[Keyframe, ...]
    """By time, then by joint."""
    interpolation: Interpolation
    max_error_rad: float
    rms_error_rad: float
    """Over all samples of all joints."""
    worst_joint: str
    worst_time_s: float
    """From the start of the track."""

    @property
    def absurd(self) -> bool:
        """Whether the keyframes play another motion than the one that was taught."""
        return self.max_error_rad > ABSURD_RAD


def check_faithful(compressed: Compressed, limit_rad: float = ABSURD_RAD) -> None:
    """Raise `UnsafeMotionError` if the keyframes stray from the track by more than `limit_rad`.

    Not a `BadRequestError`: the call was sound, and what must not happen is that an arm moves
    where nobody has led it. The error names the joint, the moment and the number.
    """
    if compressed.max_error_rad <= limit_rad:
        return
    reason = (
        f"{len(compressed.keyframes)} keyframes miss the motion by "
        f"{compressed.max_error_rad:.3f} rad, limit {limit_rad:.3f}; store it at full rate"
    )
    raise UnsafeMotionError(compressed.worst_joint, compressed.worst_time_s, reason)


def compress_to_bound(track: Track, bound_rad: float, interpolation: Interpolation) -> Compressed:
    """Return the fewest keyframes that keep every joint within `bound_rad` of every sample."""
    blend, times_ms = _blend(interpolation), _whole_ms(track)
    if not (np.isfinite(bound_rad) and bound_rad >= 0):
        raise BadRequestError(f"an error bound of {bound_rad} rad is not a number from 0 up")
    paths = []
    for values in track.joints_rad.T:
        path = _Joint(times_ms / 1000.0, values, blend).fewest(bound_rad)
        assert path is not None  # every sample a keyframe: no error at all
        paths.append(path)
    return _compressed(track, times_ms, paths, interpolation)


def compress_to_budget(
    track: Track, count: int, interpolation: Interpolation, measure: Measure = "max"
) -> Compressed:
    """Return at most `count` keyframes, for all joints together, with the least error.

    Fewer come back where more would not lower the error. Tracks of more than `SEARCHED_SAMPLES`
    have keyframes on every n-th sample; the errors stated are over all samples all the same.
    """
    blend, times_ms = _blend(interpolation), _whole_ms(track)
    if count < 0:
        raise BadRequestError(f"a budget of {count} keyframes is less than none")
    if measure not in {"max", "rms"}:
        raise BadRequestError(f"no error measure {measure!r}; known: max, rms")
    step = -(-len(track) // SEARCHED_SAMPLES)
    times_s, joints_rad = times_ms[::step] / 1000.0, track.joints_rad[::step]
    count = min(count, (times_s.size - 1) * joints_rad.shape[1])
    search = _least_max if measure == "max" else _least_squares
    found = search(times_s, joints_rad, count, blend)
    paths = [[step * node for node in path] for path in found]
    return _compressed(track, times_ms, paths, interpolation)


def _blend(interpolation: Interpolation) -> _Blend:
    if interpolation == Interpolation.CUBIC:
        # A plain cubic through 20 keyframes of a wave missed by 1.3 to 1.6 rad. Also, its slope at
        # a keyframe depends on the neighbours, so no stretch can be judged by itself.
        words = "no keyframes for cubic interpolation: between few of them a cubic overshoots"
        raise BadRequestError(words, "Choose smooth step or linear.")
    if interpolation not in _BLENDS:
        raise BadRequestError(f"no interpolation {interpolation!r}; known: linear, smooth")
    return _BLENDS[interpolation]


def _whole_ms(track: Track) -> Times:
    """Return the samples' times in whole milliseconds from the first, as keyframes have them."""
    if len(track) < 2 or not track.names:
        raise BadRequestError("keyframes need a motion: at least one joint and two samples")
    times_ms: Times = np.rint((track.times_s - track.times_s[0]) * 1000.0).astype(np.int64)
    if times_ms[-1] > LONGEST_MS:
        words = f"a motion of {track.duration_s:.3f} s; keyframes reach {LONGEST_MS / 1000} s"
        raise BadRequestError(words, "Cut it in parts, or store it at full rate.")
    if (np.diff(times_ms) == 0).any():
        raise BadRequestError("two samples in one millisecond", "Resample to 1000 Hz or less.")
    return times_ms


def _compressed(track: Track, times_ms: Times, paths: list[Path], how: Interpolation) -> Compressed:
    """Make keyframes of the paths and measure them by playing them, not by what the search said."""
    values, how = track.joints_rad, Interpolation(how)
    chosen = sorted((node, joint) for joint, path in enumerate(paths) for node in path)
    keyframes = tuple(
        Keyframe(joint=joint, time_ms=int(times_ms[node]), value_rad=float(values[node, joint]))
        for node, joint in chosen
    )
    played = sample_keyframes(keyframes, values[0], times_ms / 1000.0, how)
    errors = np.abs(played - values)
    row, joint = divmod(int(errors.argmax()), errors.shape[1])
    return Compressed(
        keyframes=keyframes,
        interpolation=how,
        max_error_rad=float(errors[row, joint]),
        rms_error_rad=float(np.sqrt(np.mean(errors**2))),
        worst_joint=track.names[joint],
        worst_time_s=float(times_ms[row] / 1000.0),
    )


class _Joint:
    """One joint's graph for the greatest error: which stretch stays within a bound.

    Going as far as possible is not optimal here: with values fixed to the samples a long stretch
    can be within the bound while a shorter one is not, and the furthest sample can be a bad one to
    start from. Breadth first is: a node is reached at the level of its fewest keyframes.
    """

    def __init__(self, times_s: Array, values: Array, blend: _Blend, *, keep: bool = False) -> None:
        self.times_s, self.values, self.blend = times_s, values, blend
        highest = np.maximum.accumulate(values[::-1])[::-1]
        lowest = np.minimum.accumulate(values[::-1])[::-1]
        self.held = np.maximum(highest - values, values - lowest)  # if held from here to the end
        size = values.size if keep else 0
        # With `keep`, what is known about each stretch's error from below, for the next bound.
        self.known = np.zeros((size, size))
        self.seen = np.zeros(size, dtype=bool)
        self.found: tuple[float, float, Path] = (0.0, np.inf, [])

    def fewest_again(self, bound_rad: float, most: int) -> Path | None:
        """Like `fewest`, for bound after bound; `found` is (bound, its error, path)."""
        asked_rad, error_rad, path = self.found
        # A tighter bound never needs fewer, so a path that happens to keep it is still the answer.
        if error_rad <= bound_rad <= asked_rad:
            return path if len(path) <= most else None
        fewest = self.fewest(bound_rad, most)
        if fewest is not None:
            nodes = np.array([0, *fewest])
            worst = self._errors(nodes[:-1], nodes[1:]).max(initial=self.held[nodes[-1]])
            self.found = (bound_rad, float(worst), fewest)
        return fewest

    def fewest(self, bound_rad: float, most: int | None = None) -> Path | None:
        """Return the nodes of the fewest keyframes within the bound; None if beyond `most`."""
        bound_rad += _ROUNDING_RAD
        parents = np.full(self.values.size, -1)
        frontier, parents[0], level = np.array([0]), 0, 0
        while not (self.held[frontier] <= bound_rad).any():
            if level == most:
                return None
            frontier = self._expand(frontier, parents, bound_rad)
            level += 1
        node = int(frontier[np.argmin(self.held[frontier])])
        path: Path = []
        while node:
            path.append(node)
            node = int(parents[node])
        return path[::-1]

    def _expand(self, frontier: Indices, parents: Indices, bound_rad: float) -> Indices:
        """Note the parents of all nodes one stretch further, and return those nodes."""
        unreached = np.nonzero(parents < 0)[0]
        # Latest first: a stretch from there is short, so it is cheap to judge and likely good.
        rows = max(1, _CHUNK // (8 * self.values.size))
        for first in range(frontier.size, 0, -rows):
            part = frontier[max(0, first - rows) : first]
            waiting = unreached[parents[unreached] < 0]
            starts, ends = np.nonzero(self._floors(part, waiting) <= bound_rad)
            self._judge(part[starts], waiting[ends], parents, bound_rad)
        return unreached[parents[unreached] >= 0]

    def _judge(self, starts: Indices, ends: Indices, parents: Indices, bound_rad: float) -> None:
        """Measure the stretches, the shortest to each end first, until its parent is found."""
        order = np.lexsort((ends - starts, ends))
        starts, ends, tries = starts[order], ends[order], 1  # tries double: most ends need one
        while ends.size:
            rank = np.arange(ends.size) - np.searchsorted(ends, ends)
            now = rank < tries
            first, last = starts[now], ends[now]
            errors = self._errors(first, last)
            if self.seen.size:
                self.known[first, last] = errors
            good = errors <= bound_rad
            parents[last[good]] = first[good]
            later = ~now & (parents[ends] < 0)
            starts, ends = starts[later], ends[later]
            tries *= 2

    def _floors(self, starts: Indices, ends: Indices) -> Array:
        """Return what each stretch errs by at least, shape (starts, ends); inf if it runs back."""
        if not self.seen.size:
            return self._probe(starts, ends)
        fresh = starts[~self.seen[starts]]
        self.known[fresh] = self._probe(fresh, np.arange(self.values.size))
        self.seen[fresh] = True
        return self.known[np.ix_(starts, ends)]

    def _probe(self, starts: Indices, ends: Indices) -> Array:
        """Return the greatest error at a few samples on the way, a cheap bound from below."""
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

    def _errors(self, starts: Indices, ends: Indices) -> Array:
        """Return the greatest error of each stretch, pair by pair."""
        errors = np.zeros(starts.size)
        for part, inner in _chunks(ends - starts):
            left, right = starts[part, None], ends[part, None]
            at = np.minimum(left + inner, right)  # past its end a short stretch repeats the end
            u = (self.times_s[at] - self.times_s[left]) / (self.times_s[right] - self.times_s[left])
            there = self.values[left] + self.blend.at(u) * (self.values[right] - self.values[left])
            errors[part] = np.abs(there - self.values[at]).max(axis=1)
        return errors


def _chunks(lengths: Indices) -> Iterator[tuple[Indices, Indices]]:
    """Yield rows of about equal length, and the steps within them, in pieces of bounded size."""
    order = np.argsort(lengths, kind="stable")
    last = order.size
    while last:
        longest = int(lengths[order[last - 1]])
        # No row shorter than three quarters of the longest, or most of the work would be padding.
        similar = int(np.searchsorted(lengths[order], 0.75 * longest))
        first = max(similar, last - max(1, _CHUNK // longest))
        yield order[first:last], np.arange(1, longest + 1)
        last = first


def _least_max(times_s: Array, joints_rad: Array, count: int, blend: _Blend) -> list[Path]:
    """Return the paths with the smallest greatest error, by halving the bound in question.

    The fewest keyframes for a bound never rise with the bound, so the smallest bound that the
    budget affords is the optimum. What a solution really errs by is the next upper end.
    """
    joints = [_Joint(times_s, values, blend, keep=True) for values in joints_rad.T]
    paths: list[Path] = [[] for _ in joints]
    low, high, halve = 0.0, max(float(joint.held[0]) for joint in joints), True
    while high - low > _RESOLUTION_RAD:
        # Every other try asks whether `high` is the optimum already, which ends the search at once.
        bound_rad = (low + high) / 2 if halve else high - _RESOLUTION_RAD
        halve = not halve
        found = _afford(joints, bound_rad, count)
        if found is None:
            low = bound_rad
        else:
            paths, high = found, max(joint.found[1] for joint in joints)
    return paths


def _afford(joints: list[_Joint], bound_rad: float, count: int) -> list[Path] | None:
    """Return each joint's fewest keyframes within the bound, or None if they exceed `count`."""
    paths: list[Path] = []
    for joint in joints:
        path = joint.fewest_again(bound_rad, count - sum(map(len, paths)))
        if path is None:
            return None
        paths.append(path)
    return paths


def _least_squares(times_s: Array, joints_rad: Array, count: int, blend: _Blend) -> list[Path]:
    """Return the paths with the smallest sum of squares, by dynamic programming."""
    stretches = _square_sums(times_s, joints_rad, blend)
    # best[k, j]: the least sum up to sample j with the k-th keyframe there, for all joints at once.
    best = np.full((count + 1, *joints_rad.shape), np.inf)
    best[0, 0] = 0.0
    for start, sums in enumerate(stretches):
        ahead = best[1:, start + 1 :]
        np.minimum(ahead, best[:-1, start, None] + sums, out=ahead)
    ended = best + _hold_sums(joints_rad)
    shares = _split(ended.min(axis=1))
    paths = []
    for joint, share in enumerate(shares):
        node = int(ended[share, :, joint].argmin())
        path: Path = []
        for before in range(share - 1, -1, -1):
            path.append(node)
            last = [stretches[start][node - start - 1, joint] for start in range(node)]
            node = int((best[before, :node, joint] + last).argmin())
        paths.append(path[::-1])
    return paths


def _square_sums(times_s: Array, joints_rad: Array, blend: _Blend) -> list[Array]:
    """Return for each start the sums of squared errors, shape (ends after it, joints).

    The blend is a polynomial, so all ends of a start share the running sums of its powers. They
    are taken from that start on, not as differences of sums from 0, which would lose all digits.
    """
    sums = []
    for start in range(times_s.size - 1):
        since_s = (times_s[start + 1 :] - times_s[start])[:, None]
        rise = joints_rad[start + 1 :] - joints_rad[start]
        square = np.cumsum(rise**2, axis=0)
        for power, factor in blend.terms:
            along = np.cumsum(since_s**power * rise, axis=0) / since_s**power
            square -= 2.0 * factor * rise * along
        for (one, factor), (other, by) in product(blend.terms, repeat=2):
            power = one + other
            squares = np.cumsum(since_s**power, axis=0) / since_s**power
            square += factor * by * squares * rise**2
        sums.append(np.maximum(square, 0.0))
    return sums


def _hold_sums(joints_rad: Array) -> Array:
    """Return for each sample the sum of squares if its value is held to the end."""
    values = joints_rad - joints_rad.mean(axis=0)  # a joint far from 0 loses no digits
    after = np.arange(values.shape[0])[::-1, None]
    total = np.cumsum(values[::-1], axis=0)[::-1] - values
    square = np.cumsum(values[::-1] ** 2, axis=0)[::-1] - values**2
    sums: Array = np.maximum(square - 2.0 * values * total + after * values**2, 0.0)
    return sums


def _split(costs: Array) -> list[int]:
    """Return how many keyframes each joint gets; `costs` is (keyframes, joints), from 0 up."""
    total, choices = np.zeros(len(costs)), []
    for cost in costs.T:
        sums = [total[spent::-1] + cost[: spent + 1] for spent in range(len(costs))]
        choices.append([int(row.argmin()) for row in sums])
        total = np.array([row.min() for row in sums])
    left, shares = int(total.argmin()), []
    for choice in choices[::-1]:
        shares.append(choice[left])
        left -= choice[left]
    return shares[::-1]
