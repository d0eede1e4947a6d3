"""The interface of Unitree's A1 library, under its own names, for programs that are ported.

    udp = UDP(HIGHLEVEL, 8090, "192.168.123.161", 8082)
    cmd, state = HighCmd(), HighState()
    udp.InitCmdData(cmd)
    udp.Recv()
    udp.GetRecv(state)
    cmd.mode, cmd.velocity = 2, [0.2, 0.0]
    udp.SetSend(cmd)
    udp.Send()

Structures and fields have the names of the C++ header, of v3.2 and of later versions. The robot's
dialect decides which fields it accepts; setting another one is refused. A `rote.A1` does the work,
with all its protections: every number is checked, a command expires if `Send` is not called again,
and nothing here ends the process. `LoopFunc` runs the loops, in both forms of the library.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np

from rote.errors import BadRequestError, ProtectionError
from rote.robot.quadruped.loop import LoopFunc
from rote.robot.quadruped.safety import A1SafetyLimits
from rote.robot.quadruped.safety import Safety as Guard
from rote.session.a1 import Level
from rote.sync import BlockingA1, connect
from rote.wire.a1 import codec as wire
from rote.wire.a1 import motors as a1_motors
from rote.wire.a1 import values as a1_values
from rote.wire.a1.values import Dialect

__all__ = [
    "UDP", "Safety", "LeggedType", "LoopFunc",
    "HighCmd", "HighState", "LowCmd", "LowState", "MotorCmd", "MotorState", "IMU", "LED",
    "Cartesian",
    "HIGHLEVEL", "LOWLEVEL", "PosStopF", "VelStopF", "MOTORS", "FIELDS",
]  # fmt: skip

HIGHLEVEL, LOWLEVEL = a1_values.A1_HIGH, a1_values.A1_LOW
PosStopF = a1_motors.POSITION_OFF_RAD
VelStopF = a1_motors.VELOCITY_OFF_RAD_S
MOTORS: dict[str, int] = {
    f"{leg}_{joint}": 3 * number + joint
    for number, leg in enumerate(("FR", "FL", "RR", "RL"))
    for joint in range(3)
}
"""The indices of the motors: `cmd.motorCmd[MOTORS["FR_0"]]`; 0 is the hip, 1 the thigh, 2 the calf.
They are also names of this module: `legged_sdk.FR_0`."""

FR_0, FR_1, FR_2, FL_0, FL_1, FL_2, RR_0, RR_1, RR_2, RL_0, RL_1, RL_2 = range(12)

LOW_HOLD_S, HIGH_HOLD_S = 0.03, 0.5
"""How long a sent command is valid. An A1 itself reportedly brakes after 30 ms."""
_LEVELS = {
    a1_values.A1_HIGH: Level.HIGH,
    a1_values.GO1_HIGH: Level.HIGH,
    a1_values.A1_LOW: Level.LOW,
}
_HOSTS = {Level.HIGH: "192.168.123.161", Level.LOW: "192.168.123.10"}

# ---- the map of names ---------------------------------------------------------------------------

_HEADER = {
    "levelFlag": "header.level",
    "commVersion": "header.version",
    "robotID": "header.robot_id",
    "SN": "header.serial",
    "bandWidth": "header.bandwidth",
}
_COMMAND_TAIL = {"led": "led", "wirelessRemote": "remote", "reserve": "reserve"}
_HIGH_CMD_3_2 = {
    "mode": "mode",
    "forwardSpeed": "forward",
    "sideSpeed": "left",
    "rotateSpeed": "turn",
    "bodyHeight": "body_height",
    "footRaiseHeight": "foot_raise_height",
    "yaw": "yaw_rad",
    "pitch": "pitch_rad",
    "roll": "roll_rad",
}
_HIGH_CMD_3_3 = {
    "mode": "mode",
    "gaitType": "gait",
    "speedLevel": "speed_level",
    "footRaiseHeight": "foot_raise_height_m",
    "bodyHeight": "body_height_m",
    "position": "position_m",
    "euler": "euler_rad",
    "velocity": "velocity_m_s",
    "yawSpeed": "yaw_speed_rad_s",
}
_MOTOR_CMD = {
    "mode": "mode",
    "q": "q_rad",
    "dq": "dq_rad_s",
    "tau": "tau_nm",
    "Kp": "kp_nm_rad",
    "Kd": "kd_nm_s_rad",
    "reserve": "reserve",
}
_MOTOR_STATE = {
    "mode": "mode",
    "q": "q_rad",
    "dq": "dq_rad_s",
    "ddq": "ddq_rad_s2",
    "tauEst": "tau_nm",
    "q_raw": "q_raw_rad",
    "dq_raw": "dq_raw_rad_s",
    "ddq_raw": "ddq_raw_rad_s2",
    "temperature": "temperature_c",
    "reserve": "reserve",
}
_IMU = {
    "quaternion": "quaternion",
    "gyroscope": "gyroscope_rad_s",
    "accelerometer": "accelerometer_m_s2",
    "rpy": "rpy_rad",
    "temperature": "temperature_c",
}
_BOTH_STATES = {
    "footForce": "foot_force",
    "footForceEst": "foot_force_estimate",
    "tick": "tick",
    "wirelessRemote": "remote",
    "reserve": "reserve",
}
_HIGH_STATE = {
    "mode": "mode",
    "progress": "progress",
    "gaitType": "gait",
    "footRaiseHeight": "foot_raise_height_m",
    "bodyHeight": "body_height_m",
    "position": "position_m",
    "velocity": "velocity_m_s",
    "yawSpeed": "yaw_speed_rad_s",
    "forwardSpeed": "velocity_m_s[0]",
    "sideSpeed": "velocity_m_s[1]",
    "rotateSpeed": "yaw_speed_rad_s",
    "updownSpeed": "rise_speed_m_s",
    "forwardPosition": "position_m[0]",
    "sidePosition": "position_m[1]",
    "footPosition2Body": "foot_position_m",
    "footSpeed2Body": "foot_velocity_m_s",
}
FIELDS: dict[str, dict[str, str]] = {
    "HighCmd of v3.2": {**_HEADER, **_HIGH_CMD_3_2, **_COMMAND_TAIL, "AppRemote": "app_remote"},
    "HighCmd of v3.3 and later": {**_HEADER, **_HIGH_CMD_3_3, **_COMMAND_TAIL},
    "LowCmd": {**_HEADER, "motorCmd": "motors", **_COMMAND_TAIL},
    "MotorCmd": _MOTOR_CMD,
    "HighState": {
        **_HEADER, "imu": "imu", **_HIGH_STATE, "motorState": "motors", **_BOTH_STATES,
    },
    "LowState": {**_HEADER, "imu": "imu", "motorState": "motors", **_BOTH_STATES},
    "MotorState": _MOTOR_STATE,
    "IMU": _IMU,
}  # fmt: skip
"""By structure: each name of the C++ header, and the corresponding field of rote's value. `crc` is
missing, because it is computed when a frame is encoded, and checked when one is decoded."""


# ---- structures ---------------------------------------------------------------------------------


@dataclass(slots=True)
class LED:
    """A light on a leg."""

    r: int = 0
    g: int = 0
    b: int = 0


@dataclass(slots=True)
class Cartesian:
    """A point or a velocity in the body's frame."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


