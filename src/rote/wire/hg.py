"""A G1's joints on DDS: `LowState_` read as a view, `LowCmd_` packed whole, and their CRC.

Both are plain CDR behind 4 bytes of header. Both have a twin in C, over which the robot takes the
CRC: there the first motor begins at a word of its own, while CDR packs its mode against the byte
before. From its position on, CDR is C four bytes earlier.

                  in C    in CDR    motors begin in C (in CDR, as if, four earlier)
    LowState_     2092      2088    at 72, 56 bytes each
    LowCmd_       1004      1000    at 4, 28 bytes each

A view costs about a microsecond; the library's own way to read a `LowState_` costs hundreds.
"""

import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rote.errors import BadRequestError, ChecksumError, DecodeError, PayloadError, TruncatedError
from rote.messages import RobotState
from rote.wire.cdr import HEADER
from rote.wire.lowstate import Joints

LOWSTATE_TOPIC = "rt/lowstate"
ARM_SDK_TOPIC = "rt/arm_sdk"
OLD_ARM_SDK_TOPIC = "rt/armsdk"
"""What old firmware calls it."""
JOINTS = 29
MOTORS = 35
UPPER_BODY = range(12, 29)
"""The motors that `ARM_SDK_TOPIC` moves: waist and arms."""
WEIGHT_MOTOR = 29
"""No joint: its position is how much the arms obey `ARM_SDK_TOPIC`, from 0 to 1."""
STIFFNESS, DAMPING = 60.0, 1.5
"""Of waist and arms while they obey: what the vendor's examples use."""

_STATE_C, _COMMAND_C = 2092, 1004
_GAP = 4
_HEAD = len(HEADER)


def _record(size: int, **fields: tuple[Any, int]) -> np.dtype[Any]:
    formats, offsets = zip(*fields.values(), strict=True)
    layout: Any = {"names": [*fields], "formats": formats, "offsets": offsets, "itemsize": size}
    record: np.dtype[Any] = np.dtype(layout)
    return record


_MOTOR_STATE = _record(
    56,
    mode=("u1", 0),
    q=("<f4", 4),
    dq=("<f4", 8),
    ddq=("<f4", 12),
    tau_est=("<f4", 16),
    temperature=(("<i2", 2), 20),
    vol=("<f4", 24),
)
_MOTOR_COMMAND = _record(
    28,
    mode=("u1", 0),
    q=("<f4", 4),
    dq=("<f4", 8),
    tau=("<f4", 12),
    kp=("<f4", 16),
    kd=("<f4", 20),
)


def _command(shift: int) -> np.dtype[Any]:
    return _record(
        _COMMAND_C - shift,
        mode_pr=("u1", 0),
        mode_machine=("u1", 1),
        motors=((_MOTOR_COMMAND, MOTORS), 4 - shift),
        crc=("<u4", _COMMAND_C - shift - 4),
    )


LOWSTATE = _record(
    _STATE_C - _GAP,
    mode_pr=("u1", 8),
    mode_machine=("u1", 9),
    tick=("<u4", 12),
    quaternion=(("<f4", 4), 16),
    gyroscope=(("<f4", 3), 32),
    accelerometer=(("<f4", 3), 44),
    rpy=(("<f4", 3), 56),
    motors=((_MOTOR_STATE, MOTORS), 72 - _GAP),
    crc=("<u4", _STATE_C - _GAP - 4),
)
"""A `LowState_` behind its header. The mode of motor 0 is not where that of the others is."""
LOWCMD = _command(_GAP)
_LOWCMD_IN_C = _command(0)


# ---- CRC ----------------------------------------------------------------------------------------

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def crc(words: bytes) -> int:
    """Return the CRC-32/MPEG-2 of little-endian words, each taken from its highest bit on.

    It is zlib's CRC with every bit the other way round.
    """
    mirrored = np.frombuffer(words, "<u4").byteswap().tobytes().translate(_REVERSED)
    return int(f"{zlib.crc32(mirrored) ^ 0xFFFFFFFF:032b}"[::-1], 2)


# ---- state --------------------------------------------------------------------------------------


def view(data: bytes) -> np.void:
    """Return a view of a `LowState_`: `tick`, `mode_machine`, `motors["q"]` and so on.

    Nothing is copied, and no number is looked at.
    """
    _check(data, LOWSTATE)
    return np.frombuffer(data, LOWSTATE, 1, _HEAD)[0]  # type: ignore[no-any-return]


def tick_of(data: bytes) -> int:
    """Return the robot's clock in a `LowState_`, in milliseconds, and nothing else."""
    _check(data, LOWSTATE)
    return int.from_bytes(data[_HEAD + 12 : _HEAD + 16], "little")


# All that teaching needs, in one go: a view is quick to make, but slow to read number by number.
_JOINTS = struct.Struct("<13xB2xI16x3f3f12x" + "4x2f8x2h32x" * JOINTS)


