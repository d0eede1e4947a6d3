"""Commands to the walking controller of an A1 or Go1, in SI units, for every dialect.

Dialect 3.2 takes fractions of a maximum instead of speeds. The maximum speeds are from a public
report; the maximum body height is a guess. The ranges of dialect 3.2 are used for all dialects.
"""

import math

from rote.errors import BadRequestError, UnsupportedError
from rote.named_enum import NamedIntEnum
from rote.text import Act, Text
from rote.wire.a1.values import Command, Dialect, HighCmd, HighState, ScaledHighCmd


class HighMode(NamedIntEnum):
    """The modes of the walking controller; those above 2 are not in dialect 3.2."""

    IDLE = 0
    STAND = 1
    WALK = 2
    WALK_TO = 3
    LIE_DOWN = 5
    GET_UP = 6
    DAMP = 7
    RECOVER = 8


class Gait(NamedIntEnum):
    """The gaits; not in dialect 3.2."""

    TROT = 1
    RUN = 2
    STAIRS = 3


FORWARD_M_S, BACKWARD_M_S, SIDEWAYS_M_S, TURN_RAD_S = 1.0, 0.7, 0.4, 2.0 * math.pi / 3.0
"""The speeds that a fraction of 1 means in dialect 3.2, according to a public report."""
HEIGHT_M = 0.1
"""The body height that a fraction of 1 means in dialect 3.2, relative to the usual one; a guess."""
SPANS: dict[str, tuple[float, float, str]] = {
    "forward_m_s": (-BACKWARD_M_S, FORWARD_M_S, "m/s"),
    "left_m_s": (-SIDEWAYS_M_S, SIDEWAYS_M_S, "m/s"),
    "turn_rad_s": (-TURN_RAD_S, TURN_RAD_S, "rad/s"),
    "body_height_m": (-HEIGHT_M, 0.05, "m"),
    "foot_raise_m": (-0.06, 0.06, "m"),
    "roll_rad": (-0.5, 0.5, "rad"),
    "pitch_rad": (-0.45, 0.45, "rad"),
    "yaw_rad": (-0.5, 0.5, "rad"),
}
"""Lower limit, upper limit and unit of each value; heights are relative to the usual one."""


def check_ranges(**values: float) -> None:
    """Raise `BadRequestError` for the first value outside its range; see `SPANS` for the names."""
    for name, value in values.items():
        low, high, unit = SPANS[name]
        if not low <= value <= high:  # NaN fails this comparison too
            raise BadRequestError(
                f"{name} {value:g} is out of range", f"Choose {low:g} to {high:g} {unit}."
            )


def walk_command(
    dialect: Dialect,
    velocity: tuple[float, float, float],
    *,
    gait: Gait = Gait.TROT,
    body_height_m: float = 0.0,
    foot_raise_m: float = 0.0,
) -> Command:
    """Return the command to walk at `velocity`: forward (m/s), left (m/s), turning left (rad/s)."""
    forward, left, turn = velocity
    check_ranges(forward_m_s=forward, left_m_s=left, turn_rad_s=turn)
    check_ranges(body_height_m=body_height_m, foot_raise_m=foot_raise_m)
    if dialect is Dialect.A1_3_2:
        if gait is not Gait.TROT or foot_raise_m:
            raise UnsupportedError("choose a gait or a foot height", "dialect 3.2")
        return ScaledHighCmd(
            mode=HighMode.WALK,
            forward=forward / (FORWARD_M_S if forward > 0 else BACKWARD_M_S),
            left=left / SIDEWAYS_M_S,
            turn=turn / TURN_RAD_S,
            body_height=body_height_m / HEIGHT_M,
        )
    return HighCmd(
        mode=HighMode.WALK,
        gait=gait,
        velocity_m_s=(forward, left),
        yaw_speed_rad_s=turn,
        body_height_m=body_height_m,
        foot_raise_height_m=foot_raise_m,
    )


def pose_command(
    dialect: Dialect,
    *,
    roll_rad: float = 0.0,
    pitch_rad: float = 0.0,
    yaw_rad: float = 0.0,
    body_height_m: float = 0.0,
) -> Command:
    """Return the command to stand on the spot with the body turned or lowered."""
    check_ranges(
        roll_rad=roll_rad, pitch_rad=pitch_rad, yaw_rad=yaw_rad, body_height_m=body_height_m
    )
    if dialect is Dialect.A1_3_2:
        return ScaledHighCmd(
            mode=HighMode.STAND,
            roll_rad=roll_rad,
            pitch_rad=pitch_rad,
            yaw_rad=yaw_rad,
            body_height=body_height_m / HEIGHT_M,
        )
    return HighCmd(
        mode=HighMode.STAND,
        euler_rad=(roll_rad, pitch_rad, yaw_rad),
        body_height_m=body_height_m,
    )


def mode_command(dialect: Dialect, requested: HighMode) -> Command:
    """Return the command that enters a mode without parameters. Raises `UnsupportedError` for modes
    that dialect 3.2 lacks.
    """
    if dialect is Dialect.A1_3_2:
        if requested > HighMode.WALK:
            verb = requested.name.lower().replace("_", " ")
            raise UnsupportedError(f"be commanded to {verb}", "dialect 3.2")
        return ScaledHighCmd(mode=requested)
    return HighCmd(mode=requested)


STANDING_HEIGHT_M = 0.2
"""Body height in metres above which a robot stands."""


def is_down(state: HighState) -> bool:
    """Whether the robot lies, or its legs are soft."""
    return state.mode in (HighMode.LIE_DOWN, HighMode.DAMP)


def is_standing(state: HighState) -> bool:
    """Whether the walking controller carries the robot on its feet."""
    return not is_down(state) and state.body_height_m > STANDING_HEIGHT_M


def make_standing_robot_error(remedy: str = "") -> BadRequestError:
    """Return the error for taking over the motors of a standing robot."""
    return BadRequestError(
        "the robot stands, and would sink if its motors were taken over",
        remedy
        or Text(
            "Lay it down first, even if it hangs, so that its legs are soft: {lie}.",
            lie=Act.LIE_DOWN,
        ),
    )


def format_mode(mode: int) -> str:
    """Return a mode of the walking controller as text."""
    try:
        return HighMode(mode).name.lower().replace("_", " ")
    except ValueError:
        return f"mode {mode:d}"
