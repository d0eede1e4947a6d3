"""The commands and states of an A1 or a Go1 as values: named tuples with units in their names.

Each dialect has only some of the fields. A field that a dialect does not have is None (or its
default) in a value that was read, and is refused in a value to be written, so that nothing is lost
silently.
"""

import struct
from enum import Enum, IntFlag
from typing import NamedTuple, TypeAlias

from rote.errors import BadRequestError
from rote.wire.a1.motors import IDLE, NO_MOTORS, MotorCmds, MotorStates

REMOTE_SIZE = 40
_REMOTE = struct.Struct("<2sH5f16s")
_NO_REMOTE = bytes(REMOTE_SIZE)


class Dialect(Enum):
    """The dialects: releases of Unitree's library that understand each other."""

    A1_3_2 = "3.2"
    """A1 up to v3.2: speeds as shares of a maximum, older sport mode."""
    A1_3_3 = "3.3"
    """A1 with v3.3 and v3.3.1, sport mode from 1.19 on."""
    A1_3_3_4 = "3.3.4"
    """A1 with 3.3.3 and 3.3.4, sport mode from 1.20 on."""
    GO1 = "go1"
    """Go1 with v3.5.0 to v3.8.6."""

    # Each dialect is a single object, and this is faster than hashing its name.
    __hash__ = object.__hash__


class A1FrameKind(Enum):
    """What a frame is for."""

    HIGH_CMD = "HighCmd"
    HIGH_STATE = "HighState"
    LOW_CMD = "LowCmd"
    LOW_STATE = "LowState"


A1_HIGH, A1_LOW, A1_BACKFLIP = 0x00, 0xFF, 0xF0
GO1_HIGH, GO1_LOW, GO1_TRIGGER = 0xEE, 0xFF, 0xF0
"""The level flags."""
GO1_HEAD = b"\xfe\xef"


class Header(NamedTuple):
    """The beginning of every frame of an A1. It does not identify the dialect."""

    level: int = A1_HIGH
    version: int = 0
    robot_id: int = 0
    serial: int = 0
    bandwidth: int = 0


class Go1Header(NamedTuple):
    """The beginning of every frame of a Go1."""

    level: int = GO1_HIGH
    head: bytes = GO1_HEAD
    reserve: int = 0
    serial: tuple[int, int] = (0, 0)
    version: tuple[int, int] = (0, 0)
    bandwidth: int = 0


AnyHeader: TypeAlias = Header | Go1Header


class Cartesian(NamedTuple):
    """A point or a velocity in the body's frame: forward, left, up."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


class Led(NamedTuple):
    """A light on a leg."""

    r: int = 0
    g: int = 0
    b: int = 0


class Imu(NamedTuple):
    """The inertial sensor in the body."""

    quaternion: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)
    """w, x, y, z."""
    gyroscope_rad_s: tuple[float, ...] = (0.0, 0.0, 0.0)
    accelerometer_m_s2: tuple[float, ...] = (0.0, 0.0, 0.0)
    rpy_rad: tuple[float, ...] = (0.0, 0.0, 0.0)
    """Roll, pitch, yaw."""
    temperature_c: int = 0


class BmsCmd(NamedTuple):
    """A command to the battery of a Go1."""

    off: int = 0
    """0xA5 switches it off."""
    reserve: tuple[int, int, int] = (0, 0, 0)


class BmsState(NamedTuple):
    """The report of a Go1's battery."""

    version: tuple[int, int] = (0, 0)
    status: int = 0
    charge_percent: int = 0
    current_ma: int = 0
    cycles: int = 0
    battery_c: tuple[int, int] = (0, 0)
    controller_c: tuple[int, int] = (0, 0)
    cells_mv: tuple[int, ...] = (0,) * 10
    """Low-level states hold them in steps of 32 mV."""


class Button(IntFlag):
    """The pressed buttons of the remote control."""

    R1 = 1 << 0
    L1 = 1 << 1
    START = 1 << 2
    SELECT = 1 << 3
    R2 = 1 << 4
    L2 = 1 << 5
    F1 = 1 << 6
    F2 = 1 << 7
    A = 1 << 8
    B = 1 << 9
    X = 1 << 10
    Y = 1 << 11
    UP = 1 << 12
    RIGHT = 1 << 13
    DOWN = 1 << 14
    LEFT = 1 << 15


SOFT_STOP = Button.L2 | Button.B
"""The buttons that, pressed together, make the legs go limp."""


class Remote(NamedTuple):
    """The forty bytes of the wireless remote, decoded."""

    buttons: Button = Button(0)
    left_x: float = 0.0
    right_x: float = 0.0
    right_y: float = 0.0
    l2: float = 0.0
    left_y: float = 0.0
    head: bytes = bytes(2)
    idle: bytes = bytes(16)
    """Not used by the remote."""

    @classmethod
    def unpack(cls, wire: bytes) -> "Remote":
        """Return the remote in its 40 bytes."""
        if len(wire) != REMOTE_SIZE:
            raise BadRequestError(f"a remote must have {REMOTE_SIZE} bytes, not {len(wire)}")
        head, buttons, left_x, right_x, right_y, l2, left_y, idle = _REMOTE.unpack(wire)
        return cls(Button(buttons), left_x, right_x, right_y, l2, left_y, head, idle)

    def pack(self) -> bytes:
        """Return the 40 bytes of the remote."""
        axes = (self.left_x, self.right_x, self.right_y, self.l2, self.left_y)
        try:
            return _REMOTE.pack(self.head, self.buttons, *axes, self.idle)
        except (struct.error, OverflowError) as error:
            raise BadRequestError(f"this remote cannot be written: {error}") from None


