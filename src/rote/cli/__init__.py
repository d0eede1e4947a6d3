"""The command line: parse arguments, make one call, print the result.

Exit codes follow the class of the error.

Heavy modules are imported inside the commands, so that `rote --help` is quick.
"""

import errno
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from rote.cli import logs
from rote.cli.options import HELP, describe_failed_stop
from rote.cli.tree import SETTINGS, build_tree, describe_usage_error
from rote.cli.wording import worded
from rote.errors import RoteError, StageError
from rote.platform.console_text import json_text, one_line, prepare_streams

EXIT_INTERRUPTED = 130


class _Definition(NamedTuple):
    """Where a command or a group of commands is defined."""

    module: str
    """The module, within this package."""
    name: str = "app"
    extra_module: str = ""
    """Another module that adds commands to the same group; empty if there is none."""

    @property
    def is_group(self) -> bool:
        return self.name == "app"


_SECTIONS = {
    "Start": {
        "demo": _Definition("demo", "demo"),
        "web": _Definition("web", "web"),
    },
    "Your robot": {
        "stop": _Definition("robot", "stop"),
        "status": _Definition("robot", "status"),
        "discover": _Definition("discover", "discover"),
        "doctor": _Definition("doctor", "doctor"),
        "modes": _Definition("robot", "modes"),
        "robots": _Definition("robots", "robots"),
        "trial": _Definition("trial"),
    },
    "Teach and play": {
        "teach": _Definition("teach", "teach"),
        "list": _Definition("robot", "list_actions"),
        "play": _Definition("play", "play"),
        "rename": _Definition("robot", "rename"),
        "delete": _Definition("robot", "delete"),
    },
    "Motions": {
        "takes": _Definition("takes"),
        "motion": _Definition("motion_inspect", extra_module="motion"),
        "preview": _Definition("motion_inspect", "preview"),
        "batch": _Definition("batch"),
        "store": _Definition("store", "store"),
    },
    "Simulate": {
        "sim": _Definition("simulate", "sim"),
    },
    "Several robots": {
        "mirror": _Definition("mirror", "mirror"),
        "show": _Definition("show"),
        "stage": _Definition("stage"),
        "agent": _Definition("stage", "agent"),
    },
    "Other tools": {
        "watch": _Definition("watch", "watch"),
        "ros": _Definition("ros", "ros"),
        "mcp": _Definition("mcp", "mcp"),
        "completion": _Definition("completion", "completion"),
    },
    "Quadrupeds": {
        "a1": _Definition("a1.app"),
    },
    "Protocols": {
        "capture": _Definition("capture"),
        "frame": _Definition("frame"),
        "send": _Definition("send", "send"),
        "applog": _Definition("applog", "applog"),
    },
}
"""Every command, by section and in the order of the help.

A module is imported when its command is used. A definition without the name of a function is a
group of commands.
"""
_DEFINITIONS = {
    name: definition for section in _SECTIONS.values() for name, definition in section.items()
}
_GROUPS = frozenset(name for name, definition in _DEFINITIONS.items() if definition.is_group)
_ALIASES = {
    "version": ["--version"],
    "-V": ["--version"],
    "ls": ["list"],
    "actions": ["list"],
    "rm": ["delete"],
    "record": ["teach"],
    "export": ["takes", "export"],
    "gui": ["web"],
}
"""Hidden aliases: words that users try first, and the commands they stand for."""


