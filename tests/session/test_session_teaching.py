"""Two ends of a conversation wired back to back by hand; the time is a number."""

import contextlib
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rote import messages as m
from rote.errors import BadRequestError, LocalProtocolError
from rote.model.g1 import Mode
from rote.session.arm_stream import PoseReceived
from rote.session.events import (
    Event,
    Opened,
    OpenRefused,
    PeerLeft,
    PeerLost,
    Replied,
    Reported,
    Requested,
    Unanswered,
)
from rote.session.replay_cache import REMEMBERED
from rote.session.teaching import (
    INITIALISATION,
    MAX_PENDING,
    Role,
    TeachingSession,
    TeachingSessionState,
    TeachingTiming,
)
from rote.wire.teaching import codec as wire
from rote.wire.teaching import state as teaching_state
from rote.wire.teaching.codec import CommandId, Frame, MessageType
from sampled import sample_parameters

START = 1000.0
"""When the tests begin. Not 0, because a real clock does not either."""
OK = m.Status()
STEPS: list[m.Command] = [
    m.TakeControl(),
    m.SyncParameters(),
    m.Subscribe(all_joints=True),
    m.SignalReady(),
]
OTHERS: list[m.Command] = [
    m.ChangeMode(Mode.WALK),
    m.MoveByHand("wave", 1000),
    m.EnterTeaching(),
    m.KeepTeaching(),
    m.ExitTeaching(),
    m.Record(on=True),
    m.Record(on=False),
    m.ListActions(),
    m.SaveAction(name="bow", created_s=0, duration_ms=1000),
    m.PlayAction(action=1),
    m.BeginStream(),
    m.StopMotion(),
]
PAIRS_OF_START_AND_END: list[tuple[m.Command, m.Command]] = [
    (m.PlayAction(action=1), m.StopMotion()),
    (m.EnterTeaching(), m.ExitTeaching()),
    (m.Record(on=True), m.ExitTeaching()),
    (m.PlayAction(action=1), m.ExitTeaching()),
    (m.EnterTeaching(), m.StopMotion()),
    (m.BeginStream(), m.StopMotion()),
    (m.BeginStream(), m.ExitTeaching()),
]


def called(message: m.Command) -> str:
    """Return a short name for a test's id."""
    return f"{type(message).__name__}{getattr(message, 'on', '')}"


# ---- by hand ------------------------------------------------------------------------------------


def asking(message: m.Command, sequence: int) -> bytes:
    """Return the datagram that asks for `message`."""
    command, payload = wire.encode_command(message)
    return wire.encode(Frame(command=command, sequence=sequence, payload=payload))


def answering(command: int, sequence: int, reply: m.Reply = OK) -> bytes:
    """Return the datagram that answers `command`."""
    payload = wire.encode_reply(reply)
    return wire.encode(Frame(command=command, sequence=sequence, payload=payload))


def robot_state(time_us: int = 0, joints: int = 29) -> m.RobotState:
    return m.RobotState(
        joints_rad=(0.5,) * joints, velocities_rad_s=(0.0,) * joints, time_us=time_us
    )


def state_datagram(time_us: int) -> bytes:
    payload = teaching_state.encode_state(robot_state(time_us), all_joints=True)
    return wire.encode(Frame(command=0, sequence=0, payload=payload, type=MessageType.STATE))


HEARTBEAT = wire.encode(Frame(command=0, sequence=0, type=MessageType.HEARTBEAT))


def frames_of(datagrams: list[bytes]) -> list[Frame]:
    return [wire.decode(datagram) for datagram in datagrams]


def commands_of(datagrams: list[bytes]) -> list[int]:
    return [frame.command for frame in frames_of(datagrams)]


def idle(session: TeachingSession) -> bool:
    """Say whether the session has nothing to send and nothing to tell."""
    return not session.outgoing() and not session.events()


def only_reply(session: TeachingSession) -> tuple[int, m.Reply]:
    """Return the sequence and the content of the one reply a robot has to send."""
    (frame,) = frames_of(session.outgoing())
    return frame.sequence, wire.decode_reply(frame.command, frame.payload)


@dataclass
class Ends:
    """A client and a robot with nothing between them."""

    client: TeachingSession = field(default_factory=lambda: TeachingSession(Role.CLIENT))
    robot: TeachingSession = field(default_factory=lambda: TeachingSession(Role.ROBOT, now=START))
    now: float = START

    def exchange(self) -> None:
        """Carry datagrams both ways until neither end has any."""
        while True:
            up, down = self.client.outgoing(), self.robot.outgoing()
            if not up and not down:
                return
            for datagram in up:
                self.robot.receive(datagram, self.now)
            for datagram in down:
                self.client.receive(datagram, self.now)

    def ask(self, message: m.Command, reply: m.Reply = OK) -> int:
        """Ask, let the robot answer with `reply`, and return the token."""
        token = self.client.request(message, self.now)
        self.exchange()
        assert self.robot.events() == [Requested(token, message)]
        self.robot.reply(token, reply)
        self.exchange()
        assert self.client.events() == [Replied(token, reply)]
        return token


def connected(timing: TeachingTiming | None = None) -> Ends:
    """Return both ends, initialised, with nothing left to send or to tell."""
    ends = Ends(
        client=TeachingSession(Role.CLIENT, timing=timing),
        robot=TeachingSession(Role.ROBOT, timing=timing, now=START),
    )
    ends.client.open(ends.now)
    ends.exchange()
    assert ends.client.events() == ends.robot.events() == [Opened()]
    return ends


def ready_robot() -> TeachingSession:
    """Return a robot whose client has used the sequence numbers 0 to 3."""
    robot = TeachingSession(Role.ROBOT, now=START)
    for sequence, step in enumerate(STEPS):
        robot.receive(asking(step, sequence), START)
    robot.outgoing()
    robot.events()
    return robot


def robot_in(state: TeachingSessionState) -> TeachingSession:
    robot = TeachingSession(Role.ROBOT, now=START)
    for sequence, step in enumerate(STEPS[: int(state)]):
        robot.receive(asking(step, sequence), START)
    robot.outgoing()
    robot.events()
    assert robot.state is state
    return robot


def dues(session: TeachingSession, until: float) -> Iterator[float]:
    """Tick the session whenever it is due, and yield the moments."""
    while (now := session.due) <= until:
        session.tick(now)
        yield now


# ---- initialisation -----------------------------------------------------------------------------


def test_a_client_sends_each_step_only_after_the_one_before_was_answered() -> None:
    client = TeachingSession(Role.CLIENT)
    client.open(START)
    for sequence, command in enumerate([0x09, 0x0A, 0x0B, 0x0C]):
        (frame,) = frames_of(client.outgoing())
        assert (frame.command, frame.sequence) == (command, sequence)
        client.tick(START + 0.05)
        assert idle(client)
        client.receive(answering(command, sequence), START + 0.05)
    assert client.outgoing() == []
    assert client.events() == [Opened()]
    assert client.state is TeachingSessionState.READY


def test_initialisation_ends_in_opened_on_both_ends_and_once() -> None:
    ends = Ends()
    ends.client.open(ends.now)
    ends.exchange()
    assert ends.client.events() == ends.robot.events() == [Opened()]
    assert ends.client.state is ends.robot.state is TeachingSessionState.READY
    ends.exchange()
    assert ends.client.events() == ends.robot.events() == []


def test_on_a_link_of_ten_milliseconds_the_four_steps_go_out_within_100_ms() -> None:
    ends = Ends()
    ends.client.open(ends.now)
    sent_at = []
    for _ in range(4):
        (datagram,) = ends.client.outgoing()
        sent_at.append(ends.now)
        ends.now += 0.010
        ends.robot.receive(datagram, ends.now)
        (answer,) = ends.robot.outgoing()
        ends.now += 0.010
        ends.client.receive(answer, ends.now)
    assert ends.client.state is TeachingSessionState.READY
    assert sent_at[-1] - sent_at[0] <= 0.1


@pytest.mark.parametrize("state", list(INITIALISATION))
@pytest.mark.parametrize("message", OTHERS, ids=called)
def test_a_robot_accepts_nothing_else_before_initialisation_is_over(
    state: TeachingSessionState, message: m.Command
) -> None:
    robot = robot_in(state)
    robot.receive(asking(message, 9), START)
    assert only_reply(robot) == (9, m.Status(m.Code.NOT_INITIALISED))
    assert robot.events() == []
    assert robot.state is state


