"""rote sim: a simulated robot on a real port, with a bad network on request."""

import asyncio
import shlex
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rote.cli.options import (
    Json,
    choice,
    expand_option_classes,
    print_json,
    refuse_unused_options,
    run,
)
from rote.cli.simulate_dds import (
    Dds,
    DdsOptions,
    Domain,
    Hands,
    check_dds_options,
    parse_hands,
    serve_dds,
)
from rote.errors import BadRequestError
from rote.platform.system import on_signal

if TYPE_CHECKING:
    from rote.model.family import Build, Family, Hand
    from rote.sim.core import SimNotice
    from rote.sim.firmware import Firmware
    from rote.sim.profile_from_report import RobotProfile
    from rote.sim.quirks import Quirks
    from rote.sim.server import Simulator
    from rote.sim.store import Store
    from rote.sim.world import World
    from rote.transport.impair import Impairment

_DEFAULT_UDP = "127.0.0.1:49504"
_DEFAULT_ROBOT = "g1-29"
_A1_WIRE = "a1"
_LOOPBACK = "127.0.0.1"
_LOCAL_ADDRESSES = {"webrtc": _LOOPBACK, "dds": "lo"}
"""Where `rote sim` serves a wire on this computer only."""
_DEFAULT_DIALECT = "3.3.4"
_DEFAULT_SERIAL = "E2100SIMULATED01"
_LIST_QUIRKS = "list"
"""The value of --quirk that lists all quirks."""
_WEBRTC_OPTIONS = {"signalling", "key", "strict", "slots", "serial"}
"""Options that have an effect over WebRTC only."""
_NOT_A1_OPTIONS = _WEBRTC_OPTIONS | {"firmware", "polite", "domain", "store", "factory"}
"""Options that have no effect on an A1."""
_NOTICE_INTERVAL_S = 0.1

