"""rote sim: a simulated robot on a real port, with a bad network on request."""

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import Json, print_json, run
from rote.errors import BadRequestError

if TYPE_CHECKING:
    from rote.sim.server import Simulator
    from rote.transport.impair import Impairment


def sim(
    udp: Annotated[
        str, typer.Option("--udp", metavar="HOST:PORT", help="Where to listen.")
    ] = "127.0.0.1:49504",
    store: Annotated[
        Path | None,
        typer.Option("--store", metavar="FILE", help="Where taught actions are kept."),
    ] = None,
    factory: Annotated[
        bool, typer.Option("--factory", help="Come with the four actions of a real G1.")
    ] = False,
    mode: Annotated[
        str, typer.Option(help="Mode to begin in: walk, walk-waist, lock-stand, damp, zero-torque.")
    ] = "walk",
    loss: Annotated[float, typer.Option(help="Lose this share of datagrams, 0 to 1.")] = 0.0,
    delay: Annotated[str, typer.Option(help="Delay each datagram, like 50ms.")] = "0",
    duplicate: Annotated[float, typer.Option(help="Double this share.")] = 0.0,
    reorder: Annotated[float, typer.Option(help="Let this share be overtaken.")] = 0.0,
    corrupt: Annotated[float, typer.Option(help="Damage this share.")] = 0.0,
    drop_after: Annotated[
        str | None, typer.Option(help="Cut the network after this long, like 3.2s.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Makes a bad network repeatable.")] = 0,
    as_json: Json = False,
) -> int:
    """Run a simulated G1 for other programs.

    Any client of the documented UDP frames can teach it. Ctrl-C ends it.
    """
    from rote.sim.faults import seconds
    from rote.transport.impair import Impairment

    impairment = Impairment(
        loss=loss,
        delay_s=seconds(delay),
        duplicate=duplicate,
        reorder=reorder,
        corrupt=corrupt,
        cut_after_s=None if drop_after is None else seconds(drop_after),
        seed=seed,
    )
    return run(_sim(udp, store, (factory, mode, seed), impairment, as_json))


async def _sim(
    udp: str,
    path: Path | None,
    how: tuple[bool, str, int],
    impairment: "Impairment",
    as_json: bool,
) -> None:
    from rote.connection import default_store
    from rote.messages import Mode
    from rote.sim.factory import add_factory_actions
    from rote.sim.faults import describe
    from rote.sim.server import Simulator
    from rote.sim.store import Store
    from rote.sim.world import World
    from rote.transport.impair import Impairment
    from rote.transport.udp import host_and_port

    factory, mode_name, seed = how
    try:
        mode = Mode[mode_name.upper().replace("-", "_")]
    except KeyError:
        known = ", ".join(m.name.lower().replace("_", "-") for m in Mode)
        raise BadRequestError(f"there is no mode {mode_name!r}", f"Use: {known}.") from None
    host, port = host_and_port(udp)
    store = Store(path or default_store())
    if factory:
        add_factory_actions(store)
    bad = impairment if impairment != Impairment(seed=seed) else None
    simulator = Simulator(World(store, mode=mode, seed=seed), impairment=bad)
    try:
        url = await simulator.serve_udp(host, port)
        if as_json:
            print_json({"event": "ready", "url": url, "store": store.path})
        else:
            print(f"A simulated G1 listens at {url}; its store is {store.path}.")
            if bad is not None:
                print(f"The network: {describe(bad)}.")
            print(f"Try: rote teach wave --hand wave --robot {url}\nCtrl-C ends it.", flush=True)
        await _show_notices(simulator, as_json)
        if not as_json:
            print("\nThe simulated robot has ended; its store is kept.")
    finally:
        await simulator.close()
        store.close()


async def _show_notices(simulator: "Simulator", as_json: bool) -> None:
    """Print what happens until somebody asks the process to end."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    while not ended.is_set():
        for notice in simulator.world.notices:
            if as_json:
                print_json({"event": "notice", "time_s": notice.time_s, "words": notice.words})
            else:
                print(f"{notice.time_s:9.2f} s  {notice.words}", flush=True)
        simulator.world.notices.clear()
        try:
            await asyncio.wait_for(ended.wait(), 0.1)
        except TimeoutError:
            continue
