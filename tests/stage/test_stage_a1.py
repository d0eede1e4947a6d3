"""A1s on a stage: they begin together and stop, and what an A1 cannot play is refused."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

import virtual
from a1_rig import pair
from forked import Rote
from rote.model.a1 import A1_BUILD
from rote.motion.track import Track
from rote.platform.system import free_port
from rote.robot.robot import Robot
from rote.session.a1 import Level
from rote.session.stage_events import SectionCommitted
from rote.stage.agent import Agent
from rote.stage.conductor import Conductor, SectionError
from rote.stage.demo import demo_take
from rote.stage.show.file import Section
from rote.stage.show.score import PlacedTrack, Score
from rote.stage.stage import open_stage
from stage_memory import TableBus

if TYPE_CHECKING:
    from rote.transport.zenoh.bus import StageBus

pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")

HUNG, STANDING, G1 = "sim://a1?level=low", "sim://a1", "sim://g1"


def swing(seconds: float) -> Score:
    times_s = np.arange(int(100 * seconds) + 1) / 100
    poses = np.tile(A1_BUILD.rest_rad, (len(times_s), 1))
    poses[:, 1] += 0.2 * np.sin(2 * np.pi * times_s / seconds)
    track = Track(
        times_s=times_s, joints_rad=poses, names=A1_BUILD.names, variant="a1", source="swing"
    )
    return Score("one", "", PlacedTrack(0.0, track))


WAVE = Score("one", "", PlacedTrack(0.0, demo_take("wave")))


def start(url: str, name: str, endpoint: str) -> Rote:
    return Rote("agent", url, "--name", name, "--at", endpoint, stdout=subprocess.DEVNULL)


@asynccontextmanager
async def gathered(robots: dict[str, str]) -> AsyncIterator[Conductor]:
    """Run `rote agent` for each of these robots, by its name."""
    endpoint = f"127.0.0.1:{free_port()}"
    async with open_stage(endpoint=endpoint) as opened:
        agents = [start(url, name, endpoint) for name, url in robots.items()]
        try:
            assert await opened.conductor.wait_for_agents(tuple(robots), 60.0) == ()
            yield opened.conductor
        finally:
            for agent in agents:
                agent.terminate()
            for agent in agents:
                await asyncio.to_thread(agent.wait, 20.0)


def test_what_an_a1_cannot_play_is_refused_in_words_before_anything_moves() -> None:
    async def main() -> None:
        async with gathered({"dog": HUNG, "walker": STANDING, "ann": G1}) as conductor:
            with pytest.raises(SectionError, match="level=low") as standing:
                await conductor.play(Section("one"), {"walker": swing(1.0), "ann": WAVE})
            assert standing.value.agents == ("walker",)
            with pytest.raises(SectionError, match="motion of a G1, but the robot is an A1"):
                await conductor.play(Section("two"), {"dog": WAVE})
            with pytest.raises(SectionError, match="motion of an A1, but the robot is a G1"):
                await conductor.play(Section("three"), {"ann": swing(1.0)})

    asyncio.run(main())


def fastest_rad_s(robot: Robot) -> float:
    assert robot.state is not None
    return max(map(abs, robot.state.velocities_rad_s))


def test_two_a1_begin_together_and_a_stop_keeps_them_where_they_are() -> None:
    async def main() -> None:
        loop, bus = asyncio.get_running_loop(), cast("StageBus", TableBus())
        async with (
            pair(Level.LOW, start="hung") as (_, _, dog),
            pair(Level.LOW, start="hung") as (_, _, cat),
            Conductor(bus, "try") as conductor,
        ):
            agents = [
                loop.create_task(Agent(bus, robot, name, "try").run())
                for name, robot in (("dog", dog), ("cat", cat))
            ]
            begun: list[float] = []
            conductor.on_event(
                lambda event: (
                    begun.append(event.start_s) if isinstance(event, SectionCommitted) else None
                )
            )
            assert await conductor.wait_for_agents(("dog", "cat"), 10.0) == ()
            both = {"dog": swing(1.5), "cat": swing(1.5)}
            playing = asyncio.ensure_future(conductor.play(Section("one"), both))
            while not begun or loop.time() < begun[-1] + 0.7:
                await asyncio.sleep(0.05)
            assert min(map(fastest_rad_s, (dog, cat))) > 0.05
            answer = await conductor.stop("the test")
            assert answer.unconfirmed == ()
            with pytest.raises(SectionError, match="stopped by the test"):
                await playing
            await asyncio.sleep(0.3)
            assert max(map(fastest_rad_s, (dog, cat))) < 0.05
            conductor.reset()
            await asyncio.sleep(0.2)
            short = {"dog": swing(0.4), "cat": swing(0.5)}
            played = await conductor.play(Section("two"), short)
            for report in played.reports.values():
                assert report is not None
                assert report.completed
                assert report.skew_s == pytest.approx(0.0, abs=0.01)
            for task in agents:
                task.cancel()
            await asyncio.gather(*agents, return_exceptions=True)

    virtual.run(main())


class FailingBus(TableBus):
    """One on which asking for a score fails in a way that nobody has foreseen."""

    async def ask(self, key: str, timeout_s: float, data: bytes = b"") -> bytes:
        raise SystemError(f"asking for {len(key)} letters fails, {timeout_s} {data!r}")


def test_an_agent_that_fails_in_an_unforeseen_way_says_so_and_keeps_nobody_waiting() -> None:
    async def main() -> None:
        loop, bus = asyncio.get_running_loop(), cast("StageBus", FailingBus())
        async with (
            pair(Level.LOW, start="hung") as (_, _, dog),
            Conductor(bus, "try") as conductor,
        ):
            agent = loop.create_task(Agent(bus, dog, "dog", "try").run())
            assert await conductor.wait_for_agents(("dog",), 10.0) == ()
            began_s = loop.time()
            with pytest.raises(SectionError, match="SystemError"):
                await conductor.play(Section("one"), {"dog": swing(1.0)})
            assert loop.time() - began_s < 1.0
            agent.cancel()
            await asyncio.gather(agent, return_exceptions=True)

    virtual.run(main())