@pytest.mark.parametrize("state", [*INITIALISATION, TeachingSessionState.READY])
@pytest.mark.parametrize("step", range(1, 4))
def test_a_step_advances_only_when_it_is_the_next_one(
    state: TeachingSessionState, step: int
) -> None:
    robot = robot_in(state)
    robot.receive(asking(STEPS[step], 9), START)
    _, reply = only_reply(robot)
    if step > state:  # too early
        assert reply == m.Status(m.Code.NOT_INITIALISED)
        assert robot.state is state
    else:  # the next one, or one that was said before
        assert reply == OK
        assert robot.state == max(state, step + 1)
    assert robot.events() == (
        [Opened()] if step == 3 and state is TeachingSessionState.SUBSCRIBED else []
    )


def test_a_robot_takes_part_in_nothing_but_the_opening_when_new() -> None:
    robot = TeachingSession(Role.ROBOT, now=START)
    for sequence, step in enumerate(reversed(STEPS[1:])):
        robot.receive(asking(step, sequence), START)
        assert only_reply(robot) == (sequence, m.Status(m.Code.NOT_INITIALISED))
    assert robot.state is TeachingSessionState.NEW
    robot.report(robot_state())
    assert robot.outgoing() == []


@pytest.mark.parametrize("step", range(4))
def test_a_client_refused_at_any_step_says_so_and_is_done(step: int) -> None:
    client = TeachingSession(Role.CLIENT)
    client.open(START)
    for sequence, command in enumerate([0x09, 0x0A, 0x0B, 0x0C][:step]):
        client.receive(answering(command, sequence), START)
    (frame,) = frames_of(client.outgoing()[-1:])
    client.receive(answering(frame.command, step, m.Status(m.Code.BUSY)), START)
    assert client.events() == [OpenRefused(m.Code.BUSY)]
    assert not client.live
    client.tick(START + 60.0)
    assert idle(client)


def test_a_client_whose_robot_was_restarted_in_the_middle_is_told() -> None:
    ends = Ends()
    ends.client.open(ends.now)
    ends.robot.receive(ends.client.outgoing()[0], ends.now)
    ends.client.receive(ends.robot.outgoing()[0], ends.now)
    ends.robot = TeachingSession(Role.ROBOT, now=START)
    ends.exchange()
    assert ends.client.events() == [OpenRefused(m.Code.NOT_INITIALISED)]
    assert ends.robot.events() == []


def test_connecting_is_given_up_after_connect_s() -> None:
    client = TeachingSession(Role.CLIENT)
    client.open(START)
    for now in dues(client, START + 4.999):
        assert client.events() == [], now
    client.tick(START + 5.0)
    assert client.events() == [PeerLost(5.0)]
    assert client.state is TeachingSessionState.LOST


def test_a_robot_that_appears_late_is_still_found_when_connect_s_is_longer_than_answer_s() -> None:
    client = TeachingSession(Role.CLIENT, timing=TeachingTiming(connect_s=30.0))
    client.open(START)
    for _ in dues(client, START + 20.0):
        assert set(commands_of(client.outgoing())) <= {CommandId.CONTROL_MODE}
    client.tick(START + 21.0)
    assert client.live
    assert commands_of(client.outgoing()) == [CommandId.CONTROL_MODE]


def test_only_a_new_client_can_be_opened() -> None:
    client = TeachingSession(Role.CLIENT)
    client.open(START)
    with pytest.raises(LocalProtocolError):
        client.open(START)
    ends = connected()
    with pytest.raises(LocalProtocolError):
        ends.client.open(ends.now)
    with pytest.raises(LocalProtocolError):
        ends.robot.open(ends.now)


def test_nothing_can_be_asked_before_the_session_is_ready() -> None:
    client = TeachingSession(Role.CLIENT)
    for state in INITIALISATION:
        assert client.state is state
        with pytest.raises(LocalProtocolError, match=state.name):
            client.request(m.ListActions(), START)
        if state is TeachingSessionState.NEW:
            client.open(START)
        (frame,) = frames_of(client.outgoing())
        client.receive(answering(frame.command, frame.sequence), START)
    assert client.request(m.ListActions(), START) == 4


def test_each_end_does_only_what_is_its_own() -> None:
    ends = connected()
    with pytest.raises(LocalProtocolError):
        ends.robot.request(m.ListActions(), ends.now)
    with pytest.raises(LocalProtocolError):
        ends.client.reply(0, OK)
    ends.client.report(robot_state())
    assert ends.client.outgoing() == []


@pytest.mark.parametrize("role", list(Role))
def test_a_session_in_which_nothing_has_begun_is_not_lost(role: Role) -> None:
    session = TeachingSession(role, now=START)
    session.tick(START + 1.0)
    assert session.live
    assert session.events() == []


# ---- sequence numbers and replies ---------------------------------------------------------------


def test_sequence_numbers_start_at_0_and_count_every_frame_sent() -> None:
    ends = connected()
    assert [ends.ask(m.ListActions()) for _ in range(3)] == [4, 5, 6]
    ends.now += 4.5
    ends.client.receive(HEARTBEAT, ends.now)
    ends.client.tick(ends.now)
    (heartbeat,) = frames_of(ends.client.outgoing())
    assert (heartbeat.type, heartbeat.sequence) == (MessageType.HEARTBEAT, 7)
    assert ends.client.request(m.ListActions(), ends.now) == 8


def test_sequence_numbers_wrap_after_65535() -> None:
    ends = connected()
    client = ends.client
    for expected in range(4, 65_536):
        ends.now += 4.5
        client.receive(HEARTBEAT, ends.now)
        client.tick(ends.now)
        (datagram,) = client.outgoing()
        assert int.from_bytes(datagram[6:8], "big") == expected
    assert client.request(m.ListActions(), ends.now) == 0
    assert client.request(m.ListActions(), ends.now) == 1


def test_a_conversation_goes_on_across_the_wrap() -> None:
    ends = Ends()
    ends.client._sequence = 65_534
    ends.client.open(ends.now)
    ends.exchange()
    assert ends.client.events() == ends.robot.events() == [Opened()]
    assert ends.ask(m.ListActions()) == 2
    ends.robot.receive(asking(m.TakeControl(), 65_534), ends.now)
    assert ends.robot.events() == []
    assert ends.ask(m.StopMotion()) == 3


def client_of_robot_that_adds(offset: int, first: int = 0) -> TeachingSession:
    """Return a client whose robot answers with the request's number and `offset` more."""
    client = TeachingSession(Role.CLIENT)
    client._sequence = first
    client.open(START)
    for _ in STEPS:
        (frame,) = frames_of(client.outgoing())
        client.receive(answering(frame.command, frame.sequence + offset & 0xFFFF), START)
    assert client.events() == [Opened()]
    return client


@pytest.mark.parametrize("offset", [0, 1])
def test_a_reply_bears_the_number_of_its_request_or_one_more(offset: int) -> None:
    client = client_of_robot_that_adds(offset)
    token = client.request(m.Record(on=True), START)
    client.receive(answering(0x0F, token + offset, m.Status(7404)), START)
    assert client.events() == [Replied(token, m.Status(7404))]


@pytest.mark.parametrize("offset", [0, 1])
def test_equal_requests_that_wait_together_get_their_own_answers(offset: int) -> None:
    client = client_of_robot_that_adds(offset)
    tokens = [client.request(m.ListActions(), START) for _ in range(3)]
    for token in tokens:
        content = m.ActionList((m.ActionEntry(f"a{token}", token),))
        client.receive(answering(0x1A, token + offset, content), START)
        assert client.events() == [Replied(token, content)]


def test_one_more_than_65535_is_0() -> None:
    client = client_of_robot_that_adds(1, first=65_531)
    assert client.request(m.ListActions(), START) == 65_535
    client.receive(answering(0x1A, 0), START)
    assert client.events() == [Replied(65_535, OK)]