RobotName = Annotated[
    str,
    typer.Option(
        "--robot",
        metavar="NAME",
        help=f"Which robot: a build or a family, as `rote robots` lists them; {_DEFAULT_ROBOT} if "
        "not given.",
    ),
]
Like = Annotated[
    Path | None,
    typer.Option(
        "--like",
        metavar="REPORT",
        help="Imitate the robot of this report.json of `rote trial`: its firmware, rates, shapes, "
        "delays and refusals. Other options take precedence.",
    ),
]
Slots = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Number of motors in the robot's states over WebRTC; by default 35, as in real "
        "firmware.",
    ),
]
Udp = Annotated[
    str | None,
    typer.Option(
        "--udp",
        metavar="HOST:PORT",
        help=f"Listen here for the documented frames; {_DEFAULT_UDP} unless another wire is named.",
    ),
]
WebRtc = Annotated[
    str | None,
    typer.Option(
        "--webrtc",
        metavar="HOST",
        help="Emulate stock firmware: WebRTC at this address, with discovery.",
    ),
]
Signalling = Annotated[
    str,
    typer.Option(
        metavar=choice(("legacy", "none", "1", "2", "3")),
        help="Signalling version; 3 needs --key. By default that of the firmware.",
    ),
]
DeviceKey = Annotated[
    str | None, typer.Option("--key", metavar="HEX", help="The robot's own key, 32 digits.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Parse WebRTC offers exactly like a real robot.")
]
FirmwareName = Annotated[
    str, typer.Option(metavar="VERSION", help="For a G1: 1.4.7 or 1.5.3; by default 1.4.7.")
]
Polite = Annotated[
    bool,
    typer.Option(
        "--polite",
        help="Start every playback at once and be ready right after teaching, unlike real robots.",
    ),
]
QuirkNames = Annotated[
    list[str] | None,
    typer.Option(
        "--quirk",
        metavar="NAME",
        help="Imitate this oddity of some firmware; `--quirk list` shows all. May be repeated, "
        "or a list with commas.",
    ),
]
Serial = Annotated[
    str,
    typer.Option(metavar="SERIAL", help="Serial number for discovery; empty to stay hidden."),
]
A1 = Annotated[
    str | None,
    typer.Option(
        "--a1",
        metavar="HOST",
        help="Simulate an A1 or Go1 at this address instead, on its usual ports; "
        "HOST:0 uses free ones.",
    ),
]
DialectName = Annotated[
    str, typer.Option(help="Dialect of an A1.", metavar=choice(("3.2", "3.3", "3.3.4", "go1")))
]
HandName = Annotated[
    str | None,
    typer.Option(
        "--hand",
        metavar="HAND",
        help="A script moves the A1's legs whenever they are soft: paw, stretch or wag; "
        "paw:6s takes six seconds.",
    ),
]
Faults = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FAULT",
        help="Simulate a fault: low-battery, hot-motor:16 or SOURCE:CODE like 600:0x8; for an A1 "
        "silent, clock:-2s or nan:imu. A suffix like @5 delays it by 5 s. May be repeated.",
    ),
]
StoreFile = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE",
        help="File for taught actions; by default a store used only by rote sim.",
    ),
]
Factory = Annotated[bool, typer.Option("--factory", help="Add the four actions of a new G1.")]
Start = Annotated[
    str,
    typer.Option(
        metavar="MODE",
        help="Mode to begin in; by default the firmware's standing mode. A G1's: walk, "
        "walk-waist, run, run-29, lock-stand, damp, zero-torque. An A1's: stand, lie, damp, hung.",
    ),
]
Loss = Annotated[
    float, typer.Option(metavar="SHARE", help="Drop this fraction of packets, 0 to 1.")
]
Delay = Annotated[str, typer.Option(metavar="TIME", help="Delay each packet, like 50ms.")]
Duplicate = Annotated[
    float, typer.Option(metavar="SHARE", help="Duplicate this fraction of packets.")
]
Reorder = Annotated[float, typer.Option(metavar="SHARE", help="Reorder this fraction of packets.")]
Corrupt = Annotated[float, typer.Option(metavar="SHARE", help="Corrupt this fraction of packets.")]
DropAfter = Annotated[
    str | None, typer.Option(metavar="TIME", help="Cut the network after this time, like 3.2s.")
]
Seed = Annotated[int, typer.Option(metavar="N", help="Random seed of the network impairments.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimOptions:
    """The options of the simulated robot, as given on the command line."""

    robot: RobotName = ""
    like: Like = None
    udp: Udp = None
    webrtc: WebRtc = None
    signalling: Signalling = ""
    key: DeviceKey = None
    strict: Strict = False
    firmware: FirmwareName = ""
    slots: Slots = None
    polite: Polite = False
    quirk: QuirkNames = None
    serial: Serial = _DEFAULT_SERIAL
    dds: Dds = None
    domain: Domain = 0
    hands: Hands = ""
    a1: A1 = None
    dialect: DialectName = _DEFAULT_DIALECT
    hand: HandName = None
    fault: Faults = None
    store: StoreFile = None
    factory: Factory = False
    mode: Start = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkOptions:
    """The options of the network between the simulated robot and its clients."""

    loss: Loss = 0.0
    delay: Delay = "0"
    duplicate: Duplicate = 0.0
    reorder: Reorder = 0.0
    corrupt: Corrupt = 0.0
    drop_after: DropAfter = None
    seed: Seed = 0


@expand_option_classes
def sim(
    ctx: typer.Context, options: SimOptions, network: NetworkOptions, as_json: Json = False
) -> int:
    """Run a simulated robot for other programs.

    By default a G1; another one with --robot or --a1.

    Clients of the documented UDP frames can teach it; with --webrtc or --dds, also clients of a
    real robot. All clients share one robot. Ctrl-C ends it.
    """
    if _LIST_QUIRKS in (options.quirk or ()):
        return _print_quirks(as_json)
    from rote.sim.quirks import quirks_named

    impairment = _make_impairment(network)
    profile = None if options.like is None else _read_profile(options.like)
    if profile is not None:
        options = _add_profile(options, profile)
    build, family = _find_build(options.robot, options.a1)
    if _A1_WIRE in family.wires:
        return _simulate_a1(ctx, options, build, family, network.seed, impairment, as_json)
    _refuse_options_without_effect(ctx, family, options)
    hands = parse_hands(options.hands, build, options.dds)
    if not (options.udp or options.webrtc or options.dds):
        options = replace(options, udp=_DEFAULT_UDP)
    dds = _make_dds_options(options, hands, profile)
    quirks = quirks_named(options.quirk or ())
    _check_quirks(quirks, options)
    _check_addresses(options, dds)
    robot = _create_robot(_RobotOptions(options, build, family, quirks, network.seed, profile))
    return run(_run_simulator(options, dds, robot, impairment, as_json))


def _simulate_a1(
    ctx: typer.Context,
    options: SimOptions,
    build: "Build",
    family: "Family",
    seed: int,
    impairment: "Impairment | None",
    as_json: bool,
) -> int:
    from rote.cli.a1.simulate import A1Options, simulate_a1

    refuse_unused_options(ctx, _NOT_A1_OPTIONS, f"with a {family.title}")
    parse_hands(options.hands, build, options.dds)  # only for its error: an A1 has no hands
    if options.quirk:
        raise BadRequestError(f"--quirk is not for a {family.title}", "Leave it out.")
    if options.udp or options.webrtc or options.dds:
        raise BadRequestError("--a1 cannot be combined with --udp, --webrtc or --dds")
    a1_options = A1Options(
        options.a1 or _LOOPBACK,
        options.dialect,
        options.mode or "stand",
        options.hand,
        tuple(options.fault or ()),
        seed,
    )
    return run(simulate_a1(a1_options, impairment, as_json))


def _refuse_options_without_effect(
    ctx: typer.Context, family: "Family", options: SimOptions
) -> None:
    """Raise an error for options without effect on this robot and on these wires."""
    _check_wires(family, {"webrtc": options.webrtc, "dds": options.dds})
    refuse_unused_options(ctx, {"dialect", "hand"}, f"with a {family.title}")
    if options.webrtc is None:
        # An empty --serial hides the robot, which without WebRTC no client discovers anyway.
        accepted = set() if options.serial else {"serial"}
        refuse_unused_options(ctx, _WEBRTC_OPTIONS - accepted, "without --webrtc")
    if options.dds is None:
        refuse_unused_options(ctx, {"domain"}, "without --dds")


def _make_dds_options(
    options: SimOptions, hands: "tuple[Hand, ...]", profile: "RobotProfile | None"
) -> DdsOptions | None:
    if options.dds is None:
        return None
    lowstate_hz = None if profile is None else profile.lowstate_hz
    return DdsOptions(options.dds, options.domain, hands, lowstate_hz)


def _find_build(robot: str, a1_address: str | None) -> "tuple[Build, Family]":
    """Return the build of --robot and its family, or the default for the requested wire.

    Raises an error that lists the known builds, or one for --a1 with a robot that is not an A1.
    """
    from rote.model.registry import build_named
    from rote.sim.columns import family_for

    build = build_named(robot or (_DEFAULT_ROBOT if a1_address is None else _A1_WIRE))
    family = family_for(build)
    if a1_address is not None and _A1_WIRE not in family.wires:
        raise BadRequestError(f"--a1 and --robot {robot} are different robots", "Leave out one.")
    return build, family


def _add_profile(options: SimOptions, profile: "RobotProfile") -> SimOptions:
    """Fill in the robot, wire and mode of a report where the command line names none."""
    if profile.wire == _A1_WIRE:
        dialect = profile.dialect if options.dialect == _DEFAULT_DIALECT else options.dialect
        mode = options.mode or profile.a1_start
        return replace(options, a1=options.a1 or _LOOPBACK, dialect=dialect, mode=mode)
    options = replace(options, robot=options.robot or profile.build.name)
    if options.udp or options.webrtc or options.dds:
        return options
    addresses = {profile.wire: _LOCAL_ADDRESSES.get(profile.wire)}
    return replace(options, webrtc=addresses.get("webrtc"), dds=addresses.get("dds"))


def _read_profile(path: Path) -> "RobotProfile":
    """Read the report of a trial; return the profile with which to imitate its robot."""
    from rote.sim.profile_from_report import profile_from_report
    from rote.trial.report import read_report

    return profile_from_report(read_report(path)["robot"])


def _check_wires(family: "Family", addresses: dict[str, str | None]) -> None:
    """Raise an error for a wire that has an address although the family does not use that wire."""
    for wire, address in addresses.items():
        if address is not None and wire not in family.wires:
            raise BadRequestError(
                f"--{wire} is not available for {family.title}",
                f"Leave out --{wire}, or use --udp.",
            )


def _check_addresses(options: SimOptions, dds: DdsOptions | None) -> None:
    """Raise an error for an impossible address, before the robot's store is created."""
    from rote.transport.address import host_and_port

    if options.udp is not None:
        host_and_port(options.udp)
    if options.webrtc is not None:
        _parse_host_and_port(options.webrtc)
    if dds is not None:
        check_dds_options(dds)


def _check_quirks(quirks: "Quirks", options: SimOptions) -> None:
    """Raise an error for a quirk that has no effect on the chosen wires."""
    wires = {wire for wire in ("udp", "webrtc", "dds") if getattr(options, wire) is not None}
    for quirk in quirks.chosen:
        if not wires.intersection(quirk.wires):
            needed = " or ".join(f"--{wire}" for wire in quirk.wires)
            raise BadRequestError(
                f"the quirk {quirk.name} changes nothing over {' and '.join(sorted(wires))}",
                f"Add {needed}, or leave it out.",
            )


def _print_quirks(as_json: bool) -> int:
    from rote.sim.quirks import GROUPS, QUIRKS

    if as_json:
        for quirk in QUIRKS.values():
            facts = {"name": quirk.name, "wires": quirk.wires, "what": quirk.what}
            print_json({"event": "quirk", "group": quirk.group, **facts})
        return 0
    width = max(map(len, QUIRKS))
    for group, title in GROUPS.items():
        print(f"{title}:")
        for quirk in QUIRKS.values():
            if quirk.group == group:
                description = quirk.what.replace("`", "")  # the texts are Markdown
                print(f"  {quirk.name:{width}}  {description} ({', '.join(quirk.wires)})")
    return 0


def _make_impairment(options: NetworkOptions) -> "Impairment | None":
    """Return the network impairment; None if the options request none."""
    from rote.transport.impair import Impairment, parse_seconds

    no_impairment = Impairment(seed=options.seed)
    impairment = Impairment(
        loss=options.loss,
        delay_s=parse_seconds(options.delay),
        duplicate=options.duplicate,
        reorder=options.reorder,
        corrupt=options.corrupt,
        cut_after_s=None if options.drop_after is None else parse_seconds(options.drop_after),
        seed=options.seed,
    )
    return None if impairment == no_impairment else impairment


class _RobotOptions(NamedTuple):
    """Which robot to simulate, and what its options mean."""

    options: SimOptions
    build: "Build"
    family: "Family"
    quirks: "Quirks"
    seed: int
    profile: "RobotProfile | None"
    """The real robot to imitate."""


def _create_robot(chosen: _RobotOptions) -> "tuple[World, Store]":
    """Create the simulated robot and its store of actions.

    Raises `BadRequestError` for impossible options, before it creates a file.
    """
    from rote.platform.paths import served_store_file
    from rote.sim.health import parse_fault
    from rote.sim.presets import add_factory_actions
    from rote.sim.store import Store, check_store_path, open_default_store
    from rote.sim.world import World

    options = chosen.options
    mode, firmware = _select_mode(chosen), _select_firmware(chosen)
    faults = [parse_fault(fault, chosen.build) for fault in options.fault or ()]
    if options.store is None:
        store = open_default_store(served_store_file(chosen.build.family))
    else:
        store = Store(check_store_path(options.store))
    if options.factory:
        add_factory_actions(store, chosen.build)
    world = World(
        store,
        build=chosen.build,
        mode=mode,
        seed=chosen.seed,
        firmware=firmware,
        polite=options.polite,
    )
    for planned_fault in faults:
        world.health.plan_fault(planned_fault)
    return world, store


def _select_mode(chosen: _RobotOptions) -> int | None:
    """Return the id of the requested start mode; None for the firmware's default."""
    mode = chosen.options.mode
    if not mode:
        return None if chosen.profile is None else chosen.profile.mode
    mode_ids = {mode.name.replace(" ", "-"): mode.id for mode in chosen.family.modes.all}
    if mode not in mode_ids:
        known = ", ".join(mode_ids)
        raise BadRequestError(f"unknown mode {mode!r}", f"Use: {known}.")
    return mode_ids[mode]


def _select_firmware(chosen: _RobotOptions) -> "Firmware":
    """Return the requested firmware with all quirks, and with --slots if given.

    Without --firmware it is that of the profile, or else the usual one of the build.
    """
    from rote.sim.firmware import firmware_named, firmware_of
    from rote.sim.quirks import Quirks
    from rote.wire.services.lowstate import MAX_MOTORS

    build, slots = chosen.build, chosen.options.slots
    imitated = None if chosen.profile is None else chosen.profile.firmware
    if chosen.options.firmware:
        firmware = firmware_named(chosen.options.firmware, build)
    else:
        firmware = imitated or firmware_of(build)
    imitated_quirks = () if imitated is None else imitated.quirks.chosen
    firmware = replace(firmware, quirks=Quirks([*chosen.quirks.chosen, *imitated_quirks]))
    if slots is None:
        return firmware
    min_slots = max(build.slots) + 1
    if not min_slots <= slots <= MAX_MOTORS:
        raise BadRequestError(
            f"{build.name} cannot report {slots} motors",
            f"Its last one is in slot {min_slots - 1}; use {min_slots} to {MAX_MOTORS}.",
        )
    return replace(firmware, slots=slots)


async def _run_simulator(
    options: SimOptions,
    dds: DdsOptions | None,
    robot: "tuple[World, Store]",
    impairment: "Impairment | None",
    as_json: bool,
) -> None:
    from rote.sim.server import Simulator

    world, store = robot
    simulator = Simulator(world, impairment=impairment)
    try:
        addresses = await _open_wires(simulator, options, dds)
        ended = make_end_event()
        if as_json:
            build = world.build.name
            print_json({"event": "ready", **addresses, "build": build, "store": store.path})
        else:
            _print_introduction(addresses, world, impairment)
        await show_notices(world.notices, as_json, ended)
        if not as_json:
            store_note = "; its store is kept" if store.is_kept else ", and its actions with it"
            print(f"\nThe simulated robot has ended{store_note}.")
    finally:
        await simulator.close()
        store.close()


async def _open_wires(
    simulator: "Simulator", options: SimOptions, dds: DdsOptions | None
) -> dict[str, Any]:
    """Open every chosen wire; return what clients need to connect: URLs, key, serial and hands."""
    from rote.transport.address import host_and_port
    from rote.wire.webrtc.signalling import parse_device_key

    addresses: dict[str, Any] = {"urls": []}
    if options.udp is not None:
        addresses["urls"].append(await simulator.serve_udp(*host_and_port(options.udp)))
    if options.webrtc is not None:
        endpoint = await simulator.serve_webrtc(
            *_parse_host_and_port(options.webrtc),
            signalling=options.signalling,
            key=None if options.key is None else parse_device_key(options.key),
            strict=options.strict,
        )
        addresses["urls"].append(endpoint.url)
        if endpoint.needs_key:
            addresses["key"] = endpoint.key
        if options.serial:
            await simulator.serve_discovery(options.serial, endpoint.host)
            addresses["serial"] = options.serial
    if dds is not None:
        addresses["urls"].append(await serve_dds(simulator, dds))
        if dds.hands:
            addresses["hands"] = [f"{hand.side} {hand.name}" for hand in dds.hands]
    addresses["url"] = addresses["urls"][0]
    return addresses


def _parse_host_and_port(text: str) -> tuple[str, int | None]:
    """Parse HOST or HOST:PORT; the port is None if it is missing or 0, for the default ports."""
    from rote.transport.address import host_and_port

    host, port = host_and_port(text, 0)
    return host, port or None


def _print_introduction(
    addresses: dict[str, Any], world: "World", impairment: "Impairment | None"
) -> None:
    from rote.transport.impair import describe_impairment

    urls = " and ".join(addresses["urls"])
    store = world.store.path if world.store.is_kept else "in memory only"
    print(
        f"A simulated {world.build.name} ({world.build.title}) listens at {urls}; "
        f"its store is {store}."
    )
    if "hands" in addresses:
        print(f"Attached hands, on DDS: {', '.join(addresses['hands'])}.")
    if "serial" in addresses:
        print(f"Discovery finds it as {addresses['serial']}.")
    key = ""
    if "key" in addresses:
        key = f" --key {addresses['key']}"
    if impairment is not None:
        print(f"The network: {describe_impairment(impairment)}.")
    for quirk in world.firmware.quirks.chosen:
        print(f"A quirk: {quirk.what.replace('`', '')} ({quirk.name}).")
    print(
        f"Try: rote teach wave --hand wave --robot {shlex.quote(addresses['url'])}{key}\n"
        "Ctrl-C ends it.",
        flush=True,
    )


def make_end_event() -> asyncio.Event:
    """Return an event that Ctrl-C and SIGTERM set.

    Call it before you announce that the robot is ready: the signals may come at once.
    """
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        on_signal(loop, number, ended.set)
    return ended


async def show_notices(notices: "list[SimNotice]", as_json: bool, ended: asyncio.Event) -> None:
    """Print the robot's notices, and clear them, until the process is asked to end."""
    while True:
        for notice in notices:
            if as_json:
                print_json({"event": "notice", "time_s": notice.time_s, "message": notice.message})
            else:
                print(f"{notice.time_s:9.2f} s  {notice.message}", flush=True)
        notices.clear()
        if ended.is_set():  # checked after the last notices were printed
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), _NOTICE_INTERVAL_S)
