"""What a G1 tells of its joints, its mode and its battery on the data channel's topics, as JSON.

Temperatures are said as unsigned bytes that hold signed values, two for each motor of a G1.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from rote.errors import PayloadError
from rote.messages import RobotState

LOWSTATE_TOPIC = "rt/lf/lowstate"
SPORT_TOPIC = "rt/lf/sportmodestate"
BMS_TOPIC = "rt/lf/bmsstate"
HAND_TOPIC = "rt/rote/hand"
"""Where a simulated robot of ours is told which hand moves its arms; others do not know it."""
MOST_MOTORS = 64
MACHINES: dict[int, int] = {4: 23, 5: 29, 6: 27}
"""The joints of a G1 by its `mode_machine`, the byte that says which hardware it is."""
_CELLS = 13
_CELL_MV = (3_400, 4_150)
"""A lithium cell, empty and full; between them its voltage is taken for a straight line."""


class Joints(NamedTuple):
    """The part of a lowstate that teaching needs."""

    tick_ms: int
    positions_rad: tuple[float, ...]
    velocities_rad_s: tuple[float, ...]
    accelerometer_m_s2: tuple[float, ...]
    gyroscope_rad_s: tuple[float, ...]
    temperatures_c: tuple[float, ...] = ()
    """Of the motors, the hotter of two where two are told; empty where none are."""
    mode_machine: int = 0
    """See `MACHINES`; 0 where it is not told."""


def encode_lowstate(state: RobotState, *, mode_machine: int = 5) -> dict[str, Any]:
    """Return what a robot publishes on `LOWSTATE_TOPIC`."""
    motors: list[dict[str, Any]] = [
        {"q": q, "dq": dq}
        for q, dq in zip(state.positions_rad, state.velocities_rad_s, strict=True)
    ]
    # Without a temperature for each motor there are none.
    for motor, celsius in zip(motors, state.temperatures_c, strict=bool(state.temperatures_c)):
        motor["temperature"] = [_byte(celsius - 2.0), _byte(celsius)]
    return {
        "mode_machine": mode_machine,
        "tick": state.time_us // 1000,
        "imu_state": {
            "accelerometer": list(state.accelerometer_m_s2),
            "gyroscope": list(state.gyroscope_rad_s),
        },
        "motor_state": motors,
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
            temperatures_c=_temperatures(motors[:MOST_MOTORS]),
            mode_machine=int(data.get("mode_machine", 0)),  # type: ignore[attr-defined]
        )
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
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


def encode_battery(percent: float) -> dict[str, Any]:
    """Return what a robot publishes on `BMS_TOPIC`."""
    empty_mv, full_mv = _CELL_MV
    cell_mv = round(empty_mv + (full_mv - empty_mv) * percent / 100.0)
    return {
        "soc": round(percent),
        "current": -2_000,
        "cycle": 12,
        "bmsvoltage": [cell_mv * _CELLS, cell_mv * _CELLS],
        "cell_vol": [cell_mv] * _CELLS,
        "temperature": [_byte(30.0), _byte(31.0)],
    }


def decode_battery(data: object) -> float:
    """Return how full the battery is in percent, from `BMS_TOPIC`, or raise `PayloadError`."""
    percent = data.get("soc") if isinstance(data, dict) else None
    if not isinstance(percent, int | float) or isinstance(percent, bool):
        raise PayloadError("a battery that does not say how full it is")
    if not 0 <= percent <= 100:
        raise PayloadError(f"a battery that is full to {percent} %")
    return float(percent)


def _byte(celsius: float) -> int:
    return round(min(max(celsius, -128.0), 127.0)) & 0xFF


def _temperatures(motors: Sequence[Any]) -> tuple[float, ...]:
    said = [motor["temperature"] for motor in motors if "temperature" in motor]
    if len(said) != len(motors):
        return ()
    pairs = [_numbers(one) if isinstance(one, list) else _numbers([one]) for one in said]
    return tuple(max(n - 256.0 if 128 <= n <= 255 else n for n in pair) for pair in pairs)


def _numbers(values: Sequence[Any]) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if not all(map(math.isfinite, numbers)):
        raise ValueError("not a number")
    return numbers
