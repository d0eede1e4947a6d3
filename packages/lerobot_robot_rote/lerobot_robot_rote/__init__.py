"""LeRobot's robot type `rote`: Unitree robots through rote, checked, and softly.

LeRobot finds this package by its name and imports it; that registers the type.
"""

from lerobot_robot_rote.config_rote_robot import RoteRobotConfig
from lerobot_robot_rote.rote_robot import RoteRobot

__all__ = ["RoteRobot", "RoteRobotConfig"]
