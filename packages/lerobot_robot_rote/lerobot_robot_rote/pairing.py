"""Where a robot and the hand that leads it meet.

LeRobot makes both from its command line, connects them in either order, and tells neither of the
other. One of its programs has one robot, so there is one place to meet.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lerobot_robot_rote.driver import Driver

Meet = Callable[[Driver], None]


@dataclass(slots=True)
class Pairing:
    """The robot that is connected, and what the hand does once there is one."""

    driver: Driver | None = None
    meet: Meet | None = None

    def robot_comes(self, driver: Driver) -> None:
        """Note the robot; a hand that waits for it leads it from now on."""
        self.driver = driver
        if self.meet is not None:
            self.meet(driver)

    def hand_comes(self, meet: Meet) -> None:
        """Note the hand; it leads the robot from now on, or once one is connected."""
        self.meet = meet
        if self.driver is not None:
            meet(self.driver)


PAIRING = Pairing()
"""The one of this process."""
