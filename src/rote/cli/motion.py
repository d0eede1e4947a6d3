"""rote motion: from a file with a motion to a file with another one.

The commands are made from the table of edits; only `convert`, which changes a file's format, and
`recover`, which reads a file that was cut off, are written out here.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter as Argument
from inspect import Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rote.cli.motion_app import IsTake, Out, Second, Source, app, check_out, load, write
from rote.cli.options import Json, Overwrite, print_json
from rote.cli.wording import finding_json
from rote.errors import BadRequestError
from rote.motion.edit.table import EDITS, KINDS, SEVERAL, Edit, Parameter
from rote.platform.console_text import one_line

if TYPE_CHECKING:
    from rote.motion.check.report import CheckReport
    from rote.motion.track import Track

_UNITS = ("_s", "_hz", "_rad")
_Sources = Annotated[list[Path], typer.Argument(metavar="FILE", help="Takes of the same motion.")]
_OutOption = Annotated[
    Path, typer.Option("--out", metavar="OUT", help="Where to write the result.")
]
_INPUTS: dict[int, dict[str, Any]] = {
    1: {"source": Source, "out": Out},
    2: {"source": Source, "other": Second, "out": Out},
    SEVERAL: {"sources": _Sources, "out": _OutOption},
}
"""The files that an edit reads and writes, by how many motions it takes."""


def add_edits(group: typer.Typer, edits: Mapping[str, Edit] = EDITS) -> None:
    """Add a command for each edit to `group`, and a hidden one for each older name."""
    for edit in edits.values():
        group.command(edit.command, help=edit.summary)(_command(edit, {}))
        for alias, values in edit.aliases.items():
            hidden = group.command(alias.replace("_", "-"), help=edit.summary, hidden=True)
            hidden(_command(edit, values))


def _command(edit: Edit, values: Mapping[str, Any]) -> Callable[..., None]:
    """Return the command of an edit: its options are the edit's parameters."""
    asked = [each for each in edit.parameters if each.name not in values]

    def run(**given: Any) -> None:
        sources = given["sources"] if "sources" in given else [given["source"]]
        sources += [given["other"]] if "other" in given else []
        wanted = {**values, **{each.name: _value(each, given[each.name]) for each in asked}}

        def change(*tracks: "Track") -> "Track":
            return edit.apply(tracks, wanted)

        options = _WriteOptions(given["take"], given["overwrite"], given["as_json"], edit.checks)
        _write(sources, given["out"], change, options)

    arguments = {**_INPUTS[edit.tracks], **{each.name: _option(each) for each in asked}}
    ends = {"take": IsTake, "overwrite": Overwrite, "as_json": Json}
    run.__name__ = edit.name
    run.__doc__ = edit.summary
    run.__annotations__ = {**arguments, **ends, "return": None}
    defaults = {each.name: each.default for each in asked if not each.required}
    vars(run)["__signature__"] = Signature(
        [
            Argument(
                name,
                Argument.KEYWORD_ONLY,
                annotation=annotation,
                default=False if name in ends else defaults.get(name, Argument.empty),
            )
            for name, annotation in {**arguments, **ends}.items()
        ]
    )
    return run


def _value(parameter: Parameter, given: Any) -> Any:
    """Return what an edit gets for what was typed: angles by name for a list of NAME=RAD."""
    return _pose(given) if KINDS[parameter.kind].value is dict and given is not None else given


def _pose(given: Sequence[str]) -> dict[str, float]:
    pose = {}
    for text in given:
        name, _, number = text.rpartition("=")
        try:
            pose[name] = float(number)
        except ValueError:
            name = ""
        if not name:
            raise BadRequestError(
                f"{text!r} is not a joint with an angle",
                "Write it like left_elbow_joint=0.5, in rad.",
            )
    return pose


def _option(parameter: Parameter) -> Any:
    """Return a parameter as an option of the command line."""
    facts = KINDS[parameter.kind]
    kind = facts.option
    if not parameter.required and parameter.default is None:
        kind = kind | None
    form = _form_of_number(parameter.name) if facts.value is float else facts.form
    option = typer.Option(option_name(parameter), metavar=form, help=parameter.help)
    return Annotated[kind, option]


