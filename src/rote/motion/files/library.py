"""A folder of takes: names, tags, search, versions and a trash, all derived from the files.

    wave.mcap               the newest take of that name
    versions/wave/1.mcap    older versions; the file's name is the version's number
    trash/wave/...          what was deleted, until `purge`
    bow.mcap.part           a recording that is going on, or was cut off; or bow.npz.part

Only the files count: copy, move or remove them as you like. Their summaries are cached in
`.listed.json`, so that listing a thousand is quick; see `listing`.
Without the `mcap` extra, takes are recorded and saved as `.npz`.
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rote.errors import BadRequestError, MissingExtraError
from rote.messages import MAX_NAME_BYTES, name_problem
from rote.motion import files
from rote.motion.files import disk, mcap_file, mcap_records, npz_file
from rote.motion.files.listing import Listing
from rote.motion.files.take_writer import TakeWriter, recover, take_name, unfinished
from rote.motion.files.thumbnail import sketch
from rote.motion.track import Track
from rote.platform import atomic_file, system
from rote.platform.paths import takes_folder

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
    path: Path
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


def library(folder: files.FilePath | None = None) -> "Library":
    """Return the takes of this computer, or those in another folder."""
    return Library(takes_folder() if folder is None else folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trashed:
    """One deleted take in the library's trash."""

    id: str
    """The folder below the trash that has it."""
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
        """Return the takes by name: those with each word of `search` in name, tags or source."""
        search_words = search.casefold().split()
        listing = Listing(self.folder)
        entries = [_list_entry(listing, *found) for found in self._newest_takes()]
        listing.save()
        return tuple(entry for entry in entries if _matches(entry, search_words))

    def sketches(self, entries: Sequence[Entry]) -> dict[str, str]:
        """Return a line of bars for each take, by its name: the course of the joint that moves
        most.

        Unreadable takes have none, nor have those after `MAX_SKETCHED` samples in all.
        """
        lines: dict[str, str] = {}
        listing = Listing(self.folder)
        left = MAX_SKETCHED
        for entry in entries:
            if entry.problem or entry.samples > left:
                continue
            left -= entry.samples
            facts = listing.get(entry.path)
            with suppress(BadRequestError):
                if not isinstance(facts.get("sketch"), str):
                    drawn = sketch(files.load(entry.path, any_joints=True))
                    listing.add(facts, sketch="".join(drawn.values()))
                lines[entry.name] = facts["sketch"]
        listing.save()
        return lines

    def load_deleted(self, name: str, version: int) -> Track | None:
        """Read a version of the most recently deleted take of this name; None if the trash has
        none.
        """
        check_existing_name(name)
        for trashed in self.trash():
            trash_folder = self.folder / _TRASH / trashed.id
            found = _files_in(trash_folder, trash_folder / _VERSIONS, name)
            if trashed.name == name and version in found:
                return files.load(found[version], any_joints=True)
        return None

    def load(self, name: str, version: int | None = None) -> Track:
        """Read a take; the newest version by default."""
        return files.load(self._version_file(name, version), any_joints=True)

    def has(self, name: str) -> bool:
        """Return whether there is a take of this name."""
        return name in self._take_names()

    def versions(self, name: str) -> tuple[int, ...]:
        """Return the versions that can be loaded, the oldest first."""
        return tuple(sorted(self._version_files(name)))

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
                raise disk.unwritable(path, error, disk.ANOTHER_HOME) from error
            finally:
                draft.unlink(missing_ok=True)
        return self._newest_entry(name)

    def record(
        self, name: str, joints: Sequence[str], *, variant: str = "", source: str = ""
    ) -> TakeWriter:
        """Begin a take that is on disk while it is recorded, and in the library when finished."""
        check_name(name)

        def settle(part: Path, path: Path) -> None:
            with disk.lock_folder(self.folder):
                self._move_to_versions(name)
                atomic_file.settle(part, path)

        path = self.folder / f"{name}{_new_take_suffix()}"
        return TakeWriter(path, joints, variant=variant, source=source, settle=settle)

    def tag(self, name: str, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Entry:
        """Add tags to a take's newest version, and remove others."""
        added, removed = _clean_tags(add), _clean_tags(remove)
        self._version_file(name, None)  # before the lock, which makes the folder
        with disk.lock_folder(self.folder):
            path = self._version_file(name, None)
            kept = tuple(tag for tag in self._newest_entry(name).tags if tag not in removed)
            _write_take(files.load(path, any_joints=True), path, tuple(dict.fromkeys(kept + added)))
        return self._newest_entry(name)

    def rename(self, name: str, to: str) -> Entry:
        """Rename a take and all its versions."""
        check_name(to)
        self._version_file(name, None)
        with disk.lock_folder(self.folder):
            self._version_file(name, None)
            if self._version_files(to):
                raise BadRequestError(f"the take {to!r} already exists", "Choose another name.")
            _move(self.folder / _VERSIONS / name, self.folder / _VERSIONS / to)
            for suffix in _SUFFIXES:
                _move(self.folder / f"{name}{suffix}", self.folder / f"{to}{suffix}")
        return self._newest_entry(to)

    def delete(self, name: str) -> Path:
        """Move a take and all its versions to the trash; return where they are."""
        self._version_file(name, None)
        with disk.lock_folder(self.folder):
            self._version_file(name, None)
            trash_folder = self._free_trash_folder(name)
            for suffix in _SUFFIXES:
                _move(self.folder / f"{name}{suffix}", trash_folder / f"{name}{suffix}")
            _move(self.folder / _VERSIONS / name, trash_folder / _VERSIONS)
            with suppress(OSError):
                os.utime(trash_folder)  # when it was deleted
        return trash_folder

    def delete_newest(self, name: str) -> Path:
        """Move the newest version of a take to the trash; the one before it, if any, is the take
        then. Return where it is.
        """
        self._version_file(name, None)
        with disk.lock_folder(self.folder):
            path, trash_folder = self._version_file(name, None), self._free_trash_folder(name)
            _move(path, trash_folder / f"{name}{path.suffix}")
            with suppress(OSError):
                os.utime(trash_folder)  # when it was deleted
        return trash_folder

    def deleted(self) -> tuple[str, ...]:
        """Return the names of the takes in the trash, each once."""
        return tuple(sorted({each.name for each in self.trash() if each.entry is not None}))

    def restore_newest(self, name: str, to: str | None = None) -> Entry:
        """Bring back the take of that name that was deleted last; see `restore`."""
        check_name(to or name)
        found = [each for each in self.trash() if each.name == name and each.entry is not None]
        if not found:
            raise BadRequestError(
                f"there is no take {name!r} in the trash, {self.folder / _TRASH}",
                f"There are {', '.join(self.deleted()) or 'none'}.",
            )
        return self.restore(found[0].id, to)

    def trash(self) -> tuple[Trashed, ...]:
        """Return what was deleted, the newest first."""
        found = [
            _read_trashed(trash_folder)
            for trash_folder in _list_folder(self.folder / _TRASH)
            if trash_folder.is_dir()
        ]
        return tuple(sorted(found, key=lambda each: (-each.deleted_s, each.id)))

    def restore(self, grave_id: str, to: str | None = None) -> Entry:
        """Bring a deleted take back with all its versions, under its own name or another one.

        Raises `BadRequestError` if a take of that name already exists.
        """
        with disk.lock_folder(self.folder):
            trash_folder = self._in_trash(grave_id)
            trashed = _read_trashed(trash_folder)
            if trashed.entry is None:
                raise BadRequestError(
                    f"{grave_id!r} is a recording that was cut off", "It cannot be restored."
                )
            name = check_existing_name(trashed.name) if to is None else check_name(to)
            if self._version_files(name):
                raise BadRequestError(f"the take {name!r} already exists", "Choose another name.")
            _move(trash_folder / _VERSIONS, self.folder / _VERSIONS / name)
            for path in _current_in(trash_folder):
                _move(path, self.folder / f"{name}{path.suffix}")
            with suppress(OSError):  # files that the user has put there stay
                trash_folder.rmdir()
        return self._newest_entry(name)

    def purge(self, grave_id: str) -> None:
        """Delete something from the trash for good."""
        with disk.lock_folder(self.folder):
            trash_folder = self._in_trash(grave_id)
            try:
                shutil.rmtree(trash_folder)
            except OSError as error:
                raise disk.unwritable(trash_folder, error, disk.ANOTHER_HOME) from error

    def _in_trash(self, grave_id: str) -> Path:
        """Return the folder of something deleted; only direct entries of the trash have an id."""
        for trash_folder in _list_folder(self.folder / _TRASH):
            if (
                trash_folder.name == grave_id
                and trash_folder.is_dir()
                and not trash_folder.is_symlink()
            ):
                return trash_folder
        raise BadRequestError(f"there is no {grave_id!r} in the trash", "Look at its list again.")

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
            _move(part, self._free_trash_folder(name) / part.name)

    def _take_names(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self._newest_takes())

    def _newest_takes(self) -> tuple[tuple[str, int, Path], ...]:
        """Return all names in order, each with its newest version and that one's file.

        The folder is scanned once, not once for each name.
        """
        current: dict[str, list[Path]] = {}
        for path in _list_folder(self.folder):
            if path.suffix in _SUFFIXES and not path.name.startswith("."):
                current.setdefault(path.stem, []).append(path)
        kept = {path.name for path in _list_folder(self.folder / _VERSIONS)}
        found = []
        for name in sorted(current.keys() | kept):
            paths = current.get(name, [])
            if len(paths) == 1 and name not in kept:
                found.append((name, 1, paths[0]))
            elif files_by_version := self._version_files(name):
                version = max(files_by_version)
                found.append((name, version, files_by_version[version]))
        return tuple(found)

    def _version_files(self, name: str) -> dict[int, Path]:
        """Return the file of each version."""
        return _files_in(self.folder, self.folder / _VERSIONS / name, name)

    def _check_new_name(self, name: str) -> None:
        """Raise `BadRequestError` if no new take can have this name; one that has it keeps it."""
        check_existing_name(name)
        if not self._version_files(name):
            check_name(name)

    def _version_file(self, name: str, version: int | None) -> Path:
        check_existing_name(name)
        found = self._version_files(name)
        if not found:
            raise BadRequestError(
                f"there is no take {name!r} in {self.folder}",
                f"There are {', '.join(self._take_names()) or 'none'}.",
            )
        if version is None:
            return found[max(found)]
        if version not in found:
            raise BadRequestError(
                f"the take {name!r} has no version {version}",
                f"It has {', '.join(map(str, sorted(found)))}.",
            )
        return found[version]

    def _move_to_versions(self, name: str) -> None:
        """Move the current file of a name to its versions."""
        for version, path in sorted(self._version_files(name).items()):
            if path.parent == self.folder:
                _move(path, self.folder / _VERSIONS / name / f"{version}{path.suffix}")

    def _free_trash_folder(self, name: str) -> Path:
        """Return an unused folder in the trash."""
        trash = self.folder / _TRASH
        number = 1
        while (trash_folder := trash / (name if number == 1 else f"{name} {number}")).exists():
            number += 1
        return trash_folder

    def _newest_entry(self, name: str) -> Entry:
        found = self._version_files(name)
        version = max(found)
        return _read_entry(name, version, found[version])


def _files_in(folder: Path, kept: Path, name: str) -> dict[int, Path]:
    """Return the file of each version of a take: the current one in `folder`, others in `kept`."""
    files_by_version = {
        int(path.stem): path
        for path in sorted(kept.glob("*"))
        if path.suffix in _SUFFIXES and path.stem.isdecimal()
    }
    # A crash between moving the old file and naming the new one leaves no current file. Then
    # the newest older version is the take, and nothing is lost.
    current = [folder / f"{name}{suffix}" for suffix in _SUFFIXES]
    there = [path for path in current if path.is_file()]
    for path in sorted(there, key=lambda path: path.stat().st_mtime_ns):
        files_by_version[max(files_by_version, default=0) + 1] = path
    return files_by_version


def write_new(track: Track, folder: Path, name: str) -> Path:
    """Write a take to a new file outside the library, with a number if its name is taken, and
    return its path.
    """
    check_name(name)
    number = 1
    while (
        path := folder / f"{name}{'' if number == 1 else f' {number}'}{_new_take_suffix()}"
    ).exists():
        number += 1
    _write_take(track, path, ())
    return path


def _new_take_suffix() -> str:
    """Return the ending of new takes."""
    return _SUFFIXES[0 if mcap_records.available() else 1]


def _current_in(trash_folder: Path) -> list[Path]:
    """Return the takes directly in a folder of the trash."""
    return [path for path in _list_folder(trash_folder) if path.suffix in _SUFFIXES]


def _read_trashed(trash_folder: Path) -> Trashed:
    """Return the contents of a folder of the trash, derived from its files."""
    current = sorted(_current_in(trash_folder))
    older = [path for path in _list_folder(trash_folder / _VERSIONS) if path.suffix in _SUFFIXES]
    newest = current[0] if current else max(older, key=_version_number, default=None)
    if current:
        name = current[0].stem
    else:  # a take without a current file, or a recording that was cut off
        cut = [take_name(path) for path in _list_folder(trash_folder)]
        name = trash_folder.name if newest is not None or not cut else cut[0]
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


def _list_folder(folder: Path) -> tuple[Path, ...]:
    """Return the entries of a folder; none if it does not exist."""
    try:
        with os.scandir(folder) as inside:
            return tuple(folder / each.name for each in inside)
    except OSError:
        return ()


def _list_entry(listing: Listing, name: str, version: int, path: Path) -> Entry:
    """Return a take's entry from the listing, or from its file if that has changed."""
    facts = listing.get(path)
    with suppress(KeyError, TypeError, ValueError):
        return _entry_from_listing(name, version, path, facts["take"])
    entry = _read_entry(name, version, path)
    if not entry.problem:  # an extra that is missing may be there tomorrow
        take = [entry.samples, entry.duration_s, entry.joints, entry.variant, entry.source]
        listing.add(facts, take=[*take, list(entry.tags)])
    return entry


def _entry_from_listing(name: str, version: int, path: Path, take: list[Any]) -> Entry:
    """Return an entry from the listing; raises for anything that rote did not write."""
    samples, duration_s, joints, variant, source, tags = take
    return Entry(
        name=name,
        path=path,
        version=version,
        samples=int(samples),
        duration_s=float(duration_s),
        joints=int(joints),
        variant=str(variant),
        source=str(source),
        tags=tuple(str(tag) for tag in tags),
    )


def _read_entry(name: str, version: int, path: Path) -> Entry:
    try:
        summary = (mcap_file if path.suffix == ".mcap" else npz_file).summary(path)
    except (BadRequestError, MissingExtraError) as error:
        return Entry(name=name, path=path, version=version, problem=str(error))
    return Entry(
        name=name,
        path=path,
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


def _matches(entry: Entry, search_words: Sequence[str]) -> bool:
    text = " ".join((entry.name, entry.source, *entry.tags)).casefold()
    return all(word in text for word in search_words)


def check_existing_name(name: str) -> str:
    """Return the name of a take that may be here, or raise `BadRequestError` if no file can have
    it. A file that was copied here may have a longer name than a new take.
    """
    return _check_name(name, MAX_FILE_NAME_BYTES)


def check_name(name: str) -> str:
    """Return the name of a new take, or raise `BadRequestError` if it cannot have it."""
    return _check_name(name, MAX_NAME_BYTES)


def _check_name(name: str, most_bytes: int) -> str:
    problem = name_problem(name, most_bytes)
    if not problem and (name[0] == "." or name in {_VERSIONS, _TRASH}):
        problem = "it cannot be the name of a file here"
    problem = problem or system.file_name_problem(name)
    if problem:
        raise BadRequestError(
            f"the name {name!r} cannot be used: {problem}",
            "Choose a short one of letters, digits, spaces, - and _.",
        )
    return name


def _clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    cleaned = tuple(dict.fromkeys(tag.strip().casefold() for tag in tags))
    if not all(cleaned):
        raise BadRequestError("a tag is empty", "Give each tag a word.")
    for tag in cleaned:
        if problem := name_problem(tag):
            raise BadRequestError(
                f"the tag {tag!r} cannot be used: {problem}", "Choose a short one, like a name."
            )
    return cleaned


def _move(path: Path, to: Path) -> None:
    if not path.exists():
        return
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        path.rename(to)
    except OSError as error:
        raise disk.unwritable(to, error, disk.ANOTHER_HOME) from error
