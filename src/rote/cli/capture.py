"""rote capture: what a packet trace really holds."""

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from rote.cli import capture_live, capture_scrub
from rote.cli.logs import LOG_HELP, VERBOSE_HELP
from rote.cli.options import HELP, Json, Overwrite, choice, print_json, refuse_idle
from rote.errors import BadRequestError

if TYPE_CHECKING:
    from typer._click.core import Context

    from rote.capture.report.report import Report

_DEFAULT = "report"
_ENCRYPTED_KIND = "webrtc"
REPORT = ("capture", _DEFAULT)
"""The words that lead to the command whose arguments are parsed here, without Typer."""


class _FileFirst(TyperGroup):
    """A group whose first word may be a file: `rote capture FILE` is `rote capture report FILE`."""

    default_command = _DEFAULT

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Add the missing command."""
        if args and args[0] not in self.commands and args[0] not in HELP:
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="capture",
    cls=_FileFirst,
    help="Analyse a packet capture: rote capture FILE.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

File = Annotated[
    str, typer.Argument(metavar="FILE", help="A pcap or pcapng, plain or gzipped; - is a pipe.")
]


class _ArgumentParser(argparse.ArgumentParser):
    """Parses the arguments of `rote capture FILE`.

    Typer turns arguments into values with pydantic, which takes longer to import than all of numpy:
    a third of the time that reading a small capture takes.
    """

    def error(self, message: str) -> NoReturn:
        """Raise the error, so that it is shown like that of every other command."""
        raise typer.BadParameter(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End after the help."""
        raise typer.Exit(status)


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help in the layout of the other commands."""

    def add_usage(
        self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None
    ) -> None:
        """Use the same prefix as the other commands."""
        super().add_usage(usage, actions, groups, prefix or "Usage: ")


def _parser() -> _ArgumentParser:
    parser = _ArgumentParser(
        usage="rote capture report [OPTIONS] {FILE}",
        description="  Name every flow of a capture by its structure, and say what can be known.\n"
        "\n  The word report may be left out: rote capture FILE.",
        allow_abbrev=False,
        add_help=False,
        formatter_class=_HelpFormatter,
    )
    arguments = parser.add_argument_group("Arguments")
    arguments.add_argument(
        "file", metavar="FILE", help="A pcap or pcapng, plain or gzipped; - is a pipe.  [required]"
    )
    options = parser.add_argument_group("Options")
    options.add_argument("--json", action="store_true", help="Print JSON for scripts.")
    options.add_argument("--csv", action="store_true", help="Print the flows as CSV.")
    options.add_argument("--html", metavar="PAGE", type=Path, help="Write the report as one page.")
    options.add_argument("--overwrite", action="store_true", help="Replace PAGE if it is there.")
    options.add_argument("--stream", action="store_true", help="Keep memory bounded.")
    options.add_argument(
        "--keylog", metavar="KEYS", type=Path, help="Decrypt with the session's secrets in KEYS."
    )
    options.add_argument("-v", "--verbose", action="count", help=VERBOSE_HELP)
    options.add_argument("--log", metavar="FILE", type=Path, help=LOG_HELP)
    options.add_argument(*HELP, action="help", help="Show this message and exit.")
    return parser


def report_node() -> dict[str, Any]:
    """Return what a shell may complete of `rote capture report`: see `rote.cli.completion`."""
    actions = [action for action in _parser()._actions if action.option_strings]
    options = {
        name: ["file" if action.type is Path else "", (action.help or "").rstrip(".")]
        for action in actions
        for name in action.option_strings
    }
    return {"options": options, "arguments": ["file"]}


@app.command(
    _DEFAULT,
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def report(ctx: typer.Context) -> None:
    """Name every flow of a capture by its structure, and say what can be known about it."""
    read_and_show(ctx.args)


def direct(arguments: Sequence[str]) -> int | None:
    """Run `rote capture FILE ...` without Typer; return None if the arguments are for another
    command.

    `arguments` are those after `capture`.
    """
    if not arguments or arguments[0] in _commands() or arguments[0] in HELP:
        return None
    try:
        read_and_show(arguments)
    except typer.Exit as end:
        return end.exit_code
    return 0


def _commands() -> list[str]:
    return [command.name or command.callback.__name__ for command in app.registered_commands]  # type: ignore[union-attr]


def read_and_show(arguments: Sequence[str]) -> None:
    """Read a capture and print the report according to the arguments."""
    parser = _parser()
    options, unknown = parser.parse_known_args(arguments)
    _check_file(options.file, unknown)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.overwrite and options.html is None:
        raise BadRequestError("--overwrite does nothing without --html", "Leave it out.")
    if options.csv and options.json:
        raise BadRequestError("--csv and --json exclude each other", "Leave out one.")
    if options.html is not None:
        from rote.platform.atomic_file import check_new

        check_new(options.html, options.overwrite)
    _print_report(read_capture(options.file, options.keylog, stream=options.stream), options)


def _check_file(file: str, unknown: list[str]) -> None:
    """Raise an error if the first word is not a file but looks like an unknown command."""
    if file == "-" or os.path.lexists(file):
        return
    from difflib import get_close_matches

    near = get_close_matches(file, _commands())
    if near or (unknown and file.isidentifier()):
        remedy = f"Did you mean: {' or '.join(near)}?" if near else "See: rote capture --help"
        raise BadRequestError(f"there is no command {file!r}, and no such file", remedy)


def read_capture(file: Path | str, keylog: Path | None, *, stream: bool = False) -> "Report":
    """Read a capture, with the keys in `keylog` if given."""
    from rote.capture.report.report import report_capture

    return report_capture(file, stream=stream, keylog=_read_keylog(keylog))


def _read_keylog(keylog: Path | None) -> str | None:
    if keylog is None:
        return None
    try:
        return keylog.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadRequestError(
            f"the key log {keylog} cannot be read: {error.strerror}", "Check the path."
        ) from error


def _print_report(found: "Report", options: argparse.Namespace) -> None:
    if options.html is not None:
        from rote.capture.report.html import render_page
        from rote.platform.atomic_file import appearing

        with appearing(options.html) as file:
            file.write(render_page(found).encode())
    if options.csv:
        from rote.capture.report import terminal

        print(terminal.as_csv(found), end="")
    else:
        show(found, as_json=options.json)


def show(found: "Report", *, as_json: bool) -> None:
    """Print a report, for people or for scripts."""
    if as_json:
        print_json(found.document())
        return
    from rote.capture.report import terminal

    terminal.show(terminal.console(), found)


@app.command()
def explain(file: File, as_json: Json = False) -> None:
    """Compare the documents' interpretation with the actual one, step by step, on your own file."""
    from rote.capture.report.explain import explain as walk

    found = walk(read_capture(file, None))
    if as_json:
        print_json(found.document())
        return
    from rote.capture.report import terminal

    terminal.explain(terminal.console(), found)


