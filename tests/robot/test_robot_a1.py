"""An A1: walking in SI units, motors under guard, legs taught by hand and played."""

import asyncio
import math
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import virtual
from a1_hand import Hand
from a1_rig import LoggedWorld, is_damping, pair
from rote.connection import connect, connect_a1
from rote.errors import (
    BadRequestError,
    PeerLostError,
    ProtectionError,
    RefusedError,
    RoteError,
    TimeLimitError,
    UnsafeMotionError,
    UnsupportedError,
)
from rote.findings import FindingKind
from rote.messages import Code, Phase
from rote.model.a1 import A1 as A1_FAMILY
from rote.model.a1 import A1 as A1_VARIANT
from rote.model.a1 import A1_BUILD, A1_JOINTS, KD_NM_S_RAD, KP_NM_RAD
from rote.motion.files.library import Library
from rote.motion.record import Recorder
from rote.motion.track import Track
from rote.robot.quadruped import commands as a1_commands
from rote.robot.quadruped import motion as a1_motion
from rote.robot.quadruped.commands import Gait, format_mode
from rote.robot.quadruped.robot import A1
from rote.robot.quadruped.safety import A1SafetyLimits, Safety
from rote.session.a1 import Level
from rote.sim.quadruped.hands import A1Hand
from rote.sim.quadruped.simulator import A1Simulator
from rote.transport.a1 import client as a1_client
from rote.wire.a1.codec import decode
from rote.wire.a1.motors import LEG_MOTORS, MotorCmd, MotorCmds, MotorState, MotorStates
from rote.wire.a1.values import (
    SOFT_STOP,
    Dialect,
    HighCmd,
    LowCmd,
    LowState,
    Remote,
    ScaledHighCmd,
)

STAND = [0.0, 0.8, -1.6] * 4
SERVO = MotorCmds.servo(q_rad=STAND, dq_rad_s=0.0, kp_nm_rad=20.0, kd_nm_s_rad=1.0)


def swing(seconds: float = 1.0, rate_hz: float = 100.0) -> Track:
    times = np.arange(int(seconds * rate_hz) + 1) / rate_hz
    poses = np.tile(STAND, (len(times), 1))
    poses[:, 1] += 0.2 * np.sin(2 * np.pi * times / seconds)
    return Track(
        times_s=times, joints_rad=poses, names=A1_VARIANT.names, variant="a1", source="swing"
    )


# ---- in SI units --------------------------------------------------------------------------------


def test_dialect_3_2_gets_shares_of_the_most() -> None:
    asked = a1_commands.walk_command(Dialect.A1_3_2, (0.5, -0.2, math.pi / 3), body_height_m=0.05)
    assert asked == ScaledHighCmd(mode=2, forward=0.5, left=-0.5, turn=0.5, body_height=0.5)
    back = a1_commands.walk_command(Dialect.A1_3_2, (-0.35, 0.0, 0.0))
    assert isinstance(back, ScaledHighCmd)
    assert back.forward == pytest.approx(-0.5)
    posed = a1_commands.pose_command(Dialect.A1_3_2, roll_rad=0.1, pitch_rad=0.2, yaw_rad=0.3)
    assert posed == ScaledHighCmd(mode=1, roll_rad=0.1, pitch_rad=0.2, yaw_rad=0.3)
    assert a1_commands.mode_command(Dialect.A1_3_2, a1_commands.HighMode.IDLE) == ScaledHighCmd()


def test_later_dialects_get_si_units() -> None:
    asked = a1_commands.walk_command(
        Dialect.GO1, (0.5, -0.2, 1.0), gait=Gait.RUN, foot_raise_m=0.02
    )
    assert asked == HighCmd(
        mode=2, gait=2, velocity_m_s=(0.5, -0.2), yaw_speed_rad_s=1.0, foot_raise_height_m=0.02
    )
    assert a1_commands.pose_command(Dialect.A1_3_3, roll_rad=0.1) == HighCmd(
        mode=1, euler_rad=(0.1, 0, 0)
    )


def test_what_a_dialect_has_no_word_for_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="lie down"):
        a1_commands.mode_command(Dialect.A1_3_2, a1_commands.HighMode.LIE_DOWN)
    with pytest.raises(UnsupportedError, match="gait"):
        a1_commands.walk_command(Dialect.A1_3_2, (0.1, 0.0, 0.0), gait=Gait.STAIRS)


@pytest.mark.parametrize("velocity", [(1.1, 0, 0), (-0.8, 0, 0), (0, 0.5, 0), (0, 0, 2.2),
                                      (math.nan, 0, 0)])  # fmt: skip
def test_a_speed_out_of_range_is_refused(velocity: tuple[float, float, float]) -> None:
    with pytest.raises(BadRequestError, match="is out of range"):
        a1_commands.walk_command(Dialect.A1_3_3_4, velocity)


def test_it_walks_stands_lies_and_gets_up() -> None:
    async def main() -> None:
        async with pair() as (world, _, robot):
            assert "walk" in robot.abilities
            robot.walk(0.3, body_height_m=-0.02)
            await asyncio.sleep(0.5)
            assert robot.status().mode == "walk"
            robot.modes.lie_down()
            await asyncio.sleep(2.5)
            lying = robot.status().height_m
            await robot.modes.get_up()
            await asyncio.sleep(1.5)
            standing = robot.status().height_m
            assert lying is not None
            assert standing is not None
            assert lying < 0.15
            assert standing > 0.25
            robot.modes.damp()
            await asyncio.sleep(0.1)
            assert is_damping(world.newest)
            with pytest.raises(ProtectionError, match="damping was requested"):
                robot.modes.stand()
            await robot.stop()
            await asyncio.sleep(0.1)
            assert is_damping(world.newest), "a stop does not end damping"

    virtual.run(main())


def test_a_robot_that_cannot_get_up_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rote.robot.quadruped.modes._GET_UP_TIMEOUT_S", 0.3)

    async def main() -> None:
        async with pair(start="lie") as (world, _, robot):
            world.walker.follow = lambda goal: None  # type: ignore[method-assign]
            with pytest.raises(TimeLimitError, match="did not get up"):
                await robot.modes.get_up()

    virtual.run(main())


