"""What commands print for people: lines, tables and progress bars."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from rote.robot.base import Actions, Finding, Severity

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def console(*, record: bool = False, width: int | None = None) -> Console:
    """Return a console on standard output."""
    return Console(highlight=False, record=record, width=width)


class Bar(Protocol):
    """A progress bar in use."""

    def __call__(self, fraction: float, words: str) -> None:
        """Move it."""


@contextmanager
def waiting(out: Console, words: str) -> Iterator[None]:
    """Show that something takes its time while the block runs; on a terminal only."""
    if not out.is_terminal:
        yield
        return
    with out.status(words):
        yield


@contextmanager
def bar(out: Console, title: str) -> Iterator[Bar]:
    """Show a progress bar while the block runs; on a terminal only."""
    if not out.is_terminal:
        yield lambda fraction, words: None
        return
    columns = (
        TextColumn("  {task.description}"),
        BarColumn(30),
        TextColumn("{task.fields[words]}"),
    )
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task(title, total=1.0, words="")

        def move(fraction: float, words: str) -> None:
            progress.update(task, completed=fraction, words=words)

        yield move


def findings(out: Console, found: list[Finding]) -> None:
    """Print what a preflight found."""
    for finding in found:
        out.print(f"[{_STYLES[finding.severity]}]{finding.severity.value}[/] {finding.words}")
        if finding.remedy:
            out.print(f"      {finding.remedy}", style="dim")


def actions(out: Console, listed: Actions) -> None:
    """Print the robot's list."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("no.", "name", "seconds"):
        table.add_column(column, justify="left" if column == "name" else "right")
    for action in listed.taught:
        table.add_row(str(action.position), action.name, f"{action.duration_s:.2f}")
    if listed.taught:
        out.print(table)
    used = len(listed.taught)
    out.print(f"{used} of {used + listed.free_places} places taken.", style="dim")


def stdin_is_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()
