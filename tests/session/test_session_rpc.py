"""Two ends of a data channel wired back to back by hand; the time is a number."""

import dataclasses
import itertools
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rote.errors import BadRequestError, LocalProtocolError
from rote.session.events import Opened, PeerLost, Unanswered
from rote.session.rpc import (
    LIMITS_S,
    MAX_ANSWERS,
    MAX_PENDING,
    MAX_TEXT_LENGTH,
    MAX_TOPICS,
    REMEMBERED,
    TRANSITIONS,
    ChannelInput,
    ChannelState,
    ChannelTiming,
    Event,
    MessageReceived,
    RequestAnswered,
    RequestReceived,
    RpcSession,
)
from rote.session.teaching import Role
from rote.wire.services import rpc
from rote.wire.services.faults import Change, Fault, Faults
from rote.wire.services.rpc import RpcRequest, RpcResponse
from rote.wire.webrtc import channel
from rote.wire.webrtc.channel import (
    ChannelMessage,
    Chunk,
    Complaint,
    Heartbeat,
    Inner,
    MediaRequest,
    MediaTrack,
    Subscription,
    Unknown,
    Validation,
    Value,
)

START = 1000.0
"""When the tests begin. Not 0, because a real clock does not either."""
UNIX_S = 1770329262.0
CHALLENGE = "deadbeef"
ANSWER = Validation(channel.answer_challenge(CHALLENGE))
OK = Validation(channel.VALIDATION_OK)
NEEDED = Complaint(channel.VALIDATION_NEEDED)
PROBE = {"req_type": channel.RTT_PROBE, "uuid": "7"}
READ = rpc.LIST_ACTIONS
ENDS = ["client", "robot"]


# ---- by hand ------------------------------------------------------------------------------------


def said(session: RpcSession) -> list[Value]:
    """Return what a session has to send, read again."""
    return [channel.decode(message) for message in session.outgoing()]


def hear(session: RpcSession, *values: Value, now: float = START) -> None:
    for value in values:
        session.receive(channel.encode(value), now)


def answer(request: Value, code: int = 0, data: str = "") -> RpcResponse:
    assert isinstance(request, RpcRequest)
    return RpcResponse(
        service=request.service, api_id=request.api_id, id=request.id, code=code, data=data
    )


def idle(session: RpcSession) -> bool:
    """Say whether the session has nothing to send and nothing to tell."""
    return not session.outgoing() and not session.events()


def new_client(timing: ChannelTiming | None = None, first_id: int = 1) -> RpcSession:
    client = RpcSession(Role.CLIENT, timing=timing, first_id=first_id)
    client.open(START, unix_s=UNIX_S, utc_offset_s=-18_000)
    return client


def ready_client(timing: ChannelTiming | None = None, first_id: int = 1) -> RpcSession:
    client = new_client(timing, first_id)
    hear(client, Validation(CHALLENGE), OK)
    client.outgoing()
    client.events()
    return client


def new_robot() -> RpcSession:
    robot = RpcSession(Role.ROBOT)
    robot.open(START, challenge=CHALLENGE)
    robot.outgoing()
    return robot


def ready_robot() -> RpcSession:
    robot = new_robot()
    hear(robot, ANSWER)
    robot.outgoing()
    robot.events()
    return robot


@dataclass
class Ends:
    """A client and a robot with nothing between them."""

    client: RpcSession = field(default_factory=lambda: RpcSession(Role.CLIENT))
    robot: RpcSession = field(default_factory=lambda: RpcSession(Role.ROBOT))
    now: float = START

    def exchange(self) -> None:
        """Carry messages both ways until neither end has any."""
        while True:
            up, down = self.client.outgoing(), self.robot.outgoing()
            if not up and not down:
                return
            for message in up:
                self.robot.receive(message, self.now)
            for message in down:
                self.client.receive(message, self.now)

    def wait(self, seconds: float) -> None:
        """Let time pass, calling `tick` whenever it is due."""
        until = self.now + seconds
        while (due := min(self.client.due, self.robot.due)) <= until:
            self.now = max(self.now, due)
            self.client.tick(self.now)
            self.robot.tick(self.now)
            self.exchange()
        self.now = until


def connected() -> Ends:
    ends = Ends()
    ends.client.open(START)
    ends.robot.open(START, challenge=CHALLENGE)
    ends.exchange()
    assert ends.client.events() == ends.robot.events() == [Opened()]
    return ends


def asked(robot: RpcSession) -> list[RequestReceived]:
    return [event for event in robot.events() if isinstance(event, RequestReceived)]


def answers(client: RpcSession) -> list[RequestAnswered]:
    return [event for event in client.events() if isinstance(event, RequestAnswered)]


# ---- validation ---------------------------------------------------------------------------------


def test_challenge_answer_and_ok_make_both_ends_ready() -> None:
    client, robot = RpcSession(Role.CLIENT), RpcSession(Role.ROBOT)
    client.open(START)
    robot.open(START, challenge=CHALLENGE)
    assert idle(client)
    assert said(robot) == [Validation(CHALLENGE)]
    hear(client, Validation(CHALLENGE))
    assert client.state is ChannelState.ANSWERED
    assert said(client) == [ANSWER]
    assert client.challenge == robot.challenge == CHALLENGE
    hear(robot, ANSWER)
    assert said(robot) == [OK]
    assert robot.events() == [Opened()]
    hear(client, OK)
    assert client.events() == [Opened()]
    assert idle(client)
    assert client.state is robot.state is ChannelState.READY


def test_a_client_that_is_doubted_answers_the_last_challenge_again() -> None:
    client = new_client()
    hear(client, Validation("old"), Validation(CHALLENGE))
    client.outgoing()
    hear(client, NEEDED)
    assert said(client) == [ANSWER]
    hear(client, OK)
    assert client.state is ChannelState.READY
    hear(client, NEEDED)
    assert said(client) == [ANSWER]
    assert client.state is ChannelState.READY


