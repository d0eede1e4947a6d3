"""rote motion, the commands that change nothing: info, check, compare, compress, plot, show."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.cli.motion_app import IsTake, Second, Source, app, load
from rote.cli.options import (
    EXIT_NOT_PLAYABLE,
    Json,
    Overwrite,
    choice,
    print_json,
    refuse_unused_options,
)
from rote.cli.wording import finding_json
from rote.errors import BadRequestError
from rote.motion.edit.table import expand_limbs
from rote.platform.atomic_file import check_new
from rote.platform.console_text import one_line

if TYPE_CHECKING:
    from rich.text import Text

    from rote.messages import Interpolation
    from rote.motion.body.preview import Preview
    from rote.motion.check.report import CheckReport
    from rote.motion.keyframes.search import Compressed

Joint = Annotated[
    list[str] | None,
    typer.Option("--joint", metavar="JOINT", help="Only this joint. May be repeated."),
]
Payload = Annotated[float, typer.Option(metavar="KG", help="Mass that each hand carries.")]
_MAX_JOINT_ROWS = 12
"""Tables show this many joints: those that differ most."""


@app.command()
def info(source: Source, take: IsTake = False, as_json: Json = False) -> None:
    """Show the content and origin of a motion."""
    from dataclasses import asdict

    import numpy as np

    from rote.cli.takes import describe_origin
    from rote.motion.edit.operations import jerk_rms

    track = load(source, take=take)
    ranges_rad = np.ptp(track.joints_rad, axis=0)
    most_moved = np.argsort(ranges_rad)[::-1][:5]
    jerk = jerk_rms(track) if len(track) > 3 else None  # a third difference needs four samples
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
                "origin": None if track.origin is None else asdict(track.origin),
                "root": track.root is not None,
                "joints": list(track.names),
                "moved_rad": {
                    name: round(float(range_rad), 6)
                    for name, range_rad in zip(track.names, ranges_rad, strict=True)
                },
                "jerk_rms_rad_s3": jerk,
                "marks": [{"time_s": mark.time_s, "label": mark.label} for mark in track.marks],
                "history": list(track.history),
            }
        )
        return
    print(
        f"{source}: {track.duration_s:.2f} s, {len(track)} samples at {track.rate_hz:.1f} Hz, "
        f"longest gap {1000 * track.longest_gap_s:.0f} ms"
    )
    source_text = one_line(track.source) or "unknown source"
    print(f"{one_line(track.variant)}, {len(track.names)} joints; {source_text}")
    if track.origin is not None:
        print(describe_origin(track.origin))
    if track.root is not None:
        distance_m = np.linalg.norm(np.diff(track.root.position_m[:, :2], axis=0), axis=1).sum()
        print(f"the base moves {distance_m:.2f} m over the floor")
    moves = (f"{one_line(track.names[index])} {ranges_rad[index]:.2f} rad" for index in most_moved)
    print("most moved: " + ", ".join(moves))
    for mark in track.marks:
        print(f"mark at {mark.time_s:.2f} s: {one_line(mark.label)}")
    for number, line in enumerate(track.history, start=1):
        print(f"{number:3}. {one_line(line)}")


@app.command()
def check(
    source: Source,
    variant: Annotated[
        str | None, typer.Option(metavar="BUILD", help="The robot's build, like g1-23.")
    ] = None,
    contact: Annotated[bool, typer.Option(help="Also check for collisions.")] = True,
    payload: Payload = 0.0,
    take: IsTake = False,
    as_json: Json = False,
) -> int:
    """Check whether a motion can be played. Exit code 5 if it cannot."""
    from rote.cli import output
    from rote.model.registry import family_of, find_build
    from rote.motion.check.rules import check as check_track
    from rote.motion.track_build import family_of as track_family

    with output.show_spinner("checking"):
        track = load(source, take=take)
        report = check_track(track, build=variant, contact=contact, payload_kg=payload)
    build = None if variant is None else find_build(variant)
    needs_force = report.needs_force(track_family(track) if build is None else family_of(build))
    if as_json:
        findings = [*map(finding_json, report.findings)]
        print_json({**report.as_json(), "needs_force": needs_force, "findings": findings})
    else:
        out = output.console()
        output.print_findings(out, report.findings)
        out.print(_describe_verdict(report, needs_force))
    return 0 if report.ok else EXIT_NOT_PLAYABLE


def _describe_verdict(report: "CheckReport", needs_force: bool) -> "Text":
    from rote.cli.output import styled

    if not report.ok:
        return styled(("Do not play this.", "bold red"))
    if report.warnings:
        advice = "rote play requires --force." if needs_force else "review them first."
        return styled(("Fit, with warnings:", "yellow"), f" {advice}")
    return styled(("Fit to be played.", "green"))


@app.command()
def compare(source: Source, other: Second, take: IsTake = False, as_json: Json = False) -> None:
    """Compare two takes, aligned in time."""
    from dataclasses import asdict

    from rote.cli import output
    from rote.motion.compare import compare as compare_tracks

    with output.show_spinner("comparing"):
        result = compare_tracks(load(source, take=take), load(other, take=take))
    if as_json:
        print_json(asdict(result))
        return
    worst_joints = sorted(result.joints, key=lambda joint: -joint.max_rad)[:_MAX_JOINT_ROWS]
    lag = f"{abs(result.lag_s):.2f} s {'earlier' if result.lag_s < 0 else 'later'}"
    print(
        f"{result.rms_rad:.3f} rad rms, {result.max_rad:.3f} rad at most; the second begins {lag} "
        f"and its timing differs by {result.warp_s:.2f} s"
    )
    output.print_joint_table(
        output.console(),
        ("joint", "rms", "most", "at", "jerk", "jerk of OTHER"),
        [
            (
                joint.joint,
                f"{joint.rms_rad:.3f}",
                f"{joint.max_rad:.3f}",
                f"{joint.time_s:.2f} s",
                f"{joint.jerk_rad_s3:.0f}",
                f"{joint.other_jerk_rad_s3:.0f}",
            )
            for joint in worst_joints
        ],
    )


@app.command()
def best(
    sources: Annotated[list[Path], typer.Argument(metavar="FILE", help="Takes of one motion.")],
    take: IsTake = False,
    as_json: Json = False,
) -> None:
    """Find the take that is nearest to all the others."""
    from rote.motion.compare import best_of

    chosen = sources[best_of([load(source, take=take) for source in sources])]
    if as_json:
        print_json({"best": str(chosen)})
    else:
        print(chosen)


Budget = Annotated[int | None, typer.Option(metavar="N", help="Maximum number of keyframes.")]
Bound = Annotated[
    float | None,
    typer.Option(metavar="RAD", help="Find the fewest keyframes within this error."),
]
HandBound = Annotated[
    float | None,
    typer.Option(metavar="MM", help="With --bound: also keep the hands within this distance."),
]
InterpolationName = Annotated[
    str,
    typer.Option(metavar=choice(("linear", "smooth")), help="Interpolation between keyframes."),
]
Measure = Annotated[
    str,
    typer.Option(metavar=choice(("max", "rms")), help="With --budget: which error to minimise."),
]
FreeValues = Annotated[
    bool, typer.Option("--free", help="Allow keyframe values that are not samples; linear only.")
]
Exact = Annotated[
    bool,
    typer.Option("--exact", help="With --bound: find the exact minimum, however long it takes."),
]
ForceCoarse = Annotated[
    bool, typer.Option("--force", help="Show them even if the error is too large.")
]
WithKeyframes = Annotated[
    bool, typer.Option("--keyframes", help="With --json: include the keyframes.")
]
KeyframesFile = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write the motion of the keyframes to this file."),
]


@app.command()
def compress(
    ctx: typer.Context,
    source: Source,
    budget: Budget = None,
    bound: Bound = None,
    hand_mm: HandBound = None,
    interpolation: InterpolationName = "linear",
    measure: Measure = "max",
    free: FreeValues = False,
    exact: Exact = False,
    force: ForceCoarse = False,
    keyframes: WithKeyframes = False,
    out: KeyframesFile = None,
    take: IsTake = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Compress a motion to keyframes, and show the error."""
    from rote.cli.output import show_spinner
    from rote.motion.files import save
    from rote.motion.keyframes import search

    _check_target(budget, bound, hand_mm)
    for names, has_no_effect, reason in (
        ({"exact"}, bound is None, "with --budget"),
        ({"measure", "force"}, bound is not None, "with --bound"),
        ({"overwrite"}, out is None, "without --out"),
        ({"keyframes"}, not as_json, "without --json"),
    ):
        if has_no_effect:
            refuse_unused_options(ctx, names, reason)
    interpolation_kind = _parse_interpolation(interpolation)
    if out is not None:
        check_new(out, overwrite)
    track = load(source, take=take)
    with show_spinner("searching"):
        if bound is not None:
            result = search.compress_to_bound(
                track, bound, interpolation_kind, hand_mm=hand_mm, free=free, exact=exact
            )
        else:
            assert budget is not None
            result = search.compress_to_budget(
                track,
                budget,
                interpolation_kind,
                measure,  # type: ignore[arg-type] # checked by the search itself
                free=free,
            )
    if result.absurd and not force and bound is None:
        raise _too_coarse_error(result)
    if out is not None:
        save(search.played_track(track, result), out)
    if as_json:
        print_json(_make_document(result, track.names if keyframes else ()))
    else:
        _print_compressed(result)


