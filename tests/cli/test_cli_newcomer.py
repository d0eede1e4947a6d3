"""What a newcomer meets at the command line: mistyped words, a still robot, a home that is not
writable, a narrow terminal.
"""

import json
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import virtual
from forked import Rote
from rote.cli import commands, main, output
from rote.cli.examples import EXAMPLES
from rote.sim.presets import action_from_script
from rote.sim.store import Store

FOREIGN = (
    "No such option",
    "No such command",
    "Missing argument",
    "Missing option",
    "Missing command",
    "Invalid value",
    "Input should",
    "Got unexpected",
    "Possible options",
    "unrecognized arguments",
    "the following arguments",
    "expected one argument",
    "Traceback",
)
"""Beginnings of sentences that are Typer's, pydantic's, argparse's or Python's."""


def ask(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    code = main(shlex.split(line))
    return (code, *capsys.readouterr())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose robot knows two actions."""
    monkeypatch.setenv("ROTE_HOME", str(tmp_path))
    monkeypatch.delenv("ROTE_ROBOT", raising=False)
    store = Store(tmp_path / "g1.sqlite")
    for name in ("wave", "Waist_Drum_Dance"):
        store.save(action_from_script(name, "wave", 0.5))
    store.close()
    return tmp_path


@pytest.mark.parametrize(
    ("line", "code", "message", "suggestion"),
    [
        ("teahc wave", 2, "there is no command 'teahc'", "Did you mean teach?"),
        ("motion -v trm a b", 2, "there is no command 'trm'", "Did you mean trim?"),
        ("frame make lst", 2, "there is no command 'lst'", "Did you mean list?"),
        ("list --jsno", 2, "there is no option '--jsno'", "Did you mean --json?"),
        ("foo", 2, "there is no command 'foo'", "See: rote --help"),
        ("play", 2, "ACTION is missing", "See: rote play --help"),
        ("play wave --speed", 2, "--speed needs a value", "See: rote play --help"),
        ("play wave --json=3", 2, "--json takes no value", "See: rote play --help"),
        ("play wave --speed fast", 2, "--speed needs a number, not 'fast'", "See: rote play"),
        ("capture packets x --first q", 2, "--first needs a whole number, not 'q'", "See: rote"),
        ("status extra", 2, "rote status takes no argument 'extra'", "See: rote status --help"),
        ("capture --stream", 2, "FILE is missing", "See: rote capture report --help"),
        ("capture x --html", 2, "--html needs a value", "See: rote capture report --help"),
        ("play Wave", 4, "there is no action 'Wave'", "Did you mean wave?"),
        ("play waist_drum_dance", 4, "there is no action", "Did you mean Waist_Drum_Dance?"),
        ("delete wvae --yes", 4, "there is no action 'wvae'", "Did you mean wave?"),
        ("rename wvae x", 4, "there is no action 'wvae'", "Did you mean wave?"),
        ("list --robot g1", 2, "'g1' does not name a wire", "Did you mean sim://g1?"),
        ("list --robot 10.0.0.7", 2, "does not name a wire", "Did you mean webrtc://10.0.0.7?"),
        ("list --robot webrct://ap", 2, "does not name a wire", "Did you mean webrtc://?"),
        ("list --robot sim://g1-92", 2, "not a simulated robot", "Did you mean sim://g1-29"),
        ("robots g1-92", 2, "there is no robot 'g1-92'", "Did you mean g1-29"),
    ],
)
def test_a_mistake_is_described_in_our_words_with_the_nearest_known_name(
    home: Path,
    capsys: pytest.CaptureFixture[str],
    line: str,
    code: int,
    message: str,
    suggestion: str,
) -> None:
    result, out, err = ask(capsys, line)
    assert (result, out) == (code, "")
    assert message in err
    assert suggestion in err
    assert not [sentence for sentence in FOREIGN if sentence in err]


def test_a_take_name_is_suggested(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(capsys, "teach bow --hand bow --seconds 0.6")[0] == 0
    assert "Did you mean bow?" in ask(capsys, "takes show bows")[2]


# ---- a simulated robot does not move by itself ---------------------------------------------------


def test_teaching_a_simulated_robot_without_a_hand_says_that_nothing_moves(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ask(capsys, "teach still --seconds 0.6")
    assert code == 0
    assert "nothing moves its arms by itself" in err
    assert "--hand wave" in err
    assert "rote web" in err
    assert "Nothing moved during the recording." in out


def test_a_take_with_a_hand_has_moved(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ask(capsys, "teach hello --hand wave --seconds 0.6")
    assert (code, err) == (0, "")
    assert "Nothing moved" not in out
    code, out, err = ask(capsys, "teach again --seconds 0.6 --json")
    assert (code, err) == (0, "")
    assert json.loads(out)["moved"] is False


def test_an_action_played_by_number_is_reported_by_its_name(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = ask(capsys, "play 1 --json")
    assert (code, json.loads(out)["name"]) == (0, "wave")


def test_the_a1_commands_use_an_embedded_robot_by_default(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ask(capsys, "a1 status")
    assert (code, err) == (0, "")
    assert "high level" in out
    code, out, err = ask(capsys, "a1 walk 0.1")
    assert (code, err) == (0, "")
    assert "a walk of 0.10 m" in out


# ---- a home that is not writable -----------------------------------------------------------------


def test_an_unwritable_home_means_a_robot_in_memory_with_a_notice(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ROTE_HOME", str(tmp_path / "file" / "home"))
    code, out, _ = ask(capsys, "list")
    assert (code, out) == (0, "0 of 15 slots used.\n")
    assert "cannot be written: the simulated robot keeps its actions in memory" in caplog.text
    assert "ROTE_HOME" in caplog.text


def test_a_store_that_was_named_or_is_damaged_stays_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROTE_HOME", str(tmp_path))
    (tmp_path / "g1.sqlite").write_text("no database")
    assert ask(capsys, "list")[0] == 1
    (tmp_path / "file").touch()
    assert ask(capsys, f"list --robot 'sim://g1?store={tmp_path}/file/x.db'")[0] == 2


def run_until_it_listens(*arguments: str) -> str:
    """Run a simulated robot, end it by Ctrl-C once it listens, and return what it printed."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
    with Rote("sim", "--udp", "127.0.0.1:0", *arguments, **pipes) as process:
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if "listens at" in line:
                process.send_signal(signal.SIGINT)
    assert process.returncode in {0, 130}
    return "".join(lines)


@pytest.mark.slow
def test_a_simulated_robot_in_memory_does_not_claim_to_keep_its_store(home: Path) -> None:
    shown = run_until_it_listens("--store", ":memory:")
    assert "its store is in memory only" in shown
    assert "kept" not in shown
    shown = run_until_it_listens("--store", str(home / "own.db"))
    assert "its store is kept" in shown


# ---- tables --------------------------------------------------------------------------------------

TITLES = ("name", "what it is", "seconds")
ROWS = [("wave", "a hand that waves to the left and to the right", "1.5"), ("bow", "", "12.0")]


def test_a_wide_table_is_folded_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    output.print_table(output.console(width=60), TITLES, ROWS, right=("seconds",))
    shown = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)
    lines = [line.rstrip() for line in shown.splitlines()]
    assert lines == [
        "name wave",
        "  what it is a hand that waves to the left and to the right",
        "  seconds 1.5",
        "name bow",
        "  seconds 12.0",
    ]


