"""rote show: a show as a file, checked, rehearsed, run, stopped and reported."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.cli.options import Json, Overwrite, print_json, run
from rote.cli.stage import StageDir
from rote.errors import BadRequestError, RoteError
from rote.platform.atomic_file import appearing, check_new
from rote.platform.console_text import one_line
from rote.stage import DEFAULT_FOLDER

if TYPE_CHECKING:
    from rich.console import Console

    from rote.stage.conductor import SectionError
    from rote.stage.report import SectionReport, ShowRecorder, ShowReport
    from rote.stage.show.check import CheckedShow
    from rote.stage.show.file import Cast
    from rote.stage.show_files import ShowFiles
    from rote.stage.stage import Stage
    from rote.wire.stage import Stop

app = typer.Typer(
    name="show",
    help="A show of several robots, sound and light, as a file.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
REHEARSAL_PACE = 0.5
_DEFAULT_REPORT = Path("show-report.json")
_KEYS_HELP = (
    "Keys, each with Enter: nothing GO | s STOP all robots | p pause | b BACK | n skip | "
    "j NAME jump | "
    "m ROBOT mute | u ROBOT unmute | r reset a STOP | q end"
)
_SOUNDS = "sounds"
"""The name of the offset of a robot's sounds on the command line."""
_PAUSED = "Paused. It is NOT a stop: the arms stay stiff. Enter lets all go on; s is STOP."
_GATHER_S = 30.0
"""Timeout in seconds for all robots of a cast to be connected."""
_TAKEOVER_GATHER_S = 5.0
"""The same after a takeover; then the cue list opens without the others."""
_DISPLAY_S, _REMAINING_S = 0.2, 5.0
"""Intervals in seconds at which the cue list is compared, and the remaining time is printed."""
ShowFile = Annotated[Path, typer.Argument(metavar="FILE", help="The show's file.")]
CastFile = Annotated[
    Path, typer.Option("--cast", metavar="CAST", help="The cast: which robot plays which role.")
]
Osc = Annotated[
    str,
    typer.Option(
        "--osc",
        metavar="HOST:PORT",
        help="Listen here for OSC: /rote/go, /rote/stop, cues, triggers.",
    ),
]
Automatic = Annotated[
    bool, typer.Option("--automatic", help="Run all sections without waiting for GO.")
]
Mute = Annotated[
    bool, typer.Option("--mute", help="Do not play sounds on this computer; only their timing.")
]
First = Annotated[
    str, typer.Option("--from", metavar="NAME", help="Begin with this section; it waits for GO.")
]
Standby = Annotated[
    bool,
    typer.Option(
        "--standby",
        help="Wait beside another conductor of a stage with routers; take over if it is lost. "
        "q ends the standby.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Run despite warnings.")]
Report = Annotated[
    Path, typer.Option("--report", metavar="FILE", help="Where the report is written.")
]


@app.command()
def schema() -> None:
    """Print the JSON Schema of a show."""
    from rote.stage.show.file import schema as make_schema

    print(json.dumps(make_schema(), indent=2))


