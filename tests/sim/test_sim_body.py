"""The simulated body: true weights, soft and holding joints, and nothing that jumps or bursts."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from g1_29 import EFFORT_NM, LOWER_RAD, MAX_RAD_S, REST_RAD, UPPER_RAD, arm_weight_nm
from rote.model.g1 import G1_29, G1_JOINTS, HAND_COM_M, HAND_MASS_KG, LEFT_ARM, RIGHT_ARM
from rote.motion.track import Array
from rote.sim.arms import GRAVITY_M_S2
from rote.sim.body import HAND_EVERY, HOLDING_WEIGHT_SHARE, SOFT_WEIGHT_SHARE, STEP_S, SimBody

ARMS = (*LEFT_ARM, *RIGHT_ARM)
STILL = np.zeros(29)
FORWARD = REST_RAD.copy()
FORWARD[[15, 22]], FORWARD[[18, 25]] = -1.57, 1.57
"""Both arms stretched out to the front, where they are heaviest."""


class Puller:
    """A hand that wants certain joints in certain places, for good or for a time."""

    def __init__(self, wants: dict[int, float], seconds: float = np.inf) -> None:
        self.wants = wants
        self.seconds = seconds
        self.asked_s: list[float] = []

    def grip(self, time_s: float) -> Array | None:
        self.asked_s.append(time_s)
        if time_s > self.seconds:
            return None
        grip = np.full(29, np.nan)
        for joint, angle in self.wants.items():
            grip[joint] = angle
        return grip


class Clock:
    """Steps a body and watches it: it never moves by a jump."""

    def __init__(self, body: SimBody) -> None:
        self.body = body
        self.steps = 0
        self.largest_move_rad = 0.0

    @property
    def now_s(self) -> float:
        return self.steps * STEP_S

    def run(self, seconds: float, target: Array | Callable[[float], Array] = REST_RAD) -> None:
        for _ in range(round(seconds / STEP_S)):
            before = self.body.joints_rad.copy()
            self.steps += 1
            wanted = target(self.now_s) if callable(target) else target
            self.body.step(self.now_s, wanted, STILL)
            moved = float(np.abs(self.body.joints_rad - before).max())
            self.largest_move_rad = max(self.largest_move_rad, moved)


@pytest.fixture
def body() -> SimBody:
    return SimBody(G1_29)


@pytest.fixture
def clock(body: SimBody) -> Clock:
    return Clock(body)


# ---- weight -------------------------------------------------------------------------------------


def turn(axis: tuple[float, float, float], angle: float) -> Array:
    """Return the rotation about an axis, by Rodrigues' formula."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turned: Array = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross)
    return turned


def potential_energy(joints_rad: Array) -> float:
    """Return the energy of all masses in the field of gravity, by forward kinematics.

    Written from the model's table alone, link by link from the pelvis, as a check on the body's
    own arithmetic, which goes another way.
    """
    frames = {"pelvis": (np.zeros(3), np.eye(3))}
    energy = 0.0
    for joint in G1_JOINTS:
        place, frame = frames[joint.parent]
        roll, pitch, yaw = joint.origin_rpy_rad
        place = place + frame @ np.array(joint.origin_m)
        frame = frame @ turn((0.0, 0.0, 1.0), yaw) @ turn((0.0, 1.0, 0.0), pitch)
        frame = frame @ turn((1.0, 0.0, 0.0), roll)
        frame = frame @ turn(joint.axis, float(joints_rad[joint.index]))
        is_torso = joint.name == "waist_pitch_joint"
        link = "torso_link" if is_torso else joint.name.replace("_joint", "_link")
        frames[link] = (place, frame)
        masses = [(joint.mass_kg, joint.com_m)]
        if "wrist_yaw" in joint.name:
            masses.append((HAND_MASS_KG, HAND_COM_M))
        for mass_kg, centre_m in masses:
            height_m = (place + frame @ np.array(centre_m))[2]
            energy += mass_kg * GRAVITY_M_S2 * float(height_m)
    return energy


def slopes_of_energy(joints_rad: Array, joints: tuple[int, ...], by_rad: float = 1e-5) -> Array:
    """Return the derivative of the potential energy by each of these joints."""
    slopes = []
    for joint in joints:
        more, less = joints_rad.copy(), joints_rad.copy()
        more[joint] += by_rad
        less[joint] -= by_rad
        slopes.append((potential_energy(more) - potential_energy(less)) / (2 * by_rad))
    return np.array(slopes)


