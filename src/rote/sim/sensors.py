"""The simulated robot's reports: the arm state code, and the robot state with noise."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rote.messages import RobotState
from rote.model.family import Build
from rote.sim.arms import GRAVITY_M_S2
from rote.sim.columns import family_for

if TYPE_CHECKING:
    from rote.sim.world import World

RECORDING_ID, PLAYING_ID = -1, 100
"""The ids that a G1 reports for its arms while it records, and while it plays a taught action."""


class ArmStateCode(NamedTuple):
    """The arms' activity: 0 idle, -1 recording, 100 playing, 99 returning, otherwise a preset."""

    id: int
    name: str


class Sensors:
    """The sensors of one robot; two with the same seed give the same readings."""

    def __init__(self, build: Build, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        family = family_for(build)
        mass_kg = round(sum(mass.mass_kg for mass in family.masses(build)), 2)
        self._foot_n = mass_kg * GRAVITY_M_S2 / 4 if family.body.feet else 0.0

    def read(self, world: "World") -> RobotState:
        """Return the current state, with noise."""
        noise = self._random.standard_normal(10)
        return RobotState(
            mode=world.machine.mode,
            arms_soft=bool(world.body.soft),
            recording=world.recording,
            phase=world.phase,
            stopped_early=world.stopped_early,
            joints_rad=tuple(world.body.joints_rad.tolist()),
            velocities_rad_s=tuple(world.body.speeds_rad_s.tolist()),
            accelerometer_m_s2=tuple((noise[:3] * 0.02 + (0, 0, GRAVITY_M_S2)).tolist()),
            gyroscope_rad_s=tuple((noise[3:6] * 0.002).tolist()),
            foot_force_n=tuple((self._foot_n + noise[6:] * 0.5).tolist()),
            time_us=round(world.time_s * 1e6),
            temperatures_c=tuple(world.health.temperatures_c.tolist()),
            battery_percent=world.health.battery_percent,
            faults=world.health.messages,
            holding=world.holding,
        )
