"""The tree of all commands, and what each of them has: -v, --log, and help that is not cut off."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from rote.cli.logs import LOG_HELP, VERBOSE_HELP
from rote.cli.options import HELP

SETTINGS: dict[str, Any] = {"help_option_names": list(HELP), "max_content_width": 100}
"""What all commands inherit from the first one."""


def _template(
    verbose: Annotated[
        int,
        typer.Option(
            "-v",
            "--verbose",
            count=True,
            help=VERBOSE_HELP,
            expose_value=False,
            show_default=False,
        ),
    ] = 0,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help=LOG_HELP, expose_value=False)
    ] = None,
) -> None:
    """Have the options of every command. `logs` reads them before the command line is parsed."""


def tree(app: typer.Typer) -> Any:
    """Return the commands of an application, complete."""
    root = typer.main.get_command(app)
    complete(root)
    return root


def complete(command: Any) -> None:
    """Add to a command, and to all below it, what every command has."""
    options = _options()
    for each in _all(command):
        each.params += [option for option in options if not _names(option) & _used_names(each)]
        for param in each.params:
            if param.param_type_name == "argument" and param.metavar:
                # The name says what it is; Typer would add the type in Python, like <list[Path]>.
                param.display_type_rich = _no_type
        if each.help and not each.short_help:
            each.short_help = each.help.partition("\n\n")[0].replace("\n", " ")


def _no_type(ctx: Any) -> str:
    return ""


def _options() -> list[Any]:
    app = typer.Typer(add_completion=False)
    app.command()(_template)
    return list(typer.main.get_command(app).params)


def _all(command: Any) -> Iterator[Any]:
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from _all(each)


def _names(option: Any) -> set[str]:
    return {*option.opts, *option.secondary_opts}


def _used_names(command: Any) -> set[str]:
    return {name for param in command.params for name in _names(param)}
