"""Tracks as a LeRobot dataset, version 3.0, for training and for LeRobot's own viewer.

Each track is one episode. `observation.state` holds the joints at a frame in rad, `action` those at
the next frame (at the last frame: the same), as if the robot had been commanded to follow the
taught motion. There are no cameras.

Lost are the exact times (tracks are resampled to `fps`, each from 0), half of the digits (LeRobot
keeps 32 bits), source, marks and history. The variant is the `robot_type` unless another is named;
as `unitree_g1`, robot type and joints are called as LeRobot's own driver calls them, which ignores
all other names. Episodes come back by `rote.motion.files.exchange.lerobot_read`.
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
from rote.motion.edit.operations import resample
from rote.motion.files import disk
from rote.motion.files.exchange.lerobot_names import DRIVER, driver_name, joint_named
from rote.motion.files.metadata import FileLocation, check
from rote.motion.track import Origin, Track

__all__ = ["export_lerobot"]

LOSS = "exact times, 32 of 64 bits of each angle, source, marks and history are lost"

_STATE, _VELOCITY, _ACTION = "observation.state", "observation.velocity", "action"
_COLUMNS = (
    _STATE, _ACTION, "timestamp", "frame_index", "episode_index", "index", "task_index",
)  # fmt: skip
_OURS, _OTHERS = "written by rote", "- from others:"
_LABEL = "__index_level_0__"
_TEMPLATE = "chunk-{chunk_index:03d}/file-{file_index:03d}"
_QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}

Column = NDArray[Any]


class _ExportOptions(NamedTuple):
    fps: int
    tasks: tuple[str, ...]
    """One for each track."""
    robot_type: str
    names: tuple[str, ...]
    """The names of the joints in the dataset."""
    velocities: bool
    licence: str


class _ExistingDataset(NamedTuple):
    """The contents of the dataset that is appended to."""

    info: dict[str, Any]
    tasks: list[str]
    files: int
    """How many files of frames and of episodes there are."""


def export_lerobot(
    tracks: Sequence[Track],
    folder: Path,
    *,
    fps: int,
    task: str | Sequence[str],
    robot_type: str = "",
    as_driver: bool = False,
    velocities: bool = False,
    append: bool = False,
    licence: str = "",
) -> str:
    """Write tracks as the episodes of a dataset; return what is lost, as text.

    `task` is one for all or one for each track. `as_driver` writes the robot type and the names
    that LeRobot's own driver of a G1 acts on. `velocities` adds `observation.velocity`, computed
    from the angles; a track holds no torques. The folder appears only when it is complete, and must
    not exist before; with `append` the episodes are added to a dataset of the same joints and rate.
    """
    tasks = (task,) * len(tracks) if isinstance(task, str) else tuple(task)
    _check_arguments(tracks, folder, fps, tasks, append=append)
    arrow()
    names = tracks[0].names
    if as_driver:
        _check_driver(tracks[0], robot_type)
        names, robot_type = tuple(map(driver_name, names)), DRIVER
    options = _ExportOptions(
        fps, tasks, robot_type or tracks[0].variant, names, velocities, licence.strip()
    )
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        existing = _link_existing(folder, part, options) if append else None
        _write_dataset(
            part,
            _make_episodes(tracks, options, existing),
            options,
            existing,
            _unique_origins(tracks),
        )
        if existing is not None:
            old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
            folder.rename(old)
            part.rename(folder)
            shutil.rmtree(old, ignore_errors=True)
        else:
            part.rename(folder)
    except OSError as error:
        raise disk.unwritable(folder, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return LOSS


def _check_driver(track: Track, robot_type: str) -> None:
    unknown = [name for name in track.names if joint_named(name) is None]
    if unknown:
        raise BadRequestError(
            f"LeRobot's driver of a G1 has no joint {unknown[0]}", "Drop it from the motion."
        )
    if robot_type not in {"", DRIVER}:
        raise BadRequestError(f"the driver's robot type is {DRIVER}, not {robot_type}")


def _unique_origins(tracks: Sequence[Track]) -> list[Origin]:
    """Return the origins of imported motions, each once."""
    return list(dict.fromkeys(track.origin for track in tracks if track.origin is not None))


def _make_episodes(
    tracks: Sequence[Track], options: _ExportOptions, existing: _ExistingDataset | None
) -> list[dict[str, Column]]:
    first = 0 if existing is None else int(existing.info["total_frames"])
    number = 0 if existing is None else int(existing.info["total_episodes"])
    every = list(dict.fromkeys([*([] if existing is None else existing.tasks), *options.tasks]))
    episodes = []
    for track, task in zip(tracks, options.tasks, strict=True):
        episode = _episode_frames(track, number, options)
        count = len(episode["index"])
        episode["index"] = np.arange(first, first + count)
        episode["task_index"] = np.full(count, every.index(task))
        episodes.append(episode)
        first, number = first + count, number + 1
    return episodes


def _link_existing(folder: Path, part: Path, options: _ExportOptions) -> _ExistingDataset:
    """Hard-link the files of a dataset into a new folder, and return the dataset's contents.

    The old folder stays unchanged until the new one is complete.
    """
    path = folder / "meta" / "info.json"
    location = FileLocation(str(folder))
    try:
        info = json.loads(disk.contents(path))
        features, total = info["features"], (info["total_frames"], info["total_episodes"])
        same = (
            info["codebase_version"] == "v3.0"
            and all(type(each) is int for each in total)
            and info["fps"] == options.fps
            and features[_STATE]["names"] == features[_ACTION]["names"] == list(options.names)
            and (_VELOCITY in features) == options.velocities
            and set(features) <= {*_COLUMNS, _VELOCITY}
        )
        tasks = arrow().parquet.read_table(folder / "meta" / "tasks.parquet").to_pydict()
        labels = [str(each) for each in tasks[_LABEL]]
        in_order = [labels[tasks["task_index"].index(number)] for number in range(len(labels))]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise location.error(f"it cannot be appended to: {error!s:.100}") from None
    if not same:
        raise location.error(
            f"it has other joints, another rate than {options.fps}, or more than joints",
            "Append motions of the same joints at its rate, or write a new data set.",
        )
    files = len(list(folder.glob("data/chunk-000/file-*.parquet")))
    for source in folder.rglob("*"):
        if source.is_file():
            target = part / source.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(source, target)
            except OSError:
                shutil.copyfile(source, target)
    return _ExistingDataset(info, in_order, files)


def _check_arguments(
    tracks: Sequence[Track], folder: Path, fps: int, tasks: tuple[str, ...], *, append: bool
) -> None:
    if not tracks:
        raise BadRequestError("a dataset needs at least one track")
    if len(tasks) != len(tracks):
        raise BadRequestError(
            f"{len(tasks)} tasks given for {len(tracks)} tracks",
            "Give one task, or one for each track.",
        )
    if not all(task.strip() for task in tasks):
        raise BadRequestError("a dataset needs a task as text", "For example: wave with one arm")
    if not isinstance(fps, int) or not 1 <= fps <= 1000:
        raise BadRequestError(f"{fps} frames a second are out of range", "Choose 1 to 1000.")
    if append and not (folder / "meta" / "info.json").is_file():
        raise BadRequestError(
            f"{folder} is not a data set to append to", "Name one, or write it new."
        )
    if folder.exists() and not append:
        raise BadRequestError(f"{folder} exists already", "Name a folder that does not exist.")
    if not folder.parent.is_dir():
        raise BadRequestError(
            f"{folder} cannot be made: there is no folder {folder.parent}",
            f"Name another one, or run: mkdir -p {folder.parent}",
        )
    for number, track in enumerate(tracks, start=1):
        check(track, FileLocation(f"track {number}"))
        if (track.names, track.variant) != (tracks[0].names, tracks[0].variant):
            raise BadRequestError(
                f"track {number} has other joints, or is of another robot, than track 1",
                "Bring all to one variant, and keep the joints they share.",
            )


def arrow() -> Any:
    """Return pyarrow with its Parquet; raises `MissingExtraError` without it."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional
        import pyarrow.parquet  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError("a LeRobot dataset", "lerobot") from error
    assert pyarrow.parquet
    return pa


