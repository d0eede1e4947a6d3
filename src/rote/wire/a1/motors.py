"""Twenty motors as on the wire: their commands and their reports.

`MotorCmds` and `MotorStates` hold the bytes of the wire and decode them on access. So they show
what is really sent: a torque of 0.123 N.m is read back as the 0.12109375 that the frame can hold.
Twelve motors move legs, in the order FR, FL, RR, RL, each hip, thigh, calf; eight slots are spare.

The low-level frames carry torques and gains in fixed point, in fewer bits than the structures of
Unitree's header. A value out of range is refused; Unitree's library wraps it, and sends -56 N.m for
200.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np

from rote.errors import BadRequestError
from rote.wire.a1.layout import FLOAT32_MAX

MOTORS = 20
LEG_MOTORS = 12

POSITION_OFF_RAD = 2.146e9
"""Position that means no position control (PosStopF in Unitree's header)."""
VELOCITY_OFF_RAD_S = 16_000.0
"""Velocity that means no velocity control (VelStopF)."""
SERVO = 0x0A
"""Motor mode: follow the command."""
BRAKE = 0x00
"""Motor mode: ignore the command; the motor damps itself."""

TORQUE_STEPS, KP_STEPS, KD_STEPS = 256.0, 32.0, 16.0
"""Fixed-point steps to a N.m, a N.m/rad, a N.m.s/rad."""
_CMD = np.dtype(
    [
        ("mode", "u1"), ("q", "<f4"), ("dq", "<f4"),
        ("tau", "<i2"), ("kp", "<i2"), ("kd", "<i2"), ("reserve", "<u4", (3,)),
    ]
)  # fmt: skip
_COMPACT = np.dtype(
    [
        ("mode", "u1"), ("q", "<f4"), ("dq", "<f4"), ("ddq", "<i2"), ("tau", "<i2"),
        ("q_raw", "<f4"), ("dq_raw", "<f4"), ("ddq_raw", "<i2"),
        ("temperature", "i1"), ("reserve", "<u4", (2,)),
    ]
)  # fmt: skip
_FULL = np.dtype(
    [
        ("mode", "u1"), ("q", "<f4"), ("dq", "<f4"), ("ddq", "<f4"), ("tau", "<f4"),
        ("q_raw", "<f4"), ("dq_raw", "<f4"), ("ddq_raw", "<f4"),
        ("temperature", "i1"), ("reserve", "<u4", (2,)),
    ]
)  # fmt: skip
_COMPACT_ROW = struct.Struct("<BffhhffhbII")
_FULL_ROW = struct.Struct("<BfffffffbII")
_STATE_NUMBERS = 11
"""Numbers of one motor's report, in either form."""
_COMPACT_ROWS = struct.Struct("<" + "BffhhffhbII" * MOTORS)
_FULL_ROWS = struct.Struct("<" + "BfffffffbII" * MOTORS)
CMDS_SIZE = MOTORS * _CMD.itemsize
COMPACT_SIZE = MOTORS * _COMPACT.itemsize
FULL_SIZE = MOTORS * _FULL.itemsize
_LEG_MOTIONS = {
    kind.itemsize * MOTORS: struct.Struct("<" + f"xff{kind.itemsize - 9}x" * LEG_MOTORS)
    for kind in (_CMD, _COMPACT, _FULL)
}
"""By the size of all motors, how to read the legs' positions and velocities."""
_STATE_FLOATS = {
    COMPACT_SIZE: struct.Struct("<" + "xff4xff11x" * MOTORS),
    FULL_SIZE: struct.Struct("<" + "xfffffff9x" * MOTORS),
}
"""By the size of all motors' reports, how to read their floating-point numbers."""

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.floating[Any]]]"
Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.integer[Any]]]"
Column: TypeAlias = "float | Sequence[float] | Floats"
"""One number for every leg motor, or a number for each of the first twelve to twenty."""


