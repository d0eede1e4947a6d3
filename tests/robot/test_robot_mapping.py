"""A motion of another build: what is left out is said, and nothing moves before somebody agrees."""

import asyncio

import numpy as np
import pytest

import virtual
from rote.connection import connect
from rote.errors import BadRequestError, OtherBuildError
from rote.model.a1 import A1_BUILD
from rote.model.family import Build
from rote.model.g1 import G1_23, G1_27, G1_29
from rote.motion.track import Track
from rote.robot.streamed_motion import check_build, taught_joint_arrays, taught_poses

WRISTS = tuple(name for name in G1_29.taught if name not in G1_23.taught)


def still(build: Build, moved: str = "", by_rad: float = 0.2) -> Track:
    """A second at rest, in which one joint moves."""
    poses = np.repeat(np.array([build.rest_rad]), 101, axis=0)
    if moved:
        poses[:, build.names.index(moved)] += by_rad * np.sin(np.linspace(0, np.pi, 101))
    times_s = np.arange(101) / 100.0
    return Track(times_s=times_s, joints_rad=poses, names=build.names, variant=build.name)


def test_a_motion_of_a_larger_build_says_which_joints_would_be_left_out() -> None:
    with pytest.raises(OtherBuildError) as raised:
        taught_poses(still(G1_29), G1_23)
    error = raised.value
    assert (error.made_on, error.robot) == ("g1-29", "g1-23")
    assert set(WRISTS) <= set(error.left_out)
    assert error.missing == ()
    assert "mapped=True" in error.remedy


def test_a_motion_of_a_smaller_build_says_which_joints_would_stay_at_rest() -> None:
    with pytest.raises(OtherBuildError) as raised:
        taught_poses(still(G1_23), G1_29)
    assert raised.value.missing == WRISTS
    assert raised.value.left_out == ()


@pytest.mark.parametrize(("made_on", "robot"), [(G1_29, G1_23), (G1_23, G1_29), (G1_29, G1_27)])
def test_mapped_joints_keep_their_names_and_the_others_rest(made_on: Build, robot: Build) -> None:
    track = still(made_on, "left_elbow_joint")
    poses = taught_poses(track, robot, mapped=True)
    elbow = robot.taught.index("left_elbow_joint")
    wanted = track.joints_rad[:, made_on.names.index("left_elbow_joint")]
    assert np.allclose(poses[:, elbow], wanted)
    rest = taught_joint_arrays(robot).rest_rad
    assert np.allclose(np.delete(poses, elbow, axis=1), np.delete(rest, elbow))


def test_a_motion_of_the_same_build_asks_nobody() -> None:
    check_build(still(G1_23), G1_23, mapped=False)


def test_nothing_makes_a_quadruped_s_motion_a_g1_s() -> None:
    with pytest.raises(BadRequestError, match="motion of an A1, but the robot is a G1"):
        taught_poses(still(A1_BUILD), G1_29, mapped=True)


def test_a_simulated_robot_of_23_joints_plays_what_one_of_29_was_taught_once_it_may() -> None:
    async def main() -> None:
        track = still(G1_29, "left_elbow_joint")
        async with connect("sim://g1-23?store=:memory:") as robot:
            assert robot.build is G1_23
            with pytest.raises(OtherBuildError):
                robot.play_track(track)
            await asyncio.sleep(0)
            report = await robot.play_track(track, mapped=True, force=True)
            assert report.completed

    virtual.run(main())
