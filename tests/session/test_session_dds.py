"""A client's conversation over DDS: heard is there, silent is lost, and answers find their way."""

import pytest

from rote.errors import LocalProtocolError
from rote.session.dds import DdsSession
from rote.session.events import Opened, PeerLost, Unanswered
from rote.session.rpc import ChannelState, ChannelTiming, RequestAnswered
from rote.wire.services import rpc

TIMING = ChannelTiming(connect_s=5.0, answer_s=3.0, silence_s=2.5, retry_s=1.0)


def begun(now: float = 10.0) -> DdsSession:
    session = DdsSession(timing=TIMING, first_id=7, now=now)
    session.begin(now)
    assert session.events() == [Opened()]
    return session


def response_to(request: object, **how: object) -> rpc.RpcResponse:
    assert isinstance(request, rpc.RpcRequest)
    return rpc.RpcResponse(
        service=request.service,
        api_id=request.api_id,
        id=request.id,
        **how,  # type: ignore[arg-type]
    )


def test_it_says_nothing_by_itself() -> None:
    session = begun()
    session.tick(12.0)
    assert session.take_values() == []
    assert session.outgoing() == []


def test_a_robot_that_never_comes_is_given_up_in_time() -> None:
    session = DdsSession(timing=TIMING, now=10.0)
    assert session.due == 15.0
    session.tick(14.9)
    assert session.live
    session.tick(15.0)
    assert session.events() == [PeerLost(5.0)]
    assert session.state is ChannelState.LOST


def test_a_robot_that_falls_silent_is_lost_and_one_that_is_heard_is_not() -> None:
    session = begun()
    session.note_received(12.0)
    session.tick(14.4)
    assert session.live
    session.tick(14.5)
    assert session.events() == [PeerLost(2.5)]


def test_a_request_goes_out_as_it_is_and_its_answer_comes_back_once() -> None:
    session = begun()
    token = session.request(rpc.LIST_ACTIONS, 10.0)
    (request,) = session.take_values()
    assert isinstance(request, rpc.RpcRequest)
    assert (request.service, request.api_id, request.id) == ("arm", 7107, token)
    answer = response_to(request, data="[[],[]]")
    session.answer(answer, 11.0)
    session.answer(answer, 11.0)
    assert session.events() == [RequestAnswered(token, answer)]
    assert session.dropped == {"reply to nothing": 1}


def test_an_answer_to_somebody_elses_question_is_left_alone() -> None:
    session = begun()
    session.request(rpc.LIST_ACTIONS, 10.0)
    session.answer(rpc.RpcResponse(service="arm", api_id=7107, id=999), 10.1)
    session.answer(rpc.RpcResponse(service="sport", api_id=7107, id=7), 10.1)
    assert session.events() == []


def test_an_unanswered_read_is_asked_again_and_then_given_up() -> None:
    session = begun()
    token = session.request(rpc.GET_FSM, 10.0, read=True)
    for now in (11.0, 12.0, 13.0):
        session.note_received(now)
        session.tick(now)
    assert len(session.take_values()) == 3
    assert session.events() == [Unanswered(token, 3.0)]


def test_nothing_is_asked_before_the_robot_is_there_and_no_answer_is_taken() -> None:
    session = DdsSession(timing=TIMING, now=0.0)
    with pytest.raises(LocalProtocolError):
        session.request(rpc.LIST_ACTIONS, 0.0)
    session.answer(rpc.RpcResponse(service="arm", api_id=7107, id=1), 0.0)
    assert session.events() == []
    assert sum(session.dropped.values()) == 1
