"""Our client drives Unitree's own library in its role as a robot, from the PyPI wheel.

The wheel `unitree-legged-sdk` holds the library for the Go1. Its UDP class can serve as well as
ask, and takes commands as it would on a robot: wrong head, length or checksum, and it says no. The
state is sent through it, and only for commands that it took; from Python it cannot be asked what
they were. It runs in a process of its own, since it prints and keeps its buffers for the whole
process.
"""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from interop.processes import LAUNCH, PEERS
from rig import client_of
from rote.connection import connect_a1
from rote.robot.quadruped.robot import A1
from rote.session.a1 import Level
from rote.transport.a1.client import A1Client
from rote.wire.a1 import codec as wire
from rote.wire.a1.codec import Seal
from rote.wire.a1.motors import MotorCmds
from rote.wire.a1.values import Dialect, HighCmd, LowState

FOLDER = PEERS / "unitree-legged-sdk"
PROBE = "from unitree_legged_sdk import robot_interface as sdk; sdk.HighCmd()"
SERVER = """
import json, socket, sys, time
sys.path.insert(0, sys.argv[1])
from unitree_legged_sdk import robot_interface as sdk
from rote.wire.a1 import codec, motors as m, values as v

high = sys.argv[2] == "high"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
udp = sdk.UDP(port, 1087 if high else 807, 129 if high else 614, False, sdk.nonBlock, False)
print(json.dumps({"port": port}), flush=True)
taken = 0
begin = time.monotonic()
while True:
    if udp.Recv() == 0:
        taken += 1
        tick = int((time.monotonic() - begin) * 1e6)
        motors = m.MotorStates.of([m.MotorState(q_rad=-1.5)] * 12)
        state = v.HighState(mode=taken % 256) if high else v.LowState(motors=motors, tick=tick)
        udp.SetSend(codec.encode(state, v.Dialect.GO1))
        if high:
            udp.SetSend("[encryptCRC]")  # as a robot does; it seals what it sends itself
        udp.Send()
        if taken % 20 == 0:
            print(json.dumps({"taken": taken}), flush=True)
    time.sleep(0.001)
"""


def why_not() -> str:
    """Return why Unitree's library cannot be used here; nothing where it can."""
    if not FOLDER.is_dir():
        return f"Unitree's library is not in {FOLDER}; get it with: scripts/peers/clients"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(FOLDER)!r}); {PROBE}"],
        capture_output=True,
        check=False,
    )
    return "" if done.returncode == 0 else "Unitree's library does not run on this machine"


@pytest.fixture(scope="module", autouse=True)
def _library() -> None:
    if reason := why_not():
        pytest.skip(reason)


class Served:
    """Unitree's library as a robot, and how many commands it took."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self.port = self._next("port")

    def _next(self, what: str) -> int:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if line.startswith(b"{"):  # it prints on its own account, too
                said: dict[str, Any] = json.loads(line)
                return int(said[what])
        raise AssertionError("the library ended")

    async def takes(self, more: int) -> None:
        """Wait until it has taken so many commands more."""
        begin = taken = await asyncio.to_thread(self._next, "taken")
        while taken < begin + more:
            taken = await asyncio.to_thread(self._next, "taken")


@contextmanager
def served(level: Level) -> Iterator[Served]:
    command = [sys.executable, "-c", LAUNCH, "-c", SERVER, str(FOLDER), level.value]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            yield Served(process)
        finally:
            process.kill()


def dropped(robot: A1) -> dict[str, int]:
    return dict(client_of(robot, A1Client).dropped)


def test_our_client_walks_the_makers_server() -> None:
    async def main() -> None:
        with served(Level.HIGH) as server:
            async with connect_a1(f"a1://127.0.0.1:{server.port}?checksum=encrypted") as robot:
                assert robot.dialect is Dialect.GO1, "learned from the first state"
                robot.walk(0.5, -0.25, 1.0, body_height_m=-0.05)
                await server.takes(40)
                robot.pose(roll_rad=0.1, pitch_rad=-0.2, yaw_rad=0.3)
                await server.takes(40)
                assert not dropped(robot)

    asyncio.run(main())


def test_our_client_drives_the_motors_of_the_makers_server() -> None:
    async def main() -> None:
        with served(Level.LOW) as server:
            async with connect_a1(f"a1://127.0.0.1:{server.port}?level=low") as robot:
                assert robot.dialect is Dialect.GO1
                robot.set_motors(
                    MotorCmds.servo(q_rad=[0.1, 0.9, -1.5] * 4, kp_nm_rad=10.5, kd_nm_s_rad=1.5)
                )
                await server.takes(100)
                robot.modes.damp()
                await server.takes(100)
                assert isinstance(robot.native, LowState)
                assert robot.native.motors.q_rad[2] == pytest.approx(-1.5)
                assert not dropped(robot)

    asyncio.run(main())


def test_the_makers_server_takes_only_the_checksum_that_its_own_client_does_not_send() -> None:
    """Of high-level commands: both readings stay selectable, `?checksum=`."""
    plain, encrypted = (
        wire.encode(HighCmd(), Dialect.GO1, seal=seal) for seal in (Seal.PLAIN, Seal.ENCRYPTED)
    )
    with served(Level.HIGH) as server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.connect(("127.0.0.1", server.port))
        ours.settimeout(0.05)
        for _ in range(5):
            ours.send(plain)
            with pytest.raises(TimeoutError):
                ours.recv(2048)
        ours.settimeout(10.0)
        ours.send(encrypted)
        assert wire.decode(ours.recv(2048)).seal is Seal.ENCRYPTED
