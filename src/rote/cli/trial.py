"""rote trial: record what a robot does, step by step, and write a report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.cli.options import (
    TIMEOUT_S,
    Json,
    Key,
    RobotChoice,
    RobotUrl,
    Timeout,
    choice,
    print_json,
    run,
)
from rote.cli.wording import worded
from rote.errors import BadRequestError
from rote.platform.console_text import one_line
from rote.transport.wires import EMBEDDED, wire_of

if TYPE_CHECKING:
    from rote.trial.output import TrialOutput
    from rote.trial.runner import TrialResult
    from rote.trial.steps import TrialStep

_LEVELS = ("look", "hold", "move")
_EXIT_INTERRUPTED, _EXIT_LOST = 130, 3
_CONFIRMATION = "move"
"""What a person types before a real robot moves unattended."""
_HELP = (
    "Test a robot step by step, and write a report.\n\n"
    "Level look: no joint gets soft or moves. Level hold: the arms get soft in your hands; an A1 "
    "stands and turns its body. Level move: the robot moves by itself. Before each step, the trial "
    "explains the step and asks you to run or skip it. Every step has a time limit. Ctrl-C ends "
    "the trial; the limbs hold, and the trial writes a partial report. Nothing is uploaded."
)

app = typer.Typer(name="trial", help=_HELP, invoke_without_command=True, rich_markup_mode=None)

LevelName = Annotated[
    str,
    typer.Option("--level", metavar=choice(_LEVELS), help="What the robot may do."),
]
OutFolder = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Folder for the report; default: rote-trial with date and time.",
    ),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", help="Run all steps and write the report without asking."),
]
Report = Annotated[
    Path, typer.Argument(metavar="REPORT", help="A report.json, or the folder of a trial.")
]
OtherReport = Annotated[Path, typer.Argument(metavar="OTHER", help="The report to compare with.")]


@app.callback()
def trial(
    ctx: typer.Context,
    robot: RobotUrl = EMBEDDED,
    level: LevelName = "look",
    out: OutFolder = None,
    yes: Yes = False,
    key: Key = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Test a robot step by step, and write a report."""
    if ctx.invoked_subcommand is not None:
        return 0
    target = RobotChoice(robot, key, None, timeout)
    return run(_run_trial(target, level, out, yes, as_json))


@app.command("compare")
def compare(first: Report, second: OtherReport, as_json: Json = False) -> int:
    """Compare two robots or firmware versions by their trial reports."""
    from rote.trial.judgement import find_differences
    from rote.trial.report import read_report

    first_report, second_report = read_report(first), read_report(second)
    try:
        changed = find_differences(first_report["robot"], second_report["robot"])
        changed_facts = _differing_facts(first_report, second_report)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise BadRequestError(
            f"cannot compare {first} and {second}: one of the reports is damaged",
            "Use two reports that `rote trial` wrote.",
        ) from None
    if as_json:
        rows = [{"what": each.what, "first": each.first, "second": each.second} for each in changed]
        print_json({"first": str(first), "second": str(second), "differences": rows})
        return 0

    from rote.cli import output

    console = output.console()
    for name, report in (("first", first_report), ("second", second_report)):
        robot = report["robot"]
        build = one_line(str(robot.get("build") or "a robot"))
        console.print(
            f"{name}: {build} over {robot['wire']}, level {report['level']}, {report['ended']}"
        )
    if not changed and not changed_facts:
        console.print("The two reports do not differ in any measurement that both contain.")
        return 0
    table = [
        *(
            (each.label, _shorten_value(each.first), _shorten_value(each.second))
            for each in changed
        ),
        *((f"fact {fact}", *verdicts) for fact, *verdicts in changed_facts),
    ]
    output.print_table(console, ("what", "first", "second"), table)
    return 0


@app.command("schema")
def show_schema() -> None:
    """Print the JSON schema of report.json."""
    from rote.trial.report import schema

    print_json(schema())


