"""A G1's joints on DDS: where every number lies, and the CRC by its definition."""

import contextlib
import struct
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError, ChecksumError, DecodeError, PayloadError, TruncatedError
from rote.messages import RobotState
from rote.model.family import ZERO, Build, Joint, StreamFacts, X, attach_hands, numbered_build
from rote.model.g1 import G1, G1_23, G1_29
from rote.model.registry import families
from rote.wire.cdr_layout import HEADER
from rote.wire.dds import lowlevel as dds_lowlevel
from rote.wire.services.lowstate import select_joints

read_joints = partial(dds_lowlevel.decode_joints, build=G1_29)
read_command = partial(dds_lowlevel.decode_arm_command, build=G1_29)
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
        "joints_rad": tuple(n / 16 for n in range(29)),
        "velocities_rad_s": tuple(-n / 16 for n in range(29)),
        "time_us": 1_234_567,
        "accelerometer_m_s2": (1.0, 2.0, 3.0),
        "gyroscope_rad_s": (4.0, 5.0, 6.0),
        "temperatures_c": tuple(30.0 + n for n in range(29)),
    }
    return RobotState(**(some | how))  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 2**32 - 1), max_size=30))
def test_the_crc_is_the_one_of_the_definition(words: list[int]) -> None:
    packed = struct.pack(f"<{len(words)}I", *words)
    assert dds_lowlevel.crc(packed) == crc_by_definition(tuple(words))


def test_the_crc_has_its_known_value() -> None:
    # The catalogue's check value, of "123456789" up to its last whole word.
    assert dds_lowlevel.crc(b"4321" + b"8765") == crc_by_definition((0x31323334, 0x35363738))


# ---- LowState_ ----------------------------------------------------------------------------------


def test_a_lowstate_comes_back() -> None:
    joints = dds_lowlevel.decode_joints(dds_lowlevel.encode_lowstate(state(), build=G1_29), G1_29)
    assert joints.tick_ms == 1234
    assert joints.joints_rad == state().joints_rad
    assert joints.velocities_rad_s == state().velocities_rad_s
    assert joints.accelerometer_m_s2 == (1.0, 2.0, 3.0)
    assert joints.gyroscope_rad_s == (4.0, 5.0, 6.0)
    assert joints.temperatures_c == state().temperatures_c
    assert joints.mode_machine == 5


def test_the_view_shows_the_same_numbers_and_more_without_copying() -> None:
    packed = dds_lowlevel.encode_lowstate(state(), build=G1_29)
    seen, joints = dds_lowlevel.view_lowstate(packed), dds_lowlevel.decode_joints(packed, G1_29)
    assert tuple(seen["motors"]["q"][:29].tolist()) == joints.joints_rad
    assert tuple(seen["motors"]["dq"][:29].tolist()) == joints.velocities_rad_s
    assert seen["motors"]["temperature"][28].tolist() == [58, 58]
    assert (int(seen["tick"]), int(seen["mode_machine"])) == (1234, 5)
    assert seen["quaternion"].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert int(seen["crc"]) == int.from_bytes(packed[-4:], "little")
    assert not seen["motors"].flags.owndata


def test_every_number_lies_where_the_vendors_type_has_it() -> None:
    packed = dds_lowlevel.encode_lowstate(state(), build=G1_29)
    assert len(packed) == 4 + 2088
    body = packed[4:]
    assert (body[9], body[70]) == (5, 1)
    assert struct.unpack_from("<I", body, 12) == (1234,)
    assert struct.unpack_from("<3f", body, 32) == (4.0, 5.0, 6.0)
    for motor in range(29):
        q, dq, _, _, low, high = struct.unpack_from("<4f2h", body, 72 + 56 * motor)
        assert (q, dq, low, high) == (motor / 16, -motor / 16, 30 + motor, 30 + motor)
    in_c = body[:70] + b"\0\0" + body[70:71] + b"\0\0\0" + body[72:]
    words = struct.unpack("<523I", in_c)
    assert words[-1] == crc_by_definition(words[:-1])


