"""Both ends of an A1's conversation, wired back to back by hand; the time is a number."""

import math
import struct

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from a1_samples import SAMPLES, sealed
from rote.errors import BadRequestError, LocalProtocolError
from rote.session.a1 import (
    A1Reported,
    A1Session,
    A1SessionState,
    A1Timing,
    Commanded,
    Event,
    Jumped,
    Learned,
    Level,
    Mismatched,
    Recovered,
    WentStale,
    make_neutral_command,
)
from rote.session.events import PeerLost
from rote.session.teaching import Role
from rote.wire.a1 import codec as wire
from rote.wire.a1.codec import Seal
from rote.wire.a1.motors import MotorCmds, MotorState, MotorStates
from rote.wire.a1.values import Dialect, HighCmd, HighState, Imu, LowCmd, LowState, ScaledHighCmd
from sampled import sample_examples

START = 1000.0
"""When the tests begin. Not 0, because a real clock does not either."""
OLD, MIDDLE, NEW, GO1 = Dialect.A1_3_2, Dialect.A1_3_3, Dialect.A1_3_3_4, Dialect.GO1
LIMP = LowCmd(motors=MotorCmds.servo(kd_nm_s_rad=2.0, dq_rad_s=0.0))
PERIOD = A1Timing().period_s


def client(level: Level = Level.LOW, dialect: Dialect | None = None) -> A1Session:
    session = A1Session(Role.CLIENT, level, dialect=dialect)
    session.open(START)
    return session


def robot(level: Level = Level.LOW, dialect: Dialect = NEW, *, paced: bool = False) -> A1Session:
    return A1Session(Role.ROBOT, level, dialect=dialect, paced=paced)


def state_of(level: Level, dialect: Dialect, tick: int = 0) -> bytes:
    if level is Level.LOW:
        return wire.encode(LowState(tick=tick), dialect)
    state = HighState(tick=tick if dialect is OLD else None)
    return wire.encode(wire.fit(state, dialect), dialect)


def met(level: Level = Level.LOW, dialect: Dialect = NEW, tick: int = 0) -> A1Session:
    """A client that has heard a robot at `START`, and whose reports were taken."""
    session = client(level)
    session.receive(state_of(level, dialect, tick), START)
    session.events()
    session.outgoing()
    return session


def phase(session: A1Session) -> A1SessionState:
    return session.state


def of_type(session: A1Session, kind: type) -> list[Event]:
    return [event for event in session.events() if isinstance(event, kind)]


# ---- the client ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "dialect", "learned"),
    [
        (Level.HIGH, OLD, (OLD,)),
        (Level.HIGH, MIDDLE, (MIDDLE,)),
        (Level.HIGH, NEW, (NEW,)),
        (Level.HIGH, GO1, (GO1,)),
        (Level.LOW, NEW, (OLD, MIDDLE, NEW)),
        (Level.LOW, GO1, (GO1,)),
    ],
)
def test_a_client_learns_the_dialect_from_the_first_state(
    level: Level, dialect: Dialect, learned: tuple[Dialect, ...]
) -> None:
    session = client(level)
    session.receive(state_of(level, dialect), START)
    first, second = session.events()
    assert first == Learned(learned)
    assert isinstance(second, A1Reported)
    assert session.dialect is dialect
    assert phase(session) is A1SessionState.LIVE


@pytest.mark.parametrize("level", Level)
def test_an_unknown_robot_is_asked_for_nothing_in_every_form(level: Level) -> None:
    frames = [wire.decode(datagram) for datagram in client(level).outgoing()]
    spoken = {dialect for frame in frames for dialect in frame.dialects}
    assert spoken == set(Dialect)
    for frame in frames:
        assert isinstance(frame.value, HighCmd | ScaledHighCmd | LowCmd)
        asked = make_neutral_command(level, frame.dialects[0])
        assert wire.encode(frame.value, frame.dialects[0]) == wire.encode(asked, frame.dialects[0])


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("level", Level)
def test_a_known_robot_is_asked_for_nothing_in_its_form(level: Level, dialect: Dialect) -> None:
    (datagram,) = client(level, dialect).outgoing()
    assert dialect in wire.decode(datagram).dialects


