"""The teaching frames against bytes made by hand, against themselves and against garbage."""

import contextlib
import dataclasses
import math
import random
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rote import messages as m
from rote.cli.wording import worded
from rote.errors import BadRequestError, ChecksumError, DecodeError, PayloadError, TruncatedError
from rote.wire.teaching import codec as wire
from rote.wire.teaching import state as teaching_state
from rote.wire.teaching.codec import CommandId, Frame, MessageType

# How long an example takes depends on what else the machine does, and proves nothing.
relaxed = settings(deadline=None)


# ---- bytes made by hand -------------------------------------------------------------------------


def sealed(kind: int, sequence: int, command: int, payload: bytes) -> bytes:
    """Write a frame field by field, as the table in spec/frames.md has them."""
    body = struct.pack(">B", kind)
    body += b"\xfe\xfd\x00"
    body += b"\x01\x00"
    body += struct.pack(">H", sequence)
    body += b"\x00\x00"
    body += b"\x00\x01"
    body += struct.pack(">B", command)
    body += struct.pack(">H", len(payload))
    body += payload
    return body + struct.pack(">I", zlib.crc32(body))


def word(*values: int) -> bytes:
    return struct.pack(f">{len(values)}I", *values).ljust(44, b"\0")


def floats(*values: float) -> bytes:
    return struct.pack(f">{len(values)}f", *values)


def slots(*keyframes: tuple[int, int, float]) -> bytes:
    return b"".join(struct.pack(">HHf", *keyframe) for keyframe in keyframes).ljust(160, b"\0")


def save_payload(  # every field with a value of its own, so that a test changes just one
    name: bytes = b"bow", frames: int = 0, flags: int = 1, keyframes: bytes = bytes(160)
) -> bytes:
    head = name.ljust(32, b"\0") + struct.pack(">IIII", 1_700_000_000, 2500, frames, flags)
    return head + keyframes + bytes(12)


def play_payload(action: int = 1, how: int = 0, keyframes: bytes = bytes(160)) -> bytes:
    return struct.pack(">IIII", action, 0, 0, how) + keyframes + bytes(8)


TWELVE = tuple(index / 4 for index in range(12))
ELEVEN = tuple(index / 8 for index in range(11))
STATE = m.RobotState(
    mode=501,
    arms_soft=True,
    recording=True,
    phase=m.Phase.RETURN,
    stopped_early=True,
    joints_rad=TWELVE,
    velocities_rad_s=tuple(-value for value in TWELVE),
    accelerometer_m_s2=(0.5, -0.5, 9.75),
    gyroscope_rad_s=(0.25, 0.0, -0.25),
    foot_force_n=(100.0, 101.0, 102.0, 103.0),
    time_us=0x0102030405060708,
)
STATE_FLAGS = 501 << 16 | 0b11_1111
STATE_PAYLOAD = (
    struct.pack(">I", STATE_FLAGS)
    + floats(*TWELVE)
    + floats(*(-value for value in TWELVE))
    + floats(0.5, -0.5, 9.75, 0.25, 0.0, -0.25)
    + floats(100.0, 101.0, 102.0, 103.0)
    + bytes.fromhex("0102030405060708")
)
KEYFRAMES = (
    m.Keyframe(joint=28, time_ms=65_535, value_rad=-1.5),
    m.Keyframe(joint=0, time_ms=10, value_rad=0.25),
)

POSE_UNITS = (-32_768, 32_767, 0, 1, -1, *range(100, 110))
POSE_RAD = tuple(units / 10_000 for units in POSE_UNITS)

GOLDEN: dict[str, tuple[m.Command, int, bytes]] = {
    "take control": (m.TakeControl(), 0x09, word(1)),
    "release control": (m.ReleaseControl(), 0x09, word(3)),
    "change mode": (m.ChangeMode(500), 0x09, word(2, 500)),
    "sync": (m.SyncParameters(), 0x0A, bytes(44)),
    "sync with data": (m.SyncParameters(b"\x01\x02"), 0x0A, b"\x01\x02" + bytes(42)),
    "hand": (
        m.MoveByHand("wave", 2500),
        0x0A,
        b"HAND" + struct.pack(">I", 2500) + b"wave".ljust(32, b"\0") + bytes(4),
    ),
    "begin stream": (m.BeginStream(), 0x0A, b"STRM" + bytes(40)),
    "pose": (
        m.StreamPose(0x01020304, 1.0, POSE_RAD),
        0x0A,
        b"POSE\x01\x02\x03\x04\xff\xff" + struct.pack(">15h", *POSE_UNITS) + bytes(4),
    ),
    "subscribe": (m.Subscribe(), 0x0B, bytes(44)),
    "subscribe to all": (m.Subscribe(all_joints=True), 0x0B, word(1)),
    "subscribe at length": (
        m.Subscribe(all_joints=True, flags=0x80000002, opaque=b"\x07" * 108),
        0x0B,
        bytes.fromhex("80000003") + b"\x07" * 108,
    ),
    "ready": (m.SignalReady(), 0x0C, word(1)),
    "enter teaching": (m.EnterTeaching(STATE), 0x0D, STATE_PAYLOAD),
    "keep teaching": (m.KeepTeaching(ELEVEN), 0x0D, floats(*ELEVEN)),
    "exit teaching": (m.ExitTeaching(), 0x0E, bytes(44)),
    "record": (m.Record(on=True), 0x0F, word(1)),
    "stop recording": (m.Record(on=False), 0x0F, bytes(44)),
    "list": (m.ListActions(), 0x1A, bytes(44)),
    "list with filter": (m.ListActions(0x01020304), 0x1A, word(0x01020304)),
    "save": (
        m.SaveAction(name="héllo", created_s=1_700_000_000, duration_ms=2500, frames=250),
        0x2B,
        save_payload(b"h\xc3\xa9llo", frames=250),
    ),
    "save keyframes": (
        m.SaveAction(
            name="a" * 31,
            created_s=1_700_000_000,
            duration_ms=2500,
            frames=2,
            save=False,
            loop=True,
            speed_modifier=True,
            keyframes=KEYFRAMES,
        ),
        0x2B,
        save_payload(b"a" * 31, 2, 0b110, slots((28, 65_535, -1.5), (0, 10, 0.25))),
    ),
    "play": (
        m.PlayAction(action=3, frames=7, duration_ms=1500, interpolation=m.Interpolation.SMOOTH),
        0x41,
        struct.pack(">IIII", 3, 7, 1500, 2) + bytes(168),
    ),
    "play keyframes": (
        m.PlayAction(
            action=15, interpolation=m.Interpolation.CUBIC, loop=True, keyframes=KEYFRAMES
        ),
        0x41,
        play_payload(15, 0x101, slots((28, 65_535, -1.5), (0, 10, 0.25))),
    ),
    "stop": (m.StopMotion(), 0x41, bytes(184)),
}
golden = pytest.mark.parametrize(
    ("message", "command", "payload"), GOLDEN.values(), ids=GOLDEN.keys()
)
USUAL = [sealed(0x17, 513, command, payload) for _, command, payload in GOLDEN.values()]
OTHERS = [
    sealed(0x80, 7, 0, b""),
    sealed(0x81, 8, 0, STATE_PAYLOAD),
    sealed(0x17, 9, 0x1A, struct.pack(">H", 1) + b"bow".ljust(32, b"\0") + word(2500) + bytes(142)),
]
VALID = USUAL + OTHERS
VALID_NAMES = [*GOLDEN, "heartbeat", "state", "action list"]


