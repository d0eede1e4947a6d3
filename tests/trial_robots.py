"""Trials of simulated robots on every wire, in virtual time, for the tests of trials."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from rig import DDS_HZ, Pipe, free_domain
from rote.robot.message_robot import G1
from rote.robot.robot import Robot
from rote.session.rpc import PATIENT_S, ChannelTiming
from rote.sim.behaviour import LOGGED
from rote.sim.firmware import DEFAULT, Firmware
from rote.sim.profile_from_report import RobotProfile, profile_from_report
from rote.sim.quirks import QUIRKS, Quirk, Quirks
from rote.sim.server import Simulator
from rote.sim.services import Services
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport.link import Carrier
from rote.transport.services.client import ServicesClient
from rote.transport.tap import Tap
from rote.transport.webrtc.connection import ChannelConnection
from rote.trial.report import build_report
from rote.trial.runner import FAULT, TrialResult, run_trial
from rote.trial.steps import TrialLevel, TrialStep

PIPE_URL = "webrtc://192.0.2.7"
"""The services of a G1 through the event loop: all of WebRTC but its carrier."""
SLOW = Quirk(name="slow", group="joints", wires=("webrtc",), what="5 Hz", lowstate_hz=5.0)
"""Joints are told seldom: it costs the tests a tenth, and changes nothing that they look at."""


@dataclass
class Answers:
    """A person who answers as told, and remembers what was asked."""

    answers: dict[str, str] = field(default_factory=dict)
    begun: Callable[[TrialStep], None] = lambda _: None
    asked: list[TrialStep] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)

    async def ask(self, step: TrialStep) -> str:
        self.asked.append(step)
        return self.answers.get(step.id, "go")

    def begin(self, step: TrialStep) -> None:
        self.begun(step)

    def note(self, message: str) -> None:
        pass

    def end(self, step: TrialStep, result: str, note: str, seconds: float) -> None:
        assert FAULT not in note, note
        self.ended[step.id] = result


def firmware(*quirks: str | Quirk, **changes: Any) -> Firmware:
    """Return a firmware with quirks."""
    chosen = [QUIRKS[each] if isinstance(each, str) else each for each in quirks]
    return replace(DEFAULT, quirks=Quirks(chosen), **changes)


@asynccontextmanager
async def served(
    wire: str, world: World, lowstate_hz: float | None = None
) -> AsyncIterator[tuple[str, Any]]:
    """Serve a robot on a wire; yield its URL, and what connects where the URL does not."""
    simulator = Simulator(world)
    opener = None
    try:
        if wire == "udp":
            url = await simulator.serve_udp("127.0.0.1", 0)
        elif wire == "dds":
            door = await simulator.serve_dds("lo", free_domain(), lowstate_hz=lowstate_hz or DDS_HZ)
            url = door.url
        elif wire == "webrtc":
            url = (await simulator.serve_webrtc("127.0.0.1", 0)).url
        else:
            url, opener = PIPE_URL, by_pipe(world)
        yield url, opener
    finally:
        await simulator.close()


def by_pipe(world: World, pipe: Callable[[Services], Pipe] = Pipe) -> Any:
    services = Services(world)

    @asynccontextmanager
    async def opener(tap: Tap) -> AsyncIterator[Robot]:
        async def dial() -> Carrier:
            return pipe(services)

        timing = ChannelTiming(connect_s=5.0, answer_s=PATIENT_S)
        client = ServicesClient(
            PIPE_URL, ChannelConnection(tap.tap_carrier(dial), timing), reconnect=False
        )
        await client.open()
        tap.client = client
        tap.begin_stage("connected")
        try:
            yield G1(client)
        finally:
            await client.close()

    return opener


async def tried(
    wire: str,
    world: World,
    level: TrialLevel,
    guide: Answers | None = None,
    lowstate_hz: float | None = None,
) -> TrialResult:
    """Try a robot on a wire."""
    async with served(wire, world, lowstate_hz) as (url, opener):
        return await run_trial(url, level, guide or Answers(), opener=opener)


def made_like(report: dict[str, Any], seed: int = 5) -> tuple[World, RobotProfile]:
    """Return a simulated robot like that of a report."""
    like = profile_from_report(report["robot"])
    world = World(
        Store(":memory:"), build=like.build, mode=like.mode, firmware=like.firmware, seed=seed
    )
    return world, like


async def twice(
    wire: str, first: Firmware, level: TrialLevel
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Try a robot, then one that was made like it; return both reports."""
    world = World(Store(":memory:"), firmware=first)
    report = build_report(await tried(wire, world, level))
    second, like = made_like(report)
    again = await tried(wire, second, level, lowstate_hz=like.lowstate_hz)
    assert not second.body.soft
    return report, build_report(again)


INVENTED: dict[str, Firmware] = {
    "few slots and no times": firmware("20-slots", "list-null-time", SLOW, slots=35),
    "entries without names, states once a second": firmware("list-no-name", "lowstate-1hz"),
    "late": firmware("late-answers", SLOW),
    "talkative": firmware("unknown-messages", "code-text", "mode-text", SLOW),
    "forgets early, returns slowly, keeps what lapsed": firmware(
        SLOW,
        behaviour=replace(LOGGED, lapse_s=4.0, release_s=6.0, lapse_keeps=True, lists_late=False),
    ),
    "short names, other codes, no pause": firmware(
        SLOW,
        longest_name=20,
        codes={("arm/7108", 7402): 7999, ("arm/7108", 7400): 7301, ("arm/7111", 0): 3203},
        behaviour=replace(LOGGED, overwrites=False),
    ),
    "one list of names": firmware("list-names-only", "arm-state-number", "nul", SLOW),
}
"""Firmwares that nobody has, each odd in several ways."""


async def let_go(seconds: float) -> None:
    await asyncio.sleep(seconds)
