"""Claim: over DDS, asking costs what DDS costs, reading joints next to nothing, streaming little.

Asking: rote asks the simulated robot for its mode; the peer is an echo in plain cyclonedds-python,
a request of the same type written and its response awaited by a waitset, as its own examples do.
The robot meanwhile does its physics and tells its joints 500 times a second, which rote reads; the
echo does nothing else. Servers are processes of their own, on another core.

Reading: a `LowState_` to the positions and speeds of all joints, by rote's view and by the
library's own deserialiser.

Streaming: a track of 30 s at 500 Hz to the simulated robot. The share of a core is this process's,
states read included. The peer is what DDS and waking up cost alone: a thread that sleeps and writes
the same bytes as often, and a loop that takes the robot's states fifty times a second and drops
them.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

from benchmarks.size import process_context, size
from benchmarks.stream import swinging
from benchmarks.table import Row, cpu_s
from rote.connection import connect
from rote.messages import RobotState
from rote.model.g1 import G1_29
from rote.motion.track import Track
from rote.platform import realtime
from rote.platform.loop import new_loop
from rote.robot.api_values import StreamReport
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport.dds import types as dds_types
from rote.transport.dds.client import DdsClient
from rote.transport.dds.participant import Bus, DdsTarget, _interface_settings
from rote.wire.dds import lowlevel as dds_lowlevel
from rote.wire.services import rpc

ROUNDS, WARM_UP, REQUESTS = size((5, 100, 400), (1, 5, 20))
P50_MAX = 1.1
DECODE_MIN = 100.0
RATE_HZ, SECONDS, BARE_MAX = 500.0, size(30.0, 1.0), 1.3
STREAM_ROUNDS, BARE_S, MEET_S = size((3, 10.0, 2.0), (1, 0.5, 0.5))
ROBOT, ECHO = 96, 97
"""Domains of their own, far from a real robot's 0."""


# ---- the servers --------------------------------------------------------------------------------


async def _serve_robot(ready: Connection) -> None:
    simulator = Simulator(World(Store(":memory:")))
    await simulator.serve_dds("lo", ROBOT, latency=False)
    ready.send("ready")
    await asyncio.Event().wait()


def serve_robot(ready: Connection) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve_robot(ready))


class Bare:
    """Plain cyclonedds-python: one topic to write, one to read, a waitset in between."""

    def __init__(self, written: str, read: str) -> None:
        from cyclonedds.core import Policy, Qos, ReadCondition, WaitSet
        from cyclonedds.domain import DomainParticipant
        from cyclonedds.pub import DataWriter
        from cyclonedds.sub import DataReader
        from cyclonedds.topic import Topic
        from cyclonedds.util import duration

        kinds: dict[str, Any] = {"request": dds_types.REQUEST, "response": dds_types.RESPONSE}
        with _interface_settings("lo"):
            participant = DomainParticipant(ECHO)
        reliable = Qos(Policy.Reliability.Reliable(duration(seconds=1)), Policy.History.KeepLast(8))
        self.writer: Any = DataWriter(participant, Topic(participant, written, kinds[written]))
        self.reader: Any = DataReader(participant, Topic(participant, read, kinds[read]), reliable)
        self.waitset = WaitSet(participant)
        self.waitset.attach(ReadCondition(self.reader, 0x7F))
        self.patience = duration(seconds=1)

    def take(self) -> list[Any]:
        """Wait for samples."""
        self.waitset.wait(self.patience)
        return [sample for sample in self.reader.take(8) if hasattr(sample, "header")]


def serve_echo(ready: Connection) -> None:
    response: Any = dds_types.RESPONSE
    header = response.__annotations__["header"]
    status = header.__annotations__["status"]
    bare = Bare("response", "request")
    ready.send("ready")
    while True:
        for asked in bare.take():
            head = header(identity=asked.header.identity, status=status(code=0))
            bare.writer.write(response(header=head, data='{"data":500}', binary=[]))


@contextmanager
def server(serve: Callable[[Connection], None]) -> Iterator[None]:
    """Run a server on the last core, and this process on the first."""
    cores = sorted(os.sched_getaffinity(0))
    context = process_context()
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    assert process.pid is not None
    try:
        os.sched_setaffinity(process.pid, {cores[-1]})
        os.sched_setaffinity(0, {cores[0]})
        assert ours.recv() == "ready"
        yield
    finally:
        os.sched_setaffinity(0, set(cores))
        process.kill()
        process.join()


# ---- asking -------------------------------------------------------------------------------------


async def ask_robot() -> float:
    client = DdsClient(f"dds://lo?domain={ROBOT}", DdsTarget("lo", ROBOT))
    await client.open()
    try:
        taken = []
        for number in range(WARM_UP + REQUESTS):
            start = time.perf_counter()
            await client.call(rpc.GET_FSM)
            if number >= WARM_UP:
                taken.append(time.perf_counter() - start)
        return median(taken)
    finally:
        await client.close()