@app.command()
def check(
    file: ShowFile,
    cast: Annotated[
        Path | None, typer.Option("--cast", metavar="CAST", help="Check the cast too.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Compile and check every role: limits, speed, contact, balance, overlap, cues, files.

    Exit code 1 if it cannot be run.
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
    from rote.stage.show_files import read_cast, read_show
    from rote.stage.show_lock import check_lock

    show, files = read_show(file)
    if (locked := check_lock(file, show, files)) and not quiet:
        print(f"Locked on {locked}, and unchanged since.")
    parsed_cast = None if cast is None else read_cast(cast)
    parts = max(1, len(show.sections) * (len(show.roles) + 1))
    checked_parts = 0
    with output.show_progress(output.console(quiet=quiet), "checking") as set_progress:

        def show_part(section: str, role: str) -> None:
            nonlocal checked_parts
            set_progress(checked_parts / parts, f"{section} {role}")
            checked_parts += 1

        return check_show(
            show, files.take, files.sound_s, cast=parsed_cast, progress=show_part
        ), files


def _print_findings(checked: "CheckedShow") -> None:
    from rote.cli import output
    from rote.cli.wording import worded

    out = output.console()
    for each in checked.repeated_findings:
        severity = each.finding.severity.value
        style = (severity, output.SEVERITIES[severity])
        message = one_line(f" {each.location}: {worded(each.finding.message)}")
        out.print(output.styled(style, message))
        if each.finding.remedy:
            out.print(f"      {worded(each.finding.remedy)}", style="dim")


@app.command()
def sheet(
    file: ShowFile,
    cast: Annotated[
        Path | None, typer.Option("--cast", metavar="CAST", help="Name the robots, too.")
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="Print a page for a browser.")] = False,
    as_json: Json = False,
) -> None:
    """Print the cue sheet: one line per clip and cue, with time, role, what and trigger."""
    from rote.cli import output
    from rote.stage.show.sheet import TITLES, make_sheet, sheet_page
    from rote.stage.show_files import read_cast, read_show

    show, _ = read_show(file)
    lines = make_sheet(show, None if cast is None else read_cast(cast).robots)
    if as_json:
        print_json({"title": show.title, "lines": [line._asdict() for line in lines]})
    elif html:
        print(sheet_page(show, lines), end="")
    else:
        output.print_table(output.console(), TITLES, lines)


@app.command()
def lock(file: ShowFile, as_json: Json = False) -> None:
    """Lock a show: it is not run if its file, a take or a sound has changed since."""
    from rote.stage.show_files import read_show
    from rote.stage.show_lock import lock_show

    path = lock_show(file, *read_show(file))
    print_json({"lock": str(path)}) if as_json else print(f"Locked: {path}.")


@app.command()
def unlock(file: ShowFile, as_json: Json = False) -> None:
    """Unlock a show, so that it can be changed and run."""
    from rote.stage.show_lock import unlock_show

    was_locked = unlock_show(file)
    if as_json:
        print_json({"unlocked": was_locked})
    else:
        print("Unlocked." if was_locked else "It was not locked.")


@app.command("run")
def run_show(
    file: ShowFile,
    cast: CastFile,
    stage: StageDir = DEFAULT_FOLDER,
    first: First = "",
    standby: Standby = False,
    automatic: Automatic = False,
    osc: Osc = "",
    mute: Mute = False,
    report: Report = _DEFAULT_REPORT,
    overwrite: Overwrite = False,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Run a show as a cue list. Enter is GO; s and Enter, or Ctrl-C, is STOP for all robots."""
    show_run = _ShowRun(
        file, cast, stage, automatic, osc, mute, report, overwrite, force, as_json, first, standby
    )
    return run(show_run.play(pace=1.0, motion=True))


@app.command()
def rehearse(
    file: ShowFile,
    cast: CastFile,
    stage: StageDir = DEFAULT_FOLDER,
    lights_only: Annotated[
        bool, typer.Option("--lights-only", help="Only light, sound and OSC; no robot moves.")
    ] = False,
    first: First = "",
    automatic: Automatic = False,
    osc: Osc = "",
    mute: Mute = False,
    report: Report = _DEFAULT_REPORT,
    overwrite: Overwrite = False,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Rehearse a show at half speed, and measure how early robots' own actions must begin."""
    show_run = _ShowRun(
        file, cast, stage, automatic, osc, mute, report, overwrite, force, as_json, first
    )
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
        first: str = "",
        standby: bool = False,
    ) -> None:
        from rote.cli import output

        self._file, self._cast, self._stage_folder = file, cast, stage
        self._automatic, self._osc, self._force = automatic, osc, force
        self._mute, self._first = mute, first
        self._standby = standby
        self._took_over = False
        # A show with a keyboard goes on after a STOP; a script has to know how it ended.
        self._goes_on = not (automatic or as_json) and (output.stdin_is_terminal() or bool(osc))
        self._report, self._as_json = report, as_json
        if not overwrite:
            check_new(report)
        self._out: Console = output.console(quiet=as_json)

    async def play(self, pace: float, *, motion: bool) -> int:
        from rote.stage.show_files import read_cast
        from rote.stage.stage import open_stage

        checked, files = _load_checked(self._file, self._cast, quiet=self._as_json)
        self._check_warnings(checked)
        cast = read_cast(self._cast)
        async with open_stage(
            self._stage_folder, tell=self._notify, mute=self._mute, standby=self._standby
        ) as stage:
            await self._listen_for_osc(stage)
            if self._standby and not await self._stand_by(stage, checked):
                return 0
            return await self.conduct(stage, checked, files, cast, pace, motion=motion)

    async def _stand_by(self, stage: "Stage", checked: "CheckedShow") -> bool:
        """Wait until this standby has taken over; return False if the operator has ended it."""
        import asyncio

        from rote.stage.cues import describe_rest

        self._notify(
            "Standby: it takes over if the conductor is lost. s Enter: STOP | q Enter: end"
        )
        keys = _Keys(stage, self._notify)
        display = asyncio.create_task(self._show_other_conductor(stage))
        try:
            began = await stage.wait_for_takeover()
        except (asyncio.CancelledError, KeyboardInterrupt):
            await stage.stop("the keyboard of the standby")
            raise
        finally:
            keys.close()
            display.cancel()
        if began is None:
            self._notify("The standby has ended. The conductor goes on.")
            return False
        self._took_over = True
        names = [section.name for section in checked.show.sections]
        if began.section in names:
            self._first = began.section
            where = f"It was interrupted in the section {began.section!r}"
        elif began.section:
            where = f"Its section {began.section!r} is not in the show of this standby"
        else:
            where = "It had no show under way"
        fate = "has ended" if began.other_has_ended else "is LOST"
        self._print(
            f"The other conductor {fate}. This standby conducts now. "
            f"{where}. {describe_rest(stage.robots, alive=stage.conductor.alive)}. "
            "Look at the robots before GO.",
            style="bold red",
        )
        return True

    async def _show_other_conductor(self, stage: "Stage") -> None:
        """Print what the other conductor does, when it changes."""
        import asyncio

        shown = ""
        while True:
            line = stage.other_conductor
            if line != shown:
                shown = line
                self._print(one_line(line))
            await asyncio.sleep(_DISPLAY_S)

    async def conduct(
        self,
        stage: "Stage",
        checked: "CheckedShow",
        files: "ShowFiles",
        cast: "Cast",
        pace: float,
        *,
        motion: bool,
    ) -> int:
        """Play a show on an open stage, and return the exit code.

        If it ends early, all robots are stopped, and the report contains the stop.
        """
        import asyncio

        from rote.stage.conductor import SectionError
        from rote.stage.report import ShowRecorder

        recorder = ShowRecorder(stage.conductor, str(self._file), self._save_report, self._notify)
        report = recorder.report
        try:
            async with recorder:
                try:
                    await self._play_sections(
                        recorder, stage, checked, files, cast, pace, motion=motion
                    )
                except SectionError:
                    raise
                except (asyncio.CancelledError, KeyboardInterrupt):
                    await stage.stop("the conductor's keyboard")
                    raise
                except BaseException:
                    await stage.stop("an error of the conductor")
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
        stage: "Stage",
        checked: "CheckedShow",
        files: "ShowFiles",
        cast: "Cast",
        pace: float,
        *,
        motion: bool,
    ) -> None:
        import asyncio

        from rote.stage.conductor import SectionError
        from rote.stage.show.file import find_droppable

        def on_interrupted(error: "SectionError") -> None:
            recorder.note_interruption(error)
            self._print(str(error), style="bold red")

        endings = stage.conductor.session.endings
        keys = _Keys(stage, self._notify)
        display = asyncio.create_task(self._show_cues(stage))
        try:
            await self._wait_for_robots(stage, cast, find_droppable(checked.show, cast))
            is_stopped = stage.conductor.session.endings != endings
            if is_stopped and not self._goes_on and not self._took_over:
                name = self._first or checked.show.sections[0].name
                raise SectionError(name, "it was stopped before it began")
            async for section in stage.sections(
                checked,
                cast,
                pace=pace,
                motion=motion,
                automatic=self._automatic,
                files=files,
                first=self._first,
                selected=self._took_over or is_stopped,
                on_interrupted=on_interrupted if self._goes_on else None,
            ):
                recorder.add(section)
                self._print_section(section)
        finally:
            keys.close()
            display.cancel()

    async def _wait_for_robots(
        self, stage: "Stage", cast: "Cast", may_miss: Collection[str]
    ) -> None:
        """Wait for the robots of the cast.

        After a takeover the cue list opens without them, so that a person can mute them.
        """
        names = tuple(sorted(set(cast.robots.values()) - stage.muted))
        if not set(names) - set(may_miss):
            return
        self._notify(f"waiting for {', '.join(names)}")
        timeout_s = _TAKEOVER_GATHER_S if self._took_over else _GATHER_S
        missing = await stage.conductor.wait_for_agents(names, timeout_s)
        if needed := set(missing) - set(may_miss):
            if not self._took_over:
                raise stage.make_absence_error(missing)
            self._print(
                f"Not connected: {', '.join(sorted(needed))}. Wait, or mute: m ROBOT",
                style="bold red",
            )

    async def _show_cues(self, stage: "Stage") -> None:
        """Print the cue list's state when it changes, and regularly how much time is left."""
        import asyncio

        loop = asyncio.get_running_loop()
        last_state: tuple[object, ...] = ()
        printed_s = 0.0
        while True:
            status = stage.cues
            if status is not None:
                state = (status.state, status.section, tuple(status.lamps.items()))
                is_due = status.state == "playing" and loop.time() - printed_s >= _REMAINING_S
                if state != last_state or is_due:
                    last_state, printed_s = state, loop.time()
                    self._print(f"{one_line(status.line)} | s Enter: STOP")
            await asyncio.sleep(_DISPLAY_S)

    def _check_warnings(self, checked: "CheckedShow") -> None:
        checked.require()
        warnings = checked.warnings
        if warnings and not self._force:
            first = warnings[0]
            raise BadRequestError(
                f"{first.location}: {first.finding.message} ({len(warnings)} warnings in all)",
                "Review them with `rote show check`, then run it with --force.",
            )

    async def _listen_for_osc(self, stage: "Stage") -> None:
        if self._osc:
            from rote.transport.address import host_and_port
            from rote.transport.osc import PORT

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
        spread = f", within {1000 * max(skews_s):.1f} ms" if skews_s else ""
        late = f"; late: {', '.join(section.late)}" if section.late else ""
        lost = f"; lost: {', '.join(section.lost)}" if section.lost else ""
        count = len(section.robots)
        self._print(f"{section.name}: played by {count} robots{spread}{late}{lost}")
        for name in section.incomplete:
            if name not in section.lost:
                self._print(_format_incomplete(name, section.faults), style="bold red")

    def _print_stop(self, report: "ShowReport") -> None:
        if line := _format_stop(report.as_json()):
            self._print(line, style="bold red" if report.unconfirmed else None)

    async def _save_report(self, report: dict[str, Any]) -> None:
        import asyncio

        def write() -> None:
            with appearing(self._report) as file:
                file.write(json.dumps(report, indent=1).encode())

        await asyncio.to_thread(write)


class _Keys:
    """Reads the keyboard while a show runs: a letter, perhaps a name, and Enter."""

    def __init__(self, stage: "Stage", notify: Callable[[str], None]) -> None:
        import asyncio

        from rote.cli import output

        self._stage, self._notify = stage, notify
        self._shown_stop: Stop | None = None
        """The STOP that the user was asked to reset; None if no answer is expected."""
        self._task = (
            asyncio.get_running_loop().create_task(self._read_keys())
            if output.stdin_is_terminal()
            else None
        )

    async def _read_keys(self) -> None:
        from rote.cli import output

        self._notify(_KEYS_HELP)
        while True:
            typed = await output.wait_for_enter()
            if not typed:  # Ctrl-D, or the terminal is gone: neither is GO
                if not output.stdin_is_terminal():
                    self._notify("The keyboard is gone: use `rote show stop` to stop.")
                    return
                continue
            try:
                await self._run_key_line(typed.strip())
            except RoteError as error:
                self._notify(f"{error}. {error.remedy}".strip())

    async def _run_key_line(self, line: str) -> None:
        """Carry out one line of the keyboard; raise `RoteError` if it is not possible now."""
        stage, (word, _, name) = self._stage, line.partition(" ")
        word, name = word.lower(), name.strip()
        shown_stop, self._shown_stop = self._shown_stop, None
        if word in {"s", "stop"}:
            await stage.stop("the conductor's keyboard")
        elif shown_stop is not None:
            if word == "yes":
                self._reset_stop(shown_stop)
            else:
                self._notify("The STOP stays active.")
        elif not word:
            stage.go()
        elif word == "r":
            self._ask_reset()
        elif word == "p":
            stage.pause()
            self._notify(_PAUSED)
        elif word in (actions := {"b": stage.back, "n": stage.skip, "q": stage.finish}):
            actions[word]()
        elif word == "j":
            stage.jump(name)
        elif word in {"m", "u"}:
            stage.mute(name, muted=word == "m")
        else:
            self._notify(_KEYS_HELP)

    def _reset_stop(self, stop: "Stop") -> None:
        """Reset the STOP that the operator was shown, and no later one."""
        is_reset = self._stage.conductor.reset_stop(stop)
        self._notify(
            "The STOP is reset. Enter is GO."
            if is_reset
            else "The STOP has changed meanwhile. To see it: r"
        )

    def _ask_reset(self) -> None:
        """Show which robots are ready after a STOP, and ask whether to reset it."""
        from rote.stage.reset import find_readiness

        self._stage.conductor.require_conducting()
        readiness = find_readiness(self._stage.conductor)
        if readiness is None:
            self._notify("No STOP is active.")
            return
        for line in (f"STOP by {readiness.stop.by}.", *readiness.lines):
            self._notify(one_line(line))
        self._notify("Type yes and Enter to reset it; nothing moves before GO.")
        self._shown_stop = readiness.stop

    def close(self) -> None:
        """Stop reading the keyboard."""
        if self._task is not None:
            self._task.cancel()


@app.command()
def stop(stage: StageDir = DEFAULT_FOLDER, as_json: Json = False) -> int:
    """Stop all robots on a stage, from any terminal of the conductor's computer."""
    from rote.stage.plain_stop import stop_stage

    return run(stop_stage(stage, as_json=as_json))


@app.command()
def reset(
    stage: StageDir = DEFAULT_FOLDER,
    yes: Annotated[bool, typer.Option("--yes", help="Reset without asking.")] = False,
    as_json: Json = False,
) -> int:
    """Reset a STOP: show which robots are ready, and ask for confirmation. No robot moves."""
    if as_json and not yes:
        raise BadRequestError(
            "with --json no question can be asked", "Look at the robots, then add --yes."
        )
    return run(_reset_stage(stage, yes=yes, as_json=as_json))


async def _reset_stage(folder: Path, *, yes: bool, as_json: bool) -> int:
    from rote.cli import output
    from rote.stage.reset import ResetReadiness, reset_stage

    shown: ResetReadiness | None = None

    async def confirm(readiness: ResetReadiness) -> bool:
        nonlocal shown
        shown = readiness
        if not as_json:
            print(f"STOP by {readiness.stop.by}.", *readiness.lines, sep="\n")
        return yes or await output.ask_yes("Type yes to reset it; nothing moves before GO: ")

    is_reset = await reset_stage(folder, confirm) is not None
    if as_json:
        print_json(
            {
                "stop": None if shown is None else shown.stop.by,
                "robots": {} if shown is None else dict(shown.obstacles),
                "reset": is_reset,
            }
        )
    elif shown is None:
        print("No STOP is active.")
    else:
        print("The STOP is reset." if is_reset else "The STOP stays active.")
    return 0 if is_reset or shown is None else 1


@app.command()
def offsets(
    robot: Annotated[str, typer.Argument(metavar="ROBOT", help="The robot to change.")] = "",
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The action, or `sounds` for its sounds.")
    ] = "",
    seconds: Annotated[
        str, typer.Argument(metavar="SECONDS", help="0 to 15, or `learn` to measure it again.")
    ] = "",
    stage: StageDir = DEFAULT_FOLDER,
    as_json: Json = False,
) -> int:
    """Show how early each robot's actions and sounds are requested, or set one by hand."""
    if (robot or name or seconds) and not (robot and name and seconds):
        raise BadRequestError("a change needs a robot, a name and seconds", "Give all three.")
    return run(_show_offsets(stage, robot, name, _read_seconds(seconds), as_json=as_json))


