"""A G1's joints on DDS: `LowState_` read as a view, `LowCmd_` packed whole, and their CRC.

Both are plain CDR after a header of 4 bytes. The robot computes the CRC over the equivalent C
structure. In C the first motor is aligned to a word, while CDR packs its mode directly after the
byte before. From the first motor's position on, each CDR offset is the C offset minus four.

                  in C    in CDR    motors begin in C (in CDR, as if, four earlier)
    LowState_     2092      2088    at 72, 56 bytes each
    LowCmd_       1004      1000    at 4, 28 bytes each

Motors are numbered by slot. For a build, only the slots of its joints and of its stream's weight
are read and written.

A view costs about a microsecond; reading a `LowState_` with the library costs hundreds.
"""

import math
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rote.errors import BadRequestError, ChecksumError, PayloadError
from rote.messages import RobotState
from rote.model.family import Build, StreamFacts
from rote.wire.cdr_layout import HEADER, check_header, pad_fields
from rote.wire.services.lowstate import JointColumns, Slots, machine_of, select

LOWSTATE_TOPIC = "rt/lowstate"
ARM_SDK_TOPIC = "rt/arm_sdk"
OLD_ARM_SDK_TOPIC = "rt/armsdk"
"""Its name in old firmware."""
MOTORS = 35
"""The motor slots of both messages; no robot has a joint in all of them."""

_STATE_C, _COMMAND_C = 2092, 1004
_GAP = 4
_HEAD = len(HEADER)


def _make_dtype(size: int, **fields: tuple[Any, int]) -> np.dtype[Any]:
    formats, offsets = zip(*fields.values(), strict=True)
    layout: Any = {"names": [*fields], "formats": formats, "offsets": offsets, "itemsize": size}
    record: np.dtype[Any] = np.dtype(layout)
    return record


MOTOR_STATE = {
    "mode": "B", "q": "f", "dq": "f", "ddq": "f", "tau_est": "f", "temperature": "2h", "vol": "f",
    "sensor": "2I", "motorstate": "I", "reserve": "4I",
}  # fmt: skip
MOTOR_COMMAND = {
    "mode": "B", "q": "f", "dq": "f", "tau": "f", "kp": "f", "kd": "f", "reserve": "I"
}  # fmt: skip
"""The fields of one motor, each with its codes of `struct`."""
MOTOR_READ = ("q", "dq", "temperature")
"""What teaching needs of a motor."""


def _motor_dtype(fields: Mapping[str, str]) -> np.dtype[Any]:
    return np.dtype([*fields.items()], align=True).newbyteorder("<")


def _command_dtype(shift: int) -> np.dtype[Any]:
    return _make_dtype(
        _COMMAND_C - shift,
        mode_pr=("u1", 0),
        mode_machine=("u1", 1),
        motors=((_motor_dtype(MOTOR_COMMAND), MOTORS), 4 - shift),
        crc=("<u4", _COMMAND_C - shift - 4),
    )


LOWSTATE = _make_dtype(
    _STATE_C - _GAP,
    mode_pr=("u1", 8),
    mode_machine=("u1", 9),
    tick=("<u4", 12),
    quaternion=(("<f4", 4), 16),
    gyroscope=(("<f4", 3), 32),
    accelerometer=(("<f4", 3), 44),
    rpy=(("<f4", 3), 56),
    motors=((_motor_dtype(MOTOR_STATE), MOTORS), 72 - _GAP),
    crc=("<u4", _STATE_C - _GAP - 4),
)
"""A `LowState_` after its header. The mode of motor 0 is at another place than those of the
others.
"""
LOWCMD = _command_dtype(_GAP)
_LOWCMD_IN_C = _command_dtype(0)


# ---- CRC ----------------------------------------------------------------------------------------

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def crc(message: bytes) -> int:
    """Return the CRC-32/MPEG-2 of little-endian words, each processed from its highest bit.

    It equals zlib's CRC with all bit orders reversed.
    """
    mirrored = np.frombuffer(message, "<u4").byteswap().tobytes().translate(_REVERSED)
    return int(f"{zlib.crc32(mirrored) ^ 0xFFFFFFFF:032b}"[::-1], 2)


# ---- state --------------------------------------------------------------------------------------


