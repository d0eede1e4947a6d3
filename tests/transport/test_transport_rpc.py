"""Requests to a robot that answers in any order, twice, wrongly, or never; and who listens."""

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import virtual
from rig import client_of, rig
from rote import connect
from rote.errors import BadRequestError, LinkError, NoAnswerError, PeerLostError, RefusedError
from rote.session.rpc import ChannelTiming
from rote.transport.link import Carrier
from rote.transport.services.client import ServicesClient
from rote.transport.services.connection import RpcConnection
from rote.transport.webrtc.connection import ChannelConnection
from rote.wire.services import rpc
from rote.wire.webrtc import channel
from webrtc_ends import ScriptedRobot, run

Requests = list[rpc.RpcRequest]


async def opened(timing: ChannelTiming | None = None) -> tuple[RpcConnection, ScriptedRobot]:
    robot = ScriptedRobot()

    async def dial() -> Carrier:
        return robot

    port = RpcConnection("services://robot", ChannelConnection(dial, timing), reconnect=False)
    await port.open()
    return port, robot


CALLS = [
    rpc.LIST_ACTIONS,
    rpc.GET_FSM,
    rpc.CHECK_MODE,
    *(rpc.play_taught(f"action {n}") for n in range(97)),
    *(rpc.delete_taught(f"action {n}") for n in range(100)),
    *(rpc.set_fsm(n) for n in range(100)),
]
"""300 different questions."""


def in_reverse(requests: Requests) -> Requests:
    return requests[::-1]


def twice(requests: Requests) -> Requests:
    return requests + requests


def shuffled(requests: Requests) -> Requests:
    return random.Random(7).sample(requests, len(requests))


@pytest.mark.parametrize("order", [list, in_reverse, twice, shuffled])
def test_300_callers_get_their_own_answers_in_whatever_order(
    order: Callable[[Requests], Requests],
) -> None:
    async def story() -> None:
        port, robot = await opened()
        calls = [asyncio.create_task(port.call(call)) for call in CALLS]
        await asyncio.sleep(0.1)
        assert len({request.id for request in robot.requests}) == 300
        for request in order(robot.requests):
            robot.answer(request)
        for call, response in zip(CALLS, await asyncio.gather(*calls), strict=True):
            assert (response.service, response.api_id) == (call.service, call.api_id)
            assert response.data == call.parameter
        expected = {"reply to nothing": 300} if order is twice else {}
        assert port.session.dropped == expected
        await port.close()
        assert robot.closed

    run(story())


def test_answers_to_nobody_and_to_others_questions_are_counted_and_reach_nobody() -> None:
    async def story() -> None:
        port, robot = await opened()
        call = asyncio.create_task(port.call(rpc.play_taught("mine")))
        await asyncio.sleep(0.1)
        (request,) = robot.requests
        wrongs: tuple[dict[str, Any], ...] = (
            {"id": request.id + 1},
            {"id": -1},
            {"id": 2**62},
            {"api_id": rpc.ArmApi.DELETE_TAUGHT.value},
            {"service": "sport"},
            {"service": "bashrunner"},
        )
        for wrong in wrongs:
            robot.answer(request, **wrong)
        await asyncio.sleep(0.1)
        assert not call.done()
        assert port.session.dropped == {"reply to nothing": 6}
        robot.answer(request)
        assert (await call).data == request.parameter
        await port.close()

    run(story())


def test_a_question_that_stays_unanswered_fails_at_its_limit_and_a_late_answer_is_nobodys() -> None:
    async def story() -> None:
        port, robot = await opened(ChannelTiming(answer_s=3.0))
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(NoAnswerError, match="though it is connected"):
            await port.call(rpc.delete_taught("mine"))
        assert loop.time() - began == pytest.approx(3.0)
        assert len(robot.requests) == 1  # what changes something is asked once
        robot.answer(robot.requests[0])
        await asyncio.sleep(0.1)
        assert port.session.dropped == {"reply to nothing": 1}
        assert port.answers == {}
        with pytest.raises(NoAnswerError):
            await port.call(rpc.LIST_ACTIONS, read=True)
        assert len(robot.requests) == 4  # what only looks is asked again every second
        assert len({request.id for request in robot.requests[1:]}) == 1
        await port.close()

    run(story())


def test_who_gives_up_waiting_leaves_no_trace_and_disturbs_nobody() -> None:
    async def story() -> None:
        port, robot = await opened()
        calls = [asyncio.create_task(port.call(call)) for call in CALLS]
        await asyncio.sleep(0.1)
        for task in calls[::2]:
            task.cancel()
        await asyncio.sleep(0.1)
        assert len(port.answers) == 150
        for request in robot.requests:
            robot.answer(request)
        for call, task in list(zip(CALLS, calls, strict=True))[1::2]:
            assert (await task).data == call.parameter
        assert port.answers == {}
        await port.close()

    run(story())


