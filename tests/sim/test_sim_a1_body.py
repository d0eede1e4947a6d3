"""The simulated A1's legs and body: geometry against the description, servos, ground and hands."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rote.model.a1 import A1_JOINTS, A1_STAND_RAD, FOOT_M
from rote.motion.track import Array
from rote.sim.quadruped.body import LIMP, STEP_S, Drive, QuadrupedBody
from rote.sim.quadruped.legs import (
    A1_BUILD,
    GO1_BUILD,
    GRAVITY_M_S2,
    JOINTS,
    LEGS,
    LegDimensions,
    LegFoot,
    joints_for,
    place_foot,
    quaternion,
    rotation_rows,
)

BUILDS = pytest.mark.parametrize("build", [A1_BUILD, GO1_BUILD], ids=lambda build: build.name)
ANGLES = st.lists(st.floats(0.0, 1.0), min_size=JOINTS, max_size=JOINTS)


def spread(build: LegDimensions, shares: list[float]) -> list[float]:
    """Angles within the limits, by shares of the way from the lower to the upper."""
    spans = zip(build.lower_rad, build.upper_rad, shares, strict=True)
    return [low + share * (high - low) for low, high, share in spans]


def foot_at(build: LegDimensions, leg: int, hip: float, thigh: float, calf: float) -> LegFoot:
    """A leg's foot at these joint angles."""
    return place_foot(build.link_m, build.mount_of(leg), hip, thigh, calf)


def about(axis: tuple[float, float, float], angle: float) -> Array:
    """A rotation about x or y."""
    c, s = math.cos(angle), math.sin(angle)
    if axis[0]:
        return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def described_foot(leg: int, angles: list[float]) -> Array:
    """Where a foot is by the manufacturer's description, joint by joint."""
    place, frame = np.zeros(3), np.eye(3)
    for joint, angle in zip(A1_JOINTS[3 * leg : 3 * leg + 3], angles, strict=True):
        place = place + frame @ np.array(joint.origin_m)
        frame = frame @ about(joint.axis, angle)
    foot: Array = place + frame @ np.array(FOOT_M)
    return foot


@given(ANGLES)
def test_a_foot_is_where_the_description_of_the_robot_puts_it(shares: list[float]) -> None:
    angles = spread(A1_BUILD, shares)
    for leg in range(LEGS):
        its = angles[3 * leg : 3 * leg + 3]
        assert foot_at(A1_BUILD, leg, *its)[:3] == pytest.approx(described_foot(leg, its))


@BUILDS
@given(shares=ANGLES)
def test_a_foots_speed_and_torques_follow_from_where_it_is(
    build: LegDimensions, shares: list[float]
) -> None:
    angles, tiny = spread(build, shares)[:3], 1e-6
    foot = foot_at(build, 0, *angles)
    for joint in range(3):
        moved = list(angles)
        moved[joint] += tiny
        slope = [
            (b - a) / tiny for a, b in zip(foot[:3], foot_at(build, 0, *moved)[:3], strict=True)
        ]
        unit = [float(joint == i) for i in range(3)]
        assert foot.compute_speed(*unit) == pytest.approx(slope, abs=1e-5)
        for axis in range(3):
            force = [float(axis == i) for i in range(3)]
            assert foot.compute_torques(*force)[joint] == pytest.approx(slope[axis], abs=1e-5)


@BUILDS
@given(
    # The limit of the knee leaves a reach of 0.358 m, which a corner at -0.32 m would exceed.
    place=st.tuples(st.floats(-0.12, 0.12), st.floats(-0.08, 0.08), st.floats(-0.30, -0.18)),
    leg=st.integers(0, 3),
)
def test_the_joints_for_a_place_put_the_foot_there(
    build: LegDimensions, place: tuple[float, float, float], leg: int
) -> None:
    x, y = build.point_below_thigh(leg)
    wanted = (x + place[0], y + place[1], place[2])
    assert foot_at(build, leg, *joints_for(build, leg, *wanted))[:3] == pytest.approx(wanted)


def test_a_place_out_of_reach_leads_to_joints_within_their_limits() -> None:
    for place in ((3.0, 0.0, 0.0), (0.0, 0.0, 5.0), (0.18, -0.13, 0.0), (0.0, -9.0, -9.0)):
        for joint, angle in enumerate(joints_for(A1_BUILD, 0, *place)):
            assert A1_BUILD.lower_rad[joint] <= angle <= A1_BUILD.upper_rad[joint]


@given(st.floats(-1.2, 1.2), st.floats(-1.2, 1.2), st.floats(-3.1, 3.1))
def test_the_quaternion_is_the_same_turn_as_the_matrix(
    roll: float, pitch: float, yaw: float
) -> None:
    w, x, y, z = quaternion(roll, pitch, yaw)
    assert w * w + x * x + y * y + z * z == pytest.approx(1.0)
    down = (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y))
    ahead_y = 2 * (x * y + w * z)
    rows = rotation_rows(roll, pitch, yaw)
    assert rows[2] == pytest.approx(down)
    assert rows[1][0] == pytest.approx(ahead_y)


# ---- the body -----------------------------------------------------------------------------------


def servo(angles: tuple[float, ...], kp: float = 60.0, kd: float = 2.0) -> Drive:
    zeros = (0.0,) * JOINTS
    return Drive(angles, zeros, (kp,) * JOINTS, (kd,) * JOINTS, zeros)


def settle(body: QuadrupedBody, drive: Drive, seconds: float, now_s: float = 0.0) -> None:
    for step in range(round(seconds / STEP_S)):
        body.step(now_s + step * STEP_S, drive)