def view(data: bytes) -> np.void:
    """Return a view of a `LowState_`: `tick`, `mode_machine`, `motors["q"]` and so on.

    Nothing is copied, and no value is checked.
    """
    check_header(data, LOWSTATE.itemsize)
    return np.frombuffer(data, LOWSTATE, 1, _HEAD)[0]  # type: ignore[no-any-return]


def tick_of(data: bytes) -> int:
    """Return only the robot's clock in a `LowState_`, in milliseconds."""
    check_header(data, LOWSTATE.itemsize)
    return int.from_bytes(data[_HEAD + 12 : _HEAD + 16], "little")


def head_of(data: bytes) -> tuple[int, int]:
    """Return only the robot's clock in milliseconds and its `mode_machine`."""
    return tick_of(data), data[_HEAD + 9]


# All that teaching needs in one call: a view is quick to make, but slow to read value by value.
_BEFORE_MOTORS = "<13xB2xI16x3f3f12x"
_READ, _SKIPPED = pad_fields(MOTOR_STATE, MOTOR_READ), pad_fields(MOTOR_STATE, ())
_ALL_SLOTS = struct.Struct(_BEFORE_MOTORS + _READ * MOTORS)


def decode_lowstate(data: bytes) -> Slots:
    """Return the contents of a `LowState_` by motor slot; positions that are NaN become None."""
    check_header(data, LOWSTATE.itemsize)
    mode_machine, tick_ms, *numbers = _ALL_SLOTS.unpack_from(data)
    return Slots(
        joints_rad=_drop_non_finite(numbers[6::4]),
        velocities_rad_s=_drop_non_finite(numbers[7::4]),
        temperatures_c=tuple(map(float, map(max, numbers[8::4], numbers[9::4]))),
        tick_ms=tick_ms,
        accelerometer_m_s2=tuple(numbers[3:6]),
        gyroscope_rad_s=tuple(numbers[:3]),
        mode_machine=mode_machine,
    )


def _drop_non_finite(numbers: list[float]) -> tuple[float | None, ...]:
    return tuple(n if math.isfinite(n) else None for n in numbers)


def joints_of(data: bytes, build: Build) -> JointColumns:
    """Return what teaching needs from a `LowState_`: the joints of a build, by its columns."""
    check_header(data, LOWSTATE.itemsize)
    return _make_reader(build)(data)


@lru_cache(maxsize=64)
def _make_reader(build: Build) -> Callable[[bytes], JointColumns]:
    """Return a function that reads a `LowState_` for a build, and unpacks only its slots."""
    if max(build.slots) >= MOTORS:
        return lambda data: select(decode_lowstate(data), build)
    unpack = struct.Struct(_BEFORE_MOTORS + _each_slot(build, _READ, _SKIPPED)).unpack_from
    in_order = _in_columns(build)

    def read(data: bytes) -> JointColumns:
        mode_machine, tick_ms, *numbers = unpack(data)
        positions, velocities = in_order(numbers[6::4]), in_order(numbers[7::4])
        if not math.isfinite(sum(positions) + sum(velocities)):
            raise PayloadError("a lowstate with joints that are nowhere")
        return JointColumns(
            tick_ms=tick_ms,
            joints_rad=positions,
            velocities_rad_s=velocities,
            accelerometer_m_s2=tuple(numbers[3:6]),
            gyroscope_rad_s=tuple(numbers[:3]),
            temperatures_c=in_order(map(float, map(max, numbers[8::4], numbers[9::4]))),
            mode_machine=mode_machine,
        )

    return read


def _each_slot(build: Build, owned: str, other: str) -> str:
    """Return the struct format of all slots up to the build's last."""
    return "".join(owned if slot in build.slots else other for slot in range(max(build.slots) + 1))


def _in_columns(build: Build) -> Callable[[Iterable[float]], tuple[float, ...]]:
    """Return a function that reorders values from slot order into column order."""
    by_slot = sorted(build.slots)
    if list(build.slots) == by_slot:
        return tuple
    pick = itemgetter(*map(by_slot.index, build.slots))  # of two or more it makes a tuple
    return lambda values: pick(tuple(values))


_HEAD_IN_C = struct.Struct("<8xxB2xI4f3f3f16x")
_WRITTEN = pad_fields(MOTOR_STATE, ("mode", *MOTOR_READ))


