"""A hand's messages: seven motors with their own numbers, and nothing else, whatever is asked."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError, DecodeError, PayloadError
from rote.model.dex3 import DEX3, DEX3_LEFT
from rote.model.family import Hand
from rote.wire.dds import hands as dds_hands

ANGLE = st.floats(-10.0, 10.0, width=32)
HAND = st.sampled_from(DEX3)
SEVEN = st.lists(ANGLE, min_size=7, max_size=7)


@given(HAND, SEVEN, st.floats(0.0, 1.0))
def test_a_command_has_the_seven_motors_of_its_hand_and_nothing_else(
    hand: Hand, positions: list[float], share: float
) -> None:
    packed = dds_hands.encode_command(positions, share, hand=hand)
    assert len(packed) == 4 + 4 + 7 * 28 + 16
    assert struct.unpack_from("<I", packed, 4) == (7,)
    assert packed[-16:] == bytes(16)
    for motor in range(7):
        row = packed[8 + 28 * motor : 8 + 28 * (motor + 1)]
        mode, q, dq, tau, kp, kd, reserve = struct.unpack("<B3x5fI", row)
        # Its number, driven, and relaxing by itself when the commands cease.
        assert mode == motor | 1 << 4 | 1 << 7
        joint = hand.joints[motor]
        assert joint.lower_rad - 1e-6 <= q <= joint.upper_rad + 1e-6
        if joint.lower_rad <= positions[motor] <= joint.upper_rad:
            assert q == positions[motor]
        assert (dq, tau, reserve) == (0.0, 0.0, 0)
        assert kp == pytest.approx(share * hand.stiffness_nm_rad)
        assert kd == pytest.approx(share * hand.damping_nm_s_rad)


@given(HAND, SEVEN, st.floats(0.0, 1.0))
def test_what_a_command_asks_is_read_again(
    hand: Hand, positions: list[float], share: float
) -> None:
    within = [
        min(max(q, joint.lower_rad), joint.upper_rad)
        for q, joint in zip(positions, hand.joints, strict=True)
    ]
    read = dds_hands.decode_command(dds_hands.encode_command(positions, share, hand=hand), hand)
    assert read.joints_rad == pytest.approx(within)
    assert read.stiffness_nm_rad == pytest.approx((share * hand.stiffness_nm_rad,) * 7)
    assert (read.driven, read.timeout) == (True, True)


@given(HAND, SEVEN, SEVEN, st.lists(st.integers(-40, 120), min_size=7, max_size=7))
def test_a_state_comes_back(
    hand: Hand, positions: list[float], speeds: list[float], celsius: list[int]
) -> None:
    told = dds_hands.HandReading(tuple(positions), tuple(speeds), tuple(map(float, celsius)))
    assert dds_hands.decode_state(dds_hands.encode_state(told, hand), hand) == told


@pytest.mark.parametrize("order", ["older", "newer"])
def test_a_state_is_read_whatever_follows_its_motors(order: str) -> None:
    told = dds_hands.HandReading((0.1,) * 7, (0.0,) * 7, (30.0,) * 7)
    motors = dds_hands.encode_state(told, DEX3_LEFT)[: 8 + 7 * 56]
    behind = bytes(56 + 4 + 16) if order == "older" else bytes(4 + 56 + 32)
    read = dds_hands.decode_state(motors + behind, DEX3_LEFT)
    assert read.joints_rad == pytest.approx(told.joints_rad)


@pytest.mark.parametrize(("share", "count"), [(-0.1, 7), (1.1, 7), (float("nan"), 7), (0.5, 6)])
def test_a_command_that_no_hand_could_follow_is_not_made(share: float, count: int) -> None:
    with pytest.raises(BadRequestError):
        dds_hands.encode_command([0.0] * count, share, hand=DEX3_LEFT)


def test_a_command_to_nowhere_is_not_made() -> None:
    with pytest.raises(BadRequestError):
        dds_hands.encode_command([0.0] * 6 + [float("nan")], 0.5, hand=DEX3_LEFT)


def test_motors_out_of_their_order_are_refused() -> None:
    packed = bytearray(dds_hands.encode_command([0.0] * 7, 0.5, hand=DEX3_LEFT))
    packed[8], packed[8 + 28] = packed[8 + 28], packed[8]
    with pytest.raises(PayloadError, match="order"):
        dds_hands.decode_command(bytes(packed), DEX3_LEFT)


def test_a_locked_motor_and_one_without_timeout_are_seen() -> None:
    packed = bytearray(dds_hands.encode_command([0.0] * 7, 0.5, hand=DEX3_LEFT))
    packed[8 + 28] = dds_hands.make_mode_byte(1, status=0, timeout=False)
    read = dds_hands.decode_command(bytes(packed), DEX3_LEFT)
    assert (read.driven, read.timeout) == (False, False)


@pytest.mark.parametrize(("motor", "status"), [(16, 1), (-1, 1), (0, 8)])
def test_a_mode_byte_holds_no_more_than_its_bits(motor: int, status: int) -> None:
    with pytest.raises(BadRequestError):
        dds_hands.make_mode_byte(motor, status=status)


@pytest.mark.parametrize("motors", [0, 6, 8, 2**32 - 1])
def test_a_hand_with_other_motors_is_refused(motors: int) -> None:
    data = b"\0\1\0\0" + motors.to_bytes(4, "little") + bytes(10_000)
    for decode in (dds_hands.decode_state, dds_hands.decode_command):
        with pytest.raises(PayloadError, match="motors"):
            decode(data, DEX3_LEFT)


@given(st.binary(max_size=500) | st.binary(max_size=500).map(lambda b: b"\0\1\0\0\7\0\0\0" + b))
def test_any_bytes_are_read_or_refused_and_nothing_else_happens(data: bytes) -> None:
    for decode in (dds_hands.decode_state, dds_hands.decode_command):
        try:
            decode(data, DEX3_LEFT)
        except DecodeError:
            continue