def test_a_client_that_is_challenged_again_answers_again_and_stays_ready() -> None:
    client = ready_client()
    hear(client, Validation("another"), OK)
    assert said(client) == [Validation(channel.answer_challenge("another"))]
    assert client.state is ChannelState.READY
    assert client.events() == []


def test_a_client_does_not_answer_doubts_for_ever() -> None:
    client = new_client()
    hear(client, Validation(CHALLENGE), *[NEEDED] * 50)
    assert said(client) == [ANSWER] * MAX_ANSWERS
    assert client.dropped["too many challenges"] == 51 - MAX_ANSWERS
    hear(client, OK, NEEDED)
    assert said(client) == [ANSWER]


def test_two_ends_that_cannot_agree_come_to_rest() -> None:
    ends = Ends()
    ends.client.open(START)
    ends.robot.open(START, challenge=CHALLENGE)
    ends.robot.outgoing()
    hear(ends.client, Validation("what the robot never said"))
    ends.exchange()
    assert ends.robot.dropped["wrong answer"] == MAX_ANSWERS
    assert ends.client.state is ChannelState.ANSWERED
    ends.wait(10)
    assert ends.client.events() == [PeerLost(5.0)]


@pytest.mark.parametrize("value", [OK, NEEDED], ids=["ok", "doubt"])
def test_a_client_without_a_challenge_takes_neither_ok_nor_doubt(value: Value) -> None:
    client = new_client()
    hear(client, value)
    assert client.state is ChannelState.OPEN
    assert idle(client)
    assert client.dropped["unexpected validation"] == 1


@pytest.mark.parametrize("wrong", ["", CHALLENGE, channel.VALIDATION_OK, ANSWER.data[:-1]])
def test_a_robot_does_not_take_a_wrong_answer(wrong: str) -> None:
    robot = new_robot()
    hear(robot, Validation(wrong))
    assert robot.state is ChannelState.OPEN
    assert said(robot) == [NEEDED]
    hear(robot, ANSWER)
    assert said(robot) == [OK]
    assert robot.events() == [Opened()]


def test_a_robot_says_ok_again_to_the_right_answer_and_opens_once() -> None:
    robot = ready_robot()
    hear(robot, ANSWER, Validation("wrong"))
    assert said(robot) == [OK, NEEDED]
    assert robot.events() == []
    assert robot.state is ChannelState.READY


TO_ROBOT: list[Value] = [
    READ.request(1),
    Heartbeat("now", 1),
    Subscription("rt/x"),
    ChannelMessage("rt/x", 1),
    Inner({"req_type": "public_network_status"}),
    MediaRequest(MediaTrack.VIDEO, active=True),
    Unknown("levitate", {"type": "levitate"}),
]


@pytest.mark.parametrize("value", TO_ROBOT, ids=lambda value: type(value).__name__)
def test_a_robot_takes_nothing_before_validation(value: Value) -> None:
    robot = new_robot()
    hear(robot, value)
    assert said(robot) == [NEEDED]
    assert robot.events() == []
    assert robot.dropped["before validation"] == 1
    hear(robot, ANSWER)
    assert not robot.is_subscribed("rt/x")


def test_a_client_hears_nothing_but_validation_before_validation() -> None:
    client = new_client()
    hear(client, ChannelMessage("rt/x"), Faults(Change.ALL), answer(READ.request(1)))
    assert idle(client)
    assert client.dropped["before validation"] == 3


def test_connecting_is_given_up_after_connect_s() -> None:
    client = new_client()
    hear(client, Validation(CHALLENGE))
    client.outgoing()
    assert client.due == START + 5.0
    client.tick(START + 4.9)
    assert client.live
    client.tick(START + 5.0)
    assert client.state is ChannelState.LOST
    assert client.events() == [PeerLost(5.0)]


def test_a_session_is_opened_once_and_a_robot_needs_a_challenge() -> None:
    with pytest.raises(BadRequestError, match="challenge"):
        RpcSession(Role.ROBOT).open(START)
    for session in (new_client(), new_robot()):
        with pytest.raises(LocalProtocolError, match="new session"):
            session.open(START, challenge="x")
        session.close(START)
        with pytest.raises(LocalProtocolError, match="new session"):
            session.open(START, challenge="x")


@pytest.mark.parametrize("role", list(Role))
def test_a_session_in_which_nothing_has_begun_waits_for_nothing(role: Role) -> None:
    session = RpcSession(role)
    assert session.due == float("inf")
    session.tick(1e9)
    hear(session, Validation(CHALLENGE))
    assert idle(session)
    assert session.dropped.total() == 1


@pytest.mark.parametrize(("state", "event"), list(itertools.product(ChannelState, ChannelInput)))
def test_a_move_outside_the_table_is_refused_and_changes_nothing(
    state: ChannelState, event: ChannelInput
) -> None:
    session = RpcSession(Role.CLIENT)
    session.state = state
    assert session._transition(event) == ((state, event) in TRANSITIONS)
    assert session.state is TRANSITIONS.get((state, event), state)
    opens = session.state is ChannelState.READY and state is not ChannelState.READY
    assert session.events() == [Opened()] * opens


# ---- requests and answers -----------------------------------------------------------------------


def test_a_request_is_answered_end_to_end() -> None:
    ends = connected()
    token = ends.client.request(rpc.execute_preset(27), ends.now)
    ends.exchange()
    (event,) = asked(ends.robot)
    assert event.request == rpc.execute_preset(27).request(token)
    ends.robot.reply(event.token, 7401, '{"x":1}')
    ends.exchange()
    assert ends.client.events() == [
        RequestAnswered(token, answer(event.request, code=7401, data='{"x":1}'))
    ]
    assert idle(ends.client)
    assert idle(ends.robot)


