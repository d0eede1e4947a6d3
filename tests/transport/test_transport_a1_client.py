"""The client's shell for an A1: URLs, who sends, what is learned, and what becomes of bad input."""

import asyncio
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import virtual
from a1_rig import LoggedWorld, is_damping
from rote.cli.wording import worded
from rote.errors import (
    BadRequestError,
    LinkError,
    NoAnswerError,
    PeerLostError,
    ProtectionError,
    RemoteProtocolError,
    RoteError,
    UnsupportedError,
)
from rote.model.a1 import A1 as A1_FAMILY
from rote.motion.check.limits import MAX_PLAYED_RAD_S
from rote.platform import clock
from rote.session.a1 import Level
from rote.sim.quadruped.simulator import A1Simulator
from rote.transport.a1 import sender as a1_sender
from rote.transport.a1.client import (
    KEPT_S,
    A1Client,
    A1Target,
    make_damping_command,
    open_client,
    read_url,
    walking_url,
)
from rote.transport.a1.sender import (
    CLOSING_S,
    MAX_RAD_S,
    SAFE_S,
    SOFT_RAD_S,
    CommandSequence,
    LoopSender,
    ProcessSender,
    Stall,
)
from rote.wire.a1 import codec as wire
from rote.wire.a1 import values as a1_values
from rote.wire.a1.codec import Seal
from rote.wire.a1.motors import MotorCmd, MotorCmds
from rote.wire.a1.values import Dialect, HighCmd, LowCmd

DRIVE = MotorCmds.servo(q_rad=[0.0, 0.8, -1.6] * 4, kp_nm_rad=20.0, kd_nm_s_rad=1.0)


# ---- URLs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("a1://dog", A1Target(host="dog", ports=(8082, 8007))),
        ("a1://dog?dialect=3.2", A1Target(host="dog", ports=(8007,), dialect=Dialect.A1_3_2)),
        ("a1://dog?dialect=go1", A1Target(host="dog", ports=(8082,), dialect=Dialect.GO1)),
        ("a1://dog?level=low", A1Target(host="dog", ports=(8007,), level=Level.LOW)),
        ("a1://dog:99?level=low", A1Target(host="dog", ports=(99,), level=Level.LOW)),
        ("a1://dog?sender=loop", A1Target(host="dog", ports=(8082, 8007), isolated=False)),
        ("a1://dog?local=8090", A1Target(host="dog", ports=(8082, 8007), local=8090)),
    ],
)  # fmt: skip
def test_a_url_says_where_and_how(url: str, target: A1Target) -> None:
    assert read_url(url) == target


@pytest.mark.parametrize(
    "url",
    ["a1://", "udp://dog", "a1://dog?level=middle", "a1://dog?dialect=9", "a1://dog/x", "a1://dog?x=1",
     "a1://dog?sender=pigeon", "a1://dog?local=70000", "a1://dog?local=x", "a1://dog?level"],
)  # fmt: skip
def test_a_url_that_says_nothing_is_refused_with_what_to_write(url: str) -> None:
    with pytest.raises(BadRequestError) as raised:
        read_url(url)
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("url", "walking"),
    [
        ("a1://dog", "a1://dog"),
        ("a1://dog:9?level=high&dialect=go1", "a1://dog:9?level=high&dialect=go1"),
        ("a1://dog?level=low", "a1://dog?level=high"),
        ("a1://dog:8007?level=low&dialect=go1", "a1://dog?level=high&dialect=go1"),
        ("a1://dog:8800?level=low", "a1://dog:8800?level=high"),
        ("a1://[::1]?level=low&sender=loop", "a1://[::1]?level=high&sender=loop"),
    ],
)
def test_where_the_walking_controller_is_follows_from_where_the_motors_are(
    url: str, walking: str
) -> None:
    assert walking_url(url) == walking
    read_url(walking)


def test_each_level_and_dialect_has_a_safe_command() -> None:
    for level in Level:
        for dialect in Dialect:
            safe = make_damping_command(level, dialect)
            assert is_damping(safe) or (level, dialect) == (Level.HIGH, Dialect.A1_3_2)


# ---- what is said when --------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.sampled_from(["say", "trip", "arm"]), st.floats(0.0, 0.1)), max_size=20)
)
def test_a_command_is_never_said_longer_than_it_is_good(moves: list[tuple[str, float]]) -> None:
    sequence = CommandSequence()
    sequence.set_safe_command(b"safe")
    now, until = 10.0, math.inf
    expected = b""
    for what, after_s in moves:
        now += after_s
        if now >= until:
            expected, until = b"safe", math.inf
        assert sequence.choose_command(now) == expected
        if what == "say":
            sequence.set_command(b"go", 0.02, now)
            if expected != b"safe":
                expected, until = b"go", now + 0.02
        elif what == "trip":
            sequence.trip(now)
            expected, until = b"safe", math.inf
        else:
            sequence.arm()
            expected = b"" if expected == b"safe" else expected


