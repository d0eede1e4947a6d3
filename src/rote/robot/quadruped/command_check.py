"""Checks of a user's `HighCmd` or `LowCmd` before it is sent.

Every number must be finite and within the robot's range. Fields that the frame does not have are
refused, and so is what the robot's state forbids: walking while it lies, sinking while it stands,
motors that would jump. Deliberately dangerous commands (flips, battery off) need `force`.
"""

import math
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError
from rote.robot.quadruped import commands as a1_commands
from rote.robot.quadruped.commands import HighMode
from rote.robot.quadruped.safety import Safety
from rote.wire.a1 import codec as wire
from rote.wire.a1.formats import BY_TYPE
from rote.wire.a1.motors import (
    BRAKE,
    LEG_MOTORS,
    POSITION_OFF_RAD,
    SERVO,
    VELOCITY_OFF_RAD_S,
    MotorCmds,
    MotorStates,
)
from rote.wire.a1.values import (
    Command,
    Dialect,
    HighCmd,
    LowCmd,
    LowState,
    Remote,
    ScaledHighCmd,
)

MAX_WALK_TO_M = 50.0
"""Maximum distance to a position that a robot is sent to, per axis."""
SHOWS = range(9, 14)
"""Stunt modes: a backflip, a jump, a stand on the hind legs, two dances."""
_OBSTACLE_GAIT = 4
_ON_FEET = (HighMode.STAND, HighMode.WALK, HighMode.WALK_TO)
_MAX_SPEED_LEVEL = 2


class ObservedState(NamedTuple):
    """The robot's position and posture, as its walking controller reports them."""

    place_m: tuple[float, float]
    lies: bool
    """It lies, or its legs are soft."""
    stands: bool


def check_high(
    command: HighCmd | ScaledHighCmd, dialect: Dialect, seen: ObservedState, *, force: bool = False
) -> None:
    """Raise `BadRequestError` if this must not be sent to the walking controller."""
    wire.encode(command, dialect)  # refuses NaN, and fields that the frame does not have
    _check_header(command, dialect, force=force)
    _check_remote(command.remote)
    _check_mode(command.mode, dialect, seen, force=force)
    if isinstance(command, ScaledHighCmd):
        # Speeds and height are fractions here; the codec has refused values outside -1 to 1.
        _check_range("foot_raise_height", command.foot_raise_height, -1.0, 1.0)
        a1_commands.check_ranges(
            roll_rad=command.roll_rad, pitch_rad=command.pitch_rad, yaw_rad=command.yaw_rad
        )
        return
    _check_numbers(command, dialect, seen)
    if command.bms is not None and command.bms.off and not force:
        raise BadRequestError(
            "this switches the battery off, and the robot falls where it stands",
            "Lay it down first, then send it with force=True.",
        )


def check_low(command: LowCmd, dialect: Dialect, safety: Safety, state: LowState) -> LowCmd:
    """Return the command with its positions clipped to the joints' limits.

    Raise `BadRequestError` for anything else that is not allowed.
    """
    wire.encode(command, dialect)
    _check_header(command, dialect, force=False)
    _check_remote(command.remote)
    modes = command.motors.mode[:LEG_MOTORS]
    for index in np.flatnonzero((modes != SERVO) & (modes != BRAKE)):
        raise BadRequestError(
            f"motor {index} has mode {modes[index]:#04x}, whose meaning is not known",
            f"Use {SERVO:#04x} to drive it, {BRAKE:#04x} to brake it.",
        )
    if command.bms is not None and command.bms.off:
        raise BadRequestError("motors that are driven must not lose their battery", "Leave it on.")
    limited = safety.limit(command.motors)
    check_no_jump(limited, safety, state.motors)
    return command._replace(motors=limited)