FRACTIONS = st.lists(st.floats(0.0, 1.0), min_size=14, max_size=14)


def arms_at(fractions: list[float]) -> Array:
    """Return a pose with the arms anywhere within their limits."""
    pose = REST_RAD.copy()
    arms = list(ARMS)
    pose[arms] = LOWER_RAD[arms] + np.array(fractions) * (UPPER_RAD - LOWER_RAD)[arms]
    return pose


@given(FRACTIONS)
def test_the_arms_weight_is_the_slope_of_their_potential_energy(fractions: list[float]) -> None:
    pose = arms_at(fractions)
    np.testing.assert_allclose(
        arm_weight_nm(pose[list(ARMS)]), -slopes_of_energy(pose, ARMS), rtol=0, atol=1e-6
    )


@given(FRACTIONS)
def test_a_mirrored_pose_has_mirrored_weights(fractions: list[float]) -> None:
    left = arms_at(fractions)[list(LEFT_ARM)]
    # Seen in a mirror, pitch stays what it is; roll and yaw turn the other way.
    signs = np.array([1.0 if G1_JOINTS[j].axis == (0.0, 1.0, 0.0) else -1.0 for j in LEFT_ARM])
    weight = arm_weight_nm(np.concatenate([left, signs * left]))
    np.testing.assert_allclose(weight[7:], signs * weight[:7], rtol=0, atol=1e-6)


def test_a_stretched_arm_is_as_heavy_as_one_would_guess() -> None:
    # Some 3 kg, centred some 20 cm before the shoulder: 6 N.m. The motor's limit is 25.
    assert arm_weight_nm(FORWARD[list(ARMS)])[0] == pytest.approx(6.0, abs=1.0)


def test_one_arm_does_not_weigh_on_the_other() -> None:
    pose = REST_RAD[list(ARMS)]
    raised = pose.copy()
    raised[:7] = FORWARD[list(LEFT_ARM)]
    np.testing.assert_array_equal(arm_weight_nm(raised)[7:], arm_weight_nm(pose)[7:])


# ---- soft and holding ---------------------------------------------------------------------------


def test_a_held_arm_sags_a_little_under_its_weight(body: SimBody, clock: Clock) -> None:
    clock.run(5.0, FORWARD)
    sag = body.joints_rad - FORWARD
    weight = arm_weight_nm(body.joints_rad[list(ARMS)])
    heavy = [joint for joint, torque in zip(ARMS, weight, strict=True) if abs(torque) > 1.0]
    assert {15, 18, 22, 25} <= set(heavy)
    for joint in heavy:
        assert np.sign(sag[joint]) == np.sign(weight[ARMS.index(joint)])
        assert 0.002 < abs(sag[joint]) < 0.05
    # In balance the motor gives just what the weight takes.
    np.testing.assert_allclose(body.torques_nm[list(ARMS)], -weight, atol=0.02)


def test_soft_arms_sink_far_further_than_held_ones(body: SimBody, clock: Clock) -> None:
    clock.run(4.0, FORWARD)
    held = body.joints_rad.copy()
    body.soften(ARMS)
    clock.run(4.0, FORWARD)
    assert body.joints_rad[15] - held[15] > 0.5
    assert body.joints_rad[22] - held[22] > 0.5
    assert potential_energy(body.joints_rad) < potential_energy(held) - 1.0


def test_soft_arms_sink_slowly(body: SimBody, clock: Clock) -> None:
    clock.run(4.0, FORWARD)
    body.soften(ARMS)
    for _ in range(200):
        clock.run(0.01, FORWARD)
        assert np.abs(body.speeds_rad_s).max() < 1.5


def test_both_arms_sink_alike(body: SimBody, clock: Clock) -> None:
    clock.run(4.0, FORWARD)
    body.soften(ARMS)
    clock.run(2.0, FORWARD)
    np.testing.assert_allclose(body.joints_rad[15], body.joints_rad[22], atol=1e-3)
    np.testing.assert_allclose(body.joints_rad[16], -body.joints_rad[23], atol=1e-3)


def test_the_controller_carries_more_of_a_soft_arm_than_of_a_held_one() -> None:
    assert 0 < HOLDING_WEIGHT_SHARE < SOFT_WEIGHT_SHARE < 1


