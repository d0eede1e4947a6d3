"""Any command can be sent to an A1, and none that is out of range or that its state forbids."""

import asyncio
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import virtual
from a1_rig import is_damping, pair
from rote.errors import BadRequestError, ProtectionError, UnsupportedError
from rote.robot.quadruped.command_check import ObservedState, check_high, check_low
from rote.robot.quadruped.safety import A1SafetyLimits, Safety
from rote.session.a1 import Level
from rote.wire.a1.codec import decode, encode
from rote.wire.a1.motors import MotorCmd, MotorCmds, MotorState, MotorStates
from rote.wire.a1.values import (
    BmsCmd,
    Button,
    Dialect,
    Go1Header,
    Header,
    HighCmd,
    Led,
    LowCmd,
    LowState,
    Remote,
    ScaledHighCmd,
)

STAND = [0.0, 0.8, -1.6] * 4
STANDING = ObservedState((0.0, 0.0), lies=False, stands=True)
LYING = ObservedState((0.0, 0.0), lies=True, stands=False)
LIGHTS = (Led(255, 0, 0), Led(0, 255, 0), Led(0, 0, 255), Led(1, 2, 3))


def test_all_fields_of_a_high_level_command_arrive() -> None:
    async def main() -> None:
        async with pair() as (world, _, robot):
            remote = Remote(buttons=Button.A, left_x=0.5).pack()
            asked = HighCmd(
                mode=2,
                gait=1,
                velocity_m_s=(0.25, 0.0),
                body_height_m=-0.03125,
                foot_raise_height_m=0.03125,
                led=LIGHTS,
                remote=remote,
                reserve=7,
            )
            robot.send_command(asked)
            await asyncio.sleep(2.0)
            told = world.newest
            assert isinstance(told, HighCmd)
            assert told._replace(header=None) == asked
            state = world.high_state()
            assert state.velocity_m_s[0] == pytest.approx(0.25, abs=0.02)
            assert state.body_height_m == pytest.approx(0.25, abs=0.02)
            assert state.foot_raise_height_m == pytest.approx(0.11125, abs=0.001)
            await robot.stop()
            await asyncio.sleep(1.0)
            assert abs(world.high_state().velocity_m_s[0]) < 0.02

    virtual.run(main())


def test_a_robot_walks_to_a_place() -> None:
    async def main() -> None:
        async with pair() as (_, _, robot):
            robot.send_command(HighCmd(mode=3, position_m=(0.25, 0.125), speed_level=1))
            await asyncio.sleep(3.0)
            assert robot.status().place_m == pytest.approx((0.25, 0.125), abs=0.05)
            assert robot.status().mode == "walk to"
            with pytest.raises(BadRequestError, match=r"position_m\[0\]"):
                robot.send_command(HighCmd(mode=3, position_m=(51.0, 0.0)))

    virtual.run(main())


def test_the_oldest_dialect_takes_its_own_command() -> None:
    async def main() -> None:
        async with pair(dialect=Dialect.A1_3_2) as (world, _, robot):
            robot.send_command(
                ScaledHighCmd(mode=2, forward=0.5, led=LIGHTS, app_remote=bytes(range(40)))
            )
            await asyncio.sleep(1.5)
            assert world.high_state().velocity_m_s[0] == pytest.approx(0.5, abs=0.02)
            with pytest.raises(BadRequestError, match=r"dialect 3\.2 has no HighCmd"):
                robot.send_command(HighCmd())

    virtual.run(main())


def test_motors_lights_and_reserves_of_a_low_level_command_arrive() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            motors = MotorCmds.of(
                MotorCmd(q_rad=q, dq_rad_s=0.0, kp_nm_rad=5.0, kd_nm_s_rad=1.0, reserve=(1, 2, 3))
                for q in STAND
            )
            robot.send_command(LowCmd(motors=motors, led=LIGHTS, reserve=9))
            await asyncio.sleep(1.0)
            told = world.newest
            assert isinstance(told, LowCmd)
            assert told._replace(header=None) == LowCmd(motors=motors, led=LIGHTS, reserve=9)
            with pytest.raises(UnsupportedError, match="HighCmd"):
                robot.send_command(HighCmd())

    virtual.run(main())