def _make_lights() -> list[LED]:
    return [LED() for _ in range(4)]


def _make_points() -> list[Cartesian]:
    return [Cartesian() for _ in range(4)]


def _make_remote() -> bytearray:
    return bytearray(a1_values.REMOTE_SIZE)


def _make_zeros(count: int) -> list[Any]:  # Any, because it fills lists of int and of float
    return [0] * count


@dataclass(slots=True)
class MotorCmd:
    """The command for one motor. By default the motor is not driven, as after `InitCmdData`."""

    mode: int = a1_motors.SERVO
    q: float = PosStopF
    dq: float = VelStopF
    tau: float = 0.0
    Kp: float = 0.0
    Kd: float = 0.0
    reserve: list[int] = field(default_factory=partial(_make_zeros, 3))


@dataclass(slots=True)
class MotorState:
    """What one motor reports."""

    mode: int = 0
    q: float = 0.0
    dq: float = 0.0
    ddq: float = 0.0
    tauEst: float = 0.0
    q_raw: float = 0.0
    dq_raw: float = 0.0
    ddq_raw: float = 0.0
    temperature: int = 0
    reserve: list[int] = field(default_factory=partial(_make_zeros, 2))


@dataclass(slots=True)
class IMU:
    """The inertial sensor."""

    quaternion: list[float] = field(default_factory=partial(_make_zeros, 4))
    gyroscope: list[float] = field(default_factory=partial(_make_zeros, 3))
    accelerometer: list[float] = field(default_factory=partial(_make_zeros, 3))
    rpy: list[float] = field(default_factory=partial(_make_zeros, 3))
    temperature: int = 0


