"""A LeRobot v3.0 dataset: its files, columns and types, as pyarrow reads them.

The same dataset was opened with lerobot 0.4.4 itself when this was written: frames, tasks,
episodes, statistics, `delta_timestamps` and a data loader.
"""

import json
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from motion.motion_tracks import full_disk, waving
from rote.errors import BadRequestError, MissingExtraError
from rote.model.g1 import G1_23
from rote.motion.edit.operations import resample
from rote.motion.files.exchange.lerobot_read import import_lerobot
from rote.motion.files.lerobot import export_lerobot, joint_named
from rote.motion.track import Origin, Track

PLUGIN = Path(__file__).parents[2] / "packages" / "lerobot_robot_rote"
FPS = 50
DEFAULTS = {"timestamp": "float32"} | dict.fromkeys(
    ("frame_index", "episode_index", "index", "task_index"), "int64"
)


def test_the_plug_in_installs_what_the_programs_of_lerobot_need() -> None:
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"lerobot[dataset]>=0.4.4", "torch<2.12"} <= set(project["dependencies"])


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "dataset"
    loss = export_lerobot([waving(201), waving(101)], folder, fps=FPS, task="wave, please")
    assert "history" in loss
    return folder


def info_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "meta" / "info.json").read_text())
    return found


def frames_of(folder: Path) -> pa.Table:
    return pq.read_table(folder / "data" / "chunk-000" / "file-000.parquet")


def column(table: pa.Table, name: str) -> Any:
    return np.array(table[name].to_pylist())


def test_the_files_are_where_version_3_has_them(dataset: Path) -> None:
    found = {str(path.relative_to(dataset)) for path in dataset.rglob("*") if path.is_file()}
    assert found == {
        "README.md",
        "meta/info.json",
        "meta/stats.json",
        "meta/tasks.parquet",
        "meta/episodes/chunk-000/file-000.parquet",
        "data/chunk-000/file-000.parquet",
    }
    assert [path.name for path in dataset.parent.iterdir()] == ["dataset"]


def test_the_info_describes_the_columns(dataset: Path) -> None:
    info = info_of(dataset)
    assert (info["codebase_version"], info["fps"], info["robot_type"]) == ("v3.0", FPS, "g1-29")
    assert (info["total_episodes"], info["total_frames"], info["total_tasks"]) == (2, 152, 1)
    assert info["splits"] == {"train": "0:2"}
    assert info["data_path"].format(chunk_index=0, file_index=0) == (
        "data/chunk-000/file-000.parquet"
    )
    table = frames_of(dataset)
    assert set(info["features"]) == set(table.column_names)
    for name, kind in DEFAULTS.items():
        assert info["features"][name] == {"dtype": kind, "shape": [1], "names": None}
        assert str(table.schema.field(name).type) == {"float32": "float"}.get(kind, kind)
    for name in ("observation.state", "action"):
        wanted = {"dtype": "float32", "shape": [3], "names": list(waving().names)}
        assert info["features"][name] == wanted
        assert table.schema.field(name).type == pa.list_(pa.float32(), 3)


def test_the_frames_are_the_tracks_at_the_rate_asked_for(dataset: Path) -> None:
    table = frames_of(dataset)
    for number, (track, frames) in enumerate([(waving(201), 101), (waving(101), 51)]):
        mine = column(table, "episode_index") == number
        assert mine.sum() == frames
        state = column(table, "observation.state")[mine]
        wanted = resample(track, FPS).joints_rad.astype(np.float32)
        assert state.tolist() == wanted.tolist()
        action = column(table, "action")[mine]
        assert action[:-1].tolist() == state[1:].tolist()
        assert action[-1].tolist() == state[-1].tolist()
        assert column(table, "frame_index")[mine].tolist() == list(range(frames))
        np.testing.assert_allclose(
            column(table, "timestamp")[mine], np.arange(frames) / FPS, atol=1e-6
        )
    assert column(table, "index").tolist() == list(range(152))
    assert set(column(table, "task_index").tolist()) == {0}


def test_the_episodes_say_where_their_frames_are(dataset: Path) -> None:
    rows = pq.read_table(
        dataset / "meta" / "episodes" / "chunk-000" / "file-000.parquet"
    ).to_pylist()
    assert [(row["episode_index"], row["length"], row["tasks"]) for row in rows] == [
        (0, 101, ["wave, please"]),
        (1, 51, ["wave, please"]),
    ]
    spans = [(row["dataset_from_index"], row["dataset_to_index"]) for row in rows]
    assert spans == [(0, 101), (101, 152)]
    for place in ("data/chunk_index", "data/file_index", "meta/episodes/chunk_index"):
        assert [row[place] for row in rows] == [0, 0]
    states = column(frames_of(dataset), "observation.state")
    np.testing.assert_allclose(rows[1]["stats/observation.state/max"], states[101:].max(axis=0))


