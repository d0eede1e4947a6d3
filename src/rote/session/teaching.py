"""One end of a session in teaching frames: the protocol state machine, without I/O or clock.

Feed it what happens (`open`, `request`, `reply`, `report`, `receive`, `tick`, `close`) with the
time it happened; then send what `outgoing` returns, act on what `events` returns, and call `tick`
again no later than `due`. The same class plays both roles:

- CLIENT opens, sends requests, repeats unanswered ones, keeps teaching alive, detects a silent
robot. - ROBOT answers; a repeated request is answered again but emitted only once, and a start that
  arrives after a newer stop is refused. Streamed poses are emitted and not answered.

    NEW ── 09 ──▶ CONTROLLED ── 0A ──▶ SYNCED ── 0B ──▶ SUBSCRIBED ── 0C ──▶ READY ──▶ LOST, CLOSED
"""

from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum, IntEnum, auto

from rote import messages as m
from rote.errors import DecodeError, LocalProtocolError
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
from rote.session.pose_stream import PoseReceived, PoseStream
from rote.session.replay_cache import REMEMBERED, ReplayCache, is_older
from rote.wire.teaching import codec as wire
from rote.wire.teaching import state as teaching_state
from rote.wire.teaching.codec import CommandId, Frame, MessageType


class Role(Enum):
    """Which end this is."""

    CLIENT = auto()
    ROBOT = auto()


class TeachingSessionState(IntEnum):
    """The states of a session. The order of the first five is the order of initialisation."""

    NEW = 0
    CONTROLLED = 1
    SYNCED = 2
    SUBSCRIBED = 3
    READY = 4
    LOST = 5
    CLOSED = 6


