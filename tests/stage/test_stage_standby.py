"""A standby conductor with real processes and routers: the first one is killed, or frozen."""

import asyncio
import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

import virtual
from rote.cli import main
from rote.cli.show import _ShowRun
from rote.errors import BadRequestError, LinkError
from rote.messages import Phase
from rote.motion import files
from rote.motion.files.library import Library
from rote.platform.system import free_port
from rote.session.stage_agent import AgentPhase
from rote.session.stage_conductor import Standing
from rote.stage.agent import Agent
from rote.stage.conductor import SupersededError
from rote.stage.cues import CueState, Lamp, describe_rest
from rote.stage.folder import StageFolder
from rote.stage.show.check import CheckedShow
from rote.stage.show.file import Cast, Clip, Section, Show, ShowRole, Trigger, TriggerKind
from rote.stage.show_files import ShowFiles
from rote.stage.stage import open_stage
from rote.stage.watcher import watching
from rote.transport.osc import OscPort
from rote.wire.osc import OscMessage
from rote.wire.stage import AgentState, ConductorState
from sampled import sample_parameters
from stage.test_stage_agent import LEFT, score
from stage.test_stage_cue_list import cue_run, standing_by, three_sections
from stage.test_stage_routers import following, make_stage, routing
from stage.test_stage_show import take
from stage_memory import memory_stage

needs_zenoh = pytest.mark.skipif(
    importlib.util.find_spec("zenoh") is None, reason="eclipse-zenoh is not installed"
)
WITHIN_S = 60.0


def write_show(folder: Path) -> None:
    files.save(take("calm"), folder / "calm.json")
    sections = [
        {"name": name, "clips": [{"role": "left", "take": "calm.json", "speed": 0.4}]}
        for name in ("hello", "bow")
    ]
    document = {"rote_show": 1, "roles": {"left": {}}, "sections": sections}
    (folder / "show.json").write_text(json.dumps(document))
    (folder / "cast.json").write_text(json.dumps({"cast": {"left": "ann"}}))


class ShowProcess:
    """`rote show run`, which gets GO by OSC."""

    def __init__(self, folder: Path, name: str, *options: str) -> None:
        self.port, self._lines = free_port(), list[str]()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "rote", "show", "run", "show.json"),
                *("--cast", "cast.json", "--stage", "stage", "--report", f"{name}.json"),
                *("--osc", f"127.0.0.1:{self.port}", *options),
            ],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"COLUMNS": "300", "PYTHONUNBUFFERED": "1"},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self._lines.extend(iter(self.process.stdout.readline, ""))

    @property
    def text(self) -> str:
        return "".join(self._lines)

    async def until_said(self, text: str) -> None:
        async with asyncio.timeout(WITHIN_S):
            while text not in self.text:
                assert self.process.poll() is None or text in self.text, self.text
                await asyncio.sleep(0.02)

    async def until_ended(self) -> int:
        async with asyncio.timeout(WITHIN_S):
            while self.process.poll() is None:
                await asyncio.sleep(0.02)
        self._reader.join()
        return self.process.wait()

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


