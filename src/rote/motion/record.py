"""Records the joint positions that any robot reports as a Track."""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rote.messages import RobotState
from rote.model.family import Build
from rote.model.g1 import G1_29
from rote.motion.interpolate import MINIMUM_JERK_PEAK, minimum_jerk
from rote.motion.track import Array, Mark, Track

BRIDGE_RAD_S = 1.0
"""The highest speed of a joint in the bridge over a pause of the recording."""
_NEAR_RAD = 0.01
"""A pose this close needs no bridge."""
_DEFAULT_STEP_US = 10_000
_STEP_SAMPLES = 20  # the usual step is the median over this many samples
_CLOCK_RATIOS = (0.8, 1.25)
"""The robot's clock is trusted if its rate is between these multiples of the reader's."""


class Sample(NamedTuple):
    """One pose of a recording."""

    time_us: int
    """The time since the first sample, by the robot's clock and without pauses."""
    joints_rad: tuple[float, ...]


class Recorder:
    """Collects joint positions in the order of the robot's own clock, without pauses.

    If the reader's own time is given too, and the robot's clock runs at another rate, the track
    uses the reader's: some robots count in an unpublished unit.
    """

    def __init__(self, source: str = "", build: Build = G1_29) -> None:
        self.source = source
        self.build = build
        self.samples: list[Sample] = []
        self.marks: tuple[Mark, ...] = ()
        """The times at which it was paused."""
        # The samples again as flat arrays, so that even a long track is built at once.
        self._times_us = array("q")
        self._rows_rad = array("d")
        # Times `_us` are by the robot's clock, times `_s` by the reader's. A shift is added to a
        # time so that pauses are left out.
        self._last_us = 0
        self._shift_us = 0
        self._first_s: float | None = None
        self._last_s = 0.0
        self._shift_s = 0.0
        self._is_after_pause = False

    def __len__(self) -> int:
        return len(self.samples)

    def add(self, state: RobotState) -> bool:
        """Add one state; return False if it is older than the last, or has another number of
        joints.
        """
        return bool(self.add_sample(state.time_us, state.joints_rad))

    def add_sample(
        self, time_us: int, joints_rad: Sequence[float], now_s: float | None = None
    ) -> tuple[Sample, ...]:
        """Add one pose, after a pause with a bridge to it; return the added samples.

        They are none if the pose is too old or has another number of joints. `now_s` is the time at
        which the pose was read, by the reader's clock.
        """
        row = tuple(joints_rad)
        if not self.samples:
            self._shift_us, self._first_s, self._last_s = -time_us, now_s, now_s or 0.0
        elif self._is_stale(time_us, len(row), now_s):
            return ()
        added = list[Sample]()
        if self._is_after_pause and self.samples:
            added = self._bridge_pause(self.samples[-1], row, time_us, now_s)
        self._is_after_pause = False
        added.append(Sample(time_us + self._shift_us, row))
        self.samples += added
        for sample in added:
            self._times_us.append(sample.time_us)
            self._rows_rad.extend(sample.joints_rad)
        self._last_us = time_us
        self._last_s = self._last_s if now_s is None else now_s
        return tuple(added)

    def _is_stale(self, time_us: int, width: int, now_s: float | None) -> bool:
        """Whether a pose is older than the last by either clock, or has another number of
        joints.
        """
        if time_us <= self._last_us or width != len(self.samples[0].joints_rad):
            return True
        return now_s is not None and now_s < self._last_s

    def mark(self, label: str) -> None:
        """Add a mark with that label at the newest sample; does nothing before the first."""
        if self.samples:
            self.marks = (*self.marks, Mark(self.samples[-1].time_us / 1e6, label))

    def join(self) -> None:
        """Leave out the pause between the last pose and the next; a bridge will join them."""
        self._is_after_pause = bool(self.samples)

    def _bridge_pause(
        self, before: Sample, row: tuple[float, ...], time_us: int, now_s: float | None
    ) -> list[Sample]:
        """Return a smooth bridge from the pose before a pause to the pose `row` after it.

        Mark the pause, and shift the times of later samples so that they follow the bridge.
        """
        times = [sample.time_us for sample in self.samples[-_STEP_SAMPLES:]]
        step_us = int(np.median(np.diff(times))) if len(times) > 1 else _DEFAULT_STEP_US
        start, end = np.array(before.joints_rad), np.array(row)
        poses = bridge_poses(start, end, step_us / 1e6)
        bridge_us = (len(poses) + 1) * step_us
        pause_us = time_us + self._shift_us - before.time_us
        self._shift_us += bridge_us - pause_us
        if now_s is not None:
            self._shift_s += bridge_us / 1e6 - (now_s - self._last_s)
        self.marks = (*self.marks, Mark(before.time_us / 1e6, "paused here"))
        return [
            Sample(before.time_us + number * step_us, tuple(pose.tolist()))
            for number, pose in enumerate(poses, start=1)
        ]

    @property
    def tick_s(self) -> float:
        """The unit of the robot's clock in seconds: 1e-6, unless the reader's clock disagrees."""
        if not self.samples or self._first_s is None:
            return 1e-6
        reader_s = self._last_s + self._shift_s - self._first_s
        ticks = self.samples[-1].time_us
        if not ticks or not reader_s:
            return 1e-6
        ratio = ticks * 1e-6 / reader_s
        return 1e-6 if _CLOCK_RATIOS[0] <= ratio <= _CLOCK_RATIOS[1] else reader_s / ticks

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the recorded joints: the first of the build if states have fewer."""
        width = len(self.samples[0].joints_rad) if self.samples else len(self.build.names)
        return self.build.names[:width]

    @property
    def duration_s(self) -> float:
        """The time from the first to the last sample; 0 without two of them."""
        return self.samples[-1].time_us * self.tick_s if self.samples else 0.0

    @property
    def rate_hz(self) -> float:
        """The measured mean rate; 0 if it cannot be computed."""
        return (len(self.samples) - 1) / self.duration_s if self.duration_s else 0.0

    def track(self) -> Track:
        """Return the recorded track; its times begin at 0.

        Raises `BadRequestError` if there is no sample.
        """
        times = np.array(self._times_us, dtype=np.float64)
        rows = np.array(self._rows_rad, dtype=np.float64)
        return Track(
            times_s=times * self.tick_s,
            joints_rad=rows.reshape(len(self.samples), len(self.names)),
            names=self.names,
            variant=self.build.name,
            source=self.source,
            marks=self.marks,
        )


def bridge_poses(before_rad: Array, after_rad: Array, step_s: float) -> Array:
    """Return the poses, one per `step_s`, from the pose at a pause to the pose after it; none if
    the two are close to each other."""
    distance_rad = float(np.abs(after_rad - before_rad).max(initial=0.0))
    if distance_rad <= _NEAR_RAD:
        return np.empty((0, len(before_rad)))
    steps = max(1, int(np.ceil(MINIMUM_JERK_PEAK * distance_rad / BRIDGE_RAD_S / step_s)))
    return minimum_jerk(before_rad, after_rad, np.arange(1, steps) / steps)
