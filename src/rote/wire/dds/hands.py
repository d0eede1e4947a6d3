"""A hand's motors on DDS: `HandState_` read as far as teaching needs it, `HandCmd_` packed whole.

Both begin with a sequence of motors; a `HandState_` goes on with pressure sensors, IMU, voltages
and errors, a `HandCmd_` with 16 unused bytes.

The mode byte of a motor holds three numbers: its index in the hand (bits 0 to 3), its status (bits
4 to 6; 0 locked, 1 driven), and whether it relaxes by itself when the commands stop (bit 7). A
command has the motors of its hand, in their order, and nothing else. There is no CRC.
"""

import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rote.errors import BadRequestError, PayloadError
from rote.model.family import Hand
from rote.wire.cdr_layout import HEADER, check_header, format_record
from rote.wire.dds.lowlevel import MOTOR_COMMAND, MOTOR_READ, MOTOR_STATE

DRIVEN = 1
"""The status of a motor that follows commands; 0 is a locked one."""
_INDEX_BITS, _STATUS_BITS = 4, 3
_INDEX_MASK, _STATUS_MASK = (1 << _INDEX_BITS) - 1, (1 << _STATUS_BITS) - 1
_COUNT = struct.Struct("<4xI")
_READ_CODES = format_record(MOTOR_STATE, MOTOR_READ)
_WRITTEN_CODES = format_record(MOTOR_STATE, ("mode", *MOTOR_READ))
_COMMAND_CODES = format_record(MOTOR_COMMAND, ("mode", "q", "dq", "tau", "kp", "kd"))
_PRESSURE_SENSORS = 9
_AFTER_MOTORS = struct.Struct(f"<I{_PRESSURE_SENSORS * 104}x4f9fh2x4f2I2I")
_UPRIGHT = (1.0, *(0.0,) * 12)
_POWER = (24.0, 0.5, 24.0, 5.0)
_RESERVED = bytes(16)


def make_mode_byte(motor: int, *, status: int = DRIVEN, timeout: bool = True) -> int:
    """Return the mode byte of a motor from its index in the hand and its status.

    With `timeout` the motor relaxes by itself when the commands stop.
    """
    if not 0 <= motor <= _INDEX_MASK or not 0 <= status <= _STATUS_MASK:
        raise BadRequestError(f"invalid motor index {motor} or status {status} of a hand")
    return motor | status << _INDEX_BITS | timeout << _INDEX_BITS + _STATUS_BITS


class HandReading(NamedTuple):
    """What a hand reports about its joints, in the order of its messages."""

    joints_rad: tuple[float, ...]
    velocities_rad_s: tuple[float, ...]
    temperatures_c: tuple[float, ...]


class HandCommand(NamedTuple):
    """What a hand is commanded to do; numbers of its joints are in the order of its messages."""

    joints_rad: tuple[float, ...]
    stiffness_nm_rad: tuple[float, ...]
    damping_nm_s_rad: tuple[float, ...]
    driven: bool
    """Whether all of its motors follow commands."""
    timeout: bool
    """Whether all of them relax by themselves when the commands stop."""


# ---- state --------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _make_state_structs(count: int) -> tuple[struct.Struct, struct.Struct]:
    """Return the struct that reads the states of `count` motors, and the one that writes them.

    The first skips the CDR header and the number of motors.
    """
    return struct.Struct("<8x" + _READ_CODES * count), struct.Struct("<" + _WRITTEN_CODES * count)


def decode_state(data: bytes, hand: Hand) -> HandReading:
    """Return the state of a hand's joints from a `HandState_`."""
    _check_motors(data, hand, _READ_CODES)
    reader, _ = _make_state_structs(len(hand.joints))
    numbers = reader.unpack_from(data)  # position, velocity and two temperatures of each motor
    positions, velocities = numbers[0::4], numbers[1::4]
    if not math.isfinite(sum(positions) + sum(velocities)):
        raise PayloadError("hand state contains a non-finite position or velocity")
    celsius = tuple(map(float, map(max, numbers[2::4], numbers[3::4])))
    return HandReading(positions, velocities, celsius)


