"""The command line as a script and as a person meet it."""

import json
import os
import platform
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import rote
from forked import Rote
from rote.cli import main
from rote.model import registry

COMMANDS = (
    "demo", "sim", "discover", "doctor", "status", "list", "teach", "play", "stop", "send",
    "rename", "delete", "modes", "preview", "web", "applog", "motion", "takes", "a1", "capture",
    "frame",
)  # fmt: skip

GROUPS = {"motion", "takes", "a1", "capture", "frame"}


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def taught(capsys: pytest.CaptureFixture[str]) -> str:
    """Teach the embedded robot one short action."""
    code, _, err = ask(capsys, "teach", "mine", "--hand", "wave", "--seconds", "0.3")
    assert (code, err) == (0, "")
    return "mine"


def plain(shown: str) -> str:
    """What a terminal was sent, without colours and cursor movements."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r", "")


class Sim:
    """A `rote sim` process."""

    def __init__(self, *arguments: str, store: Path) -> None:
        where = ("--udp", "127.0.0.1:0", "--store", str(store))
        self.process = Rote(
            *("sim", *where, "--json", *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.ready = json.loads(line)
        self.url: str = self.ready["url"]

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=10)
        return self.process.returncode, out, err


def start_playing(sim: Sim) -> Rote:
    command = ("play", "Waist_Drum_Dance", "--robot", sim.url)
    return Rote(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def sim(tmp_path: Path) -> Iterator[Sim]:
    running = Sim("--factory", store=tmp_path / "sim.sqlite")
    yield running
    running.process.kill()
    running.process.communicate()


def test_without_arguments_it_shows_what_it_can_do(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = ask(capsys)
    for command in COMMANDS:
        assert re.search(rf"^\s+{command}\s", out + err, re.MULTILINE)


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_a_group_alone_shows_what_it_can_do(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ask(capsys, group)
    assert (code, err) == (0, "")
    assert "Commands:" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ask(capsys, command, "--help")
    assert code == 0
    assert "Commands:" in out if command in GROUPS else "--json" in out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    running = f"Python {platform.python_version()} on {platform.system()}"
    assert ask(capsys, "--version") == (0, f"rote {rote.__version__}, {running}\n", "")


def test_what_one_command_taught_the_next_lists_and_plays(
    taught: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = ask(capsys, "list", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["presets"] == []
    assert [set(action) for action in document["taught"]] == [{"name", "duration_s"}]
    assert document["taught"][0]["name"] == taught
    assert 0.25 <= document["taught"][0]["duration_s"] < 5.0  # real time, on a busy machine
    code, out, _ = ask(capsys, "play", taught, "--json")
    report = json.loads(out)
    assert (code, report["name"], report["completed"]) == (0, taught, True)
    code, out, _ = ask(capsys, "list")
    assert re.search(r"1\s+mine\s+0\.", out)
    assert "1 of 15 slots" in out


def test_teaching_writes_the_take_and_reports_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "take.csv"
    code, out, _ = ask(
        capsys, "teach", "mine", "--hand", "drum", "--seconds", "0.3", "--out", str(file), "--json"
    )
    report = json.loads(out)
    assert (code, report["saved"], report["file"]) == (0, True, str(file))
    assert report["rate_hz"] == pytest.approx(100, rel=0.1)
    header, *rows = file.read_text().splitlines()
    assert header.split(",")[:2] == ["t", "left_hip_pitch_joint"]
    assert len(rows) == report["samples"]


def test_playing_shows_what_it_did(taught: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ask(capsys, "play", taught, "--interpolation", "cubic")
    assert code == 0
    assert out.startswith("Played mine in ")


def test_status_says_ready_or_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ask(capsys, "status")
    assert code == 0
    assert "Ready to teach and to play." in out
    code, out, _ = ask(capsys, "status", "--json")
    document = json.loads(out)
    assert document["mode"] == {"id": 500, "name": "walk", "balanced": True}
    assert document["findings"] == []
    assert document["free_places"] == 15


def test_stop_says_that_nothing_was_moving(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ask(capsys, "stop")
    assert code == 0
    assert out.startswith("The robot confirmed the stop; nothing moves now.\n")
    assert "press Ctrl-C there" in out  # the embedded robot is of this command alone
    assert json.loads(ask(capsys, "stop", "--json")[1]) == {"stopped": True, "was": None}


@pytest.mark.slow
def test_stop_says_what_it_stopped(sim: Sim, capsys: pytest.CaptureFixture[str]) -> None:
    player = start_playing(sim)
    try:
        assert sim.process.stdout is not None
        for line in sim.process.stdout:
            if json.loads(line)["message"].startswith("playing"):
                break
        assert ask(capsys, "stop", "--robot", sim.url)[1].startswith("Stopped the playback")
    finally:
        player.kill()
        player.communicate()


@pytest.mark.parametrize(
    "command",
    [["list"], ["modes"], ["modes", "stand"], ["rename", "a", "b"], ["delete", "a"]],
)
def test_what_is_a_g1s_is_not_asked_of_an_a1(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = ask(capsys, *command, "--robot", "a1://dog", "--json")
    error = json.loads(err)
    assert (code, error["error"]) == (6, "unsupported")
    assert "rote a1" in error["remedy"] or "rote takes" in error["remedy"]


def test_modes_are_shown_and_changed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ask(capsys, "modes")
    assert code == 0
    assert re.search(r"^>\s+500\s+walk\s", out, re.MULTILINE)
    code, out, _ = ask(capsys, "modes", "damp", "--yes", "--json")
    assert json.loads(out) == {"id": 1, "name": "damp", "balanced": False}
    assert ask(capsys, "modes", "fly")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "kind", "code"),
    [
        (["teach", "", "--seconds", "1"], "bad-request", 2),
        (["teach", "x" * 32, "--seconds", "1"], "bad-request", 2),
        (["teach", "a\nb", "--seconds", "1"], "bad-request", 2),
        (["teach", "mine", "--seconds", "0"], "bad-request", 2),
        (["teach", "mine", "--seconds", "-3"], "bad-request", 2),
        (["teach", "mine", "--seconds", "181"], "bad-request", 2),
        (["teach", "mine", "--seconds", "nan"], "bad-request", 2),
        (["teach", "mine", "--hand", "tickle", "--seconds", "0.2"], "bad-request", 2),
        (["teach", "mine", "--seconds", "0.2", "--out", "/"], "bad-request", 2),
        (["teach", "mine", "--seconds", "0.2", "--out", "/nowhere/x.csv"], "bad-request", 2),
        (["demo", "--out", "/proc/nowhere"], "bad-request", 2),
        (["demo", "--hand", "tickle"], "bad-request", 2),
        (["teach", "mine"], "bad-request", 2),
        (["play", "nothing"], "refused", 4),
        (["play", "nothing", "--speed", "nan"], "bad-request", 2),
        (["list", "--robot", "gopher://x"], "bad-request", 2),
        (["list", "--robot", "sim://spot"], "bad-request", 2),
        (["sim", "--udp", "nonsense:port"], "bad-request", 2),
        (["sim", "--loss", "2"], "bad-request", 2),
        (["sim", "--delay", "soon"], "bad-request", 2),
        (["sim", "--mode", "fly"], "bad-request", 2),
        (["sim", "--mode", "walk", "--robot", "g1-d"], "bad-request", 2),
        (["sim", "--robot", "spot"], "bad-request", 2),
        (["sim", "--robot", "g1-23", "--a1", "127.0.0.1:0"], "bad-request", 2),
        (["sim", "--robot", "g1-23", "--slots", "20"], "bad-request", 2),
        (["sim", "--robot", "g1-23", "--firmware", "0.1"], "bad-request", 2),
        (["sim", "--robot", "r1", "--firmware", "1.4.7"], "bad-request", 2),
        (["sim", "--robot", "r1", "--dds", "lo"], "bad-request", 2),
        (["sim", "--robot", "r1", "--fault", "hot-motor:14"], "bad-request", 2),
        (["demo", "--seconds", "0"], "bad-request", 2),
        (["dance"], "usage", 2),
        (["list", "--wavy"], "usage", 2),
        (["teach"], "usage", 2),
        (["teach", "mine", "--seconds", "many"], "usage", 2),
    ],
)
def test_errors_are_json_on_standard_error_with_what_to_do(
    arguments: list[str], kind: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    got, out, err = ask(capsys, *arguments, "--json")
    document = json.loads(err)
    assert (got, out, document["error"]) == (code, "", kind)
    assert set(document) == {"error", "message", "remedy"}
    assert document["message"]


def test_an_error_for_a_person_has_a_remedy_on_its_own_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = ask(capsys, "play", "nothing")
    assert (code, out) == (4, "")
    assert err.startswith("rote: the robot refused: there is no action 'nothing'")
    assert err.splitlines()[1].strip() == "On the robot: nothing yet."


def test_nobody_at_the_address_is_its_own_exit_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Port 9 (discard) on loopback: nobody listens. The environment names the robot.
    monkeypatch.setenv("ROTE_ROBOT", "udp://127.0.0.1:9")
    code, _, err = ask(capsys, "list", "--json")
    document = json.loads(err)
    assert (code, document["error"]) == (3, "no-answer")
    assert "rote sim" in document["remedy"]


def test_an_unknown_robot_is_answered_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = ask(capsys, "sim", "--robot", "spot", "--json")
    document = json.loads(err)
    assert (code, document["message"]) == (2, "there is no robot 'spot'")
    assert all(name in document["remedy"] for name in registry.names())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wished", "build"),
    [([], "g1-29"), (["--robot", "g1-23"], "g1-23"), (["--robot", "r1"], "r1")],
)
def test_a_simulated_robot_says_which_build_it_is(
    wished: list[str], build: str, tmp_path: Path
) -> None:
    running = Sim(*wished, store=tmp_path / "sim.sqlite")
    try:
        assert running.ready["build"] == build
    finally:
        assert running.end()[0] == 0


def test_a_store_of_another_kind_is_refused_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database" * 100)
    code, _, err = ask(capsys, "sim", "--store", str(file), "--udp", "127.0.0.1:0", "--json")
    assert (code, json.loads(err)["error"]) == (1, "store")
    assert file.read_text() == "not a database" * 100


@pytest.mark.slow
def test_a_simulator_process_serves_other_processes(
    sim: Sim, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    there = ("--robot", sim.url)
    assert ask(capsys, "teach", "mine", "--hand", "clap", "--seconds", "0.5", *there)[0] == 0
    names = [a["name"] for a in json.loads(ask(capsys, "list", "--json", *there)[1])["taught"]]
    factory = ["Waist_Drum_Dance", "Spin_discs", "Scratch_head", "Throw_money"]
    assert names == [*factory, "mine"]
    assert ask(capsys, "play", "mine", *there)[0] == 0
    code, out, err = sim.end()
    assert (code, err) == (0, "")
    words = [json.loads(line)["message"] for line in out.splitlines()]
    assert "saved 'mine'" in words
    again = Sim(store=tmp_path / "sim.sqlite")
    try:
        document = json.loads(ask(capsys, "list", "--json", "--robot", again.url)[1])
        assert [a["name"] for a in document["taught"]] == names
    finally:
        assert again.end(signal.SIGINT)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_playback_softly(sim: Sim, number: int) -> None:
    player = start_playing(sim)
    try:
        assert sim.process.stdout is not None
        for line in sim.process.stdout:
            if json.loads(line)["message"].startswith("playing"):
                break
        player.send_signal(number)
        out, err = player.communicate(timeout=10)
        assert player.returncode == 128 + number
        tip, *after = err.splitlines(keepends=True)
        assert tip.startswith("Before playback, keep the robot standing under control")
        assert after == ["Stopped softly: the arms return to rest.\n"]
        assert "Played" not in out
        for line in sim.process.stdout:
            if json.loads(line)["message"].startswith("stopped"):
                break
    finally:
        player.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_teaching_leaves_the_arms_holding_and_saves_nothing(
    sim: Sim, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("teach", "mine", "--seconds", "60", "--robot", sim.url, "--json")
    teacher = Rote(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert sim.process.stdout is not None
        for line in sim.process.stdout:
            if json.loads(line)["message"] == "recording":
                break
        teacher.send_signal(number)
        out, _ = teacher.communicate(timeout=10)
        assert teacher.returncode == 128 + number
        stopped = json.loads(out)
        assert (stopped["stopped"], stopped["saved"]) == (True, False)
        assert "the arms hold" in stopped["state"]
        document = json.loads(ask(capsys, "status", "--json", "--robot", sim.url)[1])
        assert (document["arms"], document["taught"]) == ("holding", 4)
    finally:
        teacher.kill()


@pytest.mark.slow
def test_a_person_ends_a_recording_with_enter(tmp_path: Path) -> None:
    master, slave = os.openpty()
    environment = os.environ | {"ROTE_HOME": str(tmp_path), "TERM": "xterm", "COLUMNS": "100"}
    process = Rote(
        *("teach", "mine"),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
    )
    os.close(slave)
    seen = ""
    try:
        while "Press Enter when you hold the arms" not in seen:
            seen += os.read(master, 4096).decode()
        os.write(master, b"\n")
        while "Press Enter to end" not in seen:
            seen += os.read(master, 4096).decode()
        while not re.search(r"[1-9]\d samples", seen):
            seen += os.read(master, 4096).decode()
        os.write(master, b"\n")
        while "Saved" not in seen:
            seen += os.read(master, 4096).decode()
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)
    shown = " ".join(plain(seen).split())
    assert "Safety: Before teaching, keep the robot standing under control." in shown
    assert "The arms are about to get soft" in shown
    assert '"Enter damping mode?": hold them' in shown


@pytest.mark.slow("a `rote` process")
@pytest.mark.parametrize(
    ("leave", "code", "answer"),
    [("Ctrl-C", 130, "Cancelled: nothing was done."), ("Ctrl-D", 1, "Nothing was deleted.")],
)
def test_a_question_that_is_not_answered_changes_nothing(
    leave: str, code: int, answer: str, taught: str, capsys: pytest.CaptureFixture[str]
) -> None:
    master, slave = os.openpty()
    process = Rote("delete", taught, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = ""
    try:
        while "Type yes to delete it: " not in seen:
            seen += os.read(master, 4096).decode()
        if leave == "Ctrl-C":
            process.send_signal(signal.SIGINT)
        else:
            os.write(master, b"\x04")
        while answer not in seen:
            seen += os.read(master, 4096).decode()
        assert process.wait(10) == code
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert plain(seen).splitlines()[-1] == answer
    assert taught in ask(capsys, "list")[1]


def test_the_demo_does_the_whole_job_and_writes_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "[d]"
    code, out, _ = ask(
        capsys, "demo", "--seconds", "1", "--out", str(folder), "--svg", str(tmp_path / "demo.svg")
    )
    assert code == 0
    for step in ("start", "connect", "look", "teach", "list", "play", "compare"):
        assert re.search(rf"^\d/7 {step}", out, re.MULTILINE)
    assert (folder / "taught-and-played.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "taught.csv").exists()
    assert "[d]/taught.csv" in out.replace("\n", "")
    picture = (tmp_path / "demo.svg").read_text()
    assert picture.startswith("<svg")
    assert "url(http" not in picture
    assert "Try next" in out


def test_the_demo_in_json_states_its_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, out, _ = ask(capsys, "demo", "--seconds", "1", "--out", str(tmp_path), "--json")
    document = json.loads(out)
    assert code == 0
    assert document["rms_error_rad"] < 0.05
    assert len(document["files"]) == 2  # without the extra there is no picture


@pytest.mark.slow
def test_a_simulator_on_a_cut_network_is_lost_with_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sim = Sim("--drop-after", "1500ms", "--loss", "0.1", store=tmp_path / "s.sqlite")
    try:
        code, _, err = ask(capsys, "teach", "mine", "--seconds", "30", "--robot", sim.url, "--json")
        document = json.loads(err)
        assert (code, document["error"]) == (3, "peer-lost")
        assert "state is unknown" in document["message"]
    finally:
        sim.process.kill()
        sim.process.communicate()


@pytest.mark.slow
def test_what_was_taught_before_the_robot_was_lost_is_kept_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTE_HOME", str(tmp_path))
    sim = Sim("--drop-after", "1500ms", store=tmp_path / "s.sqlite")
    try:
        code, _, err = ask(capsys, "teach", "mine", "--seconds", "30", "--robot", sim.url)
    finally:
        sim.process.kill()
        sim.process.communicate()
    assert code == 3
    assert "is kept: rote takes show mine" in err
    code, out, _ = ask(capsys, "takes", "show", "mine")
    assert (code, "mine" in out) == (0, True)


@pytest.mark.slow
def test_errors_on_a_terminal_are_broken_between_words(tmp_path: Path) -> None:
    master, slave = os.openpty()
    environment = os.environ | {"ROTE_HOME": str(tmp_path), "COLUMNS": "40"}
    process = Rote(
        *("play", "nothing"),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
    )
    os.close(slave)
    seen = b""
    while b"yet." not in seen:
        seen += os.read(master, 4096)
    assert process.wait(10) == 4
    os.close(master)
    lines = plain(seen.decode()).splitlines()
    lines = [line for line in lines if line.startswith(("rote:", "      "))]
    assert len(lines) >= 3
    assert max(map(len, lines)) <= 40


@pytest.mark.slow
def test_a_closed_standard_output_is_no_crash(tmp_path: Path) -> None:
    environment = os.environ | {"ROTE_HOME": str(tmp_path)}
    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m rote modes >&-"],
        env=environment,
        check=False,
        capture_output=True,
    )
    assert done.returncode in (0, 1)
    assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_output_into_a_closed_pipe_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "rote", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    reader = threading.Thread(target=process.stderr.read)
    reader.start()
    assert process.wait(10) in (0, 1)
    reader.join()
    process.stderr.close()
