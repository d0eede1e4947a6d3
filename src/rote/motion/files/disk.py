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
FILE_REMEDY = "Name another file, in a folder that you may write to."
HOME_REMEDY = (
    "Make that folder writable, or choose another one: rote keeps its takes in the folder "
    "ROTE_HOME."
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
        raise make_write_error(path, error) from error
    with appearing(path, remedy=FILE_REMEDY) as file:
        yield file
        if not in_pieces:
            check_size(path, file.tell())


def check_size(path: Path, size: int) -> None:
    """Raise `BadRequestError` for a file of `size` bytes that is too large to be read again."""
    if size > MAX_BYTES:
        raise BadRequestError(
            f"{path} would have {size >> 20} MB; at most {MAX_BYTES >> 20} MB can be read again",
            "Trim or resample the track, or save it as .mcap, which may have any length.",
        )


@contextmanager
def open_checked(path: Path, *, any_size_magic: bytes | None = None) -> Iterator[BinaryIO]:
    """Open a file for reading; refuse one that is missing, not a file, or too large.

    A file that begins with the bytes `any_size_magic` may have any size, because its format is read
    piece by piece.
    """
    try:
        # Opening a pipe would wait for its other end, so the kind is checked first.
        if path.exists() and not path.is_file():
            raise BadRequestError(f"{path} cannot be read: it is not a file")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            beginning = b"" if any_size_magic is None else file.read(len(any_size_magic))
            file.seek(0)
            if size > MAX_BYTES and beginning != any_size_magic:
                raise BadRequestError(
                    f"{path} cannot be read: it has {size >> 20} MB, but at most "
                    f"{MAX_BYTES >> 20} MB can be read",
                    "Cut it into pieces.",
                )
            yield file
    except OSError as error:
        raise BadRequestError(
            f"{path} cannot be read: {error.strerror}", "Check its name, and the folder you are in."
        ) from None


def read_contents(path: Path) -> bytes:
    """Return the whole content of a file; refuse what `open_checked` refuses."""
    with open_checked(path) as file:
        return file.read()


def is_abandoned(path: Path) -> bool:
    """Return whether no process writes this file any longer: its writer would hold a lock on it."""
    try:
        with path.open("rb") as file:
            return lock(file)
    except OSError:
        return False


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder during the block, waiting for other processes that change it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock_handle = (folder / ".lock").open("wb")
    except OSError as error:
        raise make_write_error(folder, error, HOME_REMEDY) from error
    with lock_handle:
        lock(lock_handle, wait=True)
        yield


def find_spare_folders(size: int) -> list[Path]:
    """Return writable folders of this computer with space for twice `size` bytes."""
    folders = []
    for folder in dict.fromkeys((Path.home(), Path(tempfile.gettempdir()))):
        with suppress(OSError):
            has_space = shutil.disk_usage(folder).free > 2 * size + _SPARE_BYTES
            if has_space and os.access(folder, os.W_OK):
                folders.append(folder)
    return folders


def make_write_error(path: Path, error: OSError, remedy: str = FILE_REMEDY) -> BadRequestError:
    """Return the error for a file that cannot be written."""
    return BadRequestError(f"{path} cannot be written: {error.strerror}", remedy)