class _SectionedGroup(TyperGroup):
    """The first level of commands, listed by section in the help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the help of all commands that were built."""
        for title, section in _SECTIONS.items():
            rows = [
                (name, self.commands[name].get_short_help_str(formatter.width))
                for name in section
                if name in self.commands
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _build_app(names: Iterable[str]) -> typer.Typer:
    """Return the command line with only these commands and groups."""
    app = typer.Typer(
        name="rote",
        cls=_SectionedGroup,
        help="Teach a Unitree robot a motion by hand and play it back.",
        epilog="New here? Run: rote demo",
        no_args_is_help=True,
        add_completion=False,
        context_settings=SETTINGS,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_define_root)
    for name in names:
        definition = _DEFINITIONS[name]
        member = getattr(import_module(f"rote.cli.{definition.module}"), definition.name)
        if definition.extra_module:
            import_module(f"rote.cli.{definition.extra_module}")
        if definition.is_group:
            app.add_typer(member)
        else:
            app.command(name)(member)
    return app


def _print_version(requested: bool) -> None:
    if requested:
        import platform

        from rote import __version__

        print(f"rote {__version__}, Python {platform.python_version()} on {platform.system()}")
        raise typer.Exit


def _define_root(
    version: bool = typer.Option(
        False, "--version", help="Show the version.", is_eager=True, callback=_print_version
    ),
) -> None:
    """Teach a Unitree robot a motion by hand and play it back."""


def commands(command: str | None = None) -> Any:
    """Return the tree of all commands, or, if there is one of the name `command`, of it alone."""
    return _build_tree(command if command in _DEFINITIONS else None)


@cache
def _build_tree(command: str | None) -> Any:
    return build_tree(_build_app(_DEFINITIONS if command is None else [command]))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    prepare_streams()
    arguments = _replace_alias(arguments)
    if not arguments or (len(arguments) == 1 and arguments[0] in _GROUPS):
        arguments.append("--help")
    try:
        with logs.logging_as(arguments):
            exit_code = _run_command(arguments)
            logs.log_exit(exit_code)
            return exit_code
    except RoteError as error:  # the log cannot be written
        return print_error(arguments, error)


def _replace_alias(arguments: list[str]) -> list[str]:
    match arguments:
        case ["help", *others]:
            return [*others, "--help"]
        case [alias, *others] if alias in _ALIASES:
            return [*_ALIASES[alias], *others]
    return arguments


def _run_command(arguments: list[str]) -> int:
    """Run a command, print any error, and return the exit code."""
    try:
        result = None
        if arguments[0] == "capture":
            from rote.cli.capture import run_report

            result = run_report(arguments[1:])  # None unless `rote capture FILE`
        if result is None:
            result = commands(arguments[0]).main(arguments, prog_name="rote", standalone_mode=False)
    except RoteError as error:
        logs.log_error(error)
        return print_error(arguments, error)
    except typer.TyperException as error:
        message, suggestion = describe_usage_error(error, arguments)
        remedy = f"{suggestion} See: {_find_command_path(error, arguments)} {HELP[-1]}".lstrip()
        if arguments[0] == "stop":
            message = f"{describe_failed_stop(error)}: {message}"
        return _print_failure(arguments, "usage", message, remedy, 2)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of the output closed the pipe
        sys.stderr.close()
        return 0
    except OSError as error:
        logs.log_error(error)
        return _print_failure(arguments, "system", *_describe_os_error(error), 1)
    return result if isinstance(result, int) else 0


def _find_command_path(error: typer.TyperException, arguments: list[str]) -> str:
    """Return the command whose arguments are wrong, as the user types it: `rote motion trim`."""
    context = getattr(error, "ctx", None)
    if context is not None:
        return str(context.command_path)
    if arguments[0] != "capture":
        return f"rote {arguments[0]}" if arguments[0] in _DEFINITIONS else "rote"
    from rote.cli.capture import REPORT

    return " ".join(("rote", *REPORT))


def print_error(arguments: list[str], error: RoteError) -> int:
    """Print an error and its remedy, as JSON if requested, and return the exit code."""
    details = {"stage": error.stage} if isinstance(error, StageError) else {}
    message, remedy = worded(error.text), worded(error.remedy)
    if error.headline:
        message = f"{error.headline}: {message}"
    return _print_failure(arguments, error.kind, message, remedy, error.exit_code, **details)


def _describe_os_error(error: OSError) -> tuple[str, str]:
    """Return the message and the remedy for an error of the operating system."""
    if error.strerror is None:
        unknown = f"the operating system reported {type(error).__name__} without details"
        return str(error) or unknown, ""
    if error.filename is None:  # a file that is open already, such as standard output
        disk_full = error.errno == errno.ENOSPC
        remedy = "Free some space, or write to another disk." if disk_full else ""
        return f"the operating system reported: {error.strerror.lower()}", remedy
    not_writable = isinstance(error, PermissionError) or error.errno == errno.EROFS
    remedy = "Choose a writable path." if not_writable else ""
    return f"{error.filename} cannot be used: {error.strerror.lower()}", remedy


def _print_failure(
    arguments: list[str], kind: str, message: str, remedy: str, exit_code: int, **details: str
) -> int:
    """Print an error on standard error, as JSON if requested; return `exit_code`."""
    if "--json" in arguments:
        document = {"error": kind, "message": message, "remedy": remedy, **details}
        print(json_text(document, sys.stderr), file=sys.stderr)
    else:
        for prefix, text in (("rote: ", message), ("      ", remedy)):
            if text:
                print(_wrap_line(prefix, one_line(text)), file=sys.stderr)
    return exit_code


def _wrap_line(prefix: str, text: str) -> str:
    """Break a line between words on a terminal; a pipe gets it unbroken."""
    if not sys.stderr.isatty():
        return prefix + text
    width = max(30, shutil.get_terminal_size().columns)
    return textwrap.fill(text, width, initial_indent=prefix, subsequent_indent="      ")
