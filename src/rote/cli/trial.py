"""rote trial: find out what a robot really does, step by step, and leave a report of it."""

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
_WORD = "move"
"""What a person types before a real robot moves unattended."""
_HELP = (
    "Find out what a robot really does, and write a report.\n\n"
    "look: nothing gets soft or moves. hold: the arms get soft in your hands; an A1 stands and "
    "turns its body. move: the robot moves by itself. Every step says what it will do, asks, has a "
    "time limit and can be skipped; Ctrl-C ends with limbs that hold, and a report of what was "
    "learned. Nothing is uploaded."
)

app = typer.Typer(name="trial", help=_HELP, invoke_without_command=True, rich_markup_mode=None)

LevelName = Annotated[
    str,
    typer.Option(
        "--level", metavar=choice(_LEVELS), help="How much of the robot is used; by default look."
    ),
]
OutFolder = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="The folder for the report; by default rote-trial and the date and time.",
    ),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", help="Do not ask: take every step, and write the report at the end."),
]
Report = Annotated[
    Path, typer.Argument(metavar="REPORT", help="A report.json, or the folder of a trial.")
]
OtherReport = Annotated[Path, typer.Argument(metavar="OTHER", help="The other one.")]


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
    """Find out what a robot really does, and write a report."""
    if ctx.invoked_subcommand is not None:
        return 0
    target = RobotChoice(robot, key, None, timeout)
    return run(_trial(target, level, out, yes, as_json))


@app.command("compare")
def compare(first: Report, second: OtherReport, as_json: Json = False) -> int:
    """Show how two robots, or two firmwares, differ, by the reports of their trials."""
    from rote.trial.judgement import differences
    from rote.trial.report import read_report

    one, other = read_report(first), read_report(second)
    try:
        found = differences(one["robot"], other["robot"])
        turned = _differing_facts(one, other)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise BadRequestError(
            f"{first} and {second} cannot be compared: one of them is damaged",
            "Name two reports as `rote trial` wrote them.",
        ) from None
    if as_json:
        rows = [{"what": each.what, "first": each.first, "second": each.second} for each in found]
        print_json({"first": str(first), "second": str(second), "differences": rows})
        return 0
    from rich.table import Table

    from rote.cli import output

    console = output.console()
    for name, report in (("first", one), ("second", other)):
        robot = report["robot"]
        build = one_line(str(robot.get("build") or "a robot"))
        console.print(
            f"{name}: {build} by {robot['wire']}, level {report['level']}, {report['ended']}"
        )
    if not found and not turned:
        console.print("They do not differ in anything that both trials measured.")
        return 0
    table = Table("what", "first", "second", box=None, pad_edge=False)
    for each in found:
        table.add_row(
            one_line(each.what.replace("_", " ")), _short(each.first), _short(each.second)
        )
    for fact, first_seen, second_seen in turned:
        table.add_row(one_line(f"fact {fact}"), first_seen, second_seen)
    console.print(table)
    return 0


@app.command("schema")
def show_schema() -> None:
    """Print the JSON schema of report.json."""
    from rote.trial.report import schema

    print_json(schema())