def test_each_level_refuses_what_the_other_does() -> None:
    async def main() -> None:
        async with pair() as (_, _, robot):
            for ask in (robot.control(lambda *_: None), robot.move_to(STAND)):
                with pytest.raises(UnsupportedError, match="high level"):
                    await ask
            with pytest.raises(UnsupportedError):
                robot.set_motors(SERVO)
            with pytest.raises(UnsupportedError):
                robot.teach("sit")
        async with pair(Level.LOW) as (_, _, robot):
            with pytest.raises(UnsupportedError, match="low level") as raised:
                robot.walk(0.1)
            assert "level=high" in raised.value.remedy
            assert "teach" in robot.abilities

    virtual.run(main())


def test_a_walking_robot_says_itself_how_motions_are_streamed_to_it() -> None:
    async def main() -> None:
        async with pair(Level.HIGH) as (_, _, robot):
            with pytest.raises(UnsupportedError, match="high level") as caught:
                robot.check_streamable()
            assert "lie or hang" in caught.value.remedy
            assert "level=low" in caught.value.remedy
        async with pair(Level.LOW, start="hung") as (_, _, robot):
            robot.check_streamable()

    virtual.run(main())


def test_states_are_streamed_until_the_robot_is_lost() -> None:
    async def main() -> None:
        async with pair(Level.LOW) as (world, _, robot):
            seen = 0
            with pytest.raises(PeerLostError):
                async for state in robot.native_states():
                    assert isinstance(state, LowState)
                    seen += 1
                    if seen == 20:
                        world.health.silent = True
            assert seen == 20
            assert robot.status().trouble
        assert format_mode(99) == "mode 99"

    virtual.run(main())


def test_connect_takes_the_url_of_an_a1() -> None:
    async def main() -> None:
        async with pair() as (_, simulator, _):
            async with connect(simulator.url(Level.LOW) + "&sender=loop") as robot:
                assert robot.level is Level.LOW  # type: ignore[attr-defined]
        with pytest.raises(BadRequestError, match="key"):
            async with connect("a1://dog", key="00"):
                pass

    virtual.run(main())


# ---- motors -------------------------------------------------------------------------------------


def test_a_control_function_drives_the_motors_until_it_is_done_and_they_hold() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            seen: list[tuple[LowState, float]] = []

            def step(state: LowState, time_s: float) -> MotorCmds | LowCmd | None:
                seen.append((state, time_s))
                if time_s > 0.2:
                    return None
                return LowCmd(motors=SERVO) if time_s > 0.1 else SERVO

            stats = await robot.control(step)
            assert stats.rate_hz == pytest.approx(500.0, rel=0.02)
            assert len(seen) == stats.ticks
            await asyncio.sleep(0.6)
            assert isinstance(world.newest, LowCmd)
            assert world.newest.motors == SERVO
            assert not robot.trouble
            await robot.move_to([0.1, 0.9, -1.5] * 4, seconds=0.5)
            await asyncio.sleep(0.3)
            joints = robot.status().joints_rad
            assert joints == pytest.approx([0.1, 0.9, -1.5] * 4, abs=0.12)

    virtual.run(main())


def bug(state: LowState, time_s: float) -> MotorCmds:
    raise ZeroDivisionError("in the user's function")


@pytest.mark.parametrize(
    ("step", "error", "words"),
    [
        (bug, ZeroDivisionError, "user's"),
        (lambda *_: MotorCmds.servo(tau_nm=50.0), ProtectionError, "torque of 50"),
        (lambda *_: MotorCmds.servo(tau_nm=200.0), ProtectionError, "200"),
        (lambda *_: MotorCmds.servo(q_rad=math.nan), ProtectionError, "nan"),
        (lambda *_: "forward", TypeError, "must return MotorCmds"),
    ],
)
def test_a_function_that_fails_ends_in_damping(step, error, words) -> None:  # type: ignore[no-untyped-def]
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            robot.set_motors(SERVO)
            await asyncio.sleep(0.1)
            with pytest.raises(error, match=words):
                await robot.control(step)
            await asyncio.sleep(0.05)
            assert world.damped_for_s() > 0.04
            with pytest.raises(ProtectionError):
                robot.set_motors(SERVO)
            robot.arm()
            robot.set_motors(SERVO)
            await asyncio.sleep(0.05)
            assert not is_damping(world.newest)

    virtual.run(main())


def test_closing_right_after_a_trip_still_damps_for_a_second() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            with pytest.raises(ZeroDivisionError):
                await robot.control(bug)
            await robot.close()
            assert world.damped_for_s() > 0.95

    virtual.run(main())


def test_a_protection_trips_while_a_function_drives() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):

            def step(state: LowState, time_s: float) -> MotorCmds:
                if time_s > 0.2:
                    world.health.overheat_motor(4)
                return SERVO

            with pytest.raises(ProtectionError, match="temperature"):
                await robot.control(step)
            assert isinstance(robot.trouble, ProtectionError)
            assert robot.trouble.protection == "temperature", "what tripped is told later, too"
            await asyncio.sleep(1.2)
            assert world.damped_for_s() > 1.0

    virtual.run(main())


def test_a_lost_robot_is_reported_beside_a_hot_motor() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            world.health.overheat_motor(4)
            await asyncio.sleep(0.2)
            assert [each.kind for each in await robot.preflight()] == [FindingKind.TEMPERATURE]
            world.health.silent = True
            await asyncio.sleep(2.0)
            kinds = [each.kind for each in await robot.preflight()]
            assert kinds == [FindingKind.TEMPERATURE, FindingKind.FAULT]

    virtual.run(main())


def test_a_dead_robot_ends_the_control_in_damping() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):

            def step(state: LowState, time_s: float) -> MotorCmds:
                if time_s > 0.2:
                    world.health.silent = True
                return SERVO

            with pytest.raises(ProtectionError, match="stale"):
                await robot.control(step)
            assert isinstance(robot.trouble, ProtectionError)
            await asyncio.sleep(1.2)
            assert world.damped_for_s() > 1.0

    virtual.run(main())


