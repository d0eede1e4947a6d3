"""What was said in a data channel, told as a story with times."""

import pytest

from rote.capture.decode.dialogue import Dialogue, sender_is_robot
from rote.wire.services import rpc
from rote.wire.services.faults import Change, Fault, Faults
from rote.wire.services.rpc import ArmState, Call, RpcResponse
from rote.wire.webrtc import channel

SECOND = 10**9


def ask(talk: Dialogue, at_s: float, call: Call, number: int) -> None:
    talk.add_message(int(at_s * SECOND), call.request(number))


def answer(talk: Dialogue, at_s: float, call: Call, number: int, code: int = 0) -> None:
    response = RpcResponse(service=call.service, api_id=call.api_id, id=number, code=code)
    talk.add_message(int(at_s * SECOND), response)


def arms(talk: Dialogue, at_s: float, state: ArmState) -> None:
    message = channel.ChannelMessage(rpc.ARM_STATE_TOPIC, rpc.encode_arm_state(state))
    talk.add_message(int(at_s * SECOND), message)


def lines(talk: Dialogue) -> list[tuple[str, float, float | None]]:
    return [
        (entry.kind, entry.start_ns / 1e9, None if entry.end_ns is None else entry.end_ns / 1e9)
        for entry in talk.timeline()
    ]


def test_questions_find_their_answers_by_number_and_not_by_order() -> None:
    talk = Dialogue()
    ask(talk, 1, rpc.LIST_ACTIONS, 7)
    ask(talk, 2, rpc.GET_FSM, 8)
    answer(talk, 3, rpc.GET_FSM, 8)
    answer(talk, 5, rpc.LIST_ACTIONS, 7)
    answer(talk, 6, rpc.LIST_ACTIONS, 99)
    assert [pair.latency_s for pair in talk.pairs] == [4.0, 1.0]
    assert [pair.name for pair in talk.pairs] == ["arm 7107 list actions", "sport 7001 get fsm"]
    assert lines(talk) == [("list", 1.0, 5.0)]


def test_a_question_without_an_answer_has_no_end() -> None:
    talk = Dialogue()
    ask(talk, 1, rpc.LIST_ACTIONS, 7)
    (pair,) = talk.pairs
    assert pair.latency_s is None
    assert pair.outcome == "no answer"
    assert pair.document()["code"] is None
    assert lines(talk) == [("list", 1.0, None)]


def test_an_answer_in_parts_is_one_answer() -> None:
    talk = Dialogue()
    ask(talk, 1, rpc.LIST_ACTIONS, 7)
    response = RpcResponse(service="arm", api_id=7107, id=7, data="x" * 90)
    for n, part in enumerate(channel.split_response(response, 40)):
        talk.add_message((2 + n) * SECOND, part)
    assert talk.pairs[0].response == response
    assert talk.pairs[0].latency_s == 3.0
    misfit = channel.Chunk(response, 1, 3)
    talk.add_message(9 * SECOND, misfit)
    talk.add_message(9 * SECOND, channel.Chunk(response, 1, 2))
    assert talk.undecodable == 1


def test_teaching_goes_from_its_start_to_its_stop() -> None:
    talk = Dialogue()
    ask(talk, 1, rpc.start_teaching("bow"), 1)
    answer(talk, 1.3, rpc.start_teaching("bow"), 1)
    for n in range(3):
        ask(talk, 2 + n, rpc.KEEP_TEACHING, 2 + n)
    ask(talk, 5.5, rpc.STOP_TEACHING, 9)
    ask(talk, 6, rpc.KEEP_TEACHING, 10)
    assert lines(talk) == [("teach", 1.0, 5.5)]
    assert "kept alive 3 times" in talk.timeline()[0].evidence


@pytest.mark.parametrize(
    ("last", "end", "words"),
    [
        ("refused", 1.3, "7404"),
        ("another", 4.0, "another began"),
        ("nothing", None, "its end was not captured"),
        ("nonsense", None, "its end was not captured"),
    ],
)
def test_teaching_ends_in_other_ways_too(last: str, end: float | None, words: str) -> None:
    talk = Dialogue()
    begin = rpc.start_teaching("bow")
    ask(talk, 1, begin, 1)
    answer(talk, 1.3, begin, 1, 7404 if last == "refused" else 0)
    if last == "another":
        ask(talk, 4, rpc.start_teaching("wave"), 2)
    if last == "nonsense":
        ask(talk, 4, Call("arm", 7110, "{"), 2)
    entry = talk.timeline()[0]
    assert (entry.end_ns and entry.end_ns / 1e9) == end
    assert words in entry.evidence
    assert entry.kind == ("refused" if last == "refused" else "teach")


