"""Joints, mode and battery as a G1 publishes them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import DecodeError, PayloadError
from rote.messages import RobotState
from rote.wire.lowstate import (
    MACHINES,
    decode_battery,
    decode_fsm,
    decode_lowstate,
    encode_battery,
    encode_fsm,
    encode_lowstate,
)

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
    for decode in (decode_lowstate, decode_fsm, decode_battery):
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
        {"motor_state": [{"q": 0.0, "dq": 0.0, "temperature": []}]},
        {"motor_state": [{"q": 0.0, "dq": 0.0, "temperature": "hot"}]},
        {"motor_state": [{"q": 0.0, "dq": 0.0, "temperature": [None, 30]}]},
        {"mode_machine": None},
        {"motor_state": [{"q": 0.0}]},
        {"motor_state": [{"q": float("nan"), "dq": 0.0}]},
        {"imu_state": {"accelerometer": [0.0], "gyroscope": [0.0, 0.0, 0.0]}},
    ],
)
def test_a_lowstate_with_a_hole_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(PayloadError):
        decode_lowstate(encode_lowstate(STATE) | change)


def test_a_lowstate_that_is_a_list_is_refused() -> None:
    with pytest.raises(PayloadError):
        decode_lowstate([])


@pytest.mark.parametrize("machine", MACHINES)
def test_the_hardware_is_told(machine: int) -> None:
    assert decode_lowstate(encode_lowstate(STATE, mode_machine=machine)).mode_machine == machine


def test_who_does_not_tell_hardware_or_temperatures_is_understood() -> None:
    told = encode_lowstate(STATE)
    del told["mode_machine"]
    joints = decode_lowstate(told)
    assert joints.mode_machine == 0
    assert joints.temperatures_c == ()


@given(st.lists(st.integers(-128, 127), min_size=29, max_size=29))
def test_temperatures_are_bytes_on_the_wire_and_signed_again_after(celsius: list[int]) -> None:
    told = encode_lowstate(replace(STATE, temperatures_c=tuple(map(float, celsius))))
    pairs = [motor["temperature"] for motor in told["motor_state"]]
    assert all(0 <= value <= 255 for pair in pairs for value in pair)
    assert decode_lowstate(told).temperatures_c == tuple(celsius)


@pytest.mark.parametrize(
    ("told", "meant"), [(35, 35.0), (250, -6.0), ([31, 44], 44.0), ([250, 40], 40.0), (300, 300.0)]
)
def test_a_temperature_is_one_number_or_two(told: object, meant: float) -> None:
    data = encode_lowstate(STATE)
    for motor in data["motor_state"]:
        motor["temperature"] = told
    assert decode_lowstate(data).temperatures_c == (meant,) * 29


def test_one_motor_without_a_temperature_leaves_none() -> None:
    data = encode_lowstate(replace(STATE, temperatures_c=(30.0,) * 29))
    del data["motor_state"][3]["temperature"]
    assert decode_lowstate(data).temperatures_c == ()


def test_half_a_list_of_temperatures_is_not_published() -> None:
    with pytest.raises(ValueError, match="zip"):
        encode_lowstate(replace(STATE, temperatures_c=(30.0,)))


@given(st.floats(0, 100))
def test_a_battery_tells_its_charge_to_a_percent(percent: float) -> None:
    told = encode_battery(percent)
    assert decode_battery(told) == pytest.approx(percent, abs=0.5)
    assert told["bmsvoltage"][0] == sum(told["cell_vol"])


@pytest.mark.parametrize(
    "value", [None, {}, {"soc": "full"}, {"soc": True}, {"soc": -1}, {"soc": float("nan")}]
)
def test_a_battery_without_a_charge_is_refused(value: object) -> None:
    with pytest.raises(PayloadError):
        decode_battery(value)
