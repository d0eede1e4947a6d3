"""One sample as a message that robotics tools know: ROS 2 `sensor_msgs/msg/JointState`.

The bytes are CDR as ROS 2 writes it: four bytes that name the encoding, then the fields in order,
each aligned to its own size, counted from after those four. ROS is not needed.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.errors import DecodeError
from rote.motion.track import Array

SCHEMA_NAME = "sensor_msgs/msg/JointState"
_RULE = "=" * 80
SCHEMA = f"""\
std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
{_RULE}
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
{_RULE}
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""

MAX_STAMP_S = 2**31 - 1
"""The largest stamp in both directions: 68 years."""

Stamps = NDArray[np.int64]

_LITTLE, _BIG = b"\0\1\0\0", b"\0\0\0\0"
_MAX_JOINTS = 10_000


class JointState(NamedTuple):
    """Where the joints were at one moment; `joints_rad` is (joints,)."""

    time_ns: int
    names: tuple[str, ...]
    joints_rad: Array


class Encoder:
    """Encodes messages for one set of joints; the constant part is encoded once."""

    def __init__(self, names: Sequence[str]) -> None:
        middle = bytearray(_LITTLE + bytes(8))
        _put_text(middle, "")  # the frame: joints have none
        _put_count(middle, len(names))
        for name in names:
            _put_text(middle, name)
        _put_count(middle, len(names))
        if names:
            _pad(middle, 8)
        self._head = struct.Struct("<4siI")
        self._middle = bytes(middle[12:])
        self._positions = struct.Struct(f"<{len(names)}d8x")  # no velocities, no efforts

    def encode(self, time_ns: int, joints_rad: Sequence[float]) -> bytes:
        """Return one message."""
        head = self._head.pack(_LITTLE, *divmod(time_ns, 10**9))
        return head + self._middle + self._positions.pack(*joints_rad)


class Decoder:
    """Decodes messages; one with the same joints as the previous one is decoded quickly."""

    def __init__(self) -> None:
        self._order, self._middle = "", b""
        self._names: tuple[str, ...] = ()

    def decode(self, data: bytes) -> JointState:
        """Read one message, or raise `DecodeError`."""
        order = {_LITTLE[:2]: "<", _BIG[:2]: ">"}.get(data[:2])
        if order is None:
            raise DecodeError(f"a message begins with {data[:2].hex()}, which is not plain CDR")
        try:
            seconds, nanoseconds = struct.unpack_from(f"{order}iI", data, 4)
            if order != self._order or not data.startswith(self._middle, 12):
                self._read_names(data, order)
            begin = 12 + len(self._middle)
            positions = np.frombuffer(data, f"{order}f8", len(self._names), begin)
        except (struct.error, ValueError):
            raise DecodeError(f"a message of {len(data)} bytes is no {SCHEMA_NAME}") from None
        return JointState(seconds * 10**9 + nanoseconds, self._names, positions.astype(np.float64))

    def decode_alike(self, rows: NDArray[np.uint8]) -> tuple[Stamps, Array]:
        """Read many messages of one length, (n, bytes), after one of the same length was read.

        Return times in nanoseconds and positions of those with the same joints: up to the first
        that has others. Each says exactly what `decode` says of it.
        """
        begin = 12 + len(self._middle)
        end = begin + 8 * len(self._names)
        kind = _LITTLE[:2] if self._order == "<" else _BIG[:2]
        same = (rows[:, :2] == np.frombuffer(kind, np.uint8)).all(axis=1)
        same &= (rows[:, 12:begin] == np.frombuffer(self._middle, np.uint8)).all(axis=1)
        rows = rows[: len(same) if same.all() else int(np.argmin(same))]
        seconds = np.ascontiguousarray(rows[:, 4:8]).view(f"{self._order}i4")[:, 0]
        rest = np.ascontiguousarray(rows[:, 8:12]).view(f"{self._order}u4")[:, 0]
        positions = np.ascontiguousarray(rows[:, begin:end]).view(f"{self._order}f8")
        times_ns = seconds.astype(np.int64) * 10**9 + rest
        return times_ns, positions.astype(np.float64, copy=False)

    def _read_names(self, data: bytes, order: str) -> None:
        place = _after_text(data, 12, order)
        count, place = _count(data, place, order)
        names = []
        for _ in range(count):
            size, begin = _count(data, place, order, len(data))
            place = begin + size
            names.append(data[begin:place].removesuffix(b"\0").decode("utf-8"))
        positions, place = _count(data, place, order)
        if positions != count:
            raise DecodeError(f"a message has {count} joint names and {positions} positions")
        place = _aligned(place, 8) if count else place
        self._order, self._middle, self._names = order, data[12:place], tuple(names)


def _put_text(data: bytearray, text: str) -> None:
    raw = text.encode("utf-8") + b"\0"
    _put_count(data, len(raw))
    data += raw


def _put_count(data: bytearray, count: int) -> None:
    _pad(data, 4)
    data += struct.pack("<I", count)


def _pad(data: bytearray, size: int) -> None:
    data += bytes(_aligned(len(data), size) - len(data))


def _aligned(place: int, size: int) -> int:
    """Return the next place for a number of `size` bytes; the first four bytes do not count."""
    return place + (4 - place) % size


def _count(data: bytes, place: int, order: str, most: int = _MAX_JOINTS) -> tuple[int, int]:
    place = _aligned(place, 4)
    (count,) = struct.unpack_from(f"{order}I", data, place)
    if count > most:
        raise DecodeError(f"a message says that {count} of something follow")
    return count, place + 4


def _after_text(data: bytes, place: int, order: str) -> int:
    size, begin = _count(data, place, order, len(data))
    return begin + size
