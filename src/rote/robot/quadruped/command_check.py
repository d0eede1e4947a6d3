"""Checks of a user's `HighCmd` or `LowCmd` before it is sent.

Every number must be finite and within the robot's range, and every field must exist in the frame.
Commands that the robot's state forbids are refused: walking while it lies, sinking while it stands,
motors that would jump. Dangerous commands (flips, battery off) need `force`.
"""

import math
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError
from rote.robot.quadruped import commands as a1_commands
from rote.robot.quadruped.commands import Gait, HighMode
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
STUNT_MODES = range(9, 14)
"""Stunt modes: a backflip, a jump, a stand on the hind legs, two dances."""
_OBSTACLE_GAIT = 4
_ON_FEET_MODES = (HighMode.STAND, HighMode.WALK, HighMode.WALK_TO)
_MAX_SPEED_LEVEL = 2


class ObservedState(NamedTuple):
    """The robot's position and posture, as its walking controller reports them."""

    position_m: tuple[float, float]
    lies: bool
    """Whether it lies, or its legs are soft."""
    stands: bool


def check_high(
    command: HighCmd | ScaledHighCmd,
    dialect: Dialect,
    observed: ObservedState,
    *,
    force: bool = False,
) -> None:
    """Raise `BadRequestError` if the command must not be sent to the walking controller."""
    wire.encode(command, dialect)  # refuses NaN, and fields that the frame does not have
    _check_header(command, dialect, force=force)
    _check_remote(command.remote)
    _check_mode(command.mode, dialect, observed, force=force)
    if isinstance(command, ScaledHighCmd):
        # Speeds and height are fractions here; the codec has refused values outside -1 to 1.
        _check_range("foot_raise_height", command.foot_raise_height, -1.0, 1.0)
        a1_commands.check_ranges(
            roll_rad=command.roll_rad, pitch_rad=command.pitch_rad, yaw_rad=command.yaw_rad
        )
        return
    _check_numbers(command, dialect, observed)
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
    for index in np.flatnonzero((modes != SERVO) & (modes != BRAKE)):  # the first one raises
        raise BadRequestError(
            f"motor {index} has the unknown mode {modes[index]:#04x}",
            f"Use {SERVO:#04x} to drive it, {BRAKE:#04x} to brake it.",
        )
    if command.bms is not None and command.bms.off:
        raise BadRequestError(
            "this switches the battery off while the motors are driven", "Leave the battery on."
        )
    limited = safety.limit(command.motors)
    check_no_jump(limited, safety, state.motors)
    return command._replace(motors=limited)


def check_no_jump(motors: MotorCmds, safety: Safety, now: MotorStates) -> None:
    """Raise `BadRequestError` if a motor would exceed its torque limit at once and jump."""
    max_torque_nm = safety.limits.torque_nm
    if max_torque_nm is None:
        return
    legs = slice(0, LEG_MOTORS)
    target_rad, target_rad_s = motors.q_rad[legs], motors.dq_rad_s[legs]
    has_position = target_rad != np.float32(POSITION_OFF_RAD)
    has_velocity = target_rad_s != np.float32(VELOCITY_OFF_RAD_S)
    error_rad = np.where(has_position, target_rad - now.q_rad[legs], 0.0)
    velocity_error_rad_s = np.where(has_velocity, target_rad_s - now.dq_rad_s[legs], 0.0)
    # The torque that each motor's own controller would apply at once.
    torque_nm = (
        motors.tau_nm[legs]
        + motors.kp_nm_rad[legs] * error_rad
        + motors.kd_nm_s_rad[legs] * velocity_error_rad_s
    )
    torque_nm = np.where(motors.mode[legs] == SERVO, torque_nm, 0.0)
    worst = int(np.abs(torque_nm).argmax())
    if not abs(torque_nm[worst]) <= max_torque_nm:  # true for NaN too
        raise BadRequestError(
            f"{safety.joint_name(worst)} would jump: it is {error_rad[worst]:.2f} rad from "
            f"its target, which needs {torque_nm[worst]:.0f} N.m at once; at most "
            f"{max_torque_nm:g} N.m is allowed",
            "Approach the target softly first, with move_to or in small steps, or use "
            "less stiffness.",
        )


def _check_header(command: Command, dialect: Dialect, *, force: bool) -> None:
    if command.header is None:
        return
    expected_level = BY_TYPE[type(command), dialect].header.level
    if command.header.level != expected_level and not force:
        raise BadRequestError(
            f"a {type(command).__name__} must have the level flag {expected_level:#04x} here, not "
            f"{command.header.level:#04x}",
            "Leave the header out. Other flags trigger stunts such as a backflip; to "
            "send one on purpose: force=True.",
        )


def _check_remote(remote: bytes) -> None:
    remote_fields = Remote.unpack(remote)
    for stick in ("left_x", "left_y", "right_x", "right_y", "l2"):
        _check_range(f"remote.{stick}", getattr(remote_fields, stick), -1.0, 1.0)


def _check_mode(mode: int, dialect: Dialect, observed: ObservedState, *, force: bool) -> None:
    known_modes = {*HighMode, *STUNT_MODES}
    if dialect is Dialect.A1_3_2:
        known_modes = {HighMode.IDLE, HighMode.STAND, HighMode.WALK}
    if mode not in known_modes:
        raise BadRequestError(
            f"mode {mode:d} does not exist in dialect {dialect.value}",
            f"Use one of {', '.join(map(str, sorted(map(int, known_modes))))}.",
        )
    if force:
        return
    if mode in STUNT_MODES:
        raise BadRequestError(
            f"mode {mode:d} is a flip, a jump or a dance",
            "Make room and stand back, then send it with force=True.",
        )
    if mode in _ON_FEET_MODES and observed.lies:
        raise BadRequestError(
            "the robot lies, or its legs are soft: it cannot walk or pose",
            "Make it get up first: await robot.modes.get_up().",
        )
    if mode == HighMode.DAMP and observed.stands:
        raise BadRequestError(
            "the robot stands, and would sink to the ground",
            "Lay it down first (mode 5), or send it with force=True. In an emergency call "
            "robot.modes.damp().",
        )


def _check_numbers(command: HighCmd, dialect: Dialect, observed: ObservedState) -> None:
    max_gait = Gait.STAIRS if dialect is Dialect.A1_3_3 else _OBSTACLE_GAIT
    _check_range("gait", command.gait, 0, max_gait)
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
        axes = zip(command.position_m, observed.position_m, strict=True)
        for axis, (goal_m, now_m) in enumerate(axes):
            low_m, high_m = now_m - MAX_WALK_TO_M, now_m + MAX_WALK_TO_M
            _check_range(f"position_m[{axis}]", goal_m, low_m, high_m)
    else:
        a1_commands.check_ranges(yaw_rad=yaw)


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # NaN fails this comparison too
        raise BadRequestError(f"{name} {value:g} is out of range", f"Choose {low:g} to {high:g}.")