def test_nothing_asked_of_motors_is_to_brake() -> None:
    asked = make_neutral_command(Level.LOW, NEW)
    assert isinstance(asked, LowCmd)
    assert set(asked.motors.mode[:12].tolist()) == {0}


def test_a_client_says_its_command_every_period() -> None:
    session = met()
    session.command(LIMP, START)
    (said,) = session.outgoing()
    assert said == wire.encode(LIMP, NEW)
    for number in range(1, 6):
        assert session.due == pytest.approx(START + number * PERIOD)
        session.tick(session.due)
        assert session.outgoing() == [said]


def test_a_late_tick_says_the_command_once_and_keeps_the_beat() -> None:
    session = met()
    session.command(LIMP, START)
    session.outgoing()
    session.tick(START + 5.5 * PERIOD)
    assert len(session.outgoing()) == 1
    assert session.late == 4
    assert session.due == pytest.approx(START + 6 * PERIOD)


def test_a_tick_before_its_time_does_nothing() -> None:
    session = met()
    session.command(LIMP, START)
    session.outgoing()
    session.tick(START + PERIOD / 2)
    assert not session.outgoing()
    assert not session.events()


def test_a_command_that_does_not_fit_leaves_the_last_one_standing() -> None:
    session = met()
    session.command(LIMP, START)
    (said,) = session.outgoing()
    with pytest.raises(BadRequestError, match="reserve"):
        session.command(LowCmd(reserve=-1), START)
    with pytest.raises(BadRequestError, match="cannot be sent at the low level"):
        session.command(HighCmd(), START)
    session.tick(session.due)
    assert session.outgoing() == [said]


def test_a_client_goes_stale_and_recovers() -> None:
    session = met()
    session.tick(START + 0.049)
    assert of_type(session, WentStale) == []
    session.tick(START + 0.051)
    (event,) = session.events()
    assert isinstance(event, WentStale)
    assert event.silence_s == pytest.approx(0.051)
    assert phase(session) is A1SessionState.STALE
    session.command(LIMP, START + 0.06)
    assert session.outgoing()[-1] == wire.encode(LIMP, NEW), "a stale robot is still commanded"
    session.tick(START + 0.07)
    assert of_type(session, WentStale) == [], "told once"
    session.receive(state_of(Level.LOW, NEW, tick=1), START + 0.08)
    first, second = session.events()
    assert isinstance(first, Recovered)
    assert first.silence_s == pytest.approx(0.08)
    assert isinstance(second, A1Reported)
    assert phase(session) is A1SessionState.LIVE


def test_a_client_that_is_closed_while_the_robot_is_silent_still_brakes_it() -> None:
    session = met()
    drive = LowCmd(motors=MotorCmds.servo(q_rad=[0.0, 0.8, -1.6] * 4, kp_nm_rad=20.0))
    session.command(drive, START)
    session.tick(START + 0.06)
    assert phase(session) is A1SessionState.STALE
    session.outgoing()
    session.close()
    assert session.outgoing() == [wire.encode(make_neutral_command(Level.LOW, NEW), NEW)]


def test_a_silent_robot_is_lost_and_told_nothing_more() -> None:
    session = met()
    session.tick(START + 0.5)
    session.outgoing()
    session.tick(START + 1.0)
    assert of_type(session, PeerLost) == [PeerLost(1.0)]
    assert phase(session) is A1SessionState.LOST
    assert session.due == math.inf
    session.tick(START + 2.0)
    session.receive(state_of(Level.LOW, NEW), START + 2.0)
    assert not session.outgoing()
    assert not session.events()
    assert session.dropped["after the end"] == 1
    with pytest.raises(LocalProtocolError, match="LOST"):
        session.command(LIMP, START + 2.0)


def test_a_robot_that_never_answers_is_lost_after_the_time_to_connect() -> None:
    session = client()
    session.tick(START + 4.99)
    assert session.events() == []
    session.tick(START + 5.0)
    assert session.events() == [PeerLost(5.0)]


