"""A process: one simulated robot on UDP, which writes down fifty times a second what it does.

python stage_robot.py LOG
"""

import asyncio
import json
import sys
import time

from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World

LOG_S = 0.02


async def main(log: str) -> None:
    world = World(Store(":memory:"), polite=True)
    simulator = Simulator(world)
    url = await simulator.serve_udp("127.0.0.1", 0)
    print(json.dumps({"event": "ready", "url": url}), flush=True)
    with open(log, "w", buffering=1) as file:  # noqa: ASYNC230, PTH123 - a line at a time
        while True:
            state = world.state()
            fastest = max(map(abs, state.velocities_rad_s), default=0.0)
            file.write(f"{time.monotonic():.3f} {int(state.phase)} {fastest:.3f}\n")
            await asyncio.sleep(LOG_S)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
