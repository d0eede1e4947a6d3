"""The rules of a data channel's conversation: its states, its waiting times, what it reports."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from rote.session.events import Opened, PeerLost, Unanswered
from rote.wire import channel, rpc

LIMITS_S: Mapping[tuple[str, int], float] = {
    (rpc.ARM, rpc.ArmApi.EXECUTE_PRESET): 30.0,  # answered when the motion is over
    (rpc.ARM, rpc.ArmApi.PLAY_TAUGHT): 5.0,
    (rpc.ARM, rpc.ArmApi.TEACH): 5.0,  # its start; the rest is quick
}
"""How long the answer to some requests may take; `ChannelTiming.answer_s` is for all others."""


class ChannelState(Enum):
    """How far the conversation is."""

    NEW = auto()
    OPEN = auto()
    ANSWERED = auto()
    READY = auto()
    LOST = auto()
    CLOSED = auto()


class ChannelInput(Enum):
    """What moves the conversation on."""

    OPEN = auto()
    CHALLENGE = auto()
    DOUBT = auto()
    OK = auto()
    RIGHT_ANSWER = auto()
    WRONG_ANSWER = auto()


# Every legal move. What is not here is refused to the caller, or dropped where the peer sent it.
TRANSITIONS: dict[tuple[ChannelState, ChannelInput], ChannelState] = {
    (ChannelState.NEW, ChannelInput.OPEN): ChannelState.OPEN,
    (ChannelState.OPEN, ChannelInput.CHALLENGE): ChannelState.ANSWERED,
    (ChannelState.ANSWERED, ChannelInput.CHALLENGE): ChannelState.ANSWERED,  # a newer one
    (
        ChannelState.ANSWERED,
        ChannelInput.DOUBT,
    ): ChannelState.ANSWERED,  # the answer was lost or too early
    (ChannelState.ANSWERED, ChannelInput.OK): ChannelState.READY,
    (ChannelState.READY, ChannelInput.CHALLENGE): ChannelState.READY,
    (ChannelState.READY, ChannelInput.DOUBT): ChannelState.READY,
    (ChannelState.READY, ChannelInput.OK): ChannelState.READY,
    (ChannelState.OPEN, ChannelInput.RIGHT_ANSWER): ChannelState.READY,
    (ChannelState.OPEN, ChannelInput.WRONG_ANSWER): ChannelState.OPEN,
    (
        ChannelState.READY,
        ChannelInput.RIGHT_ANSWER,
    ): ChannelState.READY,  # its ok may have been lost
    (ChannelState.READY, ChannelInput.WRONG_ANSWER): ChannelState.READY,
}


PATIENT_S = 6.0
"""How long a person's program waits for an answer while the robot is otherwise heard: a busy robot
was seen to take 4 s, and a stop that was carried out must not look as if it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelTiming:
    """All waiting times, in seconds."""

    connect_s: float = 5.0
    answer_s: float = 3.0
    limits_s: Mapping[tuple[str, int], float] = field(default_factory=lambda: dict(LIMITS_S))
    retry_s: float = 1.0
    """Before a read that stays unanswered is asked again."""
    heartbeat_s: float = 2.0
    silence_s: float = 2.5
    """A robot not heard this long, a heartbeat included, is lost."""
    client_silence_s: float = 10.0
    """How long a robot waits is unknown; this is five heartbeats."""


# ---- events -------------------------------------------------------------------------------------


class RequestAnswered(NamedTuple):
    """The robot answered the request `token`; its code may still say no."""

    token: int
    response: rpc.RpcResponse


class RequestAsked(NamedTuple):
    """The client asks; answer with `reply(token, ...)`, which is silent if no answer is wanted."""

    token: int
    request: rpc.RpcRequest


class Heard(NamedTuple):
    """The peer said what the session only passes on: telemetry, faults, subscriptions, media."""

    value: channel.Value


Event = Opened | RequestAnswered | Unanswered | RequestAsked | Heard | PeerLost
