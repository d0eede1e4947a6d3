"""A motion that begins at a given moment: in time and softly, or not at all."""

import asyncio
import contextlib

import numpy as np
import pytest

import virtual
from rig import rig
from rote.errors import BadRequestError
from rote.messages import Phase, RobotState
from rote.motion.track import Track
from rote.robot.ticker import TimedStart

JOINT = "left_elbow_joint"
FASTEST_RAD_S = 4.0


def lifted(seconds: float = 6.0) -> Track:
    """Return a motion that is far from rest after a while."""
    times_s = np.linspace(0.0, seconds, round(100 * seconds) + 1)
    elbow = 0.3 + 1.2 * np.sin(0.5 * np.pi * times_s / seconds) ** 2
    return Track(times_s=times_s, joints_rad=elbow[:, None], names=(JOINT,))


def test_a_timed_motion_begins_at_its_moment() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with rig("memory") as one, one.connect() as robot:
            report = await robot.play_track(lifted(1.0), at=loop.time() + 3.0)
            assert report.completed
            assert report.start_late_ms == pytest.approx(0.0, abs=5.0)

    virtual.run(story())


def test_the_arms_rest_until_the_way_to_the_first_pose_is_due() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with rig("memory") as one, one.connect() as robot:
            start = TimedStart()
            playing = robot.play_track(lifted(1.0), at=start)
            lead_s = await start.lead_s
            begins_s = loop.time() + lead_s + 20.0
            start.at(begins_s)
            while one.world.state().phase is Phase.NONE:
                await asyncio.sleep(0.01)
            assert begins_s - lead_s - 0.05 < loop.time() < begins_s
            assert (await playing).completed

    virtual.run(story())


def test_a_robot_that_accepts_too_late_is_not_led_into_the_middle_of_the_motion() -> None:
    seen: list[RobotState] = []

    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with rig("memory") as one, one.connect() as robot, one.bystander() as other:
            start = TimedStart()
            playing = robot.play_track(lifted(), at=start)
            lead_s = await start.lead_s
            # Somebody else's motion returns to rest when ours should begin: the robot is busy.
            theirs = other.play_track(lifted(2.0))
            async for state in other.states():
                if state.phase is Phase.RETURN:
                    break
            forget = robot.on_state(seen.append)
            start.at(loop.time() + lead_s + 0.1)
            with pytest.raises(BadRequestError, match="s late, so its arms"):
                await playing
            with contextlib.suppress(BadRequestError):
                await theirs
            await asyncio.sleep(3.0)
            forget()
            assert one.world.state().phase is Phase.NONE

    virtual.run(story())
    rows = np.array([state.joints_rad for state in seen])
    times_s = np.array([state.time_us / 1e6 for state in seen])
    speeds = np.abs(np.diff(rows, axis=0)) / np.maximum(np.diff(times_s), 1e-3)[:, None]
    assert speeds.max() < FASTEST_RAD_S
