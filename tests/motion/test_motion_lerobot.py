"""A LeRobot v3.0 dataset: its files, columns and types, as pyarrow reads them.

The same dataset was opened with lerobot 0.4.4 itself when this was written: frames, tasks,
episodes, statistics, `delta_timestamps` and a data loader.
"""

import json
import sys
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
from rote.motion.edit import resample
from rote.motion.files.lerobot import export_lerobot
from rote.motion.track import Track

FPS = 50
DEFAULTS = {"timestamp": "float32"} | dict.fromkeys(
    ("frame_index", "episode_index", "index", "task_index"), "int64"
)


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
    with pytest.raises(BadRequestError, match="there already"):
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
    assert "rote[lerobot]" in missing.value.remedy
    assert list(tmp_path.iterdir()) == []
