"""The simulated A1 as a whole: it walks as far as told, obeys one level, survives anything."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rote.errors import BadRequestError
from rote.model.a1 import A1_STAND_RAD
from rote.motion.track import Array
from rote.session.a1 import Level, make_neutral_command
from rote.sim.quadruped.faults import corrupt_state, parse_a1_fault
from rote.sim.quadruped.hands import SCRIPTS, A1Hand, parse_hand
from rote.sim.quadruped.walker import HEIGHT_M, Posture, walk_goal_from
from rote.sim.quadruped.world import OVERHEATED, A1World
from rote.wire.a1 import codec as wire
from rote.wire.a1 import values as a1_values
from rote.wire.a1.motors import BRAKE, MotorCmds
from rote.wire.a1.values import (
    Button,
    Dialect,
    Header,
    HighCmd,
    HighState,
    LowCmd,
    LowState,
    Remote,
    ScaledHighCmd,
)

ALL = pytest.mark.parametrize("dialect", list(Dialect), ids=lambda dialect: dialect.value)


def standing(joints_rad: Array) -> LowCmd:
    """The command to hold these joints."""
    return LowCmd(
        motors=MotorCmds.servo(q_rad=joints_rad, dq_rad_s=0.0, kp_nm_rad=60.0, kd_nm_s_rad=2.0)
    )


STANDING = standing(np.array(A1_STAND_RAD))
DAMPED = LowCmd(motors=MotorCmds.servo(dq_rad_s=0.0, kd_nm_s_rad=2.0))
LIFTED = Remote(buttons=Button.L2 | Button.B)


def walking(
    dialect: Dialect, ahead: float = 0.0, left: float = 0.0, turn: float = 0.0
) -> a1_values.Command:
    """The command to go so fast, in m/s and rad/s."""
    if dialect is Dialect.A1_3_2:
        share = ahead if ahead > 0 else ahead / 0.7
        return ScaledHighCmd(mode=2, forward=share, left=left / 0.4, turn=turn / (2 * math.pi / 3))
    return HighCmd(mode=2, gait=1, velocity_m_s=(ahead, left), yaw_speed_rad_s=turn)


def reported(world: A1World) -> HighState:
    """What a client reads from the wire."""
    value = wire.decode(wire.encode(world.high_state(), world.dialect)).value
    assert isinstance(value, HighState)
    return value


def measured(world: A1World) -> LowState:
    """The same at the low level."""
    value = wire.decode(wire.encode(world.low_state(), world.dialect)).value
    assert isinstance(value, LowState)
    return value


def walk(world: A1World, seconds: float, **how: float) -> None:
    world.obey(walking(world.dialect, **how))
    world.advance(seconds)
    world.obey(walking(world.dialect))
    world.advance(0.7)


# ---- walking ------------------------------------------------------------------------------------


@ALL
@pytest.mark.parametrize(
    ("ahead", "left", "turn"),
    [(0.5, 0.0, 0.0), (-0.35, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, -0.2, 0.0), (0.0, 0.0, 0.8)],
)
def test_the_state_follows_the_commanded_distance_and_turn(
    dialect: Dialect, ahead: float, left: float, turn: float
) -> None:
    world = A1World(dialect=dialect)
    walk(world, 1.2, ahead=ahead, left=left, turn=turn)
    state = reported(world)
    assert state.position_m[:2] == pytest.approx((1.2 * ahead, 1.2 * left), abs=0.02)
    assert state.imu.rpy_rad[2] == pytest.approx(1.2 * turn, abs=0.02)
    assert state.velocity_m_s[:2] == pytest.approx((0.0, 0.0), abs=1e-3)


def test_after_a_quarter_turn_ahead_is_the_worlds_left() -> None:
    world = A1World()
    walk(world, 2.0, turn=math.pi / 4)
    walk(world, 1.0, ahead=0.5)
    assert reported(world).position_m[:2] == pytest.approx((0.0, 0.5), abs=0.03)


def test_walking_lifts_diagonal_feet_in_turn_and_keeps_the_trunk_level_and_up() -> None:
    world = A1World()
    world.obey(walking(world.dialect, ahead=0.6))
    lifted: set[tuple[bool, ...]] = set()
    for _ in range(100):
        world.advance(0.02)
        state = reported(world)
        lifted.add(tuple(force < 3 for force in state.foot_force_estimate))
        assert abs(state.imu.rpy_rad[0]) < 0.08
        assert abs(state.imu.rpy_rad[1]) < 0.08
        assert abs(state.body_height_m - HEIGHT_M) < 0.03
    assert {(True, False, False, True), (False, True, True, False)} <= lifted
    assert state.gait == 1
    assert state.velocity_m_s[0] == pytest.approx(0.6, abs=1e-3)


def test_a_foot_that_stands_stays_on_its_spot_while_the_body_passes_over_it() -> None:
    world = A1World()
    world.obey(walking(world.dialect, ahead=0.4))
    world.advance(1.0)
    spots: list[list[float]] = [[] for _ in range(4)]
    for _ in range(250):
        world.step()
        for leg, foot in enumerate(world.body.feet):
            if world.body.foot_force_n[leg] > 20.0:
                spots[leg].append(world.body.x_m + foot.x)
            elif spots[leg]:
                assert max(spots[leg]) - min(spots[leg]) < 0.03
                spots[leg].clear()


def test_speeds_beyond_what_a_gait_can_are_cut() -> None:
    world = A1World()
    world.obey(HighCmd(mode=2, gait=3, velocity_m_s=(9.0, 9.0), yaw_speed_rad_s=-99.0))
    world.advance(1.0)
    assert world.body.ahead_m_s == pytest.approx(0.5)
    assert world.body.left_m_s == pytest.approx(0.8)
    assert world.body.turn_rad_s == pytest.approx(-2.5)


def test_a_place_to_go_to_is_reached_and_the_progress_told() -> None:
    world = A1World()
    order = HighCmd(
        mode=3, gait=1, speed_level=1, position_m=(0.8, -0.4), euler_rad=(0.0, 0.0, 0.5)
    )
    world.obey(order)
    world.advance(0.8)
    halfway = reported(world).progress
    assert halfway is not None
    assert 0.05 < halfway < 0.95
    world.advance(4.0)
    state = reported(world)
    assert state.position_m[:2] == pytest.approx((0.8, -0.4), abs=0.02)
    assert state.imu.rpy_rad[2] == pytest.approx(0.5, abs=0.05)
    assert state.progress == 1.0


@ALL
def test_a_pose_is_taken_and_the_inertial_sensor_agrees_with_it(dialect: Dialect) -> None:
    world = A1World(dialect=dialect)
    order: a1_values.Command = HighCmd(mode=1, euler_rad=(0.12, -0.1, 0.2), body_height_m=-0.05)
    if dialect is Dialect.A1_3_2:
        order = ScaledHighCmd(mode=1, roll_rad=0.12, pitch_rad=-0.1, yaw_rad=0.2, body_height=-0.5)
    world.obey(order)
    world.advance(1.5)
    state = reported(world)
    roll, pitch, yaw = state.imu.rpy_rad
    assert (roll, pitch, yaw) == pytest.approx((0.12, -0.1, 0.2), abs=0.02)
    assert state.body_height_m == pytest.approx(HEIGHT_M - 0.05, abs=0.01)
    x, y, z = state.imu.accelerometer_m_s2
    assert math.hypot(x, y, z) == pytest.approx(9.81, abs=0.2)
    assert math.atan2(y, z) == pytest.approx(roll, abs=0.03)
    assert math.atan2(-x, math.hypot(y, z)) == pytest.approx(pitch, abs=0.03)
    w, a, b, c = state.imu.quaternion
    assert math.atan2(2 * (w * c + a * b), 1 - 2 * (b * b + c * c)) == pytest.approx(yaw, abs=1e-5)


def test_it_lies_down_gets_up_gives_way_and_recovers() -> None:
    world = A1World()
    heights = []
    for mode in (5, 6, 7, 8):
        world.obey(HighCmd(mode=mode))
        world.advance(2.5)
        assert reported(world).mode == mode
        heights.append(reported(world).body_height_m)
    assert heights[0] < 0.11
    assert heights[2] < 0.11
    assert heights[1] == pytest.approx(HEIGHT_M, abs=0.01)
    assert heights[3] == pytest.approx(HEIGHT_M, abs=0.01)


def test_a_robot_that_lies_does_not_walk_until_it_has_got_up() -> None:
    world = A1World(start="lie")
    assert world.obey(walking(world.dialect, ahead=0.5))
    world.advance(1.0)
    assert reported(world).mode == 5
    assert world.body.x_m == pytest.approx(0.0, abs=0.005)
    world.obey(HighCmd(mode=6))
    world.advance(0.5)
    world.obey(HighCmd(mode=5))
    world.advance(0.5)
    world.obey(walking(world.dialect, ahead=0.5))
    assert world.walker.posture is Posture.LOWERING
    world.obey(HighCmd(mode=6))
    world.advance(2.0)
    walk(world, 1.0, ahead=0.5)
    assert world.body.x_m == pytest.approx(0.5, abs=0.02)


def test_an_older_robot_gets_up_when_it_is_to_stand() -> None:
    world = A1World(dialect=Dialect.A1_3_2, start="damp")
    world.advance(1.0)
    world.obey(ScaledHighCmd(mode=0))
    world.advance(0.5)
    assert world.walker.posture is Posture.DAMPED
    world.obey(ScaledHighCmd(mode=1))
    world.advance(2.0)
    assert reported(world).body_height_m == pytest.approx(HEIGHT_M, abs=0.01)


def test_a_mode_the_robot_does_not_know_is_noted_once_and_changes_nothing() -> None:
    world = A1World(dialect=Dialect.A1_3_2)
    before = world.walker.goal
    assert not world.obey(ScaledHighCmd(mode=5))
    assert not world.obey(ScaledHighCmd(mode=5))
    assert (world.walker.goal, world.ignored) == (before, 2)
    assert sum("mode 5" in notice.message for notice in world.notices) == 1


def test_shares_of_the_older_dialect_are_cut_to_one() -> None:
    goal = walk_goal_from(ScaledHighCmd(mode=2, forward=7.0, left=-7.0, turn=7.0, body_height=-7.0))
    assert goal.along_m_s == (1.0, -0.4)
    assert goal.turn_rad_s == pytest.approx(2.0944, abs=1e-4)
    assert goal.lift_m == pytest.approx(-0.1)
    assert walk_goal_from(ScaledHighCmd(mode=2, forward=-1.0)).along_m_s[0] == -0.7


# ---- levels -------------------------------------------------------------------------------------


@ALL
def test_low_level_targets_are_followed_and_measured(dialect: Dialect) -> None:
    world = A1World(dialect=dialect)
    assert world.obey(STANDING)
    world.advance(1.5)
    state = measured(world)
    assert state.motors.q_rad[:12] == pytest.approx(A1_STAND_RAD, abs=0.12)
    assert np.abs(state.motors.dq_rad_s[:12]).max() < 0.2
    assert (state.motors.tau_nm[2:12:3] > 1.0).all()
    assert sum(state.foot_force) == pytest.approx(130, abs=12)
    assert list(state.motors.mode[:12]) == [10] * 12
    assert 25 <= min(state.motors.temperature_c[:12]) <= 60
    assert state.tick == 1_500_000


def test_the_marks_that_switch_position_and_velocity_off_do() -> None:
    world = A1World(start="hung")
    world.obey(LowCmd(motors=MotorCmds.servo(kp_nm_rad=500.0, kd_nm_s_rad=500.0)))
    world.advance(0.3)
    assert np.abs(world.body.torque_nm).max() == 0.0
    world.obey(LowCmd(motors=MotorCmds.servo(tau_nm=[0, 0, 8.0] + [0] * 9)))
    world.advance(0.02)
    assert world.body.torque_nm[2] == 8.0
    world.obey(LowCmd(motors=MotorCmds.servo(dq_rad_s=1.0, kd_nm_s_rad=50.0)))
    world.advance(0.1)
    assert world.body.dq_rad_s[1] == pytest.approx(1.0, abs=0.1)


def test_motors_in_any_other_mode_brake() -> None:
    world = A1World(start="hung")
    motors = MotorCmds.servo(q_rad=0.5, dq_rad_s=0.0, tau_nm=20.0, kp_nm_rad=500.0, mode=BRAKE)
    world.obey(LowCmd(motors=motors))
    before = np.array(world.body.q_rad)
    world.advance(0.2)
    assert np.abs(world.body.q_rad - before).max() < 0.1
    assert list(measured(world).motors.mode[:12]) == [BRAKE] * 12


def test_the_level_that_spoke_first_keeps_the_robot_until_it_is_gone() -> None:
    world = A1World()
    assert world.obey(STANDING)
    assert not world.obey(walking(world.dialect, ahead=0.5))
    world.advance(0.2)
    assert world.driver is Level.LOW
    world.handle_silence(Level.HIGH)
    world.forget(Level.HIGH)
    assert world.driver is Level.LOW
    world.forget(Level.LOW)
    assert world.obey(HighCmd(mode=8))
    assert not world.obey(STANDING)
    world.advance(2.0)
    assert reported(world).body_height_m == pytest.approx(HEIGHT_M, abs=0.01)


@ALL
def test_a_command_with_the_other_levels_flag_is_not_obeyed(dialect: Dialect) -> None:
    world = A1World(dialect=dialect)
    go1 = dialect is Dialect.GO1
    high = a1_values.Go1Header(0xEE) if go1 else Header(0x00)
    low = a1_values.Go1Header(0xFF) if go1 else Header(0xFF)
    assert not world.obey(STANDING._replace(header=high))
    assert not world.obey(walking(dialect, ahead=0.5)._replace(header=low))
    assert (world.driver, world.ignored) == (None, 2)
    assert world.obey(walking(dialect)._replace(header=high))


def test_without_low_level_commands_the_motors_brake_and_the_next_one_counts_again() -> None:
    world = A1World()
    world.obey(STANDING)
    world.advance(0.5)
    world.handle_silence(Level.LOW)
    world.advance(2.0)
    assert world.body.height_m < 0.1
    lowered = np.array(world.body.q_rad)
    for share in np.linspace(0.0, 1.0, 50):
        world.obey(standing(lowered + share * (A1_STAND_RAD - lowered)))
        world.advance(0.03)
    assert world.body.height_m > 0.25


def test_without_high_level_commands_a_walking_robot_stands_and_a_posing_one_stays() -> None:
    world = A1World()
    world.obey(walking(world.dialect, ahead=0.5))
    world.advance(1.0)
    world.handle_silence(Level.HIGH)
    world.advance(1.0)
    there = world.body.x_m
    world.advance(1.0)
    assert (world.body.x_m, reported(world).mode) == (there, 0)
    world.obey(HighCmd(mode=1, euler_rad=(0.2, 0.0, 0.0)))
    world.handle_silence(Level.HIGH)
    world.advance(1.0)
    assert reported(world).imu.rpy_rad[0] == pytest.approx(0.2, abs=0.03)


def test_the_remote_is_in_every_state_and_its_stop_goes_before_all_commands() -> None:
    world = A1World()
    world.obey(walking(world.dialect, ahead=0.5))
    world.remote = LIFTED
    world.advance(1.5)
    assert not world.obey(walking(world.dialect, ahead=0.5))
    assert Remote.unpack(measured(world).remote) == LIFTED
    assert Remote.unpack(reported(world).remote) == LIFTED
    assert world.body.height_m < 0.1
    world.remote = Remote()
    assert world.obey(HighCmd(mode=8))
    world.advance(2.0)
    assert world.body.height_m > 0.25
    assert sum("remote" in notice.message for notice in world.notices) == 1


def test_a_robot_that_nobody_drives_comes_to_rest_and_wakes_when_somebody_does() -> None:
    world = A1World()
    world.advance(3.0)
    still = (world.body.height_m, *world.body.q_rad)
    world.advance(1.0)
    assert (world.body.height_m, *world.body.q_rad) == still
    assert measured(world).tick == 4_000_000
    world.remote = LIFTED
    world.advance(1.5)
    assert world.body.height_m < 0.1
    world.remote = Remote()
    world.advance(2.0)
    world.attach(A1Hand("wag", 2.0))
    world.advance(0.7)
    assert world.body.held_by_hand
    assert np.abs(world.body.dq_rad_s).max() > 0.01


# ---- hands --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_a_hand_leads_damped_legs_through_its_script(name: str) -> None:
    world = A1World(start="hung")
    hand = A1Hand(name, 3.0)
    world.attach(hand)
    world.obey(DAMPED)
    joints = sorted({*SCRIPTS[name].pose, *SCRIPTS[name].swing})
    errors, path = [], []
    for step in range(150):
        world.advance(0.02)
        errors.append(np.abs(world.body.q_rad - hand.pose(0.02 * step)).max())
        path.append(world.body.q_rad.copy())
    moved = np.ptp(np.array(path), axis=0)
    assert (moved > 0.2).sum() >= len(joints) / 2
    held = ~np.isnan(hand.grip(1.0))  # type: ignore[arg-type] # it holds then
    assert held.sum() == len(joints)
    assert np.median(errors) < 0.3
    world.advance(0.1)
    assert not world.body.held_by_hand


def test_a_hand_that_comes_again_rests_in_between() -> None:
    hand = parse_hand("paw:2s")
    first, pause, second = (hand.grip(time_s) for time_s in (0.7, 2.5, 3.7))
    assert first is not None
    assert pause is not None
    assert second is not None
    assert np.isnan(pause).all()
    assert np.nanmax(np.abs(first - second)) < 0.01
    assert parse_hand("wag").seconds == 4.0


@pytest.mark.parametrize("text", ["tickle", "paw:0", "paw:1h", "paw:999s"])
def test_a_hand_that_cannot_be_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(BadRequestError):
        parse_hand(text)


# ---- faults -------------------------------------------------------------------------------------


def test_a_hot_motor_tells_it_gives_no_torque_and_cools() -> None:
    world = A1World(start="hung")
    world.health.plan_fault(parse_a1_fault("hot-motor:4@0.5"))
    world.obey(STANDING)
    world.advance(0.8)
    motor = measured(world).motors[4]
    assert (motor.mode, motor.reserve[0]) == (OVERHEATED, 4)
    assert motor.temperature_c > 90
    world.obey(LowCmd(motors=MotorCmds.servo(tau_nm=3.0)))
    world.advance(0.05)
    assert world.body.torque_nm[3] == 3.0
    assert abs(world.body.torque_nm[4]) < 1.0
    world.health.temperatures_c[4] = 74.0
    world.obey(DAMPED)
    world.advance(0.2)
    assert measured(world).motors[4].mode == 10
    assert any("motor 4 is too hot" in notice.message for notice in world.notices)


def test_a_battery_runs_low_on_request_and_else_slowly() -> None:
    world = A1World(dialect=Dialect.GO1)
    world.advance(1.0)
    bms = measured(world).bms
    assert bms is not None
    assert bms.charge_percent == 99
    world.health.plan_fault(parse_a1_fault("low-battery"))
    world.advance(0.2)
    bms = reported(world).bms
    assert bms is not None
    assert bms.charge_percent == 8
    assert len({cell // 32 for cell in bms.cells_mv}) == 1


def test_the_clock_jumps_on_request() -> None:
    world = A1World()
    world.health.plan_fault(parse_a1_fault("clock:-2s@1"))
    world.health.plan_fault(parse_a1_fault("clock:500ms@2"))
    world.advance(1.5)
    assert measured(world).tick == (1_500_000 - 2_000_000) % 2**32
    world.advance(1.0)
    assert measured(world).tick == 1_000_000


@ALL
@pytest.mark.parametrize("part", ["imu", "motors", "position_m", "velocity_m_s"])
@pytest.mark.parametrize("level", list(Level))
def test_a_spoiled_state_has_a_number_that_is_none_and_a_sound_checksum(
    dialect: Dialect, part: str, level: Level
) -> None:
    world = A1World(dialect=dialect)
    sound = wire.encode(world.state(level), dialect)
    bad = corrupt_state(sound, part)
    frame = wire.decode(bad)
    assert wire.is_finite(frame.value) is (bad == sound)
    has_it = getattr(wire.decode(sound).value, part, None) is not None
    assert (bad != sound) is has_it


@pytest.mark.parametrize(
    "text", ["hot-motor:12", "hot-motor:x", "silent:3", "nan:tail", "clock", "low-battery:2", "x@y"]
)
def test_a_fault_that_cannot_be_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(BadRequestError):
        parse_a1_fault(text)


# ---- anything at all ----------------------------------------------------------------------------

FLOAT = st.floats(width=32, allow_nan=False, allow_infinity=False)
PAIR, TRIPLE = st.tuples(FLOAT, FLOAT), st.tuples(FLOAT, FLOAT, FLOAT)
TWELVE = st.lists(FLOAT, min_size=12, max_size=12)


def int16(steps: float) -> st.SearchStrategy[list[float]]:
    numbers = st.integers(-32_768, 32_767).map(lambda number: number / steps)
    return st.lists(numbers, min_size=12, max_size=12)


HIGH = st.builds(
    HighCmd,
    mode=st.integers(0, 15),
    gait=st.integers(0, 5),
    speed_level=st.integers(0, 255),
    foot_raise_height_m=FLOAT,
    body_height_m=FLOAT,
    position_m=PAIR,
    euler_rad=TRIPLE,
    velocity_m_s=PAIR,
    yaw_speed_rad_s=FLOAT,
)
SHARE = st.floats(-1, 1, width=32)
OLD = st.builds(
    ScaledHighCmd,
    mode=st.integers(0, 4),
    **dict.fromkeys(("forward", "left", "turn", "body_height", "yaw_rad", "pitch_rad"), SHARE),
)
LOW = st.builds(
    lambda q, dq, tau, kp, kd, mode: LowCmd(
        motors=MotorCmds.servo(
            q_rad=q, dq_rad_s=dq, tau_nm=tau, kp_nm_rad=kp, kd_nm_s_rad=kd, mode=mode
        )
    ),
    TWELVE,
    TWELVE,
    int16(256.0),
    int16(32.0),
    int16(16.0),
    st.sampled_from([0, 10, 255]),
)


@ALL
@given(data=st.data())
@settings(max_examples=8)
def test_whatever_is_sent_the_state_is_finite_sound_and_within_limits(
    dialect: Dialect, data: st.DataObject
) -> None:
    start = data.draw(st.sampled_from(["stand", "lie", "damp", "hung"]))
    world = A1World(dialect=dialect, start=start)
    high = OLD if dialect is Dialect.A1_3_2 else HIGH
    commands: list[a1_values.Command] = data.draw(st.lists(LOW | high, max_size=6))
    for command in commands:
        if data.draw(st.booleans()):
            world.forget(Level.LOW)
            world.forget(Level.HIGH)
        world.obey(command)
        world.advance(data.draw(st.sampled_from([0.004, 0.05, 0.15])))
        states: Sequence[a1_values.State] = (measured(world), reported(world))
        assert all(wire.is_finite(state) for state in states)
        build = world.body.build
        for low, q, high_rad in zip(
            build.lower_rad, world.body.q_rad, build.upper_rad, strict=True
        ):
            assert low <= q <= high_rad


@ALL
def test_to_ask_for_nothing_moves_nothing_but_soft_legs(dialect: Dialect) -> None:
    world = A1World(dialect=dialect)
    world.obey(make_neutral_command(Level.HIGH, dialect))
    world.advance(1.0)
    assert reported(world).body_height_m == pytest.approx(HEIGHT_M, abs=0.01)
    assert (world.body.x_m, world.body.heading_rad) == (0.0, 0.0)
