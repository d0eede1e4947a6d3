"""Programs for Unitree's A1 library run by its own names, and are as safe as any other."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from a1_rig import LoggedWorld, is_damping
from a1_samples import SAMPLES
from rote.compat import legged_sdk as sdk
from rote.errors import BadRequestError, NoAnswerError, ProtectionError, RefusedError
from rote.robot.quadruped.loop import LoopFunc
from rote.sim.quadruped.simulator import A1Simulator
from rote.wire.a1 import codec as wire
from rote.wire.a1 import values as a1_values
from rote.wire.a1.values import Dialect

PATIENCE_S = 20.0


class FastestWorld(LoggedWorld):
    """Remembers its highest speed: a test that polls may miss it on a busy computer."""

    fastest_m_s = 0.0

    def step(self) -> None:
        super().step()
        self.fastest_m_s = max(self.fastest_m_s, self.body.ahead_m_s)


@contextmanager
def robot(
    start: str = "stand", dialect: Dialect = Dialect.A1_3_3_4
) -> Iterator[tuple[FastestWorld, A1Simulator]]:
    """A simulated robot in a thread of its own, as a program of another computer would meet it."""
    world = FastestWorld(dialect=dialect, start=start)
    loop = asyncio.new_event_loop()
    simulator = A1Simulator(world)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(simulator.open(), loop).result(5.0)
    try:
        yield world, simulator
    finally:
        asyncio.run_coroutine_threadsafe(simulator.close(), loop).result(5.0)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5.0)
        loop.close()


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


# ---- the walking controller ---------------------------------------------------------------------


@pytest.mark.quiet  # three threads in real time: a stall of 0.5 s trips a protection
@pytest.mark.parametrize("dialect", [Dialect.A1_3_2, Dialect.A1_3_3_4, Dialect.GO1])
def test_a_program_with_three_loops_walks_the_robot(dialect: Dialect) -> None:
    with robot(dialect=dialect) as (world, simulator):
        with sdk.UDP(sdk.HIGHLEVEL, 0, "127.0.0.1", simulator.ports.high) as udp:
            cmd, state = sdk.HighCmd(), sdk.HighState()
            udp.InitCmdData(cmd)

            def control() -> None:
                udp.GetRecv(state)
                cmd.mode = 2
                if dialect is Dialect.A1_3_2:
                    cmd.forwardSpeed = 0.3
                else:
                    cmd.gaitType, cmd.velocity = 1, [0.3, 0.0]
                cmd.led[0].r = 200
                udp.SetSend(cmd)

            loops = [
                LoopFunc("UDPSend", 0.01, 0, udp.Send),
                LoopFunc("UDPRecv", 0.01, 0, udp.Recv),
                LoopFunc("Control", 0.01, 0, control),
            ]
            for loop in loops:
                loop.start()
            until(
                lambda: (
                    state.forwardPosition > 0.2
                    and state.forwardSpeed == pytest.approx(0.3, abs=0.05)
                )
            )
            for loop in loops:
                loop.shutdown()
            assert state.velocity[0] == state.forwardSpeed
            assert state.footForce != [0, 0, 0, 0]
            told = world.newest
            assert isinstance(told, a1_values.HighCmd | a1_values.ScaledHighCmd)
            assert told.led[0].r == 200
        until(lambda: abs(world.high_state().velocity_m_s[0]) < 0.02)


@pytest.mark.quiet  # states that are 0.4 s late trip a protection
def test_a_command_that_is_not_sent_again_runs_out_and_the_robot_stands() -> None:
    with robot() as (world, simulator):
        with sdk.UDP(sdk.HIGHLEVEL, url=f"a1://127.0.0.1:{simulator.ports.high}") as udp:
            assert udp.Send() == 0, "before the first SetSend nothing is asked for"
            cmd = sdk.HighCmd(mode=2, velocity=[0.5, 0.0])
            udp.SetSend(cmd)
            until(lambda: udp.Recv() == 0)
            udp.Send()
            until(lambda: world.fastest_m_s > 0.3)
            until(lambda: abs(world.high_state().velocity_m_s[0]) < 0.02)
            until(lambda: udp.robot.trouble is not None)
            with pytest.raises(ProtectionError, match="no new command"):
                udp.Send()
            udp.robot.arm()
            until(lambda: udp.Send() == 0)


def test_what_is_out_of_range_is_refused_and_what_was_set_before_stays() -> None:
    with sdk.UDP(sdk.HIGHLEVEL, url="sim://a1") as udp:
        udp.SetSend(sdk.HighCmd(mode=1))
        for cmd, words in (
            (sdk.HighCmd(mode=2, velocity=[float("nan"), 0.0]), "velocity_m_s"),
            (sdk.HighCmd(mode=2, velocity=[0.1]), "velocity_m_s must have 2 numbers"),
            (sdk.HighCmd(led=[sdk.LED(300)] * 4), "led"),
            (sdk.HighCmd(led=[sdk.LED()] * 3), "cannot be read"),
            (sdk.HighCmd(wirelessRemote=bytes(3)), "remote needs 40"),
            (
                sdk.HighCmd(forwardSpeed=0.5),
                "uses dialect 3.3.4, whose HighCmd has no forwardSpeed",
            ),
            (sdk.HighCmd(AppRemote=bytes([1] * 40)), "AppRemote"),
            (sdk.HighCmd(velocity="fast"), "cannot be read"),  # type: ignore[arg-type]
            (sdk.LowCmd(), "cannot be sent at the high level"),
        ):
            with pytest.raises(BadRequestError, match=words):
                udp.SetSend(cmd)
        udp.SetSend(sdk.HighCmd(mode=2, velocity=[5.0, 0.0]))
        with pytest.raises(BadRequestError, match="forward_m_s"):
            udp.Send()
        with pytest.raises(BadRequestError, match="LowState"):
            udp.GetRecv(sdk.LowState())
        assert udp.robot.trouble is None
    udp.close()


def test_where_there_is_no_robot_or_no_level_the_program_hears_it_at_once() -> None:
    with pytest.raises(NoAnswerError):
        sdk.UDP(sdk.LOWLEVEL, 0, "127.0.0.1", 9, timeout=0.3)
    with pytest.raises(BadRequestError, match="level 0xf0"):
        sdk.UDP(0xF0)


# ---- the motors ---------------------------------------------------------------------------------


def test_motors_follow_until_send_is_no_longer_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk, "LOW_HOLD_S", 0.4)  # a busy computer is no subject here
    with robot("hung") as (world, simulator):
        with sdk.UDP(sdk.LOWLEVEL, 0, "127.0.0.1", simulator.ports.low) as udp:
            cmd, state, safe = sdk.LowCmd(), sdk.LowState(), sdk.Safety(sdk.LeggedType.A1)
            udp.InitCmdData(cmd)
            assert cmd.motorCmd[sdk.FR_2].q == sdk.PosStopF
            calf = cmd.motorCmd[sdk.MOTORS["FR_2"]]
            calf.q, calf.dq, calf.Kp, calf.Kd = -1.9, 0.0, 5.0, 1.0
            tries = 0

            def drive() -> bool:
                nonlocal tries
                udp.Recv()
                udp.GetRecv(state)
                safe.PositionLimit(cmd)
                udp.SetSend(cmd)
                try:
                    safe.PowerProtect(cmd, state, 1)
                    udp.Send()
                except ProtectionError as error:
                    tries += 1
                    if tries > 50 or error.protection not in ("stale", "control"):
                        raise
                    udp.robot.arm()
                return abs(state.motorState[sdk.FR_2].q + 1.9) < 0.1

            until(drive)
            assert len(state.motorState) == 20
            assert state.motorState[sdk.FR_2].temperature == 30
            assert state.tick > 0
            told = [c for _, c in world.told if isinstance(c, a1_values.LowCmd)]
            assert any(c.motors[2].kp_nm_rad == 5.0 for c in told)
            until(lambda: is_damping(world.newest))


def test_the_motors_of_a_robot_that_stands_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with robot() as (world, simulator):
        monkeypatch.setattr("rote.transport.a1.client.LOW_PORT", simulator.ports.low)
        monkeypatch.setattr("rote.transport.a1.client.HIGH_PORT", simulator.ports.high)
        with pytest.raises((BadRequestError, RefusedError), match="would sink"):
            sdk.UDP(sdk.LOWLEVEL, 0, "127.0.0.1")
        assert not any(isinstance(command, a1_values.LowCmd) for _, command in world.told)


# ---- structures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "cmd", "dialect"),
    [
        # Unitree's library leaves the level flag at 0 where it is given an address.
        ("3.2 LowCmd initial", sdk.LowCmd(levelFlag=0), Dialect.A1_3_2),
        ("3.3.4 LowCmd initial", sdk.LowCmd(levelFlag=0), Dialect.A1_3_3_4),
        ("3.2 HighCmd initial", sdk.HighCmd(), Dialect.A1_3_2),
        ("3.3.4 HighCmd initial", sdk.HighCmd(), Dialect.A1_3_3_4),
        ("go1 HighCmd initial", sdk.HighCmd(levelFlag=0xEE), Dialect.GO1),
    ],
)
def test_a_new_command_is_byte_for_byte_what_unitrees_library_makes(
    name: str, cmd: sdk.HighCmd | sdk.LowCmd, dialect: Dialect
) -> None:
    made = wire.encode(sdk._to_command(cmd, dialect), dialect)
    assert made == SAMPLES[name].datagram
    assert cmd.crc == int.from_bytes(made[-4:], "little")


def test_position_limits_and_protections_have_the_librarys_numbers() -> None:
    safe, cmd, state = sdk.Safety(), sdk.LowCmd(), sdk.LowState()
    cmd.motorCmd[sdk.FR_0].q = 2.0
    safe.PositionLimit(cmd)
    assert cmd.motorCmd[sdk.FR_0].q == pytest.approx(0.802)
    assert cmd.motorCmd[sdk.FR_1].q == sdk.PosStopF
    cmd.motorCmd[sdk.FR_1].q = float("nan")
    with pytest.raises(BadRequestError, match="nan"):
        safe.PositionLimit(cmd)
    state.motorState = [sdk.MotorState(q=q) for q in (0.0, 0.8, -1.6) * 4]
    assert safe.PositionProtect(cmd, state) == 0
    state.motorState[0].q = 0.75
    with pytest.raises(ProtectionError, match="FR_hip"):
        safe.PositionProtect(cmd, state)
    assert safe.PositionProtect(cmd, state, 0.02) == 0
    for motor in state.motorState:
        motor.dq, motor.tauEst = 3.0, 3.0
    for _ in range(5):
        assert safe.PowerProtect(cmd, state, 1) == 0
    with pytest.raises(ProtectionError, match="100 W"):
        safe.PowerProtect(cmd, state, 1)


def test_the_map_names_every_field_of_the_structures_and_of_the_values() -> None:
    structures: dict[str, tuple[Any, Any]] = {
        "HighCmd of v3.2": (sdk.HighCmd, a1_values.ScaledHighCmd),
        "HighCmd of v3.3 and later": (sdk.HighCmd, a1_values.HighCmd),
        "LowCmd": (sdk.LowCmd, a1_values.LowCmd),
        "HighState": (sdk.HighState, a1_values.HighState),
        "LowState": (sdk.LowState, a1_values.LowState),
    }
    go1_alone = {"bms", "obstacle_m"}
    for title, (theirs, ours) in structures.items():
        names = sdk.FIELDS[title]
        assert set(names) <= set(theirs.__dataclass_fields__), title
        reached = {path.partition(".")[0].partition("[")[0] for path in names.values()}
        assert reached | go1_alone >= set(ours._fields), title
    both = {**sdk.FIELDS["HighCmd of v3.2"], **sdk.FIELDS["HighCmd of v3.3 and later"]}
    assert set(both) | {"crc"} == set(sdk.HighCmd.__dataclass_fields__)
