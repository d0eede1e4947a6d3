"""The table of wires: what each can do, known before a connection is made.

A connected robot reports its abilities itself. This table is for code that has only a URL, and for
errors that name another wire with a missing ability.
"""

from dataclasses import dataclass

from rote.errors import UnsupportedError
from rote.transport.link import make_unknown_wire_error, split_url

EMBEDDED = "sim://g1"
"""The URL of the simulated robot that is used by default."""
# The names in the following sets are abilities, as in `robot.abilities`.
FRAMES = frozenset(
    {
        "list", "teach", "save", "store", "play", "tempo", "stream", "stop", "mode", "states",
        "overwrite", "hand", "frames",
    }
)  # fmt: skip
"""What a robot can do by teaching frames."""
SERVICES = frozenset(
    {
        "list", "teach", "play", "stop", "mode", "states", "rename", "delete", "presets", "pause",
        "overwrite", "health", "controller", "topics", "voice",
    }
)  # fmt: skip
"""What a robot can do by its services over WebRTC. They do not change how an action is played."""
DDS = SERVICES - {"topics"} | {"stream", "sound", "hear"}
"""What a robot can do by its services on DDS."""
IN_PROCESS = FRAMES | {"rename", "delete"}
"""What a simulated robot in this process can do: some commands have no frame."""
QUADRUPED = frozenset(
    {"states", "stop", "teach", "pause", "stream", "control", "walk", "pose", "lie"}
)
"""What an A1 can do, at its high or its low level."""


EXAMINE = "examine"
"""An ability for `connect`: inspect a robot without any risk, at whichever level its URL names."""
_SIMULATED = frozenset({"hand"})
"""The ability of a simulated robot whose arms a script can move, instead of a person."""
_HANDS = frozenset({"hands"})
"""The ability of a robot whose hands have motors: they report, and can be streamed to."""


@dataclass(frozen=True, slots=True)
class AfterTeaching:
    """What taught limbs do by themselves after teaching, however it ended."""

    hold_s: float
    """Maximum time in seconds for which they hold."""
    return_s: float
    """Approximate time in seconds in which the robot itself then returns them to rest."""


TAUGHT_BY_FRAMES = AfterTeaching(5.0, 4.0)
"""This project's choice, like the frames: it gives a person time to take the hands off the arms."""
TAUGHT_BY_SERVICES = AfterTeaching(0.9, 4.1)
"""As the logs of a G1 show; no service can prevent it."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One way to connect to robots."""

    scheme: str
    example: str
    abilities: frozenset[str]
    perhaps: frozenset[str] = frozenset()
    """Abilities of only some robots on this wire; they report them once connected."""
    is_bus: bool = False
    """Whether robots are found there by listening to a shared bus."""
    takes_key: bool = False
    """Whether a robot may require its own key, and the session's secrets can be logged."""
    in_process: bool = False
    """Whether the robot is simulated in this process, and the URL names its build."""
    has_levels: bool = False
    """Whether a robot has levels with different abilities; the requested ability selects one."""
    stock: bool = False
    """Whether robots speak it with stock firmware."""
    asks: frozenset[str] = frozenset({"build"})
    """URL options that are allowed from untrusted sources such as a web page: none of them names a
    file of this computer."""
    after_teaching: AfterTeaching | None = None
    """What limbs do after teaching; None if they stay as they are."""
    lives_here: bool = False
    """Whether the robot is simulated for one connection only, and ends with it."""


WIRES: dict[str, Wire] = {
    wire.scheme: wire
    for wire in (
        Wire("udp", "udp://HOST[:PORT]", FRAMES, after_teaching=TAUGHT_BY_FRAMES),
        Wire(
            "sim",
            EMBEDDED,
            IN_PROCESS,
            in_process=True,
            lives_here=True,
            asks=frozenset(),
            after_teaching=TAUGHT_BY_FRAMES,
        ),
        Wire(
            "webrtc",
            "webrtc://HOST",
            SERVICES,
            _SIMULATED,
            takes_key=True,
            stock=True,
            after_teaching=TAUGHT_BY_SERVICES,
        ),
        Wire(
            "dds",
            "dds://INTERFACE",
            DDS,
            _SIMULATED | _HANDS,
            is_bus=True,
            stock=True,
            asks=frozenset({"build", "domain"}),
            after_teaching=TAUGHT_BY_SERVICES,
        ),
        Wire(
            "a1",
            "a1://HOST",
            QUADRUPED,
            has_levels=True,
            stock=True,
            asks=frozenset({"level", "dialect"}),
        ),
    )
}


EMBEDDED_A1 = "sim://a1"
_SPECIAL_ROBOTS: dict[str, Wire] = {
    EMBEDDED_A1: Wire(
        "sim",
        EMBEDDED_A1,
        QUADRUPED,
        has_levels=True,
        lives_here=True,
        asks=frozenset({"hand", "level"}),
    ),
}
"""Simulated robots inside this process that are unlike the others of their scheme."""


def wire_of(url: str) -> Wire:
    """Return the wire that a URL names, or raise `BadRequestError` that lists the known ones."""
    parts = split_url(url)
    wire = _SPECIAL_ROBOTS.get(f"{parts.scheme}://{parts.netloc}") or WIRES.get(parts.scheme)
    if wire is None:
        raise make_unknown_wire_error(url)
    return wire


def wires_with(ability: str) -> tuple[str, ...]:
    """Return the wires that have an ability, or may have it, as URL prefixes such as `dds://`."""
    return tuple(f"{wire.scheme}://" for wire in _find_wires_with(ability))


def unsupported(what: str, scheme: str, ability: str, remedy: str = "") -> UnsupportedError:
    """Return the error for an ability that a wire lacks; the default remedy names other wires.

    `what` completes "the wire cannot ..."; `scheme` is the wire's, without `://`.
    """
    return UnsupportedError(
        what, f"{scheme}://", wires_with(ability), remedy or _suggest_wire(scheme, ability)
    )


def _suggest_wire(scheme: str, ability: str) -> str:
    """Return advice that names the wires with an ability; "" if there are none.

    The wire `scheme` itself is named only among those of simulated robots.
    """
    wires = _find_wires_with(ability)
    stock = [f"{wire.scheme}://" for wire in wires if wire.stock and wire.scheme != scheme]
    simulated = [f"{wire.scheme}://" for wire in wires if not wire.stock]
    advice = f"Connect by {' or '.join(stock)} instead." if stock else ""
    if not simulated:
        return advice
    advice = advice or "No robot with stock firmware can."
    return f"{advice} A simulated robot can, by {' or '.join(simulated)}."


def _find_wires_with(ability: str) -> list[Wire]:
    return [wire for wire in WIRES.values() if ability in wire.abilities | wire.perhaps]