def test_a_held_pose_is_watched_too() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            robot.set_motors(SERVO)
            await asyncio.sleep(0.1)
            world.health.overheat_motor(1)
            await asyncio.sleep(0.3)
            assert isinstance(robot.trouble, ProtectionError)
            assert is_damping(world.newest)

    virtual.run(main())


async def press_l2_and_b(world: LoggedWorld) -> None:
    world.remote = Remote(SOFT_STOP)
    await asyncio.sleep(0.3)
    world.remote = Remote()


@pytest.mark.parametrize("drive", ["playing", "holding"])
def test_legs_do_not_go_on_after_l2_and_b_were_pressed_and_released(drive: str) -> None:
    async def story() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            playing = robot.play_track(swing(0.5))
            if drive == "playing":
                while playing.phase is not Phase.PLAYING:
                    await asyncio.sleep(0.05)
            else:
                await playing.wait()
            await press_l2_and_b(world)
            assert str(robot.trouble) == (
                "the remote protection tripped: L2+B is pressed on the remote, so the legs go limp"
            )
            with suppress(ProtectionError):
                await playing.wait()
            told = len(world.told)
            await asyncio.sleep(0.5)
            assert all(is_damping(command) for _, command in world.told[told:])
            with pytest.raises(ProtectionError, match="remote"):
                robot.set_motors(SERVO)
            robot.arm()
            robot.set_motors(SERVO)

    virtual.run(story())


def test_a_robot_does_not_walk_on_after_l2_and_b_were_pressed_and_released() -> None:
    async def story() -> None:
        async with pair() as (world, _, robot):
            robot.walk(0.3)
            await asyncio.sleep(0.5)
            await press_l2_and_b(world)
            told = len(world.told)
            await asyncio.sleep(0.5)
            assert all(is_damping(command) for _, command in world.told[told:])
            with pytest.raises(ProtectionError, match="remote"):
                robot.walk(0.3)

    virtual.run(story())


def test_legs_that_are_taught_are_not_driven() -> None:
    async def set_motors(robot: A1) -> None:
        robot.set_motors(SERVO)

    async def play(robot: A1) -> None:
        await robot.play_track(swing())

    async def move(robot: A1) -> None:
        await robot.move_to(STAND)

    async def control(robot: A1) -> None:
        await robot.control(lambda *_: SERVO)

    async def teach(robot: A1) -> None:
        async with robot.teach("other"):
            pass

    async def story() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            async with robot.teach("wave"):
                await asyncio.sleep(0.3)
                for drive in (set_motors, play, move, control, teach):
                    with pytest.raises(BadRequestError, match="the legs are being taught"):
                        await drive(robot)
                    await asyncio.sleep(0.1)
                    newest = world.newest
                    assert isinstance(newest, LowCmd)
                    assert not is_damping(newest)
                    assert (newest.motors.kp_nm_rad[:LEG_MOTORS] == 0.0).all()
            await robot.play_track(swing(0.5))

    virtual.run(story())


def test_l2_and_b_end_a_teaching() -> None:
    async def story() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            with pytest.raises(ProtectionError, match="remote"):
                async with robot.teach("wave"):
                    await asyncio.sleep(0.3)
                    world.remote = Remote(SOFT_STOP)
                    await asyncio.sleep(5.0)
            world.remote = Remote()
            told = len(world.told) + 1  # one may have been sent before the trip
            await asyncio.sleep(0.3)
            assert all(is_damping(command) for _, command in world.told[told:])

    virtual.run(story())


def test_stop_ends_a_control_and_only_one_may_drive() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            running = asyncio.create_task(robot.control(lambda *_: SERVO))
            await asyncio.sleep(0.2)
            with pytest.raises(BadRequestError, match="drives the motors"):
                robot.set_motors(SERVO)
            await robot.stop()
            await robot.stop()
            await running
            await asyncio.sleep(0.7)
            assert not is_damping(world.newest), "the position is held"
            cancelled = asyncio.create_task(robot.control(lambda *_: SERVO))
            await asyncio.sleep(0.1)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            await asyncio.sleep(0.05)
            assert is_damping(world.newest)
            with pytest.raises(BadRequestError, match="period"):
                await robot.control(lambda *_: None, period_s=0.05)

    virtual.run(main())


@pytest.mark.parametrize("pose", [[0.0] * 11, [math.nan] * 12, [2.0, *STAND[1:]]])
def test_a_pose_that_is_none_is_refused(pose: list[float]) -> None:
    async def main() -> None:
        async with pair(Level.LOW) as (_, _, robot):
            with pytest.raises(BadRequestError):
                await robot.move_to(pose)

    virtual.run(main())


@pytest.mark.parametrize("seconds", [0.0, -1.0, 0.02, 601.0, math.nan])
def test_a_move_in_a_time_that_is_none_or_too_short_is_refused(seconds: float) -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            await asyncio.sleep(0.1)
            before = len(world.told)
            with pytest.raises(BadRequestError, match="a move"):
                async with asyncio.timeout(2.0):
                    await robot.move_to([0.3, 0.8, -1.6] * 4, seconds=seconds)
            await asyncio.sleep(0.1)
            assert all(is_damping(told) for _, told in world.told[before:])

    virtual.run(main())


def test_a_robot_that_was_armed_again_has_forgotten_what_tripped() -> None:
    strong = MotorStates.of(MotorState(q_rad=q, dq_rad_s=20.0, tau_nm=30.0) for q in STAND)

    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            await robot.move_to(STAND)
            for _ in range(10):
                with suppress(ProtectionError):
                    robot.safety.check(LowState(motors=strong))
            robot.modes.damp()
            robot.arm()
            robot.set_motors(SERVO)
            await asyncio.sleep(0.1)
            assert robot.trouble is None
            assert not is_damping(world.newest)

    virtual.run(main())


