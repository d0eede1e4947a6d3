"""Few keyframes for a long motion: the fewest for an error, or the least error for a number.

Keyframes play through `interpolate.sample_keyframes`: the start pose is known and costs nothing, a
joint without keyframes holds its start value, and each joint holds after its last keyframe. They
lie on the track's samples in time, and in value too unless values are free. Of such keyframes both
modes find the optimum. A keyframe's time is in whole milliseconds, so each sample counts as taken
at the nearest one; errors are between the keyframes and those samples.

A joint is a graph: its samples are the nodes, and a stretch between two keyframes is an edge. After
the last keyframe the joint is held. Both modes search for shortest paths in this graph. With free
values straight lines have smaller errors; `free_values` states how near they are to the optimum.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.errors import BadRequestError, UnsafeMotionError
from rote.messages import Interpolation, Keyframe
from rote.motion.body.kinematics import Kinematics, kinematics_of
from rote.motion.interpolate import sample_keyframes
from rote.motion.keyframes.free_values import FreeJoint, Knot
from rote.motion.keyframes.graph import BLENDS, Blend, JointGraph, Path
from rote.motion.track import Array, Track
from rote.motion.track_build import build_of, family_of
from rote.text import Act, Text

# ---- the error of a hand -------------------------------------------------------------------------

SIDES = ("left", "right")
"""The names of the tips of a body's arms, in their order."""


class HandError(NamedTuple):
    """The largest distance of a hand from its target position."""

    error_mm: float
    hand: str
    """left or right."""
    row: int
    """The row of the sample."""


def measure_levers_m(track: Track) -> Array:
    """Return the largest distance a hand moves per rad of each joint, in the track's poses, in m.

    Shape (joints,); 0 for a joint that moves no hand.
    """
    levers = np.zeros(len(track.names))
    body = _find_hand_body(track)
    if body is None:
        return levers
    frames = body.forward(body.poses(track, build=build_of(track)))
    tips, axes = body.tips_m(frames), body.axes(frames)
    index = {joint.name: joint.index for joint in body.joints}
    for column, name in enumerate(track.names):
        for tip, chain in enumerate(body.chains):
            if name in chain:
                lever_arm_m = tips[:, tip] - frames.positions_m[index[name]].T
                lever = np.linalg.norm(np.cross(axes[index[name]].T, lever_arm_m), axis=1).max()
                levers[column] = max(levers[column], lever)
    return levers


def hand_error(track: Track, played_rad: Array) -> HandError | None:
    """Return the largest distance of a hand from where the track has it, in mm.

    `played_rad`, (n, joints), are the angles that are played instead of the track's. None if the
    track has no joint that moves a hand. The torso is at rest, unless the track moves it.
    """
    body = _find_hand_body(track)
    if body is None:
        return None
    build = build_of(track)
    played = Track(
        times_s=track.times_s, joints_rad=played_rad, names=track.names, variant=track.variant
    )
    taught_m = body.tips_m(body.forward(body.poses(track, build=build)))
    played_m = body.tips_m(body.forward(body.poses(played, build=build)))
    errors_mm = 1000.0 * np.linalg.norm(played_m - taught_m, axis=2)
    row, tip = divmod(int(errors_mm.argmax()), errors_mm.shape[1])
    return HandError(float(errors_mm[row, tip]), SIDES[tip], row)


def _find_hand_body(track: Track) -> Kinematics | None:
    """Return the body of a track's robot; None if none of the track's joints moves a hand."""
    family = family_of(track)
    if family is None or not family.body.tips:
        return None
    body = kinematics_of(family)
    return body if any(name in chain for name in track.names for chain in body.chains) else None


# ---- the search ----------------------------------------------------------------------------------


__all__ = [
    "compress_to_bound", "compress_to_budget", "Compressed", "Measure", "check_faithful",
    "played_track",
]  # fmt: skip

ABSURD_RAD = 0.15
"""With a larger error the keyframes are another motion: 9 cm at the end of a 0.6 m arm."""
LONGEST_MS = 65_535
"""The latest time of a keyframe: it is a u16 on the wire."""
SEARCHED_SAMPLES = 600
"""The budget is exact for tracks up to this long; of longer ones every n-th sample is used."""

