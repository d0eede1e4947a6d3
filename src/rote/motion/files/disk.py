"""Disk access for all file formats: a file is complete or absent, and never too large."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rote.errors import BadRequestError
from rote.platform.atomic_file import appearing
from rote.platform.system import lock

MAX_BYTES = 256 * 2**20
"""The most that is read into memory at once: a larger file is read only in pieces, each smaller
than this. A minute of 29 joints at 500 Hz takes 17 MB as text."""
_SPARE_BYTES = 2**20
"""The space that must stay free on a disk that is suggested for a take."""
ANOTHER_FILE = "Name another file, in a folder that you may write to."
ANOTHER_HOME = (
    "Make that folder writable, or choose another: the takes of rote lie below ROTE_HOME."
)


@contextmanager
def write_atomically(path: Path, *, in_pieces: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces `path` when the block ends, and not before.

    Its folder is created. A file too large to be read again is refused; with `in_pieces` the caller
    calls `check_size` for each piece instead.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error
    with appearing(path, remedy=ANOTHER_FILE) as file:
        yield file
        if not in_pieces:
            check_size(path, file.tell())


def check_size(path: Path, size: int) -> None:
    """Refuse to write what is too large to be read again."""
    if size > MAX_BYTES:
        raise BadRequestError(
            f"{path} would have {size >> 20} MB, and {MAX_BYTES >> 20} are read at most",
            "Trim or resample the track, or save it as .mcap, which may have any length.",
        )


@contextmanager
def open_checked(path: Path, *, in_pieces: bytes | None = None) -> Iterator[BinaryIO]:
    """Open a file for reading; refuse one that is missing, not a file, or too large.

    A file that begins with the bytes `in_pieces` may have any size: it is read piece by piece.
    """
    try:
        # Opening a pipe would wait for its other end, so the kind is checked first.
        if path.exists() and not path.is_file():
            raise BadRequestError(f"{path} cannot be read: it is not a file")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            begins = b"" if in_pieces is None else file.read(len(in_pieces))
            file.seek(0)
            if size > MAX_BYTES and begins != in_pieces:
                raise BadRequestError(
                    f"{path} cannot be read: it has {size >> 20} MB, "
                    f"and at most {MAX_BYTES >> 20} MB are read",
                    "Cut it into pieces.",
                )
            yield file
    except OSError as error:
        raise BadRequestError(
            f"{path} cannot be read: {error.strerror}", "Check its name, and the folder you are in."
        ) from None


def contents(path: Path) -> bytes:
    """Return the whole content of a file, within the same limits."""
    with open_checked(path) as file:
        return file.read()


def lock_file(file: BinaryIO) -> bool:
    """Lock a file for this process until it is closed; return False if another one has it."""
    return lock(file)


def is_abandoned(path: Path) -> bool:
    """Return whether no process is writing this file any longer."""
    try:
        with path.open("rb") as file:
            return lock_file(file)
    except OSError:
        return False


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder during the block, waiting for other processes that change it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shared = (folder / ".lock").open("wb")
    except OSError as error:
        raise unwritable(folder, error, ANOTHER_HOME) from error
    with shared:
        lock(shared, wait=True)
        yield


def spare_folders(size: int) -> list[Path]:
    """Return other folders of this computer with space for a file of `size` bytes."""
    found = []
    for folder in dict.fromkeys((Path.home(), Path(tempfile.gettempdir()))):
        with suppress(OSError):
            room = shutil.disk_usage(folder).free > 2 * size + _SPARE_BYTES
            if room and os.access(folder, os.W_OK):
                found.append(folder)
    return found


def unwritable(path: Path, error: OSError, remedy: str = ANOTHER_FILE) -> BadRequestError:
    """Return the error for a file that the disk refuses."""
    return BadRequestError(f"{path} cannot be written: {error.strerror}", remedy)
