"""The table of fields says what the codec does, and every claim names its documents."""

import re

import pytest

from rote import messages as m
from rote.errors import DecodeError
from rote.wire.teaching import codec as teaching
from rote.wire.teaching import state as teaching_state
from rote.wire.teaching.explain import explain, explain_incomplete
from rote.wire.teaching.fields import (
    BY_KEY,
    CRC,
    DOCUMENTS,
    HEADER,
    LAYOUTS,
    MODE_FLAGS,
    FieldBits,
    FieldGrade,
    FrameDirection,
    FrameField,
    find_direction,
    find_layout,
    read_fields,
    write_payload,
)

STATE = m.RobotState(
    mode=500,
    arms_soft=True,
    joints_rad=tuple(n / 4 for n in range(12)),
    velocities_rad_s=tuple(-n / 4 for n in range(12)),
    time_us=123_456,
)
KEYFRAMES = (
    m.Keyframe(joint=15, time_ms=100, value_rad=0.5),
    m.Keyframe(joint=28, time_ms=65_535, value_rad=-0.25),
)
SAVE = m.SaveAction(
    name="Grüße", created_s=1_675_127_424, duration_ms=5000, loop=True, keyframes=KEYFRAMES
)
PLAY = m.PlayAction(
    action=3, frames=7, duration_ms=4000, interpolation=m.Interpolation.CUBIC, keyframes=KEYFRAMES
)
ROWS = [{"joint": k.joint, "time_ms": k.time_ms, "value_rad": k.value_rad} for k in KEYFRAMES]
SAID: list[tuple[m.Command, str, dict[str, object]]] = [
    (m.TakeControl(), "control-mode", {"mode": 1, "target": 0}),
    (m.ChangeMode(4), "control-mode", {"mode": 2, "target": 4}),
    (m.SyncParameters(b"\7"), "parameter-sync", {"parameters": b"\7".ljust(44, b"\0")}),
    (m.MoveByHand("bow", 900), "hand", {"tag": b"HAND", "duration_ms": 900, "script": "bow"}),
    (m.BeginStream(), "stream", {"tag": b"STRM"}),
    (m.StreamPose(9, 1.0, (0.5,) * 15), "pose", {"number": 9, "positions": [5000] * 15}),
    (m.StreamPose(9, 0.0, (-0.5,) * 3), "pose-n", {"joints": 3, "positions": [-5000] * 3}),
    (m.Subscribe(all_joints=True, opaque=b"ab"), "subscribe", {"filter": 1}),
    (m.Subscribe(opaque=b"x" * 60), "subscribe", {"filter": 0, "opaque": b"x" * 60}),
    (m.SignalReady(), "ready", {"ready": 1}),
    (
        m.EnterTeaching(STATE),
        "enter-teaching",
        {
            "mode_flags": 500 << 16 | 1 << 5 | 1,
            "joints_rad": list(STATE.joints_rad),
            "velocities_rad_s": list(STATE.velocities_rad_s),
            "gyroscope_rad_s": [0, 0, 0],
            "time_us": 123_456,
        },
    ),
    (m.KeepTeaching((0.5,) * 11), "keep-teaching", {"compensation": [0.5] * 11}),
    (m.ExitTeaching(), "exit-teaching", {"zero": bytes(44)}),
    (m.Record(True), "record", {"on": 1}),
    (m.Record(False), "record", {"on": 0}),
    (m.ListActions(), "list", {"filter": 0}),
    (
        SAVE,
        "save",
        {
            "name": "Grüße",
            "created_s": 1_675_127_424,
            "duration_ms": 5000,
            "frames": 2,
            "save_flags": 3,
            "keyframes": ROWS,
        },
    ),
    (
        PLAY,
        "play",
        {"action": 3, "frames": 7, "duration_ms": 4000, "interpolation": 1, "keyframes": ROWS},
    ),
    (m.StopMotion(), "play", {"action": 0, "keyframes": []}),
]


@pytest.mark.parametrize(("message", "key", "fields"), SAID, ids=lambda part: str(part)[:24])
def test_what_the_codec_writes_is_read_field_by_field(
    message: m.Command, key: str, fields: dict[str, object]
) -> None:
    command, payload = teaching.encode_command(message)
    layout = find_layout(teaching.MessageType.COMMAND, command, payload, reply=False)
    assert layout is not None
    assert layout.key == key
    values = list(read_fields(layout.fields, payload))
    found = {value.field.name: value.value for value in values}
    assert {name: found[name] for name in fields} == fields
    assert sum(len(value.raw) for value in values) == len(payload)
    assert b"".join(value.raw for value in values) == payload


@pytest.mark.parametrize(("message", "key", "fields"), SAID, ids=lambda part: str(part)[:24])
def test_what_is_written_from_fields_is_what_the_codec_writes(
    message: m.Command, key: str, fields: dict[str, object]
) -> None:
    command, payload = teaching.encode_command(message)
    values = {value.field.name: value.value for value in read_fields(BY_KEY[key].fields, payload)}
    assert write_payload(BY_KEY[key], values) == payload
    assert BY_KEY[key].command == command


def test_every_command_of_the_codec_has_a_layout() -> None:
    requests = {one.command for one in LAYOUTS if one.direction is FrameDirection.REQUEST}
    assert requests == teaching.COMMANDS


