"""rote sim --dds: the simulated G1 on DDS, like a G1 EDU."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from rote.errors import BadRequestError

if TYPE_CHECKING:
    from rote.model.family import Build, Hand
    from rote.sim.server import Simulator

Dds = Annotated[
    str | None,
    typer.Option(
        "--dds",
        metavar="IFACE",
        help="Be a G1 EDU: DDS on this network interface, for example lo or eth0.",
    ),
]
Domain = Annotated[
    int, typer.Option("--domain", metavar="N", help="The DDS domain; 0 is a real robot's.")
]


Hands = Annotated[
    str,
    typer.Option(
        "--hands",
        metavar="NAME",
        help="Wear these hands, with --dds: dex3.",
    ),
]


@dataclass(frozen=True, slots=True)
class DdsOptions:
    """Where the robot is on DDS, and its attached hands."""

    interface: str
    domain: int
    hands: "tuple[Hand, ...]" = ()
    lowstate_hz: float | None = None
    """How often it reports its joints; None for the usual rate."""


def hands_of(name: str, build: "Build", dds: str | None) -> "tuple[Hand, ...]":
    """Return the requested hands; raise an error for hands that do not fit this robot."""
    from rote.model.registry import family_of
    from rote.sim.fingers import hands_named

    if not name:
        return ()
    if dds is None:
        raise BadRequestError(
            "hands are available on DDS only, as on a real robot",
            "Add --dds lo, or leave out --hands.",
        )
    hands = hands_named(name, build)
    if not hands:
        family = family_of(build)
        known = sorted({hand.name for hand in family.hands}) if family is not None else []
        raise BadRequestError(
            f"{build.name} has no hands {name!r}",
            f"Use one of: {', '.join(known)}." if known else "Leave out --hands.",
        )
    return hands


def check_dds(options: DdsOptions) -> None:
    """Raise an error if DDS is impossible: a missing package, or no such interface."""
    from rote.transport.link import import_carrier

    import_carrier("dds://").check_interface(options.interface)


async def serve_dds(simulator: "Simulator", options: DdsOptions) -> str:
    """Open the robot's DDS; return its URL."""
    from rote.transport.link import import_carrier, split_url

    url = f"dds://{options.interface}?domain={options.domain}"
    target = import_carrier(url).read_url(split_url(url))
    door = await simulator.serve_dds(
        target.interface, target.domain, hands=options.hands, lowstate_hz=options.lowstate_hz
    )
    return door.url
