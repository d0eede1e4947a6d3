"""The simulated body: 29 joints with servos, weight in the arms, and hands that can pull on them.

Each joint is a rotating mass with a servo: torque = stiffness * error + damping * speed error, cut
at the motor's limit, its setpoint bounded in speed. Arms carry their real weight, of which the
controller cancels a part; what remains is the sag one sees. Legs and waist carry none: the balance
controller that would hold them is not simulated.
"""

from typing import Protocol

import numpy as np

from rote.model import G1_JOINTS, G1_REST_RAD, HAND_COM_M, HAND_MASS_KG, LEFT_ARM, RIGHT_ARM
from rote.motion.track import Array

STEP_S = 0.002
GRAVITY_EVERY = 10
"""Steps between two computations of the arms' weight: 50 Hz."""
HAND_EVERY = 5
"""Steps between two questions to a hand where it wants the joints: 100 Hz."""
GRAVITY_M_S2 = 9.81

_ARMS = np.array([*LEFT_ARM, *RIGHT_ARM])


def _per_joint(legs: float, waist: float, arm: float, wrist: float) -> Array:
    values = np.full(len(G1_JOINTS), arm)
    values[:12] = legs
    values[12:15] = waist
    values[[19, 20, 21, 26, 27, 28]] = wrist
    return values


LOWER_RAD = np.array([joint.lower_rad for joint in G1_JOINTS])
UPPER_RAD = np.array([joint.upper_rad for joint in G1_JOINTS])
EFFORT_NM = np.array([joint.effort_nm for joint in G1_JOINTS])
MOST_RAD_S = np.minimum([joint.velocity_rad_s for joint in G1_JOINTS], 12.0)
"""The setpoint never moves faster than this, whatever is asked."""

_STIFFNESS = _per_joint(300.0, 200.0, 80.0, 40.0)
_DAMPING = _per_joint(8.0, 6.0, 3.0, 1.0)
_INERTIA = _per_joint(0.5, 0.4, 0.08, 0.01)
_SOFT_DAMPING = _per_joint(8.0, 6.0, 1.5, 0.23)
_FRICTION = _per_joint(0.5, 0.5, 0.1, 0.02)
_HAND_STIFFNESS = _per_joint(0.0, 60.0, 120.0, 25.0)
_HAND_DAMPING = _per_joint(0.0, 4.0, 3.0, 0.4)
_HAND_MOST_NM = _per_joint(0.0, 20.0, 20.0, 5.0)

HOLDING_CANCELS = 0.7
SOFT_CANCELS = 0.85
"""How much of the arms' weight the controller carries, holding and soft."""

REST_RAD: Array = np.array(G1_REST_RAD)


# Pitch and roll of each shoulder, and the sign of a roll away from the body.
_HANGING = ((LEFT_ARM[0], LEFT_ARM[1], 1.0), (RIGHT_ARM[0], RIGHT_ARM[1], -1.0))
_HANGS_RAD, _HIP_RAD, _HIP_NM_RAD = 0.6, 0.2, 60.0
_MOST_A_STEP = (-MOST_RAD_S * STEP_S, MOST_RAD_S * STEP_S)
_EFFORT = (-EFFORT_NM, EFFORT_NM)
# A gearbox turns no faster than its motor, however hard somebody pulls.
_MOTOR_RAD_S = np.array([joint.velocity_rad_s for joint in G1_JOINTS])
_FASTEST = (-_MOTOR_RAD_S, _MOTOR_RAD_S)
_HAND_MOST = (-_HAND_MOST_NM, _HAND_MOST_NM)


def _within(values: Array, bounds: tuple[Array, Array]) -> Array:
    """np.clip, without its overhead of several microseconds a call."""
    return np.minimum(np.maximum(values, bounds[0]), bounds[1])


class Hand(Protocol):
    """Somebody who pulls on the joints."""

    def grip(self, time_s: float) -> Array | None:
        """Return where the hand wants the 29 joints, NaN for those it does not hold.

        `time_s` counts from when the hand took hold; None lets go for good.
        """


