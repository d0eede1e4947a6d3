"""The simulated body: 29 joints with servos, weight in the arms, and hands that can pull on them.

Each joint is a rotating mass with a servo: torque = stiffness * error + damping * speed error, cut
at the motor's limit, its setpoint bounded in speed. Arms carry their real weight, of which the
controller cancels a part; what remains is the sag one sees. Legs and waist carry none: the balance
controller that would hold them is not simulated.

A second takes 500 steps, so a step is written to be cheap: a numpy call on 29 numbers costs half a
microsecond whatever it does. What is alike is stacked and done in one; what stands still, sleeps.
"""

from math import cos, sin
from typing import NamedTuple, Protocol

import numpy as np

from rote.model.g1 import G1_JOINTS, G1_REST_RAD, HAND_COM_M, HAND_MASS_KG, LEFT_ARM, RIGHT_ARM
from rote.motion.track import Array

STEP_S = 0.002
GRAVITY_EVERY = 10
"""Steps between two computations of the arms' weight: 50 Hz."""
HAND_EVERY = 5
"""Steps between two questions to a hand where it wants the joints: 100 Hz."""
GRAVITY_M_S2 = 9.81
STILL_WEIGHINGS, STILL_RAD_S = 5, 1e-12
"""A body that is slower and has not moved by a bit for so many weighings needs no more steps."""

_ARMS = slice(LEFT_ARM[0], RIGHT_ARM[-1] + 1)


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
_MOST_A_STEP = MOST_RAD_S * STEP_S
_LEAST_A_STEP = -_MOST_A_STEP
# A gearbox turns no faster than its motor, however hard somebody pulls.
_FASTEST = np.array([joint.velocity_rad_s for joint in G1_JOINTS])
_FASTEST_BACK = -_FASTEST

_EFFORT_BACK_NM = -EFFORT_NM
# Stiffness and damping, stacked: of a servo, of a soft joint, and of a hand.
_GAINS = np.array([_STIFFNESS, _DAMPING])
_SOFT_GAINS = np.array([np.zeros(len(G1_JOINTS)), _SOFT_DAMPING])
_HAND_GAINS = np.array([_HAND_STIFFNESS, _HAND_DAMPING])
_HAND_MOST_BACK_NM = -_HAND_MOST_NM
_STEP = np.full(len(G1_JOINTS), STEP_S)


class Hand(Protocol):
    """Somebody who pulls on the joints."""

    def grip(self, time_s: float) -> Array | None:
        """Return where the hand wants the 29 joints, NaN for those it does not hold.

        `time_s` counts from when the hand took hold; None lets go for good.
        """


