"""The path of a hand: shifted, scaled, led through points, and refused where it is out of reach."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError
from rote.model.registry import build_named
from rote.motion.body.kinematics import kinematics_of
from rote.motion.check.limits import MAX_PLAYED_RAD_S2, TOLERANCE_RAD
from rote.motion.edit.hand_path import hand_positions_m, move_hand
from rote.motion.edit.retarget import to_robot
from rote.motion.track import Array, Mark, Track
from rote.motion.track_build import family_of, joints_of
from rote.sim.hands import SCRIPTS
from scripted_tracks import make_scripted_track

BUILDS = ("g1-29", "g1-23")
UP = (0.0, 0.0, 0.05)


def peak_acceleration(track: Track) -> float:
    speeds = np.diff(track.joints_rad, axis=0) / np.diff(track.times_s)[:, None]
    return float(np.abs(np.diff(speeds, axis=0)).max() * track.rate_hz)


def moved_m(track: Track, other: Track, hand: str = "right") -> Array:
    return hand_positions_m(other, hand) - hand_positions_m(track, hand)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_a_shifted_path_is_met_to_a_millimetre_and_the_ends_stay(script: str, build: str) -> None:
    track = make_scripted_track(script, 10.0, build)
    result = move_hand(track, "right", by=UP)
    moved = moved_m(track, result)
    assert np.abs(moved[:, :2]).max() < 0.001
    assert moved[len(moved) // 2] == pytest.approx(UP, abs=0.001)
    assert (result.joints_rad[[0, -1]] == track.joints_rad[[0, -1]]).all()
    assert peak_acceleration(result) <= 1.1 * peak_acceleration(track)
    left = track.columns_of([name for name in track.names if not name.startswith("right_")])
    assert (result.joints_rad[:, left] == track.joints_rad[:, left]).all()


@pytest.mark.parametrize("build", BUILDS)
def test_the_result_keeps_the_limits_of_all_joints(build: str) -> None:
    track = make_scripted_track("drum", 6.0, build)
    result = move_hand(track, "right", by=(0.0, 0.03, 0.04))
    known = joints_of(track)
    for column, name in enumerate(track.names):
        assert result.joints_rad[:, column].min() >= known[name].lower_rad - TOLERANCE_RAD
        assert result.joints_rad[:, column].max() <= known[name].upper_rad + TOLERANCE_RAD


def test_a_path_is_led_through_points_at_their_times() -> None:
    track = make_scripted_track()
    path = hand_positions_m(track, "right")
    points = [(1.503, *(path[150] + [0.02, 0.03, 0.04])), (2.5, *(path[250] - [0.02, 0.0, 0.03]))]
    result = move_hand(track, "right", through=points)
    for at_s, *point in points:
        (row,) = np.flatnonzero(np.abs(result.times_s - at_s) < 1e-9)
        assert hand_positions_m(result, "right")[row] == pytest.approx(point, abs=0.001)
    assert (result.joints_rad[[0, -1]] == track.joints_rad[[0, -1]]).all()
    assert result.history[-1] == "move the right hand through 2 points"


def test_the_order_of_the_joints_in_a_file_does_not_matter() -> None:
    track = make_scripted_track()
    backwards = replace(track, names=track.names[::-1], joints_rad=track.joints_rad[:, ::-1])
    result = move_hand(backwards, "right", by=UP)
    assert result.joints_rad[:, ::-1] == pytest.approx(
        move_hand(track, "right", by=UP).joints_rad, abs=1e-6
    )
    assert to_robot(backwards, "r1").history == to_robot(track, "r1").history


def test_a_scaled_path_keeps_its_middle() -> None:
    track = make_scripted_track(seconds=6.0)
    result = move_hand(track, "right", scale=0.85, blend_s=0.5)
    path = hand_positions_m(track, "right")
    inside = slice(100, 500)
    expected = path.mean(axis=0) + 0.85 * (path - path.mean(axis=0))
    assert np.abs(hand_positions_m(result, "right") - expected)[inside].max() < 0.001


def test_the_ends_move_if_that_is_asked_for() -> None:
    track = make_scripted_track()
    result = move_hand(track, "left", by=(0.05, 0.02, 0.03), move_ends=True)
    assert moved_m(track, result, "left") == pytest.approx(
        np.tile([0.05, 0.02, 0.03], (len(track), 1)), abs=0.001
    )


def test_a_change_is_limited_to_its_span() -> None:
    track = make_scripted_track(seconds=6.0)
    result = move_hand(track, "right", by=UP, start_s=1.0, end_s=4.0)
    outside = (track.times_s < 1.0) | (track.times_s > 4.0)
    assert (result.joints_rad[outside] == track.joints_rad[outside]).all()
    assert moved_m(track, result)[250] == pytest.approx(UP, abs=0.001)


def test_both_hands_keep_their_distance_so_that_they_can_carry_a_box() -> None:
    track = make_scripted_track("clap", 6.0)
    result = move_hand(track, "both", by=(0.05, 0.04, 0.06))
    before = hand_positions_m(track, "left") - hand_positions_m(track, "right")
    after = hand_positions_m(result, "left") - hand_positions_m(result, "right")
    assert np.abs(after - before).max() < 0.001
    assert moved_m(track, result, "left")[300] == pytest.approx([0.05, 0.04, 0.06], abs=0.001)


def test_the_orientation_is_kept_with_seven_joints_and_refused_with_five() -> None:
    by = (0.0, 0.05, 0.0)
    move_hand(make_scripted_track(seconds=6.0), "right", by=by, keep_orientation=True)
    with pytest.raises(BadRequestError, match="cannot keep its orientation"):
        move_hand(
            make_scripted_track(seconds=6.0, build="g1-23"), "right", by=by, keep_orientation=True
        )


def test_the_elbow_stays_nearer_than_without_the_recorded_pose() -> None:
    track = make_scripted_track(seconds=6.0)
    result = move_hand(track, "right", by=UP)
    assert np.abs(result.joints_rad - track.joints_rad).max() < 0.3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "no change of the hand was given"),
        ({"by": (0.5, 0.0, 0.5)}, "misses its new path by"),
        ({"through": [(2.0, 0.3, -0.2, 0.2), (2.0, 0.3, -0.2, 0.3)]}, "at the same time"),
        ({"through": [(0.0, 0.3, -0.2, 0.2)]}, "one of its ends, which stay"),
        ({"through": [(9.0, 0.3, -0.2, 0.2)]}, "outside the change"),
        ({"by": UP, "start_s": 2.0, "end_s": 2.01}, "too short"),
        ({"by": UP, "start_s": 3.0, "end_s": 1.0}, "too short"),
    ],
)
def test_what_cannot_be_done_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        move_hand(make_scripted_track(), "right", **change)  # type: ignore[arg-type]


def test_a_robot_without_arms_and_unknown_joints_are_refused() -> None:
    dog = build_named("a1")
    angles = np.zeros((10, len(dog.names)))
    legs = Track(times_s=np.arange(10) / 10, joints_rad=angles, names=dog.names, variant="a1")
    with pytest.raises(BadRequestError, match="position of the right hand"):
        move_hand(legs, "right", by=UP)
    unknown = Track(times_s=np.arange(10) / 10, joints_rad=np.zeros((10, 1)), names=("tail",))
    with pytest.raises(BadRequestError, match="no known robot"):
        move_hand(unknown, "right", by=UP)
    one_arm = make_scripted_track().keep("left_arm")
    with pytest.raises(BadRequestError, match="0 joints of the right arm"):
        move_hand(one_arm, "right", by=UP)


def test_marks_and_root_survive() -> None:
    track = replace(make_scripted_track(), marks=(Mark(1.0, "up"),))
    assert move_hand(track, "right", by=UP).marks == track.marks


@given(
    by=st.tuples(*[st.floats(-0.4, 0.4)] * 3),
    script=st.sampled_from(sorted(SCRIPTS)),
    hand=st.sampled_from(["left", "right", "both"]),
)
def test_any_shift_is_met_or_refused(by: tuple[float, ...], script: str, hand: str) -> None:
    track = make_scripted_track(script, 2.6)
    try:
        result = move_hand(track, hand, by=by, blend_s=0.5)
    except BadRequestError:
        return
    assert np.isfinite(result.joints_rad).all()
    for each in ("left", "right") if hand == "both" else (hand,):
        assert moved_m(track, result, each)[130] == pytest.approx(by, abs=0.0011)


def processor_time(work: Callable[[], object]) -> float:
    """Return the least processor time of three runs."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def test_ten_seconds_are_moved_in_a_fifth_of_a_second() -> None:
    track = make_scripted_track("wave", 10.0)
    assert processor_time(lambda: move_hand(track, "right", by=UP)) < 0.2


