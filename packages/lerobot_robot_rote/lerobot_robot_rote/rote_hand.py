"""A person's hand as LeRobot's teleoperator: the robot's own arms are soft, and their pose is the
action.
"""

import logging
import time
from typing import Any

from lerobot.teleoperators.teleoperator import Teleoperator

from lerobot_robot_rote.config_rote_hand import RoteHandConfig
from lerobot_robot_rote.driver import Driver
from lerobot_robot_rote.pairing import PAIRING

_log = logging.getLogger("rote")


class RoteHand(Teleoperator):
    """Lead the arms of the robot of type `rote` by hand: they are soft while both are connected."""

    config_class = RoteHandConfig
    name = "rote_hand"

    def __init__(self, config: RoteHandConfig) -> None:
        super().__init__(config)
        self.config = config
        self._connected = False

    @property
    def action_features(self) -> dict[str, type]:
        """The joints that are led: those that the robot plays."""
        return {} if PAIRING.driver is None else dict.fromkeys(PAIRING.driver.played, float)

    @property
    def feedback_features(self) -> dict[str, type]:
        """None: the person feels the arms."""
        return {}

    @property
    def is_connected(self) -> bool:
        """Whether it leads the arms, or waits for the robot."""
        return self._connected

    @property
    def is_calibrated(self) -> bool:
        """Always: there is nothing to calibrate."""
        return True

    def calibrate(self) -> None:
        """Do nothing: there is nothing to calibrate."""

    def configure(self) -> None:
        """Do nothing: there is nothing to set."""

    def connect(self, calibrate: bool = True) -> None:
        """Make the arms soft: now, or as soon as the robot is connected."""
        PAIRING.hand_comes(self._soften)
        self._connected = True

    def _soften(self, driver: Driver) -> None:
        if not self.config.script:
            _log.warning("Hold the arms: they get soft in %g s.", self.config.ready_s)
            time.sleep(self.config.ready_s)
        driver.soften(self.config.name, self.config.script, self.config.script_s)
        _log.warning("The arms are soft.")

    def get_action(self) -> dict[str, Any]:
        """Return where the arms have been led to. Raises what ended the teaching."""
        if PAIRING.driver is None:
            raise RuntimeError("a rote_hand leads a robot of the type rote, and none is connected")
        return dict(PAIRING.driver.led())

    def send_feedback(self, feedback: dict[str, Any]) -> None:
        """Do nothing: the person feels the arms."""

    def disconnect(self) -> None:
        """Let the arms hold again."""
        if not self._connected:
            return
        PAIRING.meet, self._connected = None, False
        if PAIRING.driver is not None:
            PAIRING.driver.harden()
