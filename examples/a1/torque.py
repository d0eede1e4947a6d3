"""Drive an A1's motor by torque: a spring of our own keeps the right front thigh at an angle.

python torque.py                                   the simulated robot, which hangs
python torque.py "a1://192.168.123.10?level=low"   a robot: hang it up first
"""

import asyncio
import sys

import rote
from rote import LowState, MotorCmd, MotorCmds

THIGH = 1  # of the right front leg, FR
GOAL_RAD, STIFFNESS_NM_RAD, DAMPING_NM_S_RAD, MOST_NM = 1.1, 10.0, 1.0, 5.0
END_S = 3.0


async def main(url: str) -> None:
    async with rote.connect_a1(url) as robot:
        assert robot.state is not None
        start = robot.state.joints_rad
        held = [MotorCmd(q_rad=q, dq_rad_s=0.0, kp_nm_rad=40.0, kd_nm_s_rad=2.0) for q in start]

        def step(state: LowState, seconds: float) -> MotorCmds | None:
            if seconds > END_S:
                return None
            motor = state.motors[THIGH]
            torque = STIFFNESS_NM_RAD * (GOAL_RAD - motor.q_rad) - DAMPING_NM_S_RAD * motor.dq_rad_s
            pulled = MotorCmd(tau_nm=min(max(torque, -MOST_NM), MOST_NM))
            return MotorCmds.of([*held[:THIGH], pulled, *held[THIGH + 1 :]])

        stats = await robot.control(step)
        robot.modes.damp()  # the last command is kept, and an unsupervised torque is no way to end
        angle = robot.state.joints_rad[THIGH]
        print(f"{stats.ticks} steps; the thigh is at {angle:.2f} rad, wanted {GOAL_RAD:.2f}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["sim://a1?level=low"]))
