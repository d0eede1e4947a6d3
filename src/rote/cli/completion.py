"""Shell completion: `rote completion`, and the answers that shells ask for on Tab.

A shell starts a process for each press of Tab. Only the module of the command on the line is
imported.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.cli import capture, commands
from rote.cli.options import HELP, Json, print_json
from rote.errors import BadRequestError
from rote.platform.paths import store_file, takes_folder

if TYPE_CHECKING:
    from typer.core import TyperGroup

_KINDS = {"TAKE": "take", "ACTION": "action", "URL": "url", "FILE": "file", "OTHER": "file"}
"""Kind of completion for a value, by its metavar."""
_NO_COMPLETION = "value"
"""The kind of a value without completion."""

SHELLS = ("bash", "zsh", "fish")
SHELL_VARIABLE = "_ROTE_COMPLETE"
"""The environment variable that names the shell of a completion request."""
LINE_VARIABLE = "_ROTE_LINE"
"""The environment variable that contains the command line up to the cursor."""
OFFER_FILES = ":file"
"""The completion that tells the shell to offer files itself."""

_URLS = {
    "sim://g1": "the embedded simulated robot",
    "sim://a1": "a simulated A1",
    "webrtc://": "a robot with stock firmware, by its address or serial number",
    "webrtc://ap": "a robot in its own Wi-Fi",
    "dds://": "a G1 EDU on a network interface",
    "udp://127.0.0.1:49504": "a robot of rote sim",
    "a1://192.168.123.161": "an A1 or Go1",
}
_TAKE_ENDINGS = (".mcap", ".npz")
_BASH_SPECIAL = re.compile(r"([^\w@%+=:,./-])")
"""Characters that bash must have escaped."""

SCRIPTS = {
    "bash": """\
# Completion of rote for bash.
_rote() {
    local value help
    COMPREPLY=()
    while IFS=$'\\t' read -r value help; do
        if [[ $value == :file ]]; then
            compopt -o filenames
            while IFS= read -r value; do COMPREPLY+=("$value"); done \\
                < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
        else
            [[ $value == *[=/] ]] && compopt -o nospace
            COMPREPLY+=("$value")
        fi
    done < <(_ROTE_COMPLETE=bash _ROTE_LINE="${COMP_LINE:0:COMP_POINT}" "$1" 2>/dev/null)
}
complete -F _rote rote
""",
    "zsh": """\
