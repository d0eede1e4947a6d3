"""The table of joints against facts of the manufacturer's description, copied here by hand."""

import hashlib
import json

import pytest

from rote.messages import JOINT_COUNT
from rote.model.g1 import (
    G1_23,
    G1_27,
    G1_29,
    G1_JOINTS,
    G1_SHAPES,
    LEFT_ARM,
    LEGS,
    RIGHT_ARM,
    TAUGHT_JOINTS,
)

# index, name, lower rad, upper rad, rad/s, N.m
FACTS = [
    (0, "left_hip_pitch_joint", -2.5307, 2.8798, 32.0, 88.0),
    (7, "right_hip_roll_joint", -2.9671, 0.5236, 20.0, 139.0),
    (3, "left_knee_joint", -0.087267, 2.8798, 20.0, 139.0),
    (11, "right_ankle_roll_joint", -0.2618, 0.2618, 30.0, 35.0),
    (12, "waist_yaw_joint", -2.618, 2.618, 32.0, 88.0),
    (14, "waist_pitch_joint", -0.52, 0.52, 30.0, 35.0),
    (15, "left_shoulder_pitch_joint", -3.0892, 2.6704, 37.0, 25.0),
    (16, "left_shoulder_roll_joint", -1.5882, 2.2515, 37.0, 25.0),
    (23, "right_shoulder_roll_joint", -2.2515, 1.5882, 37.0, 25.0),
    (18, "left_elbow_joint", -1.0472, 2.0944, 37.0, 25.0),
    (26, "right_wrist_roll_joint", -1.972222054, 1.972222054, 37.0, 25.0),
    (28, "right_wrist_yaw_joint", -1.614429558, 1.614429558, 22.0, 5.0),
]


@pytest.mark.parametrize(("index", "name", "lower", "upper", "speed", "effort"), FACTS)
def test_a_joint_is_what_its_maker_says(
    index: int, name: str, lower: float, upper: float, speed: float, effort: float
) -> None:
    joint = G1_JOINTS[index]
    assert (joint.index, joint.name) == (index, name)
    assert (joint.lower_rad, joint.upper_rad) == (lower, upper)
    assert (joint.velocity_rad_s, joint.effort_nm) == (speed, effort)


def test_links_hang_where_the_maker_says() -> None:
    shoulder, elbow, wrist = G1_JOINTS[15], G1_JOINTS[25], G1_JOINTS[21]
    assert shoulder.parent == "torso_link"
    assert shoulder.origin_m == (0.0039563, 0.10022, 0.24778)
    assert shoulder.origin_rpy_rad == (0.27931, 5.4949e-05, -0.00019159)
    assert (elbow.parent, elbow.origin_m) == (
        "right_shoulder_yaw_link",
        (0.015783, 0.0, -0.080518),
    )
    assert (elbow.mass_kg, elbow.com_m) == (0.6, (0.064956, -0.004454, -0.010062))
    assert (wrist.origin_m, wrist.mass_kg) == ((0.046, 0.0, 0.0), 0.08457647)


def test_joints_stand_at_their_own_index() -> None:
    assert [joint.index for joint in G1_JOINTS] == list(range(JOINT_COUNT))
    assert len({joint.name for joint in G1_JOINTS}) == JOINT_COUNT


def test_every_joint_hangs_on_the_pelvis_or_on_the_link_of_another_joint() -> None:
    links = {joint.name.replace("_joint", "_link") for joint in G1_JOINTS}
    links = (links - {"waist_pitch_link"}) | {"pelvis", "torso_link"}
    assert all(joint.parent in links for joint in G1_JOINTS)


@pytest.mark.parametrize("left", [*LEGS[:6], *LEFT_ARM])
def test_left_and_right_limits_mirror_each_other(left: int) -> None:
    here, there = G1_JOINTS[left], G1_JOINTS[left + (6 if left < 12 else 7)]
    assert there.name == here.name.replace("left", "right")
    if here.axis == (1.0, 0.0, 0.0):  # a roll is mirrored; a yaw would be, but is even
        assert (there.lower_rad, there.upper_rad) == (-here.upper_rad, -here.lower_rad)
    else:
        assert (there.lower_rad, there.upper_rad) == (here.lower_rad, here.upper_rad)


def test_smaller_builds_leave_joints_out_and_keep_the_indices_of_the_rest() -> None:
    assert [joint.index for joint in G1_29.joints] == list(range(29))
    assert set(range(29)) - {joint.index for joint in G1_27.joints} == {13, 14}
    assert set(range(29)) - {joint.index for joint in G1_23.joints} == {13, 14, 20, 21, 27, 28}
    assert G1_23.names == tuple(joint.name for joint in G1_23.joints)


def test_teaching_takes_both_arms_and_of_the_waist_only_the_yaw() -> None:
    names = [G1_JOINTS[index].name for index in TAUGHT_JOINTS]
    assert names[0] == "waist_yaw_joint"
    assert all("shoulder" in n or "elbow" in n or "wrist" in n for n in names[1:])
    assert (len(names), len(LEFT_ARM), len(RIGHT_ARM)) == (15, 7, 7)


def test_the_shapes_for_contact_are_those_that_were_fitted() -> None:
    fitted = [(each.link, each.corners_m) for each in G1_SHAPES][:113]  # the others are mirrored
    assert sum(len(corners) for _, corners in fitted) == 4185
    digest = hashlib.sha256(json.dumps(fitted).encode()).hexdigest()
    assert digest == "dcba7ed3e090c73344e3beb40a56224e8b691d6147f58a4d3b65c18f2d42f5a0"
