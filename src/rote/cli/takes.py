"""rote takes: the recordings on this computer."""

import shlex
import sys
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
    help="Manage the recordings that `rote teach` saved on this computer.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
PLAY_IT = "Play the take: rote play {name} --take"
Name = Annotated[str, typer.Argument(metavar="TAKE", help="The take's name.")]


def library() -> "Library":
    """Return the library: the folder of takes on this computer."""
    from rote.motion.files.library import Library

    return Library(takes_folder())


def check_no_take(path: Path, remedy: str) -> None:
    """Raise an error if a file is missing, but the library has a take of its name.

    In `remedy`, {name} is the take's name, and {file} is the name of a file to export it to.
    """
    name = path.stem
    if not path.exists() and library().has(name):
        raise BadRequestError(
            f"there is no file {path}, but a take {name!r} in the library",
            remedy.format(name=shlex.quote(name), file=shlex.quote(f"{name}.mcap")),
        )


def load_motion(name: str, is_take: bool, remedy: str, *, any_joints: bool = False) -> "Track":
    """Read a file, or if `is_take` the take of that name.

    `remedy` is for `check_no_take`. `any_joints` accepts joints that no known robot has.
    """
    from rote.motion.files import load

    if is_take:
        return library().load(name)
    check_no_take(Path(name), remedy)
    track = load(Path(name), any_joints=any_joints)
    print_reading_notes(track, Path(name))
    return track


def print_reading_notes(track: "Track", path: Path) -> None:
    """Print what was assumed when a track was read from a file, on standard error."""
    from rote.motion.files import list_reading_notes

    for note in list_reading_notes(track, path):
        print(f"Note: {one_line(str(path))}: {note.message}.", file=sys.stderr)