def check_no_jump(motors: MotorCmds, safety: Safety, now: MotorStates) -> None:
    """Raise `BadRequestError` if a motor would at once exceed its torque limit, and so jump."""
    most = safety.limits.torque_nm
    if most is None:
        return
    legs = slice(0, LEG_MOTORS)
    q, dq = motors.q_rad[legs], motors.dq_rad_s[legs]
    far_rad = np.where(q == np.float32(POSITION_OFF_RAD), 0.0, q - now.q_rad[legs])
    faster_rad_s = np.where(dq == np.float32(VELOCITY_OFF_RAD_S), 0.0, dq - now.dq_rad_s[legs])
    torque = (
        motors.tau_nm[legs]
        + motors.kp_nm_rad[legs] * far_rad
        + motors.kd_nm_s_rad[legs] * faster_rad_s
    )
    torque = np.where(motors.mode[legs] == SERVO, torque, 0.0)
    worst = int(np.abs(torque).argmax())
    if not abs(torque[worst]) <= most:
        raise BadRequestError(
            f"{safety.joint_name(worst)} would jump: it is {far_rad[worst]:.2f} rad from where it "
            f"is to be, and would give {torque[worst]:.0f} N.m at once, allowed {most:g} N.m",
            "Move there softly first, by move_to or in small steps, or ask with less stiffness.",
        )


def _check_header(command: Command, dialect: Dialect, *, force: bool) -> None:
    if command.header is None:
        return
    usual = BY_TYPE[type(command), dialect].header.level
    if command.header.level != usual and not force:
        raise BadRequestError(
            f"a {type(command).__name__} has the level flag {usual:#04x} here, "
            f"not {command.header.level:#04x}",
            "Leave the header out. Other flags do tricks, for example a backflip: force=True.",
        )


def _check_remote(remote: bytes) -> None:
    remote_fields = Remote.unpack(remote)
    for stick in ("left_x", "left_y", "right_x", "right_y", "l2"):
        _check_range(f"remote.{stick}", getattr(remote_fields, stick), -1.0, 1.0)


def _check_mode(mode: int, dialect: Dialect, seen: ObservedState, *, force: bool) -> None:
    known = {*HighMode, *SHOWS}
    if dialect is Dialect.A1_3_2:
        known = {HighMode.IDLE, HighMode.STAND, HighMode.WALK}
    if mode not in known:
        raise BadRequestError(
            f"mode {mode:d} means nothing in dialect {dialect.value}",
            f"There are {', '.join(map(str, sorted(map(int, known))))}.",
        )
    if force:
        return
    if mode in SHOWS:
        raise BadRequestError(
            f"mode {mode:d} is a flip, a jump or a dance",
            "Make room and stand back, then send it with force=True.",
        )
    if mode in _ON_FEET and seen.lies:
        raise BadRequestError(
            "the robot lies, or its legs are soft: it cannot walk or pose",
            "Let it get up first: await robot.modes.get_up().",
        )
    if mode == HighMode.DAMP and seen.stands:
        raise BadRequestError(
            "the robot stands, and would sink to the ground",
            "Lay it down (mode 5), or send it with force=True; robot.modes.damp() does it at once.",
        )


def _check_numbers(command: HighCmd, dialect: Dialect, seen: ObservedState) -> None:
    gaits = 3 if dialect is Dialect.A1_3_3 else _OBSTACLE_GAIT
    _check_range("gait", command.gait, 0, gaits)
    _check_range("speed_level", command.speed_level, 0, _MAX_SPEED_LEVEL)
    forward, left = command.velocity_m_s
    a1_commands.check_ranges(
        forward_m_s=forward,
        left_m_s=left,
        turn_rad_s=command.yaw_speed_rad_s,
        body_height_m=command.body_height_m,
        foot_raise_m=command.foot_raise_height_m,
    )
    roll, pitch, yaw = command.euler_rad
    a1_commands.check_ranges(roll_rad=roll, pitch_rad=pitch)
    if command.mode == HighMode.WALK_TO:
        _check_range("euler_rad[2]", yaw, -math.pi, math.pi)
        coordinates = zip(command.position_m, seen.place_m, strict=True)
        for axis, (goal, now) in enumerate(coordinates):
            _check_range(f"position_m[{axis}]", goal, now - MAX_WALK_TO_M, now + MAX_WALK_TO_M)
    else:
        a1_commands.check_ranges(yaw_rad=yaw)


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # not a number fails this, too
        raise BadRequestError(f"{name} {value:g} is out of range", f"Choose {low:g} to {high:g}.")
