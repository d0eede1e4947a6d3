"""rote completion: what a shell runs to complete the words of rote, and the table it goes by."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.cli import capture
from rote.cli.options import HELP, Json, print_json
from rote.errors import BadRequestError
from rote.shell_completion import SCRIPTS, SHELLS

if TYPE_CHECKING:
    from typer.core import TyperGroup

_KINDS = {"TAKE": "take", "ACTION": "action", "URL": "url", "FILE": "file", "OTHER": "file"}
"""What is offered for a value, by how the help calls it."""
_OPEN = "value"
"""The kind of a value for which nothing can be offered."""


def completion(
    shell: Annotated[str, typer.Argument(metavar="|".join(SHELLS), help="Your shell.")],
    as_json: Json = False,
) -> None:
    """Print what makes a shell complete commands, options, takes and actions.

    For this terminal, in bash: eval "$(rote completion bash)". For good: docs/cli.md.
    """
    if shell not in SCRIPTS:
        raise BadRequestError(
            f"there is no completion for {shell!r}", f"Use one of: {', '.join(SHELLS)}."
        )
    if as_json:
        print_json({"shell": shell, "script": SCRIPTS[shell]})
    else:
        print(SCRIPTS[shell], end="")


def table(command: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return what `rote.shell_completion` knows of a command and all below it; `path` are the words
    that lead to it.
    """
    context = command.context_class(command, help_option_names=list(HELP))
    params = [each for each in command.get_params(context) if not getattr(each, "hidden", False)]
    node: dict[str, Any] = {"help": command.get_short_help_str().split(". ")[0].rstrip(".")}
    if commands := _commands(command, context):
        node["commands"] = {name: table(each, (*path, name)) for name, each in commands.items()}
        node |= {"default": command.default_command} if hasattr(command, "default_command") else {}
    if options := {
        name: [_kind(each), (each.help or "").split(". ")[0].rstrip(".")]
        for each in params
        if each.param_type_name == "option"
        for name in sorted((*each.opts, *each.secondary_opts), key=len)  # a set, of help
    }:
        node["options"] = options
    if arguments := [
        _kind(each) + ("..." if each.nargs == -1 else "")
        for each in params
        if each.param_type_name == "argument"
    ]:
        node["arguments"] = arguments
    return node | (capture.report_node() if path == capture.REPORT else {})


def _commands(command: "TyperGroup", context: Any) -> Mapping[str, Any]:
    if not hasattr(command, "commands"):
        return {}
    found = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return {name: each for name, each in found.items() if each is not None and not each.hidden}


def _kind(param: Any) -> str:
    if getattr(param, "is_flag", False) or getattr(param, "count", False):
        return ""
    metavar = (param.metavar or "").strip("[]{}")
    if "|" in metavar:
        return metavar
    if metavar in _KINDS:
        return _KINDS[metavar]
    return "file" if "Path" in str(param.type_descriptor.annotation) else _OPEN