def encode_state(reading: HandReading, hand: Hand) -> bytes:
    """Return what a hand publishes on its `state_topic`."""
    numbers: list[float] = []
    for joint, q, dq, celsius in zip(hand.joints, *reading, strict=True):
        temperature = max(-128, min(127, round(celsius)))
        numbers += (make_mode_byte(joint.slot), q, dq, temperature, temperature)
    count = len(hand.joints)
    _, writer = _make_state_structs(count)
    imu_celsius, errors_and_reserve = 30, (0, 0, 0, 0)
    after_motors = _AFTER_MOTORS.pack(
        _PRESSURE_SENSORS, *_UPRIGHT, imu_celsius, *_POWER, *errors_and_reserve
    )
    return HEADER + count.to_bytes(4, "little") + writer.pack(*numbers) + after_motors


# ---- command ------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _make_command_struct(count: int) -> struct.Struct:
    """Return the struct of `count` motors; it skips the CDR header and the number of motors."""
    return struct.Struct("<8x" + _COMMAND_CODES * count)


def encode_command(joints_rad: Sequence[float], share: float, *, hand: Hand) -> bytes:
    """Return the command that moves a hand to `joints_rad`, with a share of its full gains.

    A share of 0 releases the hand: its motors give no torque. Every motor is set to relax by
    itself when the commands stop. No joint is ever sent beyond its limits.
    """
    if not 0.0 <= share <= 1.0 or len(joints_rad) != len(hand.joints):
        raise BadRequestError(
            f"invalid hand command: {len(joints_rad)} positions and a share of {share}",
            f"A share is 0 to 1, and {hand.name} has {len(hand.joints)} joints.",
        )
    if not math.isfinite(sum(joints_rad)):
        raise BadRequestError("hand command contains a non-finite value")
    kp, kd = share * hand.stiffness_nm_rad, share * hand.damping_nm_s_rad
    numbers: list[float] = []
    for joint, position_rad in zip(hand.joints, joints_rad, strict=True):
        q = min(max(position_rad, joint.lower_rad), joint.upper_rad)
        # Velocity and torque are 0: the motors only hold their positions.
        numbers += (make_mode_byte(joint.slot), q, 0.0, 0.0, kp, kd)
    count = len(hand.joints)
    packed = bytearray(_make_command_struct(count).pack(*numbers))
    packed[:8] = HEADER + count.to_bytes(4, "little")
    return bytes(packed) + _RESERVED


def decode_command(data: bytes, hand: Hand) -> HandCommand:
    """Return what a `HandCmd_` commands; raises `DecodeError` for motors out of order."""
    _check_motors(data, hand, _COMMAND_CODES)
    numbers = _make_command_struct(len(hand.joints)).unpack_from(data)
    # Each motor has six numbers: mode, position, velocity, torque, stiffness, damping.
    modes = [int(mode) for mode in numbers[0::6]]
    if [mode & _INDEX_MASK for mode in modes] != [joint.slot for joint in hand.joints]:
        raise PayloadError(f"the motors of a hand command are out of order: modes {modes}")
    if not math.isfinite(sum(numbers)):
        raise PayloadError("hand command contains a non-finite value")
    statuses = {mode >> _INDEX_BITS & _STATUS_MASK for mode in modes}
    return HandCommand(
        joints_rad=tuple(numbers[1::6]),
        stiffness_nm_rad=tuple(numbers[4::6]),
        damping_nm_s_rad=tuple(numbers[5::6]),
        driven=statuses == {DRIVEN},
        timeout=all(mode >> _INDEX_BITS + _STATUS_BITS for mode in modes),
    )


def _check_motors(data: bytes, hand: Hand, codes: str) -> None:
    """Raise `DecodeError` unless `data` is plain CDR with as many motors as the hand.

    `codes` are the struct codes of one motor.
    """
    check_header(data, 4)
    (motors,) = _COUNT.unpack_from(data)
    if motors != len(hand.joints):
        raise PayloadError(
            f"the message has {motors} motors, but {hand.name} has {len(hand.joints)}"
        )
    check_header(data, 4 + motors * struct.calcsize(f"<{codes}"))