@pytest.mark.parametrize(("command", "offset"), [(0x1A, 0), (0x1A, 1), (0x0F, 2), (0x0F, -1)])
def test_a_reply_with_a_wrong_command_or_number_answers_nothing(command: int, offset: int) -> None:
    ends = connected()
    token = ends.client.request(m.Record(on=True), ends.now)
    ends.client.receive(answering(command, token + offset), ends.now)
    assert ends.client.events() == []
    assert ends.client.dropped["reply to nothing"] == 1
    ends.client.receive(answering(0x0F, token), ends.now)
    assert ends.client.events() == [Replied(token, OK)]


def test_an_exact_number_is_preferred_to_one_more() -> None:
    ends = connected()
    first = ends.client.request(m.ListActions(1), ends.now)
    second = ends.client.request(m.ListActions(2), ends.now)
    ends.client.receive(answering(0x1A, second, m.Status(2)), ends.now)
    ends.client.receive(answering(0x1A, first, m.Status(1)), ends.now)
    assert ends.client.events() == [Replied(second, m.Status(2)), Replied(first, m.Status(1))]


def test_a_repeated_reply_does_not_answer_the_request_before_its_own() -> None:
    ends = connected()
    first = ends.client.request(m.ListActions(1), ends.now)
    second = ends.client.request(m.ListActions(2), ends.now)
    for _ in range(2):  # the network delivers it twice, the first request was lost
        ends.client.receive(answering(0x1A, second, m.Status(2)), ends.now)
    assert ends.client.events() == [Replied(second, m.Status(2))]
    ends.client.receive(answering(0x1A, first, m.Status(1)), ends.now)
    assert ends.client.events() == [Replied(first, m.Status(1))]


def test_a_repeated_answer_to_a_play_does_not_confirm_a_stop_that_never_arrived() -> None:
    ends = connected()
    stop = ends.client.request(m.StopMotion(), ends.now)
    ends.client.outgoing()  # lost
    play = ends.client.request(m.PlayAction(action=1), ends.now)
    ends.exchange()
    ends.robot.reply(play, OK)
    (answer,) = ends.robot.outgoing()
    ends.client.receive(answer, ends.now)
    ends.client.receive(answer, ends.now)
    assert ends.client.events() == [Replied(play, OK)]
    ends.client.tick(ends.now + 0.1)
    assert [frame.sequence for frame in frames_of(ends.client.outgoing())] == [stop]


def test_a_reply_that_cannot_be_read_leaves_the_request_waiting() -> None:
    ends = connected()
    token = ends.client.request(m.ListActions(), ends.now)
    broken = wire.encode(Frame(command=0x1A, sequence=token, payload=bytes(100)))
    ends.client.receive(broken, ends.now)
    assert ends.client.events() == []
    assert ends.client.dropped["PayloadError"] == 1
    ends.client.receive(answering(0x1A, token), ends.now)
    assert ends.client.events() == [Replied(token, OK)]


def test_a_reply_delivered_twice_is_told_once() -> None:
    ends = connected()
    token = ends.client.request(m.Record(on=True), ends.now)
    for _ in range(2):
        ends.client.receive(answering(0x0F, token), ends.now)
    assert ends.client.events() == [Replied(token, OK)]


# ---- repetition and giving up -------------------------------------------------------------------


def test_an_unanswered_request_is_repeated_with_the_same_bytes_and_growing_pauses() -> None:
    ends = connected(TeachingTiming(robot_silence_s=60.0, heartbeat_s=60.0))
    client = ends.client
    client.request(m.ListActions(), ends.now)
    (original,) = client.outgoing()
    moments = [ends.now]
    for now in dues(client, ends.now + 3.0):
        assert client.outgoing() == [original]
        moments.append(now)
    pauses = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert pauses[:5] == pytest.approx([0.1, 0.15, 0.225, 0.3375, 0.4])
    assert pauses[5:] == pytest.approx([0.4] * len(pauses[5:]))
    assert len(pauses) > 7


def test_a_tick_before_anything_is_due_does_nothing() -> None:
    ends = connected()
    ends.client.request(m.ListActions(), ends.now)
    ends.client.outgoing()
    assert ends.client.due == ends.now + 0.1
    ends.client.tick(ends.now + 0.0999)
    assert idle(ends.client)


def test_an_answered_request_is_not_repeated() -> None:
    ends = connected()
    ends.ask(m.ListActions())
    assert ends.client.due == ends.now + 2.5
    ends.client.tick(ends.now + 2.0)
    assert ends.client.outgoing() == []


def test_a_request_that_stays_unanswered_is_given_up_after_answer_s() -> None:
    ends = connected(TeachingTiming(robot_silence_s=60.0, heartbeat_s=60.0))
    token = ends.client.request(m.ListActions(), ends.now)
    for now in dues(ends.client, ends.now + 7.999):
        assert ends.client.events() == [], now
    last = list(dues(ends.client, ends.now + 20.0))
    (given_up,) = ends.client.events()
    assert isinstance(given_up, Unanswered)
    assert given_up.token == token
    assert 8.0 <= given_up.waited_s <= 8.4
    assert last == [ends.now + given_up.waited_s]
    assert ends.client.state is TeachingSessionState.READY


def test_a_late_answer_to_a_request_that_was_given_up_is_dropped() -> None:
    ends = connected(TeachingTiming(robot_silence_s=60.0))
    token = ends.client.request(m.ListActions(), ends.now)
    list(dues(ends.client, ends.now + 9.0))
    ends.client.events()
    ends.client.receive(answering(0x1A, token), ends.now + 9.0)
    assert ends.client.events() == []
    assert ends.client.dropped["reply to nothing"] == 1


def test_more_requests_than_can_wait_are_refused_to_the_asker() -> None:
    ends = connected()
    for _ in range(MAX_PENDING):
        ends.client.request(m.ListActions(), ends.now)
    with pytest.raises(LocalProtocolError, match="already waiting"):
        ends.client.request(m.ListActions(), ends.now)


@pytest.mark.parametrize("end", [m.StopMotion(), m.ExitTeaching()], ids=called)
def test_a_stop_can_always_be_asked_however_much_is_waiting(end: m.Command) -> None:
    ends = connected()
    for _ in range(MAX_PENDING):
        ends.client.request(m.ListActions(), ends.now)
    ends.client.outgoing()
    token = ends.client.request(end, ends.now)
    assert [frame.sequence for frame in frames_of(ends.client.outgoing())] == [token]


def test_a_request_that_cannot_be_written_changes_nothing() -> None:
    ends = connected()
    due = ends.client.due
    with pytest.raises(BadRequestError):
        ends.client.request(m.SaveAction(name="", created_s=0, duration_ms=0), ends.now)
    assert ends.client.outgoing() == []
    assert ends.client.due == due
    assert ends.ask(m.ListActions()) == 4


# ---- heartbeats and silence ---------------------------------------------------------------------


def listened(session: TeachingSession, since: float, until: float) -> list[tuple[float, Frame]]:
    """Tick the session while its peer is heard twice a second; return what it sends and when."""
    sent = []
    for step in range(1, int((until - since) * 10) + 1):
        now = since + step / 10
        if step % 5 == 0:
            session.receive(HEARTBEAT, now)
        session.tick(now)
        sent += [(now - since, frame) for frame in frames_of(session.outgoing())]
    return sent


@pytest.mark.parametrize("end", ["client", "robot"])
def test_each_end_sends_a_heartbeat_every_four_and_a_half_seconds(end: str) -> None:
    session: TeachingSession = getattr(connected(), end)
    sent = listened(session, START, START + 20.0)
    assert [moment for moment, _ in sent] == pytest.approx([4.5, 9.0, 13.5, 18.0], abs=0.11)
    for _, frame in sent:
        assert (frame.type, frame.command, frame.payload) == (MessageType.HEARTBEAT, 0, b"")


def test_a_client_sends_no_heartbeat_before_it_is_ready() -> None:
    client = TeachingSession(Role.CLIENT, timing=TeachingTiming(connect_s=20.0))
    client.open(START)
    for _ in dues(client, START + 7.0):
        assert set(commands_of(client.outgoing())) <= {CommandId.CONTROL_MODE}