def _parse_interpolation(name: str) -> "Interpolation":
    from rote.messages import Interpolation

    try:
        return Interpolation[name.upper()]
    except KeyError:
        raise BadRequestError(f"unknown interpolation {name!r}", "Use linear or smooth.") from None


def _print_compressed(result: "Compressed") -> None:
    count = len(result.keyframes)
    print(
        f"{count} keyframe{'s' * (count != 1)}, {result.max_error_rad:.4f} rad off at most "
        f"({result.worst_joint} at {result.worst_time_s:.2f} s), {result.rms_error_rad:.4f} rad rms"
    )
    if (hand := result.hand) is not None:
        print(f"The {hand.hand} hand is {hand.error_mm:.1f} mm off at most.")


def _check_target(budget: int | None, bound: float | None, hand_mm: float | None) -> None:
    """Raise an error unless exactly one of --budget and --bound is given, and fits --hand-mm."""
    if (budget is None) == (bound is None):
        raise BadRequestError(
            "the compression target is missing or given twice", "Use --budget or --bound."
        )
    if budget is not None and hand_mm is not None:
        raise BadRequestError(
            "--hand-mm cannot be combined with --budget",
            "Use it with --bound; both limit the error.",
        )


def _too_coarse_error(result: "Compressed") -> BadRequestError:
    from rote.motion.keyframes.search import ABSURD_RAD

    return BadRequestError(
        f"{len(result.keyframes)} keyframes miss the motion by {result.max_error_rad:.3f} rad "
        f"({result.worst_joint} at {result.worst_time_s:.2f} s); with "
        f"more than {ABSURD_RAD} rad the result is another motion",
        f"Allow more keyframes, or set the error: --bound {ABSURD_RAD}. A file keeps the motion at "
        "full rate. --force shows these keyframes anyway.",
    )


