"""connect(): from a URL to a robot. The one place where the API and the simulated robot meet."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, urlsplit

from rote.errors import BadRequestError
from rote.robot.g1 import G1
from rote.session import rpc
from rote.session.teaching import Timing
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport import Link, Receiver, carrier_of, open_link
from rote.transport.services import ServicesClient
from rote.transport.teaching import TeachingClient

if TYPE_CHECKING:
    from rote.robot.a1 import A1
    from rote.robot.safety import Safety

EMBEDDED = "sim://g1"


def default_store() -> Path:
    """Where the embedded robot keeps its actions: ROTE_HOME, or the user's data folder."""
    if home := os.environ.get("ROTE_HOME"):
        return Path(home) / "g1.sqlite"
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "rote" / "g1.sqlite"


@asynccontextmanager
async def connect(
    url: str = EMBEDDED,
    *,
    timeout: float = 5.0,
    key: str | None = None,
    keylog: str | Path | None = None,
    reconnect: bool = True,
    world: World | None = None,
) -> AsyncIterator[G1]:
    """Connect to the robot at `url` for as long as the block runs.

    `webrtc://HOST`, `webrtc://SERIAL` or `webrtc://ap` is a G1 as it comes; `dds://INTERFACE` a G1
    EDU on that network interface, and `?domain=N` names its domain; `udp://HOST[:49504]` a robot
    that speaks the documented frames; `sim://g1` a simulated one inside this process, and
    `sim://g1?store=FILE` names its store, `:memory:` for none. `timeout` is how long to wait for an
    answer, in seconds; over WebRTC, at most in each stage.

    For WebRTC alone: `key` is the robot's own key in hex, which newer firmware wants (or set
    ROTE_KEY, or write it into the key file); `keylog` a file to which the session's secrets are
    added, for Wireshark; `reconnect=False` leaves a lost robot lost. For `sim://` alone: `world` is
    a simulated robot of your own making.

    `a1://HOST[:PORT]?level=high|low` is an A1 or Go1; the block's value is then an `A1`. Type
    checkers want `connect_a1` for it, which is the same.
    """
    if not 0 < timeout <= 600:
        raise BadRequestError(f"a timeout of {timeout} s is not possible", "Choose up to 600 s.")
    scheme = urlsplit(url).scheme
    if scheme != "webrtc" and (key is not None or keylog is not None):
        raise BadRequestError("a key and a key log go with webrtc:// only", "Leave them out.")
    if scheme != "sim" and world is not None:
        raise BadRequestError("a world of your own goes with sim:// only")
    if scheme == "a1":
        async with connect_a1(url, timeout=timeout) as quadruped:
            yield cast("Any", quadruped)
        return
    client: TeachingClient | ServicesClient
    if scheme == "sim":
        async with _embedded(url, world, Timing(connect_s=timeout)) as robot:
            yield robot
        return
    carrier = carrier_of(url)
    if scheme == "webrtc":
        target = replace(
            carrier.read_url(urlsplit(url)),
            key=key,
            keylog=None if keylog is None else Path(keylog),
            limit_s=timeout,
        )
        client = ServicesClient(
            url,
            partial(carrier.dial, target),
            rpc.Timing(connect_s=min(timeout, 3.0)),
            reconnect=reconnect,
        )
        await client.open()
    elif scheme == "dds":
        timing = rpc.Timing(connect_s=timeout)
        target = carrier.read_url(urlsplit(url))
        edu: ServicesClient = carrier.DdsClient(url, target, timing, reconnect=reconnect)
        client = edu
        await edu.open()
    else:
        client = TeachingClient(url, Timing(connect_s=timeout))
        await client.open(partial(open_link, url))
    try:
        yield G1(client)
    finally:
        await client.close()


@asynccontextmanager
async def connect_a1(
    url: str, *, timeout: float = 5.0, safety: "Safety | None" = None
) -> "AsyncIterator[A1]":
    """Connect to the A1 or Go1 at `a1://HOST[:PORT][?level=high|low&dialect=...]`.

    Without a port, those of the level and dialect are tried; without a dialect, it is learned from
    the first state. `safety` is what guards the robot; without it, a `Safety` as it comes.
    """
    from rote.robot.a1 import A1  # noqa: PLC0415 - who has a G1 need not load it
    from rote.transport.a1 import open_client  # noqa: PLC0415

    client = await open_client(url, timeout=timeout)
    try:
        yield A1(client, safety)
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