@lru_cache(maxsize=64)
def _motors_in_c(build: Build) -> tuple[struct.Struct, tuple[int, ...]]:
    """Return the motors of a build in the C structure, and its columns in slot order."""
    by_slot = sorted(range(len(build.slots)), key=build.slots.__getitem__)
    return struct.Struct("<" + _each_slot(build, _WRITTEN, _SKIPPED)), tuple(by_slot)


def encode_lowstate(state: RobotState, *, build: Build) -> bytes:
    """Return what a robot of a build publishes on `LOWSTATE_TOPIC`."""
    tick = state.time_us // 1000 & 0xFFFFFFFF
    body = bytearray(_STATE_C)
    inertial = (*state.gyroscope_rad_s, *state.accelerometer_m_s2)
    _HEAD_IN_C.pack_into(body, 0, machine_of(build), tick, 1.0, 0.0, 0.0, 0.0, *inertial)
    layout, by_slot = _motors_in_c(build)
    celsius = [max(-128, min(127, round(c))) for c in state.temperatures_c] or [0] * len(by_slot)
    columns = [*zip(state.joints_rad, state.velocities_rad_s, celsius, strict=True)]
    motors = [columns[column] for column in by_slot]
    layout.pack_into(body, 72, *[n for q, dq, c in motors for n in (1, q, dq, c, c)])
    body[-4:] = crc(bytes(body[:-4])).to_bytes(4, "little")
    return bytes(HEADER + body[:70] + body[72:74] + body[76:])


# ---- command ------------------------------------------------------------------------------------


class ArmCommand(NamedTuple):
    """What is commanded on the topic of a stream."""

    joints_rad: tuple[float, ...]
    """The positions of the streamed joints, in the order of `Build.streamed`."""
    weight: float
    mode_machine: int
    stiff: bool = True
    """Whether all of them are given a stiffness; a joint without would be loose."""


class _Layout(NamedTuple):
    """Where a build's values are in its command."""

    slots: Any
    """The slots of `Build.streamed` as a numpy index; a slice, which is quicker, if they are
    consecutive.
    """
    joints: int
    """How many there are."""
    weight_slot: int
    blank: npt.NDArray[np.uint8]
    """The packed command with its gains, and neither positions nor a weight nor a CRC."""
    words: npt.NDArray[np.intp]
    """Which 32-bit words of it are the positions, in the order of `Build.streamed`, and the weight
    behind them."""
    changes: npt.NDArray[np.uint32]
    """(bytes, 256): what each value of each byte of those words changes in the CRC, and in the last
    row what the machine does. A CRC is linear: the changes of all bytes are just combined."""
    blank_crc: int


@lru_cache(maxsize=64)
def _command_layout(build: Build) -> _Layout:
    stream = build.stream
    if stream is None or stream.weight_slot is None:
        why = build.no_stream or "it is not known how the weight of a stream is given"
        raise BadRequestError(
            f"no command can be written to the motors of {build.name}: {why}",
            "Teach and play by the robot's own services.",
        )
    slots = [build.slots[column] for column in build.streamed_columns]
    if stream.weight_slot in build.slots or max(*slots, stream.weight_slot) >= MOTORS:
        raise BadRequestError(
            f"the weight of a stream to {build.name} is in slot {stream.weight_slot}, and a "
            f"message has {MOTORS} slots",
            "That slot must be none of its joints, and all must be in the message.",
        )
    in_a_row = slots == list(range(slots[0], slots[0] + len(slots)))
    index: Any = slice(slots[0], slots[-1] + 1) if in_a_row else np.array(slots)
    blank = _blank_command(slots, stream)
    # In C, where the CRC is taken; packed, with the header before it, they are as far on.
    offsets = [
        4 + _motor_dtype(MOTOR_COMMAND).itemsize * slot + 4 for slot in (*slots, stream.weight_slot)
    ]
    return _Layout(
        slots=index,
        joints=len(slots),
        weight_slot=stream.weight_slot,
        blank=np.frombuffer(_pack_for_wire(blank), np.uint8),
        words=np.array(offsets) // 4,
        changes=_crc_changes(
            [offset + byte for offset in offsets for byte in range(4)] + [_MACHINE_AT]
        ),
        blank_crc=crc(blank[:-4]),
    )


_MACHINE_AT = 1
"""Where the machine's number is in a command in C."""


