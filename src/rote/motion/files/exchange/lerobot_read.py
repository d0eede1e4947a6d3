"""Episodes of a LeRobot dataset, version 3, as tracks."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rote.motion.files import FilePath, disk
from rote.motion.files.exchange import ImportedMotion, hash_content, keep_upper_body, make_track
from rote.motion.files.exchange.contents import Contents
from rote.motion.files.lerobot import import_arrow, joint_named
from rote.motion.files.metadata import MAX_VALUES, FileLocation
from rote.motion.track import Array, Origin

__all__ = ["import_lerobot"]

FEATURES = ("observation.state", "action")
"""The features that may hold the joints; the first one that a dataset has is read."""

_MAX_INFO_BYTES = 16 * 2**20
_MAX_FILES = 10_000
_MAX_EPISODES = 10_000


def import_lerobot(
    folder: FilePath,
    episodes: Sequence[int] | None = None,
    *,
    upper_body: bool = False,
    licence: str = "",
    address: str = "",
) -> dict[int, ImportedMotion]:
    """Read all episodes of a dataset, or those of the given numbers; return them by number.

    Columns that are not joints of a G1 are listed in `left_out`. `upper_body` leaves out legs and
    waist. `licence` and `address` are stored with each motion; the default licence is that of the
    dataset. Raises `BadRequestError` for a folder that is not a dataset of version 3 or has no
    joints of a G1, and `MissingExtraError` without pyarrow.
    """
    path = Path(folder)
    location = FileLocation(str(path), "frame")
    pq = import_arrow().parquet
    info = _read_info(path, location)
    feature, names = _find_joint_feature(info, location)
    joints = [joint_named(name) for name in names]
    columns = [column for column, joint in enumerate(joints) if joint]
    if not columns:
        raise location.error(
            f"none of its {feature} is a joint of a G1: {', '.join(names[:6])}",
            "Joints are named like left_elbow_joint or kLeftElbow.q.",
        )
    fps = _read_fps(info, location)
    tasks = _read_tasks(pq, path)
    motions: dict[int, ImportedMotion] = {}
    licence_text = licence.strip() or _read_licence(path)
    for number, rows in _read_episodes(pq, path, feature, len(names), episodes, location).items():
        episode_location = FileLocation(f"{path} episode {number}", "frame")
        contents = Contents(
            names=tuple(joint for joint in joints if joint),
            joints_rad=rows.values[:, columns],
            fps=fps,
        )
        track = make_track(contents, fps, None, episode_location)
        source, digest = (
            f"{path.resolve().name} episode {number}",
            hash_content(rows.values.tobytes()),
        )
        track = track.edited(
            f"import episode {number} of {path.name}, {feature} at {fps:g} Hz",
            origin=Origin("lerobot", source, licence_text, address.strip(), digest),
        )
        if task := tasks.get(rows.task, ""):
            track = replace(track, source=f"LeRobot: {task}")
        left_out = tuple(name for name, joint in zip(names, joints, strict=True) if not joint)
        if upper_body:
            track, left_out_joints = keep_upper_body(track, episode_location)
            left_out += left_out_joints
        motions[number] = ImportedMotion(track=track, format="lerobot", left_out=left_out)
    return motions


def _read_info(path: Path, location: FileLocation) -> dict[str, Any]:
    file = path / "meta" / "info.json"
    if not file.is_file():
        raise location.error("it is not a LeRobot dataset: it has no meta/info.json")
    with disk.open_checked(file) as opened:
        data = opened.read(_MAX_INFO_BYTES)
    try:
        info = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise location.error(f"its meta/info.json cannot be read: {error}") from None
    version = info.get("codebase_version") if isinstance(info, dict) else None
    if not isinstance(version, str) or not version.startswith("v3."):
        raise location.error(
            f"it has version {version!r:.20}; only v3 can be read",
            "Convert it with LeRobot's own script first.",
        )
    return dict(info)


def _find_joint_feature(info: dict[str, Any], location: FileLocation) -> tuple[str, list[str]]:
    """Return the feature that holds the joints, and the names of its columns."""
    features = info.get("features")
    for feature in FEATURES:
        described = features.get(feature) if isinstance(features, dict) else None
        names = described.get("names") if isinstance(described, dict) else None
        if isinstance(names, dict) and len(names) == 1:  # {"motors": [...]}
            names = next(iter(names.values()))
        if isinstance(names, list) and names and all(isinstance(each, str) for each in names):
            return feature, names
    raise location.error(f"it has neither {FEATURES[0]} nor {FEATURES[1]} with names")


def _read_fps(info: dict[str, Any], location: FileLocation) -> float:
    fps = info.get("fps")
    if not isinstance(fps, int | float) or not 1 <= fps <= 2000:
        raise location.error(f"its rate is {fps!r:.20} frames a second")
    return float(fps)


class _EpisodeRows:
    """The rows of one episode, collected from several files."""

    def __init__(self) -> None:
        self.parts: list[tuple[Array, Array]] = []
        """For each file the numbers of the frames, (n,), and their rows, (n, columns)."""
        self.task = -1
        """The number of its task."""

    @property
    def values(self) -> Array:
        """All rows in the order of their frames, (n, columns)."""
        frames = np.concatenate([frames for frames, _ in self.parts])
        rows = np.concatenate([rows for _, rows in self.parts])
        return np.asarray(rows[np.argsort(frames, kind="stable")])


def _read_episodes(
    pq: Any,
    path: Path,
    feature: str,
    width: int,
    requested: Sequence[int] | None,
    location: FileLocation,
) -> dict[int, _EpisodeRows]:
    """Return the rows of each requested episode, by number; `width` is the feature's columns."""
    files = sorted(path.glob("data/chunk-*/file-*.parquet"))[:_MAX_FILES]
    if not files:
        raise location.error("it has no files data/chunk-*/file-*.parquet")
    keys = ["episode_index", "frame_index", "task_index", feature]
    filters = None if requested is None else [("episode_index", "in", list(requested))]
    episodes: dict[int, _EpisodeRows] = {}
    value_count = 0
    for file in files:
        with disk.open_checked(file):
            pass  # refuse a file that is too large, or not a file
        try:
            table = pq.read_table(file, columns=keys, filters=filters)
            values = _to_matrix(table.column(feature), width)
            numbers, frames, tasks = (
                np.asarray(table.column(key).to_numpy(), dtype=np.int64) for key in keys[:3]
            )
        except MemoryError:
            raise location.error(f"{file.name} is too large") from None
        except Exception as error:  # whatever the library raises for a damaged file
            raise location.error(
                f"{file.relative_to(path)} cannot be read: {error!s:.200}"
            ) from None
        value_count += values.size
        if value_count > MAX_VALUES:
            raise location.error("it is too large to be read at once", "Choose some episodes.")
        for number in np.unique(numbers).tolist():
            in_episode = numbers == number
            rows = episodes.setdefault(int(number), _EpisodeRows())
            rows.parts.append((frames[in_episode], values[in_episode]))
            rows.task = int(tasks[in_episode][0])
    missing = [number for number in requested or () if number not in episodes]
    if missing:
        raise location.error(f"it has no episode {missing[0]}")
    if not 1 <= len(episodes) <= _MAX_EPISODES:
        raise location.error(f"it has {len(episodes)} episodes")
    return dict(sorted(episodes.items()))


