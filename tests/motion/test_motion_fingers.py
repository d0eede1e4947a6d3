"""A G1's take with the columns of its hands, through every tool: files, edits, checks, drawings."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rote.findings import FindingKind
from rote.messages import Interpolation
from rote.model.dex3 import DEX3, DEX3_LEFT, DEX3_RIGHT
from rote.model.family import attach_hands
from rote.model.g1 import G1_29
from rote.motion import files
from rote.motion.body.preview import preview
from rote.motion.check.rules import check
from rote.motion.compare import deviation
from rote.motion.draw.plot import plot_track
from rote.motion.edit import operations as edit
from rote.motion.edit.mirror import mirror
from rote.motion.edit.retime import retime
from rote.motion.keyframes.search import compress_to_budget
from rote.motion.track import Track
from rote.motion.track_build import build_of

WORN = attach_hands(G1_29, DEX3)


def grasping(seconds: float = 2.0, far: float = 0.6) -> Track:
    """A G1 at rest with an elbow that moves, its left hand closing and opening."""
    times_s = np.arange(round(seconds * 50) + 1) / 50
    bend = np.sin(np.pi * times_s / seconds) ** 2
    joints_rad = np.tile(WORN.rest_rad, (len(times_s), 1))
    joints_rad[:, WORN.names.index("right_elbow_joint")] -= 0.4 * bend
    for column in WORN.columns_of(DEX3_LEFT):
        joint = WORN.joints[column]
        end = joint.upper_rad if joint.upper_rad > 0.5 else joint.lower_rad
        joints_rad[:, column] += far * end * bend
    return Track(times_s=times_s, joints_rad=joints_rad, names=WORN.names, variant="g1-29")


@pytest.mark.parametrize("ending", [*files.FORMATS])
def test_every_format_keeps_the_fingers(ending: str, tmp_path: Path) -> None:
    track = grasping()
    files.save(track, tmp_path / f"grasp{ending}")
    found = files.load(tmp_path / f"grasp{ending}")
    assert (found.names, found.variant) == (WORN.names, "g1-29")
    assert found.joints_rad == pytest.approx(track.joints_rad, abs=1e-6)
    assert build_of(found) is G1_29


def test_a_dataset_for_learning_has_the_fingers_too(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from rote.motion.files.lerobot import export_lerobot

    export_lerobot([grasping()], tmp_path / "set", fps=50, task="grasp")
    assert "left_hand_thumb_0_joint" in (tmp_path / "set/meta/info.json").read_text()


@pytest.mark.parametrize(
    "edited",
    [
        lambda track: edit.trim(track, 0.2, 1.8),
        lambda track: edit.resample(track, 100.0),
        lambda track: edit.smooth(track, 5.0),
        edit.reverse,
        lambda track: edit.speed(track, 0.5),
        lambda track: edit.close_loop(track, 0.5),
        lambda track: edit.to_build(track, "g1-29"),
        retime,
    ],
    ids=["trim", "resample", "smooth", "reverse", "speed", "close_loop", "to_build", "retime"],
)
def test_an_edit_keeps_the_fingers_and_what_may_be_played(edited: Callable[[Track], Track]) -> None:
    found = edited(grasping())
    assert found.names == WORN.names
    assert check(found, contact=False).ok


def test_a_mirror_closes_the_other_hand_and_twice_is_the_same() -> None:
    track = grasping()
    other = mirror(track)
    assert other.names == track.names
    left, right = (list(WORN.columns_of(hand)) for hand in DEX3)
    moved = np.abs(track.joints_rad[:, left]).max(axis=0)
    assert np.abs(other.joints_rad[:, right]).max(axis=0) == pytest.approx(moved)
    assert np.abs(other.joints_rad[:, left]).max() == 0.0
    assert mirror(other).joints_rad == pytest.approx(track.joints_rad)


@pytest.mark.parametrize(
    ("track", "kind"),
    [(grasping(far=1.2), FindingKind.POSITION), (grasping(0.3, far=0.9), FindingKind.VELOCITY)],
    ids=["too far", "too fast"],
)
def test_a_finger_has_limits_of_place_and_speed(track: Track, kind: FindingKind) -> None:
    found = {finding.joint for finding in check(track, contact=False).errors}
    kinds = {finding.kind for finding in check(track, contact=False).errors}
    assert kind in kinds
    assert found & set(DEX3_LEFT.names)
    assert not found & set(DEX3_RIGHT.names)


@pytest.mark.parametrize("start", [None, WORN.rest_rad])
def test_a_robot_that_wears_hands_is_checked_as_one_without(
    start: tuple[float, ...] | None,
) -> None:
    track = grasping()
    worn = check(track, build=WORN, start_pose=start)
    bare = check(track, build=G1_29, start_pose=None if start is None else start[:29])
    assert worn == bare
    assert worn.ok


def test_where_the_fingers_are_counts_for_the_jump_to_a_first_pose() -> None:
    track = grasping()
    closed = replace(track, joints_rad=track.joints_rad[40:60], times_s=track.times_s[40:60])
    found = check(closed, build=WORN, start_pose=WORN.rest_rad, contact=False).findings
    (jump,) = [finding for finding in found if finding.kind is FindingKind.JUMP]
    assert jump.joint in DEX3_LEFT.names


def test_fingers_are_drawn_compared_and_compressed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    track = grasping()
    plot_track(track, tmp_path / "grasp.png", joints=DEX3_LEFT.names)
    assert (tmp_path / "grasp.png").stat().st_size > 10_000
    apart = deviation(track, edit.smooth(track, 5.0), DEX3_LEFT.names)
    assert 0.0 < apart.rms_rad < 0.1
    found = compress_to_budget(track, 60, Interpolation.LINEAR)
    assert {track.names[frame.joint] for frame in found.keyframes} >= set(DEX3_LEFT.names)


def test_a_preview_runs_the_body_and_says_nothing_of_fingers() -> None:
    pytest.importorskip("mujoco")
    found = preview(grasping())
    assert not {joint.joint for joint in found.joints} & set(DEX3_LEFT.names)