def test_an_answer_may_bring_bytes() -> None:
    ends = connected()
    ends.client.request(READ, ends.now)
    ends.exchange()
    (event,) = asked(ends.robot)
    ends.robot.reply(event.token, binary=b"\x00\xff")
    ends.exchange()
    (answered,) = answers(ends.client)
    assert answered.response.binary == b"\x00\xff"


@pytest.mark.parametrize("first_id", [0, 1, 2**31 - 1, 2**62 - 1])
def test_ids_are_counted_from_where_they_are_told_to(first_id: int) -> None:
    client = ready_client(first_id=first_id)
    tokens = [client.request(READ, START) for _ in range(3)]
    assert tokens == [first_id, first_id + 1, first_id + 2]
    assert [value.id for value in said(client) if isinstance(value, RpcRequest)] == tokens


@pytest.mark.parametrize("first_id", [-1, 2**62])
def test_ids_that_would_run_out_are_refused(first_id: int) -> None:
    with pytest.raises(BadRequestError, match="first_id"):
        RpcSession(Role.CLIENT, first_id=first_id)


def test_a_thousand_ids_made_at_once_are_a_thousand_ids() -> None:
    client = ready_client()
    assert len({client.request(READ, START) for _ in range(1000)}) == 1000


@pytest.mark.parametrize(
    "change", [{"id": 2}, {"api_id": 7106}, {"service": "sport"}], ids=["id", "api id", "topic"]
)
def test_an_answer_with_a_wrong_id_topic_or_api_id_answers_nothing(
    change: dict[str, object],
) -> None:
    client = ready_client()
    token = client.request(READ, START)
    (request,) = said(client)
    wrong = dataclasses.replace(answer(request), **change)  # type: ignore[arg-type]  # one of three
    hear(client, wrong)
    assert client.events() == []
    assert client.dropped["reply to nothing"] == 1
    hear(client, answer(request))
    assert client.events() == [RequestAnswered(token, answer(request))]


def test_an_answer_without_an_api_id_is_known_by_its_id() -> None:
    client = ready_client()
    token = client.request(READ, START)
    (request,) = said(client)
    hear(client, dataclasses.replace(answer(request), api_id=0))
    assert client.events() == [RequestAnswered(token, answer(request))]


def test_a_second_answer_is_dropped() -> None:
    client = ready_client()
    client.request(READ, START)
    other = client.request(READ, START)
    first, _ = said(client)
    hear(client, answer(first), answer(first, code=3104))
    assert [event.token for event in answers(client)] == [other - 1]
    assert client.dropped["reply to nothing"] == 1


LIMITS: list[tuple[rpc.Call, float]] = [
    (READ, 3.0),
    (rpc.execute_preset(27), 30.0),
    (rpc.play_taught("bow"), 5.0),
    (rpc.start_teaching("bow"), 5.0),
    (rpc.KEEP_TEACHING, 3.0),
    (rpc.STOP_TEACHING, 3.0),
    (rpc.STOP_TAUGHT, 3.0),
    (rpc.set_fsm(500), 3.0),
    (rpc.Call("sport", 7106, "{}"), 3.0),
]


@pytest.mark.parametrize(
    ("call", "limit_s"), LIMITS, ids=[f"{c.service} {c.api_id} {c.parameter}" for c, _ in LIMITS]
)
def test_every_request_has_its_own_time_limit(call: rpc.Call, limit_s: float) -> None:
    client = ready_client()
    token = client.request(call, START)
    (request,) = said(client)
    hear(client, Heartbeat(), now=START + limit_s - 0.01)  # the robot is there
    client.tick(START + limit_s - 0.01)
    assert client.events() == []
    client.tick(START + limit_s)
    assert client.events() == [Unanswered(token, limit_s)]
    hear(client, answer(request), now=START + limit_s)
    assert client.events() == []
    assert client.dropped["reply to nothing"] == 1


def test_a_caller_may_set_the_time_limit() -> None:
    client = ready_client()
    token = client.request(rpc.execute_preset(27), START, limit_s=0.5)
    assert client.due == START + 0.5
    client.tick(START + 0.5)
    assert client.events() == [Unanswered(token, 0.5)]


@pytest.mark.parametrize("limit_s", [0, -1, float("nan")])
def test_a_time_limit_that_is_none_is_refused(limit_s: float) -> None:
    client = ready_client()
    with pytest.raises(BadRequestError, match="time limit"):
        client.request(READ, START, limit_s=limit_s)
    assert idle(client)


def test_the_limits_can_be_changed() -> None:
    client = ready_client(ChannelTiming(answer_s=1.0, limits_s={("arm", 7106): 2.0}))
    client.request(rpc.execute_preset(27), START)
    assert client.due == START + 2.0
    client.request(rpc.play_taught("bow"), START)
    assert client.due == START + 1.0
    assert ChannelTiming().limits_s == LIMITS_S


def test_an_answer_that_comes_before_the_tick_but_after_the_limit_is_late_all_the_same() -> None:
    client = ready_client()
    token = client.request(READ, START)
    (request,) = said(client)
    hear(client, answer(request), now=START + 3.0)
    assert client.events() == [Unanswered(token, 3.0)]
    assert client.dropped["late reply"] == 1


def test_only_what_is_marked_as_a_read_is_asked_again() -> None:
    client = ready_client()
    client.request(rpc.play_taught("bow"), START)
    client.outgoing()
    token = client.request(READ, START, read=True)
    first = client.outgoing()
    for seconds in (1.0, 2.0):
        hear(client, Heartbeat(), now=START + seconds)
        client.tick(START + seconds - 0.01)
        assert client.outgoing() == []
        client.tick(START + seconds)
        assert [m for m in client.outgoing() if '"req"' in str(m)] == first
    client.tick(START + 3.0)
    assert client.outgoing() == []
    assert client.events() == [Unanswered(token, 3.0)]


def test_an_answered_read_is_not_asked_again() -> None:
    client = ready_client()
    client.request(READ, START, read=True)
    (request,) = said(client)
    hear(client, answer(request))
    client.tick(START + 1.5)
    assert client.outgoing() == []