def test_a_stop_after_a_robot_was_armed_again_leaves_its_legs_limp() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            robot.set_motors(SERVO)
            await asyncio.sleep(0.1)
            robot.modes.damp()
            robot.arm()
            await asyncio.sleep(0.1)
            limp = world.newest
            await robot.stop()
            await asyncio.sleep(0.1)
            assert world.newest == limp

    virtual.run(main())


class BlockedStep:
    """A control function that answers once, and then waits for what does not come."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self._is_first = True

    def __call__(self, state: LowState, time_s: float) -> MotorCmds:
        if not self._is_first:
            self.release.wait(30)
        self._is_first = False
        return SERVO


def test_a_blocked_control_function_ends_in_damping_within_20_ms() -> None:
    """In real time: the function blocks its own thread, and the sending process goes on."""

    async def main() -> None:
        async with pair(Level.LOW, start="hung", sender="process") as (world, _, robot):
            for _ in range(20):
                step = BlockedStep()
                world.told.clear()
                with pytest.raises(ProtectionError) as raised:
                    await robot.control(step)
                step.release.set()
                count = len(world.told)
                while len(world.told) < count + 20:
                    await asyncio.sleep(0.01)
                assert is_damping(world.newest)
                # By the sender's clock: one datagram every 2 ms, none made up for.
                held = [c for _, c in world.told if isinstance(c, LowCmd) and c.motors == SERVO]
                assert len(held) <= 10
                robot.arm()
                # On a busy machine the robot may not have been heard in time, which trips as well.
                if raised.value.protection == "control" and held:
                    return
        raise AssertionError("it never was the function that was waited for")

    asyncio.run(main())


# ---- stop ---------------------------------------------------------------------------------------

FAR = MotorCmds.servo(q_rad=[0.0, 1.6, -1.6] * 4, dq_rad_s=0.0, kp_nm_rad=10.0, kd_nm_s_rad=4.0)
TURN = MotorCmds.servo(dq_rad_s=1.0, kd_nm_s_rad=4.0)
PUSH = MotorCmds.servo(tau_nm=3.0, dq_rad_s=0.0, kd_nm_s_rad=2.0)
DRIFT = MotorCmds.servo(q_rad=STAND, dq_rad_s=1.0, kp_nm_rad=20.0, kd_nm_s_rad=20.0)


@pytest.mark.each_once("motors", "is_controlled")
@pytest.mark.parametrize("is_controlled", [False, True])
@pytest.mark.parametrize("motors", [FAR, TURN, PUSH, DRIFT])
def test_a_stop_stops_the_legs_whatever_drives_them(motors: MotorCmds, is_controlled: bool) -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            await robot.move_to(STAND)
            await asyncio.sleep(0.5)
            running = None
            if is_controlled:
                running = asyncio.create_task(robot.control(lambda *_: motors))
            else:
                robot.set_motors(motors)
            async with asyncio.timeout(1.0):
                while world.body.dq_rad_s[1] < 0.2:
                    await asyncio.sleep(0.002)
            await robot.stop()
            at_rad = world.body.q_rad[1]
            await asyncio.sleep(0.1)
            fastest_rad_s, furthest_rad = 0.0, at_rad
            for _ in range(300):
                await asyncio.sleep(0.002)
                fastest_rad_s = max(fastest_rad_s, world.body.dq_rad_s[1])
                furthest_rad = max(furthest_rad, world.body.q_rad[1])
            assert furthest_rad - at_rad < 0.02, "it does not go on in its direction"
            assert fastest_rad_s < 0.05
            assert robot.trouble is None
            if running is not None:
                await running
            assert is_damping(world.newest) == (motors in (TURN, PUSH))

    virtual.run(main())


def test_a_stop_brakes_the_motors_without_a_position_and_holds_the_others() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            await robot.move_to(STAND)
            mixed = [*SERVO][:LEG_MOTORS]
            mixed[1] = MotorCmd(dq_rad_s=0.5, kd_nm_s_rad=4.0)
            mixed[2] = MotorCmd(q_rad=-1.6, tau_nm=1.0)
            robot.set_motors(MotorCmds.of(mixed))
            await asyncio.sleep(0.1)
            measured = robot.state.joints_rad if robot.state is not None else ()
            await robot.stop()
            await asyncio.sleep(0.02)
            assert isinstance(world.newest, LowCmd)
            held = [*world.newest.motors][:LEG_MOTORS]
            assert [motor.mode for motor in held] == [10, 0, 0, *[10] * 9]
            assert held[0].q_rad == pytest.approx(measured[0], abs=1e-3)
            assert (held[0].kp_nm_rad, held[0].kd_nm_s_rad) == (20.0, KD_NM_S_RAD)

    virtual.run(main())


def test_a_repeated_stop_does_not_let_the_legs_sag_further() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            await robot.move_to([0.0, 1.2, -1.6] * 4)
            await asyncio.sleep(0.5)
            await robot.stop()
            await asyncio.sleep(0.3)
            held = world.newest
            for _ in range(3):
                await robot.stop()
                await asyncio.sleep(0.1)
            assert world.newest == held
            running = asyncio.create_task(robot.control(lambda *_: FAR))
            await asyncio.sleep(0.1)
            await robot.stop()
            await running
            await asyncio.sleep(0.05)
            held = world.newest
            await robot.stop()
            await asyncio.sleep(0.05)
            assert world.newest == held

    virtual.run(main())


def test_a_stop_after_a_control_that_gave_no_command_ends_the_command_before_it() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            await robot.move_to(STAND)
            robot.set_motors(TURN)
            await robot.control(lambda *_: None)
            await asyncio.sleep(0.02)
            assert not is_damping(world.newest)
            await robot.stop()
            await asyncio.sleep(0.05)
            assert is_damping(world.newest)

    virtual.run(main())


def test_what_was_requested_before_a_stop_does_not_begin_after_it() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            before = len(world.told)
            playing = robot.play_track(swing(1.0))
            await robot.stop()
            with pytest.raises(RefusedError) as raised:
                await playing
            assert raised.value.code == Code.SUPERSEDED
            running = asyncio.create_task(robot.control(lambda *_: SERVO))
            await asyncio.sleep(0)  # it waits for a new state of the robot
            await robot.stop()
            with pytest.raises(RefusedError):
                await asyncio.wait_for(running, 1.0)
            await asyncio.sleep(0.1)
            assert all(is_damping(told) for _, told in world.told[before:])
            assert (await robot.play_track(swing(0.5))).completed, "a later one may"

    virtual.run(main())


# ---- teaching and playing -----------------------------------------------------------------------


def test_legs_are_soft_while_taught_and_what_was_shown_is_played(tmp_path: Path) -> None:
    async def main() -> None:
        library = Library(tmp_path)
        safety = Safety(limits=A1SafetyLimits(margin_rad=0.0))
        async with pair(Level.LOW, start="hung", safety=safety) as (world, _, robot):
            await asyncio.sleep(0.3)
            world.attach(Hand(np.array(robot.status().joints_rad)))
            async with robot.teach("sit", library=library) as take:
                await asyncio.sleep(0.05)
                assert isinstance(world.newest, LowCmd)
                assert (world.newest.motors.kp_nm_rad[:12] == 0).all()
                assert not is_damping(world.newest)
                await asyncio.sleep(1.0)
            world.attach(None)
            await asyncio.sleep(0.05)
            assert is_damping(world.newest)
            track = take.track
            assert track.variant == "a1"
            assert track.names == A1_VARIANT.names
            assert track.duration_s == pytest.approx(1.05, abs=0.1)
            assert track.rate_hz == pytest.approx(500.0, rel=0.05)
            assert np.ptp(track.joints_rad[:, 1]) > 0.1, "the hand moved a thigh"
            assert take.file is not None
            assert library.load("sit").joints_rad.shape == track.joints_rad.shape
            report = await robot.play_track(track)
            assert report.completed
            assert report.rate_hz == pytest.approx(500.0, rel=0.05)
            await asyncio.sleep(0.3)
            joints = np.array(robot.status().joints_rad)
            assert np.abs(joints - track.joints_rad[-1]).max() < 0.25

    virtual.run(main())


def test_a_playback_begins_softly_from_where_the_legs_are() -> None:
    motion = a1_motion.prepare(swing(), Safety(), [0.0, 1.2, -2.2] * 4)
    speeds = np.abs(np.diff(motion.poses_rad[: motion.approach + 1], axis=0)) * a1_motion.RATE_HZ
    assert speeds.max() <= A1_FAMILY.soft_rad_s + 1e-6
    assert motion.poses_rad[0] == pytest.approx([0.0, 1.2, -2.2] * 4)
    first, later = motion.motors(0.0), motion.motors(motion.approach / a1_motion.RATE_HZ)
    assert first is not None
    assert later is not None
    assert first.kp_nm_rad[0] < 0.3 * later.kp_nm_rad[0]
    assert motion.motors(motion.seconds + 0.01) is None


def test_the_stiffness_of_a_playback_rises_on_the_way_to_its_first_pose_and_not_beyond() -> None:
    motion = a1_motion.prepare(swing(), Safety(), [0.0, 1.2, -2.2] * 4)
    ticks = np.arange(len(motion.poses_rad))
    commands = [motion.motors(tick / a1_motion.RATE_HZ) for tick in ticks]
    shares = np.array([each.kp_nm_rad[0] for each in commands if each is not None])
    assert len(shares) == len(ticks)
    assert shares[0] == pytest.approx(0.2 * KP_NM_RAD)
    assert (np.diff(shares) >= 0.0).all()
    assert set(shares[motion.approach :]) == {KP_NM_RAD}
    assert motion.motors(len(ticks) / a1_motion.RATE_HZ) is None


@pytest.mark.parametrize("hangs_s", [(0.006, 0.010, 0.014, 0.05), (0.3,), (0.7,)])
def test_after_a_hang_no_leg_jumps(
    hangs_s: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It catches up at twice the pace, goes on where it was, or is made safe; it never jumps."""
    sent: list[bytes] = []
    send = a1_client._send_datagram

    def log_and_send(carrier: socket.socket | None, datagram: bytes) -> None:
        sent.append(datagram)
        send(carrier, datagram)

    monkeypatch.setattr(a1_client, "_send_datagram", log_and_send)

    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (_, _, robot):
            running = robot.play_track(swing(1.0))
            while running.phase is not Phase.PLAYING:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.4)  # soon it is fastest
            since = len(sent) - 3
            for hang_s in hangs_s:
                virtual.hang(hang_s)
                await asyncio.sleep(0.06)
            with suppress(ProtectionError):
                await running
            told = [decode(datagram).value for datagram in sent[since:]]
            driven = [each for each in told if isinstance(each, LowCmd) and not is_damping(each)]
            asked = [float(each.motors.q_rad[1]) for each in driven]
            fastest_rad_s = 0.2 * 2 * math.pi / 1.0
            assert np.abs(np.diff(asked)).max() <= 2.05 * fastest_rad_s / a1_motion.RATE_HZ

    virtual.run(main())


