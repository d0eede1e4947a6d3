"""rote capture: analyse, make and scrub packet captures."""

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from rote.cli import capture_live
from rote.cli.examples import EXAMPLES
from rote.cli.logs import LOG_HELP, VERBOSE_HELP
from rote.cli.options import HELP, Json, Overwrite, choice, print_json, refuse_unused_options
from rote.errors import BadRequestError
from rote.text import suggest_names

if TYPE_CHECKING:
    from typer._click.core import Context

    from rote.capture.report.report import Report


def scrub(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A capture, pcap or pcapng.")],
    to: Annotated[Path, typer.Argument(metavar="COPY", help="Where to write the copy.")],
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a copy in which addresses and names are replaced, and contents are zeros.

    The same name gets the same pseudonym throughout. Headers, times, sizes and ports stay, and so
    do contents that are proven to be encrypted.
    """
    from rote.capture.scrub.scrub import scrub as scrub_file
    from rote.platform.atomic_file import check_new

    check_new(to, overwrite)
    result = scrub_file(file, to)
    if as_json:
        print_json({name: getattr(result, name) for name in result.__slots__})
        return
    print(f"{result.packets:,} packets written to {to}.")
    _print_counts(
        "Replaced", {kind: _describe_replaced(count) for kind, count in result.replaced.items()}
    )
    _print_counts("Kept, because it is encrypted", _describe_packets(result.encrypted))
    _print_counts("Contents cleared", _describe_packets(result.cleared))
    for warning in result.warnings:
        print(f"Note: {warning}.")


def _describe_replaced(count: dict[str, int]) -> str:
    different, times = count["different"], count["times"]
    return f"{different:,} different, {times:,} time{'s' * (times != 1)}"


def _describe_packets(counts: dict[str, int]) -> dict[str, str]:
    return {kind: f"{count:,} packet{'s' * (count != 1)}" for kind, count in counts.items()}


def _print_counts(title: str, counts: dict[str, str]) -> None:
    if counts:
        print(f"{title}:")
    for kind, count in sorted(counts.items()):
        print(f"  {kind}: {count}")


_DEFAULT = "report"
_ENCRYPTED_KIND = "webrtc"
REPORT = ("capture", _DEFAULT)
"""The command that is parsed in this module, without Typer."""


class _FileFirst(TyperGroup):
    """A group whose first word may be a file: `rote capture FILE` is `rote capture report FILE`."""

    default_command = _DEFAULT

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Insert the command `report` if the first word is no command."""
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

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Raise `typer.Exit` where argparse would end the process: after printing the help."""
        raise typer.Exit(status)


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help in the layout of the other commands."""

    def add_usage(
        self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None
    ) -> None:
        """Use the same prefix as the other commands."""
        super().add_usage(usage, actions, groups, prefix or "Usage: ")


def _build_parser() -> _ArgumentParser:
    parser = _ArgumentParser(
        usage="rote capture report [OPTIONS] {FILE}",
        description="  Identify every flow of a capture by its structure, and report what is "
        "known.\n"
        "\n  The word report may be left out: rote capture FILE.",
        epilog=f"  Example: rote {EXAMPLES['capture report']}",
        allow_abbrev=False,
        add_help=False,
        exit_on_error=False,
        formatter_class=_HelpFormatter,
    )
    arguments = parser.add_argument_group("Arguments")
    arguments.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="A pcap or pcapng, plain or gzipped; - is a pipe.  [required]",
    )
    options = parser.add_argument_group("Options")
    options.add_argument("--json", action="store_true", help="Print JSON for scripts.")
    options.add_argument("--csv", action="store_true", help="Print the flows as CSV.")
    options.add_argument("--html", metavar="PAGE", type=Path, help="Write the report as one page.")
    options.add_argument("--overwrite", action="store_true", help="Replace PAGE if it exists.")
    options.add_argument("--stream", action="store_true", help="Keep memory bounded.")
    options.add_argument(
        "--keylog", metavar="KEYS", type=Path, help="Decrypt with the session's secrets in KEYS."
    )
    options.add_argument("-v", "--verbose", action="count", help=VERBOSE_HELP)
    options.add_argument("--log", metavar="FILE", type=Path, help=LOG_HELP)
    options.add_argument(*HELP, action="help", help="Show this message and exit.")
    return parser


def report_node() -> dict[str, Any]:
    """Return the options and arguments of `rote capture report`, for `rote.cli.completion`."""
    actions = [action for action in _build_parser()._actions if action.option_strings]
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
    """Identify every flow of a capture by its structure, and report what is known."""
    read_and_show(ctx.args)


def run_report(arguments: Sequence[str]) -> int | None:
    """Run `rote capture FILE ...` without Typer; return None if the arguments are for another
    command.

    `arguments` are those after `capture`.
    """
    if not arguments or arguments[0] in _list_commands() or arguments[0] in HELP:
        return None
    try:
        read_and_show(arguments)
    except typer.Exit as end:
        return end.exit_code
    return 0


