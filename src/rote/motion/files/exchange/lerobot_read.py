"""Episodes of a LeRobot data set, version 3, as tracks."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rote.motion.files import FilePath, disk
from rote.motion.files.exchange import ImportedMotion, make_track, upper_body_of
from rote.motion.files.exchange.contents import Contents
from rote.motion.files.exchange.lerobot_names import joint_named
from rote.motion.files.lerobot import arrow
from rote.motion.files.metadata import MAX_VALUES, FileLocation
from rote.motion.track import Array, Origin

__all__ = ["import_lerobot"]

FEATURES = ("observation.state", "action")
"""Where the joints are: the first that a data set has counts."""

_MAX_INFO = 16 * 2**20
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
    """Read episodes of a data set, all or those of these numbers; return them by number.

    Columns that are no joints of a G1 are left out, and named. Raises `BadRequestError` for a
    folder that is no data set of version 3 or has no joints of a G1, and `MissingExtraError`
    without pyarrow.
    """
    path = Path(folder)
    location = FileLocation(str(path), "frame")
    pq = arrow().parquet
    info = _read_info(path, location)
    feature, names = _find_joints(info, location)
    columns = [(number, joint) for number, n in enumerate(names) if (joint := joint_named(n))]
    if not columns:
        raise location.error(
            f"none of its {feature} is a joint of a G1: {', '.join(names[:6])}",
            "Joints are named like left_elbow_joint or kLeftElbow.q.",
        )
    fps = _read_fps(info, location)
    tasks = _read_tasks(pq, path)
    found: dict[int, ImportedMotion] = {}
    terms = licence.strip() or _read_licence(path)
    for number, rows in _read_episodes(pq, path, feature, len(names), episodes, location).items():
        here = FileLocation(f"{path} episode {number}", "frame")
        contents = Contents(
            names=tuple(joint for _, joint in columns),
            joints_rad=rows.values[:, [column for column, _ in columns]],
            fps=fps,
        )
        track = make_track(contents, fps, None, here)
        said = tasks.get(rows.task, "")
        track = track.edited(
            f"import episode {number} of {path.name}, {feature} at {fps:g} Hz",
            origin=Origin(
                "lerobot",
                f"{path.resolve().name} episode {number}",
                terms,
                address.strip(),
                hashlib.sha256(rows.values.tobytes()).hexdigest()[:32],
            ),
        )
        track = replace(track, source=f"LeRobot: {said}" if said else track.source)
        left_out = tuple(name for name in names if joint_named(name) is None)
        if upper_body:
            track, more = upper_body_of(track, here)
            left_out += more
        found[number] = ImportedMotion(track=track, format="lerobot", left_out=left_out)
    return found


def _read_info(path: Path, location: FileLocation) -> dict[str, Any]:
    file = path / "meta" / "info.json"
    if not file.is_file():
        raise location.error("it is no LeRobot data set: it has no meta/info.json")
    with disk.open_checked(file) as opened:
        data = opened.read(_MAX_INFO)
    try:
        info = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise location.error(f"its meta/info.json cannot be read: {error}") from None
    version = info.get("codebase_version") if isinstance(info, dict) else None
    if not isinstance(version, str) or not version.startswith("v3."):
        raise location.error(
            f"it is of version {version!r:.20}, and v3.0 is read",
            "Convert it with LeRobot's own script first.",
        )
    return dict(info)


def _find_joints(info: dict[str, Any], location: FileLocation) -> tuple[str, list[str]]:
    features = info.get("features")
    for feature in FEATURES:
        said = features.get(feature) if isinstance(features, dict) else None
        names = said.get("names") if isinstance(said, dict) else None
        if isinstance(names, dict) and len(names) == 1:
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
    """The frames of one episode: what its files hold of it so far."""

    def __init__(self) -> None:
        self.parts: list[tuple[Array, Array]] = []
        self.task = -1

    @property
    def values(self) -> Array:
        frames = np.concatenate([frame for frame, _ in self.parts])
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
    """Return the frames of each episode that is wanted, by number."""
    files = sorted(path.glob("data/chunk-*/file-*.parquet"))[:_MAX_FILES]
    if not files:
        raise location.error("it has no files data/chunk-*/file-*.parquet")
    keys = ["episode_index", "frame_index", "task_index", feature]
    chosen = None if requested is None else [("episode_index", "in", list(requested))]
    found: dict[int, _EpisodeRows] = {}
    held = 0
    for file in files:
        with disk.open_checked(file):
            pass  # a file that is too large, or no file, is refused
        try:
            table = pq.read_table(file, columns=keys, filters=chosen)
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
        held += values.size
        if held > MAX_VALUES:
            raise location.error("it is too large to be read at once", "Choose some episodes.")
        for number in np.unique(numbers).tolist():
            at = numbers == number
            rows = found.setdefault(int(number), _EpisodeRows())
            rows.parts.append((frames[at], values[at]))
            rows.task = int(tasks[at][0])
    missing = [number for number in requested or () if number not in found]
    if missing or not found or len(found) > _MAX_EPISODES:
        what = f"it has no episode {missing[0]}" if missing else f"it has {len(found)} episodes"
        raise location.error(what)
    return dict(sorted(found.items()))


def _to_matrix(column: Any, width: int) -> Array:
    """Return a column of lists as (n, width) numbers."""
    whole = column.combine_chunks()
    flat = whole if width == 1 and not hasattr(whole, "values") else whole.flatten()
    values = np.asarray(flat.to_numpy(zero_copy_only=False), dtype=np.float64)
    if values.size != len(column) * width:
        raise ValueError(f"its rows have other lengths than {width}")
    if not np.isfinite(values).all():
        raise ValueError("it holds something that is not a number")
    return values.reshape(len(column), width)


def _read_tasks(pq: Any, path: Path) -> dict[int, str]:
    """Return the tasks by number; none if they cannot be read."""
    try:
        table = pq.read_table(path / "meta" / "tasks.parquet").to_pydict()
        numbers = table.pop("task_index")
        texts = table.get("task") or table.get("__index_level_0__") or next(iter(table.values()))
        return {int(n): str(text)[:200] for n, text in zip(numbers, texts, strict=True)}
    except Exception:  # a name that is missing is no reason to refuse the motion
        return {}


def _read_licence(path: Path) -> str:
    """Return the licence that the data set's card states; empty if it states none."""
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
