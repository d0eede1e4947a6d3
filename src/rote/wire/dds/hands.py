"""A hand's motors on DDS: `HandState_` read as far as teaching needs it, `HandCmd_` packed whole.

Both begin with a sequence of motors; a `HandState_` goes on with pressure sensors, IMU, voltages
and errors, a `HandCmd_` with 16 unused bytes.

The mode byte of a motor holds three numbers: its place in the hand (bits 0 to 3), its status (bits
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
from rote.wire.cdr_layout import HEADER, check_header, pad_fields
from rote.wire.dds.lowlevel import MOTOR_COMMAND, MOTOR_READ, MOTOR_STATE

DRIVEN = 1
"""The status of a motor that follows commands; 0 is a locked one."""
_ID_BITS, _STATUS_BITS = 4, 3
_COUNT = struct.Struct("<4xI")
_READ = pad_fields(MOTOR_STATE, MOTOR_READ)
_WRITTEN = pad_fields(MOTOR_STATE, ("mode", *MOTOR_READ))
_COMMANDED = pad_fields(MOTOR_COMMAND, ("mode", "q", "dq", "tau", "kp", "kd"))
_PRESSURE_SENSORS = 9
_AFTER_MOTORS = struct.Struct(f"<I{_PRESSURE_SENSORS * 104}x4f9fh2x4f2I2I")
_UPRIGHT = (1.0, *(0.0,) * 12)
_POWER = (24.0, 0.5, 24.0, 5.0)
_RESERVED = bytes(16)


def mode_byte(motor: int, *, status: int = DRIVEN, timeout: bool = True) -> int:
    """Return the mode byte of a motor from its place in the hand, its status and its
    time-out flag.
    """
    if not 0 <= motor < 1 << _ID_BITS or not 0 <= status < 1 << _STATUS_BITS:
        raise BadRequestError(f"no motor of a hand has the number {motor} and the status {status}")
    return motor | status << _ID_BITS | timeout << _ID_BITS + _STATUS_BITS


class HandReading(NamedTuple):
    """What a hand reports about its joints, in the order of its messages."""

    joints_rad: tuple[float, ...]
    velocities_rad_s: tuple[float, ...]
    temperatures_c: tuple[float, ...]


class HandCommand(NamedTuple):
    """What a hand is commanded, in the order of its messages."""

    joints_rad: tuple[float, ...]
    stiffness_nm_rad: tuple[float, ...]
    damping_nm_s_rad: tuple[float, ...]
    driven: bool
    """Whether its motors follow commands: all of them must."""
    timeout: bool
    """Whether all of them relax by themselves when the commands stop."""


# ---- state --------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _state_structs(motors: int) -> tuple[struct.Struct, struct.Struct]:
    """Return the readers and writers for so many motors."""
    return struct.Struct("<8x" + _READ * motors), struct.Struct("<" + _WRITTEN * motors)


def decode_state(data: bytes, hand: Hand) -> HandReading:
    """Return what a `HandState_` says about a hand's joints."""
    motors = len(hand.joints)
    _check_motors(data, hand, _READ)
    numbers = _state_structs(motors)[0].unpack_from(data)
    positions, velocities = numbers[0::4], numbers[1::4]
    if not math.isfinite(sum(positions) + sum(velocities)):
        raise PayloadError("a hand with joints that are nowhere")
    celsius = tuple(map(float, map(max, numbers[2::4], numbers[3::4])))
    return HandReading(positions, velocities, celsius)


def encode_state(reading: HandReading, hand: Hand) -> bytes:
    """Return what a hand publishes on its `state_topic`."""
    numbers: list[float] = []
    for joint, q, dq, celsius in zip(hand.joints, *reading, strict=True):
        warm = max(-128, min(127, round(celsius)))
        numbers += (mode_byte(joint.slot), q, dq, warm, warm)
    motors = _state_structs(len(hand.joints))[1].pack(*numbers)
    rest = _AFTER_MOTORS.pack(_PRESSURE_SENSORS, *_UPRIGHT, 30, *_POWER, 0, 0, 0, 0)
    return HEADER + len(hand.joints).to_bytes(4, "little") + motors + rest


# ---- command ------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _command_struct(motors: int) -> struct.Struct:
    return struct.Struct("<8x" + _COMMANDED * motors)


def encode_command(joints_rad: Sequence[float], share: float, *, hand: Hand) -> bytes:
    """Return the command that moves a hand's joints there, with a share of its full gains.

    A share of 0 releases the hand: its motors give no torque. Every motor is set to relax by
    itself when the commands stop. No joint is ever sent beyond its limits.
    """
    if not 0.0 <= share <= 1.0 or len(joints_rad) != len(hand.joints):
        raise BadRequestError(
            f"{len(joints_rad)} positions and a share of {share} are not a command to a hand",
            f"A share is 0 to 1, and {hand.name} has {len(hand.joints)} joints.",
        )
    if not math.isfinite(sum(joints_rad)):
        raise BadRequestError("a command to a hand that leads nowhere")
    kp, kd = share * hand.stiffness_nm_rad, share * hand.damping_nm_s_rad
    numbers: list[float] = []
    for joint, wanted_rad in zip(hand.joints, joints_rad, strict=True):
        q = min(max(wanted_rad, joint.lower_rad), joint.upper_rad)
        numbers += (mode_byte(joint.slot), q, 0.0, 0.0, kp, kd)
    count = len(hand.joints)
    packed = bytearray(_command_struct(count).pack(*numbers))
    packed[:8] = HEADER + count.to_bytes(4, "little")
    return bytes(packed) + _RESERVED


def decode_command(data: bytes, hand: Hand) -> HandCommand:
    """Return what a `HandCmd_` commands; raises `DecodeError` for motors out of order."""
    _check_motors(data, hand, _COMMANDED)
    numbers = _command_struct(len(hand.joints)).unpack_from(data)
    modes = [int(mode) for mode in numbers[0::6]]
    if [mode & (1 << _ID_BITS) - 1 for mode in modes] != [joint.slot for joint in hand.joints]:
        raise PayloadError(f"a command to a hand whose modes are {modes}: motors out of order")
    if not math.isfinite(sum(numbers)):
        raise PayloadError("a command to a hand that leads nowhere")
    statuses = {mode >> _ID_BITS & (1 << _STATUS_BITS) - 1 for mode in modes}
    return HandCommand(
        joints_rad=tuple(numbers[1::6]),
        stiffness_nm_rad=tuple(numbers[4::6]),
        damping_nm_s_rad=tuple(numbers[5::6]),
        driven=statuses == {DRIVEN},
        timeout=all(mode >> _ID_BITS + _STATUS_BITS for mode in modes),
    )


def _check_motors(data: bytes, hand: Hand, codes: str) -> None:
    """Raise `DecodeError` if it is not plain CDR, or has other motors than the hand."""
    check_header(data, 4)
    (motors,) = _COUNT.unpack_from(data)
    if motors != len(hand.joints):
        raise PayloadError(f"a hand with {motors} motors, and {hand.name} has {len(hand.joints)}")
    check_header(data, 4 + motors * struct.calcsize(f"<{codes}"))
