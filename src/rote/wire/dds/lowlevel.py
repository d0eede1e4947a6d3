"""A G1's joints on DDS: `LowState_` read as a view, `LowCmd_` packed whole, and their CRC.

Both are plain CDR after a header of 4 bytes. The robot computes the CRC over the equivalent C
structure. In C the first motor is aligned to a word, while CDR packs its mode directly after the
byte before. From the first motor's position on, each CDR offset is the C offset minus four.

                  in C    in CDR    motors begin in C (in CDR, as if, four earlier)
    LowState_     2092      2088    at 72, 56 bytes each
    LowCmd_       1004      1000    at 4, 28 bytes each

Motors are numbered by slot. For a build, only the slots of its joints and of its stream's weight
are read and written.

A view takes about a microsecond; reading a `LowState_` with the library takes hundreds.
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
from rote.wire.cdr_layout import HEADER, check_header, format_record
from rote.wire.services.lowstate import JointColumns, Slots, get_machine, select_joints

LOWSTATE_TOPIC = "rt/lowstate"
ARM_SDK_TOPIC = "rt/arm_sdk"
OLD_ARM_SDK_TOPIC = "rt/armsdk"
"""Its name in old firmware."""
MOTORS = 35
"""The motor slots of both messages; no robot has a joint in all of them."""

_STATE_SIZE_IN_C, _COMMAND_SIZE_IN_C = 2092, 1004
_MOTORS_IN_STATE, _MOTORS_IN_COMMAND = 72, 4
"""Offsets of the first motor in C."""
_GAP = 4
"""How many bytes earlier the motors' positions begin in CDR than in C."""
_HEAD = len(HEADER)


def _make_dtype(size: int, **fields: tuple[Any, int]) -> np.dtype[Any]:
    """Return the dtype of a record of `size` bytes; each field is (format, offset)."""
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


def _make_motor_dtype(fields: Mapping[str, str]) -> np.dtype[Any]:
    """Return the dtype of one motor from its fields' codes, padded as in C."""
    return np.dtype([*fields.items()], align=True).newbyteorder("<")


def _make_command_dtype(shift: int) -> np.dtype[Any]:
    """Return the dtype of a command whose motors begin `shift` bytes earlier than in C."""
    return _make_dtype(
        _COMMAND_SIZE_IN_C - shift,
        mode_pr=("u1", 0),
        mode_machine=("u1", 1),
        motors=((_make_motor_dtype(MOTOR_COMMAND), MOTORS), _MOTORS_IN_COMMAND - shift),
        crc=("<u4", _COMMAND_SIZE_IN_C - shift - 4),
    )


LOWSTATE = _make_dtype(
    _STATE_SIZE_IN_C - _GAP,
    mode_pr=("u1", 8),
    mode_machine=("u1", 9),
    tick=("<u4", 12),
    quaternion=(("<f4", 4), 16),
    gyroscope=(("<f4", 3), 32),
    accelerometer=(("<f4", 3), 44),
    rpy=(("<f4", 3), 56),
    motors=((_make_motor_dtype(MOTOR_STATE), MOTORS), _MOTORS_IN_STATE - _GAP),
    crc=("<u4", _STATE_SIZE_IN_C - _GAP - 4),
)
"""A `LowState_` after its header. The mode of motor 0 is at another offset than in this record."""
LOWCMD = _make_command_dtype(_GAP)
_LOWCMD_IN_C = _make_command_dtype(0)


# ---- CRC ----------------------------------------------------------------------------------------

_REVERSED_BITS = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def crc(message: bytes) -> int:
    """Return the CRC-32/MPEG-2 of little-endian words, each processed from its highest bit.

    It equals zlib's CRC with all bit orders reversed.
    """
    mirrored = np.frombuffer(message, "<u4").byteswap().tobytes().translate(_REVERSED_BITS)
    return int(f"{zlib.crc32(mirrored) ^ 0xFFFFFFFF:032b}"[::-1], 2)


# ---- state --------------------------------------------------------------------------------------


def view_lowstate(data: bytes) -> np.void:
    """Return a `LowState_` as a numpy record with `tick`, `mode_machine`, `motors["q"]` and so on.

    Nothing is copied, and no value is checked.
    """
    check_header(data, LOWSTATE.itemsize)
    return np.frombuffer(data, LOWSTATE, 1, _HEAD)[0]  # type: ignore[no-any-return]


_MACHINE_AND_TICK = struct.Struct("<13xB2xI")  # after the header and 9 bytes


def read_tick_and_machine(data: bytes) -> tuple[int, int]:
    """Return only the robot's clock in a `LowState_`, in milliseconds, and its `mode_machine`."""
    check_header(data, LOWSTATE.itemsize)
    mode_machine, tick_ms = _MACHINE_AND_TICK.unpack_from(data)
    return tick_ms, mode_machine


