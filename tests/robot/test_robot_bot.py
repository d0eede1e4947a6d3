"""Bot: instructions end on what the state says, have a time limit, and a stop interrupts them."""

import asyncio
import math

import pytest

import virtual
from a1_rig import Pair, is_damping, pair
from rote.errors import (
    BadRequestError,
    PeerLostError,
    ProtectionError,
    TimeLimitError,
    UnsupportedError,
)
from rote.robot.quadruped.bot import Bot
from rote.session.a1 import Level
from rote.wire.a1.values import Dialect, HighCmd, HighState, ScaledHighCmd


def where(robot: Pair) -> tuple[float, float, float]:
    """Place and heading, as the robot itself has them, in m and degrees."""
    state = robot.world.high_state()
    return state.position_m[0], state.position_m[1], math.degrees(state.imu.rpy_rad[2])


def test_a_walk_a_turn_of_90_degrees_and_a_walk_end_where_they_should() -> None:
    async def main() -> None:
        async with pair(dialect=Dialect.GO1) as robot:
            bot = Bot(robot.robot).walk(0.6).turn(math.pi / 2).walk(0.3)
            assert len(bot) == 3
            report = await bot.execute()
            assert report.completed
            assert [done.label for done in report.done][1:] == [
                "a turn of 90 degrees",
                "a walk of 0.30 m",
            ]
            await asyncio.sleep(0.5)
            x, y, degrees = where(robot)
            assert math.hypot(x - 0.6, y - 0.3) < 0.05
            assert abs(degrees - 90.0) < 3.0
            assert robot.world.newest.mode == 0  # type: ignore[union-attr]
            assert len(bot) == 0

    virtual.run(main())  # fmt: skip


@pytest.mark.parametrize("dialect", [Dialect.A1_3_2, Dialect.A1_3_3, Dialect.A1_3_3_4])
def test_every_dialect_walks_back_and_turns_right_in_si_units(dialect: Dialect) -> None:
    async def main() -> None:
        async with pair(dialect=dialect) as robot:
            await Bot(robot.robot).walk(-0.3).turn(math.radians(-20)).execute()
            x, y, degrees = where(robot)
            assert math.hypot(x + 0.3, y) < 0.05
            assert abs(degrees + 20.0) < 3.0
            shares = [c for _, c in robot.world.told if isinstance(c, ScaledHighCmd)]
            assert bool(shares) == (dialect is Dialect.A1_3_2)
            if shares:  # 0.4 m/s back is a share of 0.7 m/s
                assert min(command.forward for command in shares) == pytest.approx(-0.4 / 0.7)

    virtual.run(main())


def test_sideways_pose_wait_and_a_predicate() -> None:
    async def main() -> None:
        async with pair() as robot:
            seen: list[HighState] = []

            def low(state: HighState) -> bool:
                seen.append(state)
                return state.position_m[0] > 0.1

            bot = Bot(robot.robot)
            bot.walk(0.0, 0.2, speed_m_s=0.3).pose(pitch_rad=0.2).wait(0.5).stand()
            bot.go(low, forward_m_s=0.3, limit_s=5.0).until(lambda _: True, limit_s=1.0)
            report = await bot.execute()
            assert report.completed
            assert report.done[2].seconds == pytest.approx(0.5, abs=0.05)
            assert len(seen) > 10
            assert robot.world.high_state().position_m[1] == pytest.approx(0.2, abs=0.05)
            posed = {c.euler_rad for _, c in robot.world.told if isinstance(c, HighCmd)}
            assert any(pitch == pytest.approx(0.2) for _, pitch, _ in posed)

    virtual.run(main())


