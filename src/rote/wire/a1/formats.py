"""The eleven frames of the A1 and the Go1, part by part, as they go over the wire.

The high-level frames are the structures of Unitree's header. The low-level ones are packed smaller
(`motors`); a robot does not understand the header's structures for them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from rote.errors import BadRequestError
from rote.wire.a1.layout import (
    Layout,
    Part,
    bytes_part,
    number_part,
    numbers_part,
    record_part,
    records_part,
)
from rote.wire.a1.motors import CMDS_SIZE, COMPACT_SIZE, FULL_SIZE, MotorCmds, MotorStates
from rote.wire.a1.values import (
    A1_HIGH,
    A1_LOW,
    GO1_HIGH,
    GO1_LOW,
    REMOTE_SIZE,
    A1FrameKind,
    AnyHeader,
    BmsCmd,
    BmsState,
    Cartesian,
    Dialect,
    Go1Header,
    Header,
    HighCmd,
    HighState,
    Imu,
    Led,
    LowCmd,
    LowState,
    ScaledHighCmd,
)

_SHARE = (-1.0, 1.0)
_CELL_STEP_MV = 32


# ---- parts that several frames have -------------------------------------------------------------


def _require_type(required: type[Any], flatten: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function like `flatten` that raises `BadRequestError` for a value of another type.

    Without the check a header of an A1 could be packed into a frame of a Go1, or vice versa.
    """

    def check_and_flatten(value: Any) -> Any:
        if not isinstance(value, required):
            raise BadRequestError(
                f"this dialect needs a {required.__name__}, not a {type(value).__name__}"
            )
        return flatten(value)

    return check_and_flatten


_HEADER = record_part("header", Header, "BHHIB")._replace(flatten=_require_type(Header, tuple))
_GO1_HEADER = Part(
    "header",
    "BBBBIIIIH",
    tuple(
        f"header.{name}"
        for name in (
            "head[0]", "head[1]", "level", "reserve",
            "serial[0]", "serial[1]", "version[0]", "version[1]", "bandwidth",
        )
    ),
    lambda n: Go1Header(n[2], bytes(n[:2]), n[3], n[4:6], n[6:8], n[8]),
    _require_type(
        Go1Header, lambda h: (*h.head, h.level, h.reserve, *h.serial, *h.version, h.bandwidth)
    ),
)  # fmt: skip


def _make_imu_labels() -> tuple[str, ...]:
    rows = (("quaternion", 4), ("gyroscope_rad_s", 3), ("accelerometer_m_s2", 3), ("rpy_rad", 3))
    labels = [f"imu.{name}[{i}]" for name, count in rows for i in range(count)]
    return (*labels, "imu.temperature_c")


_IMU = Part(
    "imu",
    "f" * 13 + "b",
    _make_imu_labels(),
    lambda n: Imu(n[:4], n[4:7], n[7:10], n[10:13], n[13]),
    lambda imu: (*imu[0], *imu[1], *imu[2], *imu[3], imu[4]),
)
_LED = records_part("led", Led, "BBB", 4)
_REMOTE = bytes_part("remote", REMOTE_SIZE)
_RESERVE = number_part("reserve", "I")
_TICK = number_part("tick", "I")
_FORCES = numbers_part("foot_force", "h", 4), numbers_part("foot_force_estimate", "h", 4)
_FEET = (
    records_part("foot_position_m", Cartesian, "fff", 4),
    records_part("foot_velocity_m_s", Cartesian, "fff", 4),
)
_CMDS = bytes_part("motors", CMDS_SIZE, MotorCmds)._replace(flatten=lambda motors: (motors.wire,))
_COMPACT = bytes_part("motors", COMPACT_SIZE, MotorStates)._replace(
    flatten=lambda motors: (motors.to_compact().wire,)
)
_FULL = bytes_part("motors", FULL_SIZE, MotorStates)._replace(
    flatten=lambda motors: (motors.to_full().wire,)
)
_BMS_CMD = Part(
    "bms",
    "BBBB",
    ("bms.off", *(f"bms.reserve[{i}]" for i in range(3))),
    lambda n: BmsCmd(n[0], n[1:]),
    lambda bms: (bms.off, *bms.reserve),
)