# The command that leads from each state to the next. Nothing else is accepted before READY.
INITIALISATION: dict[TeachingSessionState, tuple[CommandId, TeachingSessionState]] = {
    TeachingSessionState.NEW: (CommandId.CONTROL_MODE, TeachingSessionState.CONTROLLED),
    TeachingSessionState.CONTROLLED: (CommandId.PARAMETER_SYNC, TeachingSessionState.SYNCED),
    TeachingSessionState.SYNCED: (CommandId.STATUS_SUBSCRIBE, TeachingSessionState.SUBSCRIBED),
    TeachingSessionState.SUBSCRIBED: (CommandId.READY_SIGNAL, TeachingSessionState.READY),
}
_REACHES = dict(INITIALISATION.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class TeachingTiming:
    """All waiting times, in seconds."""

    heartbeat_s: float = 4.5
    keep_teaching_s: float = 4.5
    retry_s: float = 0.1
    """The time before an unanswered request is first repeated..."""
    retry_growth: float = 1.5
    retry_most_s: float = 0.4
    """...growing to this."""
    connect_s: float = 5.0
    answer_s: float = 8.0
    """Timeout for an answer while other messages of the robot arrive."""
    robot_silence_s: float = 2.5
    """A robot reports its state 50 times per second; silent for this long, it is lost."""
    client_silence_s: float = 13.5
    """Three heartbeats."""
    memory_s: float = 10.0
    """How long a robot remembers what it answered; longer than `answer_s`."""


MAX_PENDING = 64


@dataclass(slots=True)
class _Pending:
    """A request without an answer yet."""

    command: CommandId
    message: m.Command
    datagram: bytes
    asked_at: float
    retry_at: float
    wait_s: float


class ClockWatch:
    """Detects a robot clock that does not advance; it is treated as if there were none."""

    def __init__(self) -> None:
        self.stuck = False
        """Whether the clock was seen to stand still; it stays true."""
        self._time: int | None = None
        self._since, self._repeats = 0.0, 0

    def update(self, time: int, now: float) -> bool:
        """Process the time of one state, in any unit; return whether the clock is stuck."""
        if time != self._time:
            self._time, self._since, self._repeats = time, now, 0
        else:  # a network may deliver one state twice, but not many times
            self._repeats += 1
            self.stuck |= self._repeats >= _STUCK_STATES and now - self._since >= _STUCK_S
        return self.stuck


_STUCK_STATES, _STUCK_S = 3, 0.2
"""A clock is stuck if this many states in a row repeat its time, over this many seconds."""
_ENDS = (m.ExitTeaching, m.StopMotion)
# Compared by exact type for every request, which is quicker than isinstance.
_HANDSHAKE = frozenset(
    {m.TakeControl, m.ReleaseControl, m.SyncParameters, m.Subscribe, m.SignalReady}
)
_MAY_START = frozenset({m.EnterTeaching, m.PlayAction, m.Record, m.BeginStream})
# Plain numbers: looking up an enumeration's member costs more than comparing it.
_COMMAND, _HEARTBEAT, _STATE = (int(kind) for kind in MessageType)


def _is_start(message: m.Command) -> bool:
    if type(message) not in _MAY_START:
        return False
    return message.on if isinstance(message, m.Record) else True


def _ends_teaching(message: m.Command, reply: m.Reply) -> bool:
    """Whether teaching is over after this reply: entering was refused, or a play was accepted."""
    done = isinstance(reply, m.Status) and reply.code == m.Code.OK
    return isinstance(message, m.PlayAction if done else m.EnterTeaching)


class TeachingSession:
    """One end of one session."""

    def __init__(
        self,
        role: Role,
        *,
        all_joints: bool = True,
        timing: TeachingTiming | None = None,
        now: float = 0.0,
    ) -> None:
        self.role = role
        self.state = TeachingSessionState.NEW
        self.timing = timing or TeachingTiming()
        self.all_joints = all_joints
        """CLIENT: ask for all joints. ROBOT: what the client asked for."""
        self.dropped: Counter[str] = Counter()
        """What arrived and was not used, by reason."""
        self.clockless = False
        """CLIENT: whether the robot reports no time, so that states have `now` instead."""
        self._sequence = 0
        self._outgoing: list[bytes] = []
        self._events: list[Event | PoseReceived] = []
        self._stream = PoseStream()
        self._received_at = now
        self._heartbeat_at = float("inf")
        # CLIENT
        self._opened_at = float("inf")
        self._offset: int | None = None
        self._pending: dict[int, _Pending] = {}
        self._own_tokens: set[int] = set()
        self._keep_teaching_at = float("inf")
        self._compensation: tuple[float, ...] = ()
        self._newest_us = -1
        self._clock = ClockWatch()
        # ROBOT
        self._replay_cache = ReplayCache(self.timing.memory_s)
        self._ended_token: int | None = None
        self._opening: tuple[int, bytes, float] | None = None

    # ---- output ---------------------------------------------------------------------------------

    def outgoing(self) -> list[bytes]:
        """Return the datagrams to send, once."""
        datagrams, self._outgoing = self._outgoing, []
        return datagrams

    def events(self) -> list[Event | PoseReceived]:
        """Return what has happened, once."""
        events, self._events = self._events, []
        return events

    @property
    def due(self) -> float:
        """When to call `tick` next at the latest; infinity if there is nothing to wait for."""
        if not self.live:
            return float("inf")
        # Written out, because it is called after every datagram.
        due = self._lost_at()
        due = min(due, self._heartbeat_at)
        due = min(due, self._keep_teaching_at)
        for pending in self._pending.values():
            due = min(due, pending.retry_at)
        return due

    @property
    def live(self) -> bool:
        """Whether the session is neither lost nor closed."""
        return self.state <= TeachingSessionState.READY

    @property
    def keeps_teaching(self) -> bool:
        """CLIENT: whether keep-alives are sent, so that the arms may be soft."""
        return self._keep_teaching_at != float("inf")

    # ---- what either end does -------------------------------------------------------------------

    def receive(self, datagram: bytes, now: float) -> None:
        """Process one datagram from the peer; what cannot be used is counted and dropped."""
        if not self.live:
            self.dropped["after the end"] += 1
            return
        try:
            frame = wire.decode(datagram)
            if self.role is Role.CLIENT:
                self._receive_as_client(frame, now)
            else:
                self._receive_as_robot(frame, datagram[-4:], now)
        except DecodeError as error:
            self.dropped[type(error).__name__] += 1
            return
        self._received_at = now

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        if now < self.due:
            return
        if now >= self._lost_at():
            connecting = self.role is Role.CLIENT and self.state is not TeachingSessionState.READY
            since = self._opened_at if connecting else self._received_at
            self.state = TeachingSessionState.LOST
            self._pending.clear()
            self._events.append(PeerLost(now - since))
            return
        if now >= self._heartbeat_at:
            self._heartbeat_at = now + self.timing.heartbeat_s
            self._send_frame(MessageType.HEARTBEAT, CommandId.NONE, b"")
        if now >= self._keep_teaching_at:
            self._keep_teaching_at = now + self.timing.keep_teaching_s
            keep = m.KeepTeaching(self._compensation) if self._compensation else m.KeepTeaching()
            self._own_tokens.add(self._send_request(keep, now))
        for token, pending in list(self._pending.items()):
            if now >= pending.retry_at:
                self._retry_request(token, pending, now)

    def close(self, now: float) -> None:
        """End the session; a client releases control and does not wait for an answer."""
        if (
            self.role is Role.CLIENT
            and TeachingSessionState.NEW < self.state <= TeachingSessionState.READY
        ):
            self._send_request(m.ReleaseControl(), now)
        self._pending.clear()
        self.state = TeachingSessionState.CLOSED

    def _lost_at(self) -> float:
        if self.role is Role.ROBOT:
            return self._received_at + self.timing.client_silence_s
        if self.state is TeachingSessionState.READY:
            return self._received_at + self.timing.robot_silence_s
        return self._opened_at + self.timing.connect_s

    def _send_frame(self, kind: MessageType, command: CommandId, payload: bytes) -> bytes:
        frame = Frame(type=kind, command=command, sequence=self._sequence, payload=payload)
        self._sequence = (self._sequence + 1) & 0xFFFF
        datagram = wire.encode(frame)
        self._outgoing.append(datagram)
        return datagram

    # ---- CLIENT ---------------------------------------------------------------------------------

    def open(self, now: float) -> None:
        """Begin the initialisation; `Opened` or `PeerLost` follows."""
        if self.role is Role.ROBOT or self.state is not TeachingSessionState.NEW or self._pending:
            raise LocalProtocolError("only a new client session can be opened")
        self._opened_at = now
        self._own_tokens.add(self._send_request(m.TakeControl(), now))

    def request(self, message: m.Command, now: float) -> int:
        """Ask the robot; `Replied` or `Unanswered` with the returned token follows."""
        if self.role is Role.ROBOT or self.state is not TeachingSessionState.READY:
            raise LocalProtocolError(f"nothing can be asked of a session that is {self.state.name}")
        if len(self._pending) >= MAX_PENDING and not isinstance(message, _ENDS):
            raise LocalProtocolError(f"{MAX_PENDING} requests are already waiting for an answer")
        if isinstance(message, _ENDS):
            self._drop_superseded()
        token = self._send_request(message, now)
        if isinstance(message, m.EnterTeaching):
            # From the request on: if only the answer is lost, the arms are soft anyway.
            self._keep_teaching_at = now + self.timing.keep_teaching_s
            self._compensation = message.compensation
        elif isinstance(message, _ENDS):
            self._keep_teaching_at = float("inf")
        self._stream.on_request(token, message)
        return token

    @property
    def stream(self) -> int | None:
        """The number of the current stream; None if there is none, or after a stop was requested.

        Its poses are `wire.encode_pose`d with this number, and sent when they are due. They have no
        sequence numbers, which would push all requests out of the robot's cache.
        """
        return self._stream.begun

    def _send_request(self, message: m.Command, now: float) -> int:
        command, payload = wire.encode_command(message)
        token = self._sequence
        datagram = self._send_frame(MessageType.COMMAND, command, payload)
        wait_s = self.timing.retry_s
        self._pending[token] = _Pending(command, message, datagram, now, now + wait_s, wait_s)
        return token

    def _drop_superseded(self) -> None:
        # After a stop, a pending play or keep-alive must not be repeated.
        for token, pending in list(self._pending.items()):
            if token in self._own_tokens:
                del self._pending[token]
                self._own_tokens.discard(token)
            elif _is_start(pending.message):
                del self._pending[token]
                self._events.append(Replied(token, m.Status(m.Code.SUPERSEDED)))

    def _retry_request(self, token: int, pending: _Pending, now: float) -> None:
        if (
            self.state is TeachingSessionState.READY
            and now - pending.asked_at >= self.timing.answer_s
        ):
            del self._pending[token]
            if token in self._own_tokens:
                self._own_tokens.discard(token)
            else:
                self._events.append(Unanswered(token, now - pending.asked_at))
            return
        pending.wait_s = min(pending.wait_s * self.timing.retry_growth, self.timing.retry_most_s)
        pending.retry_at = now + pending.wait_s
        self._outgoing.append(pending.datagram)

    def _receive_as_client(self, frame: Frame, now: float) -> None:
        if frame.type == _STATE:
            self._receive_state(teaching_state.decode_state(frame.payload), now)
        elif frame.type == _COMMAND:
            self._receive_reply(frame, now)

    def _receive_state(self, state: m.RobotState, now: float) -> None:
        if state.time_us == 0 and state.mode == teaching_state.UNKNOWN_MODE:
            # A robot that implements only the documents reports neither its time nor its phase.
            self.clockless |= self._newest_us == 0
            if self.clockless:
                state = replace(state, time_us=int(now * 1e6), phase_told=False)
        elif self._clock.update(state.time_us, now):
            self.clockless = True
            state = replace(state, time_us=int(now * 1e6))
        behind_us = self._newest_us - state.time_us
        if self.state is not TeachingSessionState.READY or 0 <= behind_us < 1_000_000:
            # Repeated or overtaken. A clock far behind means that the robot was restarted.
            self.dropped["stale state"] += 1
            return
        self._newest_us = state.time_us
        self._events.append(Reported(state))

    def _receive_reply(self, frame: Frame, now: float) -> None:
        # The documents contradict themselves: a reply carries the request's number, or one more.
        # The first reply shows which. After that only one reading is accepted; otherwise a repeated
        # reply would be taken for the answer to the previous request.
        for offset in (0, 1) if self._offset is None else (self._offset,):
            token = (frame.sequence - offset) & 0xFFFF
            pending = self._pending.get(token)
            if pending is not None and pending.command == frame.command:
                break
        else:
            self.dropped["reply to nothing"] += 1
            return
        reply = wire.decode_reply(frame.command, frame.payload)
        self._offset = offset
        del self._pending[token]
        if self.state is not TeachingSessionState.READY:
            self._advance_initialisation(reply, now)
        elif token in self._own_tokens:
            self._own_tokens.discard(token)
        else:
            if _ends_teaching(pending.message, reply):
                self._keep_teaching_at = float("inf")
            self._stream.on_reply(token, reply)
            self._events.append(Replied(token, reply))
            stopped = isinstance(pending.message, m.StopMotion)
            if stopped and isinstance(reply, m.Status) and reply.code == m.Code.OK:
                self._answer_older_stops(token, reply)

    def _answer_older_stops(self, answered: int, reply: m.Reply) -> None:
        # Repeated after this answer, they would stop what is started from now on.
        for token, pending in list(self._pending.items()):
            if isinstance(pending.message, m.StopMotion) and is_older(token, answered):
                del self._pending[token]
                self._events.append(Replied(token, reply))

    def _advance_initialisation(self, reply: m.Reply, now: float) -> None:
        self._own_tokens.clear()
        if not isinstance(reply, m.Status) or reply.code != m.Code.OK:
            self.state = TeachingSessionState.LOST
            code = reply.code if isinstance(reply, m.Status) else m.Code.UNKNOWN_COMMAND
            self._events.append(OpenRefused(code))
            return
        self.state = INITIALISATION[self.state][1]
        if self.state is TeachingSessionState.READY:
            self._heartbeat_at = now + self.timing.heartbeat_s
            self._received_at = now
            self._events.append(Opened())
            return
        steps: dict[TeachingSessionState, m.Command] = {
            TeachingSessionState.CONTROLLED: m.SyncParameters(),
            TeachingSessionState.SYNCED: m.Subscribe(all_joints=self.all_joints),
            TeachingSessionState.SUBSCRIBED: m.SignalReady(),
        }
        self._own_tokens.add(self._send_request(steps[self.state], now))

    # ---- ROBOT ----------------------------------------------------------------------------------

    def reply(self, token: int, reply: m.Reply) -> None:
        """Answer the request `token`. Replies to a client that was lost or has left are dropped."""
        if self.role is Role.ROBOT and not self.live:
            return
        answered = self._replay_cache.get(token)
        if self.role is Role.CLIENT or answered is None or answered.reply is not None:
            raise LocalProtocolError(f"there is no unanswered request {token}")
        frame = Frame(command=answered.command, sequence=token, payload=wire.encode_reply(reply))
        answered.reply = wire.encode(frame)
        self._outgoing.append(answered.reply)
        self._stream.on_reply(token, reply)

    def report(self, state: m.RobotState) -> None:
        """Send the robot's state to a client that subscribed to it."""
        if self.role is Role.ROBOT and self.state in (
            TeachingSessionState.SUBSCRIBED,
            TeachingSessionState.READY,
        ):
            payload = teaching_state.encode_state(state, all_joints=self.all_joints)
            self._send_frame(MessageType.STATE, CommandId.NONE, payload)

    def _receive_as_robot(self, frame: Frame, crc: bytes, now: float) -> None:
        if frame.type == _STATE:
            self.dropped["state from a client"] += 1
            return
        if frame.type == _HEARTBEAT:
            if self.state is not TeachingSessionState.NEW:
                self._advance_sequence(frame.sequence)
            return
        if wire.is_pose(frame):
            self._receive_pose(frame)
            return
        if self._is_repeated(frame, crc, now):
            return
        self._replay_cache.add(frame, crc, now)
        self._advance_sequence(frame.sequence)
        try:
            message = wire.decode_command(frame.command, frame.payload)
        except DecodeError as error:
            self.dropped[type(error).__name__] += 1
            known = frame.command in wire.COMMANDS
            code = m.Code.BAD_PAYLOAD if known else m.Code.UNKNOWN_COMMAND
            self.reply(frame.sequence, m.Status(code))
            return
        self._handle_command(frame, crc, message, now)

    def _receive_pose(self, frame: Frame) -> None:
        pose = wire.decode_command(frame.command, frame.payload)
        assert isinstance(pose, m.StreamPose)
        if problem := self._stream.reject_reason(frame.sequence, pose.number):
            self.dropped[problem] += 1
        else:
            self._events.append(PoseReceived(pose))

    def _is_repeated(self, frame: Frame, crc: bytes, now: float) -> bool:
        """Answer a repeated request again; drop one that is too old to be recognised."""
        known = self._replay_cache.find_repeated(frame.sequence, crc, now)
        if known is not None:
            self.dropped["repeated request"] += 1
            if known.reply is not None:
                self._outgoing.append(known.reply)
            return True
        opening = self._opening
        if opening is not None and opening[0] == frame.sequence and opening[1] == crc:
            if now - opening[2] < self.timing.memory_s:
                self.dropped["repeated opening"] += 1
                return True
        elif self._replay_cache.is_stray(frame):
            self.dropped["stray request"] += 1
            return True
        return False

    def _advance_sequence(self, sequence: int) -> None:
        self._replay_cache.advance(sequence)
        newest = self._replay_cache.newest or 0
        if self._ended_token is not None and (newest - self._ended_token) & 0xFFFF > REMEMBERED:
            # A start that is older than this end is dropped as a stray request anyway.
            self._ended_token = None

    def _handle_command(self, frame: Frame, crc: bytes, message: m.Command, now: float) -> None:
        token = frame.sequence
        if type(message) in _HANDSHAKE:
            self._handle_handshake(frame, crc, message, now)
        elif self.state is not TeachingSessionState.READY:
            self.reply(token, m.Status(m.Code.NOT_INITIALISED))
        elif _is_start(message) and self._has_ended_after(token):
            self.reply(token, m.Status(m.Code.SUPERSEDED))
        else:
            if isinstance(message, _ENDS) and not self._has_ended_after(token):
                self._ended_token = token
            self._stream.on_request(token, message)
            self._events.append(Requested(token, message))

    def _handle_handshake(self, frame: Frame, crc: bytes, message: m.Command, now: float) -> None:
        if isinstance(message, m.TakeControl):
            self._begin_session(frame, crc, now)
        elif isinstance(message, m.ReleaseControl):
            self.reply(frame.sequence, m.Status())
            self._events.append(PeerLeft())
            self.state = TeachingSessionState.CLOSED
        else:
            self._handle_initialisation(frame.sequence, frame.command, message)

    def _has_ended_after(self, token: int) -> bool:
        return self._ended_token is not None and is_older(token, self._ended_token)

    def _begin_session(self, frame: Frame, crc: bytes, now: float) -> None:
        if self.state is not TeachingSessionState.NEW:
            # The same address starts over: whatever the old client was doing is over.
            self._events.append(PeerLeft())
        self._replay_cache.restart(frame, crc, now)
        self._ended_token = None
        self._stream = PoseStream()
        self._opening = (frame.sequence, crc, now)
        self._heartbeat_at = now + self.timing.heartbeat_s
        self.state = TeachingSessionState.CONTROLLED
        self.reply(frame.sequence, m.Status())

    def _handle_initialisation(self, token: int, command: int, message: m.Command) -> None:
        reached = _REACHES[CommandId(command)]
        if reached > self.state + 1:
            self.reply(token, m.Status(m.Code.NOT_INITIALISED))
            return
        if isinstance(message, m.Subscribe):
            self.all_joints = message.all_joints
        if reached == self.state + 1:
            self.state = reached
            if reached is TeachingSessionState.READY:
                self._events.append(Opened())
        self.reply(token, m.Status())
