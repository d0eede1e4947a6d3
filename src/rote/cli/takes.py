"""rote takes: the recordings on this computer."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import Json, Overwrite, print_json
from rote.errors import BadRequestError
from rote.motion.formats import endings
from rote.platform.atomic_file import check_new
from rote.platform.console_text import one_line
from rote.platform.paths import takes_folder

if TYPE_CHECKING:
    from rote.motion.files.library import Entry, Library
    from rote.motion.track import Origin, Track

app = typer.Typer(
    name="takes",
    help="Manage the recordings that `rote teach` left on this computer.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_MANY = 100  # takes from which on a list is printed plainly
PLAY_IT = "Play the take: rote play {name} --take"
Name = Annotated[str, typer.Argument(metavar="TAKE", help="The take's name.")]


def library() -> "Library":
    """Return the user's library."""
    from rote.motion.files.library import Library

    return Library(takes_folder())


def check_no_take(path: Path, remedy: str) -> None:
    """Raise an error for a missing file if there is a take of its name; the remedy names
    both ways.
    """
    name = path.stem
    if not path.exists() and library().has(name):
        raise BadRequestError(
            f"there is no file {path}, but a take {name!r} in the library",
            remedy.format(name=shlex.quote(name), file=shlex.quote(f"{name}.mcap")),
        )


def motion(name: str, is_take: bool, remedy: str, *, any_joints: bool = False) -> "Track":
    """Read a take by its name, or a file; the remedy is for a missing file with a take's name."""
    from rote.motion.files import load

    if is_take:
        return library().load(name)
    check_no_take(Path(name), remedy)
    return load(Path(name), any_joints=any_joints)


def rescue() -> list["Entry"]:
    """Recover takes that a crash cut off, and report it on standard error."""
    import sys

    shelf = library()
    rescued = []
    for part in shelf.unfinished():
        try:
            entry = shelf.recover(part)
        except BadRequestError as error:
            print(f"rote: {error}", file=sys.stderr)
            continue
        rescued.append(entry)
        print(
            f"rote: a recording was cut off; {entry.duration_s:.1f} s of it are kept as the take "
            f"{entry.name!r}",
            file=sys.stderr,
        )
    return rescued