@dataclass(slots=True)
class _Framed:
    """The fields of the header and of the end of every frame."""

    levelFlag: int = 0
    commVersion: int = 0
    robotID: int = 0
    SN: int = 0
    bandWidth: int = 0
    reserve: int = 0
    crc: int = 0
    """Output only: `Send` computes its own."""
    wirelessRemote: Any = field(default_factory=_make_remote)


@dataclass(slots=True)
class HighCmd(_Framed):
    """A command for the walking controller; first the fields of v3.2, then later ones."""

    mode: int = 0
    forwardSpeed: float = 0.0
    sideSpeed: float = 0.0
    rotateSpeed: float = 0.0
    bodyHeight: float = 0.0
    footRaiseHeight: float = 0.0
    yaw: float = 0.0
    pitch: float = 0.0
    roll: float = 0.0
    led: list[LED] = field(default_factory=_make_lights)
    AppRemote: Any = field(default_factory=_make_remote)
    gaitType: int = 0
    speedLevel: int = 0
    position: Sequence[float] = field(default_factory=partial(_make_zeros, 2))
    euler: Sequence[float] = field(default_factory=partial(_make_zeros, 3))
    velocity: Sequence[float] = field(default_factory=partial(_make_zeros, 2))
    yawSpeed: float = 0.0


def _make_motor_cmds() -> list[MotorCmd]:
    return [MotorCmd() for _ in range(a1_motors.MOTORS)]


@dataclass(slots=True)
class LowCmd(_Framed):
    """A command for the motors."""

    levelFlag: int = LOWLEVEL
    motorCmd: list[MotorCmd] = field(default_factory=_make_motor_cmds)
    led: list[LED] = field(default_factory=_make_lights)


@dataclass(slots=True)
class _State(_Framed):
    imu: IMU = field(default_factory=IMU)
    motorState: list[MotorState] = field(default_factory=list)
    """Empty if the frame has none: at the high level before 3.3.3."""
    footForce: list[int] = field(default_factory=partial(_make_zeros, 4))
    footForceEst: list[int] = field(default_factory=partial(_make_zeros, 4))
    tick: int = 0


@dataclass(slots=True)
class HighState(_State):
    """The walking controller's state. Fields of all versions are filled; 0 if not reported."""

    mode: int = 0
    progress: float = 0.0
    gaitType: int = 0
    footRaiseHeight: float = 0.0
    bodyHeight: float = 0.0
    position: list[float] = field(default_factory=partial(_make_zeros, 3))
    velocity: list[float] = field(default_factory=partial(_make_zeros, 3))
    yawSpeed: float = 0.0
    forwardSpeed: float = 0.0
    sideSpeed: float = 0.0
    rotateSpeed: float = 0.0
    updownSpeed: float = 0.0
    forwardPosition: float = 0.0
    sidePosition: float = 0.0
    footPosition2Body: list[Cartesian] = field(default_factory=_make_points)
    footSpeed2Body: list[Cartesian] = field(default_factory=_make_points)


@dataclass(slots=True)
class LowState(_State):
    """The state of motors and sensors."""


# ---- from structures to values, and back --------------------------------------------------------


def _to_command(cmd: HighCmd | LowCmd, dialect: Dialect) -> a1_values.Command:
    """Convert a structure to a command, and write the checksum of its frame into the structure.

    Raises `BadRequestError` for a value that cannot be converted.
    """
    try:
        if isinstance(cmd, LowCmd):
            command: a1_values.Command = _to_low_command(cmd, dialect)
        else:
            command = _to_high_command(cmd, dialect)
    except (TypeError, ValueError, AttributeError) as error:
        raise BadRequestError(f"this {type(cmd).__name__} cannot be read: {error}") from None
    cmd.crc = int.from_bytes(wire.encode(command, dialect)[-4:], "little")  # ends the frame
    return command


