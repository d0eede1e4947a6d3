"""Files that appear only when they are complete, and never replace another file unasked."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rote.errors import BadRequestError
from rote.platform.system import sync_folder


def check_new(path: Path, overwrite: bool = False) -> None:
    """Raise `BadRequestError` before any work is done if `path` exists or cannot be written.

    With `overwrite` an existing file is accepted.
    """
    _check_path(path)
    if path.exists() and not overwrite:
        raise BadRequestError(f"{path} already exists", "Choose another name, or add --overwrite.")


@contextmanager
def appearing(
    path: Path, *, private: bool = False, remedy: str = "Name another file."
) -> Iterator[BinaryIO]:
    """Yield a temporary file to write to; it replaces `path` when the block ends without an error.

    Only its owner can read a `private` file. Raises `BadRequestError` with `remedy` if the file
    cannot be written.
    """
    _check_path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    permissions = 0o600 if private else 0o666
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, permissions)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - not a path
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
    """Rename a finished file from `part` to `path`, and sync the folder so that the name survives a
    crash.
    """
    part.replace(path)
    sync_folder(path.parent)


def _check_path(path: Path) -> None:
    if path.is_dir():
        raise BadRequestError(f"{path} is a folder", "Name a file in it.")
    if path.exists() and not path.is_file():
        raise BadRequestError(f"{path} is not a regular file", "Name another file.")
    if not path.parent.is_dir():
        remedy = f"Name another file, or run: mkdir -p {path.parent}"
        raise BadRequestError(f"{path} cannot be written: there is no folder {path.parent}", remedy)
