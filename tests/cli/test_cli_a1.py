"""rote a1 decode, on what Unitree's library sends and on what is none."""

import io
import json
from typing import Any

import pytest

from a1_samples import SAMPLES, Sample
from rote.cli.a1.app import app
from rote.errors import BadRequestError, DecodeError


def decode(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert app(["decode", *arguments], standalone_mode=False) == 0
    return capsys.readouterr().out


def document(capsys: pytest.CaptureFixture[str], text: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(decode(capsys, text, "--json"), parse_constant=pytest.fail)
    return read


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=lambda sample: sample.name)
def test_every_datagram_is_told_and_written_again(
    capsys: pytest.CaptureFixture[str], sample: Sample
) -> None:
    told = document(capsys, sample.datagram.hex())
    dialect, kind = sample.name.split()[:2]
    assert told["reencoded"] == sample.datagram.hex()
    assert dialect in told["dialects"]
    assert told["dialect"] == "|".join(told["dialects"])
    assert told["length"] == len(sample.datagram)
    if kind in {"HighCmd", "HighState", "LowCmd", "LowState"}:
        assert told["kind"] == kind
    assert told["crc_ok"] == (sample.verdict != "rejected" and sample.crc != "none")
    assert (told["crc"]["form"] or "none") == sample.crc
    if sample.verdict != "sent":
        assert told["accepted"] == (sample.verdict == "accepted")


def test_fields_bear_their_units(capsys: pytest.CaptureFixture[str]) -> None:
    fields = document(capsys, SAMPLES["3.2 LowCmd distinct"].datagram.hex())["fields"]
    assert fields["header"]["serial"] == 0x55667788
    assert fields["motors"][1] == {
        "mode": 2,
        "q_rad": 1.5,
        "dq_rad_s": -1.25,
        "tau_nm": -1731 / 256,
        "kp_nm_rad": 323 / 32,
        "kd_nm_s_rad": 12 / 16,
        "reserve": [0x01000001, 0x02000001, 0x03000001],
    }
    assert fields["led"][3] == {"r": 0x13, "g": 0x23, "b": 0x33}
    assert set(fields["remote_read"]["buttons"]) == {"L1", "F2", "A", "B", "LEFT"}
    assert "bms" not in fields


def test_numbers_that_are_none_are_words(capsys: pytest.CaptureFixture[str]) -> None:
    datagram = bytearray(143)
    datagram[11:19] = bytes.fromhex("0000c07f 0000807f")
    fields = document(capsys, datagram.hex())["fields"]
    assert (fields["forward"], fields["left"]) == ("nan", "inf")


def test_people_are_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    told = decode(capsys, SAMPLES["3.2 position 0"].datagram.hex())
    assert told.startswith("LowCmd, dialect 3.2 or 3.3 or 3.3.4, 610 bytes\n")
    assert "CRC 864b70e7 holds (plain)" in told
    assert "motor 0: mode 10, q_rad 0, dq_rad_s 0, tau_nm -0.648438, kp_nm_rad 5" in told
    assert "motor 12 to 19: mode 10, q_rad off, dq_rad_s off" in told
    assert "led: ((0, 0, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0))" in told


def test_people_are_told_why_a_frame_is_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    told = decode(capsys, SAMPLES["3.2 HighCmd unset"].datagram.hex())
    assert "CRC 00000000 does not hold; computed 98333311" in told
    assert "drops this frame: its checksum" in told
    told = decode(capsys, SAMPLES["go1 HighCmd ramp"].datagram.hex())
    assert "holds (plain)" in told
    assert "drops this frame: a Go1's begins with fe ef" in told


def test_it_reads_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SAMPLES["go1 HighCmd initial"].datagram.hex(" ").upper()
    monkeypatch.setattr("sys.stdin", io.StringIO(f"0x{text[:80]}\n{text[80:]}\n"))
    assert document(capsys, "-")["dialect"] == "go1"


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("xyz", BadRequestError, "'x' is not a hexadecimal digit"),
        ("abc", BadRequestError, "3 hexadecimal digits do not make whole bytes"),
        ("", BadRequestError, "0 hexadecimal digits"),
        ("00" * 17, DecodeError, "no frame of an A1 or Go1 is 17 bytes long"),
        ("00" * 730, DecodeError, "which is not what goes over the wire"),
    ],
)
def test_what_is_none_is_refused(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        app(["decode", text], standalone_mode=False)