def test_a_robot_that_tells_no_temperatures_is_read_too() -> None:
    packed = dds_lowlevel.encode_lowstate(state(temperatures_c=()), build=G1_29)
    assert set(dds_lowlevel.decode_joints(packed, G1_29).temperatures_c) == {0.0}


def test_the_clock_can_be_read_alone_and_wraps() -> None:
    packed = dds_lowlevel.encode_lowstate(state(time_us=(2**32 + 7) * 1000), build=G1_29)
    assert dds_lowlevel.read_tick_and_machine(packed)[0] == 7


def test_joints_that_are_nowhere_are_refused() -> None:
    nowhere = state(joints_rad=(float("nan"),) * 29)
    with pytest.raises(PayloadError):
        dds_lowlevel.decode_joints(dds_lowlevel.encode_lowstate(nowhere, build=G1_29), G1_29)


builds = pytest.mark.parametrize("build", G1.builds, ids=lambda build: build.name)


@builds
def test_a_lowstate_of_any_build_comes_back_by_its_columns(build: Build) -> None:
    count = len(build.names)
    told = state(
        joints_rad=tuple(n / 16 for n in range(count)),
        velocities_rad_s=tuple(-n / 16 for n in range(count)),
        temperatures_c=tuple(30.0 + n for n in range(count)),
    )
    packed = dds_lowlevel.encode_lowstate(told, build=build)
    joints = dds_lowlevel.decode_joints(packed, build)
    assert joints.joints_rad == told.joints_rad
    assert joints.velocities_rad_s == told.velocities_rad_s
    assert joints.temperatures_c == told.temperatures_c
    assert joints.mode_machine == build.machines[0]
    assert joints == select_joints(dds_lowlevel.decode_lowstate(packed), build)


def test_slots_that_a_build_does_not_have_are_left_empty_and_not_read() -> None:
    count = len(G1_23.names)
    told = state(
        joints_rad=(0.5,) * count,
        velocities_rad_s=(0.5,) * count,
        temperatures_c=(30.0,) * count,
    )
    packed = bytearray(dds_lowlevel.encode_lowstate(told, build=G1_23))
    by_slot = dds_lowlevel.decode_lowstate(bytes(packed)).joints_rad
    assert len(by_slot) == 35
    assert {slot for slot, q in enumerate(by_slot) if q} == set(G1_23.slots)
    struct.pack_into("<f", packed, 4 + 72 + 56 * 13, float("nan"))  # a joint that it has not
    assert dds_lowlevel.decode_joints(bytes(packed), G1_23).joints_rad == (0.5,) * count
    assert dds_lowlevel.decode_lowstate(bytes(packed)).joints_rad[13] is None


def test_a_machine_that_is_not_known_is_read_by_all_its_slots() -> None:
    packed = dds_lowlevel.encode_lowstate(state(), build=G1_29)
    joints = dds_lowlevel.decode_joints(packed, numbered_build(35, 77))
    assert joints.joints_rad == (*state().joints_rad, *(0.0,) * 6)


def test_a_build_with_more_slots_than_the_message_has_lacks_the_others() -> None:
    joints = dds_lowlevel.decode_joints(
        dds_lowlevel.encode_lowstate(state(), build=G1_29), numbered_build(40, 77)
    )
    assert joints.missing == (35, 36, 37, 38, 39)


# ---- LowCmd_ ------------------------------------------------------------------------------------


@given(st.lists(ANGLE, min_size=17, max_size=17), st.floats(0.0, 1.0, width=32))
def test_an_arm_command_comes_back(positions: list[float], weight: float) -> None:
    packed = dds_lowlevel.encode_arm_command(positions, weight, build=G1_29, mode_machine=5)
    assert dds_lowlevel.decode_arm_command(packed, G1_29) == dds_lowlevel.ArmCommand(
        tuple(positions), weight, 5
    )


