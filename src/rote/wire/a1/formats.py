"""The eleven frames of the A1 and the Go1, part by part, as they go over the wire.

The high-level frames are the structures of Unitree's header. The low-level ones are not: they go
packed smaller (`a1_motors`), and a header's structure sent as it is means nothing to a robot.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from rote.errors import BadRequestError
from rote.wire.a1.layout import Layout, Part, one, raw, record, records, several
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


def _check_type(make: type[Any], flat: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def numbers(value: Any) -> Any:
        if not isinstance(value, make):
            raise BadRequestError(
                f"this dialect wants a {make.__name__}, not a {type(value).__name__}"
            )
        return flat(value)

    return numbers


_HEADER = record("header", Header, "BHHIB")._replace(flat=_check_type(Header, tuple))
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
    _check_type(
        Go1Header, lambda h: (*h.head, h.level, h.reserve, *h.serial, *h.version, h.bandwidth)
    ),
)  # fmt: skip


def _imu_labels() -> tuple[str, ...]:
    rows = (("quaternion", 4), ("gyroscope_rad_s", 3), ("accelerometer_m_s2", 3), ("rpy_rad", 3))
    numbers = [f"imu.{name}[{i}]" for name, count in rows for i in range(count)]
    return (*numbers, "imu.temperature_c")


_IMU = Part(
    "imu",
    "f" * 13 + "b",
    _imu_labels(),
    lambda n: Imu(n[:4], n[4:7], n[7:10], n[10:13], n[13]),
    lambda imu: (*imu[0], *imu[1], *imu[2], *imu[3], imu[4]),
)
_LED = records("led", Led, "BBB", 4)
_REMOTE = raw("remote", REMOTE_SIZE)
_RESERVE = one("reserve", "I")
_TICK = one("tick", "I")
_FORCES = several("foot_force", "h", 4), several("foot_force_estimate", "h", 4)
_FEET = (
    records("foot_position_m", Cartesian, "fff", 4),
    records("foot_velocity_m_s", Cartesian, "fff", 4),
)
_CMDS = raw("motors", CMDS_SIZE, MotorCmds)._replace(flat=lambda motors: (motors.wire,))
_COMPACT = raw("motors", COMPACT_SIZE, MotorStates)._replace(
    flat=lambda motors: (motors.compact().wire,)
)
_FULL = raw("motors", FULL_SIZE, MotorStates)._replace(flat=lambda motors: (motors.full().wire,))
_BMS_CMD = Part(
    "bms",
    "BBBB",
    ("bms.off", *(f"bms.reserve[{i}]" for i in range(3))),
    lambda n: BmsCmd(n[0], n[1:]),
    lambda bms: (bms.off, *bms.reserve),
)


def _bms_state(cell_code: str, step_mv: int) -> Part:
    names = (
        "version[0]", "version[1]", "status", "charge_percent", "current_ma", "cycles",
        "battery_c[0]", "battery_c[1]", "controller_c[0]", "controller_c[1]",
    )  # fmt: skip
    cells = tuple(f"cells_mv[{i}]" for i in range(10))

    def make(n: tuple[int, ...]) -> BmsState:
        cells_mv = tuple(cell * step_mv for cell in n[10:])
        return BmsState((n[0], n[1]), n[2], n[3], n[4], n[5], (n[6], n[7]), (n[8], n[9]), cells_mv)

    def flat(bms: BmsState) -> tuple[int, ...]:
        told = (*bms.version, bms.status, bms.charge_percent, bms.current_ma, bms.cycles)
        cells = (cell // step_mv for cell in bms.cells_mv)
        return (*told, *bms.battery_c, *bms.controller_c, *cells)

    labels = tuple(f"bms.{name}" for name in (*names, *cells))
    return Part("bms", "BBBBiHbbbb" + cell_code * 10, labels, make, flat)


_HIGH_MIDDLE = (
    one("mode", "B"),
    one("progress", "f"),
    one("gait", "B"),
    one("foot_raise_height_m", "f"),
    several("position_m", "f", 3),
    one("body_height_m", "f"),
    several("velocity_m_s", "f", 3),
    one("yaw_speed_rad_s", "f"),
)
_ORDERS = (
    one("mode", "B"),
    one("gait", "B"),
    one("speed_level", "B"),
    one("foot_raise_height_m", "f"),
    one("body_height_m", "f"),
    several("position_m", "f", 2),
    several("euler_rad", "f", 3),
    several("velocity_m_s", "f", 2),
    one("yaw_speed_rad_s", "f"),
)

# ---- the frames ---------------------------------------------------------------------------------

HIGH_CMD_3_2 = Layout(
    ScaledHighCmd,
    _HEADER,
    one("mode", "B"),
    one("forward", "f", _SHARE),
    one("left", "f", _SHARE),
    one("turn", "f", _SHARE),
    one("body_height", "f", _SHARE),
    one("foot_raise_height", "f"),
    one("yaw_rad", "f", _SHARE),
    one("pitch_rad", "f", _SHARE),
    one("roll_rad", "f", _SHARE),
    _LED,
    _REMOTE,
    raw("app_remote", REMOTE_SIZE),
    _RESERVE,
)
HIGH_STATE_3_2 = Layout(
    HighState,
    _HEADER,
    one("mode", "B"),
    _IMU,
    several("velocity_m_s", "f", 2),
    one("yaw_speed_rad_s", "f"),
    one("body_height_m", "f"),
    one("rise_speed_m_s", "f"),
    several("position_m", "f", 2),
    *_FEET,
    *_FORCES,
    _TICK,
    _REMOTE,
    _RESERVE,
)
HIGH_CMD_3_3 = Layout(HighCmd, _HEADER, *_ORDERS, _LED, _REMOTE, _RESERVE)
HIGH_STATE_3_3 = Layout(
    HighState,
    _HEADER,
    *_HIGH_MIDDLE[:2],
    _IMU,
    *_HIGH_MIDDLE[2:],
    *_FEET,
    *_FORCES,
    _REMOTE,
    _RESERVE,
)
HIGH_STATE_3_3_4 = Layout(
    HighState, _HEADER, _IMU, _FULL, *_FORCES, *_HIGH_MIDDLE, *_FEET, _REMOTE, _RESERVE
)
LOW_CMD = Layout(LowCmd, _HEADER, _CMDS, _LED, _REMOTE, _RESERVE)
LOW_STATE = Layout(LowState, _HEADER, _IMU, _COMPACT, *_FORCES, _TICK, _REMOTE, _RESERVE)

GO1_HIGH_CMD = Layout(HighCmd, _GO1_HEADER, *_ORDERS, _BMS_CMD, _LED, _REMOTE, _RESERVE)
GO1_HIGH_STATE = Layout(
    HighState,
    _GO1_HEADER,
    _IMU,
    _FULL,
    _bms_state("H", 1),
    *_FORCES,
    *_HIGH_MIDDLE,
    several("obstacle_m", "f", 4),
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
    _bms_state("B", _CELL_STEP_MV),
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
    """The usual one."""
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
    (format_.layout.make, dialect): format_ for format_ in FORMATS for dialect in format_.dialects
}
