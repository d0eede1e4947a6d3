"""The types of ROS 2's topics and services that rote offers, declared for CycloneDDS.

As in `dds.types`, these classes only describe types, and no description has TK_UINT8 or TK_INT8 in
it. `bridge.ros_messages` packs the bytes. Requests and replies of services begin with the client id
and the sequence number, as in CycloneDDS's middleware for ROS 2.
"""

from typing import Any

from cyclonedds.idl.types import byte, float64, int32, int64, uint32, uint64

from rote.transport.dds.types import Type, sequence, structure

_TIME = structure("builtin_interfaces.msg.dds_.Time_", sec=int32, nanosec=uint32)
_DURATION = structure("builtin_interfaces.msg.dds_.Duration_", sec=int32, nanosec=uint32)
_HEADER = structure("std_msgs.msg.dds_.Header_", stamp=_TIME, frame_id=str)
_NUMBERS: Any = sequence[float64]

JOINT_STATE: Type = structure(
    "sensor_msgs.msg.dds_.JointState_",
    header=_HEADER,
    name=sequence[str],
    position=_NUMBERS,
    velocity=_NUMBERS,
    effort=_NUMBERS,
)
_PAIR = structure("diagnostic_msgs.msg.dds_.KeyValue_", key=str, value=str)
_DIAGNOSTIC = structure(
    "diagnostic_msgs.msg.dds_.DiagnosticStatus_",
    level=byte,
    name=str,
    message=str,
    hardware_id=str,
    values=sequence[_PAIR],
)
DIAGNOSTICS: Type = structure(
    "diagnostic_msgs.msg.dds_.DiagnosticArray_", header=_HEADER, status=sequence[_DIAGNOSTIC]
)
_POINT = structure(
    "trajectory_msgs.msg.dds_.JointTrajectoryPoint_",
    positions=_NUMBERS,
    velocities=_NUMBERS,
    accelerations=_NUMBERS,
    effort=_NUMBERS,
    time_from_start=_DURATION,
)
TRAJECTORY: Type = structure(
    "trajectory_msgs.msg.dds_.JointTrajectory_",
    header=_HEADER,
    joint_names=sequence[str],
    points=sequence[_POINT],
)
EMPTY: Type = structure("std_msgs.msg.dds_.Empty_", structure_needs_at_least_one_member=byte)
TRIGGER: tuple[Type, Type] = (
    structure(
        "std_srvs.srv.dds_.Trigger_Request_",
        client=uint64,
        number=int64,
        structure_needs_at_least_one_member=byte,
    ),
    structure(
        "std_srvs.srv.dds_.Trigger_Response_",
        client=uint64,
        number=int64,
        success=bool,
        message=str,
    ),
)
"""A service without arguments: the request and the response."""
NAMED: tuple[Type, Type] = (
    structure(
        "diagnostic_msgs.srv.dds_.AddDiagnostics_Request_",
        client=uint64,
        number=int64,
        load_namespace=str,
    ),
    structure(
        "diagnostic_msgs.srv.dds_.AddDiagnostics_Response_",
        client=uint64,
        number=int64,
        success=bool,
        message=str,
    ),
)
"""The one service of ROS 2's own packages that takes a text and returns success and a text."""