def silence_of(sequence: CommandSequence) -> float | None:
    return None if sequence.stall is None else sequence.stall.silence_s


def test_a_stall_is_told_with_its_length_and_the_end_lasts_as_long_as_it_must() -> None:
    sequence = CommandSequence()
    assert sequence.remaining_safe_s(0.0) == CLOSING_S
    sequence.set_command(b"go", 0.016, 5.0)
    assert sequence.choose_command(5.015) == b"go"
    assert silence_of(sequence) is None
    sequence.choose_command(5.017)
    assert silence_of(sequence) == pytest.approx(0.017)
    assert sequence.remaining_safe_s(5.117) == pytest.approx(SAFE_S - 0.1)
    assert sequence.remaining_safe_s(9.0) == CLOSING_S


def test_a_sender_that_hung_does_not_jump_to_where_a_motion_went_meanwhile() -> None:
    sequence = CommandSequence()
    sequence.set_safe_command(b"safe")
    sequence.set_command(b"one", 0.016, 1.0)
    assert sequence.choose_command(1.0) == b"one"
    # It hung for half a second; the program went on, and its commands have waited in the line.
    sequence.set_command(b"far away", 0.016, 1.5)
    assert sequence.choose_command(1.5) == b"safe"
    assert silence_of(sequence) == pytest.approx(0.5)
    sequence.set_command(b"further", 0.016, 1.502)
    assert sequence.choose_command(1.502) == b"safe", "until somebody arms it again"
    sequence.arm()
    sequence.set_command(b"again", 0.016, 9.0)
    assert sequence.choose_command(9.0) == b"again"


def test_a_sender_that_was_late_by_less_or_drives_no_motion_goes_on() -> None:
    sequence = CommandSequence()
    sequence.set_safe_command(b"safe")
    sequence.set_command(b"one", 0.016, 1.0)
    assert sequence.choose_command(1.0) == b"one"
    sequence.set_command(b"two", 0.016, 1.05)
    assert sequence.choose_command(1.05) == b"two"
    sequence.set_command(b"walk", 1.0, 1.06)
    assert sequence.choose_command(1.06) == b"walk"
    sequence.set_command(b"walk on", 1.0, 1.5)
    assert sequence.choose_command(1.5) == b"walk on", (
        "such a command is good for longer than the hang"
    )


def moved(thigh_rad: float, *, dialect: Dialect = Dialect.A1_3_3_4, mode: int = 10) -> bytes:
    """Return a command that moves one thigh and turns one calf without a position."""
    motors = [MotorCmd(mode, q, 0.0, 0.0, 20.0, 1.0) for q in [0.0, 0.8, -1.6] * 4]
    motors[1] = motors[1]._replace(q_rad=thigh_rad)
    motors[2] = MotorCmd(dq_rad_s=thigh_rad, kd_nm_s_rad=1.0)
    return wire.encode(LowCmd(motors=MotorCmds.of(motors)), dialect)


def thigh_of(datagram: bytes) -> float:
    value = wire.decode(datagram).value
    assert isinstance(value, LowCmd)
    return value.motors[1].q_rad


@pytest.mark.parametrize("dialect", [Dialect.A1_3_3_4, Dialect.GO1])
@pytest.mark.parametrize("stall_s", [0.01, 0.016, 0.03, 0.06, 0.098])
@pytest.mark.parametrize("speed_rad_s", [0.2, -3.0, 9.0])
def test_a_sender_that_was_late_follows_in_steps_of_twice_the_pace_at_most(
    dialect: Dialect, stall_s: float, speed_rad_s: float
) -> None:
    sequence, period_s = CommandSequence(0.002), 0.002
    sent, step = [], 0

    def say_until(now: float) -> None:
        """Say what the program, which goes on in time, has said by now."""
        nonlocal step
        while step * period_s <= now:
            sequence.set_command(
                moved(1.0 + speed_rad_s * step * period_s, dialect=dialect), 0.016, now
            )
            step += 1

    now = 0.0
    while now < 1.5:
        say_until(now)
        sent.append(sequence.choose_command(now))
        now += stall_s if len(sent) == 50 else period_s
    assert sequence.stall is None
    steps_rad = np.abs(np.diff([thigh_of(datagram) for datagram in sent]))
    pace_rad = abs(speed_rad_s) * period_s
    assert steps_rad.max() <= min(max(2 * pace_rad, SOFT_RAD_S * period_s), 0.02) + 1e-6
    assert sent[-1] == moved(1.0 + speed_rad_s * (step - 1) * period_s, dialect=dialect)


