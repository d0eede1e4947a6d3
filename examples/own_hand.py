"""Bring your own hand: anything that says where it wants the joints can teach the robot."""

import asyncio
import math

import numpy as np
from numpy.typing import NDArray

import rote
from rote.model.g1 import G1_29

ELBOW = G1_29.names.index("left_elbow_joint")


class NodAtTheElbow:
    """Holds the left elbow and swings it; lets go after two seconds."""

    def grip(self, time_s: float) -> NDArray[np.float64] | None:
        """Return the wanted angles, NaN for the joints this hand does not hold."""
        if time_s > 2:
            return None
        wanted = np.full(len(G1_29.joints), np.nan)
        wanted[ELBOW] = G1_29.rest_rad[ELBOW] - 0.4 * (1 - math.cos(math.pi * time_s))
        return wanted


async def main() -> None:
    world = rote.World(rote.Store(":memory:"))
    async with rote.connect("sim://g1", world=world) as robot:
        async with robot.teach("nod") as take:
            world.attach(NodAtTheElbow())
            await asyncio.sleep(2)
        swing = np.ptp(take.track.joints_rad[:, ELBOW])
        print(f"the elbow moved {swing:.2f} rad")
        await robot.play("nod", speed=2)
    world.store.close()


asyncio.run(main())
