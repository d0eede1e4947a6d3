"""Motions in pickles, read without running anything: GMR's, and ASAP's, which joblib writes.

GMR's file is one dictionary. ASAP's has a dictionary for each motion, by name. Its 23 joints are
those of a G1 without the wrists, not those of a G1 that is built with 23 joints.
"""

from typing import Any, NamedTuple

import numpy as np

from rote.errors import DecodeError
from rote.model import registry
from rote.motion.files.exchange.contents import (
    Contents,
    QuaternionOrder,
    list_joints_in_motor_order,
    read_bytes,
)
from rote.motion.files.exchange.plain_pickle import read_plain
from rote.motion.files.metadata import FileLocation, check_length
from rote.motion.track import Array


class _EntryKeys(NamedTuple):
    """The keys of the entries that a motion must have."""

    fps: str
    position: str
    quaternions: str
    joints: str


_GMR = _EntryKeys("fps", "root_pos", "root_rot", "dof_pos")
_ASAP = _EntryKeys("fps", "root_trans_offset", "root_rot", "dof")
_ASAP_AXES = "pose_aa"
_MIN_TURN_RAD = 0.05  # an axis is not compared at smaller angles
_MAX_OFF_AXIS = 0.2  # largest share of a turn that may be about another axis than the joint's
_MAX_VALUES = 20_000_000


def recognise_pickle(location: FileLocation) -> str:
    """Return the name of the format of a pickle: `asap` if it holds motions by name."""
    entries = _read_dictionary(location)
    has_dictionaries = any(isinstance(each, dict) for each in entries.values())
    return "asap" if has_dictionaries and _GMR.joints not in entries else "gmr"


def read_gmr(location: FileLocation) -> Contents:
    """Read a pickle of `fps`, `root_pos`, `root_rot` and `dof_pos`."""
    motion = _read_dictionary(location)
    joints = _read_joints(motion, _GMR, location)
    names = list_joints_in_motor_order(joints.shape[1])
    if names is None:
        raise location.error(f"its dof_pos have {joints.shape[1]} joints; a G1 has 29, 27 or 23")
    return _make_contents(motion, _GMR, joints, names, location)


def read_asap(location: FileLocation) -> Contents:
    """Read a pickle of one motion by name: `fps`, `root_trans_offset`, `root_rot` and `dof`."""
    motions = _read_dictionary(location)
    if len(motions) != 1:
        motion_names = ", ".join(str(key)[:40] for key in list(motions)[:5]) or "none"
        raise location.error(
            f"it holds {len(motions)} motions: {motion_names}", "Write each motion to its own file."
        )
    (motion,) = motions.values()
    if not isinstance(motion, dict):
        raise location.error("it does not hold a dictionary for its motion")
    joints = _read_joints(motion, _ASAP, location)
    body = registry.build_named("g1-29").joints
    names = tuple(joint.name for joint in body)
    if joints.shape[1] != len(names):
        names = tuple(joint.name for joint in body if joint.part != "wrist")
    if joints.shape[1] != len(names):
        raise location.error(
            f"its dof have {joints.shape[1]} joints; a G1 has 29, or 23 without its wrists"
        )
    if _ASAP_AXES in motion:
        _check_axes(joints, names, motion[_ASAP_AXES], location)
    return _make_contents(motion, _ASAP, joints, names, location)


def _read_dictionary(location: FileLocation) -> dict[Any, Any]:
    try:
        value = read_plain(read_bytes(location))
    except DecodeError as error:
        raise location.error(
            str(error), "Ask its author for a file that contains no code."
        ) from None
    if not isinstance(value, dict):
        raise location.error("it does not hold a dictionary")
    return value


def _read_joints(motion: dict[Any, Any], keys: _EntryKeys, location: FileLocation) -> Array:
    """Return the angles, (n, joints); refuse a motion that lacks one of the entries."""
    if missing := [key for key in keys if key not in motion]:
        key_list = ", ".join(str(key)[:40] for key in list(motion)[:10]) or "nothing"
        raise location.error(f"it has no {missing[0]!r}, only {key_list}")
    angles = motion[keys.joints]
    if isinstance(angles, np.ndarray) and angles.ndim == 3 and angles.shape[2] == 1:
        angles = angles[:, :, 0]
    return _read_rows(angles, keys.joints, location)


