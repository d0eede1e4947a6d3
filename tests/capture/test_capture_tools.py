"""The commands around captures, as a person types them."""

import json
from pathlib import Path

import pytest
import typer

from rote.capture.synthetic import script as story
from rote.cli.applog import applog
from rote.cli.capture import dissector, make, scrub
from rote.errors import BadRequestError
from rote.wire.services import faults as wire_faults
from rote.wire.webrtc import channel


def run(*words: object) -> None:
    app = typer.Typer()
    for command in (applog, scrub, make, dissector):
        app.command()(command)
    app([str(word) for word in words], standalone_mode=False)


def test_a_capture_is_made_and_scrubbed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, copy, keys = tmp_path / "a.pcap", tmp_path / "b.pcap", tmp_path / "keys"
    run("make", made, "--keylog", keys, "--cipher", "aes256")
    assert f"rote capture {made} --keylog {keys}" in capsys.readouterr().out
    run("scrub", made, copy)
    assert "618 packets" in capsys.readouterr().out
    run("scrub", made, copy, "--overwrite", "--json")
    done = json.loads(capsys.readouterr().out)
    assert (done["packets"], done["warnings"]) == (618, [])
    run("make", made, "--kind", "a1", "--overwrite", "--json")
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
    assert "unknown protocols: 1 packet" in out


def test_the_dissector_is_printed_or_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("dissector")
    printed = capsys.readouterr().out
    run("dissector", tmp_path / "rote.lua")
    assert (tmp_path / "rote.lua").read_text(encoding="utf-8") == printed
    assert "lua_script" in capsys.readouterr().out
    run("dissector", "--json")
    assert json.loads(capsys.readouterr().out) == {"text": printed}
    run("dissector", tmp_path / "other.lua", "--json")
    assert json.loads(capsys.readouterr().out) == {"file": str(tmp_path / "other.lua")}


@pytest.mark.parametrize("command", ["make", "make with keys", "scrub", "dissector"])
def test_nothing_is_overwritten_unless_that_is_wanted(command: str, tmp_path: Path) -> None:
    made, mine = tmp_path / "made.pcap", tmp_path / "mine"
    run("make", made)
    mine.write_text("mine", encoding="ascii")
    words: dict[str, list[object]] = {
        "make": ["make", mine],
        "make with keys": ["make", made, "--keylog", mine],
        "scrub": ["scrub", made, mine],
        "dissector": ["dissector", mine],
    }
    before = made.read_bytes()
    with pytest.raises(BadRequestError, match="already exists") as caught:
        run(*words[command])
    assert "--overwrite" in caught.value.remedy
    assert mine.read_text(encoding="ascii") == "mine"
    assert made.read_bytes() == before
    run(*words[command], "--overwrite")
    assert mine.read_bytes() != b"mine"
    assert sorted(tmp_path.iterdir()) == [made, mine]


def test_what_is_no_place_for_a_file_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="is a folder"):
        run("make", tmp_path)
    with pytest.raises(BadRequestError, match="there is no folder") as caught:
        run("make", tmp_path / "no" / "such.pcap")
    assert "mkdir -p" in caught.value.remedy
    with pytest.raises(BadRequestError, match="not a regular file"):
        run("make", "/dev/null", "--overwrite")


def test_the_apps_log_is_shown_and_given_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "app.log"
    faults = wire_faults.Faults(wire_faults.Change.ALL, (wire_faults.Fault(1, 600, 8),))
    lines = [
        *story.webrtc(),
        story.ScriptLine(24.5, False, faults),
        story.ScriptLine(25, False, wire_faults.Faults(wire_faults.Change.ALL)),
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


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"\xff\xfe buy milk\n")
    with pytest.raises(BadRequestError, match="not a log of the phone app"):
        run("applog", tmp_path / "notes.txt")
    with pytest.raises(BadRequestError, match="cannot be read"):
        run("applog", tmp_path / "nothing")
