"""The G1-D's table against facts of the manufacturer's description, copied here by hand."""

import pytest

from rote.model.dex3 import DEX3
from rote.model.family import READY, Grade
from rote.model.g1 import G1_29
from rote.model.g1_d import G1_D, G1_D_BUILD, G1_D_JOINTS

# slot, name, lower rad, upper rad, rad/s, N.m
FACTS = [
    (12, "waist_yaw_joint", -2.7053, 2.7053, 5.0, 30.0),
    (14, "waist_pitch_joint", -0.04363, 2.3562, 5.0, 80.0),
    (15, "left_shoulder_pitch_joint", -3.0892, 2.6704, 37.0, 25.0),
    (18, "left_elbow_joint", -1.0472, 2.0944, 37.0, 25.0),
    (23, "right_shoulder_roll_joint", -2.2515, 1.5882, 37.0, 25.0),
    (28, "right_wrist_yaw_joint", -1.614429558, 1.614429558, 22.0, 5.0),
]


@pytest.mark.parametrize(("slot", "name", "lower", "upper", "speed", "effort"), FACTS)
def test_a_joint_is_what_unitree_says(
    slot: int, name: str, lower: float, upper: float, speed: float, effort: float
) -> None:
    joint = G1_D_BUILD.joint(name)
    assert joint is not None
    assert joint.slot == slot
    assert (joint.lower_rad, joint.upper_rad) == (lower, upper)
    assert (joint.velocity_rad_s, joint.effort_nm) == (speed, effort)


def test_it_has_the_slots_of_waist_and_arms_alone() -> None:
    assert sorted(G1_D_BUILD.slots) == [12, 14, *range(15, 29)]
    assert len(G1_D_BUILD.joints) == 16
    assert not any(G1_D_BUILD.owns(slot) for slot in (*range(12), 13, *range(29, 35)))


def test_wheels_and_lift_are_no_joints() -> None:
    assert {joint.part for joint in G1_D_JOINTS} == {"waist", "arm", "wrist"}
    assert "wheels and lift" in G1_D.evidence["joints"].source


def test_the_waist_pitches_below_its_yaw_and_the_arms_hang_on_the_yaw() -> None:
    joints = {joint.name: joint for joint in G1_D_JOINTS}
    pitch, yaw = joints["waist_pitch_joint"], joints["waist_yaw_joint"]
    assert (pitch.axis, yaw.axis) == ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    assert pitch.parent == "AGV_link"
    assert pitch.origin_m == pytest.approx((0.05572503, 0.0002165, 0.6295), abs=1e-8)
    assert (yaw.parent, yaw.link) == ("waist_pitch_link", "torso_link")
    assert yaw.origin_m == (-0.0023536, -4.8782e-05, 0.104008566)
    assert joints["left_shoulder_pitch_joint"].parent == "torso_link"
    assert joints["left_shoulder_pitch_joint"].origin_m == (0.0039563, 0.10022, 0.24778)


def test_left_and_right_are_each_other_s_mirror_and_the_waist_is_in_the_middle() -> None:
    assert len(G1_D.mirror) == 14
    assert all(G1_D.mirror[other] == name for name, other in G1_D.mirror.items())
    assert set(G1_D.names) - set(G1_D.mirror) == {"waist_pitch_joint", "waist_yaw_joint"}


def test_all_parts_weigh_what_the_whole_does() -> None:
    total_kg = sum(mass.mass_kg for mass in G1_D.masses(G1_D_BUILD))
    assert total_kg == pytest.approx(70.723234, abs=1e-6)


def test_the_figure_is_drawn_on_links_that_there_are() -> None:
    figure = G1_D.body.figure
    assert figure is not None
    links = {G1_D.body.base, *(joint.link for joint in G1_D_JOINTS)}
    points = [end for _, *ends in figure.sticks for end in ends]
    points += [figure.head, *figure.trails, *figure.floor, *G1_D.body.tips]
    assert {link for link, _ in points} <= links
    assert {mass.link for mass in G1_D.body.fixed} <= links


def test_it_is_taught_like_a_g1_and_nothing_is_streamed() -> None:
    assert set(G1_D_BUILD.taught) == set(G1_29.taught)
    assert (G1_D_BUILD.streamed, G1_D_BUILD.stream) == ((), None)
    assert "rt/lowcmd" in G1_D_BUILD.no_stream


def test_no_mode_of_it_is_known_so_it_is_taken_to_be_ready() -> None:
    assert G1_D.modes.all == (READY,)
    assert G1_D.modes.balanced(G1_D.modes.standing)
    assert G1_D.modes.distinctive == frozenset()
    assert "none seen" in G1_D.evidence["modes"].source


def test_what_works_is_inferred_and_hands_may_be_worn() -> None:
    assert set(G1_D.works) == {"list", "teach", "play", "rename", "delete", "stop"}
    assert set(G1_D.works.values()) == {Grade.INFERRED}
    assert G1_D.hands == DEX3
