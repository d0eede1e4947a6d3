"""Safety: which motor commands are allowed, and which reports must stop everything.

Position limit, power protection and position protection use the numbers measured on Unitree's
library. rote adds: the value that switches a position off is not limited, NaN is refused, and
velocity, torque, temperature, tilt and the age of the state are watched. Unlike that library,
nothing here ends the process: a protection raises `ProtectionError`, and the caller damps the
robot.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rote.errors import BadRequestError, ProtectionError
from rote.model.a1 import A1_JOINTS, JOINTS_PER_LEG, POSITION_MARGIN_RAD, SDK_LIMITS_RAD
from rote.motion.track import Array
from rote.wire.a1.motors import (
    LEG_MOTORS,
    POSITION_OFF_RAD,
    SERVO,
    VELOCITY_OFF_RAD_S,
    MotorCmds,
    MotorStates,
)
from rote.wire.a1.values import SOFT_STOP, HighState, LowState, Remote

State: TypeAlias = LowState | HighState
Row: TypeAlias = "np.ndarray[Any, np.dtype[np.floating[Any]]]"

MARGIN_RAD = POSITION_MARGIN_RAD
"""Distance that a joint must keep from its limits, by Unitree's position protection."""
MAX_POWER_W = 1000.0
"""All legs together, at power level 10."""
POWER_COUNT = 5
"""The power protection trips above this count: a state over the limit adds one, any other subtracts
one.
"""
_POWER_CAP = 10
"""The count does not rise above this."""
MAX_VELOCITY_RAD_S, MAX_TORQUE_NM = A1_JOINTS[0].velocity_rad_s, A1_JOINTS[0].effort_nm
OVERHEATED = 0x08
"""The mode that an overheated motor reports."""
_POSITION_OFF = np.float32(POSITION_OFF_RAD)
_NAMES = tuple(joint.name.removesuffix("_joint") for joint in A1_JOINTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class A1SafetyLimits:
    """The limits that are watched; None switches one off.

    Power level and margin are Unitree's, the other defaults this project's choice.
    """

    power_level: int | None = 10
    """1 to 10, a tenth of 1000 W each. Unitree's examples use 1, which is 100 W."""
    margin_rad: float | None = MARGIN_RAD
    velocity_rad_s: float | None = MAX_VELOCITY_RAD_S
    torque_nm: float | None = MAX_TORQUE_NM
    temperature_c: float | None = 80.0
    tilt_rad: float | None = 1.0
    """The tilt of the body, to any side."""
    stale_s: float | None = 0.05
    """How old the newest state may be."""

    def __post_init__(self) -> None:
        spans = {
            "power_level": (1, 10),
            "margin_rad": (0.0, 0.4),
            "velocity_rad_s": (0.0, 100.0),
            "torque_nm": (0.0, 127.0),
            "temperature_c": (0.0, 127.0),
            "tilt_rad": (0.0, math.pi),
            "stale_s": (0.002, 10.0),
        }
        for name, (low, high) in spans.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:  # NaN fails this comparison too
                raise BadRequestError(
                    f"{name} {value} is out of range", f"Choose {low:g} to {high:g}, or None."
                )


class Safety:
    """The safety checks of one robot: `limit` for commands, `check` for states.

    `robot` is "a1" or "go1", which have different joint limits. With `from_folded`, a joint that
    starts outside its range (a robot folded on the ground) is watched once it has come inside.
    Without it, such a joint trips at once, as in Unitree's library.
    """

    def __init__(
        self, robot: str = "a1", limits: A1SafetyLimits | None = None, *, from_folded: bool = True
    ) -> None:
        if robot not in SDK_LIMITS_RAD:
            known = " or ".join(SDK_LIMITS_RAD)
            raise BadRequestError(f"there are no limits for {robot!r}", f"Choose {known}.")
        self.robot = robot
        self.limits = limits or A1SafetyLimits()
        # All legs have the same limits, one row per joint.
        rows = np.array(SDK_LIMITS_RAD[robot] * (LEG_MOTORS // JOINTS_PER_LEG))
        self.lower_rad: Array = rows[:, 0]
        self.upper_rad: Array = rows[:, 1]
        self._from_folded = from_folded
        self.reset()

    def reset(self) -> None:
        """Forget earlier states; called before the robot is driven again."""
        self._over_power_count = 0
        # The joints that have been inside their range, and so are watched.
        self._been_inside = np.full(LEG_MOTORS, not self._from_folded)

    # ---- commands ----------------------------------------------------------------------

    def limit(self, motors: MotorCmds) -> MotorCmds:
        """Return the command with positions within the joints' limits.

        A position that is switched off stays off. NaN, a velocity or torque beyond the motors'
        limits, and a negative gain, which drives a joint away from its target, raise
        `BadRequestError`.
        """
        positions_rad, speeds_rad_s = motors.q_rad[:LEG_MOTORS], motors.dq_rad_s[:LEG_MOTORS]
        self._check_values(positions_rad, "position", math.inf, 0.0)
        self._check_values(speeds_rad_s, "velocity", self._max_velocity_rad_s, VELOCITY_OFF_RAD_S)
        self._check_values(motors.tau_nm[:LEG_MOTORS], "torque", self._max_torque_nm, 0.0)
        self._check_gains(motors.kp_nm_rad[:LEG_MOTORS], "stiffness")
        self._check_gains(motors.kd_nm_s_rad[:LEG_MOTORS], "damping")
        is_on = positions_rad != _POSITION_OFF
        is_below, is_above = positions_rad < self.lower_rad, positions_rad > self.upper_rad
        outside = is_on & (is_below | is_above)
        if not outside.any():
            return motors
        clipped_rad = np.clip(positions_rad, self.lower_rad, self.upper_rad)
        return MotorCmds.of(
            motor._replace(q_rad=float(clipped_rad[index]))
            if index < LEG_MOTORS and outside[index]
            else motor
            for index, motor in enumerate(motors)
        )

    @property
    def _max_velocity_rad_s(self) -> float:
        return math.inf if self.limits.velocity_rad_s is None else self.limits.velocity_rad_s

    @property
    def _max_torque_nm(self) -> float:
        return math.inf if self.limits.torque_nm is None else self.limits.torque_nm

    @staticmethod
    def _check_values(numbers: Row, what: str, maximum: float, off_value: float) -> None:
        """Raise `BadRequestError` for NaN, or above `maximum`; `off_value` is always allowed."""
        is_off = numbers == off_value
        is_bad = ~np.isfinite(numbers) | (~is_off & (np.abs(numbers) > maximum))
        for index in is_bad.nonzero()[0]:  # the first one raises
            value = float(numbers[index])
            raise BadRequestError(
                f"{_NAMES[index]}: a {what} of {value:g} is out of range",
                f"Choose at most {maximum:g}."
                if math.isfinite(maximum)
                else "Choose a finite number.",
            )

    @staticmethod
    def _check_gains(gains: Row, what: str) -> None:
        for index in (~(gains >= 0.0)).nonzero()[0]:  # NaN is among them; the first one raises
            raise BadRequestError(
                f"{_NAMES[index]}: a {what} of {float(gains[index]):g} is out of range",
                "Choose 0 or more.",
            )

    @staticmethod
    def joint_name(motor: int) -> str:
        """Return the name of a motor's joint, by its index in the frame."""
        return _NAMES[motor]

    # ---- states -----------------------------------------------------------------------

    def check(self, state: State, age_s: float = 0.0, commanded: MotorCmds | None = None) -> None:
        """Raise `ProtectionError` for the first protection that a state trips.

        `age_s` is the age of the state. Call it once for each state: power violations are counted.
        `commanded` is the current motor command: a joint that is not driven may rest at its stop,
        and is watched again once it has come inside its range.
        """
        self.check_remote(state)
        if error := next(self._find_violations(state, age_s, commanded), None):
            raise error

    @staticmethod
    def check_remote(state: State) -> None:
        """Raise `ProtectionError` if L2 and B are pressed on the remote.

        The robot ignores commands only while they are pressed. Without this check the legs would be
        driven again as soon as they are released.
        """
        if Remote.unpack(state.remote).buttons & SOFT_STOP == SOFT_STOP:
            raise ProtectionError(
                "remote",
                "L2+B is pressed on the remote, so the legs go limp",
                "Look at the robot, release the buttons, then arm it to go on.",
            )

    def _find_violations(
        self, state: State, age_s: float, commanded: MotorCmds | None
    ) -> Iterator[ProtectionError]:
        """Yield an error for each protection that the state trips."""
        stale_s = self.limits.stale_s
        if stale_s is not None and not -math.inf < age_s <= stale_s:  # NaN counts as stale
            yield ProtectionError(
                "stale",
                f"the newest state is {1000 * age_s:.0f} ms old; at most "
                f"{1000 * stale_s:.0f} ms is allowed",
                "Check the robot and the network.",
            )
        yield from self._find_tilt_errors(state)
        # The walking controller limits its joints itself, and folds them to lie down.
        if isinstance(state, LowState):
            yield from self._find_position_errors(state.motors.q_rad[:LEG_MOTORS], commanded)
            yield from self._find_motor_errors(state.motors)
        if state.motors is not None:
            yield from self._find_temperature_errors(state.motors)

    def _find_tilt_errors(self, state: State) -> Iterator[ProtectionError]:
        maximum = self.limits.tilt_rad
        roll, pitch = state.imu.rpy_rad[:2]
        if maximum is not None and not max(abs(roll), abs(pitch)) <= maximum:
            yield ProtectionError(
                "tilt",
                f"the body is tilted by {roll:.2f} rad in roll and {pitch:.2f} rad in "
                f"pitch; at most {maximum:.2f} rad is allowed",
                "Set the robot on its feet by hand.",
            )

    def _find_motor_errors(self, motors: MotorStates) -> Iterator[ProtectionError]:
        speeds_rad_s, torques_nm = motors.dq_rad_s[:LEG_MOTORS], motors.tau_nm[:LEG_MOTORS]
        yield from self._find_power_errors(torques_nm, speeds_rad_s)
        rows = (
            (
                "velocity",
                np.abs(speeds_rad_s),
                self.limits.velocity_rad_s,
                "rad/s",
                "Command a lower speed.",
            ),
            (
                "torque",
                np.abs(torques_nm),
                self.limits.torque_nm,
                "N.m",
                "Command less torque, or free the leg.",
            ),
        )
        for protection, numbers, maximum, unit, remedy in rows:
            if maximum is None:
                continue
            for index in (~(numbers <= maximum)).nonzero()[0]:  # NaN is among them
                reason = (
                    f"{_NAMES[index]} has {numbers[index]:.1f} {unit}; at most {maximum:g} "
                    f"{unit} is allowed"
                )
                yield ProtectionError(protection, reason, remedy)

    def _find_temperature_errors(self, motors: MotorStates) -> Iterator[ProtectionError]:
        maximum = self.limits.temperature_c
        if maximum is None:
            return
        celsius = motors.temperature_c[:LEG_MOTORS]
        hot = (celsius > maximum) | (motors.mode[:LEG_MOTORS] == OVERHEATED)
        for index in hot.nonzero()[0]:
            yield ProtectionError(
                "temperature",
                f"{_NAMES[index]} is at {celsius[index]} °C or reports that it is "
                f"overheated; at most {maximum:g} °C is allowed",
                "Let the robot lie and cool down.",
            )

    def _find_position_errors(
        self, positions_rad: Row, commanded: MotorCmds | None
    ) -> Iterator[ProtectionError]:
        margin = self.limits.margin_rad
        if margin is None:
            return
        lower_rad, upper_rad = self.lower_rad + margin, self.upper_rad - margin
        inside = (positions_rad >= lower_rad) & (positions_rad <= upper_rad)
        self._been_inside |= inside
        if commanded is not None and not inside.all():
            # A joint that is not driven may sink to its stop: it must come inside again first.
            self._been_inside &= inside | is_driven(commanded)
        for index in (self._been_inside & ~inside).nonzero()[0]:
            yield ProtectionError(
                "position",
                f"{_NAMES[index]} is at {positions_rad[index]:.3f} rad; the allowed range is "
                f"{lower_rad[index]:.3f} to {upper_rad[index]:.3f} rad",
                "Keep the legs further from their stops. Legs folded on the ground are "
                "outside the limits: stand the robot up first.",
            )

    def _find_power_errors(self, torques_nm: Row, speeds_rad_s: Row) -> Iterator[ProtectionError]:
        if self.limits.power_level is None:
            return
        max_w = MAX_POWER_W * self.limits.power_level / 10
        power_w = float(np.abs(torques_nm * speeds_rad_s).sum())
        # NaN fails this comparison, so it counts as too much.
        step = -1 if power_w <= max_w else 1
        self._over_power_count = min(max(self._over_power_count + step, 0), _POWER_CAP)
        if self._over_power_count > POWER_COUNT:
            yield ProtectionError(
                "power",
                f"the legs used more than {max_w:.0f} W in several states; now they use "
                f"{power_w:.0f} W",
                "Move more slowly, or allow a higher power level if you know why the "
                "motion needs it.",
            )


def is_driven(motors: MotorCmds) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Return which leg motors are driven; the others are off, or only braked."""
    legs = slice(0, LEG_MOTORS)
    speeds_rad_s = motors.dq_rad_s[legs]
    has_speed = (speeds_rad_s != 0.0) & (speeds_rad_s != np.float32(VELOCITY_OFF_RAD_S))
    has_velocity = has_speed & (motors.kd_nm_s_rad[legs] != 0.0)
    has_torque = (motors.tau_nm[legs] != 0.0) | (motors.kp_nm_rad[legs] != 0.0)
    is_servo = motors.mode[legs] == SERVO
    driven: np.ndarray[Any, np.dtype[np.bool_]] = is_servo & (has_torque | has_velocity)
    return driven