def _to_matrix(column: Any, width: int) -> Array:
    """Return a column of lists as (n, width) numbers."""
    array = column.combine_chunks()
    is_plain = width == 1 and not hasattr(array, "values")  # LeRobot stores single numbers so
    flat = array if is_plain else array.flatten()
    values = np.asarray(flat.to_numpy(zero_copy_only=False), dtype=np.float64)
    if values.size != len(column) * width:
        raise ValueError(f"its rows do not all have {width} numbers")
    if not np.isfinite(values).all():
        raise ValueError("it holds something that is not a number")
    return values.reshape(len(column), width)


def _read_tasks(pq: Any, path: Path) -> dict[int, str]:
    """Return the tasks by number; none if they cannot be read."""
    try:
        table = pq.read_table(path / "meta" / "tasks.parquet").to_pydict()
        numbers = table.pop("task_index")
        # The column's name depends on the program that wrote it.
        texts = table.get("task") or table.get("__index_level_0__") or next(iter(table.values()))
        return {int(n): str(text)[:200] for n, text in zip(numbers, texts, strict=True)}
    except Exception:  # a motion without a task name is usable
        return {}


def _read_licence(path: Path) -> str:
    """Return the licence that a dataset's README.md states at its top; empty if it states none."""
    try:
        head = (path / "README.md").read_text(encoding="utf-8", errors="replace")[:20_000]
    except OSError:
        return ""
    lines = head.split("---", 2)[1].splitlines() if head.startswith("---") else []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in {"license", "licence"}:
            return value.strip().strip("\"'")[:200]
    return ""
