"""The R1's table against facts of the manufacturer's description, copied here by hand."""

import pytest

from rote.model.family import Build, Grade, Joint
from rote.model.r1 import R1, R1_26, R1_AIR, R1_JOINTS

# slot, name, lower rad, upper rad, rad/s, N.m
FACTS = [
    (0, "left_hip_pitch_joint", -2.932153143, 2.548180708, 18.8, 60.0),
    (7, "right_hip_roll_joint", -1.745329252, 1.047197551, 18.8, 60.0),
    (3, "left_knee_joint", -0.174532925, 2.42600766, 18.8, 60.0),
    (10, "right_ankle_pitch_joint", -0.87266, 0.57596, 30.0, 50.0),
    (12, "waist_roll_joint", -0.5236, 0.5236, 18.8, 60.0),
    (13, "waist_yaw_joint", -2.618, 2.618, 18.8, 60.0),
    (15, "left_shoulder_pitch_joint", -3.1416, 2.0944, 18.8, 60.0),
    (23, "right_shoulder_roll_joint", -2.47849, 0.2268, 18.8, 60.0),
    (18, "left_elbow_joint", -0.97564, 2.1852, 33.4, 33.0),
    (26, "right_wrist_roll_joint", -1.9199, 1.9199, 33.4, 33.0),
    (29, "head_pitch_joint", -0.62832, 0.62832, 33.4, 33.0),
    (30, "head_yaw_joint", -2.0071, 2.0071, 33.4, 33.0),
]


@pytest.mark.parametrize(("slot", "name", "lower", "upper", "speed", "effort"), FACTS)
def test_a_joint_is_what_unitree_says(
    slot: int, name: str, lower: float, upper: float, speed: float, effort: float
) -> None:
    joint = R1_26.joint(name)
    assert joint is not None
    assert joint.slot == slot
    assert (joint.lower_rad, joint.upper_rad) == (lower, upper)
    assert (joint.velocity_rad_s, joint.effort_nm) == (speed, effort)


def test_slots_are_those_of_the_sdk_and_leave_gaps() -> None:
    assert R1_26.slots == (*range(14), *range(15, 20), *range(22, 27), 29, 30)
    assert len(R1_26.joints) == 26


def test_an_air_has_legs_and_arms_without_waist_wrists_and_head() -> None:
    assert R1_AIR.slots == (*range(12), *range(15, 19), *range(22, 26))
    assert len(R1_AIR.joints) == 20
    assert {joint.part for joint in R1_AIR.joints} == {"leg", "arm"}


def test_parts_of_the_body_are_told_apart() -> None:
    parts = {joint.name: joint.part for joint in R1_JOINTS}
    assert [name for name, part in parts.items() if part == "head"] == [
        "head_pitch_joint",
        "head_yaw_joint",
    ]
    assert sum(part == "leg" for part in parts.values()) == 12
    assert parts["left_elbow_joint"] == "arm"
    assert parts["left_wrist_roll_joint"] == "wrist"
    assert parts["waist_roll_joint"] == "waist"


def test_links_hang_where_unitree_says() -> None:
    joints = {joint.name: joint for joint in R1_JOINTS}
    yaw, shoulder = joints["waist_yaw_joint"], joints["right_shoulder_pitch_joint"]
    assert (yaw.parent, yaw.origin_m) == ("waist_roll_link", (0.0325, 0.0, 0.049))
    assert (shoulder.parent, shoulder.origin_m) == ("waist_yaw_link", (0.0, -0.085688, 0.19749))
    assert shoulder.origin_rpy_rad == (-0.26187, 0.0, 0.0)
    head = joints["head_yaw_joint"]
    assert (head.parent, head.origin_m) == ("head_pitch_link", (0.0010126, -0.03155, 0.1165))
    elbow = joints["left_elbow_joint"]
    assert (elbow.mass_kg, elbow.com_m) == (0.759419, (0.072371, -0.024612, -0.011566))


def mirrored(joint: Joint) -> tuple[float, float]:
    """The limits that the other side must have: a roll and a yaw turn the other way there."""
    if joint.axis == (0.0, 1.0, 0.0):
        return (joint.lower_rad, joint.upper_rad)
    return (-joint.upper_rad, -joint.lower_rad)


