"""rote sim --dds: the simulated G1 as an EDU robot is reached."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
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


@dataclass(frozen=True, slots=True)
class DdsWish:
    """Where on DDS the robot is to be reached."""

    interface: str
    domain: int


async def serve_dds(simulator: "Simulator", wish: DdsWish) -> str:
    """Open the robot's DDS; returns its URL."""
    from rote.carrier import carrier_of, split_url

    url = f"dds://{wish.interface}?domain={wish.domain}"
    target = carrier_of(url).read_url(split_url(url))
    return (await simulator.serve_dds(target.interface, target.domain)).url