def test_a_command_far_away_after_a_stall_is_reached_at_the_limit_of_speed() -> None:
    """As by a control function of time, where the whole computer was held up."""
    sequence, period_s = CommandSequence(0.002), 0.002
    sequence.set_command(moved(1.0), 0.1, 0.0)
    assert sequence.choose_command(0.0) == moved(1.0)
    sequence.set_command(moved(1.3), 0.1, 0.05)
    sent = [sequence.choose_command(0.05 + number * period_s) for number in range(20)]
    assert np.diff([1.0, *map(thigh_of, sent)]).max() <= MAX_RAD_S * period_s + 1e-6
    assert sent[15] == moved(1.3)
    value = wire.decode(sent[0]).value
    assert isinstance(value, LowCmd)
    assert value.motors[2].dq_rad_s == pytest.approx(1.3), "all but positions is as it was said"
    sequence.set_command(moved(1.9), 0.1, 0.09)
    assert sequence.choose_command(0.09) == moved(1.9), "what is said in time is sent as it is"


def test_after_a_stall_a_braked_motor_is_sent_its_command_as_it_is() -> None:
    sequence = CommandSequence(0.002)
    sequence.set_command(moved(1.0, mode=0), 0.1, 0.0)
    assert sequence.choose_command(0.0) == moved(1.0, mode=0)
    sequence.set_command(moved(1.3), 0.1, 0.05)
    assert sequence.choose_command(0.05) == moved(1.3)
    sequence.set_command(b"another frame", 0.1, 0.1)
    assert sequence.choose_command(0.1) == b"another frame"


def test_a_sender_follows_no_faster_than_motions_are_played_and_moves_are_soft() -> None:
    assert MAX_RAD_S == MAX_PLAYED_RAD_S
    assert A1_FAMILY.soft_rad_s == SOFT_RAD_S


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no process sends there")
def test_a_sending_process_that_was_stopped_for_a_moment_does_not_jump() -> None:
    """In real time: the program goes on meanwhile, and its commands wait in the line."""

    async def main() -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_000_000)
        ours.setblocking(False)
        stalls: list[Stall] = []
        sender = ProcessSender(theirs, stalls.append, lambda: None, 0.002)
        sent: list[bytes] = []

        def read() -> None:
            while True:
                try:
                    sent.append(ours.recv(2048))
                except BlockingIOError:
                    return

        await sender.wait_until_ready()
        try:
            sender.set_safe_command(b"safe")
            for number in range(300):
                sender.set_command(moved(0.006 * number), 1.0)
                if number in (100, 130):
                    os.kill(sender.process.pid, signal.SIGSTOP if number == 100 else signal.SIGCONT)
                await asyncio.sleep(0.002)
                read()
            await asyncio.sleep(0.3)
            read()
        finally:
            os.kill(sender.process.pid, signal.SIGCONT)
            await sender.close()
            ours.close()
            theirs.close()
        steps_rad = np.diff([thigh_of(datagram) for datagram in sent if datagram != b"safe"])
        assert len(steps_rad) > 100
        assert steps_rad.max() <= 0.05, "30 commands of 0.006 rad have waited"

    asyncio.run(main())


def test_a_computer_that_was_suspended_drives_nothing_after_it_and_says_so() -> None:
    async def main() -> None:
        async with driven_robot() as (world, client, troubles):
            assert not is_damping(world.newest)
            told = len(world.told)
            virtual.suspend(30.0)
            await asyncio.sleep(0.1)
            assert all(is_damping(command) for _, command in world.told[told + 1 :])
            (trouble,) = troubles
            assert isinstance(trouble, ProtectionError)
            assert "this computer was suspended for 30.0 s" in str(trouble)
            assert "robot.arm()" in trouble.remedy
            client.arm()
            client.command(LowCmd(motors=DRIVE))
            await asyncio.sleep(0.05)
            assert not is_damping(world.newest), "the robot is still there"
            world.health.silent = True
            virtual.suspend(30.0)
            await asyncio.sleep(1.5)
            assert "since this computer was suspended for 30.0 s" in str(troubles[-1])

    virtual.run(main())


