"""Claim: 500 joint states a second to Foxglove or to ROS 2 cost less than with their libraries.

A source calls a listener 500 times a second with the states of a G1, as a robot over DDS does. What
the process takes beyond the source alone is the bridge's: packing, and sending to one client, which
is another process. The peers do the same with their libraries' own objects: foxglove-sdk's joint
states and its server, and a `JointState_` of cyclonedds-python, written by its own writer.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, cast

from benchmarks.size import process_context, size
from benchmarks.table import Row
from rote.messages import RobotState
from rote.model.g1 import G1_29
from rote.platform.loop import new_loop
from rote.robot.stand_in import Listener, StandIn

RATE_HZ, SECONDS, WARM_UP_S = 500.0, *size((8.0, 1.0), (0.3, 0.1))
ROUNDS = size(3, 1)
PEER_MAX = 1.0
DOMAIN = 98


class Source(StandIn):
    """A robot that is nothing but its states."""

    def __init__(self) -> None:
        super().__init__("dds://bench")
        self.listener: Listener = lambda _: None

    def on_state(self, listener: Listener) -> Callable[[], None]:
        """Call this one from now on."""
        self.listener = listener
        return lambda: None

    async def tell(self, seconds: float) -> None:
        """Tell states for so long, each at its time."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        joints, count = len(G1_29.joints), round(seconds * RATE_HZ)
        began_s = time.monotonic()

        def tick(number: int) -> None:
            value = number * 1e-4
            self.listener(
                RobotState(
                    joints_rad=(value,) * joints,
                    velocities_rad_s=(value,) * joints,
                    time_us=number * 2000,
                )
            )
            if number + 1 == count:
                done.set_result(None)
                return
            due_s = began_s + (number + 1) / RATE_HZ
            loop.call_later(max(0.0, due_s - time.monotonic()), tick, number + 1)

        tick(0)
        await done


async def percent(source: Source) -> float:
    """Return which share of a core this process takes while states are told."""
    await source.tell(WARM_UP_S)
    before = time.process_time()
    await source.tell(SECONDS)
    return 100.0 * (time.process_time() - before) / SECONDS


# ---- Foxglove -----------------------------------------------------------------------------------


async def _watch(port: int, ready: Connection) -> None:
    from websockets.asyncio.client import connect
    from websockets.typing import Subprotocol

    protocols = [Subprotocol("foxglove.sdk.v1"), Subprotocol("foxglove.websocket.v1")]
    async with connect(
        f"ws://127.0.0.1:{port}", subprotocols=protocols, proxy=None, compression=None
    ) as socket:
        async for message in socket:
            if isinstance(message, str) and json.loads(message)["op"] == "advertise":
                channels = json.loads(message)["channels"]
                wanted = [{"id": one["id"], "channelId": one["id"]} for one in channels]
                await socket.send(json.dumps({"op": "subscribe", "subscriptions": wanted}))
                ready.send("ready")


def watch(port: int, ready: Connection) -> None:
    asyncio.run(_watch(port, ready))


async def foxglove(source: Source) -> float:
    from rote.bridge.foxglove_server import make_feed, serving
    from rote.bridge.live_view import LiveView

    feed = make_feed("bench")
    view = LiveView(feed, source, list, lambda _: cast("Path | None", None))
    async with serving(feed, 0) as port:
        view.open()
        async with beside(watch, port):
            return await percent(source)


