"""Motions that GMR retargeted: a pickled dictionary of arrays, read without running anything."""

from typing import Any

import numpy as np

from rote.errors import DecodeError
from rote.motion.files.exchange.contents import Contents, Quaternion, joints_in_order, read_bytes
from rote.motion.files.exchange.plain_pickle import read_plain
from rote.motion.files.metadata import FilePlace, check_length
from rote.motion.track import Array

WANTED = ("fps", "root_pos", "root_rot", "dof_pos")
"""The entries by which such a file is known."""

_MAX_VALUES = 20_000_000


def read_gmr(place: FilePlace) -> Contents:
    """Read a pickle of `fps`, `root_pos`, `root_rot` and `dof_pos`."""
    try:
        found = read_plain(read_bytes(place))
    except DecodeError as error:
        raise place.refuse(str(error), "Ask who made it for a file without code.") from None
    if not isinstance(found, dict):
        raise place.refuse("it holds no dictionary")
    if missing := [name for name in WANTED if name not in found]:
        held = ", ".join(str(key)[:40] for key in list(found)[:10]) or "nothing"
        raise place.refuse(f"it has no {missing[0]!r}, only {held}")
    joints = _rows(found["dof_pos"], "dof_pos", place)
    names = joints_in_order(joints.shape[1])
    if names is None:
        raise place.refuse(f"its dof_pos have {joints.shape[1]} joints; a G1 has 29, 27 or 23")
    position, turn = (_rows(found[name], name, place) for name in ("root_pos", "root_rot"))
    if position.shape != (len(joints), 3) or turn.shape != (len(joints), 4):
        raise place.refuse(
            f"{len(joints)} samples cannot go with root_pos of shape {position.shape} "
            f"and root_rot of shape {turn.shape}"
        )
    return Contents(
        names=names,
        joints_rad=joints,
        fps=_number(found["fps"], place),
        position_m=position,
        turn=turn,
        order=Quaternion.XYZW,
    )


def _number(value: Any, place: FilePlace) -> float:
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "fiu":
        value = value.ravel()[0]
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise place.refuse("its fps are no number")
    try:
        return float(value)
    except OverflowError:
        raise place.refuse("its fps are no number") from None


def _width(row: Any) -> int:
    """Return how many numbers a row has; -1 if it is no row."""
    if isinstance(row, np.ndarray):
        return len(row) if row.ndim == 1 else -1
    return len(row) if isinstance(row, list | tuple) else -1


def _rows(value: Any, name: str, place: FilePlace) -> Array:
    """Return an entry as (n, width) numbers: an array, or a list of arrays or lists."""
    if isinstance(value, list | tuple):
        sizes = {_width(row) for row in value}
        if len(sizes) != 1 or min(sizes) < 0 or len(value) * max(sizes) > _MAX_VALUES:
            raise place.refuse(f"its {name} are no rows of numbers")
        flat = [
            cell
            for row in value
            for cell in (row.ravel().tolist() if isinstance(row, np.ndarray) else row)
        ]
        if not all(type(cell) in {int, float} for cell in flat) or len(flat) != len(value) * max(
            sizes
        ):
            raise place.refuse(f"its {name} are no rows of numbers")
        try:
            value = np.array(flat, dtype=np.float64).reshape(len(value), max(sizes))
        except OverflowError:
            raise place.refuse(f"its {name} hold a number that is too large") from None
    if not isinstance(value, np.ndarray) or value.ndim != 2 or value.dtype.kind not in "fiu":
        raise place.refuse(f"its {name} are no rows of numbers")
    check_length(len(value), value.shape[1], place)
    with np.errstate(over="ignore", invalid="ignore"):
        rows = value.astype(np.float64)
    if not np.isfinite(rows).all():
        sample = int(np.argmin(np.isfinite(rows).all(axis=1)))
        raise place.refuse(f"its {name} are not numbers in sample {sample + 1}")
    return rows
