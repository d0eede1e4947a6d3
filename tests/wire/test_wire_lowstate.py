"""Joints, mode and battery as a G1 publishes them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import DecodeError, PayloadError
from rote.messages import RobotState
from rote.model.family import Build, numbered_build
from rote.model.g1 import G1, G1_23, G1_27, G1_29
from rote.wire.services.lowstate import (
    decode_battery,
    decode_fsm,
    decode_lowstate,
    encode_battery,
    encode_fsm,
    encode_lowstate,
    select_joints,
)

STATE = RobotState(
    joints_rad=tuple(i / 10 for i in range(29)),
    velocities_rad_s=tuple(-i / 10 for i in range(29)),
    gyroscope_rad_s=(0.1, 0.2, 0.3),
    time_us=12_345_678,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


builds = pytest.mark.parametrize("build", G1.builds, ids=lambda build: build.name)


def small(build: Build) -> RobotState:
    """Return a state of a build, in its columns."""
    count = len(build.names)
    return replace(
        STATE,
        joints_rad=tuple(i / 10 for i in range(count)),
        velocities_rad_s=tuple(-i / 10 for i in range(count)),
        temperatures_c=tuple(30.0 + i for i in range(count)),
    )


@builds
@pytest.mark.parametrize("slots", [20, 29, 35, 64])
def test_joints_come_back_as_they_were_published(build: Build, slots: int) -> None:
    state = small(build)
    told = decode_lowstate(encode_lowstate(state, build=build, slots=slots))
    assert len(told.joints_rad) == max(slots, max(build.slots) + 1)
    joints = select_joints(told, build)
    assert joints.joints_rad == state.joints_rad
    assert joints.velocities_rad_s == state.velocities_rad_s
    assert joints.temperatures_c == state.temperatures_c
    assert joints.accelerometer_m_s2 == STATE.accelerometer_m_s2
    assert joints.gyroscope_rad_s == STATE.gyroscope_rad_s
    assert joints.tick_ms == 12_345
    assert joints.mode_machine == build.machines[0]
    assert joints.missing == ()


def test_a_joint_is_published_in_its_slot_and_other_slots_stay_empty() -> None:
    motors = encode_lowstate(small(G1_23), build=G1_23)["motor_state"]
    assert len(motors) == 35
    assert motors[15]["q"] == pytest.approx(1.3)
    assert [motors[slot]["q"] for slot in (13, 14, 20, 21, 27, 28, 29, 34)] == [0.0] * 8


def test_a_robot_that_is_not_known_is_read_by_its_slots() -> None:
    told = decode_lowstate(encode_lowstate(small(G1_29), build=G1_29))
    joints = select_joints(told, numbered_build(35, 77))
    assert joints.joints_rad[:29] == small(G1_29).joints_rad
    assert joints.joints_rad[29:] == (0.0,) * 6


def test_a_build_of_one_joint_is_read() -> None:
    told = decode_lowstate({"motor_state": [{"q": 0.5}]})
    assert select_joints(told, numbered_build(1, 0)).joints_rad == (0.5,)


def test_a_lowstate_of_another_robot_without_most_fields_is_read() -> None:
    # As a Go2 was recorded: 20 slots, no tick, no speeds, no accelerometer.
    motors = [{"q": 0.1, "temperature": 30, "lost": 0} for _ in range(20)]
    told = decode_lowstate({"motor_state": motors, "imu_state": {"rpy": [0, 0, 0]}})
    joints = select_joints(told, numbered_build(20, 0))
    assert joints.joints_rad == (0.1,) * 20
    assert joints.temperatures_c == (30.0,) * 20
    assert joints.velocities_rad_s == joints.accelerometer_m_s2 == joints.gyroscope_rad_s == ()
    assert joints.tick_ms is None
    assert joints.mode_machine == 0


MOTOR = {"q": 0.5, "dq": 0.25, "temperature": [30, 40]}


@pytest.mark.parametrize("entry", [None, {}, [], 7, {"q": None}, {"q": "x"}, {"q": float("nan")}])
def test_a_motor_that_cannot_be_read_is_missing_and_the_others_are_not(entry: object) -> None:
    told = decode_lowstate({"motor_state": [MOTOR, entry, MOTOR]})
    assert told.joints_rad == (0.5, None, 0.5)
    joints = select_joints(told, numbered_build(3, 0))
    assert joints.missing == (1,)
    assert joints.joints_rad == (0.5, 0.0, 0.5)


def test_joints_beyond_the_last_slot_are_missing_and_stand_at_rest() -> None:
    told = decode_lowstate(encode_lowstate(small(G1_29), build=G1_29) | {})
    short = told._replace(joints_rad=told.joints_rad[:20])
    joints = select_joints(short, G1_29)
    assert joints.missing == tuple(range(20, 29))
    assert joints.joints_rad[20:] == G1_29.rest_rad[20:]
    assert select_joints(short, G1_27).missing == tuple(range(18, 27))


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"tick": None}, "tick_ms", None),
        ({"tick": float("inf")}, "tick_ms", None),
        ({"tick": -1}, "tick_ms", None),
        ({"tick": {}}, "tick_ms", None),
        ({"tick": "77"}, "tick_ms", 77),
        ({"tick": 77.0}, "tick_ms", 77),
        ({"mode_machine": None}, "mode_machine", 0),
        ({"mode_machine": 300}, "mode_machine", 0),
        ({"mode_machine": "5"}, "mode_machine", 5),
        ({"imu_state": None}, "accelerometer_m_s2", ()),
        ({"imu_state": {"accelerometer": [0.0]}}, "accelerometer_m_s2", ()),
        ({"imu_state": {"accelerometer": [0.0, None, 1.0]}}, "accelerometer_m_s2", ()),
        ({"imu_state": {"accelerometer": [0, 1, 2]}}, "gyroscope_rad_s", ()),
        ({"imu_state": {"gyroscope": [0, 1, 2]}}, "gyroscope_rad_s", (0.0, 1.0, 2.0)),
        ({"motor_state": [{"q": 0, "temperature": []}]}, "temperatures_c", (None,)),
        ({"motor_state": [{"q": 0, "temperature": "hot"}]}, "temperatures_c", (None,)),
        ({"motor_state": [{"q": 0, "temperature": [None, 30]}]}, "temperatures_c", (30.0,)),
        ({"motor_state": [{"q": "0.5"}]}, "joints_rad", (0.5,)),
        ({"motor_state": [{"q": 0.5}]}, "velocities_rad_s", (None,)),
        ({"motor_state": [{"q": 10**400}, {"q": 1}]}, "joints_rad", (None, 1.0)),
    ],
)
def test_an_odd_field_is_read_as_far_as_it_goes(
    change: dict[str, object], field: str, value: object
) -> None:
    told = decode_lowstate(encode_lowstate(STATE, build=G1_29) | change)
    assert getattr(told, field) == value


def test_the_mode_comes_back_as_it_was_published() -> None:
    assert decode_fsm(encode_fsm(501)) == 501


@pytest.mark.parametrize("said", ["500", 500.0, 500])
def test_a_mode_may_be_written_in_several_ways(said: object) -> None:
    assert decode_fsm({"fsm_id": said}) == 500


@given(json_values)
def test_any_value_is_read_or_refused(value: object) -> None:
    for decode in (decode_lowstate, decode_fsm, decode_battery):
        try:
            decode(value)
        except DecodeError:
            continue


@pytest.mark.parametrize("value", [None, [], {}, {"fsm_id": "walk"}, {"fsm_id": True}])
def test_a_mode_that_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(PayloadError):
        decode_fsm(value)


@pytest.mark.parametrize(
    "change",
    [
        {"motor_state": 5},
        {"motor_state": None},
        {"motor_state": []},
        {"motor_state": [None, {}]},
        {"motor_state": [{"q": float("nan"), "dq": 0.0}]},
        {"motor_state": [{"dq": 0.0}]},
    ],
)
def test_a_lowstate_without_one_position_is_refused_with_what_was_seen(
    change: dict[str, object],
) -> None:
    with pytest.raises(PayloadError, match="motor_state"):
        decode_lowstate(encode_lowstate(STATE, build=G1_29) | change)


def test_a_lowstate_that_is_a_list_is_refused() -> None:
    with pytest.raises(PayloadError, match=r"not \[\]"):
        decode_lowstate([])


def test_who_does_not_tell_hardware_or_temperatures_is_understood() -> None:
    told = encode_lowstate(STATE, build=G1_29)
    del told["mode_machine"]
    joints = select_joints(decode_lowstate(told), G1_29)
    assert joints.mode_machine == 0
    assert joints.temperatures_c == ()


@given(st.lists(st.integers(-128, 127), min_size=29, max_size=29))
def test_temperatures_are_bytes_on_the_wire_and_signed_again_after(celsius: list[int]) -> None:
    state = replace(STATE, temperatures_c=tuple(map(float, celsius)))
    told = encode_lowstate(state, build=G1_29)
    pairs = [motor["temperature"] for motor in told["motor_state"]]
    assert all(0 <= value <= 255 for pair in pairs for value in pair)
    assert select_joints(decode_lowstate(told), G1_29).temperatures_c == tuple(celsius)


@pytest.mark.parametrize(
    ("told", "meant"), [(35, 35.0), (250, -6.0), ([31, 44], 44.0), ([250, 40], 40.0), (300, 300.0)]
)
def test_a_temperature_is_one_number_or_two(told: object, meant: float) -> None:
    data = encode_lowstate(STATE, build=G1_29)
    for motor in data["motor_state"]:
        motor["temperature"] = told
    assert select_joints(decode_lowstate(data), G1_29).temperatures_c == (meant,) * 29


def test_one_motor_without_a_temperature_leaves_none() -> None:
    data = encode_lowstate(replace(STATE, temperatures_c=(30.0,) * 29), build=G1_29)
    del data["motor_state"][3]["temperature"]
    assert select_joints(decode_lowstate(data), G1_29).temperatures_c == ()


def test_half_a_list_of_temperatures_is_not_published() -> None:
    with pytest.raises(ValueError, match="zip"):
        encode_lowstate(replace(STATE, temperatures_c=(30.0,)), build=G1_29)


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