def test_both_replies_are_read() -> None:
    listed = m.ActionList((m.ActionEntry("wave", 5000), m.ActionEntry("Grüße", 11_800)))
    for reply, key in ((listed, "list-reply"), (m.Status(m.Code.BUSY), "status")):
        payload = teaching.encode_reply(reply)
        layout = find_layout(teaching.MessageType.COMMAND, 0x1A, payload, reply=True)
        assert layout is BY_KEY[key]
    values = {
        v.field.name: v
        for v in read_fields(BY_KEY["list-reply"].fields, teaching.encode_reply(listed))
    }
    assert values["actions"].value == [
        {"name": "wave", "duration_ms": 5000},
        {"name": "Grüße", "duration_ms": 11_800},
    ]
    assert len(values["zero"].raw) == 146
    (code, _) = read_fields(BY_KEY["status"].fields, teaching.encode_reply(m.Status(m.Code.BUSY)))
    assert code.meaning == m.explain(m.Code.BUSY)[0]


@pytest.mark.parametrize("joints", [0, 3, 29, 30])
def test_a_state_of_any_number_of_joints_is_read_to_its_end(joints: int) -> None:
    state = m.RobotState(joints_rad=(0.5,) * joints, velocities_rad_s=(1.5,) * joints, time_us=7)
    payload = teaching_state.encode_state(state, all_joints=True)
    layout = find_layout(teaching.MessageType.STATE, 0, payload, reply=False)
    assert layout is BY_KEY["state-all"]
    values = {value.field.name: value.value for value in read_fields(layout.fields, payload)}
    assert values["joints_rad"] == [0.5] * joints
    assert values["time_us"] == 7


def test_the_flags_of_a_state_are_read_bit_by_bit() -> None:
    state = m.RobotState(
        mode=500,
        arms_soft=True,
        recording=True,
        phase=m.Phase.PLAYING,
        stopped_early=True,
        joints_rad=(),
        velocities_rad_s=(),
    )
    (flags,) = read_fields(
        BY_KEY["state"].fields[:1], teaching_state.encode_state(state, all_joints=False)
    )
    assert flags.raw.hex(" ") == "01 f4 00 3b"
    assert {bits.name: bits.extract(flags.value) for bits in MODE_FLAGS} == {
        "damping": 1, "recording": 1, "phase": 2, "stopped_early": 1, "mode_known": 1,
        "unused": 0, "mode": 500,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("command", "payload", "direction"),
    [
        (0x0D, bytes(148), FrameDirection.REQUEST),
        (0x1A, bytes(220), FrameDirection.REPLY),
        (0x41, bytes(44), FrameDirection.REPLY),
        (0x41, bytes(184), FrameDirection.REQUEST),
        (0x0E, (7404).to_bytes(4) + bytes(40), FrameDirection.REPLY),
        (0x0C, bytes(44), None),
        (
            0x0D,
            (7400).to_bytes(4) + b"10.0.0.9:5000 is teaching".ljust(40, b"\0"),
            FrameDirection.REPLY,
        ),
        (0x0A, (7400).to_bytes(4) + b"x".ljust(40, b"\0"), FrameDirection.REQUEST),
        (0x0F, (1).to_bytes(4) + bytes(40), FrameDirection.REQUEST),
        (0x0D, bytes.fromhex("7f7f7f7f") * 11, FrameDirection.REQUEST),
        (0x0E, bytes(44), None),
    ],
)
def test_a_frame_alone_tells_its_direction_where_it_can(
    command: int, payload: bytes, direction: FrameDirection | None
) -> None:
    assert find_direction(teaching.MessageType.COMMAND, command, payload) is direction


def test_a_frame_with_a_wrong_checksum_is_explained_and_said_to_be_wrong() -> None:
    printed = (  # the list request of document 004, which calls its checksum verified
        "17 fe fd 00 01 00 00 01 00 00 00 01 1a 00 2c" + " 00" * 44 + " 8c 3f a5 12"
    )
    found = explain(bytes.fromhex(printed))
    assert not found.crc_valid
    assert found.document()["fields"]["sequence"]["value"] == 1
    assert found.layout is BY_KEY["list"]


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(DecodeError, match="DTLS"):
        explain(bytes.fromhex("17fefd0001000000000109002c") + bytes(44))


def all_fields() -> list[tuple[str, FrameField | FieldBits]]:
    rows: list[tuple[str, FrameField | FieldBits]] = [("header", one) for one in (*HEADER, CRC)]
    for layout in LAYOUTS:
        for one in layout.fields:
            rows.append((layout.key, one))
            rows += [(layout.key, part) for part in one.parts]
            rows += [(layout.key, bits) for bits in one.bits]
    return rows


@pytest.mark.parametrize(("key", "one"), all_fields(), ids=lambda part: str(part)[:30])
def test_a_claim_that_rests_on_documents_names_them(key: str, one: FrameField | FieldBits) -> None:
    known = {document.key for document in DOCUMENTS}
    named = set(re.findall(r"`(\d\d\d)`", one.why))
    assert named <= known
    if one.grade is FieldGrade.CONTRADICTED:
        assert named or "as above" in one.why or one.why == "see its parts", key
    elif one.grade is FieldGrade.STATED:
        assert named, key


def test_no_bytes_at_all_are_no_frame() -> None:
    with pytest.raises(DecodeError):
        explain_incomplete(b"")
