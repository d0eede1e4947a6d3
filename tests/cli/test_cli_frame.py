"""rote frame: frames explained and made at the command line."""

import json
from typing import Any

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
    assert "7404: it is not in a balanced standing" in out


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
    assert "rote would not accept this frame: the record toggle is 0 or 1, not 5" in err