def test_nothing_can_be_asked_before_the_session_is_ready() -> None:
    for client in (RpcSession(Role.CLIENT), new_client()):
        with pytest.raises(LocalProtocolError):
            client.request(READ, START)
        with pytest.raises(LocalProtocolError):
            client.publish("rt/x", 1)
        with pytest.raises(LocalProtocolError):
            client.send(MediaRequest(MediaTrack.VIDEO, active=True))
        assert idle(client)


def test_each_end_does_only_what_is_its_own() -> None:
    client, robot = ready_client(), ready_robot()
    with pytest.raises(LocalProtocolError, match="only a client sends requests"):
        robot.request(READ, START)
    with pytest.raises(LocalProtocolError, match="cannot subscribe to topics"):
        robot.subscribe("rt/x")
    with pytest.raises(LocalProtocolError, match="unanswered"):
        client.reply(1)
    with pytest.raises(LocalProtocolError, match="does not send"):
        client.send(Faults(Change.ALL))
    with pytest.raises(LocalProtocolError, match="does not send"):
        robot.send(MediaRequest(MediaTrack.VIDEO, active=True))
    assert idle(client)
    assert idle(robot)


def test_more_requests_than_can_wait_are_refused_to_the_asker_but_a_stop_is_not() -> None:
    client = ready_client()
    for _ in range(MAX_PENDING):
        client.request(READ, START)
    with pytest.raises(LocalProtocolError, match="already waiting"):
        client.request(READ, START)
    client.request(rpc.STOP_TAUGHT, START)
    assert len(client.outgoing()) == MAX_PENDING + 1


def test_the_answer_to_a_stop_answers_the_same_stop_that_was_sent_before() -> None:
    """Repeated later, the older one would stop what is started from now on."""
    client = ready_client()
    older, newer = (client.request(rpc.STOP_TAUGHT, START) for _ in range(2))
    read = client.request(READ, START)
    *_, stop, _ = said(client)
    hear(client, answer(stop))
    assert [event.token for event in answers(client)] == [newer, older]
    client.tick(START + 60.0)
    assert [e.token for e in client.events() if isinstance(e, Unanswered)] == [read]


def test_a_request_that_may_not_be_asked_changes_nothing() -> None:
    client = ready_client()
    with pytest.raises(BadRequestError, match="sends no requests"):
        client.request(rpc.Call("shell", 1001, "{}"), START)
    assert idle(client)
    assert client.due == START + 2.0


def parts_of(request: Value, texts: Sequence[str]) -> list[Value]:
    return [
        Chunk(answer(request, data=text), index + 1, len(texts)) for index, text in enumerate(texts)
    ]


def test_an_answer_in_parts_is_put_together() -> None:
    client = ready_client()
    token = client.request(READ, START, read=True)
    (request,) = said(client)
    first, second = parts_of(request, ["[[],", "[]]"])
    hear(client, first)
    assert client.events() == []
    client.tick(START + 1.5)
    assert client.outgoing() == []  # not asked again: it is on its way
    hear(client, second, now=START + 1.5)
    assert client.events() == [RequestAnswered(token, answer(request, data="[[],[]]"))]
    hear(client, first)
    assert client.dropped["reply to nothing"] == 1


def test_parts_that_stop_coming_are_given_up_and_forgotten() -> None:
    client = ready_client()
    token = client.request(READ, START)
    (request,) = said(client)
    hear(client, parts_of(request, ["a", "b"])[0])
    assert len(client.chunks) == 1
    hear(client, Heartbeat(), now=START + 3)
    client.tick(START + 3)
    assert client.events() == [Unanswered(token, 3.0)]
    assert len(client.chunks) == 0


def test_a_whole_answer_ends_one_that_came_in_parts() -> None:
    client = ready_client()
    client.request(READ, START)
    (request,) = said(client)
    hear(client, parts_of(request, ["a", "b"])[0], answer(request, data="whole"))
    (event,) = answers(client)
    assert event.response.data == "whole"
    assert len(client.chunks) == 0


def test_parts_that_do_not_fit_together_leave_the_request_waiting() -> None:
    client = ready_client()
    client.request(READ, START)
    (request,) = said(client)
    hear(client, Chunk(answer(request), 1, 2), Chunk(answer(request), 2, 3))
    assert client.dropped["PayloadError"] == 1
    hear(client, answer(request, data="whole"))
    assert len(answers(client)) == 1


# ---- heartbeats and silence ---------------------------------------------------------------------


def test_a_client_sends_a_heartbeat_every_two_seconds_and_the_robot_echoes_it() -> None:
    client, robot = ready_client(), ready_robot()
    for count in range(1, 6):
        now = START + 2.0 * count
        client.tick(now - 0.01)
        assert client.outgoing() == []
        client.tick(now)
        (beat,) = said(client)
        assert beat == channel.make_heartbeat(UNIX_S + 2.0 * count, -18_000)
        hear(robot, beat, now=now)
        assert said(robot) == [beat]
        hear(client, beat, now=now)
    assert idle(client)
    assert idle(robot)


def test_the_first_heartbeat_bears_the_time_the_session_was_told() -> None:
    client = ready_client()
    client.tick(START + 2.0)
    assert said(client) == [Heartbeat("2026-02-05 17:07:44", 1770329264)]


def test_a_client_sends_no_heartbeat_before_it_is_ready() -> None:
    client = new_client()
    client.tick(START + 4.9)
    assert client.outgoing() == []


def test_two_ends_with_nothing_to_say_stay_together() -> None:
    ends = connected()
    ends.wait(3600)
    assert ends.client.live
    assert ends.robot.live
    assert idle(ends.client)
    assert idle(ends.robot)


