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
    refuse_idle,
    run,
)
from rote.cli.wording import finding_json, worded

if TYPE_CHECKING:
    from rote.robot.doctor import Examination

Asked = Annotated[
    str | None,
    typer.Option(
        "--robot",
        envvar="ROTE_ROBOT",
        metavar="URL",
        help="Examine this robot; by default this computer and its network.",
    ),
]


_NEAR_S = 1.0


def doctor(
    ctx: typer.Context,
    robot: Asked = None,
    key: Key = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Diagnose software, network and robot."""
    if robot is None:
        refuse_idle(ctx, {"key", "timeout"}, "without --robot")
        return run(_doctor(None, as_json))
    return run(_doctor(RobotChoice(robot, key, None, timeout), as_json))


async def _doctor(target: RobotChoice | None, as_json: bool) -> int:
    from rote.cli import output
    from rote.robot import doctor as looks

    url = None if target is None else target.url
    scheme = (url or "").partition(":")[0]
    seen = looks.check_software(scheme)
    seen.add(looks.check_network(url or ""))
    with output.waiting("looking for robots" if url is None else f"looking at {url}"):
        if url is None:
            seen.add(await _who_is_near())
        elif seen.well and target is not None:
            seen.add(await _examine_robot(target))
    _show(seen, as_json)
    return 0 if seen.well else 1


async def _who_is_near() -> "Examination":
    """Find robots: by discovery, and by DDS on every interface."""
    import asyncio

    from rote.robot.doctor import find_robots

    searching = asyncio.ensure_future(find_robots())
    try:
        spoken = await _who_speaks_dds()
        near = await searching
    finally:
        searching.cancel()
    near.add(spoken)
    return near


async def _who_speaks_dds() -> "Examination":
    from rote.errors import RoteError
    from rote.findings import Severity
    from rote.platform.check import installed, interfaces
    from rote.robot.doctor import Examination, check_dds

    near = Examination({"near": []})
    for interface in interfaces() if installed("cyclonedds") else ():
        if interface.usable:
            try:
                seen = await check_dds(f"dds://{interface.name}", _NEAR_S)
            except RoteError:
                continue
            near.facts["near"].append(seen.facts["dds"])
            near.findings += [f for f in seen.findings if f.severity is not Severity.NOTE]
    return near


async def _examine_robot(target: RobotChoice) -> "Examination":
    """Examine one robot, as far as it allows."""
    from rote.connection import connect
    from rote.errors import RoteError
    from rote.robot.doctor import Examination, check_connected_robot, check_dds, from_error
    from rote.transport.wires import wire_of

    url = target.url
    seen = Examination({"url": url})
    key = target.key_for()
    try:
        if wire_of(url).is_bus:
            seen.add(await check_dds(url))
        async with connect(
            url, timeout=target.timeout_s, key=key, reconnect=False, ability="examine"
        ) as robot:
            seen.add(await check_connected_robot(robot))
    except RoteError as error:
        seen.findings.append(from_error(error))
    return seen


# ---- for people ---------------------------------------------------------------------------------


def _show(seen: "Examination", as_json: bool) -> None:
    if as_json:
        findings = [finding_json(finding) for finding in seen.findings]
        print_json({"ok": seen.well, **seen.facts, "findings": findings})
        return
    for name, fact in seen.facts.items():
        message = _WORDS.get(name, _fact_text)(fact)
        if message:
            print(f"{name.partition('_')[0]:12} {message}")
    for finding in seen.findings:
        print(f"{finding.severity.value:12} {worded(finding.message)}")
        if finding.remedy:
            print(f"{'':12} {worded(finding.remedy)}")
    print(_verdict(seen))


def _verdict(seen: "Examination") -> str:
    if not seen.well:
        return "See what is marked as an error."
    if "url" in seen.facts or _found_text(seen.facts):
        return "Nothing stands in the way."
    return (
        "No robot was found. Switch it on and join its network, or name it: "
        "rote doctor --robot URL. To try without one: rote demo"
    )


def _found_text(facts: Mapping[str, Any]) -> bool:
    return bool(facts["found"]) or any(spoken["robot"] for spoken in facts["near"])


def _packages(versions: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name} {version or 'is missing'}" for name, version in versions.items())


def _interfaces(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the interfaces that can be used."""
    usable = [i for i in found if i["up"] and i["address"]]
    return ", ".join(f"{i['name']} {i['address']}" for i in usable) or "none with an address"


def _near(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the robots on DDS, by interface."""
    robots = [spoken["url"] for spoken in found if spoken["robot"]]
    return ", ".join(f"a G1 at {url}" for url in robots) or "no robot on DDS"


def _dds(spoken: Mapping[str, Any]) -> str:
    if not spoken["robot"]:
        return "no G1"
    return f"a G1 that offers {', '.join(spoken['services']) or 'nothing'}"


def _mode(mode: str | Mapping[str, Any]) -> str:
    return mode if isinstance(mode, str) else f"{mode['name']} ({mode['id']})"


def _fact_text(fact: object) -> str:
    """Return a fact as text; empty if nothing is known."""
    if isinstance(fact, Mapping):
        return ", ".join(f"{key} {value}" for key, value in fact.items())
    if isinstance(fact, list):
        return ", ".join(map(str, fact))
    return "" if fact is None else str(fact)


_WORDS: dict[str, Callable[[Any], str]] = {
    "packages": _packages,
    "interfaces": _interfaces,
    "firewall": lambda name: name or "none",
    "found": lambda robots: ", ".join(robots) or "no robot answered",
    "near": _near,
    "dds": _dds,
    "mode": _mode,
    "height_m": lambda height: "" if height is None else f"{height:.2f} m",
    "battery_percent": lambda percent: "" if percent is None else f"{percent} %",
    "hottest_c": lambda celsius: "" if celsius is None else f"motor {celsius} °C",
}
"""How a fact is printed, if it is not plain text."""
