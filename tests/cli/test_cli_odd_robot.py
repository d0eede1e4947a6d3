"""The command line with a robot that is less polite than ours: what it prints, and how it ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from test_cli_webrtc import Robot

from rote.cli import main


def robot_at(place: int, *quirks: str) -> Robot:
    options = [word for quirk in quirks for word in ("--quirk", quirk)]
    return Robot(f"127.0.{place}.{os.getpid() % 200 + 1}", *options)


@pytest.fixture
def dead() -> Iterator[Robot]:
    robot = robot_at(31, "never-moves", "lone-surrogate")
    yield robot
    robot.end()


@pytest.fixture
def silent() -> Iterator[Robot]:
    robot = robot_at(32, "no-lowstate")
    yield robot
    robot.end()


def test_a_robot_that_never_moves_has_not_played(
    dead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", "--robot", dead, "--json"]) == 0
    name = json.loads(capsys.readouterr().out)["taught"][0]["name"]
    assert main(["play", name, "--robot", dead]) == 8
    out, err = capsys.readouterr()
    assert "Played" not in out
    assert "was not seen to begin" in err
    assert main(["list", "--robot", dead]) == 0
    assert "98\N{NO-BREAK SPACE}half \\ud83d" in capsys.readouterr().out


def test_ctrl_c_after_the_robot_has_kept_an_action_says_so(silent: str) -> None:
    command = [sys.executable, "-m", "rote", "teach", "mine", "--seconds", "0.3"]
    process = subprocess.Popen(
        [*command, "--robot", silent],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert "Waiting until the robot lists 'mine'" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert "the action 'mine' is on the robot" in err
    assert "Traceback" not in err
    assert "Saved" not in out