def test_a_command_that_is_not_renewed_runs_out_and_the_robot_is_made_safe() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            motors = MotorCmds.servo(q_rad=STAND, kp_nm_rad=5.0)
            for _ in range(20):
                robot.send_command(LowCmd(motors=motors), hold_s=0.03)
                await asyncio.sleep(0.01)
            assert not is_damping(world.newest)
            await asyncio.sleep(0.05)
            assert is_damping(world.newest)
            with pytest.raises(ProtectionError, match="no new command"):
                robot.send_command(LowCmd(motors=motors), hold_s=0.03)
            robot.arm()
            robot.send_command(LowCmd(motors=motors), hold_s=0.03)
            for hold_s in (0.0, math.nan, 1.0):
                with pytest.raises(BadRequestError, match="hold"):
                    robot.send_command(LowCmd(motors=motors), hold_s=hold_s)

    virtual.run(main())


def test_a_command_from_a_control_function_or_a_teaching_is_not_overridden() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (_, _, robot):
            async with robot.teach("sit"):
                with pytest.raises(BadRequestError, match="being taught"):
                    robot.send_command(LowCmd())
            robot.modes.damp()
            with pytest.raises(ProtectionError):
                robot.send_command(LowCmd())

    virtual.run(main())


# ---- what is refused ----------------------------------------------------------------------------

NAN = math.nan
BAD: list[tuple[dict[str, Any], str]] = [
    ({"mode": 4}, "mode 4"),
    ({"mode": 14}, "mode 14"),
    ({"mode": 9}, "flip"),
    ({"mode": 7}, "would sink"),
    ({"gait": 5}, "gait"),
    ({"speed_level": 3}, "speed_level"),
    ({"velocity_m_s": (1.2, 0.0)}, "forward_m_s"),
    ({"velocity_m_s": (NAN, 0.0)}, "velocity_m_s"),
    ({"velocity_m_s": (0.0, 0.0, 0.0)}, "velocity_m_s must have 2 numbers"),
    ({"yaw_speed_rad_s": math.inf}, "yaw_speed"),
    ({"body_height_m": 0.2}, "body_height_m"),
    ({"foot_raise_height_m": NAN}, "foot_raise_height_m"),
    ({"euler_rad": (0.0, 0.9, 0.0)}, "pitch_rad"),
    ({"euler_rad": (0.0, 0.0, 2.0)}, "yaw_rad"),
    ({"position_m": (NAN, 0.0)}, "position_m"),
    ({"led": (Led(256, 0, 0), Led(), Led(), Led())}, "led"),
    ({"remote": bytes(39)}, "remote needs 40"),
    ({"remote": Remote(left_x=NAN).pack()}, "left_x"),
    ({"remote": Remote(right_y=7.0).pack()}, "right_y"),
    ({"reserve": 2**32}, "reserve"),
    ({"header": Header(0xF0)}, "level flag"),
    ({"bms": BmsCmd(0xA5)}, "no bms"),
]


@pytest.mark.parametrize(("fields", "words"), BAD, ids=[words for _, words in BAD])
def test_what_is_out_of_range_or_against_the_robots_state_is_refused(
    fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadRequestError, match=words):
        check_high(HighCmd(**fields), Dialect.A1_3_3_4, STANDING)


