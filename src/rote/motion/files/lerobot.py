"""Tracks as a LeRobot dataset, version 3.0, for training and for LeRobot's own viewer.

Each track is one episode. `observation.state` holds the joints at a frame in rad, `action` those at
the next frame (at the last frame: the same), as if the robot had been commanded to follow the
taught motion. There are no cameras.

It can only be written. Lost are the exact times (tracks are resampled to `fps`, each from 0), half
of the digits (LeRobot keeps 32 bits), source, marks and history. The variant is the `robot_type`
unless another is named.
"""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.errors import BadRequestError, MissingExtraError
from rote.motion.edit import resample
from rote.motion.files import disk
from rote.motion.files.metadata import FilePlace, check
from rote.motion.track import Track

__all__ = ["export_lerobot"]

LOSS = "exact times, 32 of 64 bits of each angle, source, marks and history are lost"

_STATE, _ACTION = "observation.state", "action"
_FILE = "chunk-000/file-000.parquet"
_TEMPLATE = "chunk-{chunk_index:03d}/file-{file_index:03d}"
_QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}

Column = NDArray[Any]


class _ExportOptions(NamedTuple):
    fps: int
    task: str
    robot_type: str


def export_lerobot(
    tracks: Sequence[Track], folder: Path, *, fps: int, task: str, robot_type: str = ""
) -> str:
    """Write tracks as the episodes of a new dataset; return what is lost, as text.

    The folder appears only when it is complete, and must not exist before.
    """
    _check(tracks, folder, fps, task)
    _arrow()
    wish = _ExportOptions(fps, task, robot_type or tracks[0].variant)
    episodes = [_frames(track, number, fps) for number, track in enumerate(tracks)]
    first = 0
    for episode in episodes:
        count = len(episode["index"])
        episode["index"] = np.arange(first, first + count)
        first += count
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        _write(part, episodes, tracks[0].names, wish)
        part.rename(folder)
    except OSError as error:
        raise disk.unwritable(folder, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return LOSS


def _check(tracks: Sequence[Track], folder: Path, fps: int, task: str) -> None:
    if not tracks:
        raise BadRequestError("a dataset needs at least one track")
    if not task.strip():
        raise BadRequestError("a dataset needs its task in words", "For example: wave with one arm")
    if not isinstance(fps, int) or not 1 <= fps <= 1000:
        raise BadRequestError(f"{fps} frames a second are not possible", "Choose 1 to 1000.")
    if folder.exists():
        raise BadRequestError(f"{folder} is there already", "Name a folder that is not.")
    for number, track in enumerate(tracks, start=1):
        check(track, FilePlace(f"track {number}"))
        if (track.names, track.variant) != (tracks[0].names, tracks[0].variant):
            raise BadRequestError(
                f"track {number} has other joints, or is of another robot, than track 1",
                "Bring all to one variant, and keep the joints they share.",
            )


def _arrow() -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional
        import pyarrow.parquet  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError("a LeRobot dataset", "lerobot") from error
    assert pyarrow.parquet
    return pa


def _frames(track: Track, number: int, fps: int) -> dict[str, Column]:
    """Return the columns of one episode, each (frames,) or (frames, joints)."""
    state = resample(track, fps).joints_rad.astype(np.float32)
    count = len(state)
    return {
        _STATE: state,
        _ACTION: np.concatenate([state[1:], state[-1:]]),
        "timestamp": (np.arange(count) / fps).astype(np.float32),
        "frame_index": np.arange(count),
        "episode_index": np.full(count, number),
        "index": np.arange(count),
        "task_index": np.zeros(count, dtype=np.int64),
    }


def _write(
    folder: Path, episodes: list[dict[str, Column]], names: tuple[str, ...], wish: _ExportOptions
) -> None:
    together = {key: np.concatenate([episode[key] for episode in episodes]) for key in episodes[0]}
    _write_table(folder / "data" / _FILE, {key: _arrow_column(v) for key, v in together.items()})
    _write_table(folder / "meta" / "episodes" / _FILE, _episode_columns(episodes, wish.task))
    _write_tasks(folder / "meta" / "tasks.parquet", wish.task)
    _write_json(folder / "meta" / "stats.json", {k: _statistics(v) for k, v in together.items()})
    _write_json(folder / "meta" / "info.json", _info(together, len(episodes), names, wish))


def _info(
    columns: dict[str, Column], episodes: int, names: tuple[str, ...], wish: _ExportOptions
) -> dict[str, Any]:
    return {
        "codebase_version": "v3.0",
        "robot_type": wish.robot_type,
        "total_episodes": episodes,
        "total_frames": len(columns["index"]),
        "total_tasks": 1,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": wish.fps,
        "splits": {"train": f"0:{episodes}"},
        "data_path": f"data/{_TEMPLATE}.parquet",
        "video_path": None,
        "features": {
            key: {
                "dtype": str(column.dtype),
                "shape": [column.shape[1] if column.ndim > 1 else 1],
                "names": list(names) if column.ndim > 1 else None,
            }
            for key, column in columns.items()
        },
    }


def _statistics(column: Column) -> dict[str, list[float]]:
    """Return the numbers that LeRobot normalises by, one per joint."""
    table = column.reshape(len(column), -1).astype(np.float64)
    found = {
        "min": table.min(axis=0),
        "max": table.max(axis=0),
        "mean": table.mean(axis=0),
        "std": table.std(axis=0),
        "count": np.array([len(table)]),
    }
    found |= {name: np.quantile(table, share, axis=0) for name, share in _QUANTILES.items()}
    return {name: values.tolist() for name, values in found.items()}


def _episode_columns(episodes: list[dict[str, Column]], task: str) -> dict[str, list[Any]]:
    """Return a row per episode: where its frames are, and their statistics."""
    rows: list[dict[str, Any]] = []
    for number, episode in enumerate(episodes):
        first, count = int(episode["index"][0]), len(episode["index"])
        row: dict[str, Any] = {
            "episode_index": number,
            "tasks": [task],
            "length": count,
            "data/chunk_index": 0,
            "data/file_index": 0,
            "dataset_from_index": first,
            "dataset_to_index": first + count,
            "meta/episodes/chunk_index": 0,
            "meta/episodes/file_index": 0,
        }
        for key, column in episode.items():
            row |= {f"stats/{key}/{name}": v for name, v in _statistics(column).items()}
        rows.append(row)
    return {key: [row[key] for row in rows] for key in rows[0]}


def _arrow_column(column: Column) -> Any:
    pa = _arrow()
    if column.ndim == 1:
        return pa.array(column)
    return pa.FixedSizeListArray.from_arrays(pa.array(column.ravel()), column.shape[1])


def _write_tasks(path: Path, task: str) -> None:
    # LeRobot looks a task up by the row's label. pandas stores labels in a column with this name
    # and finds them by this note; so pandas is not needed to write one.
    label = "__index_level_0__"
    columns = [("task_index", "int64", "int64"), (label, "unicode", "object")]
    note = {
        "index_columns": [label],
        "column_indexes": [],
        "columns": [
            {
                "name": None if name == label else name,
                "field_name": name,
                "pandas_type": pandas_type,
                "numpy_type": numpy_type,
                "metadata": None,
            }
            for name, pandas_type, numpy_type in columns
        ],
        "creator": {"library": "pyarrow", "version": _arrow().__version__},
        "pandas_version": "2.0.0",
    }
    _write_table(path, {"task_index": [0], label: [task]}, {"pandas": json.dumps(note)})


def _write_table(path: Path, columns: dict[str, Any], note: dict[str, str] | None = None) -> None:
    pa = _arrow()
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    pa.parquet.write_table(table.replace_schema_metadata(note) if note else table, path)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