def test_a_robot_silent_for_two_and_a_half_seconds_is_lost_and_all_calls_fail() -> None:
    client = ready_client()
    tokens = [client.request(rpc.execute_preset(n), START) for n in range(3)]
    client.tick(START + 2.0)
    assert client.due == START + 2.5
    client.tick(START + 2.49)
    assert client.events() == []
    client.tick(START + 2.5)
    assert client.state is ChannelState.LOST
    assert client.events() == [*(Unanswered(token, 2.5) for token in tokens), PeerLost(2.5)]
    assert client.due == float("inf")


@pytest.mark.parametrize(
    "value", [Heartbeat(), ChannelMessage("rt/x"), Faults(Change.ALL), answer(READ.request(99))]
)
def test_whatever_is_heard_keeps_the_robot_from_being_lost(value: Value) -> None:
    client = ready_client()
    for step in range(1, 20):
        client.tick(START + step)
        hear(client, value, now=START + step)
    assert client.live


def test_garbage_does_not_count_as_being_heard() -> None:
    client = ready_client()
    client.tick(START + 2.0)
    client.receive("garbage", START + 2.4)
    client.receive(b"\xff", START + 2.4)
    client.tick(START + 2.5)
    assert client.state is ChannelState.LOST


def test_a_computer_that_slept_asks_before_it_calls_the_robot_lost() -> None:
    client = ready_client()
    client.tick(START + 3600)
    assert client.live
    assert [type(value) for value in said(client)] == [Heartbeat]
    assert client.due == START + 3600.5
    client.tick(START + 3600.5)
    assert client.events() == [PeerLost(3600.5)]


def test_a_computer_that_slept_asks_again_although_it_was_answered_before() -> None:
    client = ready_client()
    client.tick(START + 2.0)
    hear(client, Heartbeat(), now=START + 2.1)
    client.outgoing()
    client.tick(START + 3600)
    assert client.live
    assert len(client.outgoing()) == 1


def test_a_computer_that_slept_goes_on_when_the_robot_answers() -> None:
    client = ready_client()
    client.tick(START + 3600)
    hear(client, Heartbeat(), now=START + 3600.1)
    client.tick(START + 3601)
    assert client.live


def test_a_robot_that_falls_silent_between_heartbeats_is_lost_two_and_a_half_seconds_later() -> (
    None
):
    client = ready_client()
    hear(client, ChannelMessage("rt/x"), now=START + 1.9)
    client.tick(START + 2.0)
    assert client.due == START + 4.0
    client.tick(START + 4.0)
    assert client.due == pytest.approx(START + 4.4)
    client.tick(START + 4.4)
    assert client.state is ChannelState.LOST


@pytest.mark.parametrize("make", [new_robot, ready_robot])
def test_a_client_silent_for_ten_seconds_is_lost(make: Callable[[], RpcSession]) -> None:
    robot = make()
    robot.tick(START + 9.9)
    assert robot.live
    robot.tick(START + 10.0)
    assert robot.events() == [PeerLost(10.0)]
    assert robot.state is ChannelState.LOST


def test_the_carrier_may_say_that_the_peer_is_gone() -> None:
    client = ready_client()
    token = client.request(READ, START)
    client.lose(START + 1)
    client.lose(START + 2)
    assert client.events() == [Unanswered(token, 1.0), PeerLost(1.0)]
    assert client.state is ChannelState.LOST


def test_a_probe_of_the_round_trip_is_sent_back() -> None:
    client = ready_client()
    hear(client, Inner(PROBE, answer=True))
    assert said(client) == [Inner(PROBE)]
    assert client.events() == []


