"""Few keyframes for a long motion: the fewest for an error, or the least error for a number.

Keyframes play through `interpolate.sample_keyframes`: the start pose is known and costs nothing, a
joint without keyframes holds its start value, and each joint holds after its last keyframe. They
lie on the track's samples in time, and in value too unless values are free; of such keyframes both
modes find the optimum. A keyframe's time is in whole milliseconds, so each sample counts as taken
at the nearest one; errors are between the keyframes and those samples.

A joint is a graph: its samples are the nodes, the stretch between two keyframes is an edge, and
what is left after the last keyframe is the hold. Both modes are shortest paths in it. With free
values straight lines are better still; `free_values` states how near that is to the optimum.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rote.errors import BadRequestError, UnsafeMotionError
from rote.messages import Interpolation, Keyframe
from rote.motion.interpolate import sample_keyframes
from rote.motion.keyframes.free_values import FreeJoint, Knot
from rote.motion.keyframes.graph import BLENDS, Blend, JointGraph, Path
from rote.motion.keyframes.hand_error import HandError, hand_error, levers_m
from rote.motion.track import Array, Track
from rote.text import Act, Text

__all__ = [
    "compress_to_bound", "compress_to_budget", "Compressed", "Measure", "check_faithful",
    "played_track",
]  # fmt: skip

ABSURD_RAD = 0.15
"""Beyond this the keyframes are another motion: 9 cm at the end of a 0.6 m arm."""
LONGEST_MS = 65_535
"""A keyframe's time is a u16 on the wire."""
SEARCHED_SAMPLES = 600
"""The budget is exact for tracks up to this long; of longer ones every n-th sample is used."""

MIN_HAND_MM = 0.01
"""The tightest bound for the hands: the rounding of a 32-bit joint is a tenth of that."""

_SHARINGS = 5  # attempts to give the joints more, after a solution that keeps the hands was found
_RESOLUTION_RAD = 1e-9  # a budget's error is the smallest to within this; an f32 rounds by 1e-7

_FREE_RESOLUTION = 0.002  # the same for free values, as a part of it

Measure = Literal["max", "rms"]
Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """Keyframes, and how far their playback is from the samples they were made from."""

    keyframes: tuple[Keyframe, ...]
    """By time, then by joint."""
    interpolation: Interpolation
    max_error_rad: float
    rms_error_rad: float
    """Over all samples of all joints."""
    worst_joint: str
    worst_time_s: float
    """In seconds from the start of the track."""
    hand: HandError | None = None
    """The largest error of a hand; None if no joint of the track moves one."""

    @property
    def absurd(self) -> bool:
        """Whether the keyframes play another motion than the one that was taught."""
        return self.max_error_rad > ABSURD_RAD


def check_faithful(compressed: Compressed, limit_rad: float = ABSURD_RAD) -> None:
    """Raise `UnsafeMotionError` if the keyframes differ from the track by more than `limit_rad`.

    It is not a `BadRequestError`: the call was valid, but an arm must not move where it was not
    led. The error names the joint, the time and the number.
    """
    if compressed.max_error_rad <= limit_rad:
        return
    reason = (
        f"{len(compressed.keyframes)} keyframes miss the motion by "
        f"{compressed.max_error_rad:.3f} rad, limit {limit_rad:.3f}"
    )
    remedy = Text("Play the track itself instead: {play}.", play=Act.PLAY_TRACK)
    raise UnsafeMotionError(compressed.worst_joint, compressed.worst_time_s, reason, remedy)


