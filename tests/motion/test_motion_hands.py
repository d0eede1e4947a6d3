"""Are the hands as near as the keyframes say? Asked of the kinematics, pose by pose."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from motion.motion_peers import wave
from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.model.g1 import G1, G1_29, G1_REST_RAD, TAUGHT_JOINTS
from rote.motion.body.kinematics import kinematics_of
from rote.motion.interpolate import sample_keyframes
from rote.motion.keyframes.search import (
    MIN_HAND_MM,
    Compressed,
    compress_to_bound,
    compress_to_budget,
    hand_error,
    measure_levers_m,
)
from rote.motion.track import Array, Track

TAUGHT = tuple(G1_29.names[index] for index in TAUGHT_JOINTS)
BODY = kinematics_of(G1)
BOTH = (Interpolation.LINEAR, Interpolation.SMOOTH)


def waving(seed: int, seconds: float = 1.0) -> Track:
    """Return a wave of arms and waist, around where they are at ease."""
    found = wave(seed, duration_s=seconds, rate_hz=50.0, joints=len(TAUGHT))
    rest = np.array(G1_REST_RAD)[list(TAUGHT_JOINTS)]
    joints = found.joints_rad - found.joints_rad[0] + rest
    return Track(times_s=found.times_s, joints_rad=joints, names=TAUGHT)


def hands_of(joints_rad: Array) -> Array:
    """Return the hands' places, (n, 2, 3), all 29 joints given by hand."""
    pose = np.repeat(np.array(G1_REST_RAD)[None, :], len(joints_rad), axis=0)
    pose[:, list(TAUGHT_JOINTS)] = joints_rad
    return BODY.tips_m(BODY.forward(pose))


def off_mm(track: Track, found: Compressed) -> Array:
    """Return how far each hand is off in each sample, (n, 2), by playing the keyframes."""
    played = sample_keyframes(
        found.keyframes, track.joints_rad[0], track.times_s, found.interpolation
    )
    apart = hands_of(played) - hands_of(track.joints_rad)
    return np.asarray(1000.0 * np.sqrt((apart**2).sum(axis=2)))


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    bound_rad=st.floats(0.005, 0.2),
    hand_mm=st.floats(0.5, 60.0),
    how=st.sampled_from(BOTH),
)
def test_keyframes_keep_the_joints_and_the_hands_within_both_bounds(
    seed: int, bound_rad: float, hand_mm: float, how: Interpolation
) -> None:
    track = waving(seed)
    found = compress_to_bound(track, bound_rad, how, hand_mm=hand_mm)
    off = off_mm(track, found)
    assert found.max_error_rad <= bound_rad + 2e-12
    assert off.max() <= hand_mm + 1e-9
    assert found.hand is not None
    row, side = np.unravel_index(off.argmax(), off.shape)
    assert found.hand.error_mm == pytest.approx(off.max(), abs=1e-9)
    assert off[found.hand.row, ("left", "right").index(found.hand.hand)] == pytest.approx(
        off[row, side], abs=1e-9
    )


@pytest.mark.parametrize("how", BOTH)
def test_a_budget_states_the_error_at_the_hands(how: Interpolation) -> None:
    track = waving(3, 2.0)
    found = compress_to_budget(track, 12, how)
    assert found.hand is not None
    assert found.hand.error_mm == pytest.approx(off_mm(track, found).max(), abs=1e-9)
    assert found.hand.error_mm > 1.0


def test_a_tighter_bound_for_the_hands_costs_keyframes_and_a_wide_one_none() -> None:
    track = waving(5, 2.0)
    free = compress_to_bound(track, 0.05, Interpolation.SMOOTH)
    assert free.hand is not None
    wide = free.hand.error_mm + 0.1
    assert compress_to_bound(track, 0.05, Interpolation.SMOOTH, hand_mm=wide) == free
    tight = compress_to_bound(track, 0.05, Interpolation.SMOOTH, hand_mm=wide / 4)
    assert len(tight.keyframes) > len(free.keyframes)
    # Not far more than it takes: the fewest for the tightest joint's bound would be more.
    every = compress_to_bound(track, tight.max_error_rad / 8, Interpolation.SMOOTH)
    assert len(tight.keyframes) < len(every.keyframes)


@pytest.mark.parametrize("seed", range(2))
def test_the_tightest_bound_for_the_hands_can_be_kept(seed: int) -> None:
    found = compress_to_bound(waving(seed), 0.3, Interpolation.LINEAR, hand_mm=MIN_HAND_MM)
    assert found.hand is not None
    assert found.hand.error_mm <= MIN_HAND_MM


@pytest.mark.parametrize("hand_mm", [0.0, -1.0, np.nan, np.inf])
def test_a_bound_for_the_hands_that_is_none_is_refused(hand_mm: float) -> None:
    with pytest.raises(BadRequestError, match="the hands' bound must be"):
        compress_to_bound(waving(1), 0.05, Interpolation.LINEAR, hand_mm=hand_mm)


def test_a_track_of_other_joints_says_nothing_of_hands_and_takes_no_bound_for_them() -> None:
    legs = replace(waving(1), names=(*G1_29.names[:12], "a", "b", "c"))
    assert compress_to_bound(legs, 0.05, Interpolation.LINEAR).hand is None
    with pytest.raises(BadRequestError, match="moves a hand"):
        compress_to_bound(legs, 0.05, Interpolation.LINEAR, hand_mm=5.0)


@pytest.mark.parametrize("name", TAUGHT)
def test_a_lever_is_how_far_a_little_turn_of_its_joint_moves_a_hand(name: str) -> None:
    track, turn_rad = waving(7), 1e-6
    column = track.names.index(name)
    turned = track.joints_rad.copy()
    turned[:, column] += turn_rad
    moved_mm = np.linalg.norm(hands_of(turned) - hands_of(track.joints_rad), axis=2).max() * 1000
    assert measure_levers_m(track)[column] == pytest.approx(moved_mm / 1000 / turn_rad, rel=1e-4)
    error = hand_error(track, turned)
    assert error is not None
    assert error.error_mm == pytest.approx(moved_mm, rel=1e-6)


def test_legs_and_strangers_have_no_lever() -> None:
    names = ("left_knee_joint", "tail", "left_elbow_joint")
    track = Track(times_s=np.arange(3.0), joints_rad=np.zeros((3, 3)), names=names)
    assert (measure_levers_m(track) > 0).tolist() == [False, False, True]
    assert BODY.poses(track).shape == (3, 29)
    assert {len(chain) for chain in BODY.chains} == {10}
