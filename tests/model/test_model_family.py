"""Families and builds as data: what contradicts itself is refused before anything moves by it."""

from dataclasses import replace
from typing import Any

import pytest

from rote.model.family import (
    READY,
    ZERO,
    BodyFacts,
    Build,
    Family,
    FixedMass,
    Joint,
    ModeTable,
    StreamFacts,
    Z,
    chain,
    left_and_right,
    numbered_build,
)
from rote.model.g1 import G1, G1_23, G1_27, G1_29


def joint(index: int, name: str, parent: str = "base", **other: Any) -> Joint:
    facts: dict[str, Any] = {
        "lower_rad": -1.0, "upper_rad": 1.0, "velocity_rad_s": 2.0, "effort_nm": 3.0,
        "origin_m": ZERO, "mass_kg": 1.0,
    }  # fmt: skip
    return Joint(index=index, name=name, parent=parent, axis=Z, **(facts | other))


JOINTS = (
    joint(0, "left_pan_joint", slot=3),
    joint(1, "left_tilt_joint", "left_pan_link", slot=7),
    joint(2, "neck_joint", slot=1),
)
BUILD = Build(name="small", family="pole", joints=JOINTS)
BODY = BodyFacts(base="base", base_mass_kg=10.0, fixed=(FixedMass("left_tilt_link", 0.5, ZERO),))


def family(**facts: Any) -> Family:
    usual: dict[str, Any] = {
        "name": "pole", "title": "a pole", "joints": JOINTS, "builds": (BUILD,), "body": BODY,
    }  # fmt: skip
    return Family(**(usual | facts))


# ---- builds -------------------------------------------------------------------------------------


def test_a_joint_s_index_slot_and_column_are_three_numbers() -> None:
    build = replace(BUILD, joints=(JOINTS[2], JOINTS[0]), taught=("left_pan_joint",))
    assert [joint.index for joint in build.joints] == [2, 0]
    assert build.slots == (1, 3)
    assert build.taught_columns == (1,)
    assert build.joint("left_pan_joint") is build.joints[1]
    assert build.joint("left_tilt_joint") is None


def test_a_build_is_equal_to_itself_alone() -> None:
    assert replace(BUILD) != BUILD
    assert {BUILD: 1}.get(replace(BUILD)) is None


