"""The Dex3 hands against facts of the manufacturer's description, copied here by hand."""

import pytest

from rote.model.dex3 import DEX3, DEX3_LEFT, DEX3_RIGHT, rest_mass
from rote.model.family import Grade, Hand, Joint
from rote.model.g1 import G1, G1_JOINTS

# place in the message, name, lower rad, upper rad, rad/s, N.m
FACTS = [
    (0, "left_hand_thumb_0_joint", -1.04719755, 1.04719755, 3.14, 2.45),
    (1, "left_hand_thumb_1_joint", -0.61086523, 1.04719755, 12.0, 1.4),
    (2, "left_hand_thumb_2_joint", 0.0, 1.74532925, 12.0, 1.4),
    (3, "left_hand_middle_0_joint", -1.57079632, 0.0, 12.0, 1.4),
    (6, "left_hand_index_1_joint", -1.74532925, 0.0, 12.0, 1.4),
    (0, "right_hand_thumb_0_joint", -1.04719755, 1.04719755, 3.14, 2.45),
    (1, "right_hand_thumb_1_joint", -1.04719755, 0.61086523, 12.0, 1.4),
    (2, "right_hand_thumb_2_joint", -1.74532925, 0.0, 12.0, 1.4),
    (4, "right_hand_middle_1_joint", 0.0, 1.74532925, 12.0, 1.4),
    (5, "right_hand_index_0_joint", 0.0, 1.57079632, 12.0, 1.4),
]


@pytest.mark.parametrize(("slot", "name", "lower", "upper", "speed", "effort"), FACTS)
def test_a_joint_is_what_unitree_says(
    slot: int, name: str, lower: float, upper: float, speed: float, effort: float
) -> None:
    hand = DEX3_LEFT if name.startswith("left_") else DEX3_RIGHT
    joint = hand.joints[slot]
    assert (joint.name, joint.slot) == (name, slot)
    assert (joint.lower_rad, joint.upper_rad) == (lower, upper)
    assert (joint.velocity_rad_s, joint.effort_nm) == (speed, effort)


@pytest.mark.parametrize("hand", DEX3, ids=lambda hand: hand.side)
def test_a_hand_has_seven_motors_on_topics_of_its_own(hand: Hand) -> None:
    assert [joint.slot for joint in hand.joints] == list(range(7))
    assert len(set(hand.names)) == 7
    assert hand.state_topic == f"rt/dex3/{hand.side}/state"
    assert hand.command_topic == f"rt/dex3/{hand.side}/cmd"
    assert {joint.part for joint in hand.joints} == {"finger"}
    assert not set(hand.names) & set(G1.names)


@pytest.mark.parametrize("hand", DEX3, ids=lambda hand: hand.side)
def test_fingers_hang_on_the_wrist_or_on_each_other(hand: Hand) -> None:
    links = {joint.link for joint in G1_JOINTS}
    for joint in hand.joints:
        assert joint.parent in links
        links.add(joint.link)
    assert hand.joints[0].parent == f"{hand.side}_wrist_yaw_link"


def test_the_palm_s_place_is_part_of_its_joints() -> None:
    thumb, middle, index = (DEX3_LEFT.joints[slot] for slot in (0, 3, 5))
    assert thumb.origin_m == pytest.approx((0.0415 + 0.0255, 0.003, 0.0))
    assert middle.origin_m == pytest.approx((0.0415 + 0.0777, 0.003 + 0.0016, -0.0285))
    assert index.origin_m == pytest.approx((0.0415 + 0.0777, 0.003 + 0.0016, 0.0285))


@pytest.mark.parametrize(
    ("left", "right"), list(zip(DEX3_LEFT.joints, DEX3_RIGHT.joints, strict=True))
)
def test_the_right_hand_mirrors_the_left_with_the_same_axes(left: Joint, right: Joint) -> None:
    assert right.name == left.name.replace("left", "right")
    assert right.axis == left.axis
    assert (right.lower_rad, right.upper_rad) == (-left.upper_rad, -left.lower_rad)
    for here, there in ((left.origin_m, right.origin_m), (left.com_m, right.com_m)):
        assert there == pytest.approx((here[0], -here[1], here[2]))


@pytest.mark.parametrize("hand", DEX3, ids=lambda hand: hand.side)
def test_a_whole_hand_weighs_what_unitree_says(hand: Hand) -> None:
    mass = rest_mass(hand)
    assert mass.link == f"{hand.side}_wrist_yaw_link"
    assert mass.mass_kg == pytest.approx(0.69654599)


def test_both_hands_have_their_weight_at_mirrored_places() -> None:
    x, y, z = rest_mass(DEX3_LEFT).com_m
    assert rest_mass(DEX3_RIGHT).com_m == pytest.approx((x, -y, z))
    assert 0.05 < x < 0.15


def test_the_order_of_the_right_fingers_is_contradicted_and_so_are_limits() -> None:
    assert G1.hands == DEX3
    assert DEX3_RIGHT.evidence.grade is Grade.CONTRADICTED
    assert G1.evidence["hands_order"] == DEX3_RIGHT.evidence
    assert G1.evidence["hands_limits"].grade is Grade.CONTRADICTED
    assert G1.evidence["hands"].grade is Grade.PUBLISHED
