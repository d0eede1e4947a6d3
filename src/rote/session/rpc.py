"""One end of a WebRTC data channel: the protocol state machine, without I/O or clock.

Feed it what happens (`open`, `request`, `reply`, `publish`, `receive`, `tick`, `lose`, `close`)
with the time it happened; then send what `outgoing` returns, act on what `events` returns, and call
`tick` again no later than `due`. The same class plays both roles:

- CLIENT answers the challenge, sends requests, times them out, detects a silent robot.
- ROBOT challenges, emits each request once, answers a repeated one again, echoes heartbeats.

    NEW ── open ──▶ OPEN ── challenge ──▶ ANSWERED ── ok ──▶ READY ──▶ LOST, CLOSED      the client
                    OPEN ── right answer ───────────────────▶ READY                      the robot
"""

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple

from rote.errors import BadRequestError, DecodeError, LocalProtocolError
from rote.session.events import Opened, PeerLost, Unanswered
from rote.session.teaching import Role
from rote.wire.services import faults, rpc
from rote.wire.webrtc import channel
from rote.wire.webrtc.channel import (
    ChannelMessage,
    Complaint,
    Heartbeat,
    Inner,
    Subscription,
    Validation,
)

LIMITS_S: Mapping[tuple[str, int], float] = {
    (rpc.ARM, rpc.ArmApi.EXECUTE_PRESET): 30.0,  # answered only when the motion is over
    (rpc.ARM, rpc.ArmApi.PLAY_TAUGHT): 5.0,
    (rpc.ARM, rpc.ArmApi.TEACH): 5.0,  # when teaching starts; the other teaching requests are quick
}
"""Timeouts in seconds for requests with slow answers; all others have `ChannelTiming.answer_s`."""


class ChannelState(Enum):
    """The states of a session."""

    NEW = auto()
    OPEN = auto()
    ANSWERED = auto()
    READY = auto()
    LOST = auto()
    CLOSED = auto()


class ChannelInput(Enum):
    """What can change the state."""

    OPEN = auto()
    CHALLENGE = auto()
    VALIDATION_NEEDED = auto()
    OK = auto()
    RIGHT_ANSWER = auto()
    WRONG_ANSWER = auto()


# Every legal transition. Any other raises an error for the caller, or is dropped if the peer caused
# it.
TRANSITIONS: dict[tuple[ChannelState, ChannelInput], ChannelState] = {
    (ChannelState.NEW, ChannelInput.OPEN): ChannelState.OPEN,
    (ChannelState.OPEN, ChannelInput.CHALLENGE): ChannelState.ANSWERED,
    (ChannelState.ANSWERED, ChannelInput.CHALLENGE): ChannelState.ANSWERED,  # a newer challenge
    (
        ChannelState.ANSWERED,
        ChannelInput.VALIDATION_NEEDED,
    ): ChannelState.ANSWERED,  # the answer was lost or too early
    (ChannelState.ANSWERED, ChannelInput.OK): ChannelState.READY,
    (ChannelState.READY, ChannelInput.CHALLENGE): ChannelState.READY,
    (ChannelState.READY, ChannelInput.VALIDATION_NEEDED): ChannelState.READY,
    (ChannelState.READY, ChannelInput.OK): ChannelState.READY,
    (ChannelState.OPEN, ChannelInput.RIGHT_ANSWER): ChannelState.READY,
    (ChannelState.OPEN, ChannelInput.WRONG_ANSWER): ChannelState.OPEN,
    (
        ChannelState.READY,
        ChannelInput.RIGHT_ANSWER,
    ): ChannelState.READY,  # the robot's ok may have been lost
    (ChannelState.READY, ChannelInput.WRONG_ANSWER): ChannelState.READY,
}


