"""The robot's state in teaching frames: the documented layout of 12 joints, and all of them."""

import math
import struct
from functools import cache

from rote import messages as m
from rote.errors import BadRequestError, PayloadError
from rote.wire.teaching.fields import BY_KEY, LEGACY_JOINTS, MODE_FLAGS, compile_fields

MAX_JOINTS = 1000
_LEGACY_STATE = compile_fields(BY_KEY["state"].fields)
_BITS = {bits.name: bits for bits in MODE_FLAGS}
_SOFT, _RECORDING = _BITS["damping"].mask, _BITS["recording"].mask
_STOPPED, _MODE_KNOWN = _BITS["stopped_early"].mask, _BITS["mode_known"].mask
_PHASE_SHIFT, _MODE_SHIFT = _BITS["phase"].low, _BITS["mode"].low
_PHASES = tuple(m.Phase)
UNKNOWN_MODE = -1


@cache
def _make_state_struct(count: int) -> struct.Struct:
    return compile_fields(BY_KEY["state-all"].fields, count)


_BYTES_WITHOUT_JOINTS = _make_state_struct(0).size
_BYTES_PER_JOINT = _make_state_struct(1).size - _BYTES_WITHOUT_JOINTS


def encode_state(state: m.RobotState, *, all_joints: bool) -> bytes:
    """Return the payload of a state frame, in the layout with all joints or with the first 12."""
    joint_count = len(state.joints_rad)
    if len(state.velocities_rad_s) != joint_count:
        raise BadRequestError(
            f"the state has {joint_count} joints but {len(state.velocities_rad_s)} velocities"
        )
    count = joint_count if all_joints else LEGACY_JOINTS
    floats = (
        *_pad_values(state.joints_rad, count),
        *_pad_values(state.velocities_rad_s, count),
        *state.accelerometer_m_s2,
        *state.gyroscope_rad_s,
        *state.foot_force_n,
    )
    if not math.isfinite(sum(floats)):  # a sum is finite only if every term is
        raise BadRequestError("the state contains a non-finite value")
    try:
        if all_joints:
            layout = _make_state_struct(count)
            return layout.pack(_pack_flags(state), count, 0, *floats, state.time_us)
        return _LEGACY_STATE.pack(_pack_flags(state), *floats, state.time_us)
    except (struct.error, OverflowError) as error:
        raise BadRequestError(f"this state cannot be written: {error}") from None


def _pad_values(values: tuple[float, ...], count: int) -> tuple[float, ...]:
    """Return the first `count` values, padded with zeros if the robot has fewer joints."""
    return values[:count] if len(values) >= count else (*values, *(0.0,) * (count - len(values)))


def decode_state(payload: bytes) -> m.RobotState:
    """Return the state in either layout, recognised by its length; raises `PayloadError`."""
    size = len(payload)
    if size == _LEGACY_STATE.size:
        return _make_state(_LEGACY_STATE.unpack(payload), 1, LEGACY_JOINTS)
    count, surplus = divmod(size - _BYTES_WITHOUT_JOINTS, _BYTES_PER_JOINT)
    if not 0 <= count <= MAX_JOINTS or surplus:
        raise _make_size_error(payload)
    values = _make_state_struct(count).unpack(payload)
    stated_count, reserved = values[1:3]
    if stated_count != count or reserved:
        raise _make_size_error(payload)
    return _make_state(values, 3, count)


def _make_size_error(payload: bytes) -> PayloadError:
    # The stated number of joints follows the flags.
    joints = f" for {int.from_bytes(payload[4:6], 'big')} joints" if len(payload) >= 8 else ""
    return PayloadError(f"a state cannot have {len(payload)} bytes{joints}")


def _pack_flags(state: m.RobotState) -> int:
    """Return the mode flags of a state; a flag that is False multiplies its mask by 0."""
    known = state.mode != UNKNOWN_MODE
    return (
        _SOFT * state.arms_soft
        | _RECORDING * state.recording
        | state.phase << _PHASE_SHIFT
        | _STOPPED * state.stopped_early
        | _MODE_KNOWN * known
        | (state.mode if known else 0) << _MODE_SHIFT
    )


def _make_state(values: tuple[float, ...], begin: int, count: int) -> m.RobotState:
    """Return the state with the values of a payload.

    The mode flags are first, the positions of `count` joints begin at index `begin`, and the time
    is last.
    """
    require_finite(values, "a state")
    flags, time_us = int(values[0]), int(values[-1])
    velocities, end = begin + count, begin + 2 * count  # where they begin and end
    return m.RobotState(
        mode=flags >> _MODE_SHIFT if flags & _MODE_KNOWN else UNKNOWN_MODE,
        arms_soft=bool(flags & _SOFT),
        recording=bool(flags & _RECORDING),
        phase=_PHASES[flags >> _PHASE_SHIFT & 0b11],
        stopped_early=bool(flags & _STOPPED),
        joints_rad=values[begin:velocities],
        velocities_rad_s=values[velocities:end],
        accelerometer_m_s2=values[end : end + 3],
        gyroscope_rad_s=values[end + 3 : end + 6],
        foot_force_n=values[end + 6 : end + 10],
        time_us=time_us,
    )


def require_finite(values: tuple[float, ...], what: str) -> tuple[float, ...]:
    """Return the values; raise `PayloadError`, which calls them `what`, if one is not finite."""
    # A sum is finite only if every term is; float32 values cannot overflow a double.
    if not math.isfinite(sum(values)):
        raise PayloadError(f"{what} contains a non-finite value")
    return values
