"""A demo stage of simulated robots on this computer: processes, a show, and a report."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np

from rote.errors import LinkError
from rote.model.g1 import G1_29
from rote.motion.track import Track
from rote.platform.system import free_port
from rote.session.stage_conductor import ConductorEvent, SectionCommitted
from rote.sim.hands import ScriptedHand
from rote.stage.conductor import SectionError, StopAnswer
from rote.stage.report import ShowReport
from rote.stage.show.check import CheckedShow, check_show
from rote.stage.show.file import Cast, Show, from_data
from rote.stage.stage import Stage, open_stage

GATHER_S = 60.0
RATE_HZ = 100.0
_MOTIONS = ("wave", "bow", "drum")
_TAKE_S = 4.0
_IN_MOTION_S = 1.0
"""Time from the start of the last section until all robots are stopped, in seconds."""


def demo_take(name: str) -> Track:
    """Return a motion of the demo's show: that of a scripted hand, from its first pose on."""
    hand = ScriptedHand(name, _TAKE_S + 1.8)
    times_s = np.arange(0.0, _TAKE_S, 1 / RATE_HZ)
    poses = np.array([hand.pose(0.9 + time_s) for time_s in times_s])
    return Track(
        times_s=times_s, joints_rad=poses, names=G1_29.names, variant=G1_29.name, source=name
    )


def demo_show(names: Sequence[str]) -> Show:
    """Return a show for these roles: all together, then one after the other."""

    def clips(motion: Callable[[int], str], at_s: Callable[[int], float]) -> list[dict[str, Any]]:
        return [
            {"role": name, "take": motion(number), "at_s": at_s(number)}
            for number, name in enumerate(names)
        ]

    many = len(_MOTIONS)
    together = clips(lambda number: _MOTIONS[number % many], lambda _: 0.0)
    canon = clips(lambda _: "wave", lambda number: 0.25 * number)
    stopped = clips(lambda number: _MOTIONS[(number + 1) % many], lambda _: 0.0)
    return from_data(
        {
            "rote_show": 1,
            "title": "A try",
            "roles": {name: {} for name in names},
            "sections": [
                {"name": "together", "clips": together},
                {"name": "canon", "start": {"on": "after"}, "clips": canon},
                {"name": "stopped", "start": {"on": "after"}, "clips": stopped},
            ],
        }
    )


def check_demo(show: Show) -> CheckedShow:
    """Return the demo's show, checked."""
    return check_show(show, demo_take, lambda _name: 0.0)


@asynccontextmanager
async def simulated_stage(robots: int) -> AsyncIterator[tuple[Stage, tuple[str, ...]]]:
    """Open a stage with `robots` simulated robots, each in a process of its own."""
    endpoint = f"127.0.0.1:{free_port()}"
    names = tuple(f"robot{number}" for number in range(1, robots + 1))
    async with open_stage(endpoint=endpoint) as opened:
        agents = [_start_agent(name, endpoint) for name in names]
        try:
            if missing := await opened.conductor.wait_for_agents(names, GATHER_S):
                raise LinkError(
                    f"these simulated robots did not connect: {', '.join(missing)}",
                    "Try fewer robots.",
                )
            yield opened, names
        finally:
            await asyncio.to_thread(_end_agents, agents)


def _start_agent(name: str, endpoint: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "rote", "agent", "sim://g1", "--name", name, "--at", endpoint]
    return subprocess.Popen(  # noqa: S603 - ourselves
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
    )


def _end_agents(agents: "list[subprocess.Popen[bytes]]") -> None:
    for agent in agents:
        agent.terminate()
    for agent in agents:
        try:
            agent.wait(5.0)
        except subprocess.TimeoutExpired:
            agent.kill()
            agent.wait()


async def run_demo(robots: int, tell: Callable[[str], None]) -> ShowReport:
    """Play the demo's show on simulated robots, stop the last section, and report."""
    tell(f"starting {robots} simulated robots, each with its agent")
    async with simulated_stage(robots) as (opened, names):
        return await play_demo(opened, names, tell)


async def play_demo(opened: Stage, names: Sequence[str], tell: Callable[[str], None]) -> ShowReport:
    """Play the demo's show with these robots of a stage, stop the last section, and report.

    Raises `SectionError` if a section does not begin.
    """
    tell("checking the show")
    show = demo_show(names)
    checked = await asyncio.to_thread(check_demo, show)
    checked.require()
    cast = Cast({name: name for name in names})
    report = ShowReport()
    stopping: asyncio.Task[StopAnswer] | None = None
    stopped = asyncio.Event()
    tell(f"section {show.sections[0].name!r}: all begin together")
    try:
        async for section in opened.sections(checked, cast, automatic=True):
            report.sections.append(section)
            if len(report.sections) == 1:
                tell(f"section {show.sections[1].name!r}: one after the other")
            elif len(report.sections) == 2:
                tell(f"section {show.sections[2].name!r}: STOP in the middle of it")
                stopping = asyncio.create_task(_stop_in_motion(opened, stopped))
    except SectionError as error:
        if not stopped.is_set():  # it ended by itself, and there is nothing to stop
            raise
        report.ended, report.lost = str(error), error.lost
    finally:
        if stopping is not None and not stopped.is_set():
            stopping.cancel()
    assert stopping is not None
    answer = await stopping
    report.stopped_within_s = answer.confirmed_s
    report.unconfirmed = answer.unconfirmed
    return report


async def _stop_in_motion(opened: Stage, stopped: asyncio.Event) -> StopAnswer:
    """Stop all robots shortly after the next section has begun; `stopped` is set just before."""
    loop = asyncio.get_running_loop()
    committed: asyncio.Future[float] = loop.create_future()

    def handle_event(event: ConductorEvent) -> None:
        if isinstance(event, SectionCommitted) and not committed.done():
            committed.set_result(event.start_s)

    remove_listener = opened.conductor.on_event(handle_event)
    try:
        start_s = await committed
    finally:
        remove_listener()
    await asyncio.sleep(start_s + _IN_MOTION_S - loop.time())
    stopped.set()
    return await opened.stop("the demo")
