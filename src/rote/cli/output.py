"""What commands print for people: lines, tables and progress bars."""

import asyncio
import os
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Protocol

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from rote.cli.wording import worded
from rote.findings import Finding
from rote.messages import RobotState
from rote.model.family import Build, ModeFacts
from rote.model.registry import family_of
from rote.motion.track_build import a_robot
from rote.platform.console_text import one_line, rich_console, shows
from rote.robot.api_values import Actions, StreamReport

_UNBROKEN_WIDTH = 10_000  # columns: longer than any line
_NARROW_WIDTH = 80  # columns: a narrower terminal gets wide tables as blocks
_GAP = 2  # blanks between two columns of a table
_MAX_FITTED_ROWS = 100
"""A longer table is not fitted to the terminal: that takes seconds for thousands of rows."""
SEVERITIES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def console(*, quiet: bool = False, record: bool = False, width: int | None = None) -> Console:
    """Return a console on standard output; lines are broken on a terminal only.

    It prints text without interpreting markup, because names may contain anything; see `styled`.
    """
    new_console = rich_console(
        highlight=False, markup=False, emoji=False, quiet=quiet, record=record, width=width
    )
    if width is None and not new_console.is_terminal:
        new_console.width = _UNBROKEN_WIDTH
    return new_console


def styled(*parts: str | tuple[str, str]) -> Text:
    """Return a text made of parts, each alone or with its style."""
    return Text.assemble(*parts)


class SetProgress(Protocol):
    """The function that `show_progress` yields."""

    def __call__(self, fraction: float, message: str) -> None:
        """Set the progress bar to a fraction from 0 to 1, and show a message after it."""


@contextmanager
def show_spinner(message: str) -> Iterator[None]:
    """Show a spinner on standard error while the block runs; on a terminal only."""
    out = rich_console(stderr=True)
    if not out.is_terminal:
        yield
        return
    with out.status(Text(message), spinner="dots" if shows("⠋") else "line"):
        yield


@contextmanager
def show_progress(out: Console, title: str) -> Iterator[SetProgress]:
    """Show a progress bar while the block runs, on a terminal only; yield a function to set it."""
    if not out.is_terminal:
        yield lambda fraction, message: None
        return
    columns = (
        TextColumn("  {task.description}", markup=False),
        BarColumn(30),
        TextColumn("{task.fields[message]}", markup=False),
    )
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task(title, total=1.0, message="")

        def set_progress(fraction: float, message: str) -> None:
            progress.update(task, completed=fraction, message=message)

        yield set_progress


def print_findings(out: Console, findings: Sequence[Finding]) -> None:
    """Print the findings of a preflight or of a motion check."""
    for finding in findings:
        severity = finding.severity.value
        time_s = finding.time_s
        time = "" if time_s is None else f" at {time_s:.2f} s:"
        out.print(
            styled((severity, SEVERITIES[severity]), f"{time} {one_line(worded(finding.message))}")
        )
        if finding.remedy:
            out.print(f"      {one_line(worded(finding.remedy))}", style="dim")


def print_stream_report(out: Console, report: StreamReport, how_well: str) -> None:
    """Print how a motion of this computer was played; `how_well` completes the first sentence."""
    verb = "Played" if report.completed else "Stopped"
    rate = f"{report.rate_hz:.1f} poses a second"
    out.print(f"{verb} in {report.seconds:.1f} s, at {rate}, {how_well}")
    if not report.completed:
        out.print(styled(("It did not complete:", "yellow"), f" {report.reason}."))


def make_printable(name: str) -> str:
    """Return a name with its control characters escaped, such as a newline as `\\n`."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1]  # without its quotes
        for character in name
    )


def print_actions(out: Console, actions: Actions) -> None:
    """Print the robot's taught actions and presets, and how many slots are used."""
    rows = [
        (
            str(action.position),
            make_printable(action.name),
            f"{action.duration_s:.2f}" if action.duration_s else "?",
        )
        for action in actions.taught
    ]
    if rows:
        print_table(out, ("no.", "name", "seconds"), rows, right=("no.", "seconds"))
    if actions.presets:
        presets = ", ".join(
            f"{preset.id}\N{NO-BREAK SPACE}{make_printable(preset.name)}"
            for preset in actions.presets
        )
        out.print(f"presets: {presets}", style="dim")
    for note in actions.notes:
        out.print(f"Unexpected in the robot's list: {note}.", style="yellow")
    used = len(actions.taught)
    out.print(f"{used} of {used + actions.free_places} slots used.", style="dim")