def test_heartbeats_keep_both_ends_alive_and_cause_nothing() -> None:
    ends = connected()
    for _ in range(100):
        ends.now += 2.0
        ends.client.receive(HEARTBEAT, ends.now)
        ends.robot.receive(HEARTBEAT, ends.now)
        ends.client.tick(ends.now)
        ends.robot.tick(ends.now)
        assert ends.client.events() == ends.robot.events() == []
    assert ends.client.live
    assert ends.robot.live
    assert not ends.client.dropped
    assert not ends.robot.dropped


def test_a_robot_silent_for_two_and_a_half_seconds_is_lost() -> None:
    ends = connected()
    ends.client.request(m.ListActions(), ends.now)
    list(dues(ends.client, ends.now + 2.499))
    assert ends.client.live
    assert ends.client.events() == []
    ends.client.outgoing()
    ends.client.tick(ends.now + 2.5)
    assert ends.client.events() == [PeerLost(2.5)]
    assert ends.client.state is TeachingSessionState.LOST
    assert not ends.client.pending
    assert ends.client.due == float("inf")
    ends.client.tick(ends.now + 60.0)
    assert idle(ends.client)


def test_a_client_silent_for_thirteen_and_a_half_seconds_is_lost() -> None:
    ends = connected()
    list(dues(ends.robot, ends.now + 13.499))
    assert ends.robot.live
    assert ends.robot.events() == []
    ends.robot.tick(ends.now + 13.5)
    assert ends.robot.events() == [PeerLost(13.5)]
    assert ends.robot.state is TeachingSessionState.LOST


def test_garbage_does_not_count_as_being_heard() -> None:
    ends = connected()
    for step in range(25):
        ends.client.receive(b"\x17\xfe\xfd\0garbage", ends.now + step / 10)
    ends.client.tick(ends.now + 2.5)
    assert ends.client.events() == [PeerLost(2.5)]
    assert ends.client.dropped["TruncatedError"] == 25


def test_a_client_idle_for_two_days_is_still_answered() -> None:
    ends = connected()
    for _ in range(33_000):
        ends.now += 4.5
        ends.client.receive(HEARTBEAT, ends.now)
        ends.client.tick(ends.now)
        (heartbeat,) = ends.client.outgoing()
        ends.robot.receive(heartbeat, ends.now)
    assert ends.robot.live
    ends.ask(m.ListActions())


# ---- teaching is kept alive ---------------------------------------------------------------------


def answered_keep_alives(client: TeachingSession, since: float, until: float) -> list[float]:
    """Let the robot answer everything at once; return when keep-alives were sent."""
    moments = []
    for step in range(1, int((until - since) * 10) + 1):
        now = since + step / 10
        client.receive(HEARTBEAT, now)
        client.tick(now)
        for frame in frames_of(client.outgoing()):
            if frame.type == MessageType.COMMAND:
                assert isinstance(wire.decode_command(frame.command, frame.payload), m.KeepTeaching)
                moments.append(now - since)
                client.receive(answering(frame.command, frame.sequence), now)
    return moments


def test_teaching_is_kept_alive_every_four_and_a_half_seconds_until_it_is_left() -> None:
    ends = connected()
    assert answered_keep_alives(ends.client, ends.now, ends.now + 10.0) == []
    ends.now += 10.0
    ends.ask(m.EnterTeaching(wire_state()))
    moments = answered_keep_alives(ends.client, ends.now, ends.now + 20.0)
    assert moments == pytest.approx([4.5, 9.0, 13.5, 18.0], abs=0.11)
    assert ends.client.events() == []  # nobody asked for them, so nobody is told
    ends.now += 20.0
    ends.robot.receive(HEARTBEAT, ends.now)
    ends.ask(m.ExitTeaching())
    assert answered_keep_alives(ends.client, ends.now, ends.now + 10.0) == []


def wire_state() -> m.RobotState:
    """Return a state that looks the same before and after it went over the wire."""
    return m.RobotState(
        arms_soft=True,
        joints_rad=(0.5,) * 12,
        velocities_rad_s=(0.0,) * 12,
        accelerometer_m_s2=(0.0, 0.0, 9.75),
    )


def test_teaching_is_kept_alive_even_while_its_beginning_is_unanswered() -> None:
    ends = connected()
    ends.client.request(m.EnterTeaching(), ends.now)
    ends.client.outgoing()
    sent = listened(ends.client, ends.now, ends.now + 5.0)
    assert any(frame.type == MessageType.COMMAND and len(frame.payload) == 44 for _, frame in sent)


def test_a_stop_ends_the_keeping_alive_too() -> None:
    ends = connected()
    ends.ask(m.EnterTeaching(wire_state()))
    ends.ask(m.StopMotion())
    assert answered_keep_alives(ends.client, ends.now, ends.now + 10.0) == []


def test_teaching_that_was_refused_is_not_kept_alive() -> None:
    ends = connected()
    ends.ask(m.EnterTeaching(wire_state()), m.Status(m.Code.WRONG_STATE))
    assert answered_keep_alives(ends.client, ends.now, ends.now + 10.0) == []


def test_an_unanswered_keep_alive_is_given_up_without_a_word() -> None:
    ends = connected()
    ends.ask(m.EnterTeaching(wire_state()))
    for step in range(300):
        ends.client.receive(HEARTBEAT, ends.now + step / 10)
        ends.client.tick(ends.now + step / 10)
    assert ends.client.events() == []
    assert ends.client.live
    assert len(ends.client.pending) <= 2
    assert len(ends.client.own_tokens) <= 2


def test_a_keep_alive_is_not_repeated_behind_the_end_of_teaching() -> None:
    ends = connected()
    ends.ask(m.EnterTeaching(wire_state()))
    ends.now += 4.5
    ends.client.receive(HEARTBEAT, ends.now)
    ends.client.tick(ends.now)
    ends.client.outgoing()  # the keep-alive is lost
    token = ends.client.request(m.ExitTeaching(), ends.now)
    ends.client.tick(ends.now + 0.1)
    sent = frames_of(ends.client.outgoing())
    assert {frame.sequence for frame in sent} == {token}


# ---- a robot and repeated requests --------------------------------------------------------------


def test_a_repeated_request_is_answered_again_with_the_same_bytes_and_handed_out_once() -> None:
    robot = ready_robot()
    request = asking(m.ListActions(), 4)
    robot.receive(request, START)
    assert robot.events() == [Requested(4, m.ListActions())]
    robot.reply(4, m.ActionList((m.ActionEntry("bow", 1000),)))
    (answer,) = robot.outgoing()
    for step in range(1, 90):
        robot.receive(request, START + step / 10)
        assert robot.outgoing() == [answer]
    assert robot.events() == []
    assert robot.dropped["repeated request"] == 89


def test_a_request_repeated_before_it_is_answered_is_neither_answered_nor_handed_out() -> None:
    robot = ready_robot()
    request = asking(m.ListActions(), 4)
    robot.receive(request, START)
    robot.events()
    robot.receive(request, START + 0.1)
    assert idle(robot)
    robot.reply(4, OK)
    assert only_reply(robot) == (4, OK)


def test_a_request_is_answered_once_by_the_robot() -> None:
    robot = ready_robot()
    robot.receive(asking(m.ListActions(), 4), START)
    robot.reply(4, OK)
    with pytest.raises(LocalProtocolError, match="no unanswered request 4"):
        robot.reply(4, OK)
    with pytest.raises(LocalProtocolError, match="no unanswered request 5"):
        robot.reply(5, OK)


def test_another_request_with_a_number_used_before_is_another_request() -> None:
    robot = ready_robot()
    robot.receive(asking(m.ListActions(1), 4), START)
    robot.receive(asking(m.ListActions(2), 4), START)
    assert robot.events() == [Requested(4, m.ListActions(1)), Requested(4, m.ListActions(2))]


def test_a_number_and_its_bytes_may_come_again_when_the_memory_has_faded() -> None:
    robot = ready_robot()
    for now in (START, START + 10.0):
        robot.receive(asking(m.ListActions(), 4), now)
        assert robot.events() == [Requested(4, m.ListActions())]


def flooded(robot: TeachingSession, first: int, last: int) -> None:
    """Let the robot receive and answer a list request with each number."""
    for sequence in range(first, last + 1):
        robot.receive(asking(m.ListActions(), sequence & 0xFFFF), START)
        robot.reply(sequence & 0xFFFF, OK)
    robot.events()
    robot.outgoing()


