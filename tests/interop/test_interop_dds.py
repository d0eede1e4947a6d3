"""A peer on CycloneDDS 0.10.2 with the vendor's types, the robot's own kind, beside rote on 11.

A wrong type on our side does not fail politely: it crashes such a peer, wherever it runs. So it is
here with endpoints on every topic that rote uses, and has to be alive at the end.
"""

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest

from interop.processes import HERE, PEERS, Network, Speaker
from rig import free_domain
from rote.connection import connect

pytestmark = pytest.mark.usefixtures("keeps_time")

CALLS = 200
PEER = PEERS / "cyclonedds-0.10.2"


def why_no_peer() -> str:
    missing = PEERS / "cyclonedds-missing"
    if (PEER / ".ready").exists():
        return ""
    if missing.exists():
        return missing.read_text(encoding="utf-8").strip()
    return f"CycloneDDS 0.10.2 is not in {PEERS}; build it with: scripts/peers/dds"


@pytest.fixture(scope="module")
def domain() -> int:
    pytest.importorskip("cyclonedds")
    if why := why_no_peer():
        pytest.skip(why)
    return free_domain("interop")


@pytest.fixture(scope="module")
def robot(domain: int) -> Iterator[Speaker]:
    where = (
        "--dds",
        "lo",
        "--domain",
        str(domain),
        "--hands",
        "dex3",
        "--store",
        ":memory:",
        "--json",
    )
    with Speaker(Network(), "-m", "rote", "sim", *where) as speaker:
        speaker.hear("ready")
        yield speaker


@pytest.fixture(scope="module")
def peer(robot: Speaker, domain: int) -> Iterator[Speaker]:
    path = os.pathsep.join([str(PEER), *filter(None, [os.environ.get("PYTHONPATH")])])
    script = str(HERE / "dds_peer_driver.py")
    with Speaker(
        Network(), script, str(domain), str(CALLS), environment={"PYTHONPATH": path}
    ) as speaker:
        yield speaker


@pytest.fixture(scope="module")
def tour(peer: Speaker) -> dict[str, Any]:
    return peer.hear("toured")


def test_the_peer_is_what_robots_run(peer: Speaker) -> None:
    assert peer.hear("ready")["version"] == "0.10.2"


def test_it_has_200_of_200_calls_answered(tour: dict[str, Any]) -> None:
    assert tour["answered"] == CALLS


def test_it_asks_version_mode_and_controller_and_is_refused_in_the_robots_numbers(
    tour: dict[str, Any],
) -> None:
    assert tour["version"] == "1.0.0.14"
    assert (tour["fsm"], tour["controller"], tour["unknown"]) == (500, "ai", 7402)


def test_it_teaches_and_lists_what_it_taught(tour: dict[str, Any]) -> None:
    assert tour["teach"] == [0, True, 0, 0]
    assert tour["taught"] == ["theirs"]


def test_it_plays_and_stops(tour: dict[str, Any]) -> None:
    assert tour["play"] == [0, True, 0, True]


def test_it_reads_the_joints(tour: dict[str, Any]) -> None:
    assert tour["joints"] == [5, 35]


def test_it_reads_the_hands_and_closes_a_finger(tour: dict[str, Any]) -> None:
    assert tour["hands"] == [[*range(7)], 9, True]


def test_it_survives_our_client_on_the_same_topics_while_that_plays_what_it_taught(
    peer: Speaker, tour: dict[str, Any], domain: int
) -> None:
    async def visit() -> list[str]:
        async with connect(f"dds://lo?domain={domain}", timeout=20.0) as robot:
            playing = await robot.start("theirs")
            await asyncio.sleep(0.5)
            await playing.stop()
            return [action.name for action in (await robot.actions()).taught]

    assert asyncio.run(visit()) == ["theirs"]
    assert peer.process.poll() is None
    last = peer.let_go()
    assert last["event"] == "done"
    assert last["heard"] > 0
