"""Help, errors that point to it, logs, and output on terminals without Unicode."""

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forked import Rote
from rote.cli import commands, main
from rote.platform.console_text import json_text

CUT_OFF = re.compile(r"\w\.\.\.$", re.MULTILINE)
PYTHON_TYPE = re.compile(r"<[\w\[\]|, ]+>|\b(TEXT|INTEGER|FLOAT|PATH)\b")
"""What Typer calls a value of which nothing else is said."""


def every_command(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    node = commands() if command is None else command
    yield path
    below = getattr(node, "commands", {}) or {}
    if path == ("frame", "make"):
        below = {name: node.get_command(None, name) for name in node.list_commands(None)}
    for name, each in below.items():
        if not each.hidden:
            yield from every_command(each, (*path, name))


EVERY = list(every_command())


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    return (code, *capsys.readouterr())


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_the_help_of_every_command_is_whole_and_shows_values_as_what_they_are(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, short, err = ask(capsys, *path, "-h")
    assert (code, err) == (0, "")
    assert max(map(len, short.splitlines())) <= 80
    assert not CUT_OFF.search(short), "a sentence is cut off"
    assert not PYTHON_TYPE.search(short)
    for option in ("--log", "-v", "-h"):
        assert option in short


def test_a_choice_is_shown_as_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert "[linear|cubic|smooth]" in ask(capsys, "play", "-h")[1]
    assert "[wave|bow|clap|drum]" in ask(capsys, "teach", "-h")[1].replace("\n", "")


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("teach", "rote teach"),
        ("motion trim", "rote motion trim"),
        ("motion trim a b --nonsense", "rote motion trim"),
        ("motion nonsense", "rote motion"),
        ("takes show", "rote takes show"),
        ("a1 walk", "rote a1 walk"),
        ("frame make play --nonsense x", "rote frame make play"),
        ("capture --nonsense", "rote capture report"),
        ("capture field x.pcap", "rote capture field"),
        ("nonsense", "rote"),
        ("status --timeout soon", "rote status"),
    ],
)
def test_a_wrong_call_points_to_the_help_of_that_very_command(
    line: str, about: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ask(capsys, *line.split())
    assert (code, out) == (2, "")
    assert f"See: {about} --help" in err.splitlines()[-1]
    assert ask(capsys, *about.split()[1:], "--help")[0] == 0


# ---- logs ----------------------------------------------------------------------------------------


def test_verbose_shows_what_the_robot_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ask(capsys, "list", "-v", "--json")
    assert code == 0
    assert "taught" in json.loads(out)
    assert "connected to sim://g1" in err
    assert "ask ListActions" in err
    assert ask(capsys, "list") == (0, "0 of 15 slots used.\n", "")


def test_verbose_may_stand_before_the_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert "ask ListActions" in ask(capsys, "-v", "list")[2]
    assert "exit code 0" in ask(capsys, "list", "-vv")[2]
    assert "exit code 0" not in ask(capsys, "list", "--verbose")[2]


def test_a_log_is_added_to_and_has_errors_with_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "rote.log"
    log.write_text("before\n")
    assert ask(capsys, "list", "--log", str(log))[2] == ""
    assert ask(capsys, "play", "nothing", f"--log={log}")[0] == 4
    told = log.read_text()
    assert told.startswith("before\n")
    assert "ask ListActions" in told
    assert "Traceback" in told
    assert "ended with exit code 4" in told
    assert not logging.getLogger("rote").handlers


def test_a_log_has_no_secrets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, key = tmp_path / "rote.log", "00112233445566778899aabbccddeeff"
    ask(capsys, "status", "--key", key, "--log", str(log))
    ask(capsys, "status", f"--key={key}", "--log", str(log))
    assert key not in log.read_text()
    assert "status" in log.read_text()


def test_a_log_that_cannot_be_written_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(capsys, "list", "--log", str(tmp_path))[0] == 2
    assert ask(capsys, "list", "--log", str(tmp_path / "no" / "x"))[0] == 2


def test_a_capture_takes_them_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, log = tmp_path / "x.pcap", tmp_path / "rote.log"
    assert ask(capsys, "capture", "make", str(made), "--log", str(log))[0] == 0
    assert ask(capsys, "capture", str(made), "-vv", "--log", str(log))[0] == 0
    assert "ended with exit code 0" in log.read_text()


# ---- terminals without Unicode -------------------------------------------------------------------


def run(home: Path, encoding: str, *arguments: str) -> tuple[int, bytes, bytes]:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "LANG": "C", "ROTE_HOME": str(home)}
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Rote(*arguments, env=environment, **streams) as process:
        out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_name_that_the_terminal_cannot_show_is_told_without_loss(
    encoding: str, tmp_path: Path
) -> None:
    name = "grüße 中 🙂"
    made = run(tmp_path, encoding, "teach", name, "--hand", "wave", "--seconds", "0.2", "--json")
    assert made[0] == 0, made[2]
    assert json.loads(made[1])["name"] == name
    code, out, err = run(tmp_path, encoding, "list")
    assert (code, err) == (0, b"")
    shown = "gr\\xfc\\xdfe" if encoding == "ascii" else "grüße"
    assert f"{shown} \\u4e2d \\U0001f642" in out.decode(encoding)
    code, out, _ = run(tmp_path, encoding, "takes", "list")
    assert code == 0
    assert re.search(r"[1-8]{5}", out.decode(encoding)), "the sketch is drawn by digits"
    code, out, err = run(tmp_path, encoding, "play", "中", "--json")
    assert code == 4
    assert json.loads(err)["error"] == "refused"


def test_json_is_complete_where_the_pipe_is_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipe:
        encoding = "ascii"

    monkeypatch.setattr(sys, "stdout", Pipe())
    told = json_text({"name": "42 °C 中"})
    assert told.isascii()
    assert json.loads(told) == {"name": "42 °C 中"}


@pytest.mark.slow
def test_a_command_does_not_import_the_others() -> None:
    ask = "import sys; from rote.cli import commands; commands('robots'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "rote.cli.robots" in loaded
    assert not {"rote.cli.web", "rote.cli.capture", "numpy"} & loaded


def test_a_number_that_is_none_is_still_refused() -> None:
    assert main(["status", "--timeout", "soon"]) == 2


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["help"], ["--help"]),
        (["help", "teach"], ["teach", "--help"]),
        (["version"], ["--version"]),
        (["-V"], ["--version"]),
        (["ls", "--json"], ["list", "--json"]),
        (["actions"], ["list"]),
        (["rm", "--help"], ["delete", "--help"]),
        (["record", "--help"], ["teach", "--help"]),
        (["export", "--help"], ["takes", "export", "--help"]),
        (["gui", "--help"], ["web", "--help"]),
    ],
    ids=" ".join,
)
def test_a_word_that_users_try_first_is_the_command_that_they_mean(
    typed: list[str], meant: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    codes = [main(typed)]
    printed = capsys.readouterr()
    codes.append(main(meant))
    assert (codes, printed) == ([0, 0], capsys.readouterr())


def test_the_help_lists_every_command_by_section_and_stop_on_the_first_screen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith(":") and not line.startswith(" ")] == [
        "Options:", "Start:", "Your robot:", "Teach and play:", "Motions:", "Simulate:",
        "Several robots:", "Other tools:", "Quadrupeds:", "Protocols:",
    ]  # fmt: skip
    assert any(line.startswith("  stop ") for line in lines[:24])
    assert not {"ls", "rm", "gui", "record"} & {line.split()[0] for line in lines if line.strip()}
