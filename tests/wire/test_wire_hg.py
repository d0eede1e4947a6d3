"""A G1's joints on DDS: where every number lies, and the CRC by its definition."""

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rote.errors import BadRequestError, ChecksumError, DecodeError, PayloadError, TruncatedError
from rote.messages import RobotState
from rote.wire import hg
from rote.wire.cdr import HEADER

ANGLE = st.floats(-3.0, 3.0, width=32)


def crc_by_definition(words: tuple[int, ...]) -> int:
    """CRC-32/MPEG-2, bit by bit."""
    value = 0xFFFFFFFF
    for word in words:
        for bit in range(31, -1, -1):
            carry = (value >> 31) ^ (word >> bit & 1)
            value = (value << 1 & 0xFFFFFFFF) ^ (0x04C11DB7 if carry else 0)
    return value


def state(**how: object) -> RobotState:
    some: dict[str, object] = {
        "positions_rad": tuple(n / 16 for n in range(29)),
        "velocities_rad_s": tuple(-n / 16 for n in range(29)),
        "time_us": 1_234_567,
        "accelerometer_m_s2": (1.0, 2.0, 3.0),
        "gyroscope_rad_s": (4.0, 5.0, 6.0),
        "temperatures_c": tuple(30.0 + n for n in range(29)),
    }
    return RobotState(**(some | how))  # type: ignore[arg-type]


@settings(max_examples=30)
@given(st.lists(st.integers(0, 2**32 - 1), max_size=30))
def test_the_crc_is_the_one_of_the_definition(words: list[int]) -> None:
    packed = struct.pack(f"<{len(words)}I", *words)
    assert hg.crc(packed) == crc_by_definition(tuple(words))


def test_the_crc_has_its_known_value() -> None:
    # The catalogue's check value, of "123456789" up to its last whole word.
    assert hg.crc(b"4321" + b"8765") == crc_by_definition((0x31323334, 0x35363738))


# ---- LowState_ ----------------------------------------------------------------------------------


def test_a_lowstate_comes_back() -> None:
    joints = hg.joints_of(hg.encode_lowstate(state(), mode_machine=5))
    assert joints.tick_ms == 1234
    assert joints.positions_rad == state().positions_rad
    assert joints.velocities_rad_s == state().velocities_rad_s
    assert joints.accelerometer_m_s2 == (1.0, 2.0, 3.0)
    assert joints.gyroscope_rad_s == (4.0, 5.0, 6.0)
    assert joints.temperatures_c == state().temperatures_c
    assert joints.mode_machine == 5


def test_the_view_shows_the_same_numbers_and_more_without_copying() -> None:
    packed = hg.encode_lowstate(state(), mode_machine=5)
    seen, joints = hg.view(packed), hg.joints_of(packed)
    assert tuple(seen["motors"]["q"][:29].tolist()) == joints.positions_rad
    assert tuple(seen["motors"]["dq"][:29].tolist()) == joints.velocities_rad_s
    assert seen["motors"]["temperature"][28].tolist() == [58, 58]
    assert (int(seen["tick"]), int(seen["mode_machine"])) == (1234, 5)
    assert seen["quaternion"].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert int(seen["crc"]) == int.from_bytes(packed[-4:], "little")
    assert not seen["motors"].flags.owndata


def test_every_number_lies_where_the_vendors_type_has_it() -> None:
    packed = hg.encode_lowstate(state(), mode_machine=6)
    assert len(packed) == 4 + 2088
    body = packed[4:]
    assert (body[9], body[70]) == (6, 1)
    assert struct.unpack_from("<I", body, 12) == (1234,)
    assert struct.unpack_from("<3f", body, 32) == (4.0, 5.0, 6.0)
    for motor in range(29):
        q, dq, _, _, low, high = struct.unpack_from("<4f2h", body, 72 + 56 * motor)
        assert (q, dq, low, high) == (motor / 16, -motor / 16, 30 + motor, 30 + motor)
    in_c = body[:70] + b"\0\0" + body[70:71] + b"\0\0\0" + body[72:]
    words = struct.unpack("<523I", in_c)
    assert words[-1] == crc_by_definition(words[:-1])


def test_a_robot_that_tells_no_temperatures_is_read_too() -> None:
    packed = hg.encode_lowstate(state(temperatures_c=()), mode_machine=5)
    assert set(hg.joints_of(packed).temperatures_c) == {0.0}