def test_the_statistics_are_those_of_the_frames(dataset: Path) -> None:
    stats = json.loads((dataset / "meta" / "stats.json").read_text())
    actions = column(frames_of(dataset), "action").astype(float)
    found = stats["action"]
    assert found["count"] == [152]
    np.testing.assert_allclose(found["mean"], actions.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found["std"], actions.std(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found["min"], actions.min(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found["q50"], np.median(actions, axis=0), rtol=1e-9)
    assert set(stats) == set(info_of(dataset)["features"])


def test_the_task_is_the_label_of_its_row_as_pandas_understands_it(dataset: Path) -> None:
    table = pq.read_table(dataset / "meta" / "tasks.parquet")
    note = json.loads(table.schema.metadata[b"pandas"])
    (label,) = note["index_columns"]
    assert table[label].to_pylist() == ["wave, please"]
    assert table["task_index"].to_pylist() == [0]
    by_field = {entry["field_name"]: entry for entry in note["columns"]}
    assert by_field[label]["name"] is None
    assert by_field["task_index"]["numpy_type"] == "int64"


def test_a_robot_can_be_named(tmp_path: Path) -> None:
    export_lerobot([waving()], tmp_path / "d", fps=30, task="wave", robot_type="unitree_g1")
    assert info_of(tmp_path / "d")["robot_type"] == "unitree_g1"


@pytest.mark.parametrize(
    ("tracks", "fps", "task", "problem"),
    [
        ([], 50, "wave", "at least one"),
        ([waving()], 0, "wave", "0 frames"),
        ([waving()], 1001, "wave", "1001 frames"),
        ([waving()], 29.97, "wave", "29.97 frames"),
        ([waving()], 50, "  ", "task"),
        ([waving(), waving(1)], 50, "wave", "track 2: .*2 samples"),
        ([waving(), waving(names=("waist_yaw_joint",))], 50, "wave", "track 2 has other joints"),
        ([waving(), replace(waving(), variant=G1_23.name)], 50, "wave", "of another robot"),
    ],
    ids=["none", "no rate", "fast", "fraction", "no task", "short", "other joints", "other robot"],
)
def test_what_makes_no_dataset_is_refused_and_leaves_nothing(
    tmp_path: Path, tracks: list[Track], fps: Any, task: str, problem: str
) -> None:
    with pytest.raises(BadRequestError, match=problem):
        export_lerobot(tracks, tmp_path / "d", fps=fps, task=task)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(dataset: Path) -> None:
    before = info_of(dataset)
    with pytest.raises(BadRequestError, match="exists already"):
        export_lerobot([waving()], dataset, fps=10, task="wave")
    assert info_of(dataset) == before


def test_a_disk_that_fills_up_leaves_no_half_dataset(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    long = waving(5000)
    noisy = replace(long, joints_rad=long.joints_rad + rng.normal(0, 0.1, long.joints_rad.shape))
    with full_disk(20_000), pytest.raises(BadRequestError, match="cannot be written"):
        export_lerobot([noisy], tmp_path / "d", fps=100, task="wave")
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError) as missing:
        export_lerobot([waving()], tmp_path / "d", fps=50, task="wave")
    assert "rote-robot[lerobot]" in missing.value.remedy
    assert list(tmp_path.iterdir()) == []


# ---- the names of LeRobot's own driver, more episodes, and back -----------------------------


def test_the_driver_s_names_are_those_it_acts_on(tmp_path: Path) -> None:
    names = ("left_elbow_joint", "right_wrist_yaw_joint", "waist_yaw_joint", "left_knee_joint")
    folder = tmp_path / "driver"
    export_lerobot([waving(101, names)], folder, fps=FPS, task="wave", as_driver=True)
    info = info_of(folder)
    assert info["robot_type"] == "unitree_g1"
    wanted = ["kLeftElbow.q", "kRightWristYaw.q", "kWaistYaw.q", "kLeftKnee.q"]
    assert info["features"]["action"]["names"] == wanted
    assert info["features"]["observation.state"]["names"] == wanted


def test_each_take_has_its_own_task_and_more_can_be_appended(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    tracks = [waving(201), waving(101)]
    export_lerobot(tracks, folder, fps=FPS, task=("wave", "bow"), velocities=True)
    before = {p: p.read_bytes() for p in folder.rglob("*.parquet") if "data" in str(p)}
    export_lerobot(
        [waving(151)], folder, fps=FPS, task="bow", velocities=True, append=True, robot_type="x"
    )
    assert all(path.read_bytes() == data for path, data in before.items())
    info = info_of(folder)
    counts = (info["total_episodes"], info["total_frames"], info["total_tasks"])
    assert counts == (3, 101 + 51 + 76, 2)
    more = pq.read_table(folder / "data" / "chunk-000" / "file-001.parquet")
    assert column(more, "index").tolist() == list(range(152, 228))
    assert set(column(more, "episode_index")) == {2}
    assert set(column(more, "task_index")) == {1}
    assert np.abs(column(more, "observation.velocity")).max() > 1.0
    stats = json.loads((folder / "meta" / "stats.json").read_text())
    assert stats["index"]["max"] == [227]
    assert stats["index"]["count"] == [228]
    assert "3 episodes" in (folder / "README.md").read_text()
    with pytest.raises(BadRequestError, match="different joints"):
        export_lerobot([waving(151)], folder, fps=30, task="bow", velocities=True, append=True)
    assert not list(tmp_path.glob(".*"))


def test_the_card_says_whose_motions_these_are(tmp_path: Path) -> None:
    origin = Origin("gmr", "dance.pkl", "CC BY-NC 4.0", "a lab")
    tracks = [replace(waving(101), origin=origin)]
    export_lerobot(tracks, tmp_path / "set", fps=FPS, task="dance", licence="cc-by-nc-4.0")
    card = (tmp_path / "set" / "README.md").read_text()
    assert card.startswith('---\nlicense: "cc-by-nc-4.0"')
    assert "- LeRobot" in card
    assert "dance.pkl (gmr, a lab): CC BY-NC 4.0" in card


@pytest.mark.parametrize("as_driver", [True, False])
def test_episodes_come_back_as_takes(as_driver: bool, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    tracks = [waving(201), waving(101)]
    how = {"fps": 100, "as_driver": as_driver, "licence": "cc-by-4.0"}
    export_lerobot(tracks, folder, task=("wave", "bow"), **how)  # type: ignore[arg-type]
    found = import_lerobot(folder)
    assert list(found) == [0, 1]
    for motion, track in zip(found.values(), tracks, strict=True):
        assert motion.track.names == track.names
        assert np.abs(motion.track.joints_rad - track.joints_rad).max() < 1e-6
        assert np.abs(motion.track.times_s - track.times_s).max() < 1e-6
        assert motion.track.origin is not None
        assert motion.track.origin.licence == "cc-by-4.0"
    assert found[1].track.source == "LeRobot: bow"
    assert list(import_lerobot(folder, [1])) == [1]
    with pytest.raises(BadRequestError, match="no episode 7"):
        import_lerobot(folder, [7])


@pytest.mark.parametrize(
    ("name", "joint"),
    [
        ("kLeftWristyaw.q", "left_wrist_yaw_joint"),  # older versions of the driver
        ("kLeftElbow.q", "left_elbow_joint"),
        ("left_elbow.pos", "left_elbow_joint"),
        ("left_elbow_joint", "left_elbow_joint"),
        ("remote.lx", None),
    ],
)
def test_joints_are_known_by_the_names_that_data_sets_give_them(
    name: str, joint: str | None
) -> None:
    assert joint_named(name) == joint


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ({"codebase_version": "v2.1"}, "version"),
        ({"fps": "fast"}, "rate"),
        ({"features": {}}, "neither"),
        ({"features": {"action": {"names": ["gripper"]}}}, "none of its action"),
    ],
)
def test_what_is_no_data_set_of_a_g1_is_refused(
    spoil: dict[str, Any], said: str, dataset: Path
) -> None:
    path = dataset / "meta" / "info.json"
    path.write_text(json.dumps(info_of(dataset) | spoil))
    with pytest.raises(BadRequestError, match=said):
        import_lerobot(dataset)


def test_a_damaged_file_of_a_data_set_is_refused(dataset: Path) -> None:
    (dataset / "data" / "chunk-000" / "file-000.parquet").write_bytes(b"PAR1 no more PAR1")
    with pytest.raises(BadRequestError, match="cannot be read"):
        import_lerobot(dataset)


def test_a_single_joint_is_a_number_as_lerobot_has_it_and_comes_back(tmp_path: Path) -> None:
    elbow = waving(101, ("left_elbow_joint",))
    for append in (False, True):
        export_lerobot([elbow], tmp_path / "set", fps=100, task="bend", append=append)
    assert pa.types.is_floating(frames_of(tmp_path / "set").schema.field("action").type)
    found = import_lerobot(tmp_path / "set")
    assert np.abs(found[1].track.joints_rad - elbow.joints_rad).max() < 1e-6
