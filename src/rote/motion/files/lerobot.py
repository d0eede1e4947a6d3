"""Tracks as a LeRobot dataset, version 3.0, for training and for LeRobot's own viewer.

Each track is one episode. `observation.state` holds the joints at a frame in rad, `action` those at
the next frame (at the last frame: the same), as if the robot had been commanded to follow the
taught motion. There are no cameras.

Lost are the exact times (tracks are resampled to `fps`, each from 0), half of the digits (LeRobot
keeps 32 bits), source, marks and history. The variant becomes the `robot_type` unless another is
given. LeRobot's own driver of a G1 ignores joints that do not have its own names; `as_driver`
writes these. `rote.motion.files.exchange.lerobot_read` reads episodes.
"""

import json
import os
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.errors import BadRequestError, MissingExtraError
from rote.model import registry
from rote.motion.edit.operations import resample_at_exact_rate
from rote.motion.files import disk
from rote.motion.files.metadata import FileLocation, check_playable
from rote.motion.track import Origin, Track

DRIVER = "unitree_g1"
"""The robot type of LeRobot's own driver."""

_NAME_ENDINGS = (".q", ".pos", ".position")


def driver_name(joint: str) -> str:
    """Return the name that LeRobot's driver gives a joint, such as `kLeftElbow.q`."""
    words = joint.removesuffix("_joint").split("_")
    return f"k{''.join(word.capitalize() for word in words)}.q"


def joint_named(name: str) -> str | None:
    """Return the joint of a G1 that a dataset calls `name`; None if there is none.

    A dataset may use rote's names, with or without `_joint`, or those of LeRobot's driver. Letter
    case is ignored, because older versions of the driver use `kLeftWristyaw`. A name may end in
    `.q`, `.pos` or `.position`.
    """
    alias = name
    for ending in _NAME_ENDINGS:
        alias = alias.removesuffix(ending)
    return _joints_by_alias().get(alias.lower())


@cache
def _joints_by_alias() -> dict[str, str]:
    joint_by_alias: dict[str, str] = {}
    for joint in registry.build_named("g1").names:
        joint_by_alias[joint] = joint
        joint_by_alias[joint.removesuffix("_joint")] = joint
        joint_by_alias[driver_name(joint).removesuffix(".q").lower()] = joint
    return joint_by_alias


__all__ = ["export_lerobot"]

LOSS = "exact times, 32 of 64 bits of each angle, source, marks and history are lost"

_STATE, _VELOCITY, _ACTION = "observation.state", "observation.velocity", "action"
_COLUMNS = (
    _STATE, _ACTION, "timestamp", "frame_index", "episode_index", "index", "task_index",
)  # fmt: skip
_WRITTEN_BY, _ORIGIN_PREFIX = "written by rote", "- from others:"
"""Texts by which a later export recognises rote's own README.md, and the origins listed there."""
_TASK_LABEL = "__index_level_0__"  # pandas' name for the column of the row labels
_PATH_TEMPLATE = "chunk-{chunk_index:03d}/file-{file_index:03d}"
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
    """The contents of the dataset that is appended to; all counts are 0 for a new one."""

    robot_type: Any
    tasks: Sequence[str] = ()
    episode_count: int = 0
    frame_count: int = 0
    file_count: int = 0
    """The number of files of frames, which is also that of files of episodes."""


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

    `task` is one text for all tracks, or one for each. `as_driver` writes the robot type and names
    that LeRobot's own driver of a G1 acts on. `velocities` adds `observation.velocity`, computed
    from the angles; a track holds no torques. The folder appears only when it is complete, and must
    not exist before; with `append` the episodes are added to a dataset of the same joints and rate.
    """
    tasks = (task,) * len(tracks) if isinstance(task, str) else tuple(task)
    _check_arguments(tracks, folder, fps, tasks, append=append)
    import_arrow()
    names = tracks[0].names
    if as_driver:
        _check_fits_driver(tracks[0], robot_type)
        names, robot_type = tuple(map(driver_name, names)), DRIVER
    options = _ExportOptions(
        fps, tasks, robot_type or tracks[0].variant, names, velocities, licence.strip()
    )
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        existing = _ExistingDataset(options.robot_type)
        if append:
            existing = _read_existing(folder, options)
            _link_files(folder, part)
        episodes = _make_episodes(tracks, options, existing)
        _write_dataset(part, episodes, options, existing, _list_origins(tracks))
        if append:
            old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
            folder.rename(old)
            part.rename(folder)
            shutil.rmtree(old, ignore_errors=True)
        else:
            part.rename(folder)
    except OSError as error:
        raise disk.make_write_error(folder, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return LOSS


def _check_fits_driver(track: Track, robot_type: str) -> None:
    unknown = [name for name in track.names if joint_named(name) is None]
    if unknown:
        raise BadRequestError(
            f"LeRobot's driver of a G1 has no joint {unknown[0]}", "Drop it from the motion."
        )
    if robot_type not in {"", DRIVER}:
        raise BadRequestError(
            f"LeRobot's driver of a G1 needs the robot type {DRIVER}, not {robot_type}"
        )


def _list_origins(tracks: Sequence[Track]) -> list[Origin]:
    """Return the different origins of those tracks that were imported."""
    return list(dict.fromkeys(track.origin for track in tracks if track.origin is not None))


def _make_episodes(
    tracks: Sequence[Track], options: _ExportOptions, existing: _ExistingDataset
) -> list[dict[str, Column]]:
    """Return the frames of each episode, numbered after those of the existing dataset."""
    all_tasks = _merge_tasks(existing, options)
    first_frame = existing.frame_count
    episodes = []
    for number, (track, task) in enumerate(
        zip(tracks, options.tasks, strict=True), start=existing.episode_count
    ):
        episode = _make_frames(track, options)
        count = len(episode[_STATE])
        episode["episode_index"] = np.full(count, number)
        episode["index"] = np.arange(first_frame, first_frame + count)
        episode["task_index"] = np.full(count, all_tasks.index(task))
        episodes.append(episode)
        first_frame += count
    return episodes


def _merge_tasks(existing: _ExistingDataset, options: _ExportOptions) -> list[str]:
    """Return the different tasks of the dataset; a task's position is its `task_index`."""
    return list(dict.fromkeys([*existing.tasks, *options.tasks]))