def test_a_state_from_before_a_suspend_is_old() -> None:
    async def main() -> None:
        async with hung_robot() as (world, client, _):
            await asyncio.sleep(0.1)
            world.health.silent = True
            virtual.suspend(5.0)
            assert client.now() - client.state_received_s > 5.0

    virtual.run(main())


def test_a_sender_in_the_loop_keeps_its_pace_and_says_goodbye() -> None:
    async def main() -> None:
        sent: list[bytes] = []
        stalls: list[Stall] = []
        sender = LoopSender(sent.append, stalls.append, 0.002)
        await sender.wait_until_ready()
        sender.set_safe_command(b"safe")
        await asyncio.sleep(0.01)
        assert not sent, "nothing was given, nothing is said"
        sender.set_command(b"go", math.inf)
        await asyncio.sleep(0.1)
        assert 48 <= sent.count(b"go") <= 52
        sender.set_command(b"short", 0.016)
        await asyncio.sleep(0.1)
        assert 7 <= sent.count(b"short") <= 9
        assert [stall.silence_s for stall in stalls] == [pytest.approx(0.017, abs=0.002)]
        sender.set_command(b"late", 1.0)
        assert sent[-1] == b"safe"
        sender.arm()
        sender.set_command(b"again", 1.0)
        await asyncio.sleep(0.01)
        assert sent[-1] == b"again"
        assert b"late" not in sent
        before = len(sent)
        await sender.close()
        assert sent[before:] == [b"safe"] * (len(sent) - before)
        assert len(sent) - before >= 10
        assert sender.counts.sent == len(sent)

    virtual.run(main())


# ---- a robot at the other end -------------------------------------------------------------------


@asynccontextmanager
async def robot(
    dialect: Dialect = Dialect.A1_3_3_4, start: str = "stand"
) -> AsyncIterator[tuple[LoggedWorld, A1Simulator]]:
    world = LoggedWorld(dialect=dialect, start=start)
    async with A1Simulator(world) as simulator:
        yield world, simulator


@asynccontextmanager
async def client_of(
    simulator: A1Simulator, level: Level = Level.LOW, more: str = "&sender=loop"
) -> AsyncIterator[tuple[A1Client, list[RoteError]]]:
    client = await open_client(simulator.url(level) + more, timeout=2.0)
    troubles: list[RoteError] = []
    client.on_trouble(troubles.append)
    try:
        yield client, troubles
    finally:
        await client.close()


@asynccontextmanager
async def hung_robot() -> AsyncIterator[tuple[LoggedWorld, A1Client, list[RoteError]]]:
    async with (
        robot(start="hung") as (world, simulator),
        client_of(simulator) as (client, troubles),
    ):
        yield world, client, troubles


@asynccontextmanager
async def driven_robot() -> AsyncIterator[tuple[LoggedWorld, A1Client, list[RoteError]]]:
    async with hung_robot() as (world, client, troubles):
        client.command(LowCmd(motors=DRIVE))
        await asyncio.sleep(0.1)
        yield world, client, troubles


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("dialect", list(Dialect))
def test_the_dialect_is_learned_from_the_first_state(level: Level, dialect: Dialect) -> None:
    async def main() -> None:
        async with robot(dialect) as (world, simulator), client_of(simulator, level) as (client, _):
            is_old_low = level is Level.LOW and dialect is not Dialect.GO1
            assert client.dialect is (Dialect.A1_3_3_4 if is_old_low else dialect)
            await asyncio.sleep(0.2)
            assert client.states_received > 8
            assert not client.dropped
            assert not world.ignored

    virtual.run(main())


@pytest.mark.parametrize(
    ("asked", "seal"),
    [("", Seal.PLAIN), ("&checksum=plain", Seal.PLAIN), ("&checksum=encrypted", Seal.ENCRYPTED)],
)
def test_a_go1s_walking_controller_gets_the_checksum_that_is_asked_for(
    asked: str, seal: Seal
) -> None:
    async def main() -> None:
        got: list[bytes] = []
        loop = asyncio.get_running_loop()

        class Robot(asyncio.DatagramProtocol):
            def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
                got.append(data)
                transport.sendto(wire.encode(a1_values.HighState(), Dialect.GO1), addr)

        transport, _ = await loop.create_datagram_endpoint(Robot, local_addr=("127.0.0.1", 0))
        port = transport.get_extra_info("sockname")[1]
        client = await open_client(f"a1://127.0.0.1:{port}?sender=loop{asked}")
        client.command(HighCmd(mode=2))
        await asyncio.sleep(0.05)
        await client.close()
        transport.close()
        seals = {wire.inspect(data).seal for data in got if len(data) == 129}
        assert seals == {seal}

    virtual.run(main())


