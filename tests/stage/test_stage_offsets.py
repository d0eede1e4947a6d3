"""How early a robot's own actions and sounds are requested: shown, set by hand, learned again."""

import asyncio
import json
from pathlib import Path

import pytest

import virtual
from rote.cli.show import _show_offsets
from rote.errors import BadRequestError, DecodeError
from rote.platform import paths
from rote.platform.system import free_port
from rote.stage.folder import StageFolder
from rote.stage.stage import TRY_STAGE, open_stage
from rote.wire.stage import AgentState, decode_agent, decode_lead_change
from stage.test_stage_reset import running_agent
from stage_memory import memory_stage


def test_an_offset_that_a_person_set_stays_until_it_is_learned_again() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            learned = one.agent.leads
            learned.learn("wave", 0.7)
            await one.until(lambda: one.stage.offsets == {"ann": {"wave": 0.7}})
            one.stage.set_offset("ann", "wave", 0.4)
            await one.until(lambda: one.stage.offsets == {"ann": {"wave": 0.4}})
            learned.learn("wave", 0.7)
            assert learned.entries == (("wave", 0.4, True),)
            kept = json.loads(paths.agent_file(TRY_STAGE, "ann").read_text())
            assert kept == {"leads_s": {"wave": 0.4}, "set": ["wave"]}
            one.stage.set_offset("ann", "wave", None)
            await one.until(lambda: one.stage.offsets == {"ann": {}})
            learned.learn("wave", 0.7)
            assert learned.entries == (("wave", 0.7, False),)
            for robot, seconds in (
                ("eve", 0.4),
                ("ann", -1.0),
                ("ann", 16.0),
                ("ann", float("nan")),
            ):
                with pytest.raises(BadRequestError):
                    one.stage.set_offset(robot, "wave", seconds)

    virtual.run(story())


def test_offsets_are_shown_and_set_from_another_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hall = StageFolder.new(tmp_path / "hall", "hall", f"127.0.0.1:{free_port()}")
    hall.invite("ann")

    async def story() -> None:
        async with open_stage(hall.folder) as opened, running_agent(hall, "ann") as ann:
            assert await opened.conductor.wait_for_agents(("ann",), 30.0) == ()
            ann.leads.learn("wave", 0.7)
            await _show_offsets(hall.folder, "", "", None, as_json=True)
            await _show_offsets(hall.folder, "ann", "wave", 0.25, as_json=False)
            with pytest.raises(BadRequestError, match="'eve' is not reachable"):
                await _show_offsets(hall.folder, "eve", "wave", 0.25, as_json=False)

    asyncio.run(story())
    first, _, table = capsys.readouterr().out.partition("\n")
    assert json.loads(first)["offsets"] == [
        {"robot": "ann", "name": "wave", "seconds": 0.7, "set": False}
    ]
    assert "0.250 s" in table
    assert "set by hand" in table


def test_offsets_survive_the_wire_and_nonsense_does_not() -> None:
    state = AgentState("ann", "e", 1, leads=(("wave", 0.4, True),))
    assert decode_agent(state.encode()).leads == state.leads
    for wrong in (b"[]", b'{"name": 1, "seconds": 1}', b'{"name": "a", "seconds": "b"}'):
        with pytest.raises(DecodeError):
            decode_lead_change(wrong)