def test_what_was_refused_did_not_happen() -> None:
    talk = Dialogue()
    for number, call in enumerate((rpc.execute_preset(1), rpc.rename_taught("a", "b")), 1):
        ask(talk, number, call, number)
        answer(talk, number + 0.5, call, number, 7404)
    assert lines(talk) == [("refused", 1.0, 1.5), ("refused", 2.0, 2.5)]


def test_playing_lasts_until_the_arms_are_released() -> None:
    talk = Dialogue()
    play = rpc.play_taught("bow")
    ask(talk, 1, play, 1)
    arms(talk, 1.1, ArmState(id=100, name="bow"))
    answer(talk, 1.3, play, 1)
    arms(talk, 4, ArmState(id=99))
    arms(talk, 8, ArmState())
    arms(talk, 8.1, ArmState())
    assert lines(talk) == [("play", 1.0, 4.0)]
    assert len(talk.states) == 3


def test_playing_without_a_release_lasts_until_the_arms_are_idle() -> None:
    talk = Dialogue()
    play = rpc.play_taught("bow")
    ask(talk, 1, play, 1)
    arms(talk, 1.1, ArmState(id=100, name="bow"))
    answer(talk, 1.3, play, 1)
    arms(talk, 8, ArmState())
    assert lines(talk) == [("play", 1.0, 8.0)]


def test_playing_that_is_refused_overtaken_or_endless() -> None:
    talk = Dialogue()
    play = rpc.play_taught("bow")
    for number, code in ((1, 7402), (2, 0), (3, 0)):
        ask(talk, number, play, number)
        answer(talk, number + 0.3, play, number, code)
    arms(talk, 5, ArmState())  # idle before it was ever seen playing proves nothing
    assert lines(talk) == [("refused", 1.0, 1.3), ("play", 2.0, 3.3), ("play", 3.0, None)]
    assert "7402" in talk.timeline()[0].evidence


def test_the_connection_is_made_when_the_robot_says_so() -> None:
    talk = Dialogue()
    talk.add_message(SECOND, channel.Validation("challenge"))
    talk.add_message(2 * SECOND, channel.Validation("answer"))
    talk.add_message(3 * SECOND, channel.Validation(channel.VALIDATION_OK))
    talk.add_message(4 * SECOND, channel.Validation(channel.VALIDATION_OK))
    assert lines(talk) == [("connect", 1.0, 3.0)]


def test_faults_are_told_when_they_come_and_when_they_go() -> None:
    talk = Dialogue()
    hot, low = Fault(5, 300, 16), Fault(6, 600, 8)
    said = [
        Faults(Change.ALL, (hot,)),
        Faults(Change.ALL, (hot,)),
        Faults(Change.ADDED, (low,)),
        Faults(Change.REMOVED, (hot,)),
        Faults(Change.REMOVED, (hot,)),
        Faults(Change.ALL),
    ]
    for n, each in enumerate(said):
        talk.add_message(n, each)
    told = [(note.time_ns, note.present, note.fault.source) for note in talk.faults]
    assert told == [(0, True, 300), (2, True, 600), (3, False, 300), (5, False, 600)]


def test_states_that_cannot_be_read_change_nothing() -> None:
    talk = Dialogue()
    for data in (None, {"id": 1}, "{}", "nonsense"):
        talk.add_message(0, channel.ChannelMessage(rpc.ARM_STATE_TOPIC, data))
    talk.add_message(0, channel.Heartbeat())
    assert talk.states == []
    assert talk.timeline() == []


def test_a_flood_of_questions_takes_bounded_memory() -> None:
    talk = Dialogue()
    for number in range(6000):
        ask(talk, number, rpc.GET_FSM, number)
    answer(talk, 9000, rpc.GET_FSM, 0)
    answer(talk, 9000, rpc.GET_FSM, 5999)
    assert talk.pairs[0].response is None
    assert talk.pairs[-1].response is not None


@pytest.mark.parametrize(
    ("value", "robot"),
    [
        (rpc.LIST_ACTIONS.request(1), False),
        (channel.Subscription("rt/x"), False),
        (RpcResponse(service="arm", api_id=1, id=1), True),
        (channel.Complaint(channel.VALIDATION_NEEDED), True),
        (channel.Validation(channel.VALIDATION_OK), True),
        (channel.Validation("challenge or answer"), None),
        (channel.Inner({}, answer=True), True),
        (channel.Inner({}), None),
        (channel.Heartbeat(), None),
    ],
)
def test_what_somebody_says_tells_who_he_is(value: channel.Value, robot: bool | None) -> None:
    assert sender_is_robot(value) is robot