def test_legs_and_waist_do_not_sag(body: SimBody, clock: Clock) -> None:
    clock.run(3.0)
    np.testing.assert_allclose(body.joints_rad[:15], REST_RAD[:15], atol=1e-12)


def test_softening_and_hardening_never_make_a_jump(body: SimBody, clock: Clock) -> None:
    clock.run(2.0, FORWARD)
    clock.largest_move_rad = 0.0
    for _ in range(4):
        body.soften(ARMS)
        clock.run(0.5, FORWARD)
        sunk = body.joints_rad.copy()
        body.soften(())
        np.testing.assert_array_equal(body.setpoint_rad[list(ARMS)], sunk[list(ARMS)])
        clock.run(0.5, body.setpoint_rad)
        assert np.abs(body.joints_rad - sunk).max() < 0.05, "it holds where it was let go"
    # At 0.002 s a step, 0.004 rad is 2 rad/s: as fast as an arm sinks, and no faster.
    assert clock.largest_move_rad < 0.004


def test_softening_again_does_not_move_what_holds(body: SimBody, clock: Clock) -> None:
    clock.run(0.1, FORWARD)
    setpoint = body.setpoint_rad
    body.soften(LEFT_ARM)
    body.soften(LEFT_ARM)
    np.testing.assert_array_equal(body.setpoint_rad, setpoint)
    assert body.soft == LEFT_ARM
    body.soften(RIGHT_ARM)
    assert body.soft == RIGHT_ARM
    body.soften(())
    assert body.soft == ()


def test_soft_joints_ignore_the_target(body: SimBody, clock: Clock) -> None:
    body.soften((12,))
    clock.run(1.0, np.full(29, 0.3))
    assert body.joints_rad[12] == 0.0
    assert body.joints_rad[13] == pytest.approx(0.3, abs=1e-3)


def test_soft_joints_ignore_the_speed_of_the_target(body: SimBody) -> None:
    body.soften((12,))
    for step in range(50):
        body.step(step * STEP_S, REST_RAD, np.full(29, 2.0))
    assert body.joints_rad[12] == 0.0
    assert body.joints_rad[13] > 0.01


def test_softening_one_arm_changes_nothing_for_the_other(body: SimBody, clock: Clock) -> None:
    alone = SimBody(G1_29)
    Clock(alone).run(1.0, FORWARD)
    body.soften(LEFT_ARM, carried_share=0.0, damped=False)
    clock.run(1.0, FORWARD)
    right = list(RIGHT_ARM)
    np.testing.assert_array_equal(body.joints_rad[right], alone.joints_rad[right])
    np.testing.assert_array_equal(body.torques_nm[right], alone.torques_nm[right])


def test_damped_motors_brake_a_falling_arm_and_dead_ones_do_not(
    body: SimBody, clock: Clock
) -> None:
    clock.run(2.0, FORWARD)
    fastest = []
    for damped in (True, False):
        falling = SimBody(G1_29)
        falling.joints_rad[:] = body.joints_rad
        falling.soften(tuple(range(29)), carried_share=0.0, damped=damped)
        Clock(falling).run(0.2)
        assert falling.torques_nm.any() == damped
        fastest.append(float(np.abs(falling.speeds_rad_s).max()))
    assert fastest[1] > 2 * fastest[0]


def test_the_setpoint_given_out_is_a_copy(body: SimBody) -> None:
    body.setpoint_rad[:] = 9.0
    np.testing.assert_array_equal(body.setpoint_rad, REST_RAD)


# ---- limits -------------------------------------------------------------------------------------


def test_the_setpoint_moves_no_faster_than_its_limit(body: SimBody) -> None:
    target = UPPER_RAD
    for step in range(200):
        before = body.setpoint_rad
        body.step(step * STEP_S, target, STILL)
        moved = np.abs(body.setpoint_rad - before)
        assert (moved <= MAX_RAD_S * STEP_S + 1e-12).all()
        if step == 0:
            np.testing.assert_allclose(moved[target != before], (MAX_RAD_S * STEP_S)[0])
    np.testing.assert_allclose(body.setpoint_rad, target)


def test_the_setpoint_limit_is_below_what_every_joint_can_do() -> None:
    able = np.array([joint.velocity_rad_s for joint in G1_JOINTS])
    assert (able >= MAX_RAD_S).all()
    assert MAX_RAD_S.max() == 12.0


