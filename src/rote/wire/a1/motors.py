"""Twenty motors as on the wire: their commands and their reports.

`MotorCmds` and `MotorStates` hold the bytes of the wire and decode them on access, so that what one
sees is what is sent: a torque of 0.123 N.m is read back as the 0.12109375 that the frame can hold.
Twelve motors move legs, in the order FR, FL, RR, RL, each hip, thigh, calf; eight places are spare.

The low-level frames carry torques and gains in fixed point, one size smaller than the structures of
Unitree's header. What does not fit is refused; Unitree's library wraps it instead, and sends -56
N.m for 200.
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
"""As a position: hold none (PosStopF in Unitree's header)."""
VELOCITY_OFF_RAD_S = 16_000.0
"""As a velocity: hold none (VelStopF)."""
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
CMDS_SIZE = MOTORS * _CMD.itemsize
COMPACT_SIZE = MOTORS * _COMPACT.itemsize
FULL_SIZE = MOTORS * _FULL.itemsize

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
_PACKED = {count: struct.Struct("<" + "BffhhhIII" * count) for count in range(1, MOTORS + 1)}
_FLOATS = {count: struct.Struct(f"<{3 * count}f") for count in range(1, MOTORS + 1)}
_INT16 = np.dtype("<i2")
_STEPS = {
    count: np.repeat((TORQUE_STEPS, KP_STEPS, KD_STEPS), count) for count in range(1, MOTORS + 1)
}
_UNRESERVED = {count: struct.Struct("<" + "Bffhhh12x" * count) for count in range(1, MOTORS + 1)}


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
        """Whether the legs' positions and velocities are finite; spare places may hold anything."""
        rows = self._rows[:LEG_MOTORS]
        return bool(np.isfinite(rows["q"]).all() and np.isfinite(rows["dq"]).all())

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
            raise BadRequestError(f"{MOTORS} motors are asked in {CMDS_SIZE} bytes")
        self.wire = wire
        self.is_checked = is_checked

    @classmethod
    def of(cls, motors: Iterable[MotorCmd]) -> "MotorCmds":
        """Return the commands to the first motors; the rest is left alone."""
        asked = tuple(motors)
        if not asked:
            return IDLE
        modes, q, dq, tau, kp, kd, reserves = zip(*asked, strict=True)
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
        """Return the commands to the legs' motors; each number is for all of them, or a row."""
        given = (q_rad, dq_rad_s, tau_nm, kp_nm_rad, kd_nm_s_rad)
        wire = _pack_legs(mode, given)
        if wire is not None:
            return cls(wire, is_checked=True)
        columns = [_list_numbers(column) for column in given]
        count = max(map(len, columns))
        if count == 1:
            count = LEG_MOTORS
        for place, column in enumerate(columns):
            if len(column) == 1:
                columns[place] = column * count
        return cls._pack_columns([[mode] * count, *columns])

    @classmethod
    def _pack_columns(
        cls,
        columns: Sequence[Sequence[float]],
        reserves: Sequence[tuple[int, int, int]] | None = None,
    ) -> "MotorCmds":
        modes, q, dq, tau, kp, kd = columns
        count = len(modes)
        try:
            layout, width = (_PACKED, 9) if reserves else (_UNRESERVED, 6)
            floats = np.frombuffer(_FLOATS[count].pack(*tau, *kp, *kd), np.float32)
            gains = _fixed_point(count, floats).tolist()
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
                raise ValueError
            wire = layout[count].pack(*numbers)
        except (struct.error, ValueError, OverflowError, KeyError):
            raise _find_misfit(columns) from None
        return cls(wire + IDLE_WIRE[len(wire) :], is_checked=True)

    def check(self) -> None:
        """Raise `BadRequestError` if a position or velocity is not a finite number."""
        if self.is_checked:
            return
        for name, numbers in (("q_rad", self.q_rad), ("dq_rad_s", self.dq_rad_s)):
            for index in np.flatnonzero(~np.isfinite(numbers)):
                raise _no_number(f"motors[{index}].{name}", float(numbers[index]), _CMD_SPANS[name])
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
        return _motor_cmd(*row.unpack_from(self.wire, range(MOTORS)[index] * row.size))

    def __iter__(self) -> Iterator[MotorCmd]:
        for numbers in _PACKED[1].iter_unpack(self.wire):
            yield _motor_cmd(*numbers)

    def __repr__(self) -> str:
        asked = [f"{i}: {motor}" for i, motor in enumerate(self) if motor != MotorCmd()]
        return f"MotorCmds({', '.join(asked)})"


def _motor_cmd(
    mode: int, q: float, dq: float, tau: int, kp: int, kd: int, *reserve: int
) -> MotorCmd:
    gains = (tau / TORQUE_STEPS, kp / KP_STEPS, kd / KD_STEPS)
    return MotorCmd(mode, q, dq, *gains, (reserve[0], reserve[1], reserve[2]))


def _pack_legs(mode: int, rows: tuple[Any, ...]) -> bytes | None:
    """Return the motors' bytes for five rows of twelve, the usual case, in half the time.

    None in any other case, or if something does not fit: the general code finds out what.
    """
    q, dq, tau, kp, kd = rows
    try:
        if not len(q) == len(dq) == len(tau) == len(kp) == len(kd) == LEG_MOTORS:
            return None
        floats = _LEG_FLOATS.pack(*q, *dq, *tau, *kp, *kd)
        numbers = np.frombuffer(floats, np.float32)
        gains = _fixed_point(LEG_MOTORS, numbers[2 * LEG_MOTORS :]).tobytes()
        source = floats[:_LEG_GAINS_AT] + gains + bytes((mode,))
        is_finite = isfinite(sum(q) + sum(dq))
    except (struct.error, TypeError, ValueError, OverflowError):
        return None
    if not is_finite:
        return None
    return _LEG_ORDER.translate(source.ljust(256, b"\0")) + _SPARE_WIRE


def _fixed_point(count: int, gains: "np.ndarray[Any, np.dtype[np.float32]]") -> Ints:
    """Return torques, stiffnesses and dampings as Unitree's library makes them: rounded to 32
    bits, scaled, cut off towards zero. Raise `ValueError` where 16 bits would not hold them."""
    scaled = gains * _STEPS[count]
    # If the sum of all squares is small enough, each number is; only otherwise check each.
    if not scaled.dot(scaled) < 2**30 and not ((scaled > -32_769) & (scaled < 32_768)).all():
        raise ValueError
    whole: Ints = scaled.astype(_INT16)
    return whole


def _list_numbers(column: Column) -> list[float]:
    """Return a row of numbers; of length one for a single number."""
    listed = np.asarray(column, dtype=float).tolist()
    return listed if isinstance(listed, list) else [listed]


def _no_number(label: str, value: float, span: tuple[float, float]) -> BadRequestError:
    return BadRequestError(
        f"{label} is {value:g}; the frame can hold {span[0]:g} to {span[1]:g}",
        "Nothing was sent. Limit the number before it is asked for; it would be sent as another.",
    )


def _find_misfit(columns: Sequence[Sequence[float]]) -> BadRequestError:
    """Return an error that names what cannot be packed."""
    counts = {len(column) for column in columns}
    if len(counts) > 1 or max(counts) > MOTORS:
        return BadRequestError(
            f"numbers for {' and '.join(map(str, sorted(counts)))} motors; "
            f"there are {LEG_MOTORS} in the legs and {MOTORS} places"
        )
    for (name, (low, high)), column in zip(_CMD_SPANS.items(), columns, strict=True):
        for index, value in enumerate(column):
            if not low <= value <= high:
                return _no_number(f"motors[{index}].{name}", value, (low, high))
    return BadRequestError("a motor's mode is a byte, its reserve three 32-bit words")


IDLE_WIRE = _PACKED[MOTORS].pack(
    *(SERVO, POSITION_OFF_RAD, VELOCITY_OFF_RAD_S, 0, 0, 0, 0, 0, 0) * MOTORS
)
_LEG_FLOATS = struct.Struct(f"<{5 * LEG_MOTORS}f")
_LEG_GAINS_AT = 8 * LEG_MOTORS
_MODE_AT = 14 * LEG_MOTORS
_SPARE_WIRE = IDLE_WIRE[LEG_MOTORS * _CMD.itemsize :]


def _leg_order() -> bytes:
    """Return, for each byte of the legs' motors, where it comes from in the rows of numbers."""
    order = bytearray()
    for motor in range(LEG_MOTORS):
        order.append(_MODE_AT)
        for row in range(2):
            start = 4 * (row * LEG_MOTORS + motor)
            order += bytes(range(start, start + 4))
        for row in range(3):
            start = _LEG_GAINS_AT + 2 * (row * LEG_MOTORS + motor)
            order += bytes(range(start, start + 2))
        order += bytes([255]) * 12
    return bytes(order)


_LEG_ORDER = _leg_order()
IDLE = MotorCmds(IDLE_WIRE, is_checked=True)
"""Nothing is asked of any motor, as in a new command of Unitree's library."""


class MotorStates(_Motors, Sequence[MotorState]):
    """The reports of all motors, in the compact form of the low frames or the full one of
    the high.
    """

    __slots__ = ()

    @property
    def _dtype(self) -> "np.dtype[Any]":  # type: ignore[override] # it hangs on the form
        return _COMPACT if self.is_compact else _FULL

    def __init__(self, wire: bytes = bytes(FULL_SIZE)) -> None:
        if len(wire) not in (COMPACT_SIZE, FULL_SIZE):
            raise BadRequestError(
                f"{MOTORS} motors report in {COMPACT_SIZE} bytes, or in {FULL_SIZE}"
            )
        self.wire = wire

    @classmethod
    def of(cls, motors: Iterable[MotorState]) -> "MotorStates":
        """Return the full form of the first motors' reports; the rest reports nothing."""
        rows = np.zeros(MOTORS, _FULL)
        reported = list(motors)
        if len(reported) > MOTORS:
            raise BadRequestError(f"{len(reported)} motors; there are {MOTORS} places")
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

    def compact(self) -> "MotorStates":
        """Return the form of the low frames, or raise `BadRequestError` if it cannot hold the
        values.
        """
        if self.is_compact:
            return self
        full = self._rows
        rows = np.empty(MOTORS, _COMPACT)
        for name in ("mode", "q", "dq", "q_raw", "dq_raw", "temperature", "reserve"):
            rows[name] = full[name]
        for name, steps in (("ddq", 1.0), ("tau", TORQUE_STEPS), ("ddq_raw", 1.0)):
            cut = np.trunc(full[name] * np.float32(steps))
            for index in np.flatnonzero(~((cut >= -32_768) & (cut <= 32_767))):
                span = (-32_768 / steps, 32_767 / steps)
                raise _no_number(f"motors[{index}].{name}", float(full[name][index]), span)
            rows[name] = cut
        return MotorStates(rows.tobytes())

    def full(self) -> "MotorStates":
        """Return the form of the high frames."""
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
        """Raise `BadRequestError` if something is not a finite number."""
        rows = self._rows
        for name in ("q", "dq", "ddq", "tau", "q_raw", "dq_raw", "ddq_raw"):
            for index in np.flatnonzero(~np.isfinite(rows[name])):
                span = (-FLOAT32_MAX, FLOAT32_MAX)
                raise _no_number(f"motors[{index}].{name}", float(rows[name][index]), span)

    @overload
    def __getitem__(self, index: int) -> MotorState: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MotorState]: ...
    def __getitem__(self, index: int | slice) -> MotorState | Sequence[MotorState]:
        if isinstance(index, slice):
            return tuple(self)[index]
        layout, steps = self._row
        start = range(MOTORS)[index] * layout.size
        return _motor_state(steps, layout.unpack_from(self.wire, start))

    def __iter__(self) -> Iterator[MotorState]:
        layout, steps = self._row
        for numbers in layout.iter_unpack(self.wire):
            yield _motor_state(steps, numbers)

    @property
    def _row(self) -> tuple[struct.Struct, float]:
        return (_COMPACT_ROW, TORQUE_STEPS) if self.is_compact else (_FULL_ROW, 1.0)

    def __repr__(self) -> str:
        told = [f"{i}: {motor}" for i, motor in enumerate(self) if any(motor[:-1])]
        return f"MotorStates({', '.join(told)})"


def _motor_state(steps: float, numbers: tuple[Any, ...]) -> MotorState:
    mode, q, dq, ddq, tau, q_raw, dq_raw, ddq_raw, celsius, *reserve = numbers
    told = (float(ddq), tau / steps, q_raw, dq_raw, float(ddq_raw))
    return MotorState(mode, q, dq, *told, celsius, (reserve[0], reserve[1]))


NO_MOTORS = MotorStates()
"""Twenty motors that report zeros."""
