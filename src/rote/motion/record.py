"""From a stream of robot states to a Track."""

import numpy as np

from rote.messages import RobotState
from rote.model.g1 import G1_29
from rote.motion.track import Track


class Recorder:
    """Collects the joints of states in the order of the robot's own clock."""

    def __init__(self, source: str = "") -> None:
        self.source = source
        self._times_us: list[int] = []
        self._rows: list[tuple[float, ...]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, state: RobotState) -> bool:
        """Take in one state; False where it is older than the last, or of another width."""
        if self._times_us and state.time_us <= self._times_us[-1]:
            return False
        if self._rows and len(state.positions_rad) != len(self._rows[0]):
            return False
        self._times_us.append(state.time_us)
        self._rows.append(state.positions_rad)
        return True

    def track(self) -> Track:
        """Return what was collected; its times begin at 0."""
        times = np.array(self._times_us, dtype=np.float64) / 1e6
        width = len(self._rows[0]) if self._rows else len(G1_29.names)
        return Track(
            times_s=times - times[:1],
            joints_rad=np.array(self._rows, dtype=np.float64).reshape(len(self._rows), width),
            names=G1_29.names[:width],
            variant=G1_29.name,
            source=self.source,
        )
