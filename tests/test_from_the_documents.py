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
from rote.wire.teaching.fields import DOCUMENTS

PAGE = ROOT / "docs" / "from-the-documents.md"
TEXT = PAGE.read_text(encoding="utf-8")
_TABLE = re.compile(r"((?:^<!-- rows[^\n]*-->\n)*)\n?((?:^\|[^\n]*\n)+)", re.MULTILINE)
_NOTE = re.compile(r"<!-- rows (first|within): (.*) -->")


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


def blocks(table: Table) -> list[Block]:
    """Return the rows of a table as blocks of code: commands together, and Python together."""
    notes = [("run first", said) for kind, said in table.notes if kind == "first"]
    within = [("within", said) for kind, said in table.notes if kind == "within"]
    shell = [line for line in table.code if line.startswith("rote ")]
    python = [line for line in table.code if not line.startswith("rote ")]
    made = []
    if shell:
        made.append(Block(PAGE, table.line, "sh", "\n".join(shell), tuple(notes)))
    if python:
        made.append(Block(PAGE, table.line, "python", "\n".join(python), tuple(within)))
    return made


def run(table: Table, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(PAGE, folder, monkeypatch)
    try:
        for block in blocks(table):
            reader.run(block)
        reader.leave()
    finally:
        reader.give_up()


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_every_row_of_a_table_can_be_done(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(table, tmp_path, monkeypatch)


def test_no_table_is_overlooked() -> None:
    assert len(TABLES) == TEXT.count("| in rote |") == 12
    assert sum(len(table.code) for table in TABLES) > 60


def test_a_row_without_a_call_says_why() -> None:
    for table in TABLES:
        for row in table.rows:
            if not re.search(r"`[^`]+`", row[1]):
                assert len(row[2].split()) > 3, row


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