def _to_low_command(cmd: LowCmd, dialect: Dialect) -> a1_values.LowCmd:
    return a1_values.LowCmd(
        header=_to_header(cmd, dialect),
        motors=a1_motors.MotorCmds.of(_to_motor_command(motor) for motor in cmd.motorCmd),
        led=_to_lights(cmd),
        remote=bytes(cmd.wirelessRemote),
        reserve=cmd.reserve,
    )


def _to_motor_command(motor: MotorCmd) -> a1_motors.MotorCmd:
    first, second, third = motor.reserve  # any other number raises `ValueError`
    return a1_motors.MotorCmd(
        motor.mode, motor.q, motor.dq, motor.tau, motor.Kp, motor.Kd, (first, second, third)
    )


def _to_high_command(cmd: HighCmd, dialect: Dialect) -> a1_values.Command:
    """Convert a structure; raise `BadRequestError` if it sets a field that the dialect lacks."""
    is_old = dialect is Dialect.A1_3_2
    own_fields, foreign_fields = _HIGH_CMD_3_2, _HIGH_CMD_3_3
    if not is_old:
        own_fields, foreign_fields = _HIGH_CMD_3_3, {**_HIGH_CMD_3_2, "AppRemote": "app_remote"}
    for name in foreign_fields:
        if name not in own_fields and _is_set(getattr(cmd, name)):
            only_here = ", ".join(own for own in own_fields if own not in foreign_fields)
            raise BadRequestError(
                f"this robot uses dialect {dialect.value}, whose HighCmd has no {name}",
                f"Its own fields are {only_here}.",
            )
    numbers: dict[str, Any] = {
        field_name: _to_floats(getattr(cmd, name)) for name, field_name in own_fields.items()
    }
    tail: dict[str, Any] = {
        "led": _to_lights(cmd),
        "remote": bytes(cmd.wirelessRemote),
        "reserve": cmd.reserve,
    }
    header = _to_header(cmd, dialect)
    if is_old:
        app = bytes(cmd.AppRemote)
        return a1_values.ScaledHighCmd(header=header, app_remote=app, **numbers, **tail)
    return a1_values.HighCmd(header=header, **numbers, **tail)


def _is_set(value: Any) -> bool:
    return any(value) if isinstance(value, Sequence | bytearray) else bool(value)


def _to_floats(value: Any) -> Any:
    """Return a sequence as a tuple of floats; any other value unchanged."""
    return tuple(float(number) for number in value) if isinstance(value, Sequence) else value


def _to_lights(cmd: HighCmd | LowCmd) -> a1_values.Lights:
    # Unpacked, so that any other number of lights raises `ValueError`.
    front_right, front_left, rear_right, rear_left = (
        a1_values.Led(led.r, led.g, led.b) for led in cmd.led
    )
    return front_right, front_left, rear_right, rear_left


def _to_header(cmd: _Framed, dialect: Dialect) -> a1_values.AnyHeader | None:
    """Return the header of a command; None for a Go1's usual level, which `encode` fills in."""
    if dialect is not Dialect.GO1:
        return a1_values.Header(cmd.levelFlag, cmd.commVersion, cmd.robotID, cmd.SN, cmd.bandWidth)
    usual_levels = (HIGHLEVEL, a1_values.GO1_HIGH, LOWLEVEL)
    return None if cmd.levelFlag in usual_levels else a1_values.Go1Header(cmd.levelFlag)


def _fill_state(state: _State, received: a1_values.State) -> None:
    """Write a received state into a structure."""
    names = _BOTH_STATES
    if isinstance(received, a1_values.HighState):
        names = {**_HIGH_STATE, **_BOTH_STATES}
    for name, path in names.items():
        setattr(state, name, _to_plain(_read_path(received, path)))
    if received.header is not None:
        state.levelFlag = received.header.level
    if isinstance(received.header, a1_values.Header):
        _, state.commVersion, state.robotID, state.SN, state.bandWidth = received.header
    state.imu = IMU(
        **{name: _to_plain(_read_path(received.imu, path)) for name, path in _IMU.items()}
    )
    motors = () if received.motors is None else received.motors
    # The fields of both classes are in the same order.
    state.motorState = [MotorState(*motor[:-1], list(motor.reserve)) for motor in motors]