@pytest.mark.parametrize("message", [m.ExitTeaching(), m.StopMotion()], ids=called)
def test_a_stop_is_heard_however_late_it_comes(message: m.Command) -> None:
    robot = ready_robot()
    flooded(robot, 5, 4 + REMEMBERED + 500)
    robot.receive(asking(message, 4), START)
    assert robot.events() == [Requested(4, message)]


NOT_ENDS = [c for c in OTHERS if not isinstance(c, m.ExitTeaching | m.StopMotion)]


@pytest.mark.parametrize("message", NOT_ENDS, ids=called)
@pytest.mark.parametrize("age", [1, REMEMBERED - 1, REMEMBERED, REMEMBERED + 1, 1000])
def test_a_request_of_any_age_is_never_handed_out_twice(message: m.Command, age: int) -> None:
    robot = ready_robot()
    robot.receive(asking(message, 4), START)
    assert len(robot.events()) == 1
    flooded(robot, 5, 4 + age)
    robot.receive(asking(message, 4), START)
    assert robot.events() == []


def test_a_stray_request_older_than_the_memory_is_dropped_without_an_answer() -> None:
    robot = ready_robot()
    flooded(robot, 5, 4 + REMEMBERED + 1)
    robot.receive(asking(m.PlayAction(action=1), 4), START)
    assert idle(robot)
    assert robot.dropped["stray request"] == 1


def test_a_late_request_within_the_memory_is_handed_out() -> None:
    robot = ready_robot()
    flooded(robot, 5, 4 + REMEMBERED - 1)
    robot.receive(asking(m.PlayAction(action=1), 4), START)
    assert robot.events() == [Requested(4, m.PlayAction(action=1))]


def test_requests_that_overtook_each_other_are_remembered_all_the_same() -> None:
    robot = ready_robot()
    early = asking(m.PlayAction(action=1), 104)
    robot.receive(early, START)
    assert len(robot.events()) == 1
    flooded(robot, 50, 103)  # these were overtaken
    flooded(robot, 105, 104 + REMEMBERED - 40)
    robot.receive(early, START)
    assert robot.events() == []


def test_the_age_of_a_request_is_counted_across_the_wrap() -> None:
    robot = ready_robot()
    robot.replay_cache.newest = None  # as if the client had begun at 65500
    flooded(robot, 65_500, 65_536 + 100)
    robot.receive(asking(m.PlayAction(action=1), 65_480), START)
    assert robot.events() == []
    assert robot.dropped["stray request"] == 1
    robot.receive(asking(m.PlayAction(action=1), 101), START)
    assert robot.events() == [Requested(101, m.PlayAction(action=1))]


# ---- a start behind its end ---------------------------------------------------------------------


@pytest.mark.parametrize(("start", "end"), PAIRS_OF_START_AND_END, ids=called)
def test_a_robot_refuses_a_start_that_arrives_after_a_newer_end(
    start: m.Command, end: m.Command
) -> None:
    robot = ready_robot()
    robot.receive(asking(end, 5), START)
    assert robot.events() == [Requested(5, end)]
    robot.receive(asking(start, 4), START)
    assert only_reply(robot) == (4, m.Status(m.Code.SUPERSEDED))
    assert robot.events() == []


@pytest.mark.parametrize(
    "message", [m.Record(on=False), m.ListActions(), m.StopMotion()], ids=called
)
def test_what_starts_nothing_may_arrive_after_a_newer_end(message: m.Command) -> None:
    robot = ready_robot()
    robot.receive(asking(m.ExitTeaching(), 5), START)
    robot.events()
    robot.receive(asking(message, 4), START)
    assert robot.events() == [Requested(4, message)]


def test_a_start_after_an_end_is_handed_out() -> None:
    robot = ready_robot()
    robot.receive(asking(m.StopMotion(), 4), START)
    robot.receive(asking(m.PlayAction(action=1), 5), START)
    assert robot.events() == [Requested(4, m.StopMotion()), Requested(5, m.PlayAction(action=1))]


def test_an_older_end_that_arrives_late_does_not_lift_a_newer_one() -> None:
    robot = ready_robot()
    robot.receive(asking(m.StopMotion(), 6), START)
    robot.receive(asking(m.StopMotion(), 4), START)
    robot.events()
    robot.receive(asking(m.PlayAction(action=1), 5), START)
    assert robot.events() == []
    assert only_reply(robot) == (5, m.Status(m.Code.SUPERSEDED))


def test_an_end_of_long_ago_does_not_refuse_starts_of_today() -> None:
    robot = ready_robot()
    robot.receive(asking(m.StopMotion(), 4), START)
    now = START
    for sequence in range(5, 33_000, 60):  # one request a minute among heartbeats
        now += 10.0
        robot.receive(asking(m.ListActions(), sequence), now)
    robot.events()
    robot.receive(asking(m.PlayAction(action=1), 33_001), now)
    assert robot.events() == [Requested(33_001, m.PlayAction(action=1))]


@pytest.mark.parametrize(("start", "end"), PAIRS_OF_START_AND_END, ids=called)
def test_a_client_does_not_repeat_a_start_behind_its_end(start: m.Command, end: m.Command) -> None:
    ends = connected()
    first = ends.client.request(start, ends.now)
    second = ends.client.request(end, ends.now)
    assert ends.client.events() == [Replied(first, m.Status(m.Code.SUPERSEDED))]
    ends.client.outgoing()
    ends.client.tick(ends.now + 0.1)
    assert [frame.sequence for frame in frames_of(ends.client.outgoing())] == [second]
    ends.client.receive(answering(wire.encode_command(start)[0], first), ends.now)
    ends.client.receive(answering(wire.encode_command(end)[0], second), ends.now)
    assert ends.client.events() == [Replied(second, OK)]


def test_a_client_keeps_what_starts_nothing_when_it_asks_for_an_end() -> None:
    ends = connected()
    ends.client.request(m.ListActions(), ends.now)
    ends.client.request(m.Record(on=False), ends.now)
    ends.client.request(m.StopMotion(), ends.now)
    assert ends.client.events() == []
    ends.client.outgoing()
    ends.client.tick(ends.now + 0.1)
    assert commands_of(ends.client.outgoing()) == [0x1A, 0x0F, 0x41]


# ---- streamed poses -----------------------------------------------------------------------------


def pose(number: int, weight: float = 1.0) -> m.StreamPose:
    return m.StreamPose(number, weight, (0.25,) * 15)


def test_poses_of_a_stream_are_handed_out_in_order_and_never_answered() -> None:
    ends = connected()
    token = ends.ask(m.BeginStream())
    assert ends.client.stream == token
    for number in range(300):
        ends.robot.receive(wire.encode_pose(pose(number), token), ends.now)
    assert ends.robot.events() == [PoseReceived(pose(number)) for number in range(300)]
    assert idle(ends.robot)
    assert idle(ends.client)


def test_a_pose_that_was_repeated_or_overtaken_is_not_followed() -> None:
    ends = connected()
    token = ends.ask(m.BeginStream())
    for number in (3, 3, 1, 7, 6, 7, 8):
        ends.robot.receive(wire.encode_pose(pose(number), token), ends.now)
    assert ends.robot.events() == [
        PoseReceived(pose(3)),
        PoseReceived(pose(7)),
        PoseReceived(pose(8)),
    ]
    assert ends.robot.dropped["stale pose"] == 4


@pytest.mark.parametrize("state", [*INITIALISATION, TeachingSessionState.READY])
def test_a_pose_without_a_stream_starts_nothing_and_is_not_answered(
    state: TeachingSessionState,
) -> None:
    robot = robot_in(state)
    robot.receive(wire.encode_pose(pose(0), 3), START)
    assert idle(robot)
    assert robot.dropped["pose of no stream"] == 1


def test_a_pose_that_cannot_be_read_is_dropped_without_an_answer() -> None:
    robot = ready_robot()
    robot.receive(wire.encode(Frame(CommandId.PARAMETER_SYNC, 9, b"POSE")), START)
    assert idle(robot)
    assert robot.dropped["PayloadError"] == 1


