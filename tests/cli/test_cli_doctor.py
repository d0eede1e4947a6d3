"""rote doctor: what is wrong, in words, for every wire; and what the looks behind it see."""

import asyncio
import json
from pathlib import Path

import pytest

import virtual
from rig import free_domain, rig
from rote.cli import main
from rote.errors import LinkError
from rote.findings import Severity
from rote.model.g1 import Mode
from rote.platform import check as surroundings
from rote.platform.check import Interface
from rote.platform.distribution import how_to_get
from rote.robot import doctor


def words(seen: doctor.Examination, severity: Severity = Severity.ERROR) -> str:
    return " | ".join(f.message for f in seen.findings if f.severity is severity)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, object]]:
    code = main(["doctor", *arguments, "--json"])
    said: dict[str, object] = json.loads(capsys.readouterr().out)
    return code, said


# ---- this computer ------------------------------------------------------------------------------


def with_packages(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    monkeypatch.setattr(surroundings, "find_installed_version", lambda name: versions.get(name, ""))


@pytest.mark.parametrize("good", ["11.0.1", "11.2"])
def test_a_proven_cyclonedds_is_fine(monkeypatch: pytest.MonkeyPatch, good: str) -> None:
    with_packages(monkeypatch, cyclonedds=good, aiortc="1.16")
    assert doctor.check_software("dds").findings == []


@pytest.mark.parametrize("bad", ["0.10.2", "11.0.0", "12.0"])
def test_another_cyclonedds_is_named(monkeypatch: pytest.MonkeyPatch, bad: str) -> None:
    with_packages(monkeypatch, cyclonedds=bad, aiortc="1.16")
    assert bad in words(doctor.check_software("dds"))
    assert bad in words(doctor.check_software("webrtc"), Severity.WARNING)


def test_a_missing_extra_matters_for_its_own_wire_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with_packages(monkeypatch)
    for scheme, other in (("dds", "webrtc"), ("webrtc", "dds")):
        seen = doctor.check_software(scheme)
        assert f"{scheme}://" in words(seen)
        assert f"{other}://" in words(seen, Severity.NOTE)
        assert any(how_to_get(scheme) == finding.remedy for finding in seen.findings)
    assert doctor.check_software("udp").well


def test_the_vendors_package_beside_a_new_cyclonedds_is_a_danger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_packages(monkeypatch, cyclonedds="11.0.1", aiortc="1", unitree_sdk2py="1.0")
    assert "crashes programs on the robot" in words(doctor.check_software())


def interface(**how: object) -> Interface:
    some: dict[str, object] = {"name": "eth0", "address": "192.168.123.5", "up": True}
    some |= {"loopback": False, "multicast": True}
    return Interface(**(some | how))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "severity", "said"),
    [
        (interface(up=False), Severity.ERROR, "is down"),
        (interface(address=""), Severity.ERROR, "no IPv4 address"),
        (interface(multicast=False), Severity.ERROR, "multicast is off"),
        (interface(address="10.0.0.1"), Severity.WARNING, "192.168.123.x"),
    ],
)
def test_what_is_wrong_with_the_interface_is_said_with_a_command_that_mends_it(
    monkeypatch: pytest.MonkeyPatch, one: Interface, severity: Severity, said: str
) -> None:
    monkeypatch.setattr(surroundings, "list_interfaces", lambda: [one])
    monkeypatch.setattr(surroundings, "find_firewall", lambda: "")
    seen = doctor.check_network("dds://eth0")
    assert said in words(seen, severity)
    assert any("ip link" in f.remedy or "ip address" in f.remedy for f in seen.findings)
    if one.usable:
        assert doctor.check_network("udp://10.0.0.1").findings == []


def test_a_good_interface_and_loopback_have_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    loopback = interface(name="lo", address="127.0.0.1", loopback=True, multicast=False)
    monkeypatch.setattr(surroundings, "list_interfaces", lambda: [interface(), loopback])
    monkeypatch.setattr(surroundings, "find_firewall", lambda: "")
    assert doctor.check_network("dds://eth0").findings == []
    assert doctor.check_network("dds://lo").findings == []


def test_no_network_and_a_firewall_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "list_interfaces", list)
    monkeypatch.setattr(surroundings, "find_firewall", lambda: "ufw")
    seen = doctor.check_network()
    assert "has no network connection" in words(seen, Severity.WARNING)
    assert "ufw is on" in words(seen, Severity.WARNING)


def test_the_computer_tells_its_interfaces(tmp_path: Path) -> None:
    names = {one.name: one for one in surroundings.list_interfaces()}
    assert names["lo"].address == "127.0.0.1"
    assert names["lo"].loopback
    assert names["lo"].usable
    untold = {one.name: one for one in surroundings.list_interfaces(tmp_path)}
    assert untold["lo"].up