def test_what_cannot_be_echoed_is_dropped() -> None:
    client = ready_client()
    probe = json.dumps({"type": "rtc_inner_req", "info": {**PROBE, "x": "HUGE"}})
    client.receive(probe.replace('"HUGE"', "1e999"), START)
    robot = ready_robot()
    text = "é" * (channel.MAX_MESSAGE // 2)
    robot.receive(f'{{"type":"heartbeat","data":{{"timeInStr":"{text}","timeInNum":1}}}}', START)
    for session in (client, robot):
        assert idle(session)
        assert session.dropped["BadRequestError"] == 1


# ---- the robot's end ----------------------------------------------------------------------------


def test_a_repeated_request_is_answered_again_but_handed_out_once() -> None:
    robot = ready_robot()
    request = READ.request(7)
    hear(robot, request, request)
    (event,) = asked(robot)
    assert robot.outgoing() == []
    robot.reply(event.token, data="[[],[]]")
    (first,) = robot.outgoing()
    hear(robot, request, request)
    assert robot.outgoing() == [first, first]
    assert robot.events() == []
    assert robot.dropped["repeated request"] == 3


def test_requests_that_share_an_id_are_told_apart_by_what_they_ask() -> None:
    robot = ready_robot()
    others = [rpc.execute_preset(1), rpc.execute_preset(2), rpc.set_fsm(1), READ]
    hear(robot, *(call.request(7) for call in others))
    events = asked(robot)
    assert [event.request for event in events] == [call.request(7) for call in others]
    for event in events:
        robot.reply(event.token, code=event.request.api_id)
    assert [value.code for value in said(robot) if isinstance(value, RpcResponse)] == [
        call.api_id for call in others
    ]


def test_a_request_of_any_service_is_handed_out() -> None:
    robot = ready_robot()
    request = {"header": {"identity": {"id": 1, "api_id": 2}}, "parameter": "?"}
    topic = f"rt/api/{'x' * (channel.MAX_TOPIC - 15)}/request"
    robot.receive(json.dumps({"type": "req", "topic": topic, "data": request}), START)
    (event,) = asked(robot)
    robot.reply(event.token, 3203)
    assert len(robot.outgoing()) == 1


def test_a_request_that_wants_no_reply_gets_none() -> None:
    robot = ready_robot()
    request = READ.request(7, noreply=True)
    hear(robot, request)
    (event,) = asked(robot)
    robot.reply(event.token, 7402)
    hear(robot, request)
    assert idle(robot)


def test_a_request_is_answered_once() -> None:
    robot = ready_robot()
    hear(robot, READ.request(7))
    (event,) = asked(robot)
    robot.reply(event.token)
    for token in (event.token, 99):
        with pytest.raises(LocalProtocolError, match="no unanswered request"):
            robot.reply(token)


def test_an_answer_that_cannot_be_sent_can_be_given_again() -> None:
    robot = ready_robot()
    hear(robot, READ.request(7))
    (event,) = asked(robot)
    with pytest.raises(BadRequestError):
        robot.reply(event.token, data="x" * (channel.MAX_ASSEMBLED + 1))
    robot.reply(event.token, 3202)
    assert len(robot.outgoing()) == 1


def test_a_robot_asked_too_much_says_so_and_forgets_the_oldest() -> None:
    robot = ready_robot()
    for number in range(MAX_PENDING + 1):
        hear(robot, READ.request(number))
    assert len(asked(robot)) == MAX_PENDING
    assert said(robot) == [answer(READ.request(MAX_PENDING), code=3202)]
    for number in range(MAX_PENDING + 1, REMEMBERED + 10):
        hear(robot, READ.request(number))
    assert len(robot.remembered) == REMEMBERED


def test_whom_the_client_no_longer_hears_is_not_told() -> None:
    robot = ready_robot()
    hear(robot, READ.request(7))
    (event,) = asked(robot)
    robot.lose(START + 1)
    robot.events()
    robot.reply(event.token)
    assert idle(robot)


TO_CLIENT: list[Value] = [
    ChannelMessage("rt/x", {"a": 1}),
    Faults(Change.ADDED, (Fault(1, 300, 16),)),
    Inner({"execution": "ok"}, answer=True),
    Complaint("something else"),
    Unknown("levitate", {"type": "levitate"}),
]


@pytest.mark.parametrize("value", TO_CLIENT, ids=lambda value: type(value).__name__)
def test_a_client_passes_on_what_is_not_its_business(value: Value) -> None:
    client = ready_client()
    hear(client, value)
    assert client.events() == [MessageReceived(value)]
    assert client.outgoing() == []


@pytest.mark.parametrize("value", TO_ROBOT[2:], ids=lambda value: type(value).__name__)
def test_a_robot_passes_on_what_is_not_its_business(value: Value) -> None:
    robot = ready_robot()
    hear(robot, value)
    assert robot.events() == [MessageReceived(value)]
    assert robot.outgoing() == []


@pytest.mark.parametrize(
    "value", [READ.request(1), Subscription("rt/x"), MediaRequest(MediaTrack.AUDIO, active=True)]
)
def test_a_client_drops_what_only_clients_say(value: Value) -> None:
    client = ready_client()
    hear(client, value)
    assert idle(client)
    assert client.dropped["not for a client"] == 1


@pytest.mark.parametrize("value", [answer(READ.request(1)), Faults(Change.ALL), NEEDED])
def test_a_robot_drops_what_only_robots_say(value: Value) -> None:
    robot = ready_robot()
    hear(robot, value)
    assert idle(robot)
    assert robot.dropped["not for a robot"] == 1


def test_what_has_no_answer_is_sent_as_it_is() -> None:
    client, robot = ready_client(), ready_robot()
    client.send(MediaRequest(MediaTrack.VIDEO, active=True))
    client.publish("rt/wirelesscontroller", {"lx": 0})
    assert said(client) == [
        MediaRequest(MediaTrack.VIDEO, active=True),
        ChannelMessage("rt/wirelesscontroller", {"lx": 0}),
    ]
    robot.send(Faults(Change.ALL))
    assert said(robot) == [Faults(Change.ALL)]


# ---- subscriptions ------------------------------------------------------------------------------


def test_a_robot_publishes_only_what_is_wanted_and_only_while_it_is() -> None:
    ends = connected()
    ends.robot.publish("rt/x", 1)
    assert ends.robot.outgoing() == []
    ends.client.subscribe("rt/x")
    ends.exchange()
    assert ends.robot.events() == [MessageReceived(Subscription("rt/x"))]
    ends.robot.publish("rt/x", 2, b"\x01")
    ends.robot.publish("rt/y", 3)
    ends.exchange()
    assert ends.client.events() == [MessageReceived(ChannelMessage("rt/x", 2, b"\x01"))]
    ends.client.subscribe("rt/x", active=False)
    ends.exchange()
    ends.robot.publish("rt/x", 4)
    assert ends.robot.outgoing() == []


def test_a_robot_publishes_nothing_before_validation() -> None:
    robot = new_robot()
    robot.publish("rt/x", 1)
    assert robot.outgoing() == []


def test_what_is_wanted_before_validation_is_asked_for_after_it_once_each() -> None:
    client = RpcSession(Role.CLIENT)
    for topic in ("rt/b", "rt/a", "rt/b", "rt/c"):
        client.subscribe(topic)
    client.subscribe("rt/c", active=False)
    client.subscribe("rt/never", active=False)
    client.open(START)
    hear(client, Validation(CHALLENGE))
    assert said(client) == [ANSWER]
    hear(client, OK, OK)
    assert said(client) == [Subscription("rt/b"), Subscription("rt/a")]


def test_a_topic_that_cannot_be_is_refused_and_not_remembered() -> None:
    client = new_client()
    with pytest.raises(BadRequestError):
        client.subscribe("")
    hear(client, Validation(CHALLENGE), OK)
    assert said(client) == [ANSWER]


def test_there_is_a_measure_to_topics() -> None:
    client, robot = ready_client(), ready_robot()
    for number in range(MAX_TOPICS):
        client.subscribe(f"rt/{number}")
        hear(robot, Subscription(f"rt/{number}"))
    robot.events()
    hear(robot, Subscription("rt/more"))
    assert robot.dropped["too many topics"] == 1
    assert robot.events() == []
    with pytest.raises(LocalProtocolError, match="topics"):
        client.subscribe("rt/more")
    client.subscribe("rt/7")
    assert all(robot.is_subscribed(f"rt/{number}") for number in range(MAX_TOPICS))
    assert not robot.is_subscribed("rt/more")


# ---- the end ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "lose"])
@pytest.mark.parametrize("end", ENDS)
def test_nothing_happens_after_the_end(end: str, how: str) -> None:
    session = ready_client() if end == "client" else ready_robot()
    getattr(session, how)(START)
    session.events()
    hear(session, Validation(CHALLENGE), ANSWER, Heartbeat(), READ.request(1))
    session.tick(START + 1e6)
    session.lose(START + 1e6)
    assert idle(session)
    assert session.due == float("inf")
    assert not session.live
    assert session.dropped.total() == 4
    with pytest.raises(LocalProtocolError):
        session.request(READ, START)
    with pytest.raises(LocalProtocolError):
        session.subscribe("rt/x")
    with pytest.raises(LocalProtocolError):
        session.send(Inner({}))


def test_closing_fails_what_is_waiting_and_says_nothing_to_the_peer() -> None:
    client = ready_client()
    token = client.request(READ, START)
    client.outgoing()
    client.close(START + 1)
    client.close(START + 2)
    assert client.events() == [Unanswered(token, 1.0)]
    assert client.outgoing() == []
    assert client.state is ChannelState.CLOSED


# ---- anything at all ----------------------------------------------------------------------------

SOME: list[Value] = [*TO_ROBOT, *TO_CLIENT, OK, NEEDED, ANSWER, Validation(CHALLENGE)]
anything = st.one_of(
    st.text(),
    st.binary(),
    st.sampled_from(SOME).map(channel.encode),
    st.builds(
        lambda kind, data: json.dumps({"type": kind, "topic": "rt/api/arm/response", "data": data}),
        st.sampled_from(["req", "res", "msg", "validation", "rtc_inner_req", "heartbeat"]),
        st.none() | st.text() | st.dictionaries(st.text(), st.integers()),
    ),
)


@given(st.sampled_from(list(Role)), st.lists(anything, max_size=8), st.booleans())
def test_no_message_at_all_makes_a_session_raise(
    role: Role, messages: list[str | bytes], ready: bool
) -> None:
    if role is Role.CLIENT:
        session = ready_client() if ready else new_client()
    else:
        session = ready_robot() if ready else new_robot()
    for step, message in enumerate(messages):
        session.receive(message, START + step / 10)
        session.tick(START + step / 10)
    for out in session.outgoing():
        channel.decode(out)


# ---- a crowd, and a bad peer --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_three_hundred_requests_at_once_each_get_their_own_answer(seed: int) -> None:
    rng = random.Random(seed)
    client = ready_client(first_id=rng.randrange(2**31))
    calls = [
        lambda: rpc.execute_preset(rng.randrange(40)),
        lambda: rpc.play_taught(rng.choice("abc")),
        lambda: rpc.LIST_ACTIONS,
        lambda: rpc.GET_FSM,
        lambda: rpc.CHECK_MODE,
    ]
    tokens = {client.request(rng.choice(calls)(), START): None for _ in range(300)}
    requests = [value for value in said(client) if isinstance(value, RpcRequest)]
    lost = set(rng.sample(sorted(tokens), 30))
    flying: list[Value] = []
    for request in requests:
        own = answer(request, data=f"answer to {request.id}")
        foreign = [
            dataclasses.replace(own, id=own.id + 1_000_000, data="foreign"),
            dataclasses.replace(own, api_id=own.api_id + 1, data="foreign"),
            dataclasses.replace(own, service="voice", data="foreign"),
        ]
        flying += rng.sample(foreign, rng.randrange(3))
        if request.id in lost:
            continue
        if rng.random() < 0.1:
            flying += parts_of(request, [own.data[:5], own.data[5:]])
        else:
            flying += [own] * rng.choice([1, 1, 1, 2, 3])
    rng.shuffle(flying)
    hear(client, *flying, now=START + 1)
    told = answers(client)
    assert sorted(event.token for event in told) == sorted(tokens.keys() - lost)
    assert all(event.response.data == f"answer to {event.token}" for event in told)
    assert client.dropped["reply to nothing"] >= 30
    for now in range(2, 32):
        hear(client, Heartbeat(), *rng.sample(flying, 20), now=START + now)
        client.tick(START + now)
    events = client.events()
    assert sorted(e.token for e in events if isinstance(e, Unanswered)) == sorted(lost)
    assert len(events) == 30
    late = [answer(request, data="late") for request in requests if request.id in lost]
    hear(client, *late, now=START + 31)
    assert client.events() == []
    assert client.due == START + 32  # nothing is left but the next heartbeat


class Crowd(RuleBasedStateMachine):
    """Two ends, and between them replies that are shuffled, lost, repeated, late and forged."""

    @initialize()
    def begin(self) -> None:
        self.ends = connected()
        self.up: list[str | bytes] = []
        self.down: list[str | bytes] = []
        self.waiting: set[int] = set()
        self.carried_out: dict[int, int] = {}
        self.open: list[RequestReceived] = []

    def settle(self) -> None:
        self.sound = False
        self.up += self.ends.client.outgoing()
        self.down += self.ends.robot.outgoing()
        for asked_for in asked(self.ends.robot):
            number = asked_for.request.id
            assert number not in self.carried_out, "handed out twice"
            self.carried_out[number] = asked_for.token
            self.open.append(asked_for)
        for event in self.ends.client.events():
            self.take(event)
        self.sound = True

    def take(self, event: Event) -> None:
        if isinstance(event, RequestAnswered):
            assert event.response.data == f"answer to {event.token}"
            self.waiting.remove(event.token)
        elif isinstance(event, Unanswered):
            self.waiting.remove(event.token)
        else:
            assert isinstance(event, MessageReceived)

    @rule(read=st.booleans(), which=st.sampled_from([READ, rpc.GET_FSM, rpc.execute_preset(1)]))
    def ask(self, read: bool, which: rpc.Call) -> None:
        self.waiting.add(self.ends.client.request(which, self.ends.now, read=read))
        self.settle()

    @precondition(lambda self: self.up)
    @rule(which=st.integers(0, 99), keep=st.booleans())
    def deliver_up(self, which: int, keep: bool) -> None:
        message = self.up[which % len(self.up)] if keep else self.up.pop(which % len(self.up))
        self.ends.robot.receive(message, self.ends.now)
        self.settle()

    @precondition(lambda self: self.down)
    @rule(which=st.integers(0, 99), keep=st.booleans())
    def deliver_down(self, which: int, keep: bool) -> None:
        index = which % len(self.down)
        message = self.down[index] if keep else self.down.pop(index)
        self.ends.client.receive(message, self.ends.now)
        self.settle()

    @precondition(lambda self: self.down)
    @rule(which=st.integers(0, 99), by=st.integers(-3, 3).filter(bool))
    def forge(self, which: int, by: int) -> None:
        value = channel.decode(self.down[which % len(self.down)])
        if isinstance(value, RpcResponse):
            for forged in (
                dataclasses.replace(value, id=value.id + 1000 + by),
                dataclasses.replace(value, api_id=value.api_id + by),
                dataclasses.replace(value, service="voice"),
            ):
                hear(self.ends.client, forged, now=self.ends.now)
        self.settle()

    @precondition(lambda self: self.up or self.down)
    @rule(which=st.integers(0, 99))
    def lose(self, which: int) -> None:
        flying = self.up if self.up and (which % 2 or not self.down) else self.down
        flying.pop(which % len(flying))

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 99))
    def answer_one(self, which: int) -> None:
        event = self.open.pop(which % len(self.open))
        self.ends.robot.reply(event.token, data=f"answer to {event.request.id}")
        self.settle()

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0]))
    def wait(self, seconds: float) -> None:
        self.ends.now += seconds
        hear(self.ends.client, ChannelMessage("rt/x"), now=self.ends.now)  # the robot is there
        hear(self.ends.robot, Heartbeat(), now=self.ends.now)
        self.ends.client.tick(self.ends.now)
        self.ends.robot.tick(self.ends.now)
        self.settle()

    @invariant()
    def what_waits_is_known(self) -> None:
        if hasattr(self, "ends"):
            assert set(self.ends.client.pending) == self.waiting

    def teardown(self) -> None:
        if not getattr(self, "sound", False):
            return  # a rule has failed, and its failure is the one to show
        for _ in range(35):
            self.wait(1.0)
        assert not self.waiting


