"""The report: the figures of a phone's capture, JSON, CSV, the page, the walk, the command."""

import csv
import io
import json
import os
import re
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from capture.capture_files import (
    PHONE,
    PHONE6,
    ROBOT,
    ROBOT6,
    START_NS,
    block,
    check,
    pcap,
    phone_side,
    record,
    udp,
    write,
)
from rote.capture.judge.flows import Flows
from rote.capture.read.packets import DatagramBatch
from rote.capture.report.explain import explain
from rote.capture.report.html import render_page
from rote.capture.report.plain import show_report
from rote.capture.report.report import report_capture
from rote.capture.synthetic.build import make
from rote.cli.capture import app, run_report
from rote.errors import BadRequestError

RECORDS = 1500


@pytest.fixture(scope="module")
def phone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("phone"), pcap(phone_side(RECORDS)))


def run(*arguments: object) -> object:
    return app([str(argument) for argument in arguments], standalone_mode=False)


# ---- the figures --------------------------------------------------------------------------------


def test_a_phones_capture_has_these_figures(phone: Path) -> None:
    found = report_capture(phone).document()
    assert found["packets"] == found["udp_packets"] == RECORDS + 60
    assert found["dtls_records"] == RECORDS
    assert found["stun_packets"] == 40
    assert found["srtp_packets"] == 20
    assert found["teaching_frames"] == 0
    (flow,) = found["flows"]
    assert flow["name"] == "WebRTC"
    (track,) = flow["dtls"]["tracks"]
    assert track | {"direction": ""} == {
        "direction": "",
        "epoch": 1,
        "records": RECORDS,
        "lowest": 265,
        "highest": 265 + RECORDS - 1,
        "repeated": 0,
        "out_of_order": 0,
        "missing": 0,
    }
    assert flow["stun"] == {
        "messages": {"binding request": 20, "binding success": 20},
        "users": ["j9vY:P91s"],
        "roles": {
            "10.215.173.1:55371": "controlling",
            "192.168.137.164:49504": "controlled",
        },
        "unanswered": 0,
        "mapped": ["192.168.137.220:37757"],
    }


def test_the_documents_command_byte_is_named_a_counter(phone: Path) -> None:
    tests = {
        (test["documents_offset"], test["offset"]): test
        for test in report_capture(phone).document()["field_tests"]
        if test["packets"] > 100
    }
    assert tests[12, 10]["kind"] == "counter"
    assert tests[12, 10]["values"] == 256
    assert tests[None, 12]["kind"] == "length"


def test_the_short_records_are_named_acknowledgements(phone: Path) -> None:
    dtls = report_capture(phone).document()["flows"][0]["dtls"]
    assert dtls["cipher"]["name"] == "ChaCha20-Poly1305"
    assert not dtls["cipher"]["known"]
    assert dtls["sizes"][0]["record_bytes"] == 57
    assert "acknowledgement (SACK), under ChaCha20-Poly1305" in dtls["sizes"][0]["meaning"]


def test_gaps_repeats_and_late_records_are_counted(tmp_path: Path) -> None:
    numbers = [0, 1, 2, 5, 6, 6, 9, 8, 10]
    packets = [
        (START_NS + at, udp(PHONE, ROBOT, record(number, 44))) for at, number in enumerate(numbers)
    ]
    (track,) = report_capture(write(tmp_path, pcap(packets))).document()["flows"][0]["dtls"][
        "tracks"
    ]
    assert (track["records"], track["lowest"], track["highest"]) == (9, 0, 10)
    assert (track["missing"], track["repeated"], track["out_of_order"]) == (3, 1, 1)


def test_a_handshake_says_version_suite_and_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "made.pcap"
    make(path, "webrtc", cipher="aes128")
    dtls = report_capture(path).document()["flows"][0]["dtls"]
    assert dtls["versions"] == ["DTLS 1.2"]
    assert dtls["cipher_suite"] == "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    assert dtls["cipher"]["overhead"] == 24
    assert dtls["cipher"]["known"]
    (fingerprint,) = dtls["fingerprints"].values()
    assert re.fullmatch(r"([0-9A-F]{2}:){31}[0-9A-F]{2}", fingerprint)
    assert any("client hello" in messages for messages in dtls["handshake"].values())