class MotorCmd(NamedTuple):
    """The command to one motor: tau + kp (q - measured) + kd (dq - measured)."""

    mode: int = SERVO
    q_rad: float = POSITION_OFF_RAD
    dq_rad_s: float = VELOCITY_OFF_RAD_S
    tau_nm: float = 0.0
    kp_nm_rad: float = 0.0
    kd_nm_s_rad: float = 0.0
    reserve: tuple[int, int, int] = (0, 0, 0)


class MotorState(NamedTuple):
    """What one motor reports."""

    mode: int = SERVO
    q_rad: float = 0.0
    dq_rad_s: float = 0.0
    ddq_rad_s2: float = 0.0
    tau_nm: float = 0.0
    """Estimated, at the output."""
    q_raw_rad: float = 0.0
    dq_raw_rad_s: float = 0.0
    ddq_raw_rad_s2: float = 0.0
    temperature_c: int = 0
    """The heat reaches the sensor with a delay."""
    reserve: tuple[int, int] = (0, 0)


# The limits of each number: the first value that truncation towards zero would put past 16 bits.
_CMD_SPANS: dict[str, tuple[float, float]] = {
    "mode": (0, 255),
    "q_rad": (-FLOAT32_MAX, FLOAT32_MAX),
    "dq_rad_s": (-FLOAT32_MAX, FLOAT32_MAX),
    "tau_nm": (-128.0, 32_767 / TORQUE_STEPS),
    "kp_nm_rad": (-1024.0, 32_767 / KP_STEPS),
    "kd_nm_s_rad": (-2048.0, 32_767 / KD_STEPS),
}
# Structs for commands to the first `count` motors, with and without values for the reserve.
_PACKED = {count: struct.Struct("<" + "BffhhhIII" * count) for count in range(1, MOTORS + 1)}
_GAIN_FLOATS = {count: struct.Struct(f"<{3 * count}f") for count in range(1, MOTORS + 1)}
_INT16 = np.dtype("<i2")
_STEPS = {
    count: np.repeat((TORQUE_STEPS, KP_STEPS, KD_STEPS), count) for count in range(1, MOTORS + 1)
}
_PACKED_UNRESERVED = {
    count: struct.Struct("<" + "Bffhhh12x" * count) for count in range(1, MOTORS + 1)
}