def test_whatever_happens_between_the_ends_each_request_gets_its_own_answer_or_none() -> None:
    run_state_machine_as_test(Crowd, settings=settings(deadline=None, stateful_step_count=40))


# ---- long answers, and none ---------------------------------------------------------------------


@given(st.text(max_size=400), st.integers(1, 120))
def test_an_answer_of_any_length_arrives_whole(text: str, most: int) -> None:
    ends = Ends(robot=RpcSession(Role.ROBOT, max_text_length=most))
    ends.client.open(START)
    ends.robot.open(START, challenge=CHALLENGE)
    ends.exchange()
    token = ends.client.request(READ, START)
    ends.exchange()
    (question,) = asked(ends.robot)
    ends.robot.reply(question.token, 0, text)
    ends.exchange()
    (got,) = answers(ends.client)
    assert (got.token, got.response.data) == (token, text)


def test_a_long_answer_goes_in_parts_and_in_parts_again_when_the_request_is_repeated() -> None:
    robot = ready_robot()
    request = READ.request(7)
    hear(robot, request)
    (question,) = asked(robot)
    robot.reply(question.token, 0, "x" * (2 * MAX_TEXT_LENGTH + 1))
    parts = said(robot)
    assert [(p.index, p.count) for p in parts if isinstance(p, Chunk)] == [
        (1, 3),
        (2, 3),
        (3, 3),
    ]
    assert all(len(channel.encode(part)) < 65_536 for part in parts)
    hear(robot, request)
    assert said(robot) == parts