async def until(found: Callable[[], object]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not found():
            await asyncio.sleep(0.02)


def phase_of(agent: Agent) -> AgentPhase:
    return agent.session.phase


async def give_go(to: ShowProcess) -> None:
    port = await OscPort.open(lambda _message: None, "127.0.0.1", 0)
    try:
        address = f"127.0.0.1:{to.port}"
        await port.resolve(address)
        port.send(OscMessage("/rote/go", ()), address)
        await asyncio.sleep(0.1)
    finally:
        port.close()


@contextlib.asynccontextmanager
async def two_conductors(
    folder: Path,
) -> AsyncIterator[tuple[StageFolder, Agent, ShowProcess, ShowProcess]]:
    """Run a show with one robot whose first section plays, and a standby beside it."""
    made = make_stage(folder, "ann")
    write_show(folder)
    async with routing(made), following(made, "ann", made.routers[1]) as agent:
        shows = [ShowProcess(folder, "first")]
        try:
            (first,) = shows
            await first.until_said("'hello' waits for")
            shows.append(ShowProcess(folder, "second", "--standby"))
            await shows[1].until_said("standby: hello: waiting | ann:ready")
            await give_go(shows[1])
            await shows[1].until_said("is refused: this is the standby")
            await give_go(first)
            await until(lambda: agent.session.phase is AgentPhase.RUNNING)
            await shows[1].until_said("standby: hello: playing | ann:playing")
            yield made, agent, first, shows[1]
        finally:
            for each in shows:
                each.end()


@needs_zenoh
@pytest.mark.slow
@pytest.mark.parametrize("number", sample_parameters([signal.SIGSTOP, signal.SIGKILL], 1))
def test_a_standby_takes_over_go_and_stop_from_a_conductor_that_is_lost(
    tmp_path: Path, number: signal.Signals
) -> None:
    async def story() -> None:
        async with two_conductors(tmp_path) as (made, agent, first, standby):
            first.process.send_signal(number)
            await until(lambda: agent.session.phase is AgentPhase.IDLE)
            await standby.until_said("This standby conducts now")
            await standby.until_said("interrupted in the section 'hello'")
            await standby.until_said("'hello' waits for")
            first.process.send_signal(signal.SIGCONT)
            assert await first.until_ended() == (5 if number == signal.SIGSTOP else -number)
            if number == signal.SIGSTOP:
                assert "another conductor has taken over" in first.text
            with pytest.raises(BadRequestError, match="another conductor runs the stage"):
                await made.open_bus()
            assert phase_of(agent) is AgentPhase.IDLE, "nothing resumes by itself"
            await give_go(standby)
            await until(lambda: agent.session.phase is AgentPhase.RUNNING)
            async with watching(made.folder) as watcher:
                assert await watcher.stop("a person") == ()
            assert phase_of(agent) is AgentPhase.STOPPED
            await standby.until_said("stopped by a person")

    asyncio.run(story())


@needs_zenoh
def test_a_standby_is_refused_on_a_stage_without_routers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    StageFolder.new(tmp_path / "stage", "try", f"127.0.0.1:{free_port()}")
    write_show(tmp_path)
    options = ["--cast", str(tmp_path / "cast.json"), "--stage", str(tmp_path / "stage")]
    report = ["--report", str(tmp_path / "report.json")]
    assert main(["show", "run", str(tmp_path / "show.json"), *options, *report, "--standby"]) != 0
    told = " ".join(capsys.readouterr().err.split())
    assert "has no routers of its own" in told
    assert "Make a stage with routers" in told

    async def story() -> None:
        async with open_stage(standby=True):
            pass

    with pytest.raises(BadRequestError, match="needs the folder of a stage with routers"):
        asyncio.run(story())


# ---- in virtual time ----------------------------------------------------------------------------


def test_the_section_that_was_interrupted_waits_for_go_and_muted_robots_stay_muted() -> None:
    async def story() -> None:
        async with cue_run("two") as run, standing_by(run.one) as stage:
            await run.until_moving()
            assert "two: playing" in stage.other_conductor
            run.one.stage.mute("ann")
            run.one.bus.drops = lambda key: key == run.one.keys.conductor  # its process is killed
            await run.one.conductor.__aexit__(None)
            run.one.bus.drops = lambda _: False
            began = await stage.wait_for_takeover()
            assert began is not None
            assert (began.section, stage.muted) == ("two", {"ann"})
            assert await stage.conductor.wait_for_agents(("ann",), 30.0) == ()
            shows = stage.sections(
                three_sections(), Cast({"left": "ann"}), first=began.section, selected=True
            )

            async def play() -> list[str]:
                return [section.name async for section in shows]

            task = asyncio.create_task(play())
            await asyncio.sleep(10.0)
            status = stage.cues
            assert status is not None
            assert (status.state, status.section) == (CueState.WAITING, "two")
            assert status.lamps == {"ann": Lamp.MUTED}
            stage.mute("ann", muted=False)
            stage.go()
            assert await task == ["two", "three"]

    virtual.run(story())


def test_at_a_standby_go_and_reset_are_refused_stop_works_and_its_end_disturbs_nobody() -> None:
    async def story() -> None:
        async with memory_stage() as one, standing_by(one) as stage:
            for refused in (stage.go, stage.reset, stage.pause, stage.back):
                with pytest.raises(BadRequestError, match="this is the standby"):
                    refused()
            assert (await stage.stop("the standby")).unconfirmed == ()
            assert one.conductor.active_stop is not None
            assert "STOP by the standby is active" in stage.other_conductor
            one.stage.reset()
            await one.until(lambda: one.agent.session.phase is AgentPhase.IDLE)
            stage.finish()
            assert await stage.wait_for_takeover() is None
            assert one.conductor.session.standing is Standing.CONDUCTING
            assert one.agent.session.phase is AgentPhase.IDLE

    virtual.run(story())


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_standby_says_whether_the_conductor_has_ended_or_is_lost(is_lost: bool) -> None:
    async def story() -> None:
        async with memory_stage() as one, standing_by(one) as stage:
            one.bus.drops = lambda key: is_lost and key == one.keys.conductor
            await one.conductor.__aexit__(None)
            fate = "the conductor is LOST" if is_lost else "the conductor has ended"
            await one.until(lambda: fate in stage.other_conductor, 2.0)
            one.bus.drops = lambda _: False
            began = await stage.wait_for_takeover()
            assert began is not None
            assert began.other_has_ended is not is_lost

    virtual.run(story())


def test_a_superseded_show_ends_and_does_not_stop_the_robots_of_the_other_conductor() -> None:
    async def story() -> None:
        for waits in (False, True):
            async with cue_run("two") as run:
                await run.until_moving()
                if waits:
                    run.one.stage.back()
                    await run.until_state(CueState.WAITING, "two")
                other = ConductorState("another", 1, term=9)
                run.one.bus.publish(run.one.keys.conductor, other.encode())
                with pytest.raises(SupersededError, match="another conductor has taken over"):
                    await asyncio.wait_for(run.task, 60.0)
                assert [each.reason for each in run.interruptions] == ["ended by BACK"] * waits
                assert run.one.agent.session.phase is AgentPhase.IDLE
                assert run.one.conductor.active_stop is None
                with pytest.raises(SupersededError):
                    run.one.stage.go()
                with pytest.raises(SupersededError):
                    await run.one.conductor.wait_for_agents(("ann",), 1.0)

    virtual.run(story())


def test_a_conductor_answers_only_the_agents_that_obey_it_with_its_clock() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            epoch = one.conductor.session.current.epoch
            assert await one.bus.ask(one.keys.clock, 1.0, epoch.encode())
            with pytest.raises(LinkError):
                await one.bus.ask(one.keys.clock, 1.0, b"another")

    virtual.run(story())


def test_after_a_takeover_a_missing_robot_can_be_muted_and_the_show_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story() -> None:
        async with memory_stage() as one:
            how = _ShowRun(
                Path("a"), Path(), Path(), False, "", True, tmp_path / "r.json", True, True, False
            )
            how._first, how._took_over = "three", True
            how._goes_on = True
            files = ShowFiles(tmp_path, Library(tmp_path))
            cast_of_two = Cast({"left": "ann", "right": "bob"})
            checked = two_roles()
            showing = asyncio.create_task(
                how.conduct(one.stage, checked, files, cast_of_two, 1.0, motion=True)
            )
            await one.until(lambda: one.stage.cues is not None)
            status = one.stage.cues
            assert status is not None
            assert (status.state, status.lamps["bob"]) == (CueState.WAITING, Lamp.LOST)
            one.stage.go()
            await asyncio.sleep(8.0)
            assert one.rig.world.state().phase is Phase.NONE, "a robot is missing"
            one.stage.mute("bob")
            one.stage.go()
            await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
            await showing
        assert "Not connected: bob" in capsys.readouterr().out

    virtual.run(story())


def test_a_takeover_names_the_robots_that_move_or_are_not_connected() -> None:
    agents = {name: AgentState(name, "e", 1, moving=name == "bob") for name in ("ann", "bob")}
    assert describe_rest(agents, alive=lambda _: True) == "STILL MOVING: bob"
    assert describe_rest(agents, alive=lambda name: name == "bob") == (
        "STILL MOVING: bob. NOT connected: ann"
    )
    assert describe_rest({"ann": agents["ann"]}, alive=lambda _: True) == "All robots are at rest"


def two_roles() -> CheckedShow:
    """A show of one section for two robots."""
    clips = (Clip("left", "bend"), Clip("right", "bend"))
    section = Section("three", Trigger(TriggerKind.AFTER), clips)
    scores = {("three", role): score(LEFT, "three") for role in ("left", "right")}
    return CheckedShow(Show("", (ShowRole("left"), ShowRole("right")), (section,)), scores, ())