def compress_to_bound(
    track: Track,
    bound_rad: float,
    interpolation: Interpolation,
    *,
    hand_mm: float | None = None,
    free: bool = False,
    exact: bool = False,
) -> Compressed:
    """Return the fewest keyframes that keep every joint within `bound_rad` of every sample.

    With `free`, their values need not lie on samples; only for linear interpolation. By smooth
    steps, a joint for which more than `MANY_STRETCHES` are possible (it drifts slowly for a minute)
    has keyframes on every n-th sample unless `exact` asks for the fewest: in a tenth of the time,
    and about one in a hundred more.

    With `hand_mm` the hands stay within this many millimetres too. Then the keyframes are few, but
    the fewest only if the joints' bound alone keeps the hands within theirs: the best division of
    the error among the joints of an arm is not searched in full.
    """
    blend, times_ms = _select_blend(interpolation), _times_in_ms(track)
    if not (np.isfinite(bound_rad) and bound_rad >= 0):
        raise BadRequestError(f"an error bound of {bound_rad} rad is not a number from 0 up")
    if free:
        _check_free(interpolation)
        frees = [FreeJoint(times_ms / 1000.0, values) for values in track.joints_rad.T]

        def find(column: int, joint_rad: float) -> list[Knot] | None:
            return frees[column].fewest(joint_rad, len(track))
    else:
        times_s, thin = times_ms / 1000.0, interpolation == Interpolation.SMOOTH and not exact
        joints = [JointGraph(times_s, values, blend, thin=thin) for values in track.joints_rad.T]

        def find(column: int, joint_rad: float) -> list[Knot] | None:
            path = joints[column].fewest_again(joint_rad, len(track))
            return None if path is None else _knots_on_samples(path, track.joints_rad[:, column])

    def within(bounds_rad: Array) -> Compressed:
        paths = []
        for column, joint_rad in enumerate(bounds_rad.tolist()):
            path = find(column, joint_rad)
            assert path is not None  # every sample a keyframe: no error at all
            paths.append(path)
        return _make_compressed(track, times_ms, paths, interpolation)

    found = within(np.full(len(track.names), bound_rad))
    return (
        found if hand_mm is None else _tighten_for_hands(track, found, within, (bound_rad, hand_mm))
    )


def _tighten_for_hands(
    track: Track,
    found: Compressed,
    within: Callable[[Array], Compressed],
    limits: tuple[float, float],
) -> Compressed:
    """Tighten the joints' bounds until the hands are within theirs, and no more.

    A joint may move a hand by at most `share_mm`, whatever its lever; this share is searched.
    Whether the hands are within their bound is measured, not derived.
    """
    bound_rad, hand_mm = limits
    if found.hand is None:
        raise BadRequestError("no joint of this track moves a hand", "Leave the hands' bound out.")
    if not (np.isfinite(hand_mm) and hand_mm >= MIN_HAND_MM):
        raise BadRequestError(f"a hand's bound of {hand_mm} mm is not one from {MIN_HAND_MM} up")
    if found.hand.error_mm <= hand_mm:
        return found
    levers_mm = 1000.0 * np.maximum(levers_m(track), 1e-9)

    def sharing(share_mm: float) -> tuple[Compressed, bool]:
        tried = within(np.minimum(bound_rad, share_mm / levers_mm))
        return tried, tried.hand is not None and tried.hand.error_mm <= hand_mm

    high = bound_rad * float(levers_mm.max())
    low = min(high, hand_mm)
    found, fits = sharing(low)
    while not fits:
        low, high = low / 2, low
        found, fits = sharing(low)
    for _ in range(_SHARINGS):
        middle = float(np.sqrt(low * high))
        tried, fits = sharing(middle)
        if fits:
            low = middle
            found = min(tried, found, key=lambda each: len(each.keyframes))
        else:
            high = middle
    return found