def test_a_table_in_a_pipe_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(output.console(), TITLES, ROWS, right=("seconds",))
    assert capsys.readouterr().out.splitlines() == [
        "name  what it is                                      seconds",
        "wave  a hand that waves to the left and to the right      1.5",
        "bow                                                      12.0",
    ]


# ---- what a newcomer types, right and wrong, one line after the other in one home ----------------

LINES = """
0 rote
0 rote --help
0 rote -h
0 rote help
0 rote help play
0 rote version
0 rote --version
0 rote -V
2 rote --hlep
2 rote foo
2 rote tech wave
0 rote status
0 rote status --json
0 rote list
0 rote ls
0 rote actions
0 rote modes
0 rote modes stand
2 rote modes sit
2 rote modes stand --yes
0 rote robots
0 rote robots g1
0 rote robots r1 --json
2 rote robots spot
0 rote doctor --robot sim://g1
4 rote play wave
2 rote play
2 rote teach
2 rote teach wave
2 rote teach wave --hand wve
2 rote teach wave --hand wave --seconds soon
2 rote teach wave --hand wave --seconds 0
2 rote teach wave --hand wave --seconds -1
2 rote teach "" --hand wave
0 rote teach wave --hand wave --seconds 0.6
4 rote teach wave --hand wave --seconds 0.6
0 rote record bow --hand bow --seconds 0.6 --out bow.csv
2 rote teach clap --hand clap --seconds 0.6 --out bow.csv
2 rote teach clap --hand clap --seconds 0.6 --out clap.docx
0 rote list --json
0 rote play wave --speed 1.5
4 rote play wave --speed 4
0 rote play 1 --speed 1.5 --json
4 rote play 9
4 rote play Wave
2 rote play wave --speed 0
2 rote play wave --speed fast
2 rote play wave --speed
2 rote play wave --interpolation bezier
2 rote play wave --loop --frames
4 rote play wave.mcp
2 rote play wave.mcap
0 rote play bow.csv --speed 4
5 rote play wave --take --speed 4
0 rote rename bow nod
4 rote rename bow nod
4 rote delete bow --yes
2 rote delete nod
0 rote rm nod --yes
0 rote stop
2 rote stop now
0 rote takes
0 rote takes list
0 rote takes list wav
0 rote takes show wave
2 rote takes show wvae
0 rote takes tag wave --add hello
0 rote takes rename bow nod
2 rote takes delete nod --yes
0 rote takes delete nod
0 rote takes restore nod
0 rote export wave wave.json
2 rote takes export wave wave.json
0 rote motion
0 rote motion info bow.csv
0 rote motion trim bow.csv cut.csv --auto
2 rote motion trim bow.csv cut.csv --auto
0 rote motion trim bow.csv cut.csv --auto --overwrite
0 rote motion smooth bow.csv smooth.csv
0 rote motion mirror bow.csv mirrored.csv
2 rote motion speed bow.csv slow.csv 0.5
0 rote motion speed bow.csv slow.csv --factor 0.5
0 rote motion check bow.csv
0 rote motion check wave --take
2 rote motion trim nothing.csv out.csv --auto
2 rote motion trm bow.csv out.csv
2 rote motion plot
0 rote motion fit bow.csv fitted.csv --keep-tempo
2 rote motion fit bow.csv slower.csv --keep-tempo --slow-down
0 rote motion retime bow.csv timed.csv
2 rote motion blend bow.csv fitted.csv blended.csv
0 rote batch
2 rote batch check nothing.csv --out checked
2 rote batch fit
0 rote store bow.csv bowed
2 rote list --robot g1
2 rote list --robot sim://spot
2 rote list --robot 192.168.1.20
2 rote list --robot webrtc://
6 rote list --robot sim://a1
0 rote a1
0 rote a1 status
0 rote a1 walk 0.05
2 rote a1 walk
2 rote a1 walk far
2 rote a1 turn 1000
0 rote frame make list
0 rote frame make list-actions
2 rote frame decode zz
0 rote send list
2 rote send dance
0 rote capture make phone.pcap
0 rote capture phone.pcap
2 rote capture nothing.pcap
2 rote capture --jsn phone.pcap
0 rote show
2 rote show check nothing.json
2 rote show new wave.json
0 rote stage
0 rote trial
2 rote watch
2 rote gui --port abc
0 rote completion bash
2 rote completion cmd
2 rote sim --robot spot
2 rote sim --port 80
2 rote web --port abc
2 rote trial --level all
2 rote discover --seconds long
"""
"""Each line with its exit code."""
LINES_THAT_START_PROCESSES = """
0 rote record bow --hand bow --seconds 0.6 --out bow.csv
0 rote batch check bow.csv --out checked
0 rote batch check bow.csv --out checked
0 rote batch fit bow.csv --out fitted
0 rote batch convert bow.csv --to npz --out converted
2 rote batch convert bow.csv --to docx --out refused
"""


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ROTE_ROBOT", raising=False)
    monkeypatch.chdir(tmp_path)


