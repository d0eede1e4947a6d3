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

from rich.console import Console
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

_UNBROKEN = 10_000  # columns: longer than any line
SEVERITIES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def console(*, quiet: bool = False, record: bool = False, width: int | None = None) -> Console:
    """Return a console on standard output; lines are broken on a terminal only.

    It prints text without interpreting markup, because names may contain anything; see `styled`.
    """
    made = rich_console(
        highlight=False, markup=False, emoji=False, quiet=quiet, record=record, width=width
    )
    if width is None and not made.is_terminal:
        made.width = _UNBROKEN
    return made


def styled(*parts: str | tuple[str, str]) -> Text:
    """Return a text made of parts, each alone or with its style."""
    return Text.assemble(*parts)


class Bar(Protocol):
    """A progress bar in use."""

    def __call__(self, fraction: float, message: str) -> None:
        """Move the bar to `fraction`, 0 to 1."""


@contextmanager
def waiting(message: str) -> Iterator[None]:
    """Show a spinner on standard error while the block runs; on a terminal only."""
    out = rich_console(stderr=True)
    if not out.is_terminal:
        yield
        return
    with out.status(Text(message), spinner="dots" if shows("⠋") else "line"):
        yield


@contextmanager
def bar(out: Console, title: str) -> Iterator[Bar]:
    """Show a progress bar while the block runs; on a terminal only."""
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

        def move(fraction: float, message: str) -> None:
            progress.update(task, completed=fraction, message=message)

        yield move


def findings(out: Console, found: Sequence[Finding]) -> None:
    """Print the findings of a preflight or of a motion check."""
    for finding in found:
        severity = finding.severity.value
        when = finding.time_s
        at = "" if when is None else f" at {when:.2f} s:"
        out.print(
            styled((severity, SEVERITIES[severity]), f"{at} {one_line(worded(finding.message))}")
        )
        if finding.remedy:
            out.print(f"      {one_line(worded(finding.remedy))}", style="dim")


def print_stream_report(out: Console, report: StreamReport, how_well: str) -> None:
    """Print how well a motion of this computer was played."""
    verb = "Played" if report.completed else "Stopped"
    rate = f"{report.rate_hz:.1f} poses a second"
    out.print(f"{verb} in {report.seconds:.1f} s, at {rate}, {how_well}")
    if not report.completed:
        out.print(styled(("It did not complete:", "yellow"), f" {report.reason}."))


def printable(name: str) -> str:
    """Return any name as one printable line without control characters."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in name)


def actions(out: Console, listed: Actions) -> None:
    """Print the robot's list."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("no.", "name", "seconds"):
        table.add_column(column, justify="left" if column == "name" else "right")
    for action in listed.taught:
        seconds = f"{action.duration_s:.2f}" if action.duration_s else "?"
        table.add_row(str(action.position), printable(action.name), seconds)
    if listed.taught:
        out.print(table)
    if listed.presets:
        presets = ", ".join(
            f"{preset.id}\N{NO-BREAK SPACE}{printable(preset.name)}" for preset in listed.presets
        )
        out.print(f"presets: {presets}", style="dim")
    for note in listed.notes:
        out.print(f"Unexpected in the robot's list: {note}.", style="yellow")
    used = len(listed.taught)
    out.print(f"{used} of {used + listed.free_places} slots used.", style="dim")


def joints(out: Console, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print numbers by joint, names to the left and numbers to the right."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, title in enumerate(titles):
        table.add_column(title, justify="right" if number else "left")
    for row in rows:
        table.add_row(*map(one_line, row))
    out.print(table)


def robot(build: Build) -> str:
    """Return the kind of robot of a build, for use in a sentence."""
    family = family_of(build)
    return "this robot" if family is None else a_robot(family)


def limbs(build: Build) -> str:
    """Return what is taught on a robot: its arms, or its legs."""
    return build.limbs


def health(state: RobotState, build: Build) -> str:
    """Return the robot's health as text; empty if its wire does not report it."""
    parts = []
    if state.battery_percent is not None:
        parts.append(f"battery {state.battery_percent:.0f} %")
    if state.temperatures_c:
        hottest = max(range(len(state.temperatures_c)), key=state.temperatures_c.__getitem__)
        joint = build.names[hottest] if hottest < len(build.names) else f"motor {hottest}"
        parts.append(f"hottest motor {state.temperatures_c[hottest]:.0f} °C ({joint})")
    return "; ".join(parts)


def modes(out: Console, current: int, known: Sequence[ModeFacts]) -> None:
    """Print the robot's modes, the current one marked."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("", "id", "mode", "what it is", "remote"):
        table.add_column(column, justify="right" if column == "id" else "left")
    for facts in known:
        message = f"{facts.label}{' (teach, play)' if facts.balanced else ''}"
        mark = styled((">" if facts.id == current else "", "bold green"))
        table.add_row(mark, str(facts.id), facts.name, message, facts.buttons)
    out.print(table)
    if current not in {facts.id for facts in known}:
        out.print(f"The robot is in mode {current}, which rote does not know.")


def command(called: str) -> str:
    """Return how the user started rote: by its name, or by the path that was used."""
    return "rote" if shutil.which("rote") else os.path.relpath(called)


async def ask_yes(question: str = "Type yes to delete it: ") -> bool:
    """Ask a person for yes or no; Enter alone is no."""
    print(question, end="", flush=True)
    return (await enter_pressed()).strip().lower() in {"y", "yes"}


async def enter_pressed() -> str:
    """Wait until a person presses Enter, and return what was typed."""
    loop = asyncio.get_running_loop()
    pressed: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        line = _typed_line()
        if not pressed.done():
            pressed.set_result(line)

    try:
        loop.add_reader(sys.stdin, read)
    except NotImplementedError:  # the loop of Windows: a daemon thread reads instead
        wait = partial(_read_line, loop, pressed)
        threading.Thread(target=wait, name="rote Enter", daemon=True).start()
        return await pressed
    try:
        return await pressed
    finally:
        loop.remove_reader(sys.stdin)


def _read_line(loop: asyncio.AbstractEventLoop, pressed: "asyncio.Future[str]") -> None:
    line = _typed_line()

    def tell() -> None:
        if not pressed.done():
            pressed.set_result(line)

    with suppress(RuntimeError):  # the loop was closed meanwhile
        loop.call_soon_threadsafe(tell)


def _typed_line() -> str:
    """Return a line of standard input; empty at its end, also if its terminal is gone."""
    try:
        return sys.stdin.readline()
    except (OSError, ValueError):
        return ""


def stdin_is_terminal() -> bool:
    """Whether a user can be prompted."""
    return sys.stdin is not None and sys.stdin.isatty()
