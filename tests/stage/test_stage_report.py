"""What the report of a show says, however the show ends; in virtual time."""

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import virtual
from rote.cli import main
from rote.cli.show import _ShowRun
from rote.errors import BadRequestError
from rote.messages import Phase
from rote.motion.files.library import Library
from rote.session.stage_events import ConductorEvent, SectionEnded
from rote.stage.conductor import SectionError, StopAnswer
from rote.stage.show.check import CheckedShow
from rote.stage.show.file import Cast, Clip, Section, Show, ShowRole
from rote.stage.show_files import ShowFiles
from stage.test_stage_agent import LEFT, full_disk, score
from stage_memory import MemoryStage, memory_stage


def one_section() -> CheckedShow:
    section = Section("one", clips=(Clip("left", "bend"),))
    show = Show("", (ShowRole("left"),), (section,))
    return CheckedShow(show, {("one", "left"): score(LEFT, "one")}, ())


def begin(
    one: MemoryStage, file: Path, *, as_json: bool = False, robot: str = "ann"
) -> "asyncio.Task[int]":
    """Run a show of one section as `rote show run --automatic --overwrite` does."""
    how = _ShowRun(Path("a.json"), Path(), Path(), True, "", True, file, True, True, as_json)
    files = ShowFiles(file.parent, Library(file.parent))
    cast = Cast({"left": robot})
    return asyncio.create_task(how.conduct(one.stage, one_section(), files, cast, 1.0, motion=True))


async def until_playing(one: MemoryStage) -> None:
    await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)


async def begin_and_play(one: MemoryStage, file: Path) -> "asyncio.Task[int]":
    showing = begin(one, file)
    await until_playing(one)
    return showing


def read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def break_stop(one: MemoryStage) -> None:
    """Let the robot refuse to stop from now on."""

    async def failing() -> None:
        raise ValueError("the driver is out of order")

    one.robot.stop = failing  # type: ignore[method-assign]


def test_a_report_is_that_of_this_run_from_its_beginning_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"sections": [], "ended": "of last week"}))

    async def story() -> None:
        async with memory_stage() as one:
            showing = await begin_and_play(one, file)
            # A conductor that is killed now leaves this.
            found = read(file)
            assert (found["over"], found["playing"], found["ended"]) == (False, "one", "")
            assert main(["show", "report", str(file)]) == 0
            told = capsys.readouterr().out
            assert f"a.json: run {found['run'][:8]}, begun at {found['began']}" in told
            assert "in the section 'one': the show is still running, or its conductor" in told
            assert await showing == 0
            again = read(file)
            assert (again["run"], again["over"], again["playing"]) == (found["run"], True, "")
            assert [each["name"] for each in again["sections"]] == ["one"]
            assert await begin(one, file) == 0
            assert read(file)["run"] != found["run"]

    virtual.run(story())


def test_a_show_that_waits_for_a_robot_in_vain_has_a_report_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"sections": [], "run": "of last week"}))

    async def story() -> None:
        async with memory_stage() as one:
            showing = begin(one, file, robot="bob")
            await asyncio.sleep(10.0)
            run = read(file)["run"]
            assert (run != "of last week", read(file)["over"]) == (True, False)
            with pytest.raises(SectionError, match="bob"):
                await showing
            found = read(file)
            assert (found["run"], found["over"]) == (run, True)
            assert "not all robots are connected" in found["ended"]

    virtual.run(story())


