"""rote robots: every family and build that rote knows, what works with it, on what evidence."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import Json, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from rote.model.family import Build, Family, Grade, Hand

_COLUMNS = ("family", "build", "joints", "what works", "on what evidence")


def robots(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Show this build, or the usual one of this family."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List supported robots, what works with each, and on what evidence."""
    from rote.cli import output
    from rote.model import registry

    if name is None:
        known = [(family, build) for family in registry.families() for build in family.builds]
    else:
        build = registry.build_named(name)
        known = [(family, build) for family in [registry.family_of(build)] if family is not None]
    if as_json:
        print_json({"robots": [_document(family, build) for family, build in known]})
    elif name is None:
        _print_all(output.console(), known)
    else:
        for family, build in known:
            _print_one(output.console(), family, build)


def _document(family: "Family", build: "Build") -> dict[str, object]:
    return {
        "family": family.name,
        "build": build.name,
        "joints": len(build.joints),
        "works": {ability: grade.value for ability, grade in family.works.items()},
        "evidence": {
            group: {"grade": evidence.grade.value, "source": evidence.source}
            for group, evidence in family.evidence.items()
        },
    }


def _print_all(out: "Console", known: "Iterable[tuple[Family, Build]]") -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in _COLUMNS:
        table.add_column(column, justify="right" if column == "joints" else "left")
    above = ""
    for family, build in known:
        # On a terminal a family shows once what all its builds share; a script gets complete rows.
        is_repeated = out.is_terminal and family.name == above
        grades = {group: evidence.grade for group, evidence in family.evidence.items()}
        facts = ("", "") if is_repeated else (_by_grade(family.works), _by_grade(grades))
        table.add_row(family.name, build.name, str(len(build.joints)), *facts)
        above = family.name
    out.print(table)
    out.print("One of them with its joints and sources: rote robots NAME", style="dim")


def _by_grade(grades: "Mapping[str, Grade]") -> str:
    """Return what has each grade, for example `list, teach (seen); rename (reported)`."""
    together: dict[str, list[str]] = {}
    for what, grade in grades.items():
        together.setdefault(grade.value, []).append(what)
    return "; ".join(f"{', '.join(what)} ({grade})" for grade, what in together.items())


def _print_one(out: "Console", family: "Family", build: "Build") -> None:
    from rote.cli import output

    out.print(f"{build.name}: {build.title}. Family {family.name}, {family.title}.")
    out.print(_recognition_text(family, build))
    out.print()
    titles = ("joint", "slot", "lower rad", "upper rad", "rad/s", "N.m", "use")
    rows = [
        (
            joint.name,
            str(joint.slot),
            f"{joint.lower_rad:.3f}",
            f"{joint.upper_rad:.3f}",
            f"{joint.velocity_rad_s:g}",
            f"{joint.effort_nm:g}",
            _use(build, joint.name),
        )
        for joint in build.joints
    ]
    output.joints(out, titles, rows)
    out.print()
    for line in (*map(_hand, family.hands), *_modes(family), _stream(build)):
        out.print(line)
    out.print(f"Works: {_by_grade(family.works) or 'nothing is known'}.")
    for group, evidence in family.evidence.items():
        out.print(f"Evidence, {group}: {evidence.grade.value}; {evidence.source}.", style="dim")


def _recognition_text(family: "Family", build: "Build") -> str:
    """Return how rote recognises a robot of this build."""
    by = []
    if build.machines:
        by.append(f"mode_machine {', '.join(map(str, build.machines))}")
    if family.modes.distinctive:
        by.append(f"mode {', '.join(map(str, sorted(family.modes.distinctive)))} (the family)")
    return (
        f"Recognised by {' or '.join(by) or 'nothing that is known'}; else by ?build={build.name}."
    )


def _use(build: "Build", joint: str) -> str:
    uses = {"taught": build.taught, "streamed": build.streamed}
    return ", ".join(use for use, joints in uses.items() if joint in joints)


def _hand(hand: "Hand") -> str:
    joints = ", ".join(hand.names)
    return f"Hand {hand.name}, {hand.side}, {hand.state_topic} and {hand.command_topic}: {joints}."


def _modes(family: "Family") -> "Iterable[str]":
    for mode in family.modes.all:
        able = " (teach, play)" if mode.balanced else ""
        yield f"Mode {mode.id}, {mode.name}: {mode.label}{able}."


def _stream(build: "Build") -> str:
    if build.stream is None:
        return f"Nothing is streamed to it: {build.no_stream or 'the format is not known'}."
    weight = build.stream.weight_slot
    return (
        f"Streamed by {build.stream.topic or 'wires of our own'}"
        f"{'' if weight is None else f', the weight at slot {weight}'}."
    )