def check_lines(
    lines: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run each line; fail if one ends with another code, prints nothing or foreign words."""
    wrong = []
    for line in lines.strip().splitlines():
        expected, _, typed = line.partition(" ")
        with monkeypatch.context() as now:
            if " a1" not in typed:  # its simulated robot is behind sockets
                now.setattr("rote.platform.loop.new_loop", virtual.VirtualLoop)
            code = main(shlex.split(typed)[1:])
        out, err = capsys.readouterr()
        if code != int(expected):
            wrong.append(f"{typed}: {code} instead of {expected}: {err}")
        elif not (out or err):
            wrong.append(f"{typed}: prints nothing")
        elif code and not err.startswith(("rote: ", "Before playback")):
            wrong.append(f"{typed}: does not begin with its name: {err}")
        wrong += [f"{typed}: {each}: {err}" for each in FOREIGN if each in out + err]
    assert not wrong, "\n".join(wrong)


@pytest.mark.usefixtures("empty_home")
def test_a_newcomers_lines_end_with_their_codes_and_in_our_own_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(LINES.strip().splitlines()) >= 90
    check_lines(LINES, monkeypatch, capsys)


@pytest.mark.slow("a batch starts its workers")
@pytest.mark.usefixtures("empty_home")
def test_a_newcomers_batches_end_with_their_codes_and_in_our_own_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_lines(LINES_THAT_START_PROCESSES, monkeypatch, capsys)


# ---- examples ------------------------------------------------------------------------------------


def list_commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[str]:
    node = commands() if command is None else command
    below = {} if path == ("frame", "make") else getattr(node, "commands", {})
    if not below:
        yield " ".join(path)
    for name, each in below.items():
        if not each.hidden:
            yield from list_commands(each, (*path, name))


def test_every_command_has_an_example() -> None:
    assert {*list_commands()} <= {*EXAMPLES}
    assert {*EXAMPLES} - {*list_commands()} == {"trial"}  # it is a command and a group


@pytest.mark.parametrize("words", EXAMPLES)
def test_the_help_shows_an_example_that_can_be_parsed(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, line = words.split(), EXAMPLES[words]
    code, out, _ = ask(capsys, f"{words} --help")
    assert code == 0
    assert " ".join(out.split()).endswith(f"Example: rote {line}")
    group = commands(path[0])
    with group.make_context("rote", [*path], resilient_parsing=True) as context:
        command = group
        for word in path:
            command = command.get_command(context, word)
        arguments = shlex.split(line)[len(path) :]
        command.make_context(path[-1], arguments, parent=context)