def accepted(datagram: bytes) -> bool:
    try:
        wire.decode(datagram)
    except DecodeError:
        return False
    return True


@golden
def test_a_command_is_written_byte_by_byte_as_documented(
    message: m.Command, command: int, payload: bytes
) -> None:
    assert wire.encode_command(message) == (command, payload)
    frame = Frame(command=command, sequence=513, payload=payload)
    assert wire.encode(frame) == sealed(0x17, 513, command, payload)


@golden
def test_documented_bytes_are_read_as_the_command_they_say(
    message: m.Command, command: int, payload: bytes
) -> None:
    frame = wire.decode(sealed(0x17, 65_535, command, payload))
    assert frame == Frame(command=command, sequence=65_535, payload=payload, type=0x17)
    assert wire.decode_command(frame.command, frame.payload) == message


UNSAYABLE = (
    m.DiscardRecording("wave"),
    m.RenameAction("wave", "hello"),
    m.DeleteAction("wave"),
    m.PlayPreset(27),
    m.Say("hello"),
    m.SetLight(1, 2, 3),
    m.PlaySound("1", bytes(4)),
    m.StopSound(),
    m.PauseRecording(paused=True),
    m.ReadMode(),
    m.ReadController(),
)


def test_every_command_has_golden_bytes_or_cannot_be_said() -> None:
    sayable = {type(message) for message, _, _ in GOLDEN.values()}
    assert sayable | {type(message) for message in UNSAYABLE} == set(m.Command.__args__)


@pytest.mark.parametrize("message", UNSAYABLE)
def test_what_teaching_frames_cannot_say_is_refused(message: m.Command) -> None:
    with pytest.raises(BadRequestError, match="have no command for"):
        wire.encode_command(message)


def test_one_whole_frame_in_hexadecimal() -> None:
    command, payload = wire.encode_command(m.Record(on=True))
    datagram = wire.encode(Frame(command=command, sequence=0x0102, payload=payload))
    start = "17 fefd00 0100 0102 0000 0001 0f 002c 00000001" + "00" * 40
    assert datagram[:-4] == bytes.fromhex(start)
    assert datagram[-4:] == bytes.fromhex("30cd3515")


@pytest.mark.parametrize(
    ("message", "size"),
    [
        (m.Record(on=True), 63),
        (m.EnterTeaching(), 167),
        (m.PlayAction(action=1), 203),
        (m.SaveAction(name="bow", created_s=0, duration_ms=0), 239),
    ],
)
def test_the_four_usual_frames_have_their_documented_sizes(message: m.Command, size: int) -> None:
    command, payload = wire.encode_command(message)
    assert len(wire.encode(Frame(command=command, sequence=0, payload=payload))) == size


def test_heartbeats_and_states_are_told_by_their_first_byte() -> None:
    heartbeat = Frame(command=0, sequence=7, type=MessageType.HEARTBEAT)
    assert wire.encode(heartbeat) == sealed(0x80, 7, 0, b"")
    state = Frame(command=0, sequence=8, payload=STATE_PAYLOAD, type=MessageType.STATE)
    assert wire.encode(state) == sealed(0x81, 8, 0, STATE_PAYLOAD)
    assert wire.decode(sealed(0x80, 7, 0, b"")) == heartbeat
    assert wire.decode(sealed(0x81, 8, 0, STATE_PAYLOAD)) == state


def test_entering_teaching_without_a_state_sends_the_damping_bit_and_zeros() -> None:
    assert wire.encode_command(m.EnterTeaching()) == (0x0D, b"\0\0\0\x01" + bytes(144))
    again = wire.decode_command(0x0D, b"\0\0\0\x01" + bytes(144))
    assert isinstance(again, m.EnterTeaching)
    assert again.state is not None
    assert again.state.arms_soft
    assert again.state.mode == teaching_state.UNKNOWN_MODE


def test_entering_teaching_sets_the_damping_bit_whatever_the_state_says() -> None:
    hard = m.RobotState(joints_rad=TWELVE, velocities_rad_s=TWELVE, arms_soft=False)
    _, payload = wire.encode_command(m.EnterTeaching(hard))
    assert payload[3] & 1


def test_a_status_reply_is_one_word_and_zeros() -> None:
    assert wire.encode_reply(m.Status()) == bytes(44)
    assert wire.encode_reply(m.Status(m.Code.WRONG_STATE)) == word(7404)
    assert wire.decode_reply(0x0F, word(7404)) == m.Status(7404)


@pytest.mark.parametrize(("count", "size"), [(0, 220), (1, 220), (6, 220), (7, 254), (15, 542)])
def test_an_action_list_grows_beyond_220_bytes_when_it_must(count: int, size: int) -> None:
    actions = tuple(m.ActionEntry(f"wave {n}", 1000 + n) for n in range(count))
    entries = b"".join(
        f"wave {n}".encode().ljust(32, b"\0") + struct.pack(">I", 1000 + n) for n in range(count)
    )
    payload = (struct.pack(">H", count) + entries).ljust(220, b"\0")
    assert len(payload) == size
    assert wire.encode_reply(m.ActionList(actions)) == payload
    assert wire.decode_reply(0x1A, payload) == m.ActionList(actions)


def test_a_list_request_may_be_answered_with_a_status() -> None:
    assert wire.decode_reply(0x1A, word(7410)) == m.Status(7410)


def test_a_state_is_148_bytes_with_the_first_twelve_joints() -> None:
    assert teaching_state.encode_state(STATE, all_joints=False) == STATE_PAYLOAD
    assert len(STATE_PAYLOAD) == 148
    assert teaching_state.decode_state(STATE_PAYLOAD) == STATE


