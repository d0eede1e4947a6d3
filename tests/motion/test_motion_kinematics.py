"""Where links are and what they weigh: against what can be worked out by hand, and by the sim."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from g1_29 import REST_RAD, arm_weight_nm
from rote.errors import BadRequestError
from rote.model.family import BodyFacts, Build, Family, FixedMass, Joint, Vector
from rote.model.g1 import (
    FOOT_CORNERS_M,
    G1,
    G1_23,
    G1_29,
    G1_JOINTS,
    G1_REST_RAD,
    HAND_COM_M,
    LEFT_ARM,
    PELVIS_MASS_KG,
    RIGHT_ARM,
)
from rote.motion.body import kinematics
from rote.motion.body.kinematics import Kinematics, kinematics_of
from rote.motion.edit.mirror import mirror
from rote.motion.track import Array, Track

BODY = kinematics_of(G1)
LINKS = BODY.links
POSES = st.integers(0, 2**32 - 1).map(
    lambda seed: np.random.default_rng(seed).uniform(-1.5, 1.5, (3, len(G1_JOINTS)))
)


def turned(angle_rad: float, axis: Vector) -> Array:
    """Return the matrix of a turn about any axis, by Rodrigues' formula."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    matrix = np.eye(3) + np.sin(angle_rad) * cross + (1 - np.cos(angle_rad)) * cross @ cross
    return np.asarray(matrix)


def walked(
    pose: Array, link: str, joints: tuple[Joint, ...] = G1_JOINTS, base: str = "pelvis"
) -> tuple[Array, Array]:
    """Return place and turn of a link, by walking from it to the base."""
    place, turn = np.zeros(3), np.eye(3)
    while link != base:
        joint = next(joint for joint in joints if joint.link == link)
        roll, pitch, yaw = joint.origin_rpy_rad
        mount = turned(yaw, (0, 0, 1)) @ turned(pitch, (0, 1, 0)) @ turned(roll, (1, 0, 0))
        mount = mount @ turned(float(pose[joint.index]), joint.axis)
        place, turn = np.array(joint.origin_m) + mount @ place, mount @ turn
        link = joint.parent
    return place, turn


@given(POSES)
def test_all_links_are_where_a_walk_along_the_chain_finds_them(poses: Array) -> None:
    frames = BODY.forward(poses)
    for index, link in enumerate(LINKS):
        place, turn = walked(poses[1], link)
        assert frames.positions_m[index, :, 1] == pytest.approx(place, abs=1e-12)
        assert frames.rotations[index, :, :, 1] == pytest.approx(turn, abs=1e-12)


def test_hanging_arms_have_the_hands_beside_the_hips() -> None:
    left, right = BODY.tips_m(BODY.forward(REST_RAD[None, :]))[0]
    assert left == pytest.approx([0.07, 0.24, -0.15], abs=0.01)
    assert right == pytest.approx(left * [1, -1, 1], abs=1e-4)


def test_a_hand_is_a_point_of_the_wrist() -> None:
    frames = BODY.forward(REST_RAD[None, :])
    hands = BODY.tips_m(frames)
    for hand, arm in enumerate((LEFT_ARM, RIGHT_ARM)):
        place, turn = walked(REST_RAD, LINKS[arm[-1]])
        assert hands[0, hand] == pytest.approx(place + turn @ np.array(HAND_COM_M))


@given(POSES)
def test_a_mirrored_pose_has_mirrored_hands_and_a_mirrored_centre_of_mass(poses: Array) -> None:
    joints_rad = REST_RAD + poses / 6
    track = Track(times_s=np.arange(3.0), joints_rad=joints_rad, names=G1_29.names)
    other = mirror(track)
    frames, others = BODY.forward(track.joints_rad), BODY.forward(other.joints_rad)
    hands, mirrored = BODY.tips_m(frames), BODY.tips_m(others)
    assert mirrored[:, 0] == pytest.approx(hands[:, 1] * [1, -1, 1], abs=1e-3)
    load = BODY.link_masses()
    centre = BODY.centre_of_mass_m(frames, load)
    assert BODY.centre_of_mass_m(others, load) == pytest.approx(centre * [1, -1, 1], abs=1e-3)


