"""What a G1 tells of its joints and its mode on the data channel's topics, as JSON values."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from rote.errors import PayloadError
from rote.messages import RobotState

LOWSTATE_TOPIC = "rt/lf/lowstate"
SPORT_TOPIC = "rt/lf/sportmodestate"
HAND_TOPIC = "rt/rote/hand"
"""Where a simulated robot of ours is told which hand moves its arms; others do not know it."""
MOST_MOTORS = 64


class Joints(NamedTuple):
    """The part of a lowstate that teaching needs."""

    tick_ms: int
    positions_rad: tuple[float, ...]
    velocities_rad_s: tuple[float, ...]
    accelerometer_m_s2: tuple[float, ...]
    gyroscope_rad_s: tuple[float, ...]


def encode_lowstate(state: RobotState) -> dict[str, Any]:
    """Return what a robot publishes on `LOWSTATE_TOPIC`."""
    return {
        "tick": state.time_us // 1000,
        "imu_state": {
            "accelerometer": list(state.accelerometer_m_s2),
            "gyroscope": list(state.gyroscope_rad_s),
        },
        "motor_state": [
            {"q": q, "dq": dq}
            for q, dq in zip(state.positions_rad, state.velocities_rad_s, strict=True)
        ],
    }


def decode_lowstate(data: object) -> Joints:
    """Return the joints in a message on `LOWSTATE_TOPIC`, or raise `PayloadError`."""
    try:
        motors = data["motor_state"]  # type: ignore[index] # whatever it is, it is checked here
        imu = data["imu_state"]  # type: ignore[index]
        joints = Joints(
            tick_ms=int(data["tick"]),  # type: ignore[index]
            positions_rad=_numbers([motor["q"] for motor in motors[:MOST_MOTORS]]),
            velocities_rad_s=_numbers([motor["dq"] for motor in motors[:MOST_MOTORS]]),
            accelerometer_m_s2=_numbers(imu["accelerometer"][:3]),
            gyroscope_rad_s=_numbers(imu["gyroscope"][:3]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise PayloadError(f"a lowstate that cannot be read: {error!r}") from None
    if len(joints.accelerometer_m_s2) != 3 or len(joints.gyroscope_rad_s) != 3:
        raise PayloadError("a lowstate with half an inertial sensor")
    return joints


def encode_fsm(mode: int) -> dict[str, Any]:
    """Return what a robot publishes on `SPORT_TOPIC`."""
    return {"fsm_id": mode, "fsm_mode": 0, "task_id": 0, "task_time": 0.0}


def decode_fsm(data: object) -> int:
    """Return the mode in a message on `SPORT_TOPIC`, or raise `PayloadError`."""
    mode = data.get("fsm_id") if isinstance(data, dict) else None
    if not isinstance(mode, int) or isinstance(mode, bool):
        raise PayloadError("a mode that is not a number")
    return mode


def _numbers(values: Sequence[Any]) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if not all(map(math.isfinite, numbers)):
        raise ValueError("not a number")
    return numbers
