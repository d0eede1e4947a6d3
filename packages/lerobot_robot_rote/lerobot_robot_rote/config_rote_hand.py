"""What can be said about the teleoperator `rote_hand` on LeRobot's command line."""

from dataclasses import dataclass

from lerobot.teleoperators.config import TeleoperatorConfig


@TeleoperatorConfig.register_subclass("rote_hand")
@dataclass(kw_only=True)
class RoteHandConfig(TeleoperatorConfig):
    """`--teleop.type=rote_hand --teleop.ready_s=5`."""

    ready_s: float = 3.0
    """How long a person has to take hold of the arms before they get soft."""
    name: str = "lerobot"
    """The robot records under this name while its arms are soft, and discards that in the end."""
    script: str = ""
    """A scripted hand leads the arms of a simulated robot, over and over: wave, bow, clap, drum."""
    script_s: float = 6.0
    """How long the script takes once."""
