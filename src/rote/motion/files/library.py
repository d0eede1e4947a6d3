"""A folder of takes: names, tags, search, versions and a trash, all derived from the files.

    wave.mcap               the newest take of that name
    versions/wave/1.mcap    older versions; the file's name is the version's number
    trash/wave/...          what was deleted, until `purge`
    bow.mcap.part           a recording that is going on, or was cut off; or bow.npz.part

Only the files count: copy, move or remove them as you like. Their summaries are cached in
`.listed.json`, so that listing a thousand is quick; see `_FactCache`.
Without the `mcap` extra, takes are recorded and saved as `.npz`.
"""

import gc
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rote.errors import BadRequestError, MissingExtraError
from rote.messages import MAX_NAME_BYTES, name_problem
from rote.motion import files
from rote.motion.files import disk, mcap_file, mcap_records, npz_file
from rote.motion.files.take_writer import TakeWriter, recover, take_name, unfinished
from rote.motion.files.thumbnail import sketch
from rote.motion.track import Track
from rote.platform import atomic_file, system
from rote.platform.paths import takes_folder
from rote.text import suggest_names

_CACHE_NAME = ".listed.json"
_CACHE_VERSION = 1
_MAX_CACHE_BYTES = 1 << 26


class _FactCache:
    """The cached facts about the takes of a folder: for each file a summary and a sketch."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _CACHE_NAME
        self._prefix = f"{folder}{os.sep}"
        # By file: what identifies its content, and its facts.
        self._cached = self._read_cache()
        self._used: dict[str, tuple[list[int], dict[str, Any]]] = {}
        self._changed = False

    def _read_cache(self) -> dict[str, Any]:
        """Return the content of the cache file; nothing if it cannot be used."""
        with suppress(OSError, ValueError, RecursionError):
            if self._path.stat().st_size <= _MAX_CACHE_BYTES:
                document = json.loads(self._path.read_bytes())
                if isinstance(document, dict) and document.get("version") == _CACHE_VERSION:
                    files = document.get("files")
                    return files if isinstance(files, dict) else {}
        return {}

    def get(self, file: str) -> dict[str, Any]:
        """Return the cached facts about a file, which `add` may extend; none if it has changed."""
        try:
            status = os.stat(file)  # noqa: PTH116 - of a thousand files, in half the time
        except OSError:
            return {}
        identity = [status.st_size, status.st_mtime_ns, status.st_ino]
        key = file.removeprefix(self._prefix)
        cached = self._cached.get(key)
        is_valid = isinstance(cached, list) and len(cached) == 2 and isinstance(cached[1], dict)
        facts: dict[str, Any] = {}
        if cached is not None and is_valid and cached[0] == identity:
            facts = cached[1]
        self._used[key] = (identity, facts)
        return facts

    def add(self, facts: dict[str, Any], **more: object) -> None:
        """Add to the facts that `get` returned, so that `save` writes them."""
        facts.update(more)
        self._changed = True

    def save(self) -> None:
        """Write the cache if facts were added and the folder is writable."""
        if not self._changed:
            return
        known = {**self._cached, **self._used}
        existing = {
            key: facts
            for key, facts in known.items()
            if key in self._used or os.path.exists(self._prefix + key)  # noqa: PTH110 - for speed
        }
        part = self._path.with_name(f"{_CACHE_NAME}.{os.getpid()}.part")
        with suppress(OSError):
            document = {"version": _CACHE_VERSION, "files": existing}
            part.write_text(json.dumps(document), encoding="utf-8")
            part.replace(self._path)


__all__ = ["Library", "Entry", "Trashed", "library"]

MAX_SKETCHED = 100_000
"""The maximum number of samples read to sketch takes: about a second of work."""

MAX_FILE_NAME_BYTES = 230
"""The longest name of a take's file without its ending; file systems allow 255 bytes."""

_SUFFIXES = (".mcap", ".npz")
_VERSIONS, _TRASH = "versions", "trash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One take of the library."""

    name: str
    file: str
    """Its file, as text: to make `Path` objects of a hundred thousand files takes a second."""
    version: int
    """1 for a take that was saved once."""
    samples: int = 0
    duration_s: float = 0.0
    joints: int = 0
    variant: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()
    problem: str = ""
    """Why the file cannot be read; empty if it can."""

    @property
    def path(self) -> Path:
        """The path of its file."""
        return Path(self.file)


