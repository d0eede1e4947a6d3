"""A demo stage of simulated robots on this computer: processes, a show, and a report."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from rote.errors import LinkError
from rote.model.g1 import G1_29
from rote.motion.track import Track
from rote.platform.system import free_port
from rote.session.stage_events import ConductorEvent, SectionCommitted
from rote.sim.hands import ScriptedHand
from rote.stage.conductor import SectionError, StopAnswer
from rote.stage.report import ShowReport
from rote.stage.show.check import CheckedShow, check_show
from rote.stage.show.file import Cast, Show, from_data
from rote.stage.stage import Stage, open_stage

GATHER_S = 60.0
LIGHT_FROM = 51
"""From this number of robots on, they have no body: see `light_agents`."""
_LIGHT_PER_PROCESS = 25
_PARTS = 12
"""Number of different parts in the show of light robots; more robots repeat them."""
_LIGHT_TAKE_S = 1.5
RATE_HZ = 100.0
_MOTIONS = ("wave", "bow", "drum")
_TAKE_S = 4.0
_HAND_RAMP_S = 0.9
"""Duration of the moves with which a scripted hand begins and ends; they are left out."""
_IN_MOTION_S = 1.0
"""Time from the start of the last section until all robots are stopped, in seconds."""


def demo_take(name: str, seconds: float = _TAKE_S) -> Track:
    """Return a motion of the demo's show: that of a scripted hand."""
    hand = ScriptedHand(name, seconds + 2 * _HAND_RAMP_S)
    times_s = np.arange(0.0, seconds, 1 / RATE_HZ)
    poses = np.array([hand.pose(_HAND_RAMP_S + time_s) for time_s in times_s])
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

    motion_count = len(_MOTIONS)
    together = clips(lambda number: _MOTIONS[number % motion_count], lambda _: 0.0)
    canon = clips(lambda _: "wave", lambda number: 0.25 * number)
    stopped = clips(lambda number: _MOTIONS[(number + 1) % motion_count], lambda _: 0.0)
    return from_data(
        {
            "rote_show": 1,
            "title": "Demo",
            "roles": {name: {} for name in names},
            "sections": [
                {"name": "together", "clips": together},
                {"name": "canon", "start": {"on": "after"}, "clips": canon},
                {"name": "stopped", "start": {"on": "after"}, "clips": stopped},
            ],
        }
    )


def check_demo(show: Show) -> CheckedShow:
    """Check the demo's show."""
    return check_show(show, demo_take, _measure_no_sound)


def check_light_demo(names: Sequence[str]) -> CheckedShow:
    """Check the show for many robots without bodies; their takes are shorter.

    Only the parts of the first `_PARTS` robots are checked, because checking takes long; the other
    robots repeat them in turn.
    """
    checked_names = names[:_PARTS]
    checked = check_show(
        demo_show(checked_names), lambda name: demo_take(name, _LIGHT_TAKE_S), _measure_no_sound
    )
    scores = {
        (section.name, name): checked.scores[
            section.name, checked_names[number % len(checked_names)]
        ]
        for section in checked.show.sections
        for number, name in enumerate(names)
    }
    roles = demo_show(names).roles
    return replace(checked, show=replace(checked.show, roles=roles), scores=scores)


def _measure_no_sound(_name: str) -> float:
    """Return 0 s as the length of a sound: the demo plays none."""
    return 0.0


@asynccontextmanager
async def simulated_stage(robots: int) -> AsyncIterator[tuple[Stage, tuple[str, ...]]]:
    """Open a stage with `robots` simulated robots, each in a process of its own.

    From `LIGHT_FROM` robots on they have no body, and many share a process.
    """
    endpoint = f"127.0.0.1:{free_port()}"
    names = tuple(f"robot{number}" for number in range(1, robots + 1))
    async with open_stage(endpoint=endpoint) as stage:
        if robots < LIGHT_FROM:
            agents = [_start_agent(name, endpoint) for name in names]
        else:
            agents = [
                _start_light_agents(names[first : first + _LIGHT_PER_PROCESS], endpoint)
                for first in range(0, robots, _LIGHT_PER_PROCESS)
            ]
        try:
            if missing := await stage.conductor.wait_for_agents(names, GATHER_S):
                raise LinkError(
                    f"these simulated robots did not connect: {', '.join(missing)}",
                    "Try fewer robots.",
                )
            yield stage, names
        finally:
            await asyncio.to_thread(_end_agents, agents)


def _start_agent(name: str, endpoint: str) -> "subprocess.Popen[bytes]":
    return _start_module("rote", "agent", "sim://g1", "--name", name, "--at", endpoint)


def _start_light_agents(names: Sequence[str], endpoint: str) -> "subprocess.Popen[bytes]":
    return _start_module("rote.stage.light_agents", endpoint, *names)


def _start_module(*arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", *arguments]
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


async def run_demo(robots: int, notify: Callable[[str], None]) -> ShowReport:
    """Play the demo's show on simulated robots, stop the last section, and report."""
    light = " without bodies" if robots >= LIGHT_FROM else ""
    notify(f"starting {robots} simulated robots{light}, each with its agent")
    async with simulated_stage(robots) as (stage, names):
        return await play_demo(stage, names, notify)


async def play_demo(
    stage: Stage, names: Sequence[str], notify: Callable[[str], None]
) -> ShowReport:
    """Play the demo's show with these robots of a stage, stop the last section, and report.

    Raises `SectionError` if a section does not begin.
    """
    notify("checking the show")
    if len(names) < LIGHT_FROM:
        checked = await asyncio.to_thread(check_demo, demo_show(names))
    else:
        checked = await asyncio.to_thread(check_light_demo, names)
    checked.require()
    show = checked.show
    cast = Cast({name: name for name in names})
    report = ShowReport()
    stopping: asyncio.Task[StopAnswer] | None = None
    stopped = asyncio.Event()
    notify(f"section {show.sections[0].name!r}: all begin together")
    try:
        async for section in stage.sections(checked, cast, automatic=True):
            report.sections.append(section)
            if len(report.sections) == 1:
                notify(f"section {show.sections[1].name!r}: one after the other")
            elif len(report.sections) == 2:
                notify(f"section {show.sections[2].name!r}: STOP in the middle of it")
                stopping = asyncio.create_task(_stop_in_motion(stage, stopped))
    except SectionError as error:
        if not stopped.is_set():  # the section failed by itself, not because of our stop
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


async def _stop_in_motion(stage: Stage, stopped: asyncio.Event) -> StopAnswer:
    """Stop all robots shortly after the next section has begun; `stopped` is set just before."""
    loop = asyncio.get_running_loop()
    committed: asyncio.Future[float] = loop.create_future()

    def handle_event(event: ConductorEvent) -> None:
        if isinstance(event, SectionCommitted) and not committed.done():
            committed.set_result(event.start_s)

    remove_listener = stage.conductor.on_event(handle_event)
    try:
        start_s = await committed
    finally:
        remove_listener()
    await asyncio.sleep(start_s + _IN_MOTION_S - loop.time())
    stopped.set()
    return await stage.stop("the demo")