def test_a_computer_that_was_suspended_does_not_go_on_with_a_motion() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            running = robot.play_track(swing(1.0))
            while running.phase is not Phase.PLAYING:
                await asyncio.sleep(0.05)
            told = len(world.told)
            virtual.suspend(0.5)
            with pytest.raises(ProtectionError, match=r"this computer was suspended for 0\.5 s"):
                await running
            await asyncio.sleep(0.1)
            assert all(is_damping(command) for _, command in world.told[told + 1 :])
            assert robot.trouble is not None
            with pytest.raises(ProtectionError, match="suspended"):
                robot.set_motors(SERVO)

    virtual.run(main())


def test_nothing_is_begun_with_a_state_from_before_a_suspend() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            await asyncio.sleep(0.1)
            world.health.silent = True
            virtual.suspend(20.0)
            with pytest.raises(ProtectionError, match="no command is sent"):
                robot.set_motors(SERVO)

    virtual.run(main())


def test_a_motion_goes_on_where_it_was_when_its_driver_hung() -> None:
    clock, tick_s = a1_motion.MotionClock(), 1.0 / a1_motion.RATE_HZ
    before = [clock.at(number * tick_s) for number in range(100)]
    assert before == pytest.approx([number * tick_s for number in range(100)])
    after = [clock.at(0.7 + number * tick_s) for number in range(100)]
    assert after == pytest.approx([(100 + number) * tick_s for number in range(100)])