def _make_document(result: "Compressed", names: tuple[str, ...]) -> dict[str, Any]:
    """Return the JSON document; it contains the keyframes if joint names are given."""
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
                "joint": keyframe.joint,
                "name": names[keyframe.joint],
                "time_ms": keyframe.time_ms,
                "value_rad": keyframe.value_rad,
            }
            for keyframe in result.keyframes
        ]
    return document


@app.command()
def lerobot(
    sources: Annotated[list[Path], typer.Argument(metavar="FILE", help="One episode each.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="FOLDER", help="The dataset's folder; it must be new, or --append."
        ),
    ],
    task: Annotated[
        list[str],
        typer.Option(
            metavar="TASK",
            help="Description of the task; once for all episodes, or once for each file.",
        ),
    ],
    fps: Annotated[int, typer.Option(metavar="N", help="Frames per second.")] = 50,
    robot_type: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="TYPE",
            help="The robot type. With unitree_g1 the joints get the only names that LeRobot's own "
            "driver accepts.",
        ),
    ] = "",
    velocities: Annotated[
        bool, typer.Option("--velocities", help="Add velocities, computed from the angles.")
    ] = False,
    append: Annotated[
        bool, typer.Option("--append", help="Add the episodes to the dataset in FOLDER.")
    ] = False,
    licence: Annotated[
        str,
        typer.Option(
            "--licence", metavar="ID", help="Licence for the dataset card, like cc-by-4.0."
        ),
    ] = "",
    take: IsTake = False,
    as_json: Json = False,
) -> None:
    """Write takes as a LeRobot dataset, version 3, with a card."""
    from rote.motion.files.lerobot import DRIVER, export_lerobot

    lost = export_lerobot(
        [load(source, take=take) for source in sources],
        out,
        fps=fps,
        task=task[0] if len(task) == 1 else task,
        robot_type=robot_type,
        as_driver=robot_type == DRIVER,
        velocities=velocities,
        append=append,
        licence=licence,
    )
    if as_json:
        print_json({"folder": str(out), "episodes": len(sources), "fps": fps, "lost": lost})
    else:
        more = "more " if append else ""
        print(f"{out}: {len(sources)} {more}episodes at {fps} frames a second. Not in it: {lost}.")


