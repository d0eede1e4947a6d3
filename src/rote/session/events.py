"""The events of a session, for the code that drives it.

They are named tuples, because two are created for every request and creation is cheap.
"""

from typing import NamedTuple

from rote import messages as m


class Opened(NamedTuple):
    """The initialisation is over, on either end."""


class OpenRefused(NamedTuple):
    """The robot refused the client. The session is over."""

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
    """Nothing was received for too long. The session is over."""

    silence_s: float


class PeerLeft(NamedTuple):
    """The client left, or started over from the same address."""


class Requested(NamedTuple):
    """The client requests `command`; answer with `reply(token, ...)`."""

    token: int
    command: m.Command


Event = Opened | OpenRefused | Replied | Unanswered | Reported | PeerLost | PeerLeft | Requested
