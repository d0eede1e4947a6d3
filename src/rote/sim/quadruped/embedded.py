"""sim://a1: a simulated A1 or Go1 inside this process, configured by its URL.

It listens on two free ports of this computer, since an A1 is reached by UDP only.
"""

from typing import NamedTuple
from urllib.parse import parse_qsl

from rote.errors import BadRequestError
from rote.session.a1 import Level
from rote.sim.quadruped.hands import parse_hand
from rote.sim.quadruped.simulator import A1Simulator
from rote.sim.quadruped.world import STARTS, A1World
from rote.transport.link import split_url
from rote.wire.a1.values import Dialect


class EmbeddedA1(NamedTuple):
    """A robot that is not open yet, and the level to connect at."""

    simulator: A1Simulator
    level: Level

    @property
    def url(self) -> str:
        """Its URL once it is open. Commands are sent from its own event loop."""
        return f"{self.simulator.url(self.level)}&sender=loop"


def embedded_a1(url: str, level: Level = Level.HIGH) -> EmbeddedA1:
    """Create the robot of `sim://a1[?level=low|high&mode=...&hand=...&dialect=...]`.

    `level` is the default if the URL has none. At the low level the robot hangs, otherwise it
    stands, unless `mode` is given; `hand` moves its legs whenever they are soft.
    """
    parts = split_url(url)
    try:
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        level = Level(options.pop("level", level.value))
        dialect = Dialect(options.pop("dialect", Dialect.A1_3_3_4.value))
    except ValueError:
        raise _invalid_url(url) from None
    start = options.pop("mode", "hung" if level is Level.LOW else "stand")
    hand = options.pop("hand", None)
    if options or parts.path.strip("/"):
        raise _invalid_url(url)
    world = A1World(dialect=dialect, start=start)
    world.attach(None if hand is None else parse_hand(hand))
    return EmbeddedA1(A1Simulator(world), level)


def _invalid_url(url: str) -> BadRequestError:
    dialects = ", ".join(dialect.value for dialect in Dialect)
    return BadRequestError(
        f"{url!r} does not name a simulated A1",
        "Write sim://a1, and after a ? any of level=high or low, "
        f"mode= one of {', '.join(STARTS)}, hand=paw, stretch or wag, dialect= one of {dialects}, "
        "joined by &.",
    )
