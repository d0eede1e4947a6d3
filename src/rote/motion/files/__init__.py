"""Tracks on disk in any format: the file's ending selects it from the table of formats.

A file on disk is always complete, and reading never changes one. A LeRobot dataset is a folder and
can only be written: see `lerobot`.
"""

from os import PathLike
from pathlib import Path

import numpy as np

from rote.errors import BadRequestError
from rote.findings import Finding, FindingKind, Severity
from rote.motion.files.csv_file import READ_AS_MS
from rote.motion.files.metadata import (
    FileLocation,
    check_joints,
    check_length,
    check_playable,
    check_unit,
)
from rote.motion.formats import FORMATS, Format, endings
from rote.motion.track import Track

__all__ = [
    "save", "load", "list_reading_notes", "format_of", "check_writable", "FilePath", "FORMATS",
    "Format",
]  # fmt: skip

FilePath = str | PathLike[str]
"""The name of a file: text, or a `pathlib.Path`."""


def save(track: Track, path: FilePath) -> str:
    """Write a track in the format of the file's ending; return what the format loses, as text.

    Raises `BadRequestError` for an unknown ending, a track that could not be loaded again, or a
    disk error; then no file appears.
    """
    path = Path(path)
    file_format = format_of(path)
    check_writable(track, path)
    file_format.save(track, path)
    return file_format.loss


def check_writable(track: Track, path: FilePath) -> None:
    """Raise `BadRequestError` for a track that could not be loaded again."""
    location = FileLocation(f"{path} cannot be written")
    check_playable(track, location)
    check_length(len(track), len(track.names), location)
    check_unit(track, location)


def load(path: FilePath, *, degrees: bool = False, any_joints: bool = False) -> Track:
    """Read a track; refuse one that could never be played.

    Angles are in rad. A file with degrees is refused unless `degrees` is true; then they are
    converted. Joints must be those of a known robot, unless `any_joints` is true. Raises
    `BadRequestError`, which names the file and the row that cannot be used, and `MissingExtraError`
    if a package is missing.
    """
    path = Path(path)
    file_format = format_of(path)
    track = file_format.load(path)
    location = file_format.file_location(path)
    check_playable(track, location)
    if not any_joints:
        check_joints(track, location)
    if degrees:
        track = track.edited("degrees to rad", joints_rad=np.radians(track.joints_rad))
    check_unit(track, location)
    return track


def list_reading_notes(track: Track, path: FilePath) -> tuple[Finding, ...]:
    """Return a note for each assumption that `load` made about a file, whose track this is."""
    # A CSV file holds no history, so this line is of this reading and not of an earlier one.
    if format_of(path).ending != ".csv" or READ_AS_MS not in track.history:
        return ()
    return (Finding(Severity.NOTE, READ_AS_MS, kind=FindingKind.FILE),)


def format_of(path: FilePath) -> Format:
    """Return the format of a file's ending; raises `BadRequestError` for an unknown one."""
    try:
        return FORMATS[Path(path).suffix.lower()]
    except KeyError:
        raise BadRequestError(
            f"the format of {path} is not known",
            f"Name a file that ends in {endings()}.",
        ) from None
