"""The steps for an A1 or a Go1, by its walking controller or by its motors."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from rote.robot.quadruped.robot import A1
from rote.trial.context import StepImpossibleError, TrialContext, round_or_none
from rote.wire.a1.motors import LEG_MOTORS
from rote.wire.a1.values import HighState

LISTEN_S, POSE_S, WALK_S = 3.0, 1.5, 1.5
TILT_RAD, JOINT_RAD, SPEED_M_S = 0.2, 0.1, 0.2
"""How far the body is tilted, how far a hip is moved, and how fast the robot walks."""
HIP = 0
"""The motor of the right front hip."""
_STATES = "states"


def _require_a1(context: TrialContext) -> A1:
    robot = context.robot
    if not isinstance(robot, A1):
        raise StepImpossibleError("this robot is neither an A1 nor a Go1")
    return robot


async def record_connection(context: TrialContext) -> None:
    """Record the duration of connecting, and the robot's build, dialect and level."""
    robot, stages = _require_a1(context), context.tap.stages
    context.add_measured("connect", total_s=round_or_none(stages[-1].at_s - stages[0].at_s, 4))
    context.measured |= {
        "family": robot.build.family,
        "build": robot.build.name,
        "dialect": robot.dialect.value,
        "a1_level": robot.level.value,
        "abilities": sorted(robot.abilities),
    }


async def measure_states(context: TrialContext) -> None:
    """Receive states for `LISTEN_S` seconds; record their rates, clock and fields."""
    robot, from_s = _require_a1(context), context.now_s
    ticks: list[tuple[float, int | None]] = []
    natives: list[Any] = []

    def collect(native: Any) -> None:
        ticks.append((context.now_s, native.tick))
        natives.append(native)

    unsubscribe = robot.on_native_state(collect)
    await asyncio.sleep(LISTEN_S)
    unsubscribe()
    context.measured["topics"] = {
        topic: rate
        for topic, rate in context.recorder.measure_rates(from_s, context.now_s).items()
        if not topic.startswith("our ")
    }
    if len(natives) < 3:
        raise StepImpossibleError(f"only {len(natives)} states arrived in {LISTEN_S:g} s")
    newest = natives[-1]
    imu = newest.imu
    context.add_measured(
        "a1",
        frame_bytes=context.recorder.topics[_STATES].sizes[-1],
        damaged=context.recorder.count_messages("damaged states"),
        tick_per_s=_measure_tick_rate(ticks),
        quaternion_norm=round_or_none(float(np.linalg.norm(imu.quaternion)), 3),
        gravity_m_s2=round_or_none(float(np.linalg.norm(imu.accelerometer_m_s2)), 2),
        feet_told=bool(any(newest.foot_force)),
        motors_told=newest.motors is not None,
        battery_told=newest.bms is not None,
        serial_told=_has_serial(getattr(newest.header, "serial", 0)),
        level_flag=None if newest.header is None else newest.header.level,
        mode=newest.mode if isinstance(newest, HighState) else None,
    )
    if newest.motors is not None:
        context.add_measured("a1", hottest_c=int(newest.motors.temperature_c[:LEG_MOTORS].max()))
    if isinstance(newest, HighState):
        context.add_measured("a1", body_height_m=round_or_none(newest.body_height_m, 3))


def _has_serial(serial: int | tuple[int, ...]) -> bool:
    """Whether a serial number, which a Go1 sends in parts, is not 0."""
    return any(serial) if isinstance(serial, tuple) else bool(serial)


def _measure_tick_rate(ticks: list[tuple[float, int | None]]) -> float | None:
    """Return by how much the robot's tick grows per second; None if it does not grow.

    `ticks` are arrival times with the tick of each state.
    """
    (first_s, first), (last_s, last) = ticks[0], ticks[-1]
    if first is None or last is None or last <= first or last_s <= first_s:
        return None
    rate = (last - first) / (last_s - first_s)
    return float(f"{rate:.2g}")  # the arrival times allow no more than two digits


async def stand_up(context: TrialContext) -> None:
    """Make the robot stand; record how long that takes, and its mode and height."""
    robot, from_s = _require_a1(context), context.now_s
    await robot.modes.stand()
    took_s = context.now_s - from_s
    await asyncio.sleep(1.0)
    native = robot.native
    assert isinstance(native, HighState)
    context.add_measured(
        "a1",
        stand_mode=native.mode,
        stand_s=round_or_none(took_s, 1),
        stand_height_m=round_or_none(native.body_height_m, 2),
    )


