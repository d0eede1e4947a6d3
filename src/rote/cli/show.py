"""rote show: a show as a file, checked, rehearsed, run, stopped and reported."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.cli.options import Json, Overwrite, print_json, run
from rote.cli.stage import HERE, StageDir
from rote.errors import BadRequestError, RoteError
from rote.platform.atomic_file import appearing, check_new
from rote.platform.console_text import one_line

if TYPE_CHECKING:
    from rich.console import Console

    from rote.stage.report import SectionReport, ShowRecorder, ShowReport
    from rote.stage.show.check import CheckedShow
    from rote.stage.show.file import Cast
    from rote.stage.stage import ShowFiles, Stage

app = typer.Typer(
    name="show",
    help="A show of several robots, sound and light, as a file.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
REHEARSAL_PACE = 0.5
_KEPT = Path("show-report.json")
ShowFile = Annotated[Path, typer.Argument(metavar="FILE", help="The show's file.")]
CastFile = Annotated[
    Path, typer.Option("--cast", metavar="CAST", help="The cast: which robot plays which role.")
]
Osc = Annotated[
    str,
    typer.Option(
        "--osc", metavar="HOST:PORT", help="Listen here for OSC: /rote/go, /rote/stop, triggers."
    ),
]
Automatic = Annotated[
    bool, typer.Option("--automatic", help="Run all sections without waiting for GO.")
]
Mute = Annotated[
    bool, typer.Option("--mute", help="Do not play sounds on this computer; only their timing.")
]
Force = Annotated[bool, typer.Option("--force", help="Run despite warnings.")]
Report = Annotated[
    Path, typer.Option("--report", metavar="FILE", help="Where the report is written.")
]


@app.command()
def schema() -> None:
    """Print the JSON Schema of a show."""
    from rote.stage.show.file import schema as made

    print(json.dumps(made(), indent=2))


@app.command()
def check(
    file: ShowFile,
    cast: Annotated[
        Path | None, typer.Option("--cast", metavar="CAST", help="Check the cast too.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Compile and check every role: limits, speed, contact, balance, overlap, cues, files.

    Exit code 1 if something forbids to run it.
    """
    checked, _ = _load_checked(file, cast, quiet=as_json)
    if as_json:
        print_json(checked.as_json())
        return 0 if checked.ok else 1
    _print_findings(checked)
    print("It can be run." if checked.ok else "It cannot be run.")
    return 0 if checked.ok else 1


def _load_checked(file: Path, cast: Path | None, *, quiet: bool) -> "tuple[CheckedShow, ShowFiles]":
    from rote.cli import output
    from rote.stage.show.check import check_show
    from rote.stage.stage import read_cast, read_show

    show, own = read_show(file)
    named = None if cast is None else read_cast(cast)
    parts = max(1, len(show.sections) * (len(show.roles) + 1))
    done = 0
    with output.bar(output.console(quiet=quiet), "checking") as move:

        def progress(section: str, role: str) -> None:
            nonlocal done
            move(done / parts, f"{section} {role}")
            done += 1

        return check_show(show, own.take, own.sound_s, cast=named, progress=progress), own


def _print_findings(checked: "CheckedShow") -> None:
    from rote.cli import output
    from rote.cli.wording import worded

    out = output.console()
    for each in checked.findings:
        severity = each.finding.severity.value
        style = (severity, output.SEVERITIES[severity])
        message = one_line(f" {each.location}: {worded(each.finding.message)}")
        out.print(output.styled(style, message))
        if each.finding.remedy:
            out.print(f"      {worded(each.finding.remedy)}", style="dim")


