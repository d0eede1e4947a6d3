"""The command line over DDS, with the simulated robot in a process of its own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cyclonedds")

from interop.processes import Network, Speaker
from rig import free_domain
from rote.cli import main


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    where = ("--dds", "lo", "--domain", str(free_domain("cli")), "--udp", "127.0.0.1:0")
    command = ("-m", "rote", "sim", *where, "--store", ":memory:", "--polite", "--json")
    with Speaker(Network(), *command) as robot:
        known = robot.hear("ready")["urls"]
        yield {url.partition(":")[0]: url for url in known}


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROTE_HOME", str(tmp_path))


def rote(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = main([*arguments, "--json"])
    out = capsys.readouterr()
    return code, json.loads((out.out or out.err).splitlines()[-1])


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


def test_stop_is_always_allowed(urls: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert rote(capsys, "stop", "--robot", urls["dds"])[0] == 0


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
    assert "another robot" in capsys.readouterr().err
