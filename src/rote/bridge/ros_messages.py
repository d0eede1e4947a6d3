"""Messages of ROS 2 as CDR: joint states, descriptions and diagnostics out, trajectories in.

Plain CDR, little endian: 4 bytes of header, then numbers aligned to their size from there, texts
with their length and a NUL, sequences with their length. Decoders raise `DecodeError` and nothing
else, for any input at all.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rote.errors import DecodeError, PayloadError, TruncatedError
from rote.motion.files import joint_state

HEADER = b"\x00\x01\x00\x00"
_MAX_TEXT = 2**16
_MAX_ITEMS = 200_000

JOINT_STATE = joint_state.SCHEMA_NAME
STRING = "std_msgs/msg/String"
DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"
TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"

_LINE = "=" * 80
_STAMPED = (
    f"{_LINE}\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n"
    f"{_LINE}\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
)
DEFINITIONS: dict[str, str] = {
    JOINT_STATE: joint_state.SCHEMA,
    STRING: "string data\n",
    DIAGNOSTICS: (
        "std_msgs/Header header\ndiagnostic_msgs/DiagnosticStatus[] status\n"
        + _STAMPED
        + f"{_LINE}\nMSG: diagnostic_msgs/DiagnosticStatus\nbyte OK=0\nbyte WARN=1\n"
        "byte ERROR=2\nbyte STALE=3\nbyte level\nstring name\nstring message\n"
        "string hardware_id\ndiagnostic_msgs/KeyValue[] values\n"
        f"{_LINE}\nMSG: diagnostic_msgs/KeyValue\nstring key\nstring value\n"
    ),
}
"""What a program that knows no ROS 2 needs to read them: the fields, and those of their parts."""

OK, WARN, ERROR, STALE = 0, 1, 2, 3
"""Levels of a diagnostic."""


class Diagnostic(NamedTuple):
    """One line of a list of diagnostics."""

    level: int
    name: str
    message: str
    hardware_id: str = ""
    values: tuple[tuple[str, str], ...] = ()


class TrajectoryPoint(NamedTuple):
    """One point of a trajectory."""

    positions_rad: tuple[float, ...]
    at_s: float


class Trajectory(NamedTuple):
    """A `JointTrajectory`, as far as it is played: positions at times."""

    names: tuple[str, ...]
    points: tuple[TrajectoryPoint, ...]
    stamp_ns: int
    """When it is to begin; 0 for at once."""


# ---- writing ------------------------------------------------------------------------------------


class _MessageWriter:
    """Numbers and texts one after the other, each where CDR wants it."""

    def __init__(self) -> None:
        self.data = bytearray(HEADER)

    def align(self, size: int) -> None:
        self.data += bytes(-(len(self.data) - len(HEADER)) % size)

    def uint32(self, value: int) -> None:
        self.align(4)
        self.data += struct.pack("<I", value)

    def text(self, text: str) -> None:
        raw = text.encode("utf-8", "replace") + b"\0"
        self.uint32(len(raw))
        self.data += raw

    def stamp(self, time_ns: int) -> None:
        self.align(4)
        self.data += struct.pack("<iI", *divmod(time_ns, 10**9))

    def texts(self, texts: Sequence[str]) -> None:
        self.uint32(len(texts))
        for each in texts:
            self.text(each)


class JointStatePacker:
    """Packs the states of one robot: all but the time and the numbers is packed once."""

    def __init__(self, names: Sequence[str], frame: str = "") -> None:
        self._count = count = len(names)
        writer = _MessageWriter()
        writer.stamp(0)
        writer.text(frame)
        writer.texts(names)
        writer.uint32(count)
        if count:  # an empty sequence has nothing to align
            writer.align(8)
        self._head = bytes(writer.data[len(HEADER) + 8 :])
        # Velocities follow their own length, which is aligned to 4 after doubles: then 4 to skip.
        self._with_speeds = struct.Struct(f"<4siI{len(self._head)}s{count}dI4x{count}dI")
        self._without = struct.Struct(f"<4siI{len(self._head)}s{count}dII")

    def pack(
        self, time_ns: int, positions_rad: Sequence[float], velocities_rad_s: Sequence[float] = ()
    ) -> bytes:
        """Return a `JointState`; velocities may be left out, torques are."""
        second, rest_ns = divmod(time_ns, 10**9)
        if len(velocities_rad_s) == self._count and self._count:
            return self._with_speeds.pack(
                HEADER, second, rest_ns, self._head, *positions_rad, self._count,
                *velocities_rad_s, 0,
            )  # fmt: skip
        return self._without.pack(HEADER, second, rest_ns, self._head, *positions_rad, 0, 0)


def encode_string(text: str) -> bytes:
    """Return a `String`."""
    writer = _MessageWriter()
    writer.text(text)
    return bytes(writer.data)


def encode_diagnostics(time_ns: int, found: Iterable[Diagnostic]) -> bytes:
    """Return a `DiagnosticArray`."""
    listed = list(found)
    writer = _MessageWriter()
    writer.stamp(time_ns)
    writer.text("")
    writer.uint32(len(listed))
    for each in listed:
        writer.data.append(each.level)
        writer.text(each.name)
        writer.text(each.message)
        writer.text(each.hardware_id)
        writer.uint32(len(each.values))
        for key, value in each.values:
            writer.text(key)
            writer.text(value)
    return bytes(writer.data)


# ---- services -----------------------------------------------------------------------------------


class ServiceHeader(NamedTuple):
    """What CycloneDDS's middleware for ROS 2 puts before each request and reply: who asks, and the
    number of the question.
    """

    client: int
    number: int


_SERVICE = struct.Struct("<4sQq")


def decode_request(data: bytes) -> tuple[ServiceHeader, "MessageReader"]:
    """Return who asks, and a reader of the rest of a request."""
    reader = MessageReader(data)
    client, number = reader.unpack("<Qq", 8)
    return ServiceHeader(int(client), int(number)), reader


def encode_reply(header: ServiceHeader, *, success: bool, message: str) -> bytes:
    """Return the reply of a `Trigger` or a `SetBool` to a request."""
    writer = _MessageWriter()
    writer.data += struct.pack("<Qq?", header.client, header.number, success)
    writer.text(message)
    return bytes(writer.data)


# ---- reading ------------------------------------------------------------------------------------


class MessageReader:
    """Reads what `_MessageWriter` writes, of any sender."""

    def __init__(self, data: bytes) -> None:
        if len(data) < len(HEADER):
            raise TruncatedError(len(HEADER), len(data))
        if data[:2] not in {b"\x00\x01", b"\x00\x00"}:
            raise DecodeError(f"bytes that begin with {data[:2].hex()} are not plain CDR")
        self._order = "<" if data[1] else ">"
        self._data = data
        self._at = len(HEADER)

    def align(self, size: int) -> None:
        """Go on at the next multiple of `size`."""
        self._at += -(self._at - len(HEADER)) % size

    def unpack(self, layout: str, size: int) -> tuple[int | float, ...]:
        """Read numbers, the first of which is aligned to `size`."""
        self.align(size)
        shape = struct.Struct(self._order + layout.lstrip("<>"))
        if len(self._data) < self._at + shape.size:
            raise TruncatedError(self._at + shape.size, len(self._data))
        found = shape.unpack_from(self._data, self._at)
        self._at += shape.size
        return found

    def rest(self) -> bytes:
        """Return what has not been read, as a message of its own."""
        return self._data[: len(HEADER)] + self._data[self._at :]

    def count(self, least_bytes: int = 0) -> int:
        """Read how many items follow, each of which takes so many bytes at least."""
        (count,) = self.unpack("I", 4)
        left = len(self._data) - self._at
        if count > _MAX_ITEMS or int(count) * least_bytes > left:
            raise PayloadError(f"{count} items cannot follow in {left} bytes")
        return int(count)

    def text(self) -> str:
        """Read a text."""
        size = self.count()
        raw = self._data[self._at : self._at + size]
        if len(raw) < size:
            raise TruncatedError(self._at + size, len(self._data))
        if size > _MAX_TEXT:
            raise PayloadError(f"a text of {size} bytes")
        self._at += size
        try:
            return raw.removesuffix(b"\0").decode("utf-8")
        except UnicodeDecodeError as error:
            raise PayloadError(f"a text that is not UTF-8: {error}") from None

    def doubles(self) -> tuple[float, ...]:
        """Read a sequence of doubles."""
        count = self.count(8)
        return tuple(map(float, self.unpack(f"{count}d", 8))) if count else ()


def decode_trajectory(data: bytes) -> Trajectory:
    """Return the trajectory in a `JointTrajectory`; speeds and torques in it are not used."""
    reader = MessageReader(data)
    second, rest_ns = reader.unpack("iI", 4)
    reader.text()
    names = tuple(reader.text() for _ in range(reader.count(4)))
    points = []
    for _ in range(reader.count(24)):
        positions = reader.doubles()
        for _ in range(3):  # velocities, accelerations, effort
            reader.doubles()
        point_s, point_ns = reader.unpack("iI", 4)
        points.append(TrajectoryPoint(positions, point_s + point_ns * 1e-9))
    return Trajectory(names, tuple(points), int(second) * 10**9 + int(rest_ns))


def decode_string(data: bytes) -> str:
    """Return the text in a `String`."""
    return MessageReader(data).text()
