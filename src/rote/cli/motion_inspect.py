"""rote motion, the commands that change nothing: info, check, compare, compress, plot, show."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.atomic_file import check_new
from rote.cli.motion_app import Second, Source, app, load
from rote.cli.options import Json, Overwrite, print_json
from rote.cli.wording import finding_json
from rote.errors import BadRequestError
from rote.motion.edits import joints_meant

if TYPE_CHECKING:
    from rich.text import Text

    from rote.motion.check_report import CheckReport
    from rote.motion.keyframes import Compressed

Joint = Annotated[list[str] | None, typer.Option("--joint", help="Only this one. May be repeated.")]


@app.command()
def info(source: Source, as_json: Json = False) -> None:
    """Say what a file holds and how it came to be."""
    import numpy as np

    from rote.motion.edit import jerk_rms

    track = load(source)
    moved = np.ptp(track.joints_rad, axis=0)
    order = np.argsort(moved)[::-1][:5]
    jerk = jerk_rms(track) if len(track) > 3 else None
    if as_json:
        print_json(
            {
                "file": str(source),
                "duration_s": round(track.duration_s, 6),
                "samples": len(track),
                "rate_hz": round(track.rate_hz, 3),
                "longest_gap_s": round(track.longest_gap_s, 6),
                "variant": track.variant,
                "source": track.source,
                "joints": list(track.names),
                "moved_rad": {
                    n: round(float(m), 6) for n, m in zip(track.names, moved, strict=True)
                },
                "jerk_rms_rad_s3": jerk,
                "marks": [{"time_s": m.time_s, "label": m.label} for m in track.marks],
                "history": list(track.history),
            }
        )
        return
    print(
        f"{source}: {track.duration_s:.2f} s, {len(track)} samples at {track.rate_hz:.1f} Hz, ",
        end="",
    )
    print(f"longest gap {1000 * track.longest_gap_s:.0f} ms")
    print(f"{track.variant}, {len(track.names)} joints; {track.source or 'from nowhere it says'}")
    print("most moved: " + ", ".join(f"{track.names[i]} {moved[i]:.2f} rad" for i in order))
    for mark in track.marks:
        print(f"mark at {mark.time_s:.2f} s: {mark.label}")
    for number, line in enumerate(track.history, start=1):
        print(f"{number:3}. {line}")


@app.command()
def check(
    source: Source,
    variant: Annotated[str | None, typer.Option(help="The robot's build, like g1-23.")] = None,
    contact: Annotated[bool, typer.Option(help="Look for collisions too.")] = True,
    payload: Annotated[float, typer.Option(help="What each hand carries, in kg.")] = 0.0,
    as_json: Json = False,
) -> int:
    """Say what speaks against playing it. Exit code 5 if something forbids it."""
    from rote.cli import output
    from rote.motion.check import check as checked

    with output.waiting("checking"):
        track = load(source)
        report = checked(track, build=variant, contact=contact, payload_kg=payload)
    if as_json:
        print_json({**report.as_json(), "findings": [*map(finding_json, report.findings)]})
    else:
        out = output.console()
        output.findings(out, report.findings)
        out.print(_verdict(report, variant or track.variant))
    return 0 if report.ok else 5


def _verdict(report: "CheckReport", robot: str) -> "Text":
    from rote.cli.output import styled
    from rote.model.registry import family_of, find_build

    if not report.ok:
        return styled(("Do not play this.", "bold red"))
    if report.warnings:
        build = find_build(robot)
        family = None if build is None else family_of(build)
        # An A1, whose motors rote drives itself, plays in spite of warnings; other robots need
        # `--force`.
        asks = family is not None and family.keeps_actions
        then = "rote play wants --force." if asks else "look at them first."
        return styled(("Fit, with warnings:", "yellow"), f" {then}")
    return styled(("Fit to be played.", "green"))


@app.command()
def compare(source: Source, other: Second, as_json: Json = False) -> None:
    """Compare two takes, aligned in time."""
    from dataclasses import asdict

    from rote.cli import output
    from rote.motion.compare import compare as compared

    with output.waiting("comparing"):
        result = compared(load(source), load(other))
    if as_json:
        print_json(asdict(result))
        return
    lag = f"{abs(result.lag_s):.2f} s {'earlier' if result.lag_s < 0 else 'later'}"
    print(
        f"{result.rms_rad:.3f} rad rms, {result.max_rad:.3f} rad at most; the second begins {lag} "
        f"and its timing differs by {result.warp_s:.2f} s"
    )
    output.joints(
        output.console(),
        ("joint", "rms", "most", "at", "jerk", "its jerk"),
        [
            (
                joint.joint,
                f"{joint.rms_rad:.3f}",
                f"{joint.max_rad:.3f}",
                f"{joint.time_s:.2f} s",
                f"{joint.jerk_rad_s3:.0f}",
                f"{joint.other_jerk_rad_s3:.0f}",
            )
            for joint in sorted(result.joints, key=lambda joint: -joint.max_rad)[:12]
        ],
    )


@app.command()
def best(
    sources: Annotated[list[Path], typer.Argument(metavar="FILE", help="Takes of one motion.")],
    as_json: Json = False,
) -> None:
    """Say which of several takes is nearest to all the others."""
    from rote.motion.compare import best_of

    chosen = sources[best_of([load(source) for source in sources])]
    if as_json:
        print_json({"best": str(chosen)})
    else:
        print(chosen)


@app.command()
def compress(
    source: Source,
    budget: Annotated[int | None, typer.Option(help="At most this many keyframes.")] = None,
    bound: Annotated[
        float | None, typer.Option(help="The fewest that stay within this many rad.")
    ] = None,
    hand_mm: Annotated[
        float | None, typer.Option(help="With --bound: keep the hands within this many mm too.")
    ] = None,
    interpolation: Annotated[str, typer.Option(help="linear or smooth.")] = "linear",
    measure: Annotated[str, typer.Option(help="For a budget: max or rms.")] = "max",
    free: Annotated[
        bool, typer.Option("--free", help="Values need not lie on samples; linear only.")
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="With --bound: the fewest, however long it takes.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Show them even if the error is too large.")
    ] = False,
    keyframes: Annotated[
        bool, typer.Option("--keyframes", help="With --json: the keyframes too.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write what the keyframes play to this file.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find the keyframes that say the same best, and how far off they are."""
    from rote.cli.output import waiting
    from rote.messages import Interpolation
    from rote.motion import keyframes as k
    from rote.motion.files import save

    _check_asked(budget, bound, hand_mm)
    try:
        how = Interpolation[interpolation.upper()]
    except KeyError:
        raise BadRequestError(f"there is no interpolation {interpolation!r}") from None
    if out is not None:
        check_new(out, overwrite)
    track = load(source)
    with waiting("searching"):
        if bound is not None:
            result = k.compress_to_bound(track, bound, how, hand_mm=hand_mm, free=free, exact=exact)
        else:
            assert budget is not None
            result = k.compress_to_budget(track, budget, how, measure, free=free)  # type: ignore[arg-type]
    if result.absurd and not force and bound is None:
        raise _absurd(result)
    if out is not None:
        save(k.played(track, result), out)
    if as_json:
        print_json(_compressed(result, track.names if keyframes else ()))
        return
    count = len(result.keyframes)
    print(
        f"{count} keyframe{'s' * (count != 1)}, {result.max_error_rad:.4f} rad off at most "
        f"({result.worst_joint} at {result.worst_time_s:.2f} s), {result.rms_error_rad:.4f} rad rms"
    )
    if (hand := result.hand) is not None:
        print(f"The {hand.hand} hand is {hand.error_mm:.1f} mm off at most.")


