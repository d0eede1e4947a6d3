"""LeRobot's robot type `rote`, Unitree robots through rote, and its teleoperator `rote_hand`, which
leads their arms by hand.

LeRobot finds this package by its name and imports it; that registers both types.
"""

from lerobot_robot_rote.config_rote_hand import RoteHandConfig
from lerobot_robot_rote.config_rote_robot import RoteRobotConfig
from lerobot_robot_rote.rote_hand import RoteHand
from lerobot_robot_rote.rote_robot import RoteRobot

__all__ = ["RoteHand", "RoteHandConfig", "RoteRobot", "RoteRobotConfig"]
