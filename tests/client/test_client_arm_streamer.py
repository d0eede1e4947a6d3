"""A stream that a thread sends and the loop ends: no pose comes in between its soft end."""

import asyncio
import threading
import time
from collections.abc import Sequence

from rote.client.arm_streamer import ArmStreamer
from rote.messages import StreamPose
from rote.model.family import Build, Hand
from rote.model.g1 import G1_29, G1_REST_RAD
from rote.session.arm_stream import ArmSetpoint


def pack(setpoints: Sequence[ArmSetpoint], _: Build, __: tuple[Hand, ...]) -> list[float]:
    return [setpoint.weight for setpoint in setpoints]


def poses(count: int) -> list[StreamPose]:
    rest = tuple(G1_REST_RAD[column] for column in G1_29.taught_columns)
    return [StreamPose(number, 1.0, rest) for number in range(count)]


def test_a_thread_that_sends_on_is_overruled_by_a_stop() -> None:
    async def run() -> None:
        weights: list[float] = []
        stopped: list[str] = []
        streamer = ArmStreamer(pack, weights.append, stopped.append)
        streamer.begin(G1_REST_RAD, G1_29)
        send = streamer.ready(poses(1_000_000))
        refused = threading.Event()

        def beat() -> None:
            place = 0
            while send(place):
                place += 1
                time.sleep(0)
            refused.set()

        thread = threading.Thread(target=beat)
        thread.start()
        while len(weights) < 120:
            streamer.see(G1_REST_RAD)
            await asyncio.sleep(0.001)
        streamer.stop("enough")
        await streamer.faded()
        thread.join(10)
        assert refused.is_set()
        assert stopped == ["enough"]
        first = next(place for place, weight in enumerate(weights) if weight < 1.0)
        falling = weights[first - 1 :]
        assert falling == sorted(falling, reverse=True), "no pose came in between"
        assert falling[-1] == 0.0
        assert streamer.phase is None

    asyncio.run(run())


def test_a_stream_that_a_thread_sends_to_its_end_is_over_for_the_loop_too() -> None:
    async def run() -> None:
        weights: list[float] = []
        streamer = ArmStreamer(pack, weights.append, lambda _: None)
        streamer.begin(G1_REST_RAD, G1_29)
        send = streamer.ready(poses(123))
        assert await asyncio.to_thread(lambda: all(map(send, range(123))))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert streamer.phase is None
        assert len(weights) == 123
        assert not send(5), "nothing is sent after the end"

    asyncio.run(run())
