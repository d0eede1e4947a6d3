"""The time line: what sizes and times suggest, and never as a certainty."""

from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from capture.capture_files import (
    PHONE,
    ROBOT,
    START_NS,
    pcap,
    phone_side,
    record,
    udp,
    write,
)
from rote.capture.judge.sizes import describe_sizes, infer_cipher
from rote.capture.judge.timeline import SentRecords, propose_entries
from rote.capture.model import TimelineEntry, iso
from rote.capture.report.report import report_capture
from rote.capture.synthetic.build import make

SECOND = 10**9
CONNECTED = TimelineEntry("connect", 0, 100 * SECOND, 0.9, "test")


def lines(path: Path) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {}
    for line in report_capture(path).document()["timeline"]:
        found.setdefault(line["kind"], []).append(line)
    return found


def seconds(line: dict[str, object], key: str, since_ns: int = START_NS) -> float:
    return datetime.fromisoformat(str(line[key])).timestamp() - since_ns / 1e9


def test_one_request_a_second_is_proposed_as_teaching_with_its_start_and_end(
    tmp_path: Path,
) -> None:
    found = lines(write(tmp_path, pcap(phone_side())))
    (teach,) = found["teach"]
    assert seconds(teach, "start") == pytest.approx(6.37, abs=0.01)
    assert seconds(teach, "end") == pytest.approx(14.63, abs=0.01)
    assert 0.5 < float(str(teach["confidence"])) < 1
    assert "one a second" in str(teach["evidence"])
    assert "every 2 s" in str(found["heartbeat"][0]["evidence"])
    assert len(found["connect"]) == 1


@pytest.mark.parametrize("cipher", ["chacha20", "aes128", "aes256"])
def test_a_session_is_guessed_from_outside_as_it_was(tmp_path: Path, cipher: str) -> None:
    path, keys = tmp_path / "made.pcap", tmp_path / "keys"
    make(path, "webrtc", cipher=cipher, keylog=keys)
    guessed = lines(path)
    read = report_capture(path, keylog=keys.read_text()).document()["timeline"]
    for kind, most_off in (("teach", 0.2), ("play", 0.6)):
        truth = next(line for line in read if line["kind"] == kind)
        (guess,) = guessed[kind]
        for key in ("start", "end"):
            assert seconds(guess, key) == pytest.approx(seconds(truth, key), abs=most_off)
        assert guess["confidence"] < truth["confidence"]
    listed = [seconds(line, "start") for line in read if line["kind"] == "list"]
    assert {round(seconds(line, "start"), 1) for line in guessed["list"]} <= {
        round(at, 1) for at in listed
    }


def test_documented_frames_are_read_and_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "frames.pcap"
    make(path, "frames")
    found = lines(path)
    assert {"connect", "list", "teach", "save", "play"} <= set(found)
    assert found["teach"][0]["confidence"] == 0.99
    assert found["teach"][0]["end"]


def test_noise_proposes_nothing_but_the_connection(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    packets = [
        (START_NS + at * 31_000_000, udp(PHONE, ROBOT, record(at, int(size))))
        for at, size in enumerate(rng.integers(20, 900, 800))
    ]
    found = report_capture(write(tmp_path, pcap(packets))).document()
    assert [line["kind"] for line in found["timeline"]] == ["connect"]
    assert found["flows"][0]["dtls"]["cipher"] is None


def test_no_proposal_is_ever_certain() -> None:
    steady = SentRecords(np.arange(60) * SECOND, np.full(60, 200))
    found = propose_entries(
        (steady, None), infer_cipher(np.array([44] * 50 + [200] * 50)), CONNECTED
    )
    assert {line.kind for line in found} == {"connect", "teach"}
    assert all(line.confidence < 1 for line in found)


def test_the_cipher_is_inferred_from_acknowledgements() -> None:
    chacha = infer_cipher(np.array([44] * 90 + [148, 184, 220]))
    gcm = infer_cipher(np.array([52] * 90 + [156, 192, 228]))
    assert chacha is not None
    assert gcm is not None
    assert (chacha.overhead, chacha.known) == (16, False)
    assert (gcm.overhead, gcm.name) == (24, "AES-GCM")
    assert infer_cipher(np.arange(40, 900)) is None
    assert infer_cipher(np.zeros(0, np.int64)) is None


def test_sizes_are_read_in_words() -> None:
    cipher = infer_cipher(np.array([44] * 90 + [148, 48, 30, 36]))
    assert cipher is None or cipher.name
    cipher = infer_cipher(np.array([44] * 98 + [148, 48, 36]))
    assert cipher is not None
    meanings = {
        one.record_bytes: one.meaning
        for one in describe_sizes(np.array([44, 148, 48, 36, 45]), cipher)
    }
    assert "acknowledgement (SACK)" in meanings[57]
    assert "message of up to 104 bytes" in meanings[161]
    assert "with gaps" in meanings[61]
    assert "control" in meanings[49]
    assert "no SCTP packet" in meanings[58]
    assert describe_sizes(np.array([44]), None)[0].meaning.startswith("unknown")


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (START_NS, "2026-01-26T15:28:24.700721Z"),
        (2**63 - 1, "2262-04-11T23:47:16.854775Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
    ],
)
def test_moments_are_iso_text_in_utc(time_ns: int, text: str) -> None:
    assert iso(time_ns) == text