def test_no_motor_gives_more_than_its_torque(body: SimBody) -> None:
    far = np.where(REST_RAD > (LOWER_RAD + UPPER_RAD) / 2, LOWER_RAD, UPPER_RAD)
    body.joints_rad[:] = far
    body.step(STEP_S, REST_RAD, STILL)
    assert (np.abs(body.torques_nm) <= EFFORT_NM).all()
    for joint in (15, 18, 20, 21, 28):
        assert abs(body.torques_nm[joint]) == EFFORT_NM[joint]
    for step in range(2, 1000):
        body.step(step * STEP_S, REST_RAD, STILL)
        assert (np.abs(body.torques_nm) <= EFFORT_NM).all()


@pytest.mark.parametrize("side", [LOWER_RAD, UPPER_RAD], ids=["lower", "upper"])
def test_a_target_beyond_the_mechanical_stops_leaves_the_joints_at_them(
    body: SimBody, side: Array
) -> None:
    beyond = side + 0.5 * np.sign(side - REST_RAD)
    for step in range(1500):
        body.step(step * STEP_S, beyond, STILL)
        assert (body.joints_rad >= LOWER_RAD).all()
        assert (body.joints_rad <= UPPER_RAD).all()
    np.testing.assert_allclose(body.joints_rad, side)
    assert not body.speeds_rad_s.any()


@pytest.mark.parametrize("far_rad", [-9.0, 9.0])
def test_a_hand_cannot_push_a_joint_beyond_its_stop(
    body: SimBody, clock: Clock, far_rad: float
) -> None:
    body.soften(ARMS)
    body.attach(Puller(dict.fromkeys(ARMS, far_rad)), 0.0)
    clock.run(3.0)
    wanted = np.clip(far_rad, LOWER_RAD, UPPER_RAD)
    np.testing.assert_allclose(body.joints_rad[list(ARMS)], wanted[list(ARMS)])


# ---- hands --------------------------------------------------------------------------------------


def test_a_hand_brings_soft_joints_where_it_wants_them(body: SimBody, clock: Clock) -> None:
    body.soften(ARMS)
    body.attach(Puller({15: -1.0, 18: 0.4, 27: 0.5}), 0.0)
    clock.run(2.0)
    for joint, angle in ((15, -1.0), (18, 0.4), (27, 0.5)):
        assert body.joints_rad[joint] == pytest.approx(angle, abs=0.02)


def test_a_hand_moves_soft_joints_only(body: SimBody, clock: Clock) -> None:
    alone = SimBody(G1_29)
    Clock(alone).run(1.0)
    body.attach(Puller(dict.fromkeys(range(29), 0.7)), 0.0)
    clock.run(1.0)
    np.testing.assert_array_equal(body.joints_rad, alone.joints_rad)
    body.soften((25,))
    clock.run(1.0)
    assert body.joints_rad[25] == pytest.approx(0.7, abs=0.02)
    assert body.joints_rad[24] == pytest.approx(0.0, abs=0.02)


def test_a_hand_leaves_alone_the_joints_it_does_not_hold(body: SimBody, clock: Clock) -> None:
    other = SimBody(G1_29)
    other.soften(ARMS)
    Clock(other).run(0.5)
    body.soften(ARMS)
    body.attach(Puller({18: 0.2}), 0.0)
    clock.run(0.5)
    np.testing.assert_allclose(
        body.joints_rad[list(RIGHT_ARM)], other.joints_rad[list(RIGHT_ARM)], atol=1e-12
    )
    assert np.isfinite(body.joints_rad).all()


def test_a_hand_counts_time_from_when_it_took_hold_and_lets_go_for_good(
    body: SimBody, clock: Clock
) -> None:
    body.soften(ARMS)
    clock.run(1.0)
    hand = Puller({18: 0.2}, seconds=0.5)
    body.attach(hand, clock.now_s)
    clock.run(0.4)
    held = [body.held_by_hand]
    clock.run(0.6)
    held.append(body.held_by_hand)
    assert held == [True, False]
    assert hand.asked_s[0] == pytest.approx(STEP_S)
    assert 0.5 < hand.asked_s[-1] <= 0.5 + HAND_EVERY * STEP_S + 1e-9


