"""What differs from one G1's software and hardware to another's, as profiles to choose from.

The simulated body always has 29 joints. Where a profile is that of a robot with 23, the missing
ones of waist and wrists are there and simply not moved by its factory actions.
"""

from dataclasses import dataclass

from rote.model.g1 import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Firmware:
    """How a robot of one version behaves."""

    version: str
    signalling: int
    """How the first answer to a WebRTC client is wrapped: 2 one key for all, 3 a key per robot."""
    answers_everybody: bool
    """Whether it answers a search for any robot, or only one that names its serial number."""
    mode_machine: int
    """Which hardware it is; see `rote.wire.lowstate.MACHINES`."""
    standing: Mode
    """Where it stands balanced after a usual start."""
    running: Mode
    """The id of its running mode; it does not know the other."""
    ignored: frozenset[Mode] = frozenset()
    """Modes it says yes to and does not go to."""


PROFILES: dict[str, Firmware] = {
    profile.version: profile
    for profile in (
        Firmware(
            version="1.4.7",
            signalling=2,
            answers_everybody=True,
            mode_machine=4,
            standing=Mode.WALK,
            running=Mode.RUN,
        ),
        Firmware(
            version="1.5.3",
            signalling=3,
            answers_everybody=False,
            mode_machine=5,
            standing=Mode.WALK_WAIST,
            running=Mode.RUN_29,
            ignored=frozenset({Mode.WALK}),
        ),
    )
}
DEFAULT = PROFILES["1.4.7"]