def test_what_never_comes_about_has_a_time_limit_and_the_robot_stands() -> None:
    async def main() -> None:
        async with pair() as robot:
            bot = Bot(robot.robot).go(lambda _: False, forward_m_s=0.2, limit_s=1.0)
            with pytest.raises(TimeLimitError, match=r"did not finish within 1\.0 s") as raised:
                await bot.execute()
            assert raised.value.remedy
            await asyncio.sleep(0.05)
            assert robot.world.newest.mode == 0  # type: ignore[union-attr]
            await Bot(robot.robot).wait(0.1).execute()

    virtual.run(main())


@pytest.mark.parametrize("start", ["lie", "damp"])
def test_what_takes_feet_is_refused_at_once_where_it_lies(start: str) -> None:
    async def main() -> None:
        async with pair(start=start) as robot:
            await asyncio.sleep(1.0)
            began = asyncio.get_running_loop().time()
            for bot in (
                Bot(robot.robot).walk(0.3),
                Bot(robot.robot).turn(1.0),
                Bot(robot.robot).pose(pitch_rad=0.1),
                Bot(robot.robot).go(lambda _: False, forward_m_s=0.2, limit_s=5.0),
            ):
                with pytest.raises(BadRequestError, match=r"it lies|legs are soft") as raised:
                    await bot.execute()
                assert "robot.modes.get_up()" in raised.value.remedy
            assert asyncio.get_running_loop().time() - began < 0.1

    virtual.run(main())


@pytest.mark.each_once("dialect", "start")
@pytest.mark.parametrize("dialect", [Dialect.A1_3_2, Dialect.GO1])
@pytest.mark.parametrize("start", ["lie", "damp"])
def test_who_lies_gets_up_to_stand_and_that_counts(start: str, dialect: Dialect) -> None:
    async def main() -> None:
        async with pair(start=start, dialect=dialect) as robot:
            await asyncio.sleep(1.0)
            (done,) = (await Bot(robot.robot).stand().execute()).done
            assert 1.2 < done.seconds < 3.0
            assert robot.world.high_state().body_height_m > 0.26
            (again,) = (await Bot(robot.robot).stand().execute()).done
            assert again.seconds < 0.2

    virtual.run(main())


def test_it_lies_down_and_once_is_enough() -> None:
    async def main() -> None:
        async with pair() as robot:
            (done,) = (await Bot(robot.robot).lie_down().execute()).done
            assert 0.5 < done.seconds < 3.0
            await asyncio.sleep(1.0)
            assert robot.world.high_state().body_height_m < 0.15
            (again,) = (await Bot(robot.robot).lie_down().execute()).done
            assert again.seconds < 0.1

    virtual.run(main())


def test_words_say_whereto() -> None:
    async def main() -> None:
        async with pair() as robot:
            bot = Bot(robot.robot).walk(-0.05).walk(0.0, -0.05).walk(0.04, 0.03)
            report = await bot.pose(pitch_rad=math.radians(5), body_height_m=-0.02).execute()
            assert [done.label for done in report.done] == [
                "a walk of 0.05 m back",
                "a walk of 0.05 m to the right",
                "a walk of 0.04 m and 0.03 m to the left",
                "a pose with pitch 5 degrees, height -0.02 m",
            ]

    virtual.run(main())


@pytest.mark.parametrize("who", ["bot", "robot"])
def test_a_stop_interrupts_everything_and_leaves_a_usable_robot(who: str) -> None:
    async def main() -> None:
        async with pair() as robot:
            bot = Bot(robot.robot).wait(0.2).walk(2.0).turn(1.0)
            running = asyncio.create_task(bot.execute())
            await asyncio.sleep(1.0)
            with pytest.raises(BadRequestError, match="carrying out"):
                bot.walk(1.0)
            with pytest.raises(BadRequestError, match="already"):
                await bot.execute()
            await (bot.stop() if who == "bot" else robot.robot.stop())
            report = await running
            assert not report.completed
            assert [done.label for done in report.done] == ["a wait of 0.2 s"]
            assert report.left == ("a walk of 2.00 m", "a turn of 57 degrees")
            await asyncio.sleep(0.6)
            assert where(robot)[0] < 0.6
            assert robot.world.newest.mode == 0  # type: ignore[union-attr]
            assert (await bot.wait(0.1).execute()).completed

    virtual.run(main())