def test_a_message_that_holds_nothing_is_refused() -> None:
    with pytest.raises(BadRequestError):
        RpcSession(Role.ROBOT, max_text_length=0)


def test_an_ignored_request_is_never_answered_and_not_kept() -> None:
    robot = ready_robot()
    request = READ.request(7)
    hear(robot, request)
    (question,) = asked(robot)
    robot.ignore(question.token)
    robot.ignore(question.token)
    hear(robot, request)
    assert idle(robot)
    with pytest.raises(LocalProtocolError):
        robot.reply(question.token)


def test_a_robot_knows_what_its_client_wants() -> None:
    robot = new_robot()
    hear(robot, Subscription("rt/x"))
    assert not robot.is_subscribed("rt/x")
    hear(robot, ANSWER, Subscription("rt/x"))
    assert robot.is_subscribed("rt/x")
    assert not robot.is_subscribed("rt/y")
    hear(robot, Subscription("rt/x", active=False))
    assert not robot.is_subscribed("rt/x")


@pytest.mark.parametrize(
    ("call", "limit_s"),
    [(rpc.start_teaching("wave"), 5.0), (rpc.STOP_TEACHING, 3.0), (rpc.play_taught("wave"), 5.0)],
)
def test_the_start_of_a_teaching_has_more_time_than_its_end(call: rpc.Call, limit_s: float) -> None:
    session = ready_client(ChannelTiming(silence_s=60.0))
    session.events()
    session.request(call, START)
    session.tick(START + limit_s - 0.01)
    assert not session.events()
    session.tick(START + limit_s + 0.01)
    assert [type(event) for event in session.events()] == [Unanswered]
