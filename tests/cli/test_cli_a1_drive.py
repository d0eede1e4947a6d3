"""rote a1 status, walk, turn, stand, pose, monitor, and rote teach and play on an A1.

Each command runs in virtual time, in the event loop of the two robots that it may drive. The
commands go through `sender=loop`: the process that sends them otherwise has no virtual clock.
"""

import json
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import virtual
from rote.cli import main
from rote.motion.files import load
from rote.robot.quadruped.motion import check_track
from rote.robot.quadruped.safety import Safety
from rote.sim.quadruped.simulator import A1Simulator
from rote.sim.quadruped.world import A1World
from rote.wire.a1.values import Dialect

# On the ports where a robot is sought, beside those of other tests.
ADDRESS = f"127.{os.getpid() >> 16 & 127 | 128}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
HIGH_PORT, LOW_PORT, WALKING_PORT = 8082, 8007, 8083


class _LoopWithRobots(virtual.VirtualLoop):
    """An event loop in which robots live from its first moment to its end."""

    def __init__(self, simulators: list[A1Simulator]) -> None:
        super().__init__()
        self._stack = AsyncExitStack()
        for simulator in simulators:
            self.run_until_complete(self._stack.enter_async_context(simulator))

    def close(self) -> None:
        if not self.is_closed():
            self.run_until_complete(self._stack.aclose())
        super().close()


class Robots(NamedTuple):
    walking: str
    hanging: str


@pytest.fixture
def robots(monkeypatch: pytest.MonkeyPatch) -> Robots:
    """The URLs of a Go1 that stands and of an A1 that hangs. They keep their state between
    commands, in which no time passes.
    """
    walking = A1Simulator(A1World(dialect=Dialect.GO1), ADDRESS, high_port=WALKING_PORT)
    hanging = A1Simulator(A1World(start="hung"), ADDRESS, high_port=HIGH_PORT, low_port=LOW_PORT)
    monkeypatch.setattr("rote.platform.loop.new_loop", lambda: _LoopWithRobots([walking, hanging]))
    return Robots(
        f"a1://{ADDRESS}:{WALKING_PORT}?level=high&dialect=go1&sender=loop",
        f"a1://{ADDRESS}?level=low&sender=loop",
    )


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROTE_HOME", str(tmp_path))
    monkeypatch.delenv("ROTE_ROBOT", raising=False)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    result = main([*arguments, "--json"])
    out, err = capsys.readouterr()
    assert result == code, err
    document: dict[str, Any] = json.loads((out if code == 0 else err).splitlines()[-1])
    return document


