"""Motions as rows of numbers: Unitree's CSV, Kimodo's, which looks the same, and BONES-SEED's.

Unitree and Kimodo write no header: x, y, z of the base in m, its quaternion, then the joints in rad
in the order of the motors; 36 columns for a G1 of 29 joints. They differ only in the order of the
quaternion. BONES-SEED has a header, centimetres and degrees.
"""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from rote.motion.files import disk
from rote.motion.files.exchange.contents import (
    Contents,
    QuaternionOrder,
    list_joints_in_motor_order,
    read_bytes,
)
from rote.motion.files.metadata import FileLocation, check_length
from rote.motion.track import Array, Track

_ROOT_COLUMNS = 7  # columns before the joints
_BLOCK = 2000  # rows converted at once: each is then in memory as text and as numbers
_FRAME = "Frame"
_POSITION_COLUMNS = ("root_translateX", "root_translateY", "root_translateZ")
_ROTATION_COLUMNS = ("root_rotateX", "root_rotateY", "root_rotateZ")
_DOF = "_dof"
_MAX_COLUMNS = 1000
_DECIMALS = 9
_NUMERIC = b"0123456789+-.eE, \t\r"


def read_first_line(location: FileLocation, data: bytes) -> str:
    """Return the first line of a text file."""
    return _decode_text(location, data[:20_000].split(b"\n", 1)[0]).strip("\ufeff\r\n ")


def is_bones_seed_header(line: str) -> bool:
    """Return whether a line is the header of BONES-SEED."""
    names = line.split(",")
    return names[0].strip() == _FRAME and all(
        name in map(str.strip, names) for name in _POSITION_COLUMNS
    )


def count_numbers(line: str) -> int | None:
    """Return the number of numbers in a line; None if it is not a row of numbers."""
    try:
        return len([float(cell) for cell in line.split(",")])
    except ValueError:
        return None


def read_unitree(location: FileLocation, order: QuaternionOrder = QuaternionOrder.XYZW) -> Contents:
    """Read rows without a header, whose quaternions have this order."""
    lines = _split_lines(location, read_bytes(location))
    width = count_numbers(lines[0]) if lines else None
    names = None if width is None else list_joints_in_motor_order(width - _ROOT_COLUMNS)
    if names is None:
        found = "no numbers" if width is None else f"{width} numbers"
        raise location.error(
            f"its first row has {found}; expected 36 for a G1 of 29 joints, "
            "34 for one of 27, 30 for one of 23, and no header"
        )
    table = _read_table(lines, _ROOT_COLUMNS + len(names), location)
    return Contents(
        names=names,
        joints_rad=table[:, _ROOT_COLUMNS:],
        position_m=table[:, :3],
        quaternions=table[:, 3:_ROOT_COLUMNS],
        order=order,
    )


def read_kimodo(location: FileLocation) -> Contents:
    """Read rows without a header whose quaternions begin with w."""
    return read_unitree(location, QuaternionOrder.WXYZ)


def read_bones_seed(location: FileLocation) -> Contents:
    """Read a table with a header, in centimetres and degrees."""
    data = read_bytes(location)
    if not is_bones_seed_header(read_first_line(location, data)):
        raise location.error(f"its first row does not begin with {_FRAME},{_POSITION_COLUMNS[0]}")
    lines = _split_lines(location, data)
    header = [name.strip() for name in lines[0].strip("\ufeff").split(",")]
    if len(set(header)) < len(header) or len(header) > _MAX_COLUMNS:
        raise location.error("two of its columns have the same name")
    if missing := [name for name in (*_POSITION_COLUMNS, *_ROTATION_COLUMNS) if name not in header]:
        raise location.error(f"it has no column {missing[0]!r}")
    joints = [name for name in header if name.endswith(_DOF)]
    if not joints:
        raise location.error(f"it has no column of a joint, like left_elbow_joint{_DOF}")
    table = _read_table(lines[1:], len(header), location, first_row=2)
    columns = {name: table[:, number] for number, name in enumerate(header)}
    rpy_rad = np.radians(np.column_stack([columns[name] for name in _ROTATION_COLUMNS]))
    return Contents(
        names=tuple(name.removesuffix(_DOF) for name in joints),
        joints_rad=np.radians(np.column_stack([columns[name] for name in joints])),
        position_m=np.column_stack([columns[name] for name in _POSITION_COLUMNS]) / 100.0,
        quaternions=_quaternions_from_rpy(rpy_rad),
    )