def test_another_dialect_than_asked_for_is_told_at_once() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        class Robot(asyncio.DatagramProtocol):
            def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
                transport.sendto(wire.encode(a1_values.HighState(), Dialect.A1_3_3), addr)

        transport, _ = await loop.create_datagram_endpoint(Robot, local_addr=("127.0.0.1", 0))
        port = transport.get_extra_info("sockname")[1]
        with pytest.raises(RemoteProtocolError, match=r"speaks 3\.3, not 3\.2"):
            await open_client(f"a1://127.0.0.1:{port}?dialect=3.2&sender=loop")
        transport.close()

    virtual.run(main())


def test_nobody_there_is_told_with_what_to_check() -> None:
    async def main() -> None:
        with pytest.raises(NoAnswerError, match="no A1 answered") as raised:
            await open_client("a1://127.0.0.1:9?sender=loop", timeout=0.5)
        assert "rote sim --robot a1" in worded(raised.value.remedy)
        with pytest.raises(NoAnswerError, match=r"within 3\.0 s"):  # at either of two ports
            await open_client("a1://127.0.0.77?sender=loop", timeout=3.0)
        with pytest.raises(LinkError, match="cannot be reached"):
            await open_client("a1://no.such.host.invalid?sender=loop")

    virtual.run(main())


def test_without_a_port_both_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with robot(Dialect.A1_3_2) as (_, simulator):
            monkeypatch.setattr("rote.transport.a1.client.HIGH_PORT", 9)
            monkeypatch.setattr("rote.transport.a1.client.OLD_HIGH_PORT", simulator.ports.high)
            client = await open_client("a1://127.0.0.1?sender=loop", timeout=1.0)
            assert client.dialect is Dialect.A1_3_2
            await client.close()

    virtual.run(main())


def test_frames_that_are_none_are_counted_and_named_when_nothing_else_comes() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        good = wire.encode(a1_values.LowState(), Dialect.A1_3_3_4)

        class Liar(asyncio.DatagramProtocol):
            def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
                transport.sendto(good[:-1] + b"\0", addr)
                transport.sendto(b"hello", addr)
                transport.sendto(bytes(807), addr)

        transport, _ = await loop.create_datagram_endpoint(Liar, local_addr=("127.0.0.1", 0))
        port = transport.get_extra_info("sockname")[1]
        with pytest.raises(NoAnswerError) as raised:
            await open_client(f"a1://127.0.0.1:{port}?level=low&sender=loop", timeout=0.3)
        for why in ("with crc", "with unknown length", "with head"):
            assert why in str(raised.value)
        transport.close()

    virtual.run(main())


def test_a_command_is_kept_and_closing_leaves_the_motors_braked() -> None:
    async def main() -> None:
        async with robot(start="hung") as (world, simulator):
            async with client_of(simulator) as (client, troubles):
                assert is_damping(world.newest)
                client.command(LowCmd(motors=DRIVE))
                await asyncio.sleep(1.5)
                assert world.newest == LowCmd(motors=DRIVE, header=world.newest.header)
                assert not troubles
                assert client.counts.late == 0
            await asyncio.sleep(0.01)
            assert is_damping(world.newest)
            with pytest.raises(LinkError, match="was closed"):
                client.command(LowCmd(motors=DRIVE))
            with pytest.raises(LinkError, match="was closed"):
                client.arm()
            client.trip()  # says nothing any more, and is no error

    virtual.run(main())


def test_a_robot_is_not_called_silent_while_this_computer_did_not_listen() -> None:
    async def main() -> None:
        async with driven_robot() as (world, _, troubles):
            for _ in range(10):
                virtual.hang(0.06)
                await asyncio.sleep(0.05)
            assert troubles == []
            world.health.silent = True
            virtual.hang(0.06)
            await asyncio.sleep(0.02)
            assert isinstance(troubles[0], ProtectionError), "it has one chance, not two"

    virtual.run(main())


def test_a_robot_is_called_silent_even_by_a_computer_that_is_always_late() -> None:
    async def main() -> None:
        async with driven_robot() as (world, _, troubles):
            world.health.silent = True
            for _ in range(20):
                virtual.hang(0.04)
                await asyncio.sleep(0)
            kinds = {error.protection for error in troubles if isinstance(error, ProtectionError)}
            assert kinds & {"stale", "control"}

    virtual.run(main())