@pytest.mark.parametrize("left", [joint for joint in R1_JOINTS if joint.name.startswith("left_")])
def test_left_and_right_mirror_each_other(left: Joint) -> None:
    right = R1_26.joint(R1.mirror[left.name])
    assert right is not None
    assert (right.lower_rad, right.upper_rad) == pytest.approx(mirrored(left), abs=1e-4)
    assert (right.velocity_rad_s, right.effort_nm) == (left.velocity_rad_s, left.effort_nm)
    (x, y, z), (roll, pitch, yaw) = left.origin_m, left.origin_rpy_rad
    assert right.origin_m == pytest.approx((x, -y, z), abs=1e-9)
    assert right.origin_rpy_rad == pytest.approx((-roll, pitch, -yaw), abs=1e-9)
    x, y, z = left.com_m
    assert right.mass_kg == left.mass_kg
    assert right.com_m == pytest.approx((x, -y, z))


def test_all_parts_weigh_what_the_whole_does() -> None:
    assert sum(mass.mass_kg for mass in R1.masses(R1_26)) == pytest.approx(28.931919)
    # Legs of 5.810446 kg each, arms of 3.302816 kg, and the pelvis with all that is fixed to it.
    air = 2 * 5.810446 + 2 * 3.30281592 + 6.988703 + 0.00319
    assert sum(mass.mass_kg for mass in R1.masses(R1_AIR)) == pytest.approx(air)


@pytest.mark.parametrize("build", R1.builds, ids=lambda build: build.name)
def test_rest_is_within_the_limits(build: Build) -> None:
    for joint, rest in zip(build.joints, build.rest_rad, strict=True):
        assert joint.lower_rad < rest < joint.upper_rad


def test_the_figure_is_drawn_on_links_that_there_are() -> None:
    body = R1.body
    assert body.figure is not None
    links = {body.base, *(joint.link for joint in R1_JOINTS)}
    points = [end for _, *ends in body.figure.sticks for end in ends]
    points += [body.figure.head, *body.figure.trails, *body.figure.floor, *body.tips]
    assert {link for link, _ in points} <= links
    assert {mass.link for mass in body.fixed} <= links


def test_arms_and_the_waist_s_yaw_are_taught_and_nothing_is_streamed() -> None:
    assert len(R1_26.taught) == 11
    assert "waist_yaw_joint" in R1_26.taught
    assert len(R1_AIR.taught) == 8
    for build in R1.builds:
        assert (build.streamed, build.stream) == ((), None)
        for reading in ("mode_pr", "slot 31", "roll", "yaw"):
            assert reading in build.no_stream


def test_what_sources_disagree_on_is_graded_so() -> None:
    grades = {group: evidence.grade for group, evidence in R1.evidence.items()}
    assert grades["stream"] is grades["waist"] is Grade.CONTRADICTED
    assert grades["modes"] is grades["loco"] is Grade.SEEN
    assert grades["other modes"] is Grade.REPORTED
    assert grades["joints"] is Grade.PUBLISHED
    assert set(R1.works) == {"list", "teach", "play", "rename", "delete", "stop"}
    assert set(R1.works.values()) == {Grade.INFERRED}


def test_it_is_told_from_a_g1_by_its_modes_and_is_taught_where_it_stands() -> None:
    assert R1.modes.distinctive == {811, 812, 813, 814, 815, 816, 830, 831, 833}
    assert R1.modes.balanced(R1.modes.standing)
    assert R1.modes.balanced(830)
    assert not R1.modes.balanced(816)
    assert (R1.modes.standing, R1.modes.damp) == (811, 1)
    assert [mode.id for mode in R1.modes.all if mode.balanced] == [811, 830]


def test_it_is_damped_from_every_mode_and_leaves_walking_modes_only_as_its_lists_allow() -> None:
    ids = {mode.id for mode in R1.modes.all}
    assert ids == {0, 1, 4, 5, 6, 7, *range(601, 609), 701, 702, *range(811, 817), 830, 831, 833}
    changes = {before: {after for b, after in R1.modes.moves if b == before} for before in ids}
    assert all(1 in changes[mode] for mode in ids - {1})
    assert changes[0] == {1, 4, 5}
    assert changes[1] == {0, 4, 5}
    assert changes[4] == ids - {4}
    assert changes[811] == {1, 4, 702}
    assert changes[813] == changes[814] == {1}
    assert changes[816] == changes[831] == {1, 4}
    assert changes[830] == {1, 4, 702, 833}
    assert R1.modes.to_stand == {4: (811,)}, "no log shows another way up"


def test_modes_that_it_does_not_report_are_named() -> None:
    assert R1.modes.silent == {5, 6, 7, 800, 804, 805, 813, 814}
    assert R1.modes.standing not in R1.modes.silent


def test_its_own_key_and_its_serial_are_always_needed() -> None:
    assert (R1.signalling, R1.answers_general_search) == (3, False)