def test_a_motion_never_goes_back_though_its_drivers_clock_does() -> None:
    clock = a1_motion.MotionClock()
    seen = [clock.at(time_s) for time_s in (0.0, 0.002, 0.004, 0.003, 0.001, 0.006)]
    assert seen == sorted(seen)


def test_a_motion_that_was_late_a_little_catches_up_at_twice_its_pace() -> None:
    clock, tick_s = a1_motion.MotionClock(), 1.0 / a1_motion.RATE_HZ
    _ = [clock.at(number * tick_s) for number in range(100)]
    times_s = [(105 + number) * tick_s for number in range(20)]
    seen = [clock.at(time_s) for time_s in times_s]
    assert np.diff([99 * tick_s, *seen]).max() == pytest.approx(2 * tick_s)
    assert seen[-1] == pytest.approx(times_s[-1])


def test_a_computer_that_is_too_slow_plays_a_motion_slower_and_never_in_jumps() -> None:
    clock, tick_s = a1_motion.MotionClock(), 1.0 / a1_motion.RATE_HZ
    seen = [clock.at(number * 4 * tick_s) for number in range(1000)]
    assert np.diff(seen).max() <= 2 * tick_s + 1e-9
    soon = [clock.at(seconds) for seconds in np.arange(1000) * tick_s + 4000 * tick_s]
    assert soon[-1] - soon[0] < 999 * tick_s + a1_motion.STALL_S + 1e-6, "it does not rush after it"


def test_a_stopped_playback_says_so_and_the_legs_hold() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            running = robot.play_track(swing(2.0))
            await asyncio.sleep(0.5)
            await robot.stop()
            report = await running
            assert not report.completed
            await asyncio.sleep(0.1)
            assert not is_damping(world.newest)

    virtual.run(main())


@pytest.mark.parametrize(
    ("start", "hand", "seconds"),
    [
        pytest.param("hung", None, 5.0, marks=pytest.mark.soak),
        pytest.param("hung", "paw", 5.0, marks=pytest.mark.soak),
        pytest.param("hung", "stretch", 5.0, marks=pytest.mark.soak),
        pytest.param("hung", "wag", 5.0, marks=pytest.mark.soak),
        pytest.param("lie", None, 5.0, marks=pytest.mark.soak),
        ("lie", None, 1.5),
    ],
)
def test_legs_that_nobody_holds_do_not_sink_to_their_stops_so_that_the_take_can_be_played(
    start: str, hand: str | None, seconds: float
) -> None:
    async def main() -> None:
        async with pair(Level.LOW, start=start) as (world, _, robot):
            world.attach(None if hand is None else A1Hand(hand, 4.0, repeats=True))
            async with robot.teach("long") as take:
                await asyncio.sleep(seconds)
            world.attach(None)
            report = await robot.play_track(take.track, speed=4.0)
            assert report.completed
            assert robot.trouble is None

    virtual.run(main())


def test_a_spring_keeps_soft_legs_from_their_stops_with_little_force_once_they_were_inside() -> (
    None
):
    legs = a1_motion.SoftLegs(Safety())
    middle = np.array(STAND)
    assert legs.motors(middle) is None, "nothing but softness is asked for"
    near = middle.copy()
    near[2] = -1.0
    pushed = legs.motors(near)
    assert pushed is not None
    torque = pushed.kp_nm_rad[:12] * (pushed.q_rad[:12] - near)
    assert torque[2] == pytest.approx(-2.0, abs=0.01)
    assert (np.delete(pushed.kp_nm_rad[:12], 2) == 0).all()
    assert legs.motors(middle) == a1_motion.SOFT
    assert legs.motors(middle) is None
    folded = np.array([0.0, 1.3, -2.69] * 4)
    assert a1_motion.SoftLegs(Safety()).motors(folded) is None, "folded legs are left alone"
    assert a1_motion.SoftLegs(Safety(limits=A1SafetyLimits(margin_rad=None))).motors(near) is None


def test_nothing_is_begun_while_the_robot_is_silent_and_all_is_well_once_it_is_heard() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            await asyncio.sleep(0.1)
            world.health.silent = True
            await asyncio.sleep(0.2)
            with pytest.raises(ProtectionError, match="no command is sent"):
                robot.set_motors(SERVO)
            with pytest.raises(ProtectionError, match="no command is sent"):
                async with robot.teach("nothing"):
                    raise AssertionError
            await robot.stop()
            assert robot.trouble is None
            world.health.silent = False
            await asyncio.sleep(0.1)
            robot.set_motors(SERVO)
            await asyncio.sleep(0.1)
            assert not is_damping(world.newest)

    virtual.run(main())


def test_a_failed_block_keeps_nothing_and_a_lost_robot_keeps_what_there_was(tmp_path: Path) -> None:
    async def main() -> None:
        library = Library(tmp_path)
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            with pytest.raises(KeyError):
                async with robot.teach("never", library=library):
                    raise KeyError("the teacher's own bug")
            await asyncio.sleep(0.05)
            assert is_damping(world.newest)
            with pytest.raises(ProtectionError, match="stale"):
                async with robot.teach("half", library=library) as take:
                    await asyncio.sleep(0.2)
                    world.health.silent = True
                    await asyncio.sleep(60)
            assert take.samples > 50
            assert [entry.name for entry in library.list()] == ["half"]
            with pytest.raises(ProtectionError):
                robot.teach("more")

    virtual.run(main())


class MillisecondWorld(LoggedWorld):
    def _read_clock_us(self) -> int:
        return round(self.time_s * 1e3)


def test_a_robot_with_another_clock_is_kept_with_the_right_times(tmp_path: Path) -> None:
    async def main() -> None:
        library = Library(tmp_path)
        async with A1Simulator(MillisecondWorld(start="hung")) as simulator:
            async with connect_a1(simulator.url(Level.LOW) + "&sender=loop") as robot:
                async with robot.teach("slow", library=library) as take:
                    await asyncio.sleep(0.5)
        assert take.track.duration_s == pytest.approx(0.5, abs=0.05)
        assert library.load("slow").duration_s == pytest.approx(0.5, abs=0.05)

    virtual.run(main())


