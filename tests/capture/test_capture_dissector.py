"""The dissector for Wireshark, through tshark, on captures whose every byte is known."""

from pathlib import Path

import pytest

from capture.recorded import needs, tshark
from rote import messages as m
from rote.capture.decode.decrypt import decrypt
from rote.capture.model import Datagram
from rote.capture.report import dissector
from rote.capture.synthetic import build as make
from rote.capture.synthetic import ethernet
from rote.capture.synthetic import script as story
from rote.wire.a1 import codec as a1
from rote.wire.a1 import values as a1_values
from rote.wire.services import rpc
from rote.wire.teaching import codec as teaching
from rote.wire.teaching import state as teaching_state

pytestmark = needs("tshark")
ENDS = (("10.0.0.1", 1000), ("10.0.0.2", 2000))


@pytest.fixture(name="lua")
def _lua(tmp_path: Path) -> tuple[str, str]:
    path = tmp_path / "rote.lua"
    path.write_text(dissector.generate_dissector(), encoding="utf-8")
    return ("-X", f"lua_script:{path}")


def capture(folder: Path, *payloads: bytes) -> Path:
    path = folder / "a.pcap"
    ethernet.write(path, (Datagram(n, *ENDS, one) for n, one in enumerate(payloads)))
    return path


def test_no_table_is_missing() -> None:
    assert "@" not in dissector.generate_dissector()


