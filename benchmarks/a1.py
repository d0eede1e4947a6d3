"""Claim: an A1's low-level frames are packed faster than Unitree's library does it from Python.

The peer is Unitree's library for the Go1, through its wheel `unitree-legged-sdk`, where that is
in the folder of peers. It works in a process of its own, because it prints. Its `SetSend` scales,
packs and seals; ours scales when the motors are made, so the row that counts goes the whole way:
five numbers for each of twelve joints, to the sealed datagram. The peer's list of motors is fetched
once, which is the fastest way to use it. The row below it is `SetSend` against `encode` alone.

The other peer is the method of pure Python clients: the same numbers through `struct`, and the CRC
bit by bit. It is written here.
"""

import os
import random
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from benchmarks import a1_loop
from benchmarks.peers import PEERS, report_missing
from benchmarks.size import process_context, size
from benchmarks.table import Row, cpu_s, take_turns
from rote.wire.a1 import codec as a1
from rote.wire.a1 import motors as a1_motors
from rote.wire.a1 import values as a1_values

ROUNDS = size(11, 1)
WHEEL = "unitree-legged-sdk"
Numbers = tuple[list[float], list[float], list[float], list[float], list[float]]
LIMIT = 80_000
"""LowStates a second."""


def _numbers(chance: random.Random) -> Numbers:
    spans = ((-2.7, 2.7), (-20.0, 20.0), (-33.0, 33.0), (0.0, 300.0), (0.0, 10.0))
    q, dq, tau, kp, kd = ([chance.uniform(*span) for _ in range(12)] for span in spans)
    return q, dq, tau, kp, kd


CHANCE = random.Random(1)
NUMBERS = [_numbers(CHANCE) for _ in range(size(100, 20))]


def whole(numbers: Numbers, dialect: a1_values.Dialect = a1_values.Dialect.GO1) -> bytes:
    q, dq, tau, kp, kd = numbers
    motors = a1_motors.MotorCmds.servo(
        q_rad=q, dq_rad_s=dq, tau_nm=tau, kp_nm_rad=kp, kd_nm_s_rad=kd
    )
    return a1.encode(a1_values.LowCmd(motors=motors), dialect)


COMMANDS = [a1.decode(whole(numbers)).value for numbers in NUMBERS]
STATES = [
    a1.encode(
        a1_values.LowState(
            motors=a1_motors.MotorStates.of(
                [
                    a1_motors.MotorState(q_rad=q, dq_rad_s=dq)
                    for q, dq in zip(*numbers[:2], strict=True)
                ]
            ),
            tick=tick,
        ),
        a1_values.Dialect.A1_3_3_4,
    )
    for tick, numbers in enumerate(NUMBERS)
]


def again(command: a1_values.Value) -> bytes:
    return a1.encode(command, a1_values.Dialect.GO1)


def bit_by_bit(numbers: Numbers) -> bytes:
    """The whole way as pure Python clients go it."""
    frame = bytearray(b"\xfe\xef\xff") + bytes(19)
    for motor in range(20):
        if motor < 12:
            q, dq, tau, kp, kd = (row[motor] for row in numbers)
            gains = [int(_rounded(x) * n) for x, n in ((tau, 256), (kp, 32), (kd, 16))]
        else:
            q, dq, gains = 2.146e9, 16000.0, [0, 0, 0]
        frame += struct.pack("<Bffhhh12x", 10, q, dq, *gains)
    frame += bytes(48)
    crc = 0xFFFFFFFF
    for (word,) in struct.iter_unpack("<I", frame[:608]):
        for place in range(31, -1, -1):
            differs = (crc >> 31) ^ (word >> place & 1)
            crc = (crc << 1) & 0xFFFFFFFF
            if differs:
                crc ^= 0x04C11DB7
    return bytes(frame) + struct.pack("<I", crc)


def _rounded(number: float) -> float:
    rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return rounded


def rate(one: Callable[[Any], object], items: list[Any], times: int) -> Callable[[], float]:
    """Return a measure: how many a second of processor time."""

    def work() -> None:
        for _ in range(times):
            for item in items:
                one(item)

    return lambda: times * len(items) / cpu_s(work)


# ---- Unitree's library ------------------------------------------------------------------------


def maker(asked: Connection) -> None:
    """Measure Unitree's library as often as asked; what it prints is thrown away."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.path.insert(0, str(PEERS / WHEEL))
    from unitree_legged_sdk import robot_interface as sdk  # type: ignore[import-not-found]

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    udp = sdk.UDP(0xFF, port, "127.0.0.1", port)
    command = sdk.LowCmd()
    udp.InitCmdData(command)
    motors = command.motorCmd[:12]

    def fill(numbers: Numbers) -> None:
        for motor, q, dq, tau, kp, kd in zip(motors, *numbers, strict=True):
            motor.q = q
            motor.dq = dq
            motor.tau = tau
            motor.Kp = kp
            motor.Kd = kd
        udp.SetSend(command)

    measures = {
        "whole": rate(fill, NUMBERS, 20),
        "again": rate(lambda _: udp.SetSend(command), NUMBERS, 20),
    }
    asked.send("ready")
    while True:
        asked.send(measures[asked.recv()]())


@contextmanager
def beside() -> Iterator[Callable[[str], Callable[[], float]] | None]:
    """Run Unitree's library for as long as the block runs; None where it is not installed."""
    if not (PEERS / WHEEL).is_dir():
        report_missing(f"no {WHEEL} in {PEERS}: run scripts/peers/clients")
        yield None
        return
    context = process_context()
    ours, theirs = context.Pipe()
    process = context.Process(target=maker, args=(theirs,), daemon=True)
    process.start()
    theirs.close()  # so that `recv` ends where the library does

    def measure(what: str) -> Callable[[], float]:
        def take() -> float:
            ours.send(what)
            return float(ours.recv())

        return take

    try:
        ours.recv()
        yield measure
    finally:
        process.kill()
        process.join()


def run() -> list[Row]:
    assert all(bit_by_bit(numbers) == whole(numbers) for numbers in NUMBERS[:20])
    measures = {
        "whole": rate(whole, NUMBERS, 20),
        "again": rate(again, COMMANDS, 40),
        "bit by bit": rate(bit_by_bit, NUMBERS[:20], 1),
        "state": rate(a1.decode, STATES, 40),
    }
    with beside() as maker_s:
        if maker_s is not None:
            measures |= {f"maker {what}": maker_s(what) for what in ("whole", "again")}
        rates = take_turns(ROUNDS, measures)
    packed = "a1: LowCmd, 60 numbers to a sealed datagram"
    rows = [Row(packed, "/s", rates["whole"], rates["bit by bit"], "bit by bit", at_least=50)]
    if "maker whole" in rates:
        wheel = "Unitree's library"
        encoded = "a1: LowCmd, the motors as they are"
        rows += [
            Row(packed, "/s", rates["whole"], rates["maker whole"], wheel, at_least=1.2),
            Row(encoded, "/s", rates["again"], rates["maker again"], wheel, at_least=1.2),
        ]
    return [
        *rows,
        Row("a1: LowState, checked and unpacked", "/s", rates["state"], LIMIT, "limit", at_least=1),
        *a1_loop.run(),
    ]