def test_a_hand_can_be_taken_away(body: SimBody, clock: Clock) -> None:
    body.soften(ARMS)
    hand = Puller({18: 0.2})
    body.attach(hand, 0.0)
    clock.run(0.1)
    body.attach(None, clock.now_s)
    asked = len(hand.asked_s)
    clock.run(0.1)
    assert len(hand.asked_s) == asked
    assert not body.held_by_hand


# ---- asleep -------------------------------------------------------------------------------------


def test_a_body_that_stands_for_long_falls_asleep(body: SimBody, clock: Clock) -> None:
    clock.run(1.0)
    speeds = body.speeds_rad_s.copy()
    clock.run(STEP_S)
    assert (body.speeds_rad_s != speeds).any(), "it still settles"
    clock.run(1.5)
    speeds = body.speeds_rad_s.copy()
    for _ in range(50):
        clock.run(STEP_S)
        # Awake, they would tremble in their last bits for ever.
        np.testing.assert_array_equal(body.speeds_rad_s, speeds)


def nudge(body: SimBody) -> None:
    body.joints_rad[18] += 0.1


def knock(body: SimBody) -> None:
    body.speeds_rad_s[25] = 1.0


WAKERS: dict[str, Callable[[SimBody], object]] = {
    "nothing": lambda body: None,
    "nudge": nudge,
    "knock": knock,
    "soften": lambda body: body.soften(LEFT_ARM),
    "damp": lambda body: body.soften(tuple(range(29)), carried_share=0.0),
    "give way": lambda body: body.soften(tuple(range(29)), carried_share=0.0, damped=False),
}


@pytest.mark.parametrize("waker", WAKERS.values(), ids=WAKERS.keys())
@pytest.mark.parametrize("target", [REST_RAD, FORWARD], ids=["rest", "forward"])
def test_a_body_that_slept_goes_on_as_one_that_never_did(
    waker: Callable[[SimBody], object], target: Array
) -> None:
    lives = []
    for sleeps in (True, False):
        body = SimBody(G1_29)
        for step in range(1500):
            if step == 1203:
                waker(body)
            elif not sleeps and step < 1203:
                body.soften(())  # which changes nothing
            body.step(step * STEP_S, REST_RAD if step < 1300 else target, STILL)
        lives.append(np.array([body.joints_rad, body.speeds_rad_s, body.torques_nm]))
    np.testing.assert_allclose(lives[0], lives[1], rtol=0, atol=1e-12)
    asleep = waker is WAKERS["nothing"] and target is REST_RAD
    assert (np.abs(lives[0][1]).max() < 1e-12) == asleep


def test_a_hand_wakes_a_sleeping_body(body: SimBody, clock: Clock) -> None:
    body.soften((12,))
    clock.run(2.5)
    body.attach(Puller({12: 0.5}), clock.now_s)
    clock.run(2.0)
    assert body.joints_rad[12] == pytest.approx(0.5, abs=0.02)


def test_a_hand_that_holds_still_is_asked_for_as_long_as_it_holds(
    body: SimBody, clock: Clock
) -> None:
    body.soften((12,))
    hand = Puller({12: 0.0}, seconds=3.0)
    body.attach(hand, 0.0)
    clock.run(3.5)
    assert not body.held_by_hand
    assert len(hand.asked_s) == pytest.approx(3.0 / STEP_S / HAND_EVERY, abs=2)


# ---- for long -----------------------------------------------------------------------------------


def test_a_minute_of_pulling_softening_and_hardening_stays_calm_and_finite(
    body: SimBody, clock: Clock
) -> None:
    random = np.random.default_rng(1)
    target = REST_RAD
    for second in range(50):
        soft = (ARMS, tuple(range(29)), (), LEFT_ARM)[second % 4]
        body.soften(soft)
        wild = random.uniform(LOWER_RAD, UPPER_RAD)
        body.attach(Puller({j: float(wild[j]) for j in ARMS}, seconds=0.8), clock.now_s)
        target = random.uniform(LOWER_RAD, UPPER_RAD) if second % 5 == 0 else REST_RAD
        clock.run(1.0, target)
        assert np.isfinite(body.joints_rad).all()
        assert np.abs(body.speeds_rad_s).max() < 60.0
    body.soften(())
    clock.run(10.0)
    assert clock.now_s == pytest.approx(60.0)
    assert np.abs(body.speeds_rad_s).max() < 1e-6
    np.testing.assert_allclose(body.joints_rad, REST_RAD, atol=0.02)