def test_a_client_commands_only_whom_it_has_heard() -> None:
    with pytest.raises(LocalProtocolError, match="SEEKING") as caught:
        client().command(LIMP, START)
    assert "first state" in caught.value.remedy
    with pytest.raises(LocalProtocolError, match="only a new client"):
        met().open(START)
    fresh = A1Session(Role.CLIENT, Level.LOW)
    fresh.receive(state_of(Level.LOW, NEW), START)
    assert fresh.dropped["before the beginning"] == 1
    assert fresh.due == math.inf


@pytest.mark.parametrize(("level", "dialect"), [(Level.LOW, NEW), (Level.HIGH, OLD)])
def test_closing_leaves_the_robot_at_rest(level: Level, dialect: Dialect) -> None:
    session = met(level, dialect)
    session.close()
    (said,) = session.outgoing()
    assert said == wire.encode(make_neutral_command(level, dialect), dialect)
    assert phase(session) is A1SessionState.CLOSED
    assert not session.live
    seeking = client()
    seeking.outgoing()
    seeking.close()
    assert seeking.outgoing() == []


def test_frames_that_are_none_are_counted_and_change_nothing() -> None:
    session = met()
    good = state_of(Level.LOW, NEW)
    for datagram in (b"", bytes(730), good[:-1] + b"\0", bytes(807)):
        session.receive(datagram, START + 0.01)
    session.receive(wire.encode(LowCmd(), NEW), START + 0.01)
    session.receive(state_of(Level.HIGH, NEW), START + 0.01)
    assert session.dropped == {"unknown length": 2, "crc": 1, "head": 1, "another kind": 2}
    assert session.events() == []
    assert session.due <= START + 0.05


def test_another_dialect_is_told_once_and_not_taken() -> None:
    session = client(Level.HIGH, OLD)
    for _ in range(3):
        session.receive(state_of(Level.HIGH, NEW), START)
    assert session.events() == [Mismatched((NEW,))]
    assert session.dropped["another dialect"] == 3
    assert phase(session) is A1SessionState.SEEKING
    session.receive(state_of(Level.HIGH, OLD), START)
    assert of_type(session, Learned) == [Learned((OLD,))]


@pytest.mark.parametrize(
    "state",
    [
        LowState(imu=Imu(rpy_rad=(0.0, 0.0, math.nan))),
        LowState(motors=MotorStates.of([MotorState(q_rad=math.nan)]).to_compact()),
    ],
)
def test_a_state_that_is_no_number_is_not_taken(state: LowState) -> None:
    session = met()
    frame = wire.decode(wire.encode(LowState(), NEW))._replace(value=state)
    session.receive(sealed(frame.encode()), START + 0.01)
    assert session.dropped == {"not a number": 1}
    assert session.events() == []


# ---- the robot's clock --------------------------------------------------------------------------


def after(session: A1Session, ticks: list[int]) -> list[Event]:
    for number, tick in enumerate(ticks, 1):
        session.receive(state_of(Level.LOW, NEW, tick), START + 0.002 * number)
    return session.events()


def test_a_running_clock_is_no_jump() -> None:
    assert all(isinstance(e, A1Reported) for e in after(met(tick=5000), [7000, 9000, 9000, 11_000]))
    wrapping = after(met(tick=2**32 - 1000), [1000, 3000])
    assert [type(event) for event in wrapping] == [A1Reported, A1Reported]


def test_an_overtaken_state_is_not_taken() -> None:
    session = met(tick=5000)
    events = after(session, [9000, 7000, 11_000])
    assert [type(event) for event in events] == [A1Reported, A1Reported]
    assert session.dropped == {"overtaken": 1}


def test_a_clock_that_stays_behind_is_another_life() -> None:
    session = met(tick=90_000_000)
    events = after(session, [1000, 3000, 5000, 7000])
    assert events[0] == Jumped(90_000_000, 5000)
    assert [type(event) for event in events] == [Jumped, A1Reported, A1Reported]
    assert session.dropped == {"overtaken": 2}