def joints_of(data: bytes) -> Joints:
    """Return what teaching needs of a `LowState_`."""
    _check(data, LOWSTATE)
    mode_machine, tick_ms, *numbers = _JOINTS.unpack_from(data)
    positions, velocities = tuple(numbers[6::4]), tuple(numbers[7::4])
    if not math.isfinite(sum(positions) + sum(velocities)):
        raise PayloadError("a lowstate with joints that are nowhere")
    return Joints(
        tick_ms=tick_ms,
        positions_rad=positions,
        velocities_rad_s=velocities,
        accelerometer_m_s2=tuple(numbers[3:6]),
        gyroscope_rad_s=tuple(numbers[:3]),
        temperatures_c=tuple(map(float, map(max, numbers[8::4], numbers[9::4]))),
        mode_machine=mode_machine,
    )


_HEAD_IN_C = struct.Struct("<8xxB2xI4f3f3f16x")
_MOTOR_IN_C = struct.Struct("<" + "B3x2f8x2h32x" * JOINTS)


def encode_lowstate(state: RobotState, *, mode_machine: int) -> bytes:
    """Return what a robot publishes on `LOWSTATE_TOPIC`."""
    tick = state.time_us // 1000 & 0xFFFFFFFF
    body = bytearray(_STATE_C)
    inertial = (*state.gyroscope_rad_s, *state.accelerometer_m_s2)
    _HEAD_IN_C.pack_into(body, 0, mode_machine, tick, 1.0, 0.0, 0.0, 0.0, *inertial)
    celsius = [max(-128, min(127, round(c))) for c in state.temperatures_c] or [0] * JOINTS
    motors = zip(state.positions_rad, state.velocities_rad_s, celsius, strict=True)
    _MOTOR_IN_C.pack_into(body, 72, *[n for q, dq, c in motors for n in (1, q, dq, c, c)])
    body[-4:] = crc(bytes(body[:-4])).to_bytes(4, "little")
    return bytes(HEADER + body[:70] + body[72:74] + body[76:])


# ---- command ------------------------------------------------------------------------------------


class ArmCommand(NamedTuple):
    """What is told on `ARM_SDK_TOPIC`."""

    positions_rad: tuple[float, ...]
    """Of the motors of `UPPER_BODY`, in their order."""
    weight: float
    mode_machine: int
    stiff: bool = True
    """Whether every one of them is given a stiffness; one without would hang loose."""


def _blank_command() -> bytes:
    record = np.zeros(1, _LOWCMD_IN_C)
    motors = record["motors"][0][UPPER_BODY.start : UPPER_BODY.stop]
    motors["kp"], motors["kd"] = STIFFNESS, DAMPING
    return record.tobytes()


_BLANK = _blank_command()


def encode_arm_command(
    positions_rad: Sequence[float], weight: float, *, mode_machine: int
) -> bytes:
    """Return the command that brings waist and arms there, as far as `weight` goes."""
    if not 0.0 <= weight <= 1.0 or len(positions_rad) != len(UPPER_BODY):
        raise BadRequestError(
            f"a weight of {weight} and {len(positions_rad)} positions are no arm command",
            f"A weight is 0 to 1, and there are {len(UPPER_BODY)} joints.",
        )
    raw = bytearray(_BLANK)
    record = np.frombuffer(raw, _LOWCMD_IN_C, 1)
    record["mode_machine"] = mode_machine
    positions = record["motors"]["q"][0]
    positions[UPPER_BODY.start : UPPER_BODY.stop] = positions_rad
    positions[WEIGHT_MOTOR] = weight
    if not np.isfinite(positions).all():
        raise BadRequestError("an arm command to nowhere")
    record["crc"] = crc(bytes(raw[:-4]))
    return bytes(HEADER + raw[:2] + raw[4:6] + raw[8:])


def decode_arm_command(data: bytes) -> ArmCommand:
    """Return what a command on `ARM_SDK_TOPIC` asks for.

    A CRC of 0 is none: the vendor's own C++ publisher leaves it out.
    """
    _check(data, LOWCMD)
    record = np.frombuffer(data, LOWCMD, 1, _HEAD)[0]
    body = data[_HEAD : _HEAD + LOWCMD.itemsize]
    stated = int(record["crc"])
    if stated:
        computed = crc(body[:2] + b"\0\0" + body[2:3] + b"\0\0\0" + body[4:-4])
        if stated != computed:
            raise ChecksumError(stated, computed)
    motors = record["motors"]
    upper = motors[UPPER_BODY.start : UPPER_BODY.stop]
    weight = float(motors["q"][WEIGHT_MOTOR])
    if not np.isfinite(upper["q"]).all() or not 0.0 <= weight <= 1.0:
        raise PayloadError("an arm command to nowhere, or with a weight outside 0 to 1")
    return ArmCommand(
        tuple(upper["q"].tolist()),
        weight,
        int(record["mode_machine"]),
        stiff=bool((upper["kp"] > 0.0).all()),
    )


def _check(data: bytes, layout: np.dtype[Any]) -> None:
    if len(data) < _HEAD + layout.itemsize:
        raise TruncatedError(_HEAD + layout.itemsize, len(data))
    if data[:2] != HEADER[:2]:
        raise DecodeError(f"bytes that begin with {data[:2].hex()} are not plain CDR")
