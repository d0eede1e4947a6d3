"""What a shell may offer for a half-written command line of rote, from a table of all commands.

The shell starts a new process for each press of Tab, so nothing here imports the commands
themselves: they would take a third of a second. The table, shell_completion.json, is written by
`python scripts/completion_table.py` from the commands; a test compares them. A node of it:

    help       what the command is for
    commands   the commands of a group, by name
    options    name -> [kind, help]; a flag has the kind ""
    arguments  [kind, ...] in their order; a last kind that ends in "..." may be repeated

A kind is `a|b|c` for a choice, `take`, `action`, `url` or `file`; any other offers nothing.
"""

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rote.platform.paths import store_file, takes_folder

SHELLS = ("bash", "zsh", "fish")
ASKED, LINE = "_ROTE_COMPLETE", "_ROTE_LINE"
"""The environment variables of a question: which shell asks, and the line up to the cursor."""
FILES = ":file"
"""The answer that tells the shell to offer files itself."""

_TABLE = Path(__file__).with_name("shell_completion.json")
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


def answer() -> None:
    """Print the answer to the question in the environment: a word and its help on each line."""
    shell, line = os.environ[ASKED], os.environ.get(LINE, "")
    words = split_line(line)
    for value, told in offers(words):
        shown = value if shell != "bash" else _for_bash(value, words[-1])
        print(f"{shown}\t{told}" if told and shell != "bash" else shown)  # noqa: T201


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
    node, given, kind = _walk(before)
    if kind:
        yield from _of_kind(kind, current, given)
        return
    name, equals, value = current.partition("=")
    if equals and name.startswith("--"):
        kind = node.get("options", {}).get(name, [""])[0]
        for offer, told in _of_kind(kind, value, given):
            yield (offer if offer == FILES else f"{name}={offer}"), told
        return
    if current.startswith("-"):
        options = node.get("options", {})
        yield from ((o, told) for o, (_, told) in options.items() if o.startswith(current))
        return
    commands = node.get("commands", {})
    yield from ((c, sub["help"]) for c, sub in commands.items() if c.startswith(current))
    usual = commands.get(node.get("default"), node)  # `rote capture FILE` needs no command
    kinds = usual.get("arguments", [])
    place = min(len(given["arguments"]), len(kinds) - 1)
    if kinds and (place == len(given["arguments"]) or kinds[-1].endswith("...")):
        yield from _of_kind(kinds[place].removesuffix("..."), current, given)


def _walk(before: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return the node that the complete words lead to, what they give, and the kind of the value
    that must follow; "" if none must.
    """
    node: dict[str, Any] = json.loads(_TABLE.read_text(encoding="utf-8"))
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


def _of_kind(kind: str, current: str, given: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if kind == "file" and "--take" in given["options"]:
        kind = "take"
    if kind == "action" and "--take" in given["options"]:
        kind = "take"
    if kind == "file":
        yield FILES, ""
        return
    found: Iterable[tuple[str, str]] = ()
    if kind == "take":
        found = ((name, "") for name in _takes())
    elif kind == "action":
        found = ((name, "") for name in _actions(given))
    elif kind == "url":
        found = _URLS.items()
    elif "|" in kind:
        found = ((choice, "") for choice in kind.split("|"))
    yield from ((value, told) for value, told in found if value.startswith(current))


def _takes() -> list[str]:
    try:
        with os.scandir(takes_folder()) as inside:
            names = {os.path.splitext(each.name) for each in inside}  # noqa: PTH122 - quicker
    except OSError:
        return []
    return sorted(n for n, ending in names if ending in _TAKE_ENDINGS and not n.startswith("."))


def _actions(given: dict[str, Any]) -> list[str]:
    """Return the actions of the embedded robot; no other robot is asked while somebody types."""
    if "--robot" in given["options"] or "ROTE_ROBOT" in os.environ:
        return []
    store = store_file("g1")
    if not store.is_file():
        return []
    import sqlite3  # noqa: PLC0415 - seldom needed

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


def _for_bash(value: str, current: str) -> str:
    """Return an offer as bash wants it: quoted, and without what stands before the last : or =,
    where bash begins a new word.
    """
    if value == FILES:
        return value
    at = max(current.rfind(":"), current.rfind("=")) + 1
    return _PLAIN.sub(r"\\\1", value[at:])
