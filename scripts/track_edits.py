"""Write src/rote/motion/track_edits.py: a method for each row of the table of edits."""

import subprocess
import sys
import textwrap
from pathlib import Path

from rote.motion.edit.table import EDITS, SEVERAL, Edit, Parameter, ParameterKind

PATH = Path(__file__).parents[1] / "src" / "rote" / "motion" / "track_edits.py"
TYPES = {
    ParameterKind.NUMBER: "float",
    ParameterKind.FLAG: "bool",
    ParameterKind.JOINTS: "str | Sequence[str]",
    ParameterKind.BUILD: "str",
    ParameterKind.TEXT: "str",
    ParameterKind.POSE: "Mapping[str, float]",
}
HEAD = '''"""The edits of the table as methods of a track: `track.trim(auto=True).smooth()`.

Made by `python scripts/track_edits.py` from `rote.motion.edit.table`; do not edit it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rote.motion.edit.table import EDITS

if TYPE_CHECKING:
    from rote.motion.track import Track


class TrackEdits:
    """The edits that a track has as methods. Each returns a new track; this one stays as it is."""

    __slots__ = ()

    def _apply(self, name: str, others: "Sequence[Track]" = (), **values: Any) -> "Track":
        return EDITS[name].apply((cast("Track", self), *others), values)
'''


def _argument(parameter: Parameter) -> str:
    type_ = TYPES[parameter.kind]
    if parameter.required:
        return f"{parameter.name}: {type_}"
    if parameter.default is None:
        return f"{parameter.name}: {type_} | None = None"
    return f"{parameter.name}: {type_} = {parameter.default!r}"


def _explained(parameter: Parameter) -> str:
    said = f"`{parameter.name}`: {parameter.help}"
    if parameter.kind is ParameterKind.JOINTS:
        said = said.replace("May be repeated.", "Several are a list.")
    if parameter.range is not None:
        low, high, unit = parameter.range
        said += f" From {low:g} to {high:g} {unit}".rstrip() + "."
    return said


def _arguments(edit: Edit) -> str:
    """Return the arguments after `self`; flags are given by name only."""
    flags = [each for each in edit.parameters if each.kind is ParameterKind.FLAG]
    others = [each for each in edit.parameters if each.kind is not ParameterKind.FLAG]
    said = {1: [], 2: ['other: "Track"'], SEVERAL: ['*others: "Track"']}[edit.tracks]
    said += [_argument(each) for each in others]
    if flags:
        said += ["*", *(_argument(each) for each in flags)]
    return "".join(f", {each}" for each in said)


def _method(edit: Edit) -> str:
    lines = [line for each in edit.parameters for line in _wrapped(_explained(each))]
    more = "\n\n" + "\n".join(lines) + "\n        " if lines else ""
    first, *rest = textwrap.wrap(edit.summary, 88)
    summary = "\n".join([first, *(f"        {line}" for line in rest)])
    if rest and not more:
        more = "\n        "
    tracks = {1: "", 2: ", (other,)", SEVERAL: ", others"}[edit.tracks]
    values = "".join(f", {each.name}={each.name}" for each in edit.parameters)
    return (
        f'    def {edit.name}(self{_arguments(edit)}) -> "Track":\n'
        f'        """{summary}{more}"""\n'
        f'        return self._apply("{edit.name}"{tracks}{values})\n'
    )


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 96, initial_indent=" " * 8, subsequent_indent=" " * 12)


def formatted(text: str) -> str:
    """Return the source of a module as `make format` would write it."""
    ruff = [sys.executable, "-m", "ruff"]
    for command in (
        [*ruff, "check", "--select", "I", "--fix", "--quiet", "-"],
        [*ruff, "format", "-"],
    ):
        command += ["--stdin-filename", str(PATH)]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=True, cwd=PATH.parents[3]
        )
        text = done.stdout
    return text


def generated() -> str:
    """Return the text of the module."""
    return formatted("\n".join([HEAD, *(_method(edit) for edit in EDITS.values())]))


if __name__ == "__main__":
    PATH.write_text(generated(), encoding="utf-8")
