"""Drive an A1's motors by position: the right front leg goes to a pose, then swings.

python position.py                                   the simulated robot, which hangs
python position.py "a1://192.168.123.10?level=low"   a robot: hang it up first
"""

import asyncio
import math
import sys

import rote
from rote import LowState, MotorCmds

THIGH, CALF = 1, 2  # of the right front leg, FR
MIDDLE_RAD = {THIGH: 1.2, CALF: -2.0}
SWING_RAD = {THIGH: 0.3, CALF: -0.4}
REACHED_S, END_S = 2.0, 6.0


async def main(url: str) -> None:
    async with rote.connect_a1(url) as robot:
        assert robot.state is not None
        start = robot.state.joints_rad  # the other legs stay where they are

        def step(state: LowState, seconds: float) -> MotorCmds | None:
            if seconds > END_S:
                return None
            goal = list(start)
            for joint, middle in MIDDLE_RAD.items():
                share = min(seconds / REACHED_S, 1.0)
                goal[joint] += share * (middle - start[joint])
                swing = math.sin(2 * math.pi * max(seconds - REACHED_S, 0.0) / 2.0)
                goal[joint] += SWING_RAD[joint] * swing
            return MotorCmds.servo(q_rad=goal, dq_rad_s=0.0, kp_nm_rad=40.0, kd_nm_s_rad=2.0)

        stats = await robot.control(step)  # 500 times a second
        now = robot.state.joints_rad
        print(f"{stats.ticks} steps; the thigh is at {now[THIGH]:.2f}, the calf at {now[CALF]:.2f}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["sim://a1?level=low"]))
