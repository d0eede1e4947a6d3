"""Messages of ROS 2 as CDR: joint states, descriptions and diagnostics out, trajectories in.

For any invalid input, decoders raise `DecodeError` and nothing else.
"""

from collections.abc import Iterable
from typing import NamedTuple

from rote.motion.files import joint_state
from rote.wire.cdr_layout import HEADER, CdrLayout

_STRING = CdrLayout("s", text_errors="replace")
_DIAGNOSTICS = CdrLayout("iI s [B s s s [s s]]", text_errors="replace")
_TRAJECTORY = CdrLayout("iI s [s] [[d] [d] [d] [d] iI]")
_SERVICE = CdrLayout("Qq")
_REPLY = CdrLayout("Qq ? s", text_errors="replace")

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
"""The message definitions that a program without ROS 2 needs to decode the messages."""

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
    """The part of a `JointTrajectory` that rote uses: positions at times."""

    names: tuple[str, ...]
    points: tuple[TrajectoryPoint, ...]
    stamp_ns: int
    """The requested start, in the sender's time; 0 for at once. rote always begins at once."""


# ---- messages -----------------------------------------------------------------------------------


def encode_string(text: str) -> bytes:
    """Return a `String` message."""
    return _STRING.encode(text)


def decode_string(data: bytes) -> str:
    """Return the text in a `String` message."""
    return str(_STRING.decode(data)[0])


def encode_diagnostics(time_ns: int, found: Iterable[Diagnostic]) -> bytes:
    """Return a `DiagnosticArray` message."""
    return _DIAGNOSTICS.encode(*divmod(time_ns, 10**9), "", [*found])


def decode_trajectory(data: bytes) -> Trajectory:
    """Return the trajectory in a `JointTrajectory`; speeds and torques in it are not used."""
    stamp_s, stamp_rest_ns, _, names, points = _TRAJECTORY.decode(data)
    used_points = tuple(
        TrajectoryPoint(positions_rad, at_s + at_rest_ns * 1e-9)
        for positions_rad, _, _, _, at_s, at_rest_ns in points
    )
    return Trajectory(names, used_points, stamp_s * 10**9 + stamp_rest_ns)


# ---- services -----------------------------------------------------------------------------------


class ServiceHeader(NamedTuple):
    """The header that CycloneDDS's middleware for ROS 2 puts before each request and reply: the
    client id and the sequence number.
    """

    client: int
    number: int


def decode_request(data: bytes) -> tuple[ServiceHeader, bytes]:
    """Return the header of a request, and its body as a separate message."""
    (client, number), end = _SERVICE.decode_prefix(data)
    return ServiceHeader(client, number), data[: len(HEADER)] + data[end:]


def encode_reply(header: ServiceHeader, *, success: bool, message: str) -> bytes:
    """Return the reply to a request, for services that answer with success and a message."""
    return _REPLY.encode(*header, success, message)