# Unpacks all that teaching needs in one call: reading a view value by value is slow. The numbers
# are mode_machine, tick, gyroscope and accelerometer; four numbers of each motor follow.
_BEFORE_MOTORS = _MACHINE_AND_TICK.format + "16x3f3f12x"
_READ_CODES, _SKIPPED_CODES = format_record(MOTOR_STATE, MOTOR_READ), format_record(MOTOR_STATE, ())
_ALL_SLOTS = struct.Struct(_BEFORE_MOTORS + _READ_CODES * MOTORS)


def decode_lowstate(data: bytes) -> Slots:
    """Return the contents of a `LowState_` by motor slot; positions that are NaN become None."""
    check_header(data, LOWSTATE.itemsize)
    mode_machine, tick_ms, *numbers = _ALL_SLOTS.unpack_from(data)
    # Gyroscope and accelerometer; then position, velocity and two temperatures of each motor.
    return Slots(
        joints_rad=_replace_non_finite(numbers[6::4]),
        velocities_rad_s=_replace_non_finite(numbers[7::4]),
        temperatures_c=tuple(map(float, map(max, numbers[8::4], numbers[9::4]))),
        tick_ms=tick_ms,
        accelerometer_m_s2=tuple(numbers[3:6]),
        gyroscope_rad_s=tuple(numbers[:3]),
        mode_machine=mode_machine,
    )


def _replace_non_finite(numbers: list[float]) -> tuple[float | None, ...]:
    """Return the numbers with None in the place of NaN and infinity."""
    return tuple(n if math.isfinite(n) else None for n in numbers)


def decode_joints(data: bytes, build: Build) -> JointColumns:
    """Return what teaching needs from a `LowState_`: the joints of a build, by its columns."""
    check_header(data, LOWSTATE.itemsize)
    return _make_joint_reader(build)(data)


@lru_cache(maxsize=64)
def _make_joint_reader(build: Build) -> Callable[[bytes], JointColumns]:
    """Return a function that reads a `LowState_` for a build, and unpacks only its slots."""
    if max(build.slots) >= MOTORS:
        return lambda data: select_joints(decode_lowstate(data), build)
    unpack = struct.Struct(
        _BEFORE_MOTORS + _format_slots(build, _READ_CODES, _SKIPPED_CODES)
    ).unpack_from
    to_columns = _make_reorderer(build)

    def read(data: bytes) -> JointColumns:
        mode_machine, tick_ms, *numbers = unpack(data)
        # Gyroscope and accelerometer; then position, velocity and two temperatures of each motor.
        positions, velocities = to_columns(numbers[6::4]), to_columns(numbers[7::4])
        if not math.isfinite(sum(positions) + sum(velocities)):
            raise PayloadError("lowstate contains a non-finite position or velocity")
        return JointColumns(
            tick_ms=tick_ms,
            joints_rad=positions,
            velocities_rad_s=velocities,
            accelerometer_m_s2=tuple(numbers[3:6]),
            gyroscope_rad_s=tuple(numbers[:3]),
            temperatures_c=to_columns(map(float, map(max, numbers[8::4], numbers[9::4]))),
            mode_machine=mode_machine,
        )

    return read


def _format_slots(build: Build, used_codes: str, unused_codes: str) -> str:
    """Return the struct codes of all motor slots up to the build's last.

    A slot of a joint gets `used_codes`, any other `unused_codes`.
    """
    slots = range(max(build.slots) + 1)
    return "".join(used_codes if slot in build.slots else unused_codes for slot in slots)


def _make_reorderer(build: Build) -> Callable[[Iterable[float]], tuple[float, ...]]:
    """Return a function that reorders values from slot order into column order."""
    by_slot = sorted(build.slots)
    if list(build.slots) == by_slot:
        return tuple
    # Unsorted slots are at least two, so `itemgetter` returns a tuple.
    pick = itemgetter(*map(by_slot.index, build.slots))
    return lambda values: pick(tuple(values))


_HEAD_IN_C = struct.Struct("<8xxB2xI4f3f3f16x")
_WRITTEN_CODES = format_record(MOTOR_STATE, ("mode", *MOTOR_READ))


@lru_cache(maxsize=64)
def _make_motor_struct(build: Build) -> tuple[struct.Struct, tuple[int, ...]]:
    """Return the struct of a build's motors in C, and the build's columns in slot order."""
    by_slot = sorted(range(len(build.slots)), key=build.slots.__getitem__)
    return struct.Struct("<" + _format_slots(build, _WRITTEN_CODES, _SKIPPED_CODES)), tuple(by_slot)


