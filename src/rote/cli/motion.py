"""rote motion: from a file with a motion to a file with another one."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rote.atomic_file import check_new
from rote.cli.motion_app import Out, Overwrite, Second, Source, app, load, named
from rote.cli.options import Json, print_json
from rote.errors import BadRequestError

if TYPE_CHECKING:
    from rote.motion.track import Track

Joints = Annotated[
    list[str],
    typer.Option("--joint", help="A joint's name, or left_arm or right_arm. May be repeated."),
]


def _write(
    sources: tuple[Path, ...],
    out: Path,
    edit: "Callable[..., Track]",
    how: tuple[bool, bool],
    *,
    degrees: bool = False,
) -> None:
    """Read, edit and write; nothing is written where anything fails."""
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
def trim(
    source: Source,
    out: Out,
    start: Annotated[float | None, typer.Option(help="First second to keep.")] = None,
    end: Annotated[float | None, typer.Option(help="Last second to keep.")] = None,
    auto: Annotated[bool, typer.Option("--auto", help="Cut idle ends instead.")] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Cut off the beginning and the end: by seconds, or what stands idle."""
    from rote.motion import edit

    if auto == (start is not None or end is not None):
        raise BadRequestError("what to cut is not said, or twice", "Give --start, --end or --auto.")

    def cut(track: "Track") -> "Track":
        if auto:
            return edit.trim_idle(track)
        first_s = float(track.times_s[0])
        last_s = float(track.times_s[-1])
        begin_s = first_s if start is None else first_s + start
        return edit.trim(track, begin_s, last_s if end is None else first_s + end)

    _write((source,), out, cut, (overwrite, as_json))


@app.command()
def smooth(
    source: Source,
    out: Out,
    cutoff: Annotated[float, typer.Option(help="Take out what is faster, in Hz.")] = 4.0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Take out trembling, without delay."""
    from rote.motion import edit

    _write((source,), out, lambda t: edit.smooth(t, cutoff), (overwrite, as_json))


@app.command()
def resample(
    source: Source,
    out: Out,
    rate: Annotated[float, typer.Option(help="Samples a second.")] = 100.0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Put the samples evenly."""
    from rote.motion import edit

    _write((source,), out, lambda t: edit.resample(t, rate), (overwrite, as_json))


@app.command()
def retime(
    source: Source,
    out: Out,
    velocity: Annotated[float | None, typer.Option(help="At most, in rad/s.")] = None,
    acceleration: Annotated[float | None, typer.Option(help="At most, in rad/s2.")] = None,
    jerk: Annotated[float | None, typer.Option(help="At most, in rad/s3.")] = None,
    calmer: Annotated[
        bool, typer.Option("--calmer", help="Nowhere faster than it was recorded.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """The same path, as fast as limits of speed, acceleration and jerk allow."""
    from rote.motion.retime import retime as retimed

    def shape(track: "Track") -> "Track":
        return retimed(
            track,
            velocity=velocity,
            acceleration=acceleration,
            jerk=jerk,
            at_most_as_fast=calmer,
        )

    _write((source,), out, shape, (overwrite, as_json))


@app.command()
def speed(
    source: Source,
    out: Out,
    factor: Annotated[float, typer.Option(help="2 is twice as fast.")],
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Make it faster or slower throughout."""
    from rote.motion import edit

    _write((source,), out, lambda t: edit.speed(t, factor), (overwrite, as_json))


@app.command()
def reverse(source: Source, out: Out, overwrite: Overwrite = False, as_json: Json = False) -> None:
    """Play it backwards."""
    from rote.motion import edit

    _write((source,), out, edit.reverse, (overwrite, as_json))


@app.command()
def mirror(source: Source, out: Out, overwrite: Overwrite = False, as_json: Json = False) -> None:
    """Exchange left and right."""
    from rote.motion.mirror import mirror as mirrored

    _write((source,), out, mirrored, (overwrite, as_json))


@app.command()
def loop(
    source: Source,
    out: Out,
    seconds: Annotated[float, typer.Option(help="How long the way back may take.")] = 1.0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Go back to the first pose at the end, so that it can be played again and again."""
    from rote.motion import edit

    _write((source,), out, lambda t: edit.close_loop(t, seconds), (overwrite, as_json))


@app.command()
def blend(
    source: Source,
    other: Second,
    out: Out,
    weight: Annotated[float, typer.Option(help="0 is FILE, 1 is OTHER.")] = 0.5,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Mix two performances."""
    from rote.motion import edit

    _write((source, other), out, lambda a, b: edit.blend(a, b, weight), (overwrite, as_json))


@app.command()
def concat(
    source: Source,
    other: Second,
    out: Out,
    bridge: Annotated[float, typer.Option(help="Seconds from one to the other.")] = 0.5,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Let one follow the other, with a soft bridge between."""
    from rote.motion import edit

    _write((source, other), out, lambda a, b: edit.concatenate(a, b, bridge), (overwrite, as_json))


@app.command()
def fade(
    source: Source,
    other: Second,
    out: Out,
    overlap: Annotated[float, typer.Option(help="Seconds in which both are played.")] = 0.5,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Let one pass into the other while both are played."""
    from rote.motion import edit

    _write((source, other), out, lambda a, b: edit.cross_fade(a, b, overlap), (overwrite, as_json))


@app.command()
def layer(
    source: Source,
    other: Second,
    out: Out,
    joint: Joints,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Take some joints from OTHER: `--joint right_arm` gives it the other's right arm."""
    from rote.motion import edit

    def over(a: "Track", b: "Track") -> "Track":
        return edit.layer(a, b, named(joint, a))

    _write((source, other), out, over, (overwrite, as_json))


@app.command()
def keep(
    source: Source, out: Out, joint: Joints, overwrite: Overwrite = False, as_json: Json = False
) -> None:
    """Keep some joints only."""
    from rote.motion import edit

    _write((source,), out, lambda t: edit.keep(t, named(joint, t)), (overwrite, as_json))


@app.command()
def drop(
    source: Source, out: Out, joint: Joints, overwrite: Overwrite = False, as_json: Json = False
) -> None:
    """Leave some joints out."""
    from rote.motion import edit

    _write((source,), out, lambda t: edit.drop(t, named(joint, t)), (overwrite, as_json))


@app.command()
def average(
    sources: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Takes of the same motion.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Where to write the average.")],
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Average several takes of one motion, aligned in time."""
    from rote.motion.compare import average as averaged

    _write(tuple(sources), out, lambda *takes: averaged(takes), (overwrite, as_json))


@app.command()
def convert(
    source: Source,
    out: Out,
    degrees: Annotated[
        bool, typer.Option("--degrees", help="FILE holds degrees: make them rad.")
    ] = False,
    variant: Annotated[
        str | None, typer.Option(help="For another build: g1-29, g1-27 or g1-23.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also if joints that moved are lost.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write it in another format, or for another build of the robot."""
    from rote.motion import edit

    def to(track: "Track") -> "Track":
        return track if variant is None else edit.to_variant(track, variant, force=force)

    _write((source,), out, to, (overwrite, as_json), degrees=degrees)
