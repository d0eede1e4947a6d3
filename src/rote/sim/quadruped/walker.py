"""The walking controller of a simulated A1: stand, walk, pose, lie down, get up, go limp.

The modes follow Unitree's header. Speed limits and the time to get up are our choice; so are the
show modes (9 to 13), in which it just stands.
"""

import math
from enum import Enum, auto
from math import copysign, pi, sin
from typing import NamedTuple

from rote.sim.quadruped.body import LIMP, STEP_S, Balance, Drive, QuadrupedBody
from rote.sim.quadruped.legs import (
    GRAVITY_M_S2,
    JOINTS,
    LEGS,
    LegDimensions,
    Row,
    Three,
    clamp,
    joints_for,
    rotation_rows,
    wrap_angle,
)
from rote.wire.a1.values import HighCmd, ScaledHighCmd

# ---- the gait ------------------------------------------------------------------------------------

STANCE = 0.55
"""The share of a step's time during which a foot stands on the ground."""
RAISE_M = 0.08
"""How high a foot is raised in a step, by Unitree's header."""
_PHASE_OFFSETS = (0.0, 0.5, 0.5, 0.0)
"""When each leg steps in a trot, as a share of a step's time: diagonal legs step together."""
_IN_PLACE_M, _MOVING_M_S = 0.004, 0.01
"""A foot this near to the point below its thigh need not step; a slower trunk stands still."""


def minimum_jerk(share: float) -> float:
    """Return the position, at a share of its time, of a minimum-jerk move from 0 to 1."""
    u = min(max(share, 0.0), 1.0)
    return u**3 * (10.0 - 15.0 * u + 6.0 * u * u)


def move_toward(value: float, target: float, max_step: float) -> float:
    """Return `value` moved towards `target` by at most `max_step`."""
    return value + copysign(min(abs(target - value), max_step), target - value)


class Stepper:
    """The feet of one robot, each near the point below its thigh."""

    def __init__(self, dimensions: LegDimensions) -> None:
        self._dimensions = dimensions
        self._points_below_thighs_m = [dimensions.point_below_thigh(leg) for leg in range(LEGS)]
        """The point below each thigh of the level robot: x forward and y left of the trunk."""
        self.reset()

    def reset(self) -> None:
        """Stand still with each foot below its thigh."""
        self._foot_offsets_m = [(0.0, 0.0)] * LEGS
        self._lift_off_m = [(0.0, 0.0)] * LEGS
        self._foot_heights_m = [0.0] * LEGS
        self.standing = [True] * LEGS
        """Which feet should be on the ground."""
        self.stepping = False
        self._phase = 0.0

    def step(self, velocity: Three, period_s: float, raise_m: float) -> None:
        """Advance by `STEP_S` while the trunk moves at `velocity`: ahead, left and turning.

        `period_s` is the time of one step, and `raise_m` how high it lifts a foot. The stepping
        ends when the trunk stands still and each foot is below its thigh.
        """
        moving = any(abs(part) > _MOVING_M_S for part in velocity)
        if not self.stepping and not moving:
            return
        self.stepping = True
        self._phase = (self._phase + STEP_S / period_s) % 1.0
        for leg in range(LEGS):
            self._step_leg(leg, velocity, period_s, raise_m)
        in_place = all(
            abs(x) < _IN_PLACE_M and abs(y) < _IN_PLACE_M for x, y in self._foot_offsets_m
        )
        if not moving and in_place and all(self.standing):
            self.reset()

    def _step_leg(self, leg: int, velocity: Three, period_s: float, raise_m: float) -> None:
        """Move one foot with the ground while it stands, or to its next foothold in the air."""
        ahead, left, turn = velocity
        thigh_x, thigh_y = self._points_below_thighs_m[leg]
        ground_x, ground_y = ahead - turn * thigh_y, left + turn * thigh_x
        phase = (self._phase + _PHASE_OFFSETS[leg]) % 1.0
        x, y = self._foot_offsets_m[leg]
        if phase < STANCE:
            self.standing[leg], self._foot_heights_m[leg] = True, 0.0
            self._foot_offsets_m[leg] = (x - STEP_S * ground_x, y - STEP_S * ground_y)
            return
        if self.standing[leg]:
            self.standing[leg], self._lift_off_m[leg] = False, (x, y)
        share = (phase - STANCE) / (1.0 - STANCE)
        # The foothold is as far ahead as the thigh moves in the first half of the next stance.
        smooth, half_stance_s = minimum_jerk(share), period_s * STANCE / 2.0
        x, y = self._lift_off_m[leg]
        self._foot_offsets_m[leg] = (
            x + (ground_x * half_stance_s - x) * smooth,
            y + (ground_y * half_stance_s - y) * smooth,
        )
        self._foot_heights_m[leg] = raise_m * sin(pi * share) ** 2

    def compute_joints(self, height_m: float, euler_rad: Three) -> list[float]:
        """Return the twelve joint angles that give the trunk a height and tilt over its feet."""
        # The transposed rotation matrix turns a foot's position into the trunk's frame.
        (a, b, c), (d, e, f), (g, h, i) = rotation_rows(*euler_rad)
        joints: list[float] = []
        for leg, ((thigh_x, thigh_y), (off_x, off_y), raised) in enumerate(
            zip(
                self._points_below_thighs_m, self._foot_offsets_m, self._foot_heights_m, strict=True
            )
        ):
            x, y, z = thigh_x + off_x, thigh_y + off_y, raised - height_m
            foot_m = (x * a + y * d + z * g, x * b + y * e + z * h, x * c + y * f + z * i)
            joints += joints_for(self._dimensions, leg, *foot_m)
        return joints


