"""A take: one recording with its metadata. It owns its samples; listeners subscribe."""

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from pathlib import Path

from rote.errors import RoteError, UnsupportedError
from rote.model.family import Build
from rote.motion.record import Recorder, Sample
from rote.motion.track import Track
from rote.transport.base_client import add_listener

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
        """Whether the robot should have it under its name, by its answers; `saved` once it is
        listed.
        """
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
        """The joints as the robot reported them, at the rate it reported them."""
        return self._recorder.track()

    @property
    def samples(self) -> int:
        """How many samples have been recorded so far."""
        return len(self._recorder)

    @property
    def source(self) -> str:
        """Where it comes from, as text."""
        return self._recorder.source

    @property
    def clock_is_the_robots(self) -> bool:
        """Whether its times are those that the robot reported."""
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
        """Leave out what happens from now on, on wires that can; the joints stay soft.

        Raises `UnsupportedError` if the wire cannot pause.
        """
        await self._set_paused(paused=True)

    async def resume(self) -> None:
        """Record again. The pause is cut out, and a soft way leads from the last pose to
        the next.
        """
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
        """Add one pose that the robot reported. Called by the teaching code."""
        if self.paused:
            return
        for sample in self._recorder.add_sample(time_us, joints_rad, now_s):
            for listener in tuple(self._listeners):
                listener(sample)