def _check_axes(
    joints: Array, names: tuple[str, ...], axis_angles: Any, location: FileLocation
) -> None:
    """Raise `BadRequestError` if the file turns a joint about another axis than the robot does.

    `axis_angles` has the pelvis first, then a vector for each joint: its axis times its angle.
    """
    count = len(names)
    if not isinstance(axis_angles, np.ndarray) or axis_angles.dtype.kind != "f":
        return
    shape = axis_angles.shape
    if len(shape) != 3 or shape[0] != len(joints) or shape[1] <= count or shape[2] != 3:
        return
    axes = {joint.name: joint.axis for joint in registry.build_named("g1-29").joints}
    with np.errstate(invalid="ignore"):  # numbers that are not finite are not compared
        vectors = axis_angles[:, 1 : count + 1].astype(np.float64)
    for name, vector in zip(names, vectors.swapaxes(0, 1), strict=True):
        angles = np.linalg.norm(vector, axis=1)
        along_axis = np.abs(vector @ np.array(axes[name]))
        is_turned = angles > _MIN_TURN_RAD
        if (along_axis[is_turned] < (1.0 - _MAX_OFF_AXIS) * angles[is_turned]).any():
            raise location.error(
                f"its {_ASAP_AXES} turn {name} about another axis than a G1 does",
                "Its joints are in another order: check which program wrote it.",
            )


def _make_contents(
    motion: dict[Any, Any],
    keys: _EntryKeys,
    joints: Array,
    names: tuple[str, ...],
    location: FileLocation,
) -> Contents:
    position = _read_rows(motion[keys.position], keys.position, location)
    quaternions = _read_rows(motion[keys.quaternions], keys.quaternions, location)
    if position.shape != (len(joints), 3) or quaternions.shape != (len(joints), 4):
        raise location.error(
            f"{len(joints)} samples do not match {keys.position} of shape {position.shape} "
            f"and {keys.quaternions} of shape {quaternions.shape}"
        )
    return Contents(
        names=names,
        joints_rad=joints,
        fps=_read_fps(motion[keys.fps], location),
        position_m=position,
        quaternions=quaternions,
        order=QuaternionOrder.XYZW,
    )


def _read_fps(value: Any, location: FileLocation) -> float:
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "fiu":
        value = value.ravel()[0]
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise location.error("its fps is not a number")
    try:
        return float(value)
    except OverflowError:
        raise location.error("its fps is not a number") from None


def _measure_row(row: Any) -> int:
    """Return the number of values in a row; -1 if it is not a row."""
    if isinstance(row, np.ndarray):
        return len(row) if row.ndim == 1 else -1
    return len(row) if isinstance(row, list | tuple) else -1


def _read_rows(value: Any, name: str, location: FileLocation) -> Array:
    """Return an entry as (n, width) numbers. It is an array, or a list of arrays or lists."""
    if isinstance(value, list | tuple):
        value = _stack_rows(value, name, location)
    if not isinstance(value, np.ndarray) or value.ndim != 2 or value.dtype.kind not in "fiu":
        raise location.error(f"its {name} are not rows of numbers")
    check_length(len(value), value.shape[1], location)
    with np.errstate(over="ignore", invalid="ignore"):
        rows = value.astype(np.float64)
    if not np.isfinite(rows).all():
        sample = int(np.argmin(np.isfinite(rows).all(axis=1)))
        raise location.error(f"its {name} are not numbers in sample {sample + 1}")
    return rows


def _stack_rows(rows: list[Any] | tuple[Any, ...], name: str, location: FileLocation) -> Array:
    """Return a list of arrays or lists, which must have equal lengths, as one array."""
    widths = {_measure_row(row) for row in rows}
    width = max(widths, default=-1)
    if len(widths) != 1 or width < 0 or len(rows) * width > _MAX_VALUES:
        raise location.error(f"its {name} are not rows of numbers")
    values: list[Any] = []
    for row in rows:
        values += row.tolist() if isinstance(row, np.ndarray) else row
    if not all(type(value) in {int, float} for value in values):
        raise location.error(f"its {name} are not rows of numbers")
    try:
        return np.array(values, dtype=np.float64).reshape(len(rows), width)
    except OverflowError:
        raise location.error(f"its {name} hold a number that is too large") from None