def test_a_clock_that_leaps_ahead_is_told() -> None:
    events = after(met(tick=0), [2000, 2000 + 600_000])
    assert [type(event) for event in events] == [A1Reported, Jumped, A1Reported]


def test_a_dialect_without_a_clock_cannot_jump() -> None:
    session = met(Level.HIGH, MIDDLE)
    session.receive(state_of(Level.HIGH, MIDDLE), START + 0.01)
    assert [type(event) for event in session.events()] == [A1Reported]


# ---- the robot ----------------------------------------------------------------------------------


def test_a_robot_answers_each_command_once() -> None:
    session = robot()
    assert not session.report(LowState())
    session.receive(wire.encode(LIMP, NEW), START)
    (event,) = session.events()
    assert isinstance(event, Commanded)
    assert isinstance(event.command, LowCmd)
    assert event.command.motors == LIMP.motors
    assert session.report(LowState(tick=1))
    assert not session.report(LowState(tick=2))
    assert session.outgoing() == [wire.encode(LowState(tick=1), NEW)]


def test_a_paced_robot_sends_what_it_reports() -> None:
    session = robot(paced=True)
    assert not session.report(LowState())
    session.receive(wire.encode(LIMP, NEW), START)
    assert session.report(LowState(tick=1))
    assert session.report(LowState(tick=2))
    assert session.sent == 2


def test_a_robot_watches_for_commands_and_takes_the_next_client() -> None:
    session = robot()
    assert session.due == math.inf
    session.receive(wire.encode(LIMP, NEW), START)
    assert session.due == pytest.approx(START + 0.03)
    session.tick(START + 0.03)
    assert of_type(session, WentStale)[0][0] == pytest.approx(0.03)
    session.receive(wire.encode(LIMP, NEW), START + 0.1)
    assert of_type(session, Recovered)[0][0] == pytest.approx(0.1)
    session.tick(START + 1.1)
    assert of_type(session, PeerLost)[0][0] == pytest.approx(1.0)
    assert phase(session) is A1SessionState.NEW
    assert not session.report(LowState())
    session.receive(wire.encode(LIMP, NEW), START + 9.0)
    assert session.report(LowState())
    session.close()
    assert phase(session) is A1SessionState.CLOSED


def test_a_robot_takes_only_its_own_dialect_and_level() -> None:
    session = robot(Level.HIGH, OLD)
    session.receive(wire.encode(HighCmd(), NEW), START)
    session.receive(wire.encode(LIMP, OLD), START)
    assert session.events() == [Mismatched((MIDDLE, NEW))]
    assert session.dropped == {"another dialect": 1, "another kind": 1}


def test_a_robot_does_not_follow_a_nan() -> None:
    session = robot(Level.HIGH, NEW)
    datagram = bytearray(wire.encode(HighCmd(mode=2), NEW))
    datagram[41:45] = struct.pack("<f", math.nan)
    session.receive(sealed(bytes(datagram)), START)
    assert session.dropped == {"not a number": 1}


def test_each_role_has_its_own_words() -> None:
    with pytest.raises(BadRequestError, match="requires a dialect"):
        A1Session(Role.ROBOT, Level.LOW)
    with pytest.raises(LocalProtocolError, match="only a session in the role ROBOT"):
        client().report(LowState())
    with pytest.raises(LocalProtocolError, match="ROBOT in the state NEW cannot send"):
        robot().command(LIMP, START)
    with pytest.raises(LocalProtocolError, match="only a new client"):
        robot().open(START)


def test_what_the_library_sends_is_obeyed() -> None:
    session = robot(Level.LOW, GO1)
    session.receive(SAMPLES["go1 LowCmd distinct"].datagram, START)
    session.receive(SAMPLES["go1 LowCmd encrypted"].datagram, START)
    assert [type(event) for event in session.events()] == [Commanded, Commanded]