def _episode_frames(track: Track, number: int, options: _ExportOptions) -> dict[str, Column]:
    """Return the columns of one episode, each (frames,) or (frames, joints)."""
    fps, exact = options.fps, resample(track, options.fps).joints_rad
    state = exact.astype(np.float32)
    count = len(state)
    speeds = {_VELOCITY: np.gradient(exact, 1.0 / fps, axis=0).astype(np.float32)}
    return {
        _STATE: state,
        **(speeds if options.velocities else {}),
        _ACTION: np.concatenate([state[1:], state[-1:]]),
        "timestamp": (np.arange(count) / fps).astype(np.float32),
        "frame_index": np.arange(count),
        "episode_index": np.full(count, number),
        "index": np.arange(count),
        "task_index": np.zeros(count, dtype=np.int64),
    }


def _write_dataset(
    folder: Path,
    episodes: list[dict[str, Column]],
    options: _ExportOptions,
    existing: _ExistingDataset | None,
    origins: Sequence[Origin],
) -> None:
    number = 0 if existing is None else existing.files
    file = f"chunk-000/file-{number:03d}.parquet"
    new = {key: np.concatenate([episode[key] for episode in episodes]) for key in episodes[0]}
    _write_table(folder / "data" / file, {key: _arrow_column(v) for key, v in new.items()})
    rows = _episode_columns(episodes, options.tasks, number)
    _write_table(folder / "meta" / "episodes" / file, rows)
    together = new if existing is None else _read_all_frames(folder, new)
    tasks = list(dict.fromkeys([*([] if existing is None else existing.tasks), *options.tasks]))
    _write_tasks(folder / "meta" / "tasks.parquet", tasks)
    count = len(episodes) + (0 if existing is None else int(existing.info["total_episodes"]))
    _write_json(
        folder / "meta" / "stats.json", {k: _column_statistics(v) for k, v in together.items()}
    )
    info = _dataset_info(together, count, len(tasks), options)
    if existing is not None:
        info |= {"robot_type": existing.info.get("robot_type", info["robot_type"])}
    _write_json(folder / "meta" / "info.json", info)
    card, origin_lines = folder / "README.md", [_origin_line(origin) for origin in origins]
    if existing is not None:
        old = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
        if old and _OURS not in old:
            return  # the user has written their own
        origin_lines = [
            line for line in old.splitlines() if line.startswith(_OTHERS)
        ] + origin_lines
    _replace_text(card, _dataset_card(info, tasks, options, list(dict.fromkeys(origin_lines))))


