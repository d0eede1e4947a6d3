"""connect() and open(): from a URL to a robot. The only module that imports both the API and the
simulator.
"""

import asyncio
import atexit
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict, TypeVar, Unpack, overload
from urllib.parse import parse_qs

from rote import messages as m
from rote.errors import BadRequestError, LinkError, NotConfirmedError, RoteError
from rote.model.family import Build
from rote.model.registry import families, family_of, find_build
from rote.platform.paths import store_file
from rote.robot.api_values import RobotClient
from rote.robot.message_robot import G1, MessageRobot
from rote.robot.robot import Robot
from rote.session import rpc
from rote.session.teaching import TeachingTiming
from rote.text import suggest_names
from rote.transport.link import (
    SCHEMES,
    Link,
    Receiver,
    import_carrier,
    open_link,
    parse_url_options,
    split_url,
)
from rote.transport.services.client import ServicesClient
from rote.transport.tap import Tap
from rote.transport.udp.client import TeachingClient
from rote.transport.webrtc.connection import ChannelConnection
from rote.transport.wires import EMBEDDED, EMBEDDED_A1, IN_PROCESS, wire_of

if TYPE_CHECKING:
    from rote.robot.quadruped.robot import A1
    from rote.robot.quadruped.safety import Safety
    from rote.sim.world import World


_STATE_TIMEOUT_S = 1.0
"""Time limit for the first state after a stop."""
_Closable = TypeVar("_Closable", bound=Robot)
_log = logging.getLogger("rote")


class Options(TypedDict, total=False):
    """The keyword arguments of `connect`, which explains them."""

    timeout: float
    key: str | None
    keylog: str | Path | None
    reconnect: bool
    world: "World | None"
    ability: str | None
    every_state: bool


@overload
def connect(
    url: str, *, family: Literal["a1"], **options: Unpack[Options]
) -> "AbstractAsyncContextManager[A1]": ...


@overload
def connect(
    url: str = EMBEDDED, *, family: Literal["g1"], **options: Unpack[Options]
) -> AbstractAsyncContextManager[G1]: ...


@overload
def connect(
    url: str = EMBEDDED, *, family: str | None = None, **options: Unpack[Options]
) -> AbstractAsyncContextManager[Robot]: ...


def connect(
    url: str = EMBEDDED, *, family: str | None = None, **options: Unpack[Options]
) -> AbstractAsyncContextManager[Robot]:
    """Connect to the robot at `url` for as long as the `async with` block runs.

    However the block ends, a playback is stopped softly and joints that are being taught hold; if
    that fails, the error is raised.

    - `webrtc://HOST`, `webrtc://SERIAL`, `webrtc://ap`: a robot with stock firmware.
    - `dds://INTERFACE`: a G1 EDU on that network interface; `?domain=N` names its domain.
    - `udp://HOST[:49504]`: a robot that uses the documented frames.
    - `a1://HOST[:PORT]`: an A1 or Go1; with `?level=low`, its motors.
    - `sim://NAME`: a simulated robot inside this process, for example `sim://g1` or `sim://g1-23`;
      `?store=FILE` names its store, `:memory:` for none.
    - `sim://a1`: a simulated A1, which hangs if its motors are used; `?hand=paw` moves its legs.

    `?build=NAME` names the build of a robot that does not report it.

    `family` is the expected kind of robot, for example `"a1"`: any other raises `BadRequestError`,
    and type checkers infer the class. `timeout` is the time limit for an answer, 5 seconds by
    default; over WebRTC it applies to each stage. `ability` is what the robot is needed for: a wire
    with several levels then uses a level that has it, and a robot that would go limp is refused.
    `every_state` reports all states, 500 a second over DDS; by default fewer are reported, enough
    for display.

    The connection to a lost robot is restored in the background, and a stop that failed meanwhile
    is then sent first; `reconnect=False` leaves it disconnected. For WebRTC only: `key` is the
    robot's own key in hex, which newer firmware requires (or set ROTE_KEY, or write it into the key
    file); `keylog` is a file to which the session's secrets are appended, for Wireshark. For
    `sim://` only: `world` is your own simulated robot.
    """
    return _connect_with(_ConnectOptions(url, family, **options))


