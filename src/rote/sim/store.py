"""The robot's action store: one SQLite file with up to 15 taught actions.

A save is one transaction, on disk before it is answered (write-ahead log, full synchronisation), so
a `kill -9` at any moment loses no acknowledged save and leaves no half-written one.
"""

import json
import logging
import math
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rote.errors import BadRequestError, StoreError, StoreLockedError
from rote.messages import MAX_ACTIONS, ActionEntry, Code, Keyframe, SaveAction
from rote.model.family import Build
from rote.model.registry import build_named
from rote.motion.track import Array
from rote.platform.paths import store_file
from rote.sim.body import STEP_S
from rote.sim.refusal import RefusalError
from rote.text import Act, Text

_SCHEMA = """
CREATE TABLE IF NOT EXISTS actions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    created_s INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    loop INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('frames', 'keyframes')),
    data BLOB NOT NULL,
    crc INTEGER NOT NULL,
    joints TEXT NOT NULL DEFAULT '',
    stated_frames INTEGER NOT NULL DEFAULT 0,
    stated_ms INTEGER NOT NULL DEFAULT 0
)
"""
# Stores of older versions lack these columns; their actions were taught on a G1 with 29 joints.
_ADDED_COLUMNS = {
    "joints": "TEXT NOT NULL DEFAULT ''",
    "stated_frames": "INTEGER NOT NULL DEFAULT 0",
    "stated_ms": "INTEGER NOT NULL DEFAULT 0",
}
_OLD_NAMES = build_named("g1-29").names
_APPLICATION_ID = 0x726F7465  # "rote" in ASCII: marks a database as a store
_log = logging.getLogger(__name__)
_KEYFRAME = struct.Struct("<HHf")  # joint, time in ms, position in rad
_MAGIC = b"SQLite format 3\0"  # the first bytes of every SQLite database
_OPEN_S, _LOCKED_S = 5.0, 1.0
"""Timeouts for a store that another program has locked: on opening, and later. The robot's event
loop is blocked meanwhile, and its clients treat 2.5 s of silence as a loss.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredAction:
    """One taught action: frames at full rate, or a few keyframes."""

    name: str
    created_s: int
    duration_ms: int
    loop: bool = False
    times_s: Array | None = None
    """Shape (n,), from 0; None for keyframes."""
    joints_rad: Array | None = None
    """Shape (n, joints)."""
    keyframes: tuple[Keyframe, ...] = ()
    names: tuple[str, ...] = _OLD_NAMES
    """The joints it was taught on, in the order of the columns of `joints_rad` and keyframes."""
    stated_frames: int = 0
    stated_ms: int = 0
    """What the client that saved the action stated about the recording; 0 if not stated."""

    @property
    def frames(self) -> int:
        """Number of frames or keyframes."""
        return len(self.keyframes) if self.times_s is None else int(self.times_s.size)


class Store:
    """Taught actions on disk; `:memory:` keeps them in memory only."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._entries: tuple[int, tuple[ActionEntry, ...]] | None = None
        self.is_kept = self.path != ":memory:"
        """Whether the actions are on disk; if not, they are lost when this store is closed."""
        try:
            if self.is_kept:
                _prepare_file(Path(self.path))
            self._db = sqlite3.connect(self.path, isolation_level=None, timeout=_OPEN_S)
            try:
                self._prepare_database()
                self._db.execute(f"PRAGMA busy_timeout = {round(_LOCKED_S * 1000)}")
            except BaseException:
                self._db.close()
                raise
        except (sqlite3.Error, OSError) as error:
            if _is_locked(error):
                raise self._make_locked_error() from error
            raise StoreError(
                f"the store {self.path} cannot be opened: {error}",
                Text(
                    "The file was not changed. Move it away, or use another store: {other}, or set "
                    "ROTE_HOME to another folder.",
                    other=Act.OTHER_STORE,
                ),
            ) from error

    def _prepare_database(self) -> None:
        """Create what the database lacks; raise `DatabaseError` if another program made it."""
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != _APPLICATION_ID:
            raise sqlite3.DatabaseError("it is the database of another program")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        if not tables:
            self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        self._db.execute(_SCHEMA)
        self._add_columns()

    def _add_columns(self) -> None:
        """Add the columns that a store of an older version lacks."""
        if not self._find_missing_columns():
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            for column in self._find_missing_columns():  # another process may have done it first
                self._db.execute(
                    f"ALTER TABLE actions ADD COLUMN {column} {_ADDED_COLUMNS[column]}"
                )
        finally:
            self._db.execute("COMMIT")

    def _find_missing_columns(self) -> list[str]:
        columns = self._db.execute("SELECT name FROM pragma_table_info('actions')").fetchall()
        return [column for column in _ADDED_COLUMNS if (column,) not in columns]

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def entries(self) -> tuple[ActionEntry, ...]:
        """Return the stored actions, in the order of their numbers."""
        # The list is read far more often than it changes. SQLite's data version shows when another
        # process has written; our own writes clear the cached list.
        version = self._read_data_version()
        if self._entries is None or self._entries[0] != version:
            rows = self._query("SELECT name, duration_ms FROM actions ORDER BY number")
            self._entries = (version, tuple(ActionEntry(name, ms) for name, ms in rows))
        return self._entries[1]

    def _read_data_version(self) -> int:
        if not self.is_kept:
            return 0
        ((version,),) = self._query("PRAGMA data_version")
        return int(version)

    def save(self, action: StoredAction, *, replace: bool = False) -> None:
        """Store an action durably, or raise and change nothing.

        With `replace` an action of that name is overwritten, as a G1's teaching service does.
        """
        kind, data = _encode_action(action)
        joints = json.dumps(action.names)
        row = (
            action.name,
            action.created_s,
            action.duration_ms,
            int(action.loop),
            kind,
            data,
            _compute_crc(data, joints),
            joints,
            action.stated_frames,
            action.stated_ms,
        )
        with self._transaction():
            if replace:
                self._query("DELETE FROM actions WHERE name = ?", action.name)
            elif self._has_action(action.name):
                raise RefusalError(Code.NAME_EXISTS)
            ((count,),) = self._query("SELECT count(*) FROM actions")
            if count >= MAX_ACTIONS:
                raise RefusalError(Code.STORE_FULL)
            self._query(
                "INSERT INTO actions (name, created_s, duration_ms, loop, kind, data, crc, joints, "
                "stated_frames, stated_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                *row,
            )

    def rename(self, old: str, new: str) -> None:
        """Rename an action; its number stays."""
        with self._transaction():
            if not self._has_action(old):
                raise RefusalError(Code.NO_SUCH_ACTION)
            if self._has_action(new):
                raise RefusalError(Code.NAME_EXISTS)
            self._query("UPDATE actions SET name = ? WHERE name = ?", new, old)

    def delete(self, name: str) -> None:
        """Delete an action permanently."""
        with self._transaction():
            if not self._has_action(name):
                raise RefusalError(Code.NO_SUCH_ACTION)
            self._query("DELETE FROM actions WHERE name = ?", name)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run the block as one transaction, on disk at the end."""
        self._query("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.rollback()
            raise
        self._entries = None
        self._query("COMMIT")

    def _has_action(self, name: str) -> bool:
        return bool(self._query("SELECT 1 FROM actions WHERE name = ?", name))

    def load(self, position: int) -> StoredAction | None:
        """Return the action at `position` in the list, counted from 1; None if there is none.

        Raises `StoreError` if the stored action is damaged.
        """
        if not 1 <= position <= MAX_ACTIONS:
            return None
        rows = self._query(
            "SELECT name, created_s, duration_ms, loop, kind, data, crc, joints, stated_frames, "
            "stated_ms FROM actions ORDER BY number LIMIT 1 OFFSET ?",
            position - 1,
        )
        if not rows:
            return None
        name, created_s, duration_ms, loop, kind, data, crc, joints, *stated = rows[0]
        if _compute_crc(data, joints) != crc:
            raise StoreError(f"the action {name!r} in {self.path} is damaged", "Teach it again.")
        names = tuple(json.loads(joints)) if joints else _OLD_NAMES
        times_s, joints_rad, keyframes = _decode_action(kind, data, len(names))
        return StoredAction(
            name=name,
            created_s=created_s,
            duration_ms=duration_ms,
            loop=bool(loop),
            times_s=times_s,
            joints_rad=joints_rad,
            keyframes=keyframes,
            names=names,
            stated_frames=stated[0],
            stated_ms=stated[1],
        )

    def _query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows; raise `StoreError` if it fails."""
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            if _is_locked(error):
                raise self._make_locked_error() from error
            raise StoreError(
                f"the store {self.path} failed: {error}", "Check the disk and its free space."
            ) from error

    def _make_locked_error(self) -> StoreLockedError:
        return StoreLockedError(
            f"the store {self.path} is locked by another program",
            Text(
                "End that program and try again, or use another store: {other}.",
                other=Act.OTHER_STORE,
            ),
        )


