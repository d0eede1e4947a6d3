"""The legs of a simulated A1 or Go1: dimensions, forward and inverse kinematics of the feet.

Values by leg are in the order of the wire (FR, FL, RR, RL), values by joint too: hip, thigh, calf.
Feet are in the trunk's frame: x forward, y left, z up. Plain numbers are used throughout: for four
legs they are several times faster than arrays.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import acos, atan2, cos, hypot, pi, sin, sqrt, tau
from typing import NamedTuple, TypeAlias

from rote.model.a1 import (
    A1_JOINTS,
    CALF_MASS_KG,
    FOOT_MASS_KG,
    HIP_LENGTH_M,
    HIP_X_M,
    HIP_Y_M,
    MASS_KG,
    SDK_LIMITS_RAD,
    THIGH_LENGTH_M,
    THIGH_MASS_KG,
)

LEGS, JOINTS = 4, 12
GRAVITY_M_S2 = 9.81
Three: TypeAlias = tuple[float, float, float]
Row: TypeAlias = Sequence[float]
"""A number for each joint."""

_FRONT, _LEFT = (1.0, 1.0, -1.0, -1.0), (-1.0, 1.0, -1.0, 1.0)
"""For each leg: 1 if it is a front leg, and 1 if it is a left leg, otherwise -1."""
_THIGH_COM_M, _CALF_COM_M = 0.027326, 0.107388
"""Distance of the centre of mass from the upper joint."""
_SHANK_KG = CALF_MASS_KG + FOOT_MASS_KG
"""A calf and its foot are one mass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LegDimensions:
    """The dimensions of one kind of robot."""

    name: str
    hip_x_m: float
    hip_y_m: float
    hip_length_m: float
    link_m: float
    """The length of thigh and calf, each."""
    mass_kg: float
    lower_rad: tuple[float, ...]
    upper_rad: tuple[float, ...]
    effort_nm: tuple[float, ...]
    speed_rad_s: tuple[float, ...]

    def mount_of(self, leg: int) -> tuple[float, float, float]:
        """Return how a leg is mounted on the trunk, in m.

        The first two numbers are the position of its hip joint, forward and left; the third is the
        offset of its thigh from there, to the left.
        """
        side = _LEFT[leg]
        return _FRONT[leg] * self.hip_x_m, side * self.hip_y_m, side * self.hip_length_m

    def point_below_thigh(self, leg: int) -> tuple[float, float]:
        """Return the point on the ground below a thigh of a level robot, forward and left, in m."""
        x, y, thigh_offset = self.mount_of(leg)
        return x, y + thigh_offset


A1_BUILD = LegDimensions(
    name="a1",
    hip_x_m=HIP_X_M,
    hip_y_m=HIP_Y_M,
    hip_length_m=HIP_LENGTH_M,
    link_m=THIGH_LENGTH_M,
    mass_kg=MASS_KG,
    lower_rad=tuple(joint.lower_rad for joint in A1_JOINTS),
    upper_rad=tuple(joint.upper_rad for joint in A1_JOINTS),
    effort_nm=tuple(joint.effort_nm for joint in A1_JOINTS),
    speed_rad_s=tuple(joint.velocity_rad_s for joint in A1_JOINTS),
)
GO1_BUILD = LegDimensions(
    name="go1",
    # Unitree's published description of the Go1 (go1_description, BSD-3-Clause).
    hip_x_m=0.1881,
    hip_y_m=0.04675,
    hip_length_m=0.08,
    link_m=0.213,
    mass_kg=12.74,
    lower_rad=tuple(lower for lower, _ in SDK_LIMITS_RAD["go1"]) * LEGS,
    upper_rad=tuple(upper for _, upper in SDK_LIMITS_RAD["go1"]) * LEGS,
    effort_nm=(23.7, 23.7, 35.55) * LEGS,
    speed_rad_s=(30.1, 30.1, 20.06) * LEGS,
)


class LegFoot(NamedTuple):
    """A foot's position, and how it moves with the joints of its leg."""

    x: float
    y: float
    z: float
    """The position in the trunk's frame, in m."""
    reach: Three
    """Offset of the foot from the hip joint: forward, left and up in the trunk's frame."""
    down: float
    """Vertical offset of the foot from the thigh joint in the leg's plane; negative is below."""
    calf_x: float
    calf_z: float
    """Offset of the foot from the knee in that plane."""
    sine: float
    cosine: float
    """Sine and cosine of the hip's angle."""
    gravity_torque_nm: Three
    """The torques of the leg's own weight on its joints, on a level robot."""

    def compute_speed(self, hip: float, thigh: float, calf: float) -> Three:
        """Return the foot's speed in m/s, in the trunk's frame, for joint speeds in rad/s."""
        forward, left, up = self.reach
        swing = forward * thigh + self.calf_x * calf
        return (
            self.down * thigh + self.calf_z * calf,
            self.sine * swing - up * hip,
            left * hip - self.cosine * swing,
        )

    def compute_torques(self, x: float, y: float, z: float) -> Three:
        """Return the torques, in N.m, that a force on the foot, in N, puts on the leg's joints."""
        forward, left, up = self.reach
        lifts = self.sine * y - self.cosine * z
        return (
            left * z - up * y,
            self.down * x + forward * lifts,
            self.calf_z * x + self.calf_x * lifts,
        )