def test_the_short_state_of_29_joints_holds_the_first_twelve() -> None:
    joints = tuple(float(index) for index in range(29))
    state = m.RobotState(joints_rad=joints, velocities_rad_s=joints)
    again = teaching_state.decode_state(teaching_state.encode_state(state, all_joints=False))
    assert again.joints_rad == again.velocities_rad_s == joints[:12]
    assert again.accelerometer_m_s2 == pytest.approx((0.0, 0.0, 9.81))


def test_a_state_with_all_joints_states_their_number() -> None:
    joints = tuple(index / 2 for index in range(29))
    state = m.RobotState(
        mode=teaching_state.UNKNOWN_MODE,
        joints_rad=joints,
        velocities_rad_s=joints[::-1],
        accelerometer_m_s2=(1.0, 2.0, 3.0),
        gyroscope_rad_s=(4.0, 5.0, 6.0),
        foot_force_n=(7.0, 8.0, 9.0, 10.0),
        time_us=2**64 - 1,
    )
    payload = (
        struct.pack(">IHH", 0, 29, 0)
        + floats(*joints)
        + floats(*joints[::-1])
        + floats(*range(1, 11))
        + b"\xff" * 8
    )
    assert teaching_state.encode_state(state, all_joints=True) == payload
    assert teaching_state.decode_state(payload) == state


def flagged(**fields: object) -> m.RobotState:
    values: dict[str, object] = {"mode": teaching_state.UNKNOWN_MODE, **fields}
    return m.RobotState(joints_rad=(), velocities_rad_s=(), **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "flags"),
    [
        (flagged(), 0),
        (flagged(arms_soft=True), 1),
        (flagged(recording=True), 2),
        (flagged(phase=m.Phase.APPROACH), 1 << 2),
        (flagged(phase=m.Phase.PLAYING), 2 << 2),
        (flagged(phase=m.Phase.RETURN), 3 << 2),
        (flagged(stopped_early=True), 1 << 4),
        (flagged(mode=0), 1 << 5),
        (flagged(mode=500), 500 << 16 | 1 << 5),
    ],
)
def test_each_flag_of_a_state_has_its_own_bits(state: m.RobotState, flags: int) -> None:
    payload = teaching_state.encode_state(state, all_joints=True)
    assert payload[:4] == struct.pack(">I", flags)
    again = teaching_state.decode_state(payload)
    assert dataclasses.replace(again, accelerometer_m_s2=state.accelerometer_m_s2) == state


@pytest.mark.parametrize("phase", list(m.Phase))
def test_a_state_that_has_a_phase_is_playing(phase: m.Phase) -> None:
    state = m.RobotState(joints_rad=TWELVE, velocities_rad_s=TWELVE, phase=phase)
    again = teaching_state.decode_state(teaching_state.encode_state(state, all_joints=False))
    assert again.phase is phase
    assert again.playing == (phase is not m.Phase.NONE)


# ---- there and back -----------------------------------------------------------------------------


def fitted(text: str) -> str:
    """Cut `text` until it is a legal name; a name may end up empty."""
    text = text.strip()
    while len(text.encode()) > 31:
        text = text[:-1].strip()
    return text


u32 = st.integers(0, 2**32 - 1)
float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
names = (
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=31)
    .map(fitted)
    .filter(bool)
)
keyframes = st.builds(
    m.Keyframe,
    joint=st.integers(0, 28),
    time_ms=st.integers(0, 65_535),
    value_rad=float32,
)
nonzero_keyframes = keyframes.filter(lambda k: (k.joint, k.time_ms, k.value_rad) != (0, 0, 0.0))
# The last one is not all zero: behind a used slot, that is how an unused one looks.
keyframe_lists = st.one_of(
    st.just(()),
    st.tuples(st.lists(keyframes, max_size=19), nonzero_keyframes).map(
        lambda parts: (*parts[0], parts[1])
    ),
)


def states(joints: int, *, soft: bool | None = None) -> st.SearchStrategy[m.RobotState]:
    def some(count: int) -> st.SearchStrategy[tuple[float, ...]]:
        return st.lists(float32, min_size=count, max_size=count).map(tuple)

    return st.builds(
        m.RobotState,
        mode=st.just(teaching_state.UNKNOWN_MODE) | st.integers(0, 65_535),
        arms_soft=st.booleans() if soft is None else st.just(soft),
        recording=st.booleans(),
        phase=st.sampled_from(m.Phase),
        stopped_early=st.booleans(),
        joints_rad=some(joints),
        velocities_rad_s=some(joints),
        accelerometer_m_s2=some(3),
        gyroscope_rad_s=some(3),
        foot_force_n=some(4),
        time_us=st.integers(0, 2**64 - 1),
    )


@st.composite
def saves(draw: st.DrawFn) -> m.SaveAction:
    chosen = draw(keyframe_lists)
    return m.SaveAction(
        name=draw(names),
        created_s=draw(u32),
        duration_ms=draw(u32),
        frames=len(chosen) or draw(u32),
        loop=draw(st.booleans()),
        save=draw(st.booleans()),
        speed_modifier=draw(st.booleans()),
        keyframes=chosen,
    )


def without_tail(data: bytes) -> bytes:
    return data.rstrip(b"\0")


poses = st.builds(
    m.StreamPose,
    u32,
    st.integers(0, 65_535).map(lambda units: units / 65_535),
    st.lists(
        st.integers(-32_768, 32_767).map(lambda units: units / 10_000), min_size=1, max_size=40
    ).map(tuple),
)
commands: st.SearchStrategy[m.Command] = st.one_of(
    st.just(m.TakeControl()),
    st.just(m.ReleaseControl()),
    st.builds(m.ChangeMode, u32),
    st.binary(max_size=44)
    .filter(lambda data: not data.startswith((b"HAND", b"STRM", b"POSE")))
    .map(without_tail)
    .map(m.SyncParameters),
    st.builds(m.MoveByHand, names, u32),
    st.just(m.BeginStream()),
    poses,
    st.builds(
        m.Subscribe,
        all_joints=st.booleans(),
        flags=u32.map(lambda flags: flags & ~1),
        opaque=st.binary(max_size=108).map(without_tail),
    ),
    st.just(m.SignalReady()),
    states(12, soft=True).map(m.EnterTeaching),
    st.lists(float32, min_size=11, max_size=11).map(tuple).map(m.KeepTeaching),
    st.just(m.ExitTeaching()),
    st.booleans().map(m.Record),
    u32.map(m.ListActions),
    saves(),
    st.builds(
        m.PlayAction,
        action=st.integers(1, 2**32 - 1),
        frames=u32,
        duration_ms=u32,
        interpolation=st.sampled_from(m.Interpolation),
        loop=st.booleans(),
        keyframes=keyframe_lists,
    ),
    st.just(m.StopMotion()),
)
entries = st.builds(m.ActionEntry, names, u32)
frames = st.builds(
    Frame,
    command=st.integers(0, 255),
    sequence=st.integers(0, 65_535),
    payload=st.binary(max_size=300),
    type=st.sampled_from([0x17, 0x80, 0x81]),
)