def test_a_handshake_that_is_sent_again_is_counted(tmp_path: Path) -> None:
    hello = bytes((14,)) + bytes(3) + bytes(2) + bytes(3) + bytes(3)
    packets = [
        (START_NS + at, udp(PHONE, ROBOT, record(at, 12, kind=22, epoch=0, fill=hello)))
        for at in range(3)
    ]
    dtls = report_capture(write(tmp_path, pcap(packets))).document()["flows"][0]["dtls"]
    assert dtls["handshake_resent"] == 2
    assert list(dtls["handshake"].values()) == [["server hello done"]]


def test_with_a_key_log_what_was_said_is_read(tmp_path: Path) -> None:
    path, keys = tmp_path / "made.pcapng", tmp_path / "keys"
    make(path, "webrtc", keylog=keys)
    found = report_capture(path, keylog=keys.read_text())
    names = [pair["name"] for pair in found.document()["decrypted"]["requests"]]
    assert "arm 7107 list actions" in names
    assert {"connect", "list", "teach", "play", "rename"} <= {line.kind for line in found.timeline}


def test_secrets_that_a_capture_carries_itself_are_used(tmp_path: Path) -> None:
    path, keys = tmp_path / "made.pcapng", tmp_path / "keys"
    make(path, "webrtc", keylog=keys)
    data, text = path.read_bytes(), keys.read_bytes()
    head = int.from_bytes(data[4:8], "little")
    secrets = block("<", 10, struct.pack("<II", 0x544C534B, len(text)) + text)
    found = report_capture(write(tmp_path, data[:head] + secrets + data[head:]))
    assert found.decrypted is not None
    assert found.decrypted.messages
    assert found.decrypted.problems == ()


def test_what_was_said_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, keys = tmp_path / "made.pcap", tmp_path / "keys"
    make(path, "webrtc", keylog=keys)
    run(path, "--keylog", keys)
    said = capsys.readouterr().out
    assert "certificate sha-256" in said
    assert 'arm 7108 play taught {"action_name"' in said
    assert "messages in all" in said


def test_many_flows_are_cut_short_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packets = [(START_NS + at, udp((PHONE[0], at + 1), ROBOT, b"x")) for at in range(50)]
    path = write(tmp_path, pcap(packets) + b"cut off")
    run(path)
    said = capsys.readouterr().out
    assert "... and 30 more flows" in said
    assert "warning" in said


def test_a_key_log_of_another_session_is_a_warning_and_the_rest_is_reported(
    tmp_path: Path, phone: Path
) -> None:
    made, keys = tmp_path / "made.pcap", tmp_path / "keys"
    make(made, "webrtc", keylog=keys)
    found = report_capture(phone, keylog=keys.read_text())
    assert found.document()["dtls_records"] == RECORDS
    assert any("handshake is not in the capture" in words for words in found.warnings)
    assert found.timeline


# ---- bounds -------------------------------------------------------------------------------------


def test_flows_beyond_the_limit_are_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rote.capture.judge.flows.Flows.__init__.__defaults__", (8,))
    packets = [(START_NS, udp((PHONE[0], 1000 + at), ROBOT, record(at, 44))) for at in range(100)]
    found = report_capture(write(tmp_path, pcap(packets)))
    assert found.document()["dtls_records"] == 100
    assert found.document()["flows_total"] == 8
    assert found.document()["packets_without_flow"] == 92
    assert found.document()["kinds"] == {"DTLS": 100}
    assert any("92 packets" in words for words in found.warnings)