def print_joint_table(out: Console, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column, of names, is justified to the left, others to the right."""
    print_table(out, titles, rows, right=titles[1:])


def print_table(
    out: Console,
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
) -> None:
    """Print a table; the columns of the titles in `right` are justified to the right.

    A pipe gets lines without colours and trailing blanks. A terminal narrower than 80 columns gets
    one block of lines for each row if the table does not fit.
    """
    rows = [[*map(one_line, row)] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(titles, *rows, strict=True)]
    if not out.is_terminal or len(rows) > _MAX_FITTED_ROWS:
        out.out("\n".join(_format_plain_lines(titles, rows, widths, right)), highlight=False)
    elif out.width < min(_NARROW_WIDTH, sum(widths) + _GAP * (len(widths) - 1)):
        for row in rows:
            _print_block(out, titles, row)
    else:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for title in titles:
            table.add_column(title, justify="right" if title in right else "left", overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        out.print(table)


def _format_plain_lines(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    widths: Sequence[int],
    right: Sequence[str],
) -> Iterator[str]:
    for row in (titles, *rows):
        cells = []
        for title, cell, width in zip(titles, row, widths, strict=True):
            blanks = " " * (width - cell_len(cell))
            cells.append(blanks + cell if title in right else cell + blanks)
        yield (" " * _GAP).join(cells).rstrip()


def _print_block(out: Console, titles: Sequence[str], row: Sequence[str]) -> None:
    """Print each cell of a row, unless empty, on its own line; indent all lines but the first."""
    indent = 0
    for title, cell in zip(titles, row, strict=True):
        if cell:
            line = styled((f"{title} " if title else "", "dim"), cell)
            out.print(Padding(line, (0, 0, 0, indent)))
            indent = 2


def describe_robot(build: Build) -> str:
    """Return a phrase for robots of a build, such as "a G1", for use in a sentence."""
    family = family_of(build)
    return "this robot" if family is None else a_robot(family)


def describe_health(state: RobotState, build: Build) -> str:
    """Return the robot's health as text; empty if its wire does not report it."""
    parts = []
    if state.battery_percent is not None:
        parts.append(f"battery {state.battery_percent:.0f} %")
    if state.temperatures_c:
        hottest_c = max(state.temperatures_c)
        column = state.temperatures_c.index(hottest_c)
        joint = build.names[column] if column < len(build.names) else f"motor {column}"
        parts.append(f"hottest motor {hottest_c:.0f} °C ({joint})")
    return "; ".join(parts)


def print_modes(out: Console, current: int, known: Sequence[ModeFacts]) -> None:
    """Print the robot's modes, the current one marked."""
    rows = [
        (
            ">" if facts.id == current else "",
            str(facts.id),
            facts.name,
            f"{facts.label}{' (teach, play)' if facts.balanced else ''}",
            facts.buttons,
        )
        for facts in known
    ]
    print_table(out, ("", "id", "mode", "what it is", "remote"), rows, right=("id",))
    if current not in {facts.id for facts in known}:
        out.print(f"The robot is in mode {current}, which rote does not know.")


def find_command_name(called: str) -> str:
    """Return the command that starts rote: its name if the shell finds it, else `called`."""
    return "rote" if shutil.which("rote") else os.path.relpath(called)


async def ask_yes(question: str) -> bool:
    """Ask the user a question; return True for "y" or "yes", False for anything else."""
    print(question, end="", flush=True)
    try:
        typed = await wait_for_enter()
    except asyncio.CancelledError:
        print("\nCancelled: nothing was done.", flush=True)
        raise
    if not typed:  # the end of the input: Ctrl-D leaves the cursor behind the question
        print()
    return typed.strip().lower() in {"y", "yes"}


async def wait_for_enter() -> str:
    """Wait until the user presses Enter; return the typed line, empty at the end of the input."""
    loop = asyncio.get_running_loop()
    pressed: asyncio.Future[str] = loop.create_future()

    def set_typed_line() -> None:
        line = _read_typed_line()
        if not pressed.done():
            pressed.set_result(line)

    try:
        loop.add_reader(sys.stdin, set_typed_line)
    except NotImplementedError:  # the loop of Windows: a daemon thread reads instead
        read_in_thread = partial(_read_line_in_thread, loop, pressed)
        threading.Thread(target=read_in_thread, name="rote Enter", daemon=True).start()
        return await pressed
    try:
        return await pressed
    finally:
        loop.remove_reader(sys.stdin)


def _read_line_in_thread(loop: asyncio.AbstractEventLoop, pressed: "asyncio.Future[str]") -> None:
    line = _read_typed_line()

    def set_line() -> None:
        if not pressed.done():
            pressed.set_result(line)

    with suppress(RuntimeError):  # the loop was closed meanwhile
        loop.call_soon_threadsafe(set_line)


def _read_typed_line() -> str:
    """Return a line of standard input; empty at its end, also if its terminal is gone."""
    try:
        return sys.stdin.readline()
    except (OSError, ValueError):
        return ""


def stdin_is_terminal() -> bool:
    """Whether a user can be prompted."""
    return sys.stdin is not None and sys.stdin.isatty()
