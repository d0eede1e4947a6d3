"""rote sim: a simulated robot on a real port, with a bad network on request."""

import asyncio
import shlex
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.cli.options import Json, print_json, run
from rote.cli.simulate_dds import Dds, DdsWish, Domain, serve_dds
from rote.errors import BadRequestError

if TYPE_CHECKING:
    from rote.carrier.impair import Impairment
    from rote.sim.server import Simulator
    from rote.sim.store import Store
    from rote.sim.world import Notice, World

_DEFAULT_UDP = "127.0.0.1:49504"
_SERIAL = "E2100SIMULATED01"


Udp = Annotated[
    str | None,
    typer.Option(
        "--udp",
        metavar="HOST:PORT",
        help=f"Speak the documented frames there; {_DEFAULT_UDP} if nothing else is said.",
    ),
]
WebRtc = Annotated[
    str | None,
    typer.Option(
        "--webrtc",
        metavar="HOST",
        help="Be a G1 as it comes: WebRTC at this address, and found by discovery.",
    ),
]
Signalling = Annotated[
    str, typer.Option(help="legacy, none, 1, 2 or 3 (wants --key); else as the firmware does.")
]
DeviceKey = Annotated[
    str | None, typer.Option("--key", metavar="HEX", help="The robot's own key, 32 digits.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Read offers like the robot's own stack, no better.")
]
FirmwareName = Annotated[str, typer.Option(help="1.4.7 or 1.5.3.")]
Serial = Annotated[
    str, typer.Option(help="Answer discovery under this serial; empty for not at all.")
]
A1 = Annotated[
    str | None,
    typer.Option(
        "--a1",
        metavar="HOST",
        help="Be an A1 or Go1 at this address instead, on the ports such a robot has; "
        "HOST:0 takes free ones.",
    ),
]
DialectName = Annotated[
    str, typer.Option(help="How an A1 speaks: 3.2, 3.3 or 3.3.4; or go1.", metavar="DIALECT")
]
HandName = Annotated[
    str | None,
    typer.Option(
        "--hand",
        help="Somebody moves the A1's legs whenever they are soft: paw, stretch or wag; "
        "paw:6s takes six seconds.",
    ),
]
Faults = Annotated[
    list[str] | None,
    typer.Option(
        help="low-battery, hot-motor:16 or SOURCE:CODE like 600:0x8, of an A1 silent, clock:-2s or "
        "nan:imu; @5 after it is when, in seconds. May be repeated.",
    ),
]
StoreFile = Annotated[
    str | None, typer.Option("--store", metavar="FILE", help="Where taught actions are kept.")
]
Factory = Annotated[
    bool, typer.Option("--factory", help="Come with the four actions of a real G1.")
]
Start = Annotated[
    str,
    typer.Option(
        help="Mode to begin in: walk, walk-waist, run, run-29, lock-stand, damp, zero-torque; "
        "else the one in which the firmware stands. An A1's: stand, lie, damp or hung."
    ),
]
Loss = Annotated[float, typer.Option(help="Lose this share of datagrams, 0 to 1.")]
Delay = Annotated[str, typer.Option(help="Delay each datagram, like 50ms.")]
Duplicate = Annotated[float, typer.Option(help="Double this share.")]
Reorder = Annotated[float, typer.Option(help="Let this share be overtaken.")]
Corrupt = Annotated[float, typer.Option(help="Damage this share.")]
DropAfter = Annotated[str | None, typer.Option(help="Cut the network after this long, like 3.2s.")]
Seed = Annotated[int, typer.Option(help="Makes a bad network repeatable.")]