def test_the_whole_robot_weighs_what_its_maker_says() -> None:
    assert BODY.link_masses().masses_kg.sum() + PELVIS_MASS_KG == pytest.approx(33.341, abs=0.002)


def test_what_hands_carry_is_weighed_where_they_are() -> None:
    frames = BODY.forward(REST_RAD[None, :])
    empty, loaded = BODY.link_masses(), BODY.link_masses(2.0)
    assert loaded.masses_kg.sum() - empty.masses_kg.sum() == pytest.approx(4.0)
    total = empty.masses_kg.sum() + PELVIS_MASS_KG
    hands = BODY.tips_m(frames)[0].mean(axis=0)
    before = BODY.centre_of_mass_m(frames, empty)[0]
    after = BODY.centre_of_mass_m(frames, loaded)[0]
    assert after == pytest.approx((total * before + 4.0 * hands) / (total + 4.0))


@given(POSES)
def test_the_arms_weigh_on_their_joints_as_the_simulated_body_has_it(poses: Array) -> None:
    poses[:, :15] = 0.0
    torques = BODY.gravity_torque_nm(BODY.forward(poses), BODY.link_masses())
    arms = np.array([*LEFT_ARM, *RIGHT_ARM])
    for pose, torque in zip(poses, torques, strict=True):
        assert torque[arms] == pytest.approx(arm_weight_nm(pose[arms]), abs=1e-9)


@given(POSES)
def test_torque_is_how_much_height_a_joint_costs(poses: Array) -> None:
    load, step = BODY.link_masses(), 1e-5
    total = load.masses_kg.sum() + PELVIS_MASS_KG

    def energy(pose: Array) -> float:
        centre = BODY.centre_of_mass_m(BODY.forward(pose[None, :]), load)
        return float(centre[0, 2] * total * kinematics.GRAVITY_M_S2)

    pose = poses[0]
    torques = BODY.gravity_torque_nm(BODY.forward(pose[None, :]), load)[0]
    for joint in (12, 13, 14, 15, 18, 23):
        ahead, behind = pose.copy(), pose.copy()
        ahead[joint] += step
        behind[joint] -= step
        slope = (energy(ahead) - energy(behind)) / (2 * step)
        assert torques[joint] == pytest.approx(-slope, abs=1e-5)


def test_joints_a_track_does_not_have_stay_at_ease_or_where_they_are() -> None:
    names = ("left_elbow_joint", "nose_joint")
    track = Track(
        times_s=np.arange(2.0), joints_rad=np.array([[0.5, 9.0], [0.6, 9.0]]), names=names
    )
    at_ease = BODY.poses(track)
    assert at_ease[:, 18].tolist() == [0.5, 0.6]
    assert np.delete(at_ease, 18, axis=1) == pytest.approx(
        np.repeat(np.delete(REST_RAD, 18)[None, :], 2, axis=0)
    )
    start = np.arange(29) / 100
    assert BODY.poses(track, start)[1, 25] == 0.25


@pytest.mark.parametrize("pose", [[], [0.0] * 28, [float("nan")] * 29])
def test_half_a_pose_is_refused(pose: list[float]) -> None:
    with pytest.raises(BadRequestError, match="a pose is 29 angles"):
        kinematics.whole_pose(pose, G1_29)


def test_the_simulated_body_rests_where_the_model_says() -> None:
    assert pytest.approx(G1_REST_RAD) == REST_RAD