@pytest.mark.slow
def test_teaching_frames_are_shown_as_our_codec_reads_them(
    lua: tuple[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "frames.pcap"
    make.make(path, "frames")
    names = ("type", "sequence", "command", "length", "crc")
    rows = tshark(path, *lua, fields=tuple(f"rote_teaching.{name}" for name in names))
    assert len(rows) == len(story.frames())
    for row, made in zip(rows, story.frames(), strict=True):
        frame = teaching.decode(made.payload)
        crc = int.from_bytes(made.payload[-4:])
        size = len(frame.payload)
        assert [int(n, 0) for n in row] == [frame.type, frame.sequence, frame.command, size, crc]


@pytest.mark.slow
def test_what_is_in_a_teaching_frame_is_shown(lua: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "frames.pcap"
    make.make(path, "frames")
    fields = ("rote_teaching.name", "rote_teaching.duration_ms", "rote_teaching.action")
    rows = tshark(path, *lua, "-Y", "rote_teaching.name || rote_teaching.action", fields=fields)
    assert [story.NEW_NAME, str(int(story.TEACH_S * 1000)), ""] in rows
    assert ["", "0", "1"] in rows
    states = tshark(
        path, *lua, "-Y", "rote_teaching.type == 0x81", fields=("rote_teaching.state.position_0",)
    )
    frames = [teaching.decode(f.payload) for f in story.frames()]
    ours = [teaching_state.decode_state(f.payload) for f in frames if f.type == 0x81]
    for row, state in zip(states, ours, strict=True):
        assert float(row[0]) == pytest.approx(state.joints_rad[0], abs=1e-5)


def spoken(folder: Path, *said: tuple[bool, teaching.Frame]) -> Path:
    """Write frames as a capture; True is what the client (the first end) sends."""
    path = folder / "spoken.pcap"
    ethernet.write(
        path,
        (
            Datagram(n * 1000, *(ENDS if asks else ENDS[::-1]), teaching.encode(frame))
            for n, (asks, frame) in enumerate(said)
        ),
    )
    return path


def asked(message: m.Command, sequence: int) -> tuple[bool, teaching.Frame]:
    command, payload = teaching.encode_command(message)
    return True, teaching.Frame(command, sequence, payload)


def answered(command: int, reply: m.Reply, sequence: int) -> tuple[bool, teaching.Frame]:
    return False, teaching.Frame(command, sequence, teaching.encode_reply(reply))


@pytest.mark.slow
def test_a_reply_is_told_from_a_request_though_both_look_alike(
    lua: tuple[str, str], tmp_path: Path
) -> None:
    path = spoken(
        tmp_path,
        asked(m.ExitTeaching(), 7),
        answered(0x0E, m.Status(), 7),
        asked(m.EnterTeaching(), 8),
        answered(0x0D, m.Status(m.Code.WRONG_STATE), 8),
        asked(m.KeepTeaching(), 9),
        answered(0x0D, m.Status(), 9),
    )
    fields = ("direction", "kind", "code")
    rows = tshark(path, *lua, fields=tuple(f"rote_teaching.{name}" for name in fields))
    assert rows == [
        ["request", "exit-teaching", ""],
        ["reply", "status", "0"],
        ["request", "enter-teaching", ""],
        ["reply", "status", "7404"],
        ["request", "keep-teaching", ""],
        ["reply", "status", "0"],
    ]


@pytest.mark.slow
def test_the_words_of_a_status_code_are_in_the_packet_list(
    lua: tuple[str, str], tmp_path: Path
) -> None:
    path = spoken(tmp_path, answered(0x41, m.Status(m.Code.BUSY), 3))
    ((info,),) = tshark(path, *lua, fields=("_ws.col.Info",))
    assert info == f"play action, sequence 3, reply: 7400, {m.explain(7400)[0]}"


@pytest.mark.slow
def test_every_name_of_a_list_is_shown(lua: tuple[str, str], tmp_path: Path) -> None:
    actions = tuple(m.ActionEntry(f"action {n}", n * 100) for n in range(15))
    path = spoken(tmp_path, answered(0x1A, m.ActionList(actions), 4))
    fields = ("list.count", "list.name", "list.duration_ms")
    (row,) = tshark(path, *lua, fields=tuple(f"rote_teaching.{name}" for name in fields))
    names = ",".join(entry.name for entry in actions)
    assert row == ["15", names, ",".join(str(entry.duration_ms) for entry in actions)]


@pytest.mark.slow
def test_the_joints_of_enter_teaching_are_shown(lua: tuple[str, str], tmp_path: Path) -> None:
    state = m.RobotState(
        arms_soft=True,
        joints_rad=tuple(n / 8 for n in range(12)),
        velocities_rad_s=tuple(-n / 8 for n in range(12)),
        time_us=77,
    )
    path = spoken(tmp_path, asked(m.EnterTeaching(state), 5))
    fields = ("flags", "position_0", "position_11", "velocity_11", "accelerometer_z", "time_us")
    (row,) = tshark(path, *lua, fields=tuple(f"rote_teaching.state.{name}" for name in fields))
    assert [float(n) for n in row] == pytest.approx([1, 0, 11 / 8, -11 / 8, 9.81, 77])


@pytest.mark.slow
def test_all_joints_of_a_state_are_shown(lua: tuple[str, str], tmp_path: Path) -> None:
    state = m.RobotState(joints_rad=tuple(n / 16 for n in range(29)), velocities_rad_s=(0.5,) * 29)
    payload = teaching_state.encode_state(state, all_joints=True)
    frame = teaching.Frame(0, 1, payload, teaching.MessageType.STATE)
    path = spoken(tmp_path, (False, frame))
    fields = ("direction", "state.joints", "state.position", "state.velocity")
    (row,) = tshark(path, *lua, fields=tuple(f"rote_teaching.{name}" for name in fields))
    assert row[:2] == ["report", "29"]
    assert [float(n) for n in row[2].split(",")] == [n / 16 for n in range(29)]
    assert row[3] == ",".join(["0.5"] * 29)


@pytest.mark.slow
def test_the_keyframes_of_a_save_are_shown(lua: tuple[str, str], tmp_path: Path) -> None:
    keyframes = (
        m.Keyframe(joint=15, time_ms=400, value_rad=0.5),
        m.Keyframe(joint=22, time_ms=800, value_rad=-0.25),
    )
    save = m.SaveAction(name="Grüße", created_s=9, duration_ms=1000, keyframes=keyframes)
    path = spoken(tmp_path, asked(save, 6))
    fields = ("name", "frames", "keyframe.joint", "keyframe.time_ms", "keyframe.value_rad")
    (row,) = tshark(path, *lua, fields=tuple(f"rote_teaching.{name}" for name in fields))
    assert row == ["Grüße", "2", "15,22", "400,800", "0.5,-0.25"]


@pytest.mark.slow
def test_a_record_of_dtls_and_a_damaged_frame_are_no_teaching_frames(
    lua: tuple[str, str], tmp_path: Path
) -> None:
    misread = bytes.fromhex("17fefd0001 00000000010d 002c") + bytes(44)
    good = story.frames()[0].payload
    bad = good[:-1] + bytes((good[-1] ^ 1,))
    rows = tshark(capture(tmp_path, misread, bad, good), *lua, fields=("rote_teaching.command",))
    assert [bool(row[0]) for row in rows] == [False, False, True]


@pytest.mark.slow
@pytest.mark.parametrize("dialect", list(a1_values.Dialect))
def test_frames_of_every_dialect_of_the_a1_are_recognised_by_their_crc(
    dialect: a1_values.Dialect, lua: tuple[str, str], tmp_path: Path
) -> None:
    command = (
        a1_values.ScaledHighCmd() if dialect is a1_values.Dialect.A1_3_2 else a1_values.HighCmd()
    )
    values: list[a1_values.Value] = [
        command,
        a1_values.HighState(),
        a1_values.LowCmd(),
        a1_values.LowState(),
    ]
    frames = [a1.encode(a1.fit(value, dialect), dialect) for value in values]
    damaged = [frame[:20] + bytes((frame[20] ^ 1,)) + frame[21:] for frame in frames]
    path = capture(tmp_path, *frames, *damaged)
    rows = tshark(path, *lua, fields=("rote_a1.kind", "rote_a1.dialects", "rote_a1.crc"))
    for row, frame in zip(rows, frames, strict=False):
        read = a1.decode(frame)
        assert row[:2] == [read.kind.value, ", ".join(d.value for d in read.dialects)]
        assert int(row[2], 0) == int.from_bytes(frame[-4:], "little")
    assert rows[len(frames) :] == [["", "", ""]] * len(frames)


@pytest.mark.slow
def test_fields_of_the_a1_are_where_our_codec_has_them(
    lua: tuple[str, str], tmp_path: Path
) -> None:
    command = a1_values.HighCmd(mode=2, gait=1, velocity_m_s=(0.25, -0.5), yaw_speed_rad_s=1.5)
    path = capture(tmp_path, a1.encode(command, a1_values.Dialect.A1_3_3))
    fields = ("mode", "gait", "velocity_m_s_0", "velocity_m_s_1", "yaw_speed_rad_s")
    (row,) = tshark(path, *lua, fields=tuple(f"rote_a1.{name}" for name in fields))
    assert [float(n) for n in row] == [2, 1, 0.25, -0.5, 1.5]


@pytest.mark.slow
def test_the_data_channel_is_shown_as_our_decryption_reads_it(
    lua: tuple[str, str], tmp_path: Path
) -> None:
    path, keys = tmp_path / "a.pcap", tmp_path / "keys.log"
    make.make(path, "webrtc", cipher="aes128", keylog=keys)
    made = make.webrtc(story.webrtc(), cipher="aes128")
    found = decrypt(made.datagrams, made.keylog)
    names = ("type", "topic", "api_id", "name", "id", "code", "json")
    rows = tshark(
        path,
        *lua,
        "-o",
        f"tls.keylog_file:{keys}",
        "-Y",
        "rote_channel",
        fields=tuple(f"rote_channel.{name}" for name in names),
    )
    assert len(rows) == len(found.messages)
    for row, message in zip(rows, found.messages, strict=True):
        if isinstance(message.value, rpc.RpcRequest | rpc.RpcResponse):
            asked = message.value
            api = rpc.APIS[asked.service, asked.api_id].name.lower().replace("_", " ")
            assert row[:5] == [row[0], rpc.make_topic(asked), str(asked.api_id), api, str(asked.id)]
        if isinstance(message.value, rpc.RpcResponse):
            assert row[5] == str(message.value.code)
        assert row[6].replace("\\\\", "\\") == message.text