MIN_HAND_MM = 0.01
"""The tightest bound for the hands: the rounding of a 32-bit joint is a tenth of that."""

_SHARE_ATTEMPTS = 5  # attempts to loosen the joints' bounds after a solution was found
_RESOLUTION_RAD = 1e-9  # the least error is found to within this; a 32-bit float rounds by 1e-7
_FREE_RESOLUTION = 0.002  # the same for free values, as a fraction of the error

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
        """Whether the keyframes differ too much from the taught motion to be played."""
        return self.max_error_rad > ABSURD_RAD


def check_faithful(compressed: Compressed, limit_rad: float = ABSURD_RAD) -> None:
    """Raise `UnsafeMotionError` if the keyframes differ from the track by more than `limit_rad`.

    It is not a `BadRequestError`: the call was valid, but the arm must not leave the taught motion.
    The error names the joint, the time and the deviation.
    """
    if compressed.max_error_rad <= limit_rad:
        return
    reason = (
        f"{len(compressed.keyframes)} keyframes miss the motion by "
        f"{compressed.max_error_rad:.3f} rad; the limit is {limit_rad:.3f} rad"
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

    With `free`, which needs linear interpolation, the values of keyframes may differ from the
    recorded samples.

    With smooth steps, a joint with more than `MANY_STRETCHES` candidate segments between two
    keyframes (as in a slow drift of a minute) has keyframes only on every n-th sample. That takes
    a tenth of the time and about 1% more keyframes; `exact` searches all samples.

    With `hand_mm`, the hands also stay within this many millimetres. If that needs tighter bounds
    for the joints, the keyframes are few but not always the fewest: the best division of the error
    among the joints of an arm is not searched in full.
    """
    blend, times_ms = _select_blend(interpolation), _convert_times_to_ms(track)
    if not (np.isfinite(bound_rad) and bound_rad >= 0):
        raise BadRequestError(
            f"an error bound must be a finite number from 0 up, not {bound_rad} rad"
        )
    if free:
        _check_free_allowed(interpolation)
        free_joints = [FreeJoint(times_ms / 1000.0, values) for values in track.joints_rad.T]

        def find_knots(column: int, joint_bound_rad: float) -> list[Knot] | None:
            return free_joints[column].find_fewest(joint_bound_rad, len(track))
    else:
        times_s, may_thin = times_ms / 1000.0, interpolation == Interpolation.SMOOTH and not exact
        joints = [
            JointGraph(times_s, values, blend, thin=may_thin) for values in track.joints_rad.T
        ]

        def find_knots(column: int, joint_bound_rad: float) -> list[Knot] | None:
            path = joints[column].find_fewest_cached(joint_bound_rad, len(track))
            return (
                None if path is None else _make_knots_on_samples(path, track.joints_rad[:, column])
            )

    def compress_within(bounds_rad: Array) -> Compressed:
        knots_by_joint = []
        for column, joint_bound_rad in enumerate(bounds_rad.tolist()):
            knots = find_knots(column, joint_bound_rad)
            assert knots is not None  # a keyframe on every sample always satisfies the bound
            knots_by_joint.append(knots)
        return _make_compressed(track, times_ms, knots_by_joint, interpolation)

    compressed = compress_within(np.full(len(track.names), bound_rad))
    if hand_mm is None:
        return compressed
    return _tighten_for_hands(track, compressed, compress_within, (bound_rad, hand_mm))


def _tighten_for_hands(
    track: Track,
    compressed: Compressed,
    compress_within: Callable[[Array], Compressed],
    limits: tuple[float, float],
) -> Compressed:
    """Return keyframes with the joints' bounds just tight enough to keep the hands within theirs.

    `limits` are the bound of the joints in rad and that of the hands in mm. `compressed` are the
    keyframes for the first bound alone, and `compress_within` makes those for one bound per joint.
    Each joint may move a hand by at most `share_mm`. Bisection finds the largest share for which
    the measured error of the hands is within the bound.
    """
    bound_rad, hand_mm = limits
    if compressed.hand is None:
        raise BadRequestError("no joint of this track moves a hand", "Leave the hands' bound out.")
    if not (np.isfinite(hand_mm) and hand_mm >= MIN_HAND_MM):
        raise BadRequestError(
            f"the hands' bound must be {MIN_HAND_MM} mm or more, not {hand_mm} mm"
        )
    if compressed.hand.error_mm <= hand_mm:
        return compressed
    levers_mm = 1000.0 * np.maximum(measure_levers_m(track), 1e-9)

    def try_share(share_mm: float) -> tuple[Compressed, bool]:
        tried = compress_within(np.minimum(bound_rad, share_mm / levers_mm))
        return tried, tried.hand is not None and tried.hand.error_mm <= hand_mm

    high = bound_rad * float(levers_mm.max())
    low = min(high, hand_mm)
    compressed, fits = try_share(low)
    while not fits:  # several joints together can move a hand further than each alone
        low, high = low / 2, low
        compressed, fits = try_share(low)
    for _ in range(_SHARE_ATTEMPTS):
        middle = float(np.sqrt(low * high))  # the shares may differ by orders of magnitude
        tried, fits = try_share(middle)
        if fits:
            low = middle
            compressed = min(tried, compressed, key=lambda each: len(each.keyframes))
        else:
            high = middle
    return compressed


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
    blend, times_ms = _select_blend(interpolation), _convert_times_to_ms(track)
    if count < 0:
        raise BadRequestError(f"a budget of {count} keyframes is negative")
    if measure not in {"max", "rms"}:
        raise BadRequestError(f"unknown error measure {measure!r}", "Use max or rms.")
    step = -(-len(track) // SEARCHED_SAMPLES)  # rounded up
    times_s, joints_rad = times_ms[::step] / 1000.0, track.joints_rad[::step]
    count = min(count, (times_s.size - 1) * joints_rad.shape[1])
    search = _search_least_max if measure == "max" else _search_least_squares
    paths_on_samples = search(times_s, joints_rad, count, blend)
    knots = [
        _make_knots_on_samples(path, values)
        for path, values in zip(paths_on_samples, joints_rad.T, strict=True)
    ]
    if free:
        _check_free_allowed(interpolation, measure)
        knots = _search_least_free(times_s, joints_rad, count, knots)
    # The search counted only every `step`-th sample.
    knots = [[knot._replace(node=step * knot.node) for knot in path] for path in knots]
    return _make_compressed(track, times_ms, knots, interpolation)


def _check_free_allowed(interpolation: Interpolation, measure: Measure = "max") -> None:
    """Raise `BadRequestError` if keyframes with free values cannot be searched with these."""
    if interpolation != Interpolation.LINEAR or measure != "max":
        raise BadRequestError(
            "free values need linear interpolation and the error measure max",
            "Choose linear and max, or leave free out.",
        )


def _make_knots_on_samples(path: Path, values: Array) -> list[Knot]:
    """Return the keyframes of a joint on the samples of a path, with the samples' values."""
    return [Knot(node, float(values[node])) for node in path]


def played_track(track: Track, compressed: Compressed) -> Track:
    """Return the motion that the keyframes of a track play, sampled at the track's times."""
    times_s, start = _convert_times_to_ms(track) / 1000.0, track.joints_rad[0]
    poses = sample_keyframes(compressed.keyframes, start, times_s, compressed.interpolation)
    message = (
        f"compress: {len(compressed.keyframes)} keyframes, "
        f"{compressed.interpolation.name.lower()}, {compressed.max_error_rad:.4f} rad off at most"
    )
    return replace(track, joints_rad=poses, history=(*track.history, message))


def _select_blend(interpolation: Interpolation) -> Blend:
    """Return the blend of an interpolation; raises `BadRequestError` if it is not supported."""
    if interpolation == Interpolation.CUBIC:
        # A plain cubic through 20 keyframes of a wave missed by 1.3 to 1.6 rad. Also, its slope at
        # a keyframe depends on the neighbours, so no stretch can be judged by itself.
        message = "cubic interpolation is not supported: it overshoots between few keyframes"
        raise BadRequestError(message, "Choose smooth step or linear.")
    if interpolation not in BLENDS:
        raise BadRequestError(f"unknown interpolation {interpolation!r}", "Use linear or smooth.")
    return BLENDS[interpolation]


def _convert_times_to_ms(track: Track) -> Times:
    """Return the samples' times in whole milliseconds from the first, as keyframes have them."""
    if len(track) < 2 or not track.names:
        raise BadRequestError("keyframes need a motion: at least one joint and two samples")
    times_ms: Times = np.rint((track.times_s - track.times_s[0]) * 1000.0).astype(np.int64)
    if times_ms[-1] > LONGEST_MS:
        message = (
            f"the motion lasts {track.duration_s:.3f} s, but keyframes reach only "
            f"{LONGEST_MS / 1000} s"
        )
        raise BadRequestError(message, "Cut it into parts, or store it at full rate.")
    if (np.diff(times_ms) == 0).any():
        raise BadRequestError("two samples fall in one millisecond", "Resample to 1000 Hz or less.")
    return times_ms


def _make_compressed(
    track: Track, times_ms: Times, paths: list[list[Knot]], how: Interpolation
) -> Compressed:
    """Make keyframes from the knots of each joint, and measure their error by playing them."""
    values, how = track.joints_rad, Interpolation(how)
    # By time, then by joint.
    knots = sorted((knot.node, joint, knot) for joint, path in enumerate(paths) for knot in path)
    keyframes = tuple(
        Keyframe(joint=joint, time_ms=int(times_ms[node]), value_rad=knot.value_rad)
        for node, joint, knot in knots
    )
    played_rad = sample_keyframes(keyframes, values[0], times_ms / 1000.0, how)
    errors = np.abs(played_rad - values)
    row, joint = divmod(int(errors.argmax()), errors.shape[1])
    return Compressed(
        keyframes=keyframes,
        interpolation=how,
        max_error_rad=float(errors[row, joint]),
        rms_error_rad=float(np.sqrt(np.mean(errors**2))),
        worst_joint=track.names[joint],
        worst_time_s=float(times_ms[row] / 1000.0),
        hand=hand_error(track, played_rad),
    )


def _search_least_max(times_s: Array, joints_rad: Array, count: int, blend: Blend) -> list[Path]:
    """Return each joint's path, at most `count` keyframes in all, with the least maximum error.

    The bound of the error is bisected: the fewest keyframes for a bound never increase with it, so
    the smallest bound that the budget allows is the optimum. The real error of a solution becomes
    the next upper end.
    """
    joints = [JointGraph(times_s, values, blend, keep=True) for values in joints_rad.T]
    paths: list[Path] = [[] for _ in joints]
    low, high, should_halve = 0.0, max(float(joint.hold_errors_rad[0]) for joint in joints), True
    while high - low > _RESOLUTION_RAD:
        # Every other attempt tests whether `high` is already the optimum, which ends the search.
        bound_rad = (low + high) / 2 if should_halve else high - _RESOLUTION_RAD
        should_halve = not should_halve
        found = _find_paths_within(joints, bound_rad, count)
        if found is None:
            low = bound_rad
        else:
            paths, high = found, max(joint.last_result[1] for joint in joints)
    return paths


def _search_least_free(
    times_s: Array, joints_rad: Array, count: int, known: list[list[Knot]]
) -> list[list[Knot]]:
    """Return each joint's keyframes with free values, at most `count` in all, with the least error.

    That is the maximum error. The search starts from `known`, a solution with values on samples.
    """
    joints = [FreeJoint(times_s, values) for values in joints_rad.T]

    def optimise_values(paths: list[list[Knot]]) -> tuple[float, list[list[Knot]]]:
        best = [joint.optimise_values(path) for joint, path in zip(joints, paths, strict=True)]
        return max(error for error, _ in best), [path for _, path in best]

    high, paths = optimise_values(known)
    low = 0.0
    while high - low > _FREE_RESOLUTION * high + _RESOLUTION_RAD:
        bound_rad = (low + high) / 2
        found = _find_free_paths_within(joints, bound_rad, count)
        if found is None:
            low = bound_rad
            continue
        error_rad, better = optimise_values(found)
        if error_rad < high:
            high, paths = error_rad, better
        high = min(high, bound_rad)
    return paths


def _find_free_paths_within(
    joints: list[FreeJoint], bound_rad: float, count: int
) -> list[list[Knot]] | None:
    """Return each joint's fewest keyframes with free values, or None if they exceed `count`."""
    paths: list[list[Knot]] = []
    for joint in joints:
        path = joint.find_fewest(bound_rad, count - sum(map(len, paths)))
        if path is None:
            return None
        paths.append(path)
    return paths


def _find_paths_within(joints: list[JointGraph], bound_rad: float, count: int) -> list[Path] | None:
    """Return each joint's fewest keyframes within the bound, or None if they exceed `count`."""
    paths: list[Path] = []
    for joint in joints:
        path = joint.find_fewest_cached(bound_rad, count - sum(map(len, paths)))
        if path is None:
            return None
        paths.append(path)
    return paths


def _search_least_squares(
    times_s: Array, joints_rad: Array, count: int, blend: Blend
) -> list[Path]:
    """Return each joint's path, at most `count` keyframes in all, with the least sum of squares.

    It is found by dynamic programming.
    """
    stretches = _compute_square_sums(times_s, joints_rad, blend)
    # best[k, j]: the least sum up to sample j with the k-th keyframe there, for all joints at once.
    best = np.full((count + 1, *joints_rad.shape), np.inf)
    best[0, 0] = 0.0
    for start, sums in enumerate(stretches):
        # One more keyframe, at any later sample: add the cost of the stretch from `start`.
        ahead = best[1:, start + 1 :]
        np.minimum(ahead, best[:-1, start, None] + sums, out=ahead)
    total_costs = best + _compute_hold_sums(joints_rad)
    counts = _split_budget(total_costs.min(axis=1))
    paths = []
    for joint, joint_count in enumerate(counts):
        node = int(total_costs[joint_count, :, joint].argmin())
        path: Path = []
        # Backwards: the keyframe before each is the start of the stretch that gave the least sum.
        for keyframes_before in range(joint_count - 1, -1, -1):
            path.append(node)
            sums_to_node = [stretches[start][node - start - 1, joint] for start in range(node)]
            node = int((best[keyframes_before, :node, joint] + sums_to_node).argmin())
        paths.append(path[::-1])
    return paths


def _compute_square_sums(times_s: Array, joints_rad: Array, blend: Blend) -> list[Array]:
    """Return for each start the sums of squared errors to each later end, (ends, joints).

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
            weighted_rise = np.cumsum(since_s**power * rise, axis=0) / since_s**power
            square -= 2.0 * factor * rise * weighted_rise
        for (power_a, factor), (power_b, other_factor) in product(blend.terms, repeat=2):
            power = power_a + power_b
            weight_squares = np.cumsum(since_s**power, axis=0) / since_s**power
            square += factor * other_factor * weight_squares * rise**2
        sums.append(np.maximum(square, 0.0))
    return sums


def _compute_hold_sums(joints_rad: Array) -> Array:
    """Return for each sample the sum of squared errors if its value is held to the end."""
    values = joints_rad - joints_rad.mean(axis=0)  # a joint far from 0 loses no digits
    samples_after = np.arange(values.shape[0])[::-1, None]
    sums_after = np.cumsum(values[::-1], axis=0)[::-1] - values
    squares_after = np.cumsum(values[::-1] ** 2, axis=0)[::-1] - values**2
    errors: Array = np.maximum(
        squares_after - 2.0 * values * sums_after + samples_after * values**2, 0.0
    )
    return errors


def _split_budget(costs: Array) -> list[int]:
    """Return how many keyframes each joint gets, for the least sum of the joints' costs.

    `costs[k, j]` is the cost of joint j with k keyframes; all joints together get fewer than
    `len(costs)`.
    """
    # least[n]: the least cost of the joints so far with n keyframes. choices[j][n]: how many of
    # these keyframes joint j gets.
    least, choices = np.zeros(len(costs)), []
    for joint_costs in costs.T:
        # For each n, the costs if this joint gets 0, 1, ... n of them and those before it the rest.
        options = [least[n::-1] + joint_costs[: n + 1] for n in range(len(costs))]
        choices.append([int(option.argmin()) for option in options])
        least = np.array([option.min() for option in options])
    remaining, counts = int(least.argmin()), []
    for choice in choices[::-1]:
        counts.append(choice[remaining])
        remaining -= choice[remaining]
    return counts[::-1]
