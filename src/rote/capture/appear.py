"""Files that appear only when they are complete."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rote.errors import BadRequestError


@contextmanager
def appearing(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to: it takes the place of `path` when the block ends, and not before."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadRequestError(
            f"{path} cannot be written: {reason}", "Name another file."
        ) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
