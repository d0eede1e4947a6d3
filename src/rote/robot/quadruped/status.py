"""The state of an A1 in the form that all robots share, as a summary, and as findings."""

from dataclasses import dataclass

from rote.errors import ProtectionError, RoteError
from rote.findings import Finding, FindingKind, Severity, worst_first
from rote.messages import RobotState
from rote.robot.quadruped.commands import format_mode, is_down
from rote.robot.quadruped.control import State
from rote.robot.quadruped.leg_control import LegControl
from rote.text import Act, Text
from rote.wire.a1.motors import LEG_MOTORS
from rote.wire.a1.values import HighState

_LOW_BATTERY_PERCENT = 20


@dataclass(frozen=True, slots=True)
class A1Status:
    """The state of an A1 at one moment, as text and in SI units."""

    level: str
    dialect: str
    mode: str
    height_m: float | None
    """The height of the body; not known at the motors' level."""
    place_m: tuple[float, float] | None
    roll_rad: float
    pitch_rad: float
    yaw_rad: float
    joints_rad: tuple[float, ...] | None
    hottest_c: int | None
    """The hottest motor."""
    battery_percent: int | None
    """Reported by a Go1 only."""
    trouble: str
    """Why commands are not accepted; empty if they are."""


def make_robot_state(native: State, legs: LegControl) -> RobotState:
    """Return a state of the robot in the form that all robots share."""
    motors, high = native.motors, native if isinstance(native, HighState) else None
    battery = None if native.bms is None else native.bms.charge_percent
    trouble = () if legs.trouble is None else (str(legs.trouble),)
    columns = slice(0, LEG_MOTORS)
    return RobotState(
        mode=-1 if high is None else high.mode,
        arms_soft=legs.is_soft,
        recording=legs.is_soft,
        phase=legs.phase,
        joints_rad=() if motors is None else tuple(motors.q_rad[columns].tolist()),
        velocities_rad_s=() if motors is None else tuple(motors.dq_rad_s[columns].tolist()),
        accelerometer_m_s2=native.imu.accelerometer_m_s2,
        gyroscope_rad_s=native.imu.gyroscope_rad_s,
        foot_force_n=(),  # its units are not published
        time_us=native.tick or round(legs.client.now() * 1e6),
        temperatures_c=()
        if motors is None
        else tuple(float(each) for each in motors.temperature_c[columns]),
        battery_percent=battery,
        faults=trouble,
    )


def make_status(legs: LegControl) -> A1Status:
    """Return a summary of the newest state."""
    state = legs.latest_state()
    high = state if isinstance(state, HighState) else None
    motors = state.motors
    roll, pitch, yaw = state.imu.rpy_rad
    return A1Status(
        level=legs.level.value,
        dialect=legs.dialect.value,
        mode="motors" if high is None else format_mode(high.mode),
        height_m=None if high is None else high.body_height_m,
        place_m=None if high is None else (high.position_m[0], high.position_m[1]),
        roll_rad=roll,
        pitch_rad=pitch,
        yaw_rad=yaw,
        joints_rad=None if motors is None else tuple(motors.q_rad[:LEG_MOTORS].tolist()),
        hottest_c=None if motors is None else int(motors.temperature_c[:LEG_MOTORS].max()),
        battery_percent=None if state.bms is None else state.bms.charge_percent,
        trouble="" if legs.trouble is None else str(legs.trouble),
    )


def find_problems(legs: LegControl) -> list[Finding]:
    """Return the reasons not to move an A1 or Go1, the worst first."""
    status, native = make_status(legs), legs.client.latest
    problems: list[Finding] = []
    if isinstance(native, HighState) and is_down(native):
        message = "the robot lies or hangs: it walks once it has got up"
        remedy = Text("Make it get up: {get_up}.", get_up=Act.GET_UP)
        problems.append(Finding(Severity.NOTE, message, remedy, kind=FindingKind.MODE))
    if status.battery_percent is not None and status.battery_percent < _LOW_BATTERY_PERCENT:
        message = f"the battery is at {status.battery_percent} %"
        problems.append(
            Finding(Severity.WARNING, message, "Charge it first.", kind=FindingKind.BATTERY)
        )
    hottest, max_c = status.hottest_c, legs.safety.limits.temperature_c
    if hottest is not None and max_c is not None and hottest > max_c:
        message = f"a motor is at {hottest} °C; a protection trips above {max_c:g} °C"
        cool = "Let the robot lie and cool down."
        problems.append(Finding(Severity.ERROR, message, cool, kind=FindingKind.TEMPERATURE))
    trouble, is_hot = legs.trouble, FindingKind.TEMPERATURE in (each.kind for each in problems)
    if trouble is not None and not (is_hot and _is_overheating(trouble)):
        problems.append(
            Finding(Severity.ERROR, trouble.text, trouble.remedy, kind=FindingKind.FAULT)
        )
    return worst_first(problems)


def _is_overheating(trouble: RoteError) -> bool:
    return isinstance(trouble, ProtectionError) and trouble.protection == "temperature"
