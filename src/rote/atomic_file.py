"""Files that appear only when they are complete, and in nobody's place unless that is wanted."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rote.errors import BadRequestError


def check_new(path: Path, overwrite: bool = False) -> None:
    """Refuse a file that could not be written, or that is there already; before any work."""
    _check_place(path)
    if path.exists() and not overwrite:
        raise BadRequestError(
            f"{path} is there already", "Choose another name, or add --overwrite."
        )


@contextmanager
def appearing(
    path: Path, *, private: bool = False, remedy: str = "Name another file."
) -> Iterator[BinaryIO]:
    """Give a file to write to: it takes the place of `path` when the block ends, and not before.

    What is `private` only its owner may read. A disk that does not take it raises `BadRequestError`
    with that `remedy`.
    """
    _check_place(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o666)
        with open(handle, "wb") as file:  # noqa: PTH123 - no path: a handle with its own rights
            yield file
            file.flush()
            os.fsync(file.fileno())
        settle(part, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadRequestError(f"{path} cannot be written: {reason}", remedy) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def settle(part: Path, path: Path) -> None:
    """Give a finished file its name, for good: the name too is on the disk afterwards."""
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise BadRequestError(f"{path} is a folder", "Name a file in it.")
    if path.exists() and not path.is_file():
        raise BadRequestError(f"{path} is no ordinary file", "Name another file.")
    if not path.parent.is_dir():
        remedy = f"Name another file, or run: mkdir -p {path.parent}"
        raise BadRequestError(f"{path} cannot be written: there is no folder {path.parent}", remedy)
