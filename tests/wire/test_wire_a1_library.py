"""Byte for byte what Unitree's library sends, and the same verdicts on what it is given."""

import math
import struct

import numpy as np
import pytest

from a1_samples import SAMPLES, Sample, bitwise_crc
from rote.errors import DecodeError
from rote.wire.a1 import codec as a1
from rote.wire.a1 import values as a1_values
from rote.wire.a1.codec import FrameFault, Seal
from rote.wire.a1.motors import MotorCmd, MotorCmds, MotorState, MotorStates
from rote.wire.a1.values import (
    BmsCmd,
    Dialect,
    Go1Header,
    Header,
    HighCmd,
    HighState,
    Imu,
    Led,
    LowCmd,
    LowState,
    ScaledHighCmd,
)

SENT = [sample for sample in SAMPLES.values() if sample.verdict == "sent"]
STATES = [sample for sample in SAMPLES.values() if sample.verdict != "sent"]
UNSOUND = {"3.2 HighCmd unset", "3.3.4 HighCmd unset", "go1 HighCmd unset", "go1 HighCmd ramp"}
"""Sent before a command was set, without a CRC; and a Go1's with another head."""


def ids(sample: Sample) -> str:
    return sample.name


# ---- from numbers to bytes ----------------------------------------------------------------------

MOTORS = [
    MotorCmd(
        mode=i + 1,
        q_rad=i + 0.5,
        dq_rad_s=-(i + 0.25),
        tau_nm=float(np.float32(i) * np.float32(1.2345) - np.float32(8)),
        kp_nm_rad=float(np.float32(i) * np.float32(10.123)),
        kd_nm_s_rad=float(np.float32(i) * np.float32(0.7777)),
        reserve=(1 << 24 | i, 2 << 24 | i, 3 << 24 | i),
    )
    for i in range(20)
]
DISTINCT = LowCmd(
    header=Header(0xFF, 0x1122, 0x3344, 0x55667788, 0x99),
    motors=MotorCmds.of(MOTORS),
    led=tuple(Led(0x10 + i, 0x20 + i, 0x30 + i) for i in range(4)),  # type: ignore[arg-type]
    remote=bytes(range(0x80, 0xA8)),
    reserve=0xCAFEBABE,
)
GO1_DISTINCT = LowCmd(
    header=Go1Header(
        0xFF,
        serial=(0x11223344, 0x55667788),
        version=(0x99AABBCC, 0xDDEEFF00),
        bandwidth=0xC03A,
    ),
    motors=DISTINCT.motors,
    remote=DISTINCT.remote,
    reserve=DISTINCT.reserve,
    bms=BmsCmd(0x5A, (0xA0, 0xA1, 0xA2)),
)
STANDING = ScaledHighCmd(mode=1)
VALUES: dict[str, tuple[a1_values.Value, Dialect, Seal | None]] = {
    "3.2 HighCmd initial": (ScaledHighCmd(), Dialect.A1_3_2, None),
    "3.2 LowCmd initial": (LowCmd(header=Header()), Dialect.A1_3_2, None),
    "3.2 LowCmd distinct": (DISTINCT, Dialect.A1_3_2, None),
    "3.3.4 HighCmd initial": (HighCmd(), Dialect.A1_3_3_4, None),
    "3.3.4 LowCmd initial": (LowCmd(header=Header()), Dialect.A1_3_3_4, None),
    "3.3.4 LowCmd distinct": (DISTINCT, Dialect.A1_3_3_4, None),
    "3.2 walk 0": (ScaledHighCmd(), Dialect.A1_3_2, None),
    "3.2 walk 1": (STANDING._replace(roll_rad=0.5), Dialect.A1_3_2, None),
    "3.2 walk 2": (STANDING._replace(pitch_rad=0.3), Dialect.A1_3_2, None),
    "3.2 walk 3": (STANDING._replace(yaw_rad=0.3), Dialect.A1_3_2, None),
    "3.2 torque 0": (
        LowCmd(motors=MotorCmds.servo(tau_nm=[-0.65, 0, 0, 0.65, 0, 0] * 2)),
        Dialect.A1_3_2,
        None,
    ),
    "go1 HighCmd initial": (HighCmd(), Dialect.GO1, None),
    "go1 LowCmd initial": (LowCmd(), Dialect.GO1, None),
    "go1 LowCmd distinct": (GO1_DISTINCT, Dialect.GO1, None),
    "go1 LowCmd encrypted": (GO1_DISTINCT, Dialect.GO1, Seal.ENCRYPTED),
}