def _form_of_number(name: str) -> str:
    """Return how the help shows a number: by its unit."""
    units = {"_s": "SECONDS", "_hz": "HZ", "_rad": "RAD"}
    return next((form for unit, form in units.items() if name.endswith(unit)), "N")


def option_name(parameter: Parameter) -> str:
    """Return a parameter's name on the command line: its name without the unit."""
    name = parameter.option or parameter.name
    unit = next((each for each in _UNITS if not parameter.option and name.endswith(each)), "")
    return f"--{name.removesuffix(unit).replace('_', '-')}"


add_edits(app)


class _WriteOptions(NamedTuple):
    """How an edit reads, writes and reports."""

    take: bool
    overwrite: bool
    as_json: bool
    checks: bool = False


def _write(
    sources: Sequence[Path],
    out: Path,
    edit: "Callable[..., Track]",
    options: _WriteOptions,
    *,
    degrees: bool = False,
) -> None:
    """Read, edit and write; nothing is written if anything fails."""
    if not options.take and any(out.resolve() == source.resolve() for source in sources):
        raise BadRequestError(f"{out} would be changed in place", "Name another file to write to.")
    check_out(out, take=options.take, overwrite=options.overwrite)
    track = edit(*(load(source, degrees=degrees, take=options.take) for source in sources))
    report = _report(track) if options.checks else None
    _print_result(track, out, write(track, out, take=options.take), options.as_json, report)


def _report(track: "Track") -> "CheckReport":
    from rote.cli.output import waiting
    from rote.motion.check.rules import check

    with waiting("checking"):
        return check(track)


def _print_result(
    track: "Track", out: Path, loss: str, as_json: bool, report: "CheckReport | None" = None
) -> None:
    """Print what was written, and the findings of a check."""
    done = track.history[-1] if track.history else ""
    if as_json:
        found = () if report is None else report.findings
        print_json(
            {
                "file": str(out),
                "duration_s": round(track.duration_s, 6),
                "samples": len(track),
                "rate_hz": round(track.rate_hz, 3),
                "done": done,
                "lost": loss,
                **({} if report is None else {"findings": [*map(finding_json, found)]}),
            }
        )
        return
    if done:
        print(one_line(done))
    print(f"{out}: {track.duration_s:.2f} s, {len(track)} samples at {track.rate_hz:.0f} Hz")
    if loss:
        print(f"Not in this format: {loss}.")
    if report is not None:
        from rote.cli import output

        output.findings(output.console(), report.findings)


@app.command()
def convert(
    source: Source,
    out: Out,
    degrees: Annotated[
        bool, typer.Option("--degrees", help="FILE contains degrees; convert them to rad.")
    ] = False,
    build: Annotated[
        str | None,
        typer.Option(
            "--build", metavar="BUILD", help="Also convert to this build: g1-29, g1-27 or g1-23."
        ),
    ] = None,
    variant: Annotated[str | None, typer.Option("--variant", hidden=True)] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Even if joints that move are lost.")
    ] = False,
    take: IsTake = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Convert a motion to another format or another build."""
    wanted = build or variant
    if force and wanted is None:
        raise BadRequestError("--force does nothing without --build", "Leave it out.")

    def to(track: "Track") -> "Track":
        values = {"build": wanted, "force": force}
        return track if wanted is None else EDITS["to_build"].apply([track], values)

    options = _WriteOptions(take, overwrite, as_json)
    _write((source,), out, to, options, degrees=degrees)


@app.command()
def recover(
    source: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="An .mcap file that was cut off, or .mcap.part."),
    ],
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Where to write; its ending selects the format.")
    ],
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Recover a recording that was cut off; FILE is not changed.

    Takes that a crash cut off are recovered by the next `rote takes list` or `rote teach`.
    """
    from rote.motion.files.mcap_file import recover as recovered

    if out.resolve() == source.resolve():
        raise BadRequestError(f"{out} would be changed in place", "Name another file to write to.")
    check_out(out, take=False, overwrite=overwrite)
    track = recovered(source)
    _print_result(track, out, write(track, out, take=False), as_json)