class Body:
    """Positions, speeds and torques of all joints, advanced step by step."""

    def __init__(self) -> None:
        self.positions_rad = REST_RAD.copy()
        self.speeds_rad_s = np.zeros(len(G1_JOINTS))
        self.torques_nm = np.zeros(len(G1_JOINTS))
        self._setpoint = REST_RAD.copy()
        self._weight = np.zeros(len(G1_JOINTS))
        self._soft = np.zeros(len(G1_JOINTS), dtype=bool)
        self._cancels, self._damped = SOFT_CANCELS, True
        self._hand: Hand | None = None
        self._hand_since_s = 0.0
        self._grip: tuple[Array, Array, Array] | None = None
        self._steps = 0

    def soften(
        self, joints: tuple[int, ...], *, cancels: float = SOFT_CANCELS, damped: bool = True
    ) -> None:
        """Make these joints soft and all others hold where they are, without a jump.

        `cancels` is the part of the arms' weight the controller carries meanwhile; without it and
        not `damped`, the motors give no torque at all.
        """
        soft = np.zeros(len(G1_JOINTS), dtype=bool)
        soft[np.asarray(joints, dtype=int)] = True
        newly_held = self._soft & ~soft
        self._setpoint[newly_held] = self.positions_rad[newly_held]
        self._soft, self._cancels, self._damped = soft, cancels, damped
        self._grip = None

    @property
    def soft(self) -> tuple[int, ...]:
        """The joints that are soft."""
        return tuple(int(index) for index in np.flatnonzero(self._soft))

    @property
    def setpoint_rad(self) -> Array:
        """Where the servos want to be."""
        return self._setpoint.copy()

    def attach(self, hand: Hand | None, now_s: float) -> None:
        """Let a hand take hold of the body; None takes it away."""
        self._hand, self._hand_since_s, self._grip = hand, now_s, None

    @property
    def held_by_hand(self) -> bool:
        """Whether a hand is pulling."""
        return self._hand is not None

    def step(self, now_s: float, target_rad: Array, target_speed_rad_s: Array) -> None:
        """Advance by `STEP_S` towards a target; soft joints ignore it."""
        if self._steps % GRAVITY_EVERY == 0:
            self._weight[_ARMS] = arm_weight_nm(self.positions_rad[_ARMS])
        self._steps += 1
        self._setpoint += _within(target_rad - self._setpoint, _MOST_A_STEP)
        servo = (
            _STIFFNESS * (self._setpoint - self.positions_rad)
            + _DAMPING * (target_speed_rad_s - self.speeds_rad_s)
            - HOLDING_CANCELS * self._weight
        )
        soft = -self._cancels * self._weight
        if self._damped:
            soft = soft - _SOFT_DAMPING * self.speeds_rad_s
        torque = _within(np.where(self._soft, soft, servo), _EFFORT)
        self.torques_nm = torque
        total = torque + self._weight - _FRICTION * self.speeds_rad_s
        if self._hand is not None:
            total = total + self._pull(now_s)
        self._lean(total)
        self.speeds_rad_s = _within(self.speeds_rad_s + total / _INERTIA * STEP_S, _FASTEST)
        self.positions_rad += self.speeds_rad_s * STEP_S
        # A joint at its mechanical stop stays there.
        stopped = (self.positions_rad < LOWER_RAD) | (self.positions_rad > UPPER_RAD)
        if stopped.any():
            np.clip(self.positions_rad, LOWER_RAD, UPPER_RAD, out=self.positions_rad)
            self.speeds_rad_s[stopped] = 0.0

    def _lean(self, total_nm: Array) -> None:
        """Let a soft arm that hangs down lean against the hip, instead of falling through it."""
        for pitch, roll, outwards in _HANGING:
            if self._soft[roll] and abs(self.positions_rad[pitch]) < _HANGS_RAD:
                inside = _HIP_RAD - outwards * self.positions_rad[roll]
                if inside > 0.0:
                    total_nm[roll] += outwards * _HIP_NM_RAD * inside

    def _pull(self, now_s: float) -> Array:
        if self._steps % HAND_EVERY == 0 or self._grip is None:
            self._take_grip(now_s)
        if self._grip is None:
            return np.zeros_like(self.positions_rad)
        wanted, stiffness, damping = self._grip
        pull = stiffness * (wanted - self.positions_rad) - damping * self.speeds_rad_s
        return _within(pull, _HAND_MOST)

    def _take_grip(self, now_s: float) -> None:
        """Ask the hand where it wants the joints; those it does not hold are not pulled."""
        assert self._hand is not None
        wanted = self._hand.grip(now_s - self._hand_since_s)
        if wanted is None:
            self._hand = self._grip = None
            return
        # A person moves what is soft; a holding robot is not overpowered.
        held = ~np.isnan(wanted) & self._soft
        self._grip = (
            np.where(held, wanted, 0.0),
            np.where(held, _HAND_STIFFNESS, 0.0),
            np.where(held, _HAND_DAMPING, 0.0),
        )


