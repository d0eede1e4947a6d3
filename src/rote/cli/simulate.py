"""rote sim: a simulated robot on a real port, with a bad network on request."""

import asyncio
import shlex
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rote.cli.options import Json, choice, print_json, refuse_idle, run
from rote.cli.simulate_dds import Dds, DdsOptions, Domain, Hands, check_dds, hands_of, serve_dds
from rote.errors import BadRequestError
from rote.platform.system import on_signal

if TYPE_CHECKING:
    from rote.model.family import Build, Family
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
_A1_WIRE, _A1_HOST = "a1", "127.0.0.1"
_LOCAL, _DIALECT = "127.0.0.1", "3.3.4"
_SERIAL = "E2100SIMULATED01"
_LIST = "list"
_OF_WEBRTC = {"signalling", "key", "strict", "slots", "serial"}
_OF_OTHERS = _OF_WEBRTC | {"firmware", "polite", "domain", "store", "factory"}
"""The options that are for WebRTC only, and for robots other than an A1 only."""


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
        help="Be like the robot of this report.json of `rote trial`: its firmware, rates, shapes, "
        "delays and refusals. Options beside it take precedence.",
    ),
]
Slots = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="How many motors its states contain over WebRTC; by default 35, as real "
        "firmware does.",
    ),
]
Udp = Annotated[
    str | None,
    typer.Option(
        "--udp",
        metavar="HOST:PORT",
        help=f"Speak the documented frames there; {_DEFAULT_UDP} unless another wire is named.",
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
    bool, typer.Option("--strict", help="Parse offers exactly like the robot's own stack.")
]
FirmwareName = Annotated[
    str, typer.Option(metavar="VERSION", help="For a G1: 1.4.7 or 1.5.3; by default 1.4.7.")
]
Polite = Annotated[
    bool,
    typer.Option(
        "--polite",
        help="Begin every play at once and be ready right after a teaching, which real robots are "
        "not.",
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
        help="Be an A1 or Go1 at this address instead, on the ports such a robot has; "
        "HOST:0 takes free ones.",
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
        help="Somebody moves the A1's legs whenever they are soft: paw, stretch or wag; "
        "paw:6s takes six seconds.",
    ),
]
Faults = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FAULT",
        help="low-battery, hot-motor:16 or SOURCE:CODE like 600:0x8, of an A1 silent, clock:-2s or "
        "nan:imu; @5 after it is when, in seconds. May be repeated.",
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
        help="Mode to begin in; else the one in which the firmware stands. A G1's: walk, "
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


def sim(
    ctx: typer.Context,
    robot: RobotName = "",
    like: Like = None,
    udp: Udp = None,
    webrtc: WebRtc = None,
    signalling: Signalling = "",
    key: DeviceKey = None,
    strict: Strict = False,
    firmware: FirmwareName = "",
    slots: Slots = None,
    polite: Polite = False,
    quirk: QuirkNames = None,
    serial: Serial = _SERIAL,
    dds: Dds = None,
    domain: Domain = 0,
    hands: Hands = "",
    a1: A1 = None,
    dialect: DialectName = _DIALECT,
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
    """Run a simulated robot for other programs.

    By default a G1; another one with --robot or --a1.

    Any client of the documented UDP frames can teach it, and with --webrtc or --dds any client of a
    real one: all see the same robot. Ctrl-C ends it.
    """
    if _LIST in (quirk or ()):
        return _show_quirks(as_json)
    from rote.sim.quirks import quirks_named

    network = _network((loss, duplicate, reorder, corrupt), delay, drop_after, seed)
    profile = None if like is None else _read_profile(like)
    if profile is not None:
        where = _Where(robot, udp, webrtc, dds, a1, dialect, mode)
        robot, udp, webrtc, dds, a1, dialect, mode = _options_from_profile(where, profile)
    build, family = _find_build(robot, a1)
    if _A1_WIRE in family.wires:
        refuse_idle(ctx, _OF_OTHERS, f"with a {family.title}")
        from rote.cli.a1.simulate import A1Options, simulate_a1

        hands_of(hands, build, dds)
        if udp or webrtc or dds:
            raise BadRequestError("--a1 cannot be combined with --udp, --webrtc or --dds")
        if quirk:
            raise BadRequestError(f"--quirk is not for a {family.title}", "Leave it out.")
        legs = A1Options(a1 or _A1_HOST, dialect, mode or "stand", hand, tuple(fault or ()), seed)
        return run(simulate_a1(legs, network, as_json))
    _check_wires(family, {"webrtc": webrtc, "dds": dds})
    refuse_idle(ctx, {"dialect", "hand"}, f"with a {family.title}")
    if webrtc is None:
        # No serial is what a robot without WebRTC has anyway.
        refuse_idle(ctx, _OF_WEBRTC - ({"serial"} if not serial else set()), "without --webrtc")
    if dds is None:
        refuse_idle(ctx, {"domain"}, "without --dds")
    worn = hands_of(hands, build, dds)
    options = _SimOptions(
        udp=udp if udp or webrtc or dds else _DEFAULT_UDP,
        webrtc=webrtc,
        dds=None if dds is None else DdsOptions(dds, domain, worn, _dds_hz(profile)),
        signalling=signalling,
        key=key,
        strict=strict,
        serial=serial,
        impairment=network,
        as_json=as_json,
    )
    wires = {"udp": options.udp, "webrtc": options.webrtc, "dds": options.dds}
    quirks = quirks_named(quirk or ())
    _check_quirks(quirks, {wire for wire, where in wires.items() if where is not None})
    wanted = _RobotOptions(
        build=build,
        family=family,
        store=store,
        factory=factory,
        mode=mode,
        firmware=firmware,
        slots=slots,
        polite=polite,
        quirks=quirks,
        seed=seed,
        faults=tuple(fault or ()),
        like=profile,
    )
    _check_addresses(options)
    return run(_sim(options, _create_robot(wanted)))


def _find_build(robot: str, a1: str | None) -> "tuple[Build, Family]":
    """Return the requested build, or raise an error that lists the known ones."""
    from rote.model.registry import build_named
    from rote.sim.columns import family_for

    build = build_named(robot or (_DEFAULT_ROBOT if a1 is None else _A1_WIRE))
    family = family_for(build)
    if a1 is not None and _A1_WIRE not in family.wires:
        raise BadRequestError(f"--a1 and --robot {robot} are different robots", "Leave out one.")
    return build, family


class _Where(NamedTuple):
    """Which robot, and on which wires, as given on the command line."""

    robot: str
    udp: str | None
    webrtc: str | None
    dds: str | None
    a1: str | None
    dialect: str
    mode: str


def _options_from_profile(given: _Where, like: "RobotProfile") -> _Where:
    """Return what was given, completed by the report: its robot, and its wire if none is named."""
    if like.wire == _A1_WIRE:
        dialect = like.dialect if given.dialect == _DIALECT else given.dialect
        mode = given.mode or like.a1_start
        return given._replace(a1=given.a1 or _LOCAL, dialect=dialect, mode=mode)
    robot = given.robot or like.build.name
    if given.udp or given.webrtc or given.dds:
        return given._replace(robot=robot)
    wires = {"webrtc": {"webrtc": _LOCAL}, "dds": {"dds": "lo"}}.get(like.wire, {})
    return given._replace(robot=robot, **wires)


def _read_profile(path: Path) -> "RobotProfile":
    """Read the report of a trial; return what makes a simulated robot like its robot."""
    from rote.sim.profile_from_report import profile_from_report
    from rote.trial.report import read_report

    return profile_from_report(read_report(path)["robot"])


def _dds_hz(profile: "RobotProfile | None") -> float | None:
    return None if profile is None else profile.lowstate_hz


def _check_wires(family: "Family", wished: dict[str, str | None]) -> None:
    for wire, where in wished.items():
        if where is not None and wire not in family.wires:
            raise BadRequestError(
                f"a {family.title} is not reached by --{wire}", "Leave it out, or use --udp."
            )


def _check_addresses(options: "_SimOptions") -> None:
    """Raise an error for an impossible address, before the robot's store is created."""
    from rote.transport.udp.link import host_and_port

    if options.udp is not None:
        host_and_port(options.udp)
    if options.webrtc is not None:
        _host_and_maybe_port(options.webrtc)
    if options.dds is not None:
        check_dds(options.dds)


def _check_quirks(quirks: "Quirks", wires: set[str]) -> None:
    """Raise an error for a quirk that has no effect on the chosen wires."""
    for quirk in quirks.chosen:
        if not wires.intersection(quirk.wires):
            options = " or ".join(f"--{wire}" for wire in quirk.wires)
            raise BadRequestError(
                f"the quirk {quirk.name} changes nothing over {' and '.join(sorted(wires))}",
                f"Add {options}, or leave it out.",
            )


def _show_quirks(as_json: bool) -> int:
    from rote.sim.quirks import GROUPS, QUIRKS

    if as_json:
        for quirk in QUIRKS.values():
            shown = {"name": quirk.name, "wires": quirk.wires, "what": quirk.what}
            print_json({"event": "quirk", "group": quirk.group, **shown})
        return 0
    width = max(map(len, QUIRKS))
    for group, title in GROUPS.items():
        print(f"{title}:")
        for quirk in QUIRKS.values():
            if quirk.group == group:
                what = quirk.what.replace("`", "")
                print(f"  {quirk.name:{width}}  {what} ({', '.join(quirk.wires)})")
    return 0


def _network(
    shares: tuple[float, float, float, float], delay: str, drop_after: str | None, seed: int
) -> "Impairment | None":
    """Return the network impairment; None if there is none."""
    from rote.sim.network_options import seconds
    from rote.transport.impair import Impairment

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
class _SimOptions:
    """How clients connect to the robot."""

    udp: str | None
    webrtc: str | None
    dds: DdsOptions | None
    signalling: str
    key: str | None
    strict: bool
    serial: str
    impairment: "Impairment | None"
    as_json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _RobotOptions:
    """Which robot to simulate, as given on the command line."""

    build: "Build"
    family: "Family"
    store: str | None
    factory: bool
    mode: str
    firmware: str
    slots: int | None
    polite: bool
    quirks: "Quirks"
    seed: int
    faults: tuple[str, ...]
    like: "RobotProfile | None" = None


def _create_robot(options: _RobotOptions) -> "tuple[World, Store]":
    """Create the robot, or raise why it is not possible."""
    from rote.platform.paths import served_store_file
    from rote.sim.health import parse_fault
    from rote.sim.presets import add_factory_actions
    from rote.sim.store import Store, named_store
    from rote.sim.world import World

    mode, firmware = _mode(options), _firmware(options)
    planned = [parse_fault(fault, options.build) for fault in options.faults]
    named = None if options.store is None else named_store(options.store)
    store = Store(named or served_store_file(options.build.family))
    if options.factory:
        add_factory_actions(store, options.build)
    world = World(
        store,
        build=options.build,
        mode=mode,
        seed=options.seed,
        firmware=firmware,
        polite=options.polite,
    )
    for each in planned:
        world.health.plan(each)
    return world, store


def _mode(options: _RobotOptions) -> int | None:
    modes = {mode.name.replace(" ", "-"): mode.id for mode in options.family.modes.all}
    if not options.mode:
        return None if options.like is None else options.like.mode
    if options.mode not in modes:
        known = ", ".join(modes)
        raise BadRequestError(f"there is no mode {options.mode!r}", f"Use: {known}.")
    return modes[options.mode]


def _firmware(options: _RobotOptions) -> "Firmware":
    from rote.sim.firmware import firmware_named, firmware_of
    from rote.sim.quirks import Quirks
    from rote.wire.services.lowstate import MAX_MOTORS

    build = options.build
    like = options.like
    if options.firmware:
        firmware = firmware_named(options.firmware, build)
    else:
        firmware = firmware_of(build) if like is None else like.firmware
    chosen = [*options.quirks.chosen, *(() if like is None else like.firmware.quirks.chosen)]
    firmware = replace(firmware, quirks=Quirks(chosen))
    if options.slots is None:
        return firmware
    least = max(build.slots) + 1
    if not least <= options.slots <= MAX_MOTORS:
        raise BadRequestError(
            f"{build.name} cannot report {options.slots} motors",
            f"Its last one is in slot {least - 1}; use {least} to {MAX_MOTORS}.",
        )
    return replace(firmware, slots=options.slots)


async def _sim(options: _SimOptions, robot: "tuple[World, Store]") -> None:
    from rote.sim.server import Simulator

    world, store = robot
    simulator = Simulator(world, impairment=options.impairment)
    try:
        ready = await _serve(simulator, options)
        ended = end_event()
        if options.as_json:
            build = world.build.name
            print_json({"event": "ready", **ready, "build": build, "store": store.path})
        else:
            _introduce(ready, world, options.impairment)
        await show_notices(world.notices, options.as_json, ended)
        if not options.as_json:
            print("\nThe simulated robot has ended; its store is kept.")
    finally:
        await simulator.close()
        store.close()


async def _serve(simulator: "Simulator", options: _SimOptions) -> dict[str, Any]:
    """Open every chosen wire; return what a person or script needs to know."""
    from rote.transport.udp.link import host_and_port
    from rote.wire.webrtc.signalling import parse_device_key

    ready: dict[str, Any] = {"urls": []}
    if options.udp is not None:
        ready["urls"].append(await simulator.serve_udp(*host_and_port(options.udp)))
    if options.webrtc is not None:
        door = await simulator.serve_webrtc(
            *_host_and_maybe_port(options.webrtc),
            signalling=options.signalling,
            key=None if options.key is None else parse_device_key(options.key),
            strict=options.strict,
        )
        ready["urls"].append(door.url)
        if door.needs_key:
            ready["key"] = door.key
        if options.serial:
            await simulator.serve_discovery(options.serial, door.host)
            ready["serial"] = options.serial
    if options.dds is not None:
        ready["urls"].append(await serve_dds(simulator, options.dds))
        if options.dds.hands:
            ready["hands"] = [f"{hand.side} {hand.name}" for hand in options.dds.hands]
    ready["url"] = ready["urls"][0]
    return ready


def _host_and_maybe_port(text: str) -> tuple[str, int | None]:
    from rote.transport.udp.link import host_and_port

    host, port = host_and_port(text, 0)
    return host, port or None


def _introduce(ready: dict[str, Any], world: "World", bad: "Impairment | None") -> None:
    from rote.sim.network_options import describe

    urls = " and ".join(ready["urls"])
    print(
        f"A simulated {world.build.name} ({world.build.title}) listens at {urls}; "
        f"its store is {world.store.path}."
    )
    if "hands" in ready:
        print(f"Attached hands, on DDS: {', '.join(ready['hands'])}.")
    if "serial" in ready:
        print(f"Discovery finds it as {ready['serial']}.")
    key = ""
    if "key" in ready:
        key = f" --key {ready['key']}"
    if bad is not None:
        print(f"The network: {describe(bad)}.")
    for quirk in world.firmware.quirks.chosen:
        print(f"A quirk: {quirk.what.replace('`', '')} ({quirk.name}).")
    print(
        f"Try: rote teach wave --hand wave --robot {shlex.quote(ready['url'])}{key}\n"
        "Ctrl-C ends it.",
        flush=True,
    )


def end_event() -> asyncio.Event:
    """Return an event that Ctrl-C and SIGTERM set. Call it before announcing that the robot is
    ready: the signals may come at once.
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
        if ended.is_set():  # after the last of them
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), 0.1)