@pytest.mark.parametrize("name", VALUES)
def test_the_library_s_datagrams_are_made_from_their_numbers(name: str) -> None:
    value, dialect, seal = VALUES[name]
    assert a1.encode(value, dialect, seal=seal) == SAMPLES[name].datagram


def test_the_example_of_a_position_is_made_from_its_numbers() -> None:
    # Three joints of one leg are moved; the others are limited to the Aliengo's range by the
    # example, which puts an angle where none was asked for.
    right, left = [(0.873, -0.65), (3.927, 0.0), (-0.611, 0.0)], [(1.047, 0.65), (3.927, 0.0)]
    left.append((-0.611, 0.0))
    for number, angle in enumerate((0.834, 0.84, 0.846, 0.852)):
        sent = a1.decode(SAMPLES[f"3.2 position {number}"].datagram).value
        assert isinstance(sent, LowCmd)
        thigh, calf = sent.motors[1].q_rad, sent.motors[2].q_rad
        assert math.isclose(thigh, angle, abs_tol=1e-3)
        moved = [
            MotorCmd(10, q, 0.0, tau, 5.0, 1.0) for q, tau in ((0.0, -0.65), (thigh, 0), (calf, 0))
        ]
        held = [MotorCmd(q_rad=q, tau_nm=tau) for q, tau in (*left, *right, *left)]
        made = a1.encode(LowCmd(motors=MotorCmds.of([*moved, *held])), Dialect.A1_3_2)
        assert made == SAMPLES[f"3.2 position {number}"].datagram


def test_a_state_the_library_accepted_is_made_from_its_numbers() -> None:
    motors = [
        MotorState(
            mode=10 + i,
            q_rad=i + 0.5,
            dq_rad_s=-(i + 0.5),
            ddq_rad_s2=100 * i - 500,
            tau_nm=7 / 256 - i,
            q_raw_rad=2.0 * i,
            dq_raw_rad_s=3.0 * i,
            ddq_raw_rad_s2=-i,
            temperature_c=40 + i,
            reserve=(i, 1000 + i),
        )
        for i in range(20)
    ]
    state = LowState(
        header=Header(0xFF, 0x1122, 0x3344, 0x55667788, 7),
        imu=Imu(
            quaternion=(0.125, 1.125, 2.125, 3.125),
            gyroscope_rad_s=(4.125, 5.125, 6.125),
            accelerometer_m_s2=(7.125, 8.125, 9.125),
            rpy_rad=(10.125, 11.125, 12.125),
            temperature_c=-5,
        ),
        motors=MotorStates.of(motors),
        foot_force=(11, -22, 33, -44),
        foot_force_estimate=(55, 66, 77, 88),
        tick=111,
        remote=bytes(range(40)),
        reserve=0xAABBCCDD,
    )
    assert a1.encode(state, Dialect.A1_3_2) == SAMPLES["3.2 LowState distinct"].datagram
    assert a1.encode(state, Dialect.A1_3_3_4) == SAMPLES["3.2 LowState distinct"].datagram


def test_a_high_state_the_library_accepted_is_made_from_its_numbers() -> None:
    state = HighState(
        imu=Imu(quaternion=(0.0, 0.0, 0.25, 0.0)), position_m=(0.0, 0.0), velocity_m_s=(0.0, 0.0)
    )
    assert a1.encode(state, Dialect.A1_3_2) == SAMPLES["3.2 HighState plain"].datagram


# ---- from bytes to numbers and back -------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=ids)
def test_every_datagram_is_read_and_written_again_as_it_was(sample: Sample) -> None:
    assert a1.inspect(sample.datagram).encode() == sample.datagram