def _quaternions_from_rpy(rpy_rad: Array) -> Array:
    """Return quaternions, w first, of (n, 3) turns about the fixed axes x, y, z in this order."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy_rad.T / 2), np.sin(rpy_rad.T / 2)
    return np.column_stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


def _split_lines(location: FileLocation, data: bytes) -> list[str]:
    return _decode_text(location, data).strip("\ufeff\r\n ").splitlines()


def _decode_text(location: FileLocation, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise location.error("it cannot be read as text in UTF-8") from None


def _read_table(
    lines: Sequence[str], width: int, location: FileLocation, first_row: int = 1
) -> Array:
    """Return lines as numbers, (n, width); refuse the first invalid one.

    `first_row` is the number of the first line in the file.
    """
    check_length(len(lines), width, location)
    table = np.empty((len(lines), width))
    for begin in range(0, len(lines), _BLOCK):
        block = lines[begin : begin + _BLOCK]
        values = _parse_numbers(",".join(block))
        has_right_width = all(line.count(",") == width - 1 for line in block)
        if not has_right_width or values is None or values.size != len(block) * width:
            raise _make_row_error(block, begin + first_row, width, location)
        table[begin : begin + len(block)] = values.reshape(len(block), width)
    if not np.isfinite(table).all():
        row, column = divmod(int(np.argmin(np.isfinite(table))), width)
        raise location.error(f"row {row + first_row}, column {column + 1} is not a number")
    return table


def _parse_numbers(text: str) -> Array | None:
    """Return the numbers in a text, separated by commas; None if it holds anything else."""
    # `translate` deletes the characters of numbers: nothing may be left.
    if not text.isascii() or text.encode("ascii").translate(None, _NUMERIC):
        return None
    with warnings.catch_warnings():
        # numpy warns about text that is not a number; later versions raise an error.
        warnings.simplefilter("error")
        try:
            return np.fromstring(text, dtype=np.float64, sep=",")
        except (DeprecationWarning, ValueError):
            return None


def _make_row_error(
    lines: Sequence[str], first_row: int, width: int, location: FileLocation
) -> Exception:
    """Return an error about the first line that is not a row of `width` numbers.

    `first_row` is as in `_read_table`.
    """
    for number, line in enumerate(lines, start=first_row):
        cells = line.split(",")
        if len(cells) != width:
            return location.error(f"row {number} has {len(cells)} cells, expected {width}")
        for column, cell in enumerate(cells, start=1):
            try:
                is_number = np.isfinite(float(cell))
            except ValueError:
                is_number = False
            if not is_number:
                return location.error(
                    f"row {number}, column {column} is {cell!r:.40}, not a number"
                )
    return location.error("a row cannot be read")


def write_unitree(track: Track, path: Path) -> None:
    """Write a track with all joints of a build and a path of its base as rows without a header."""
    assert track.root is not None
    quaternions = track.root.quaternion_wxyz[:, [1, 2, 3, 0]]
    table = np.column_stack([track.root.position_m, quaternions, track.joints_rad])
    with disk.write_atomically(path) as file:
        for text in _format_rows(table):
            file.write(text)


def _format_rows(table: Array) -> Iterator[bytes]:
    """Yield blocks of rows as text; one `%` for a whole block is fast."""
    line = ",".join([f"%.{_DECIMALS}f"] * table.shape[1]) + "\n"
    for begin in range(0, len(table), _BLOCK):
        block = table[begin : begin + _BLOCK]
        yield ((line * len(block)) % tuple(block.ravel().tolist())).encode("ascii")