def _read_existing(folder: Path, options: _ExportOptions) -> _ExistingDataset:
    """Return the contents of a dataset; refuse one that the new episodes do not fit."""
    location = FileLocation(str(folder))
    try:
        info = json.loads(disk.read_contents(folder / "meta" / "info.json"))
        features = info["features"]
        episode_count, frame_count = info["total_episodes"], info["total_frames"]
        is_compatible = (
            info["codebase_version"] == "v3.0"
            and all(type(count) is int for count in (episode_count, frame_count))
            and info["fps"] == options.fps
            and features[_STATE]["names"] == features[_ACTION]["names"] == list(options.names)
            and (_VELOCITY in features) == options.velocities
            and set(features) <= {*_COLUMNS, _VELOCITY}
        )
        tasks = import_arrow().parquet.read_table(folder / "meta" / "tasks.parquet").to_pydict()
        labels = [str(each) for each in tasks[_TASK_LABEL]]
        ordered_tasks = [labels[tasks["task_index"].index(number)] for number in range(len(labels))]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise location.error(f"it cannot be appended to: {error!s:.100}") from None
    if not is_compatible:
        raise location.error(
            f"it has different joints, a rate other than {options.fps}, or other features",
            "Append motions of the same joints at its rate, or write a new dataset.",
        )
    file_count = len(list(folder.glob("data/chunk-000/file-*.parquet")))
    robot_type = info.get("robot_type", options.robot_type)
    return _ExistingDataset(robot_type, ordered_tasks, episode_count, frame_count, file_count)


def _link_files(folder: Path, target_folder: Path) -> None:
    """Fill a new folder with hard links to the files of a dataset, or with copies of them.

    So the old folder can stay unchanged until the new one is complete.
    """
    for source in folder.rglob("*"):
        if source.is_file():
            target = target_folder / source.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(source, target)
            except OSError:
                shutil.copyfile(source, target)


def _check_arguments(
    tracks: Sequence[Track], folder: Path, fps: int, tasks: tuple[str, ...], *, append: bool
) -> None:
    """Refuse bad arguments of `export_lerobot`; `tasks` are already one for each track."""
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
        raise BadRequestError(f"{fps} frames a second is out of range", "Choose 1 to 1000.")
    if append and not (folder / "meta" / "info.json").is_file():
        raise BadRequestError(
            f"{folder} is not a dataset to append to", "Name a dataset, or write a new one."
        )
    if folder.exists() and not append:
        raise BadRequestError(f"{folder} exists already", "Name a folder that does not exist.")
    if not folder.parent.is_dir():
        raise BadRequestError(
            f"{folder} cannot be created: there is no folder {folder.parent}",
            f"Name another one, or run: mkdir -p {folder.parent}",
        )
    for number, track in enumerate(tracks, start=1):
        check_playable(track, FileLocation(f"track {number}"))
        if (track.names, track.variant) != (tracks[0].names, tracks[0].variant):
            raise BadRequestError(
                f"track {number} has other joints than track 1, or is of another robot",
                "Convert all to one build, and keep the joints they share.",
            )


