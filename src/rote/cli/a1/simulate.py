"""rote sim --a1: a simulated A1 or Go1 on real ports."""

from typing import TYPE_CHECKING, NamedTuple

from rote.cli.options import print_json
from rote.cli.simulate import make_end_event, show_notices
from rote.errors import BadRequestError

if TYPE_CHECKING:
    from rote.sim.quadruped.simulator import A1Simulator
    from rote.sim.quadruped.world import A1World
    from rote.transport.impair import Impairment


class A1Options(NamedTuple):
    """Which robot to simulate, as given on the command line."""

    address: str
    dialect: str
    start: str
    """The mode to begin in."""
    hand: str | None
    faults: tuple[str, ...]
    seed: int


async def simulate_a1(options: A1Options, network: "Impairment | None", as_json: bool) -> None:
    """Run a simulated A1 or Go1 until Ctrl-C or SIGTERM."""
    from rote.session.a1 import Level
    from rote.sim.quadruped.simulator import A1Simulator

    world = _create_robot(options)
    host, high, low = _parse_ports(options.address)
    simulator = A1Simulator(world, host, high_port=high, low_port=low, impairment=network)
    async with simulator:
        ended = make_end_event()
        if as_json:
            urls = [simulator.url(level) for level in Level]
            dialect = world.dialect.value
            ready = {"url": urls[0], "urls": urls, "build": "a1", "dialect": dialect}
            print_json({"event": "ready", **ready})
        else:
            _print_introduction(simulator, network)
        await show_notices(world.notices, as_json, ended)
    if not as_json:
        print("\nThe simulated robot has ended.")


def _create_robot(options: A1Options) -> "A1World":
    """Create the simulated robot; raise `BadRequestError` for impossible options."""
    from rote.sim.quadruped.faults import parse_a1_fault
    from rote.sim.quadruped.hands import parse_hand
    from rote.sim.quadruped.world import A1World
    from rote.wire.a1.values import Dialect

    try:
        dialect = Dialect(options.dialect)
    except ValueError:
        known = ", ".join(dialect.value for dialect in Dialect)
        raise BadRequestError(f"unknown dialect {options.dialect!r}", f"Use: {known}.") from None
    faults = [parse_a1_fault(fault) for fault in options.faults]
    hand = None if options.hand is None else parse_hand(options.hand, options.seed)
    world = A1World(dialect=dialect, seed=options.seed, start=options.start)
    for fault in faults:
        world.health.plan_fault(fault)
    world.attach(hand)
    return world


def _parse_ports(address: str) -> tuple[str, int, int]:
    """Parse HOST or HOST:0; return the host, and the ports of the high and the low level.

    Port 0 stands for any free port.
    """
    from rote.sim.quadruped.simulator import HIGH_PORT, LOW_PORT
    from rote.transport.address import host_and_port

    no_port = -1
    host, port = host_and_port(address, no_port)
    if port not in (no_port, 0):
        raise BadRequestError(
            f"an A1 listens on two ports, {HIGH_PORT} and {LOW_PORT}, not on {port}",
            f"Write {host}, or {host}:0 for two free ones.",
        )
    return (host, 0, 0) if port == 0 else (host, HIGH_PORT, LOW_PORT)


def _print_introduction(simulator: "A1Simulator", network: "Impairment | None") -> None:
    from rote.session.a1 import Level
    from rote.transport.impair import describe_impairment

    name = "a Go1" if simulator.world.is_go1 else f"an A1, dialect {simulator.dialect.value}"
    print(f"A simulated robot, {name}, listens:")
    for level in Level:
        print(f"  {level.value:4}  {simulator.url(level)}")
    if network is not None:
        print(f"The network: {describe_impairment(network)}.")
    print(f"Try: rote a1 status --robot '{simulator.url()}'\nCtrl-C ends it.", flush=True)