def _is_locked(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extended part
    return code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def check_store_path(path: str) -> str:
    """Check and return a store path given by the user.

    Raises `BadRequestError` if its folder is missing: a mistyped path must not create folders.
    """
    folder = Path(path).parent
    if path != ":memory:" and not folder.is_dir():
        raise BadRequestError(
            f"the store {path} cannot be created: the folder {folder} does not exist",
            f"Choose another file, or run: mkdir -p {folder}",
        )
    return path


def open_store(path: str, family: str) -> Store:
    """Open the store of an embedded robot.

    If the path is the family's default and cannot be written, log a warning and keep the actions in
    memory. A damaged or locked store raises `StoreError`.
    """
    return open_default_store(path) if path == str(store_file(family)) else Store(path)


def open_default_store(path: str | Path) -> Store:
    """Open a store at a default path; if it cannot be written, open one in memory instead."""
    try:
        return Store(path)
    except StoreError as error:
        if not _is_unwritable(error.__cause__):
            raise
    _log.warning(
        "%s cannot be written: the simulated robot keeps its actions in memory, until it ends. "
        "To keep them, set ROTE_HOME to a writable folder.",
        Path(path).parent,
    )
    return Store(":memory:")


def _is_unwritable(error: BaseException | None) -> bool:
    """Whether `error`, which prevented opening a store, means that its file cannot be written."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extended part
        return code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
    return isinstance(error, OSError)


def _prepare_file(path: Path) -> None:
    """Create the folder of a store; raise `DatabaseError` if the file is not an SQLite database."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # SQLite itself would accept a file of one byte as an empty database.
    if path.exists() and path.stat().st_size:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise sqlite3.DatabaseError("it is not a database")


def _compute_crc(data: bytes, joints: str) -> int:
    return zlib.crc32(joints.encode(), zlib.crc32(data))


def _encode_action(action: StoredAction) -> tuple[str, bytes]:
    """Return an action's kind and its data: a table of times and positions, or keyframes."""
    if action.times_s is None or action.joints_rad is None:
        packed = (_KEYFRAME.pack(k.joint, k.time_ms, k.value_rad) for k in action.keyframes)
        return "keyframes", b"".join(packed)
    table = np.column_stack([action.times_s, action.joints_rad]).astype("<f4")
    return "frames", table.tobytes()


def _decode_action(
    kind: str, data: bytes, joints: int
) -> tuple[Array | None, Array | None, tuple[Keyframe, ...]]:
    """Return the times, positions and keyframes of stored data; `joints` is their number."""
    if kind == "keyframes":
        rows = _KEYFRAME.iter_unpack(data)
        return None, None, tuple(Keyframe(joint=j, time_ms=t, value_rad=v) for j, t, v in rows)
    table = np.frombuffer(data, dtype="<f4").reshape(-1, joints + 1).astype(np.float64)
    return table[:, 0], table[:, 1:], ()


# ---- actions from recordings and keyframes -------------------------------------------------------


RECORD_EVERY = 5
"""Steps between two samples of a recording: 100 Hz."""
DURATION_TOLERANCE_S = 0.25
"""Tolerated difference between the stated and the recorded duration: the clocks differ."""


def action_from_recording(
    samples: Sequence[Array], command: SaveAction, build: Build
) -> StoredAction:
    """Return the whole recording as an action.

    The frame count and duration in `command` are stored, but do not cut or stretch it.
    """
    joints = np.array(samples)
    times_s = np.arange(len(joints), dtype=np.float64) * (STEP_S * RECORD_EVERY)
    return StoredAction(
        name=command.name,
        created_s=command.created_s,
        duration_ms=max(1, round(float(times_s[-1]) * 1000)),
        loop=command.loop,
        times_s=times_s,
        joints_rad=joints,
        names=build.names,
        stated_frames=command.frames,
        stated_ms=command.duration_ms,
    )


def describe_disagreement(action: StoredAction) -> str:
    """Describe what was stored if the client stated another length; "" if both agree."""
    count_agrees = action.stated_frames in (0, action.frames)
    difference_ms = abs(action.duration_ms - action.stated_ms)
    if count_agrees and difference_ms <= DURATION_TOLERANCE_S * 1000:
        return ""
    return f"kept all {action.frames} frames, {action.duration_ms / 1000:.2f} s"


def action_from_keyframes(command: SaveAction, build: Build) -> StoredAction:
    """Return the keyframes of a save command as an action."""
    return StoredAction(
        name=command.name,
        created_s=command.created_s,
        duration_ms=command.duration_ms,
        loop=command.loop,
        keyframes=command.keyframes,
        names=build.names,
    )


def check_keyframes(keyframes: tuple[Keyframe, ...], build: Build) -> None:
    """Raise `RefusalError` if a keyframe has an unknown joint or a value that is not finite."""
    for keyframe in keyframes:
        if not 0 <= keyframe.joint < len(build.joints) or not math.isfinite(keyframe.value_rad):
            raise RefusalError(Code.BAD_PAYLOAD)
