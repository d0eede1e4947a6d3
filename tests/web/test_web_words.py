"""No sentence below the edge names a command, and none that can reach the page an option either.

The command line words its own sentences, and the page has buttons.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import rote
from rote.cli import commands

SOURCE = Path(rote.__file__).parent
PAGE = Path(__file__).parents[2] / "page" / "src"
EDGES = {"cli", "web", "__main__.py"}
WITHOUT_A_PAGE = {
    "cli",  # the command line itself
    "batch",  # only the command line runs batches
    "capture",  # only the command line reads captures
    "trial",  # only the command line runs trials
    "__main__.py",
    "text.py",  # a table of what the Python API calls things
}
BEFORE_THE_PAGE = {
    "web/server/serve.py",
    "web/access/certificate.py",
    "web/server/app.py",
    "robot/doctor.py",
    "platform/atomic_file.py",  # `check_new` is for files that a person names, which no page does
}
"""What is said there is said by a command, or where there is no page; how to install is no command
of rote.
"""
ITS_OWN_COMMANDS = {"stage/demo.py", "stage/plain_stop.py"}
"""One starts processes of rote; the other one is a command without the rest of the command line."""


def command(*besides: str) -> str:
    """Return the pattern of a command of rote, besides those named."""
    known = "|".join(sorted(map(re.escape, commands().commands.keys() - {*besides})))
    return rf"\brote (?:{known})\b"


def typed() -> re.Pattern[str]:
    """What a person would type: a command of rote, or an option."""
    return re.compile(rf"{command()}|(?<![\w-])--[a-z]|\bcommand line\b|\bterminal\b")


@cache
def sentences(path: Path) -> list[tuple[int, str]]:
    """Every text of a module that is no docstring, by its line."""
    found = []
    nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                found.append((node.lineno, node.value))
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            nodes.extend(ast.iter_child_nodes(node))
    return found


def modules(without: set[str]) -> list[str]:
    """Return all modules but those of some packages."""
    found = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")]
    return sorted(name for name in found if name.split("/")[0] not in without)


def matches(names: list[str], pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{line}: {text}"
        for name in names
        for line, text in sentences(SOURCE / name)
        if pattern.search(text)
    ]


def test_no_sentence_below_the_edge_names_a_command() -> None:
    names = {*modules(EDGES | {"trial"})} - {"stage/plain_stop.py"}
    assert matches(sorted(names), re.compile(command())) == []
    trials = [name for name in modules(EDGES) if name.startswith("trial/")]
    assert matches(trials, re.compile(command("trial"))) == []


def test_no_sentence_that_can_reach_the_page_tells_people_what_to_type() -> None:
    names = {*modules(WITHOUT_A_PAGE)} - BEFORE_THE_PAGE - ITS_OWN_COMMANDS
    assert matches(sorted(names), typed()) == []


def test_every_refusal_that_the_page_translates_is_one_of_the_server() -> None:
    texts = (PAGE / "texts.ts").read_text(encoding="utf-8")
    block = re.search(r"^  refusals: \{$(.*?)^  \},$", texts, re.DOTALL | re.MULTILINE)
    assert block is not None
    templates = re.findall(r'"((?:[^"\\]|\\.)*)",$', block[1], re.MULTILINE)
    assert len(templates) > 20
    said = {text for name in modules(WITHOUT_A_PAGE) for _, text in sentences(SOURCE / name)}
    assert [template for template in templates if template not in said] == []


@pytest.mark.parametrize(
    "text",
    ["Run rote motion convert --degrees.", "add --overwrite", "rote doctor says more", "rote web"],
)
def test_a_command_in_a_sentence_would_be_found(text: str) -> None:
    assert typed().search(text)


@pytest.mark.parametrize("text", ["rote does not know this machine", "Trim - or not", "a--b"])
def test_words_that_are_no_command_are_left_alone(text: str) -> None:
    assert not typed().search(text)
