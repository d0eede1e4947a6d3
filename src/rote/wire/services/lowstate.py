"""A robot's motors, mode and battery on the data channel's topics, as JSON.

A lowstate is read by motor slot, with any number of slots and any field missing. `select_joints`
then takes the slots of a build's joints, in the order of its columns. Temperatures are unsigned
bytes that hold signed values, two for each motor of a G1.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from rote.errors import PayloadError
from rote.messages import RobotState
from rote.model.family import Build
from rote.wire.services.lenient import describe_value, read_number, read_whole

LOWSTATE_TOPIC = "rt/lf/lowstate"
SPORT_TOPIC = "rt/lf/sportmodestate"
BMS_TOPIC = "rt/lf/bmsstate"
HAND_TOPIC = "rt/rote/hand"
"""Selects the hand that moves the arms of rote's simulated robot; other robots ignore it."""
MAX_MOTORS = 64
SLOTS = 35
"""The number of motor slots in messages of the G1 and its relatives, whatever joints they have."""
_CELLS = 13
_EMPTY_CELL_MV, _FULL_CELL_MV = 3_400, 4_150

Numbers = tuple[float, ...]
SlotValues = tuple[float | None, ...]
"""By motor slot; None if the robot does not report it."""


class Slots(NamedTuple):
    """The contents of a lowstate, by motor slot."""

    joints_rad: SlotValues
    velocities_rad_s: SlotValues
    temperatures_c: SlotValues
    """The higher of two if two are reported."""
    tick_ms: int | None = None
    """The robot's clock; None if it is not reported."""
    accelerometer_m_s2: Numbers = ()
    gyroscope_rad_s: Numbers = ()
    """Three numbers, or none if they are not reported."""
    mode_machine: int = 0
    """Which hardware it is; 0 if it is not reported."""


class JointColumns(NamedTuple):
    """The contents of a lowstate, by the columns of a build."""

    tick_ms: int | None
    joints_rad: Numbers
    velocities_rad_s: Numbers
    """Empty unless reported for every joint; the same applies to temperatures."""
    accelerometer_m_s2: Numbers
    gyroscope_rad_s: Numbers
    temperatures_c: Numbers = ()
    mode_machine: int = 0
    missing: tuple[int, ...] = ()
    """The columns without a reported position; they hold the rest position instead."""


# ---- writing ------------------------------------------------------------------------------------


def encode_lowstate(state: RobotState, *, build: Build, slots: int = SLOTS) -> dict[str, Any]:
    """Return the message that a robot publishes on `LOWSTATE_TOPIC`.

    It has `slots` motor slots, or more if a joint of the build has a higher one.
    """
    slot_count = max(slots, max(build.slots) + 1)
    motors: list[dict[str, Any]] = [{"q": 0.0, "dq": 0.0} for _ in range(slot_count)]
    columns = zip(build.slots, state.joints_rad, state.velocities_rad_s, strict=True)
    for slot, q, dq in columns:
        motors[slot] = {"q": q, "dq": dq}
    if state.temperatures_c:  # all temperatures or none
        for motor in motors:
            motor["temperature"] = [0, 0]
        temperatures = _encode_temperatures(state.temperatures_c)
        for slot, (first, second) in zip(build.slots, temperatures, strict=True):
            motors[slot]["temperature"] = [first, second]
    return {
        "mode_machine": get_machine(build),
        "tick": state.time_us // 1000,
        "imu_state": {
            "accelerometer": list(state.accelerometer_m_s2),
            "gyroscope": list(state.gyroscope_rad_s),
        },
        "motor_state": motors,
    }


def get_machine(build: Build) -> int:
    """Return the `mode_machine` that a simulated robot of a build reports; 0 if none is known."""
    return build.machines[0] if build.machines else 0


# ---- reading by slot ----------------------------------------------------------------------------


