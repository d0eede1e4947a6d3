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
"""What is offered for a value, by how the help calls it."""
_OPEN = "value"
"""The kind of a value for which nothing can be offered."""

SHELLS = ("bash", "zsh", "fish")
ASKED, LINE = "_ROTE_COMPLETE", "_ROTE_LINE"
"""The environment variables of a question: which shell asks, and the line up to the cursor."""
FILES = ":file"
"""The answer that tells the shell to offer files itself."""

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
_PLAIN = re.compile(r"([^\w@%+=:,./-])")
"""What bash would read as more than a part of a word."""

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
"""What a shell runs once to complete the words of rote."""


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
    """Return what can be completed of a command and its subcommands; `path` are the words that
    lead to it.

        help       what the command is for
        commands   subcommands by name
        options    name -> [kind, help]; a flag has the kind ""
        arguments  [kind, ...]; a last kind that ends in "..." may be repeated

    A kind is `a|b|c` for a choice, `take`, `action`, `url` or `file`; others have no completion.
    """
    context = command.context_class(command, help_option_names=list(HELP))
    params = [each for each in command.get_params(context) if not getattr(each, "hidden", False)]
    node: dict[str, Any] = {"help": command.get_short_help_str().split(". ")[0].rstrip(".")}
    if commands := _list_subcommands(command, context):
        node["commands"] = {
            name: describe_command(each, (*path, name)) for name, each in commands.items()
        }
        node |= {"default": command.default_command} if hasattr(command, "default_command") else {}
    if options := {
        name: [_kind_of(each), (each.help or "").split(". ")[0].rstrip(".")]
        for each in params
        if each.param_type_name == "option"
        for name in sorted((*each.opts, *each.secondary_opts), key=len)  # a set, of help
    }:
        node["options"] = options
    if arguments := [
        _kind_of(each) + ("..." if each.nargs == -1 else "")
        for each in params
        if each.param_type_name == "argument"
    ]:
        node["arguments"] = arguments
    return node | (capture.report_node() if path == capture.REPORT else {})


def _list_subcommands(command: "TyperGroup", context: Any) -> Mapping[str, Any]:
    if not hasattr(command, "commands"):
        return {}
    found = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return {name: each for name, each in found.items() if each is not None and not each.hidden}


def _kind_of(param: Any) -> str:
    if getattr(param, "is_flag", False) or getattr(param, "count", False):
        return ""
    metavar = (param.metavar or "").strip("[]{}")
    if "|" in metavar:
        return metavar
    if metavar in _KINDS:
        return _KINDS[metavar]
    return "file" if "Path" in str(param.type_descriptor.annotation) else _OPEN


def answer_shell() -> None:
    """Print the answer to the question in the environment: a word and its help on each line."""
    shell, line = os.environ[ASKED], os.environ.get(LINE, "")
    words = split_line(line)
    for value, help_text in offers(words):
        shown = value if shell != "bash" else _quote_for_bash(value, words[-1])
        print(f"{shown}\t{help_text}" if help_text and shell != "bash" else shown)


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


def offers(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield what may stand for the last of `words`, each with its help; the first is `rote`."""
    *before, current = words[1:] or [""]
    node, given, kind = _parse_words(before)
    if kind:
        yield from _offer_values(kind, current, given)
        return
    name, equals, value = current.partition("=")
    if equals and name.startswith("--"):
        kind = node.get("options", {}).get(name, [""])[0]
        for offer, help_text in _offer_values(kind, value, given):
            yield (offer if offer == FILES else f"{name}={offer}"), help_text
        return
    if current.startswith("-"):
        options = node.get("options", {})
        yield from (
            (o, help_text) for o, (_, help_text) in options.items() if o.startswith(current)
        )
        return
    commands = node.get("commands", {})
    yield from ((c, sub["help"]) for c, sub in commands.items() if c.startswith(current))
    usual = commands.get(node.get("default"), node)  # `rote capture FILE` needs no command
    kinds = usual.get("arguments", [])
    index = min(len(given["arguments"]), len(kinds) - 1)
    if kinds and (index == len(given["arguments"]) or kinds[-1].endswith("...")):
        yield from _offer_values(kinds[index].removesuffix("..."), current, given)


def _parse_words(before: list[str]) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return the node that the complete words lead to, what they give, and the kind of the value
    that must follow; "" if none must.
    """
    node = describe_command(commands(next((word for word in before if word[:1] != "-"), None)))
    given: dict[str, Any] = {"options": {}, "arguments": []}
    option = kind = ""
    for word in before:
        if kind:
            given["options"][option], kind = word, ""
        elif word.startswith("-") and len(word) > 1:
            option, equals, value = word.partition("=")
            kind = node.get("options", {}).get(option, [""])[0]
            if equals or not kind:
                given["options"][option], kind = value, ""
        elif word in node.get("commands", {}):
            node, given["arguments"] = node["commands"][word], []
        elif "default" in node:
            node, given["arguments"] = node["commands"][node["default"]], [word]
        else:
            given["arguments"].append(word)
    return node, given, kind


def _offer_values(kind: str, current: str, given: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if kind in {"file", "action"} and "--take" in given["options"]:
        kind = "take"
    if kind == "file":
        yield FILES, ""
        return
    found: Iterable[tuple[str, str]] = ()
    if kind == "take":
        found = ((name, "") for name in _list_takes())
    elif kind == "action":
        found = ((name, "") for name in _list_actions(given))
    elif kind == "url":
        found = _URLS.items()
    elif "|" in kind:
        found = ((choice, "") for choice in kind.split("|"))
    yield from ((value, help_text) for value, help_text in found if value.startswith(current))


def _list_takes() -> list[str]:
    try:
        with os.scandir(takes_folder()) as inside:
            names = {os.path.splitext(each.name) for each in inside}  # noqa: PTH122 - quicker
    except OSError:
        return []
    return sorted(n for n, ending in names if ending in _TAKE_ENDINGS and not n.startswith("."))


def _list_actions(given: dict[str, Any]) -> list[str]:
    """Return the actions of the embedded robot; no other robot is contacted while a user types."""
    if "--robot" in given["options"] or "ROTE_ROBOT" in os.environ:
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
    """Return an offer as bash wants it: quoted, and without what stands before the last : or =,
    where bash begins a new word.
    """
    if value == FILES:
        return value
    at = max(current.rfind(":"), current.rfind("=")) + 1
    return _PLAIN.sub(r"\\\1", value[at:])
