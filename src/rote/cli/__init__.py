"""The command line: parse, make one call, print. Exit codes follow the tree of errors.

Heavy modules are imported inside the commands, so that `rote --help` is quick.
"""

import errno
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import typer

from rote.cli import logs
from rote.cli.options import HELP, failed_stop
from rote.cli.tree import SETTINGS, tree
from rote.cli.wording import worded
from rote.errors import RoteError, StageError
from rote.platform.console_text import json_text, one_line, prepare_streams

EXIT_INTERRUPTED = 130


class _Home(NamedTuple):
    """Where a command or a group of commands is defined."""

    module: str
    """Within this package."""
    name: str = "app"
    more: str = ""
    """Another module, which adds commands to the same group."""


_COMMANDS = {
    "demo": _Home("demo", "demo"),
    "sim": _Home("simulate", "sim"),
    "discover": _Home("discover", "discover"),
    "robots": _Home("robots", "robots"),
    "doctor": _Home("doctor", "doctor"),
    "status": _Home("robot", "status"),
    "list": _Home("robot", "list_actions"),
    "teach": _Home("teach", "teach"),
    "play": _Home("play", "play"),
    "store": _Home("store", "store"),
    "stop": _Home("robot", "stop"),
    "send": _Home("send", "send"),
    "rename": _Home("robot", "rename"),
    "delete": _Home("robot", "delete"),
    "modes": _Home("robot", "modes"),
    "preview": _Home("motion_inspect", "preview"),
    "web": _Home("web", "web"),
    "watch": _Home("watch", "watch"),
    "ros": _Home("ros", "ros"),
    "mcp": _Home("mcp", "mcp"),
    "agent": _Home("stage", "agent"),
    "applog": _Home("applog", "applog"),
    "completion": _Home("completion", "completion"),
}
"""Every command, in the order of the help. A module is imported when its command is asked for."""
_GROUPS = {
    "motion": _Home("motion_inspect", more="motion"),
    "takes": _Home("takes"),
    "a1": _Home("a1.app"),
    "capture": _Home("capture"),
    "frame": _Home("frame"),
    "stage": _Home("stage"),
    "show": _Home("show"),
    "trial": _Home("trial"),
}
"""Every group of commands."""


def _application(names: Iterable[str]) -> typer.Typer:
    """Return the command line with these commands and groups alone."""
    app = typer.Typer(
        name="rote",
        help="Teach a Unitree robot a motion by hand and play it back.",
        epilog="New here? Run: rote demo",
        no_args_is_help=True,
        add_completion=False,
        context_settings=SETTINGS,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_root)
    for name in names:
        home = _COMMANDS.get(name) or _GROUPS[name]
        member = getattr(import_module(f"rote.cli.{home.module}"), home.name)
        if home.more:
            import_module(f"rote.cli.{home.more}")
        if name in _GROUPS:
            app.add_typer(member)
        else:
            app.command(name)(member)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        import platform

        from rote import __version__

        print(f"rote {__version__}, Python {platform.python_version()} on {platform.system()}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False, "--version", help="Show the version.", is_eager=True, callback=_version
    ),
) -> None:
    """Teach a Unitree robot a motion by hand and play it back."""


def commands(wanted: str | None = None) -> Any:
    """Return the tree of all commands; of one alone if `wanted` is the name of one."""
    known = (*_COMMANDS, *_GROUPS)
    return tree(_application([wanted] if wanted in known else known))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    prepare_streams()
    if not arguments or (len(arguments) == 1 and arguments[0] in _GROUPS):
        arguments.append("--help")
    try:
        with logs.logging_as(arguments):
            exit_code = _run(arguments)
            logs.ended(exit_code)
            return exit_code
    except RoteError as error:  # the log cannot be written
        return _refuse(arguments, error)


def _run(arguments: list[str]) -> int:
    try:
        result = _report(arguments[1:]) if arguments[0] == "capture" else None
        if result is None:
            result = commands(arguments[0]).main(arguments, prog_name="rote", standalone_mode=False)
    except RoteError as error:
        logs.failed(error)
        return _refuse(arguments, error)
    except typer.TyperException as error:
        about = _command_of(error, arguments)
        remedy = f"See: {about} {HELP[-1]}"
        message = error.format_message()
        if arguments[0] == "stop":
            message = f"{failed_stop(error)}: {message}"
        return _fail(arguments, "usage", message, remedy, 2)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of the output closed the pipe
        sys.stderr.close()
        return 0
    except OSError as error:
        logs.failed(error)
        return _fail(arguments, "system", *_system(error), 1)
    return result if isinstance(result, int) else 0


def _report(arguments: list[str]) -> int | None:
    """Do `rote capture FILE`, which names no command; None if one is named."""
    from rote.cli import capture

    return capture.direct(arguments)


def _command_of(error: typer.TyperException, arguments: list[str]) -> str:
    """Return the command whose arguments are wrong, with the words that lead to it."""
    context = getattr(error, "ctx", None)
    if context is not None:
        return str(context.command_path)
    if arguments[0] != "capture":
        return "rote"
    from rote.cli.capture import REPORT

    return " ".join(("rote", *REPORT))


def _refuse(arguments: list[str], error: RoteError) -> int:
    stage = {"stage": error.stage} if isinstance(error, StageError) else {}
    message, remedy = worded(error.text), worded(error.remedy)
    if error.headline:
        message = f"{error.headline}: {message}"
    return _fail(arguments, error.kind, message, remedy, error.exit_code, **stage)


def _system(error: OSError) -> tuple[str, str]:
    """Print what the system did not allow, and what to do next if that is clear."""
    if error.filename is None or error.strerror is None:
        return str(error) or f"the system reports {type(error).__name__}, and no more", ""
    barred = isinstance(error, PermissionError) or error.errno == errno.EROFS
    remedy = "Name a place that you may use." if barred else ""
    return f"{error.filename} cannot be used: {error.strerror.lower()}", remedy


def _fail(
    arguments: list[str], kind: str, message: str, remedy: str, exit_code: int, **more: str
) -> int:
    if "--json" in arguments:
        document = {"error": kind, "message": message, "remedy": remedy, **more}
        print(json_text(document, sys.stderr), file=sys.stderr)
    else:
        for start, text in (("rote: ", message), ("      ", remedy)):
            if text:
                print(_folded(start, one_line(text)), file=sys.stderr)
    return exit_code


def _folded(start: str, text: str) -> str:
    """Break a line between words on a terminal; a pipe gets it unbroken."""
    if not sys.stderr.isatty():
        return start + text
    width = max(30, shutil.get_terminal_size().columns)
    return textwrap.fill(text, width, initial_indent=start, subsequent_indent="      ")