def _make_bms_state(cell_code: str, step_mv: int) -> Part:
    """Return the part of a battery's state.

    Each cell voltage is a number of the struct code `cell_code`, in steps of `step_mv`.
    """
    names = (
        "version[0]", "version[1]", "status", "charge_percent", "current_ma", "cycles",
        "battery_c[0]", "battery_c[1]", "controller_c[0]", "controller_c[1]",
    )  # fmt: skip
    cell_names = tuple(f"cells_mv[{i}]" for i in range(10))

    def make(numbers: Any) -> BmsState:
        return BmsState(
            version=numbers[0:2],
            status=numbers[2],
            charge_percent=numbers[3],
            current_ma=numbers[4],
            cycles=numbers[5],
            battery_c=numbers[6:8],
            controller_c=numbers[8:10],
            cells_mv=tuple(cell * step_mv for cell in numbers[10:]),
        )

    def flatten(bms: BmsState) -> tuple[int, ...]:
        head = (*bms.version, bms.status, bms.charge_percent, bms.current_ma, bms.cycles)
        cells = (cell // step_mv for cell in bms.cells_mv)
        return (*head, *bms.battery_c, *bms.controller_c, *cells)

    labels = tuple(f"bms.{name}" for name in (*names, *cell_names))
    return Part("bms", "BBBBiHbbbb" + cell_code * 10, labels, make, flatten)


_HIGH_STATE_FIELDS = (
    number_part("mode", "B"),
    number_part("progress", "f"),
    number_part("gait", "B"),
    number_part("foot_raise_height_m", "f"),
    numbers_part("position_m", "f", 3),
    number_part("body_height_m", "f"),
    numbers_part("velocity_m_s", "f", 3),
    number_part("yaw_speed_rad_s", "f"),
)
_HIGH_CMD_FIELDS = (
    number_part("mode", "B"),
    number_part("gait", "B"),
    number_part("speed_level", "B"),
    number_part("foot_raise_height_m", "f"),
    number_part("body_height_m", "f"),
    numbers_part("position_m", "f", 2),
    numbers_part("euler_rad", "f", 3),
    numbers_part("velocity_m_s", "f", 2),
    number_part("yaw_speed_rad_s", "f"),
)

# ---- the frames ---------------------------------------------------------------------------------

HIGH_CMD_3_2 = Layout(
    ScaledHighCmd,
    _HEADER,
    number_part("mode", "B"),
    number_part("forward", "f", _SHARE),
    number_part("left", "f", _SHARE),
    number_part("turn", "f", _SHARE),
    number_part("body_height", "f", _SHARE),
    number_part("foot_raise_height", "f"),
    number_part("yaw_rad", "f", _SHARE),
    number_part("pitch_rad", "f", _SHARE),
    number_part("roll_rad", "f", _SHARE),
    _LED,
    _REMOTE,
    bytes_part("app_remote", REMOTE_SIZE),
    _RESERVE,
)
HIGH_STATE_3_2 = Layout(
    HighState,
    _HEADER,
    number_part("mode", "B"),
    _IMU,
    numbers_part("velocity_m_s", "f", 2),
    number_part("yaw_speed_rad_s", "f"),
    number_part("body_height_m", "f"),
    number_part("rise_speed_m_s", "f"),
    numbers_part("position_m", "f", 2),
    *_FEET,
    *_FORCES,
    _TICK,
    _REMOTE,
    _RESERVE,
)
HIGH_CMD_3_3 = Layout(HighCmd, _HEADER, *_HIGH_CMD_FIELDS, _LED, _REMOTE, _RESERVE)
HIGH_STATE_3_3 = Layout(
    HighState,
    _HEADER,
    *_HIGH_STATE_FIELDS[:2],
    _IMU,
    *_HIGH_STATE_FIELDS[2:],
    *_FEET,
    *_FORCES,
    _REMOTE,
    _RESERVE,
)
HIGH_STATE_3_3_4 = Layout(
    HighState, _HEADER, _IMU, _FULL, *_FORCES, *_HIGH_STATE_FIELDS, *_FEET, _REMOTE, _RESERVE
)
LOW_CMD = Layout(LowCmd, _HEADER, _CMDS, _LED, _REMOTE, _RESERVE)
LOW_STATE = Layout(LowState, _HEADER, _IMU, _COMPACT, *_FORCES, _TICK, _REMOTE, _RESERVE)

GO1_HIGH_CMD = Layout(HighCmd, _GO1_HEADER, *_HIGH_CMD_FIELDS, _BMS_CMD, _LED, _REMOTE, _RESERVE)
GO1_HIGH_STATE = Layout(
    HighState,
    _GO1_HEADER,
    _IMU,
    _FULL,
    _make_bms_state("H", 1),
    *_FORCES,
    *_HIGH_STATE_FIELDS,
    numbers_part("obstacle_m", "f", 4),
    *_FEET,
    _REMOTE,
    _RESERVE,
)
GO1_LOW_CMD = Layout(LowCmd, _GO1_HEADER, _CMDS, _BMS_CMD, _REMOTE, _RESERVE)
GO1_LOW_STATE = Layout(
    LowState,
    _GO1_HEADER,
    _IMU,
    _COMPACT,
    _make_bms_state("B", _CELL_STEP_MV),
    *_FORCES,
    _TICK,
    _REMOTE,
    _RESERVE,
)


class A1Format(NamedTuple):
    """One frame: its kind, its dialects, and its layout."""

    kind: A1FrameKind
    dialects: tuple[Dialect, ...]
    layout: Layout
    header: AnyHeader
    """The default header."""
    is_go1: bool = False


_A1 = (Dialect.A1_3_2, Dialect.A1_3_3, Dialect.A1_3_3_4)
_LATER = _A1[1:]
_GO1 = (Dialect.GO1,)
FORMATS: tuple[A1Format, ...] = (
    A1Format(A1FrameKind.HIGH_CMD, _A1[:1], HIGH_CMD_3_2, Header(A1_HIGH)),
    A1Format(A1FrameKind.HIGH_CMD, _LATER, HIGH_CMD_3_3, Header(A1_HIGH)),
    A1Format(A1FrameKind.HIGH_CMD, _GO1, GO1_HIGH_CMD, Go1Header(GO1_HIGH), is_go1=True),
    A1Format(A1FrameKind.HIGH_STATE, _A1[:1], HIGH_STATE_3_2, Header(A1_HIGH)),
    A1Format(A1FrameKind.HIGH_STATE, _LATER[:1], HIGH_STATE_3_3, Header(A1_HIGH)),
    A1Format(A1FrameKind.HIGH_STATE, _LATER[1:], HIGH_STATE_3_3_4, Header(A1_HIGH)),
    A1Format(A1FrameKind.HIGH_STATE, _GO1, GO1_HIGH_STATE, Go1Header(GO1_HIGH), is_go1=True),
    A1Format(A1FrameKind.LOW_CMD, _A1, LOW_CMD, Header(A1_LOW)),
    A1Format(A1FrameKind.LOW_CMD, _GO1, GO1_LOW_CMD, Go1Header(GO1_LOW), is_go1=True),
    A1Format(A1FrameKind.LOW_STATE, _A1, LOW_STATE, Header(A1_LOW)),
    A1Format(A1FrameKind.LOW_STATE, _GO1, GO1_LOW_STATE, Go1Header(GO1_LOW), is_go1=True),
)
BY_SIZE: dict[int, A1Format] = {format_.layout.size: format_ for format_ in FORMATS}
BY_TYPE: dict[tuple[type[Any], Dialect], A1Format] = {
    (format_.layout.value_type, dialect): format_
    for format_ in FORMATS
    for dialect in format_.dialects
}
