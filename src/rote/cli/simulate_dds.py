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
        help="Emulate a G1 EDU: DDS on this network interface, for example lo or eth0.",
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
        help="With --dds: attach these hands: dex3.",
    ),
]


@dataclass(frozen=True, slots=True)
class DdsOptions:
    """Where the robot is on DDS, and its attached hands."""

    interface: str
    domain: int
    hands: "tuple[Hand, ...]" = ()
    lowstate_hz: float | None = None
    """Rate at which the robot reports its joints; None for the usual rate."""


def parse_hands(name: str, build: "Build", dds_interface: str | None) -> "tuple[Hand, ...]":
    """Return the hands of --hands; raise an error if the robot has none of this name.

    It raises one without `dds_interface`, too: clients of other wires cannot use hands.
    """
    from rote.model.registry import family_of
    from rote.sim.fingers import hands_named

    if not name:
        return ()
    if dds_interface is None:
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


def check_dds_options(options: DdsOptions) -> None:
    """Raise an error if the package for DDS is missing, or if there is no such interface."""
    from rote.transport.link import import_carrier

    import_carrier("dds://").check_interface(options.interface)


async def serve_dds(simulator: "Simulator", options: DdsOptions) -> str:
    """Serve the simulated robot on DDS; return its URL."""
    from rote.transport.link import import_carrier, split_url

    url = f"dds://{options.interface}?domain={options.domain}"
    target = import_carrier(url).read_url(split_url(url))
    server = await simulator.serve_dds(
        target.interface, target.domain, hands=options.hands, lowstate_hz=options.lowstate_hz
    )
    return server.url