@app.command("run")
def run_show(
    file: ShowFile,
    cast: CastFile,
    stage: StageDir = HERE,
    automatic: Automatic = False,
    osc: Osc = "",
    mute: Mute = False,
    report: Report = _KEPT,
    overwrite: Overwrite = False,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Run a show. Enter is GO; s and Enter, or Ctrl-C, is STOP for all robots."""
    show_run = _ShowRun(file, cast, stage, automatic, osc, mute, report, overwrite, force, as_json)
    return run(show_run.play(pace=1.0, motion=True))


@app.command()
def rehearse(
    file: ShowFile,
    cast: CastFile,
    stage: StageDir = HERE,
    lights_only: Annotated[
        bool, typer.Option("--lights-only", help="Only light, sound and OSC; no robot moves.")
    ] = False,
    automatic: Automatic = False,
    osc: Osc = "",
    mute: Mute = False,
    report: Report = _KEPT,
    overwrite: Overwrite = False,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Rehearse a show at half speed; the robots' own actions learn how early to begin."""
    show_run = _ShowRun(file, cast, stage, automatic, osc, mute, report, overwrite, force, as_json)
    return run(show_run.play(1.0 if lights_only else REHEARSAL_PACE, motion=not lights_only))


class _ShowRun:
    """A show that is played from the command line, with its options."""

    def __init__(
        self,
        file: Path,
        cast: Path,
        stage: Path,
        automatic: bool,
        osc: str,
        mute: bool,
        report: Path,
        overwrite: bool,
        force: bool,
        as_json: bool,
    ) -> None:
        from rote.cli import output

        self._file, self._cast, self._stage = file, cast, stage
        self._automatic, self._osc, self._force = automatic, osc, force
        self._mute = mute
        self._report, self._as_json = report, as_json
        if not overwrite:
            check_new(report)
        self._out: Console = output.console(quiet=as_json)

    async def play(self, pace: float, *, motion: bool) -> int:
        from rote.stage.stage import open_stage, read_cast

        checked, files = _load_checked(self._file, self._cast, quiet=self._as_json)
        self._permit(checked)
        cast = read_cast(self._cast)
        async with open_stage(self._stage, tell=self._notify, mute=self._mute) as opened:
            await self._listen_for_osc(opened)
            return await self.conduct(opened, checked, files, cast, pace, motion=motion)

    async def conduct(
        self,
        opened: "Stage",
        checked: "CheckedShow",
        files: "ShowFiles",
        cast: "Cast",
        pace: float,
        *,
        motion: bool,
    ) -> int:
        """Play a show on an open stage, and return the exit code.

        However it ends, all robots are stopped and the report contains that.
        """
        import asyncio

        from rote.stage.conductor import SectionError
        from rote.stage.report import ShowRecorder

        recorder = ShowRecorder(opened.conductor, str(self._file), self._save, self._notify)
        report = recorder.report
        try:
            async with recorder:
                try:
                    await self._play_sections(
                        recorder, opened, checked, files, cast, pace, motion=motion
                    )
                except SectionError:
                    raise
                except (asyncio.CancelledError, KeyboardInterrupt):
                    await opened.stop("the conductor's keyboard")
                    raise
                except BaseException:
                    await opened.stop("an error of the conductor")
                    raise
        except SectionError:
            if not self._as_json:
                raise
        finally:
            self._print_stop(report)
        if self._as_json:
            with suppress(BrokenPipeError):  # the exit code must still report how it ended
                print_json(report.as_json())
        return 0 if report.complete and not recorder.fault else SectionError.exit_code

    async def _play_sections(
        self,
        recorder: "ShowRecorder",
        opened: "Stage",
        checked: "CheckedShow",
        files: "ShowFiles",
        cast: "Cast",
        pace: float,
        *,
        motion: bool,
    ) -> None:
        self._notify(f"waiting for {', '.join(sorted(cast.robots.values()))}")
        missing = await opened.conductor.wait_for_agents(tuple(cast.robots.values()), 30.0)
        if missing:
            raise opened.absence(missing)
        keys = _Keys(opened, self._notify)
        try:
            async for section in opened.sections(
                checked,
                cast,
                pace=pace,
                motion=motion,
                automatic=self._automatic,
                files=files,
            ):
                recorder.add(section)
                self._print_section(section)
        finally:
            keys.close()

    def _permit(self, checked: "CheckedShow") -> None:
        from rote.findings import Severity

        checked.require()
        warnings = [f for f in checked.findings if f.finding.severity is Severity.WARNING]
        if warnings and not self._force:
            first = warnings[0]
            raise BadRequestError(
                f"{first.location}: {first.finding.message} ({len(warnings)} warnings in all)",
                "Look at them with `rote show check`, then run it with --force.",
            )

    async def _listen_for_osc(self, stage: "Stage") -> None:
        if self._osc:
            from rote.transport.osc import PORT
            from rote.transport.udp.link import host_and_port

            host, port = await stage.listen(*host_and_port(self._osc, PORT))
            self._notify(f"Listening for OSC at {host}:{port}")

    def _notify(self, text: str) -> None:
        self._print(text)

    def _print(self, line: str, style: str | None = None) -> None:
        """Print a line, if the output can still be written: a show does not depend on it."""
        with suppress(OSError):
            self._out.print(line, style=style)

    def _print_section(self, section: "SectionReport") -> None:
        skews_s = section.skews_s
        apart = f", within {1000 * max(skews_s):.1f} ms" if skews_s else ""
        late = f"; late: {', '.join(section.late)}" if section.late else ""
        lost = f"; lost: {', '.join(section.lost)}" if section.lost else ""
        count = len(section.robots)
        self._print(f"{section.name}: played by {count} robots{apart}{late}{lost}")
        for name in section.incomplete:
            if name not in section.lost:
                self._print(_incomplete_line(name, section.faults), style="bold red")

    def _print_stop(self, report: "ShowReport") -> None:
        if line := _stop_line(report.as_json()):
            self._print(line, style="bold red" if report.unconfirmed else None)

    async def _save(self, report: dict[str, Any]) -> None:
        import asyncio

        def write() -> None:
            with appearing(self._report) as file:
                file.write(json.dumps(report, indent=1).encode())

        await asyncio.to_thread(write)


class _Keys:
    """Reads the keyboard while a show runs: Enter is GO, s and Enter is STOP."""

    def __init__(self, opened: "Stage", tell: Callable[[str], None]) -> None:
        import asyncio

        from rote.cli import output

        self._opened, self._notify = opened, tell
        self._task = (
            asyncio.get_running_loop().create_task(self._read())
            if output.stdin_is_terminal()
            else None
        )

    async def _read(self) -> None:
        from rote.cli import output

        self._notify("Enter is GO. s and Enter is STOP for all robots.")
        while True:
            typed = await output.enter_pressed()
            if not typed:  # Ctrl-D, or the terminal is gone: neither is GO
                if not output.stdin_is_terminal():
                    self._notify("The keyboard is gone: use `rote show stop` to stop.")
                    return
                continue
            if typed.strip().lower() in {"s", "stop"}:
                await self._opened.stop("the conductor's keyboard")
            elif not typed.strip():
                self._opened.go()

    def close(self) -> None:
        """Stop reading the keyboard."""
        if self._task is not None:
            self._task.cancel()


@app.command()
def stop(stage: StageDir = HERE, as_json: Json = False) -> int:
    """Stop all robots on a stage, from any terminal of the conductor's computer."""
    return run(_stop(stage, as_json))


async def _stop(folder: Path, as_json: bool) -> int:
    from rote.stage.watcher import watching

    try:
        async with watching(folder) as watcher:
            missing = await watcher.stop("rote show stop")
            answered, unheard = sorted(watcher.agents), watcher.missing
    except RoteError as error:
        error.headline = "the stop did NOT reach the stage; use the remotes (L2+B)"
        raise
    if as_json:
        print_json({"robots": answered, "unconfirmed": list(missing), "unheard": list(unheard)})
        return 1 if missing or not answered else 0
    if missing:
        print(f"Not confirmed by {', '.join(missing)}: use the remote!")
    if stopped := [name for name in answered if name not in missing]:
        print(f"Stopped: {', '.join(stopped)}.")
    if not answered:
        print("No robot answered on the stage. If a robot moves, use its remote!")
    elif unheard:
        print(f"No answer from: {', '.join(unheard)}. If one of them moves, use its remote!")
    return 1 if missing or not answered else 0


@app.command()
def report(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A report of `run`.")] = _KEPT,
    as_json: Json = False,
) -> None:
    """Show the report of a show that was run or rehearsed."""
    try:
        document = json.loads(file.read_text("utf-8"))
        lines = list(_report_lines(document))
    except OSError as error:
        raise BadRequestError(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadRequestError(f"{file} is not a report of a show") from None
    if as_json:
        print_json(document)
        return
    for line in lines:
        print(one_line(line))


def _report_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yield how a report is shown; reports of older versions have fewer fields."""
    if document.get("run"):
        yield f"{document['show']}: run {document['run'][:8]}, begun at {document['began']}"
    for section in document["sections"]:
        yield from _section_lines(section)
    if not document.get("over", True):
        playing = f" in the section {document['playing']!r}" if document["playing"] else ""
        yield f"The report ends here{playing}: the show is still running, or its conductor died."
    if document.get("ended"):
        yield document["ended"]
    for robot in document.get("lost", ()):
        yield f"  {robot}: lost"
    if line := _stop_line(document):
        yield line


def _stop_line(document: dict[str, Any]) -> str:
    """Return how a stop in a report is shown; "" if there was none."""
    if unconfirmed := document.get("unconfirmed"):
        return f"STOP was not confirmed by {', '.join(unconfirmed)}: use the remote!"
    within_ms = document.get("stopped_within_ms")
    return "" if within_ms is None else f"STOP was confirmed by all within {within_ms:.0f} ms."


def _incomplete_line(name: str, faults: Mapping[str, str]) -> str:
    reason = f": {faults[name]}" if faults.get(name) else ""
    return f"  {name}: did not complete it{reason}"


def _section_lines(section: dict[str, Any]) -> Iterator[str]:
    """Yield how a section of a report is shown."""
    name, skew_ms = section["name"], section["skew_ms"]
    if skew_ms["max"] is None:
        yield f"{name}: no robot moved"
    else:
        yield f"{name}: half within {skew_ms['p50']} ms, all within {skew_ms['max']} ms"
    for robot, each in section["robots"].items():
        if each is not None:
            exact = f"known to {each['resolution_ms']} ms"
            yield f"  {robot}: {each['late_ms']} ms late ({exact})"
    for cue in section["cues"]:
        device = cue["by"] or "here"
        when = "failed" if cue["late_ms"] is None else f"{cue['late_ms']} ms late"
        yield f"  {device}: {cue['cue']}: {when}{' (too late)' if cue['late'] else ''}"
    lost = section.get("lost", ())
    for robot in section.get("incomplete", ()):
        if robot not in lost:
            yield _incomplete_line(robot, section.get("faults", {}))
    for robot in lost:
        yield f"  {robot}: lost"