PATIENT_S = 6.0
"""Timeout for an answer while other messages arrive: a busy robot was seen to take
4 s, and a stop that was carried out must not look like a failed one.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelTiming:
    """All waiting times, in seconds."""

    connect_s: float = 5.0
    answer_s: float = 3.0
    limits_s: Mapping[tuple[str, int], float] = field(default_factory=lambda: dict(LIMITS_S))
    retry_s: float = 1.0
    """The time before an unanswered read is repeated."""
    stop_retry_s: float = 0.5
    """The same for a stop."""
    heartbeat_s: float = 2.0
    silence_s: float = 2.5
    """A robot that sends nothing for this long, not even heartbeats, is lost."""
    client_silence_s: float = 10.0
    """A client that sends nothing for five heartbeats is lost; the real value is not known."""


# ---- events -------------------------------------------------------------------------------------


class RequestAnswered(NamedTuple):
    """The robot answered the request `token`; its code may still be a refusal."""

    token: int
    response: rpc.RpcResponse


class RequestReceived(NamedTuple):
    """A request arrived; answer with `reply(token, ...)`, which sends nothing if no answer is
    requested.
    """

    token: int
    request: rpc.RpcRequest


class MessageReceived(NamedTuple):
    """The peer sent something that the session only passes on: telemetry, faults, subscriptions,
    media.
    """

    value: channel.Value


Event = Opened | RequestAnswered | Unanswered | RequestReceived | MessageReceived | PeerLost


MAX_PENDING = 1024
"""Maximum number of requests awaiting an answer, on either end."""
MAX_TEXT_LENGTH = 48 * 1024
"""The longest text of an answer in one message, in characters; a longer one is split."""
REMEMBERED = 2 * MAX_PENDING
"""Maximum number of requests a robot remembers, to answer a repeated one again."""
MAX_TOPICS = 256
MAX_ANSWERS = 8
"""Maximum number of challenges and complaints of one robot that a client answers in a row."""
_INTERNAL_ERROR = 3202
_QUICK_CALLS = (rpc.KEEP_TEACHING, rpc.STOP_TEACHING)
"""Calls of the teaching API that are answered at once, so `LIMITS_S` does not apply."""
_STOPS = (rpc.STOP_TAUGHT, rpc.STOP_TEACHING)
"""Requests that may be carried out twice, and must not get lost."""
_NEVER = float("inf")


@dataclass(slots=True)
class _PendingRequest:
    """A request without an answer yet."""

    request: rpc.RpcRequest
    requested_at: float
    give_up_at: float
    retry_at: float
    """When to repeat it; infinity if it must not be repeated."""
    retry_s: float


@dataclass(slots=True)
class _ReceivedRequest:
    """A request that the robot has received."""

    request: rpc.RpcRequest
    reply: tuple[str | bytes, ...] = ()
    """The messages of the answer; none if it is not answered yet, or needs no answer."""


_MAY_SEND = {
    Role.CLIENT: Inner | channel.MediaRequest,
    Role.ROBOT: Inner | faults.Faults | Complaint,
}


def _make_key(message: rpc.RpcRequest | rpc.RpcResponse) -> tuple[str, int, int]:
    """Return what a request and its response have in common."""
    return message.service, message.api_id, message.id


def _fill_missing_fields(response: rpc.RpcResponse, request: rpc.RpcRequest) -> rpc.RpcResponse:
    """Return a response with its missing service and API id taken from the request."""
    if response.service and response.api_id:
        return response
    return replace(
        response,
        service=response.service or request.service,
        api_id=response.api_id or request.api_id,
    )


class RpcSession:
    """One end of one session of requests and responses over a WebRTC data channel."""

    def __init__(
        self,
        role: Role,
        *,
        timing: ChannelTiming | None = None,
        first_id: int = 1,
        now: float = 0.0,
        max_text_length: int = MAX_TEXT_LENGTH,
    ) -> None:
        if not 0 <= first_id < 2**62:
            raise BadRequestError(f"first_id must be at least 0 and less than 2^62, not {first_id}")
        if max_text_length < 1:
            raise BadRequestError(f"max_text_length must be positive, not {max_text_length}")
        self.role = role
        self.state = ChannelState.NEW
        self.timing = timing or ChannelTiming()
        self.dropped: Counter[str] = Counter()
        """Number of dropped messages, by reason."""
        # Ids are counted in 64 bits, which never wrap: two requests of a session cannot have the
        # same id. Where replies are broadcast, the caller chooses `first_id` at random.
        self._tokens = itertools.count(first_id)
        self._outgoing: list[str | bytes] = []
        self._events: list[Event] = []
        self._topics: dict[str, None] = {}
        self._opened_at = _NEVER
        self._received_at = now
        self._challenge = ""
        # CLIENT
        self._opened_unix_s = 0.0
        self._utc_offset_s = 0.0
        self._validation_answers = 0
        self._heartbeat_at = _NEVER
        self._unechoed_heartbeat_at = _NEVER
        self.pending: dict[int, _PendingRequest] = {}
        """Requests without an answer, by token."""
        self.chunks = channel.Assembler()
        """Answers that have arrived in part."""
        # ROBOT
        self._max_text_length = max_text_length
        self._unanswered: dict[int, _ReceivedRequest] = {}
        self.remembered: dict[tuple[str, int, int], _ReceivedRequest] = {}
        """The latest requests and their answers, for repeated requests."""

    # ---- output ---------------------------------------------------------------------------------

    def outgoing(self) -> list[str | bytes]:
        """Return the messages to send, once."""
        messages, self._outgoing = self._outgoing, []
        return messages

    def events(self) -> list[Event]:
        """Return what has happened, once."""
        events, self._events = self._events, []
        return events

    @property
    def due(self) -> float:
        """When to call `tick` next at the latest; infinity if there is nothing to wait for."""
        if not self.live:
            return _NEVER
        due = min(self._compute_loss_time(), self._heartbeat_at)
        for pending in self.pending.values():
            due = min(due, pending.give_up_at, pending.retry_at)
        return due

    @property
    def live(self) -> bool:
        """Whether the session is neither lost nor closed."""
        return self.state not in {ChannelState.LOST, ChannelState.CLOSED}

    @property
    def challenge(self) -> str:
        """CLIENT: the robot's last challenge. ROBOT: its own challenge."""
        return self._challenge

    def is_subscribed(self, topic: str) -> bool:
        """Whether the session is ready and the client has subscribed to a topic."""
        return self.state is ChannelState.READY and topic in self._topics

    # ---- what either end does -------------------------------------------------------------------

    def open(
        self, now: float, *, challenge: str = "", unix_s: float = 0.0, utc_offset_s: float = 0.0
    ) -> None:
        """Begin when the channel is established; `Opened` or `PeerLost` follows.

        A robot needs an unguessable challenge. A client needs the time for its heartbeats.
        """
        if self.role is Role.ROBOT and not challenge:
            raise BadRequestError("a session in the role ROBOT must be opened with a challenge")
        if not self._transition(ChannelInput.OPEN):
            raise LocalProtocolError("only a new session can be opened")
        self._opened_at = self._received_at = now
        self._opened_unix_s, self._utc_offset_s = unix_s, utc_offset_s
        if self.role is Role.ROBOT:
            self._challenge = challenge
            self._send_value(Validation(challenge))

    def receive(self, message: str | bytes, now: float) -> None:
        """Process one message from the peer; unusable ones are dropped and counted."""
        if self.state is ChannelState.NEW or not self.live:
            self.dropped["before the beginning or after the end"] += 1
            return
        try:
            value = channel.decode(message)
            if self.role is Role.CLIENT:
                self._receive_as_client(value, now)
            else:
                self._receive_as_robot(value)
        except (DecodeError, BadRequestError) as error:  # it cannot be decoded or echoed
            self.dropped[type(error).__name__] += 1
            return
        self._received_at, self._unechoed_heartbeat_at = now, _NEVER

    def tick(self, now: float) -> None:
        """Send the heartbeat and repeated requests due at `now`; give up those that timed out."""
        if now < self.due:
            return
        if now >= self._compute_loss_time():
            self.lose(now)
            return
        if now >= self._heartbeat_at:
            self._heartbeat_at = now + self.timing.heartbeat_s
            # The time of the first heartbeat since the last message: see `_compute_loss_time`.
            self._unechoed_heartbeat_at = min(self._unechoed_heartbeat_at, now)
            unix_s = self._opened_unix_s + now - self._opened_at
            self._send_value(channel.make_heartbeat(unix_s, self._utc_offset_s))
        for token, pending in list(self.pending.items()):
            if now >= pending.give_up_at:
                self._give_up_request(token, now)
            elif now >= pending.retry_at:
                pending.retry_at = now + pending.retry_s
                self._send_value(pending.request)

    def publish(self, topic: str, data: object, binary: bytes = b"") -> None:
        """Publish `data` on a topic; a robot sends it only to a client that has subscribed."""
        if self.role is Role.CLIENT:
            self._check_ready()
        elif not self.is_subscribed(topic):
            return
        self._send_value(ChannelMessage(topic, data, binary))

    def send(self, value: channel.Value) -> None:
        """Send a value that has no answer: an inner request, a media request, or faults."""
        self._check_ready()
        if not isinstance(value, _MAY_SEND[self.role]):
            raise LocalProtocolError(f"a {self.role.name} does not send a {type(value).__name__}")
        self._send_value(value)

    def lose(self, now: float) -> None:
        """End the session because the peer is gone: the carrier was closed, or it went silent."""
        if self.live:
            self.close(now)
            self.state = ChannelState.LOST
            self._events.append(PeerLost(now - self._received_at))

    def close(self, now: float) -> None:
        """End the session. The protocol has no goodbye message: close the channel too."""
        for token in list(self.pending):
            self._give_up_request(token, now)
        self.state = ChannelState.CLOSED

    def _transition(self, event: ChannelInput) -> bool:
        """Change the state by `TRANSITIONS`; return False if the input is not allowed now."""
        state = TRANSITIONS.get((self.state, event))
        if state is None:
            return False
        if state is ChannelState.READY and self.state is not ChannelState.READY:
            self._events.append(Opened())
        self.state = state
        return True

    def _send_value(self, value: channel.Value) -> None:
        self._outgoing.append(channel.encode(value))

    def _set_subscription(self, topic: str, *, active: bool) -> bool:
        """Add or remove a topic; return False if there are too many to add it."""
        if not active:
            self._topics.pop(topic, None)
            return True
        if len(self._topics) < MAX_TOPICS:
            self._topics[topic] = None
        return topic in self._topics

    def _check_ready(self) -> None:
        if self.state is not ChannelState.READY:
            raise LocalProtocolError(f"nothing can be sent in a session that is {self.state.name}")

    def _compute_loss_time(self) -> float:
        """Return when the peer counts as lost if nothing more arrives."""
        timing = self.timing
        if self.role is Role.ROBOT:
            is_new = self.state is ChannelState.NEW
            return _NEVER if is_new else self._received_at + timing.client_silence_s
        if self.state is not ChannelState.READY:
            return self._opened_at + timing.connect_s
        # Silence counts only after a heartbeat without an echo: if this computer was asleep, it
        # sends one first. Until then `_unechoed_heartbeat_at` is infinite.
        patience_s = timing.silence_s - timing.heartbeat_s
        return max(self._received_at + timing.silence_s, self._unechoed_heartbeat_at + patience_s)

    # ---- CLIENT ---------------------------------------------------------------------------------

    def request(
        self, call: rpc.Call, now: float, *, limit_s: float | None = None, read: bool = False
    ) -> int:
        """Send a request; `RequestAnswered` or `Unanswered` with the returned token follows.

        Only a `read` and a stop are repeated until they are answered; any other call might be
        carried out twice.
        """
        self._check_ready()
        if self.role is Role.ROBOT:
            raise LocalProtocolError("only a client sends requests")
        if len(self.pending) >= MAX_PENDING and call != rpc.STOP_TAUGHT:
            raise LocalProtocolError(f"{MAX_PENDING} requests are already waiting for an answer")
        if limit_s is None:
            limit_s = self._choose_time_limit_s(call)
        if not limit_s > 0:
            raise BadRequestError(
                f"a time limit of {limit_s} s is out of range", "Choose more than 0 s."
            )
        token = next(self._tokens)
        request = call.request(token)
        self._send_value(request)
        retry_s = self.timing.stop_retry_s if call in _STOPS else self.timing.retry_s
        retry_at = now + retry_s if read or call in _STOPS else _NEVER
        self.pending[token] = _PendingRequest(request, now, now + limit_s, retry_at, retry_s)
        return token

    def _choose_time_limit_s(self, call: rpc.Call) -> float:
        if call in _QUICK_CALLS:
            return self.timing.answer_s
        return self.timing.limits_s.get((call.service, call.api_id), self.timing.answer_s)

    def subscribe(self, topic: str, *, active: bool = True) -> None:
        """Subscribe to a topic, or unsubscribe if not `active`.

        The message is sent now, or as soon as the session is ready.
        """
        if self.role is Role.ROBOT or not self.live:
            raise LocalProtocolError(
                f"a {self.role.name} in the state {self.state.name} cannot subscribe to topics"
            )
        message = channel.encode(Subscription(topic, active))
        if not self._set_subscription(topic, active=active):
            raise LocalProtocolError(f"{MAX_TOPICS} topics are subscribed already")
        if self.state is ChannelState.READY:
            self._outgoing.append(message)

    def _give_up_request(self, token: int, now: float) -> None:
        pending = self.pending.pop(token)
        self.chunks.forget(pending.request)
        self._events.append(Unanswered(token, now - pending.requested_at))

    def _receive_as_client(self, value: channel.Value, now: float) -> None:
        if isinstance(value, Validation):
            is_ok = value.data == channel.VALIDATION_OK
            self._handle_validation(
                ChannelInput.OK if is_ok else ChannelInput.CHALLENGE, value.data, now
            )
        elif value == Complaint(channel.VALIDATION_NEEDED):
            self._handle_validation(ChannelInput.VALIDATION_NEEDED, self._challenge, now)
        elif isinstance(value, channel.FromClient):
            self.dropped["not for a client"] += 1
        elif self.state is not ChannelState.READY:
            self.dropped["before validation"] += 1
        elif isinstance(value, rpc.RpcResponse | channel.Chunk):
            self._receive_answer(value, now)
        elif isinstance(value, Inner) and (echo := channel.make_probe_echo(value)):
            self._send_value(echo)
        elif not isinstance(value, Heartbeat):
            self._events.append(MessageReceived(value))

    def _handle_validation(self, event: ChannelInput, challenge: str, now: float) -> None:
        """Answer a challenge, or begin the work of a session that the robot has validated."""
        previous = self.state
        if not self._transition(event):
            self.dropped["unexpected validation"] += 1
        elif event is ChannelInput.OK:
            self._validation_answers = 0
            if previous is not ChannelState.READY:
                self._heartbeat_at = now + self.timing.heartbeat_s
                for topic in self._topics:  # those that were subscribed to before
                    self._send_value(Subscription(topic))
        elif self._validation_answers >= MAX_ANSWERS:
            self.dropped["too many challenges"] += 1
        else:
            self._validation_answers += 1
            self._challenge = challenge
            self._send_value(Validation(channel.answer_challenge(challenge)))

    def _receive_answer(self, value: rpc.RpcResponse | channel.Chunk, now: float) -> None:
        response = value.response if isinstance(value, channel.Chunk) else value
        pending = self.pending.get(response.id)
        if pending is not None:
            response = _fill_missing_fields(response, pending.request)
        if pending is None or _make_key(pending.request) != _make_key(response):
            self.dropped["reply to nothing"] += 1
            return
        if now >= pending.give_up_at:
            self.dropped["late reply"] += 1
            self._give_up_request(response.id, now)
            return
        if isinstance(value, channel.Chunk):
            pending.retry_at = _NEVER  # a part of the answer has arrived
            assembled = self.chunks.add(replace(value, response=response))
            if assembled is None:
                return
            response = assembled
        del self.pending[response.id]
        self.chunks.forget(pending.request)
        self._events.append(RequestAnswered(response.id, response))
        if response.code == 0:
            self._answer_older_stops(pending.request, response)

    def _answer_older_stops(self, answered: rpc.RpcRequest, response: rpc.RpcResponse) -> None:
        """Treat older pending stops as answered: repeating them would stop a later motion."""
        is_stop = any(answered == stop.request(answered.id) for stop in _STOPS)
        if not is_stop:
            return
        for token, pending in list(self.pending.items()):
            if token < answered.id and pending.request == replace(answered, id=token):
                del self.pending[token]
                self._events.append(RequestAnswered(token, replace(response, id=token)))

    # ---- ROBOT ----------------------------------------------------------------------------------

    def reply(self, token: int, code: int = 0, data: str = "", binary: bytes = b"") -> None:
        """Answer the request `token`. Replies to a client that was lost or has left are dropped."""
        if self.role is Role.ROBOT and not self.live:
            return
        if token not in self._unanswered:
            raise LocalProtocolError(f"there is no unanswered request {token}")
        received = self._unanswered[token]
        request = received.request
        response = rpc.RpcResponse(
            service=request.service,
            api_id=request.api_id,
            id=request.id,
            code=code,
            data=data,
            binary=binary,
        )
        messages = tuple(
            map(channel.encode, channel.split_response(response, self._max_text_length))
        )
        del self._unanswered[token]
        if not request.noreply:
            received.reply = messages
            self._outgoing.extend(messages)

    def ignore(self, token: int) -> None:
        """Never answer the request `token`, like a service that does not exist."""
        self._unanswered.pop(token, None)

    def _receive_as_robot(self, value: channel.Value) -> None:
        if isinstance(value, Validation):
            self._check_answer(value.data)
        elif self.state is not ChannelState.READY:
            self.dropped["before validation"] += 1
            self._send_value(Complaint(channel.VALIDATION_NEEDED))
        elif isinstance(value, rpc.RpcRequest):
            self._receive_request(value)
        elif isinstance(value, Heartbeat):
            self._send_value(value)
        elif isinstance(value, Subscription) and not self._set_subscription(
            value.topic, active=value.active
        ):
            self.dropped["too many topics"] += 1
        elif isinstance(value, channel.FromRobot):
            self.dropped["not for a robot"] += 1
        else:
            self._events.append(MessageReceived(value))

    def _check_answer(self, answer: str) -> None:
        """Validate a client by its answer to the challenge, or let it try again."""
        is_right = answer == channel.answer_challenge(self._challenge)
        self._transition(ChannelInput.RIGHT_ANSWER if is_right else ChannelInput.WRONG_ANSWER)
        if is_right:
            self._send_value(Validation(channel.VALIDATION_OK))
        else:
            self.dropped["wrong answer"] += 1
            self._send_value(Complaint(channel.VALIDATION_NEEDED))

    def _receive_request(self, request: rpc.RpcRequest) -> None:
        """Emit a new request; answer a repeated one again."""
        earlier = self.remembered.pop(_make_key(request), None)
        # Some clients give several requests the same id, so compare the whole request.
        if earlier is not None and earlier.request == request:
            self.dropped["repeated request"] += 1
            self.remembered[_make_key(request)] = earlier
            self._outgoing.extend(earlier.reply)
            return
        received = self.remembered[_make_key(request)] = _ReceivedRequest(request)
        if len(self.remembered) > REMEMBERED:
            del self.remembered[next(iter(self.remembered))]  # the oldest
        token = next(self._tokens)
        self._unanswered[token] = received
        if len(self._unanswered) > MAX_PENDING:
            self.dropped["too many requests"] += 1
            self.reply(token, _INTERNAL_ERROR)
        else:
            self._events.append(RequestReceived(token, request))
