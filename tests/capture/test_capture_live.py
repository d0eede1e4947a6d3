"""Listening on an interface: however it is ended, the listener ends too and nothing is left."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import typer

from capture.recorded import await_true, needs
from rote.capture.synthetic.build import make
from rote.cli import capture_live
from rote.errors import BadRequestError

pytestmark = pytest.mark.slow
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may listen to an interface")


def run(*words: object) -> object:
    app = typer.Typer()
    app.command()(capture_live.live)
    return app(["-i", "lo", *(str(word) for word in words)], standalone_mode=False)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a capture, where a test writes its own tcpdump; the temporary folder too."""
    make(tmp_path / "made.pcap", "frames")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def write_listener(folder: Path, body: str, tool: str = "tcpdump") -> None:
    """Write a listener that puts a capture where it is told to, and then does as `body` says."""
    start = (
        f'#!/bin/sh\necho $$ > {folder}/pid\nfor last; do :; done\ncat {folder}/made.pcap > "$last"'
    )
    (folder / tool).write_text(f"{start}\n{body}\n", encoding="ascii")
    (folder / tool).chmod(0o755)


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or waits only for somebody to notice."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
            == "Z"
        )
    except OSError:
        return True


def test_listening_wants_a_listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadRequestError, match="neither tcpdump nor dumpcap"):
        run("--seconds", "0.1")


@pytest.mark.parametrize("tool", ["tcpdump", "dumpcap"])
@pytest.mark.parametrize("user", [0, 1000])
def test_a_listener_that_fails_is_quoted(
    tool: str, user: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / tool
    fake.write_text("#!/bin/sh\necho 'you may not' >&2\nexit 1\n", encoding="ascii")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(BadRequestError, match="you may not") as caught:
        run("-w", tmp_path / "a.pcap")
    assert ("sudo" in caught.value.remedy) == (user != 0)


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_no_time_is_refused(seconds: str) -> None:
    with pytest.raises(BadRequestError, match="not a valid duration"):
        run("--seconds", seconds)


def test_a_listener_that_was_too_slow_is_no_matter_of_rights(fake: Path) -> None:
    (fake / "tcpdump").write_text("#!/bin/sh\nexec sleep 60\n", encoding="ascii")
    (fake / "tcpdump").chmod(0o755)
    with pytest.raises(BadRequestError, match="had not begun") as caught:
        run("--seconds", "0.1")
    assert "longer" in caught.value.remedy


def test_what_was_heard_is_reported_and_kept(
    fake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_listener(fake, "echo '7 packets dropped by kernel' >&2\nexec sleep 60")
    run("-w", fake / "kept.pcap", "--seconds", "0.3", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["teaching_frames"] == 824
    assert found["file"] == str(fake / "kept.pcap")
    assert "7 packets" in found["warnings"][-1]
    with pytest.raises(BadRequestError, match="already exists"):
        run("-w", fake / "kept.pcap")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_us_alone_ends_the_listening(
    number: signal.Signals, fake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_listener(fake, f"kill -{int(number)} $PPID\nexec sleep 60")
    handlers = [signal.getsignal(one) for one in signal.Signals]
    result = run()
    said = capsys.readouterr().out
    asked_for_words = number == signal.SIGINT
    assert result == (None if asked_for_words else 128 + number)
    assert ("824" in said) == asked_for_words
    assert str(fake) not in said
    assert has_ended(int((fake / "pid").read_text(encoding="ascii")))
    assert not list((fake / "tmp").iterdir())
    assert [signal.getsignal(one) for one in signal.Signals] == handlers


def test_a_listener_that_does_not_want_to_end_is_ended(
    fake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_live, "_END_TIMEOUT_S", 0.02)
    write_listener(fake, "trap '' INT\nkill -INT $PPID\nwhile :; do sleep 0.05; done")
    run()
    assert "824" in capsys.readouterr().out
    assert has_ended(int((fake / "pid").read_text(encoding="ascii")))


@needs("tcpdump")
@root
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)],
)
def test_tcpdump_never_outlives_us(number: signal.Signals, code: int, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "rote", "capture", "live", "-i", "lo"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    ) as rote:
        await_true(lambda: bool(list(tmp_path.glob("rote-*/live.pcap"))), "tcpdump listens")
        children = Path(f"/proc/{rote.pid}/task/{rote.pid}/children").read_text(encoding="ascii")
        (tcpdump,) = map(int, children.split())
        assert not has_ended(tcpdump)
        rote.send_signal(number)
        said, _ = rote.communicate(timeout=30)
    assert rote.returncode == code
    await_true(lambda: has_ended(tcpdump), "tcpdump ends")
    assert ("packets" in said) == (number == signal.SIGINT)
    assert number == signal.SIGKILL or not list(tmp_path.iterdir())


@needs("tcpdump")
@root
def test_tcpdump_listens_for_us(capsys: pytest.CaptureFixture[str]) -> None:
    run("--seconds", "0.5")
    assert "Listening on lo" in capsys.readouterr().out
    with pytest.raises(BadRequestError, match="nothing could be recorded on nosuch0"):
        run("-i", "nosuch0")
