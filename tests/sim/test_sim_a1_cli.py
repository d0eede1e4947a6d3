"""rote sim --a1: a simulated A1 as a process of its own."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from rote.cli import main
from rote.cli.a1.simulate import A1Options, _create_robot, _parse_ports, simulate_a1
from rote.sim.quadruped.walker import Posture
from rote.transport.impair import Impairment
from rote.wire.a1 import codec as wire
from rote.wire.a1.values import Dialect, HighCmd, HighState
from virtual import run


def start(*options: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "rote", "sim", "--a1", "127.0.0.1:0", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def go1() -> Iterator["subprocess.Popen[str]"]:
    with start("--dialect", "go1", "--json", "--delay", "1ms") as process:
        yield process
        process.kill()


def line_of(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    document: dict[str, Any] = json.loads(line)
    return document


@pytest.mark.slow
def test_another_process_walks_it_reads_what_it_notes_and_ends_it(
    go1: "subprocess.Popen[str]",
) -> None:
    ready = line_of(go1)
    assert (ready["event"], ready["dialect"]) == ("ready", "go1")
    assert ready["build"] == "a1"
    url = urlsplit(ready["url"])
    assert (url.scheme, url.query) == ("a1", "level=high")
    assert [urlsplit(each).query for each in ready["urls"]] == ["level=high", "level=low"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(10.0)
        client.connect((url.hostname, url.port))
        client.send(wire.encode(HighCmd(mode=1), Dialect.GO1))
        state = wire.decode(client.recv(2048)).value
    assert isinstance(state, HighState)
    assert state.bms is not None
    assert line_of(go1)["message"] == "the high level drives the robot"
    os.kill(go1.pid, signal.SIGINT)
    _, errors = go1.communicate(timeout=20)
    assert (go1.returncode, errors) == (0, "")


@pytest.mark.parametrize("as_json", [False, True])
def test_it_prints_where_to_connect_to_and_what_happens_until_it_is_to_end(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work() -> None:
        wish = A1Options("127.0.0.1:0", "3.2", "stand", None, ("low-battery@1",), 0)
        bad = None if as_json else Impairment(loss=0.1)
        robot = asyncio.create_task(simulate_a1(wish, bad, as_json))
        await asyncio.sleep(2.0)
        os.kill(os.getpid(), signal.SIGINT)
        await robot

    run(work())
    shown = capsys.readouterr().out.splitlines()
    if as_json:
        ready, notice = map(json.loads, shown)
        assert ready["urls"][0] == ready["url"]
        assert notice["message"] == "the battery is low"
        return
    assert "an A1, dialect 3.2, listens" in shown[0]
    assert "high  a1://127.0.0.1:" in shown[1]
    assert "low   a1://127.0.0.1:" in shown[2]
    assert "10 % lost" in shown[3]
    assert "Try: rote" in shown[4]
    assert "the battery is low" in shown[6]
    assert "has ended" in shown[-1]


@pytest.mark.parametrize(
    "options",
    [
        ("--dialect", "4.0"),
        ("--mode", "walk-waist"),
        ("--hand", "tickle"),
        ("--fault", "hot-motor:12"),
        ("--loss", "2"),
        ("--udp", "127.0.0.1:0"),
    ],
)
def test_what_an_a1_cannot_be_is_said_with_a_remedy(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "--a1", "127.0.0.1:0", *options]) == 2
    assert capsys.readouterr().err.startswith("rote: ")


@pytest.mark.parametrize("way", [("--robot", "a1"), ("--robot", "a1", "--a1", "127.0.0.1:0")])
def test_an_a1_is_named_like_any_other_robot(
    way: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", *way, "--dialect", "4.0"]) == 2
    assert "unknown dialect '4.0'" in capsys.readouterr().err


def test_a_robots_ports_are_its_own_or_free_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert _parse_ports("10.0.0.5") == ("10.0.0.5", 8082, 8007)
    assert _parse_ports("[::1]:0") == ("::1", 0, 0)
    assert main(["sim", "--a1", "127.0.0.1:9000"]) == 2
    assert "127.0.0.1:0" in capsys.readouterr().err


def test_the_robot_is_made_as_wished() -> None:
    wish = A1Options("127.0.0.1", "3.3", "lie", "paw:2s", ("hot-motor:3@1", "silent@2"), 7)
    world = _create_robot(wish)
    assert world.dialect is Dialect.A1_3_3
    assert world.walker.posture is Posture.LYING
    assert world.body.held_by_hand
    world.advance(1.2)
    assert world.health.hot[3]
    assert not world.health.silent
    world.advance(1.0)
    assert world.health.silent
