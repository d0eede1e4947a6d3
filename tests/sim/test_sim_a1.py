"""The simulated A1 on its ports: every dialect, strangers, silence, a bad network, and its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from a1_rig import LoggedWorld, is_damping
from rote.errors import LinkError, LocalProtocolError
from rote.model.a1 import A1_STAND_RAD
from rote.session.a1 import A1Reported, A1Session, A1Timing, Jumped, Learned, Level
from rote.session.events import PeerLost
from rote.session.teaching import Role
from rote.sim.quadruped.faults import parse_a1_fault
from rote.sim.quadruped.simulator import MAX_CLIENTS, SPARE_CLIENTS, A1Simulator
from rote.sim.quadruped.world import A1World
from rote.transport.impair import Impairment
from rote.transport.link import Link, open_link
from rote.wire.a1 import codec as wire
from rote.wire.a1 import values as a1_values
from rote.wire.a1.motors import BRAKE, MotorCmds
from rote.wire.a1.values import Dialect, HighCmd, HighState, LowCmd, LowState, ScaledHighCmd
from virtual import run

ALL = pytest.mark.parametrize("dialect", list(Dialect), ids=lambda dialect: dialect.value)
PERIOD_S = 0.004
STANDING = LowCmd(
    motors=MotorCmds.servo(q_rad=A1_STAND_RAD, dq_rad_s=0.0, kp_nm_rad=60.0, kd_nm_s_rad=2.0)
)


def walking(dialect: Dialect) -> a1_values.Command:
    if dialect is Dialect.A1_3_2:
        return ScaledHighCmd(mode=2, forward=0.5)
    return HighCmd(mode=2, gait=1, velocity_m_s=(0.5, 0.0))


class Caller:
    """A client: the session's other role, on a socket."""

    def __init__(self, level: Level, dialect: Dialect | None) -> None:
        timing = A1Timing(period_s=PERIOD_S, connect_s=1.0, lost_s=0.5)
        self.session = A1Session(Role.CLIENT, level, dialect=dialect, timing=timing)
        self.events: list[Any] = []
        self.link: Link | None = None

    @property
    def states(self) -> list[Any]:
        return [event.state for event in self.events if isinstance(event, A1Reported)]

    def heard(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def receive(self, datagram: bytes) -> None:
        self.session.receive(datagram, asyncio.get_running_loop().time())
        self.events += self.session.events()

    async def speak(self, seconds: float, command: a1_values.Command | None = None) -> None:
        """Say the command, or what was said before, for a while."""
        assert self.link is not None
        loop = asyncio.get_running_loop()
        if command is not None and self.session.live:
            self.session.command(command, loop.time())
        until = loop.time() + seconds
        while loop.time() < until:
            self.session.tick(loop.time())
            self.events += self.session.events()
            for datagram in self.session.outgoing():
                self.link.send(datagram)
            await asyncio.sleep(PERIOD_S / 2)


@asynccontextmanager
async def calling(
    robot: A1Simulator, level: Level, dialect: Dialect | None = None
) -> AsyncIterator[Caller]:
    caller = Caller(level, dialect)
    port = robot.ports.low if level is Level.LOW else robot.ports.high
    caller.link = await open_link(f"udp://127.0.0.1:{port}", caller.receive)
    try:
        caller.session.open(asyncio.get_running_loop().time())
        await caller.speak(0.1)
        yield caller
    finally:
        caller.link.close()
        await asyncio.sleep(0)


# ---- conversations ------------------------------------------------------------------------------


@ALL
def test_a_client_learns_the_dialect_and_walks_the_robot(dialect: Dialect) -> None:
    async def work() -> None:
        async with (
            A1Simulator(A1World(dialect=dialect)) as robot,
            calling(robot, Level.HIGH) as caller,
        ):
            assert caller.heard(Learned) == [Learned((dialect,))]
            await caller.speak(1.0, walking(dialect))
            state = caller.states[-1]
            assert isinstance(state, HighState)
            assert state.position_m[0] == pytest.approx(0.45, abs=0.05)
            assert state.mode == 2
            assert not robot.dropped["crc"]

    run(work())


@ALL
def test_a_client_holds_the_joints_and_is_answered_once_for_each_command(dialect: Dialect) -> None:
    async def work() -> None:
        async with (
            A1Simulator(A1World(dialect=dialect)) as robot,
            calling(robot, Level.LOW) as caller,
        ):
            await caller.speak(0.6, STANDING)
            state = caller.states[-1]
            assert isinstance(state, LowState)
            assert state.motors.q_rad[:12] == pytest.approx(A1_STAND_RAD, abs=0.15)
            ticks = [state.tick for state in caller.states]
            assert ticks == sorted(ticks)
            assert ticks[-1] - ticks[0] == pytest.approx(0.69e6, abs=0.02e6)
            assert len(ticks) == pytest.approx(0.7 / PERIOD_S, rel=0.05)

    run(work())


def test_a_go1_sends_the_state_of_its_walking_controller_fifty_times_a_second() -> None:
    async def work() -> int:
        async with (
            A1Simulator(A1World(dialect=Dialect.GO1)) as robot,
            calling(robot, Level.HIGH) as caller,
        ):
            caller.events.clear()
            await caller.speak(1.0, HighCmd(mode=1))
            return len(caller.states)

    assert run(work()) == pytest.approx(50, abs=3)


def test_the_older_dialect_has_both_levels_on_one_port_and_the_others_do_not() -> None:
    async def work() -> None:
        async with A1Simulator(A1World(dialect=Dialect.A1_3_2)) as old:
            assert old.ports.high == old.ports.low
            async with calling(old, Level.LOW) as low, calling(old, Level.HIGH) as high:
                assert low.states
                assert high.states
        async with A1Simulator(A1World()) as new:
            assert new.ports.high != new.ports.low
            link = await open_link(f"udp://127.0.0.1:{new.ports.high}", lambda _: None)
            link.send(wire.encode(STANDING, Dialect.A1_3_3_4))
            await asyncio.sleep(0.05)
            link.close()
            assert new.dropped == {"another kind": 1}
            assert new.clients == 0

    run(work())


def test_a_level_without_the_robot_is_answered_but_not_obeyed() -> None:
    async def work() -> None:
        async with (
            A1Simulator(A1World()) as robot,
            calling(robot, Level.LOW) as low,
            calling(robot, Level.HIGH) as high,
        ):
            tasks = (low.speak(0.4, STANDING), high.speak(0.4, walking(robot.dialect)))
            await asyncio.gather(*tasks)
            assert high.states[-1].velocity_m_s[0] < 0.2
            assert robot.world.driver is Level.LOW
            assert robot.world.ignored > 50

    run(work())


# ---- silence ------------------------------------------------------------------------------------


def test_a_silent_low_level_client_leaves_braking_motors_and_later_a_free_robot() -> None:
    async def work() -> None:
        async with A1Simulator(A1World()) as robot:
            async with calling(robot, Level.LOW) as caller:
                await caller.speak(0.4, STANDING)
                height = robot.world.body.height_m
                await asyncio.sleep(0.025)
                assert not any("brake" in notice.message for notice in robot.world.notices)
                await asyncio.sleep(0.6)
                assert robot.world.body.height_m < height - 0.05
                assert robot.clients == 1
                await asyncio.sleep(1.0)
            assert robot.world.driver is None
            assert robot.clients == 0

    run(work())


def test_a_second_client_at_the_same_level_keeps_the_motors_driven() -> None:
    async def work() -> None:
        async with A1Simulator(A1World()) as robot, calling(robot, Level.LOW) as first:
            async with calling(robot, Level.LOW) as second:
                await asyncio.gather(first.speak(0.3, STANDING), second.speak(0.3, STANDING))
                await first.speak(1.5)
                assert robot.clients == 1
            assert robot.world.driver is Level.LOW
            assert not any("brake" in notice.message for notice in robot.world.notices)
            assert robot.world.body.height_m > 0.25

    run(work())


def test_a_robot_that_falls_silent_is_lost_and_one_whose_clock_jumps_is_noticed() -> None:
    async def work() -> None:
        world = A1World()
        world.health.plan_fault(parse_a1_fault("clock:30s@0.5"))
        world.health.plan_fault(parse_a1_fault("silent@1"))
        async with A1Simulator(world) as robot, calling(robot, Level.LOW) as caller:
            await caller.speak(0.8, STANDING)
            assert len(caller.heard(Jumped)) == 1
            assert not caller.heard(PeerLost)
            await caller.speak(1.0)
            assert len(caller.heard(PeerLost)) == 1

    run(work())


def test_states_with_no_numbers_in_them_are_sent_on_request_and_dropped_by_the_client() -> None:
    async def work() -> None:
        world = A1World()
        world.health.plan_fault(parse_a1_fault("nan:motors@0.5"))
        async with A1Simulator(world) as robot, calling(robot, Level.LOW) as caller:
            await caller.speak(0.3, STANDING)
            assert not caller.session.dropped
            await caller.speak(0.5)
            assert caller.session.dropped["not a number"] > 50

    run(work())


# ---- strangers, the network, the end ------------------------------------------------------------


@ALL
def test_what_is_no_sound_command_is_counted_and_leaves_nothing_behind(dialect: Dialect) -> None:
    async def work() -> None:
        answers: list[bytes] = []
        async with A1Simulator(A1World(dialect=dialect)) as robot:
            link = await open_link(f"udp://127.0.0.1:{robot.ports.low}", answers.append)
            sound = wire.encode(STANDING, dialect)
            state = wire.encode(robot.world.low_state(), dialect)
            for datagram in (b"hello", sound[:-1] + bytes([sound[-1] ^ 1]), state):
                link.send(datagram)
            if dialect is Dialect.GO1:
                link.send(b"\0\0" + sound[2:])
            await asyncio.sleep(0.1)
            assert (robot.clients, answers, robot.world.driver) == (0, [], None)
            wanted = {"unknown length": 1, "crc": 1, "another kind": 1}
            head = {"head": 1} if dialect is Dialect.GO1 else {}
            assert robot.dropped == wanted | head
            link.send(sound)
            link.send(sound[:-1] + bytes([sound[-1] ^ 1]))
            await asyncio.sleep(0.1)
            assert (robot.clients, len(answers), robot.dropped["crc"]) == (1, 1, 2)
            link.close()

    run(work())


def test_over_a_bad_network_the_robot_still_gets_there() -> None:
    bad = Impairment(loss=0.2, duplicate=0.1, reorder=0.2, corrupt=0.1, delay_s=0.01, seed=3)

    async def work() -> None:
        async with (
            A1Simulator(A1World(), impairment=bad) as robot,
            calling(robot, Level.HIGH, Dialect.A1_3_3_4) as caller,
        ):
            await caller.speak(1.5, walking(robot.dialect))
            assert caller.states[-1].position_m[0] == pytest.approx(0.7, abs=0.1)
            assert robot.dropped["crc"] > 10
            assert caller.session.dropped["crc"] > 10

    run(work())


def test_clients_above_the_limit_may_watch_and_stop_but_drive_nothing() -> None:
    async def work() -> None:
        world = LoggedWorld()
        async with A1Simulator(world) as robot:
            command = wire.encode(HighCmd(), robot.dialect)
            states: list[bytes] = []
            links = []
            for _ in range(MAX_CLIENTS + SPARE_CLIENTS + 2):  # the newest replace the oldest spare
                link = await open_link(f"udp://127.0.0.1:{robot.ports.high}", states.append)
                link.send(command)
                links.append(link)
            await asyncio.sleep(0.05)
            assert robot.clients == MAX_CLIENTS + SPARE_CLIENTS
            assert robot.spare_count == SPARE_CLIENTS + 2
            world.told.clear()
            states.clear()
            for each in (walking(robot.dialect), HighCmd(), HighCmd(mode=7)):
                links[-1].send(wire.encode(each, robot.dialect))
                await asyncio.sleep(0.05)
            assert [each.mode for _, each in world.told if isinstance(each, HighCmd)] == [0, 7]
            assert len(states) == 3
            for link in links:
                link.close()
            await asyncio.sleep(2.0)
            assert robot.clients == 0

    run(work())


def test_a_robot_that_was_starved_obeys_the_newest_command_and_not_those_that_waited() -> None:
    async def work() -> None:
        world = LoggedWorld(start="hung")
        async with A1Simulator(world) as robot:
            turn = wire.encode(
                LowCmd(motors=MotorCmds.servo(dq_rad_s=2.0, kd_nm_s_rad=4.0)), robot.dialect
            )
            brake = wire.encode(LowCmd(motors=MotorCmds.servo(mode=BRAKE)), robot.dialect)
            states: list[bytes] = []
            link = await open_link(f"udp://127.0.0.1:{robot.ports.low}", states.append)
            link.send(brake)
            await asyncio.sleep(0.1)
            for _ in range(2):
                world.told.clear()
                states.clear()
                # Sent in time, and read late: the robot's own computer had too much to do.
                for _ in range(40):
                    link.send(turn)
                link.send(brake)
                await asyncio.sleep(0.02)
                assert [is_damping(command) for _, command in world.told] == [True]
                assert len(states) == 1
            link.close()

    run(work())


def test_its_ports_are_free_again_after_its_end_and_taken_until_then() -> None:
    async def work() -> None:
        robot = A1Simulator(A1World())
        with pytest.raises(LocalProtocolError):
            _ = robot.ports
        high, low = await robot.open()
        assert robot.url() == f"a1://127.0.0.1:{high}?level=high"
        assert robot.url(Level.LOW) == f"a1://127.0.0.1:{low}?level=low"
        with pytest.raises(LinkError):
            await A1Simulator(A1World(), high_port=high, low_port=0).open()
        await robot.close()
        await robot.close()
        async with A1Simulator(A1World(), high_port=high, low_port=low) as again:
            assert again.ports == (high, low)

    run(work())


def test_its_clock_keeps_up_with_the_loops_with_and_without_a_client() -> None:
    async def work() -> None:
        async with A1Simulator(A1World()) as robot:
            await asyncio.sleep(1.0)
            assert robot.world.time_s == pytest.approx(1.0, abs=0.03)
            async with calling(robot, Level.HIGH) as caller:
                await caller.speak(0.9, HighCmd(mode=1))
                assert robot.world.time_s == pytest.approx(2.0, abs=0.03)

    run(work())
