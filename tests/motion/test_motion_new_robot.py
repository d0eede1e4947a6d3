"""A motion of a robot that another package brings goes through all that a G1's motion does."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from motion import tripod
from motion.motion_tracks import assert_same, assert_same_numbers
from motion.tripod import NAMES
from rote.errors import BadRequestError, UnsafeMotionError
from rote.findings import FindingKind, Severity
from rote.messages import MAX_DURATION_MS, Interpolation
from rote.model.family import MAX_MOTION_S, Family, numbered_build
from rote.motion import files
from rote.motion.body.contact import ContactModel, find_contacts
from rote.motion.body.kinematics import kinematics_of
from rote.motion.body.preview import preview
from rote.motion.check.rules import check, check_contact, check_joints
from rote.motion.compare import compare
from rote.motion.draw.figure import frames_figure
from rote.motion.draw.figure_body import figure_of, pose_sticks, sticks
from rote.motion.draw.plot import track_figure
from rote.motion.edit import operations as edit
from rote.motion.edit.mirror import mirror
from rote.motion.edit.retime import retime
from rote.motion.files.lerobot import export_lerobot
from rote.motion.files.library import Library
from rote.motion.files.metadata import find_variant
from rote.motion.files.thumbnail import sketch, thumbnail
from rote.motion.formats import FORMATS
from rote.motion.keyframes.search import compress_to_bound
from rote.motion.track import Track
from rote.motion.track_build import build_of, family_of
from third_party import installed, package

MOTION = Path(files.__file__).parents[1]
SUFFIXES = sorted(FORMATS)
SLOTS = numbered_build(35, 9).names[:4]


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Family]:
    folder = package(tmp_path_factory.mktemp("site"), Path(tripod.__file__), "tripod", "TRIPOD")
    with installed(folder, "tripod") as found:
        yield found


def waving(family: Family, seconds: float = 2.0) -> Track:
    """Return a tripod that turns and lifts its left paw."""
    times_s = np.arange(round(100 * seconds) + 1) / 100.0
    swing = np.sin(2 * np.pi * times_s / seconds)
    joints_rad = np.stack([0.3 * swing, 0.1 + 0.5 * swing**2, 0.1 + 0.0 * swing], axis=1)
    build = family.default
    return Track(times_s=times_s, joints_rad=joints_rad, names=build.names, variant=build.name)


def numbers(seconds: float = 2.0) -> Track:
    """Return a motion of a machine that nobody knows."""
    times_s = np.arange(round(100 * seconds) + 1) / 100.0
    joints_rad = np.outer(np.sin(np.pi * times_s / seconds), np.linspace(0.1, 0.4, len(SLOTS)))
    return Track(times_s=times_s, joints_rad=joints_rad, names=SLOTS, variant="unknown")


# ---- no robot in particular ---------------------------------------------------------------------


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{a.name}" for a in node.names)}
    return found


# record.py follows when the recorders of all robots become one.
MODULES = sorted(path for path in MOTION.rglob("*.py") if path.name != "record.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_module_of_motion_imports_a_robot(path: Path) -> None:
    robots = {f"rote.model.{path.stem}" for path in (MOTION.parent / "model").glob("*.py")}
    robots -= {"rote.model.family", "rote.model.registry", "rote.model.__init__"}
    assert "rote.model.g1" in robots
    assert not imported(path) & robots


def test_what_can_be_played_is_as_long_as_what_a_wire_can_say() -> None:
    assert MAX_DURATION_MS == 1000 * MAX_MOTION_S


# ---- edits --------------------------------------------------------------------------------------


def test_a_new_robots_track_is_told_by_its_joints(family: Family) -> None:
    track = waving(family)
    for variant in ("tripod-3", "g1-29", "nobody"):
        assert family_of(replace(track, variant=variant)) is family
        assert build_of(replace(track, variant=variant)) is family.default
    two = edit.keep(track, NAMES[1:])
    assert build_of(two) is family.default
    assert build_of(replace(two, variant="")) is family.builds[1]
    assert build_of(edit.keep(track, NAMES[:1])) is family.default


def test_it_is_trimmed_smoothed_and_compared(family: Family) -> None:
    track = waving(family)
    cut = edit.smooth(edit.trim(track, 0.5, 1.5), 8.0)
    assert cut.variant == "tripod-3"
    assert cut.duration_s == pytest.approx(1.0)
    found = compare(track, edit.smooth(track, 8.0))
    assert [joint.joint for joint in found.joints] == list(NAMES)
    assert found.max_rad < 0.05
    assert compress_to_bound(track, 0.02, Interpolation.LINEAR).hand is None


def test_retiming_keeps_to_its_own_motors(family: Family) -> None:
    turning = edit.speed(waving(family), 0.2)
    fast = retime(turning, acceleration=1e3, jerk=1e5, fastest=True)
    speeds = np.abs(np.diff(fast.joints_rad, axis=0)).max(axis=0) * fast.rate_hz
    assert 1.5 < speeds[0] <= 2.0 + 1e-6
    assert speeds[1] <= 4.0 + 1e-6


def test_it_is_mirrored_by_its_own_pairs_and_axes(family: Family) -> None:
    track = waving(family)
    other = mirror(track)
    assert other.joints_rad[:, 0] == pytest.approx(-track.joints_rad[:, 0])
    assert other.joints_rad[:, 2] == pytest.approx(track.joints_rad[:, 1])
    body = kinematics_of(family)
    before, after = (body.forward(body.poses(each)) for each in (track, other))
    left = body.at(before, ("left_paw_link", (0.0, 0.15, 0.0)))
    right = body.at(after, ("right_paw_link", (0.0, -0.15, 0.0)))
    assert right == pytest.approx(left * np.array([[1.0], [-1.0], [1.0]]))
    np.testing.assert_array_equal(mirror(other).joints_rad, track.joints_rad)
    far = replace(track, joints_rad=track.joints_rad + 1.0)
    with pytest.raises(UnsafeMotionError, match="right_paw_joint"):
        mirror(far)


def test_it_comes_to_another_build_of_its_own_and_to_no_other_robot(family: Family) -> None:
    track = waving(family)
    with pytest.raises(BadRequestError, match="tripod-2 has no base_turn_joint"):
        edit.to_build(track, "tripod-2")
    two = edit.to_build(track, "tripod-2", force=True)
    assert (two.names, two.variant) == (NAMES[1:], "tripod-2")
    back = edit.to_build(edit.keep(two, NAMES[1:2]), "tripod")
    assert (back.names, back.variant) == (NAMES, "tripod-3")
    assert back.joints_rad[0, 2] == 0.1, "at rest"
    with pytest.raises(BadRequestError, match="g1-29 has none of the track's 3 joints"):
        edit.to_build(track, "g1-29", force=True)


# ---- the check ----------------------------------------------------------------------------------


def test_a_calm_motion_is_fit_and_what_was_not_looked_at_is_one_note(family: Family) -> None:
    (note,) = check(waving(family)).findings
    assert (note.severity, note.kind) == (Severity.NOTE, FindingKind.COLLISION)
    assert note.message == "balance and contact were not checked: there is no data for a Tripod"
    (less,) = check(waving(family), contact=False).findings
    assert less.message == "balance was not checked: there is no data for a Tripod"
    assert less.kind is FindingKind.BALANCE
    (alone,) = check_contact(waving(family)).findings
    assert alone.message.startswith("self-contact was not checked")


def test_it_is_judged_by_its_own_limits(family: Family) -> None:
    track = waving(family)
    joints_rad = track.joints_rad.copy()
    joints_rad[100:, 1] += 1.0
    joints_rad[:, 0] *= 4.0
    changed = replace(track, joints_rad=joints_rad)
    report = check(changed, contact=False)
    found = {(finding.kind, finding.joint): finding for finding in report.errors}
    assert found[FindingKind.POSITION, "left_paw_joint"].limit == 1.2
    assert found[FindingKind.VELOCITY, "base_turn_joint"].limit == 2.0
    assert found[FindingKind.VELOCITY, "left_paw_joint"].limit == 4.0
    joints = check_joints(changed, family.default).findings
    assert set(joints) == {f for f in report.findings if f.kind is not FindingKind.BALANCE}


def test_the_way_to_its_first_pose_is_as_soft_as_it_wants(family: Family) -> None:
    track = waving(family)
    (jump,) = [
        f for f in check(track, start_pose=(0.8, 0.1, 0.1)).findings if f.kind is FindingKind.JUMP
    ]
    assert (jump.joint, jump.severity) == ("base_turn_joint", Severity.WARNING)
    assert "takes 3.0 s" in jump.remedy, "1.875 times 0.8 rad at 0.5 rad/s"
    with pytest.raises(BadRequestError, match="a pose is 3 angles"):
        check(track, start_pose=(0.8, 0.1))


def test_a_start_pose_is_in_the_columns_of_the_build_that_is_given(family: Family) -> None:
    two = edit.to_build(waving(family), "tripod-2", force=True)
    report = check(two, start_pose=(0.1, 0.7), build=family.builds[1])
    (jump,) = [finding for finding in report.findings if finding.kind is FindingKind.JUMP]
    assert jump.joint == "right_paw_joint"
    assert jump.value == pytest.approx(0.6)
    missing = [f for f in check(waving(family), build="tripod-2").findings if f.joint == NAMES[0]]
    assert missing[0].severity is Severity.ERROR


def test_torque_is_limited_by_the_motors_of_the_build_that_is_given(family: Family) -> None:
    two = edit.to_build(waving(family), "tripod-2", force=True)
    assert not [f for f in check(two).findings if f.kind is FindingKind.TORQUE]
    weak = family.of_machine(78)
    assert weak is not None
    (torque,) = [f for f in check(two, build=weak).findings if f.kind is FindingKind.TORQUE]
    assert (torque.joint, torque.limit) == ("left_paw_joint", 0.5)
    assert torque.value == pytest.approx(0.5 * 9.81 * 0.15 * np.cos(0.1), abs=0.01)


def test_robots_are_not_mistaken_for_each_other(family: Family) -> None:
    (found,) = check(waving(family), build="g1-29", contact=False).errors
    assert found.message == "g1-29 has no base_turn_joint: this is a motion of another robot"


# ---- pictures -----------------------------------------------------------------------------------


def test_a_robot_that_nobody_drew_is_drawn_by_its_tree_of_joints(family: Family) -> None:
    figure = figure_of(family)
    assert [side for side, _, _ in figure.sticks] == ["", "left", "right", "left", "right"]
    body = sticks(family, np.zeros((1, 3)))
    ends = body.ends_m[..., 0]
    assert ends[0].tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 0.2]]
    assert ends[3, 1] == pytest.approx([0.0, 0.25, 0.4])
    assert body.hands_m[..., 0] == pytest.approx(np.array([[0.0, 0.25, 0.4], [0.0, -0.25, 0.4]]))
    lifted = pose_sticks(waving(family), np.array([0.5]))
    assert lifted.hands_m[0, 2, 0] > lifted.hands_m[1, 2, 0] + 0.05


def test_it_is_drawn_and_plotted_with_its_limits(family: Family) -> None:
    pytest.importorskip("matplotlib")
    assert frames_figure(waving(family), count=3).axes
    figure = track_figure(waving(family), joints=["left_paw_joint"])
    spans = [patch.get_extents() for patch in figure.axes[0].patches]
    assert len(spans) == 2
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["range used"]
    assert "left_paw_joint" in thumbnail(waving(family))
    assert list(sketch(waving(family))) == ["base_turn_joint"]


def test_a_preview_and_a_contact_model_are_refused_with_what_is_missing(family: Family) -> None:
    with pytest.raises(BadRequestError, match="a Tripod cannot be previewed: its shapes"):
        preview(waving(family))
    with pytest.raises(BadRequestError, match="its shapes are not known"):
        ContactModel(family)


# ---- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_it_survives_every_format(family: Family, tmp_path: Path, suffix: str) -> None:
    track = waving(family)
    files.save(track, tmp_path / f"wave{suffix}")
    found = files.load(tmp_path / f"wave{suffix}")
    assert_same_numbers(found, track)
    assert found.variant == "tripod-3"
    if suffix != ".csv":
        assert_same(found, track)
    two = edit.to_build(track, "tripod-2", force=True)
    files.save(two, tmp_path / f"two{suffix}")
    assert files.load(tmp_path / f"two{suffix}").variant == "tripod-2"


def test_a_joint_it_does_not_have_is_refused_with_those_there_are(
    family: Family, tmp_path: Path
) -> None:
    track = waving(family)
    names = ("base_turn_joint", "left_claw_joint", "right_paw_joint")
    files.save(replace(track, names=names), tmp_path / "wave.json")
    with pytest.raises(BadRequestError, match="tripod-3 has no joint 'left_claw_joint'") as caught:
        files.load(tmp_path / "wave.json")
    assert "left_paw_joint" in caught.value.remedy


def test_it_is_kept_in_the_library_and_exported_as_a_dataset(
    family: Family, tmp_path: Path
) -> None:
    track = waving(family)
    library = Library(tmp_path / "takes")
    library.save(track, "wave")
    assert library.load("wave").variant == "tripod-3"
    with library.record("live", NAMES) as take:
        for row, pose in enumerate(track.joints_rad[:10]):
            take.add(row / 100, pose)
    assert library.load("live").variant == "tripod-3", "told from its joints"
    pytest.importorskip("pyarrow")
    export_lerobot([track], tmp_path / "set", fps=50, task="wave")
    assert '"robot_type": "tripod-3"' in (tmp_path / "set/meta/info.json").read_text("utf-8")


# ---- joints that nobody knows -------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_numbered_joints_survive_every_format(tmp_path: Path, suffix: str) -> None:
    files.save(numbers(), tmp_path / f"wave{suffix}")
    found = files.load(tmp_path / f"wave{suffix}")
    assert_same_numbers(found, numbers())
    assert found.variant == find_variant(SLOTS) == "unknown"


def test_numbered_joints_are_edited_and_plotted() -> None:
    track = retime(edit.smooth(edit.trim(numbers(), 0.2, 1.8), 5.0))
    assert track.names == SLOTS
    assert len(compare(track, numbers()).joints) == len(SLOTS)
    pytest.importorskip("matplotlib")
    assert track_figure(track).legends == []
    assert compress_to_bound(track, 0.02, Interpolation.LINEAR).hand is None


def test_a_check_says_which_joints_no_robot_has() -> None:
    report = check(numbers())
    assert not report.ok
    assert {finding.kind for finding in report.findings} == {FindingKind.VARIANT}
    (names,) = [f for f in report.errors if "slot_3" in f.message]
    assert names.message == "no robot has these joints: slot_0, slot_1, slot_2, slot_3"
    known = check(replace(numbers(), variant="g1-29"), contact=False)
    assert {f.joint for f in known.errors} == set(SLOTS)
    machine = numbered_build(35, 9)
    (refused,) = check(numbers(), build=machine).errors
    assert refused.message == machine.no_stream


def test_what_needs_a_body_is_refused_where_there_is_none() -> None:
    with pytest.raises(BadRequestError, match="slot_0 cannot be mirrored: no known robot"):
        mirror(numbers())
    with pytest.raises(BadRequestError, match="the robot cannot be drawn"):
        pose_sticks(numbers(), np.zeros(1))
    with pytest.raises(BadRequestError, match="any of the track's joints"):
        preview(numbers())
    with pytest.raises(BadRequestError, match="its shapes are not known"):
        find_contacts(numbers())
    assert [finding.kind for finding in check_contact(numbers()).findings] == [
        FindingKind.COLLISION
    ]
