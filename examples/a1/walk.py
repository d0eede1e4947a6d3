"""Walk an A1 by commands of your own: look round, walk with lights on, walk to a place, lie down.

python walk.py                          the simulated robot inside this process
python walk.py a1://192.168.123.161     a robot; dialect 3.3 or later
"""

import asyncio
import sys

import rote
from rote import HighCmd, Led

RED = (Led(r=255),) * 4
PLAN = (
    (1.0, HighCmd(mode=1, euler_rad=(0.0, 0.2, 0.0))),  # roll, pitch, yaw
    (1.0, HighCmd(mode=1, body_height_m=-0.05)),
    (2.0, HighCmd(mode=2, gait=1, velocity_m_s=(0.3, 0.0), foot_raise_height_m=0.02, led=RED)),
    (2.0, HighCmd(mode=2, gait=1, velocity_m_s=(0.0, 0.1), yaw_speed_rad_s=0.5)),
    (4.0, HighCmd(mode=3, position_m=(0.5, 0.0))),  # in metres, from where it was switched on
)


async def main(url: str) -> None:
    async with rote.connect_a1(url) as robot:
        await robot.modes.get_up()
        for seconds, command in PLAN:
            robot.send_command(command)  # until the next one
            await asyncio.sleep(seconds)
            told = robot.status()
            print(f"{told.mode}: at {told.place_m}, {told.height_m:.2f} m high")
        await robot.stop()
        await robot.modes.lie_down()
        await asyncio.sleep(2)
        print("it lies")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["sim://a1"]))
