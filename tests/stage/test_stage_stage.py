"""Simulated robots as processes: they begin together, stop together, and are missed when lost."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rote.session.stage_conductor import AgentFound, AgentLost, ConductorEvent
from rote.stage.conductor import SectionError
from rote.stage.demo import check_demo, demo_show, simulated_stage
from rote.stage.show.file import Cast

pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")


def rote(*arguments: str, home: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "rote", *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env=os.environ | {"ROTE_HOME": str(home)},
    )


def test_the_demo_plays_together_stops_all_and_says_how_well(tmp_path: Path) -> None:
    done = rote("stage", "demo", "--robots", "2", "--json", home=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["robots"] == 2
    assert [section["name"] for section in report["sections"]] == ["together", "canon"]
    for section in report["sections"]:
        assert section["skew_ms"]["p50"] <= section["skew_ms"]["max"] < 500
        assert all(robot["completed"] for robot in section["robots"].values())
    assert report["stopped_within_ms"] < 1000
    assert report["unconfirmed"] == []


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


def test_a_show_with_a_missing_take_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "show.json").write_text(json.dumps(SHOW))
    done = rote("show", "check", str(tmp_path / "show.json"), "--json", home=tmp_path)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["ok"] is False
    assert (report["findings"][0]["section"], report["findings"][0]["role"]) == ("hello", "left")
    assert "gone" in report["findings"][0]["message"]


def test_the_schema_is_printed(tmp_path: Path) -> None:
    done = rote("show", "schema", home=tmp_path)
    assert json.loads(done.stdout)["properties"]["rote_show"]["const"] == 1


def test_an_agent_without_an_invitation_is_refused_in_words(tmp_path: Path) -> None:
    done = rote("agent", "sim://g1", home=tmp_path)
    assert done.returncode == 2
    assert "--join" in done.stderr
    done = rote("stage", "invite", "ann", "--stage", str(tmp_path), home=tmp_path)
    assert done.returncode == 2
    assert "not a stage folder" in done.stderr
    assert not list(tmp_path.iterdir())
