"""rote demo --checklist: the documents' verification list, run on a simulated robot."""

import json

import pytest

import virtual
from rote.cli import main
from rote.cli.checklist import Checklist, ChecklistItem, ChecklistResult
from rote.model.g1 import Mode
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World


def checked(world: World) -> tuple[ChecklistResult, list[ChecklistItem]]:
    """Run the list on a robot; return its result, and what was shown meanwhile."""
    shown: list[ChecklistItem] = []

    async def run() -> ChecklistResult:
        simulator = Simulator(world)
        try:
            url = await simulator.serve_udp("127.0.0.1", 0)
            return await Checklist(shown.append).run(url)
        finally:
            await simulator.close()

    return virtual.run(run()), shown


def test_the_list_has_eight_steps_and_six_signs_and_each_is_shown_as_it_is_done() -> None:
    result, shown = checked(World(Store(":memory:")))
    assert [one.number for one in result.steps] == list(range(1, 9))
    assert [one.number for one in result.signs] == list(range(1, 7))
    assert shown == [*result.steps, *result.signs]
    assert [one.passed for one in result.steps[:6]] == [True] * 6


def test_a_robot_that_does_not_stand_fails_from_teaching_on_and_says_why() -> None:
    result, _ = checked(World(Store(":memory:"), mode=Mode.DAMP))
    assert [one.passed for one in result.steps] == [True] * 3 + [False] * 5
    assert "refused with 7404" in result.steps[3].found
    assert not result.passed
    assert {one.number for one in result.signs if not one.passed} == {3, 4, 5, 6}


def test_the_command_prints_the_list_for_scripts_and_ends_by_its_result(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rote.platform.loop.new_loop", virtual.VirtualLoop)
    code = main(["demo", "--checklist", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert code == (0 if found["passed"] else 1)
    assert len(found["steps"]) == 8
    assert set(found["steps"][0]) == {"number", "text", "passed", "found"}
    assert "Waist_Drum_Dance" in found["steps"][2]["found"]
