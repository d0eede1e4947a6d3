"""A stream that a thread sends and the loop ends: no pose comes in between its soft end."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence

import pytest

import virtual
from rote.messages import Phase, StreamPose
from rote.model.family import Build, Hand
from rote.model.g1 import G1_29, G1_REST_RAD
from rote.session.arm_stream import FADE_HZ, ArmSetpoint
from rote.transport.dds.arm_streamer import ArmStreamer


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


# ---- when it ends, and how ---------------------------------------------------------------------


def streaming() -> tuple[ArmStreamer[float], list[float], list[str]]:
    """Return a streamer with a stream that was begun, what it writes, and why it stopped."""
    weights: list[float] = []
    stopped: list[str] = []
    streamer = ArmStreamer(pack, weights.append, stopped.append)
    streamer.begin(G1_REST_RAD, G1_29)
    return streamer, weights, stopped


@pytest.mark.parametrize("sent", [0, 5])
def test_a_stream_whose_poses_cease_is_released_after_an_eighth_of_a_second(sent: int) -> None:
    async def run() -> None:
        streamer, weights, stopped = streaming()
        send = streamer.ready(poses(1000))
        for place in range(sent):
            assert send(place)
        await asyncio.sleep(0.09)
        assert stopped == []
        await asyncio.sleep(0.04)
        assert streamer.phase is Phase.RETURN
        assert stopped == ["this computer sent no pose for 0.12 s"]
        await streamer.faded()
        assert weights[-1] == 0.0

    virtual.run(run())


def test_a_stall_shorter_than_the_grace_does_not_end_a_stream() -> None:
    async def run() -> None:
        streamer, _, stopped = streaming()
        send = streamer.ready(poses(1000))
        assert send(0)
        virtual.hang(0.15)
        await asyncio.sleep(0.01)
        assert send(1)
        streamer.see(G1_REST_RAD)
        await asyncio.sleep(0.05)
        assert (streamer.phase, stopped) == (Phase.PLAYING, [])

    virtual.run(run())


def test_a_release_takes_as_long_as_its_setpoints() -> None:
    async def run() -> None:
        streamer, weights, _ = streaming()
        assert streamer.ready(poses(1000))(0)
        began = asyncio.get_running_loop().time()
        streamer.stop("enough")
        await streamer.faded()
        took_s = asyncio.get_running_loop().time() - began
        assert took_s == pytest.approx((len(weights) - 1) / FADE_HZ)
        assert took_s >= 0.5

    virtual.run(run())


def test_who_waits_for_a_release_and_is_cancelled_waits_until_it_is_over() -> None:
    async def run() -> None:
        streamer, weights, _ = streaming()
        assert streamer.ready(poses(1000))(0)
        streamer.stop("enough")
        waiting = asyncio.create_task(streamer.faded())
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (streamer.phase, weights[-1]) == (None, 0.0)

    virtual.run(run())


def test_a_pose_that_is_being_written_comes_before_the_release() -> None:
    async def run() -> None:
        written: list[float] = []
        writing, may_end = threading.Event(), threading.Event()

        def write(weight: float) -> None:
            if threading.current_thread() is thread:
                writing.set()
                may_end.wait(5.0)
            written.append(weight)

        streamer = ArmStreamer(pack, write, lambda _: None)
        streamer.begin(G1_REST_RAD, G1_29)
        thread = threading.Thread(target=streamer.ready(poses(1000)), args=(0,))
        thread.start()
        assert await asyncio.to_thread(writing.wait, 5.0)
        threading.Timer(0.2, may_end.set).start()
        streamer.stop("enough")
        await streamer.faded()
        thread.join(5.0)
        assert written[0] == 1.0
        assert written == sorted(written, reverse=True)

    asyncio.run(run())


@pytest.mark.parametrize("stop_client", [virtual.hang, virtual.suspend])
def test_poses_do_not_go_on_after_a_long_interruption(stop_client: Callable[[float], None]) -> None:
    async def run() -> None:
        streamer, weights, _ = streaming()
        send = streamer.ready(poses(1000))
        assert send(0)
        stop_client(0.5)
        assert not send(1)
        assert weights == [1.0]

    virtual.run(run())
