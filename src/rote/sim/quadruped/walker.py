"""The walking controller of a simulated A1: stand, walk, pose, lie down, get up, go limp.

The modes follow Unitree's header. Speed limits and the time to get up are our choice; so are the
show modes (9 to 13), in which it just stands.
"""

import math
from enum import Enum, auto
from typing import NamedTuple

from rote.sim.quadruped.body import LIMP, STEP_S, Balance, Drive, QuadrupedBody
from rote.sim.quadruped.gait import RAISE_M, Stepper, minimum_jerk, toward
from rote.sim.quadruped.legs import GRAVITY_M_S2, JOINTS, LEGS, Row, Three, clamp, wrap_angle
from rote.wire.a1.values import HighCmd, ScaledHighCmd

HEIGHT_M = 0.28
"""The height of the standing trunk over the ground, by Unitree's header."""
HEIGHTS_M = (0.16, 0.34)
LIE_RAD = (0.0, 1.32, -2.69) * LEGS
MAX_EULER_RAD = (0.5, 0.45, 0.5)
RISE_S = 1.5
IDLE, STAND, WALK, GO_TO, LIE_DOWN, GET_UP, DAMP, RECOVER = 0, 1, 2, 3, 5, 6, 7, 8
MODES = frozenset(range(14)) - {4}
OLD_MODES = frozenset({IDLE, STAND, WALK})

FORWARD_M_S, BACKWARD_M_S, ASIDE_M_S, TURN_RAD_S = 1.0, 0.7, 0.4, 2.0 * math.pi / 3.0
"""The speeds for a value of 1 in dialect 3.2, by a public report."""
HEIGHT_SHARE_M = 0.1
"""The same for the height of the body; a guess."""
_STRIDES = {0: (1.5, 0.5), 1: (1.5, 0.5), 2: (2.0, 0.36), 3: (0.5, 0.7), 4: (0.7, 0.6)}
"""By gait: the maximum forward speed in m/s, and the step time in s."""
_MAX_ASIDE_M_S, _MAX_TURN_RAD_S = 0.8, 2.5
_SPEED_UP_M_S2, _TURN_UP_RAD_S2, _LIFT_M_S, _LEAN_RAD_S = 2.5, 8.0, 0.2, 1.5
_GO_TO_M_S = (0.3, 0.6, 0.9)
_KP, _KD = (180.0,) * JOINTS, (6.0,) * JOINTS
_THERE_M = 0.01
_ZERO: Three = (0.0, 0.0, 0.0)


class Posture(Enum):
    """What the legs are doing."""

    STANDING = auto()
    RISING = auto()
    LOWERING = auto()
    LYING = auto()
    DAMPED = auto()


class WalkGoal(NamedTuple):
    """A high-level command in SI units, independent of its dialect."""

    mode: int = IDLE
    gait: int = 0
    along_m_s: tuple[float, float] = (0.0, 0.0)
    turn_rad_s: float = 0.0
    euler_rad: tuple[float, float, float] = (0.0, 0.0, 0.0)
    lift_m: float = 0.0
    """Height of the trunk above the usual one."""
    raise_m: float = RAISE_M
    position_m: tuple[float, float] = (0.0, 0.0)
    speed_level: int = 0


def walk_goal_from(command: HighCmd | ScaledHighCmd) -> WalkGoal:
    """Convert a command of any dialect."""
    if isinstance(command, HighCmd):
        roll, pitch, yaw = command.euler_rad
        return WalkGoal(
            mode=command.mode,
            gait=command.gait,
            along_m_s=(command.velocity_m_s[0], command.velocity_m_s[1]),
            turn_rad_s=command.yaw_speed_rad_s,
            euler_rad=(roll, pitch, yaw),
            lift_m=command.body_height_m,
            raise_m=clamp(RAISE_M + command.foot_raise_height_m, 0.01, 0.15),
            position_m=(command.position_m[0], command.position_m[1]),
            speed_level=command.speed_level,
        )
    forward, left, turn, height = (
        clamp(share, -1.0, 1.0)
        for share in (command.forward, command.left, command.turn, command.body_height)
    )
    return WalkGoal(
        mode=command.mode,
        gait=1,
        along_m_s=(forward * (FORWARD_M_S if forward > 0 else BACKWARD_M_S), left * ASIDE_M_S),
        turn_rad_s=turn * TURN_RAD_S,
        euler_rad=(command.roll_rad, command.pitch_rad, command.yaw_rad),
        lift_m=height * HEIGHT_SHARE_M,
    )


