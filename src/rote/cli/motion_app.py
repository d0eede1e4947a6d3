"""What the commands of `rote motion` share: the group, their arguments, reading and writing."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rote.errors import BadRequestError
from rote.motion.formats import FORMATS, endings
from rote.platform.atomic_file import check_new

if TYPE_CHECKING:
    from rote.motion.track import Track

app = typer.Typer(
    name="motion",
    help="Edit, check, draw and convert motions: files, or takes with --take.\n\n"
    f"Files end in {endings()}.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Source = Annotated[Path, typer.Argument(metavar="FILE", help="The motion to begin with.")]
Second = Annotated[Path, typer.Argument(metavar="OTHER", help="The second motion.")]
Out = Annotated[
    Path,
    typer.Argument(
        metavar="OUT",
        help="Where to write; its ending selects the format. With --take and without an ending it "
        "is a take.",
    ),
]
IsTake = Annotated[
    bool,
    typer.Option("--take", help="The motions are takes on this computer: rote takes list."),
]


def load(path: Path, *, degrees: bool = False, take: bool = False) -> "Track":
    """Read a motion: a file, or with `take` a take of that name.

    If there is a take but no file of that name, the error says how to use the take.
    """
    from rote.cli.takes import check_no_take, library, print_reading_notes
    from rote.motion.files import load as load_file

    if take:
        if degrees:
            raise BadRequestError("takes contain rad, so --degrees has no effect", "Leave it out.")
        return library().load(str(path))
    check_no_take(path, "Add --take, or make a file of it: rote takes export {name} {file}")
    track = load_file(path, degrees=degrees)
    print_reading_notes(track, path)
    return track


def is_take_name(out: Path, take: bool) -> bool:
    """Return whether `out` names a take: with --take, and a name without a file's ending."""
    return take and out.suffix.lower() not in FORMATS and len(out.parts) == 1


def check_out(out: Path, *, take: bool, overwrite: bool) -> None:
    """Raise `BadRequestError` if no result can be written to `out`; called before any work."""
    from rote.cli.takes import library
    from rote.motion.files import format_of
    from rote.motion.files.library import check_name

    if not is_take_name(out, take):
        format_of(out)
        check_new(out, overwrite)
        return
    name = check_name(str(out))
    if library().has(name) and not overwrite:
        raise BadRequestError(
            f"the take {name!r} already exists",
            "Choose another name, or add --overwrite: the older one stays as a version.",
        )


def write(track: "Track", out: Path, *, take: bool) -> str:
    """Write a result to a file, or as a take; return what its format cannot hold."""
    from rote.cli.takes import library
    from rote.motion.files import save

    if is_take_name(out, take):
        library().save(track, str(out))
        return ""
    return save(track, out)
