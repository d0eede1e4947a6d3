"""The path of the root: kept in files, and through edits or said to be lost."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rote.errors import BadRequestError
from rote.motion.body.root_path import RootPath
from rote.motion.edit.table import EDITS
from rote.motion.files import load, save
from rote.motion.track import ROOT_LOST, Mark, Origin, Track

NAMES = ("left_elbow_joint", "right_elbow_joint")


def walking(samples: int = 120, rate_hz: float = 60.0) -> Track:
    """Return a track whose base walks a curve, turns and tilts a little."""
    times_s = np.arange(samples) / rate_hz
    yaw, tilt = 0.8 * times_s, 0.1 * np.sin(times_s)
    turn = np.column_stack(
        [
            np.cos(yaw / 2) * np.cos(tilt / 2),
            np.cos(yaw / 2) * np.sin(tilt / 2),
            np.sin(yaw / 2) * np.sin(tilt / 2),
            np.sin(yaw / 2) * np.cos(tilt / 2),
        ]
    )
    place = np.column_stack([times_s, 0.3 * times_s**2, 0.78 + 0.01 * np.sin(5 * times_s)])
    return Track(
        times_s=times_s,
        joints_rad=np.column_stack([np.sin(times_s), 0.5 * np.cos(times_s)]),
        names=NAMES,
        root=RootPath(place, turn),
        origin=Origin("unitree-csv", "walk.csv", "CC BY 4.0", "a data set"),
    )


@pytest.mark.parametrize("ending", ["mcap", "npz", "json"])
def test_files_keep_the_root_and_the_origin_to_the_last_bit(ending: str, tmp_path: Path) -> None:
    track = walking()
    save(track, tmp_path / f"walk.{ending}")
    found = load(tmp_path / f"walk.{ending}")
    assert found.root is not None
    assert track.root is not None
    assert np.array_equal(found.root.position_m, track.root.position_m)
    assert np.array_equal(found.root.quaternion_wxyz, track.root.quaternion_wxyz)
    assert found.origin == track.origin


def test_a_csv_says_that_it_loses_the_root(tmp_path: Path) -> None:
    assert "root" in save(walking(), tmp_path / "walk.csv")
    assert load(tmp_path / "walk.csv").root is None


_VALUES: dict[str, dict[str, object]] = {
    "trim": {"start_s": 0.5, "end_s": 1.5},
    "speed": {"factor": 0.5},
    "keep": {"joints": [NAMES[0]]},
    "drop": {"joints": [NAMES[0]]},
    "to_build": {"build": "g1-23"},
    "keyframe": {"time_s": 1.0, "pose": {NAMES[0]: 0.4}},
    "through": {"time_s": 1.0, "pose": {NAMES[0]: 0.4}},
    "to_robot": {"build": "r1"},
    "move_hand": {"hand": "right", "by": [0.0, 0.0, 0.01]},
    "warp": {"moves": [[1.0, 1.2]]},
    "beat": {"bpm": 60.0},
    "merge": {"parts": [[1.0, 2.0]]},
    "mark": {"time_s": 1.0, "label": "here"},
    "keep_part": {"label": "one"},
    "layer": {"joints": [NAMES[0]]},
    "retime": {"velocity": 0.5},
    "cross_fade": {"overlap_s": 1.0},
    "concatenate": {"bridge_s": 1.0},
}


def walking_with_an_arm() -> Track:
    """Return a walk with two marks in which a whole arm moves a little."""
    track = walking()
    arm = tuple(f"right_shoulder_{axis}_joint" for axis in ("pitch", "roll", "yaw"))
    still = np.tile([0.3, -0.3, 0.1], (len(track), 1))
    return replace(
        track,
        names=(*arm, "right_elbow_joint"),
        joints_rad=np.column_stack([still, 0.4 + 0.2 * np.sin(track.times_s)]),
        marks=(Mark(0.3, "one"), Mark(1.2, "two")),
    )


@pytest.mark.parametrize("name", [n for n in EDITS if n not in {"change_mark", "remove_mark"}])
def test_an_edit_keeps_the_root_or_says_that_it_is_left_out(name: str) -> None:
    edit = EDITS[name]
    track = (
        walking_with_an_arm()
        if name in {"to_robot", "move_hand", "beat", "keep_part"}
        else walking()
    )
    tracks = [track] * (edit.tracks or 2)
    after = edit.apply(tracks, _VALUES.get(name, {}))
    assert after.origin == track.origin
    if after.root is None:
        assert after.history[-1].endswith(ROOT_LOST)
        assert name in {"average", "to_robot"}
    else:
        assert len(after.root) == len(after)
        assert ROOT_LOST not in after.history[-1]


def test_a_motion_of_ones_own_joined_to_a_strangers_is_a_strangers() -> None:
    own = replace(walking(), origin=None, root=None)
    assert own.concatenate(walking(), 1.0).origin == walking().origin
    assert own.concatenate(walking(), 1.0).root is None


def test_what_follows_goes_on_where_the_first_ended_and_faces_there() -> None:
    track = walking()
    both = track.concatenate(track, 1.0)
    assert both.root is not None
    assert track.root is not None
    steps = np.linalg.norm(np.diff(both.root.position_m, axis=0), axis=1)
    assert steps.max() < 0.05
    turned = np.abs((both.root.quaternion_wxyz[1:] * both.root.quaternion_wxyz[:-1]).sum(axis=1))
    assert turned.min() > 0.999
    way = np.linalg.norm(np.diff(track.root.position_m[:, :2], axis=0), axis=1).sum()
    whole = np.linalg.norm(np.diff(both.root.position_m[:, :2], axis=0), axis=1).sum()
    assert whole == pytest.approx(2 * way, rel=1e-6)


def test_a_mirrored_path_mirrored_again_is_the_path() -> None:
    root = walking().root
    assert root is not None
    again = root.mirror().mirror()
    assert np.array_equal(again.quaternion_wxyz, root.quaternion_wxyz)
    assert np.allclose(root.mirror().yaw_rad, -root.yaw_rad)
    assert np.allclose(root.mirror().tilt_rad, root.tilt_rad)


def test_slow_retiming_keeps_the_place_of_the_root_with_the_pose() -> None:
    track = walking()
    slow = track.retime(velocity=0.3)
    assert slow.root is not None
    assert track.root is not None
    assert np.allclose(slow.root.position_m[[0, -1]], track.root.position_m[[0, -1]], atol=1e-6)
    # The elbow's angle says which moment of the recording a sample is; the place must agree.
    when_s = np.interp(slow.joints_rad[:, 0][:60], track.joints_rad[:60, 0], track.times_s[:60])
    where = np.interp(when_s, track.times_s, track.root.position_m[:, 0])
    assert np.abs(where - slow.root.position_m[:60, 0]).max() < 0.03


@pytest.mark.parametrize(
    ("position", "turn"),
    [
        (np.zeros((2, 2)), np.zeros((2, 4))),
        (np.zeros((2, 3)), np.zeros((2, 4))),
        (np.full((2, 3), np.nan), np.tile([1.0, 0, 0, 0], (2, 1))),
        (np.full((2, 3), 1e9), np.tile([1.0, 0, 0, 0], (2, 1))),
    ],
)
def test_what_is_no_path_is_refused(position: np.ndarray, turn: np.ndarray) -> None:
    with pytest.raises(BadRequestError):
        RootPath(position, turn)


def test_a_root_of_another_length_is_refused() -> None:
    with pytest.raises(BadRequestError, match="root"):
        replace(walking(), root=RootPath.standing(3, 0.8))
