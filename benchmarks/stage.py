"""Claim: several robots begin together, and one stop reaches all of them at once.

Agents are processes; robots that only note when they are told what, where their motion is not the
point. All times are of one computer's monotonic clock, so that they can be compared.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bare_timer import bare_timer_percent
from benchmarks.peers import PEERS, report_missing
from benchmarks.simulator import SECONDS, playing, playing_world
from benchmarks.size import size
from benchmarks.stage_worker import ECHO_KEY, NOW_KEY, PING_KEY, PONG_KEY, track_of
from benchmarks.table import Row
from rote.platform.system import free_port
from rote.session.stage_events import AgentLost, ConductorEvent
from rote.stage.conductor import Conductor, SectionError
from rote.stage.keys import StageKeys
from rote.stage.show.file import Section
from rote.stage.show.score import PlacedTrack, Score
from rote.stage.stage import TRY_STAGE, Stage, open_stage
from rote.transport.zenoh.bus import Answerer, StageBus

AGENTS, MANY, PER_PROCESS = size((20, 50, 5), (2, 2, 2))
COUNTS = size((10, 25, 50, 100, 200), (2, 4))
"""Numbers of agents from which the law of the conductor's load is computed."""
LAW_PER_PROCESS, LAW_STOPS = size((25, 10), (2, 1))
COMPUTED_FOR = 500
MOST_CORE_PERCENT, MOST_STOP_MS = 25.0, 100.0
"""Goals at the greatest of `COUNTS`."""
FEW = size(1, 2)
"""Agents per process if their starts are compared."""
STARTS, NOWS, STOPS, LOSSES = size((8, 60, 20, 5), (1, 2, 1, 1))
POSES = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)[: size(6, 2)]
POSE_ROUNDS = size(3, 1)
SETTLE_S, IDLE_S = size((5.0, 10.0), (0.5, 0.5))
TIMER_MAX = 2.4
"""Greatest share of a core of a conductor, in shares of a bare timer's at 500 Hz."""
SHORT = 30
"""Samples of a motion that nobody plays: checking it costs little."""
ECHOES, ECHO_ROUNDS = size((300, 5), (5, 1))
NATS = PEERS / "stage"


