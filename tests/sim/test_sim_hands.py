"""Scripted hands: within what a robot can bear, calm at both ends, and trembling like a hand."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from g1_29 import LOWER_RAD, REST_RAD, UPPER_RAD
from rote.errors import BadRequestError
from rote.findings import Severity
from rote.messages import HAND_SCRIPTS
from rote.model.g1 import G1_29, TAUGHT_JOINTS
from rote.motion.check.rules import check
from rote.motion.track import Array, Track
from rote.sim.body import STEP_S, SimBody
from rote.sim.hands import SCRIPTS, ScriptedHand

EVERY = sorted(SCRIPTS)
DURATIONS_S = [0.3, 0.31, 0.5, 0.9, 1.3, 2.0, 2.5, 3.0, 4.7, 10.0, 30.0]
MAX_RAD_S = 10.0


def poses_of(hand: ScriptedHand, step_s: float) -> Array:
    times_s = np.linspace(0.0, hand.seconds, round(hand.seconds / step_s) + 1)
    return np.array([hand.pose(float(time_s)) for time_s in times_s])


def check_is_bearable(name: str, seconds: float) -> None:
    poses = poses_of(ScriptedHand(name, seconds), 0.005)
    step_s = seconds / (len(poses) - 1)
    assert (poses >= LOWER_RAD).all()
    assert (poses <= UPPER_RAD).all()
    assert np.abs(np.diff(poses, axis=0)).max() / step_s < MAX_RAD_S


def taught(name: str, seconds: float) -> Track:
    """What soft arms do before the hand takes hold, while it leads them, and when it let go."""
    body, still, rows = SimBody(G1_29), np.zeros(len(REST_RAD)), []
    body.soften(TAUGHT_JOINTS)
    for step in range(round((seconds + 1.0) / STEP_S)):
        if step == round(0.3 / STEP_S):
            body.attach(ScriptedHand(name, seconds), step * STEP_S)
        body.step(step * STEP_S, REST_RAD, still)
        if step % 10 == 0:
            rows.append(body.joints_rad.copy())
    times_s = np.array([10 * STEP_S * row for row in range(len(rows))])
    return Track(times_s=times_s, joints_rad=np.array(rows), names=G1_29.names)


@pytest.mark.each_once("name", "seconds")
@pytest.mark.parametrize("seconds", [3.0, 6.0, 10.0])
@pytest.mark.parametrize("name", EVERY)
def test_what_a_hand_teaches_is_fit_to_play_and_only_clapping_hands_meet(
    name: str, seconds: float
) -> None:
    report = check(taught(name, seconds))
    assert report.ok
    warned = [found.message for found in report.findings if found.severity is not Severity.NOTE]
    meets = re.compile(r"left_wrist_yaw_link and right_\w+ overlap by ")
    hands = [words for words in warned if meets.match(words)]
    assert warned == hands
    assert len(hands) == (name == "clap")


def test_there_is_a_wave_a_bow_a_clap_and_a_drum_roll() -> None:
    assert EVERY == ["bow", "clap", "drum", "wave"]
    assert all(script.description for script in SCRIPTS.values())


@pytest.mark.parametrize("seconds", DURATIONS_S)
@pytest.mark.parametrize("name", EVERY)
def test_a_script_stays_within_limits_and_speed(name: str, seconds: float) -> None:
    check_is_bearable(name, seconds)


@settings(max_examples=25)
@given(name=st.sampled_from(EVERY), seconds=st.floats(0.3, 8.0))
def test_a_script_of_any_length_stays_within_limits_and_speed(name: str, seconds: float) -> None:
    check_is_bearable(name, seconds)


@pytest.mark.parametrize("seconds", DURATIONS_S)
@pytest.mark.parametrize("name", EVERY)
def test_a_script_starts_and_ends_in_the_rest_pose_without_speed(name: str, seconds: float) -> None:
    hand = ScriptedHand(name, seconds)
    np.testing.assert_array_equal(hand.pose(0.0), REST_RAD)
    np.testing.assert_allclose(hand.pose(seconds), REST_RAD, atol=1e-12)
    little_s = 1e-3 * min(seconds, 1.0)
    for inside_s in (little_s, seconds - little_s):
        assert np.abs(hand.pose(inside_s) - REST_RAD).max() / little_s < 0.01


@pytest.mark.parametrize("name", EVERY)
def test_a_script_moves_its_joints_well_and_leaves_the_legs_alone(name: str) -> None:
    poses = poses_of(ScriptedHand(name, 4.0), 0.01)
    moved = np.flatnonzero(np.ptp(poses, axis=0) > 0)
    assert set(moved.tolist()) <= set(TAUGHT_JOINTS)
    assert np.ptp(poses, axis=0).max() > 0.5


@pytest.mark.parametrize("name", EVERY)
def test_a_script_swings_there_and_back_more_often_when_it_has_more_time(name: str) -> None:
    def turns(seconds: float) -> int:
        poses = poses_of(ScriptedHand(name, seconds), 0.01)
        joint = max(SCRIPTS[name].swing, key=lambda j: abs(SCRIPTS[name].swing[j]))
        column = poses[:, G1_29.names.index(f"{joint}_joint")]
        return int((np.diff(np.sign(np.diff(column))) != 0).sum())

    assert turns(12.0) > turns(6.0) + 3 > 5


@pytest.mark.parametrize("name", EVERY)
def test_a_short_performance_is_smaller_and_not_faster(name: str) -> None:
    short, full = (poses_of(ScriptedHand(name, s), 0.002) for s in (0.5, 2.5))
    assert np.ptp(short, axis=0).max() == pytest.approx(np.ptp(full, axis=0).max() / 5, rel=0.2)
    assert np.abs(np.diff(short, axis=0)).max() < 1.5 * np.abs(np.diff(full, axis=0)).max()


@pytest.mark.parametrize("name", EVERY)
def test_a_grip_is_the_pose_with_a_small_tremor_on_the_joints_held(name: str) -> None:
    hand = ScriptedHand(name, 4.0)
    times_s = np.arange(0.0, 4.0, 0.003)
    grips = np.array([hand.grip(float(time_s)) for time_s in times_s])
    poses = np.array([hand.pose(float(time_s)) for time_s in times_s])
    held = ~np.isnan(grips).any(axis=0)
    assert (np.isnan(grips).all(axis=0) == ~held).all(), "a joint is held all the time or never"
    assert set(np.flatnonzero(np.ptp(poses, axis=0) > 0)) <= set(np.flatnonzero(held))
    tremor = (grips - poses)[:, held]
    assert np.abs(tremor).max(axis=0).min() > 0.001, "every joint held trembles"
    assert np.abs(tremor).max() < 0.006
    assert np.abs(tremor.mean(axis=0)).max() < 2e-4
    assert (grips[:, held] >= LOWER_RAD[held]).all()
    assert (grips[:, held] <= UPPER_RAD[held]).all()
    assert np.abs(np.diff(grips[:, held], axis=0)).max() / 0.003 < MAX_RAD_S


def test_the_tremor_is_repeated_by_its_seed_and_only_by_it() -> None:
    def grip(seed: int) -> Array:
        found = ScriptedHand("wave", 3.0, seed=seed).grip(1.0)
        assert found is not None
        return found

    np.testing.assert_array_equal(grip(1), grip(1))
    assert np.nanmax(np.abs(grip(1) - grip(2))) > 0


def test_a_hand_lets_go_when_its_time_is_over() -> None:
    hand = ScriptedHand("clap", 2.0)
    assert hand.grip(2.0) is not None
    assert hand.grip(2.0 + 1e-6) is None
    assert hand.grip(100.0) is None


@pytest.mark.parametrize("name", ["", "Wave", "wave ", "moonwalk"])
def test_a_hand_that_does_not_exist_is_refused_with_those_that_do(name: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        ScriptedHand(name, 2.0)
    assert repr(name) in str(caught.value)
    assert all(known in caught.value.remedy for known in EVERY)


@pytest.mark.parametrize("seconds", [0.0, -1.0, 180.001, float("inf"), float("nan")])
def test_a_duration_that_is_not_possible_is_refused(seconds: float) -> None:
    with pytest.raises(BadRequestError, match="up to 180 s"):
        ScriptedHand("wave", seconds)


def test_the_longest_duration_is_allowed() -> None:
    assert ScriptedHand("wave", 180.0).grip(179.9) is not None


def test_the_scripts_are_those_that_clients_are_told_of() -> None:
    assert tuple(SCRIPTS) == HAND_SCRIPTS
