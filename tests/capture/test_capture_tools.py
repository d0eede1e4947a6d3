"""The commands around captures, as a person types them."""

import json
import os
from pathlib import Path

import pytest
import typer

from capture.recorded import needs
from rote.capture import story
from rote.cli import capture_tools
from rote.errors import BadRequestError
from rote.wire import channel


def run(*words: object) -> None:
    app = typer.Typer()
    for command in ("applog", "scrub", "make", "dissector", "live"):
        app.command(command)(getattr(capture_tools, command))
    app([str(word) for word in words], standalone_mode=False)


def test_a_capture_is_made_and_scrubbed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, copy, keys = tmp_path / "a.pcap", tmp_path / "b.pcap", tmp_path / "keys"
    run("make", made, "--keylog", keys, "--cipher", "aes256")
    assert f"rote capture {made} --keylog {keys}" in capsys.readouterr().out
    run("scrub", made, copy)
    assert "618 packets" in capsys.readouterr().out
    run("scrub", made, copy, "--json")
    done = json.loads(capsys.readouterr().out)
    assert (done["packets"], done["warnings"]) == (618, [])
    run("make", made, "--kind", "a1", "--json")
    assert json.loads(capsys.readouterr().out)["packets"] == 600


def test_a_broken_capture_is_scrubbed_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, copy = tmp_path / "a.pcap", tmp_path / "b.pcap"
    run("make", made)
    broken = made.read_bytes()[:-5]
    made.write_bytes(broken.replace(b"\x08\0E\0", b"\x88\xccE\0", 1))
    run("scrub", made, copy)
    out = capsys.readouterr().out
    assert "Note:" in out
    assert "1 parts" in out


def test_the_dissector_is_printed_or_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("dissector")
    printed = capsys.readouterr().out
    run("dissector", tmp_path / "rote.lua")
    assert (tmp_path / "rote.lua").read_text(encoding="utf-8") == printed
    assert "lua_script" in capsys.readouterr().out


def test_the_apps_log_is_shown_and_given_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "app.log"
    faults = channel.Faults(channel.Change.ALL, (channel.Fault(1, 600, 8),))
    lines = [
        *story.webrtc(),
        story.Line(24.5, False, faults),
        story.Line(25, False, channel.Faults(channel.Change.ALL)),
    ]
    rows = [
        f"2026-01-28 21:00:{line.time_s:06.3f} {channel.encode(line.value)!s}" for line in lines
    ]
    log.write_text("\n".join(rows), encoding="utf-8")
    run("applog", log)
    shown = capsys.readouterr().out
    assert "arm 7107 list actions: done after 21 ms" in shown
    assert "the arms: recording" in shown
    assert "a fault: motion control: low battery" in shown
    assert "no longer: motion control" in shown
    run("applog", log, "--json", "--utc-offset", "1")
    document = json.loads(capsys.readouterr().out)
    assert document["timeline"][0]["start"].startswith("2026-01-28T20:00:00")
    assert [entry["kind"] for entry in document["timeline"]].count("teach") == 1
    assert document["faults"][0]["present"] is True
    assert len(document["pairs"]) == 14


def test_a_file_that_is_no_log_is_said_to_be_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_bytes(b"\xff\xfe buy milk\n")
    run("applog", tmp_path / "notes.txt")
    assert "Is this the app's log?" in capsys.readouterr().out
    with pytest.raises(BadRequestError, match="cannot be read"):
        run("applog", tmp_path / "nothing")


def test_listening_wants_a_listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadRequestError, match="neither tcpdump nor dumpcap"):
        run("live", "-i", "lo", "--seconds", "0.1")


@pytest.mark.parametrize("tool", ["tcpdump", "dumpcap"])
def test_a_listener_that_fails_is_quoted(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / tool
    fake.write_text("#!/bin/sh\necho 'you may not' >&2\nexit 1\n", encoding="ascii")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadRequestError, match="you may not") as caught:
        run("live", "-i", "lo", "-w", tmp_path / "a.pcap")
    assert "sudo" in caught.value.remedy


def test_what_was_heard_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, fake, kept = tmp_path / "made.pcap", tmp_path / "tcpdump", tmp_path / "kept.pcap"
    run("make", made, "--kind", "frames")
    # A listener that writes a capture to the file behind -w, and goes on until it is told to end.
    fake.write_text(
        f'#!/bin/sh\nfor last; do :; done\ncat {made} > "$last"\nexec sleep 60\n', encoding="ascii"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    capsys.readouterr()
    run("live", "-i", "lo", "-w", kept, "--seconds", "0.3", "--json")
    assert json.loads(capsys.readouterr().out)["teaching_frames"] == 824


@needs("tcpdump")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may listen to an interface")
def test_tcpdump_listens_for_us(capsys: pytest.CaptureFixture[str]) -> None:
    run("live", "-i", "lo", "--seconds", "0.5")
    assert "Listening on lo" in capsys.readouterr().out
    with pytest.raises(BadRequestError, match="nothing could be recorded on nosuch0"):
        run("live", "-i", "nosuch0")
