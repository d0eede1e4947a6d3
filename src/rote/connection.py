"""connect(): from a URL to a robot. The one place where the API and the simulated robot meet."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from rote.errors import BadRequestError
from rote.robot.g1 import G1
from rote.session.teaching import Timing
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport import Link, Receiver, open_link
from rote.transport.teaching import TeachingClient

EMBEDDED = "sim://g1"


def default_store() -> Path:
    """Where the embedded robot keeps its actions: ROTE_HOME, or the user's data folder."""
    if home := os.environ.get("ROTE_HOME"):
        return Path(home) / "g1.sqlite"
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "rote" / "g1.sqlite"


@asynccontextmanager
async def connect(
    url: str = EMBEDDED, *, timeout: float = 5.0, world: World | None = None
) -> AsyncIterator[G1]:
    """Connect to the robot at `url` for as long as the block runs.

    `udp://host[:49504]` is a robot that speaks the documented frames, `sim://g1` a simulated one
    inside this process; `sim://g1?store=FILE` names its store, `:memory:` for none. `world` is a
    simulated robot of your own making, for `sim://`. `timeout` is how long to wait for an answer,
    in seconds.
    """
    if not 0 < timeout <= 600:
        raise BadRequestError(f"a timeout of {timeout} s is not possible", "Choose up to 600 s.")
    timing = Timing(connect_s=timeout)
    if urlsplit(url).scheme == "sim":
        async with _embedded(url, world, timing) as robot:
            yield robot
        return
    if world is not None:
        raise BadRequestError("a world of your own goes with sim:// only")
    client = TeachingClient(url, timing)

    async def dial(receive: Receiver) -> Link:
        return await open_link(url, receive)

    await client.open(dial)
    try:
        yield G1(client)
    finally:
        await client.close()


@asynccontextmanager
async def _embedded(url: str, world: World | None, timing: Timing) -> AsyncIterator[G1]:
    store = None
    if world is None:
        store = Store(_store_of(url))
        world = World(store)
    simulator = Simulator(world)
    client = TeachingClient(url, timing)
    port = simulator.serve_memory()

    async def dial(receive: Receiver) -> Link:
        return port.connect(receive)

    try:
        await client.open(dial)
        yield G1(client)
    finally:
        await client.close()
        await simulator.close()
        if store is not None:
            store.close()


def _store_of(url: str) -> str | Path:
    parts = urlsplit(url)
    query = parse_qs(parts.query, strict_parsing=bool(parts.query))
    if parts.netloc != "g1" or parts.path.strip("/") or set(query) - {"store"}:
        raise BadRequestError(
            f"{url!r} is not a simulated robot rote knows", "Use sim://g1 or sim://g1?store=FILE."
        )
    return query.get("store", [default_store()])[0]