def test_after_a_stop_neither_end_knows_the_stream() -> None:
    ends = connected()
    token = ends.ask(m.BeginStream())
    ends.client.request(m.StopMotion(), ends.now)
    assert ends.client.stream is None, "from the asking on"
    ends.robot.receive(wire.encode_pose(pose(0), token), ends.now)
    assert ends.robot.events() == [PoseReceived(pose(0))], "the stop has not arrived"
    ends.exchange()
    ends.robot.events()
    ends.robot.receive(wire.encode_pose(pose(1), token), ends.now)
    assert ends.robot.events() == []


def test_leaving_teaching_does_not_end_the_stream() -> None:
    ends = connected()
    token = ends.ask(m.BeginStream())
    ends.ask(m.ExitTeaching())  # as a client does whose teaching was refused
    assert ends.client.stream == token
    ends.robot.receive(wire.encode_pose(pose(0), token), ends.now)
    assert ends.robot.events() == [PoseReceived(pose(0))]


def test_a_second_stream_that_is_refused_leaves_the_first_alone() -> None:
    ends = connected()
    token = ends.ask(m.BeginStream())
    ends.ask(m.BeginStream(), m.Status(m.Code.BUSY))
    assert ends.client.stream == token
    ends.robot.receive(wire.encode_pose(pose(0), token), ends.now)
    assert ends.robot.events() == [PoseReceived(pose(0))]


def test_poses_of_an_earlier_stream_are_not_taken_for_those_of_the_next() -> None:
    ends = connected()
    first, second = ends.ask(m.BeginStream()), ends.ask(m.BeginStream())
    assert ends.client.stream == second
    ends.robot.receive(wire.encode_pose(pose(9), first), ends.now)
    ends.robot.receive(wire.encode_pose(pose(0), second), ends.now)
    assert ends.robot.events() == [PoseReceived(pose(0))]


def test_a_client_that_begins_anew_has_no_stream() -> None:
    ends = connected()
    token = ends.ask(m.BeginStream())
    for sequence, step in enumerate(STEPS, 200):
        ends.robot.receive(asking(step, sequence), ends.now)
    ends.robot.events()
    ends.robot.receive(wire.encode_pose(pose(0), token), ends.now)
    assert ends.robot.events() == []


def test_a_request_is_still_repeated_and_answered_among_thousands_of_poses() -> None:
    ends = connected()
    stream = ends.ask(m.BeginStream())
    token = ends.client.request(m.ListActions(), ends.now)
    (lost,) = ends.client.outgoing()
    for number in range(2000):
        ends.robot.receive(wire.encode_pose(pose(number), stream), ends.now)
    ends.robot.events()
    ends.robot.receive(lost, ends.now)
    assert ends.robot.events() == [Requested(token, m.ListActions())]


def test_poses_keep_a_client_alive() -> None:
    ends = connected()
    token = ends.ask(m.BeginStream())
    for second in range(60):
        ends.robot.receive(wire.encode_pose(pose(second), token), ends.now + second)
        ends.robot.tick(ends.now + second)
    assert ends.robot.live


@given(st.data())
def test_however_poses_arrive_they_count_up_and_none_follows_a_stop(data: st.DataObject) -> None:
    robot = ready_robot()
    datagrams = [asking(m.BeginStream(), 4), asking(m.StopMotion(), 5), asking(m.BeginStream(), 6)]
    datagrams += [wire.encode_pose(pose(number), s) for s in (4, 6) for number in range(4)]
    moving, newest = False, -1
    for datagram in data.draw(st.lists(st.sampled_from(datagrams), max_size=40)):
        robot.receive(datagram, START)
        for event in robot.events():
            if isinstance(event, PoseReceived):
                assert isinstance(event.command, m.StreamPose)
                assert moving, "a pose was followed without a stream, or behind its stop"
                assert event.command.number > newest
                newest = event.command.number
            else:
                assert isinstance(event, Requested)
                robot.reply(event.token, OK)
                moving, newest = event.command == m.BeginStream(), -1


# ---- beginning anew -----------------------------------------------------------------------------


def begun_anew(ends: Ends) -> None:
    """Let another client open from the same address, when the old opening is forgotten."""
    ends.now = START + 10.0
    ends.client = TeachingSession(Role.CLIENT)
    ends.client.open(ends.now)
    ends.exchange()
    assert ends.client.events() == [Opened()]


def test_a_fresh_opening_from_the_same_address_ends_the_old_conversation() -> None:
    ends = connected()
    begun_anew(ends)
    assert ends.robot.events() == [PeerLeft(), Opened()]
    ends.ask(m.ListActions())


def test_a_fresh_opening_forgets_what_the_old_client_had_asked_a_moment_ago() -> None:
    ends = connected()
    ends.now += 9.5
    before = ends.ask(m.ListActions(), m.Status(1))
    begun_anew(ends)
    ends.robot.events()
    assert ends.ask(m.ListActions(), m.Status(2)) == before


def test_a_fresh_opening_forgets_what_the_old_client_had_ended() -> None:
    ends = connected()
    ends.now += 9.5
    for _ in range(10):
        ends.ask(m.StopMotion())
    begun_anew(ends)
    ends.robot.events()
    ends.ask(m.PlayAction(action=1))


@pytest.mark.parametrize("requests", [0, REMEMBERED + 1])
def test_a_late_duplicate_of_the_opening_does_not_reset_the_session(requests: int) -> None:
    robot = ready_robot()
    flooded(robot, 4, 3 + requests)
    robot.receive(asking(m.TakeControl(), 0), START + 9.9)
    assert robot.state is TeachingSessionState.READY
    assert robot.events() == []
    robot.receive(asking(m.ListActions(7), 4 + requests), START + 9.9)
    assert robot.events() == [Requested(4 + requests, m.ListActions(7))]


def test_zeros_in_0x09_take_control_and_do_not_end_the_conversation() -> None:
    """What the documents' own controller sends to begin with."""
    robot = TeachingSession(Role.ROBOT)
    for sequence, command in enumerate([0x09, 0x0A, 0x0B, 0x0C]):
        robot.receive(wire.encode(Frame(command, sequence, bytes(44))), START)
        assert only_reply(robot) == (sequence, OK)
    assert robot.state is TeachingSessionState.READY
    assert robot.events() == [Opened()]


def test_a_client_of_zeros_may_begin_anew_with_number_0() -> None:
    robot = ready_robot()
    flooded(robot, 4, REMEMBERED + 200)
    robot.receive(wire.encode(Frame(0x09, 0, bytes(44))), START + 11.0)
    assert robot.state is TeachingSessionState.CONTROLLED


@pytest.mark.parametrize(
    ("reply", "keeps"), [(OK, False), (m.Status(m.Code.NO_SUCH_ACTION), True)], ids=str
)
def test_a_play_that_is_accepted_ends_the_keep_alives(reply: m.Status, keeps: bool) -> None:
    ends = connected()
    ends.ask(m.EnterTeaching(wire_state()))
    ends.ask(m.PlayAction(action=1), reply)
    ends.client.receive(state_datagram(1), START + 2.4)
    ends.client.tick(START + 4.6)
    sent = [wire.decode(datagram).command for datagram in ends.client.outgoing()]
    assert (0x0D in sent) is keeps


def test_a_release_ends_the_conversation_and_is_answered() -> None:
    robot = ready_robot()
    robot.receive(asking(m.ReleaseControl(), 4), START)
    assert only_reply(robot) == (4, OK)
    assert robot.events() == [PeerLeft()]
    assert robot.state is TeachingSessionState.CLOSED


# ---- what cannot be read ------------------------------------------------------------------------


@pytest.mark.parametrize("state", [TeachingSessionState.NEW, TeachingSessionState.READY])
@pytest.mark.parametrize("command", [c for c in CommandId if c is not CommandId.NONE])
def test_a_bad_payload_is_answered_so(command: CommandId, state: TeachingSessionState) -> None:
    robot = robot_in(state)
    robot.receive(wire.encode(Frame(command=command, sequence=9, payload=b"bad")), START)
    assert only_reply(robot) == (9, m.Status(m.Code.BAD_PAYLOAD))
    assert robot.events() == []
    assert robot.state is state
    assert robot.dropped["PayloadError"] == 1


