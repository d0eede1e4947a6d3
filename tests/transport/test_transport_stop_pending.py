"""A stop that fails is never forgotten: it is the first request after a reconnect."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import virtual
from fault_cells import lifted
from fault_rig import fault_robot
from rig import SERVICES_HZ, Pipe, Rig, client_of, rig
from rote import messages as m
from rote.errors import LinkError, NoAnswerError, PeerLostError, RefusedError
from rote.messages import Phase
from rote.robot.message_robot import G1
from rote.transport.impair import Impairment
from rote.transport.services.client import ServicesClient
from rote.wire.services import rpc
from rote.wire.services.rpc import ArmApi
from test_services_wire import lose_answers

CUT_S, CUT_FOR_S = 5.0, 4.5
BACK_S = {"udp": 2.5, "dds": 1.5, "webrtc": 7.5}
"""How long after the link is restored a pending stop has reached the robot. Over UDP an attempt to
connect that began during the cut has to fail first. Over WebRTC the robot admits one client, and
gives up the one that was cut off after 10 s.
"""
REAL = tuple(BACK_S)


def clock() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def cut_link(wire: str) -> AsyncIterator[tuple[Rig, G1, float]]:
    """Yield a robot whose link is cut after CUT_S for CUT_FOR_S, and when the cut begins."""
    cut = Impairment(cut_after_s=CUT_S, cut_for_s=CUT_FOR_S)
    cut_at = clock() + CUT_S
    own = rig(wire, impairment=cut, services_hz=SERVICES_HZ)
    async with own as one, one.connect(timeout=2.0) as robot:
        yield one, robot, cut_at


def store_long(one: Rig) -> None:
    """Store an action of 30 s."""
    frames = (m.Keyframe(joint=15, time_ms=29_000, value_rad=0.3),)
    save = m.SaveAction(name="long", created_s=0, duration_ms=30_000, keyframes=frames)
    assert one.world.obey("test", save) == m.Status(m.Code.OK)


async def sleep_until(at: float) -> None:
    await asyncio.sleep(max(0.0, at - clock()))


@pytest.mark.parametrize("wire", REAL)
def test_a_stop_during_a_cut_is_sent_first_when_the_link_is_back(wire: str) -> None:
    async def story() -> None:
        async with cut_link(wire) as (one, robot, cut_at):
            store_long(one)
            playing = await robot.start("long")
            await sleep_until(cut_at + 0.2)
            assert one.world.state().phase is Phase.PLAYING
            pending = [robot.stop_pending]
            with pytest.raises(LinkError):
                await robot.stop()
            pending.append(robot.stop_pending)
            with pytest.raises(LinkError):
                await playing
            await sleep_until(cut_at + CUT_FOR_S)
            assert one.world.state().phase is Phase.PLAYING
            pending.append(robot.stop_pending)
            await asyncio.sleep(BACK_S[wire])
            assert one.world.state().phase in (Phase.RETURN, Phase.NONE)
            assert one.world.stopped_early
            pending.append(robot.stop_pending)
            assert pending == [False, True, True, False]
            assert [action.name for action in (await robot.actions()).taught] == ["long"]

    virtual.run(story())


@pytest.mark.parametrize("wire", REAL)
def test_a_playback_is_not_stopped_by_a_cut_alone(wire: str) -> None:
    async def story() -> None:
        async with cut_link(wire) as (one, robot, cut_at):
            store_long(one)
            with pytest.raises(PeerLostError):
                await robot.play("long")
            await sleep_until(cut_at + CUT_FOR_S + BACK_S[wire] + 1.0)
            assert one.world.state().phase is Phase.PLAYING
            assert not robot.stop_pending
            assert robot.state is not None
            assert robot.state.playing

    virtual.run(story())


@pytest.mark.parametrize("wire", REAL)
def test_a_playback_that_went_on_during_a_cut_is_stopped_when_the_block_is_left(wire: str) -> None:
    async def story() -> None:
        cut = Impairment(cut_after_s=CUT_S, cut_for_s=CUT_FOR_S)
        async with rig(wire, impairment=cut, services_hz=SERVICES_HZ) as one:
            cut_at = clock() + CUT_S
            async with one.connect(timeout=2.0) as robot:
                store_long(one)
                with pytest.raises(PeerLostError):
                    await robot.play("long")
                await sleep_until(cut_at + CUT_FOR_S + BACK_S[wire] + 1.0)
                assert one.world.state().phase is Phase.PLAYING
            assert one.world.stopped_early

    virtual.run(story())


def test_a_lost_playback_is_not_stopped_again_after_a_confirmed_stop() -> None:
    async def story() -> None:
        async with rig("services") as one, one.connect() as robot:
            store_long(one)
            playing = await robot.start("long")
            one.pipes[0].cut()
            with pytest.raises(PeerLostError):
                await playing
            await asyncio.sleep(2.0)
            await robot.stop()
            assert not robot._link.unfinished._end_functions

    virtual.run(story())


@pytest.mark.parametrize("wire", REAL)
def test_a_teaching_cut_off_from_its_robot_ends_when_the_link_is_back(wire: str) -> None:
    async def story() -> None:
        async with cut_link(wire) as (one, robot, cut_at):
            with pytest.raises(PeerLostError):
                async with robot.teach("wave"):
                    await asyncio.sleep(3600)
            assert robot.stop_pending
            await sleep_until(cut_at + CUT_FOR_S)
            assert one.world.body.soft, "the robot's own time-out is longer"
            await asyncio.sleep(BACK_S[wire])
            assert not one.world.body.soft
            assert not robot.stop_pending

    virtual.run(story())


@pytest.mark.parametrize("wire", ["memory", "services", "webrtc", "dds"])
def test_any_client_sees_arms_that_another_made_soft_and_makes_them_hold(wire: str) -> None:
    async def story() -> None:
        async with rig(wire) as one, one.connect() as robot, one.bystander() as other:
            teaching = asyncio.create_task(_teach(other))
            await asyncio.sleep(1.5)
            assert robot.state is not None
            assert robot.state.arms_soft
            await robot.stop()
            assert not one.world.body.soft
            assert not robot.stop_pending
            with pytest.raises(RefusedError):
                await teaching
            await asyncio.sleep(1.5)
            assert not robot.state.arms_soft

    virtual.run(story())


async def _teach(robot: G1) -> None:
    async with robot.teach("theirs"):
        await asyncio.sleep(60.0)


def test_a_stop_before_the_first_report_of_the_arms_makes_them_hold() -> None:
    async def story() -> None:
        async with rig("services") as one, one.bystander() as other:
            teaching = asyncio.create_task(_teach(other))
            await asyncio.sleep(1.0)
            async with one.connect() as robot:
                assert robot.state is None or not robot.state.has_phase
                await robot.stop()
                assert not one.world.body.soft
            with pytest.raises(RefusedError):
                await teaching

    virtual.run(story())


def test_a_stop_ends_a_teaching_whose_first_end_was_lost() -> None:
    async def story() -> None:
        async with rig("services") as one, one.connect() as robot:
            pipe = one.pipes[0]
            with pytest.raises(NoAnswerError):
                async with robot.teach("wave"):
                    await asyncio.sleep(0.6)
                    send = pipe.send
                    lose_requests(pipe, ArmApi.TEACH)
            assert one.world.body.soft
            assert robot.stop_pending
            pipe.send = send  # type: ignore[method-assign]
            await robot.stop()
            assert not one.world.body.soft
            assert not robot.stop_pending

    virtual.run(story())


def lose_requests(pipe: Pipe, api: ArmApi, most: float = float("inf")) -> None:
    """Lose the next requests of one kind."""
    send, lost = pipe.send, 0

    def lossy(message: str | bytes) -> None:
        nonlocal lost
        if isinstance(message, str) and f'"api_id":{int(api)}' in message.replace(" ", ""):
            lost += 1
            if lost <= most:
                return
        send(message)

    pipe.send = lossy  # type: ignore[method-assign]


@pytest.mark.parametrize("api", [ArmApi.TEACH, ArmApi.STOP_TAUGHT])
def test_a_stop_that_gets_lost_once_is_repeated(api: ArmApi) -> None:
    async def story() -> None:
        async with rig("services") as one, one.connect() as robot:
            store_long(one)
            if api is ArmApi.TEACH:
                async with robot.teach("wave"):
                    await asyncio.sleep(0.6)
                    lose_requests(one.pipes[0], api, most=1)
                    ended_at = clock()
                assert not one.world.body.soft
            else:
                playing = await robot.start("long")
                lose_requests(one.pipes[0], api, most=1)
                ended_at = clock()
                await robot.stop()
                assert not (await playing).completed
            assert clock() - ended_at < 8.0

    virtual.run(story())


def test_a_stop_whose_answers_are_lost_stays_pending_until_one_is_confirmed() -> None:
    async def story() -> None:
        async with rig("services") as one, one.connect() as robot:
            pipe = one.pipes[0]
            send = pipe.robot.send
            lose_answers(pipe, ArmApi.STOP_TAUGHT)
            with pytest.raises(NoAnswerError):
                await robot.stop()
            assert robot.stop_pending
            pipe.robot.send = send
            await robot.stop()
            assert not robot.stop_pending

    virtual.run(story())


def test_a_motion_that_is_accepted_after_a_failed_stop_supersedes_it() -> None:
    async def story() -> None:
        async with rig("services") as one, one.connect() as robot:
            store_long(one)
            pipe = one.pipes[0]
            send = pipe.robot.send
            lose_answers(pipe, ArmApi.STOP_TAUGHT)
            with pytest.raises(NoAnswerError):
                await robot.stop()
            pipe.robot.send = send
            await robot.start("long")
            assert not robot.stop_pending

    virtual.run(story())


def test_a_stop_while_a_reconnected_robot_is_greeted_is_sent_at_once() -> None:
    async def story() -> None:
        async with rig("services") as one, one.connect() as robot:
            store_long(one)
            await robot.start("long")
            client = client_of(robot, ServicesClient)
            connection = client.connection
            request, greeting = connection.request, asyncio.Event()

            async def slow_request(call: rpc.Call, **options: bool) -> rpc.RpcResponse:
                if call == rpc.GET_FSM:
                    greeting.set()
                    await asyncio.sleep(1.0)
                return await request(call, **options)

            connection.request = slow_request  # type: ignore[method-assign]
            one.pipes[0].cut()
            await greeting.wait()
            assert one.world.state().phase is Phase.PLAYING
            await robot.stop()
            assert one.world.stopped_early
            assert not robot.stop_pending

    virtual.run(story())


@pytest.mark.parametrize("silent_s", [0.05, pytest.param(0.5, marks=pytest.mark.soak), 1.5])
def test_a_stop_of_a_stream_into_a_cut_link_is_not_called_a_success(silent_s: float) -> None:
    async def story() -> None:
        async with fault_robot("dds") as one, one.connect() as robot:
            playing = robot.play_track(lifted())
            await playing.started()
            await asyncio.sleep(3.0)
            one.valve.cut = True
            await asyncio.sleep(silent_s)
            with pytest.raises(LinkError):
                await robot.stop()
            assert robot.stop_pending
            one.valve.cut = False
            await asyncio.sleep(BACK_S["dds"] + 6.0)
            assert not robot.stop_pending
            assert one.body == "still"

    virtual.run(story())


def test_a_stop_of_a_stream_is_confirmed_as_soon_as_the_robot_is_heard() -> None:
    async def story() -> None:
        async with fault_robot("dds") as one, one.connect() as robot:
            playing = robot.play_track(lifted())
            await playing.started()
            await asyncio.sleep(3.0)
            asked_at = clock()
            await robot.stop()
            assert clock() - asked_at < 0.1
            assert not robot.stop_pending

    virtual.run(story())


@pytest.mark.parametrize("later", ["stop", "motion"])
def test_a_stop_that_fails_after_a_later_request_succeeded_is_not_sent_again(later: str) -> None:
    """Else a reconnect would stop a motion that was started after a confirmed stop."""

    async def story() -> None:
        async with rig("services") as one, one.connect() as robot:
            store_long(one)
            pipe = one.pipes[0]
            send = pipe.send
            lose_requests(pipe, ArmApi.STOP_TAUGHT)
            first = asyncio.create_task(robot.stop())
            await asyncio.sleep(0.1)
            assert robot.stop_pending
            pipe.send = send  # type: ignore[method-assign]
            if later == "stop":
                await robot.stop()
            else:
                await robot.start("long")
            first.cancel()
            await asyncio.wait({first})
            assert not robot.stop_pending

    virtual.run(story())


def test_an_earlier_stop_that_is_confirmed_does_not_settle_a_later_one() -> None:
    async def story() -> None:
        async with rig("services") as one, one.connect() as robot:
            pipe = one.pipes[0]
            first = asyncio.create_task(robot.stop())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            lose_requests(pipe, ArmApi.STOP_TAUGHT)
            second = asyncio.create_task(robot.stop())
            await first
            assert robot.stop_pending
            with pytest.raises(NoAnswerError):
                await second
            assert robot.stop_pending

    virtual.run(story())


@pytest.mark.parametrize("wire", ["udp", "services"])
def test_a_lost_stop_is_not_repeated_after_a_later_one_was_confirmed(wire: str) -> None:
    async def story() -> None:
        async with rig(wire) as one, one.connect() as robot:
            store_long(one)
            link: Any = getattr(client_of(robot), "link", None) or one.pipes[0]
            send = link.send
            link.send = lambda _: None
            first = asyncio.create_task(robot.stop())
            await asyncio.sleep(0.02)
            link.send = send
            await robot.stop()
            playing = await robot.start("long")
            await asyncio.sleep(8.0)
            assert not playing.done
            assert one.world.state().phase is Phase.PLAYING
            await first

    virtual.run(story())


def test_a_stop_that_is_requested_between_two_attempts_to_reconnect_shortens_the_pause() -> None:
    async def story() -> None:
        cut_for_s = 20.0
        cut = Impairment(cut_after_s=CUT_S, cut_for_s=cut_for_s)
        back_at = clock() + CUT_S + cut_for_s
        async with rig("udp", impairment=cut) as one, one.connect(timeout=0.3) as robot:
            store_long(one)
            playing = await robot.start("long")
            with pytest.raises(LinkError):
                await playing
            await sleep_until(back_at + 0.1)
            assert not robot.stop_pending
            with pytest.raises(LinkError):
                await robot.stop()
            await asyncio.sleep(1.0)
            assert not robot.stop_pending
            assert one.world.stopped_early

    virtual.run(story())
