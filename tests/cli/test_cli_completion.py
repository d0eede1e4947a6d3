"""Completion: what a shell offers, from where, and how quickly."""

import json
import os
import pty
import resource
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from documentation import ROOT, blocks
from rote.cli import main
from rote.cli.completion import OFFER_FILES, SCRIPTS, SHELLS, list_completions, split_line
from rote.platform.paths import store_file, takes_folder
from rote.sim.presets import add_factory_actions
from rote.sim.store import Store


def offered(line: str) -> list[str]:
    return [value for value, _ in list_completions(split_line(line))]


def make_takes(*names: str) -> None:
    takes_folder().mkdir(parents=True)
    for name in names:
        (takes_folder() / name).touch()


def test_commands_and_the_commands_of_a_group_are_offered() -> None:
    assert offered("rote te") == ["teach"]
    assert {"trim", "recover", "smooth"} <= set(offered("rote motion "))
    assert offered("rote takes res") == ["restore"]
    assert "play" in offered("rote frame make ")


def test_options_are_offered_once_a_dash_stands_there() -> None:
    assert "--overwrite" in offered("rote teach wave --")
    assert {"-h", "-v"} <= set(offered("rote teach wave -"))
    assert "--html" in offered("rote capture phone.pcap --")
    assert not any(value.startswith("-") for value in offered("rote teach wave "))


def test_the_choices_of_an_option_are_offered() -> None:
    assert offered("rote play wave --interpolation ") == ["linear", "cubic", "smooth"]
    assert offered("rote play wave --interpolation=s") == ["--interpolation=smooth"]
    assert offered("rote completion f") == ["fish"]
    assert offered("rote modes d") == ["damp"]


def test_nothing_is_offered_for_a_value_that_nobody_can_guess() -> None:
    assert offered("rote teach wave --seconds ") == []


def test_takes_are_offered_by_their_names() -> None:
    make_takes("wave.mcap", "my bow.npz", ".listed.json", "cut.mcap.part")
    assert offered("rote takes show ") == ["my bow", "wave"]
    assert offered("rote takes show w") == ["wave"]
    assert offered("rote motion trim --take w") == ["wave"]
    assert offered("rote play --take ") == ["my bow", "wave"]


def test_files_are_left_to_the_shell() -> None:
    assert offered("rote motion trim wa") == [OFFER_FILES]
    assert offered("rote capture ph") == [OFFER_FILES]
    assert offered("rote status --log ") == [OFFER_FILES]


def test_actions_of_the_embedded_robot_are_offered_and_no_other_robot_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert offered("rote play ") == []
    store = Store(store_file("g1"))
    add_factory_actions(store)
    names = [entry.name for entry in store.entries()]
    store.close()
    assert offered("rote play ") == names
    assert offered(f"rote delete {names[0][:2]}")[:1] == names[:1]
    assert offered("rote play --robot udp://nowhere ") == []
    monkeypatch.setenv("ROTE_ROBOT", "udp://nowhere")
    assert offered("rote play ") == []


def test_a_store_that_is_no_store_offers_nothing() -> None:
    store_file("g1").parent.mkdir(parents=True)
    store_file("g1").write_text("no database")
    assert offered("rote play ") == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rote ", ["rote", ""]),
        ("rote te", ["rote", "te"]),
        ("rote takes show 'my b", ["rote", "takes", "show", "my b"]),
        ("rote takes show my\\ b", ["rote", "takes", "show", "my b"]),
        ("rote list --robot udp://[::1", ["rote", "list", "--robot", "udp://[::1"]),
        ("", [""]),
    ],
)
def test_a_line_is_split_as_a_shell_does(line: str, words: list[str]) -> None:
    assert split_line(line) == words