@app.command()
def field(
    file: File,
    offset: Annotated[
        int,
        typer.Argument(metavar="OFFSET", min=0, max=400, help="Byte of the payload, from 0."),
    ],
    width: Annotated[
        int, typer.Option("--width", metavar="N", min=1, max=6, help="Bytes, big-endian.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """Classify a field by statistics: counter, constant, length, random or choice."""
    from rote.capture.report.report import judge_field, report_capture

    tests = judge_field(report_capture(file, head=offset + width), offset, width)
    if as_json:
        print_json([test.document() for test in tests])
        return
    for test in tests:
        print(f"{test.direction}: {test.verdict.kind}\n    {test.verdict.why}")
    if not tests:
        print("No direction has UDP datagrams.")


@app.command()
def packets(
    file: File,
    first: Annotated[
        int | None, typer.Option("--first", min=1, metavar="N", help="Only the first N frames.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print teaching frames one by one, field by field; of DTLS records what can be read."""
    from itertools import islice

    from rote.capture.report.packet_list import PacketList, packet_lines

    listing = PacketList()
    found = islice(listing.read(file), first)
    if as_json:
        print_json([one.document() for one in found])
        return
    count = 0
    for one in found:
        count += 1
        print("\n".join(packet_lines(one)), end="\n\n")
    for warning in listing.warnings:
        print(f"Note: {warning}.")
    print(
        f"{count:,} packets listed; {listing.others:,} other UDP datagrams were left out. "
        f"What they are: rote capture {shlex.quote(file)}"
    )


def make(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where to write it: .pcap or .pcapng.")
    ],
    kind: Annotated[
        str, typer.Option(metavar=choice(("webrtc", "frames", "a1")), help="The wire to simulate.")
    ] = "webrtc",
    cipher: Annotated[
        str,
        typer.Option(metavar=choice(("chacha20", "aes128", "aes256")), help="Cipher, for webrtc."),
    ] = "chacha20",
    keylog: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the session's secrets to this file.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a capture of a teaching session, to learn from and to test with."""
    from rote.capture.synthetic.build import make as build
    from rote.platform.atomic_file import check_new

    if kind != _ENCRYPTED_KIND:
        refuse_idle(ctx, {"cipher", "keylog"}, f"with --kind {kind}, which nothing encrypts")
    for path in (file, keylog):
        if path is not None:
            check_new(path, overwrite)
    count = build(file, kind, cipher=cipher, keylog=keylog, seed=seed)
    if as_json:
        print_json({"file": str(file), "packets": count})
        return
    keys = f" --keylog {keylog}" if keylog is not None else ""
    print(f"{count} packets of a made-up session are in {file}.\nTry: rote capture {file}{keys}")


def dissector(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Output file; by default standard output."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a dissector for Wireshark: teaching frames, A1 frames, the data channel."""
    from rote.capture.report.dissector import lua
    from rote.platform.atomic_file import appearing, check_new

    if overwrite and file is None:
        raise BadRequestError("--overwrite does nothing without a file", "Leave it out.")
    text = lua()
    if file is not None:
        check_new(file, overwrite)
        with appearing(file) as out:
            out.write(text.encode())
    if as_json:
        print_json({"text": text} if file is None else {"file": str(file)})
    elif file is None:
        print(text, end="")
    else:
        print(f"Written. Try: wireshark -X lua_script:{file}")


# Help lists the commands in the order in which they are added.
for _command in (capture_live.live, make, capture_scrub.scrub, dissector):
    app.command()(_command)