def import_arrow() -> Any:
    """Return the module `pyarrow` with `pyarrow.parquet`; raises `MissingExtraError` without it."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional
        import pyarrow.parquet  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError("a LeRobot dataset", "lerobot") from error
    assert pyarrow.parquet
    return pa


def _make_frames(track: Track, options: _ExportOptions) -> dict[str, Column]:
    """Return the columns of an episode, each (frames,) or (frames, joints).

    The columns that depend on the other episodes are still 0.
    """
    joints_rad = resample_at_exact_rate(track, options.fps).joints_rad
    state = joints_rad.astype(np.float32)
    count = len(state)
    columns: dict[str, Column] = {_STATE: state}
    if options.velocities:
        velocity_rad_s = np.gradient(joints_rad, 1.0 / options.fps, axis=0)
        columns[_VELOCITY] = velocity_rad_s.astype(np.float32)
    return columns | {
        _ACTION: np.concatenate([state[1:], state[-1:]]),
        "timestamp": (np.arange(count) / options.fps).astype(np.float32),
        "frame_index": np.arange(count),
        **dict.fromkeys(("episode_index", "index", "task_index"), np.zeros(count, dtype=np.int64)),
    }


def _write_dataset(
    folder: Path,
    episodes: list[dict[str, Column]],
    options: _ExportOptions,
    existing: _ExistingDataset,
    origins: Sequence[Origin],
) -> None:
    """Write new episodes, and the metadata of the whole dataset, into a folder.

    If there is an existing dataset, the folder already has links to its files.
    """
    file = f"chunk-000/file-{existing.file_count:03d}.parquet"
    all_frames = new_frames = {
        key: np.concatenate([episode[key] for episode in episodes]) for key in episodes[0]
    }
    arrow_columns = {key: _make_arrow_column(column) for key, column in new_frames.items()}
    _write_table(folder / "data" / file, arrow_columns)
    episode_table = _make_episode_table(episodes, options.tasks, existing.file_count)
    _write_table(folder / "meta" / "episodes" / file, episode_table)
    if existing.file_count:
        all_frames = _read_all_frames(folder, new_frames)
    tasks = _merge_tasks(existing, options)
    _write_tasks(folder / "meta" / "tasks.parquet", tasks)
    statistics = {key: _compute_statistics(column) for key, column in all_frames.items()}
    _write_json(folder / "meta" / "stats.json", statistics)
    info = _make_dataset_info(
        all_frames, existing.episode_count + len(episodes), len(tasks), options
    )
    info["robot_type"] = existing.robot_type
    _write_json(folder / "meta" / "info.json", info)
    _write_dataset_card(folder / "README.md", info, tasks, options, origins)


def _write_dataset_card(
    path: Path,
    info: dict[str, Any],
    tasks: Sequence[str],
    options: _ExportOptions,
    origins: Sequence[Origin],
) -> None:
    """Write the README.md of a dataset; keep one that the user has written."""
    old_card = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    if old_card and _WRITTEN_BY not in old_card:
        return
    old_lines = [line for line in old_card.splitlines() if line.startswith(_ORIGIN_PREFIX)]
    origin_lines = dict.fromkeys([*old_lines, *map(_format_origin, origins)])
    _replace_text(path, _make_dataset_card(info, tasks, options, list(origin_lines)))


def _format_origin(origin: Origin) -> str:
    address = f", {origin.address}" if origin.address else ""
    terms = origin.licence or "licence not known"
    return f"{_ORIGIN_PREFIX} {origin.file} ({origin.format}{address}): {terms}"


def _read_all_frames(folder: Path, new_frames: dict[str, Column]) -> dict[str, Column]:
    """Return all frames of a dataset as columns with the types and widths of `new_frames`."""
    pq, parts = import_arrow().parquet, []
    for path in sorted(folder.glob("data/chunk-000/file-*.parquet")):
        table = pq.read_table(path)
        parts.append(
            {
                key: np.array(table[key].to_pylist(), dtype=column.dtype).reshape(
                    -1, *column.shape[1:]
                )
                for key, column in new_frames.items()
            }
        )
    return {key: np.concatenate([part[key] for part in parts]) for key in new_frames}


def _make_dataset_card(
    info: dict[str, Any], tasks: Sequence[str], options: _ExportOptions, origins: Sequence[str]
) -> str:
    """Return the text of a dataset's README.md, whose first lines are for the Hugging Face Hub."""
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
        f"Motions of a {info['robot_type']}, taught by hand or imported, {_WRITTEN_BY}.",
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