def test_a_robot_that_goes_silent_is_braked_at_once_and_then_lost() -> None:
    async def main() -> None:
        async with driven_robot() as (world, client, troubles):
            world.health.silent = True
            await asyncio.sleep(0.08)
            assert isinstance(troubles[0], ProtectionError)
            assert troubles[0].protection == "stale"
            assert is_damping(world.newest)
            client.command(LowCmd(motors=DRIVE))
            await asyncio.sleep(0.02)
            assert is_damping(world.newest), "nothing is taken until it is armed"
            await asyncio.sleep(1.2)
            assert isinstance(troubles[1], PeerLostError)
            assert world.damped_for_s() > 1.0
            with pytest.raises(PeerLostError):
                client.command(LowCmd(motors=DRIVE))
            late: list[RoteError] = []
            client.on_trouble(late.append)
            await asyncio.sleep(0)
            assert late == troubles[1:], "who comes late is told, too"

    virtual.run(main())  # fmt: skip


def test_a_short_silence_costs_nothing_where_nothing_is_driven() -> None:
    async def main() -> None:
        async with hung_robot() as (world, client, troubles):
            await asyncio.sleep(0.1)
            world.health.silent = True
            await asyncio.sleep(0.3)
            world.health.silent = False
            await asyncio.sleep(0.1)
            assert troubles == []
            client.command(LowCmd(motors=DRIVE))
            await asyncio.sleep(0.05)
            assert not is_damping(world.newest), "it can be driven without being armed"

    virtual.run(main())


@pytest.mark.parametrize("part", ["imu", "motors"])
def test_states_that_are_no_numbers_count_as_none(part: str) -> None:
    async def main() -> None:
        async with hung_robot() as (world, client, troubles):
            await asyncio.sleep(0.05)
            client.command(LowCmd(motors=DRIVE))
            newest = client.latest
            world.health.corrupted_part = part
            await asyncio.sleep(0.08)
            assert client.dropped["not a number"] > 10
            assert client.latest is not None
            assert newest is not None
            assert [type(trouble) for trouble in troubles] == [ProtectionError]

    virtual.run(main())  # fmt: skip


@pytest.mark.parametrize("by_s", [-2.0, 5.0])
def test_a_clock_that_jumps_brakes_the_robot(by_s: float) -> None:
    async def main() -> None:
        async with hung_robot() as (world, client, troubles):
            client.command(LowCmd(motors=DRIVE))
            await asyncio.sleep(0.3)
            world.health.jump_clock(by_s)
            await asyncio.sleep(0.05)
            assert isinstance(troubles[0], ProtectionError)
            assert troubles[0].protection == "clock"
            assert is_damping(world.newest)
            client.arm()
            client.command(LowCmd(motors=DRIVE))
            await asyncio.sleep(0.05)
            assert not is_damping(world.newest)

    virtual.run(main())  # fmt: skip


def test_what_a_frame_cannot_hold_is_refused_and_the_command_before_is_kept() -> None:
    async def main() -> None:
        async with robot() as (world, simulator), client_of(simulator, Level.HIGH) as (client, _):
            client.command(HighCmd(mode=2))
            with pytest.raises(BadRequestError):
                client.command(HighCmd(mode=2, velocity_m_s=(math.nan, 0.0)))
            with pytest.raises(BadRequestError, match="cannot be sent at the high level"):
                client.command(LowCmd())
            await asyncio.sleep(0.05)
            assert isinstance(world.newest, HighCmd)
            assert world.newest.velocity_m_s == (0.0, 0.0)

    virtual.run(main())


def test_a_listeners_bug_is_its_own_alone() -> None:
    async def main() -> None:
        told: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        async with robot() as (_, simulator), client_of(simulator) as (client, _):

            def broken(_: object) -> None:
                raise ZeroDivisionError

            forget = client.on_state(broken)
            await asyncio.sleep(0.02)
            forget()
            forget()
            seen = len(told)
            assert seen > 1
            await asyncio.sleep(0.02)
            assert len(told) == seen

    virtual.run(main())


# ---- a process of its own, in real time ---------------------------------------------------------


