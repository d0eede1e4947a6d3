"""Text on terminals and in pipes that cannot show every character: ASCII, Latin-1 and the like."""

import codecs
import io
import json
import sys
from typing import TextIO

_INSTEAD = {
    "\u00b0": "deg ",
    "\u00a0": " ",
    "\u2026": "~",
    **dict(zip("▁▂▃▄▅▆▇█", "12345678", strict=True)),
}
"""What stands for a character of rote's own texts."""
_HANDLER = "rote"


def prepare_streams() -> None:
    """Let standard output and standard error show something for every character.

    Names on a robot may contain characters that the terminal cannot show; that must not fail, and
    what is printed must still tell them apart.
    """
    codecs.register_error(_HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def shows(characters: str) -> bool:
    """Return whether standard output can show these characters as they are."""
    try:
        characters.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def json_text(document: object, stream: TextIO | None = None) -> str:
    """Return a JSON document on one line, as a stream can carry it without loss; by default it is
    standard output.
    """
    encoding = (stream or sys.stdout).encoding or "ascii"
    return json.dumps(document, ensure_ascii=codecs.lookup(encoding).name != "utf-8")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    hidden = error.object[error.start : error.end]
    return "".join(_INSTEAD.get(each) or _escaped(each) for each in hidden), error.end


def _escaped(character: str) -> str:
    return character.encode("ascii", "backslashreplace").decode("ascii")