def _make_dataset_info(
    frames: dict[str, Column], episode_count: int, task_count: int, options: _ExportOptions
) -> dict[str, Any]:
    return {
        "codebase_version": "v3.0",
        "robot_type": options.robot_type,
        "total_episodes": episode_count,
        "total_frames": len(frames["index"]),
        "total_tasks": task_count,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": options.fps,
        "splits": {"train": f"0:{episode_count}"},
        "data_path": f"data/{_PATH_TEMPLATE}.parquet",
        "video_path": None,
        "features": {
            key: {
                "dtype": str(column.dtype),
                "shape": [column.shape[1] if column.ndim > 1 else 1],
                "names": list(options.names) if column.ndim > 1 else None,
            }
            for key, column in frames.items()
        },
    }


def _compute_statistics(column: Column) -> dict[str, list[float]]:
    """Return the statistics with which LeRobot normalises a column, each a number per joint."""
    table = column.reshape(len(column), -1).astype(np.float64)
    statistics = {
        "min": table.min(axis=0),
        "max": table.max(axis=0),
        "mean": table.mean(axis=0),
        "std": table.std(axis=0),
        "count": np.array([len(table)]),
    }
    statistics |= {
        name: np.quantile(table, quantile, axis=0) for name, quantile in _QUANTILES.items()
    }
    return {name: values.tolist() for name, values in statistics.items()}


def _make_episode_table(
    episodes: list[dict[str, Column]], tasks: Sequence[str], file_number: int
) -> dict[str, list[Any]]:
    """Return the columns of a table with a row per episode: its frames and their statistics."""
    rows: list[dict[str, Any]] = []
    for task, episode in zip(tasks, episodes, strict=True):
        number = int(episode["episode_index"][0])
        first, count = int(episode["index"][0]), len(episode["index"])
        row: dict[str, Any] = {
            "episode_index": number,
            "tasks": [task],
            "length": count,
            "data/chunk_index": 0,
            "data/file_index": file_number,
            "dataset_from_index": first,
            "dataset_to_index": first + count,
            "meta/episodes/chunk_index": 0,
            "meta/episodes/file_index": file_number,
        }
        for key, column in episode.items():
            for name, values in _compute_statistics(column).items():
                row[f"stats/{key}/{name}"] = values
        rows.append(row)
    return {key: [row[key] for row in rows] for key in rows[0]}


def _make_arrow_column(column: Column) -> Any:
    pa = import_arrow()
    # LeRobot stores a single number as a number, not as a list.
    if column.ndim == 1 or column.shape[1] == 1:
        return pa.array(column.ravel())
    return pa.FixedSizeListArray.from_arrays(pa.array(column.ravel()), column.shape[1])


def _write_tasks(path: Path, tasks: Sequence[str]) -> None:
    # LeRobot looks a task up by the row's label. pandas stores labels in a column with this name,
    # and finds them by this metadata; written here, it needs no pandas.
    columns = [("task_index", "int64", "int64"), (_TASK_LABEL, "unicode", "object")]
    pandas_metadata = {
        "index_columns": [_TASK_LABEL],
        "column_indexes": [],
        "columns": [
            {
                "name": None if name == _TASK_LABEL else name,
                "field_name": name,
                "pandas_type": pandas_type,
                "numpy_type": numpy_type,
                "metadata": None,
            }
            for name, pandas_type, numpy_type in columns
        ],
        "creator": {"library": "pyarrow", "version": import_arrow().__version__},
        "pandas_version": "2.0.0",
    }
    rows = {"task_index": list(range(len(tasks))), _TASK_LABEL: list(tasks)}
    _write_table(path, rows, {"pandas": json.dumps(pandas_metadata)})


def _write_table(
    path: Path, columns: dict[str, Any], metadata: dict[str, str] | None = None
) -> None:
    pa = import_arrow()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # a link to a file of the old dataset, which must not change
    table = pa.table(columns)
    pa.parquet.write_table(table.replace_schema_metadata(metadata) if metadata else table, path)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    _replace_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _replace_text(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)  # as in `_write_table`
    path.write_text(text, encoding="utf-8")