def place_foot(link: float, mount: Three, hip: float, thigh: float, calf: float) -> LegFoot:
    """Return a leg's foot at these joint angles.

    `link` is the length of thigh and calf in m; `mount` comes from `LegDimensions.mount_of`.
    Gravity torques treat thigh and shank as point masses.
    """
    hip_x, hip_y, thigh_offset = mount
    sine, cosine = sin(hip), cos(hip)
    thigh_x, bend = -link * sin(thigh), thigh + calf
    calf_x, calf_z = -link * sin(bend), -link * cos(bend)
    forward, down = thigh_x + calf_x, calf_z - link * cos(thigh)
    left, up = thigh_offset * cosine - down * sine, thigh_offset * sine + down * cosine
    shank_arm = (CALF_MASS_KG * _CALF_COM_M + FOOT_MASS_KG * link) / link
    calf_nm = GRAVITY_M_S2 * cosine * shank_arm * calf_x
    thigh_nm = GRAVITY_M_S2 * cosine * (_SHANK_KG + THIGH_MASS_KG * _THIGH_COM_M / link) * thigh_x
    hip_nm = -GRAVITY_M_S2 * (_SHANK_KG + THIGH_MASS_KG) * left
    # `_make` takes half the time of a call by name.
    return LegFoot._make(
        (
            hip_x + forward,
            hip_y + left,
            up,
            (forward, left, up),
            down,
            calf_x,
            calf_z,
            sine,
            cosine,
            (hip_nm, thigh_nm + calf_nm, calf_nm),
        )
    )


def joints_for(build: LegDimensions, leg: int, x: float, y: float, z: float) -> Three:
    """Return the joint angles that put a foot at a point, or as near as the leg reaches."""
    link = build.link_m
    hip_x, hip_y, thigh_offset = build.mount_of(leg)
    x, y = x - hip_x, y - hip_y
    # The hip turns the plane of the leg; in that plane the foot is `down` below the thigh joint.
    down = -sqrt(max(y * y + z * z - thigh_offset * thigh_offset, 1e-4))
    hip = atan2(z, y) - atan2(down, thigh_offset)
    # Thigh and calf form an isosceles triangle with the line to the foot; it never gets straight.
    calf = -2.0 * acos(min(hypot(x, down), 1.999 * link) / (2.0 * link))
    thigh = atan2(-x, -down) - calf / 2.0
    hip = (hip + pi) % tau - pi
    return (
        clamp_joint(build, 3 * leg, hip),
        clamp_joint(build, 3 * leg + 1, thigh),
        clamp_joint(build, 3 * leg + 2, calf),
    )


def clamp_joint(build: LegDimensions, joint: int, angle: float) -> float:
    """Limit an angle to the joint's range."""
    return clamp(angle, build.lower_rad[joint], build.upper_rad[joint])


def clamp(value: float, low: float, high: float) -> float:
    """Limit a number to the bounds."""
    return low if value < low else min(value, high)


def rotation_rows(roll: float, pitch: float, yaw: float = 0.0) -> tuple[Three, Three, Three]:
    """Return the rows of the rotation matrix from the trunk's frame to the world's."""
    cr, sr, cp, sp = cos(roll), sin(roll), cos(pitch), sin(pitch)
    cy, sy = cos(yaw), sin(yaw)
    return (
        (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        (-sp, cp * sr, cp * cr),
    )


def quaternion(roll: float, pitch: float, yaw: float) -> tuple[float, float, float, float]:
    """Return the rotation by roll, pitch and yaw as a quaternion w, x, y, z."""
    cr, sr = cos(roll / 2), sin(roll / 2)
    cp, sp = cos(pitch / 2), sin(pitch / 2)
    cy, sy = cos(yaw / 2), sin(yaw / 2)
    return (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )


def wrap_angle(angle: float) -> float:
    """Return an angle in rad wrapped to the range from -pi to pi."""
    return math.remainder(angle, tau)