def test_an_arm_command_lies_where_the_vendors_type_has_it() -> None:
    packed = dds_lowlevel.encode_arm_command(
        [n / 8 for n in range(17)], 0.5, build=G1_29, mode_machine=4
    )
    assert len(packed) == 4 + 1000
    body = packed[4:]
    assert body[1] == 4
    for motor in range(35):
        q, dq, tau, kp, kd = struct.unpack_from("<5f", body, 4 + 28 * motor)
        moved = motor in range(12, 29)
        wanted = (motor - 12) / 8 if moved else 0.5 if motor == 29 else 0.0
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
        dds_lowlevel.encode_arm_command(positions, weight, build=G1_29, mode_machine=5)


def test_a_damaged_command_is_refused_and_one_without_crc_is_not() -> None:
    packed = bytearray(
        dds_lowlevel.encode_arm_command([0.1] * 17, 1.0, build=G1_29, mode_machine=5)
    )
    packed[-4:] = bytes(4)
    assert dds_lowlevel.decode_arm_command(bytes(packed), G1_29).weight == 1.0
    packed[-4:] = b"\1\2\3\4"
    with pytest.raises(ChecksumError, match="04030201 in the frame") as caught:
        dds_lowlevel.decode_arm_command(bytes(packed), G1_29)
    words = str(caught.value)
    assert "the LowCmd was changed" in words
    assert "teaching frame" not in words
    assert "DTLS" not in words


def test_a_command_to_nowhere_and_one_without_stiffness_are_told() -> None:
    blank = bytearray(dds_lowlevel.encode_arm_command([0.1] * 17, 1.0, build=G1_29, mode_machine=5))
    blank[-4:] = bytes(4)
    nowhere = bytearray(blank)
    struct.pack_into("<f", nowhere, 4 + 4 + 28 * 15, float("nan"))
    heavy = bytearray(blank)
    struct.pack_into("<f", heavy, 4 + 4 + 28 * 29, 2.0)
    for wrong in (nowhere, heavy):
        with pytest.raises(PayloadError):
            dds_lowlevel.decode_arm_command(bytes(wrong), G1_29)
    struct.pack_into("<f", blank, 4 + 4 + 28 * 15 + 12, 0.0)
    assert not dds_lowlevel.decode_arm_command(bytes(blank), G1_29).stiff


@given(st.binary(max_size=40), st.sampled_from([0, 990, 1000, 2088, 2100]), st.booleans())
def test_arbitrary_bytes_never_raise_anything_but_decode_error(
    data: bytes, size: int, headed: bool
) -> None:
    whole = (HEADER if headed else b"\xff\xff\0\0") + data.ljust(size, b"\x5a")
    for decode in (
        read_joints,
        dds_lowlevel.decode_lowstate,
        dds_lowlevel.read_tick_and_machine,
        read_command,
    ):
        with contextlib.suppress(DecodeError):
            decode(whole)


def test_what_ends_too_early_is_truncated() -> None:
    for decode, whole in (
        (dds_lowlevel.read_tick_and_machine, dds_lowlevel.encode_lowstate(state(), build=G1_29)),
        (
            read_command,
            dds_lowlevel.encode_arm_command([0.0] * 17, 0.0, build=G1_29, mode_machine=5),
        ),
    ):
        with pytest.raises(TruncatedError):
            decode(whole[:-1])


# ---- no build writes a slot that it does not own ------------------------------------------------


def joint(name: str, slot: int, index: int) -> Joint:
    return Joint(
        index=index,
        name=name,
        parent="base",
        axis=X,
        lower_rad=-3.0,
        upper_rad=3.0,
        velocity_rad_s=10.0,
        effort_nm=1.0,
        origin_m=ZERO,
        slot=slot,
    )