@overload
async def open(url: str, *, family: Literal["a1"], **options: Unpack[Options]) -> "A1": ...  # noqa: A001


@overload
async def open(url: str = EMBEDDED, *, family: Literal["g1"], **options: Unpack[Options]) -> G1: ...  # noqa: A001


@overload
async def open(  # noqa: A001
    url: str = EMBEDDED, *, family: str | None = None, **options: Unpack[Options]
) -> Robot: ...


async def open(  # noqa: A001 - as `gzip.open`: it is called `rote.open`
    url: str = EMBEDDED, *, family: str | None = None, **options: Unpack[Options]
) -> Robot:
    """Connect to the robot at `url` until its `close` is awaited: for notebooks.

    Arguments and errors are those of `connect`, which is preferable in programs. A robot that was
    not closed is closed when `asyncio.run` ends its event loop, or when the interpreter ends:
    joints that are being taught hold, a playback stops softly.
    """
    stack = AsyncExitStack()
    try:
        robot = await _open_robot(_ConnectOptions(url, family, **options), stack)
    except BaseException:
        await stack.aclose()
        raise
    stack.callback(_ExitGuard(robot).disarm)
    return robot


class _ExitGuard:
    """Closes a robot that is still open when its event loop or the interpreter ends."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._loop = asyncio.get_running_loop()
        self._closed = asyncio.Event()
        self._task = self._loop.create_task(
            self._wait_until_closed(), name=f"close {robot.url} at the end"
        )
        atexit.register(self._close_at_exit)

    def disarm(self) -> None:
        """Remove the guard: the robot is closed."""
        atexit.unregister(self._close_at_exit)
        self._closed.set()

    async def _wait_until_closed(self) -> None:
        try:
            await self._closed.wait()
        except asyncio.CancelledError:  # `asyncio.run` ends the loop
            await self._close_robot()
            raise

    async def _close_robot(self) -> None:
        with suppress(RoteError):
            await self._robot.close()

    def _close_at_exit(self) -> None:
        """Close the robot on a loop that has only been stopped, as a notebook's is."""
        if not self._loop.is_closed() and not self._loop.is_running():
            self._loop.run_until_complete(self._close_robot())


@asynccontextmanager
async def connect_a1(
    url: str, *, timeout: float = 5.0, safety: "Safety | None" = None
) -> "AsyncIterator[A1]":
    """Connect to the A1 or Go1 at `a1://HOST[:PORT][?level=high|low&dialect=...]`.

    `sim://a1[?level=high|low&mode=...&hand=...&dialect=...]` is a simulated one in this process.
    Without a port, the usual ports of the level and dialect are tried; without a dialect, it is
    detected from the first state. `safety` checks all commands and states; default: `Safety()`.
    """
    async with (
        AsyncExitStack() as stack,
        _close_after(await _open_a1_at(url, timeout, stack, safety)) as robot,
    ):
        yield robot


async def _open_a1_at(
    url: str,
    timeout: float,
    stack: AsyncExitStack,
    safety: "Safety | None" = None,
    tap: Tap | None = None,
) -> "A1":
    """Connect to an A1; everything opened for it is closed by `stack`."""
    from rote.robot.quadruped.robot import A1  # noqa: PLC0415 - not needed for a G1
    from rote.transport.a1.client import open_client  # noqa: PLC0415

    check_timeout(timeout)
    if wire_of(url).scheme == "sim":
        url = await _start_embedded_a1(url, stack)
    client = await open_client(url, timeout=timeout, tap=tap)
    stack.push_async_callback(client.close)
    return A1(client, safety, stack.aclose)


async def _start_embedded_a1(url: str, stack: AsyncExitStack) -> str:
    """Start the simulated A1 that a URL names; return the URL at which it listens."""
    from rote.sim.quadruped.simulator import create_embedded_a1  # noqa: PLC0415

    if not wire_of(url).has_levels:
        raise BadRequestError(f"{url!r} is not an A1", f"Use {EMBEDDED_A1}.")
    embedded = create_embedded_a1(url)
    await stack.enter_async_context(embedded.simulator)
    return embedded.url


