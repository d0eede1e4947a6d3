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
    """The parts of one simulated robot that all others use."""

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
        self.store = store
        self.columns = Columns(build)
        self.build = build
        self.firmware = firmware or firmware_of(build)
        if polite:
            self.firmware = replace(self.firmware, behaviour=POLITE)
        self.body = SimBody(build)
        self.health = Health(time.time(), build)
        self.machine = Machine(modes_of(build), self._first_mode() if mode is None else mode)
        self.chance = np.random.default_rng((seed, 1))
        self.steps = 0
        self.time_s = 0.0
        self.notices: list[SimNotice] = []

    def _first_mode(self) -> int:
        """Return the mode after a normal start."""
        modes, standing = self.columns.family.modes, self.firmware.standing
        return modes.standing if standing is None or modes.find(standing) is None else standing

    @property
    def teaching(self) -> bool:
        """Whether the arms are soft for a client that teaches."""
        return self.machine.activity is ArmActivity.TEACHING

    def advance_clock(self, steps: int = 1) -> None:
        """Advance the time by a number of steps."""
        self.steps += steps
        self.time_s = self.steps * STEP_S

    def note(self, message: str) -> None:
        """Add a notice for the operator."""
        self.notices.append(SimNotice(self.time_s, message))
        del self.notices[:-100]
