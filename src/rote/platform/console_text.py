"""Safe text on terminals and in pipes: control characters from files or robots are escaped, and
characters that the terminal's encoding lacks (ASCII, Latin-1) are replaced.
"""

import codecs
import io
import json
import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console

_REPLACEMENTS = {
    "\u00b0": "deg ",
    "\u00a0": " ",
    "\u2026": "~",
    **dict(zip("▁▂▃▄▅▆▇█", "12345678", strict=True)),
}
"""Replacements for non-ASCII characters in rote's own texts."""
_ERROR_HANDLER = "rote"
"""The name under which Python knows `_replace_characters` as an error handler of encodings."""
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that control a terminal or change the direction of its text. Line breaks and tabs are
not among them.
"""


def prepare_streams() -> None:
    """Wrap standard output and standard error, so that any text can be printed safely.

    Control characters are printed as escapes, like `\\u001b`, so that no text from a file or a
    robot can control the terminal. Characters that the terminal cannot show are replaced by
    similar ones or by escapes.
    """
    codecs.register_error(_ERROR_HANDLER, _replace_characters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(raw := raw_stream(stream), io.TextIOWrapper):
            raw.reconfigure(errors=_ERROR_HANDLER)
    sys.stdout, sys.stderr = _wrap_stream(sys.stdout), _wrap_stream(sys.stderr)


def without_controls(text: str) -> str:
    """Return a text with its control characters as JSON escapes; line breaks and tabs stay."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """Return a text on one line, with line breaks, tabs and control characters escaped."""
    return without_controls(text).replace("\n", "\\n").replace("\t", "\\t")


class _EscapingStream:
    """A text stream that escapes control characters; other calls go to the stream below."""

    def __init__(self, raw: TextIO) -> None:
        self.raw_text = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw_text, name)

    def write(self, text: str) -> int:
        """Write a text, and return its length."""
        self.raw_text.write(without_controls(text))
        return len(text)

    def writelines(self, lines: "list[str]") -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)


def _wrap_stream(stream: TextIO | None) -> TextIO:
    if stream is None or isinstance(stream, _EscapingStream):
        return cast("TextIO", stream)
    return cast("TextIO", _EscapingStream(stream))


def raw_stream(stream: Any) -> Any:
    """Return the stream itself, without the wrapper that escapes control characters."""
    return stream.raw_text if isinstance(stream, _EscapingStream) else stream


def rich_console(**options: Any) -> "Console":
    """Return a console of rich that escapes control characters, except those of its own styles.

    A closed pipe raises `BrokenPipeError`, so that the command line ends quietly.
    """
    return _make_console_class()(**options)


@cache
def _make_console_class() -> "type[Console]":
    from collections.abc import Iterator  # noqa: PLC0415 - rich is slow to import
    from typing import IO  # noqa: PLC0415

    from rich.console import Console, ConsoleOptions, RenderableType  # noqa: PLC0415
    from rich.segment import Segment  # noqa: PLC0415

    class EscapingConsole(Console):
        @property
        def file(self) -> IO[str]:
            return cast("IO[str]", raw_stream(Console.file.fget(self)))  # type: ignore[attr-defined]

        @file.setter
        def file(self, new_file: IO[str]) -> None:
            Console.file.fset(self, new_file)  # type: ignore[attr-defined]

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                text = segment.text if segment.control else without_controls(segment.text)
                yield segment if text == segment.text else Segment(text, segment.style)

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return EscapingConsole


def shows(characters: str) -> bool:
    """Return whether the encoding of standard output has all these characters."""
    try:
        characters.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def json_text(document: object, stream: TextIO | None = None) -> str:
    """Return a JSON document on one line, in ASCII unless the stream (default: standard output) is
    UTF-8.
    """
    encoding = (stream or sys.stdout).encoding or "ascii"
    return json.dumps(document, ensure_ascii=codecs.lookup(encoding).name != "utf-8")


def _replace_characters(error: UnicodeError) -> tuple[str, int]:
    """Return replacements for characters that cannot be encoded, and the index after them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unencodable = error.object[error.start : error.end]
    replaced = (_REPLACEMENTS.get(char) or _escape_character(char) for char in unencodable)
    return "".join(replaced), error.end


def _escape_character(character: str) -> str:
    return character.encode("ascii", "backslashreplace").decode("ascii")