# ---- one opener per scheme ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ConnectOptions:
    """The arguments of one call of `connect`; `tap` receives every message."""

    url: str
    family: str | None = None
    timeout: float = 5.0
    key: str | None = field(default=None, repr=False)
    keylog: str | Path | None = None
    reconnect: bool = True
    world: "World | None" = None
    ability: str | None = None
    every_state: bool = False
    tap: Tap | None = None


@asynccontextmanager
async def _connect_with(options: _ConnectOptions) -> AsyncIterator[Robot]:
    async with AsyncExitStack() as stack, _close_after(await _open_robot(options, stack)) as robot:
        yield robot


@asynccontextmanager
async def _close_after(robot: _Closable) -> AsyncIterator[_Closable]:
    """Close the robot when the block ends; raise if its stop fails, because it may still move.

    If the block itself raises `LinkError`, that error is raised instead.
    """
    try:
        yield robot
    except LinkError:
        with suppress(LinkError):
            await robot.close()
        raise
    except BaseException:
        await robot.close()
        raise
    else:
        await robot.close()


async def _open_robot(options: _ConnectOptions, stack: AsyncExitStack) -> Robot:
    """Connect to the requested robot; the stack closes everything opened for it."""
    check_timeout(options.timeout)
    wire = wire_of(options.url)
    if not wire.takes_key and (options.key is not None or options.keylog is not None):
        raise BadRequestError("a key and a key log require a webrtc:// URL", "Leave them out.")
    if wire.scheme != "sim" and options.world is not None:
        raise BadRequestError("`world` requires a sim:// URL")
    _log.info("connecting to %s", options.url)
    robot = await _OPENERS[wire.scheme](options, stack)
    _log.info("connected to %s: %s", options.url, robot.build.title)
    stack.callback(_log.info, "disconnecting from %s", options.url)
    if options.family is not None and robot.build.family != options.family:
        raise BadRequestError(
            f"the robot at {options.url} is {robot.build.title}, not a {options.family}",
            "Leave `family` out, or connect to another robot.",
        )
    return robot


@asynccontextmanager
async def connect_tapped(
    url: str,
    tap: Tap,
    *,
    timeout: float = 5.0,
    key: str | None = None,
    world: "World | None" = None,
    ability: str | None = None,
) -> AsyncIterator[Robot]:
    """Connect like `connect`, with `tap` receiving every message; a lost robot stays lost.

    `tap.client` is set to the client of the connection.
    """
    options = _ConnectOptions(
        url, timeout=timeout, key=key, reconnect=False, world=world, ability=ability, tap=tap
    )
    async with AsyncExitStack() as stack, _close_after(await _open_robot(options, stack)) as robot:
        tap.begin_stage("connected")
        yield robot


def check_timeout(timeout_s: float) -> float:
    """Return the timeout; raise `BadRequestError` if it is not more than 0 and at most 600 s."""
    if not 0 < timeout_s <= 600:  # NaN fails this comparison too
        raise BadRequestError(f"a timeout of {timeout_s} s is out of range", "Choose up to 600 s.")
    return timeout_s


def _make_robot(client: RobotClient, stack: AsyncExitStack, tap: Tap | None) -> MessageRobot:
    """Return the robot of a connected client; to close it unwinds `stack`."""
    if tap is not None:
        tap.client = client
    robot_class = G1 if client.build.family == "g1" else MessageRobot
    return robot_class(client, stack.aclose)


async def _open_a1(options: _ConnectOptions, stack: AsyncExitStack) -> "A1":
    url = options.url
    if options.ability is not None:
        from rote.robot.quadruped import approach  # noqa: PLC0415 - not needed for a G1

        url = approach.url_for_ability(url, options.ability)
        if approach.is_low(url):
            await approach.check_not_standing(url, read_only=options.ability == "states")
    return await _open_a1_at(url, options.timeout, stack, tap=options.tap)