@pytest.mark.slow
def test_a_million_tiny_flows_stay_within_bounds(tmp_path: Path) -> None:
    """A hundred thousand here; the bound does not depend on their number."""
    code = f"""
    import re, struct
    from pathlib import Path
    from rote.capture.report.report import report_capture
    head = struct.pack("<IIII", 1, 1, 29, 29)
    with open({str(tmp_path / "many.pcap")!r}, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for at in range(100_000):
            ip = struct.pack(">BBHHHBBHII", 0x45, 0, 29, 0, 0, 64, 17, 0, at * 7919, 167772161)
            file.write(head + ip + struct.pack(">HHHHB", at & 0xFFFF, 9, 9, 0, at & 0xFF))
    found = report_capture({str(tmp_path / "many.pcap")!r}, stream=True)
    document = found.document()
    assert document["udp_packets"] == 100_000
    assert document["flows_total"] == 65_536
    # Its own memory: what getrusage tells includes that of the process which started it.
    peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
    assert int(peak) / 1024 < 300, peak
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_records_beyond_what_is_kept_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rote.capture.report.report.KEEP_RECORDS_STREAM", 100)
    found = report_capture(write(tmp_path, pcap(phone_side(300))), stream=True)
    assert found.document()["dtls_records"] == 300
    assert any("first 100 encrypted records" in words for words in found.warnings)


def test_times_that_go_backwards_still_give_first_and_last(tmp_path: Path) -> None:
    packets = [(START_NS - at, udp(PHONE, ROBOT, b"x")) for at in (0, 5000, 2000)]
    found = report_capture(write(tmp_path, pcap(packets, magic=0xA1B23C4D)))
    assert found.analysis.first_ns == START_NS - 5000
    assert found.conversations[0].first_ns == START_NS - 5000
    assert found.conversations[0].last_ns == START_NS


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(1, 8))
def test_each_direction_has_its_first_and_last_time(times: list[int], together: int) -> None:
    flows, seen = Flows(), dict[int, list[int]]()
    for begin in range(0, len(times), together):
        part = np.array(times[begin : begin + together])
        ports = np.array([time * 7 % 3 for time in part], np.uint64)
        for time, port in zip(part.tolist(), ports.tolist(), strict=True):
            seen.setdefault(port, []).append(time)
        nothing = np.zeros(part.size, np.int64)
        batch = DatagramBatch(
            data=np.zeros(0, np.uint8),
            time_ns=part,
            flow_addresses=np.zeros(part.size, np.uint64),
            flow_ports=ports,
            start=nothing,
            size=nothing,
            full=nothing,
            wire=part + 1,
            protocol=np.full(part.size, 17, np.uint8),
            heads=np.zeros((part.size, 40), np.uint8),
        )
        flows.add(batch, np.zeros(part.size, np.uint8))
    found = {
        one.destination[2]: (one.first_ns, one.last_ns, one.packets, one.wire_bytes)
        for one in flows.directions()
    }
    assert found == {
        port: (min(its), max(its), len(its), sum(its) + len(its)) for port, its in seen.items()
    }


def test_moments_grow_longer_when_there_are_many(tmp_path: Path) -> None:
    packets = [(at * 10**9, udp(PHONE, ROBOT, b"x")) for at in range(0, 10**6, 100)]
    activity = report_capture(write(tmp_path, pcap(packets))).analysis.activity
    assert len(activity.counts) <= 4096
    assert sum(int(row.sum()) for row in activity.counts.values()) == len(packets)


# ---- the page, CSV and the walk -----------------------------------------------------------------


def test_the_page_needs_nothing_from_elsewhere(phone: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run(phone, "--csv", "--html", page)
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r"https?://|src=|@import|url\(|<script|<link", text)
    assert text.count("<svg") == 3
    assert "10.215.173.1:55371" in text
    assert "teach" in text


def test_the_page_escapes_what_comes_from_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, pcap(phone_side(20)), "<b>x.pcap")
    page = tmp_path / "page.html"
    run(path, "--json", "--html", page)
    assert "<b>x" not in page.read_text(encoding="utf-8")


def test_an_empty_capture_has_a_page_and_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, pcap([]))
    run(path, "--html", tmp_path / "page.html")
    assert "0 packets" in capsys.readouterr().out
    assert "No packets" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_csv_has_a_line_for_each_flow(phone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(phone, "--csv")
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row["name"] == "WebRTC"
    assert int(row["packets"]) == RECORDS + 60


def test_json_is_one_object_with_the_promised_keys(
    phone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--json", phone)
    found = json.loads(capsys.readouterr().out)
    promised = {"packets", "udp_packets", "dtls_records", "stun_packets", "teaching_frames"}
    assert promised | {"flows", "timeline"} <= set(found)
    for line in found["timeline"]:
        assert set(line) == {"kind", "start", "end", "confidence", "evidence"}
        assert 0 <= line["confidence"] <= 1
        assert line["start"].endswith("Z")


def test_the_report_is_for_people(phone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(phone)
    said = " ".join(capsys.readouterr().out.split())
    assert "numbered 265 to 1,764 without a gap" in said
    assert "What probably happened" in said
    assert "counter" in said


def test_a_direction_that_is_missing_is_the_first_thing_that_cannot_be_known(
    phone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(phone)
    said = " ".join(capsys.readouterr().out.split())
    first = said.split("What cannot be known ", 1)[1]
    assert first.startswith("What 192.168.137.164:49504 sent: all 1,500 DTLS records go")
    found = report_capture(phone).document()["cannot_be_known"]
    assert "One direction is missing" in found[0]
    assert ["handshake" in words for words in found] == [False, True, False]


def test_what_was_opened_with_keys_is_known(tmp_path: Path) -> None:
    path, keys = tmp_path / "a.pcap", tmp_path / "keys"
    make(path, keylog=keys)
    (sealed,) = report_capture(path).limits
    assert "no key" in sealed
    assert report_capture(path, keylog=keys.read_text(encoding="ascii")).limits == []


def test_there_is_nothing_unknown_about_frames_in_the_clear(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "a.pcap", "frames")
    run(tmp_path / "a.pcap")
    assert "cannot be known" not in capsys.readouterr().out


def test_the_sizes_on_the_terminal_add_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.pcap"
    make(path)
    run(path)
    rows = re.findall(r"\n +(\d+) (?:records of|others, of) \d+ ", capsys.readouterr().out)
    (flow,) = report_capture(path).document()["flows"]
    assert len(rows) == 7
    assert sum(map(int, rows)) == flow["dtls"]["application_records"]


def test_many_limits_are_cut_short_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packets = [
        (START_NS + at, udp((PHONE[0], 1000 + at), ROBOT, record(at, 44))) for at in range(9)
    ]
    run(write(tmp_path, pcap(packets)))
    assert "... and 13 more" in capsys.readouterr().out


def test_a_pipe_is_as_wide_as_columns_says(
    phone: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    run(phone)
    assert 100 < max(map(len, capsys.readouterr().out.splitlines())) <= 200
    monkeypatch.setenv("COLUMNS", "60")
    run(phone)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


@pytest.mark.slow
def test_a_reader_who_has_seen_enough_is_no_failure(phone: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "rote", "capture", str(phone)],
            stdout=out,
            stderr=subprocess.PIPE,
            timeout=55,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_page_takes_nobodys_place(phone: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("mine", encoding="ascii")
    with pytest.raises(BadRequestError, match="already exists"):
        run(phone, "--html", page)
    assert page.read_text(encoding="ascii") == "mine"
    run(phone, "--csv", "--html", page, "--overwrite")
    assert "One direction is missing" in page.read_text(encoding="utf-8")
    with pytest.raises(BadRequestError, match="is a folder"):
        run(phone, "--html", tmp_path)


def test_addresses_in_brackets_are_printed_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packets = [(START_NS + at, udp(PHONE6, ROBOT6, record(at, 44))) for at in range(30)]
    run(write(tmp_path, pcap(packets)))
    assert "[2001:db8::1]:55371 -> [2001:db8:1::a4]:49504" in capsys.readouterr().out


def test_the_walk_sets_both_readings_side_by_side(
    phone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("explain", phone)
    said = " ".join(capsys.readouterr().out.split())
    assert "Is the byte at their offset 12 a command id?" in said
    assert "counter: 100.0% of the steps" in said
    run("explain", phone, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["command_byte"]["kind"] == "counter"
    assert len(found["steps"]) == 6


def test_the_walk_has_words_for_a_capture_without_records(tmp_path: Path) -> None:
    frames = tmp_path / "frames.pcap"
    make(frames, "frames")
    assert "rote's own UDP protocol" in explain(report_capture(frames)).conclusion
    other = write(tmp_path, pcap([(START_NS, udp(PHONE, ROBOT, check(1)))]))
    assert "No DTLS record" in explain(report_capture(other)).conclusion


def test_any_field_can_be_judged(phone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("field", phone, 5, "--width", 6, "--json")
    first = json.loads(capsys.readouterr().out)[0]
    assert (first["kind"], first["offset"], first["width"]) == ("counter", 5, 6)
    run("field", phone, 100)
    assert "too few" in capsys.readouterr().out


def test_the_command_line_can_go_past_typer_for_a_file_and_only_then(
    phone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_report([str(phone), "--csv"]) == 0
    assert "WebRTC" in capsys.readouterr().out
    for words in ([], ["--help"], ["explain", str(phone)], ["make", "x.pcap"]):
        assert run_report(words) is None
    assert run_report([str(phone), "--help"]) == 0
    assert "--keylog" in capsys.readouterr().out
    with pytest.raises(typer.BadParameter, match="bogus"):
        run_report([str(phone), "--bogus"])


@pytest.mark.parametrize("words", [["exlain", "a.pcap"], ["exlain"], ["explian", "--json"]])
def test_a_misspelt_command_is_no_missing_file(words: list[str]) -> None:
    with pytest.raises(BadRequestError, match="there is no command") as caught:
        run_report(words)
    assert caught.value.remedy == "Did you mean explain?"
    with pytest.raises(BadRequestError, match="there is no command") as caught:
        run_report(["bogus", *words])
    assert "rote capture --help" in caught.value.remedy
    with pytest.raises(BadRequestError, match="bogus cannot be read"):
        run_report(["bogus"])


def test_a_missing_key_log_is_refused(phone: Path, tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="key log"):
        run(phone, "--keylog", tmp_path / "gone")


@pytest.mark.slow
def test_a_pipe_cannot_be_read_twice(phone: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    make(tmp_path / "made.pcap", "webrtc", keylog=keys)
    code = "from rote.cli.capture import app; import sys; app(sys.argv[1:], standalone_mode=False)"
    with phone.open("rb") as pipe:
        done = subprocess.run(
            [sys.executable, "-c", code, "-", "--json", "--keylog", str(keys)],
            stdin=pipe,
            capture_output=True,
            text=True,
            timeout=55,
            check=True,
        )
    found = json.loads(done.stdout)
    assert found["dtls_records"] == RECORDS
    assert any("read only once" in words for words in found["warnings"])


def test_the_page_draws_the_time_line_and_sizes_on_a_logarithmic_scale(phone: Path) -> None:
    found = report_capture(phone)
    text = render_page(found)
    lanes = text.split("<h2>Time line</h2>")[1].split("</svg>")[0]
    assert lanes.count("<rect") == len(found.timeline)
    for entry in found.timeline:
        assert f">{entry.kind}</text>" in lanes
        assert f"{entry.confidence:.0%}: " in lanes
    sizes = text.split("<h2>Sizes of UDP datagrams</h2>")[1].split("</svg>")[0]
    assert ">1</text>" in sizes
    assert ">10</text>" in sizes
    heights = [float(part.split('"')[0]) for part in sizes.split('height="')[1:]]
    assert min(heights) > 5  # one datagram of a size can be seen beside hundreds of another


def test_an_explanation_promises_a_key_log_only_where_it_could_help(
    phone: Path, tmp_path: Path
) -> None:
    assert "no key log can open them" in explain(report_capture(phone)).conclusion
    make(tmp_path / "a.pcap")
    assert "--keylog KEYS" in explain(report_capture(tmp_path / "a.pcap")).conclusion


def test_only_sessions_that_were_opened_are_counted_as_decrypted(tmp_path: Path) -> None:
    for seed, name in enumerate(("a.pcap", "b.pcap")):
        make(tmp_path / name, keylog=tmp_path / f"{name}.keys", seed=seed)
    keys = (tmp_path / "a.pcap.keys").read_text(encoding="ascii")
    own, other = (
        report_capture(tmp_path / name, keylog=keys).document() for name in ("a.pcap", "b.pcap")
    )
    assert (own["decrypted"]["sessions"], own["decrypted"]["sessions_seen"]) == (1, 1)
    assert (other["decrypted"]["sessions"], other["decrypted"]["sessions_seen"]) == (0, 1)


def test_the_short_way_prints_what_the_command_line_prints(
    phone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in ([], ["--json"]):
        assert show_report([str(phone), *options]) is True
        short = capsys.readouterr().out
        assert run_report([str(phone), *options]) == 0
        assert capsys.readouterr().out == short


def test_the_short_way_leaves_all_else_to_the_command_line(
    phone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.pcap").write_text("no capture at all", encoding="ascii")
    others: list[list[str]] = [
        [],
        ["--help"],
        ["-"],
        ["explain", str(phone)],
        [str(phone), "--csv"],
    ]
    for arguments in (*others, [str(tmp_path / "text.pcap")], [str(tmp_path / "none.pcap")]):
        assert show_report(arguments) is False
    assert capsys.readouterr().out == ""
