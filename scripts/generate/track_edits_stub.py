"""Write src/rote/motion/track_edits.pyi: the methods of a track, for type checkers and editors."""

import sys
import textwrap
from pathlib import Path

from generated_part import write_changed

SOURCE = Path(__file__).parents[2] / "src"
STUB = SOURCE / "rote" / "motion" / "track_edits.pyi"
HEAD = '''\
"""The edits as methods of a track. Made by scripts/generate/track_edits_stub.py."""

from collections.abc import Mapping, Sequence
from inspect import Signature

from rote.motion.edit.table import Edit
from rote.motion.track import Track

class TrackEdits:
    """The edits that a track has as methods. Each returns a new track; this one stays as it is."""

    __slots__ = ()
'''
TAIL = """
def signature_of(edit: Edit) -> Signature: ...
def explanation_of(edit: Edit) -> str: ...
"""


def stub() -> str:
    """Return the text of the stub."""
    if str(SOURCE) not in sys.path:  # the build has not installed rote
        sys.path.insert(0, str(SOURCE))
    from rote.motion.edit.table import EDITS  # noqa: PLC0415 - found by the path above
    from rote.motion.track_edits import explanation_of, signature_of  # noqa: PLC0415

    methods = []
    for edit in EDITS.values():
        signature = str(signature_of(edit)).replace("'Track'", "Track")
        signature = signature.replace("collections.abc.", "")
        doc = textwrap.indent(f'"""{explanation_of(edit)}"""', "        ")
        methods.append(f"    def {edit.name}{signature}:\n{doc}\n")
    return HEAD + "".join(methods) + TAIL


def write() -> Path:
    """Write the stub where it is missing or stale, and return its path."""
    return write_changed(STUB, stub())


if __name__ == "__main__":
    write()
