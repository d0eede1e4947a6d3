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
        selected = [(family, build) for family in registry.families() for build in family.builds]
    else:
        named_build = registry.build_named(name)
        named_family = registry.family_of(named_build)
        selected = [] if named_family is None else [(named_family, named_build)]
    if as_json:
        print_json({"robots": [_build_document(family, build) for family, build in selected]})
    elif name is None:
        _print_overview(output.console(), selected)
    else:
        for family, build in selected:
            _print_details(output.console(), family, build)


def _build_document(family: "Family", build: "Build") -> dict[str, object]:
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


def _print_overview(out: "Console", robots: "Iterable[tuple[Family, Build]]") -> None:
    from rote.cli import output

    previous_family = ""
    rows = []
    for family, build in robots:
        works = _group_by_grade(family.works)
        grades = {group: evidence.grade for group, evidence in family.evidence.items()}
        evidence_text = _group_by_grade(grades)
        # On a terminal a family shows once what all its builds share; a script gets complete rows.
        if out.is_terminal and family.name == previous_family:
            works = evidence_text = ""
        rows.append((family.name, build.name, str(len(build.joints)), works, evidence_text))
        previous_family = family.name
    output.print_table(out, _COLUMNS, rows, right=("joints",))
    out.print("One of them with its joints and sources: rote robots NAME", style="dim")


def _group_by_grade(grades: "Mapping[str, Grade]") -> str:
    """Return what has each grade, for example `list, teach (seen); rename (reported)`."""
    groups: dict[str, list[str]] = {}
    for name, grade in grades.items():
        groups.setdefault(grade.value, []).append(name)
    return "; ".join(f"{', '.join(names)} ({grade})" for grade, names in groups.items())


def _print_details(out: "Console", family: "Family", build: "Build") -> None:
    from rote.cli import output

    out.print(f"{build.name}: {build.title}. Family {family.name}, {family.title}.")
    out.print(_describe_recognition(family, build))
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
            _describe_use(build, joint.name),
        )
        for joint in build.joints
    ]
    output.print_joint_table(out, titles, rows)
    out.print()
    for line in (
        *map(_describe_hand, family.hands),
        *_describe_modes(family),
        _describe_stream(build),
    ):
        out.print(line)
    out.print(f"Works: {_group_by_grade(family.works) or 'nothing is known'}.")
    for group, evidence in family.evidence.items():
        out.print(f"Evidence, {group}: {evidence.grade.value}; {evidence.source}.", style="dim")


def _describe_recognition(family: "Family", build: "Build") -> str:
    """Return how rote recognises a robot of this build: by a number or a mode that it reports."""
    signs = []
    if build.machines:
        signs.append(f"mode_machine {', '.join(map(str, build.machines))}")
    if family.modes.distinctive:
        signs.append(f"mode {', '.join(map(str, sorted(family.modes.distinctive)))} (the family)")
    return (
        f"Recognised by {' or '.join(signs) or 'nothing known'}; to choose it: ?build={build.name}."
    )


def _describe_use(build: "Build", joint: str) -> str:
    """Return whether a joint is taught, streamed, or both; empty if neither."""
    uses = {"taught": build.taught, "streamed": build.streamed}
    return ", ".join(use for use, joints in uses.items() if joint in joints)


def _describe_hand(hand: "Hand") -> str:
    joints = ", ".join(hand.names)
    return f"Hand {hand.name}, {hand.side}, {hand.state_topic} and {hand.command_topic}: {joints}."


def _describe_modes(family: "Family") -> "Iterable[str]":
    for mode in family.modes.all:
        abilities = " (teach, play)" if mode.balanced else ""
        yield f"Mode {mode.id}, {mode.name}: {mode.label}{abilities}."


def _describe_stream(build: "Build") -> str:
    if build.stream is None:
        return f"Nothing is streamed to it: {build.no_stream or 'the format is not known'}."
    topic = build.stream.topic or "the protocols of rote"
    weight_slot = build.stream.weight_slot
    weight_note = "" if weight_slot is None else f", the weight at slot {weight_slot}"
    return f"Streamed by {topic}{weight_note}."
