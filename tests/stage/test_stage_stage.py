"""Simulated robots as processes: they begin together, stop together, and are missed when lost."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import virtual
from rote.cli import main
from rote.model.g1 import G1_29
from rote.motion.track import Track
from rote.session.stage_agent import AgentPhase
from rote.session.stage_events import AgentFound, AgentLost, ConductorEvent
from rote.stage.agent import Agent
from rote.stage.conductor import Conductor, SectionError
from rote.stage.demo import check_demo, demo_show, simulated_stage
from rote.stage.light_agents import LightRobot
from rote.stage.show.file import Cast, Section
from rote.stage.stage import TRY_STAGE
from rote.transport.zenoh.bus import StageBus
from stage.test_stage_agent import LEFT, score
from stage_memory import TableBus

pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run `rote` in this process; return its exit code and what it printed."""
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def nod(name: str) -> Track:
    """Return a short motion near rest, so that the way to it and back takes no time."""
    times_s = np.arange(0.0, 1.5, 0.01)
    poses = np.tile(G1_29.rest_rad, (len(times_s), 1))
    poses[:, G1_29.names.index("left_elbow_joint")] -= 0.3 * np.sin(np.pi * times_s / 1.5)
    return Track(
        times_s=times_s, joints_rad=poses, names=G1_29.names, variant=G1_29.name, source=name
    )


def test_the_demo_plays_together_stops_all_and_says_how_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rote.stage.demo.demo_take", nod)
    code, out, err = ask(capsys, "stage", "demo", "--robots", "2", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["robots"] == 2
    assert [section["name"] for section in report["sections"]] == ["together", "canon"]
    for section in report["sections"]:
        assert section["skew_ms"]["p50"] <= section["skew_ms"]["max"] < 500
        assert all(robot["completed"] for robot in section["robots"].values())
    assert report["stopped_within_ms"] < 1000
    assert report["unconfirmed"] == []


@pytest.mark.soak
def test_two_hundred_robots_without_bodies_play_the_demo_and_confirm_its_stop(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = ask(capsys, "stage", "demo", "--robots", "200", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert [section["name"] for section in report["sections"]] == ["together", "canon"]
    for section in report["sections"]:
        assert len(section["robots"]) == 200
        assert all(robot["completed"] for robot in section["robots"].values())
    assert report["unconfirmed"] == []


def test_a_robot_without_a_body_takes_its_time_for_a_motion_and_stops_at_once() -> None:
    async def story() -> None:
        bus = cast("StageBus", TableBus())
        async with Conductor(bus, TRY_STAGE) as conductor:
            agent = Agent(bus, LightRobot("ann"), "ann", TRY_STAGE)
            task = asyncio.create_task(agent.run())
            try:
                assert await conductor.wait_for_agents(("ann",), 30.0) == ()
                section, parts = Section("one"), {"ann": score(LEFT, "one")}
                report = (await conductor.play(section, parts)).reports["ann"]
                assert report is not None
                assert report.completed
                assert report.skew_s == pytest.approx(0.0, abs=0.01)
                playing = asyncio.create_task(conductor.play(section, parts))
                while agent.session.phase is not AgentPhase.RUNNING:
                    await asyncio.sleep(0.01)
                assert (await conductor.stop("a test")).unconfirmed == ()
                with pytest.raises(SectionError, match="stopped by a test"):
                    await playing
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    virtual.run(story())


def test_a_killed_agent_is_missed_at_once_and_a_frozen_one_soon() -> None:
    async def story() -> None:
        async with simulated_stage(2) as (stage, names):
            lost = asyncio.Queue[str]()

            def look(event: ConductorEvent) -> None:
                if isinstance(event, AgentLost):
                    lost.put_nowait(event.name)

            stage.conductor.on_event(look)
            pids = {name: _pid_of(name) for name in names}
            os.kill(pids["robot1"], signal.SIGKILL)
            assert await asyncio.wait_for(lost.get(), 1.0) == "robot1"
            os.kill(pids["robot2"], signal.SIGSTOP)
            try:
                assert await asyncio.wait_for(lost.get(), 5.0) == "robot2"
                show = demo_show(names)
                checked = await asyncio.to_thread(check_demo, show)
                with pytest.raises(SectionError, match="not all robots are connected"):
                    await stage.play(checked, Cast({n: n for n in names}), automatic=True)
                found = asyncio.Event()
                stage.conductor.on_event(
                    lambda event: found.set() if event == AgentFound("robot2") else None
                )
            finally:
                os.kill(pids["robot2"], signal.SIGCONT)
            await asyncio.wait_for(found.wait(), 10.0)

    asyncio.run(story())


def _pid_of(name: str) -> int:
    """Return the process of an agent that this test has started."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == os.getpid() and b"agent" in words and name.encode() in words:
                return int(folder.name)
    raise AssertionError(f"no process of {name}")


SHOW = {
    "rote_show": 1,
    "roles": {"left": {}},
    "sections": [{"name": "hello", "clips": [{"role": "left", "take": "gone"}]}],
}


def test_a_show_with_a_missing_take_is_refused_with_its_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "show.json").write_text(json.dumps(SHOW))
    code, out, _ = ask(capsys, "show", "check", str(tmp_path / "show.json"), "--json")
    assert code == 1
    report = json.loads(out)
    assert report["ok"] is False
    assert (report["findings"][0]["section"], report["findings"][0]["role"]) == ("hello", "left")
    assert "gone" in report["findings"][0]["message"]


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = ask(capsys, "show", "schema")
    assert json.loads(out)["properties"]["rote_show"]["const"] == 1


def test_an_agent_without_an_invitation_is_refused_in_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, err = ask(capsys, "agent", "sim://g1")
    assert code == 2
    assert "--join" in err
    code, _, err = ask(capsys, "stage", "invite", "ann", "--stage", str(tmp_path))
    assert code == 2
    assert "not a stage folder" in err
    assert not list(tmp_path.iterdir())
