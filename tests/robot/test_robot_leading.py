"""One robot is moved by hand or plays, and others follow it live, within their limits."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import numpy as np
import pytest

import virtual
from rig import rig
from rote import connect
from rote.errors import (
    BadRequestError,
    LinkError,
    NotConfirmedError,
    PeerLostError,
    RefusedError,
    UnsupportedError,
)
from rote.messages import Phase, RobotState
from rote.model.g1 import G1_23, G1_29
from rote.model.registry import build_named
from rote.motion.edit.hand_path import ArmSolver
from rote.motion.edit.pose_map import PoseMap
from rote.motion.track import Track
from rote.robot.leading import LOST_S, LagMeter
from rote.robot.message_robot import G1, MessageRobot
from rote.robot.robot import Robot
from rote.robot.streamed_motion import taught_joint_arrays

pytestmark = pytest.mark.usefixtures("keeps_time")

ELBOW = "right_elbow_joint"
LEFT_ELBOW = "left_elbow_joint"
ROLL = "right_shoulder_roll_joint"
SOFT_RAD_S = taught_joint_arrays(G1_29).soft_rad_s
TOUCHING = {ROLL: 0.9, "right_shoulder_pitch_joint": 0.0}


def angle(robot: MessageRobot, joint: str) -> float:
    assert robot.state is not None
    return robot.state.joints_rad[robot.build.names.index(joint)]


@asynccontextmanager
async def two(leader: str = "sim://g1", follower: str = "sim://g1") -> AsyncIterator[tuple[G1, G1]]:
    async with connect(leader, family="g1") as one, connect(follower, family="g1") as other:
        yield one, other


async def is_at_rest(robot: MessageRobot) -> bool:
    await asyncio.sleep(0.2)
    assert robot.state is not None
    return robot.state.phase is Phase.NONE and not robot.state.arms_soft


# ---- following ----------------------------------------------------------------------------------


def test_soft_arms_that_a_hand_moves_are_followed_and_hold_again() -> None:
    async def story() -> None:
        async with two() as (leader, follower):
            before = await leader.actions()
            async with leader.lead(follower) as mirroring:
                assert mirroring.soft
                await leader.move_by_hand("wave", 4.0)
                await asyncio.sleep(2.5)
                assert _soft(leader)
                lead_rad = [angle(leader, name) for name in G1_29.taught]
                follow_rad = [angle(follower, name) for name in G1_29.taught]
                rest_rad = [G1_29.rest[name] for name in G1_29.taught]
                assert np.abs(np.subtract(lead_rad, rest_rad)).max() > 0.3, "a hand moves it"
                assert follow_rad == pytest.approx(lead_rad, abs=0.2)
                (status,) = mirroring.followers
                assert status.reached
                assert status.held == ""
            assert await is_at_rest(follower)
            assert not _soft(leader)
            assert await leader.actions() == before

    virtual.run(story())


@pytest.mark.quiet
@pytest.mark.parametrize("wire", ["udp", "dds"])
def test_it_follows_over_each_wire_that_can_stream(wire: str) -> None:
    async def story() -> None:
        async with (
            connect("sim://g1", family="g1") as leader,
            rig(wire) as one,
            one.connect() as follower,
        ):
            driver = await leader.follow(contact=False)
            async with leader.lead(follower) as mirroring:
                assert not mirroring.soft, "it plays, so it is watched"
                for _ in range(30):
                    driver.aim({ELBOW: 0.5})
                    await asyncio.sleep(0.1)
                assert angle(follower, ELBOW) == pytest.approx(0.5, abs=0.1)
            assert one.world.body.joints_rad[G1_29.names.index(ELBOW)] == pytest.approx(
                G1_29.rest[ELBOW], abs=0.1
            )

    asyncio.run(story())


@pytest.mark.quiet
@pytest.mark.parametrize("wire", ["udp", "webrtc"])
def test_arms_that_are_soft_over_another_wire_lead(wire: str) -> None:
    async def story() -> None:
        async with (
            rig(wire) as one,
            one.connect() as leader,
            connect("sim://g1", family="g1") as follower,
        ):
            async with leader.lead(follower) as mirroring:
                assert mirroring.soft
                await mirroring.wait(1.0)
                assert one.world.state().arms_soft
            assert not one.world.state().arms_soft
            assert not (await leader.actions()).taught

    asyncio.run(story())


def test_in_the_mirror_the_other_arm_follows() -> None:
    async def story() -> None:
        async with two() as (leader, follower):
            driver = await leader.follow(contact=False)
            async with leader.lead(follower, mirrored=True):
                driver.aim({ELBOW: 0.4, "waist_yaw_joint": 0.3})
                await asyncio.sleep(3.0)
                assert angle(follower, LEFT_ELBOW) == pytest.approx(0.4, abs=0.05)
                assert angle(follower, ELBOW) == pytest.approx(G1_29.rest[ELBOW], abs=0.05)
                assert angle(follower, "waist_yaw_joint") == pytest.approx(-0.3, abs=0.05)

    virtual.run(story())


def test_several_robots_follow_one_also_of_another_build() -> None:
    async def story() -> None:
        async with two() as (leader, follower), connect("sim://g1-23", family="g1") as small:
            driver = await leader.follow(contact=False)
            async with leader.lead(follower, small) as mirroring:
                driver.aim({ELBOW: 0.4, "right_wrist_yaw_joint": 0.5})
                await asyncio.sleep(2.5)
                assert angle(follower, ELBOW) == pytest.approx(0.4, abs=0.05)
                assert angle(small, ELBOW) == pytest.approx(0.4, abs=0.05)
                assert len(mirroring.followers) == 2

    virtual.run(story())


def test_the_first_pose_is_approached_slowly() -> None:
    async def story() -> None:
        async with two() as (leader, follower):
            driver = await leader.follow(contact=False)
            driver.aim({ELBOW: -0.5})
            await asyncio.sleep(4.0)
            seen: list[float] = []
            follower.on_state(lambda state: seen.append(max(map(abs, state.velocities_rad_s))))
            driver.keep()
            async with leader.lead(follower) as mirroring:
                while not mirroring.followers[0].reached:
                    driver.keep()
                    await asyncio.sleep(0.1)
                assert angle(follower, ELBOW) == pytest.approx(-0.5, abs=0.1)
                assert max(seen) < 1.2 * SOFT_RAD_S

    virtual.run(story())


# ---- contact and limits -------------------------------------------------------------------------


def test_a_pose_in_which_it_would_touch_itself_is_held_and_then_approached_slowly() -> None:
    pytest.importorskip("mujoco", reason="mujoco is not installed: extra physics")

    async def story() -> None:
        async with two() as (leader, follower):
            driver = await leader.follow(contact=False)
            async with leader.lead(follower) as mirroring:
                driver.aim({ELBOW: 0.8})
                await asyncio.sleep(2.0)
                driver.aim({**TOUCHING, LEFT_ELBOW: -0.3})
                await asyncio.sleep(1.5)
                (status,) = mirroring.followers
                assert status.held, "it says why it holds"
                assert status.holds == 1
                held_rad = angle(follower, ROLL)
                assert angle(leader, ROLL) > held_rad + 0.3
                driver.keep()
                await asyncio.sleep(0.5)
                assert angle(follower, ROLL) == pytest.approx(held_rad, abs=0.02)
                assert angle(follower, LEFT_ELBOW) > 0.3, "the other arm holds, too"
                seen: list[RobotState] = []
                follower.on_state(seen.append)
                driver.aim({ROLL: -0.6, ELBOW: 0.8})
                await asyncio.sleep(3.0)
                assert mirroring.followers[0].held == ""
                assert angle(follower, ROLL) == pytest.approx(-0.6, abs=0.05)
                fastest = max(max(map(abs, each.velocities_rad_s)) for each in seen)
                assert fastest < 1.3 * SOFT_RAD_S
                assert angle(follower, LEFT_ELBOW) == pytest.approx(-0.3, abs=0.05)

    virtual.run(story())


def test_a_pose_beyond_a_limit_is_followed_up_to_the_limit_and_named() -> None:
    poses = PoseMap(G1_29, G1_29)
    row = list(G1_29.rest_rad)
    row[G1_29.names.index(ELBOW)] = 9.0
    mapped = poses.map_pose(row)
    joint = next(each for each in G1_29.joints if each.name == ELBOW)
    assert mapped.joints_rad[ELBOW] == joint.upper_rad
    assert mapped.limited == (ELBOW,)


@pytest.mark.parametrize("mirrored", [False, True])
def test_hands_of_another_family_take_the_same_place_scaled_to_the_arms(mirrored: bool) -> None:
    source = build_named("r1")
    row = list(source.rest_rad)
    for name, moved in (("right_elbow_joint", -0.4), ("right_shoulder_pitch_joint", -0.3)):
        row[source.names.index(name)] += moved
    mapped = PoseMap(source, G1_29, mirrored=mirrored).map_pose(row)
    side = "left" if mirrored else "right"
    own = _hand(G1_29.name, tuple(mapped.joints_rad), list(mapped.joints_rad.values()), side)
    theirs = _hand(source.name, source.names, row, "right")
    wanted = theirs[0] * (1.0, -1.0 if mirrored else 1.0, 1.0) * own[1] / theirs[1]
    assert own[0] == pytest.approx(wanted, abs=0.02)


def _hand(
    build: str, names: tuple[str, ...], row: list[float], side: str
) -> tuple[np.ndarray, float]:
    """Return where a hand is from its shoulder, and the length of the arm."""
    pose = Track(times_s=np.zeros(1), joints_rad=np.array([row]), names=names, variant=build)
    solver = ArmSolver(pose, [side])
    return solver.positions_m()[0, 0] - solver.shoulders_m()[0, 0], solver.arm_length_m(0)


def test_a_smaller_build_takes_over_the_joints_that_it_has() -> None:
    mapped = PoseMap(G1_29, G1_23).map_pose(G1_29.rest_rad)
    assert set(mapped.joints_rad) == set(G1_23.taught) & set(G1_29.taught)


# ---- how it ends --------------------------------------------------------------------------------


def test_a_leader_that_is_lost_lets_the_followers_come_to_rest() -> None:
    async def story() -> None:
        async with (
            rig("udp") as one,
            one.connect() as leader,
            connect("sim://g1", family="g1") as follower,
        ):
            loop, ended_s = asyncio.get_running_loop(), [0.0]

            def note(state: RobotState) -> None:
                if state.phase is Phase.RETURN and not ended_s[0]:
                    ended_s[0] = loop.time()

            follower.on_state(note)
            cut_s = 0.0
            with pytest.raises(PeerLostError, match="leader"):
                async with leader.lead(follower) as mirroring:
                    await mirroring.wait(2.0)
                    cut_s = loop.time()
                    await one.die()
                    await asyncio.sleep(60.0)
            assert mirroring.over
            assert ended_s[0] - cut_s < LOST_S + 0.4
            assert await is_at_rest(follower)

    virtual.run(story())


def test_a_follower_that_is_lost_ends_it_and_the_leader_holds() -> None:
    async def story() -> None:
        async with (
            connect("sim://g1", family="g1") as leader,
            connect("sim://g1", family="g1") as other,
            rig("udp") as one,
            one.connect() as follower,
        ):
            with pytest.raises(LinkError, match="follower"):
                async with leader.lead(follower, other) as mirroring:
                    await mirroring.wait(1.5)
                    await one.die()
                    await asyncio.sleep(60.0)
            assert await is_at_rest(other)
            assert not _soft(leader)

    virtual.run(story())


@pytest.mark.parametrize("stopped", ["leader", "follower", "other"])
def test_a_stop_of_one_robot_stops_all(stopped: str) -> None:
    async def story() -> None:
        async with two() as (leader, follower), connect("sim://g1", family="g1") as other:
            robots = {"leader": leader, "follower": follower, "other": other}
            with pytest.raises(RefusedError, match="stop"):
                async with leader.lead(follower, other) as mirroring:
                    await mirroring.wait(1.2)
                    await robots[stopped].stop()
                    await asyncio.sleep(60.0)
            for robot in robots.values():
                assert await is_at_rest(robot)

    virtual.run(story())


def test_a_stop_that_a_follower_does_not_confirm_is_raised() -> None:
    async def story() -> None:
        async with (
            connect("sim://g1", family="g1") as leader,
            rig("udp") as one,
            one.connect(timeout=1.0) as follower,
        ):
            with pytest.raises(NotConfirmedError, match="did not confirm the stop"):
                async with leader.lead(follower) as mirroring:
                    await mirroring.wait(1.2)
                    await one.die()
                    await leader.stop()
                    await asyncio.sleep(60.0)

    virtual.run(story())


@pytest.mark.parametrize("after_s", [0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 1.4])
def test_cancelled_at_any_time_the_leader_holds_and_the_follower_rests(after_s: float) -> None:
    async def story() -> None:
        async with two() as (leader, follower):

            async def mirror() -> None:
                async with leader.lead(follower):
                    await asyncio.sleep(60.0)

            task = asyncio.create_task(mirror())
            await asyncio.sleep(after_s)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await is_at_rest(follower)
            assert not _soft(leader)

    virtual.run(story())


def _soft(robot: MessageRobot) -> bool:
    assert robot.state is not None
    return robot.state.arms_soft


def test_an_exception_in_the_block_ends_it_safely_and_is_raised() -> None:
    async def story() -> None:
        async with two() as (leader, follower):
            with pytest.raises(ZeroDivisionError):
                async with leader.lead(follower) as mirroring:
                    await mirroring.wait(1.2)
                    raise ZeroDivisionError
            assert not _soft(leader)
            assert await is_at_rest(follower)

    virtual.run(story())


def test_arms_that_another_client_stiffens_end_it() -> None:
    async def story() -> None:
        async with (
            rig("udp") as one,
            one.connect() as leader,
            connect("sim://g1", family="g1") as follower,
        ):
            async with one.bystander() as stranger:
                with pytest.raises(RefusedError, match="ended"):
                    async with leader.lead(follower) as mirroring:
                        await mirroring.wait(1.2)
                        await stranger.stop()
                        await asyncio.sleep(60.0)
            assert await is_at_rest(follower)

    virtual.run(story())


# ---- what cannot be -----------------------------------------------------------------------------


def refused(
    *urls: str,
    error: type[Exception],
    match: str,
    followers: Callable[[list[Robot]], list[Robot]] = list,
) -> None:
    async def story() -> None:
        robots = [await connect(url).__aenter__() for url in urls]
        try:
            with pytest.raises(error, match=match):
                robots[0].lead(*followers(robots[1:] or robots))
        finally:
            for robot in robots:
                await robot.close()

    virtual.run(story())


def test_a_robot_does_not_follow_itself() -> None:
    refused("sim://g1", error=BadRequestError, match="named twice")


def test_a_leader_without_followers_is_refused() -> None:
    refused("sim://g1", error=BadRequestError, match="no follower", followers=lambda _: [])


def test_legs_do_not_follow_arms() -> None:
    refused("sim://g1", "sim://a1", error=BadRequestError, match="no arms")


def test_legs_do_not_lead_arms() -> None:
    refused("sim://a1", "sim://g1", error=UnsupportedError, match="no arms")


def test_a_robot_that_cannot_be_streamed_to_does_not_follow() -> None:
    refused("sim://g1", "sim://r1", error=UnsupportedError, match="stream")


# ---- the lag ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lag_s", [0.0, 0.06, 0.12, 0.3])
def test_the_lag_of_a_moving_follower_is_measured(lag_s: float) -> None:
    meter = LagMeter()
    for number in range(200):
        at_s = number / 50
        meter.add_goal(at_s, np.array([np.sin(3 * at_s), 0.0]))
        meter.add_state(at_s, np.array([np.sin(3 * (at_s - lag_s)), 0.0]))
    assert meter.measure(at_s) == pytest.approx(lag_s, abs=0.006)
    assert meter.percentile_ms(99.0) == pytest.approx(1000 * lag_s, abs=12)


def test_without_a_motion_there_is_no_lag() -> None:
    meter = LagMeter()
    for number in range(200):
        meter.add_goal(number / 50, np.zeros(2))
        meter.add_state(number / 50, np.zeros(2))
    assert meter.measure(4.0) is None
    assert meter.percentile_ms(50.0) is None


def test_a_leader_that_is_silent_for_a_while_has_no_lag() -> None:
    meter = LagMeter()
    for number in range(200):
        meter.add_goal(number / 50, np.array([number / 50]))
        meter.add_state(2.0 + number / 50, np.array([number / 50]))
    assert meter.measure(6.0) is None


def test_in_simulation_the_lag_is_small_although_contact_is_checked() -> None:
    async def story() -> None:
        async with two() as (leader, follower):
            async with leader.lead(follower) as mirroring:
                await leader.move_by_hand("wave", 8.0)
                await asyncio.sleep(5.0)
                (status,) = mirroring.followers
                assert status.lag_p99_ms is not None
                assert status.lag_p99_ms <= 120.0

    virtual.run(story())