@pytest.mark.parametrize("is_lost", [False, True])
def test_such_a_take_that_the_disk_refuses_can_be_recovered_and_hides_no_other_error(
    is_lost: bool, tmp_path: Path
) -> None:
    async def main() -> None:
        library = Library(tmp_path)
        world = MillisecondWorld(start="hung")
        troubles: list[ProtectionError] = []
        async with A1Simulator(world) as simulator:
            async with connect_a1(simulator.url(Level.LOW) + "&sender=loop") as robot:
                try:
                    async with robot.teach("slow", library=library) as take:
                        await asyncio.sleep(0.5)
                        (tmp_path / ".lock").mkdir()  # so that nothing more can be saved here
                        world.health.silent = is_lost
                        await asyncio.sleep(0.2)
                except ProtectionError as error:
                    troubles.append(error)
        assert [trouble.protection for trouble in troubles] == ["stale"] * is_lost
        assert take.file is None
        assert isinstance(take.file_problem, BadRequestError)
        (tmp_path / ".lock").rmdir()
        (part,) = library.unfinished()
        assert library.recover(part).samples == take.samples > 200

    virtual.run(main())


def test_a_stop_brakes_legs_that_are_taught_and_ends_the_block(tmp_path: Path) -> None:
    async def main() -> None:
        library = Library(tmp_path)
        async with pair(Level.LOW, start="hung") as (world, _, robot):

            async def lesson() -> None:
                async with robot.teach("sit", library=library):
                    try:
                        await asyncio.sleep(60)
                    finally:
                        await asyncio.sleep(0.05)
                        assert is_damping(world.newest), "at once, and not when the block is over"

            task = asyncio.create_task(lesson())
            await asyncio.sleep(0.5)
            assert not is_damping(world.newest)
            await robot.stop()
            await robot.stop()
            with pytest.raises(RefusedError, match="ended by a stop") as raised:
                await task
            assert raised.value.code == Code.NOT_TEACHING
            assert task.cancelling() == 0
            assert library.load("sit").duration_s == pytest.approx(0.5, abs=0.1)
            assert robot.trouble is None
            async with robot.teach("again"):
                await asyncio.sleep(0.05)
                assert not is_damping(world.newest)
            await robot.stop()  # nobody is taught any more
            with pytest.raises(RefusedError, match="ended by a stop"):
                async with robot.teach("last word"):
                    await robot.stop()
            current = asyncio.current_task()
            assert current is not None
            assert current.cancelling() == 0

    virtual.run(main())


def test_a_stop_before_the_first_report_keeps_the_legs_from_getting_soft() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):

            async def lesson() -> None:
                async with robot.teach("sit"):
                    await asyncio.sleep(20)

            before = len(world.told)
            task = asyncio.create_task(lesson())
            await asyncio.sleep(0)
            await robot.stop()
            with pytest.raises(RefusedError, match="ended by a stop"):
                await task
            await asyncio.sleep(0.1)
            assert all(is_damping(told) for _, told in world.told[before:])

    virtual.run(main())


def test_damping_ends_a_teaching_with_what_it_is() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            with pytest.raises(ProtectionError, match="damping was requested"):
                async with robot.teach("sit"):
                    await asyncio.sleep(0.1)
                    robot.modes.damp()
                    await asyncio.sleep(60)
            await asyncio.sleep(0.05)
            assert is_damping(world.newest)

    virtual.run(main())


def test_a_take_is_completed_though_its_task_is_cancelled_meanwhile(tmp_path: Path) -> None:
    async def main() -> None:
        library = Library(tmp_path)
        async with pair(Level.LOW, start="hung") as (_, _, robot):
            over = asyncio.Event()

            async def lesson() -> None:
                async with robot.teach("sit", library=library):
                    await asyncio.sleep(0.2)
                    over.set()

            task = asyncio.create_task(lesson())
            await over.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert library.load("sit").duration_s == pytest.approx(0.2, abs=0.05)
            assert library.unfinished() == ()

    virtual.run(main())


def test_who_listens_for_stops_no_longer_is_not_told_and_may_say_so_twice() -> None:
    async def main() -> None:
        async with pair() as (_, _, robot):
            stops: list[str] = []
            forget = robot.on_stop(lambda: stops.append("first"))
            robot.on_stop(lambda: stops.append("second"))
            forget()
            forget()
            await robot.stop()
            assert stops == ["second"]

    virtual.run(main())


def test_a_teaching_that_cannot_begin_leaves_no_file(tmp_path: Path) -> None:
    async def main() -> None:
        library = Library(tmp_path)
        async with pair(Level.LOW, start="hung") as (_, _, robot):
            teaching = robot.teach("late", library=library)
            robot.modes.damp()
            with pytest.raises(ProtectionError):
                async with teaching:
                    pass
            assert library.list() == ()

    virtual.run(main())
    assert not list(tmp_path.glob("late*"))


def broken(**changes: object) -> Track:
    track = swing()
    fields = {"times_s": track.times_s, "joints_rad": track.joints_rad, "names": track.names}
    return Track(**{**fields, **changes})  # type: ignore[arg-type]


def with_joint(joint: int, angle: float) -> Track:
    poses = swing().joints_rad.copy()
    poses[50:, joint] = np.linspace(poses[50, joint], angle, 51)
    return broken(joints_rad=poses)


