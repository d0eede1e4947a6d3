"""CycloneDDS's settings beside the user's own: joined, never doubled, and explained."""

from pathlib import Path

import pytest

from rote.transport.dds.settings import find_problem, make_settings, merge_settings, read_interfaces

KNOWN = ("lo", "127.0.0.1", "eth0", "192.0.2.2")


def general(inside: str) -> str:
    return f"<CycloneDDS><Domain><General>{inside}</General></Domain></CycloneDDS>"


def chosen(attributes: str) -> str:
    return general(f"<Interfaces><NetworkInterface {attributes}/></Interfaces>")


@pytest.mark.parametrize(
    "mine",
    [
        chosen("name='eth0'"),
        chosen("name='eth0' priority='default' multicast='default'"),
        chosen("address='192.0.2.2'"),
        general("<NetworkInterfaceAddress>eth0</NetworkInterfaceAddress>"),
        "<General><Interfaces><NetworkInterface name='eth0'/></Interfaces></General>",
        chosen("name='eth0'").replace(
            "<CycloneDDS>", "<CycloneDDS xmlns='https://cdds.io/config'>"
        ),
    ],
)
def test_an_interface_that_the_user_names_is_not_named_again(mine: str) -> None:
    assert merge_settings(mine, "eth0", "192.0.2.2") == mine


def test_on_loopback_the_search_for_peers_is_added_to_the_users_settings() -> None:
    mine = chosen("name='lo' multicast='true'")
    both = merge_settings(mine, "lo", "127.0.0.1")
    assert both.startswith(mine)
    assert both.count("NetworkInterface ") == 1
    assert "<Peer address='127.0.0.1'/>" in both


@pytest.mark.parametrize("before", [None, ""])
def test_without_settings_of_the_user_there_are_rotes_alone(before: str | None) -> None:
    assert merge_settings(before, "eth0") == make_settings("eth0")


def test_another_interface_and_other_settings_stay_beside_rotes(tmp_path: Path) -> None:
    file = tmp_path / "settings.xml"
    file.write_text('<?xml version="1.0"?>\n' + chosen("name='eth0'"), encoding="utf-8")
    tracing = "<Tracing><Verbosity>none</Verbosity></Tracing>"
    mine = f"file://{file},{tracing}"
    assert read_interfaces(mine).interfaces == ("eth0",)
    assert merge_settings(mine, "lo") == f"{mine},{make_settings('lo')}"
    assert merge_settings(mine, "eth0") == mine


@pytest.mark.parametrize(
    ("mine", "seen"),
    [
        ("<broken", "cannot be read"),
        ("file:///nowhere/at/all.xml", "cannot be read"),
        ("<!DOCTYPE x><General/>", "entities"),
        (chosen("name='eth9'"), "'eth9'"),
        (general("<NetworkInterfaceAddress>eth0</NetworkInterfaceAddress>"), "excludes 'lo'"),
    ],
)
def test_settings_that_keep_rote_from_an_interface_are_explained(mine: str, seen: str) -> None:
    found = find_problem(mine, "lo", KNOWN)
    assert found is not None
    words, remedy = found
    assert seen in words
    assert "CYCLONEDDS_URI" in remedy


@pytest.mark.parametrize("mine", [None, "", chosen("name='lo'"), chosen("name='eth0'")])
def test_settings_that_do_no_harm_are_no_problem(mine: str | None) -> None:
    assert find_problem(mine, "lo", KNOWN) is None
