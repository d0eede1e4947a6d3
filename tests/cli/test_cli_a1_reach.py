"""An A1's motors are taken only where nothing sinks by it, and a stop stops at either level."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

import virtual
from a1_rig import LoggedWorld
from rote.cli.wording import worded
from rote.connection import connect, connect_a1
from rote.errors import BadRequestError, NoAnswerError, TimeLimitError
from rote.findings import Severity
from rote.robot import doctor
from rote.robot.quadruped import approach
from rote.robot.quadruped.robot import A1
from rote.session.a1 import Level
from rote.sim.quadruped.simulator import A1Simulator
from rote.wire.a1.values import Dialect, HighCmd, LowCmd

LOW, HIGH = "a1://127.0.0.1?level=low&sender=loop", "a1://127.0.0.1?sender=loop"


@asynccontextmanager
async def usual(
    monkeypatch: pytest.MonkeyPatch, start: str = "stand", dialect: Dialect = Dialect.A1_3_3_4
) -> AsyncIterator[LoggedWorld]:
    """A robot on the ports where one is sought."""
    world = LoggedWorld(start=start, dialect=dialect)
    async with A1Simulator(world) as simulator:
        monkeypatch.setattr("rote.transport.a1.client.LOW_PORT", simulator.ports.low)
        monkeypatch.setattr("rote.transport.a1.client.HIGH_PORT", simulator.ports.high)
        monkeypatch.setattr("rote.transport.a1.client.OLD_HIGH_PORT", simulator.ports.high)
        yield world


def motors(*, read_only: bool = False) -> "AbstractAsyncContextManager[A1]":
    return connect(LOW, family="a1", ability="states" if read_only else "teach")


def was_low(world: LoggedWorld) -> bool:
    return any(isinstance(command, LowCmd) for _, command in world.told)


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("read_only", [True, False])
def test_the_motors_of_a_robot_that_stands_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, dialect: Dialect, read_only: bool
) -> None:
    async def main() -> None:
        async with usual(monkeypatch, dialect=dialect) as world:
            with pytest.raises(BadRequestError, match="stands") as raised:
                async with motors(read_only=read_only):
                    raise AssertionError
            assert "rote a1 lie" in worded(raised.value.remedy)
            await asyncio.sleep(2.0)
            assert not was_low(world)
            assert world.high_state().body_height_m > 0.25

    virtual.run(main())


@pytest.mark.parametrize("start", ["lie", "damp", "hung"])
def test_the_motors_of_one_that_lies_or_hangs_obey_at_once(
    monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    async def main() -> None:
        async with usual(monkeypatch, start) as world:
            async with motors(read_only=True) as robot:
                assert robot.level is Level.LOW
                assert world.driver is Level.LOW

    virtual.run(main())


def test_where_nobody_tells_whether_it_stands_a_look_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        async with usual(monkeypatch, "hung") as world:
            monkeypatch.setattr("rote.transport.a1.client.HIGH_PORT", 9)
            monkeypatch.setattr("rote.transport.a1.client.OLD_HIGH_PORT", 9)
            with pytest.raises(BadRequestError, match="is unknown"):
                async with motors(read_only=True):
                    raise AssertionError
            assert not world.told
            async with motors() as robot:
                assert robot.level is Level.LOW
            stopped = await approach.stop(LOW)
            assert (stopped.was, "motors brake" in stopped.state) == ("unknown", True)

    virtual.run(main())


# ---- stopping -----------------------------------------------------------------------------------


@pytest.mark.parametrize("url", [LOW, HIGH])
def test_a_stop_leaves_a_robot_that_stands_standing(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    async def main() -> None:
        async with usual(monkeypatch) as world:
            assert await approach.stop(url) == ("standing", "the robot stands still")
            await asyncio.sleep(2.0)
            assert not was_low(world)
            assert world.high_state().body_height_m > 0.25

    virtual.run(main())


@pytest.mark.parametrize("url", [LOW, HIGH])
def test_a_robot_that_walks_by_itself_is_stopped(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    async def main() -> None:
        async with usual(monkeypatch) as world:
            world.obey(HighCmd(mode=2, velocity_m_s=(0.6, 0.0)))
            await asyncio.sleep(1.0)
            assert world.high_state().velocity_m_s[0] > 0.5
            stopped = await approach.stop(url)
            assert stopped.state == "the robot stands still"
            assert url == LOW or stopped.was == "walking"
            assert abs(world.high_state().velocity_m_s[0]) < 0.03

    virtual.run(main())


def test_a_robot_that_another_program_goes_on_driving_is_not_said_to_be_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        async with usual(monkeypatch), connect_a1(HIGH) as robot:
            robot.walk(0.6)
            await asyncio.sleep(1.0)
            with pytest.raises(TimeLimitError, match="another program"):
                await approach.stop(HIGH)

    virtual.run(main())


def test_a_robot_that_lies_stays_down(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with usual(monkeypatch, "lie") as world:
            assert (await approach.stop(HIGH)).was == "down"
            assert "motors brake" in (await approach.stop(LOW)).state
            assert world.high_state().body_height_m < 0.15

    virtual.run(main())


def test_nobody_there_is_no_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        for url in ("a1://127.0.0.1:9?sender=loop", "a1://127.0.0.1:9?level=low&sender=loop"):
            with pytest.raises(NoAnswerError):
                await approach.stop(url)

    virtual.run(main())


# ---- looking ------------------------------------------------------------------------------------


def test_the_doctor_tells_what_an_a1_is_and_does(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with usual(monkeypatch, dialect=Dialect.GO1) as world:
            async with connect_a1(HIGH) as robot:
                seen = await doctor.check_connected_robot(robot)
                assert seen.findings == []
                facts = seen.facts
                assert (facts["dialect"], facts["level"], facts["mode"]) == ("go1", "high", "idle")
                world.health.battery_percent = 12.0
                world.health.overheat_motor(5)
                robot.modes.lie_down()
                await asyncio.sleep(3.0)
                seen = await doctor.check_connected_robot(robot)
                assert [finding.severity for finding in seen.findings] == [
                    Severity.ERROR,
                    Severity.WARNING,
                    Severity.NOTE,
                ]

    virtual.run(main())