def _differing_facts(one: dict[str, Any], other: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the facts with which one robot agrees and the other does not."""
    words = {True: "agrees", False: "differs"}
    theirs = {fact["id"]: fact["agrees"] for fact in other["facts"]}
    return [
        (fact["id"], words[fact["agrees"]], words[theirs[fact["id"]]])
        for fact in one["facts"]
        if fact["agrees"] is not None
        and theirs.get(fact["id"]) is not None
        and theirs[fact["id"]] != fact["agrees"]
    ]


def _short(value: Any) -> str:
    text = "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    text = one_line(text)
    return text if len(text) <= 40 else text[:37] + "..."


async def _trial(
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
            "a trial asks before every step, and there is no terminal to answer on",
            "Run it in a terminal; or with --yes, if the robot may do all of it unattended.",
        )
    folder = out or Path(f"rote-trial-{datetime.now():%Y-%m-%d-%H%M%S}")
    check_folder(folder)
    if yes and level is TrialLevel.MOVE and not wire_of(target.url).lives_here:
        await _confirm_unattended(target.url, as_json)
    guide = _JsonGuide() if as_json else _PersonGuide(yes)
    guide.welcome(target.url, level.value)
    result = await run_trial(
        target.url, level, guide, timeout=target.timeout_s, key=target.key_for()
    )
    trial_output = build_output(result)
    exit_code = {INTERRUPTED: _EXIT_INTERRUPTED, LOST: _EXIT_LOST}.get(result.ended, 0)
    if not result.stop_confirmed:
        exit_code = _EXIT_LOST
    if not await guide.may_write(trial_output, folder, result):
        return exit_code
    trial_output.write(folder)
    guide.written(trial_output, folder, result)
    return exit_code


async def _confirm_unattended(url: str, as_json: bool) -> None:
    """Let a real robot move without questions only after a person typed the word."""
    from rote.cli import output

    remedy = "Run it in a terminal and type the word; or without --yes, or on sim://g1."
    if as_json or not output.stdin_is_terminal():
        raise BadRequestError(f"--yes would let {url} move unattended", remedy)
    print(
        f"{url} will move by itself, step after step, without a question. Keep all people out of "
        "its reach and the remote in hand (L2+B)."
    )
    if await _read_line(f"Type {_WORD} to begin > ") != _WORD:
        raise BadRequestError(f"{_WORD!r} was not typed, so nothing has moved", remedy)


def _shared(trial_output: "TrialOutput", folder: Path) -> list[str]:
    """Return what would be in the folder, as lines for a person."""
    what = {
        "report.html": "for people: what works, what differs, time line and plots",
        "report.json": "the same for programs",
        "conversation.jsonl": f"{trial_output.messages:,} messages; frequent states thinned to "
        "two a second",
        "capture.pcap": "the same messages as packets, between made-up addresses",
        "capture.keys": "made-up keys that open this capture",
    }
    lines = [f"This would be written to {folder}, and sent nowhere:"]
    for name, data in trial_output.files.items():
        lines.append(f"  {name:20} {len(data) / 1000:8,.0f} kB  {what.get(name, '')}")
    if trial_output.replaced:
        replaced = ", ".join(f"{count} of {kind}" for kind, count in trial_output.replaced.items())
        lines.append(f"Replaced by made-up ones, everywhere: {replaced}.")
    else:
        lines.append("No serial, address, key or name of an action was found in it.")
    lines.append("It describes the robot and its behaviour. Read it before you share it.")
    return lines


class _PersonGuide:
    """Asks and shows in a terminal."""

    def __init__(self, yes: bool) -> None:
        self._yes = yes

    def welcome(self, url: str, level: str) -> None:
        """Say what will happen."""
        print(f"A trial of {url}, level {level}. Ctrl-C ends it; the limbs then hold.")
        if level != "look" and not self._yes:
            print("Somebody has the robot's remote in hand, for an emergency stop (L2+B).")

    async def ask(self, step: "TrialStep") -> str:
        """Ask whether a step may be taken."""
        print(f"\n{step.title} ({step.level.value})\n  It {step.does}.\n  {step.watch}", flush=True)
        if self._yes:
            return "go"
        words = {"": "go", "y": "go", "s": "skip", "q": "end"}
        while True:
            typed = await _read_line("  Enter: go on, s: skip this step, q: end the trial > ")
            if typed in words:
                return words[typed]

    def begin(self, step: "TrialStep") -> None:
        """Show nothing more: it was printed already."""

    def note(self, message: str) -> None:
        """Show what happens."""
        print(f"  ... {message}", flush=True)

    def end(self, step: "TrialStep", result: str, note: str, seconds: float) -> None:
        """Show how a step ended."""
        labels = {"done": "done", "skipped": "skipped", "cannot": "not here", "failed": "failed"}
        title = (
            f"\n{step.title} ({step.level.value})\n" if result == "cannot" and not seconds else ""
        )
        print(
            f"{title}  {labels[result]} after {seconds:.1f} s{f': {note}' if note else ''}",
            flush=True,
        )

    async def may_write(
        self, trial_output: "TrialOutput", folder: Path, result: "TrialResult"
    ) -> bool:
        """Show what would be shared, and ask."""
        _summary(trial_output, result)
        print("\n".join(_shared(trial_output, folder)), flush=True)
        if self._yes:
            return True
        return await _read_line("Write it? Enter: yes, n: no > ") in ("", "y")

    def written(self, trial_output: "TrialOutput", folder: Path, result: "TrialResult") -> None:
        """Say where it is, and what can be done with it."""
        print(
            f"Written. Look at it: {folder / 'report.html'}\n"
            f"A simulated robot like it: rote sim --like {folder / 'report.json'}\n"
            f"Beside another one: rote trial compare {folder} OTHER"
        )


async def _read_line(prompt: str) -> str:
    """Read a line without holding up the event loop, which keeps the robot connected."""
    from rote.cli import output

    print(prompt, end="", flush=True)
    text = await output.enter_pressed()
    return text.strip().lower() if text else "q"  # the end of the input


def _summary(trial_output: "TrialOutput", result: "TrialResult") -> None:
    from rote.trial.report import count_facts
    from rote.trial.runner import UNCONFIRMED

    totals = count_facts(trial_output.report)
    ends = {
        "complete": "The trial is complete",
        "interrupted": "The trial was interrupted",
        "lost": "The robot was lost",
        "ended": "The trial was ended",
    }
    print(f"\n{ends[result.ended]}{f': {result.reason}' if result.ended == 'lost' else ''}.")
    if result.level.value != "look":
        confirmed = "The robot confirmed the stop."
        print(confirmed if result.stop_confirmed else UNCONFIRMED)
    print(
        f"Facts: {totals.agree} agree, {totals.differ} differ from what rote assumed, "
        f"{totals.used} were used, not tested, and {totals.untested} were not reached or cannot be "
        "tested."
    )
    for fact in trial_output.report["facts"]:
        if fact["agrees"] is False:
            seen = one_line(str(fact["seen"]))
            print(f"  differs: {fact['says']} (assumed {fact['assumed']}, seen {seen})")
    if result.left:
        print(f"These actions of the trial remain on the robot: {', '.join(result.left)}.")


class _JsonGuide:
    """Prints events for scripts; asks no questions."""

    def welcome(self, url: str, level: str) -> None:
        """Print the beginning."""
        print_json({"event": "trial", "robot": url, "level": level})

    async def ask(self, step: "TrialStep") -> str:
        """Go on."""
        return "go"

    def begin(self, step: "TrialStep") -> None:
        """Print that a step begins."""
        print_json({"event": "step", "id": step.id, "does": step.does, "watch": step.watch})

    def note(self, message: str) -> None:
        """Print what happens."""
        print_json({"event": "note", "message": worded(message)})

    def end(self, step: "TrialStep", result: str, note: str, seconds: float) -> None:
        """Print how a step ended."""
        shown = {"id": step.id, "result": result, "note": note, "seconds": round(seconds, 3)}
        print_json({"event": "step-ended", **shown})

    async def may_write(
        self, trial_output: "TrialOutput", folder: Path, result: "TrialResult"
    ) -> bool:
        """Print what is written; --yes has allowed it."""
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