def test_a_cancelled_walk_leaves_the_robot_standing() -> None:
    async def main() -> None:
        async with pair() as robot:
            running = asyncio.create_task(Bot(robot.robot).walk(2.0).execute())
            await asyncio.sleep(0.5)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await asyncio.sleep(0.05)
            assert robot.world.newest.mode == 0  # type: ignore[union-attr]

    virtual.run(main())


def test_a_dead_robot_ends_the_walk() -> None:
    async def main() -> None:
        async with pair() as robot:
            running = asyncio.create_task(Bot(robot.robot).walk(5.0).execute())
            await asyncio.sleep(0.5)
            robot.world.health.silent = True
            with pytest.raises((ProtectionError, PeerLostError)) as raised:
                await running
            assert getattr(raised.value, "protection", "stale") == "stale"
            await asyncio.sleep(0.05)
            assert robot.world.newest.mode == 0  # type: ignore[union-attr]

    virtual.run(main())


def test_a_tripped_protection_ends_in_damping_for_a_second_and_arms_again() -> None:
    async def main() -> None:
        async with pair() as robot:
            running = asyncio.create_task(Bot(robot.robot).walk(5.0).execute())
            await asyncio.sleep(0.5)
            robot.world.health.overheat_motor(5)
            with pytest.raises(ProtectionError, match="temperature") as raised:
                await running
            await asyncio.sleep(1.5)
            assert is_damping(robot.world.newest)
            assert robot.world.damped_for_s() > 1.0
            assert robot.robot.status().trouble
            with pytest.raises(ProtectionError) as again:
                robot.robot.walk(0.1)
            assert again.value is raised.value
            robot.robot.arm()
            assert not robot.robot.status().trouble
            await asyncio.sleep(0.05)
            assert not is_damping(robot.world.newest)

    virtual.run(main())


@pytest.mark.parametrize(
    "ask",
    [
        lambda bot: bot.walk(51.0),
        lambda bot: bot.walk(math.nan),
        lambda bot: bot.walk(1.0, speed_m_s=0.0),
        lambda bot: bot.walk(1.0, speed_m_s=0.9),
        lambda bot: bot.walk(0.0, 1.0, speed_m_s=0.5),
        lambda bot: bot.turn(13.0),
        lambda bot: bot.turn(1.0, speed_rad_s=3.0),
        lambda bot: bot.turn(1.0, limit_s=-1.0),
        lambda bot: bot.pose(roll_rad=0.6),
        lambda bot: bot.pose(body_height_m=0.2),
        lambda bot: bot.pose(yaw_rad=math.inf),
        lambda bot: bot.wait(0.0),
        lambda bot: bot.wait(math.nan),
        lambda bot: bot.until(lambda _: True, limit_s=0.0),
        lambda bot: bot.go(lambda _: True, forward_m_s=2.0, limit_s=1.0),
    ],
)
def test_arguments_that_make_no_sense_are_refused_before_anything_moves(ask) -> None:  # type: ignore[no-untyped-def]
    async def main() -> None:
        async with pair() as robot:
            bot = Bot(robot.robot)
            with pytest.raises(BadRequestError) as raised:
                ask(bot)
            assert raised.value.remedy
            assert len(bot) == 0

    virtual.run(main())


def test_a_bot_needs_the_walking_controller_and_a_predicate_a_function() -> None:
    async def main() -> None:
        async with pair(Level.LOW) as robot:
            with pytest.raises(UnsupportedError, match="low level") as raised:
                Bot(robot.robot)
            assert "level=high" in raised.value.remedy
        async with pair() as robot:
            with pytest.raises(TypeError):
                Bot(robot.robot).until(True, limit_s=1.0)  # type: ignore[arg-type]

    virtual.run(main())
