"""Safety: Unitree's numbers, and what Unitree's lacks."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rote.errors import BadRequestError, ProtectionError
from rote.robot.quadruped.safety import A1SafetyLimits, Safety
from rote.wire.a1.motors import (
    POSITION_OFF_RAD,
    VELOCITY_OFF_RAD_S,
    MotorCmd,
    MotorCmds,
    MotorState,
    MotorStates,
)
from rote.wire.a1.values import HighState, Imu, LowState

STAND = (0.0, 0.8, -1.6) * 4
LOWER = np.array([-0.802, -1.05, -2.7] * 4)
UPPER = np.array([0.802, 4.19, -0.916] * 4)


def state(
    joints_rad: tuple[float, ...] = STAND,
    *,
    dq: float = 0.0,
    tau: float = 0.0,
    celsius: int = 30,
    mode: int = 10,
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> LowState:
    motors = [MotorState(mode=mode, q_rad=q, dq_rad_s=dq, tau_nm=tau, temperature_c=celsius)
              for q in joints_rad]  # fmt: skip
    return LowState(imu=Imu(rpy_rad=rpy), motors=MotorStates.of(motors).to_compact())


def tripped(safety: Safety, told: LowState | HighState, age_s: float = 0.0) -> str:
    with pytest.raises(ProtectionError) as raised:
        safety.check(told, age_s)
    assert raised.value.remedy
    return raised.value.protection


# ---- what is asked for --------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.lists(st.floats(-10, 10), min_size=12, max_size=12))
def test_positions_come_out_within_the_limits_and_else_as_they_were(asked: list[float]) -> None:
    motors = MotorCmds.servo(q_rad=asked, kp_nm_rad=20.0, kd_nm_s_rad=1.0)
    limited = Safety().limit(motors)
    assert limited.q_rad[:12] == pytest.approx(np.clip(asked, LOWER, UPPER), abs=1e-6)
    for before, after in zip(motors, limited, strict=True):
        assert before._replace(q_rad=0.0) == after._replace(q_rad=0.0)


def test_the_marks_for_off_stay_intact() -> None:
    motors = MotorCmds.servo(tau_nm=1.0)  # position and velocity off
    assert Safety().limit(motors) is motors
    mixed = MotorCmds.of([MotorCmd(), MotorCmd(q_rad=9.0)])
    limited = Safety().limit(mixed)
    assert limited[0].q_rad == np.float32(POSITION_OFF_RAD)
    assert limited[0].dq_rad_s == VELOCITY_OFF_RAD_S
    assert limited[1].q_rad == pytest.approx(4.19)
    assert limited[19] == MotorCmd(), "spare places are left alone"


def test_a_go1_has_limits_of_its_own() -> None:
    asked = MotorCmds.servo(q_rad=[1.0] * 12)
    assert Safety("a1").limit(asked).q_rad[0] == pytest.approx(0.802)
    assert Safety("go1").limit(asked).q_rad[0] == pytest.approx(1.0)
    with pytest.raises(BadRequestError, match="'b1'"):
        Safety("b1")


@pytest.mark.parametrize(("offset", "words"), [(1, "position"), (5, "velocity")])
def test_what_is_not_a_number_is_refused(offset: int, words: str) -> None:
    wire = bytearray(MotorCmds.servo().wire)
    wire[27 * 3 + offset : 27 * 3 + offset + 4] = np.float32(math.nan).tobytes()
    with pytest.raises(BadRequestError, match=f"FL_hip: a {words} of nan is out of range"):
        Safety().limit(MotorCmds(bytes(wire)))


def test_more_than_a_motor_can_do_is_refused() -> None:
    with pytest.raises(BadRequestError, match="torque of 40"):
        Safety().limit(MotorCmds.servo(tau_nm=40.0))
    with pytest.raises(BadRequestError, match="velocity of -22"):
        Safety().limit(MotorCmds.servo(dq_rad_s=-22.0))
    free = Safety(limits=A1SafetyLimits(velocity_rad_s=None, torque_nm=None))
    free.limit(MotorCmds.servo(tau_nm=40.0, dq_rad_s=-22.0))


# ---- what is reported ---------------------------------------------------------------------------


def test_a_standing_robot_trips_nothing() -> None:
    safety = Safety()
    for _ in range(20):
        safety.check(state())


@pytest.mark.parametrize(
    ("joint", "angle", "trips"),
    [(0, 0.714, False), (0, 0.716, True), (0, -0.716, True), (1, -0.962, False), (1, -0.964, True),
     (1, 4.104, True), (2, -2.612, False), (2, -2.614, True), (2, -1.002, True),
     (11, -2.614, True)],
)  # fmt: skip
def test_the_position_protection_has_the_makers_numbers(
    joint: int, angle: float, trips: bool
) -> None:
    safety = Safety(from_folded=False)
    joints = (*STAND[:joint], angle, *STAND[joint + 1 :])
    if trips:
        assert tripped(safety, state(joints)) == "position"
    else:
        safety.check(state(joints))


def test_a_joint_that_nothing_drives_may_hang_at_its_stop() -> None:
    hanging, inside = (0.0, 0.8, -0.95) * 4, (0.0, 0.8, -1.6) * 4
    limp = MotorCmds.servo()
    braked = MotorCmds.servo(dq_rad_s=0.0, kd_nm_s_rad=2.0)
    for asked in (limp, braked, MotorCmds.servo(q_rad=-1.0, kp_nm_rad=9.0, mode=0)):
        safety = Safety()
        safety.check(state(inside), commanded=asked)
        safety.check(state(hanging), commanded=asked)
    for asked in (
        MotorCmds.servo(q_rad=-1.0, kp_nm_rad=5.0),
        MotorCmds.servo(tau_nm=0.5),
        MotorCmds.servo(dq_rad_s=1.0, kd_nm_s_rad=2.0),
    ):
        safety = Safety()
        safety.check(state(inside), commanded=asked)
        with pytest.raises(ProtectionError, match="FR_calf"):
            safety.check(state(hanging), commanded=asked)


def test_folded_legs_are_watched_from_when_they_have_come_up() -> None:
    folded, inside = (0.0, 1.3, -2.75) * 4, (0.0, 1.3, -2.5) * 4
    safety = Safety()
    safety.check(state(folded))
    safety.check(state(inside))
    assert tripped(safety, state(folded)) == "position"
    safety.reset()
    safety.check(state(folded))
    assert tripped(Safety(from_folded=False), state(folded)) == "position"
    Safety(limits=A1SafetyLimits(margin_rad=None), from_folded=False).check(state(folded))


def test_the_power_protection_trips_at_the_sixth_state_over_the_limit() -> None:
    safety = Safety(limits=A1SafetyLimits(power_level=1))
    over, under = state(dq=1.0, tau=9.0), state(dq=1.0, tau=8.0)  # 108 W and 96 W
    for _ in range(5):
        safety.check(over)
    safety.check(under)
    safety.check(over)
    assert tripped(safety, over) == "power"


def test_the_power_counter_stops_at_ten_and_at_none() -> None:
    safety = Safety(limits=A1SafetyLimits(power_level=1))
    over, under = state(dq=1.0, tau=9.0), state()
    for _ in range(100):
        safety.check(under)
    for number in range(30):
        if number < 5:
            safety.check(over)
        else:
            assert tripped(safety, over) == "power"
    for _ in range(4):
        assert tripped(safety, under) == "power"
    safety.check(under)  # from ten down to five


def test_a_power_level_is_a_tenth_of_a_kilowatt() -> None:
    safety = Safety(limits=A1SafetyLimits(power_level=2))
    for _ in range(20):
        safety.check(state(dq=2.0, tau=8.0))  # 192 W
    for _ in range(5):
        safety.check(state(dq=2.0, tau=9.0))  # 216 W
    assert tripped(safety, state(dq=2.0, tau=9.0)) == "power"


@pytest.mark.parametrize(
    ("told", "protection"),
    [
        (state(dq=-21.5), "velocity"),
        (state(tau=34.0), "torque"),
        (state(celsius=81), "temperature"),
        (state(mode=8), "temperature"),
        (state(rpy=(1.1, 0.0, 0.0)), "tilt"),
        (state(rpy=(0.0, -1.1, 0.0)), "tilt"),
    ],
)
def test_what_the_makers_lacks_is_watched(told: LowState, protection: str) -> None:
    assert tripped(Safety(), told) == protection
    off = A1SafetyLimits(velocity_rad_s=None, torque_nm=None, temperature_c=None, tilt_rad=None)
    Safety(limits=off).check(told)


def test_an_old_state_trips() -> None:
    safety = Safety()
    safety.check(state(), 0.05)
    assert tripped(safety, state(), 0.051) == "stale"
    assert tripped(safety, state(), math.nan) == "stale"
    Safety(limits=A1SafetyLimits(stale_s=None, power_level=None)).check(state(), 99.0)


def test_a_walking_controller_that_tells_no_motors_is_watched_for_tilt() -> None:
    Safety().check(HighState())
    assert tripped(Safety(), HighState(imu=Imu(rpy_rad=(0.0, 2.0, 0.0)))) == "tilt"
    assert tripped(Safety(), HighState(imu=Imu(rpy_rad=(math.nan, 0.0, 0.0)))) == "tilt"


@pytest.mark.parametrize(
    "limits",
    [{"power_level": 0}, {"power_level": 11}, {"margin_rad": -0.1}, {"torque_nm": math.nan},
     {"stale_s": 0.0}, {"tilt_rad": 4.0}, {"torque_nm": 128.0}, {"torque_nm": -1.0},
     {"velocity_rad_s": 101.0}, {"velocity_rad_s": -1.0}, {"temperature_c": 128.0},
     {"temperature_c": -1.0}, {"margin_rad": 0.5}, {"stale_s": 11.0}, {"tilt_rad": -0.1}],
)  # fmt: skip
def test_limits_that_are_none_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(BadRequestError, match=next(iter(limits))):
        A1SafetyLimits(**limits)  # type: ignore[arg-type]