def _read_seconds(text: str) -> float | None:
    from rote.stage.leads import check_lead

    if text in {"", "learn"}:
        return None
    try:
        seconds = float(text)
    except ValueError:
        raise BadRequestError(f"{text!r} is not a number of seconds", "Write 0.4.") from None
    check_lead(seconds)
    return seconds


async def _show_offsets(
    folder: Path, robot: str, name: str, seconds: float | None, *, as_json: bool
) -> int:
    from rote.cli import output
    from rote.stage.leads import SOUND_LEAD
    from rote.stage.watcher import watching

    name = SOUND_LEAD if name == _SOUNDS else name
    async with watching(folder) as watcher:
        await watcher.gather_agents(1.0, 6.0)
        if robot:
            if not watcher.reachable(robot):
                raise BadRequestError(f"{robot!r:.60} is not reachable", "Start its agent.")
            if not await watcher.set_lead(robot, name, seconds):
                raise BadRequestError(
                    f"{robot} does not accept the offset", "Wait until it is idle."
                )
        rows = [
            (agent, _SOUNDS if action == SOUND_LEAD else action, lead_s, is_set)
            for agent, state in sorted(watcher.agents.items())
            for action, lead_s, is_set in state.leads
        ]
    if as_json:
        names = ("robot", "name", "seconds", "set")
        print_json({"offsets": [dict(zip(names, row, strict=True)) for row in rows]})
        return 0
    cells = [
        (agent, action, f"{lead_s:.3f} s", "set by hand" if is_set else "learned")
        for agent, action, lead_s, is_set in rows
    ]
    output.print_table(output.console(), ("robot", "what", "earlier by", "how"), cells)
    return 0


