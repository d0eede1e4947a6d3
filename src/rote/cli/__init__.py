"""The command line: parse, make one call, print. Exit codes follow the tree of errors.

Heavy modules are imported inside the commands, so that `rote --help` is quick.
"""

import errno
import io
import json
import shutil
import sys
import textwrap
from collections.abc import Sequence

import typer

from rote.cli import (
    applog,
    capture,
    demo,
    discover,
    doctor,
    frame,
    motion_app,
    motion_inspect,
    play,
    robot,
    robots,
    send,
    simulate,
    store,
    takes,
    teach,
    web,
)
from rote.cli import motion as motion  # importing it adds its commands to the group
from rote.cli.a1 import app as a1
from rote.cli.wording import worded
from rote.errors import RoteError, StageError

EXIT_INTERRUPTED = 130
_GROUPS = {"motion", "takes", "a1", "capture", "frame"}

app = typer.Typer(
    name="rote",
    help="Teach a Unitree robot a motion by hand and play it back.",
    epilog="New here? Run: rote demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo")(demo.demo)
app.command("sim")(simulate.sim)
app.command("discover")(discover.discover)
app.command("robots")(robots.robots)
app.command("doctor")(doctor.doctor)
app.command("status")(robot.status)
app.command("list")(robot.list_actions)
app.command("teach")(teach.teach)
app.command("play")(play.play)
app.command("store")(store.store)
app.command("stop")(robot.stop)
app.command("send")(send.send)
app.command("rename")(robot.rename)
app.command("delete")(robot.delete)
app.command("modes")(robot.modes)
app.command("preview")(motion_inspect.preview)
app.command("web")(web.web)
app.add_typer(motion_app.app)
app.add_typer(takes.app)
app.add_typer(a1.app)
app.add_typer(capture.app)
app.add_typer(frame.app)
app.command("applog")(applog.applog)


def _version(wanted: bool) -> None:
    if wanted:
        from rote import __version__

        print(f"rote {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Show the version.", is_eager=True, callback=_version
    ),
) -> None:
    """Teach a Unitree robot a motion by hand and play it back."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        # Names on a robot may contain characters that the terminal cannot show; that must not fail.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if not arguments or (len(arguments) == 1 and arguments[0] in _GROUPS):
        arguments.append("--help")
    try:
        result = capture.direct(arguments[1:]) if arguments[0] == "capture" else None
        if result is None:
            result = app(arguments, prog_name="rote", standalone_mode=False)
    except RoteError as error:
        stage = {"stage": error.stage} if isinstance(error, StageError) else {}
        message, remedy = worded(error.text), worded(error.remedy)
        return _fail(arguments, error.kind, message, remedy, error.exit_code, **stage)
    except typer.TyperException as error:
        known = {command.name for command in app.registered_commands}
        about = f" {arguments[0]}" if arguments[0] in known | _GROUPS else ""
        remedy = f"See: rote{about} --help"
        return _fail(arguments, "usage", error.format_message(), remedy, 2)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of the output closed the pipe
        sys.stderr.close()
        return 0
    except OSError as error:
        return _fail(arguments, "system", *_system(error), 1)
    return result if isinstance(result, int) else 0


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
        print(json.dumps(document, ensure_ascii=False), file=sys.stderr)
    else:
        for start, text in (("rote: ", message), ("      ", remedy)):
            if text:
                print(_folded(start, text), file=sys.stderr)
    return exit_code


def _folded(start: str, text: str) -> str:
    """Break a line between words on a terminal; a pipe gets it unbroken."""
    if not sys.stderr.isatty():
        return start + text
    width = max(30, shutil.get_terminal_size().columns)
    return textwrap.fill(text, width, initial_indent=start, subsequent_indent="      ")
