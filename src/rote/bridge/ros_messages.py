"""Messages of ROS 2 as CDR: joint states, descriptions and diagnostics out, trajectories in.

Decoders raise `DecodeError` and nothing else, for any input at all.
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


# ---- messages -----------------------------------------------------------------------------------


def encode_string(text: str) -> bytes:
    """Return a `String`."""
    return _STRING.encode(text)


def decode_string(data: bytes) -> str:
    """Return the text in a `String`."""
    return str(_STRING.decode(data)[0])


def encode_diagnostics(time_ns: int, found: Iterable[Diagnostic]) -> bytes:
    """Return a `DiagnosticArray`."""
    return _DIAGNOSTICS.encode(*divmod(time_ns, 10**9), "", [*found])


def decode_trajectory(data: bytes) -> Trajectory:
    """Return the trajectory in a `JointTrajectory`; speeds and torques in it are not used."""
    second, rest_ns, _, names, points = _TRAJECTORY.decode(data)
    return Trajectory(
        names,
        tuple(TrajectoryPoint(point[0], point[-2] + point[-1] * 1e-9) for point in points),
        second * 10**9 + rest_ns,
    )


# ---- services -----------------------------------------------------------------------------------


class ServiceHeader(NamedTuple):
    """The header that CycloneDDS's middleware for ROS 2 puts before each request and reply: the
    client id and the sequence number.
    """

    client: int
    number: int


def decode_request(data: bytes) -> tuple[ServiceHeader, bytes]:
    """Return the header of a request, and the rest as a message of its own."""
    (client, number), end = _SERVICE.decode_begin(data)
    return ServiceHeader(client, number), data[: len(HEADER)] + data[end:]


def encode_reply(header: ServiceHeader, *, success: bool, message: str) -> bytes:
    """Return the reply of a `Trigger` or a `SetBool` to a request."""
    return _REPLY.encode(*header, success, message)
