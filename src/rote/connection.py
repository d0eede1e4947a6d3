"""connect(): from a URL to a robot. The one place where the API and the simulated robot meet."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import parse_qs

from rote import messages as m
from rote.carrier import Link, Receiver, carrier_of, open_link, split_url
from rote.client.services import ServicesClient
from rote.client.teaching import ABILITIES, TeachingClient
from rote.errors import BadRequestError
from rote.robot.g1 import G1
from rote.session import rpc
from rote.session.teaching import Timing
from rote.sim import EMBEDDED as EMBEDDED
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World

if TYPE_CHECKING:
    from rote.robot.a1.robot import A1
    from rote.robot.a1.safety import Safety


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
    scheme = split_url(url).scheme
    if scheme != "webrtc" and (key is not None or keylog is not None):
        raise BadRequestError("a key and a key log go with webrtc:// only", "Leave them out.")
    if scheme != "sim" and world is not None:
        raise BadRequestError("a world of your own goes with sim:// only")
    wish = _Wish(url, timeout, key, keylog, reconnect, world)
    async with AsyncExitStack() as stack:
        yield cast("G1", await _OPENERS.get(scheme, _open_frames)(wish, stack))


@asynccontextmanager
async def connect_a1(
    url: str, *, timeout: float = 5.0, safety: "Safety | None" = None
) -> "AsyncIterator[A1]":
    """Connect to the A1 or Go1 at `a1://HOST[:PORT][?level=high|low&dialect=...]`.

    Without a port, those of the level and dialect are tried; without a dialect, it is learned from
    the first state. `safety` is what guards the robot; without it, a `Safety` as it comes.
    """
    from rote.client.a1.client import open_client  # noqa: PLC0415
    from rote.robot.a1.robot import A1  # noqa: PLC0415 - who has a G1 need not load it

    client = await open_client(url, timeout=timeout)
    try:
        yield A1(client, safety)
    finally:
        await client.close()


# ---- one opener per scheme ----------------------------------------------------------------------


class _Wish(NamedTuple):
    """What `connect` was asked for."""

    url: str
    timeout: float
    key: str | None
    keylog: str | Path | None
    reconnect: bool
    world: World | None


async def _open_a1(wish: _Wish, stack: AsyncExitStack) -> "A1":
    return await stack.enter_async_context(connect_a1(wish.url, timeout=wish.timeout))


async def _open_webrtc(wish: _Wish, stack: AsyncExitStack) -> G1:
    carrier = carrier_of(wish.url)
    target = replace(
        carrier.read_url(split_url(wish.url)),
        key=wish.key,
        keylog=None if wish.keylog is None else Path(wish.keylog),
        limit_s=wish.timeout,
    )
    timing = rpc.Timing(connect_s=min(wish.timeout, 3.0))
    dial = partial(carrier.dial, target)
    client = ServicesClient(wish.url, dial, timing, reconnect=wish.reconnect)
    await client.open()
    stack.push_async_callback(client.close)
    return G1(client)


async def _open_dds(wish: _Wish, stack: AsyncExitStack) -> G1:
    target = carrier_of(wish.url).read_url(split_url(wish.url))
    from rote.client.dds import DdsClient  # noqa: PLC0415 - the carrier's library is there

    timing = rpc.Timing(connect_s=wish.timeout)
    client = DdsClient(wish.url, target, timing, reconnect=wish.reconnect)
    await client.open()
    stack.push_async_callback(client.close)
    return G1(client)


async def _open_frames(wish: _Wish, stack: AsyncExitStack) -> G1:
    client = TeachingClient(wish.url, Timing(connect_s=wish.timeout))
    await client.open(partial(open_link, wish.url))
    stack.push_async_callback(client.close)
    return G1(client)


class _EmbeddedClient(TeachingClient):
    """A client beside its robot, which it can tell more than the frames have words for."""

    abilities = ABILITIES | {"rename", "delete"}

    def __init__(self, url: str, timing: Timing, world: World) -> None:
        super().__init__(url, timing)
        self._world = world

    async def ask(self, command: m.Command) -> m.Reply:
        """Send a command, or carry it out here, and return the robot's reply."""
        if isinstance(command, m.RenameAction | m.DeleteAction) and self._failure is None:
            return self._world.obey(self, command)
        return await super().ask(command)


async def _open_sim(wish: _Wish, stack: AsyncExitStack) -> G1:
    world = wish.world
    if world is None:
        store = Store(store_of(wish.url))
        stack.callback(store.close)
        world = World(store)
    simulator = Simulator(world)
    stack.push_async_callback(simulator.close)
    client = _EmbeddedClient(wish.url, Timing(connect_s=wish.timeout), world)
    stack.push_async_callback(client.close)
    port = simulator.serve_memory()

    async def dial(receive: Receiver) -> Link:
        return port.connect(receive)

    await client.open(dial)
    return G1(client)


_OPENERS: "dict[str, Callable[[_Wish, AsyncExitStack], Awaitable[A1 | G1]]]" = {
    "a1": _open_a1,
    "dds": _open_dds,
    "sim": _open_sim,
    "webrtc": _open_webrtc,
}
"""By the scheme of the URL. All others speak the documented frames, over a carrier of datagrams."""


def store_of(url: str) -> str:
    """Return where the embedded robot keeps what it was taught, or raise `BadRequestError`."""
    parts = split_url(url)
    query = parse_qs(parts.query, keep_blank_values=True)
    stores = query.pop("store", [str(default_store())])
    if parts.netloc != "g1" or parts.path.strip("/") or query or not stores[-1]:
        raise BadRequestError(
            f"{url!r} is not a simulated robot rote knows", "Use sim://g1 or sim://g1?store=FILE."
        )
    return stores[-1]
