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
    """The sensors of one robot; the same seed gives the same noise."""

    def __init__(self, build: Build, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        family = family_for(build)
        mass_kg = round(sum(mass.mass_kg for mass in family.masses(build)), 2)
        foot_n = mass_kg * GRAVITY_M_S2 / 4 if family.body.feet else 0.0  # by four sensors
        # Three accelerations, three angular speeds and four foot forces, in one array because
        # states are read often: their means, and the standard deviations of their noise.
        self._mean = np.array([0.0, 0.0, GRAVITY_M_S2, 0.0, 0.0, 0.0, *[foot_n] * 4])
        self._noise = np.array([0.02] * 3 + [0.002] * 3 + [0.5] * 4)

    def read(self, world: "World") -> RobotState:
        """Return the current state, with noise."""
        measured = (self._mean + self._random.standard_normal(10) * self._noise).tolist()
        return RobotState(
            mode=world.machine.mode,
            arms_soft=bool(world.body.soft),
            recording=world.recording,
            phase=world.phase,
            stopped_early=world.stopped_early,
            joints_rad=tuple(world.body.joints_rad.tolist()),
            velocities_rad_s=tuple(world.body.speeds_rad_s.tolist()),
            accelerometer_m_s2=tuple(measured[:3]),
            gyroscope_rad_s=tuple(measured[3:6]),
            foot_force_n=tuple(measured[6:]),
            time_us=round(world.time_s * 1e6),
            temperatures_c=tuple(world.health.temperatures_c.tolist()),
            battery_percent=world.health.battery_percent,
            faults=world.health.messages,
            holding=world.holding,
        )
