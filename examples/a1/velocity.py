"""Drive an A1's motor by velocity: the right front calf goes to and fro at a constant speed.

python velocity.py                                   the simulated robot, which hangs
python velocity.py "a1://192.168.123.10?level=low"   a robot: hang it up first
"""

import asyncio
import sys

import rote
from rote import LowState, MotorCmd, MotorCmds

CALF = 2  # of the right front leg, FR
SPEED_RAD_S, BETWEEN_RAD = 1.5, (-2.2, -1.4)
END_S = 4.0


async def main(url: str) -> None:
    async with rote.connect_a1(url) as robot:
        assert robot.state is not None
        start = robot.state.joints_rad
        held = [MotorCmd(q_rad=q, dq_rad_s=0.0, kp_nm_rad=40.0, kd_nm_s_rad=2.0) for q in start]
        turns: list[float] = [-SPEED_RAD_S]

        def step(state: LowState, seconds: float) -> MotorCmds | None:
            if seconds > END_S:
                return None
            angle = state.motors[CALF].q_rad
            if not BETWEEN_RAD[0] < angle < BETWEEN_RAD[1]:
                wanted = SPEED_RAD_S if angle < BETWEEN_RAD[0] else -SPEED_RAD_S
                if wanted != turns[-1]:
                    turns.append(wanted)
            # Without q_rad no position is held; the damping times the error in speed is the torque.
            moving = MotorCmd(dq_rad_s=turns[-1], kd_nm_s_rad=4.0)
            return MotorCmds.of([*held[:CALF], moving, *held[CALF + 1 :]])

        stats = await robot.control(step)
        robot.modes.damp()  # the last command is kept, and this one would go on to turn the calf
        print(f"{stats.ticks} steps, turned round {len(turns) - 1} times")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["sim://a1?level=low"]))
