"""Writes a take to disk while it is recorded, in a thread, because disks block."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from rote.errors import RoteError
from rote.motion.record import Sample
from rote.motion.track import Mark
from rote.platform.loop import in_thread


class Writer(Protocol):
    """Writes a take; see `rote.motion.files.take_writer`."""

    def add(self, time_s: float, joints_rad: Sequence[float]) -> None:
        """Add one sample."""

    def finish(self, *, marks: Sequence[Mark] = ()) -> Path:
        """Complete the file."""

    def discard(self) -> None:
        """Delete the file."""

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close the file; after an error, with what it has."""


class BackgroundTakeWriter:
    """Passes the samples of one recording to a writer in another thread."""

    def __init__(
        self, writer: Writer, on_problem: Callable[[RoteError], None] = lambda _: None
    ) -> None:
        """`on_problem` is called once, in the thread that writes, as soon as writing fails."""
        self._on_problem = on_problem
        self.problem: RoteError | None = None
        """Why the file could not be written; the robot's own recording is not affected."""
        self._writer = writer
        self._samples: SimpleQueue[Sample | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_samples, name="rote take", daemon=True)
        self._thread.start()

    def add(self, sample: Sample) -> None:
        """Add one sample; this never blocks."""
        self._samples.put(sample)

    async def finish(self, marks: Sequence[Mark] = ()) -> Path | None:
        """Complete the file and return its path; None if there was a problem."""
        await self._join_thread()
        if self.problem is None:
            try:
                return await in_thread(self._writer.finish, marks=marks)
            except RoteError as error:
                self.problem = error
        await self.close_incomplete()
        return None

    async def close_incomplete(self) -> None:
        """Close the incomplete file; its samples can be recovered."""
        await self._join_thread()
        await in_thread(self._writer.__exit__, RoteError, self.problem, None)

    async def discard(self) -> None:
        """Delete what was written."""
        await self._join_thread()
        await in_thread(self._writer.discard)

    async def _join_thread(self) -> None:
        self._samples.put(None)
        await in_thread(self._thread.join)

    def _write_samples(self) -> None:
        while (sample := self._samples.get()) is not None:
            if self.problem is None:
                try:
                    self._writer.add(sample.time_us / 1e6, sample.joints_rad)
                except RoteError as error:
                    self.problem = error
                    self._on_problem(error)
