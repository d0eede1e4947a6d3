"""The command line on a G1's own wire: a simulated robot in one process, commands in another."""

import json
import os
import pty
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from forked import Rote
from rote.cli import main

KEY = "00112233445566778899aabbccddeeff"


class Robot:
    """A `rote sim --webrtc` process."""

    def __init__(self, host: str, *arguments: str) -> None:
        where = ("--webrtc", host, "--store", ":memory:")
        self.process = Rote(
            *("sim", *where, "--factory", "--serial", "", "--json", *arguments),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.ready = json.loads(self.process.stdout.readline())
        (self.url,) = self.ready["urls"]

    def end(self) -> list[str]:
        """End it; returns what it noticed."""
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=10)
        return [json.loads(line)["message"] for line in out.splitlines()]


@pytest.fixture(scope="module")
def robot() -> Iterator[Robot]:
    options = ("--firmware", "1.5.3", "--key", KEY, "--polite")
    running = Robot(f"127.0.9.{os.getpid() % 200 + 1}", *options)
    yield running
    running.end()


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    return (code, *capsys.readouterr())


def ask_json(
    capsys: pytest.CaptureFixture[str], robot: Robot, *arguments: str, key: str = KEY
) -> tuple[int, dict[str, object]]:
    code, out, err = ask(capsys, *arguments, "--robot", robot.url, "--key", key, "--json")
    return code, json.loads(err if code else out)


@pytest.mark.slow
def test_a_motion_is_taught_listed_played_renamed_and_deleted(
    robot: Robot, capsys: pytest.CaptureFixture[str]
) -> None:
    # Before anything: after a teaching the arms return, and a stop says so.
    assert ask_json(capsys, robot, "stop") == (0, {"stopped": True, "was": "nothing"})
    taught = ask_json(capsys, robot, "teach", "mine", "--hand", "wave", "--seconds", "0.5")
    assert taught[0] == 0
    assert taught[1]["saved"]
    assert ask_json(capsys, robot, "rename", "mine", "yours") == (
        0,
        {"renamed": "mine", "to": "yours"},
    )
    code, listed = ask_json(capsys, robot, "list")
    assert code == 0
    assert [a["name"] for a in listed["taught"]][-1] == "yours"  # type: ignore[attr-defined]
    assert {"id": 27, "name": "shake_hand"} in listed["presets"]  # type: ignore[operator]
    code, played = ask_json(capsys, robot, "play", "yours")
    assert (code, played["completed"]) == (0, True)
    code, refused = ask_json(capsys, robot, "teach", "yours", "--hand", "bow", "--seconds", "0.3")
    assert (code, refused["error"]) == (4, "refused")
    again = ("teach", "yours", "--hand", "bow", "--seconds", "0.3", "--overwrite")
    assert ask_json(capsys, robot, *again)[0] == 0
    assert ask_json(capsys, robot, "delete", "yours", "--yes") == (0, {"deleted": "yours"})
    assert ask_json(capsys, robot, "delete", "yours", "--yes")[0] == 4
    code, stopped = ask_json(capsys, robot, "stop")
    assert (code, stopped["stopped"]) == (0, True)
    assert stopped["was"] in (
        "playing",
        "nothing",
    )  # whether the return has ended is a matter of time


@pytest.mark.slow
def test_status_tells_battery_and_warmth(robot: Robot, capsys: pytest.CaptureFixture[str]) -> None:
    code, status = ask_json(capsys, robot, "status")
    assert code == 0
    assert status["battery_percent"] == pytest.approx(100, abs=5)
    assert status["hottest_c"] == pytest.approx(30, abs=10)
    code, out, _ = ask(capsys, "status", "--robot", robot.url, "--key", KEY)
    assert "battery" in out


@pytest.mark.slow
def test_a_missing_and_a_wrong_key_are_told_with_their_stage(
    robot: Robot, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = ask(capsys, "list", "--robot", robot.url)
    assert code == 3
    assert "stage 'key'" in err
    assert "device/bind/list" in err
    code, wrong = ask_json(capsys, robot, "list", key="ff" * 16)
    assert (code, wrong["error"], wrong["stage"]) == (3, "stage", "key")
    assert ask_json(capsys, robot, "list", key="short")[0] == 2


@pytest.mark.slow
def test_a_preset_is_performed_by_name_and_by_id(
    robot: Robot, capsys: pytest.CaptureFixture[str]
) -> None:
    code, done = ask_json(capsys, robot, "play", "shake_hand", "--preset")
    assert code == 0
    assert done["seconds"] > 1  # type: ignore[operator]
    assert ask_json(capsys, robot, "play", "7", "--preset")[0] == 4


@pytest.mark.slow
def test_the_key_log_is_private_and_in_the_known_format(
    robot: Robot, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "keys.log"
    assert ask_json(capsys, robot, "list", "--keylog", str(log))[0] == 0
    assert log.read_text().startswith("CLIENT_RANDOM ")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "deleted"), [("yes\n", True), ("\n", False)])
def test_delete_asks_first(typed: str, deleted: bool, robot: Robot) -> None:
    name = "Scratch_head" if deleted else "Spin_discs"
    leader, follower = pty.openpty()
    process = Rote(
        *("delete", name, "--robot", robot.url, "--key", KEY),
        stdin=follower,
        stdout=subprocess.PIPE,
        text=True,
    )
    os.write(leader, typed.encode())
    out, _ = process.communicate(timeout=30)
    os.close(leader)
    os.close(follower)
    assert "This cannot be undone" in out
    assert ("Deleted" in out) is deleted
    assert process.returncode == (0 if deleted else 1)


@pytest.mark.slow
def test_delete_without_anybody_to_ask_is_refused(
    robot: Robot, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = ask(capsys, "delete", "Spin_discs", "--robot", robot.url, "--key", KEY)
    assert code == 2
    assert "--yes" in err


@pytest.mark.slow
def test_one_robot_is_reached_on_two_wires_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    host = f"127.0.10.{os.getpid() % 200 + 1}"
    where = ("--udp", f"{host}:0", "--webrtc", host, "--store", ":memory:")
    process = Rote(
        *("sim", *where, "--serial", "", "--json", "--fault", "600:0x8@0"),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    udp, webrtc = json.loads(process.stdout.readline())["urls"]
    code, _, _ = ask(capsys, "modes", "--robot", udp)
    assert code == 0
    code, out, _ = ask(capsys, "status", "--robot", webrtc, "--json")
    assert json.loads(out)["faults"] == ["motion control: low battery (600/0x8)"]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--signalling", "4"),
        ("--key", "12"),
        ("--firmware", "9.9"),
        ("--fault", "melting"),
        ("--fault", "hot-motor:99"),
    ],
)
def test_a_robot_that_cannot_be_is_refused(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = ask(capsys, "sim", "--webrtc", "127.0.11.1", "--store", ":memory:", *arguments)
    assert code == 2
    assert err.startswith("rote: ")
