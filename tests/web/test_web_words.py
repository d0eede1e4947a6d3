"""No sentence that can reach the page tells people to type a command: the page has buttons."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rote
from rote.cli import commands

SOURCE = Path(rote.__file__).parent
WITHOUT_A_PAGE = {
    "cli",  # the command line itself
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
ITS_OWN_COMMANDS = {"stage/demo.py"}
"""It starts processes of rote, and tells nobody how."""


def typed() -> re.Pattern[str]:
    """What a person would type: a command of rote, or an option."""
    known = "|".join(sorted(map(re.escape, commands().commands)))
    return re.compile(rf"\brote (?:{known})\b|(?<![\w-])--[a-z]|\bcommand line\b|\bterminal\b")


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Every text of a module that is no docstring, by its line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.lineno, node.value


def modules() -> list[str]:
    found = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")]
    return sorted(
        name
        for name in found
        if name.split("/")[0] not in WITHOUT_A_PAGE
        and name not in BEFORE_THE_PAGE | ITS_OWN_COMMANDS
    )


def test_no_sentence_below_the_command_line_names_a_command() -> None:
    pattern = typed()
    named = [
        f"{name}:{line}: {text}"
        for name in modules()
        for line, text in sentences(SOURCE / name)
        if pattern.search(text)
    ]
    assert named == []


@pytest.mark.parametrize(
    "text",
    ["Run rote motion convert --degrees.", "add --overwrite", "rote doctor says more", "rote web"],
)
def test_a_command_in_a_sentence_would_be_found(text: str) -> None:
    assert typed().search(text)


@pytest.mark.parametrize("text", ["rote does not know this machine", "Trim - or not", "a--b"])
def test_words_that_are_no_command_are_left_alone(text: str) -> None:
    assert not typed().search(text)