@lru_cache(maxsize=16)
def _round_temperatures(temperatures_c: tuple[float, ...]) -> tuple[int, ...]:
    """Return temperatures as signed bytes hold them; cached, since they change slowly."""
    return tuple(max(-128, min(127, round(celsius))) for celsius in temperatures_c)


def encode_lowstate(state: RobotState, *, build: Build) -> bytes:
    """Return what a robot of a build publishes on `LOWSTATE_TOPIC`."""
    tick = state.time_us // 1000 & 0xFFFFFFFF
    body = bytearray(_STATE_SIZE_IN_C)
    inertial = (*state.gyroscope_rad_s, *state.accelerometer_m_s2)
    upright = (1.0, 0.0, 0.0, 0.0)  # quaternion w, x, y, z
    _HEAD_IN_C.pack_into(body, 0, get_machine(build), tick, *upright, *inertial)
    layout, by_slot = _make_motor_struct(build)
    celsius = _round_temperatures(state.temperatures_c) or (0,) * len(by_slot)
    columns = [*zip(state.joints_rad, state.velocities_rad_s, celsius, strict=True)]
    motors = [columns[column] for column in by_slot]
    # Each motor has the mode 1 (enabled) and reports its temperature twice.
    numbers = [number for q, dq, c in motors for number in (1, q, dq, c, c)]
    layout.pack_into(body, _MOTORS_IN_STATE, *numbers)
    body[-4:] = crc(bytes(body[:-4])).to_bytes(4, "little")
    # C pads before the first motor (70 to 72) and after its mode (to 76); CDR only after its mode.
    return bytes(HEADER + body[:70] + body[72:74] + body[76:])


# ---- command ------------------------------------------------------------------------------------


class ArmCommand(NamedTuple):
    """One command of a stream to the arms."""

    joints_rad: tuple[float, ...]
    """The positions of the streamed joints, in the order of `Build.streamed`."""
    weight: float
    mode_machine: int
    stiff: bool = True
    """Whether all joints have a stiffness above 0; a joint without it would be loose."""


class _CommandLayout(NamedTuple):
    """Where a build's values are in its command."""

    slots: Any
    """The slots of `Build.streamed` as a numpy index; a slice, which is quicker, if they are
    consecutive.
    """
    joints: int
    """Number of streamed joints."""
    weight_slot: int
    blank: npt.NDArray[np.uint8]
    """The packed command with its gains, but without positions, weight and CRC."""
    word_indices: npt.NDArray[np.intp]
    """Indices of the 32-bit words that are the positions, in the order of `Build.streamed`, and
    the weight."""
    crc_changes: npt.NDArray[np.uint32]
    """A table (bytes, 256): how each value of each byte of those words changes the CRC; the last
    row is for `mode_machine`. A CRC is linear, so the changes of all bytes are combined by XOR."""
    blank_crc: int


@lru_cache(maxsize=64)
def _make_command_layout(build: Build) -> _CommandLayout:
    """Return where a build's values are in a command; raise `BadRequestError` without a stream."""
    stream = build.stream
    if stream is None or stream.weight_slot is None:
        why = build.no_stream or "the slot for a stream's weight is not known"
        raise BadRequestError(
            f"no command can be written to the motors of {build.name}: {why}",
            "Teach and play by the robot's own services.",
        )
    slots = [build.slots[column] for column in build.streamed_columns]
    if stream.weight_slot in build.slots or max(*slots, stream.weight_slot) >= MOTORS:
        raise BadRequestError(
            f"{build.name} has an invalid slot: the weight of a stream is in slot "
            f"{stream.weight_slot}, and a message has {MOTORS} slots",
            "Correct the build: the weight's slot must not be a joint's, and all slots must be in "
            "the message.",
        )
    is_consecutive = slots == list(range(slots[0], slots[0] + len(slots)))
    index: Any = slice(slots[0], slots[-1] + 1) if is_consecutive else np.array(slots)
    blank = _make_blank_command(slots, stream)
    # Offsets in the C structure, over which the CRC is computed. The packed command has the same
    # offsets, counted from its header.
    motor_size, position_offset = _make_motor_dtype(MOTOR_COMMAND).itemsize, 4
    offsets = [
        _MOTORS_IN_COMMAND + motor_size * slot + position_offset
        for slot in (*slots, stream.weight_slot)
    ]
    return _CommandLayout(
        slots=index,
        joints=len(slots),
        weight_slot=stream.weight_slot,
        blank=np.frombuffer(_pack_for_wire(blank), np.uint8),
        word_indices=np.array(offsets) // 4,
        crc_changes=_compute_crc_changes(
            [offset + byte for offset in offsets for byte in range(4)] + [_MACHINE_OFFSET]
        ),
        blank_crc=crc(blank[:-4]),
    )


_MACHINE_OFFSET = 1
"""Offset of `mode_machine` in a command in C."""


