"""The A1's joints against Unitree's description, and against each other."""

import pytest

from rote.model.a1 import (
    A1,
    A1_JOINTS,
    A1_STAND_RAD,
    FOOT_MASS_KG,
    MASS_KG,
    SDK_LIMITS_RAD,
    TRUNK_MASS_KG,
)


def test_joints_are_in_the_order_of_the_motors() -> None:
    assert [joint.index for joint in A1_JOINTS] == list(range(12))
    assert A1.names[:4] == ("FR_hip_joint", "FR_thigh_joint", "FR_calf_joint", "FL_hip_joint")
    assert A1.names[-1] == "RL_calf_joint"


def test_each_joint_hangs_on_the_one_before_it() -> None:
    links = {joint.link for joint in A1_JOINTS}
    for joint in A1_JOINTS:
        assert joint.parent == "trunk" or joint.parent in links
    assert A1_JOINTS[7].link == "RR_thigh" == A1_JOINTS[8].parent


@pytest.mark.parametrize(
    ("index", "origin_m", "com_m"),
    [
        (0, (0.1805, -0.047, 0.0), (-0.003311, -0.000635, 3.1e-05)),
        (9, (-0.1805, 0.047, 0.0), (0.003311, 0.000635, 3.1e-05)),
        (1, (0.0, -0.0838, 0.0), (-0.003237, 0.022327, -0.027326)),
        (10, (0.0, 0.0838, 0.0), (-0.003237, -0.022327, -0.027326)),
        (5, (0.0, 0.0, -0.2), (0.006435, 0.0, -0.107388)),
    ],
)
def test_places_are_the_maker_s(
    index: int, origin_m: tuple[float, ...], com_m: tuple[float, ...]
) -> None:
    assert (A1_JOINTS[index].origin_m, A1_JOINTS[index].com_m) == (origin_m, com_m)


def test_the_parts_weigh_what_the_whole_does() -> None:
    inertial_sensor_kg = 0.001
    parts = sum(joint.mass_kg for joint in A1_JOINTS) + 4 * FOOT_MASS_KG
    assert parts + TRUNK_MASS_KG + inertial_sensor_kg == pytest.approx(MASS_KG)


def test_standing_is_within_all_limits_and_those_of_the_library_are_much_alike() -> None:
    for joint, angle, limits in zip(A1_JOINTS, A1_STAND_RAD, SDK_LIMITS_RAD["a1"] * 4, strict=True):
        assert joint.lower_rad < angle < joint.upper_rad
        assert limits == pytest.approx((joint.lower_rad, joint.upper_rad), abs=0.005)