def _check_asked(budget: int | None, bound: float | None, hand_mm: float | None) -> None:
    if (budget is None) == (bound is None):
        raise BadRequestError(
            "how far to compress is not said, or twice", "Use --budget or --bound."
        )
    if budget is not None and hand_mm is not None:
        raise BadRequestError(
            "a budget leaves no choice of --hand-mm", "Use it with --bound; both state the error."
        )


def _absurd(result: "Compressed") -> BadRequestError:
    from rote.motion.keyframes import ABSURD_RAD

    return BadRequestError(
        f"{len(result.keyframes)} keyframes miss the motion by {result.max_error_rad:.3f} rad "
        f"({result.worst_joint} at {result.worst_time_s:.2f} s); beyond {ABSURD_RAD} rad "
        "they are another motion",
        f"Allow more keyframes, or say how near: --bound {ABSURD_RAD}. A file holds it at "
        "full rate. --force shows these all the same.",
    )


def _compressed(result: "Compressed", names: tuple[str, ...]) -> dict[str, Any]:
    """Return what is printed; with the joints' names, the keyframes too."""
    document: dict[str, Any] = {
        "keyframes": len(result.keyframes),
        "max_error_rad": result.max_error_rad,
        "rms_error_rad": result.rms_error_rad,
        "interpolation": result.interpolation.name.lower(),
        "worst_joint": result.worst_joint,
        "worst_time_s": result.worst_time_s,
        "hand_error_mm": None if result.hand is None else result.hand.error_mm,
        "worst_hand": None if result.hand is None else result.hand.hand,
    }
    if names:
        document["frames"] = [
            {
                "joint": f.joint,
                "name": names[f.joint],
                "time_ms": f.time_ms,
                "value_rad": f.value_rad,
            }
            for f in result.keyframes
        ]
    return document