# ---- the walking controller ----------------------------------------------------------------------


HEIGHT_M = 0.28
"""The height of the standing trunk over the ground, by Unitree's header."""
HEIGHTS_M = (0.16, 0.34)
"""Minimum and maximum height of the standing trunk."""
LIE_RAD = (0.0, 1.32, -2.69) * LEGS
"""The joint angles of a robot that lies."""
MAX_EULER_RAD = (0.5, 0.45, 0.5)
RISE_S = 1.5
"""Seconds to get up or to lie down."""
IDLE, STAND, WALK, GO_TO, LIE_DOWN, GET_UP, DAMP, RECOVER = 0, 1, 2, 3, 5, 6, 7, 8
MODES = frozenset(range(14)) - {4}
OLD_MODES = frozenset({IDLE, STAND, WALK})

FORWARD_M_S, BACKWARD_M_S, SIDEWAYS_M_S, TURN_RAD_S = 1.0, 0.7, 0.4, 2.0 * math.pi / 3.0
"""The speeds for a value of 1 in dialect 3.2, by a public report."""
_BACKWARD_SHARE = BACKWARD_M_S / FORWARD_M_S
"""Maximum speed backwards as a share of that forwards."""
HEIGHT_SHARE_M = 0.1
"""The body's height above the usual one for a value of 1 in dialect 3.2; a guess."""


class _Gait(NamedTuple):
    max_m_s: float
    """Maximum forward speed."""
    step_s: float
    """Time of one step."""


_GAITS = {
    0: _Gait(1.5, 0.5),
    1: _Gait(1.5, 0.5),
    2: _Gait(2.0, 0.36),
    3: _Gait(0.5, 0.7),
    4: _Gait(0.7, 0.6),
}
_MAX_SIDEWAYS_M_S, _MAX_TURN_RAD_S = 0.8, 2.5
_SPEED_UP_M_S2, _TURN_UP_RAD_S2, _LIFT_M_S, _LEAN_RAD_S = 2.5, 8.0, 0.2, 1.5
"""How fast the velocity, the turning, the height and the tilt may change."""
_GO_TO_M_S = (0.3, 0.6, 0.9)
"""The speed on the way to a commanded position, by speed level."""
_KP, _KD = (180.0,) * JOINTS, (6.0,) * JOINTS
_ARRIVED_M = 0.01
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
    """The velocity ahead and to the left."""
    turn_rad_s: float = 0.0
    euler_rad: tuple[float, float, float] = (0.0, 0.0, 0.0)
    lift_m: float = 0.0
    """Height of the trunk above the usual one."""
    raise_m: float = RAISE_M
    position_m: tuple[float, float] = (0.0, 0.0)
    speed_level: int = 0


