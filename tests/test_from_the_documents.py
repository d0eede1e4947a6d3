"""docs/from-the-documents.md: every line of its second columns runs, table by table, in order.

A comment above a table says what the reader has by then:

    <!-- rows first: rote capture make x.pcap -->     what gives the rows their files and robots
    <!-- rows within: async with connect() as robot: --> Python rows are a part of this
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from documentation import ROOT, Block, Reader
from rote.wire.teaching_fields import DOCUMENTS

PAGE = ROOT / "docs" / "from-the-documents.md"
TEXT = PAGE.read_text(encoding="utf-8")
_TABLE = re.compile(r"((?:^<!-- rows[^\n]*-->\n)*)\n?((?:^\|[^\n]*\n)+)", re.MULTILINE)
_NOTE = re.compile(r"<!-- rows (first|within): (.*) -->")

NOT_YET = {
    "await robot.send(0x0A, bytes(44))",
    "await robot.send(0x1A, bytes(44))",
    "await robot.play(1)",
    'await robot.play("wave", frames=100)',
    'await robot.play("wave", keyframes=[rote.Keyframe(joint=18, time_ms=800, value_rad=0.5)])',
    "rote play wave --frames 100",
    "rote send 0x1a",
    "rote teach again --hand wave --seconds 2 --loop --compensation 0,0,0,0,0,0,0,0,0,0,0",
    "rote play 1",
    "rote demo --checklist",
    "from rote.wire import PacketBuilder; packet = PacketBuilder().build(0x1A, bytes(44))",
    "from rote.wire import verify_crc32; assert verify_crc32(packet)",
    "from rote.teaching_controller import G1TeachingController; "
    'controller = G1TeachingController(url="sim://g1?store=:memory:")',
    "controller.init_connection()",
    "print(controller.list_actions())",
    "controller.enter_teaching()",
    'controller.record_trajectory(seconds=1, hand="wave")',
    'controller.save_action("my_wave", 1000)',
    "controller.play_action(1)",
    "controller.exit_teaching()",
    "controller.send_command(0x1A)",
    "print(controller.parse_action_list(controller.send_command(0x1A)))",
    "controller.close()",
    'loop = LoopFunc("Control", 0.002, 0, print)',
    "from rote.legged_sdk import UDP",
    "from rote import HighCmd, HighState, LowCmd, LowState",
    "from rote import Led, MotorCmd, MotorState",
}
"""What the page already promises and this tree does not have. The last test fails once it has."""


@dataclass(frozen=True)
class Table:
    """A table whose second column is called "in rote"."""

    line: int
    heading: str
    notes: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def code(self) -> list[str]:
        """What its rows run, in their order."""
        return [span for row in self.rows for span in re.findall(r"`([^`]+)`", row[1])]

    def __str__(self) -> str:
        return f"{self.heading} {self.line}".replace(" ", "-")


def tables() -> list[Table]:
    found = []
    for match in _TABLE.finditer(TEXT):
        cells = [
            tuple(c.strip() for c in row.strip("|").split("|")) for row in match[2].split("\n")
        ]
        if cells[0][1:2] != ("in rote",):
            continue
        heading = re.findall(r"^## (.*)$", TEXT[: match.start()], re.MULTILINE)[-1]
        rows = tuple(row for row in cells[2:] if len(row) > 1)
        line = TEXT.count("\n", 0, match.start(2)) + 1
        found.append(Table(line, heading, tuple(_NOTE.findall(match[1])), rows))
    return found


TABLES = tables()


def blocks(table: Table, *, left_out: set[str]) -> list[Block]:
    """Return the rows of a table as blocks of code: commands together, and Python together."""
    code = [line for line in table.code if line not in left_out]
    notes = [("run first", said) for kind, said in table.notes if kind == "first"]
    within = [("within", said) for kind, said in table.notes if kind == "within"]
    shell = [line for line in code if line.startswith("rote ")]
    python = [line for line in code if not line.startswith("rote ")]
    made = []
    if shell:
        made.append(Block(PAGE, table.line, "sh", "\n".join(shell), tuple(notes)))
    if python:
        made.append(Block(PAGE, table.line, "python", "\n".join(python), tuple(within)))
    return made


def run(table: Table, folder: Path, monkeypatch: pytest.MonkeyPatch, left_out: set[str]) -> None:
    reader = Reader(PAGE, folder, monkeypatch)
    try:
        for block in blocks(table, left_out=left_out):
            reader.run(block)
        reader.leave()
    finally:
        reader.give_up()
    if reader.too_busy:
        pytest.skip("; ".join(reader.too_busy))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_every_row_of_a_table_can_be_done(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(table, tmp_path, monkeypatch, NOT_YET)


@pytest.mark.timeout(180)
@pytest.mark.xfail(strict=True, raises=Exception, reason="remove it from NOT_YET: it is there")
@pytest.mark.parametrize("table", [table for table in TABLES if NOT_YET & {*table.code}], ids=str)
def test_a_row_that_cannot_be_done_yet_still_cannot(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(table, tmp_path, monkeypatch, set())


def test_no_table_is_overlooked() -> None:
    assert len(TABLES) == TEXT.count("| in rote |") == 12
    assert sum(len(table.code) for table in TABLES) > 60


def test_a_row_without_a_call_says_why() -> None:
    for table in TABLES:
        for row in table.rows:
            if not re.search(r"`[^`]+`", row[1]):
                assert len(row[2].split()) > 3, row


def test_rows_that_cannot_be_done_yet_are_on_the_page() -> None:
    shown = {line for table in TABLES for line in table.code}
    assert shown >= NOT_YET


def test_the_five_documents_are_named_by_file_and_title() -> None:
    for document in DOCUMENTS:
        assert f"| `{document.key}` | `{document.file}` | {document.title} |" in TEXT


def test_the_ten_commands_and_the_methods_of_the_controller_are_all_there() -> None:
    for command in ("0x09", "0x0A", "0x0B", "0x0C", "0x0D", "0x0E", "0x0F", "0x1A", "0x2B", "0x41"):
        assert command in TEXT
    for method in (
        "init_connection", "list_actions", "enter_teaching", "record_trajectory", "save_action",
        "play_action", "exit_teaching", "send_command", "parse_action_list",
    ):  # fmt: skip
        assert f"`{method}(" in TEXT


def test_the_first_screen_of_the_readme_leads_here() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "docs/from-the-documents.md" in "\n".join(readme.splitlines()[:12])
