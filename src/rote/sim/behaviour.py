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
"""How long a G1 reports that its arms return (99), after a teaching, a playback or a stop."""
ARM_STATE_S = 0.1
"""The time between two states of the arms: 10 Hz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """A robot's delays, and what it refuses in the meantime."""

    start_s: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """From the answer to a play until the arms begin and their state is 100: minimum, usual and
    maximum.
    """
    linger_s: tuple[float, float] = (0.0, 0.0)
    """How long the state is still -1 after a teaching has ended: minimum and maximum."""
    busy_after_teaching: bool = False
    """Whether it refuses to play and to teach until the release after a teaching has ended. No log
    shows it after a playback; there is a quirk for that.
    """
    lists_late: bool = False
    """Whether a new action is listed only after that release, which is when the app in the logs
    asked for the list. Whether it was listed before is not known.
    """
    release_s: float = RELEASE_S
    """How long it reports that its arms return."""
    arm_state_s: float = ARM_STATE_S
    """The time between two states of the arms."""
    lapse_s: float | None = None
    """Time without a keep-alive after which it ends a teaching; None for the usual time."""
    lapse_keeps: bool = False
    """Whether a teaching that lapses is stored."""
    overwrites: bool = True
    """Whether a teaching may have the name of an action that exists, and replaces it."""
    measured_starts_s: tuple[float, ...] = ()
    """Measured delays of the start, in place of `start_s`; see `draw_measured`."""

    def start_delay_s(self, chance: np.random.Generator) -> float:
        """Return how many seconds after its answer this play begins."""
        if self.measured_starts_s:
            return draw_measured(self.measured_starts_s, chance)
        least, usual, most = self.start_s
        return float(chance.triangular(least, usual, most)) if most > least else least

    def linger_for_s(self, chance: np.random.Generator) -> float:
        """Return how many seconds the state is -1 after this teaching."""
        return float(chance.uniform(*self.linger_s))


def draw_measured(measured: Sequence[float], chance: np.random.Generator) -> float:
    """Draw a value from a measured distribution, interpolated between neighbours."""
    return float(np.quantile(np.asarray(measured, dtype=float), chance.random()))


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