def _origin_line(origin: Origin) -> str:
    by = f", {origin.address}" if origin.address else ""
    terms = origin.licence or "licence not known"
    return f"{_OTHERS} {origin.file} ({origin.format}{by}): {terms}"


def _read_all_frames(folder: Path, like: dict[str, Column]) -> dict[str, Column]:
    """Return the frames of all files, in the types of new ones."""
    pq, parts = arrow().parquet, []
    for path in sorted(folder.glob("data/chunk-000/file-*.parquet")):
        table = pq.read_table(path)
        parts.append(
            {
                key: np.array(table[key].to_pylist(), dtype=new.dtype).reshape(-1, *new.shape[1:])
                for key, new in like.items()
            }
        )
    return {key: np.concatenate([part[key] for part in parts]) for key in like}


def _dataset_card(
    info: dict[str, Any], tasks: Sequence[str], options: _ExportOptions, origins: Sequence[str]
) -> str:
    """Return the dataset's card: what it is, whose it is, and how the Hub shows it."""
    licence = options.licence or "other"
    lines = [
        "---",
        f"license: {json.dumps(licence, ensure_ascii=False)}",
        "task_categories:",
        "- robotics",
        "tags:",
        "- LeRobot",
        "configs:",
        "- config_name: default",
        "  data_files: data/*/*.parquet",
        "---",
        "",
        f"Motions of a {info['robot_type']}, taught by hand or imported, {_OURS}.",
        "",
        f"- {info['total_episodes']} episodes, {info['total_frames']} frames "
        f"at {options.fps} a second; there are no cameras",
        f"- joints in rad: {', '.join(options.names)}",
        "- `action` is the state of the next frame",
        *(
            ["- `observation.velocity` in rad/s is computed from the angles, not measured"]
            if options.velocities
            else []
        ),
        f"- tasks: {'; '.join(tasks)}",
        *origins,
    ]
    return "\n".join(lines) + "\n"


