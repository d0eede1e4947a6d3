"""Joints and mode as a G1 publishes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import DecodeError, PayloadError
from rote.messages import RobotState
from rote.wire.lowstate import decode_fsm, decode_lowstate, encode_fsm, encode_lowstate

STATE = RobotState(
    positions_rad=tuple(i / 10 for i in range(29)),
    velocities_rad_s=tuple(-i / 10 for i in range(29)),
    gyroscope_rad_s=(0.1, 0.2, 0.3),
    time_us=12_345_678,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_joints_come_back_as_they_were_published() -> None:
    joints = decode_lowstate(encode_lowstate(STATE))
    assert joints.positions_rad == STATE.positions_rad
    assert joints.velocities_rad_s == STATE.velocities_rad_s
    assert joints.accelerometer_m_s2 == STATE.accelerometer_m_s2
    assert joints.gyroscope_rad_s == STATE.gyroscope_rad_s
    assert joints.tick_ms == 12_345


def test_the_mode_comes_back_as_it_was_published() -> None:
    assert decode_fsm(encode_fsm(501)) == 501


@given(json_values)
def test_any_value_is_read_or_refused(value: object) -> None:
    for decode in (decode_lowstate, decode_fsm):
        try:
            decode(value)
        except DecodeError:
            continue


@pytest.mark.parametrize("value", [None, [], {}, {"fsm_id": "500"}, {"fsm_id": True}])
def test_a_mode_that_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(PayloadError):
        decode_fsm(value)


@pytest.mark.parametrize(
    "change",
    [
        {"tick": None},
        {"tick": float("inf")},
        {"motor_state": 5},
        {"motor_state": [{"q": 0.0}]},
        {"motor_state": [{"q": float("nan"), "dq": 0.0}]},
        {"imu_state": {"accelerometer": [0.0], "gyroscope": [0.0, 0.0, 0.0]}},
    ],
)
def test_a_lowstate_with_a_hole_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(PayloadError):
        decode_lowstate(encode_lowstate(STATE) | change)
