"""Tracks on disk, whatever the format: the file's ending says which, by the table of formats.

A file that is there is whole; the one that is read is never changed. A LeRobot dataset is a folder
and one way only: see `lerobot`.
"""

from pathlib import Path

import numpy as np

from rote.errors import BadRequestError
from rote.motion.files.metadata import (
    MAX_SAMPLES,
    FilePlace,
    check,
    check_joints,
    check_unit,
    too_long,
)
from rote.motion.formats import FORMATS, Format, endings
from rote.motion.track import Track

__all__ = ["save", "load", "format_of", "check_writable", "FORMATS", "Format"]


def save(track: Track, path: Path) -> str:
    """Write a track in the format its file name asks for; return what is lost, in words."""
    found = format_of(path)
    check_writable(track, path)
    found.save(track, path)
    return found.loss


def check_writable(track: Track, path: Path) -> None:
    """Refuse a track that could not be loaded again."""
    place = FilePlace(f"{path} cannot be written")
    check(track, place)
    if len(track) > MAX_SAMPLES:
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
        track = track.edited("degrees to rad", joints_rad=np.radians(track.joints_rad))
    check_unit(track, place)
    return track


def format_of(path: Path) -> Format:
    """Return the format that a file's ending names."""
    try:
        return FORMATS[path.suffix.lower()]
    except KeyError:
        raise BadRequestError(
            f"{path} has no ending that is known here",
            f"Name a file that ends in {endings()}.",
        ) from None