@pytest.mark.slow
def test_a_sending_process_sends_on_while_the_loop_is_held_up_and_then_makes_safe() -> None:
    async def main() -> None:
        async with robot(start="hung") as (world, simulator):
            async with client_of(simulator, more="") as (client, troubles):
                # A computer with too much to do trips what is not asked for here; try it again.
                while is_damping(world.newest):
                    client.arm()
                    client.command(LowCmd(motors=DRIVE))
                    await asyncio.sleep(0.01)
                troubles.clear()
                sent = client.counts.sent
                # Somebody's bug: nothing of ours runs meanwhile, and the command is not renewed.
                time.sleep(KEPT_S + 0.2)  # noqa: ASYNC251
                client.poll()
                while client.counts.sent < sent + 100 or not is_damping(world.newest):
                    await asyncio.sleep(0.01)
                # No state was read, or the command was not renewed: what is noticed first.
                kinds = {getattr(trouble, "protection", "") for trouble in troubles}
                assert kinds
                assert kinds <= {"stale", "control"}
                kinds.clear()
                while "control" not in kinds:
                    troubles.clear()
                    client.arm()
                    client.command(LowCmd(motors=DRIVE), 0.016)
                    while not troubles:
                        await asyncio.sleep(0.01)
                    kinds = {getattr(trouble, "protection", "") for trouble in troubles}
                while not is_damping(world.newest):
                    await asyncio.sleep(0.01)

    asyncio.run(main())


def test_the_process_says_what_it_is_told_until_its_line_ends() -> None:
    """What the sending process does, in a thread of this one."""
    robot, carrier = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours, theirs = socket.socketpair()
    line = a1_sender.Line(ours)
    carrier.setblocking(False)
    robot.settimeout(10)

    def tell(what: bytes, number: float = 0.0, datagram: bytes = b"") -> None:
        line.send(a1_sender._ORDER_HEADER.pack(what, number) + datagram)

    def said() -> bytes:
        while (message := line.receive()) is None:
            time.sleep(0.001)
        return message

    def hear(wanted: bytes) -> None:
        while robot.recv(64) != wanted:
            pass

    process = a1_sender._SenderProcess(carrier, a1_sender.Line(theirs), 0.002)
    child = threading.Thread(target=process.run)
    with robot, carrier, ours, theirs:
        child.start()
        tell(b"f", datagram=b"safe")
        tell(b"s", math.inf, b"go")
        hear(b"go")
        tell(b"s", 0.016, b"short")
        hear(b"short")
        hear(b"safe")
        tell(b"a")
        tell(b"s", math.inf, b"again")
        hear(b"again")
        tell(b"t")
        hear(b"safe")
        told = [a1_sender._REPORT.unpack(said()) for _ in range(2)]
        assert told[0][0] == b"C"
        tell(b"e")
        child.join(10)
        assert not child.is_alive()
        kinds = []
        while message := line.receive():
            kinds.append(a1_sender._REPORT.unpack(message)[0])
        assert b"S" in [row[0] for row in told] + kinds


@pytest.mark.parametrize("cycle", [50, 51])
@pytest.mark.parametrize("is_after", [False, True])
def test_a_process_that_is_stopped_while_it_reads_its_orders_does_not_jump(
    monkeypatch: pytest.MonkeyPatch, cycle: int, is_after: bool
) -> None:
    """The program goes on for 60 ms. What it set meanwhile is read when the process continues."""
    now_s, steps = 0.0, 0
    robot, carrier = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours, theirs = socket.socketpair()
    line = a1_sender.Line(ours)

    def advance(duration_s: float) -> None:
        nonlocal now_s, steps
        now_s += duration_s
        while steps * 0.002 <= now_s:
            line.send(a1_sender._ORDER_HEADER.pack(b"s", 0.016) + moved(0.006 * steps))
            steps += 1
        if now_s > 1.0:
            ours.shutdown(socket.SHUT_WR)

    def wait(_: float) -> None:
        sent.append(robot.recv(2048))
        advance(0.002)

    class StoppedLine(a1_sender.Line):
        def receive(self) -> bytes | None:
            message = super().receive() if is_after else b""
            if message in (None, b"") and 0.002 * cycle <= now_s < 0.002 * cycle + 0.06:
                advance(0.06)
            return message if is_after else super().receive()

    monkeypatch.setattr(clock, "continuous_s", lambda: now_s)
    monkeypatch.setattr(time, "sleep", wait)
    sent: list[bytes] = []
    with robot, carrier, ours, theirs:
        line.send(a1_sender._ORDER_HEADER.pack(b"f", 0.0) + b"safe")
        advance(0.0)
        a1_sender._SenderProcess(carrier, StoppedLine(theirs), 0.002).run()
    steps_rad = np.diff([thigh_of(datagram) for datagram in sent if datagram != b"safe"])
    assert len(steps_rad) > 400
    assert 0.0 <= steps_rad.min() <= steps_rad.max() <= 0.02
    assert steps_rad.sum() == pytest.approx(3.0, abs=0.1), "it has caught up"


