"""rote a1 status, walk, turn, stand, pose, monitor, and rote teach and play on an A1."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rote.cli import main
from rote.errors import UnsafeMotionError
from rote.motion.files import load
from rote.motion.track import Track
from rote.robot.quadruped.motion import check_track
from rote.robot.quadruped.safety import Safety

PROTECTION = 7
ROBOT = """
import asyncio, contextlib, json, os, sys
from rote.session.a1 import Dialect, Level
from rote.sim.quadruped.simulator import A1Simulator, A1World
async def main():
    world, hung = A1World(dialect=Dialect.GO1), A1World(start="hung")
    usual = A1Simulator(hung, sys.argv[1], high_port=8082, low_port=8007)
    async with A1Simulator(world) as walking, usual as hanging:
        print(json.dumps([walking.url(Level.HIGH), hanging.url(Level.LOW)]), flush=True)
        await asyncio.sleep(600)
with contextlib.suppress(OSError):
    os.nice(-15)  # a real robot has a computer of its own
asyncio.run(main())
"""


class Robots(NamedTuple):
    walking: str
    hanging: str


@pytest.fixture(scope="module")
def robots() -> Iterator[Robots]:
    # On the ports where it is sought, beside those of other tests.
    address = f"127.{os.getpid() >> 16 & 127 | 128}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
    command = [sys.executable, "-c", ROBOT, address]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield Robots(*json.loads(process.stdout.readline()))
        process.kill()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROTE_HOME", str(tmp_path))
    monkeypatch.delenv("ROTE_ROBOT", raising=False)
    return tmp_path


def too_busy(err: str) -> None:
    """A machine on which a robot is not heard for 50 ms trips a protection, and should."""
    if "stale" in err or "control" in err:
        pytest.skip(f"this machine is too busy for real time: {err}")


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    for _ in range(8):
        result = main([*arguments, "--json"])
        out, err = capsys.readouterr()
        if result != PROTECTION:
            break
    else:
        too_busy(err)
    assert result == code, err
    document: dict[str, Any] = json.loads((out if code == 0 else err).splitlines()[-1])
    return document


def words(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    for _ in range(8):
        result = main(list(arguments))
        out, err = capsys.readouterr()
        if result != PROTECTION:
            break
    else:
        too_busy(err)
    assert result == 0, err
    return out


@pytest.mark.slow
def test_status_in_words_and_as_json(robots: Robots, capsys: pytest.CaptureFixture[str]) -> None:
    status = told(capsys, "a1", "status", "--robot", robots.walking)
    assert (status["level"], status["dialect"]) == ("high", "go1")
    assert status["battery_percent"] > 0
    text = words(capsys, "a1", "status", "--robot", robots.hanging)
    assert "low level, dialect 3.3.4" in text
    assert "RL: hip" in text


@pytest.mark.slow
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


@pytest.mark.slow
def test_it_is_monitored(robots: Robots, capsys: pytest.CaptureFixture[str]) -> None:
    text = words(
        capsys, "a1", "monitor", "--seconds", "0.5", "--rate", "10", "--robot", robots.walking
    )
    lines = text.splitlines()
    assert 2 <= len(lines) <= 6
    assert all("degrees" in line for line in lines)


def playable(track: Track) -> bool:
    with suppress(UnsafeMotionError):
        check_track(track, Safety())
        return track.longest_gap_s < 0.2
    return False


@pytest.mark.slow
def test_legs_are_taught_and_played_from_this_computer(
    robots: Robots, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    to = ("--robot", robots.hanging)
    assert main(["teach", "sway", "--seconds", "0.1", *to]) in (0, PROTECTION)
    assert "must lie or hang" in capsys.readouterr().err
    for number in range(8):
        file = home / f"sway {number}.json"
        taught = told(capsys, "teach", "sway", "--seconds", "0.4", "--out", str(file), *to)
        if playable(load(file)):
            break  # else this machine was busy, or a leg just sank too near its stop
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
        (["a1", "status"], "bad-request", 2),
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


@pytest.mark.slow
def test_it_lies_down_is_stopped_and_stands_again(
    robots: Robots, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTE_ROBOT", robots.walking)
    assert "stands still" in words(capsys, "stop")
    assert told(capsys, "a1", "lie")["completed"]
    assert told(capsys, "stop")["was"] == "down"
    assert told(capsys, "a1", "walk", "1", code=2)["remedy"].startswith("Let it get up")
    assert told(capsys, "a1", "stand")["status"]["height_m"] > 0.25


@pytest.mark.slow
def test_the_doctor_looks_at_an_a1_by_its_walking_controller(
    robots: Robots, capsys: pytest.CaptureFixture[str]
) -> None:
    text = words(capsys, "doctor", "--robot", robots.hanging)
    assert "level        high" in text
    assert "mode         damp" in text
    assert "rote a1 stand" in text
