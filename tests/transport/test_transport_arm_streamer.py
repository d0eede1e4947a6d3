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
        send = streamer.prepare_poses(poses(1) * 1_000_000)
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
            streamer.on_joints(G1_REST_RAD)
            await asyncio.sleep(0.001)
        streamer.stop("enough")
        await streamer.wait_until_released()
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
        send = streamer.prepare_poses(poses(123))
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
        send = streamer.prepare_poses(poses(1000))
        for place in range(sent):
            assert send(place)
        await asyncio.sleep(0.09)
        assert stopped == []
        await asyncio.sleep(0.04)
        assert streamer.phase is Phase.RETURN
        assert stopped == ["this computer sent no pose for 0.12 s"]
        await streamer.wait_until_released()
        assert weights[-1] == 0.0

    virtual.run(run())


def test_a_stall_shorter_than_the_grace_does_not_end_a_stream() -> None:
    async def run() -> None:
        streamer, _, stopped = streaming()
        send = streamer.prepare_poses(poses(1000))
        assert send(0)
        virtual.hang(0.15)
        await asyncio.sleep(0.01)
        assert send(1)
        streamer.on_joints(G1_REST_RAD)
        await asyncio.sleep(0.05)
        assert (streamer.phase, stopped) == (Phase.PLAYING, [])

    virtual.run(run())


def test_a_release_takes_as_long_as_its_setpoints() -> None:
    async def run() -> None:
        streamer, weights, _ = streaming()
        assert streamer.prepare_poses(poses(1000))(0)
        began = asyncio.get_running_loop().time()
        streamer.stop("enough")
        await streamer.wait_until_released()
        took_s = asyncio.get_running_loop().time() - began
        assert took_s == pytest.approx((len(weights) - 1) / FADE_HZ)
        assert took_s >= 0.5

    virtual.run(run())


def test_who_waits_for_a_release_and_is_cancelled_waits_until_it_is_over() -> None:
    async def run() -> None:
        streamer, weights, _ = streaming()
        assert streamer.prepare_poses(poses(1000))(0)
        streamer.stop("enough")
        waiting = asyncio.create_task(streamer.wait_until_released())
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
        thread = threading.Thread(target=streamer.prepare_poses(poses(1000)), args=(0,))
        thread.start()
        assert await asyncio.to_thread(writing.wait, 5.0)
        threading.Timer(0.2, may_end.set).start()
        streamer.stop("enough")
        await streamer.wait_until_released()
        thread.join(5.0)
        assert written[0] == 1.0
        assert written == sorted(written, reverse=True)

    asyncio.run(run())


@pytest.mark.parametrize("stop_client", [virtual.hang, virtual.suspend])
def test_poses_do_not_go_on_after_a_long_interruption(stop_client: Callable[[float], None]) -> None:
    async def run() -> None:
        streamer, weights, _ = streaming()
        send = streamer.prepare_poses(poses(1000))
        assert send(0)
        stop_client(0.5)
        assert not send(1)
        assert weights == [1.0]

    virtual.run(run())


# ---- a robot that is restarted ------------------------------------------------------------------

LIFTED_RAD = tuple(
    position - 1.0 if name == "left_elbow_joint" else position
    for name, position in zip(G1_29.names, G1_REST_RAD, strict=True)
)
ELBOW = G1_29.streamed.index("left_elbow_joint")
OLD, NEW = 11, 22
"""The handles of the robot's reader before and after it was restarted."""


class LiftedStream:
    """A stream that holds the left elbow 1 rad above its rest, and what it writes."""

    def __init__(self) -> None:
        self.written: list[ArmSetpoint] = []
        self.stopped: list[str] = []
        self.readers = frozenset({OLD})
        self.streamer: ArmStreamer[ArmSetpoint] = ArmStreamer(
            lambda setpoints, _, __: setpoints,
            self.written.append,
            self.stopped.append,
            lambda: self.readers,
        )
        self.streamer.begin(LIFTED_RAD, G1_29)
        pose = StreamPose(0, 1.0, tuple(LIFTED_RAD[column] for column in G1_29.taught_columns))
        self._send, self._sent = self.streamer.prepare_poses([pose] * 10_000), 0

    def send(self) -> bool:
        self._sent += 1
        return self._send(self._sent - 1)

    async def play(self, seconds: float, tick_ms: int | None, step_ms: int = 20) -> int | None:
        """Send poses and report the lifted arm, every 20 ms; return the last tick."""
        for _ in range(round(seconds / 0.02)):
            tick_ms = None if tick_ms is None else (tick_ms + step_ms) % 2**32
            self.streamer.on_joints(LIFTED_RAD, tick_ms)
            assert self.send(), self.stopped
            await asyncio.sleep(0.02)
        return tick_ms

    async def release(self) -> None:
        await self.streamer.wait_until_released()
        assert self.streamer.phase is None
        assert self.written[-1].weight == 0.0

    def elbows_rad(self, since: int) -> set[float]:
        """Return where the elbow was commanded, since a number of setpoints."""
        return {round(setpoint.joints_rad[ELBOW], 6) for setpoint in self.written[since:]}


