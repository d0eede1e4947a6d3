"""How long a robot takes to begin and to end what its arms do, as logs of a real G1 show it.

The logs are of one G1 Air: eight days, 15 plays and 10 recordings. `LOGGED` is that robot and the
default; `POLITE` is a robot that does everything at once, for tests and demonstrations that are
about something else. These times belong to the services of a G1 (WebRTC, DDS). The UDP frames are a
protocol of this project, no log of them exists, and on them every robot is polite.
"""

from dataclasses import dataclass

import numpy as np

RELEASE_S = 4.1
"""So long a G1 says that its arms return (99), after a teaching, a playback or a stop."""
ARM_STATE_S = 0.1
"""Between two states of the arms: 10 Hz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How long a robot takes, and what it refuses meanwhile."""

    start_s: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """From the answer to a play until the arms begin and their state says 100: the least, the
    usual and the most."""
    linger_s: tuple[float, float] = (0.0, 0.0)
    """How long the state still says -1 after a teaching has ended: the least and the most."""
    busy_after_teaching: bool = False
    """Whether it refuses to play and to teach until the release after a teaching has ended.
    After a playback no log shows it; there is a quirk for that."""
    lists_late: bool = False
    """Whether a new action is in the list only after that release, which is when the app in the
    logs asked for it. Whether it was there before is not known."""

    def start_delay_s(self, chance: np.random.Generator) -> float:
        """Return how long after its answer this play begins."""
        least, usual, most = self.start_s
        return float(chance.triangular(least, usual, most)) if most > least else least

    def linger_for_s(self, chance: np.random.Generator) -> float:
        """Return how long the state says -1 after this teaching."""
        return float(chance.uniform(*self.linger_s))


POLITE = Behaviour()
# A triangle from 0 to 0.74 s with its peak here has 2 of 15 over 0.5 s, as the logs have.
_USUAL_START_S = 0.155
LOGGED = Behaviour(
    start_s=(0.0, _USUAL_START_S, 0.74),
    linger_s=(0.25, 0.9),
    busy_after_teaching=True,
    lists_late=True,
)
