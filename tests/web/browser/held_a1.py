"""A simulated A1 at an address, whose legs somebody holds, all of them, whenever they are soft."""

import asyncio
import json
import sys
from pathlib import Path

import numpy as np

from rote.model.a1 import A1_STAND_RAD
from rote.sim.quadruped.simulator import HIGH_PORT, LOW_PORT, A1Simulator
from rote.sim.quadruped.world import A1World

sys.path.insert(0, str(Path(__file__).parents[2]))

from a1_hand import Hand


async def _simulate(host: str) -> None:
    world = A1World(start="stand")
    world.attach(Hand(np.array(A1_STAND_RAD)))
    async with A1Simulator(world, host, high_port=HIGH_PORT, low_port=LOW_PORT):
        print(json.dumps({"url": f"a1://{host}"}), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_simulate(sys.argv[1]))
