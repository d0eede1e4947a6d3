"""The table of robots: who is found by what, and what other packages may bring."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from robot_packages import TRIPOD, install
from rote.errors import BadRequestError
from rote.model import registry
from rote.model.a1 import A1
from rote.model.family import numbered_build
from rote.model.g1 import G1, G1_23, G1_29
from rote.model.g1_d import G1_D
from rote.model.r1 import R1, R1_26, R1_AIR

Bring = Callable[[str, str], None]


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bring]:
    """Install a package `bringer` with this entry point and this source."""

    def bring(entry_point: str, source: str) -> None:
        install(tmp_path / "site", monkeypatch, entry_point, "bringer", source)

    yield bring
    sys.modules.pop("bringer", None)
    registry.forget()


# ---- those that rote ships ----------------------------------------------------------------------


def test_the_shipped_families_are_there_the_g1_first() -> None:
    assert registry.families()[:4] == (G1, A1, R1, G1_D)
    assert registry.names()[:8] == (
        "g1-29", "g1-27", "g1-23", "g1-arms", "a1", "r1", "r1-air", "g1-d",
    )  # fmt: skip


def test_no_two_builds_have_one_name() -> None:
    assert len(set(registry.names())) == len(registry.names())


@pytest.mark.parametrize("name", registry.names())
def test_a_build_is_found_by_its_name_and_its_family_by_the_build(name: str) -> None:
    build = registry.build_named(name)
    family = registry.family_of(build)
    assert build.name == name
    assert family is not None
    assert build in family.builds


def test_the_name_of_a_family_means_its_first_build() -> None:
    assert registry.find_build("g1") is G1_29
    assert registry.find_build("r1") is R1_26
    assert registry.find_build("g1-d") is G1_D.default


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadRequestError, match="no robot 'h2'") as caught:
        registry.build_named("h2")
    assert "g1-23" in caught.value.remedy
    assert registry.find_build("h2") is None
    assert registry.find_family("h2") is None


def test_a_machine_that_is_not_known_has_no_family() -> None:
    assert registry.family_of(numbered_build(35, 77)) is None


@pytest.mark.parametrize(
    ("machine", "build"),
    [
        (1, "g1-23"), (2, "g1-29"), (3, "g1-27"),
        (4, "g1-23"), (10, "g1-23"),
        (5, "g1-29"), (11, "g1-29"), (13, "g1-29"), (15, "g1-29"),
        (6, "g1-27"), (12, "g1-27"), (14, "g1-27"), (16, "g1-27"),
        (9, "g1-arms"),
    ],
)  # fmt: skip
def test_every_published_mode_machine_is_recognised(machine: int, build: str) -> None:
    found = G1.of_machine(machine)
    assert found is not None
    assert found.name == build


@pytest.mark.parametrize("machine", [-1, 0, 7, 8, 17, 18, 255])
def test_any_other_mode_machine_is_nobody(machine: int) -> None:
    assert G1.of_machine(machine) is None


@pytest.mark.parametrize("machine", [*range(1, 7), *range(9, 17)])
def test_motors_follow_the_mode_machine(machine: int) -> None:
    build = G1.of_machine(machine)
    assert build is not None
    hips = (20.0, 139.0) if machine in {10, 11, 12, 15, 16} else (32.0, 88.0)
    wrists = (27.0, 13.4) if machine in {13, 14, 15, 16} else (22.0, 5.0)
    for joint in build.joints:
        motor = (joint.velocity_rad_s, joint.effort_nm)
        if "hip_pitch" in joint.name:
            assert motor == hips
        elif "wrist_pitch" in joint.name or "wrist_yaw" in joint.name:
            assert motor == wrists
        else:
            usual = G1.joints[joint.index]
            assert motor == (usual.velocity_rad_s, usual.effort_nm)
        usual = G1.joints[joint.index]
        assert (joint.lower_rad, joint.upper_rad) == (usual.lower_rad, usual.upper_rad)


def test_no_two_builds_claim_one_mode_machine() -> None:
    claimed = [m for family in registry.families() for b in family.builds for m in b.machines]
    assert len(set(claimed)) == len(claimed)


# ---- by joints ----------------------------------------------------------------------------------


def test_what_a_g1_was_taught_is_a_g1_s_though_a_g1_d_has_the_same_joints() -> None:
    assert set(G1_29.taught) <= set(G1_D.names)
    assert registry.family_with(G1_29.taught) is G1
    assert registry.family_with(G1_23.taught) is G1
    assert registry.family_with(["left_elbow_joint"]) is G1


def test_the_family_with_the_most_of_the_joints_is_meant() -> None:
    assert registry.family_with(R1_26.names) is R1
    assert registry.family_with(["head_yaw_joint", "left_elbow_joint"]) is R1
    assert registry.family_with(["FR_hip_joint", "left_elbow_joint", "FL_hip_joint"]) is A1
    assert registry.family_with(["trunk_joint"]) is None
    assert registry.family_with([]) is None


@pytest.mark.parametrize("name", registry.names())
def test_all_joints_of_a_build_in_its_order_are_that_build(name: str) -> None:
    build = registry.build_named(name)
    assert registry.build_with(build.names) is build
    assert registry.build_with((*build.names[:-1], "none_joint")) is None


def test_a_joint_s_name_means_a_g1_s_where_a_g1_has_one() -> None:
    assert registry.joint_named("left_elbow_joint") is G1.joints[18]
    assert registry.joint_named("waist_yaw_joint") is G1.joints[12]
    assert registry.joint_named("head_yaw_joint") is R1.joints[25]
    assert registry.joint_named("none_joint") is None
    assert R1_AIR.joint("head_yaw_joint") is None


# ---- those that others bring --------------------------------------------------------------------


def test_another_package_brings_a_robot_by_an_entry_point(bring: Bring) -> None:
    bring("tripod = bringer:TRIPOD", TRIPOD)
    family = registry.find_family("tripod")
    assert family is not None
    assert registry.families()[-1] is family
    assert registry.build_named("tripod") is registry.build_named("tripod-1") is family.default
    assert registry.family_with(["pan_joint"]) is family
    assert registry.joint_named("pan_joint") is family.joints[0]
    assert family.default.slots == (4,)


def test_a_robot_that_cannot_be_imported_is_refused_with_its_reason(bring: Bring) -> None:
    bring("tripod = bringer:TRIPOD", "raise RuntimeError('no legs today')")
    with pytest.raises(BadRequestError, match="no legs today") as caught:
        registry.families()
    assert "bringer:TRIPOD" in caught.value.remedy


def test_a_family_that_contradicts_itself_is_refused_with_its_reason(bring: Bring) -> None:
    bring("tripod = bringer:TRIPOD", TRIPOD.replace('parent="stand"', 'parent="sky"'))
    with pytest.raises(BadRequestError, match="is mounted on 'sky'"):
        registry.families()


def test_an_entry_point_that_names_no_family_is_refused(bring: Bring) -> None:
    bring("tripod = bringer:NUMBER", "NUMBER = 3")
    with pytest.raises(BadRequestError, match=r"'tripod' of rote\.robots is 3, not a robot"):
        registry.names()


@pytest.mark.parametrize(
    ("old", "new", "taken"),
    [('name="tripod"', 'name="g1"', "g1"), ('name="tripod-1"', 'name="g1-23"', "g1-23")],
)
def test_a_name_that_is_taken_is_refused(bring: Bring, old: str, new: str, taken: str) -> None:
    source = TRIPOD.replace(old, new)
    if old == 'name="tripod"':
        source = source.replace('family="tripod"', 'family="g1"')
    bring("tripod = bringer:TRIPOD", source)
    with pytest.raises(BadRequestError, match=f"a name that is taken: {taken}\n"):
        registry.families()


def test_two_packages_cannot_bring_the_same_robot(
    bring: Bring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring("tripod = bringer:TRIPOD", TRIPOD)
    install(
        tmp_path / "other", monkeypatch, "three = other_bringer:TRIPOD", "other_bringer", TRIPOD
    )
    with pytest.raises(BadRequestError, match="a name that is taken: tripod, tripod-1"):
        registry.families()


def test_a_broken_package_does_not_hide_the_robots_that_rote_ships(bring: Bring) -> None:
    bring("tripod = bringer:TRIPOD", "raise RuntimeError")
    assert registry.build_named("g1-23") is G1_23
    assert registry.find_family("r1") is R1
    assert registry.joint_named("left_elbow_joint") is G1.joints[18]


def test_the_joints_of_a_robot_are_known_by_the_name_of_its_build_or_family() -> None:
    assert registry.joint_names() == registry.joint_names("g1-29") == G1_29.names
    assert registry.joint_names("g1-23") == G1_23.names
    with pytest.raises(BadRequestError, match="spot"):
        registry.joint_names("spot")