def words(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    result = main(list(arguments))
    out, err = capsys.readouterr()
    assert result == 0, err
    return out


def test_status_in_words_and_as_json(robots: Robots, capsys: pytest.CaptureFixture[str]) -> None:
    status = told(capsys, "a1", "status", "--robot", robots.walking)
    assert (status["level"], status["dialect"]) == ("high", "go1")
    assert status["battery_percent"] > 0
    text = words(capsys, "a1", "status", "--robot", robots.hanging)
    assert "low level, dialect 3.3.4" in text
    assert "RL: hip" in text


def test_it_walks_turns_poses_and_stands(
    robots: Robots, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTE_ROBOT", robots.walking)
    before = told(capsys, "a1", "status")
    after = told(capsys, "a1", "walk", "-0.1", "--speed", "0.3")
    assert after["completed"]
    assert after["status"]["place_m"][0] - before["place_m"][0] == pytest.approx(-0.1, abs=0.05)
    turned = told(capsys, "a1", "turn", "-10")["status"]["yaw_rad"]
    assert turned - before["yaw_rad"] == pytest.approx(-0.175, abs=0.06)
    posed = words(capsys, "a1", "pose", "--pitch", "5", "--height", "-0.02", "--seconds", "0.1")
    assert "Done in" in posed
    assert "standing" in words(capsys, "a1", "stand")


def test_it_is_monitored(robots: Robots, capsys: pytest.CaptureFixture[str]) -> None:
    text = words(
        capsys, "a1", "monitor", "--seconds", "0.5", "--rate", "10", "--robot", robots.walking
    )
    lines = text.splitlines()
    assert 4 <= len(lines) <= 6
    assert all("degrees" in line for line in lines)


def test_legs_are_taught_and_played_from_this_computer(
    robots: Robots, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    to = ("--robot", robots.hanging)
    assert main(["teach", "sway", "--seconds", "0.1", *to]) == 0
    assert "must lie or hang" in capsys.readouterr().err
    file = home / "sway.json"
    taught = told(capsys, "teach", "sway", "--seconds", "0.4", "--out", str(file), *to)
    check_track(load(file), Safety())
    assert taught["saved"]
    assert taught["samples"] > 20
    assert Path(taught["take"]).is_file()
    again = words(capsys, "teach", "sway", "--seconds", "0.1", *to)
    assert "Recorded" in again
    assert "an A1 itself keeps none" in again
    played = told(capsys, "play", str(file), *to)
    assert played["completed"]
    assert "Played" in words(capsys, "play", "sway", "--take", "--speed", "2", *to)


@pytest.mark.parametrize(
    ("arguments", "kind", "code"),
    [
        (["a1", "status", "--robot", "sim://g1"], "bad-request", 2),
        (["a1", "walk", "1", "--robot", "a1://"], "bad-request", 2),
        (["a1", "walk", "1", "--robot", "a1://dog?level=low"], "unsupported", 6),
        (["a1", "pose", "--pitch", "26", "--robot", "a1://dog"], "bad-request", 2),
        (["a1", "turn", "721", "--robot", "a1://dog"], "bad-request", 2),
        (["a1", "turn", "9", "--speed", "121", "--robot", "a1://dog"], "bad-request", 2),
        (["play", "wave", "--take", "--robot", "a1://dog?level=high"], "bad-request", 2),
        (["teach", "x", "--seconds", "1", "--robot", "a1://dog?level=high"], "unsupported", 6),
        (["a1", "monitor", "--rate", "0", "--robot", "a1://dog"], "bad-request", 2),
        (["teach", "x", "--hand", "wave", "--robot", "a1://dog"], "unsupported", 6),
        (["teach", "x", "--seconds", "1", "--overwrite", "--robot", "a1://dog"], "unsupported", 6),
        (["play", "wave", "--robot", "a1://dog"], "bad-request", 2),
        (["play", "wave", "--preset", "--robot", "a1://dog"], "unsupported", 6),
        (["play", "wave.json", "--loop", "--robot", "a1://dog"], "unsupported", 6),
    ],
)  # fmt: skip
def test_what_an_a1_cannot_do_is_refused_in_words(
    capsys: pytest.CaptureFixture[str], arguments: list[str], kind: str, code: int
) -> None:
    error = told(capsys, *arguments, code=code)
    assert error["error"] == kind
    assert error["message"]
    assert error["remedy"]


def test_each_level_says_which_one_can(capsys: pytest.CaptureFixture[str]) -> None:
    error = told(capsys, "a1", "walk", "1", "--robot", "a1://dog?level=low", code=6)
    assert "level=high" in error["remedy"]
    error = told(capsys, "teach", "x", "--seconds", "1", "--robot", "a1://dog?level=high", code=6)
    assert "level=low" in error["remedy"]


def test_angles_are_refused_in_the_units_they_were_given_in(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = told(capsys, "a1", "pose", "--pitch", "90", "--robot", "a1://dog", code=2)
    assert error["message"] == "a pitch of 90 degrees is out of range"
    assert error["remedy"] == "Choose -25 to 25 degrees."


def test_it_lies_down_is_stopped_and_stands_again(
    robots: Robots, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTE_ROBOT", robots.walking)
    assert "stands still" in words(capsys, "stop")
    assert told(capsys, "a1", "lie")["completed"]
    assert told(capsys, "stop")["was"] == "down"
    assert told(capsys, "a1", "walk", "1", code=2)["remedy"].startswith("Make it get up")
    assert told(capsys, "a1", "stand")["status"]["height_m"] > 0.25


def test_the_doctor_looks_at_an_a1_by_its_walking_controller(
    robots: Robots, capsys: pytest.CaptureFixture[str]
) -> None:
    text = words(capsys, "doctor", "--robot", robots.hanging)
    assert "level        high" in text
    assert "mode         damp" in text
    assert "rote a1 stand" in text