async def _open_webrtc(options: _ConnectOptions, stack: AsyncExitStack) -> Robot:
    carrier = import_carrier(options.url)
    target = replace(
        carrier.read_url(split_url(options.url)),
        key=options.key,
        keylog=None if options.keylog is None else Path(options.keylog),
        limit_s=options.timeout,
        tap=options.tap,
    )
    timing = rpc.ChannelTiming(connect_s=min(options.timeout, 3.0), answer_s=rpc.PATIENT_S)
    connect_carrier = partial(carrier.connect_carrier, target)
    channel = ChannelConnection(
        connect_carrier if options.tap is None else options.tap.tap_carrier(connect_carrier), timing
    )
    client = ServicesClient(
        options.url, channel, reconnect=options.reconnect, build=target.build, serial=target.serial
    )
    await client.open()
    stack.push_async_callback(client.close)
    return _make_robot(client, stack, options.tap)


async def _open_dds(options: _ConnectOptions, stack: AsyncExitStack) -> Robot:
    target = import_carrier(options.url).read_url(split_url(options.url))
    from rote.transport.dds.client import DdsClient  # noqa: PLC0415 - needs the carrier's library

    timing = rpc.ChannelTiming(connect_s=options.timeout, answer_s=rpc.PATIENT_S)
    client = DdsClient(
        options.url,
        target,
        timing,
        reconnect=options.reconnect,
        every_state=options.every_state,
        tap=options.tap,
    )
    await client.open()
    stack.push_async_callback(client.close)
    return _make_robot(client, stack, options.tap)


async def _open_frames(options: _ConnectOptions, stack: AsyncExitStack) -> Robot:
    _, build = parse_url_options(split_url(options.url).query)
    timing = TeachingTiming(connect_s=options.timeout)
    client = TeachingClient(options.url, timing, build=build, reconnect=options.reconnect)
    connect_link = partial(open_link, options.url)
    await client.open(connect_link if options.tap is None else options.tap.tap_link(connect_link))
    stack.push_async_callback(client.close)
    return _make_robot(client, stack, options.tap)


class _EmbeddedClient(TeachingClient):
    """A client in the same process as its robot. It can send commands that have no frame."""

    abilities = IN_PROCESS

    def __init__(
        self, url: str, timing: TeachingTiming, world: "World", *, reconnect: bool
    ) -> None:
        super().__init__(url, timing, build=world.build, reconnect=reconnect)
        self._world = world

    async def ask(self, command: m.Command) -> m.Reply:
        """Send a command and return the reply; a command without a frame goes to the world
        directly.
        """
        if isinstance(command, m.RenameAction | m.DeleteAction) and self._failure is None:
            return self._world.obey(self, command)
        return await super().ask(command)


async def _open_sim(options: _ConnectOptions, stack: AsyncExitStack) -> Robot:
    world = options.world
    if wire_of(options.url).has_levels:
        return await _open_embedded_a1(options, stack)
    from rote.sim.server import Simulator  # noqa: PLC0415 - only for this robot
    from rote.sim.store import open_store  # noqa: PLC0415
    from rote.sim.world import World  # noqa: PLC0415

    if world is None:
        build, path = embedded_of(options.url)
        store = open_store(path, build.family)
        stack.callback(store.close)
        world = World(store, build=build)
    simulator = Simulator(world)
    stack.push_async_callback(simulator.close)
    timing = TeachingTiming(connect_s=options.timeout)
    client = _EmbeddedClient(options.url, timing, world, reconnect=options.reconnect)
    stack.push_async_callback(client.close)
    port = simulator.serve_memory()

    async def connect_link(receive: Receiver) -> Link:
        return port.connect(receive)

    await client.open(connect_link if options.tap is None else options.tap.tap_link(connect_link))
    return _make_robot(client, stack, options.tap)


async def _open_embedded_a1(options: _ConnectOptions, stack: AsyncExitStack) -> "A1":
    if options.world is not None:
        raise BadRequestError("`world` requires a robot that stores actions")
    from rote.robot.quadruped.robot import MOTORS  # noqa: PLC0415 - not needed for a G1

    url = options.url
    if options.ability in MOTORS and "level=" not in url:
        url += f"{'&' if '?' in url else '?'}level=low"
    return await _open_a1_at(url, options.timeout, stack, tap=options.tap)


_OPENERS: dict[str, Callable[[_ConnectOptions, AsyncExitStack], Awaitable[Robot]]] = {
    "a1": _open_a1,
    "dds": _open_dds,
    "sim": _open_sim,
    "udp": _open_frames,
    "webrtc": _open_webrtc,
}
"""The function that opens each wire, by the scheme of the URL."""