@pytest.mark.parametrize(
    ("script", "hand", "by"),
    [
        ("clap", "both", (0.05, 0.05, 0.05)),
        ("bow", "left", (0.05, 0.0, 0.0)),
        ("wave", "left", (0.0, 0.05, 0.0)),
    ],
)
def test_ten_seconds_near_a_limit_are_moved_in_a_fifth_of_a_second_too(
    script: str, hand: str, by: tuple[float, float, float]
) -> None:
    track = make_scripted_track(script, 10.0)
    assert processor_time(lambda: move_hand(track, hand, by=by)) < 0.2


def test_a_sample_that_was_moved_to_a_point_is_not_reported_as_a_step_of_speed() -> None:
    track = make_scripted_track(seconds=4.0)
    point = hand_positions_m(track, "right")[200] + [0.02, 0.0, 0.03]
    result = move_hand(track, "right", through=[(2.004, *point)])
    assert not [each for each in result.check().findings if "changes its speed" in each.message]


def swinging(seed: int, build: str = "g1-29") -> Track:
    """Return ten seconds in which each taught joint swings about its rest at its own pace."""
    chance, joints = np.random.default_rng(seed), build_named(build)
    times_s = np.arange(1001) / 100
    count = len(joints.names)
    swings = sum(
        chance.uniform(0.0, 0.3, count)
        * np.sin(
            2 * np.pi * chance.uniform(0.1, 0.6, count) * times_s[:, None]
            + chance.uniform(0.0, 6.0, count)
        )
        for _ in range(3)
    )
    is_taught = np.array([name in joints.taught for name in joints.names])
    envelope = np.sin(np.pi * times_s / 10.0)[:, None] ** 2
    poses = np.array(joints.rest_rad) + envelope * is_taught * swings
    low, high = np.array([(each.lower_rad, each.upper_rad) for each in joints.joints]).T
    return Track(
        times_s=times_s, joints_rad=np.clip(poses, low, high), names=joints.names, variant=build
    )