@app.command()
def plot(
    source: Source,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="A .png or .svg file.")],
    other: Annotated[
        Path | None, typer.Option(metavar="OTHER", help="A second take, drawn over it.")
    ] = None,
    joint: Joint = None,
    findings: Annotated[bool, typer.Option("--findings", help="Mark what a check finds.")] = False,
    take: IsTake = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Draw the joints over time, their limits shaded."""
    from rote.motion.check.rules import check as check_track
    from rote.motion.draw.plot import plot_track

    check_new(out, overwrite)
    track = load(source, take=take)
    plot_track(
        track,
        out,
        other=None if other is None else load(other, take=take),
        joints=joint and expand_limbs(joint, track.names),
        title=source.stem if other is None else (source.stem, other.stem),
        findings=check_track(track).findings if findings else (),
    )
    _print_written(out, as_json)


@app.command()
def spread(
    sources: Annotated[list[Path], typer.Argument(metavar="FILE", help="Takes of one motion.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Draw it: a .png or .svg file.")
    ] = None,
    joint: Joint = None,
    take: IsTake = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Show how much several takes of one motion differ, and plot their range."""
    from rote.cli import output
    from rote.motion.draw.plot import plot_spread, require_picture_name
    from rote.motion.draw.spread import spread as compute_spread

    if out is not None:
        require_picture_name(out)  # before the aligning, which takes long
        check_new(out, overwrite)
    with output.show_spinner("aligning"):
        band = compute_spread([load(source, take=take) for source in sources])
    names = band.mean.names if joint is None else expand_limbs(joint, band.mean.names)
    widest = [(name, *band.widest(name)) for name in band.mean.choose_joints(names)]
    if out is not None:
        title = f"{len(sources)} takes: {', '.join(source.stem for source in sources)}"
        plot_spread(band, out, joints=joint and names, title=title)
    if as_json:
        joints = {
            name: {"width_rad": width_rad, "time_s": time_s} for name, width_rad, time_s in widest
        }
        print_json({"takes": band.takes, "joints": joints, "file": out and str(out)})
        return
    widest.sort(key=lambda row: -row[1])
    output.print_joint_table(
        output.console(),
        ("joint", "differs by", "at"),
        [
            (name, f"{width_rad:.3f} rad", f"{time_s:.2f} s")
            for name, width_rad, time_s in widest[:_MAX_JOINT_ROWS]
        ],
    )
    if out is not None:
        print(f"Written: {out}")


@app.command()
def show(
    ctx: typer.Context,
    source: Source,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="A .gif, .png or .svg file.")],
    frames: Annotated[int, typer.Option(metavar="N", help="Poses in a .png or .svg.")] = 6,
    take: IsTake = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Draw the robot as a stick figure: a strip of poses, or moving in a .gif."""
    from rote.motion.draw.figure import draw_frames, draw_gif

    is_gif = out.suffix.lower() == ".gif"
    if is_gif:
        refuse_unused_options(ctx, {"frames"}, "in a .gif, which shows the whole motion")
    check_new(out, overwrite)
    track = load(source, take=take)
    if is_gif:
        draw_gif(track, out)
    else:
        draw_frames(track, out, count=frames)
    _print_written(out, as_json)


BaseName = Annotated[
    str,
    typer.Option(
        metavar=choice(("fixed", "free")),
        help="fixed: held at the hips; free: standing on its feet.",
    ),
]
Speed = Annotated[float, typer.Option(metavar="FACTOR", help="2 is twice as fast.")]
SimulatedFile = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write the simulated motion to this file."),
]


def preview(
    ctx: typer.Context,
    source: Source,
    base: BaseName = "fixed",
    speed: Speed = 1.0,
    payload: Payload = 0.0,
    out: SimulatedFile = None,
    take: IsTake = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> int:
    """Run a motion on a simulated body with weight, servos and contacts."""
    import time

    from rote.cli.output import show_spinner
    from rote.motion.body.preview import preview as run_preview
    from rote.motion.files import save

    if out is None:
        refuse_unused_options(ctx, {"overwrite"}, "without --out")
    else:
        check_new(out, overwrite)
    with show_spinner("simulating"):
        result = run_preview(
            load(source, take=take),
            base=base,  # type: ignore[arg-type] # checked by preview itself
            speed=speed,
            payload_kg=payload,
            clock=time.perf_counter,
        )
    if out is not None:
        save(result.achieved, out)
    if as_json:
        print_json({**result.as_json(), "findings": [*map(finding_json, result.findings)]})
    else:
        _print_preview(result)
    return 0 if result.ok else EXIT_NOT_PLAYABLE


def _print_preview(result: "Preview") -> None:
    from rote.cli import output

    screen = output.console()
    worst_joints = sorted(result.joints, key=lambda joint: -joint.max_error_rad)[:8]
    output.print_joint_table(
        screen,
        ("joint", "off rms", "off most", "peak N.m", "saturated"),
        [
            (
                joint.joint,
                f"{joint.rms_error_rad:.3f}",
                f"{joint.max_error_rad:.3f}",
                f"{joint.peak_torque_nm:.1f}",
                f"{100 * joint.saturated_share:.0f} %",
            )
            for joint in worst_joints
        ],
    )
    output.print_findings(screen, result.findings)
    print("The robot would follow this motion." if result.ok else "The robot would not follow it.")


def _print_written(out: Path, as_json: bool) -> None:
    if as_json:
        print_json({"file": str(out)})
    else:
        print(f"Written: {out}")
