"""A take: one recording and all that is known of it. It owns its samples; others subscribe."""

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from pathlib import Path

from rote.client.client_base import listen
from rote.errors import RoteError, UnsupportedError
from rote.model.family import Build
from rote.motion.record import Recorder, Sample
from rote.motion.track import Track

SampleListener = Callable[[Sample], None]
Pauser = Callable[[bool], Awaitable[None]]
"""Asks a robot to pause its own recording, or to go on."""


class Lack(Enum):
    """What a take does not have, because the robot does not tell it."""

    POSITIONS = "positions"
    """The robot told no joint positions: the action is on the robot, and nothing is here."""
    JOINTS = "joints"
    """It did not tell them of all joints: the others stay at rest in the take."""
    CLOCK = "clock"
    """It did not tell its time: the take goes by this computer's."""
    RATE = "rate"
    """It told them too seldom for a motion to be recognised."""


MIN_RATE_HZ = 10.0
"""Below this a take misses what a person shows: a wave has two turns a second."""


class Take:
    """One recording: being made inside the block, and here on our side after it."""

    def __init__(self, name: str, build: Build, wire: str, pauser: Pauser | None = None) -> None:
        """Begin a take; without a `pauser` it cannot be paused."""
        self.name = name
        self.build = build
        self.saved = False
        """Whether the robot has stored it under its name."""
        self.on_robot = False
        """Whether the robot keeps it under its name, as far as it said; `saved` once that is
        seen."""
        self.robot_s: float | None = None
        """How long it is by the robot's own list; None where that was not told."""
        self.robot_note = ""
        """What the robot added when it stored it, in its own words; mostly nothing."""
        self.lacks: frozenset[Lack] = frozenset()
        """What the robot did not tell of it."""
        self.paused = False
        self.file: Path | None = None
        """Where it is on our own disk, once the block is over, if it was to be kept."""
        self.file_problem: RoteError | None = None
        """Why it is not there."""
        self.discarded = False
        """Whether nothing is to be stored."""
        self._wire = wire
        self._pauser = pauser
        self._recorder = Recorder(f"teach {name} over {wire}", build)
        self._listeners: list[SampleListener] = []

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
        """Where it comes from, in words."""
        return self._recorder.source

    @property
    def clock_is_the_robots(self) -> bool:
        """Whether its times are the robot's, as they came."""
        return self._recorder.tick_s == 1e-6

    def rows(self, first: int = 0, count: int | None = None) -> Sequence[Sample]:
        """Return what was recorded from sample number `first` on, `count` of it at most."""
        return self._recorder.samples[first : None if count is None else first + count]

    def on_sample(self, listener: SampleListener) -> Callable[[], None]:
        """Call `listener` with every sample from now on; returns what ends that."""
        return listen(self._listeners, listener)

    def discard(self) -> None:
        """Do not save this take when the block ends."""
        self.discarded = True

    async def pause(self) -> None:
        """Leave out what happens from now on, on wires that can; the joints stay soft."""
        await self._pause(paused=True)

    async def resume(self) -> None:
        """Record again. The pause is closed: a soft way leads from the last pose to the next."""
        await self._pause(paused=False)

    async def _pause(self, *, paused: bool) -> None:
        if self._pauser is None:
            raise UnsupportedError(
                "pause a recording", f"{self._wire}://", ("webrtc://", "dds://", "a1://")
            )
        await self._pauser(paused)
        if self.paused and not paused:
            self._recorder.join()
        self.paused = paused

    def mark(self, label: str) -> None:
        """Give words to the newest sample; for those who teach it."""
        self._recorder.mark(label)

    def add(self, time_us: int, joints_rad: Sequence[float], now_s: float | None = None) -> None:
        """Take in one pose that the robot reports; for those who teach it."""
        if self.paused:
            return
        for sample in self._recorder.add_sample(time_us, joints_rad, now_s):
            for listener in tuple(self._listeners):
                listener(sample)