@app.command("list")
def list_takes(
    search: Annotated[
        list[str] | None, typer.Argument(metavar="WORD", help="Words in name, tags, source.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List all takes, or those that match."""
    rescue()
    shelf = library()
    entries = shelf.list(" ".join(search or ()))
    if as_json:
        documents = [document(entry) for entry in entries]
        print_json({"folder": str(takes_folder()), "takes": documents})
        return
    if not entries:
        count = len(shelf.list()) if search else 0
        if count:
            print(f"None of the {count} takes in {takes_folder()} fits {' '.join(search or ())!r}.")
        else:
            print(f"No takes in {takes_folder()}. Every `rote teach` leaves one.")
        return
    lines = shelf.sketches(entries)
    rows = [
        (
            entry.name,
            lines.get(entry.name, ""),
            entry.variant,
            f"{entry.duration_s:.2f}",
            f"{entry.samples}",
            f"{entry.version}",
            ", ".join(entry.tags) or entry.problem,
        )
        for entry in entries
    ]
    titles = ("take", "motion", "robot", "seconds", "samples", "version", "tags")
    if len(rows) <= _MANY:
        from rote.cli import output

        output.joints(output.console(), titles, rows)
    else:
        _print_plain(titles, rows)


def _print_plain(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a long table at once: laying it out for the width of a terminal takes seconds."""
    from rich.cells import cell_len

    rows = [[*map(one_line, row)] for row in rows]
    columns = list(zip(titles, *rows, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    for row in (titles, *rows):
        gaps = [width - cell_len(cell) for cell, width in zip(row, widths, strict=True)]
        first, *others = zip(row, gaps, strict=True)
        cells = [first[0] + " " * first[1], *(" " * gap + cell for cell, gap in others)]
        print("  ".join(cells).rstrip())


@app.command("show")
def show_take(
    name: Name,
    version: Annotated[int | None, typer.Option(metavar="N", help="Show an older version.")] = None,
    as_json: Json = False,
) -> None:
    """Show a summary of a take: the joints that move most."""
    from rote.cli import output
    from rote.motion.files.thumbnail import sketch

    shelf = library()
    track = shelf.load(name, version)
    drawn = sketch(track, width=48, most=6)
    versions = shelf.versions(name)
    if as_json:
        print_json(
            {
                "name": name,
                "versions": list(versions),
                "duration_s": track.duration_s,
                "variant": track.variant,
                "source": track.source,
                "origin": None if track.origin is None else asdict(track.origin),
                "motion": drawn,
            }
        )
        return
    summary = f"{track.duration_s:.2f} s, {len(track)} samples of {one_line(track.variant)}"
    print(f"{name}: {summary}; {one_line(track.source) or 'no source'}")
    if track.origin is not None:
        print(origin_line(track.origin))
    print(f"versions: {', '.join(map(str, versions))}")
    output.joints(output.console(), ("joint", "motion"), list(drawn.items()))


@app.command()
def tag(
    name: Name,
    add: Annotated[
        list[str] | None, typer.Option("--add", metavar="TAG", help="A tag. May be repeated.")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="TAG", help="Remove it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Add tags to a take, or take them away."""
    entry = library().tag(name, add or (), remove or ())
    tags = one_line(", ".join(entry.tags)) or "no tags"
    _tell(entry, f"{entry.name}: {tags}", as_json)


@app.command()
def rename(
    name: Name,
    to: Annotated[str, typer.Argument(metavar="NAME", help="Its new name.")],
    as_json: Json = False,
) -> None:
    """Rename a take."""
    entry = library().rename(name, to)
    _tell(entry, f"Renamed {name} to {entry.name}.", as_json)


@app.command()
def delete(name: Name, as_json: Json = False) -> None:
    """Put a take into the trash beside the library."""
    buried = library().delete(name)
    if as_json:
        print_json({"deleted": name, "trash": str(buried)})
    else:
        back = f"rote takes restore {shlex.quote(name)}"
        print(f"Deleted {name}; it lies in {buried}. Bring it back: {back}")


@app.command()
def restore(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The take's name; leave it out to see the trash."),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Bring it back by this name.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Bring a deleted take back from the trash, with all its versions."""
    shelf = library()
    if name is None:
        if to is not None:
            raise BadRequestError("the take is missing", "Give its name before --name.")
        _show_trash(shelf.deleted(), as_json)
        return
    entry = shelf.restore_newest(name, to)
    _tell(
        entry, f"{entry.name} is back: {entry.duration_s:.2f} s, version {entry.version}.", as_json
    )


def _show_trash(names: Sequence[str], as_json: bool) -> None:
    if as_json:
        print_json({"trash": list(names)})
        return
    for name in names:
        print(one_line(name))
    if not names:
        print("There are no takes in the trash.")


@app.command("import")
def import_take(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=f"A {endings()} file.")],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Its name here; by default the file's.")
    ] = None,
    degrees: Annotated[bool, typer.Option("--degrees", help="It holds degrees.")] = False,
    kind: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="Whose format it is: unitree-csv, kimodo, bones-seed, mjlab, beyondmimic, amp, "
            "gmr, seq, or lerobot for a data set's folder.",
        ),
    ] = None,
    fps: Annotated[
        float | None,
        typer.Option("--fps", metavar="N", help="Its frames a second, if it does not state them."),
    ] = None,
    quat: Annotated[
        str | None,
        typer.Option(
            "--quat", metavar="xyzw|wxyz", help="The order of its quaternions, if in doubt."
        ),
    ] = None,
    upper_body: Annotated[
        bool, typer.Option("--upper-body", help="Leave out legs and waist.")
    ] = False,
    licence: Annotated[
        str, typer.Option("--licence", metavar="TERMS", help="The terms it may be used under.")
    ] = "",
    origin: Annotated[
        str, typer.Option("--from", metavar="ADDRESS", help="Address or author of the publication.")
    ] = "",
    episode: Annotated[
        list[int] | None,
        typer.Option("--episode", metavar="N", help="Of a data set, only this. May be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Add a file to the library: one of rote's, or one that another program wrote.

    A file of another program is recognised where there is one reading only, and checked at once.
    """
    from rote.cli import exchange

    wish = exchange.ImportOptions(
        file, name, degrees, kind, fps, quat, upper_body, licence, origin, tuple(episode or ())
    )
    exchange.import_file(wish, library(), as_json)


@app.command("export")
def export_take(
    name: Name,
    out: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The file to write; its ending selects the format."),
    ],
    version: Annotated[int | None, typer.Option(metavar="N", help="Show an older version.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="FORMAT", help="For another program: unitree-csv, mjlab or amp."
        ),
    ] = None,
    fps: Annotated[
        int | None,
        typer.Option("--fps", metavar="N", help="With --as: frames a second; else as usual there."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Copy a take to a file, in any format; a motion taught by hand stands with --as."""
    from rote.motion.files import save
    from rote.motion.files.exchange import export_motion

    check_new(out, overwrite)
    track = library().load(name, version)
    if kind is not None:
        lost = export_motion(track, out, kind, fps=fps)
    elif fps is not None:
        raise BadRequestError("--fps does nothing without --as", "Leave it out.")
    else:
        lost = save(track, out)
    if as_json:
        print_json({"file": str(out), "lost": lost})
    else:
        print(f"Written: {out}" + (f". Not in this format: {lost}." if lost else ""))


def origin_line(origin: "Origin") -> str:
    """Return whose motion it is, as a line."""
    by = f", {origin.address}" if origin.address else ""
    terms = origin.licence or "not known"
    made = f"made by others: {origin.file}, read as {origin.format}{by}; licence: {terms}"
    return one_line(made)


def document(entry: "Entry") -> dict[str, object]:
    """Return what `--json` prints of a take."""
    return {
        "name": entry.name,
        "file": str(entry.path),
        "version": entry.version,
        "duration_s": entry.duration_s,
        "samples": entry.samples,
        "variant": entry.variant,
        "source": entry.source,
        "tags": list(entry.tags),
        "problem": entry.problem,
    }


def _tell(entry: "Entry", message: str, as_json: bool) -> None:
    if as_json:
        print_json(document(entry))
    else:
        print(message)
