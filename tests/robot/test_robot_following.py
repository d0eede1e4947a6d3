"""Poses that come one by one are followed softly, checked each, and the arms come home."""

import asyncio

import numpy as np
import pytest

import virtual
from rig import rig
from rote.errors import BadRequestError, RefusedError, UnsafeMotionError
from rote.messages import RobotState
from rote.model.g1 import G1_29
from rote.robot.following import GOAL_TIMEOUT_S, MAX_RAD_S, MAX_RAD_S2, LivePoses
from rote.robot.streamed_motion import taught_joint_arrays

pytestmark = pytest.mark.usefixtures("keeps_time")

ELBOW = "right_elbow_joint"
AT = G1_29.names.index(ELBOW)
RATE_HZ = 250.0


def live(goal: dict[str, float] | None = None) -> LivePoses:
    poses = LivePoses(G1_29, G1_29.rest_rad, RATE_HZ)
    poses[0]
    if goal:
        row = taught_joint_arrays(G1_29).rest_rad.copy()
        for name, value in goal.items():
            row[G1_29.taught.index(name)] = value
        poses.aim(row)
    return poses


def test_a_far_pose_is_reached_within_limits_and_without_overshoot() -> None:
    poses = live({ELBOW: 2.0})
    column = G1_29.taught.index(ELBOW)
    way = np.array([poses[n].joints_rad[column] for n in range(1, 1200)])
    speeds = np.diff(way) * RATE_HZ
    assert np.abs(speeds).max() <= MAX_RAD_S + 1e-9
    assert np.abs(np.diff(speeds)).max() * RATE_HZ <= MAX_RAD_S2 + 1e-6
    assert way[-1] == pytest.approx(2.0, abs=1e-3)
    assert way.max() < 2.01
    # To the first pose it goes as slowly as to the first pose of a track.
    assert np.abs(speeds).max() <= taught_joint_arrays(G1_29).soft_rad_s + 1e-9


@pytest.mark.parametrize("rate_hz", [0.5, 1.0, 2.5, 10.0, 1000.0])
def test_the_last_pose_lets_go_of_the_arms_at_any_rate(rate_hz: float) -> None:
    poses = LivePoses(G1_29, G1_29.rest_rad, rate_hz)
    poses[0]
    poses.end()
    assert poses[len(poses) - 1].weight == 0.0


def test_the_weight_rises_softly_and_falls_again_at_the_end() -> None:
    poses = live()
    rising = [poses[n].weight for n in range(1, 300)]
    assert rising[0] < 0.01
    assert rising[-1] == 1.0
    poses.end()
    last = len(poses) - 1
    falling = [poses[n].weight for n in range(300, last + 1)]
    assert falling[-1] == 0.0
    assert (np.diff(falling) <= 0).all()
    assert poses.finished


def test_arms_that_are_moving_are_braked_before_they_go_back() -> None:
    poses = live({ELBOW: 2.0})
    column = G1_29.taught.index(ELBOW)
    way = [poses[n].joints_rad[column] for n in range(1, 100)]
    poses.end()
    way += [poses[n].joints_rad[column] for n in range(100, len(poses))]
    speeds = np.diff(way) * RATE_HZ
    assert np.abs(speeds[:98]).max() > 0.3, "they were moving"
    assert np.abs(np.diff(speeds)).max() * RATE_HZ <= MAX_RAD_S2 + 1e-6
    assert way[-1] == pytest.approx(G1_29.rest[ELBOW])


def test_after_the_longest_time_the_arms_are_at_rest_and_let_go_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rote.robot.following._MAX_DURATION_S", 1800.0)
    poses = LivePoses(G1_29, G1_29.rest_rad, 3.0)  # few poses a second, to be there soon
    goal = taught_joint_arrays(G1_29).rest_rad.copy()
    goal[G1_29.taught.index(ELBOW)] += 0.3
    number = 0
    while not poses.finished:
        if number % 12 == 0:
            poses.aim(goal)
        last = poses[number]
        number += 1
    assert last.weight == 0.0
    assert last.joints_rad == pytest.approx(taught_joint_arrays(G1_29).rest_rad.tolist())


def test_without_a_new_pose_the_arms_hold_and_then_go_to_rest() -> None:
    poses = live({ELBOW: 0.2})
    held = poses[round(GOAL_TIMEOUT_S * RATE_HZ) - 1].joints_rad
    assert held[G1_29.taught.index(ELBOW)] == pytest.approx(0.2, abs=1e-3)
    before = poses.returning
    _ = poses[round(GOAL_TIMEOUT_S * RATE_HZ) + 5]
    assert (before, poses.returning) == (False, True)
    assert poses[len(poses) - 1].joints_rad == pytest.approx(
        taught_joint_arrays(G1_29).rest_rad.tolist()
    )


@pytest.mark.parametrize("wire", ["sim", "udp"])
def test_a_robot_follows_holds_what_is_refused_and_returns(wire: str) -> None:
    async def story() -> None:
        async with rig(wire) as one, one.connect() as robot:
            seen: list[RobotState] = []
            robot.on_state(seen.append)
            following = await robot.follow(contact=False)
            for number in range(90):
                following.aim({ELBOW: 1.0 - 0.5 * min(number / 60, 1.0)})
                await asyncio.sleep(1 / 30)
            with pytest.raises(UnsafeMotionError, match=ELBOW):
                following.aim({ELBOW: 5.0})
            with pytest.raises(BadRequestError, match="left_knee"):
                following.aim({"left_knee_joint": 0.5})
            with pytest.raises(BadRequestError, match="number"):
                following.aim({ELBOW: float("nan")})
            await asyncio.sleep(0.5)
            assert seen[-1].joints_rad[AT] == pytest.approx(0.5, abs=0.05)
            following.end()
            report = await following.wait()
            assert report.completed
            assert seen[-1].joints_rad[AT] == pytest.approx(G1_29.rest[ELBOW], abs=0.05)
            with pytest.raises(RefusedError):
                following.aim({ELBOW: 0.5})

    if wire == "sim":
        virtual.run(story())
    else:
        asyncio.run(story())


