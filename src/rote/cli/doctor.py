"""rote doctor: what can be reached, what cannot, and why."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.cli.options import (
    TIMEOUT_S,
    Json,
    Key,
    RobotChoice,
    Timeout,
    print_json,
    refuse_unused_options,
    run,
)
from rote.cli.wording import finding_json, worded

if TYPE_CHECKING:
    from rote.robot.doctor import Examination

_OptionalRobot = Annotated[
    str | None,
    typer.Option(
        "--robot",
        envvar="ROTE_ROBOT",
        metavar="URL",
        help="Examine this robot; by default this computer and its network.",
    ),
]


_DDS_SEARCH_S = 1.0


def doctor(
    ctx: typer.Context,
    robot: _OptionalRobot = None,
    key: Key = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Diagnose software, network and robot."""
    if robot is None:
        refuse_unused_options(ctx, {"key", "timeout"}, "without --robot")
        return run(_run_doctor(None, as_json))
    return run(_run_doctor(RobotChoice(robot, key, None, timeout), as_json))


async def _run_doctor(target: RobotChoice | None, as_json: bool) -> int:
    from rote.cli import output
    from rote.robot import doctor as checks

    url = None if target is None else target.url
    scheme = "" if url is None else url.partition(":")[0]
    examination = checks.check_software(scheme)
    examination.add(checks.check_network(url or ""))
    with output.show_spinner("looking for robots" if url is None else f"looking at {url}"):
        if url is None:
            examination.add(await _find_robots_nearby())
        elif examination.well and target is not None:
            examination.add(await _examine_robot(target))
    _print_examination(examination, as_json)
    return 0 if examination.well else 1


async def _find_robots_nearby() -> "Examination":
    """Find robots by discovery and, at the same time, by DDS on every interface."""
    import asyncio

    from rote.robot.doctor import find_robots

    discovery = asyncio.ensure_future(find_robots())
    try:
        dds_examination = await _find_robots_by_dds()
        examination = await discovery
    finally:
        discovery.cancel()
    examination.add(dds_examination)
    return examination


async def _find_robots_by_dds() -> "Examination":
    """Look for robots by DDS on every usable interface; skip those that cannot be checked."""
    from rote.errors import RoteError
    from rote.findings import Severity
    from rote.platform.check import find_installed_version, list_interfaces
    from rote.robot.doctor import Examination, check_dds

    nearby = Examination({"near": []})
    if not find_installed_version("cyclonedds"):
        return nearby
    for interface in list_interfaces():
        if not interface.usable:
            continue
        try:
            examination = await check_dds(f"dds://{interface.name}", _DDS_SEARCH_S)
        except RoteError:
            continue
        nearby.facts["near"].append(examination.facts["dds"])
        nearby.findings += [f for f in examination.findings if f.severity is not Severity.NOTE]
    return nearby


async def _examine_robot(target: RobotChoice) -> "Examination":
    """Connect to a robot and examine it; an error becomes a finding."""
    from rote.connection import connect
    from rote.errors import RoteError
    from rote.robot.doctor import Examination, check_connected_robot, check_dds, make_error_finding
    from rote.transport.wires import wire_of

    url = target.url
    examination = Examination({"url": url})
    key = target.choose_key()
    try:
        if wire_of(url).is_bus:
            examination.add(await check_dds(url))
        async with connect(
            url, timeout=target.timeout_s, key=key, reconnect=False, ability="examine"
        ) as robot:
            examination.add(await check_connected_robot(robot))
    except RoteError as error:
        examination.findings.append(make_error_finding(error))
    return examination


def _print_examination(examination: "Examination", as_json: bool) -> None:
    if as_json:
        findings = [finding_json(finding) for finding in examination.findings]
        print_json({"ok": examination.well, **examination.facts, "findings": findings})
        return
    for name, fact in examination.facts.items():
        message = _DESCRIBERS.get(name, _describe_fact)(fact)
        if message:
            title = name.partition("_")[0]  # without the unit, as in battery_percent
            print(f"{title:12} {message}")
    for finding in examination.findings:
        print(f"{finding.severity.value:12} {worded(finding.message)}")
        if finding.remedy:
            print(f"{'':12} {worded(finding.remedy)}")
    print(_describe_verdict(examination))


def _describe_verdict(examination: "Examination") -> str:
    if not examination.well:
        return "Fix what is marked as an error."
    if "url" in examination.facts or _has_robot(examination.facts):
        return "No problems found."
    return (
        "No robot was found. Switch it on and join its network, or name it: "
        "rote doctor --robot URL. To try without one: rote demo"
    )


def _has_robot(facts: Mapping[str, Any]) -> bool:
    return bool(facts["found"]) or any(participant["robot"] for participant in facts["near"])


def _describe_packages(versions: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name} {version or 'is missing'}" for name, version in versions.items())


def _describe_interfaces(interfaces: Sequence[Mapping[str, Any]]) -> str:
    """Return the names and addresses of the interfaces that are up and have an address."""
    usable = [interface for interface in interfaces if interface["up"] and interface["address"]]
    names = [f"{interface['name']} {interface['address']}" for interface in usable]
    return ", ".join(names) or "none with an address"


def _describe_near(participants: Sequence[Mapping[str, Any]]) -> str:
    """Return the URLs of the robots that were found on DDS."""
    robots = [participant["url"] for participant in participants if participant["robot"]]
    return ", ".join(f"a G1 at {url}" for url in robots) or "no robot on DDS"


def _describe_dds(participant: Mapping[str, Any]) -> str:
    if not participant["robot"]:
        return "no G1"
    return f"a G1 that offers {', '.join(participant['services']) or 'nothing'}"


def _describe_mode(mode: str | Mapping[str, Any]) -> str:
    return mode if isinstance(mode, str) else f"{mode['name']} ({mode['id']})"


def _describe_fact(fact: object) -> str:
    """Return a fact as text; empty if nothing is known."""
    if isinstance(fact, Mapping):
        return ", ".join(f"{key} {value}" for key, value in fact.items())
    if isinstance(fact, list):
        return ", ".join(map(str, fact))
    return "" if fact is None else str(fact)


_DESCRIBERS: dict[str, Callable[[Any], str]] = {
    "packages": _describe_packages,
    "interfaces": _describe_interfaces,
    "firewall": lambda name: name or "none",
    "found": lambda robots: ", ".join(robots) or "no robot answered",
    "near": _describe_near,
    "dds": _describe_dds,
    "mode": _describe_mode,
    "height_m": lambda height: "" if height is None else f"{height:.2f} m",
    "battery_percent": lambda percent: "" if percent is None else f"{percent} %",
    "hottest_c": lambda celsius: "" if celsius is None else f"motor {celsius} °C",
}
"""How a fact is printed, if it is not plain text."""
