"""rote batch: check, convert, fit or simulate many motions at once."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rote.cli.options import EXIT_NOT_PLAYABLE, Json, choice, print_json
from rote.errors import BadRequestError
from rote.motion.formats import FORMATS, NATIVE

if TYPE_CHECKING:
    from rote.batch import BatchProgress, Inputs, Task
    from rote.batch.run import BatchResult

app = typer.Typer(
    name="batch",
    help="Check, convert or fit many motions at once.\n\n"
    "Results are written to DIR as they are done, one JSON line for each motion. Repeat the "
    "command to continue a batch that was interrupted.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SOURCE...",
        help="Files, folders, patterns in quotes, or a .txt file that lists files; with --take, "
        "names of takes, or none for all.",
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="DIR",
        help="The folder for the results: a new one, or that of an earlier run to continue.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", help="Number of processes; one per core by default."),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Use this Ray cluster, like auto or HOST:6379. All nodes must see the same files.",
    ),
]
Takes = Annotated[bool, typer.Option("--take", help="The motions are takes on this computer.")]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Also repeat motions that failed before.")
]
BuildName = Annotated[
    str | None, typer.Option("--build", metavar="BUILD", help="The robot's build, like g1-23.")
]
Contact = Annotated[bool, typer.Option(help="Also check for collisions.")]
Payload = Annotated[float, typer.Option(metavar="KG", help="Mass that each hand carries.")]
Fps = Annotated[
    float | None,
    typer.Option("--fps", metavar="N", help="Frames per second of files that do not state them."),
]
Degrees = Annotated[
    bool, typer.Option("--degrees", help="Files of rote's own formats contain degrees.")
]
Ending = Annotated[
    str, typer.Option("--to", metavar=choice(FORMATS), help="The format of the written files.")
]


@app.command()
def check(
    sources: Sources = None,
    *,
    out: Out,
    build: BuildName = None,
    contact: Contact = True,
    payload: Payload = 0.0,
    fps: Fps = None,
    degrees: Degrees = False,
    take: Takes = False,
    workers: Workers = None,
    ray: RayAddress = None,
    retry_failed: RetryFailed = False,
    as_json: Json = False,
) -> int:
    """Check whether motions can be played. Exit code 5 if one cannot."""
    from rote.batch import Task, TaskKind

    task = Task(
        kind=TaskKind.CHECK,
        build=build,
        contact=contact,
        payload_kg=payload,
        fps=fps,
        degrees=degrees,
    )
    return _run_batch(
        task, _RunOptions(sources or [], out, take, workers, ray, retry_failed, as_json)
    )


@app.command()
def convert(
    sources: Sources = None,
    *,
    out: Out,
    to: Ending = NATIVE.ending,
    build: BuildName = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="With --build: convert even if joints that move are lost."),
    ] = False,
    fps: Fps = None,
    degrees: Degrees = False,
    take: Takes = False,
    workers: Workers = None,
    ray: RayAddress = None,
    retry_failed: RetryFailed = False,
    as_json: Json = False,
) -> int:
    """Convert motions to another format or another build."""
    from rote.batch import Task, TaskKind

    if force and build is None:
        raise BadRequestError("--force does nothing without --build", "Leave it out.")
    task = Task(
        kind=TaskKind.CONVERT,
        build=build,
        force=force,
        ending=_parse_ending(to),
        fps=fps,
        degrees=degrees,
    )
    return _run_batch(
        task, _RunOptions(sources or [], out, take, workers, ray, retry_failed, as_json)
    )


@app.command()
def fit(
    sources: Sources = None,
    *,
    out: Out,
    to: Ending = NATIVE.ending,
    contact: Contact = True,
    payload: Payload = 0.0,
    keep_tempo: Annotated[
        bool, typer.Option("--keep-tempo", help="Keep the duration, even without marks.")
    ] = False,
    slow_down: Annotated[
        bool, typer.Option("--slow-down", help="Make motions slower, even with marks.")
    ] = False,
    fps: Fps = None,
    degrees: Degrees = False,
    take: Takes = False,
    workers: Workers = None,
    ray: RayAddress = None,
    retry_failed: RetryFailed = False,
    as_json: Json = False,
) -> int:
    """Make motions playable, write them, and check the result."""
    from rote.batch import Task, TaskKind

    if keep_tempo and slow_down:
        raise BadRequestError("--keep-tempo and --slow-down exclude each other", "Choose one.")
    task = Task(
        kind=TaskKind.FIT,
        ending=_parse_ending(to),
        contact=contact,
        payload_kg=payload,
        keep_tempo=keep_tempo,
        slow_down=slow_down,
        fps=fps,
        degrees=degrees,
    )
    return _run_batch(
        task, _RunOptions(sources or [], out, take, workers, ray, retry_failed, as_json)
    )


@app.command()
def preview(
    sources: Sources = None,
    *,
    out: Out,
    base: Annotated[
        str,
        typer.Option(
            metavar=choice(("fixed", "free")),
            help="fixed: held at the hips; free: standing on its feet.",
        ),
    ] = "fixed",
    payload: Payload = 0.0,
    fps: Fps = None,
    degrees: Degrees = False,
    take: Takes = False,
    workers: Workers = None,
    ray: RayAddress = None,
    retry_failed: RetryFailed = False,
    as_json: Json = False,
) -> int:
    """Run motions on a simulated body. Exit code 5 if it cannot follow one."""
    from rote.batch import Task, TaskKind

    if base not in {"fixed", "free"}:
        raise BadRequestError(f"unknown base {base!r}", "Use fixed or free.")
    task = Task(
        kind=TaskKind.PREVIEW,
        base=base,  # type: ignore[arg-type] # checked above
        payload_kg=payload,
        fps=fps,
        degrees=degrees,
    )
    return _run_batch(
        task, _RunOptions(sources or [], out, take, workers, ray, retry_failed, as_json)
    )


def _parse_ending(format_name: str) -> str:
    """Return the ending of a format's files, such as `.mcap` for `mcap` or `.MCAP`."""
    ending = f".{format_name.lower().removeprefix('.')}"
    if ending not in FORMATS:
        raise BadRequestError(f"unknown format {format_name!r}", f"Use {choice(FORMATS)}.")
    return ending