def walk_goal_from(command: HighCmd | ScaledHighCmd) -> WalkGoal:
    """Convert a high-level command of any dialect to SI units."""
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
        along_m_s=(forward * (FORWARD_M_S if forward > 0 else BACKWARD_M_S), left * SIDEWAYS_M_S),
        turn_rad_s=turn * TURN_RAD_S,
        euler_rad=(command.roll_rad, command.pitch_rad, command.yaw_rad),
        lift_m=height * HEIGHT_SHARE_M,
    )


class Walker:
    """Drives a body as commanded."""

    def __init__(self, body: QuadrupedBody, *, old: bool = False, posture: Posture) -> None:
        self._body = body
        self._is_old = old
        """Whether it is the controller of dialect 3.2, which has only three modes."""
        self.posture = posture
        self.mode = {Posture.LYING: LIE_DOWN, Posture.DAMPED: DAMP}.get(posture, IDLE)
        self.progress = 0.0
        self.goal = WalkGoal()
        self.raise_m = RAISE_M
        self._stepper = Stepper(body.build)
        self._velocity = self._euler = _ZERO
        """The trunk's velocity ahead, left and about the vertical; its roll, pitch and yaw over the
        feet.
        """
        self._height = HEIGHT_M
        self._start_rad: Row = tuple(body.q_rad)
        self._last: Row = self._start_rad
        self._moved_s = self._started_m = 0.0
        """Time since a change of posture began; distance to the goal when its command came."""

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
        return OLD_MODES if self._is_old else MODES

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
            if goal.mode in (GET_UP, RECOVER) or (self._is_old and goal.mode != IDLE):
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
            self._started_m = math.hypot(*self._compute_offset_to_goal())

    def stop_walking(self) -> None:
        """Stop walking and keep the pose, because commands have stopped."""
        self.goal = self.goal._replace(along_m_s=(0.0, 0.0), turn_rad_s=0.0)
        if self.mode in (WALK, GO_TO):
            self.mode = IDLE
            self.goal = WalkGoal()

    def go_limp(self) -> None:
        """Let the legs go limp: their motors only brake."""
        if self.posture is not Posture.DAMPED:
            self.posture, self.mode = Posture.DAMPED, DAMP
            self.goal = WalkGoal(mode=DAMP)
            self._velocity = _ZERO

    def _begin_posture(self, posture: Posture) -> None:
        self.posture, self._moved_s = posture, 0.0
        self._start_rad = self._last = tuple(self._body.q_rad)
        self._velocity = self._euler = _ZERO
        self._height = HEIGHT_M
        self._stepper.reset()

    # ---- each step ------------------------------------------------------------------------------

    def drive(self) -> tuple[Drive, Balance | None]:
        """Advance by `STEP_S`; return the servos' command, and how the trunk moves.

        The latter is None for a robot that lies or is limp.
        """
        if self.posture is Posture.DAMPED:
            return LIMP, None
        if self.posture in (Posture.RISING, Posture.LOWERING):
            return self._change_posture()
        if self.posture is Posture.LYING:
            return self._make_servo_command(LIE_RAD), None
        self._approach_goal()
        self._stepper.step(self._velocity, _get_gait(self.goal.gait).step_s, self.raise_m)
        command = self._make_servo_command(
            self._stepper.compute_joints(self._height, self._euler), supports=True
        )
        return command, Balance(*self._euler[:2], *self._velocity)

    def _change_posture(self) -> tuple[Drive, Balance | None]:
        """Advance getting up or lying down; return the servos' command and the trunk's motion."""
        rising = self.posture is Posture.RISING
        self._moved_s += STEP_S
        self.progress = min(self._moved_s / RISE_S, 1.0)
        goal = self._stepper.compute_joints(HEIGHT_M, _ZERO) if rising else LIE_RAD
        share = minimum_jerk(self.progress)
        target = [
            start + (end - start) * share for start, end in zip(self._start_rad, goal, strict=True)
        ]
        if self._moved_s >= RISE_S:
            self.posture = Posture.STANDING if rising else Posture.LYING
        return self._make_servo_command(target, supports=True), Balance(0.0, 0.0, *_ZERO)

    def _approach_goal(self) -> None:
        """Move speed, height and tilt towards the commanded ones, at limited rates."""
        velocity, euler, lift = self._compute_target_motion()
        faster, turn = _SPEED_UP_M_S2 * STEP_S, _TURN_UP_RAD_S2 * STEP_S
        self._velocity = (
            move_toward(self._velocity[0], velocity[0], faster),
            move_toward(self._velocity[1], velocity[1], faster),
            move_toward(self._velocity[2], velocity[2], turn),
        )
        height = clamp(HEIGHT_M + lift, *HEIGHTS_M)
        self._height = move_toward(self._height, height, _LIFT_M_S * STEP_S)
        roll, pitch, yaw = (
            move_toward(now, target, _LEAN_RAD_S * STEP_S)
            for now, target in zip(self._euler, euler, strict=True)
        )
        self._euler = (roll, pitch, yaw)

    def _compute_target_motion(self) -> tuple[Three, Three, float]:
        """Return the velocity, tilt and height above the usual one that the goal demands, within
        the limits of the robot.
        """
        goal = self.goal
        if goal.mode == STAND:
            roll, pitch, yaw = (
                clamp(angle, -max_rad, max_rad)
                for angle, max_rad in zip(goal.euler_rad, MAX_EULER_RAD, strict=True)
            )
            return _ZERO, (roll, pitch, yaw), goal.lift_m
        if goal.mode == WALK:
            ahead, left = goal.along_m_s
            max_m_s = _get_gait(goal.gait).max_m_s
            velocity = (
                clamp(ahead, -max_m_s * _BACKWARD_SHARE, max_m_s),
                clamp(left, -_MAX_SIDEWAYS_M_S, _MAX_SIDEWAYS_M_S),
                clamp(goal.turn_rad_s, -_MAX_TURN_RAD_S, _MAX_TURN_RAD_S),
            )
            return velocity, _ZERO, goal.lift_m
        if goal.mode == GO_TO:
            return self._compute_velocity_to_goal(), _ZERO, goal.lift_m
        return _ZERO, _ZERO, 0.0

    def _compute_offset_to_goal(self) -> tuple[float, float]:
        """Return the offset to the commanded position in the world frame."""
        x, y = (clamp(part, -1e6, 1e6) for part in self.goal.position_m)
        return x - self._body.x_m, y - self._body.y_m

    def _compute_velocity_to_goal(self) -> Three:
        """Return the velocity towards the commanded position and heading; update the progress."""
        heading, (x, y) = self._body.heading_rad, self._compute_offset_to_goal()
        remaining_m = math.hypot(x, y)
        self.progress = 1.0 - min(remaining_m / max(self._started_m, 1e-3), 1.0)
        # Near the goal, the speed and the turning are proportional to what remains.
        speed = min(2.0 * remaining_m, _GO_TO_M_S[min(self.goal.speed_level, 2)])
        if remaining_m < _ARRIVED_M:
            self.progress, speed = 1.0, 0.0
        bearing = math.atan2(y, x) - heading
        turn = clamp(2.0 * wrap_angle(self.goal.euler_rad[2] - heading), -1.0, 1.0)
        return speed * math.cos(bearing), speed * math.sin(bearing), turn

    def _make_servo_command(self, target_rad: Row, *, supports: bool = False) -> Drive:
        """Return the servos' command for these positions, with torques that carry the weight.

        `supports` means that the feet carry the trunk, not only the legs themselves.
        """
        speeds = [
            clamp((new - old) / STEP_S, -max_speed, max_speed)
            for new, old, max_speed in zip(
                target_rad, self._last, self._body.build.speed_rad_s, strict=True
            )
        ]
        self._last = target_rad
        feed: list[float] = []
        for foot, force in zip(self._body.feet, self._estimate_foot_forces(supports), strict=True):
            for weight, load in zip(
                foot.gravity_torque_nm, foot.compute_torques(0.0, 0.0, force), strict=True
            ):
                feed.append(-weight - load)
        return Drive(target_rad, speeds, _KP, _KD, feed)

    def _estimate_foot_forces(self, supports: bool) -> list[float]:
        """Return the force that the ground should exert on each foot to carry the trunk."""
        stands = [
            should_stand and force_n > 0.0
            for should_stand, force_n in zip(
                self._stepper.standing, self._body.foot_force_n, strict=True
            )
        ]
        if not supports or not any(stands):
            return [0.0] * LEGS
        each_n = self._body.build.mass_kg * GRAVITY_M_S2 / sum(stands)
        return [each_n if standing else 0.0 for standing in stands]


def _get_gait(number: int) -> _Gait:
    return _GAITS.get(number, _GAITS[1])