def test_every_prefix_of_a_long_line_gets_an_answer() -> None:
    line = "rote motion trim --take 'my wave' out.mcap --start=1 --overwrite -- -x \"a b"
    answers = [list(list_completions(split_line(line[:end]))) for end in range(len(line) + 1)]
    assert [bool(each) for each in answers[: len("rote motion")]] == [True] * len("rote motion")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_printed_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert script == SCRIPTS[shell]
    assert f"_ROTE_COMPLETE{' ' if shell == 'fish' else '='}{shell}" in script
    assert main(["completion", shell, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"shell": shell, "script": script}


def test_another_shell_is_refused_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "bash, zsh, fish" in capsys.readouterr().err


BASH = """
eval "$("$1" -m rote completion bash)"
rote() { "$ROTE_PYTHON" -m rote "$@"; }
COMP_LINE=$2; COMP_POINT=${#2}
eval "COMP_WORDS=($3)"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { :; }
_rote rote
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "words", "wanted"),
    [
        ("rote te", "rote te", ["teach"]),
        ("rote takes show my", "rote takes show my", ["my\\ bow"]),
        ("rote list --robot udp:", "rote list --robot udp :", ["//127.0.0.1:49504"]),
        ("rote takes import not", "rote takes import not", ["notes.csv"]),
    ],
)
def test_bash_itself_completes(line: str, words: str, wanted: list[str], tmp_path: Path) -> None:
    make_takes("my bow.mcap")
    (tmp_path / "notes.csv").touch()
    done = subprocess.run(
        ["bash", "-c", BASH, "bash", sys.executable, line, words],
        env={**os.environ, "ROTE_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split("\n")[:-1] == wanted
    assert done.stderr == ""


OTHER_SHELLS = {
    "rote te": ("rote teach", "teach\tTeach a motion by hand"),
    "rote takes show my": (r"rote takes show my\ bow", "my bow"),
    "rote list --robot udp:": (
        "rote list --robot udp://127.0.0.1:49504",
        "udp://127.0.0.1:49504\ta robot of rote sim",
    ),
    "rote play wave --interpolation=s": (
        "rote play wave --interpolation=smooth",
        "--interpolation=smooth",
    ),
    "rote takes import not": ("rote takes import notes.csv", "notes.csv"),
}
"""A line, what zsh makes of it, and what fish offers."""


def a_home_with(shell: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the completion as docs/cli.md says, in a home as a new user has it."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    make_takes("my bow.mcap")
    (home / "notes.csv").touch()
    (home / "bin").mkdir()
    rote = home / "bin" / "rote"
    python = shlex.quote(sys.executable)
    rote.write_text(f'#!/bin/sh\nexec {python} -m rote "$@"\n', encoding="utf-8")
    rote.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home)
    (shown,) = [
        block.code
        for block in blocks(ROOT / "docs" / "cli.md")
        if f"rote completion {shell} >" in block.code
    ]
    subprocess.run(["sh", "-ec", shown], check=True, timeout=60)


@pytest.mark.slow
def test_fish_itself_completes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_home_with("fish", tmp_path, monkeypatch)
    asked = "; echo; ".join(f"complete -C {shlex.quote(line)}" for line in OTHER_SHELLS)
    done = subprocess.run(
        ["fish", "-c", asked], capture_output=True, text=True, check=True, timeout=60
    )
    offered = done.stdout.removesuffix("\n").split("\n\n")
    assert offered == [wanted for _, wanted in OTHER_SHELLS.values()]
    assert done.stderr == ""


@contextmanager
def a_terminal(*command: str) -> Iterator[int]:
    """Run a program at a terminal of its own; yield our end of it."""
    ours, theirs = pty.openpty()
    program = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    try:
        yield ours
    finally:
        program.kill()
        program.wait()
        os.close(ours)
        os.close(theirs)


def completed(terminal: int, line: str, dumped: Path) -> str:
    """Type a line and press Tab in zsh; return the line that then stands there."""
    os.write(terminal, f"{line}\t".encode())
    until = time.monotonic() + 60
    while time.monotonic() < until:
        os.write(terminal, b"\x18\x04")  # the keys that write the line into a file
        if select.select([terminal], [], [], 0.2)[0]:
            os.read(terminal, 4096)
        found = dumped.read_text(encoding="utf-8").strip() if dumped.is_file() else ""
        if found.startswith(line) and found != line:
            os.write(terminal, b"\x15")  # Ctrl-U: begin a new line
            return found
    return f"{line} (no answer)"


@pytest.mark.slow
def test_zsh_itself_completes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_home_with("zsh", tmp_path, monkeypatch)
    (tmp_path / ".zshrc").write_text(
        "fpath+=~/.zfunc\nautoload -Uz compinit; compinit -u\n"
        "dump() { print -r -- $BUFFER >| ~/line.new; mv -f ~/line.new ~/line; }\n"
        "zle -N dump; bindkey '^X^D' dump\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("TERM", "dumb")
    with a_terminal("zsh", "-i") as terminal:
        for line, (wanted, _) in OTHER_SHELLS.items():
            assert completed(terminal, line, tmp_path / "line") == wanted


@pytest.mark.slow
def test_an_answer_imports_only_the_command_on_the_line() -> None:
    code = (
        "import os, sys; os.environ['_ROTE_COMPLETE'] = 'bash'; "
        "os.environ['_ROTE_LINE'] = 'rote play '; from rote.__main__ import main; main(); "
        "print({'numpy', 'rote.cli.play', 'rote.cli.teach', 'rote.cli.web'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{'rote.cli.play'}\n"


@pytest.mark.quiet
def test_an_answer_takes_less_time_than_a_person_notices() -> None:
    """Processor time of the best of five, with the start of Python."""
    environment = {**os.environ, "_ROTE_COMPLETE": "bash"}
    environment["_ROTE_LINE"] = "rote motion trim --take wave out.mcap --"
    spent = []
    for _ in range(5):
        began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([sys.executable, "-m", "rote"], env=environment, check=True)
        spent.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began)
    assert min(spent) < 0.4
