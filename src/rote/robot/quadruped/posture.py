"""Whether a quadruped stands or lies, judged by what its walking controller reports."""

from rote.errors import BadRequestError
from rote.robot.quadruped.commands import HighMode
from rote.text import Act, Text
from rote.wire.a1.values import HighState

UP_M = 0.2
"""A robot whose body is higher than this stands, in metres."""


def is_down(state: HighState) -> bool:
    """Whether the walking controller reports that it lies, or that its legs are soft."""
    return state.mode in (HighMode.LIE_DOWN, HighMode.DAMP)


def stands(state: HighState) -> bool:
    """Whether the walking controller carries the robot on its feet."""
    return not is_down(state) and state.body_height_m > UP_M


def standing_robot_error(remedy: str = "") -> BadRequestError:
    """Return the error for taking over the motors of a standing robot."""
    return BadRequestError(
        "the robot stands, and would sink if its motors were taken over",
        remedy
        or Text(
            "Lay it down first: {lie}. A hanging one too: its legs must be soft.",
            lie=Act.LIE_DOWN,
        ),
    )


def mode_text(mode: int) -> str:
    """Return a mode of the walking controller as text."""
    try:
        return HighMode(mode).name.lower().replace("_", " ")
    except ValueError:
        return f"mode {mode:d}"
