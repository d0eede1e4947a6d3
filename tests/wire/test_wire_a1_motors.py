"""Twenty motors in the wire's fixed point: what fits is exact, what does not is refused."""

import math
import random
import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rote.errors import BadRequestError
from rote.wire.a1.motors import (
    BRAKE,
    IDLE,
    POSITION_OFF_RAD,
    SERVO,
    VELOCITY_OFF_RAD_S,
    MotorCmd,
    MotorCmds,
    MotorState,
    MotorStates,
)

relaxed = settings(deadline=None)
GAINS = {"tau_nm": (9, 256), "kp_nm_rad": (11, 32), "kd_nm_s_rad": (13, 16)}
"""Where a motor's gains are, and their steps."""
reals = st.floats(width=32, allow_nan=False, allow_infinity=False)


def steps(motors: MotorCmds, name: str) -> int:
    number: int = struct.unpack_from("<h", motors.wire, GAINS[name][0])[0]
    return number


@pytest.mark.parametrize("name", GAINS)
@relaxed
@given(st.floats(-2100, 2100))
def test_a_gain_is_cut_off_as_the_library_does_it_or_refused(name: str, value: float) -> None:
    whole = int(float(np.float32(value)) * GAINS[name][1])
    if -32768 <= whole <= 32767:
        motors = MotorCmds.of([MotorCmd(**{name: value})])  # type: ignore[arg-type]
        assert steps(motors, name) == whole
        assert getattr(motors[0], name) == whole / GAINS[name][1]
        assert getattr(motors, name)[0] == whole / GAINS[name][1]
    else:
        with pytest.raises(BadRequestError, match=rf"motors\[0\].{name} is "):
            MotorCmds.of([MotorCmd(**{name: value})])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("tau_nm", 200.0, r"motors\[3\].tau_nm is 200; the frame can hold -128 to 127.996"),
        ("tau_nm", -200.0, r"motors\[3\].tau_nm is -200"),
        ("tau_nm", 128.0, r"motors\[3\].tau_nm is 128"),
        ("tau_nm", 127.9999999, r"motors\[3\].tau_nm"),
        ("tau_nm", math.nan, r"motors\[3\].tau_nm is nan"),
        ("tau_nm", math.inf, r"motors\[3\].tau_nm is inf"),
        ("tau_nm", 3e38, r"motors\[3\].tau_nm is 3e\+38"),
        ("tau_nm", 1e39, r"motors\[3\].tau_nm is 1e\+39"),
        ("kp_nm_rad", 1024.0, r"motors\[3\].kp_nm_rad is 1024"),
        ("kd_nm_s_rad", 2048.0, r"motors\[3\].kd_nm_s_rad is 2048"),
        ("q_rad", math.nan, r"motors\[3\].q_rad is nan"),
        ("q_rad", -math.inf, r"motors\[3\].q_rad is -inf"),
        ("q_rad", 1e39, r"motors\[3\].q_rad is 1e\+39"),
        ("dq_rad_s", math.nan, r"motors\[3\].dq_rad_s is nan"),
    ],
)
def test_what_would_be_sent_as_something_else_is_refused(
    name: str, value: float, words: str
) -> None:
    row = [0.0] * 12
    row[3] = value
    with pytest.raises(BadRequestError, match=words) as caught:
        MotorCmds.servo(**{name: row})  # type: ignore[arg-type]
    assert "Nothing was sent" in caught.value.remedy


NAMES = ("q_rad", "dq_rad_s", "tau_nm", "kp_nm_rad", "kd_nm_s_rad")
odd = st.sampled_from([0.0, 127.9, -128.0, 128.0, 1e5, 1e39, math.nan, math.inf, 2.146e9])


def outcome(make: Callable[[], MotorCmds]) -> MotorCmds | str:
    try:
        return make()
    except BadRequestError as error:
        return str(error)


@relaxed
@example(12, 0, {(1, 11): math.nan}, SERVO)
@given(
    st.sampled_from([12, 20]),
    st.integers(0, 2**32 - 1),
    st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 11)), odd, max_size=2),
    st.integers(-1, 256),
)
def test_rows_for_all_numbers_are_as_motors_one_by_one(
    count: int, seed: int, odds: dict[tuple[int, int], float], mode: int
) -> None:
    chance = random.Random(seed)
    rows = [[chance.uniform(-120, 120) for _ in range(count)] for _ in NAMES]
    for (row, place), number in odds.items():
        rows[row][place] = number
    by_row = dict(zip(NAMES, rows, strict=True))
    motors = [MotorCmd(mode, *numbers) for numbers in zip(*rows, strict=True)]
    made = outcome(lambda: MotorCmds.servo(mode=mode, **by_row))
    assert made == outcome(lambda: MotorCmds.of(motors))


@pytest.mark.parametrize("mode", [-1, 256])
def test_a_mode_is_a_byte(mode: int) -> None:
    with pytest.raises(BadRequestError, match=rf"motors\[0\].mode is {mode}"):
        MotorCmds.servo(mode=mode)


def test_a_reserve_is_words() -> None:
    with pytest.raises(BadRequestError, match="reserve"):
        MotorCmds.of([MotorCmd(reserve=(2**32, 0, 0))])


def test_many_large_gains_fit_though_their_squares_are_many() -> None:
    motors = MotorCmds.servo(kp_nm_rad=1000.0, kd_nm_s_rad=2000.0, tau_nm=-128.0)
    assert list(motors.kp_nm_rad[:12]) == [1000.0] * 12
    assert list(motors.tau_nm) == [-128.0] * 12 + [0.0] * 8