def check_reachable(url: str) -> None:
    """Raise `BadRequestError` for a wrong URL, and `MissingExtraError` if its wire needs a package
    that is not installed. Nothing is sent.
    """
    if wire_of(url).in_process:
        embedded_of(url)
    elif wire_of(url).scheme in SCHEMES:
        import_carrier(url).read_url(split_url(url))
    else:
        from rote.transport.a1.client import read_url  # noqa: PLC0415 - not needed for a G1

        read_url(url)


class StopResult(NamedTuple):
    """The result of `stop`."""

    was: str | None
    """What the robot did before: playing, teaching, nothing, ...; None if that is not known."""
    state: str = ""
    """The robot's state now, as text; empty if only the stop itself is known."""
    at_rest: bool = False
    """Whether the robot reported after the stop that nothing moves."""


async def stop(
    url: str,
    *,
    key: str | None = None,
    keylog: str | Path | None = None,
    timeout: float = 5.0,
) -> StopResult:
    """Stop the robot at `url`, whatever it is doing. No request is sent before the stop.

    `key`, `keylog` and `timeout` are those of `connect`. Returns what the robot did before, as far
    as it is known. Raises what `connect` raises if the robot cannot be reached,
    `NotConfirmedError` if it was reached and did not confirm the stop, and `RefusedError` if it
    refuses.
    """
    if wire_of(url).scheme == "a1":
        from rote.robot.quadruped import approach  # noqa: PLC0415 - not needed for a G1

        return StopResult(*await approach.stop(url, timeout=check_timeout(timeout)))
    async with connect(url, timeout=timeout, key=key, keylog=keylog, reconnect=False) as robot:
        # No request is sent before the stop: what the robot did is taken from the state that
        # arrived with the connection, or from the first state after the stop.
        before = robot.state
        try:
            await robot.stop()
        except LinkError as error:
            raise NotConfirmedError(error.text, error.remedy) from error
        has_phase = before is not None and before.has_phase
        state = before if has_phase else await _wait_for_phase(robot)
    if state is not None and state.playing:
        return StopResult("playing")
    if state is None or before is None:
        return StopResult(None, at_rest=state is not None)
    return StopResult("teaching" if state.arms_soft else "nothing")


async def _wait_for_phase(robot: Robot) -> m.RobotState | None:
    """Return the next state with a known phase; None if none arrives in time."""
    with suppress(TimeoutError, RoteError):
        async with asyncio.timeout(_STATE_TIMEOUT_S):
            async for state in robot.states():
                if state.has_phase:
                    return state
    return None


def embedded_of(url: str) -> tuple[Build, str]:
    """Return the build that a `sim://` URL names, and the path of its store.

    Raises `BadRequestError` if the URL names no simulated robot.
    """
    parts = split_url(url)
    options = parse_qs(parts.query, keep_blank_values=True)
    build = find_build(parts.netloc)
    is_simulated = build is not None and "sim" in _list_wires(build)
    stores = options.pop("store", None)
    is_malformed = parts.path.strip("/") or options or (stores is not None and not stores[-1])
    if build is None or not is_simulated or is_malformed:
        known = _list_embedded_urls()
        hint = "" if is_simulated else suggest_names(f"sim://{parts.netloc}", ["sim://g1", *known])
        usage = f"Use sim://g1 or sim://g1?store=FILE; there are {', '.join(known)}."
        raise BadRequestError(
            f"{url!r} is not a simulated robot that rote knows", f"{hint} {usage}".lstrip()
        )
    if stores is None:
        return build, str(store_file(build.family))
    from rote.sim.store import check_store_path  # noqa: PLC0415 - only for a simulated robot

    return build, check_store_path(stores[-1])


def _list_embedded_urls() -> list[str]:
    simulated = [family for family in families() if "sim" in family.wires]
    return [
        *(f"sim://{build.name}" for family in simulated for build in family.builds),
        EMBEDDED_A1,
    ]


def _list_wires(build: Build) -> tuple[str, ...]:
    family = family_of(build)
    return () if family is None else family.wires
