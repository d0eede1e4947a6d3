"""Claim: a hundred thousand takes are listed and searched without a noticeable wait.

In processor time, in this process. The takes are one file under many names, as links: to list takes
reads the beginning and the end of each file once, and from then on only its size and time. The
first list reads all files; a later one finds what they contain in the cache. After one take was
saved, that cache is written again.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.motion import waving
from benchmarks.size import size
from benchmarks.table import Row, cpu_s
from rote.motion.files.library import Library

FEW, MANY = size(10_000, 20), size(100_000, 40)
ROUNDS = size(5, 1)
_LINKS = 30_000  # file systems allow about twice as many to one file


def make_library(folder: Path, takes: int) -> Library:
    """Save one take, and give its file other names."""
    library = Library(folder)
    library.save(waving(3.0), "take 000000", tags=("dance", "left arm"))
    for number in range(1, takes):
        path = folder / f"take {number:06}.mcap"
        file = folder / f"take {number // _LINKS * _LINKS:06}.mcap"
        if file == path:
            shutil.copy(folder / "take 000000.mcap", path)
        else:
            os.link(file, path)
    return library


def list_s(library: Library, search: str = "") -> Callable[[], float]:
    """Return a measure: the seconds of processor time to list the takes that match."""
    return lambda: cpu_s(lambda: library.list(search))


def median_s(measure: Callable[[], float]) -> float:
    return median(measure() for _ in range(ROUNDS))


def list_after_save_s(library: Library) -> float:
    """Return the seconds of the first search after a take was saved."""
    library.save(waving(1.0), "saved last")
    return list_s(library, "last")()


def run() -> list[Row]:
    with TemporaryDirectory() as folder:
        few = make_library(Path(folder) / "few", FEW)
        first_s = list_s(few)()
        few_s = median_s(list_s(few))
        many = make_library(Path(folder) / "many", MANY)
        many.list()
        many_s = median_s(list_s(many))
        search_s = median_s(list_s(many, "dance 000777"))
        changed_s = median_s(lambda: list_after_save_s(many))
    return [
        Row(f"library: {FEW:,} takes, first list", "s", first_s, 2.3, "limit", at_most=1),
        Row(f"library: {FEW:,} takes, listed", "s", few_s, 0.3, "limit", at_most=1),
        Row(f"library: {MANY:,} takes, listed", "s", many_s, 3.0, "limit", at_most=1),
        Row(f"library: {MANY:,} takes, searched", "s", search_s, 3.0, "limit", at_most=1),
        Row(
            f"library: {MANY:,} takes, searched after a save",
            "s",
            changed_s,
            3.0,
            "limit",
            at_most=1,
        ),
    ]
