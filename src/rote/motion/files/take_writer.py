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

from rote import atomic_file
from rote.errors import BadRequestError
from rote.motion.files import disk
from rote.motion.files.mcap_file import McapStream, nanoseconds
from rote.motion.files.mcap_records import need_mcap
from rote.motion.files.metadata import FilePlace, check_length, metadata_of
from rote.motion.track import Mark, Track

__all__ = ["TakeWriter", "unfinished"]

FLUSH_S = 0.5
"""The longest part of a recording that is only in memory, by the times of its samples."""

_PART = ".part"


def unfinished(folder: Path) -> list[Path]:
    """Return the recordings here that were cut off; not those that are being written now."""
    return [path for path in sorted(folder.glob(f"*.mcap{_PART}")) if disk.left(path)]


class TakeWriter:
    """A take that is being recorded: opened before the first sample, on disk while it grows.

        with TakeWriter(Path("wave.mcap"), names) as take:
            take.add(0.01, joints_rad)

    The block's end gives the file its name. Where the block fails, or the process dies, what was
    recorded stays in `wave.mcap.part` for `recover`. A flush waits for the disk, every half second
    of samples.
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
        empty = Track(
            times_s=np.empty(0),
            joints_rad=np.empty((0, len(names))),
            names=tuple(names),
            variant=variant,
            source=source,
        )
        self.path = path
        self._settle = settle
        self.part = path.with_name(path.name + _PART)
        self._metadata = metadata_of(empty)
        self._times_s = array("d")
        self._times_ns = array("q")
        self._flushed_s = -np.inf
        need_mcap()
        self._file = self._open()
        try:
            with self._writing():
                self._stream = McapStream(self._file, self._metadata)
            self._sync()
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
                    f"{self.part} is there already: another recording, or one that was cut off",
                    "Recover or remove it, or record under another name.",
                ) from None
            raise disk.unwritable(self.part, error, disk.ANOTHER_HOME) from error
        disk.claim(file)
        return file

    def __len__(self) -> int:
        return len(self._times_s)

    def __enter__(self) -> "TakeWriter":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._file.closed:
            return
        if kind is None:
            self.finish()
            return
        with suppress(BadRequestError):
            self._sync()
        self._close()

    def _close(self) -> None:
        # A full disk was reported by the write already; closing can only repeat it.
        with suppress(OSError):
            self._file.close()

    def add(self, time_s: float, joints_rad: Sequence[float]) -> None:
        """Add one sample; raise `BadRequestError` for one that no track can hold."""
        row = [float(value) for value in joints_rad]
        place = FilePlace(str(self.part), "sample")
        if len(row) != len(self._metadata.names):
            problem = f"it has {len(row)} angles for {len(self._metadata.names)} joints"
            raise place.refuse_row(len(self), problem)
        if not all(map(math.isfinite, (time_s, *row))):
            raise place.refuse_row(len(self), "it holds a value that is not a number")
        time_ns = int(nanoseconds(np.array([time_s]), self.part)[0])
        if self._times_ns and time_ns <= self._times_ns[-1]:
            raise place.refuse_row(len(self), f"its time {time_s} is not after the one before")
        check_length(len(self) + 1, len(row), place)
        with self._writing():  # a chunk that is full
            self._stream.add(time_ns, row)
        self._times_s.append(float(time_s))
        self._times_ns.append(time_ns)
        if time_s - self._flushed_s >= FLUSH_S:
            self._sync()
            self._flushed_s = time_s

    def _sync(self) -> None:
        with self._writing():
            self._stream.flush()
            os.fsync(self._file.fileno())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise disk.unwritable(self.part, error, disk.ANOTHER_HOME) from error

    def finish(
        self, *, marks: Sequence[Mark] = (), history: Sequence[str] = (), tags: Sequence[str] = ()
    ) -> Path:
        """Complete the file and give it its name; without any sample there is no file."""
        if len(self) < 2:
            self.discard()
            raise BadRequestError(f"{self.path}: a take needs 2 samples, this one has {len(self)}")
        metadata = replace(
            self._metadata, marks=tuple(marks), history=tuple(history), tags=tuple(tags)
        )
        try:
            self._stream.finish(metadata, np.array(self._times_s), np.array(self._times_ns))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._settle(self.part, self.path)
        except OSError as error:
            raise disk.unwritable(self.path, error, disk.ANOTHER_HOME) from error
        finally:
            self._close()
        return self.path

    def discard(self) -> None:
        """Delete the recording."""
        self._close()
        with suppress(OSError):
            self.part.unlink(missing_ok=True)
