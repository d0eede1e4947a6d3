"""Tracks on disk, whatever the format: the file's ending says which.

| ending | what is lost |
|---|---|
| `.mcap` | nothing; the native format |
| `.npz`, `.json` | nothing |
| `.csv` | variant, source, marks and history |

A file that is there is whole; the one that is read is never changed. A LeRobot dataset is a folder
and one way only: see `lerobot`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError
from rote.motion.files import csv_file, json_file, mcap_file, npz_file
from rote.motion.files.csv_file import load_csv as load_csv
from rote.motion.files.csv_file import save_csv as save_csv
from rote.motion.files.document import (
    MOST_SAMPLES,
    Place,
    check,
    check_joints,
    check_unit,
    too_long,
)
from rote.motion.track import Track

__all__ = ["save", "load", "format_of", "check_writable", "FORMATS", "Format"]


class Format(NamedTuple):
    """One way to write a track down."""

    load: Callable[[Path], Track]
    save: Callable[[Track, Path], None]
    place_in: Callable[[Path], Place]
    loss: str
    """What does not survive, in words; empty where everything does."""


FORMATS: dict[str, Format] = {
    ".mcap": Format(mcap_file.load_mcap, mcap_file.save_mcap, mcap_file.place_in, mcap_file.LOSS),
    ".npz": Format(npz_file.load_npz, npz_file.save_npz, npz_file.place_in, npz_file.LOSS),
    ".json": Format(json_file.load_json, json_file.save_json, json_file.place_in, json_file.LOSS),
    ".csv": Format(load_csv, save_csv, csv_file.place_in, csv_file.LOSS),
}


def save(track: Track, path: Path) -> str:
    """Write a track in the format its file name asks for; return what is lost, in words."""
    found = format_of(path)
    check_writable(track, path)
    found.save(track, path)
    return found.loss


def check_writable(track: Track, path: Path) -> None:
    """Refuse a track that could not be loaded again."""
    place = Place(f"{path} cannot be written")
    check(track, place)
    if len(track) > MOST_SAMPLES:
        raise too_long(place)
    check_unit(track, place)


def load(path: Path, *, degrees: bool = False, any_joints: bool = False) -> Track:
    """Read a track that could be played; a `BadRequestError` names the row that cannot be used.

    Angles are in rad. A file that holds degrees is refused as such, and converted with `degrees`.
    Joints must be the robot's own, unless `any_joints` lets others in.
    """
    found = format_of(path)
    track = found.load(path)
    place = found.place_in(path)
    check(track, place)
    if not any_joints:
        check_joints(track, place)
    if degrees:
        track = track._edited("degrees to rad", joints_rad=np.radians(track.joints_rad))
    check_unit(track, place)
    return track


def format_of(path: Path) -> Format:
    """Return the format that a file's ending names."""
    try:
        return FORMATS[path.suffix.lower()]
    except KeyError:
        raise BadRequestError(
            f"{path} has no ending that is known here",
            f"Name a file that ends in {', '.join(FORMATS)}.",
        ) from None