class _RunOptions(NamedTuple):
    """Inputs and outputs of a batch, and the processes that run it."""

    sources: list[str]
    out: Path
    take: bool
    workers: int | None
    ray: str | None
    retry_failed: bool
    as_json: bool


def _run_batch(task: "Task", options: _RunOptions) -> int:
    """Run a batch, show its progress and print its summary; return the exit code."""
    import time

    from rote.batch import run_batch
    from rote.cli import output

    if options.ray is not None and options.workers is not None:
        raise BadRequestError("--workers does nothing with --ray", "Leave it out.")
    inputs = _find_inputs(options)
    if not len(inputs):
        raise BadRequestError("no motions were found", "Name files or folders that contain some.")
    begun_s = time.monotonic()
    console = output.console(quiet=options.as_json)
    try:
        with output.show_progress(console, f"{task.kind}") as set_progress:
            result = run_batch(
                task,
                inputs,
                options.out,
                workers=options.workers,
                ray_address=options.ray,
                retry_failed=options.retry_failed,
                on_progress=_make_progress_callback(set_progress, len(inputs), time.monotonic),
            )
    except KeyboardInterrupt:
        if not options.as_json:
            print(
                f"Interrupted. Repeat the command to continue; results so far are in {options.out}."
            )
        raise
    took_s = time.monotonic() - begun_s
    if options.as_json:
        print_json(
            {
                **result.summary.as_json(),
                "processed": result.processed,
                "skipped": result.skipped,
                "took_s": round(took_s, 3),
                "results": str(result.results),
                "report": str(result.report),
            }
        )
    else:
        _print_result(result, took_s)
    return 0 if result.summary.ok else EXIT_NOT_PLAYABLE


def _find_inputs(options: _RunOptions) -> "Inputs":
    from rote.batch import find_inputs, find_takes
    from rote.cli.takes import library

    if options.take:
        return find_takes(library(), options.sources)
    if not options.sources:
        raise BadRequestError("no source was given", "Name files or folders, or add --take.")
    return find_inputs(options.sources, excluded=options.out)


def _make_progress_callback(
    set_progress: Callable[[float, str], None], total: int, clock: Callable[[], float]
) -> "Callable[[BatchProgress], None]":
    """Return a function that shows a batch's progress in the bar, with the remaining time.

    `total` is the number of motions; `clock` returns the time in s.
    """
    begun_s = clock()

    def show_progress(progress: "BatchProgress") -> None:
        processed = progress.done - progress.skipped
        rate_hz = processed / max(clock() - begun_s, 1e-3)
        remaining = _describe_time((total - progress.done) / rate_hz if rate_hz else 0.0)
        set_progress(
            progress.done / total,
            f"{progress.done:,} of {total:,}, {rate_hz:.1f} a second, {remaining} left",
        )

    return show_progress


def _describe_time(seconds: float) -> str:
    minutes, rest_s = divmod(round(seconds), 60)
    return f"{minutes} min {rest_s} s" if minutes else f"{rest_s} s"


def _print_result(result: "BatchResult", took_s: float) -> None:
    from rote.batch.summary import STATUS_TITLES

    summary = result.summary
    rate_hz = result.processed / max(took_s, 1e-3)
    motions = "1 motion" if result.processed == 1 else f"{result.processed:,} motions"
    print(f"{motions} in {_describe_time(took_s)}, {rate_hz:.1f} a second.")
    if result.skipped:
        print(f"{result.skipped:,} were done before.")
    for status, count in summary.statuses.items():
        if count:
            print(f"{count:8,} {STATUS_TITLES[status]}")
    finding_counts = [
        f"{kind} {count:,}"
        for (severity, kind), count in summary.findings.items()
        if severity != "note"
    ]
    if finding_counts:  # the most frequent kinds come first
        print(f"Findings: {', '.join(finding_counts[:8])}")
    print(f"Results: {result.results}")
    print(f"Report:  {result.report}")