def _make_blank_command(slots: list[int], stream: StreamFacts) -> bytes:
    """Return a command in its C layout with gains, but without positions, weight and CRC."""
    record = np.zeros(1, _LOWCMD_IN_C)
    motors = record["motors"][0]
    motors["kp"][slots], motors["kd"][slots] = stream.stiffness_nm_rad, stream.damping_nm_s_rad
    return record.tobytes()


def _pack_for_wire(in_c: bytes) -> bytes:
    """Return a command in its C layout as the bytes that are sent.

    C pads before the first motor (2 to 4) and after its mode (to 8); CDR only after its mode.
    """
    return HEADER + in_c[:2] + in_c[4:6] + in_c[8:]


def _compute_crc_changes(offsets: list[int]) -> npt.NDArray[np.uint32]:
    """Return a table (offsets, 256): what each value of a byte XORs to the CRC of a zero command.

    The CRC is linear, so the changes by the 8 bits of a byte are combined by XOR.
    """
    message = bytearray(_COMMAND_SIZE_IN_C - 4)
    zero_crc = crc(bytes(message))
    table = np.zeros((len(offsets), 256), np.uint32)
    for row, offset in zip(table, offsets, strict=True):
        for bit in range(8):
            message[offset] = 1 << bit
            change = np.uint32(crc(bytes(message)) ^ zero_crc)
            # Values whose highest bit is this one: the change of their lower bits, and of this bit.
            row[1 << bit : 2 << bit] = row[: 1 << bit] ^ change
        message[offset] = 0
    return table


def encode_arm_command(
    joints_rad: Sequence[float], weight: float, *, build: Build, mode_machine: int
) -> bytes:
    """Return the command that moves the streamed joints to `joints_rad`, scaled by `weight`.

    All slots except those of the streamed joints and the weight are zero.
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
    """Return a command for each pose and its weight; ten times as fast as one by one."""
    layout = _make_command_layout(build)
    for pose, weight in zip(joints_rad, weights, strict=True):
        if not 0.0 <= weight <= 1.0 or len(pose) != layout.joints:
            raise BadRequestError(
                f"invalid arm command: a weight of {weight} and {len(pose)} positions",
                f"A weight is 0 to 1, and there are {layout.joints} joints.",
            )
    numbers = np.empty((len(weights), layout.joints + 1), "<f4")
    numbers[:, :-1], numbers[:, -1] = joints_rad, weights
    if not np.isfinite(numbers).all():
        raise BadRequestError("arm command contains a non-finite value")
    commands = np.repeat(layout.blank[None, :], len(weights), axis=0)
    commands[:, _HEAD + _MACHINE_OFFSET] = mode_machine
    words = commands.view("<u4")
    words[:, layout.word_indices] = numbers.view("<u4")
    # Look up how each byte of the numbers changes the CRC of the blank command.
    rows = np.arange(len(layout.crc_changes) - 1)
    changes = layout.crc_changes[rows, numbers.view(np.uint8)]
    crc_without_numbers = np.uint32(layout.blank_crc) ^ layout.crc_changes[-1, mode_machine]
    words[:, -1] = np.bitwise_xor.reduce(changes, axis=1) ^ crc_without_numbers
    size, data = commands.shape[1], commands.tobytes()
    return [data[start : start + size] for start in range(0, len(data), size)]


def decode_arm_command(data: bytes, build: Build) -> ArmCommand:
    """Return the command to a build's streamed joints.

    A CRC of 0 means none: Unitree's own C++ publisher leaves it out.
    """
    check_header(data, LOWCMD.itemsize)
    layout = _make_command_layout(build)
    record = np.frombuffer(data, LOWCMD, 1, _HEAD)[0]
    body = data[_HEAD : _HEAD + LOWCMD.itemsize]
    stated = int(record["crc"])
    if stated:
        # The CRC covers the C layout, so its padding is inserted again: see `_pack_for_wire`.
        computed = crc(body[:2] + b"\0\0" + body[2:3] + b"\0\0\0" + body[4:-4])
        if stated != computed:
            raise ChecksumError(
                stated,
                computed,
                ": the LowCmd was changed after its CRC was computed, or its sender computes "
                "another CRC than the SDK (CRC-32/MPEG-2 of little-endian words)",
            )
    motors = record["motors"]
    streamed = motors[layout.slots]
    weight = float(motors["q"][layout.weight_slot])
    if not np.isfinite(streamed["q"]).all() or not 0.0 <= weight <= 1.0:
        raise PayloadError("arm command contains a non-finite value, or a weight outside 0 to 1")
    return ArmCommand(
        tuple(streamed["q"].tolist()),
        weight,
        int(record["mode_machine"]),
        stiff=bool((streamed["kp"] > 0.0).all()),
    )