class Body:
    """Positions, speeds and torques of all joints, advanced step by step.

    Positions and speeds are changed in place: copy what is to outlast a step.
    """

    def __init__(self) -> None:
        count = len(G1_JOINTS)
        self._state = np.array([REST_RAD, np.zeros(count)])
        self.positions_rad: Array = self._state[0]
        self.speeds_rad_s: Array = self._state[1]
        self.torques_nm = np.zeros(count)
        # The servos' goals, stacked as the state is: where to be, and how fast.
        self._goals = np.array([REST_RAD, np.zeros(count)])
        self._setpoint: Array = self._goals[0]
        self._goal_speeds: Array = self._goals[1]
        self._weight, self._carried = np.zeros(count), np.zeros(count)
        self._soft = np.zeros(count, dtype=bool)
        self._hand: Hand | None = None
        self._hand_since_s = 0.0
        self._steps = self._still = 0
        self._places = self._asleep = b""
        self.soften(())

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
        self._soft = soft
        self._follows = np.where(soft, 0.0, 1.0)
        self._gains = np.where(soft, _SOFT_GAINS if damped else 0.0, _GAINS)
        self._cancels = np.where(soft, cancels, HOLDING_CANCELS)
        self._carried = self._cancels * self._weight
        self._leaning = tuple(arm for arm in _HANGING if soft[arm[1]])
        self._grip: tuple[Array, Array] | None = None
        self._wake()

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
        self._wake()

    @property
    def held_by_hand(self) -> bool:
        """Whether a hand is pulling."""
        return self._hand is not None

    def step(self, now_s: float, target_rad: Array, target_speed_rad_s: Array) -> None:
        """Advance by `STEP_S` towards a target; soft joints ignore it."""
        weighs = self._steps % GRAVITY_EVERY == 0
        self._steps += 1
        if self._asleep and self._asleep == self._everything(target_rad, target_speed_rad_s):
            return
        if weighs:
            self._weight[_ARMS] = arm_weight_nm(self.positions_rad[_ARMS])
            self._carried = self._cancels * self._weight
        self._drive(target_rad, target_speed_rad_s)
        total = self.torques_nm + self._weight
        total -= _FRICTION * self.speeds_rad_s
        if self._hand is not None:
            self._pull(now_s, total)
        if self._leaning:
            self._lean(total)
        self._move(total)
        if weighs:
            self._watch(target_rad, target_speed_rad_s)

    def _drive(self, target_rad: Array, target_speed_rad_s: Array) -> None:
        """Move the setpoint towards its target, and let the motors drive the joints there."""
        if target_rad.tobytes() != self._setpoint.tobytes():
            move = target_rad - self._setpoint
            np.maximum(move, _LEAST_A_STEP, out=move)
            np.minimum(move, _MOST_A_STEP, out=move)
            self._setpoint += move
        np.multiply(target_speed_rad_s, self._follows, self._goal_speeds)
        torques = self.torques_nm = self._spring(self._goals, self._gains)
        torques -= self._carried
        np.maximum(torques, _EFFORT_BACK_NM, out=torques)
        np.minimum(torques, EFFORT_NM, out=torques)

    def _spring(self, goals: Array, gains: Array) -> Array:
        """Return stiffness * error + damping * speed error."""
        parts = goals - self._state
        parts *= gains
        torques: Array = parts[0] + parts[1]
        return torques

    def _pull(self, now_s: float, total_nm: Array) -> None:
        """Let the hand pull too; it is asked now and then where to."""
        if self._steps % HAND_EVERY == 0 or self._grip is None:
            self._take_grip(now_s)
        if self._grip is not None:
            pull = self._spring(*self._grip)
            np.maximum(pull, _HAND_MOST_BACK_NM, out=pull)
            np.minimum(pull, _HAND_MOST_NM, out=pull)
            total_nm += pull

    def _take_grip(self, now_s: float) -> None:
        """Ask the hand where it wants the joints; those it does not hold are not pulled."""
        assert self._hand is not None
        wanted = self._hand.grip(now_s - self._hand_since_s)
        if wanted is None:
            self._hand = self._grip = None
            return
        # A person moves what is soft; a holding robot is not overpowered.
        held = ~np.isnan(wanted) & self._soft
        goals = np.zeros_like(self._goals)
        goals[0, held] = wanted[held]
        self._grip = (goals, _HAND_GAINS * held)

    def _lean(self, total_nm: Array) -> None:
        """Let a soft arm that hangs down lean against the hip, instead of falling through it."""
        for pitch, roll, outwards in self._leaning:
            if abs(self.positions_rad.item(pitch)) < _HANGS_RAD:
                inside = _HIP_RAD - outwards * self.positions_rad.item(roll)
                if inside > 0.0:
                    total_nm[roll] += outwards * _HIP_NM_RAD * inside

    def _move(self, total_nm: Array) -> None:
        """Let torques act for a step; a joint at its mechanical stop stays there."""
        speeds, positions = self.speeds_rad_s, self.positions_rad
        total_nm /= _INERTIA
        total_nm *= _STEP
        speeds += total_nm
        np.maximum(speeds, _FASTEST_BACK, out=speeds)
        np.minimum(speeds, _FASTEST, out=speeds)
        positions += speeds * _STEP
        possible = np.maximum(positions, LOWER_RAD)
        np.minimum(possible, UPPER_RAD, out=possible)
        if possible.tobytes() != positions.tobytes():
            speeds[possible != positions] = 0.0
            positions[:] = possible

    # ---- sleep ----------------------------------------------------------------------------------

    def _watch(self, target_rad: Array, target_speed_rad_s: Array) -> None:
        """Fall asleep where nothing has moved for long; whatever is changed wakes the body.

        What is left then are speeds too small to move a joint by its last bit.
        """
        places = self.positions_rad.tobytes() + self._goals.tobytes()
        self._still = self._still + 1 if places == self._places else 0
        self._places, self._asleep = places, b""
        still = self._still >= STILL_WEIGHINGS and self._hand is None
        if still and np.abs(self.speeds_rad_s).max() < STILL_RAD_S:
            self._asleep = self._everything(target_rad, target_speed_rad_s)

    def _wake(self) -> None:
        self._still, self._asleep = 0, b""

    def _everything(self, target_rad: Array, target_speed_rad_s: Array) -> bytes:
        """Return all that makes one step different from another, to the last bit."""
        arrays = (self._state, self._goals, target_rad, target_speed_rad_s)
        return b"".join([array.tobytes() for array in arrays])


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


