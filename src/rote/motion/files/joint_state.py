"""One sample as a message that robotics tools know: ROS 2 `sensor_msgs/msg/JointState`.

The bytes are CDR as ROS 2 writes it. ROS is not needed.
"""

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.errors import DecodeError
from rote.motion.files.mcap_records import count_leading
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
"""The largest stamp, positive or negative: 68 years, the range of a signed 32-bit integer."""

Stamps = NDArray[np.int64]

_STAMP_BEGIN = len(HEADER)
_STAMP_MIDDLE, _STAMP_END = _STAMP_BEGIN + 4, _STAMP_BEGIN + 8
"""Where the nanoseconds of a stamp begin, after its seconds, and where they end."""
_BEGIN = CdrLayout("iI s [s] I", text_errors="replace")
"""The fields before the positions: stamp, frame, joint names and the number of positions."""


class JointState(NamedTuple):
    """The joint positions at one time; `joints_rad` is (joints,)."""

    time_ns: int
    names: tuple[str, ...]
    joints_rad: Array


class Encoder:
    """Encodes messages for one set of joints; the bytes that never change are encoded once."""

    def __init__(self, names: Sequence[str], frame: str = "") -> None:
        self._joint_count = count = len(names)
        begin = _BEGIN.encode(0, 0, frame, names, count)
        self._constant_bytes = _pad_before_positions(begin, count)[_STAMP_END:]
        # Header, stamp, constant bytes, positions, velocities and efforts, each list with its
        # length in front. CDR aligns doubles to 8 bytes: 4x is the padding after a length.
        stamp_to_positions = f"<4siI{len(self._constant_bytes)}s{count}d"
        self._with_velocities = struct.Struct(f"{stamp_to_positions}I4x{count}dI")
        self._without_velocities = struct.Struct(f"{stamp_to_positions}II")

    def encode(
        self, time_ns: int, joints_rad: Sequence[float], velocities_rad_s: Sequence[float] = ()
    ) -> bytes:
        """Return one message; velocities are optional, efforts are always left out."""
        seconds, nanoseconds = divmod(time_ns, 10**9)
        if self._joint_count and len(velocities_rad_s) == self._joint_count:
            return self._with_velocities.pack(
                HEADER, seconds, nanoseconds, self._constant_bytes, *joints_rad, self._joint_count,
                *velocities_rad_s, 0,
            )  # fmt: skip
        return self._without_velocities.pack(
            HEADER, seconds, nanoseconds, self._constant_bytes, *joints_rad, 0, 0
        )


class Decoder:
    """Decodes messages; one with the same joints as the previous one is decoded quickly."""

    def __init__(self) -> None:
        self._encoding = b""
        """The first two bytes of a message, by which CDR states the byte order."""
        self._constant_bytes = b""
        """The bytes between stamp and positions, which depend only on the joints."""
        self._names: tuple[str, ...] = ()

    def decode(self, data: bytes) -> JointState:
        """Read one message, or raise `DecodeError`."""
        has_same_joints = data.startswith(self._constant_bytes, _STAMP_END)
        if data[:2] != self._encoding or not has_same_joints:
            self._read_layout(data)
        begin = _STAMP_END + len(self._constant_bytes)
        try:
            seconds, nanoseconds = struct.unpack_from(f"{self._byte_order}iI", data, _STAMP_BEGIN)
            positions = np.frombuffer(data, f"{self._byte_order}f8", len(self._names), begin)
        except (struct.error, ValueError):
            raise DecodeError(f"a message of {len(data)} bytes is not a {SCHEMA_NAME}") from None
        return JointState(seconds * 10**9 + nanoseconds, self._names, positions.astype(np.float64))

    @property
    def _byte_order(self) -> str:
        return "<" if self._encoding == HEADER[:2] else ">"

    def decode_many(self, rows: NDArray[np.uint8]) -> tuple[Stamps, Array]:
        """Read messages, (n, bytes), that are as long as the message decoded last.

        Return their times in ns and their positions, (n, joints), up to the first message with
        other joints. The result equals that of `decode` for each.
        """
        begin = _STAMP_END + len(self._constant_bytes)
        end = begin + 8 * len(self._names)
        encoding = np.frombuffer(self._encoding, np.uint8)
        constant_bytes = np.frombuffer(self._constant_bytes, np.uint8)
        is_same = (rows[:, :2] == encoding).all(axis=1)
        is_same &= (rows[:, _STAMP_END:begin] == constant_bytes).all(axis=1)
        rows = rows[: count_leading(is_same)]

        def read_column(first: int, last: int, number_type: str) -> NDArray[Any]:
            return np.ascontiguousarray(rows[:, first:last]).view(self._byte_order + number_type)

        seconds = read_column(_STAMP_BEGIN, _STAMP_MIDDLE, "i4")[:, 0]
        nanoseconds = read_column(_STAMP_MIDDLE, _STAMP_END, "u4")[:, 0]
        times_ns = seconds.astype(np.int64) * 10**9 + nanoseconds
        return times_ns, read_column(begin, end, "f8").astype(np.float64, copy=False)

    def _read_layout(self, data: bytes) -> None:
        """Store the joint names of a message, and the bytes that equal messages share with it."""
        (_, _, _, names, position_count), end = _BEGIN.decode_prefix(data)
        if position_count != len(names):
            raise DecodeError(
                f"a message has {len(names)} joint names and {position_count} positions"
            )
        self._constant_bytes = _pad_before_positions(data[:end], position_count)[_STAMP_END:]
        self._encoding, self._names = data[:2], names


def _pad_before_positions(begin: bytes, position_count: int) -> bytes:
    """Return the beginning of a message with the padding before its positions, if it has any.

    CDR aligns doubles to 8 bytes, counted from the end of the header.
    """
    return begin + bytes((len(HEADER) - len(begin)) % 8 if position_count else 0)
