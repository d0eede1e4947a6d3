"""What the parts of a simulated robot share: body, mode, health, firmware, store and clock."""

import time
from dataclasses import dataclass, replace

import numpy as np

from rote.model.family import Build
from rote.sim.behaviour import POLITE
from rote.sim.body import STEP_S, SimBody
from rote.sim.columns import Columns
from rote.sim.firmware import Firmware, firmware_of, modes_of
from rote.sim.fsm import ArmActivity, Machine
from rote.sim.health import Health
from rote.sim.store import Store


@dataclass(frozen=True, slots=True)
class SimNotice:
    """A message for the operator who watches the robot."""

    time_s: float
    message: str


class RobotCore:
    """The body, mode, health, firmware, store and clock of one simulated robot."""

    def __init__(
        self,
        store: Store,
        build: Build,
        *,
        mode: int | None,
        seed: int,
        firmware: Firmware | None,
        polite: bool,
    ) -> None:
        """Create the parts; `mode` None means the usual one, and `polite` removes all delays."""
        self.store = store
        self.columns = Columns(build)
        self.build = build
        self.firmware = firmware or firmware_of(build)
        if polite:
            self.firmware = replace(self.firmware, behaviour=POLITE)
        self.body = SimBody(build)
        self.health = Health(time.time(), build)
        self.machine = Machine(modes_of(build), self._choose_first_mode() if mode is None else mode)
        self.rng = np.random.default_rng((seed, 1))  # not the numbers that the sensors draw
        self.steps = 0
        self.time_s = 0.0
        self.notices: list[SimNotice] = []

    def _choose_first_mode(self) -> int:
        """Return the mode after a normal start: the firmware's, if the build has that mode."""
        modes, firmware_mode = modes_of(self.build), self.firmware.standing
        if firmware_mode is None or modes.find(firmware_mode) is None:
            return modes.standing
        return firmware_mode

    @property
    def teaching(self) -> bool:
        """Whether a client is teaching, with the arms soft."""
        return self.machine.activity is ArmActivity.TEACHING

    def advance_clock(self, steps: int = 1) -> None:
        """Advance the robot's time by `steps` steps of `STEP_S`."""
        self.steps += steps
        self.time_s = self.steps * STEP_S

    def note(self, message: str) -> None:
        """Add a notice for the operator; only the newest hundred are kept."""
        self.notices.append(SimNotice(self.time_s, message))
        del self.notices[:-100]