def test_what_is_dangerous_on_purpose_wants_force() -> None:
    for dialect, command in (
        (Dialect.A1_3_3_4, HighCmd(mode=9)),
        (Dialect.A1_3_3_4, HighCmd(mode=7)),
        (Dialect.A1_3_3_4, HighCmd(header=Header(0xF0))),
        (Dialect.GO1, HighCmd(header=Go1Header(0xF0))),
        (Dialect.GO1, HighCmd(bms=BmsCmd(0xA5))),
    ):
        with pytest.raises(BadRequestError):
            check_high(command, dialect, STANDING)
        check_high(command, dialect, STANDING, force=True)
    check_high(HighCmd(mode=7), Dialect.A1_3_3_4, LYING)
    with pytest.raises(BadRequestError, match="lies"):
        check_high(HighCmd(mode=2), Dialect.A1_3_3_4, LYING)
    with pytest.raises(BadRequestError, match="mode 5 does not exist"):
        check_high(ScaledHighCmd(mode=5), Dialect.A1_3_2, STANDING)
    with pytest.raises(BadRequestError, match="gait 4"):
        check_high(HighCmd(gait=4), Dialect.A1_3_3, STANDING)
    check_high(HighCmd(gait=4), Dialect.A1_3_3_4, STANDING)


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (ScaledHighCmd(mode=2, forward=1.5), "forward"),
        (ScaledHighCmd(mode=2, turn=NAN), "turn"),
        (ScaledHighCmd(mode=2, foot_raise_height=2.0), "foot_raise_height"),
        (ScaledHighCmd(mode=1, roll_rad=0.9), "roll_rad"),
    ],
)
def test_shares_beyond_the_most_are_refused(command: ScaledHighCmd, field: str) -> None:
    with pytest.raises(BadRequestError, match=field):
        check_high(command, Dialect.A1_3_2, STANDING)


HERE = LowState(motors=MotorStates.of(MotorState(q_rad=q) for q in STAND))


def low(**changes: Any) -> LowCmd:
    motor = MotorCmd(q_rad=0.0, dq_rad_s=0.0, kp_nm_rad=5.0, kd_nm_s_rad=1.0)
    return LowCmd(motors=MotorCmds.of([motor._replace(**changes)]))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (low(mode=1), "mode 0x01"),
        (low(kp_nm_rad=-1.0), "FR_hip: a stiffness"),
        (low(kd_nm_s_rad=-0.5), "FR_hip: a damping"),
        (low(tau_nm=40.0), "torque of 40"),
        (low(dq_rad_s=30.0), "velocity of 30"),
        (low(q_rad=0.5, kp_nm_rad=200.0), "FR_hip would jump"),
        (low(dq_rad_s=20.0, kd_nm_s_rad=5.0), "FR_hip would jump"),
        (low()._replace(header=Header(0x00)), "level flag 0xff"),
        (low()._replace(remote=Remote(l2=NAN).pack()), "l2"),
    ],
)
def test_motors_are_not_asked_for_what_throws_or_cannot_be(command: LowCmd, words: str) -> None:
    with pytest.raises(BadRequestError, match=words):
        check_low(command, Dialect.A1_3_3_4, Safety(), HERE)


def test_a_position_is_limited_and_the_mark_that_switches_it_off_stays() -> None:
    off = LowCmd(motors=MotorCmds.servo(tau_nm=1.0))
    assert check_low(off, Dialect.A1_3_3_4, Safety(), HERE) == off
    limited = check_low(low(q_rad=0.9), Dialect.A1_3_3_4, Safety(), HERE)
    assert limited.motors[0].q_rad == pytest.approx(0.802)
    unlimited = Safety(limits=A1SafetyLimits(torque_nm=None))
    check_low(low(q_rad=0.5, kp_nm_rad=200.0), Dialect.A1_3_3_4, unlimited, HERE)
    with pytest.raises(BadRequestError, match="battery"):
        check_low(low()._replace(bms=BmsCmd(0xA5)), Dialect.GO1, Safety("go1"), HERE)


ANY = st.floats(width=32)


@given(
    st.tuples(st.integers(0, 255), st.integers(0, 255), st.integers(0, 255), ANY, ANY),
    st.tuples(ANY, ANY),
    st.tuples(ANY, ANY, ANY),
    st.tuples(ANY, ANY, ANY),
)
def test_whatever_is_sent_is_finite_and_what_is_not_is_refused(
    first: tuple[int, int, int, float, float],
    place: tuple[float, float],
    euler: tuple[float, float, float],
    speed: tuple[float, float, float],
) -> None:
    command = HighCmd(None, *first, place, euler, speed[:2], speed[2])
    try:
        check_high(command, Dialect.GO1, STANDING)
    except BadRequestError:
        return
    read = decode(encode(command, Dialect.GO1)).value
    assert isinstance(read, HighCmd)
    assert read.mode in (0, 1, 2, 3, 5, 6, 8)
    assert all(abs(number) <= 1.0 for number in (*read.velocity_m_s, read.body_height_m))