class _Link(NamedTuple):
    """What of an arm's link matters for its weight, in its own coordinates."""

    frame: tuple[float, ...] | None
    """How it is mounted on the one above, row by row; None where both point the same way."""
    turned: tuple[int, int]
    """The two coordinates that its joint turns into each other."""
    hangs: tuple[float, float, float]
    """Mass times place: of its own centre, and of all below at the next joint."""


# For a rotation about each axis, the coordinates it acts on.
_TURNED = ((1, 2), (2, 0), (0, 1))


def _links(arm: tuple[int, ...]) -> tuple[_Link, ...]:
    """Return an arm's links from the shoulder down."""
    links: list[_Link] = []
    # The rubber hand is fixed to the last link, as one more at the same place.
    below_kg, below = HAND_MASS_KG, HAND_MASS_KG * np.array(HAND_COM_M)
    for joint in (G1_JOINTS[index] for index in reversed(arm)):
        x, y, z = (joint.mass_kg * np.array(joint.com_m) + below).tolist()
        frame = _rotation(joint.origin_rpy_rad)
        straight = not any(joint.origin_rpy_rad)
        turned = _TURNED[int(np.argmax(joint.axis))]
        links.append(_Link(None if straight else tuple(frame.ravel().tolist()), turned, (x, y, z)))
        below_kg += joint.mass_kg
        below = below_kg * np.array(joint.origin_m)
    return tuple(reversed(links))


_BOTH_ARMS = (_links(LEFT_ARM), _links(RIGHT_ARM))


def arm_weight_nm(arms_rad: Array) -> Array:
    """Return the torque that gravity puts on the 14 arm joints of an upright robot.

    `arms_rad` is (14,): the left arm's joints, then the right arm's.
    """
    angles = arms_rad.tolist()
    left, right = _BOTH_ARMS
    return np.array(_one_arm_nm(left, angles[:7]) + _one_arm_nm(right, angles[7:]))


def _one_arm_nm(links: tuple[_Link, ...], angles_rad: list[float]) -> list[float]:
    """Return the torques from the shoulder down.

    Which way is down is handed from link to link to the wrist, and what hangs there back up.
    """
    down = [0.0, 0.0, -GRAVITY_M_S2]
    seen: list[tuple[float, float, float, float]] = []
    for (frame, (i, k), _), angle in zip(links, angles_rad, strict=True):
        if frame is not None:
            a, b, c, d, e, f, g, h, j = frame
            x, y, z = down
            down = [a * x + d * y + g * z, b * x + e * y + h * z, c * x + f * y + j * z]
        cosine, sine = cos(angle), sin(angle)
        u, v = down[i], down[k]
        down[i], down[k] = cosine * u + sine * v, cosine * v - sine * u
        seen.append((cosine, sine, down[i], down[k]))
    torques: list[float] = []
    x = y = z = 0.0
    for (frame, (i, k), own), (cosine, sine, down_i, down_k) in zip(
        reversed(links), reversed(seen), strict=True
    ):
        hanging = [own[0] + x, own[1] + y, own[2] + z]
        u, v = hanging[i], hanging[k]
        torques.append(u * down_k - v * down_i)
        hanging[i], hanging[k] = cosine * u - sine * v, cosine * v + sine * u
        x, y, z = hanging
        if frame is not None:
            a, b, c, d, e, f, g, h, j = frame
            x, y, z = a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + j * z
    torques.reverse()
    return torques
