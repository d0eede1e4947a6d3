"""The body of a simulated A1: twelve servos, and a trunk that stands on its feet or lies.

Each joint is a rotating mass with a servo, its torque limited to the motor's. The trunk moves up
and down, rolls and pitches as its contacts push it. Along the ground and about the vertical it
moves by friction, or as the walking controller commands. The ground is slightly elastic. If no
controller balances, a light hand steadies the trunk. Not simulated: the forces of the trunk's own
motion on the legs, tipping over by friction, and falling on the back.
"""

from collections.abc import Sequence
from math import cos, isnan, sin
from typing import NamedTuple, Protocol

from rote.motion.track import Array
from rote.sim.quadruped.legs import (
    GRAVITY_M_S2,
    JOINTS,
    LEGS,
    LegDimensions,
    LegFoot,
    Row,
    Three,
    clamp,
    clamp_joint,
    place_foot,
    rotation_rows,
    wrap_angle,
)

STEP_S = 0.002
HAND_EVERY = 5
"""Steps between two calls of a hand's `grip`: 100 Hz."""
BRAKE_NM_S_RAD = 3.0
"""The damping of a motor without a command."""

_INERTIA_KG_M2 = (0.05, 0.05, 0.03) * LEGS
_FRICTION_NM_S_RAD = 0.1
"""Inertia of each joint, and the friction in it."""
_GROUND_N_M, _GROUND_N_S_M, _MAX_N = 10_000.0, 150.0, 600.0
"""Stiffness, damping and maximum force of the ground on one point of contact."""
_FRICTION_N_S_M, _FRICTION_SHARE = 150.0, 0.6
"""Friction per slip speed, and its maximum as a share of the ground's force."""
_BELLY: tuple[Three, ...] = tuple((x, y, -0.057) for x in (0.13, -0.13) for y in (-0.1, 0.1))
_BELLY_SPEEDS: tuple[Three, ...] = ((0.0, 0.0, 0.0),) * 4
"""Four points of the trunk that can touch the ground, and their speeds in the trunk's frame."""
_ROLL_KG_M2, _PITCH_KG_M2, _TURN_KG_M2 = 0.12, 0.3, 0.35
"""The trunk's inertia, legs included."""
_MAX_TILT_RAD, _MAX_TILT_RAD_S, _MAX_FALL_M_S, _MAX_HEIGHT_M = 1.2, 8.0, 3.0, 1.0
_MAX_SLIDE_M_S = 3.0
_HANGING_HEIGHT_M = 0.6
_HAND_NM_RAD, _HAND_NM_S_RAD, _HAND_MAX_NM = 60.0, 1.5, 15.0
"""Stiffness, damping and maximum torque of a hand that holds a joint."""


class Drive(NamedTuple):
    """The servos' command by joint: torque = feed + kp (q - measured) + kd (dq - measured)."""

    q_rad: Row
    dq_rad_s: Row
    kp_nm_rad: Row
    kd_nm_s_rad: Row
    feed_nm: Row


class Balance(NamedTuple):
    """How a walking controller moves the trunk as a whole."""

    roll_rad: float
    pitch_rad: float
    ahead_m_s: float
    left_m_s: float
    turn_rad_s: float


class _TrunkSupport(NamedTuple):
    """Stiffness and damping that keep the trunk upright, in N.m/rad and N.m.s/rad."""

    roll: float
    roll_rate: float
    pitch: float
    pitch_rate: float


_BALANCED = _TrunkSupport(90.0, 6.0, 150.0, 12.0)
"""A walking controller."""
_STEADIED = _TrunkSupport(20.0, 2.0, 40.0, 5.0)
"""A person with a hand on the trunk, as there should be when motors are driven one by one."""


class LegHand(Protocol):
    """A hand that pulls on the legs."""

    def grip(self, time_s: float) -> Array | None:
        """Return the hand's target positions of the 12 joints, NaN for those it does not hold.

        `time_s` counts from when the hand took hold. None means that it has released the legs for
        good.
        """


_NOTHING = (0.0,) * JOINTS
LIMP = Drive(_NOTHING, _NOTHING, _NOTHING, (BRAKE_NM_S_RAD,) * JOINTS, _NOTHING)
"""Motors without a command: they only brake."""