def recover_unfinished_takes() -> list["Entry"]:
    """Recover takes that a crash cut off; print and return those that were recovered."""
    takes = library()
    rescued = []
    for part in takes.unfinished():
        try:
            entry = takes.recover(part)
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
        list[str] | None, typer.Argument(metavar="WORD", help="A word in the name, tags or source.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List all takes, or those that match."""
    recover_unfinished_takes()
    takes = library()
    entries = takes.list(" ".join(search or ()))
    if as_json:
        documents = [build_document(entry) for entry in entries]
        print_json({"folder": str(takes_folder()), "takes": documents})
        return
    if not entries:
        count = len(takes.list()) if search else 0
        if count:
            print(f"None of the {count} takes in {takes_folder()} fits {' '.join(search or ())!r}.")
        else:
            print(f"No takes in {takes_folder()}. Every `rote teach` saves one.")
        return
    sketches = takes.sketches(entries)
    rows = [
        (
            entry.name,
            sketches.get(entry.name, ""),
            entry.variant,
            f"{entry.duration_s:.2f}",
            f"{entry.samples}",
            f"{entry.version}",
            ", ".join(entry.tags) or entry.problem,
        )
        for entry in entries
    ]
    titles = ("take", "motion", "robot", "seconds", "samples", "version", "tags")
    from rote.cli import output

    output.print_joint_table(output.console(), titles, rows)


@app.command("show")
def show_take(
    name: Name,
    version: Annotated[int | None, typer.Option(metavar="N", help="Show an older version.")] = None,
    as_json: Json = False,
) -> None:
    """Show a summary of a take: the joints that move most."""
    from rote.cli import output
    from rote.motion.files.thumbnail import sketch

    takes = library()
    track = takes.load(name, version)
    sketches = sketch(track, width=48, most=6)
    versions = takes.versions(name)
    if as_json:
        print_json(
            {
                "name": name,
                "versions": list(versions),
                "duration_s": track.duration_s,
                "variant": track.variant,
                "source": track.source,
                "origin": None if track.origin is None else asdict(track.origin),
                "motion": sketches,
            }
        )
        return
    summary = f"{track.duration_s:.2f} s, {len(track)} samples of {one_line(track.variant)}"
    print(f"{name}: {summary}; {one_line(track.source) or 'no source'}")
    if track.origin is not None:
        print(describe_origin(track.origin))
    print(f"versions: {', '.join(map(str, versions))}")
    output.print_joint_table(output.console(), ("joint", "motion"), list(sketches.items()))


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
    """Add tags to a take, or remove them."""
    entry = library().tag(name, add or (), remove or ())
    tags = one_line(", ".join(entry.tags)) or "no tags"
    _print_entry(entry, f"{entry.name}: {tags}", as_json)


@app.command()
def rename(
    name: Name,
    to: Annotated[str, typer.Argument(metavar="NAME", help="Its new name.")],
    as_json: Json = False,
) -> None:
    """Rename a take."""
    entry = library().rename(name, to)
    _print_entry(entry, f"Renamed {name} to {entry.name}.", as_json)


@app.command()
def delete(name: Name, as_json: Json = False) -> None:
    """Move a take to the trash beside the library."""
    trash_path = library().delete(name)
    if as_json:
        print_json({"deleted": name, "trash": str(trash_path)})
    else:
        command = f"rote takes restore {shlex.quote(name)}"
        print(f"Deleted {name}; it is in {trash_path}. To restore it: {command}")


@app.command()
def restore(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The take's name; leave it out to see the trash."),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Restore it under this name.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Restore a deleted take from the trash, with all its versions."""
    takes = library()
    if name is None:
        if to is not None:
            raise BadRequestError("the take is missing", "Give its name before --name.")
        _show_trash(takes.deleted(), as_json)
        return
    entry = takes.restore_newest(name, to)
    _print_entry(
        entry, f"Restored {entry.name}: {entry.duration_s:.2f} s, version {entry.version}.", as_json
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
        str | None, typer.Option(metavar="NAME", help="Name of the take; by default the file's.")
    ] = None,
    degrees: Annotated[bool, typer.Option("--degrees", help="FILE contains degrees.")] = False,
    kind: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="The format of FILE: unitree-csv, kimodo, kimodo-npz, bones-seed, mjlab, "
            "beyondmimic, amp, gmr, asap, seq, or lerobot for a dataset's folder.",
        ),
    ] = None,
    fps: Annotated[
        float | None,
        typer.Option("--fps", metavar="N", help="Frames per second, if FILE does not state them."),
    ] = None,
    quat: Annotated[
        str | None,
        typer.Option("--quat", metavar="xyzw|wxyz", help="Order of the quaternions, if ambiguous."),
    ] = None,
    upper_body: Annotated[
        bool, typer.Option("--upper-body", help="Leave out legs and waist.")
    ] = False,
    licence: Annotated[
        str, typer.Option("--licence", metavar="TERMS", help="Licence of the motion.")
    ] = "",
    origin: Annotated[
        str,
        typer.Option(
            "--from", metavar="SOURCE", help="Where it comes from: a web address or an author."
        ),
    ] = "",
    episode: Annotated[
        list[int] | None,
        typer.Option(
            "--episode", metavar="N", help="Only this episode of a dataset. May be repeated."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Add a file to the library: one of rote's, or one that another program wrote.

    The format of another program's file is detected if it is unambiguous. The motion is checked.
    """
    from rote.cli import exchange

    options = exchange.ImportOptions(
        file, name, degrees, kind, fps, quat, upper_body, licence, origin, tuple(episode or ())
    )
    exchange.import_file(options, library(), as_json)


@app.command("export")
def export_take(
    name: Name,
    out: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The file to write; its ending selects the format."),
    ],
    version: Annotated[
        int | None, typer.Option(metavar="N", help="Export an older version.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="FORMAT", help="For another program: unitree-csv, mjlab or amp."
        ),
    ] = None,
    fps: Annotated[
        int | None,
        typer.Option(
            "--fps",
            metavar="N",
            help="With --as: frames per second; by default those of the format.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Copy a take to a file, in any format.

    With --as, the robot of a hand-taught motion stands upright.
    """
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


def describe_origin(origin: "Origin") -> str:
    """Return one line about an imported motion: file, format, address and licence."""
    address = f", {origin.address}" if origin.address else ""
    licence = origin.licence or "not known"
    line = f"imported: {origin.file}, read as {origin.format}{address}; licence: {licence}"
    return one_line(line)


def build_document(entry: "Entry") -> dict[str, object]:
    """Return the JSON document of a take."""
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


def _print_entry(entry: "Entry", message: str, as_json: bool) -> None:
    if as_json:
        print_json(build_document(entry))
    else:
        print(message)
