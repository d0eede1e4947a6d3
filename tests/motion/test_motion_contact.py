"""The body of capsules: free where a person would see it free, touching where it would touch."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from g1_29 import REST_RAD
from rote.errors import MissingExtraError
from rote.model.g1 import G1, G1_29, G1_JOINTS, G1_SHAPES
from rote.motion.body.contact import Contact, ContactModel, body_xml, find_contacts, neighbour_pairs
from rote.motion.body.kinematics import kinematics_of
from rote.motion.track import Array, Track
from rote.sim.hands import SCRIPTS, ScriptedHand

pytest.importorskip("mujoco")

BODY = kinematics_of(G1)
LINKS = BODY.links
INDEX = {joint.name: joint.index for joint in G1_JOINTS}


@pytest.fixture(scope="module")
def body() -> ContactModel:
    return ContactModel(G1)


def held(**angles_rad: float) -> Track:
    """Return one pose: at ease but for these joints."""
    return through(angles_rad)


def through(*poses: dict[str, float]) -> Track:
    """Return a second from pose to pose, with nothing between."""
    rows = np.repeat(REST_RAD[None, :], len(poses), axis=0)
    for row, pose in zip(rows, poses, strict=True):
        for name, value in pose.items():
            row[INDEX[f"{name}_joint"]] = value
    return Track(times_s=np.arange(float(len(poses))), joints_rad=rows, names=G1_29.names)


def pairs(found: list[Contact]) -> set[tuple[str, str]]:
    return {(contact.a, contact.b) for contact in found}


def performed(name: str) -> Track:
    hand = ScriptedHand(name, 6.0)
    times_s = np.arange(0.0, 6.0, 0.02)
    poses: Array = np.array([hand.pose(time_s) for time_s in times_s.tolist()])
    return Track(times_s=times_s, joints_rad=poses, names=G1_29.names)


def test_a_robot_at_ease_and_one_with_all_joints_at_0_touch_nothing(body: ContactModel) -> None:
    zero = Track(times_s=np.zeros(1), joints_rad=np.zeros((1, 29)), names=G1_29.names)
    assert body.find_contacts(held()) == []
    assert body.find_contacts(zero) == []


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_what_the_scripted_hands_do_touches_nothing_but_hand_to_hand(
    name: str, body: ContactModel
) -> None:
    met = pairs(body.find_contacts(performed(name)))
    assert met <= ({("left_wrist_yaw_link", "right_wrist_yaw_link")} if name == "clap" else set())


def test_an_arm_led_through_the_chest_is_found(body: ContactModel) -> None:
    track = held(right_shoulder_pitch=0.0, right_shoulder_yaw=1.5, right_elbow=-0.3)
    found = body.find_contacts(track)
    assert ("right_wrist_yaw_link", "torso_link") in pairs(found) or (
        "right_wrist_pitch_link",
        "torso_link",
    ) in pairs(found)
    assert found[0].distance_m < -0.01
    assert found == sorted(found, key=lambda contact: contact.distance_m)


def test_crossed_arms_meet_each_other(body: ContactModel) -> None:
    track = held(
        left_shoulder_pitch=-0.5, left_shoulder_yaw=-1.2, left_elbow=0.0,
        right_shoulder_pitch=-0.5, right_shoulder_yaw=1.2, right_elbow=0.0,
    )  # fmt: skip
    sides = {
        (a.partition("_")[0], b.partition("_")[0]) for a, b in pairs(body.find_contacts(track))
    }
    assert ("left", "right") in sides


def test_a_hand_at_the_head_is_found(body: ContactModel) -> None:
    found = body.find_contacts(
        held(
            right_shoulder_pitch=-1.5,
            right_shoulder_roll=-0.4,
            right_shoulder_yaw=0.56,
            right_elbow=-0.94,
        )
    )
    assert any("torso_link" in pair for pair in pairs(found))


def test_a_touch_between_two_far_samples_does_not_slip_through(body: ContactModel) -> None:
    inside = {"right_shoulder_pitch": 0.0, "right_shoulder_yaw": 1.5, "right_elbow": -0.3}
    before = inside | {"right_shoulder_yaw": 0.0}
    found = body.find_contacts(through(before, inside, before))
    assert found[0].time_s == pytest.approx(1.0, abs=0.05)
    assert body.find_contacts(through(before, before)) == []


def test_links_that_stay_are_found_beside_those_that_move(body: ContactModel) -> None:
    legs = {"left_hip_roll": -0.2, "right_hip_roll": 0.2}
    outside = {"right_shoulder_pitch": 0.0, "right_shoulder_yaw": 0.0, "right_elbow": -0.3}
    inside = outside | {"right_shoulder_yaw": 1.5}
    still, moving = held(**legs), through(outside, inside, outside)
    both = through(legs | outside, legs | inside, legs | outside)
    expected = {(c.a, c.b): c.distance_m for c in body.find_contacts(still)}
    assert ("left_ankle_roll_link", "right_ankle_roll_link") in expected
    expected |= {(c.a, c.b): c.distance_m for c in body.find_contacts(moving)}
    found = {(c.a, c.b): c.distance_m for c in body.find_contacts(both)}
    assert found == pytest.approx(expected)
    turning = through(
        legs | inside, {**legs, **inside, "waist_yaw": 0.4}, {**inside, "waist_yaw": 0.0}
    )
    assert pairs(body.find_contacts(both)) <= pairs(body.find_contacts(turning))


def test_a_margin_finds_what_is_near_with_its_distance() -> None:
    near = ContactModel(G1, 0.05).find_contacts(held())
    arm = next(c for c in near if (c.a, c.b) == ("left_shoulder_yaw_link", "torso_link"))
    assert 0.0 < arm.distance_m < 0.05
    assert not {("left_shoulder_yaw_link", "torso_link")} & pairs(find_contacts(held(), 0.01))


def test_links_of_one_joint_are_never_asked_about(body: ContactModel) -> None:
    ends = {joint.name.removesuffix("_joint"): joint.upper_rad for joint in G1_JOINTS}
    met = pairs(body.find_contacts(held(**ends)))
    assert not {tuple(sorted((joint.parent, LINKS[joint.index]))) for joint in G1_JOINTS} & met


def test_joints_a_track_lacks_are_where_the_robot_is(body: ContactModel) -> None:
    pose = held(right_shoulder_pitch=0.0, right_shoulder_yaw=1.5, right_elbow=-0.3).joints_rad[0]
    track = Track(times_s=np.zeros(1), joints_rad=np.zeros((1, 1)), names=("waist_yaw_joint",))
    assert body.find_contacts(track) == []
    assert body.find_contacts(track, pose)


def test_mujoco_has_every_link_where_we_have_it() -> None:
    import mujoco

    model = mujoco.MjModel.from_xml_string(body_xml(G1))
    data = mujoco.MjData(model)
    poses = np.random.default_rng(1).uniform(-1.0, 1.0, (4, 29))
    frames = BODY.forward(poses)
    for row, pose in enumerate(poses):
        for joint in G1_JOINTS:
            data.joint(joint.name).qpos[0] = pose[joint.index]
        mujoco.mj_kinematics(model, data)
        for index, link in enumerate(LINKS):
            assert data.body(link).xpos == pytest.approx(
                frames.positions_m[index, :, row], abs=1e-9
            )


def test_left_and_right_have_the_same_shapes() -> None:
    left = [shape for shape in G1_SHAPES if shape.link.startswith("left_")]
    right = [shape for shape in G1_SHAPES if shape.link.startswith("right_")]
    for one, other in zip(left, right, strict=True):
        assert other.link == one.link.replace("left", "right")
        assert other.corners_m == tuple((x, -y, z) for x, y, z in one.corners_m)


def test_the_meshes_farthest_points_are_inside_the_shapes() -> None:
    """Where the manufacturer's meshes reach furthest, in mm, link by link."""
    reach_mm = {
        "left_wrist_yaw_link": ((-18, -45, -43), (173, 30, 63)),
        "left_wrist_roll_link": ((0, -30, -30), (56, 30, 30)),
        "left_ankle_roll_link": ((-66, -38, -35), (142, 38, 24)),
        "left_hip_roll_link": ((-26, -49, -124), (80, 49, 46)),
        "pelvis": ((-58, -68, -152), (61, 68, 3)),
        "torso_link": ((-67, -108, -9), (84, 108, 487)),
    }
    for link, (low, high) in reach_mm.items():
        corners = np.concatenate([hull.corners_m for hull in G1_SHAPES if hull.link == link])
        assert (1000 * corners.min(axis=0) < np.array(low) + 0.5).all(), link
        assert (1000 * corners.max(axis=0) > np.array(high) - 0.5).all(), link
        assert (1000 * corners.min(axis=0) > np.array(low) - 4.0).all(), link
        assert (1000 * corners.max(axis=0) < np.array(high) + 4.0).all(), link


def test_all_links_have_shapes_and_none_is_left_out_for_touching_at_rest(
    body: ContactModel,
) -> None:
    assert {hull.link for hull in G1_SHAPES} == {"pelvis", *LINKS}
    assert {tuple(sorted(pair)) for pair in body.excluded_pairs} == neighbour_pairs(BODY)


def test_an_upper_arm_led_into_the_chest_is_found(body: ContactModel) -> None:
    met = pairs(body.find_contacts(held(left_shoulder_roll=-0.6)))
    assert ("left_shoulder_roll_link", "torso_link") in met


def test_the_body_is_sound_xml_with_every_joint() -> None:
    root = ElementTree.fromstring(body_xml(G1, 0.02, [("pelvis", "torso_link")]))
    assert {joint.get("name") for joint in root.iter("joint")} == {j.name for j in G1_JOINTS}
    assert [(e.get("body1"), e.get("body2")) for e in root.iter("exclude")] == [
        ("pelvis", "torso_link")
    ]


def test_without_mujoco_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtraError) as caught:
        ContactModel(G1)
    assert "rote-robot[physics]" in caught.value.remedy
