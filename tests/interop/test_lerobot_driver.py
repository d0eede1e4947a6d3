"""The part of the plug-in that LeRobot drives, without LeRobot: on a simulated G1, and over DDS."""

import asyncio
import time
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import virtual
from interop.processes import robot_on_dds
from rig import rig
from rote.errors import (
    BadRequestError,
    RefusedError,
    TimeLimitError,
    UnsafeMotionError,
    UnsupportedError,
)
from rote.model.family import MAX_MOTION_S

PACKAGE = Path(__file__).parents[2] / "packages" / "lerobot_robot_rote" / "lerobot_robot_rote"
SIM = "sim://g1?store=:memory:"
ELBOW = "kRightElbow.q"


def loaded(name: str) -> Any:
    """Return a module of the plug-in, whose package cannot be imported without LeRobot."""
    spec = spec_from_file_location(name, PACKAGE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DRIVER = loaded("driver")


def until(found: Callable[[], bool], within_s: float = 15.0) -> None:
    end = time.monotonic() + within_s
    while not found():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)


@pytest.fixture
def robot() -> Iterator[Any]:
    driver = DRIVER.Driver(SIM, contact=False)
    driver.open()
    yield driver
    driver.close()


@pytest.fixture(scope="module")
def over_dds() -> Iterator[str]:
    pytest.importorskip("cyclonedds", reason="cyclonedds is not installed, so there is no DDS")
    with robot_on_dds("lerobot") as url:
        yield url


def test_joints_are_named_before_anything_is_connected() -> None:
    driver = DRIVER.Driver("dds://nowhere?build=g1-23")
    assert len(driver.observed) == 23
    assert len(DRIVER.Driver("sim://g1-27").observed) == 27
    assert ELBOW in DRIVER.Driver(SIM).played


def test_over_webrtc_it_says_that_no_poses_can_be_streamed_before_it_connects() -> None:
    with pytest.raises(UnsupportedError, match="webrtc:// cannot stream poses") as refusal:
        DRIVER.Driver("webrtc://ap")
    assert "dds://" in refusal.value.remedy
    assert "rote motion lerobot" in refusal.value.remedy


def test_a_robot_of_another_family_is_refused() -> None:
    driver = DRIVER.Driver("sim://a1")
    with pytest.raises(BadRequestError):
        driver.open()
    assert not driver.connected


def test_actions_are_followed_and_bad_ones_refused(robot: Any) -> None:
    here = robot.positions()
    assert set(here) == set(robot.observed)
    goal = here[ELBOW] + 0.2
    assert robot.aim({ELBOW: goal, "kLeftKnee.q": 0.3}) == {ELBOW: goal}
    until(lambda: abs(robot.positions()[ELBOW] - goal) < 0.03)
    with pytest.raises(BadRequestError, match="not a joint"):
        robot.aim({"gripper.pos": 0.5})
    with pytest.raises(BadRequestError, match="left_knee_joint should move"):
        robot.aim({"kLeftKnee.q": 0.9})
    with pytest.raises(UnsafeMotionError):
        robot.aim({ELBOW: 9.0})


def test_a_stop_is_not_undone_by_the_next_action(robot: Any) -> None:
    goal = {ELBOW: robot.positions()[ELBOW] + 0.2}
    robot.aim(goal)
    until(lambda: abs(robot.positions()[ELBOW] - goal[ELBOW]) < 0.03)
    inner, thread = robot._connected()
    thread.run(inner.stop())
    until(lambda: robot._following.done)
    for _ in range(2):
        with pytest.raises(RefusedError, match="stopped"):
            robot.aim(goal)
    robot.close()
    robot.open()
    assert robot.aim(goal) == goal


@pytest.mark.parametrize("key", [ELBOW, "kLeftKnee.q"])
def test_an_action_that_is_not_a_number_is_refused(robot: Any, key: str) -> None:
    with pytest.raises(BadRequestError, match="not a number"):
        robot.aim({key: float("nan")})


def test_arms_led_by_hand_give_actions_and_follow_none(robot: Any) -> None:
    before = robot.positions()
    robot.soften("lerobot", "wave", 2.0)
    assert robot.soft
    until(lambda: abs(robot.led()["kRightShoulderPitch.q"] - before["kRightShoulderPitch.q"]) > 0.3)
    action = robot.led()
    assert set(action) == set(robot.played)
    assert robot.aim(action) == action
    with pytest.raises(BadRequestError, match="led by hand"):
        robot.aim({**action, ELBOW: action[ELBOW] + 0.1})
    robot.harden()
    assert not robot.soft
    with pytest.raises(RuntimeError, match="nobody leads"):
        robot.led()


def test_the_hand_goes_on_after_its_script_was_performed_once(robot: Any) -> None:
    robot.soften("lerobot", "wave", 1.0)
    at = "kRightShoulderPitch.q"
    rest = robot.led()[at]
    for _ in range(2):
        until(lambda: abs(robot.led()[at] - rest) > 0.1)
        until(lambda: abs(robot.led()[at] - rest) < 0.05)


def test_a_name_that_cannot_be_taught_leaves_the_arms_as_they_are(robot: Any) -> None:
    with pytest.raises(BadRequestError):
        robot.soften("")
    assert not robot.soft
    assert robot.aim({ELBOW: robot.positions()[ELBOW]})


def test_the_end_of_a_teaching_is_told_with_the_next_action(robot: Any) -> None:
    robot.soften("lerobot")
    inner, thread = robot._connected()
    until(lambda: inner.state.arms_soft)
    thread.run(inner.stop())  # as somebody else's STOP
    with pytest.raises(RefusedError, match="ended"):
        until(lambda: robot.led() == {})
    with pytest.raises(RefusedError, match="ended"):
        robot.aim({})


@pytest.mark.parametrize("most_s", [30.0, pytest.param(MAX_MOTION_S, marks=pytest.mark.soak)])
def test_a_robot_that_ends_a_long_teaching_is_explained_and_keeps_nothing_of_it(
    most_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rote.sim.teaching.MAX_MOTION_S", most_s)
    monkeypatch.setattr(DRIVER, "MAX_MOTION_S", most_s)

    async def story() -> None:
        # It reports seldom here: three minutes of frequent reports take long to compute.
        async with rig("services", quirks=("lowstate-1hz",)) as one, one.connect() as robot:
            hand = await DRIVER._Hand.begun(robot, "lerobot", "", 6.0)
            await asyncio.sleep(most_s - 10.0)
            hand.check()
            assert one.world.body.soft
            await asyncio.sleep(20.0)
            assert not one.world.body.soft
            with pytest.raises(TimeLimitError, match=f"soft for {most_s:.0f} s") as ended:
                hand.check()
            assert "--resume=true" in ended.value.remedy
            await hand.end()
            assert (await robot.actions()).taught == ()

    virtual.run(story())


def test_over_dds_arms_are_led_by_hand_and_then_follow_what_was_recorded(over_dds: str) -> None:
    driver = DRIVER.Driver(over_dds, contact=False)
    driver.open()
    at = "kRightShoulderPitch.q"
    recorded: list[dict[str, float]] = []
    try:
        before = driver.positions()[at]
        driver.soften("lerobot", "wave", 2.0)
        while min(pose[at] for pose in [driver.led(), *recorded]) > before - 0.3:
            recorded.append(driver.led())
            time.sleep(1 / 30)
        highest = driver.led()
        driver.harden()
        driver.aim(highest)  # once the robot has brought the arms to rest
        until(lambda: abs(driver.positions()[at] - highest[at]) < 0.05)
    finally:
        driver.close()
    assert len(recorded) > 5