def library(folder: files.FilePath | None = None) -> "Library":
    """Return the library of this computer, or the library in another folder."""
    return Library(takes_folder() if folder is None else folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trashed:
    """One deleted take in the library's trash."""

    id: str
    """The name of its folder in the trash."""
    name: str
    """Its name before it was deleted, and after it is restored."""
    deleted_s: float
    """When it was deleted, in seconds since 1970."""
    versions: int
    """How many versions of it there are; 0 for a recording that was cut off."""
    entry: Entry | None
    """Its newest version; None for a recording that was cut off."""


class Library:
    """The takes in a folder, which is created when the first one is saved."""

    def __init__(self, folder: files.FilePath) -> None:
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"Library({str(self.folder)!r})"

    def list(self, search: str = "") -> tuple[Entry, ...]:
        """Return the takes, by name, that have each word of `search` in name, tags or source."""
        search_words = search.casefold().split()
        with _paused_garbage_collection():
            cache = _FactCache(self.folder)
            entries = [
                _find_entry(cache, name, version, file, search_words)
                for name, version, file in self._find_newest_takes()
            ]
        cache.save()
        return tuple(entry for entry in entries if entry is not None)

    def sketches(self, entries: Sequence[Entry]) -> dict[str, str]:
        """Return a line of bars for each take, by its name: the angle of the joint that moves most
        over time.

        Unreadable takes are left out, and so are takes that would exceed `MAX_SKETCHED` samples in
        all.
        """
        lines: dict[str, str] = {}
        cache = _FactCache(self.folder)
        samples_left = MAX_SKETCHED
        for entry in entries:
            if entry.problem or entry.samples > samples_left:
                continue
            samples_left -= entry.samples
            facts = cache.get(entry.file)
            with suppress(BadRequestError):
                # A cached sketch is missing at first; the file of facts may also be damaged.
                if not isinstance(facts.get("sketch"), str):
                    lines_by_joint = sketch(files.load(entry.path, any_joints=True), most=1)
                    # One line, or none for a take without joints.
                    cache.add(facts, sketch="".join(lines_by_joint.values()))
                lines[entry.name] = facts["sketch"]
        cache.save()
        return lines

    def load_deleted(self, name: str, version: int) -> Track | None:
        """Read a version of the most recently deleted take of this name; None if the trash has
        none.
        """
        check_existing_name(name)
        for trashed in self.trash():
            trash_folder = self.folder / _TRASH / trashed.id
            files_by_version = _find_version_files(trash_folder, trash_folder / _VERSIONS, name)
            if trashed.name == name and version in files_by_version:
                return files.load(files_by_version[version], any_joints=True)
        return None

    def load(self, name: str, version: int | None = None) -> Track:
        """Read a take; the newest version by default."""
        return files.load(self._require_version_file(name, version), any_joints=True)

    def has(self, name: str) -> bool:
        """Return whether there is a take of this name."""
        return name in self._list_take_names()

    def newest_file(self, name: str) -> Path:
        """Return the file of a take's newest version.

        Raises `BadRequestError`, which lists all names, if there is no take of this name.
        """
        return self._require_version_file(name, None)

    def versions(self, name: str) -> tuple[int, ...]:
        """Return the versions that can be loaded, the oldest first."""
        return tuple(sorted(self._get_version_files(name)))

    def save(self, track: Track, name: str, tags: Iterable[str] = ()) -> Entry:
        """Save a take; an existing one of that name becomes an older version."""
        self._check_new_name(name)
        suffix = _new_take_suffix()
        path = self.folder / f"{name}{suffix}"
        draft = self.folder / f".{name}.draft{suffix}"
        with disk.lock_folder(self.folder):
            try:
                _write_take(track, draft, _clean_tags(tags))
                self._move_to_versions(name)
                atomic_file.settle(draft, path)
            except OSError as error:
                raise disk.make_write_error(path, error, disk.HOME_REMEDY) from error
            finally:
                draft.unlink(missing_ok=True)
        return self._read_newest_entry(name)

    def record(
        self, name: str, joints: Sequence[str], *, variant: str = "", source: str = ""
    ) -> TakeWriter:
        """Begin a take that is on disk while it is recorded, and in the library when finished."""
        check_name(name)

        def replace_newest(part: Path, path: Path) -> None:
            with disk.lock_folder(self.folder):
                self._move_to_versions(name)
                atomic_file.settle(part, path)

        path = self.folder / f"{name}{_new_take_suffix()}"
        return TakeWriter(path, joints, variant=variant, source=source, settle=replace_newest)

    def tag(self, name: str, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Entry:
        """Add tags to a take's newest version, and remove others."""
        added, removed = _clean_tags(add), _clean_tags(remove)
        with self._lock_take(name) as path:
            old_tags = self._read_newest_entry(name).tags
            kept_tags = tuple(tag for tag in old_tags if tag not in removed)
            new_tags = tuple(dict.fromkeys(kept_tags + added))
            _write_take(files.load(path, any_joints=True), path, new_tags)
        return self._read_newest_entry(name)

    def rename(self, name: str, to: str) -> Entry:
        """Rename a take and all its versions."""
        check_name(to)
        with self._lock_take(name):
            if self._get_version_files(to):
                raise BadRequestError(f"the take {to!r} already exists", "Choose another name.")
            _move_if_exists(self.folder / _VERSIONS / name, self.folder / _VERSIONS / to)
            for suffix in _SUFFIXES:
                _move_if_exists(self.folder / f"{name}{suffix}", self.folder / f"{to}{suffix}")
        return self._read_newest_entry(to)

    def delete(self, name: str) -> Path:
        """Move a take and all its versions to the trash; return where they are."""
        with self._lock_take(name):
            trash_folder = self._choose_trash_folder(name)
            for suffix in _SUFFIXES:
                _move_if_exists(self.folder / f"{name}{suffix}", trash_folder / f"{name}{suffix}")
            _move_if_exists(self.folder / _VERSIONS / name, trash_folder / _VERSIONS)
            with suppress(OSError):
                os.utime(trash_folder)  # its time is the time of the deletion
        return trash_folder

    def delete_newest(self, name: str) -> Path:
        """Move the newest version of a take to the trash, so that the version before it, if any,
        becomes the newest. Return its folder in the trash.
        """
        with self._lock_take(name) as path:
            trash_folder = self._choose_trash_folder(name)
            _move_if_exists(path, trash_folder / f"{name}{path.suffix}")
            with suppress(OSError):
                os.utime(trash_folder)  # its time is the time of the deletion
        return trash_folder

    def deleted(self) -> tuple[str, ...]:
        """Return the names of the takes in the trash, each once."""
        return tuple(sorted({each.name for each in self.trash() if each.entry is not None}))

    def restore_newest(self, name: str, to: str | None = None) -> Entry:
        """Bring back the take of that name that was deleted last; see `restore`."""
        check_name(to or name)
        matches = [each for each in self.trash() if each.name == name and each.entry is not None]
        if not matches:
            raise BadRequestError(
                f"there is no take {name!r} in the trash, {self.folder / _TRASH}",
                f"There are {', '.join(self.deleted()) or 'none'}.",
            )
        return self.restore(matches[0].id, to)

    def trash(self) -> tuple[Trashed, ...]:
        """Return what was deleted, the newest first."""
        trashed = [
            _describe_trash_folder(trash_folder)
            for trash_folder in _list_folder(self.folder / _TRASH)
            if trash_folder.is_dir()
        ]
        return tuple(sorted(trashed, key=lambda each: (-each.deleted_s, each.id)))

    def restore(self, trash_id: str, to: str | None = None) -> Entry:
        """Bring a deleted take back with all its versions, under its own name or another one.

        Raises `BadRequestError` if a take of that name already exists.
        """
        with disk.lock_folder(self.folder):
            trash_folder = self._find_in_trash(trash_id)
            trashed = _describe_trash_folder(trash_folder)
            if trashed.entry is None:
                raise BadRequestError(
                    f"{trash_id!r} is a recording that was cut off", "It cannot be restored."
                )
            name = check_existing_name(trashed.name) if to is None else check_name(to)
            if self._get_version_files(name):
                raise BadRequestError(f"the take {name!r} already exists", "Choose another name.")
            _move_if_exists(trash_folder / _VERSIONS, self.folder / _VERSIONS / name)
            for path in _list_takes(trash_folder):
                _move_if_exists(path, self.folder / f"{name}{path.suffix}")
            with suppress(OSError):  # files that the user has put there stay
                trash_folder.rmdir()
        return self._read_newest_entry(name)

    def purge(self, trash_id: str) -> None:
        """Delete a take or a recording in the trash permanently."""
        with disk.lock_folder(self.folder):
            trash_folder = self._find_in_trash(trash_id)
            try:
                shutil.rmtree(trash_folder)
            except OSError as error:
                raise disk.make_write_error(trash_folder, error, disk.HOME_REMEDY) from error

    def _find_in_trash(self, trash_id: str) -> Path:
        """Return the folder in the trash with this id.

        It is never a path elsewhere, because the id is only compared with the names in the trash.
        """
        for trash_folder in _list_folder(self.folder / _TRASH):
            if (
                trash_folder.name == trash_id
                and trash_folder.is_dir()
                and not trash_folder.is_symlink()
            ):
                return trash_folder
        raise BadRequestError(f"there is no {trash_id!r} in the trash", "List the trash again.")

    def unfinished(self) -> tuple[Path, ...]:
        """Return the recordings that were cut off, probably by a crash."""
        return tuple(unfinished(self.folder))

    def recover(self, part: files.FilePath) -> Entry:
        """Save the samples of a recording that was cut off; the file itself goes to the trash."""
        part = Path(part)
        name = take_name(part)
        if part not in self.unfinished():
            raise BadRequestError(f"{part} is not an interrupted recording of this library")
        try:
            track = recover(part)
        except BadRequestError:
            self._move_to_trash(part, name)
            raise
        entry = self.save(track, name)
        self._move_to_trash(part, name)
        return entry

    def _move_to_trash(self, part: Path, name: str) -> None:
        with disk.lock_folder(self.folder):
            _move_if_exists(part, self._choose_trash_folder(name) / part.name)

    def _list_take_names(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self._find_newest_takes())

    def _find_newest_takes(self) -> tuple[tuple[str, int, str], ...]:
        """Return all names in order, each with its newest version and that one's file.

        The folder is scanned once, not once for each name.
        """
        current: dict[str, list[str]] = {}  # the file names of each take
        for file_name in _list_names(self.folder):
            stem, _, suffix = file_name.rpartition(".")
            if f".{suffix}" in _SUFFIXES and stem and stem[0] != ".":
                current.setdefault(stem, []).append(file_name)
        names_with_versions = {*_list_names(self.folder / _VERSIONS)}
        newest = []
        prefix = f"{self.folder}{os.sep}"
        for name in sorted(current.keys() | names_with_versions):
            file_names = current.get(name, [])
            if len(file_names) == 1 and name not in names_with_versions:  # most takes
                newest.append((name, 1, prefix + file_names[0]))
            elif files_by_version := self._get_version_files(name):
                version = max(files_by_version)
                newest.append((name, version, str(files_by_version[version])))
        return tuple(newest)

    def _get_version_files(self, name: str) -> dict[int, Path]:
        """Return the file of each version."""
        return _find_version_files(self.folder, self.folder / _VERSIONS / name, name)

    def _check_new_name(self, name: str) -> None:
        """Raise `BadRequestError` if a take cannot be saved under this name.

        The limits for the name of an existing take are wider than those for a new one.
        """
        check_existing_name(name)
        if not self._get_version_files(name):
            check_name(name)

    @contextmanager
    def _lock_take(self, name: str) -> Iterator[Path]:
        """Lock the folder during the block, and yield the newest file of a take.

        Raises `BadRequestError` if there is no such take.
        """
        self._require_version_file(name, None)  # raises before the lock creates the folder
        with disk.lock_folder(self.folder):
            yield self._require_version_file(name, None)

    def _require_version_file(self, name: str, version: int | None) -> Path:
        """Return the file of a version, the newest if it is None; raise if there is none."""
        check_existing_name(name)
        files_by_version = self._get_version_files(name)
        if not files_by_version:
            names = self._list_take_names()
            raise BadRequestError(
                f"there is no take {name!r} in {self.folder}",
                f"{suggest_names(name, names)} There are {', '.join(names) or 'none'}.".lstrip(),
            )
        if version is None:
            return files_by_version[max(files_by_version)]
        if version not in files_by_version:
            raise BadRequestError(
                f"the take {name!r} has no version {version}",
                f"It has {', '.join(map(str, sorted(files_by_version)))}.",
            )
        return files_by_version[version]

    def _move_to_versions(self, name: str) -> None:
        """Move the current file of a name to its versions."""
        for version, path in sorted(self._get_version_files(name).items()):
            if path.parent == self.folder:
                _move_if_exists(path, self.folder / _VERSIONS / name / f"{version}{path.suffix}")

    def _choose_trash_folder(self, name: str) -> Path:
        """Return an unused folder in the trash."""
        trash = self.folder / _TRASH
        trash_folder, number = trash / name, 1
        while trash_folder.exists():
            number += 1
            trash_folder = trash / f"{name} {number}"
        return trash_folder

    def _read_newest_entry(self, name: str) -> Entry:
        files_by_version = self._get_version_files(name)
        version = max(files_by_version)
        return _read_entry(name, version, files_by_version[version])


def _find_version_files(folder: Path, versions: Path, name: str) -> dict[int, Path]:
    """Return the file of each version of a take: the newest in `folder`, others in `versions`."""
    files_by_version = {
        int(path.stem): path
        for path in sorted(versions.glob("*"))
        if path.suffix in _SUFFIXES and path.stem.isdecimal()
    }
    # A crash between moving the old file and naming the new one leaves no current file. Then
    # the newest older version is the take, and nothing is lost.
    current = [folder / f"{name}{suffix}" for suffix in _SUFFIXES]
    existing = [path for path in current if path.is_file()]
    for path in sorted(existing, key=lambda path: path.stat().st_mtime_ns):
        files_by_version[max(files_by_version, default=0) + 1] = path
    return files_by_version


def write_new(track: Track, folder: Path, name: str) -> Path:
    """Write a take to a new file outside the library, with a number if its name is taken, and
    return its path.
    """
    check_name(name)
    suffix = _new_take_suffix()
    path, number = folder / f"{name}{suffix}", 1
    while path.exists():
        number += 1
        path = folder / f"{name} {number}{suffix}"
    _write_take(track, path, ())
    return path


def _new_take_suffix() -> str:
    """Return the ending of new takes: `.npz` only if the `mcap` extra is missing."""
    return ".mcap" if mcap_records.is_available() else ".npz"


def _list_takes(trash_folder: Path) -> list[Path]:
    """Return the takes directly in a folder of the trash."""
    return [path for path in _list_folder(trash_folder) if path.suffix in _SUFFIXES]


def _describe_trash_folder(trash_folder: Path) -> Trashed:
    """Return the contents of a folder of the trash, derived from its files."""
    current = sorted(_list_takes(trash_folder))
    older = [path for path in _list_folder(trash_folder / _VERSIONS) if path.suffix in _SUFFIXES]
    newest = current[0] if current else max(older, key=_version_number, default=None)
    name = trash_folder.name
    if current:
        name = current[0].stem
    elif newest is None and (paths := _list_folder(trash_folder)):
        name = take_name(paths[0])  # a recording that was cut off
    versions = len(current) + len(older)
    return Trashed(
        id=trash_folder.name,
        name=name,
        deleted_s=trash_folder.stat().st_mtime,
        versions=versions,
        entry=None if newest is None else _read_entry(name, versions, newest),
    )


def _version_number(path: Path) -> int:
    return int(path.stem) if path.stem.isdecimal() else 0


@contextmanager
def _paused_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector during the block.

    Listing a hundred thousand takes makes no reference cycles, and the collector's search for them
    would double the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _list_names(folder: Path) -> list[str]:
    """Return the names in a folder; none if it does not exist."""
    try:
        return os.listdir(folder)  # noqa: PTH208 - a hundred thousand paths take a second
    except OSError:
        return []


def _list_folder(folder: Path) -> tuple[Path, ...]:
    """Return the entries of a folder; none if it does not exist."""
    return tuple(folder / name for name in _list_names(folder))


def _find_entry(
    cache: _FactCache, name: str, version: int, file: str, search_words: Sequence[str]
) -> Entry | None:
    """Return a take's entry from the cache, or from its file if that has changed; None if the take
    does not have each of the words.
    """
    facts = cache.get(file)
    entry = None
    with suppress(KeyError, TypeError, ValueError):
        samples, duration_s, joints, variant, source, tags = facts["take"]
        if search_words and not _matches_search(name, str(source), map(str, tags), search_words):
            return None  # most takes do not match, so no entry is made for them
        entry = Entry(
            name=name,
            file=file,
            version=version,
            samples=int(samples),
            duration_s=float(duration_s),
            joints=int(joints),
            variant=str(variant),
            source=str(source),
            tags=tuple(map(str, tags)),
        )
    if entry is None:
        entry = _read_entry(name, version, Path(file))
        if not entry.problem:  # a missing extra may be installed later
            take = [entry.samples, entry.duration_s, entry.joints, entry.variant, entry.source]
            cache.add(facts, take=[*take, list(entry.tags)])
    return entry if _matches_search(name, entry.source, entry.tags, search_words) else None


def _read_entry(name: str, version: int, path: Path) -> Entry:
    try:
        file_format = mcap_file if path.suffix == ".mcap" else npz_file
        summary = file_format.read_summary(path)
    except (BadRequestError, MissingExtraError) as error:
        return Entry(name=name, file=str(path), version=version, problem=str(error))
    return Entry(
        name=name,
        file=str(path),
        version=version,
        samples=summary.samples,
        duration_s=summary.duration_s,
        joints=len(summary.metadata.names),
        variant=summary.metadata.variant,
        source=summary.metadata.source,
        tags=summary.metadata.tags,
    )


def _write_take(track: Track, path: Path, tags: tuple[str, ...]) -> None:
    files.check_writable(track, path)
    write = mcap_file.save_mcap if path.suffix == ".mcap" else npz_file.save_npz
    write(track, path, tags)


def _matches_search(
    name: str, source: str, tags: Iterable[str], search_words: Sequence[str]
) -> bool:
    text = " ".join((name, source, *tags)).casefold()
    return all(word in text for word in search_words)


def check_existing_name(name: str) -> str:
    """Return the name of an existing take, or raise `BadRequestError` if no file can have it.

    A file that was copied here may have a longer name than a new take.
    """
    return _check_name(name, MAX_FILE_NAME_BYTES)


def check_name(name: str) -> str:
    """Return the name of a new take, or raise `BadRequestError` if it is not allowed."""
    return _check_name(name, MAX_NAME_BYTES)


def _check_name(name: str, max_bytes: int) -> str:
    problem = name_problem(name, max_bytes)
    if not problem and (name[0] == "." or name in {_VERSIONS, _TRASH}):
        problem = "it cannot be the name of a file here"
    problem = problem or system.file_name_problem(name)
    if problem:
        raise BadRequestError(
            f"the name {name!r} cannot be used: {problem}",
            "Choose a short name of letters, digits, spaces, - and _.",
        )
    return name


def _clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    cleaned = tuple(dict.fromkeys(tag.strip().casefold() for tag in tags))
    if not all(cleaned):
        raise BadRequestError("a tag is empty", "Give each tag at least one character.")
    for tag in cleaned:
        if problem := name_problem(tag):
            raise BadRequestError(
                f"the tag {tag!r} cannot be used: {problem}",
                "Choose a short tag of letters, digits, spaces, - and _.",
            )
    return cleaned


def _move_if_exists(path: Path, to: Path) -> None:
    if not path.exists():
        return
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        path.rename(to)
    except OSError as error:
        raise disk.make_write_error(to, error, disk.HOME_REMEDY) from error
