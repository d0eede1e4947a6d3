"""rote motion: from a file with a motion to a file with another one.

The commands are made from the table of edits; only `convert`, which changes a file's format, is
written out here.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter as Argument
from inspect import Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.atomic_file import check_new
from rote.cli.motion_app import Out, Second, Source, app, load
from rote.cli.options import Json, Overwrite, print_json
from rote.errors import BadRequestError
from rote.motion.edits import EDITS, SEVERAL, Edit, Parameter, ParameterKind

if TYPE_CHECKING:
    from rote.motion.track import Track

_UNITS = ("_s", "_hz", "_rad")
_Sources = Annotated[list[Path], typer.Argument(metavar="FILE", help="Takes of the same motion.")]
_OutOption = Annotated[Path, typer.Option("--out", help="Where to write the result.")]
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
        wanted = {**values, **{each.name: given[each.name] for each in asked}}

        def change(*tracks: "Track") -> "Track":
            return edit.apply(tracks, wanted)

        _write(sources, given["out"], change, (given["overwrite"], given["as_json"]))

    arguments = {**_INPUTS[edit.tracks], **{each.name: _option(each) for each in asked}}
    ends = {"overwrite": Overwrite, "as_json": Json}
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


def _option(parameter: Parameter) -> Any:
    """Return a parameter as an option of the command line."""
    kinds: dict[ParameterKind, Any] = {
        ParameterKind.NUMBER: float,
        ParameterKind.FLAG: bool,
        ParameterKind.JOINTS: list[str],
        ParameterKind.BUILD: str,
    }
    kind = kinds[parameter.kind]
    if not parameter.required and parameter.default is None:
        kind = kind | None
    return Annotated[kind, typer.Option(option_name(parameter), help=parameter.help)]


def option_name(parameter: Parameter) -> str:
    """Return a parameter's name on the command line: its name without the unit."""
    name = parameter.option or parameter.name
    unit = next((each for each in _UNITS if not parameter.option and name.endswith(each)), "")
    return f"--{name.removesuffix(unit).replace('_', '-')}"


add_edits(app)


def _write(
    sources: Sequence[Path],
    out: Path,
    edit: "Callable[..., Track]",
    how: tuple[bool, bool],
    *,
    degrees: bool = False,
) -> None:
    """Read, edit and write; nothing is written if anything fails."""
    from rote.motion.files import format_of, save

    overwrite, as_json = how
    format_of(out)
    if any(out.resolve() == source.resolve() for source in sources):
        raise BadRequestError(f"{out} would be changed in place", "Name another file to write to.")
    check_new(out, overwrite)
    track = edit(*(load(source, degrees=degrees) for source in sources))
    loss = save(track, out)
    done = track.history[-1] if track.history else ""
    if as_json:
        print_json(
            {
                "file": str(out),
                "duration_s": round(track.duration_s, 6),
                "samples": len(track),
                "rate_hz": round(track.rate_hz, 3),
                "done": done,
                "lost": loss,
            }
        )
        return
    if done:
        print(done)
    print(f"{out}: {track.duration_s:.2f} s, {len(track)} samples at {track.rate_hz:.0f} Hz")
    if loss:
        print(f"Not in this format: {loss}.")


@app.command()
def convert(
    source: Source,
    out: Out,
    degrees: Annotated[
        bool, typer.Option("--degrees", help="FILE holds degrees: make them rad.")
    ] = False,
    build: Annotated[
        str | None,
        typer.Option("--build", help="For another build as well: g1-29, g1-27 or g1-23."),
    ] = None,
    variant: Annotated[str | None, typer.Option("--variant", hidden=True)] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Even if joints that move are lost.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write it in another format, or for another build of the robot."""
    wanted = build or variant

    def to(track: "Track") -> "Track":
        values = {"build": wanted, "force": force}
        return track if wanted is None else EDITS["to_build"].apply([track], values)

    _write((source,), out, to, (overwrite, as_json), degrees=degrees)