def test_a_slot_and_a_link_follow_from_index_and_name_where_nothing_is_said() -> None:
    plain = joint(4, "left_knee_joint")
    assert (plain.slot, plain.link) == (4, "left_knee_link")


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"joints": ()}, "no joints"),
        (
            {"joints": (JOINTS[0], replace(JOINTS[1], name="left_pan_joint"))},
            "the same joint twice",
        ),
        ({"joints": (JOINTS[0], replace(JOINTS[1], slot=3))}, "have the same slot"),
        ({"taught": ("tail_joint",)}, "no joint 'tail_joint'"),
        ({"streamed": ("tail_joint",), "stream": StreamFacts()}, "no joint 'tail_joint'"),
        ({"rest": {"tail_joint": 0.5}}, "no joint 'tail_joint'"),
        ({"streamed": ("neck_joint",)}, "needs both streaming facts"),
        ({"stream": StreamFacts()}, "needs both streaming facts"),
        ({"joints": (replace(JOINTS[0], lower_rad=1.0),)}, "impossible limits"),
        ({"joints": (replace(JOINTS[0], lower_rad=float("nan")),)}, "impossible limits"),
        ({"joints": (replace(JOINTS[0], velocity_rad_s=0.0),)}, "impossible limits"),
    ],
)
def test_a_build_that_contradicts_itself_is_refused(facts: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Build(**({"name": "small", "family": "pole", "joints": JOINTS} | facts))


def test_a_build_owns_the_slots_of_its_joints_and_of_its_stream_s_weight() -> None:
    assert [slot for slot in range(35) if BUILD.owns(slot)] == [1, 3, 7]
    streamed = replace(BUILD, streamed=("neck_joint",), stream=StreamFacts(weight_slot=9))
    assert [slot for slot in range(35) if streamed.owns(slot)] == [1, 3, 7, 9]


def test_a_machine_that_is_not_known_has_numbered_joints_and_nothing_is_done_with_it() -> None:
    build = numbered_build(3, 77)
    assert build.names == ("slot_0", "slot_1", "slot_2")
    assert (build.known, build.taught, build.streamed, build.stream) == (False, (), (), None)
    assert "77" in build.no_stream


# ---- families -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"joints": JOINTS[::-1]}, "order of their indices"),
        ({"builds": ()}, "no builds"),
        ({"builds": (replace(BUILD, family="other"),)}, "one of another family"),
        (
            {"builds": (BUILD, replace(BUILD, title="again"))},
            "two builds of pole have the same name",
        ),
        ({"body": BodyFacts(base="floor")}, "is mounted on 'base'"),
        (
            {"joints": (joint(0, "left_tilt_joint", "left_pan_link"), joint(1, "left_pan_joint"))},
            "is mounted on 'left_pan_link'",
        ),
        (
            {
                "builds": (
                    replace(BUILD, joints=(*JOINTS, joint(3, "tail_joint", slot=9)), name="long"),
                )
            },
            "long has a joint 'tail_joint', which the family",
        ),
        (
            {"builds": (replace(BUILD, fixed=(FixedMass("tail_link", 1.0, ZERO),)),)},
            "mass of a link that pole lacks",
        ),
    ],
)
def test_a_family_that_contradicts_itself_is_refused(facts: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        family(**facts)


def test_a_family_without_modes_is_always_ready() -> None:
    modes = family().modes
    assert (modes.all, modes.standing, modes.damp) == ((READY,), READY.id, None)
    assert modes.balanced(READY.id)
    assert not modes.balanced(500)
    assert ModeTable().find(500) is None


def test_the_other_side_is_found_by_name_and_the_middle_has_none() -> None:
    sides = (joint(0, "left_pan_joint"), joint(1, "neck_joint"), joint(2, "right_pan_joint"))
    assert left_and_right(sides) == {
        "left_pan_joint": "right_pan_joint",
        "right_pan_joint": "left_pan_joint",
    }


def test_a_chain_of_points_makes_a_stick_between_each_two() -> None:
    low, middle, high = (("base", (0.0, 0.0, z)) for z in (0.0, 0.5, 1.0))
    assert chain("left", low, middle, high) == [("left", low, middle), ("left", middle, high)]


# ---- masses -------------------------------------------------------------------------------------


def weights(of: Family, build: Build) -> dict[str, float]:
    by_link: dict[str, float] = {}
    for mass in of.masses(build):
        by_link[mass.link] = by_link.get(mass.link, 0.0) + mass.mass_kg
    return by_link


def test_masses_are_those_of_base_links_and_what_is_fixed_to_them() -> None:
    assert weights(family(), BUILD) == {
        "base": 10.0, "left_pan_link": 1.0, "left_tilt_link": 1.5, "neck_link": 1.0,
    }  # fmt: skip


def test_a_link_may_stand_for_those_behind_it_that_a_build_does_not_have() -> None:
    short = replace(
        BUILD,
        name="short",
        joints=(JOINTS[0], JOINTS[2]),
        fixed=(FixedMass("left_pan_link", 0.7, (0.1, 0.0, 0.0)),),
    )
    both = family(builds=(BUILD, short))
    assert weights(both, short) == {"base": 10.0, "left_pan_link": 0.7, "neck_link": 1.0}
    assert FixedMass("left_pan_link", 0.7, (0.1, 0.0, 0.0)) in both.masses(short)
    assert weights(both, BUILD) == weights(family(), BUILD)


def test_a_joint_that_is_locked_keeps_the_mass_of_its_link() -> None:
    assert weights(G1, G1_27) == weights(G1, G1_29)


def test_a_g1_with_23_joints_has_lighter_hands() -> None:
    lighter = sum(weights(G1, G1_29).values()) - sum(weights(G1, G1_23).values())
    assert lighter == pytest.approx(2 * 0.46714237)
    assert weights(G1, G1_23)["left_wrist_roll_link"] == 0.35692864
    assert not {"left_wrist_pitch_link", "right_wrist_yaw_link"} & weights(G1, G1_23).keys()