@pytest.mark.parametrize(("text", "found"), [("# x\nENABLED=yes\n", "ufw"), ("ENABLED=no", "")])
def test_a_firewall_is_found_by_its_settings(tmp_path: Path, text: str, found: str) -> None:
    file = tmp_path / "ufw.conf"
    assert surroundings.find_firewall(file) == ""
    file.write_text(text)
    assert surroundings.find_firewall(file) == found


def test_packages_are_found_or_not() -> None:
    assert surroundings.find_installed_version("numpy")
    assert surroundings.find_installed_version("no-such-package") == ""


# ---- a robot ------------------------------------------------------------------------------------


def test_a_robot_on_dds_is_looked_at_from_its_topics_to_its_mode() -> None:
    pytest.importorskip("cyclonedds")

    async def look() -> None:
        async with rig("dds") as one:
            seen = await doctor.check_dds(one.url)
            assert seen.facts["dds"]["robot"]
            assert seen.facts["dds"]["services"] == [
                "arm", "motion_switcher", "robot_state", "sport", "voice",
            ]  # fmt: skip
            async with one.connect() as robot:
                seen.add(await doctor.check_connected_robot(robot))
            assert seen.well
            assert seen.facts["controller"] == "ai"
            assert seen.facts["mode"]["id"] == Mode.WALK
            assert seen.facts["versions"]["arm"] == "1.0.0.14"
            one.world.drive("")
            await asyncio.sleep(0.5)
            debug = await doctor.check_dds(one.url)
            assert "does not offer arm and sport" in words(debug)
            async with one.connect() as robot:
                debug.add(await doctor.check_connected_robot(robot))
            assert not debug.well

    virtual.run(look())


def test_an_empty_domain_is_told() -> None:
    pytest.importorskip("cyclonedds")

    async def look() -> None:
        seen = await doctor.check_dds(f"dds://lo?domain={free_domain()}")
        assert "no DDS participant" in words(seen, Severity.NOTE)

    virtual.run(look())


def test_a_search_that_finds_nobody_is_no_error() -> None:
    seen = asyncio.run(doctor.find_robots(0.05))
    assert isinstance(seen.facts["found"], list)
    assert seen.findings == []


def test_the_old_name_of_a_service_is_known() -> None:
    (finding,) = doctor.find_service_problems(["arm", "loco"])
    assert "'loco'" in finding.message


def test_a_robot_on_another_wire_is_asked_what_it_can_tell() -> None:
    async def look() -> None:
        async with rig("memory", mode=Mode.DAMP) as one, one.connect() as robot:
            seen = await doctor.check_connected_robot(robot)
            assert seen.facts["controller"] is None
            assert seen.facts["versions"] == {}
            assert not seen.well  # it does not stand

    virtual.run(look())


def test_an_error_becomes_a_finding_with_its_remedy() -> None:
    finding = doctor.make_error_finding(LinkError("no way", "Make one."))
    assert (finding.severity, finding.message, finding.remedy) == (
        Severity.ERROR,
        "no way",
        "Make one.",
    )


# ---- the command --------------------------------------------------------------------------------


def test_the_embedded_robot_is_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ROTE_HOME", str(tmp_path))
    code, said = run(capsys, "--robot", "sim://g1")
    assert code == 0
    assert said["ok"] is True
    assert said["url"] == "sim://g1"
    assert main(["doctor", "--robot", "sim://g1"]) == 0
    assert "No problems found." in capsys.readouterr().out


@pytest.mark.parametrize("url", ["udp://127.0.0.1:9", "dds://nowhere0", "webrtc://127.0.0.1:9"])
def test_who_cannot_be_reached_is_said_why(capsys: pytest.CaptureFixture[str], url: str) -> None:
    code, said = run(capsys, "--robot", url)
    assert code == 1
    assert said["ok"] is False
    findings = said["findings"]
    assert isinstance(findings, list)
    assert any(f["severity"] == "error" and f["remedy"] for f in findings)


def test_for_a_person_every_finding_has_its_remedy_below(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "--robot", "dds://nowhere0"]) == 1
    lines = capsys.readouterr().out.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("error"))
    assert lines[place + 1].startswith(" ")
    assert lines[-1] == "Fix what is marked as an error."


@pytest.mark.parametrize("robot", [True, False])
def test_without_a_robot_it_looks_around_and_ends_with_the_truth(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, robot: bool
) -> None:
    async def nobody(*_: object) -> doctor.Examination:
        return doctor.Examination(
            {"dds": {"url": "dds://lo", "robot": robot, "services": []}, "found": []}
        )

    monkeypatch.setattr(doctor, "check_dds", nobody)
    monkeypatch.setattr(doctor, "find_robots", nobody)
    code, said = run(capsys)
    assert code == 0
    assert said["found"] == []
    assert {"interfaces", "packages", "firewall", "near"} <= set(said)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "interfaces" in out
    assert "{" not in out
    assert (out.splitlines()[-1] == "No problems found.") == robot
    assert ("No robot was found." in out) != robot