def decode_lowstate(data: object) -> Slots:
    """Return the contents of a message on `LOWSTATE_TOPIC`, or raise `PayloadError`.

    At least one position is required; any other field may be missing, null or of an odd type.
    """
    if not isinstance(data, dict):
        raise PayloadError(
            f"a lowstate must be an object with 'motor_state', not {describe_value(data)}"
        )
    motors = data.get("motor_state")
    if not isinstance(motors, list):
        raise PayloadError(
            f"'motor_state' of a lowstate must be a list of motors, not {describe_value(motors)}"
        )
    motors = motors[:MAX_MOTORS]
    positions = _read_motor_values(motors, "q")
    if positions.count(None) == len(positions):
        raise PayloadError(
            f"no motor in 'motor_state' reports its position 'q': {describe_value(motors)}"
        )
    imu = data.get("imu_state")
    machine = read_whole(data.get("mode_machine"))
    return Slots(
        joints_rad=positions,
        velocities_rad_s=_read_motor_values(motors, "dq"),
        temperatures_c=_read_temperatures(motors),
        tick_ms=_read_tick(data.get("tick")),
        accelerometer_m_s2=_read_vector(imu, "accelerometer"),
        gyroscope_rad_s=_read_vector(imu, "gyroscope"),
        mode_machine=machine if machine is not None and 0 <= machine <= 255 else 0,
    )


def _read_motor_values(motors: list[Any], key: str) -> SlotValues:
    """Return one number of each motor; quickly if all are present and numbers."""
    try:
        values = tuple([motor[key] for motor in motors])
        if {float, int}.issuperset(map(type, values)) and math.isfinite(sum(values)):
            return tuple(map(float, values))
    except (KeyError, TypeError, OverflowError):
        pass
    return tuple(
        read_number(motor.get(key)) if isinstance(motor, dict) else None for motor in motors
    )


_SIGNED = tuple(float(byte - 256 if byte >= 128 else byte) for byte in range(256))
"""The signed value of each byte. Negative numbers are valid indices too, and yield themselves."""


def _read_temperatures(motors: list[Any]) -> SlotValues:
    """Return the temperature of each motor; None if it is not reported."""
    try:  # the usual case, quickly: two bytes for each motor, as on a G1
        pairs = [motor["temperature"] for motor in motors]
        return tuple([max(_SIGNED[first], _SIGNED[second]) for first, second in pairs])
    except (KeyError, IndexError, TypeError, ValueError):
        values = [motor.get("temperature") if isinstance(motor, dict) else None for motor in motors]
        return tuple(map(_read_max_temperature, values))


def _read_max_temperature(value: object) -> float | None:
    """Return a motor's temperature, the highest of those reported; bytes hold signed values."""
    if value is None:
        return None
    values = [read_number(item) for item in (value if isinstance(value, list) else [value])]
    signed = [n - 256.0 if 128 <= n <= 255 else n for n in values if n is not None]
    return max(signed, default=None)


def _read_vector(imu: object, key: str) -> Numbers:
    """Return the three numbers under `key`; empty if one is missing or invalid."""
    value = imu.get(key) if isinstance(imu, dict) else None
    if not isinstance(value, list) or len(value) < 3:
        return ()
    values = [read_number(item) for item in value[:3]]
    return tuple(n for n in values if n is not None) if None not in values else ()


def _read_tick(value: object) -> int | None:
    """Return the robot's clock in ms; None if it is missing or too large for an exact float."""
    tick = read_number(value)
    return int(tick) if tick is not None and 0.0 <= tick < 2**53 else None


# ---- from slots to columns ----------------------------------------------------------------------


def select_joints(slots: Slots, build: Build) -> JointColumns:
    """Return the joints of a build, in the order of its columns; other slots are left out."""
    pick = _make_slot_picker(build)
    positions, missing = _fill_with_rest(pick(slots.joints_rad), build)
    return JointColumns(
        tick_ms=slots.tick_ms,
        joints_rad=positions,
        velocities_rad_s=_drop_incomplete(pick(slots.velocities_rad_s)),
        accelerometer_m_s2=slots.accelerometer_m_s2,
        gyroscope_rad_s=slots.gyroscope_rad_s,
        temperatures_c=_drop_incomplete(pick(slots.temperatures_c)),
        mode_machine=slots.mode_machine,
        missing=missing,
    )


