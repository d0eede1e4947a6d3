"""Motions that GMR retargeted: a pickled dictionary of arrays, read without running anything."""

from typing import Any

import numpy as np

from rote.errors import DecodeError
from rote.motion.files.exchange.contents import Contents, Quaternion, joints_in_order, read_bytes
from rote.motion.files.exchange.plain_pickle import read_plain
from rote.motion.files.metadata import FileLocation, check_length
from rote.motion.track import Array

WANTED = ("fps", "root_pos", "root_rot", "dof_pos")
"""The entries by which such a file is known."""

_MAX_VALUES = 20_000_000


def read_gmr(location: FileLocation) -> Contents:
    """Read a pickle of `fps`, `root_pos`, `root_rot` and `dof_pos`."""
    try:
        found = read_plain(read_bytes(location))
    except DecodeError as error:
        raise location.error(str(error), "Ask who made it for a file without code.") from None
    if not isinstance(found, dict):
        raise location.error("it holds no dictionary")
    if missing := [name for name in WANTED if name not in found]:
        held = ", ".join(str(key)[:40] for key in list(found)[:10]) or "nothing"
        raise location.error(f"it has no {missing[0]!r}, only {held}")
    joints = _read_rows(found["dof_pos"], "dof_pos", location)
    names = joints_in_order(joints.shape[1])
    if names is None:
        raise location.error(f"its dof_pos have {joints.shape[1]} joints; a G1 has 29, 27 or 23")
    position, turn = (_read_rows(found[name], name, location) for name in ("root_pos", "root_rot"))
    if position.shape != (len(joints), 3) or turn.shape != (len(joints), 4):
        raise location.error(
            f"{len(joints)} samples do not match root_pos of shape {position.shape} "
            f"and root_rot of shape {turn.shape}"
        )
    return Contents(
        names=names,
        joints_rad=joints,
        fps=_read_number(found["fps"], location),
        position_m=position,
        turn=turn,
        order=Quaternion.XYZW,
    )


def _read_number(value: Any, location: FileLocation) -> float:
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "fiu":
        value = value.ravel()[0]
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise location.error("its fps is not a number")
    try:
        return float(value)
    except OverflowError:
        raise location.error("its fps is not a number") from None


def _row_width(row: Any) -> int:
    """Return how many numbers a row has; -1 if it is not a row."""
    if isinstance(row, np.ndarray):
        return len(row) if row.ndim == 1 else -1
    return len(row) if isinstance(row, list | tuple) else -1


def _read_rows(value: Any, name: str, location: FileLocation) -> Array:
    """Return an entry as (n, width) numbers: an array, or a list of arrays or lists."""
    if isinstance(value, list | tuple):
        sizes = {_row_width(row) for row in value}
        if len(sizes) != 1 or min(sizes) < 0 or len(value) * max(sizes) > _MAX_VALUES:
            raise location.error(f"its {name} are not rows of numbers")
        flat = [
            cell
            for row in value
            for cell in (row.ravel().tolist() if isinstance(row, np.ndarray) else row)
        ]
        if not all(type(cell) in {int, float} for cell in flat) or len(flat) != len(value) * max(
            sizes
        ):
            raise location.error(f"its {name} are not rows of numbers")
        try:
            value = np.array(flat, dtype=np.float64).reshape(len(value), max(sizes))
        except OverflowError:
            raise location.error(f"its {name} hold a number that is too large") from None
    if not isinstance(value, np.ndarray) or value.ndim != 2 or value.dtype.kind not in "fiu":
        raise location.error(f"its {name} are not rows of numbers")
    check_length(len(value), value.shape[1], location)
    with np.errstate(over="ignore", invalid="ignore"):
        rows = value.astype(np.float64)
    if not np.isfinite(rows).all():
        sample = int(np.argmin(np.isfinite(rows).all(axis=1)))
        raise location.error(f"its {name} are not numbers in sample {sample + 1}")
    return rows
