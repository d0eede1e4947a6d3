"""Tracks on disk. CSV: a first column `t` in seconds, then one column per joint name in rad."""

import csv
import os
import tempfile
from pathlib import Path

import numpy as np

from rote.errors import BadRequestError
from rote.motion.track import Track


def save_csv(track: Track, path: Path) -> None:
    """Write `track`; the file appears only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", text=True)
    try:
        with os.fdopen(handle, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["t", *track.names])
            for time_s, row in zip(track.times_s, track.joints_rad, strict=True):
                writer.writerow([f"{time_s:.6f}", *(f"{value:.9g}" for value in row)])
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load_csv(path: Path) -> Track:
    """Read a track; a `BadRequestError` names the row that cannot be used."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadRequestError(f"{path} cannot be read as CSV: {error}") from None
    if not rows or rows[0][:1] != ["t"] or len(rows[0]) < 2:
        raise BadRequestError(f"{path}: the first row must be 't' and the joints' names")
    values = np.empty((len(rows) - 1, len(rows[0])))
    for number, row in enumerate(rows[1:], start=2):
        try:
            values[number - 2] = [float(cell) for cell in row]
        except ValueError as error:
            raise BadRequestError(f"{path}: row {number} cannot be read: {error}") from None
    return Track(
        times_s=values[:, 0],
        joints_rad=values[:, 1:],
        names=tuple(rows[0][1:]),
        source=f"file {path.name}",
    )
