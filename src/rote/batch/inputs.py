"""The motions of a batch: files, folders, patterns, lists of files, and takes."""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rote.errors import BadRequestError
from rote.motion.files.exchange import ENDINGS as EXCHANGE_ENDINGS
from rote.motion.files.library import Library
from rote.motion.formats import FORMATS

ENDINGS = frozenset((*FORMATS, *EXCHANGE_ENDINGS))
"""The endings of files that are used from a folder."""
_LIST_ENDING = ".txt"


class Input(NamedTuple):
    """One motion of a batch."""

    path: Path
    name: str
    """Its name in the results. An output gets this name in the output folder."""


class Inputs:
    """The motions of a batch, each once.

    Only the name and the path of each are in memory, as text. Raises `BadRequestError` if two files
    have the same name.
    """

    def __init__(self, inputs: Iterable[Input]) -> None:
        self._paths: dict[str, str] = {}
        for path, name in inputs:
            other_path = self._paths.setdefault(name, str(path))
            if other_path != str(path):
                raise BadRequestError(
                    f"{path} and {other_path} would have the same name in the results: {name}",
                    "Run the batch from another folder.",
                )

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[Input]:
        return (Input(Path(path), name) for name, path in self._paths.items())


def find_inputs(sources: Sequence[str], *, excluded: Path | None = None) -> Inputs:
    """Return the motions of all sources.

    A source is a file, a folder with all its subfolders, a pattern like `data/**/*.npz`, or a text
    file (`.txt`) with a path in each line. Hidden files and links to folders are left out, and so
    is the `excluded` folder. A subfolder that cannot be read counts as a motion, so that it gets a
    failed row. Raises `BadRequestError` if a source does not exist or cannot be read.
    """
    excluded_path = None if excluded is None else excluded.resolve()
    for source in sources:
        if not Path(source).exists() and not glob.has_magic(source):
            raise BadRequestError(
                f"{source} does not exist",
                f"Name a file, a folder, a pattern in quotes, or a {_LIST_ENDING} file that lists "
                "files.",
            )
        if excluded_path is not None and Path(source).resolve().is_relative_to(excluded_path):
            raise BadRequestError(f"{source} is in the output folder", "Name another source.")
    return Inputs(
        _make_input(path) for source in sources for path in _find_files(source, excluded_path)
    )


def find_takes(library: Library, names: Sequence[str]) -> Inputs:
    """Return the takes of these names, or all; raises `BadRequestError` for an unknown name."""
    if names:
        return Inputs(Input(library.newest_file(name), name) for name in names)
    return Inputs(Input(entry.path, entry.name) for entry in library.list())


def _find_files(source: str, excluded: Path | None) -> Iterator[Path]:
    """Yield the files of one source, as `find_inputs` describes it."""
    path = Path(source)
    if path.is_dir():
        yield from _walk_folder(path, excluded, os.scandir(path))
    elif path.suffix.lower() == _LIST_ENDING and path.is_file():
        yield from _read_list(path)
    elif path.exists():
        yield path
    else:
        yield from _match_pattern(path, excluded)


def _match_pattern(pattern: Path, excluded: Path | None) -> Iterator[Path]:
    """Yield the motion files that a pattern describes, sorted; hidden ones only if it names them.

    `**` does not follow links to folders, which could form a cycle.
    """
    # `glob` accepts only relative patterns, so an absolute one is searched from its root.
    start = Path(pattern.anchor or ".")
    try:
        matches = sorted(start.glob(str(pattern.relative_to(pattern.anchor))))
    except ValueError as error:
        raise BadRequestError(f"{pattern} is not a pattern: {error}") from None
    for path in matches:
        is_motion = path.suffix.lower() in ENDINGS and path.is_file()
        is_hidden = any(part.startswith(".") and part not in pattern.parts for part in path.parts)
        is_excluded = excluded is not None and path.resolve().is_relative_to(excluded)
        if is_motion and not is_hidden and not is_excluded:
            yield path


def _walk_folder(
    folder: Path, excluded: Path | None, entries: "Iterator[os.DirEntry[str]]"
) -> Iterator[Path]:
    """Yield the motion files of a folder and its subfolders, sorted in each folder.

    `entries` are those of the folder: the caller opens it, and handles one that cannot be read.
    """
    for entry in sorted(entries, key=lambda entry: entry.name):
        if entry.name.startswith("."):
            continue
        path = folder / entry.name
        if entry.is_dir(follow_symlinks=False):
            if path.resolve() != excluded:
                try:
                    subfolder_entries = os.scandir(path)
                except OSError:
                    yield path  # reading it as a motion fails too, which gives it a failed row
                else:
                    yield from _walk_folder(path, excluded, subfolder_entries)
        elif path.suffix.lower() in ENDINGS and not path.is_dir():
            yield path


def _read_list(path: Path) -> Iterator[Path]:
    """Yield the paths in a text file, relative to its folder; `#` begins a comment."""
    # A byte order mark is skipped. Bytes that are not UTF-8 stay as they are: file names may
    # contain them.
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as lines:
        for line in lines:
            if (name := line.strip()) and not name.startswith("#"):
                yield path.parent / name


def _make_input(path: Path) -> Input:
    """Name a file by its path from the working folder, or from the root of the file system."""
    absolute = Path(os.path.normpath(Path.cwd() / path))
    start = Path.cwd() if absolute.is_relative_to(Path.cwd()) else absolute.anchor
    return Input(absolute, absolute.relative_to(start).as_posix())