@BUILDS
def test_a_robot_held_by_its_servos_stands_on_all_feet_with_its_weight(
    build: LegDimensions,
) -> None:
    body = QuadrupedBody(build, A1_STAND_RAD)
    settle(body, servo(A1_STAND_RAD), 2.0)
    assert sum(body.foot_force_n) == pytest.approx(build.mass_kg * GRAVITY_M_S2, rel=0.02)
    assert min(body.foot_force_n) > 0.2 * build.mass_kg * GRAVITY_M_S2
    assert abs(body.roll_rad) < 0.02
    assert abs(body.pitch_rad) < 0.02
    assert np.abs(np.array(body.q_rad) - A1_STAND_RAD).max() < 0.12
    # The calves carry it, and bend a little under it.
    assert body.q_rad[2] < A1_STAND_RAD[2]
    assert body.torque_nm[2] > 1.0


def test_limp_legs_let_the_trunk_sink_to_its_belly_slowly() -> None:
    body = QuadrupedBody(A1_BUILD, A1_STAND_RAD)
    settle(body, servo(A1_STAND_RAD), 1.0)
    fastest = 0.0
    for step in range(1500):
        body.step(step * STEP_S, LIMP)
        fastest = max(fastest, -body.rise_m_s)
    assert body.height_m < 0.1
    assert fastest < 1.0


def test_a_hung_robot_has_no_weight_on_its_feet_and_stays_where_it_is() -> None:
    body = QuadrupedBody(A1_BUILD, A1_STAND_RAD, hung=True)
    settle(body, servo(A1_STAND_RAD), 1.0)
    assert body.foot_force_n == [0.0] * LEGS
    assert (body.x_m, body.y_m, body.heading_rad) == (0.0, 0.0, 0.0)
    assert np.abs(np.array(body.q_rad) - A1_STAND_RAD).max() < 0.05


def test_feet_that_stand_and_push_back_take_the_trunk_forward() -> None:
    body = QuadrupedBody(A1_BUILD, A1_STAND_RAD)
    settle(body, servo(A1_STAND_RAD), 1.0)
    before = body.x_m
    back = [foot.x for foot in body.feet]
    leaning = tuple(angle + (0.0, 0.15, 0.0)[i % 3] for i, angle in enumerate(A1_STAND_RAD))
    settle(body, servo(leaning), 1.0)
    moved = sum(a - foot.x for a, foot in zip(back, body.feet, strict=True)) / LEGS
    assert moved > 0.02
    assert body.x_m - before == pytest.approx(moved, rel=0.1)
    assert abs(body.heading_rad) < 0.01


@given(
    st.floats(0, 1023),
    st.floats(0, 2047),
    st.floats(-1e9, 1e9),
    st.lists(st.floats(-127, 127), min_size=12, max_size=12),
)
@settings(max_examples=12)
def test_no_gain_and_no_torque_makes_the_body_burst(
    kp: float, kd: float, wanted: float, torques: list[float]
) -> None:
    body = QuadrupedBody(A1_BUILD, A1_STAND_RAD)
    drive = Drive((wanted,) * JOINTS, (0.0,) * JOINTS, (kp,) * JOINTS, (kd,) * JOINTS, torques)
    settle(body, drive, 0.2)
    for joint in range(JOINTS):
        assert A1_BUILD.lower_rad[joint] <= body.q_rad[joint] <= A1_BUILD.upper_rad[joint]
        assert abs(body.dq_rad_s[joint]) <= A1_BUILD.speed_rad_s[joint]
        assert abs(body.torque_nm[joint]) <= A1_BUILD.effort_nm[joint]
    assert 0.0 <= body.height_m <= 1.0
    assert abs(body.roll_rad) <= 1.2
    assert abs(body.pitch_rad) <= 1.2


def test_a_stiff_servo_damps_out_what_a_soft_one_lets_swing() -> None:
    body = QuadrupedBody(A1_BUILD, A1_STAND_RAD, hung=True)
    raised = (0.2, 0.3, -1.6) * LEGS
    settle(body, servo(raised, kp=1023.0, kd=2047.0), 0.5)
    slow = np.abs(np.array(body.q_rad) - raised).max()
    settle(body, servo(raised, kp=100.0, kd=4.0), 1.0)
    assert np.abs(np.array(body.q_rad) - raised).max() < 0.05 < slow


class Pull:
    """A hand on one joint."""

    def __init__(self, joint: int, angle: float, seconds: float) -> None:
        self.joint, self.angle, self.seconds = joint, angle, seconds

    def grip(self, time_s: float) -> Array | None:
        if time_s > self.seconds:
            return None
        wanted = np.full(JOINTS, np.nan)
        wanted[self.joint] = self.angle
        return wanted


def test_a_hand_moves_a_soft_leg_lets_go_and_leaves_the_others_alone() -> None:
    body = QuadrupedBody(A1_BUILD, A1_STAND_RAD, hung=True)
    body.attach(Pull(1, -0.2, 1.5))
    settle(body, LIMP, 1.4)
    assert body.q_rad[1] == pytest.approx(-0.2, abs=0.06)
    assert abs(body.q_rad[4] - body.q_rad[7]) < 1e-6
    assert body.held_by_hand
    settle(body, LIMP, 0.2, now_s=1.4)
    assert not body.held_by_hand


def test_a_hand_does_not_overpower_a_robot_that_holds_itself() -> None:
    body = QuadrupedBody(A1_BUILD, A1_STAND_RAD, hung=True)
    body.attach(Pull(1, -0.5, 2.0))
    settle(body, servo(A1_STAND_RAD), 1.0)
    assert body.q_rad[1] == pytest.approx(A1_STAND_RAD[1], abs=0.05)
    assert body.held_by_hand