@pytest.mark.parametrize("dialect", [GO1, NEW])
def test_a_chosen_seal_is_for_a_go1_alone(dialect: Dialect) -> None:
    session = A1Session(Role.CLIENT, Level.HIGH, seal=Seal.ENCRYPTED)
    session.open(START)
    session.receive(state_of(Level.HIGH, dialect), START)
    session.outgoing()
    session.command(HighCmd(mode=2), START)
    (said,) = session.outgoing()
    wanted = Seal.ENCRYPTED if dialect is GO1 else Seal.PLAIN
    assert wire.decode(said).seal is wanted


# ---- both ends, at random -----------------------------------------------------------------------


class BothEnds(RuleBasedStateMachine):
    """A client and a robot over a network that loses, keeps back and garbles."""

    @initialize(level=st.sampled_from(Level), dialect=st.sampled_from(Dialect), told=st.booleans())
    def begin(self, level: Level, dialect: Dialect, told: bool) -> None:
        self.now = START
        self.level, self.dialect = level, dialect
        self.client = A1Session(Role.CLIENT, level, dialect=dialect if told else None)
        self.robot = A1Session(Role.ROBOT, level, dialect=dialect)
        self.client.open(self.now)
        self.to_robot: list[bytes] = []
        self.to_client: list[bytes] = []
        self.shown: list[int | None] = []
        self.told: Event | None = None
        self.collect()

    def collect(self) -> None:
        self.to_robot += self.client.outgoing()
        self.to_client += self.robot.outgoing()
        for event in self.client.events():
            assert not isinstance(event, Commanded)
            if isinstance(event, Learned):
                assert self.dialect in event.dialects
            if isinstance(event, A1Reported):
                assert self.client.state is A1SessionState.LIVE
                self.shown.append(event.state.tick)
        for event in self.robot.events():
            assert isinstance(event, Commanded | WentStale | Recovered | PeerLost | Mismatched)

    @rule(seconds=st.sampled_from([0.0, 0.001, 0.002, 0.01, 0.04, 0.2, 1.5]))
    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while (due := min(self.client.due, self.robot.due)) <= until:
            self.now = max(self.now, due)
            self.client.tick(self.now)
            self.robot.tick(self.now)
            self.collect()
        self.now = until

    @rule(count=st.integers(1, 5))
    def deliver(self, count: int) -> None:
        for datagram in self.to_robot[-count:]:
            self.robot.receive(datagram, self.now)
        self.to_robot.clear()
        tick = int((self.now - START) * 1e6)
        low = self.level is Level.LOW
        state = LowState(tick=tick) if low else HighState(tick=tick)
        self.robot.report(wire.fit(state, self.dialect))  # type: ignore[arg-type]
        self.collect()
        for datagram in self.to_client[-count:]:
            self.client.receive(datagram, self.now)
        self.to_client.clear()
        self.collect()

    @rule(place=st.integers(0, 2000), bit=st.integers(0, 7), client=st.booleans())
    def garble(self, place: int, bit: int, client: bool) -> None:
        queue, end = (self.to_client, self.client) if client else (self.to_robot, self.robot)
        if not queue:
            return
        datagram = bytearray(queue.pop())
        place %= len(datagram) // 4 * 4 - 4
        datagram[place] ^= 1 << bit
        heard = end.received
        end.receive(bytes(datagram), self.now)
        assert end.received == heard, "a frame with a wrong bit was taken"

    @rule()
    def command(self) -> None:
        if self.client.state not in (A1SessionState.LIVE, A1SessionState.STALE):
            return
        assert self.client.dialect is not None
        self.client.command(make_neutral_command(self.level, self.client.dialect), self.now)
        self.collect()

    @invariant()
    def time_is_left(self) -> None:
        if (
            hasattr(self, "client")
            and self.client.live
            and self.client.state is not A1SessionState.NEW
        ):
            assert self.client.due < math.inf

    @invariant()
    def states_are_shown_in_order(self) -> None:
        ticks = [tick for tick in getattr(self, "shown", []) if tick is not None]
        assert ticks == sorted(ticks)


def test_two_ends_agree_whatever_happens() -> None:
    run_state_machine_as_test(
        BothEnds, settings=settings(sample_examples(15), stateful_step_count=30)
    )
