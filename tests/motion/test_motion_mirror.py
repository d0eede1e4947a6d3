"""In the mirror left is right, and every link stands on the other side of the plane."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError, UnsafeMotionError
from rote.model.a1 import A1
from rote.model.family import Build, Joint
from rote.model.g1 import G1_23, G1_27, G1_29
from rote.motion.edit.mirror import mirror
from rote.motion.track import Array, Mark, Track

VARIANTS = [G1_29, G1_27, G1_23, A1]
SWAP = {"left": "right", "right": "left", "FL": "FR", "FR": "FL", "RL": "RR", "RR": "RL"}


def ids(variant: Build) -> str:
    return variant.name


def within_limits(variant: Build, seed: int) -> Track:
    """Return five random poses inside the limits."""
    lower = np.array([joint.lower_rad for joint in variant.joints])
    upper = np.array([joint.upper_rad for joint in variant.joints])
    joints_rad = np.random.default_rng(seed).uniform(lower, upper, (5, lower.size))
    return Track(
        times_s=np.arange(5.0), joints_rad=joints_rad, names=variant.names, variant=variant.name
    )


def posed(**angles_rad: float) -> Track:
    """Return two samples of a G1, both with these joints, named without `_joint`."""
    pose = [angles_rad.get(name.removesuffix("_joint"), 0.0) for name in G1_29.names]
    return Track(times_s=np.array([3.0, 4.0]), joints_rad=np.array([pose, pose]), names=G1_29.names)


def angles(track: Track) -> dict[str, float]:
    """Return the joints of the first pose that are not at 0, named without `_joint`."""
    pose = zip(track.names, track.joints_rad[0].tolist(), strict=True)
    return {name.removesuffix("_joint"): value for name, value in pose if value}


def turn(axis: tuple[float, float, float], angle_rad: float) -> Array:
    """Return the rotation matrix about an axis, by Rodrigues' formula."""
    x, y, z = axis
    cross: Array = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    turned: Array = (
        np.eye(3) + np.sin(angle_rad) * cross + (1 - np.cos(angle_rad)) * (cross @ cross)
    )
    return turned


def fixed(joint: Joint) -> Array:
    roll, pitch, yaw = joint.origin_rpy_rad
    return turn((0, 0, 1), yaw) @ turn((0, 1, 0), pitch) @ turn((1, 0, 0), roll)


def centres_m(variant: Build, pose_rad: Array) -> dict[str, Array]:
    """Return where each link's centre of mass is, by its name, from the joint table."""
    frames = {root: (np.eye(3), np.zeros(3)) for root in ("pelvis", "trunk")}
    centres = {}
    for joint, angle_rad in zip(variant.joints, pose_rad, strict=True):
        rotation, place = frames[joint.parent]
        place = place + rotation @ np.array(joint.origin_m)
        rotation = rotation @ fixed(joint) @ turn(joint.axis, float(angle_rad))
        name = joint.name.removesuffix("_joint")
        link = "torso_link" if name == "waist_pitch" else f"{name}_link"
        if variant.name == A1.name:
            link = name
        frames[link] = (rotation, place)
        centres[link] = place + rotation @ np.array(joint.com_m)
    return centres


@pytest.mark.parametrize("variant", VARIANTS, ids=ids)
@given(seed=st.integers(0, 2**32 - 1))
def test_mirrored_twice_is_the_identity(variant: Build, seed: int) -> None:
    track = within_limits(variant, seed)
    again = mirror(mirror(track))
    np.testing.assert_array_equal(again.joints_rad, track.joints_rad)
    np.testing.assert_array_equal(again.times_s, track.times_s)
    assert (again.names, again.variant) == (track.names, track.variant)


@pytest.mark.parametrize("variant", [G1_29, A1], ids=ids)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_link_stands_on_the_other_side_of_the_plane(variant: Build, seed: int) -> None:
    track = within_limits(variant, seed)
    before = centres_m(variant, track.joints_rad[0])
    after = centres_m(variant, mirror(track).joints_rad[0])
    for link, centre_m in before.items():
        side, _, rest = link.partition("_")
        # The published robot is symmetric to about a millimetre.
        expected = centre_m * [1.0, -1.0, 1.0]
        np.testing.assert_allclose(after[f"{SWAP.get(side, side)}_{rest}"], expected, atol=2e-3)


