"""Safety: which motor commands are allowed, and which reports must stop everything.

Position limit, power protection and position protection have the numbers that were measured on
Unitree's library. rote adds what that lacks: the value that switches a position off is not limited,
NaN is refused, and velocity, torque, temperature, tilt and the age of the state are watched.
Nothing here ends the process: a protection raises `ProtectionError`, and the caller damps the robot
first.
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
"""How far inside its limits a joint has to stay, by Unitree's position protection."""
MAX_POWER_W = 1000.0
"""All legs together, at power level 10."""
POWER_COUNT = 5
"""The power protection trips above this count: a state over the limit adds one, any other subtracts
one.
"""
_POWER_CAP = 10
MAX_VELOCITY_RAD_S, MAX_TORQUE_NM = A1_JOINTS[0].velocity_rad_s, A1_JOINTS[0].effort_nm
OVERHEATED = 0x08
"""The mode that an overheated motor reports."""
_POSITION_OFF = np.float32(POSITION_OFF_RAD)
_NAMES = tuple(joint.name.removesuffix("_joint") for joint in A1_JOINTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class A1SafetyLimits:
    """The limits that are watched. None switches one off. What is not Unitree's is this project's
    choice.
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
            if value is not None and not low <= value <= high:  # not a number fails this, too
                raise BadRequestError(
                    f"{name} {value} is out of range", f"Choose {low:g} to {high:g}, or None."
                )


class Safety:
    """The safety checks of one robot: `limit` for commands, `check` for states.

    `robot` is "a1" or "go1", which have different joint limits. With `from_folded` a joint that
    begins outside its range, as on a robot folded on the ground, is watched only after it has come
    inside; without it, it trips at once, as in Unitree's library.
    """

    def __init__(
        self, robot: str = "a1", limits: A1SafetyLimits | None = None, *, from_folded: bool = True
    ) -> None:
        if robot not in SDK_LIMITS_RAD:
            known = " or ".join(SDK_LIMITS_RAD)
            raise BadRequestError(f"there are no limits for {robot!r}", f"Choose {known}.")
        self.robot = robot
        self.limits = limits or A1SafetyLimits()
        rows = np.array(SDK_LIMITS_RAD[robot] * (LEG_MOTORS // JOINTS_PER_LEG))
        self.lower_rad: Array = rows[:, 0]
        self.upper_rad: Array = rows[:, 1]
        self._from_folded = from_folded
        self.reset()

    def reset(self) -> None:
        """Forget what was seen, before the robot is driven again."""
        self._over_power = 0
        self._been_inside = np.full(LEG_MOTORS, not self._from_folded)

    # ---- commands ----------------------------------------------------------------------

    def limit(self, motors: MotorCmds) -> MotorCmds:
        """Return the command with positions within the joints' limits.

        A position that is switched off stays off. NaN, a velocity or torque beyond the motors'
        limits, and a negative gain, which drives a joint away from its target, raise
        `BadRequestError`.
        """
        q, dq = motors.q_rad[:LEG_MOTORS], motors.dq_rad_s[:LEG_MOTORS]
        self._check_values(q, "position", math.inf, 0.0)
        self._check_values(dq, "velocity", self._most_velocity, VELOCITY_OFF_RAD_S)
        self._check_values(motors.tau_nm[:LEG_MOTORS], "torque", self._most_torque, 0.0)
        self._check_gains(motors.kp_nm_rad[:LEG_MOTORS], "stiffness")
        self._check_gains(motors.kd_nm_s_rad[:LEG_MOTORS], "damping")
        is_on = q != _POSITION_OFF
        outside = is_on & ((q < self.lower_rad) | (q > self.upper_rad))
        if not outside.any():
            return motors
        clipped = np.clip(q, self.lower_rad, self.upper_rad)
        return MotorCmds.of(
            motor._replace(q_rad=float(clipped[index]))
            if index < LEG_MOTORS and outside[index]
            else motor
            for index, motor in enumerate(motors)
        )

    @property
    def _most_velocity(self) -> float:
        return math.inf if self.limits.velocity_rad_s is None else self.limits.velocity_rad_s

    @property
    def _most_torque(self) -> float:
        return math.inf if self.limits.torque_nm is None else self.limits.torque_nm

    @staticmethod
    def _check_values(numbers: Row, what: str, most: float, off: float) -> None:
        bad = ~(np.abs(numbers) <= most) & (numbers != off) | ~np.isfinite(numbers)
        for index in np.flatnonzero(bad):
            value = float(numbers[index])
            raise BadRequestError(
                f"{_NAMES[index]}: a {what} of {value:g} is out of range",
                f"Ask for at most {most:g}." if math.isfinite(most) else "Ask for a number.",
            )

    @staticmethod
    def _check_gains(gains: Row, what: str) -> None:
        for index in np.flatnonzero(~(gains >= 0.0)):
            raise BadRequestError(
                f"{_NAMES[index]}: a {what} of {float(gains[index]):g} is out of range",
                "Ask for 0 or more.",
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
        for error in self._find_violations(state, age_s, commanded):
            raise error

    @staticmethod
    def check_remote(state: State) -> None:
        """Raise `ProtectionError` if L2 and B are pressed on the remote.

        The robot ignores all commands meanwhile. The drive has to end too, or the legs would go on
        as soon as the buttons are released.
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
        if self.limits.stale_s is not None and not -math.inf < age_s <= self.limits.stale_s:
            yield ProtectionError(
                "stale",
                f"the newest state is {1000 * age_s:.0f} ms old, "
                f"allowed {1000 * self.limits.stale_s:.0f} ms",
                "Look at the robot and the network between.",
            )
        yield from self._tilt_errors(state)
        if isinstance(state, LowState):
            yield from self._position_errors(state.motors.q_rad[:LEG_MOTORS], commanded)
            yield from self._motor_errors(state.motors)
        if state.motors is not None:
            # The walking controller limits its joints itself, and folds them to lie down.
            yield from self._temperature_errors(state.motors)

    def _tilt_errors(self, state: State) -> Iterator[ProtectionError]:
        most = self.limits.tilt_rad
        roll, pitch = state.imu.rpy_rad[:2]
        if most is not None and not max(abs(roll), abs(pitch)) <= most:
            yield ProtectionError(
                "tilt",
                f"the body is tilted by {roll:.2f} rad in roll and {pitch:.2f} rad in pitch, "
                f"allowed {most:.2f} rad",
                "Set the robot on its feet by hand.",
            )

    def _motor_errors(self, motors: MotorStates) -> Iterator[ProtectionError]:
        dq, tau = motors.dq_rad_s[:LEG_MOTORS], motors.tau_nm[:LEG_MOTORS]
        yield from self._power_errors(tau, dq)
        rows = (
            ("velocity", np.abs(dq), self.limits.velocity_rad_s, "rad/s", "Ask for less speed."),
            ("torque", np.abs(tau), self.limits.torque_nm, "N.m", "Ask for less, or free the leg."),
        )
        for protection, numbers, most, unit, remedy in rows:
            if most is None:
                continue
            for index in np.flatnonzero(~(numbers <= most)):
                reason = f"{_NAMES[index]} has {numbers[index]:.1f} {unit}, allowed {most:g} {unit}"
                yield ProtectionError(protection, reason, remedy)

    def _temperature_errors(self, motors: MotorStates) -> Iterator[ProtectionError]:
        most = self.limits.temperature_c
        if most is None:
            return
        celsius = motors.temperature_c[:LEG_MOTORS]
        for index in np.flatnonzero((celsius > most) | (motors.mode[:LEG_MOTORS] == OVERHEATED)):
            yield ProtectionError(
                "temperature",
                f"{_NAMES[index]} has {celsius[index]} °C or reports that it is overheated, "
                f"allowed {most:g} °C",
                "Let the robot lie and cool down.",
            )

    def _position_errors(self, q: Row, commanded: MotorCmds | None) -> Iterator[ProtectionError]:
        margin = self.limits.margin_rad
        if margin is None:
            return
        lower, upper = self.lower_rad + margin, self.upper_rad - margin
        inside = (q >= lower) & (q <= upper)
        self._been_inside |= inside
        if commanded is not None and not inside.all():
            self._been_inside &= inside | is_driven(commanded)
        for index in np.flatnonzero(self._been_inside & ~inside):
            yield ProtectionError(
                "position",
                f"{_NAMES[index]} is at {q[index]:.3f} rad, "
                f"allowed {lower[index]:.3f} to {upper[index]:.3f} rad",
                "Keep the legs further from their stops. Legs folded on the ground are "
                "outside the limits: stand the robot up first.",
            )

    def _power_errors(self, tau: Row, dq: Row) -> Iterator[ProtectionError]:
        if self.limits.power_level is None:
            return
        most_w = MAX_POWER_W * self.limits.power_level / 10
        power_w = float(np.abs(tau * dq).sum())
        # Written this way round, NaN counts as too much.
        step = -1 if power_w <= most_w else 1
        self._over_power = min(max(self._over_power + step, 0), _POWER_CAP)
        if self._over_power > POWER_COUNT:
            yield ProtectionError(
                "power",
                f"the legs have worked with more than {most_w:.0f} W, now {power_w:.0f} W",
                "Move slower, or allow a higher power level if you know why.",
            )


def is_driven(motors: MotorCmds) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Return which leg motors are driven; the others are off, or only braked."""
    legs = slice(0, LEG_MOTORS)
    dq = motors.dq_rad_s[legs]
    turns = (dq != 0.0) & (dq != np.float32(VELOCITY_OFF_RAD_S)) & (motors.kd_nm_s_rad[legs] != 0.0)
    pushes = (motors.tau_nm[legs] != 0.0) | (motors.kp_nm_rad[legs] != 0.0)
    driven: np.ndarray[Any, np.dtype[np.bool_]] = (motors.mode[legs] == SERVO) & (pushes | turns)
    return driven
