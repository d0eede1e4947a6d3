"""Tracks on disk. CSV: a first column `t` in seconds, then one column per joint name in rad."""

import csv
import math
import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from rote.errors import BadRequestError
from rote.motion.track import Track


def save_csv(track: Track, path: Path) -> None:
    """Write `track`; the file appears only when it is complete."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["t", *track.names])
            for time_s, row in zip(track.times_s, track.joints_rad, strict=True):
                writer.writerow([f"{time_s:.6f}", *(f"{value:.9g}" for value in row)])
        part.replace(path)
    except OSError as error:
        raise BadRequestError(
            f"{path} cannot be written: {error.strerror}", "Name another file."
        ) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def load_csv(path: Path) -> Track:
    """Read a track; a `BadRequestError` names the row that cannot be used."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadRequestError(f"{path} cannot be read as CSV: {error}") from None
    if not rows or rows[0][:1] != ["t"] or len(rows[0]) < 2:
        raise BadRequestError(f"{path}: the first row must be 't' and the joints' names")
    values: list[list[float]] = []
    for number, row in enumerate(rows[1:], start=2):
        try:
            values.append(_read_row(row, len(rows[0]), values))
        except ValueError as error:
            raise BadRequestError(f"{path}: row {number} cannot be read: {error}") from None
    table = np.array(values).reshape(len(values), len(rows[0]))
    return Track(
        times_s=table[:, 0],
        joints_rad=table[:, 1:],
        names=tuple(rows[0][1:]),
        source=f"file {path.name}",
    )


def _read_row(row: list[str], width: int, before: list[list[float]]) -> list[float]:
    if len(row) != width:
        raise ValueError(f"it has {len(row)} cells, the first row has {width}")
    values = [float(cell) for cell in row]
    if not all(map(math.isfinite, values)):
        raise ValueError("it holds a value that is not a number")
    if before and values[0] <= before[-1][0]:
        raise ValueError(f"its time {values[0]} is not after the one before")
    return values
