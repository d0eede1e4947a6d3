"""The tree of all commands, and their common parts: -v, --log, short help and examples."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from rote.cli.examples import EXAMPLES
from rote.cli.logs import LOG_HELP, VERBOSE_HELP
from rote.cli.options import HELP
from rote.text import suggest_names

_EXPECTED_VALUES = {"float": "a number", "int": "a whole number", "finite": "a finite number"}
"""The expected value, by the first word of pydantic's error type: `float` of `float_parsing`."""


def describe_usage_error(error: typer.TyperException, arguments: list[str]) -> tuple[str, str]:
    """Return the message for wrong arguments, and a suggestion: empty if there is none.

    Typer's exceptions are distinguished by their attributes, because the classes are not public.
    """
    context = getattr(error, "ctx", None)
    if hasattr(error, "possibilities"):
        return _describe_unknown_option(error, context)
    if hasattr(error, "option_name"):
        return _describe_option_without_value(str(error.option_name), arguments)
    if isinstance(error, typer.BadParameter):
        return _describe_bad_value(error), ""
    if context is not None and hasattr(context.command, "commands"):
        return _describe_unknown_command(context, arguments)
    if context is not None and (extra := _find_extra_arguments(error)):
        return f"{context.command_path} takes no argument {extra!r}", ""
    return error.format_message(), ""


def _describe_unknown_option(error: Any, context: Any) -> tuple[str, str]:
    name = str(error.option_name)
    params = [] if context is None else context.command.params
    known = [option for param in params for option in (*param.opts, *param.secondary_opts)]
    known += [] if context is None else context.help_option_names
    return f"there is no option {name!r}", suggest_names(name, known)


def _describe_option_without_value(name: str, arguments: list[str]) -> tuple[str, str]:
    if any(each.startswith(f"{name}=") for each in arguments):
        return f"{name} takes no value", ""
    return f"{name} needs a value", ""


def _describe_bad_value(error: typer.BadParameter) -> str:
    """Return the message for a missing or wrong value of an option or argument."""
    param: Any = error.param
    if param is None:
        return error.message
    is_option = param.param_type_name == "option"
    name = max(param.opts, key=len) if is_option else str(param.metavar or param.name.upper())
    if hasattr(error, "param_type"):  # the value is missing
        return f"{name} is missing"
    list_errors = getattr(error.__cause__, "errors", None)
    if list_errors is None:
        return f"{name}: {error.message}"
    (first, *_) = list_errors()
    expected = _EXPECTED_VALUES.get(str(first["type"]).partition("_")[0], "another value")
    return f"{name} needs {expected}, not {first['input']!r}"


def _describe_unknown_command(context: Any, arguments: list[str]) -> tuple[str, str]:
    """Return the message for a group without a known command after it, and a suggestion."""
    group = context.command
    arguments_after = arguments[len(context.command_path.split()) - 1 :]
    names = group.list_commands(None)
    words = [word for word in arguments_after if not word.startswith("-") and word not in names]
    if not words:
        return f"the command after {context.command_path!r} is missing", ""
    return f"there is no command {words[0]!r}", suggest_names(words[0], names)


def _find_extra_arguments(error: typer.TyperException) -> str:
    """Return the arguments that Typer quotes in brackets, because it has them in no attribute."""
    return error.format_message().partition("(s) (")[2].removesuffix(")")


SETTINGS: dict[str, Any] = {"help_option_names": list(HELP), "max_content_width": 100}
"""Settings of the root command, which all commands inherit."""


def _define_common_options(
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
    """Define the options that every command has; `logs` evaluates them before parsing."""


def build_tree(app: typer.Typer) -> Any:
    """Return the root command of an application, with common options and examples added to all."""
    root = typer.main.get_command(app)
    add_common_options(root)
    _add_examples(root)
    return root


def _add_examples(command: Any, words: tuple[str, ...] = ()) -> None:
    """Give every command that has an example an epilog that shows it."""
    if (example := EXAMPLES.get(" ".join(words))) is not None:
        command.epilog = f"Example: rote {example}"
    for name, each in getattr(command, "commands", {}).items():
        _add_examples(each, (*words, name))


def add_common_options(command: Any) -> None:
    """Add the common options and a short help to a command and its subcommands."""
    options = _make_common_options()
    for each in _walk_commands(command):
        each.params += [
            option
            for option in options
            if not _list_option_names(option) & _list_used_option_names(each)
        ]
        for param in each.params:
            if param.param_type_name == "argument" and param.metavar:
                # Typer would add the Python type, like <list[Path]>, to the name.
                param.display_type_rich = _hide_type
        if each.help and not each.short_help:
            each.short_help = each.help.partition("\n\n")[0].replace("\n", " ")


def _hide_type(ctx: Any) -> str:
    return ""  # the text that the help shows as the argument's type


def _make_common_options() -> list[Any]:
    app = typer.Typer(add_completion=False)
    app.command()(_define_common_options)
    return list(typer.main.get_command(app).params)


def _walk_commands(command: Any) -> Iterator[Any]:
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from _walk_commands(each)


def _list_option_names(option: Any) -> set[str]:
    return {*option.opts, *option.secondary_opts}


def _list_used_option_names(command: Any) -> set[str]:
    return {name for param in command.params for name in _list_option_names(param)}
