"""A robot as LeRobot knows it, on top of a connection of rote."""

from typing import Any

from lerobot.robots.robot import Robot

from lerobot_robot_rote.config_rote_robot import RoteRobotConfig
from lerobot_robot_rote.driver import Driver
from lerobot_robot_rote.pairing import PAIRING


class RoteRobot(Robot):
    """A Unitree robot through rote. Actions and observations have LeRobot's names of a G1's joints:
    `kLeftElbow.q`, in rad.
    """

    config_class = RoteRobotConfig
    name = "rote"

    def __init__(self, config: RoteRobotConfig) -> None:
        super().__init__(config)
        self.config = config
        self.cameras: dict[str, Any] = {}
        """LeRobot counts them; there are none."""
        self._driver = Driver(config.url, contact=config.contact, rate_hz=config.rate_hz)

    @property
    def observation_features(self) -> dict[str, type]:
        """Where every joint is."""
        return dict.fromkeys(self._driver.observed, float)

    @property
    def action_features(self) -> dict[str, type]:
        """The joints that are played: arms and waist yaw."""
        return dict.fromkeys(self._driver.played, float)

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self._driver.connected

    @property
    def is_calibrated(self) -> bool:
        """Always: the robot knows its own zero."""
        return True

    def calibrate(self) -> None:
        """Do nothing: the robot knows its own zero."""

    def configure(self) -> None:
        """Do nothing: the robot's own controller keeps it on its feet."""

    def connect(self, calibrate: bool = True) -> None:
        """Connect, and wait for the first report. Nothing moves yet; a hand that waits for the
        robot gets soft arms.
        """
        self._driver.open()
        try:
            PAIRING.robot_comes(self._driver)
        except BaseException:
            self.disconnect()
            raise

    def disconnect(self) -> None:
        """Let the arms hold, or return softly to rest, then close the connection."""
        if PAIRING.driver is self._driver:
            PAIRING.driver = None
        self._driver.close()

    def get_observation(self) -> dict[str, Any]:
        """Return where the joints are, in rad."""
        return dict(self._driver.positions())

    def send_action(self, action: dict[str, Any]) -> dict[str, Any]:
        """Go towards a pose; return what is followed. While a hand leads the arms, nothing moves.

        Raises `BadRequestError` for a key that is not a joint, or a joint of legs or waist that
        should move, and `UnsafeMotionError` for a pose that is not safe: then the arms hold.
        """
        return dict(self._driver.aim(action))