@app.command()
def report(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A report of `run`.")
    ] = _DEFAULT_REPORT,
    as_json: Json = False,
) -> None:
    """Show the report of a show that was run or rehearsed."""
    try:
        document = json.loads(file.read_text("utf-8"))
        lines = list(_format_report(document))
    except OSError as error:
        raise BadRequestError(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadRequestError(f"{file} is not a report of a show") from None
    if as_json:
        print_json(document)
        return
    for line in lines:
        print(one_line(line))


def _format_report(document: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that show a report; reports of older versions have fewer fields."""
    if document.get("run"):
        yield f"{document['show']}: run {document['run'][:8]}, begun at {document['began']}"
    for section in document["sections"]:
        yield from _format_section(section)
    if not document.get("over", True):
        playing = f" in the section {document['playing']!r}" if document["playing"] else ""
        yield f"The report ends here{playing}: the show is still running, or its conductor died."
    yield from document.get("interruptions", ())
    if document.get("ended"):
        yield document["ended"]
    for robot in document.get("lost", ()):
        yield f"  {robot}: lost"
    if line := _format_stop(document):
        yield line


def _format_stop(document: dict[str, Any]) -> str:
    """Return the line that shows a stop in a report; "" if there was none."""
    if unconfirmed := document.get("unconfirmed"):
        return f"STOP was not confirmed by {', '.join(unconfirmed)}: use the remote!"
    within_ms = document.get("stopped_within_ms")
    return "" if within_ms is None else f"STOP was confirmed by all within {within_ms:.0f} ms."


def _format_incomplete(name: str, faults: Mapping[str, str]) -> str:
    reason = f": {faults[name]}" if faults.get(name) else ""
    return f"  {name}: did not complete it{reason}"


def _format_section(section: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that show a section of a report."""
    name, skew_ms = section["name"], section["skew_ms"]
    if skew_ms["max"] is None:
        yield f"{name}: no robot moved"
    else:
        yield f"{name}: half within {skew_ms['p50']} ms, all within {skew_ms['max']} ms"
    for robot, each in section["robots"].items():
        if each is not None:
            precision = f"known to {each['resolution_ms']} ms"
            yield f"  {robot}: {each['late_ms']} ms late ({precision})"
    for cue in section["cues"]:
        device = cue["by"] or "here"
        when = "failed" if cue["late_ms"] is None else f"{cue['late_ms']} ms late"
        yield f"  {device}: {cue['cue']}: {when}{' (too late)' if cue['late'] else ''}"
    lost = section.get("lost", ())
    for robot in section.get("incomplete", ()):
        if robot not in lost:
            yield _format_incomplete(robot, section.get("faults", {}))
    for robot in lost:
        yield f"  {robot}: lost"
    for robot in section.get("left_out", ()):
        yield f"  {robot}: took no part (muted, or lost before)"