# ---- the arms' weight ---------------------------------------------------------------------------


def _rotation(rpy: tuple[float, float, float]) -> Array:
    roll, pitch, yaw = rpy
    cr, sr, cp, sp = np.cos(roll), np.sin(roll), np.cos(pitch), np.sin(pitch)
    cy, sy = np.cos(yaw), np.sin(yaw)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def _both(attribute: str) -> Array:
    """Return an attribute of the arms' joints, (7, 2, ...): joint by joint, left and right."""
    return np.array(
        [
            [getattr(G1_JOINTS[a], attribute), getattr(G1_JOINTS[b], attribute)]
            for a, b in zip(LEFT_ARM, RIGHT_ARM, strict=True)
        ]
    )


_ORIGINS = _both("origin_m")
_FRAMES = np.array(
    [
        [_rotation(G1_JOINTS[a].origin_rpy_rad), _rotation(G1_JOINTS[b].origin_rpy_rad)]
        for a, b in zip(LEFT_ARM, RIGHT_ARM, strict=True)
    ]
)
_AXES = np.array([G1_JOINTS[index].axis for index in LEFT_ARM]).argmax(axis=1)
_MASSES = _both("mass_kg")
_COMS = _both("com_m")
# The rubber hand is fixed to the last link; both are one weight.
_COMS[6] = (_COMS[6] * _MASSES[6][:, None] + HAND_MASS_KG * np.array(HAND_COM_M)) / (
    _MASSES[6][:, None] + HAND_MASS_KG
)
_MASSES[6] += HAND_MASS_KG
# For a rotation about axis k: the rows and columns the angle acts on.
_TURNED = {0: (1, 2), 1: (2, 0), 2: (0, 1)}


def arm_weight_nm(arms_rad: Array) -> Array:
    """Return the torque that gravity puts on the 14 arm joints of an upright robot.

    `arms_rad` is (14,): the left arm's joints, then the right arm's.
    """
    angles = arms_rad.reshape(2, 7)
    cosines, sines = np.cos(angles), np.sin(angles)
    frame = np.broadcast_to(np.eye(3), (2, 3, 3))
    place = np.zeros((2, 3))
    places, axes, centres = np.empty((7, 2, 3)), np.empty((7, 2, 3)), np.empty((7, 2, 3))
    for joint in range(7):
        place = place + (frame @ _ORIGINS[joint][:, :, None])[:, :, 0]
        frame = frame @ _FRAMES[joint]
        axis = int(_AXES[joint])
        i, k = _TURNED[axis]
        cosine, sine = cosines[:, joint, None], sines[:, joint, None]
        turned = frame.copy()
        turned[:, :, i] = cosine * frame[:, :, i] + sine * frame[:, :, k]
        turned[:, :, k] = cosine * frame[:, :, k] - sine * frame[:, :, i]
        frame = turned
        places[joint], axes[joint] = place, frame[:, :, axis]
        centres[joint] = place + (frame @ _COMS[joint][:, :, None])[:, :, 0]
    # What hangs below each joint: total mass, and mass times centre.
    mass = np.cumsum(_MASSES[::-1], axis=0)[::-1]
    moment = np.cumsum((centres * _MASSES[:, :, None])[::-1], axis=0)[::-1]
    arm = moment - mass[:, :, None] * places
    # axis . (arm x (0, 0, -g))
    torque = -GRAVITY_M_S2 * (axes[:, :, 0] * arm[:, :, 1] - axes[:, :, 1] * arm[:, :, 0])
    return np.ascontiguousarray(torque.T).reshape(14)
