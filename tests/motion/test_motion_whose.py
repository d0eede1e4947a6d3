"""Which robot a track is of, whatever its file says; and joints of hands, which no build has."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from motion import clawed
from motion.tripod import NAMES
from rote.errors import BadRequestError
from rote.findings import FindingKind
from rote.model.a1 import A1
from rote.model.family import Build, Family
from rote.model.g1 import G1, G1_23, G1_27, G1_29, G1_ARMS
from rote.motion import files
from rote.motion.check.rules import check
from rote.motion.edit import operations as edit
from rote.motion.edit.mirror import mirror
from rote.motion.track import Track
from rote.motion.track_build import a_robot, build_of, build_with, family_of, joints_of
from third_party import installed, package

CLAWS = ("left_claw_0_joint", "left_claw_1_joint", "right_claw_0_joint", "right_claw_1_joint")


def still(names: tuple[str, ...], variant: str = "g1-29") -> Track:
    zeros = np.zeros((3, len(names)))
    return Track(times_s=np.arange(3.0) / 100, joints_rad=zeros, names=names, variant=variant)


@pytest.mark.parametrize("build", [G1_29, G1_27, G1_23, G1_ARMS, A1.default])
def test_a_track_that_says_its_build_is_of_that_build(build: Build) -> None:
    assert build_of(still(build.names, build.name)) is build
    assert build_with(build.names) is build
    some = build.names[-3:]
    assert build_of(still(some, build.name)) is build


def test_joints_say_more_than_a_name_that_is_wrong() -> None:
    assert build_of(still(A1.names)) is A1.default
    assert build_of(still(A1.names[:2], "g1-23")) is A1.default
    assert build_of(still(G1_27.names, "a1")) is G1_27
    assert build_of(still(G1_27.names, "")) is G1_27
    assert build_of(still(("left_elbow_joint", "tail"), "g2")) is G1_29
    assert family_of(still((*A1.names, "left_elbow_joint"))) is A1


def test_a_build_that_is_named_stays_where_another_of_its_family_has_the_joint() -> None:
    track = still(("left_wrist_yaw_joint", "left_elbow_joint"), "g1-23")
    assert build_of(track) is G1_23
    assert list(joints_of(track)) == list(track.names)


def test_a_family_may_be_named_instead_of_a_build() -> None:
    assert build_of(still(G1_29.names[:2], "g1")) is G1_29


@pytest.mark.parametrize("variant", ["g1-29", "unknown", ""])
def test_joints_that_no_robot_has_are_nobodys(variant: str) -> None:
    assert build_of(still(("slot_0", "tail"), variant)) is None
    assert family_of(still(("slot_0", "tail"), variant)) is None
    assert joints_of(still(("slot_0", "tail"), variant)) == {}


def test_no_joints_at_all_are_of_the_robot_that_is_named() -> None:
    assert build_of(still((), "g1-23")) is G1_23
    assert build_of(still((), "nobody")) is None
    assert mirror(still((), "nobody")).names == ()


@pytest.mark.parametrize(
    ("name", "words"),
    [("g1", "a G1"), ("a1", "an A1"), ("r1", "an R1"), ("tripod", "a Tripod"), ("ox", "an Ox")],
)
def test_a_robot_has_its_article(name: str, words: str) -> None:
    builds = tuple(replace(build, family=name) for build in G1.builds)
    assert a_robot(replace(G1, name=name, builds=builds)) == words


# ---- hands --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Family]:
    folder = package(tmp_path_factory.mktemp("site"), Path(clawed.__file__), "clawed", "CLAWED")
    with installed(folder, "clawed") as found:
        yield found


def grasping(family: Family) -> Track:
    """Return a tripod at rest that closes its left claw."""
    times_s = np.arange(201) / 100
    joints_rad = np.repeat([[0.0, 0.1, 0.1, 0.0, 0.0, 0.0, 0.0]], 201, axis=0)
    joints_rad[:, 3] += 0.5 * np.sin(np.pi * times_s / 2)
    joints_rad[:, 4] -= 0.3 * np.sin(np.pi * times_s / 2)
    names = (*family.default.names, *CLAWS)
    return Track(times_s=times_s, joints_rad=joints_rad, names=names, variant="clawed-3")


def test_the_joints_of_hands_are_columns_like_others(family: Family, tmp_path: Path) -> None:
    track = grasping(family)
    assert build_of(track) is family.default
    assert list(joints_of(track)) == list(track.names)
    assert check(track, contact=False).ok
    files.save(track, tmp_path / "grasp.csv")
    found = files.load(tmp_path / "grasp.csv")
    assert (found.variant, found.names) == ("clawed-3", track.names)


def test_the_joints_of_hands_have_limits(family: Family) -> None:
    track = grasping(family)
    report = check(replace(track, joints_rad=track.joints_rad * 2), contact=False)
    (found,) = [finding for finding in report.errors if finding.kind is FindingKind.POSITION]
    assert (found.joint, found.limit) == ("left_claw_0_joint", 0.9)


def test_a_mirror_gives_the_left_hands_motion_to_the_right(family: Family) -> None:
    track = grasping(family)
    other = mirror(track)
    assert other.names == track.names
    assert other.joints_rad[:, 5] == pytest.approx(-track.joints_rad[:, 3])
    assert other.joints_rad[:, 6] == pytest.approx(track.joints_rad[:, 4])


def test_another_build_keeps_its_hands(family: Family) -> None:
    two = edit.to_build(grasping(family), "clawed-2")
    assert two.names == (*NAMES[1:], *CLAWS)
    assert two.joints_rad[100, 2] == pytest.approx(0.5)


def test_fingers_of_one_robot_are_unknown_to_another(family: Family, tmp_path: Path) -> None:
    names = ("left_elbow_joint", "left_claw_0_joint")
    files.save(still(names), tmp_path / "odd.json")
    with pytest.raises(BadRequestError, match="g1-29 has no joint 'left_claw_0_joint'"):
        files.load(tmp_path / "odd.json")
    assert not check(still(names), contact=False).ok
