"""How a show went, told by `rote show report` from its file."""

import json
from pathlib import Path

import pytest

from rote.cli import main
from rote.stage.report import SectionReport, ShowReport
from rote.wire.stage import StartReport

STARTED = StartReport(
    run="r", skew_s=0.002, resolution_s=0.001, lead_s=1.0, completed=True, cues=()
)


def test_who_was_lost_is_named_in_its_section_and_at_an_early_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    section = SectionReport("one", {"ann": STARTED, "bob": None}, lost=("bob",))
    report = ShowReport([section], ended="stopped by the loss of cid", lost=("cid",))
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report.as_json()))
    assert main(["show", "report", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == [
        "  ann: 2.0 ms late (known to 1.0 ms)",
        "  bob: lost",
        "stopped by the loss of cid",
        "  cid: lost",
    ]
    assert main(["show", "report", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sections"][0]["lost"] == ["bob"]


def test_a_report_of_an_older_version_names_nobody_who_was_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    section = SectionReport("one", {"ann": STARTED}).as_json()
    del section["lost"]
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"sections": [section]}))
    assert main(["show", "report", str(file)]) == 0
    assert "lost" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "said",
    [
        [],
        {"sections": 1},
        {"sections": [{"name": "x", "skew_ms": {"max": None}, "robots": [], "cues": []}]},
        {"sections": [], "lost": 3},
    ],
)
def test_what_is_no_report_is_refused_in_words(
    said: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(said))
    assert main(["show", "report", str(file)]) != 0
    assert "is not a report of a show" in capsys.readouterr().err


def test_text_in_a_report_neither_controls_the_terminal_nor_poses_as_another_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    section = SectionReport("one\nSTOP was confirmed by all within 3 ms.", {})
    file = tmp_path / "report.json"
    file.write_text(json.dumps(ShowReport([section], ended="\x1b]0;title\x07").as_json()))
    assert main(["show", "report", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "one\\nSTOP was confirmed by all within 3 ms.: no robot moved",
        "\\u001b]0;title\\u0007",
    ]
