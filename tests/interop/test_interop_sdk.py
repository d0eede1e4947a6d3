"""The manufacturer's Python library on CycloneDDS 0.10.2 against the simulated robot.

The library is unmodified. Its wheel has no clients of a G1 and no examples, so what those send is
in sdk_driver.py, from facts.
"""

import os

import pytest

from interop.processes import HERE, PEERS, Line, Network, Speaker
from rig import free_domain

SDK, CYCLONE = PEERS / "unitree-sdk2", PEERS / "cyclonedds-0.10.2"


def why_not() -> str:
    """Return why the library is not here; nothing where it is."""
    if not (CYCLONE / ".ready").exists():
        return f"CycloneDDS 0.10.2 is not in {PEERS}; build it with: scripts/peers/dds"
    missing = PEERS / "missing-sdk2"
    if missing.exists():
        return missing.read_text(encoding="utf-8").strip()
    if SDK.is_dir():
        return ""
    return f"unitree-sdk2 is not in {PEERS}; get it with: scripts/peers/clients"


pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
    pytest.mark.usefixtures("keeps_time"),
]


def check_arm_action(seen: Line) -> None:
    assert seen["version"] == "1.0.0.14"
    assert seen["presets"] > 15
    assert seen["codes"] == [0, 0, 0, 0]


def check_arm7(seen: Line) -> None:
    assert seen["slots"] == 35
    assert seen["raised_rad"] > 1.3, "the arms went up, in spite of the stall"
    assert abs(seen["last_rad"]) < 0.5


def check_voice(seen: Line) -> None:
    assert (seen["codes"], seen["volume"]) == ([0, 0, 0, 0], {"volume": 85})
    assert seen["played"] == [0, 0], "a sound as bytes, and its continuation"


def check_loco(seen: Line) -> None:
    assert (seen["version"], seen["before"], seen["after"]) == ("1.0.0.0", 500, 500)
    assert (seen["moves"], seen["heights"], seen["tasks"]) == ([0, 0, 0], [0, 0], [0])
    assert seen["up"] == [[0, 0, 706], [0, 0, 702]]
    assert seen["start"] == 0


PATIENCE_S = 120.0
"""Timeout for one example: the library gives up a call after 10 s, and is asked three times."""

CHECKS = {
    "arm_action": check_arm_action,
    "arm7": check_arm7,
    "voice": check_voice,
    "loco": check_loco,
}


@pytest.mark.parametrize(
    "options",
    [
        # The vendor's clients give up a request after 10 s, and lose answers on a busy computer.
        pytest.param((), id="as logged", marks=pytest.mark.quiet),
        pytest.param(("--polite",), id="polite", marks=pytest.mark.soak),
    ],
)
@pytest.mark.timeout(600)
def test_the_examples_of_the_vendor_run_to_their_ends(options: tuple[str, ...]) -> None:
    domain = str(free_domain(f"sdk {options}"))
    where = ("--dds", "lo", "--domain", domain, "--store", ":memory:", "--json")
    path = os.pathsep.join([str(SDK), str(CYCLONE)])
    script = str(HERE / "sdk_driver.py")
    with Speaker(Network(), "-m", "rote", "sim", *where, *options) as robot:
        robot.hear("ready")
        with Speaker(Network(), script, "lo", domain, environment={"PYTHONPATH": path}) as client:
            for event, check in CHECKS.items():
                check(client.hear(event, within_s=PATIENCE_S))
            client.hear("done")