@pytest.mark.parametrize("sample", SENT, ids=ids)
def test_what_the_library_sends_is_taken_unless_it_is_unsound(sample: Sample) -> None:
    if sample.name in UNSOUND:
        with pytest.raises(DecodeError):
            a1.decode(sample.datagram)
    else:
        assert a1.decode(sample.datagram).dialects


@pytest.mark.parametrize("sample", STATES, ids=ids)
def test_the_library_s_verdicts_on_states_are_ours(sample: Sample) -> None:
    if sample.verdict == "rejected":
        with pytest.raises(DecodeError, match="checksum"):
            a1.decode(sample.datagram)
        assert not a1.inspect(sample.datagram).crc_holds
    else:
        assert a1.decode(sample.datagram).crc_holds


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=ids)
def test_the_form_of_the_crc_is_told(sample: Sample) -> None:
    seal = a1.inspect(sample.datagram).seal
    assert (seal.value if seal else "none") == sample.crc
    assert (sample.datagram[-4:] == bitwise_crc(sample.datagram)) == (sample.crc == "plain")


def test_a_ramp_puts_every_field_where_the_header_has_it() -> None:
    # In these frames byte i is 1 + 7i, so a field's value tells its offset.
    def byte(i: int) -> int:
        return (1 + 7 * i) & 255

    def real(i: int) -> float:
        number: float = struct.unpack("<f", bytes(map(byte, range(i, i + 4))))[0]
        return number

    old = a1.decode(SAMPLES["3.2 HighCmd ramp"].datagram).value
    assert isinstance(old, ScaledHighCmd)
    assert old[1:10] == (byte(10), *(real(i) for i in range(11, 43, 4)))
    assert old.led[3] == Led(byte(52), byte(53), byte(54))
    assert old.remote == bytes(map(byte, range(55, 95)))
    assert old.app_remote == bytes(map(byte, range(95, 135)))
    new = a1.decode(SAMPLES["3.3.4 HighCmd ramp"].datagram).value
    assert isinstance(new, HighCmd)
    assert new[1:4] == (byte(10), byte(11), byte(12))
    assert (new.foot_raise_height_m, new.body_height_m) == (real(13), real(17))
    assert new.position_m == (real(21), real(25))
    assert new.euler_rad == (real(29), real(33), real(37))
    assert new.velocity_m_s == (real(41), real(45))
    assert new.yaw_speed_rad_s == real(49)
    assert new.led[0] == Led(byte(53), byte(54), byte(55))
    assert new.remote == bytes(map(byte, range(65, 105)))
    go1 = a1.inspect(SAMPLES["go1 HighCmd ramp"].datagram)
    assert go1.fault is FrameFault.HEAD
    assert isinstance(go1.value, HighCmd)
    assert go1.value.yaw_speed_rad_s == real(61)
    assert go1.value.bms == BmsCmd(byte(65), (byte(66), byte(67), byte(68)))
    assert go1.value.led[0] == Led(byte(69), byte(70), byte(71))
    assert go1.value.remote == bytes(map(byte, range(81, 121)))


def test_a_go1_state_is_read_where_the_header_has_it() -> None:
    datagram = SAMPLES["go1 LowState ff plain"].datagram
    state = a1.decode(datagram).value
    assert isinstance(state, LowState)
    assert state.bms is not None
    assert state.bms.charge_percent == datagram[715 + 3]
    assert state.bms.cells_mv == tuple(32 * cell for cell in datagram[729:739])
    assert state.foot_force == struct.unpack_from("<4h", datagram, 739)
    assert state.tick == struct.unpack_from("<I", datagram, 755)[0]
    high = a1.decode(SAMPLES["go1 HighState ee encrypted"].datagram)
    assert isinstance(high.value, HighState)
    assert high.value.bms is not None
    assert high.value.motors is not None
    frame = SAMPLES["go1 HighState ee encrypted"].datagram
    assert high.value.bms.cells_mv == struct.unpack_from("<10H", frame, 849)
    assert high.value.motors[19].q_rad == struct.unpack_from("<f", frame, 75 + 19 * 38 + 1)[0]
    assert high.value.mode == frame[885]
    assert high.value.obstacle_m == struct.unpack_from("<4f", frame, 927)
