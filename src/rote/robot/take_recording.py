"""A take on our own disk while it is made: written by a thread, because disks make one wait."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from rote.errors import RoteError
from rote.motion.record import Sample
from rote.motion.track import Mark


class Writer(Protocol):
    """What a take is written with; see `rote.motion.files.take_writer`."""

    def add(self, time_s: float, joints_rad: Sequence[float]) -> None:
        """Take in one sample."""

    def finish(self, *, marks: Sequence[Mark] = ()) -> Path:
        """Complete the file."""

    def discard(self) -> None:
        """Throw it away."""

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Let go of the file; after an error, with what it has."""


class Keeper:
    """Hands the samples of one recording to a writer in another thread."""

    def __init__(self, writer: Writer) -> None:
        self.problem: RoteError | None = None
        """Why the file could not be written; the robot's own recording does not suffer from it."""
        self._writer = writer
        self._samples: SimpleQueue[Sample | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="rote take", daemon=True)
        self._thread.start()

    def add(self, sample: Sample) -> None:
        """Take in one sample; this never waits."""
        self._samples.put(sample)

    async def finish(self, marks: Sequence[Mark] = ()) -> Path | None:
        """Complete the file and return where it is; None where there is a problem."""
        await self._written()
        if self.problem is None:
            try:
                return await asyncio.to_thread(self._writer.finish, marks=marks)
            except RoteError as error:
                self.problem = error
        await self.leave()
        return None

    async def leave(self) -> None:
        """Let go of the file as it is: what it has can be recovered."""
        await self._written()
        await asyncio.to_thread(self._writer.__exit__, RoteError, self.problem, None)

    async def discard(self) -> None:
        """Throw away what was written."""
        await self._written()
        await asyncio.to_thread(self._writer.discard)

    async def _written(self) -> None:
        self._samples.put(None)
        await asyncio.to_thread(self._thread.join)

    def _write(self) -> None:
        while (sample := self._samples.get()) is not None:
            if self.problem is None:
                try:
                    self._writer.add(sample.time_us / 1e6, sample.joints_rad)
                except RoteError as error:
                    self.problem = error
