"""What can be said about a robot of the type `rote` on LeRobot's command line."""

from dataclasses import dataclass

from lerobot.robots.config import RobotConfig


@RobotConfig.register_subclass("rote")
@dataclass(kw_only=True)
class RoteRobotConfig(RobotConfig):
    """`--robot.url=dds://eth0 --robot.contact=false`."""

    url: str = "sim://g1"
    """Which robot, as rote names them."""
    contact: bool = True
    """Refuse poses in which the robot would touch itself; that takes some milliseconds each."""
    rate_hz: float = 250.0
    """Poses a second that are sent to the robot, however many actions come."""
