"""A stop is reset from any terminal, with and without a conductor, and shows who is ready."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rig import rig
from rote.cli import main
from rote.platform.system import free_port
from rote.stage.agent import Agent
from rote.stage.folder import StageFolder, read_invitation
from rote.stage.plain_stop import run_stop, stop_stage
from rote.stage.reset import ResetReadiness, find_readiness, reset_stage
from rote.stage.stage import open_stage
from rote.transport.zenoh.bus import StageBus

pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")


@asynccontextmanager
async def running_agent(hall: StageFolder, name: str) -> AsyncIterator[Agent]:
    """Run an agent with a simulated robot; it waits for a conductor as `rote agent` does."""
    invitation = read_invitation(hall.folder / f"{name}.invitation.json")
    with invitation.credentials() as credentials:
        bus = await StageBus.join(hall.endpoint, credentials)
        try:
            async with rig("memory") as one, one.connect() as robot:
                agent = Agent(bus, robot, name, hall.name)
                running = asyncio.create_task(agent.run())
                try:
                    yield agent
                finally:
                    running.cancel()
                    await asyncio.gather(running, return_exceptions=True)
        finally:
            await bus.close()


@pytest.fixture
def hall(tmp_path: Path) -> StageFolder:
    made = StageFolder.new(tmp_path / "hall", "hall", f"127.0.0.1:{free_port()}")
    made.invite("ann")
    made.invite("bob")
    return made


def test_a_stop_is_reset_from_another_terminal_while_the_conductor_runs(hall: StageFolder) -> None:
    asked: list[ResetReadiness] = []
    answers = [False, True]

    async def confirm(readiness: ResetReadiness) -> bool:
        asked.append(readiness)
        return answers.pop(0)

    async def story() -> None:
        async with open_stage(hall.folder) as opened, running_agent(hall, "ann") as ann:
            assert await opened.conductor.wait_for_agents(("ann",), 30.0) == ()
            assert await reset_stage(hall.folder, confirm) is None, "no stop is active"
            await stop_stage(hall.folder, as_json=False)
            assert await reset_stage(hall.folder, confirm) is None, "the person said no"
            assert find_readiness(opened.conductor) is not None
            assert await reset_stage(hall.folder, confirm) is not None
            assert opened.conductor.active_stop is None
            assert ann.session.phase == "idle"

    asyncio.run(story())
    assert len(asked) == 2
    assert asked[1].stop.by == "rote show stop"
    assert asked[1].ready == ("ann",)
    assert asked[1].obstacles["bob"].startswith("not reachable")


def test_a_stop_that_outlived_its_conductor_is_reset_without_one(
    hall: StageFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    async def confirm(_: ResetReadiness) -> bool:
        return True

    async def story() -> None:
        async with asyncio.timeout(60.0), asyncio.TaskGroup() as group:
            opening = open_stage(hall.folder)
            opened = await opening.__aenter__()
            async with running_agent(hall, "ann") as ann:
                assert await opened.conductor.wait_for_agents(("ann",), 30.0) == ()
                await opened.stop("a test")
                # The conductor ends, as after a show that was stopped.
                await opening.__aexit__(None, None, None)
                resetting = group.create_task(reset_stage(hall.folder, confirm))
                found = await resetting
                assert found is not None
                assert (found.ready, found.stop.by) == (("ann",), "an earlier stop")
                assert ann.session.phase == "idle"
                async with open_stage(hall.folder) as again:
                    assert await again.conductor.wait_for_agents(("ann",), 30.0) == ()
                    assert again.conductor.active_stop is None

    asyncio.run(story())


def test_a_reset_in_a_script_needs_yes_and_says_if_nothing_was_stopped(
    hall: StageFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "reset", "--stage", str(hall.folder), "--json"]) != 0
    assert "--yes" in json.loads(capsys.readouterr().err)["remedy"]
    assert main(["show", "reset", "--stage", str(hall.folder), "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"stop": None, "robots": {}, "reset": False}


def test_the_stop_of_a_show_imports_neither_the_command_line_nor_the_robots() -> None:
    code = "import sys, rote.stage.plain_stop; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"typer", "rich", "numpy", "cryptography", "rote.cli", "rote.model.registry"}
    assert not heavy.intersection(loaded)
    assert run_stop(["--stage", "a", "--help"]) is None
    assert run_stop(["--stage"]) is None