@pytest.mark.each_once("seed", "build")
@pytest.mark.parametrize("build", ["g1-29", "g1-23", "r1"])
@pytest.mark.parametrize("seed", range(4))
def test_an_arm_never_jumps_into_another_posture(seed: int, build: str) -> None:
    track = swinging(seed, build)
    allowed = max(1.1 * peak_acceleration(track), MAX_PLAYED_RAD_S2)
    for hand in ("left", "right"):
        try:
            result = move_hand(track, hand, by=UP)
        except BadRequestError:
            continue
        assert peak_acceleration(result) <= allowed
        harder = peak_acceleration(result) > 1.1 * peak_acceleration(track)
        assert ("times as much as recorded" in result.history[-1]) == harder
        assert moved_m(track, result, hand)[500] == pytest.approx(UP, abs=0.001)


@pytest.mark.parametrize(
    ("script", "hand", "by"),
    [
        ("wave", "left", (0.0, 0.05, 0.0)),
        ("wave", "right", (0.0, 0.0, -0.05)),
        ("bow", "left", (0.05, 0.0, 0.0)),
    ],
)
def test_an_arm_that_yields_to_a_limit_or_swings_aside_does_so_gently(
    script: str, hand: str, by: tuple[float, float, float]
) -> None:
    track = make_scripted_track(script, 6.0)
    result = move_hand(track, hand, by=by)
    assert peak_acceleration(result) <= 1.1 * peak_acceleration(track)
    assert "times as much" not in result.history[-1]
    assert moved_m(track, result, hand)[300] == pytest.approx(by, abs=0.001)
    assert (result.joints_rad[[0, -1]] == track.joints_rad[[0, -1]]).all()
    known = joints_of(track)
    for column, name in enumerate(track.names):
        assert result.joints_rad[:, column].min() >= known[name].lower_rad - 1e-9
        assert result.joints_rad[:, column].max() <= known[name].upper_rad + 1e-9


