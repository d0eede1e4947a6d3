"""Hands are an addition to a build: further columns, no slot of its own messages, nothing else."""

from dataclasses import replace

import pytest

from rote.model.dex3 import DEX3, DEX3_LEFT, DEX3_RIGHT
from rote.model.family import Build, attach_hands
from rote.model.g1 import G1, G1_29
from rote.model.registry import families

WEARERS = [build for family in families() if family.hands for build in family.builds]


@pytest.mark.parametrize("build", WEARERS, ids=lambda build: build.name)
def test_the_joints_of_hands_are_the_last_columns_of_a_build(build: Build) -> None:
    worn = attach_hands(build, DEX3)
    assert worn.names == (*build.names, *DEX3_LEFT.names, *DEX3_RIGHT.names)
    assert worn.name == build.name
    assert [worn.names[column] for column in worn.columns_of(DEX3_RIGHT)] == [*DEX3_RIGHT.names]


@pytest.mark.parametrize("build", WEARERS, ids=lambda build: build.name)
def test_hands_change_nothing_of_the_body(build: Build) -> None:
    worn = attach_hands(build, DEX3)
    count = len(build.names)
    assert (worn.slots, worn.taught, worn.streamed) == (build.slots, build.taught, build.streamed)
    assert (worn.taught_columns, worn.streamed_columns) == (
        build.taught_columns,
        build.streamed_columns,
    )
    assert worn.joints[:count] == build.joints
    assert worn.rest_rad == (*build.rest_rad, *(0.0,) * 14)
    assert [slot for slot in range(35) if worn.owns(slot)] == [
        slot for slot in range(35) if build.owns(slot)
    ]


def test_hands_are_put_on_once_and_taken_off_again() -> None:
    left = attach_hands(G1_29, (DEX3_LEFT,))
    both = attach_hands(left, DEX3)
    assert attach_hands(G1_29, DEX3) is both
    assert (both.bare, left.bare, G1_29.bare) == (G1_29, G1_29, G1_29)
    assert attach_hands(both, ()) is G1_29


def test_other_motors_of_the_body_leave_the_hands_as_they_are() -> None:
    machine = next(iter(G1_29.motors))
    worn = attach_hands(G1_29, DEX3).at(machine)
    assert worn.hands == DEX3
    assert worn.joints[: len(G1_29.joints)] == G1_29.at(machine).joints


def test_columns_that_are_not_those_of_its_hands_are_refused() -> None:
    worn = attach_hands(G1_29, DEX3)
    with pytest.raises(ValueError, match="hands"):
        replace(worn, joints=worn.joints[:-1])
    with pytest.raises(ValueError, match="hands"):
        replace(G1_29, hands=DEX3)


def test_a_family_tells_how_its_hands_are_spoken_to() -> None:
    assert {hand.timeout_s for hand in G1.hands} == {1.0}
    assert {"hands_messages", "hands_gains"} <= set(G1.evidence)