@pytest.mark.parametrize("code", [7400, 7404, 3203, 12345, -1])
def test_a_refusal_is_raised_with_the_robots_code_in_words(code: int) -> None:
    async def story() -> None:
        port, robot = await opened()
        call = asyncio.create_task(port.call(rpc.play_taught("mine")))
        await asyncio.sleep(0.1)
        robot.answer(robot.requests[0], code=code)
        with pytest.raises(RefusedError) as caught:
            await call
        assert caught.value.code == code
        assert caught.value.message
        await port.close()

    run(story())


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["right", "other", "twice", "never", "chunks"]), max_size=12))
def test_whatever_a_robot_answers_nobody_gets_anothers_answer(ways: list[str]) -> None:
    async def story() -> None:
        port, robot = await opened(ChannelTiming(answer_s=1.0))
        names = [f"action {n}" for n in range(len(ways))]
        calls = [asyncio.create_task(port.call(rpc.delete_taught(name))) for name in names]
        await asyncio.sleep(0.1)
        for request, way in reversed(list(zip(robot.requests, ways, strict=True))):
            if way == "other":
                robot.answer(request, api_id=rpc.ArmApi.PLAY_TAUGHT.value, data="other")
            elif way == "chunks":
                whole = rpc.RpcResponse(
                    service="arm", api_id=request.api_id, id=request.id, data=request.parameter
                )
                for part in channel.split_response(whole, 7)[::-1]:
                    robot.say(part)
            elif way != "never":
                for _ in range(1 + (way == "twice")):
                    robot.answer(request)
        results = await asyncio.gather(*calls, return_exceptions=True)
        for name, way, result in zip(names, ways, results, strict=True):
            if isinstance(result, rpc.RpcResponse):
                assert json.loads(result.data) == {"action_name": name}
                assert way not in {"never", "other"}
            else:
                assert isinstance(result, NoAnswerError)
                assert way in {"never", "other"}
        await port.close()

    virtual.run(story())


def test_300_concurrent_requests_over_the_real_wire_each_get_their_own_answer() -> None:
    async def story() -> None:
        async with rig("webrtc") as one, connect(one.url, family="g1") as robot:
            port = client_of(robot, ServicesClient)
            one.fill(3)
            list_services = rpc.Call(rpc.ROBOT_STATE, rpc.RobotStateApi.LIST_SERVICES)
            kinds = [rpc.LIST_ACTIONS, rpc.GET_FSM, rpc.CHECK_MODE, list_services]
            wanted = [kinds[n * 7 % 4] for n in range(300)]
            answers = await asyncio.gather(*(port.call(call) for call in wanted))
            distinct: dict[rpc.Call, str] = {}
            for call, answer in zip(wanted, answers, strict=True):
                assert (answer.service, answer.api_id) == (call.service, call.api_id)
                assert distinct.setdefault(call, answer.data) == answer.data
            assert len(set(distinct.values())) == 4
            assert len({answer.id for answer in answers}) == 300
            assert len(rpc.decode_actions(distinct[rpc.LIST_ACTIONS])[1]) == 3
            assert port.session.dropped == {}

    run(story())


# ---- listeners ----------------------------------------------------------------------------------


def test_a_topic_is_asked_for_once_however_many_listen_and_until_the_last_is_gone() -> None:
    async def story() -> None:
        port, robot = await opened()
        heard: list[tuple[str, object]] = []
        forget = [
            port.on_topic("rt/x", lambda message, who=who: heard.append((who, message.data)))  # type: ignore[misc]
            for who in "ab"
        ]
        robot.say(channel.ChannelMessage("rt/x", 1))
        await asyncio.sleep(0.1)
        forget[0]()
        robot.say(channel.ChannelMessage("rt/x", 2))
        await asyncio.sleep(0.1)
        forget[1]()
        robot.say(channel.ChannelMessage("rt/x", 3))
        await asyncio.sleep(0.1)
        assert heard == [("a", 1), ("b", 1), ("b", 2)]
        assert [topic.active for topic in robot.topics] == [True, False]
        await port.close()

    run(story())


def test_who_stops_listening_twice_takes_nothing_from_others() -> None:
    async def story() -> None:
        port, robot = await opened()
        heard: list[object] = []
        forget = port.on_topic("rt/x", print)
        forget()
        port.on_topic("rt/x", lambda message: heard.append(message.data))
        forget()
        robot.say(channel.ChannelMessage("rt/x", 1))
        await asyncio.sleep(0.1)
        assert heard == [1]
        await port.close()

    run(story())


@pytest.mark.parametrize("topic", ["", "x" * 300])
def test_a_topic_that_cannot_be_is_refused_and_forgotten(topic: str) -> None:
    async def story() -> None:
        port, _ = await opened()
        for live in (True, False):
            with pytest.raises(BadRequestError):
                port.on_topic(topic, print)
            assert port._topics == {}
            if live:
                await port.close()

    run(story())


def test_what_waits_when_we_close_is_told_so() -> None:
    async def story() -> None:
        port, _ = await opened()
        call = asyncio.create_task(port.call(rpc.GET_FSM))
        await asyncio.sleep(0.5)
        await port.close()
        with pytest.raises(LinkError, match="was closed"):
            await call

    run(story())


def test_a_carrier_that_is_gone_fails_what_waits_at_once() -> None:
    async def story() -> None:
        port, robot = await opened()
        losses: list[object] = []
        port.on_loss(losses.append)
        calls = [asyncio.create_task(port.call(call)) for call in CALLS]
        await asyncio.sleep(0.5)
        robot.lost()
        for result in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(result, PeerLostError)
        assert len(losses) == 1
        with pytest.raises(PeerLostError):
            await port.call(rpc.GET_FSM)
        await port.close()
        await port.close()

    run(story())