@relaxed
@given(frames)
def test_any_frame_comes_back_as_it_was(frame: Frame) -> None:
    datagram = wire.encode(frame)
    assert datagram == sealed(frame.type, frame.sequence, frame.command, frame.payload)
    assert wire.decode(datagram) == frame


@relaxed
@given(commands)
def test_any_command_comes_back_as_it_was(message: m.Command) -> None:
    command, payload = wire.encode_command(message)
    assert wire.decode_command(command, payload) == message


@relaxed
@given(poses, st.integers(0, 65_535))
def test_a_pose_bears_the_number_of_its_stream_and_is_known_as_one(
    pose: m.StreamPose, stream: int
) -> None:
    frame = wire.decode(wire.encode_pose(pose, stream))
    assert frame.sequence == stream
    assert wire.is_pose(frame)
    assert wire.decode_command(frame.command, frame.payload) == pose


@golden
def test_nothing_but_a_pose_is_taken_for_one(
    message: m.Command, command: int, payload: bytes
) -> None:
    assert wire.is_pose(Frame(command, 0, payload)) == isinstance(message, m.StreamPose)


@pytest.mark.parametrize("count", [1, 11, 14, 15, 16, 17, 255])
def test_the_length_of_a_pose_tells_its_number_of_joints(count: int) -> None:
    pose = m.StreamPose(7, 1.0, tuple(n / 100 for n in range(count)))
    command, payload = wire.encode_command(pose)
    assert len(payload) == (44 if count == 15 else 11 + 2 * count)
    assert wire.decode_command(command, payload) == pose


@pytest.mark.parametrize("size", [5, 11, 12, 42, 45, 46])
def test_a_pose_whose_length_and_number_of_joints_disagree_is_refused(size: int) -> None:
    _, payload = wire.encode_command(m.StreamPose(7, 1.0, (0.5,) * 11))
    with pytest.raises(PayloadError):
        wire.decode_command(CommandId.PARAMETER_SYNC, payload.ljust(size, b"\0")[:size])


def test_a_state_of_a_robot_with_few_joints_fills_the_documented_layout_with_zeros() -> None:
    small = m.RobotState(joints_rad=(0.5, 0.25, 0.125), velocities_rad_s=(1.0, 2.0, 3.0))
    read = teaching_state.decode_state(teaching_state.encode_state(small, all_joints=False))
    assert read.joints_rad == (0.5, 0.25, 0.125) + (0.0,) * 9
    assert read.velocities_rad_s == (1.0, 2.0, 3.0) + (0.0,) * 9
    whole = teaching_state.decode_state(teaching_state.encode_state(small, all_joints=True))
    assert whole.joints_rad == small.joints_rad


def test_a_pose_is_exact_to_half_a_unit() -> None:
    pose = m.StreamPose(0, 0.123_456_7, (1.234_567,) * 15)
    read = wire.decode_command(*wire.encode_command(pose))
    assert isinstance(read, m.StreamPose)
    assert read.weight == pytest.approx(pose.weight, abs=0.5 / 65_535)
    assert read.joints_rad == pytest.approx(pose.joints_rad, abs=0.5e-4)


