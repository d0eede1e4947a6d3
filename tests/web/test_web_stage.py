"""How a show went, as the page and its file tell; in virtual time."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from rote.errors import BadRequestError
from rote.messages import Phase
from rote.session.stage_agent import AgentPhase
from rote.stage.conductor import SupersededError
from rote.stage.leads import SOUND_LEAD
from rote.stage.show.file import parse
from rote.stage.show_lock import lock_show
from rote.web.schemas.shows import (
    ControlCues,
    CueVerb,
    RunState,
    ShowEnded,
    ShowRunNow,
    StageGo,
)
from rote.web.server.problems import ProblemError
from rote.web.services.hub import STALL_S, Hub
from rote.web.services.stage import PendantStage
from rote.wire.stage import ConductorState
from stage.test_stage_report import break_stop, read
from stage_memory import MemoryStage, memory_stage
from virtual import hang, run
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


async def go(hub: Hub, section: str | None = None) -> "asyncio.Task[None]":
    """Say GO, and keep the browser that commands alive; return what does."""
    client = hub.join(None, "0")
    await hub.stage.go(StageGo(show="greet", cast={"left": "ann"}, section=section, force=True))

    async def live() -> None:
        while True:
            hub.clients.note_alive(client.id)
            await asyncio.sleep(0.1)

    return asyncio.create_task(live())


@asynccontextmanager
async def hub_on_stage(home: Path) -> AsyncIterator[tuple[MemoryStage, Hub]]:
    """Run a stage with one robot, and the hub of a server that conducts it."""
    async with memory_stage() as one:
        pendant = PendantStage(one.stage, "try", ("ann",))
        async with hub_with(home, "sway", stage=pendant) as hub:
            yield one, hub


def now(hub: Hub) -> ShowRunNow:
    """Return what the page shows of the running show."""
    running = hub.stage.document()["run"]
    assert running is not None
    return running


def control(hub: Hub, verb: CueVerb, **more: str) -> None:
    """Press a button of the cue list."""
    hub.stage.control(ControlCues(verb=verb, **more))


async def ended(hub: Hub, report: Path) -> ShowEnded:
    """Wait until a show is over and its report is saved; return what the page shows of it."""
    async with asyncio.timeout(60.0):
        while (last := hub.stage.document()["last"]) is None or not read(report).get("over"):
            await asyncio.sleep(0.1)
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
                stop = one.robot.stop
                break_stop(one)
                hub.stage.stop("a test")
                await one.until(lambda: now(hub)["state"] == "stopped")
                control(hub, "finish")
                last = await ended(hub, report)
                saved = read(report)
                assert last["unconfirmed"] == saved["unconfirmed"] == ["ann"]
                assert last["run"] == saved["run"] == running["run"]
                assert "stopped by a test" in last["interruptions"][0]
                assert (last["ended"], last["finished_early"]) == ("", True)
                one.robot.stop = stop  # type: ignore[method-assign]
                living.cancel()

    run(story())


def test_go_ends_a_hold_and_begins_the_next_section(tmp_path: Path) -> None:
    report = write_show(tmp_path)
    file = tmp_path / "shows" / "greet.json"
    show = json.loads(file.read_text())
    (section,) = show["sections"]
    show["sections"] = [{**section, "hold": True}, {**section, "name": "two"}]
    file.write_text(json.dumps(show))

    async def story() -> None:
        async with memory_stage() as one:
            pendant = PendantStage(one.stage, "try", ("ann",))
            async with hub_with(tmp_path, "sway", stage=pendant) as hub:
                living = await go(hub)
                await one.until(lambda: one.conductor.session.section.is_paused)
                await one.until(lambda: one.conductor.session.section.not_held == ())
                await hub.stage.go(StageGo(show="greet", cast={"left": "ann"}, force=True))
                last = await ended(hub, report)
                assert [each["name"] for each in last["sections"]] == ["one", "two"]
                assert last["ended"] == ""
                living.cancel()

    run(story())


def write_three_sections(folder: Path) -> Path:
    """Write a show of three sections, and return the file of its report."""
    report = write_show(folder)
    file = folder / "shows" / "greet.json"
    show = json.loads(file.read_text())
    (section,) = show["sections"]
    show["sections"] = [{**section, "name": name} for name in ("one", "two", "three")]
    file.write_text(json.dumps(show))
    return report


@dataclass
class CueList:
    """A show of three sections that was begun, as the page sees it."""

    one: MemoryStage
    hub: Hub

    async def until(self, state: RunState, section: str) -> ShowRunNow:
        await self.one.until(lambda: now(self.hub)["state"] == state)
        assert now(self.hub)["section"] == section
        return now(self.hub)

    async def press_go(self, section: str) -> None:
        await self.hub.stage.go(StageGo(show="greet", cast={"left": "ann"}, section=section))

    @property
    def lamp(self) -> str:
        return self.hub.stage.document()["robots"][0]["lamp"]


@asynccontextmanager
async def cue_list(folder: Path) -> AsyncIterator[CueList]:
    write_three_sections(folder)
    async with hub_on_stage(folder) as (one, hub):
        living = await go(hub)
        try:
            yield CueList(one, hub)
        finally:
            living.cancel()


def test_a_section_is_paused_and_goes_on_where_it_was(tmp_path: Path) -> None:
    async def story() -> None:
        async with cue_list(tmp_path) as cues:
            hub = cues.hub
            playing = await cues.until("playing", "one")
            assert playing["sections"] == ["one", "two", "three"]
            assert (playing["next"], playing["robots"]) == ("two", ["ann"])
            assert playing["left_s"] is not None
            assert playing["left_s"] <= playing["duration_s"]
            await cues.one.until(lambda: cues.lamp == "playing")
            await asyncio.sleep(0.3)
            control(hub, "pause")
            await cues.one.until(lambda: cues.lamp == "paused")
            await asyncio.sleep(1.0)  # the robots slow down first
            before = await cues.until("paused", "one")
            await asyncio.sleep(1.0)
            assert now(hub)["elapsed_s"] == before["elapsed_s"]
            assert hub.stage.is_running  # its arms are stiff: the page in command is needed
            with pytest.raises(ProblemError, match="not this one") as refused:
                await cues.press_go("two")
            assert refused.value.kind == "another-section"
            await cues.one.until(lambda: cues.one.conductor.session.section.not_held == ())
            control(hub, "resume")
            await cues.until("playing", "one")
            with pytest.raises(ProblemError, match="under way"):
                await cues.press_go("one")

    run(story())


def test_sections_are_selected_and_robots_muted_by_the_rules_of_the_stage(tmp_path: Path) -> None:
    async def story() -> None:
        async with cue_list(tmp_path) as cues:
            hub = cues.hub
            await cues.until("playing", "one")
            control(hub, "back")
            assert (await cues.until("waiting", "one"))["waits"] == "go"
            assert not hub.stage.is_running
            control(hub, "skip")
            await cues.one.until(lambda: now(hub)["section"] == "two")
            control(hub, "back")
            await cues.one.until(lambda: now(hub)["section"] == "one")
            control(hub, "jump", section="three")
            await cues.one.until(lambda: now(hub)["section"] == "three")
            with pytest.raises(BadRequestError, match="no section 'four'"):
                control(hub, "jump", section="four")
            control(hub, "mute", robot="ann")
            assert cues.lamp == "muted"
            with pytest.raises(BadRequestError, match="not in the cast"):
                control(hub, "mute", robot="bob")
            control(hub, "skip")  # there is no other section
            await cues.one.until(lambda: hub.stage.document()["last"] is not None)
            last = hub.stage.document()["last"]
            assert last is not None
            assert last["finished_early"]
            with pytest.raises(BadRequestError, match="no show is under way"):
                control(hub, "back")
            assert cues.lamp == "muted"
            control(hub, "unmute", robot="ann")
            assert cues.lamp == "ready"

    run(story())


def test_an_offset_is_set_by_hand_and_shown(tmp_path: Path) -> None:
    async def story() -> None:
        async with cue_list(tmp_path) as cues:
            hub = cues.hub
            await cues.until("playing", "one")
            control(hub, "finish")
            await cues.one.until(lambda: hub.stage.document()["last"] is not None)
            await cues.one.until(lambda: hub.stage.document()["robots"][0]["phase"] == "idle")
            hub.stage.set_offset("ann", "sounds", 0.4)
            shown = {"sounds": {"seconds": 0.4, "is_set": True}}
            await cues.one.until(lambda: hub.stage.document()["robots"][0]["offsets"] == shown)
            assert cues.one.stage.offsets == {"ann": {SOUND_LEAD: 0.4}}
            hub.stage.set_offset("ann", "sounds", None)
            await cues.one.until(lambda: hub.stage.document()["robots"][0]["offsets"] == {})
            with pytest.raises(BadRequestError, match="not on the stage"):
                hub.stage.set_offset("bob", "sounds", 0.4)

    run(story())


def test_after_a_stop_its_section_begins_again_once_it_is_reset(tmp_path: Path) -> None:
    report = write_three_sections(tmp_path)

    async def story() -> None:
        async with memory_stage() as one:
            pendant = PendantStage(one.stage, "try", ("ann", "bob"))
            async with hub_with(tmp_path, "sway", stage=pendant) as hub:
                living = await go(hub, "two")
                await one.until(lambda: now(hub)["state"] == "playing")
                hub.stage.stop("a test")
                await one.until(lambda: now(hub)["state"] == "stopped")
                await one.until(lambda: hub.stage.document()["robots"][0]["lamp"] == "STOPPED")
                document = hub.stage.document()
                assert document["stop"] is not None
                assert document["stop"]["obstacles"]["ann"] == ""
                assert "not reachable" in document["stop"]["obstacles"]["bob"]
                assert "stopped by a test" in now(hub)["interruption"]
                assert not hub.stage.is_running
                wanted = StageGo(show="greet", cast={"left": "ann"})
                with pytest.raises(ProblemError, match="a stop is active"):
                    await hub.stage.go(wanted)
                with pytest.raises(ProblemError, match="changed meanwhile"):
                    hub.stage.reset("an older one")
                hub.stage.reset(document["stop"]["id"])
                assert (now(hub)["state"], now(hub)["section"]) == ("waiting", "two")
                await one.until(lambda: hub.stage.document()["robots"][0]["lamp"] == "ready")
                await hub.stage.go(wanted)
                await one.until(lambda: now(hub)["state"] == "playing")
                assert (now(hub)["section"], now(hub)["interruption"]) == ("two", "")
                await one.until(lambda: now(hub)["state"] == "waiting")
                await hub.stage.go(wanted)
                last = await ended(hub, report)
                assert [each["name"] for each in last["sections"]] == ["two", "three"]
                assert (last["ended"], len(last["interruptions"])) == ("", 1)
                living.cancel()

    run(story())


def test_a_page_is_told_that_another_conductor_has_taken_over_and_go_is_refused(
    tmp_path: Path,
) -> None:
    write_show(tmp_path)

    async def story() -> None:
        async with hub_on_stage(tmp_path) as (one, hub):
            assert not hub.stage.document()["is_superseded"]
            other = ConductorState("another", 1, term=9)
            one.bus.publish(one.keys.conductor, other.encode())
            await one.until(lambda: hub.stage.document()["is_superseded"])
            with pytest.raises(SupersededError):
                await hub.stage.go(StageGo(show="greet", cast={"left": "ann"}))
            assert hub.stage.document()["run"] is None
            hub.stage.stop("a test")
            await one.until(lambda: one.agent.session.phase is AgentPhase.STOPPED)

    run(story())


def test_a_first_go_that_was_pressed_while_the_server_hung_is_refused(tmp_path: Path) -> None:
    write_show(tmp_path)

    async def story() -> None:
        async with hub_on_stage(tmp_path) as (one, hub):
            one.conductor._last_run_s -= 1.2  # shorter than what its beats tell
            with pytest.raises(BadRequestError, match="hung until just now"):
                await hub.stage.go(StageGo(show="greet", cast={"left": "ann"}))
            assert hub.stage.document()["run"] is None

    run(story())


def test_a_show_that_was_changed_after_it_was_locked_is_not_begun(tmp_path: Path) -> None:
    write_show(tmp_path)

    async def story() -> None:
        async with memory_stage() as one:
            pendant = PendantStage(one.stage, "try", ("ann",))
            async with hub_with(tmp_path, "sway", stage=pendant) as hub:
                file = tmp_path / "shows" / "greet.json"
                lock_show(file, parse(file.read_bytes()), hub.shows.files)
                file.write_text(file.read_text() + "\n")
                with pytest.raises(BadRequestError, match="changed after it was locked"):
                    await go(hub)

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
                last = hub.stage.document()["last"]
                assert last is not None
                assert len(last["sections"]) == (0 if at == "at once" else 1)
                living.cancel()

    run(story())


async def stop_and_reset(one: MemoryStage) -> None:
    """Stop the stage and reset it, as another program does."""
    await one.conductor.stop("another program")
    one.conductor.reset()


@pytest.mark.parametrize("during", ["the check", "the report"])
def test_a_stop_after_go_needs_another_go_even_if_it_is_reset(tmp_path: Path, during: str) -> None:
    write_show(tmp_path)

    async def story() -> None:
        async with memory_stage() as one:
            pendant = PendantStage(one.stage, "try", ("ann",))
            async with hub_with(tmp_path, "sway", stage=pendant) as hub:
                name = "load_playable" if during == "the check" else "save_report"
                work, calls = getattr(hub.shows, name), list[str]()

                async def interrupted(*args: object) -> object:
                    if not calls:
                        calls.append(name)
                        await stop_and_reset(one)
                    return await work(*args)

                setattr(hub.shows, name, interrupted)
                if during == "the check":
                    with pytest.raises(ProblemError, match="stopped before it began"):
                        await go(hub)
                    living = asyncio.create_task(asyncio.sleep(0))
                else:
                    living = await go(hub)
                    await one.until(lambda: now(hub)["state"] == "waiting")
                    assert "stopped before it began" in now(hub)["interruption"]
                for _ in range(400):
                    await asyncio.sleep(0.02)
                    assert one.rig.world.state().phase is Phase.NONE
                assert calls
                if during == "the report":
                    await hub.stage.go(StageGo(show="greet", cast={"left": "ann"}))
                    await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
                living.cancel()

    run(story())


@pytest.mark.parametrize("why", ["the page has gone", "a stall"])
def test_nothing_begins_if_nobody_commands_at_the_end_of_the_check(
    tmp_path: Path, why: str
) -> None:
    write_show(tmp_path)

    async def story() -> None:
        async with memory_stage() as one:
            pendant = PendantStage(one.stage, "try", ("ann",))
            async with hub_with(tmp_path, "sway", stage=pendant) as hub:
                client = hub.join(None, "0")
                load = hub.shows.load_playable

                async def load_late(request: StageGo) -> object:
                    checked = await load(request)
                    if why == "a stall":
                        hang(STALL_S + 0.3)
                    else:
                        hub.clients.leave(client)
                        await asyncio.sleep(4.0)
                    return checked

                hub.shows.load_playable = load_late  # type: ignore[assignment, method-assign]
                match = "too late" if why == "a stall" else "stopped before it began"
                with pytest.raises(ProblemError, match=match):
                    await hub.stage.go(StageGo(show="greet", cast={"left": "ann"}, force=True))
                assert (one.conductor.active_stop is not None) == (why != "a stall")
                await asyncio.sleep(8.0)
                assert one.rig.world.state().phase is Phase.NONE

    run(story())


def test_the_time_of_a_stop_is_not_shown_for_a_later_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with memory_stage() as one:
            pendant = PendantStage(one.stage, "try", ("ann",))
            async with hub_with(tmp_path, stage=pendant) as hub:
                stopping = hub.stage.stop("a test")
                assert stopping is not None
                await stopping
                first = hub.stage.document()["stop"]
                assert first is not None
                assert first["confirmed_ms"] is not None
                one.stage.reset()  # by another program
                await one.until(lambda: one.agent.session.phase == "idle")
                stop = one.robot.stop
                break_stop(one)
                await one.conductor.stop("another program")
                later = hub.stage.document()["stop"]
                assert later is not None
                assert (later["confirmed_ms"], later["unconfirmed"]) == (None, ["ann"])
                one.robot.stop = stop  # type: ignore[method-assign]

    run(story())
