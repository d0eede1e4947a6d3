"""A take: one recording with its metadata. It owns its samples; listeners subscribe."""

import threading
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

import numpy as np

from rote.errors import RoteError, UnsupportedError
from rote.model.family import Build
from rote.motion.record import Recorder, Sample
from rote.motion.track import Mark, Track
from rote.platform.loop import in_thread
from rote.transport.base_client import add_listener


class Writer(Protocol):
    """Writes a take; see `rote.motion.files.take_writer`."""

    def add(self, time_s: float, joints_rad: Sequence[float]) -> None:
        """Add one sample."""

    def finish(self, *, marks: Sequence[Mark] = ()) -> Path:
        """Complete the file."""

    def discard(self) -> None:
        """Delete the file."""

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close the file; after an error, keep the samples written so far."""


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
        self._samples.put(None)  # ends the thread
        await in_thread(self._thread.join)

    def _write_samples(self) -> None:
        while (sample := self._samples.get()) is not None:
            if self.problem is None:
                try:
                    self._writer.add(sample.time_us / 1e6, sample.joints_rad)
                except RoteError as error:
                    self.problem = error
                    self._on_problem(error)


SampleListener = Callable[[Sample], None]
Pauser = Callable[[bool], Awaitable[None]]
"""Asks a robot to pause its own recording (True) or to resume it (False)."""


class Lack(Enum):
    """What a take lacks because the robot did not report it."""

    POSITIONS = "positions"
    """The robot reported no joint positions: the action is on the robot only."""
    JOINTS = "joints"
    """The robot did not report all joints: the others stay at rest in the take."""
    CLOCK = "clock"
    """The robot reported no time: the take uses this computer's clock."""
    RATE = "rate"
    """The robot reported too seldom for a motion to be recognised."""


MIN_RATE_HZ = 10.0
"""Below this rate a take misses the motion: a wave changes direction twice per second."""

_MOVED_INTERVAL_S, _MOVED_RAD_S = 0.2, 0.15
"""A joint that is faster than this over this interval is moved by a hand. Soft arms that sink stay
below 0.1 rad/s.
"""


class Take:
    """One recording: it grows inside the block of `teach`, and stays on this computer after it."""

    def __init__(self, name: str, build: Build, wire: str, pauser: Pauser | None = None) -> None:
        """Begin a take; without a `pauser` it cannot be paused."""
        self.name = name
        """The name under which the robot is to store it."""
        self.build = build
        """The machine whose joints it records."""
        self.saved = False
        """Whether the robot has stored it under its name, and lists it."""
        self.on_robot = False
        """Whether the robot has probably stored it, judged by its replies; `saved` once listed."""
        self.robot_s: float | None = None
        """Its length in seconds by the robot's own list; None if that is not known."""
        self.robot_note = ""
        """The robot's own note from when it stored the take; usually empty."""
        self.lacks: frozenset[Lack] = frozenset()
        """What the robot did not report."""
        self.paused = False
        """Whether nothing is recorded at the moment."""
        self.file: Path | None = None
        """Where it is on this computer's disk, after the block, if a library was given."""
        self.file_problem: RoteError | None = None
        """Why it is not on the disk; set as soon as writing fails, while recording goes on in
        memory.
        """
        self.discarded = False
        """Whether nothing is to be stored."""
        self._wire = wire
        self._pauser = pauser
        self._recorder = Recorder(f"teach {name} over {wire}", build)
        self._listeners: list[SampleListener] = []

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {self.samples} samples>"

    @property
    def track(self) -> Track:
        """The joints as the robot reported them, at the rate it reported them.

        Raises `BadRequestError` if it has not reported any.
        """
        return self._recorder.track()

    @property
    def duration_s(self) -> float:
        """The recorded time so far; 0 without two samples."""
        return self._recorder.duration_s

    @property
    def rate_hz(self) -> float:
        """The measured mean rate; 0 if it cannot be computed."""
        return self._recorder.rate_hz

    @property
    def samples(self) -> int:
        """How many samples have been recorded so far."""
        return len(self._recorder)

    @property
    def moved(self) -> bool | None:
        """Whether a hand has moved a joint so far; None without two samples.

        Soft limbs that only sink do not count: they are slower than a hand.
        """
        if self.samples < 2:
            return None
        track = self.track
        # Compare samples that are about `_MOVED_INTERVAL_S` apart.
        step = min(max(1, round(track.rate_hz * _MOVED_INTERVAL_S)), len(track) - 1)
        intervals_s = track.times_s[step:] - track.times_s[:-step]
        moved_rad = np.abs(track.joints_rad[step:] - track.joints_rad[:-step]).max(axis=1)
        return bool((moved_rad > _MOVED_RAD_S * intervals_s).any())

    @property
    def source(self) -> str:
        """Where it comes from, as text."""
        return self._recorder.source

    @property
    def clock_is_the_robots(self) -> bool:
        """Whether its times are those that the robot reported."""
        # The recorder stretches its ticks only if the robot's clock proves wrong or missing.
        return self._recorder.tick_s == 1e-6

    def rows(self, first: int = 0, count: int | None = None) -> Sequence[Sample]:
        """Return at most `count` samples from number `first` on."""
        return self._recorder.samples[first : None if count is None else first + count]

    def on_sample(self, listener: SampleListener) -> Callable[[], None]:
        """Call `listener` with every sample from now on. Return a function that removes it."""
        return add_listener(self._listeners, listener)

    def discard(self) -> None:
        """Do not save this take when the block ends."""
        self.discarded = True

    async def pause(self) -> None:
        """Pause the recording; the joints stay soft. Raises `UnsupportedError` if the wire cannot
        pause.
        """
        await self._set_paused(paused=True)

    async def resume(self) -> None:
        """Record again. The pause is cut out and bridged by a soft move to the next pose."""
        await self._set_paused(paused=False)

    async def _set_paused(self, *, paused: bool) -> None:
        if self._pauser is None:
            raise UnsupportedError(
                "pause a recording", f"{self._wire}://", ("webrtc://", "dds://", "a1://")
            )
        await self._pauser(paused)
        if self.paused and not paused:
            self._recorder.join()
        self.paused = paused

    def mark(self, label: str) -> None:
        """Add a mark with that label at the newest sample. Called by the teaching code."""
        self._recorder.mark(label)

    def add(self, time_us: int, joints_rad: Sequence[float], now_s: float | None = None) -> None:
        """Add one pose that the robot reported. Called by the teaching code.

        `time_us` is the robot's time; `now_s` is this computer's, to check the robot's clock.
        """
        if self.paused:
            return
        for sample in self._recorder.add_sample(time_us, joints_rad, now_s):
            for listener in tuple(self._listeners):
                listener(sample)