@pytest.mark.parametrize("rate_hz", [0.0, 5.0, 1e6, float("nan"), float("inf"), -250.0])
def test_a_rate_that_no_robot_takes_is_refused_before_anything_moves(rate_hz: float) -> None:
    async def story() -> None:
        async with rig("sim") as one, one.connect() as robot:
            with pytest.raises(BadRequestError, match="rate"):
                await robot.follow(rate_hz=rate_hz)

    virtual.run(story())


def test_a_stop_ends_following() -> None:
    async def story() -> None:
        async with rig("sim") as one, one.connect() as robot:
            following = await robot.follow(contact=False)
            following.aim({ELBOW: 0.5})
            await asyncio.sleep(1.0)
            await robot.stop()
            report = await following.wait()
            assert not report.completed

    virtual.run(story())


def test_a_pose_in_which_it_would_touch_itself_is_refused() -> None:
    pytest.importorskip("mujoco", reason="mujoco is not installed: extra physics")

    async def story() -> None:
        async with rig("sim") as one, one.connect() as robot:
            following = await robot.follow()
            with pytest.raises(UnsafeMotionError):
                following.aim({"right_shoulder_roll_joint": 0.9, "right_shoulder_pitch_joint": 0.0})
            following.aim({ELBOW: 0.8})
            await asyncio.sleep(2.0)
            following.end()
            await following.wait()

    virtual.run(story())


FREE_IN_A_STRAIGHT_LINE = (
    # Each joint goes at its own speed: the roll is there long before the yaw.
    {"pitch": -0.4, "roll": 0.0, "yaw": 1.5, "elbow": 0.2},
    {"pitch": 1.0, "roll": -1.2, "yaw": -0.4, "elbow": 0.4},
)


def right_arm(angles: dict[str, float]) -> dict[str, float]:
    return {
        f"right_{'' if name == 'elbow' else 'shoulder_'}{name}_joint": angle
        for name, angle in angles.items()
    }


def test_a_pose_on_whose_real_way_it_would_touch_itself_is_refused() -> None:
    pytest.importorskip("mujoco", reason="mujoco is not installed: extra physics")
    first, goal = (right_arm(each) for each in FREE_IN_A_STRAIGHT_LINE)

    async def story() -> None:
        async with rig("sim") as one, one.connect() as robot:
            following = await robot.follow()
            following.aim(first)
            await asyncio.sleep(4.0)
            before = robot.state
            with pytest.raises(UnsafeMotionError):
                following.aim(goal)
            await asyncio.sleep(0.5)
            assert before is not None
            assert robot.state is not None
            assert robot.state.joints_rad == pytest.approx(before.joints_rad, abs=0.02)
            following.end()
            await following.wait()

    virtual.run(story())


def test_the_way_that_is_checked_is_the_way_that_is_sent() -> None:
    poses = live({ELBOW: 2.0})
    for number in range(1, 60):  # the arms move when the next goal comes
        _ = poses[number]
    goal = taught_joint_arrays(G1_29).rest_rad.copy()
    goal[:4] += 0.5
    begin, way = poses.forecast(goal, lead_ticks=7)
    assert begin == 59 + 7
    _ = poses[62]  # some poses are sent while the way is checked
    assert poses.aim(goal, begin)
    sent = [poses[number].joints_rad for number in range(63, 59 + len(way) - 1)]
    assert np.array_equal(np.array(sent), way[4:-1])
    assert np.abs(way[-2] - goal).max() < 0.01
    assert np.array_equal(way[-1], goal)


def test_a_way_whose_check_took_too_long_is_not_gone() -> None:
    poses = live()
    goal = taught_joint_arrays(G1_29).rest_rad.copy()
    goal[0] += 0.5
    begin, _ = poses.forecast(goal, lead_ticks=2)
    stayed = poses[begin + 1].joints_rad
    assert not poses.aim(goal, begin)
    assert poses[begin + 100].joints_rad == stayed


def test_a_goal_may_be_approached_slowly_again() -> None:
    poses, column = live(), G1_29.taught.index(ELBOW)
    goal = taught_joint_arrays(G1_29).rest_rad.copy()
    goal[column] = 1.0
    _ = poses[1]
    poses.aim(goal)
    before = [poses[number].joints_rad[column] for number in range(2, 1000)]
    assert poses.reached
    goal[column] = 2.0
    assert poses.aim(goal, softly=True)
    way = np.array([before[-1], *(poses[n].joints_rad[column] for n in range(1000, 1400))])
    assert np.diff(way[way < 1.95]).max() * RATE_HZ <= taught_joint_arrays(G1_29).soft_rad_s + 1e-9
    poses.aim(goal)
    for number in range(1400, 2200):
        poses.keep()
        _ = poses[number]
    assert poses.reached


def test_a_goal_that_is_kept_is_held_for_as_long_as_wanted() -> None:
    poses = live({ELBOW: 0.2})
    for number in range(1, round(3 * GOAL_TIMEOUT_S * RATE_HZ)):
        if number % 100 == 0:
            poses.keep()
        _ = poses[number]
    assert not poses.returning