async def foxglove_sdk(source: Source) -> float:
    import foxglove as sdk
    from foxglove.channels import JointStatesChannel
    from foxglove.messages import JointState, JointStates, Timestamp

    channel = JointStatesChannel("/joint_states")
    server = sdk.start_server(port=0)

    def log(state: RobotState) -> None:
        rows = zip(G1_29.names, state.joints_rad, state.velocities_rad_s, strict=True)
        joints = [JointState(name=n, position=p, velocity=v) for n, p, v in rows]
        now_ns = time.time_ns()
        stamp = Timestamp(sec=now_ns // 10**9, nsec=now_ns % 10**9)
        channel.log(JointStates(timestamp=stamp, joints=joints), log_time=now_ns)

    source.on_state(log)
    try:
        async with beside(watch, server.port):
            return await percent(source)
    finally:
        server.stop()


# ---- ROS 2 --------------------------------------------------------------------------------------


async def _listen(ready: Connection) -> None:
    from rote.transport.dds import ros_types as dds_ros_types
    from rote.transport.dds.participant import Bus, DdsTarget

    bus = Bus(DdsTarget("lo", DOMAIN))
    inlet = bus.reader("rt/joint_states", dds_ros_types.JOINT_STATE, lambda _: None, depth=10)
    while not inlet.matched:  # noqa: ASYNC110 - DDS tells no event loop
        await asyncio.sleep(0.02)
    ready.send("ready")
    await asyncio.Event().wait()


def listen(_: int, ready: Connection) -> None:
    asyncio.run(_listen(ready))


async def ros(source: Source) -> float:
    from rote.bridge.ros2 import RosBridge
    from rote.motion.files.library import Library
    from rote.transport.dds.participant import DdsTarget

    bridge = RosBridge(source, DdsTarget("lo", DOMAIN), Library("/nonexistent"))
    bridge.open()
    try:
        async with beside(listen, 0):
            return await percent(source)
    finally:
        await bridge.close()


async def cyclonedds(source: Source) -> float:
    from cyclonedds.domain import DomainParticipant
    from cyclonedds.pub import DataWriter
    from cyclonedds.topic import Topic

    from rote.transport.dds import ros_types as kinds
    from rote.transport.dds.participant import _interface_settings

    with _interface_settings("lo"):
        participant = DomainParticipant(DOMAIN)
    writer = DataWriter(participant, Topic(participant, "rt/joint_states", kinds.JOINT_STATE))
    state_type, header_type, time_type = (
        cast("Any", each) for each in (kinds.JOINT_STATE, kinds._HEADER, kinds._TIME)
    )
    names = list(G1_29.names)

    def write(state: RobotState) -> None:
        now_ns = time.time_ns()
        header = header_type(
            stamp=time_type(sec=now_ns // 10**9, nanosec=now_ns % 10**9), frame_id=""
        )
        writer.write(
            state_type(
                header=header,
                name=names,
                position=list(state.joints_rad),
                velocity=list(state.velocities_rad_s),
                effort=[],
            )
        )

    source.on_state(write)
    async with beside(listen, 0):
        return await percent(source)


# ---- all of it ----------------------------------------------------------------------------------


@asynccontextmanager
async def beside(role: Callable[[int, Connection], None], port: int) -> AsyncIterator[None]:
    """Run a client in a process of its own, once it is ready."""
    context = process_context()
    here, there = context.Pipe()
    client = context.Process(target=role, args=(port, there), daemon=True)
    client.start()
    try:
        while not here.poll():  # noqa: ASYNC110 - a pipe of another process
            await asyncio.sleep(0.05)
        yield
    finally:
        client.terminate()
        client.join()


async def alone(source: Source) -> float:
    return await percent(source)


def _measured(way: str, told: Connection) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        told.send(runner.run(globals()[way](Source())))


def measured(way: str) -> float:
    """Return the share of a core that a way takes, in a process of its own."""
    context = process_context()
    here, there = context.Pipe()
    process = context.Process(target=_measured, args=(way, there))
    process.start()
    there.close()
    share = cast("float", here.recv())
    process.join()
    return share


def run() -> list[Row]:
    sides = {
        "Foxglove": ("foxglove", "foxglove_sdk", "foxglove-sdk's objects"),
        "ROS 2": ("ros", "cyclonedds", "cyclonedds-python's objects"),
    }
    ways = ["alone", *(way for ours, peer, _ in sides.values() for way in (ours, peer))]
    turns = [{way: measured(way) for way in ways} for _ in range(ROUNDS)]
    share = {way: median(turn[way] for turn in turns) for way in ways}
    return [
        Row(
            f"500 Hz joint states to {name}, of a core",
            "%",
            share[ours] - share["alone"],
            share[peer] - share["alone"],
            whose,
            at_most=PEER_MAX,
        )
        for name, (ours, peer, whose) in sides.items()
    ]
