"""The command line with a robot that is less polite than ours: what it prints, and how it ends."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from forked import Rote
from rote.cli import main


@contextmanager
def simulated(place: int, quirks: str) -> Iterator[str]:
    """Run a simulated robot in a process of its own; gives its URL."""
    host = f"127.0.{place}.{os.getpid() % 200 + 1}"
    where = ("--webrtc", host, "--store", ":memory:")
    process = Rote(
        *("sim", *where, "--factory", "--serial", "", "--json", "--quirk", quirks),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["urls"][0]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)


@pytest.fixture
def dead() -> Iterator[str]:
    with simulated(31, "never-moves,lone-surrogate") as url:
        yield url


@pytest.fixture
def silent() -> Iterator[str]:
    with simulated(32, "no-lowstate") as url:
        yield url


@pytest.mark.slow
def test_a_robot_that_never_moves_has_not_played(
    dead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", "--robot", dead, "--json"]) == 0
    name = json.loads(capsys.readouterr().out)["taught"][0]["name"]
    assert main(["play", name, "--robot", dead]) == 8
    out, err = capsys.readouterr()
    assert "Played" not in out
    assert "did not show it begin" in err
    assert main(["list", "--robot", dead]) == 0
    assert "98\N{NO-BREAK SPACE}half \\ud83d" in capsys.readouterr().out


@pytest.mark.slow
def test_ctrl_c_after_the_robot_has_kept_an_action_says_so(silent: str) -> None:
    process = Rote(
        *("teach", "mine", "--seconds", "0.3", "--robot", silent),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert "nothing moves its arms by itself" in process.stderr.readline()
    assert "Waiting until the robot lists 'mine'" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert "the action 'mine' is on the robot" in err
    assert "Traceback" not in err
    assert "Saved" not in out