def _differing_facts(first: dict[str, Any], second: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the id, the first verdict and the second verdict of each fact that differs.

    A fact that one of the robots was not tested for is left out.
    """
    labels = {True: "agrees", False: "differs"}
    second_verdicts = {fact["id"]: fact["agrees"] for fact in second["facts"]}
    rows = []
    for fact in first["facts"]:
        verdict: Any = fact["agrees"]
        second_verdict: Any = second_verdicts.get(fact["id"])
        was_tested = verdict is not None and second_verdict is not None
        if was_tested and verdict != second_verdict:
            rows.append((fact["id"], labels[verdict], labels[second_verdict]))
    return rows


def _shorten_value(value: Any) -> str:
    """Return a measurement as a table cell of at most 40 characters."""
    if value is None:
        return "-"
    text = one_line(f"{value:g}" if isinstance(value, float) else str(value))
    return text if len(text) <= 40 else text[:37] + "..."


async def _run_trial(
    target: RobotChoice, level_name: str, out: Path | None, yes: bool, as_json: bool
) -> int:
    from datetime import datetime

    from rote.cli import output
    from rote.trial.output import build_output, check_folder
    from rote.trial.runner import INTERRUPTED, LOST, parse_level, run_trial
    from rote.trial.steps import TrialLevel

    level = parse_level(level_name)
    if not yes and (as_json or not output.stdin_is_terminal()):
        raise BadRequestError(
            "a trial asks before every step, and needs a terminal for your answers",
            "Run it in a terminal, or use --yes to run all steps without asking.",
        )
    folder = out or Path(f"rote-trial-{datetime.now():%Y-%m-%d-%H%M%S}")
    check_folder(folder)
    if yes and level is TrialLevel.MOVE and not wire_of(target.url).lives_here:
        await _confirm_unattended(target.url, as_json)
    guide = _JsonGuide() if as_json else _TerminalGuide(yes)
    guide.welcome(target.url, level.value)
    result = await run_trial(
        target.url, level, guide, timeout=target.timeout_s, key=target.choose_key()
    )
    trial_output = build_output(result)
    exit_code = {INTERRUPTED: _EXIT_INTERRUPTED, LOST: _EXIT_LOST}.get(result.ended, 0)
    if not result.stop_confirmed:
        exit_code = _EXIT_LOST  # even after Ctrl-C: the robot may still move
    if not await guide.may_write(trial_output, folder, result):
        return exit_code
    trial_output.write(folder)
    guide.written(trial_output, folder, result)
    return exit_code


async def _confirm_unattended(url: str, as_json: bool) -> None:
    """Require a typed word before --yes lets a real robot move; raise an error without it."""
    from rote.cli import output

    remedy = "Run it in a terminal and type the word, omit --yes, or use sim://g1."
    if as_json or not output.stdin_is_terminal():
        raise BadRequestError(f"--yes would let {url} move unattended", remedy)
    print(
        f"{url} will move by itself, and the trial will not ask before each step. Keep all people "
        "out of its reach and the remote in hand (L2+B)."
    )
    if await _read_line(f"Type {_CONFIRMATION} to begin > ") != _CONFIRMATION:
        raise BadRequestError(
            f"{_CONFIRMATION!r} was not typed, so the trial did not start", remedy
        )


def _describe_files(trial_output: "TrialOutput", folder: Path) -> list[str]:
    """Return lines that describe the files to be written."""
    descriptions = {
        "report.html": "report for people: what works, what differs, time line and plots",
        "report.json": "the same report for programs",
        "conversation.jsonl": f"{trial_output.messages:,} messages; frequent states are reduced "
        "to two per second",
        "capture.pcap": "the same messages as packets between invented addresses",
        "capture.keys": "invented keys that decrypt this capture",
    }
    lines = [f"Files to write to {folder} (nothing is uploaded):"]
    for name, data in trial_output.files.items():
        lines.append(f"  {name:20} {len(data) / 1000:8,.0f} kB  {descriptions.get(name, '')}")
    if trial_output.replaced:
        replaced = ", ".join(f"{kind} ({count})" for kind, count in trial_output.replaced.items())
        lines.append(f"Replaced by invented values in all files: {replaced}.")
    else:
        lines.append(
            "The trial found no serials, addresses, keys or names of your actions in the files."
        )
    lines.append("The files describe the robot and its behaviour. Read them before you share them.")
    return lines


class _TerminalGuide:
    """Asks the user before each step, and prints progress, in a terminal."""

    def __init__(self, yes: bool) -> None:
        self._yes = yes
        """Whether --yes was given: print only, and ask nothing."""

    def welcome(self, url: str, level: str) -> None:
        """Print which trial begins, and how to end it."""
        print(f"Trial of {url}, level {level}. Ctrl-C ends the trial; the limbs then hold.")
        if level != "look" and not self._yes:
            print("A second person must keep the remote in hand for an emergency stop (L2+B).")

    async def ask(self, step: "TrialStep") -> str:
        """Print a step and ask whether to run it; return `go`, `skip` or `end`."""
        print(
            f"\n{step.title} ({step.level.value})\n  This step {step.does}.\n  {step.watch}",
            flush=True,
        )
        if self._yes:
            return "go"
        answers = {"": "go", "y": "go", "s": "skip", "q": "end"}
        while True:
            typed = await _read_line("  Enter: run this step, s: skip it, q: end the trial > ")
            if typed in answers:
                return answers[typed]

    def begin(self, step: "TrialStep") -> None:
        """Print nothing: `ask` has described the step."""

    def note(self, message: str) -> None:
        """Print a message during a step."""
        print(f"  ... {message}", flush=True)

    def end(self, step: "TrialStep", result: str, note: str, seconds: float) -> None:
        """Print how a step ended."""
        labels = {
            "done": "done",
            "skipped": "skipped",
            "cannot": "not possible",
            "failed": "failed",
        }
        # `ask` has printed the title, except of a step that could not begin.
        not_begun = result == "cannot" and not seconds
        title = f"\n{step.title} ({step.level.value})\n" if not_begun else ""
        after = f" after {seconds:.1f} s" if result in ("done", "failed") else ""
        print(f"{title}  {labels[result]}{after}{f': {note}' if note else ''}", flush=True)

    async def may_write(
        self, trial_output: "TrialOutput", folder: Path, result: "TrialResult"
    ) -> bool:
        """Print the summary and the files to write, and ask; return whether to write them."""
        _print_summary(trial_output, result)
        print("\n".join(_describe_files(trial_output, folder)), flush=True)
        if self._yes:
            return True
        return await _read_line("Write the files? Enter: yes, n: no > ") in ("", "y")

    def written(self, trial_output: "TrialOutput", folder: Path, result: "TrialResult") -> None:
        """Print where the report is, and how to use it."""
        print(
            f"Written. Open the report: {folder / 'report.html'}\n"
            f"Simulate this robot: rote sim --like {folder / 'report.json'}\n"
            f"Compare with another report: rote trial compare {folder} OTHER"
        )


async def _read_line(prompt: str) -> str:
    """Read a line in lower case; return "q" at the end of the input.

    It does not block the event loop, which keeps the robot connected.
    """
    from rote.cli import output

    print(prompt, end="", flush=True)
    text = await output.wait_for_enter()
    return text.strip().lower() if text else "q"


def _print_summary(trial_output: "TrialOutput", result: "TrialResult") -> None:
    """Print how the trial ended, what the robot confirmed, and which facts differ."""
    from rote.trial.report import count_facts
    from rote.trial.runner import UNCONFIRMED

    totals = count_facts(trial_output.report)
    ends = {
        "complete": "The trial is complete",
        "interrupted": "The trial was interrupted",
        "lost": "The connection to the robot was lost",
        "ended": "The trial was ended",
    }
    print(f"\n{ends[result.ended]}{f': {result.reason}' if result.ended == 'lost' else ''}.")
    if result.level.value != "look":
        confirmed = "The robot confirmed the stop."
        print(confirmed if result.stop_confirmed else UNCONFIRMED)
    print(
        f"Facts: {totals.agree} agree with what rote assumes, {totals.differ} differ, "
        f"{totals.used} were used but not tested, {totals.untested} were not tested."
    )
    for fact in trial_output.report["facts"]:
        if fact["agrees"] is False:
            measured = one_line(str(fact["seen"]))
            print(f"  differs: {fact['says']} (assumed {fact['assumed']}, measured {measured})")
    if result.left:
        print(f"Actions of the trial that remain on the robot: {', '.join(result.left)}.")


class _JsonGuide:
    """Prints events for scripts; asks no questions."""

    def welcome(self, url: str, level: str) -> None:
        """Print the robot and the level."""
        print_json({"event": "trial", "robot": url, "level": level})

    async def ask(self, step: "TrialStep") -> str:
        """Return `go`: --yes has allowed all steps."""
        return "go"

    def begin(self, step: "TrialStep") -> None:
        """Print that a step begins."""
        print_json({"event": "step", "id": step.id, "does": step.does, "watch": step.watch})

    def note(self, message: str) -> None:
        """Print a message during a step."""
        print_json({"event": "note", "message": worded(message)})

    def end(self, step: "TrialStep", result: str, note: str, seconds: float) -> None:
        """Print how a step ended."""
        document = {"id": step.id, "result": result, "note": note, "seconds": round(seconds, 3)}
        print_json({"event": "step-ended", **document})

    async def may_write(
        self, trial_output: "TrialOutput", folder: Path, result: "TrialResult"
    ) -> bool:
        """Print the files to write, and return True: --yes has allowed to write them."""
        files = {name: len(data) for name, data in trial_output.files.items()}
        print_json({"event": "shared", "files": files, "replaced": trial_output.replaced})
        return True

    def written(self, trial_output: "TrialOutput", folder: Path, result: "TrialResult") -> None:
        """Print the result."""
        from rote.trial.report import count_facts

        totals = count_facts(trial_output.report)
        print_json(
            {
                "event": "report",
                "folder": str(folder),
                "ended": result.ended,
                "agree": totals.agree,
                "differ": totals.differ,
                "used": totals.used,
                "untested": totals.untested,
                "left": result.left,
                "stop_confirmed": result.stop_confirmed,
            }
        )