@pytest.mark.parametrize("command", [0x00, 0x01, 0x10, 0x42, 0xFF])
def test_an_unknown_command_is_answered_so(command: int) -> None:
    robot = ready_robot()
    robot.receive(wire.encode(Frame(command=command, sequence=9, payload=bytes(44))), START)
    assert only_reply(robot) == (9, m.Status(m.Code.UNKNOWN_COMMAND))
    assert robot.events() == []


def test_a_bad_request_repeated_is_answered_the_same_again() -> None:
    robot = ready_robot()
    bad = wire.encode(Frame(command=0x0F, sequence=4, payload=b"bad"))
    robot.receive(bad, START)
    first = robot.outgoing()
    robot.receive(bad, START)
    assert robot.outgoing() == first
    assert robot.dropped == {"PayloadError": 1, "repeated request": 1}


def test_a_robot_ignores_states_and_a_client_ignores_heartbeats() -> None:
    ends = connected()
    ends.robot.receive(state_datagram(1), ends.now)
    assert ends.robot.dropped == {"state from a client": 1}
    ends.client.receive(HEARTBEAT, ends.now)
    assert idle(ends.robot)
    assert idle(ends.client)


def test_dropped_datagrams_are_counted_by_reason() -> None:
    robot = ready_robot()
    good = asking(m.ListActions(), 4)
    robot.receive(good[:-1], START)
    robot.receive(good[:-1] + bytes([good[-1] ^ 1]), START)
    robot.receive(b"x" * 30, START)
    assert robot.dropped == {"TruncatedError": 1, "ChecksumError": 1, "DecodeError": 1}
    assert idle(robot)


# ---- reports ------------------------------------------------------------------------------------


def reported(client: TeachingSession) -> list[int]:
    times = []
    for event in client.events():
        assert isinstance(event, Reported)
        times.append(event.state.time_us)
    return times


def test_states_that_are_repeated_or_overtaken_are_dropped() -> None:
    client = connected().client
    for time_us in (5_000_000, 5_020_000, 5_020_000, 5_010_000, 4_020_001, 5_040_000):
        client.receive(state_datagram(time_us), START)
    assert reported(client) == [5_000_000, 5_020_000, 5_040_000]
    assert client.dropped["stale state"] == 3


def test_a_robot_clock_that_is_far_back_is_a_robot_that_was_restarted() -> None:
    client = connected().client
    for time_us in (5_000_000, 4_000_000, 0, 20_000):
        client.receive(state_datagram(time_us), START)
    assert reported(client) == [5_000_000, 4_000_000, 0, 20_000]


def test_the_first_state_may_bear_the_time_0() -> None:
    client = connected().client
    client.receive(state_datagram(0), START)
    assert reported(client) == [0]


def test_a_state_that_cannot_be_read_is_dropped() -> None:
    client = connected().client
    broken = Frame(command=0, sequence=0, payload=bytes(100), type=MessageType.STATE)
    client.receive(wire.encode(broken), START)
    assert client.events() == []
    assert client.dropped["PayloadError"] == 1


def test_states_before_the_session_is_ready_are_not_reported() -> None:
    client = TeachingSession(Role.CLIENT)
    client.open(START)
    client.receive(state_datagram(1), START)
    assert client.events() == []


@pytest.mark.parametrize(("all_joints", "joints", "size"), [(True, 29, 288), (False, 12, 148)])
def test_a_robot_reports_in_the_layout_that_was_subscribed(
    all_joints: bool, joints: int, size: int
) -> None:
    ends = Ends(client=TeachingSession(Role.CLIENT, all_joints=all_joints))
    ends.client.open(ends.now)
    ends.exchange()
    ends.client.events()
    ends.robot.report(robot_state(77))
    (datagram,) = ends.robot.outgoing()
    frame = wire.decode(datagram)
    assert (frame.type, len(frame.payload)) == (MessageType.STATE, size)
    ends.client.receive(datagram, ends.now)
    (event,) = ends.client.events()
    assert isinstance(event, Reported)
    assert event.state.joints_rad == (0.5,) * joints
    assert event.state.time_us == 77


def test_a_client_may_change_its_subscription() -> None:
    robot = ready_robot()
    robot.receive(asking(m.Subscribe(all_joints=False), 4), START)
    robot.outgoing()
    robot.report(robot_state())
    (frame,) = frames_of(robot.outgoing())
    assert len(frame.payload) == 148
    assert robot.events() == []


@pytest.mark.parametrize("state", list(INITIALISATION))
def test_a_robot_reports_only_to_who_has_subscribed(state: TeachingSessionState) -> None:
    robot = robot_in(state)
    robot.report(robot_state())
    assert bool(robot.outgoing()) == (state is TeachingSessionState.SUBSCRIBED)


def test_the_frames_a_robot_sends_by_itself_are_numbered_from_0() -> None:
    robot = ready_robot()
    for _ in range(3):
        robot.report(robot_state())
    assert [frame.sequence for frame in frames_of(robot.outgoing())] == [0, 1, 2]


# ---- the end ------------------------------------------------------------------------------------


def test_closing_says_goodbye_and_the_robot_hears_it() -> None:
    ends = connected()
    ends.client.request(m.ListActions(), ends.now)
    ends.exchange()
    ends.robot.events()
    ends.client.close(ends.now)
    assert ends.client.state is TeachingSessionState.CLOSED
    ends.exchange()
    assert ends.robot.events() == [PeerLeft()]
    assert ends.robot.state is TeachingSessionState.CLOSED
    ends.client.tick(ends.now + 100.0)
    assert idle(ends.client)


def test_closing_twice_says_goodbye_once() -> None:
    ends = connected()
    ends.client.close(ends.now)
    ends.client.close(ends.now)
    (frame,) = frames_of(ends.client.outgoing())
    assert wire.decode_command(frame.command, frame.payload) == m.ReleaseControl()


def test_closing_what_was_never_answered_says_nothing() -> None:
    client = TeachingSession(Role.CLIENT)
    client.close(START)
    assert client.outgoing() == []
    assert client.due == float("inf")


def test_closing_after_the_loss_says_nothing() -> None:
    ends = connected()
    ends.client.tick(ends.now + 2.5)
    ends.client.close(ends.now + 2.5)
    assert ends.client.outgoing() == []


def ended(end: str, how: str) -> TeachingSession:
    ends = connected()
    session: TeachingSession = getattr(ends, end)
    if how == "close":
        session.close(ends.now)
    else:
        session.tick(ends.now + 100.0)
    session.outgoing()
    session.events()
    return session


@pytest.mark.parametrize("how", ["close", "loss"])
@pytest.mark.parametrize("end", ["client", "robot"])
def test_nothing_happens_after_the_end(end: str, how: str) -> None:
    session = ended(end, how)
    state = session.state
    assert not session.live
    for datagram in (asking(m.TakeControl(), 0), answering(0x1A, 4), state_datagram(1), HEARTBEAT):
        session.receive(datagram, START + 200.0)
    session.tick(START + 300.0)
    session.report(robot_state())
    with pytest.raises(LocalProtocolError):
        session.request(m.StopMotion(), START)
    with pytest.raises(LocalProtocolError):
        session.open(START)
    assert idle(session)
    assert session.state is state
    assert session.due == float("inf")
    assert session.dropped["after the end"] == 4


@pytest.mark.parametrize("how", ["close", "loss"])
def test_a_robot_sends_no_late_answer_after_the_end(how: str) -> None:
    robot = ready_robot()
    robot.receive(asking(m.ListActions(), 4), START)
    if how == "close":
        robot.close(START)
    else:
        robot.tick(START + 100.0)
    with contextlib.suppress(LocalProtocolError):  # refusing is as good as staying silent
        robot.reply(4, OK)
    assert robot.outgoing() == []


# ---- a bad link ---------------------------------------------------------------------------------

PATIENT = TeachingTiming(
    connect_s=1e6, answer_s=1e6, robot_silence_s=1e6, client_silence_s=1e6, memory_s=1e7
)
"""Nobody is given up: what is tested is who gets which answer, not when somebody loses patience."""


def own_answer(token: int, message: m.Command) -> m.Reply:
    """Return a reply that no other request could have got."""
    if isinstance(message, m.ListActions):
        return m.ActionList((m.ActionEntry(f"answer to {token}", token),))
    return m.Status(100_000 + token)


