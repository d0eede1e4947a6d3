"""rote doctor: what is reachable, what is not, and why, in words."""

from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import Json, Key, print_json, run

if TYPE_CHECKING:
    from rote.robot.doctor import Examination

Asked = Annotated[
    str | None,
    typer.Option(
        "--robot",
        envvar="ROTE_ROBOT",
        metavar="URL",
        help="Look at this robot; without it, at this computer and who is near.",
    ),
]


def doctor(robot: Asked = None, key: Key = None, as_json: Json = False) -> int:
    """Find out what is reachable, and say what is wrong: software, network, robot."""
    return run(_doctor(robot, key, as_json))


async def _doctor(url: str | None, key: str | None, as_json: bool) -> int:
    from rote.robot import doctor as looks

    scheme = (url or "").partition(":")[0]
    seen = looks.look_at_software(scheme)
    seen.add(looks.look_at_network(url or ""))
    if url is None:
        seen.add(await _who_is_near())
    elif seen.well:
        seen.add(await _reach(url, key))
    _show(seen, as_json)
    return 0 if seen.well else 1


async def _who_is_near() -> "Examination":
    """Look for robots: those that answer a search, and on every interface those on DDS."""
    from rote.errors import RoteError
    from rote.robot.doctor import look_at_dds, look_for_robots
    from rote.transport.surroundings import installed, interfaces

    near = await look_for_robots()
    near.facts["near"] = []
    if not installed("cyclonedds"):
        return near
    for interface in interfaces():
        if interface.usable:
            try:
                seen = await look_at_dds(f"dds://{interface.name}")
            except RoteError:
                continue
            near.facts["near"].append(seen.facts["dds"])
            near.findings += seen.findings
    return near


async def _reach(url: str, key: str | None) -> "Examination":
    """Look at one robot, as far as it lets us."""
    from rote.connection import connect
    from rote.errors import RoteError
    from rote.robot.doctor import Examination, from_error, look_at_dds, look_at_robot

    seen = Examination({"url": url})
    try:
        if url.startswith("dds:"):
            seen.add(await look_at_dds(url))
        wanted = key if url.startswith("webrtc:") else None
        async with connect(url, key=wanted, reconnect=False) as robot:
            seen.add(await look_at_robot(robot))
    except RoteError as error:
        seen.findings.append(from_error(error))
    return seen


def _show(seen: "Examination", as_json: bool) -> None:
    if as_json:
        findings = [
            {"severity": f.severity.value, "words": f.words, "remedy": f.remedy}
            for f in seen.findings
        ]
        print_json({"ok": seen.well, **seen.facts, "findings": findings})
        return
    for name, fact in seen.facts.items():
        print(f"{name:12} {_in_words(fact)}")
    for finding in seen.findings:
        print(f"{finding.severity.value:12} {finding.words}")
        if finding.remedy:
            print(f"{'':12} {finding.remedy}")
    print("Nothing stands in the way." if seen.well else "See what is marked as an error.")


def _in_words(fact: object) -> str:
    if isinstance(fact, list):
        return "; ".join(map(_in_words, fact)) or "none"
    if isinstance(fact, dict):
        return ", ".join(f"{key} {_in_words(value)}" for key, value in fact.items())
    if fact is None or isinstance(fact, bool):
        return "none" if fact is None else "yes" if fact else "no"
    return str(fact)