class _Motors:
    """Twenty motors in the bytes of the wire."""

    __slots__ = ("wire",)
    wire: bytes
    _dtype: "np.dtype[Any]"

    @property
    def _rows(self) -> "np.ndarray[Any, Any]":
        return np.frombuffer(self.wire, self._dtype)

    @property
    def mode(self) -> Ints:
        """The mode of each motor."""
        return self._rows["mode"]

    @property
    def q_rad(self) -> Floats:
        """The position of each motor, commanded or measured."""
        return self._rows["q"]

    @property
    def dq_rad_s(self) -> Floats:
        """The velocity of each motor, commanded or measured."""
        return self._rows["dq"]

    @property
    def is_finite(self) -> bool:
        """Whether the legs' positions and velocities are finite; spare slots are not checked."""
        return isfinite(sum(_LEG_MOTIONS[len(self.wire)].unpack_from(self.wire)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self.wire == other.wire

    def __hash__(self) -> int:
        return hash(self.wire)

    def __len__(self) -> int:
        return MOTORS


class MotorCmds(_Motors, Sequence[MotorCmd]):
    """The commands to all motors. Make one with `of` or `servo`."""

    __slots__ = ("is_checked",)
    _dtype = _CMD

    def __init__(self, wire: bytes, *, is_checked: bool = False) -> None:
        if len(wire) != CMDS_SIZE:
            raise BadRequestError(
                f"commands to {MOTORS} motors must have {CMDS_SIZE} bytes, not {len(wire)}"
            )
        self.wire = wire
        self.is_checked = is_checked

    @classmethod
    def of(cls, motors: Iterable[MotorCmd]) -> "MotorCmds":
        """Return the commands to the first motors; the other motors stay idle."""
        commands = tuple(motors)
        if not commands:
            return IDLE
        modes, q, dq, tau, kp, kd, reserves = zip(*commands, strict=True)
        return cls._pack_columns(
            (modes, q, dq, tau, kp, kd), reserves if any(map(any, reserves)) else None
        )

    @classmethod
    def servo(
        cls,
        *,
        q_rad: Column = POSITION_OFF_RAD,
        dq_rad_s: Column = VELOCITY_OFF_RAD_S,
        tau_nm: Column = 0.0,
        kp_nm_rad: Column = 0.0,
        kd_nm_s_rad: Column = 0.0,
        mode: int = SERVO,
    ) -> "MotorCmds":
        """Return the commands to the legs' motors; each argument is one number or one per motor."""
        arguments = (q_rad, dq_rad_s, tau_nm, kp_nm_rad, kd_nm_s_rad)
        wire = _pack_legs(mode, arguments)  # the usual case, quickly
        if wire is not None:
            return cls(wire, is_checked=True)
        columns = [_convert_to_list(column) for column in arguments]
        count = max(map(len, columns))
        if count == 1:
            count = LEG_MOTORS
        for index, column in enumerate(columns):
            if len(column) == 1:  # one number for all motors
                columns[index] = column * count
        return cls._pack_columns([[mode] * count, *columns])

    @classmethod
    def _pack_columns(
        cls,
        columns: Sequence[Sequence[float]],
        reserves: Sequence[tuple[int, int, int]] | None = None,
    ) -> "MotorCmds":
        """Return the commands whose columns are mode, q, dq, tau, kp and kd of the first motors."""
        modes, q, dq, tau, kp, kd = columns
        count = len(modes)
        try:
            # `width` is how many numbers of a motor are packed.
            structs, width = (_PACKED, 9) if reserves else (_PACKED_UNRESERVED, 6)
            floats = np.frombuffer(_GAIN_FLOATS[count].pack(*tau, *kp, *kd), np.float32)
            gains = _to_fixed_point(count, floats).tolist()
            numbers: list[Any] = [0] * (width * count)
            numbers[0::width] = modes
            numbers[1::width] = q
            numbers[2::width] = dq
            numbers[3::width] = gains[:count]
            numbers[4::width] = gains[count : 2 * count]
            numbers[5::width] = gains[2 * count :]
            if reserves:
                numbers[6::9], numbers[7::9], numbers[8::9] = zip(*reserves, strict=True)
            if not isfinite(sum(q) + sum(dq)):
                raise ValueError  # described below
            wire = structs[count].pack(*numbers)
        except (struct.error, ValueError, OverflowError, KeyError):
            raise _make_packing_error(columns) from None
        return cls(wire + IDLE_WIRE[len(wire) :], is_checked=True)

    def check(self) -> None:
        """Raise `BadRequestError` if a position or velocity is not a finite number."""
        if self.is_checked:
            return
        for name, numbers in (("q_rad", self.q_rad), ("dq_rad_s", self.dq_rad_s)):
            for index in np.flatnonzero(~np.isfinite(numbers)):
                raise _make_range_error(
                    f"motors[{index}].{name}", float(numbers[index]), _CMD_SPANS[name]
                )
        self.is_checked = True

    @property
    def tau_nm(self) -> Floats:
        """The commanded torque of each motor."""
        return self._rows["tau"] / TORQUE_STEPS

    @property
    def kp_nm_rad(self) -> Floats:
        """The stiffness of each motor."""
        return self._rows["kp"] / KP_STEPS

    @property
    def kd_nm_s_rad(self) -> Floats:
        """The damping of each motor."""
        return self._rows["kd"] / KD_STEPS

    @overload
    def __getitem__(self, index: int) -> MotorCmd: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MotorCmd]: ...
    def __getitem__(self, index: int | slice) -> MotorCmd | Sequence[MotorCmd]:
        if isinstance(index, slice):
            return tuple(self)[index]
        row = _PACKED[1]
        start = range(MOTORS)[index] * row.size  # the range checks the index; it may be negative
        return _decode_motor_cmd(*row.unpack_from(self.wire, start))

    def __iter__(self) -> Iterator[MotorCmd]:
        for numbers in _PACKED[1].iter_unpack(self.wire):
            yield _decode_motor_cmd(*numbers)

    def __repr__(self) -> str:
        commands = [f"{i}: {motor}" for i, motor in enumerate(self) if motor != MotorCmd()]
        return f"MotorCmds({', '.join(commands)})"


def _decode_motor_cmd(
    mode: int, q: float, dq: float, tau: int, kp: int, kd: int, *reserve: int
) -> MotorCmd:
    gains = (tau / TORQUE_STEPS, kp / KP_STEPS, kd / KD_STEPS)
    return MotorCmd(mode, q, dq, *gains, (reserve[0], reserve[1], reserve[2]))


def _pack_legs(mode: int, rows: tuple[Any, ...]) -> bytes | None:
    """Pack commands that have twelve numbers in each row, in half the time of the general code.

    Returns None for other rows and for values out of range, which the general code reports.
    """
    q, dq, tau, kp, kd = rows
    try:
        if not len(q) == len(dq) == len(tau) == len(kp) == len(kd) == LEG_MOTORS:
            return None
        floats = _LEG_FLOATS.pack(*q, *dq, *tau, *kp, *kd)
        numbers = np.frombuffer(floats, np.float32)
        gains = _to_fixed_point(LEG_MOTORS, numbers[2 * LEG_MOTORS :]).tobytes()
        source = floats[:_LEG_GAINS_OFFSET] + gains + bytes((mode,))
        is_finite = isfinite(sum(q) + sum(dq))
    except (struct.error, TypeError, ValueError, OverflowError):
        return None
    if not is_finite:
        return None
    # `_LEG_ORDER` holds, for each byte of the result, its offset in the source. `translate`
    # replaces each offset by the byte there; its table must have 256 bytes.
    return _LEG_ORDER.translate(source.ljust(256, b"\0")) + _SPARE_WIRE


def _to_fixed_point(count: int, gains: "np.ndarray[Any, np.dtype[np.float32]]") -> Ints:
    """Return the torques, stiffnesses and dampings of `count` motors in fixed point.

    They are scaled in 32 bits and truncated towards zero, as Unitree's library does it. Raises
    `ValueError` if 16 bits cannot hold one.
    """
    scaled = gains * _STEPS[count]
    # If the sum of squares is below (2**15)**2, each number is below 2**15. This is the usual case;
    # otherwise check each number.
    if not scaled.dot(scaled) < 2**30 and not ((scaled > -32_769) & (scaled < 32_768)).all():
        raise ValueError
    whole: Ints = scaled.astype(_INT16)
    return whole


def _convert_to_list(column: Column) -> list[float]:
    """Return the numbers as a list; a single number becomes a list of one."""
    listed = np.asarray(column, dtype=float).tolist()
    return listed if isinstance(listed, list) else [listed]


def _make_range_error(label: str, value: float, span: tuple[float, float]) -> BadRequestError:
    return BadRequestError(
        f"{label} is {value:g}; the frame can hold {span[0]:g} to {span[1]:g}",
        "Nothing was sent. Limit the value first.",
    )


def _make_packing_error(columns: Sequence[Sequence[float]]) -> BadRequestError:
    """Return an error that names the value that cannot be packed."""
    counts = {len(column) for column in columns}
    if len(counts) > 1 or max(counts) > MOTORS:
        return BadRequestError(
            f"the arguments have numbers for {' and '.join(map(str, sorted(counts)))} motors; "
            f"there are {LEG_MOTORS} in the legs and {MOTORS} slots"
        )
    for (name, (low, high)), column in zip(_CMD_SPANS.items(), columns, strict=True):
        for index, value in enumerate(column):
            if not low <= value <= high:
                return _make_range_error(f"motors[{index}].{name}", value, (low, high))
    return BadRequestError("a motor's mode must be one byte, its reserve three 32-bit words")


IDLE_WIRE = _PACKED[MOTORS].pack(
    *(SERVO, POSITION_OFF_RAD, VELOCITY_OFF_RAD_S, 0, 0, 0, 0, 0, 0) * MOTORS
)
_LEG_FLOATS = struct.Struct(f"<{5 * LEG_MOTORS}f")
_LEG_GAINS_OFFSET = 8 * LEG_MOTORS
_MODE_OFFSET = 14 * LEG_MOTORS
_SPARE_WIRE = IDLE_WIRE[LEG_MOTORS * _CMD.itemsize :]


def _make_leg_order() -> bytes:
    """Return, for each byte of the legs' commands, its offset in the source of `_pack_legs`."""
    order = bytearray()
    for motor in range(LEG_MOTORS):
        order.append(_MODE_OFFSET)
        for row in range(2):  # position and velocity: rows of 32-bit floats
            start = 4 * (row * LEG_MOTORS + motor)
            order += bytes(range(start, start + 4))
        for row in range(3):  # torque, stiffness and damping: rows of 16-bit integers
            start = _LEG_GAINS_OFFSET + 2 * (row * LEG_MOTORS + motor)
            order += bytes(range(start, start + 2))
        order += bytes([255]) * 12  # reserved: the last byte of the padded source is zero
    return bytes(order)


_LEG_ORDER = _make_leg_order()
IDLE = MotorCmds(IDLE_WIRE, is_checked=True)
"""Commands that drive no motor, as in a new command of Unitree's library."""


class MotorStates(_Motors, Sequence[MotorState]):
    """The reports of all motors: compact as in low-level frames, or full as in high-level ones."""

    __slots__ = ()

    @property
    def _dtype(self) -> "np.dtype[Any]":  # type: ignore[override] # it depends on the form
        return _COMPACT if self.is_compact else _FULL

    def __init__(self, wire: bytes = bytes(FULL_SIZE)) -> None:
        if len(wire) not in (COMPACT_SIZE, FULL_SIZE):
            raise BadRequestError(
                f"the reports of {MOTORS} motors must have {COMPACT_SIZE} or {FULL_SIZE} bytes, "
                f"not {len(wire)}"
            )
        self.wire = wire

    @classmethod
    def of(cls, motors: Iterable[MotorState]) -> "MotorStates":
        """Return reports, in the full form, of the first motors; the others report zeros."""
        reported = list(motors)
        if len(reported) > MOTORS:
            raise BadRequestError(f"{len(reported)} motors do not fit into {MOTORS} slots")
        numbers: list[float] = []
        for motor in reported:
            numbers += motor[:-1]
            numbers += motor.reserve
        numbers += [0] * (_STATE_NUMBERS * MOTORS - len(numbers))
        try:
            return cls(_FULL_ROWS.pack(*numbers))
        except (struct.error, OverflowError):
            return cls._pack_with_overflow(reported)

    @classmethod
    def _pack_with_overflow(cls, reported: list[MotorState]) -> "MotorStates":
        """Like `of`, but a number that does not fit a 32-bit float becomes infinity.

        Raises `BadRequestError` for other values that do not fit.
        """
        rows = np.zeros(MOTORS, _FULL)
        try:
            with np.errstate(over="ignore"):
                rows[: len(reported)] = reported
        except (OverflowError, ValueError, TypeError) as error:
            raise BadRequestError(f"a motor's report does not fit its frame: {error}") from None
        return cls(rows.tobytes())

    @property
    def is_compact(self) -> bool:
        """Whether accelerations and torques are in fixed point."""
        return len(self.wire) == COMPACT_SIZE

    def to_compact(self) -> "MotorStates":
        """Return the compact form; raise `BadRequestError` if it cannot hold the values."""
        if self.is_compact:
            return self
        numbers = list(_FULL_ROWS.unpack(self.wire))
        try:
            for column, steps in ((3, 1.0), (4, TORQUE_STEPS), (7, 1.0)):  # ddq, tau, ddq_raw
                fixed_point = [int(steps * number) for number in numbers[column::_STATE_NUMBERS]]
                numbers[column::_STATE_NUMBERS] = fixed_point
            return MotorStates(_COMPACT_ROWS.pack(*numbers))
        except (struct.error, ValueError, OverflowError):
            raise self._make_too_large_error() from None

    def _make_too_large_error(self) -> BadRequestError:
        """Return an error that names the first number that does not fit the compact form."""
        for name, steps in (("ddq", 1.0), ("tau", TORQUE_STEPS), ("ddq_raw", 1.0)):
            for index, value in enumerate(self._rows[name].tolist()):
                if not -32_769 < steps * value < 32_768:
                    span = (-32_768 / steps, 32_767 / steps)
                    return _make_range_error(f"motors[{index}].{name}", value, span)
        raise AssertionError("all numbers fit")

    def to_full(self) -> "MotorStates":
        """Return the full form, with all numbers in floating point."""
        if not self.is_compact:
            return self
        compact = self._rows
        rows = np.empty(MOTORS, _FULL)
        for name in _FULL.names or ():
            rows[name] = compact[name]
        rows["tau"] /= np.float32(TORQUE_STEPS)
        return MotorStates(rows.tobytes())

    @property
    def tau_nm(self) -> Floats:
        """The estimated torque of each motor."""
        tau: Floats = self._rows["tau"]
        return tau / TORQUE_STEPS if self.is_compact else tau

    @property
    def temperature_c(self) -> Ints:
        """The temperature of each motor."""
        return self._rows["temperature"]

    def check(self) -> None:
        """Raise `BadRequestError` if a value is not a finite number."""
        if isfinite(sum(_STATE_FLOATS[len(self.wire)].unpack(self.wire))):
            return
        rows = self._rows
        for name in ("q", "dq", "ddq", "tau", "q_raw", "dq_raw", "ddq_raw"):
            for index in np.flatnonzero(~np.isfinite(rows[name])):
                span = (-FLOAT32_MAX, FLOAT32_MAX)
                raise _make_range_error(f"motors[{index}].{name}", float(rows[name][index]), span)

    @overload
    def __getitem__(self, index: int) -> MotorState: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MotorState]: ...
    def __getitem__(self, index: int | slice) -> MotorState | Sequence[MotorState]:
        if isinstance(index, slice):
            return tuple(self)[index]
        row, torque_steps = self._row_format
        start = range(MOTORS)[index] * row.size  # the range checks the index; it may be negative
        return _decode_motor_state(row.unpack_from(self.wire, start), torque_steps)

    def __iter__(self) -> Iterator[MotorState]:
        row, torque_steps = self._row_format
        for numbers in row.iter_unpack(self.wire):
            yield _decode_motor_state(numbers, torque_steps)

    @property
    def _row_format(self) -> tuple[struct.Struct, float]:
        """The struct of one motor's report, and the number of steps of its torque per N.m."""
        return (_COMPACT_ROW, TORQUE_STEPS) if self.is_compact else (_FULL_ROW, 1.0)

    def __repr__(self) -> str:
        reported = [f"{i}: {motor}" for i, motor in enumerate(self) if any(motor[:-1])]
        return f"MotorStates({', '.join(reported)})"


def _decode_motor_state(numbers: tuple[Any, ...], torque_steps: float) -> MotorState:
    mode, q, dq, ddq, tau, q_raw, dq_raw, ddq_raw, celsius, *reserve = numbers
    tau_nm = tau / torque_steps
    raw = (q_raw, dq_raw, float(ddq_raw))
    return MotorState(mode, q, dq, float(ddq), tau_nm, *raw, celsius, (reserve[0], reserve[1]))


NO_MOTORS = MotorStates()
"""Twenty motors that report zeros."""
