"""A hand at the legs of a simulated A1."""

import numpy as np

from rote.motion.track import Array


class Hand:
    """Swings every thigh a little, from where the legs are."""

    def __init__(self, from_rad: Array) -> None:
        self._from = from_rad

    def grip(self, time_s: float) -> Array | None:
        pose = self._from.copy()
        pose[1::3] += 0.25 * np.sin(2.0 * time_s)
        return pose