def test_nothing_asked_is_the_library_s_new_command() -> None:
    motor = struct.pack("<B", SERVO) + bytes.fromhex("b9d2ff4e 00007a46") + bytes(18)
    assert IDLE.wire == MotorCmds.of([]).wire == MotorCmds.servo().wire == motor * 20
    assert IDLE[19] == MotorCmd() == MotorCmd(SERVO, POSITION_OFF_RAD, VELOCITY_OFF_RAD_S)


def test_the_stop_markers_stay_whole() -> None:
    motors = MotorCmds.servo(tau_nm=[1.0] * 12)
    assert set(motors.q_rad.tolist()) == {2.146e9}
    assert set(motors.dq_rad_s.tolist()) == {16_000.0}


def test_a_number_is_for_all_legs_and_a_row_for_each() -> None:
    rows = MotorCmds.servo(
        q_rad=np.arange(12.0), dq_rad_s=0.0, kp_nm_rad=(30.0,) * 12, kd_nm_s_rad=[0.5], mode=BRAKE
    )
    assert rows == MotorCmds.of([MotorCmd(BRAKE, float(i), 0.0, 0.0, 30.0, 0.5) for i in range(12)])
    assert rows[12:] == (MotorCmd(),) * 8
    assert list(rows.mode) == [BRAKE] * 12 + [SERVO] * 8
    assert rows.kd_nm_s_rad[0] == 0.5
    assert len(MotorCmds.servo(q_rad=[0.0] * 20)) == 20


@pytest.mark.parametrize("count", [0, 3, 21])
def test_rows_must_be_alike_and_find_a_place(count: int) -> None:
    with pytest.raises(BadRequestError, match="12 in the legs and 20 slots"):
        MotorCmds.servo(q_rad=[0.0] * count, tau_nm=[0.0] * (max(count, 12)))


def test_motors_are_values() -> None:
    one, other = MotorCmds.servo(q_rad=1.0), MotorCmds.servo(q_rad=[1.0] * 12)
    assert one == other
    assert hash(one) == hash(other)
    assert one != IDLE
    assert one != MotorStates()
    assert one[-20] == one[0]
    assert repr(MotorCmds.of([MotorCmd(q_rad=1.0)])).startswith("MotorCmds(0: MotorCmd(mode=10, q_")
    with pytest.raises(IndexError):
        one[20]
    with pytest.raises(BadRequestError, match="540 bytes"):
        MotorCmds(bytes(539))


def test_only_finite_legs_count_as_finite() -> None:
    wire = bytearray(IDLE.wire)
    wire[1:5] = struct.pack("<f", math.nan)
    assert not MotorCmds(bytes(wire)).is_finite
    assert IDLE.is_finite


# ---- states -------------------------------------------------------------------------------------

REPORT = MotorState(10, 0.5, -1.5, 100.0, -2.25, 0.25, -0.75, -3.0, 41, (4, 5))


def test_a_report_is_the_same_in_both_forms() -> None:
    full = MotorStates.of([REPORT, MotorState()])
    compact = full.to_compact()
    assert (len(full.wire), len(compact.wire)) == (760, 640)
    assert not full.is_compact
    assert compact.is_compact
    assert full[0] == compact[0] == REPORT
    assert full[1:3] == compact[1:3]
    assert compact.to_full() == full
    assert compact.to_compact() is compact
    assert full.to_full() is full


@pytest.mark.parametrize("compact", [False, True])
def test_reports_can_be_taken_by_column(compact: bool) -> None:
    motors = MotorStates.of([REPORT])
    if compact:
        motors = motors.to_compact()
    columns = (motors.mode, motors.q_rad, motors.dq_rad_s, motors.tau_nm, motors.temperature_c)
    assert [column[0] for column in columns] == [10, 0.5, -1.5, -2.25, 41]
    assert all(len(column) == 20 for column in columns)
    assert motors.is_finite


@relaxed
@given(st.floats(-200, 200, width=32))
def test_a_torque_is_cut_off_in_the_compact_form_or_refused(torque: float) -> None:
    motors = MotorStates.of([MotorState(tau_nm=torque)])
    if -32769 < torque * 256 < 32768:
        assert motors.to_compact().tau_nm[0] == int(torque * 256) / 256
    else:
        with pytest.raises(BadRequestError, match=r"motors\[0\].tau is"):
            motors.to_compact()


def test_reports_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadRequestError, match="21 motors do not fit into 20"):
        MotorStates.of([REPORT] * 21)
    with pytest.raises(BadRequestError, match="does not fit"):
        MotorStates.of([REPORT._replace(temperature_c=300)])
    with pytest.raises(BadRequestError, match="640 or 760 bytes, not 100"):
        MotorStates(bytes(100))
    with pytest.raises(BadRequestError, match=r"motors\[0\].q is inf"):
        MotorStates.of([REPORT._replace(q_rad=1e39)]).check()
    with pytest.raises(BadRequestError, match=r"motors\[0\].ddq is nan"):
        MotorStates.of([REPORT._replace(ddq_rad_s2=math.nan)]).to_compact()


def test_reports_are_values() -> None:
    assert MotorStates.of([REPORT]) == MotorStates.of([REPORT])
    assert "0: MotorState(mode=10, q_rad=0.5" in repr(MotorStates.of([REPORT]))
    assert repr(MotorStates()) == "MotorStates()"
