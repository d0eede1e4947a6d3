"""How a show went, as the page and its file tell; in virtual time."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from rote.messages import Phase
from rote.web.schemas.shows import StageGo
from rote.web.services.hub import Hub
from rote.web.services.stage import PendantStage
from stage.test_stage_report import break_stop, read
from stage_memory import memory_stage
from virtual import run
from web.test_web_hub import hub_with


def write_show(folder: Path) -> Path:
    """Write a show of one section, and return the file of its report."""
    section = {"name": "one", "clips": [{"role": "left", "take": "sway"}]}
    show = {"rote_show": 1, "roles": {"left": {}}, "sections": [section]}
    shows = folder / "shows"
    shows.mkdir()
    (shows / "greet.json").write_text(json.dumps(show))
    report = shows / "greet.report.json"
    report.write_text(json.dumps({"sections": [], "run": "of last week"}))
    return report


async def go(hub: Hub) -> "asyncio.Task[None]":
    """Say GO, and keep the browser that commands alive; return what does."""
    client = hub.join(None, "0")
    await hub.stage.go(StageGo(show="greet", cast={"left": "ann"}, force=True))

    async def live() -> None:
        while True:
            hub.clients.note_alive(client.id)
            await asyncio.sleep(0.1)

    return asyncio.create_task(live())


async def ended(hub: Hub, report: Path) -> dict[str, Any]:
    """Wait until a show is over and its report is saved; return what the page shows of it."""
    async with asyncio.timeout(60.0):
        while hub.stage.document()["last"] is None or not read(report).get("over"):
            await asyncio.sleep(0.1)
    last: dict[str, Any] = hub.stage.document()["last"]
    return last


def test_a_stop_that_was_not_confirmed_is_in_the_report_of_the_page(tmp_path: Path) -> None:
    report = write_show(tmp_path)

    async def story() -> None:
        async with memory_stage() as one:
            pendant = PendantStage(one.stage, "try", ("ann",))
            async with hub_with(tmp_path, "sway", stage=pendant) as hub:
                living = await go(hub)
                await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
                running = read(report)
                assert (running["over"], running["playing"]) == (False, "one")
                stop = one.agent._robot.stop
                break_stop(one)
                hub.stage.stop("a test")
                last = await ended(hub, report)
                saved = read(report)
                assert last["unconfirmed"] == saved["unconfirmed"] == ["ann"]
                assert last["run"] == saved["run"] == running["run"]
                assert "stopped by a test" in last["ended"]
                one.agent._robot.stop = stop  # type: ignore[method-assign]
                living.cancel()

    run(story())


def test_a_robot_that_did_not_complete_a_section_is_shown(tmp_path: Path) -> None:
    report = write_show(tmp_path)

    async def story() -> None:
        async with memory_stage() as one, one.rig.bystander() as other:
            pendant = PendantStage(one.stage, "try", ("ann",))
            async with hub_with(tmp_path, "sway", stage=pendant) as hub:
                living = await go(hub)
                await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
                await other.stop()
                last = await ended(hub, report)
                assert [each["incomplete"] for each in last["sections"]] == [["ann"]]
                assert read(report)["sections"][0]["incomplete"] == ["ann"]
                living.cancel()

    run(story())


def test_an_error_of_the_program_is_what_ended_the_show(tmp_path: Path) -> None:
    report = write_show(tmp_path)

    async def story() -> None:
        async with memory_stage() as one:

            async def broken(*_: object) -> None:
                raise RuntimeError("out of order")

            one.conductor.play = broken  # type: ignore[assignment, method-assign]
            pendant = PendantStage(one.stage, "try", ("ann",))
            async with hub_with(tmp_path, "sway", stage=pendant) as hub:
                living = await go(hub)
                last = await ended(hub, report)
                assert "out of order" in last["ended"]
                assert "out of order" in read(report)["ended"]
                living.cancel()

    run(story())


@pytest.mark.parametrize("at", ["at once", "later"])
def test_a_report_that_cannot_be_saved_is_said(tmp_path: Path, at: str) -> None:
    report = write_show(tmp_path)

    async def story() -> None:
        async with memory_stage() as one:
            pendant = PendantStage(one.stage, "try", ("ann",))
            async with hub_with(tmp_path, "sway", stage=pendant) as hub:
                notes: list[str] = []
                hub.stage._notify = lambda message, *_, **__: notes.append(message)
                report.unlink()
                if at == "at once":
                    report.mkdir()
                living = await go(hub)
                if at == "later":
                    await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
                    report.unlink()
                    report.mkdir()
                await one.until(lambda: hub.stage.document()["last"] is not None)
                await one.until(lambda: notes)
                assert str(report.name) in notes[0]
                sections = hub.stage.document()["last"]["sections"]
                assert len(sections) == (0 if at == "at once" else 1)
                living.cancel()

    run(story())