Lights: TypeAlias = tuple[Led, Led, Led, Led]
Feet: TypeAlias = tuple[Cartesian, Cartesian, Cartesian, Cartesian]
"""In the order of the legs: FR, FL, RR, RL."""
DARK: Lights = (Led(), Led(), Led(), Led())
_NO_FEET: Feet = (Cartesian(), Cartesian(), Cartesian(), Cartesian())


class ScaledHighCmd(NamedTuple):
    """A command to an A1 of dialect 3.2: speeds and height as shares of a maximum, -1 to 1."""

    header: AnyHeader | None = None
    """None means the default header."""
    mode: int = 0
    """0 stand, 1 stand with the pose below, 2 walk."""
    forward: float = 0.0
    left: float = 0.0
    turn: float = 0.0
    body_height: float = 0.0
    foot_raise_height: float = 0.0
    """According to Unitree's header the robot does not use it."""
    yaw_rad: float = 0.0
    pitch_rad: float = 0.0
    roll_rad: float = 0.0
    led: Lights = DARK
    remote: bytes = _NO_REMOTE
    app_remote: bytes = _NO_REMOTE
    reserve: int = 0


class HighCmd(NamedTuple):
    """A command to a robot of any later dialect."""

    header: AnyHeader | None = None
    """None means the default header."""
    mode: int = 0
    """0 idle, 1 stand with the pose below, 2 walk by velocity, 3 walk to a position, 5 lie down,
    6 stand up, 7 damping, 8 recover."""
    gait: int = 0
    """0 idle, 1 trot, 2 run, 3 stairs, from 3.3.4 on also 4 obstacle."""
    speed_level: int = 0
    """0 to 2; used only in mode 3."""
    foot_raise_height_m: float = 0.0
    body_height_m: float = 0.0
    position_m: tuple[float, ...] = (0.0, 0.0)
    euler_rad: tuple[float, ...] = (0.0, 0.0, 0.0)
    """Roll, pitch, yaw."""
    velocity_m_s: tuple[float, ...] = (0.0, 0.0)
    """Forward, left."""
    yaw_speed_rad_s: float = 0.0
    led: Lights = DARK
    remote: bytes = _NO_REMOTE
    reserve: int = 0
    bms: BmsCmd | None = None
    """Go1 only."""


class LowCmd(NamedTuple):
    """A command to the motors."""

    header: AnyHeader | None = None
    """None means the default header."""
    motors: MotorCmds = IDLE
    led: Lights = DARK
    """A1 only."""
    remote: bytes = _NO_REMOTE
    reserve: int = 0
    bms: BmsCmd | None = None
    """Go1 only."""


class HighState(NamedTuple):
    """The state of the walking controller, in any dialect."""

    header: AnyHeader | None = None
    mode: int = 0
    imu: Imu = Imu()
    position_m: tuple[float, ...] = (0.0, 0.0, 0.0)
    """From the steps of the legs, so it drifts. Only forward and left in 3.2."""
    velocity_m_s: tuple[float, ...] = (0.0, 0.0, 0.0)
    """Only forward and left in 3.2, where the unit m/s is a guess."""
    yaw_speed_rad_s: float = 0.0
    body_height_m: float = 0.0
    foot_position_m: Feet = _NO_FEET
    foot_velocity_m_s: Feet = _NO_FEET
    foot_force: tuple[int, ...] = (0, 0, 0, 0)
    foot_force_estimate: tuple[int, ...] = (0, 0, 0, 0)
    remote: bytes = _NO_REMOTE
    reserve: int = 0
    rise_speed_m_s: float | None = None
    """3.2 only."""
    tick: int | None = None
    """3.2 only: the motion controller's clock, in µs according to Unitree's header."""
    progress: float | None = None
    """Not in 3.2."""
    gait: int | None = None
    """Not in 3.2."""
    foot_raise_height_m: float | None = None
    """Not in 3.2."""
    motors: MotorStates | None = None
    """3.3.4 and Go1 only."""
    bms: BmsState | None = None
    """Go1 only."""
    obstacle_m: tuple[float, ...] | None = None
    """Go1 only."""


class LowState(NamedTuple):
    """The state of motors and sensors."""

    header: AnyHeader | None = None
    imu: Imu = Imu()
    motors: MotorStates = NO_MOTORS
    foot_force: tuple[int, ...] = (0, 0, 0, 0)
    foot_force_estimate: tuple[int, ...] = (0, 0, 0, 0)
    tick: int = 0
    """The motion controller's clock, in µs according to Unitree's header."""
    remote: bytes = _NO_REMOTE
    reserve: int = 0
    bms: BmsState | None = None
    """Go1 only."""


Command: TypeAlias = HighCmd | ScaledHighCmd | LowCmd
State: TypeAlias = HighState | LowState
Value: TypeAlias = Command | State
