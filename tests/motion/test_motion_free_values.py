"""Keyframes with free values: as few and as near as brute force finds, never worse than on samples.

Brute force knows nothing of our search: it tries every choice of samples, and for each the best
values are a corner of a linear programme, found by solving for every choice of tight constraints.
"""

from itertools import combinations

import numpy as np
import pytest

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.motion.interpolate import sample_keyframes
from rote.motion.keyframes.free_values import VALUES, FreeJoint, Knot
from rote.motion.keyframes.search import (
    Compressed,
    compress_to_bound,
    compress_to_budget,
    played_track,
)
from rote.motion.track import Array, Track
from sampled import sample_parameters

NAMES = ("left_elbow_joint", "right_elbow_joint", "waist_yaw_joint")
LINEAR = Interpolation.LINEAR


def least_error(values: Array, nodes: tuple[int, ...]) -> float:
    """Return the least the error measure max of lines through free values on these samples."""
    # What is played at sample m is known at the start and linear in the values of the nodes.
    weights = np.zeros((len(values), len(nodes) + 1))
    knots = [0, *nodes]
    for column in range(len(knots)):
        weights[:, column] = np.interp(np.arange(len(values)), knots, np.eye(len(knots))[column])
    left = weights[:, 1:]
    right = values - weights[:, 0] * values[0]
    # left @ y - e <= right and -left @ y - e <= -right.
    rows = np.concatenate([np.c_[left, -np.ones(len(values))], np.c_[-left, -np.ones(len(values))]])
    limits = np.concatenate([right, -right])
    best = np.inf
    size = len(nodes) + 1
    for chosen in combinations(range(len(rows)), size):
        matrix = rows[list(chosen)]
        if abs(np.linalg.det(matrix)) < 1e-12:
            continue
        corner = np.linalg.solve(matrix, limits[list(chosen)])
        if corner[-1] < best and (rows @ corner <= limits + 1e-9).all():
            best = float(corner[-1])
    return best


def brute_force(values: Array, count: int) -> float:
    return min(
        least_error(values, nodes)
        for size in range(1, count + 1)
        for nodes in combinations(range(1, len(values)), size)
    )


def of(joints_rad: Array, rate_hz: float = 100.0) -> Track:
    times_s = np.arange(len(joints_rad)) / rate_hz
    return Track(times_s=times_s, joints_rad=joints_rad, names=NAMES[: joints_rad.shape[1]])


def errors(track: Track, compressed: Compressed) -> Array:
    return np.abs(played_track(track, compressed).joints_rad - track.joints_rad)


@pytest.mark.parametrize("seed", sample_parameters(range(12), 3))
@pytest.mark.parametrize("count", [1, 2])
def test_a_number_of_keyframes_errs_as_little_as_brute_force_finds(seed: int, count: int) -> None:
    values = np.random.default_rng(seed).normal(0.0, 0.3, 8).cumsum()
    best_rad = brute_force(values, count)
    found = compress_to_budget(of(values[:, None]), count, LINEAR, free=True)
    assert len(found.keyframes) <= count
    assert best_rad - 1e-6 <= found.max_error_rad <= best_rad * (1 + 1 / (VALUES - 2)) + 1e-6


@pytest.mark.parametrize("seed", sample_parameters(range(6), 2))
def test_a_bound_needs_no_more_keyframes_than_brute_force_finds(seed: int) -> None:
    values = np.random.default_rng(seed).normal(0.0, 0.3, 8).cumsum()
    for count in (1, 2):
        bound_rad = brute_force(values, count) * (1 + 1 / (VALUES - 2)) + 1e-9
        found = compress_to_bound(of(values[:, None]), bound_rad, LINEAR, free=True)
        assert len(found.keyframes) <= count
        assert found.max_error_rad <= bound_rad + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_values_of_given_keyframes_are_the_best_there_are(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.normal(0.0, 0.3, 10).cumsum()
    nodes = (3, 7)
    joint = FreeJoint(np.arange(10.0), values)
    error_rad, knots = joint.optimise_values([Knot(node, float(values[node])) for node in nodes])
    assert error_rad == pytest.approx(least_error(values, nodes), abs=1e-7)
    assert joint.error_rad(knots) == pytest.approx(error_rad, abs=1e-12)


@pytest.mark.parametrize("seed", sample_parameters(range(4), 1))
def test_free_values_are_never_worse_than_values_on_samples(seed: int) -> None:
    random = np.random.default_rng(seed)
    track = of(random.normal(0.0, 0.02, (150, 3)).cumsum(axis=0))
    for bound_rad in (0.02, 0.06):
        fixed = compress_to_bound(track, bound_rad, LINEAR)
        free = compress_to_bound(track, bound_rad, LINEAR, free=True)
        assert len(free.keyframes) <= len(fixed.keyframes)
        assert errors(track, free).max() <= bound_rad + 1e-9
    for count in (6, 14):
        fixed = compress_to_budget(track, count, LINEAR)
        free = compress_to_budget(track, count, LINEAR, free=True)
        assert len(free.keyframes) <= count
        assert free.max_error_rad <= fixed.max_error_rad + 1e-12
        assert free.max_error_rad == pytest.approx(errors(track, free).max(), abs=1e-12)


def test_a_wave_is_much_better_with_free_values() -> None:
    times_s = np.arange(301) / 100
    wave = 0.4 * np.sin(2 * np.pi * 0.8 * times_s)[:, None]
    fixed = compress_to_budget(of(wave), 12, LINEAR)
    free = compress_to_budget(of(wave), 12, LINEAR, free=True)
    assert fixed.max_error_rad > 1.3 * free.max_error_rad


def test_a_joint_that_rests_needs_no_keyframe() -> None:
    track = of(np.full((50, 2), 0.3))
    assert compress_to_bound(track, 0.01, LINEAR, free=True).keyframes == ()
    assert compress_to_budget(track, 5, LINEAR, free=True).keyframes == ()


def test_what_is_stated_is_what_keyframes_play() -> None:
    random = np.random.default_rng(3)
    track = of(random.normal(0.0, 0.02, (80, 2)).cumsum(axis=0))
    found = compress_to_budget(track, 8, LINEAR, free=True)
    poses = sample_keyframes(found.keyframes, track.joints_rad[0], track.times_s, LINEAR)
    assert found.max_error_rad == pytest.approx(np.abs(poses - track.joints_rad).max(), abs=1e-12)


@pytest.mark.parametrize("how", [Interpolation.SMOOTH, Interpolation.CUBIC])
def test_free_values_are_for_straight_lines(how: Interpolation) -> None:
    track = of(np.random.default_rng(0).normal(0.0, 0.1, (20, 1)))
    with pytest.raises(BadRequestError):
        compress_to_bound(track, 0.05, how, free=True)
    with pytest.raises(BadRequestError):
        compress_to_budget(track, 3, how, free=True)
    with pytest.raises(BadRequestError, match="the error measure max"):
        compress_to_budget(track, 3, LINEAR, "rms", free=True)


def test_the_hands_are_held_with_free_values_too() -> None:
    times_s = np.arange(101) / 100
    track = of(0.4 * np.sin(2 * np.pi * times_s)[:, None] * np.array([1.0, 0.5, 0.2]))
    found = compress_to_bound(track, 0.05, LINEAR, hand_mm=5.0, free=True)
    assert found.hand is not None
    assert found.hand.error_mm <= 5.0