def test_the_clock_can_be_read_alone_and_wraps() -> None:
    late = state(time_us=(2**32 + 7) * 1000)
    assert hg.tick_of(hg.encode_lowstate(late, mode_machine=5)) == 7


def test_joints_that_are_nowhere_are_refused() -> None:
    nowhere = state(positions_rad=(float("nan"),) * 29)
    with pytest.raises(PayloadError):
        hg.joints_of(hg.encode_lowstate(nowhere, mode_machine=5))


# ---- LowCmd_ ------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.lists(ANGLE, min_size=17, max_size=17), st.floats(0.0, 1.0, width=32))
def test_an_arm_command_comes_back(positions: list[float], weight: float) -> None:
    packed = hg.encode_arm_command(positions, weight, mode_machine=5)
    assert hg.decode_arm_command(packed) == hg.ArmCommand(tuple(positions), weight, 5)


def test_an_arm_command_lies_where_the_vendors_type_has_it() -> None:
    packed = hg.encode_arm_command([n / 8 for n in range(17)], 0.5, mode_machine=4)
    assert len(packed) == 4 + 1000
    body = packed[4:]
    assert body[1] == 4
    for motor in range(35):
        q, dq, tau, kp, kd = struct.unpack_from("<5f", body, 4 + 28 * motor)
        moved = motor in hg.UPPER_BODY
        wanted = (motor - 12) / 8 if moved else 0.5 if motor == hg.WEIGHT_MOTOR else 0.0
        assert (q, dq, tau) == (wanted, 0.0, 0.0)
        assert (kp, kd) == ((60.0, 1.5) if moved else (0.0, 0.0))
    in_c = body[:2] + b"\0\0" + body[2:3] + b"\0\0\0" + body[4:]
    words = struct.unpack("<251I", in_c)
    assert words[-1] == crc_by_definition(words[:-1])


@pytest.mark.parametrize(
    ("positions", "weight"),
    [
        ([0.0] * 17, 1.5),
        ([0.0] * 17, -0.1),
        ([0.0] * 17, float("nan")),
        ([0.0] * 16, 1.0),
        ([0.0] * 16 + [float("inf")], 1.0),
    ],
)
def test_a_command_that_makes_no_sense_is_never_packed(
    positions: list[float], weight: float
) -> None:
    with pytest.raises(BadRequestError):
        hg.encode_arm_command(positions, weight, mode_machine=5)


def test_a_damaged_command_is_refused_and_one_without_crc_is_not() -> None:
    packed = bytearray(hg.encode_arm_command([0.1] * 17, 1.0, mode_machine=5))
    packed[-4:] = bytes(4)
    assert hg.decode_arm_command(bytes(packed)).weight == 1.0
    packed[-4:] = b"\1\2\3\4"
    with pytest.raises(ChecksumError):
        hg.decode_arm_command(bytes(packed))


def test_a_command_to_nowhere_and_one_without_stiffness_are_told() -> None:
    blank = bytearray(hg.encode_arm_command([0.1] * 17, 1.0, mode_machine=5))
    blank[-4:] = bytes(4)
    nowhere = bytearray(blank)
    struct.pack_into("<f", nowhere, 4 + 4 + 28 * 15, float("nan"))
    heavy = bytearray(blank)
    struct.pack_into("<f", heavy, 4 + 4 + 28 * 29, 2.0)
    for wrong in (nowhere, heavy):
        with pytest.raises(PayloadError):
            hg.decode_arm_command(bytes(wrong))
    struct.pack_into("<f", blank, 4 + 4 + 28 * 15 + 12, 0.0)
    assert not hg.decode_arm_command(bytes(blank)).stiff


@settings(max_examples=40)
@given(st.binary(max_size=40), st.sampled_from([0, 990, 1000, 2088, 2100]), st.booleans())
def test_arbitrary_bytes_never_raise_anything_but_decode_error(
    data: bytes, size: int, headed: bool
) -> None:
    whole = (HEADER if headed else b"\xff\xff\0\0") + data.ljust(size, b"\x5a")
    for decode in (hg.joints_of, hg.tick_of, hg.decode_arm_command):
        with contextlib.suppress(DecodeError):
            decode(whole)


def test_what_ends_too_early_is_truncated() -> None:
    for decode, whole in (
        (hg.tick_of, hg.encode_lowstate(state(), mode_machine=5)),
        (hg.decode_arm_command, hg.encode_arm_command([0.0] * 17, 0.0, mode_machine=5)),
    ):
        with pytest.raises(TruncatedError):
            decode(whole[:-1])
