"""docs/protocol/frames.md: its tables are those of the code, its examples print what it shows."""

import json
import re
import shlex

import frame_tables as page
import pytest

from rote.cli import main
from rote.model.g1 import Mode
from rote.wire.teaching import codec as teaching
from rote.wire.teaching.fields import LAYOUTS, FrameDirection

TEXT = page.PAGE.read_text(encoding="utf-8")
EXAMPLES = page.EXAMPLE.findall(TEXT)


@pytest.mark.parametrize("key", page.MARK.findall(TEXT))
def test_a_table_of_the_page_is_that_of_the_code(key: str) -> None:
    begin, end = (f"<!-- fields: {key}: {which} -->\n" for which in ("begin", "end"))
    shown = TEXT.partition(begin)[2].partition(end)[0].strip()
    assert shown == page.table(key).strip(), "run: python scripts/generate/frame_tables.py"


def test_every_kind_of_frame_has_its_table() -> None:
    told = {*page.MARK.findall(TEXT)}
    # Enter teaching is the state of 12 joints, and a heartbeat has no payload.
    assert {one.key for one in LAYOUTS} - told == {"enter-teaching", "heartbeat"}


@pytest.mark.parametrize(("line", "shown"), EXAMPLES, ids=[line[:60] for line, _ in EXAMPLES])
def test_an_example_prints_what_the_page_shows(line: str, shown: str) -> None:
    assert page.printed(line) == shown, "run: python scripts/generate/frame_tables.py"


@pytest.mark.parametrize(
    ("line", "shown"),
    [one for one in EXAMPLES if " make " in one[0]],
    ids=[line[:60] for line, _ in EXAMPLES if " make " in line],
)
def test_the_bytes_of_an_example_say_what_its_options_ask_for(
    line: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reply = ["--reply"] if re.search("status|list-reply", line) else ["--request"]
    assert main(["frame", "decode", shown, *reply, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["crc_valid"]
    asked = shlex.split(line)[4:]
    for option, text in zip(asked[::2], asked[1::2], strict=True):
        name = option.removeprefix("--").replace("-", "_")
        if name in ("keyframe", "action") and ":" in text:
            rows = found["fields"][f"{name}s"]["value"]
            parts = [part.removesuffix(".0") for row in rows for part in map(str, row.values())]
            assert all(part in parts for part in text.split(":"))
        else:
            value = found["fields"][name]["value"]
            if isinstance(value, list):
                assert value[: text.count(",") + 1] == pytest.approx(
                    [float(part) for part in text.split(",")]
                )
            else:
                assert value == text or value == int(text, 0)


def test_every_command_has_a_worked_example() -> None:
    made = {
        bytes.fromhex(shown)[12]
        for line, shown in EXAMPLES
        if " make " in line and not re.search("status|list-reply", line)
    }
    assert made >= teaching.COMMANDS
    kinds = {line.split()[3] for line, _ in EXAMPLES if " make " in line}
    others = {"pose-n", "state-all"}  # their length differs from robot to robot
    assert {one.key for one in LAYOUTS} - kinds == others
    assert {one.key for one in LAYOUTS if one.direction is FrameDirection.REPLY} <= kinds


def test_every_mode_of_a_g1_is_in_the_table_of_mode_ids() -> None:
    rows = TEXT.partition("### Mode ids")[2].partition("## Session rules")[0]
    told = {
        int(number): name
        for number, name in re.findall(r"^\| (\d+) \| (\w+) \|", rows, re.MULTILINE)
    }
    assert told == {mode.value: mode.name for mode in Mode}


def test_no_claim_rests_on_an_unnamed_document() -> None:
    for path in (page.PAGE, page.PAGE.with_name("evidence.md"), page.PAGE.with_name("README.md")):
        text = path.read_text(encoding="utf-8")
        for words in ("one document", "another document", "two documents", "will add both"):
            assert words not in text, (path.name, words)
