"""One sample as a message that robotics tools know: ROS 2 `sensor_msgs/msg/JointState`.

The bytes are CDR as ROS 2 writes it. ROS is not needed.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.errors import DecodeError
from rote.motion.track import Array
from rote.wire.cdr_layout import HEADER, CdrLayout

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

_STAMP_END = 12
_BEGIN = CdrLayout("iI s [s] I", text_errors="replace")
"""Up to the number of positions."""


class JointState(NamedTuple):
    """The joint positions at one time; `joints_rad` is (joints,)."""

    time_ns: int
    names: tuple[str, ...]
    joints_rad: Array


class Encoder:
    """Encodes messages for one set of joints; the constant part is encoded once."""

    def __init__(self, names: Sequence[str], frame: str = "") -> None:
        self._count = count = len(names)
        begin = _BEGIN.encode(0, 0, frame, names, count)
        self._middle = _align(begin, count)[_STAMP_END:]
        # Velocities follow their own length, which is aligned to 4 after doubles: then 4 to skip.
        self._moving = struct.Struct(f"<4siI{len(self._middle)}s{count}dI4x{count}dI")
        self._still = struct.Struct(f"<4siI{len(self._middle)}s{count}dII")

    def encode(
        self, time_ns: int, joints_rad: Sequence[float], velocities_rad_s: Sequence[float] = ()
    ) -> bytes:
        """Return one message; velocities may be left out, efforts are."""
        seconds, rest_ns = divmod(time_ns, 10**9)
        if self._count and len(velocities_rad_s) == self._count:
            return self._moving.pack(
                HEADER, seconds, rest_ns, self._middle, *joints_rad, self._count,
                *velocities_rad_s, 0,
            )  # fmt: skip
        return self._still.pack(HEADER, seconds, rest_ns, self._middle, *joints_rad, 0, 0)


class Decoder:
    """Decodes messages; one with the same joints as the previous one is decoded quickly."""

    def __init__(self) -> None:
        self._kind, self._middle = b"", b""
        self._names: tuple[str, ...] = ()

    def decode(self, data: bytes) -> JointState:
        """Read one message, or raise `DecodeError`."""
        if data[:2] != self._kind or not data.startswith(self._middle, _STAMP_END):
            self._read_names(data)
        begin = _STAMP_END + len(self._middle)
        try:
            seconds, nanoseconds = struct.unpack_from(f"{self._order}iI", data, 4)
            positions = np.frombuffer(data, f"{self._order}f8", len(self._names), begin)
        except (struct.error, ValueError):
            raise DecodeError(f"a message of {len(data)} bytes is no {SCHEMA_NAME}") from None
        return JointState(seconds * 10**9 + nanoseconds, self._names, positions.astype(np.float64))

    @property
    def _order(self) -> str:
        return "<" if self._kind == HEADER[:2] else ">"

    def decode_alike(self, rows: NDArray[np.uint8]) -> tuple[Stamps, Array]:
        """Read many messages of one length, (n, bytes), after one of the same length was read.

        Return times in nanoseconds and positions of those with the same joints: up to the first
        that has others. The result equals that of `decode` for each.
        """
        begin = _STAMP_END + len(self._middle)
        end = begin + 8 * len(self._names)
        same = (rows[:, :2] == np.frombuffer(self._kind, np.uint8)).all(axis=1)
        same &= (rows[:, _STAMP_END:begin] == np.frombuffer(self._middle, np.uint8)).all(axis=1)
        rows = rows[: len(same) if same.all() else int(np.argmin(same))]
        seconds = np.ascontiguousarray(rows[:, 4:8]).view(f"{self._order}i4")[:, 0]
        rest = np.ascontiguousarray(rows[:, 8:_STAMP_END]).view(f"{self._order}u4")[:, 0]
        positions = np.ascontiguousarray(rows[:, begin:end]).view(f"{self._order}f8")
        times_ns = seconds.astype(np.int64) * 10**9 + rest
        return times_ns, positions.astype(np.float64, copy=False)

    def _read_names(self, data: bytes) -> None:
        (_, _, _, names, positions), end = _BEGIN.decode_begin(data)
        if positions != len(names):
            raise DecodeError(f"a message has {len(names)} joint names and {positions} positions")
        middle = _align(data[:end], positions)[_STAMP_END:]
        self._kind, self._middle, self._names = data[:2], middle, names


def _align(begin: bytes, count: int) -> bytes:
    """Return the beginning of a message with the padding before its positions, if it has any."""
    return begin + bytes((len(HEADER) - len(begin)) % 8 if count else 0)