def ask_echo() -> float:
    request: Any = dds_types.REQUEST
    header = request.__annotations__["header"]
    parts = header.__annotations__
    bare = Bare("request", "response")

    def ask(number: int) -> bool:
        head = header(
            identity=parts["identity"](id=number, api_id=7001),
            lease=parts["lease"](id=0),
            policy=parts["policy"](priority=0, noreply=False),
        )
        bare.writer.write(request(header=head, parameter="", binary=[]))
        return any(answer.header.identity.id == number for answer in bare.take())

    number = 1
    while not ask(number):  # until both have found each other
        number += 1
    taken = []
    for each in range(WARM_UP + REQUESTS):
        start = time.perf_counter()
        assert ask(number + 1 + each)
        if each >= WARM_UP:
            taken.append(time.perf_counter() - start)
    return median(taken)


def run_robot() -> float:
    with server(serve_robot), asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(ask_robot())


def run_echo() -> float:
    with server(serve_echo):
        return ask_echo()


# ---- reading ------------------------------------------------------------------------------------


def read_joints() -> tuple[float, float]:
    """Return how long one `LowState_` takes to read, by rote and by the library."""
    state = RobotState(joints_rad=(0.1,) * 29, velocities_rad_s=(0.2,) * 29)
    data = dds_lowlevel.encode_lowstate(state, build=G1_29)

    def ours() -> None:
        for _ in range(5000):
            motors = dds_lowlevel.view_lowstate(data)["motors"]
            motors["q"], motors["dq"]

    def theirs() -> None:
        for _ in range(100):
            read: Any = dds_types.LOWSTATE.deserialize(data)
            [(motor.q, motor.dq) for motor in read.motor_state]

    theirs()
    pairs = [(cpu_s(ours) / 5000, cpu_s(theirs) / 100) for _ in range(ROUNDS)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


# ---- streaming ----------------------------------------------------------------------------------


def long_track() -> Track:
    """Return the swinging track, at the speed that makes it last 30 s."""
    track = swinging()
    return Track(
        times_s=track.times_s * (SECONDS / track.duration_s),
        joints_rad=track.joints_rad,
        names=track.names,
    )


async def _stream() -> tuple[float, StreamReport]:
    async with connect(f"dds://lo?domain={ROBOT}", timeout=20.0) as robot:
        playing = robot.play_track(long_track(), rate_hz=RATE_HZ)
        await playing.started()
        began_s, used_s = time.perf_counter(), time.process_time()
        report = await playing
        share = (time.process_time() - used_s) / (time.perf_counter() - began_s)
        return 100.0 * share, report


def stream() -> tuple[float, StreamReport]:
    """Stream; once more if another program needed the core for too long."""
    for _ in range(2):
        with server(serve_robot), asyncio.Runner(loop_factory=new_loop) as runner:
            share, report = runner.run(_stream())
        if report.completed:
            break
    return share, report


async def _stream_bare() -> float:
    bus = Bus(DdsTarget("lo", ROBOT))
    inlet = bus.reader(
        dds_lowlevel.LOWSTATE_TOPIC, dds_types.LOWSTATE, lambda _: None, depth=64, reliable=False
    )
    inlet.pace(0.02)
    outlet = bus.writer(dds_lowlevel.ARM_SDK_TOPIC, dds_types.LOWCMD)
    rest = [0.0] * len(G1_29.streamed)
    data = dds_lowlevel.encode_arm_command(rest, 0.0, build=G1_29, mode_machine=5)
    stopped = threading.Event()

    def beat() -> None:
        realtime.request_precise_timers()
        realtime.request_realtime()
        due_s = time.monotonic()
        while not stopped.is_set():
            outlet.write(data)
            due_s += 1.0 / RATE_HZ
            time.sleep(max(0.0, due_s - time.monotonic()))

    thread = threading.Thread(target=beat)
    thread.start()
    await asyncio.sleep(MEET_S)  # until both have found each other
    began_s, used_s = time.perf_counter(), time.process_time()
    await asyncio.sleep(BARE_S)
    share = (time.process_time() - used_s) / (time.perf_counter() - began_s)
    stopped.set()
    await asyncio.to_thread(thread.join)
    bus.close()
    return 100.0 * share


def stream_bare() -> float:
    with server(serve_robot), asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(_stream_bare())


def run() -> list[Row]:
    pairs = [(run_robot(), run_echo()) for _ in range(ROUNDS)]
    ours, theirs = (1000.0 * median(pair[side] for pair in pairs) for side in (0, 1))
    view_us, library_us = (1e6 * each for each in read_joints())
    turns = [(stream(), stream_bare()) for _ in range(STREAM_ROUNDS)]
    share, bare = (
        median(ours for (ours, _), _ in turns),
        median(theirs for _, theirs in turns),
    )
    report = turns[-1][0][1]
    off = 100.0 * abs(report.rate_hz / RATE_HZ - 1.0)
    return [
        Row("dds: a request, median", "ms", ours, theirs, "a bare echo", at_most=P50_MAX),
        Row(
            "dds: joints read a second",
            "k",
            1000.0 / view_us,
            1000.0 / library_us,
            "cyclonedds-python",
            at_least=DECODE_MIN,
        ),
        Row("dds: stream at 500 Hz, core", "%", share, bare, "bare DDS", at_most=BARE_MAX),
        Row("  rate off by", "%", off, 0.1, "limit", at_most=1),
        Row("  poses skipped", "poses", report.missed, RATE_HZ * SECONDS, "all poses"),
        Row("  seconds played", "s", report.seconds, SECONDS, "asked", at_least=1),
    ]