def _read_path(value: Any, path: str) -> Any:
    """Return an attribute by name, or an item of it: `velocity_m_s[0]`."""
    name, _, index = path.partition("[")
    part = getattr(value, name)
    return part[int(index[:-1])] if index else part


def _to_plain(value: Any) -> Any:
    """Return a value as the structures have it: lists, bytearrays, and 0 if not reported."""
    if value is None:
        return 0
    if isinstance(value, bytes):
        return bytearray(value)
    if isinstance(value, tuple) and value and isinstance(value[0], a1_values.Cartesian):
        return [Cartesian(*point) for point in value]
    return list(value) if isinstance(value, tuple) else value


# ---- the connection -----------------------------------------------------------------------------


class UDP:
    """A connection to an A1 or Go1, with the methods of the library's `UDP`.

    `level` is HIGHLEVEL or LOWLEVEL. Without an address the robot's usual one is used; `url` is any
    URL of `rote.connect_a1`, such as `sim://a1`. It connects at once. Raises `NoAnswerError` if no
    robot answers, and `BadRequestError` at the low level if the robot stands, because it would
    sink. Close it, or use it in a `with` block; the robot is left safe even if the program is
    killed.
    """

    def __init__(
        self,
        level: int,
        localPort: int = 0,
        targetIP: str | None = None,
        targetPort: int | None = None,
        *,
        url: str | None = None,
        timeout: float = 5.0,
    ) -> None:
        if level not in _LEVELS:
            raise BadRequestError(
                f"there is no level {level:#04x}", "Use HIGHLEVEL (0x00) or LOWLEVEL (0xff)."
            )
        self._level = _LEVELS[level]
        self._hold_s = LOW_HOLD_S if self._level is Level.LOW else HIGH_HOLD_S
        if url is None:
            port = "" if targetPort is None else f":{targetPort}"
            url = f"a1://{targetIP or _HOSTS[self._level]}{port}?local={localPort}"
        url += f"{'&' if '?' in url else '?'}level={self._level.value}"
        # With this ability, a robot that stands is refused.
        ability = "control" if self._level is Level.LOW else None
        self._connection = connect(url, family="a1", timeout=timeout, ability=ability)
        self._robot = self._connection.__enter__()
        self._is_open = True
        self._command: a1_values.Command | None = None
        native = self._robot.native
        assert native is not None, "a connected robot has sent a state"
        self._received: a1_values.State = native
        self._last_returned: a1_values.State | None = None

    @property
    def robot(self) -> BlockingA1:
        """The robot, as `rote.sync.connect` returns it: `stop`, `damp`, `arm`, `status`."""
        return self._robot

    def InitCmdData(self, cmd: HighCmd | LowCmd) -> None:
        """Reset all fields of a command, and set the level flag of this connection."""
        fresh = type(cmd)()
        for name in fresh.__dataclass_fields__:
            setattr(cmd, name, getattr(fresh, name))
        is_go1 = self._robot.dialect is Dialect.GO1
        high = a1_values.GO1_HIGH if is_go1 else HIGHLEVEL
        cmd.levelFlag = LOWLEVEL if isinstance(cmd, LowCmd) else high

    def SetSend(self, cmd: HighCmd | LowCmd) -> None:
        """Set the command for the next `Send`, and write its checksum into it.

        A value that does not fit the frame or the robot's dialect raises `BadRequestError`; then
        the previous command stays.
        """
        if isinstance(cmd, LowCmd) is not (self._level is Level.LOW):
            raise BadRequestError(
                f"a {type(cmd).__name__} cannot be sent at the {self._level.value} level",
                "Create the UDP with LOWLEVEL for a LowCmd, with HIGHLEVEL for a HighCmd.",
            )
        self._command = _to_command(cmd, self._robot.dialect)

    def Send(self) -> int:
        """Send the command that was set; return 0. Without a command nothing is sent.

        It is valid for 30 ms at the low level and 0.5 s at the high one: call `Send` again in time.
        Raises `BadRequestError` for a command that the robot's limits or state forbid, and
        `ProtectionError` after a protection has tripped, until `robot.arm()`.
        """
        if self._command is not None:
            self._robot.send_command(self._command, hold_s=self._hold_s)
        return 0

    def Recv(self) -> int:
        """Take the newest state; return 0, or -1 if there is no new one.

        Raises `PeerLostError` if the robot is lost.
        """
        trouble = self._robot.trouble
        if trouble is not None and not isinstance(trouble, ProtectionError):
            raise trouble
        newest = self._robot.native
        if newest is None or newest is self._last_returned:
            return -1
        self._received = self._last_returned = newest
        return 0

    def GetRecv(self, state: HighState | LowState) -> None:
        """Copy the state that `Recv` took into a structure."""
        if isinstance(state, LowState) is not (self._level is Level.LOW):
            raise BadRequestError(
                f"a {type(state).__name__} cannot be received at the {self._level.value} level",
                "Create the UDP with LOWLEVEL for a LowState, with HIGHLEVEL for a HighState.",
            )
        _fill_state(state, self._received)

    def close(self) -> None:
        """Disconnect from the robot: it stands, or its motors brake. Safe to repeat."""
        if self._is_open:
            self._is_open = False
            self._connection.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