@given(seed=st.integers(0, 2**32 - 1))
def test_a_mirror_adds_one_line_and_changes_no_time(seed: int) -> None:
    track = within_limits(G1_29, seed)
    mirrored = mirror(track)
    assert mirrored.history == (*track.history, "mirror left and right")
    np.testing.assert_array_equal(mirrored.times_s, track.times_s)
    assert mirrored.joints_rad.shape == track.joints_rad.shape


def test_roll_and_yaw_change_their_sign_and_pitch_does_not() -> None:
    mirrored = mirror(posed(left_shoulder_pitch=0.1, left_shoulder_roll=0.2, right_wrist_yaw=0.3))
    assert angles(mirrored) == {
        "right_shoulder_pitch": 0.1,
        "right_shoulder_roll": -0.2,
        "left_wrist_yaw": -0.3,
    }


def test_knees_and_elbows_bend_the_same_way_on_the_other_side() -> None:
    mirrored = mirror(posed(left_knee=0.5, right_elbow=0.7))
    assert angles(mirrored) == {"right_knee": 0.5, "left_elbow": 0.7}


def test_the_waist_stays_in_the_middle() -> None:
    mirrored = mirror(posed(waist_yaw=0.4, waist_roll=0.2, waist_pitch=0.1))
    assert angles(mirrored) == {"waist_yaw": -0.4, "waist_roll": -0.2, "waist_pitch": 0.1}


def test_columns_are_found_by_name_in_any_order() -> None:
    names = ("right_shoulder_roll_joint", "waist_yaw_joint", "left_shoulder_roll_joint")
    track = Track(times_s=np.array([0.0]), joints_rad=np.array([[-1.0, 0.5, 2.0]]), names=names)
    assert mirror(track).joints_rad.tolist() == [[-2.0, -0.5, 1.0]]


def test_marks_stay_where_they_are() -> None:
    marks = (Mark(1.0, "clap"),)
    track = Track(
        times_s=np.arange(2.0), joints_rad=np.zeros((2, 1)), names=("waist_yaw_joint",), marks=marks
    )
    assert mirror(track).marks == marks


def test_a_track_that_would_leave_the_limits_is_refused_with_joint_time_number_and_limit() -> None:
    # Outwards the left shoulder rolls to 2.25 rad, and inwards to -1.59 rad only.
    track = posed(left_shoulder_roll=-2.0)
    with pytest.raises(UnsafeMotionError) as caught:
        mirror(track)
    assert caught.value.joint == "right_shoulder_roll_joint"
    assert caught.value.time_s == 3.0
    assert caught.value.reason == "2.00 rad, allowed -2.25 to 1.59 rad"


@pytest.mark.parametrize("variant", VARIANTS, ids=ids)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_some_joints_are_mirrored_as_all_are_and_twice_is_the_identity(
    variant: Build, data: st.DataObject, seed: int
) -> None:
    names = data.draw(st.lists(st.sampled_from(variant.names), min_size=1, unique=True))
    whole = within_limits(variant, seed)
    columns = [variant.names.index(name) for name in names]
    part = replace(whole, names=tuple(names), joints_rad=whole.joints_rad[:, columns])
    found, wanted = mirror(part), mirror(whole)
    assert len(set(found.names)) == len(names)
    for name, values in zip(found.names, found.joints_rad.T, strict=True):
        side, _, rest = name.partition("_")
        assert f"{SWAP.get(side, side)}_{rest}" in names
        np.testing.assert_array_equal(values, wanted.joints_rad[:, variant.names.index(name)])
    again = mirror(found)
    assert again.names == part.names
    np.testing.assert_array_equal(again.joints_rad, part.joints_rad)


def test_a_right_arm_alone_becomes_a_left_arm_alone() -> None:
    right = Track(
        times_s=np.arange(2.0),
        joints_rad=np.array([[0.1, -0.2], [0.1, -0.3]]),
        names=("right_shoulder_pitch_joint", "right_shoulder_roll_joint"),
    )
    left = mirror(right)
    assert left.names == ("left_shoulder_pitch_joint", "left_shoulder_roll_joint")
    assert left.joints_rad.tolist() == [[0.1, 0.2], [0.1, 0.3]]


def test_a_joint_the_robot_does_not_have_cannot_be_mirrored() -> None:
    track = Track(times_s=np.arange(2.0), joints_rad=np.zeros((2, 1)), names=("left_tail_joint",))
    with pytest.raises(BadRequestError, match="left_tail_joint cannot be mirrored"):
        mirror(track)


def test_a_track_of_no_joints_is_its_own_mirror() -> None:
    track = Track(times_s=np.zeros(1), joints_rad=np.empty((1, 0)), names=())
    assert mirror(track).joints_rad.shape == (1, 0)
