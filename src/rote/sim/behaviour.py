"""Delays with which a robot starts and ends arm motions, taken from logs of a real G1.

The logs are from one G1 Air: eight days, 15 plays and 10 recordings. `LOGGED` is that robot and the
default. `POLITE` has no delays, for tests and demonstrations of other things. The delays apply to
the services of a G1 (WebRTC, DDS). The UDP frames are a protocol of this project without any logs,
so on them every robot is polite.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RELEASE_S = 4.1
"""Seconds for which a G1 reports that its arms return (99), after teaching, playing or a stop."""
ARM_STATE_S = 0.1
"""The time between two states of the arms: 10 Hz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """A robot's delays, and what it refuses in the meantime."""

    start_s: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Delay from the answer to a play request until the arms move: minimum, usual and maximum."""
    linger_s: tuple[float, float] = (0.0, 0.0)
    """Seconds for which the arm state stays -1 after teaching has ended: minimum and maximum."""
    busy_after_teaching: bool = False
    """Whether the robot refuses to play and to teach until the release after teaching has ended.
    No log shows this after a playback; the quirk `busy-after-playing` adds it.
    """
    lists_late: bool = False
    """Whether a new action is listed only after that release. This is a guess: the app in the logs
    requested the list only then.
    """
    release_s: float = RELEASE_S
    """Seconds for which the robot reports that its arms return."""
    arm_state_s: float = ARM_STATE_S
    """The time between two states of the arms."""
    lapse_s: float | None = None
    """Seconds without a keep-alive after which the robot ends teaching; None for the usual time."""
    lapse_keeps: bool = False
    """Whether the recording is stored when teaching ends for lack of keep-alives."""
    overwrites: bool = True
    """Whether a recording may have the name of an existing action, which it then replaces."""
    measured_starts_s: tuple[float, ...] = ()
    """Measured delays of the start, in place of `start_s`; see `draw_measured`."""

    def draw_start_delay_s(self, rng: np.random.Generator) -> float:
        """Draw a random delay in seconds, from the answer to a play request until the start."""
        if self.measured_starts_s:
            return draw_measured(self.measured_starts_s, rng)
        min_s, usual_s, max_s = self.start_s
        return float(rng.triangular(min_s, usual_s, max_s)) if max_s > min_s else min_s

    def draw_linger_s(self, rng: np.random.Generator) -> float:
        """Draw a random time in seconds for which the arm state stays -1 after teaching."""
        return float(rng.uniform(*self.linger_s))


def draw_measured(measured: Sequence[float], rng: np.random.Generator) -> float:
    """Draw a random value from the distribution of `measured`, interpolating between its values."""
    return float(np.quantile(np.asarray(measured, dtype=float), rng.random()))


POLITE = Behaviour()
# A triangular distribution from 0 to 0.74 s with its peak here has 2 of 15 over 0.5 s, like the
# logs.
_USUAL_START_S = 0.155
LOGGED = Behaviour(
    start_s=(0.0, _USUAL_START_S, 0.74),
    linger_s=(0.25, 0.9),
    busy_after_teaching=True,
    lists_late=True,
)