async def turn_body(context: TrialContext) -> None:
    """Turn the body about each axis; record by how much the IMU reports that it turned."""
    robot = _require_a1(context)
    turned: dict[str, float | None] = {}
    try:
        for axis, index in (("roll", 0), ("pitch", 1), ("yaw", 2)):
            robot.pose()
            await asyncio.sleep(POSE_S / 2)
            before = robot.status()
            start = (before.roll_rad, before.pitch_rad, before.yaw_rad)[index]
            robot.pose(**{f"{axis}_rad": TILT_RAD})
            await asyncio.sleep(POSE_S)
            after = robot.status()
            end = (after.roll_rad, after.pitch_rad, after.yaw_rad)[index]
            turned[axis] = round_or_none(end - start, 2)
        robot.pose()
        await asyncio.sleep(POSE_S / 2)
    finally:
        await robot.stop()
    context.add_measured("a1", turned_rad=turned)


async def move_hip(context: TrialContext) -> None:
    """Move one hip by `JOINT_RAD` and back; record how far it moved, and its torque."""
    robot = _require_a1(context)
    native = robot.native
    if native is None or native.motors is None:
        raise StepImpossibleError("the robot does not report its joint angles")
    robot.check_wanted("control")
    start = np.array(native.motors.q_rad[:LEG_MOTORS], dtype=float)
    low, high = robot.safety.lower_rad[HIP], robot.safety.upper_rad[HIP]
    # Upwards, unless that comes close to the upper limit.
    step_rad = JOINT_RAD if start[HIP] + JOINT_RAD < high - 0.05 else -JOINT_RAD
    if not low < start[HIP] + step_rad < high:
        raise StepImpossibleError("the hip is too close to its limit")
    goal = start.copy()
    goal[HIP] += step_rad
    await robot.move_to(goal.tolist(), 1.5)
    await asyncio.sleep(0.3)
    native = robot.native
    assert native is not None
    assert native.motors is not None
    reached_rad = float(native.motors.q_rad[HIP]) - start[HIP]
    torque_nm = float(native.motors.tau_nm[HIP])
    await robot.move_to(start.tolist(), 1.5)
    context.add_measured(
        "a1",
        joint_asked_rad=step_rad,
        joint_reached_rad=round_or_none(reached_rad, 2),
        joint_torque_nm=round_or_none(torque_nm, 1),
    )


async def walk_briefly(context: TrialContext) -> None:
    """Walk for `WALK_S` seconds; record the speed, the distance and the time to stop."""
    robot = _require_a1(context)
    native = robot.native
    assert isinstance(native, HighState)
    if native.body_height_m < 0.15:
        raise StepImpossibleError("the robot does not stand: let it stand up first")
    start = native.position_m
    speeds_m_s: list[float] = []
    unsubscribe = robot.on_native_state(
        lambda state: (
            speeds_m_s.append(state.velocity_m_s[0]) if isinstance(state, HighState) else None
        )
    )
    try:
        robot.walk(SPEED_M_S)
        await asyncio.sleep(WALK_S)
    finally:
        unsubscribe()
        stopped_s = context.now_s
        await robot.stop()
    while context.now_s < stopped_s + 3.0:
        await asyncio.sleep(0.05)
        native = robot.native
        assert isinstance(native, HighState)
        if abs(native.velocity_m_s[0]) < 0.03:
            break
    stands_s = context.now_s - stopped_s
    end = native.position_m
    # The first half of the walk is left out, because the robot accelerates in it.
    steady_m_s = speeds_m_s[len(speeds_m_s) // 2 :]
    context.add_measured(
        "a1",
        walk_speed_m_s=round_or_none(float(np.median(steady_m_s)), 2) if steady_m_s else None,
        walk_moved_m=round_or_none(float(np.hypot(end[0] - start[0], end[1] - start[1])), 2),
        walk_stop_s=round_or_none(stands_s, 1),
    )


A1_STEPS: dict[str, Callable[[TrialContext], Awaitable[None]]] = {
    "a1-connect": record_connection,
    "a1-listen": measure_states,
    "a1-stand": stand_up,
    "a1-pose": turn_body,
    "a1-joint": move_hip,
    "a1-walk": walk_briefly,
}