def _list_commands() -> list[str]:
    return [command.name or command.callback.__name__ for command in app.registered_commands]  # type: ignore[union-attr]


def read_and_show(arguments: Sequence[str]) -> None:
    """Read a capture and print the report according to the arguments."""
    options, unknown = _parse_report(arguments)
    if options.file is None:
        raise typer.BadParameter("FILE is missing")
    _check_file(options.file, unknown)
    if unknown:
        raise typer.BadParameter(f"there is no option or argument {' '.join(unknown)!r}")
    if options.overwrite and options.html is None:
        raise BadRequestError("--overwrite does nothing without --html", "Leave it out.")
    if options.csv and options.json:
        raise BadRequestError("--csv and --json exclude each other", "Leave out one.")
    if options.html is not None:
        from rote.platform.atomic_file import check_new

        check_new(options.html, options.overwrite)
    _print_report(read_capture(options.file, options.keylog, stream=options.stream), options)


def _parse_report(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the options and the unknown arguments; raise `typer.BadParameter` for a bad value."""
    try:
        return _build_parser().parse_known_args(arguments)
    except argparse.ArgumentError as error:
        name = str(error.argument_name)
        # argparse reports both `--json=1` and `--html` without a value as a bad argument.
        has_value = any(
            "=" in argument and name in argument.split("=")[0] for argument in arguments
        )
        raise typer.BadParameter(f"{name} {'takes no' if has_value else 'needs a'} value") from None


def _check_file(file: str, unknown: list[str]) -> None:
    """Raise an error if `file` does not exist and looks like an unknown command instead."""
    if file == "-" or os.path.lexists(file):
        return
    suggestion = suggest_names(file, _list_commands())
    if suggestion or (unknown and file.isidentifier()):
        remedy = suggestion or "See: rote capture --help"
        raise BadRequestError(f"there is no command {file!r}, and no such file", remedy)


def read_capture(file: Path | str, keylog: Path | None, *, stream: bool = False) -> "Report":
    """Read a capture; decrypt it if `keylog`, the path of a key log, is given."""
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


def _print_report(report: "Report", options: argparse.Namespace) -> None:
    if options.html is not None:
        from rote.capture.report.html import render_page
        from rote.platform.atomic_file import appearing

        with appearing(options.html) as file:
            file.write(render_page(report).encode())
    if options.csv:
        from rote.capture.report import terminal

        print(terminal.format_csv(report), end="")
    else:
        show(report, as_json=options.json)


def show(report: "Report", *, as_json: bool) -> None:
    """Print a report, for people or for scripts."""
    if as_json:
        print_json(report.document())
        return
    from rote.capture.report import terminal

    terminal.print_report(terminal.make_console(), report)


@app.command()
def explain(file: File, as_json: Json = False) -> None:
    """Compare the documents' interpretation with the actual one, step by step, on your own file."""
    from rote.capture.report.explain import explain as explain_report

    explanation = explain_report(read_capture(file, None))
    if as_json:
        print_json(explanation.document())
        return
    from rote.capture.report import terminal

    terminal.print_explanation(terminal.make_console(), explanation)


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
    """Print every teaching frame, field by field; for DTLS records, only the unencrypted fields."""
    from itertools import islice

    from rote.capture.report.packet_list import PacketList, format_packet

    listing = PacketList()
    frames = islice(listing.read(file), first)
    if as_json:
        print_json([frame.document() for frame in frames])
        return
    count = 0
    for frame in frames:
        count += 1
        print("\n".join(format_packet(frame)), end="\n\n")
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
    from rote.capture.synthetic.build import make as make_capture
    from rote.platform.atomic_file import check_new

    if kind != _ENCRYPTED_KIND:
        refuse_unused_options(
            ctx, {"cipher", "keylog"}, f"with --kind {kind}, which is not encrypted"
        )
    for path in (file, keylog):
        if path is not None:
            check_new(path, overwrite)
    count = make_capture(file, kind, cipher=cipher, keylog=keylog, seed=seed)
    if as_json:
        print_json({"file": str(file), "packets": count})
        return
    keys = f" --keylog {keylog}" if keylog is not None else ""
    print(f"{count} packets of a simulated session are in {file}.\nTry: rote capture {file}{keys}")


def dissector(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Output file; by default standard output."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a dissector for Wireshark: teaching frames, A1 frames, the data channel."""
    from rote.capture.report.dissector import generate_dissector
    from rote.platform.atomic_file import appearing, check_new

    if overwrite and file is None:
        raise BadRequestError("--overwrite does nothing without a file", "Leave it out.")
    text = generate_dissector()
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
for _command in (capture_live.live, make, scrub, dissector):
    app.command()(_command)