class QuadrupedBody:
    """Joints and trunk of one robot, advanced step by step."""

    def __init__(self, build: LegDimensions, joints_rad: Row, *, hung: bool = False) -> None:
        self.build = build
        self.hung = hung
        """Whether the trunk hangs on a rope, its feet in the air."""
        self._motors = tuple(
            zip(
                _INERTIA_KG_M2,
                build.lower_rad,
                build.upper_rad,
                build.effort_nm,
                build.speed_rad_s,
                strict=True,
            )
        )
        self._mounts = tuple(build.mount_of(leg) for leg in range(LEGS))
        self.q_rad = [clamp_joint(build, joint, angle) for joint, angle in enumerate(joints_rad)]
        self.dq_rad_s = [0.0] * JOINTS
        self.ddq_rad_s2 = [0.0] * JOINTS
        self.torque_nm = [0.0] * JOINTS
        self.feet: list[LegFoot] = self._compute_feet()
        self.foot_force_n = [0.0] * LEGS
        self.height_m = _HANGING_HEIGHT_M if hung else -min(foot.z for foot in self.feet)
        self.rise_m_s = self.rise_m_s2 = 0.0
        self.roll_rad = self.pitch_rad = self.roll_rad_s = self.pitch_rad_s = 0.0
        self.x_m = self.y_m = self.heading_rad = 0.0
        self.ahead_m_s = self.left_m_s = self.turn_rad_s = 0.0
        self._up: Three = (0.0, 0.0, 1.0)
        """The upward direction in the trunk's frame."""
        self._hand: LegHand | None = None
        self._hand_since_s: float | None = None
        self._grip: list[float] | None = None
        self._steps = 0

    def _compute_feet(self) -> list[LegFoot]:
        q, link_m = self.q_rad, self.build.link_m
        return [
            place_foot(link_m, mount, *q[3 * leg : 3 * leg + 3])
            for leg, mount in enumerate(self._mounts)
        ]

    def feet_speed_m_s(self) -> list[Three]:
        """Return the speeds of the feet in the trunk's frame."""
        dq = self.dq_rad_s
        return [
            foot.compute_speed(*dq[3 * leg : 3 * leg + 3]) for leg, foot in enumerate(self.feet)
        ]

    def step(self, now_s: float, drive: Drive, balance: Balance | None = None) -> None:
        """Advance by `STEP_S`; with `balance`, a walking controller moves the trunk."""
        self._steps += 1
        external_nm: list[float] = []
        if self.hung:
            for foot in self.feet:
                external_nm += foot.gravity_torque_nm
        else:
            for foot, push in zip(self.feet, self._move_trunk(balance), strict=True):
                hip, thigh, calf = foot.gravity_torque_nm
                pushed_hip, pushed_thigh, pushed_calf = foot.compute_torques(*push)
                external_nm += (hip + pushed_hip, thigh + pushed_thigh, calf + pushed_calf)
        if self._hand is not None:
            self._add_hand_torques(now_s, drive.kp_nm_rad, external_nm)
        self._move_joints(drive, external_nm)
        self.feet = self._compute_feet()

    def _move_joints(self, drive: Drive, external_torques_nm: Sequence[float]) -> None:
        """Advance all joints by one step; the implicit servo equation is stable for any gain."""
        # This runs 6000 times a second, so `clamp` is called only outside a limit.
        moved: list[tuple[float, float, float, float]] = []
        rows = zip(
            *drive, self.q_rad, self.dq_rad_s, external_torques_nm, self._motors, strict=True
        )
        for target, target_speed, kp, kd, feed, q_before, speed_before, external, motor in rows:
            inertia, lower, upper, effort, max_speed = motor
            external_nm = external - _FRICTION_NM_S_RAD * speed_before
            pull = feed + kp * (target - q_before) + kd * target_speed
            gain = kd + STEP_S * kp
            impulse = inertia * speed_before + STEP_S * (pull + external_nm)
            torque = pull - gain * (impulse / (inertia + STEP_S * gain))
            if not -effort <= torque <= effort:
                torque = clamp(torque, -effort, effort)
            speed = speed_before + STEP_S / inertia * (torque + external_nm)
            if not -max_speed <= speed <= max_speed:
                speed = clamp(speed, -max_speed, max_speed)
            q = q_before + STEP_S * speed
            if not lower <= q <= upper:
                # A joint at its mechanical stop stays there.
                q, speed = clamp(q, lower, upper), 0.0
            moved.append((q, speed, torque, (speed - speed_before) / STEP_S))
        self.q_rad, self.dq_rad_s, self.torque_nm, self.ddq_rad_s2 = map(
            list, zip(*moved, strict=True)
        )

    # ---- the trunk ------------------------------------------------------------------------------

    def _move_trunk(self, balance: Balance | None) -> list[Three]:
        """Move the trunk; return the force of the ground on each foot, in the trunk's frame."""
        if balance is not None:
            self.ahead_m_s, self.left_m_s = balance.ahead_m_s, balance.left_m_s
            self.turn_rad_s = balance.turn_rad_s
        up_x, up_y, up_z = self._up
        contacts: list[tuple[Three, float]] = []
        pushes: list[Three] = []
        frictions: list[Three] = []
        points = (*(foot[:3] for foot in self.feet), *_BELLY)
        for point, speed in zip(points, (*self.feet_speed_m_s(), *_BELLY_SPEEDS), strict=True):
            force = self._compute_ground_force_n(point, speed)
            contacts.append((point, force))
            friction_x, friction_y = (
                self._compute_friction_n(point, speed, force) if force else (0.0, 0.0)
            )
            pushes.append((force * up_x + friction_x, force * up_y + friction_y, force * up_z))
            frictions.append(
                (friction_x, friction_y, point[0] * friction_y - point[1] * friction_x)
            )
        self.foot_force_n = [force for _, force in contacts[:LEGS]]
        if balance is None:
            self._slide_trunk(frictions)
        self._move_along_ground()
        self._lift_and_tilt_trunk(contacts, balance)
        return pushes[:LEGS]

    def _compute_friction_n(self, point: Three, speed: Three, force: float) -> tuple[float, float]:
        """Return the ground's friction, in N along x and y, on a point pressed with `force`."""
        max_n = _FRICTION_SHARE * force
        slip_x = speed[0] + self.ahead_m_s - self.turn_rad_s * point[1]
        slip_y = speed[1] + self.left_m_s + self.turn_rad_s * point[0]
        friction_x = clamp(-_FRICTION_N_S_M * slip_x, -max_n, max_n)
        friction_y = clamp(-_FRICTION_N_S_M * slip_y, -max_n, max_n)
        return friction_x, friction_y

    def _compute_ground_force_n(self, point: Three, speed: Three) -> float:
        """Return the upward force of the ground on a point of the trunk or a foot."""
        (up_x, up_y, up_z), (x, y, z) = self._up, point
        height = self.height_m + up_x * x + up_y * y + up_z * z
        if height >= 0.0:
            return 0.0
        rising = self.rise_m_s + up_x * speed[0] + up_y * speed[1] + up_z * speed[2]
        rising += self.roll_rad_s * y - self.pitch_rad_s * x
        return clamp(-_GROUND_N_M * height - _GROUND_N_S_M * rising, 0.0, _MAX_N)

    def _lift_and_tilt_trunk(
        self, contacts: Sequence[tuple[Three, float]], balance: Balance | None
    ) -> None:
        """Move the trunk up and down, roll and pitch it by the ground's forces on its contacts."""
        up_x, up_y, up_z = self._up
        lift = roll = pitch = 0.0
        for (x, y, z), force in contacts:
            lift += force
            roll += force * (y * up_z - z * up_y)
            pitch += force * (z * up_x - x * up_z)
        support = _STEADIED if balance is None else _BALANCED
        target_roll, target_pitch = 0.0, 0.0
        if balance is not None:
            target_roll, target_pitch = balance.roll_rad, balance.pitch_rad
        roll += support.roll * (target_roll - self.roll_rad) - support.roll_rate * self.roll_rad_s
        pitch += support.pitch * (target_pitch - self.pitch_rad)
        pitch -= support.pitch_rate * self.pitch_rad_s
        self.roll_rad, self.roll_rad_s = _limit_tilt(
            self.roll_rad, self.roll_rad_s + STEP_S * roll / _ROLL_KG_M2
        )
        self.pitch_rad, self.pitch_rad_s = _limit_tilt(
            self.pitch_rad, self.pitch_rad_s + STEP_S * pitch / _PITCH_KG_M2
        )
        self.rise_m_s2 = lift / self.build.mass_kg - GRAVITY_M_S2
        rise = self.rise_m_s + STEP_S * self.rise_m_s2
        self.rise_m_s = clamp(rise, -_MAX_FALL_M_S, _MAX_FALL_M_S)
        self.height_m = clamp(self.height_m + STEP_S * self.rise_m_s, 0.0, _MAX_HEIGHT_M)
        self._up = rotation_rows(self.roll_rad, self.pitch_rad)[2]

    def _slide_trunk(self, frictions: Sequence[Three]) -> None:
        """Move the trunk along the ground by friction."""
        force_x, force_y, torque = (sum(column) for column in zip(*frictions, strict=True))
        mass = self.build.mass_kg
        ahead = self.ahead_m_s + STEP_S * force_x / mass
        left = self.left_m_s + STEP_S * force_y / mass
        turn = self.turn_rad_s + STEP_S * torque / _TURN_KG_M2
        self.ahead_m_s = clamp(ahead, -_MAX_SLIDE_M_S, _MAX_SLIDE_M_S)
        self.left_m_s = clamp(left, -_MAX_SLIDE_M_S, _MAX_SLIDE_M_S)
        self.turn_rad_s = clamp(turn, -_MAX_TILT_RAD_S, _MAX_TILT_RAD_S)

    def _move_along_ground(self) -> None:
        mean_heading_rad = self.heading_rad + STEP_S * self.turn_rad_s / 2.0
        cosine, sine = cos(mean_heading_rad), sin(mean_heading_rad)
        self.x_m += STEP_S * (cosine * self.ahead_m_s - sine * self.left_m_s)
        self.y_m += STEP_S * (sine * self.ahead_m_s + cosine * self.left_m_s)
        self.heading_rad = wrap_angle(self.heading_rad + STEP_S * self.turn_rad_s)

    # ---- hands ----------------------------------------------------------------------------------

    def attach(self, hand: LegHand | None) -> None:
        """Attach a hand that takes hold as soon as the legs are soft; None removes it."""
        self._hand, self._hand_since_s, self._grip = hand, None, None

    @property
    def held_by_hand(self) -> bool:
        """Whether a hand is attached, which pulls now or waits until the legs are soft."""
        return self._hand is not None

    def _add_hand_torques(
        self, now_s: float, stiffness: Row, external_torques_nm: list[float]
    ) -> None:
        """Add the hand's torque to the soft joints."""
        if self._grip is None or self._steps % HAND_EVERY == 0:
            self._update_grip(now_s, stiffness)
        if self._grip is None:
            return
        for joint, target in enumerate(self._grip):
            if stiffness[joint] != 0.0 or isnan(target):
                continue  # the joint is not soft, or the hand does not hold it
            spring = _HAND_NM_RAD * (target - self.q_rad[joint])
            pull = spring - _HAND_NM_S_RAD * self.dq_rad_s[joint]
            external_torques_nm[joint] += clamp(pull, -_HAND_MAX_NM, _HAND_MAX_NM)

    def _update_grip(self, now_s: float, stiffness: Row) -> None:
        """Read the hand's target positions; at first it waits until all joints are soft."""
        assert self._hand is not None
        if self._hand_since_s is None:
            if any(stiffness):
                return
            self._hand_since_s = now_s
        target = self._hand.grip(now_s - self._hand_since_s)
        self._grip = None if target is None else target.tolist()
        if target is None:
            self._hand = None


def _limit_tilt(angle: float, speed: float) -> tuple[float, float]:
    """Return the trunk's angle and its speed a step later, limited to the range of the model."""
    speed = clamp(speed, -_MAX_TILT_RAD_S, _MAX_TILT_RAD_S)
    angle += STEP_S * speed
    if abs(angle) > _MAX_TILT_RAD:
        return clamp(angle, -_MAX_TILT_RAD, _MAX_TILT_RAD), 0.0
    return angle, speed