class Worker:
    """One process of the benchmark, and what it has said."""

    def __init__(self, *arguments: str) -> None:
        self.said: list[dict[str, Any]] = []
        command = [sys.executable, "-m", "benchmarks.stage_worker", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(json.loads(line))

    async def ready(self) -> None:
        async with asyncio.timeout(60.0):
            while not self.said:
                assert self.process.poll() is None, "a process of the benchmark has ended"
                await asyncio.sleep(0.02)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


@asynccontextmanager
async def workers(*commands: tuple[str, ...]) -> AsyncIterator[list[Worker]]:
    started = [Worker(*command) for command in commands]
    try:
        yield started
    finally:
        for each in started:
            each.end()


def said(of: list[Worker], what: str, since_s: float = 0.0) -> list[dict[str, Any]]:
    """Return what workers have said of one kind, since a time."""
    return [
        line
        for worker in of
        for line in tuple(worker.said)
        if line.get("what") == what and line.get("s", since_s) >= since_s
    ]


async def gathered(conductor: Conductor, names: list[str]) -> None:
    missing = await conductor.wait_for_agents(tuple(names), 180.0)
    assert not missing, f"these did not come: {missing}"


def apart(times_s: list[float]) -> list[float]:
    """Return how far each is from the middle one."""
    middle_s = statistics.median(times_s)
    return [abs(each - middle_s) for each in times_s]


def p99_ms(values_s: list[float]) -> float:
    return float(1000 * np.percentile(values_s, 99))


# ---- together -----------------------------------------------------------------------------------


async def together() -> list[Row]:
    """Measure 20 agents behind a bad network: told now, and told when."""
    port, relayed = free_port(), free_port()
    names = [f"robot{number}" for number in range(AGENTS)]
    async with (
        open_stage(endpoint=f"127.0.0.1:{port}") as opened,
        workers(("relay", str(relayed), str(port), "bad")) as (relay,),
    ):
        await relay.ready()
        commands = [
            ("clocked_agents", f"127.0.0.1:{relayed}", *names[first : first + FEW])
            for first in range(0, AGENTS, FEW)
        ]
        async with workers(*commands) as started:
            await gathered(opened.conductor, names)
            await asyncio.sleep(SETTLE_S)
            now_s = await told_now(opened.conductor._bus, started, NOWS)
            score = Score("one", "", PlacedTrack(0.0, track_of(0.5, SHORT)))
            scores = dict.fromkeys(names, score)
            await played(opened.conductor, scores)  # all import what they need
            planned_s: list[float] = []
            for _ in range(STARTS):
                since_s = await played(opened.conductor, scores)
                starts = said(started, "start", since_s)
                assert len(starts) == AGENTS
                planned_s += apart([line["s"] for line in starts])
            clock = said(started, "clock")
    share = [line["error_s"] / line["bound_s"] for line in clock]
    return [
        Row(
            f"start of {AGENTS} agents, bad network: p99 from the middle one, arrival / scheduled",
            "times",
            p99_ms(now_s) / p99_ms(planned_s),
            1.0,
            f"arrival {p99_ms(now_s):.1f} ms",
            at_least=8.0,
        ),
        Row("the same, scheduled", "ms", p99_ms(planned_s), 10.0, "limit", at_most=1.0),
        Row(
            f"clock error within its bound, {len(clock):,} samples: those beyond",
            "",
            float(sum(each > 1.0 for each in share)),
            0.0,
            "limit",
            at_most=1.0,
        ),
        Row(
            "the greatest share of its bound that an error reached",
            "%",
            100 * max(share),
            100.0,
            "limit",
            at_most=1.0,
        ),
    ]


async def played(conductor: Conductor, scores: dict[str, Score]) -> float:
    """Play a section, and return when it was begun.

    On a busy computer a process gets no time for a second, and counts as lost: then once more.
    """
    for _ in range(10):
        since_s = time.monotonic()
        try:
            await conductor.play(Section("one"), scores)
        except SectionError as error:
            print(f"  once more: {str(error)[:120]}", file=sys.stderr, flush=True)
            if conductor.active_stop is not None:
                conductor.reset()
            await gathered(conductor, list(scores))
        else:
            return since_s
    raise AssertionError("no section came to its end")


async def told_now(bus: StageBus, started: list[Worker], rounds: int) -> list[float]:
    """Tell all agents "now" again and again; return how far apart it arrived."""
    found: list[float] = []
    for number in range(rounds):
        bus.publish(NOW_KEY, str(number).encode())
        await asyncio.sleep(0.3)
        lines = [line for line in said(started, "now") if line["round"] == str(number)]
        found += apart([line["s"] for line in lines]) if len(lines) > 1 else []
    return found


# ---- from different poses -----------------------------------------------------------------------


async def from_poses() -> list[Row]:
    """Measure when simulated robots are seen to begin their own motion."""
    port = free_port()
    names = [f"robot{number}" for number in range(len(POSES))]
    async with open_stage(endpoint=f"127.0.0.1:{port}") as opened:
        commands = [
            ("robot", f"127.0.0.1:{port}", name, str(share))
            for name, share in zip(names, POSES, strict=True)
        ]
        async with workers(*commands) as started:
            await gathered(opened.conductor, names)
            await asyncio.sleep(SETTLE_S)
            scores = {
                name: Score("one", "", PlacedTrack(0.0, track_of(share)))
                for name, share in zip(names, POSES, strict=True)
            }
            now_s: list[float] = []
            planned_s: list[float] = []
            for _ in range(POSE_ROUNDS):
                since_s = time.monotonic()
                opened.conductor._bus.publish(NOW_KEY, b"")
                await ended(started, since_s)
                now_s += apart([line["s"] for line in said(started, "moves", since_s)])
                await asyncio.sleep(1.0)
                since_s = await played(opened.conductor, scores)
                planned_s += apart([line["s"] for line in said(started, "moves", since_s)])
    now_ms, planned_ms = 1000 * statistics.median(now_s), 1000 * statistics.median(planned_s)
    return [
        Row(
            f"motion of {len(POSES)} robots from different poses, median apart: now / planned",
            "times",
            now_ms / max(planned_ms, 0.01),
            1.0,
            f"now {now_ms:.0f} ms, planned {planned_ms:.1f} ms",
            at_least=20.0,
        )
    ]


async def ended(started: list[Worker], since_s: float) -> None:
    """Wait until every robot has ended what it plays."""
    for _ in range(1200):
        found = said(started, "ended", since_s)
        if len(found) == len(started):
            for each in found:
                assert not each["error"], each
            return
        await asyncio.sleep(0.05)
    raise AssertionError("a robot does not come to an end")


# ---- stop, and loss -----------------------------------------------------------------------------


async def stops() -> list[Row]:
    """Measure a stop of 50 agents, and what they cost the conductor."""
    timer = await bare_timer_percent()
    port = free_port()
    names = [f"robot{number}" for number in range(MANY)]
    async with open_stage(endpoint=f"127.0.0.1:{port}") as opened:
        commands = [
            ("agents", f"127.0.0.1:{port}", *names[first : first + PER_PROCESS])
            for first in range(0, MANY, PER_PROCESS)
        ]
        async with workers(*commands) as started:
            await gathered(opened.conductor, names)
            await asyncio.sleep(SETTLE_S)
            core = await idle_share(IDLE_S)
            late_s, confirmed_s = await stop_often(opened, started)
    return [
        Row(f"STOP at {MANY} agents, p99", "ms", p99_ms(late_s), 50.0, "limit", at_most=1.0),
        Row("the same, until all have confirmed, median", "ms", confirmed_s, 1000.0, "limit"),
        Row(
            f"conductor of {MANY} agents",
            "% of a core",
            core,
            timer,
            "a bare 500 Hz timer",
            at_most=TIMER_MAX,
        ),
    ]


async def idle_share(seconds: float) -> float:
    """Return the processor time of this process in a while, in percent of a core."""
    cpu_s, wall_s = time.process_time(), time.monotonic()
    await asyncio.sleep(seconds)
    return 100 * (time.process_time() - cpu_s) / (time.monotonic() - wall_s)


class CountingBus(StageBus):
    """A bus that counts the questions for the conductor's clock."""

    clock_questions = 0

    def answer(self, key: str, answerer: Answerer) -> None:
        def count(asked: str, data: bytes) -> bytes | None:
            self.clock_questions += asked == StageKeys(TRY_STAGE).clock
            return answerer(asked, data)

        super().answer(key, count)


class LawPoint(NamedTuple):
    """What a number of idle agents costs their conductor, and how soon a stop reaches them."""

    agents: int
    core_percent: float
    clock_questions_per_s: float
    stop_p50_ms: float
    stop_p99_ms: float
    stops_missed: int
    """Stops that an agent had not received after the answer; on a busy computer there are some."""


async def law() -> list[Row]:
    """Measure from 10 to 200 agents, and compute the figures for 500."""
    points = []
    for count in COUNTS:
        point = await law_point(count)
        print(f"  {point}, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
        points.append(point)
    counts = [point.agents for point in points]
    slope, base = np.polyfit(counts, [point.core_percent for point in points], 1)
    computed = float(base + slope * COMPUTED_FOR)
    last = points[-1]
    questions = last.clock_questions_per_s / last.agents
    most, every = f"{last.agents} agents", ", ".join(map(str, counts))
    cores = ", ".join(f"{point.core_percent:.1f}" for point in points)
    stops = ", ".join(f"{point.stop_p99_ms:.0f}" for point in points)
    return [
        Row(
            f"conductor of {most}",
            "% of a core",
            last.core_percent,
            MOST_CORE_PERCENT,
            "limit",
            at_most=1.0,
        ),
        Row(
            f"the same, computed for {COMPUTED_FOR} agents: {base:.2f} + {slope:.4f} N",
            "% of a core",
            computed,
            100.0,
            f"limit; {cores} at {every}",
        ),
        Row("clock questions of an idle agent", "1/s", questions, 1.0, "one each second"),
        Row(
            f"STOP at {most}, p99",
            "ms",
            last.stop_p99_ms,
            MOST_STOP_MS,
            f"limit; {stops} at {every}",
            at_most=1.0,
        ),
        Row(f"STOP at {most}, median", "ms", last.stop_p50_ms, MOST_STOP_MS, "limit"),
        Row(f"STOP at {most}: not received", "", float(last.stops_missed), 0.0, "limit"),
    ]


async def law_point(count: int) -> LawPoint:
    port = free_port()
    names = [f"robot{number}" for number in range(count)]
    bus = await CountingBus.conduct(f"127.0.0.1:{port}")
    try:
        async with Conductor(bus, TRY_STAGE) as conductor:
            commands = [
                ("agents", f"127.0.0.1:{port}", *names[first : first + LAW_PER_PROCESS])
                for first in range(0, count, LAW_PER_PROCESS)
            ]
            async with workers(*commands) as started:
                await gathered(conductor, names)
                await asyncio.sleep(SETTLE_S)
                before, began_s = bus.clock_questions, time.monotonic()
                core = await idle_share(IDLE_S)
                questions = (bus.clock_questions - before) / (time.monotonic() - began_s)
                late_s, missed = await stop_in_crowd(conductor, started, count)
    finally:
        await bus.close()
    p50_ms = float(1000 * np.percentile(late_s, 50))
    return LawPoint(count, core, questions, p50_ms, p99_ms(late_s), missed)


async def stop_in_crowd(
    conductor: Conductor, started: list[Worker], agents: int
) -> tuple[list[float], int]:
    """Stop a few times; return how late each agent received it, and how often one did not."""
    late_s: list[float] = []
    for _ in range(LAW_STOPS):
        since_s = time.monotonic()
        await conductor.stop("the benchmark")
        await asyncio.sleep(0.3)
        received = {line["name"]: line["s"] - since_s for line in said(started, "stop", since_s)}
        late_s += received.values()
    return late_s, LAW_STOPS * agents - len(late_s)


async def stop_often(opened: Stage, started: list[Worker]) -> tuple[list[float], float]:
    late_s: list[float] = []
    confirmed_s: list[float] = []
    for _ in range(STOPS):
        since_s = time.monotonic()
        answer = await opened.stop("the benchmark")
        assert answer.confirmed_s is not None, answer.unconfirmed
        await asyncio.sleep(0.3)
        told = {line["name"]: line["s"] - since_s for line in said(started, "stop", since_s)}
        assert len(told) == MANY
        late_s += told.values()
        confirmed_s.append(answer.confirmed_s)
    return late_s, 1000 * statistics.median(confirmed_s)


async def losses() -> list[Row]:
    """Measure how soon a killed agent is missed, and one whose cable is cut."""
    rows = []
    for kind, most_s in (("cut", 1.5), ("killed", 0.1))[: size(2, 1)]:
        found = [await one_loss(kind, f"{kind}{number}") for number in range(LOSSES)]
        claim = f"a {kind} agent is missed, the longest of {LOSSES}"
        rows.append(Row(claim, "s", max(found), most_s, "limit", at_most=1.0))
    return rows


async def one_loss(kind: str, name: str) -> float:
    port, relayed = free_port(), free_port()
    async with (
        open_stage(endpoint=f"127.0.0.1:{port}") as opened,
        workers(("relay", str(relayed), str(port), "good")) as (relay,),
    ):
        await relay.ready()
        async with workers(("agents", f"127.0.0.1:{relayed}", name)) as (agent,):
            await gathered(opened.conductor, [name])
            lost: asyncio.Future[float] = asyncio.get_running_loop().create_future()

            def look(event: ConductorEvent) -> None:
                if isinstance(event, AgentLost) and not lost.done():
                    lost.set_result(time.monotonic())

            opened.conductor.on_event(look)
            began_s = time.monotonic()
            if kind == "killed":
                agent.process.kill()
            else:
                relay.process.send_signal(19)  # SIGSTOP: nothing passes, nothing is closed
            return await asyncio.wait_for(lost, 30.0) - began_s


# ---- the bus ------------------------------------------------------------------------------------


Ask = Callable[[bytes], Awaitable[bytes]]


async def timed(ask: Ask) -> float:
    """Return the median time until an answer is there, in us."""
    taken = []
    payload = bytes(600)
    for _ in range(ECHOES):
        began_s = time.perf_counter()
        assert await asyncio.wait_for(ask(payload), 10.0) == payload
        taken.append(time.perf_counter() - began_s)
    return 1e6 * statistics.median(taken)


def ping(publish: Callable[[bytes], Any], arrived: "asyncio.Queue[bytes]") -> Ask:
    """Return what publishes a message and waits for its echo."""

    async def ask(data: bytes) -> bytes:
        sent = publish(data)
        if sent is not None:
            await sent
        return await arrived.get()

    return ask


def nats_server(program: Path, port: int) -> "subprocess.Popen[bytes]":
    command = [str(program), "-a", "127.0.0.1", "-p", str(port)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


async def bus() -> list[Row]:
    """Measure a message and a question, there and back, beside NATS in turns.

    Between two clients both go through a third process, the router or the server. From a
    conductor to an agent ours needs none: the conductor's process is the router.
    """
    server = NATS / "bin" / "nats-server"
    if not server.exists():
        report_missing("no NATS: run scripts/peers/benchmarks")
        return []
    sys.path.append(str(NATS))
    import nats  # type: ignore[import-not-found, import-untyped, unused-ignore]

    routed, conducted, nats_port = (f"127.0.0.1:{free_port()}" for _ in range(3))
    address = f"nats://{nats_port}"
    other = nats_server(server, int(nats_port.rpartition(":")[2]))
    try:
        async with workers(("router", routed)) as (ours,):
            await ours.ready()
            conductor = await StageBus.conduct(conducted)
            await asyncio.sleep(1.0)
            echoes = (("echo", routed), ("echo", conducted), ("nats_echo", str(NATS), address))
            async with workers(*echoes) as started:
                for each in started:
                    await each.ready()
                client, joined = await nats.connect(address), await StageBus.join(routed)
                nats_back = asyncio.Queue[bytes]()

                async def back(message: Any) -> None:
                    nats_back.put_nowait(bytes(message.data))

                await client.subscribe("pong", cb=back)
                await client.flush()

                async def ask_nats(data: bytes) -> bytes:
                    return bytes((await client.request("echo", data, timeout=5.0)).data)

                async def ask_ours(data: bytes) -> bytes:
                    return await joined.ask(ECHO_KEY, 5.0, data)

                sides: dict[str, Ask] = {
                    "ours": ping_ours(joined),
                    "conductor": ping_ours(conductor),
                    "NATS": ping(lambda data: client.publish("ping", data), nats_back),
                    "ours asked": ask_ours,
                    "NATS asked": ask_nats,
                }
                await asyncio.sleep(1.0)
                rounds = [
                    {name: await timed(ask) for name, ask in sides.items()}
                    for _ in range(ECHO_ROUNDS + 1)
                ][1:]
                await client.close()
                await joined.close()
            await conductor.close()
    finally:
        other.terminate()
        other.wait()
    us = {name: statistics.median(each[name] for each in rounds) for name in sides}
    there = "bus: a message there and back"
    asked = "bus: a question and its answer"
    return [
        Row(f"{there}, two clients", "us", us["ours"], us["NATS"], "NATS", at_most=1.0),
        Row(f"{there}, conductor and agent", "us", us["conductor"], us["NATS"], "NATS"),
        Row(f"{asked}, two clients", "us", us["ours asked"], us["NATS asked"], "NATS"),
    ]


def ping_ours(bus: StageBus) -> Ask:
    arrived = asyncio.Queue[bytes]()
    bus.subscribe(PONG_KEY, lambda _key, data: arrived.put_nowait(data))
    return ping(lambda data: bus.publish(PING_KEY, data), arrived)


def worlds() -> list[Row]:
    """Measure how many playing simulated robots fit on a core."""
    world = playing_world()
    seconds = statistics.median(playing(world) for _ in range(3))
    fits = SECONDS / seconds
    return [Row("playing simulated robots on a core", "", fits, 50.0, "limit", at_least=1.0)]


PARTS: tuple[Callable[[], Awaitable[list[Row]]], ...] = (
    together,
    from_poses,
    stops,
    law,
    losses,
    bus,
)


def run() -> list[Row]:
    from rote.platform.loop import new_loop

    rows: list[Row] = []
    for part in PARTS:
        print(f"  {part.__name__} ...", file=sys.stderr, flush=True)
        with asyncio.Runner(loop_factory=new_loop) as runner:
            rows += runner.run(_run(part))
    return rows + worlds()


async def _run(part: Callable[[], Awaitable[list[Row]]]) -> list[Row]:
    return await part()
