"""A simulated robot that is made from a report gives the same report: on every wire, and for
firmwares that nobody has."""

from typing import Any

import pytest

import virtual
from rote.errors import BadRequestError
from rote.session.a1 import Level
from rote.sim.behaviour import draw_measured
from rote.sim.profile_from_report import profile_from_report
from rote.sim.quadruped.simulator import A1Simulator
from rote.sim.quadruped.world import A1World
from rote.sim.quirks import QUIRKS
from rote.sim.store import Store
from rote.sim.world import World
from rote.trial.judgement import find_differences
from rote.trial.report import build_report
from rote.trial.runner import run_trial
from rote.trial.steps import TrialLevel
from rote.wire.a1.values import Dialect
from trial_robots import INVENTED, SLOW, Answers, firmware, made_like, tried, twice

LOOK, HOLD, MOVE = TrialLevel
TODAY = ("short names, other codes, no pause",)


def judged(report: dict[str, Any]) -> dict[str, bool | None]:
    return {fact["id"]: fact["agrees"] for fact in report["facts"]}


@pytest.mark.parametrize(("wire", "level"), [("udp", LOOK), ("dds", LOOK)])
def test_a_robot_made_from_a_report_gives_the_same_report(wire: str, level: TrialLevel) -> None:
    first, second = virtual.run(twice(wire, firmware(), level))
    assert find_differences(first["robot"], second["robot"]) == []
    assert judged(first) == judged(second)


@pytest.mark.soak
@pytest.mark.parametrize("wire", ["udp", "pipe", "webrtc", "dds"])
def test_a_robot_made_from_a_whole_report_gives_the_same_report(wire: str) -> None:
    first, second = virtual.run(twice(wire, firmware(), MOVE))
    assert find_differences(first["robot"], second["robot"]) == []
    assert judged(first) == judged(second)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in TODAY else pytest.mark.soak) for n in INVENTED],
)
def test_an_invented_firmware_survives_the_round_trip(name: str) -> None:
    first, second = virtual.run(twice("pipe", INVENTED[name], MOVE))
    assert find_differences(first["robot"], second["robot"]) == []
    assert judged(first) == judged(second)


@pytest.mark.parametrize(
    "quirk",
    [
        pytest.param(name, marks=() if place % 26 == 0 else pytest.mark.soak)
        for place, name in enumerate(
            quirk.name
            for quirk in QUIRKS.values()
            if "webrtc" in quirk.wires
            and quirk.group != "connection"
            and quirk.name != "arm-state-late"  # a look sees a rate, and not how late states are
        )
    ],
)
def test_every_quirk_that_a_look_can_see_is_taken_over_and_seen_again(quirk: str) -> None:
    first, second = virtual.run(twice("pipe", firmware(quirk), LOOK))
    assert find_differences(first["robot"], second["robot"]) == []


def test_two_different_firmwares_are_told_apart() -> None:
    async def story() -> list[dict[str, Any]]:
        reports = []
        for odd in ((), ("20-slots",), ("list-one",), ("mode-text",), ("code-text",)):
            world = World(Store(":memory:"), firmware=firmware(*odd, SLOW))
            reports.append(build_report(await tried("pipe", world, LOOK)))
        return reports

    plain, *odd = virtual.run(story())
    seen = [
        [each.what for each in find_differences(plain["robot"], other["robot"])] for other in odd
    ]
    assert "slots" in seen[0]
    assert "lists of actions" in seen[1]
    assert any("mode" in what for what in seen[2])
    assert any("code" in what for what in seen[3])


def test_delays_are_taken_over_as_distributions() -> None:
    robot = {"wire": "webrtc", "build": "g1-29", "delays_s": {"arm/7107": [0.1, 0.2, 0.9]}}
    like = profile_from_report(robot)
    world = World(Store(":memory:"), firmware=like.firmware)
    values = [world.draw(like.firmware.delays_s["arm/7107"]) for _ in range(300)]
    assert min(values) < 0.15
    assert max(values) > 0.7
    assert 0.1 <= min(values) <= max(values) <= 0.9
    assert len({round(value, 3) for value in values}) > 100
    assert draw_measured((0.5,), world._core.rng) == 0.5


def test_a_report_of_a_machine_that_cannot_be_simulated_says_so() -> None:
    with pytest.raises(BadRequestError, match="cannot be simulated"):
        profile_from_report({"wire": "webrtc", "build": "7 motors", "joints": 7})


def test_a_likeness_takes_nonsense_for_nothing() -> None:
    robot = {
        "wire": "webrtc",
        "build": "g1-29",
        "topics": None,
        "teaching": {"lapse_s": "long", "all_lingers_s": [None]},
        "playing": {"starts_after_s": [None, "x"]},
        "delays_s": {"arm/7107": ["a"]},
        "refusals": [{"api": "arm/7107", "when": "", "assumed": None, "code": None}],
        "shapes": {},
        "mode": "x",
    }
    world, like = made_like({"robot": robot})
    world.advance(0.1)
    assert like.mode is None


def test_an_a1_and_a_go1_are_made_from_their_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rote.trial.a1_steps.LISTEN_S", 1.0)  # 500 states

    async def story(url: str) -> list[dict[str, Any]]:
        first = build_report(await run_trial(url, LOOK, Answers()))
        like = profile_from_report(first["robot"])
        world = A1World(dialect=Dialect(like.dialect), start=like.a1_start)
        async with A1Simulator(world) as simulator:
            level = Level(first["robot"]["a1_level"])
            again = f"{simulator.url(level)}&sender=loop"
            return [first, build_report(await run_trial(again, LOOK, Answers()))]

    for url in ("sim://a1?dialect=go1", "sim://a1?dialect=3.2"):
        first, second = virtual.run(story(url))
        assert find_differences(first["robot"], second["robot"]) == []
        assert judged(first) == judged(second)
    low = profile_from_report({"wire": "a1", "build": "a1", "dialect": "3.3.4", "a1_level": "low"})
    assert low.a1_start == "hung"


@pytest.mark.parametrize(
    "damage",
    [
        {"refusals": [1]},
        {"refusals": {"when": 1}},
        {"delays_s": {"arm/7107": 3}},
        {"odd_messages": 7},
        {"text_marks": True},
        {"playing": {"starts_after_s": 1.0}},
    ],
)
def test_no_robot_is_made_like_a_damaged_report(damage: dict[str, object]) -> None:
    with pytest.raises(BadRequestError, match="damaged"):
        profile_from_report({"wire": "webrtc", "build": "g1-29", **damage})