@lru_cache(maxsize=64)
def _make_slot_picker(build: Build) -> Callable[[SlotValues], SlotValues]:
    """Return a function that picks the slots of a build from those of a message."""
    last = max(build.slots)
    # `itemgetter` returns a tuple only for two or more indices, so the first index is added again.
    get = itemgetter(*build.slots, build.slots[0])

    def pick(values: SlotValues) -> SlotValues:
        if len(values) <= last:
            values = (*values, *(None,) * (last + 1 - len(values)))
        picked: SlotValues = get(values)
        return picked[:-1]

    return pick


def _fill_with_rest(values: SlotValues, build: Build) -> tuple[Numbers, tuple[int, ...]]:
    """Replace unreported positions by the rest position; return all, and the columns replaced."""
    if None not in values:
        return values, ()  # type: ignore[return-value] # there is no None in it
    missing = tuple(column for column, q in enumerate(values) if q is None)
    pairs = zip(values, build.rest_rad, strict=True)
    return tuple(rest_q if q is None else q for q, rest_q in pairs), missing


def _drop_incomplete(values: SlotValues) -> Numbers:
    """Return the values if there is one for every joint; otherwise none of them."""
    return () if None in values else values  # type: ignore[return-value] # there is no None in it


# ---- mode and battery ---------------------------------------------------------------------------


def encode_fsm(mode: int) -> dict[str, Any]:
    """Return what a robot publishes on `SPORT_TOPIC`."""
    return {"fsm_id": mode, "fsm_mode": 0, "task_id": 0, "task_time": 0.0}


def decode_fsm(data: object) -> int:
    """Return the mode in a message on `SPORT_TOPIC`, or raise `PayloadError`."""
    value = data.get("fsm_id") if isinstance(data, dict) else None
    mode = read_whole(value)
    if mode is None:
        raise PayloadError(f"'fsm_id' must be the number of a mode, not {describe_value(value)}")
    return mode


def encode_battery(percent: float) -> dict[str, Any]:
    """Return what a simulated robot publishes on `BMS_TOPIC`; the voltages follow the charge."""
    cell_mv = round(_EMPTY_CELL_MV + (_FULL_CELL_MV - _EMPTY_CELL_MV) * percent / 100.0)
    return {
        "soc": round(percent),
        "current": -2_000,  # mA
        "cycle": 12,
        "bmsvoltage": [cell_mv * _CELLS, cell_mv * _CELLS],
        "cell_vol": [cell_mv] * _CELLS,
        "temperature": [_encode_temperature(30.0), _encode_temperature(31.0)],
    }


def decode_battery(data: object) -> float:
    """Return the charge of the battery in percent, from `BMS_TOPIC`, or raise `PayloadError`."""
    value = data.get("soc") if isinstance(data, dict) else None
    percent = read_number(value)
    if percent is None:
        raise PayloadError(f"invalid battery level 'soc': {describe_value(value)}")
    if not 0 <= percent <= 100:
        raise PayloadError(f"invalid battery level: {percent} %")
    return percent


@lru_cache(maxsize=16)
def _encode_temperatures(temperatures_c: Numbers) -> tuple[tuple[int, int], ...]:
    """Return the bytes of both sensors of each motor; the first sensor reads 2 °C less.

    The result is cached, since temperatures change slowly.
    """
    return tuple(
        (_encode_temperature(celsius - 2.0), _encode_temperature(celsius))
        for celsius in temperatures_c
    )


def _encode_temperature(celsius: float) -> int:
    """Return the unsigned byte that holds a temperature as a signed value."""
    return round(min(max(celsius, -128.0), 127.0)) & 0xFF