def askew(axes: Array) -> Family:
    """Return three links in a row about any axes, their table in the wrong order."""
    joints = tuple(
        Joint(
            index=index,
            name=f"{name}_joint",
            parent=parent,
            axis=(float(axis[0]), float(axis[1]), float(axis[2])),
            lower_rad=-3.0,
            upper_rad=3.0,
            velocity_rad_s=5.0,
            effort_nm=5.0,
            origin_m=(0.1, 0.2, 0.3),
            origin_rpy_rad=(0.1, -0.4, 0.3 * index),
            mass_kg=1.0 + index,
            com_m=(0.05, 0.0, 0.1),
        )
        for index, (name, parent, axis) in enumerate(
            zip(("root", "middle", "tip"), ("rock", "root_link", "middle_link"), axes, strict=True)
        )
    )
    body = BodyFacts(
        base="rock",
        base_mass_kg=2.0,
        fixed=(
            FixedMass("rock", 1.0, (0.0, 0.3, 0.0)),
            FixedMass("tip_link", 0.5, (0.2, 0.0, 0.0)),
        ),
        tips=(("tip_link", (0.2, 0.0, 0.0)),),
    )
    build = Build(name="askew", family="askew", joints=joints)
    return Family(name="askew", title="askew", joints=joints, builds=(build,), body=body)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_body_may_have_any_axes(seed: int, aligned: bool) -> None:
    chance = np.random.default_rng(seed)
    axes = chance.normal(size=(3, 3))
    if aligned:
        axes = np.eye(3)[chance.integers(0, 3, 3)] * chance.choice([-1.0, 1.0], (3, 1))
    axes = axes / np.linalg.norm(axes, axis=1, keepdims=True)
    body = Kinematics(askew(axes))
    poses = chance.uniform(-2.0, 2.0, (2, 3))
    frames = body.forward(poses)
    for index, link in enumerate(body.links):
        place, turn = walked(poses[1], link, body.joints, "rock")
        assert frames.positions_m[index, :, 1] == pytest.approx(place, abs=1e-12)
        assert frames.rotations[index, :, :, 1] == pytest.approx(turn, abs=1e-12)
    assert body.chains == (frozenset({"tip_joint", "root_joint", "middle_joint"}),)
    assert body.tips_m(frames).shape == (2, 1, 3)
    # Torque is how much height a joint costs.
    load, step = body.link_masses(0.7), 1e-5
    assert load.masses_kg.sum() + body.base_mass()[0] == pytest.approx(1 + 2 + 3 + 0.5 + 0.7 + 3)
    total = load.masses_kg.sum() + body.base_mass()[0]
    torques = body.gravity_torque_nm(frames, load)[0]
    for joint in range(3):
        moved = poses[[0, 0]] + step * np.outer([1.0, -1.0], np.eye(3)[joint])
        heights = body.centre_of_mass_m(body.forward(moved), load)[:, 2]
        slope = (heights[0] - heights[1]) * total * kinematics.GRAVITY_M_S2 / (2 * step)
        assert torques[joint] == pytest.approx(-slope, abs=1e-5)


def test_a_table_that_is_no_tree_is_refused_with_the_joint() -> None:
    family = askew(np.eye(3))
    lost = replace(family.joints[-1], parent="nowhere")
    with pytest.raises(ValueError, match="tip_joint of askew is mounted on 'nowhere'"):
        replace(family, joints=(*family.joints[:-1], lost))


def test_what_a_build_lacks_is_locked_and_a_pose_is_in_its_columns() -> None:
    track = Track(times_s=np.zeros(1), joints_rad=np.ones((1, 1)), names=("left_elbow_joint",))
    pose = BODY.poses(track, np.arange(23) / 10, G1_23)[0]
    assert pose[18] == 1.0
    assert pose[[13, 14, 20, 21, 27, 28]].tolist() == [0.0] * 6
    assert pose[15] == pytest.approx(1.3), "the 14th column of a G1 with 23 joints"
    with pytest.raises(BadRequestError, match="a pose is 23 angles"):
        BODY.poses(track, np.zeros(29), G1_23)


def test_at_rest_both_soles_are_level() -> None:
    frames = BODY.forward(REST_RAD[None, :])
    soles = [
        frames.points_m(LINKS.index(f"{side}_ankle_roll_link"), corner)[2, 0]
        for side in ("left", "right")
        for corner in FOOT_CORNERS_M
    ]
    assert np.ptp(soles) < 1e-3
