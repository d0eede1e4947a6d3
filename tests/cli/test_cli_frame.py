"""rote frame: frames explained and made at the command line."""

import json
from io import StringIO
from typing import Any
from zlib import crc32

import pytest

from rote import messages as m
from rote.cli import main
from rote.wire.teaching import codec as teaching
from rote.wire.teaching.fields import LAYOUTS, FrameDirection


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["frame", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def decoded(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, out, err = run(capsys, "decode", *arguments, "--json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: one.key)
def test_every_kind_of_frame_can_be_made_and_is_then_explained(
    layout: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--positions", "1,2") if layout.key == "pose-n" else ()
    more = ("--name", "wave") if layout.key == "save" else more
    code, made, err = run(capsys, "make", layout.key, "--sequence", "7", *more)
    assert (code, err) == (0, "")
    reply = () if layout.direction is not FrameDirection.REPLY else ("--reply",)
    found = decoded(capsys, made, *reply)
    assert list(found) == ["command", "direction", "fields", "crc_valid"]
    assert found["crc_valid"] is True
    assert found["direction"] == layout.direction.value
    assert found["fields"]["sequence"]["value"] == 7
    grades = {"stated by a seed", "inferred", "contradicted", "our choice"}
    assert {one["grade"] for one in found["fields"].values()} <= grades


def test_a_save_is_made_as_the_codec_makes_it(capsys: pytest.CaptureFixture[str]) -> None:
    message = m.SaveAction(
        name="my wave",
        created_s=1_675_127_424,
        duration_ms=5000,
        loop=True,
        keyframes=(m.Keyframe(joint=15, time_ms=400, value_rad=-0.5),),
    )
    command, payload = teaching.encode_command(message)
    words = (
        "make save --name|my wave|--created-s|1675127424|--duration-ms|5000|--frames|1|"
        "--save-flags|3|--keyframe|15:400:-0.5|--sequence|15"
    )
    first, *rest = words.split("|")
    _, made, _ = run(capsys, *first.split(), *rest)
    assert bytes.fromhex(made) == teaching.encode(teaching.Frame(command, 15, payload))


def test_the_documents_numbers_name_commands_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "make", "0x0f", "--on", "0") == run(capsys, "make", "record", "--on", "0")
    assert run(capsys, "make", "0x41") == run(capsys, "make", "play")


def test_a_list_of_actions_is_made_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    _, made, _ = run(capsys, "make", "list-reply", "--action", "wave:5000", "--action", "a:b:1")
    found = decoded(capsys, made)
    assert found["direction"] == "reply"
    assert found["fields"]["count"]["value"] == 2
    assert found["fields"]["actions"]["value"] == [
        {"name": "wave", "duration_ms": 5000},
        {"name": "a:b", "duration_ms": 1},
    ]
    assert found["fields"]["actions"]["parts"]["duration_ms"] == "inferred"


def test_a_refusal_is_explained_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    _, made, _ = run(capsys, "make", "status", "--command", "0x0d", "--code", "7404")
    code, out, _ = run(capsys, "decode", made)
    assert code == 0
    assert "0x0d status, reply, 63 bytes; CRC-32 holds" in out
    assert "7404: it is not in a balanced stand" in out


def test_a_frame_whose_direction_nothing_tells_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    _, made, _ = run(capsys, "make", "exit-teaching")
    assert "or its reply, which looks the same" in run(capsys, "decode", made)[1]
    assert decoded(capsys, made)["direction"] == "request"
    reply = decoded(capsys, made, "--reply")
    assert reply["direction"] == "reply"
    assert reply["fields"]["code"]["value"] == 0


def test_the_reason_of_a_grade_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    _, made, _ = run(capsys, "make", "record")
    assert "89 3f 0e 30" not in run(capsys, "decode", made)[1]
    assert "89 3f 0e 30" in run(capsys, "decode", made, "--why")[1]


def test_hexadecimal_may_be_spread_over_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    _, made, _ = run(capsys, "make", "ready")
    assert decoded(capsys, *made.split()) == decoded(capsys, made.replace("\n", " "))


def test_a_record_of_dtls_is_refused_with_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "decode", "17fefd0001000000000109002c" + "5a" * 44)
    assert code != 0
    assert "DTLS record it is complete: number 265, 44 encrypted bytes" in err


def test_a_truncated_frame_is_decoded_as_far_as_it_goes(capsys: pytest.CaptureFixture[str]) -> None:
    _, made, _ = run(capsys, "make", "play", "--action", "3")
    code, out, err = run(capsys, "decode", bytes.fromhex(made)[:25].hex())
    assert (code, err) == (0, "")
    assert "DTLS" not in out
    assert "0x41 play, request, 25 bytes; CRC-32 not checked" in out
    assert "the bytes end too early: 25 of the 203 that the length requires" in out
    assert "duration_ms is cut off: 2 of 4 bytes are known" in out
    assert "keyframes is missing" in out
    found = decoded(capsys, bytes.fromhex(made)[:25].hex())
    assert found["fields"]["action"]["value"] == 3
    assert "duration_ms" not in found["fields"]
    assert found["crc_valid"] is None
    assert "crc is missing" in found["defects"]


def test_every_beginning_of_a_frame_is_decoded(capsys: pytest.CaptureFixture[str]) -> None:
    _, made, _ = run(capsys, "make", "list-reply", "--action", "wave:5000", "--action", "kick:1")
    whole = bytes.fromhex(made)
    complete = decoded(capsys, whole.hex())["fields"]
    for size in range(4, len(whole)):
        found = decoded(capsys, whole[:size].hex())
        assert found["defects"]
        for name, field in found["fields"].items():
            if name != "actions":
                assert field == complete[name]
    assert decoded(capsys, whole[:53].hex())["fields"]["actions"]["value"] == [
        {"name": "wave", "duration_ms": 5000}
    ]
    assert decoded(capsys, whole[:12].hex())["command"] is None


def test_what_differs_in_a_hand_made_frame_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    _, made, _ = run(capsys, "make", "record", "--on", "1")
    whole = bytes.fromhex(made)
    cases = {
        whole[:2] + b"\xdd" + whole[3:]: "magic is fe dd 00, not fe fd 00",
        whole[:14] + b"\x28" + whole[15:]: "4 bytes follow the end of the frame",
        whole[:8] + whole[10:]: "the two reserved bytes 00 00 before 00 01 are missing",
        whole[:12] + b"\x77" + whole[13:-1]: "command 0x77 has no documented payload of 44 bytes",
    }
    for datagram, words in cases.items():
        code, out, _ = run(capsys, "decode", datagram.hex())
        assert code == 0
        assert words in out
    shorter = bytearray(whole[:-8])
    _, out, _ = run(capsys, "decode", (shorter + crc32(shorter).to_bytes(4)).hex())
    assert "the length is 44, but the CRC-32 is valid after 40 bytes" in out
    assert "0x0f" in out


HEX_DUMPS = {
    "hexdump -C": """
00000000  17 fe fd 00 01 00 00 06  00 00 00 01 0f 00 2c 00  |..............,.|
00000010  00 00 01 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|
00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|
00000030  00 00 00 00 00 00 00 00  00 00 00 32 57 73 21     |...........2Ws!|
0000003f
""",
    "xxd": """
00000000: 17fe fd00 0100 0006 0000 0001 0f00 2c00  ..............,.
00000010: 0000 0100 0000 0000 0000 0000 0000 0000  ................
00000020: 0000 0000 0000 0000 0000 0000 0000 0000  ................
00000030: 0000 0000 0000 0000 0000 0032 5773 21    ...........2Ws!
""",
    "od, with repeated rows": """
000000 17 fe fd 00 01 00 00 06 00 00 00 01 0f 00 2c 00
000010 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00
000020 00 00 00 00 00 00 00 00
*
000038 00 00 00 32 57 73 21
00003f
""",
    "tcpdump": """
        0x0000:  17fe fd00 0100 0006 0000 0001 0f00 2c00  ..............,.
        0x0010:  0000 0100 0000 0000 0000 0000 0000 0000  ................
        0x0020:  0000 0000 0000 0000 0000 0000 0000 0000  ................
        0x0030:  0000 0000 0000 0000 0000 0032 5773 21    ...........2Ws!
""",
    "comments": """
17 fe fd 00 01 00 00 06 00 00 00 01 0f 00 2c
// Recording flag
00 00 00 01                                    // start = 1
00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00   # zeros
00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
00 00 00 00 00 00 00 00
32 57 73 21                                    CRC32 checksum
""",
    "labels": f"""
Header:         17 fe fd 00 01 00 00 06 00 00 00 01 0f
Payload Length: 00 2c (44 bytes)
Recording Flag: 00 00 00 01 (START = 0x00000001)
Padding:        {"00 " * 40}
CRC32:          32 57 73 21
""",
    "decimal ranges": f"""
00-03: 17 fe fd 00     Type and magic
04-05: 01 00           Flags
06-12: 00 06 00 00 00 01 0f
13-14   00 2c                        Payload length
15-18   00 00 00 01                  Start
19-58   {"00 " * 40}
59-62: 32 57 73 21     CRC32 checksum
""",
    "a C array": "{ 0x17, 0xfe, 0xfd, 0x00, 0x01, 0x00, 0x00, 0x06, 0x00, 0x00, 0x00, 0x01, 0x0f, "
    + "0x00, 0x2c, 0x00, 0x00, 0x00, 0x01, "
    + "0x00, " * 40
    + "0x32, 0x57, 0x73, 0x21 };",
    "colons": "17:fe:fd:00:01:00:00:06:00:00:00:01:0f:00:2c:00:00:00:01:"
    + "00:" * 40
    + "32:57:73:21",
}


@pytest.mark.parametrize("name", HEX_DUMPS)
def test_dumps_are_read_as_tools_and_documents_print_them(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(HEX_DUMPS[name]))
    found = decoded(capsys, "-")
    assert (found["command"], found["crc_valid"]) == ("0x0f", True)
    assert found["fields"]["sequence"]["value"] == 6
    assert decoded(capsys, HEX_DUMPS[name]) == found


def test_placeholders_and_gaps_of_a_dump_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    dump = """
17 fe fd 00 01 00 [SEQ_HI] [SEQ_LO] 00 00 00 01 41 00 b8
// Action ID = 1
00 00 00 01
00 00 00 ??
[4B duration]
00 00 00 00
[keyframes for action playback]
11 22 33 44
"""
    code, out, err = run(capsys, "decode", dump)
    assert code == 0
    assert err == "Note: left out: 4 bytes of the dump after a part of unknown size.\n"
    for missing in ("sequence", "duration_ms", "keyframes", "crc"):
        assert f"{missing} is missing" in out
    assert "frames is cut off: 3 of 4 bytes are known" in out
    fields = decoded(capsys, dump)["fields"]
    assert (fields["action"]["value"], fields["interpolation"]["value"]) == (1, 0)


def test_a_table_after_a_dump_is_left_out_with_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    dump = HEX_DUMPS["comments"] + HEX_DUMPS["decimal ranges"]
    code, _, err = run(capsys, "decode", dump)
    assert code == 0
    assert "left out: the lines of the dump from 10 on" in err


@pytest.mark.parametrize(
    ("dump", "words"),
    [
        ("17 fe fd zz 01 00", "line 1 of the dump: 'zz' is not a hexadecimal byte"),
        ("17 fe fd 0 01 00", "line 1 of the dump: '0' is not a hexadecimal byte"),
        ("0-3: 17 fe fd 00 01\n4-5: 01 00", "line 2 of the dump is at offset 4, but 5 bytes"),
        ("[CRC32]", "not a hexadecimal digit"),
        ("47 45 54 20 2f 20 48 54 54 50", "do not begin like a teaching frame"),
    ],
)
def test_a_dump_that_cannot_be_read_is_refused_with_its_line(
    dump: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "decode", dump)
    assert (code, out) == (2, "")
    assert words in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("make", "save", "--name", "x" * 32),
        ("make", "record", "--on", "yes"),
        ("make", "record", "--on", "4294967296"),
        ("make", "save", "--keyframe", "1:2"),
        ("make", "enter-teaching", "--joints-rad", ",".join(["0"] * 13)),
        ("make", "record", "--sequence", "65536"),
        ("make", "parameter-sync", "--parameters", "xyz"),
        ("make", "wave"),
        ("decode", "17"),
        ("decode", "nothing"),
    ],
)
def test_what_does_not_fit_is_refused_with_words(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *arguments)
    assert code != 0
    assert out == ""
    assert err.startswith("rote: ")
    assert "Traceback" not in err


def test_a_frame_that_a_robot_refuses_is_made_with_a_note(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = run(capsys, "make", "record", "--on", "5")
    assert code == 0
    assert len(bytes.fromhex(out)) == 63
    assert "rote would not accept this frame: the record toggle must be 0 or 1, not 5" in err


@pytest.mark.parametrize("dump", ["1a: 17 fe", "f: 17", "0x: 17", "99a: 17 fe"])
def test_a_short_offset_in_hexadecimal_is_read_or_refused(
    dump: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "decode", dump)
    assert code == 2
    assert err.startswith("rote: ")