# ---- safety -------------------------------------------------------------------------------------


class LeggedType(Enum):
    """Which robot it is."""

    A1 = "a1"
    Go1 = "go1"


class Safety:
    """The library's `Safety`, with the limits of one kind of robot.

    `UDP` checks every command anyway; these methods are for programs that call them. Where the
    library ends the process, they raise `ProtectionError`, and the robot is made safe as soon as
    `Send` is no longer called.
    """

    def __init__(self, legged: LeggedType = LeggedType.A1) -> None:
        self._robot = legged.value
        guard = Guard(self._robot)
        self._lower_rad, self._upper_rad = guard.lower_rad, guard.upper_rad
        self._power_guards: dict[int, Guard] = {}
        """By power level; each counts the states above its limit."""

    def PositionLimit(self, cmd: LowCmd) -> None:
        """Clip positions to the joints' limits, except PosStopF; NaN raises `BadRequestError`."""
        for motor, lower, upper in zip(
            cmd.motorCmd, self._lower_rad, self._upper_rad, strict=False
        ):
            if not np.isfinite(motor.q):
                raise BadRequestError(f"a position cannot be {motor.q}", "Use a finite number.")
            if motor.q != PosStopF:
                motor.q = float(min(max(motor.q, lower), upper))

    def PowerProtect(self, cmd: LowCmd, state: LowState, level: int) -> int:
        """Raise `ProtectionError` if the legs exceed `level` x 100 W for several states."""
        limits = _make_limits(power_level=min(max(level, 1), 10))
        guard = self._power_guards.setdefault(level, Guard(self._robot, limits))
        guard.check(_to_low_state(state))
        return 0

    def PositionProtect(self, cmd: LowCmd, state: LowState, limit: float = 0.087) -> int:
        """Raise `ProtectionError` if a joint is nearer to its limit than `limit` rad."""
        guard = Guard(self._robot, _make_limits(margin_rad=limit), from_folded=False)
        guard.check(_to_low_state(state))
        return 0


def _make_limits(
    *, power_level: int | None = None, margin_rad: float | None = None
) -> A1SafetyLimits:
    """Return limits of which only the given ones are watched."""
    return A1SafetyLimits(
        power_level=power_level,
        margin_rad=margin_rad,
        velocity_rad_s=None,
        torque_nm=None,
        temperature_c=None,
        tilt_rad=None,
        stale_s=None,
    )


def _to_low_state(state: LowState) -> a1_values.LowState:
    """Convert what the safety checks read of a state."""
    motors = (
        a1_motors.MotorState(q_rad=motor.q, dq_rad_s=motor.dq, tau_nm=motor.tauEst)
        for motor in state.motorState
    )
    return a1_values.LowState(motors=a1_motors.MotorStates.of(motors))
