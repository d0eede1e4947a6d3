"""Messages of ROS 2: byte for byte what rosbags writes, and no bytes make a decoder fail badly."""

import contextlib
import struct
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.typesys import Stores, get_typestore

from rote.bridge import ros_messages as ros
from rote.bridge.description import urdf
from rote.errors import DecodeError
from rote.model.family import attach_hands
from rote.model.g1 import G1_29
from rote.model.registry import families, family_of
from rote.motion.body.kinematics import kinematics_of
from rote.motion.files.joint_state import Encoder
from rote.wire.cdr_layout import HEADER

STORE = get_typestore(Stores.ROS2_HUMBLE)
T: Any = STORE.types
NAMES = st.lists(st.text(max_size=20).filter(lambda t: "\0" not in t), max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def header(time_ns: int, frame: str = "") -> Any:
    stamp = T["builtin_interfaces/msg/Time"](sec=time_ns // 10**9, nanosec=time_ns % 10**9)
    return T["std_msgs/msg/Header"](stamp=stamp, frame_id=frame)


def by_rosbags(message: Any) -> bytes:
    return bytes(STORE.serialize_cdr(message, message.__msgtype__))


@given(
    NAMES,
    st.text(max_size=9).filter(lambda t: "\0" not in t),
    st.integers(0, 2**31 * 10**9 - 1),
    st.booleans(),
    st.data(),
)
def test_a_joint_state_is_what_rosbags_writes(
    names: list[str], frame: str, time_ns: int, moving: bool, data: st.DataObject
) -> None:
    values = st.lists(NUMBERS, min_size=len(names), max_size=len(names))
    positions, speeds = data.draw(values), data.draw(values) if moving else []
    theirs = T[ros.JOINT_STATE](
        header=header(time_ns, frame),
        name=names,
        position=np.array(positions, dtype=np.float64),
        velocity=np.array(speeds, dtype=np.float64),
        effort=np.array([], dtype=np.float64),
    )
    assert Encoder(names, frame).encode(time_ns, positions, speeds) == by_rosbags(theirs)


@given(
    st.integers(0, 2**31 * 10**9 - 1),
    st.lists(st.tuples(st.integers(0, 3), st.text("ab\u00e9\U0001f916", max_size=9)), max_size=5),
    st.text("xyz", max_size=7),
)
def test_diagnostics_and_texts_are_what_rosbags_writes(
    time_ns: int, found: list[tuple[int, str]], value: str
) -> None:
    status, pair = T["diagnostic_msgs/msg/DiagnosticStatus"], T["diagnostic_msgs/msg/KeyValue"]
    theirs = T[ros.DIAGNOSTICS](
        header=header(time_ns),
        status=[
            status(
                level=level,
                name=text,
                message=text + "!",
                hardware_id="g1",
                values=[pair(key="remedy", value=value)],
            )
            for level, text in found
        ],
    )
    ours = [
        ros.Diagnostic(level, text, text + "!", "g1", (("remedy", value),)) for level, text in found
    ]
    assert ros.encode_diagnostics(time_ns, ours) == by_rosbags(theirs)
    text = T[ros.STRING](data=value)
    assert ros.encode_string(value) == by_rosbags(text)
    assert ros.decode_string(by_rosbags(text)) == value


@given(
    st.lists(st.text("abc_", min_size=1, max_size=9), max_size=4),
    st.lists(st.integers(0, 10**10), max_size=5),
    st.booleans(),
)
def test_a_trajectory_of_rosbags_is_read(
    names: list[str], times_ns: list[int], with_speeds: bool
) -> None:
    point, duration = (
        T["trajectory_msgs/msg/JointTrajectoryPoint"],
        T["builtin_interfaces/msg/Duration"],
    )
    row = np.linspace(-1.0, 1.0, len(names))
    empty = np.array([], dtype=np.float64)
    theirs = T[ros.TRAJECTORY](
        header=header(5, "pelvis"),
        joint_names=names,
        points=[
            point(
                positions=row + index,
                velocities=row if with_speeds else empty,
                accelerations=empty,
                effort=empty,
                time_from_start=duration(sec=at // 10**9, nanosec=at % 10**9),
            )
            for index, at in enumerate(times_ns)
        ],
    )
    read = ros.decode_trajectory(by_rosbags(theirs))
    assert read.names == tuple(names)
    assert [each.positions_rad for each in read.points] == [
        tuple(row + index) for index in range(len(times_ns))
    ]
    assert [each.at_s for each in read.points] == pytest.approx([at / 1e9 for at in times_ns])
    assert read.stamp_ns == 5


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_make_a_decoder_fail_otherwise_than_by_a_decode_error(
    data: bytes, headed: bool
) -> None:
    for decode in (ros.decode_trajectory, ros.decode_string, ros.decode_request):
        with contextlib.suppress(DecodeError):
            decode((HEADER if headed else b"") + data)


def test_a_length_that_cannot_be_is_refused_before_memory_is_taken_for_it() -> None:
    many = HEADER + bytes(8) + struct.pack("<I", 1) + bytes(4) + struct.pack("<I", 2**31)
    with pytest.raises(DecodeError):
        ros.decode_trajectory(many)


@pytest.mark.parametrize("kind", [*ros.DEFINITIONS])
def test_the_definitions_that_foxglove_is_told_have_the_fields_of_rosbags(kind: str) -> None:
    def fields(text: str) -> dict[str, list[str]]:
        parts = [part.strip().splitlines() for part in text.split("=" * 80)]
        found = {"": parts[0]} | {part[0].removeprefix("MSG: "): part[1:] for part in parts[1:]}
        return {
            name: [line for line in lines if line and "=" not in line]
            for name, lines in found.items()
        }

    theirs, _ = STORE.generate_msgdef(kind, ros_version=2)
    byte = ros.DEFINITIONS[kind].replace("byte level", "octet level")
    assert fields(byte) == fields(theirs.replace("byte level", "octet level"))


# ---- the description ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "build", [build for family in families() for build in family.builds], ids=lambda b: b.name
)
def test_mujoco_reads_the_description_and_finds_every_link_where_we_do(build: Any) -> None:
    model = mujoco.MjModel.from_xml_string(urdf(build))
    data = mujoco.MjData(model)
    assert model.nq == len(build.joints)
    family = family_of(build)
    assert family is not None
    body = kinematics_of(family)
    chance = np.random.default_rng(3)
    pose = np.zeros((1, len(family.joints)))
    for joint in build.joints:
        value = chance.uniform(joint.lower_rad, joint.upper_rad)
        pose[0, [each.name for each in family.joints].index(joint.name)] = value
        data.joint(joint.name).qpos[0] = value
        assert model.joint(joint.name).range == pytest.approx((joint.lower_rad, joint.upper_rad))
    mujoco.mj_kinematics(model, data)
    frames = body.forward(pose)
    for joint in build.joints:
        ours = body.at(frames, (joint.link, (0.1, -0.2, 0.3)))[:, 0]
        there = data.body(joint.link)
        theirs = there.xpos + there.xmat.reshape(3, 3) @ (0.1, -0.2, 0.3)
        assert theirs == pytest.approx(ours, abs=1e-6)


def test_hands_that_a_robot_wears_are_described() -> None:
    family = family_of(G1_29)
    assert family is not None
    worn = attach_hands(G1_29, family.hands)
    model = mujoco.MjModel.from_xml_string(urdf(worn))
    assert model.nq == len(worn.joints) > len(G1_29.joints)
