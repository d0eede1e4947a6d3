"""A simulated A1 that remembers what it was told, and a client connected to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from rote.connection import connect_a1
from rote.robot.quadruped.robot import A1
from rote.robot.quadruped.safety import Safety
from rote.session.a1 import Level
from rote.sim.quadruped.simulator import A1Simulator
from rote.sim.quadruped.world import A1World
from rote.wire.a1.motors import BRAKE
from rote.wire.a1.values import Command, Dialect, HighCmd, LowCmd

DAMPING_MODE = 7


class LoggedWorld(A1World):
    """Remembers each command and when it came, by the robot's own clock."""

    def __init__(self, *, dialect: Dialect = Dialect.A1_3_3_4, start: str = "stand") -> None:
        super().__init__(dialect=dialect, start=start)
        self.told: list[tuple[float, Command]] = []

    def obey(self, command: Command) -> bool:
        self.told.append((self.time_s, command))
        return super().obey(command)

    @property
    def newest(self) -> Command:
        return self.told[-1][1]

    def damped_for_s(self) -> float:
        """How long the newest commands, without a gap, have asked for damping."""
        since = None
        for time_s, command in reversed(self.told):
            if not is_damping(command):
                break
            since = time_s
        return 0.0 if since is None else self.told[-1][0] - since


def is_damping(command: Command) -> bool:
    if isinstance(command, LowCmd):
        return bool((command.motors.mode[:12] == BRAKE).all())
    return isinstance(command, HighCmd) and command.mode == DAMPING_MODE


class Pair(NamedTuple):
    world: LoggedWorld
    simulator: A1Simulator
    robot: A1


@asynccontextmanager
async def pair(
    level: Level = Level.HIGH,
    *,
    dialect: Dialect = Dialect.A1_3_3_4,
    start: str = "stand",
    sender: str = "loop",
    safety: Safety | None = None,
) -> AsyncIterator[Pair]:
    """A robot and its client in one loop."""
    world = LoggedWorld(dialect=dialect, start=start)
    async with A1Simulator(world) as simulator:
        url = f"{simulator.url(level)}&sender={sender}"
        async with connect_a1(url, safety=safety) as robot:
            yield Pair(world, simulator, robot)