@st.composite
def invented(draw: st.DrawFn) -> Build:
    """Return a robot that nobody has built, its joints in any slots and any order."""
    slots = draw(st.lists(st.integers(0, 34), min_size=1, max_size=34, unique=True))
    free = sorted(set(range(35)) - set(slots))
    names = [f"joint_{slot}" for slot in slots]
    streamed = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    return Build(
        name="invented",
        family="invented",
        joints=tuple(joint(n, s, i) for i, (n, s) in enumerate(zip(names, slots, strict=True))),
        streamed=tuple(streamed),
        stream=StreamFacts(weight_slot=draw(st.sampled_from(free)), stiffness_nm_rad=7.0),
    )


STREAMED = [
    build
    for family in families()
    for bare in family.builds
    for build in {bare, attach_hands(bare, family.hands)}
]
STREAMED = [build for build in STREAMED if build.stream and build.stream.weight_slot is not None]


@given(st.sampled_from(STREAMED) | invented(), st.floats(0.0, 1.0, width=32), st.data())
def test_no_build_ever_writes_a_slot_that_it_does_not_own(
    build: Build, weight: float, data: st.DataObject
) -> None:
    count = len(build.streamed)
    positions = data.draw(st.lists(ANGLE, min_size=count, max_size=count))
    packed = dds_lowlevel.encode_arm_command(positions, weight, build=build, mode_machine=5)
    motors = np.frombuffer(packed, dds_lowlevel.LOWCMD, 1, 4)[0]["motors"]
    assert build.stream is not None
    for slot in range(35):
        written = any(motors[slot][field] for field in ("q", "dq", "tau", "kp", "kd"))
        assert build.owns(slot) or not written
        commanded = slot in [build.slots[c] for c in build.streamed_columns]
        assert bool(motors[slot]["kp"]) == commanded
    assert dds_lowlevel.decode_arm_command(packed, build).joints_rad == tuple(positions)


@given(invented(), st.data())
def test_a_lowstate_of_an_invented_robot_comes_back(build: Build, data: st.DataObject) -> None:
    count = len(build.names)
    angles = st.lists(ANGLE, min_size=count, max_size=count).map(tuple)
    told = state(
        joints_rad=data.draw(angles), velocities_rad_s=data.draw(angles), temperatures_c=()
    )
    joints = dds_lowlevel.decode_joints(dds_lowlevel.encode_lowstate(told, build=build), build)
    assert joints.joints_rad == told.joints_rad
    assert joints.velocities_rad_s == told.velocities_rad_s


@pytest.mark.parametrize(
    "stream",
    [None, StreamFacts(weight_slot=None), StreamFacts(weight_slot=1), StreamFacts(weight_slot=35)],
)
def test_a_build_that_must_not_be_streamed_to_has_no_command(stream: StreamFacts | None) -> None:
    joints = (joint("a", 0, 0), joint("b", 1, 1))
    build = Build(
        name="b", family="b", joints=joints, streamed=("a",) if stream else (), stream=stream
    )
    with pytest.raises(BadRequestError):
        dds_lowlevel.encode_arm_command(
            [0.0] * len(build.streamed), 1.0, build=build, mode_machine=0
        )


def test_commands_packed_together_are_those_packed_alone_and_their_crc_is_the_defined_one() -> None:
    rng = np.random.default_rng(5)
    for build, machine in ((G1_29, 5), (G1_23, 255)):
        joints = len(build.streamed)
        poses = rng.uniform(-3.0, 3.0, (70, joints)).tolist()
        weights = rng.uniform(0.0, 1.0, 70).tolist()
        together = dds_lowlevel.encode_arm_commands(
            poses, weights, build=build, mode_machine=machine
        )
        for packed, pose, weight in zip(together, poses, weights, strict=True):
            alone = dds_lowlevel.encode_arm_command(pose, weight, build=build, mode_machine=machine)
            assert packed == alone
            body = packed[4:]
            words = struct.unpack("<251I", body[:2] + b"\0\0" + body[2:3] + b"\0\0\0" + body[4:])
            assert words[-1] == dds_lowlevel.crc(struct.pack("<250I", *words[:-1]))
        assert len(set(together)) == len(together)
