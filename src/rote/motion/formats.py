"""The table of file formats for motions, and what each format loses.

The command line, the API, the page and the docs use it. A format is one row here and its module,
which has `load_NAME`, `save_NAME` and `file_location`. The module is imported on first use.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from rote.motion.files.metadata import FileLocation
    from rote.motion.track import Track

__all__ = ["FORMATS", "NATIVE", "Format", "endings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One way to write a track to a file."""

    name: str
    title: str
    media_type: str
    """Its media type for a web server."""
    module: str
    loss: str = ""
    """What the format does not store, as a sentence without its full stop; empty if nothing."""

    @property
    def ending(self) -> str:
        """The ending of its files, with the dot."""
        return f".{self.name}"

    @property
    def load(self) -> "Callable[[Path], Track]":
        """The function that reads a file; it raises `BadRequestError` for an unusable file."""
        return cast("Callable[[Path], Track]", self._import_function(f"load_{self.name}"))

    @property
    def save(self) -> "Callable[[Track, Path], None]":
        """The function that writes a file, completely or not at all."""
        return cast("Callable[[Track, Path], None]", self._import_function(f"save_{self.name}"))

    @property
    def file_location(self) -> "Callable[[Path], FileLocation]":
        """The function that returns how error messages name locations in a file."""
        return cast("Callable[[Path], FileLocation]", self._import_function("file_location"))

    def _import_function(self, name: str) -> object:
        # The format's module is imported only now, because some need heavy libraries.
        return getattr(import_module(self.module), name)


FORMATS: dict[str, Format] = {
    row.ending: row
    for row in (
        Format(
            name="mcap",
            title="MCAP",
            media_type="application/octet-stream",
            module="rote.motion.files.mcap_file",
        ),
        Format(
            name="npz",
            title="NumPy",
            media_type="application/octet-stream",
            module="rote.motion.files.npz_file",
        ),
        Format(
            name="json",
            title="JSON",
            media_type="application/json",
            module="rote.motion.files.json_file",
        ),
        Format(
            name="csv",
            title="CSV",
            media_type="text/csv; charset=utf-8",
            module="rote.motion.files.csv_file",
            loss="variant, source, marks, history, origin and the path of the root are lost",
        ),
    )
}
"""By ending; the first is the native format."""
NATIVE = next(iter(FORMATS.values()))
"""The format in which takes are recorded."""


def endings(word: str = "or") -> str:
    """Return all endings as a list in a sentence: `.mcap, .npz, .json or .csv`."""
    *first, last = FORMATS
    return f"{', '.join(first)} {word} {last}"