def _blank_command(slots: list[int], stream: StreamFacts) -> bytes:
    record = np.zeros(1, _LOWCMD_IN_C)
    motors = record["motors"][0]
    motors["kp"][slots], motors["kd"][slots] = stream.stiffness_nm_rad, stream.damping_nm_s_rad
    return record.tobytes()


def _pack_for_wire(in_c: bytes) -> bytes:
    """Return a command in its C layout as the bytes that are sent."""
    return HEADER + in_c[:2] + in_c[4:6] + in_c[8:]


def _crc_changes(offsets: list[int]) -> npt.NDArray[np.uint32]:
    """Return how each value of the bytes at these offsets changes the CRC of a command."""
    message = bytearray(_COMMAND_C - 4)
    nothing = crc(bytes(message))
    table = np.zeros((len(offsets), 256), np.uint32)
    for row, offset in zip(table, offsets, strict=True):
        for bit in range(8):
            message[offset] = 1 << bit
            row[1 << bit : 2 << bit] = row[: 1 << bit] ^ np.uint32(crc(bytes(message)) ^ nothing)
        message[offset] = 0
    return table


def encode_arm_command(
    joints_rad: Sequence[float], weight: float, *, build: Build, mode_machine: int
) -> bytes:
    """Return the command that moves the streamed joints there, according to `weight`.

    It writes their slots and that of the weight, and leaves all others at zero.
    """
    (command,) = encode_arm_commands([joints_rad], [weight], build=build, mode_machine=mode_machine)
    return command


def encode_arm_commands(
    joints_rad: Sequence[Sequence[float]],
    weights: Sequence[float],
    *,
    build: Build,
    mode_machine: int,
) -> list[bytes]:
    """Return a command for each pose and its weight; many at once cost a tenth of one by one."""
    layout = _command_layout(build)
    for pose, weight in zip(joints_rad, weights, strict=True):
        if not 0.0 <= weight <= 1.0 or len(pose) != layout.joints:
            raise BadRequestError(
                f"a weight of {weight} and {len(pose)} positions are not an arm command",
                f"A weight is 0 to 1, and there are {layout.joints} joints.",
            )
    numbers = np.empty((len(weights), layout.joints + 1), "<f4")
    numbers[:, :-1], numbers[:, -1] = joints_rad, weights
    if not np.isfinite(numbers).all():
        raise BadRequestError("arm command contains a non-finite value")
    commands = np.repeat(layout.blank[None, :], len(weights), axis=0)
    commands[:, _HEAD + _MACHINE_AT] = mode_machine
    words = commands.view("<u4")
    words[:, layout.words] = numbers.view("<u4")
    changed = layout.changes[np.arange(len(layout.changes) - 1), numbers.view(np.uint8)]
    same = np.uint32(layout.blank_crc) ^ layout.changes[-1, mode_machine]
    words[:, -1] = np.bitwise_xor.reduce(changed, axis=1) ^ same
    size, whole = commands.shape[1], commands.tobytes()
    return [whole[first : first + size] for first in range(0, len(whole), size)]


def decode_arm_command(data: bytes, build: Build) -> ArmCommand:
    """Return what a command asks of a build's streamed joints.

    A CRC of 0 means none: Unitree's own C++ publisher leaves it out.
    """
    check_header(data, LOWCMD.itemsize)
    slots, weight_slot = _command_layout(build).slots, _command_layout(build).weight_slot
    record = np.frombuffer(data, LOWCMD, 1, _HEAD)[0]
    body = data[_HEAD : _HEAD + LOWCMD.itemsize]
    stated = int(record["crc"])
    if stated:
        computed = crc(body[:2] + b"\0\0" + body[2:3] + b"\0\0\0" + body[4:-4])
        if stated != computed:
            raise ChecksumError(stated, computed)
    motors = record["motors"]
    streamed = motors[slots]
    weight = float(motors["q"][weight_slot])
    if not np.isfinite(streamed["q"]).all() or not 0.0 <= weight <= 1.0:
        raise PayloadError("arm command contains a non-finite value, or a weight outside 0 to 1")
    return ArmCommand(
        tuple(streamed["q"].tolist()),
        weight,
        int(record["mode_machine"]),
        stiff=bool((streamed["kp"] > 0.0).all()),
    )
