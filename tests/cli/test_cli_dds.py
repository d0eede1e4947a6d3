"""The command line over DDS, with the simulated robot in a process of its own."""

import asyncio
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cyclonedds")

from forked import Rote
from rig import free_domain
from rote.cli import main
from rote.connection import connect
from rote.messages import Phase
from rote.motion import files
from rote.motion.track import Track

pytestmark = pytest.mark.usefixtures("keeps_time")


@contextmanager
def simulated(*options: str) -> Iterator[list[str]]:
    """Run a simulated robot in a process of its own; gives its URLs."""
    command = ("sim", *options, "--store", ":memory:", "--json")
    with Rote(*command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["urls"]
        finally:
            process.kill()


async def wait_until_at_rest(url: str) -> None:
    async with connect(url, family="g1") as robot:
        async for state in robot.states():
            if state.phase is Phase.NONE:
                return


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    where = ("--dds", "lo", "--domain", str(free_domain("cli")), "--udp", "127.0.0.1:0")
    with simulated(*where, "--polite", "--hands", "dex3") as known:
        yield {url.partition(":")[0]: url for url in known}


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROTE_HOME", str(tmp_path))


def rote(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = main([*arguments, "--json"])
    out = capsys.readouterr()
    return code, json.loads((out.out or out.err).splitlines()[-1])


@pytest.mark.slow
def test_a_motion_taught_over_dds_at_full_rate_is_there_on_every_wire(
    urls: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    teach = ("teach", "wave", "--hand", "wave", "--seconds", "1")
    code, taken = rote(capsys, *teach, "--robot", urls["dds"])
    assert (code, taken["saved"]) == (0, True)
    assert taken["rate_hz"] == pytest.approx(500, rel=0.1)
    for wire in ("dds", "udp"):
        code, listed = rote(capsys, "list", "--robot", urls[wire])
        assert (code, [each["name"] for each in listed["taught"]]) == (0, ["wave"])
    code, played = rote(capsys, "play", "wave", "--robot", urls["udp"])
    assert (code, played["completed"]) == (0, True)
    code, played = rote(capsys, "play", "wave", "--robot", urls["dds"])
    assert (code, played["completed"]) == (0, True)


@pytest.mark.slow
def test_stop_is_always_allowed(urls: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert rote(capsys, "stop", "--robot", urls["dds"])[0] == 0


@pytest.mark.slow
def test_the_doctor_sees_the_robot(
    urls: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = rote(capsys, "doctor", "--robot", urls["dds"])
    assert said["dds"]["robot"], said
    assert said["mode"]["name"] == "walk"
    assert (code, said["ok"]) == (0, True), said["findings"]


@pytest.mark.parametrize(
    ("url", "code", "kind"),
    [("dds://nowhere0", 2, "bad-request"), ("dds://lo?domain=999", 2, "bad-request")],
)
def test_a_url_that_leads_nowhere_is_refused_with_words(
    capsys: pytest.CaptureFixture[str], url: str, code: int, kind: str
) -> None:
    assert main(["list", "--robot", url, "--json"]) == code
    said = json.loads(capsys.readouterr().err)
    assert said["error"] == kind
    assert said["remedy"]


def test_an_interface_that_is_not_there_is_refused_by_the_simulator_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["sim", "--dds", "nowhere0", "--store", ":memory:"]) == 2
    assert "nowhere0" in capsys.readouterr().err


def test_an_a1_is_not_on_dds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--a1", "127.0.0.1:0", "--dds", "lo"]) == 2
    assert "cannot be combined" in capsys.readouterr().err


# ---- hands --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_hands_are_recorded_and_played_only_where_they_are_asked_for(
    urls: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    teach = ("teach", "grip", "--hand", "wave", "--seconds", "0.8")
    code, taken = rote(capsys, *teach, "--robot", urls["dds"])
    assert (code, taken["saved"]) == (0, True)
    code, told = rote(capsys, "status", "--robot", urls["dds"])
    assert [(hand["side"], hand["reports"]) for hand in told["hands"]] == [
        ("left", True),
        ("right", True),
    ]
    play = ("play", "grip", "--take", "--force", "--robot", urls["dds"])
    # A busy computer may be too slow for a stream, which then ends early: 1 instead of 0.
    for more, left_out in (((), 14), (("--hands",), 0)):
        asyncio.run(wait_until_at_rest(urls["dds"]))
        code, played = rote(capsys, *play, *more)
        assert code in (0, 1)
        assert len(played["left_out"]) == left_out


@pytest.mark.slow
def test_a_person_is_told_that_hands_are_left_out_and_which_the_robot_wears(
    urls: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--robot", urls["dds"]]) == 0
    assert "hands: left dex3, right dex3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sim", "--hands", "dex3"), "DDS only"),
        (("sim", "--hands", "dex5", "--dds", "lo"), "Use one of: dex3"),
        (("sim", "--robot", "r1", "--hands", "dex3"), "DDS only"),
        (("play", "wave", "--hands"), "no hands"),
        (("play", "7", "--preset", "--hands"), "no hands"),
        (("play", "wave.mcap", "--hands", "--robot", "udp://127.0.0.1"), "dds://"),
    ],
)
def test_hands_that_cannot_be_are_refused_with_words(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments]) != 0
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_a_playback_that_another_client_stops_reports_why_and_its_exit_code_tells(
    urls: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    times_s = np.arange(1001) / 100.0
    bend = 1.0 - 0.4 * np.sin(np.pi * times_s / 10.0)
    motion = Track(times_s=times_s, joints_rad=bend[:, None], names=("left_elbow_joint",))
    files.save(replace(motion, variant="g1-29"), tmp_path / "bend.mcap")

    async def stop_playback() -> None:
        async with connect(urls["udp"], family="g1") as robot:
            async for state in robot.states():
                if state.phase is Phase.PLAYING:
                    await robot.stop()
                    return

    for as_json in (True, False):
        stopping = threading.Thread(target=lambda: asyncio.run(stop_playback()))
        stopping.start()
        options = ("--robot", urls["dds"], "--force", *(["--json"] if as_json else []))
        code = main(["play", str(tmp_path / "bend.mcap"), *options])
        stopping.join()
        printed = capsys.readouterr().out
        assert code == 1
        assert "another client, or the robot itself, released the arms" in printed
        if as_json:
            assert json.loads(printed.splitlines()[-1])["completed"] is False
        asyncio.run(wait_until_at_rest(urls["udp"]))