def sim(
    udp: Udp = None,
    webrtc: WebRtc = None,
    signalling: Signalling = "",
    key: DeviceKey = None,
    strict: Strict = False,
    firmware: FirmwareName = "1.4.7",
    serial: Serial = _SERIAL,
    dds: Dds = None,
    domain: Domain = 0,
    a1: A1 = None,
    dialect: DialectName = "3.3.4",
    hand: HandName = None,
    fault: Faults = None,
    store: StoreFile = None,
    factory: Factory = False,
    mode: Start = "",
    loss: Loss = 0.0,
    delay: Delay = "0",
    duplicate: Duplicate = 0.0,
    reorder: Reorder = 0.0,
    corrupt: Corrupt = 0.0,
    drop_after: DropAfter = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> int:
    """Run a simulated robot for other programs: a G1, or with --a1 an A1 or Go1.

    Any client of the documented UDP frames can teach the G1, and with --webrtc or --dds any client
    of a real one: all see the same robot. Ctrl-C ends it.
    """
    network = _network((loss, duplicate, reorder, corrupt), delay, drop_after, seed)
    if a1 is not None:
        from rote.cli.a1.simulate import A1Wish, simulate_a1

        if udp or webrtc or dds:
            raise BadRequestError("--a1 is another robot than --udp, --webrtc and --dds are for")
        robot = A1Wish(a1, dialect, mode or "stand", hand, tuple(fault or ()), seed)
        return run(simulate_a1(robot, network, as_json))
    wish = _Wish(
        udp=udp if udp or webrtc or dds else _DEFAULT_UDP,
        webrtc=webrtc,
        dds=None if dds is None else DdsWish(dds, domain),
        signalling=signalling,
        key=key,
        strict=strict,
        serial=serial,
        impairment=network,
        as_json=as_json,
    )
    return run(_sim(wish, _robot(store, (factory, mode, firmware, seed), fault or ())))


def _network(
    shares: tuple[float, float, float, float], delay: str, drop_after: str | None, seed: int
) -> "Impairment | None":
    """Return how bad the network is to be; None where it is good."""
    from rote.carrier.impair import Impairment
    from rote.sim.faults import seconds

    loss, duplicate, reorder, corrupt = shares
    impairment = Impairment(
        loss=loss,
        delay_s=seconds(delay),
        duplicate=duplicate,
        reorder=reorder,
        corrupt=corrupt,
        cut_after_s=None if drop_after is None else seconds(drop_after),
        seed=seed,
    )
    return impairment if impairment != Impairment(seed=seed) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """How the robot is to be reached."""

    udp: str | None
    webrtc: str | None
    dds: DdsWish | None
    signalling: str
    key: str | None
    strict: bool
    serial: str
    impairment: "Impairment | None"
    as_json: bool


def _robot(
    path: str | None, how: tuple[bool, str, str, int], faults: Sequence[str]
) -> "tuple[World, Store]":
    """Make the robot, or say what cannot be."""
    from rote.connection import default_store
    from rote.model.g1 import Mode
    from rote.sim.factory import add_factory_actions
    from rote.sim.firmware import PROFILES
    from rote.sim.health import parse_fault
    from rote.sim.store import Store
    from rote.sim.world import World

    factory, mode_name, firmware, seed = how
    try:
        mode = Mode[mode_name.upper().replace("-", "_")] if mode_name else None
    except KeyError:
        known = ", ".join(m.name.lower().replace("_", "-") for m in Mode)
        raise BadRequestError(f"there is no mode {mode_name!r}", f"Use: {known}.") from None
    if firmware not in PROFILES:
        known = ", ".join(PROFILES)
        raise BadRequestError(f"there is no firmware {firmware!r}", f"Use: {known}.")
    planned = [parse_fault(fault) for fault in faults]
    store = Store(path or default_store())
    if factory:
        add_factory_actions(store)
    world = World(store, mode=mode, seed=seed, firmware=PROFILES[firmware])
    for each in planned:
        world.health.plan(each)
    return world, store


async def _sim(wish: _Wish, robot: "tuple[World, Store]") -> None:
    from rote.sim.server import Simulator

    world, store = robot
    simulator = Simulator(world, impairment=wish.impairment)
    try:
        ready = await _serve(simulator, wish)
        if wish.as_json:
            print_json({"event": "ready", **ready, "store": store.path})
        else:
            _introduce(ready, store.path, wish.impairment)
        await show_notices(world.notices, wish.as_json)
        if not wish.as_json:
            print("\nThe simulated robot has ended; its store is kept.")
    finally:
        await simulator.close()
        store.close()


async def _serve(simulator: "Simulator", wish: _Wish) -> dict[str, Any]:
    """Open every wire that is wished for; returns what a person or script must know."""
    from rote.carrier.udp import host_and_port
    from rote.wire.signalling import parse_device_key

    ready: dict[str, Any] = {"urls": []}
    if wish.udp is not None:
        ready["urls"].append(await simulator.serve_udp(*host_and_port(wish.udp)))
    if wish.webrtc is not None:
        door = await simulator.serve_webrtc(
            *_host_and_maybe_port(wish.webrtc),
            signalling=wish.signalling,
            key=None if wish.key is None else parse_device_key(wish.key),
            strict=wish.strict,
        )
        ready["urls"].append(door.url)
        if door.needs_key:
            ready["key"] = door.key
        if wish.serial:
            await simulator.serve_discovery(wish.serial, door.host)
            ready["serial"] = wish.serial
    if wish.dds is not None:
        ready["urls"].append(await serve_dds(simulator, wish.dds))
    ready["url"] = ready["urls"][0]
    return ready


def _host_and_maybe_port(text: str) -> tuple[str, int | None]:
    from rote.carrier.udp import host_and_port

    host, port = host_and_port(text, 0)
    return host, port or None


def _introduce(ready: dict[str, Any], store: str, bad: "Impairment | None") -> None:
    from rote.sim.faults import describe

    print(f"A simulated G1 listens at {' and '.join(ready['urls'])}; its store is {store}.")
    if "serial" in ready:
        print(f"Those who look for robots find it as {ready['serial']}.")
    key = ""
    if "key" in ready:
        key = f" --key {ready['key']}"
    if bad is not None:
        print(f"The network: {describe(bad)}.")
    print(
        f"Try: rote teach wave --hand wave --robot {shlex.quote(ready['url'])}{key}\n"
        "Ctrl-C ends it.",
        flush=True,
    )


async def show_notices(notices: "list[Notice]", as_json: bool) -> None:
    """Print what a robot notes, and clear it, until somebody asks the process to end."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    while not ended.is_set():
        for notice in notices:
            if as_json:
                print_json({"event": "notice", "time_s": notice.time_s, "words": notice.words})
            else:
                print(f"{notice.time_s:9.2f} s  {notice.words}", flush=True)
        notices.clear()
        try:
            await asyncio.wait_for(ended.wait(), 0.1)
        except TimeoutError:
            continue
