"""One end of a session in teaching frames: the protocol state machine, without I/O or clock.

Feed it what happens (`open`, `request`, `reply`, `report`, `receive`, `tick`, `close`) with the
time it happened; then send what `outgoing` returns, act on what `events` returns, and call `tick`
again no later than `due`. The same class plays both roles:

- CLIENT opens, sends requests, repeats unanswered ones, keeps teaching alive, detects a silent
  robot.
- ROBOT answers; a repeated request is answered again but emitted only once, and a start that
  arrives after a newer stop is refused. Streamed poses are emitted and not answered.

    NEW ── 09 ──▶ CONTROLLED ── 0A ──▶ SYNCED ── 0B ──▶ SUBSCRIBED ── 0C ──▶ READY ──▶ LOST, CLOSED
"""

from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum, IntEnum, auto
from typing import NamedTuple

from rote import messages as m
from rote.errors import DecodeError, LocalProtocolError
from rote.session.arm_stream import PoseReceived, PoseStream
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
_STATE_AFTER = dict(INITIALISATION.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class TeachingTiming:
    """All waiting times, in seconds."""

    heartbeat_s: float = 4.5
    keep_teaching_s: float = 4.5
    retry_s: float = 0.1
    """The time before an unanswered request is first repeated."""
    retry_growth: float = 1.5
    max_retry_s: float = 0.4
    """The maximum time between two repetitions."""
    connect_s: float = 5.0
    answer_s: float = 8.0
    """Timeout for an answer while other messages of the robot arrive."""
    robot_silence_s: float = 2.5
    """A robot reports its state 50 times per second; silent for this long, it is lost."""
    client_silence_s: float = 13.5
    """Three heartbeats."""
    memory_s: float = 10.0
    """Time for which a robot remembers its answers; longer than `answer_s`."""


MAX_PENDING = 64


@dataclass(slots=True)
class _PendingCommand:
    """A request without an answer yet."""

    command: CommandId
    message: m.Command
    datagram: bytes
    requested_at: float
    retry_at: float
    wait_s: float


class _OpeningRequest(NamedTuple):
    """The request that began the current session."""

    sequence: int
    crc: bytes
    received_at: float


class ClockWatch:
    """Detects a robot's clock that stands still, so that its times can be ignored."""

    def __init__(self) -> None:
        self.stuck = False
        """Whether the clock was seen to stand still; it stays true."""
        self._newest: int | None = None
        self._newest_since, self._repeats = 0.0, 0

    def update(self, time: int, now: float) -> bool:
        """Process the time of one state, in any unit; return whether the clock is stuck."""
        if time != self._newest:
            self._newest, self._newest_since, self._repeats = time, now, 0
        else:  # a network may deliver one state twice, but not many times
            self._repeats += 1
            repeated_s = now - self._newest_since
            self.stuck |= self._repeats >= _STUCK_STATES and repeated_s >= _STUCK_S
        return self.stuck


_STUCK_STATES, _STUCK_S = 3, 0.2
"""A clock is stuck if this many states in a row repeat its time, over this many seconds."""
_ENDS = (m.ExitTeaching, m.StopMotion)
"""Requests that end a motion or teaching; a start that is older is refused."""
# Compared by exact type for every request, which is quicker than isinstance.
_HANDSHAKE = frozenset(
    {m.TakeControl, m.ReleaseControl, m.SyncParameters, m.Subscribe, m.SignalReady}
)
_MAY_START = frozenset({m.EnterTeaching, m.PlayAction, m.Record, m.BeginStream})
# Plain numbers: looking up an enumeration's member costs more than comparing it.
_COMMAND, _HEARTBEAT, _STATE = (int(kind) for kind in MessageType)


def _is_start(message: m.Command) -> bool:
    """Whether a request starts a motion, a recording or teaching."""
    if type(message) not in _MAY_START:
        return False
    return message.on if isinstance(message, m.Record) else True


def _ends_teaching(message: m.Command, reply: m.Reply) -> bool:
    """Whether teaching is over after this reply: entering was refused, or a play was accepted."""
    if isinstance(reply, m.Status) and reply.code == m.Code.OK:
        return isinstance(message, m.PlayAction)
    return isinstance(message, m.EnterTeaching)


class TeachingSession:
    """One end of one session of teaching frames."""

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
        """Whether states contain all joints. CLIENT: requested. ROBOT: as the client requested."""
        self.dropped: Counter[str] = Counter()
        """Number of dropped datagrams, by reason."""
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
        self._reply_offset: int | None = None
        self.pending: dict[int, _PendingCommand] = {}
        """Requests without an answer, by token."""
        self.own_tokens: set[int] = set()
        """Tokens of requests that the session itself has sent."""
        self._keep_teaching_at = float("inf")
        self._compensation: tuple[float, ...] = ()
        self._newest_us = -1
        self._clock = ClockWatch()
        # ROBOT
        self.replay_cache = ReplayCache(self.timing.memory_s)
        """The latest requests and their answers, for repeated requests."""
        self._end_token: int | None = None
        self._opening_request: _OpeningRequest | None = None

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
        # One by one, which is faster than a list: this is called after every datagram.
        due = self._compute_loss_time()
        due = min(due, self._heartbeat_at)
        due = min(due, self._keep_teaching_at)
        for pending in self.pending.values():
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
        """Process one datagram from the peer; unusable ones are dropped and counted."""
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
        """Send the heartbeat, keep-alive and repeated requests due at `now`; detect a lost peer."""
        if now < self.due:
            return
        if now >= self._compute_loss_time():
            connecting = self.role is Role.CLIENT and self.state is not TeachingSessionState.READY
            silent_since = self._opened_at if connecting else self._received_at
            self.state = TeachingSessionState.LOST
            self.pending.clear()
            self._events.append(PeerLost(now - silent_since))
            return
        if now >= self._heartbeat_at:
            self._heartbeat_at = now + self.timing.heartbeat_s
            self._send_frame(MessageType.HEARTBEAT, CommandId.NONE, b"")
        if now >= self._keep_teaching_at:
            self._keep_teaching_at = now + self.timing.keep_teaching_s
            keep = m.KeepTeaching(self._compensation) if self._compensation else m.KeepTeaching()
            self.own_tokens.add(self._send_request(keep, now))
        for token, pending in list(self.pending.items()):
            if now >= pending.retry_at:
                self._retry_or_give_up(token, pending, now)

    def close(self, now: float) -> None:
        """End the session; a client releases control and does not wait for an answer."""
        if (
            self.role is Role.CLIENT
            and TeachingSessionState.NEW < self.state <= TeachingSessionState.READY
        ):
            self._send_request(m.ReleaseControl(), now)
        self.pending.clear()
        self.state = TeachingSessionState.CLOSED

    def _compute_loss_time(self) -> float:
        """Return when the peer counts as lost if nothing more arrives."""
        if self.role is Role.ROBOT:
            return self._received_at + self.timing.client_silence_s
        if self.state is TeachingSessionState.READY:
            return self._received_at + self.timing.robot_silence_s
        return self._opened_at + self.timing.connect_s

    @property
    def sequence(self) -> int:
        """The sequence number of the next frame, 0 to 65535."""
        return self._sequence

    def _send_frame(self, type_: MessageType, command: CommandId, payload: bytes) -> bytes:
        """Send a frame with the next sequence number; return its datagram."""
        frame = Frame(type=type_, command=command, sequence=self._sequence, payload=payload)
        self._sequence = (self._sequence + 1) & 0xFFFF
        datagram = wire.encode(frame)
        self._outgoing.append(datagram)
        return datagram

    # ---- CLIENT ---------------------------------------------------------------------------------

    def open(self, now: float) -> None:
        """Begin the initialisation; `Opened` or `PeerLost` follows."""
        if self.role is Role.ROBOT or self.state is not TeachingSessionState.NEW or self.pending:
            raise LocalProtocolError("only a new client session can be opened")
        self._opened_at = now
        self.own_tokens.add(self._send_request(m.TakeControl(), now))

    def request(self, message: m.Command, now: float) -> int:
        """Send a request; `Replied` or `Unanswered` with the returned token follows."""
        if self.role is Role.ROBOT or self.state is not TeachingSessionState.READY:
            raise LocalProtocolError(
                f"a session in the state {self.state.name} cannot send requests"
            )
        if len(self.pending) >= MAX_PENDING and not isinstance(message, _ENDS):
            raise LocalProtocolError(f"{MAX_PENDING} requests are already waiting for an answer")
        if isinstance(message, _ENDS):
            self._drop_superseded()
        token = self._send_request(message, now)
        if isinstance(message, m.EnterTeaching):
            # Keep-alives begin with the request: if only its answer is lost, the arms are soft.
            self._keep_teaching_at = now + self.timing.keep_teaching_s
            self._compensation = message.compensation
        elif isinstance(message, _ENDS):
            self._keep_teaching_at = float("inf")
        self._stream.on_request(token, message)
        return token

    @property
    def stream(self) -> int | None:
        """The number of the current stream; None if there is none, or after a stop was requested.

        `wire.encode_pose` writes this number into poses in place of a sequence number: numbers of
        their own would push all requests out of the robot's cache.
        """
        return self._stream.token

    def _send_request(self, message: m.Command, now: float) -> int:
        """Send a request, which `tick` repeats until it is answered; return its token."""
        command, payload = wire.encode_command(message)
        token = self._sequence
        datagram = self._send_frame(MessageType.COMMAND, command, payload)
        wait_s = self.timing.retry_s
        self.pending[token] = _PendingCommand(command, message, datagram, now, now + wait_s, wait_s)
        return token

    def _drop_superseded(self) -> None:
        """Drop pending starts and keep-alives, which must not be repeated after a stop."""
        for token, pending in list(self.pending.items()):
            if token in self.own_tokens:
                del self.pending[token]
                self.own_tokens.discard(token)
            elif _is_start(pending.message):
                del self.pending[token]
                self._events.append(Replied(token, m.Status(m.Code.SUPERSEDED)))

    def _retry_or_give_up(self, token: int, pending: _PendingCommand, now: float) -> None:
        if (
            self.state is TeachingSessionState.READY
            and now - pending.requested_at >= self.timing.answer_s
        ):
            del self.pending[token]
            if token in self.own_tokens:
                self.own_tokens.discard(token)
            else:
                self._events.append(Unanswered(token, now - pending.requested_at))
            return
        pending.wait_s = min(pending.wait_s * self.timing.retry_growth, self.timing.max_retry_s)
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
            # The time 0 may be valid once, but not for a second state.
            self.clockless |= self._newest_us == 0
            if self.clockless:
                state = replace(state, time_us=int(now * 1e6), has_phase=False)
        elif self._clock.update(state.time_us, now):
            self.clockless = True
            state = replace(state, time_us=int(now * 1e6))
        behind_us = self._newest_us - state.time_us
        if self.state is not TeachingSessionState.READY or 0 <= behind_us < 1_000_000:
            # Repeated or overtaken by up to 1 s. A clock further behind belongs to a robot that was
            # restarted.
            self.dropped["stale state"] += 1
            return
        self._newest_us = state.time_us
        self._events.append(Reported(state))

    def _find_answered_token(self, frame: Frame) -> int | None:
        """Return the token of the pending request that a reply answers; None if there is none."""
        # The documents contradict themselves: a reply carries the request's number, or one more.
        # The first reply shows which; then only that offset is accepted. Otherwise a repeated reply
        # would be mistaken for the answer to the previous request.
        for offset in (0, 1) if self._reply_offset is None else (self._reply_offset,):
            token = (frame.sequence - offset) & 0xFFFF
            pending = self.pending.get(token)
            if pending is not None and pending.command == frame.command:
                return token
        return None

    def _receive_reply(self, frame: Frame, now: float) -> None:
        token = self._find_answered_token(frame)
        if token is None:
            self.dropped["reply to nothing"] += 1
            return
        reply = wire.decode_reply(frame.command, frame.payload)
        self._reply_offset = (frame.sequence - token) & 0xFFFF
        pending = self.pending.pop(token)
        if self.state is not TeachingSessionState.READY:
            self._advance_initialisation(reply, now)
        elif token in self.own_tokens:
            self.own_tokens.discard(token)
        else:
            if _ends_teaching(pending.message, reply):
                self._keep_teaching_at = float("inf")
            self._stream.on_reply(token, reply)
            self._events.append(Replied(token, reply))
            stopped = isinstance(pending.message, m.StopMotion)
            if stopped and isinstance(reply, m.Status) and reply.code == m.Code.OK:
                self._answer_older_stops(token, reply)

    def _answer_older_stops(self, answered: int, reply: m.Reply) -> None:
        """Treat older pending stops as answered: repeating them would stop a later motion."""
        for token, pending in list(self.pending.items()):
            if isinstance(pending.message, m.StopMotion) and is_older(token, answered):
                del self.pending[token]
                self._events.append(Replied(token, reply))

    def _advance_initialisation(self, reply: m.Reply, now: float) -> None:
        """Process the reply to a request of the initialisation: send the next one, or end it."""
        self.own_tokens.clear()
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
        next_commands: dict[TeachingSessionState, m.Command] = {
            TeachingSessionState.CONTROLLED: m.SyncParameters(),
            TeachingSessionState.SYNCED: m.Subscribe(all_joints=self.all_joints),
            TeachingSessionState.SUBSCRIBED: m.SignalReady(),
        }
        self.own_tokens.add(self._send_request(next_commands[self.state], now))

    # ---- ROBOT ----------------------------------------------------------------------------------

    def reply(self, token: int, reply: m.Reply) -> None:
        """Answer the request `token`. Replies to a client that was lost or has left are dropped."""
        if self.role is Role.ROBOT and not self.live:
            return
        answered = self.replay_cache.get(token)
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
        if self._skip_known_request(frame, crc, now):
            return
        self.replay_cache.add(frame, crc, now)
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
        if problem := self._stream.check_pose(frame.sequence, pose.number):
            self.dropped[problem] += 1
        else:
            self._events.append(PoseReceived(pose))

    def _skip_known_request(self, frame: Frame, crc: bytes, now: float) -> bool:
        """Return whether a request is skipped, because it is repeated or too old.

        A repeated request is answered again.
        """
        known = self.replay_cache.find_repeated(frame.sequence, crc, now)
        if known is not None:
            self.dropped["repeated request"] += 1
            if known.reply is not None:
                self._outgoing.append(known.reply)
            return True
        # The cache may have forgotten the opening request, whose repetition would start over.
        opening = self._opening_request
        if opening is not None and (opening.sequence, opening.crc) == (frame.sequence, crc):
            if now - opening.received_at < self.timing.memory_s:
                self.dropped["repeated opening"] += 1
                return True
        elif self.replay_cache.is_stray(frame):
            self.dropped["stray request"] += 1
            return True
        return False

    def _advance_sequence(self, sequence: int) -> None:
        """Process the sequence number of a frame of the client, which may be the newest."""
        self.replay_cache.advance(sequence)
        newest = self.replay_cache.newest or 0
        if self._end_token is not None and (newest - self._end_token) & 0xFFFF > REMEMBERED:
            # From now on, a start that is older than this end is dropped as a stray request.
            self._end_token = None

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
                self._end_token = token
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
        """Whether an exit or a stop that is newer than the request `token` has arrived."""
        return self._end_token is not None and is_older(token, self._end_token)

    def _begin_session(self, frame: Frame, crc: bytes, now: float) -> None:
        """Begin or restart the session of a client that takes control."""
        if self.state is not TeachingSessionState.NEW:
            # The same address starts over, so the old client is gone.
            self._events.append(PeerLeft())
        self.replay_cache.restart(frame, crc, now)
        self._end_token = None
        self._stream = PoseStream()
        self._opening_request = _OpeningRequest(frame.sequence, crc, now)
        self._heartbeat_at = now + self.timing.heartbeat_s
        self.state = TeachingSessionState.CONTROLLED
        self.reply(frame.sequence, m.Status())

    def _handle_initialisation(self, token: int, command: int, message: m.Command) -> None:
        """Enter the state to which a command leads, and confirm it; refuse it if it is too early.

        A command of an earlier step is only confirmed again.
        """
        reached = _STATE_AFTER[CommandId(command)]
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
