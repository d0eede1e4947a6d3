"""The types of a G1's DDS topics, declared so that CycloneDDS describes them as the robot does.

DDS peers compare types before they communicate. A peer that finds another type under a known name
asks for its description. The robot's CycloneDDS 0.10.2 cannot read a description with TK_UINT8 or
TK_INT8, which newer versions write for `uint8` and `int8`, and crashes (a null pointer, seen on
every run). With `byte` the description equals the robot's own and no peer asks. So octets are
always `byte`.

These classes only describe types. `wire.dds` packs the bytes.
"""

from typing import Any

from cyclonedds.idl import IdlStruct, make_idl_struct
from cyclonedds.idl import types as _types
from cyclonedds.idl.annotations import autoid, final
from cyclonedds.idl.types import byte, float32, int16, int32, int64, uint16, uint32

Type = type[IdlStruct]

# `array` and `sequence` are generic, but only at run time: a type checker must not see them.
_untyped: Any = _types
array, sequence = _untyped.array, _untyped.sequence


def structure(name: str, /, **fields: Any) -> Any:
    """Return a DDS type with this full name and these fields, declared as ROS 2 and Unitree do."""
    described = make_idl_struct(name.rpartition(".")[2], name, fields)
    return final(autoid("sequential")(described))


_API, _HG = "unitree_api.msg.dds_.", "unitree_hg.msg.dds_."

_IDENTITY = structure(_API + "RequestIdentity_", id=int64, api_id=int64)
_LEASE = structure(_API + "RequestLease_", id=int64)
_POLICY = structure(_API + "RequestPolicy_", priority=int32, noreply=bool)
_REQUEST_HEADER = structure(
    _API + "RequestHeader_", identity=_IDENTITY, lease=_LEASE, policy=_POLICY
)
REQUEST: Type = structure(
    _API + "Request_", header=_REQUEST_HEADER, parameter=str, binary=sequence[byte]
)
_STATUS = structure(_API + "ResponseStatus_", code=int32)
_RESPONSE_HEADER = structure(_API + "ResponseHeader_", identity=_IDENTITY, status=_STATUS)
RESPONSE: Type = structure(
    _API + "Response_", header=_RESPONSE_HEADER, data=str, binary=sequence[byte]
)

TEXT: Type = structure("std_msgs.msg.dds_.String_", data=str)

_MOTOR_COMMAND = structure(
    _HG + "MotorCmd_",
    mode=byte,
    q=float32,
    dq=float32,
    tau=float32,
    kp=float32,
    kd=float32,
    reserve=uint32,
)
LOWCMD: Type = structure(
    _HG + "LowCmd_",
    mode_pr=byte,
    mode_machine=byte,
    motor_cmd=array[_MOTOR_COMMAND, 35],
    reserve=array[uint32, 4],
    crc=uint32,
)
_IMU = structure(
    _HG + "IMUState_",
    quaternion=array[float32, 4],
    gyroscope=array[float32, 3],
    accelerometer=array[float32, 3],
    rpy=array[float32, 3],
    temperature=int16,
)
_MOTOR_STATE = structure(
    _HG + "MotorState_",
    mode=byte,
    q=float32,
    dq=float32,
    ddq=float32,
    tau_est=float32,
    temperature=array[int16, 2],
    vol=float32,
    sensor=array[uint32, 2],
    motorstate=uint32,
    reserve=array[uint32, 4],
)
LOWSTATE: Type = structure(
    _HG + "LowState_",
    version=array[uint32, 2],
    mode_pr=byte,
    mode_machine=byte,
    tick=uint32,
    imu_state=_IMU,
    motor_state=array[_MOTOR_STATE, 35],
    wireless_remote=array[byte, 40],
    reserve=array[uint32, 4],
    crc=uint32,
)
_PRESSURE = structure(
    _HG + "PressSensorState_",
    pressure=array[float32, 12],
    temperature=array[float32, 12],
    lost=uint32,
    reserve=uint32,
)
HAND_COMMAND: Type = structure(
    _HG + "HandCmd_", motor_cmd=sequence[_MOTOR_COMMAND], reserve=array[uint32, 4]
)
HAND_STATE: Type = structure(
    _HG + "HandState_",
    motor_state=sequence[_MOTOR_STATE],
    press_sensor_state=sequence[_PRESSURE],
    imu_state=_IMU,
    power_v=float32,
    power_a=float32,
    system_v=float32,
    device_v=float32,
    error=array[uint32, 2],
    reserve=array[uint32, 2],
)
SPORT: Type = structure(
    _HG + "SportModeState_", fsm_id=uint32, fsm_mode=uint32, task_id=uint32, task_time=float32
)
BATTERY: Type = structure(
    _HG + "BmsState_",
    version_high=byte,
    version_low=byte,
    fn=byte,
    cell_vol=array[uint16, 40],
    bmsvoltage=array[uint32, 3],
    current=int32,
    soc=byte,
    soh=byte,
    temperature=array[int16, 12],
    cycle=uint16,
    manufacturer_date=uint16,
    bmsstate=array[uint32, 5],
    reserve=array[uint32, 3],
)

ALL: tuple[Type, ...] = (
    REQUEST,
    RESPONSE,
    TEXT,
    LOWCMD,
    LOWSTATE,
    HAND_COMMAND,
    HAND_STATE,
    SPORT,
    BATTERY,
)
