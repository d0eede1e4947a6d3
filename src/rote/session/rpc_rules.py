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
"""How long the answer to some requests may take; `Timing.answer_s` is for all others."""


class State(Enum):
    """How far the conversation is."""

    NEW = auto()
    OPEN = auto()
    ANSWERED = auto()
    READY = auto()
    LOST = auto()
    CLOSED = auto()


class Input(Enum):
    """What moves the conversation on."""

    OPEN = auto()
    CHALLENGE = auto()
    DOUBT = auto()
    OK = auto()
    RIGHT_ANSWER = auto()
    WRONG_ANSWER = auto()


# Every legal move. What is not here is refused to the caller, or dropped where the peer sent it.
TRANSITIONS: dict[tuple[State, Input], State] = {
    (State.NEW, Input.OPEN): State.OPEN,
    (State.OPEN, Input.CHALLENGE): State.ANSWERED,
    (State.ANSWERED, Input.CHALLENGE): State.ANSWERED,  # a newer one
    (State.ANSWERED, Input.DOUBT): State.ANSWERED,  # the answer was lost or too early
    (State.ANSWERED, Input.OK): State.READY,
    (State.READY, Input.CHALLENGE): State.READY,
    (State.READY, Input.DOUBT): State.READY,
    (State.READY, Input.OK): State.READY,
    (State.OPEN, Input.RIGHT_ANSWER): State.READY,
    (State.OPEN, Input.WRONG_ANSWER): State.OPEN,
    (State.READY, Input.RIGHT_ANSWER): State.READY,  # its ok may have been lost
    (State.READY, Input.WRONG_ANSWER): State.READY,
}


PATIENT_S = 6.0
"""How long a person's program waits for an answer while the robot is otherwise heard: a busy robot
was seen to take 4 s, and a stop that was carried out must not look as if it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
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


class Answered(NamedTuple):
    """The robot answered the request `token`; its code may still say no."""

    token: int
    response: rpc.Response


class Asked(NamedTuple):
    """The client asks; answer with `reply(token, ...)`, which is silent if no answer is wanted."""

    token: int
    request: rpc.Request


class Heard(NamedTuple):
    """The peer said what the session only passes on: telemetry, faults, subscriptions, media."""

    value: channel.Value


Event = Opened | Answered | Unanswered | Asked | Heard | PeerLost