AT_REST_RAD = round(G1_29.rest["left_elbow_joint"], 6)


def test_poses_of_a_stream_end_with_a_robot_whose_clock_starts_again() -> None:
    async def run() -> None:
        stream = LiftedStream()
        await stream.play(1.0, 60_000)
        before = len(stream.written)
        stream.streamer.on_joints(G1_REST_RAD, 250)
        assert not stream.send(), "no pose comes after the first state of the new robot"
        assert stream.streamer.phase is Phase.RETURN
        assert stream.stopped == ["the robot was restarted"]
        await stream.release()
        assert stream.elbows_rad(before) == {AT_REST_RAD}

    virtual.run(run())


@pytest.mark.parametrize("idle", [True, False])
def test_a_release_goes_on_from_the_pose_of_a_robot_whose_clock_starts_again(idle: bool) -> None:
    async def run() -> None:
        stream = LiftedStream()
        await stream.play(1.0, 3_000_000_000)
        stream.streamer.stop("enough")
        await asyncio.sleep(0.1)
        before = len(stream.written)
        stream.streamer.on_joints(G1_REST_RAD, 250, idle=idle)
        await stream.release()
        assert stream.elbows_rad(before) == {AT_REST_RAD}
        assert stream.stopped == ["enough"]

    virtual.run(run())


def test_a_reader_that_comes_while_states_are_missing_gets_no_setpoint_of_a_release() -> None:
    async def run() -> None:
        stream = LiftedStream()
        await stream.play(1.0, None)
        stream.streamer.stop("enough")
        await asyncio.sleep(0.3)
        assert stream.streamer.phase is Phase.RETURN
        before = len(stream.written)
        stream.readers |= {NEW}
        await stream.streamer.wait_until_released()
        assert len(stream.written) == before, "the robot may be another one now"
        stream.streamer.on_joints(G1_REST_RAD)
        await stream.release()
        assert stream.elbows_rad(before) == {AT_REST_RAD}

    virtual.run(run())


def test_a_reader_that_comes_while_states_are_missing_gets_no_pose() -> None:
    async def run() -> None:
        stream = LiftedStream()
        await stream.play(1.0, None)
        for _ in range(10):
            assert stream.send()
            await asyncio.sleep(0.02)
        before = len(stream.written)
        stream.readers = frozenset({NEW})
        assert not stream.send()
        await asyncio.sleep(0.01)
        assert stream.stopped == ["the robot was restarted"]
        await stream.streamer.wait_until_released()
        assert len(stream.written) == before
        stream.streamer.on_joints(G1_REST_RAD)
        await stream.release()
        assert stream.elbows_rad(before) == {AT_REST_RAD}

    virtual.run(run())


def test_a_reader_that_comes_while_states_come_does_not_end_a_stream() -> None:
    async def run() -> None:
        stream = LiftedStream()
        last = await stream.play(0.5, 60_000)
        stream.readers |= {NEW}
        last = await stream.play(0.5, last)
        stream.readers = frozenset({OLD})
        await stream.play(0.5, last)
        assert stream.stopped == []
        assert stream.streamer.phase is Phase.PLAYING

    virtual.run(run())


@pytest.mark.parametrize(
    ("tick_ms", "step_ms"),
    [
        pytest.param(2**32 - 500, 20, id="wraps"),
        pytest.param(2**32 - 500, 25, id="wraps and is fast"),
        pytest.param(60_000, 0, id="stands still"),
        pytest.param(60_000, -1, id="goes back by a little"),
        pytest.param(None, 20, id="is absent"),
    ],
)
def test_no_clock_that_is_odd_looks_like_a_restart(tick_ms: int | None, step_ms: int) -> None:
    async def run() -> None:
        stream = LiftedStream()
        await stream.play(2.0, tick_ms, step_ms)
        assert stream.stopped == []
        assert stream.streamer.phase is Phase.PLAYING

    virtual.run(run())


def test_a_clock_that_is_absent_for_a_while_does_not_look_like_a_restart() -> None:
    async def run() -> None:
        stream = LiftedStream()
        await stream.play(0.5, 60_000)
        await stream.play(0.5, None)
        await stream.play(0.5, 61_000)
        assert stream.stopped == []

    virtual.run(run())


def test_a_restart_is_noticed_if_the_first_states_have_no_time() -> None:
    async def run() -> None:
        stream = LiftedStream()
        await stream.play(0.5, 60_000)
        await stream.play(0.1, None)
        before = len(stream.written)
        stream.streamer.on_joints(G1_REST_RAD, 20)
        await stream.release()
        assert stream.elbows_rad(before) == {AT_REST_RAD}

    virtual.run(run())