@pytest.mark.parametrize("as_json", [False, True])
def test_a_stop_that_was_not_confirmed_is_in_the_report_whoever_asked_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    file = tmp_path / "report.json"

    async def story() -> None:
        async with memory_stage() as one:
            showing = begin(one, file, as_json=as_json)
            await until_playing(one)
            stop = one.robot.stop
            break_stop(one)
            asking = asyncio.create_task(one.stage.stop("OSC"))
            await one.until(lambda: read(file)["stopped_by"], 0.5)
            assert read(file)["unconfirmed"] == ["ann"], "nothing is confirmed so far"
            if as_json:
                assert await showing == SectionError.exit_code
            else:
                with pytest.raises(SectionError, match="OSC"):
                    await showing
            assert (await asking).unconfirmed == ("ann",)
            found = read(file)
            assert (found["over"], found["stopped_by"]) == (True, "OSC")
            assert (found["unconfirmed"], found["stopped_within_ms"]) == (["ann"], None)
            assert "stopped by OSC" in found["ended"]
            one.robot.stop = stop  # type: ignore[method-assign]
            await one.until(lambda: one.conductor.session.stops.confirmed_s is not None)

    virtual.run(story())
    said = capsys.readouterr()
    if as_json:
        assert json.loads(said.out)["unconfirmed"] == ["ann"]
    else:
        assert "STOP was not confirmed by ann: use the remote!" in said.out
    assert main(["show", "report", str(file)]) == 0
    assert "STOP was not confirmed by ann: use the remote!" in capsys.readouterr().out


def test_a_report_waits_for_the_confirmations_of_a_stop(tmp_path: Path) -> None:
    file = tmp_path / "report.json"

    async def story() -> None:
        async with memory_stage() as one:
            showing = await begin_and_play(one, file)
            asking = asyncio.create_task(one.stage.stop("OSC"))
            with pytest.raises(SectionError, match="OSC"):
                await showing
            answer = await asking
            assert answer.confirmed_s is not None
            found = read(file)
            assert found["stopped_within_ms"] == pytest.approx(1000 * answer.confirmed_s, abs=0.1)
            assert found["unconfirmed"] == []

    virtual.run(story())


def test_a_show_that_is_interrupted_stops_all_robots_and_its_report_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"

    async def story() -> None:
        async with memory_stage() as one:
            showing = await begin_and_play(one, file)
            showing.cancel()  # as Ctrl-C does
            with pytest.raises(asyncio.CancelledError):
                await showing
            assert one.rig.world.state().phase in (Phase.RETURN, Phase.NONE)

    virtual.run(story())
    found = read(file)
    assert (found["over"], found["playing"], found["unconfirmed"]) == (True, "one", [])
    assert found["ended"] == "stopped by the conductor's keyboard"
    assert found["stopped_within_ms"] < 500
    assert "STOP was confirmed by all within" in capsys.readouterr().out


def test_a_robot_that_did_not_complete_a_section_is_named_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"

    async def story() -> None:
        async with memory_stage() as one, one.rig.bystander() as other:
            showing = await begin_and_play(one, file)
            await other.stop()
            assert await showing == SectionError.exit_code

    virtual.run(story())
    section = read(file)["sections"][0]
    assert section["incomplete"] == ["ann"]
    assert "stopped" in section["faults"]["ann"]
    told = f"  ann: did not complete it: {section['faults']['ann']}\n"
    assert told in capsys.readouterr().out
    assert main(["show", "report", str(file)]) == 0
    assert told in capsys.readouterr().out


def test_a_report_names_an_agent_that_was_ended_in_the_middle(tmp_path: Path) -> None:
    file = tmp_path / "report.json"

    async def story() -> None:
        async with memory_stage() as one:
            showing = await begin_and_play(one, file)
            one.running.cancel()  # as Ctrl-C does
            assert await showing == SectionError.exit_code

    virtual.run(story())
    assert read(file)["sections"][0]["faults"] == {"ann": "its agent was ended"}


def test_an_error_of_the_program_is_in_the_report(tmp_path: Path) -> None:
    file = tmp_path / "report.json"

    async def story() -> None:
        async with memory_stage() as one:

            async def broken(*_: object) -> None:
                raise RuntimeError("out of order")

            one.conductor.play = broken  # type: ignore[assignment, method-assign]
            with pytest.raises(RuntimeError):
                await begin(one, file)

    virtual.run(story())
    found = read(file)
    assert found["over"]
    assert "RuntimeError('out of order')" in found["ended"]
    assert found["stopped_by"] == "an error of the conductor"