def is_start(message: m.Command) -> bool:
    started = isinstance(message, m.EnterTeaching | m.PlayAction | m.BeginStream)
    return started or message == m.Record(on=True)


def is_end(message: m.Command) -> bool:
    return isinstance(message, m.ExitTeaching | m.StopMotion)


@dataclass
class Ledger:
    """Who asked what, what reached the robot, what came back; complains about every wrong entry.

    Tokens must not wrap, so that they can be compared.
    """

    asked: dict[int, m.Command] = field(default_factory=dict)
    handed_out: dict[int, m.Command] = field(default_factory=dict)
    open: list[int] = field(default_factory=list)
    answered: set[int] = field(default_factory=set)

    def from_robot(self, events: Sequence[Event | PoseReceived]) -> None:
        for event in events:
            assert isinstance(event, Requested), event
            token, command = event.token, event.command
            assert token not in self.handed_out, f"{command} was handed out twice"
            if is_start(command):
                newer = [t for t, c in self.handed_out.items() if t > token and is_end(c)]
                assert not newer, f"{command} was handed out behind its end"
            if token in self.asked:
                assert type(command) is type(self.asked[token])
            else:
                assert command == m.KeepTeaching()
            self.handed_out[token] = command
            self.open.append(token)

    def from_client(self, events: Sequence[Event | PoseReceived]) -> None:
        for event in events:
            assert isinstance(event, Replied), event
            token = event.token
            assert token in self.asked
            assert token not in self.answered, f"{token} was answered twice"
            message = self.asked[token]
            if event.reply == m.Status(m.Code.SUPERSEDED):
                assert is_start(message)
                assert any(t > token and is_end(c) for t, c in self.asked.items())
            else:
                assert event.reply == own_answer(token, message), f"{message} got another's answer"
            self.answered.add(token)

    @property
    def waiting(self) -> set[int]:
        return self.asked.keys() - self.answered


def corrupted(datagram: bytes, bit: int) -> bytes:
    bit %= 8 * len(datagram)
    damaged = bytearray(datagram)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


class BadLink(RuleBasedStateMachine):
    """A client, a robot, and a link that loses, repeats, reorders and damages at will."""

    @initialize()
    def connect(self) -> None:
        self.ends = connected(PATIENT)
        self.ledger = Ledger()
        self.up: list[bytes] = []
        self.down: list[bytes] = []
        self.sound = True

    def settle(self) -> None:
        self.sound = False
        self.up += self.ends.client.outgoing()
        self.down += self.ends.robot.outgoing()
        self.ledger.from_robot(self.ends.robot.events())
        self.ledger.from_client(self.ends.client.events())
        self.sound = True

    @rule(message=st.sampled_from(OTHERS))
    def ask(self, message: m.Command) -> None:
        token = self.ends.client.request(message, self.ends.now)
        self.ledger.asked[token] = message
        self.settle()

    @precondition(lambda self: self.up)
    @rule(which=st.integers(0, 1000), keep=st.booleans())
    def deliver_to_the_robot(self, which: int, keep: bool) -> None:
        datagram = self.up[which % len(self.up)] if keep else self.up.pop(which % len(self.up))
        self.ends.robot.receive(datagram, self.ends.now)
        self.settle()

    @precondition(lambda self: self.down)
    @rule(which=st.integers(0, 1000), keep=st.booleans())
    def deliver_to_the_client(self, which: int, keep: bool) -> None:
        datagram = self.down[which % len(self.down)]
        if not keep:
            self.down.remove(datagram)
        self.ends.client.receive(datagram, self.ends.now)
        self.settle()

    @precondition(lambda self: self.up or self.down)
    @rule(which=st.integers(0, 1000))
    def lose(self, which: int) -> None:
        flying = self.up if self.up and (which % 2 or not self.down) else self.down
        flying.pop(which % len(flying))

    @precondition(lambda self: self.up or self.down)
    @rule(which=st.integers(0, 1000), bit=st.integers(0, 10_000))
    def damage(self, which: int, bit: int) -> None:
        for flying, end in ((self.up, self.ends.robot), (self.down, self.ends.client)):
            if flying:
                datagram = flying.pop(which % len(flying))
                end.receive(corrupted(datagram, bit), self.ends.now)
        self.settle()

    @precondition(lambda self: self.ledger.open)
    @rule(which=st.integers(0, 1000))
    def answer(self, which: int) -> None:
        token = self.ledger.open.pop(which % len(self.ledger.open))
        self.ends.robot.reply(token, own_answer(token, self.ledger.handed_out[token]))
        self.settle()

    @rule(seconds=st.sampled_from([0.05, 0.11, 0.5, 5.0]))
    def wait(self, seconds: float) -> None:
        self.ends.now += seconds
        self.ends.client.tick(self.ends.now)
        self.ends.robot.tick(self.ends.now)
        self.settle()

    def teardown(self) -> None:
        if not getattr(self, "sound", False):
            return  # a rule has failed, and its failure is the one to show
        for _ in range(20):  # the link has healed
            while self.up or self.down or self.ledger.open:
                if self.ledger.open:
                    self.answer(0)
                elif self.up:
                    self.deliver_to_the_robot(0, keep=False)
                else:
                    self.deliver_to_the_client(0, keep=False)
            if not self.ledger.waiting:
                break
            self.wait(0.5)
        assert not self.ledger.waiting
        assert self.ends.client.live
        assert self.ends.robot.live


def test_whatever_a_bad_link_does_each_request_is_carried_out_once_and_gets_its_own_answer() -> (
    None
):
    run_state_machine_as_test(
        BadLink,
        settings=settings(
            deadline=None,
            stateful_step_count=50,
            report_multiple_bugs=False,
            phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
        ),
    )


@dataclass
class Weather:
    """A link in simulated time with seeded misfortune."""

    rng: random.Random
    loss: float = 0.2
    flying: list[tuple[float, int, str, bytes]] = field(default_factory=list)
    sent: int = 0

    def send(self, to: str, datagrams: list[bytes], now: float) -> None:
        for datagram in datagrams:
            while self.rng.random() >= self.loss:
                self.sent += 1
                delay = self.rng.choice([0.001, 0.01, 0.05, 0.5]) * self.rng.random()
                data = datagram
                if self.rng.random() < 0.05:
                    data = corrupted(datagram, self.rng.randrange(10_000))
                self.flying.append((now + delay, self.sent, to, data))
                if self.rng.random() >= 0.2:  # else once more
                    break

    def arrived(self, now: float) -> list[tuple[str, bytes]]:
        due = sorted(entry for entry in self.flying if entry[0] <= now)
        self.flying = [entry for entry in self.flying if entry[0] > now]
        return [(to, data) for _, _, to, data in due]


@pytest.mark.parametrize("seed", sample_parameters(range(4), 1))
def test_a_long_conversation_in_bad_weather_loses_and_confuses_nothing(seed: int) -> None:
    rng = random.Random(seed)
    weather = Weather(rng)
    ends = connected(TeachingTiming(answer_s=60.0, memory_s=90.0))
    ledger = Ledger()
    for step in range(12_000):
        ends.now += 0.01
        if step % 4 == 0 and step < 8000 and len(ledger.waiting) < 50:
            message = rng.choice(OTHERS)
            ledger.asked[ends.client.request(message, ends.now)] = message
        if step == 9000:
            weather.loss = 0.0  # the link heals
        if step % 2 == 0:
            ends.robot.report(robot_state(int(ends.now * 1e6)))
        for to, datagram in weather.arrived(ends.now):
            getattr(ends, to).receive(datagram, ends.now)
        ends.client.tick(ends.now)
        ends.robot.tick(ends.now)
        ledger.from_robot(ends.robot.events())
        events = [e for e in ends.client.events() if not isinstance(e, Reported)]
        ledger.from_client(events)
        while ledger.open and rng.random() < 0.7:
            token = ledger.open.pop(rng.randrange(len(ledger.open)))
            ends.robot.reply(token, own_answer(token, ledger.handed_out[token]))
        weather.send("robot", ends.client.outgoing(), ends.now)
        weather.send("client", ends.robot.outgoing(), ends.now)
    assert len(ledger.asked) > 1000
    assert not ledger.waiting
    assert ends.client.live
    assert ends.robot.live