def _dataset_info(
    columns: dict[str, Column], episodes: int, tasks: int, options: _ExportOptions
) -> dict[str, Any]:
    return {
        "codebase_version": "v3.0",
        "robot_type": options.robot_type,
        "total_episodes": episodes,
        "total_frames": len(columns["index"]),
        "total_tasks": tasks,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": options.fps,
        "splits": {"train": f"0:{episodes}"},
        "data_path": f"data/{_TEMPLATE}.parquet",
        "video_path": None,
        "features": {
            key: {
                "dtype": str(column.dtype),
                "shape": [column.shape[1] if column.ndim > 1 else 1],
                "names": list(options.names) if column.ndim > 1 else None,
            }
            for key, column in columns.items()
        },
    }


def _column_statistics(column: Column) -> dict[str, list[float]]:
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


def _episode_columns(
    episodes: list[dict[str, Column]], tasks: Sequence[str], file: int
) -> dict[str, list[Any]]:
    """Return a row per episode: where its frames are, and their statistics."""
    rows: list[dict[str, Any]] = []
    for task, episode in zip(tasks, episodes, strict=True):
        number = int(episode["episode_index"][0])
        first, count = int(episode["index"][0]), len(episode["index"])
        row: dict[str, Any] = {
            "episode_index": number,
            "tasks": [task],
            "length": count,
            "data/chunk_index": 0,
            "data/file_index": file,
            "dataset_from_index": first,
            "dataset_to_index": first + count,
            "meta/episodes/chunk_index": 0,
            "meta/episodes/file_index": file,
        }
        for key, column in episode.items():
            row |= {f"stats/{key}/{name}": v for name, v in _column_statistics(column).items()}
        rows.append(row)
    return {key: [row[key] for row in rows] for key in rows[0]}


def _arrow_column(column: Column) -> Any:
    pa = arrow()
    if column.ndim == 1 or column.shape[1] == 1:  # LeRobot has one number as a number, not a list
        return pa.array(column.ravel())
    return pa.FixedSizeListArray.from_arrays(pa.array(column.ravel()), column.shape[1])


def _write_tasks(path: Path, tasks: Sequence[str]) -> None:
    # LeRobot looks a task up by the row's label. pandas stores labels in a column with this name
    # and finds them by this note; so pandas is not needed to write one.
    columns = [("task_index", "int64", "int64"), (_LABEL, "unicode", "object")]
    note = {
        "index_columns": [_LABEL],
        "column_indexes": [],
        "columns": [
            {
                "name": None if name == _LABEL else name,
                "field_name": name,
                "pandas_type": pandas_type,
                "numpy_type": numpy_type,
                "metadata": None,
            }
            for name, pandas_type, numpy_type in columns
        ],
        "creator": {"library": "pyarrow", "version": arrow().__version__},
        "pandas_version": "2.0.0",
    }
    rows = {"task_index": list(range(len(tasks))), _LABEL: list(tasks)}
    _write_table(path, rows, {"pandas": json.dumps(note)})


def _write_table(path: Path, columns: dict[str, Any], note: dict[str, str] | None = None) -> None:
    pa = arrow()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # the file of a dataset that is appended to must not change
    table = pa.table(columns)
    pa.parquet.write_table(table.replace_schema_metadata(note) if note else table, path)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    _replace_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _replace_text(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")
