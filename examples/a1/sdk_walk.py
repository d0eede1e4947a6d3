"""A program for Unitree's A1 library, brought over: its names, its three loops, v3.2's fields.

python sdk_walk.py                   the simulated robot inside this process
python sdk_walk.py 192.168.123.161   a robot that speaks v3.2
"""

import sys
import time

from rote import LoopFunc
from rote.compat.legged_sdk import HIGHLEVEL, UDP, HighCmd, HighState

DT = 0.01


class Robot:
    """The class of the documents: a `UDP`, a tick length, and a counter."""

    def __init__(self, udp: UDP) -> None:
        self.udp, self.ticks = udp, 0
        self.cmd, self.state = HighCmd(), HighState()
        udp.InitCmdData(self.cmd)

    def control(self) -> None:
        """Decide what to ask for next."""
        self.udp.GetRecv(self.state)
        self.ticks += 1
        self.cmd.mode = 2 if self.ticks * DT < 2.0 else 0  # walk, then stand
        self.cmd.forwardSpeed = 0.3 if self.cmd.mode == 2 else 0.0  # a share of the most
        self.udp.SetSend(self.cmd)


URL = f"a1://{sys.argv[1]}" if sys.argv[1:] else "sim://a1?dialect=3.2"
with UDP(HIGHLEVEL, url=URL) as udp:  # or, as in C++: UDP(HIGHLEVEL, 8090, targetIP, targetPort)
    robot = Robot(udp)
    loops = [
        LoopFunc("udp_send", DT, 0, udp.Send),
        LoopFunc("udp_recv", DT, 0, udp.Recv),
        LoopFunc("control", DT, 0, robot.control),
    ]
    for loop in loops:
        loop.start()
    time.sleep(3)
    for loop in loops:
        loop.shutdown()
    print(f"walked {robot.state.forwardPosition:.2f} m in {robot.ticks} ticks")
