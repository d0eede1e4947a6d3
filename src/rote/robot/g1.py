"""A Unitree G1, real or simulated: teach it by hand, list, play and stop."""

from rote.robot.message_robot import MessageRobot


class G1(MessageRobot):
    """One connected G1. `rote.connect` returns it connected; there is no unconnected one."""
