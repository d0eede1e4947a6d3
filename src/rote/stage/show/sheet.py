"""A show as a cue sheet: one line per clip and cue, as a table or a page to print."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import NamedTuple

from rote.stage.show.file import Clip, Cue, CueKind, Section, Show, describe_trigger

TITLES = ("section", "time", "role", "what", "trigger")
_STYLE = """body { font: 11pt/1.4 sans-serif; margin: 2em; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #999; padding: 0.25em 0.6em; text-align: left; }
td:nth-child(2) { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
tr.first td { border-top: 2px solid #000; font-weight: bold; }
tr { break-inside: avoid; } thead { display: table-header-group; }"""


class SheetLine(NamedTuple):
    """One line of a cue sheet."""

    section: str
    """"" unless it is the first line of its section."""
    time: str
    """From the section's start, as minutes and seconds."""
    role: str
    """With its robot if there is a cast; "-" for the conductor's computer."""
    what: str
    trigger: str
    """What begins the section; "" unless it is the first line of its section."""


def make_sheet(show: Show, robots: Mapping[str, str] | None = None) -> list[SheetLine]:
    """Return the lines of a show, in order; `robots` has the robot of each role."""
    return [line for section in show.sections for line in _list_section(section, robots or {})]


def _list_section(section: Section, robots: Mapping[str, str]) -> Iterator[SheetLine]:
    items: list[tuple[float, str, str]] = [
        (clip.at_s, clip.role, _describe_clip(clip)) for clip in section.clips
    ]
    items += [(cue.at_s, cue.role, _describe_cue(cue)) for cue in section.cues]
    loops = f", {section.loop} times" if section.loop > 1 else ""
    for number, (at_s, role, what) in enumerate(sorted(items, key=lambda item: item[0])):
        is_first = number == 0
        robot = f" ({robots[role]})" if role in robots else ""
        yield SheetLine(
            section.name if is_first else "",
            f"{int(at_s // 60)}:{at_s % 60:05.2f}",
            f"{role}{robot}" if role else "-",
            what,
            f"{describe_trigger(section.start)}{loops}" if is_first else "",
        )


def _describe_clip(clip: Clip) -> str:
    details = []
    if clip.from_s is not None or clip.to_s is not None:
        end = "the end" if clip.to_s is None else f"{clip.to_s:g} s"
        details.append(f"from {clip.from_s or 0.0:g} s to {end}")
    details += ["mirrored"] if clip.mirror else []
    details += [f"speed {clip.speed:g}"] if clip.speed != 1.0 else []
    details += [f"{clip.loop} times"] if clip.loop > 1 else []
    name = f"take {clip.take}" if clip.take else f"action {clip.action}"
    return f"{name} ({', '.join(details)})" if details else name


def _describe_cue(cue: Cue) -> str:
    if cue.kind is CueKind.OSC:
        return " ".join([cue.label, *map(str, cue.args), "to", cue.to])
    return cue.label


def sheet_page(show: Show, lines: list[SheetLine]) -> str:
    """Return a cue sheet as an HTML page of its own, to be printed."""
    title = escape(show.title or "Cue sheet")
    head = "".join(f"<th>{name}</th>" for name in TITLES)
    rows = "\n".join(
        ('<tr class="first">' if line.section else "<tr>")
        + "".join(f"<td>{escape(cell)}</td>" for cell in line)
        + "</tr>"
        for line in lines
    )
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n<h1>{title}</h1>\n"
        f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></html>\n"
    )