def compress_to_budget(
    track: Track,
    count: int,
    interpolation: Interpolation,
    measure: Measure = "max",
    *,
    free: bool = False,
) -> Compressed:
    """Return at most `count` keyframes, for all joints together, with the least error.

    Fewer are returned if more would not lower the error. Tracks of more than `SEARCHED_SAMPLES`
    have keyframes on every n-th sample; the stated errors are still over all samples. With `free`,
    values need not lie on samples; only for the greatest error and linear interpolation.
    """
    blend, times_ms = _select_blend(interpolation), _times_in_ms(track)
    if count < 0:
        raise BadRequestError(f"a budget of {count} keyframes is negative")
    if measure not in {"max", "rms"}:
        raise BadRequestError(f"no error measure {measure!r}; known: max, rms")
    step = -(-len(track) // SEARCHED_SAMPLES)
    times_s, joints_rad = times_ms[::step] / 1000.0, track.joints_rad[::step]
    count = min(count, (times_s.size - 1) * joints_rad.shape[1])
    search = _least_max if measure == "max" else _least_squares
    found = search(times_s, joints_rad, count, blend)
    knots = [
        _knots_on_samples(path, values) for path, values in zip(found, joints_rad.T, strict=True)
    ]
    if free:
        _check_free(interpolation, measure)
        knots = _least_free(times_s, joints_rad, count, knots)
    paths = [[Knot(step * knot.node, knot.value_rad) for knot in path] for path in knots]
    return _make_compressed(track, times_ms, paths, interpolation)


def _check_free(interpolation: Interpolation, measure: Measure = "max") -> None:
    if interpolation != Interpolation.LINEAR or measure != "max":
        raise BadRequestError(
            "free values are searched for linear interpolation and the greatest error only",
            "Choose linear and max, or leave free out.",
        )


def _knots_on_samples(path: Path, values: Array) -> list[Knot]:
    """Return keyframes on these samples of a joint."""
    return [Knot(node, float(values[node])) for node in path]


def played_track(track: Track, compressed: Compressed) -> Track:
    """Return the motion that the keyframes of a track play, sampled at the track's times."""
    times_s, start = _times_in_ms(track) / 1000.0, track.joints_rad[0]
    poses = sample_keyframes(compressed.keyframes, start, times_s, compressed.interpolation)
    message = (
        f"compress: {len(compressed.keyframes)} keyframes, "
        f"{compressed.interpolation.name.lower()}, {compressed.max_error_rad:.4f} rad off at most"
    )
    return replace(track, joints_rad=poses, history=(*track.history, message))


def _select_blend(interpolation: Interpolation) -> Blend:
    if interpolation == Interpolation.CUBIC:
        # A plain cubic through 20 keyframes of a wave missed by 1.3 to 1.6 rad. Also, its slope at
        # a keyframe depends on the neighbours, so no stretch can be judged by itself.
        message = "no keyframes for cubic interpolation: between few of them a cubic overshoots"
        raise BadRequestError(message, "Choose smooth step or linear.")
    if interpolation not in BLENDS:
        raise BadRequestError(f"no interpolation {interpolation!r}; known: linear, smooth")
    return BLENDS[interpolation]


def _times_in_ms(track: Track) -> Times:
    """Return the samples' times in whole milliseconds from the first, as keyframes have them."""
    if len(track) < 2 or not track.names:
        raise BadRequestError("keyframes need a motion: at least one joint and two samples")
    times_ms: Times = np.rint((track.times_s - track.times_s[0]) * 1000.0).astype(np.int64)
    if times_ms[-1] > LONGEST_MS:
        message = f"a motion of {track.duration_s:.3f} s; keyframes reach {LONGEST_MS / 1000} s"
        raise BadRequestError(message, "Cut it in parts, or store it at full rate.")
    if (np.diff(times_ms) == 0).any():
        raise BadRequestError("two samples in one millisecond", "Resample to 1000 Hz or less.")
    return times_ms


def _make_compressed(
    track: Track, times_ms: Times, paths: list[list[Knot]], how: Interpolation
) -> Compressed:
    """Make keyframes of the paths and measure their error by playing them, not from the search."""
    values, how = track.joints_rad, Interpolation(how)
    chosen = sorted((knot.node, joint, knot) for joint, path in enumerate(paths) for knot in path)
    keyframes = tuple(
        Keyframe(joint=joint, time_ms=int(times_ms[node]), value_rad=knot.value_rad)
        for node, joint, knot in chosen
    )
    played_track = sample_keyframes(keyframes, values[0], times_ms / 1000.0, how)
    errors = np.abs(played_track - values)
    row, joint = divmod(int(errors.argmax()), errors.shape[1])
    return Compressed(
        keyframes=keyframes,
        interpolation=how,
        max_error_rad=float(errors[row, joint]),
        rms_error_rad=float(np.sqrt(np.mean(errors**2))),
        worst_joint=track.names[joint],
        worst_time_s=float(times_ms[row] / 1000.0),
        hand=hand_error(track, played_track),
    )


def _least_max(times_s: Array, joints_rad: Array, count: int, blend: Blend) -> list[Path]:
    """Return the paths with the smallest maximum error, by bisection of the bound.

    The fewest keyframes for a bound never increase with the bound, so the smallest bound that the
    budget allows is the optimum. The real error of a solution becomes the next upper end.
    """
    joints = [JointGraph(times_s, values, blend, keep=True) for values in joints_rad.T]
    paths: list[Path] = [[] for _ in joints]
    low, high, halve = 0.0, max(float(joint.held[0]) for joint in joints), True
    while high - low > _RESOLUTION_RAD:
        # Every other try asks whether `high` is the optimum already, which ends the search at once.
        bound_rad = (low + high) / 2 if halve else high - _RESOLUTION_RAD
        halve = not halve
        found = _paths_within(joints, bound_rad, count)
        if found is None:
            low = bound_rad
        else:
            paths, high = found, max(joint.found[1] for joint in joints)
    return paths


def _least_free(
    times_s: Array, joints_rad: Array, count: int, known: list[list[Knot]]
) -> list[list[Knot]]:
    """Return keyframes with free values and the least greatest error; `known` are on samples."""
    joints = [FreeJoint(times_s, values) for values in joints_rad.T]

    def optimise_values(paths: list[list[Knot]]) -> tuple[float, list[list[Knot]]]:
        best = [joint.optimise_values(path) for joint, path in zip(joints, paths, strict=True)]
        return max(error for error, _ in best), [path for _, path in best]

    high, paths = optimise_values(known)
    low = 0.0
    while high - low > _FREE_RESOLUTION * high + _RESOLUTION_RAD:
        bound_rad = (low + high) / 2
        found = _free_paths_within(joints, bound_rad, count)
        if found is None:
            low = bound_rad
            continue
        error_rad, better = optimise_values(found)
        if error_rad < high:
            high, paths = error_rad, better
        high = min(high, bound_rad)
    return paths


def _free_paths_within(
    joints: list[FreeJoint], bound_rad: float, count: int
) -> list[list[Knot]] | None:
    paths: list[list[Knot]] = []
    for joint in joints:
        path = joint.fewest(bound_rad, count - sum(map(len, paths)))
        if path is None:
            return None
        paths.append(path)
    return paths


def _paths_within(joints: list[JointGraph], bound_rad: float, count: int) -> list[Path] | None:
    """Return each joint's fewest keyframes within the bound, or None if they exceed `count`."""
    paths: list[Path] = []
    for joint in joints:
        path = joint.fewest_again(bound_rad, count - sum(map(len, paths)))
        if path is None:
            return None
        paths.append(path)
    return paths


def _least_squares(times_s: Array, joints_rad: Array, count: int, blend: Blend) -> list[Path]:
    """Return the paths with the smallest sum of squares, by dynamic programming."""
    stretches = _square_sums(times_s, joints_rad, blend)
    # best[k, j]: the least sum up to sample j with the k-th keyframe there, for all joints at once.
    best = np.full((count + 1, *joints_rad.shape), np.inf)
    best[0, 0] = 0.0
    for start, sums in enumerate(stretches):
        # One keyframe more, at any later sample: the cost of the stretch from `start` is added.
        ahead = best[1:, start + 1 :]
        np.minimum(ahead, best[:-1, start, None] + sums, out=ahead)
    ended = best + _hold_sums(joints_rad)
    shares = _split_budget(ended.min(axis=1))
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


def _square_sums(times_s: Array, joints_rad: Array, blend: Blend) -> list[Array]:
    """Return for each start the sums of squared errors, shape (ends after it, joints).

    The blend is a polynomial, so all ends of a start share the running sums of its powers. They
    are taken from that start on, not as differences of sums from 0, which would lose all digits.
    """
    sums = []
    for start in range(times_s.size - 1):
        since_s = (times_s[start + 1 :] - times_s[start])[:, None]
        rise = joints_rad[start + 1 :] - joints_rad[start]
        square = np.cumsum(rise**2, axis=0)
        # The squared error of a stretch is the sum of (y - p(u) r)**2, with y the value above the
        # start, r the rise to the end and p the blend: y**2 - 2 p(u) y r + p(u)**2 r**2. Each term
        # is a running sum over the samples, divided by the same power of the length, because u is
        # time over length.
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


def _split_budget(costs: Array) -> list[int]:
    """Return how many keyframes each joint gets; `costs` is (keyframes, joints), from 0 up."""
    total, choices = np.zeros(len(costs)), []
    for cost in costs.T:
        # For each number spent so far: all ways to divide it between the joints before and this
        # one.
        sums = [total[spent::-1] + cost[: spent + 1] for spent in range(len(costs))]
        choices.append([int(row.argmin()) for row in sums])
        total = np.array([row.min() for row in sums])
    left, shares = int(total.argmin()), []
    for choice in choices[::-1]:
        shares.append(choice[left])
        left -= choice[left]
    return shares[::-1]