class Walker:
    """Drives a body as commanded."""

    def __init__(self, body: QuadrupedBody, *, old: bool = False, posture: Posture) -> None:
        self._body = body
        self._old = old
        """Whether it is the controller of dialect 3.2, which has only three modes."""
        self.posture = posture
        self.mode = {Posture.LYING: LIE_DOWN, Posture.DAMPED: DAMP}.get(posture, IDLE)
        self.progress = 0.0
        self.goal = WalkGoal()
        self.raise_m = RAISE_M
        self._stepper = Stepper(body.build)
        self._velocity = self._euler = _ZERO
        """Ahead, left and about the vertical; roll, pitch and yaw over the feet."""
        self._height = HEIGHT_M
        self._from: Row = tuple(body.q_rad)
        self._last: Row = self._from
        self._moved_s = self._started_m = 0.0

    @property
    def gait(self) -> int:
        """The current gait; 0 if it does not walk."""
        return (self.goal.gait or 1) if self._stepper.stepping else 0

    @property
    def yaw_rad(self) -> float:
        """How far the trunk is twisted over its feet."""
        return self._euler[2] if self.posture is Posture.STANDING else 0.0

    @property
    def known_modes(self) -> frozenset[int]:
        """The modes that this controller accepts."""
        return OLD_MODES if self._old else MODES

    def follow(self, goal: WalkGoal) -> None:
        """Accept a command; one that the posture does not allow changes nothing."""
        if goal.mode not in self.known_modes:
            return
        changed = goal.mode != self.mode
        if goal.mode == DAMP:
            self.go_limp()
        elif goal.mode == LIE_DOWN:
            if self.posture in (Posture.STANDING, Posture.RISING):
                self._begin_posture(Posture.LOWERING)
        elif self.posture in (Posture.DAMPED, Posture.LYING):
            # The older controller has no command to get up.
            if goal.mode in (GET_UP, RECOVER) or (self._old and goal.mode != IDLE):
                self._begin_posture(Posture.RISING)
            else:
                return
        elif self.posture is Posture.LOWERING:
            if goal.mode not in (GET_UP, RECOVER):
                return
            self._begin_posture(Posture.RISING)
        self.mode = goal.mode
        self.goal, self.raise_m = goal, goal.raise_m
        if changed:
            self.progress = 0.0
            self._started_m = math.hypot(*self._offset_to_goal())

    def stop_walking(self) -> None:
        """Stop walking and keep the pose: no commands arrive any more."""
        self.goal = self.goal._replace(along_m_s=(0.0, 0.0), turn_rad_s=0.0)
        if self.mode in (WALK, GO_TO):
            self.mode = IDLE
            self.goal = WalkGoal()

    def go_limp(self) -> None:
        """Make the legs limp."""
        if self.posture is not Posture.DAMPED:
            self.posture, self.mode = Posture.DAMPED, DAMP
            self.goal = WalkGoal(mode=DAMP)
            self._velocity = _ZERO

    def _begin_posture(self, posture: Posture) -> None:
        self.posture, self._moved_s = posture, 0.0
        self._from = self._last = tuple(self._body.q_rad)
        self._velocity = self._euler = _ZERO
        self._height = HEIGHT_M
        self._stepper.reset()

    # ---- each step ------------------------------------------------------------------------------

    def drive(self) -> tuple[Drive, Balance | None]:
        """Return the servos' command for the next `STEP_S`, and how the trunk moves."""
        if self.posture is Posture.DAMPED:
            return LIMP, None
        if self.posture in (Posture.RISING, Posture.LOWERING):
            return self._change_posture()
        if self.posture is Posture.LYING:
            return self._servo_command(LIE_RAD), None
        self._approach_goal()
        self._stepper.step(self._velocity, _stride_limits(self.goal.gait)[1], self.raise_m)
        drive = self._servo_command(self._stepper.joints(self._height, self._euler), supports=True)
        return drive, Balance(*self._euler[:2], *self._velocity)

    def _change_posture(self) -> tuple[Drive, Balance | None]:
        """Get up, or lie down."""
        rising = self.posture is Posture.RISING
        self._moved_s += STEP_S
        self.progress = min(self._moved_s / RISE_S, 1.0)
        goal = self._stepper.joints(HEIGHT_M, _ZERO) if rising else LIE_RAD
        share = minimum_jerk(self.progress)
        target = [a + (b - a) * share for a, b in zip(self._from, goal, strict=True)]
        if self._moved_s >= RISE_S:
            self.posture = Posture.STANDING if rising else Posture.LYING
        return self._servo_command(target, supports=True), Balance(0.0, 0.0, *_ZERO)

    def _approach_goal(self) -> None:
        """Move speed, height and tilt towards the commanded ones, at limited rates."""
        velocity, euler, lift = self._target_motion()
        faster, turn = _SPEED_UP_M_S2 * STEP_S, _TURN_UP_RAD_S2 * STEP_S
        self._velocity = (
            toward(self._velocity[0], velocity[0], faster),
            toward(self._velocity[1], velocity[1], faster),
            toward(self._velocity[2], velocity[2], turn),
        )
        height = clamp(HEIGHT_M + lift, *HEIGHTS_M)
        self._height = toward(self._height, height, _LIFT_M_S * STEP_S)
        roll, pitch, yaw = (
            toward(now, target, _LEAN_RAD_S * STEP_S)
            for now, target in zip(self._euler, euler, strict=True)
        )
        self._euler = (roll, pitch, yaw)

    def _target_motion(self) -> tuple[Three, Three, float]:
        """Return the commanded velocity, tilt and height above the usual one."""
        goal = self.goal
        if goal.mode == STAND:
            roll, pitch, yaw = (
                clamp(angle, -most, most)
                for angle, most in zip(goal.euler_rad, MAX_EULER_RAD, strict=True)
            )
            return _ZERO, (roll, pitch, yaw), goal.lift_m
        if goal.mode == WALK:
            ahead, left = goal.along_m_s
            most = _stride_limits(goal.gait)[0]
            velocity = (
                clamp(ahead, -most * BACKWARD_M_S, most),
                clamp(left, -_MAX_ASIDE_M_S, _MAX_ASIDE_M_S),
                clamp(goal.turn_rad_s, -_MAX_TURN_RAD_S, _MAX_TURN_RAD_S),
            )
            return velocity, _ZERO, goal.lift_m
        if goal.mode == GO_TO:
            return self._velocity_to_position(), _ZERO, goal.lift_m
        return _ZERO, _ZERO, 0.0

    def _offset_to_goal(self) -> tuple[float, float]:
        """Return the offset to the commanded position in the world frame."""
        x, y = (clamp(part, -1e6, 1e6) for part in self.goal.position_m)
        return x - self._body.x_m, y - self._body.y_m

    def _velocity_to_position(self) -> Three:
        """Return the velocity towards the commanded position and heading."""
        heading, (x, y) = self._body.heading_rad, self._offset_to_goal()
        left_m = math.hypot(x, y)
        self.progress = 1.0 - min(left_m / max(self._started_m, 1e-3), 1.0)
        speed = min(2.0 * left_m, _GO_TO_M_S[min(self.goal.speed_level, 2)])
        if left_m < _THERE_M:
            self.progress, speed = 1.0, 0.0
        bearing = math.atan2(y, x) - heading
        turn = clamp(2.0 * wrap_angle(self.goal.euler_rad[2] - heading), -1.0, 1.0)
        return speed * math.cos(bearing), speed * math.sin(bearing), turn

    def _servo_command(self, target_rad: Row, *, supports: bool = False) -> Drive:
        speeds = [
            clamp((new - old) / STEP_S, -most, most)
            for new, old, most in zip(
                target_rad, self._last, self._body.build.speed_rad_s, strict=True
            )
        ]
        self._last = target_rad
        feed: list[float] = []
        for foot, force in zip(self._body.feet, self._expected_foot_forces(supports), strict=True):
            for own, load in zip(
                foot.gravity_torque_nm, foot.torques(0.0, 0.0, force), strict=True
            ):
                feed.append(-own - load)
        return Drive(target_rad, speeds, _KP, _KD, feed)

    def _expected_foot_forces(self, supports: bool) -> list[float]:
        """Return the expected force of the ground on each foot."""
        forces = self._body.foot_force_n
        stands = [ok and n > 0.0 for ok, n in zip(self._stepper.standing, forces, strict=True)]
        if not supports or not any(stands):
            return [0.0] * LEGS
        each_n = self._body.build.mass_kg * GRAVITY_M_S2 / sum(stands)
        return [each_n if standing else 0.0 for standing in stands]


def _stride_limits(gait: int) -> tuple[float, float]:
    return _STRIDES.get(gait, _STRIDES[1])