def test_the_page_lists_every_code_with_its_words_and_remedy() -> None:
    page = (Path(__file__).parents[2] / "docs" / "protocol" / "frames.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:5]] for line in page.splitlines()]
    for code, (words, remedy) in m.CODE_TEXTS.items():
        assert [str(int(code)), m.Code(code).name, words, worded(remedy)] in rows


@relaxed
@given(u32, st.sampled_from(CommandId))
def test_any_status_comes_back_as_it_was(code: int, command: CommandId) -> None:
    assert wire.decode_reply(command, wire.encode_reply(m.Status(code))) == m.Status(code)


@relaxed
@given(st.lists(entries, max_size=15).map(tuple))
def test_any_action_list_comes_back_as_it_was(actions: tuple[m.ActionEntry, ...]) -> None:
    payload = wire.encode_reply(m.ActionList(actions))
    assert len(payload) == max(220, 2 + 36 * len(actions))
    assert wire.decode_reply(CommandId.LIST_ACTIONS, payload) == m.ActionList(actions)


@relaxed
@given(states(12))
def test_any_state_of_twelve_joints_comes_back_as_it_was(state: m.RobotState) -> None:
    assert (
        teaching_state.decode_state(teaching_state.encode_state(state, all_joints=False)) == state
    )


@relaxed
@given(st.sampled_from([0, 1, 11, 12, 23, 29]).flatmap(states))
def test_any_state_with_all_joints_comes_back_as_it_was(state: m.RobotState) -> None:
    assert teaching_state.decode_state(teaching_state.encode_state(state, all_joints=True)) == state


@relaxed
@given(keyframe_lists)
def test_keyframes_come_back_from_a_save_and_from_a_play(
    chosen: tuple[m.Keyframe, ...],
) -> None:
    save = m.SaveAction(name="bow", created_s=0, duration_ms=0, keyframes=chosen)
    saved = wire.decode_command(*wire.encode_command(save))
    assert isinstance(saved, m.SaveAction)
    assert saved.keyframes == chosen
    assert saved.frames == len(chosen)
    played = wire.decode_command(*wire.encode_command(m.PlayAction(action=1, keyframes=chosen)))
    assert isinstance(played, m.PlayAction)
    assert played.keyframes == chosen


# ---- bytes that are no frame --------------------------------------------------------------------


@relaxed
@given(st.binary(max_size=600) | st.binary(max_size=40).map(lambda tail: b"\x17\xfe\xfd\0" + tail))
def test_any_bytes_raise_nothing_but_decode_error(data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        wire.decode(data)


payloads = st.one_of(
    st.binary(max_size=600),
    *(st.binary(min_size=size, max_size=size) for size in (44, 112, 148, 184, 220, 288, 542)),
)


@relaxed
@given(st.integers(0, 255) | st.sampled_from(CommandId), payloads)
def test_any_payload_raises_nothing_but_decode_error(command: int, payload: bytes) -> None:
    with contextlib.suppress(DecodeError):
        wire.decode_command(command, payload)
    with contextlib.suppress(DecodeError):
        wire.decode_reply(command, payload)
    with contextlib.suppress(DecodeError):
        teaching_state.decode_state(payload)


@relaxed
@given(commands, st.randoms(use_true_random=False))
def test_a_damaged_payload_that_is_still_read_can_be_written_again(
    message: m.Command, rng: random.Random
) -> None:
    command, payload = wire.encode_command(message)
    damaged = bytearray(payload)
    for _ in range(rng.randint(1, 3)):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    try:
        read = wire.decode_command(command, bytes(damaged))
    except DecodeError:
        return
    assert wire.decode_command(*wire.encode_command(read)) == read


@pytest.mark.parametrize("datagram", VALID, ids=VALID_NAMES)
def test_every_single_flipped_bit_is_noticed(datagram: bytes) -> None:
    assert accepted(datagram)
    value = int.from_bytes(datagram, "big")
    for bit in range(8 * len(datagram)):
        assert not accepted((value ^ 1 << bit).to_bytes(len(datagram), "big")), bit


@pytest.mark.parametrize("datagram", VALID, ids=VALID_NAMES)
def test_every_shortened_frame_is_noticed(datagram: bytes) -> None:
    for size in range(len(datagram)):
        with pytest.raises(TruncatedError):
            wire.decode(datagram[:size])


@relaxed
@given(st.sampled_from(VALID), st.binary(min_size=1, max_size=300))
def test_every_lengthened_frame_is_noticed(datagram: bytes, more: bytes) -> None:
    with pytest.raises(DecodeError, match="follow the end"):
        wire.decode(datagram + more)


@relaxed
@given(st.sampled_from(VALID), st.integers(0, 65_535))
def test_a_length_field_that_lies_is_noticed_even_under_a_correct_crc(
    datagram: bytes, length: int
) -> None:
    body = datagram[:13] + struct.pack(">H", length) + datagram[15:-4]
    lying = body + struct.pack(">I", zlib.crc32(body))
    assert accepted(lying) == (length == len(datagram) - 19)


@relaxed
@given(st.sampled_from(VALID), st.data())
def test_any_few_changed_bytes_are_noticed(datagram: bytes, data: st.DataObject) -> None:
    # CRC-32 notices every burst of up to 32 bits.
    start = data.draw(st.integers(0, len(datagram) - 4))
    change = data.draw(st.binary(min_size=4, max_size=4).filter(any))
    burst = bytes(a ^ b for a, b in zip(datagram[start:], change, strict=False))
    assert not accepted(datagram[:start] + burst + datagram[start + 4 :])


@pytest.mark.parametrize(
    "offset",
    [0, 1, 2, 3, 4, 5, 8, 9, 10, 11],
)
def test_a_wrong_constant_in_the_header_is_refused_even_under_a_correct_crc(offset: int) -> None:
    body = bytearray(VALID[0][:-4])
    body[offset] ^= 0x40
    with pytest.raises(DecodeError, match="do not begin like a teaching frame"):
        wire.decode(bytes(body) + struct.pack(">I", zlib.crc32(body)))


def test_a_truncated_frame_says_how_much_it_lacks() -> None:
    with pytest.raises(TruncatedError) as caught:
        wire.decode(VALID[0][:-1])
    assert (caught.value.needed, caught.value.got) == (63, 62)
    with pytest.raises(TruncatedError) as caught:
        wire.decode(b"")
    assert (caught.value.needed, caught.value.got) == (19, 0)


def test_a_failed_crc_shows_both_sums_and_mentions_dtls() -> None:
    stated = int.from_bytes(VALID[0][-4:], "big")
    with pytest.raises(ChecksumError, match="DTLS") as caught:
        wire.decode(VALID[0][:-4] + struct.pack(">I", stated ^ 1))
    assert (caught.value.stated, caught.value.computed) == (stated ^ 1, stated)


def test_a_real_dtls_record_is_refused_with_a_word_about_dtls() -> None:
    record = bytes.fromhex("17 fe fd 00 01 00 00 00 00 01 0d 00 2c") + bytes(range(44))
    with pytest.raises(DecodeError, match="DTLS"):
        wire.decode(record)


@relaxed
@given(st.integers(0, 2**48 - 1), st.binary(max_size=400))
def test_every_dtls_record_is_refused_with_a_word_about_dtls(number: int, sealed_: bytes) -> None:
    header = struct.pack(">BHH", 23, 0xFEFD, 1) + number.to_bytes(6, "big")
    with pytest.raises(DecodeError, match="DTLS"):
        wire.decode(header + struct.pack(">H", len(sealed_)) + sealed_)


def test_a_dtls_record_that_looks_too_long_for_a_frame_is_called_dtls_too() -> None:
    # Record 0 of 256 bytes: its number and the top half of its length pass for our constants.
    record = bytes.fromhex("17 fe fd 00 01 00 00 00 00 00 00 01 00") + bytes(256)
    with pytest.raises(DecodeError, match="DTLS"):
        wire.decode(record)


def test_bytes_unlike_dtls_are_not_called_dtls() -> None:
    with pytest.raises(DecodeError) as caught:
        wire.decode(b"GET / HTTP/1.1\r\nHost: robot\r\n\r\n")
    assert "DTLS" not in str(caught.value)


# ---- values that do not fit ---------------------------------------------------------------------

ONE = m.Keyframe(joint=1, time_ms=1, value_rad=1.0)
BAD_NAMES = {
    "empty": "",
    "blank": "   ",
    "32 bytes": "a" * 32,
    "31 characters of two bytes": "é" * 31,
    "32 bytes with the last character over the edge": "a" * 30 + "é",
    "32 bytes in four-byte characters": "🤖" * 8,
    "NUL inside": "a\0b",
    "NUL at the end": "bow\0",
    "newline inside": "a\nb",
    "escape": "a\x1b[31mb",
    "delete": "a\x7fb",
    "C1 control": "a\x85b",
    "space in front": " bow",
    "space behind": "bow ",
    "lone surrogate": "a\ud800",
}


def saving(name: str = "bow", **fields: object) -> m.SaveAction:
    values: dict[str, object] = {"created_s": 0, "duration_ms": 0, **fields}
    return m.SaveAction(name=name, **values)  # type: ignore[arg-type]  # also wrong values


def with_keyframe(joint: int = 1, time_ms: int = 1, value_rad: float = 1.0) -> m.PlayAction:
    chosen = m.Keyframe(joint=joint, time_ms=time_ms, value_rad=value_rad)
    return m.PlayAction(action=1, keyframes=(chosen,))


def with_state(value: float) -> m.EnterTeaching:
    return m.EnterTeaching(
        m.RobotState(joints_rad=(value,) * 12, velocities_rad_s=(0.0,) * 12, arms_soft=True)
    )


DO_NOT_FIT: dict[str, m.Command] = {
    "mode over u32": m.ChangeMode(2**32),
    "negative mode": m.ChangeMode(-1),
    "parameters too long": m.SyncParameters(bytes(range(45))),
    "parameters that read as a hand": m.SyncParameters(b"HAND over"),
    "parameters that read as a stream": m.SyncParameters(b"STRM"),
    "parameters that read as a pose": m.SyncParameters(b"POSE"),
    "pose beyond i16": m.StreamPose(0, 1.0, (3.2768,) * 15),
    "pose below i16": m.StreamPose(0, 1.0, (-3.2769,) * 15),
    "pose of NaN": m.StreamPose(0, 1.0, (math.nan,) * 15),
    "pose of infinity": m.StreamPose(0, 1.0, (math.inf,) * 15),
    "pose of no joints": m.StreamPose(0, 1.0, ()),
    "pose of too many joints": m.StreamPose(0, 1.0, (0.0,) * 256),
    "weight above 1": m.StreamPose(0, 1.001, (0.0,) * 15),
    "weight below 0": m.StreamPose(0, -0.001, (0.0,) * 15),
    "weight of NaN": m.StreamPose(0, math.nan, (0.0,) * 15),
    "negative pose number": m.StreamPose(-1, 0.0, (0.0,) * 15),
    "pose number over u32": m.StreamPose(2**32, 0.0, (0.0,) * 15),
    "negative hand duration": m.MoveByHand("wave", -1),
    "hand without name": m.MoveByHand("", 1),
    "subscription too long": m.Subscribe(opaque=bytes(109)),
    "filter flags over u32": m.Subscribe(flags=2**32),
    "NaN in the state": with_state(math.nan),
    "infinity in the state": with_state(math.inf),
    "state beyond float32": with_state(1e39),
    "state with a speed too few": m.EnterTeaching(
        m.RobotState(joints_rad=(0.0,) * 12, velocities_rad_s=(0.0,) * 11)
    ),
    "ten compensation values": m.KeepTeaching((0.0,) * 10),
    "compensation beyond float32": m.KeepTeaching((1e39,) * 11),
    "NaN compensation": m.KeepTeaching((math.nan,) + (0.0,) * 10),
    "infinite compensation": m.KeepTeaching((math.inf,) + (0.0,) * 10),
    "list filter over u32": m.ListActions(2**32),
    "creation before 1970": saving(created_s=-1),
    "creation after u32": saving(created_s=2**32),
    "negative duration": saving(duration_ms=-1),
    "duration over u32": saving(duration_ms=2**32),
    "frames over u32": saving(frames=2**32),
    "too many keyframes to save": saving(keyframes=(ONE,) * 21),
    "keyframes of only zeros": saving(
        keyframes=(m.Keyframe(joint=0, time_ms=0, value_rad=0.0),) * 2
    ),
    "too many keyframes to play": m.PlayAction(action=1, keyframes=(ONE,) * 21),
    "all-zero keyframe at the end of a play": m.PlayAction(
        action=1, keyframes=(ONE, m.Keyframe(joint=0, time_ms=0, value_rad=0.0))
    ),
    "keyframe at the end of a play that float32 rounds to zero": m.PlayAction(
        action=1, keyframes=(ONE, m.Keyframe(joint=0, time_ms=0, value_rad=1e-60))
    ),
    "joint 29": with_keyframe(joint=29),
    "joint -1": with_keyframe(joint=-1),
    "keyframe of NaN": with_keyframe(value_rad=math.nan),
    "keyframe of infinity": with_keyframe(value_rad=-math.inf),
    "keyframe beyond float32": with_keyframe(value_rad=1e39),
    "keyframe after 65.535 s": with_keyframe(time_ms=65_536),
    "keyframe before the start": with_keyframe(time_ms=-1),
    "action 0, which would stop": m.PlayAction(action=0),
    "negative action": m.PlayAction(action=-1),
    "action over u32": m.PlayAction(action=2**32),
    "play frames over u32": m.PlayAction(action=1, frames=2**32),
    "negative play duration": m.PlayAction(action=1, duration_ms=-1),
    **{f"name: {why}": saving(name) for why, name in BAD_NAMES.items()},
}


@pytest.mark.parametrize("message", DO_NOT_FIT.values(), ids=DO_NOT_FIT.keys())
def test_a_command_with_a_value_that_does_not_fit_is_a_bad_request(message: m.Command) -> None:
    with pytest.raises(BadRequestError):
        wire.encode_command(message)


@pytest.mark.parametrize("name", ["a" * 31, "é" * 15 + "a", "🤖" * 7 + "abc", "a b", "ß"])
def test_a_name_may_fill_its_31_bytes(name: str) -> None:
    again = wire.decode_command(*wire.encode_command(saving(name)))
    assert isinstance(again, m.SaveAction)
    assert again.name == name


def test_a_name_that_is_too_long_is_told_its_size_and_never_cut() -> None:
    with pytest.raises(BadRequestError, match=r"32 bytes.*at most 31") as caught:
        wire.encode_command(saving("a" * 30 + "é"))
    assert caught.value.remedy


@pytest.mark.parametrize(
    "reply",
    [
        m.ActionList(tuple(m.ActionEntry(f"a{n}", 0) for n in range(16))),
        m.ActionList((m.ActionEntry("a" * 32, 0),)),
        m.ActionList((m.ActionEntry("", 0),)),
        m.ActionList((m.ActionEntry("bow", -1),)),
        m.ActionList((m.ActionEntry("bow", 2**32),)),
        m.Status(-1),
        m.Status(2**32),
    ],
    ids=[
        "16 actions",
        "name of 32 bytes",
        "empty name",
        "negative duration",
        "duration over u32",
        "negative code",
        "code over u32",
    ],
)
def test_a_reply_with_a_value_that_does_not_fit_is_a_bad_request(reply: m.Reply) -> None:
    with pytest.raises(BadRequestError):
        wire.encode_reply(reply)


STATES_THAT_DO_NOT_FIT: dict[str, m.RobotState] = {
    "NaN": m.RobotState(joints_rad=(math.nan,) * 12, velocities_rad_s=TWELVE),
    "infinity": m.RobotState(joints_rad=(math.inf,) * 12, velocities_rad_s=TWELVE),
    "opposite infinities": m.RobotState(
        joints_rad=(math.inf,) * 12, velocities_rad_s=(-math.inf,) * 12
    ),
    "beyond float32": m.RobotState(joints_rad=(3.5e38,) * 12, velocities_rad_s=TWELVE),
    "negative time": m.RobotState(joints_rad=TWELVE, velocities_rad_s=TWELVE, time_us=-1),
    "time over u64": m.RobotState(joints_rad=TWELVE, velocities_rad_s=TWELVE, time_us=2**64),
    "mode over u16": m.RobotState(joints_rad=TWELVE, velocities_rad_s=TWELVE, mode=65_536),
    "mode under -1": m.RobotState(joints_rad=TWELVE, velocities_rad_s=TWELVE, mode=-2),
    "a velocity missing": m.RobotState(joints_rad=TWELVE, velocities_rad_s=ELEVEN),
    "a foot missing": m.RobotState(
        joints_rad=TWELVE, velocities_rad_s=TWELVE, foot_force_n=(0.0,) * 3
    ),
}


@pytest.mark.parametrize("all_joints", [False, True])
@pytest.mark.parametrize(
    "state", STATES_THAT_DO_NOT_FIT.values(), ids=STATES_THAT_DO_NOT_FIT.keys()
)
def test_a_state_with_a_value_that_does_not_fit_is_a_bad_request(
    state: m.RobotState, all_joints: bool
) -> None:
    with pytest.raises(BadRequestError):
        teaching_state.encode_state(state, all_joints=all_joints)


@pytest.mark.parametrize(
    "frame",
    [
        Frame(command=256, sequence=0),
        Frame(command=-1, sequence=0),
        Frame(command=0, sequence=65_536),
        Frame(command=0, sequence=-1),
        Frame(command=0, sequence=0, type=256),
        Frame(command=0, sequence=0, payload=bytes(65_507 - 19 + 1)),
    ],
    ids=["command 256", "command -1", "sequence 65536", "sequence -1", "type 256", "payload"],
)
def test_a_frame_with_a_value_that_does_not_fit_is_a_bad_request(frame: Frame) -> None:
    with pytest.raises(BadRequestError):
        wire.encode(frame)


def test_the_largest_payload_fills_a_datagram_to_the_brim() -> None:
    frame = Frame(command=1, sequence=2, payload=b"\x5a" * (65_507 - 19))
    datagram = wire.encode(frame)
    assert len(datagram) == 65_507
    assert wire.decode(datagram) == frame


# ---- payloads that may not be -------------------------------------------------------------------

NAN = struct.pack(">f", math.nan)
INFINITY = struct.pack(">f", math.inf)
USED = slots((1, 1, 1.0))
REFUSED: dict[str, tuple[int, bytes, str]] = {
    "control mode 4": (0x09, word(4), "unknown control mode 4"),
    "hand without a name": (0x0A, b"HAND" + bytes(40), "cannot be used"),
    "hand without a closing zero": (0x0A, b"HAND" + b"a" * 40, "not terminated by a zero"),
    "ready that says 2": (0x0C, word(2), "neither 0 nor 1"),
    "teaching without damping": (0x0D, bytes(148), "damping"),
    "NaN in the teaching state": (0x0D, b"\0\0\0\1" + NAN + bytes(140), "non-finite value"),
    "NaN in the compensation": (0x0D, bytes(40) + NAN, "non-finite value"),
    "infinity in the compensation": (0x0D, INFINITY + bytes(40), "non-finite value"),
    "opposite infinities": (0x0D, INFINITY + b"\xff\x80\0\0" + bytes(36), "non-finite value"),
    "record flag 2": (0x0F, word(2), "0 or 1, not 2"),
    "name without closing zero": (0x2B, save_payload(b"a" * 32), "not terminated by a zero"),
    "name with bytes behind its zero": (
        0x2B,
        save_payload(b"bow\0w"),
        "after its terminating zero",
    ),
    "name that is not UTF-8": (0x2B, save_payload(b"b\xffw"), "not UTF-8"),
    "name cut inside a character": (0x2B, save_payload(b"bow\xc3"), "not UTF-8"),
    "name with an encoded surrogate": (0x2B, save_payload(b"\xed\xa0\x80"), "not UTF-8"),
    "name with an overlong NUL": (0x2B, save_payload(b"a\xc0\x80"), "not UTF-8"),
    "name that is empty": (0x2B, save_payload(b""), "it is empty"),
    "name with control characters": (0x2B, save_payload(b"a\x1bb"), "control characters"),
    "name with a space behind": (0x2B, save_payload(b"bow "), "space"),
    "keyframes behind the count": (
        0x2B,
        save_payload(frames=1, keyframes=slots((1, 1, 1.0), (1, 2, 1.0))),
        "after the stated number",
    ),
    "keyframes and a count of 0": (0x2B, save_payload(keyframes=USED), "after the stated number"),
    "count over 20": (0x2B, save_payload(frames=21, keyframes=USED), "at most 20"),
    "count of four billion": (
        0x2B,
        save_payload(frames=2**32 - 1, keyframes=USED),
        "at most 20",
    ),
    "save keyframe for joint 29": (
        0x2B,
        save_payload(frames=1, keyframes=slots((29, 1, 1.0))),
        "joint 29",
    ),
    "save keyframe of NaN": (
        0x2B,
        save_payload(frames=1, keyframes=slots((1, 1, math.nan))),
        "nan",
    ),
    "interpolation 3": (0x41, play_payload(how=3), "unknown interpolation 3"),
    "interpolation with a strange bit": (0x41, play_payload(how=0x200), "unknown interpolation"),
    "play keyframe for joint 29": (0x41, play_payload(keyframes=slots((29, 1, 1.0))), "joint 29"),
    "play keyframe of infinity": (
        0x41,
        play_payload(keyframes=slots((1, 1, math.inf))),
        "inf",
    ),
}


@pytest.mark.parametrize(
    ("command", "payload", "words"), REFUSED.values(), ids=list(REFUSED.keys())
)
def test_a_payload_that_holds_what_it_may_not_is_refused(
    command: int, payload: bytes, words: str
) -> None:
    with pytest.raises(PayloadError, match=words):
        wire.decode_command(command, payload)


@pytest.mark.parametrize(
    ("command", "message"), [(0x09, m.TakeControl()), (0x0C, m.SignalReady())], ids=str
)
def test_zeros_mean_what_the_documents_own_controller_means(
    command: int, message: m.Command
) -> None:
    assert wire.decode_command(command, bytes(44)) == message


# ---- notes in a status --------------------------------------------------------------------------


def test_a_status_says_more_in_the_bytes_behind_its_code() -> None:
    status = m.Status(m.Code.BUSY, "[2001:db8::7]:49504 is teaching")
    payload = wire.encode_reply(status)
    assert payload == word(7400)[:4] + b"[2001:db8::7]:49504 is teaching".ljust(40, b"\0")
    assert wire.decode_reply(0x41, payload) == status


def test_a_note_that_does_not_fit_is_not_cut() -> None:
    assert len(wire.encode_reply(m.Status(0, "é" * 19))) == 44
    with pytest.raises(BadRequestError, match="40 bytes; at most 39"):
        wire.encode_reply(m.Status(0, "é" * 20))


@pytest.mark.parametrize("rest", [b"\xff\xfe", b"two\nlines", b"\x1b[31m", b"\0behind the end"])
def test_bytes_that_are_no_note_leave_the_status_as_it_is(rest: bytes) -> None:
    payload = struct.pack(">I", 7400) + rest.ljust(40, b"\0")
    assert wire.decode_reply(0x41, payload) == m.Status(7400)


@pytest.mark.parametrize("change", [-44, -1, 1, 200])
@golden
def test_a_payload_of_the_wrong_length_is_refused(
    message: m.Command, command: int, payload: bytes, change: int
) -> None:
    if command == 0x0B:
        change = {-44: -len(payload), -1: -len(payload) + 43, 1: 113 - len(payload)}.get(change, 99)
    wrong = payload[:change] if change < 0 else payload + bytes(change)
    with pytest.raises(PayloadError, match="bytes long"):
        wire.decode_command(command, wrong)
    assert wire.decode_command(command, payload) == message


@pytest.mark.parametrize("command", [0x00, 0x01, 0x08, 0x10, 0x42, 0xFF])
def test_an_unknown_command_is_a_decode_error_that_names_it(command: int) -> None:
    with pytest.raises(DecodeError, match=f"0x{command:02x}"):
        wire.decode_command(command, bytes(44))


def test_a_save_without_keyframes_may_state_any_number_of_recorded_frames() -> None:
    read = wire.decode_command(0x2B, save_payload(frames=18_000))
    assert isinstance(read, m.SaveAction)
    assert (read.frames, read.keyframes) == (18_000, ())


def test_a_save_says_whether_it_may_replace_an_action_in_a_bit_that_was_unused() -> None:
    save = m.SaveAction(name="bow", created_s=0, duration_ms=1000, replace=True)
    command, payload = wire.encode_command(save)
    assert int.from_bytes(payload[44:48]) == 0b1001
    assert wire.decode_command(command, payload) == save
    command, payload = wire.encode_command(dataclasses.replace(save, replace=False))
    assert int.from_bytes(payload[44:48]) == 0b0001


@pytest.mark.parametrize("name", ["a/b", "a\u202eb", "a\u2028b"])
def test_a_list_may_hold_names_that_no_new_action_gets(name: str) -> None:
    listed = m.ActionList((m.ActionEntry(name, 1000),))
    assert wire.decode_reply(0x1A, wire.encode_reply(listed)) == listed


def test_a_play_of_action_0_stops_whatever_else_it_says() -> None:
    # Stopping is always allowed: damage elsewhere in the payload must not keep a robot moving.
    odd = play_payload(action=0, how=77, keyframes=slots((29, 1, math.nan)))
    assert wire.decode_command(0x41, odd) == m.StopMotion()


def in_short(value: object) -> str:
    """Return a test's id without its bytes."""
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)


def listing(count: int, *names: bytes, size: int = 220) -> bytes:
    body = b"".join(name.ljust(32, b"\0") + bytes(4) for name in names)
    return (struct.pack(">H", count) + body).ljust(size, b"\0")


@pytest.mark.parametrize(
    ("command", "payload", "words"),
    [
        (0x0F, bytes(43), "44 bytes long"),
        (0x0F, bytes(45), "44 bytes long"),
        (0x0F, bytes(220), "44 bytes long"),
        (0x1A, b"", "at least 220"),
        (0x1A, bytes(219), "at least 220"),
        (0x1A, listing(7, *[b"a"] * 6), "220 bytes cannot hold a list of 7 actions"),
        (0x1A, listing(16, *[b"a"] * 16, size=600), "16 actions"),
        (0x1A, listing(65_535), "65535 actions"),
        (0x1A, listing(1), "it is empty"),
        (0x1A, listing(1, b"a" * 32), "not terminated by a zero"),
        (0x1A, listing(2, b"bow", b"\xff"), "not UTF-8"),
    ],
    ids=in_short,
)
def test_a_reply_that_holds_what_it_may_not_is_refused(
    command: int, payload: bytes, words: str
) -> None:
    with pytest.raises(PayloadError, match=words):
        wire.decode_reply(command, payload)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"", "0 bytes"),
        (bytes(7), "7 bytes"),
        (bytes(8), "8 bytes for 0 joints"),
        (bytes(147), "147 bytes"),
        (bytes(149), "149 bytes"),
        (struct.pack(">IHH", 0, 29, 1) + bytes(280), "29 joints"),
        (struct.pack(">IHH", 0, 28, 0) + bytes(280), "28 joints"),
        (struct.pack(">IHH", 0, 1001, 0) + bytes(8 * 1001 + 48), "1001 joints"),
        (struct.pack(">IHH", 0, 65_535, 0) + bytes(280), "65535 joints"),
        (bytes(4) + NAN + bytes(140), "non-finite value"),
        (struct.pack(">IHH", 0, 1, 0) + INFINITY + bytes(52), "non-finite value"),
    ],
    ids=in_short,
)
def test_a_state_that_holds_what_it_may_not_is_refused(payload: bytes, words: str) -> None:
    with pytest.raises(PayloadError, match=words):
        teaching_state.decode_state(payload)


def test_a_reply_of_another_wire_cannot_be_said() -> None:
    with pytest.raises(BadRequestError, match="have no reply for"):
        wire.encode_reply(m.Controller("ai"))