@app.command()
def lerobot(
    sources: Annotated[list[Path], typer.Argument(metavar="FILE", help="One episode each.")],
    out: Annotated[Path, typer.Option("--out", help="The dataset's folder; it must be new.")],
    task: Annotated[str, typer.Option(help="What the episodes show, as text.")],
    fps: Annotated[int, typer.Option(help="Frames a second.")] = 50,
    as_json: Json = False,
) -> None:
    """Write takes as a LeRobot dataset, version 3."""
    from rote.motion.files.lerobot import export_lerobot

    lost = export_lerobot([load(source) for source in sources], out, fps=fps, task=task)
    if as_json:
        print_json({"folder": str(out), "episodes": len(sources), "fps": fps, "lost": lost})
    else:
        print(f"{out}: {len(sources)} episodes at {fps} frames a second. Not in it: {lost}.")


@app.command()
def plot(
    source: Source,
    out: Annotated[Path, typer.Option("--out", help="A .png or .svg file.")],
    other: Annotated[Path | None, typer.Option(help="A second take, drawn over it.")] = None,
    joint: Joint = None,
    findings: Annotated[bool, typer.Option("--findings", help="Mark what a check finds.")] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Draw the joints over time, their limits shaded."""
    from rote.motion.check import check as checked
    from rote.motion.plot import plot_track

    check_new(out, overwrite)
    track = load(source)
    plot_track(
        track,
        out,
        other=None if other is None else load(other),
        joints=joint and joints_meant(joint, track.names),
        title=source.stem if other is None else (source.stem, other.stem),
        findings=checked(track).findings if findings else (),
    )
    _said(out, as_json)


@app.command()
def show(
    source: Source,
    out: Annotated[Path, typer.Option("--out", help="A .gif, .png or .svg file.")],
    frames: Annotated[int, typer.Option(help="Poses in a .png or .svg.")] = 6,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Draw the robot as a stick figure: a strip of poses, or moving in a .gif."""
    from rote.motion.figure import draw_frames, draw_gif

    check_new(out, overwrite)
    track = load(source)
    if out.suffix.lower() == ".gif":
        draw_gif(track, out)
    else:
        draw_frames(track, out, count=frames)
    _said(out, as_json)


def preview(
    source: Source,
    base: Annotated[
        str, typer.Option(help="fixed: held at the hips; free: standing on its feet.")
    ] = "fixed",
    speed: Annotated[float, typer.Option(help="2 is twice as fast.")] = 1.0,
    payload: Annotated[float, typer.Option(help="What each hand carries, in kg.")] = 0.0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write what the body did to this file.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> int:
    """Run a motion on a simulated body with weight, servos and contacts."""
    import time

    from rote.cli import output as screen
    from rote.motion.files import save
    from rote.motion.preview import preview as previewed

    if out is not None:
        check_new(out, overwrite)
    with screen.waiting("running it on a body"):
        result = previewed(
            load(source),
            base=base,  # type: ignore[arg-type] # checked by preview itself
            speed=speed,
            payload_kg=payload,
            clock=time.perf_counter,
        )
    if out is not None:
        save(result.achieved, out)
    if as_json:
        print_json({**result.as_json(), "findings": [*map(finding_json, result.findings)]})
        return 0 if result.ok else 5
    table = sorted(result.joints, key=lambda joint: -joint.max_error_rad)[:8]
    screen.joints(
        screen.console(),
        ("joint", "off rms", "off most", "peak N.m", "saturated"),
        [
            (
                joint.joint,
                f"{joint.rms_error_rad:.3f}",
                f"{joint.max_error_rad:.3f}",
                f"{joint.peak_torque_nm:.1f}",
                f"{100 * joint.saturated_share:.0f} %",
            )
            for joint in table
        ],
    )
    screen.findings(screen.console(), result.findings)
    print("It would follow." if result.ok else "It would not follow.")
    return 0 if result.ok else 5


def _said(out: Path, as_json: bool) -> None:
    if as_json:
        print_json({"file": str(out)})
    else:
        print(f"Written: {out}")
