"""What a session tells its shell: things that happened.

Named tuples, because two are made for every request and they are quick to make.
"""

from typing import NamedTuple

from rote import messages as m


class Opened(NamedTuple):
    """Initialisation is over, on either end."""


class OpenRefused(NamedTuple):
    """The robot did not let the client in. The conversation is over."""

    code: int


class Replied(NamedTuple):
    """The robot answered the request `token`."""

    token: int
    reply: m.Reply


class Unanswered(NamedTuple):
    """The request `token` was given up."""

    token: int
    waited_s: float


class Reported(NamedTuple):
    """The robot sent its state."""

    state: m.RobotState


class PeerLost(NamedTuple):
    """Nothing was heard for too long. The conversation is over."""

    silence_s: float


class PeerLeft(NamedTuple):
    """The client said goodbye, or began anew from the same address."""


class Requested(NamedTuple):
    """The client asks for `command`; answer with `reply(token, ...)`."""

    token: int
    command: m.Command


Event = Opened | OpenRefused | Replied | Unanswered | Reported | PeerLost | PeerLeft | Requested
