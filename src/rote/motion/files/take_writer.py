"""Writes a take to disk while it is recorded, so that a crash loses at most a second."""

import math
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from rote.errors import BadRequestError
from rote.motion.files import disk, mcap_file, row_file
from rote.motion.files.mcap_file import McapStream, to_nanoseconds
from rote.motion.files.mcap_records import require_mcap
from rote.motion.files.metadata import FileLocation, TakeMetadata, check_length, check_texts
from rote.motion.files.row_file import RowStream
from rote.motion.track import Mark, Track
from rote.platform import atomic_file, system

__all__ = ["TakeWriter", "unfinished", "recover"]

FLUSH_S = 0.5
"""The longest part of a recording that is only in memory, by the times of its samples."""

_PART = ".part"
_ROW_SUFFIX = ".npz"
_SUFFIXES = (".mcap", _ROW_SUFFIX)


def unfinished(folder: Path) -> list[Path]:
    """Return the recordings in a folder that were cut off, not those that are being written."""
    parts = (path for ending in _SUFFIXES for path in folder.glob(f"*{ending}{_PART}"))
    return [path for path in sorted(parts) if disk.is_abandoned(path)]


def take_name(part: Path) -> str:
    """Return the name of the take that an unfinished recording belongs to."""
    return Path(part.name.removesuffix(_PART)).stem


def recover(part: Path) -> Track:
    """Read a recording that was cut off, up to its last complete part."""
    is_row_file = part.name.endswith(f"{_ROW_SUFFIX}{_PART}")
    return row_file.recover(part) if is_row_file else mcap_file.recover(part)


class TakeWriter:
    """A take that is being recorded: opened before the first sample, on disk while it grows.

        with TakeWriter(Path("wave.mcap"), names) as take:
            take.add(0.01, joints_rad)

    The end of the block gives the file its name. If the block fails or the process dies, the
    recorded samples stay in `wave.mcap.part` for `recover`. Every half second of samples is flushed
    to the disk. A path that ends in `.npz` needs no extra; the take is then at most 256 MB.
    `settle` renames the finished file, from its first argument to its second.
    """

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        *,
        variant: str = "",
        source: str = "",
        settle: Callable[[Path, Path], None] = atomic_file.settle,
    ) -> None:
        self.path = path
        self._settle = settle
        self.part = path.with_name(path.name + _PART)
        self._metadata = check_texts(
            TakeMetadata(names=tuple(names), variant=variant, source=source)
        )
        self._times_s = array("d")
        self._times_ns = array("q")
        self._flushed_s = -np.inf  # the time of the last flushed sample
        is_row_file = path.suffix == _ROW_SUFFIX
        if not is_row_file:
            require_mcap()
        self._file = self._open()
        self._stream: McapStream | RowStream
        try:
            with self._translate_disk_errors():
                self._stream = (RowStream if is_row_file else McapStream)(
                    self._file, self._metadata
                )
            self._flush_to_disk()
        except BaseException:
            self.discard()
            raise

    def _open(self) -> BinaryIO:
        try:
            self.part.parent.mkdir(parents=True, exist_ok=True)
            file = self.part.open("xb")
        except OSError as error:
            if self.part.exists():
                raise BadRequestError(
                    f"{self.part} exists already: another recording, or one that was cut off",
                    "Recover or remove it, or record under another name.",
                ) from None
            raise disk.make_write_error(self.part, error, disk.HOME_REMEDY) from error
        system.lock(file)  # so that `unfinished` recognises it as being written
        return file

    def __len__(self) -> int:
        return len(self._times_s)

    def __enter__(self) -> "TakeWriter":
        return self

    def __exit__(self, error_type: object, error: object, trace: object) -> None:
        if self._file.closed:
            return
        if error_type is None:
            self.finish()
            return
        with suppress(BadRequestError):
            self._flush_to_disk()
        self._close()

    def _close(self) -> None:
        # The write has already reported a full disk; closing would only repeat the error.
        with suppress(OSError):
            self._file.close()

    def add(self, time_s: float, joints_rad: Sequence[float]) -> None:
        """Add one sample; raises `BadRequestError` for an invalid one."""
        row = [float(value) for value in joints_rad]
        location = FileLocation(str(self.part), "sample")
        if len(row) != len(self._metadata.names):
            problem = f"it has {len(row)} angles for {len(self._metadata.names)} joints"
            raise location.row_error(len(self), problem)
        if not all(map(math.isfinite, (time_s, *row))):
            raise location.row_error(len(self), "it holds a value that is not a number")
        time_ns = int(to_nanoseconds(np.array([time_s]), self.part)[0])
        if self._times_ns and time_ns <= self._times_ns[-1]:
            raise location.row_error(
                len(self), f"its time {time_s} is not later than the one before"
            )
        check_length(len(self) + 1, len(row), location)
        with self._translate_disk_errors():  # a full chunk is written here
            if isinstance(self._stream, RowStream):
                disk.check_size(self.path, self._stream.size)
                self._stream.add(time_s, row)
            else:
                self._stream.add(time_ns, row)
        self._times_s.append(float(time_s))
        self._times_ns.append(time_ns)
        if time_s - self._flushed_s >= FLUSH_S:
            self._flush_to_disk()
            self._flushed_s = time_s

    def _flush_to_disk(self) -> None:
        with self._translate_disk_errors():
            self._stream.flush()
            os.fsync(self._file.fileno())

    @contextmanager
    def _translate_disk_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise disk.make_write_error(self.part, error, disk.HOME_REMEDY) from error

    def finish(
        self, *, marks: Sequence[Mark] = (), history: Sequence[str] = (), tags: Sequence[str] = ()
    ) -> Path:
        """Complete the file, give it its name, and return its path.

        A take of less than 2 samples is deleted, and `BadRequestError` is raised.
        """
        if len(self) < 2:
            self.discard()
            raise BadRequestError(f"{self.path}: a take needs 2 samples, this one has {len(self)}")
        metadata = replace(
            self._metadata, marks=tuple(marks), history=tuple(history), tags=tuple(tags)
        )
        try:
            complete = self._write_end(metadata)
            if not system.can_rename_open_files():
                self._close()
            self._settle(complete, self.path)
        except OSError as error:
            raise disk.make_write_error(self.path, error, disk.HOME_REMEDY) from error
        finally:
            self._close()
        if complete != self.part:
            self.discard()
        return self.path

    def _write_end(self, metadata: TakeMetadata) -> Path:
        """Complete the recording; return the file that `finish` then renames to the take's name."""
        if isinstance(self._stream, RowStream):
            self._flush_to_disk()
            draft = self.path.with_name(f".{self.path.name}.{os.getpid()}.draft")
            row_file.finish(self.part, metadata, draft)
            return draft
        self._stream.finish(metadata, np.array(self._times_s), np.array(self._times_ns))
        self._file.flush()
        os.fsync(self._file.fileno())
        return self.part

    def discard(self) -> None:
        """Delete the recording."""
        self._close()
        with suppress(OSError):
            self.part.unlink(missing_ok=True)