#compdef rote
# Completion of rote for zsh.
_rote() {
    local line value tab=$'\\t'
    local -a offered
    for line in "${(@f)$(_ROTE_COMPLETE=zsh _ROTE_LINE="${(j: :)words[1,CURRENT]}" \\
        "${words[1]}" 2>/dev/null)}"; do
        value="${line%%$tab*}"
        if [[ -z $value ]]; then
            continue
        elif [[ $value == :file ]]; then
            _files
        else
            offered+=("${value//:/\\\\:}${${line#$value}/#$tab/:}")
        fi
    done
    (( ${#offered} )) && _describe rote offered
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _rote "$@"
else
    compdef _rote rote
fi
""",
    "fish": """\
# Completion of rote for fish.
function __rote_complete
    set -lx _ROTE_COMPLETE fish
    set -lx _ROTE_LINE (commandline -cp | string collect)
    set -l called (commandline -opc)[1]
    for line in ($called 2>/dev/null)
        if test "$line" = ":file"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c rote -f -a '(__rote_complete)'
""",
}
"""Scripts that a shell runs once to set up completion."""


def completion(
    shell: Annotated[str, typer.Argument(metavar="|".join(SHELLS), help="Your shell.")],
    as_json: Json = False,
) -> None:
    """Print the completion script for a shell.

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


def describe_command(command: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a tree of what can be completed: a command and its subcommands.

    `path` contains the words that lead to the command. Each node has these keys:

        help       what the command is for
        commands   subcommands by name
        default    the subcommand that is used if none is named; most commands have none
        options    name -> [kind, help]; a flag has the kind ""
        arguments  [kind, ...]; a last kind that ends in "..." may be repeated

    A kind is `a|b|c` for a choice, `take`, `action`, `url` or `file`; others have no completion.
    """
    context = command.context_class(command, help_option_names=list(HELP))
    params = [each for each in command.get_params(context) if not getattr(each, "hidden", False)]
    node: dict[str, Any] = {"help": _shorten_help(command.get_short_help_str())}
    if subcommands := _list_subcommands(command, context):
        node["commands"] = {
            name: describe_command(each, (*path, name)) for name, each in subcommands.items()
        }
        if hasattr(command, "default_command"):
            node["default"] = command.default_command
    options: dict[str, list[str]] = {}
    arguments: list[str] = []
    for param in params:
        kind = _find_value_kind(param)
        if param.param_type_name == "argument":
            arguments.append(f"{kind}..." if param.nargs == -1 else kind)
            continue
        help_text = _shorten_help(param.help or "")
        # Sorted, because the options of help are a set.
        for name in sorted((*param.opts, *param.secondary_opts), key=len):
            options[name] = [kind, help_text]
    if options:
        node["options"] = options
    if arguments:
        node["arguments"] = arguments
    return node | (capture.report_node() if path == capture.REPORT else {})


def _shorten_help(text: str) -> str:
    """Return the first sentence of a help text, without its full stop."""
    return text.split(". ", maxsplit=1)[0].rstrip(".")


def _list_subcommands(command: "TyperGroup", context: Any) -> Mapping[str, Any]:
    if not hasattr(command, "commands"):
        return {}
    all_commands = {
        name: command.get_command(context, name) for name in command.list_commands(context)
    }
    return {
        name: each for name, each in all_commands.items() if each is not None and not each.hidden
    }


def _find_value_kind(param: Any) -> str:
    """Return the kind of value that an option or argument takes; "" for a flag."""
    if getattr(param, "is_flag", False) or getattr(param, "count", False):
        return ""
    metavar = (param.metavar or "").strip("[]{}")
    if "|" in metavar:
        return metavar
    if metavar in _KINDS:
        return _KINDS[metavar]
    return "file" if "Path" in str(param.type_descriptor.annotation) else _NO_COMPLETION


def answer_shell() -> None:
    """Print completions for the request in the environment, one word with its help on each line."""
    shell, line = os.environ[SHELL_VARIABLE], os.environ.get(LINE_VARIABLE, "")
    words = split_line(line)
    for value, help_text in list_completions(words):
        candidate = value if shell != "bash" else _quote_for_bash(value, words[-1])
        print(f"{candidate}\t{help_text}" if help_text and shell != "bash" else candidate)


def split_line(line: str) -> list[str]:
    """Return the words of a line; the last one, which may be empty, is being written."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:  # an open quotation mark: what follows it is being written
        words.append(line.rpartition('"' if line.count('"') % 2 else "'")[2])
        return words
    if not line or (line[-1].isspace() and not line.endswith("\\ ")):
        words.append("")
    return words


def list_completions(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield completions of the last of `words`, each with its help; the first word is `rote`."""
    *before, current = words[1:] or [""]
    node, parsed, awaited_kind = _parse_words(before)
    options = node.get("options", {})
    if awaited_kind:
        yield from _list_values(awaited_kind, current, parsed)
    elif current.startswith("--") and "=" in current:
        name, _, value = current.partition("=")
        kind, _ = options.get(name, ("", ""))
        for candidate, help_text in _list_values(kind, value, parsed):
            yield (candidate if candidate == OFFER_FILES else f"{name}={candidate}"), help_text
    elif current.startswith("-"):
        for name, (_, help_text) in options.items():
            if name.startswith(current):
                yield name, help_text
    else:
        for name, command in node.get("commands", {}).items():
            if name.startswith(current):
                yield name, command["help"]
        yield from _list_argument_values(node, current, parsed)


def _list_argument_values(
    node: dict[str, Any], current: str, parsed: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield completions of `current` as the next argument of a command or its default command."""
    default_node = node.get("commands", {}).get(node.get("default"), node)
    kinds = default_node.get("arguments", [])
    index = len(parsed["arguments"])
    if index < len(kinds):
        yield from _list_values(kinds[index].removesuffix("..."), current, parsed)
    elif kinds and kinds[-1].endswith("..."):
        yield from _list_values(kinds[-1].removesuffix("..."), current, parsed)


def _parse_words(before: list[str]) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Parse the words before the cursor.

    Return the node of their command, the options and arguments given, and the kind of value that
    the last word awaits: "" unless that is an option without its value.
    """
    first_command = next((word for word in before if word[:1] != "-"), None)
    node = describe_command(commands(first_command))
    parsed: dict[str, Any] = {"options": {}, "arguments": []}
    option = awaited_kind = ""
    for word in before:
        if awaited_kind:
            parsed["options"][option] = word
            awaited_kind = ""
        elif word.startswith("-") and len(word) > 1:
            option, equals, value = word.partition("=")
            awaited_kind = node.get("options", {}).get(option, [""])[0]
            if equals or not awaited_kind:
                parsed["options"][option] = value
                awaited_kind = ""
        elif word in node.get("commands", {}):
            node = node["commands"][word]
            parsed["arguments"] = []
        elif "default" in node:
            node = node["commands"][node["default"]]
            parsed["arguments"] = [word]
        else:
            parsed["arguments"].append(word)
    return node, parsed, awaited_kind


def _list_values(kind: str, current: str, parsed: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the values of a kind that begin with `current`, each with its help."""
    if kind in {"file", "action"} and "--take" in parsed["options"]:
        kind = "take"
    if kind == "file":
        yield OFFER_FILES, ""
        return
    values: Iterable[tuple[str, str]] = ()
    if kind == "take":
        values = ((name, "") for name in _list_takes())
    elif kind == "action":
        values = ((name, "") for name in _list_actions(parsed))
    elif kind == "url":
        values = _URLS.items()
    elif "|" in kind:
        values = ((choice, "") for choice in kind.split("|"))
    yield from ((value, help_text) for value, help_text in values if value.startswith(current))


def _list_takes() -> list[str]:
    """Return the names of the takes, without reading them: a completion must be quick."""
    try:
        with os.scandir(takes_folder()) as files:
            names = {os.path.splitext(each.name) for each in files}  # noqa: PTH122 - quicker
    except OSError:
        return []
    return sorted(
        name for name, ending in names if ending in _TAKE_ENDINGS and not name.startswith(".")
    )


def _list_actions(parsed: dict[str, Any]) -> list[str]:
    """Return the actions of the embedded robot; no other robot is contacted while a user types."""
    if "--robot" in parsed["options"] or "ROTE_ROBOT" in os.environ:
        return []
    store = store_file("g1")
    if not store.is_file():
        return []
    import sqlite3

    try:
        database = sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True, timeout=0.1)
    except sqlite3.Error:
        return []
    try:
        rows = database.execute("SELECT name FROM actions ORDER BY number").fetchall()
    except sqlite3.Error:
        return []
    finally:
        database.close()
    return [name for (name,) in rows]


def _quote_for_bash(value: str, current: str) -> str:
    """Return a completion of the word `current` with special characters escaped.

    Bash begins a new word after : and =, so the part up to the last of them is left out.
    """
    if value == OFFER_FILES:
        return value
    word_start = max(current.rfind(":"), current.rfind("=")) + 1
    return _BASH_SPECIAL.sub(r"\\\1", value[word_start:])
