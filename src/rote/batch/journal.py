"""The results file of a batch: a JSON line for the task, then one for each motion that is done."""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from rote.batch.inputs import Input
from rote.batch.task import Row, RowStatus, Task, hash_file, make_disk_error
from rote.errors import BadRequestError
from rote.platform import system

RESULTS_NAME = "results.jsonl"
_VERSION = 1


class Journal:
    """The results file in a folder, locked while it is open.

    Only the newest row of each motion counts. In memory are a name, a hash and an offset for each.
    """

    def __init__(self, folder: Path, task: Task, *, retry_failed: bool = False) -> None:
        self._retry_failed = retry_failed
        self.path = folder / RESULTS_NAME
        self._header = {"batch": _VERSION, "task": task.as_json()}
        self._rows: dict[str, tuple[str, int]] = {}
        """By name: the hash of the content, and the offset of the newest row."""
        _check_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # Unbuffered, so that a failed write leaves nothing to be written later.
        self._file = self.path.open("a+b", buffering=0)
        try:
            if not system.lock(self._file):
                raise BadRequestError(
                    f"another batch is writing to {folder}",
                    "Wait until it has ended, or name another folder.",
                )
            self._load_rows()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.fsync(self._file.fileno())
        self._file.close()

    def is_done(self, item: Input) -> bool:
        """Return whether a motion has a row and its file has not changed since."""
        if item.name not in self._rows:
            return False
        digest, _ = self._rows[item.name]
        return digest == hash_file(item.path)

    def append(self, row: Row) -> None:
        """Write the row of a motion; it is on disk even if this process is killed."""
        self._rows[row["name"]] = (row["sha256"], self._write(row))

    def rows(self) -> Iterator[Row]:
        """Yield the newest row of each motion."""
        with self.path.open("rb") as file:
            for _, offset in list(self._rows.values()):
                file.seek(offset)
                yield json.loads(file.readline())

    def _write(self, document: Row) -> int:
        """Write a line, completely or not at all; return its offset."""
        offset = self._file.seek(0, os.SEEK_END)
        try:
            data = json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # a name of a file that is not UTF-8
            data = json.dumps(document).encode()
        try:
            # On a disk that gets full, an unbuffered write may end early without an error.
            if self._file.write(data + b"\n") < len(data) + 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(offset)
            raise make_disk_error(self.path.parent, error) from error
        return offset

    def _load_rows(self) -> None:
        """Index the rows of earlier runs, and cut off a last line that is incomplete.

        A damaged line is ignored, so that its motion is processed again.
        """
        with self.path.open("rb") as file:
            header = file.readline()
            if not header.endswith(b"\n"):  # the file is new, or its first write was cut off
                self._file.truncate(0)
                self._write(self._header)
                return
            self._check_header(header)
            offset = file.tell()
            while (line := file.readline()).endswith(b"\n"):
                with suppress(ValueError, TypeError, KeyError):
                    self._index_row(json.loads(line), offset)
                offset = file.tell()
        self._file.truncate(offset)

    def _index_row(self, row: Row, offset: int) -> None:
        """Remember where a motion's newest row is; forget a failed motion that is tried again."""
        name, digest, status = row["name"], row["sha256"], RowStatus(row["status"])
        self._rows[name] = (digest, offset)
        if self._retry_failed and status is RowStatus.FAILED:
            del self._rows[name]

    def _check_header(self, line: bytes) -> None:
        """Raise `BadRequestError` if the first line is not the header of this task."""
        try:
            header = json.loads(line)
        except ValueError:
            header = None
        if header != self._header:
            raise BadRequestError(
                f"{self.path.parent} holds the results of another task",
                "Repeat it with the same options, or name another folder.",
            )


def _check_folder(folder: Path) -> None:
    """Raise `BadRequestError` if a path is no folder, or one with files but no batch results."""
    if folder.exists() and not folder.is_dir():
        raise BadRequestError(f"{folder} is not a folder", "Name another one.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / RESULTS_NAME).is_file():
        raise BadRequestError(
            f"{folder} holds files, but no results of a batch", "Name an empty or new folder."
        )