class ClosedOutput(io.StringIO):
    """A pipe whose reader is gone."""

    def write(self, text: str, /) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_closed_output_neither_stops_a_show_nor_changes_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool, is_stopped: bool
) -> None:
    file = tmp_path / "report.json"

    async def story() -> None:
        async with memory_stage() as one, one.rig.bystander() as other:
            monkeypatch.setattr(sys, "stdout", ClosedOutput())
            showing = begin(one, file, as_json=as_json)
            await until_playing(one)
            if is_stopped:
                await other.stop()
            assert await showing == (SectionError.exit_code if is_stopped else 0)

    virtual.run(story())
    found = read(file)
    assert (found["over"], found["ended"], found["stopped_by"]) == (True, "", "")


def test_a_conductor_that_was_held_up_does_not_report_its_agents_as_lost(tmp_path: Path) -> None:
    file = tmp_path / "report.json"

    async def story() -> None:
        async with memory_stage() as one:
            conductor, showing = one.conductor, begin(one, file)
            await until_playing(one)
            for task in conductor._tasks:
                task.cancel()  # as if its process were stopped
            await asyncio.sleep(3.0)
            assert one.agent.session.run is None
            one.bus.end_session(one.keys.token("ann"))
            states = one.bus.collect(one.keys.state("*"))
            conductor._tasks = [
                asyncio.create_task(conductor._receive_states(states)),
                asyncio.create_task(conductor._publish_periodically()),
            ]
            with pytest.raises(SectionError, match=r"the conductor stalled for 3\.\d s"):
                await showing

    virtual.run(story())
    found = read(file)
    assert (found["over"], found["lost"], found["stopped_by"]) == (True, [], "")


def test_a_stop_at_the_very_end_that_is_not_confirmed_is_in_the_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "report.json"

    async def story() -> None:
        async with memory_stage() as one:
            stop, asked = one.robot.stop, list["asyncio.Task[StopAnswer]"]()

            def look(event: ConductorEvent) -> None:
                if isinstance(event, SectionEnded):
                    break_stop(one)
                    asked.append(asyncio.create_task(one.stage.stop("OSC")))

            one.conductor.on_event(look)
            assert await begin(one, file) == SectionError.exit_code
            assert (await asked[0]).unconfirmed == ("ann",)
            one.robot.stop = stop  # type: ignore[method-assign]
            await one.until(lambda: one.conductor.session.stops.confirmed_s is not None)

    virtual.run(story())
    assert read(file)["unconfirmed"] == ["ann"]


def test_a_disk_that_fills_up_stops_no_show_and_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"

    async def story() -> None:
        async with memory_stage() as one:
            showing = await begin_and_play(one, file)
            with full_disk():
                assert await showing == SectionError.exit_code, "its report is not complete"

    virtual.run(story())
    said = capsys.readouterr().out
    assert said.count("the report of this show cannot be saved") == 1
    assert "one: played by 1 robots" in said
    assert not read(file)["over"]
    assert list(tmp_path.iterdir()) == [file]


def test_a_show_does_not_begin_where_its_report_cannot_be_written(tmp_path: Path) -> None:
    async def story() -> None:
        async with memory_stage() as one:
            with full_disk(), pytest.raises(BadRequestError, match=r"report\.json cannot be"):
                await begin(one, tmp_path / "report.json")
            assert one.rig.world.state().phase is Phase.NONE

    virtual.run(story())


def test_a_stop_while_the_robots_are_awaited_lets_nothing_begin_even_if_it_is_reset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with memory_stage() as one:

            async def stop_and_reset(*_: object) -> None:
                await one.stage.stop("a test")
                one.stage.reset()

            monkeypatch.setattr(_ShowRun, "_wait_for_robots", stop_and_reset)
            with pytest.raises(SectionError, match="stopped before it began"):
                await begin(one, tmp_path / "report.json")
            await asyncio.sleep(8.0)
            assert one.rig.world.state().phase is Phase.NONE

    virtual.run(story())