@pytest.mark.parametrize(
    ("track", "error", "words"),
    [
        (broken(names=tuple(f"{n}x" for n in A1_VARIANT.names)), BadRequestError, "lacks FR_hip"),
        (
            broken(times_s=np.array([0.0]), joints_rad=np.array([STAND])),
            BadRequestError,
            "1 sample",
        ),
        (
            broken(
                names=(*A1_VARIANT.names, A1_VARIANT.names[0]),
                joints_rad=swing().joints_rad[:, [*range(LEG_MOTORS), 0]],
            ),
            BadRequestError,
            "a joint twice",
        ),
        (broken(times_s=swing().times_s * 30), UnsafeMotionError, "the longest of 0.30 s"),
        (with_joint(0, 0.9), UnsafeMotionError, "FR_hip_joint"),
        (with_joint(0, 0.75), UnsafeMotionError, "position protection"),
        (broken(times_s=swing().times_s / 20), UnsafeMotionError, "rad/s"),
    ],
)
def test_a_track_that_must_not_be_played_is_refused_before_anything_moves(
    track: Track, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        a1_motion.prepare(track, Safety(), STAND)
    assert cast("RoteError", caught.value).remedy


@st.composite
def leg_tracks(draw: st.DrawFn) -> Track:
    """Return a track near what is allowed: of gaps, ranges and speeds, in any order of joints."""
    steps_s = draw(st.lists(st.sampled_from([0.01, 0.1, 0.25, 0.26, 0.6]), min_size=1, max_size=6))
    poses = np.tile(STAND, (len(steps_s) + 1, 1))
    for column in draw(st.sets(st.integers(0, LEG_MOTORS - 1), max_size=2)):
        joint = A1_JOINTS[column]
        end = draw(st.sampled_from([joint.lower_rad, joint.upper_rad]))
        poses[:, column] = end + draw(st.sampled_from([-0.021, -0.019, 0.0, 0.019, 0.021]))
    poses[-1, draw(st.integers(0, LEG_MOTORS - 1))] += draw(st.sampled_from([0.0, 0.099, 0.3]))
    order = draw(st.permutations(range(LEG_MOTORS)))
    return Track(
        times_s=7.0 + np.cumsum([0.0, *steps_s]),
        joints_rad=poses[:, order],
        names=tuple(A1_VARIANT.names[column] for column in order),
        variant=draw(st.sampled_from(["a1", "g1-29"])),
    )


def is_beyond(track: Track, speed: float) -> bool:
    """Whether a track has a gap, a pose or a speed that legs are not to be played with."""
    assert A1_VARIANT.max_gap_s is not None
    if (np.diff(track.times_s) > A1_VARIANT.max_gap_s).any():
        return True
    for name, angles in zip(track.names, track.joints_rad.T, strict=True):
        joint = A1_JOINTS[A1_VARIANT.names.index(name)]
        if angles.min() < joint.lower_rad - 0.02 or angles.max() > joint.upper_rad + 0.02:
            return True
        fastest = np.abs(np.diff(angles) / np.diff(track.times_s)).max() * speed
        if fastest > min(10.0, joint.velocity_rad_s):
            return True
    return False


@given(leg_tracks(), st.sampled_from([0.05, 0.5, 1.0, 4.0]))
def test_a_gap_a_pose_or_a_speed_beyond_the_limits_is_refused_and_nothing_else(
    track: Track, speed: float
) -> None:
    unguarded = Safety(limits=A1SafetyLimits(margin_rad=None))
    if is_beyond(track, speed):
        with pytest.raises(UnsafeMotionError):
            a1_motion.check_track(track, unguarded, speed)
    else:
        a1_motion.check_track(track, unguarded, speed)


def test_a_speed_or_a_length_out_of_range_is_refused() -> None:
    with pytest.raises(BadRequestError, match="speed"):
        a1_motion.check_track(swing(), Safety(), 5.0)
    slow = swing(10.0, 10.0)
    a1_motion.check_track(slow, Safety(), 0.06)
    with pytest.raises(BadRequestError, match="a playback of 200"):
        a1_motion.check_track(slow, Safety(), 0.05)
    fast = broken(times_s=swing().times_s / 5)  # 6.3 rad/s
    a1_motion.check_track(fast, Safety())
    with pytest.raises(UnsafeMotionError, match="rad/s"):
        a1_motion.check_track(fast, Safety(), 4.0)
    a1_motion.check_track(with_joint(0, 0.75), Safety(limits=A1SafetyLimits(margin_rad=None)))


def test_a_clock_that_does_not_count_microseconds_is_measured_by_ours() -> None:
    recorder = Recorder("test", A1_BUILD)
    for number in range(101):
        recorder.add_sample(number * 2, STAND, 10.0 + number * 0.002)  # in milliseconds
    assert recorder.track().duration_s == pytest.approx(0.2)
    exact = Recorder("test", A1_BUILD)
    for number in range(101):
        exact.add_sample(number * 2000, STAND, 10.0 + number * 0.0021)
    assert exact.track().duration_s == pytest.approx(0.2)
    assert not exact.add_sample(199_995, STAND, 11.0), "a state overtaken by another"
    assert len(Recorder("test", A1_BUILD)) == 0
    assert exact.track().joints_rad.shape[1] == LEG_MOTORS


def test_a_timed_playback_sets_off_so_early_that_its_motion_begins_at_its_time() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            loop = asyncio.get_running_loop()
            at_s, before = loop.time() + 2.0, len(world.told)
            report = await robot.play_track(swing(0.5), at=at_s)
            assert report.completed
            assert loop.time() == pytest.approx(at_s + 0.5, abs=0.1)
            moved = [time_s for time_s, told in world.told[before:] if not is_damping(told)]
            assert moved[-1] - moved[0] == pytest.approx(report.seconds, abs=0.2)

    virtual.run(main())


def test_a_stop_before_its_time_keeps_a_timed_playback_from_beginning() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            before = len(world.told)
            running = robot.play_track(swing(0.5), at=asyncio.get_running_loop().time() + 2.0)
            await asyncio.sleep(0.3)
            await robot.stop()
            with pytest.raises(RefusedError):
                await running
            await asyncio.sleep(1.8)
            assert all(is_damping(told) for _, told in world.told[before:])

    virtual.run(main())


def test_a_start_that_is_too_near_for_a_soft_way_is_refused() -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (_, _, robot):
            with pytest.raises(BadRequestError, match="too early"):
                await robot.play_track(swing(1.0), at=asyncio.get_running_loop().time() + 0.1)

    virtual.run(main())
