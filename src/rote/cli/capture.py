"""rote capture: what a packet trace really holds."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from typer.core import TyperGroup

from rote.cli import capture_tools
from rote.cli.options import Json, print_json
from rote.errors import BadRequestError

if TYPE_CHECKING:
    from rich.console import Console
    from typer._click.core import Context

    from rote.capture.report import Report

_DEFAULT = "report"


class _FileFirst(TyperGroup):
    """A group whose first word may be a file: `rote capture FILE` is `rote capture report FILE`."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Put the missing word in."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="capture",
    cls=_FileFirst,
    help="Say what a packet trace really holds: rote capture FILE. Other words are commands.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

File = Annotated[
    str, typer.Argument(metavar="FILE", help="A pcap or pcapng, plain or gzipped; - is a pipe.")
]


class _Words(argparse.ArgumentParser):
    """Reads the words of `rote capture FILE`.

    Typer turns words into values by pydantic, which takes longer to load than all of numpy: a
    third of the time in which a small capture is read.
    """

    def error(self, message: str) -> NoReturn:
        """Let the command line say it, as for every other command."""
        raise typer.BadParameter(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End after the help."""
        raise typer.Exit(status)


def _words() -> _Words:
    words = _Words(
        prog="rote capture",
        description="Name every flow of a capture by its structure, and say what can be known.",
        allow_abbrev=False,
    )
    words.add_argument("file", metavar="FILE", help="pcap or pcapng, also gzipped; - is a pipe")
    words.add_argument("--json", action="store_true", help="print JSON for scripts")
    words.add_argument("--csv", action="store_true", help="print the flows as CSV")
    words.add_argument("--html", metavar="PAGE", type=Path, help="write the report as one page")
    words.add_argument("--stream", action="store_true", help="keep memory bounded")
    words.add_argument(
        "--keylog", metavar="KEYS", type=Path, help="decrypt with the session's secrets in KEYS"
    )
    return words


@app.command(
    _DEFAULT,
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def report(ctx: typer.Context) -> None:
    """Name every flow of a capture by its structure, and say what can be known of it."""
    read_and_show(ctx.args)


def direct(words: Sequence[str]) -> int | None:
    """Run `rote capture FILE ...` past Typer; None where the words are for another command.

    `words` are those behind `capture`.
    """
    others = {command.name or command.callback.__name__ for command in app.registered_commands}  # type: ignore[union-attr]
    if not words or words[0] in others or words[0] == "--help":
        return None
    try:
        read_and_show(words)
    except typer.Exit as end:
        return end.exit_code
    return 0


def read_and_show(words: Sequence[str]) -> None:
    """Read a capture and give the report as the words ask for it."""
    wanted = _words().parse_args(words)
    # Nothing here multiplies matrices; numpy would start a thread for each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from rote.capture.report import report as read

    found = read(wanted.file, stream=wanted.stream, keylog=_text(wanted.keylog))
    _give(found, wanted.json, wanted.csv, wanted.html)


def _text(keylog: Path | None) -> str | None:
    if keylog is None:
        return None
    try:
        return keylog.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadRequestError(
            f"the key log {keylog} cannot be read: {error.strerror}", "Check the path."
        ) from error


def _give(found: "Report", as_json: bool, as_csv: bool, html: Path | None) -> None:
    if html is not None:
        from rote.capture.html import page

        html.write_text(page(found), encoding="utf-8")
    if as_json:
        print_json(found.document())
        return
    from rote.cli import capture_show

    if as_csv:
        print(capture_show.as_csv(found), end="")
    else:
        capture_show.show(_console(), found)


def _console() -> "Console":
    from rich.console import Console

    # Nobody reads a pipe at 80 columns.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 200)


@app.command()
def explain(file: File, as_json: Json = False) -> None:
    """Walk through the documents' reading and the true one, side by side, on your own file."""
    from rote.capture.explain import explain as walk
    from rote.capture.report import report as read

    found = walk(read(file))
    if as_json:
        print_json(found.document())
        return
    from rote.cli import capture_show

    capture_show.explain(_console(), found)


@app.command()
def field(
    file: File,
    offset: Annotated[int, typer.Argument(min=0, max=400, help="Byte of the payload, from 0.")],
    width: Annotated[int, typer.Option("--width", min=1, max=6, help="Bytes, big-endian.")] = 1,
    as_json: Json = False,
) -> None:
    """Say by statistics whether a field is a counter, a constant, a length, random or a choice."""
    from rote.capture.report import judge_field
    from rote.capture.report import report as read

    tests = judge_field(read(file, head=offset + width), offset, width)
    if as_json:
        print_json([test.document() for test in tests])
        return
    for test in tests:
        print(f"{test.direction}: {test.verdict.kind}\n    {test.verdict.why}")
    if not tests:
        print("No direction has UDP datagrams.")


for _command in (
    capture_tools.live,
    capture_tools.make,
    capture_tools.scrub,
    capture_tools.dissector,
):
    app.command()(_command)