def test_messages_stay_whole_on_a_line_that_is_full_and_none_comes_after_its_end() -> None:
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    here, there = a1_sender.Line(ours), a1_sender.Line(theirs)
    with ours, theirs:
        assert there.receive() is None
        for number in range(1000):  # far more than there is room for
            here.send(number.to_bytes(2) * 300)
        come = []
        while message := there.receive():
            come.append(message)
        numbers = [int.from_bytes(message[:2]) for message in come]
        assert 0 < len(numbers) < 1000
        assert numbers == list(range(len(numbers)))
        assert all(message == message[:2] * 300 for message in come)
        here.send(b"again")
        rest = [message for _ in range(2) if (message := there.receive())]
        assert rest[-1] == b"again"
        here.close()
        assert there.receive() == b""
        there.send(b"to nobody")  # is no error


@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_a_message_that_comes_in_pieces_is_read_when_it_is_whole(pieces: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        line = a1_sender.Line(theirs)
        data = b"\x05\x00hello\x03\x00you"
        come = []
        for begin in range(0, len(data), pieces):
            ours.send(data[begin : begin + pieces])
            while message := line.receive():
                come.append(message)
        assert come == [b"hello", b"you"]


def test_a_system_that_hands_no_sockets_on_names_the_other_sender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rote.platform.system.can_pass_sockets", lambda: False)

    async def main() -> None:
        async with robot(start="hung") as (_, simulator):
            with pytest.raises(UnsupportedError, match="this system cannot start") as refused:
                await open_client(simulator.url(Level.LOW))
            assert "sender=loop" in refused.value.remedy

    asyncio.run(main())


PROGRAM = """
import asyncio, sys
from rote.session.a1 import LowCmd, MotorCmds
from rote.transport.a1.client import open_client
async def main():
    client = await open_client(sys.argv[1])
    client.command(LowCmd(motors=MotorCmds.servo(q_rad=[0.0, 0.8, -1.6] * 4, kp_nm_rad=20.0)))
    print("driving", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.slow
def test_a_program_that_is_killed_leaves_the_robot_braked_for_a_second() -> None:
    async def main() -> None:
        async with robot(start="hung") as (world, simulator):
            program = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", PROGRAM, simulator.url(Level.LOW)),
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            assert program.stdout is not None
            assert await program.stdout.readline() == b"driving\n"
            while not world.told or is_damping(world.newest):
                await asyncio.sleep(0.01)
            os.killpg(program.pid, signal.SIGKILL)  # with all that belongs to it
            await program.wait()
            while simulator.clients:
                await asyncio.sleep(0.05)
            assert world.damped_for_s() > 0.8

    asyncio.run(main())


@pytest.mark.slow
def test_a_sending_process_leaves_it_to_the_program_when_it_ends() -> None:
    """Ctrl-C, a closed terminal or a polite kill must not end it: the robot would not be braked."""

    async def main() -> None:
        async with robot(start="hung") as (_, simulator):
            async with client_of(simulator, more="") as (client, troubles):
                sender = client.sender
                assert isinstance(sender, ProcessSender)
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    os.kill(sender.process.pid, number)
                sent = client.counts.sent
                while client.counts.sent < sent + 200:
                    await asyncio.sleep(0.01)
                    assert not any(isinstance(trouble, LinkError) for trouble in troubles)

    asyncio.run(main())


@pytest.mark.slow
def test_a_sending_process_that_is_killed_is_a_lost_link() -> None:
    async def main() -> None:
        async with robot(start="hung") as (_, simulator):
            async with client_of(simulator, more="") as (client, troubles):
                sender = client.sender
                assert isinstance(sender, ProcessSender)
                os.kill(sender.process.pid, signal.SIGKILL)
                while not troubles:
                    await asyncio.sleep(0.01)
                (trouble,) = troubles
                assert isinstance(trouble, LinkError)
                assert "was ended" in str(trouble)
                assert trouble.remedy == "Connect again."
                for ask in (client.arm, lambda: client.command(LowCmd(motors=DRIVE))):
                    with pytest.raises(LinkError, match="was ended"):
                        ask()

    asyncio.run(main())


@pytest.mark.slow
def test_a_sending_process_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with robot() as (_, simulator):
            monkeypatch.setattr(sys, "executable", "/no/such/python")
            with pytest.raises(LinkError, match="cannot be started"):
                await open_client(simulator.url(Level.LOW))
            monkeypatch.setattr(sys, "executable", "/bin/true")
            with pytest.raises(LinkError, match="ended right after its start"):
                await open_client(simulator.url(Level.LOW))

    asyncio.run(main())