def test_fingers_and_all_that_an_arm_does_not_move_stay() -> None:
    arm = make_scripted_track("wave", 4.0)
    fingers = ("right_hand_thumb_0_joint", "right_hand_index_0_joint")
    bend = np.sin(arm.times_s)[:, None] * [0.3, 0.5]
    track = replace(arm, joints_rad=np.hstack([arm.joints_rad, bend]), names=(*arm.names, *fingers))
    result = move_hand(track, "right", by=UP)
    moved = [name for name in track.names if name.startswith("right_") and name not in fingers]
    rest = [name for name in track.names if name not in moved]
    assert (
        result.joints_rad[:, track.columns_of(rest)] == track.joints_rad[:, track.columns_of(rest)]
    ).all()
    assert moved_m(track, result)[200] == pytest.approx(UP, abs=0.001)


def test_a_kept_orientation_turns_by_less_than_two_hundredths_of_a_rad() -> None:
    track = make_scripted_track(seconds=6.0)
    result = move_hand(track, "right", by=(0.0, 0.04, 0.03), keep_orientation=True)
    family = family_of(track)
    assert family is not None
    body = kinematics_of(family)
    before, after = (body.forward(body.poses(each)) for each in (track, result))
    link = body.links.index("right_wrist_yaw_link")
    turned = np.einsum("ijn,ijn->n", before.rotations[link], after.rotations[link])
    assert np.degrees(np.arccos(np.clip((turned - 1.0) / 2.0, -1.0, 1.0))).max() < 1.2


@pytest.mark.soak
def test_soak_a_take_of_ten_minutes_is_moved() -> None:
    once = make_scripted_track("wave", 10.0)
    times_s = np.arange(60 * (len(once) - 1) + 1) / 100
    rows = np.arange(len(times_s)) % (len(once) - 1)
    track = replace(once, times_s=times_s, joints_rad=once.joints_rad[rows])
    result = move_hand(track, "right", by=UP)
    assert moved_m(track, result)[30_000] == pytest.approx(UP, abs=0.001)
    assert peak_acceleration(result) <= 1.1 * peak_acceleration(track)


@pytest.mark.parametrize("side", ["lower_rad", "upper_rad"])
def test_a_joint_at_its_limit_can_move_away_from_it(side: str) -> None:
    track = make_scripted_track("bow", 6.0)
    column = track.names.index("right_wrist_yaw_joint")
    angles = track.joints_rad.copy()
    angles[:, column] = getattr(joints_of(track)["right_wrist_yaw_joint"], side)
    held = replace(track, joints_rad=angles)
    arm = ["right_elbow_joint", "right_wrist_yaw_joint", "right_shoulder_yaw_joint"]
    few = held.keep(arm)
    before = hand_positions_m(few, "right")
    moved = few.joints_rad.copy()
    moved[:, few.columns_of(["right_wrist_yaw_joint"])] += 0.2 if side == "lower_rad" else -0.2
    wanted = hand_positions_m(replace(few, joints_rad=moved), "right")[300]
    result = move_hand(few, "right", through=[(3.0, *wanted)])
    assert hand_positions_m(result, "right")[300] == pytest.approx(wanted, abs=0.001)
    assert np.linalg.norm(before[300] - wanted) > 0.01
